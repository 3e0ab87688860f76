"""Arrays of arrays of any length: proofs for every size against exhaustive search, plain readings and the second verifier."""

from __future__ import annotations

import importlib.util
import itertools
import random
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from shares import share
from streamproof import Array, Bool, Model, Option, Range, Spec, State, action, invariant, lemma, require, step
from streamproof.any.certify.proofs import contents_any
from streamproof.any.certify.verifier import verify_any
from streamproof.any.engine import prove_any
from streamproof.any.readings import ReadingsDiffer, compare_readings
from streamproof.certify.writing import packed
from streamproof.explicit.exploration import SearchOptions, explore
from streamproof.system import Verdict

FREE = ("n", "m", "cap")
SIZES = [dict(zip(FREE, size, strict=True)) for size in itertools.product((1, 2, 3), (1, 2), (0, 1, 2))]

HEAD = """
from streamproof import ANY, Array, Bool, Enum, Model, Option, Range, Record, State, action, invariant, lemma, require, step


class Random(Model):
    n: int = 2
    m: int = 2
    cap: int = 1
    limits = {"n": (1, None), "m": (1, None), "cap": (0, None)}
    check_deadlock = False

    def state(self):
        return State(
            r=Array(self.n, Array(self.m, Bool())),
            w=Array(self.n, Array(self.m, Range(0, self.cap))),
            b=Array(self.m, Record(on=Bool(), by=Array(self.n, Bool()))),
            a=Array(self.n, Range(0, self.cap)),
            k=Range(0, self.m - 1),
            f=Bool(),
        )
"""
TRUTHS = ("s.r[i][j]", "s.r[i][s.k]", "s.b[j].on", "s.b[j].by[i]", "s.f", "s.w[i][j] > 0", "s.a[i] > 0", "j == s.k")
NUMBERS = ("s.w[i][j]", "s.a[i]", "s.w[i][s.k]")


def _condition(chance: random.Random) -> str:
    x, y = chance.choice(TRUTHS), chance.choice(NUMBERS)
    z = chance.choice(TRUTHS).replace("[i]", "[u]").replace("[j]", "[v]").replace("j ==", "v ==")
    return chance.choice(
        [
            x,
            f"not {x}",
            f"{y} < self.cap",
            f"{y} <= {chance.choice(NUMBERS)}",
            f"all({z} for u in range(self.n) for v in range(self.m))",
            f"any({z} for u in range(self.n) for v in range(self.m))",
            "not any(s.r[u][j] for u in range(self.n) if u != i)",
            "sum(1 for v in range(self.m) if s.r[i][v]) == 0",
            "sum(s.w[u][j] for u in range(self.n)) < self.cap",
            "sum(1 for u in range(self.n) if s.r[u][j]) <= 1",
        ]
    )


def _change(chance: random.Random) -> list[str]:
    x, y = chance.choice(("s.w[i][j]", "s.a[i]")), chance.choice(TRUTHS)
    return chance.choice(
        [
            ["s.r[i][j] = True"],
            [f"s.r[i][j] = {y}", "s.b[j].on = not s.b[j].on"],
            ["require(s.r[i][j])", "s.r[i][j] = False", "s.b[j].by[i] = True"],
            [f"require({x} < self.cap)", f"{x} += 1"],
            [f"require({x} > 0)", f"{x} -= 1", "s.a[i] = self.cap"],
            [f"s.r[i] = [{y.replace('[j]', '[v]').replace('j ==', 'v ==')} for v in range(self.m)]"],
            ["s.r[i] = [s.r[i][v] and v != j for v in range(self.m)]", "s.r[i][s.k] = s.f"],
            ["s.w = [[s.w[u][v] if u == i else s.a[u] for v in range(self.m)] for u in range(self.n)]"],
            ["s.r = [[s.r[u][v] or (u == i and v == j) for v in range(self.m)] for u in range(self.n)]"],
            ["s.r[i] = [not x for x in s.r[i]]", "s.f = True"],
            ["s.k = j", "s.f = s.r[i][s.k]"],
            ["s.b[j].by = [s.r[u][j] for u in range(self.n)]", "s.b[j].on = True"],
            [f"if {_condition(chance)}:", "    s.r[i][j] = s.f", "else:", "    s.b[j].on = True"],
            ["require(not s.b[j].on)", "s.b[j].on = True", "s.r[i][j] = True"],
            ["require(s.r[i][j])", "s.r[i][j] = False", "s.b[j].on = False"],
        ]
    )


def _claim(chance: random.Random) -> str:
    x, y = chance.choice(TRUTHS), chance.choice(TRUTHS)
    each = "for i in range(self.n) for j in range(self.m)"
    pairs = "for i in range(self.n) for e in range(self.n) for j in range(self.m)"
    return chance.choice(
        [
            f"all(not {x} or {y} {each})",
            f"all(not {x} or not {y} {each})",
            f"all({chance.choice(NUMBERS)} <= {chance.choice([*NUMBERS, 'self.cap - 1'])} {each})",
            f"all(not s.r[i][j] or not s.r[e][j] or i == e {pairs})",
            f"all(not s.b[j].by[i] or s.b[j].on or not s.r[e][j] {pairs})",
            "all(any(s.r[i][j] for j in range(self.m)) for i in range(self.n))",
            f"any(not s.r[i][j] {each})",
            "sum(1 for i in range(self.n) if s.r[i][0]) <= self.n",
            "sum(s.w[0][j] for j in range(self.m)) <= self.m * self.cap",
            "sum(1 for i in range(self.n) if s.r[i][s.k]) <= 1",
            f"all(not s.r[i][j] or s.b[j].on {each})",
        ]
    )


