"""No test passes because it has nothing to check: assertions in a loop over computed values need one value at least."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from nonempty import nonempty

TESTS = Path(__file__).parents[1]


def is_assertion(node: ast.AST) -> bool:
    """`assert`, `raise`, and calls of `pytest.raises` and `pytest.fail`."""
    call = node.func if isinstance(node, ast.Call) else None
    return isinstance(node, ast.Assert | ast.Raise) or (
        isinstance(call, ast.Attribute) and call.attr in ("raises", "fail")
    )


def has_values(values: ast.expr, displays: frozenset[str]) -> bool:
    """Whether the source shows that a loop over these values is entered; `displays` are names of displays."""
    match values:
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return any(not isinstance(element, ast.Starred) for element in elements)
        case ast.Dict(keys=keys):
            return None not in keys and bool(keys)
        case ast.Constant(value=value):
            return bool(value)
        case ast.Name(id=name):
            return name.isupper() or name in displays
        case ast.IfExp(body=body, orelse=other):
            return has_values(body, displays) and has_values(other, displays)
        case ast.Call(func=ast.Name(id="nonempty")):
            return True
        case ast.Call(
            func=ast.Name(id="range"), args=[start, ast.BinOp(left=left, op=ast.Add(), right=ast.Constant())]
        ):
            return ast.dump(start) == ast.dump(left)
        case ast.Call(func=ast.Name(id="range"), args=arguments):
            return all(isinstance(a, ast.Constant) or (isinstance(a, ast.Name) and a.id.isupper()) for a in arguments)
        case ast.Call(func=ast.Name(id="enumerate" | "zip" | "product" | "sorted" | "reversed"), args=arguments):
            return bool(arguments) and all(has_values(argument, displays) for argument in arguments)
        case ast.Call(func=ast.Attribute(value=value, attr="items" | "values" | "keys")):
            return has_values(value, displays)
        case _:
            return False


def always_asserts(statements: Sequence[ast.stmt], displays: frozenset[str]) -> bool:
    """Whether an assertion stands outside all loops that may have no value."""
    return any(_asserts(statement, displays) for statement in statements)


def _asserts(statement: ast.stmt, displays: frozenset[str]) -> bool:
    if isinstance(statement, ast.For):
        return has_values(statement.iter, displays) and always_asserts(statement.body, displays)
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return False
    parts: list[ast.AST] = []
    for node in ast.iter_child_nodes(statement):
        parts += node.body if isinstance(node, ast.match_case | ast.ExceptHandler) else [node]
    if is_assertion(statement) or always_asserts([part for part in parts if isinstance(part, ast.stmt)], displays):
        return True
    return any(is_assertion(node) for part in parts if not isinstance(part, ast.stmt) for node in ast.walk(part))


def vacuous(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each test whose assertions all stand in loops that may have no value."""
    for test in ast.walk(ast.parse(source)):
        if isinstance(test, ast.FunctionDef) and test.name.startswith("test_"):
            displays = frozenset(
                target.id
                for node in test.body
                if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
                for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
                if isinstance(target, ast.Name) and has_values(node.value, frozenset())
            )
            if any(map(is_assertion, ast.walk(test))) and not always_asserts(test.body, displays):
                yield test.lineno, test.name


@pytest.mark.push
def test_assertions_in_loops_have_something_to_check() -> None:
    """No test is listed: `nonempty` of `tests/support` says that there must be a value."""
    files = nonempty(sorted(TESTS.rglob("test_*.py")))
    assert [
        f"{file.relative_to(TESTS)}:{line} {name}" for file in files for line, name in vacuous(file.read_text())
    ] == []


@pytest.mark.parametrize(
    ("body", "listed"),
    [
        ("for x in found(): assert x", True),
        ("for x in (1, 2): assert x", False),
        ("for x in (*found(),): assert x", True),
        ("for x in nonempty(found()): assert x", False),
        ("for x in (1, 2):\n  for y in found(x): assert y", True),
        ("for x in range(3, len(found())): assert x", True),
        ("for x in range(first, first + 20): assert x", False),
        ("for x in CASES.items(): assert x", False),
        ("calls = [f, g]\n for x in calls: assert x", False),
        ("calls = found()\n for x in calls: assert x", True),
        ("for x in found():\n  assert x\n assert True", False),
        ("with pytest.raises(E): f()", False),
        ("for x in found():\n  with pytest.raises(E): f()", True),
        ("if a:\n  assert a", False),
        ("match a:\n  case 1: pass\n  case _: pytest.fail(a)", False),
        ("while a: assert a", False),
        ("def inner(): assert a\n for x in found(): assert x", True),
        ("f()", False),
    ],
)
def test_what_is_listed(body: str, listed: bool) -> None:
    """A loop is safe when its source shows a value."""
    assert bool(list(vacuous(f"def test_it():\n {body}\n"))) == listed


def test_nonempty_fails_without_a_value() -> None:
    """Values pass through; the end of none is a failure."""
    assert list(nonempty(iter([1, 2]))) == [1, 2]
    with pytest.raises(AssertionError, match="no value to check"):
        list(nonempty([]))
