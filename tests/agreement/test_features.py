"""Random systems and models with all features of the language at once: every engine, Python and other checkers agree."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from random_features import FORMS, Featured, featured, written
from random_models import model_source
from shares import share
from streamproof import EvaluationError, Model, Native, SearchOptions, explore
from streamproof.agree import panel_engines
from streamproof.certify.evidence import certify_search
from streamproof.certify.proofs import certify_proof
from streamproof.certify.verifier import verify as verify_certificate
from streamproof.exchange.itf import reading as itf_reading
from streamproof.exchange.itf import writing as itf
from streamproof.language.lower.sources import CallSite
from streamproof.language.native.views import checked
from streamproof.symbolic.goals import ENDLESS
from streamproof.symbolic.portfolio import Engine
from streamproof.symbolic.proof import prove
from streamproof.system import Interpreter, Kind, System, Verdict
from streamproof.system.interpreter import with_derived
from streamproof.traces.replay import verify

from .parametric_models import Drawn
from .parametric_trial import attempt

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
    "interchangeable names": "self.hosts)",
    "a bound from a parameter": "Range(0, self.n)",
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


def mistaken(made: Featured, state: Any) -> bool:
    """Whether Python cannot tell whether a rule is enabled: it stops at a mistake, behind which there may be guards."""
    interpreter = Interpreter(made.system)
    failing = (i for i in made.system.instances if outcome(interpreter.take, i, state)[0] == "error")
    return "enabled(" in made.source and any(True for _ in failing)


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
                ran, lowered = outcome(native.holds, prop.name, state), outcome(interpreter.holds, prop, state)
                assert ran == lowered or mistaken(made, state), prop.name
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
            same = outcome(native.holds, "steps", state, after) == outcome(interpreter.holds, steps, state, after)
            assert same or mistaken(made, state) or mistaken(made, after)
            if after not in seen and len(seen) < MOST:
                seen[after] = None
                todo.append(after)


def traces_agree(made: Featured, folder: Path) -> Counter[str]:
    """Traces are read again, replayed, and show the derived values that Python computes; coverage counts the branches."""
    assert made.model is not None
    system, model, seen = made.system, made.model(), Counter[str]()
    native, found = Native(model), explore(system)
    for prop in system.properties:
        finding = found.finding(prop.name)
        seen[f"{prop.kind.value} {finding.verdict.value}"] += 1
        trace = finding.trace
        if trace is None:
            continue
        if finding.verdict is not Verdict.ERROR:
            verify(system, prop, trace)
        itf.write_itf(folder / "trace.itf.json", system, trace, prop)
        again = itf_reading.read_itf(folder / "trace.itf.json", system)
        assert (again.states, again.loop) == (trace.states, trace.loop)
        assert [i.label for i in again.steps] == [i.label for i in trace.steps]
        for before, after in zip(trace.states, with_derived(system, trace)[1].states, strict=True):
            shown, possible = after[len(before) :]
            ran = outcome(native.holds, "possible", before)
            assert possible is None or ran == ("value", possible) or mistaken(made, before)
            try:
                view = native.view(native.whole, before)
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


REDUCED: tuple[dict[str, bool], ...] = ({"por": True}, {"symmetry": True}, {"por": True, "symmetry": True})
"""Options of reduced searches."""


def reductions_agree(system: System) -> Counter[str]:
    """Searches with stubborn sets and up to symmetry give the verdicts, and the shortest lengths, of the full search."""
    safe, seen = [p.name for p in system.properties if p.kind not in ENDLESS], Counter[str]()
    full = explore(system, SearchOptions(properties=tuple(safe)))
    for options in REDUCED:
        reduced = explore(system, SearchOptions(properties=tuple(safe), **options))
        assert (reduced.mistake and len(reduced.mistake.trace)) == (full.mistake and len(full.mistake.trace)), options
        for one, other in zip(full.findings, reduced.findings, strict=True):
            unlike = {one.verdict, other.verdict} & {Verdict.ERROR, Verdict.INCONCLUSIVE}
            assert one.verdict is other.verdict or (full.mistake is not None and unlike), (options, one.property)
            if one.verdict is other.verdict:
                assert (one.trace and len(one.trace)) == (other.trace and len(other.trace)), (options, one.property)
        name = "+".join(options)
        seen[f"{name} applied"] += all(r.applied for r in reduced.reductions)
        seen[f"{name} smaller"] += reduced.counts.distinct < full.counts.distinct
    return seen


def proofs_agree(system: System, allowed: Any, folder: Path) -> Counter[str]:
    """Property-directed reachability contradicts no verdict, and the verifier accepts the certificate of its proofs."""
    seen = Counter[str]()
    provable = [p.name for p in system.properties if p.kind in (Kind.INVARIANT, Kind.STEP, Kind.DEADLOCK)]
    for engine in (Engine.PDR, Engine.INDUCTION):
        proof = prove(system, provable, engine=engine, max_k=2, depth=2, seconds=20, reproducible=True)
        for finding in proof.findings:
            assert finding.verdict in {Verdict.INCONCLUSIVE, *allowed[finding.property].verdicts}, (
                engine,
                finding.property,
            )
            seen[f"{engine.value} {finding.verdict.value}"] += 1
        path = folder / "proof"
        path.unlink(missing_ok=True)
        if certify_proof(path, system, "model", (), proof).claims:
            verify_certificate(path.read_bytes(), lambda _: system, lambda _: None)
            seen[f"certificate of {engine.value}"] += 1
    return seen


def certificates_agree(system: System, folder: Path) -> Counter[str]:
    """The verifier accepts the certificate of a search, whose claims are the verdicts."""
    found = explore(system)
    if found.mistake is not None:
        return Counter()
    path = folder / "search"
    claims = certify_search(path, "model", (), found).claims
    verified = verify_certificate(path.read_bytes(), lambda _: system, lambda _: None)
    assert verified["claims"] == claims
    assert claims == {f.property: f.verdict.value for f in found.findings if f.property in claims}
    left_out = {f.property for f in found.findings} - claims.keys()
    return Counter({"certificate of a search": 1, "claims": len(claims), "not claimed": len(left_out)})


@dataclass(frozen=True)
class Sized(Drawn):
    """A written model whose parameter `n` is free."""

    model: type[Model] | None = None

    def load(self, folder: Path) -> type[Model]:
        """The model's class."""
        assert self.model is not None
        return self.model


