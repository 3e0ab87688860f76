"""Results in formats of continuous integration: JUnit XML, SARIF 2.1.0 and workflow commands of GitHub.

They are made from the JSON of `check`, `prove` and `validate`. A case is a property, or a job or channel of a recorded run.
It passes if it holds or is accepted, is skipped if it is inconclusive, and fails otherwise, like the exit code. A finding
of an accepted run, or the reservation of a verdict, is output of its test case, and a warning in the other formats.
Sources: https://github.com/testmoapp/junitxml and
https://docs.oasis-open.org/sarif/sarif/v2.1.0/.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import quote
from xml.etree import ElementTree

from streamproof.base.errors import Loc
from streamproof.base.files import GENERATOR
from streamproof.base.records import dataclass
from streamproof.base.text import visible

Ending: TypeAlias = Literal["passed", "failure", "error", "skipped"]

_ENDINGS: Mapping[str, Ending] = {
    **dict.fromkeys(("holds", "accepted"), "passed"),
    **dict.fromkeys(("violated", "rejected"), "failure"),
    "inconclusive": "skipped",
}
_LEVELS: Mapping[Ending, str] = {"failure": "error", "error": "error", "skipped": "warning", "passed": "warning"}


@dataclass(frozen=True, slots=True)
class TestCase:
    """A property, a job or a channel. `rule` is what it is judged by, `text` why it did not pass, or its findings."""

    suite: str
    name: str
    rule: str
    ending: Ending
    text: str = ""
    place: Loc | None = None


def cases(document: Mapping[str, Any], places: Mapping[str, Loc | None]) -> Iterator[TestCase]:
    """The cases of a JSON result; `places` has the properties' places in the source.

    An error that belongs to no property is a case of its own.
    """
    if "verdicts" in document:
        yield from map(_judged, document["verdicts"])
        return
    suite = ".".join(filter(None, (document["model"], document["variant"])))
    for prop in document["properties"]:
        ending = _ENDINGS.get(prop["verdict"], "error")
        text = prop["because"] or prop["verdict"]
        if (prop["trace"] or {}).get("file"):
            text += f" ({prop['trace']['file']})"
        rule = f"{document['model']}/{prop['name']}"
        if ending == "passed" and prop["within"] is None and not prop["vacuous"]:
            text = ""
        yield TestCase(suite, prop["name"], rule, ending, text, places.get(prop["name"]))
    error = document.get("error")
    if error is not None:
        place = Loc(error["file"], error["line"]) if error.get("file") and error.get("line") else None
        text = "\n".join(filter(None, (error["message"], error.get("remedy"))))
        yield TestCase(suite, "error", f"{document['model']}/error", "error", text, place)


def _judged(record: Mapping[str, Any]) -> TestCase:
    ending, rejection = _ENDINGS.get(record["verdict"], "error"), record["rejection"] or {}
    place = Loc(rejection["file"], rejection["line"]) if rejection.get("file") and rejection.get("line") else None
    findings = [f"{finding['kind']}: {finding['message']}" for finding in record.get("findings") or ()]
    text = "\n".join(findings) if ending == "passed" else record["reason"] or record["verdict"]
    name = f"{record['run']} {record['trace']}"
    return TestCase(record["model"], name, record["model"], ending, text, place)


def junit(title: str, given: Sequence[TestCase]) -> str:
    """JUnit XML: one test suite."""
    counts = {kind: sum(c.ending == kind for c in given) for kind in ("failure", "error", "skipped")}
    attributes = {"name": title, "tests": str(len(given))}
    attributes |= {
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
    }
    suites = ElementTree.Element("testsuites", attributes)
    suite = ElementTree.SubElement(suites, "testsuite", attributes)
    for case in given:
        own = {"classname": visible(case.suite), "name": visible(case.name)}
        if case.place is not None:
            own |= {"file": visible(_path(case.place)), "line": str(case.place.line)}
        element = ElementTree.SubElement(suite, "testcase", own)
        text = "\n".join(map(visible, case.text.splitlines()))
        if case.ending == "passed" and text:
            ElementTree.SubElement(element, "system-out").text = text
        elif case.ending != "passed":
            inner = ElementTree.SubElement(element, case.ending, {"message": text.partition("\n")[0]})
            inner.text = text if case.place is None else f"{visible(str(case.place))}: {text}"
    ElementTree.indent(suites)
    body = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n<!-- {GENERATOR} -->\n{body}\n'


def sarif(version: str, given: Sequence[TestCase]) -> str:
    """SARIF: a result for each case that did not pass or has findings. One without a place in a file has none."""
    results = []
    for case in filter(_is_result, given):
        message = visible(f"{case.name}: {case.text.partition(chr(10))[0]}")
        result: dict[str, Any] = {"ruleId": case.rule, "level": _LEVELS[case.ending], "message": {"text": message}}
        if case.place is not None:
            where = {
                "artifactLocation": {"uri": _uri(_path(case.place))},
                "region": {"startLine": case.place.line},
            }
            result["locations"] = [{"physicalLocation": where}]
        results.append(result)
    driver = {"name": "streamproof", "version": version, "rules": [{"id": r} for r in sorted({c.rule for c in given})]}
    return json.dumps(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{"tool": {"driver": driver}, "results": results}],
        },
        indent=2,
    )


def workflow_commands(given: Sequence[TestCase]) -> Iterator[str]:
    """Lines with which a step of a GitHub workflow marks the files; values are escaped as the runner expects."""
    for case in filter(_is_result, given):
        kind = _LEVELS[case.ending]
        place = "" if case.place is None else f"file={_property(_path(case.place))},line={case.place.line},"
        yield f"::{kind} {place}title={_property(f'{case.suite} {case.name}')}::{_data(case.text)}"


def _is_result(case: TestCase) -> bool:
    return case.ending != "passed" or bool(case.text)


def _uri(path: str) -> str:
    """The file as a URI, relative or absolute."""
    return quote(os.fsencode(Path(path).as_posix())) if not Path(path).is_absolute() else Path(path).as_uri()


def _path(place: Loc) -> str:
    """The file relative to the working folder, if it is inside."""
    try:
        return str(Path(os.path.relpath(place.file)) if Path(place.file).is_relative_to(Path.cwd()) else place.file)
    except (OSError, ValueError):
        return place.file


def _data(text: str) -> str:
    return "%0A".join(visible(line).replace("%", "%25") for line in text.splitlines())


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
