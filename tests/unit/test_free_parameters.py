"""What the language may do with a parameter that stands for every number; everything else is refused."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from shares import share
from streamproof import Model, Spec, StreamproofError
from streamproof.any.engine import prove_any
from streamproof.any.readings import ReadingsDiffer, candidates, compare_readings
from streamproof.base.errors import Exit
from streamproof.language.lower.constants import integers_in
from streamproof.model_registry import find

HEAD = """
import collections, contextlib, copy, dataclasses, functools, json, math, operator, struct
from streamproof import Array, Model, Range, State, action, invariant, require

TABLE = {8: True}
EIGHT = frozenset({8})
BLIND = type


class Odd:
    def __eq__(self, other):
        return {8: True}.get(other, False)

    __hash__ = None


@dataclasses.dataclass(frozen=True)
class Pair:
    left: int
    right: int


class Trap(Model):
    n: int = 2
    m: int = 3
    limits = {"n": (0, None), "m": (0, None)}
    check_deadlock = False
    bad = False

    def helper(self):
        return self.n == 8

    def state(self):
        return State(x=Range(0, 1))
"""
RULE = """
    @action
    def go(self, s):
        require(%s)
        s.x = 1

    @invariant
    def safe(self, s):
        return s.x == 0
"""
WAYS = {
    "rule": ("", "{0}"),
    "setup": ("    def setup(self):\n        self.bad = bool({0})\n", "self.bad"),
    "helper": ("    def trap(self):\n        return {0}\n", "self.trap()"),
    "caught": (
        "    def trap(self):\n        try:\n            return bool({0})\n"
        "        except Exception:\n            return False\n",
        "self.trap()",
    ),
    "property": ("    @property\n    def trap(self):\n        return bool({0})\n", "self.trap"),
    "nested": ("    def trap(self):\n        return (lambda v: {1})(self.n)\n", "self.trap()"),
}
HOSTILE = [
    "self.n in {8}",
    "self.n in frozenset((8,))",
    "self.n in EIGHT",
    "{8: True}.get(self.n, False)",
    "TABLE.get(self.n, False)",
    "self.n in TABLE",
    "len({self.n, 8}) == 1",
    "{self.n: 1} == {8: 1}",
    "(self.n, 1) in {(8, 1)}",
    "hash(self.n) == hash(8)",
    "id(self.n) == id(8)",
    "self.n is 8",
    "str(self.n) == '8'",
    "repr(self.n) == '8'",
    "f'{self.n}' == '8'",
    "'%s' % self.n == '8'",
    "'{}'.format(self.n) == '8'",
    "json.dumps(self.n) == '8'",
    "not isinstance(self.n, int) or self.n == 8",
    "isinstance(self.n, int) and self.n == 8",
    "type(self.n) is int and self.n == 8",
    "type(self.n) == int and self.n == 8",
    "BLIND(self.n) is int and self.n == 8",
    "[type(v) for v in [self.n]][0] is int and self.n == 8",
    "self.n.__class__ is int and self.n == 8",
    "hasattr(self.n, 'real') and self.n == 8",
    "self.n.bit_length() == 4 and self.n == 8",
    "self.n.real == 8",
    "Pair(self.n, 1) == Pair(8, 1)",
    "Pair(self.n, 1) in {Pair(8, 1)}",
    "Odd() == self.n",
    "self.n == 8.0",
    "operator.is_(self.n, 8)",
    "collections.Counter([self.n])[8] == 1",
    "copy.deepcopy(self.n) == 8",
    "math.gcd(self.n, 8) == 8",
    "struct.pack('b', self.n) == b'8'",
    "sorted([self.n, 8])[0] == 8",
    "max(self.n, 8) == self.n",
    "bool(self.n == 8)",
    "self.n / 2 == 4",
    "self.n ** 2 == 64",
    "chr(self.n) == chr(8)",
    "[8].index(self.n) == 0",
    "[8].count(self.n) == 1",
    "(8).__eq__(self.n)",
    "list(map(TABLE.get, [self.n])) == [True]",
    "functools.reduce(lambda a, v: TABLE.get(v, a), [self.n], False)",
    "len(range(self.n)) == 8",
    "range(self.n) == range(8)",
    "bool(range(self.n - 8))",
]


def read(folder: Path, text: str) -> type[Model]:
    """The model `Trap` of a text."""
    path = folder / f"trap_{abs(hash(text))}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    made: type[Model] = module.Trap
    return made


def proved(model: type[Model], *free: str, checked: bool = True) -> tuple[str, ...]:
    """What is proved for every value of `free`, of readings that were compared before."""
    spec = Spec(model)
    parametric = spec.parametric(free)
    if checked:
        compare_readings(spec, None, {}, parametric)
    return prove_any(parametric, list(parametric.system.properties)).proved


def attempted(model: type[Model]) -> tuple[tuple[str, ...], StreamproofError | None]:
    """What the reading alone lets be proved, or the refusal."""
    try:
        return proved(model, "n", "m", checked=False), None
    except StreamproofError as error:
        return (), error


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("way", share(WAYS, 6, first=1))
def test_what_a_free_parameter_does_not_answer_is_refused(tmp_path: Path, way: str) -> None:
    """A model that breaks at n = 8 is never proved, however the number is asked for; what is refused names its line."""
    before, asked = WAYS[way]
    for hostile in HOSTILE:
        text = HEAD + before.format(hostile, hostile.replace("self.n", "v")) + RULE % asked.format(hostile)
        shown, refusal = attempted(read(tmp_path, text))
        assert shown == (), (way, hostile)
        assert refusal is None or (refusal.loc is not None and refusal.exit_code == 150), (way, hostile)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize(
    "hostile",
    share(["self.n is self.m", "type(self.n) is int", "self.n == 'eight'", "BLIND(self.n) is int"], 4),
)
def test_identity_and_type_in_setup_are_refused_at_their_line(tmp_path: Path, hostile: str) -> None:
    """Ordinary Python does not look at a parameter, and a number is compared with numbers."""
    text = HEAD + WAYS["setup"][0].format(hostile) + RULE % "self.bad"
    line = next(n for n, row in enumerate(text.splitlines(), start=1) if "bool(" in row)
    with pytest.raises(StreamproofError) as caught:
        proved(read(tmp_path, text), "n", "m", checked=False)
    assert caught.value.loc is not None
    assert caught.value.loc.line == line


BENIGN = [
    ("self.n + self.m * 2 - 1 > 3", "self.double == 2 * self.n"),
    ("self.n is not None and self.same is None", "self.n is not None"),
    ("sum([self.n, self.m]) >= self.n", "self.pairs[0][1] == self.n"),
    ("any(v == self.n for v in (1, 2, 3))", "True + self.n > self.n"),
]


@pytest.mark.parametrize(("first", "second"), share(BENIGN, 2))
def test_arithmetic_and_storing_are_allowed(tmp_path: Path, first: str, second: str) -> None:
    """A free parameter is added, compared, stored, handed on, and is never None."""
    before = (
        "    def setup(self):\n        self.double = self.n + self.n\n        self.pairs = [(1, self.n), (2, self.m)]\n"
        "        self.cells = range(self.n + 1)\n        self.__own = self.cells\n        self.again()\n\n"
        "    def again(self):\n        self.same = None if self.n is None else None\n\n"
    )
    model = read(tmp_path, HEAD + before + RULE % f"({first}) and ({second}) and s.x > 1")
    assert proved(model, "n", "m") == ("safe",)


def test_a_set_of_parameters_is_read_as_what_it_is(tmp_path: Path) -> None:
    """The number of members depends on whether the parameters are equal."""
    before = "    def setup(self):\n        self.bad = len({self.n, self.m}) == 1\n\n"
    assert proved(read(tmp_path, HEAD + before + RULE % "self.bad"), "n", "m") == ()
    assert proved(read(tmp_path, HEAD + before + RULE % "self.bad and self.n != self.m"), "n", "m") == ("safe",)


def test_a_rule_that_is_another_one_with_numbers_is_found_by_comparing(tmp_path: Path) -> None:
    """Where a reading for every size is not the concrete one, the rule is named with a size, and nothing is proved."""
    spec = Spec(read(tmp_path, HEAD + RULE % "self.n == 8"))
    never = Spec(read(tmp_path, HEAD + RULE % "self.n < 0")).parametric(("n",))
    assert prove_any(never, list(never.system.properties)).proved == ("safe",)
    with pytest.raises(ReadingsDiffer) as caught:
        compare_readings(spec, None, {}, never)
    assert caught.value.exit_code == Exit.DISAGREE
    assert "go() at n=8 differs from the one compiled for every size" in caught.value.message


def test_values_compared_are_near_the_integers_of_the_source(tmp_path: Path) -> None:
    """Numbers of rules, helpers, tables and texts are found, and their neighbours are compared."""
    before = '    LIMIT = {"most": [21, (34,)]}\n\n    def far(self):\n        return self.n > 1000 or "55" == ""\n'
    model = read(tmp_path, HEAD + before + RULE % "self.far() and len(TABLE) == 1 and len(self.LIMIT) == 1")
    assert {8, 21, 34, 55, 1000} <= set(integers_in(model))
    spec = Spec(model)
    tried = {v["n"] for v in candidates(spec, None, {}, spec.parametric(("n",)).free)}
    assert tried >= {0, 1, 2, 3, 7, 8, 9, 20, 21, 22, 999, 1000, 1001}


STARTS = """
from streamproof import ANY, Array, Model, Range, State, action, initially, invariant, require


