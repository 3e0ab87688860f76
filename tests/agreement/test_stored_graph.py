"""Endless behaviours on a graph in files: the verdicts of the search in memory, and every lasso judged by its meaning."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from forced_spilling import Spilling
from random_fairness import severally_fair
from random_systems import random_system, temporal_system
from streamproof.base.options import SearchOptions, Tuning
from streamproof.base.records import replace
from streamproof.explicit.cluster import Cluster, InProcess
from streamproof.explicit.distributed.divided_graph import DividedGraph
from streamproof.explicit.distributed.search import DistributedSearch
from streamproof.explicit.exploration import Exploration, explore
from streamproof.explicit.set_search import BITS
from streamproof.system import Fairness, Kind, System, TooLarge, Verdict
from streamproof.system.formula import recurring
from streamproof.system.reference import reference
from streamproof.system.temporal import fairness_of, true_of

ENDLESS = (Kind.TERMINATION, Kind.TEMPORAL)


def _drawn(seed: int, *, recurring: bool = False) -> System:
    """A system with temporal properties or, one in three, with termination; more of its actions are fair."""
    random = Random(seed)
    system = temporal_system(random, recurring=recurring) if recurring or seed % 3 else random_system(random)
    actions = tuple(
        replace(a, fairness=random.choice(list(Fairness))) if random.randrange(2) else a for a in system.actions
    )
    return replace(system, actions=actions)


def _judge(system: System, found: Exploration, seen: Counter[str]) -> None:
    expected = reference(system)
    for finding in found.findings:
        if finding.kind not in ENDLESS:
            continue
        assert finding.verdict is expected.decisions[finding.property].verdict, finding
        seen[f"{finding.kind.value} {finding.verdict.value}"] += 1
        if finding.kind is Kind.TEMPORAL and finding.verdict is Verdict.VIOLATED:
            trace, formula = finding.trace, system.property(finding.property).formula
            assert trace is not None
            assert formula is not None
            assert not true_of(system, formula, trace)
            assert finding.fair == fairness_of(system, trace)
            assert all(evidence.satisfied for evidence in finding.fair)
            seen["stutters" if trace.stutters else "repeats"] += 1
            seen["strong"] += any(o.fairness is Fairness.STRONG and o.enabled is not None for o in finding.fair)


@pytest.mark.parametrize("bits", [64, 6], ids=["one-word", "wide"])
@pytest.mark.parametrize(
    "seeds", [range(4), *(pytest.param(range(n, n + 350), marks=pytest.mark.long) for n in range(4, 700, 350))]
)
def test_random_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: range, bits: int) -> None:
    """Behaviours on disk, with small windows and few bits at a time."""
    forced, seen = Spilling(monkeypatch, bits), Counter[str]()
    for seed in (2 * k + (bits == 6) for k in seeds):
        system, draw = severally_fair(seed) if seed % 3 == 2 else _drawn(seed), Random(seed)
        expected = reference(system)
        if not expected.levels or expected.mistake is not None:
            continue
        forced.after(1, fill=100, piece=10, merge=100, stored_window=draw.choice([1, 5, 1000]))
        monkeypatch.setattr("streamproof.explicit.set_search.BITS", draw.choice([12, BITS]))
        monkeypatch.setattr("streamproof.explicit.set_search.PIECE", draw.choice([1, 7, 4096]))
        monkeypatch.setattr("streamproof.explicit.set_search.BLOCK", draw.choice([3, 1 << 20]))
        found = explore(system, SearchOptions(spill=tmp_path, tier="compiled"))
        _judge(system, found, seen)
    assert forced.times
    if len(seeds) > 100:
        for what, share in (("temporal holds", 2), ("temporal violated", 2), ("stutters", 4), ("repeats", 8)):
            assert seen[what] > len(seeds) // share
        for what in ("strong", "termination holds", "termination violated"):
            assert seen[what] > 2, seen


@pytest.mark.parametrize("bits", [64, 6], ids=["one-word", "wide"])
@pytest.mark.parametrize(
    "seeds", [range(4), *(pytest.param(range(n, n + 200), marks=pytest.mark.long) for n in range(4, 1004, 200))]
)
def test_conditions_on_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: range, bits: int) -> None:
    """Formulas with conditions on steps, each a bit that such steps flip, beside conditions on states."""
    forced, seen, recurs = Spilling(monkeypatch, bits), Counter[str](), 0
    for seed in seeds:
        system, draw = _drawn(2 * seed + (bits == 6), recurring=True), Random(seed)
        expected = reference(system)
        if not expected.levels or expected.mistake is not None:
            continue
        recurs += sum(any(recurring(p.formula)) for p in system.properties if p.formula is not None)
        forced.after(1, fill=100, piece=10, merge=100, stored_window=draw.choice([1, 5, 1000]))
        monkeypatch.setattr("streamproof.explicit.compiled.stored_graph.PAIRS", draw.choice([1, 7, 1 << 18]))
        monkeypatch.setattr("streamproof.explicit.liveness.stored.PIECE", draw.choice([1, 7, 1 << 20]))
        _judge(system, explore(system, SearchOptions(spill=tmp_path, tier="compiled")), seen)
    assert forced.times
    assert recurs >= len(seeds) // 2
    if len(seeds) > 100:
        assert min(seen["temporal holds"], seen["temporal violated"]) > len(seeds) // 2


def test_a_cycle_whose_lasso_is_out_of_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process finds the lasso, and only that: without its graph a violation is inconclusive, and what holds holds."""

    def none(_: DistributedSearch) -> None:
        raise TooLarge("it has no disk", remedy="buy one")

    monkeypatch.setattr(DistributedSearch, "stored_graph", none)
    verdicts = Counter[tuple[str, str]]()
    for seed in (2, 9):
        system = _drawn(seed)
        cluster = Cluster(InProcess(2, 1 << 22), str(tmp_path / str(seed)))
        found = explore(system, SearchOptions(tier="compiled", tuning=Tuning(wide_level=1)), cluster=cluster)
        expected = reference(system)
        for finding in found.findings:
            if finding.kind in ENDLESS:
                verdicts[expected.decisions[finding.property].verdict.value, finding.verdict.value] += 1
            if finding.verdict is Verdict.INCONCLUSIVE:
                assert "cycle, but no counterexample, which one process looks for: it has no disk" in finding.because
    assert set(verdicts) == {("holds", "holds"), ("violated", "inconclusive")}


