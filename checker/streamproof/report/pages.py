"""The templates of HTML pages and drawings: untrusted text is escaped, and invisible characters are made visible."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from streamproof.base.text import visible
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
    found.filters["plural"] = number_of
    return found


def _visible_value(value: Any) -> Any:
    shown = visible(str(value), lines=True)
    return Markup(shown) if isinstance(value, Markup) else shown