class Trap(Model):
    n: int = 2
    limits = {"n": (1, None)}
    check_deadlock = False

    def state(self):
        return State(a=Array(range(self.n), Range(0, 1)), b=Array(range(self.n), Range(0, 1, init=ANY)))

    @initially
    def start(self, s):
        return %s

    @action
    def stay(self, s):
        s.a = s.a

    @invariant
    def none(self, s):
        return sum(s.b) == 0
"""


@pytest.mark.parametrize(
    ("start", "holds"),
    [
        ("all(s.b[c] == 0 for c in range(self.n))", True),
        ("all(s.b[0] == 0 for c in range(self.n))", False),
        ("all(s.b[c] == 0 for c in range(self.n) if c > 0)", False),
        ("all(s.b[c - c] == 0 for c in range(self.n))", False),
        ("all(s.b[c] == c - c for c in range(self.n))", True),
    ],
)
def test_a_sum_is_known_at_first_where_every_part_of_it_is(tmp_path: Path, start: str, holds: bool) -> None:
    """Equal parts at every index of the sum make it; at one index, or at some of them, they say nothing of it."""
    assert ("none" in proved(read(tmp_path, STARTS % start), "n")) is holds


@pytest.mark.parametrize("start", ["5", "start=5"])
def test_a_sum_over_any_number_of_indices_has_no_start(tmp_path: Path, start: str) -> None:
    """It is refused, by position and by name; `5 + sum(...)` says the same."""
    text = STARTS % "all(s.b[c] == 0 for c in range(self.n))"
    text += f"""
    @invariant
    def begun(self, s):
        return sum((s.b[c] for c in range(self.n)), {start}) >= 5
