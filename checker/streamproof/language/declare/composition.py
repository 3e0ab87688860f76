"""How an author composes machines: the parts of a model, what they share, what they do together, what is hidden.

def parts(self):
    return (
        Parts(source=Source(), lane=each(self.lanes, lambda c: Lane(room=2)), sink=part(Sink(), hide=["read"]))
        .share("pool", "lane.pool", "sink.pool")
        .together("put", "source.emit(c)", "lane[c].push()")
    )

A text such as ``flow.pool``, ``lane[0].room`` or ``lane[c].push(kind='A')`` is a `Pattern` of places in the composition.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from streamproof.base.errors import Loc, ModelError
from streamproof.base.records import dataclass, replace
from streamproof.language.declare.model import Model
from streamproof.language.declare.variables import Decl
from streamproof.language.free.symbolic_parameters import SymbolicInt, SymbolicRange, shown
from streamproof.language.lower.sources import caller
from streamproof.language.lower.terms import describe
from streamproof.system.model import Fairness
from streamproof.system.sorts import BoolSort, EnumSort, RangeSort, values

PARTS_LIMIT = 1_000
"""Maximum number of parts that one `each` creates."""


@dataclass(frozen=True, slots=True)
class Part:
    """One machine in a composition, with its renamings and hidden names."""

    model: Model
    renamed: tuple[tuple[str, str], ...]
    hidden: tuple[str, ...]
    loc: Loc | None


@dataclass(frozen=True, slots=True)
class Each:
    """One machine per key."""

    parts: tuple[tuple[Any, Part], ...]
    loc: Loc | None


@dataclass(frozen=True, slots=True)
class Shared:
    """Shared variables: their common name, and the places that share it."""

    name: str
    places: tuple[str, ...]
    loc: Loc | None


@dataclass(frozen=True, slots=True)
class Together:
    """A joint action: its name, its participants, and its fairness if not the strongest of theirs."""

    name: str
    participants: tuple[str, ...]
    fairness: Fairness | None
    doc: str
    loc: Loc | None


@dataclass(frozen=True, slots=True)
class Places:
    """Names of hidden or blocked actions or variables."""

    places: tuple[str, ...]
    loc: Loc | None


def part(model: Any, *, rename: Mapping[str, str] | None = None, hide: Iterable[str] = ()) -> Part:
    """A machine as a part of another: `rename` renames variables and actions, `hide` makes names inaccessible from outside.

    Raises `ModelError` if `machine` is not a model.
    """
    loc = caller()
    if isinstance(hide, str):
        hide = (hide,)
    return _part(model, loc, tuple((rename or {}).items()), tuple(hide))


def _part(model: Any, loc: Loc | None, renamed: tuple[tuple[str, str], ...] = (), hidden: tuple[str, ...] = ()) -> Part:
    if isinstance(model, Part):
        if renamed or hidden:
            return replace(model, renamed=(*model.renamed, *renamed), hidden=(*model.hidden, *hidden), loc=loc)
        return model
    if isinstance(model, Model):
        return Part(model, renamed, hidden, loc)
    if isinstance(model, type) and issubclass(model, Model):
        raise ModelError(f"{model.__name__} is a class", loc=loc, remedy=f"give a machine: {model.__name__}(...)")
    raise ModelError(
        f"{describe(model)} is not a machine of a composition", loc=loc, remedy="give a model: name=MyModel(size=3)"
    )


def each(domain: Any, make: Callable[[Any], Any]) -> Each:
    """One part, ``make(key)``, per key of `domain` (an int n for 0..n-1, a range, a list of names, a sort).

    Raises `ModelError` for an empty or unbounded domain.
    """
    loc = caller()
    if type(domain) is SymbolicInt or type(domain) is SymbolicRange:
        raise ModelError(
            f"an unbounded number of parts, {shown(domain)}, is not supported in proofs for every size"
            if type(domain) is SymbolicInt
            else "an unbounded number of parts is not supported in proofs for every size",
            loc=loc,
            remedy="give the parameter a value, or keep an Array in one machine",
        )
    if isinstance(domain, int) and not isinstance(domain, bool):
        domain = range(domain)
    if isinstance(domain, Decl) and isinstance(domain.sort, BoolSort | RangeSort | EnumSort):
        domain = list(values(domain.sort))
    if not isinstance(domain, range | list | tuple) or not all(isinstance(k, int | str) for k in domain):
        raise ModelError(
            f"{describe(domain)} is not a list of keys for parts", loc=loc, remedy="use a number, a range, or names"
        )
    keys = tuple(domain)
    if len(keys) > PARTS_LIMIT:
        raise ModelError(f"{len(keys):,} parts are too many", loc=loc, remedy=f"at most {PARTS_LIMIT:,}")
    if not keys or len({str(k) for k in keys}) < len(keys):  # keys are part of names, where 1 and "1" coincide
        raise ModelError(f"{list(keys)} are not keys for parts", loc=loc, remedy="at least one, none of them twice")
    if any(set(k) & set("()[]") for k in keys if isinstance(k, str)):
        raise ModelError(f"{list(keys)} are not names of parts", loc=loc, remedy="leave out brackets")
    return Each(tuple((k, _part(make(k), loc)) for k in keys), loc)


class Parts:
    """The machines that a model is composed of, by name. Each method returns a new value, so calls can be chained."""

    def __init__(self, **machines: Any) -> None:
        loc = caller()
        if not machines:
            raise ModelError(
                "Parts() has no parts", loc=loc, remedy="name them: Parts(left=Counter(), right=Counter())"
            )
        self.machines: Mapping[str, Part | Each] = {
            name: given if isinstance(given, Each) else _part(given, loc) for name, given in machines.items()
        }
        for name in machines:
            _name(name, "part", loc)
        self.shared: tuple[Shared, ...] = ()
        self.joint: tuple[Together, ...] = ()
        self.hidden: tuple[Places, ...] = ()
        self.blocked: tuple[Places, ...] = ()
        self.loc = loc

    def _with(self, **more: Any) -> Parts:
        made = Parts.__new__(Parts)
        made.__dict__ = {**self.__dict__, **more}
        return made

    def instead(self, **machines: Any) -> Parts:
        """The composition with some machines replaced."""
        loc = caller()
        for name in machines:
            if name not in self.machines:
                known = ", ".join(self.machines)
                raise ModelError(f"there is no part {name!r} to replace", loc=loc, remedy=f"the parts: {known}")
        given = {name: one if isinstance(one, Each) else _part(one, loc) for name, one in machines.items()}
        return self._with(machines={**self.machines, **given})

    def share(self, name: str, *places: str) -> Parts:
        """Identifies the variables at `places`, as in ``"lane[0].pool"`` or ``"lane.pool"`` (all lanes), under the name
        `name`.

        A variable of that name declared by the composite is identified with them.
        """
        loc = caller()
        _name(name, "shared variable", loc)
        return self._with(shared=(*self.shared, Shared(name, _texts(places, "share", loc), loc)))

    def together(self, name: str, *participants: str, fairness: Fairness | None = None, doc: str = "") -> Parts:
        """A joint action `name`: one simultaneous step of every participant, as in ``"lane[c].push()"``.

        Names in brackets and parentheses become parameters of the action; participants agree on common parameters.
        Participants take these steps in joint actions only.
        """
        loc = caller()
        _name(name, "joint action", loc)
        if fairness is not None and not isinstance(fairness, Fairness):
            raise ModelError(
                f"{fairness!r} is not a fairness constraint",
                loc=loc,
                remedy="it is WEAK, STRONG or Fairness.NONE, without quotes",
            )
        texts = _texts(participants, "together", loc)
        return self._with(joint=(*self.joint, Together(name, texts, fairness, doc, loc)))

    def hide(self, *places: str) -> Parts:
        """Hides actions and variables from every composition that contains this composite."""
        loc = caller()
        return self._with(hidden=(*self.hidden, Places(_texts(places, "hide", loc), loc)))

    def block(self, *places: str) -> Parts:
        """Blocks actions of parts: they occur only in joint actions, or when a rule of the composite calls them.

        A blocked joint action of this composite never occurs.
        """
        loc = caller()
        return self._with(blocked=(*self.blocked, Places(_texts(places, "block", loc), loc)))


def _name(name: Any, what: str, loc: Loc | None) -> None:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise ModelError(f"{name!r} cannot be the name of a {what}", loc=loc, remedy="use a Python name like 'lane'")


def _texts(given: tuple[Any, ...], method: str, loc: Loc | None) -> tuple[str, ...]:
    if not given or not all(isinstance(text, str) for text in given):
        raise ModelError(f"{method}(...) takes names", loc=loc, remedy=f"write .{method}(..., 'part.name')")
    return given


@dataclass(frozen=True, slots=True)
class Given:
    """A constant index: ``lane[0]``."""

    value: Any


@dataclass(frozen=True, slots=True)
class Named:
    """A parameter of the joint action: ``lane[c]``."""

    name: str


@dataclass(frozen=True, slots=True)
class All:
    """All indices at once: ``lane[:]``."""


Index: TypeAlias = Given | Named | All | None


@dataclass(frozen=True, slots=True)
class Segment:
    """One name of a dotted path, with its index."""

    name: str
    index: Index


@dataclass(frozen=True, slots=True)
class Pattern:
    """A place: its path, and for actions the arguments in parentheses (None: no parentheses)."""

    text: str
    way: tuple[Segment, ...]
    name: str
    args: tuple[tuple[str | None, Given | Named], ...] | None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters in the pattern."""
        found = [s.index.name for s in self.way if isinstance(s.index, Named)]
        return (*found, *(value.name for _, value in self.args or () if isinstance(value, Named)))


