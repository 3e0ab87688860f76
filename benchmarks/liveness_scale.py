"""Time and memory of temporal properties on a graph of five million states and thirty million steps.

    python benchmarks/liveness_scale.py [STATES]

The graph is generated, not explored: six steps from each state, mostly forwards, by thirty instances, twenty with weak and
two with strong fairness. Processor time in seconds, of the second pass without storing the graph.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from streamproof.explicit.liveness.fair_cycles import TemporalChecker
from streamproof.explicit.state_graph import StateGraph
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.formula import Always, Atom, Eventually, Formula, LeadsTo, written
from streamproof.system.model import Action, Fairness, Instance, System, Variable
from streamproof.system.sorts import BOOL

DEGREE = 6
INSTANCES = 30
P, Q, R = (Atom(b.var(name, BOOL), name) for name in "pqr")
"""Conditions that are true in one state of ten; in the last fifth of the states; in one state of a thousand."""


def drawn(states: int, *, back: int) -> StateGraph:
    """A random graph with steps up to 4,000 states forwards, or `back` states backwards."""
    random = np.random.default_rng(1)
    sources = np.repeat(np.arange(states, dtype=np.int32), DEGREE)
    targets = sources + random.integers(-back, 4000, len(sources), dtype=np.int32)
    instances = random.integers(0, INSTANCES, len(sources), dtype=np.int32)
    instances[::DEGREE] %= 20  # a fairness constraint is enabled in every state: infinite stuttering is never fair
    numbers = np.arange(states, dtype=np.int32)
    values = {P.expr: numbers % 10 == 3, Q.expr: numbers > states * 4 // 5, R.expr: numbers % 1000 == 7}

    def evaluate(terms: Sequence[Expr]) -> npt.NDArray[np.bool_]:
        return np.array([values[term] for term in terms])

    return StateGraph(
        initial=1,
        offsets=np.arange(0, len(sources) + 1, DEGREE, dtype=np.int64),
        targets=np.clip(targets, 0, states - 1),
        instances=instances,
        path=lambda number: [0, number],
        evaluate=evaluate,
        evaluate_steps=evaluate,
    )


def system() -> System:
    """Thirty instances: twenty weakly fair, two strongly fair."""
    kinds = [Fairness.WEAK] * 20 + [Fairness.STRONG] * 2 + [Fairness.NONE] * (INSTANCES - 22)
    actions = [Action(f"a{k}", (), kind, (Instance(f"a{k}", (), (), (), ()),)) for k, kind in enumerate(kinds)]
    return System("drawn", (Variable("x", BOOL, (False,)),), tuple(actions))


def peak() -> float:
    """Peak memory of the process, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main(states: int) -> None:
    """Print a line per graph and property."""
    questions: list[Formula] = [
        Eventually(Q),
        Always(Eventually(P)),
        LeadsTo(P, Q),
        LeadsTo(R, P),
        Eventually(Always(R)),
    ]
    for name, back in (("one large component", 4000), ("small components", 3), ("no cycle", -1)):
        graph = drawn(states, back=back)
        print(f"{name}: {graph.states:,} states, {graph.steps:,} steps; the graph itself: {peak():.2f} GiB")
        begun = time.process_time()
        checker = TemporalChecker(system(), graph)
        print(f"  {time.process_time() - begun:6.2f} s  preparation")
        for question in questions:
            begun = time.process_time()
            answer = checker.decide(question)
            verdict = "holds" if answer.lasso is None else f"violated, cycle of {len(answer.lasso.cycle):,} states"
            print(f"  {time.process_time() - begun:6.2f} s  {written(question)}: {verdict} ({peak():.2f} GiB)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000)
