"""`streamproof drive`: adapters that are right, wrong, silent, slow, broken, or answer otherwise than asked for."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loading import load
from streamproof.driving import Adapter, Happened, Refused, assert_no_difference
from streamproof.driving.connection import adapter_source, of_class
from streamproof.driving.drive import Drive, DriveOptions, drive
from streamproof.driving.driver import Driver
from streamproof.driving.messages import AdapterFailure
from streamproof.driving.script import Asked, CallScript
from streamproof.driving.suite import MOST_STATES, make_suite, occurring, suite_or_none
from streamproof.driving.testing import subject_of
from streamproof.selection import selected
from streamproof.user_code import import_file

LEASE = Path(__file__).resolve().parents[2] / "examples" / "lease"
MODEL = str(LEASE / "lease.py")
SUBJECT = subject_of(selected(MODEL))
lease: Any = import_file(LEASE / "adapter.py")


def driven(adapter: Callable[[], Any], walks: int = 5, **more: Any) -> Drive:
    """A drive of the lease model: its suite, and walks."""
    options = DriveOptions(walks=walks, seed=1, **more)
    return drive(SUBJECT, of_class(adapter), suite_or_none(SUBJECT, MOST_STATES), options)


def test_a_correct_service_has_no_difference_and_all_is_covered() -> None:
    """Every action happens, every refusal is compared, and values are."""
    found = driven(lease.LeaseAdapter)
    assert (found.answer, found.doubts) == ("no difference", ())
    assert all(found.coverage.accepted[action.name] for action in SUBJECT.system.actions)
    assert found.coverage.values > 100
    assert found.coverage.refusals > 10


def test_the_shortest_script_is_found() -> None:
    """A storage without fencing is caught in five calls: no shorter script shows it."""
    found = driven(lease.Unfenced)
    assert found.shortest is not None
    calls = [str(call) for call in found.shortest.script.calls]
    assert calls == [
        "grant(client=0)",
        "expire()",
        "grant(client=1)",
        "write(client=1, token=2)",
        "write(client=0, token=1)",
    ]
    assert found.shortest.message == "write(client=0, token=1) happened, and is not possible in the model"
    assert found.again


class Forgetful(lease.LeaseAdapter):
    """Reports that nothing was ever stored."""

    def observe(self, of: Any) -> Any:
        """Nothing stored."""
        return {**super().observe(of), "stored": 0}


def test_a_wrong_value_is_a_difference() -> None:
    """An observed value that the model does not have is named, with the model's."""
    found = driven(Forgetful)
    assert found.answer == "difference"
    assert found.shortest.message == "observed: stored is 0, and 1 in the model"
    assert len(found.shortest.script.calls) == 2


class Refusing(lease.LeaseAdapter):
    """Grants one lease and no more."""

    def grant(self, client: int) -> None:
        """One only."""
        if self.leases.issued:
            raise Refused("enough")
        super().grant(client)


def test_a_refusal_of_what_must_be_possible_is_a_difference() -> None:
    """Unless the implementation decides by itself whether it does so."""
    found = driven(Refusing)
    assert found.shortest.message == "grant(client=0) was refused, and is possible in the model"
    own = type("Own", (Refusing,), {"own": ("grant",)})
    assert driven(own, without=("refuse",)).answer == "no difference"


class Silent(Adapter):
    """Does nothing that can be seen, and accepts everything."""

    def reset(self, parameters: Any, seed: int) -> None:
        """Nothing."""
        return None

    def do(self, action: str, args: Any) -> None:
        """Accepts."""
        return None


class Idle(Silent):
    """Makes no call."""

    own = ("grant", "expire", "write", "refuse")

    def do(self, action: str, args: Any) -> None:
        """Refuses."""
        raise Refused("later")


def test_nothing_observed_is_inconclusive() -> None:
    """An adapter without values is not called conforming where no refusal was compared, nor one that does nothing."""
    script = CallScript("one", (Asked("grant", {"client": 0}), Asked("expire")))
    everything = tuple(a.name for a in SUBJECT.system.actions)
    found = drive(SUBJECT, of_class(Silent), [script], DriveOptions(walks=0, seed=1, without=everything))
    assert found.answer == "inconclusive"
    assert found.doubts == ("nothing was observed: no value of the state, and no refusal",)
    found = driven(Idle, without=everything)
    assert (found.answer, found.doubts) == ("inconclusive", ("the implementation did nothing",))
    assert driven(Silent).answer == "difference"  # it accepts what must be refused


