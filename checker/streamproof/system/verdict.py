"""The results of engines: verdicts per property, counts, measured quantities, and the behaviours that show violations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import Enum
from typing import NamedTuple

from streamproof.base.errors import EvaluationError, Loc
from streamproof.base.records import dataclass, replace
from streamproof.base.text import html_table
from streamproof.system.expr import Expr
from streamproof.system.model import Check, Fairness, Instance, Kind, State


def number_of(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun, in the singular for one: `1 step`, `2,000 steps`; `many` is an irregular plural."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def lasso_text(stem: int, cycle: int, *, fair: bool) -> str:
    """An infinite behaviour by the steps of its stem and of its cycle; a cycle of 0 steps stutters in its last state."""
    rest = f"cycle of {cycle:,}" if cycle else "then stuttering"
    return f"{'fair lasso' if fair else 'lasso'}: stem of {number_of(stem, 'step')}, {rest}"


def prefix_text(steps: int) -> str:
    """A finite counterexample of a formula by its number of steps."""
    first = "the initial state" if steps == 0 else "the first step" if steps == 1 else f"the first {steps:,} steps"
    return f"{first}, whatever follows"


@dataclass(frozen=True, slots=True)
class Measure:
    """A quantity by name: `expr`, an integer over the variables of a system; undefined where one of `checks` is true."""

    name: str
    expr: Expr
    checks: tuple[Check, ...] = ()
    loc: Loc | None = None
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """The largest value of a quantity.

    `value` is None if the quantity is undefined in some state, with the reason in `because`. `exact`: all reachable
    states were explored; otherwise the value is a lower bound.
    """

    name: str
    doc: str
    value: int | None
    exact: bool
    because: str


WITHIN = " within the constraint"
"""The reservation of a verdict that is not about all behaviours."""


class Verdict(Enum):
    """The four verdicts. `HOLDS` is given only after complete coverage."""

    HOLDS = "holds"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"
    ERROR = "error"


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on several properties: error before violated before inconclusive before holds."""
    found = {*verdicts}
    return next((v for v in (Verdict.ERROR, Verdict.VIOLATED, Verdict.INCONCLUSIVE) if v in found), Verdict.HOLDS)


@dataclass(frozen=True, slots=True)
class Trace:
    """A behaviour: `states[k+1]` follows `states[k]` by `steps[k]`.

    With `loop`, the behaviour is infinite: one more step, `steps[-1]`, leads from the last state back to
    `states[loop]`, so there are as many steps as states. Without it there is one step fewer than states. A behaviour
    that stutters in its last state has one step fewer too, and its loop is that state: it `stutters`.
    """

    states: tuple[State, ...]
    steps: tuple[Instance, ...]
    loop: int | None = None

    def __len__(self) -> int:
        return len(self.states)

    @property
    def stutters(self) -> bool:
        """Whether the behaviour stays in its last state although a step may be enabled."""
        return self.loop is not None and self.loop == len(self.steps) == len(self.states) - 1

    def _repr_html_(self) -> str:
        """The steps, for a notebook."""
        rows = [(0, "initial state", ""), *((k, s.label, "") for k, s in enumerate(self.steps, start=1))]
        if self.loop is not None:
            note = "then stuttering" if self.stutters else f"back to state {self.loop}"
            rows[-1] = (*rows[-1][:2], note)
        return html_table(("", "step", ""), rows)


