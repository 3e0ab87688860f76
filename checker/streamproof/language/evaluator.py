"""The `Evaluator` protocol: lowering of syntax nodes, as used by the functions for the individual node kinds."""

from __future__ import annotations

import ast
from typing import Protocol

from streamproof.language.lowering_context import Context, Frame
from streamproof.language.terms import Term
from streamproof.system.expr import Expr


class Evaluator(Protocol):
    """Dispatches a node to the lowering function of its kind; see `lowering`."""

    context: Context

    def value(self, node: ast.expr, frame: Frame) -> Term:
        """The value of an expression."""

    def condition(self, node: ast.expr, frame: Frame) -> Expr:
        """The value of an expression used as a condition."""

    def block(self, body: list[ast.stmt], frame: Frame) -> None:
        """Lowers a sequence of statements."""
