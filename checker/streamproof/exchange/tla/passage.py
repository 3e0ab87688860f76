"""The place of terms in TLA+: one LET, the known conditions, and the names of repeated subterms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from itertools import count
from typing import Self

from streamproof.base.records import dataclass
from streamproof.exchange.tla.families import Family, Shapes, Tables, Terms, walked
from streamproof.exchange.tla.layout import Bind, Text, atom, below, beside, bulleted, closed
from streamproof.exchange.tla.names import TlaNames
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr, children
from streamproof.transform.assume import Assuming

HEAVY = 8
"""Minimum size, in operators and operands, from which a repeated subterm gets a name."""
BRIEF = 60
"""Maximum number of characters of a repeated subterm that is written again, where known conditions make it short."""
LONG = 2_000
"""Maximum size, in operators and operands, up to which a subterm is compared with its neighbours."""


@dataclass
class Vocabulary:
    """Data shared by all terms of a module: names of the variables, tables, auxiliary operators."""

    variables: Mapping[str, str]
    names: TlaNames
    tuples: Mapping[str, str] = field(default_factory=dict)
    """Operators for tuples of variables, by their elements."""
    shapes: Shapes = field(default_factory=Shapes)
    needs: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.tables = Tables(self.names)
        self._weights: dict[Expr, int] = {}
        self._partial: dict[Expr, bool] = {}

    def weight(self, term: Expr) -> int:
        """The size of a term's text, in operators and operands, repeated subterms counted again."""
        for part in e.unfinished(term, self._weights):
            self._weights[part] = 1 + sum(self._weights[c] for c in children(part))
        return self._weights[term]

    def is_partial(self, term: Expr) -> bool:
        """Whether the text of a term depends on known conditions: it has an operator that is not total in TLA+."""
        for part in e.unfinished(term, self._partial):
            match part:
                case e.Select(index=chosen) | e.Store(index=chosen) | e.FloorDiv(right=chosen) | e.Mod(right=chosen):
                    own = not isinstance(chosen, e.Const)
                case _:
                    own = isinstance(part, e.Peek | e.Push | e.Pop | e.Unwrap)
            self._partial[part] = own or any(self._partial[c] for c in children(part))
        return self._partial[term]


class Passage(ABC):
    """Expressions in one place, under one LET: the known conditions there, and the names so far."""

    def __init__(
        self, writer: Vocabulary, family: Family, given: Sequence[Assuming], numbers: Iterator[int] | None = None
    ) -> None:
        self.writer = writer
        self.family = family
        self.given = self._first = given
        self.numbers = numbers or count(1)
        self.lets: list[tuple[str, Text]] = []
        self._done: dict[Terms, Text] = {}
        self._named: set[Terms] = set()
        self._local: dict[Terms, Text] | None = None
        """Texts that are valid under the conditions known here only; None: outside of any connective."""
        self._uses: Counter[Terms] = Counter()

    def texts(self, roots: Sequence[Terms]) -> list[Text]:
        """The text of each term."""
        self.count(roots)
        return [self.text(terms) for terms in roots]

    def inside(self, family: Family, given: Sequence[Assuming]) -> Self:
        """A passage under a bound name, with LET definitions of its own."""
        return type(self)(self.writer, family, given, self.numbers)

    def after_names(self, text: Text, only: Container[str] | None = None) -> Text:
        """`text` with its LET definitions, or with those in `only`."""
        used = [(name, body) for name, body in self._used(text) if only is None or name in only]
        if used and text.lines == (used[-1][0],):
            text = used.pop()[1]
        named = [beside(f"{name} == ", body) for name, body in used]
        return below((beside("LET ", below(named)), beside("IN  ", text))) if named else text

    def used_once(self, texts: Sequence[Text]) -> set[str]:
        """The names that only one of the texts uses."""
        uses = Counter(name for text in texts for name, _ in self._used(text))
        return {name for name, number in uses.items() if number == 1}

    def steps(self, updates: Sequence[Text], defined: Container[str]) -> Sequence[Text]:
        """Conjuncts of a step with the names that they use, other than those `defined` inside."""
        text = bulleted("/\\", updates)
        named = [(name, body) for name, body in self._used(text) if name not in defined]
        if not named:
            return updates
        names = {name for name, _ in named}
        if not any(names & body.words for _, body in named):
            return [self.after_names(text, names)]
        bound = [beside(f"\\E {name} \\in {{", closed(body, Bind.COMPUTED), "} :") for name, body in named]
        return [below((*bound, beside("  ", text)))]

    def _used(self, text: Text) -> list[tuple[str, Text]]:
        """The named terms that occur in `text`, directly or not."""
        used, kept = text.words, list[tuple[str, Text]]()
        for name, body in reversed(self.lets):
            if name in used:
                used |= body.words
                kept.insert(0, (name, body))
        return kept

    def count(self, roots: Sequence[Terms]) -> None:
        """Counts the uses of each subterm."""
        self._uses.update(roots)
        for _, inner in walked(roots):
            self._uses.update(inner)

    def text(self, terms: Terms) -> Text:
        """The text of one term, or the name given to it."""
        if self._local is not None and terms not in self._named and self.writer.is_partial(terms[0]):
            if self.writer.weight(terms[0]) <= LONG:
                if terms not in self._local:
                    text = self._text(terms)
                    if self._is_heavy(terms) and text.length > BRIEF:
                        text = self._everywhere(terms)
                    self._local[terms] = text
                return self._local[terms]
            return self._everywhere(terms)
        if terms not in self._done:
            text = self._text(terms)
            if self._is_heavy(terms) and text.length > 30:
                name = self.writer.names.bound(f"t{next(self.numbers)}")
                self.lets.append((name, text))
                self._named.add(terms)
                text = atom(name)
            self._done[terms] = text
        return self._done[terms]

    def _everywhere(self, terms: Terms) -> Text:
        """The text, or the name, that is valid in all of the passage."""
        given, local, self.given, self._local = self.given, self._local, self._first, None
        text = self.text(terms)
        self.given, self._local = given, local
        return text

    def is_named(self, terms: Terms) -> bool:
        """Whether the term has a name, or gets one."""
        return terms in self._named or self._is_heavy(terms)

    def _is_heavy(self, terms: Terms) -> bool:
        return self._uses[terms] > 1 and self.writer.weight(terms[0]) >= HEAVY

    # --- known conditions

    def sure(self, condition: Callable[[Expr], Expr], terms: Terms) -> bool:
        """Whether the condition is known to be true of the term in every row."""
        return all(here(condition(t)) is b.TRUE for here, t in zip(self.given, terms, strict=True))

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """An operand; conditions noted inside are forgotten at its end."""
        before = self.given, self._local
        yield
        self.given, self._local = before

    def note(self, terms: Terms, value: bool) -> None:
        """What follows is evaluated only where this condition has this value."""
        self.given = [here.fork() for here in self.given]
        for here, term in zip(self.given, terms, strict=True):
            here.assume(term if value else b.not_(term))
        self._local = {}

    def fresh(self, text: str) -> str:
        """A bound name that is unused here."""
        name = self.writer.names.bound(text)
        number = 1
        while name in self.family.names:
            name = self.writer.names.bound(f"{text}{number}")
            number += 1
        return name

    @abstractmethod
    def _text(self, terms: Terms) -> Text:
        """The text of one term, whose operands may have names."""
