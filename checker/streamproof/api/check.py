"""`check`: decide the properties of a model by exhaustive search or bounded model checking."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from streamproof import interrupts
from streamproof.api.subject import NO_PARAMETERS, ChosenSystem, Subject, choose_system, within
from streamproof.base.options import DEFAULTS, SearchOptions
from streamproof.base.records import replace
from streamproof.engines.registry import CHECKS, RegisteredEngine, explored
from streamproof.model_registry import unknown
from streamproof.system.verdict import CheckResult, Finding
from streamproof.traces.replay import confirm_result

if TYPE_CHECKING:
    from streamproof.explicit.exploration import Exploration
    from streamproof.symbolic.bmc import Bounded


@overload
def check(
    model: Subject,
    properties: Iterable[str] | None = None,
    *,
    variant: str | None = None,
    size: str | None = None,
    parameters: Mapping[str, Any] = NO_PARAMETERS,
    engine: Literal["explicit"] = "explicit",
    options: SearchOptions = DEFAULTS,
    on_progress: Callable[[Any], None] | None = None,
    on_violation: Callable[[Finding], None] | None = None,
) -> Exploration: ...


@overload
def check(
    model: Subject,
    properties: Iterable[str] | None = None,
    *,
    variant: str | None = None,
    size: str | None = None,
    parameters: Mapping[str, Any] = NO_PARAMETERS,
    engine: Literal["bmc"],
    options: SearchOptions = DEFAULTS,
    on_progress: Callable[[Any], None] | None = None,
    on_violation: Callable[[Finding], None] | None = None,
) -> Bounded: ...


def check(
    model: Subject,
    properties: Iterable[str] | None = None,
    *,
    variant: str | None = None,
    size: str | None = None,
    parameters: Mapping[str, Any] = NO_PARAMETERS,
    engine: str = "explicit",
    options: SearchOptions = DEFAULTS,
    on_progress: Callable[[Any], None] | None = None,
    on_violation: Callable[[Finding], None] | None = None,
) -> CheckResult:
    """Decides properties of a model by searching its reachable states, as `streamproof check` does.

    `model` is a name or a file as on the command line, a `Model` class or an instance of one, a `Spec`, or a `System`.
    `variant`, `size` and `parameters` choose one of its systems; `properties` None means all. Chosen properties
    end the search when all of them are decided. The engine `explicit` searches all states and returns an `Exploration`,
    `bmc` searches all behaviours of up to `options.depth` steps by a solver and returns a `Bounded`.

    The rules are compared with the model's own functions, run by Python (not of a `System`); the interpreter confirms each
    trace. `on_progress` is called about once a second, `on_violation` with each violation found before the end.

    Raises `UsageError` for an unknown name and for an option that the engine does not support, `ModelError` for a mistake in
    the model, `TooLarge`, and `OutOfTime` if the time ends before the search begins.
    """
    chosen = choose_system(model, properties, variant, size, parameters, options)
    checker = engine_of(engine, CHECKS)
    names = chosen.properties
    options = replace(options, properties=names, stop_when_decided=options.stop_when_decided or bool(names))
    checker.expect(options)
    with within(options.time_limit):
        chosen.expect_feasible(options)
        beside = {
            name: _checked(checker, other, alone, on_progress, on_violation)
            for name, other, alone in chosen.beside(options)
        }
        result = _checked(checker, chosen, options, on_progress, on_violation)
        return replace(result, beside={**chosen.decided(), **beside})


def engine_of(name: str, known: Mapping[str, RegisteredEngine]) -> RegisteredEngine:
    """The engine of a name. Raises `UsageError`."""
    if name not in known:
        raise unknown("no engine", name, known, "the engines")
    return known[name]


def _checked(
    engine: RegisteredEngine,
    chosen: ChosenSystem,
    options: SearchOptions,
    on_progress: Callable[[Any], None] | None,
    on_violation: Callable[[Finding], None] | None,
) -> CheckResult:
    system, compared = chosen.read()
    quantities = chosen.measures()
    result = engine.run(system, options, on_progress=on_progress, on_violation=on_violation)
    with interrupts.unlimited():  # a result is given even if the search used up the time
        confirm_result(system, result, engine.name)
        states = explored(result)
        if states is not None and quantities and not result.interrupted:
            result = replace(result, measures=states.measured(quantities))
    return replace(result, plain_python=compared, not_selected=chosen.not_selected(result))
