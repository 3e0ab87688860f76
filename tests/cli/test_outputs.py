"""Whatever a verb writes, it replaces nothing that streamproof did not write, and leaves nothing half written."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import pytest

from shares import share
from streamproof.api.export import FORMS
from streamproof.cli.verbs import cli

Command = Callable[..., Any]

MINE = b'{"mine": "a line that nobody else has"}\n'
GRID = '''
from streamproof import Model, Range, State, action, require, step


class Grid(Model):
    """Two counters."""

    top: int = 40
    limits = {"top": (1, None)}
    check_deadlock = False

    def state(self):
        return State(a=Range(0, self.top), b=Range(0, self.top))

    @action
    def left(self, s):
        require(s.a < self.top)
        s.a += 1

    @action
    def right(self, s):
        require(s.b < self.top)
        s.b += 1

    @step
    def grows(self, s, t):
        return t.a >= s.a
'''


STOPPING = '''
from streamproof.driving import Adapter, Refused


class Stopping(Adapter):
    """A counter that stops too early."""

    def reset(self, parameters, seed):
        self.n = 0

    def increment(self):
        if self.n == 2:
            raise Refused("it is full")
        self.n += 1

    def observe(self, of):
        return {"n": self.n}
'''


@dataclass(frozen=True)
class Case:
    """A command line that uses an output option; `at` in it is the option's value. `before` is run first."""

    words: str
    code: int = 0
    before: str | None = None
    appends: bool = False
    """The option goes on with files that are there: its folder is made by `before`."""
    marks: tuple[pytest.MarkDecorator, ...] = field(default=())


