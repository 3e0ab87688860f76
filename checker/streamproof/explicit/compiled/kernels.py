"""The fixed loops of the search, in the language of `kernel`.

The table holds one word for each known state. A state of one word is there itself, mixed by a bijection so that its bits
are spread: equal entries are equal states, nothing is identified by a hash alone. For wider states an entry is 32 bits of
hash and 32 bits of the state's number plus one, and the state itself is compared in the log, where states lie in the order
of discovery.

An entry's home is ``mulhi(entry, capacity)``: the order of entries is that of the table, so that growing is one pass through
memory, in place, and the capacity need not be a power of two. Collisions go to the next free slot; there is no wrapping
round, a slack at the end takes what is pushed out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamproof.explicit.compiled.words import (
    address,
    bytes_,
    clear,
    copy,
    halves_at,
    invoke,
    mulhi,
    prefetch,
    shorts_at,
    word,
    words,
    words_at,
)

if TYPE_CHECKING:
    # Constants that are filled in when the kernels are translated: words of a state, and places in the control block.
    WORDS = SHARDS = TAG = LOW = NONE = AHEAD = SPAN = 0
    TABLE = CAPACITY = LOG = PARENTS = COUNT = NEXT = LAST = ROOM = MOST_STATES = OUT = ACTIONS = ENDS = FACTS = (
        EXPAND
    ) = 0
    NEWS = BATCH = DEGREE = HASHES = SCRATCH = IDS = FAULTY = OFFSETS = TARGETS = LABELS = EDGES = ME = BOX = RECENT = (
        KEPT
    ) = RECENTLY = STRIDE = 0

CONTROL = (
    "TABLE", "CAPACITY", "LOG", "PARENTS", "COUNT", "NEXT", "LAST", "ROOM", "MOST_STATES", "OUT", "ACTIONS", "ENDS", "FACTS",
    "EXPAND", "NEWS", "BATCH", "DEGREE", "HASHES", "SCRATCH", "IDS", "OFFSETS", "TARGETS", "LABELS", "EDGES",
    "ME", "BOX", "RECENT", "KEPT",
)  # fmt: skip
"""The words of the control block, by position."""
RECENT_STATES = 1 << 16
"""Entries of the table of recent successors, which stays in the processor's second cache."""
GOING, FULL, STOPPED = 0, 1, 2
"""What `search` gives: time is up or the level is done; the table has to grow; a limit or a mistake was met."""


def constants(words_of_state: int, shards: int = 1) -> dict[str, int]:
    """What the upper-case names stand for, for states of so many words in so many tables."""
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
        "STRIDE": 2 if words_of_state == 1 else 1,
    }


def _mix(x: word) -> word:
    """A bijection of words that spreads every bit (the finaliser of MurmurHash3); 0 stays 0."""
    x ^= x >> 33
    x *= 0xFF51AFD7ED558CCD
    x ^= x >> 33
    x *= 0xC4CEB9FE1A85EC53
    x ^= x >> 33
    return x


def _hash(state: words, at: word) -> word:
    """The hash of the state that begins at a word; of one word: the entry itself."""
    h = _mix(state[at])
    if WORDS > 1:
        for k in range(1, WORDS):
            h = _mix(h + state[at + k] + 0x9E3779B97F4A7C15)
    return h


def _home(h: word, capacity: word) -> word:
    """Where the search for an entry begins. What the choice of the table has used up of the hash is shifted out."""
    if WORDS == 1:
        return mulhi(h * SHARDS, capacity)
    return mulhi((h & TAG) * SHARDS, capacity)


def _owner(h: word) -> word:
    """The table that an entry belongs to."""
    if WORDS == 1:
        return mulhi(h, SHARDS)
    return mulhi(h & TAG, SHARDS)


def _same(one: words, at: word, other: words, there: word) -> word:
    """Whether two states are equal."""
    different = 0
    for k in range(WORDS):
        different |= one[at + k] ^ other[there + k]
    return different == 0


