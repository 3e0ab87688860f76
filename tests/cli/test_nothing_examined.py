"""No verb ends with 0 after it examined nothing, or says at least what it left out: one table for all verbs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from streamproof.explicit import level_search
from streamproof.pipeline import inputs as report_inputs
from streamproof.pipeline import reading as report_reading
from streamproof_models.partitions.machine import PartitionLifecycle

LEASE = """
from streamproof import Model, Range, State, action, invariant, require


class Lease(Model):
    n: int = 2
    check_deadlock = False

    def state(self):
        return State(x=Range(0, self.n))

    @action
    def up(self, s):
        require(s.x < self.n)
        s.x += 1

    @invariant
    def small(self, s):
        return s.x <= self.n


class Capped(Lease, variant="capped"):
    @invariant
    def zero(self, s):
        return s.x == 0
"""
FILES = {
    "lease.py": LEASE,
    "bare.py": LEASE.split("    @invariant")[0].replace("Lease", "Bare"),
    "jump.py": """
from lease import Lease
from streamproof import action, require


class Jump(Lease, variant="jump"):
    @action
    def up(self, s):
        require(s.x < self.n)
        s.x = self.n
""",
    "imports.py": "from lease import Lease\n",
    "stated.py": """
from lease import Lease
from streamproof import Spec, invariant


@invariant
def even(m, s):
    return s.x % 2 == 0


SPEC = Spec(Lease, properties=(even,), expected={None: {"even": "violated"}})
MORE = [SPEC]


class Other(Lease):
    pass
""",
    "temporal.py": """
from streamproof import WEAK, Model, Range, State, action, eventually, require, temporal


class Temporal(Model):
    check_deadlock = False

    def state(self):
        return State(x=Range(0, 2))

    @action(fairness=WEAK)
    def up(self, s):
        require(s.x < 2)
        s.x += 1

    @temporal
    def arrives(self, s):
        return eventually(s.x == 2)
""",
    "wide.py": LEASE.replace("n: int = 2", "n: int = 600").replace("Lease", "Wide"),
    "mixed.py": """
from streamproof import WEAK, Model, Range, State, action, eventually, invariant, require, temporal


class Mixed(Model):
    check_deadlock = False

    def state(self):
        return State(x=Range(0, 2), y=Range(0, 9))

    @action(fairness=WEAK)
    def up(self, s):
        require(s.x < 2)
        s.x += 1

    @invariant
    def small(self, s):
        return s.x < 3

    @temporal
    def arrives(self, s):
        return eventually(s.x == 2)
