"""Actions in TLA+: one operator for all instances of the same shape, its parameters bound by a quantifier in ``Next``.

TLC generates and counts one successor per disjunct and per value of a quantified parameter, as we do per instance. TLC
could also split a guard, and count successors again, so whatever TLC splits is compared with TRUE, which is evaluated as
a whole. A long guard is an operator of its own (``can_send``).

TLC evaluates the names of a LET in a step again at each use, and those of a LET in a value once. So a name is defined in
the value that uses it; names that several values use, and that use each other, are bound by ``\\E name \\in {term}``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from streamproof.base.records import dataclass
from streamproof.exchange.tla.behaviours import defined
from streamproof.exchange.tla.families import Family, Known, Terms, is_product, parameter_texts, parts
from streamproof.exchange.tla.layout import Bind, Text, atom, below, beside, bulleted, closed, listed, separated
from streamproof.exchange.tla.passage import Passage
from streamproof.exchange.tla.terms import TlaWriter, WrittenPassage
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Action, Fairness, Instance, System
from streamproof.system.sorts import Sort
from streamproof.transform.assume import Assuming

WORDS = {Fairness.WEAK: "WF_vars", Fairness.STRONG: "SF_vars"}
LINES = 6
"""Maximum number of lines of a guard that is written in the action itself, and again where the guard is needed."""
_SPLIT = re.compile(r"\\/|=>|\\E|\b(?:IF|LET|CASE)\b")
"""What TLC splits in a step, or evaluates more than once."""


@dataclass(frozen=True, slots=True)
class Group:
    """Instances of an action represented by one operator."""

    action: Action
    name: str
    instances: tuple[Instance, ...]
    rows: tuple[tuple[tuple[str, Any], ...], ...]
    """The parameters and picks of each instance."""
    family: Family
    arguments: int
    """The number of the family's names that are parameters; the others are picks."""

    @property
    def head(self) -> str:
        """The parameter list after the operator's name."""
        return f"({', '.join(self.family.names)})" if self.family.names else ""

    def over(self, quantifier: str, body: Callable[[str], Text]) -> Text:
        """A formula over all instances, or for some: `body` receives the operator's argument list."""
        names, rows = self.family.names, self.family.rows
        if not names:
            return body("")
        given = f"({', '.join(names)})"
        if is_product(rows):
            return beside(self._bounds(quantifier, 0, len(names)), body(given), bind=Bind.LOOSE)
        if len(names) == 2 and set(rows) == {(x, y) for x, _ in rows for _, y in rows if x != y}:
            column = [row[0] for row in rows]
            others = column if set(column) == {row[1] for row in rows} else [row[1] for row in rows]
            first, second = values_of(column), values_of(others)
            without = f"{quantifier} {names[1]} \\in ({second}) \\ {{{names[0]}}} : "
            return beside(f"{quantifier} {names[0]} \\in {first} : {without}", body(given), bind=Bind.LOOSE)
        among = separated("{", [atom(f"<<{', '.join(row)}>>") for row in rows], "}")
        return beside(f"{quantifier} <<{', '.join(names)}>> \\in ", among, " : ", body(given), bind=Bind.LOOSE)

    def _bounds(self, quantifier: str, first: int, end: int) -> str:
        """A quantifier over some of the names of a product; empty without names."""
        sets = [f"{self.family.names[at]} \\in {values_of(self.family.column(at))}" for at in range(first, end)]
        return f"{quantifier} {', '.join(sets)} : " if sets else ""

    def some_pick(self, applies: Callable[[Instance], bool]) -> Text | None:
        """The step for some picks, the parameters being free; None if that cannot be written for all parameters, or a
        fairness constraint `applies` to some of the instances only."""
        count = len(self.family.names)
        if not all(map(applies, self.instances)) or (self.arguments < count and not is_product(self.family.rows)):
            return None
        return beside(self._bounds("\\E", self.arguments, count), f"{self.name}{self.head}")

    def each_argument(self, body: Text) -> Text:
        """A formula for all values of the parameters."""
        if self.arguments == len(self.family.names):
            return self.over("\\A", lambda given: body)
        return beside(self._bounds("\\A", 0, self.arguments), body, bind=Bind.LOOSE)

    def ground(self, at: int) -> str:
        """The operator applied to the parameters of one of the instances."""
        row = self.family.rows[at]
        return f"{self.name}({', '.join(row)})" if row else self.name


def values_of(column: Iterable[str]) -> str:
    """A set of values, as text, in the given order."""
    values = list(dict.fromkeys(column))
    if sorted(values) == ["FALSE", "TRUE"]:
        return "BOOLEAN"
    if len(values) > 1 and all(v.isdigit() for v in values):
        first = int(values[0])
        if values == [str(n) for n in range(first, first + len(values))]:
            return f"{values[0]}..{values[-1]}"
    return f"{{{', '.join(values)}}}"


