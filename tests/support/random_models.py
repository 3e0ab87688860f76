"""Random models as source text, with every feature of the language: what only the reader of models sees, too.

Labelled branches, `enabled`, `first`, derived values, unions with `match`, bags, keys, empty containers, dependent domains,
optional parameters, subsets of an Enum, fairness of a part, constraints, `without`, interchangeable names, and bounds from a
parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

HEAD = """
from streamproof import *


class Ask(Case):
    n: int


class Stop(Case):
    pass


class Base(Model):
    n: int = 2
    most: int | None = {most}
    check_deadlock = {check_deadlock}
    limits = {{"n": (2, None)}}

    def setup(self):
        self.next = {{"a": ["b", "c"], "b": ["a"], "c": []}}
        self.edges = [(node, to) for node in self.next for to in self.next[node]]
        self.hosts = Symmetric(3, "host")

    def state(self):
        message = Union(Ask(n=Range(0, 1)), Stop())
        return State({declared})
"""

POOL = {
    "x": ("Range(0, 2)", 3),
    "up": ("Bool()", 2),
    "who": ('Enum("A", "B")', 2),
    "wide": ('Enum("A", "B", "C")', 3),
    "msg": ("message", 3),
    "net": ("Bag(message, capacity={1 or 2})", 10),
    "line": ("Queue(message, capacity={1 or 2})", 13),
    "seen": ('Set(Enum("A", "B"))', 4),
    "link": ("Array(self.edges, Range(0, 1))", 8),
    "last": ("Option(Range(0, 1))", 3),
    "crew": ("Array(2, Bag(Bool(), capacity=1))", 9),
    "none": ("Array(0, Range(0, 2))", 1),
    "nobody": ("Set(Range(0, -1))", 1),
    "host": ("Option(self.hosts)", 4),
    "ready": ("Set(self.hosts)", 8),
    "number": ("Range(0, self.n)", 3),
}
"""The variables: declaration and number of values."""

INITIAL = {
    "x": ("any_of(0, 2)", "1", "ANY"),
    "up": ("ANY", "True"),
    "who": ("any_of('A', 'B')",),
    "msg": ("any_of(Stop(), Ask(n=1))", "Stop()"),
    "net": ("[Stop()]", "any_of([], [Ask(1)])"),
    "line": ("[Ask(1)]", "any_of([], [Stop()])"),
    "link": ("[0, any_of(0, 1), 1]", '{("a", "b"): 1, ("a", "c"): ANY, ("b", "a"): 0}'),
    "last": ("any_of(None, 1)",),
}

TRUTHS: dict[str, tuple[str, ...]] = {
    "x": (
        "{s}.x > 0",
        "{s}.x != 1",
        "{s}.x == first(v for v in (2, 0, 1) if v != {s}.x)",
        "{s}.x < 2",
        "(self.most is None or {s}.x <= self.most)",
    ),
    "up": ("{s}.up", "not {s}.up"),
    "who": ('{s}.who == "A"', '{s}.who != "B"'),
    "wide": ('{s}.wide != "B"', 'first(w for w in ("C", "A", "B") if w != {s}.wide) == "A"'),
    "msg": ("isinstance({s}.msg, Stop)", "{s}.msg == Ask(1)", "isinstance({s}.msg, Ask) and {s}.msg.n == 0"),
    "net": (
        "Stop() in {s}.net",
        "len({s}.net) > 0",
        "{s}.net.count(Ask(0)) < 1",
        "{s}.net <= [Ask(1), Stop()]",
        "isinstance(first((q for q in {s}.net if q != Ask(0)), default=Ask(1)), Ask)",
        "len({s}.net) > 0 and first({s}.net) == Ask(0)",
    ),
    "line": (
        "not {s}.line.full",
        "len({s}.line) > 0 and {s}.line[-1] == Stop()",
        "Ask(0) not in {s}.line[1:]",
        "first((q for q in {s}.line if isinstance(q, Ask)), default=Ask(0)).n == 0",
    ),
    "seen": ('{s}.seen <= {{"A"}}', '"B" in {s}.seen', 'first({s}.seen, default="B") == "A"', "len({s}.seen) != 1"),
    "link": (
        "any({s}.link[e] > 0 for e in self.edges)",
        '{s}.link["a", "c"] == 0',
        "sum({s}.link) < 2",
        '("b", "a") == first((e for e in self.edges if {s}.link[e] == 1), default=("a", "b"))',
    ),
    "last": ("{s}.last is None", "{s}.last is not None and {s}.last > 0"),
    "crew": ("True in {s}.crew[0]", "{s}.crew[0] != {s}.crew[1]"),
    "none": ("sum({s}.none) == 0", "any(v > 0 for v in {s}.none)"),
    "nobody": ("all(v == 0 for v in {s}.nobody)", "first({s}.nobody, default=1) == 1"),
    "host": ("{s}.host is None", "{s}.host is not None", '{s}.host == "host2"'),
    "ready": ("len({s}.ready) < 2", "any(h not in {s}.ready for h in self.hosts)", "len({s}.ready) > 0"),
    "number": ("{s}.number <= self.n", "{s}.number < self.n", "{s}.number != 1"),
}

CHANGES: dict[str, tuple[str, ...]] = {
    "x": (
        "s.x = (s.x + 1) % 3",
        "s.x = min(s.x + 1, 2)",
        "s.x = choose(more=min(s.x + 1, 2), same=s.x)",
        "s.x = choose(zero=0, next=(s.x + 1) % 3, twice=min(2 * s.x, 2))",
        "if self.most is not None:\n    require(s.x < self.most)\n    s.x += 1\nelse:\n    s.x = 0",
        "s.x += 1",
        "s.x = first(v for v in range(3) if v != s.x)",
        "s.x = first(v for v in range(1, 3) if v > s.x)",
    ),
    "up": (
        "s.up = not s.up",
        "s.up = choose(on=True, off=False)",
        "if s.up:\n    s.up = choose(lost=False, kept=True)",
    ),
    "who": ('s.who = "B" if s.who == "A" else "A"', 's.who = choose(["A", "B"])', "s.who = choose(a='A', b='B')"),
    "wide": (
        's.wide = "C" if s.wide == "A" else "A"',
        's.wide = choose(up="C", down="B")',
        "s.wide = first(w for w in ('A', 'B', 'C') if w != s.wide)",
    ),
    "msg": (
        "s.msg = Ask(1)",
        "s.msg = choose(ask=Ask(0), stop=Stop())",
        "match s.msg:\n    case Ask(n=k):\n        s.msg = Ask(1 - k)\n    case Stop():\n        s.msg = Ask(0)",
        "match s.msg:\n    case Ask(1):\n        s.msg = Stop()\n    case _:\n        s.msg = Ask(n=1)",
    ),
    "net": (
        "require(len(s.net) < {cap})\ns.net.add(Ask(1))",
        "require(len(s.net) < {cap})\ns.net.add(choose(a=Stop(), b=Ask(0)))",
        "got = choose(s.net)\ns.net.remove(got)",
        "require(len(s.net) > 0)\ns.net.remove(first(s.net))",
        "s.net.discard(Stop())",
        "got = choose(s.net)\nif choose(lost=True, kept=False):\n    s.net.remove(got)\nelse:\n    s.net = [got]",
        "s.net = [q for q in s.net if q != Ask(1)]",
        "s.net.add(Stop())",
        "match choose(s.net):\n    case Ask(k):\n        s.net = [Ask(1 - k)]\n    case _:\n        s.net.clear()",
    ),
    "line": (
        "require(not s.line.full)\ns.line.push(choose(stop=Stop(), ask=Ask(1)))",
        "require(not s.line.full)\ns.line.insert(0, Ask(0))",
        "require(len(s.line) > 0)\nif choose(taken=True, left=False):\n    s.line.pop()",
        "require(Stop() in s.line)\ns.line.remove(Stop())",
        "s.line = s.line[1:]",
        "s.line = [q for q in s.line if isinstance(q, Ask)]",
        "s.line.pop()",
        "s.line.push(Ask(1))",
        "require(len(s.line) > 0)\n"
        "match s.line.pop():\n    case Ask(n=k) if k == 1:\n        pass\n    case other:\n        s.line.push(Ask(1))",
    ),
    "seen": (
        's.seen.add(choose(a="A", b="B"))',
        "s.seen.remove(choose(s.seen))",
        's.seen.discard("A")',
        's.seen |= {"B"}',
    ),
    "link": (
        's.link["a", "c"] = 1 - s.link["a", "c"]',
        "here = choose([e for e in self.edges if s.link[e] == 0])\ns.link[here] = 1",
        "here = first(e for e in self.edges if s.link[e] == 1)\ns.link[here] = 0",
        's.link["a", "b"] += 1',
        "here = first((e for e in self.edges if s.link[e] == 0), default=('a', 'b'))\ns.link[here] = choose(one=1, zero=0)",
    ),
    "last": ("s.last = None", "s.last = choose(none=None, one=1)", "s.last = 0 if s.last is None else None"),
    "crew": (
        "require(len(s.crew[1]) == 0)\ns.crew[1].add(choose(yes=True, no=False))",
        "s.crew[0] = s.crew[1]",
        "s.crew[0].remove(choose(s.crew[0]))",
        "s.crew[0].discard(True)\ns.crew[1].discard(False)",
    ),
    "none": ("for v in s.none:\n    require(v > 0)",),
    "nobody": ("s.nobody.clear()",),
    "host": ("s.host = choose(self.hosts)", "require(s.host is not None)\ns.host = None"),
    "ready": ("s.ready.add(choose(self.hosts))", "s.ready.remove(choose(s.ready))", "s.ready.clear()"),
    "number": (
        "require(s.number < self.n)\ns.number += 1",
        "s.number = min(s.number + 1, self.n)",
        "s.number = 0",
        "s.number = choose(kept=s.number, full=self.n)",
    ),
}

NODE, EDGE, MESSAGE, NUMBER, EMPTY, HOST = "node", "edge", "message", "number", "empty", "host"
DOMAINS = {
    NODE: ('node="next"', "node", "node == 'a'"),
    EDGE: ('node="next", to=lambda m, node: m.next[node]', "node, to", "(node, to) != ('a', 'c')"),
    MESSAGE: ("m=[Ask(0), Stop()]", "m", "m != Stop()"),
    NUMBER: ('k="n", l=lambda m, k: range(k, m.n)', "k, l", "k < l"),
    EMPTY: ('k="n", l=lambda m, k: range(m.n - 2)', "k, l", "k < l"),
    HOST: ('h="hosts"', "h", "h != 'host1'"),
}
"""The parameters of an action: their domains, their names, a condition on them."""

ARGUMENTS = {NODE: "'b'", EDGE: "'a', 'c'", MESSAGE: "Stop()", NUMBER: "0, 1", HOST: "'host3'"}
PARAMETERISED: dict[str, tuple[tuple[str, str], ...]] = {
    "link": (
        (EDGE, "s.link[node, to] = 1 - s.link[node, to]"),
        (NODE, "require(any(s.link[node, t] > 0 for t in self.next[node]))"),
    ),
    "msg": ((MESSAGE, "s.msg = m"),),
    "net": ((MESSAGE, "require(len(s.net) < {cap})\ns.net.add(m)"), (MESSAGE, "require(m in s.net)\ns.net.remove(m)")),
    "line": ((MESSAGE, "require(not s.line.full)\ns.line.push(m)"),),
    "x": ((NUMBER, "require(s.x == k)\ns.x = l"), (EMPTY, "s.x = l")),
    "none": ((EMPTY, "s.none[k] = l"),),
    "host": ((HOST, "s.host = h"), (HOST, "require(s.host == h)\ns.host = None")),
    "ready": ((HOST, "s.ready.add(h)"), (HOST, "require(h in s.ready)\ns.ready.remove(h)")),
    "number": ((NUMBER, "require(s.number == k)\ns.number = l"),),
}


SIZED = ("x", "up", "who", "wide", "link", "last", "host", "number")
"""The variables of models that are proved for every value of `n`: those of finite sorts that such proofs support."""


class Author:
    """Writes one model. `sized`: one that proofs for every value of `n` support, with a variable bounded by `n`."""

    def __init__(self, seed: int, *, sized: bool = False) -> None:
        self.random = Random(seed)
        self.sized = sized
        self.names = ["x", "number", *self.random.sample(SIZED[1:-1], 2)] if sized else self._chosen()
        self.capacity = self.random.choice((1, 1, 2))

    def _chosen(self) -> list[str]:
        names, size = ["x"], 3
        large = self.random.sample(("net", "net", "line", "line", "link", "seen", "ready"), 1)
        pair = ("who", "wide") if self.rarely(4) else ("msg",) if self.rarely(3) else ()
        for name in dict.fromkeys((*large, *pair, *self.random.sample(list(POOL)[1:], len(POOL) - 1))):
            if len(names) < self.random.choice((4, 5)) and size * POOL[name][1] <= 200:
                names.append(name)
                size *= POOL[name][1]
        return names

    def rarely(self, times: int) -> bool:
        """Whether a draw with this chance succeeds: one in so many."""
        return self.random.randrange(times) == 0

    def truth(self, s: str = "s", depth: int = 1) -> str:
        """A condition on a state."""
        if depth and self.rarely(2):
            one, other = self.truth(s, depth - 1), self.truth(s, depth - 1)
            return f"({one} {self.random.choice(('and', 'or'))} {other})"
        name = self.random.choice(self.names)
        return self.random.choice(TRUTHS[name]).format(s=s)

    def property(self, s: str = "s") -> str:
        """A condition that may ask whether a rule is enabled."""
        if self.rarely(3):
            return self.truth(s)
        action = self.random.choice(self.actions)
        more = f", {ARGUMENTS[action[1]]}" if action[1] else ""
        possible = f"{self.random.choice(('', 'not '))}enabled(self.{action[0]}, {s}{more})"
        return self.random.choice((possible, f"({possible} or {self.truth(s)})", f"({possible} and {self.truth(s)})"))

    def declared(self) -> str:
        """The variables."""
        found = []
        for name in self.names:
            sort = POOL[name][0].replace("{1 or 2}", str(self.capacity))
            if name in INITIAL and self.rarely(2):
                sort = "Union(Ask(n=Range(0, 1)), Stop())" if sort == "message" else sort
                sort = f"{sort[:-1]}, init={self.random.choice(INITIAL[name])})".replace("(, ", "(")
            found.append(f"{name}={sort}")
        return ", ".join(found)

    def rule(self, name: str) -> tuple[list[str], str | None]:
        """An action with its marks, and the kind of its parameters."""
        body, kind, conditions = [], None, []
        if self.rarely(2):
            body.append(f"require({self.truth()})")
        for at in range(self.random.choice((1, 1, 2))):
            variable = self.random.choice(self.names)
            options: Sequence[tuple[str | None, str]] = [(None, c) for c in CHANGES[variable]]
            if variable == "wide" and "who" in self.names:
                both = [(None, "s.wide = s.who"), (None, "require(s.wide != s.who)\ns.wide = s.who")]
                options = [*options, *both]
            if at == 0 and variable in PARAMETERISED and self.rarely(2):
                own = [*PARAMETERISED[variable]]
                options = [o for o in own if not self.sized or o[0] not in (NUMBER, EMPTY)] or options
            kind_now, change = self.random.choice(options)
            kind = kind_now or kind
            lines = change.replace("{cap}", str(self.capacity)).split("\n")
            if kind_now is None and self.rarely(4):
                lines = [f"if {self.truth()}:", *("    " + line for line in lines)]
            if self.rarely(4):
                lines = ["if choose(go=True, stay=False):", *("    " + line for line in lines)]
            body += lines
        labels = _labels("\n".join(body))
        domain, parameters, on_them = DOMAINS[kind] if kind else ("", "", "True")
        word = self.random.choice(("Fairness.NONE", "WEAK", "STRONG"))
        match self.random.randrange(5):
            case 0 if word != "Fairness.NONE":
                more = f", {parameters}" if parameters else ""
                conditions = [f"def {name}_part(self, s{more}):", f"    return {self.truth()} and {on_them}", ""]
                word += f'.where("{name}_part")'
            case 1 | 2 if labels and word != "Fairness.NONE":
                word += f'.branch("{self.random.choice(labels)}")'
        mark = ", ".join(p for p in (domain, f"fairness={word}") if p)
        head = [f"@action({mark})", f"def {name}(self, s{', ' + parameters if parameters else ''}):"]
        return [*conditions, *head, *("    " + line for line in body)], kind

    def write(self) -> str:
        """The source, with the model ``Random``."""
        self.actions: list[tuple[str, str | None]] = []
        lines: list[str] = []
        for k in range(self.random.randint(3, 4)):
            rule, kind = self.rule(f"act{k}")
            lines += [*rule, ""]
            if kind != EMPTY:
                self.actions.append((f"act{k}", kind))
        if not self.actions:
            lines += ["@action", "def other(self, s):", "    s.x = 2 - s.x", ""]
            self.actions.append(("other", None))
        lines += self._properties()
        if self.rarely(4):
            lines += ["@constraint", "def limit(self, s):", f"    return {self.truth()}", ""]
        if self.rarely(4) and not self.sized:
            condition = self.random.choice(
                (f"{self.truth('t', 0)} or {self.truth('s', 0)}", "t.x >= s.x", "t.x != 2 or s.x != 1")
            )
            lines += ["@constraint", "def step_limit(self, s, t):", f"    return {condition}", ""]
        head = HEAD.format(
            most=self.random.choice(("None", "1", "2")),
            check_deadlock=self.random.choice(("True", "True", "False")),
            declared=self.declared(),
        )
        removed = ', variant="less", without="spare"' if self.rarely(4) else ""
        spare = ["@action", "def spare(self, s):", "    s.x = 0", ""] if removed else []
        tail = f"class Random(Base{removed}):\n    '''The model.'''\n"
        return "\n".join((head, *("    " + line if line else "" for line in (*spare, *lines)), "", tail))

    def _properties(self) -> list[str]:
        formulas: Sequence[Callable[[], str]] = (
            lambda: f"leads_to({self.property()}, {self.truth()})",
            lambda: f"always(eventually({self.property()}))",
            lambda: f"eventually(always({self.truth()}))",
            lambda: f"eventually({self.property()})",
        )
        value = self.random.choice(
            (
                f"1 if {self.truth()} else 0",
                self.truth(),
                f"s.{self.random.choice(self.names)}",
                "first(v for v in (1, 2) if v > s.x)",
            )
        )
        marks = [
            ("invariant", "inv", "s", f"{self.property()} or {self.truth()}"),
            ("invariant", "near", "s", f"not ({self.property()} and {self.truth()} and {self.truth()})"),
            ("step", "steps", "s, t", f"{self.property('s')} or {self.property('t')} or {self.truth('t')}"),
            ("reachable", "reach", "s", f"{self.property()} and {self.truth()}"),
            ("derived", "shown", "s", value),
            ("derived", "possible", "s", self.property()),
            ("temporal", "comes", "s", self.random.choice(formulas)()),
            ("temporal", "again", "s", self.random.choice(formulas)()),
        ]
        lines = []
        for mark, name, states, body in marks:
            lines += [f"@{mark}", f"def {name}(self, {states}):", f"    return {body}", ""]
        return lines


def _labels(body: str) -> list[str]:
    """The labels of the labelled choices of a text."""
    found = []
    for part in body.split("choose(")[1:]:
        inside = part.split("\n")[0]
        if not inside.startswith(("s.", "[")):
            found += [p.split("=")[0].split("(")[-1] for p in inside.split(", ") if "=" in p and "==" not in p]
    return [label for label in found if label.isidentifier()]


def model_source(seed: int, *, sized: bool = False) -> str:
    """The source of a random model ``Random``: the same seed gives the same text."""
    return Author(seed, sized=sized).write()
