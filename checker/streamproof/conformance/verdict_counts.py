"""Numbers of verdicts, which stand for the verdicts where those are too many to be kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from streamproof.base.errors import Exit
from streamproof.conformance.run_verdict import ANSWERS, Answer, RunVerdict

_ERRORS = (Exit.EVALUATION, Exit.MALFORMED, Exit.TOO_LARGE, Exit.SYSTEM, Exit.USAGE)
"""Exit codes of failed validations, the gravest first; the others end with 153."""


@dataclass(slots=True)
class VerdictCounts:
    """Numbers of verdicts, without those of a model of which the run has no record, if the run has records of another one."""

    answers: Counter[str] = field(default_factory=Counter)
    codes: Counter[int] = field(default_factory=Counter)
    """Exit codes of failed validations."""
    findings: int = 0
    """Number of verdicts with findings."""
    unrecorded: int = 0

    @staticmethod
    def of(verdicts: Iterable[RunVerdict]) -> VerdictCounts:
        """Counts verdicts."""
        counts = VerdictCounts()
        for verdict in verdicts:
            counts.findings += bool(verdict.findings)
            counts.unrecorded += verdict.unrecorded
            if not verdict.unrecorded:
                counts.answers[verdict.answer] += 1
                if verdict.answer == "error":
                    counts.codes[verdict.exit_code] += 1
        return counts

    def __add__(self, other: VerdictCounts) -> VerdictCounts:
        return VerdictCounts(
            self.answers + other.answers,
            self.codes + other.codes,
            self.findings + other.findings,
            self.unrecorded + other.unrecorded,
        )

    @property
    def total(self) -> int:
        """Number of verdicts."""
        return self.answers.total() + self.unrecorded

    @property
    def answer(self) -> Answer:
        """The overall answer: rejected before error before inconclusive before accepted."""
        order: tuple[Answer, ...] = ("rejected", "error", "inconclusive")
        return next((answer for answer in order if self.answers[answer]), "accepted")

    @property
    def exit_code(self) -> Exit:
        """The exit code of `streamproof validate`."""
        match self.answer:
            case "rejected":
                return Exit.REJECTED
            case "error":
                return next((code for code in _ERRORS if self.codes[code]), Exit.SYSTEM)
            case "inconclusive":
                return Exit.INCONCLUSIVE
            case _:
                return Exit.HOLDS

    def record(self) -> dict[str, int]:
        """The numbers as JSON."""
        return {answer: self.answers[answer] for answer in ANSWERS} | {
            "unrecorded": self.unrecorded,
            "with_findings": self.findings,
        }