def test_an_action_that_never_happens_is_named() -> None:
    """It is inconclusive, until it is left out."""
    script = CallScript("one", (Asked("grant", {"client": 0}), Asked("expire")))
    options = DriveOptions(walks=0, seed=1)
    found = drive(SUBJECT, of_class(lease.LeaseAdapter), [script], options)
    assert (found.answer, found.left) == ("inconclusive", ("write", "refuse"))
    left_out = DriveOptions(walks=0, seed=1, without=("write", "refuse"))
    assert drive(SUBJECT, of_class(lease.LeaseAdapter), [script], left_out).answer == "no difference"


class Choosing(lease.LeaseAdapter):
    """Gives the lease to another client than the one that asks, and says so; expires leases by itself."""

    own = ("expire",)

    def grant(self, client: int) -> Happened:
        """To the other one."""
        other = 1 - client
        super().grant(other)
        return Happened(args={"client": other})

    def write(self, client: int, token: int) -> Happened:
        """After the lease has expired."""
        if self.leases.expire():
            self.event("expire")
        return super().write(client, token)

    refuse = write


def test_the_implementation_may_choose() -> None:
    """Another argument than asked for, another action, and steps by itself are followed."""
    assert driven(Choosing, walks=40).answer == "no difference"


def test_too_large_is_not_wrong() -> None:
    """An implementation that has more tokens than the instance is not blamed."""
    script = CallScript("many", tuple(Asked(a, {"client": 0} if a == "grant" else {}) for a in ("grant", "expire") * 5))
    found = drive(
        SUBJECT, of_class(lease.LeaseAdapter), [script], DriveOptions(walks=0, seed=1, without=("write", "refuse"))
    )
    assert found.difference is None
    assert found.ends == {"beyond bounds": 1}


def test_an_exception_is_a_failure_of_the_implementation() -> None:
    """It is shortened like a difference, and has a message of its own."""

    class Failing(lease.LeaseAdapter):
        def expire(self) -> None:
            raise ValueError("no clock")

    found = driven(Failing)
    assert (found.answer, found.shortest.ended) == ("difference", "error")
    assert re.fullmatch(
        r"the implementation failed: ValueError: no clock \(test_drive.py:\d+\)", found.shortest.message
    )
    assert [str(call) for call in found.shortest.script.calls] == ["expire()"]


def test_an_implementation_that_ends_its_process_has_failed() -> None:
    """Also one that is a class, whose process is the driver's."""

    class Ending(lease.LeaseAdapter):
        def expire(self) -> None:
            sys.exit(0)

    found = driven(Ending)
    assert (found.answer, found.shortest.ended) == ("difference", "error")
    assert "SystemExit: 0" in found.shortest.message


def test_an_adapter_may_change_the_arguments_that_it_gets() -> None:
    """What is compared is what was asked for."""

    class Taking(lease.LeaseAdapter):
        def do(self, action: str, args: Any) -> Any:
            return getattr(self, action)(**{name: args.pop(name) for name in [*args]})

    assert driven(Taking).answer == "no difference"


SCRIPTED = """
import json, os, sys, time
for number, line in enumerate(sys.stdin):
    call = json.loads(line)
    if call["call"] == "reset":
        print(json.dumps({"id": call["id"], "ready": True}), flush=True)
    elif call["call"] == "quit":
        break
    else:
        BODY
"""


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ("os._exit(3)", "crash", "the adapter ended with exit code 3 during"),
        ("os.kill(os.getpid(), 9)", "crash", "the adapter was ended by the signal SIGKILL during"),
        ("time.sleep(60)", "hang", "the adapter did not answer"),
        ("print('hello', flush=True)", "garbage", "a line of the adapter is not one JSON value"),
        (
            "print(json.dumps({'id': call['id'], 'accepted': 1}), flush=True)",
            "garbage",
            "has in 'accepted' something else",
        ),
        ("print(json.dumps({'id': 77, 'accepted': True}), flush=True)", "garbage", "answers the call 77"),
        ("print(json.dumps({'id': call['id'], 'state': {'stord': 1}}), flush=True)", "garbage", "no variable 'stord'"),
        ("print('[' * 100000, flush=True)", "garbage", "a line of the adapter is"),
        ("print('{', end='', flush=True); os._exit(0)", "garbage", "has no end"),
        (
            "print('{\"id\": %d, \"state\": {\"held\": %s}}' % (call['id'], '[' * 900 + ']' * 900), flush=True)",
            "garbage",
            "nested too deeply",
        ),
        ("os.fork() and os._exit(3) or time.sleep(60)", "crash", "ended with exit code 3"),
    ],
)
def test_broken_adapters_have_messages_of_their_own(tmp_path: Path, body: str, kind: str, message: str) -> None:
    """A dead adapter, one that hangs and one that writes something else are distinguished, and never conform."""
    (tmp_path / "adapter.py").write_text(SCRIPTED.replace("BODY", body))
    source = adapter_source(f"{sys.executable} {tmp_path / 'adapter.py'}", seconds=0.5 if "sleep" in body else 20.0)
    with Driver(SUBJECT, source) as driver:
        try:
            ran = driver.run(CallScript("one", (Asked("grant", {"client": 0}),)))
            found, text = ran.ended, ran.message
        except AdapterFailure as failure:
            found, text = failure.kind, str(failure)
    assert (found, message in text) == (kind, True), text


