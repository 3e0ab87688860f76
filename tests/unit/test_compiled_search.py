"""The compiled tier gives what the Python tier gives: for tables that grow, states of many words, and several threads."""

from __future__ import annotations

import ctypes
import mmap
import sys
import threading
import time
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from nonempty import nonempty
from random_systems import random_system
from shares import share
from streamproof.base.options import SearchOptions, Tuning
from streamproof.explicit import exploration
from streamproof.explicit.compiled import edges, memory, packed_states, search
from streamproof.explicit.compiled.memory import Reserve
from streamproof.explicit.exploration import explore
from streamproof.explicit.level_search import Budget, SearchTask
from streamproof.system import Fairness, Kind, StreamproofError, System, TooLarge, UsageError, Verdict
from streamproof.transform.assume import simplify
from streamproof.transform.scalarise import scalarise
from streamproof_models.reference.async_termination_detection import AsyncTerminationDetection
from streamproof_models.reference.ewd840 import Ewd840
from streamproof_models.reference.two_phase_commit import TwoPhaseCommit


def outcome(system: System, **options: Any) -> object:
    """Everything that two runs must agree on, in a comparable form."""
    try:
        found = explore(system, SearchOptions(**options))
    except StreamproofError as error:
        return str(error)
    return (
        found.counts,
        found.stopped,
        found.coverage,
        found.findings,
        found.mistake and found.mistake.trace,
        list(found.states()),
    )


@pytest.fixture(params=[(64, 1), (64, 4), (6, 4)], ids=["as-is", "growing", "wide-and-growing"])
def shape(request: pytest.FixtureRequest) -> Tuning:
    """Small tables and batches, and words of six bits, so that small systems exercise growth and states of many words."""
    bits, batch = request.param
    if batch == 1:
        return Tuning(word_bits=bits)
    return Tuning(word_bits=bits, first_capacity=16, batch_states=batch, batch_successors=64, box_bytes=1)


@pytest.mark.parametrize("first", share(range(0, 60, 20), 3))
def test_both_tiers_agree(first: int, shape: Tuning) -> None:
    """Counts, levels, the order of states, findings, traces and coverage are the same on random systems."""
    for seed in range(first, first + 20):
        system = random_system(Random(seed))
        assert outcome(system, tier="compiled", tuning=shape) == outcome(system, tier="python"), f"seed {seed}"


@pytest.mark.parametrize(("workers", "first"), share(product([2, 3], range(0, 60, 20)), 6))
def test_any_number_of_workers_agrees(workers: int, first: int, shape: Tuning) -> None:
    """Several threads find the same states in the same order, the same mistakes, findings and traces as one."""
    for seed in range(first, first + 20):
        system = random_system(Random(seed))
        found = outcome(system, tier="compiled", workers=workers, tuning=shape)
        assert found == outcome(system, tier="python"), f"seed {seed}"


