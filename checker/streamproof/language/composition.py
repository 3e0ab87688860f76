"""How an author composes machines: the parts of a model, what they share, what they do together, what is hidden.

def parts(self):
    return (
        Parts(source=Source(), lane=each(self.lanes, lambda c: Lane(room=2)), sink=part(Sink(), hide=["read"]))
        .share("pool", "lane.pool", "sink.pool")
        .together("put", "source.emit(c)", "lane[c].push()")
    )
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from streamproof.language.amounts import Amount, Indices, shown
from streamproof.language.declare import Decl
from streamproof.language.model import Model
from streamproof.language.sources import caller
from streamproof.language.terms import describe
from streamproof.system.errors import Loc, ModelError
from streamproof.system.model import Fairness
from streamproof.system.records import dataclass, replace
from streamproof.system.sorts import BoolSort, EnumSort, RangeSort, values

PARTS_LIMIT = 1_000
"""The most parts that one `each` makes."""


@dataclass(frozen=True, slots=True)
class Part:
    """One machine in a composition, its names for the others changed or hidden."""

    model: Model
    renamed: tuple[tuple[str, str], ...]
    hidden: tuple[str, ...]
    loc: Loc | None


@dataclass(frozen=True, slots=True)
class Each:
    """One machine for every key."""

    parts: tuple[tuple[Any, Part], ...]
    loc: Loc | None


@dataclass(frozen=True, slots=True)
class Shared:
    """Variables that are one: the name it has, and the places where it is found."""

    name: str
    places: tuple[str, ...]
    loc: Loc | None


@dataclass(frozen=True, slots=True)
class Together:
    """Actions that are one: the name it has, what takes part, and the fairness it is owed if not the strongest of theirs."""

    name: str
    participants: tuple[str, ...]
    fairness: Fairness | None
    doc: str
    loc: Loc | None


@dataclass(frozen=True, slots=True)
class Places:
    """Names of actions or variables that are hidden or blocked."""

    places: tuple[str, ...]
    loc: Loc | None


def part(model: Any, *, rename: Mapping[str, str] | None = None, hide: Iterable[str] = ()) -> Part:
    """A machine as a part of another: `rename` gives variables and actions other names, `hide` keeps some to itself.

    Raises `ModelError` for what is no machine.
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
        f"{describe(model)} is no part of a composition", loc=loc, remedy="give a model: name=MyModel(size=3)"
    )


def each(domain: Any, make: Callable[[Any], Any]) -> Each:
    """One part for every key of `domain` (an int n for 0..n-1, a range, a list of names, a sort): ``make(key)``.

    Raises `ModelError` for a domain without keys, or with any number of them.
    """
    loc = caller()
    if type(domain) is Amount or type(domain) is Indices:
        raise ModelError(
            f"{shown(domain)} parts, which is any number, are outside what can be proved for every size"
            if type(domain) is Amount
            else "any number of parts is outside what can be proved for every size",
            loc=loc,
            remedy="give the parameter a value, or keep an Array in one machine",
        )
    if isinstance(domain, int) and not isinstance(domain, bool):
        domain = range(domain)
    if isinstance(domain, Decl) and isinstance(domain.sort, BoolSort | RangeSort | EnumSort):
        domain = list(values(domain.sort))
    if not isinstance(domain, range | list | tuple) or not all(isinstance(k, int | str) for k in domain):
        raise ModelError(
            f"{describe(domain)} is no list of keys for parts", loc=loc, remedy="use a number, a range, or names"
        )
    keys = tuple(domain)
    if len(keys) > PARTS_LIMIT:
        raise ModelError(f"{len(keys):,} parts are too many", loc=loc, remedy=f"at most {PARTS_LIMIT:,}")
    if not keys or len({str(k) for k in keys}) < len(keys):  # parts are called by them: 1 and "1" are one name
        raise ModelError(f"{list(keys)} are no keys for parts", loc=loc, remedy="at least one, none of them twice")
    if any(set(k) & set("()[]") for k in keys if isinstance(k, str)):
        raise ModelError(f"{list(keys)} are no names of parts", loc=loc, remedy="leave out brackets")
    return Each(tuple((k, _part(make(k), loc)) for k in keys), loc)


class Parts:
    """The machines that a model is composed of, by name. Its methods give a new value each, and can be chained."""

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
        """Other machines in the places of some; all else is as it was."""
        loc = caller()
        for name in machines:
            if name not in self.machines:
                known = ", ".join(self.machines)
                raise ModelError(f"there is no part {name!r} to replace", loc=loc, remedy=f"the parts: {known}")
        given = {name: one if isinstance(one, Each) else _part(one, loc) for name, one in machines.items()}
        return self._with(machines={**self.machines, **given})

    def share(self, name: str, *places: str) -> Parts:
        """The variables at `places`, ``"lane[0].pool"``, or ``"lane.pool"`` for all lanes, are one, called `name`.

        If the composite declares a variable of that name itself, it is that one.
        """
        loc = caller()
        _name(name, "shared variable", loc)
        return self._with(shared=(*self.shared, Shared(name, _texts(places, "share", loc), loc)))

    def together(self, name: str, *participants: str, fairness: Fairness | None = None, doc: str = "") -> Parts:
        """One step of every participant at once, ``"lane[c].push()"``, as an action called `name`.

        Names in brackets and parentheses become parameters of the action; participants agree in those they have in
        common. A participant takes these steps in no other way, but for other joint actions.
        """
        loc = caller()
        _name(name, "joint action", loc)
        if fairness is not None and not isinstance(fairness, Fairness):
            raise ModelError(
                f"{fairness!r} is no fairness", loc=loc, remedy="it is NONE, WEAK or STRONG, without quotes"
            )
        texts = _texts(participants, "together", loc)
        return self._with(joint=(*self.joint, Together(name, texts, fairness, doc, loc)))

    def hide(self, *places: str) -> Parts:
        """Actions and variables that whatever this composite is a part of cannot name."""
        loc = caller()
        return self._with(hidden=(*self.hidden, Places(_texts(places, "hide", loc), loc)))

    def block(self, *places: str) -> Parts:
        """Actions that parts do not take by themselves: only in joint actions, or called by a rule of the composite.

        A joint action of this composite, too: then it never happens."""
        loc = caller()
        return self._with(blocked=(*self.blocked, Places(_texts(places, "block", loc), loc)))


def _name(name: Any, what: str, loc: Loc | None) -> None:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise ModelError(f"{name!r} cannot be the name of a {what}", loc=loc, remedy="use a Python name like 'lane'")


def _texts(given: tuple[Any, ...], method: str, loc: Loc | None) -> tuple[str, ...]:
    if not given or not all(isinstance(text, str) for text in given):
        raise ModelError(
            f"{method}(...) wants names of what it is about", loc=loc, remedy=f"write .{method}(..., 'part.name')"
        )
    return given
