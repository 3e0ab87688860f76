"""JUnit XML, SARIF and workflow commands beside the results of `check`, `prove` and `validate`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit
from xml.etree import ElementTree

import pytest

from streamproof.conformance import Event, write_ndjson
from streamproof.report.ci_formats import cases, junit, sarif, workflow_commands

ALL = ("--junit", "j.xml", "--sarif", "s.json", "--annotations")


def endings(file: Path) -> dict[str, str]:
    """How each case of a JUnit file ended, after its counts have been compared."""
    suite = ElementTree.parse(file).getroot()[0]
    found = {case.attrib["name"]: case[0].tag if len(case) else "passed" for case in suite}
    for kind, count in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.attrib[kind]) == sum(ending == count for ending in found.values())
    assert int(suite.attrib["tests"]) == len(found)
    return found


SARIF: dict[str, tuple[set[str], set[str]]] = {
    "log": ({"version", "runs"}, {"$schema"}),
    "run": ({"tool"}, {"results"}),
    "tool": ({"driver"}, set()),
    "driver": ({"name"}, {"version", "rules"}),
    "rule": ({"id"}, set()),
    "result": ({"message"}, {"ruleId", "level", "locations"}),
    "message": ({"text"}, set()),
    "location": ({"physicalLocation"}, set()),
    "physicalLocation": ({"artifactLocation"}, {"region"}),
    "artifactLocation": ({"uri"}, set()),
    "region": ({"startLine"}, set()),
}
"""The properties that the schema of SARIF 2.1.0 requires of each kind of object (of a message and of a location one is
required among several), and the others used here; it allows no properties but its own."""
URI = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})+")
"""Characters of a reference to a URI (RFC 3986), without a fragment."""


def assert_sarif(document: Any) -> None:
    """The document has the required properties, with values of the right kind, and no unknown ones."""
    kinds = {"runs": "run", "rules": "rule", "results": "result", "locations": "location"}

    def check(value: Any, kind: str) -> None:
        required, optional = SARIF[kind]
        assert required <= value.keys() <= required | optional, (kind, value)
        for name, inner in value.items():
            if isinstance(inner, dict):
                check(inner, name)
            elif isinstance(inner, list):
                assert kinds[name]
                for item in inner:
                    check(item, kinds[name])
            elif name == "startLine":
                assert type(inner) is int
                assert inner >= 1
            else:
                assert isinstance(inner, str), (kind, name)

    check(document, "log")
    assert document["version"] == "2.1.0"
    for run in document["runs"]:
        ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        assert len(ids) == len(set(ids))
        for result in run["results"]:
            assert result["level"] in {"none", "note", "warning", "error"}
            for location in result.get("locations", ()):
                assert URI.fullmatch(location["physicalLocation"]["artifactLocation"]["uri"])


def results(file: Path) -> list[dict[str, Any]]:
    """The results of a SARIF file."""
    document = json.loads(file.read_text())
    assert_sarif(document)
    (run,) = document["runs"]
    assert {r["ruleId"] for r in run["results"]} <= {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    return list(run["results"])


def test_what_is_violated_fails_at_its_place(streamproof: Any, folder: Path) -> None:
    """The property's line is marked; what holds passes and is no result."""
    done = streamproof("check", "counter.py", "-q", *ALL)
    assert done.code == 12
    assert endings(folder / "j.xml") == {"low": "failure", "grows": "passed", "full": "passed"}
    (result,) = results(folder / "s.json")
    line = (folder / "counter.py").read_text().splitlines().index("    @invariant") + 1
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "counter.py"}, "region": {"startLine": line + 1}}
    assert f"::error file=counter.py,line={line + 1},title=counter low::false after 3 steps" in done.out


RESERVED = """
from streamproof import Model, Range, State, action, constraint, invariant, require


class Reserved(Model):
    check_deadlock = False

    def state(self):
        return State(n=Range(0, 9))

    @action
    def up(self, s):
        require(s.n < 9)
        s.n += 1

    @invariant
    def implied(self, s):
        return not s.n > 9 - 2 or s.n == 8


class Limited(Reserved):
    @constraint
    def small(self, s):
        return s.n < 3
"""


@pytest.mark.parametrize("verb", ["check", "prove"])
def test_a_reservation_is_a_warning_of_what_passes(streamproof: Any, folder: Path, verb: str) -> None:
    """A property that holds vacuously, and within a constraint only, is not as green as another."""
    (folder / "reserved.py").write_text(RESERVED, encoding="utf-8")
    done = streamproof(verb, "reserved.py:Limited", "-q", *ALL)
    assert (done.code, endings(folder / "j.xml")) == (0, {"implied": "system-out"})
    (result,) = results(folder / "s.json")
    assert result["level"] == "warning"
    assert "vacuous: its antecedent is false" in result["message"]["text"]
    assert "states outside the constraint small are not followed" in result["message"]["text"]
    assert "::warning file=reserved.py" in done.out


