"""``streamproof counterexamples``: find every violation expected by the bundled specifications, and write its trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from streamproof import __version__
from streamproof.api.counterexamples import leftover, promised
from streamproof.base.errors import Exit, InputError
from streamproof.base.files import expect_writable
from streamproof.base.options import flag
from streamproof.base.records import dataclass
from streamproof.base.text import visible
from streamproof.cli.arguments import json_flag, verb
from streamproof.cli.outputs import Status, expect_json_writable, people, write_json

SCHEMA = "streamproof.counterexamples/1"


@dataclass(frozen=True, slots=True)
class CounterexamplesArguments:
    """The arguments of the verb."""

    out: Path = flag("Folder of the counterexamples.", unit="DIR", default=Path("counterexamples"))
    checking: bool = flag("Check the existing files; write nothing.", "--check")
    json_to: str | None = json_flag()


@verb(
    "counterexamples",
    CounterexamplesArguments,
    example="streamproof counterexamples --out counterexamples --check",
)
def command(given: CounterexamplesArguments) -> int:
    """Find each expected violation of each bundled protocol again, and write MODEL/VARIANT/PROPERTY.itf.json and .txt.

    Equal specifications give equal bytes. With --check, every existing trace must replay, show its violation and be as
    short as possible, its text must be current, and no file may be missing or superfluous; otherwise the exit code is 161.
    """
    out, checking, json_to = given.out, given.checking, given.json_to
    expect_json_writable(json_to, SCHEMA)
    if checking and not out.is_dir():
        why = "is a file" if out.exists() else "does not exist"
        raise InputError(f"the folder {out} {why}", remedy="name a folder written by streamproof counterexamples")
    if not checking:
        expect_writable(out, None)
    problems: list[str] = []
    files: set[Path] = set()
    entries: list[dict[str, Any]] = []
    with Status() as status:
        for entry in promised(status, problems):
            files |= {entry.path(out, ".itf.json"), entry.path(out, ".txt")}
            entries.append(entry.document(out))
            if checking:
                problems += entry.problems(out)
            else:
                entry.write(out)
    for path in sorted(leftover(out, files)):
        problems.append(f"{path}: no specification expects this violation; remove it")
    for problem in problems:
        sys.stderr.write(f"{visible(problem)}\n")
    done = "checked" if checking else "written"
    people(json_to).write(f"{len(files) // 2} counterexamples {done} in {out}, {len(problems)} problems\n")
    code = Exit.REJECTED if problems else Exit.HOLDS
    document = {
        "schema": SCHEMA,
        "version": __version__,
        "exit_code": int(code),
        "out": str(out),
        "written": not checking,
        "counterexamples": entries,
        "problems": problems,
    }
    write_json(document, json_to)
    return code
