"""`streamproof check` ends when enough is known, and reports a violation when it finds it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TWO = '''
from streamproof import Model, Range, State, action, eventually, invariant, reachable, require, step, temporal


class Two(Model):
    """Two counters."""

    top: int = 9999
    check_deadlock = False

    def state(self):
        return State(a=Range(0, self.top), b=Range(0, self.top))

    @action
    def up_a(self, s):
        require(s.a < self.top)
        s.a += 1

    @action
    def up_b(self, s):
        require(s.b < self.top)
        s.b += 1

    @action
    def never(self, s):
        require(s.a > self.top)
        s.a = 0

    @invariant
    def low(self, s):
        return s.a < 3

    @step
    def slow(self, s, t):
        return t.b != 5

    @reachable
    def both(self, s):
        return s.a == 1 and s.b == 1

    @invariant
    def fine(self, s):
        return s.b >= 0

    @temporal
    def rises(self, s):
        return eventually(s.a == 1)

    @temporal
    def grows(self, s):
        return eventually(s.b == 1)
'''


@pytest.fixture
def two(folder: Path) -> Path:
    """The model of two counters, in a file."""
    (folder / "two_counters.py").write_text(TWO, encoding="utf-8")
    return folder


def verdicts(text: str) -> dict[str, str]:
    """The verdict of each property in a JSON answer."""
    return {p["name"]: p["verdict"] for p in json.loads(text)["properties"]}


WAYS = [
    (),
    ("--tier", "compiled"),
    ("--tier", "compiled", "--workers", "2"),
    ("--tier", "python"),
    ("--spill", "disk"),
    ("--checkpoint", "kept"),
    ("--por",),
    ("--symmetry",),
]


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("way", WAYS, ids=lambda way: " ".join(way) or "plain")
def test_a_search_for_one_property_ends_with_its_verdict(streamproof: Any, way: tuple[str, ...]) -> None:
    """Of a hundred million states, those up to the violation are searched, in every tier and with every reduction."""
    done = streamproof("check", "two_counters.py", "--property", "low", "-q", *way, "--json", "-")
    found = json.loads(done.out)
    assert (done.code, found["verdict"], found["stopped"]) == (12, "violated", "every property decided")
    assert found["properties"][0]["trace"]["length"] == 3
    assert found["states"]["depth"] == 4
    assert found["states"]["distinct"] <= 10
    assert (found["coverage"]["never_enabled"], found["coverage"]["never_true"]) == ([], [])
    assert "the search ended early, not all states were searched: all requested properties are decided\n" in done.err


@pytest.mark.usefixtures("two")
def test_a_search_for_several_properties_ends_when_all_are_decided(streamproof: Any) -> None:
    """A step that breaks a property and a state that is reached are decisions like an invariant that is false."""
    names = ("low", "slow", "both")
    done = streamproof("check", "two_counters.py", *(f"--property={name}" for name in names), "-q", "--json", "-")
    found = json.loads(done.out)
    assert verdicts(done.out) == {"low": "violated", "slow": "violated", "both": "holds"}
    assert (done.code, found["stopped"], found["states"]["depth"]) == (12, "every property decided", 6)


@pytest.mark.usefixtures("two")
def test_coverage_is_of_the_whole_model(streamproof: Any) -> None:
    """With `--coverage` and with `--dot` all states are wanted, and searched."""
    words = ("check", "two_counters.py", "-p", "top=9", "--property", "low", "-q", "--json", "-")
    for more in (("--coverage",), ("--dot", "states.dot")):
        found = json.loads(streamproof(*words, *more).out)
        assert (found["stopped"], found["states"]["distinct"], found["coverage"]["never_enabled"]) == (
            None,
            100,
            ["never"],
        )


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("way", WAYS[:6], ids=lambda way: " ".join(way) or "plain")
def test_a_search_ends_at_the_first_violation(streamproof: Any, way: tuple[str, ...]) -> None:
    """With `--first` what was decided by then has its verdict, and nothing else holds."""
    done = streamproof("check", "two_counters.py", "--first", *way, "--json", "-")
    found = json.loads(done.out)
    assert (done.code, found["stopped"], found["states"]["distinct"]) == (12, "max_violations", 10)
    assert verdicts(done.out) == {
        "low": "violated",
        "slow": "inconclusive",
        "both": "holds",
        "fine": "inconclusive",
        "rises": "inconclusive",
        "grows": "inconclusive",
    }
    assert done.err.startswith("Counterexample: low is violated after step 3\n")
    assert "\n  reproduce   streamproof check two_counters.py --property low" in done.err
    assert found["reproduce"].startswith("streamproof check two_counters.py")
    assert "--first" in found["reproduce"]


@pytest.mark.usefixtures("two")
def test_a_search_ends_after_so_many_violations(streamproof: Any) -> None:
    """With `--max-violations 2` the second violation ends it; each is shown when it is found, the first in full."""
    done = streamproof("check", "two_counters.py", "--max-violations", "2", "--json", "-")
    assert (done.code, json.loads(done.out)["states"]["depth"]) == (12, 6)
    assert [name for name, verdict in verdicts(done.out).items() if verdict == "violated"] == ["low", "slow"]
    assert "\nalso violated, after 5 steps: slow (--property slow shows its counterexample)\n" in done.err
    assert Path("streamproof-out/two/slow.itf.json").exists()
    twice = streamproof("check", "two_counters.py", "--max-violations", "2", "--first")
    assert (twice.code, twice.err.splitlines()[0]) == (2, "streamproof: error: --first is --max-violations 1")
    assert streamproof("check", "two_counters.py", "--engine", "bmc", "--first").code == 2


@pytest.mark.usefixtures("two")
def test_the_second_pass_ends_at_a_violation_too(streamproof: Any) -> None:
    """Temporal properties come after the search: the first that is violated leaves the others undecided."""
    words = ("check", "two_counters.py", "-p", "top=2", "-q", "--json", "-")
    assert list(verdicts(streamproof(*words).out).values()).count("violated") == 2
    done = streamproof(*words, "--first")
    assert done.code == 13
    assert verdicts(done.out) == {
        "low": "holds",
        "slow": "holds",
        "both": "holds",
        "fine": "holds",
        "rises": "violated",
        "grows": "inconclusive",
    }


@pytest.mark.parametrize("tier", ["python", "compiled"])
def test_a_violation_is_shown_while_the_search_goes_on(two: Path, tier: str) -> None:
    """The counterexample is on the screen and on disk before the search ends; Ctrl-C afterwards still reports it."""
    words = [sys.executable, "-m", "streamproof", "check", "two_counters.py", "--tier", tier, "--json", "answer.json"]
    with subprocess.Popen(words, cwd=two, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as search:
        assert search.stdout is not None
        shown = []
        for text in search.stdout:
            shown.append(text)
            if text.startswith("also violated, after 5 steps: slow"):
                break
        assert shown[0] == "Counterexample: low is violated after step 3\n"
        assert sorted(p.name for p in (two / "streamproof-out" / "two").glob("*.itf.json")) == [
            "low.itf.json",
            "slow.itf.json",
        ]
        search.send_signal(signal.SIGINT)
        rest = search.stdout.read()
    assert search.returncode == 130
    assert "\n  low       invariant  violated\n" in rest
    assert "Counterexample" not in rest
    found = verdicts((two / "answer.json").read_text())
    assert (found["low"], found["slow"], found["fine"]) == ("violated", "violated", "inconclusive")


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("more", [(), ("--coverage",), ("--certificate", "c.certificate")])
def test_what_a_search_found_before_its_time_limit_is_reported(streamproof: Any, more: tuple[str, ...]) -> None:
    """The violation decides the exit code, what is open is inconclusive, and the JSON has both."""
    words = ("check", "two_counters.py", "-p", "top=1000000", "--timeout", "1", "-q", "--json", "a.json")
    done = streamproof(*words, *more)
    assert done.code == 12
    document = json.loads(Path("a.json").read_text())
    found = verdicts(json.dumps(document))
    assert (found["low"], found["both"], found["rises"]) == ("violated", "holds", "inconclusive")
    assert document["stopped"] == "time_limit"
    assert "violated: low" in done.out
