"""Constraints mean the same in every engine; `test_tlc_agreement` compares those on states with TLC's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from quick_tlc import QUICK
from random_constraints import corpus, step_condition
from shares import share
from streamproof.agree import panel_engines
from streamproof.base.records import replace
from streamproof.exchange.tla import module as tla
from streamproof.exchange.tla import tlc_run
from streamproof.exchange.tla.module import Means, Tla, TlcClaim, TlcRun
from streamproof.exchange.tla.tlc_run import TlcReport
from streamproof.explicit.exploration import explore
from streamproof.system import Kind, Verdict
from streamproof.system.formula import Always, Atom
from streamproof.system.model import Conjunct, Property
from streamproof.system.reference import reference
from streamproof.transform.constraint import constrained


@pytest.mark.parametrize(
    ("seeds", "systems"),
    [
        (range(12), 5),
        pytest.param(range(24), 10, marks=pytest.mark.long),
        pytest.param(range(24, 1000), 480, marks=pytest.mark.long),
    ],
    ids=["few", "more", "many"],
)
def test_all_engines_agree(panel: Any, expect: Any, seeds: range, systems: int) -> None:
    """Counts, states, verdicts and lengths."""
    seen: Counter[str] = Counter()
    for system in corpus(seeds):
        referee = panel.interpreter_result(system)
        for result in (panel.explored(system, "python"), panel.explored(system, "compiled"), panel.bounded(system, 5)):
            referee.compare(result)
        proved = panel_engines.proved(system, 5)
        allowed = expect(system)
        for name, answer in proved.answers.items():
            assert answer.verdict in {Verdict.INCONCLUSIVE, *allowed[name].verdicts}, (name, repr(system))
        seen["systems"] += 1
        seen["proved"] += any(a.verdict is Verdict.HOLDS for a in proved.answers.values())
    assert seen["systems"] >= systems
    assert seen["proved"] > systems // 3


@pytest.mark.parametrize(
    ("seeds", "systems"),
    [pytest.param(range(20), 8, marks=pytest.mark.long), pytest.param(range(20, 1000), 480, marks=pytest.mark.long)],
    ids=["few", "many"],
)
def test_formulas_concern_behaviours_inside(panel: Any, seeds: range, systems: int) -> None:
    """Temporal properties: the interpreter and both tiers agree, and the constraint decides some of them."""
    compared = changed = 0
    for system in corpus(seeds, temporal=True):
        assert system.constraint is not None
        referee = panel.interpreter_result(system)
        referee.compare(panel.explored(system, "python"))
        referee.compare(panel.explored(system, "compiled"))
        without = reference(system.constraint.free).decisions
        changed += any(without[name].verdict is not d.verdict for name, d in reference(system).decisions.items())
        compared += 1
    assert compared >= systems
    assert changed > systems // 6


@pytest.mark.parametrize(
    ("seeds", "systems"),
    [
        (range(12), 4),
        pytest.param(range(22), 8, marks=pytest.mark.long),
        pytest.param(range(22, 1000), 400, marks=pytest.mark.long),
    ],
    ids=["few", "more", "many"],
)
@pytest.mark.parametrize("temporal", share([False, True], 2))
def test_constraints_on_steps(panel: Any, expect: Any, seeds: range, systems: int, temporal: bool) -> None:
    """Counts, states, verdicts and lengths in every engine; the constraint decides some of the verdicts."""
    compared = changed = 0
    for system in corpus(seeds, temporal=temporal, steps=True):
        referee = panel.interpreter_result(system)
        for result in (panel.explored(system, "python"), panel.explored(system, "compiled")):
            referee.compare(result)
        if not temporal:
            referee.compare(panel.bounded(system, 5))
            allowed = expect(system)
            for name, answer in panel_engines.proved(system, 5).answers.items():
                assert answer.verdict in {Verdict.INCONCLUSIVE, *allowed[name].verdicts}, (name, repr(system))
        without = reference(system.unconstrained).decisions
        changed += any(without[name].verdict is not d.verdict for name, d in reference(system).decisions.items())
        compared += 1
    assert compared >= systems
    assert changed >= max(1, systems // 8)


class _Cutting(TlcRun):
    """A configuration with an action constraint."""

    def configuration(self, *, deadlock: bool = True) -> str:
        """The text, with one more line."""
        return f"{TlcRun.configuration(self, deadlock=deadlock)}ACTION_CONSTRAINT Limit\n"


def _as_invariant(prop: Property) -> Property | None:
    """A formula that a condition always holds, as an invariant: TLC checks it also in the first states outside."""
    if isinstance(prop.formula, Always) and isinstance(prop.formula.arg, Atom):
        return replace(prop, kind=Kind.INVARIANT, expr=prop.formula.arg.expr, formula=None)
    return None


@pytest.mark.parametrize(
    ("seeds", "temporal"),
    [
        ((5,), False),
        pytest.param((10,), True, marks=pytest.mark.long),
        pytest.param(range(60), False, marks=pytest.mark.long),
        pytest.param(range(60), True, marks=pytest.mark.long),
    ],
    ids=["safety", "temporal", "many-safety", "many-temporal"],
)
def test_tlc_has_the_same_meaning(jar: Path, seeds: Sequence[int], temporal: bool) -> None:
    """`ACTION_CONSTRAINT` in a module without it: the same counts, and the same verdicts on invariants and formulas."""
    verdicts = Counter[Verdict]()
    for seed in seeds:
        made = step_condition(seed, temporal=temporal)
        if made is None:
            continue
        system, condition = made
        stated = replace(system, properties=(*system.properties, Property("the_limit", Kind.STEP, condition)))
        exported = tla.export(stated)
        text = exported.modules[exported.module]
        body = re.search(r"^the_limit ==\n    \[\]\[(.*?)\]_vars\n$", text, re.M | re.S)
        assert body is not None
        module = text.replace("\n\n====", f"\n\nLimit == {body[1]}\n\n====")
        exported = replace(exported, modules={exported.module: module})
        limit = Conjunct(condition, "limit", None)
        found = explore(constrained(system, [], [limit]))

        def asked(specification: str, *claims: TlcClaim, model: Tla = exported) -> TlcReport:
            report = tlc_run.run(model, _Cutting("run", model.module, specification, claims, "cut"), QUICK)
            assert report.error is None, report.error
            return report

        counted, inside = asked("UnfairSpec"), found.counts.inside
        assert (counted.distinct, counted.generated) == (inside.distinct, inside.generated), seed
        for claim in exported.runs[0].claims:
            kind = None if claim.property in (None, "the_limit") else system.property(claim.property).kind
            if kind in (Kind.INVARIANT, Kind.TEMPORAL) and claim.means is Means.VIOLATED:
                finding = found.finding(claim.property or "")
                verdict = finding.verdict
                if (state := _as_invariant(system.property(claim.property or ""))) is not None:
                    asked_of = replace(system, properties=(state,))
                    verdict = explore(constrained(asked_of, [], [limit])).finding(state.name).verdict
                if verdict is Verdict.ERROR:
                    continue
                report = asked("Spec" if kind is Kind.TEMPORAL else "UnfairSpec", claim)
                finite = report.violation and not report.violation.stutters and report.violation.back_to is None
                by_prefix = finding.trace is not None and finding.trace.loop is None
                if kind is Kind.TEMPORAL and state is None and (finite or by_prefix or verdict is Verdict.INCONCLUSIVE):
                    # TLC takes [] of conditions on states apart, in the first states outside too, and no other prefix.
                    assert finite or report.violation is None or by_prefix, (seed, claim)
                    continue
                assert (report.violation is not None) is (verdict is Verdict.VIOLATED), (seed, claim)
                verdicts[verdict] += 1
    assert Verdict.VIOLATED in verdicts, verdicts