def _put(c: words, h: word, state: words, at: word, parent: word, count: word) -> word:
    """Look a state up, and add it as number `count` when it is new. Gives whether it was."""
    table = words_at(c[TABLE])
    log = words_at(c[LOG])
    slot = _home(h, c[CAPACITY])
    if WORDS == 1:
        entry = table[slot]
        while entry != h:
            if entry == 0:
                table[slot] = h
                log[count] = state[at]
                parents = halves_at(c[PARENTS])
                parents[count] = parent
                return 1
            slot += 1
            entry = table[slot]
        return 0
    tag = h & TAG
    entry = table[slot]
    while entry != 0:
        if (entry & TAG) == tag and _same(log, ((entry & LOW) - 1) * WORDS, state, at):
            return 0
        slot += 1
        entry = table[slot]
    table[slot] = tag | (count + 1)
    for k in range(WORDS):
        log[count * WORDS + k] = state[at + k]
    parents = halves_at(c[PARENTS])
    parents[count] = parent
    return 1


def _sift(c: words, states: word) -> word:
    """Hash the successors of a batch of states, and leave out those that a small table of recent ones holds.

    A successor that has been seen has been kept, so what is left out is known. Writes hashes to ``HASHES`` and, to
    ``KEPT``, the source's place in the batch (upper half) and the successor's (lower half); gives how many there are.
    """
    out = words_at(c[OUT])
    ends = halves_at(c[ENDS])
    hashes = words_at(c[HASHES])
    kept = words_at(c[KEPT])
    recent = words_at(c[RECENT])
    i = 0
    k = 0
    for s in range(states):
        end = ends[s]
        while i < end:
            h = _hash(out, i * WORDS)
            hashes[k] = h
            kept[k] = (s << 32) | i
            if WORDS == 1:
                place = h & RECENTLY
                different = recent[place] != h
                recent[place] = h
            else:
                place = (h & RECENTLY) * WORDS
                different = _same(recent, place, out, i * WORDS) == 0
                for j in range(WORDS):
                    recent[place + j] = out[i * WORDS + j]
            k += different
            i += 1
    return k


