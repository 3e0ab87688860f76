"""Proofs for every size against exhaustive search at many sizes, on random models with parameters of any value."""

from __future__ import annotations

import importlib.util
import itertools
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from shares import share
from streamproof import Model, Spec
from streamproof.any.certify.proofs import contents_any
from streamproof.any.certify.verifier import verify_any
from streamproof.any.engine import prove_any
from streamproof.any.engine.bounds import bound_candidates
from streamproof.any.engine.laws import drift_candidates, law_candidates
from streamproof.any.engine.values import Lanes, SymbolicView, Universe, mapped
from streamproof.any.readings import compare_readings
from streamproof.certify.writing import packed
from streamproof.explicit.exploration import explore
from streamproof.model_registry import find
from streamproof.system import Verdict
from streamproof.system.expr import Var
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Kind
from streamproof.system.sorts import ArraySort, EnumSort, TermRange
from streamproof_specs.credit.properties import SPEC

FREE = ("n", "cap", "more")
SIZES = list(itertools.product((1, 2, 3), (0, 1, 2), (0, 1, 2)))

HEAD = '''
from streamproof import ANY, Array, Bool, Enum, Model, Range, State, action, invariant, require, step


class Random(Model):
    n: int = 2
    cap: int = 1
    more: int = 1
    limits = {"n": (1, None), "cap": (0, None), "more": (0, None)}
    check_deadlock = False

    def state(self):
        each = range(self.n)
        return State(
            a=Array(each, Range(0, self.cap)),
            b=Array(each, Range(0, self.cap + self.more), init=self.cap),
            m=Array(each, Enum("P", "Q")),
            g=Range(0, self.more, init=self.more),
            h=Range(0, self.cap + 1),
            f=Bool(),
        )

    def full(self, x):
        """A helper that asks for a parameter in Python."""
        if self.more > 0:
            return x > self.cap
        return x == self.cap
'''


def _place(chance: random.Random, index: str) -> tuple[str, str]:
    """A number of the state and the text of its upper end."""
    return chance.choice(
        [
            (f"s.a[{index}]", "self.cap"),
            (f"s.b[{index}]", "self.cap + self.more"),
            ("s.g", "self.more"),
            ("s.h", "self.cap + 1"),
        ]
    )


def _condition(chance: random.Random, index: str) -> str:
    (x, _), (y, _) = _place(chance, index), _place(chance, index)
    (z, _) = _place(chance, "d")
    return chance.choice(
        [
            f"{x} > 0",
            f"{x} < {y}",
            f"{x} + {y} <= self.cap",
            f's.m[{index}] == "{chance.choice("PQ")}"',
            "s.f",
            "not s.f",
            f"self.full({x})",
            f"all({z} <= self.cap for d in range(self.n))",
            f'any(s.m[d] == "Q" for d in range(self.n) if d != {index})' if index != "0" else "s.g == 0",
            "sum(s.a[d] for d in range(self.n)) < self.cap",
            'sum(1 for d in range(self.n) if s.m[d] == "Q") == 0',
        ]
    )


def _change(chance: random.Random, index: str) -> list[str]:
    (x, top), (y, other_top) = _place(chance, index), _place(chance, index)
    sure = chance.random() < 0.85
    match chance.randrange(8):
        case 0:
            return [f"require({x} < {top})" if sure else "require(True)", f"{x} += 1"]
        case 1:
            return [f"require({x} > 0)" if sure else "require(True)", f"{x} -= 1"]
        case 2 | 3 if x != y:
            return [f"require({x} > 0 and {y} < {other_top})", f"{x} -= 1", f"{y} += 1"]
        case 4 if x != y:
            return [f"require({x} + {y} <= {other_top})", f"{y} += {x}", f"{x} = 0"]
        case 5:
            return [f's.m[{index}] = "{chance.choice("PQ")}"', "s.f = not s.f"]
        case 6:
            return [f"{x} = {chance.choice(['0', top])}"]
        case _:
            return [f"if {_condition(chance, index)} and {x} < {top}:", f"    {x} += 1", "else:", f"    {x} = 0"]


