"""Property-directed reachability: invariants, shortest ways, mistakes of the model, and proposals that are not believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import goals
from streamproof.symbolic.pdr import Pdr
from streamproof.symbolic.portfolio import Engine
from streamproof.symbolic.proof import Proof, prove
from streamproof.symbolic.solver import SolverAnswer, SolverBudget, Stopped
from streamproof.system import (
    Action,
    Check,
    Conjunct,
    Expr,
    Fairness,
    Instance,
    Kind,
    Property,
    RangeSort,
    System,
    UsageError,
    Variable,
    Verdict,
)
from streamproof.system import build as b
from streamproof.transform.scalarise import scalarise

COUNT = RangeSort(0, 9)
N, M = b.var("n", COUNT), b.var("m", COUNT)


def taking(name: str, guard: Sequence[Expr], *updates: tuple[str, Expr], checks: Sequence[Check] = ()) -> Action:
    """An action of one instance."""
    conjuncts = tuple(Conjunct(g, "", None) for g in guard)
    return Action(name, (), Fairness.NONE, (Instance(name, (), (), conjuncts, updates, (), tuple(checks)),))


def system(actions: Sequence[Action], *properties: Property) -> System:
    """Two counters that start at zero."""
    return System("two", (Variable("n", COUNT, (0,)), Variable("m", COUNT, (0,))), tuple(actions), properties)


def always(name: str, expr: Expr) -> Property:
    """An invariant."""
    return Property(name, Kind.INVARIANT, expr)


SKIP = taking("skip", [], ("n", b.mod(b.add(N, b.num(2)), b.num(10))))
"""Even numbers only."""
UP = taking("up", [b.less(N, b.num(9))], ("n", b.add(N, b.num(1))))


def run(of: System, *, integers: bool = False, facts: Sequence[Expr] = ()) -> Pdr:
    """The bare engine after its run."""
    encoding = Encoding(scalarise(of), integers=integers)
    engine = Pdr(encoding, goals(encoding, of.properties), facts, SolverBudget(10.0, 60))
    engine.run()
    return engine


def ask(of: System, **more: object) -> Proof:
    """The answer as it is told."""
    return prove(of, engine=Engine.PDR, max_k=1, depth=0, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("integers", [False, True])
def test_an_invariant_is_found_that_induction_alone_lacks(integers: bool) -> None:
    """That odd numbers are skipped is no inductive claim about one of them; the clauses found make it one."""
    of = system([SKIP], always("no seven", b.not_(b.eq(N, b.num(7)))))
    reached = run(of, integers=integers)
    assert reached.invariant
    assert (reached.findings, reached.mistake) == ({}, None)
    lemmas = [always(f"l{k}", c) for k, c in enumerate(reached.invariant)]
    assert prove(of, max_k=1, depth=0).findings[0].verdict is Verdict.INCONCLUSIVE
    assert prove(of, max_k=1, depth=0, lemmas=lemmas).findings[0].verdict is Verdict.HOLDS


def test_the_report_on_a_proof_by_pdr() -> None:
    """It holds by an induction that was done anew, and confirmed, with the lemmas that were proposed and needed."""
    proof = ask(system([SKIP], always("no seven", b.not_(b.eq(N, b.num(7))))))
    (finding,) = proof.findings
    assert (finding.verdict, proof.engines, proof.k, proof.confirmed) == (
        Verdict.HOLDS,
        {"no seven": Engine.PDR},
        {"no seven": 1},
        True,
    )
    texts = {m.text for m in proof.discovered}
    assert 2 <= len(texts) <= 5
    assert {m.source for m in proof.discovered} == {"invariant of PDR"}
    assert f"with {len(texts)} lemmas proposed by PDR" in finding.because


def test_a_system_that_never_begins_is_decided_at_once() -> None:
    """Without an initial state every invariant holds, and nothing is reached: no invariant need be looked for again."""
    of = system([UP], always("wrong", b.FALSE), Property("seven", Kind.REACHABLE, b.eq(N, b.num(7))))
    proof = ask(replace(of, initially=b.FALSE), seconds=20)
    assert [f.verdict for f in proof.findings] == [Verdict.HOLDS, Verdict.VIOLATED]
    assert proof.queries < 20


@pytest.mark.parametrize("integers", [False, True])
def test_ways_are_shortest_and_all_goals_are_decided(integers: bool) -> None:
    """Violations, a broken step and a witness are each found at their first depth, and what holds is distinguished."""
    of = system(
        [UP],
        always("below 3", b.less(N, b.num(3))),
        Property("small steps", Kind.STEP, b.less(b.next_("n", COUNT), b.num(6))),
        Property("seven", Kind.REACHABLE, b.eq(N, b.num(7))),
        Property("both", Kind.REACHABLE, b.eq(M, b.num(1))),
        always("m rests", b.eq(M, b.num(0))),
        Property("goes on", Kind.DEADLOCK, b.TRUE),
    )
    reached = run(of, integers=integers)
    assert {p.name: (f.verdict, len(f.trace or ())) for p, f in reached.findings.items()} == {
        "below 3": (Verdict.VIOLATED, 4),
        "small steps": (Verdict.VIOLATED, 7),
        "seven": (Verdict.HOLDS, 8),
        "goes on": (Verdict.VIOLATED, 10),
    }
    verdicts = {f.property: f.verdict for f in ask(of).findings}
    assert (verdicts["both"], verdicts["m rests"]) == (Verdict.VIOLATED, Verdict.HOLDS)


def test_a_mistake_of_the_model_ends_everything_that_is_open() -> None:
    """A counter that leaves its sort is found where it does, with the way there; what was decided before stays."""
    over = taking("over", [], ("n", b.add(N, b.num(4))))
    of = system([over], always("never four", b.not_(b.eq(N, b.num(4)))), always("m rests", b.eq(M, b.num(0))))
    reached = run(of)
    assert {p.name: len(f.trace or ()) for p, f in reached.findings.items()} == {"never four": 2}
    assert reached.mistake is not None
    assert [state[0] for state in reached.mistake[0].states] == [0, 4, 8]
    assert "n leaves Range(0, 9) in over()" in reached.mistake[1]
    verdicts = {f.property: f.verdict for f in ask(of).findings}
    assert verdicts == {"never four": Verdict.VIOLATED, "m rests": Verdict.ERROR}


def test_a_check_that_fires_is_a_mistake_too() -> None:
    """A check beside an effect is a mistake where it is true and the action is enabled, and only there."""
    bad = Check(b.less(b.num(4), N), "too far", None)
    fine = taking("up", [b.less(N, b.num(5))], ("n", b.add(N, b.num(1))), checks=(bad,))
    late = taking("up", [b.less(N, b.num(6))], ("n", b.add(N, b.num(1))), checks=(bad,))
    claim = always("m rests", b.eq(M, b.num(0)))
    assert ask(system([fine], claim)).findings[0].verdict is Verdict.HOLDS
    (finding,) = ask(system([late], claim)).findings
    assert finding.verdict is Verdict.ERROR
    assert "too far" in finding.because


def test_known_facts_shorten_the_work() -> None:
    """Given that the counter is even, nothing is left to find out."""
    of = system([SKIP], always("no seven", b.not_(b.eq(N, b.num(7)))))
    fact = b.eq(b.mod(N, b.num(2)), b.num(0))
    reached = run(of, facts=(fact,))
    assert (reached.invariant, reached.frames) == ((), 3)


def test_without_an_initial_state_everything_is_excluded_at_once() -> None:
    """No behaviour, no event: the first frames are equal."""
    of = System("none", (Variable("n", COUNT, (0,)),), (UP,), (always("p", b.eq(N, b.num(0))),), initially=b.FALSE)
    reached = run(of)
    assert (reached.findings, reached.invariant is not None) == ({}, True)


def test_a_wrong_invariant_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an engine that takes every cube for excluded, true claims stay open and false ones are never called proved."""
    relative = Pdr._relative

    def careless(self: Pdr, cube: object, level: int) -> SolverAnswer:
        relative(self, cube, level)  # type: ignore[arg-type]
        return SolverAnswer.NO

    monkeypatch.setattr(Pdr, "_relative", careless)
    monkeypatch.setattr("streamproof.symbolic.pdr._Table.kept", lambda self, cube: cube)
    of = system([UP], always("below 3", b.less(N, b.num(3))))
    assert run(of).invariant is not None
    assert run(of).findings == {}
    (finding,) = ask(of, seconds=2).findings
    assert finding.verdict is Verdict.INCONCLUSIVE