def test_what_is_open_is_skipped(streamproof: Any, folder: Path) -> None:
    """A search that ends early is a warning, no failure."""
    done = streamproof("check", "counter.py", "-q", "--max-states", "2", "--property", "low", *ALL)
    assert done.code == 160
    assert endings(folder / "j.xml") == {"low": "skipped"}
    assert [r["level"] for r in results(folder / "s.json")] == ["warning"]
    assert "::warning file=counter.py" in done.out


def test_a_mistake_of_the_model_is_a_case(streamproof: Any, folder: Path) -> None:
    """With the place of the rule."""
    assert streamproof("check", "two.py:Overflows", "-q", *ALL).code == 75
    assert endings(folder / "j.xml") == {"deadlock": "error", "error": "error"}
    places = [r["locations"][0]["physicalLocation"]["region"] for r in results(folder / "s.json") if "locations" in r]
    assert places == [{"startLine": (folder / "two.py").read_text().splitlines().index("        s.n += 1") + 1}]


def test_proofs_and_recorded_runs(streamproof: Any, folder: Path) -> None:
    """The same options of `prove` and `validate`; a rejected line is marked in the log."""
    assert streamproof("prove", "counter.py", "--property", "grows", "-q", *ALL).code == 0
    assert endings(folder / "j.xml") == {"grows": "passed"}
    assert results(folder / "s.json") == []
    write_ndjson([Event("run", "p", n, "increment") for n in range(5)], folder / "log.ndjson")
    assert streamproof("validate", "log.ndjson", "--model", "counter.py", *ALL).code == 161
    (name,) = endings(folder / "j.xml")
    assert name.endswith(" run")
    (result,) = results(folder / "s.json")
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "log.ndjson"}, "region": {"startLine": 4}}


@pytest.mark.parametrize("name", ["a b#c.log", "100%.log", "é?.log", "x:y.log", "\x1b[2J.log"])
def test_files_of_sarif_are_uris(name: str, tmp_path: Path) -> None:
    """Relative to the working folder or absolute, whatever their names."""
    for file in (name, str(tmp_path / name)):
        place = {"file": file, "line": 3}
        record = {"verdict": "rejected", "model": "m", "run": "r", "trace": "", "reason": "no", "rejection": place}
        document = json.loads(sarif("1", list(cases({"verdicts": [record]}, {}))))
        assert_sarif(document)
        uri = document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert unquote(urlsplit(urljoin("file:///here/", uri)).path) == (file if file[0] == "/" else f"/here/{file}")


def test_foreign_files_are_kept(streamproof: Any, folder: Path) -> None:
    """Refused before the search; a file of its own is replaced."""
    for option, name in (("--junit", "a.xml"), ("--sarif", "a.json")):
        (folder / name).write_text('<!-- mine -->{"version": "2.1.0"}')
        done = streamproof("check", "counter.py", option, name)
        assert (done.code, "was not written by streamproof" in done.err, done.out) == (153, True, "")
        assert "mine" in (folder / name).read_text()
    assert (
        streamproof("check", "counter.py", "-q", *ALL).code == streamproof("check", "counter.py", "-q", *ALL).code == 12
    )
    assert streamproof("check", "reference.die_hard", "--agree", "--junit", "j.xml").code == 2


def test_findings_of_an_accepted_run() -> None:
    """The case passes, with its findings as output; the other formats warn."""
    record = {
        "verdict": "accepted",
        "model": "m",
        "run": "r",
        "trace": "t",
        "reason": "hang: a waits",
        "rejection": None,
    }
    found = [{"kind": "hang", "message": "a waits"}]
    given = list(cases({"verdicts": [{**record, "findings": found}, {**record, "findings": []}]}, {}))
    suite = ElementTree.fromstring(junit("streamproof validate", given).partition("?>")[2])[0]
    assert [[(inner.tag, inner.text) for inner in case] for case in suite] == [[("system-out", "hang: a waits")], []]
    assert (suite.attrib["failures"], suite.attrib["skipped"]) == ("0", "0")
    (result,) = json.loads(sarif("1", given))["runs"][0]["results"]
    assert (result["level"], result["message"]["text"]) == ("warning", "r t: hang: a waits")
    assert list(workflow_commands(given)) == ["::warning title=m r t::hang: a waits"]


def test_texts_are_data() -> None:
    """Neither markup, control characters nor workflow commands of a log take effect."""
    text = "a<b/>\x1b[2J]]>&\x00\n::set-env name=X::1"
    rejection = {"file": "x,line=1::y.log", "line": 7}
    record = {"verdict": "rejected", "model": "m", "run": text, "trace": "t:,", "reason": text, "rejection": rejection}
    given = list(cases({"verdicts": [record]}, {}))
    root = ElementTree.fromstring(junit("streamproof validate", given).partition("?>")[2])
    assert [child.tag for child in root.iter()] == ["testsuites", "testsuite", "testcase", "failure"]
    assert_sarif(json.loads(sarif("1", given)))
    assert "\x1b" not in json.loads(sarif("1", given))["runs"][0]["results"][0]["message"]["text"]
    (command,) = workflow_commands(given)
    assert command.startswith("::error file=x%2Cline=1%3A%3Ay.log,line=7,title=m a<b/>")
    assert not {"\n", "\x1b", "\x00"} & {*command}
