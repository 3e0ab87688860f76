"""Candidate laws from samples: linear equations that every sampled state of small instances satisfies.

They are the null space of the values of features in the samples: numbers and flags at one index, or summed over all
indices. A law that no single rule shows, because a rule sets what may be set already, is found in this way. Induction
decides whether it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from streamproof.any.engine.claims import ParametricClaim
from streamproof.any.engine.laws import EQUAL, LawFinder
from streamproof.any.engine.local import Local, local
from streamproof.any.engine.samples import Instantiate, sampled_states
from streamproof.symbolic.discovery.linear import ONE, Form, null_space
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.leaves import encode
from streamproof.system.model import State
from streamproof.system.sorts import EnumSort, Value
from streamproof.transform.unbounded import Parametric, any_length

MOST_FEATURES = 60
"""Maximum number of features; elimination is cubic in it."""
MOST_SAMPLES = 1_500
"""Maximum number of distinct rows of values."""
LARGEST = 8
"""Largest coefficient of a law."""

Row = dict[Expr, int]


def affine_candidates(parametric: Parametric, instantiate: Instantiate) -> list[ParametricClaim]:
    """Linear equations between sums over all indices, and between the values at one index."""
    view = local(parametric)
    if view is None:
        return []
    finder = LawFinder(parametric, view)
    parameters = [b.var(f.name, f.sort) for f in parametric.free]
    of_state = {term: name for name in view.terms for term, _ in _flags(view, name, None)}
    for term in parameters:
        of_state.pop(term, None)
    if len(of_state) > MOST_FEATURES:
        return []
    found: dict[str, ParametricClaim] = {}
    states = list(sampled_states(parametric, instantiate))
    whole = _distinct({**_sums(parametric, view, state), **_given(parametric, values)} for values, state in states)
    for law in _laws(whole, [*of_state, *parameters, ONE], {*of_state}):
        claim = finder.stated(law, EQUAL, None)
        found.setdefault(claim.name, claim)
    for bound in dict.fromkeys(view.index.values()):
        own = {term for term, name in of_state.items() if view.index.get(name) is bound}
        here = [term for term, name in of_state.items() if term in own or name not in view.index]
        at_one = _distinct(
            {**row, **_given(parametric, values)}
            for values, state in states
            for row in _at_each(parametric, view, state, {of_state[term] for term in own})
        )
        for law in _laws(at_one, [*here, *parameters, ONE], own):
            claim = finder.stated(law, EQUAL, bound)
            found.setdefault(claim.name, claim)
    return list(found.values())


def _laws(rows: Sequence[Row], order: Sequence[Expr], needed: set[Expr]) -> Iterator[Form]:
    """The small equations of the rows that mention one of the features `needed`."""
    sparse = ({term: value for term, value in row.items() if value} for row in rows)
    for law in null_space(sparse, order) if rows else ():
        if needed & {*law} and all(abs(weight) <= LARGEST for term, weight in law.items() if term is not ONE):
            yield dict(law)


def _distinct(rows: Iterable[Row]) -> list[Row]:
    found: dict[tuple[tuple[Expr, int], ...], Row] = {}
    for row in rows:
        found.setdefault(tuple(row.items()), row)
        if len(found) == MOST_SAMPLES:
            break
    return list(found.values())


def _given(parametric: Parametric, values: Mapping[str, int]) -> Row:
    return {**{b.var(f.name, f.sort): values[f.name] for f in parametric.free}, ONE: 1}


def _flags(view: Local, name: str, value: Value) -> Iterator[tuple[Expr, int]]:
    """The features of a leaf with their values: the number or flag itself, a flag for each member of an enumeration but the
    first."""
    term = view.terms[name]
    if isinstance(term.sort, EnumSort):
        yield from ((b.eq(term, b.const(term.sort, m)), int(value == m)) for m in term.sort.members[1:])
    else:
        yield term, int(value or 0)


def _parts(parametric: Parametric, view: Local, state: State) -> Iterator[tuple[list[str], list[tuple[Value, ...]]]]:
    """For each variable the names of its leaves, and their values: at every index of an array of unbounded length."""
    names = iter(view.terms)
    for v, value in zip(parametric.system.variables, state, strict=True):
        if any_length(v.sort):
            rows = [tuple(encode(v.sort.element, element)) for element in value]
        else:
            rows = [tuple(encode(v.sort, value))]
        yield [next(names) for _ in rows[0]], rows


def _sums(parametric: Parametric, view: Local, state: State) -> Row:
    """The features of a state, summed over all indices."""
    found: Row = {}
    for names, rows in _parts(parametric, view, state):
        for row in rows:
            for name, value in zip(names, row, strict=True):
                for term, number in _flags(view, name, value):
                    found[term] = found.get(term, 0) + number
    return found


def _at_each(parametric: Parametric, view: Local, state: State, own: set[str]) -> Iterator[Row]:
    """The features of a state at each index of the arrays whose leaves are `own`, and those without an index."""
    parts = list(_parts(parametric, view, state))
    length = max((len(rows) for names, rows in parts if own & {*names}), default=0)
    for at in range(length):
        found: Row = {}
        for names, rows in parts:
            if own & {*names} or not any(name in view.index for name in names):
                for name, value in zip(names, rows[at if own & {*names} else 0], strict=True):
                    found.update(_flags(view, name, value))
        yield found
