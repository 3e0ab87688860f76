"""TLC counts the same states of what is exported to TLA+, decides alike, equally early, and shows behaviours of ours.

Where TLC is, `conftest.py` finds out.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import tree_sitter
import tree_sitter_tlaplus

from quick_tlc import QUICK
from random_constraints import corpus
from random_fairness import partly_fair
from random_families import family_system
from random_features import written
from random_systems import random_system, temporal_system
from shares import share
from small_models import SMALL
from streamproof import Spec
from streamproof.agree.panel_engines import run_tlc
from streamproof.exchange.tla import tlc, tlc_run
from streamproof.exchange.tla.module import export
from streamproof.explicit.exploration import explore
from streamproof.model_registry import bundled, find
from streamproof.system import Kind, System, Verdict
from streamproof.system.reference import reference
from streamproof.traces.replay import replay, verify

Row = tuple[str, str | None, dict[str, Any]]

CLUSTER = (
    "baton_channels",
    "checkpoints",
    "lifecycle_failover",
    "loop_checkpoints",
    "partition_lifecycle",
    "region_slots",
    "regions",
    "slot_pool",
    "slots",
)
"""Models whose pages give counts at their size `small`, which the long tests repeat: these are smaller instances."""
COUNTED: list[Row] = [
    ("reference.async_termination_detection", None, {"n": 3}),
    ("reference.coffee_can", None, {"beans": 20}),
    ("reference.die_hard", None, {}),
    ("reference.dining_philosophers", None, {}),
    ("reference.ewd840", None, {"n": 3}),
    ("reference.ewd998", None, {"n": 2, "most": 2}),
    ("reference.hanoi", None, {"discs": 4}),
    ("reference.huang", None, {"n": 3}),
    ("reference.mattern", None, {"n": 2}),
    ("reference.bakery", None, {}),
    ("reference.sliding_window", None, {}),
    pytest.param(("reference.three_way_handshake", None, {}), marks=pytest.mark.long),
    pytest.param(("reference.chang_roberts", None, {}), marks=pytest.mark.long),
    pytest.param(("reference.raft_election", None, {}), marks=pytest.mark.long),
    ("reference.missionaries_and_cannibals", None, {}),
    ("reference.token_ring", None, {"n": 4, "values": 4}),
    ("reference.two_phase_commit", None, {}),
    ("task_attempt", None, {}),
    ("failover", None, {}),
    ("credit", None, {}),
    *((name, None, SMALL[name]) for name in CLUSTER),
]
DECIDED: list[Row] = [
    ("reference.die_hard", None, {}),
    ("reference.dining_philosophers", None, {"philosophers": 3}),
    ("task_attempt", "late-reports", {}),
    ("task_attempt", "submitted-again", {}),
    ("partition_lifecycle", "read-then-finish", {"attempts": 1, "crashes": 0}),
    ("partition_lifecycle", "flink-all-repairs", {"attempts": 1, "failures": 0}),
    ("partition_lifecycle", "flink-endless-recovery", {"attempts": 1, "failures": 0}),
    ("slots", "forced-location", {"tasks": "Q", "deaths": 0}),
    ("slots", "future-fails", {"instances": 1, "tasks": "A Q"}),
    ("slot_pool", "return-voids-offers", {"failures": 0}),
    *(
        pytest.param(row, marks=pytest.mark.long)
        for row in (
            ("cached_results", "stale-snapshots", {}),
            ("failure_budgets", "restarts-count", {}),
            ("co_location", "locked-forever", {}),
            ("scheduling_types", "blocking-any-input", {}),
            ("buffer_shares", "weak-requests", {}),
            ("record_spans", "partial-kept", {"channels": 1}),
            ("task_descriptors", "keyed-by-region", {}),
        )
    ),
]
LARGER: list[Row] = [
    ("reference.async_termination_detection", None, {}),
    ("reference.coffee_can", None, {"beans": 60}),
    ("reference.ewd840", None, {"n": 5}),
    ("reference.token_ring", None, {"n": 5, "values": 5}),
    ("reference.two_phase_commit", None, {"resource_managers": 5}),
]


def name(row: Row) -> str:
    """``reference.ewd840-3``"""
    return "-".join([row[0], *([row[1]] if row[1] else []), *map(str, row[2].values())])


def built(row: Row) -> System:
    """The system of one row."""
    model, variant, parameters = row
    return find(model).spec.system(variant, **parameters)


def every_small_model(most: int | None = None) -> Iterator[tuple[str, System]]:
    """All bundled models, each with `most` variants, or all: the small size where there is one, the defaults otherwise."""
    for entry in bundled():
        spec: Spec = find(entry).spec
        for variant in (None, *[*spec.model.variants][:most]):
            cls = spec.model if variant is None else spec.model.variants[variant]
            small = {} if variant else dict(cls.sizes.get("small", {}))
            yield f"{entry} {variant or ''}", spec.system(variant, **small)


def counts_agree(system: System) -> None:
    """TLC's counts are ours, or both end at the same mistake of the model."""
    ours = reference(system) if system.name == "random" else explore(system)
    counted = tlc.count(system, QUICK)
    level = ours.mistake if isinstance(ours.mistake, int) or ours.mistake is None else len(ours.mistake.trace)
    assert counted.mistake == level
    if level is None:
        counts = ours.counts.inside
        wanted = (counts.distinct, counts.generated, counts.depth)
        assert (counted.distinct, counted.generated, counted.depth) == wanted


