"""`mutate`: how good is a specification? Small changes of the rules, which its properties must notice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from streamproof.api.subject import NO_PARAMETERS, Subject, choose_system, within
from streamproof.base.errors import UsageError
from streamproof.base.options import DEFAULTS, SearchOptions
from streamproof.base.records import replace
from streamproof.mutation.judging import JudgedMutant, Mutation
from streamproof.mutation.judging import mutate as judge
from streamproof.mutation.mutants import Mutant


def mutate(
    model: Subject,
    properties: Iterable[str] | None = None,
    *,
    variant: str | None = None,
    size: str | None = None,
    parameters: Mapping[str, Any] = NO_PARAMETERS,
    options: SearchOptions = DEFAULTS,
    only: Callable[[Mutant], bool] = lambda mutant: True,
    on_judged: Callable[[JudgedMutant, int], None] = lambda judged, number: None,
    parts: bool = False,
) -> Mutation:
    """Changes the rules of a model in small ways and judges each mutant by its properties, as `streamproof mutate` does.

    The arguments are those of `check`; `options` has `max_states` and `memory`, for each search, and `time_limit`, for all of
    them: mutants that are left then are undecided. `only` chooses mutants, and `on_judged` is called with each answer and its
    number. `parts`: also judge the parts of the properties. Raises `UsageError` if the search of the original is not complete
    or none of its properties holds, else as `check`.
    """
    chosen = choose_system(model, properties, variant, size, parameters, options)
    for name in options.given():
        if name not in ("properties", "max_states", "memory", "time_limit"):
            raise UsageError(f"mutate does not support {name}", remedy="leave it out of the options")
    with within(options.time_limit):
        system, _ = chosen.read()
        return judge(
            system, replace(options, properties=chosen.properties), only=only, on_judged=on_judged, parts=parts
        )
