"""Streams: stateless and stateful operators, slots, exchanges, sinks and loops; operations across scopes are refused.

Stateless operators (`map`, `flat_map`, `filter`) are chained to the operator before them; a chain never crosses a scope.
The stream that a loop returns has the scope around the loop, whichever operator produces it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from streamproof_runtime.jobs.job_graph import NAME, JobGraph
from streamproof_runtime.jobs.operators import (
    BLOCKING,
    CACHING,
    EXCHANGE_TYPES,
    MEMORY_ONLY,
    PIPELINED,
    Edge,
    Exchange,
    Operator,
    Pipe,
)
from streamproof_runtime.jobs.scopes import Scope
from streamproof_runtime.slots.resources import checked


@dataclass(frozen=True)
class Stream:
    """A stream of one scope: the operators that make it, each with the stateless functions chained to it."""

    job: JobGraph
    scope: Scope
    origins: tuple[tuple[Operator, tuple[Transform, ...]], ...]
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
        return tuple(dict.fromkeys(maker.name for maker, _ in self.origins))

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

    def slot_sharing_group(self, name: str, resources: Mapping[str, int] | None = None) -> Stream:
        """The same stream; the operator that makes it is in this slot sharing group, and shares no slot with those of others.

        A reader without a group of its own is in it, too, unless it reads streams of several. A stateless operator is not
        chained to one of another group. `resources`: whole numbers by name that a slot of the group needs.

        Raises `JobError` for a union, for the output of a loop, and for resources that are none, or other ones than before.
        """
        if not isinstance(name, str) or not name:
            raise JobError(f"the slot sharing group of {self.makers} needs a name, a text, not {name!r}")
        if resources is not None:
            try:
                needed = checked(resources)
            except ValueError as error:
                raise JobError(f"the resources of slot sharing group {name}: {error}") from error
            if self.job.resources.setdefault(name, needed) != needed:
                raise JobError(f"slot sharing group {name} needs other resources elsewhere; give them once")
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

    def rescale(self) -> Stream:
        """The same stream, distributed in turn to a share of the subtasks of its reader; if that has fewer subtasks, each
        reads a share of those that make the stream. An operator in a loop refuses it."""
        return replace(self, exchange=Exchange.RESCALE, key=None)

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
        other._read_by(name, side=1)
        return made

    def collect(self, name: str) -> None:
        """A sink whose result is the list of all records."""
        self._operator(Operator(name, self.scope, 1, ((to_list, None),), is_sink=True))

    def collect_latest(self, name: str) -> None:
        """A sink whose result is the last value of each key; records are pairs."""
        self._operator(Operator(name, self.scope, 1, ((to_dict, None),), is_sink=True))

    def promote(self, name: str, parallelism: int = 0) -> None:
        """Stores the stream as the cluster partition `name`, which outlives the job: a later job of the session reads it by
        `Job.cluster_source`. By default it has as many subtasks as what makes the stream.

        Raises `JobError` inside a loop.
        """
        parallelism = parallelism or max(self.job.operators[maker].parallelism for maker in self._all_makers())
        self.blocking()._operator(Operator(name, self.scope, parallelism, ((forward, None),), promotes=name))

    # --- loops

    def iterate(
        self, loop: str, function: Callable[[Stream], Any], parallelism: int = 1, input_policy: str = ""
    ) -> Stream:
        """The output of a loop: `function` makes feedback and output, a pair, from the stream at the head of the loop.

        The head is an operator named by the loop in small letters, with ``_head`` if another operator has that name;
        `input_policy` decides which input it reads first.
        Raises `JobError` if there is no such pair, or one of its streams is not of the loop.
        """
        scope = self._loop(loop)
        inputs = ((forward, None),)
        head = Operator(loop.lower(), scope, parallelism, inputs, input_policy=input_policy, is_named_by_loop=True)
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
        if not NAME.fullmatch(loop):
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
        feedback._read_by(head.name, side=side, feedback=True)
        return Stream(self.job, self.scope, output.origins)

    def _operator(self, operator: Operator) -> Stream:
        self.job.add(operator)
        self._read_by(operator.name)
        return Stream(self.job, operator.scope, ((operator, ()),))

    def _read_by(self, target: str, *, side: int = 0, feedback: bool = False) -> None:
        """Makes an operator read the stream, at one of its inputs."""
        for maker, transforms in self.origins:
            pipes = [Pipe(transforms, side)]
            edge = Edge(maker.name, target, self.scope, self.exchange, self.key, pipes, feedback, self.exchange_type)
            self.job.connect(edge)

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