@pytest.mark.long
def test_a_dropped_clause_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An invariant with one of its clauses missing is proved no more: the answer is open, not wrong."""
    whole = Pdr.run

    def forgetful(self: Pdr) -> None:
        whole(self)
        if self.invariant:
            self.invariant = self.invariant[1:]

    monkeypatch.setattr(Pdr, "run", forgetful)
    of = system([SKIP], always("no seven", b.not_(b.eq(N, b.num(7)))))
    (finding,) = ask(of, seconds=3).findings
    assert finding.verdict is Verdict.INCONCLUSIVE


def test_out_of_time_is_said_with_what_was_covered() -> None:
    """A run that ends early says how far it came and what to do."""
    of = system([SKIP], always("no seven", b.not_(b.eq(N, b.num(7)))))
    encoding = Encoding(scalarise(of))
    with pytest.raises(Stopped):
        Pdr(encoding, goals(encoding, of.properties), (), SolverBudget(None, 0.0)).run()
    (finding,) = ask(of, seconds=1e-9).findings
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert finding.because.startswith("out of time after 1e-09 s")


def test_search_is_no_engine_to_prove_with() -> None:
    """The bounded search is asked for by another name."""
    with pytest.raises(UsageError, match="a search proves nothing"):
        prove(system([SKIP]), engine=Engine.SEARCH)
