"""The tables of JSON fields list exactly the fields that there are.

``<!-- fields of: COMMAND -->`` above a table says where to get the JSON; ``<!-- more fields of: COMMAND -->`` that the table
lists what the document has beside the fields of `streamproof check`. In a table ``a.*`` stands for any key of ``a``, ``a[]``
for each element; a field that is described as a whole covers what is inside it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from shares import share
from streamproof.cli.verbs import cli, run

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
TABLES = re.findall(r"^<!-- (more )?fields of: (.*?) -->\n((?:\|.*\n)+)", PAGE, re.M)
PREPARE = {
    "cat measured.itf.json": "streamproof export reference.die_hard --format itf --property measured --out measured.itf.json",
    "cat verdicts.json": "tar xf tests/data/flink/logs.tar.xz && streamproof validate logs/a-taskfail-1 --json verdicts.json",
    "cat incident.json": "tar xf tests/data/flink/logs.tar.xz && streamproof incident logs/a-taskfail-1 --json incident.json",
    "cat drive.json": (
        "streamproof drive examples/lease/lease.py --adapter examples/lease/adapter.py:LeaseAdapter --seed 1 --walks 3"
        " --json drive.json"
    ),
    "cat suite.json": "streamproof suite reference.two_phase_commit --out suite --json suite.json",
    "cat contract.json": "streamproof contract examples/lease/lease.py --json contract.json",
    "cat run.json": "streamproof run examples/word_count.py --simulate --json run.json",
    "cat real.json": "streamproof run examples/word_count.py --taskmanagers 2 --kill tm-1@5 --json real.json",
    "cat report.json": (
        "tar xf tests/data/flink/logs.tar.xz && streamproof validate logs/a-taskfail-1 --json verdicts.json"
        " && mkdir all && cp verdicts.json all && echo x > all/damaged.json"
    ),
}
"""What makes the files that some of the commands show, or read."""
ON_SPARK = {"cat report.json": ("report", "all", "--out", "report", "--json", "report.json")}
"""What else does, in this process, which has a Spark session."""
ONE_MODEL = (
    "import streamproof.api.counterexamples as verb; verb.bundled = lambda: ['task_attempt'];"
    " from streamproof.__main__ import main; main()"
)
"""The program with one bundled model: `tests/cli` checks the counterexamples of all of them."""


def documented(table: str) -> list[str]:
    """The fields in the first column of a table."""
    cells = [row.split("|")[1] for row in table.splitlines()[2:]]
    return [field for cell in cells for field in re.findall(r"`(.+?)`", cell)]


def shape(data: Any, at: str = "") -> Iterator[str]:
    """The path of every value inside JSON data."""
    if isinstance(data, dict) and data:
        for key, value in data.items():
            yield from shape(value, f"{at}.{key}" if at else key)
    elif isinstance(data, list) and data:
        for value in data:
            yield from shape(value, f"{at}[]")
    else:
        yield at


def covers(field: str, path: str) -> bool:
    """Whether a documented field describes what is at `path`, or holds it."""
    wanted = re.escape(field).replace(r"\.\*", r"\.[^.]+")
    return re.match(rf"{wanted}(?:[.\[]|$)", path) is not None


def holds(path: str, field: str) -> bool:
    """Whether an empty or missing value at `path` leaves no room for the documented field inside it."""
    return field.startswith((f"{path}.", f"{path}[]"))


def answer(command: str, folder: Path) -> Any:
    """The JSON that a command writes to standard output."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = command.replace("streamproof counterexamples", f'python -c "{ONE_MODEL}" counterexamples')
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    return json.loads(done.stdout)


def _marks(command: str) -> list[pytest.MarkDecorator]:
    found = [pytest.mark.spark, pytest.mark.long] if command in ON_SPARK else []
    return [*found, pytest.mark.long] if "compare" in command else found


@pytest.mark.parametrize(
    ("more", "command", "table"),
    share([pytest.param(*row, id=row[1], marks=_marks(row[1])) for row in TABLES], 4),
)
def test_fields(
    more: str,
    command: str,
    table: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each field that is there is described, and each that is described is there."""
    for name in ("tests", "counterexamples", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    prepared = PREPARE.get(command)
    if prepared is not None:
        subprocess.run(
            ["bash", "-c", prepared],
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
            stdout=subprocess.DEVNULL,
            timeout=300,
            check=True,
        )
    if command in ON_SPARK:
        request.getfixturevalue("spark")
        monkeypatch.chdir(tmp_path)
        assert run(ON_SPARK[command]) == 0
    paths = set(shape(answer(command, tmp_path)))
    fields = documented(table)
    known = fields + (documented(TABLES[1][2]) if more else [])
    assert [p for p in sorted(paths) if not any(covers(f, p) or holds(p, f) for f in known)] == []
    assert [f for f in fields if not any(covers(f, p) or holds(p, f) for p in paths)] == []


def test_every_json_verb_has_a_table() -> None:
    """The page describes the JSON of every verb that writes any, in a table of its own or beside that of `check`."""
    described = set(re.findall(r"streamproof ([a-z-]+)", " ".join(command for _, command, _ in TABLES)))
    described |= {
        verb for file, preparation in PREPARE.items() for verb in re.findall(r"streamproof ([a-z-]+)", preparation)
    }
    described |= {verb for verb, *_ in ON_SPARK.values()}
    context = click.Context(cli)
    verbs = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    writing = {
        name for name, verb in verbs.items() if verb is not None and any("--json" in p.opts for p in verb.params)
    }
    assert len(writing) > 9
    assert writing - described == set()
