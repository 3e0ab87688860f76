"""When a consumer is scheduled: the types of outputs and of scheduling in "A Deep-Dive into Flink's Network Stack".

The article combines three types of subtask output (pipelined and unbounded, pipelined and bounded, blocking) with three
types of scheduling (all at once, next stage on first output, next stage on complete output), calls some combinations
valid, and lets a consumer with several inputs start "after all or after any" producers have produced
(`InputDependencyConstraint`). Here a job has some producers and one consumer of all of them. Each combination is an
instance, so the table is judged, not assumed.

A pipelined result has few buffers, and a producer without one waits; a blocking result has room for everything, and is
read when it is complete. A task holds a slot from its deployment to its end, and there may be fewer slots than tasks.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Enum, Model, Range, State, action, require, terminal

OUTPUTS = ("unbounded", "bounded", "blocking")
SCHEDULING = ("all-at-once", "first-output", "complete-output")
CONSTRAINTS = ("ALL", "ANY")
CONSUMER = "C"


class SchedulingTypes(Model):
    """Producers, and a consumer of all their results."""

    name = "scheduling_types"

    output: str = "bounded"
    """Type of the results: one of `OUTPUTS`."""
    scheduling: str = "first-output"
    """When the consumer is deployed: one of `SCHEDULING`."""
    constraint: str = "ALL"
    """Of how many producers it awaits output: one of `CONSTRAINTS`."""
    producers: int = 2
    """Number of producers."""
    records: int = 2
    """Number of records of each producer; of an unbounded one, those that it counts."""
    buffers: int = 1
    """Records that a pipelined result has room for."""
    slots: int = 3
    """Number of slots."""

    limits = {"producers": (1, None), "records": (1, None), "buffers": (1, None), "slots": (1, None)}
    sizes = {
        "small": {},
        "medium": {"producers": 3, "records": 3, "slots": 4},
        "large": {"producers": 4, "records": 4, "buffers": 2, "slots": 5},
    }

    def setup(self):
        """The tasks. Raises `ValueError` for a type that there is not."""
        for given, known in ((self.output, OUTPUTS), (self.scheduling, SCHEDULING), (self.constraint, CONSTRAINTS)):
            if given not in known:
                raise ValueError(f"{given!r} is none of {', '.join(known)}")
        self.sources = tuple(f"P{i}" for i in range(self.producers))
        self.tasks = (*self.sources, CONSUMER)
        self.room = self.records if self.output == "blocking" else min(self.buffers, self.records)

    def state(self):
        """Nothing is deployed."""
        return State(
            status=Array(self.tasks, Enum("CREATED", "RUNNING", "FINISHED")),
            made=Array(self.sources, Range(0, self.records)),
            waiting=Array(self.sources, Range(0, self.room)),  # records in the result
            read=Array(self.sources, Range(0, self.records)),
        )

    def free_slots(self, s):
        """Number of slots that no task holds."""
        return self.slots - sum(s.status[t] == "RUNNING" for t in self.tasks)

    @action(p="sources", fairness=WEAK)
    def deploy_producer(self, s, p):
        """A producer gets a slot; it has no inputs."""
        require(self.scheduling != "all-at-once" and s.status[p] == "CREATED" and self.free_slots(s) > 0)
        s.status[p] = "RUNNING"

    @action(fairness=WEAK)
    def deploy_consumer(self, s):
        """The consumer gets a slot when its inputs permit it."""
        require(self.scheduling != "all-at-once" and s.status[CONSUMER] == "CREATED" and self.free_slots(s) > 0)
        require(self.among([self.has_output(s, p) for p in self.sources]))
        s.status[CONSUMER] = "RUNNING"

    @action(fairness=WEAK)
    def deploy_job(self, s):
        """All tasks get their slots together."""
        require(self.scheduling == "all-at-once" and s.status[CONSUMER] == "CREATED")
        require(self.free_slots(s) >= len(self.tasks))
        for t in self.tasks:
            s.status[t] = "RUNNING"

    def among(self, inputs):
        """Whether all or any of the inputs permit it, by the constraint."""
        return all(inputs) if self.constraint == "ALL" else any(inputs)

    def has_output(self, s, p):
        """Whether a producer has made what scheduling awaits."""
        return s.status[p] == "FINISHED" if self.scheduling == "complete-output" else s.made[p] > 0

    @action(p="sources", fairness=WEAK)
    def produce(self, s, p):
        """A producer makes a record, and puts it into its result."""
        require(s.status[p] == "RUNNING" and s.waiting[p] < self.room)
        require(s.made[p] < self.records or self.output == "unbounded")
        s.made[p] = min(s.made[p] + 1, self.records)
        s.waiting[p] += 1

    @action(p="sources", fairness=WEAK)
    def finish_producer(self, s, p):
        """A producer has made everything, and gives its slot back; its result stays."""
        require(s.status[p] == "RUNNING" and s.made[p] == self.records and self.output != "unbounded")
        s.status[p] = "FINISHED"

    def is_readable(self, s, p):
        """Whether a result may be read: a blocking one when it is complete."""
        return self.output != "blocking" or s.status[p] == "FINISHED"

    @action(p="sources", fairness=WEAK)
    def read_record(self, s, p):
        """The consumer reads a record."""
        require(s.status[CONSUMER] == "RUNNING" and s.waiting[p] > 0 and self.is_readable(s, p))
        s.waiting[p] -= 1
        s.read[p] = min(s.read[p] + 1, self.records)

    @action(fairness=WEAK)
    def finish_consumer(self, s):
        """The consumer has read everything."""
        require(s.status[CONSUMER] == "RUNNING")
        require(all(s.status[p] == "FINISHED" and s.waiting[p] == 0 for p in self.sources))
        s.status[CONSUMER] = "FINISHED"

    @terminal
    def over(self, s):
        """The consumer has finished."""
        return s.status[CONSUMER] == "FINISHED"


class BoundedOnComplete(SchedulingTypes, variant="bounded-on-complete-output"):
    """The consumer of a pipelined, bounded result is deployed when the result is complete."""

    scheduling: str = "complete-output"


class UnboundedOnComplete(SchedulingTypes, variant="unbounded-on-complete-output"):
    """The consumer of a stream is deployed when the stream has ended."""

    output: str = "unbounded"
    scheduling: str = "complete-output"


class BlockingOnFirst(SchedulingTypes, variant="blocking-on-first-output"):
    """The consumer of a blocking result is deployed at its first record."""

    output: str = "blocking"


class BlockingAtOnce(SchedulingTypes, variant="blocking-all-at-once"):
    """The consumer of a blocking result is deployed with its producers."""

    output: str = "blocking"
    scheduling: str = "all-at-once"


class AnyInput(SchedulingTypes, variant="blocking-any-input"):
    """The consumer is deployed when one of its inputs is complete, in the only slot: it awaits a producer without one."""

    output: str = "blocking"
    scheduling: str = "complete-output"
    constraint: str = "ANY"
    slots: int = 1


class FewSlots(SchedulingTypes, variant="bounded-with-few-slots"):
    """Pipelined results, and a slot less than tasks: both producers fill their buffers and await the consumer."""

    slots: int = 2


class UnboundedAtOnce(SchedulingTypes, variant="unbounded-all-at-once"):
    """A streaming job."""

    output: str = "unbounded"
    scheduling: str = "all-at-once"


class UnboundedOnFirst(SchedulingTypes, variant="unbounded-on-first-output"):
    """A streaming job whose consumer is deployed at the first record: "currently not used by Flink"."""

    output: str = "unbounded"


class BoundedAtOnce(SchedulingTypes, variant="bounded-all-at-once"):
    """A pipelined batch job deployed like a streaming job."""

    scheduling: str = "all-at-once"


class BlockingOnComplete(SchedulingTypes, variant="blocking-on-complete-output"):
    """A batch job, one stage after the other, in one slot."""

    output: str = "blocking"
    scheduling: str = "complete-output"
    slots: int = 1
