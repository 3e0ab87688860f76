"""Flow control: items of a channel never exceed its buffers, keep their order, and all arrive, in every simulated run."""

from __future__ import annotations

import random
from collections import deque
from pathlib import Path

import pytest

from runtime_runs import example, verdicts
from streamproof_runtime.flow import Flow
from streamproof_runtime.simulation import WINDOWS, Simulation


@pytest.mark.parametrize("buffers", [1, 2, 3, 8])
def test_a_channel_never_holds_more_than_its_buffers(buffers: int) -> None:
    """Under any interleaving of sender, receiver and delayed credits; at the end every item has arrived, in order."""
    for seed in range(50):
        draw = random.Random(seed)
        sender, receiver = Flow(["c"], [], buffers), Flow([], ["c"], buffers)
        under_way: deque[int] = deque()
        credits: deque[int] = deque()
        made, most = 0, 0
        taken: list[int] = []
        while len(taken) < 40:
            step = draw.randrange(3)
            if step == 0 and made < 40 and not sender.is_blocked(["c"]):
                for item in range(made, min(made + draw.randint(1, 3), 40)):
                    made += 1
                    if sender.admit("c", (item,)):
                        under_way.append(item)
            elif step == 1 and under_way:
                taken.append(under_way.popleft())
                if granted := receiver.free("c"):
                    credits.append(granted)
            elif step == 2 and credits:
                under_way += [item for (item,) in sender.grant("c", credits.popleft())]
            most = max(most, len(under_way))
        assert most <= buffers
        assert taken == list(range(40))


def test_a_channel_without_a_limit_admits_everything() -> None:
    """Feedback: nothing waits, and no credit is returned."""
    flow = Flow(["c"], ["c"], 1)
    assert all(flow.admit("feedback", (n,)) for n in range(100))
    assert flow.free("feedback") == 0
    assert not flow.is_blocked(["feedback"])


@pytest.mark.parametrize("buffers", WINDOWS)
def test_queues_of_simulated_runs_stay_within_their_buffers(buffers: int) -> None:
    """Under heavy faults, with results that are right: no bounded cycle of channels blocks itself."""
    for name in ("collatz", "components", "shortest_paths"):
        module = example(name)
        for seed in range(5):
            run = Simulation(module.job(), seed=seed, level="heavy", buffers=buffers)
            outcome = run.run()
            assert outcome.finished, outcome.reason
            assert outcome.results == module.expected()
            for host in run.hosts.values():
                assert host.executor.longest[False] <= buffers


def test_a_run_with_one_buffer_for_each_channel_is_accepted(tmp_path: Path) -> None:
    """Waiting for credit is an order of steps that the model has."""
    for seed in range(3):
        outcome = Simulation(example("collatz").job(), seed=seed, level="heavy", buffers=1).run()
        assert {v.answer for v in verdicts(outcome, tmp_path)} == {"accepted"}
