"""The TLA+ text, read by a small evaluator of its own that makes successors as TLC does, counts what we count.

It needs no Java, and it knows nothing of the exporter: it reads the text, splits what TLC splits (disjunctions, quantifiers,
conditionals, definitions that stand where a step is made) and evaluates everything else as a whole.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import product
from random import Random
from typing import Any, NamedTuple

import pytest

from random_families import family_system
from random_systems import random_system
from streamproof.exchange.tla.module import Means, Tla, export
from streamproof.explicit.exploration import explore
from streamproof.model_registry import find
from streamproof.system import Kind, System, Verdict
from streamproof.system.reference import reference

Node = tuple[Any, ...]
Value = Any
Bound = Mapping[str, Callable[[], Value]]


class Token(NamedTuple):
    """A word or sign, and the column in which it stands."""

    text: str
    column: int


END = Token("", -1)
WORDS = r"\\(?:in|notin|cup|cap|subseteq|div|E|A|X)\b"
SIGNS = rf"\|->|->|:>|@@|==|=>|<=|>=|<<|>>|\.\.|/\\|\\/|{WORDS}|\\|[-=#<>~'\[\](){{}},:!.+*%@]"
TOKEN = re.compile(rf'\s*("[^"]*"|\w+|{SIGNS})')
LEVELS = [
    ("=>",),
    ("/\\", "\\/"),
    ("=", "#", "<", ">", "<=", ">=", "\\in", "\\notin", "\\subseteq"),
    ("@@",),
    (":>",),
    ("\\cup", "\\cap", "\\"),
    ("..",),
    ("\\X",),
    ("+", "-"),
    ("*", "\\div", "%"),
]
PRECEDENCE = {sign: level for level, signs in enumerate(LEVELS) for sign in signs}
NEGATION = PRECEDENCE["="]


def tokens(lines: list[str]) -> list[Token]:
    """The tokens of some lines, without comments."""
    found = []
    for line in lines:
        at = 0
        while match := TOKEN.match(line, at):
            found.append(Token(match[1], match.start(1)))
            at = match.end()
        assert not line[at:].strip(), line
    return found


@dataclass
class Parser:
    """Expressions of the subset that is written; the items of a list end where something stands no further right."""

    left: deque[Token]
    limits: list[int] = field(default_factory=lambda: [-1])

    def peek(self) -> str:
        """The next token's text, empty at the end of the innermost item."""
        token = self.left[0] if self.left else END
        return token.text if token.column > self.limits[-1] else ""

    def take(self, wanted: str = "") -> str:
        """Pass the next token, which must be `wanted` if that is given."""
        text = self.peek()
        assert text == wanted if wanted else text, (wanted, list(self.left)[:5])
        self.left.popleft()
        return text

    def took(self, text: str) -> bool:
        """Whether `text` comes next; then it is passed."""
        if self.peek() != text:
            return False
        self.take()
        return True

    def expression(self, level: int = 0) -> Node:
        """Operators of at least this precedence, all from the left."""
        left = self.junction() if self.peek() in ("/\\", "\\/") else self.prefix()
        while self.peek() in PRECEDENCE and PRECEDENCE[self.peek()] >= level:
            sign = self.take()
            right = self.expression(PRECEDENCE[sign] + 1)
            if sign != "\\X":
                left = ("op", sign, left, right)
            else:
                left = ("tuples", [*(left[1] if left[0] == "tuples" else [left]), right])
        return left

    def junction(self) -> Node:
        """A list of items under one sign, each sign in the same column."""
        sign, column, items = self.peek(), self.left[0].column, []
        while self.left and self.left[0] == (sign, column) and self.peek():
            self.take()
            self.limits.append(column)
            items.append(self.expression())
            self.limits.pop()
        return ("list", sign, items)

    def prefix(self) -> Node:
        """What begins with a word or a sign of its own."""
        match self.peek():
            case "~":
                self.take()
                return ("not", self.expression(NEGATION))
            case "-":
                self.take()
                return ("op", "-", ("value", 0), self.expression(PRECEDENCE["*"]))
            case "IF":
                self.take()
                condition = self.expression()
                self.take("THEN")
                then = self.expression()
                self.take("ELSE")
                return ("if", condition, then, self.expression())
            case "LET":
                self.take()
                named = []
                while not self.took("IN"):
                    name = self.take()
                    self.take("==")
                    named.append((name, self.expression()))
                return ("let", named, self.expression())
            case "\\E" | "\\A" as quantifier:
                self.take()
                bounds = [self.bound()]
                while self.took(","):
                    bounds.append(self.bound())
                self.take(":")
                return ("some" if quantifier == "\\E" else "all", bounds, self.expression())
            case "UNCHANGED" | "ENABLED" | "DOMAIN" | "SUBSET" as word:
                self.take()
                return (word, self.expression(PRECEDENCE["*"]))
            case _:
                return self.postfix(self.primary())

    def bound(self) -> tuple[str, Node]:
        """A name, or several in a tuple, and the set that it runs through."""
        name = ", ".join(node[1] for node in self.items(">>")) if self.took("<<") else self.take()
        self.take("\\in")
        return name, self.expression()

    def postfix(self, node: Node) -> Node:
        """Primes, applications and fields behind it."""
        while True:
            if self.took("'"):
                node = ("next", node)
            elif self.took("["):
                node = ("apply", node, self.expression())
                self.take("]")
            elif self.took("."):
                node = ("apply", node, ("value", self.take()))
            else:
                return node

    def primary(self) -> Node:
        """A literal, a name, or something in brackets."""
        text = self.take()
        if text == "(":
            inner = self.expression()
            self.take(")")
            return ("let", [], inner) if inner[0] == "tuples" else inner
        if text == "<<":
            return ("sequence", self.items(">>"))
        if text == "{":
            return self.braces()
        if text == "@":
            return ("name", "@", [])
        if text == "[":
            return self.bracket()
        if text[0] == '"' or text.isdigit():
            return ("value", text[1:-1] if text[0] == '"' else int(text))
        if text in ("TRUE", "FALSE"):
            return ("value", text == "TRUE")
        return ("name", text, self.items(")") if self.took("(") else [])

    def items(self, closing: str) -> list[Node]:
        """Expressions with commas between them."""
        found: list[Node] = []
        while not self.took(closing):
            if found:
                self.take(",")
            found.append(self.expression())
        return found

    def braces(self) -> Node:
        """A set of values, or the values with a property."""
        if self.took("}"):
            return ("set", [])
        first = self.expression()
        if not self.took(":"):
            if self.took("}"):
                return ("set", [first])
            self.take(",")
            return ("set", [first, *self.items("}")])
        match first:
            case ("op", "\\in", ("name", name, []), among):
                node = ("filter", name, among, self.expression())
                self.take("}")
                return node
        raise AssertionError(first)

    def bracket(self) -> Node:
        """Functions, records, sets of them, and EXCEPT."""
        after = self.left[1].text
        if after == "\\in":
            name, among = self.bound()
            self.take("|->")
            made: Node = ("function", name, among, self.expression())
            self.take("]")
            return made
        if after in ("|->", ":"):
            parts = []
            while not self.took("]"):
                if parts:
                    self.take(",")
                name = self.take()
                self.take(after)
                parts.append((name, self.expression()))
            return ("record" if after == "|->" else "records", parts)
        base = self.expression()
        if self.took("->"):
            made = ("functions", base, self.expression())
            self.take("]")
            return made
        self.take("EXCEPT")
        changes = []
        while not self.took("]"):
            if changes:
                self.take(",")
            self.take("!")
            path = []
            while not self.took("="):
                if self.took("."):
                    path.append(("value", self.take()))
                else:
                    self.take("[")
                    path.append(self.expression())
                    self.take("]")
            changes.append((path, self.expression()))
        return ("except", base, changes)


