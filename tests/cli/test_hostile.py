"""What others wrote is safe to read: it runs nothing, takes no more than it may, and no text of it works on a terminal."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import os
import re
import resource
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shares import share
from streamproof.certify.verifier import MAGIC
from streamproof.conformance.flink.times import ClockReading

Command = Callable[..., Any]
NASTY = "\x1b[31mred\x1b]0;title\x07\x9b1m‮desrever⁦\r\n::error::owned\n##[error]owned"
"""Escapes of terminals, old and new, marks of direction, line breaks, and commands of CI services."""
WORKS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f‪-‮⁦-⁩]|(?m:^\s*(::[a-z]|##\[))")
"""What must not be in an output."""
EVIL = "from pathlib import Path\nPath('owned').write_text('x')\n"
RUN = "a-taskfail-1"


def sealed(header: Any, evidence: bytes) -> bytes:
    """A certificate with a right checksum, as anybody can make it."""
    rest = json.dumps(header).encode() + b"\n" + evidence
    return MAGIC + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def header(model: str = "reference.die_hard", **more: Any) -> dict[str, Any]:
    """The header of a certificate."""
    return {"model": model, "options": [], "fingerprint": "f", "claims": {"deadlock": "holds"}, "counts": None, **more}


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the logs of one run."""
    where = tmp_path_factory.mktemp("logs")
    with tarfile.open(Path(__file__).parents[1] / "data" / "flink" / "logs.tar.xz") as packed:
        packed.extractall(where, [m for m in packed.getmembers() if f"/{RUN}/" in f"/{m.name}"], filter="data")
    return next(where.rglob(RUN))


@pytest.fixture
def logs(recorded: Path, folder: Path) -> Path:
    """A copy of these logs in the working folder."""
    for file in recorded.iterdir():
        (folder / RUN).mkdir(exist_ok=True)
        (folder / RUN / file.name).write_bytes(file.read_bytes())
    return folder / RUN


# --- certificates


@pytest.mark.parametrize("model", ["evil.py", "evil.py:Evil", "evil:Evil", "./evil.py", "os:system", "nothing"])
@pytest.mark.parametrize("options", [[], ["--any", "n"]])
def test_a_certificate_never_causes_an_import(
    model: str, options: list[str], folder: Path, streamproof: Command
) -> None:
    """A file or a module that a certificate names is not run: the model comes from the command line, or is bundled."""
    (folder / "evil.py").write_text(EVIL)
    (folder / "c").write_bytes(sealed(header(model, options=options), lzma.compress(b"{}")))
    done = streamproof("verify-certificate", "c")
    assert not (folder / "owned").exists()
    assert (done.code, "--model" in done.err or done.code == 161) in ((2, True), (161, True)), done.err


def test_an_honest_certificate_of_a_file_needs_the_file_named(folder: Path, streamproof: Command) -> None:
    """The message says which model it is about and how to name it; the verdict is about the model given."""
    written = streamproof("check", "counter.py", "-q", "--certificate", "c")
    assert "streamproof verify-certificate c --model counter.py" in written.out
    done = streamproof("verify-certificate", "c")
    assert done.code == 2
    assert done.err == (
        "streamproof: error: the certificate is for counter.py, which is not a bundled model\n"
        "  name the model with --model FILE.py\n"
    )
    (folder / "moved.py").write_bytes((folder / "counter.py").read_bytes())
    (folder / "counter.py").unlink()
    done = streamproof("verify-certificate", "c", "--model", "moved.py", "--json", "-")
    assert done.code == 0
    assert json.loads(done.out)["model"] == "moved.py"
    assert "shows this of moved.py" in done.err


COUNTING = """
from streamproof import Model, Nat, State, action, invariant


class Counting(Model):
    check_deadlock = False
    limits = {"n": (0, None)}
    n: int = 2

    def state(self):
        return State(x=Nat())

    @action
    def up(self, s):
        s.x += 1

    @invariant
    def größe(self, s):
        return s.x >= 0
"""


