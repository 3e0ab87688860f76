"""The kernels of the search, in the language of `kernel_compiler`: a hash table of states and a log in order of discovery.

The hash table consists of cache lines of eight words; each known state has one entry. For states of one word, the entry is
the state itself, mixed by a bijection that spreads its bits: equal entries are equal states, so no state is identified by
hash alone. For wider states, an entry is 32 bits of hash and 32 bits of the state's number plus 1, and the state is compared
in the log, which has the states in the order of discovery.

The home of an entry is the line ``mulhi(hash, lines)``. Entries are in the order of their hashes, so growing is one pass
through memory, in place, and the capacity need not be a power of two. If a line is full, its entry goes to the next line with
a free slot, without wrap-around: slack slots at the end take the overflow. A whole line is compared at once; few lookups read
a second line.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamproof.explicit.kernel_builtins import (
        address,
        clear,
        copy,
        halves_at,
        invoke,
        lanes,
        lowest,
        mulhi,
        prefetch,
        shorts_at,
        word,
        words,
        words_at,
    )

    # Constants substituted when the kernels are translated: words per state, and positions in the control block.
    WORDS = SHARDS = TAG = LOW = NONE = AHEAD = SPAN = 0
    TABLE = CAPACITY = LOG = PARENTS = COUNT = NEXT = LAST = ROOM = MOST_STATES = OUT = ACTIONS = ENDS = FACTS = (
        EXPAND
    ) = 0
    NEWS = BATCH = DEGREE = HASHES = SCRATCH = IDS = FAULTY = OFFSETS = TARGETS = LABELS = EDGES = ME = RECENT = (
        KEPT
    ) = RECENTLY = 0

CONTROL = (
    "TABLE", "CAPACITY", "LOG", "PARENTS", "COUNT", "NEXT", "LAST", "ROOM", "MOST_STATES", "OUT", "ACTIONS", "ENDS", "FACTS",
    "EXPAND", "NEWS", "BATCH", "DEGREE", "HASHES", "SCRATCH", "IDS", "OFFSETS", "TARGETS", "LABELS", "EDGES",
    "ME", "RECENT", "KEPT",
)  # fmt: skip
"""The words of the control block, by position."""
RECENT_STATES = 1 << 14
"""Number of entries of the table of recent successors; its hit rate grows slowly with its size, its cost does not."""
GOING, FULL, STOPPED = 0, 1, 2
"""Results of `search`: batches or level done; the table must grow; a limit or an evaluation error."""


def _mix(x: word) -> word:
    """A bijection of words that spreads every bit (the finaliser of MurmurHash3); maps 0 to 0."""
    x ^= x >> 33
    x *= 0xFF51AFD7ED558CCD
    x ^= x >> 33
    x *= 0xC4CEB9FE1A85EC53
    x ^= x >> 33
    return x


def _unmix(x: word) -> word:
    """The inverse of `_mix`."""
    x ^= x >> 33
    x *= 0x9CB4B2F8129337DB
    x ^= x >> 33
    x *= 0x4F74430C22A54005
    x ^= x >> 33
    return x


def _hash(state: words, at: word) -> word:
    """The hash of the state at ``state[at]``; for states of one word, it is the entry."""
    h = _mix(state[at])
    if WORDS > 1:
        for k in range(1, WORDS):
            h = _mix(h + state[at + k] + 0x9E3779B97F4A7C15)
    return h


def _home(h: word, capacity: word) -> word:
    """The position of the home line of an entry. The bits that select the table are shifted out."""
    if WORDS == 1:
        return mulhi(h * SHARDS, capacity >> 3) << 3
    return mulhi((h & TAG) * SHARDS, capacity >> 3) << 3


def _owner(h: word) -> word:
    """The number of the table of an entry."""
    if WORDS == 1:
        return mulhi(h, SHARDS)
    return mulhi(h & TAG, SHARDS)


def _same(one: words, at: word, other: words, there: word) -> word:
    """Whether two states are equal."""
    different = 0
    for k in range(WORDS):
        different |= one[at + k] ^ other[there + k]
    return different == 0


def _lookup(c: words, line: word, h: word, state: words, at: word) -> word:
    """The slot of a state in a line of the table, or `NONE`."""
    table = words_at(c[TABLE])
    if WORDS == 1:
        found = lanes(table, line, NONE, h, h)
        return line + lowest(found) if found else NONE
    log = words_at(c[LOG])
    found = lanes(table, line, TAG, h & TAG, h & TAG)
    # Invariant: `found` has the lanes of this hash that were not compared with the state.
    while found:
        place = line + lowest(found)
        if table[place] & LOW and _same(log, ((table[place] & LOW) - 1) * WORDS, state, at):
            return place
        found &= found - 1
    return NONE


def _free(table: words, line: word) -> word:
    """The free slots of a line, one bit each."""
    return lanes(table, line, NONE, 0, 0)


def _entry(h: word, count: word) -> word:
    """The entry of state number `count`."""
    return h if WORDS == 1 else (h & TAG) | (count + 1)


def _new(c: words, h: word, state: words, at: word, count: word) -> word:
    """Look up a state, and insert it as number `count` if it is new. Returns its slot if new, else `NONE`."""
    table = words_at(c[TABLE])
    line = _home(h, c[CAPACITY])
    # Invariant: the state is in no line from its home to this one. A line is left only if it is full, and entries are
    # never removed: so a free slot ends the search of every later lookup, too.
    while _lookup(c, line, h, state, at) == NONE:
        free = _free(table, line)
        if free:
            table[line + lowest(free)] = _entry(h, count)
            return line + lowest(free)
        line += 8
    return NONE


def _put(c: words, h: word, state: words, at: word, parent: word, count: word) -> word:
    """`_new`, and append a new state to the log, with its predecessor. Returns whether it is new."""
    if _new(c, h, state, at, count) == NONE:
        return 0
    log = words_at(c[LOG])
    for k in range(WORDS):
        log[count * WORDS + k] = state[at + k]
    parents = halves_at(c[PARENTS])
    parents[count] = parent
    return 1


def _prefetch_compared(c: words, h: word) -> word:
    """Prefetch the state in the log that a lookup of this hash will be compared with."""
    table = words_at(c[TABLE])
    line = _home(h, c[CAPACITY])
    found = lanes(table, line, TAG, h & TAG, h & TAG)
    prefetch(words_at(c[LOG]), (table[line + lowest(found | 128)] & LOW) * WORDS)
    return 0


def _unseen(recent: words, h: word, state: words, at: word) -> word:
    """Whether a state is not in the table of recent successors; inserts it."""
    if WORDS == 1:
        place = h & RECENTLY
        different = recent[place] != h
        recent[place] = h
        return different
    place = (h & RECENTLY) * WORDS
    different = _same(recent, place, state, at) == 0
    for j in range(WORDS):
        recent[place + j] = state[at + j]
    return different


def _hash_unseen(c: words, states: word) -> word:
    """Hash the successors of a batch of states, without those in the small table of recent successors.

    A recent successor was kept before, so every successor left out is known. Writes hashes to ``HASHES`` and, to ``KEPT``,
    the position in the batch of the source (upper half) and of the successor (lower half); returns their number.
    """
    out = words_at(c[OUT])
    ends = halves_at(c[ENDS])
    hashes = words_at(c[HASHES])
    kept = words_at(c[KEPT])
    recent = words_at(c[RECENT])
    i = 0
    k = 0
    # Invariant: hashes[:k] and kept[:k] are the successors before `i` that were kept, in order; each one left out
    # equals one that was kept, in this batch or before, and is known therefore when the batch is done.
    for s in range(states):
        end = ends[s]
        while i < end:
            h = _hash(out, i * WORDS)
            hashes[k] = h
            kept[k] = (s << 32) | i
            k += _unseen(recent, h, out, i * WORDS)
            i += 1
    return k


def search(c: words, batches: word) -> word:
    """Expand `batches` batches of the level from ``NEXT`` to ``LAST``, and store the new states."""
    out = words_at(c[OUT])
    actions = shorts_at(c[ACTIONS])
    facts = words_at(c[FACTS])
    hashes = words_at(c[HASHES])
    kept = words_at(c[KEPT])
    news = words_at(c[NEWS])
    table = words_at(c[TABLE])
    log = words_at(c[LOG])
    capacity = c[CAPACITY]
    # Invariant: the states before NEXT are expanded. The log has each known state once, COUNT of them, in the order in
    # which one thread discovers them; the table has exactly their entries.
    while batches > 0 and c[NEXT] < c[LAST]:
        batches -= 1
        first = c[NEXT]
        count = c[COUNT]
        n = c[LAST] - first
        n = c[BATCH] if n > c[BATCH] else n
        # Begun only if all successors of the batch fit: the table never fills within one.
        if count + n * c[DEGREE] > c[ROOM]:
            return 1
        # Near the limit state by state: only the successors of the last one can exceed it.
        n = 1 if count + n * c[DEGREE] > c[MOST_STATES] else n
        done = invoke(c[EXPAND], address(log, first * WORDS), n, first, c[OUT], c[ACTIONS], c[ENDS], c[FACTS])
        total = _hash_unseen(c, done)
        # Hashes from `total` on are of an earlier batch: fetched in vain, and never looked up.
        for k in range(AHEAD):
            prefetch(table, _home(hashes[k], capacity))
        for k in range(total):
            prefetch(table, _home(hashes[k + AHEAD], capacity))
            if WORDS > 1:
                _prefetch_compared(c, hashes[k + AHEAD // 2])
            i = kept[k] & LOW
            if _put(c, hashes[k], out, i * WORDS, first + (kept[k] >> 32), count):
                news[actions[i]] += 1
                count += 1
        c[COUNT] = count
        c[NEXT] = first + done
        if facts[FAULTY] != NONE or count > c[MOST_STATES]:
            return 2
    return 0


def scatter(c: words, boxes: words) -> word:
    """Expand the states from ``NEXT`` to ``LAST``, and distribute their successors to one box per table.

    A box is six words: the addresses of states (of one word: entries), predecessors (32 bits), instances (16 bits), positions
    in the order of discovery (32 bits) and slots in the table, and the number of states. Returns 2 at an evaluation error.
    """
    out = words_at(c[OUT])
    actions = shorts_at(c[ACTIONS])
    hashes = words_at(c[HASHES])
    kept = words_at(c[KEPT])
    facts = words_at(c[FACTS])
    log = words_at(c[LOG])
    order = 0
    # Invariant: the successors of the states before NEXT are in the boxes, each in that of its table, in the order of
    # discovery; `order` is their number.
    while c[NEXT] < c[LAST]:
        first = c[NEXT]
        n = c[LAST] - first
        n = c[BATCH] if n > c[BATCH] else n
        done = invoke(c[EXPAND], address(log, first * WORDS), n, first, c[OUT], c[ACTIONS], c[ENDS], c[FACTS])
        for sifted in range(_hash_unseen(c, done)):
            h = hashes[sifted]
            i = kept[sifted] & LOW
            box = 6 * _owner(h)
            k = boxes[box + 5]
            states = words_at(boxes[box])
            parents = halves_at(boxes[box + 1])
            labels = shorts_at(boxes[box + 2])
            orders = halves_at(boxes[box + 3])
            if WORDS == 1:
                states[k] = h
            else:
                for j in range(WORDS):
                    states[k * WORDS + j] = out[i * WORDS + j]
            parents[k] = first + (kept[sifted] >> 32)
            labels[k] = actions[i]
            orders[k] = order
            boxes[box + 5] = k + 1
            order += 1
        c[NEXT] = first + done
        if facts[FAULTY] != NONE:
            return 2
    return 0


def gather(c: words, box: words, behind: word) -> word:
    """Insert the new states of a box into the table, and remove the others from the box. Returns the number of new states.

    Wider states are compared in the log: until they have their final numbers, they are in the log from number `behind` on.
    """
    states = words_at(box[0])
    parents = halves_at(box[1])
    labels = shorts_at(box[2])
    orders = halves_at(box[3])
    places = words_at(box[4])
    total = box[5]
    hashes = words_at(box[0] if WORDS == 1 else c[HASHES])
    table = words_at(c[TABLE])
    log = words_at(c[LOG])
    capacity = c[CAPACITY]
    fresh = 0
    if WORDS > 1:
        for i in range(total):
            hashes[i] = _hash(states, i * WORDS)
    for i in range(AHEAD):
        prefetch(table, _home(hashes[i], capacity))
    # Invariant: the first `fresh` places of the box are the new states among the first `i`, in their order. fresh <= i,
    # so that nothing is overwritten that was not read.
    for i in range(total):
        prefetch(table, _home(hashes[i + AHEAD], capacity))
        if WORDS > 1:
            _prefetch_compared(c, hashes[i + AHEAD // 2])
        h = hashes[i]
        place = _new(c, h, states, i * WORDS, behind + fresh)
        if place != NONE:
            if WORDS == 1:
                states[fresh] = h
            else:
                places[fresh] = address(table, place)
                for j in range(WORDS):
                    states[fresh * WORDS + j] = states[i * WORDS + j]
                    log[(behind + fresh) * WORDS + j] = states[i * WORDS + j]
            parents[fresh] = parents[i]
            labels[fresh] = labels[i]
            orders[fresh] = orders[i]
            fresh += 1
    c[COUNT] += fresh
    box[5] = fresh
    return fresh


def append(c: words, boxes: words, number: word) -> word:
    """Move the states in a worker's boxes to the log, from number `number` on, in the order of discovery."""
    news = words_at(c[NEWS])
    log = words_at(c[LOG])
    sources = halves_at(c[PARENTS])
    total = 0
    for d in range(SHARDS):
        total += boxes[6 * d + 5]
        halves_at(boxes[6 * d + 3])[boxes[6 * d + 5]] = LOW
        boxes[6 * d + 5] = 0
    last = number + total
    # A merge. Invariant: the log has, up to `number`, the states of all boxes with an order below those at the boxes'
    # positions; the order LOW ends a box.
    while number < last:
        box = 0
        least = LOW + 1
        for d in range(SHARDS):
            order = halves_at(boxes[6 * d + 3])[boxes[6 * d + 5]]
            box = 6 * d if order < least else box
            least = order if order < least else least
        i = boxes[box + 5]
        states = words_at(boxes[box])
        parents = halves_at(boxes[box + 1])
        labels = shorts_at(boxes[box + 2])
        if WORDS == 1:
            log[number] = _unmix(states[i])
        else:
            entry = words_at(words_at(boxes[box + 4])[i])
            entry[0] = _entry(entry[0], number)
            for j in range(WORDS):
                log[number * WORDS + j] = states[i * WORDS + j]
        sources[number] = parents[i]
        news[labels[i]] += 1
        boxes[box + 5] = i + 1
        number += 1
    for d in range(SHARDS):
        boxes[6 * d + 5] = 0
    return 0


