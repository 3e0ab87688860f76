"""Delivery of log lines from the writing process to the reader: duplicated and reordered lines, copied files.

Log shippers deliver at least once, and stores order lines by times in milliseconds. Lines that Flink writes once (a
transition, a deployment, a decision, with the same time and text) are read once. If many lines are in an order in which
no thread could have written them, the order is unknown.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from itertools import chain, dropwhile, groupby, islice, pairwise
from pathlib import Path
from typing import Any, Final

from streamproof.base.reading import open_regular
from streamproof.base.records import dataclass
from streamproof.conformance.flink.archives import real, size_of
from streamproof.conformance.flink.log_records import Record, plain_text, time_of
from streamproof.conformance.flink.run import Draft
from streamproof.conformance.flink.times import forward, second_of

_PROBED: Final = 5000
"""Number of initial lines that are searched for the first record of a file."""
_ALIKE: Final = 50
"""Maximum number of files with the same first record that are compared, because every pair takes time."""
_OPEN: Final = 64
"""Maximum number of simultaneous comparisons within one file: more occur only if one record is repeated many times."""


@dataclass(slots=True)
class _CopyComparison:
    """A possible copy: its lines, from its first record on, as far as they match the other file."""

    file: Path
    lines: Iterator[bytes]
    expected: bytes | None
    taken: int = 0

    def take(self, text: str) -> bool:
        """Whether the next line of the other file matches. A last line may be truncated."""
        raw, self.expected = self.expected, next(self.lines, None)
        self.taken += 1
        if raw is None:
            return False
        mine = plain_text(raw)
        return mine == text or (self.expected is None and not raw.endswith(b"\n") and text.startswith(mine))


def find_copies(
    files: Sequence[Path],
    read: Callable[[Path], Iterable[bytes]],
    begins: Callable[[bytes], object] = time_of,
    overlaps: dict[Path, Path] | None = None,
) -> dict[Path, Path]:
    """Files whose records are all contained, contiguously, in another file, each with that file. Of two equal files,
    the one with the longer name is the copy. `begins` recognises the first line of a record; `overlaps` gets the files that
    begin with the last lines of another one."""
    copies = _equal(files)
    files = [file for file in files if file not in copies]
    heads: dict[str, list[Path]] = {}
    for file in files:
        found = next(((n, raw) for n, raw in enumerate(islice(read(file), _PROBED)) if begins(raw)), None)
        if found is not None:
            heads.setdefault(plain_text(found[1]), []).append(file)
    within: dict[Path, set[Path]] = {}
    if sum(map(len, heads.values())) > 1:
        for file in files:
            for part in _within(file, heads, read, begins, {} if overlaps is None else overlaps):
                within.setdefault(part, set()).add(file)
    kept = sorted(files, key=lambda file: (len(file.name), file.name))
    for file in reversed(kept):
        holders = [other for other in kept if other in within.get(file, ()) and other not in copies]
        if holders:
            copies[file] = holders[0]
    return copies


def _equal(files: Sequence[Path]) -> dict[Path, Path]:
    """Files with the same bytes as another one, each with the one of the shortest name."""
    sizes: dict[int, list[Path]] = {}
    for file in sorted(files, key=lambda file: (len(file.name), file.name)):
        with suppress(OSError):
            sizes.setdefault(size_of(file), []).append(file)
    found: dict[Path, Path] = {}
    for alike in sizes.values():
        first: dict[bytes, Path] = {}
        for file in alike if len(alike) > 1 and sizes.get(0) is not alike else ():
            with suppress(OSError), open_regular(real(file)) as content:
                kept = first.setdefault(hashlib.file_digest(content, "sha256").digest(), file)
                if kept != file:
                    found[file] = kept
    return found


def _within(
    file: Path,
    heads: dict[str, list[Path]],
    read: Callable[[Path], Iterable[bytes]],
    begins: Callable[[bytes], object],
    overlaps: dict[Path, Path],
) -> set[Path]:
    """The files wholly contained in one file."""
    found: set[Path] = set()
    open_: list[_CopyComparison] = []
    for raw in read(file):
        if not raw or (raw == b"\n" and not open_):
            continue
        text = plain_text(raw)
        for other in heads.get(text, ())[:_ALIKE]:
            if other != file and other not in found and len(open_) < _OPEN:
                records = dropwhile(lambda line: not begins(line), read(other))
                lines = filter(None, records)
                open_.append(_CopyComparison(other, lines, next(lines, None)))
        if open_:
            open_ = [one for one in open_ if one.take(text)]
            found.update(one.file for one in open_ if one.expected is None)
            open_ = [one for one in open_ if one.expected is not None]
    overlaps.update((one.file, file) for one in open_ if one.taken >= _PART)
    return found


_ONCE: Final = frozenset(
    [
        "ckpt.complete",
        "ckpt.declined",
        "ckpt.expired",
        "ckpt.failed",
        "ckpt.trigger",
        "exec.deploy",
        "exec.transition",
        "part.init",
        "part.registered",
        "part.released",
        "tm.final",
        "tm.submit",
        "tm.transition",
    ]
)
"""Events that happen at most once per attempt, partition or checkpoint."""
_IN_STEP: Final = frozenset(
    [
        "ckpt.none",
        "ckpt.restore",
        "ckpt.savepoint",
        "failover.global",
        "failover.global.restart",
        "failover.restart",
        "gate.created",
        "jm.disconnect",
        "job.terminal",
        "job.transition",
        "part.request",
        "region.built",
        "tm.failext",
    ]
)
"""Events that may be repeated, if the time has no fraction or there are several of a kind."""
_COMMON: Final = ("ckpt.none", "gate.created", "job.terminal", "part.request", "region.built", "tm.failext")
"""Events whose repetition leaves nothing open."""
_FEW: Final = 1
"""Maximum number of repeated lines of one log that Flink itself may have written."""
_ADJACENT: Final = 3
"""Minimum number of events between a line and its repetition, if the time does not decide."""
MISPLACED: Final = 2
"""Number of attempts with lines in an impossible order within one timestamp from which the order counts as lost, however
many are in order."""
ORDERED: Final = 12
"""Number of successive lines of one attempt or job and timestamp from which a single pair that is out of order shows that
the order was not lost: lines in any order would have several such pairs, with a probability of 1 - 13/2^12."""

_LATE: Final = 1.0
"""Maximum number of seconds by which threads log late within a file."""
_LOOKED_AT: Final = 1000
"""Number of the first records of a file that decide whether the newest comes first."""
_TURNED: Final = 3
"""Minimum number of times that the time falls in such a file, and this in proportion to how often it rises."""
_FRAME: Final = re.compile(r"\s+at ")
_MORE: Final = re.compile(r"\s*\.\.\. \d+ more")
"""The last line of a part of a stack trace: its frames precede it."""
_PART: Final = 6
"""Minimum number of records of a file that is a part of another one."""
_KEPT: Final = 100_000
"""Number of records of a process that are compared with later ones."""

_ATTEMPT_RANK: Final = {"exec.deploy": 2, "tm.submit": 0, "tm.final": 7}
_OTHER_RANK: Final = {
    "slot.logical.request": ("logical", "lreq", 0), "slot.logical.alloc": ("logical", "lreq", 1),
    "slot.tm.request": ("slot", "alloc", 0), "slot.tm.alloc": ("slot", "alloc", 1),
    "part.init": ("setup", "partition", 0), "part.registered": ("setup", "partition", 1),
    "part.releasing": ("release", "partition", 0), "part.released": ("release", "partition", 1),
}  # fmt: skip
"""Events of one thread about one object, with the thread's work, the object, in the order of writing."""
_OBJECTS: Final = ("lreq", "partition", "alloc", "attempt")
"""Arguments that identify the object of a line, the most specific ones first."""
_PRECEDED: Final = {
    "exec.deploy": ("slot.jm.reserve",),
    "gate.released": ("gate.created",),
    "part.releasing": ("part.registered",),
    "part.request": ("part.reqlocal", "net.partreq"),
    "slot.jm.freereserved": ("slot.jm.reserve",),
    "slot.jm.reserve": ("slot.jm.match",),
    "slot.logical.alloc": ("slot.logical.request",),
    "slot.logical.remove": ("slot.logical.request",),
    "slot.rm.complete": ("slot.rm.pending",),
    "slot.rm.freed": ("slot.rm.complete",),
}
"""Families of lines, each with those of which one precedes it, about the same object and in the same log."""
SAMPLED: Final = 4
"""Minimum number of missing lines that distinguishes a sample from a single removed or changed line."""
_ANY_THREAD: Final = ("tm.transition", "FAILED")
_RANK: Final = {
    "SCHEDULED": 0, "DEPLOYING": 1, "INITIALIZING": 3, "RUNNING": 4, "FINISHED": 6, "FAILED": 6, "CANCELED": 6,
}  # fmt: skip


