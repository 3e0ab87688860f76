"""Random small systems of interchangeable processes, for tests of reductions and of whatever handles symmetric sorts.

Every rule is drawn once, for a process or for a pair of them, and spelt out for all; conditions on all processes quantify
over them. So exchanging two names maps the system onto itself, unless a `favourite` is asked for: then some conditions
name one process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import permutations, product
from random import Random

from streamproof.base.records import dataclass
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import Action, Check, Conjunct, Fairness, Instance, Kind, Property, System, Variable
from streamproof.system.sorts import (
    ArraySort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    UnionSort,
    Value,
    values,
)

PHASE = EnumSort(("A", "B", "C"))
COUNT = RangeSort(0, 2)
KINDS = (Kind.INVARIANT, Kind.STEP, Kind.REACHABLE, Kind.DEADLOCK)


def symmetric_system(random: Random, *, favourite: bool = False, picking: bool = False) -> System:
    """A system drawn with `random` that is symmetric in its processes, unless one of them is a `favourite`.

    With `picking`, it has a rule that picks a phase for each process.
    """
    return _Draw(random, favourite, picking).system()


@dataclass(slots=True)
class _Draw:
    random: Random
    favourite: bool
    picking: bool = False
    processes: EnumSort = field(init=False)
    variables: tuple[Variable, ...] = ()
    stepping: bool = False
    acting: bool = False
    """Whether processes may be read where there need not be one; then `needed` gets the condition that there is."""
    needed: list[Expr] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = ("p1", "p2", "p3")[: self.random.choice((2, 3, 3))]
        self.processes = EnumSort(names, symmetric=True)

    def system(self) -> System:
        self.variables = self._variables()
        actions = tuple(self._action(f"act{k}") for k in range(self.random.randint(2, 4)))
        if self.picking:
            actions += (self._picking("pick"),)
        kinds = self.random.choices(KINDS, k=self.random.randint(1, 5))
        properties = tuple(self._property(kind, k) for k, kind in enumerate(kinds))
        initially = self._everywhere(()) if self.random.randrange(6) == 0 else b.TRUE
        terminal = self._everywhere(()) if self.random.randrange(2) else None
        return System("symmetric", self.variables, actions, properties, initially=initially, terminal=terminal)

    def _variables(self) -> tuple[Variable, ...]:
        process = self.processes
        letter = UnionSort((("Stop", RecordSort(())), ("Sent", RecordSort((("by", process),)))))
        sorts: tuple[Sort, ...] = (
            ArraySort(process, PHASE),
            ArraySort(process, COUNT),
            ArraySort(process, OptionSort(process)),
            SetSort(process),
            OptionSort(process),
            QueueSort(process, 2),
            COUNT,
            PHASE,
            letter,
            ArraySort(process, letter),
        )
        chosen = [ArraySort(process, PHASE), *self.random.sample(sorts[1:], self.random.randint(1, 2))]
        found = []
        for number, sort in enumerate(chosen):
            first = next(values(sort))
            found.append(Variable(f"v{number}", sort, (first,)))
        if self.random.randrange(3) == 0:  # any process starts as the holder
            found.append(Variable("holder", process, tuple(values(process))))
        return tuple(found)

    # --- rules: drawn with stand-ins for the processes, which are then spelt out

    def _action(self, name: str) -> Action:
        anyone = any(
            not isinstance(v.sort, ArraySort | SetSort) and v.sort not in (COUNT, PHASE) for v in self.variables
        )
        arity = self.random.choice((0, 1, 1, 1, 2) if anyone else (1, 1, 1, 2))
        state = self.random.getstate()
        instances = []
        for chosen in permutations(self.processes.members, arity):
            self.random.setstate(state)  # every process draws the same rule
            instances.append(self._instance(name, chosen))
        return Action(name, ("p", "q")[:arity], Fairness.NONE, tuple(instances))

    def _instance(self, name: str, chosen: Sequence[str]) -> Instance:
        guard = tuple(Conjunct(self._truth(chosen, 1), f"guard {k}", None) for k in range(self.random.randint(1, 2)))
        updates, checks = [], []
        self.acting, self.needed = True, []
        for v in self.random.sample(self.variables, self.random.randint(1, 2)):
            term, faults = self._moved(v, chosen)
            updates.append((v.name, term))
            checks += faults
        self.acting = False
        args = tuple(zip(("p", "q"), chosen, strict=False))
        there = tuple(Conjunct(condition, "someone is there", None) for condition in self.needed)
        return Instance(name, args, (), (*guard, *there), tuple(updates), (), tuple(checks))

    def _picking(self, name: str) -> Action:
        """A rule that picks a phase for each process, and gives it to those of which something is true."""
        members, phases = self.processes.members, self.variables[0]
        old = b.var(phases.name, phases.sort)
        most, kept, state = (
            self.random.randint(1, 3),
            self.favourite and self.random.randrange(3) > 0,
            self.random.getstate(),
        )
        instances = []
        for picked in product(("A", "B"), repeat=len(members)):
            if picked.count("A") > most:
                continue
            self.random.setstate(state)
            guard = self._everywhere(())
            each, parts = self.random.getstate(), []
            for number, (process, phase) in enumerate(zip(members, picked, strict=True)):
                self.random.setstate(each)  # of every process the same
                now = b.select(old, b.const(self.processes, process))
                there = b.FALSE if kept and not number else self._truth((process,), 1)
                parts.append(b.ite(there, b.const(PHASE, phase), now))
            assert isinstance(phases.sort, ArraySort)
            updates = ((phases.name, b.make_array(phases.sort, parts)),)
            picks = tuple((f"choice {number}", phase) for number, phase in enumerate(picked))
            instances.append(Instance(name, (), picks, (Conjunct(guard, "guard", None),), updates, (), ()))
        return Action(name, (), Fairness.NONE, tuple(instances))

    def _moved(self, v: Variable, chosen: Sequence[str]) -> tuple[Expr, list[Check]]:
        term = b.var(v.name, v.sort)
        match v.sort:
            case ArraySort(_, element):
                at = self._process(chosen)
                new, checks = self._value(element, b.select(term, at), chosen)
                return b.store(term, at, new), checks
            case SetSort():
                return self.random.choice((b.insert, b.remove))(term, self._process(chosen)), []
            case QueueSort():
                return (b.pop(term) if self.random.randrange(2) else b.push(term, self._process(chosen))), []
            case _:
                return self._value(v.sort, term, chosen)

    def _value(self, sort: Sort, now: Expr, chosen: Sequence[str]) -> tuple[Expr, list[Check]]:
        match sort:
            case RangeSort():
                more = b.add(now, b.num(1))
                if self.random.randrange(8) == 0:
                    return more, [Check(b.not_(b.in_domain(more, sort)), "out of range", None)]
                return b.ite(b.less(now, b.num(sort.hi)), more, b.num(sort.lo)), []
            case OptionSort():
                none = b.const(sort, None)
                return (none if self.random.randrange(3) == 0 else b.some(self._process(chosen))), []
            case UnionSort(cases):
                fields = cases[self.random.randrange(2)][1]
                name = "Sent" if fields.fields else "Stop"
                return b.make_case(
                    sort, name, b.make_record(fields, [self._process(chosen) for _ in fields.fields])
                ), []
            case EnumSort() if sort == self.processes:
                return self._process(chosen), []
            case _:
                return b.const(sort, self._literal(sort)), []

    def _literal(self, sort: Sort) -> Value:
        return self.random.choice(tuple(values(sort)))

    def _process(self, chosen: Sequence[str]) -> Expr:
        """A process: a parameter, one that a variable holds, the first in a line, or the favourite."""
        if self.favourite and self.random.randrange(3) == 0:
            return b.const(self.processes, self.processes.members[0])
        named = [b.const(self.processes, p) for p in chosen]
        held = [self._read(v) for v in self.variables if v.sort == self.processes]
        places = (
            [v for v in self.variables if isinstance(v.sort, QueueSort | OptionSort | UnionSort)] if self.acting else []
        )
        pick = self.random.randrange(2 * len(named) + len(held) + len(places))
        if pick < 2 * len(named):
            return named[pick // 2]
        if pick < 2 * len(named) + len(held):
            return held[pick - 2 * len(named)]
        whole = self._read(places[pick - 2 * len(named) - len(held)])
        if isinstance(whole.sort, QueueSort):
            self.needed.append(b.less(b.num(0), b.length(whole)))
            return b.peek(whole, b.num(0))
        if isinstance(whole.sort, UnionSort):
            self.needed.append(b.is_case(whole, "Sent"))
            return b.field(b.payload(whole, "Sent"), "by")
        self.needed.append(b.not_(b.is_none(whole)))
        return b.unwrap(whole)

    # --- conditions

    def _read(self, v: Variable) -> Expr:
        return (b.next_ if self.stepping and self.random.randrange(2) else b.var)(v.name, v.sort)

    def _truth(self, chosen: Sequence[str], depth: int) -> Expr:
        match self.random.randrange(8):
            case 0 if depth:
                return b.not_(self._truth(chosen, depth - 1))
            case 1 if depth:
                return b.and_(self._truth(chosen, depth - 1) for _ in range(2))
            case 2 if depth:
                return b.or_(self._truth(chosen, depth - 1) for _ in range(2))
            case 3:
                return self._everywhere(chosen)
            case _:
                return self._fact(chosen)

    def _everywhere(self, chosen: Sequence[str]) -> Expr:
        """That all processes, or some, are so."""
        join = self.random.choice((b.and_, b.or_))
        state = self.random.getstate()
        parts = []
        for name in self.processes.members:
            self.random.setstate(state)
            parts.append(self._fact((*chosen, name)))
        return join(parts)

    def _fact(self, chosen: Sequence[str]) -> Expr:
        v = self.random.choice(self.variables)
        term = self._read(v)
        sort: Sort = v.sort
        if isinstance(sort, ArraySort) and chosen:
            term, sort = b.select(term, b.const(self.processes, self.random.choice(chosen))), sort.element
        match sort:
            case ArraySort(index, element):
                literal = b.const(element, self._literal(element)) if element in (PHASE, COUNT) else None
                parts = [b.select(term, b.const(index, key)) for key in values(index)]
                if isinstance(element, UnionSort):
                    return self.random.choice((b.and_, b.or_))(b.is_case(part, "Sent") for part in parts)
                same = [b.is_none(part) if literal is None else b.eq(part, literal) for part in parts]
                return self.random.choice((b.and_, b.or_))(same)
            case SetSort():
                if chosen and self.random.randrange(2):
                    return b.member(term, b.const(self.processes, self.random.choice(chosen)))
                return b.less(b.num(self.random.randint(0, 1)), b.size(term))
            case QueueSort():
                return b.less(b.num(self.random.randint(0, 1)), b.length(term))
            case UnionSort(cases):
                if chosen and self.random.randrange(2):
                    by = b.const(self.processes, self.random.choice(chosen))
                    return b.eq(term, b.make_case(sort, "Sent", b.make_record(cases[1][1], [by])))
                return b.is_case(term, "Sent")
            case OptionSort():
                if chosen and self.random.randrange(2):
                    return b.eq(term, b.some(b.const(self.processes, self.random.choice(chosen))))
                return b.is_none(term)
            case EnumSort() if sort == self.processes and (chosen or self.favourite):
                name = self.random.choice(chosen) if chosen else self.processes.members[0]
                return b.eq(term, b.const(self.processes, name))
            case EnumSort() if sort == self.processes:
                phases = b.var(self.variables[0].name, self.variables[0].sort)
                return b.eq(b.select(phases, term), b.const(PHASE, self._literal(PHASE)))
            case RangeSort():
                return b.less_eq(term, b.num(self._literal(sort)))
            case _:
                return b.eq(term, b.const(sort, self._literal(sort)))

    def _property(self, kind: Kind, number: int) -> Property:
        if kind is Kind.DEADLOCK:
            return Property(f"p{number}", kind, b.TRUE)
        self.stepping = kind is Kind.STEP
        parts = tuple(self._everywhere(()) for _ in range(self.random.randint(1, 3)))
        self.stepping = False
        expr = b.and_(parts) if kind is Kind.REACHABLE else b.or_(parts)
        return Property(f"p{number}", kind, expr, (Conjunct(expr, "all of it", None),))
