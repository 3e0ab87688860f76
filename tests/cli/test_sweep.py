"""`streamproof sweep`: the same answers as `check` at every point, kept across runs, drawn, and generalised."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from shares import share

CREDIT = ("credit", "-p", "channels=1..2", "-p", "depth=1", "-p", "floating=0..2", "-p", "exclusive=0..1")
"""Twelve points that take a few seconds."""
BURST = '''
from streamproof import Model, Range, Spec, State, Sweep, action, invariant, require


class Burst(Model):
    """Grows by steps, and leaves its range where a step is too long."""

    size: int = 4
    step: int = 1
    strict: bool = True
    mode: str = "plain"
    limits = {"step": (1, 3)}
    check_deadlock = False

    def setup(self):
        if self.mode not in ("plain", "double"):
            raise ValueError("mode is plain or double")

    def state(self):
        return State(n=Range(0, self.size))

    @action
    def grow(self, s):
        """Checks for room if it is strict."""
        require(not self.strict or s.n + self.step <= self.size)
        require(s.n < self.size)
        s.n += self.step * (2 if self.mode == "double" else 1)

    @invariant
    def even(self, s):
        """Never odd."""
        return s.n % 2 == 0


class Wide(Burst, variant="wide"):
    """Steps of any length."""

    limits = {"step": (1, None)}


SPEC = Spec(Burst, sweeps=Sweep(axes={"step": range(1, 4), "size": (4, 5)}, instead={"wide": {"step": 4}}))
'''


@pytest.fixture
def burst(folder: Path) -> Path:
    """A file with a model that has axes of its own, limits, words, and mistakes at some points."""
    (folder / "burst.py").write_text(BURST, encoding="utf-8")
    return folder / "burst.py"


def answer(streamproof: Any, *words: str, code: int = 0) -> dict[str, Any]:
    """The JSON of a sweep in this process."""
    done = streamproof("sweep", *words, "--jobs", "1", "--json", "-", "-q")
    assert done.code == code, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def verdicts(document: dict[str, Any]) -> dict[tuple[Any, ...], dict[str, str]]:
    """Verdicts by property, by variant and values of the axes."""
    return {
        (point["variant"], *(point["parameters"][name] for name in document["axes"])): {
            name: found["verdict"] for name, found in point["verdicts"].items()
        }
        for point in document["points"]
    }


def formula_of(document: dict[str, Any], name: str, variant: str | None = None) -> str | None:
    """The formula of where a property holds."""
    (found,) = (p for p in document["properties"] if (p["name"], p["variant"]) == (name, variant))
    text: str | None = found["formula"]
    return text


def says(formula: str, parameters: dict[str, Any]) -> bool:
    """What a formula says of parameters, read as Python with words in quotes."""
    text = re.sub(r"([!=]=) ([\w-]+)", r"\1 '\2'", formula)
    return bool(eval(text, {}, {k: str(v).lower() if isinstance(v, bool) else v for k, v in parameters.items()}))


def test_credit_is_mapped_as_check_decides_it(streamproof: Any) -> None:
    """Each point has the verdicts and the states of `check`; without exclusive buffers it is the variant that has none."""
    document = answer(streamproof, *CREDIT)
    assert len(document["points"]) == 12
    for point in document["points"]:
        parameters = point["parameters"]
        variant = ["--variant", "zero-exclusive"] if parameters["exclusive"] == 0 else []
        assert point["checked_as"] == ("zero-exclusive" if variant else None)
        words = [word for name, value in parameters.items() for word in ("-p", f"{name}={value}")]
        checked = json.loads(streamproof("check", "credit", *variant, *words, "-q", "--json", "-").out)
        assert point["states"] == checked["states"]["distinct"]
        assert {name: found["verdict"] for name, found in point["verdicts"].items()} == {
            p["name"]: p["verdict"] for p in checked["properties"]
        }
        assert {name: found["length"] for name, found in point["verdicts"].items()} == {
            p["name"]: p["trace"] and p["trace"]["length"] for p in checked["properties"]
        }


def test_the_formulas_agree_with_every_point_of_credit(streamproof: Any) -> None:
    """Data arrives where there is any buffer; nobody stops another where each has a buffer, or the pool is large enough."""
    document = answer(streamproof, *CREDIT)
    assert formula_of(document, "consumed") == "exclusive + floating >= 1"
    assert formula_of(document, "isolation") == "exclusive >= 1 or floating >= channels"
    for point in document["points"]:
        for name in ("consumed", "isolation"):
            holds = point["verdicts"][name]["verdict"] == "holds"
            assert says(formula_of(document, name) or "", point["parameters"]) is holds
    assert formula_of(document, "conservation") is None
    assert {p["holds"] for p in document["properties"] if p["name"] == "conservation"} == {12}


@pytest.mark.long
def test_what_holds_at_every_point_comes_with_the_command_that_proves_it(streamproof: Any) -> None:
    """The command names all of them, the parameters that vary, and those that do not; it is one that can be run."""
    document = answer(streamproof, *CREDIT)
    (command,) = {p["proof"] for p in document["properties"]} - {None}
    words = command.split()
    assert words[:7] == ["streamproof", "prove", "credit", "--any", "exclusive,floating,channels", "-p", "depth=1"]
    assert {w for w in words[7:] if w != "--property"} >= {"conservation", "no_overflow", "pool_conserved"}
    assert "consumed" not in words
    assert streamproof(*words[1:], "-q").code == 0


def test_the_console_shows_maps_and_formulas(streamproof: Any, burst: Path) -> None:
    """Values across and down, a sign for each point, what it amounts to, and what held everywhere."""
    done = streamproof("sweep", "burst.py", "--jobs", "1", "--out", "out")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[: len(MAP)] == MAP
    assert lines[-1] == "reproduce: streamproof sweep burst.py"


MAP = """burst, 6 points
  step: 1, 2, 3
  size: 4, 5