"""
    with pytest.raises(StreamproofError, match="which has any number of elements"):
        Spec(read(tmp_path, text)).parametric(["n"])


def test_indices_that_differ_deep_inside_have_witnesses_of_their_own(tmp_path: Path) -> None:
    """Two indices whose texts begin alike are two: each `any` inside has its own witness."""
    deep = "s.k" + " + 1 - 1" * 0
    for level in range(24):
        deep = f"(s.i if s.f else {deep} + {level})"
    other = deep.replace("s.k", "s.j")
    text = f"""
from streamproof import ANY, Array, Bool, Model, Range, State, action, initially, invariant, require


class Trap(Model):
    n: int = 2
    limits = {{"n": (1, None)}}
    check_deadlock = False

    def state(self):
        cells = range(self.n)
        return State(
            i=Range(0, self.n - 1), j=Range(0, self.n - 1), k=Range(0, self.n - 1), f=Bool(),
            a=Array(cells, Range(0, self.n - 1)), bad=Bool(),
        )

    def same(self, s, x, y):
        return any(s.a[d] == x and s.a[d] == y and d >= 0 for d in range(self.n))

    @action
    def go(self, s):
        require(all(any(s.a[d] == c for d in range(self.n)) for c in range(self.n)))
        require(0 <= {deep} < self.n and 0 <= {other} < self.n)
        require(s.a[{deep}] != s.a[{other}])
        s.bad = True

    @invariant
    def fine(self, s):
        return not s.bad
"""
    assert proved(read(tmp_path, text), "n", checked=False) == ()


def test_a_lambda_in_a_decorator_is_not_read_as_the_function(tmp_path: Path) -> None:
    """Of the two functions that begin at its line, the one that is called has no ``def``."""
    before = """
    def instead(of):
        return lambda other: of

    @instead(lambda self: self.n * self.n == 8281)
    def square(self):
        return False
"""
    shown, refusal = attempted(read(tmp_path, HEAD + before + RULE % "self.square()"))
    assert shown == ()
    assert refusal is not None
    assert "the source of '<lambda>' cannot be read" in refusal.message


SET_UP = """
from streamproof import Array, Bool, Model, Range, State, action, invariant, require