def share(c: words, last: word) -> word:
    """Insert those of the first `last` states of the log that belong to this table."""
    table = words_at(c[TABLE])
    log = words_at(c[LOG])
    capacity = c[CAPACITY]
    count = 0
    for i in range(last):
        h = _hash(log, i * WORDS)
        if _owner(h) == c[ME]:
            line = _home(h, capacity)
            while _free(table, line) == 0:
                line += 8
            table[line + lowest(_free(table, line))] = _entry(h, i)
            count += 1
    c[COUNT] = count
    return 0


def add(c: words, states: words, n: word) -> word:
    """Add initial states, which have no predecessor; returns the number of new states."""
    count = c[COUNT]
    for i in range(n):
        if _put(c, _hash(states, i * WORDS), states, i * WORDS, NONE, count):
            count += 1
    fresh = count - c[COUNT]
    c[COUNT] = count
    return fresh


def grow(c: words, before: word, capacity: word, slack: word) -> word:
    """Move the entries of a table of capacity `before` to a larger capacity, in place.

    Blocks are moved from the last to the first: an entry moves upwards, into memory that has been read. An entry that does
    not reaches slots that are read later, and is then moved again.
    """
    table = words_at(c[TABLE])
    scratch = words_at(c[SCRATCH])
    end = before + slack
    # Invariant: an entry whose old slot is `end` or later is in its new line, or in a full one's successor; the slots
    # below `end` have entries of the old table, and perhaps entries that were moved there, which are read and moved
    # once more.
    while end > 0:
        begin = end - SPAN if end > SPAN else 0
        copy(c[SCRATCH], address(table, begin), (end - begin) * 8)
        clear(address(table, begin), (end - begin) * 8)
        for i in range(end - begin):
            if scratch[i] != 0:
                line = _home(scratch[i], capacity)
                while _free(table, line) == 0:
                    line += 8
                table[line + lowest(_free(table, line))] = scratch[i]
        end = begin
    c[CAPACITY] = capacity
    return 0


