"""Finite prefixes that refute a formula, and formulas within a constraint: verdicts, vacuity, errors, exit codes, files."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from small_graphs import ATOMS, LETTERS, drawn, is_bad
from streamproof import (
    WEAK,
    Array,
    Model,
    Range,
    State,
    action,
    always,
    constraint,
    eventually,
    explore,
    leads_to,
    require,
    temporal,
)
from streamproof.cli.verbs import run
from streamproof.system import BOOL, System, Variable, Verdict
from streamproof.system import build as b
from streamproof.system.formula import (
    Always,
    AndF,
    Atom,
    Eventually,
    Formula,
    LeadsTo,
    NotF,
    OrF,
    Recurs,
    Release,
    Until,
    refutable,
)
from streamproof.system.prefixes import may_contradict
from streamproof.system.temporal import refutes

P, Q = (Atom(b.var(name, BOOL), f"p{at}") for at, name in enumerate("pq"))
SYSTEM = System("letters", (Variable("p", BOOL, (False, True)), Variable("q", BOOL, (False, True))), ())
FIRST = b.eq(b.var("p", BOOL), b.var("q", BOOL))


@pytest.mark.parametrize(
    ("formula", "prefixes", "bad"),
    [
        (Always(P), True, ["10"]),
        (Eventually(P), False, []),
        (NotF(Eventually(P)), True, ["01"]),
        (NotF(Always(P)), False, []),
        (Until(P, Q), True, ["110", "0"]),
        (Release(P, Q), True, ["0", "20"]),
        (NotF(Release(P, Q)), True, ["3", "23"]),
        (LeadsTo(P, Q), False, []),
        (Always(OrF((NotF(P), Always(Q)))), True, ["230", "1"]),
        (OrF((P, Always(Q))), True, ["220"]),
        (OrF((Eventually(P), Always(Q))), False, []),
        (AndF((Eventually(P), Always(Q))), True, ["20"]),
        (Recurs(FIRST), False, []),
        (AndF((Recurs(FIRST), NotF(Recurs(FIRST)))), False, []),
        (Always(AndF(())), False, []),
    ],
)
def test_what_refutes(formula: Formula, prefixes: bool, bad: list[str]) -> None:
    """A digit is a state: bit 0 is the value of p, bit 1 that of q; a bad prefix refutes from its last state on."""
    assert refutable(formula) is prefixes
    for word in bad:
        states = [(bool(int(digit) & 1), bool(int(digit) & 2)) for digit in word]
        assert refutes(SYSTEM, formula, states)
        assert not refutes(SYSTEM, formula, states[:-1])
    assert not prefixes or bad or not refutes(SYSTEM, formula, [(False, False)])


@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(40, 1500), marks=pytest.mark.long)], ids=["few", "many"]
)
def test_informative_prefixes_are_the_bad_ones(seeds: range) -> None:
    """Of random words and formulas, unless the formula may contradict itself; and what is informative is bad."""
    seen = {True: 0, False: 0}
    for seed in seeds:
        graph, random = drawn(seed), Random(seed)
        open_ = may_contradict(graph.formula)
        for _ in range(4):
            walk = [random.randrange(len(graph.letters)) for _ in range(random.randint(1, 4))]
            bad = is_bad(graph.formula, [graph.letters[state] for state in walk])
            informative = refutes(graph.system.unconstrained, graph.formula, [(state,) for state in walk])
            assert informative is bad or (open_ and bad), seed
            seen[bad] += 1
    assert min(seen.values()) > len(seeds) // 2
    assert len(LETTERS) == 1 << ATOMS


@pytest.mark.parametrize(
    ("formula", "contradicts"),
    [
        (AndF((Always(Eventually(P)), Eventually(Always(NotF(P))))), True),
        (Always(OrF((Q, AndF((Eventually(P), Always(NotF(P))))))), True),
        (NotF(LeadsTo(P, P)), True),
        (Always(OrF((NotF(P), Until(P, Q)))), False),
        (AndF((Always(Eventually(P)), Always(Eventually(NotF(P))))), False),
        (AndF((Always(Eventually(P)), Eventually(Always(Q)))), False),
        (AndF(tuple(Always(Eventually(Atom(b.var(f"x{at}", BOOL)))) for at in range(40))), False),
        (AndF((Always(Eventually(Atom(b.not_(P.expr)))), Always(Eventually(P)), Eventually(Always(P)))), True),
    ],
)
def test_formulas_that_contradict_themselves(formula: Formula, contradicts: bool) -> None:
    """After some prefix nothing makes them true, although no part is false yet."""
    assert may_contradict(formula) is contradicts


class Counting(Model):
    """A counter that, once it has started, must go on; every fair behaviour that starts leaves the constraint."""

    idle: bool = True

    def state(self):
        """The counter, and a table with an entry for each number inside."""
        return State(n=Range(0, 100), table=Array(6, Range(0, 1)))

    @action
    def start(self, s):
        """From 0 to 1."""
        require(s.n == 0 and self.idle)
        s.n = 1

    @action(fairness=WEAK)
    def go(self, s):
        """One more."""
        require(s.n > 0 or not self.idle)
        s.n += 1

    @constraint
    def small(self, s):
        """Up to 5."""
        return s.n <= 5

    @temporal
    def never_two(self, s):
        """False after two steps."""
        return always(s.n != 2)

    @temporal
    def in_table(self, s):
        """Without a value outside."""
        return always(s.table[s.n] == 0)

    @temporal
    def never_seven(self, s):
        """Of a state outside."""
        return always(s.n != 7)

    @temporal
    def moves(self, s):
        """No prefix refutes it."""
        return eventually(s.n == 50)

    @temporal
    def late(self, s):
        """Its antecedent is true outside only."""
        return leads_to(s.n == 6, s.n == 7)

    @temporal
    def torn(self, s):
        """A formula that nothing makes true."""
        return always(eventually(s.n == 3)) and eventually(always(s.n != 3))


def test_verdicts_within_a_constraint() -> None:
    """What behaviours that stay inside, prefixes, and neither decide; a condition without a value outside is no error."""
    found = explore(Counting.system(idle=False))
    texts = {f.property: f.text() for f in found.findings}
    assert texts == {
        "never_two": "violated",
        "in_table": "holds within the constraint",
        "never_seven": "holds within the constraint",
        "moves": "holds within the constraint, vacuously",
        "late": "holds within the constraint, vacuously",
        "torn": "inconclusive",
        "deadlock": "holds within the constraint",
    }
    leaves = "every fair behaviour leaves the constraint"
    assert f"{leaves}, and no prefix of one within it refutes the formula" in found.finding("never_seven").because
    assert found.finding("moves").because.startswith(f"vacuous: {leaves}; ")
    assert "contradict each other" in found.finding("torn").because
    found = explore(Counting.system())
    assert found.finding("moves").verdict is Verdict.VIOLATED
    assert found.finding("moves").trace.loop == 0
    assert found.finding("late").because.startswith(
        "vacuous: its antecedent is false in all 6 states within the constraint"
    )


def test_a_finite_counterexample_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code, JSON, and a file that `replay` accepts; one step less is rejected."""
    model, report, traces = f"{__file__}:Counting", tmp_path / "r.json", tmp_path / "traces"
    words = ["check", model, "--property", "never_two", "-q", "--json", str(report), "--out", str(traces)]
    assert run(words) == 13
    assert "refuted by the first 2 steps, whatever follows" in capsys.readouterr().out
    (said,) = json.loads(report.read_text())["properties"]
    file = Path(said["trace"]["file"])
    assert (said["verdict"], said["within"], said["fair"]) == ("violated", None, [])
    assert (said["trace"]["length"], said["trace"]["loop"], said["trace"]["stutters"]) == (2, None, False)
    assert run(["replay", str(file), "--model", model]) == 0
    assert "never_two is violated by the first 2 steps, whatever follows" in capsys.readouterr().out
    document = json.loads(file.read_text())
    document["states"].pop()
    file.write_text(json.dumps(document))
    assert run(["replay", str(file), "--model", model]) == 161
    assert "within the constraint it does not refute the formula" in capsys.readouterr().err