@pytest.mark.parametrize("words", [["check", "-p", "n=1", "--max-states", "9"], ["prove", "--any", "n"]])
@pytest.mark.parametrize("colours", [{}, {"FORCE_COLOR": "1"}], ids=["plain", "coloured"])
def test_a_certificate_is_verified_on_a_terminal_without_its_letters(
    words: list[str], colours: dict[str, str], folder: Path, streamproof: Command
) -> None:
    """A letter that the output's encoding lacks is a question mark, and no error."""
    finite = words[0] == "check"
    text = COUNTING.replace("x=Nat()", "x=Range(0, 3)").replace("Nat", "Range") if finite else COUNTING
    (folder / "counting.py").write_text(text.replace("s.x += 1", "s.x = (s.x + 1) % 3" if finite else "s.x += 1"))
    written = streamproof(words[0], "counting.py", *words[1:], "-q", "--certificate", "c")
    assert written.code == 0, written
    done = subprocess.run(
        [sys.executable, "-m", "streamproof", "verify-certificate", "c", "--model", "counting.py", "-q"],
        capture_output=True, text=True, cwd=folder, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii", **colours},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert re.sub("\x1b\\[[0-9;]*m", "", done.stdout).startswith("  gr??e  holds\n")


BOMBS = {
    "bytes": (
        b'{"values":[' + b"[]," * 20_000_000 + b"[]]}",
        "larger than 32MB; --unpacked SIZE moves this limit",
    ),
    "lists": (b'{"values":[' + b"[]," * 3_000_000 + b"[]]}", "more than 2,097,152 lists and objects"),
    "nesting": (b"[" * 100_000 + b"]" * 100_000, "nested deeper than 500"),
    "digits": (b'{"values":' + b"9" * 5_000 + b"}", "a number has more than 300 digits"),
}


@pytest.mark.parametrize("kind", share(BOMBS, 2, first=1))
@pytest.mark.parametrize("options", share([[], ["--any", "n"]], 2))
def test_what_a_certificate_unpacks_to_is_bounded(kind: str, options: list[str], folder: Path) -> None:
    """A small file that unpacks to a large one is rejected within a gigabyte, also one for every size."""
    evidence, why = BOMBS[kind]
    (folder / "c").write_bytes(sealed(header(options=options), lzma.compress(evidence, preset=1)))
    done = subprocess.run(
        [sys.executable, "-m", "streamproof", "verify-certificate", "c", "--model", "reference.die_hard"],
        capture_output=True, text=True, cwd=folder, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)),
    )  # fmt: skip
    assert done.returncode == 161, done.stderr
    assert why in done.stderr


def test_a_larger_certificate_can_be_allowed(folder: Path, streamproof: Command) -> None:
    """`--unpacked SIZE` moves the limit, in both directions."""
    assert streamproof("check", "reference.die_hard", "-q", "--certificate", "c").code == 0
    assert streamproof("verify-certificate", "c", "--unpacked", "200").code in (2, 161)
    assert streamproof("verify-certificate", "c", "--unpacked", "1GB").code == 0


@pytest.mark.parametrize("options", [[], ["--any", "n"]])
def test_a_hostile_header_is_rejected(options: list[str], folder: Path, streamproof: Command) -> None:
    """Nested deeply, with long numbers, or with states that no values make."""
    deep = b"[" * 50_000 + b"]" * 50_000
    (folder / "c").write_bytes(MAGIC + hashlib.sha256(deep + b"\n").hexdigest().encode() + b"\n" + deep + b"\n")
    assert streamproof("verify-certificate", "c", "--model", "counter.py").code == 161
    huge = {"distinct": 10**12, "generated": 10**12, "depth": 1, "levels": [10**12]}
    evidence = json.dumps({"values": [[[[0]], []]], "traces": {}, "ranks": {}, "proofs": []}).encode()
    (folder / "c").write_bytes(sealed(header(options=options, counts=huge), lzma.compress(evidence)))
    assert streamproof("verify-certificate", "c", "--model", "counter.py").code == 161


