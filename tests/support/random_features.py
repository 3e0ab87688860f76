"""Random systems with all features at once: bags, unions, keys, constraints, fairness of a part of an action."""

from __future__ import annotations

from random import Random

from random_constraints import limited, step_limited
from random_fairness import partly_fair
from random_systems import random_system
from streamproof.system import System

FORMS = ("plain", "plain", "limited", "step_limited", "partly_fair")
"""What is drawn in turn."""


def featured(seed: int) -> tuple[str, System] | None:
    """The form of the system of a seed, and the system; None if the form has none for this seed."""
    form = FORMS[seed % len(FORMS)]
    match form:
        case "limited":
            system = limited(seed, bags=True)
        case "step_limited":
            system = step_limited(seed, bags=True)
        case "partly_fair":
            system = partly_fair(seed, bags=True)
        case _:
            system = random_system(Random(seed), bags=True)
    return None if system is None else (form, system)
