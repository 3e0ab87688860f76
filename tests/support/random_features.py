"""Random systems with all features at once: those of systems, and those of models that are written as source text."""

from __future__ import annotations

from pathlib import Path
from random import Random

from loading import load
from random_constraints import limited, step_limited
from random_fairness import partly_fair
from random_models import model_source
from random_systems import random_system
from streamproof import Model
from streamproof.base.records import dataclass
from streamproof.system import ModelError, System

FORMS = ("plain", "written", "limited", "step_limited", "written", "partly_fair")
"""What is drawn in turn."""


@dataclass(frozen=True, slots=True)
class Featured:
    """A system of one of the forms; a written one has its model."""

    form: str
    system: System
    model: type[Model] | None = None
    source: str = ""


def featured(seed: int, folder: Path) -> Featured | None:
    """The system of a seed; None if its form has none for this seed. `folder` is for the files of models."""
    form = FORMS[seed % len(FORMS)]
    match form:
        case "written":
            return written(seed, folder)
        case "limited":
            system = limited(seed, bags=True)
        case "step_limited":
            system = step_limited(seed, bags=True)
        case "partly_fair":
            system = partly_fair(seed, bags=True)
        case _:
            system = random_system(Random(seed), bags=True)
    return None if system is None else Featured(form, system)


def written(seed: int, folder: Path, *, sized: bool = False) -> Featured | None:
    """The written model of a seed; None if it is refused for a mistake or a constraint in every state."""
    source = model_source(seed, sized=sized)
    model: type[Model] = load(source, folder, f"featured_{seed}{'_sized' if sized else ''}").Random
    try:
        return Featured("written", model.system(), model, source)
    except ModelError as error:
        if "is true in no state" not in error.message and "in every state" not in error.message:
            raise
        return None
