"""Every wrong word on the command line gets one message that says what to write instead, and its exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FILES = {
    "zero.py": "from streamproof import Model\nx = 1 / 0\n",
    "forgot.py": "from streamproof import Model\n\nfair = WEAK\n",
    "syntax.py": "class A(:\n    pass\n",
    "leaves.py": "import sys\nsys.exit(3)\n",
    "empty.py": "",
    "imports.py": "import nowhere_to_be_found\n",
    "notes.txt": "not Python",
    "trace.json": "[]",
    "made.py": "from streamproof import Model, Range, State, action\nclass M(Model):\n    n: int = 3\n"
    "    def __new__(cls, *a, **k):\n        return 3\n    def state(self):\n        return State(x=Range(0, 3))\n"
    "    @action\n    def go(self, s):\n        s.x = 0\n",
    "unnamed.py": "from streamproof import Model, Range, State, action\n__name__ = 3\n\nclass M(Model):\n"
    "    n: int = 3\n    def state(self):\n        return State(x=Range(0, 3))\n"
    "    @action\n    def go(self, s):\n        s.x = 0\n",
    "raises.py": "from streamproof import Model, Range, State, action\n\n\nclass Raises(Model):\n    def state(self):\n"
    "        return State(n=Range(0, self.nothing))\n\n    @action\n    def go(self, s):\n        s.n = 0\n",
}

CASES = [
    # models
    ("check nosuch", 2, "unknown model 'nosuch'"),
    ("check failovr", 2, "unknown model 'failovr'\n  did you mean failover?\n  streamproof models lists the"),
    ("check die_hard", 2, "unknown model 'die_hard'\n  did you mean reference.die_hard?"),
    ("check missing.py", 2, "missing.py does not exist\n  check the path"),
    ("check notes.txt", 2, "notes.txt is not a Python file\n  name a file that ends in .py"),
    ("check ./", 2, "./ is a folder\n  name a file that ends in .py"),
    ("check empty.py", 2, "empty.py defines no model"),
    ("check two.py", 2, "two.py defines 2 models\n  name one of them: two.py:Stops, two.py:Overflows"),
    ("check two.py:Stop", 2, "two.py has no 'Stop'\n  did you mean Stops?\n  its models: Stops, Overflows"),
    ("check two.py:helper", 2, "helper in two.py is a function, neither a Spec nor a Model class"),
    (
        "check counter.py:Jumping",
        2,
        "Jumping is the variant 'jumping' of counter\n  check the model with --variant jumping",
    ),
    ("check no_such_module:Name", 2, "no module named no_such_module"),
    ("check counter:Nobody", 2, "counter has no 'Nobody'\n  its models: Counter"),
    # the user's code
    ("check zero.py", 150, "zero.py:2: ZeroDivisionError: division by zero\n  correct the model"),
    ("check forgot.py", 150, "forgot.py:3: NameError: name 'WEAK' is not defined\n  add it to the names imported from"),
    ("check syntax.py", 150, "syntax.py:1: SyntaxError: invalid syntax\n    class A(:\n  correct the file"),
    ("check leaves.py", 150, "leaves.py:2: the file ends the program while it is imported"),
    ("check imports.py", 150, "imports.py:1: ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
    ("check raises.py", 150, "raises.py:6: AttributeError in state(): 'Raises' object has no attribute 'nothing'"),
    ("check made.py", 150, "made.py:4: M has its own __new__\n  write def setup(self)"),
    ("check unnamed.py", 150, "unnamed.py:6: the module of M is named 3, which is not a str\n  leave __name__"),
    # names within a model
    (
        "check counter.py --variant jump",
        2,
        "counter has no variant 'jump'\n  did you mean jumping?\n  its variants: jumping",
    ),
    ("check counter.py --size huge", 2, "counter has no size 'huge'\n  its sizes: small, medium"),
    (
        "check counter.py -p limits=3",
        2,
        "counter has no parameter 'limits'\n  did you mean limit?\n  its parameters: limit",
    ),
    ("check counter.py -p limit", 2, "-p limit: no value\n  write -p name=value"),
    ("check counter.py -p limit=x", 2, "limit='x' is not a value of type int\n  give an integer"),
    (
        "check counter.py -p limit=101",
        2,
        "counter.py:15: the limit is at most 100\n  the model rejects its parameters: limit=101",
    ),
    (
        "check counter.py --property lo",
        2,
        "counter has no property 'lo'\n  did you mean low?\n  its properties: low, grows, full",
    ),
    # limits and engines
    ("check counter.py --max-states 0", 2, "invalid value for '--max-states': 0 is not in the range x>=1\n"),
    ("check counter.py --timeout 0", 2, "invalid value for '--timeout': 0.0 is not in the range x>0\n"),
    ("check counter.py --time-limit 0", 2, "invalid value for '--timeout': 0.0 is not in the range x>0\n"),
    ("check counter.py --timeout nan", 2, "invalid value for '--timeout': nan is not a number of seconds\n"),
    ("prove counter.py --query-timeout nan", 2, "invalid value for '--query-timeout': nan is not a number of"),
    (
        "sweep counter.py --timeout inf",
        2,
        "a sweep limits the time of each point\n  give --timeout a number of seconds",
    ),
    ("check counter.py --timeout 3 --time-limit 4", 2, "--timeout is given 2 times; give it once\n"),
    ("check counter.py --json a --json b", 2, "--json is given 2 times; give it once\n"),
    ("check counter.py -p limit=1 -p limit=2", 2, "the parameter limit is given 2 times\n  give it once"),
    ("sweep counter.py -p limit=1 -p limit=2..3", 2, "the parameter limit is given 2 times\n  give it once"),
    ("check counter.py --depth 2 --max-depth 3", 2, "--max-depth is an older name of --depth\n  leave out --max-depth"),
    ("prove counter.py --any ,", 2, "--any ',' names no parameter\n  write --any NAME[,NAME], or leave it out"),
    ("validate . --format parquet", 2, "--format requires --events\n  add --events DIR"),
    (
        "check counter.py --engine bmc --max-states 5",
        2,
        "bmc has no --max-states: it visits no states\n  leave it out",
    ),
    (
        "check counter.py --engine bmc --dot g.dot",
        2,
        "bmc has no --dot: it visits no states\n  leave out --dot, or --engine bmc",
    ),
    (
        "check counter.py --engine spin",
        2,
        "invalid value for '--engine': 'spin' is not one of 'explicit', 'spark', 'bmc'\n",
    ),
    # places
    ("check counter.py --out notes.txt", 153, "notes.txt is a file\n  name a folder"),
    ("check counter.py --out notes.txt/x", 153, "notes.txt/x cannot be written: "),
    (
        "check counter.py --json notes.txt",
        153,
        "notes.txt exists and was not written by streamproof as JSON",
    ),
    ("check counter.py --json ./", 153, ". is a folder\n  name a file"),
    ("check counter.py --dot ./", 153, ". is a folder\n  name a file"),
    ("report trace.json --out notes.txt", 153, "notes.txt is a file\n  name a folder"),
    (
        "check counter.py --certificate o --json ./o",
        2,
        "--certificate and --json have the same path, ./o\n  give different paths",
    ),
    ("check counter.py --json o --dot o", 2, "--json and --dot have the same path, o\n"),
    ("prove counter.py --certificate o --json o", 2, "--certificate and --json have the same path, o\n"),
    ("simulate counter.py --json o --out o", 2, "--json and --out have the same path, o\n"),
    ("sweep counter.py --json o --out o", 2, "--json and --out have the same path, o\n"),
    ("check counter.py --certificate -", 2, "--certificate does not write to standard output\n  name a path"),
    ("check counter.py --dot -", 2, "--dot does not write to standard output\n  name a path"),
    # verbs and options
    ("frobnicate", 2, "no such verb 'frobnicate'\n  streamproof --help lists the verbs"),
    ("chekc counter.py", 2, "no such verb 'chekc'\n  did you mean check?\n"),
    ("valdate runs", 2, "no such verb 'valdate'\n  did you mean validate?\n"),
    ("modles", 2, "no such verb 'modles'\n  did you mean models?\n"),
    ("check", 2, "missing argument 'MODEL'\n  streamproof check --help explains"),
    ("check counter.py --propery low", 2, "no such option --propery\n  did you mean --property?\n"),
    ("check counter.py --varient low", 2, "no such option --varient\n  did you mean --variant?\n"),
    ("check counter.py --frobnicate", 2, "no such option --frobnicate\n  streamproof check --help explains"),
    ("check failover --topology diamon", 2, "streamproof_models/failover/machine.py:"),
    (
        "export counter.py",
        2,
        "missing option '--format'. Choose from: itf, dot, sequence, html, promela, tla, smtlib, chc\n",
    ),
    ("completion", 2, "missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish\n"),
    ("completion tcsh", 2, "invalid value for '{bash|zsh|fish}': 'tcsh' is not one of 'bash', 'zsh', 'fish'\n"),
    # traces and logs
    ("replay missing.itf.json", 2, "missing.itf.json does not exist\n  check the path"),
    ("replay notes.txt", 2, "notes.txt:1: not JSON: Expecting value"),
    ("replay trace.json", 2, "trace.json: not a trace in ITF: no list of states"),
    ("validate missing", 2, "invalid value for 'PATHS...': Path 'missing' does not exist\n"),
    ("report missing --out r", 2, "missing: no such file or folder"),
    ("export counter.py --format itf --out a.itf.json --action x --property low", 2, "--action and --property exclude"),
    ("export counter.py --format itf --out t --svg", 2, "--svg draws what --format dot writes"),
    ("export counter.py --format itf --out a.itf.json", 2, "a.itf.json is one file, and there are 2 traces: low, full"),
    (
        "export counter.py --format itf --out t --property grows",
        2,
        "no property has a trace (grows holds: true of 3 steps",
    ),
    ("export counter.py --format dot --out g.dot --limit 2", 152, "the graph of counter has more than 2 states"),
    (
        "export counter.py --format promela --out notes.txt",
        153,
        "notes.txt exists and was not written by streamproof as Promela\n  name another place",
    ),
    (
        "export counter.py --format promela --out c.pml --property low",
        2,
        "low is part of the text of the model; only temporal properties have separate texts\n  leave out --property",
    ),
    (
        "export credit_connection --format promela --out c.pml --property counted_fairness",
        2,
        "counted_fairness is split into 10 texts\n  name a folder",
    ),
    (
        "export counter.py --format tla --out c.tla",
        2,
        "c.tla is a single file, and --format tla writes several\n  name a folder",
    ),
    (
        "export counter.py --format tla --out c --max-states 3",
        2,
        "--format tla writes the whole model and searches nothing",
    ),
    (
        "export counter.py --format dot --out notes.txt",
        153,
        "notes.txt exists and was not written by streamproof as DOT",
    ),
]


@pytest.mark.parametrize(("line", "code", "message"), CASES, ids=[line for line, _, _ in CASES])
def test_bad_input(streamproof: Any, folder: Path, line: str, code: int, message: str) -> None:
    """The command ends with its code, writes nothing to standard output, one message to standard error, and no file."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = streamproof(*line.split())
    assert done.code == code, done.err
    assert done.err.startswith(f"streamproof: error: {message}")
    assert done.out == ""
    assert "Traceback" not in done.err
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_developers_get_the_traceback(streamproof: Any, folder: Path) -> None:
    """`--traceback`, before or after the verb, shows it above the message, and changes no exit code."""
    (folder / "zero.py").write_text(FILES["zero.py"])
    for arguments in (("--traceback", "check", "zero.py"), ("check", "zero.py", "--traceback")):
        done = streamproof(*arguments)
        assert done.code == 150
        assert done.err.startswith("Traceback (most recent call last):\n")
        assert "\nstreamproof: error: zero.py:" in done.err


