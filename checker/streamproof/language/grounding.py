"""The rules of a model whose numbers have no bound worth enumerating, grounded one by one for the arguments that occur.

`compile_model` spells out every combination of arguments before anything is asked. A recorded run needs few of them, with
numbers as they come. Here a rule is lowered when an argument is first met: parameters over a ``range`` stay symbols then, so
that one lowering serves all numbers; the others are fixed, as always.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

from streamproof.language.model import Model, marked
from streamproof.language.primitives import ActionMark
from streamproof.language.reader import Reader, deep
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import Check, Conjunct, Instance, System, Variable
from streamproof.system.records import replace
from streamproof.system.sorts import RangeSort
from streamproof.system.substitute import Substitution

_Args = tuple[tuple[str, Any], ...]


class Rules:
    """The variables and the rules of one model. `system` has no instances: ask for those that are needed."""

    def __init__(self, model: Model) -> None:
        """Raises `ModelError` where the state is declared wrong."""
        self._model = model
        self._reader = Reader(model, without_properties=True)
        self._rules: dict[str, tuple[ActionMark, types.FunctionType]] = {
            name: (mark, function)
            for name, (mark, function) in marked(type(model)).items()
            if isinstance(mark, ActionMark) and isinstance(function, types.FunctionType)
        }
        self._numbers = {name: self._ranges(mark) for name, (mark, _) in self._rules.items()}
        self._lowered: dict[tuple[str, _Args], tuple[Instance, ...]] = {}
        self._ground: dict[tuple[str, _Args], tuple[Instance, ...]] = {}
        self.system = System(
            name=type(model).title(),
            variables=tuple(Variable(n, d.sort, d.first, d.loc) for n, d in self._reader.declarations.items()),
            actions=(),
            parameters=model.settings(),
            variant=type(model).variant,
        )

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the rules."""
        return tuple(self._rules)

    def instances(self, action: str, args: Mapping[str, Any]) -> tuple[Instance, ...]:
        """The instances of an action with these arguments, which must be all of its parameters.

        Empty where there is no such action, where a number is outside its range, and where the rule can never happen with
        these arguments. Raises `ModelError` where the rule is not part of the language.
        """
        key = action, tuple(args.items())
        if key not in self._ground:
            self._ground[key] = self._grounded(action, args)
        return self._ground[key]

    def _ranges(self, mark: ActionMark) -> dict[str, range]:
        domains = {p: getattr(self._model, d) if isinstance(d, str) else d for p, d in mark.domains}
        return {p: d for p, d in domains.items() if isinstance(d, range)}

    def _grounded(self, action: str, args: Mapping[str, Any]) -> tuple[Instance, ...]:
        if action not in self._rules:
            return ()
        numbers = self._numbers[action]
        if any(args[p] not in r for p, r in numbers.items()):
            return ()
        symbols = {p: b.var(f"{action}.{p}", RangeSort(r[0], r[-1])) for p, r in numbers.items()}
        given = tuple((p, symbols.get(p, args[p])) for p, _ in self._rules[action][0].domains)
        key = action, tuple((p, v) for p, v in given if p not in symbols)
        if key not in self._lowered:
            with deep():
                function = self._rules[action][1]
                self._lowered[key] = tuple(i for i, _ in self._reader.instances(action, function, given))
        put = Substitution({symbols[p]: b.num(args[p]) for p in symbols})
        return tuple(_with(i, put, tuple((p, args[p]) for p, _ in given)) for i in self._lowered[key])


def _with(instance: Instance, put: Substitution, args: _Args) -> Instance:
    """A lowered rule with numbers for its symbols."""

    def checks(of: tuple[Check, ...]) -> tuple[Check, ...]:
        return tuple(replace(c, condition=put(c.condition), operands=_shown(c.operands, put)) for c in of)

    guard = tuple(Conjunct(put(c.expr), c.text, c.loc) for c in instance.guard)
    updates = tuple((name, put(term)) for name, term in instance.updates)
    return replace(
        instance,
        args=args,
        guard=guard,
        updates=updates,
        guard_checks=checks(instance.guard_checks),
        effect_checks=checks(instance.effect_checks),
    )


def _shown(operands: tuple[tuple[str, Expr], ...], put: Substitution) -> tuple[tuple[str, Expr], ...]:
    return tuple((text, put(term)) for text, term in operands)
