"""``streamproof step``: walk through a model on a terminal."""

from __future__ import annotations

from streamproof.base.errors import Exit
from streamproof.base.options import SearchOptions
from streamproof.base.records import dataclass
from streamproof.cli.arguments import argument, part, verb
from streamproof.cli.selection import ModelArguments
from streamproof.exploring.explorer import Explorer, Visit, explorer_of
from streamproof.exploring.terminal import step_through

LIMITS = SearchOptions(max_states=1_000_000, time_limit=30.0)
"""The limits of one search."""


@dataclass(frozen=True, slots=True)
class StepArguments:
    """The arguments of the verb; variant and parameters are those of the trace if they are not given."""

    chosen: ModelArguments = part(ModelArguments, "model", "variant", "size", "parameters")
    trace: str | None = argument(required=False)
    options: SearchOptions = part(
        SearchOptions,
        *("max_states", "time_limit"),
        usual=LIMITS,
        max_states="End a search for a state after N states.",
        time_limit="End a search for a state after SECONDS.",
    )

    def explorer(self) -> tuple[Explorer, Visit]:
        """The explorer and its first behaviour; raises as `explorer_of`."""
        chosen = self.chosen
        if self.trace is not None and self.trace.startswith("http://"):
            from streamproof.exploring.page import visit_of

            explorer, _ = explorer_of(chosen.model, chosen.variant, chosen.size, chosen.parameters, None, self.options)
            return explorer, visit_of(explorer, self.trace)
        return explorer_of(chosen.model, chosen.variant, chosen.size, chosen.parameters, self.trace, self.options)


@verb("step", StepArguments, example="streamproof step failover")
def command(given: StepArguments) -> int:
    """Walk through MODEL: take enabled actions by number, undo them, and see what they change.

    TRACE is an ITF file, or the address of a page of explore, with the behaviour to begin with. The command `help` lists
    the others: why an action is not enabled, searches for a state, a violation or an action, save as ITF, print as a
    test. Lines may come from a pipe; then the first wrong one ends the program. It gives no verdict.
    """
    step_through(*given.explorer())
    return Exit.HOLDS
