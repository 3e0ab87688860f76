"""Promela: a system as a model for Spin, whose verifier counts the same states and gives the same verdicts.

The model is one process that repeatedly chooses among the ground instances, each a ``d_step``, over the scalar
components of the state in the narrowest types. Spin's states and transitions correspond to ours one to one, including
duplicates and self-loops; only for several initial states does Spin have one more state, before the choice among them.

Code for a property is in the same text behind ``#ifdef``, so that counting is not disturbed: ``spin -DCHECK_name``. An
``assert`` on a constant bit fails where the property is decided, and names the event.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from streamproof.base.errors import ModelError, TooLarge
from streamproof.base.files import GENERATOR
from streamproof.base.records import dataclass
from streamproof.base.text import visible
from streamproof.exchange.promela.claims import Claims
from streamproof.exchange.promela.steps import Assignments, Temporaries
from streamproof.exchange.promela.terms import PromelaNames, PromelaTerms, declared_type, literal, meaning
from streamproof.system import build as b
from streamproof.system.formula import Formula, rewritten
from streamproof.system.interpreter import Interpreter
from streamproof.system.leaves import encode
from streamproof.system.model import PROGRESS, Fairness, Instance, Kind, Property, System, fires
from streamproof.system.sorts import Value
from streamproof.transform.assume import Assuming, Substitution, simplify
from streamproof.transform.flatten import Rewriter
from streamproof.transform.scalarise import scalarise

SPIN_OPTIONS = ("-o1", "-o2", "-o3")
"""Prevents Spin from hiding variables that no condition reads, which would merge states."""
ALL = "CHECK_ALL"
"""The macro for checking every state and step property at once."""
TEMPORARY = "TEMPORARY"
"""The macro before auxiliary variables: ``hidden`` excludes them from the state, which only a depth-first search allows."""
STARTED = "started"
"""The bit that is 1 from the initial state on, in texts with a claim."""
CLAIM = "claim"
"""The name of the claim in a text."""
MISTAKE = "mistake_of_the_model"
"""The assertion that fails at a model error."""
CHOICES = 20_000
"""Maximum number of initial values of one variable that are enumerated."""


@dataclass(frozen=True, slots=True)
class SpinQuery:
    """How Spin checks a property, and the identifiers in its report."""

    kind: Kind
    macro: str
    """The macro that enables the property in ``spin``."""
    decided: str
    """The bit whose assertion fails at a violation of an invariant or step property, or when a reachability goal is
    reached."""
    mistaken: str
    """The bit whose assertion fails where evaluating the property is an error."""


@dataclass(frozen=True, slots=True)
class Promela:
    """A model for Spin and the data needed to interpret its report."""

    text: str
    queries: Mapping[str, SpinQuery]
    """Each property that Spin can check, by name."""
    opening: int
    """Number of Spin's steps before an initial state of the system: 0 for a single initial state; otherwise it is
    chosen, starting from a state outside the system."""
    candidates: int
    """Number of combinations of initial values, some of which the initial condition may exclude."""
    bytes: int
    """Maximum size of the variables in the state, in bytes."""
    names: Mapping[str, str]
    """The scalar components of the state, in their order, each with its name in the text."""


def promela(system: System) -> str:
    """`system` as Promela text. Raises `TooLarge` for integers beyond 32 bits and for terms that are too long."""
    return export(system).text


def export(system: System, claim: Formula | None = None, title: str = "", *, marked: bool = False) -> Promela:
    """`system` as a model for Spin, with the data needed to run it.

    With `claim`, the text claims that every behaviour satisfies it from the initial state on; `title` describes it.
    `marked`: a bit marks that the initial state has been chosen, for reading trails. Raises `TooLarge` for integers
    beyond 32 bits and for terms that are too long, `ModelError` for a system without initial states.
    """
    return _PromelaExport(system, claim, title, marked or claim is not None).document()


_OF_STATES = (Kind.INVARIANT, Kind.REACHABLE)
_ASSERTED = (*_OF_STATES, Kind.STEP)
_DECIDABLE = (*_ASSERTED, Kind.DEADLOCK, Kind.TERMINATION)


@dataclass
class _PromelaExport:
    original: System
    claim: Formula | None = None
    title: str = ""
    marked: bool = False
    opening: int = 0

    def __post_init__(self) -> None:
        names = PromelaNames()
        scalarised = scalarise(self.original)
        self.system = simplify(scalarised.system)
        self.rewriter = Rewriter()
        self.leaves = scalarised.leaves
        self.names = {v.name: names.new("s", v.name) for v in self.system.variables}
        self.sorts = {v.name: v.sort for v in self.system.variables}
        self.undeclared = {v.name for v in self.system.variables if len(v.initial) > 1}
        """Variables whose initial value is not part of their declaration."""
        self.terms = PromelaTerms({b.var(v.name, v.sort): self.names[v.name] for v in self.system.variables})
        self.temporaries = Temporaries()
        self.plain = Assuming()
        self.queries = {
            p.name: SpinQuery(p.kind, f"CHECK{name}", f"found{name}", f"error{name}")
            for p in self.system.properties
            if p.kind in _DECIDABLE
            for name in (names.new("", p.name),)
        }
        self.rows = {
            v.name: list(dict.fromkeys(encode(v.sort, value) for value in v.initial)) for v in self.original.variables
        }
        self.candidates = math.prod(map(len, self.rows.values()))
        self.chooses = self.candidates > 1
        if not self.chooses and not any(Interpreter(self.original).initial_states()):
            raise ModelError(f"{self.original.name} has no initial state")

    def document(self) -> Promela:
        options = [*self._instances(), *self._mistakes()] or [":: d_step { false -> skip }"]
        body = [*self._choice(), "do", *options, *self._properties()]
        text = "\n".join(
            (
                *self._head(),
                *self._declarations(),
                "",
                "active proctype model() {",
                *(line if line.startswith("#") else f"  {line}" for line in body),
                "  od",
                "}",
                *self._claim(),
                "",
            )
        )
        sizes = {"bit": 1, "byte": 1, "short": 2, "int": 4}
        total = sum(sizes[declared_type(v.sort)] for v in self.system.variables) + self.temporaries.bytes
        return Promela(text, self.queries, self.opening, self.candidates, total + len(self.queries) + 1, self.names)

    def _head(self) -> Iterator[str]:
        yield f"/* {_comment(self.original.heading)}, {GENERATOR} export"
        yield " *"
        if self.claim is not None:
            yield from (f" * {_comment(part)}" for part in self.title.splitlines())
            yield " * Violated where Spin finds an acceptance cycle:"
            yield f" *   spin -a {' '.join(SPIN_OPTIONS)} FILE && cc -O2 -DNOREDUCE -o pan pan.c && ./pan -a"
            yield " * More states than the model has: fairness is spelt out, by a counter of satisfied constraints"
            yield " * and by bits that steps turn over, and so is doing nothing, by a step of its own."
            yield " */"
            return
        yield " * Count states and transitions, level by level:"
        yield f" *   spin -a {' '.join(SPIN_OPTIONS)} FILE && cc -O2 -DBFS -DSAFETY -DNOREDUCE -o pan pan.c && ./pan -E"
        yield " * The options of spin are needed: without them it hides variables, and states fall together."
        if self.chooses:
            yield " * The initial state is chosen: that is one (nominal) state more, and one transition for the first choice."
        if self.queries:
            yield " *"
            yield " * Check a property: the same with one of these for spin."
        for prop in self.original.properties:
            if prop.name in self.queries:
                yield f" *   -D{self.queries[prop.name].macro}  {_HOW[prop.kind]}"
        yield " *"
        yield " * Written out: a step for each choice of an action's parameters, because select and for would add states,"
        yield " * and a variable for each element of an array, a set, a queue or a record."
        left_out = [p.name for p in self.original.properties if p.name not in self.queries]
        fair = [a.name for a in self.original.actions if a.is_fair]
        fair += [] if self.original.progress is Fairness.NONE else [PROGRESS]
        if left_out or fair:
            yield " *"
            yield " * Left out here:"
        if left_out:
            yield f" *   temporal properties, which have texts of their own: {_comment(', '.join(left_out))}"
        if fair:
            yield f" *   fairness, which those texts have as a part of the claim: {_comment(', '.join(fair))}"
        yield " */"

    def _declarations(self) -> Iterator[str]:
        asserted = [a for a in self.queries.values() if a.kind in _ASSERTED]
        if asserted:
            yield f"#ifdef {ALL}"
            yield from (f"#define {a.macro}" for a in asserted)
            yield "#endif"
        if self.temporaries.names:
            yield from (f"#ifndef {TEMPORARY}", f"#define {TEMPORARY}", "#endif")
        yield ""
        for v in self.system.variables:
            start = "" if v.name in self.undeclared else f" = {literal(v.sort, v.initial[0])}"
            means = f"{v.name}: {meaning(v.sort)}"
            yield f"{declared_type(v.sort):<5} {self.names[v.name]}{start};  /* {_comment(means)} */"
        for name, kind in self.temporaries.names.items():
            yield f"{TEMPORARY} {kind} {name};  /* 0 between steps */"
        if self.marked and self.chooses:
            yield f"bit {STARTED};  /* whether the initial state has been chosen */"
        if self._faults():
            yield f"bit {MISTAKE};  /* always 0 */"
        for prop in self.system.properties:
            query = self.queries.get(prop.name)
            if query is not None and query.kind in _ASSERTED:
                bits = (query.decided, query.mistaken) if prop.checks else (query.decided,)
                yield from (f"#ifdef {query.macro}", f"bit {', '.join(bits)};  /* always 0 */", "#endif")

    # --- the initial states ---

    def _choice(self) -> Iterator[str]:
        if not self.chooses:
            return
        statements: list[Iterable[str]] = []
        initially = Assuming()(Rewriter().scalar(self.original.initially))
        if self.claim is not None and initially is not b.TRUE:
            # A choice that could block would be a behaviour of its own, with a verdict.
            statements += self._start([v.name for v in self.system.variables], self._first())
            initially = b.TRUE
        else:
            for v in self.original.variables:
                if len(self.rows[v.name]) > 1:
                    statements += self._start(self.leaves[v.name], self.rows[v.name])
        if initially is not b.TRUE:
            statements.append((f"end_start: {self.terms.text(initially)}",))
        if self.marked:
            statements.append((f"{STARTED} = 1",))
        self.opening = len(statements) + 1
        yield "atomic {"
        for at, statement in enumerate(statements):
            *lines, last = statement
            yield from (f"  {line}" for line in lines)
            yield f"  {last}{';' if at + 1 < len(statements) else ''}"
        yield "};"

    def _first(self) -> list[tuple[Value, ...]]:
        """The initial states, as rows of all scalar components."""
        states = Interpreter(self.original).initial_states()
        return [
            tuple(part for v, value in self.original.named(state) for part in encode(v.sort, value))
            for state in islice(states, CHOICES + 1)
        ]

    def _start(self, leaves: Sequence[str], rows: Sequence[tuple[Value, ...]]) -> Iterator[list[str]]:
        """Choices that together produce every row: one for each leaf if the leaves are independent, otherwise one."""
        columns = [list(dict.fromkeys(column)) for column in zip(*rows, strict=True)]
        varying = [at for at, column in enumerate(columns) if len(column) > 1]
        for at, column in enumerate(columns):
            # The initial condition may leave a single one of several initial values, unlike the declaration.
            if len(column) == 1 and leaves[at] in self.undeclared:
                yield [self._set(leaves[at], column[0])]
        if math.prod(len(columns[at]) for at in varying) == len(rows):
            for at in varying:
                yield _if(self._set(leaves[at], value) for value in columns[at])
        elif len(rows) > CHOICES:
            raise TooLarge(
                f"more than {CHOICES:,} initial values of one variable, or initial states, cannot be written one by one",
                remedy="choose smaller parameters",
            )
        else:
            yield _if(f"d_step {{ {'; '.join(self._set(leaves[at], row[at]) for at in varying)} }}" for row in rows)

    def _set(self, leaf: str, value: Value) -> str:
        return f"{self.names[leaf]} = {literal(self.sorts[leaf], value)}"

    # --- the steps ---

    def _instances(self) -> Iterator[str]:
        documented: set[str] = set()
        docs = {a.name: " ".join(a.doc.split()) for a in self.system.actions}
        for instance in self.system.instances:
            guard = b.and_(c.expr for c in instance.guard)
            if guard is not b.FALSE:
                if docs[instance.action] and instance.action not in documented:
                    documented.add(instance.action)
                    yield f"/* {_comment(docs[instance.action])} */"
                yield f":: d_step {{  /* {_comment(instance.label)} */"
                yield f"     {self.terms.text(guard)} ->"
                yield from self._effect(instance)
                yield "   }"

    def _effect(self, instance: Instance) -> Iterator[str]:
        updates = {b.var(name, self.sorts[name]): term for name, term in instance.updates}
        statements = [
            *self._step_properties(instance),
            *Assignments(self.terms, self.temporaries, self.plain).statements(updates),
        ]
        wrong = fires(instance.effect_checks)
        if wrong is b.FALSE:
            yield from (line if line.startswith("#") else f"     {line}" for line in statements)
            return
        yield "     if"
        yield f"     :: {self.terms.text(wrong)} -> assert({MISTAKE})"
        yield "     :: else ->"
        yield from (line if line.startswith("#") else f"        {line}" for line in statements)
        yield "     fi"

    def _step_properties(self, instance: Instance) -> Iterator[str]:
        after = dict(instance.updates)
        step = Substitution(
            {b.next_(v.name, v.sort): after.get(v.name, b.var(v.name, v.sort)) for v in self.system.variables}
        )
        here = Assuming((c.expr for c in instance.guard), self.plain)
        for prop in self.system.properties:
            if prop.kind is not Kind.STEP:
                continue
            query = self.queries[prop.name]
            wrong = here(step(fires(prop.checks)))
            lost = here(step(b.and_((b.not_(fires(prop.checks)), b.not_(prop.expr)))))
            found = [(c, bit) for c, bit in ((wrong, query.mistaken), (lost, query.decided)) if c is not b.FALSE]
            if found:
                yield f"#ifdef {query.macro}"
                for condition, bit in found:
                    yield f"if :: {self.terms.text(condition)} -> assert({bit}) :: else fi;"
                yield "#endif"

    def _faults(self) -> bool:
        return any(i.guard_checks or i.effect_checks for i in self.system.instances)

    def _mistakes(self) -> Iterator[str]:
        wrong = b.or_(fires(i.guard_checks) for i in self.system.instances)
        if wrong is not b.FALSE:
            yield f":: d_step {{ {self.terms.text(wrong)} -> assert({MISTAKE}) }}"

    # --- the properties ---

    def _claim(self) -> Iterator[str]:
        if self.claim is None:
            return
        claim = rewritten(self.claim, lambda term: Assuming()(self.rewriter.scalar(term)))
        text = Claims(self.terms, STARTED if self.chooses else None).claim(claim)
        yield ""
        yield f"ltl {CLAIM} {{ {text} }}"

    def _properties(self) -> Iterator[str]:
        for prop in self.system.properties:
            if prop.kind in _OF_STATES:
                yield from self._of_state(prop, self.queries[prop.name])
            elif prop.kind is Kind.DEADLOCK and self.system.terminal is not None:
                yield f"#ifdef {self.queries[prop.name].macro}"
                yield f":: d_step {{ {self.terms.text(self.system.terminal)} -> skip }}  /* a legal end is never stuck */"
                yield "#endif"

    def _of_state(self, prop: Property, query: SpinQuery) -> Iterator[str]:
        wrong = fires(prop.checks)
        wanted = prop.expr if prop.kind is Kind.REACHABLE else b.not_(prop.expr)
        yield f"#ifdef {query.macro}"
        for condition, bit in ((wrong, query.mistaken), (b.and_((b.not_(wrong), wanted)), query.decided)):
            if condition is not b.FALSE:
                yield f":: d_step {{ {self.terms.text(condition)} -> assert({bit}) }}"
        yield "#endif"


_HOW = {
    Kind.INVARIANT: "invariant: violated where the assertion fails",
    Kind.STEP: "property of steps: violated where the assertion fails",
    Kind.REACHABLE: "reachable: reached where the assertion fails",
    Kind.DEADLOCK: "deadlock: run ./pan without -E",
    Kind.TERMINATION: "termination: cc -DNP -DNOSTUTTER instead of -DBFS -DSAFETY, and ./pan -l -E",
}


def _if(options: Iterable[str]) -> list[str]:
    return ["if", *(f":: {option}" for option in options), "fi"]


def _comment(text: str) -> str:
    return visible(text).replace("*/", "* /").replace("/*", "/ *").replace("\\", "/")
