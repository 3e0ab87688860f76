"""Random systems and models with all features of the language at once: every engine, Python and other checkers agree."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from random_features import FORMS, Featured, featured
from random_models import model_source
from streamproof import EvaluationError, Native, explore
from streamproof.agree import asking
from streamproof.exchange import itf
from streamproof.language.native_machine import StateView
from streamproof.language.sources import CallSite
from streamproof.language.views import checked
from streamproof.system import Interpreter, Kind, Verdict
from streamproof.system.interpreter import with_derived
from streamproof.traces.replay import verify

FEATURES = {
    "labelled branch": "choose(go=",
    "fair branch": ".branch(",
    "fair part": ".where(",
    "enabled": "enabled(",
    "first": "first(",
    "bag": "Bag(message",
    "union": "Ask(",
    "match": "match ",
    "keys": "Array(self.edges",
    "empty": "Array(0",
    "empty domain": "range(m.n - 2)",
    "dependent domain": "range(k, m.n)",
    "constraint": "def limit",
    "step constraint": "def step_limit",
    "without": "without=",
    "optional": "self.most is",
    "several": "any_of(",
    "subset of an Enum": "s.wide = s.who",
}
"""Features of written models, and a text by which each is recognised."""
MOST = 40
"""States in which Python is asked beside the interpreter."""


def outcome(run: Any, *args: Any) -> tuple[Any, ...]:
    """What a run results in: a value, or an error with its line."""
    try:
        return ("value", run(*args))
    except EvaluationError as error:
        return ("error", error.loc and error.loc.line)


def python_agrees(made: Featured) -> None:
    """The rules, properties and derived values of a model in its first reachable states, as plain Python functions."""
    assert made.model is not None
    system, model = made.system, made.model()
    native, interpreter = Native(model), Interpreter(system)
    seen = dict.fromkeys(interpreter.initial_states())
    assert list(seen) == list(native.initial())
    for state in (todo := list(seen)):
        for prop in system.properties:
            if prop.kind in (Kind.INVARIANT, Kind.REACHABLE):
                assert outcome(native.holds, prop.name, state) == outcome(interpreter.holds, prop, state), prop.name
        for instance in system.instances:
            lowered = outcome(interpreter.take, instance, state)
            if native.picks(state, instance, system) is None:
                assert lowered[0] == "error" or lowered[1] is None, instance.label
                continue
            ran = outcome(native.take, state, instance, system)
            if (
                ran != lowered
            ):  # Python does not see the fair part, and may fail before it knows whether it takes a branch
                twins = [i for i in system.instances if (i.action, i.args) == (instance.action, instance.args)]
                named = [i for i in twins if i.label == instance.label or ran[0] == "error"]
                assert lowered == ("value", None), (instance.label, state)
                assert ran in [outcome(interpreter.take, i, state) for i in named], (instance.label, state)
            after = lowered[1] if lowered[0] == "value" else None
            if after is None:
                continue
            steps = system.property("steps")
            assert outcome(native.holds, "steps", state, after) == outcome(interpreter.holds, steps, state, after)
            if after not in seen and len(seen) < MOST:
                seen[after] = None
                todo.append(after)


def traces_agree(made: Featured, folder: Path) -> Counter[str]:
    """Traces are read again, replayed, and show the derived values that Python computes; coverage counts the branches."""
    assert made.model is not None
    system, model, seen = made.system, made.model(), Counter[str]()
    native, found = Native(model), explore(system)
    sorts = {v.name: v.sort for v in system.variables}
    for prop in system.properties:
        finding = found.finding(prop.name)
        seen[f"{prop.kind.value} {finding.verdict.value}"] += 1
        trace = finding.trace
        if trace is None:
            continue
        if finding.verdict is not Verdict.ERROR:
            verify(system, prop, trace)
        itf.write_itf(folder / "trace.itf.json", system, trace, prop)
        again = itf.read_itf(folder / "trace.itf.json", system)
        assert (again.states, again.loop) == (trace.states, trace.loop)
        assert [i.label for i in again.steps] == [i.label for i in trace.steps]
        for before, after in zip(trace.states, with_derived(system, trace)[1].states, strict=True):
            shown, possible = after[len(before) :]
            assert ("value", possible) == outcome(native.holds, "possible", before) or possible is None
            try:
                view = StateView(sorts, before, writable=False)
                assert shown == checked(system.derived[0].expr.sort, made.model.shown(model, view), CallSite())
            except IndexError:
                assert shown is None
    if found.complete and found.mistake is None:
        interpreter, counted = Interpreter(system), Counter[tuple[str, str]]()
        for state in found.states():
            for step in interpreter.steps(state):
                counted.update((step.instance.action, b) for b in dict.fromkeys(step.instance.branches))
        assert {at: steps for at, (steps, _) in found.coverage.branches.items() if steps} == dict(counted)
        seen["branch taken"] += bool(counted)
        seen["branch never taken"] += bool(found.coverage.never_branches)
    return seen


def compare(panel: Any, expect: Any, folder: Path, seeds: range) -> Counter[str]:
    """Compare all engines on the systems of these seeds; how many there were of each form, feature and verdict."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        made = featured(seed, folder)
        if made is None:
            continue
        try:
            referee = panel.interpreter_result(made.system)
            if not referee.ordered.levels:
                continue
            referee.compare(panel.explored(made.system, "python"))
            referee.compare(panel.explored(made.system, "compiled"))
            if made.form != "partly_fair":
                referee.compare(panel.bounded(made.system, 3 if made.model else 4))
                allowed = expect(made.system)
                for name, answer in asking.proved(made.system, 1 if made.model else 2).answers.items():
                    assert answer.verdict in {Verdict.INCONCLUSIVE, *allowed[name].verdicts}, name
            if made.model is not None:
                python_agrees(made)
                seen += traces_agree(made, folder)
                seen.update(feature for feature, text in FEATURES.items() if text in made.source)
        except Exception as error:
            error.add_note(f"featured({seed})")
            raise
        seen[made.form] += 1
        seen["bags"] += any("Bag(" in str(v.sort) for v in made.system.variables)
    return seen


def test_random_systems(panel: Any, expect: Any, tmp_path: Path) -> None:
    """Some systems, one or more of each form."""
    seen = compare(panel, expect, tmp_path, range(12))
    assert seen.keys() >= set(FORMS)
    assert seen["bags"] >= 4


def test_every_feature_is_in_the_written_models() -> None:
    """Each of them in some of the first hundred models."""
    sources = [model_source(seed) for seed in range(100)]
    few = {f: n for f, text in FEATURES.items() if (n := sum(text in source for source in sources)) < 5}
    assert not few


@pytest.mark.long
@pytest.mark.parametrize("part", range(22))
def test_three_thousand_random_systems(panel: Any, expect: Any, tmp_path: Path, part: int) -> None:
    """Some hundred and seventy systems at a time."""
    seeds = range(100_000 + 200 * part, 100_000 + 200 * (part + 1))
    seen = compare(panel, expect, tmp_path, seeds)
    assert sum(seen[form] for form in set(FORMS)) >= 137
    assert seen["bags"] >= 50
