"""The TaskExecutor as a state machine without input and output: subtasks of one attempt, their items, their failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from streamproof_runtime import messages as m
from streamproof_runtime.errors import OutsideSimulation, Unsendable
from streamproof_runtime.flow import BUFFERS, Flow
from streamproof_runtime.graph import ExecutionGraph
from streamproof_runtime.jobmaster import NAME as JOBMASTER
from streamproof_runtime.subtask import TAKE, TERMINATED, Item, Subtask, TaskPlan


class ExecutorHost(Protocol):
    """What a TaskExecutor may do to the world."""

    def send(self, target: str, message: m.Message) -> None:
        """Sends a message. Raises `Unsendable` for a record that cannot leave the process."""

    def woken(self, subtask: Subtask) -> None:
        """A subtask may have something to do."""

    def stopped(self) -> None:
        """All subtasks are gone."""

    def create(self, plan: TaskPlan, attempt: int) -> Subtask:
        """A new subtask of an attempt."""


class TaskExecutor:
    """Runs the subtasks that the JobMaster deploys to it."""

    def __init__(
        self,
        name: str,
        slots: int,
        graph: ExecutionGraph,
        plans: Mapping[str, TaskPlan],
        host: ExecutorHost,
        incarnation: int = 0,
        buffers: int = BUFFERS,
    ) -> None:
        self.name, self.slots, self.incarnation, self.buffers = name, slots, incarnation, buffers
        self.graph, self.plans, self.host = graph, plans, host
        self.attempt = -1
        self.is_running = False
        self.subtasks: dict[str, Subtask] = {}
        self.placement: Mapping[str, str] = {}
        self.peers: frozenset[str] = frozenset()
        self.flow = Flow((), ())
        self._reported: set[str] = set()
        self.longest = {False: 0, True: 0}
        """Largest number of items in an input queue, without and with feedback."""

    def register(self) -> None:
        """Offers the slots to the JobMaster."""
        self.host.send(JOBMASTER, (m.REGISTER, self.incarnation, self.slots))

    def on_message(self, peer: str, message: m.Message) -> None:
        """A message of the JobMaster, or an item of another TaskExecutor."""
        kind = message[0]
        if kind == m.DATA:
            if message[1] == self.attempt and self.subtasks:
                self.deliver(message[2], message[3])
        elif kind == m.CREDIT:
            if message[1] == self.attempt and self.subtasks:
                try:
                    self.grant(message[2], message[3])
                except Unsendable as error:
                    self.fail(f"{message[2]}: {error}", fatal=True)
        elif kind == m.HEARTBEAT:
            self.host.send(JOBMASTER, (m.ALIVE,))
        elif kind == m.DEPLOY and message[1] > self.attempt:
            self.deploy(message[1], message[2])
        elif kind == m.START and message[1] == self.attempt and self.subtasks:
            self.is_running = True
            for subtask in self.subtasks.values():
                self.host.woken(subtask)
        elif kind == m.CANCEL and message[1] >= self.attempt:
            self.cancel(message[1])

    def deploy(self, attempt: int, placement: Mapping[str, str]) -> None:
        """Creates the subtasks of an attempt."""
        self.cancel(attempt)
        self.placement = placement
        own = [task for task, executor in placement.items() if executor == self.name]
        self.subtasks = {task: self.host.create(self.plans[task], attempt) for task in own}
        channels = self.graph.channels.values()
        ends = [(c.source, c.target) for c in channels if {c.source, c.target} & {*own}]
        limited = [c for c in channels if not c.edge.feedback]
        outgoing = [c.name for c in limited if c.source in self.subtasks]
        self.flow = Flow(outgoing, [c.name for c in limited if c.target in self.subtasks], self.buffers)
        self.peers = frozenset(placement[t] for pair in ends for t in pair) - {self.name}
        self.host.send(JOBMASTER, (m.DEPLOYED, attempt))

    def cancel(self, attempt: int) -> None:
        """Drops all subtasks; messages up to this attempt are ignored from here on."""
        self.attempt, self.is_running, self.subtasks, self._reported = attempt, False, {}, set()
        self.peers = frozenset()
        self.host.stopped()

    def on_lost(self, peer: str) -> None:
        """A lost connection ends the attempt that uses it; without the JobMaster there is no attempt."""
        if peer == JOBMASTER:
            self.cancel(self.attempt)
            self.register()
        elif peer in self.peers and self.subtasks:
            self.fail(f"connection from {self.name} to {peer} lost", fatal=False)

    def fail(self, reason: str, *, fatal: bool) -> None:
        """Reports that this attempt cannot go on, and drops its subtasks."""
        attempt = self.attempt
        self.cancel(attempt)
        self.host.send(JOBMASTER, (m.FAILED, attempt, reason, fatal))

    def deliver(self, channel: str, item: Item) -> None:
        """An item has arrived for a subtask."""
        to = self.graph.channels[channel]
        subtask = self.subtasks[to.target]
        subtask.deliver(channel, item)
        if len(subtask.queues[channel]) > self.longest[to.edge.feedback]:
            self.longest[to.edge.feedback] = len(subtask.queues[channel])
        if self.is_running:
            self.host.woken(subtask)

    def can_step(self, subtask: Subtask) -> bool:
        """Whether a subtask has something to do, and none of its outputs waits for credit."""
        return not self.flow.is_blocked(subtask.plan.outputs) and bool(subtask.enabled())

    def step(self, subtask: Subtask, choose: Callable[[int], int]) -> bool:
        """A subtask does one of its enabled actions, if any; what it sends is delivered or leaves. Whether it did one."""
        enabled = () if self.flow.is_blocked(subtask.plan.outputs) else subtask.enabled()
        if not enabled:
            return False
        kind, taken = action = enabled[choose(len(enabled)) if len(enabled) > 1 else 0]
        try:
            subtask.do(action)
        except OutsideSimulation:
            raise
        except Exception as error:  # of a user function
            self.fail(f"{subtask.name}: {type(error).__name__}: {error}", fatal=True)
            return True
        try:
            self._carry_on(subtask, taken if kind is TAKE else "")
        except Unsendable as error:
            self.fail(f"{subtask.name}: {error}", fatal=True)
        return True

    def _carry_on(self, subtask: Subtask, taken: str) -> None:
        """After a step: returns the credit of an item that was taken, sends, and reports the end of a subtask."""
        if taken:
            self.free(taken)
        sent, subtask.sent = subtask.sent, []
        for channel, item in sent:
            if self.flow.admit(channel, item):
                self.carry(channel, item)
        if subtask.phase == TERMINATED and subtask.name not in self._reported:
            self._reported.add(subtask.name)
            self.host.send(JOBMASTER, (m.FINISHED, self.attempt, subtask.name, subtask.result()))

    def carry(self, channel: str, item: Item) -> None:
        """Takes an item to the receiver of its channel."""
        target = self.placement[self.graph.channels[channel].target]
        if target == self.name:
            self.deliver(channel, item)
        else:
            self.host.send(target, (m.DATA, self.attempt, channel, item))

    def free(self, channel: str) -> None:
        """A subtask has taken an item: its buffer is free, and the sender of the channel learns of it in time."""
        credits = self.flow.free(channel)
        if credits:
            source = self.placement[self.graph.channels[channel].source]
            if source == self.name:
                self.grant(channel, credits)
            else:
                self.host.send(source, (m.CREDIT, self.attempt, channel, credits))

    def grant(self, channel: str, credits: int) -> None:
        """The receiver of a channel has free buffers."""
        for item in self.flow.grant(channel, credits):
            self.carry(channel, item)
        if self.is_running:
            self.host.woken(self.subtasks[self.graph.channels[channel].source])
