"""The life cycle of partitions without queues: explored where it is small, refined by `partition_lifecycle`, and proved for
every number of parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from model_verdicts import established
from shares import share
from streamproof import Spec, refines
from streamproof.cli.verbs import run
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_models.partitions.counts import PartitionCounts
from streamproof_models.partitions.machine import Close, Deploy, PartitionLifecycle, Release
from streamproof_specs.partitions.counts import SPEC
from streamproof_specs.partitions.counts_steps import STEPS
from streamproof_specs.partitions.properties import SPEC as LIFECYCLE

COUNTS: dict[str | None, tuple[int, int, int]] = {
    None: (5546, 43841, 26),
    "release-on-consumption": (4668, 35654, 24),
    "release-when-read": (7298, 58728, 26),
    "read-then-finish": (7118, 58311, 28),
    "close-connection-early": (7471, 58860, 25),
    "rm-ignores-partitions": (6116, 50733, 26),
    "stale-report": (6336, 51513, 26),
    "no-heartbeat-cleanup": (5115, 39065, 25),
    "no-shutdown-hook": (6080, 45861, 26),
    "unfenced-deployment": (8096, 64736, 25),
    "unnoticed-loss": (5546, 43909, 26),
    "readers-kept": (6757, 55101, 26),
    "cleanup-of-all-jobs": (6299, 58507, 26),
    "grace": (9936, 80486, 26),
    "grace-without-fencing": (22566, 197754, 28),
    "unfenced-grace": (34373, 343530, 33),
    "released-taken-back": (23252, 236985, 29),
    "late-release": (11684, 100011, 28),
}
"""Distinct states, generated states and depth."""
FREE = "executors,partitions,consumers,attempts,failures,crashes"
VARIANTS = [None, *SPEC.model.variants]


@pytest.mark.parametrize("variant", share(VARIANTS, 3), ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """Needed partitions are kept; each broken rule shows in what is expected of it."""
    established(SPEC, variant, COUNTS[variant])


def seen(m: Any, s: Any, watched: int) -> dict[str, Any]:
    """The state of the first job of `partition_lifecycle`, with attempt `watched` as the earlier one."""
    own = [p for p in range(m.partitions) if m.job_of[p] == 0]
    old = [s.attempt[p] > watched + 1 for p in own]
    found = {
        "master": s.master[0],
        "recoveries": s.recoveries[0],
        "registered": [s.registered[0, e] for e in range(m.executors)],
        "attempt": [s.attempt[p] for p in own],
        "tracked": [s.tracked[p] for p in own],
        "reading": [consumers(m, s, p, "READING") for p in own],
        "finished": [consumers(m, s, p, "FINISHED") for p in own],
        "failures_left": s.failures_left,
        "executor": [s.executor[e] for e in range(m.executors)],
        "connected": [s.connected[0, e] for e in range(m.executors)],
        "location": [s.location[p, s.attempt[p] - 1] if s.attempt[p] > 0 else 0 for p in own],
        "copy": [s.copy[p, s.attempt[p] - 1] if s.attempt[p] > 0 else "NONE" for p in own],
        "old_location": [s.location[p, watched] if old[i] else 0 for i, p in enumerate(own)],
        "old_copy": [s.copy[p, watched] if old[i] else "NONE" for i, p in enumerate(own)],
        "empty": [s.empty[e] for e in range(m.executors)],
        "order": [order(m, s, p, s.attempt[p] - 1) for p in own],
        "old_order": [order(m, s, p, watched) if old[i] else "NONE" for i, p in enumerate(own)],
        "closing": [s.master[0] != "ENDED" and closes(s.to_executor[0, e]) > 0 for e in range(m.executors)],
        "reporting": [reports(m, s, p) for p in own],
    }
    return found


def consumers(m: Any, s: Any, p: int, state: str) -> Any:
    """The number of consumers in a state."""
    return sum(int(s.consumer[p, c] == state) for c in range(m.consumers))


def order(m: Any, s: Any, p: int, a: Any) -> Any:
    """What is ordered to be done with an attempt."""
    messages = [x for e in range(m.executors) for x in s.to_executor[0, e]]
    if any(isinstance(x, Deploy) and x.partition == p and x.attempt == a for x in messages):
        return "DEPLOY"
    if any(isinstance(x, Release) and x.partition == p and x.attempt == a for x in messages):
        return "RELEASE"
    return "NONE"


def closes(queue: Any) -> Any:
    """The number of messages that close the connection."""
    return sum(int(isinstance(x, Close)) for x in queue)


def overtaken(queue: Any, p: int, a: Any) -> Any:
    """Whether a message about an attempt is behind one that closes the connection."""
    closed = False
    found = False
    for x in queue:
        if isinstance(x, Close):
            closed = True
        elif x.partition == p and x.attempt == a:
            found = closed
    return found


def reports(m: Any, s: Any, p: int) -> Any:
    """Whether a report of the newest attempt is on its way."""
    reported = [s.to_master[0, e] for e in range(m.executors)]
    return any(r is not None and r.partition == p and r.attempt + 1 == s.attempt[p] for r in reported)


def mapping(watched: int, variant: str | None) -> Any:
    """The refinement mapping of a variant, which may have further variables."""

    def counted(m: Any, s: Any) -> dict[str, Any]:
        """The state of `partition_lifecycle` as counts."""
        return seen(m, s, watched)

    def timed(m: Any, s: Any) -> dict[str, Any]:
        """With the timers of grace periods."""
        return {**seen(m, s, watched), "timer": [s.timer[0, e] for e in range(m.executors)]}

    def in_two_steps(m: Any, s: Any) -> dict[str, Any]:
        """With consumers that have read all, and not finished."""
        return {**seen(m, s, watched), "read": [consumers(m, s, p, "READ") for p in range(m.partitions)]}

    def in_order(m: Any, s: Any) -> dict[str, Any]:
        """Also with the orders behind a message that closes the connection."""
        behind = [
            s.master[0] != "ENDED"
            and any(overtaken(s.to_executor[0, e], p, s.attempt[p] - 1) for e in range(m.executors))
            for p in range(m.partitions)
        ]
        again = [s.master[0] != "ENDED" and closes(s.to_executor[0, e]) > 1 for e in range(m.executors)]
        return {**timed(m, s), "behind": behind, "again": again}

    if variant == "unfenced-grace":
        return in_order
    if variant in TIMED:
        return timed
    return in_two_steps if variant in ("read-then-finish", "release-when-read") else counted


TIMED = ("grace", "grace-without-fencing", "unfenced-grace", "released-taken-back", "late-release")
"""The variants with a grace period."""


def refined(variant: str | None, rules: str | None, watched: int = 0, **parameters: int) -> dict[str, Verdict]:
    """Whether a variant of `partition_lifecycle` refines one of `partition_counts`: initial states, steps and fairness."""
    function = mapping(watched, rules)
    same = {name: name for name in FREE.split(",")}
    partitions = 1 if "jobs" in parameters or variant == "cleanup-of-all-jobs" else "partitions"
    refines(PartitionCounts, function, variant=rules, **{**same, "partitions": partitions})
    result = explore(Spec(PartitionLifecycle, properties=(function,)).system(variant, **parameters))
    return {f.property: f.verdict for f in result.findings if f.property.startswith(function.__name__)}


@pytest.mark.parametrize("variant", share(VARIANTS, 4), ids=str)
def test_each_behaviour_of_the_lifecycle_is_one_of_the_counts(variant: str | None) -> None:
    """With the same rules: so the shortest counterexamples, too."""
    found = refined(variant, variant, **LIFECYCLE.variant_parameters.get(variant, {}))
    assert len(found) == 3
    assert {*found.values()} == {Verdict.HOLDS}


@pytest.mark.parametrize(
    ("watched", "parameters"),
    share(
        [
            (1, {"attempts": 3, "failures": 2}),
            (0, {"attempts": 3, "failures": 2}),
            (0, {"consumers": 2}),
            (0, {"partitions": 2, "failures": 0, "crashes": 0}),
            (0, {"jobs": 2, "partitions": 2, "failures": 0, "crashes": 0}),
            (0, {"executors": 2}),
        ],
        6,
    ),
    ids=str,
)
def test_larger_instances_refine_the_counts(watched: int, parameters: dict[str, int]) -> None:
    """Whichever earlier attempt is looked at, and with another job."""
    assert {*refined(None, None, watched, **parameters).values()} == {Verdict.HOLDS}


@pytest.mark.parametrize("variant", share(["close-connection-early", "unnoticed-loss", "readers-kept"], 3))
def test_a_broken_rule_is_no_step_of_the_counts(variant: str) -> None:
    """The refinement of the machine itself fails with it."""
    found = refined(variant, None, **LIFECYCLE.variant_parameters[variant])
    assert found["counted"] is Verdict.VIOLATED


@pytest.mark.parametrize("variant", share([*SPEC.expected], 4))
def test_counterexamples_are_as_long_as_those_of_the_lifecycle(variant: str) -> None:
    """Each is the known one: `partition_lifecycle` needs a step more where another job has to register. What a step may
    change is stated of the counts alone."""
    more = int(variant == "cleanup-of-all-jobs")
    own = {function.__name__ for function in STEPS}
    found = {name: length for name, length in lengths(SPEC, variant, {}).items() if name not in own}
    assert {name: length + more for name, length in found.items()} == {
        name: length for name, length in lengths(LIFECYCLE, variant, {}).items() if name in found
    }


def lengths(spec: Spec, variant: str, parameters: dict[str, int]) -> dict[str, int]:
    """The steps of the counterexamples of a variant."""
    traces = {f.property: f.trace for f in explore(spec.system(variant, **parameters)).findings}
    return {name: len(trace.steps) for name, trace in traces.items() if trace is not None}


@pytest.mark.long
def test_safety_is_proved_for_every_size(tmp_path: Path) -> None:
    """For every value of every parameter, with a certificate that the verifier accepts."""
    names = (
        "kept_while_needed",
        "read_where_stored",
        "one_attempt_read",
        "idle_executors_only",
        "lost_with_connection",
    )
    assert proved(tmp_path, *(word for name in names for word in ("--property", name))) == dict.fromkeys(names, "any")


@pytest.mark.long
def test_liveness_is_proved_for_every_size(tmp_path: Path) -> None:
    """The same by a ranking function that is found."""
    assert proved(tmp_path, "--property", "no_orphan", "--rank", "") == {"no_orphan": None}


def proved(folder: Path, *words: str) -> dict[str, str | None]:
    """The sizes of the properties that are proved, with a certificate that the verifier accepts."""
    out, certificate = folder / "proof.json", folder / "proof.cert"
    line = ["prove", "partition_counts", "--any", FREE, *words, "--timeout", "600", "--certificate", str(certificate)]
    assert run([*line, "-q", "--json", str(out)]) == 0
    assert run(["verify-certificate", str(certificate), "-q"]) == 0
    return {p["name"]: p.get("sizes") for p in json.loads(out.read_text())["properties"]}


@pytest.mark.long
@pytest.mark.parametrize("variant", SPEC.expected, ids=str)
def test_what_a_variant_breaks_is_not_proved(variant: str, tmp_path: Path) -> None:
    """The prover finds what the search refutes; a ranking function is not found."""
    expected, out = SPEC.expected[variant], tmp_path / "proof.json"
    words = ["prove", "partition_counts", "--variant", variant, "--any", FREE, "--timeout", "600"]
    if "no_orphan" in expected:
        assert run([*words, "-q", "--property", "no_orphan", "--rank", ""]) == 160
        return
    assert run([*words, "-q", "--json", str(out), "--out", str(tmp_path)]) == 12
    verdicts = {p["name"]: p["verdict"] for p in json.loads(out.read_text())["properties"]}
    assert {n for n, verdict in verdicts.items() if verdict == "violated"} == {*expected}
