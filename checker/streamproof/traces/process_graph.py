"""The graph of the processes and channels of a system, and where each part of a state is in it.

Nothing is declared, and no name of a variable has a meaning. A vertex is an index of an array that a parameter of an action
is (see `traces.processes`), an end of a link, or a part of a composition. A link is an index of an array that joins two
others: a tuple of them, or a text such as ``a>b``. A link of vertices is a channel between them; a link of a vertex and a
channel is at that channel. Further edges follow from the rules: from the process of a step to what it pushes onto, from a
queue to the process of a step that pops, and to the few vertices that a process writes; if there are none, from the few that
it reads.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from streamproof.base.records import dataclass
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Instance, State, System
from streamproof.system.sorts import (
    ArraySort,
    BagSort,
    EnumSort,
    KeySort,
    OptionSort,
    QueueSort,
    RecordSort,
    Sort,
    UnionSort,
    Value,
    show,
    values,
)
from streamproof.traces.places import Place, Seen, leaves
from streamproof.traces.processes import Processes

MOST_NAMES = 400
"""Largest number of indices that are compared with each other for links."""
MOST_INSTANCES = 20_000
"""Largest number of ground actions whose rules are read for edges."""
MOST_OTHERS = 2
"""Largest number of vertices that a process writes, or reads, for edges that nothing else gives."""
_Pairs = dict[tuple[str, str], None]
_BETWEEN = re.compile(r"[^\w\s]+")
_BRACKETS = re.compile(r"\[([^\[\]]+)\]")


@dataclass(frozen=True, slots=True)
class SiteEdge:
    """From one site to another one, by number; not `directed`: they belong together."""

    source: int
    target: int
    directed: bool = True


class ProcessGraph:
    """The graph of a system. A site is a vertex or a channel."""

    def __init__(self, system: System) -> None:
        self.system = system
        self._processes = Processes(system)
        self._sorts = {v.name: v.sort for v in system.variables}

    @cached_property
    def sites(self) -> tuple[str, ...]:
        """The names of all sites, vertices first."""
        ends = [end for pair in self._channels.values() for end in pair]
        found = dict.fromkeys(n for n in [*self._names, *ends] if n in ends)
        found |= dict.fromkeys(s for v in self.system.variables for s in self._of_variable(v.name))
        found |= dict.fromkeys(s for i in self._read for s in self._of_step(i))
        vertices = [n for n in found if n not in self._channels]
        return (*vertices, *self._channels)

    @cached_property
    def channels(self) -> frozenset[str]:
        """The sites that are links of two vertices."""
        return frozenset(self._channels)

    @cached_property
    def edges(self) -> tuple[SiteEdge, ...]:
        """The edges, without repetition."""
        number = {name: at for at, name in enumerate(self.sites)}
        found: dict[tuple[int, int], SiteEdge] = {}

        def join(source: str, target: str, *, directed: bool = True) -> None:
            if source != target and source in number and target in number:
                pair = number[source], number[target]
                found.setdefault(pair, SiteEdge(*pair, directed))

        for name, (start, end) in self._channels.items():
            for source, target in ((start, name), (name, end)):
                join(source, target, directed=self._alike(start, end))
        near = {frozenset(pair) for pair in self._channels.values()}
        moved, written, read = self._used()
        for pairs in (moved, _narrow(written, 0)):
            new = [pair for pair in pairs if frozenset(pair) not in near]
            for pair in new:
                join(*pair)
            near |= {frozenset(pair) for pair in new}
        for pair in () if found else _narrow(read, 1):
            join(*pair)
        return tuple(found.values())

    def _used(self) -> tuple[_Pairs, _Pairs, _Pairs]:
        """From processes to the queues that they push onto, and from queues that they pop; from processes to vertices that
        they write in another way, and from vertices that they read."""
        moved, written, read = _Pairs(), _Pairs(), _Pairs()
        for instance in self._read:
            own = [s for s in self._of_step(instance) if s not in self._channels]
            for kind, site in self._effects(instance):
                for process in own if site not in self._channels else ():
                    if kind is e.Pop:
                        moved[site, process] = None
                    elif kind is e.Push:
                        moved[process, site] = None
                    elif len(own) == 1:
                        written[process, site] = None
            if len(own) == 1:
                read |= {(site, own[0]): None for site in self._looked_up(instance)}
        return moved, written, read

    def at(self, state: State) -> Iterator[tuple[str | None, str, Place, Seen]]:
        """Every leaf of a state: its site, None for one of the whole system, its name there, its place and value."""
        for place, seen in leaves(self.system, state):
            sites = list(self._sites(place))
            if not sites:
                yield None, seen.text, place, seen
                continue
            joined = [self._joining(a, b) for (a, _) in sites for (b, _) in sites if a != b]
            site, key = next(((s, "") for s in joined if s), sites[0])
            text = seen.text.removeprefix(f"{key}.") if key else seen.text
            yield site, text.replace(f"[{key}]", "", 1) if key else text, place, seen

    # --- names and links

    @cached_property
    def _names(self) -> dict[str, EnumSort]:
        """The indices with names, of all arrays of the system, with the first sort that has them."""
        found: dict[str, EnumSort] = {}
        for sort in self._sorts.values():
            for index in _indices(sort):
                if isinstance(index, EnumSort):
                    for member in index.members:
                        found.setdefault(member, index)
        return found

    @cached_property
    def _links(self) -> dict[str, tuple[str, str]]:
        """What each index that is a link joins."""
        if len(self._names) > MOST_NAMES:
            return {}
        return {name: pair for name, sort in self._names.items() if (pair := self._joined(name, sort))}

    def _joined(self, name: str, sort: EnumSort) -> tuple[str, str] | None:
        key = sort.keys[sort.places[name]] if isinstance(sort, KeySort) else name
        if isinstance(key, tuple):
            return (key[0], key[1]) if len(key) == 2 and all(type(k) is str and k in self._names for k in key) else None
        for start in self._names:
            for end in self._names if name.startswith(start) else ():
                if name.endswith(end) and _BETWEEN.fullmatch(name[len(start) : -len(end) or None]):
                    return start, end
        return None

    @cached_property
    def _channels(self) -> dict[str, tuple[str, str]]:
        """The links of two vertices."""
        return {n: pair for n, pair in self._links.items() if not any(end in self._links for end in pair)}

    def _alike(self, start: str, end: str) -> bool:
        """Whether one array has both as indices: then a link leads from the first to the second."""
        return start in self._names[end].places or end in self._names[start].places

    def _joining(self, a: str, b: str) -> str | None:
        return next((name for name, pair in self._channels.items() if pair in ((a, b), (b, a))), None)

    def _home(self, name: str) -> str | None:
        """The site of a name: itself, or the channel at which this link is; None if it is no index."""
        if name in self._channels or name not in self._links:
            return name if name in self._channels else None
        return next((end for end in self._links[name] if end in self._channels), None)

    # --- places

    def _sites(self, place: Place) -> Iterator[tuple[str, str]]:
        """The sites of a place, with the text in brackets, or of the part, that names them."""
        part = self._part(place.variable)
        if part is not None:
            yield part
        sort: Sort = self._sorts[place.variable]
        for level, key in enumerate(place.keys):
            while isinstance(sort, OptionSort):
                sort = sort.element
            if isinstance(sort, ArraySort) and not isinstance(sort, BagSort):
                site = self._node(place.variable, level, sort, key)
                if site is not None:
                    yield site, str(key) if site == str(key) or not isinstance(key, str) else ""
                sort = sort.element
            elif isinstance(sort, RecordSort):
                sort = sort.fields[sort.index(key)][1]
            else:
                return
        if not place.keys and place.variable in self._shared:
            yield place.variable, ""

    def _node(self, variable: str, level: int, sort: ArraySort, key: Value) -> str | None:
        if isinstance(sort.index, EnumSort):
            home = self._home(key)
            if home is not None:
                return home
            if key in self._ends:
                return str(key)
        kind = self._processes.indexed.get((variable, level))
        return None if kind is None else self._processes.named(kind, key, show(sort.index, key))

    @cached_property
    def _ends(self) -> frozenset[str]:
        return frozenset(end for pair in self._channels.values() for end in pair)

    def _part(self, variable: str) -> tuple[str, str] | None:
        """The site of a variable of a part of a composition, and the part."""
        part = variable.rpartition(".")[0]
        if (site := self._named(part)) is not None:
            return site, part
        return (part, part) if part in self._parts else None

    @cached_property
    def _parts(self) -> frozenset[str]:
        """The parts without arrays of processes, which are processes themselves."""
        own = {name for i in self._read for name in self._processes.of(i) if name not in self._names}
        inner = {v.rpartition(".")[0] for v, _ in self._processes.indexed}
        return frozenset(own - inner)

    def _of_variable(self, name: str) -> Iterator[str]:
        """The vertices at which parts of a variable are."""
        if (part := self._part(name)) is not None:
            yield part[0]
        if name in self._shared:
            yield name
        sort, level = self._sorts[name], 0
        while isinstance(sort, ArraySort) and not isinstance(sort, BagSort):
            keys = sort.index.members if isinstance(sort.index, EnumSort) else ()
            for key in keys if keys or (name, level) not in self._processes.indexed else values(sort.index):
                if (site := self._node(name, level, sort, key)) is not None:
                    yield site
            sort, level = sort.element, level + 1

    @cached_property
    def _shared(self) -> frozenset[str]:
        """The queues of the whole system that steps of processes push onto or pop."""
        queues = {n for n, sort in self._sorts.items() if isinstance(sort, QueueSort) and self._part(n) is None}
        moving = (i for i in self._read if self._processes.of(i))
        return frozenset(n for i in moving for n, term in i.updates if n in queues and _moves(term))

    # --- rules

    def _of_step(self, instance: Instance) -> list[str]:
        """The sites of the processes of a step."""
        return list(dict.fromkeys(self._named(name) or name for name in self._processes.of(instance)))

    def _named(self, name: str) -> str | None:
        """The site of the name of an index, or of a part with an index in brackets."""
        keys = [name, *_BRACKETS.findall(name)]
        return next((self._home(k) or k for k in keys if self._home(k) is not None or k in self._ends), None)

    @cached_property
    def _read(self) -> tuple[Instance, ...]:
        """The instances whose rules are read."""
        every = self.system.instances
        return tuple(every) if len(every) <= MOST_INSTANCES else ()

    def _effects(self, instance: Instance) -> Iterator[tuple[type[Expr] | None, str]]:
        """The sites that an instance pushes onto, pops, or writes in another way."""
        for name, update in instance.updates:
            own = [s for s, _ in self._sites(Place(name))]
            terms = [(own[0], update)] if own else []
            if not own:
                stores = (t for t in e.subterms(update) if isinstance(t, e.Store))
                terms = [(site, t.value) for t in stores if (site := self._element(name, t)) is not None]
            for site, term in terms:
                yield from ((kind, site) for kind in (_moves(term) or (None,)))

    def _looked_up(self, instance: Instance) -> Iterator[str]:
        """The vertices of which an instance reads an element."""
        for term in e.subterms(*(c.expr for c in instance.guard), *(update for _, update in instance.updates)):
            if isinstance(term, e.Select) and isinstance(term.array, e.Var):
                site = self._element(term.array.name, term)
                if site is not None:
                    yield site

    def _element(self, name: str, term: e.Select | e.Store) -> str | None:
        """The site of the element of an array in a variable."""
        level, sort, index = _level(term.array), term.array.sort, term.index
        if level is None or not isinstance(index, e.Const) or not isinstance(sort, ArraySort):
            return None
        return None if isinstance(sort, BagSort) else self._node(name, level, sort, index.value)


def _narrow(pairs: _Pairs, side: int) -> Iterator[tuple[str, str]]:
    """The pairs of sites that have few others; one that has many is no part of a topology."""
    count = Counter(pair[side] for pair in pairs if pair[0] != pair[1])
    return (pair for pair in pairs if count[pair[side]] <= MOST_OTHERS)


def _moves(term: Expr) -> tuple[type[Expr], ...]:
    """Whether a term pushes, pops, or both."""
    return tuple(dict.fromkeys(type(t) for t in e.subterms(term) if isinstance(t, e.Push | e.Pop)))


def _level(array: Expr) -> int | None:
    """The number of indices before those of an array in a state; None for one that is not read from a variable."""
    level = 0
    while not isinstance(array, e.Var):
        match array:
            case e.Select(array=below):
                level, array = level + 1, below
            case e.Store(array=below) | e.Ite(then=below):
                array = below
            case _:
                return None
    return level


def _indices(sort: Sort) -> Iterator[Sort]:
    """The sorts of the indices of all arrays in a sort."""
    match sort:
        case ArraySort(index, element) if not isinstance(sort, BagSort):
            yield index
            yield from _indices(element)
        case OptionSort(element):
            yield from _indices(element)
        case RecordSort(fields):
            for _, inner in fields:
                yield from _indices(inner)
        case UnionSort(cases):
            for _, record in cases:
                yield from _indices(record)
        case _:
            return
