"""The job graph under construction: names, parallelisms, exchanges and slot sharing groups are checked here.

Streams add operators and edges to it (`streams`); the runtime reads it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from streamproof_runtime.errors import JobError
from streamproof_runtime.jobs.input_policies import POLICIES
from streamproof_runtime.jobs.operators import (
    BLOCKING,
    EXCHANGE_TYPES,
    PIPELINED,
    Edge,
    Exchange,
    Operator,
    subtask_names,
)
from streamproof_runtime.jobs.slot_sharing import groups

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
"""Names of operators and loops."""
_JOB_NAME = re.compile(r"\w[\w.-]*")
MOST = 4_096
"""Largest parallelism of an operator."""
STREAMING, BATCH = MODES = ("streaming", "batch")
"""Modes of a job: by default its exchanges are pipelined, or blocking between operators outside loops."""


def _names(operator: Operator) -> set[str]:
    return {operator.name, *subtask_names(operator)}


@dataclass
class JobGraph:
    """The operators of a job and the edges between them, checked as they are added."""

    name: str = "job"
    operators: dict[str, Operator] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    mode: str = STREAMING
    chains: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    """Operators to which one stateless function is chained, and their slot sharing group, if it depends on that."""
    max_failures_per_task: int | None = None
    """Failures of one operator that the job survives; None: no limit."""
    max_failures: int | None = None
    """Failures of all operators together that the job survives; None: no limit."""
    resources: dict[str, dict[str, int]] = field(default_factory=dict)
    """What slot sharing groups need of a slot."""
    regions_of_subtasks: bool = False
    """Whether subtasks of an operator that exchange no records with each other are in different regions."""

    def __post_init__(self) -> None:
        """Raises `JobError` for an unknown mode, a name that could not be part of the name of a trace, and a budget that is
        no number."""
        if not isinstance(self.name, str) or not _JOB_NAME.fullmatch(self.name):
            raise JobError(f"{self.name!r} cannot name a job; use letters, digits, _, - and ., a letter or digit first")
        if self.mode not in MODES:
            raise JobError(f"job {self.name} has the mode {self.mode!r}; there are {', '.join(MODES)}")
        budgets = {"max_failures_per_task": self.max_failures_per_task, "max_failures": self.max_failures}
        for name, number in budgets.items():
            if number is not None and (type(number) is not int or number < 0):
                raise JobError(f"job {self.name} has {name} {number!r}; give a number of failures, 0 or more")

    def add(self, operator: Operator) -> None:
        """Adds an operator. Raises `JobError` for a name that is not plain or not new, and for a parallelism that is none."""
        if not NAME.fullmatch(operator.name):
            raise JobError(f"{operator.name!r} cannot name an operator; use letters, digits and _, a letter first")
        if operator.input_policy and operator.input_policy not in POLICIES:
            known = ", ".join(POLICIES)
            raise JobError(f"operator {operator.name} has the input policy {operator.input_policy!r}, none of {known}")
        if type(operator.parallelism) is not int or not 1 <= operator.parallelism <= MOST:
            given = f"operator {operator.name} has parallelism {operator.parallelism!r}"
            raise JobError(f"{given}; give a number from 1 to {MOST:,}")
        for other in [*self.operators.values()]:
            if not _names(other).isdisjoint(_names(operator)):
                giving_way = next((each for each in (operator, other) if each.is_named_by_loop), None)
                if giving_way is None:
                    raise JobError(f"operators {other.name} and {operator.name} need different names")
                self._rename(giving_way, operator)
        self.operators[operator.name] = operator

    def _rename(self, head: Operator, new: Operator) -> None:
        """Gives the head of a loop, or a new operator that is one, another name than all others."""
        old = head.name
        others = [each for each in (*self.operators.values(), new) if each is not head]
        while any(not _names(each).isdisjoint(_names(head)) for each in others):
            head.name += "_head"
        if head is new:
            return
        self.operators = {each.name: each for each in self.operators.values()}
        for edge in self.edges:
            edge.source, edge.target = (head.name if name == old else name for name in (edge.source, edge.target))
        self.chains = [(tuple(head.name if n == old else n for n in makers), group) for makers, group in self.chains]

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

    def connect(self, edge: Edge) -> None:
        """Adds an edge, or its pipes to that of the same operators; fills in what its exchange leaves open.

        Raises `JobError` for an unknown exchange, for one of a share in a loop, and for two different ones between the same
        operators.
        """
        source, target = self.operators[edge.source], self.operators[edge.target]
        if edge.exchange is Exchange.FORWARD and source.parallelism != target.parallelism:
            edge.exchange = Exchange.REBALANCE
        edge.exchange_type = self._exchange_type(edge)
        if edge.exchange is Exchange.RESCALE and (edge.feedback or source.scope.level or target.scope.level):
            raise JobError(f"{edge.target} reads {edge.source} by rescale, and it is in a loop; use rebalance")
        for other in self.edges:
            if (other.source, other.target, other.feedback) == (edge.source, edge.target, edge.feedback):
                if (other.exchange, other.key, other.exchange_type) != (edge.exchange, edge.key, edge.exchange_type):
                    raise JobError(
                        f"{edge.target} reads {edge.source} by two different exchanges; put an operator between them"
                    )
                other.pipes.extend(edge.pipes)
                return
        self.edges.append(edge)

    def keeps_order(self, operator: str) -> bool:
        """Whether the order in which an operator receives records is the same in each run: one subtask reads one other."""
        while self.operators[operator].parallelism == 1 and not self.operators[operator].takes:
            inputs = [edge.source for edge in self.edges if edge.target == operator]
            if len(inputs) != 1:
                return not inputs
            operator = inputs[0]
        return False

    def _exchange_type(self, edge: Edge) -> str:
        if edge.exchange_type:
            if edge.exchange_type not in EXCHANGE_TYPES:
                known = ", ".join(EXCHANGE_TYPES)
                raise JobError(
                    f"{edge.target} reads {edge.source} by the exchange {edge.exchange_type!r}; there are {known}"
                )
            return edge.exchange_type
        in_loop = edge.feedback or any(self.operators[name].scope.level for name in (edge.target, edge.source))
        return BLOCKING if self.mode == BATCH and not in_loop else PIPELINED
