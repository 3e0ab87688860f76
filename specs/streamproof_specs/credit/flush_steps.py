"""What each step of flow control with writers may change, and what must follow."""

from __future__ import annotations

from streamproof import invariant, leads_to, reachable, step, temporal


def released(s, t, c):
    """Whether the step releases a channel."""
    return s.flow.consumer[c] != "GONE" and t.flow.consumer[c] == "GONE"


def writes(s, t, c):
    """Whether the step writes a record, perhaps several: they are gone without a release."""
    return t.writer[c].records_left < s.writer[c].records_left and not released(s, t, c)


def becomes_visible(s, t, c):
    """Whether the step makes the hidden records of a channel visible: it flushes or finishes their buffer."""
    finished = s.writer[c].buffer_builder and not t.writer[c].buffer_builder
    has_hidden = s.writer[c].writer_position > s.writer[c].reader_position or writes(s, t, c)
    return not s.writer[c].flush_requested and (t.writer[c].flush_requested or (finished and has_hidden))


@invariant
def nothing_without_buffer(m, s):
    """A writer without a buffer has written nothing that is not queued, and waits for no flush."""
    return all(
        s.writer[c].buffer_builder
        or (
            s.writer[c].writer_position == 0
            and s.writer[c].reader_position == 0
            and s.writer[c].age == 0
            and not s.writer[c].flush_requested
        )
        for c in range(m.channels)
    )


@invariant
def flushed_is_queued(m, s):
    """Of a buffer that is still written to, at most what is written was sent; flushed records of it are queued to be sent."""
    return all(
        s.writer[c].reader_position <= s.writer[c].writer_position
        and (
            not s.writer[c].flush_requested
            or (s.writer[c].writer_position > s.writer[c].reader_position and s.flow.buffers_in_backlog[c] > 0)
        )
        for c in range(m.channels)
    )


@step
def records_in_order(m, s, t):
    """A record is written to the writer's buffer, one at a time; the buffer is finished when it is full. A writer without
    records gets no buffer."""
    return all(
        released(s, t, c)
        or (
            t.writer[c].records_left == s.writer[c].records_left
            and (t.writer[c].writer_position in (0, s.writer[c].writer_position))
            and (s.writer[c].records_left > 0 or s.writer[c].buffer_builder or not t.writer[c].buffer_builder)
        )
        or (
            t.writer[c].records_left == s.writer[c].records_left - 1
            and s.writer[c].buffer_builder
            and (
                (
                    t.writer[c].buffer_builder
                    and t.writer[c].writer_position == s.writer[c].writer_position + 1
                    and t.writer[c].reader_position == s.writer[c].reader_position
                    and t.writer[c].flush_requested == s.writer[c].flush_requested
                )
                or (not t.writer[c].buffer_builder and s.writer[c].writer_position == m.size - 1)
            )
        )
        for c in range(m.channels)
    )


@step
def queued_when_visible(m, s, t):
    """A buffer is queued once, when its hidden records become visible, and leaves the queue when it is sent."""
    return all(
        released(s, t, c)
        or (
            s.flow.to_produce[c] - t.flow.to_produce[c] == int(becomes_visible(s, t, c))
            and t.flow.buffers_in_backlog[c] - s.flow.buffers_in_backlog[c]
            == int(becomes_visible(s, t, c)) - int(t.flow.in_flight[c] > s.flow.in_flight[c])
        )
        for c in range(m.channels)
    )


@step
def sent_to_its_end(m, s, t):
    """What is sent of a buffer that is still written to are all its records, and only if they were flushed."""
    return all(
        t.writer[c].reader_position in (0, s.writer[c].reader_position)
        or (
            s.writer[c].flush_requested
            and t.writer[c].reader_position == t.writer[c].writer_position
            and not t.writer[c].flush_requested
            and t.flow.in_flight[c] > s.flow.in_flight[c]
        )
        for c in range(m.channels)
    )


@step
def events_one_by_one(m, s, t):
    """An event follows the records before it: their buffer is finished. There are as many events as the task adds."""
    return all(
        released(s, t, c)
        or t.writer[c].events_left == s.writer[c].events_left
        or (t.writer[c].events_left == s.writer[c].events_left - 1 and not t.writer[c].buffer_builder)
        for c in range(m.channels)
    )