COUNT = "counter.py -q"
REACH = f"{COUNT} --property grows"
GROWS = "grid.py -q --property grows --any top"
DRIVE = "drive counter.py --adapter stopping.py:Stopping --seed 1"
CASES: dict[tuple[str, str], list[Case]] = {
    ("models", "--json"): [Case("models counter.py --json at.json")],
    ("check", "--out"): [Case(f"check {COUNT} --out at", 12)],
    ("check", "--dot"): [Case(f"check {COUNT} --dot at.dot", 12)],
    ("check", "--spill"): [Case("check grid.py -q --tier compiled --memory 4GB --spill .")],
    ("check", "--checkpoint"): [Case("check grid.py -q --tier compiled --checkpoint at")],
    ("check", "--resume"): [
        Case(
            "check grid.py -q --resume at",
            before="check grid.py -q --tier compiled --max-states 900 --checkpoint at",
            appends=True,
        )
    ],
    ("check", "--certificate"): [Case(f"check {COUNT} --certificate at.certificate", 12)],
    ("check", "--json"): [
        Case(f"check {COUNT} --json at.json", 12),
        Case("check counter.py -q --agree --agree-limit spin=0 --agree-limit tlc=0 --json at.json", 12),
    ],
    ("check", "--junit"): [Case(f"check {COUNT} --junit at.xml", 12)],
    ("check", "--sarif"): [Case(f"check {COUNT} --sarif at.sarif", 12)],
    ("run", "--trace"): [
        Case("run job.py --simulate --variant no-dirty-check --faults heavy --trace at", 12),
        Case("run job.py --simulate --trace at --trace-format parquet"),
    ],
    ("run", "--json"): [Case("run job.py --simulate --json at.json")],
    ("compare", "--json"): [Case("compare cyclic --max-states 1 --json at.json", 160, marks=(pytest.mark.long,))],
    ("prove", "--out"): [Case(f"prove {COUNT} --property low --out at", 12)],
    ("prove", "--certificate"): [
        Case(f"prove {REACH} --certificate at.certificate"),
        Case(f"prove {GROWS} --certificate at.certificate"),
    ],
    ("prove", "--json"): [
        Case(f"prove {REACH} --json at.json"),
        Case(f"prove {GROWS} --json at.json"),
    ],
    ("prove", "--junit"): [Case(f"prove {REACH} --junit at.xml")],
    ("prove", "--sarif"): [Case(f"prove {REACH} --sarif at.sarif")],
    ("verify-certificate", "--smt"): [
        Case(
            "verify-certificate any.certificate --model grid.py --smt at",
            before=f"prove {GROWS} --certificate any.certificate",
        )
    ],
    ("verify-certificate", "--json"): [
        Case(
            "verify-certificate c.certificate --model counter.py --json at.json",
            before=f"check {COUNT} --certificate c.certificate",
        )
    ],
    ("sweep", "--out"): [Case("sweep counter.py -p limit=1..2 --jobs 1 --again --out at")],
    ("sweep", "--json"): [Case("sweep counter.py -p limit=1..2 --jobs 1 --again --out maps --json at.json")],
    ("mutate", "--json"): [Case("mutate counter.py -q --action increment --json at.json", 161)],
    ("diff", "--json"): [Case("diff counter.py -q --to limit=1 --json at.json", 164)],
    ("simulate", "--out"): [Case(f"simulate {COUNT} --out at", 12)],
    ("simulate", "--json"): [Case(f"simulate {COUNT} --json at.json", 12)],
    ("simulate", "--traces"): [Case("simulate counter.py -q -p limit=2 --walks 2 --traces at", 160)],
    ("replay", "--json"): [
        Case("replay traces/low.itf.json --model counter.py -q --json at.json", before=f"check {COUNT} --out traces")
    ],
    ("export", "--out"): [
        Case("export counter.py --format itf --out at"),
        Case("export counter.py --format itf --property low --out at.itf.json"),
        Case("export counter.py --format dot --out at.dot"),
        Case("export counter.py --format dot --out at"),
        Case("export counter.py --format sequence --out at"),
        Case("export counter.py --format html --out at"),
        Case("export counter.py --format promela --out at.pml"),
        Case("export counter.py --format tla --out at"),
        Case("export counter.py --format smtlib --out at.smt2"),
        Case("export counter.py --format chc --out at"),
    ],
    ("export", "--json"): [Case("export counter.py --format dot --out other.dot --json at.json")],
    ("validate", "--events"): [
        Case("validate a-taskfail-1 --events at"),
        Case("validate a-taskfail-1 --events at --format parquet"),
    ],
    ("validate", "--verdicts"): [
        Case(
            "validate a-taskfail-1 --master local[2] --verdicts at",
            2,
            before="validate a-taskfail-1 --master local[2] --verdicts at",
            appends=True,
            marks=(pytest.mark.spark, pytest.mark.long),
        )
    ],
    ("validate", "--dot"): [Case("validate a-taskfail-1 --dot at.dot")],
    ("validate", "--html"): [Case("validate a-taskfail-1 --html at.html", marks=(pytest.mark.long,))],
    ("validate", "--json"): [Case("validate a-taskfail-1 --json at.json")],
    ("validate", "--junit"): [Case("validate a-taskfail-1 --junit at.xml")],
    ("validate", "--sarif"): [Case("validate a-taskfail-1 --sarif at.sarif")],
    ("incident", "--json"): [Case("incident a-taskfail-1 --json at.json", marks=(pytest.mark.long,))],
    ("incident", "--html"): [Case("incident a-taskfail-1 --html at.html", marks=(pytest.mark.long,))],
    ("report", "--out"): [
        Case(
            "report verdicts.json --out at",
            before="validate a-taskfail-1 --json verdicts.json",
            marks=(pytest.mark.long,),
        )
    ],
    ("report", "--json"): [
        Case(
            "report verdicts.json --out pages --json at.json",
            before="validate a-taskfail-1 --json verdicts.json",
            marks=(pytest.mark.long,),
        )
    ],
    ("counterexamples", "--out"): [Case("counterexamples --out at")],
    ("bugbench", "--json"): [Case("bugbench FLINK-16641 --json at.json")],
    ("counterexamples", "--json"): [Case("counterexamples --out found --json at.json")],
    ("drive", "--itf"): [Case(f"{DRIVE} --itf at.itf.json", 161)],
    ("drive", "--log"): [Case(f"{DRIVE} --log at.ndjson", 161)],
    ("drive", "--pytest"): [Case(f"{DRIVE} --pytest at.py", 161)],
    ("drive", "--junit"): [Case(f"{DRIVE} --junit at.xml", 161)],
    ("drive", "--json"): [Case(f"{DRIVE} --json at.json", 161)],
    ("suite", "--out"): [Case("suite counter.py --itf --out at"), Case("suite counter.py --random 2 --out at")],
    ("suite", "--json"): [Case("suite counter.py --out suites --json at.json")],
    ("contract", "--json"): [Case("contract counter.py --json at.json")],
}  # fmt: skip
OBSTACLES: list[tuple[Callable[[Path], object], Callable[[Path], object]]] = [
    (lambda path: path.write_bytes(MINE), Path.unlink),
    (lambda path: path.symlink_to(Path("mine").absolute()), Path.unlink),
    (lambda path: path.symlink_to("/dev/full"), Path.unlink),
    (os.mkfifo, Path.unlink),
    (Path.mkdir, Path.rmdir),
]
"""What may be in the place of a file: how it is made, and how it is removed."""
READ_ONLY = {
    ("check", "--job-graph"), ("validate", "--job-graph"), ("run", "--script"), ("bugbench", "--folder"),
    ("drive", "--scripts"),
}  # fmt: skip
"""Options that name what is read."""
ALL = [pytest.param(case, id=f"{case.words}", marks=case.marks) for cases in CASES.values() for case in cases]