def _invariant(chance: random.Random) -> str:
    (x, top), (y, other) = _place(chance, "c"), _place(chance, "c")
    total = f"sum({x} for c in range(self.n))"
    return chance.choice(
        [
            f"all({x} + {y} <= {top} + {other} - {chance.choice('01')} for c in range(self.n))",
            f"all({x} + {y} == self.cap for c in range(self.n))",
            f"all({x} <= {y} for c in range(self.n))",
            f"{total} + s.g <= self.n * self.cap + self.more",
            f"{total} + s.g == self.n * self.cap + self.more",
            f'all(s.m[c] == "P" or {x} > 0 for c in range(self.n))',
            f"s.g + s.h <= {top}",
            'all(s.m[c] == "P" or s.m[d] == "P" for c in range(self.n) for d in range(self.n) if c != d)',
            f"any({x} == {y} for c in range(self.n))",
            f"all({x} < 3 for c in range(self.n))",
        ]
    )


def _whole(chance: random.Random, condition: str) -> list[str]:
    """Arrays written as a whole."""
    return chance.choice(
        [
            ["s.a = [x - 1 if x > 0 else x for x in s.a]"],
            ["require(all(s.a[k] > 0 for k in range(self.n)))", "s.a = [x - 1 for x in s.a]"],
            ["require(all(x < self.cap for x in s.a))", "s.a = [x + 1 for x in s.a]", "s.b = [x for x in s.a]"],
            ['s.m = ["Q" if s.a[k] > 0 else s.m[k] for k in range(self.n)]'],
            ["s.b = [s.a[k] for k in range(self.n)]", "s.a[c] = 0"],
            [f"if {condition}:", "    s.a = [0 for k in range(self.n)]", "    s.f = not s.f"],
            ['s.m = ["P" if k == c or s.f else "Q" for k in range(self.n)]'],
            [
                "s.a[c] = 0",
                "s.b = [s.a[k] + (1 if s.g > 0 and k != c and self.more > 0 else 0) for k in range(self.n)]",
            ],
            ["s.a = [x + 1 for x in s.a]"],
        ]
    )


def _text(seed: int, *, whole: bool = False) -> str:
    chance = random.Random(seed)
    lines = [HEAD]
    for number in range(chance.randint(2, 4)):
        two = chance.random() < 0.2
        lines.append(f"    @action({'c' + '=' + repr('n') + (', d=' + repr('n') if two else '')})")
        lines.append(f"    def act{number}(self, s, c{', d' if two else ''}):")
        if chance.random() < 0.6:
            lines.append(f"        require({_condition(chance, 'c')})")
        change = _change(chance, "c")
        if whole and chance.random() < 0.6:
            change = _whole(chance, _condition(chance, "c"))
        lines += [f"        {row}" for row in change]
        if two:
            lines += [f"        {row}" for row in _change(chance, "d")]
        lines.append("")
    for number in range(4):
        lines += ["    @invariant", f"    def inv{number}(self, s):", f"        return {_invariant(chance)}", ""]
    lines += ["    @step", "    def steps(self, s, t):", f"        return t.g <= s.g or {_condition(chance, '0')}", ""]
    return "\n".join(lines)


