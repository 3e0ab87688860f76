"""What people read before they run anything: help, version, lists of models, completion."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shares import share
from streamproof import __version__
from streamproof.cli.verbs import cli
from streamproof.model_registry import bundled, find

VERBS = cli.list_commands(None)  # type: ignore[arg-type]


def completions(folder: Path, *words: str) -> list[str]:
    """What bash offers for the last of `words`."""
    environment = {
        **os.environ,
        "_STREAMPROOF_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("streamproof", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(
        [sys.executable, "-m", "streamproof"], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_the_program_explains_itself(streamproof: Any, golden: Callable[[str, str], None]) -> None:
    """`streamproof --help` lists the verbs and the exit codes."""
    done = streamproof("--help")
    assert (done.code, done.err) == (0, "")
    golden("help", done.out)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(streamproof: Any, golden: Callable[[str, str], None], verb: str) -> None:
    """The help of each verb is as in its golden file."""
    done = streamproof(verb, "--help")
    assert (done.code, done.err) == (0, "")
    golden(f"help_{verb}", done.out)


@pytest.mark.parametrize("verb", VERBS)
def test_help_ends_with_an_example(streamproof: Any, verb: str) -> None:
    """The last two lines of a verb's help are a heading and a line that calls it."""
    heading, example = streamproof(verb, "--help").out.splitlines()[-2:]
    assert heading == "Example:"
    assert f"streamproof {verb} " in example


def test_without_a_verb_the_help_is_shown_as_an_error(streamproof: Any) -> None:
    """The bare program ends with 2 and shows its help on standard error."""
    done = streamproof()
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Usage: streamproof [OPTIONS] COMMAND [ARGS]...\n")


def test_the_version_is_the_package_s(streamproof: Any) -> None:
    """`--version` prints name, version and, in a checkout, the commit."""
    known = re.compile(rf"streamproof {re.escape(__version__)}( \(commit [0-9a-f]{{7,}}(-dirty)?\))?\n")
    assert known.fullmatch(streamproof("--version").out)


def test_help_and_small_models_load_no_engine_that_they_do_not_need(folder: Path) -> None:
    """Neither help nor an explicit check imports the solver, Spark, Arrow or HTML, nor leaves a cache."""
    heavy = ["z3", "pyspark", "pyarrow", "jinja2", "networkx"]
    for arguments in (["--help"], ["models", "counter.py"], ["check", "counter.py", "--property", "grows"]):
        program = (
            "import sys; from streamproof.__main__ import main; sys.argv[1:] = sys.argv[1].split('|'); code = main();"
            f"print([m for m in {heavy} if m in sys.modules], file=sys.stderr); sys.exit(code)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, "|".join(arguments)],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "[]\n"), arguments
    assert not (folder / "__pycache__").exists()


def test_a_model_is_described(streamproof: Any, golden: Callable[[str, str], None]) -> None:
    """`models FILE` shows parameters with their texts, sizes, properties and variants."""
    done = streamproof("models", "counter.py")
    assert (done.code, done.err) == (0, "")
    golden("models_counter", done.out)


def test_a_model_is_described_as_json(streamproof: Any) -> None:
    """`models FILE --json -` prints a list with one entry and nothing else."""
    done = streamproof("models", "counter.py", "--json", "-")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == [
        {
            "name": "counter.py",
            "doc": "A counter that one rule increments.",
            "parameters": {"limit": 3},
            "limits": {},
            "sizes": {"small": {"limit": 1}, "medium": {"limit": 5}},
            "expected": {},
            "variants": [
                {"name": "jumping", "doc": "Goes to the limit at once.", "parameters": {"limit": 3}, "expected": {}}
            ],
            "properties": [
                {"name": "low", "kind": "invariant", "doc": "The counter stays below three."},
                {"name": "grows", "kind": "step", "doc": "No step makes it smaller."},
                {"name": "full", "kind": "reachable", "doc": "The limit is reached."},
            ],
        }
    ]


def test_bundled_models_are_listed_with_what_their_variants_break(streamproof: Any) -> None:
    """`models --json -` has every registered name; failover without versions breaks what its specification says."""
    done = streamproof("models", "--json", "-")
    listed = {entry["name"]: entry for entry in json.loads(done.out)}
    assert (done.code, done.err, list(listed)) == (0, "", list(bundled()))
    variants = {v["name"]: v for v in listed["failover"]["variants"]}
    broken = {name for name, verdict in variants["no-versioning"]["expected"].items() if verdict == "violated"}
    assert broken == set(find("failover").spec.expected["no-versioning"])
    assert set(listed["failover"]["expected"].values()) == {"holds"}
    assert streamproof("models").out.startswith("baton  ")


@pytest.mark.parametrize("name", share(bundled(), 3))
def test_listed_properties_are_those_of_the_compiled_system(name: str) -> None:
    """What `models` tells without compiling is what the system has, names, kinds and order."""
    target = find(name)
    system = target.system(None, {})
    assert [(p.name, p.kind) for p in target.properties()] == [(p.name, p.kind) for p in system.properties]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_ask_the_program(streamproof: Any, shell: str) -> None:
    """The script of each shell calls streamproof back with the variable that asks for completions."""
    done = streamproof("completion", shell)
    assert done.code == 0
    assert f"_STREAMPROOF_COMPLETE={shell}_complete" in done.out
    assert "eval" in done.out.splitlines()[0] or shell == "fish"


def test_shells_complete_names_of_the_model_on_the_line(folder: Path) -> None:
    """Verbs, bundled models, and a file's variants, sizes, properties and parameters are offered."""
    assert completions(folder, "ch") == ["check"]
    assert completions(folder, "check", "reference.die") == ["reference.die_hard"]
    assert completions(folder, "check", "counter.py", "--variant", "") == ["jumping"]
    assert completions(folder, "check", "counter.py", "--size", "m") == ["medium"]
    assert completions(folder, "check", "counter.py", "--property", "") == ["low", "grows", "full"]
    assert completions(folder, "check", "counter.py", "-p", "") == ["limit="]
    assert completions(folder, "check", "broken.py", "--variant", "") == []