@pytest.mark.parametrize("place", ["/dev/zero", "pipe", "."])
def test_a_certificate_is_a_file(place: str, folder: Path, streamproof: Command) -> None:
    """Devices, pipes and folders are refused, and not waited for."""
    os.mkfifo(folder / "pipe")
    done = streamproof("verify-certificate", place)
    assert done.code == 2
    assert f"{place} is " in done.err


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"options": ["--variant", "x"]}, "its options do not fit the model: counter has no variant 'x'"),
        ({"options": ["-p", "limit=101"]}, "its options do not fit the model: "),
        ({"options": ["-p", "limit=2", "-p", "limit=3"]}, "an option is given twice"),
        ({"options": ["--json", "x"]}, "its options are not those of a certificate"),
        ({"options": ["--variant"]}, "its options are not those of a certificate"),
        ({"claims": {}}, "it claims nothing"),
        ({"claims": None}, "it claims nothing"),
        ({"claims": {"zz": "holds"}}, "it is malformed: it names a missing entry"),
        ({"claims": {"low": "perhaps"}}, "it is malformed: a part of it has another form"),
    ],
)
def test_what_a_header_says_is_rejected_in_our_words(
    told: dict[str, Any], why: str, folder: Path, streamproof: Command
) -> None:
    """Options that the model does not have are a mistake of the certificate, and so is one that claims nothing."""
    streamproof("check", "counter.py", "-q", "--certificate", "c")
    _, first, packed = (folder / "c").read_bytes().split(b"\n", 2)
    said = {**json.loads(first), **told}
    if said["claims"]:
        said["claims"] = json.loads(first)["claims"] | said["claims"]
    (folder / "c").write_bytes(sealed(said, packed))
    done = streamproof("verify-certificate", "c", "--model", "counter.py")
    assert (done.code, done.out) == (161, "")
    assert done.err.startswith(f"streamproof: error: the certificate is rejected: {why}")


@pytest.mark.parametrize("part", ["null", "[]", "3", '"x"'])
def test_parts_of_another_type_are_rejected_in_our_words(part: str, folder: Path, streamproof: Command) -> None:
    """Neither a header nor evidence that is no object is reported in the words of Python."""
    for first, evidence in ((part.encode(), b"{}"), (json.dumps(header()).encode(), part.encode())):
        rest = first + b"\n" + lzma.compress(evidence)
        (folder / "c").write_bytes(MAGIC + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest)
        done = streamproof("verify-certificate", "c", "--model", "counter.py")
        assert done.code == 161
        assert "rejected: its parts are not those of a certificate" in done.err


# --- the code cache


@pytest.mark.parametrize("kind", share(["folder", "file", "link"], 3))
def test_code_that_others_may_write_is_not_run(kind: str, folder: Path) -> None:
    """A folder or file of compiled code that somebody else can write, or a link, is not used, and a note says so."""
    cache = folder / "cache"
    where = {**os.environ, "STREAMPROOF_CACHE": str(cache)}

    def check() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "streamproof", "check", "reference.die_hard", "-q", "--tier", "compiled"],
            env=where, capture_output=True, text=True, check=False, cwd=folder,
        )  # fmt: skip

    assert check().returncode == 0
    codes = sorted(cache.glob("*.code"))
    assert codes
    assert cache.stat().st_mode & 0o077 == 0
    before = {path: path.read_bytes() for path in codes}
    if kind == "folder":
        cache.chmod(0o777)
    elif kind == "file":
        for path in codes:
            path.chmod(0o666)
    else:
        cache.rename(folder / "elsewhere")
        cache.symlink_to(folder / "elsewhere")
    for path in codes:
        path.write_bytes(before[path][:-1] + bytes([before[path][-1] ^ 1]))  # would be noticed by its hash as well
    done = check()
    assert done.returncode == 0
    assert "cached compiled code is not used" in done.stderr
    if kind != "file":
        assert all(path.read_bytes() != before[path] for path in codes), "nothing was written there"


# --- text


def outputs(done: Any) -> Iterator[str]:
    """What a command wrote for people."""
    yield done.out
    yield done.err


def test_names_in_answers_of_the_api_do_not_work(logs: Path, folder: Path, streamproof: Command) -> None:
    """Names of jobs and vertices are shown with their escapes, on the terminal and in what is written."""
    answer = next(logs.glob("rest-*.json"))
    data = json.loads(answer.read_text())
    data["job"]["name"] = NASTY
    for vertex in data["job"]["vertices"]:
        vertex["name"] += NASTY
    answer.write_text(json.dumps(data))
    text = (logs / "jobmanager.log").read_text()
    (logs / "jobmanager.log").write_text(text.replace("batch-diamond", "batch\x1b[31m-‮diamond\x07"))
    for force in ("", "1"):
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("FORCE_COLOR", force)
            done = streamproof("validate", RUN, "--json", "v.json")
        assert done.code in (0, 160, 161)
        colours = re.compile(r"\x1b\[[\d;]*m") if force else re.compile(r"(?!)")
        for written in outputs(done):
            plain = colours.sub("", written) if force else written
            assert not WORKS.search(plain), plain
            assert "\x1b[31m" not in written
    assert "batch-\\u202ediamond\\x07" in done.out