""",
    "empty.ndjson": "",
    "lease.ndjson": '{"trace": "t", "process": "p", "seq": 0, "event": "up", "args": {}}\n',
}

NO_PROPERTY = "bare has no property to check\n  mark one, as @invariant"
TABLE = [
    # check
    ("check bare.py", 2, f"{NO_PROPERTY}; or count its states with --explore-only"),
    ("check bare.py --agree", 2, NO_PROPERTY),
    ("check bare.py --engine bmc", 2, NO_PROPERTY),
    ("check bare.py --explore-only", 0, "explored: every reachable state; no property was checked"),
    ("check lease.py --explore-only", 0, "explored: every reachable state; no property was checked"),
    ("check bare.py --explore-only --max-states 1", 160, "inconclusive: not all states were searched (max_states)"),
    ("check bare.py --explore-only --depth 1", 160, "inconclusive: not all states were searched (max_depth)"),
    ("check lease.py --explore-only --property small", 2, "it has no --property"),
    ("check lease.py --explore-only --certificate c", 2, "it has no --certificate"),
    ("check lease.py --explore-only --engine bmc", 2, "it has no --engine bmc"),
    ("check lease.py --explore-only --por", 2, "it has no --por"),
    ("check lease.py --explore-only --symmetry", 2, "it has no --symmetry"),
    ("check lease.py --max-states 1", 160, "max_states is 1"),
    ("check lease.py --depth 0", 160, "inconclusive: small"),
    ("check lease.py --timeout 1e-9", 160, "nothing was decided"),
    ("check lease.py --engine bmc --depth 1", 160, "inconclusive: small"),
    ("check lease.py --property none", 2, "lease has no property 'none'"),
    ("check temporal.py --engine bmc", 2, "bmc supports none of the properties: arrives\n  leave out --engine bmc"),
    ("check wide.py --dot at.dot", 152, "at.dot is not written: 601 states are more than the 500"),
    ("check imports.py", 2, "imports.py defines no model\n  name one that it imports: imports.py:Lease"),
    ("check jump.py --variant none", 2, "lease has no variant 'none'"),
    ("check lease.py --max-states 1 --certificate c", 160, "no certificate was written"),
    # prove
    ("prove bare.py", 2, "no invariant, step property or deadlock to prove\n  mark one, as @invariant"),
    ("prove temporal.py", 2, "streamproof check decides the others: arrives"),
    ("prove mixed.py", 0, "not selected: arrives; choose them with --property, or use streamproof check"),
    ("prove lease.py --timeout 1e-9", 160, "nothing was decided"),
    # simulate
    ("simulate bare.py", 2, "no property that a walk can decide\n  mark one, as @invariant"),
    ("simulate temporal.py", 2, "streamproof check decides the others: arrives"),
    ("simulate mixed.py --walks 2", 160, "not supported by this engine: arrives; use streamproof check"),
    ("simulate lease.py --walks 2", 160, "not violated in 2 walks; only check or prove can show that it holds"),
    # sweep
    ("sweep bare.py -p n=1,2", 2, NO_PROPERTY),
    ("sweep lease.py -p n=1", 2, "no parameter varies"),
    ("sweep lease.py -p n=1,2 --max-states 1", 160, "0 of 2 points decided"),
    (
        "sweep lease.py -p n=1,2 --variants all --property zero",
        0,
        "2 points without any of the properties\n2 of 2 points",
    ),
    # compare
    ("compare lease.py", 2, "lease has no designs to compare"),
    # export
    ("export temporal.py --format promela --out p", 0, "arrives"),
    # replay
    ("replay empty.ndjson", 2, "empty.ndjson"),
    # validate
    ("validate empty.ndjson", 2, "the file is empty"),
    ("validate empty.ndjson --model lease.py", 2, "the file has no events"),
    ("validate logs", 2, "no log was found"),
    ("validate lease.ndjson --model lease.py --dot at.dot", 0, "at.dot has no states: no event was rejected"),
    # verify-certificate
    ("verify-certificate empty.ndjson", 161, "the certificate is rejected"),
    # report
    ("report empty.ndjson --out r", 2, "nothing to report on"),
    ("report logs --out r", 2, "no file in this folder"),
    # bugbench
    ("bugbench FLINK-0", 2, "FLINK-0"),
]


@pytest.fixture
def files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the models and logs."""
    monkeypatch.delitem(sys.modules, "lease", raising=False)  # another test's, with its variants
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "logs").mkdir()
    return folder


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("words", "code", "sentence"), TABLE, ids=[row[0] for row in TABLE])
def test_what_was_not_examined_is_said(streamproof: Any, words: str, code: int, sentence: str) -> None:
    """The exit code and the sentence of each verb that examined nothing, or less than was asked."""
    done = streamproof(*words.split())
    assert done.code == code, done
    assert sentence in " ".join((done.out + done.err).split("\n      ")), done


@pytest.mark.usefixtures("files")
def test_a_search_without_properties_has_no_verdict(streamproof: Any) -> None:
    """The JSON says so; an evaluation error is found all the same."""
    streamproof("check", "lease.py", "--explore-only", "-q", "--json", "a.json")
    found = json.loads(Path("a.json").read_text())
    assert (found["verdict"], found["exit_code"], found["properties"], found["states"]["distinct"]) == (
        "explored",
        0,
        [],
        3,
    )
    assert found["reproduce"] == "streamproof check lease.py --explore-only"
    assert streamproof("check", "two.py:Overflows", "--explore-only", "-q").code == 75


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("check jump.py --variant jump", 0, "true in all 2 reachable states"),
        ("check jump.py --variant jump --n 7", 0, "n=7"),
        ("check jump.py:Lease --n 7", 0, "true in all 8 reachable states"),
        ("check stated.py:Lease", 12, "even      invariant  violated  violated"),
        ("check stated.py:Other", 12, "even"),
        ("sweep jump.py --variants all -p n=1,2", 0, "6 of 6 points decided"),
        ("simulate jump.py --variant jump --n 7 --walks 2", 160, "n=7"),
    ],
)
def test_variants_and_specifications_in_a_second_file(streamproof: Any, words: str, code: int, sentence: str) -> None:
    """A variant of a model of another file is found, the file runs once, a class has the properties of its specification."""
    done = streamproof(*words.split())
    assert (done.code, sentence in done.out) == (code, True), done


