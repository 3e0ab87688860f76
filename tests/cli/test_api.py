"""The functions of the public door give what the verbs print: the same verdicts, reasons, traces, counts and cross-checks."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import streamproof as sp
from shares import share
from streamproof.base.errors import Exit, InputError, ModelError, UsageError
from streamproof.model_registry import find, first_line
from streamproof.report.check_report import CheckReport, Result
from streamproof.system.verdict import CheckResult, Verdict
from streamproof.traces.replay import ReplayError

OF_THE_RUN = {"version", "schema", "seconds", "rates", "memory", "reproduce", "warnings"}
OF_THE_MODEL = {"model", "variant", "parameters", "engine", "constraint", "error"}
OF_THE_VERB = {"facts", "not_for_this_engine", "plain_python", "simulation"}

CLOCK = '''
from streamproof import WEAK, Model, Range, State, action, always, eventually, invariant, temporal


class Clock(Model):
    """Counts to three, and begins again."""

    check_deadlock = False

    def state(self):
        return State(n=Range(0, 3))

    @action(fairness=WEAK)
    def tick(self, s):
        s.n = 0 if s.n == 3 else s.n + 1

    @invariant
    def low(self, s):
        return s.n <= 3

    @temporal
    def ends(self, s):
        return always(eventually(s.n == 0))
'''
ENDLESS = '''
from streamproof import WEAK, Model, Nat, State, action, invariant, leads_to, require, temporal


class Endless(Model):
    """Any number of records is read."""

    check_deadlock = False

    def state(self):
        return State(left=Nat(init=3), got=Nat())

    @action(fairness=WEAK)
    def take(self, s):
        require(s.left > 0)
        s.left -= 1
        s.got += 1

    @invariant
    def none_is_lost(self, s):
        return s.left + s.got == 3

    @temporal
    def all_are_read(self, s):
        return leads_to(s.left > 0, s.left == 0)
'''


def as_json(result: CheckResult) -> dict[str, Any]:
    """What a report says of a result, without what depends on the run and on the command line."""
    rows = [*result.findings, *(f for one in result.beside.values() for f in one.findings)]
    report = CheckReport("", "", tuple(Result(f) for f in rows), result=result, measures=result.measures)
    return shared(report.to_json())


def shared(document: dict[str, Any]) -> dict[str, Any]:
    """The fields of a report that a result has too, with the first line of each reason."""
    left_out = OF_THE_RUN | OF_THE_MODEL | OF_THE_VERB
    known = {name: value for name, value in document.items() if name not in left_out}
    known["properties"] = [
        {
            **{name: value for name, value in row.items() if name != "expected"},
            "name": row["name"].partition(" (")[0],
            "because": first_line(row["because"]),
            "trace": None if row["trace"] is None else {**row["trace"], "file": None},
        }
        for row in document["properties"]
    ]
    return known


def json_of(streamproof: Any, *words: str) -> dict[str, Any]:
    """The JSON of a verb."""
    done = streamproof(*words, "-q", "--json", "-")
    assert done.out.startswith("{"), done.err
    document: dict[str, Any] = json.loads(done.out)
    return document


CHECKED = [
    ("reference.die_hard", None, {}, None),
    pytest.param("reference.coffee_can", None, {}, None, marks=pytest.mark.long),
    ("reference.token_ring", None, {}, None),
    ("reference.two_phase_commit", None, {}, None),
    ("reference.chang_roberts", None, {}, None),
    ("buffer_pool", None, {}, None),
    ("buffer_pool", "without-reserve", {}, None),
    ("credit", "zero-exclusive", {}, None),
    ("credit", None, {"channels": 1}, None),
    ("failover", "literal-pseudocode", {}, ["termination"]),
    ("partition_counts", None, {}, None),
    ("shared_slot", None, {}, None),
    ("slot_owners", None, {}, None),
    ("baton", None, {"topology": "loop"}, None),
]


def words_of(model: str, variant: str | None, parameters: dict[str, Any], properties: list[str] | None) -> list[str]:
    """The words of a command line for a model."""
    words = [model] if variant is None else [model, "--variant", variant]
    words += [word for name, value in parameters.items() for word in ("-p", f"{name}={value}")]
    return words + [word for name in properties or () for word in ("--property", name)]


@pytest.mark.parametrize(("model", "variant", "parameters", "properties"), share(CHECKED, 4))
def test_check_is_the_verb(
    model: str, variant: str | None, parameters: dict[str, Any], properties: list[str] | None, streamproof: Any
) -> None:
    """Verdicts, reasons, traces, counts, levels, coverage, quantities, and the comparison with plain Python are equal."""
    document = json_of(streamproof, "check", *words_of(model, variant, parameters, properties))
    result = sp.check(model, properties, variant=variant, parameters=parameters)
    assert as_json(result) == shared(document)
    assert result.verdict.value == document["verdict"]
    assert (result.plain_python, list(result.not_selected)) == (
        document["plain_python"],
        document["not_for_this_engine"],
    )


def test_variants_beside_a_model_are_judged(streamproof: Any, folder: Path) -> None:
    """A variant that describes what runs is judged with the model; proofs for every size refuse it, as the verb does."""
    spec = "\n\nfrom streamproof import Spec\n\nSPEC = Spec(Counter, beside=lambda m: ['jumping'])\n"
    (folder / "pair.py").write_text((folder / "counter.py").read_text() + spec, encoding="utf-8")
    for verb, run in (("check", sp.check), ("prove", sp.prove)):
        document, result = json_of(streamproof, verb, "pair.py"), run("pair.py")
        known = [(row["name"], row["verdict"]) for row in document["properties"]]
        beside = [(f"{f.property} (jumping)", f.verdict.value) for f in result.beside["jumping"].findings]
        assert known == [*((f.property, f.verdict.value) for f in result.findings), *beside]
        assert result.verdict.value == document["verdict"] == "violated"
    with pytest.raises(UsageError, match="variant jumping is judged beside this job"):
        sp.prove_any("pair.py", ["limit"])
    assert streamproof("prove", "pair.py", "--any", "limit").code == 2


@pytest.mark.parametrize("model", share(["reference.die_hard", "reference.token_ring", "partition_counts"], 3))
def test_bounded_check_is_the_verb(model: str, streamproof: Any) -> None:
    """The same with a solver."""
    document = json_of(streamproof, "check", model, "--engine", "bmc", "--depth", "7")
    result = sp.check(model, engine="bmc", options=sp.SearchOptions(max_depth=8))
    assert as_json(result) == shared(document)
    assert (result.plain_python, list(result.not_selected)) == (
        document["plain_python"],
        document["not_for_this_engine"],
    )


@pytest.mark.parametrize(
    ("model", "properties"),
    [
        ("reference.die_hard", None),
        pytest.param("reference.token_ring", None, marks=pytest.mark.long),
        pytest.param("reference.coffee_can", None, marks=pytest.mark.long),
        pytest.param("buffer_pool", None, marks=pytest.mark.long),
        pytest.param("shared_slot", None, marks=pytest.mark.long),
        ("partition_counts", None),
        pytest.param("clock.py", None, marks=pytest.mark.long),
        pytest.param("clock.py", ["ends"], marks=pytest.mark.long),
        ("clock.py", ["low", "ends"]),
    ],
)
def test_prove_is_the_verb(model: str, properties: list[str] | None, streamproof: Any, folder: Path) -> None:
    """Verdicts, strength, lemmas, engines, confirmation and counterexamples to induction are equal."""
    (folder / "clock.py").write_text(CLOCK, encoding="utf-8")
    document = json_of(streamproof, "prove", *words_of(model, None, {}, properties))
    result = sp.prove(model, properties)
    assert isinstance(result, sp.Proof)
    own = ("k", "lemmas", "engines", "discovered", "confirmed", "depth", "queries", "counterexamples_to_induction")
    proofs = {name: document.pop(name) for name in own}
    assert as_json(result) == shared(document)
    assert (dict(result.k), result.confirmed, result.depth) == (proofs["k"], proofs["confirmed"], proofs["depth"])
    assert {name: engine.value for name, engine in result.engines.items()} == proofs["engines"]
    assert [lemma.property for lemma in result.lemmas] == [lemma["name"] for lemma in proofs["lemmas"]]
    assert [lemma.text for lemma in result.discovered] == [lemma["text"] for lemma in proofs["discovered"]]
    assert [cti.of for cti in result.ctis.values()] == [cti["of"] for cti in proofs["counterexamples_to_induction"]]
    assert (result.plain_python, list(result.not_selected)) == (
        document["plain_python"],
        document["not_for_this_engine"],
    )


def test_a_temporal_property_of_a_system_is_proved(folder: Path) -> None:
    """The system alone is enough, and a temporal property holds as with the verb."""
    (folder / "clock.py").write_text(CLOCK, encoding="utf-8")
    system = find("clock.py").system(None, {})
    result = sp.prove(system, ["ends"])
    assert [(f.property, f.verdict) for f in result.findings] == [("ends", Verdict.HOLDS)]
    assert (result.not_selected, result.plain_python) == ((), None)


def test_prove_names_what_was_not_selected(streamproof: Any, folder: Path) -> None:
    """A temporal property that --property would prove is not called unsupported."""
    (folder / "clock.py").write_text(CLOCK, encoding="utf-8")
    done = streamproof("prove", "clock.py", "-q")
    assert done.out.endswith("not selected: ends; choose them with --property, or use streamproof check\n")
    assert sp.prove("clock.py").not_selected == ("ends",)


@pytest.mark.parametrize(
    ("model", "variant", "free", "properties"),
    [
        pytest.param("partition_counts", None, "partitions", None, marks=pytest.mark.long),
        pytest.param("credit", None, "exclusive,floating,depth", None, marks=pytest.mark.long),
        pytest.param("credit", "floating-leak", "exclusive,floating,depth", None, marks=pytest.mark.long),
        ("endless.py", None, "", None),
    ],
)
def test_prove_any_is_the_verb(
    model: str, variant: str | None, free: str, properties: list[str] | None, streamproof: Any, folder: Path
) -> None:
    """Verdicts, lemmas and the extent of the three cross-checks are equal."""
    (folder / "endless.py").write_text(ENDLESS, encoding="utf-8")
    names = [name for name in free.split(",") if name]
    words = words_of(model, variant, {}, properties)
    document = json_of(streamproof, "prove", *words, *(("--any", free) if free else ()))
    result = sp.prove_any(model, names, properties, variant=variant)
    own = ("any", "readings_compared", "induction_checked", "instances_searched", "lemmas", "queries")
    proofs = {name: document.pop(name) for name in (*own, "counterexamples_to_induction")}
    assert as_json(result) == shared(document)
    assert result.parametric is not None
    assert {f.name: [f.least, f.most] for f in result.parametric.free} == proofs["any"]
    assert [dict(v) for v in result.compared.values] == proofs["readings_compared"]["values"]
    assert result.compared.runs == proofs["readings_compared"]["runs"] > 0
    assert [dict(v) for v in result.induction_checked] == proofs["induction_checked"]
    assert [[dict(s.values), s.states] for s in result.instances.searched] == [
        [s["values"], s["states"]] for s in proofs["instances_searched"]
    ]
    assert [*result.proof.lemmas, *result.proof.found] == [lemma["name"] for lemma in proofs["lemmas"]]
    assert result.plain_python == document["plain_python"]


def test_unbounded_integers_are_proved(folder: Path) -> None:
    """`prove` proves a model that nothing searches as the verb does; `prove_rank` its temporal property."""
    (folder / "endless.py").write_text(ENDLESS, encoding="utf-8")
    result = sp.prove("endless.py")
    assert isinstance(result, sp.AnyProof)
    assert (result.verdict, result.not_selected) == (Verdict.HOLDS, ("all_are_read",))
    ranked = sp.prove_rank("endless.py", rank="left")
    assert [(f.property, f.verdict) for f in ranked.findings] == [("all_are_read", Verdict.HOLDS)]
    assert [one.rank for one in ranked.ranks] == ["left"]
    with pytest.raises(ModelError, match="a search counts states"):
        sp.check("endless.py")


def test_prove_rank_is_the_verb(streamproof: Any, folder: Path) -> None:
    """A rank is found, and the reasons are equal."""
    (folder / "endless.py").write_text(ENDLESS, encoding="utf-8")
    document = json_of(streamproof, "prove", "endless.py", "--rank", "")
    result = sp.prove_rank("endless.py")
    ranks, queries = document.pop("ranks"), document.pop("queries")
    assert as_json(result) == shared(document)
    assert [(one.rank, list(one.helpful)) for one in result.ranks] == [(one["rank"], one["helpful"]) for one in ranks]
    assert sum(one.queries for one in result.ranks) == queries


@pytest.mark.parametrize("model", ["reference.die_hard", "buffer_pool", "shared_slot"])
def test_simulate_is_the_verb(model: str, streamproof: Any) -> None:
    """Equal seeds give equal walks, findings and estimates."""
    document = json_of(streamproof, "simulate", model, "--seed", "7", "--walks", "30", "--uniform")
    result = sp.simulate(model, options=sp.SearchOptions(seed=7, walks=30, guided=False))
    assert as_json(result) == shared(document)
    walked = document["simulation"]
    assert (result.walks, result.steps, result.longest, result.distinct) == (
        *(walked["walks"], walked["steps"], walked["longest"], walked["distinct"]),
    )


def test_export_and_replay_are_the_verbs(streamproof: Any, folder: Path) -> None:
    """The files of `export` are equal, and `replay` accepts them, or says why not."""
    assert streamproof("export", "reference.die_hard", "--format", "itf", "--out", "by_verb").code == 0
    exported = sp.export("reference.die_hard", "itf")
    written = exported.write("by_function")
    assert [path.name for path in written] == ["measured.itf.json"]
    assert written[0].read_text() == Path("by_verb/measured.itf.json").read_text()
    replayed = sp.replay(written[0])
    assert (replayed.system.name, replayed.property and replayed.property.name) == ("reference.die_hard", "measured")
    assert len(replayed.trace.steps) == 6
    assert sp.replay(written[0], replayed.system).trace == replayed.trace
    changed = json.loads(written[0].read_text())
    changed["states"][-1]["large"] = {"#bigint": "0"}
    Path("changed.itf.json").write_text(json.dumps(changed))
    with pytest.raises(ReplayError) as caught:
        sp.replay("changed.itf.json")
    assert caught.value.exit_code is Exit.REJECTED


@pytest.mark.parametrize("form", ["promela", "tla", "smtlib", "chc", "dot"])
def test_exported_models_are_the_verbs(form: str, streamproof: Any, folder: Path) -> None:
    """The same for whole models and graphs."""
    assert streamproof("export", "counter.py", "--format", form, "--out", "by_verb").code == 0
    written = sp.export("counter.py", form).write("by_function")
    texts = {path.name: path.read_text() for path in Path("by_verb").iterdir() if path.name != ".streamproof.json"}
    assert {path.name: path.read_text() for path in written} == texts
    assert texts


def test_validate_is_the_verb(streamproof: Any, folder: Path) -> None:
    """The verdicts on an event log are equal, by a model's name, its file and its class."""
    log = Path("run.ndjson")
    rows = [{"trace": "t", "process": "p", "seq": n, "event": "increment"} for n in range(2)]
    log.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    done = streamproof("validate", str(log), "--model", "counter.py", "--json", "-")
    document = json.loads(done.out)
    validation = sp.validate(log, "counter.py")
    assert [verdict.record() for verdict in validation.verdicts] == document["verdicts"]
    assert (validation.answer, int(validation.exit_code)) == ("accepted", document["exit_code"])
    model = find("counter.py").spec.model
    assert [v.answer for v in sp.validate([log], model(limit=2)).verdicts] == ["accepted"]
    assert sp.validate([log], model(limit=1)).answer == "rejected"
    counted = sp.validate(log, "counter.py", options=sp.ValidationOptions(coverage=True))
    assert counted.judged is not None
    assert counted.judged.percent == 100
    Path("empty").mkdir()
    with pytest.raises(InputError):
        sp.validate("empty", "counter.py")


