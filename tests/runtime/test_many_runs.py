"""Many runs with heavy faults have right results and are accepted by every machine, validated on Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
@pytest.mark.xdist_group("spark")
def test_two_thousand_seeds_are_right_and_accepted() -> None:
    """No wrong result, no hang, no rejected log, and every action that no run takes has its reason."""
    command = [sys.executable, str(ROOT / "tools" / "validate_runtime.py"), "--seeds", "2000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "2,000 runs" in done.stdout
    assert "not explained" not in done.stdout