@step
def flushed_by_the_clock(m, s, t):
    """The clock goes on by ticks, which age hidden records; the tick that ends a period leaves none hidden."""
    ticks = t.clock != s.clock
    return not ticks or (
        t.clock == (s.clock + 1) % m.timeout
        and all(
            not m.writer[c].hidden(t.writer[c]) or (t.clock != 0 and t.writer[c].age == s.writer[c].age + 1)
            for c in range(m.channels)
        )
    )


@invariant
def nothing_of_a_released_channel(m, s):
    """Nothing is produced, queued, written or required for a released channel, which has its exclusive buffers."""
    return all(
        s.flow.consumer[c] != "GONE"
        or (
            s.flow.to_produce[c] == 0
            and s.flow.buffers_in_backlog[c] == 0
            and s.flow.sender_backlog[c] == 0
            and s.flow.available_buffers[c] == m.exclusive
            and s.writer[c].records_left == 0
            and s.writer[c].events_left == 0
            and not s.writer[c].buffer_builder
        )
        for c in range(m.channels)
    )


@step
def consumers_end(m, s, t):
    """A consumer that has stopped does not read again, and a channel is released once: its credits stay its own. Only a
    consumer that reads takes buffers."""
    return all(
        (s.flow.consumer[c] == "LIVE" or t.flow.consumer[c] in (s.flow.consumer[c], "GONE"))
        and (s.flow.consumer[c] != "GONE" or t.flow.num_credits_available[c] >= s.flow.num_credits_available[c])
        and (
            s.flow.consumer[c] == "LIVE"
            or released(s, t, c)
            or t.flow.received_buffers[c] >= s.flow.received_buffers[c]
        )
        for c in range(m.channels)
    )


@step
def told_backlog(m, s, t):
    """The receiver is told the backlog as it is: with a buffer, or apart, by a sender that has some and no credit."""
    return all(
        t.flow.sender_backlog[c] == s.flow.sender_backlog[c]
        or released(s, t, c)
        or (
            t.flow.sender_backlog[c] == s.flow.buffers_in_backlog[c]
            and (
                t.flow.in_flight[c] < s.flow.in_flight[c]
                or (s.flow.num_credits_available[c] == 0 and s.flow.buffers_in_backlog[c] > 0)
            )
        )
        for c in range(m.channels)
    )


@temporal
def backlog_is_told(m, s):
    """The receiver learns what is queued at a sender without credit, which may get credit or be released before."""
    return all(
        leads_to(
            s.flow.buffers_in_backlog[c] > 0 and s.flow.num_credits_available[c] == 0,
            s.flow.sender_backlog[c] == s.flow.buffers_in_backlog[c]
            or s.flow.num_credits_available[c] > 0
            or s.flow.consumer[c] == "GONE",
        )
        for c in range(m.channels)
    )


@temporal
def pool_lends(m, s):
    """The pool keeps no buffer forever that a channel requires."""
    return all(
        leads_to(
            s.flow.pool > 0
            and s.flow.consumer[c] != "GONE"
            and s.flow.available_buffers[c] < s.flow.sender_backlog[c] + m.exclusive,
            s.flow.pool == 0
            or s.flow.consumer[c] == "GONE"
            or s.flow.available_buffers[c] >= s.flow.sender_backlog[c] + m.exclusive,
        )
        for c in range(m.channels)
    )


@temporal
def time_passes(m, s):
    """The clock goes on, if a period has several ticks."""
    return leads_to(m.timeout > 1 and s.clock == 0, s.clock != 0)


@reachable
def all_read(m, s):
    """All records and events of a channel are written, sent and read."""
    return any(
        s.flow.consumer[c] == "LIVE"
        and s.writer[c].records_left == 0
        and s.writer[c].events_left == 0
        and s.flow.to_produce[c] < m.records
        and m.flow.idle(s.flow, c)
        and not m.writer[c].hidden(s.writer[c])
        for c in range(m.channels)
    )


@reachable
def gone(m, s):
    """A channel is released."""
    return any(s.flow.consumer[c] == "GONE" for c in range(m.channels))


@reachable
def stopped(m, s):
    """A consumer stops with a buffer that it has not read."""
    return any(s.flow.consumer[c] == "STALLED" and s.flow.received_buffers[c] > 0 for c in range(m.channels))


STEPS = (
    nothing_without_buffer,
    flushed_is_queued,
    records_in_order,
    queued_when_visible,
    sent_to_its_end,
    events_one_by_one,
    flushed_by_the_clock,
    nothing_of_a_released_channel,
    consumers_end,
    told_backlog,
    backlog_is_told,
    pool_lends,
    time_passes,
    all_read,
    gone,
    stopped,
)
"""The properties of this module."""