class Later:
    """A value that is computed when it is first asked for."""

    def __init__(self, compute: Callable[[], Value]) -> None:
        self.compute: Callable[[], Value] | None = compute
        self.known: Value = None

    def __call__(self) -> Value:
        """The value."""
        if self.compute is not None:
            self.known, self.compute = self.compute(), None
        return self.known


class Function(dict[Value, Value]):
    """A function of TLA+; records are functions from strings."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


@dataclass
class Module:
    """The definitions of a module, parsed when they are first needed."""

    text: str

    def __post_init__(self) -> None:
        lines = [line for line in self.text.splitlines() if not line.strip().startswith("\\*")]
        self.variables = re.search(r"vars == <<(.*)>>", self.text)[1].split(", ")  # type: ignore[index]
        self._lines: dict[str, tuple[list[str], list[str]]] = {}
        for at, line in enumerate(lines):
            if head := re.match(r"(\w+)(?:\((.*)\))? ==(.*)", line):
                end = next(k for k in range(at + 1, len(lines)) if not lines[k].startswith(" "))
                body = ([head[3]] if head[3].strip() else []) + lines[at + 1 : end]
                self._lines[head[1]] = ((head[2] or "").split(", ") if head[2] else [], body)
        self._parsed: dict[str, tuple[list[str], Node]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._lines

    def definition(self, name: str) -> tuple[list[str], Node]:
        """The parameters and the body of an operator."""
        if name not in self._parsed:
            parameters, lines = self._lines[name]
            parser = Parser(deque(tokens(lines)))
            self._parsed[name] = parameters, parser.expression()
            assert not parser.left, (name, list(parser.left)[:4])
        return self._parsed[name]


@dataclass
class Evaluation:
    """Values in one state and, as far as it is known, the next."""

    module: Module
    state: Mapping[str, Value]
    after: Mapping[str, Value]

    def value(self, node: Node, bound: Bound) -> Value:
        """The value of an expression."""
        v = lambda one: self.value(one, bound)  # noqa: E731
        match node:
            case ("value", constant):
                return constant
            case ("name", name, given):
                return self.named(name, given, bound)
            case ("next", inner):
                return Evaluation(self.module, self.after, {}).value(inner, bound)
            case ("not", inner):
                return not self.truth(inner, bound)
            case ("list", sign, items):
                return (all if sign == "/\\" else any)(self.truth(item, bound) for item in items)
            case ("if", condition, then, other):
                return v(then) if self.truth(condition, bound) else v(other)
            case ("let", named, inner):
                return self.value(inner, self.widened(named, bound))
            case ("some" | "all" as kind, bounds, inner):
                found = (self.truth(inner, wider) for wider in self.choices(bounds, bound))
                return any(found) if kind == "some" else all(found)
            case ("sequence", items):
                return tuple(map(v, items))
            case ("set", items):
                return frozenset(map(v, items))
            case ("function", name, among, inner):
                return Function({k: self.value(inner, {**bound, name: lambda k=k: k}) for k in v(among)})
            case ("record", parts):
                return Function({name: v(one) for name, one in parts})
            case ("tuples", sets):
                return frozenset(product(*map(v, sets)))
            case ("records", parts):
                made = [Function()]
                for name, among in parts:
                    made = [Function({**f, name: one}) for f in made for one in v(among)]
                return frozenset(made)
            case ("functions", among, results):
                functions = [Function()]
                for key in v(among):
                    functions = [Function({**f, key: one}) for f in functions for one in v(results)]
                return frozenset(functions)
            case ("except", base, changes):
                whole = v(base)
                for path, one in changes:
                    keys = [v(key) for key in path]
                    old = reduce(applied, keys, whole)
                    whole = changed(whole, keys, self.value(one, {**bound, "@": Later(lambda old=old: old)}))  # type: ignore[misc]
                return whole
            case ("filter", name, among, inner):
                return frozenset(x for x in v(among) if self.truth(inner, {**bound, name: Later(lambda x=x: x)}))  # type: ignore[misc]
            case ("apply", whole, key):
                return applied(v(whole), v(key))
            case ("SUBSET", inner):
                members = [frozenset()]
                for one in v(inner):
                    members += [m | {one} for m in members]
                return frozenset(members)
            case ("DOMAIN", inner):
                whole = v(inner)
                return frozenset(range(1, len(whole) + 1)) if isinstance(whole, tuple) else frozenset(whole)
            case ("ENABLED", inner):
                return next(steps(self.module, inner, self.state), None) is not None
            case ("op", sign, left, right):
                return self.operator(sign, left, right, bound)
            case ("UNCHANGED", inner):
                return all(self.state[name] == self.after[name] for name in names(inner, self.module))
        raise AssertionError(node)

    def truth(self, node: Node, bound: Bound) -> bool:
        """The value of a formula, which must be a truth value."""
        found = self.value(node, bound)
        assert isinstance(found, bool), node
        return found

    def named(self, name: str, given: list[Node], bound: Bound) -> Value:
        """A bound name, a variable, or an operator applied."""
        if name in bound:
            return bound[name]()
        if name in self.state:
            return self.state[name]
        if name in self.module:
            parameters, body = self.module.definition(name)
            return self.value(body, self.arguments(parameters, given, bound))
        v = [self.value(one, bound) for one in given]
        match name:
            case "BOOLEAN":
                return frozenset({False, True})
            case "Len" | "Cardinality":
                return len(v[0])
            case "Append":
                return (*v[0], v[1])
            case "Head":
                return v[0][0]
            case "Tail":
                assert v[0]
                return v[0][1:]
        raise AssertionError(f"nothing is called {name}")

    def arguments(self, parameters: list[str], given: list[Node], bound: Bound) -> Bound:
        """What the parameters of an operator stand for."""
        assert len(parameters) == len(given), parameters
        return {p: Later(partial(self.value, one, bound)) for p, one in zip(parameters, given, strict=True)}

    def widened(self, named: list[tuple[str, Node]], bound: Bound) -> Bound:
        """With the names of a LET."""
        wider: dict[str, Callable[[], Value]] = dict(bound)
        for name, one in named:
            wider[name] = Later(partial(self.value, one, dict(wider)))
        return wider

    def belongs(self, x: Value, among: Node, bound: Bound) -> bool:
        """Whether a value is in a set, without making the set where that is large."""
        match among:
            case ("functions", keys, results):
                return set(x) == self.value(keys, bound) and all(self.belongs(y, results, bound) for y in x.values())
            case ("records", parts):
                return set(x) == {n for n, _ in parts} and all(self.belongs(x[n], one, bound) for n, one in parts)
            case ("tuples", sets):
                return len(x) == len(sets) and all(map(partial(self.belongs, bound=bound), x, sets))
            case ("SUBSET", inner):
                return all(self.belongs(y, inner, bound) for y in x)
            case _:
                whole = self.value(among, bound)
                assert all(alike(x, one) for one in whole)
                return x in whole

    def choices(self, bounds: list[tuple[str, Node]], bound: Bound) -> Iterator[Bound]:
        """With each combination of values of quantified names."""
        (name, among), rest = bounds[0], bounds[1:]
        for one in self.value(among, bound):
            parts = name.split(", ")
            values = one if len(parts) > 1 else (one,)
            wider = {**bound, **{n: Later(lambda v=v: v) for n, v in zip(parts, values, strict=True)}}  # type: ignore[misc]
            yield from self.choices(rest, wider) if rest else [wider]

    def operator(self, sign: str, left: Node, right: Node, bound: Bound) -> Value:
        """An operator between two operands."""
        match sign:
            case "=>":
                return not self.truth(left, bound) or self.truth(right, bound)
            case "/\\":
                return self.truth(left, bound) and self.truth(right, bound)
            case "\\/":
                return self.truth(left, bound) or self.truth(right, bound)
        if sign in ("\\in", "\\notin"):
            return self.belongs(self.value(left, bound), right, bound) is (sign == "\\in")
        x, y = self.value(left, bound), self.value(right, bound)
        if sign in ("=", "#"):
            assert alike(x, y), (x, y)
            return (x == y) is (sign == "=")
        match sign:
            case "<":
                return x < y
            case "<=":
                return x <= y
            case ">":
                return x > y
            case ">=":
                return x >= y
            case "\\subseteq":
                return x <= y
            case "\\cup":
                return x | y
            case "\\cap":
                return x & y
            case "\\":
                return x - y
            case "..":
                return frozenset(range(x, y + 1))
            case "+":
                return x + y
            case "-":
                return x - y
            case "*":
                return x * y
            case "\\div":
                assert y != 0
                return x // y
            case "%":
                assert y > 0
                return x % y
            case ":>":
                return Function({x: y})
            case "@@":
                return Function({**y, **x})
        raise AssertionError(sign)


def alike(x: Value, y: Value) -> bool:
    """Whether TLC compares the two; it refuses values of different kinds."""
    return type(x) is type(y)


def applied(whole: Value, key: Value) -> Value:
    """A function, record, tuple or sequence at a place, which must be there; those of a tuple are numbered from 1."""
    if not isinstance(whole, tuple):
        return whole[key]
    assert 1 <= key <= len(whole)
    return whole[key - 1]


def changed(whole: Value, path: list[Value], one: Value) -> Value:
    """A function, record, tuple or sequence with one place replaced; the place must be there."""
    before = applied(whole, path[0])
    inner = one if len(path) == 1 else changed(before, path[1:], one)
    if isinstance(whole, tuple):
        return (*whole[: path[0] - 1], inner, *whole[path[0] :])
    return Function({**whole, path[0]: inner})


def names(node: Node, module: Module) -> list[str]:
    """The variables of a tuple, or a single one."""
    if node[0] == "sequence":
        return [one[1] for one in node[1]]
    return module.variables if node[1] == "vars" else [node[1]]


def steps(module: Module, node: Node, state: Mapping[str, Value]) -> Iterator[Mapping[str, Value]]:
    """The successors of a state, each as often as TLC makes it."""
    for after in split(module, node, {}, state, {}):
        assert after.keys() == state.keys(), "a successor without some variable"
        yield after


def split(
    module: Module, node: Node, bound: Bound, state: Mapping[str, Value], after: Mapping[str, Value]
) -> Iterator[Mapping[str, Value]]:
    """What a formula makes of a next state that is known in part: one for each way that TLC takes."""
    here = Evaluation(module, state, after)
    match node:
        case ("list", "/\\", items):
            yield from through(module, items, bound, state, after)
        case ("op", "/\\", left, right):
            yield from through(module, [left, right], bound, state, after)
        case ("list", "\\/", items):
            for item in items:
                yield from split(module, item, bound, state, after)
        case ("op", "\\/", left, right):
            yield from split(module, left, bound, state, after)
            yield from split(module, right, bound, state, after)
        case ("some", bounds, inner):
            for wider in here.choices(bounds, bound):
                yield from split(module, inner, wider, state, after)
        case ("if", condition, then, other):
            yield from split(module, then if here.truth(condition, bound) else other, bound, state, after)
        case ("op", "=>", left, right):
            if here.truth(left, bound):
                yield from split(module, right, bound, state, after)
            else:
                yield after
        case ("let", named, inner):
            yield from split(module, inner, here.widened(named, bound), state, after)
        case ("name", name, given) if name in module and name not in bound:
            parameters, body = module.definition(name)
            yield from split(module, body, here.arguments(parameters, given, bound), state, after)
        case ("op", "=", ("next", ("name", name, _)), right) if name not in after:
            yield {**after, name: here.value(right, bound)}
        case ("UNCHANGED", inner):
            kept = names(inner, module)
            if all(after.get(name, state[name]) == state[name] for name in kept):
                yield {**after, **{name: state[name] for name in kept}}
        case _:
            if here.truth(node, bound):
                yield after


def through(
    module: Module, items: list[Node], bound: Bound, state: Mapping[str, Value], after: Mapping[str, Value]
) -> Iterator[Mapping[str, Value]]:
    """The parts of a conjunction, one after the other."""
    if not items:
        yield after
        return
    for partly in split(module, items[0], bound, state, after):
        yield from through(module, items[1:], bound, state, partly)


def starts(module: Module) -> Iterator[Mapping[str, Value]]:
    """The initial states: conjuncts that give a variable a value, or a set of them, and one condition."""
    _, body = module.definition("Init")
    states: list[dict[str, Value]] = [{}]
    for item in body[2]:
        match item:
            case ("op", "=" | "\\in" as sign, ("name", name, []), right) if name in module.variables:
                among = Evaluation(module, {}, {}).value(right, {})
                states = [{**s, name: one} for s in states for one in (among if sign == "\\in" else [among])]
            case _:
                states = [s for s in states if Evaluation(module, s, {}).truth(item, {})]
    yield from states


class Explored(NamedTuple):
    """What the search found: counts, and the invariants that some state violates."""

    distinct: int
    generated: int
    depth: int
    violated: frozenset[str]


def explored(model: Tla) -> Explored:
    """Breadth first, all of it, unless the model makes a mistake: then states have no bounds."""
    module = Module(model.modules[model.module])
    _, following = module.definition("Next")
    selected = {c.name for run in model.runs for c in run.claims if not c.temporal and run.module == model.module}
    seen: set[Function] = set()
    violated: set[str] = set()
    level, generated, depth = [Function(s) for s in starts(module)], 0, 0
    while level and "NoMistake" not in violated:
        fresh = []
        for state in level:
            generated += 1
            if state not in seen:
                seen.add(state)
                fresh.append(state)
                here = Evaluation(module, state, {})
                violated |= {name for name in selected if not here.truth(module.definition(name)[1], {})}
        depth += 1 if fresh else 0
        level = [Function(after) for state in fresh for after in steps(module, following, state)]
    return Explored(len(seen), generated, depth, frozenset(violated))


def agree(system: System) -> None:
    """Counts and the verdicts on states are ours, wherever the model makes no mistake."""
    model = export(system)
    ours, found = explore(system), explored(model)
    assert (ours.mistake is None) is ("NoMistake" not in found.violated)
    if ours.mistake is not None:
        return
    counts = (ours.counts.distinct, ours.counts.generated, ours.counts.depth)
    assert (found.distinct, found.generated, found.depth) == counts
    assert "TypeOK" not in found.violated
    for run in model.runs:
        for claim in run.claims:
            if claim.property is None or claim.temporal or claim.idle or claim.means is Means.MISTAKE:
                continue
            prop = ours.finding(claim.property)
            if prop.kind is Kind.TEMPORAL or prop.verdict is Verdict.ERROR:
                continue
            shown = prop.verdict is (Verdict.HOLDS if claim.means is Means.REACHED else Verdict.VIOLATED)
            if not any(c.means is Means.MISTAKE and c.property == claim.property for c in run.claims):
                assert shown is (claim.name in found.violated), claim.name


@pytest.mark.parametrize(
    ("name", "variant", "parameters"),
    [
        ("reference.async_termination_detection", None, {"n": 2}),
        ("reference.coffee_can", None, {"beans": 8}),
        ("reference.die_hard", None, {}),
        ("reference.dining_philosophers", None, {}),
        ("reference.ewd840", None, {"n": 3}),
        ("reference.ewd998", None, {"n": 2, "most": 1}),
        ("reference.hanoi", None, {"discs": 3}),
        ("reference.token_ring", None, {"n": 3, "values": 3}),
        ("reference.two_phase_commit", None, {"resource_managers": 2}),
        ("task_attempt", "late-reports", {}),
        ("failover", "individual", {}),
        ("failover", "literal-pseudocode", {}),
    ],
)
def test_bundled_models(name: str, variant: str | None, parameters: dict[str, Any]) -> None:
    """Each at a small size."""
    agree(find(name).spec.system(variant, **parameters))


def test_random_systems() -> None:
    """Systems of every sort, mistakes of the model included."""
    compared = 0
    for seed in range(300, 340):
        system = random_system(Random(seed))
        if reference(system).levels:
            try:
                agree(system)
            except Exception as error:
                error.add_note(f"random_system(Random({seed}))")
                raise
            compared += 1
    assert compared > 25


@pytest.mark.parametrize(
    "seeds",
    [range(12), *(pytest.param(range(n, n + 200), marks=pytest.mark.long) for n in range(100, 3_000, 200))],
    ids=str,
)
def test_families(seeds: range) -> None:
    """Rules that say the same of several elements, which are written with quantifiers, cardinalities and ``@``."""
    written = ""
    for seed in seeds:
        system = family_system(Random(seed))
        try:
            agree(system)
        except Exception as error:
            error.add_note(f"family_system(Random({seed}))")
            raise
        written += export(system).modules["random"].split("Init ==")[1]
    assert all(sign in written for sign in ("\\A i \\in ", "\\E i \\in ", "Cardinality({", "@", "=>", ") = TRUE"))


def test_an_unguarded_disjunction_would_be_counted_twice() -> None:
    """The evaluator splits as TLC does: without the comparison with TRUE, a state has two successors for one."""
    text = "vars == <<n>>\n\nInit ==\n    /\\ n = 0\n\nNext ==\n    /\\ {} n < 1 \\/ n < 2 {}\n    /\\ n' = n\n\n====\n"
    for opening, closing, count in (("(", ")", 2), ("(", ") = TRUE", 1)):
        module = Module(text.replace("{}", opening, 1).replace("{}", closing, 1))
        assert len(list(steps(module, module.definition("Next")[1], {"n": 0}))) == count
