"""SMT-LIB 2: a system as functions `init`, `step` and `bad …`, with BMC queries up to a depth and induction queries.

Every query is a ``check-sat`` after an ``echo`` of the property and depth; `read` turns a solver's output into
verdicts. The last queries are those of induction: can a step from a state with every invariant break one?
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from streamproof.base.errors import UsageError
from streamproof.base.files import GENERATOR
from streamproof.base.records import dataclass
from streamproof.exchange.smt.terms import (
    Scalar,
    SmtEvent,
    SmtTerms,
    declared,
    meanings,
    number,
    remark,
    sort_name,
    symbol,
)
from streamproof.system import build as b
from streamproof.system.model import Kind, System
from streamproof.system.sorts import BoolSort, EnumSort, RangeSort, Sort
from streamproof.system.verdict import Verdict

MISTAKE = "mistake of the model"
"""The name of the query for model errors."""
INDUCTIVE = "by induction"
"""The marker of an induction query in place of a depth."""
DEPTH = 10
"""Default depth, in steps."""


@dataclass(frozen=True, slots=True)
class Smt:
    """A script, and its properties in the order of declaration."""

    text: str
    queries: Mapping[str, Kind]
    left_out: tuple[str, ...]
    depth: int


@dataclass(frozen=True, slots=True)
class Answered:
    """The verdict of a solver's answers for a property. `length`: states of a shortest deciding behaviour."""

    verdict: Verdict
    length: int | None = None


def smtlib(system: System, depth: int = DEPTH) -> Smt:
    """`system` with queries about behaviours of up to `depth` steps.

    Raises `UsageError` for a negative depth, `TooLarge` if a state has too many components.
    """
    if depth < 0:
        raise UsageError(f"a depth of {depth} steps", remedy="0 checks the initial states only; choose 0 or more")
    return _SmtlibExport(system, depth).document()


def read(smt: Smt, printed: str) -> dict[str, Answered]:
    """The verdict for every property, from a solver's output.

    A property holds if all invariants are inductive together, imply it, and exclude model errors; otherwise the
    shortest behaviour decides, a model error before anything longer.
    """
    answers: dict[tuple[str, str], str] = {}
    query: tuple[str, str] | None = None
    for line in printed.splitlines():
        question = _QUESTION.match(line.strip())
        if question is not None:
            query = (question["name"], question["at"])
        elif query is not None and line.strip() in ("sat", "unsat", "unknown"):
            answers.setdefault(query, line.strip())
    return {name: _SmtlibReading(smt, answers).answer(name, kind) for name, kind in smt.queries.items()}


_QUESTION = re.compile(rf'"?ask (?P<name>.*) at (?P<at>\d+|{INDUCTIVE})"?$')
_WRONG = "error in "


@dataclass(frozen=True, slots=True)
class _SmtlibReading:
    smt: Smt
    answers: Mapping[tuple[str, str], str]

    def said(self, name: str, at: int | str) -> str | None:
        return self.answers.get((name, str(at)))

    def answer(self, name: str, kind: Kind) -> Answered:
        shown = Verdict.HOLDS if kind is Kind.REACHABLE else Verdict.VIOLATED
        for at in range(self.smt.depth + 1):
            if not (kind is Kind.STEP and at == 0):
                for what, verdict in ((name, shown), (_WRONG + name, Verdict.ERROR)):
                    if self.said(what, at) == "sat":
                        return Answered(verdict, at + 1)
                    if self.said(what, at) != "unsat":
                        return Answered(Verdict.INCONCLUSIVE)
            if self.said(MISTAKE, at) == "sat":
                return Answered(Verdict.ERROR, at + 1)
            if self.said(MISTAKE, at) != "unsat":
                return Answered(Verdict.INCONCLUSIVE)
        return Answered(Verdict.HOLDS if self.proved(name, kind) else Verdict.INCONCLUSIVE)

    def proved(self, name: str, kind: Kind) -> bool:
        """Whether the induction queries prove it, given the answers for the initial states."""
        claims = [n for n, k in self.smt.queries.items() if k is Kind.INVARIANT]
        needed = [MISTAKE, *(part for n in (*claims, name) for part in (n, _WRONG + n))]
        first = all(self.said(part, 0) == "unsat" for n in claims for part in (n, _WRONG + n))
        return kind is not Kind.REACHABLE and first and all(self.said(n, INDUCTIVE) == "unsat" for n in needed)