def _model(folder: Path, seed: int, *, whole: bool = False) -> type[Model]:
    path = folder / f"any_size_{seed}{'_whole' if whole else ''}.py"
    path.write_text(_text(seed, whole=whole), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    made: type[Model] = module.Random
    return made


def _at(size: tuple[int, int, int]) -> dict[str, int]:
    return dict(zip(FREE, size, strict=True))


@pytest.mark.parametrize("seed", share(range(8), 8, 4))
def test_what_is_proved_for_every_size_holds_at_every_size_searched(seed: int, tmp_path: Path) -> None:
    """No property that is proved is violated, and no proof is given of a model that makes a mistake, at any small size."""
    disagree(tmp_path, seed)


@pytest.mark.parametrize("seed", share(range(200, 206), 6))
def test_arrays_written_as_a_whole(seed: int, tmp_path: Path) -> None:
    """The same for rules that write every element of an array; the readings agree too."""
    spec = Spec(_model(tmp_path, seed, whole=True))
    compare_readings(spec, None, {}, spec.parametric(FREE))
    disagree(tmp_path, seed, whole=True)


@pytest.mark.long
@pytest.mark.parametrize("start", range(1_000, 1_400, 50))
def test_many_arrays_written_as_a_whole(start: int, tmp_path: Path) -> None:
    """The same for 400 models; some properties are proved, and have a certificate that is accepted."""
    proved = accepted = 0
    for seed in range(start, start + 50):
        spec = Spec(_model(tmp_path, seed, whole=True))
        parametric = spec.parametric(FREE)
        compare_readings(spec, None, {}, parametric)
        proved += disagree(tmp_path, seed, whole=True)
        proof = prove_any(parametric, list(parametric.system.properties))
        header, evidence, _ = contents_any(parametric, "model", ("--any", ""), proof)
        if header["claims"]:
            verify_any(packed(header, evidence), lambda _, same=parametric: same, lambda _: None)
            accepted += 1
    assert proved > 20
    assert accepted > 5


def disagree(folder: Path, seed: int, *, whole: bool = False) -> int:
    """How many properties were proved for every size; asserts that search agrees at small ones."""
    spec = Spec(_model(folder, seed, whole=whole))
    parametric = spec.parametric(FREE)
    stages = [
        lambda: law_candidates(parametric),
        lambda: bound_candidates(parametric, lambda values: spec.system(**values)),
    ]
    proof = prove_any(parametric, list(parametric.system.properties), stages)
    for size in SIZES if proof.proved else ():
        found = explore(spec.system(**_at(size)))
        assert found.mistake is None, (size, found.mistake)
        for name in proof.proved:
            assert found.finding(name).verdict is Verdict.HOLDS, (size, name, _text(seed, whole=whole))
    return len(proof.proved)


@pytest.mark.parametrize("seed", share(range(100, 104), 2))
def test_rules_mean_the_same_at_every_size(seed: int, tmp_path: Path) -> None:
    """Guards and updates of the parametric system, at given numbers, are those of the finite one in random states."""
    compare_rules(tmp_path, seed)


def compare_rules(folder: Path, seed: int) -> None:
    """Asserts that the terms for every size, with numbers put in, enable and do what the interpreter does."""
    chance = random.Random(seed)
    spec = Spec(_model(folder, seed))
    parametric = spec.parametric(FREE)
    quiet = [i for i in parametric.system.instances if not _speaks_of_all(i)]
    for size in chance.sample(SIZES, 4):
        system = spec.system(**_at(size))
        interpreter = Interpreter(system)
        for state in _some_states(interpreter, chance):
            for instance in quiet:
                for found in system.action(instance.action).instances:
                    universe = Universe()
                    names = _names(universe, parametric, system, state, _at(size))
                    for (_, value), (_, index) in zip(instance.args, found.args, strict=True):
                        assert isinstance(value, Var)
                        names[value.name] = universe.number(index)
                    view = SymbolicView(universe, names)
                    enabled = all(_true(universe, view.value(c.expr)) for c in instance.guard)
                    wrong = any(_true(universe, view.value(c.condition)) for c in instance.guard_checks)
                    wrong = wrong or (
                        enabled and any(_true(universe, view.value(c.condition)) for c in instance.effect_checks)
                    )
                    if _mistaken(interpreter, found, state):
                        assert wrong, (size, state, found.label)
                        continue
                    assert not wrong, (size, state, found.label)
                    after = interpreter.take(found, state)
                    assert enabled == (after is not None), (size, state, found.label)
                    if after is not None:
                        for name, term in instance.updates:
                            got = _plain(universe, system.variables[system.index[name]].sort, view.value(term), size[0])
                            assert got == after[system.index[name]], (size, state, found.label, name)


def _speaks_of_all(instance: Any) -> bool:
    from streamproof.system.expr import subterms
    from streamproof.transform.unbounded import Forall, Total

    terms = [c.expr for c in instance.guard] + [t for _, t in instance.updates]
    terms += [c.condition for c in (*instance.guard_checks, *instance.effect_checks)]
    return any(isinstance(t, Forall | Total) for t in subterms(*terms))


def _some_states(interpreter: Interpreter, chance: random.Random) -> list[Any]:
    state = next(interpreter.initial_states())
    states = [state]
    for _ in range(12):
        if not interpreter.system.instances:
            break  # every rule is disabled at this size
        instance = chance.choice(interpreter.system.instances)
        if not _mistaken(interpreter, instance, state):
            state = interpreter.take(instance, state) or state
            states.append(state)
    return list(dict.fromkeys(states))


def _mistaken(interpreter: Interpreter, instance: Any, state: Any) -> bool:
    from streamproof import EvaluationError

    try:
        interpreter.take(instance, state)
    except EvaluationError:
        return True
    return False


def _names(universe: Universe, parametric: Any, system: Any, state: Any, values: dict[str, int]) -> dict[str, Any]:
    names: dict[str, Any] = {name: universe.number(value) for name, value in values.items()}
    for variable, value in system.named(state):
        sort = variable.sort
        if isinstance(sort, ArraySort):
            free = universe.fresh(
                variable.name, parametric.system.variables[parametric.system.index[variable.name]].sort
            )
            for at, element in enumerate(value):
                literal = universe.literal(sort.element, element, None)
                free = Lanes(mapped(lambda lane, x, at=at: universe.z3.Store(lane, at, x), free.element, literal))
            names[variable.name] = free
        else:
            names[variable.name] = universe.literal(sort, value, None)
    return names


def _plain(universe: Universe, sort: Any, shape: Any, length: int) -> Any:
    z3 = universe.z3
    if isinstance(shape, Lanes):
        return tuple(_plain(universe, sort.element, z3.Select(shape.element, at), length) for at in range(length))
    term = z3.simplify(shape)
    if isinstance(sort, EnumSort):
        return sort.members[term.as_long()]
    return z3.is_true(term) if z3.is_bool(term) else term.as_long()


def _true(universe: Universe, formula: Any) -> bool:
    return bool(universe.z3.is_true(universe.z3.simplify(formula)))


BROKEN = {name: set(expected) for name, expected in SPEC.expected.items()}


@pytest.mark.long
@pytest.mark.parametrize("variant", share([v for v in SPEC.model.variants if v != "runtime"], 16))
def test_no_broken_rule_of_credit_is_proved(variant: str) -> None:
    """What a variant breaks at one size is not proved for every size, with any number of channels or with two. The variant
    `runtime` has a queue whose capacity is a parameter, which is refused."""
    free = [
        name
        for name in ("channels", "exclusive", "floating", "depth")
        if (variant, name) != ("zero-exclusive", "exclusive")
    ]
    for chosen in (free, free[1:]):
        parametric = SPEC.parametric(chosen, variant)
        properties = [p for p in parametric.system.properties if p.kind is Kind.INVARIANT]
        stages = [lambda p=parametric: law_candidates(p), lambda p=parametric: drift_candidates(p)]
        proof = prove_any(parametric, properties, stages)
        assert not set(proof.proved) & BROKEN.get(variant, set())


@pytest.mark.parametrize("channels", share([1, 2], 2))
def test_credit_with_any_buffers_and_any_budget(channels: int) -> None:
    """Conservation, no overflow, the pool, the limit and the end of a channel are proved, from lemmas that nobody wrote."""
    parametric = SPEC.parametric(("exclusive", "floating", "depth"), channels=channels)
    _expect_all_proved(parametric, {"channels": channels})


@pytest.mark.long
def test_credit_with_any_number_of_channels() -> None:
    """So they are for any number of channels too, where sums run over all of them."""
    parametric = SPEC.parametric(("channels", "exclusive", "floating", "depth"))
    assert any(
        isinstance(v.sort, ArraySort) and isinstance(v.sort.index, TermRange) for v in parametric.system.variables
    )
    _expect_all_proved(parametric, {})


@pytest.mark.long
def test_lost_announcements_never_let_a_buffer_arrive_without_a_place() -> None:
    """Credits may be lost, for any number of channels: there are at most as many as free buffers, which is enough."""
    parametric = SPEC.parametric(("channels", "exclusive", "floating", "depth"), "lost-announcement")
    properties = [p for p in parametric.system.properties if p.kind is Kind.INVARIANT]
    proof = prove_any(
        parametric, properties, [lambda: law_candidates(parametric), lambda: drift_candidates(parametric)]
    )
    assert set(proof.proved) >= {"no_overflow", "pool_conserved"}
    assert "conservation" not in proof.proved
    credit = "num_credits_available[c] + in_flight[c] + announced_credit[c] + unannounced_credit[c]"
    assert f"for all c: {credit} <= available_buffers[c]" in proof.found


def _expect_all_proved(parametric: Any, given: dict[str, int]) -> None:
    properties = [p for p in parametric.system.properties if p.kind is Kind.INVARIANT]
    stages = [
        lambda: law_candidates(parametric),
        lambda: bound_candidates(parametric, lambda values: SPEC.system(**given, **values)),
    ]
    proof = prove_any(parametric, properties, stages)
    assert parametric.system.lemmas == ()
    assert set(proof.proved) == {"conservation", "no_overflow", "pool_conserved", "within_limit", "nothing_remains"}


def test_termination_detection_on_a_ring_of_any_length() -> None:
    """Dijkstra's invariant is inductive for every number of machines, and implies that what is detected is so."""
    spec = find("reference.ewd840").spec
    parametric = spec.parametric(("n",))
    safety = [p for p in parametric.system.properties if p.kind is Kind.INVARIANT]
    assert prove_any(parametric, safety).proved == ("detection_is_right", "dijkstra")
    alone = prove_any(parametric, [parametric.system.property("detection_is_right")])
    assert alone.proved == ()
