"""What `prove` adds to induction: the choice of engines, explored states as evidence, and lemmas that were discovered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from streamproof.system.errors import StreamproofError
from streamproof.system.model import State, System
from streamproof.traces.lines import BLANK, Line, StyledText, line

if TYPE_CHECKING:
    from streamproof.symbolic import Proof

F = TypeVar("F", bound=Callable[..., Any])

AUTO = "auto"
ENGINES = (AUTO, "induction", "discovery", "pdr")
MOST_STATES = 20_000
"""States explored as evidence for discovery."""
MOST_TERMS = 200_000_000
"""Terms evaluated for them at most: some seconds of generated Python."""
MOST_LEMMAS = 12
"""Discovered lemmas that are written out; the JSON has all of them."""


def engine_option(function: F) -> F:
    """The option that chooses an engine."""
    return click.option(
        "--engine",
        type=click.Choice(ENGINES),
        default=AUTO,
        show_default=True,
        help="Induction with the model's lemmas; also with discovered lemmas; IC3/PDR; or all.",
    )(function)


class ExploredStates:
    """States of a system for discovery to look at, when it does: all, or the first so many."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.all: int | None = None
        """How many states there are, where all of them were found."""

    def __call__(self) -> Iterable[State]:
        """The states; none where the search fails."""
        from streamproof.explicit import explore
        from streamproof.explicit.tiers import terms_of

        try:
            most = min(MOST_STATES, 1 + MOST_TERMS // max(1, terms_of(self._system)))
            found = explore(self._system, properties=(), max_states=most)
        except StreamproofError:
            # No states, no evidence; whatever is wrong with the model is for the proof to find.
            return ()
        self.all = found.counts.distinct if found.complete else None
        return found.states()


def explored(system: System) -> ExploredStates:
    """States of the system as evidence."""
    return ExploredStates(system)


def discovered_lines(proof: Proof) -> Iterator[Line]:
    """The lemmas that were discovered and that the proof rests on."""
    if not proof.discovered:
        return
    yield line(StyledText("Discovered, proved and used:", "title"))
    for lemma in proof.discovered[:MOST_LEMMAS]:
        yield line(StyledText(lemma.name, "place"), "  ", lemma.text, indent=2, hang=4)
    left = len(proof.discovered) - MOST_LEMMAS
    if left > 0:
        yield line(f"and {left:,} more; --json FILE has them all.", indent=2)
    yield BLANK


def discovered_json(proof: Proof) -> dict[str, Any]:
    """What the JSON says of engines and discovered lemmas."""
    return {
        "engines": {name: engine.value for name, engine in proof.engines.items()},
        "discovered": [{"name": m.name, "text": m.text, "source": m.source} for m in proof.discovered],
    }
