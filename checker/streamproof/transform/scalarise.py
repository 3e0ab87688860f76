"""Scalarisation: an equivalent system with Bool, Range and Enum variables only.

Engines that use machine words or solver terms work on the result. Every composite variable becomes a group of leaves
(`leaves`), every term a term over them (`flatten`); states, initial states and steps correspond one to one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from streamproof.base.errors import ModelError, TooLarge
from streamproof.base.records import dataclass, replace
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.leaves import decode, encode, leaf_count, leaves
from streamproof.system.model import Check, Instance, State, System, Variable, mapped_conjuncts
from streamproof.system.sorts import Sort, Value
from streamproof.transform.flatten import Rewriter

LEAF_LIMIT = 100_000
"""Maximum number of leaves of one system."""


@dataclass(frozen=True, slots=True)
class Scalarised:
    """A system over scalar variables, with the encoding of the original's states."""

    original: System
    system: System
    leaves: Mapping[str, tuple[str, ...]]
    """For each variable of the original, the names of its leaves in order."""

    def encode(self, state: State) -> State:
        """The leaves of a state of the original, in the order of `system.variables`."""
        return tuple(part for v, value in self.original.named(state) for part in encode(v.sort, value))

    def decode(self, state: State) -> State:
        """The original's state with these leaves."""
        parts = iter(state)
        return tuple(decode(v.sort, parts) for v in self.original.variables)


def scalarise(system: System) -> Scalarised:
    """`system` with every composite variable replaced by its leaves; instances and properties keep names and order.

    The states of the result are the encodings of the original's, including initial states and steps. Raises `TooLarge`
    if a set's element sort or the whole state needs too many leaves.
    """
    total = sum(leaf_count(v.sort) for v in system.variables)
    if total > LEAF_LIMIT:
        raise TooLarge(f"a state of {system.name} has {total} scalar parts", remedy=f"this engine takes {LEAF_LIMIT}")
    groups = {v.name: tuple(leaves(v.sort, v.name)) for v in system.variables}
    owners: dict[str, str] = {}
    for v in system.variables:
        for leaf in groups[v.name]:
            if leaf.name in owners:
                raise ModelError(
                    f"two parts of the state are called {leaf.name}: of {owners[leaf.name]} and of {v.name}",
                    loc=v.loc,
                    remedy="leave brackets and dots out of the names of members and fields",
                )
            owners[leaf.name] = v.name
    places = {
        v.name: (v.sort, [(leaf.name, b.var(leaf.name, leaf.sort)) for leaf in groups[v.name]])
        for v in system.variables
    }
    rewriter = Rewriter()
    variables: list[Variable] = []
    initially = [rewriter.scalar(system.initially)]
    for v in system.variables:
        rows = dict.fromkeys(encode(v.sort, value) for value in v.initial)
        starts = [
            Variable(leaf.name, leaf.sort, tuple(dict.fromkeys(row[at] for row in rows)), v.loc)
            for at, leaf in enumerate(groups[v.name])
        ]
        variables += starts
        initially.append(_among(starts, rows))
    scalar = system.rewritten(
        partial(_instance, rewriter, places),
        rewriter.scalar,
        partial(_checks, rewriter),
        variables=tuple(variables),
        initially=b.and_(initially),
    )
    return Scalarised(system, scalar, {name: tuple(leaf.name for leaf in group) for name, group in groups.items()})


def _among(group: Sequence[Variable], rows: Iterable[tuple[Value, ...]]) -> Expr:
    """The condition that the leaves equal one of `rows`; leaves that vary freely and independently are omitted.

    Rows are split by their first entry; entries with the same remainder share one branch.
    """
    varying = [at for at, leaf in enumerate(group) if len(leaf.initial) > 1]
    terms = [b.var(group[at].name, group[at].sort) for at in varying]
    known: dict[frozenset[tuple[Value, ...]], Expr] = {}

    def split(at: int, rest: frozenset[tuple[Value, ...]]) -> Expr:
        if at == len(terms):
            return b.TRUE
        if rest not in known:
            tails: dict[Value, set[tuple[Value, ...]]] = {}
            for row in rest:
                tails.setdefault(row[0], set()).add(row[1:])
            branches: dict[frozenset[tuple[Value, ...]], list[Value]] = {}
            for value in group[varying[at]].initial:
                if value in tails:
                    branches.setdefault(frozenset(tails[value]), []).append(value)
            free = len(branches) == 1 and len(tails) == len(group[varying[at]].initial)
            known[rest] = b.or_(
                b.and_((b.TRUE if free else _one_of(terms[at], some), split(at + 1, tail)))
                for tail, some in branches.items()
            )
        return known[rest]

    return split(0, frozenset(tuple(row[at] for at in varying) for row in rows))


def _one_of(term: Expr, some: Iterable[Value]) -> Expr:
    return b.or_(b.eq(term, b.const(term.sort, value)) for value in some)


def _checks(rewriter: Rewriter, checks: Iterable[Check]) -> tuple[Check, ...]:
    return tuple(
        replace(
            check,
            condition=rewriter.scalar(check.condition),
            operands=tuple(
                (leaf.name, part)
                for text, term in check.operands
                for leaf, part in zip(leaves(term.sort, text), rewriter.flat(term, term.sort), strict=True)
            ),
        )
        for check in checks
    )


Places = Mapping[str, tuple[Sort, Sequence[tuple[str, Expr]]]]
"""The sort and leaves of each variable, each leaf with the term that reads it."""


def _instance(rewriter: Rewriter, places: Places, instance: Instance) -> Instance:
    updates: list[tuple[str, Expr]] = []
    for name, term in instance.updates:
        sort, group = places[name]
        updates += (
            (leaf, part) for (leaf, own), part in zip(group, rewriter.flat(term, sort), strict=True) if part is not own
        )
    return replace(
        instance,
        guard=mapped_conjuncts(instance.guard, rewriter.scalar),
        updates=tuple(updates),
        guard_checks=_checks(rewriter, instance.guard_checks),
        effect_checks=_checks(rewriter, instance.effect_checks),
    )
