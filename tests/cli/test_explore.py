"""Walking through a model: the page of `explore` and the lines of `step`."""

from __future__ import annotations

import http.client
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from chromium import PROGRAM, Chromium
from nonempty import nonempty
from streamproof.base.errors import StreamproofError, SystemFailure, UsageError
from streamproof.base.options import SearchOptions
from streamproof.exploring.explorer import Explorer, explorer_of
from streamproof.exploring.page import explorer_page, query_of, visit_of
from streamproof.exploring.server import ExplorerServer
from streamproof.exploring.terminal import Session
from streamproof.report.behaviour import behaviour_page
from streamproof.system.interpreter import Interpreter
from streamproof.traces.replay import replay

LIMITS = SearchOptions(max_states=100_000, time_limit=60.0)
LASSO = {"model": "failover", "variant": "literal-pseudocode"}
HOSTILE = '''
from streamproof import Enum, Model, State, action, require

WORD = "<script>alert(1)</script>"
CODES = "\\x1b[2J\\u202e"


class Hostile(Model):
    """Names that are no plain text."""

    def state(self):
        return State(word=Enum(WORD, CODES, init=WORD))

    @action(to=[WORD, CODES])
    def become(self, s, to):
        require(s.word != to)
        s.word = to
'''


def explorer(model: str, variant: str | None = None, **more: Any) -> Explorer:
    """An explorer of a model."""
    return explorer_of(model, variant, None, (), None, SearchOptions(**{**LIMITS.given(), **more}))[0]


class Client:
    """Requests to a server of an explorer, which answers in a thread."""

    def __init__(self, server: ExplorerServer) -> None:
        self.server = server
        self.origin = f"http://127.0.0.1:{server.server_port}"
        self.root = f"/{server.token}/"

    def request(self, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, str, str]:
        """Status, place to go to, and text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=60)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        found = answer.status, answer.getheader("Location") or "", answer.read().decode()
        connection.close()
        return found

    def page(self, query: str = "") -> str:
        """The text of a page."""
        status, _, text = self.request("GET", self.root + query)
        assert status == 200, text
        return text

    def find(self, query: str, body: str) -> tuple[int, str, str]:
        """The answer to a search."""
        return self.request("POST", f"{self.root}find{query}", body, Origin=self.origin)


@pytest.fixture
def serve() -> Iterator[Callable[[Explorer], Client]]:
    """Starts servers, which end with the test."""
    running: list[tuple[ExplorerServer, threading.Thread]] = []

    def start(explored: Explorer) -> Client:
        server = ExplorerServer(explored)
        thread = threading.Thread(target=server.answer)
        thread.start()
        running.append((server, thread))
        return Client(server)

    yield start
    for server, thread in running:
        server.work.put(None)
        thread.join()
        server.server_close()


def link(page: str, label: str) -> str:
    """The target of the link with a text."""
    found = re.search(rf'<a href="([^"]*)"[^>]*>(?:<kbd>\d</kbd> )?<code>{re.escape(label)}</code>', page)
    assert found is not None, label
    return unescape(found[1])


# --- what is shown agrees with the interpreter


@pytest.mark.parametrize("model", ["reference.die_hard", "failover", pytest.param("baton", marks=pytest.mark.long)])
def test_moves_and_searches_are_those_of_the_interpreter(model: str) -> None:
    """Every label is enabled, with the interpreter's next state, or blocked; a search takes as few steps as one by hand."""
    explored = explorer(model)
    visit, interpreter = explored.begin(), Interpreter(explored.system)
    labels = {i.label for i in explored.system.instances}
    for _ in range(12):
        moves = explored.moves(visit)
        assert {(m.label, m.after) for m in moves.enabled} == {
            (s.instance.label, s.state) for s in interpreter.steps(visit.state)
        }
        blocked = [label for one in moves.blocked for label in one.labels]
        assert {*blocked, *(m.label for m in moves.enabled)} == labels
        if not moves.enabled:
            break
        visit = explored.take(visit, moves.enabled[-1].label)
    replay(explored.system, visit.trace)
    assert visit_of(explored, "?" + query_of(explored, visit)) == visit
    target = visit.state
    levels, level, distance = {explored.initial[0]}, {explored.initial[0]}, 0
    while target not in level:
        level = {s.state for state in level for s in interpreter.steps(state)} - levels
        levels |= level
        distance += 1
    condition = " and ".join(
        f"s.{v.name} == {value!r}" for v, value in explored.system.named(target) if type(value) is int
    )
    found = explored.find(explored.begin(), condition or "True")
    replay(explored.system, found.trace)
    assert len(found.trace.steps) <= distance


