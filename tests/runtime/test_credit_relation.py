"""The machine of a recorded gate is the variant `runtime` of `credit`, without a rule of its own, and a run needs the rules.

Each step of that variant is one of `any-backlog`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from runtime_runs import credit_verdicts, example
from shares import share
from streamproof import Spec, action, refines, require
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.system import Conjunct, Instance, System, Verdict
from streamproof.system.basics import FALSE
from streamproof_models.credit.machine import Credit
from streamproof_models.credit.receiver import AtTheReceiver
from streamproof_models.credit.variants import AnyBacklog
from streamproof_runtime.simulator.simulation import Outcome, Simulation
from streamproof_specs.credit import runtime

SAME = {name: name for name in ("channels", "exclusive", "floating", "depth")}


class Without(AnyBacklog):
    """`any-backlog`, also without exclusive buffers: the invariants of `credit` do not need them."""

    limits: ClassVar = {"exclusive": (0, None)}


class Compared(runtime.RecordedCredit):
    """The machine of a gate with any number of exclusive buffers."""

    @refines(Without, **SAME)
    def counted(self, s):  # type: ignore[no-untyped-def]
        """As in the variant."""
        return super().counted(s)


SYSTEM = Spec(Compared).system(depth=1)
"""Two channels, with one exclusive buffer each, and a floating one."""
SIZES: tuple[tuple[dict[str, int], int], ...] = (
    ({"channels": 1, "exclusive": 0, "depth": 2}, 585),
    ({"channels": 1, "floating": 2, "depth": 3}, 8_771),
    ({"channels": 1, "exclusive": 2, "floating": 0}, 105),
    ({"exclusive": 0, "depth": 1}, 3_185),
    ({"channels": 3, "depth": 1}, 15_200),
)
"""Sizes, with the number of states."""
RULES = tuple(a.name for a in SYSTEM.actions if a.name != "stall")
"""All but the one that no event says: a consumer that reads no more."""
GUARDS = (
    ("consume", "s.consumer[c] == 'LIVE'"),
    ("consume", "s.received_buffers[c] > 0"),
    ("request_floating_buffer", "s.pool > 0"),
    ("stall", "s.consumer[c] == 'LIVE'"),
)
"""Those that do not concern backlogs or a released channel, and that no bound of a counter implies."""
NO = Conjunct(FALSE, "False", None)
Change = Callable[[Instance], Instance]


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    """A run with few buffers, whose log needs every rule."""
    return Simulation(example("word_count").job(), seed=1, buffers=1).run()


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Change], None]]:
    """Changes every instance of the machines that follow gates."""
    compiled: Callable[..., System] = runtime.compile_model  # type: ignore[attr-defined]

    def change(instances: Change) -> None:
        monkeypatch.setattr(runtime, "compile_model", lambda m, **o: compiled(m, **o).with_instances(instances))
        runtime.machine.cache_clear()

    yield change
    runtime.machine.cache_clear()


def follows(system: System) -> bool:
    """Whether each step is one of `any-backlog`, or changes nothing of it."""
    [found] = explore(system, SearchOptions(properties=("counted",))).findings
    return found.verdict is Verdict.HOLDS


def test_the_machine_has_no_rule_of_its_own() -> None:
    """Only its name and its limits."""
    assert issubclass(runtime.RecordedCredit, AtTheReceiver)
    own = {name for name in vars(runtime.RecordedCredit) if not name.startswith("_")}
    assert own - {"variant", "variants", "parameters"} == {"name", "limits"}


@pytest.mark.parametrize(("size", "states"), SIZES, ids=str)
def test_every_step_is_a_step_without_backlogs(size: dict[str, int], states: int) -> None:
    """In every reachable state, also without exclusive buffers."""
    result = explore(Spec(Compared).system(**size))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert result.counts.distinct == states


@pytest.mark.parametrize(("rule", "guard"), GUARDS)
def test_a_guard_that_is_dropped_is_noticed(rule: str, guard: str) -> None:
    """A step is then none of `any-backlog`."""
    assert follows(SYSTEM)
    assert (rule, guard) in {(i.action, c.text) for i in SYSTEM.instances for c in i.guard}
    dropped = SYSTEM.with_instances(
        lambda i: replace(i, guard=tuple(c for c in i.guard if (i.action, c.text) != (rule, guard)))
    )
    assert not follows(dropped)


@pytest.mark.parametrize("rule", share(RULES, 3))
def test_a_rule_that_is_never_enabled_is_noticed(
    rule: str, outcome: Outcome, changed: Callable[[Change], None], tmp_path: Path
) -> None:
    """The run is rejected."""
    changed(lambda i: replace(i, guard=(NO, *i.guard)) if i.action == rule else i)
    assert "rejected" in {v.answer for v in credit_verdicts(outcome, tmp_path)}


@pytest.mark.parametrize("rule", ["produce", "add_credit", "announce_credit", "consume", "request_floating_buffer"])
def test_the_rule_of_the_model_itself_is_followed(
    rule: str, outcome: Outcome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the method of the model replaced, the run is rejected."""

    @action(c="channels")
    def never(self, s, c):  # type: ignore[no-untyped-def]
        require(False)

    monkeypatch.setattr(Credit, rule, never)
    runtime.machine.cache_clear()
    try:
        assert "rejected" in {v.answer for v in credit_verdicts(outcome, tmp_path)}
    finally:
        runtime.machine.cache_clear()
