"""Search of small instances beside a proof for every size: it refutes a wrong proof, and decides what is not proved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from streamproof import interrupts
from streamproof.any.readings import HEAVIEST, candidates
from streamproof.base.errors import Exit, StreamproofError
from streamproof.base.options import SearchOptions
from streamproof.base.records import dataclass, replace
from streamproof.base.text import parameters_text
from streamproof.engines.proving import with_vacuity
from streamproof.explicit.exploration import explore
from streamproof.language.lower.conversion import first_values_at_most
from streamproof.selection import Selection
from streamproof.system.expr import variables
from streamproof.system.model import System
from streamproof.system.verdict import Finding, Verdict, number_of
from streamproof.transform.ground import Weight
from streamproof.transform.unbounded import Parametric

INSTANCES = 24
"""Largest number of instances searched besides a proof."""
MOST_STATES = 20_000
"""Largest number of states of one instance."""
DEEPEST = 300
"""Largest number of levels of one instance."""
ALL_STATES = 150_000
"""Largest number of states of all instances."""
MOST_STARTS = 100_000
"""Largest number of combinations of initial values of one instance; the initial condition is evaluated for each."""


class ProofRefuted(StreamproofError):
    """A property was proved for every size, and a behaviour of one size violates it: a defect."""

    exit_code = Exit.DISAGREE


@dataclass(frozen=True, slots=True)
class Searched:
    """A searched instance: the values of the free parameters, the findings, and the extent of the search.

    `vacuous`: as `Exploration.vacuity`, for each property that ranges and parameters alone do not decide.
    """

    values: Mapping[str, int]
    findings: Mapping[str, Finding]
    vacuous: Mapping[str, bool | None]
    states: int
    complete: bool


@dataclass(frozen=True, slots=True)
class SearchedInstances:
    """The searched instances. `violating`: the last one, if it violates a property."""

    searched: Sequence[Searched] = ()
    violating: System | None = None

    def holds_at(self, name: str) -> tuple[Mapping[str, int], ...]:
        """The values at which a property holds."""
        return tuple(
            s.values for s in self.searched if name in s.findings and s.findings[name].verdict is Verdict.HOLDS
        )

    def examined(self, proved: Finding) -> Finding:
        """A finding for every size, which is not vacuous if it is not at some instance."""
        at = [s.vacuous[proved.property] for s in self.searched if proved.property in s.vacuous]
        if False in at or proved.is_vacuous() is not None:
            return replace(proved, vacuous=bool(proved.vacuous))
        alike = sum(vacuous is True for vacuous in at)
        seen = (
            f"vacuous at {number_of(alike, 'instance')} of {len(at):,} searched" if at else "no instance was searched"
        )
        return with_vacuity(proved, None, f"not known whether it is vacuous: {seen}")

    def first(self, name: str, verdict: Verdict) -> tuple[Mapping[str, int], Finding] | None:
        """The first instance with this verdict for a property."""
        found = ((s.values, s.findings[name]) for s in self.searched if name in s.findings)
        return next((pair for pair in found if pair[1].verdict is verdict), None)


def search_instances(
    selection: Selection,
    parametric: Parametric,
    proved: Sequence[str],
    names: Sequence[str],
    progress: Callable[[str], None] = lambda _: None,
) -> SearchedInstances:
    """Search instances up to a budget of states, until one violates a property.

    Raises `ProofRefuted` if that property was proved."""
    searched: list[Searched] = []
    left = ALL_STATES
    worth = candidates(selection.target.spec, selection.variant, selection.given, parametric.free)
    open_below = [f.name for f in parametric.free if f.least is None]  # no lower limit declared
    weight = Weight(parametric)
    chosen = [v for v in worth if weight(v) <= HEAVIEST and all(v[n] >= 0 for n in open_below)]
    chosen = chosen[:INSTANCES] if parametric.free else []
    for values in (*chosen[:1], *sorted(chosen[1:], key=lambda v: (weight(v), sum(v.values())))):
        if left <= 0 or interrupts.left() <= 0:
            break
        progress(f"searching the instance at {parameters_text(values)}")
        try:
            with interrupts.doing("searching instances"):
                with first_values_at_most(MOST_STARTS):
                    system = selection.target.system(selection.variant, {**selection.given, **values})
                if prod(len(v.initial) for v in system.variables) > MOST_STARTS:
                    continue
                most = min(MOST_STATES, left)
                found = explore(system, SearchOptions(tuple(names), max_states=most, max_depth=DEEPEST))
        except interrupts.TimeUp:
            break
        except StreamproofError:
            continue  # the model rejects these values, or its state space is too large
        left -= found.counts.distinct
        findings = {f.property: f for f in found.findings}
        scalar = [found.search.scalarised.system.property(name) for name in findings]
        vacuous = {p.name: found.vacuity(p.name) for p in scalar if p.formula is not None or variables(p.expr)}
        searched.append(Searched(values, findings, vacuous, found.counts.distinct, found.complete))
        if proved and found.mistake is not None:
            raise _refuted("the absence of evaluation errors", values, found.mistake.error.message)
        for name in proved:
            if findings[name].verdict is Verdict.VIOLATED:
                raise _refuted(name, values, findings[name].because)
        if any(f.verdict is Verdict.VIOLATED for f in found.findings):
            return SearchedInstances(searched, system)
    return SearchedInstances(searched, None)


def _refuted(what: str, values: Mapping[str, int], because: str) -> ProofRefuted:
    return ProofRefuted(
        f"{what} was proved for every size, and the explicit search refutes it at {parameters_text(values)}: {because}",
        remedy="one of the two is wrong: a defect of streamproof; please report it with the model",
    )
