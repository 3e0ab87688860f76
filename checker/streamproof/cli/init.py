"""``streamproof init``: write a model with its specification, a test and a CI file, which run."""

from __future__ import annotations

import keyword
from pathlib import Path

import click

from streamproof.base.errors import Exit, UsageError
from streamproof.base.files import NEW, write_all
from streamproof.base.options import flag
from streamproof.base.records import dataclass
from streamproof.base.text import standard_output
from streamproof.cli.arguments import argument, verb

MODEL = '''\
"""Workers share a lock with leases: a lease may end while its holder still works."""

from streamproof import (
    WEAK, Array, Enum, Model, Range, Spec, State, action, eventually, invariant, require, temporal, terminal,
)


class CLASS(Model):
    """A worker takes the lock under the next number, works, and ends; writes under an older number are refused."""

    workers: int = 2
    sizes = {"small": {"workers": 2}, "large": {"workers": 4}}

    def state(self):
        return State(
            worker=Array(self.workers, Enum("WAITING", "WORKING", "DONE")),
            number=Array(self.workers, Range(0, self.workers)),  # of its lease, 0 before
            issued=Range(0, self.workers),
            written=Range(0, self.workers),  # the number of the last write
        )

    @action(w="workers", fairness=WEAK)
    def take(self, s, w):
        """The lock is free, or the lease of its holder has ended, which the holder need not know."""
        require(s.worker[w] == "WAITING")
        s.issued += 1
        s.number[w] = s.issued
        s.worker[w] = "WORKING"

    @action(w="workers", fairness=WEAK)
    def write(self, s, w):
        """A write under an older number is refused."""
        require(s.worker[w] == "WORKING")
        if s.number[w] >= s.written:
            s.written = s.number[w]
        s.worker[w] = "DONE"

    @terminal
    def all_done(self, s):
        """Every worker is done."""
        return all(worker == "DONE" for worker in s.worker)

    @invariant
    def newest_wins(self, s):
        """What is written is never replaced by a write under an older number."""
        return all(s.written >= s.number[w] for w in range(self.workers) if s.worker[w] == "DONE")

    @invariant
    def numbered(self, s):
        """Leases have the numbers 1, 2, and so on, each once."""
        pairs = [(w, v) for w in range(self.workers) for v in range(w)]
        given = all((s.number[w] > 0) == (s.worker[w] != "WAITING") for w in range(self.workers))
        once = all(s.number[w] == 0 or s.number[w] != s.number[v] for w, v in pairs)
        return given and once and s.issued == sum(worker != "WAITING" for worker in s.worker)

    @invariant
    def written_by_one(self, s):
        """What is written is the number of a worker that is done."""
        return s.written == 0 or any(
            s.written == s.number[w] and s.worker[w] == "DONE" for w in range(self.workers)
        )

    @temporal
    def ends(self, s):
        """Every worker ends."""
        return eventually(all(worker == "DONE" for worker in s.worker))


class Unfenced(CLASS, variant="unfenced"):
    """Every write is taken."""

    @action(w="workers", fairness=WEAK)
    def write(self, s, w):
        require(s.worker[w] == "WORKING")
        s.written = s.number[w]
        s.worker[w] = "DONE"


SPEC = Spec(model=CLASS, expected={"unfenced": {"newest_wins": "violated"}})
'''

TEST = '''\
"""The model holds, its variant is refuted, and its specification notices changes of the rules."""

import pytest
from NAME import SPEC
from streamproof import Verdict, check, mutate


def test_holds():
    assert check(SPEC).verdict is Verdict.HOLDS


@pytest.mark.parametrize("variant", SPEC.expected)
def test_variant_is_refuted(variant):
    found = check(SPEC, variant=variant)
    assert {f.property for f in found.findings if f.verdict is Verdict.VIOLATED} == set(SPEC.expected[variant])


def test_changes_of_the_rules_are_noticed():
    found = mutate(SPEC)
    assert found.score >= LEAST
'''

CI = """\
name: NAME
on: [push, pull_request]
env:
  STREAMPROOF: ""   # what pip installs: the address of the repository, a wheel or a folder of streamproof
jobs:
  model:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install pytest "${STREAMPROOF:?is empty, write into this file what pip installs}"
      - run: streamproof check NAME.py -q --timeout 600 --annotations --sarif results.sarif
      - run: python -m pytest test_NAME.py
      - run: streamproof mutate NAME.py -q --properties --least 95 --json mutate.json
      - if: github.event_name == 'pull_request'
        run: |
          streamproof diff NAME.py --base "origin/$GITHUB_BASE_REF" --format markdown >> "$GITHUB_STEP_SUMMARY" ||
            test $? -eq 163
"""


@dataclass(frozen=True, slots=True)
class InitArguments:
    """The arguments of the verb."""

    folder: Path = argument(type=click.Path(path_type=Path), default=Path(), required=False)
    name: str = flag("Name of the model and of its file.", default="lease", unit="NAME")


@verb("init", InitArguments, example="streamproof init my-protocol --name lease")
def command(given: InitArguments) -> int:
    """Write a first model with its specification, a test and a CI file into FOLDER, by default the working folder.

    Model and test run as they are: change them into yours. The CI file needs one value: what pip installs as streamproof.
    Existing files are never replaced.
    """
    name = given.name
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name):
        raise UsageError(f"--name {name}: not a name of a Python module", remedy="use letters, digits and underscores")
    title = "".join(part.capitalize() for part in name.split("_")) or "Model"
    if title in ("Model", "Spec", "State", "Array", "Enum", "Range", "Unfenced"):
        raise UsageError(f"--name {name}: the file uses {title} for something else", remedy="choose another name")
    texts = {f"{name}.py": MODEL, f"test_{name}.py": TEST, f".github/workflows/{name}.yml": CI}
    paths = {given.folder / path: text.replace("CLASS", title).replace("NAME", name) for path, text in texts.items()}
    for path in paths:
        if path.exists():
            raise UsageError(f"{path} exists", remedy="choose another --name, or another folder")
    write_all([(path, text.replace("LEAST", "0.95"), NEW) for path, text in paths.items()])
    for path in paths:
        print(path, file=standard_output())
    print(f"next: streamproof check {given.folder / name}.py", file=standard_output())
    return Exit.HOLDS