def test_damaged_lines_and_file_names_do_not_work(logs: Path, folder: Path, streamproof: Command) -> None:
    """Nor does what a warning quotes of a log, or the name of a file."""
    with (logs / "jobmanager.log").open("a") as file:
        file.write("2026-11-21 03:17:55,749 \x1b]0;owned\x07\x9b31m ‮\n")
    (logs / "task\x1b[2J\nmanager-9.log").write_text("nothing of Flink's")
    done = streamproof("validate", RUN)
    assert "warning: " in done.err
    for written in outputs(done):
        assert not WORKS.search(written), written
    done = streamproof("validate", "no\x1b[2J\nsuch*")
    assert not WORKS.search(done.err)


def test_a_certificate_prints_nothing_that_works(folder: Path, streamproof: Command) -> None:
    """The model, the options and the claims that it names."""
    for text in (
        header(NASTY),
        header(options=["--variant", NASTY]),
        header(options=["-p", f"small_jug={NASTY}"]),
        header(claims={NASTY: "holds"}),
        header(claims={"deadlock": NASTY}),
        {NASTY: 1},
    ):
        (folder / "c").write_bytes(sealed(text, lzma.compress(b"{}")))
        done = streamproof("verify-certificate", "c")
        assert done.code in (2, 161)
        for written in outputs(done):
            assert not WORKS.search(written), written


LOUD = """
from streamproof import Enum, Model, Range, State, action, always, invariant, require

NASTY = {nasty!r}


class Loud(Model):
    __doc__ = NASTY
    word: str = "a"
    check_deadlock = False

    def state(self):
        return State(kind=Enum("plain", NASTY), n=Range(0, 3))

    @action(kind=("plain", NASTY))
    def go(self, s, kind):
        require(s.n < 3)
        s.kind = kind
        s.n += 1

    go.__doc__ = NASTY

    @invariant
    def low(self, s):
        return s.n < 3 or s.kind == "plain"

    low.__doc__ = NASTY
"""


def test_a_model_prints_nothing_that_works(folder: Path, streamproof: Command) -> None:
    """Names, docstrings and parameters of a model: in the outcome, its traces, every export, and pages."""
    (folder / "loud.py").write_text(LOUD.format(nasty=NASTY))
    arguments = ("loud.py", "-p", f"word={NASTY}")
    commands = [
        ("check", *arguments, "--out", "out", "--dot", "g.dot"),
        ("models", "loud.py"),
        ("simulate", *arguments, "--out", "walks", "--walks", "10"),
        ("sweep", "loud.py", "-p", f"word=a,{NASTY}", "--jobs", "1", "--out", "maps"),
    ]
    commands += [
        ("export", *arguments, "--format", form, "--out", f"to-{form}")
        for form in ("dot", "itf", "promela", "tla", "smtlib", "chc")
    ]
    for command in commands:
        done = streamproof(*command)
        assert "Traceback" not in done.err
        assert "internal error" not in done.err, (command, done.err)
        for written in outputs(done):
            assert not WORKS.search(written), (command, written)
    texts = [p for p in folder.rglob("*") if p.is_file() and p.suffix not in (".py", ".parquet")]
    assert len(texts) > 10
    for path in texts:
        text = path.read_bytes().decode()
        found = re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f‪-‮⁦-⁩]", text)
        assert not found, (path, text[max(0, found.start() - 80) : found.end() + 20])
        assert not re.search(r"^(::error|##\[error)", text, re.M), path


# --- logs


def test_a_parallelism_that_no_job_has_is_not_built(logs: Path, streamproof: Command) -> None:
    """What a REST answer claims is compared with Flink's limit, and with the logs, before anything is built."""
    answer = next(logs.glob("rest-*.json"))
    data = json.loads(answer.read_text())
    for number, why in ((1_000_000, "Flink allows 32,768"), (9_000, "9,000 in the REST answer and 2 in the logs")):
        for vertex in data["job"]["vertices"]:
            vertex["parallelism"] = number
        answer.write_text(json.dumps(data))
        done = streamproof("validate", RUN)
        assert done.code == 160
        assert why in " ".join(done.out.split())


def test_a_job_that_the_logs_make_too_large_is_not_built(logs: Path, streamproof: Command) -> None:
    """A parallelism that the logs and the answer agree on is bounded by the tasks and channels that are followed."""
    answer = next(logs.glob("rest-*.json"))
    data = json.loads(answer.read_text())
    for vertex in data["job"]["vertices"]:
        vertex["parallelism"] = 30_000
    answer.write_text(json.dumps(data))
    for file in logs.glob("*.log"):
        file.write_text(re.sub(r"\((\d+)/[248]\)", r"(\1/30000)", file.read_text()))
    done = streamproof("validate", RUN)
    assert done.code == 160
    assert "more than the 10,000 and 1,000,000 that are followed" in " ".join(done.out.split())


