"""What a model or a specification cannot declare ends with one message at its line, and exit code 150."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

HEAD = """from streamproof import Model, Range, Spec, State, action, invariant, require


class Counts(Model):
    n: int = 2

    def state(self):
        return State(a=Range(0, 2))

    @action
    def go(self, s):
        require(s.a < 2)
        s.a += 1

    @invariant
    def low(self, s):
        return s.a < 3
"""
LINE = HEAD.count("\n") + 1
"""Where what a case adds begins."""

DECLARED = [
    ("    sizes = [1]", "sizes of Counts is [1]", 'write sizes = {"small": {"n": 1}, "medium": {"n": 2}}'),
    ('    sizes = {"small": 3}', "sizes of Counts is {'small': 3}", "write sizes = {"),
    (
        '    sizes = {"small": {"nn": 3}}',
        "sizes of Counts sets, for 'small', 'nn', which is not a parameter",
        "did you mean n?",
    ),
    ('    sizes = {"small": {"n": "2"}}', "sizes of Counts sets, for 'small', n to '2'", "n is of type int"),
    ('    limits = {"n": 3}', "limits of Counts gives n 3", 'write limits = {"n": (1, 8)}, with None for no limit'),
    ("    limits = 3", "limits of Counts is 3", 'write limits = {"n": (1, 8)}, with None for no limit'),
    ('    limits = {"n": (5, 1)}', "limits of Counts leaves no value for n: (5, 1)", "give the least value first"),
    ('    instance_bounds = "n"', "instance_bounds of Counts is 'n'", 'write instance_bounds = ("n",)'),
    (
        '    instance_bounds = ("m",)',
        "instance_bounds of Counts names 'm', which is not a parameter",
        "its parameters: n",
    ),
    ('    limits = {"m": (1, 5)}', "limits of Counts names 'm', which is not a parameter", "its parameters: n"),
    ("    name = 3", "name of Counts is 3", "give a text"),
    ("    check_deadlock = 1", "check_deadlock of Counts is 1", "give True or False"),
    ('    k: int = "two"', "the default of k, 'two', is not of type int", "give it one: k: int = 0"),
    ("    k: int = True", "the default of k, True, is not of type int", "give it one: k: int = 0"),
    ('    k: "str" = 3', "the default of k, 3, is not of type str", "give it one: k: str = ''"),
    (
        "    k: float = 1.5",
        "the parameter k is declared as float",
        "parameters are int, bool, str, or int | None and the like; declare other attributes",
    ),
    (
        "    k: list = [1]",
        "the parameter k is declared as list",
        "parameters are int, bool, str, or int | None and the like; declare other attributes",
    ),
    ('    k: "Nowhere" = 1', "the parameter k is declared as Nowhere", "parameters are int, bool, str, or int | None"),
    (
        "    def __init__(self, z):\n        self.z = z",
        "Counts has its own __init__, and cannot be made from its parameters",
        "write def setup(self), which is called when the parameters are set",
    ),
    ("    def setup(self, z):\n        self.z = z", "setup of Counts takes self, z", "it takes self and nothing else"),
    (
        "    @action\n    @property\n    def more(self):\n        return 1",
        "more is decorated, but is not a plain method",
        "write def more(self, s, ...) with the mark alone",
    ),
    (
        "    @staticmethod\n    @action\n    def more(self, s):\n        s.a = 0",
        "more is decorated, but is not a plain method: @staticmethod",
        "write def more(self, s, ...) without",
    ),
    (
        "    @action\n    @invariant\n    def more(self, s):\n        s.a = 0",
        "'more' has two marks",
        "write two methods",
    ),
    (
        "    @invariant\n    def low(self, s):\n        return s.a < 9",
        "'low' is defined twice in Counts, lines 16 and ",
        "rename one of them",
    ),
    (
        "    @action\n    def go(self, s):\n        s.a = 0",
        "'go' is defined twice in Counts, lines 11 and ",
        "rename one of them",
    ),
    (
        "    @invariant\n    def go(self, s):\n        return s.a < 9",
        "'go' is defined twice in Counts, lines 11 and ",
        "rename one of them",
    ),
    ("SPEC = Spec(3)", "the model of a Spec is 3", "give the class: Spec(MyModel, ...)"),
    ("SPEC = Spec(Counts, properties=(3,))", "properties of a Spec holds 3", "give functions marked @invariant"),
    ("SPEC = Spec(Counts, properties=3)", "properties of a Spec is 3", "give a tuple of functions: properties="),
    ("SPEC = Spec(Counts, measures=(3,))", "measures of a Spec holds 3", "give functions marked @invariant"),
    ("SPEC = Spec(Counts, expected=3)", "expected of a Spec is 3", "give a dict of dicts: expected={VARIANT: {...}}"),
    (
        'SPEC = Spec(Counts, expected={None: {"zz": "violated"}})',
        "a verdict is expected of 'zz', which is not a property",
        "its properties: low, deadlock",
    ),
    (
        'SPEC = Spec(Counts, expected={None: {"low": "maybe"}})',
        "'maybe' is expected of low, which is not a verdict",
        "expect one of holds, violated",
    ),
    (
        'SPEC = Spec(Counts, expected={"vv": {"low": "violated"}})',
        "expected names 'vv', which is not a variant",
        "its variants: none",
    ),
    (
        'SPEC = Spec(Counts, variant_parameters={"vv": {"n": 3}})',
        "variant_parameters names 'vv', which is not a variant",
        "its variants: none",
    ),
    ("SPEC = Spec(Counts, termination=3)", "termination of a Spec is 3", "give True or False"),
    ("SPEC = Spec(Counts, sweeps=3)", "sweeps of a Spec is 3", "give a Sweep(...)"),
]


@pytest.mark.parametrize(("text", "message", "remedy"), DECLARED, ids=[text for text, _, _ in DECLARED])
@pytest.mark.parametrize("verb", ["check", "prove"])
def test_what_cannot_be_declared(
    streamproof: Any, folder: Path, verb: str, text: str, message: str, remedy: str
) -> None:
    """The message names the declaration's line, and the next line says what to write."""
    (folder / "m.py").write_text(f"{HEAD}{text}\n")
    done = streamproof(verb, "m.py", "-q")
    first, second = done.err.splitlines()[:2]
    place, _, told = first.removeprefix("streamproof: error: m.py:").partition(": ")
    assert (done.code, done.out) == (150, "")
    assert LINE <= int(place) <= LINE + 3
    assert told.startswith(message)
    assert second.strip().startswith(remedy)