@dataclass(slots=True)
class Repetitions:
    """Recognises duplicated lines of one process, byte for byte."""

    count: int = 0
    first: tuple[str, int, int] | None = None
    """The first repetition: its file, its line, and the line that it repeats."""
    overlapping: bool = False
    """Whether the repeated line is in another part of the log."""
    _seen: dict[tuple[str, str, int], tuple[int, str, int]] = field(default_factory=dict)
    _states: dict[str, str] = field(default_factory=dict)
    _peaks: list[tuple[int, str]] = field(default_factory=list)
    """Events after which all times are earlier: their numbers and times."""
    _events: int = 0
    _latest: int = -_ADJACENT - 1

    def repeats(self, family: str, args: dict[str, Any], record: Record) -> bool:
        """Whether an event is a repetition, which is omitted."""
        if family not in _ONCE and family not in _IN_STEP:
            return False
        head = record.head
        text = hash((head.level, head.logger, head.thread, head.message, tuple(record.detail)))
        self._events += 1
        known = self._seen.setdefault((family, head.ts, text), (self._events, record.file, record.line))
        while self._peaks and self._peaks[-1][1] <= head.ts:
            self._peaks.pop()
        # A later time in between: the line was delivered late. A clock that was set back earlier does not count.
        back = bool(self._peaks) and self._peaks[-1][0] > known[0]
        self._peaks.append((self._events, head.ts))
        if known[0] == self._events or (not back and self._happens_again(family, args, known[0])):
            self._states |= {args["job"]: args["new"]} if family == "job.transition" else {}
            return False
        if family == "gate.created" and self._events - self._latest > _ADJACENT:
            return False
        precise = family in _ONCE or back or ("." in head.ts and family != "gate.created")
        if not precise and min(self._events - known[0], self._events - self._latest) > _ADJACENT:
            return False
        self._latest = self._events
        self.count += family not in _COMMON
        self.first = self.first or (record.file, record.line, known[2])
        self.overlapping |= known[1] != record.file
        return True

    def _happens_again(self, family: str, args: dict[str, Any], known: int) -> bool:
        """Whether Flink may have written an equal line itself: a job whose state cannot be restored may restart several
        times in a millisecond, and so may several regions of a job, each with its restore."""
        if family == "job.transition":
            return bool(self._states.get(args["job"]) == args["old"])
        if family in ("ckpt.none", "ckpt.restore", "region.built"):
            return self._events - known > 1
        return family.startswith("failover.global") and self._events - known > _ADJACENT

    @property
    def unclear(self) -> bool:
        """Whether Flink may have performed the repeated event twice."""
        return 0 < self.count <= _FEW and not self.overlapping


