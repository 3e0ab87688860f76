"""The catalogue of job graphs by name, each a function of its parallelisms.

A dataset is named after its edge (`A>B`); no two edges of the catalogue share one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from streamproof_models.failover.graph import Edge, Exchange, JobGraph, Pattern, Vertex


def pair(a: int = 1, b: int = 1) -> JobGraph:
    """A > B blocking: the least job in which a lost partition matters."""
    return JobGraph((Vertex("A", a), Vertex("B", b)), (_blocking("A", "B"),))


def chain(parallelism: int = 1) -> JobGraph:
    """A > B > C blocking: losing B's output may force A to run again."""
    return JobGraph(_vertices("ABC", parallelism), (_blocking("A", "B"), _blocking("B", "C")))


def diamond(a: int = 1, b: int = 1, c: int = 1, d: int = 1) -> JobGraph:
    """A > B > {C, D} blocking: the job by which FLIP-1 explains backtracking.

    B writes one dataset for C and one for D, because FLIP-1 distinguishes the loss of one from that of the other.
    """
    return JobGraph(
        (Vertex("A", a), Vertex("B", b), Vertex("C", c), Vertex("D", d)),
        (_blocking("A", "B"), _blocking("B", "C"), _blocking("B", "D")),
    )


def pipelined_pair(parallelism: int = 1) -> JobGraph:
    """A > B pipelined, subtask by subtask: as many independent regions of two tasks as the parallelism."""
    return JobGraph(_vertices("AB", parallelism), (_pipelined("A", "B"),))


def all_to_all(a: int = 2, b: int = 2) -> JobGraph:
    """A > B blocking, everybody reads everybody: the job that Flink's scheduler was measured with."""
    return JobGraph((Vertex("A", a), Vertex("B", b)), (_blocking("A", "B", Pattern.ALL_TO_ALL),))


def mixed(parallelism: int = 1) -> JobGraph:
    """A > B pipelined, B > C blocking all-to-all: regions {A, B} that all of C waits for."""
    return JobGraph(_vertices("ABC", parallelism), (_pipelined("A", "B"), _blocking("B", "C", Pattern.ALL_TO_ALL)))


def disjoint(parallelism: int = 1) -> JobGraph:
    """A > B and C > D pipelined: two jobs in one, neither of which may disturb the other."""
    return JobGraph(_vertices("ABCD", parallelism), (_pipelined("A", "B"), _pipelined("C", "D")))


def cyclic_region(parallelism: int = 2) -> JobGraph:
    """A > B pipelined subtask by subtask and A > B blocking all-to-all.

    From parallelism 2 on, {A0, B0} and {A1, B1} wait for each other's A, so they have to be merged.
    """
    return JobGraph(
        _vertices("AB", parallelism),
        (_pipelined("A", "B"), _edge("A", "B", Pattern.ALL_TO_ALL, Exchange.BLOCKING, "A>B shuffled")),
    )


def cyclic_detour() -> JobGraph:
    """A > B pipelined, A > C > B blocking, one task each.

    {A0, B0} waits for C0, which waits for A0. C is in another logical region, so Flink 2.3 merges nothing.
    """
    return JobGraph(_vertices("ABC", 1), (_pipelined("A", "B"), _blocking("A", "C"), _blocking("C", "B")))


def join() -> JobGraph:
    """B > C, B > D, E > D blocking: D waits for E while B's output is ready, and may be read, by C."""
    return JobGraph(
        tuple(Vertex(name) for name in "BECD"), (_blocking("B", "C"), _blocking("B", "D"), _blocking("E", "D"))
    )


def tee() -> JobGraph:
    """A > B > C and A > D blocking, B and D reading one dataset: it may be released while B has to run again."""
    shared = [_edge("A", target, Pattern.POINTWISE, Exchange.BLOCKING, "A>") for target in ("B", "D")]
    return JobGraph(tuple(Vertex(name) for name in "ABCD"), (*shared, _blocking("B", "C")))


JOB_GRAPHS: Mapping[str, Callable[..., JobGraph]] = MappingProxyType(
    {
        "pair": pair,
        "chain": chain,
        "diamond": diamond,
        "pipelined-pair": pipelined_pair,
        "cyclic-region": cyclic_region,
        "cyclic-detour": cyclic_detour,
        "all-to-all": all_to_all,
        "mixed": mixed,
        "join": join,
        "tee": tee,
        "disjoint": disjoint,
    }
)
"""Every job graph of the catalogue by name; called without arguments, each is small."""


def job_graph(name: str, parallelism: int = 1) -> JobGraph:
    """A job graph of the catalogue at its default size, or with so many tasks per vertex, or the one that `name` is the
    text of, which has its own. Raises `ValueError`."""
    if is_text(name):
        if parallelism != 1:
            raise ValueError("a job graph as text has its own parallelisms; leave out the parameter parallelism")
        return JobGraph.of_text(name)
    if name not in JOB_GRAPHS:
        raise ValueError(f"no topology {name!r}; the catalogue has {', '.join(JOB_GRAPHS)}")
    build = JOB_GRAPHS[name]
    return build(*([parallelism] * build.__code__.co_argcount)) if parallelism > 1 else build()


def is_text(topology: str) -> bool:
    """Whether this is a job graph as text, and no name."""
    return topology.startswith("{")


def _vertices(names: str, parallelism: int) -> tuple[Vertex, ...]:
    return tuple(Vertex(name, parallelism) for name in names)


def _edge(source: str, target: str, pattern: Pattern, exchange: Exchange, dataset: str = "") -> Edge:
    return Edge(source, target, pattern, exchange, dataset or f"{source}>{target}")


def _blocking(source: str, target: str, pattern: Pattern = Pattern.POINTWISE) -> Edge:
    return _edge(source, target, pattern, Exchange.BLOCKING)


def _pipelined(source: str, target: str) -> Edge:
    return _edge(source, target, Pattern.POINTWISE, Exchange.PIPELINED)
