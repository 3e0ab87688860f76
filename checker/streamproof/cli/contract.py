"""``streamproof contract``: the events that an implementation of a model logs."""

from __future__ import annotations

from streamproof import __version__
from streamproof.base.errors import Exit
from streamproof.base.records import dataclass
from streamproof.cli.arguments import json_flag, part, verb
from streamproof.cli.outputs import expect_json_writable, people, write_json
from streamproof.cli.selection import ModelArguments
from streamproof.conformance.found_runs import log_forms
from streamproof.driving.contract import contract, page

SCHEMA = "streamproof.contract/1"


@dataclass(frozen=True, slots=True)
class ContractArguments:
    """The arguments of the verb."""

    chosen: ModelArguments = part(ModelArguments, "model", "variant", "size", "parameters")
    json_to: str | None = json_flag()


@verb("contract", ContractArguments, example="streamproof contract examples/lease/lease.py --json lease.contract.json")
def command(given: ContractArguments) -> int:
    """Describe what an implementation of MODEL logs, made from the model: events, arguments, values, order.

    Prints a page in Markdown. With --json, `line` is the JSON Schema (2020-12) of a line. `streamproof validate LOG --model
    MODEL` checks such logs; an adapter for `streamproof drive` has the same names and values. Of bundled models whose
    bindings read event logs with other names, those of the reference runtime and of the agent in Flink, the second part
    has these events, and for which actions they stand.
    """
    expect_json_writable(given.json_to, SCHEMA)
    found = contract(given.chosen.select().system().unconstrained, log_forms(given.chosen.model))
    write_json({"schema": SCHEMA, "version": __version__, "exit_code": 0, **found}, given.json_to)
    if given.json_to != "-":
        out = people(given.json_to)
        for line in page(found):
            print(line, file=out)
    return Exit.HOLDS