def verdicts_agree(system: System) -> None:
    """TLC's verdicts, and the lengths of what shows them, are ours, and its behaviours show what they must."""
    ours = explore(system)
    decided = tlc.decide(system, None, QUICK)
    assert [d.property for d in decided] == [p.name for p in system.properties]
    for answer in decided:
        finding = ours.finding(answer.property)
        endless = answer.kind in (Kind.TERMINATION, Kind.TEMPORAL)
        if answer.kind is Kind.TERMINATION and ours.mistake is not None:
            assert answer.verdict is Verdict.INCONCLUSIVE
            continue
        if answer.because == tlc.MISSED:  # then TLC would have found a fair behaviour that stays within the constraint
            assert answer.kind is Kind.TEMPORAL
            assert system.constraint is not None
            assert finding.trace is None or finding.trace.loop is None, answer.property
            continue
        if finding.verdict is Verdict.INCONCLUSIVE:
            assert answer.trace is None or answer.trace.loop is None, answer.property
            continue
        length = len(finding.trace) if finding.trace and not endless else None
        assert answer.verdict is finding.verdict, answer.property
        assert endless or answer.length == length, answer.property
        if answer.trace is not None and answer.verdict is not Verdict.ERROR:
            replay(system, answer.trace)
            if answer.kind is not Kind.TEMPORAL or answer.trace.loop is not None or system.constraint is not None:
                verify(system, answer.property, answer.trace)


@pytest.mark.parametrize("row", share(COUNTED, 48, whole=True), ids=name)
def test_bundled_models_are_counted_alike(jar: Path, row: Row) -> None:
    """Distinct states, generated ones and depth are equal."""
    counts_agree(built(row))


@pytest.mark.parametrize("row", share(DECIDED, 12, whole=True), ids=name)
def test_bundled_models_are_decided_alike(jar: Path, row: Row) -> None:
    """Verdicts and shortest lengths are equal; TLC's behaviours are replayed and show what they must."""
    verdicts_agree(built(row))


