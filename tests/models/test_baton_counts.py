"""The baton with numbers in place of queues: it is the baton, and what its argument proves for any number of records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from model_verdicts import established
from shares import share
from streamproof.cli.verbs import run
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_models.scopes.enumeration import Bounds, scoped_graphs
from streamproof_models.scopes.topologies import NAMED
from streamproof_specs.baton.counted import SPEC as COUNTED
from streamproof_specs.baton.counts import SPEC
from streamproof_specs.baton.properties import SPEC as BATON

COUNTS = {
    None: (507, 1097, 32),
    "first-end": (46, 91, 9),
    "first-entry": (300, 774, 15),
    "no-alignment": (1910, 5231, 23),
    "first-status": (671, 1593, 25),
    "status-dropped": (71, 127, 15),
    "head-unasked": (26, 42, 11),
    "inner-forward": (106, 200, 17),
    "second-pass-unchecked": (194, 374, 20),
    "not-absorbed": (469, 1263, 25),
    "no-second-wait": (954, 2256, 30),
    "no-dirty-check": (28, 44, 10),
    "timeout": (144, 238, 19),
    "reopened": (275, 484, 21),
    "stale-attempt": (4833, 16164, 33),
    "uncoordinated-heads": (1242, 2764, 29),
    "mark-reset": (2160, 4940, 37),
    "inner-first": (105, 202, 16),
    "completed-together": (114, 241, 15),
    "unscoped": (367, 740, 21),
    "literal": (106, 200, 17),
}
"""Distinct states, generated states and depth."""
MORE_BATONS = {"no-alignment", "not-absorbed", "no-second-wait"}
"""Variants with more batons in a channel than this machine has places for."""
ROOM = {"timeout", "reopened", "status-dropped"}
"""Variants of which the queues have no room for END at some moment, or something behind END."""
SINGLE = [name for name in NAMED if not name.startswith("parallel")]
"""Graphs of the catalogue with one head in a scope."""
GUARANTEES = (
    *("nothing_lost", "no_early_end", "outer_first", "completed_once", "heads_agree"),
    *("batons_bounded", "only_current"),
)
SMALLEST = [str(graph) for graph in scoped_graphs(Bounds(3)) if graph.edges]
GRAPHS = [str(graph) for graph in scoped_graphs(Bounds(4)) if graph.edges]


@pytest.mark.parametrize("variant", share([None, *SPEC.model.variants], 6), ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """The rules hold, and each broken rule shows, as with queues and after as many steps."""
    result = established(SPEC, variant, COUNTS[variant])
    if variant in MORE_BATONS | ROOM:
        return
    queues = explore(BATON.system(variant))
    assert (result.counts.distinct, result.counts.generated) == (queues.counts.distinct, queues.counts.generated)
    steps = [{f.property: len(f.trace.steps) for f in r.findings if f.trace is not None} for r in (result, queues)]
    both = steps[0].keys() & steps[1].keys()
    assert bool(both) == bool(SPEC.expected.get(variant or ""))
    assert {name: steps[0][name] for name in both} == {name: steps[1][name] for name in both}


def refined(topology: str, work: int) -> None:
    """Each step with queues is a step with numbers, fairness included, and the search finds that each lemma is true."""
    queues = explore(COUNTED.system(None, topology=topology, work=work))
    found = {f.property: f.verdict for f in queues.findings}
    assert {found[name] for name in ("counted_start", "counted", "counted_fairness")} == {Verdict.HOLDS}
    system = SPEC.system(None, topology=topology, work=work)
    numbers = explore(replace(system, properties=(*system.properties, *system.lemmas), lemmas=()))
    assert len(numbers.findings) == len(SPEC.properties) + 1  # and deadlock
    assert {f.verdict for f in numbers.findings} == {Verdict.HOLDS}
    assert (numbers.counts.distinct, numbers.counts.generated) == (queues.counts.distinct, queues.counts.generated)


@pytest.mark.parametrize(("topology", "work"), share([("nested-small", 2), *((name, 2) for name in SINGLE)], 50))
def test_numbers_are_the_queues(topology: str, work: int) -> None:
    """On graphs of the catalogue, with two records at a time."""
    refined(topology, work)


@pytest.mark.long
@pytest.mark.parametrize("topology", ["parallel", "parallel-self-loop", "parallel-pointwise", "parallel-nested"])
def test_numbers_are_the_queues_with_several_heads(topology: str) -> None:
    """With one record at a time, where two batons may be in a channel."""
    refined(topology, 1)


@pytest.mark.long
@pytest.mark.parametrize("topology", GRAPHS)
def test_numbers_are_the_queues_on_every_graph(topology: str) -> None:
    """On every scoped graph of up to four operators."""
    refined(topology, 1)


def proved(folder: Path, topology: str) -> None:
    """Every safety property for any number of records, with a certificate that the verifier accepts."""
    out, certificate = folder / "proof.json", folder / "proof.cert"
    words = ["prove", "baton_counts", "--any", "work", "-p", f"topology={topology}", "--certificate", str(certificate)]
    assert run([*words, "-q", "--json", str(out), "--out", str(folder)]) == 0
    verdicts = {p["name"]: (p["verdict"], p["sizes"]) for p in json.loads(out.read_text())["properties"]}
    assert verdicts == dict.fromkeys((*GUARANTEES, "deadlock"), ("holds", "any"))
    # That of `parallel-nested` is larger than the usual limit.
    assert run(["verify-certificate", str(certificate), "--unpacked", "200MB", "-q"]) == 0


@pytest.mark.long
@pytest.mark.parametrize("topology", NAMED)
def test_safety_is_proved_for_any_number_of_records(topology: str, tmp_path: Path) -> None:
    """On each graph of the catalogue."""
    proved(tmp_path, topology)


@pytest.mark.long
@pytest.mark.parametrize("topology", [*SMALLEST, *GRAPHS[len(SMALLEST) :: 6]])
def test_safety_is_proved_on_small_graphs(topology: str, tmp_path: Path) -> None:
    """On every scoped graph of up to three operators, and every sixth of those of four."""
    proved(tmp_path, topology)


@pytest.mark.long
@pytest.mark.parametrize("topology", ["loop", "alignment", "nested-small", "two-returns"])
def test_everybody_terminates_after_any_number_of_records(topology: str, tmp_path: Path) -> None:
    """By a ranking function that is found, with a certificate that the verifier accepts."""
    certificate = tmp_path / "proof.cert"
    words = ["prove", "baton_counts", "--any", "work", "-p", f"topology={topology}", "--property", "ends_after_work"]
    assert run([*words, "--rank", "", "-q", "--certificate", str(certificate), "--out", str(tmp_path)]) == 0
    assert run(["verify-certificate", str(certificate), "-q"]) == 0


@pytest.mark.long
@pytest.mark.parametrize("variant", [v for v, broken in SPEC.expected.items() if broken])
def test_what_a_variant_breaks_is_not_proved(variant: str, tmp_path: Path) -> None:
    """The prover refutes what the search refutes, and proves none of it."""
    out = tmp_path / "proof.json"
    words = ["prove", "baton_counts", "--variant", variant, "--any", "work", "--timeout", "300"]
    assert run([*words, "-q", "--json", str(out), "--out", str(tmp_path)]) != 0
    verdicts = {p["name"]: p["verdict"] for p in json.loads(out.read_text())["properties"]}
    assert set(GUARANTEES) <= set(verdicts)  # `ends_after_work` is proved with a rank only
    assert not {name for name in SPEC.expected[variant] if verdicts.get(name) == "holds"}
