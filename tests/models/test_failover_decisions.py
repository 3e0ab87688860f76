"""Failover with decisions as arrays: the states of `failover`, and proofs for any number of failures and losses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shares import share
from streamproof import Spec, refines
from streamproof.cli.verbs import run
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_models.failover.decisions import FailoverDecisions
from streamproof_models.failover.machine import Failover
from streamproof_models.failover.named_job_graphs import JOB_GRAPHS
from streamproof_specs.failover.decisions import SPEC
from streamproof_specs.failover.properties import SPEC as FAILOVER

VARIANTS = [None, *SPEC.model.variants]
REFUTED = [variant for variant, verdicts in SPEC.expected.items() if verdicts]
GRAPHS = ("pair", "chain", "diamond", "mixed")
"""Job graphs of which everything is proved."""


def same_states(variant: str | None, **parameters: Any) -> dict[str, Verdict]:
    """The verdicts of the claim that a variant of `failover` refines that of `failover_decisions`; it has as many states and
    steps."""

    def in_arrays(m: Any, s: Any) -> dict[str, Any]:
        """Decisions as truth values; nothing is in the last place."""
        return {
            name: [
                {t: k < m.decisions and t in sets[min(k, m.decisions - 1)] for t in m.tasks}
                for k in range(m.decisions + 1)
            ]
            for name, sets in {"restarting": s.restarting, "awaiting": s.awaiting}.items()
        }

    same = {name: name for name in ("topology", "parallelism", "failures", "losses", "deterministic")}
    refines(FailoverDecisions, in_arrays, variant=variant, **same)
    result = explore(Spec(Failover, properties=(in_arrays,)).system(variant, **parameters))
    other = explore(SPEC.system(variant, **parameters))
    assert other.counts == result.counts
    found = {f.property: f.verdict.value for f in other.findings}
    if not parameters:
        assert found == {name: SPEC.expectation(variant, name) for name in found}
    return {f.property: f.verdict for f in result.findings if f.property.startswith(in_arrays.__name__)}


@pytest.mark.parametrize("variant", share(VARIANTS, 6), ids=str)
def test_each_variant_has_the_states_of_failover(variant: str | None) -> None:
    """Each step is one of the same variant, and the verdicts are those of `failover`."""
    found = same_states(variant)
    assert len(found) == 3
    assert {*found.values()} == {Verdict.HOLDS}


@pytest.mark.parametrize("topology", share(sorted(JOB_GRAPHS), 6))
def test_each_job_graph_has_the_states_of_failover(topology: str) -> None:
    """The same of the catalogue."""
    assert {*same_states(None, topology=topology).values()} == {Verdict.HOLDS}


def test_the_expected_verdicts_are_those_of_failover() -> None:
    """But for a property that is no invariant; the variants with other state are left out."""
    assert {*FAILOVER.model.variants} - {*SPEC.model.variants} == {"literal-pseudocode", "lost-executors", "flink"}
    for variant, verdicts in SPEC.expected.items():
        assert {*FAILOVER.expected[variant]} - {*verdicts} <= {"finishes_after_restart"}
    assert len(REFUTED) == 14


@pytest.mark.long
@pytest.mark.parametrize("topology", GRAPHS)
def test_safety_is_proved_for_any_number_of_failures_and_losses(topology: str, tmp_path: Path) -> None:
    """Also the absence of deadlock, with a certificate that the verifier accepts."""
    out, certificate = tmp_path / "proof.json", tmp_path / "proof.cert"
    words = [
        "prove",
        "failover_decisions",
        "-p",
        f"topology={topology}",
        "--any",
        "failures,losses",
        "--timeout",
        "600",
    ]
    assert run([*words, "-q", "--json", str(out), "--certificate", str(certificate)]) == 0
    verdicts = {p["name"]: (p["verdict"], p["sizes"]) for p in json.loads(out.read_text())["properties"]}
    assert len(verdicts) == 9
    assert {*verdicts.values()} == {("holds", "any")}
    assert run(["verify-certificate", str(certificate), "--unpacked", "200MB", "-q"]) == 0


@pytest.mark.long
@pytest.mark.parametrize("topology", ["pair", "pipelined-pair"])
def test_every_job_ends_whatever_the_number_of_failures_and_losses(topology: str, tmp_path: Path) -> None:
    """By the ranking function of the specification, with a certificate that the verifier accepts."""
    certificate = tmp_path / "proof.cert"
    words = ["prove", "failover_decisions", "-p", f"topology={topology}", "--any", "failures,losses", "-q"]
    rank = ["--property", "ends", "--rank", "remaining", "--timeout", "900", "--certificate", str(certificate)]
    assert run([*words, *rank]) == 0
    assert run(["verify-certificate", str(certificate), "-q"]) == 0


@pytest.mark.long
@pytest.mark.parametrize("variant", REFUTED)
def test_what_a_variant_breaks_is_not_proved(variant: str, tmp_path: Path) -> None:
    """The prover finds what the search refutes."""
    out = tmp_path / "proof.json"
    words = ["prove", "failover_decisions", "--variant", variant, "--any", "failures,losses", "--timeout", "600"]
    assert run([*words, "-q", "--json", str(out), "--out", str(tmp_path)]) in (11, 12)
    verdicts = {p["name"]: p["verdict"] for p in json.loads(out.read_text())["properties"]}
    assert {*SPEC.expected[variant]} - {"ends"} <= {n for n, verdict in verdicts.items() if verdict == "violated"}
