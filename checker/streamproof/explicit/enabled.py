"""The generated function for one state: its enabled instances and their successors.

For a model of two counters it reads::

    def options(_state, _hits):
     (a, b,) = _state
     _found = []
     if (a < 2):
      _found.append((0, ((a + 1), b,)))
     return _found
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TypeAlias, cast

from streamproof.explicit.successors import GROUPING_LIMIT, Rule, rules_of
from streamproof.explicit.writer import Writer, load, local_names, shared, unpacking
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import Property, State, System

Option: TypeAlias = tuple[int, State]
"""Number of an enabled instance, and its successor."""
BrokenStep: TypeAlias = tuple[int, int, bool]
"""Number of a step property, number of the instance whose step breaks it, and whether evaluating the property fails there."""
Options: TypeAlias = Callable[[State, list[BrokenStep]], list[Option] | None]
"""Called with a state and the list that receives the broken step properties; returns the options in the order of the
instances, or None at an evaluation error of the model."""


def options_of(system: System, steps: Sequence[tuple[int, Property]]) -> Options:
    """The options of any one state of a simplified scalar system, with the numbered step properties checked."""
    rules = [rule for rule in rules_of(system, steps) if b.FALSE not in rule.guard]
    faults = b.or_(check.condition for i in system.instances for check in i.guard_checks)
    writer = Writer(local_names(system))
    with writer.block("def options(_state, _hits):"):
        writer.line(f"{unpacking(system)} = _state")
        writer.line("_found = []")
        common = shared([faults, *(rule.guard[0] for rule in rules if rule.guard)])
        if faults is not b.FALSE:
            with writer.block(f"if {writer.term(faults, common)}:"):
                writer.line("return None")
        for rule in rules:
            _write(writer, rule, shared(rule.roots) | common)
        writer.line("return _found")
    return cast(Options, load("options", system.name, writer.source))


def _write(writer: Writer, rule: Rule, common: set[Expr]) -> None:
    with ExitStack() as blocks:
        for condition in rule.guard:
            if writer.nesting < 2 * GROUPING_LIMIT:
                blocks.enter_context(writer.block(f"if {writer.term(condition, common)}:"))
            else:
                writer.line(f"_open = bool({writer.term(condition, common)})")
                blocks.enter_context(writer.block("if _open:"))
        if rule.faults is not b.FALSE:
            with writer.block(f"if {writer.term(rule.faults, common)}:"):
                writer.line("return None")
        after = ", ".join(writer.term(term, common) for term in rule.after)
        writer.line(f"_found.append(({rule.number}, {f'({after},)' if rule.changes else '_state'}))")
        for k, mistake, broken in rule.steps:
            wrong, lost = writer.term(mistake, common), writer.term(broken, common)
            with writer.block(f"if {wrong} or {lost}:"):
                writer.line(f"_hits.append(({k}, {rule.number}, {wrong}))")