def test_every_option_that_names_an_output_is_here() -> None:
    """An option whose value is a path, by its type or by its help, is tried below or known to be read."""
    context = click.Context(cli)
    found = set()
    for verb in cli.list_commands(context):
        command = cli.get_command(context, verb)
        assert command is not None
        for option in command.params:
            if isinstance(option, click.Option) and (
                isinstance(option.type, click.Path | click.File)
                or {"FILE", "DIR", "PATH"} & {*(option.metavar or "").replace("|", " ").split()}
                or {"--out", "--json", "--output"} & {*option.opts}
            ):
                found.add((verb, option.opts[-1]))
    assert found == CASES.keys() | READ_ONLY


def test_every_export_format_is_here() -> None:
    """The cases of ``export --out`` have each format of the verb."""
    used = {case.words.split("--format ")[1].split()[0] for case in CASES["export", "--out"]}
    assert used == FORMS.keys()


@pytest.fixture
def place(folder: Path, monkeypatch: pytest.MonkeyPatch, run_folder: Path) -> Path:
    """The working folder with a second model, and the logs of a run; of the counterexamples, those of one model."""
    (folder / "grid.py").write_text(GRID)
    (folder / "stopping.py").write_text(STOPPING)
    shutil.copy(Path(__file__).parents[2] / "examples" / "collatz.py", folder / "job.py")
    (folder / "a-taskfail-1").symlink_to(run_folder)
    monkeypatch.setattr("streamproof.api.counterexamples.bundled", lambda: ["task_attempt"])
    monkeypatch.setenv("STREAMPROOF_CACHE", str(folder.parent / "cache"))
    return folder


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logs of one recorded run."""
    import tarfile

    where = tmp_path_factory.mktemp("logs")
    with tarfile.open(Path(__file__).parents[1] / "data" / "flink" / "logs.tar.xz") as packed:
        some = [m for m in packed.getmembers() if "/a-taskfail-1/" in f"/{m.name}"]
        packed.extractall(where, some, filter="data")
    return next(where.rglob("a-taskfail-1"))


def snapshot(folder: Path) -> dict[str, bytes]:
    """The content of every file."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def produced(streamproof: Command, place: Path, case: Case) -> list[Path]:
    """The files that a case writes at its option's place; the rest of its words is made ready, and they are removed."""
    if case.before:
        streamproof(*case.before.split())
    if case.appends:
        return [*(place / "at").iterdir()]
    before = snapshot(place)
    done = streamproof(*case.words.split())
    assert done.code == case.code, done.err
    new = [place / name for name in snapshot(place) if name not in before and name.startswith("at")]
    for path in new:
        path.unlink()
    return [path for path in new if path.name != ".streamproof.json"]


@pytest.mark.parametrize("case", share(ALL, 6, first=2))
def test_only_its_own_files_are_replaced(case: Case, place: Path, streamproof: Command) -> None:
    """What somebody else put in the place of a file stays, and the verb ends with 153; what it wrote itself is replaced.

    Of others are files, links to them and to devices, pipes and folders. Its own files are known by their content, so
    that they may be copied. Nothing is left half written.
    """
    words = case.words.split()
    files = produced(streamproof, place, case)
    assert files or "--spill" in words
    (place / "mine").write_bytes(MINE)
    for number, path in enumerate(files):
        kept = path.read_bytes() if path.exists() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        for make, undo in OBSTACLES if number == 0 else OBSTACLES[:1]:
            if make is Path.mkdir and words[0] == "export":
                continue  # a folder takes several documents
            make(path)
            before, kind = snapshot(place), path.lstat()
            done = streamproof(*words)
            assert done.code in ((2, 153) if case.appends else (153,)), done.err
            refused = f"{path.parent.name} is not empty" if done.code == 2 else ""
            assert path.name in done.err or (refused and refused in done.err), done.err
            assert (path.lstat().st_mode, path.lstat().st_ino) == (kind.st_mode, kind.st_ino)
            after = snapshot(place)
            assert {name: after.get(name) for name in before} == before, "no other file was touched"
            assert not [name for name in after if "/.streamproof-" in f"/{name}"]
            undo(path)
        if kept is not None:
            path.write_bytes(kept)
    if len(files) == 1 and files[0].parent == place:
        done = streamproof(*case.words.replace(files[0].name, "/dev/full").split())
        assert done.code == 153
        assert "/dev/full is " in done.err
    if "--checkpoint" in words:
        return  # a checkpoint is gone on from, not replaced: the tests of checkpoints
    assert streamproof(*words).code == case.code
    (place / "at" / ".streamproof.json").unlink(missing_ok=True)
    again = streamproof(*words)
    assert again.code == case.code, again.err