def test_events_before_the_answer_to_a_reset_are_of_what_ended(tmp_path: Path) -> None:
    """A time-out of the execution before is none of the next one; those of the new one follow the answer."""
    late = 'print(json.dumps({"event": "expire"}), flush=True)'
    answer = 'print(json.dumps({"id": call["id"], "ready": True}), flush=True)'
    body = 'print(json.dumps({"id": call["id"], "state": {"stored": 0}}), flush=True)'
    scripted = SCRIPTED.replace("BODY", body)
    for text, ended in (
        (scripted.replace(answer, f"{late}; {answer}"), "complete"),
        (scripted.replace(answer, f"{answer}; {late}"), "difference"),
    ):
        (tmp_path / "adapter.py").write_text(text)
        with Driver(SUBJECT, adapter_source(f"{sys.executable} {tmp_path / 'adapter.py'}")) as driver:
            assert driver.run(CallScript("none", ())).ended == ended

    class Starting(lease.LeaseAdapter):
        def reset(self, parameters: Any, seed: int) -> None:
            self.event("expire")
            super().reset(parameters, seed)

    assert driven(Starting).shortest.message == "expire() happened, and is not possible in the model"


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The verb in a process of its own."""
    whole = [sys.executable, "-m", "streamproof", "drive", *words]
    return subprocess.run(whole, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.push
def test_the_command_line_as_a_user_meets_it(tmp_path: Path) -> None:
    """A difference ends with 161, and with a table, an ITF trace, a test and JUnit; the log is rejected by `validate`."""
    adapter = f"{LEASE / 'adapter.py'}:Unfenced"
    files = [
        "--itf",
        "d.itf.json",
        "--pytest",
        "test_d.py",
        "--junit",
        "d.xml",
        "--log",
        "d.ndjson",
        "--json",
        "d.json",
    ]
    done = command(tmp_path, MODEL, "--adapter", adapter, "--seed", "1", *files)
    assert done.returncode == 161, done.stderr
    assert "5  write(client=0, token=1)  accepted        no behaviour has this" in done.stdout
    assert re.search(r"possible here: .*refuse\(client=0, token=1\)", done.stdout)
    document = json.loads((tmp_path / "d.json").read_text())
    assert document["difference"]["script"][-1] == {
        "event": "write",
        "args": {"client": 0, "token": 1},
        "refused": True,
    }
    assert len(json.loads((tmp_path / "d.itf.json").read_text())["states"]) == 5
    replay = [sys.executable, "-m", "streamproof", "replay", "d.itf.json", "--model", MODEL, "-q"]
    assert subprocess.run(replay, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    judged = [sys.executable, "-m", "streamproof", "validate", "d.ndjson", "--model", MODEL]
    log = subprocess.run(judged, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert log.returncode == 161, log.stdout
    assert "5  write(client=0, token=1)  accepted        no behaviour has this" in (tmp_path / "d.xml").read_text()
    test = load((tmp_path / "test_d.py").read_text(), tmp_path)
    with pytest.raises(AssertionError, match="is not possible in the model"):
        test.test_the_script_has_no_difference()
    before = {name: (tmp_path / name).read_text() for name in ("d.itf.json", "test_d.py")}
    done = command(tmp_path, MODEL, "--adapter", adapter.replace("Unfenced", "LeaseAdapter"), "--seed", "1", *files)
    assert done.returncode == 0, done.stderr
    assert [f"{name} is of an earlier difference" in done.stdout for name in (*before, "d.xml")] == [True, True, False]
    assert {name: (tmp_path / name).read_text() for name in before} == before
    document = json.loads((tmp_path / "d.json").read_text())
    assert f"{document['states']} of 81 states" in done.stdout
    assert document["reachable"] == 81 == make_suite(subject_of(selected(MODEL)), MOST_STATES).states


@pytest.mark.long
def test_the_command_that_is_printed_makes_the_same_calls(tmp_path: Path) -> None:
    """Also where scripts and walks are not the usual ones."""
    more = ["--no-suite", "--walks", "40", "--steps", "7", "--without", "refuse", "--seed", "3"]
    done = command(tmp_path, MODEL, "--adapter", f"{LEASE / 'adapter.py'}:Unfenced", *more)
    line = next(line for line in done.stdout.splitlines() if line.startswith("reproduce: "))
    again = command(tmp_path, *shlex.split(line)[3:])
    assert (again.returncode, again.stdout) == (done.returncode, done.stdout)
    assert done.returncode == 161


@pytest.mark.long
def test_an_adapter_that_cannot_be_started_is_no_difference(tmp_path: Path) -> None:
    """A missing program, one that fails at once, and a module without the class end with 153 or 2."""
    for adapter, code, text in (
        ("no-such-program", 153, "cannot be started: No such file or directory"),
        (f"{sys.executable} -c 'import nothing_of_this_name'", 153, "during reset"),
        (f"{LEASE / 'adapter.py'}:Nobody", 2, "has no Nobody"),
        (f"{LEASE / 'adapter.py'}:Storage", 2, "no adapter can be made"),
    ):
        done = command(tmp_path, MODEL, "--adapter", adapter)
        assert (done.returncode, text in done.stderr) == (code, True), (adapter, done.stderr)


def test_a_test_in_three_lines() -> None:
    """`assert_no_difference` runs the suite and walks, and raises with the calls of a difference."""
    assert_no_difference(MODEL, lease.LeaseAdapter, walks=2)
    with pytest.raises(AssertionError, match="is not possible in the model"):
        assert_no_difference(MODEL, lease.Unfenced, walks=2)


def test_equal_seeds_give_equal_drives() -> None:
    """What is asked for depends on the seed and the answers only."""

    def calls(seed: int) -> list[str]:
        class Recording(lease.LeaseAdapter):
            def do(self, action: str, args: Any) -> Any:
                seen.append(f"{action}{args}")
                return super().do(action, args)

        seen: list[str] = []
        drive(SUBJECT, of_class(Recording), options=DriveOptions(walks=3, steps=30, seed=seed))
        return seen

    assert calls(5) == calls(5)
    assert calls(5) != calls(6)


class Misspelt(lease.LeaseAdapter):
    """Reports a choice that the action does not have."""

    def expire(self) -> Happened:
        """With a typing mistake."""
        super().expire()
        return Happened(picks={"client": 0})


def test_a_typing_mistake_of_an_adapter_is_no_difference() -> None:
    """Names that the model does not have are mistakes of the adapter, not of the implementation."""
    with pytest.raises(AdapterFailure, match="expire has no choice 'client'"):
        driven(Misspelt)
    with pytest.raises(AdapterFailure, match="grant has no parameter 'clint'"):
        driven(type("Other", (lease.LeaseAdapter,), {"grant": lambda self, client: Happened(args={"clint": 0})}))
    with pytest.raises(AdapterFailure, match="has no action 'granted'"):
        driven(type("Other", (lease.LeaseAdapter,), {"grant": lambda self, client: Happened("granted")}))


@pytest.mark.long
def test_scripts_of_a_file_are_those_of_the_model(tmp_path: Path) -> None:
    """An action, argument or type that the model does not have is an error at its line."""
    line = {"trace": "t", "process": "model", "seq": 0, "event": "grant", "args": {"client": 0}}
    for change, text in (
        ({"event": "granted"}, "has no action 'granted'"),
        ({"args": {"clint": 0}}, "grant has no parameter 'clint'"),
        ({"args": {"client": "0"}}, 'client is "0" in the log, and 0 in the model'),
    ):
        (tmp_path / "s.ndjson").write_text(json.dumps({**line, **change}) + "\n")
        done = command(tmp_path, MODEL, "--adapter", f"{LEASE / 'adapter.py'}:LeaseAdapter", "--scripts", "s.ndjson")
        assert (done.returncode, "s.ndjson:1: " in done.stderr, text in done.stderr) == (2, True, True), done.stderr


def test_an_action_that_the_model_never_takes_need_not_happen() -> None:
    """The suite knows that it cannot; a walk does not."""
    subject = subject_of(selected(MODEL, parameters={"tokens": 1}))  # with one token, nothing is refused
    scripts = suite_or_none(subject, MOST_STATES)
    possible = occurring(subject, scripts)
    assert possible == {"grant", "expire", "write"}
    options = DriveOptions(walks=2, seed=1)
    assert drive(subject, of_class(lease.LeaseAdapter), scripts, options, possible).answer == "no difference"
    assert drive(subject, of_class(lease.LeaseAdapter), scripts, options).answer == "inconclusive"
