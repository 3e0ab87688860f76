"""The tables of the README list every verb and every exit code, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import click

from streamproof.base.errors import Exit
from streamproof.cli.verbs import cli

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text under a heading."""
    return README.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_verbs() -> None:
    """The table of verbs has those of the command line, in their order."""
    listed = re.findall(r"^\| \[`([\w-]+)`\]", section("Verbs"), re.M)
    assert listed == cli.list_commands(click.Context(cli))


def test_exit_codes() -> None:
    """The table of exit codes has those of the program."""
    listed = [int(code) for code in re.findall(r"^\| (\d+) \|", section("Exit codes"), re.M)]
    assert sorted(listed) == sorted(map(int, Exit))
    assert len(listed) == len(set(listed))