@pytest.mark.parametrize(
    "seeds", [range(10, 12), *(pytest.param(range(n, n + 150), marks=pytest.mark.long) for n in range(4, 604, 150))]
)
def test_a_graph_that_is_divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: range) -> None:
    """Over the files of a search by several processes, in few and in many ranges, by their tasks; lassos are found by one."""
    seen, divided = Counter[str](), 0
    accepts = DividedGraph.accepts

    def counted(graph: DividedGraph, *asked: Any) -> bool:
        nonlocal divided
        divided += 1
        return accepts(graph, *asked)

    monkeypatch.setattr(DividedGraph, "accepts", counted)
    for seed in seeds:
        system, draw = severally_fair(seed) if seed % 3 == 2 else _drawn(seed, recurring=seed % 6 == 1), Random(seed)
        expected = reference(system)
        if not expected.levels or expected.mistake is not None:
            continue
        monkeypatch.setattr("streamproof.explicit.set_search.BITS", draw.choice([12, BITS]))
        monkeypatch.setattr("streamproof.explicit.set_search.PIECE", draw.choice([1, 7, 4096]))
        monkeypatch.setattr(
            "streamproof.explicit.distributed.divided_graph.STEP_BYTES", draw.choice([40, 4_000, 400_000])
        )
        monkeypatch.setattr("streamproof.explicit.distributed.graph_tasks.MOST_PAIRS", draw.choice([1, 50, 1 << 20]))
        tuning = Tuning(word_bits=draw.choice([6, 64]), wide_level=1, file_rows=draw.choice([2, 20, 1 << 16]))
        executor = InProcess(draw.choice([1, 2, 3, 7]), draw.choice([20_000, 1 << 22]))
        cluster = Cluster(executor, str(tmp_path / str(seed)))
        _judge(system, explore(system, SearchOptions(tier="compiled", tuning=tuning), cluster=cluster), seen)
    assert divided >= len(seeds) // 2
    if len(seeds) > 100:
        assert min(seen["temporal holds"], seen["temporal violated"]) > len(seeds) // 3
        for what in ("strong", "termination holds", "termination violated"):
            assert seen[what] > 2, seen
