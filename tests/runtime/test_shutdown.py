"""Whatever happens to a run on processes, it ends with one message and its exit code, and leaves no process and no file."""

from __future__ import annotations

import os
import random
import resource
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from runtime_processes import PROGRAM, marked, started, wait_until
from runtime_runs import EXAMPLES

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found by /proc")

SLOW = """
import time
from streamproof_runtime import Job

def job():
    made = Job("slow")

    def around(loop):
        down = loop.process("down", lambda c, n: (time.sleep(0.004), [n - 1])[1], parallelism=2)
        return down.filter(lambda n: n > 0), down.filter(lambda n: n <= 0)

    made.source("n", [20] * 10).key_by(lambda n: n).iterate("L", around).process("s", lambda c, n: [n]).collect("all")
    return made

def expected():
    return {"all": [0] * 10}
"""
"""A loop that takes about a second."""
RIGHT = "job.py: the result is as expected"


def slow(folder: Path) -> Path:
    """The job's file."""
    file = folder / "job.py"
    file.write_text(SLOW)
    return file


def nothing_is_left(mark: str, folder: Path) -> None:
    """No process, and no file but the job's and the logs."""
    wait_until(lambda: not marked(mark))
    left = {
        str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file() and f.suffix not in (".pyc", ".ndjson")
    }
    assert left == {"job.py"}


def workers(mark: str) -> list[int]:
    """The JobMaster and the TaskExecutors of a run, the JobMaster first."""
    return sorted(pid for pid, line in marked(mark).items() if "streamproof_runtime.processes.worker" in line)


def ports(pids: list[int]) -> set[int]:
    """The ports on which processes listen."""
    own = set()
    for pid in pids:
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed since it was listed
                own.add(os.readlink(file))
    rows = (row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own}


def test_strangers_do_not_disturb_a_run(tmp_path: Path) -> None:
    """Connections to each port that say nothing, send garbage, a huge length or a false proof: the result is right."""
    process, mark = started(slow(tmp_path), tmp_path)
    wait_until(lambda: len(workers(mark)) >= 3 and len(ports(workers(mark))) >= 3)
    held = []
    for port in ports(workers(mark)):
        for said in (
            b"",
            b"GET / HTTP/1.1\r\n\r\n" * 9,
            b"\xff" * 4096,
            bytes(64),
            os.urandom(64) + b"\x7f\xff\xff\xff",
        ):
            stranger = socket.create_connection(("127.0.0.1", port))
            stranger.sendall(said)
            held.append(stranger)
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert RIGHT in " ".join(out.split())
    for stranger in held:
        stranger.close()
    nothing_is_left(mark, tmp_path)


@pytest.mark.parametrize("number", [0, 1])
def test_a_process_that_is_killed_at_any_time_is_replaced(number: int, tmp_path: Path) -> None:
    """The JobMaster or a TaskExecutor, some time after it has started."""
    process, mark = started(slow(tmp_path), tmp_path)
    wait_until(lambda: len(workers(mark)) >= 3)
    time.sleep(0.3 * random.Random(number).random())
    os.kill(workers(mark)[number], signal.SIGKILL)
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert RIGHT in " ".join(out.split())
    nothing_is_left(mark, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_an_end_at_any_time_leaves_nothing(seed: int, tmp_path: Path) -> None:
    """Ctrl-C, SIGTERM, or SIGKILL of the launching process, of its supervisor, or of one that it has started."""
    draw = random.Random(seed)
    process, mark = started(slow(tmp_path), tmp_path, "--trace", "logs")
    wait_until(lambda: len(marked(mark)) > 1)  # before, Python itself answers to Ctrl-C
    time.sleep(0.5 + draw.random() * 3)
    own = workers(mark)
    launchers = [pid for pid in marked(mark) if pid not in own and pid != process.pid]
    sent, to = (
        (signal.SIGINT, [process.pid]),
        (signal.SIGTERM, [process.pid]),
        (signal.SIGKILL, [process.pid]),
        (signal.SIGKILL, launchers),
        (signal.SIGKILL, own),
    )[seed % 5]
    if to and process.poll() is None:
        os.kill(draw.choice(to), sent)
    _, err = process.communicate()
    assert "Traceback" not in err
    assert process.returncode in (0, *((130,), (130,), (-signal.SIGKILL,), (152,), ())[seed % 5])
    nothing_is_left(mark, tmp_path)


def limited() -> None:
    """Files of this process take no more than 8 kB, as on a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


def test_a_full_disk_is_one_message(tmp_path: Path) -> None:
    """Of the log, on processes and in simulation."""
    words = []
    for options in (["--trace", "logs"], ["--simulate", "--trace", "runs"]):
        command = [str(PROGRAM), "run", str(EXAMPLES / "pagerank.py"), *options]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, preexec_fn=limited, env=environment, check=False
        )
        assert (done.returncode, done.stdout) == (153, "")
        words.append(done.stderr)
    assert "the event log of tm-" in words[0]
    assert "cannot be written: File too large" in words[0]
    assert words[0].count("\n") <= 2
    assert "seed-0.ndjson cannot be written: File too large" in words[1]
    assert not (tmp_path / "runs" / "seed-0.ndjson").exists()
    assert not [f for f in tmp_path.rglob("*") if f.is_file() and f.suffix != ".ndjson"]


@pytest.mark.long
def test_partitions_on_a_full_disk_fail_the_job(tmp_path: Path) -> None:
    """With the operator that stores them."""
    file = tmp_path / "job.py"
    file.write_text(
        "from streamproof_runtime import Job\ndef job():\n    made = Job('stored')\n"
        "    made.source('a', ['x' * 8000] * 9).blocking().process('b', lambda c, r: ()).collect('c')\n    return made\n"
    )
    done = subprocess.run(
        [str(PROGRAM), "run", str(file)], capture_output=True, text=True, preexec_fn=limited, check=False
    )
    assert done.returncode == 12
    assert "a_to_b: cannot store partitions: [Errno 27] File too large" in " ".join(done.stdout.split())
