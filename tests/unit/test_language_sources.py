"""Syntax trees of functions, the texts of expressions, and the names that are local."""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import streamproof_models
import streamproof_specs
from nonempty import nonempty
from streamproof.base.errors import ModelError
from streamproof.language.lower.sources import definition, local_names, parameters, text

FILES = sorted(
    path for package in (streamproof_models, streamproof_specs) for path in Path(package.__path__[0]).rglob("*.py")
)
SOURCE = '''"""A module."""
import functools


def marked(**options):
    return lambda function: function


class Base:
    def grown(self, s):
        return s

    if True:
        def nested(self, s): return s; s = 1


class Rule(Base):
    @marked(
        some=(1,
  2),
    )
    @functools.cache
    def grown(
        self,
        s,
    ):
        """A docstring
that goes on at the margin."""
        # a comment
    # and one further left
        if (s and
    s):
            return super().grown(s)

        def inner(x):
            return x + 1

        return inner(s)

    def last(self):
        return [x for x in self.all]

def plain(a): return a
'''


def loaded(folder: Path, source: str) -> ModuleType:
    """A module of this source."""
    path = folder / "written.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("written", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    exec(compile(source, str(path), "exec"), vars(module))
    return module


def functions(module: ModuleType) -> dict[str, FunctionType]:
    """The functions of `SOURCE`, whatever their decorators made of them."""
    grown = module.Rule.__dict__["grown"].__wrapped__
    return {
        "grown": grown,
        "last": module.Rule.last,
        "plain": module.plain,
        "base": module.Base.grown,
        "nested": module.Base.nested,
    }


def test_a_function_is_read_as_in_its_file(tmp_path: Path) -> None:
    """Decorators, brackets and strings that go on further left, methods and one-liners: the tree and its places are those
    of the whole file."""
    module = loaded(tmp_path, SOURCE)
    whole = {
        (node.name, node.lineno): ast.dump(node, include_attributes=True)
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.FunctionDef)
    }
    found = {name: definition(function) for name, function in functions(module).items()}
    assert {name: node.lineno for name, node in found.items()} == {
        "grown": 23, "last": 40, "plain": 43, "base": 10, "nested": 14,
    }  # fmt: skip
    for node in found.values():
        assert ast.dump(node, include_attributes=True) == whole[node.name, node.lineno]


@pytest.mark.parametrize("name", ["grown", "last", "plain"])
def test_a_function_that_is_another_one_now_is_refused(tmp_path: Path, name: str) -> None:
    """What the file says now is not what was loaded: nothing is lowered."""
    function = functions(loaded(tmp_path, SOURCE))[name]
    changed = (
        SOURCE.replace("inner(s)", "inner(s, s)")
        .replace("for x in self.all]", "for x in self.all], self")
        .replace("return a", "return a()")
    )
    (tmp_path / "written.py").write_text(changed)
    os.utime(tmp_path / "written.py", (1, 1))
    with pytest.raises(ModelError, match="has changed since it was loaded"):
        definition(function)


def test_a_constant_that_changed_is_refused(tmp_path: Path) -> None:
    """The byte code is the same, in a nested function too: what it numbers is not."""
    function = functions(loaded(tmp_path, SOURCE))["grown"]
    (tmp_path / "written.py").write_text(SOURCE.replace("return x + 1", "return x + 2"))
    os.utime(tmp_path / "written.py", (1, 1))
    with pytest.raises(ModelError, match="has changed since it was loaded"):
        definition(function)


def test_a_function_that_moved_is_refused(tmp_path: Path) -> None:
    """Its line holds something else now."""
    function = functions(loaded(tmp_path, SOURCE))["plain"]
    (tmp_path / "written.py").write_text("#\n" + SOURCE)
    os.utime(tmp_path / "written.py", (1, 1))
    with pytest.raises(ModelError, match="the source of 'plain' cannot be read"):
        definition(function)


def test_a_file_that_no_longer_compiles_is_refused(tmp_path: Path) -> None:
    """It has a tree, but no code."""
    function = functions(loaded(tmp_path, SOURCE))["plain"]
    (tmp_path / "written.py").write_text(SOURCE + "\nreturn 3\n")
    os.utime(tmp_path / "written.py", (1, 1))
    with pytest.raises(ModelError, match="the source of 'plain' cannot be read"):
        definition(function)


def test_a_lambda_in_a_decorator_is_not_the_function_below_it(tmp_path: Path) -> None:
    """Both begin at one line; only the ``def`` has a body that is read."""
    text = """
def first(f):
    return lambda g: f

@first(lambda a: a == 5)
def five(a):
    return False
"""
    module = loaded(tmp_path, text)
    with pytest.raises(ModelError, match="the source of '<lambda>' cannot be read"):
        definition(module.five)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_texts_are_those_of_python(path: Path) -> None:
    """Every expression of the bundled models and specifications is written as `ast.unparse` writes it, on one line."""
    nodes = ast.walk(ast.parse(path.read_text()))
    for node in nonempty(n for n in nodes if isinstance(n, ast.expr) and not isinstance(n, ast.Starred)):
        assert text(node) == " ".join(ast.unparse(node).split())


def test_local_names() -> None:
    """Whatever a body assigns is local, in every kind of statement; what comprehensions and lambdas bind is not."""
    (node,) = ast.parse(
        "def f(a, /, b, *c, d=1, **e):\n"
        "    g = h = 1\n"
        "    i.j, k[l] = 1, 2\n"
        "    (m, [n, *o]) = p\n"
        "    q: int = 1\n"
        "    q2: int\n"
        "    r += 1\n"
        "    for s, t in u:\n"
        "        v = {**w, 'x': (x := 1)}\n"
        "    else:\n"
        "        y = 1\n"
        "    if z:\n"
        "        with aa as bb: cc = 1\n"
        "    def dd(ee): ff = 1\n"
        "    class gg: pass\n"
        "    match mm:\n"
        "        case {'a': nn, **oo} | [*pp] | (1 as qq): pass\n"
        "    try: import rr.x, x as ss\n"
        "    except E as tt: del uu\n"
        "    return [hh for hh in ii if (vv := hh)] + (lambda jj: kk)(ll)\n"
    ).body
    assert isinstance(node, ast.FunctionDef)
    expected = {*"abcde", *"gh", *"mno", "q", "q2", "r", *"stv", "x", "y", "bb", "cc", "dd", "gg"}
    expected |= {"nn", "oo", "pp", "qq", "rr", "ss", "tt", "uu", "vv"}
    assert local_names(node) == expected


def heads() -> list[Callable[..., object]]:
    """Functions with every kind of parameter."""

    def plain(a, b=1): ...
    def named(a, *, b, c=1): ...
    def only(a, /, b): ...
    def rest(a, *b, c): ...
    def more(a, **b): ...
    def none(): ...

    @functools.wraps(rest)
    def wrapped(x, y): ...

    def said(x): ...

    said.__signature__ = inspect.signature(named)  # type: ignore[attr-defined]
    return [plain, named, only, rest, more, none, wrapped, said, len, str.join]


@pytest.mark.parametrize("function", heads(), ids=lambda f: f.__name__)
def test_parameters(function: Callable[..., object]) -> None:
    """The names that calls bind, for every kind of parameter, whatever is wrapped and whatever a function says of itself."""
    given = ("x",) if function.__name__ == "said" else inspect.signature(function, follow_wrapped=False).parameters
    assert parameters(function) == tuple(given)
