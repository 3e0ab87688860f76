"""The shape that all verbs share: loaded when they are used, help that ends with an example, an exit code returned."""

from __future__ import annotations

import importlib
from typing import Any

import click


class Verb(click.Command):
    """A command whose help ends with a line to copy. Its function returns an exit code (None is 0)."""

    def __init__(self, *args: Any, example: str, **kwargs: Any) -> None:
        kwargs.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
        super().__init__(*args, **kwargs)
        self.example = example
        self.params.append(
            click.Option(["--traceback"], is_flag=True, hidden=True, expose_value=False, callback=_ask_traceback)
        )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; standard output is for its answer alone."""
        from streamproof.cli.outputs import reserved_output

        with reserved_output():
            return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The example, never wrapped."""
        with formatter.section("Example"):
            formatter.write(f"{'':{formatter.current_indent}}{self.example}\n")


class Verbs(click.Group):
    """The verbs by name; a verb's module is imported when it is called or its help is shown."""

    def __init__(self, *args: Any, modules: dict[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order in which they are usually met."""
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb called `cmd_name`; None when there is none."""
        if cmd_name not in self._modules:
            return None
        command = importlib.import_module(self._modules[cmd_name]).command
        assert isinstance(command, Verb), f"{self._modules[cmd_name]}.command is a verb"
        return command


def _ask_traceback(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.find_root().meta[TRACEBACK] = True


TRACEBACK = "streamproof.traceback"
"""Key of the context's `meta` under which a developer asked for Python's traceback of errors."""
