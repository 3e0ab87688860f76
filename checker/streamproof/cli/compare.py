"""``streamproof compare``: compare the designs of a protocol, and judge the claims about them."""

from __future__ import annotations

import click

from streamproof.base.errors import Exit, UsageError
from streamproof.cli.outputs import Status, expect_json_writable, people, write_json
from streamproof.cli.selection import complete_models, json_option, number_option
from streamproof.cli.verbs import Verb
from streamproof.model_registry import find


@click.command(
    "compare",
    cls=Verb,
    short_help="Compare designs, and judge claims about them.",
    example="streamproof compare cyclic",
)
@click.argument("model", shell_complete=complete_models)
@number_option("--max-states", help="Stop each search after N states.")
@json_option
def command(model: str, max_states: int | None, json_to: str | None) -> int:
    """Compute verdicts and largest values of measures for every design of MODEL, and judge claims about the designs.

    The designs, settings and claims are part of the model's specification. Ends with 0 when every question is decided,
    whatever the results are, and with 160 otherwise.
    """
    expect_json_writable(json_to, "streamproof.compare/1")
    target = find(model)
    if target.spec.comparison is None:
        raise UsageError(
            f"{target.name} has no designs to compare",
            remedy="give its Spec a comparison; the bundled model cyclic has one",
        )
    from streamproof.report.console import print_lines
    from streamproof.sweep.comparing import compare, compared_lines

    with Status() as status:
        compared = compare(target.spec, target.spec.comparison, max_states=max_states, on_search=status)
    code = Exit.HOLDS if compared.decided else Exit.INCONCLUSIVE
    write_json({**compared.to_json(), "exit_code": int(code)}, json_to)
    if json_to != "-":
        print_lines(compared_lines(compared), people(json_to))
    return code
