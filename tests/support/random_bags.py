"""Random small models with bags as source text: whole values, also such as may lie outside, assigned and compared."""

from __future__ import annotations

from random import Random

from streamproof.base.records import dataclass

HEAD = """
from streamproof import *

LISTS = {{"few": [0], "many": [1, 1, 0], "outside": [3], "both": [0, 3]}}


class Ask(Case):
    n: int


class Stop(Case):
    pass


class Random(Model):
    check_deadlock = {deadlock}

    def state(self):
        message = Union(Ask(n=Range(0, 1)), Stop())
        record = Record(of=Option(Range(0, 1)), up=Bool())
        return State(p=Bool(), a=Range(0, 2), {declared})
"""


@dataclass(frozen=True, slots=True)
class Theme:
    """Variables with bags of one sort of elements: places of bags, values, among them some that may lie outside."""

    declared: str
    bags: tuple[str, ...]
    values: tuple[str, ...]
    lists: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    """Statements with a value `v` that was chosen from a bag."""
    truths: tuple[str, ...] = ()


_NUMBERS = (
    "0",
    "1",
    "s.a",
    "s.a - 1",
    "len({bag})",
    "{bag}.count({value})",
    "(s.a if s.p else 1)",
    "max({bag}, default=0)",
)
THEMES = {
    "numbers": Theme(
        "net=Bag(Range(0, 1), capacity=2), low=Bag(Range(0, 1), capacity=1)",
        ("s.net", "s.net", "s.low"),
        _NUMBERS,
        ("[v + 1 for v in {bag}]", "[v for v in range(3) if v < s.a]", '(LISTS["outside"] if s.p else {bag})',
         '({bag} if s.p else LISTS["many"])', '({bag} if s.a == 1 else (0, 3))', 'LISTS["both"]'),
        ("s.a = v", "s.a = v + len({bag})", "s.net = [v, {value}]"),
        ("sum({bag}) > {value}", "set({bag}) == {{{value}}}", "len(set({bag})) > 1"),
    ),
    "shifted": Theme(
        "net=Bag(Range(-1, 1), capacity=2), q=Queue(Range(0, 2), capacity=1)",
        ("s.net",),
        (*_NUMBERS, "-1", "s.q.head"),
        ("[v for v in s.q]", "list(s.q)", "[*s.q, {value}]", "[-v for v in {bag}]"),
        ("s.q = [v]", "s.a = v", "s.q.push(v + 1)"),
        ("s.q == [{value}]", "min({bag}, default=2) < 0"),
    ),
    "records": Theme(
        "net=Bag(Record(of=Option(Range(0, 1)), up=Bool()), capacity=1)",
        ("s.net",),
        ('{{"of": s.a, "up": s.p}}', '{{"of": None, "up": True}}', '{{"of": (s.a if s.p else None), "up": False}}',
         "first({bag})"),
        ('[{{"of": s.a, "up": m.up}} for m in {bag}]', "[m for m in {bag} if m.up == s.p]"),
        ("s.a = 2 if v.of is None else v.of", "s.p = v.up"),
        ("any(m.up for m in {bag})", "all(m.of is not None and m.of < s.a for m in {bag})"),
    ),
    "messages": Theme(
        "net=Bag(message, capacity=2), msg=message",
        ("s.net",),
        ("Stop()", "s.msg", "Ask(s.a)", "Ask(n=len({bag}))", "(Ask(s.a) if s.p else Stop())", "first({bag}, default=Ask(0))"),
        ("[m for m in {bag} if m != s.msg]", "[Ask(s.a) for m in {bag} if m == Stop()]", "[*{bag}, s.msg]"),
        ("s.msg = v", "match v:\n    case Ask(n=k):\n        s.a = k\n    case _:\n        {bag}.clear()"),
        ("any(isinstance(m, Ask) and m.n == s.a for m in {bag})", "isinstance(s.msg, Stop)"),
    ),
    "options": Theme(
        "net=Bag(Option(Range(0, 1)), capacity=2), o=Option(Range(0, 2))",
        ("s.net",),
        ("None", "s.o", "s.a", "0", "(s.o if s.p else s.a)", "(None if s.p else 1)"),
        ("[v for v in {bag} if v is not None]", "[s.o for v in {bag} if v is None]"),
        ("s.o = v",),
        ("s.o is None", "None in {bag}"),
    ),
    "names": Theme(
        'net=Bag(Enum("A", "B"), capacity=2), m=Enum("A", "B")',
        ("s.net",),
        ('"A"', "s.m", '("B" if s.p else s.m)', "first({bag})"),
        ('["A" if v == s.m else "B" for v in {bag}]', "[v for v in {bag} if v != s.m]"),
        ("s.m = v",),
        ('s.m == "A"', 'set({bag}) <= {{"A", s.m}}'),
    ),
    "nested": Theme(
        "two=Array(2, Bag(Range(0, 1), capacity=1)), box=Record(bag=Bag(Range(0, 1), capacity=2), n=Range(0, 1))",
        ("s.two[0]", "s.two[s.a]", "s.box.bag"),
        ("0", "1", "s.a", "s.box.n", "len({bag})"),
        ('(LISTS["outside"] if s.p else {bag})', "[v + s.a for v in {bag}]", "[1 - v for v in s.box.bag]"),
        ("s.box.n = v", "s.two[v] = [1 - v]"),
        ("s.two == [{list}, [1]]", 's.box == {{"bag": {list}, "n": s.a}}', "s.two[0] == s.two[1]"),
    ),
    "held": Theme(
        "held=Option(Bag(Bool(), capacity=1)), line=Queue(Bag(Bool(), capacity=1), capacity=1), net=Bag(Bool(), capacity=2)",
        ("s.net",),
        ("True", "s.p", "(not s.p)", "(s.a > 0)"),
        ("[s.a == 1 for v in {bag}]", "[not v for v in {bag}]", "(s.held if s.p else [])"),
        ("s.held = [v, s.p]", "s.line.push([v])", "s.net = s.line.pop()", "s.held = None", "s.held = {list}"),
        ("s.held == {list}", "s.held is None", "[{value}] in s.line", "s.line == [{list}]"),
    ),
    "sets": Theme(
        "net=Bag(Set(Range(0, 1)), capacity=1), few=Set(Range(0, 2))",
        ("s.net",),
        ("{{0}}", "{{s.a}}", "{{s.a, 1}}", "s.few", "set()"),
        ("[m for m in {bag} if s.a in m]", "[{{s.a}} for m in {bag}]"),
        ("s.few = v", "s.few.add(len(v))"),
        ("any(s.few == m for m in {bag})", "s.few <= {{0, s.a}}"),
    ),
}  # fmt: skip
"""By the sort of the elements."""