def parsed(text: str, loc: Loc | None) -> Pattern:
    """Parses a place. Raises `ModelError` for invalid text."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise _unreadable(text, loc) from None
    args: tuple[tuple[str | None, Given | Named], ...] | None = None
    if isinstance(node, ast.Call):
        by_position = tuple((None, _value(a, text, loc)) for a in node.args)
        args = (*by_position, *((k.arg, _value(k.value, text, loc)) for k in node.keywords))
        node = node.func
    if isinstance(node, ast.Name):
        return Pattern(text, (), node.id, args)
    if not isinstance(node, ast.Attribute):
        raise _unreadable(text, loc)
    return Pattern(text, _way(node.value, text, loc), node.attr, args)


def _way(node: ast.expr, text: str, loc: Loc | None) -> tuple[Segment, ...]:
    index: Index = None
    if isinstance(node, ast.Subscript):
        whole = isinstance(node.slice, ast.Slice) and node.slice.lower is node.slice.upper is node.slice.step is None
        index = All() if whole else _value(node.slice, text, loc)
        node = node.value
    match node:
        case ast.Name(id=name):
            return (Segment(name, index),)
        case ast.Attribute(value=inner, attr=name):
            return (*_way(inner, text, loc), Segment(name, index))
    raise _unreadable(text, loc)


def _value(node: ast.expr, text: str, loc: Loc | None) -> Given | Named:
    if isinstance(node, ast.Name):
        return Named(node.id)
    try:
        return Given(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, MemoryError):
        raise _unreadable(text, loc) from None


def _unreadable(text: str, loc: Loc | None) -> ModelError:
    return ModelError(
        f"{text!r} names nothing in a composition",
        loc=loc,
        remedy="write 'part.name', 'part[0].name', 'part[i].action(c, kind=2)' or 'part[:].action()'",
    )
