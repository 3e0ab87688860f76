"""``streamproof completion``: the shell script for completion of verbs, options and names of models."""

from __future__ import annotations

import click

from streamproof.cli.outputs import standard_output
from streamproof.cli.verbs import Verb

_WHERE = {
    "bash": 'add to ~/.bashrc:  eval "$(streamproof completion bash)"',
    "zsh": 'add to ~/.zshrc:  eval "$(streamproof completion zsh)"',
    "fish": "streamproof completion fish > ~/.config/fish/completions/streamproof.fish",
}


@click.command(
    "completion",
    cls=Verb,
    short_help="Print the completion script of a shell.",
    example='eval "$(streamproof completion bash)"',
)
@click.argument("shell", type=click.Choice(list(_WHERE)))
def command(shell: str) -> int:
    """Print the completion script for SHELL: verbs, options, models, variants, sizes, parameters and properties."""
    from click.shell_completion import get_completion_class

    from streamproof.cli.verbs import COMPLETE, NAME, cli

    complete = get_completion_class(shell)
    assert complete is not None, "click knows the shells offered"
    standard_output().write(f"# {_WHERE[shell]}\n{complete(cli, {}, NAME, COMPLETE).source()}\n")
    return 0
