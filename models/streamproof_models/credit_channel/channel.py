"""One channel, explored with few buffers, and its variants."""

from __future__ import annotations

from streamproof import State, require, terminal
from streamproof_models.credit_channel.input_channel import InputChannel
from streamproof_models.credit_channel.messages import PRIORITY
from streamproof_models.credit_channel.reader import Reader


class Channel(Reader, InputChannel):
    """A reader, an input channel, and the messages between them."""

    check_deadlock = False
    """A consumer may always be slow, so there is no deadlock."""
    limits = {"exclusive": (0, None), "threads": (1, None), "produced": (1, None)}

    def state(self):
        """Nothing is connected."""
        producer = {**self.subpartition_variables(), **self.reader_variables()}
        consumer = {**self.buffer_variables(), **self.channel_variables()}
        return State(**producer, **self.message_variables(), **consumer)

    @terminal
    def released(self, s):
        """Both ends are released."""
        return s.reader_released and s.channel_released


class CreditChannel(Channel):
    """A channel with few buffers, for exploration."""

    name = "credit_channel"

    floating: int = 1
    """Maximum number of buffers that the pool grants to the channel."""
    overtaking: bool = False
    """Whether there are priority events."""
    instance_bounds = ("produced",)
    limits = {"floating": (0, None)}
    sizes = {
        "small": {"produced": 1},
        "medium": {"overtaking": True, "threads": 2},
        "large": {"produced": 3},
    }

    def setup(self):
        """One data type for each treatment, and the arguments of the calls."""
        self.set_data_types(("DATA_BUFFER", "ALIGNED_CHECKPOINT_BARRIER", *[PRIORITY] * self.overtaking))
        self.buffer_sizes = range(2)
        self.backlogs = range(self.produced + 1)
        self.partials = range(1, 2 if self.pipelined else 3)
        self.floating_requests = range(self.floating + 1)
        self.task_threads = range(min(1, self.threads - 1), self.threads)

    def most(self) -> int:
        """Maximum number of buffers and credits of the channel at a time."""
        return self.exclusive + self.floating + self.produced

    # --- bounds of the exploration

    def send_data(self, s, size, backlog, skipped, unfinished, more):
        """An unfinished buffer is sent `produced` times at most."""
        require(not unfinished or s.sequence_number < s.total_number_of_buffers)
        super().send_data(s, size, backlog, skipped, unfinished, more)

    def announce_backlog(self, s, backlog):
        """The backlog is not announced again while an announcement is on its way."""
        require(all(m.message == "BufferResponse" for m in s.responses))
        super().announce_backlog(s, backlog)

    def request_floating_buffers(self, s, got):
        """The pool grants `floating` buffers."""
        require(s.floating_buffers + got <= self.floating)
        super().request_floating_buffers(s, got)

    def accept_floating_buffer(self, s, got, t):
        """The pool grants `floating` buffers."""
        require(s.floating_buffers + got <= self.floating)
        super().accept_floating_buffer(s, got, t)


class DoubledCredit(CreditChannel, variant="doubled-credit"):
    """An AddCredit counts twice."""

    def add_credit(self, s):
        """Twice, as far as the domain allows."""
        require(len(s.add_credits) > 0)
        doubled = s.num_credits_available + 2 * s.add_credits.head
        super().add_credit(s)
        s.num_credits_available = min(doubled, self.most())


class Unpaid(CreditChannel, variant="unpaid"):
    """Data are sent with or without credit."""

    def pay(self, s):
        """Credit is spent if there is any."""
        s.num_credits_available = max(s.num_credits_available - 1, 0)


class BarrierPasses(CreditChannel, variant="barrier-passes"):
    """A blocking event does not stop the subpartition."""

    def block(self, s):
        """Nothing happens."""


class Renumbered(CreditChannel, variant="renumbered"):
    """A released channel that drops what it has received counts from zero again: a late message passes for the first one."""

    def clear_received_buffers(self, s):
        """No number is expected."""
        super().clear_received_buffers(s)
        s.expected_sequence_number = 0
