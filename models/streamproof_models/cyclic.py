"""Flow control in a loop: operators in a ring, finite buffers, and a feedback edge that may spill to disk.

Records enter at the first operator, the *entry*, which also reads the feedback edge. An operator takes one record, lets
it leave the loop or sends up to `amplification` records on to the next operator, and takes no other before all are
written; writing waits for room. The last operator writes to the feedback edge. A checkpoint barrier enters among the
records, travels around once, and is complete when the entry reads it from the feedback edge.

The `policy` decides which input the entry reads if both have items:

* ``feedback-first``: always the feedback edge;
* ``feedback-first-in-memory``: another interpretation, in which only items in memory count, not those on disk;
* ``feedback-first-when-utilised``: the feedback edge while enough of its items wait to count as utilised, else as ``fair``;
* ``forward-first-until-utilised``: another interpretation of these words, else as ``forward-first``;
* ``fair``: alternately;
* ``forward-first``: always the forward input.

A ``bounded`` feedback edge has its buffers only; a ``spilling`` one writes items without a buffer to disk, and reads
them back in order (FLIP-15, part II).

Abstractions: contents of records, so operators are nondeterministic; time; several operators that read one channel. The
source never ends, but at most `records` exist at a time, which bounds the items on disk: a quantity that grows with
`records` is unbounded.
"""

from __future__ import annotations

from typing import Any, ClassVar

from streamproof import STRONG, WEAK, Enum, Model, Parts, Range, State, action, each, require
from streamproof_models.cyclic_channels import Channel, FeedbackEdge, Operator

FEEDBACK = ("bounded", "spilling")
POLICIES = (
    "feedback-first",
    "feedback-first-in-memory",
    "feedback-first-when-utilised",
    "forward-first-until-utilised",
    "fair",
    "forward-first",
)


