"""A fault in any one rule of any backend is noticed: seeded one at a time, each makes the engines disagree.

A fault replaces one rule of one translation by a wrong one, as a slip would. The corpus are random systems,
on which the sound engines agree; a fault counts as caught when the comparison that `check --agree` makes shows a difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from nonempty import nonempty
from quick_tlc import QUICK
from shares import share
from streamproof.agree import panel_engines
from streamproof.agree.comparing import differences
from streamproof.agree.result import EngineResult
from streamproof.base.options import Tuning
from streamproof.exchange.promela import model as promela
from streamproof.exchange.promela import spin
from streamproof.exchange.promela import steps as promela_steps
from streamproof.exchange.promela import terms as promela_terms
from streamproof.exchange.promela.spin_run import installed
from streamproof.exchange.tla import terms as tla_terms
from streamproof.exchange.tla import tlc
from streamproof.explicit import successors, writer
from streamproof.explicit.compiled import steps
from streamproof.explicit.compiled.packed_states import Emitter
from streamproof.explicit.level_search import Budget
from streamproof.explicit.liveness import fair_graph
from streamproof.symbolic import encoding, goals, theory
from streamproof.system import (
    Fairness,
    Kind,
    System,
    TooLarge,
)
from streamproof.system import build as b
from streamproof.system import expr as e

Patch = pytest.MonkeyPatch
Seed = Callable[[Patch], None]
"""Puts one fault in its place, until the test is over."""

needs_spin = pytest.mark.skipif(installed() is not None, reason=f"needs Spin: {installed()}")
JVM = replace(QUICK, seconds=60)
SMALL = spin.SpinOptions(hash_bits=12, depth=100_000, optimise="-O0", memory=512, seconds=15)
DEPTH = 4


def _differs(case: Any, opinion: EngineResult) -> bool:
    return any(True for _ in differences(case.system, (case.said.result, opinion), case.said.expected))


def _caught(cases: Sequence[Any], ask: Callable[[System], EngineResult]) -> bool:
    """Whether some system makes the faulty engine differ; one on which it crashes does not count."""
    for case in cases:
        try:
            opinion = ask(case.system)
        except Exception:
            continue
        if _differs(case, opinion):
            return True
    return False


# --- faults in a rule of a system, as both explicit tiers write it ----------------------------------------------------

Rules = list[successors.Rule]


def _each(change: Callable[[successors.Rule], successors.Rule]) -> Callable[[System, Rules], Rules]:
    return lambda system, rules: [change(rule) for rule in rules]


def _forgetting_an_update(system: System, rules: Rules) -> Rules:
    before = [b.var(v.name, v.sort) for v in system.variables]
    found = []
    for rule in rules:
        changed = [k for k, term in enumerate(rule.after) if term is not before[k]]
        after = tuple(before[k] if changed[-1:] == [k] else term for k, term in enumerate(rule.after))
        found.append(replace(rule, after=after, changes=after != tuple(before)))
    return found


def _never(system: System, rules: Rules) -> Rules:
    return [*rules[:-1], replace(rules[-1], guard=(b.FALSE,))] if rules else rules


RULES: dict[str, Callable[[System, Rules], Rules]] = {
    "the last condition of a guard is forgotten": _each(lambda r: replace(r, guard=r.guard[:-1])),
    "the first condition of a guard is forgotten": _each(lambda r: replace(r, guard=r.guard[1:])),
    "a condition of a guard is negated": _each(lambda r: replace(r, guard=(*r.guard[:-1], *map(b.not_, r.guard[-1:])))),
    "an update is forgotten": _forgetting_an_update,
    "mistakes of effects are ignored": _each(lambda r: replace(r, faults=b.FALSE)),
    "the last instance is never taken": _never,
    "step properties are not looked at": _each(lambda r: replace(r, steps=())),
    "step properties are taken for their negation": _each(
        lambda r: replace(r, steps=tuple((k, m, b.not_(x)) for k, m, x in r.steps))
    ),
    "mistakes of step properties are ignored": _each(
        lambda r: replace(r, steps=tuple((k, b.FALSE, x) for k, _, x in r.steps))
    ),
}


def _in_rules(module: Any, change: Callable[[System, Rules], Rules]) -> Seed:
    sound = module.rules_of

    def faulty(system: System, properties: Any, **more: int) -> Rules:
        return change(system, sound(system, properties, **more))

    return lambda patch: patch.setattr(module, "rules_of", faulty)


# --- the Python tier ------------------------------------------------------------------------------------------------


def _written(kind: type[e.Node], old: str, new: str) -> Seed:
    sound = writer.Writer._format

    def faulty(self: Any, term: Any, texts: Any) -> tuple[str, int]:
        text, height = sound(self, term, texts)
        return (text.replace(old, new) if isinstance(term, kind) and height else text), height

    return lambda patch: patch.setattr(writer.Writer, "_format", faulty)


def _ending_anywhere(patch: Patch) -> None:
    sound = successors._finish_state
    patch.setattr(successors, "_finish_state", lambda out, terminal, edges: sound(out, b.TRUE, edges))


def _told(answer: Callable[[int], int]) -> Seed:
    """Step properties are told by functions, as large ones are, and these give another answer."""

    def seed(patch: Patch) -> None:
        patch.setattr(Budget, "tuning", Tuning(large_property=-1))
        sound = successors.StepClaim.judge
        patch.setattr(
            successors.StepClaim, "judge", lambda claim: (lambda tell: lambda *at: answer(tell(*at)))(sound(claim))
        )

    return seed


PYTHON: dict[str, Seed] = {
    "large step properties are not looked at": _told(lambda answer: 0),
    "mistakes of large step properties are violations": _told(lambda answer: min(answer, 1)),
    **{name: _in_rules(successors, change) for name, change in RULES.items()},
    "+ is written as -": _written(e.Add, " + ", " - "),
    "- is written as +": _written(e.Sub, " - ", " + "),
    "* is written as +": _written(e.Mul, " * ", " + "),
    "not <= is written as >=": _written(e.Not, " > ", " >= "),
    "<= is written as <": _written(e.LessEq, " <= ", " < "),
    "== is written as !=": _written(e.Eq, " == ", " != "),
    "and is written as or": _written(e.And, " and ", " or "),
    "or is written as and": _written(e.Or, " or ", " and "),
    "branches are exchanged": _written(e.Ite, " if ", " if not "),
    "not is left out": _written(e.Not, "(not ", "("),
    "// is written as %": _written(e.FloorDiv, " // ", " % "),
    "% is written as //": _written(e.Mod, " % ", " // "),
    "every end is a legal one": _ending_anywhere,
}

# --- the compiled tier ----------------------------------------------------------------------------------------------


def _emitted(old: str, new: str) -> Seed:
    """Instructions for terms only: those around them are the same for every system."""
    emit, add = Emitter._emit, Emitter.new
    inside: list[bool] = []

    def faulty_emit(self: Any, term: Any) -> str:
        inside.append(True)
        try:
            return emit(self, term)
        finally:
            inside.pop()

    def faulty_new(self: Any, operation: str) -> str:
        return add(self, re.sub(old, new, operation) if inside else operation)

    def seed(patch: Patch) -> None:
        patch.setattr(Emitter, "_emit", faulty_emit)
        patch.setattr(Emitter, "new", faulty_new)

    return seed


def _distance_backwards(patch: Patch) -> None:
    sound = steps._distance

    def faulty(name: str, term: Any) -> int | None:
        distance = sound(name, term)
        return None if distance is None else -distance

    patch.setattr(steps, "_distance", faulty)


COMPILED: dict[str, Seed] = {
    **{name: _in_rules(steps, change) for name, change in RULES.items()},
    "+ is compiled as -": _emitted("^add nsw", "sub nsw"),
    "- is compiled as +": _emitted("^sub nsw", "add nsw"),
    "* is compiled as +": _emitted("^mul nsw", "add nsw"),
    "numbers are compared without their sign": _emitted("^icmp sle", "icmp ule"),
    "<= is compiled as <": _emitted("^icmp sle", "icmp slt"),
    "<= of a field is compiled as <": _emitted("^icmp ule", "icmp ult"),
    "== is compiled as !=": _emitted("^icmp eq (?!.*, 0$)", "icmp ne "),
    "and is compiled as or": _emitted("^and i1", "or i1"),
    "or is compiled as and": _emitted("^or i1", "and i1"),
    "not is left out": _emitted("^xor i1 (.*), true", r"xor i1 \1, false"),
    "branches are exchanged": _emitted(r"^select i1 (\S+), (?!i64 [01],)(.*), (.*)$", r"select i1 \1, \3, \2"),
    "fields are moved the other way": _distance_backwards,
}

# --- the symbolic engine --------------------------------------------------------------------------------------------


def _method(place: Any, name: str, make: Callable[[Any], Any]) -> Seed:
    sound = getattr(place, name)
    return lambda patch: patch.setattr(place, name, make(sound))


def _operator(name: str, other: str) -> Seed:
    bits = theory.Bits
    return _method(bits, name, lambda _: getattr(bits, other))


def _applied(kind: type[e.Node], other: type[e.Node]) -> Seed:
    return lambda patch: patch.setitem(theory.OPERATORS, kind, theory.OPERATORS[other])


def _translated(kind: type[e.Node], wrong: Callable[[Any, Any], Any]) -> Seed:
    sound = theory.Terms._translate

    def faulty(self: Any, term: Any) -> Any:
        return wrong(self, term) if isinstance(term, kind) else sound(self, term)

    return lambda patch: patch.setattr(theory.Terms, "_translate", faulty)


def _formula(name: str, wrong: Callable[[Any], Any]) -> Seed:
    return lambda patch: patch.setattr(encoding.Encoding, name, property(wrong))


def _without(name: str, part: Callable[[Any], Any]) -> Seed:
    """A formula that is made from a system with something left out."""
    sound = vars(encoding.Encoding)[name].func

    def wrong(self: Any) -> Any:
        whole = self.system
        self.system = part(whole)
        try:
            return sound(self)
        finally:
            self.system = whole

    return _formula(name, wrong)


def _instances(change: Callable[[Any], Any]) -> Callable[[System], System]:
    return lambda s: replace(s, actions=tuple(replace(a, instances=tuple(map(change, a.instances))) for a in s.actions))


def _event(kind: Kind, wrong: Callable[[Any, Any, Any], Any]) -> Seed:
    sound = goals._decisive
    return lambda patch: patch.setattr(
        goals, "_decisive", lambda enc, prop: wrong(enc, prop, sound) if prop.kind is kind else sound(enc, prop)
    )


def _ignoring(kind: Kind) -> Seed:
    sound = goals._goal
    return lambda patch: patch.setattr(
        goals, "_goal", lambda enc, p, twin: sound(enc, p, replace(twin, checks=()) if p.kind is kind else twin)
    )


SYMBOLIC: dict[str, Seed] = {
    "+ is translated as -": _applied(e.Add, e.Sub),
    "- is translated as +": _applied(e.Sub, e.Add),
    "* is translated as +": _applied(e.Mul, e.Add),
    "// is translated as %": _operator("floor_div", "mod"),
    "% is translated as //": _operator("mod", "floor_div"),
    "< is translated as <=": _applied(e.Less, e.LessEq),
    "<= is translated as <": _applied(e.LessEq, e.Less),
    "branches are exchanged": _method(
        theory.Bits, "choose", lambda sound: lambda self, cond, then, other: sound(self, cond, other, then)
    ),
    "and is translated as or": _translated(e.And, lambda t, x: t._z3.Or([t._known[a] for a in x.args])),
    "or is translated as and": _translated(e.Or, lambda t, x: t._z3.And([t._known[a] for a in x.args])),
    "not is left out": _translated(e.Not, lambda t, x: t._known[x.arg]),
    "the next state is read as this one": _translated(e.Next, lambda t, x: t.read(t._current, x.name)),
    "the last condition of a guard is forgotten": _without(
        "transition", _instances(lambda i: replace(i, guard=i.guard[:-1]))
    ),
    "the last update of a step is forgotten": _without(
        "transition", _instances(lambda i: replace(i, updates=i.updates[:-1]))
    ),
    "mistakes of the model are ignored": _formula("mistake", lambda self: self.any_of(())),
    "the initial condition is ignored": _without("initial", lambda s: replace(s, initially=b.TRUE)),
    "variables begin with their first value": _without(
        "initial", lambda s: replace(s, variables=tuple(replace(v, initial=v.initial[:1]) for v in s.variables))
    ),
    "legal ends are ignored": _without("stuck", lambda s: replace(s, terminal=None)),
    "guards are ignored where nothing can be done": _without("stuck", _instances(lambda i: replace(i, guard=()))),
    "invariants are taken for their negation": _event(Kind.INVARIANT, lambda enc, p, _: enc.term(p.expr)),
    "reachability is taken for its negation": _event(Kind.REACHABLE, lambda enc, p, _: enc.no(enc.term(p.expr))),
    "mistakes of properties are ignored": _ignoring(Kind.STEP),
}

# --- Promela --------------------------------------------------------------------------------------------------------


def _told(kind: type[e.Node], old: str, new: str) -> Seed:
    sound = promela_terms._term_text

    def faulty(term: Any, texts: Any) -> str:
        text = sound(term, texts)
        return text.replace(old, new) if isinstance(term, kind) else text

    return lambda patch: patch.setattr(promela_terms, "_term_text", faulty)


def _counted(**wrong: Callable[[int], int]) -> Seed:
    sound = spin.count

    def faulty(system: System, options: Any) -> Any:
        found = sound(system, options)
        return replace(found, **{name: change(getattr(found, name)) for name, change in wrong.items()})

    return lambda patch: patch.setattr(spin, "count", faulty)


def _updates(change: Callable[[dict[Any, Any]], dict[Any, Any]]) -> Seed:
    sound = promela_steps.Assignments.statements
    return lambda patch: patch.setattr(
        promela_steps.Assignments, "statements", lambda self, updates: sound(self, change(dict(updates)))
    )


def _exported(change: Callable[[System], System]) -> Seed:
    sound = promela.export
    return lambda patch: patch.setattr(spin, "export", lambda system: sound(change(system)))


PROMELA: dict[str, Seed] = {
    "+ is written as -": _told(e.Add, " + ", " - "),
    "- is written as +": _told(e.Sub, " - ", " + "),
    "* is written as +": _told(e.Mul, " * ", " + "),
    "quotients are not rounded down": _told(e.FloorDiv, " - 1 :", " :"),
    "<= is written as <": _told(e.LessEq, " <= ", " < "),
    "== is written as !=": _told(e.Eq, " == ", " != "),
    "&& is written as ||": _told(e.And, " && ", " || "),
    "|| is written as &&": _told(e.Or, " || ", " && "),
    "! is left out": _told(e.Not, "!", ""),
    "/ is written as %": _told(e.FloorDiv, " / ", " % "),
    "% is written as /": _told(e.Mod, " % ", " / "),
    "an update is forgotten": _updates(lambda u: dict(list(u.items())[:-1])),
    "guards lose their last condition": _exported(_instances(lambda i: replace(i, guard=i.guard[:-1]))),
    "mistakes of effects are ignored": _exported(_instances(lambda i: replace(i, effect_checks=()))),
    "mistakes of guards are ignored": _exported(_instances(lambda i: replace(i, guard_checks=()))),
    "the initial condition is ignored": _exported(lambda s: replace(s, initially=b.TRUE)),
    "legal ends are ignored": _exported(lambda s: replace(s, terminal=None)),
    "the choice of the initial state is a level": _counted(depth=lambda n: n + 1),
    "matched states are not counted": _counted(generated=lambda n: n - 1),
    "a state inside the choice is counted": _counted(distinct=lambda n: n + 1),
}

# --- TLA+ -----------------------------------------------------------------------------------------------------------


def _symbols(method: str, symbols: Mapping[str, str], place: Any = tla_terms.WrittenPassage) -> Seed:
    """One operator is taken for another where terms of this kind are written."""
    return _method(
        place,
        method,
        lambda sound: lambda self, *rest: sound(self, *(symbols.get(x, x) if isinstance(x, str) else x for x in rest)),
    )


def _specified(change: Callable[[System], System]) -> Seed:
    return _method(tlc, "export", lambda sound: lambda system: sound(change(system)))


def _reported(**changes: Callable[[int], int]) -> Seed:
    def faulty(sound: Any) -> Any:
        def run(*args: Any) -> Any:
            report = sound(*args)
            return replace(report, **{name: change(getattr(report, name)) for name, change in changes.items()})

        return run

    return _method(tlc, "run", faulty)


TLA: dict[str, Seed] = {
    "+ is written as -": _method(
        tla_terms.WrittenPassage, "_sum", lambda _: lambda self, terms: self._chain("-", terms)
    ),
    "- is written as +": _symbols("_chain", {"-": "+"}),
    "* is written as +": _symbols("_chain", {"*": "+"}),
    "a union is written as an intersection": _symbols("_chain", {"\\cup": "\\cap"}),
    "a difference is written as a union": _symbols("_chain", {"\\": "\\cup"}),
    "< is written as <=": _symbols("_compared", {"<": "<="}),
    "<= is written as <": _symbols("_compared", {"<=": "<"}),
    "= is written as #": _symbols("_compared", {"=": "#"}),
    "# is written as =": _symbols("_compared", {"#": "="}),
    "not <= is written as >=": _symbols("_compared", {">": ">="}),
    "membership is negated": _symbols("_member", {"\\in": "\\notin"}),
    "a negation is left out": _method(
        tla_terms.WrittenPassage, "_negation", lambda _: lambda self, arg: self.text(arg)
    ),
    "conjunctions are written as disjunctions": _symbols("connected", {"/\\": "\\/"}, tla_terms),
    "disjunctions are written as conjunctions": _symbols("connected", {"\\/": "/\\"}, tla_terms),
    "branches are exchanged": _method(
        tla_terms, "chosen", lambda sound: lambda cond, then, other: sound(cond, other, then)
    ),
    "quotients are written as remainders": _symbols("_divided", {"\\div": "%", "FloorDiv": "FloorMod"}),
    "remainders are written as quotients": _symbols("_divided", {"%": "\\div", "FloorMod": "FloorDiv"}),
    "an update is forgotten": _specified(_instances(lambda i: replace(i, updates=i.updates[:-1]))),
    "guards lose their last condition": _specified(_instances(lambda i: replace(i, guard=i.guard[:-1]))),
    "mistakes of effects are ignored": _specified(_instances(lambda i: replace(i, effect_checks=()))),
    "mistakes of guards are ignored": _specified(_instances(lambda i: replace(i, guard_checks=()))),
    "the initial condition is ignored": _specified(lambda s: replace(s, initially=b.TRUE)),
    "legal ends are ignored": _specified(lambda s: replace(s, terminal=None)),
    "the initial states are not counted as generated": _reported(generated=lambda n: n - 1),
    "levels are counted from 0": _reported(depth=lambda n: n and n - 1),
}
SOON = (
    "an update is forgotten",
    "the initial states are not counted as generated",
)
"""Faults that the first system shows in what TLC counts, with one start of its virtual machine."""

# --- temporal properties --------------------------------------------------------------------------------------------


def _owed(change: Callable[[Any], Any]) -> Seed:
    sound = fair_graph.fairness_constraints

    def faulty(system: System) -> tuple[Any, ...]:
        return tuple(one for one in map(change, sound(system)) if one is not None)

    return lambda patch: patch.setattr(fair_graph, "fairness_constraints", faulty)


LIVENESS: dict[str, Seed] = {
    "fairness is ignored": _owed(lambda one: None),
    "weak fairness is ignored": _owed(lambda one: None if one.fairness is Fairness.WEAK else one),
    "strong fairness is ignored": _owed(lambda one: None if one.fairness is Fairness.STRONG else one),
    "strong fairness is taken for weak": _owed(lambda one: replace(one, fairness=Fairness.WEAK)),
    "one pick of an action is owed, not all": _owed(lambda one: replace(one, numbers=one.numbers[:1])),
}


def test_there_are_twenty_faults_for_each_backend() -> None:
    """Each table has at least twenty, and they are single rules, distinguished by name."""
    assert min(map(len, (PYTHON, COMPILED, SYMBOLIC, PROMELA, TLA))) >= 20


def test_without_a_fault_nothing_differs(corpus: Sequence[Any], fair_corpus: Sequence[Any]) -> None:
    """The engines agree on the whole corpus: what is caught below is the fault."""
    for case in nonempty(corpus):
        assert not _differs(case, panel_engines.explored(case.system, "python"))
    for case in corpus[:12]:
        assert not _differs(case, panel_engines.bounded(case.system, DEPTH))
    for case in corpus[:6]:
        assert not _differs(case, panel_engines.explored(case.system, "compiled"))
    for case in nonempty(fair_corpus):
        assert not _differs(case, panel_engines.explored(case.system, "python"))


@pytest.mark.parametrize("fault", share(PYTHON, 3))
def test_faults_of_the_python_tier_are_caught(corpus: Sequence[Any], monkeypatch: Patch, fault: str) -> None:
    """One rule of the generator of Python code is wrong."""
    PYTHON[fault](monkeypatch)
    assert _caught(corpus, lambda system: panel_engines.explored(system, "python", seconds=1))


@pytest.mark.parametrize("fault", share(COMPILED, 3))
def test_faults_of_the_compiled_tier_are_caught(corpus: Sequence[Any], monkeypatch: Patch, fault: str) -> None:
    """One rule of the generator of machine code is wrong."""
    COMPILED[fault](monkeypatch)
    assert _caught(corpus, lambda system: panel_engines.explored(system, "compiled", seconds=2))


@pytest.mark.parametrize("fault", share(SYMBOLIC, 3))
def test_faults_of_the_symbolic_engine_are_caught(corpus: Sequence[Any], monkeypatch: Patch, fault: str) -> None:
    """One rule of the translation to formulas is wrong."""
    SYMBOLIC[fault](monkeypatch)
    assert _caught(corpus, lambda system: panel_engines.bounded(system, DEPTH, seconds=5))


@pytest.mark.parametrize("fault", share(LIVENESS, 3))
def test_faults_in_temporal_verdicts_are_caught(fair_corpus: Sequence[Any], monkeypatch: Patch, fault: str) -> None:
    """Fairness is misunderstood in one way."""
    LIVENESS[fault](monkeypatch)
    assert _caught(fair_corpus, lambda system: panel_engines.explored(system, "python", seconds=1))


def _text(system: System) -> str:
    try:
        return spin.export(system).text
    except TooLarge as error:
        return error.message


@needs_spin
@pytest.mark.long
@pytest.mark.parametrize("fault", PROMELA)
def test_faults_of_the_promela_export_are_caught(corpus: Sequence[Any], monkeypatch: Patch, fault: str) -> None:
    """One rule of the translation to Promela, or of reading Spin's report, is wrong. Asked is where the text is another."""
    sound = [_text(case.system) for case in corpus]
    PROMELA[fault](monkeypatch)
    others = [case for case, text in zip(corpus, sound, strict=True) if _text(case.system) != text]
    assert _caught(others or corpus[:1], lambda system: panel_engines.run_spin(system, SMALL))


