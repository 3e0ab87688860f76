"""A drawing of a state on the graph of processes and channels: tokens of queues and sets, and other values, in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from markupsafe import Markup

from streamproof.base.records import dataclass
from streamproof.exchange.drawings.sequence import short_text
from streamproof.report.job_graph import cut
from streamproof.report.layers import Point, arrow, layers, layout
from streamproof.system.model import State, System
from streamproof.system.sorts import BagSort, QueueSort, SetSort, bag_items, ordered
from streamproof.traces.places import Seen
from streamproof.traces.process_graph import ProcessGraph, SiteEdge

MOST_SITES: Final = 60
"""Largest number of vertices and channels that are drawn."""
MOST_ROWS: Final = 14
"""Largest number of rows in a box."""
_LETTERS, _LETTER, _ROW = 26, 7.3, 17


@dataclass(frozen=True, slots=True)
class BoxRow:
    """A row of a box: its text, its style, and whether the last step changed it."""

    text: str
    style: str
    changed: bool


class TokenGraph:
    """The drawing of a system, of one state after another."""

    def __init__(self, system: System) -> None:
        self.system, self._graph = system, ProcessGraph(system)
        sites = self._graph.sites
        self.drawn = 1 < len(sites) <= MOST_SITES
        """Whether there is something to draw, and not too much."""
        edges = self._graph.edges if self.drawn else ()
        back = _back(len(sites), edges)
        self._edges = [(edge, edge in back) for edge in edges]
        self._pairs = [(e.target, e.source) if up else (e.source, e.target) for e, up in self._edges]
        # Below the box of the whole system.
        self._layer = [0, *(1 + at for at in layers(len(sites), self._pairs))] if self.drawn else []

    def svg(self, state: State, before: State | None = None) -> Markup | None:
        """The drawing of a state; what differs from the state before is marked. None if nothing is drawn."""
        if not self.drawn:
            return None
        graph = self._graph
        rows: dict[str | None, list[BoxRow]] = {}
        old = {} if before is None else {place: seen for _, _, place, seen in graph.at(before)}
        for site, text, place, seen in graph.at(state):
            former = seen if before is None else old.get(place)
            rows.setdefault(site, []).extend(_rows(text, seen, former))
        boxes: list[tuple[str, Sequence[BoxRow], str]] = [(self.system.name, rows.get(None, []), "whole")]
        boxes += [(s, rows.get(s, []), "channel" if s in graph.channels else "") for s in graph.sites]
        boxes = [(name, _bounded(inside), style) for name, inside, style in boxes]
        sizes = [_size(name, inside) for name, inside, _ in boxes]
        kept = [at for at, (_, inside, _) in enumerate(boxes) if at or inside]
        drawn = layout(self._layer, [(a + 1, b + 1) for a, b in self._pairs], kept, sizes)
        pieces = [
            arrow(chain, "", "", up=up, tip=edge.directed)
            for chain, (edge, up) in zip(drawn.chains, self._edges, strict=True)
        ]
        pieces += [_box(drawn.place[at], sizes[at], *boxes[at]) for at in kept]
        return drawn.svg(pieces, "Processes and channels with their values")


def _back(count: int, edges: Sequence[SiteEdge]) -> frozenset[SiteEdge]:
    """Edges without which the graph has no cycle: those that lead back in a search from the first vertices."""
    after: list[list[SiteEdge]] = [[] for _ in range(count)]
    for one in edges:
        after[one.source].append(one)
    targets = {one.target for one in edges}
    done, found = [0] * count, set[SiteEdge]()
    for root in sorted(range(count), key=lambda v: (v in targets, v)):
        stack = [(root, iter(after[root]))] if not done[root] else []
        done[root] = done[root] or 1
        while stack:
            vertex, rest = stack[-1]
            edge = next(rest, None)
            if edge is None:
                done[vertex] = 2
                stack.pop()
            elif done[edge.target] == 1:
                found.add(edge)
            elif not done[edge.target]:
                done[edge.target] = 1
                stack.append((edge.target, iter(after[edge.target])))
    return frozenset(found)


def _rows(text: str, seen: Seen, former: Seen | None) -> Iterator[BoxRow]:
    """A leaf as rows: name and value, or the name and each of its tokens."""
    changed = former is None or former.value != seen.value or former.sort != seen.sort
    tokens = _tokens(seen)
    if tokens is None:
        yield BoxRow(f"{text} {seen.shown}", "", changed)
        return
    yield BoxRow(text if tokens else f"{text} empty", "", changed)
    old = Counter(_tokens(former) or () if former is not None else ())
    for token in tokens:
        yield BoxRow(token, "token", changed and not old[token])
        old[token] -= old[token] > 0


def _tokens(seen: Seen) -> list[str] | None:
    """What a queue, set or bag has in it, in order; None for another value."""
    match seen.sort:
        case QueueSort(element):
            return [short_text(element, value) for value in seen.value]
        case SetSort(element):
            return [short_text(element, value) for value in ordered(element, seen.value)]
        case BagSort() as bag:
            return [short_text(bag.item, value) for value in bag_items(bag, seen.value)]
        case _:
            return None


def _bounded(rows: Sequence[BoxRow]) -> Sequence[BoxRow]:
    if len(rows) <= MOST_ROWS:
        return rows
    rest = rows[MOST_ROWS - 1 :]
    return (*rows[: MOST_ROWS - 1], BoxRow(f"and {len(rest)} more", "", any(row.changed for row in rest)))


def _size(name: str, rows: Sequence[BoxRow]) -> Point:
    longest = max(len(cut(text, _LETTERS)) for text in (name, *(row.text for row in rows)))
    return max(longest * _LETTER + 18, 60), _ROW * (len(rows) + 1) + 10


def _box(place: Point, size: Point, name: str, rows: Sequence[BoxRow], style: str) -> Markup:
    x, y, (wide, high) = place[0] - size[0] / 2, place[1], size
    pieces = []
    for at, row in enumerate(rows, 1):
        top, mark = y + _ROW * at + 5, " changed" if row.changed else ""
        if row.style or row.changed:
            pieces.append(
                Markup('<rect class="{}{}" x="{:g}" y="{:g}" width="{:g}" height="{}" rx="{}"/>').format(
                    row.style or "mark", mark, x + 4, top, wide - 8, _ROW - 2, 7 if row.style else 2
                )
            )
        pieces.append(
            Markup('<text class="{}" x="{:g}" y="{:g}">{}{}</text>').format(
                f"row {row.style}{mark}", x + 9, top + 12, _title(row.text), cut(row.text, _LETTERS)
            )
        )
    return Markup(
        '<g><rect class="box {}" x="{:g}" y="{:g}" width="{:g}" height="{:g}" rx="{}"/>'
        '<text class="row name" x="{:g}" y="{:g}">{}{}</text>{}</g>'
    ).format(
        style, x, y, wide, high, 14 if style == "channel" else 5,
        x + 9, y + 16, _title(name), cut(name, _LETTERS), Markup().join(pieces),
    )  # fmt: skip


def _title(text: str) -> Markup:
    return Markup("<title>{}</title>").format(cut(text, 400)) if len(text) > _LETTERS else Markup()
