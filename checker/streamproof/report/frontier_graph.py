"""A drawing of the partial matches of a rejected event: from each possible state the actions that the model allows, and what
it does not allow.

Equal reasons are one box with a number; the page lists them under their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from markupsafe import Markup

from streamproof.base.records import dataclass
from streamproof.report.job_graph import cut
from streamproof.report.layers import HEIGHT, WIDTH, arrow, layers, layout

MOST_REASONS: Final = 12
"""Maximum number of reasons that are drawn and listed."""
_LETTERS = 20


@dataclass(frozen=True, slots=True)
class RefusedAction:
    """An action of the event that the model does not allow, with the reason; `then` is empty if a condition is false after
    all actions. `after`: it is refused in these states, by number, after these actions."""

    number: int
    then: str
    because: str
    after: tuple[tuple[tuple[int, ...], tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class DrawnFrontier:
    """The drawing, the first reasons, and the number of all reasons."""

    graph: Markup
    reasons: tuple[RefusedAction, ...]
    total: int


def drawn_frontier(event: str, states: int, frontier: Mapping[str, Any]) -> DrawnFrontier:
    """The drawing of a `Frontier` record; `states` counts all possible states, of which the record has the first."""
    found: dict[tuple[str, str], dict[tuple[int, tuple[str, ...]], None]] = {}
    for match in frontier["matches"]:
        places = found.setdefault((match["then"], match["because"]), {})
        places[match["state"], tuple(match["taken"])] = None
    boxes = [("rejected event", event, "")]
    edges: list[tuple[int, int]] = []
    at: dict[tuple[int, tuple[str, ...]], int] = {}

    def box(above: int, title: str, text: str, style: str) -> int:
        boxes.append((title, text, style))
        edges.append((above, len(boxes) - 1))
        return len(boxes) - 1

    for number, state in enumerate(frontier["states"]):
        at[number, ()] = box(0, f"state {number + 1} of {states}", "; ".join(state), "")
    reasons = list[RefusedAction]()
    for number, ((then, because), places) in enumerate(islice(found.items(), MOST_REASONS), 1):
        end: int | None = None
        after: dict[tuple[str, ...], list[int]] = {}
        for state, taken in places:
            after.setdefault(taken, []).append(state + 1)
            for length in range(1, len(taken) + 1):
                if (state, taken[:length]) not in at:
                    above = at[state, taken[: length - 1]]
                    at[state, taken[:length]] = box(above, "possible", taken[length - 1], "good")
            if end is None:
                end = box(
                    at[state, taken], f"{number} not possible" if then else f"{number} false", then or because, "bad"
                )
            else:
                edges.append((at[state, taken], end))
        ways = tuple((tuple(several), taken) for taken, several in after.items())
        reasons.append(RefusedAction(number, then, because, ways))
    drawn = layout(layers(len(boxes), edges), edges, range(len(boxes)))
    bad = {number for number, (_, _, style) in enumerate(boxes) if style == "bad"}
    pieces = [
        arrow(chain, "blocking" if edge[1] in bad else "pipelined", "not allowed" if edge[1] in bad else "")
        for chain, edge in zip(drawn.chains, edges, strict=True)
    ]
    for number, (title, text, style) in enumerate(boxes):
        x, y = drawn.place[number]
        pieces.append(_box(x - WIDTH / 2, y, title, text, style))
    return DrawnFrontier(drawn.svg(pieces, "Partial matches of the rejected event"), tuple(reasons), len(found))


def _box(x: float, y: float, title: str, text: str, style: str) -> Markup:
    return Markup(
        '<g><title>{}: {}</title><rect class="box {}" x="{:g}" y="{:g}" width="{}" height="{}" rx="6"/>'
        '<text class="name" x="{:g}" y="{:g}">{}</text><text x="{:g}" y="{:g}">{}</text></g>'
    ).format(
        title, cut(text, 400), style, x, y, WIDTH, HEIGHT, x + 8, y + 20, title, x + 8, y + 38, cut(text, _LETTERS)
    )  # fmt: skip
