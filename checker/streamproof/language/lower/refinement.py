"""The claims that a model refines another one, as its properties."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

from streamproof.base.errors import Loc, ModelError
from streamproof.base.records import dataclass
from streamproof.language.declare.model import Model, marked, progress_of
from streamproof.language.declare.primitives import ActionMark, RefinementMark
from streamproof.language.lower import lvalues
from streamproof.language.lower.lowering import Lowering
from streamproof.language.lower.lowering_context import Context
from streamproof.language.lower.sources import place
from streamproof.language.lower.terms import ScopeNames, StateRef, VariableName, describe
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import Fairness, Kind, Property, System, Variable
from streamproof.system.sorts import Sort
from streamproof.transform.refinement import FAIRNESS, START, Refinement


@dataclass(frozen=True, slots=True)
class Promised:
    """One property of a refinement, known before the model is compiled."""

    name: str
    kind: Kind
    doc: str


def promised(name: str, mark: RefinementMark, doc: str = "") -> tuple[Promised, ...]:
    """The properties of a refinement `name`, in order."""
    cls = _model(mark)
    into = cls.title()
    found = [
        Promised(name + START, Kind.INVARIANT, f"Every initial state is mapped to an initial state of {into}."),
        Promised(name, Kind.STEP, doc or f"Every step is mapped to a step of {into}, or changes no mapped variable."),
    ]
    fair = any(isinstance(m, ActionMark) and m.is_fair for m, _ in marked(cls).values())
    if fair or progress_of(cls) is not Fairness.NONE:
        found.append(Promised(name + FAIRNESS, Kind.TEMPORAL, f"The fairness that {into} demands is kept."))
    return tuple(found)


def refined(
    compiled: Callable[[Model], System],
    model: Model,
    sorts: dict[str, Sort],
    variables: tuple[Variable, ...],
    initially: Expr,
    name: str,
    mark: RefinementMark,
    function: types.FunctionType,
    names: ScopeNames | None = None,
) -> tuple[Property, ...]:
    """The properties of a refinement by a model with these variables and this initial condition. Raises `ModelError`.

    `compiled` gives the abstract system, without properties. `names`: the variables visible to the model's functions,
    in a composition.
    """
    home = mark.loc if mark.named is not None else place(function)
    abstract = _abstract(compiled, model, mark, home)
    if abstract.constraint is not None:
        raise ModelError(
            f"{abstract.name}, which {name} refines, has a constraint", loc=home, remedy="refine a model without one"
        )
    context = Context(sorts=sorts, state={n: b.var(n, s) for n, s in sorts.items()}, label=f"{name}()", in_action=False)
    loc = home or Loc("?", 0)
    given: Mapping[str, Any]
    seen = {n: n for n in sorts}
    if names is not None:
        seen |= {n: entry.name for n, entry in names.entries.items() if isinstance(entry, VariableName)}
    if mark.named is None:
        given, loc = _function(context, model, function, names)
    else:
        given = {}
        for theirs, ours in mark.named:
            if ours not in seen:
                raise ModelError(
                    f"{name} maps {theirs!r} to {ours!r}, which is not a variable",
                    loc=loc,
                    remedy=f"the variables: {', '.join(sorts)}",
                )
            given = {**given, theirs: b.var(seen[ours], sorts[seen[ours]])}
    known = {v.name: v.sort for v in abstract.variables}
    for key in given:
        if key not in known:
            raise ModelError(
                f"{name} gives a value for {key!r}, which is not a variable of {abstract.name}",
                loc=loc,
                remedy=f"its variables: {', '.join(known)}",
            )
    mapping: dict[str, Expr] = {}
    for theirs, sort in known.items():
        if theirs not in given and theirs not in seen:
            raise ModelError(
                f"{name} does not map {theirs!r} of {abstract.name}",
                loc=loc,
                remedy=f"give it a value of {sort} in the dict that is returned",
            )
        value = given[theirs] if theirs in given else b.var(seen[theirs], sorts[seen[theirs]])
        term = lvalues.convert(context, value, sort, loc, f"{theirs} of {abstract.name}")
        outside = b.not_(b.in_domain(term, sort))
        context.check(outside, f"{theirs} of {abstract.name} leaves {sort}", loc, (theirs, term))
        mapping[theirs] = term
    doc = promised(name, mark, (function.__doc__ or "").strip() if mark.named is None else "")[1].doc
    checks = tuple(p.check for p in context.checks)
    return Refinement(name, variables, initially, abstract, mapping, checks, home, doc).properties()


def _model(mark: RefinementMark) -> type[Model]:
    model: type[Model] = mark.model
    return model if mark.variant is None else model.variants.get(mark.variant, model)


def _abstract(compiled: Callable[[Model], System], model: Model, mark: RefinementMark, loc: Loc | None) -> System:
    base: type[Model] = mark.model
    parameters = {}
    for name, value in mark.parameters:
        if name not in base.parameters():
            raise ModelError(
                f"{base.title()} has no parameter {name!r}",
                loc=loc,
                remedy=f"its parameters: {', '.join(base.parameters()) or 'none'}",
            )
        parameters[name] = getattr(model, value) if isinstance(value, str) and hasattr(model, value) else value
    return compiled(base.build(mark.variant, **parameters))


def _function(
    context: Context, model: Model, function: types.FunctionType, names: ScopeNames | None
) -> tuple[Mapping[str, Any], Loc]:
    value, loc = Lowering(context).returned(function, [model, StateRef(names=names)])
    if not isinstance(value, Mapping):
        raise ModelError(
            f"{function.__name__}() returns {describe(value)}",
            loc=loc,
            remedy="return a dict with a value for every variable of the abstract model: return dict(n=s.n, ...)",
        )
    return value, loc