def search(c: words, batches: word) -> word:
    """Expand so many batches of the level from ``NEXT`` to ``LAST``, and keep the states that are new."""
    out = words_at(c[OUT])
    actions = shorts_at(c[ACTIONS])
    facts = words_at(c[FACTS])
    hashes = words_at(c[HASHES])
    kept = words_at(c[KEPT])
    news = words_at(c[NEWS])
    table = words_at(c[TABLE])
    log = words_at(c[LOG])
    capacity = c[CAPACITY]
    while batches > 0 and c[NEXT] < c[LAST]:
        batches -= 1
        first = c[NEXT]
        count = c[COUNT]
        n = c[LAST] - first
        n = c[BATCH] if n > c[BATCH] else n
        if count + n * c[DEGREE] > c[ROOM]:
            return 1
        n = 1 if count + n * c[DEGREE] > c[MOST_STATES] else n
        done = invoke(c[EXPAND], address(log, first * WORDS), n, first, c[OUT], c[ACTIONS], c[ENDS], c[FACTS])
        total = _sift(c, done)
        for k in range(AHEAD):
            prefetch(table, _home(hashes[k], capacity))
        for k in range(total):
            prefetch(table, _home(hashes[k + AHEAD], capacity))
            if WORDS > 1:
                soon = table[_home(hashes[k + AHEAD // 2], capacity)]
                prefetch(log, (soon & LOW) * WORDS)
            i = kept[k] & LOW
            if _put(c, hashes[k], out, i * WORDS, first + (kept[k] >> 32), count):
                news[actions[i]] += 1
                count += 1
        c[COUNT] = count
        c[NEXT] = first + done
        if facts[FAULTY] != NONE or count > c[MOST_STATES]:
            return 2
    return 0


def scatter(c: words, boxes: words, batches: word) -> word:
    """Expand so many batches of this worker's part of a level, and sort the successors into a box for each table.

    A box is four words: where states, predecessors (32 bits) and instances (16 bits) go, and how many there are. The state
    with number k of table t is called ``k * SHARDS + t`` outside its table. Gives 1 when a box may not hold another batch.
    """
    out = words_at(c[OUT])
    actions = shorts_at(c[ACTIONS])
    hashes = words_at(c[HASHES])
    kept = words_at(c[KEPT])
    facts = words_at(c[FACTS])
    log = words_at(c[LOG])
    while batches > 0 and c[NEXT] < c[LAST]:
        batches -= 1
        first = c[NEXT]
        n = c[LAST] - first
        n = c[BATCH] if n > c[BATCH] else n
        for d in range(SHARDS):
            if boxes[4 * d + 3] + n * c[DEGREE] > c[BOX]:
                return 1
        done = invoke(c[EXPAND], address(log, first * WORDS), n, first, c[OUT], c[ACTIONS], c[ENDS], c[FACTS])
        for sifted in range(_sift(c, done)):
            i = kept[sifted] & LOW
            d = 4 * _owner(hashes[sifted])
            k = boxes[d + 3]
            states = words_at(boxes[d])
            parents = halves_at(boxes[d + 1])
            labels = shorts_at(boxes[d + 2])
            for j in range(WORDS):
                states[k * WORDS + j] = out[i * WORDS + j]
            parents[k] = (first + (kept[sifted] >> 32)) * SHARDS + c[ME]
            labels[k] = actions[i]
            boxes[d + 3] = k + 1
        c[NEXT] = first + done
        if facts[FAULTY] != NONE:
            return 2
    return 0


def gather(c: words, box: words) -> word:
    """Keep the new states of a box, and empty it."""
    states = words_at(box[0])
    parents = halves_at(box[1])
    labels = shorts_at(box[2])
    total = box[3]
    hashes = words_at(c[HASHES])
    news = words_at(c[NEWS])
    table = words_at(c[TABLE])
    log = words_at(c[LOG])
    capacity = c[CAPACITY]
    count = c[COUNT]
    for i in range(total):
        hashes[i] = _hash(states, i * WORDS)
    for i in range(AHEAD):
        prefetch(table, _home(hashes[i], capacity))
    for i in range(total):
        prefetch(table, _home(hashes[i + AHEAD], capacity))
        if WORDS > 1:
            soon = table[_home(hashes[i + AHEAD // 2], capacity)]
            prefetch(log, (soon & LOW) * WORDS)
        if _put(c, hashes[i], states, i * WORDS, parents[i], count):
            news[labels[i]] += 1
            count += 1
    c[COUNT] = count
    box[3] = 0
    return 0


def owners(states: words, n: word, out: bytes_) -> word:
    """Write the table that each of some states belongs to."""
    for i in range(n):
        out[i] = _owner(_hash(states, i * WORDS))
    return 0


def add(c: words, states: words, n: word) -> word:
    """Add initial states, which have no predecessor; gives how many were new."""
    count = c[COUNT]
    for i in range(n):
        if _put(c, _hash(states, i * WORDS), states, i * WORDS, NONE, count):
            count += 1
    fresh = count - c[COUNT]
    c[COUNT] = count
    return fresh


def grow(c: words, before: word, capacity: word, slack: word) -> word:
    """Spread the entries of a table of capacity `before` over a larger one, in place.

    Blocks are moved from the last to the first: an entry goes upwards, into memory that has been read. One that would not
    meets slots that are read later, and is then moved again.
    """
    table = words_at(c[TABLE])
    scratch = words_at(c[SCRATCH])
    end = before + slack
    while end > 0:
        begin = end - SPAN if end > SPAN else 0
        copy(c[SCRATCH], address(table, begin), (end - begin) * 8)
        clear(address(table, begin), (end - begin) * 8)
        for i in range(end - begin):
            entry = scratch[i]
            if entry != 0:
                slot = _home(entry, capacity)
                while table[slot] != 0:
                    slot += 1
                table[slot] = entry
        end = begin
    c[CAPACITY] = capacity
    return 0


def index(c: words, first: word, last: word) -> word:
    """Enter the states of the log from `first` to `last`, which are all different, into the table."""
    table = words_at(c[TABLE])
    log = words_at(c[LOG])
    capacity = c[CAPACITY]
    for i in range(first, last):
        if i + AHEAD < last:
            prefetch(table, _home(_hash(log, (i + AHEAD) * WORDS), capacity))
        h = _hash(log, i * WORDS)
        slot = _home(h, capacity)
        while table[slot] != 0:
            slot += 1
        table[slot] = h if WORDS == 1 else (h & TAG) | (i + 1)
    return 0


def number(c: words, first: word, last: word) -> word:
    """Make a table of entries with their numbers, in ``IDS``: two words a slot. Only states of one word need it."""
    log = words_at(c[LOG])
    ids = words_at(c[IDS])
    capacity = c[CAPACITY]
    for i in range(first, last):
        if i + AHEAD < last:
            prefetch(ids, 2 * _home(_hash(log, i + AHEAD), capacity))
        h = _hash(log, i)
        slot = 2 * _home(h, capacity)
        while ids[slot] != 0:
            slot += 2
        ids[slot] = h
        ids[slot + 1] = i
    return 0


def _find(c: words, h: word, state: words, at: word) -> word:
    """The number of a known state, or `NONE`."""
    slot = _home(h, c[CAPACITY])
    if WORDS == 1:
        ids = words_at(c[IDS])
        slot = 2 * slot
        while ids[slot] != h:
            if ids[slot] == 0:
                return NONE
            slot += 2
        return ids[slot + 1]
    table = words_at(c[TABLE])
    entry = table[slot]
    log = words_at(c[LOG])
    while entry != 0:
        if (entry & TAG) == (h & TAG) and _same(log, ((entry & LOW) - 1) * WORDS, state, at):
            return (entry & LOW) - 1
        slot += 1
        entry = table[slot]
    return NONE


def edges(c: words, batches: word) -> word:
    """Write the steps from the states from ``NEXT`` to ``LAST`` to ``TARGETS`` and ``LABELS``, and their ends to ``OFFSETS``.

    Steps to unknown states are left out. Gives 1 when the next batch may need more than ``ROOM`` steps.
    """
    out = words_at(c[OUT])
    actions = shorts_at(c[ACTIONS])
    ends = halves_at(c[ENDS])
    hashes = words_at(c[HASHES])
    table = words_at(c[TABLE])
    places = words_at(c[IDS] if WORDS == 1 else c[TABLE])
    log = words_at(c[LOG])
    offsets = words_at(c[OFFSETS])
    targets = halves_at(c[TARGETS])
    labels = halves_at(c[LABELS])
    capacity = c[CAPACITY]
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
            prefetch(places, STRIDE * _home(hashes[i], capacity))
        i = 0
        for s in range(done):
            end = ends[s]
            while i < end:
                prefetch(places, STRIDE * _home(hashes[i + AHEAD], capacity))
                if WORDS > 1:
                    prefetch(log, (table[_home(hashes[i + AHEAD // 2], capacity)] & LOW) * WORDS)
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


KERNELS = (
    _mix,
    _hash,
    _home,
    _owner,
    _same,
    _put,
    _sift,
    search,
    scatter,
    gather,
    owners,
    add,
    grow,
    index,
    number,
    _find,
    edges,
)
"""Every kernel, each after those it calls."""
GROUPS = (("search",), ("add", "grow"), ("scatter", "gather", "owners"), ("index",), ("number", "edges"))
"""The kernels that are called from outside; those of a group are compiled together."""