def index(c: words, first: word, last: word) -> word:
    """Insert the states of the log from `first` to `last`, all distinct, into the table."""
    table = words_at(c[TABLE])
    log = words_at(c[LOG])
    capacity = c[CAPACITY]
    for i in range(first, last):
        if i + AHEAD < last:
            prefetch(table, _home(_hash(log, (i + AHEAD) * WORDS), capacity))
        h = _hash(log, i * WORDS)
        line = _home(h, capacity)
        while _free(table, line) == 0:
            line += 8
        table[line + lowest(_free(table, line))] = _entry(h, i)
    return 0


def number(c: words, first: word, last: word) -> word:
    """Write the numbers of the states from `first` to `last` to ``IDS``, by slot. The entries of wide states have theirs."""
    table = words_at(c[TABLE])
    log = words_at(c[LOG])
    ids = halves_at(c[IDS])
    capacity = c[CAPACITY]
    for i in range(first, last):
        if i + AHEAD < last:
            soon = _home(_hash(log, (i + AHEAD) * WORDS), capacity)
            prefetch(table, soon)
            prefetch(ids, soon)
        h = _hash(log, i * WORDS)
        line = _home(h, capacity)
        place = _lookup(c, line, h, log, i * WORDS)
        while place == NONE:
            line += 8
            place = _lookup(c, line, h, log, i * WORDS)
        ids[place] = i
    return 0