def _text(seed: int) -> str:
    chance = random.Random(seed)
    lines = [HEAD]
    for number in range(chance.randint(1, 4)):
        lines += ["    @action(i='n', j='m')", f"    def act{number}(self, s, i, j):"]
        lines += [f"        require({_condition(chance)})"] if chance.random() < 0.5 else []
        lines += [f"        {row}" for row in _change(chance)]
        lines.append("")
    for number in range(6):
        lines += ["    @invariant", f"    def inv{number}(self, s):", f"        return {_claim(chance)}", ""]
    only = _claim(chance).replace("s.b", "t.b")
    lines += ["    @step", "    def steps(self, s, t):", f"        return {only}", ""]
    return "\n".join(lines)


def _model(folder: Path, seed: int) -> type[Model]:
    path = folder / f"relations_{seed}.py"
    path.write_text(_text(seed), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    made: type[Model] = module.Random
    return made


def compared(folder: Path, seed: int) -> tuple[int, int]:
    """The numbers of properties that were proved for every size, and of claims whose certificate two solvers accepted.

    Asserts that the readings agree, and that search at small sizes, up to 3,000 states, finds nothing against a proof."""
    spec = Spec(_model(folder, seed))
    parametric = spec.parametric(FREE)
    compare_readings(spec, None, {}, parametric)
    proof = prove_any(parametric, list(parametric.system.properties))
    for size in SIZES if proof.proved else ():
        found = explore(spec.system(**size), SearchOptions(max_states=3_000))
        assert found.mistake is None, (size, found.mistake, _text(seed))
        for name in proof.proved:
            assert found.finding(name).verdict is not Verdict.VIOLATED, (size, name, _text(seed))
    header, evidence, _ = contents_any(parametric, "model", ("--any", ""), proof)
    if header["claims"]:
        verify_any(packed(header, evidence), lambda _: parametric, lambda _: None)
    return len(proof.proved), len(header["claims"])


@pytest.mark.push
@pytest.mark.parametrize("seed", share(range(6), 6, first=3))
def test_what_is_proved_of_relations_holds_at_every_size_searched(seed: int, tmp_path: Path) -> None:
    """No proof, and no certificate, speaks against a small instance."""
    compared(tmp_path, seed)


SOLVING = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "solve_public_problems.py"))


@pytest.mark.parametrize(("problem", "free"), share(SOLVING["PROBLEMS"], len(SOLVING["PROBLEMS"])))
def test_public_problems(problem: str, free: str) -> None:
    """The page lists what is proved of each problem, with which lemmas; its certificate is accepted by two solvers."""
    row = SOLVING["solve"](problem, free)
    rows = [line.split(" | ") for line in SOLVING["PAGE"].read_text(encoding="utf-8").splitlines()]
    written = next(cells for cells in rows if cells[0] == f"| {row.problem}")
    assert written[:6] == str(row).split(" | ")[:6]


class Seen(Model):
    """An index of the next state in a property of steps."""

    n: int = 2
    limits = {"n": (1, None)}  # noqa: RUF012
    check_deadlock = False

    def state(self) -> State:
        """Nothing is true."""
        return State(a=Array(self.n, Array(self.n, Bool())), k=Range(0, self.n - 1))

    @action(i="n")
    def move(self, s: Any, i: int) -> None:
        """Another index."""
        s.k = i

    @action(i="n")
    def copy(self, s: Any, i: int) -> None:
        """A row is another row."""
        s.a[i] = s.a[s.k]

    @step
    def unchanged(self, s: Any, t: Any) -> bool:
        """The row is the one before, which is empty."""
        return all(t.a[t.k][i] == s.a[s.k][i] for i in range(self.n))

    @lemma
    def empty(self, s: Any) -> bool:
        """All are."""
        return all(not s.a[i][j] for i in range(self.n) for j in range(self.n))


def test_an_index_in_the_next_state() -> None:
    """A property of steps may read an array there."""
    parametric = Spec(Seen).parametric(("n",))
    assert prove_any(parametric, list(parametric.system.properties)).proved == ("unchanged",)


class Ranges(Model):
    """Values to keep in arrays over two ranges."""

    n: int = 2
    m: int = 2
    limits = {"n": (1, None), "m": (1, None)}  # noqa: RUF012
    check_deadlock = False

    def state(self) -> State:
        """All are 0."""
        return State(a=Array(self.n, Array(self.m, Range(0, 1))), b=Array(self.m, Range(0, 2)))

    @action(i="n", j="m")
    def put(self, s: Any, i: int, j: int) -> None:
        """Both change."""
        s.a[i][j] = 1
        s.b[j] = 1

    @invariant
    def few(self, s: Any) -> bool:
        """No 2."""
        return all(s.b[j] <= 1 for j in range(self.m))