@pytest.mark.parametrize(
    ("variants", "least"),
    [pytest.param(1, 25, marks=pytest.mark.long), pytest.param(None, 90, marks=pytest.mark.long)],
    ids=["one variant", "all"],
)
def test_every_variant_is_a_module_for_tlas_parser(jar: Path, tmp_path: Path, variants: int | None, least: int) -> None:
    """SANY, TLA+'s own parser, finds no error and gives no warning for any bundled model and variant."""
    modules = []
    for number, (title, system) in enumerate(every_small_model(variants)):
        model = export(system)
        folder = tmp_path / f"{number} {title.strip()}"
        folder.mkdir()
        for module, text in model.modules.items():
            (folder / f"{module}.tla").write_text(text, encoding="utf-8")
        modules.append(folder / f"{model.module}.tla")
    java = ["java", f"-Djava.io.tmpdir={tmp_path}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command = [*java, "-cp", str(jar), "tla2sany.SANY"]
    assert len(modules) > least
    for module in modules:
        assert module.is_file()
    done = subprocess.run([*command, *map(str, modules)], capture_output=True, text=True, check=True)
    lines = (done.stdout + done.stderr).splitlines()
    rest = [line for line in lines if not line.startswith(("Parsing file ", "Semantic processing of module "))]
    for said in ("rror", "arning", "Unknown", "Lexical", "abort"):
        assert said not in "\n".join(rest)
    assert done.stdout.count("Semantic processing of module") >= len(modules)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:int argument support is deprecated")
@pytest.mark.parametrize("third", share(range(3), 3))
def test_a_grammar_of_tla_reads_what_is_exported(third: int) -> None:
    """The tree-sitter grammar of TLA+ parses every module of the bundled models, and of random systems."""
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_tlaplus.language()))
    systems = [find(entry).spec.system() for entry in list(bundled())[third::3]]
    for seed in range(third, 60, 3):
        systems += [random_system(Random(seed)), temporal_system(Random(seed))]
    for system in systems:
        for text in export(system).modules.values():
            assert not parser.parse(text.encode()).root_node.has_error, text
    assert parser.parse(b"---- MODULE m ----\nx == (1 +\n====").root_node.has_error


def _each(seeds: range, draw: Any, agree: Any) -> None:
    compared = 0
    for seed in seeds:
        system = draw(Random(seed))
        if not reference(system).levels:
            continue  # no state is initial
        try:
            agree(system)
        except Exception as error:
            error.add_note(f"{draw.__name__}(Random({seed}))")
            raise
        compared += 1
    assert compared > 0.4 * len(seeds)


@pytest.mark.parametrize("seeds", share([range(21, 22), range(21, 24)], 2))
def test_random_systems_are_counted_alike(jar: Path, seeds: range) -> None:
    """Systems of every sort, with mistakes of the model among them."""
    _each(seeds, random_system, counts_agree)


@pytest.mark.push
def test_random_systems_are_decided_alike(jar: Path) -> None:
    """Properties of every kind, some of them mistakes in themselves."""
    _each(range(13, 14), random_system, verdicts_agree)


@pytest.mark.long
def test_random_formulas_are_decided_alike(jar: Path) -> None:
    """Temporal formulas, with until and release, under fairness of every kind."""
    _each(range(1, 2), temporal_system, verdicts_agree)


@pytest.mark.parametrize(
    "seeds", [range(4, 5), pytest.param(range(3, 60), marks=pytest.mark.long)], ids=["few", "many"]
)
def test_families_are_counted_and_decided_alike(jar: Path, seeds: range) -> None:
    """Rules that say the same of several elements, and temporal formulas of several elements."""
    for seed in seeds:
        verdicts_agree(family_system(Random(seed), temporal=True))
        if seed % 2:
            counts_agree(family_system(Random(seed)))
            verdicts_agree(family_system(Random(seed)))


@pytest.mark.long
@pytest.mark.parametrize("row", LARGER, ids=name)
def test_larger_models_are_counted_alike(jar: Path, row: Row) -> None:
    """Up to some hundred thousand states."""
    counts_agree(built(row))


EVERY: list[Row] = [
    (entry, variant, {**cls.sizes.get("small", {}), **spec.variant_parameters.get(variant or "", {})})
    for entry in bundled()
    for spec in (find(entry).spec,)
    for variant, cls in ((None, spec.model), *spec.model.variants.items())
]
"""Every bundled model and variant at its small size."""