def test_links_into_a_checkpoint_folder_are_not_followed(place: Path, streamproof: Command) -> None:
    """A link named as the lock of a checkpoint does not empty what it leads to."""
    (place / "at").mkdir()
    (place / "mine").write_bytes(MINE)
    (place / "at" / "lock").symlink_to(place / "mine")
    assert streamproof(*["check", "grid.py", "-q", "--tier", "compiled", "--checkpoint", "at"]).code == 153
    assert (place / "mine").read_bytes() == MINE
    (place / "at" / "lock").unlink()
    (place / "at" / "lock").write_bytes(MINE)
    assert streamproof(*["check", "grid.py", "-q", "--tier", "compiled", "--checkpoint", "at"]).code == 0
    assert (place / "at" / "lock").read_bytes() == MINE


FULL = [
    case
    for cases in CASES.values()
    for case in cases
    if not case.marks and case.words.split()[0] in ("check", "export", "validate", "prove", "simulate", "replay")
    if "--spill" not in case.words and "--agree" not in case.words
]


@pytest.mark.parametrize("case", share(FULL, 18, first=1), ids=lambda case: case.words)
def test_a_full_disk_leaves_nothing_behind(case: Case, place: Path, streamproof: Command) -> None:
    """When there is no room, one message says so, older files are as they were, and there are no new ones, nor folders."""
    produced(streamproof, place, case)
    expect_nothing_left(place, case, 10)


def test_a_disk_that_gets_full_leaves_nothing_behind(place: Path) -> None:
    """The same where a list of files fits, and the files do not."""
    expect_nothing_left(place, Case(f"check {COUNT} --out at/b"), 300)


def expect_nothing_left(place: Path, case: Case, room: int) -> None:
    """Run a case where no file can be larger than the room there is, which is too little."""
    if (place / "at").is_dir() and not case.appends:
        shutil.rmtree(place / "at")
    before = snapshot(place), {*place.rglob("*")}
    environment = {**os.environ, "STREAMPROOF_CACHE": "", "PYTHONDONTWRITEBYTECODE": "1"}  # no byte code is cut short

    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    done = subprocess.run(
        [sys.executable, "-m", "streamproof", *case.words.split()],
        capture_output=True, text=True, cwd=place, env=environment, preexec_fn=full, check=False,
    )  # fmt: skip
    assert done.returncode == 153, done.stderr
    assert "Traceback" not in done.stderr
    assert "cannot be written" in done.stderr
    assert (snapshot(place), {*place.rglob("*")}) == before


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('name = "/elsewhere/x"', "the name '/elsewhere/x' cannot be part of a path"),
        ('name = "../x"', "the name '../x' cannot be part of a path"),
        ('name = ".hidden"', "the name '.hidden' cannot be part of a path"),
        ('name = "a\\0b"', "cannot be part of a path"),
        ('name = "a\\x1b[31mb"', "cannot be part of a path"),
    ],
)
def test_names_of_models_lead_nowhere(text: str, why: str, folder: Path, streamproof: Command) -> None:
    """A model whose name would be a path elsewhere is refused, at its class."""
    source = (folder / "counter.py").read_text()
    (folder / "named.py").write_text(source.replace("    check_deadlock = False\n", f"    {text}\n", 1))
    done = streamproof("check", "named.py")
    assert done.code == 150
    assert why in done.err
    assert "named.py:" in done.err


@pytest.mark.parametrize("variant", ["../../x", "/x", ".x", "a\\0b"])
def test_names_of_variants_lead_nowhere(variant: str, folder: Path, streamproof: Command) -> None:
    """So is a variant."""
    source = (folder / "counter.py").read_text()
    (folder / "named.py").write_text(source.replace('variant="jumping"', f'variant="{variant}"'))
    done = streamproof("check", "named.py")
    assert done.code == 150
    assert "cannot be part of a path" in done.err