def test_models_are_given_in_any_form(folder: Path) -> None:
    """A class, an instance with parameters, a variant's class, a specification, a name and a system are the same model."""
    spec = find("counter.py").spec
    counter, jumping = spec.model, spec.model.variants["jumping"]
    known = [f.verdict for f in sp.check("counter.py", parameters={"limit": 4}).findings]
    for model in (counter(limit=4), counter.system(limit=4)):
        assert [f.verdict for f in sp.check(model).findings] == known
    assert [f.verdict for f in sp.check(spec, parameters={"limit": "4"}).findings] == known
    assert sp.check(counter, size="small").counts.distinct == 2
    assert sp.check(jumping).counts == sp.check(counter, variant="jumping").counts
    assert sp.check(jumping).counts.distinct == 2


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"properties": ["loww"]}, "counter has no property 'loww'"),
    ({"variant": "jumpin"}, "counter has no variant 'jumpin'"),
    ({"size": "smal"}, "counter has no size 'smal'"),
    ({"parameters": {"limt": 1}}, "counter has no parameter 'limt'"),
    ({"parameters": {"limit": 101}}, "the limit is at most 100"),
    ({"engine": "explicitt"}, "no engine 'explicitt'"),
    ({"options": sp.SearchOptions(max_k=2)}, "explicit has no --k: it is the strength of induction"),
    ({"options": sp.SearchOptions(walks=2)}, "explicit has no --walks: it takes no random walks"),
    ({"properties": ["low"], "options": sp.SearchOptions(properties=["low"])}, "properties are given twice"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str, folder: Path) -> None:
    """Unknown names and options that would change nothing are refused."""
    with pytest.raises(UsageError, match=message):
        sp.check("counter.py", **arguments)


