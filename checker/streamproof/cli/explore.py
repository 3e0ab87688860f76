"""``streamproof explore``: walk through a model on a local page."""

from __future__ import annotations

from streamproof.base.errors import Exit
from streamproof.base.options import flag
from streamproof.base.records import dataclass
from streamproof.base.text import standard_output
from streamproof.cli.arguments import part, verb
from streamproof.cli.step import StepArguments


@dataclass(frozen=True, slots=True)
class ExploreArguments:
    """The arguments of the verb."""

    stepping: StepArguments = part(StepArguments)
    port: int = flag("Port of the page; 0: any free one.", least=0, most=65535, default=0)


@verb("explore", ExploreArguments, example="streamproof explore failover --variant literal-pseudocode")
def command(given: ExploreArguments) -> int:
    """Serve a page on this machine to walk through MODEL: its state, what is enabled, what is not and why.

    TRACE is an ITF file, or the address of an earlier page, with the behaviour to begin with. The page is for programs of
    this machine that know its address, which is printed. It runs until Ctrl-C and gives no verdict.
    """
    from streamproof.exploring.server import ExplorerServer

    explorer, visit = given.stepping.explorer()
    with ExplorerServer(explorer, given.port) as server:
        stream = standard_output()
        stream.write(f"{server.address(visit)}\nCtrl-C ends the explorer of {explorer.system.heading}\n")
        stream.flush()
        server.answer()
    return Exit.INTERRUPTED