class _SmtlibExport:
    def __init__(self, system: System, depth: int) -> None:
        self.depth = depth
        self.scalar = Scalar(system)
        self.terms = SmtTerms(symbol, lambda name: symbol(f"{name}'"))
        self.state = [(symbol(v.name), v.sort) for v in self.scalar.variables]
        self.after = [(symbol(f"{v.name}'"), v.sort) for v in self.scalar.variables]
        self.events = tuple(self.scalar.events())

    def document(self) -> Smt:
        query = {event.prop.name: event.prop.kind for event in self.events}
        left_out = tuple(p.name for p in self.scalar.original.properties if p.name not in query)
        lines = (
            remark(f"{self.scalar.original.heading}, {GENERATOR} export"),
            *meanings(self.scalar),
            "; Run it with z3, or with cvc5 --incremental. After each question: sat, there is such a behaviour; unsat, none.",
            "(set-logic ALL)",
            *self._functions(),
            *self._bounded(),
            *self._inductive(),
            "",
        )
        return Smt("\n".join(lines), query, left_out, self.depth)

    def _functions(self) -> Iterator[str]:
        state, both = declared(self.state), declared([*self.state, *self.after])
        bounds = " ".join(_within(name, sort) for name, sort in self.state)
        yield f"(define-fun init ({state}) Bool {self.terms.text(self.scalar.initial)})"
        yield f"(define-fun within ({state}) Bool (and true {bounds}))"
        yield f"(define-fun mistake ({state}) Bool {self.terms.text(self.scalar.mistake)})"
        steps = []
        for at, instance in enumerate(self.scalar.system.instances):
            written = dict(instance.updates)
            follows = (
                f"(= {after} {self.terms.text(written.get(v.name, b.var(v.name, v.sort)))})"
                for v, (after, _) in zip(self.scalar.variables, self.after, strict=True)
            )
            yield remark(instance.label)
            guard = self.terms.text(self.scalar.guard(instance))
            yield f"(define-fun step{at} ({both}) Bool (and {guard} {' '.join(follows)}))"
            steps.append(_call(f"step{at}", [name for name, _ in (*self.state, *self.after)]))
        mistaken = _call("mistake", [name for name, _ in self.state])
        yield f"(define-fun step ({both}) Bool (and (not {mistaken}) (or false {' '.join(steps)})))"
        for event in self.events:
            over = both if event.prop.kind is Kind.STEP else state
            for name, term in ((event.prop.name, event.shown), (_WRONG + event.prop.name, event.wrong)):
                yield f"(define-fun {_bad(name)} ({over}) Bool {self.terms.text(term)})"

    def _bounded(self) -> Iterator[str]:
        for at in range(self.depth + 1):
            yield from self._declare(at)
            yield f"(assert {self._call_at('init', 0) if at == 0 else self._between('step', at - 1)})"
            for event in self.events:
                for name in _questions(event):
                    if event.prop.kind is not Kind.STEP:
                        yield from _query(name, at, self._call_at(_bad(name), at))
                    elif at > 0:
                        yield from _query(name, at, self._between(_bad(name), at - 1))
            yield from _query(MISTAKE, at, self._call_at("mistake", at))

    def _inductive(self) -> Iterator[str]:
        now = self.depth + 1
        yield from (*self._declare(now), *self._declare(now + 1))
        claims = [name for e in self.events if e.prop.kind is Kind.INVARIANT for name in _questions(e)]
        given = " ".join(
            (self._call_at("within", now), *(f"(not {self._call_at(_bad(name), now)})" for name in claims))
        )
        yield from _query(MISTAKE, INDUCTIVE, f"(and {given} {self._call_at('mistake', now)})")
        for event in self.events:
            if event.prop.kind is Kind.REACHABLE:
                continue
            for name in _questions(event):
                step = event.prop.kind is Kind.STEP
                broken = self._between(_bad(name), now) if step else self._call_at(_bad(name), now + 1)
                yield from _query(name, INDUCTIVE, f"(and {given} {self._between('step', now)} {broken})")

    def _declare(self, at: int) -> Iterator[str]:
        for name, v in zip(self._constants(at), self.scalar.variables, strict=True):
            yield f"(declare-const {name} {sort_name(v.sort)})"

    def _constants(self, at: int) -> list[str]:
        return [symbol(f"{v.name}@{at}") for v in self.scalar.variables]

    def _call_at(self, function: str, at: int) -> str:
        return _call(function, self._constants(at))

    def _between(self, function: str, at: int) -> str:
        return _call(function, [*self._constants(at), *self._constants(at + 1)])


def _questions(event: SmtEvent) -> tuple[str, str]:
    return event.prop.name, _WRONG + event.prop.name


def _bad(name: str) -> str:
    return symbol(f"bad {name}")


def _call(function: str, arguments: Sequence[str]) -> str:
    return f"({function} {' '.join(arguments)})"


def _query(name: str, at: int | str, formula: str) -> Iterator[str]:
    quoted = name.replace('"', "'")
    yield f'(echo "ask {quoted} at {at}")'
    yield f"(push 1) (assert {formula}) (check-sat) (pop 1)"


def _within(name: str, sort: Sort) -> str:
    match sort:
        case BoolSort():
            return "true"
        case RangeSort(lo, hi):
            return f"(<= {number(lo)} {name} {number(hi)})"
        case EnumSort(members):
            return f"(<= 0 {name} {len(members) - 1})"
        case _:
            raise AssertionError(f"{sort} is not a scalar sort")
