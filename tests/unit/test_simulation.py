"""Random walks: what they find, that they are repeated by their seed, and what they never claim."""

from __future__ import annotations

import pytest

from streamproof.explicit.estimate import chao2
from streamproof.explicit.exploration import explore
from streamproof.explicit.simulation import simulate
from streamproof.model_registry import find
from streamproof.system import (
    Action,
    Check,
    Conjunct,
    Fairness,
    Instance,
    Kind,
    ModelError,
    Property,
    RangeSort,
    System,
    UsageError,
    Variable,
    Verdict,
)
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.interpreter import Interpreter
from streamproof.traces.replay import verify

RING = RangeSort(0, 9)
x = b.var("x", RING)
after = b.next_("x", RING)


def action(name: str, guard: Expr, becomes: Expr, *checks: Check) -> Action:
    """An action of one instance that sets `x`."""
    instance = Instance(name, (), (), (Conjunct(guard, name, None),), (("x", becomes),), (), checks)
    return Action(name, (), Fairness.NONE, (instance,))


def ring(*actions: Action, first: tuple[int, ...] = (0,), terminal: Expr | None = None, **kinds: object) -> System:
    """A number from 0 to 9."""
    properties = tuple(Property(name, kind, expr) for name, (kind, expr) in kinds.items())  # type: ignore[misc]
    return System("ring", (Variable("x", RING, first),), actions, properties, terminal=terminal)


UP = action("up", b.less(x, b.num(9)), b.add(x, b.num(1)))
DOWN = action("down", b.less(b.num(0), x), b.sub(x, b.num(1)))


@pytest.mark.parametrize("guided", [True, False])
def test_every_kind_of_property_is_decided_on_the_way(guided: bool) -> None:
    """Each violation ends the walks with the verdict and the shortened trace that the interpreter confirms."""
    found = {}
    for name, prop in {
        "low": (Kind.INVARIANT, b.less(x, b.num(5))),
        "rises": (Kind.STEP, b.or_((b.less(x, after), b.less(x, b.num(4))))),
        "top": (Kind.REACHABLE, b.eq(x, b.num(9))),
        "ends": (Kind.TERMINATION, b.TRUE),
    }.items():
        system = ring(UP, DOWN, **{name: prop})
        result = simulate(system, seed=3, walks=200, steps=400, guided=guided)
        (finding,) = result.findings
        assert finding.trace is not None
        verify(system, system.property(name), finding.trace)
        found[name] = (finding.verdict, len(finding.trace.steps), finding.trace.loop is not None)
    assert found == {
        "low": (Verdict.VIOLATED, 5, False),
        "rises": (Verdict.VIOLATED, 5, False),
        "top": (Verdict.HOLDS, 9, False),
        "ends": (Verdict.VIOLATED, found["ends"][1], True),
    }


def test_a_state_without_a_step_is_a_deadlock_unless_it_is_an_end() -> None:
    """Going up only ends at 9; as a terminal state that is no deadlock, and nothing is claimed to hold."""
    dead = simulate(ring(UP, deadlock=(Kind.DEADLOCK, b.TRUE)), seed=0)
    assert (dead.findings[0].verdict, dead.findings[0].because) == (
        Verdict.VIOLATED,
        "nothing is enabled after 9 steps",
    )
    ended = simulate(ring(UP, terminal=b.eq(x, b.num(9)), deadlock=(Kind.DEADLOCK, b.TRUE)), seed=0, walks=7)
    assert ended.findings[0].verdict is Verdict.INCONCLUSIVE
    assert ended.findings[0].because == "not violated in 7 walks; only check or prove can show that it holds"
    assert (ended.walks, ended.steps, ended.longest, ended.distinct, ended.stopped) == (7, 63, 9, 10, None)
    assert ended.coverage.generated == {"up": 63}
    assert ended.coverage.distinct == {"up": 9}


def test_a_mistake_of_the_model_ends_the_walks() -> None:
    """A check that comes out true is reported with the way to it, though the walk would have gone elsewhere."""
    careless = action("jump", b.eq(x, b.num(3)), x, Check(b.TRUE, "jumps off", None))
    result = simulate(ring(UP, careless, low=(Kind.INVARIANT, b.TRUE)), seed=0)
    assert result.mistake is not None
    assert (result.mistake.error.message, len(result.mistake.trace.steps)) == ("jumps off in jump()", 3)
    assert (result.findings[0].verdict, result.stopped) == (Verdict.ERROR, "evaluation error")