def test_functions_refuse_what_they_do_not_support(folder: Path) -> None:
    """A system has no parameters to choose, and no model to prove for every size."""
    counter = find("counter.py").spec.model
    with pytest.raises(UsageError, match="a System has its variant and parameters"):
        sp.check(counter.system(), variant="jumping")
    with pytest.raises(UsageError, match="a proof for every size needs a model, not a System"):
        sp.prove_any(counter.system(), ["limit"])
    with pytest.raises(UsageError, match="does not support max_k"):
        sp.prove_any(counter, ["limit"], options=sp.SearchOptions(max_k=2))
    with pytest.raises(UsageError, match="simulate does not support symmetry"):
        sp.simulate(counter, options=sp.SearchOptions(symmetry=True))
    with pytest.raises(UsageError, match="export does not support por"):
        sp.export(counter, "itf", options=sp.SearchOptions(por=True))
    with pytest.raises(UsageError, match="has no temporal property to prove"):
        sp.prove_rank(counter)


def test_time_limits_are_in_seconds(folder: Path) -> None:
    """A limit of no time decides nothing; infinity is no limit."""
    assert sp.check("counter.py", options=sp.SearchOptions(time_limit=math.inf)).counts.distinct == 4
    assert sp.prove("counter.py", ["grows"], options=sp.SearchOptions(time_limit=math.inf)).verdict is Verdict.HOLDS
    with pytest.raises(sp.StreamproofError) as caught:
        sp.prove("counter.py", options=sp.SearchOptions(time_limit=1e-9))
    assert caught.value.exit_code is Exit.INCONCLUSIVE
