"""What composition of systems is bound to satisfy, on random ones, by the interpreter and by every other engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice, pairwise, product
from random import Random
from typing import Any

import pytest

from nonempty import nonempty
from random_systems import random_system, temporal_system
from shares import share
from streamproof.exchange.promela import spin
from streamproof.exchange.promela.spin_run import installed
from streamproof.explicit.exploration import explore
from streamproof.system import EvaluationError, Interpreter, Kind, ModelError, System
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.formula import rewritten
from streamproof.system.model import Action, Conjunct, Fairness, Instance, Property, Variable
from streamproof.system.reference import reference
from streamproof.system.sorts import RangeSort, values
from streamproof.transform.assume import Substitution
from streamproof.transform.composition import Joint, JointStep, changed, joined, side_by_side

WHOLE = (Kind.DEADLOCK, Kind.TERMINATION)
SEEDS = range(40)
IDLE = System("idle", (Variable("idle.n", RangeSort(0, 3), (2,)),), (), terminal=b.TRUE)
needs_spin = pytest.mark.skipif(installed() is not None, reason=f"needs Spin: {installed()}")


def named(system: System, prefix: str) -> System:
    """The system with other names for its variables, actions and properties."""
    change = Substitution(
        {make(v.name, v.sort): make(prefix + v.name, v.sort) for v in system.variables for make in (b.var, b.next_)}
    )
    return replace(
        system,
        variables=tuple(replace(v, name=prefix + v.name) for v in system.variables),
        actions=tuple(
            replace(
                a,
                name=prefix + a.name,
                instances=tuple(
                    replace(
                        changed(i, change),
                        action=prefix + i.action,
                        updates=tuple((prefix + n, change(t)) for n, t in i.updates),
                    )
                    for i in a.instances
                ),
            )
            for a in system.actions
        ),
        properties=tuple(_property(p, prefix, change) for p in system.properties),
        initially=change(system.initially),
        terminal=None if system.terminal is None else change(system.terminal),
    )


def _property(prop: Property, prefix: str, change: Callable[[Expr], Expr]) -> Property:
    return replace(
        prop,
        name=prefix + prop.name,
        expr=change(prop.expr),
        conjuncts=tuple(replace(c, expr=change(c.expr)) for c in prop.conjuncts),
        checks=tuple(replace(c, condition=change(c.condition), operands=()) for c in prop.checks),
        formula=None if prop.formula is None else rewritten(prop.formula, change),
    )


def sound(make: Callable[[Random], System] = random_system, most: int = 60) -> Iterator[System]:
    """Random systems that make no mistake, with few states, at least one of them."""
    for seed in SEEDS:
        system = make(Random(seed))
        found = reference(system)
        if found.mistake is None and 0 < found.counts.distinct <= most:
            yield system


def pairs(most: int = 60) -> Iterator[tuple[System, System]]:
    """Two random systems at a time, with nothing in common."""
    every = list(sound(most=most))
    assert len(every) > 10
    for one, other in pairwise(every):
        yield named(one, "a."), named(other, "b.")


def counted(system: System) -> tuple[int, int, int]:
    """Distinct states, steps without the initial states, depth."""
    found = reference(system)
    assert found.mistake is None
    return found.counts.distinct, found.counts.generated - found.counts.levels[0], found.counts.depth


def verdicts(system: System) -> dict[str, Any]:
    """What the explicit engine says of each property, with the lengths of what shows it."""
    return {
        f.property: (f.verdict, None if f.trace is None or f.kind is Kind.TEMPORAL else len(f.trace))
        for f in explore(system).findings
    }


def same_steps(system: System, prefix: str) -> list[Joint]:
    """Joint actions of every action with the one of the same name in a copy."""
    return [
        Joint(
            f"both {a.name}",
            (
                tuple(JointStep(_binding(i), i) for i in a.instances),
                tuple(JointStep(_binding(i), replace(i, action=prefix + i.action)) for i in a.instances),
            ),
        )
        for a in system.actions
    ]


def _binding(instance: Instance) -> tuple[tuple[str, Any], ...]:
    return (*instance.args, *((f"pick {n}", v) for n, v in instance.picks))


def test_an_idle_machine_changes_nothing() -> None:
    """Beside a machine that does nothing, a system has the same counts, and the same verdicts by paths as long."""
    for system in nonempty(sound()):
        whole = side_by_side("whole", [system, IDLE])
        assert counted(whole) == counted(system)
        assert verdicts(replace(whole, properties=system.properties)) == verdicts(system)


@pytest.mark.long
def test_fair_behaviours_beside_an_idle_machine() -> None:
    """Temporal properties under fairness are decided alike beside a machine that does nothing."""
    decided = 0
    for system in sound(temporal_system):
        whole = side_by_side("whole", [IDLE, system])
        assert verdicts(whole) == verdicts(system)
        decided += len(system.properties)
    assert decided > 50


def test_independent_machines_multiply() -> None:
    """Machines with nothing in common have the product of their states, each one's steps in every state of the other."""
    for one, other in nonempty(pairs()):
        (states, steps, depth), (theirs, taken, deep) = counted(one), counted(other)
        assert counted(side_by_side("whole", [one, other])) == (
            states * theirs,
            steps * theirs + states * taken,
            depth + deep - 1,
        )


