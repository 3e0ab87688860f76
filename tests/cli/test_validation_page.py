"""The page of `validate --html`: what was rejected, in which states, and why; what was accepted, and what is open."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from chromium import PROGRAM, Chromium
from nonempty import nonempty
from strict_page import StrictPage

LAMPS = """
from streamproof import Array, Model, Range, State, action, require


class Lamps(Model):
    \"\"\"Lamps and levels: the log of the first rows does not say which level was chosen.\"\"\"

    check_deadlock = False

    def state(self):
        return State(on=Array(["a", "<b>"], Range(0, 1)), level=Range(0, 2))

    @action(lamp=["a", "<b>"], level=range(3))
    def switch(self, s, lamp, level):
        require(s.on[lamp] == 0)
        require(lamp == "a" or (s.on["a"] == 1 and s.level == level))
        s.on[lamp] = 1
        s.level = level
"""
MARKUP = "<script>alert(1)</script>\x1b[31m"


@pytest.fixture
def page(folder: Path, streamproof: Callable[..., Any]) -> Callable[..., str]:
    """The page about a log of these events, each a name of a lamp or a whole event, and its exit code."""
    (folder / "lamps.py").write_text(LAMPS)

    def made(code: int, events: Sequence[str | dict[str, Any]], *words: str, trace: str = "t") -> str:
        lines = []
        for number, event in enumerate(events):
            what = {"event": "switch", "args": {"lamp": event}} if isinstance(event, str) else event
            lines.append(json.dumps({"trace": trace, "process": "p", "seq": number, **what}) + "\n")
        (folder / "log.ndjson").write_text("".join(lines))
        done = streamproof("validate", "log.ndjson", "--model", "lamps.py", "--html", "at.html", *words)
        assert done.code == code, done.err
        return (folder / "at.html").read_text()

    return made


def text_of(page: str) -> str:
    """The text of a page that fetches nothing, in order and with single spaces."""
    read = StrictPage(page)
    assert read.fetched == []
    assert "script" not in read.tags
    return " ".join(" ".join(read.text).split())


def test_a_rejection_has_events_states_and_the_false_condition(page: Callable[..., str]) -> None:
    """The accepted events with their lines, three states of which the log tells none, one reason for all of them."""
    found = page(161, ["a", "<b>", "<b>", "a"])
    text = text_of(found)
    for said in (
        "1 ✗ rejected",
        "2 of 4 events matched",
        "p#0 switch(lamp=a) log.ndjson:1 p#1 switch(lamp=<b>) log.ndjson:2 rejected p#2 switch(lamp=<b>) log.ndjson:3",
        "2 events accepted before it; 3 states of the model fit them",
        "switch(lamp=<b>) is not possible: s.on[lamp] == 0 because s.on[<b>] = 1 in states 1, 2, 3",
        "state 1 of 3 level = 0 state 2 of 3 level = 1 state 3 of 3 level = 2",
    ):
        assert said in text, said
    (drawn,) = re.findall(r'<svg class="graph".*?</svg>', found, re.DOTALL)
    assert (drawn.count('class="box'), drawn.count('class="box bad"'), drawn.count('class="edge')) == (5, 1, 6)
    assert "switch(lamp=&lt;b&gt;)" in drawn


def test_the_json_agrees_with_the_page(page: Callable[..., str], folder: Path) -> None:
    """Each reason of the frontier, and each state before the event, is on the page as it is in the JSON."""
    text = text_of(page(161, ["a", "<b>", "<b>"], "--json", "at.json"))
    (verdict,) = json.loads((folder / "at.json").read_text())["verdicts"]
    rejection = verdict["rejection"]
    for one in nonempty(rejection["candidates"]):
        assert f"{one['action']} is not possible: {' '.join(one['because'].split())}" in text
    for state in nonempty(rejection["frontier"]["states"]):
        assert " ".join(state) in text
    assert " ".join(f"{k} = {v}" for k, v in rejection["states_before"][0].items()) in text


def test_an_accepted_log_has_no_rejection(page: Callable[..., str]) -> None:
    """The numbers, and what the verdict means."""
    found = page(0, ["a", "<b>"])
    text = text_of(found)
    assert "1 ✓ accepted" in text
    assert "2 of 2 events matched; followed by Lamps, which has the rules of lamps" in text
    assert "nothing is said of the others" in text
    assert "Events up to the rejected one" not in text
    assert 'class="bad"' not in found


def test_a_log_that_decides_nothing_says_why(page: Callable[..., str]) -> None:
    """No event is a step: the reason of the verdict, and no rejection."""
    text = text_of(page(160, [{"event": "switch", "args": {"lamp": "<b>"}, "refused": True}]))
    assert "1 ? inconclusive" in text
    assert "no event is an action of the model" in text
    assert "Events up to the rejected one" not in text


def test_an_unknown_instance_is_named(page: Callable[..., str]) -> None:
    """The value of the argument, and those that the model has."""
    text = text_of(page(161, ["a", "c"]))
    assert "lamp is c, its values are a, <b>" in text


def test_names_of_a_log_are_data(page: Callable[..., str]) -> None:
    """Markup and control characters in traces, events and arguments."""
    found = page(161, ["a", MARKUP], trace=MARKUP)
    assert not {"\x1b"} & {*found}
    assert "<script" not in found
    assert unescape(found).count("<script>alert(1)</script>\\x1b[31m") > 3
    assert StrictPage(found).tags == StrictPage(page(161, ["a", "x"], trace="x")).tags


def test_more_events_than_are_kept_are_counted(page: Callable[..., str]) -> None:
    """Of 150 accepted events the last hundred are listed, under their numbers."""
    looks: list[str | dict[str, Any]] = [{"event": "switch", "args": {"lamp": "a"}, "refused": True}] * 149
    text = text_of(page(161, ["a", *looks, "a"]))
    assert "150 events accepted before it; the last 100" in text
    assert "log.ndjson:50 " not in text
    assert "p#50 switch(lamp=a) refused log.ndjson:51" in text


def test_a_file_of_others_is_kept_and_nothing_is_validated(page: Callable[..., str], folder: Path) -> None:
    """A page that streamproof did not write stays, and no line of a verdict is printed."""
    (folder / "at.html").write_text("mine")
    with pytest.raises(AssertionError, match=r"at\.html"):
        page(161, ["a", "a"])
    assert (folder / "at.html").read_text() == "mine"


@pytest.mark.long
@pytest.mark.skipif(PROGRAM is None, reason="needs chromium: apt-get install chromium")
def test_the_page_in_a_browser(page: Callable[..., str], folder: Path, tmp_path: Path) -> None:
    """Nothing is wider than a phone, dark or light; the graph scrolls in its own frame; keys open hidden parts."""
    page(161, ["a", "<b>", "<b>"], trace="t" * 300)
    with Chromium(tmp_path / "profile") as browser:
        browser.open((folder / "at.html").absolute().as_uri())
        for width, dark in nonempty([(390, True), (1280, False)]):
            browser.resize(width, dark=dark)
            assert browser.js("document.documentElement.scrollWidth") <= width
            assert browser.js("document.querySelector('svg.graph').getBoundingClientRect().height") > 100
            assert browser.js("document.querySelectorAll('svg.graph .bad').length") == 1
            shade = browser.js("getComputedStyle(document.body).backgroundColor")
            assert (shade == "rgb(17, 21, 27)") is dark
            browser.screenshot(tmp_path / f"{width}.png")
        assert browser.js("document.querySelector('.frontier .state b').innerText") == "state 1 of 3"
        browser.js("document.querySelector('summary').focus()")
        browser.key("Enter")
        browser.until("document.querySelector('details').open")