@dataclass
class Actions:
    """The actions of a system as operators. `plain` is the simplified system, whose checks are those that can fail."""

    system: System
    plain: System
    writer: TlaWriter

    def __post_init__(self) -> None:
        self._checks = dict(zip(map(id, self.system.instances), self.plain.instances, strict=True))
        self._guards: dict[str, list[Text]] = {}
        self.guard_names: set[str] = set()
        """The operators of long guards."""
        self.groups: tuple[Group, ...] = tuple(g for a in self.system.actions for g in self._grouped(a))

    def of(self, action: Action) -> list[Group]:
        """The groups of one action."""
        return [g for g in self.groups if g.action is action]

    # --- grouping

    def _grouped(self, action: Action) -> Iterator[Group]:
        found: dict[tuple[Any, ...], list[Instance]] = {}
        twice = Counter(typed(_choices(i)) for i in action.instances)
        for instance in action.instances:
            if any(c.expr is b.FALSE for c in instance.guard) and not self._checks[id(instance)].guard_checks:
                continue  # never enabled
            alone = twice[typed(_choices(instance))] > 1  # a quantifier would merge the two
            found.setdefault((len(found), "alone") if alone else self._shape(instance), []).append(instance)
        for members in found.values():
            yield self._group(action, members, alone=len(found) == 1)

    def _shape(self, instance: Instance) -> tuple[Any, ...]:
        checks = self._checks[id(instance)]
        shape = self.writer.shapes
        return (
            tuple(n for n, _ in instance.args),
            tuple(n for n, _ in instance.picks),
            tuple(shape(c.expr) for c in instance.guard),
            tuple((name, shape(term)) for name, term in changes(instance)),
            tuple(shape(c.condition) for c in checks.guard_checks),
            tuple(shape(c.condition) for c in checks.effect_checks),
        )

    def _group(self, action: Action, members: list[Instance], *, alone: bool) -> Group:
        rows = tuple(_choices(i) for i in members)
        if alone:
            parts: Iterable[Any] = members[0].branches if len({i.branches for i in members}) == 1 else ()
        else:
            same = [column[0] for column in zip(*map(typed, rows), strict=True) if len(set(column)) == 1]
            parts = (value for name, _, value in same if value is not None or name not in members[0].labelled)
        text = "_".join((action.name, *map(str, parts)))
        name = self.writer.names.new(text)
        sorts = [i.sorts or (None,) * len(row) for i, row in zip(members, rows, strict=True)]
        family, arguments = self._family(rows, sorts), len(members[0].args)
        if arguments:
            arguments = len(self._family([row[:arguments] for row in rows], sorts).names)
        return Group(action, name, tuple(members), rows, family, arguments)

    def _family(self, rows: Sequence[tuple[tuple[str, Any], ...]], sorts: Sequence[tuple[Sort | None, ...]]) -> Family:
        names: list[str] = []
        columns: list[list[tuple[str, Known]]] = []
        for at, column in enumerate(zip(*rows, strict=True)):
            texts = parameter_texts([value for _, value in column], [row[at] for row in sorts])
            if len({text for text, _ in texts}) > 1:
                name = self.writer.names.bound(column[0][0])
                while name in names:
                    name = self.writer.names.bound(f"{name}_")
                names.append(name)
                columns.append(texts)
        if not names:
            return Family((), ((),) * len(rows), ((),) * len(rows))
        texts_by_row = tuple(zip(*columns, strict=True))
        return Family(
            tuple(names),
            tuple(tuple(text for text, _ in row) for row in texts_by_row),
            tuple(tuple(number for _, number in row) for row in texts_by_row),
        )

    # --- operators

    def definitions(self, group: Group) -> Iterator[Text]:
        """The step of a group, and its guard if that is long."""
        guard = self._guards[group.name] = self._guard(group)
        items = [_whole(item) for item in guard]
        if sum(len(item.lines) for item in guard) > LINES:
            can = self.writer.names.new(f"can_{group.name}")
            self.guard_names.add(can)
            yield defined(f"{can}{group.head}", bulleted("/\\", guard))
            guard = self._guards[group.name] = [atom(f"{can}{group.head}")]
            items = [atom(f"{can}{group.head} = TRUE")]
        given = [self._known(i) for i in group.instances]
        for here, instance in zip(given, group.instances, strict=True):
            for conjunct in _conjuncts(instance):
                here.assume(conjunct)
            for check in self._checks[id(instance)].effect_checks:
                here.assume(b.not_(check.condition))
        items += self._effect(group, given)
        yield defined(f"{group.name}{group.head}", bulleted("/\\", items))

    def guard(self, group: Group) -> list[Text]:
        """The conjuncts of a group's guard."""
        if group.name not in self._guards:
            self._guards[group.name] = self._guard(group)
        return self._guards[group.name]

    def _known(self, instance: Instance) -> Assuming:
        """The condition under which the guard is evaluated: its evaluation is not an error."""
        here = Assuming()
        for check in self._checks[id(instance)].guard_checks:
            here.assume(b.not_(check.condition))
        return here

    def _guard(self, group: Group) -> list[Text]:
        given = [self._known(i) for i in group.instances]
        items: list[Text] = []
        for terms in zip(*(_conjuncts(i) for i in group.instances), strict=True):
            if any(t is not b.TRUE for t in terms):
                items.append(self.writer.whole(terms, group.family, [here.fork() for here in given]))
            for here, term in zip(given, terms, strict=True):
                here.assume(term)
        return items

    def _effect(self, group: Group, given: Sequence[Assuming]) -> Iterator[Text]:
        rows = [changes(i) for i in group.instances]
        changed = [name for name, _ in rows[0]]
        if changed:
            passage = WrittenPassage(self.writer, group.family, given)
            roots: list[Terms] = [tuple(row[at][1] for row in rows) for at in range(len(changed))]
            passage.count(roots)
            values = list(zip(changed, roots, strict=True))
            written: list[Text] = []

            def noted(text: Text) -> Text:
                written.append(text)
                return text

            self._updates(passage, values, noted)
            alone = passage.used_once(written)
            yield from passage.steps(self._updates(passage, values, partial(passage.after_names, only=alone)), alone)
        kept = [self.writer.variables[v.name] for v in self.system.variables if v.name not in changed]
        if kept:
            yield _unchanged(kept)

    def _updates(
        self, passage: Passage, changed: Sequence[tuple[str, Terms]], named: Callable[[Text], Text]
    ) -> list[Text]:
        """The new values of variables; those that depend on one condition are in the branches of one IF.

        `named` adds the names that only one of the expressions uses.
        """
        shared = Counter(parts(terms)[0] for _, terms in changed if isinstance(terms[0], e.Ite))
        items: list[Text] = []
        done: set[str] = set()
        for name, terms in changed:
            if name in done:
                continue
            condition = parts(terms)[0] if isinstance(terms[0], e.Ite) else None
            if condition is None or shared[condition] < 2:
                items.append(_assigned(self.writer.variables[name], named(passage.text(terms))))
                continue
            both = [(n, t) for n, t in changed if isinstance(t[0], e.Ite) and parts(t)[0] == condition]
            done.update(n for n, _ in both)
            rows = [beside("IF ", named(passage.text(condition)))]
            for word, at in (("THEN ", 1), ("ELSE ", 2)):
                branch = [(n, parts(t)[at]) for n, t in both]
                with passage.deeper():
                    if any(self.writer.is_partial(t[0]) for _, t in branch):
                        passage.note(condition, at == 1)
                    rows.append(beside(word, self._branch(passage, branch, named)))
            items.append(below(rows))
        return items

    def _branch(self, passage: Passage, branch: Sequence[tuple[str, Terms]], named: Callable[[Text], Text]) -> Text:
        kept = [n for n, terms in branch if isinstance(terms[0], e.Var) and terms[0].name == n]
        items = self._updates(passage, [(n, terms) for n, terms in branch if n not in kept], named)
        items += [_unchanged([self.writer.variables[n] for n in kept])] if kept else []
        return items[0] if len(items) == 1 else bulleted("/\\", items)

    # --- formulas over all instances

    def fairness(self, action: Action) -> Iterator[Text]:
        """The fairness constraints of an action for each choice of its parameters, whatever its picks."""
        if action.fairness is not Fairness.NONE:
            yield from self._fairness(action, WORDS[action.fairness], lambda i: i.fair)
        for at, one in enumerate(action.several):
            if one.fairness is not Fairness.NONE:
                yield from self._fairness(action, WORDS[one.fairness], lambda i, at=at: at in i.listed)  # type: ignore[misc]

    def _fairness(self, action: Action, word: str, applies: Callable[[Instance], bool]) -> Iterator[Text]:
        groups = self.of(action)
        keys = {g.name: frozenset(typed(i.args) for i in g.instances) for g in groups}
        alike: dict[frozenset[Any], list[Group]] = {}
        for group in groups:
            alike.setdefault(keys[group.name], []).append(group)
        apart: dict[Any, list[str]] = {}
        for arguments, several in alike.items():
            steps = [text for g in several if (text := g.some_pick(applies)) is not None]
            names = {(g.family.names[: g.arguments], g.family.rows if g.arguments else ()) for g in several}
            others = [key for g in groups if g not in several for key in keys[g.name]]
            if len(steps) == len(several) and len(names) == 1 and arguments.isdisjoint(others):
                yield several[0].each_argument(beside(f"{word}(", listed("\\/", steps), ")"))
                continue
            for group in several:
                for at, instance in enumerate(group.instances):
                    if applies(instance):
                        apart.setdefault(typed(instance.args), []).append(group.ground(at))
        for operators in apart.values():
            yield beside(f"{word}(", listed("\\/", [atom(o) for o in operators]), ")")

    def next_step(self) -> Text:
        """The disjunction of all instances."""
        items = [g.over("\\E", lambda given, g=g: atom(f"{g.name}{given}")) for g in self.groups]  # type: ignore[misc]
        return bulleted("\\/", items) if items else atom("FALSE")

    def some_enabled(self) -> list[Text]:
        """Some instance is enabled, group by group."""
        return [self._some(group, self.guard(group)) for group in self.groups]

    def _some(self, group: Group, conjuncts: Sequence[Text]) -> Text:
        """The condition for some values of the group's parameters that occur in it."""
        text = listed("/\\", conjuncts) if conjuncts else atom("TRUE")
        return group.over("\\E", lambda given: text) if text.words & set(group.family.names) else text

    def conditions(self, of: Callable[[Instance], Expr]) -> Iterator[tuple[Group, Text]]:
        """For each group the condition that `of` gives for its instances, with its parameters free.

        Groups with the condition FALSE are left out. Conditions of different shapes are listed separately, each with
        the values of its parameters.
        """
        for group in self.groups:
            terms = tuple(of(i) for i in group.instances)
            if all(t is b.FALSE for t in terms):
                continue
            if len({self.writer.shapes(t) for t in terms}) == 1:
                yield group, self.writer.whole(terms, group.family)
                continue
            items = []
            for row, term in zip(group.family.rows, terms, strict=True):
                if term is not b.FALSE:
                    here = [atom(f"{name} = {value}") for name, value in zip(group.family.names, row, strict=True)]
                    items.append(listed("/\\", [*here, self.writer.ground(term)]))
            yield group, listed("\\/", items)

    def mistakes(self) -> list[Text]:
        """The conditions of model errors, one per group."""
        found = []
        for group, text in self.conditions(lambda i: b.or_(c.condition for c in self._checks[id(i)].guard_checks)):
            found.append(self._some(group, [text]))
        for group, text in self.conditions(lambda i: b.or_(c.condition for c in self._checks[id(i)].effect_checks)):
            found.append(self._some(group, [*self.guard(group), text]))
        return found

    def may_idle(self) -> bool:
        """Whether an instance may stutter, judged without exploring states."""
        return any(self._idles(i) is not b.FALSE for g in self.groups for i in g.instances)

    def _idles(self, instance: Instance) -> Expr:
        here = Assuming(c.expr for c in instance.guard)
        sorts = {v.name: v.sort for v in self.system.variables}
        return here(b.and_(b.eq(term, b.var(n, sorts[n])) for n, term in changes(instance)))