def test_names_of_properties_lead_nowhere(folder: Path, streamproof: Command) -> None:
    """A property that a program names as a path is refused before anything is searched or written."""
    source = (folder / "counter.py").read_text() + (
        '\n\ndef _named(f):\n    f.__name__ = "../../x"\n    return f\n\n\n'
        "from streamproof import Spec\n\n\n@invariant\n@_named\ndef outside(s):\n    return s.n < 3\n\n\n"
        "SPEC = Spec(Counter, properties=(outside,))\n"
    )
    (folder / "named.py").write_text(source)
    before = {*folder.parent.rglob("x.itf.json")}
    done = streamproof("check", "named.py", "--out", "traces")
    assert done.code in (150, 153), done.err
    assert {*folder.parent.rglob("x.itf.json")} == before


def test_a_list_of_files_removes_only_its_own(folder: Path, streamproof: Command) -> None:
    """The list of a folder may come from anybody: what it names elsewhere, or what is not a trace, is not removed."""
    (folder / "mine.txt").write_bytes(MINE)
    (folder / "out").mkdir()
    (folder / "out" / "old.txt").write_bytes(MINE)
    listed = {"../mine.txt": "grows", "old.txt": "grows", "../counter.py": "grows"}
    (folder / "out" / ".streamproof.json").write_text(
        json.dumps({"about": "files that streamproof wrote here and may replace", "files": listed}, indent=1)
    )
    assert streamproof("check", "counter.py", "-q", "--out", "out").code == 12
    assert (folder / "mine.txt").read_bytes() == (folder / "out" / "old.txt").read_bytes() == MINE
    assert (folder / "counter.py").exists()


def test_a_model_is_not_overwritten_by_its_graph(folder: Path, streamproof: Command) -> None:
    """``--dot`` with the model's own file, and with a drawing of somebody else."""
    before = (folder / "counter.py").read_bytes()
    (folder / "a.dot").write_text("digraph mine { a -> b; }\n")
    for name in ("counter.py", "a.dot"):
        done = streamproof("check", "counter.py", "-q", "--dot", name)
        assert done.code == 153
        assert f"{name} exists and was not written by streamproof" in done.err
    assert (folder / "counter.py").read_bytes() == before
    assert (folder / "a.dot").read_text() == "digraph mine { a -> b; }\n"


@pytest.mark.parametrize("name", ["verdicts.json", "points.ndjson"])
def test_an_answer_replaces_only_answers_of_its_verb(name: str, folder: Path, streamproof: Command) -> None:
    """Verdicts, kept points and answers of other verbs are documents of streamproof, and stay all the same."""
    schema = {"verdicts.json": "streamproof.validate/1", "points.ndjson": "streamproof.sweep-points/1"}[name]
    document = f'{{"schema": "{schema}", "version": "1", "verdicts": []}}\n'
    (folder / name).write_text(document)
    for words in ("check counter.py -q", "models counter.py", f"report {name} --out pages"):
        done = streamproof(*words.split(), "--json", name)
        assert done.code in (2, 153), words
        assert (folder / name).read_text() == document, words
    assert streamproof("check", "counter.py", "-q", "--json", "a.json").code == 12
    assert streamproof("check", "counter.py", "-q", "--json", "a.json").code == 12


HANDWRITTEN = {
    "promela": ("a.pml", "/* NOT written by streamproof export, but by hand */\nactive proctype P() { skip }\n"),
    "smtlib": ("a.smt2", "; compare with the queries\n; written by streamproof export\n(check-sat)\n"),
    "tla": ("grid.tla", "---- MODULE grid ----\n\\* like the one written by streamproof export\n====\n"),
}


@pytest.mark.parametrize("form", HANDWRITTEN)
def test_a_file_that_only_mentions_streamproof_is_somebody_elses(form: str, place: Path, streamproof: Command) -> None:
    """Its first line is another one than that of an export."""
    name, text = HANDWRITTEN[form]
    (place / "out").mkdir()
    (place / "out" / name).write_text(text)
    out = "out" if form == "tla" else f"out/{name}"
    done = streamproof("export", "grid.py", "--format", form, "--out", out)
    assert done.code == 153
    assert (place / "out" / name).read_text() == text


