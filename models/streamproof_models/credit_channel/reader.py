"""The producer's end of `credit_channel`: Flink's `CreditBasedSequenceNumberingViewReader` and `PartitionRequestQueue`."""

from __future__ import annotations

from typing import Any

from streamproof import WEAK, Bool, Range, action, require
from streamproof_models.credit_channel.messages import END_OF_PARTITION
from streamproof_models.credit_channel.subpartition import Subpartition


class Reader(Subpartition):
    """The reader of a subpartition: it sends buffers and events to the consumer, buffers for credit."""

    def reader_variables(self) -> dict[str, Any]:
        """There is no reader."""
        return {
            # CreditBasedSequenceNumberingViewReader
            "reader_created": Bool(),  # the PartitionRequest has arrived
            "num_credits_available": Range(0, self.most()),  # numCreditsAvailable
            "is_registered_as_available": Bool(),  # isRegisteredAsAvailable
            "reader_released": Bool(),  # releaseAllResources was called
            # PartitionRequestQueue
            "in_all_readers": Bool(),  # allReaders contains the reader
            "in_available_readers": Bool(),  # availableReaders contains the reader
            "cancel_requests": Range(0, (self.produced + 1) * 3 + 1),  # number of CancelPartitionRequests received
        }

    # --- messages from the consumer

    @action
    def request_subpartition_view(self, s):
        """A PartitionRequest arrives, with the initial credit."""
        require(s.partition_requests > 0)
        s.partition_requests -= 1
        s.reader_created = True
        s.num_credits_available = self.exclusive

    @action(fairness=WEAK)
    def notify_reader_created(self, s):
        """The partition exists: the reader gets its view and is added to `allReaders`."""
        require(s.reader_created and not s.in_all_readers and not s.reader_released and not s.subpartition_released)
        s.in_all_readers = True

    @action(fairness=WEAK)
    def add_credit(self, s):
        """An AddCredit arrives."""
        require(s.in_all_readers and len(s.add_credits) > 0)
        s.num_credits_available += s.add_credits.pop()
        if s.add_credits_before_resume > 0:
            s.add_credits_before_resume -= 1

    @action(fairness=WEAK)
    def resume_subpartition(self, s):
        """ResumeConsumption arrives. Without exclusive buffers the credit restarts at zero."""
        require(s.in_all_readers and s.is_blocked)
        require(s.resume_consumption_sent and s.add_credits_before_resume == 0)
        s.resume_consumption_sent = False
        s.is_blocked = False
        if self.exclusive == 0:
            s.num_credits_available = 0

    @action
    def cancel(self, s):
        """A CancelPartitionRequest arrives: the consumer sends one when it releases the channel, and one more for each
        message that arrives later. A reader in `allReaders` is then released; of any other the registration stays."""
        require(s.reader_created and s.channel_released)
        self.may_cancel(s)
        s.cancel_requests += 1
        s.in_available_readers = False

    def may_cancel(self, s):
        """Each message that was not received, and is on its way or was discarded, may have had its request to cancel."""
        require(s.cancel_requests <= max(len(s.responses), s.sequence_number - s.expected_sequence_number))

    @action
    def release_reader(self, s):
        """The reader is released, by a CancelPartitionRequest or with the connection."""
        require(s.reader_created and s.in_all_readers)
        s.in_all_readers = False
        s.in_available_readers = False
        s.is_registered_as_available = False
        s.reader_released = True

    # --- messages to the consumer

    @action(size="buffer_sizes", backlog="backlogs", skipped=[0, 1], unfinished=Bool(), more=Bool(), fairness=WEAK)
    def send_data(self, s, size, backlog, skipped, unfinished, more):
        """A buffer is sent for a credit, behind `skipped` empty ones that are dropped. `unfinished`: the task still writes
        to it. `more`: `nextDataType` is not NONE."""
        require(self.pipelined and (size > 0 or self.exclusive == 0))
        self.poll_reader(s)
        data_type = self.poll_data(s, skipped, unfinished)
        self.pay(s)
        require(self.is_backlog(s, backlog))
        self.respond(s, data_type, size, backlog)
        self.register_again(s, more)

    @action(size="buffer_sizes", backlog="backlogs", skipped=[0, 1], more=Bool(), fairness=WEAK)
    def send_event(self, s, size, backlog, skipped, more):
        """An event is sent, without credit."""
        require(self.pipelined)
        self.poll_reader(s)
        data_type = self.poll_event(s, skipped)
        if data_type in self.blocking:
            require(backlog == 0)
            self.block(s)
        else:
            require(self.is_backlog(s, backlog))
        self.respond(s, data_type, size, backlog)
        self.register_again(s, more)

    @action(data_type="data_types", size="buffer_sizes", backlog="backlogs", partial_buffers="partials", fairness=WEAK)
    def send_stored(self, s, data_type, size, backlog, partial_buffers):
        """A message of a blocking partition is sent; it may contain several partial buffers, for one credit."""
        require(not self.pipelined and not s.is_finished and not s.is_blocked)
        require(s.total_number_of_buffers < self.produced)
        self.poll_reader(s)
        s.total_number_of_buffers += 1
        if data_type in self.data:
            self.pay(s)
        else:
            require(partial_buffers == 1)
        if data_type in self.blocking:
            require(backlog == 0)
            self.block(s)
        if data_type == END_OF_PARTITION:
            s.is_finished = True
        self.respond(s, data_type, size, backlog, partial_buffers)

    @action(backlog="backlogs", fairness=WEAK)
    def announce_backlog(self, s, backlog):
        """Without initial credit, a reader that has no credit announces its backlog."""
        require(self.exclusive == 0 and s.num_credits_available == 0 and backlog > 0)
        require(not s.is_registered_as_available and not s.is_blocked)
        self.poll_reader(s)
        if self.pipelined:
            require(len(s.priority_buffers) == 0 and len(s.buffers) > 0 and s.buffers.head in self.data)
            require(self.is_backlog(s, backlog))
        self.write(s, "BacklogAnnouncement", self.data_types[0], 0, 0, backlog, 1)

    def poll_reader(self, s):
        """The reader is polled from `availableReaders`, to which a notification may just have added it. One that is
        registered as available and not there is never added again."""
        require(s.reader_created and (s.in_all_readers or self.sends_late(s)))
        require(s.in_available_readers or not s.is_registered_as_available)
        s.in_available_readers = False
        s.is_registered_as_available = False

    def sends_late(self, s):
        """A notification on its way adds a cancelled reader again: it sends what is left in a pipelined partition."""
        return self.pipelined and s.reader_released and s.cancel_requests > 0

    def register_again(self, s, more):
        """The reader remains available if it can send more."""
        require(not more or self.has_next(s))
        s.in_available_readers = more
        s.is_registered_as_available = more

    def pay(self, s):
        """A message with data costs one credit."""
        require(s.num_credits_available > 0)
        s.num_credits_available -= 1

    def respond(self, s, data_type, size, backlog, partial_buffers=1):
        """A BufferResponse is written; each of its partial buffers has a sequence number."""
        self.write(s, "BufferResponse", data_type, s.sequence_number, size, backlog, partial_buffers)
        s.sequence_number += partial_buffers

    def write(self, s, message, data_type, sequence_number, size, backlog, partial_buffers):
        """A message is written to the connection."""
        fields = {"data_type": data_type, "sequence_number": sequence_number, "partial_buffers": partial_buffers}
        s.responses.push({"message": message, "size": size, "backlog": backlog, **fields})
