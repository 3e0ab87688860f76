"""The result of one engine for a system, in a form for comparison with other engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from streamproof.agree.digest import Digest
from streamproof.base.records import dataclass
from streamproof.system.model import State
from streamproof.system.verdict import Finding, Verdict, number_of


@dataclass(frozen=True, slots=True)
class Answer:
    """A verdict, and the number of states of the behaviour that shows it; `loop`: those before its cycle."""

    verdict: Verdict
    length: int | None = None
    loop: int | None = None

    @classmethod
    def of(cls, finding: Finding) -> Answer:
        """The verdict of a finding with the length of its behaviour, unless there may be a shorter lasso."""
        if finding.trace is None or (finding.trace.loop is not None and not finding.shortest):
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
class EngineResult:
    """The result of one engine for a system.

    `answers`: by property, possibly not for all. `distinct`, `generated`, `depth`, `levels`, `digest`: None if the
    engine does not report them. `mistake`: the level of the first model error, for engines with `tells_mistakes`.
    `lengths`: whether it reports lengths of behaviours. `horizon`: the maximum number of states of an explored
    behaviour, None for no bound; `complete`: longer ones reach no new states. `in_order`: the search order is the
    interpreter's. `unconfirmed`: the part refuted by the interpreter. `why`: the reason for a missing figure or
    property; under ``all``, for all of them.
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


def no_answer(engine: str, why: str) -> EngineResult:
    """The result of an engine that did not run or did not answer."""
    return EngineResult(engine, why={"all": why})


@dataclass(frozen=True, slots=True)
class Expected:
    """The permitted verdicts for a property, in any search order, and the number of states of the behaviour.

    `later`: those by a behaviour of one more state. An engine that meets a mistake of the model may finish its level, whose
    other steps may decide the property.
    """

    verdicts: frozenset[Verdict]
    length: int | None
    later: frozenset[Verdict] = frozenset()

    def permits(self, answer: Answer, *, lengths: bool = True) -> bool:
        """Whether an engine may give this answer; `lengths`: it reports lengths of behaviours."""
        if answer.verdict in self.verdicts and (answer.length == self.length or not lengths):
            return True
        following = None if self.length is None else self.length + 1
        return answer.verdict in self.later and (answer.length == following or not lengths)


@dataclass(frozen=True, slots=True)
class ResultDifference:
    """A difference between two engines: its subject, both results, and a detail."""

    what: str
    one: str
    one_result: str
    other: str
    other_result: str
    detail: str = ""

    def __str__(self) -> str:
        where = f" ({self.detail})" if self.detail else ""
        return f"{self.what}: {self.one} says {self.one_result}, {self.other} says {self.other_result}{where}"
