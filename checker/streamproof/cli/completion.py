"""``streamproof completion``: the shell script for completion of verbs, options and names of models."""

from __future__ import annotations

import click

from streamproof.base.records import dataclass
from streamproof.base.text import standard_output
from streamproof.cli.arguments import argument, verb
from streamproof.cli.verbs import COMPLETE, NAME, cli

_WHERE = {
    "bash": 'add to ~/.bashrc:  eval "$(streamproof completion bash)"',
    "zsh": 'add to ~/.zshrc:  eval "$(streamproof completion zsh)"',
    "fish": "streamproof completion fish > ~/.config/fish/completions/streamproof.fish",
}


@dataclass(frozen=True, slots=True)
class CompletionArguments:
    """The argument of the verb."""

    shell: str = argument(type=click.Choice(list(_WHERE)))


@verb(
    "completion",
    CompletionArguments,
    example='eval "$(streamproof completion bash)"',
)
def command(given: CompletionArguments) -> int:
    """Print the completion script for SHELL: verbs, options, models, variants, sizes, parameters and properties."""
    from click.shell_completion import get_completion_class

    complete = get_completion_class(given.shell)
    assert complete is not None, "click knows the shells offered"
    standard_output().write(f"# {_WHERE[given.shell]}\n{complete(cli, {}, NAME, COMPLETE).source()}\n")
    return 0
