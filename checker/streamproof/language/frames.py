"""Finding the user's own line: walk out of this package to the first frame that is not ours."""

from __future__ import annotations

import sys
from pathlib import Path

from streamproof.system.errors import Loc

_PACKAGE = str(Path(__file__).resolve().parent.parent)


def caller() -> Loc | None:
    """Where the user's code called into streamproof, or None when there is no such frame."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_PACKAGE) and not name.startswith("<"):
            return Loc(name, frame.f_lineno, frame.f_code.co_name)
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None