@pytest.mark.long
@pytest.mark.parametrize("row", EVERY, ids=name)
def test_every_bundled_model_and_variant_is_counted_alike(jar: Path, row: Row) -> None:
    """Distinct states, generated ones and depth are equal."""
    counts_agree(built(row))


@pytest.mark.long
@pytest.mark.parametrize(
    "row", [(n, v, SMALL.get(n, p) if v is None else p) for n, v, p in EVERY if n in CLUSTER], ids=name
)
def test_every_variant_of_these_models_is_decided_alike(jar: Path, row: Row) -> None:
    """All verdicts, temporal ones included, and the lengths of shortest counterexamples."""
    verdicts_agree(built(row))


@pytest.mark.long
@pytest.mark.parametrize("variant", sorted(find("failover").spec.model.variants))
def test_every_variant_of_failover_is_decided_alike(jar: Path, variant: str) -> None:
    """Each variant breaks something of its own, and TLC finds it equally early."""
    system = find("failover").spec.system(variant)
    counts_agree(system)
    verdicts_agree(system)


@pytest.mark.long
@pytest.mark.parametrize("ten", range(10))
def test_a_hundred_random_systems_are_counted_alike(jar: Path, ten: int) -> None:
    """Ten at a time."""
    _each(range(500 + 10 * ten, 510 + 10 * ten), random_system, counts_agree)


@pytest.mark.long
@pytest.mark.parametrize("five", range(8))
def test_forty_random_systems_are_decided_alike(jar: Path, five: int) -> None:
    """Five at a time."""
    _each(range(600 + 5 * five, 605 + 5 * five), random_system, verdicts_agree)


@pytest.mark.long
@pytest.mark.parametrize("five", range(8))
def test_forty_systems_with_formulas_are_decided_alike(jar: Path, five: int) -> None:
    """Five at a time."""
    _each(range(5 * five, 5 * five + 5), temporal_system, verdicts_agree)


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 120), marks=pytest.mark.long)], ids=["few", "many"])
def test_constraints_are_counted_and_decided_alike(jar: Path, seeds: range) -> None:
    """TLC's counts and verdicts with `CONSTRAINT` are ours."""
    for system in corpus(seeds):
        counts_agree(system)
        verdicts_agree(system)


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 80), marks=pytest.mark.long)], ids=["few", "many"])
def test_constraints_under_fairness_are_decided_alike(jar: Path, seeds: range) -> None:
    """TLC's verdicts on formulas under fairness, with `CONSTRAINT`, are ours."""
    for system in corpus(seeds, temporal=True):
        verdicts_agree(system)


@pytest.mark.long
@pytest.mark.parametrize("seeds", [range(1), range(1, 80)], ids=["few", "many"])
def test_partial_fairness_is_decided_alike(jar: Path, seeds: range) -> None:
    """WF and SF of a part of an action, among its parameters and picks."""
    for seed in seeds:
        system = partly_fair(seed)
        if system is not None and reference(system).levels:
            verdicts_agree(system)


@pytest.mark.long
@pytest.mark.parametrize("seeds", [range(10 * ten, 10 * ten + 10) for ten in range(6)], ids=str)
def test_written_models_are_counted_and_decided_alike(jar: Path, tmp_path: Path, seeds: range) -> None:
    """Models with every feature of the language."""
    for seed in seeds:
        made = written(seed, tmp_path)
        if made is not None and reference(made.system).levels:
            counts_agree(made.system)
            verdicts_agree(made.system)


