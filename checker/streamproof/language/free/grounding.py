"""Rules of a model with large numeric domains, grounded on demand for the arguments that occur in a recorded run.

`compile_model` enumerates every combination of arguments in advance. A recorded run needs few of them, with arbitrary
numbers. Here a rule is lowered at the first use of its other arguments: parameters over a ``range`` stay symbolic, so
that one lowering serves all numbers.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

from streamproof.base.records import replace
from streamproof.language.declare.model import Model, marked
from streamproof.language.declare.origin import compiled_from
from streamproof.language.declare.primitives import ActionMark
from streamproof.language.lower.domains import Domains
from streamproof.language.lower.model_reader import Reader, deep
from streamproof.system import build as b
from streamproof.system.model import Instance, System, Variable
from streamproof.system.sorts import RangeSort
from streamproof.transform.assume import Substitution
from streamproof.transform.composition import changed

_Args = tuple[tuple[str, Any], ...]


class Rules:
    """The variables and rules of one model. `system` has no instances: `instances` creates them on demand."""

    def __init__(self, model: Model) -> None:
        """Raises `ModelError` for an invalid state declaration."""
        self._model = model
        self._reader = Reader(model, without_properties=True)
        self._rules: dict[str, tuple[ActionMark, types.FunctionType]] = {
            name: (mark, function)
            for name, (mark, function) in marked(type(model)).items()
            if isinstance(mark, ActionMark) and isinstance(function, types.FunctionType)
        }
        self._domains = {name: Domains(model, name, mark, function) for name, (mark, function) in self._rules.items()}
        self._numbers = {name: self._ranges(mark) for name, (mark, _) in self._rules.items()}
        self._lowered: dict[tuple[str, _Args], tuple[Instance, ...]] = {}
        self._ground: dict[tuple[str, _Args], tuple[Instance, ...]] = {}
        system = System(
            name=type(model).title(),
            variables=tuple(Variable(n, d.sort, d.first, d.loc) for n, d in self._reader.declarations.items()),
            actions=(),
            parameters=model.settings(),
            variant=type(model).variant,
        )
        self.system = compiled_from(system, model)

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the rules."""
        return tuple(self._rules)

    def instances(self, action: str, args: Mapping[str, Any]) -> tuple[Instance, ...]:
        """The instances of an action with these arguments, which must cover all its parameters.

        Empty for an unknown action, a number outside its range, or a rule that is never enabled with these arguments.
        Raises `ModelError` if the rule cannot be lowered.
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
        domains = self._domains[action]
        if any(args[p] not in domains.values(p, args) for p in domains.given if domains.reads(p)):
            return ()
        symbols = {p: b.var(f"{action}.{p}", RangeSort(r[0], r[-1])) for p, r in numbers.items()}
        given = tuple((p, symbols.get(p, args[p])) for p in domains.given)
        key = action, tuple((p, v) for p, v in given if p not in symbols)
        if key not in self._lowered:
            with deep():
                function = self._rules[action][1]
                self._lowered[key] = tuple(i for i, _ in self._reader.instances(action, function, given))
        put = Substitution({symbols[p]: b.num(args[p]) for p in symbols})
        own = tuple((p, args[p]) for p, _ in given)
        return tuple(replace(changed(i, put), args=own) for i in self._lowered[key])
