"""The machine that follows loop heads is `loop_head`, and each step of `cyclic` is, at its entry, a sequence of its steps.

A rule of either that never applies is noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import changed_logs
import step_sequences
import streamproof_models.cyclic.head_variants
import streamproof_models.cyclic.variants  # noqa: F401  (declaring a variant registers it)
from changed_logs import Records, records_of
from nonempty import nonempty
from runtime_runs import example
from shares import share
from step_sequences import Move, Relation, never
from streamproof import System, require
from streamproof.conformance import StateReader, compile_model
from streamproof.language.declare.primitives import MARK
from streamproof.system import Instance
from streamproof_models.cyclic.feedback import FeedbackEdge
from streamproof_models.cyclic.head import LoopHead
from streamproof_models.cyclic.machine import FEEDBACK, POLICIES, Cyclic
from streamproof_models.cyclic.rules import EntryRules
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_runtime.variants.loop_variants import loop_rules
from streamproof_specs.cyclic.runtime import binding


def sequence(
    step: Instance, before: StateReader, after: StateReader, head: Callable[[], StateReader]
) -> Iterator[Move]:
    """The steps of `loop_head` that a step of `cyclic` is."""
    args = dict(step.args)
    kind = {"kind": {"RECORD": "record"}.get(args.get("kind", ""), "BARRIER")}
    match step.action:
        case "offer":
            yield "offer", {"c": 0}
        case "trigger":
            yield "trigger", {"c": 0, "kind": "BARRIER"}
        case "back.read_back":
            yield "read_back", {"c": 1}
        case "read_forward":
            yield "read_forward", {"c": 0, **kind}
        case "read_feedback":
            yield "read_feedback", {"c": 1, **kind}
        case "send_back":
            if args["kind"] == "RECORD":
                yield "send_on", {"c": 1}
            yield "send_back", {"c": 1, **kind}
    if after("operator[0].task") == "IDLE":
        match before("operator[0].task"):
            case "SEND":
                yield "send", {}
            case "LEAVE":
                yield "leave", {}


def seen(cyclic: StateReader) -> tuple[Any, ...]:
    """What `loop_head` has of a state of `cyclic`."""
    word = {"RECORD": "record", "BARRIER": "BARRIER"}
    memory, disk = (
        tuple((word[kind], 0, number) for kind, _, number in cyclic(f"back.{place}")) for place in ("memory", "disk")
    )
    return (
        tuple(word[kind] for kind, _ in cyclic("channel[0].items")),
        (memory, disk, cyclic("back.written"), cyclic("back.due")),
        0,
        int(cyclic("operator[0].task") in ("SEND", "LEAVE")),
        cyclic("operator[0].last_read"),
    )


def agrees(after: StateReader, head: StateReader) -> bool:
    """The head has what it should have."""
    return (head("input", 0), head("back", 1), head("written", 1), head("held"), head("last_read")) == seen(after)


def related(cyclic: System, head: System) -> Relation:
    """Follows every behaviour of `cyclic` in `loop_head`."""
    return step_sequences.related(cyclic, head, sequence, agrees)


def is_complete(cyclic: System, head: System) -> bool:
    """Whether every rule of both takes part, and nothing contradicts; without a disk, nothing is read back."""
    found = related(cyclic, head)
    unused = (
        {"complete"} if cyclic.parameters["feedback"] == "spilling" else {"complete", "back.read_back", "read_back"}
    )
    actions = {a.name for a in cyclic.actions} - unused, {a.name for a in head.actions} - unused
    return not found.wrong and (found.taken, found.matched) == actions


def cyclic_of(variant: str | None = None, **parameters: Any) -> System:
    """`cyclic` with one buffer."""
    return compile_model(Cyclic.build(variant, **{"buffers": 1, "records": 2, **parameters}))


def head_of(cyclic: System, variant: str | None = None) -> System:
    """`loop_head` with the same policy and feedback edge, which holds one record and does not wait for another barrier."""
    known = cyclic.parameters
    settings = {"buffers": known["buffers"], "most": int(known["records"]) + int(known["barriers"])}
    spilling = known["feedback"] == "spilling"
    barriers = '{"BARRIER": []}'
    return compile_model(
        LoopHead.build(variant, policy=known["policy"], spilling=spilling, batons=barriers, holds=1, **settings)
    )


@pytest.mark.parametrize("feedback", FEEDBACK)
@pytest.mark.parametrize("policy", share(POLICIES, 6))
def test_every_step_of_a_loop_is_a_sequence_of_steps_of_its_head(policy: str, feedback: str) -> None:
    """In all reachable states, for every policy; every action of both takes part."""
    for operators in (1, 2):
        cyclic = cyclic_of(policy=policy, feedback=feedback, operators=operators, strong=True)
        assert is_complete(cyclic, head_of(cyclic)), operators


@pytest.mark.long
@pytest.mark.parametrize("feedback", FEEDBACK)
@pytest.mark.parametrize("policy", POLICIES)
def test_larger_loops_are_sequences_too(policy: str, feedback: str) -> None:
    """With more records, buffers, barriers, rounds and operators."""
    for more in ({"records": 3}, {"buffers": 2, "records": 3}, {"barriers": 2}, {"rounds": 2}, {"operators": 3}):
        cyclic = cyclic_of(policy=policy, feedback=feedback, **more)
        assert is_complete(cyclic, head_of(cyclic)), more


@pytest.mark.long
def test_a_loop_with_another_policy_is_none() -> None:
    """A head with one policy does not follow loops with another one, but for the two that differ in what is on disk."""
    weaker = ("feedback-first", "feedback-first-in-memory")
    for policy in POLICIES:
        for other in POLICIES:
            cyclic = cyclic_of(policy=policy, buffers=2, records=3, amplification=1)
            found = related(cyclic, head_of(cyclic_of(policy=other, buffers=2, records=3)))
            assert bool(found.wrong) == (policy != other and not {policy, other} <= {*weaker}), (policy, other)


@pytest.mark.parametrize(
    "variant", ["one-too-many", "spill-dropped", "spill-overtaken", "barrier-overtakes", "spill-newest-first"]
)
def test_a_loop_with_another_feedback_edge_is_none(variant: str) -> None:
    """What goes wrong on the feedback edge is no sequence of steps, either way around."""
    assert related(cyclic_of(variant), head_of(cyclic_of())).wrong
    assert related(cyclic_of(), head_of(cyclic_of(), variant)).wrong


@pytest.mark.parametrize("part", share(range(3), 3))
def test_a_rule_of_a_loop_that_never_applies_is_noticed(part: int) -> None:
    """No rule of the verified model can be left out."""
    for action in nonempty(cyclic_of().actions[part::3]):
        assert not is_complete(never(cyclic_of(), action.name), head_of(cyclic_of())), action.name


@pytest.mark.parametrize("name", [n for n, rule in vars(LoopHead).items() if hasattr(rule, MARK) and n != "complete"])
def test_a_rule_of_a_head_that_never_applies_is_noticed(name: str) -> None:
    """By the steps of the verified model that it has to match."""
    assert not is_complete(cyclic_of(), never(head_of(cyclic_of()), name))


def never_applies(*_: Any) -> bool:
    """In place of a rule."""
    require(False)
    return False


@pytest.fixture(scope="module")
def doubling() -> Records:
    """The log of a run with a loop."""
    return records_of(Simulation(example("doubling").job(), loops=loop_rules("", "fair")).run(100_000))


def answers(records: Records, folder: Path) -> set[str]:
    """The verdicts on a log by the rules as they are now."""
    binding.machine.cache_clear()
    try:
        return {v.answer for v in changed_logs.verdicts(records, folder, binding.BINDING, "cyclic")}
    finally:
        binding.machine.cache_clear()


def test_a_run_is_accepted_by_the_rules_of_the_verified_model(doubling: Records, tmp_path: Path) -> None:
    """Which the next test changes."""
    assert answers(doubling, tmp_path) == {"accepted"}


@pytest.mark.parametrize(
    ("rules", "name"),
    share(
        [
            *((EntryRules, name) for name in ("may_read_forward", "may_read_feedback", "prefers_feedback")),
            *((FeedbackEdge, name) for name in ("put", "take", "read_back", "spill", "fetch")),
        ],
        4,
    ),
)
def test_a_shared_rule_that_never_applies_rejects_a_run(
    rules: type, name: str, doubling: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules of `cyclic` are those that judge; the verdict says so."""
    monkeypatch.setattr(rules, name, never_applies)
    assert answers(doubling, tmp_path) == {"rejected"}


def test_the_verdict_names_the_machine(tmp_path: Path) -> None:
    """It is a registered model, whose properties an accepted log has."""
    outcome = Simulation(example("components").job(), loops=loop_rules("", "any")).run(100_000)
    (found, *_) = changed_logs.verdicts(records_of(outcome), tmp_path, binding.BINDING, "cyclic")
    assert {(r.machine, r.model, r.kind, r.overrides, r.adds) for r in found.machines} == {
        ("LoopHead", "loop_head", "same", (), ())
    }
