"""`diff`: what changed between two models: verdicts, behaviours gained and lost, actions and states."""

from __future__ import annotations

from streamproof.api.subject import NO_PARAMETERS, Subject, choose_system, within
from streamproof.base.errors import UsageError
from streamproof.base.options import DEFAULTS, SearchOptions
from streamproof.difference.behaviours import STEPS, VIEWS
from streamproof.difference.comparing import ModelDifference, compare_systems

USED = ("properties", "max_states", "memory", "time_limit")
"""The options that a comparison supports."""


def diff(before: Subject, after: Subject, *, view: str = STEPS, options: SearchOptions = DEFAULTS) -> ModelDifference:
    """Compares two models, as `streamproof diff` does: a model by name or file, a class, an instance with its parameters, a
    `Spec`, or a `System`, such as one of a variant.

    `view`: a step is seen as its label and the variables that both have (`steps`), as its label alone (`actions`), or as
    these variables alone (`states`). `options` has `max_states`, `memory` and `time_limit`. Raises as `check`.
    """
    if view not in VIEWS:
        raise UsageError(f"{view!r} is no view", remedy=f"give one of {', '.join(VIEWS)}")
    for name in options.given():
        if name not in USED[1:]:
            raise UsageError(f"diff does not support {name}", remedy="leave it out of the options")
    with within(options.time_limit):
        systems = [choose_system(m, None, None, None, NO_PARAMETERS, options).read()[0] for m in (before, after)]
        return compare_systems(systems[0], systems[1], options, view=view)
