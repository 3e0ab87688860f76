"""Which events of recorded runs some model judged, by family, and which actions of the models no run took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field

from streamproof.base.records import dataclass
from streamproof.conformance.event import Event
from streamproof.conformance.run_verdict import RunVerdict


@dataclass(slots=True)
class JudgedEvents:
    """Counts over runs. The models of one run must be added one after the other: an event counts once for all of them."""

    read: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    """Why events are not judged, by the beginning of a family's name."""
    _run: str | None = None
    _events: dict[tuple[tuple[str, str, int], str], bool] = field(default_factory=dict)
    """The events of the last run by their key and family: whether they were judged."""

    def add(self, run: str, events: Iterable[Event], judged: Iterable[Event]) -> None:
        """The events of one run, and those that one more model judged."""
        if run != self._run:
            self.finish()
            self._run = run
        for event in events:
            self._events.setdefault((event.key, event.event), False)
        for event in judged:
            self._events[event.key, event.event] = True

    def finish(self) -> None:
        """Counts the last run."""
        self.read.update(family for _, family in self._events)
        self.judged.update(family for (_, family), known in self._events.items() if known)
        self._events.clear()

    @property
    def percent(self) -> float:
        """The share of all events that were judged; 0 without events."""
        return 100 * self.judged.total() / max(1, self.read.total())

    def why_not(self, family: str) -> str | None:
        """Why some events of a family are not judged, by the longest beginning of its name; None if all are."""
        if self.judged[family] == self.read[family]:
            return None
        known = [beginning for beginning in self.reasons if family.startswith(beginning)]
        return self.reasons[max(known, key=len)] if known else None

    def record(self) -> dict[str, dict[str, int | str]]:
        """By family, as JSON data."""
        found: dict[str, dict[str, int | str]] = {}
        for name, n in sorted(self.read.items()):
            found[name] = {"read": n, "judged": self.judged[name]}
            why = self.why_not(name)
            if why is not None:
                found[name]["why_not"] = why
        return found


def untaken_actions(verdicts: Iterable[RunVerdict]) -> Mapping[str, list[str]]:
    """By model, its actions that no run took, in the order of the model. Models that are not listed are those whose actions
    are made for the arguments in the log (`Rules`), so that no list of them exists."""
    known: dict[str, dict[str, None]] = {}
    taken: dict[str, set[str]] = {}
    for verdict in verdicts:
        if verdict.followed is not None and verdict.followed.model_actions:
            known.setdefault(verdict.model, {}).update(dict.fromkeys(verdict.followed.model_actions))
            taken.setdefault(verdict.model, set()).update(verdict.followed.actions)
    return {model: [name for name in names if name not in taken[model]] for model, names in known.items()}