def _told_to_tlc(system: System) -> Mapping[str, str] | str:
    try:
        return tlc.export(system).files
    except TooLarge as error:
        return error.message


def _counted_by_tlc(system: System) -> EngineResult:
    """What needs one start of TLC only."""
    counted = tlc.count(system, JVM)
    return EngineResult(
        "TLC", {}, counted.distinct, counted.generated, counted.depth, mistake=counted.mistake, tells_mistakes=True
    )


@pytest.mark.parametrize(
    "fault", [pytest.param(f, marks=[] if f in SOON else [pytest.mark.long], id=f.replace("\\", "")) for f in TLA]
)
@pytest.mark.usefixtures("jar")
def test_faults_of_the_tla_export_are_caught(corpus: Sequence[Any], monkeypatch: Patch, fault: str) -> None:
    """One rule of the translation to TLA+, or of reading TLC's report, is wrong. Asked is where the text is another."""
    sound = [_told_to_tlc(case.system) for case in corpus]
    TLA[fault](monkeypatch)
    others = [case for case, text in zip(corpus, sound, strict=True) if _told_to_tlc(case.system) != text] or corpus[:1]
    some = others[:3]
    assert _caught(some, _counted_by_tlc) or _caught(others, lambda system: panel_engines.run_tlc(system, JVM))
