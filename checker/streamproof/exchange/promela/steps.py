"""Simultaneous updates as a sequence of assignments, ordered so that no old value is overwritten before its last use.

An auxiliary variable is part of Spin's state, so one is used only for cyclic exchanges of values, or for repeated parts
of long updates; it is 0 between steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field

from streamproof.base.records import dataclass
from streamproof.exchange.promela.terms import PromelaTerms, declared_type
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.transform.assume import Assuming

SHARING = 4_000
"""Minimum size of the updates of one step, in operators and operands, from which repeated parts get a variable."""

HELD = 12
"""Minimum size of such a part: shorter ones are repeated, because Spin limits the number of statements in one step."""

BRANCHING = 4
"""Maximum nesting depth of common conditions that are factored out."""


@dataclass(slots=True)
class Temporaries:
    """The auxiliary variables of a model, shared between steps."""

    names: dict[str, str] = field(default_factory=dict)
    """Names with their types."""

    @property
    def bytes(self) -> int:
        """Their size in the state."""
        return 4 * len(self.names)


class Assignments:
    """Writes simultaneous updates, from variables to terms over the old values, as a sequence of statements."""

    def __init__(self, terms: PromelaTerms, temporaries: Temporaries, plain: Assuming) -> None:
        """`plain`: a simplifier without assumptions; what it knows serves all steps of a model."""
        self._terms = terms
        self._temporaries = temporaries
        self._plain = plain

    def statements(self, updates: Mapping[Expr, Expr]) -> list[str]:
        """The lines of the statements, each ended by a semicolon."""
        lines = self._branch(dict(updates), BRANCHING)
        return lines or ["skip;"]

    def _branch(self, updates: dict[Expr, Expr], depth: int) -> list[str]:
        """Factors out a condition common to several updates, if the whole does not grow."""
        question = _common_question(updates.values()) if depth else None
        if question is None:
            return _Sequence(self._terms, self._temporaries).lines(updates)
        lines = ["if"]
        conditions = ((question, f":: {self._terms.text(question)} ->"), (b.not_(question), ":: else ->"))
        for condition, opening in conditions:
            here = Assuming((condition,), self._plain)
            rest = {v: t for v, term in updates.items() if (t := here(term)) is not v}
            inner = self._branch(rest, depth - 1) if rest else ["skip;"]
            lines += [opening, *(f"   {line}" for line in inner)]
        return [*lines, "fi;"]


def _common_question(terms: Iterable[Expr]) -> Expr | None:
    """The condition that several of the terms test, if there is one."""
    tested = Counter(term.cond for term in terms if isinstance(term, e.Ite))
    question, times = max(tested.items(), key=lambda item: item[1], default=(None, 0))
    return question if times > 1 else None


class _Sequence:
    """Assignments ordered so that no old value is overwritten before its last use."""

    def __init__(self, terms: PromelaTerms, temporaries: Temporaries) -> None:
        self._variables = terms
        self._terms = terms
        self._temporaries = temporaries
        self._used: Counter[str] = Counter()
        self._held: set[Expr] = set()
        self._lines: list[str] = []

    def lines(self, updates: Mapping[Expr, Expr]) -> list[str]:
        """The assignments, then those that reset the auxiliary variables."""
        if sum(map(self._terms.weight, updates.values())) > SHARING:
            for part in repeated(updates.values()):
                if self._terms.weight(part) >= HELD:
                    self._hold(part)
        pending = dict(updates)
        reads = {variable: self._reads(term) for variable, term in pending.items()}
        while pending:
            variable = next((v for v in pending if not any(v in reads[o] for o in pending if o is not v)), None)
            if variable is None:
                # A cycle: one new value is computed now and assigned when the old one is no longer needed.
                self._hold(next(term for v, term in pending.items() if reads[v] & (pending.keys() - {v})))
                reads = {v: self._reads(term) for v, term in pending.items()}
            else:
                self._lines.append(f"{self._variables.text(variable)} = {self._terms.text(pending.pop(variable))};")
        for kind, count in self._used.items():
            self._lines += [f"{_local_name(kind, number)} = 0;" for number in range(count)]
        return self._lines

    def _hold(self, term: Expr) -> None:
        """Computes a term into an auxiliary variable now."""
        text = self._terms.text(term)
        kind = declared_type(term.sort)
        kind = "byte" if kind == "bit" else kind  # a bit cannot be hidden
        name = _local_name(kind, self._used[kind])
        self._used[kind] += 1
        self._temporaries.names[name] = kind
        self._terms = self._terms.holding({term: name})
        self._held.add(term)
        self._lines.append(f"{name} = {text};")

    def _reads(self, term: Expr) -> frozenset[Expr]:
        """The variables whose old values the text of `term` mentions."""
        return frozenset(part for part in self._terms.mentioned(term) if part not in self._held)


def _local_name(kind: str, number: int) -> str:
    return f"t_{kind}_{number}"


def repeated(roots: Iterable[Expr]) -> list[Expr]:
    """Composite terms with several occurrences, subterms first."""
    roots = tuple(roots)
    uses = Counter(roots)
    for term in e.subterms(*roots):
        uses.update(e.children(term))
    return [t for t in e.subterms(*roots) if uses[t] > 1 and not isinstance(t, e.Const | e.Var)]
