"""What must hold of termination by a baton: nobody terminates while something can still come, and in the end everybody does."""

from __future__ import annotations

from typing import Any

from streamproof import Spec, always, eventually, invariant, leads_to, step, temporal
from streamproof_models import baton_variants  # noqa: F401
from streamproof_models.baton import Baton


@invariant
def nothing_lost(m: Baton, s: Any) -> Any:
    """No record is delivered to an operator that has terminated."""
    return not s.lost


@invariant
def no_early_end(m: Baton, s: Any) -> Any:
    """No operator has terminated while a record can still come to it: one in a channel, with an operator, or with a source."""
    return all(s.status[o] != "TERMINATED" or quiet(m, s, o) for o in m.operators)


def quiet(m: Baton, s: Any, o: str) -> Any:
    """Whether no record can come to an operator, and it has none."""
    tasks, channels = m.wiring.reaching(o)
    return all(s.status[t] == "TERMINATED" if t in m.sources else s.held[t] == 0 for t in tasks) and all(
        item.kind != "RECORD" for c in channels for item in s.channel[c]
    )


@temporal
def everybody_terminates(m: Baton, s: Any) -> Any:
    """When there is nothing more to do for ever, everybody terminates."""
    return not eventually(always(s.records == 0)) or eventually(
        always(all(s.status[t] == "TERMINATED" for t in m.tasks))
    )


SPEC = Spec(Baton, properties=(nothing_lost, no_early_end, everybody_terminates))
