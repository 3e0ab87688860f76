"""`simulate`: random walks through state spaces that are too large to search."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from streamproof.api.subject import NO_PARAMETERS, ChosenSystem, Subject, choose_system, within
from streamproof.base.errors import UsageError
from streamproof.base.options import DEFAULTS, SearchOptions
from streamproof.base.records import replace
from streamproof.explicit.simulation import SEEDS, WALKED, Simulation
from streamproof.explicit.simulation import simulate as walk
from streamproof.traces.replay import confirm_result


def simulate(
    model: Subject,
    properties: Iterable[str] | None = None,
    *,
    variant: str | None = None,
    size: str | None = None,
    parameters: Mapping[str, Any] = NO_PARAMETERS,
    options: SearchOptions = DEFAULTS,
    on_progress: Callable[[Any], None] | None = None,
) -> Simulation:
    """Takes random walks through a model and checks its properties on the way, as `streamproof simulate` does.

    The arguments are those of `check`; `options` has `walks`, `steps`, `seed`, `guided` and `time_limit`. Stops at the first
    violation, whose trace is shortened and confirmed by the interpreter. A property that is not refuted is inconclusive,
    unless it is a reachability property whose state was visited. Raises as `check`.
    """
    chosen = choose_system(model, properties, variant, size, parameters, options)
    names = tuple(p.name for p in chosen.listed if chosen.properties is not None or p.kind in WALKED)
    if not names:
        raise UsageError(f"{chosen.name} has no property that a walk can decide", remedy="use check")
    for name in options.given():
        if name not in ("properties", "walks", "steps", "seed", "guided", "time_limit"):
            raise UsageError(f"simulate does not support {name}", remedy="leave it out of the options")
    seed = random.SystemRandom().randrange(SEEDS) if options.seed is None else options.seed
    options = replace(options, properties=names, seed=seed)
    with within(options.time_limit):
        beside = {name: _walked(other, alone, on_progress) for name, other, alone in chosen.beside(options)}
        return replace(_walked(chosen, options, on_progress), beside=beside)


def _walked(chosen: ChosenSystem, options: SearchOptions, on_progress: Callable[[Any], None] | None) -> Simulation:
    assert options.seed is not None, "set by `simulate`"
    system, compared = chosen.read()
    result = walk(
        system,
        seed=options.seed,
        properties=options.properties,
        walks=options.walks,
        steps=options.steps,
        time_limit=options.time_limit,
        guided=options.guided,
        on_progress=on_progress,
    )
    confirm_result(system, result, "simulation")
    return replace(result, plain_python=compared, not_selected=chosen.not_selected(result))
