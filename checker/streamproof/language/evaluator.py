"""What lowers the nodes of a rule's syntax tree, as the functions for the single kinds of nodes see it."""

from __future__ import annotations

import ast
from typing import Protocol

from streamproof.language.lowering_context import Context, Frame
from streamproof.language.terms import Term
from streamproof.system.expr import Expr


class Evaluator(Protocol):
    """Lowers any node, by the function for its kind; see `lowering`."""

    context: Context

    def value(self, node: ast.expr, frame: Frame) -> Term:
        """The value of an expression."""

    def condition(self, node: ast.expr, frame: Frame) -> Expr:
        """The value of an expression used as a condition."""

    def block(self, body: list[ast.stmt], frame: Frame) -> None:
        """Lowers a sequence of statements."""