BUNDLED = '''
from streamproof import action, require
from streamproof_models.partitions.machine import PartitionLifecycle


class WhenRead(PartitionLifecycle, variant="deleted-when-read"):
    """A partition is deleted with its first read."""

    @action(p="partitions", c="consumers", a="attempts")
    def consume(self, s, p, c, a):
        """Deleted when read."""
        super().consume(s, p, c, a)
        s.copy[p, a] = "DELETED"


class Own(PartitionLifecycle):
    """The same as a model of its own."""

    @action(p="partitions", c="consumers", a="attempts")
    def consume(self, s, p, c, a):
        """Deleted when read."""
        super().consume(s, p, c, a)
        s.copy[p, a] = "DELETED"
'''


def test_models_that_extend_a_bundled_one_have_its_properties(
    streamproof: Any, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a variant of the imported class, and as a subclass: all properties are checked, none is expected to hold. The class
    itself has the expected verdicts, too."""
    monkeypatch.setattr(PartitionLifecycle, "variants", dict(PartitionLifecycle.variants))
    (files / "read.py").write_text(BUNDLED, encoding="utf-8")
    expected: str | None
    for words, code, expected in (
        (("read.py:Own",), 12, None),
        (("read.py:PartitionLifecycle", "--variant", "deleted-when-read"), 12, None),
        (("read.py:PartitionLifecycle", "--property", "kept_while_needed"), 0, "holds"),
    ):
        monkeypatch.setattr(PartitionLifecycle, "variants", dict(PartitionLifecycle.variants))
        PartitionLifecycle.variants.pop("deleted-when-read", None)
        done = streamproof("check", *words, "-q", "--failures", "1", "--json", "a.json")
        found = {p["name"]: (p["verdict"], p["expected"]) for p in json.loads(Path("a.json").read_text())["properties"]}
        assert done.code == code, done
        assert found["kept_while_needed"] == ("holds" if expected else "violated", expected)
        assert len(found) == (1 if expected else 7)


@pytest.mark.usefixtures("files")
def test_a_property_of_a_variant_is_no_open_point_of_the_model(streamproof: Any) -> None:
    """Every point is decided; the word for the property that the model does not have is neither refused nor open."""
    done = streamproof("sweep", "lease.py", "-p", "n=1,2", "--variants", "all", "--json", "s.json")
    assert "4 of 4 points decided" in done.out
    points = json.loads(Path("s.json").read_text())["points"]
    found = {(p["variant"], p["parameters"]["n"]): p["verdicts"]["zero"]["verdict"] for p in points}
    assert found == {(v, n): "violated" if v else "absent" for v in (None, "capped") for n in (1, 2)}


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("name", ["big.json", "."])
def test_a_document_too_large_for_a_report_is_refused_at_once(
    streamproof: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, compressed: bool
) -> None:
    """Named or in a folder, packed or not; before Spark starts, with the remedy."""
    import gzip

    for module in (report_inputs, report_reading):
        monkeypatch.setattr(module, "DOCUMENT", 1 << 10)
    text = json.dumps({"schema": "streamproof.validate/1", "verdicts": [{"run": "r" * 2000}]}).encode()
    (folder / "big.json").write_bytes(gzip.compress(text) if compressed else text)
    done = streamproof("report", name, "--out", "page")
    assert (
        done.code,
        "big.json: a document of verdicts has at most 1024B\n  give its verdicts line by line" in done.err,
    ) == (
        2,
        True,
    ), done


HUGE = """
from streamproof import Model, Range, State, action, invariant


class Huge(Model):
    def state(self):
        return State(n=Range(0, 1 << 63), m=Range(0, 99))

    @action(x=range(100))
    def go(self, s, x):
        s.m = x

    @invariant
    def low(self, s):
        return s.n * 2 < 1 << 64
"""


def test_advice_names_options_that_the_verb_has_and_the_user_gave(
    streamproof: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine's remedies depend on the verb: export has no option for memory. What is to be left out was given."""
    (folder / "huge.py").write_text(HUGE)
    done = streamproof("check", "huge.py", "--tier", "compiled")
    assert done.code == 152
    assert "  leave out --tier: generated Python supports integers of any size\n" in done.err
    monkeypatch.setattr(level_search, "memory_of_machine", lambda: 1)
    check, export = streamproof("check", "huge.py"), streamproof("export", "huge.py", "--format", "itf", "--out", "o")
    reached, more = " reached; ", "raise --memory, continue on disk with --spill DIR, "
    rest = "choose smaller parameters, or try to prove it with the symbolic engine"
    assert f"{reached}{more}{rest}" in " ".join(check.out.split())
    assert f"{reached}{rest})" in export.err