def test_a_file_that_is_replaced_keeps_its_permissions(folder: Path, streamproof: Command) -> None:
    """A private answer stays private."""
    for _ in range(2):
        streamproof("check", "counter.py", "-q", "--json", "a.json")
        (folder / "a.json").chmod(0o600)
    assert streamproof("check", "counter.py", "-q", "--json", "a.json").code == 12
    assert (folder / "a.json").stat().st_mode & 0o777 == 0o600


def test_a_checkpoint_empties_no_other_file(place: Path, streamproof: Command) -> None:
    """Not even one that is linked into its folder as its own, beside a list that says that nothing is there yet."""
    words = ["check", "grid.py", "-q", "--tier", "compiled", "--checkpoint", "at"]
    assert streamproof(*words).code == 0
    manifest = place / "at" / "checkpoint.json"
    document = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**document, "mark": None}))
    (place / "mine").write_bytes(MINE)
    (place / "at" / "states.bin").unlink(missing_ok=True)
    (place / "at" / "states.bin").hardlink_to(place / "mine")
    streamproof(*words)
    assert (place / "mine").read_bytes() == MINE


def test_export_writes_to_standard_output(folder: Path, streamproof: Command) -> None:
    """``--out -`` writes one document there and nothing else; several documents, or JSON beside it, are refused."""
    done = streamproof("export", "counter.py", "--format", "promela", "--out", "-")
    assert done.code == 0
    assert done.out.startswith("/* ")
    assert done.out.rstrip().endswith("}") or "ltl" in done.out
    assert not (folder / "-").exists()
    for words in ("--format tla", "--format itf", "--format dot --json -", "--format dot --svg"):
        refused = streamproof("export", "counter.py", *words.split(), "--out", "-")
        assert refused.code == 2, words
        assert refused.out == ""
        assert not (folder / "-").exists()


@pytest.mark.parametrize("engine", ["explicit", "bmc"])
def test_what_a_model_prints_is_no_answer(engine: str, folder: Path, streamproof: Command) -> None:
    """What a model writes to standard output goes to standard error; the JSON is whole."""
    source = (folder / "counter.py").read_text()
    source = source.replace("    def setup(self):\n", '    def setup(self):\n        print("in setup")\n')
    (folder / "loud.py").write_text('print("imported")\n' + source)
    done = streamproof("check", "loud.py", "-q", "--engine", engine, "--json", "-")
    assert json.loads(done.out)["model"] == "counter"
    assert "imported" in done.err
    assert "in setup" in done.err
    plain = streamproof("models", "loud.py")
    assert "imported" not in plain.out
    assert "imported" in plain.err


def test_an_answer_goes_into_no_file_of_the_model(folder: Path) -> None:
    """A model that closes all files, and opens its own under their numbers, loses the answer and keeps its files."""
    source = (folder / "counter.py").read_text()
    closing = "import os\nos.closerange(3, 1024)\nKEPT = [open(f'kept-{n}.txt', 'a+') for n in range(4)]\n"
    (folder / "closing.py").write_text(closing + source)
    done = subprocess.run(
        [sys.executable, "-m", "streamproof", "check", "closing.py", "-q"],
        capture_output=True, text=True, cwd=folder, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (150, "")
    assert "closes files of the program" in done.stderr
    assert [(folder / f"kept-{n}.txt").read_bytes() for n in range(4)] == [b""] * 4


@pytest.mark.parametrize("where", ["class", "    def setup(self):\n"])
def test_a_model_that_changes_the_working_folder_moves_no_output(
    where: str, folder: Path, streamproof: Command
) -> None:
    """Its own files it finds where it has gone, also afterwards; what streamproof writes goes where it was asked to."""
    (folder / "else").mkdir()
    (folder / "else" / "limit.txt").write_text("3")
    moves = f"import os; os.chdir({str(folder / 'else')!r})\n"
    reads = "        assert open('limit.txt').read() == '3'\n"
    text = (folder / "counter.py").read_text().replace("self):\n        if", f"self):\n{reads}        if")
    text = text.replace(where, moves + where if where == "class" else f"{where}        {moves}", 1)
    (folder / "counter.py").write_text(text)
    words = "check counter.py -q --json a.json --certificate c --out o --dot d.dot"
    done = streamproof(*words.split())
    assert done.code == 12, done.err
    assert {path.name for path in folder.iterdir()} == {"a.json", "c", "o", "d.dot", "counter.py", "two.py", "else"}
    assert [path.name for path in (folder / "else").iterdir()] == ["limit.txt"]
