"""Call sites of natively executed rules: the current source position and its text, so that errors match lowered ones."""

from __future__ import annotations

import ast
import linecache
import sys
from contextlib import suppress
from contextvars import ContextVar
from itertools import islice
from types import FrameType, TracebackType

from streamproof.language.sources import PACKAGE, text
from streamproof.system.errors import EvaluationError, Loc

REMEDY = "guard it with require(...), or widen the sort if the value is meant to be possible"

RUNNING: ContextVar[str] = ContextVar("streamproof_running", default="")
"""The action instance (its label) or property being executed natively."""


def user_frame() -> FrameType | None:
    """The innermost stack frame outside streamproof."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((PACKAGE, "<")):
        frame = frame.f_back
    return frame


def source_node(frame: FrameType, at: int) -> ast.AST | None:
    """The expression or statement from which the instruction at offset `at` was compiled; None if the source is
    unavailable."""
    found = next(islice(frame.f_code.co_positions(), at // 2, None), (None, None, None, None))
    first, last, start, end = found
    if first is None or last is None or start is None or end is None:
        return None
    lines = [linecache.getline(frame.f_code.co_filename, n).encode() for n in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    source = b"".join(lines).decode()
    try:
        return ast.parse(f"({source})", mode="eval").body
    except SyntaxError:
        with suppress(SyntaxError, IndexError):
            return ast.parse(source).body[0]
    return None


class CallSite:
    """A position in the user's code, with the source texts that messages quote."""

    def __init__(self) -> None:
        frame = user_frame()
        self.loc = Loc(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name) if frame else None
        self.node = source_node(frame, frame.f_lasti) if frame else None

    def target(self) -> str:
        """The target of the assignment."""
        return text(self.node.target if isinstance(self.node, ast.AugAssign) else self.node) if self.node else "it"

    def index(self) -> str:
        """The text of the index."""
        return text(self.node.slice) if isinstance(self.node, ast.Subscript) else "index"

    def operand(self, first: bool) -> str:
        """The text of the first or second operand."""
        match self.node:
            case ast.BinOp(left=left, right=right):
                return text(left if first else right)
            case ast.Compare(left=left, comparators=[right]):
                return text(left if first else right)
            case ast.AugAssign(value=value):
                return text(value)
        return "it"

    def owner(self) -> str:
        """The owner of the element, attribute or method."""
        node = self.node.func if isinstance(self.node, ast.Call) else self.node
        return text(node.value) if isinstance(node, ast.Attribute | ast.Subscript) else "it"


def fail(message: str, spot: CallSite, *operands: tuple[str, str]) -> EvaluationError:
    """The model error that lowering reports for the same step."""
    return EvaluationError(_worded(message, *operands), loc=spot.loc, remedy=REMEDY)


def _worded(message: str, *operands: tuple[str, str]) -> str:
    shown = "; ".join(f"{name} = {value}" for name, value in operands if name != value)
    return f"{message} in {RUNNING.get()}" + (f" ({shown})" if shown else "")


class PythonError(EvaluationError):
    """An exception raised by Python in a rule; the message is that of the corresponding operator of the language."""


def as_model_error(error: Exception) -> PythonError | None:
    """The model error for an exception that Python raised because a partial operation was applied outside its domain."""
    trace: TracebackType | None = None
    step = error.__traceback__
    while step is not None:
        if not step.tb_frame.f_code.co_filename.startswith((PACKAGE, "<")):
            trace = step
        step = step.tb_next
    if trace is None:
        return None
    frame = trace.tb_frame
    loc = Loc(frame.f_code.co_filename, trace.tb_lineno, frame.f_code.co_name)
    message = _meaning(error, source_node(frame, trace.tb_lasti))
    if message is None:
        return None
    return PythonError(message, loc=loc, remedy=REMEDY)


def _meaning(error: Exception, node: ast.AST | None) -> str | None:
    match error:
        case ZeroDivisionError():
            right = (
                node.right if isinstance(node, ast.BinOp) else node.value if isinstance(node, ast.AugAssign) else None
            )
            shown = text(right) if right else "the divisor"
            return _worded(f"division by zero: {shown} is 0", (shown, "0"))
        case ValueError() if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return _worded(f"{node.func.id}() of an empty collection") if node.func.id in ("min", "max") else None
        case ValueError() if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            missing = node.func.attr in ("remove", "index")
            return _worded(f"{node.func.attr}() of a value that is not in {text(node.func.value)}") if missing else None
        case IndexError() | KeyError():
            return _worded(f"{type(error).__name__}: {error}")
        case TypeError() | AttributeError() if "NoneType" in str(error):
            return _worded("None where a value is needed")
    return None
