"""Compiled representatives of the orbits of a symmetric system: every successor is replaced by that of its orbit.

``represent(states, n, 0)`` replaces packed states. If states consist of parts for each member of a sort, the parts are
sorted; otherwise the representative is the least of all images of the state.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamproof.base.errors import TooLarge
from streamproof.explicit.compiled.packed_states import BitField, Emitter, Layout
from streamproof.explicit.compiled.steps import over_states
from streamproof.explicit.reductions.images import liveness, origins
from streamproof.explicit.reductions.renaming import Renaming
from streamproof.explicit.reductions.symmetry import Symmetry
from streamproof.system.sorts import EnumSort, default

LARGEST = 20_000
"""Largest number of fields of all images of a state."""


def represented(expand: str, layout: Layout, symmetry: Symmetry) -> str:
    """The successor function `expand`, followed by the replacement of the successors; and ``represent``."""
    names = ("states", "n", "number", "out", "actions", "ends", "facts")
    given = ", ".join(f"i64 %{name}" for name in names)
    return f"""{represent_code(layout, symmetry)}{expand.replace("@expand(", "@every(", 1)}
define i64 @expand({given}) nounwind {{
entry:
 %done = call i64 @every({given})
 %ends.p = inttoptr i64 %ends to ptr
 %last = sub i64 %done, 1
 %place = getelementptr i32, ptr %ends.p, i64 %last
 %half = load i32, ptr %place
 %total = zext i32 %half to i64
 %some = icmp ne i64 %total, 0
 br i1 %some, label %replace, label %fine
replace:
 %nothing = call i64 @represent(i64 %out, i64 %total, i64 0)
 br label %fine
fine:
 ret i64 %done
}}
"""


def represent_code(layout: Layout, symmetry: Symmetry) -> str:
    """``represent``, which replaces each of at least one state. Raises `TooLarge` for too many images."""

    def write(out: Emitter, _: int, same: Symmetry, __: int) -> None:
        code = _Representative(out, layout, same)
        words = code.by_trying() if same.blocks is None else code.by_sorting(same.blocks)
        base = out.new(f"mul i64 %at, {layout.words}")
        for word, value in enumerate(words):
            at = out.new(f"add i64 {base}, {word}")
            place = out.new(f"getelementptr i64, ptr %states.p, i64 {at}")
            out.line(f"store i64 {value}, ptr {place}")

    return over_states(layout, [symmetry], "represent", write)


class _Representative:
    def __init__(self, out: Emitter, layout: Layout, symmetry: Symmetry) -> None:
        self._out, self._symmetry = out, symmetry
        self._fields = [layout.fields[leaf.name] for leaf in symmetry.system.variables]
        self._words = list(out.current)
        self._read: dict[int, str] = {}

    def _code(self, at: int) -> str:
        """The code in the field of a leaf."""
        if at not in self._read:
            self._read[at] = self._part(self._words[self._fields[at].word], self._fields[at])
        return self._read[at]

    def _part(self, word: str, field: BitField) -> str:
        down = self._out.new(f"lshr i64 {word}, {field.shift}") if field.shift else word
        return self._out.new(f"and i64 {down}, {(1 << field.bits) - 1}")

    def _replaced(self, codes: dict[int, str]) -> list[str]:
        """The words of the state with other codes in some fields."""
        out, words = self._out, list(self._words)
        for word in range(len(words)):
            mine = [at for at in codes if self._fields[at].word == word]
            gone = sum(self._fields[at].mask for at in mine)
            if mine:
                words[word] = out.new(f"and i64 {words[word]}, {~gone}")
            for at in mine:
                moved = out.new(f"shl i64 {codes[at]}, {self._fields[at].shift}")
                words[word] = out.new(f"or i64 {words[word]}, {moved}")
        return words

    def _greater(self, one: Sequence[str], other: Sequence[str]) -> str:
        """Whether some words are greater than others, the first ones deciding first."""
        out, found = self._out, "false"
        for a, c in zip(reversed(one), reversed(other), strict=True):
            more, same = out.new(f"icmp ugt i64 {a}, {c}"), out.new(f"icmp eq i64 {a}, {c}")
            found = out.new(f"select i1 {same}, i1 {found}, i1 {more}")
        return found

    def by_sorting(self, blocks: Sequence[Sequence[Sequence[int]]]) -> list[str]:
        """Sorts the parts of the members."""
        codes: dict[int, str] = {}
        for rows in blocks:
            keys = [self._key(row) for row in rows]
            # Bubble sort: the network of exchanges has no branches.
            for end in range(len(keys) - 1, 0, -1):
                for at in range(end):
                    keys[at], keys[at + 1] = self._sorted(keys[at], keys[at + 1])
            for row, key in zip(rows, keys, strict=True):
                for at, (word, shift) in zip(row, self._places(row), strict=True):
                    field = self._fields[at]
                    codes[at] = self._part(key[word], BitField(field.sort, 0, shift, field.bits, field.low))
        return self._replaced(codes)

    def _places(self, row: Sequence[int]) -> list[tuple[int, int]]:
        """For each leaf of a part, its word and its place there."""
        found, word, shift = [], 0, 0
        for at in row:
            if shift + self._fields[at].bits > 64:
                word, shift = word + 1, 0
            found.append((word, shift))
            shift += self._fields[at].bits
        return found

    def _key(self, row: Sequence[int]) -> list[str]:
        """The codes of a part in as few words as possible."""
        places = self._places(row)
        key = ["0"] * (places[-1][0] + 1 if places else 1)
        for at, (word, shift) in zip(row, places, strict=True):
            key[word] = self._out.new(f"or i64 {key[word]}, {self._out.new(f'shl i64 {self._code(at)}, {shift}')}")
        return key

    def _sorted(self, one: list[str], other: list[str]) -> tuple[list[str], list[str]]:
        turned = self._greater(one, other)
        less = [self._out.new(f"select i1 {turned}, i64 {c}, i64 {a}") for a, c in zip(one, other, strict=True)]
        more = [self._out.new(f"select i1 {turned}, i64 {a}, i64 {c}") for a, c in zip(one, other, strict=True)]
        return less, more

    def by_trying(self) -> list[str]:
        """The least of all images."""
        symmetry = self._symmetry
        if symmetry.order * len(self._fields) > LARGEST:
            raise TooLarge(
                f"a state of {len(self._fields)} parts has {symmetry.order:,} images, too many for compiled code",
                remedy="check the model without --symmetry, or with --tier python alone",
            )
        best = list(self._words)
        alive = liveness(symmetry.original)
        for renaming in list(symmetry.renamings())[1:]:
            codes: dict[int, str] = {}
            for at, source in enumerate(origins(symmetry.original, renaming)):
                sort = self._fields[at].sort
                named = isinstance(sort, EnumSort) and sort in renaming
                if self._fields[at].bits and (named or at != source):
                    code = self._code(source)
                    if isinstance(sort, EnumSort) and named:
                        code = self._renamed(sort, renaming, code, self._out.term(alive[source]))
                    codes[at] = code
            image = self._replaced(codes)
            less = self._greater(best, image)
            best = [self._out.new(f"select i1 {less}, i64 {i}, i64 {w}") for w, i in zip(best, image, strict=True)]
        return best

    def _renamed(self, sort: EnumSort, renaming: Renaming, code: str, alive: str) -> str:
        """The code of the image of a name; a meaningless one stays the default."""
        out, found = self._out, str(sort.members.index(default(sort)))
        for old, new in renaming[sort].items():
            here = out.new(f"icmp eq i64 {code}, {sort.members.index(old)}")
            found = out.new(f"select i1 {here}, i64 {sort.members.index(new)}, i64 {found}")
        return out.new(f"select i1 {alive}, i64 {found}, i64 {sort.members.index(default(sort))}")