def _whole(item: Text) -> Text:
    """A conjunct of a guard that TLC evaluates as a whole."""
    if not _SPLIT.search("\n".join(item.lines)):
        return item
    return beside("(", item, ") = TRUE", bind=Bind.COMPARED)


def _unchanged(variables: Sequence[str]) -> Text:
    return beside("UNCHANGED ", variables[0] if len(variables) == 1 else f"<<{', '.join(variables)}>>")


def changes(instance: Instance) -> tuple[tuple[str, Expr], ...]:
    """The updates other than identities."""
    return tuple((n, t) for n, t in instance.updates if not (isinstance(t, e.Var) and t.name == n))


def _conjuncts(instance: Instance) -> tuple[Expr, ...]:
    """The guard's conjuncts."""
    return tuple(p for c in instance.guard for p in (c.expr.args if isinstance(c.expr, e.And) else (c.expr,)))


def typed(given: Iterable[tuple[str, Any]]) -> tuple[Any, ...]:
    """Arguments or picks as a key that distinguishes values of different types, such as 1 and True."""
    return tuple((name, type(value), value) for name, value in given)


def _choices(instance: Instance) -> tuple[tuple[str, Any], ...]:
    return (*instance.args, *instance.picks)


def _assigned(variable: str, text: Text) -> Text:
    alone = text.lines[0].startswith(("IF ", "LET "))
    return beside(f"{variable}' = ", text if alone else closed(text, Bind.COMPUTED))