@pytest.mark.long
@pytest.mark.parametrize("fault", share(["none", "step", "start", "fairness", "both"], 5))
def test_refinements_are_counted_and_decided_alike(jar: Path, tmp_path: Path, fault: str) -> None:
    """Images of arrays, of a record and of single variables have operators, whatever the refinement does wrong."""
    (tmp_path / "jobs.py").write_text(
        JOBS.replace("FAIR", "Fairness.NONE" if fault in ("fairness", "both") else "WEAK")
    )
    system = find(f"{tmp_path / 'jobs.py'}:Jobs").spec.system(None, fault=fault)
    text = export(system).modules["jobs"]
    assert "UNCHANGED refined_vars" in text
    assert "refined_left' = [refined_left EXCEPT ![i] = @ - 1]" in text
    assert {n for n in ("left", "all", "sum", "busy") if f"\nrefined_{n} ==" in text} == {"left", "all", "sum", "busy"}
    counts_agree(system)
    verdicts_agree(system)


JOBS = """
from streamproof import *


class Plan(Model):
    "Work that is counted."
    check_deadlock = False

    def state(self):
        return State(
            left=Array(2, Range(0, 2), init=2),
            all=Record(done=Range(0, 4), any=Bool()),
            sum=Range(0, 4, init=4),
            busy=Bool(init=True),
        )

    @action(fairness=WEAK, i=range(2))
    def work(self, s, i):
        require(s.left[i] > 0)
        s.left[i] -= 1
        s.all = {"done": s.all.done + 1, "any": True}
        s.sum -= 1
        s.busy = s.sum > 0


class Jobs(Model):
    "Work that is queued."
    fault: str = "none"
    check_deadlock = False

    def state(self):
        first = [[True], [True, True]] if self.fault in ("start", "both") else [[True, True], [True, True]]
        return State(todo=Array(2, Queue(Bool(), capacity=2), init=first), again=Array(2, Bool()))

    @action(fairness=FAIR, i=range(2))
    def work(self, s, i):
        require(len(s.todo[i]) > 0)
        s.todo[i].pop()
        if self.fault in ("step", "both") and len(s.todo[1]) > 1:
            s.todo[1].pop()

    @action(i=range(2))
    def turn(self, s, i):
        s.again[i] = not s.again[i]

    @refines(Plan)
    def refined(self, s):
        left = [len(q) for q in s.todo]
        number = sum(left)
        return {
            "left": left,
            "all": {"done": 4 - number, "any": number < 4},
            "sum": number,
            "busy": number > 0,
        }
"""


def test_without_tlc_the_message_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable, or one that names no file: one sentence that says so, before anything is written."""
    monkeypatch.delenv(tlc_run.JAR, raising=False)
    assert tlc.installed() == "the environment variable TLA2TOOLS_JAR does not name TLC's tla2tools.jar"
    with pytest.raises(Exception, match="set TLA2TOOLS_JAR to the path"):
        tlc.count(built(("reference.die_hard", None, {})))
    monkeypatch.setenv(tlc_run.JAR, str(tmp_path / "none.jar"))
    assert tlc.installed() == f"TLA2TOOLS_JAR names {tmp_path / 'none.jar'}, which is not a file"


def test_check_agree_asks_it_and_says_what_it_was_not_asked(jar: Path) -> None:
    """The command names TLC among those that agree, with its counts; what there was no time for is told, not answered."""
    words = ["check", "reference.die_hard", "--agree", "--agree-limit", "spin=1", "--json", "-"]
    done = subprocess.run([sys.executable, "-m", "streamproof", *words], capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert (done.returncode, report["agree"], report["differences"]) == (0, True, [])
    (said,) = (e for e in report["engines"] if e["name"] == "TLC")
    counted = next(e for e in report["engines"] if e["name"] == "interpreter")
    assert said["states"] == counted["states"] == {"distinct": 16, "generated": 97, "depth": 8}
    answers = {p["name"]: {a["verdict"] for a in p["answers"] if a["engine"] == "TLC"} for p in report["properties"]}
    assert answers == {"measured": {"holds"}, "deadlock": {"holds"}}
    late = run_tlc(find("reference.die_hard").system(None, {}), QUICK, seconds=0.5)
    assert late.answers == {}
    assert "did not finish" in late.why["all"] or set(late.why) >= {"measured", "deadlock"}
