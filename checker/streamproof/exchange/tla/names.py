"""TLA+'s identifiers and strings for the names of a model, and the inverse mapping.

Identifiers are unique, and different from reserved words and the definitions of extended modules: TLA+'s parser rejects
a symbol that is declared again, even as a bound variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RESERVED = _words(
    """
    ACTION ASSUME ASSUMPTION AXIOM BY CASE CHOOSE CONSTANT CONSTANTS COROLLARY DEF DEFINE DEFS DOMAIN ELSE ENABLED EXCEPT
    EXTENDS FALSE HAVE HIDE IF IN INSTANCE LAMBDA LEMMA LET LOCAL MODULE NEW OBVIOUS OMITTED ONLY OTHER PICK PROOF
    PROPOSITION PROVE QED RECURSIVE SF_ STATE STEP SUBSET SUFFICES TAKE TEMPORAL THEN THEOREM TRUE UNCHANGED UNION USE
    VARIABLE VARIABLES WF_ WITH WITNESS BOOLEAN STRING
    """
)
"""Reserved words; record fields may not have such names either."""
STANDARD = _words(
    """
    Nat Int Real Infinity Seq Len Append Head Tail SubSeq SelectSeq Cardinality IsFiniteSet Print PrintT Assert JavaTime
    TLCGet TLCSet Permutations SortSeq RandomElement Any ToString TLCEval TLCModelValue Naturals Integers Reals Sequences
    FiniteSets TLC Bags Randomization Toolbox Apalache Variants Option SequencesExt Functions
    """
)
"""The names and definitions of the standard modules."""
CONFIGURATION = _words(
    """
    CONSTANT CONSTANTS INIT NEXT VIEW SYMMETRY SPECIFICATION INVARIANT INVARIANTS PROPERTY PROPERTIES TYPE CONSTRAINT
    CONSTRAINTS TYPE_CONSTRAINT ACTION_CONSTRAINT ACTION_CONSTRAINTS ALIAS POSTCONDITION CHECK_DEADLOCK
    """
)
"""Words of TLC's configuration files."""
STRUCTURE = _words(
    """
    Init Next Spec UnfairSpec Fairness vars TypeOK NoMistake Some None FloorDiv FloorMod any at
    """
) | {f"{name}{depth}" for name in ("any", "at") for depth in range(1, 10)}
"""Names that the export itself uses."""


class TlaNames:
    """Unique identifiers of one module; parameters and other bound names may be reused in disjoint scopes."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {*RESERVED, *STANDARD, *CONFIGURATION, *STRUCTURE, *taken}
        self._bound: dict[str, str] = {}

    def new(self, text: str) -> str:
        """An unused identifier as similar to `text` as possible."""
        base = identifier(text)
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name

    def bound(self, text: str) -> str:
        """The identifier of a parameter or another bound name: the same for the same text, and different from every
        declared one."""
        if text not in self._bound:
            self._bound[text] = self.new(text)
        return self._bound[text]


def identifier(text: str) -> str:
    """`text` with letters, digits and underscores only, as TLA+ has them in identifiers."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", text)
    if not re.search("[A-Za-z]", name):
        name = f"x{name}"
    return f"x_{name}" if name.startswith(("WF_", "SF_")) else name


def field_name(text: str, among: Iterable[str]) -> str:
    """The identifier of a record's field, different from those of the other fields."""
    names: dict[str, str] = {}
    for one in among:
        base = identifier(one)
        base = f"{base}_" if base in RESERVED else base
        while base in names.values():
            base += "_"
        names[one] = base
    return names[text]


def string(text: str) -> str:
    """`text` as a string of TLA+: quotes, backslashes, per cent signs and non-printable ASCII are escaped by their
    numbers."""
    return '"' + "".join(c if " " <= c <= "~" and c not in '"\\%' else f"%{ord(c):x};" for c in text) + '"'