@pytest.mark.long
def test_order_does_not_matter() -> None:
    """Side by side is commutative: counts and verdicts are the same, whichever comes first."""
    for one, other in nonempty(pairs(most=30)):
        left, right = side_by_side("whole", [one, other]), side_by_side("whole", [other, one])
        assert counted(left) == counted(right)
        assert verdicts(left) == verdicts(right)


def test_grouping_does_not_matter() -> None:
    """Side by side is associative: it gives the same system, however the machines are grouped."""
    every = [named(s, f"m{k}.") for k, s in enumerate(sound(most=8))][:6]
    assert len(every) == 6
    for at in range(4):
        one, two, three = every[at : at + 3]
        left = side_by_side("whole", [side_by_side("part", [one, two]), three])
        right = side_by_side("whole", [one, side_by_side("part", [two, three])])
        assert left == right
        assert counted(left) == counted(right)


def test_what_always_goes_together_is_one() -> None:
    """A system whose every step is taken together with the same step of a copy is the system itself."""
    for system in nonempty(sound(most=40)):
        copy = named(system, "copy ")
        same = b.and_(b.eq(b.var(v.name, v.sort), b.var(f"copy {v.name}", v.sort)) for v in system.variables)
        whole = side_by_side("whole", [system, copy])
        joints = [
            Joint(
                f"both {a.name}",
                (
                    tuple(JointStep(_binding(i), i) for i in a.instances),
                    tuple(JointStep(_binding(i), i) for i in copy.action(f"copy {a.name}").instances),
                ),
            )
            for a in system.actions
        ]
        both = joined(replace(whole, initially=b.and_((whole.initially, same))), joints)
        assert {a.name for a in both.actions} <= {j.name for j in joints}
        assert counted(both) == counted(system)
        always = Property("same", Kind.INVARIANT, same, (Conjunct(same, "same", None),))
        shown = replace(both, properties=(*system.properties, always), terminal=system.terminal)
        assert {n: v for n, v in verdicts(shown).items() if n != "same"} == verdicts(system)
        assert explore(shown).finding("same").verdict.value == "holds"


def test_a_step_together_with_itself_is_that_step() -> None:
    """Two machines that are the same, variables included, and always go together, are one of them."""
    for system in nonempty(sound()):
        again = replace(
            system,
            actions=tuple(
                replace(
                    a, name=f"twin {a.name}", instances=tuple(replace(i, action=f"twin {a.name}") for i in a.instances)
                )
                for a in system.actions
            ),
        )
        both = joined(side_by_side("whole", [system, again]), same_steps(system, "twin "))
        assert counted(both) == counted(system)
        assert verdicts(replace(both, properties=system.properties)) == verdicts(system)