def test_a_certificate_of_arrays_over_two_ranges() -> None:
    """Values outside of their sorts have an index of their own for each range."""
    parametric = Spec(Ranges).parametric(("n", "m"))
    header, _, without = contents_any(
        parametric, "model", ("--any", ""), prove_any(parametric, list(parametric.system.properties))
    )
    assert not without
    assert header["claims"] == {"few": "holds"}


class Absent(Model):
    """Rows that are absent, and rows at an index among two."""

    n: int = 2
    limits = {"n": (1, None)}  # noqa: RUF012
    check_deadlock = False

    def state(self) -> State:
        """All are empty, or absent."""
        return State(
            two=Array(2, Array(self.n, Bool())), k=Range(0, 1), some=Option(Array(self.n, Array(self.n, Bool())))
        )

    @action(i="n")
    def put(self, s: Any, i: int) -> None:
        """In the second, if it is its turn."""
        require(s.k == 1)
        s.two[s.k][i] = s.some is None

    @action(i="n")
    def read(self, s: Any, i: int) -> None:
        """Of an absent one, which never happens."""
        require(s.some is not None)
        s.two[0][i] = s.some[i][i]

    @action()
    def turn(self, s: Any) -> None:
        """The next is the other one."""
        s.k = 1 - s.k

    @invariant
    def first(self, s: Any) -> bool:
        """The first one is empty."""
        return all(not s.two[0][i] for i in range(self.n))

    @invariant
    def second(self, s: Any) -> bool:
        """So is the second: false."""
        return all(not s.two[1][i] for i in range(self.n))

    @lemma
    def none(self, s: Any) -> bool:
        """No array is there."""
        return s.some is None


def test_arrays_that_are_absent() -> None:
    """An undefined row has any elements, in the proof and in its certificate."""
    parametric = Spec(Absent).parametric(("n",))
    proof = prove_any(parametric, list(parametric.system.properties))
    header, evidence, without = contents_any(parametric, "model", ("--any", ""), proof)
    assert proof.proved == ("first",)
    assert not without
    verify_any(packed(header, evidence), lambda _: parametric, lambda _: None)


class Full(Model):
    """No error follows from the sum of a row, of which the certificate has no axiom."""

    n: int = 2
    limits = {"n": (1, None)}  # noqa: RUF012
    check_deadlock = False

    def state(self) -> State:
        """All rows are empty."""
        return State(a=Array(self.n, Array(self.n, Range(0, 2))))

    @action(i="n", j="n")
    def put(self, s: Any, i: int, j: int) -> None:
        """At most two in a row."""
        require(sum(s.a[i][x] for x in range(self.n)) < 2)
        s.a[i][j] += 1

    @invariant
    def few(self, s: Any) -> bool:
        """At most two in an element."""
        return all(s.a[i][j] <= 2 for i in range(self.n) for j in range(self.n))


def test_a_certificate_that_cannot_exclude_errors_has_no_claim() -> None:
    """The proof stands; the reason names what was not shown."""
    parametric = Spec(Full).parametric(("n",))
    proof = prove_any(parametric, list(parametric.system.properties))
    header, _, without = contents_any(parametric, "model", ("--any", ""), proof)
    assert proof.proved == ("few",)
    assert not header["claims"]
    assert "no evaluation error" in without["few"]


class Later(Model):
    """A property whose later elements may be evaluation errors where an earlier one is false."""

    n: int = 2
    limits = {"n": (1, None)}  # noqa: RUF012
    check_deadlock = False

    def state(self) -> State:
        """Nothing is chosen."""
        return State(e=Array(self.n, Option(Range(0, self.n - 1))), w=Array(self.n, Range(0, 3)))

    @action(i="n", j="n")
    def point(self, s: Any, i: int, j: int) -> None:
        """An element is chosen."""
        s.e[i] = j

    @invariant
    def zero(self, s: Any) -> bool:
        """At one size this ends at the first element that is false."""
        return all(s.e[i] is None or s.w[s.e[j]] == 0 for i in range(self.n) for j in range(self.n))


def test_an_error_behind_the_element_that_decides_is_named() -> None:
    """The reading for every size has the errors of all elements; the message says what else may be the cause."""
    spec = Spec(Later)
    with pytest.raises(ReadingsDiffer) as caught:
        compare_readings(spec, None, {}, spec.parametric(("n",)))
    assert "an error behind the one that decides" in (caught.value.remedy or "")


@pytest.mark.long
@pytest.mark.parametrize("start", range(100, 1_100, 100))
def test_many_proofs_of_relations(start: int, tmp_path: Path) -> None:
    """The same for 1,000 models, of which a part is proved."""
    counts = [compared(tmp_path, seed) for seed in range(start, start + 100)]
    assert sum(proved for proved, _ in counts) > 50
    assert sum(accepted for _, accepted in counts) > 20
