"""The search of a fair behaviour on a small graph that an automaton accepts."""

from __future__ import annotations

from collections.abc import Iterable

from streamproof.explicit.liveness.automaton import Automaton
from streamproof.explicit.liveness.outcome import Lasso, owed_by
from streamproof.explicit.liveness.small.arena import Arena, Labels
from streamproof.explicit.liveness.small.fair import fair_components
from streamproof.explicit.liveness.small.lasso import find_lasso
from streamproof.explicit.liveness.small.reach import Reach
from streamproof.explicit.small_graph import SmallGraph
from streamproof.system.expr import Expr, Not
from streamproof.system.model import System


class SmallSearch:
    """What `liveness.arrays.ArraySearch` does, and chooses, in plain Python. Raises `TooLarge` for too much that is owed."""

    def __init__(self, system: System, graph: SmallGraph) -> None:
        self._graph = graph
        self._arena = Arena.of(graph, owed_by(system), len(system.instances))

    def expect(self, conditions: Iterable[Expr]) -> None:
        """Told of the conditions that the next automata have: they are evaluated together."""
        self._graph.evaluate(tuple(conditions))

    def accepted(self, machine: Automaton) -> Lasso | None:
        """A fair lasso that the automaton accepts, or None."""
        labels = Labels.of(self._graph, machine)
        reach = Reach(self._arena, machine, labels)
        for part in machine.parts:
            region = reach.enter(part)
            if region is None or part.marks is None:
                continue
            fair = fair_components(self._arena, machine, part, labels, region)
            if fair:
                return find_lasso(self._arena, reach, fair)
        return None

    def is_ever(self, condition: Expr) -> bool:
        """Whether a condition on one state is true in some state."""
        positive = condition.arg if isinstance(condition, Not) else condition
        (row,) = self._graph.evaluate([positive])
        return not all(row) if isinstance(condition, Not) else any(row)
