"""Every file, command and output shown in the documents is what streamproof really reads, runs and prints.

A comment above a fenced block, invisible to readers, says what the block is:

* ``<!-- file NAME -->``: the content of the file NAME;
* ``<!-- append NAME -->``: more of it, after an empty line;
* ``<!-- run -->``: commands after ``$ `` and what they print, on either stream; ``<!-- run 0 11 -->`` gives their exit
  codes where one is not 0. A line ``...`` stands for any number of lines, ``...`` in a line for any text;
* ``<!-- run, any numbers -->``: likewise, and a number that is shown stands for any number (a solver's choice);
* ``<!-- run, long -->``: run by the long tests alone, because it takes seconds;
* ``<!-- rule -->``: part of a rule, for `test_language.py`;
* ``<!-- not run: REASON -->``: none of these, because of REASON;
* ``<!-- needs tests/data -->``: what the document's commands read of this repository;
* ``<!-- runs spin -->``: a program they run, without which the document is not tested.

The blocks of one document share a folder and are taken in order.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from _pytest.mark import ParameterSet

from shares import share
from streamproof.cli.sweep import bound_options
from streamproof.cli.verbs import cli, named
from streamproof.model_registry import bundled, find

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = {"docs/decisions.md"}
"""Documents without snippets of their own."""
DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if str(path.relative_to(ROOT)) not in ELSEWHERE
)
FIRST_READ = ("README.md", "docs/language.md", "docs/tutorial.md")
"""Documents whose commands run on every push, as do those of every sixteenth other one."""
STARTS_SPARK = re.compile("--master|streamproof report")
BLOCK = re.compile(r"(?:^<!-- (?P<says>[^\n]*?) -->\n\n?)?^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.M | re.S)
MARKED = re.compile(
    r"(?P<verb>file|append|run|not run|rule)(?P<loose>, any numbers)?(?P<long>, long)?(?:[: ] *(?P<rest>.*))?$"
)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: what its comment says it is, and its text."""

    verb: str
    rest: str
    body: str
    line: int
    kind: str
    loose: bool
    long: bool


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a block, with the output the document shows for it (None: it shows none)."""

    words: str
    shown: tuple[str, ...] | None
    code: int
    line: int
    loose: bool


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a document, in order; those without a comment have an empty `verb`."""
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("body")) + 1
        said = MARKED.match(found["says"] or "")
        verb, rest = (said["verb"], said["rest"] or "") if said else ("", "")
        loose, long = (bool(said and said[word]) for word in ("loose", "long"))
        yield Block(verb, rest, found["body"], line, found["kind"], loose, long)


def commands(block: Block) -> list[Command]:
    """The commands of a block that is to be run. A line that ends in a backslash goes on in the next."""
    codes = [int(code) for code in block.rest.split()]
    made: list[Command] = []
    lines = block.body.splitlines()
    starts = [at for at, line in enumerate(lines) if line.startswith("$ ")]
    for number, at in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(lines)
        last = at
        while lines[last].endswith("\\"):
            last += 1
        words = "\n".join(lines[at : last + 1]).removeprefix("$ ")
        shown = tuple(lines[last + 1 : end]) or None
        code = codes[number] if number < len(codes) else 0
        made.append(Command(words, shown, code, block.line + at, block.loose))
    assert made, f"line {block.line}: a block to run has a line that starts with '$ '"
    assert len(codes) <= len(made), f"line {block.line}: more exit codes than commands"
    return made


def pattern(shown: tuple[str, ...], loose: bool) -> re.Pattern[str]:
    """What an output must match to be the one that is shown; `loose`: whatever its numbers are."""
    parts = []
    for line in shown:
        if line.strip() == "...":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append("[^\n]*?".join(re.escape(piece) for piece in line.rstrip().split("...")) + r"[ ]*\n")
            if loose:
                parts[-1] = re.sub(r"\d+", r"\\d+", parts[-1])
    return re.compile("".join(parts))


def agrees(shown: tuple[str, ...], printed: str, loose: bool = False) -> bool:
    """Whether the output is the one shown; empty lines at either end do not count."""
    lines = list(shown)
    while lines and not lines[-1].strip():
        lines.pop()
    return pattern(tuple(lines), loose).fullmatch(printed.strip("\n") + "\n") is not None


