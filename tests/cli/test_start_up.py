"""What a small check does not load: everything that would take longer to import than the check takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from shares import share
from streamproof import entries

HEAVY = (
    "email", "importlib.metadata", "jinja2", "llvmlite", "networkx", "numpy", "pyarrow", "pyspark", "rich",
    "scipy", "socket", "streamproof.symbolic", "tempfile", "z3",
)  # fmt: skip
LOADED = f"""
import sys
from streamproof.cli.verbs import run
code = run(sys.argv[1:])
print([name for name in {HEAVY!r} if name in sys.modules], code)
"""


@pytest.mark.parametrize("words", [("reference.die_hard",), ("counter.py", "--size", "small", "--coverage")])
def test_a_small_check_loads_nothing_heavy(folder: Path, words: tuple[str, ...]) -> None:
    """A bundled model and a file are checked, with their traces written, without any large library."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, "check", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.splitlines()[-1] == "[] 0"


COUNTED = """
import sys
from streamproof.cli.verbs import run
code = run(sys.argv[1:])
folders = {name for name, module in sys.modules.items() if hasattr(module, "__path__")}
print(code, *(name for name in sys.modules if name.split(".")[0] == "streamproof" and name not in folders))
"""


@pytest.mark.parametrize(
    ("model", "most"),
    share([("regions", 105), ("partition_lifecycle", 100), ("slots", 105), ("baton", 100)], 4),
)
def test_a_check_loads_few_modules(tmp_path: Path, model: str, most: int) -> None:
    """A check of a bundled model loads a bounded number of the program's files: what it does not need stays unloaded.

    A check of `regions` also writes a witness.
    """
    words = [sys.executable, "-c", COUNTED, "check", model]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    code, *modules = done.stdout.splitlines()[-1].split()
    assert code == "0"
    assert "streamproof.explicit.search" in modules
    assert len(modules) <= most, modules


def test_registered_objects_are_found_without_the_packaging_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first package on the path that registers a name in the group counts; extras and other groups do not matter."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, value in ((first, "json.decoder:JSONDecoder.decode [extra]"), (second, "json:loads")):
        (folder / "some-1.dist-info").mkdir(parents=True)
        (folder / "some-1.dist-info" / "entry_points.txt").write_text(
            f"[others]\nreading = nowhere:Nothing\n\n[our.group]\n# a comment = none\nreading = {value}\n"
        )
    (first / "broken-1.dist-info").mkdir()
    (first / "broken-1.dist-info" / "entry_points.txt").write_bytes(b"\xff\xfe")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "missing"), str(first), str(second)])
    from json.decoder import JSONDecoder

    found = entries.quick("our.group", "reading")
    assert found is not None
    assert found.load() is JSONDecoder.decode
    assert entries.quick("our.group", "writing") is None
    assert entries.quick("no.group", "reading") is None


def test_both_ways_of_finding_registered_models_agree() -> None:
    """Reading the listings gives what the packaging library gives."""
    every = entries.every("streamproof.models")
    assert {name: entries.quick("streamproof.models", name) for name in every} == every
