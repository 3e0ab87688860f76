"""`streamproof sweep` over everything up to a size: stages, what refutes a variant first, what is kept, what is shown."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from streamproof.model_registry import find

WORDS = '''
from itertools import product

from streamproof import Generated, Model, Range, Sample, Spec, State, Sweep, action, invariant, require


class Reader(Model):
    """Reads a word of up and down, and counts."""

    word: str = "u"
    extra: int = 0
    check_deadlock = False

    def state(self):
        return State(at=Range(0, len(self.word)), level=Range(-20, 20, init=0))

    def step(self, letter):
        return 1 if letter == "u" else -1

    @action
    def read(self, s):
        require(s.at < len(self.word))
        for at, letter in enumerate(self.word):
            if s.at == at:
                s.level += self.step(letter)
        s.at += 1

    @invariant
    def low(self, s):
        """Never above the number of letters."""
        return s.level <= len(self.word) + self.extra

    @invariant
    def near(self, s):
        """Never below it either."""
        return s.level >= -len(self.word)


class Doubled(Reader, variant="doubled"):
    """A letter that follows itself counts twice."""

    def step(self, letter):
        return super().step(letter) * (2 if self.word[:2] == letter * 2 else 1)


class Slow(Reader, variant="slow"):
    """Down counts for nothing."""

    def step(self, letter):
        return max(0, super().step(letter))


def words(letters, ups):
    if letters < 1:
        raise ValueError(f"letters is {letters}, the least is 1")
    for length in range(1, letters + 1):
        for word in product("ud", repeat=length):
            if ups is None or word.count("u") <= ups:
                yield Sample("".join(word), {"letters": length, "ups": word.count("u")})


SPEC = Spec(
    Reader,
    expected={"doubled": {"low": "violated", "near": "violated"}},
    sweeps=Sweep(
        {},
        ("low", "near"),
        generated=Generated(
            "word", "words", words, {"letters": 3, "ups": None}, by="letters", about={"ups": "At most so many ups."}
        ),
    ),
)
'''


@pytest.fixture
def words(folder: Path) -> Path:
    """A file with a model whose words are generated."""
    (folder / "words.py").write_text(WORDS, encoding="utf-8")
    return folder


def answer(streamproof: Any, *options: str, code: int = 0) -> dict[str, Any]:
    """The JSON of a sweep in this process."""
    done = streamproof("sweep", "words.py", *options, "--jobs", "1", "--json", "-", "-q", "--out", "out")
    assert done.code == code, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def rows(document: dict[str, Any]) -> dict[str | None, dict[str, Any]]:
    """What came of the model and of each variant."""
    return {row["variant"]: row for row in document["generated"]["rows"]}


def test_everything_up_to_a_size_is_asked_about(streamproof: Any, words: Path) -> None:
    """All words, by their lengths, with their states; a bound makes them fewer; nothing is said to be a formula."""
    document = answer(streamproof)
    (row,) = document["generated"]["rows"]
    assert [(s["size"], s["samples"], s["states"], s["largest"]) for s in row["stages"]] == [
        (1, 2, 4, 2),
        (2, 4, 12, 3),
        (3, 8, 32, 4),
    ]
    assert [s["verdicts"] for s in row["stages"]] == [{"low": {"holds": n}, "near": {"holds": n}} for n in (2, 4, 8)]
    assert (row["refutations"], document["properties"]) == ([], [])
    assert set(document["files"]) == {"table", "page", "answer"}
    fewer = answer(streamproof, "--max-letters", "4", "--max-ups", "1")
    assert [s["samples"] for s in rows(fewer)[None]["stages"]] == [2, 3, 4, 5]
    assert fewer["reproduce"] == "streamproof sweep words.py --max-letters 4 --max-ups 1"


def test_a_refuted_variant_is_not_asked_about_at_larger_sizes(streamproof: Any, words: Path) -> None:
    """It is refuted by the first of the smallest; with --full it is asked about everywhere; one that holds always is."""
    found = rows(answer(streamproof, "--variants", "all"))
    assert {variant: [s["samples"] for s in row["stages"]] for variant, row in found.items()} == {
        None: [2, 4, 8],
        "doubled": [2, 4],
        "slow": [2, 4, 8],
    }
    assert found["doubled"]["refutations"] == [
        {"property": "low", "value": "uu", "size": {"letters": 2, "ups": 2}, "length": 2, "alike": 1, "of": 4},
        {"property": "near", "value": "dd", "size": {"letters": 2, "ups": 0}, "length": 2, "alike": 1, "of": 4},
    ]
    assert found["slow"]["refutations"] == []
    full = rows(answer(streamproof, "--variants", "doubled", "--full"))
    assert [s["verdicts"]["low"] for s in full["doubled"]["stages"]] == [
        {"holds": 2},
        {"violated": 1, "holds": 3},
        {"violated": 2, "holds": 6},
    ]
    assert full["doubled"]["refutations"] == found["doubled"]["refutations"]


def test_other_axes_are_distinguished(streamproof: Any, words: Path) -> None:
    """A variant that another parameter saves at some of its values is ended only where it is refuted."""
    found = answer(streamproof, "--variant", "doubled", "-p", "extra=0..3", "--property", "low")["generated"]["rows"]
    ended = {row["parameters"]["extra"]: len(row["stages"]) for row in found if row["variant"] == "doubled"}
    assert ended == {0: 2, 1: 2, 2: 3, 3: 3}


def test_what_is_known_is_used_again(streamproof: Any, words: Path) -> None:
    """A second sweep decides only what the first has not; an earlier one of other properties is no help."""
    assert answer(streamproof, "--max-letters", "2")["reused"] == 0
    assert answer(streamproof, "--variants", "slow")["reused"] == 6
    assert answer(streamproof, "--property", "low")["reused"] == 0


def test_points_are_taken_as_they_are_while_no_file_has_changed(
    streamproof: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model in a package is not even read again for a point that is known."""
    options = ("baton", "--max-operators", "2", "--jobs", "1", "--out", "out", "-q", "--json", "-")
    first = json.loads(streamproof("sweep", *options).out)
    monkeypatch.setattr("streamproof.sweep.executing.decide", lambda job: pytest.fail("a point is decided again"))
    again = json.loads(streamproof("sweep", *options).out)
    assert (first["reused"], again["reused"], again["points"]) == (0, 2, first["points"])


