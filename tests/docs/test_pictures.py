"""Every picture of the documents is what its command draws; `STREAMPROOF_GOLDEN=1` draws them again."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
MEASURED = ("throughput", "latency", "isolation")
"""Plots of `benchmarks/runtime_network.py`."""
DRAWN = {
    "counterexample.svg": "baton --variant literal --property no_early_end --format sequence",
    "head-unasked.svg": "baton --variant head-unasked --property step_4_1_is_enough --format sequence",
    "second-pass.svg": "baton --variant second-pass-unchecked --property no_early_end --format sequence",
    "two-heads.svg": "baton --variant uncoordinated-heads --property no_early_end --format sequence",
}
"""The pictures that streamproof draws, each with the arguments of `streamproof export`."""
PLOTS = ("restarts", "credit", "spill")
"""The plots of `tools/plot_runtime.py`."""


@pytest.mark.parametrize("name", [*(pytest.param(n, marks=pytest.mark.long) for n in ("restarts", "spill")), "credit"])
def test_a_plot_is_what_its_command_draws(name: str, tmp_path: Path) -> None:
    """The committed plot equals a fresh one: simulated runs are the same everywhere."""
    command = [sys.executable, str(ROOT / "tools" / "plot_runtime.py"), "--only", name, "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    file = f"runtime-{name}.svg"
    assert (tmp_path / file).read_text(encoding="utf-8") == (IMAGES / file).read_text(encoding="utf-8")


@pytest.mark.long
def test_the_table_of_input_policies_is_what_its_command_prints() -> None:
    """The medians of simulated runs are the same everywhere."""
    command = [sys.executable, str(ROOT / "tools" / "loop_policies.py")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
    assert printed.strip() in (ROOT / "docs" / "runtime-runs.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_what_its_command_draws(name: str, tmp_path: Path) -> None:
    """The committed file equals a fresh one."""
    fresh = tmp_path / name
    command = [sys.executable, "-m", "streamproof", "export", *DRAWN[name].split(), "--out", str(fresh)]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    if os.environ.get("STREAMPROOF_GOLDEN"):
        (IMAGES / name).write_bytes(fresh.read_bytes())
    assert (IMAGES / name).read_text(encoding="utf-8") == fresh.read_text(encoding="utf-8")


def test_every_picture_is_known_and_shown() -> None:
    """No picture is left over, and none is missing."""
    documents = (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    shown = {
        Path(p).name for d in documents for p in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", d.read_text(encoding="utf-8"))
    }
    sources = {path.stem: path for path in IMAGES.glob("*.dot")}
    kept = {path.name for path in IMAGES.glob("*.svg")}
    assert kept <= shown
    of_runtime = {f"runtime-{name}.svg" for name in (*PLOTS, *MEASURED)}
    assert kept == set(DRAWN) | of_runtime | {f"{name}.svg" for name in sources}
    for name, source in sources.items():
        checksum = hashlib.sha256(source.read_bytes()).hexdigest()
        drawing = (IMAGES / f"{name}.svg").read_text(encoding="utf-8")
        assert checksum in drawing, f"{name}.svg is older than its source: run .venv/bin/python tools/drawings.py"