def test_a_class_with_rules_and_no_state_is_named(streamproof: Any, folder: Path) -> None:
    """A file whose only class forgets `state` has a model, which is malformed."""
    (folder / "m.py").write_text(HEAD.replace("def state", "def stat"))
    done = streamproof("check", "m.py")
    assert (done.code, done.err.splitlines()[0]) == (150, "streamproof: error: m.py:4: Counts declares no state")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (" + ".join(["s.a"] * 3000) + " >= 0", "an expression is nested too deeply for Python"),
        ("not " * 5000 + "s.a == 0", "an expression is nested too deeply for Python"),
        ("(lambda: " * 3000 + "s.a" + ")()" * 3000, "an expression is nested too deeply for Python"),
        ("s.a < " + "9" * 5000, "an integer has more than 4,300 digits"),
        ("(" * 3000 + "s.a" + ")" * 3000, "SyntaxError: too many nested parentheses"),
    ],
    ids=["sum", "not", "lambda", "digits", "parentheses"],
)
def test_what_python_cannot_compile(streamproof: Any, folder: Path, expression: str, message: str) -> None:
    """The line is the expression's, the words are not Python's, and a long line is not repeated whole."""
    (folder / "m.py").write_text(f"{HEAD}\n    @invariant\n    def deep(self, s):\n        return {expression}\n")
    done = streamproof("check", "m.py")
    assert (done.code, done.err.splitlines()[0]) == (150, f"streamproof: error: m.py:{LINE + 3}: {message}")
    assert len(done.err) < 400


def test_a_sum_of_two_thousand_terms_is_read(streamproof: Any, folder: Path) -> None:
    """What Python compiles is lowered."""
    (folder / "m.py").write_text(
        f"{HEAD}\n    @invariant\n    def deep(self, s):\n        return {' + '.join(['s.a'] * 2000)} >= 0\n"
    )
    done = streamproof("check", "m.py", "--property", "deep")
    assert (done.code, "holds: deep" in done.out) == (0, True)


def test_a_file_in_another_encoding(streamproof: Any, folder: Path) -> None:
    """Bytes that are not UTF-8 are named, unless the first line names their encoding; a byte order mark is none of them."""
    (folder / "m.py").write_bytes(b"# \xe9\n" + HEAD.encode())
    done = streamproof("check", "m.py")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "streamproof: error: m.py is not UTF-8 text: byte 2 is 0xe9\n"
        "  store it as UTF-8, or name its encoding in the first line\n"
    )
    for start in (b"# -*- coding: latin-1 -*-\n# \xe9\n", b"\xef\xbb\xbf"):
        (folder / "m.py").write_bytes(start + HEAD.encode())
        assert streamproof("check", "m.py", "--property", "low").code == 0