def test_other_processes_find_the_same(streamproof: Any, words: Path) -> None:
    """Two processes give what this one gives."""
    here = answer(streamproof, "--variants", "all")
    command = [sys.executable, "-m", "streamproof", "sweep", "words.py", "--variants", "all", "--workers", "2"]
    done = subprocess.run([*command, "--out", "two", "-q", "--json", "-"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["generated"] == here["generated"]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_finds_the_same(streamproof: Any, words: Path) -> None:
    """One Spark task a graph and variant gives what local processes give."""
    options = ("sweep", "baton", "--max-operators", "3", "--variants", "head-unasked", "-q", "--json", "-")
    here = streamproof(*options, "--out", "here")
    there = streamproof(*options, "--out", "there", "--spark", "--master", "local[2]")
    assert (there.code, json.loads(there.out)["generated"]) == (0, json.loads(here.out)["generated"])


def test_the_console_tells_sizes_and_refutations(streamproof: Any, words: Path) -> None:
    """How many of each size, what holds on all, and the first that is violated with its shortest counterexample."""
    text = streamproof("sweep", "words.py", "--variants", "doubled", "--jobs", "1", "--out", "out").out
    assert text.startswith("reader, 14 words, at most 3 letters, 3 ups\n")
    assert (
        "  letters  words  states  largest\n        1      2       4        2\n        2      4      12        3\n"
        in text
    )
    assert "  holds on all 14: low, near\n" in text
    assert "variant doubled  extra=0\n" in text
    assert "  violated: low, 2 steps, 1 of the 4 with 2 letters; the first\n    uu\n" in text


def test_the_page_has_a_row_for_each_sample(streamproof: Any, words: Path) -> None:
    """With its sizes, and for each variant the states and what it breaks; nothing where it was not asked."""
    answer(streamproof, "--variants", "doubled")
    page = (words / "out" / "table.html").read_text(encoding="utf-8")
    found = [
        re.findall(r"<td[^>]*>(?:<code>)?(.*?)(?:</code>)?</td>", row) for row in re.findall(r"<tr>.*?</tr>", page)
    ]
    table = {row[0]: row[1:] for row in found if row and set(row[0]) <= {"u", "d"}}
    assert len(table) == 14
    assert table["u"] == ["1", "1", "2", "+", "2", "+"]
    assert table["uu"] == ["2", "2", "3", "+", "3", "x low"]
    assert table["uuu"] == ["3", "3", "4", "+", "", ""]
    again = answer(streamproof, "--variants", "doubled")
    assert (words / "out" / "table.html").read_text(encoding="utf-8") == page
    assert again["reused"] == 20


def test_the_page_of_other_sweeps_has_a_row_for_each_point(streamproof: Any, folder: Path) -> None:
    """Axes, states, and each property with its sign and the length of the counterexample."""
    streamproof("sweep", "counter.py", "-p", "limit=2..3", "--property", "low", "--jobs", "1", "--out", "out")
    page = (folder / "out" / "table.html").read_text(encoding="utf-8")
    found = [
        re.findall(r"<td[^>]*>(?:<code>)?(.*?)(?:</code>)?</td>", row) for row in re.findall(r"<tr>.*?</tr>", page)
    ]
    assert [row for row in found if row] == [["+", "x"], ["2", "3", "+"], ["3", "4", "x 3"]], "the map, and the points"
    assert "holds where <code>limit &lt;= 2</code>" in page


def test_the_table_has_the_sizes(streamproof: Any, words: Path) -> None:
    """Parquet: a row for each point and property with the word, its sizes, and the verdict."""
    answer(streamproof, "--max-letters", "2")
    table = pq.read_table("out/points.parquet").to_pylist()
    assert [(r["p_word"], r["size_letters"], r["size_ups"], r["property"], r["verdict"]) for r in table[:4]] == [
        ("u", 1, 1, "low", "holds"),
        ("u", 1, 1, "near", "holds"),
        ("d", 1, 0, "low", "holds"),
        ("d", 1, 0, "near", "holds"),
    ]
    assert len(table) == 12


@pytest.mark.parametrize(
    ("options", "message", "remedy"),
    [
        (["words.py", "--max-letters", "0"], "letters is 0, the least is 1", "give another bound"),
        (["words.py", "--max-letter", "1"], "no such option --max-letter", "did you mean --max-letters?"),
        (["words.py", "--max-joins", "1"], "no such option --max-joins", "did you mean --max-ups?"),
        (["counter.py", "-p", "limit=1..2", "--max-operators", "3"],
         "no such option --max-operators", "did you mean --max-states?"),
        (["words.py", "--frobnicate"], "no such option --frobnicate", "streamproof sweep --help explains"),
        (["words.py", "-p", "word=u,d", "--max-letters", "3"],
         "--max-letters: reader has no axis that is generated", "give a parameter values with -p"),
        (["words.py", "--variants", "doubled,quick"], "reader has no variant 'quick'", "its variants: doubled, slow"),
        (["counter.py", "--topology", "nested"], "no such option --topology", "streamproof sweep --help explains"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_message(
    streamproof: Any, words: Path, options: list[str], message: str, remedy: str
) -> None:
    """Exit code 2, what is wrong, what to do."""
    done = streamproof("sweep", *options)
    said, then = done.err.splitlines()[:2]
    assert (done.code, said) == (2, f"streamproof: error: {message}")
    assert then.strip().startswith(remedy)


@pytest.mark.long
def test_the_bounds_are_those_of_the_model(streamproof: Any, words: Path) -> None:
    """Help lists them where the model is named, with what they mean, and only those."""
    text = streamproof("sweep", "words.py", "--help").out
    assert "--max-letters N" in text
    assert re.search(r"--max-ups N +At most so many ups\.", text)
    assert "--max-operators" not in text
    assert re.search(r"--max-operators N +Largest number of operators", streamproof("sweep", "baton", "--help").out)
    assert "--max-operators" not in streamproof("sweep", "missing.py", "--help").out
    short = ("baton", "--parallelism", "2", "--max-operators", "2", "-q", "--json", "-", "--out", "out")
    assert "--max-parallelism 2" in json.loads(streamproof("sweep", *short).out)["reproduce"]


@pytest.mark.parametrize("words", [("--topology", "self-loop"), ("--topology=self-loop",)])
def test_a_parameter_is_an_option_too(streamproof: Any, folder: Path, words: tuple[str, ...]) -> None:
    """Every verb that takes parameters takes it; a model without such a parameter has no such option."""
    done = streamproof("check", "baton", *words, "-q", "--json", "-")
    assert json.loads(done.out)["parameters"]["topology"] == "self-loop"
    assert json.loads(done.out)["reproduce"] == "streamproof check baton -p topology=self-loop"
    done = streamproof("check", "baton", "-p", "topology=loop", *words)
    assert (done.code, done.err.splitlines()[0]) == (2, "streamproof: error: the parameter topology is given 2 times")
    assert streamproof("check", "baton", "--topology").err.startswith("streamproof: error: option '-p' requires an arg")
    assert streamproof("check", "--topology", "loop").err.startswith("streamproof: error: no such option --topology\n")
    for verb in (["check"], ["simulate"], ["prove"], ["export", "--format", "dot", "--out", "x.dot"], ["sweep"]):
        refused = streamproof(*verb, "counter.py", "--topology", "nested")
        assert (refused.code, refused.err.splitlines()[0]) == (
            2,
            "streamproof: error: no such option --topology",
        )


@pytest.mark.parametrize("most", [3, pytest.param(4, marks=pytest.mark.long)])
def test_the_first_graphs_of_the_baton(streamproof: Any, folder: Path, most: int) -> None:
    """All graphs of a few operators and up to two loops: the rules hold on each of them, with exactly so many states."""
    assert find("baton").spec.sweeps is not None
    done = streamproof("sweep", "baton", "--max-operators", f"{most}", "--out", "out", "-q", "--json", "-")
    (row,) = json.loads(done.out)["generated"]["rows"]
    assert [(s["size"], s["samples"], s["states"], s["largest"]) for s in row["stages"]] == [
        (2, 2, 32, 25),
        (3, 15, 853, 153),
        (4, 183, 20_905, 734),
    ][: most - 1]
    for stage in row["stages"]:
        assert stage["verdicts"] == {name: {"holds": stage["samples"]} for name in stage["verdicts"]}
    assert row["parameters"]["work"] == 1
    assert set(row["stages"][0]["verdicts"]) == {"nothing_lost", "no_early_end", "everybody_terminates", "deadlock"}


@pytest.mark.parametrize("name", ["detects", "detects_start", "outer_first", "deadlock"])
def test_each_property_can_be_asked_for_alone(streamproof: Any, folder: Path, name: str) -> None:
    """Only what is asked is read, what a refinement promises and what nobody states included."""
    done = streamproof("sweep", "baton", "--max-operators", "2", "--property", name, "-q", "--json", "-")
    points = json.loads(done.out)["points"]
    assert done.code == 0
    assert [point["verdicts"][name]["verdict"] for point in points] == ["holds", "holds"]
