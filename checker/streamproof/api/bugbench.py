"""Known defects before and after their fix: one TOML file each, in a folder or a package registered under `GROUP`.

A file names a model, a property, the variant that violates it (``[buggy]``, with the steps of the shortest counterexample)
and the variant or model for which it holds (``[fixed]``, with the number of reachable states at the stated parameters).
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Collection, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from streamproof import entries
from streamproof.base.errors import InputError, SystemFailure, UsageError
from streamproof.base.options import SearchOptions
from streamproof.base.reading import expect_file, read_text
from streamproof.base.records import dataclass
from streamproof.engines.registry import CHECKS
from streamproof.model_registry import unknown
from streamproof.selection import Selection, select
from streamproof.system.model import parameter_json
from streamproof.system.verdict import Finding, Verdict

GROUP = "streamproof.bugbenches"
"""The entry-point group in which packages register folders of defects: each entry is a package."""
TEXTS = ("ticket", "title", "story", "source", "model", "property")
SIDES = {"buggy": "steps", "fixed": "states"}
"""The two tables of a file, each with its expected number."""
LARGEST = 100_000
"""Largest size of a file, in bytes."""


@dataclass(frozen=True, slots=True)
class Side:
    """A model before or after the fix: the selected system and property, and the expected number of steps or states."""

    selection: Selection
    expected: int


@dataclass(frozen=True, slots=True)
class Defect:
    """One defect of a table. `source` is where it is documented; `story` says how it fails, and what the fix changed."""

    ticket: str
    title: str
    story: str
    source: str
    model: str
    property: str
    buggy: Side
    fixed: Side


def folders() -> Iterator[Path]:
    """The registered folders of defects, by the names of their entries."""
    for name, entry in entries.every(GROUP).items():
        found = find_spec(entry.value)
        if found is None or not found.submodule_search_locations:
            raise SystemFailure(f"{entry.value}, registered as {name}, is not a package", remedy="install it again")
        yield Path(next(iter(found.submodule_search_locations)))


def defects(folder: Path | None, tickets: tuple[str, ...] = ()) -> list[Defect]:
    """The defects of a folder, or of all registered ones, by ticket number; only `tickets`, if there are any.

    Raises `InputError` for a file of a wrong form, and `UsageError` for an unknown ticket.
    """
    paths: dict[str, Path] = {}
    for place in folders() if folder is None else [folder]:
        if not place.is_dir():
            why = "is a file" if place.exists() else "does not exist"
            raise InputError(f"the folder {place} {why}", remedy="name a folder with one TOML file per defect")
        for path in sorted(place.glob("*.toml")):
            paths[path.stem.upper()] = path
    if not paths:
        raise InputError(f"no defects in {folder}", remedy="name a folder with one TOML file per defect")
    for ticket in tickets:
        if ticket.upper() not in paths:
            raise unknown("no defect", ticket, sorted(paths, key=_number), "the defects")
    wanted = {ticket.upper() for ticket in tickets} or paths.keys()
    return [_read(paths[ticket]) for ticket in sorted(wanted, key=_number)]


def _number(ticket: str) -> tuple[str, int]:
    name, _, number = ticket.rpartition("-")
    return name, int(number) if number.isdecimal() else 0


def _read(path: Path) -> Defect:
    expect_file(str(path), "name a folder with one TOML file per defect")
    try:
        data = tomllib.loads(read_text(path, LARGEST))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: {error}", remedy="write the file as docs/bugbench.md describes") from error
    _expect_keys(path, "", data, {*TEXTS, *SIDES})
    for name in TEXTS:
        if not isinstance(data[name], str) or not data[name]:
            raise _bad(path, f"{name} is not a text")
    if data["ticket"].upper() != path.stem.upper():
        raise _bad(path, f"its ticket is {data['ticket']}, unlike its name")
    return Defect(*(data[name] for name in TEXTS), *(_side(path, data, name) for name in SIDES))


def _side(path: Path, data: Mapping[str, Any], name: str) -> Side:
    side, number = data[name], SIDES[name]
    if not isinstance(side, dict):
        raise _bad(path, f"[{name}] is not a table")
    _expect_keys(path, f"[{name}] ", side, {number}, {"variant", "parameters"})
    parameters, expected, variant = side.get("parameters", {}), side[number], side.get("variant")
    if type(expected) is not int or expected < 0:
        raise _bad(path, f"[{name}] {number} is not a number of {number}")
    if not isinstance(parameters, dict) or not isinstance(variant, str | None):
        raise _bad(path, f"[{name}] parameters is not a table, or variant is not a text")
    try:
        given = [f"{key}={value}" for key, value in parameters.items()]
        chosen = select(data["model"], variant, None, given, [data["property"]])
    except UsageError as error:
        raise InputError(f"{path}: [{name}] {error.message}", remedy=error.remedy) from error
    return Side(chosen, expected)


def _expect_keys(
    path: Path, where: str, data: Mapping[str, Any], needed: Collection[str], more: Collection[str] = ()
) -> None:
    for name in sorted(set(needed) - data.keys()):
        raise _bad(path, f"{where}{name} is missing")
    for name in sorted(data.keys() - {*needed, *more}):
        raise _bad(path, f"{where}{name} is unknown")


def _bad(path: Path, why: str) -> InputError:
    return InputError(f"{path}: {why}", remedy="write the file as docs/bugbench.md describes")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The finding for one side of a defect. `states`: reachable states. `seconds`: with reading the model."""

    finding: Finding
    states: int
    seconds: float

    @property
    def steps(self) -> int | None:
        """The length of the counterexample."""
        return None if self.finding.trace is None else len(self.finding.trace.steps)


