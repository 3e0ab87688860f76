"""Docstrings of the parameters of a model: the string after ``n: int = 2`` in the class body."""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise

from streamproof.language.model import Model
from streamproof.registry import first_line


def parameter_docs(model: type[Model]) -> dict[str, str]:
    """The first line of each parameter's docstring; a subclass that redeclares a parameter without docstring inherits it."""
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if cls is Model or not issubclass(cls, Model):
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
        except (OSError, TypeError, SyntaxError):
            continue  # without source, parameters are listed without their docstrings
        body = tree.body[0].body if tree.body and isinstance(tree.body[0], ast.ClassDef) else []
        for first, second in pairwise(body):
            match first, second:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = first_line(text)
    return found