even    + holds  x violated
  columns: step, the same for every size explored

     1 2 3
     x + x
  holds where step == 2""".splitlines()


def test_axes_are_given_as_ranges_and_lists(streamproof: Any, burst: Path) -> None:
    """Ranges, lists and both, words and truth values; a parameter with one value is no axis."""
    words = ("-p", "step=1..2,1", "-p", "size=5", "-p", "strict=true,false", "-p", "mode=plain,double")
    document = answer(streamproof, "burst.py", *words, code=75)
    assert document["axes"] == {"step": [1, 2], "strict": [True, False], "mode": ["plain", "double"]}
    assert document["fixed"] == {"size": 5}
    assert verdicts(document) == {
        (None, 1, True, "plain"): {"even": "violated"},
        (None, 1, True, "double"): {"even": "error"},
        (None, 1, False, "plain"): {"even": "violated"},
        (None, 1, False, "double"): {"even": "error"},
        (None, 2, True, "plain"): {"even": "holds"},
        (None, 2, True, "double"): {"even": "holds"},
        (None, 2, False, "plain"): {"even": "error"},
        (None, 2, False, "double"): {"even": "error"},
    }


def test_a_variant_is_a_row_of_its_own(streamproof: Any, folder: Path) -> None:
    """The model and each variant asked for have their own maps and formulas."""
    document = answer(streamproof, "counter.py", "-p", "limit=1..4", "--variant", "jumping", "--property", "low")
    assert verdicts(document) == {
        (None, 1): {"low": "holds"},
        (None, 2): {"low": "holds"},
        (None, 3): {"low": "violated"},
        (None, 4): {"low": "violated"},
        ("jumping", 1): {"low": "holds"},
        ("jumping", 2): {"low": "holds"},
        ("jumping", 3): {"low": "violated"},
        ("jumping", 4): {"low": "violated"},
    }
    assert [formula_of(document, "low", variant) for variant in (None, "jumping")] == ["limit <= 2", "limit <= 2"]
    lengths = {(p["variant"], p["parameters"]["limit"]): p["verdicts"]["low"]["length"] for p in document["points"]}
    assert (lengths[None, 4], lengths["jumping", 4]) == (3, 1)


def test_points_that_the_model_refuses_are_left_out(streamproof: Any, burst: Path) -> None:
    """They are neither safe nor unsafe nor undecided; those that a variant stands for are decided."""
    document = answer(streamproof, "burst.py", "-p", "step=2,4,5", "-p", "size=8")
    assert verdicts(document) == {
        (None, 2): {"even": "holds"},
        (None, 4): {"even": "holds"},
        (None, 5): {"even": "refused"},
    }
    (refused,) = (point for point in document["points"] if point["parameters"]["step"] == 5)
    assert refused["because"] == "burst does not allow step=5"
    assert [(p["holds"], p["undecided"]) for p in document["properties"]] == [(2, 0)]


def test_a_composite_is_asked_where_it_allows_to_be(streamproof: Any, folder: Path) -> None:
    """The properties of parts are known although the first point is none."""
    words = ("cyclic", "-p", "policy=fair", "-p", "feedback=bounded", "-p", "records=2..3", "-p", "amplification=1")
    document = answer(streamproof, *words, "-p", "buffers=0..1", "--property", "deadlock", "--property", "conserved")
    assert verdicts(document) == {
        (None, 0, 2): {"conserved": "refused", "deadlock": "refused"},
        (None, 0, 3): {"conserved": "refused", "deadlock": "refused"},
        (None, 1, 2): {"conserved": "holds", "deadlock": "holds"},
        (None, 1, 3): {"conserved": "holds", "deadlock": "violated"},
    }
    assert formula_of(document, "deadlock") == "records <= 2"


def test_what_holds_for_want_of_cases_is_told(streamproof: Any, folder: Path) -> None:
    """A point at which a temporal property holds vacuously is counted apart."""
    (folder / "late.py").write_text(LATE, encoding="utf-8")
    document = answer(streamproof, "late.py", "-p", "limit=1..4")
    assert [(p["name"], p["holds"], p["vacuous"]) for p in document["properties"]] == [
        ("goes_on", 4, 2),
        ("deadlock", 4, 0),
    ]
    done = streamproof("sweep", "late.py", "-p", "limit=1..4", "--jobs", "1", "-q")
    assert "holds at all 4 points: goes_on, deadlock\n  goes_on vacuously at 2 of them\n" in done.out


LATE = '''
from streamproof import WEAK, Model, Range, State, action, leads_to, temporal


class Late(Model):
    """Counts around; from three on it is late."""

    limit: int = 3

    def state(self):
        return State(n=Range(0, self.limit))

    @action(fairness=WEAK)
    def count(self, s):
        s.n = (s.n + 1) % (self.limit + 1)

    @temporal
    def goes_on(self, s):
        """It begins again when it is late."""
        return leads_to(s.n >= 3, s.n == 0)
'''


def test_a_point_that_is_cut_is_inconclusive_and_in_no_formula(streamproof: Any, folder: Path) -> None:
    """With too few states allowed the sweep ends with 160, and only what was decided is generalised."""
    words = ("counter.py", "-p", "limit=1..9", "--property", "low", "--max-states", "2")
    document = answer(streamproof, *words, code=160)
    marks = [found["low"] for found in verdicts(document).values()]
    assert marks == ["holds", *["inconclusive"] * 8]
    assert [(p["holds"], p["violated"], p["undecided"]) for p in document["properties"]] == [(1, 0, 8)]
    done = streamproof("sweep", *words, "--jobs", "1")
    assert "holds at the only point that was decided" in done.out
    assert "? inconclusive" in done.out
    assert "  8 points: inconclusive: stopped after 3 states" in done.out


def test_a_sweep_goes_on_where_it_was(streamproof: Any, folder: Path) -> None:
    """Of a file that ends in the middle of a record, what is complete is used and the rest is decided."""
    words = ("counter.py", "-p", "limit=1..6", "--property", "low", "--out", "out")
    first = answer(streamproof, *words)
    assert first["reused"] == 0
    kept = folder / "out" / "points.ndjson"
    lines = kept.read_bytes().splitlines(keepends=True)
    kept.write_bytes(b"".join(lines[:4]) + lines[4][:40])
    second = answer(streamproof, *words)
    assert second["reused"] == 3
    assert verdicts(second) == verdicts(first)
    assert len(kept.read_bytes().splitlines()) == 7
    third = answer(streamproof, *words)
    assert third["reused"] == 6
    again = answer(streamproof, *words, "--again")
    assert (again["reused"], verdicts(again)) == (0, verdicts(first))


def test_points_of_a_model_that_has_changed_are_decided_again(streamproof: Any, folder: Path) -> None:
    """A record is used only while the point's system is the same."""
    words = ("counter.py", "-p", "limit=1..4", "--property", "low", "--out", "out", "--jobs", "1", "-q")
    assert "holds where limit <= 2" in streamproof("sweep", *words).out
    text = (folder / "counter.py").read_text(encoding="utf-8")
    (folder / "counter.py").write_text(text.replace("s.n < 3", "s.n < 2"), encoding="utf-8")
    done = streamproof("sweep", *words)
    assert done.out.startswith("4 points are decided again: the model has changed since\n")
    assert "holds where limit <= 1" in done.out


