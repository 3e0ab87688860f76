"""The meaning of a line about a partition: steps of `partition_lifecycle`, and the action that notes the line.

The alternatives of a line exclude one another by the state: steps that must have happened already, and those that have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from streamproof.conformance import Move, Observation

Way: TypeAlias = tuple[Move, ...]
Ways: TypeAlias = tuple[Way, ...]

_LINK = {"j": 0, "e": 0}
CONNECTED: Way = (Move("register", _LINK),)
"""What precedes every deployment."""


def _of(action: str, p: int = 0) -> Move:
    """An action of the only attempt."""
    return Move(action, {"p": p, "a": 0})


def _reader(action: str, p: int = 0) -> Move:
    """An action of the consumer of a partition."""
    return Move(action, {"p": p, "c": 0})


def _deployed(p: int = 0) -> Way:
    return (Move("deploy", {"p": p, "e": 0}), _ORDER)


_ORDER, _REPORT = Move("receive_order", _LINK), Move("receive_report", _LINK)
_CONSUME = Move("consume", {"p": 0, "c": 0, "a": 0})
_RESTART: Way = (_reader("fail"), Move("synchronise", _LINK))
"""The region of a pipelined partition restarts."""

RUNNING: Way = (*CONNECTED, *_deployed())
"""What precedes every line about a partition: its task runs."""
FINISHED: Ways = ((Move("show_finished"),), (_of("finish"), replace(_REPORT, optional=True), Move("show_finished")))
"""The JobMaster gets the report, unless the job is over."""
DEPLOYED: Ways = ((*CONNECTED, _deployed()[0], Move("show_deployed")),)
DISCARDED: Ways = ((Move("show_discarded"),), (_of("discard"), Move("show_discarded")))
_STORED: Way = (_ORDER, _of("finish"), _REPORT, Move("show_ended"))
OUTPUT_FINISHED: Ways = (_STORED, (*DEPLOYED[0][:-1], *_STORED))


def after(move: Move, some: Ways) -> Ways:
    """A move before each of the alternatives."""
    return tuple((move, *way) for way in some)


def begun(observations: Iterable[Observation], first: Way) -> Iterator[Observation]:
    """With steps before the first line."""
    for observation in observations:
        yield replace(observation, alternatives=tuple((*first, *way) for way in observation.alternatives))
        first = ()


def requested(views: int) -> Ways:
    """A request is served: a reader has begun."""
    request = Move("request", {"n": views})
    return (request,), (_reader("begin"), request)


def listed(blocking: bool, job: bool) -> Ways:
    """A list of partitions to release, with or without their job: what the JobMaster has decided before."""
    told = (Move("list_for_release"),)
    if not blocking:
        return (told,)
    if job:
        return told, (Move("end", {"j": 0}), *told)
    release = (_CONSUME, _of("release"), *told)
    return told, release, (_reader("begin"), *release), (_of("discard"), *told)


def consumed(ended: bool) -> Ways:
    """All subpartitions are consumed; `ended`: the readers of a producer that has failed go, too."""
    told, begin = (Move("show_consumed"),), _reader("begin")
    if ended:
        return told, (*_RESTART, *told), (begin, *_RESTART, *told)
    read = (_CONSUME, *told)
    return told, read, (begin, *read), (_of("finish"), *read), (_of("finish"), begin, *read)


def released(blocking: bool) -> Ways:
    """A partition is released: by an order, or because its producer has not finished or its region restarts."""
    told = (Move("show_released"),)
    if blocking:
        return told, (_ORDER, *told), (_of("discard"), _ORDER, *told)
    return told, (*_RESTART, *told), (_reader("begin"), *_RESTART, *told)


def gate_created(gate: int) -> Way:
    """An input gate is created: there is something to read."""
    return (*_deployed(gate), _reader("begin", gate), Move("create", {"i": gate}))


def gate_closed(gate: int, finished: bool) -> Ways:
    """An input gate is released, by a task that has read to the end, or has not finished."""
    told = Move("show_gate_closed", {"i": gate})
    if finished:
        return ((_of("finish", gate), _REPORT, Move("consume", {"p": gate, "c": 0, "a": 0}), told),)
    return ((_reader("fail", gate), told),)


def disconnected(silent: bool) -> Way:
    """A JobMaster has lost, or closes, a connection that it had; the TaskManager loses or closes it, too."""
    told = Move("show_disconnected", {"silent": silent})
    ours, theirs = ("lose_executor", "lose_master") if silent else ("close", "receive_order")
    return (*CONNECTED, Move(ours, _LINK), told, Move(theirs, _LINK))
