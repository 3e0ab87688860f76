"""Many runs with heavy faults: right results, accepted by every machine on Spark, the same in every process; and the table of
variants has all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from catch_variants import HARMLESS, RUNS
from runtime_mix import JOBS
from streamproof_runtime.variants.all_variants import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
_DIGESTS = """
import sys
from runtime_mix import run_of
for seed in range(int(sys.argv[1])):
    name, outcome, wrong = run_of(seed)
    assert not wrong, (seed, name, wrong)
    print(outcome.digest)
"""


def digests(seeds: int, hash_seed: str) -> list[str]:
    """The digests of the logs of the first seeds, in a process of its own with this PYTHONHASHSEED."""
    settings = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "tests" / "support")}
    command = [sys.executable, "-c", _DIGESTS, str(seeds)]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("seeds", [len(JOBS), pytest.param(2_000, marks=pytest.mark.long)])
def test_seeds_give_the_same_logs_in_two_processes(seeds: int) -> None:
    """Of every job, whatever the order of sets."""
    found = digests(seeds, "1")
    assert len(found) == len({*found}) == seeds
    assert found == digests(seeds, "77")


@pytest.mark.long
@pytest.mark.xdist_group("spark")
def test_two_thousand_seeds_are_right_and_accepted() -> None:
    """No wrong result, no hang, no rejected log, and every action that no run takes has its reason."""
    command = [sys.executable, str(ROOT / "tools" / "validate_runtime.py"), "--seeds", "2000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "2,000 runs" in done.stdout
    assert "not explained" not in done.stdout


def test_every_variant_has_a_row_that_says_how_it_is_caught() -> None:
    """In the page; but for the harmless ones."""
    assert RUNS.keys() == FAMILIES.keys()
    page = (ROOT / "docs" / "runtime-runs.md").read_text(encoding="utf-8")
    table = page.partition("<!-- variants -->")[2].partition("<!-- end of variants -->")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    assert [(of, name.strip("`")) for name, of, _ in rows] == [(of, n) for of, names in FAMILIES.items() for n in names]
    assert {name.strip("`") for name, _, by in rows if " in run " not in by} <= HARMLESS