@pytest.mark.parametrize("words", [("--topology", "diamon"), ("-p", "topology=diamon")])
def test_the_nearest_topology_is_suggested(streamproof: Any, words: tuple[str, ...]) -> None:
    """A model that refuses a text with a list of those it allows gets a suggestion from that list."""
    done = streamproof("check", "failover", *words)
    assert (done.code, "\n  did you mean diamond?\n" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (("check", "counter.py", "-p", "limit=2", "--time-limit", "60"), "check counter.py -p limit=2 --timeout 60"),
        (("check", "counter.py", "--max-depth", "1"), "check counter.py --depth 0"),
        (("check", "counter.py", "--depth", "1"), "check counter.py --depth 1"),
        (("simulate", "counter.py", "--time-limit", "60", "--walks", "2", "--seed", "1"), ""),
        (("sweep", "counter.py", "-p", "limit=1..2", "--jobs", "1"), "sweep counter.py -p limit=1..2"),
    ],
)
def test_former_names_of_options_work(streamproof: Any, words: tuple[str, ...], same: str) -> None:
    """An option that was renamed is accepted under its old name, which no help lists; the line to repeat has the new one."""
    done = streamproof(*words, "-q")
    assert done.code != 2, done.err
    assert f"reproduce: streamproof {same}" in done.out
    assert not {"--time-limit", "--jobs"} & set(streamproof(words[0], "--help").out.split())


