"""The waist: a transition system as one immutable value. Authors produce it, every engine and exporter consumes it.

A `System` is ground: the parameters of an action and the picks of its nondeterministic choices are spelt out, one
`Instance` each, in a fixed order. An instance is enabled in a state when none of its guard conjuncts is false; taking it
replaces the variables named in `updates`, all at once. A `Check` that comes out true is an error of the model (exit code
75): checks marked ``guard`` are decided in every state, the others only where the instance is enabled.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import Enum
from functools import cached_property
from typing import Any, TypeAlias

from streamproof.system.build import TRUE
from streamproof.system.errors import Loc
from streamproof.system.expr import Expr
from streamproof.system.formula import Formula
from streamproof.system.records import dataclass
from streamproof.system.sorts import Sort, Value

State: TypeAlias = tuple[Value, ...]
"""One value per variable, in the order of `System.variables`."""


class Fairness(Enum):
    """What a scheduler owes an action at each choice of its parameters: nothing, weak fairness, or strong fairness.

    Which picks are taken is nobody's to owe. See `temporal` for the meaning."""

    NONE = "none"
    WEAK = "weak"
    STRONG = "strong"


class Kind(Enum):
    """What a property speaks about."""

    INVARIANT = "invariant"
    """True in every reachable state."""
    STEP = "step"
    """True of every reachable step; `expr` also reads the next state."""
    REACHABLE = "reachable"
    """True in at least one reachable state; holds with a witness."""
    DEADLOCK = "deadlock"
    """Every reachable state has an enabled instance or is terminal (`System.terminal`)."""
    TERMINATION = "termination"
    """No infinite behaviour: the graph of reachable states has no cycle, self-loops included."""
    TEMPORAL = "temporal"
    """`formula` is true of every fair behaviour; `expr` is not used."""


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One condition with the text it was written as and where."""

    expr: Expr
    text: str
    loc: Loc | None

    @property
    def denied(self) -> str:
        """The text for where it is false: what is written as a negation loses its ``not``."""
        written, gap, note = self.text.partition("  [")
        try:
            tree = ast.parse(written, mode="eval").body
        except (SyntaxError, ValueError):
            return f"not ({written}){gap}{note}"
        match tree:
            case ast.UnaryOp(op=ast.Not()):
                said = written.removeprefix("not").strip()
            case ast.BoolOp() | ast.IfExp() | ast.Lambda() | ast.NamedExpr():
                said = f"not ({written})"
            case _:
                said = f"not {written}"
        return said + gap + note


@dataclass(frozen=True, slots=True)
class Check:
    """A mistake that shows when `condition` is true; `operands` are shown with their values in the message."""

    condition: Expr
    message: str
    loc: Loc | None
    operands: tuple[tuple[str, Expr], ...] = ()


@dataclass(frozen=True, slots=True)
class Variable:
    """A state variable. `initial` lists its possible first values (their product, filtered by `System.initially`)."""

    name: str
    sort: Sort
    initial: tuple[Value, ...]
    loc: Loc | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """One ground action: parameters and picks fixed."""

    action: str
    args: tuple[tuple[str, Any], ...]
    picks: tuple[tuple[str, Any], ...]
    guard: tuple[Conjunct, ...]
    updates: tuple[tuple[str, Expr], ...]
    guard_checks: tuple[Check, ...] = ()
    effect_checks: tuple[Check, ...] = ()
    of: tuple[str, ...] = ()
    """The labels of the steps of parts of the system that this one is made of, where there are several."""

    @property
    def label(self) -> str:
        """As a reader writes it: ``send(c=1)[lost=True]``."""
        args = ", ".join(f"{n}={v}" for n, v in self.args)
        picks = ", ".join(f"{n}={v}" for n, v in self.picks)
        return f"{self.action}({args})" + (f"[{picks}]" if picks else "")


@dataclass(frozen=True, slots=True)
class Action:
    """A named rule of the protocol and its ground instances."""

    name: str
    parameters: tuple[str, ...]
    fairness: Fairness
    instances: tuple[Instance, ...]
    loc: Loc | None = None
    doc: str = ""
    internal: bool = False
    """Whether it is of no concern outside: it cannot be named by what the system is a part of."""


@dataclass(frozen=True, slots=True)
class Property:
    """What must hold. `conjuncts` are the parts of `expr`, for saying which of them failed."""

    name: str
    kind: Kind
    expr: Expr
    conjuncts: tuple[Conjunct, ...] = ()
    checks: tuple[Check, ...] = ()
    loc: Loc | None = None
    doc: str = ""
    formula: Formula | None = None
    """What a temporal property says; None for every other kind."""
    views: tuple[tuple[str, Expr], ...] = ()
    """What a trace of it shows beside the variables, each with its name: of a refinement, the abstract state."""


@dataclass(frozen=True)
class System:
    """A finite transition system with its properties. Build it with the language, or by hand for tests."""

    name: str
    variables: tuple[Variable, ...]
    actions: tuple[Action, ...]
    properties: tuple[Property, ...] = ()
    initially: Expr = TRUE
    terminal: Expr | None = None
    """States in which ending is legal; None: no state is (every state without a successor is a deadlock)."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    variant: str | None = None
    lemmas: tuple[Property, ...] = ()
    """Invariants offered to the induction engines; not verdicts of their own unless also listed in `properties`."""

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Position of each variable in a state."""
        return {v.name: at for at, v in enumerate(self.variables)}

    @cached_property
    def instances(self) -> tuple[Instance, ...]:
        """Every ground instance, in declaration order."""
        return tuple(i for a in self.actions for i in a.instances)

    def action(self, name: str) -> Action:
        """The action called `name`; raises `KeyError`."""
        for a in self.actions:
            if a.name == name:
                return a
        raise KeyError(name)

    def property(self, name: str) -> Property:
        """The property called `name`; raises `KeyError`."""
        for p in self.properties:
            if p.name == name:
                return p
        raise KeyError(name)

    def named(self, state: State) -> Iterator[tuple[Variable, Value]]:
        """The variables with their values in `state`."""
        return zip(self.variables, state, strict=True)
