"""Actions in TLA+: one operator for all instances of the same shape, its parameters bound by a quantifier in ``Next``.

TLC generates and counts one successor per disjunct and per value of a quantified parameter, as we do per instance. TLC
could also split a guard, and count successors again, so guards are separate operators (``can_send``) compared with
TRUE, which is evaluated as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from streamproof.exchange.tla_behaviours import defined
from streamproof.exchange.tla_families import Family, Known, Terms, is_product, parameter_texts
from streamproof.exchange.tla_layout import Bind, Text, atom, below, beside, bulleted, closed, listed, separated
from streamproof.exchange.tla_terms import Passage, TlaWriter
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.assume import Assuming
from streamproof.system.expr import Expr
from streamproof.system.model import Action, Instance, System
from streamproof.system.records import dataclass


@dataclass(frozen=True, slots=True)
class Group:
    """Instances of an action represented by one operator."""

    action: Action
    name: str
    can: str | None
    """The operator of the guard; None without a guard."""
    instances: tuple[Instance, ...]
    rows: tuple[tuple[tuple[str, Any], ...], ...]
    """The parameters and picks of each instance."""
    family: Family

    @property
    def head(self) -> str:
        """The parameter list after the operator's name."""
        return f"({', '.join(self.family.names)})" if self.family.names else ""

    def over(self, quantifier: str, body: Callable[[str], Text]) -> Text:
        """A formula over all instances, or for some: `body` receives the operator's argument list."""
        names, rows = self.family.names, self.family.rows
        if not names:
            return body("")
        if is_product(rows):
            sets = [values_of([row[at] for row in rows]) for at in range(len(names))]
            bounds = ", ".join(f"{name} \\in {among}" for name, among in zip(names, sets, strict=True))
            return beside(f"{quantifier} {bounds} : ", body(f"({', '.join(names)})"), bind=Bind.LOOSE)
        records = [", ".join(f"{name} |-> {value}" for name, value in zip(names, row, strict=True)) for row in rows]
        among = separated("{", [atom(f"[{text}]") for text in records], "}")
        given = f"({', '.join(f'row.{name}' for name in names)})"
        return beside(f"{quantifier} row \\in ", among, " : ", body(given), bind=Bind.LOOSE)

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
        text = action.name
        if len(members) == 1 and not alone:
            text = "_".join((action.name, *(str(v) for _, v in rows[0])))
        name = self.writer.names.new(text)
        guarded = any(c.expr is not b.TRUE for i in members for c in i.guard)
        can = self.writer.names.new(f"can_{name}") if guarded else None
        return Group(action, name, can, tuple(members), rows, self._family(rows))

    def _family(self, rows: Sequence[tuple[tuple[str, Any], ...]]) -> Family:
        names: list[str] = []
        columns: list[list[tuple[str, Known]]] = []
        for column in zip(*rows, strict=True):
            texts = parameter_texts([value for _, value in column])
            if len(set(texts)) > 1:
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
        """The guard and the step of a group."""
        given = [self._known(i) for i in group.instances]
        if group.can is not None:
            yield defined(f"{group.can}{group.head}", self._guard(group, given))
        else:
            self._guard(group, given)
        items = [] if group.can is None else [atom(f"{group.can}{group.head} = TRUE")]
        for here, instance in zip(given, group.instances, strict=True):
            for check in self._checks[id(instance)].effect_checks:
                here.assume(b.not_(check.condition))
        items += self._effect(group, given)
        yield defined(f"{group.name}{group.head}", bulleted("/\\", items))

    def _known(self, instance: Instance) -> Assuming:
        """The condition under which the guard is evaluated: its evaluation is not an error."""
        here = Assuming()
        for check in self._checks[id(instance)].guard_checks:
            here.assume(b.not_(check.condition))
        return here

    def _guard(self, group: Group, given: Sequence[Assuming]) -> Text:
        items: list[Text] = []
        for terms in zip(*(_conjuncts(i) for i in group.instances), strict=True):
            if any(t is not b.TRUE for t in terms):
                items.append(self.writer.whole(terms, group.family, [here.fork() for here in given]))
            for here, term in zip(given, terms, strict=True):
                here.assume(term)
        return listed("/\\", items) if items else atom("TRUE")

    def _effect(self, group: Group, given: Sequence[Assuming]) -> Iterator[Text]:
        variables = self.writer.variables
        rows = [changes(i) for i in group.instances]
        changed = [name for name, _ in rows[0]]
        if changed:
            passage = Passage(self.writer, group.family, given)
            roots: list[Terms] = [tuple(row[at][1] for row in rows) for at in range(len(changed))]
            texts = passage.texts(roots)
            updates = [_assigned(variables[n], text) for n, text in zip(changed, texts, strict=True)]
            if passage.lets:
                yield passage.after_names(bulleted("/\\", updates))
            else:
                yield from updates
        kept = [variables[v.name] for v in self.system.variables if v.name not in changed]
        if kept:
            yield beside("UNCHANGED ", kept[0] if len(kept) == 1 else f"<<{', '.join(kept)}>>")

    # --- formulas over all instances

    def next_step(self) -> Text:
        """The disjunction of all instances."""
        items = [g.over("\\E", lambda given, g=g: atom(f"{g.name}{given}")) for g in self.groups]  # type: ignore[misc]
        return bulleted("\\/", items) if items else atom("FALSE")

    def some_enabled(self) -> list[Text]:
        """Some instance is enabled, group by group."""
        return [
            g.over("\\E", lambda given, g=g: atom(f"{g.can}{given}" if g.can else "TRUE"))  # type: ignore[misc]
            for g in self.groups
        ]

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
            found.append(_free(group, text))
        for group, text in self.conditions(lambda i: b.or_(c.condition for c in self._checks[id(i)].effect_checks)):
            found.append(_free(group, _and_enabled(group, text)))
        return found

    def may_idle(self) -> bool:
        """Whether an instance may stutter, judged without exploring states."""
        return any(self._idles(i) is not b.FALSE for g in self.groups for i in g.instances)

    def _idles(self, instance: Instance) -> Expr:
        here = Assuming(c.expr for c in instance.guard)
        sorts = {v.name: v.sort for v in self.system.variables}
        return here(b.and_(b.eq(term, b.var(n, sorts[n])) for n, term in changes(instance)))


def _free(group: Group, text: Text) -> Text:
    """The condition for some values of the group's parameters."""
    if not group.family.names:
        return text
    formula = group.over("\\E", lambda given: text)
    if is_product(group.family.rows):
        return formula
    # The parameters are columns of rows there, so they are given their names again.
    named = [atom(f"{name} == row.{name}") for name in group.family.names]
    return group.over("\\E", lambda given: below((beside("LET ", below(named)), beside("IN  ", text))))


def _and_enabled(group: Group, text: Text) -> Text:
    return text if group.can is None else listed("/\\", [atom(f"{group.can}{group.head}"), text])


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