def test_points_of_another_version_are_not_used(streamproof: Any, folder: Path) -> None:
    """Another version, or another model, starts afresh and says so."""
    words = ("counter.py", "-p", "limit=1..4", "--property", "low", "--out", "out", "--jobs", "1", "-q")
    streamproof("sweep", *words)
    kept = folder / "out" / "points.ndjson"
    kept.write_text(kept.read_text(encoding="utf-8").replace('"version": "', '"version": "9.', 1), encoding="utf-8")
    done = streamproof("sweep", *words)
    assert re.match(
        r"out/points.ndjson: none of the stored points are used: they are of version 9\.\S+, this is version",
        done.out,
    )
    assert "from earlier runs" not in done.out


def test_cut_points_are_decided_again_with_other_limits(streamproof: Any, folder: Path) -> None:
    """What was inconclusive is kept under the same limits only; what was decided is kept under any."""
    words = ("counter.py", "-p", "limit=1..5", "--property", "low", "--out", "out")
    assert answer(streamproof, *words, "--max-states", "2", code=160)["reused"] == 0
    assert answer(streamproof, *words, "--max-states", "2", code=160)["reused"] == 5
    whole = answer(streamproof, *words)
    assert whole["reused"] == 1
    assert formula_of(whole, "low") == "limit <= 2"