def test_a_mistake_in_a_property_is_its_own() -> None:
    """An invariant whose evaluation is a mistake in a state has no verdict but `error`, with the way there."""
    prop = Property("odd", Kind.INVARIANT, b.TRUE, (), (Check(b.eq(x, b.num(4)), "four", None),))
    system = System("ring", (Variable("x", RING, (0,)),), (UP,), (prop,))
    (finding,) = simulate(system, seed=0).findings
    assert finding.trace is not None
    assert (finding.verdict, len(finding.trace.steps)) == (Verdict.ERROR, 4)


def test_the_seed_is_all_that_chance_is() -> None:
    """The same seed gives the same walks, another seed others; the walks of a longer run begin with the same ones."""
    system = find("failover").system("no-fence", {})

    def walks(seed: int) -> tuple[object, ...]:
        result = simulate(system, seed=seed, properties=["survives"], walks=30)
        return result.walks, result.steps, result.distinct, result.findings, result.coverage, result.estimate

    assert walks(5) == walks(5)
    assert walks(5) != walks(6)


def test_what_walks_find_is_among_what_a_search_finds() -> None:
    """Visited states are reachable, and with many walks all of a small space are visited."""
    system = find("reference.two_phase_commit").system(None, {"resource_managers": 2})
    searched = explore(system).counts.distinct
    assert simulate(system, seed=1, walks=20).distinct <= searched
    assert simulate(system, seed=1, walks=2000).distinct == searched


def test_guided_walks_see_more() -> None:
    """With the same number of steps, preferring what is new meets more states of two-phase commit."""
    system = find("reference.two_phase_commit").system(None, {"resource_managers": 4})
    guided, uniform = (simulate(system, seed=2, walks=100, guided=g).distinct for g in (True, False))
    assert guided > 1.2 * uniform


def test_initial_states_that_are_too_many_to_list_are_drawn() -> None:
    """Eight to the sixth initial states, restricted: every walk starts in one that the interpreter calls initial."""
    sort = RangeSort(0, 7)
    names = "abcdef"
    variables = tuple(Variable(name, sort, tuple(range(8))) for name in names)
    a, f = b.var("a", sort), b.var("f", sort)
    starts = Property("starts", Kind.INVARIANT, b.less(a, f))
    system = System("many", variables, (), (starts,), initially=b.less(a, f), terminal=b.TRUE)
    result = simulate(system, seed=4, walks=50)
    assert (result.findings[0].verdict, result.walks, result.distinct > 40) == (Verdict.INCONCLUSIVE, 50, True)
    assert Interpreter(system).value(system.initially, (0, 0, 0, 0, 0, 1)) is True


def test_limits() -> None:
    """A time limit ends the walks; what is not positive or not there is refused; nothing initial is the model's mistake."""
    system = ring(UP, DOWN, low=(Kind.INVARIANT, b.TRUE))
    assert simulate(system, seed=0, walks=10**9, time_limit=0.2).stopped == "time_limit"
    with pytest.raises(UsageError, match="walks must be positive, got 0"):
        simulate(system, seed=0, walks=0)
    with pytest.raises(UsageError, match="ring has no property 'high'"):
        simulate(system, seed=0, properties=["high"])
    nothing = System("none", (Variable("x", RING, (0,)),), (UP,), (), initially=b.FALSE)
    with pytest.raises(ModelError, match="none has no initial state"):
        simulate(nothing, seed=0)


def test_estimate_by_hand() -> None:
    """Four walks met ten states: four once, two twice, four more often; the number is that of Chao's formula."""
    assert chao2([1, 1, 1, 1, 2, 2, 3, 3, 4, 4], 4) == pytest.approx(10 + 0.75 * 4 * 3 / (2 * 3))
    assert chao2([1, 1, 1, 3], 3) == pytest.approx(4 + 2 / 3 * 3 * 2 / 2)


def test_estimate_without_anything_unseen_is_what_was_seen() -> None:
    """Where at most one state was met by exactly one walk nothing speaks for more; one walk alone gives no estimate."""
    assert chao2([1, 2, 2, 5], 5) == 4.0
    assert chao2([1, 1, 1], 1) is None


def test_estimates_are_mostly_too_low_and_guided_walks_have_none() -> None:
    """Guided walks depend on each other. Of uniform ones, which meet states with different probabilities, the estimate stays
    below the number of reachable states, and above the number of visited ones."""
    system = find("failover").system(None, {})
    for seed in range(3):
        found = simulate(system, seed=seed, walks=20, guided=False, properties=["survives"])
        assert found.estimate is not None
        assert found.distinct <= found.estimate < 1433
        assert simulate(system, seed=seed, walks=20, properties=["survives"]).estimate is None