def test_memory_made_ready_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search has the same results with a thread that clears memory ahead of it, which ends with the search."""
    alone = outcome(TwoPhaseCommit(resource_managers=5).system(), tier="compiled", workers=1)
    early = Tuning(prefault_pause=0.0001, prefault_states=0)
    monkeypatch.setattr(exploration, "processors", lambda: 2)
    before = threading.active_count()
    assert outcome(TwoPhaseCommit(resource_managers=5).system(), tier="compiled", tuning=early) == alone
    assert threading.active_count() == before


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux clears memory ahead")
@pytest.mark.parametrize("most", [1 << 40, 1])
def test_memory_is_made_ready_as_far_as_it_may_be(most: int) -> None:
    """What is coming becomes resident before anyone touches it, unless the process holds too much already."""
    size = 4 * memory.PIECE
    room = Reserve(2 * size)
    clearing = memory.Prefault(lambda: [(room.address, size)], Budget(SearchOptions(memory=most)))
    assert clearing._thread is not None
    end = time.monotonic() + 10
    while clearing._thread.is_alive() and clearing._ready.get(room.address) != size and time.monotonic() < end:
        time.sleep(0.001)
    clearing.stop()
    assert clearing._ready == ({room.address: size} if most > 1 else {})
    pages = (ctypes.c_ubyte * (2 * size // mmap.PAGESIZE))()
    assert ctypes.CDLL(None).mincore(ctypes.c_void_p(room.address), ctypes.c_size_t(2 * size), pages) == 0
    assert sum(page & 1 for page in pages) == (size // mmap.PAGESIZE if most > 1 else 0)


@pytest.mark.parametrize("limit", [1, 2, 100, 301])
def test_several_workers_keep_to_the_limit_on_states(limit: int, shape: Tuning) -> None:
    """They stop after the same state as one."""
    options = SearchOptions(tier="compiled", max_states=limit, tuning=shape)
    found = [explore(Ewd840.system(), replace(options, workers=n)) for n in (1, 2, 3)]
    assert [f.counts for f in found] == [found[0].counts] * 3
    assert found[2].stopped == "max_states"


def test_two_threads_write_the_same_steps(shape: Tuning) -> None:
    """The second pass gives the same arrays when it is divided, and is divided only where all steps are known."""
    tuning = replace(shape, divided_steps=0)
    scalarised = scalarise(Ewd840.system())
    system = simplify(scalarised.system)
    eventually = [p for p in system.properties if p.kind is Kind.TEMPORAL]
    assert eventually
    found = []
    for threads in (1, 2):
        done = search.CompiledSearch(
            SearchTask(scalarised, system, eventually, Budget(SearchOptions(tuning=tuning))), threads, 1 << 24
        )
        done.run()
        spans = edges._spans(done, done.known, sum(done.generated))
        assert len(spans) == threads
        assert all(
            sum(done.generated) > step == sum(1 for source in sources_of(done) if source < first)
            for first, _, step in spans
        )
        found.append(done.graph())
    one, two = found
    for name in ("offsets", "targets", "instances"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    few = Budget(SearchOptions(max_states=20, tuning=tuning))
    cut = search.CompiledSearch(SearchTask(scalarised, system, eventually, few), 2, 1 << 24)
    cut.run()
    assert len(edges._spans(cut, cut.worker.table.next, sum(cut.generated))) == 1


def sources_of(done: search.CompiledSearch) -> list[int]:
    """The state that each step of a finished search leaves."""
    degrees = np.diff(done.graph().offsets)
    return list(np.repeat(np.arange(len(degrees)), degrees).tolist())


@pytest.mark.long
def test_several_workers_are_the_same_as_one_on_a_larger_model() -> None:
    """With turns of some thousand states, and when nothing is said and they begin in the middle."""
    system = TwoPhaseCommit.system(resource_managers=6)
    early = Tuning(together=2_000)
    alone = outcome(system, workers=1, tier="compiled")
    assert outcome(system, workers=2, tier="compiled", tuning=early) == alone
    assert outcome(system, workers=4, tier="compiled", tuning=early) == alone
    assert outcome(system, tuning=early) == alone


@pytest.mark.parametrize("limit", [1, 2, 100, 301])
def test_the_limit_on_states_is_the_same(limit: int) -> None:
    """Both tiers stop after the same state."""
    system = Ewd840.system()
    found = [explore(system, SearchOptions(tier=tier, max_states=limit)) for tier in ("python", "compiled")]
    assert found[0].counts == found[1].counts
    assert found[0].stopped == found[1].stopped == "max_states"


@pytest.mark.parametrize("depth", [1, 3, 9])
def test_the_limit_on_depth_is_the_same(depth: int) -> None:
    """Both tiers stop after the same level."""
    found = [explore(Ewd840.system(), SearchOptions(tier=tier, max_depth=depth)) for tier in ("python", "compiled")]
    assert found[0].counts == found[1].counts
    assert found[0].counts.depth == depth


def test_auto_changes_over_when_the_state_space_is_large() -> None:
    """A small model is searched by generated Python, a large one by compiled code."""
    assert explore(Ewd840.system()).tier == "python"
    assert explore(TwoPhaseCommit.system(resource_managers=6)).tier == "compiled"


def test_lassos_of_several_workers_are_those_of_one() -> None:
    """A violated temporal property comes with the same lasso, for any number of workers."""
    shown = []
    system = AsyncTerminationDetection.system(n=3)
    unfair = replace(system, actions=tuple(replace(a, fairness=Fairness.NONE) for a in system.actions))
    for threads in (1, 2, 3):
        found = explore(unfair, SearchOptions(tier="compiled", workers=threads))
        (live,) = (f for f in found.findings if f.kind is Kind.TEMPORAL)
        assert live.verdict is Verdict.VIOLATED
        assert live.trace is not None
        assert live.trace.loop is not None
        shown.append(live)
    assert shown == [shown[0]] * 3


def test_unknown_tiers_and_too_many_workers_are_refused() -> None:
    """The message names what there is."""
    with pytest.raises(UsageError, match="auto, python, compiled"):
        explore(Ewd840.system(), SearchOptions(tier="fortran"))
    with pytest.raises(UsageError, match="only the compiled tier has workers"):
        explore(Ewd840.system(), SearchOptions(tier="python", workers=2))
    with pytest.raises(UsageError, match="from 1 to 64"):
        explore(Ewd840.system(), SearchOptions(workers=0))


def test_states_survive_packing() -> None:
    """Packing loses nothing, whatever the width of words."""
    for bits in (64, 12, 6):
        for seed in range(30):
            scalarised = scalarise(random_system(Random(seed)))
            places = packed_states.layout(scalarised.system, bits)
            for state in nonempty(_corners(scalarised.system)):
                words = places.packer([state])
                assert places.unpack(words) == state
                assert places.packer([state, state]) == words * 2
                assert words[0]


def _corners(system: System) -> list[tuple[Any, ...]]:
    from streamproof.system.sorts import values

    domains = [tuple(values(v.sort)) for v in system.variables]
    return [tuple(d[pick(len(d))] for d in domains) for pick in (lambda n: 0, lambda n: n - 1, lambda n: n // 2)]


def test_terms_beyond_machine_words_stay_with_python() -> None:
    """A product that does not fit 62 bits is refused by compiled code, and auto goes on in Python."""
    from streamproof.system import Action, Conjunct, Fairness, Instance, Property, RangeSort, Variable
    from streamproof.system import build as b

    sort = RangeSort(0, 20_000)
    x = b.var("x", sort)
    huge = x
    for _ in range(5):
        huge = b.mul(huge, x)
    step = Instance("up", (), (), (Conjunct(b.less(x, b.num(20_000)), "below", None),), (("x", b.add(x, b.num(1))),))
    system = System(
        "huge",
        (Variable("x", sort, (0,)),),
        (Action("up", (), Fairness.NONE, (step,)),),
        (Property("small", Kind.INVARIANT, b.less(huge, b.num(20_000**6))),),
    )
    with pytest.raises(TooLarge, match="2\\^62"):
        explore(system, SearchOptions(tier="compiled"))
    found = explore(system)
    assert (found.tier, found.counts.distinct) == ("python", 20_001)
    assert found.finding("small").verdict is Verdict.VIOLATED
