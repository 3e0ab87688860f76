"""Random compositions with free parameters: their readings never differ, and a seeded fault of composition is noticed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from random_compositions import composition
from shares import share
from streamproof import Spec, StreamproofError
from streamproof.any import instances, readings
from streamproof.any.engine import prove_any
from streamproof.any.every_size import FOR_EVERY_SIZE, check_proof
from streamproof.any.instances import search_instances
from streamproof.any.readings import ReadingsDiffer, compare_readings
from streamproof.model_registry import Target
from streamproof.selection import Selection
from streamproof.system import Instance, ModelError
from streamproof.transform import composition as joining

CHUNKS = [pytest.param(range(at, at + 50), id=str(at), marks=pytest.mark.long) for at in range(1_000, 4_000, 50)]
FEW = patch.multiple(readings, HEAVIEST=2_000, ALL_TERMS=4_000, MOST=4, LARGER=(17,))
"""Fewer and smaller values than for users."""


def compared(seed: int, folder: Path) -> int:
    """The number of runs of plain Python beside a composition; 0 if it is refused. Raises `ReadingsDiffer`."""
    drawn = composition(seed)
    spec = Spec(drawn.load(folder))
    try:
        parametric = spec.parametric(drawn.free)
    except ModelError:
        return 0  # a rule fails in every state
    with FEW:
        return compare_readings(spec, None, {}, parametric).runs


@pytest.mark.parametrize("seeds", [range(3), range(20, 22), range(70, 71), *CHUNKS], ids=str)
def test_readings_of_right_compositions_never_differ(seeds: range, tmp_path: Path) -> None:
    """Rules for every size, rules at one size and plain Python agree, although parts fail where a joint guard is false."""
    assert sum(compared(seed, tmp_path) for seed in seeds) > 0


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(100, 400), marks=pytest.mark.long)], ids=str)
def test_proofs_of_compositions_are_never_refuted(seeds: range, tmp_path: Path) -> None:
    """What is proved for every size holds in the small instances, and the induction is one at small sizes."""
    proved = 0
    for seed in seeds:
        drawn = composition(seed, careful=True)
        selection = Selection(Target("whole", Spec(drawn.load(tmp_path)), False), None)
        parametric = selection.target.parametric(None, {}, drawn.free)
        properties = [p for p in parametric.system.properties if p.kind in FOR_EVERY_SIZE]
        proof = prove_any(parametric, properties, query_limit=1.0, seconds=10.0)
        check_proof(selection, parametric, proof)
        with patch.multiple(instances, MOST_STATES=300, ALL_STATES=2_000):
            search_instances(selection, parametric, proof.proved, [p.name for p in properties])
        proved += len(proof.proved)
    assert proved >= len(seeds)


# --- seeded faults


def without_the_last_guard(step: Callable[..., Instance | None], *args: Any) -> Instance | None:
    """A joint step that forgets the last condition of its guard."""
    made = step(*args)
    return made if made is None else replace(made, guard=made.guard[:-1])


def without_the_last_update(step: Callable[..., Instance | None], *args: Any) -> Instance | None:
    """A joint step that forgets the last assignment."""
    made = step(*args)
    return made if made is None else replace(made, updates=made.updates[:-1])


def without_errors(step: Callable[..., Instance | None], *args: Any) -> Instance | None:
    """A joint step whose parts never fail."""
    made = step(*args)
    return made if made is None else replace(made, guard_checks=(), effect_checks=())


@pytest.mark.parametrize("fault", share([without_the_last_guard, without_the_last_update, without_errors], 3))
def test_a_fault_of_joint_steps_is_noticed(fault: Callable[..., Any], tmp_path: Path) -> None:
    """Both readings compose their parts by the same code, so plain Python is the only witness."""
    step, noticed = joining._together, []
    with patch.object(joining, "_together", lambda *args: fault(step, *args)):
        for seed in range(8):
            try:
                compared(seed, tmp_path)
            except (ReadingsDiffer, StreamproofError) as error:
                noticed.append(error)
    assert any(isinstance(error, ReadingsDiffer) for error in noticed)
    assert len(noticed) >= 4, noticed


@pytest.mark.parametrize("what", ["guard", "updates", "effect_checks"])
def test_a_fault_of_one_reading_is_noticed(what: str, tmp_path: Path) -> None:
    """A joint step for every size that lacks something differs from the one at a size."""
    noticed = tried = 0
    for seed in range(8):
        drawn = composition(seed)
        spec = Spec(drawn.load(tmp_path))
        try:
            parametric = spec.parametric(drawn.free)
        except ModelError:
            continue
        system = parametric.system
        joint = next((i for i in system.instances if i.of and getattr(i, what)), None)
        if joint is None:
            continue
        changed = replace(joint, **{what: ()})
        actions = tuple(
            replace(a, instances=tuple(changed if i is joint else i for i in a.instances)) for a in system.actions
        )
        tried += 1
        try:
            with FEW:
                compare_readings(spec, None, {}, replace(parametric, system=replace(system, actions=actions)))
        except ReadingsDiffer:
            noticed += 1
    assert noticed >= tried / 2 > 1, (noticed, tried)
