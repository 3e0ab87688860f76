"""Rules grounded one by one are the rules that are spelt out."""

from __future__ import annotations

from collections import deque

import pytest

from streamproof.language.declare.spec import compile_model
from streamproof.language.free.grounding import Rules
from streamproof.system import Interpreter
from streamproof_models.credit_channel import CreditChannel
from streamproof_specs.credit_channel.flink.recorded_machine import RecordedChannel


@pytest.mark.parametrize("model", [CreditChannel(produced=1), CreditChannel(produced=1, exclusive=0, threads=2)])
def test_each_instance_steps_as_the_one_that_was_spelt_out(model: CreditChannel) -> None:
    """In some hundred reachable states every action with every argument leads where the compiled one leads."""
    system, rules = compile_model(model), Rules(model)
    spelt, simplified = Interpreter(system), Interpreter(rules.system)
    assert rules.system.variables == system.variables
    assert set(rules.actions) == {a.name for a in system.actions} | {"send_stored"}
    queue = deque(spelt.initial_states())
    seen = set(queue)
    compared = 0
    while queue and len(seen) < 400:
        state = queue.popleft()
        for instance in system.instances:
            after = spelt.take(instance, state)
            found = rules.instances(instance.action, dict(instance.args))
            assert [s for i in found if (s := simplified.take(i, state)) is not None] == (
                [] if after is None else [after]
            )
            compared += 1
            if after is not None and after not in seen:
                seen.add(after)
                queue.append(after)
    assert compared > 1000


def test_numbers_have_no_bound_that_matters() -> None:
    """A rule is asked for with a number that no enumeration would reach; outside of its range there is none."""
    rules = Rules(RecordedChannel(pipelined=False))
    (instance,) = rules.instances(
        "send_stored", {"data_type": "END_OF_DATA", "size": 123456789, "backlog": 0, "partial_buffers": 1}
    )
    assert instance.args == (("data_type", "END_OF_DATA"), ("size", 123456789), ("backlog", 0), ("partial_buffers", 1))
    assert (
        rules.instances("send_stored", {"data_type": "END_OF_DATA", "size": -1, "backlog": 0, "partial_buffers": 1})
        == ()
    )
    assert rules.instances("no_such_action", {}) == ()
