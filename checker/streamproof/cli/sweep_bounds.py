"""The options that bound the axis that a model generates: how large job graphs may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

BOUNDS = {
    "operators": "Generated graphs have at most so many operators.",
    "loops": "At most so many loops.",
    "depth": "Loops are nested at most so deep.",
    "parallelism": "Operators have at most so many subtasks.",
    "sources": "At most so many sources.",
    "joins": "Operators have at most so many inputs beyond their first, all together.",
    "feedback": "Loops have at most so many feedback edges each.",
}
"""Bounds by name with what they mean."""


def bound_options(function: F) -> F:
    """One option for each bound; those that are not given are the model's own."""
    for name, told in reversed(BOUNDS.items()):
        names = [f"--max-{name}", *(["--parallelism"] if name == "parallelism" else [])]
        function = click.option(*names, name, type=click.IntRange(min=0), metavar="N", help=told)(function)
    return function