def test_other_processes_find_the_same(streamproof: Any, folder: Path) -> None:
    """Two processes and this one give the same records, whatever the order in which points are done."""
    words = ("counter.py", "-p", "limit=1..6", "--variant", "jumping", "-q", "--json", "-")
    here = json.loads(streamproof("sweep", *words, "--jobs", "1", "--out", "one").out)
    code, there = of_two_processes(*words, "--out", "two")
    assert (code, comparable(there)) == (0, comparable(here))


def of_two_processes(*words: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the JSON of a program of its own: one with threads, as this one, is not forked."""
    command = [sys.executable, "-m", "streamproof", "sweep", *words, "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    "words", share([("counter.py", "-p", "limit=1..6"), CREDIT], 2, whole=True), ids=["file", "bundled"]
)
def test_spark_finds_the_same(streamproof: Any, folder: Path, words: tuple[str, ...]) -> None:
    """One Spark task a point gives the records that local processes give, of a file and of a bundled model."""
    here = json.loads(streamproof("sweep", *words, "-q", "--json", "-", "--jobs", "1", "--out", "one").out)
    done = streamproof("sweep", *words, "-q", "--json", "-", "--spark", "--master", "local[2]", "--out", "spark")
    assert (done.code, comparable(json.loads(done.out))) == (0, comparable(here))


def comparable(document: dict[str, Any]) -> dict[str, Any]:
    """A sweep's JSON without times, places and the command."""
    points = [{k: v for k, v in point.items() if k != "seconds"} for point in document["points"]]
    return {**{k: v for k, v in document.items() if k not in ("seconds", "files", "reproduce")}, "points": points}


def test_a_process_that_dies_costs_its_own_point_only(folder: Path) -> None:
    """Its point is inconclusive, with the reason; the others are decided."""
    text = (folder / "counter.py").read_text(encoding="utf-8")
    dying = text.replace("def setup(self):\n", "def setup(self):\n        if self.limit == 3: import os; os._exit(9)\n")
    (folder / "counter.py").write_text(dying, encoding="utf-8")
    code, document = of_two_processes("counter.py", "-p", "limit=1..4", "--property", "low", "-q", "--json", "-")
    assert (code, [found["low"] for found in verdicts(document).values()]) == (
        160,
        ["holds", "holds", "inconclusive", "violated"],
    )
    assert document["points"][2]["because"].startswith("the process that searched it ended (9)")


def test_an_interrupted_sweep_keeps_what_it_has(folder: Path) -> None:
    """Ctrl-C ends it with 130 and with the files that show what is known; the next one goes on from there."""
    out = folder / "out"
    words = [
        *("credit", "-p", "channels=2..3", "-p", "depth=2..3", "-p", "floating=0..3", "-p", "exclusive=1..3"),
        *("--property", "isolation", "--out", str(out), "-q"),
    ]
    begun = subprocess.Popen(
        [sys.executable, "-m", "streamproof", "sweep", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    kept = out / "points.ndjson"
    until = time.monotonic() + 120
    while not (kept.exists() and len(kept.read_bytes().splitlines()) > 3):
        assert time.monotonic() < until
        assert begun.poll() is None
        time.sleep(0.05)
    os.kill(begun.pid, signal.SIGINT)
    text, _ = begun.communicate(timeout=120)
    assert begun.returncode == 130
    document = json.loads((out / "sweep.json").read_text(encoding="utf-8"))
    marks = [found["isolation"] for found in verdicts(document).values()]
    assert (len(marks), set(marks)) == (48, {"holds", "open"})
    assert marks.count("holds") == len(kept.read_bytes().splitlines()) - 1
    assert f"{marks.count('holds')} of 48 points decided" in text


def test_the_page_draws_the_maps(streamproof: Any, folder: Path) -> None:
    """Each point is a cell with a sign, a class for its colour and words; the formula is above; there is no date."""
    words = ("counter.py", "-p", "limit=1..6", "--property", "low", "--property", "grows", "--max-states", "5")
    assert streamproof("sweep", *words, "--out", "out", "--jobs", "1").code == 160
    page = (folder / "out" / "table.html").read_text(encoding="utf-8")
    assert re.findall(r'<td class="(\w+)" title="(limit=.*?)">(.)</td>', page) == [
        *(("holds", f"limit={n}: holds", "+") for n in (1, 2)),
        *(("violated", f"limit={n}: violated", "x") for n in (3, 4, 5, 6)),
        *(("holds", f"limit={n}: holds", "+") for n in (1, 2, 3, 4)),
        *(("inconclusive", f"limit={n}: inconclusive", "?") for n in (5, 6)),
    ]
    assert "holds where <code>limit &lt;= 2</code>" in page
    streamproof("sweep", *words, "--out", "out", "--jobs", "1")
    assert (folder / "out" / "table.html").read_text(encoding="utf-8") == page


def test_panels_and_rows_have_headings(streamproof: Any, burst: Path) -> None:
    """The page has a table for each combination of values of some axes, with the values of two others above and beside it."""
    words = ("-p", "mode=plain,double", "-p", "strict=true,false")
    streamproof("sweep", "burst.py", *words, "--jobs", "1", "--out", "out")
    page = Path("out/table.html").read_text(encoding="utf-8")
    panels = [f"size={size}, strict={strict}" for size in (4, 5) for strict in ("true", "false")]
    assert re.findall("<caption>(.*?)</caption>", page) == panels
    assert page.count("<thead><tr><th></th><th>1</th><th>2</th><th>3</th></tr></thead>") == 4
    assert re.findall("<tr><th>(.*?)</th><td", page) == ["plain", "double"] * 4


def test_names_on_the_page_are_data(streamproof: Any, burst: Path) -> None:
    """A value with markup is text in headings, tooltips and cells."""
    text = burst.read_text(encoding="utf-8").replace('"plain", "double"', '"plain", "double", "<b>&\'\\""')
    burst.write_text(text, encoding="utf-8")
    done = streamproof("sweep", "burst.py", "-p", "mode=double,<b>&'\"", "--jobs", "1", "--out", "out")
    assert done.err == ""
    page = Path("out/table.html").read_text(encoding="utf-8")
    assert "<b>" not in page
    assert page.count("&lt;b&gt;&amp;&#39;&#34;") > 6


@pytest.mark.long
def test_the_formulas_in_the_documents_are_those_of_credit(streamproof: Any, folder: Path) -> None:
    """The bundled model, explored as its specification says, gives the formulas that are shown."""
    document = json.loads(streamproof("sweep", "credit", "-q", "--json", "-", "--out", "out").out)
    assert formula_of(document, "consumed") == "exclusive + floating >= 1"
    assert formula_of(document, "isolation") == "exclusive >= 1 or floating > (channels - 1) * depth"
    for point in document["points"]:
        for name in ("consumed", "isolation"):
            holds = point["verdicts"][name]["verdict"] == "holds"
            assert says(formula_of(document, name) or "", point["parameters"]) is holds


def test_the_table_has_a_row_for_each_point_and_property(streamproof: Any, burst: Path) -> None:
    """Parameters are columns of their own types; the rest is as in the JSON."""
    document = answer(
        streamproof, "burst.py", "-p", "mode=plain,double", "-p", "step=2", "-p", "size=8..9", "--out", "out"
    )
    rows = pq.read_table("out/points.parquet").to_pylist()
    assert [(r["p_mode"], r["p_size"], r["p_strict"], r["property"], r["verdict"], r["states"]) for r in rows] == [
        (p["parameters"]["mode"], p["parameters"]["size"], True, "even", p["verdicts"]["even"]["verdict"], p["states"])
        for p in document["points"]
    ]


@pytest.mark.parametrize(
    ("words", "message", "remedy"),
    [
        (["counter.py"], "no parameter varies: counter declares no axes", "give a parameter several values"),
        (["counter.py", "-p", "limit=2"], "no parameter varies: counter declares no axes", "give a parameter"),
        (["counter.py", "-p", "limits=1..2"], "counter has no parameter 'limits'", "did you mean limit?"),
        (["failover", "--job-graph", "job.json"], "a sweep varies parameters and has no --job-graph", "leave it out"),
        (["failover", "--what-if", "lose=A"], "a sweep varies parameters and has no --what-if", "leave it out"),
        (["counter.py", "-p", "limit"], "-p limit: no value", "write -p name=value, -p name=0..3 or -p name=a,b"),
        (["counter.py", "-p", "limit=1..x"], "limit='x' is not a value of type int", "give an integer"),
        (["counter.py", "-p", "limit=3..1"], "-p limit=3..1: 3..1 has no values, or too many", "from small to large"),
        (["burst.py", "-p", "mode=a..b"], "-p mode=a..b: a..b is not a range of numbers", "write -p mode=a,b"),
        (["counter.py", "-p", "limit=1..2", "--property", "lo"], "counter has no property 'lo'", "did you mean low?"),
        (["counter.py", "-p", "limit=1..2", "--variant", "jump"], "counter has no variant 'jump'", "did you mean jumping?"),
        (["counter.py", "-p", "limit=1..2", "--size", "tiny"], "counter has no size 'tiny'", "its sizes: small, medium"),
        (["counter.py", "-p", "limit=1..2", "--master", "local"], "--master requires --spark", "add --spark"),
        (["burst.py", "-p", "step=8,9"], "the model allows none of the points: burst does not allow step=9", "step is 1"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_message(streamproof: Any, burst: Path, words: list[str], message: str, remedy: str) -> None:
    """Exit code 2, what is wrong, what to do; nothing is written."""
    done = streamproof("sweep", *words)
    assert (done.code, done.out) == (2, "")
    said, then = done.err.splitlines()[:2]
    assert said == f"streamproof: error: {message}"
    assert then.startswith(f"  {remedy}")
    assert not (burst.parent / "streamproof-out").exists()


def test_somebody_s_file_is_not_replaced(streamproof: Any, folder: Path) -> None:
    """A file of the same name that a sweep did not write ends it before it begins."""
    (folder / "table.html").write_text("mine", encoding="utf-8")
    done = streamproof("sweep", "counter.py", "-p", "limit=1..2", "--out", ".")
    assert (done.code, (folder / "table.html").read_text(encoding="utf-8")) == (153, "mine")
    assert "table.html exists and was not written by streamproof" in done.err


def test_more_processes_than_can_be_used_are_not_made(streamproof: Any) -> None:
    """There are at most as many as points and processors, and each has its share of the memory: the answers are the same."""
    words = ("counter.py", "-p", "limit=1..3", "--property", "low", "-q", "--json", "-")
    documents = [
        json.loads(streamproof("sweep", *words, "--jobs", jobs, "--out", f"out-{jobs}").out) for jobs in ("1", "999")
    ]
    one, many = ([{**point, "seconds": None} for point in found["points"]] for found in documents)
    assert many == one
    assert documents[1]["exit_code"] == 0


def test_points_are_printed_before_formulas(streamproof: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The map is there while a formula is still looked for; Ctrl-C leaves the formula out, and nothing else."""

    def endless(*given: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("streamproof.sweep.boundary.separate", endless)
    done = streamproof("sweep", "counter.py", "-p", "limit=1..6", "--property", "low", "--jobs", "1", "--out", "out")
    assert done.code == 130
    assert "columns: limit\n" in done.out
    assert "holds at 2 and not at 4 points: no formula was looked for, the sweep was ended\n" in done.out
    assert "6 of 6 points decided" in done.out
    assert json.loads(Path("out/sweep.json").read_text())["properties"][0]["formula"] is None
