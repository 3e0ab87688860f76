"""The options for continuous integration: JUnit XML, SARIF and annotations beside the result of a verb."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from streamproof.cli.outputs import people
from streamproof.system.errors import Loc
from streamproof.system.files import JUNIT, SARIF, expect_writable, write
from streamproof.system.foreign import inner

F = TypeVar("F", bound=Callable[..., Any])
_OPTIONS = ("junit", "sarif", "annotations")


def _noted(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keeps the option for `write_ci_files`, and refuses a file that cannot be written before the work begins."""
    if isinstance(value, Path):
        expect_writable(value, JUNIT if parameter.name == "junit" else SARIF)
    context.meta[f"streamproof.{parameter.name}"] = value


def ci_options(function: F) -> F:
    """``--junit FILE``, ``--sarif FILE`` and ``--annotations``; the verb calls `write_ci_files` with its result."""
    texts = {"junit": "Also write the result as JUnit XML.", "sarif": "Also write what does not hold as SARIF 2.1.0."}
    mark = "Also print a GitHub workflow command for what does not hold, which marks the file and line."
    function = click.option("--annotations", is_flag=True, expose_value=False, callback=_noted, help=mark)(function)
    for name, text in reversed(texts.items()):
        kind = click.Path(path_type=Path)
        option = click.option(f"--{name}", type=kind, metavar="FILE", expose_value=False, callback=_noted, help=text)
        function = option(function)
    return function


def write_ci_files(
    document: Mapping[str, Any], json_to: str | None, places: Mapping[str, Loc | None] | None = None
) -> None:
    """Writes what the options of the running verb ask for. `document` is its JSON; `places` has the places of properties."""
    context = click.get_current_context(silent=True)
    asked = {name: context.meta.get(f"streamproof.{name}") for name in _OPTIONS} if context else {}
    if not any(asked.values()):
        return
    from streamproof.report.ci_formats import cases, junit, sarif, workflow_commands

    given = list(cases(document, places or {}))
    verb = document["schema"].partition("/")[0].replace(".", " ")
    if asked["junit"]:
        write(asked["junit"], junit(verb, given), JUNIT)
    if asked["sarif"]:
        write(asked["sarif"], sarif(document["version"], given), SARIF)
    if asked["annotations"]:
        for text in workflow_commands(given):
            inner(people(json_to)).write(text + "\n")  # texts that look like such commands are changed elsewhere
