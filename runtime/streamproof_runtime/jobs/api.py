"""The API of jobs: streams, operators, loops; scopes are inferred, and operations across scopes are refused.

Stateless operators (`map`, `flat_map`, `filter`) are chained to the operator before them; a chain never crosses a scope.
The stream that a loop returns has the scope around the loop, whichever operator produces it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from streamproof_runtime.errors import JobError
from streamproof_runtime.jobs.functions import (
    Key,
    Process,
    Transform,
    forward,
    grouping,
    joining,
    reducing,
    to_dict,
    to_list,
)
from streamproof_runtime.jobs.input_policies import POLICIES
from streamproof_runtime.jobs.scopes import Scope
from streamproof_runtime.jobs.slot_sharing import groups

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_JOB_NAME = re.compile(r"\w[\w.-]*")
MOST = 4_096
"""Largest parallelism of an operator."""
PIPELINED, BLOCKING, CACHING, MEMORY_ONLY = EXCHANGE_TYPES = ("pipelined", "blocking", "caching", "memory-only caching")
"""Whether the reader of a stream runs while it is made, or starts when the whole stream is stored."""
STREAMING, BATCH = MODES = ("streaming", "batch")
"""Modes of a job: by default its exchanges are pipelined, or blocking between operators outside loops."""


class Exchange(Enum):
    """How the records of an edge are distributed to the subtasks of its target."""

    FORWARD = "forward"
    """To the subtask of the same number."""
    HASH = "hash"
    """By the key of the record."""
    REBALANCE = "rebalance"
    """To each subtask in turn."""
    BROADCAST = "broadcast"
    """To every subtask."""


@dataclass(frozen=True, slots=True)
class Pipe:
    """A chain of stateless functions on the way from one operator to an input of another."""

    transforms: tuple[Transform, ...]
    side: int = 0


@dataclass(slots=True)
class Edge:
    """A stream between two operators: several pipes, if the target reads several streams of the source."""

    source: str
    target: str
    scope: Scope
    exchange: Exchange
    key: Key | None
    pipes: list[Pipe]
    feedback: bool = False
    exchange_type: str = PIPELINED

    @property
    def is_stored(self) -> bool:
        """Whether the source finishes before the target starts; its output is stored."""
        return self.exchange_type != PIPELINED


@dataclass(slots=True)
class Operator:
    """An operator: a source has `items`, every other one a process for each input."""

    name: str
    scope: Scope
    parallelism: int
    inputs: tuple[tuple[Process, Key | None], ...] = ()
    items: Sequence[Any] | None = None
    is_sink: bool = False
    reads: str = ""
    """A source of stored partitions: their dataset."""
    writes: str = ""
    """A sink that stores partitions: their dataset."""
    input_policy: str = ""
    """A head: which input it reads first, one of `input_policies.POLICIES`; empty: that of the run."""
    slot_sharing_group: str = ""
    """Empty: that of its inputs."""
    co_location: str = ""
    """The operators of a co-location group share slots, subtask by subtask; empty: none."""


@dataclass
class Job:
    """A job under construction."""

    name: str = "job"
    operators: dict[str, Operator] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    mode: str = STREAMING
    chains: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    """Operators to which one stateless function is chained, and their slot sharing group, if it depends on that."""

    def __post_init__(self) -> None:
        """Raises `JobError` for an unknown mode, and a name that is not plain: events are told apart by it."""
        if not isinstance(self.name, str) or not _JOB_NAME.fullmatch(self.name):
            raise JobError(f"{self.name!r} cannot name a job; use letters, digits, _, - and ., a letter or digit first")
        if self.mode not in MODES:
            raise JobError(f"job {self.name} has the mode {self.mode!r}; there are {', '.join(MODES)}")

    def source(self, name: str, items: Sequence[Any], parallelism: int = 1) -> Stream:
        """A stream of the items; subtask i of n emits every n-th item from the i-th on.

        Raises `JobError` for items that are not a sequence: an attempt that is repeated reads them again.
        """
        if not isinstance(items, Sequence):
            raise JobError(f"the items of source {name} are a {type(items).__name__}; give a sequence, such as a list")
        self.add(Operator(name, Scope(), parallelism, items=items))
        return Stream(self, Scope(), ((name, ()),))

    def add(self, operator: Operator) -> None:
        """Adds an operator. Raises `JobError` for a name that is not plain or not new, and for a parallelism that is none."""
        if not _NAME.fullmatch(operator.name):
            raise JobError(f"{operator.name!r} cannot name an operator; use letters, digits and _, a letter first")
        if operator.input_policy and operator.input_policy not in POLICIES:
            known = ", ".join(POLICIES)
            raise JobError(f"operator {operator.name} has the input policy {operator.input_policy!r}, none of {known}")
        if type(operator.parallelism) is not int or not 1 <= operator.parallelism <= MOST:
            given = f"operator {operator.name} has parallelism {operator.parallelism!r}"
            raise JobError(f"{given}; give a number from 1 to {MOST:,}")
        for other in self.operators.values():
            common = set(subtask_names(other)) & set(subtask_names(operator))
            if other.name == operator.name or common:
                raise JobError(f"operators {other.name} and {operator.name} need different names")
        self.operators[operator.name] = operator

    def slot_sharing_groups(self) -> dict[str, str]:
        """The slot sharing group of each operator. Raises `JobError` if a function would be chained across groups."""
        given = {name: operator.slot_sharing_group for name, operator in self.operators.items()}
        found = groups(given, ((e.source, e.target) for e in self.edges if not e.feedback))
        for makers, group in self.chains:
            for maker in makers:
                if found[maker] != (group or found[makers[0]]):
                    raise JobError(
                        f"{maker} (slot sharing group {found[maker]}) and {makers[0]} (slot sharing group "
                        f"{found[makers[0]]}): "
                        f"a function that is chained to {' and '.join(dict.fromkeys(makers))} was in one group with them; "
                        "name the groups of operators before their streams are used"
                    )
        return found

    def connect(self, stream: Stream, target: str, *, side: int = 0, feedback: bool = False) -> None:
        """Makes an operator read a stream."""
        to = self.operators[target]
        for maker, transforms in stream.origins:
            edge = self._edge(stream, maker, to, feedback)
            edge.pipes.append(Pipe(transforms, side))

    def _edge(self, stream: Stream, maker: str, to: Operator, feedback: bool) -> Edge:
        aligned = self.operators[maker].parallelism == to.parallelism
        exchange = stream.exchange
        if exchange is Exchange.FORWARD and not aligned:
            exchange = Exchange.REBALANCE
        exchange_type = self._exchange_type(stream, maker, to, feedback)
        for edge in self.edges:
            if (edge.source, edge.target, edge.feedback) == (maker, to.name, feedback):
                if (edge.exchange, edge.key, edge.exchange_type) != (exchange, stream.key, exchange_type):
                    raise JobError(f"{to.name} reads {maker} by two different exchanges; put an operator between them")
                return edge
        self.edges.append(Edge(maker, to.name, stream.scope, exchange, stream.key, [], feedback, exchange_type))
        return self.edges[-1]

    def _exchange_type(self, stream: Stream, maker: str, to: Operator, feedback: bool) -> str:
        if stream.exchange_type:
            if stream.exchange_type not in EXCHANGE_TYPES:
                known = ", ".join(EXCHANGE_TYPES)
                raise JobError(f"{to.name} reads {maker} by the exchange {stream.exchange_type!r}; there are {known}")
            return stream.exchange_type
        in_loop = feedback or to.scope.level or self.operators[maker].scope.level
        return BLOCKING if self.mode == BATCH and not in_loop else PIPELINED


def subtask_names(operator: Operator) -> tuple[str, ...]:
    """The subtasks of an operator: its name, with a number if there are several."""
    n = operator.parallelism
    return (operator.name,) if n == 1 else tuple(f"{operator.name}{i}" for i in range(n))


@dataclass(frozen=True)
class Stream:
    """A stream of one scope: the operators that make it, each with the stateless functions chained to it."""

    job: Job
    scope: Scope
    origins: tuple[tuple[str, tuple[Transform, ...]], ...]
    exchange: Exchange = Exchange.FORWARD
    key: Key | None = None
    exchange_type: str = ""
    """One of `EXCHANGE_TYPES`; empty: by the mode of the job."""

    @property
    def makers(self) -> str:
        """The operators that make it, for messages."""
        return " and ".join(self._all_makers())

    # --- stateless operators

    def map(self, function: Callable[[Any], Any]) -> Stream:
        """One output for each record."""
        return self.flat_map(lambda record: (function(record),))

    def filter(self, test: Callable[[Any], Any]) -> Stream:
        """The records for which `test` is true."""
        return self.flat_map(lambda record: (record,) if test(record) else ())

    def flat_map(self, function: Transform) -> Stream:
        """Any number of outputs for each record."""
        if not self._is_made_in_scope():
            return self._task(function, 1)
        if self.exchange is not Exchange.FORWARD or self.exchange_type or not self._has_one_group():
            return self._task(function)
        origins = tuple((maker, (*transforms, function)) for maker, transforms in self.origins)
        return Stream(self.job, self.scope, origins)

    def _all_makers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(maker for maker, _ in self.origins))

    def _is_made_in_scope(self) -> bool:
        """Whether it is not the output of a loop."""
        return all(self.job.operators[maker].scope == self.scope for maker in self._all_makers())

    def _has_one_group(self) -> bool:
        """Whether a function may be chained to all operators that make the stream."""
        makers = self._all_makers()
        if len(makers) == 1:
            return True
        found = self.job.slot_sharing_groups()
        if len({found[maker] for maker in makers}) > 1:
            return False
        self.job.chains.append((makers, ""))
        return True

    def _task(self, function: Transform, parallelism: int = 0) -> Stream:
        """A stateless operator with a task of its own, by default of the parallelism of what makes the stream."""
        parallelism = parallelism or max(self.job.operators[maker].parallelism for maker in self._all_makers())
        used = (f"map_{n}" for n in range(1, len(self.job.operators) + 2))
        name = next(name for name in used if name not in self.job.operators)
        return self.process(name, lambda _context, record: function(record), parallelism)

    # --- slots

    def slot_sharing_group(self, name: str) -> Stream:
        """The same stream; the operator that makes it is in this slot sharing group, and shares no slot with those of others.

        A reader without a group of its own is in it, too, unless it reads streams of several. A stateless operator is not
        chained to one of another group. Raises `JobError` for a union, and for the output of a loop.
        """
        if not isinstance(name, str) or not name:
            raise JobError(f"the slot sharing group of {self.makers} needs a name, a text, not {name!r}")
        last = {transforms[-1:] for _, transforms in self.origins}
        if last == {()} or len(last) > 1 or not self._is_made_in_scope():
            self._maker("a slot sharing group").slot_sharing_group = name
            return self
        makers = self._all_makers()
        found = self.job.slot_sharing_groups()
        if {found[maker] for maker in makers} == {name}:
            self.job.chains.append((makers, name))
            return self
        ((function,),) = last
        before = Stream(self.job, self.scope, tuple((maker, transforms[:-1]) for maker, transforms in self.origins))
        made = before._task(function)
        made._maker("").slot_sharing_group = name
        return replace(made, exchange=self.exchange, key=self.key, exchange_type=self.exchange_type)

    def co_location_group(self, name: str) -> Stream:
        """The same stream; subtask i of the operator that makes it is in one slot with subtask i of all others of this group.

        Raises `JobError` for a union, the output of a loop, and a stateless operator, which has no subtasks of its own.
        """
        if not isinstance(name, str) or not name:
            raise JobError(f"the co-location group of {self.makers} needs a name, a text, not {name!r}")
        if any(transforms for _, transforms in self.origins) and self._is_made_in_scope():
            raise JobError(
                f"a co-location group of a function that is chained to {self.makers}: give it to {self.makers}"
            )
        self._maker("a co-location group").co_location = name
        return self

    def _maker(self, what: str) -> Operator:
        """The operator that makes the stream, if there is only one, in its scope."""
        makers = self._all_makers()
        if len(makers) > 1:
            raise JobError(f"{what} of the union of {self.makers}: give it to the operators, or to one that reads them")
        operator = self.job.operators[makers[0]]
        if operator.scope != self.scope:
            raise JobError(
                f"{what} of the output of loop {operator.scope}, which {operator.name} makes: give it to {operator.name} "
                "in the loop, or to an operator that reads the output"
            )
        return operator

    # --- exchanges

    def key_by(self, key: Key) -> Stream:
        """The same stream, distributed by key: the operator that reads it has one state for each key."""
        return replace(self, exchange=Exchange.HASH, key=key)

    def rebalance(self) -> Stream:
        """The same stream, distributed in turn."""
        return replace(self, exchange=Exchange.REBALANCE, key=None)

    def broadcast(self) -> Stream:
        """The same stream, sent to every subtask."""
        return replace(self, exchange=Exchange.BROADCAST, key=None)

    def exchanged(self, exchange_type: str) -> Stream:
        """The same stream by an exchange of `EXCHANGE_TYPES`. The operator that reads it refuses an unknown one.

        Raises `JobError` for one that stores inside a loop, whose operators cannot wait for each other.
        """
        if not exchange_type:
            raise JobError(f"an exchange of {self.makers} without a name; there are {', '.join(EXCHANGE_TYPES)}")
        if self.scope.level and exchange_type in EXCHANGE_TYPES[1:]:
            raise JobError(
                f"the stream of {self.makers} (scope {self.scope}) is in a loop; only root streams are stored"
            )
        return replace(self, exchange_type=exchange_type)

    def caching(self) -> Stream:
        """The same stream, stored until the job is over: an operator that reads it again does not have it made again.

        Raises `JobError` inside a loop.
        """
        return self.exchanged(CACHING)

    def memory_only_caching(self) -> Stream:
        """The same stream, stored in memory as long as there is room, at least until it has been read; else as `caching`.

        Raises `JobError` inside a loop.
        """
        return self.exchanged(MEMORY_ONLY)

    def blocking(self) -> Stream:
        """The same stream, stored: the operator that reads it starts when the whole stream is there, and may read it again.

        Raises `JobError` inside a loop.
        """
        return self.exchanged(BLOCKING)

    def pipelined(self) -> Stream:
        """The same stream, read while it is made, also in batch mode."""
        return self.exchanged(PIPELINED)

    def union(self, other: Stream) -> Stream:
        """The records of both, exchanged as both are; raises `JobError` unless both have one scope and one exchange."""
        self._expect_same_scope("union", other)
        if (self.exchange, self.key, self.exchange_type) != (other.exchange, other.key, other.exchange_type):
            raise JobError(
                f"union of {self.makers} with {other.makers}: one of them is exchanged in another way; "
                "unite the streams first, and name the exchange of the union"
            )
        return replace(self, origins=self.origins + other.origins)

    # --- operators with a task of their own

    def process(self, name: str, function: Process, parallelism: int = 1) -> Stream:
        """The outputs of a stateful function."""
        return self._operator(Operator(name, self.scope, parallelism, ((function, self.key),)))

    def reduce(self, name: str, function: Callable[[Any, Any], Any], parallelism: int = 1) -> Stream:
        """For each record the combination of all records of its key so far."""
        return self.process(name, reducing(function), parallelism)

    def connect(self, other: Stream, name: str, first: Process, second: Process, parallelism: int = 1) -> Stream:
        """The outputs of an operator with a function for each of two inputs; raises `JobError` unless both have one scope."""
        return self._binary("connect", other, name, (first, second), parallelism)

    def join(self, other: Stream, name: str, function: Callable[[Any, Any], Any], parallelism: int = 1) -> Stream:
        """`function` of each pair of records of one key, one of this stream and one of the other; both need `key_by`."""
        return self._keyed("join", other, name, joining(function), parallelism)

    def co_group(
        self,
        other: Stream,
        name: str,
        function: Callable[[Sequence[Any], Sequence[Any]], Iterable[Any]],
        parallelism: int = 1,
    ) -> Stream:
        """For each record the outputs for all records of its key so far, those of this stream and those of the other."""
        return self._keyed("co_group", other, name, grouping(function), parallelism)

    def _keyed(
        self, operation: str, other: Stream, name: str, functions: tuple[Process, Process], parallelism: int
    ) -> Stream:
        self._expect_same_scope(operation, other)
        for stream in (self, other):
            if stream.key is None:
                raise JobError(f"{operation} {name}: the stream of {stream.makers} has no key; use key_by before")
        return self._binary(operation, other, name, functions, parallelism)

    def _binary(
        self, operation: str, other: Stream, name: str, functions: tuple[Process, Process], parallelism: int
    ) -> Stream:
        self._expect_same_scope(operation, other)
        first, second = functions
        operator = Operator(name, self.scope, parallelism, ((first, self.key), (second, other.key)))
        made = self._operator(operator)
        self.job.connect(other, name, side=1)
        return made

    def collect(self, name: str) -> None:
        """A sink whose result is the list of all records."""
        self._operator(Operator(name, self.scope, 1, ((to_list, None),), is_sink=True))

    def collect_latest(self, name: str) -> None:
        """A sink whose result is the last value of each key; records are pairs."""
        self._operator(Operator(name, self.scope, 1, ((to_dict, None),), is_sink=True))

    # --- loops

    def iterate(
        self, loop: str, function: Callable[[Stream], Any], parallelism: int = 1, input_policy: str = ""
    ) -> Stream:
        """The output of a loop: `function` makes feedback and output, a pair, from the stream at the head of the loop.

        The head is an operator named by the loop in small letters; `input_policy` decides which input it reads first.
        Raises `JobError` if there is no such pair, or one of its streams is not of the loop.
        """
        scope = self._loop(loop)
        head = Operator(loop.lower(), scope, parallelism, ((forward, None),), input_policy=input_policy)
        entry = replace(self._operator(head), scope=scope)
        return self._closed(head, function(entry), 0)

    def iterate_with_feedback(self, loop: str, function: Callable[[Connected], Any]) -> Stream:
        """The output of a loop whose feedback has another type: `function` joins input and feedback in one operator."""
        connected = Connected(self, self._loop(loop), [])
        result = function(connected)
        if len(connected.heads) != 1:
            heads = "".join(f", in {head.name}" for head in connected.heads)
            raise JobError(
                f"loop {connected.scope} joins its input and feedback {len(connected.heads)} times{heads}, not once"
            )
        return self._closed(connected.heads[0], result, 1)

    def _loop(self, loop: str) -> Scope:
        scope = self.scope.nest(loop)
        if not _NAME.fullmatch(loop):
            raise JobError(f"{loop!r} cannot name a loop; use letters, digits and _, a letter first")
        for operator in self.job.operators.values():
            if scope.contains(operator.scope):
                raise JobError(f"loop {scope} exists already, with operator {operator.name}")
        return scope

    def _closed(self, head: Operator, result: Any, side: int) -> Stream:
        pair = isinstance(result, tuple) and len(result) == 2 and all(isinstance(s, Stream) for s in result)
        if not pair:
            what = f"a stream of {result.makers}" if isinstance(result, Stream) else f"a {type(result).__name__}"
            raise JobError(
                f"loop {head.scope} with head {head.name} must return its feedback and its output, a pair, not {what}"
            )
        for kind, stream in zip(("feedback", "output"), result, strict=True):
            if stream.scope != head.scope:
                raise JobError(
                    f"the {kind} of loop {head.scope} with head {head.name} is a stream of {stream.makers} "
                    f"(scope {stream.scope}), not one of the loop"
                )
        feedback, output = result
        self.job.connect(feedback, head.name, side=side, feedback=True)
        return Stream(self.job, self.scope, output.origins)

    def _operator(self, operator: Operator) -> Stream:
        self.job.add(operator)
        self.job.connect(self, operator.name)
        return Stream(self.job, operator.scope, ((operator.name, ()),))

    def _expect_same_scope(self, operation: str, other: Stream) -> None:
        if self.job is not other.job:
            raise JobError(f"{operation} of {self.makers} with {other.makers}: they are streams of different jobs")
        if self.scope != other.scope:
            raise JobError(
                f"{operation} of {self.makers} (scope {self.scope}) with {other.makers} (scope {other.scope}): "
                "binary operations need streams of one scope"
            )


@dataclass(frozen=True)
class Connected:
    """The input of a loop beside its feedback; one operator, the head, reads both."""

    input: Stream
    scope: Scope
    heads: list[Operator]

    def process(
        self,
        name: str,
        first: Process,
        second: Process,
        parallelism: int = 1,
        feedback_key: Key | None = None,
        input_policy: str = "",
    ) -> Stream:
        """The outputs of the head: `first` reads the input, `second` the feedback. `feedback_key` is the key of the state,
        `input_policy` decides which of both it reads first."""
        inputs = (first, self.input.key), (second, feedback_key)
        head = Operator(name, self.scope, parallelism, inputs, input_policy=input_policy)
        self.heads.append(head)
        return replace(self.input._operator(head), scope=self.scope)
