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


@dataclass(frozen=True, slots=True)
class LayeredDrawing:
    """The middle of the upper side of each box, the way of each edge through such middles, and the size of the drawing."""

    place: Mapping[int, Point]
    chains: Sequence[Sequence[Point]]
    width: float
    height: float

    def svg(self, pieces: Sequence[Markup], label: str) -> Markup:
        """The drawing of these pieces."""
        return Markup(
            '<svg class="graph" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img" aria-label="{l}">{p}</svg>'
        ).format(w=round(self.width), h=round(max(self.height, 2)), l=label, p=Markup().join(pieces))


def layout(layer: Sequence[int], edges: Sequence[tuple[int, int]], kept: Collection[int]) -> LayeredDrawing:
    """The layout of the boxes `kept`, each in its layer, and of edges between them.

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
    wide = [WIDTH if v < count else _LANE for v in range(lanes)]
    widths = {key: sum(wide[v] + _ACROSS for v in row) - _ACROSS for key, row in rows.items()}
    width = max(widths.values(), default=0) + 2
    place: dict[int, Point] = {}
    for down, key in enumerate(sorted(rows)):
        left = (width - widths[key]) / 2
        for v in rows[key]:
            place[v] = (left + wide[v] / 2, 1 + down * (HEIGHT + _DOWN))
            left += wide[v] + _ACROSS
    height = len(rows) * (HEIGHT + _DOWN) - _DOWN + 2
    return LayeredDrawing(place, [[place[v] for v in chain] for chain in chains], width, height)


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


def arrow(chain: Sequence[Point], style: str, title: str) -> Markup:
    """An edge through the middles of the tops of two boxes, and of the lanes between them."""
    (x, y), path = chain[0], []
    path.append(f"M{x:g} {y + HEIGHT:g}")
    for at, (x1, y1) in enumerate(chain[1:], 2):
        y0, end = y + HEIGHT, y1 if at < len(chain) else y1 - 4
        bend = max((end - y0) / 2, 8)
        path.append(f"C{x:g} {y0 + bend:g} {x1:g} {end - bend:g} {x1:g} {end:g}")
        path += [f"V{y1 + HEIGHT:g}"] if at < len(chain) else []
        x, y = x1, y1
    return Markup(
        '<path class="edge {}" d="{}"><title>{}</title></path><path class="tip" d="M{:g} {:g}l-4 -6h8z"/>'
    ).format(style, "".join(path), title, x, y)