def decided(side: Side) -> Outcome:
    """The finding for a side, by exhaustive search. Raises `KeyboardInterrupt`, and as the engine."""
    begun = time.perf_counter()
    found = CHECKS["explicit"].run(side.selection.system(), SearchOptions(side.selection.properties))
    if found.interrupted:
        raise KeyboardInterrupt
    states = 0 if found.counts is None else found.counts.distinct
    return Outcome(found.findings[0], states, time.perf_counter() - begun)


@dataclass(frozen=True, slots=True)
class Row:
    """One defect with its two outcomes."""

    defect: Defect
    buggy: Outcome
    fixed: Outcome

    @property
    def problems(self) -> tuple[str, ...]:
        """The differences from the file of the defect."""
        buggy, fixed = self.defect.buggy.expected, self.defect.fixed.expected
        differences = (
            ("before the fix: verdict", self.buggy.finding.text(), Verdict.VIOLATED.value),
            ("before the fix: steps", self.buggy.steps, buggy),
            ("after the fix: verdict", self.fixed.finding.text(), Verdict.HOLDS.value),
            ("after the fix: states", self.fixed.states, fixed),
        )
        return tuple(f"{what} {found}, expected {wanted}" for what, found, wanted in differences if found != wanted)

    def document(self) -> dict[str, Any]:
        """The JSON of the row."""
        defect = self.defect
        return {
            "ticket": defect.ticket,
            "title": defect.title,
            "model": defect.model,
            "property": defect.property,
            "buggy": {**_document(defect.buggy, self.buggy), "steps": self.buggy.steps},
            "fixed": {**_document(defect.fixed, self.fixed), "covered": self.fixed.finding.because},
            "problems": list(self.problems),
        }


def _document(side: Side, outcome: Outcome) -> dict[str, Any]:
    return {
        "variant": side.selection.variant,
        "parameters": {name: parameter_json(value) for name, value in side.selection.parameters.items()},
        "verdict": outcome.finding.text(),
        "states": outcome.states,
        "seconds": round(outcome.seconds, 3),
        "command": side.selection.command("check"),
    }