@dataclass(frozen=True, slots=True)
class FairnessEvidence:
    """The treatment of one fair action instance by the cycle of a lasso.

    `taken`: the first step of the cycle, counted from 1, that takes the instance. `enabled`, `disabled`: the first
    states of the cycle, counted from 0, in which it is and is not enabled. None: there is none.
    """

    label: str
    fairness: Fairness
    taken: int | None
    enabled: int | None
    disabled: int | None

    @property
    def satisfied(self) -> bool:
        """Whether the lasso satisfies the fairness constraint."""
        if self.fairness is Fairness.NONE or self.taken is not None:
            return True
        return self.enabled is None or (self.fairness is Fairness.WEAK and self.disabled is not None)

    @property
    def because(self) -> str:
        """The reason why it is fair to the instance, or that it is not."""
        if self.taken is not None:
            return f"taken by step {self.taken}"
        if self.enabled is None:
            return "never enabled on the cycle"
        if self.satisfied:
            return f"not enabled in state {self.disabled}"
        return f"enabled in state {self.enabled} and not taken on the cycle"


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding for one property, by one engine.

    `trace` is the counterexample of a violation, or the witness of a reachability property that holds. `because` is a
    sentence: what was covered (holds), or which limit was reached and what to try (inconclusive).
    """

    property: str
    kind: Kind
    verdict: Verdict
    trace: Trace | None = None
    because: str = ""
    vacuous: bool | None = None
    """Whether it holds because its antecedent is never true, or no fair behaviour stays within the constraint; None: not
    examined."""
    fair: tuple[FairnessEvidence, ...] = ()
    """For a violated temporal property: the treatment of each fair action instance by the cycle of `trace`."""
    sizes: str | tuple[Mapping[str, int], ...] | None = None
    """For parameterised verification: ``any`` if proved for every value of the free parameters, else the values at
    which it was checked. None for a single instance."""
    within: str | None = None
    """The text of the state constraint that ends some of the behaviours that the verdict is about; None: it ends none."""
    shortest: bool = False
    """For `termination` or a temporal property: no lasso that violates it has fewer steps of stem and cycle together."""

    def is_vacuous(self) -> bool | None:
        """`vacuous` for a report: false where the verdict or the kind leaves nothing to examine."""
        examined = self.verdict is Verdict.HOLDS and self.kind in (Kind.INVARIANT, Kind.TEMPORAL)
        return self.vacuous if examined else bool(self.vacuous)

    def text(self) -> str:
        """The verdict with its reservations: ``holds, vacuously``, ``holds within the constraint``."""
        vacuously = ", vacuously" if self.vacuous else ""
        return self.verdict.value + ("" if self.within is None else WITHIN) + vacuously


class OutDegree(NamedTuple):
    """The number of successors of expanded states, including duplicates and self-loops."""

    least: int
    mean: float
    most: int


@dataclass(frozen=True, slots=True)
class Counts:
    """State counts by TLC's rules.

    `generated`: initial states and every successor, including duplicates. `distinct`: reachable states. `depth`:
    breadth-first levels, the initial one being 1. `levels`: distinct new states at each level. `queue`: states not
    expanded. `out_degree`: None if no state was expanded.
    """

    distinct: int
    generated: int
    depth: int
    levels: tuple[int, ...] = ()
    queue: int = field(default=0, compare=False)
    out_degree: OutDegree | None = field(default=None, compare=False)
    outside: tuple[int, ...] = ()
    """The number of states outside the state constraint, at each level; empty without a constraint."""

    @property
    def inside(self) -> Counts:
        """The counts without the states outside the constraint, as TLC counts."""
        if not self.outside:
            return self
        levels = [every - out for every, out in zip(self.levels, self.outside, strict=True)]
        depth = max((at for at, level in enumerate(levels, 1) if level), default=1)  # TLC's, if no state is inside
        return replace(
            self, distinct=self.distinct - sum(self.outside), depth=depth, levels=tuple(levels[:depth]), outside=()
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a long run, about once a second."""

    elapsed: float
    depth: int
    distinct: int
    generated: int
    queue: int
    stage: str = ""
    """Which search this is, of several in turns."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A guard conjunct of an action, and the number of expanded states in which some instance of the action satisfies it."""

    action: str
    text: str
    loc: Loc | None
    states: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """Per action, how often it led to a state (`generated`) and to a new one (`distinct`)."""

    generated: Mapping[str, int] = field(default_factory=dict)
    distinct: Mapping[str, int] = field(default_factory=dict)
    never_true: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Per action, the guard conjuncts (source texts) that no reachable state satisfies for any instance."""
    branches: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """Per action and labelled branch, how often it led to a state and to a new one."""
    conditions: tuple[Condition, ...] | None = None
    """Every guard conjunct of every action, in the order of the rules; None if not counted."""
    expanded: int = 0
    """The number of expanded states, in which `conditions` are counted."""
    complete: bool = True
    """Whether all reachable states were expanded; a search that ended early, or a reduction, may have left some out."""

    def _repr_html_(self) -> str:
        """The actions with the states that they led to, for a notebook."""
        rows = [(a, f"{n:,}", f"{self.distinct.get(a, 0):,}") for a, n in self.generated.items()]
        return html_table(("action", "led to states", "new ones"), rows)

    @property
    def never(self) -> tuple[str, ...]:
        """Actions that are enabled in no reachable state; empty if not all states were explored."""
        return tuple(a for a, n in self.generated.items() if n == 0) if self.complete else ()

    @property
    def never_branches(self) -> tuple[tuple[str, str], ...]:
        """Branches that are never taken, with their actions, of actions that are; empty likewise."""
        never = (at for at, (steps, _) in self.branches.items() if not steps and self.generated[at[0]])
        return tuple(never) if self.complete else ()


@dataclass(frozen=True, slots=True)
class Reduction:
    """A requested reduction: whether it was applied, and in a clause its effect or the reason why not."""

    name: str
    applied: bool
    because: str
    not_needed: bool = False
    """Whether it was not applied only because the full search finished with less work."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """An evaluation error of the model that ended the search, with the path to the state where it occurs."""

    trace: Trace
    error: EvaluationError


@dataclass(frozen=True, slots=True)
class Seconds:
    """Wall-clock times in seconds: total, preparation, search or proof, and temporal properties."""

    total: float = 0.0
    compile: float = 0.0
    explore: float = 0.0
    liveness: float = 0.0


@dataclass(frozen=True)
class CheckResult:
    """The result of an engine. Every trace in it has been replayed by the interpreter.

    Engines that do not count states have no `counts` and no `coverage`.
    """

    findings: tuple[Finding, ...] = ()
    """One per checked property, in declaration order."""
    counts: Counts | None = None
    coverage: Coverage | None = None
    mistake: Mistake | None = None
    stopped: str | None = None
    """The limit that prevented complete coverage; None if there was none."""
    left_out: str | None = None
    """Why reachable states may be missing in `counts` and `coverage`; None: all are there, or none were visited."""
    interrupted: bool = False
    """Whether the user ended the run; `findings` are those obtained before."""
    seconds: Seconds = Seconds()
    reductions: tuple[Reduction, ...] = ()
    """The requested reductions, applied or not; `counts` are those of the reduced search."""
    shortest: bool = True
    """Whether its traces have minimal length."""
    notes: tuple[str, ...] = ()
    """Further remarks for the report, one sentence each."""
    not_selected: tuple[str, ...] = ()
    """Properties of the model without a finding: the engine does not support them, or decides them only by name."""
    measures: tuple[Measured, ...] = ()
    """The largest values of the model's quantities, of a search of all properties."""
    plain_python: Mapping[str, int] | None = None
    """The extent of the comparison of the model with plain Python, by kind; None: it was not compared."""
    beside: Mapping[str, CheckResult] = field(default_factory=dict)
    """The results of the variants that are judged beside the model, because they describe what runs."""

    @property
    def verdict(self) -> Verdict:
        """The overall verdict: error before violated before inconclusive before holds.

        A search without properties that did not visit every state is inconclusive.
        """
        found = [f.verdict for f in self.findings] + [one.verdict for one in self.beside.values()]
        if not found and self.counts is not None and self.stopped is not None:
            found = [Verdict.INCONCLUSIVE]
        return overall([*found, *([] if self.mistake is None else [Verdict.ERROR])])

    def _repr_html_(self) -> str:
        """The findings and counts, for a notebook."""
        rows = [(f.property, f.kind.value, f.text(), f.because.partition("\n")[0]) for f in self.findings]
        rows += [
            (f"{f.property} ({name})", f.kind.value, f.text(), "")
            for name, r in self.beside.items()
            for f in r.findings
        ]
        if self.mistake is not None:
            rows.append(("", "evaluation error", "error", self.mistake.error.short_text))
        counts = "" if self.counts is None else f"{self.counts.distinct:,} states, depth {self.counts.depth:,}"
        rows.append(
            (
                "overall",
                "",
                self.verdict.value,
                "; ".join(filter(None, (counts, self.stopped and f"stopped: {self.stopped}"))),
            )
        )
        return html_table(("property", "kind", "verdict", ""), rows)

    def finding(self, name: str) -> Finding:
        """The finding for the property called `name`; raises `KeyError`."""
        for finding in self.findings:
            if finding.property == name:
                return finding
        raise KeyError(name)
