"""The engines of `prove`, and its output of discovered lemmas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from streamproof.cli.engines import PROVERS
from streamproof.system.text import BLANK, Line, StyledText, line

if TYPE_CHECKING:
    from streamproof.symbolic import Proof

F = TypeVar("F", bound=Callable[..., Any])

MOST_LEMMAS = 12
"""Largest number of discovered lemmas that are printed; the JSON has all of them."""


def engine_option(function: F) -> F:
    """The option that chooses an engine."""
    return click.option(
        "--engine",
        type=click.Choice(tuple(PROVERS)),
        default=next(iter(PROVERS)),
        show_default=True,
        help="Induction with the model's lemmas; also with discovered lemmas; IC3/PDR; or all.",
    )(function)


def discovered_lines(proof: Proof) -> Iterator[Line]:
    """The discovered lemmas used by the proof."""
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
    """The part of the JSON for engines and discovered lemmas."""
    return {
        "engines": {name: engine.value for name, engine in proof.engines.items()},
        "discovered": [{"name": m.name, "text": m.text, "source": m.source} for m in proof.discovered],
    }