def every_size_agrees(seed: int, folder: Path) -> Counter[str]:
    """No search at a small size refutes what is proved for every size of a written model."""
    made = written(seed, folder, sized=True)
    if made is None:
        return Counter()
    trial = attempt(Sized(seed, "written", made.source, {"n": (2, None)}, {"n": 2}, {}, (), None, made.model), folder)
    assert not trial.wrong, trial.wrong
    return Counter(
        {"any: refused": trial.refused is not None, "any: proved": len(trial.proved), "any: sizes": trial.searched}
    )


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
                for name, answer in panel_engines.proved(made.system, 1 if made.model else 2).answers.items():
                    assert answer.verdict in {Verdict.INCONCLUSIVE, *allowed[name].verdicts}, name
            seen += reductions_agree(made.system)
            seen += certificates_agree(made.system, folder)
            if made.form != "partly_fair" and seed % 2 == 0:
                seen += proofs_agree(made.system, allowed, folder)
            if made.model is not None and seed % 4 == 1:
                seen += every_size_agrees(seed, folder)
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


@pytest.mark.parametrize(("first", "systems", "least"), share([(15, 6, 2), (0, 12, 4)], 2))
def test_random_systems(panel: Any, expect: Any, tmp_path: Path, first: int, systems: int, least: int) -> None:
    """Some systems, one or more of each form."""
    seen = compare(panel, expect, tmp_path, range(first, first + systems))
    assert seen.keys() >= set(FORMS)
    assert seen["bags"] >= least
    assert min(seen["certificate of a search"], seen["certificate of pdr"], seen["por applied"]) >= least


@pytest.mark.parametrize(
    "seeds", [range(8, 9), pytest.param(range(9, 60), marks=pytest.mark.long)], ids=["few", "more"]
)
def test_written_models_are_proved_for_every_size(tmp_path: Path, seeds: range) -> None:
    """Proofs for every value of a parameter, of models with partial fairness and labelled branches among them."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        seen += every_size_agrees(seed, tmp_path)
    assert seen["any: refused"] <= len(seeds) // 20
    assert min(seen["any: proved"], seen["any: sizes"]) >= len(seeds) // 2


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
    assert min(seen["certificate of a search"], seen["certificate of pdr"], seen["por smaller"]) >= 40
    assert (
        min(seen["symmetry applied"], seen["any: proved"]) >= 1
    )  # where some search is smaller: test_reductions_agreement