def test_renaming_changes_nothing() -> None:
    """Other names for variables, actions and properties: the same counts and verdicts."""
    for system in nonempty(sound()):
        other = named(system, "part[0].")
        assert counted(other) == counted(system)
        assert {n.removeprefix("part[0]."): v for n, v in verdicts(other).items()} == verdicts(system)


def composed(one: System, other: System, rng: Random) -> System:
    """Two systems with some of their actions taken together, some blocked, and properties of both."""
    whole = side_by_side("random", [one, other])
    mine, theirs = list(one.actions), list(other.actions)
    joints = [
        Joint(
            f"both[{k}].go",
            (
                tuple(JointStep(i.args, i) for i in rng.choice(mine).instances),
                tuple(JointStep(tuple((f"q{n}", v) for n, v in i.args), i) for i in rng.choice(theirs).instances),
            ),
            rng.choice((None, *Fairness)),
        )
        for k in range(2)
    ]
    blocked = rng.choice(mine).instances if rng.random() < 0.3 else ()
    extra = tuple(p for s in (one, other) for p in s.properties if p.kind in WHOLE)
    system = joined(whole, joints, blocked)
    return replace(system, properties=(*system.properties, *extra))


def _mixed(seeds: range) -> Iterator[System]:
    for seed in seeds:
        rng = Random(seed)
        one, other = (named(random_system(rng), f"{side}.") for side in "ab")
        if reference(one).counts.distinct * reference(other).counts.distinct <= 2_000:
            yield composed(one, other, rng)


@pytest.mark.parametrize(("seeds", "least"), share([(12, 4), (24, 9)], 2))
def test_engines_agree_on_compositions(panel: Any, seeds: int, least: int) -> None:
    """Interpreter, both tiers and the solver have the same results for random compositions, mistakes included."""
    compared = 0
    for system in _mixed(range(seeds)):
        referee = panel.interpreter_result(system)
        if not referee.ordered.levels:
            continue
        referee.compare(panel.explored(system, "python"))
        referee.compare(panel.explored(system, "compiled"))
        referee.compare(panel.bounded(system, 4))
        compared += 1
    assert compared > least


@needs_spin
@pytest.mark.parametrize(("seeds", "least"), [(2, 1), (5, 2)])
@pytest.mark.long
def test_spin_agrees_on_compositions(panel: Any, seeds: int, least: int) -> None:
    """Spin counts and decides random compositions alike."""
    compared = 0
    for system in _mixed(range(100, 100 + seeds)):
        referee = panel.interpreter_result(system)
        if referee.ordered.levels and referee.result.mistake is None:
            referee.compare(panel.run_spin(system, spin.SpinOptions(hash_bits=12, depth=100_000, optimise="-O0")))
            compared += 1
    assert compared >= least


def test_a_joint_step_is_enabled_where_both_are() -> None:
    """Of machines with nothing in common: each does in a joint step what it does alone, and both must be able to."""
    taken = refused = 0
    for one, other in pairs(most=20):
        mine, theirs = one.instances[0], other.instances[-1]
        both = joined(
            side_by_side("whole", [one, other]), [Joint("go", ((JointStep((), mine),), (JointStep((), theirs),)))]
        )
        steps = [i for i in both.instances if i.action == "go"]
        for left in product(*(values(v.sort) for v in one.variables)):
            for right in islice(product(*(values(v.sort) for v in other.variables)), 12):
                try:
                    parts = Interpreter(one).take(mine, left), Interpreter(other).take(theirs, right)
                except EvaluationError:
                    continue
                after = None if None in parts else (*parts[0], *parts[1])
                found = [Interpreter(both).take(i, (*left, *right)) for i in steps]
                assert found == [after] or (after is None and not found)
                taken, refused = taken + (after is not None), refused + (after is None)
            if taken + refused > 6_000:
                break
    assert taken > 300
    assert refused > 100


