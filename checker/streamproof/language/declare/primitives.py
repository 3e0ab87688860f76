"""The primitives of the language: `require`, `choose`, and the decorators of rules and properties.

Decorators only mark a function; it stays an ordinary function that runs on concrete states and can be overridden in a
subclass or called through ``super()``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import field
from enum import Enum
from typing import Any, NoReturn, TypeVar, overload

from streamproof.base.errors import EvaluationError, Loc, ModelError, StreamproofError
from streamproof.base.records import dataclass
from streamproof.language.lower.conversion import plain
from streamproof.language.lower.sources import as_model_error, caller
from streamproof.system.model import Fairness, Kind, PartialFairness

F = TypeVar("F", bound=Callable[..., Any])

WEAK = Fairness.WEAK
STRONG = Fairness.STRONG

MARK = "__streamproof__"
_LINE = "__streamproof_line__"
"""Attributes of a marked function: its mark, and the line of the decorator."""
_MARKERS = ("streamproof.language.declare.primitives", "streamproof.language.declare.refining")
"""Modules whose public functions, other than those for use in rules and properties, are decorators."""


@dataclass(frozen=True, slots=True)
class ActionMark:
    """The mark of `action`."""

    fairness: Fairness
    domains: tuple[tuple[str, Any], ...]
    where: Any = None
    """The condition of `Fairness.where`; None: every step of the action."""
    branches: tuple[str, ...] = ()
    """The branches of `Fairness.branch`."""
    several: tuple[ActionMark, ...] = ()
    """Marks with one fairness constraint each, where the rule has more than one; its own is none then."""

    @property
    def is_fair(self) -> bool:
        """Whether the rule has a fairness constraint."""
        return self.fairness is not Fairness.NONE or any(one.is_fair for one in self.several)

    @property
    def part(self) -> str:
        """The steps that the fairness constraint concerns, as the end of its label."""
        if self.where is not None:
            return f" where {self._condition_name}"
        return f": {' or '.join(self.branches)}" if self.branches else ""

    @property
    def _condition_name(self) -> str:
        name = self.where if isinstance(self.where, str) else getattr(self.where, "__name__", "it")
        return f"the condition of line {self.where.__code__.co_firstlineno}" if name == "<lambda>" else name


@dataclass(frozen=True, slots=True)
class PropertyMark:
    """The mark of `invariant`, `step`, `reachable`, `temporal` and `lemma`."""

    kind: Kind
    lemma: bool = False


@dataclass(frozen=True, slots=True)
class RefinementMark:
    """The mark of `refines`: the abstract model class, its variant and parameters, and the mapping of variables, if the
    function does not return it."""

    model: Any
    variant: str | None
    parameters: tuple[tuple[str, Any], ...]
    named: tuple[tuple[str, str], ...] | None = None
    """Pairs of abstract and concrete variables; None: the function returns the mapping."""
    loc: Loc | None = field(default=None, compare=False)


class StateMark(Enum):
    """The marks of functions of the state that are neither rules nor properties, by the names of their decorators."""

    MEASURE = "measure"
    DERIVED = "derived"
    TERMINAL = "terminal"
    INITIALLY = "initially"
    CONSTRAINT = "constraint"


def put_mark(function: F, mark: Any) -> F:
    """`function`, marked. Raises `ModelError` if it already has a mark, or cannot have one."""
    loc = caller()
    line = loc.line if loc is not None else 0
    name = getattr(function, "__name__", getattr(getattr(function, "fget", None), "__name__", "it"))
    if not hasattr(function, "__dict__"):
        raise ModelError(
            f"{name} is decorated, but is not a plain method",
            loc=loc,
            remedy=f"write def {name}(self, s, ...) with the mark alone",
        )
    if MARK in vars(function):
        raise ModelError(
            f"{name!r} has two marks, lines {vars(function).get(_LINE, line)} and {line}: the second one replaces the first",
            loc=loc,
            remedy="write two methods with a mark each",
        )
    setattr(function, MARK, mark)
    setattr(function, _LINE, line)
    return function


def is_marker(value: Any) -> bool:
    """Whether an object is a marking decorator: `action`, the result of `action(...)`, `invariant`, `refines` ..."""
    if isinstance(value, _Marker):
        return True
    return getattr(value, "__module__", None) in _MARKERS and value not in (
        require,
        choose,
        enabled,
        happened,
        first,
        *OPERATORS,
    )


class Disabled(Exception):
    """Raised by `require` in native execution if the action is disabled."""


class NoPick(ModelError):
    """Raised by `choose` in native execution if no pick is left."""

    options: tuple[Any, ...] = ()
    """The values among which to choose."""


def require(condition: Any) -> None:
    """The action is enabled only where `condition` is true. Natively: raises `Disabled` where it is false."""
    if not condition:
        raise Disabled


@dataclass(slots=True)
class Picks:
    """The picks of one native execution, consumed in order."""

    given: tuple[Any, ...]
    used: int = field(default=0)
    labels: list[str] = field(default_factory=list)
    """The labels among them."""


PICKS: ContextVar[Picks | None] = ContextVar("streamproof_picks", default=None)
COPY: ContextVar[Callable[[Any], Any]] = ContextVar("streamproof_copy")
"""In native execution: a function that copies the state passed to a rule or property, for `enabled`."""
STILL: ContextVar[bool] = ContextVar("streamproof_still", default=False)
"""In native execution of a temporal property: the behaviour stays in one state, where its formula is a condition."""
FAILED: ContextVar[list[Exception] | None] = ContextVar("streamproof_failed", default=None)
"""In native execution: collects the errors of rules that `enabled` runs."""


def choose(domain: Iterable[Any] = (), /, **branches: Any) -> Any:
    """An arbitrary element of `domain`; the checker explores every choice. Natively: the next pick of the execution.

    ``choose(delivered=True, lost=False)`` labels the branches: it returns one of the values, and the pick is its label.
    """
    picks = PICKS.get()
    if branches:
        label = choose([*branches])
        if picks is not None:
            picks.labels.append(label)
        return branches[label]
    options = list(domain)
    if not options:
        raise Disabled
    if picks is None or picks.used >= len(picks.given):
        missing = NoPick(
            "choose(...) was reached with no pick given",
            loc=caller(),
            remedy="give one value per choose, in order: Native(model).step(state, action, ..., picks=(value, ...))",
        )
        missing.options = tuple(options)
        raise missing
    value = picks.given[picks.used]
    picks.used += 1
    if value not in options:
        raise Disabled
    scalar = bool | int | str  # True is equal to 1; a record of the state is equal to the tuple of its fields
    same = (o for o in options if o == value and (not isinstance(plain(o), scalar) or type(plain(o)) is type(value)))
    return next(same, value)


def enabled(rule: Callable[..., Any], state: Any, *args: Any) -> bool:
    """In a property: whether a rule, ``self.send``, is enabled in `state` with these arguments and some picks."""
    copy = COPY.get(None)
    if copy is None:
        raise ModelError("enabled(...) outside a property", loc=caller(), remedy="use it in a property of the model")
    return _possible(lambda: rule(copy(state), *args), ())


def _possible(run: Callable[[], Any], picks: tuple[Any, ...]) -> bool:
    token = PICKS.set(Picks(picks))
    try:
        run()
    except Disabled:
        return False
    except NoPick as missing:
        return any(_possible(run, (*picks, plain(option))) for option in missing.options)
    except EvaluationError as error:  # behind its guards
        _note(error)
    except StreamproofError:
        raise
    except Exception as error:  # the same, by an operation of Python
        if as_model_error(error) is None:
            raise
        _note(error)
    finally:
        PICKS.reset(token)
    return True


def _note(error: Exception) -> None:
    failed = FAILED.get()
    if failed is not None:
        failed.append(error)


NOTHING: Any = object()
"""The default of the `default` of `first`."""


def first(options: Iterable[Any], default: Any = NOTHING) -> Any:
    """The first of the options, or the default if there is none: ``first(c for c in range(3) if s.free[c])``."""
    for option in options:
        return option
    if default is NOTHING:
        raise IndexError("first() of an empty collection")
    return default


@overload
def action(function: F, /) -> F: ...
@overload
def action(
    *, fairness: Fairness | PartialFairness | Sequence[Fairness | PartialFairness] = ..., **domains: Any
) -> Callable[[F], F]: ...
def action(
    function: Any = None,
    /,
    *more: Any,
    fairness: Fairness | PartialFairness | Sequence[Fairness | PartialFairness] = Fairness.NONE,
    **domains: Any,
) -> Any:
    """Marks a method ``(self, s, ...)`` as a rule of the protocol.

    One keyword per further parameter gives its domain: the name of a model attribute (an int n means ``range(n)``), an
    iterable, or a function of the model. `fairness` is the fairness constraint on each instance, or a tuple of several;
    ``WEAK.where(condition)`` concerns some of its steps.
    """
    if more or (function is not None and not _markable(function)):
        raise ModelError(
            "@action takes the domains of its parameters by name",
            loc=caller(),
            remedy='write @action(c="channels") above def send(self, s, c)',
        )
    several = tuple(fairness) if isinstance(fairness, tuple | list) else (fairness,)
    marks = [_fair(one, tuple(domains.items())) for one in several]
    if function is not None:
        return put_mark(function, ActionMark(Fairness.NONE, ()))
    if len(marks) == 1:
        own = marks[0]
    else:
        twice = {(one.fairness, one.where, one.branches) for one in marks}
        if len(twice) < len(marks):
            raise ModelError("a fairness constraint is given twice", loc=caller(), remedy="leave out one of them")
        own = ActionMark(Fairness.NONE, tuple(domains.items()), several=tuple(marks))

    def mark(f: F) -> F:
        return put_mark(f, own)

    return mark


def _fair(fairness: Any, domains: tuple[tuple[str, Any], ...]) -> ActionMark:
    """The mark of a rule with one fairness constraint. Raises `ModelError` unless it is one."""
    part = fairness if isinstance(fairness, PartialFairness) else PartialFairness(fairness)
    if part.branches is not None and not (part.branches and all(isinstance(name, str) for name in part.branches)):
        raise ModelError(
            f"branch(...) takes labels of branches, got {', '.join(map(repr, part.branches)) or 'none'}",
            loc=caller(),
            remedy='write STRONG.branch("delivered"), with a label of choose(delivered=..., ...)',
        )
    if not isinstance(part.fairness, Fairness):
        raise ModelError(
            f"{part.fairness!r} is not a fairness constraint",
            loc=caller(),
            remedy="it is WEAK, STRONG or Fairness.NONE, without quotes",
        )
    return ActionMark(part.fairness, domains, part.condition, part.branches or ())


def _markable(function: Any) -> bool:
    return callable(function) or isinstance(function, staticmethod | classmethod | property)


class _Marker:
    """A decorator of properties and predicates, with or without parentheses."""

    def __init__(self, mark: Any) -> None:
        self._mark = mark

    @overload
    def __call__(self, function: F, /) -> F: ...
    @overload
    def __call__(self, /) -> Callable[[F], F]: ...
    def __call__(self, function: Any = None, /) -> Any:
        if function is not None and not _markable(function):
            raise ModelError(
                "this decorator takes no arguments", loc=caller(), remedy="write it above the method, alone"
            )
        if function is None:
            return self
        return put_mark(function, self._mark)


invariant = _Marker(PropertyMark(Kind.INVARIANT))
"""Marks ``(self, s) -> bool``: true in every reachable state."""
step = _Marker(PropertyMark(Kind.STEP))
"""Marks ``(self, s, t) -> bool``: true of every reachable step from `s` to `t`."""
reachable = _Marker(PropertyMark(Kind.REACHABLE))
"""Marks ``(self, s) -> bool``: true in at least one reachable state."""
temporal = _Marker(PropertyMark(Kind.TEMPORAL))
"""Marks ``(self, s)``: a formula of `always`, `eventually`, `leads_to`, `until`, true of every fair behaviour."""
lemma = _Marker(PropertyMark(Kind.INVARIANT, lemma=True))
"""Marks a lemma: an auxiliary invariant for the induction engine."""
measure = _Marker(StateMark.MEASURE)
"""Marks ``(self, s) -> int``: a quantity; `check` reports its largest value over the reachable states."""
derived = _Marker(StateMark.DERIVED)
"""Marks ``(self, s)``: a value that traces show beside the variables."""
terminal = _Marker(StateMark.TERMINAL)
"""Marks ``(self, s) -> bool``: terminal states; any other state without a successor is a deadlock."""
constraint = _Marker(StateMark.CONSTRAINT)
"""Marks ``(self, s) -> bool``: steps are followed from the states where it is true; or ``(self, s, t) -> bool``: the steps
that are followed."""
initially = _Marker(StateMark.INITIALLY)
"""Marks ``(self, s) -> bool``: the combinations of initial values that are initial states."""


def always(condition: Any, /) -> Any:
    """In a `temporal` property: `condition` is true from here on."""
    return condition if STILL.get() else _outside("always")


def eventually(condition: Any, /) -> Any:
    """In a `temporal` property: `condition` is true here or later."""
    return condition if STILL.get() else _outside("eventually")


def leads_to(condition: Any, consequence: Any, /) -> Any:
    """In a `temporal` property: whenever `condition` is true, `consequence` is true then or later."""
    return (not condition or consequence) if STILL.get() else _outside("leads_to")


def until(condition: Any, goal: Any, /) -> Any:
    """In a `temporal` property: `goal` is true here or later, and `condition` at every moment before that."""
    return goal if STILL.get() else _outside("until")


def happened(rule: Callable[..., Any], *args: Any) -> bool:
    """In ``always(eventually(...))`` or, behind ``not``, in ``eventually(always(...))``: a step of a rule that changes
    the state: of ``self.send``, with these arguments or with any."""
    return False if STILL.get() else bool(_outside("happened"))


def _outside(name: str) -> NoReturn:
    raise ModelError(
        f"{name}(...) speaks of a whole behaviour, not of one state",
        loc=caller(),
        remedy="use it in a @temporal method",
    )


OPERATORS: dict[Any, int] = {always: 1, eventually: 1, leads_to: 2, until: 2}
"""The operators with their number of arguments."""


def is_operator(function: Any) -> bool:
    """Whether `function` is one of the operators."""
    return function is always or function is eventually or function is leads_to or function is until
