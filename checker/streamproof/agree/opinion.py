"""What one engine says of a system, in a form in which it can be compared with what another says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from streamproof.agree.digest import Digest
from streamproof.system.model import State
from streamproof.system.records import dataclass
from streamproof.system.verdict import Finding, Verdict
from streamproof.system.wording import number_of


@dataclass(frozen=True, slots=True)
class Answer:
    """A verdict, and the number of states of the behaviour that shows it; `loop`: those before its cycle."""

    verdict: Verdict
    length: int | None = None
    loop: int | None = None

    @classmethod
    def of(cls, finding: Finding) -> Answer:
        """The verdict of a finding with the length of its behaviour."""
        if finding.trace is None:
            return cls(finding.verdict)
        return cls(finding.verdict, len(finding.trace), finding.trace.loop)

    def __str__(self) -> str:
        if self.length is None:
            return self.verdict.value
        if self.loop is None:
            return f"{self.verdict.value} by {number_of(self.length - 1, 'step')}"
        round_ = number_of(self.length - self.loop, "state")
        return f"{self.verdict.value} by a loop of {round_} after {number_of(self.loop, 'step')}"


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one engine says of a system.

    `answers`: by property; an engine need not have one for each. `distinct`, `generated`, `depth`, `levels`, `digest`: None
    where the engine does not tell. `mistake`: the level of the model's first mistake, for engines that `tells_mistakes`.
    `lengths`: whether it tells how long behaviours are. `horizon`: the most states of a behaviour that was looked at, None
    for no bound; `complete`: longer ones show nothing new. `in_order`: the search takes states in the interpreter's order.
    `unconfirmed`: what the interpreter refutes of it. `why`: for a figure or a property that is missing the reason; under
    ``all``, for everything that is.
    """

    engine: str
    answers: Mapping[str, Answer] = field(default_factory=dict)
    distinct: int | None = None
    generated: int | None = None
    depth: int | None = None
    levels: tuple[int, ...] | None = None
    digest: Digest | None = None
    mistake: int | None = None
    tells_mistakes: bool = False
    lengths: bool = True
    horizon: int | None = None
    complete: bool = True
    in_order: bool = False
    seconds: float = 0.0
    unconfirmed: str | None = None
    why: Mapping[str, str] = field(default_factory=dict)
    states: Callable[[], Iterator[State]] | None = field(default=None, compare=False)
    """The states again, level by level, to show one that another engine does not have."""


def silent(engine: str, why: str, seconds: float = 0.0) -> Opinion:
    """The opinion of an engine that was not asked, or did not answer."""
    return Opinion(engine, why={"all": why}, seconds=seconds)


@dataclass(frozen=True, slots=True)
class Expected:
    """What may be answered for a property, whatever the order of search, and the number of states that shows it."""

    verdicts: frozenset[Verdict]
    length: int | None


@dataclass(frozen=True, slots=True)
class OpinionDifference:
    """Two engines that do not agree: in `what`, what each says, and where that shows."""

    what: str
    one: str
    one_says: str
    other: str
    other_says: str
    detail: str = ""

    def __str__(self) -> str:
        where = f" ({self.detail})" if self.detail else ""
        return f"{self.what}: {self.one} says {self.one_says}, {self.other} says {self.other_says}{where}"
