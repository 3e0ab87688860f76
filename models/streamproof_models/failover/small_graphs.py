"""All small job graphs, one of each isomorphism class, for exhaustive comparison.

Two job graphs are isomorphic if renaming vertices and datasets makes one the other. Every acyclic graph
arises from a smaller one by adding a vertex that nobody reads, so the classes of a size are found by
extending those of the smaller sizes in every way and keeping the first of each class, which is recognised by
a canonical form.

A pattern is irrelevant where either side has one task: both patterns then give the same groups. Graphs that
differ only in irrelevant patterns count as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations, permutations, product
from string import ascii_uppercase
from typing import TypeAlias

from streamproof_models.failover.graph import Edge, Exchange, JobGraph, Pattern, Vertex

KINDS = (Exchange.PIPELINED, Exchange.BLOCKING, Exchange.HYBRID_SELECTIVE)
"""One exchange of each behaviour: glues; re-readable; neither. Every other exchange type behaves like one of these."""

_ANY, _POINTWISE, _ALL_TO_ALL = range(3)


@dataclass(frozen=True, slots=True, order=True)
class _Dataset:
    source: int
    exchange: int
    pattern: int
    targets: tuple[int, ...]


_Shape: TypeAlias = tuple[tuple[int, ...], tuple[_Dataset, ...]]
"""Parallelisms of the vertices in a topological order, and the datasets."""


def job_graphs(
    tasks: int, exchanges: tuple[Exchange, ...] = KINDS, *, sharing: bool = False, parallel_edges: int = 1
) -> Iterator[JobGraph]:
    """One job graph of each isomorphism class with exactly `tasks` tasks, vertices in a topological order.

    Args:
        tasks: the sum of all parallelisms, at most 26.
        exchanges: the exchange types that edges may have.
        sharing: whether edges may share a dataset.
        parallel_edges: how many edges may join the same two vertices.
    """
    for shape in _shapes(tasks, len(exchanges), sharing, parallel_edges, tasks):
        yield _graph(shape, exchanges)


def region_graphs(regions: int) -> Iterator[JobGraph]:
    """One job graph of each class whose vertices are single tasks joined by blocking edges, at most one per
    pair.

    Their regions are their vertices, so these are all acyclic region graphs of that size.
    """
    for shape in _shapes(regions, 1, False, 1, 1):
        yield _graph(shape, (Exchange.BLOCKING,))


@cache
def _shapes(tasks: int, exchanges: int, sharing: bool, parallel_edges: int, max_parallelism: int) -> tuple[_Shape, ...]:
    if tasks == 0:
        return (((), ()),)
    classes: dict[object, _Shape] = {}
    for parallelism in range(1, min(tasks, max_parallelism) + 1):
        for smaller in _shapes(tasks - parallelism, exchanges, sharing, parallel_edges, max_parallelism):
            for larger in _extensions(smaller, parallelism, exchanges, sharing, parallel_edges):
                classes.setdefault(_canonical(larger), larger)
    return tuple(classes.values())


def _extensions(
    shape: _Shape, parallelism: int, exchanges: int, sharing: bool, parallel_edges: int
) -> Iterator[_Shape]:
    """The shape with one vertex more that reads the others in every possible way."""
    parallelisms, datasets = shape
    new = len(parallelisms)
    per_vertex: list[list[tuple[tuple[int | None, _Dataset], ...]]] = []
    for source, producers in enumerate(parallelisms):
        patterns = (_ANY,) if min(producers, parallelism) == 1 else (_POINTWISE, _ALL_TO_ALL)
        reads: list[tuple[int | None, _Dataset]] = [
            (None, _Dataset(source, exchange, pattern, (new,))) for exchange in range(exchanges) for pattern in patterns
        ]
        fresh = [read for read in reads for _ in range(parallel_edges)]
        old = [
            (index, _Dataset(source, dataset.exchange, pattern, (*dataset.targets, new)))
            for index, dataset in enumerate(datasets)
            if sharing and dataset.source == source
            for pattern in ({dataset.pattern} if dataset.pattern != _ANY else set(patterns))
        ]
        per_vertex.append(_choices([*fresh, *old], parallel_edges))
    for choice in product(*per_vertex):
        changed = {index: dataset for index, dataset in chain.from_iterable(choice) if index is not None}
        added = [dataset for index, dataset in chain.from_iterable(choice) if index is None]
        kept = [changed.get(index, dataset) for index, dataset in enumerate(datasets)]
        yield (*parallelisms, parallelism), (*kept, *added)


def _choices(reads: list[tuple[int | None, _Dataset]], most: int) -> list[tuple[tuple[int | None, _Dataset], ...]]:
    """The ways to read up to `most` datasets of one vertex, an old dataset at most once, without
    repetition."""
    found = dict.fromkeys(
        choice
        for size in range(most + 1)
        for choice in combinations(reads, size)
        if len(old := [index for index, _ in choice if index is not None]) == len(set(old))
    )
    return list(found)


def _canonical(shape: _Shape) -> object:
    """Equal for two shapes exactly if they are isomorphic: the least renumbering that respects `_colours`."""
    parallelisms, datasets = shape
    colours = _colours(parallelisms, datasets)
    classes: dict[int, list[int]] = {}
    for vertex, colour in enumerate(colours):
        classes.setdefault(colour, []).append(vertex)
    ordered = [classes[colour] for colour in sorted(classes)]
    forms = []
    for arrangement in product(*(permutations(members) for members in ordered)):
        number = {vertex: i for i, vertex in enumerate(chain.from_iterable(arrangement))}
        forms.append(
            tuple(
                sorted(
                    (number[d.source], d.exchange, d.pattern, tuple(sorted(number[t] for t in d.targets)))
                    for d in datasets
                )
            )
        )
    return tuple(sorted(zip(colours, parallelisms, strict=True))), min(forms)


def _colours(parallelisms: tuple[int, ...], datasets: Iterable[_Dataset]) -> list[int]:
    """Colours that renumbering the vertices cannot change: refined by the neighbours' until nothing
    splits."""
    colours: list[int] = [sorted(set(parallelisms)).index(p) for p in parallelisms]
    while True:
        views: list[list[tuple[int, ...]]] = [[] for _ in parallelisms]
        for d in datasets:
            reading = sorted(colours[target] for target in d.targets)
            views[d.source].append((0, d.exchange, d.pattern, *reading))
            for target in d.targets:
                views[target].append((1, d.exchange, d.pattern, colours[d.source], *reading))
        signatures = [(colour, sorted(view)) for colour, view in zip(colours, views, strict=True)]
        ranks = sorted({repr(signature) for signature in signatures})
        refined = [ranks.index(repr(signature)) for signature in signatures]
        if len(ranks) == len(set(colours)):
            return refined
        colours = refined


def _graph(shape: _Shape, exchanges: tuple[Exchange, ...]) -> JobGraph:
    parallelisms, datasets = shape
    return JobGraph(
        tuple(Vertex(ascii_uppercase[i], parallelism) for i, parallelism in enumerate(parallelisms)),
        tuple(
            Edge(
                ascii_uppercase[dataset.source],
                ascii_uppercase[target],
                Pattern.POINTWISE if dataset.pattern == _POINTWISE else Pattern.ALL_TO_ALL,
                exchanges[dataset.exchange],
                f"d{i}",
            )
            for i, dataset in enumerate(datasets)
            for target in dataset.targets
        ),
    )