@pytest.mark.parametrize("colours", ["", "1"])
def test_long_numbers_are_abridged_for_people(
    colours: str, folder: Path, streamproof: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines get all digits, and so does the line that repeats a command."""
    monkeypatch.setenv("FORCE_COLOR", colours)
    number, first = "12" * 200, "12" * 10
    text = (folder / "counter.py").read_text().replace("Range(0, self.limit)", "Range(self.limit - 3, self.limit)")
    (folder / "counter.py").write_text(text.replace("limit > 100", "limit < 0"))
    done = streamproof("check", "counter.py", "-p", f"limit={number}", "--json", "a.json")
    assert done.code == 12, done.err
    assert f"limit={first}...(400 digits)...{first}" in done.out
    assert re.search(rf"n = {first}\.\.\.\(400 digits\)\.\.\.", re.sub(r"\x1b\[[\d;]*m", "", done.out))
    assert number in re.sub(r"\s", "", done.out.rpartition("reproduce")[2])
    assert json.loads((folder / "a.json").read_text())["parameters"]["limit"] == int(number)
    refused = streamproof("check", "counter.py", "--variant", number)
    assert f"no variant '{first}...(400 digits)...{first}'" in refused.err


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param(b"[" * 200_000 + b"]" * 200_000, "lists and objects are nested deeper than 500", id="nested"),
        pytest.param(b'{"job": ' + b"7" * 6_000 + b"}", "a number has more than 300 digits", id="digits"),
    ],
)
def test_a_hostile_answer_is_refused(body: bytes, why: str, logs: Path, streamproof: Command) -> None:
    """An answer that nests deeply or has a number of thousands of digits ends with one message."""
    next(logs.glob("rest-*.json")).write_bytes(body)
    done = streamproof("validate", RUN)
    assert done.code == 2
    assert why in done.err


@pytest.mark.long
def test_a_line_of_any_length_takes_little(logs: Path, folder: Path) -> None:
    """One line of a gigabyte in a small archive is passed over with a warning, within a fraction of that memory."""
    with gzip.open(logs / "taskmanager-9.log.gz", "wb", compresslevel=1) as packed:
        packed.write(b"2026-11-21 03:17:55,749 INFO  org.apache.flink.runtime.taskmanager.Task [] - ")
        for _ in range(512):
            packed.write(b"x" * (1 << 21))
        packed.write(b"\n")
    done = subprocess.run(
        [sys.executable, "-m", "streamproof", "validate", RUN], cwd=folder,
        capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (3 << 29, 3 << 29)),
    )  # fmt: skip
    assert "the line has more than 1,048,576 bytes; the rest of it is skipped" in done.stderr
    assert done.returncode == 0, done.stderr


# --- lines that make a search long

AT = "2026-11-21 03:18:43,774 "
LONG = {
    "blanks": AT + "INFO " + " " * 100_000 + "#",
    "brackets": AT + " INFO [" * 10_000 + " []" * 7_000,
    "job": AT + "INFO  org.apache.flink.runtime.metrics.MetricRegistryImpl [] - [" + "job" * 33_000 + "] x",
    "channel": AT
    + "DEBUG org.apache.flink.runtime.io.network.partition.consumer.RemoteInputChannel [] - RemoteInputChannel [x"
    + " at b (c)" * 11_000,
    "resource": AT + "INFO  org.apache.flink.runtime.metrics.MetricRegistryImpl [] - " + "MetricQueryService_" * 50_000,
    "place": AT
    + "INFO  org.apache.flink.runtime.executiongraph.ExecutionGraph [] - "
    + f"x (1/1) ({'a' * 32}_{'b' * 32}_0_0) switched from CREATED to SCHEDULED on a @ b " * 6_000,
    "file": AT
    + "DEBUG org.apache.flink.runtime.io.network.partition.ResultPartition [] - New partitioned file produced: "
    + "PartitionedFile{numRegions=1, numSubpartitions=1, dataFilePath="
    + ", " * 30_000,
}


@pytest.mark.parametrize("kind", LONG)
def test_no_line_makes_a_search_long(kind: str, logs: Path, streamproof: Command) -> None:
    """A line that a pattern could match in ever so many ways is read as fast as any other, and the run judged."""
    with (logs / "jobmanager.log").open("a") as log:
        log.write((LONG[kind] + "\n") * 3)
    assert streamproof("validate", RUN).code == 0


@pytest.mark.parametrize("place", ["/dev/zero", "pipe"])
def test_a_trace_to_replay_is_a_file(place: str, folder: Path, streamproof: Command) -> None:
    """Devices and pipes are refused, and not waited for."""
    os.mkfifo(folder / "pipe")
    done = streamproof("replay", place)
    assert done.code == 2
    assert f"{place} is not a regular file" in done.err


def test_a_pipe_among_the_logs_is_not_opened(logs: Path, streamproof: Command) -> None:
    """Whatever the name that it bears, it is not waited for."""
    (logs / "scenario.txt").unlink(missing_ok=True)
    for name in ("scenario.txt", "more.jsonl", "more.log"):
        os.mkfifo(logs / name)
    done = streamproof("validate", RUN)
    assert done.code == 0
    assert "more.log: is a pipe; it is not read" in done.err


def test_an_answer_that_leaves_out_nodes_is_incomplete(logs: Path, streamproof: Command) -> None:
    """A vertex without a node in the plan has inputs that are not known: the run is not judged by what is left."""
    answer = next(logs.glob("rest-*.json"))
    data = json.loads(answer.read_text())
    del data["plan"]
    del data["job"]["plan"]["nodes"][2]
    answer.write_text(json.dumps(data))
    done = streamproof("validate", RUN)
    assert done.code == 160
    assert "the inputs of 'B', which the plan leaves out" in " ".join(done.out.split())


@pytest.mark.parametrize("inputs", ["", {}, None, 0])
def test_inputs_in_an_answer_are_a_list(inputs: Any, logs: Path, streamproof: Command) -> None:
    """Anything else is refused, also if it is empty."""
    answer = next(logs.glob("rest-*.json"))
    data = json.loads(answer.read_text())
    del data["plan"]
    data["job"]["plan"]["nodes"][2]["inputs"] = inputs
    answer.write_text(json.dumps(data))
    done = streamproof("validate", RUN)
    assert done.code == 2
    assert "'inputs' must be a list" in done.err


def test_of_many_problems_of_a_kind_few_are_told(logs: Path, streamproof: Command) -> None:
    """The first ones of each file and kind, and how many more there are; no more are kept than can be of use."""
    text = AT + "INFO  org.apache.flink.runtime.executiongraph.ExecutionGraph [] - x (1/1) switched from A to (b\n"
    with (logs / "jobmanager.log").open("a") as log:
        log.write(text * 20_000)
    done = streamproof("validate", RUN)
    assert done.code == 160  # more lines of the kind are unread than read
    assert done.err.count("the line looks like exec.transition") == 6
    assert "; and at least 996 more" in done.err


def test_of_many_problems_of_a_recorded_channel_few_are_told(logs: Path, streamproof: Command) -> None:
    """The same for traces of calls, whose lines have more problems than can be of use."""
    call = {
        "ts": 1,
        "seq": 0,
        "ev": "RemoteInputChannel.requestSubpartitions",
        "ph": "call",
        "args": [],
        "self": "id=x",
    }
    (logs / "tm.trace.jsonl").write_text(json.dumps(call) + "\n" + '{"ph": 3}\n' * 20_000)
    done = streamproof("validate", RUN, "--model", "credit_channel")
    assert done.code == 160
    assert done.err.count("the line is not a record of a call") == 6
    assert "; and at least 996 more" in done.err


def test_what_holds_of_a_whole_run_is_found_once_for_all_jobs(
    logs: Path, streamproof: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines about very many jobs do not take the square of their number."""
    read = []
    monkeypatch.setattr(ClockReading, "read", lambda self, ts, now=ClockReading.read: read.append(ts) or now(self, ts))
    assert streamproof("validate", RUN).code == 0
    of_one = len(read)
    said = f"{AT}INFO  org.apache.flink.runtime.executiongraph.ExecutionGraph [] - Job x"
    with (logs / "jobmanager.log").open("a") as log:
        log.writelines(f"{said} ({number:032x}) switched from state CREATED to RUNNING.\n" for number in range(50))
    assert "51 jobs: 1 accepted, 50 inconclusive" in streamproof("validate", RUN).out
    assert len(read) <= 2 * of_one + 200
