"""One channel of credit-based flow control, with both its ends, message by message, as in Flink 1.17 to 2.3.

A credit is a free receive buffer that the consumer has reserved. A data message costs one, an event none; both share one
sequence of numbers. Data carry the producer's backlog: the consumer then requires `backlog + exclusive` buffers and
requests the missing ones as floating buffers. A blocking event stops the subpartition until the consumer resumes it;
without exclusive buffers both ends then restart at zero credit, and the producer announces its backlog in a message of
its own.

Each Flink class has a module: `subpartition`, `reader`, `buffer_manager`, `input_channel`. Each action is one call of a
method of these classes. Calls that Flink nests or makes consecutively in one thread are separate actions, linked by
`sender_backlog` and `credit_gained`. The comment beside a variable names the field of the Flink class.

Abstractions: other channels of the gate (which floating buffers are granted is nondeterministic), contents of buffers
(only sizes), whether the last buffer of a queue is finished or flushed (so the backlog may be one less than what is queued).
"""

from __future__ import annotations

from streamproof_models.credit_channel.channel import (
    BarrierPasses,
    Channel,
    CreditChannel,
    DoubledCredit,
    Renumbered,
    Unpaid,
)
from streamproof_models.credit_channel.messages import BLOCKING, DATA, DATA_TYPES, PRIORITY, TIMEOUTABLE
from streamproof_models.credit_channel.rare_calls import Flink, Outlined, OutlinedCalls, RareCalls

__all__ = [
    "BLOCKING",
    "DATA",
    "DATA_TYPES",
    "PRIORITY",
    "TIMEOUTABLE",
    "BarrierPasses",
    "Channel",
    "CreditChannel",
    "DoubledCredit",
    "Flink",
    "Outlined",
    "OutlinedCalls",
    "RareCalls",
    "Renumbered",
    "Unpaid",
]