@dataclass(slots=True)
class LineOrder:
    """Counts the increases and decreases of the time between successive records of a file."""

    _seen: OrderedDict[int, None]
    """Hashes of the latest records of the process; a plain dictionary that loses its first keys finds the first slowly."""
    latest: str = ""
    rises: int = 0
    falls: int = 0
    back: int = 0
    """The first line before which the clock runs back for at least `_PART` records."""
    _before: deque[str] = field(default_factory=lambda: deque(maxlen=_PART))
    """The times of the latest records."""
    _open: tuple[int, str, int] | None = None
    """Where the clock runs back, the time before it, and the number of records since then."""

    def look(self, record: Record) -> None:
        """Adds the next record."""
        ts = record.head.ts
        text = hash((ts, record.head.logger, record.head.message))
        if ts > self.latest:
            self.rises += 1
        elif ts < self.latest:
            self.falls += 1
        if self._open is not None:
            line, last, count = self._open
            self._open = (line, last, count + 1) if ts < last else None
            self.back = self.back or (line if self._open and count + 1 == _PART else 0)
        elif ts < self.latest and len(self._before) > 1 and ts < min(self._before) and text not in self._seen:
            self._open = (record.line, self.latest, 1) if _back(self.latest, ts) > _LATE else None
        self.latest = ts
        self._before.append(ts)
        self._seen[text] = None
        if len(self._seen) > _KEPT:
            self._seen.popitem(last=False)

    @property
    def joined(self) -> int:
        """The first line of a file that was written before the lines that precede it; 0 if there is none. A few records
        at another place are no file, but for those at either end."""
        return self.back or (self._open[0] if self._open is not None and self._open[2] > 1 else 0)

    @property
    def lost(self) -> bool:
        """Whether times decrease about as often as they increase: the lines are not in the order of writing."""
        return self.falls >= 3 and self.falls >= 0.8 * (self.rises - 1)


def oldest_first(records: Iterable[Record]) -> Iterator[Record]:
    """The records of a process in the order of writing: those of a file in which the newest one comes first, as viewers and
    stores of logs show them, are turned round."""
    return chain.from_iterable(_of_file(own) for _, own in groupby(records, key=lambda record: record.file))