class Base(Model):
    n: int = 2
    limits = {"n": (1, None)}
    check_deadlock = False
    late = 0

    def setup(self):
        self.kept = [self.n, 1]

    def state(self):
        return State(x=Range(0, self.n))

    @invariant
    def inside(self, s):
        return s.x <= self.most


class Trap(Base):
    def setup(self):
        super().setup()
%s

    def state(self):
        return State(**dict(super().state().items()), y=Array(self.pair[0], Bool()))

    @action(i=lambda m: range(m.pair[0]), k=lambda m: range(3))
    def go(self, s, i, k):
        require(s.x < self.most)
        s.x += 1
"""


def lines(*text: str) -> str:
    """The end of a function."""
    return "\n".join(f"        {line}" for line in text)


@pytest.mark.parametrize(
    "end",
    [
        ("self.most, self.pair = self.kept[0], (self.n, 2)",),
        ("self.most = self.n", "self.most += 0", "self.pair = (self.most, 0)"),
        ("most = self.n - 1", "self.pair = tuple([most + 1])", "self.most = 1 + most"),
        ("self.most = self.n if self.n > 0 else 3", "self.pair = [self.n]"),
    ],
)
def test_setup_is_lowered_where_it_computes_with_a_parameter(tmp_path: Path, end: tuple[str, ...]) -> None:
    """Attributes, overridden functions, lambdas and the variables of a base class are those of Python at each number."""
    assert proved(read(tmp_path, SET_UP % lines(*end)), "n") == ("inside",)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (("self.most = 6 // (self.n - 3)",), "division by zero: self.n - 3 is 0"),
        (("if self.n > 3:", "    self.other = 3"), "the keys of a local dict, or their order, depend on the state"),
        (("self.most = [1] if self.n > 3 else []",), "a local list or dict, which depends on a free parameter"),
        (("kept = [1]", "self.kept = kept", "self.kept.append(self.n)", "self.most = helper(self)"), "name 'helper'"),
        (("self.most = (lambda: self.n)",), "a function, which depends on a free parameter"),
        (("self.most = max([self.n], key=abs)",), "max(..., key=...) is not part of the language"),
        (("self.most = len(str((self, 1))) + self.n",), "str() is passed the model in setup()"),
        (("self.most = self.n", "self.pair = (self.n // 2,)"), "is not made of sums and products"),
    ],
)
def test_setup_outside_the_language_is_refused_at_its_line(tmp_path: Path, end: tuple[str, ...], message: str) -> None:
    """What is not the same at each number, or may fail at one, has no value; the line is named."""
    text = SET_UP % lines("self.most, self.pair = 1, (1, 1)", *end)
    with pytest.raises(StreamproofError) as caught:
        proved(read(tmp_path, text), "n")
    assert message in caught.value.message
    assert caught.value.loc is not None
    assert caught.value.loc.line > text[: text.index("class Trap")].count("\n")


def test_a_helper_that_reads_the_model_before_setup_has_ended_is_lowered(tmp_path: Path) -> None:
    """It sees the attributes that setup() has assigned so far, not those of the class."""
    more = "\n    def told(self):\n        return self.late\n"
    end = ("self.late = self.n", "self.most = self.told()", "self.pair = (self.told(), 0)")
    assert proved(read(tmp_path, SET_UP % lines(*end) + more), "n") == ("inside",)


@pytest.mark.parametrize(
    ("model", "parameter", "term"),
    [
        ("failover", "failures", "restarting of Array("),
        ("failover", "losses", "restarting of Array("),
        ("cyclic", "records", "a Queue of capacity records + 1 is unbounded"),
        ("slots", "deaths", "available of Set("),
        ("slots", "gang", "available of Set("),
        ("slots", "slots", "range(0, 2 * slots) has no length"),
        ("partition_lifecycle", "failures", "to_executor of Array([(0, 0)], Queue("),
        ("partition_lifecycle", "jobs", "a loop over Range(0, jobs - 1), which has any number of elements"),
        ("lifecycle_failover", "executors", "a local list or dict changes while a loop runs over it"),
        ("region_slots", "instances", "'raise' is not part of the language"),
    ],
)
def test_bundled_models_are_refused_at_the_term_of_their_page(model: str, parameter: str, term: str) -> None:
    """What no proof for every size supports is named, and not a detail of the Python that leads to it."""
    with pytest.raises(StreamproofError) as caught:
        find(model).parametric(None, {}, (parameter,))
    assert caught.value.message.startswith(term)
    assert caught.value.loc is not None
