"""What is possible by plain Python, walks as scripts, and stateful machines of Hypothesis, on the lease model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from streamproof import Native
from streamproof.conformance.validation import verdicts_on
from streamproof.driving import Adapter, assert_no_difference, rule_based
from streamproof.explicit.exploration import explore
from streamproof.system import Interpreter
from streamproof.user_code import import_file

LEASE = Path(__file__).resolve().parents[2] / "examples" / "lease"
Lease: Any = import_file(LEASE / "lease.py")
adapter: Any = import_file(LEASE / "adapter.py")


def test_enabled_by_plain_python_is_enabled_in_the_system() -> None:
    """In every reachable state the functions and the interpreter have the same steps."""
    model = Lease.Lease()
    native, system = Native(model), Lease.Lease.system()
    interpreter, seen = Interpreter(system), 0
    for state in explore(system).states():
        expected = [step.instance.key for step in interpreter.steps(state)]
        assert [instance.key for instance in native.enabled(state)] == expected
        seen += 1
    assert seen == 81
    named = {v.name: value for v, value in system.named(next(interpreter.initial_states()))}
    assert [instance.label for instance in native.enabled(named)] == ["grant(client=0)", "grant(client=1)"]


def test_walks_are_written_as_scripts(tmp_path: Path) -> None:
    """`simulate --traces` writes behaviours, which `validate` accepts and `drive --scripts` runs."""
    streamproof = [sys.executable, "-m", "streamproof"]
    walks = [*streamproof, "simulate", str(LEASE / "lease.py"), "--walks", "5", "--steps", "9", "--seed", "1", "-q"]
    assert subprocess.run([*walks, "--traces", str(tmp_path)], capture_output=True, check=False).returncode == 160
    assert len(list(tmp_path.glob("walk-*.itf.json"))) == 5
    verdicts = verdicts_on(tmp_path / "suite-good.ndjson", Lease.Lease)
    assert [v.answer for v in verdicts] == ["accepted"] * 5
    drive = [*streamproof, "drive", str(LEASE / "lease.py"), "--adapter", f"{LEASE / 'adapter.py'}:LeaseAdapter"]
    more = ["--scripts", str(tmp_path / "suite-good.ndjson"), "--walks", "0", "--without", "refuse"]
    done = subprocess.run([*drive, *more], capture_output=True, text=True, check=False)
    assert (done.returncode, "5 scripts, 45 calls" in done.stdout) == (0, True), done.stdout + done.stderr


@pytest.mark.long
def test_counterexamples_are_scripts(tmp_path: Path) -> None:
    """The counterexample of a variant is driven: a service without that defect has no difference, one with it has one."""
    streamproof, lease = [sys.executable, "-m", "streamproof"], str(LEASE / "lease.py")
    check = [*streamproof, "check", lease, "--variant", "unfenced", "-q", "--out", str(tmp_path)]
    subprocess.run(check, capture_output=True, check=False)
    (file,) = tmp_path.rglob("nothing_is_overwritten_by_older.itf.json")
    more = ["--scripts", str(file), "--walks", "0"]
    for name, code in (("LeaseAdapter", 0), ("Unfenced", 161)):
        drive = [*streamproof, "drive", lease, "--adapter", f"{LEASE / 'adapter.py'}:{name}", *more]
        done = subprocess.run(drive, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr


def test_a_stateful_machine_finds_what_walks_find() -> None:
    """Hypothesis drives a correct service without a failure, and finds a wrong one."""
    some = settings(
        max_examples=15, stateful_step_count=12, deadline=None, database=None, derandomize=True, phases=[Phase.generate]
    )
    run_state_machine_as_test(rule_based(Lease.Lease, adapter.LeaseAdapter), settings=some)
    with pytest.raises(AssertionError, match="is not possible in the model"):
        run_state_machine_as_test(rule_based(Lease.Lease, adapter.Unfenced), settings=settings(some, max_examples=200))


@pytest.mark.long
def test_a_stateful_machine_shrinks() -> None:
    """Hypothesis shrinks the calls of a wrong service to few."""
    some = settings(max_examples=200, stateful_step_count=12, deadline=None, database=None, derandomize=True)
    with pytest.raises(AssertionError) as found:
        run_state_machine_as_test(
            rule_based(Lease.Lease, adapter.Unfenced),
            settings=settings(some, phases=[Phase.generate, Phase.shrink]),
        )
    assert str(found.value).count("accepted") <= 6


class Crashing(Adapter):
    """Fails at the first call."""

    def reset(self, parameters: Any, seed: int) -> None:
        """Nothing."""

    def grant(self, client: int) -> None:
        """Fails."""
        raise OSError("gone")


def test_a_failure_is_one_of_the_test_too() -> None:
    """An exception of the implementation fails the machine and the assertion."""
    with pytest.raises(AssertionError, match="OSError: gone"):
        run_state_machine_as_test(rule_based(Lease.Lease, Crashing), settings=settings(max_examples=5, database=None))
    with pytest.raises(AssertionError, match="OSError: gone"):
        assert_no_difference(Lease.Lease, Crashing)


@pytest.mark.long
def test_the_plugin_of_pytest(tmp_path: Path) -> None:
    """The fixture `drive` drives with the options of the command line."""
    (tmp_path / "test_it.py").write_text(
        f"import sys\nsys.path.insert(0, {str(LEASE)!r})\nfrom adapter import LeaseAdapter, Unfenced\n\n"
        f"def test_right(drive):\n    assert drive({str(LEASE / 'lease.py')!r}, LeaseAdapter).seed == 5\n\n"
        f"def test_wrong(drive):\n    drive({str(LEASE / 'lease.py')!r}, Unfenced)\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--drive-seed", "5", "--drive-walks", "2"]
    done = subprocess.run([*words, str(tmp_path)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in done.stdout
    assert "is not possible in the model" in done.stdout
