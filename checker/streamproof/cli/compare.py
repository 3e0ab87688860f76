"""``streamproof compare``: compare the designs of a protocol, and judge the claims about them."""

from __future__ import annotations

from streamproof.base.errors import Exit, UsageError
from streamproof.base.options import SearchOptions
from streamproof.base.records import dataclass
from streamproof.cli.arguments import argument, json_flag, part, verb
from streamproof.cli.outputs import Status, expect_json_writable, people, write_json
from streamproof.cli.selection import complete_models
from streamproof.model_registry import find
from streamproof.report.console import print_lines
from streamproof.sweep.comparing import compare, compared_lines


@dataclass(frozen=True, slots=True)
class CompareArguments:
    """The arguments of the verb."""

    model: str = argument(shell_complete=complete_models)
    options: SearchOptions = part(SearchOptions, "max_states", max_states="Stop each search after N states.")
    json_to: str | None = json_flag()


@verb(
    "compare",
    CompareArguments,
    example="streamproof compare cyclic",
)
def command(given: CompareArguments) -> int:
    """Compute verdicts and largest values of measures for every design of MODEL, and judge claims about the designs.

    The designs, settings and claims are part of the model's specification. Ends with 0 when every question is decided,
    whatever the results are, and with 160 otherwise.
    """
    json_to = given.json_to
    expect_json_writable(json_to, "streamproof.compare/1")
    target = find(given.model)
    if target.spec.comparison is None:
        raise UsageError(
            f"{target.name} has no designs to compare",
            remedy="give its Spec a comparison; the bundled model cyclic has one",
        )
    with Status() as status:
        compared = compare(target.spec, target.spec.comparison, max_states=given.options.max_states, on_search=status)
    code = Exit.HOLDS if compared.decided else Exit.INCONCLUSIVE
    write_json({**compared.to_json(), "exit_code": int(code)}, json_to)
    if json_to != "-":
        print_lines(compared_lines(compared), people(json_to))
    return code