def _find(c: words, h: word, state: words, at: word) -> word:
    """The number of a known state, or `NONE`."""
    table = words_at(c[TABLE])
    line = _home(h, c[CAPACITY])
    place = _lookup(c, line, h, state, at)
    # Invariant: the state is in no line before this one, all of which are full.
    while place == NONE:
        if _free(table, line):
            return NONE
        line += 8
        place = _lookup(c, line, h, state, at)
    if WORDS > 1:
        return (table[place] & LOW) - 1
    ids = halves_at(c[IDS])
    return ids[place]


def edges(c: words, batches: word) -> word:
    """Write the steps of the states from ``NEXT`` to ``LAST`` to ``TARGETS`` and ``LABELS``, and their ends to ``OFFSETS``.

    Steps to unknown states are left out. Returns 1 if the next batch may need more than ``ROOM`` steps.
    """
    out = words_at(c[OUT])
    actions = shorts_at(c[ACTIONS])
    ends = halves_at(c[ENDS])
    hashes = words_at(c[HASHES])
    table = words_at(c[TABLE])
    ids = halves_at(c[IDS])
    log = words_at(c[LOG])
    offsets = words_at(c[OFFSETS])
    targets = halves_at(c[TARGETS])
    labels = shorts_at(c[LABELS])
    capacity = c[CAPACITY]
    # Invariant: TARGETS[:EDGES] and LABELS[:EDGES] are the steps of the states before NEXT, state by state, and OFFSETS
    # has their ends. The table does not change: every step to a known state finds it.
    while batches > 0 and c[NEXT] < c[LAST]:
        batches -= 1
        first = c[NEXT]
        written = c[EDGES]
        n = c[LAST] - first
        n = c[BATCH] if n > c[BATCH] else n
        if written + n * c[DEGREE] > c[ROOM]:
            return 1
        done = invoke(c[EXPAND], address(log, first * WORDS), n, first, c[OUT], c[ACTIONS], c[ENDS], c[FACTS])
        total = ends[done - 1]
        for i in range(total):
            hashes[i] = _hash(out, i * WORDS)
        for i in range(AHEAD):
            prefetch(table, _home(hashes[i], capacity))
        i = 0
        for s in range(done):
            end = ends[s]
            while i < end:
                line = _home(hashes[i + AHEAD], capacity)
                prefetch(table, line)
                if WORDS > 1:
                    _prefetch_compared(c, hashes[i + AHEAD // 2])
                else:
                    prefetch(ids, line)
                found = _find(c, hashes[i], out, i * WORDS)
                if found != NONE:
                    targets[written] = found
                    labels[written] = actions[i]
                    written += 1
                i += 1
            offsets[first + s + 1] = written
        c[EDGES] = written
        c[NEXT] = first + done
    return 0


KERNELS = tuple(kernel for kernel in dict(globals()).values() if inspect.isfunction(kernel))
"""All kernels, the functions above: each after those it calls."""
GROUPS = (("search",), ("add", "grow"), ("scatter", "gather", "append", "share"), ("index",), ("number", "edges"))
"""The exported kernels by group; a group is compiled together."""


def constants(words_of_state: int, shards: int = 1) -> dict[str, int]:
    """The values of the upper-case names, for states of `words_of_state` words in `shards` tables."""
    return {
        **{name: at for at, name in enumerate(CONTROL)},
        "WORDS": words_of_state,
        "SHARDS": shards,
        "TAG": 0xFFFFFFFF00000000,
        "LOW": 0xFFFFFFFF,
        "NONE": (1 << 64) - 1,
        "AHEAD": 32,
        "SPAN": 1 << 16,
        "FAULTY": 3,
        "RECENTLY": RECENT_STATES - 1,
    }