class BagAuthor:
    """Writes one model: the same seed gives the same text."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.theme = THEMES[self.random.choice(list(THEMES))]

    def filled(self, text: str, depth: int = 2) -> str:
        """A text with its `{bag}`, `{value}` and `{list}` replaced."""
        bag = self.random.choice(self.theme.bags)
        return text.format(
            bag=bag,
            value=self.value(depth - 1) if "{value}" in text else "",
            list=self.listed(depth - 1) if "{list}" in text else "",
        )

    def value(self, depth: int = 2) -> str:
        """An element, which may lie outside the sort of the bag's elements."""
        options = [v for v in self.theme.values if depth > 0 or "{value}" not in v]
        return self.filled(self.random.choice(options), depth)

    def listed(self, depth: int = 2) -> str:
        """A bag, or a list that may have too many elements, or some outside."""
        plain = ("[]", "[{value}]", "[{value}, {value}]", "{bag}", "[v for v in {bag} if v != {value}]", "[*{bag}, {value}]",
                 "({value}, {value})", "([{value}] if s.p else {bag})")  # fmt: skip
        return self.filled(self.random.choice((*plain, *self.theme.lists, *self.theme.lists)), max(depth, 1))

    def truth(self, depth: int = 1) -> str:
        """A condition."""
        order = self.random.choice(("==", "!=", "<=", "<", ">=", ">"))
        plain = (f"{{bag}} {order} {{list}}", f"{{bag}} {order} {{list}}", f"{{list}} {order} {{bag}}", "{value} in {bag}",
                 "{value} not in {bag}", "all(v == {value} for v in {bag})", "any(v != {value} for v in {bag})",
                 "{bag}.count({value}) > 1", "len({bag}) == s.a", "s.p", "s.a > 0")  # fmt: skip
        found = self.filled(self.random.choice((*plain, *self.theme.truths)))
        if depth and self.random.random() < 0.3:
            return self.random.choice(
                (f"({found} and {self.truth(0)})", f"({found} or {self.truth(0)})", f"(not {found})")
            )
        return found

    def statement(self) -> list[str]:
        """A statement, perhaps of several lines."""
        take = self.random.choice(self.theme.takes)
        options = ("{bag} = {list}",) * 5 + (
            "{bag}.add({value})", "require({truth})\n{bag}.add({value})", "{bag}.discard({value})", "{bag}.remove({value})",
            "{bag}.clear()", "s.p = {truth}", "s.a = (s.a + 1) % 3", "s.p = not s.p", "s.a = len({bag})",
            f"v = choose({{bag}})\n{take}",
            "v = choose({bag})\n{bag}.discard(v)\ns.p = not s.p", f"for v in {{bag}}:\n    if {{truth}}:\n{_indented(take)}",
            "x = {list}\nif {truth}:\n    x = {bag}\n{bag} = x",
            "if {truth}:\n    {bag} = {list}\nelse:\n    s.a = len({bag})",
            "require({truth})\n{bag} = {list}", "x = list({bag})\nx.append({value})\n{bag} = x",
        )  # fmt: skip
        text = self.random.choice(options).replace("{truth}", self.truth(0).replace("{", "{{").replace("}", "}}"))
        return self.filled(text).split("\n")

    def write(self) -> str:
        """The source, with the model ``Random``."""
        lines = []
        for k in range(self.random.randint(2, 3)):
            body = [line for _ in range(self.random.choice((1, 1, 2))) for line in self.statement()]
            lines += ["@action", f"def act{k}(self, s):", *("    " + line for line in body), ""]
        lines += ["@invariant", "def holds(self, s):", f"    return {self.truth()}", ""]
        lines += ["@reachable", "def found(self, s):", f"    return {self.truth()}", ""]
        before, after = self.truth(), self.truth().replace("s.", "t.")
        lines += ["@step", "def steps(self, s, t):", f"    return {before} or {after}", ""]
        head = HEAD.format(deadlock=self.random.choice(("True", "False")), declared=self.theme.declared)
        return "\n".join((head, *("    " + line if line else "" for line in lines)))


def _indented(text: str) -> str:
    return "\n".join(" " * 8 + line for line in text.split("\n"))