class Cyclic(Model):
    """Flow control in a loop of operators with a feedback edge."""

    name = "cyclic"

    operators: int = 2
    """Number of operators in the loop; the first is the entry."""
    buffers: int = 2
    """Capacity of each channel, in items; the feedback edge holds as many in memory."""
    amplification: int = 2
    """Maximum number of records that an operator sends on for one that it takes."""
    records: int = 3
    """Maximum number of records that exist at a time."""
    barriers: int = 1
    """Maximum number of concurrent checkpoint barriers."""
    rounds: int = 0
    """Maximum number of times that a record, including its ancestors, takes the feedback edge; 0: no limit."""
    feedback: str = "spilling"
    """bounded or spilling."""
    policy: str = "fair"
    """The input that the entry reads first, one of POLICIES."""
    utilised: int = 0
    """Number of waiting items from which the feedback edge counts as utilised; 0: its number of buffers."""
    strong: bool = False
    """Whether the entry is strongly fair to each input, or weakly."""
    watch: int = 0
    """Maximum value of counters of waits and logged records; 0: do not count."""

    channel: ClassVar[tuple[Channel, ...]]
    """The channel in front of each operator; the first is the forward input."""
    operator: ClassVar[tuple[Operator, ...]]
    back: ClassVar[FeedbackEdge]

    limits = {
        "operators": (1, None),
        "buffers": (1, None),
        "amplification": (1, None),
        "records": (1, None),
        "barriers": (0, None),
        "rounds": (0, None),
        "utilised": (0, None),
        "watch": (0, None),
    }
    sizes = {
        "small": {},
        "medium": {"operators": 3, "records": 7},
        "large": {"operators": 3, "records": 9, "barriers": 2},
    }

    def setup(self):
        """Derived parameters."""
        for word, known in ((self.feedback, FEEDBACK), (self.policy, POLICIES)):
            if word not in known:
                raise ValueError(f"{word!r} is none of {', '.join(known)}")
        self.last = self.operators - 1
        self.inner = range(1, self.operators)
        self.threshold = self.utilised or self.buffers
        self.most = self.records + self.barriers
        self.spilling = self.feedback == "spilling"

    @property
    def entry(self) -> str:
        """The treatment of the forward input by the policy, as a value of `cyclic_counts`."""
        if self.policy == "feedback-first":
            return "not-waiting"
        return "not-full" if "utilised" in self.policy and self.threshold <= self.buffers else "any"

    def parts(self):
        """The operators, the channel before each, and the feedback edge; the rules synchronise them."""
        return (
            Parts(
                channel=each(self.operators, self.channel_of),
                operator=each(self.operators, self.operator_of),
                back=self.feedback_edge(),
            )
            .block("channel.put", "channel.take", "back.put", "back.take")
            .block("operator.read", "operator.send", "operator.drop")
            .together("read_forward", "from_forward", "channel[0].take", fairness=STRONG if self.strong else WEAK)
            .together("read_feedback", "from_feedback", "back.take", fairness=STRONG if self.strong else WEAK)
        )

    def channel_of(self, i: int) -> Channel:
        """The channel in front of operator `i`."""
        return Channel(buffers=self.buffers, rounds=self.rounds)

    def operator_of(self, i: int) -> Operator:
        """Operator `i`."""
        return Operator(amplification=self.amplification, rounds=self.rounds, closing=i == self.last)

    def feedback_edge(self) -> FeedbackEdge:
        """The feedback edge."""
        return FeedbackEdge(**self.feedback_settings())

    def feedback_settings(self) -> dict[str, Any]:
        """The parameters of the feedback edge."""
        return {
            "buffers": self.buffers,
            "most": self.most,
            "rounds": self.rounds,
            "spilling": self.spilling,
        }

    def state(self):
        """Nothing is under way."""
        return State(
            unborn=Range(0, self.records, init=self.records),
            untriggered=Range(0, self.barriers, init=self.barriers),
            read=Enum("FEEDBACK", "FORWARD"),
            forward_wait=Range(0, self.watch),
            feedback_wait=Range(0, self.watch),
            logged=Range(0, self.watch),
        )

    # --- the source

    @action
    def offer(self, s):
        """The source has a record."""
        require(s.unborn > 0)
        s.unborn -= 1
        self.channel[0].put(s.channel[0], "RECORD", self.rounds)

    @action
    def trigger(self, s):
        """A checkpoint begins: its barrier comes in among the records."""
        require(s.untriggered > 0)
        s.untriggered -= 1
        self.channel[0].put(s.channel[0], "BARRIER", 0)

    # --- the entry

    @action
    def from_forward(self, s):
        """The entry reads its forward input."""
        require(len(s.channel[0].items) > 0)
        require(not self.ready(s) or not self.prefers_feedback(s))
        kind, rounds = s.channel[0].items.head.kind, s.channel[0].items.head.rounds
        s.read = "FORWARD"
        s.forward_wait = 0
        if self.back.waiting(s.back) > 0:
            s.feedback_wait = min(s.feedback_wait + 1, self.watch)
        if kind == "BARRIER":
            s.logged = 0
        self.work(s, 0, kind, rounds)

    @action
    def from_feedback(self, s):
        """The entry reads what came back."""
        require(len(s.back.memory) > 0)
        require(len(s.channel[0].items) == 0 or self.prefers_feedback(s))
        kind, rounds = s.back.memory.head.kind, s.back.memory.head.rounds
        s.read = "FEEDBACK"
        s.feedback_wait = 0
        if len(s.channel[0].items) > 0:
            s.forward_wait = min(s.forward_wait + 1, self.watch)
        if kind == "BARRIER":
            s.logged = 0
        elif self.watch and self.checkpointing(s):
            s.logged = min(s.logged + 1, self.watch)
        self.work(s, 0, kind, rounds)

    def ready(self, s):
        """Whether the feedback edge has an item visible to the entry."""
        if self.policy == "feedback-first-in-memory":
            return len(s.back.memory) > 0
        return self.back.waiting(s.back) > 0

    def prefers_feedback(self, s):
        """Whether the entry reads the feedback edge first."""
        turn = s.read == "FORWARD"
        utilised = self.back.waiting(s.back) >= self.threshold
        return {
            "feedback-first": True,
            "feedback-first-in-memory": True,
            "feedback-first-when-utilised": utilised or turn,
            "forward-first-until-utilised": utilised,
            "fair": turn,
            "forward-first": False,
        }[self.policy]

    def checkpointing(self, s):
        """Whether a barrier is in the loop, so that records from the feedback edge are logged."""
        queues = [s.channel[i].items for i in self.inner] + [s.back.memory, s.back.disk]
        return any(operator.task == "BARRIER" for operator in s.operator) or any(
            item.kind == "BARRIER" for queue in queues for item in queue
        )

    # --- every operator

    @action(i="inner", fairness=WEAK)
    def read_next(self, s, i):
        """An operator behind the entry reads its input."""
        require(len(s.channel[i].items) > 0)
        kind, rounds = s.channel[i].items.head.kind, s.channel[i].items.head.rounds
        self.work(s, i, kind, rounds)
        self.channel[i].take(s.channel[i])

    def work(self, s, i, kind, rounds):
        """Operator `i` takes an item; the records that it creates are taken from the budget."""
        self.operator[i].read(s.operator[i], kind, rounds)
        if s.operator[i].task == "SEND":
            require(s.unborn >= s.operator[i].copies - 1)
            s.unborn -= s.operator[i].copies - 1

    @action(i="operators", fairness=WEAK)
    def send(self, s, i):
        """An operator writes an item to the channel behind it, when there is room."""
        require(i > 0 or not self.completing(s))
        operator = self.operator[i]
        kind, rounds = operator.kind(s.operator[i]), operator.rounds_left(s.operator[i])
        if i == self.last:
            self.back.put(s.back, kind, rounds)
        else:
            self.channel[i + 1].put(s.channel[i + 1], kind, rounds)
        operator.send(s.operator[i])

    @action(i="operators", fairness=WEAK)
    def leave(self, s, i):
        """A record leaves the loop; a barrier that came back has done its work."""
        require(s.operator[i].task == "LEAVE" or (i == 0 and self.completing(s)))
        if s.operator[i].task == "LEAVE":
            s.unborn += 1
        else:
            s.untriggered += 1
        self.operator[i].drop(s.operator[i])

    def completing(self, s):
        """Whether the barrier has returned to the entry: a checkpoint is complete."""
        return s.operator[0].task == "BARRIER" and s.read == "FEEDBACK"
