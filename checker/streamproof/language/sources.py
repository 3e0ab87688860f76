"""The syntax tree of a function, with the line numbers of the user's file."""

from __future__ import annotations

import ast
import linecache
import types
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from streamproof.system.errors import Loc, ModelError


@lru_cache(maxsize=256)
def _tree(filename: str) -> ast.Module | None:
    lines = linecache.getlines(filename)
    return ast.parse("".join(lines), filename) if lines else None


def definition(function: Callable[..., Any]) -> ast.FunctionDef:
    """The ``def`` of a plain Python function. `ModelError` when its source is not to be had."""
    return _definition(function.__code__, function.__name__)


@lru_cache(maxsize=4096)
def _definition(code: types.CodeType, name: str) -> ast.FunctionDef:
    loc = Loc(code.co_filename, code.co_firstlineno, name)
    tree = _tree(code.co_filename)
    if tree is not None:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                if first == code.co_firstlineno:
                    return node
    raise ModelError(
        f"the source of {name!r} cannot be read",
        loc=loc,
        remedy="define it with 'def' in a file; a lambda or a function made at run time has no source to lower",
    )


@lru_cache(maxsize=65536)
def text(node: ast.AST) -> str:
    """The code of `node` on one line. Nodes are kept for the life of the process, so the text is made once."""
    return " ".join(ast.unparse(node).split())