def test_a_search_without_a_find_names_its_bound() -> None:
    """All reachable states, or as many as the limit allows, and then nothing is decided."""
    whole, cut = explorer("reference.die_hard"), explorer("reference.die_hard", max_states=3)
    with pytest.raises(
        UsageError, match=r"no state with s.large == 6: the search met all 16 states reachable from this"
    ):
        whole.find(whole.begin(), "s.large == 6")
    with pytest.raises(UsageError, match=r"in the first \d+ states from this state, which decides nothing"):
        cut.find(cut.begin(), "s.large == 6")
    with pytest.raises(UsageError, match=r"no violation: the search met all 16 states"):
        whole.violate()


@pytest.mark.parametrize(
    "text", ["s.large = 4", "s.nothing == 1", "s.large", "", "s.__class__ == 1", "open('x') == 1", "a.b", "(" * 9999]
)
def test_a_text_that_is_no_condition_is_refused(text: str) -> None:
    """A condition is lowered as in a model, and is never run."""
    explored = explorer("reference.die_hard")
    with pytest.raises(StreamproofError):
        explored.find(explored.begin(), text)


def test_an_evaluation_error_is_no_deadlock(streamproof: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that is an error of the model is shown with its message, and a search that meets one ends with 75."""
    monkeypatch.setattr(sys, "stdin", StringIO("1\n1\nviolation\n"))
    done = streamproof("step", "two.py:Overflows")
    assert done.code == 75
    assert "increment(): s.n leaves Range(0, 2) in increment() (new s.n = 3)" in done.out
    assert "deadlock" not in done.out


# --- the page


def test_a_page_leads_along_a_lasso(serve: Callable[[Explorer], Client]) -> None:
    """A violation is gone to, its address holds the behaviour, and the page shows steps, changes, and why not."""
    client = serve(explorer("failover", "literal-pseudocode"))
    page = client.page()
    assert "<h1>failover literal-pseudocode</h1>" in page
    assert "s.status[t] == &#39;RUNNING&#39;   because  s.status[A] = CREATED (initially)" in page
    assert "status[A]: CREATED -&gt; SCHEDULED" in client.page(link(page, "schedule(r=A)"))
    status, place, _ = client.find("", "goal=violation&text=termination")
    assert status == 303
    found = client.page("?" + place.partition("?")[2])
    assert "states 9 to 10 repeat forever" in found
    assert "data:image/svg+xml" in found
    assert "termination: violated" in found
    assert "state 9" in client.page(link(found, "failover_region(r=A)"))
    document = json.loads(client.request("GET", f"{client.root}trace.itf.json?{place.partition('?')[2]}")[2])
    assert document["loop"] == 9
    alone = client.request("GET", f"{client.root}behaviour.html?{place.partition('?')[2]}")[2]
    assert "<script" not in alone
    assert "the loop starts here" in alone
    assert "termination is violated: an infinite execution exists" in alone
    assert document["#meta"]["property"] == "termination"


def test_a_step_that_is_no_longer_possible_is_named(serve: Callable[[Explorer], Client]) -> None:
    """An address for another state of the model shows what is left of its behaviour."""
    client = serve(explorer("failover"))
    page = client.page("?s=schedule(r%3DA)&s=schedule(r%3DA)&s=run(t%3DA)")
    assert "step 2: schedule(r=A) is not enabled in state 1; " in page
    assert "has no action" in client.page("?s=nothing()")


def test_searches_that_fail_say_so_on_the_page(serve: Callable[[Explorer], Client]) -> None:
    """The message has the bound, or the mistake of the condition, escaped."""
    client = serve(explorer("reference.die_hard"))
    assert "the search met all 16 states" in client.find("", "goal=state&text=s.large+%3D%3D+6")[2]
    wrong = client.find("", "goal=state&text=s.%3Cscript%3E")[2]
    assert 'value="s.&lt;script&gt;"' in wrong
    assert "<script>" not in wrong
    assert client.find("", "goal=nothing")[0] == 200
    assert client.find("", "goal=deep")[0] == client.find("", "goal=action")[0] == 303


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/", {}),
        ("GET", "/guessed/", {}),
        ("GET", "{root}", {"Host": "evil.example"}),
        ("GET", "{root}", {"Host": "127.0.0.1"}),
        ("GET", "{root}", {"Origin": "http://evil.example"}),
        ("POST", "{root}find", {}),
        ("POST", "{root}find", {"Origin": "null"}),
        ("POST", "{root}find", {"Origin": "http://evil.example"}),
        ("POST", "/guessed/find", {"Origin": "{origin}"}),
    ],
)
def test_foreign_requests_are_refused(
    serve: Callable[[Explorer], Client], method: str, path: str, headers: dict[str, str]
) -> None:
    """Another token, host or origin gets 403 and nothing of the model."""
    client = serve(explorer("reference.die_hard"))
    given = {name: value.format(origin=client.origin) for name, value in headers.items()}
    status, _, text = client.request(
        method, path.format(root=client.root), "goal=deep" if method == "POST" else None, **given
    )
    assert (status, "small" in text) == (403, False)


def test_other_wrong_requests_get_one_line(serve: Callable[[Explorer], Client]) -> None:
    """Unknown pages, addresses of another form, forms that are too long, and connections without a request."""
    client = serve(explorer("reference.die_hard"))
    idle = [socket.create_connection(("127.0.0.1", client.server.server_port)) for _ in range(5)]
    assert client.request("GET", client.root + "nothing")[0] == 404
    assert client.request("GET", client.root + "?i=99")[0] == client.request("GET", client.root + "?at=x")[0] == 422
    assert client.request("GET", client.root + "test.py")[2].startswith("no test of this behaviour: it has no step")
    assert client.request("POST", client.root + "find", "x" * 99_999, Origin=client.origin)[0] == 413
    for one in nonempty(idle):
        one.close()


# --- names of a model are data


def test_names_are_escaped_on_the_page_and_on_terminals(
    serve: Callable[[Explorer], Client], streamproof: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither markup nor control characters of a model reach the reader as such."""
    (folder / "hostile.py").write_text(HOSTILE)
    client = serve(explorer("hostile.py"))
    page = client.page()
    other = client.page(re.findall(r'<a href="(\?s=[^"]*)"', page)[0])
    monkeypatch.setattr(sys, "stdin", StringIO("1\nwhy\nlist\ntest\n"))
    done = streamproof("step", "hostile.py")
    assert done.code == 0
    for text in nonempty([page, other, done.out, client.request("GET", f"{client.root}behaviour.html")[2]]):
        assert "<script>alert" not in text or text is done.out
        assert not re.search("[\x1b\u202e]", text)


# --- the terminal


def test_a_script_steps_through_a_model(streamproof: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps by number and label, undo, searches, a saved trace that replays, a printed test that passes."""
    lines = "1\nundo\nincrement\nf s.n == 3\nwhy\nstate\ngo 1\ngo 3\nlist\nsave kept.itf.json\n"
    monkeypatch.setattr(sys, "stdin", StringIO(lines))
    done = streamproof("step", "counter.py")
    assert (done.code, done.err) == (0, "")
    assert "2 steps to a state with s.n == 3" in done.out
    assert "low is false here\n    s.n < 3   because  s.n = 3 (step 3)" in done.out
    assert "s.n < self.limit   because  s.n = 3 (step 3)" in done.out
    assert "no action is enabled: a deadlock" in done.out
    assert streamproof("replay", "kept.itf.json", "--model", "counter.py", "-q").code == 0
    monkeypatch.setattr(sys, "stdin", StringIO("test\nquit\nnever read"))
    printed = streamproof("step", "counter.py", "kept.itf.json").out
    space: dict[str, Any] = {}
    exec(printed[printed.index("# A behaviour") :], space)
    space["test_behaviour"]()
    space["STEPS"].append("increment()")
    with pytest.raises(StreamproofError):
        space["test_behaviour"]()


@pytest.mark.parametrize(
    "text",
    [
        "9",
        "0",
        "9" * 9999,
        "²",
        "nothing",
        "go 7",
        "f s.x == 1",
        "save",
        "save counter.py",
        "action no",
        "undo",
        "v low x",
    ],
)
def test_a_wrong_line_of_a_script_ends_it(streamproof: Any, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """The message names it, no later line is done, and no file of others is replaced."""
    monkeypatch.setattr(sys, "stdin", StringIO(f"{text}\nsave later.itf.json\n"))
    done = streamproof("step", "counter.py")
    assert done.code not in (0, 130)
    assert done.err.startswith("streamproof: error: ")
    assert not Path("later.itf.json").exists()


@pytest.mark.parametrize("verb", ["step", "explore"])
def test_a_trace_of_another_model_is_refused(streamproof: Any, verb: str) -> None:
    """One message names both models."""
    trace = Path(__file__).parents[2] / "counterexamples/failover/no-versioning/fresh_attempts.itf.json"
    done = streamproof(verb, "counter.py", str(trace))
    assert done.code == 2
    assert "is a trace of failover, not of counter" in done.err


def test_a_terminal_forgives_wrong_lines(folder: Path) -> None:
    """On a terminal a wrong line is reported, the next one is read and completed, and Ctrl-D ends the session with 0."""
    pytest.importorskip("readline")
    code, out = on_terminal(folder, b"9\nincr\t\nquit\n", "step", "counter.py")
    assert code == 0
    assert "no step '9'" in out
    assert "n: 0 -> 1" in out
    assert on_terminal(folder, b"\x04", "step", "counter.py")[0] == 0


def on_terminal(folder: Path, typed: bytes, *words: str) -> tuple[int, str]:
    """Exit code and output of the program on a pseudo terminal."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execve(
            sys.executable,
            [sys.executable, "-m", "streamproof", *words],
            {**os.environ, "TERM": "dumb", "NO_COLOR": "1"},
        )
    out = b""
    while b"> " not in out:
        out += os.read(terminal, 4096)
    os.write(terminal, typed)
    try:
        while some := os.read(terminal, 4096):
            out += some
    except OSError:  # the end of a terminal on Linux
        pass
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    os.close(terminal)
    return code, out.decode()


# --- the program


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_a_signal_ends_the_page(folder: Path, number: int) -> None:
    """The address is printed first, and a signal ends the program with 130."""
    words = [sys.executable, "-m", "streamproof", "explore", "counter.py"]
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/\n", process.stdout.readline())
    process.send_signal(number)
    assert (process.wait(), process.communicate()[1]) == (130, "streamproof: error: interrupted\n")


def test_a_port_in_use_is_named() -> None:
    """Two servers have no common port."""
    explored = explorer("reference.die_hard")
    with ExplorerServer(explored) as first, pytest.raises(SystemFailure, match=rf"port {first.server_port}: "):
        ExplorerServer(explored, first.server_port)


# --- the check beside


class Program:
    """The program with its page; a context manager that ends it by a signal."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "streamproof", "explore", *words],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill() if error[0] else self.process.terminate()
        self.process.communicate()

    def request(self, method: str, path: str, body: str | None = None) -> tuple[int, str]:
        """Status and text."""
        url = urlsplit(self.address)
        connection = http.client.HTTPConnection(url.netloc, timeout=60)
        connection.request(method, url.path + path, body, {"Origin": f"http://{url.netloc}"})
        answer = connection.getresponse()
        found = answer.status, answer.read().decode()
        connection.close()
        return found

    def progress(self, word: str) -> str:
        """The part about the check, once it has a word."""
        while word not in (text := self.request("GET", "check")[1]):
            assert "data-live" in text, text
            time.sleep(0.05)
        return text


def descendants(process: int) -> set[int]:
    """The processes that a process has begun, and those that these have."""
    found = {process}
    for path in sorted(Path("/proc").glob("[0-9]*/stat"), key=lambda path: int(path.parent.name)):
        with suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) in found:
                found.add(int(path.parent.name))
    return found - {process}


def test_a_check_beside_has_the_verdicts_of_check(folder: Path, streamproof: Any) -> None:
    """Of every property; the violation leads to its behaviour, and the page stays usable."""
    streamproof("check", "counter.py", "-q", "--json", "at.json")
    expected = {p["name"]: p["verdict"] for p in json.loads((folder / "at.json").read_text())["properties"]}
    with Program(folder, "counter.py") as program:
        assert "check all properties" in program.request("GET", "")[1]
        assert program.request("POST", "find", "goal=check")[0] == 303
        text = program.progress("finished")
        found = dict(re.findall(r"<li>(?:<a [^>]*>)?(\w+)(?:</a>)? <b [^>]*>(\w+)", text))
        assert found == expected
        assert "finished: 4 states on 4 levels" in text
        place = re.search(r'href="\./([^"]*)">low</a>', text)
        assert place is not None
        page = program.request("GET", unescape(place[1]))[1]
        assert "low: violated" in page
        assert "<b>low</b> is false here" in page
        assert program.request("POST", "find", "goal=check")[0] == 303
        assert "finished" in program.progress("finished")


GRID = """
from streamproof import Model, Range, State, action, invariant, require


class Grid(Model):
    \"\"\"Two counters with many states.\"\"\"

    check_deadlock = False

    def state(self):
        return State(a=Range(0, 20_000), b=Range(0, 20_000))

    @action
    def left(self, s):
        require(s.a < 20_000)
        s.a += 1

    @action
    def right(self, s):
        require(s.b < 20_000)
        s.b += 1

    @invariant
    def small(self, s):
        return s.a + s.b < 5
"""


def test_a_violation_is_shown_while_the_check_goes_on_and_a_signal_ends_both(folder: Path) -> None:
    """A search of hours: the level of the violation has been left when it is shown. No process stays."""
    (folder / "grid.py").write_text(GRID)
    with Program(folder, "grid.py") as program:
        program.request("POST", "find", "goal=check")
        text = program.progress(">small</a>")
        assert "data-live" in text
        assert re.search(r"\d states on [\d,]+ levels, [\d,]+ of them not expanded", program.progress("not expanded"))
        others = descendants(program.process.pid)
        assert len(others) >= 2
        began = time.monotonic()
        program.process.terminate()
        assert program.process.wait() == 130
        assert time.monotonic() - began < 5
        assert not {one for one in others if Path(f"/proc/{one}").exists()}


@pytest.mark.long
def test_a_stopped_check_keeps_what_it_found(folder: Path) -> None:
    """The explorer goes on; a stopped check does not begin again."""
    (folder / "grid.py").write_text(GRID)
    with Program(folder, "grid.py") as program:
        program.request("POST", "find", "goal=check")
        program.progress(">small</a>")
        for goal in nonempty(["stop", "check", "stop"]):
            assert program.request("POST", "find", f"goal={goal}")[0] == 303
            text = program.request("GET", "check")[1]
            assert "<p>stopped" in text
            assert "data-live" not in text
            assert ">small</a>" in text
        assert program.request("GET", "?s=left()")[0] == 200


@pytest.mark.long
def test_a_check_that_ends_early_says_why(folder: Path) -> None:
    """An evaluation error of the model, with the way there."""
    with Program(folder, "two.py:Overflows") as program:
        program.request("POST", "find", "goal=check")
        text = program.progress("ended early, evaluation error")
        assert "evaluation error of the model</a>" in text
        assert "leaves Range(0, 2)" in text


@pytest.mark.long
def test_names_are_escaped_in_the_check(folder: Path) -> None:
    """The address of a violation has the labels of its steps, which are no markup."""
    more = "\n    @invariant\n    def same(self, s):\n        return s.word == WORD\n"
    (folder / "hostile.py").write_text(HOSTILE.replace("action, require", "action, invariant, require") + more)
    with Program(folder, "hostile.py") as program:
        program.request("POST", "find", "goal=check")
        text = program.progress("finished")
        place = re.search(r'href="\./([^"]*)">same</a>', text)
        assert place is not None
        page = program.request("GET", unescape(place[1]))[1]
        assert "<b>same</b> is false here" in page
        for one in nonempty([text, page]):
            assert "<script>alert" not in one
            assert not re.search("[\x1b\u202e]", one)


@pytest.mark.long
@pytest.mark.skipif(PROGRAM is None, reason="needs chromium: apt-get install chromium")
def test_a_check_in_a_browser(folder: Path, tmp_path: Path) -> None:
    """Begun by a key, its progress replaces itself, a violation is gone to; nothing is wider than a phone."""
    with Program(folder, "failover", "--variant", "literal-pseudocode") as program, Chromium(tmp_path / "p") as browser:
        browser.open(program.address)
        browser.key("c")
        browser.until("document.querySelector('#check')?.innerText.includes('finished: 74 states')")
        for width, dark in nonempty([(390, True), (1280, False)]):
            browser.resize(width, dark=dark)
            assert browser.js("document.documentElement.scrollWidth") <= width
            browser.screenshot(tmp_path / f"{width}.png")
        browser.js("document.querySelector('#check a').click()")
        browser.until("location.search.includes('p=termination') && document.body.innerText.includes('repeat forever')")


@pytest.mark.skipif(PROGRAM is None, reason="needs chromium: apt-get install chromium")
def test_a_journey_in_a_browser_by_keys_alone(serve: Callable[[Explorer], Client], tmp_path: Path) -> None:
    """Steps, back, a search, a violation by keys; nothing is wider than a phone, light or dark; no error of the page."""
    client = serve(explorer("failover", "literal-pseudocode"))
    with Chromium(tmp_path / "profile") as browser:
        browser.open(client.origin + client.root)
        browser.key("1")
        browser.until("location.search.includes('s=schedule') && document.readyState === 'complete'")
        assert "status SCHEDULED" in browser.js("document.querySelector('svg.graph').textContent")
        browser.key("ArrowLeft")
        browser.until("location.search.includes('at=0') && document.readyState === 'complete'")
        browser.key("/")
        browser.until("document.activeElement.name === 'text'")
        browser.call("Input.insertText", text="s.losses_left == 0")
        browser.key("Enter")
        browser.until(
            "document.body.innerText.includes('to a state with s.losses_left == 0') && document.readyState === 'complete'"
        )
        browser.key("v")
        browser.until("document.body.innerText.includes('repeat forever') && document.readyState === 'complete'")
        for width, dark in nonempty([(390, True), (1280, False)]):
            browser.resize(width, dark=dark)
            assert browser.js("document.documentElement.scrollWidth") <= width
            browser.screenshot(tmp_path / f"{width}.png")
        assert browser.js("getComputedStyle(document.querySelector('img')).width") != "0px"


@pytest.mark.long
@pytest.mark.skipif(PROGRAM is None, reason="needs chromium: apt-get install chromium")
def test_tokens_move_on_the_graph_in_a_browser(serve: Callable[[Explorer], Client], tmp_path: Path) -> None:
    """At each step of the explorer, and by arrow keys in the saved page, at 390 and 1280 px, light and dark."""
    tokens_shown = "[...document.querySelectorAll('svg.graph text.token')].filter((t) => t.checkVisibility())"
    shown = f"{tokens_shown}.map((t) => t.textContent)"
    explored = explorer("baton", "head-unasked")
    client = serve(explored)
    visit = explored.violate("no_early_end")
    tokens = [["RECORD"], [], ["END"], ["L"], []]
    path = tmp_path / "behaviour.html"
    path.write_text(behaviour_page(explored.system, visit.trace))
    with Chromium(tmp_path / "profile") as browser:
        browser.open(client.origin + client.root + "?" + query_of(explored, visit.move(0)))
        assert browser.js(shown) == []
        for at, expected in enumerate(tokens, 1):
            browser.key("ArrowRight")
            browser.until(f"document.title.endsWith('state {at}') && document.readyState === 'complete'")
            assert browser.js(shown) == expected
        browser.open(path.as_uri())
        browser.js("document.querySelector('.stepper :checked').focus()")
        for expected in reversed([[], *tokens[:-1]]):
            browser.key("ArrowUp")
            browser.until(f"JSON.stringify({shown}) === {json.dumps(json.dumps(expected, separators=(',', ':')))}")
        for width, dark in nonempty([(390, True), (390, False), (1280, True)]):
            browser.resize(width, dark=dark)
            assert browser.js("document.documentElement.scrollWidth") <= width


RETRY = '''
from streamproof import WEAK, Bool, Model, State, action, leads_to, require, temporal


class Retry(Model):
    """A message may be lost, each time."""

    def state(self):
        return State(sent=Bool(), arrived=Bool())

    @action(fairness=WEAK)
    def send(self, s):
        require(not s.sent and not s.arrived)
        s.sent = True

    @action
    def lose(self, s):
        require(s.sent)
        s.sent = False

    @action(fairness=WEAK)
    def deliver(self, s):
        require(s.sent)
        s.sent, s.arrived = False, True

    @temporal
    def acknowledged(self, s):
        """Every message arrives."""
        return leads_to(s.sent, s.arrived)
'''


@pytest.mark.parametrize(
    ("query", "fairness", "conditions"),
    [
        ("?s=send()&s=lose()&loop=0", "This behaviour is fair:", "false in every state from state 1 on: s.arrived"),
        ("?s=send()&loop=1", "This behaviour is not fair", "which is not fair"),
        ("?s=send()&s=deliver()&loop=2", "This behaviour is fair:", None),
    ],
)
def test_a_lasso_says_what_it_means(
    query: str, fairness: str, conditions: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is fair and to which steps, and which temporal properties are false of it and why; also on a terminal."""
    path = tmp_path / "retry.py"
    path.write_text(RETRY)
    walking = explorer(str(path))
    visit = visit_of(walking, query)
    found = unescape(re.sub(r"<[^>]+>", "", explorer_page(walking, visit)))
    assert fairness in found
    assert ("acknowledged is false of this behaviour" in found) is (conditions is not None)
    assert conditions is None or conditions in found
    shown = StringIO()
    monkeypatch.setattr(sys, "stdin", StringIO())
    Session(walking, visit, shown).run()
    assert (fairness.removesuffix(":").removeprefix("This behaviour is ")) in shown.getvalue()
    assert ("acknowledged is false of this behaviour" in shown.getvalue()) is (conditions is not None)
