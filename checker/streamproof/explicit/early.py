"""Early end of a search: report each violation when it is found, and stop when enough properties are decided."""

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
    """Conditions for an early end, and the violations found so far.

    Shared by all tiers of a search: violations found by one tier are kept when another tier restarts the search.
    """

    violations: Callable[[LevelSearch, ReductionPlan, Container[str]], list[Finding]]
    """Lists the violations found so far, without those already known (`findings.violations`)."""
    when_decided: bool = False
    """Whether to stop when every property is decided."""
    most: int | None = None
    """Number of violations after which the search stops; None: no limit."""
    report: Callable[[Finding], None] | None = None
    """Called once with each violation, after the interpreter has replayed it."""
    violated: dict[str, Finding] = field(default_factory=dict)
    _seen: tuple[LevelSearch | None, int, bool] = (None, 0, False)

    @property
    def enough(self) -> bool:
        """Whether the limit on violations is reached."""
        return self.most is not None and len(self.violated) >= self.most

    def note(self, finding: Finding) -> None:
        """Report a violation once."""
        if finding.verdict is Verdict.VIOLATED and finding.property not in self.violated:
            self.violated[finding.property] = finding
            if self.report is not None:
                self.report(finding)

    def after_level(self, search: LevelSearch, plan: ReductionPlan) -> Stop | None:
        """At the end of a level: report new violations; returns the reason to stop, or None."""
        seen = search, len(search.events), search.stuck >= 0
        if search is not self._seen[0] or seen[1:] != self._seen[1:]:
            self._seen = seen
            for finding in self.violations(search, plan, self.violated):
                self.note(finding)
        if self.enough:
            return Stop.VIOLATIONS
        return Stop.DECIDED if self.when_decided and all_decided(search) else None


def all_decided(search: LevelSearch) -> bool:
    """Whether a search has decided all of its properties; false if it has none."""
    return bool(search.properties) and all(
        number in search.events or (prop.kind is Kind.DEADLOCK and search.stuck >= 0)
        for number, prop in enumerate(search.properties)
    )
