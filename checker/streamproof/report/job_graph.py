"""A drawing of a job graph: vertices in layers from the sources down, a box for each region of their subtasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from markupsafe import Markup

from streamproof.report.layers import HEIGHT, WIDTH, Column, arrow, layers, layout

MOST_VERTICES: Final = 40
COLOURS: Final = 8
"""Number of colours of regions in the page's style; numbers tell further regions apart."""
_LETTERS = 20
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
    """The graph as SVG. At most `MOST_VERTICES` vertices are drawn, those nearest to the sources."""
    count = len(vertices)
    layer = layers(count, [(edge["source"], edge["target"]) for edge in edges])
    kept = sorted(sorted(range(count), key=lambda v: layer[v])[:MOST_VERTICES])
    drawn = [e for e in edges if e["source"] in kept and e["target"] in kept]
    found = layout(layer, [(e["source"], e["target"]) for e in drawn], kept)
    pieces = [_edge(chain, edge) for chain, edge in zip(found.chains, drawn, strict=True)]
    pieces += [_box(vertices[v], found.place[v][0] - WIDTH / 2, found.place[v][1]) for v in kept]
    return found.svg(pieces, "Job graph")


def _edge(chain: Sequence[Column], edge: Mapping[str, Any]) -> Markup:
    said = ", ".join(cut(t) for t in (edge["exchange"] or "exchange not known", edge["pattern"] or "") if t)
    return arrow(chain, _STYLES.get(edge["exchange"] or "", "other"), said)


def _box(vertex: Mapping[str, Any], x: float, y: float) -> Markup:
    name, parallelism = cut(vertex["name"]), vertex["parallelism"]
    groups = [(region, len(list(same))) for region, same in groupby(vertex["regions"])]
    pieces, left, first, shown = [], x + 8, 1, 0
    for region, count in groups:
        wide = max(15, 7 * len(str(region + 1)) + 2)
        if left + wide > x + WIDTH - (38 if shown == len(groups) - 1 else 76):
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
        name, parallelism, x, y, WIDTH, HEIGHT, x + 8, y + 18, cut(name, _LETTERS), Markup().join(pieces),
        left + 3, y + 39, " ".join(filter(None, (more, f"×{parallelism}"))),  # noqa: RUF001
    )  # fmt: skip
