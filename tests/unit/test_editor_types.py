"""Type checkers know the parameters of a model, and the variables where an author lists them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from mypy import api

from streamproof import explore, values
from streamproof.language.native.views import ArrayView, BagView, QueueView
from streamproof.model_registry import find

SOURCE = """
from streamproof import Array, Bag, Case, Model, Queue, Range, Record, Set, State, Union, action, require
from streamproof.values import ArrayOf, BagOf, QueueOf, SetOf

class Ask(Case):
    k: int

class Variables:
    n: int
    slot: ArrayOf[int, int]
    wire: QueueOf[Ask]
    seen: SetOf[int]
    net: BagOf[Ask]

class Typed(Model):
    limit: int = 3
    check_deadlock = False

    def state(self):
        message = Union(Ask(k=Range(0, 1)))
        return State(
            n=Range(0, self.limit),
            slot=Array(2, Range(0, 1)),
            wire=Queue(message, capacity=2),
            seen=Set(Range(0, 1)),
            net=Bag(message, capacity=2),
        )

    @action
    def increment(self, s: Variables):
        require(s.n < self.limit)
        s.n += 1

    @action
    def every(self, s: Variables):
        require(s.n == self.limit and not s.wire.full and len(s.net) < 2)
        s.wire.push(Ask(k=1))
        s.net.add(s.wire.head)
        s.net.discard(Ask(k=0))
        s.slot[0] = s.wire.head.k + s.net.count(Ask(k=0))
        s.slot = [min(v, 1) for v in s.slot]
        s.wire = [m for m in s.wire if m.k > 0] + s.wire[2:]
        s.seen |= {0, 1}
        s.n = max(s.seen)
"""
WRONG = """
    @action
    def wrong(self, s: Variables):
        s.m = 1
        s.wire.push(1)
        s.net = [1]
        reveal_type(s.slot[0])
        reveal_type(s.wire)
        reveal_type(s.seen)
        reveal_type(s.net)

    def free(self, s):
        reveal_type(s)

Typed(limit=2)
Typed(limit="2")
Typed(limt=2)
"""


def test_annotations_of_rules_have_no_effect(tmp_path: Path) -> None:
    """A rule with an annotated state is the same rule."""
    (tmp_path / "typed.py").write_text(SOURCE)
    counts = explore(find(str(tmp_path / "typed.py")).spec.system(None)).counts
    assert counts is not None
    assert counts.distinct == 10  # 4, and 3 after each of two messages


@pytest.mark.long
def test_mypy_knows_parameters_and_variables(tmp_path: Path) -> None:
    """A misspelt variable, a parameter of another type and an unknown one are reported, and nothing else."""
    file = tmp_path / "typed.py"
    file.write_text(SOURCE + WRONG)
    out, err, _ = api.run(["--config-file=", "--check-untyped-defs", "--cache-dir", str(tmp_path / "cache"), str(file)])
    assert err == ""
    said = [line.partition(": ")[2].partition(";")[0] for line in out.splitlines()[:-1]]
    assert said == [
        'error: "Variables" has no attribute "m"  [attr-defined]',
        'error: Argument 1 to "push" of "QueueValue" has incompatible type "int"',
        'error: List item 0 has incompatible type "int"',
        'note: Revealed type is "int"',
        'note: Revealed type is "streamproof.values.QueueValue[typed.Ask]"',
        'note: Revealed type is "set[int]"',
        'note: Revealed type is "streamproof.values.BagValue[typed.Ask]"',
        'note: Revealed type is "Any"',
        'error: Argument "limit" to "Typed" has incompatible type "str"',
        'error: Unexpected keyword argument "limt" for "Typed"',
    ]


def test_stub_and_module_have_the_same_annotations() -> None:
    """The annotations of the stub exist at run time, and their values have the members that a state has in rules."""
    stub = ast.parse(Path(values.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    names = {name for name in vars(values) if name.endswith("Of")}
    assert {name for name in classes if name.endswith("Of")} == names
    assert all(getattr(values, name)[int, str] is getattr(values, name) for name in names)
    for name, view in {"ArrayValue": ArrayView, "QueueValue": QueueView, "BagValue": BagView}.items():
        functions = {node.name for node in classes[name].body if isinstance(node, ast.FunctionDef)}
        aliases = {ast.unparse(node.targets[0]) for node in classes[name].body if isinstance(node, ast.Assign)}
        assert functions | aliases <= vars(view).keys()
        assert {member for member in vars(view) if not member.startswith("_")} <= functions | aliases
