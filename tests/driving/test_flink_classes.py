"""Flink's own classes do what the models say, differ from rules that Flink does not have, and faults before them are found.

The jar comes from `FLINK_DIST`; docs/flink-classes.md says how to get it. It needs a JDK.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shares import share

FOLDER = Path(__file__).resolve().parents[2] / "adapters" / "flink-classes"
CLAIMS = runpy.run_path(str(FOLDER / "claims.py"))

needs_flink = pytest.mark.skipif(
    "FLINK_DIST" not in os.environ or shutil.which("javac") is None,
    reason="needs javac, and FLINK_DIST: the path of flink-dist-VERSION.jar; docs/flink-classes.md says how to get it",
)


@pytest.fixture(scope="module")
def built() -> None:
    """The adapter is built for the jar."""
    subprocess.run([FOLDER / "build.sh", os.environ["FLINK_DIST"]], check=True)


@needs_flink
@pytest.mark.long
@pytest.mark.parametrize("family", CLAIMS["FAMILIES"])
def test_a_family_does_what_its_model_says(built: None, family: str, capfd: pytest.CaptureFixture[str]) -> None:
    """No difference in a suite and random walks, or the message says which."""
    assert CLAIMS["families"]([family]), capfd.readouterr().out


@needs_flink
@pytest.mark.long
@pytest.mark.parametrize("rule", CLAIMS["RULES"])
def test_a_rule_that_flink_does_not_have_differs(built: None, rule: str) -> None:
    """The rule is refuted by the class that it speaks of."""
    assert CLAIMS["rules"]([rule])


@needs_flink
@pytest.mark.long
@pytest.mark.parametrize("fault", share([fault for fault, _ in CLAIMS["FAULTS"]], 3))
def test_a_fault_before_the_classes_is_found(built: None, fault: str) -> None:
    """In at most 200 walks, unless it cannot be observed."""
    assert CLAIMS["faults"]([fault])


@needs_flink
@pytest.mark.long
def test_regions_and_restart_sets_are_those_of_random_graphs(built: None) -> None:
    """Flink's functions of a job graph, beside those of the models; an inverted answer is found."""
    words: list[Any] = [sys.executable, FOLDER / "graphs.py", "100", "1"]
    assert subprocess.run(words, check=False).returncode == 0
    assert (
        subprocess.run([*words, "negated:ResultPartitionAvailabilityChecker.isAvailable"], check=False).returncode
        == 161
    )


@pytest.mark.parametrize("rule", share(CLAIMS["RULES"], 4))
def test_a_rule_that_flink_does_not_have_can_be_read(rule: str) -> None:
    """It is found by its name, with the parameters that it is driven with."""
    words = CLAIMS["RULES"][rule]
    assert CLAIMS["select"](CLAIMS["MODELS"] + rule, None, parameters=words[1::2]).system().instances