def test_what_is_no_regular_file(streamproof: Any, folder: Path) -> None:
    """A pipe is not waited for, and a link that leads nowhere is no missing file."""
    os.mkfifo(folder / "pipe.py")
    (folder / "loop.py").symlink_to("loop.py")
    (folder / "dead.py").symlink_to("nowhere.py")
    for name, why in (
        ("pipe.py", "is a pipe"),
        ("loop.py", "cannot be read: Too many levels of symbolic links"),
        ("dead.py", "is a link to a file that does not exist"),
    ):
        done = streamproof("check", name)
        assert (done.code, done.out, done.err) == (2, "", f"streamproof: error: {name} {why}\n  check the path\n")


def test_a_range_below_zero_has_to_say_where_it_starts(streamproof: Any, folder: Path) -> None:
    """Neither 0 nor the least value is taken for granted, in arrays and records too; what starts empty needs no value."""
    for sort in ("Range(-9, 3)", "Array(2, Range(-9, 3))", "Record(k=Range(-9, 3))", "Range(-9, -3)"):
        text = HEAD.replace("Range(0, 2))", f"Range(0, 2), x={sort})").replace("import ", "import Array, Record, ", 1)
        (folder / "m.py").write_text(text)
        done = streamproof("check", "m.py")
        assert (done.code, done.out) == (150, "")
        assert done.err.startswith("streamproof: error: m.py:8: x has no init, and the least value of ")
        assert done.err.endswith("  say where it starts: init=0, or another value of the range\n")
    for sort in (
        "Range(-9, 3, init=-9)",
        "Queue(Range(-9, 3), capacity=1)",
        "Array(2, Range(-9, 3), init=0)",
        "Array(0, Range(-9, 3))",
    ):
        text = HEAD.replace("Range(0, 2))", f"Range(0, 2), x={sort})").replace("import ", "import Array, Queue, ", 1)
        (folder / "m.py").write_text(text)
        assert streamproof("check", "m.py", "--property", "low").code == 0


def test_a_promise_beside_its_one_specification(streamproof: Any, folder: Path) -> None:
    """The model that the only Spec of a file refines is not a second model to choose from."""
    (folder / "m.py").write_text(
        f"from streamproof import refines\n{HEAD}\n\nclass Promise(Counts):\n    pass\n\n\n"
        "@refines(Promise)\ndef keeps(m, s):\n    return {'a': s.a}\n\n\nSPEC = Spec(Counts, properties=(keeps,))\n"
    )
    assert streamproof("check", "m.py", "--property", "keeps").code == 0


def test_a_value_of_a_narrower_enum(streamproof: Any, folder: Path) -> None:
    """A wider Enum takes it, and is compared with it; one that lacks a name refuses it."""
    model = """from streamproof import Enum, Model, State, action, reachable
class Wide(Model):
    check_deadlock = False
    def state(self):
        return State(narrow=Enum("A", "B"), wide=Enum("C", "B", "A", init="A"))
    @action
    def change(self, s):
        s.narrow = "B"
    @action
    def copy(self, s):
        TARGET
    @reachable
    def both(self, s):
        return s.wide == "B" and s.narrow == s.wide
"""
    (folder / "m.py").write_text(model.replace("TARGET", "s.wide = s.narrow"))
    assert streamproof("check", "m.py", "-q").code == 0
    (folder / "m.py").write_text(model.replace("TARGET", "s.narrow = s.wide"))
    done = streamproof("check", "m.py", "-q")
    assert (done.code, "m.py:11: an Enum('C', 'B', 'A') is not a value of Enum('A', 'B')" in done.err) == (150, True)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            "@action(k=[1])\n    def other(self, s, *, k):\n        s.a = k\n",
            "action other has parameters behind a *\n  write def other(self, s, ...)",
        ),
        (
            "@action\n    def other(self, s):\n        for _ in range(10**12):\n            s.a = 0\n",
            "a loop over more than 1,000,000 elements\n  choose smaller parameters, or another form",
        ),
    ],
)
def test_rules_that_cannot_be_read_are_named(streamproof: Any, folder: Path, rule: str, message: str) -> None:
    """With file and line, before they take the memory."""
    (folder / "counts.py").write_text(HEAD + "\n    " + rule)
    done = streamproof("check", "counts.py", "-q")
    assert done.code == 150
    assert "counts.py:" in done.err
    assert message in done.err