def test_a_trace_from_standard_input(streamproof: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe is read once; `-` stands for it."""
    streamproof("check", "counter.py", "-q")
    text = (folder / "streamproof-out" / "counter" / "low.itf.json").read_text()
    for name in ("-", "/dev/stdin"):
        done = subprocess.run(
            [sys.executable, "-m", "streamproof", "replay", name, "--model", "counter.py", "-q"],
            input=text, capture_output=True, text=True, check=False,
        )  # fmt: skip
        said = "standard input: replayed, 3 steps; it violates low\n"
        assert (done.returncode, done.stdout) == (0, said), done.stderr


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("9" * 5000, "low.itf.json:{line}: a number has more than 300 digits, which is the limit"),
        (
            "[" * 100_000 + "]" * 100_000,
            "low.itf.json:{line}: lists and objects are nested deeper than 500, which is the limit",
        ),
        ('{"#bigint": "3"}, "once": 1, "once": 2', "low.itf.json:{line}: the key 'once' occurs twice in one object"),
        ('{"#bigint": "3"}, "n": 2', "low.itf.json: the key 'n' occurs twice in one object"),
    ],
    ids=["digits", "nesting", "twice", "somewhere twice"],
)
def test_json_that_python_cannot_read(streamproof: Any, folder: Path, value: str, message: str) -> None:
    """The message names the line where it is certain, in words of ours; a byte order mark is no mistake."""
    streamproof("check", "counter.py", "-q")
    text = (folder / "streamproof-out" / "counter" / "low.itf.json").read_text()
    (folder / "low.itf.json").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert streamproof("replay", "low.itf.json", "--model", "counter.py", "-q").code == 0
    last = '{"#bigint": "3"}'
    before, _, after = text.rpartition(last)
    (folder / "low.itf.json").write_text(before + value + after)
    done = streamproof("replay", "low.itf.json", "--model", "counter.py", "-q")
    line = before.count("\n") + 1
    assert (done.code, done.err.splitlines()[0]) == (2, f"streamproof: error: {message.format(line=line)}")


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ('"kind": "invariant"', '"kind": "reachable"', 2, "#meta.kind: low is of kind invariant, the file says 'reach"),
        ('"kind": "invariant"', '"kind": null', 2, "#meta.kind: expected a text, found null"),
        ('"parameters": {"limit": 3}', '"parameters": [1]', 2, "#meta.parameters: expected an object, found [1]"),
        ('"property": "low"', '"property": ["low"]', 2, '#meta.property: expected a text, found ["low"]'),
        ('"vars": [', '"vars": null, "x": [', 2, "vars: expected a list of variables, found null"),
        ('"vars": ["mbt', '"vars": ["n", "mbt', 2, 'vars[3]: "n" again, as vars[0]'),
        ('"vars": ["mbt', '"vars": [3, "mbt', 2, "vars[0]: expected the name of a variable, found 3"),
        ('{"index": 2}', '{"index": 1}', 2, "states[2].#meta.index: 1 again, as states[1].#meta.index"),
        ('"#meta": {\n  "format"', '"#meta": null, "x": {"format"', 2, "#meta: expected an object, found null"),
        ('nondetPicks": {}', 'nondetPicks": {"zz": 1}', 161, "states[1].mbt::nondetPicks: no action of the model has"),
    ],
)
def test_a_malformed_trace(streamproof: Any, folder: Path, old: str, new: str, code: int, message: str) -> None:
    """What a trace says of itself has its form, also where the replay does not need it."""
    streamproof("check", "counter.py", "-q")
    text = (folder / "streamproof-out" / "counter" / "low.itf.json").read_text()
    assert old in text, text[:900]
    (folder / "low.itf.json").write_text(text.replace(old, new))
    done = streamproof("replay", "low.itf.json", "--model", "counter.py", "-q")
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(f"streamproof: error: low.itf.json: {message}")


def test_a_file_whose_name_has_a_colon(streamproof: Any, folder: Path) -> None:
    """A file that is there is the model, whatever is in its name."""
    (folder / "x:y.py").write_bytes((folder / "counter.py").read_bytes())
    done = streamproof("check", "x:y.py", "-q")
    assert (done.code, done.err) == (streamproof("check", "counter.py", "-q").code, "")
    assert done.out.endswith("reproduce: streamproof check x:y.py\n")


def test_counterexamples_in_a_folder_that_is_missing(streamproof: Any, folder: Path) -> None:
    """Nothing is searched first."""
    done = streamproof("counterexamples", "--check", "--out", "nope")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("streamproof: error: the folder nope does not exist\n")
