"""The search of a fair behaviour that an automaton accepts, on a graph of any size: on arrays."""

from __future__ import annotations

from collections.abc import Iterable

from streamproof.explicit.graph import StateGraph
from streamproof.explicit.liveness.arena import Arena, Labels
from streamproof.explicit.liveness.automaton import Automaton
from streamproof.explicit.liveness.fair import fair_components
from streamproof.explicit.liveness.lasso import find_lasso
from streamproof.explicit.liveness.outcome import Lasso, owed_by
from streamproof.explicit.liveness.reach import Reach
from streamproof.system.expr import Expr
from streamproof.system.model import System


class ArraySearch:
    """Raises `TooLarge` when there are more steps, or more is owed, than can be numbered."""

    def __init__(self, system: System, graph: StateGraph) -> None:
        self._arena = Arena.of(graph, owed_by(system), len(system.instances))

    def expect(self, conditions: Iterable[Expr]) -> None:
        """Nothing is done: a row for each condition would take more memory than time is won."""

    def accepted(self, machine: Automaton) -> Lasso | None:
        """A fair lasso that the automaton accepts, or None."""
        labels = Labels.of(self._arena.graph, machine)
        reach = Reach(self._arena, machine, labels)
        for part in machine.parts:
            region = reach.enter(part)
            if region is None or part.marks is None:
                continue
            fair = fair_components(self._arena, machine, part, labels, region)
            if fair:
                return find_lasso(self._arena, machine, part, labels, reach, fair)
        return None

    def is_ever(self, condition: Expr) -> bool:
        """Whether a condition on one state is true in some state."""
        return bool(self._arena.graph.evaluate([condition]).any())