def test_every_part_starts_in_one_of_its_first_states() -> None:
    """What one machine says of its first states holds in the whole, wherever it stands."""
    narrowed = 0
    for system in nonempty(sound()):
        first = list(Interpreter(system).initial_states())
        named_first = zip(system.variables, first[0], strict=True)
        only = replace(
            system, initially=b.and_(b.eq(b.var(v.name, v.sort), b.const(v.sort, x)) for v, x in named_first)
        )
        for order in ([IDLE, only], [only, IDLE]):
            starts = list(Interpreter(side_by_side("whole", order)).initial_states())
            assert starts == [(2, *first[0]) if order[0] is IDLE else (*first[0], 2)]
        narrowed += len(first) > 1
    assert narrowed > 5


def test_what_happens_together_is_not_done_alone() -> None:
    """What takes part in a joint action, or is blocked, has no step of its own; the others keep theirs."""
    for one, other in nonempty(pairs(most=30)):
        whole = side_by_side("whole", [one, other])
        first, last = one.actions[0], other.actions[-1]
        joint = Joint(
            "both",
            (tuple(JointStep(i.args, i) for i in first.instances), tuple(JointStep((), i) for i in last.instances)),
        )
        both = joined(whole, [joint], one.actions[1].instances)
        left = {a.name: a.instances for a in both.actions}
        assert first.name not in left
        assert last.name not in left
        assert one.actions[1].name not in left
        assert len(left.get("both", ())) <= len(first.instances) * len(last.instances)
        for instance in left.get("both", ()):
            assert len(instance.of) == 2
            assert instance.args == first.instances[[i.label for i in first.instances].index(instance.of[0])].args


def test_fairness_of_a_joint_action() -> None:
    """The strongest of the participants' fairness, or the one that is given."""
    on = Variable("on", RangeSort(0, 1), (0,))
    one, two = (
        Action(name, (), fairness, (Instance(name, (), (), (), ()),))
        for name, fairness in (("one", Fairness.WEAK), ("two", Fairness.STRONG))
    )
    system = System("s", (on,), (one, two))
    rows = tuple((JointStep((), a.instances[0]),) for a in (one, two))
    for given, wanted in ((None, Fairness.STRONG), (Fairness.NONE, Fairness.NONE), (Fairness.WEAK, Fairness.WEAK)):
        assert joined(system, [Joint("both", rows, given)]).action("both").fairness is wanted


def test_a_machine_takes_one_step_at_a_time() -> None:
    """Combinations in which one machine would take two steps are left out."""
    on = Variable("on", RangeSort(0, 1), (0,))
    acts = [Action(n, (), Fairness.NONE, (Instance(n, (), (), (), ()),)) for n in ("m.a", "m.b", "n.a", "n.b")]
    sides = tuple(
        tuple(
            JointStep((("of", a.name[0]),), a.instances[0], frozenset((a.name[0],))) for a in acts if a.name[2] == last
        )
        for last in "ab"
    )
    free = tuple(
        tuple(JointStep(((f"{k}", s.instance.action[0]),), s.instance, s.machines) for s in side)
        for k, side in zip("xy", sides, strict=True)
    )
    both = joined(System("s", (on,), tuple(acts)), [Joint("same", sides), Joint("free", free)])
    assert [i.label for i in both.instances] == ["free(x=m, y=n)", "free(x=n, y=m)"]


def test_a_variable_is_one_sort() -> None:
    """Variables of one name and different sorts or first values are refused, and so are two actions of one name."""
    for other in (Variable("idle.n", RangeSort(0, 2), (2,)), Variable("idle.n", RangeSort(0, 3), (1,))):
        with pytest.raises(ModelError, match=r"idle\.n"):
            side_by_side("whole", [IDLE, replace(IDLE, variables=(other,))])
    acting = replace(IDLE, actions=(Action("go", (), Fairness.NONE, (Instance("go", (), (), (), ()),)),))
    with pytest.raises(ModelError, match="go is the name of 2 actions"):
        side_by_side("whole", [acting, acting])
