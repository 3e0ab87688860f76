"""`prove`, `prove_any` and `prove_rank`: proofs of properties for every behaviour, and for every size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from streamproof.api.check import engine_of
from streamproof.api.subject import NO_PARAMETERS, ChosenSystem, Subject, choose_system, within
from streamproof.base.errors import Exit, StreamproofError, UsageError
from streamproof.base.options import DEFAULTS, MOST_PATIENCE, SearchOptions
from streamproof.base.records import replace
from streamproof.engines.proving import PROVABLE, seconds_of
from streamproof.engines.registry import PROVERS
from streamproof.system.model import Kind, System
from streamproof.traces.replay import confirm_result
from streamproof.transform.unbounded import Unbounded, as_declared

if TYPE_CHECKING:
    from streamproof.any.every_size import AnyProof
    from streamproof.any.ranked import RankedProof
    from streamproof.symbolic.proof import Proof


@as_declared()
def prove(
    model: Subject,
    properties: Iterable[str] | None = None,
    *,
    variant: str | None = None,
    size: str | None = None,
    parameters: Mapping[str, Any] = NO_PARAMETERS,
    engine: str = "auto",
    options: SearchOptions = DEFAULTS,
    on_progress: Callable[[Any], None] | None = None,
) -> Proof | AnyProof:
    """Proves properties for all behaviours by induction, discovered lemmas and PDR, as `streamproof prove` does.

    The arguments are those of `check`; without `properties`, the invariants, step properties and deadlock freedom are
    proved. A chosen temporal property is proved by liveness-to-safety. `engine` is `auto`, `induction`, `discovery` or
    `pdr`. `options.time_limit` is 120 s unless it is given (`math.inf`: none), `options.query_limit` 60 s.

    The proof is confirmed by a second procedure, and each property says whether it is vacuous; what is not proved is
    inconclusive, or violated with a trace that the interpreter confirms. A model with unbounded integers is proved as by
    `prove_any` without parameters, and the result is an `AnyProof`. Raises as `check`.
    """
    chosen = choose_system(model, properties, variant, size, parameters, options)
    prover = engine_of(engine, PROVERS)
    names = _wanted(chosen, PROVABLE, "invariant, step property or deadlock")
    options = replace(options, properties=names, time_limit=seconds_of(options.time_limit))
    prover.expect(options)
    with within(options.time_limit):
        try:
            system, compared = chosen.read()
        except Unbounded:
            return _for_every_size(chosen, (), names, options, None, on_progress)
        beside = {}
        for name, other, alone in chosen.beside(options):
            variant_system, _ = other.read()
            beside[name] = prover.run(variant_system, alone, on_progress=on_progress)
            confirm_result(variant_system, beside[name], engine)
        result = cast("Proof", prover.run(system, options, on_progress=on_progress))
        confirm_result(system, result, engine)
        return replace(result, plain_python=compared, not_selected=_others(chosen, names), beside=beside)


@as_declared()
def prove_any(
    model: Subject,
    free: Iterable[str] = (),
    properties: Iterable[str] | None = None,
    *,
    variant: str | None = None,
    size: str | None = None,
    parameters: Mapping[str, Any] = NO_PARAMETERS,
    options: SearchOptions = DEFAULTS,
    on_progress: Callable[[Any], None] | None = None,
) -> AnyProof:
    """Proves properties for every value of the parameters `free`, as `streamproof prove --any` does.

    The other arguments are those of `prove`; `options.query_limit` is 10 s unless it is given. Three cross-checks make the
    verdict trustworthy: the symbolic reading is compared with concrete ones and plain Python, the induction is checked
    without quantifiers at small values, and small instances are searched, which also refutes properties that are false.

    Raises as `check`, and with exit code 162 where a cross-check differs: a defect of streamproof.
    """
    chosen = choose_system(model, properties, variant, size, parameters, options)
    _expect_alone(chosen)
    names = _wanted(chosen, PROVABLE, "invariant, step property or deadlock")
    symbolic = (free,) if isinstance(free, str) else tuple(free)
    options = replace(options, properties=names, time_limit=seconds_of(options.time_limit))
    with within(options.time_limit):
        compared = _given_instance(chosen) if symbolic else None
        return _for_every_size(chosen, symbolic, names, options, compared, on_progress)


@as_declared()
def prove_rank(
    model: Subject,
    properties: Iterable[str] | None = None,
    rank: str = "",
    *,
    free: Iterable[str] = (),
    variant: str | None = None,
    size: str | None = None,
    parameters: Mapping[str, Any] = NO_PARAMETERS,
    options: SearchOptions = DEFAULTS,
    on_progress: Callable[[Any], None] | None = None,
) -> RankedProof:
    """Proves temporal properties by a ranking function, as `streamproof prove --rank` does; also for every size.

    `rank` is an expression of variables and parameters, ``2*left + wire``, or the name of a quantity of the model
    (`measure`); empty: one is searched. `options.query_limit` is 2 s unless it is given, `options.time_limit` 60 s for
    each property. The other arguments are those of `prove_any`, with its cross-checks for `free` parameters. Raises as
    `prove_any`.
    """
    from streamproof.any.ranked import prove_ranked

    chosen = choose_system(model, properties, variant, size, parameters, options)
    _expect_alone(chosen)
    names = _wanted(chosen, (Kind.TEMPORAL,), "temporal property")
    _expect_limits(replace(options, properties=names), "a proof by a ranking function")
    selection, compared = chosen.model("a proof by a ranking function"), dict[str, Mapping[str, int] | None]()

    def read() -> System:
        system, compared["plain_python"] = chosen.read()
        return system

    return replace(
        prove_ranked(
            selection,
            (free,) if isinstance(free, str) else tuple(free),
            names,
            rank,
            read=read,
            query_limit=options.query_limit,
            time_limit=None if options.time_limit is None else min(options.time_limit, MOST_PATIENCE),
            on_progress=on_progress or (lambda _: None),
        ),
        plain_python=compared.get("plain_python"),
        not_selected=_others(chosen, names),
    )


def _for_every_size(
    chosen: ChosenSystem,
    free: Sequence[str],
    names: Sequence[str],
    options: SearchOptions,
    compared: Mapping[str, int] | None,
    on_progress: Callable[[Any], None] | None,
) -> AnyProof:
    from streamproof.any.every_size import prove_for_every_size

    _expect_limits(options, "a proof for every size" if free else "a proof over unbounded integers")
    result = prove_for_every_size(
        chosen.model("a proof for every size"),
        free,
        names,
        query_limit=options.query_limit,
        time_limit=options.time_limit,
        on_progress=on_progress or (lambda _: None),
    )
    confirm_result(result.system, result, "explicit")
    return replace(result, plain_python=compared, not_selected=_others(chosen, names))


def _given_instance(chosen: ChosenSystem) -> Mapping[str, int] | None:
    """The extent of the comparison of the instance at the given and default values with plain Python, if it exists."""
    try:
        return chosen.read()[1]
    except StreamproofError as error:
        if error.exit_code is Exit.DISAGREE:
            raise
        return None


def _wanted(chosen: ChosenSystem, kinds: Sequence[Kind], what: str) -> tuple[str, ...]:
    """The names of the properties to prove: the chosen ones, or those of `kinds`. Raises `UsageError` if there are none."""
    names = tuple(p.name for p in chosen.listed if chosen.properties is not None or p.kind in kinds)
    if not names:
        others = ", ".join(p.name for p in chosen.listed)
        remedy = f"choose one by name: {others}" if others else "mark one, as @invariant"
        raise UsageError(f"{chosen.name} has no {what} to prove", remedy=remedy)
    return names


def _expect_alone(chosen: ChosenSystem) -> None:
    """Raises `UsageError` if a variant is to be judged beside the model itself."""
    for name, _, _ in chosen.beside(DEFAULTS):
        raise UsageError(f"variant {name} is judged beside this job, but not in such proofs", remedy=f"choose {name}")


def _others(chosen: ChosenSystem, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(p.name for p in chosen.listed if p.name not in names)


def _expect_limits(options: SearchOptions, what: str) -> None:
    """Raises `UsageError` for an option other than properties and limits of time."""
    for name in options.given():
        if name not in ("properties", "time_limit", "query_limit"):
            raise UsageError(f"{what} does not support {name}", remedy="leave it out of the options")
