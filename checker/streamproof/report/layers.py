"""A drawing of a directed graph in layers from the top down, as SVG without a script: where boxes are and how edges run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Final

from markupsafe import Markup

from streamproof.base.records import dataclass

WIDTH: Final = 160
"""Width of a box."""
HEIGHT: Final = 50
"""Height of a box."""
_ACROSS, _DOWN = 14, 34
_LANE = 12
_DEEPEST = 160
"""Maximum number of passes over the edges."""

Point = tuple[float, float]
Column = tuple[float, float, float]
"""The middle of a box or of a lane, its upper and its lower side."""


@dataclass(frozen=True, slots=True)
class LayeredDrawing:
    """The middle of the upper side of each box, the way of each edge from box to box, and the size of the drawing."""

    place: Mapping[int, Point]
    chains: Sequence[Sequence[Column]]
    width: float
    height: float

    def svg(self, pieces: Sequence[Markup], label: str) -> Markup:
        """The drawing of these pieces."""
        return Markup(
            '<svg class="graph" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img" aria-label="{l}">{p}</svg>'
        ).format(w=round(self.width), h=round(max(self.height, 2)), l=label, p=Markup().join(pieces))


def layout(
    layer: Sequence[int],
    edges: Sequence[tuple[int, int]],
    kept: Collection[int],
    sizes: Sequence[Point] = (),
) -> LayeredDrawing:
    """The layout of the boxes `kept`, each in its layer, and of edges between them; `sizes` are widths and heights.

    An edge that skips layers has a lane of its own in each of them, so that no box hides it.
    """
    count = len(layer)
    rows: dict[int, list[int]] = {}
    for v in sorted(kept):
        rows.setdefault(layer[v], []).append(v)
    lanes, chains = count, list[list[int]]()
    for source, target in edges:
        skipped = range(layer[source] + 1, layer[target])
        chains.append([source, *range(lanes, lanes + len(skipped)), target])
        for lane, at in enumerate(skipped, lanes):
            rows[at].append(lane)
        lanes += len(skipped)
    _uncross(rows, [pair for chain in chains for pair in pairwise(chain)])
    size = [*(sizes or [(WIDTH, HEIGHT)] * count), *[(_LANE, 0)] * (lanes - count)]
    wide = [width for width, _ in size]
    widths = {key: sum(wide[v] + _ACROSS for v in row) - _ACROSS for key, row in rows.items()}
    width = max(widths.values(), default=0) + 2
    column: dict[int, Column] = {}
    top = 1.0
    for key in sorted(rows):
        left = (width - widths[key]) / 2
        high = max(size[v][1] for v in rows[key])
        for v in rows[key]:
            column[v] = (left + wide[v] / 2, top, top + (size[v][1] or high))
            left += wide[v] + _ACROSS
        top += high + _DOWN
    place = {v: (x, y) for v, (x, y, _) in column.items()}
    return LayeredDrawing(place, [[column[v] for v in chain] for chain in chains], width, top - _DOWN + 1)


def layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The length of the longest path to each of `count` vertices; edges of a cycle count as far as they can."""
    layer = [0] * count
    for _ in range(min(count, _DEEPEST)):
        changed = False
        for source, target in edges:
            below = layer[source] + 1
            if layer[target] < below <= count:
                layer[target], changed = below, True
        if not changed:
            break
    return layer


def _uncross(rows: Mapping[int, list[int]], pairs: Sequence[tuple[int, int]]) -> None:
    """Orders each layer by the mean position of what it reads."""
    position: dict[int, float] = {}
    for key in sorted(rows):
        row = rows[key]
        read = {v: [position[a] for a, z in pairs if z == v and a in position] for v in row}
        row.sort(key=lambda v: sum(read[v]) / len(read[v]) if read[v] else 0.0)
        for at, v in enumerate(row):
            position[v] = at - len(row) / 2


def arrow(chain: Sequence[Column], style: str, title: str, *, up: bool = False, tip: bool = True) -> Markup:
    """An edge from the first box of a chain down to the last, through the lanes between them; `up`: its tip is above."""
    (x, _, y), path = chain[0], []
    start = y + 4 if up else y
    path.append(f"M{x:g} {start:g}")
    for at, (x1, y1, below) in enumerate(chain[1:], 2):
        end = y1 if at < len(chain) or up else y1 - 4
        bend = max((end - y) / 2, 8)
        path.append(f"C{x:g} {y + bend:g} {x1:g} {end - bend:g} {x1:g} {end:g}")
        path += [f"V{below:g}"] if at < len(chain) else []
        x, y = x1, below
    x, y, side = (chain[0][0], chain[0][2], 6) if up else (chain[-1][0], chain[-1][1], -6)
    head = Markup('<path class="tip" d="M{:g} {:g}l-4 {}h8z"/>').format(x, y, side) if tip else Markup()
    return Markup('<path class="edge {}" d="{}"><title>{}</title></path>{}').format(style, "".join(path), title, head)
