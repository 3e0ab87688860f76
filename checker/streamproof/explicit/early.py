"""The early end of a search: each violation is reported when it is found, and the search ends when enough is known."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import field
from typing import TYPE_CHECKING

from streamproof.explicit.limits import Stop
from streamproof.system.model import Kind
from streamproof.system.records import dataclass
from streamproof.system.verdict import Finding, Verdict

if TYPE_CHECKING:
    from streamproof.explicit.level_search import LevelSearch
    from streamproof.explicit.reductions.plan import ReductionPlan


@dataclass(slots=True)
class EarlyEnd:
    """When a search ends before all states are known, and the violations found so far.

    One for all tiers of a search: a violation that one tier has found stays found when another begins again.
    """

    violations: Callable[[LevelSearch, ReductionPlan, Container[str]], list[Finding]]
    """The violations that a search has met on its way, but for those that are known (`findings.violations`)."""
    when_decided: bool = False
    """End when every property is decided."""
    most: int | None = None
    """End after so many violations."""
    report: Callable[[Finding], None] | None = None
    """Called once with each violation, after the interpreter has replayed it."""
    violated: dict[str, Finding] = field(default_factory=dict)
    _seen: tuple[LevelSearch | None, int, bool] = (None, 0, False)

    @property
    def enough(self) -> bool:
        """Whether there are as many violations as were asked for."""
        return self.most is not None and len(self.violated) >= self.most

    def note(self, finding: Finding) -> None:
        """Report a violation, unless it was reported before."""
        if finding.verdict is Verdict.VIOLATED and finding.property not in self.violated:
            self.violated[finding.property] = finding
            if self.report is not None:
                self.report(finding)

    def after_level(self, search: LevelSearch, plan: ReductionPlan) -> Stop | None:
        """At the end of a level: report what it has decided; gives the reason to end the search, if there is one."""
        seen = search, len(search.events), search.stuck >= 0
        if search is not self._seen[0] or seen[1:] != self._seen[1:]:
            self._seen = seen
            for finding in self.violations(search, plan, self.violated):
                self.note(finding)
        if self.enough:
            return Stop.VIOLATIONS
        return Stop.DECIDED if self.when_decided and all_decided(search) else None


def all_decided(search: LevelSearch) -> bool:
    """Whether a search has decided every one of its properties, of which there is one at least."""
    return bool(search.properties) and all(
        number in search.events or (prop.kind is Kind.DEADLOCK and search.stuck >= 0)
        for number, prop in enumerate(search.properties)
    )
