"""A drawing of a job graph: vertices in layers from the sources down, a box for each region of their subtasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, Final

from markupsafe import Markup

MOST_VERTICES: Final = 40
COLOURS: Final = 8
"""Number of colours of regions in the page's style; numbers tell further regions apart."""
_WIDTH, _HEIGHT, _ACROSS, _DOWN = 160, 50, 14, 34
_LETTERS = 20
_LANE = 12
_NAME = 80

_STYLES = {"PIPELINED": "pipelined", "PIPELINED_BOUNDED": "pipelined", "PIPELINED_APPROXIMATE": "pipelined",
           "BLOCKING": "blocking", "BLOCKING_PERSISTENT": "blocking"}  # fmt: skip


def colour(region: int) -> str:
    """The style class of a region."""
    return f"region-{region % COLOURS}"


def cut(text: str, most: int = _NAME) -> str:
    """A name, shortened if it is long."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def drawn_graph(vertices: Sequence[Mapping[str, Any]], edges: Sequence[Mapping[str, Any]]) -> Markup:
    """The graph as SVG, without a script. At most `MOST_VERTICES` vertices are drawn, those nearest to the sources.

    An edge that skips layers has a lane of its own in each of them, so that no box hides it.
    """
    count = len(vertices)
    layer = _layers(count, edges)
    kept = sorted(sorted(range(count), key=lambda v: layer[v])[:MOST_VERTICES])
    drawn = [e for e in edges if e["source"] in kept and e["target"] in kept]
    rows: dict[int, list[int]] = {}
    for v in kept:
        rows.setdefault(layer[v], []).append(v)
    lanes, chains = count, list[list[int]]()
    for edge in drawn:
        skipped = range(layer[edge["source"]] + 1, layer[edge["target"]])
        chains.append([edge["source"], *range(lanes, lanes + len(skipped)), edge["target"]])
        for lane, at in enumerate(skipped, lanes):
            rows[at].append(lane)
        lanes += len(skipped)
    _uncross(rows, [pair for chain in chains for pair in pairwise(chain)])
    wide = [_WIDTH if v < count else _LANE for v in range(lanes)]
    widths = {key: sum(wide[v] + _ACROSS for v in row) - _ACROSS for key, row in rows.items()}
    width = max(widths.values(), default=0) + 2
    place: dict[int, tuple[float, float]] = {}
    for down, key in enumerate(sorted(rows)):
        left = (width - widths[key]) / 2
        for v in rows[key]:
            place[v] = (left + wide[v] / 2, 1 + down * (_HEIGHT + _DOWN))
            left += wide[v] + _ACROSS
    height = len(rows) * (_HEIGHT + _DOWN) - _DOWN + 2
    pieces = [_edge([place[v] for v in chain], edge) for chain, edge in zip(chains, drawn, strict=True)]
    pieces += [_box(vertices[v], place[v][0] - _WIDTH / 2, place[v][1]) for v in kept]
    return Markup(
        '<svg class="graph" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img" aria-label="Job graph">{p}</svg>'
    ).format(w=round(width), h=max(height, 2), p=Markup().join(pieces))


def _layers(count: int, edges: Sequence[Mapping[str, Any]]) -> list[int]:
    """The length of the longest path to each vertex; edges of a cycle, which no job has, count as far as they can."""
    layer = [0] * count
    for _ in range(min(count, 4 * MOST_VERTICES)):
        changed = False
        for edge in edges:
            below = layer[edge["source"]] + 1
            if layer[edge["target"]] < below <= count:
                layer[edge["target"]], changed = below, True
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


def _edge(chain: Sequence[tuple[float, float]], edge: Mapping[str, Any]) -> Markup:
    """An edge through the middles of the tops of two boxes, and of the lanes between them."""
    (x, y), path = chain[0], []
    path.append(f"M{x:g} {y + _HEIGHT:g}")
    for at, (x1, y1) in enumerate(chain[1:], 2):
        y0, end = y + _HEIGHT, y1 if at < len(chain) else y1 - 4
        bend = max((end - y0) / 2, 8)
        path.append(f"C{x:g} {y0 + bend:g} {x1:g} {end - bend:g} {x1:g} {end:g}")
        path += [f"V{y1 + _HEIGHT:g}"] if at < len(chain) else []
        x, y = x1, y1
    said = ", ".join(cut(t) for t in (edge["exchange"] or "exchange not known", edge["pattern"] or "") if t)
    style = _STYLES.get(edge["exchange"] or "", "other")
    return Markup(
        '<path class="edge {}" d="{}"><title>{}</title></path><path class="tip" d="M{:g} {:g}l-4 -6h8z"/>'
    ).format(style, "".join(path), said, x, y)


def _box(vertex: Mapping[str, Any], x: float, y: float) -> Markup:
    name, parallelism = cut(vertex["name"]), vertex["parallelism"]
    groups = [(region, len(list(same))) for region, same in groupby(vertex["regions"])]
    pieces, left, first, shown = [], x + 8, 1, 0
    for region, count in groups:
        wide = max(15, 7 * len(str(region + 1)) + 2)
        if left + wide > x + _WIDTH - (38 if shown == len(groups) - 1 else 76):
            break
        shown += 1
        said = f"subtask {first}" if count == 1 else f"subtasks {first} to {first + count - 1}"
        pieces.append(
            Markup(
                '<g class="{}"><title>{}: region {}</title><rect x="{:g}" y="{:g}" width="{}" height="15" rx="3"/>'
                '<text x="{:g}" y="{:g}" text-anchor="middle">{}</text></g>'
            ).format(colour(region), said, region + 1, left, y + 27, wide, left + wide / 2, y + 38, region + 1)
        )
        left, first = left + wide + 1, first + count
    more = f"+{len(groups) - shown}" if len(groups) > shown else ""
    return Markup(
        '<g><title>{}, parallelism {}</title><rect class="box" x="{:g}" y="{:g}" width="{}" height="{}" rx="6"/>'
        '<text class="name" x="{:g}" y="{:g}">{}</text>{}<text x="{:g}" y="{:g}">{}</text></g>'
    ).format(
        name, parallelism, x, y, _WIDTH, _HEIGHT, x + 8, y + 18, cut(name, _LETTERS), Markup().join(pieces),
        left + 3, y + 39, " ".join(filter(None, (more, f"×{parallelism}"))),  # noqa: RUF001
    )  # fmt: skip
