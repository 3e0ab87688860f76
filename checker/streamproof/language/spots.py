"""Where a rule that runs natively is just now, and what is written there, so that its errors read as the checker's do."""

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
"""What runs natively: the label of an action instance, or a property."""


def user_frame() -> FrameType | None:
    """The innermost frame that is not ours."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((PACKAGE, "<")):
        frame = frame.f_back
    return frame


def written(frame: FrameType, at: int) -> ast.AST | None:
    """The expression or statement that the instruction `at` of a frame was compiled from; None when it is not to be had."""
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


class Spot:
    """A place in the user's code, with the texts that messages quote."""

    def __init__(self) -> None:
        frame = user_frame()
        self.loc = Loc(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name) if frame else None
        self.node = written(frame, frame.f_lasti) if frame else None

    def target(self) -> str:
        """What is assigned to."""
        return text(self.node.target if isinstance(self.node, ast.AugAssign) else self.node) if self.node else "it"

    def index(self) -> str:
        """What stands between the brackets."""
        return text(self.node.slice) if isinstance(self.node, ast.Subscript) else "index"

    def operand(self, first: bool) -> str:
        """The first or the second operand of what is computed."""
        match self.node:
            case ast.BinOp(left=left, right=right):
                return text(left if first else right)
            case ast.Compare(left=left, comparators=[right]):
                return text(left if first else right)
            case ast.AugAssign(value=value):
                return text(value)
        return "it"

    def owner(self) -> str:
        """Whose element, attribute or method is asked for."""
        node = self.node.func if isinstance(self.node, ast.Call) else self.node
        return text(node.value) if isinstance(node, ast.Attribute | ast.Subscript) else "it"


def fail(message: str, spot: Spot, *operands: tuple[str, str]) -> EvaluationError:
    """The error of the model that the checker reports for the same step."""
    return EvaluationError(_worded(message, *operands), loc=spot.loc, remedy=REMEDY)


def _worded(message: str, *operands: tuple[str, str]) -> str:
    shown = "; ".join(f"{name} = {value}" for name, value in operands if name != value)
    return f"{message} in {RUNNING.get()}" + (f" ({shown})" if shown else "")


class PythonError(EvaluationError):
    """What Python itself raised in a rule; the checker words such a mistake by its own operators."""


def translated(error: Exception) -> PythonError | None:
    """What Python raised in a rule for a value outside a partial operation's domain, as an error of the model."""
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
    message = _meaning(error, written(frame, trace.tb_lasti))
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
        case IndexError() | KeyError():
            return _worded(f"{type(error).__name__}: {error}")
        case TypeError() | AttributeError() if "NoneType" in str(error):
            return _worded("None where a value is needed")
    return None
