"""The templates of HTML pages and drawings: untrusted text is escaped, and invisible characters are made visible."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from streamproof.base.text import visible
from streamproof.report.rows import duration
from streamproof.system.verdict import number_of


@cache
def environment() -> Environment:
    """The environment of all templates."""
    found = Environment(
        loader=PackageLoader("streamproof.report"),
        autoescape=True,  # task names, file names and messages come from untrusted logs
        finalize=_visible_value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(plural=number_of, duration=duration, number=_number)
    found.globals["marks"] = {"accepted": "✓", "rejected": "✗", "inconclusive": "?", "error": "!", "not validated": "·"}
    return found


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _visible_value(value: Any) -> Any:
    shown = visible(str(value), lines=True)
    return Markup(shown) if isinstance(value, Markup) else shown