def run(command: Command, folder: Path, document: str) -> None:
    """Run one command where the document's files are, and compare."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("STREAMPROOF", "PYTEST", "COV"))}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command.words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    place = f"{document}:{command.line}: {command.words}"
    assert done.returncode == command.code, f"{place}\nexit code {done.returncode}, not {command.code}:\n{done.stdout}"
    # On a busy machine a model takes long to read, and the program says so.
    printed = re.sub(r"^streamproof: (reading the model|preparing the \w+) \.\.\.\n", "", done.stdout, flags=re.M)
    if command.shown is not None and not agrees(command.shown, printed, command.loose):
        raise AssertionError(f"{place}\nprinted\n\n{printed}\nbut the document shows\n\n" + "\n".join(command.shown))


def with_marks() -> Iterator[ParameterSet]:
    """The documents that have something to run, without and with what is long; those that start Spark share its worker."""
    for name in DOCUMENTS:
        text = (ROOT / name).read_text(encoding="utf-8")
        found = [b for b in blocks(text) if b.verb == "run"]
        missing = [p for p in re.findall(r"^<!-- runs (\S+) -->$", text, re.M) if shutil.which(p) is None]
        absent = [pytest.mark.skipif(True, reason=f"runs {', '.join(missing)}: not installed")] if missing else []
        for long in (False, True):
            taken = [b for b in found if long or not b.long]
            if taken and (not long or any(b.long for b in taken)):
                marks = [pytest.mark.spark] if any(STARTS_SPARK.search(b.body) for b in taken) else []
                marks += [pytest.mark.long] if long else [pytest.mark.push] if name == "README.md" else []
                yield pytest.param(name, long, id=name + ", long" * long, marks=[*marks, *absent])


CASES = list(with_marks())


@pytest.mark.parametrize(
    ("document", "long"),
    [
        *(case for case in CASES if case.values[0] in FIRST_READ),
        *share((case for case in CASES if case.values[0] not in FIRST_READ), 16, first=5),
    ],
)
def test_snippets(document: str, long: bool, tmp_path: Path) -> None:
    """The document's files and commands, taken in order, give the output and the exit codes that it shows."""
    text = (ROOT / document).read_text(encoding="utf-8")
    for needed in re.findall(r"^<!-- needs (\S+) -->$", text, re.M):
        place = tmp_path / needed
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(ROOT / needed)
    for block in blocks(text):
        match block.verb:
            case "file":
                (tmp_path / block.rest).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / block.rest).write_text(block.body, encoding="utf-8")
            case "append":
                with (tmp_path / block.rest).open("a", encoding="utf-8") as file:
                    file.write("\n" + block.body)
            case "run" if long or not block.long:
                for command in commands(block):
                    run(command, tmp_path, document)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_no_command_is_left_unmarked(document: str) -> None:
    """A block of commands or Python is run, is a file, or says why it is neither."""
    text = (ROOT / document).read_text(encoding="utf-8")
    bare = [b.line for b in blocks(text) if not b.verb and (b.kind in ("console", "python") or "\n$ " in f"\n{b.body}")]
    assert bare == []


def test_the_comparison_can_fail() -> None:
    """An output is the one shown only if every line is there, in order, with nothing more except where ``...`` stands."""
    printed = "first\nsecond 12 s\nthird\n"
    assert agrees(("first", "second ... s", "third"), printed)
    assert agrees(("first", "...", "third"), printed)
    assert agrees(("...", "third", ""), printed)
    assert not agrees(("first", "third"), printed)
    assert not agrees(("first", "second ... s"), printed)
    assert not agrees(("second ... s", "third"), printed)
    assert not agrees(("first", "...", "fourth"), printed)
    assert not agrees(("first", "second ... min", "third"), printed)
    assert agrees(("first", "second 345 s", "third"), printed, loose=True)
    assert not agrees(("first", "second 345 s", "third"), printed)
    assert not agrees(("first", "second 345 min", "third"), printed, loose=True)


@pytest.mark.parametrize("document", [*DOCUMENTS, *sorted(ELSEWHERE), "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_links(document: str) -> None:
    """Every link within the repository leads to a file, not a folder, and to a heading where it names one."""
    home = (ROOT / document).parent
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", (ROOT / document).read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        file = home / path if path else ROOT / document
        if not file.is_file() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def anchors(file: Path) -> set[str]:
    """What the headings of a document are called in links."""
    headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", [*DOCUMENTS, *sorted(ELSEWHERE)])
def test_commands_named_in_the_text_exist(document: str) -> None:
    """A command in running text has a verb and options that the command line has."""
    text = re.sub(r"^```.*?^```", "", (ROOT / document).read_text(encoding="utf-8"), flags=re.M | re.S)
    unknown = []
    for line in re.findall(r"`streamproof ([a-z]+(?: [^`]*)?)`", text):
        verb, *words = line.split()
        command = cli.get_command(click.Context(cli), verb)
        bounds = bound_options(named(words[0]), ()) if verb == "sweep" and words else ()
        params = [*command.params, *bounds] if command else []
        options = {"--help"} | {option for p in params for option in (*p.opts, *getattr(p, "former", ()))}
        if "-p" in options and words and words[0] in bundled():
            spec = find(words[0]).spec
            names = (*spec.model.parameters(), *spec.inputs, *(spec.questions if verb == "check" else ()))
            options |= {f"--{name.replace('_', '-')}" for name in names}
        unknown += [line for word in words if word.startswith("-") and word != "-" and word not in options]
        unknown += [] if command else [line]
    assert unknown == []