def _of_file(records: Iterator[Record]) -> Iterator[Record]:
    first = list(islice(records, _LOOKED_AT))
    falls = sum(other.head.ts < one.head.ts for one, other in pairwise(first))
    rises = sum(other.head.ts > one.head.ts for one, other in pairwise(first))
    records = chain(first, records)
    return _turned([*records]) if falls >= _TURNED and falls > _TURNED * rises else records


def _turned(records: list[Record]) -> Iterator[Record]:
    """Records from the last to the first. If lines were turned round rather than records, the further lines of a record
    precede it, from the last to the first: then they are after the head of another one."""
    traces = [record.detail for record in records if any(map(_FRAME.match, record.detail))]
    turned = sum(
        bool(_FRAME.match(lines[0]) and not _FRAME.match(lines[-1]))
        or any(_MORE.match(one) and _FRAME.match(other) for one, other in pairwise(lines))
        for lines in traces
    )
    if 2 * turned > len(traces):
        details = [record.detail[::-1] for record in records]
        for record, detail in zip(records, [[], *details[:-1]], strict=True):
            record.detail = detail
    records.reverse()
    yield from records


def _back(last: str, first: str) -> float:
    """The number of seconds from one time back to an earlier one; negative over midnight, if they have no date."""
    one, other = second_of(last), second_of(first)
    if one is None or other is None or one[1] != other[1]:
        return 0.0
    return one[0] - other[0] if one[1] else -forward(one[0], other[0])


def unordered(drafts: Iterable[Draft]) -> int:
    """The number of attempts and jobs with lines of one process and timestamp in an order that no thread writes; 0 if it is
    less than `MISPLACED` and enough of such lines are in order."""
    latest: dict[tuple[str, ...], tuple[str, int, str]] = {}
    turned: set[tuple[str, ...]] = set()
    pairs = 0
    for draft in drafts:
        place = _place(draft)
        if place is None:
            continue
        about, rank, old = (draft.process, *place[0]), place[1], place[2]
        before = latest.get(about)
        if before is not None and before[0] == draft.ts:
            pairs += 1
            if before[1] > rank if rank >= 0 else before[2] == str(draft.args["new"]):
                turned.add(about)
        latest[about] = (draft.ts, rank, old)
    return len(turned) if len(turned) >= MISPLACED or pairs < ORDERED else 0


def lacking(drafts: Iterable[Draft]) -> int:
    """The number of lines of a log, complete from its start, without which others are not written: at DEBUG, most."""
    seen: set[tuple[str, str]] = set()
    missing: set[tuple[str, str]] = set()
    families: set[str] = set()
    for draft in drafts:
        about = next((str(draft.args[key]) for key in _OBJECTS if key in draft.args), "")
        before = _PRECEDED.get(draft.family, ())
        if before and not any((family, about) in seen for family in before):
            missing.add((draft.family, about))
        seen.add((draft.family, about))
        families.add(draft.family)
    return sum(families.issuperset(_PRECEDED[family]) for family, _ in missing)


def _place(draft: Draft) -> tuple[tuple[str, str], int, str] | None:
    """The object of an event; its position among the events about the object, or -1 with the state that the event ends."""
    args = draft.args
    new = str(args.get("new", ""))
    if draft.family == "failover.restart":
        return ("ex", args["attempt"]), 7, ""
    if draft.family == "exec.transition" and new == "CANCELING":
        return ("ex", args["attempt"]), 5, ""
    if draft.family == "job.transition":
        return ("job", args["job"]), -1, str(args["old"])
    if (draft.family, args.get("what")) == ("tm.failext", "cancel") or (draft.family, new) == (
        "tm.transition",
        "CANCELING",
    ):
        return ("cancel", args["attempt"]), int(draft.family == "tm.transition"), ""
    # Any thread may log that a task has failed.
    if draft.family in ("exec.transition", "tm.transition") and new in _RANK and (draft.family, new) != _ANY_THREAD:
        return (draft.family[:2], args["attempt"]), _RANK[new], ""
    if draft.family in _ATTEMPT_RANK:
        return (draft.family[:2], args["attempt"]), _ATTEMPT_RANK[draft.family], ""
    if draft.family in _OTHER_RANK:
        work, key, rank = _OTHER_RANK[draft.family]
        about = args[key] if key in args else f"{args['dataset']}#{args['pnum']}@{args['producer']}"
        return (work, about), rank, ""
    return None


def describe(first: tuple[str, int, int], count: int) -> str:
    """A warning about repetitions."""
    more = f", and {count - 1:,} more lines are" if count > 1 else ""
    return f"the line repeats line {first[2]} byte for byte{more}; duplicates are read once"
