"""Disturbs recorded runs like real logging, and counts the verdicts of `validate`: correct runs must not be rejected.

Run from the root of the repository: ``python tools/disturb_flink_runs.py [--copies N] [--seed S] [--model NAME]
[--first KIND] RUN ...``.
Each copy of a run gets one to three disturbances: lines of different threads change places, a clock is off, the times of
one file are later than those of the others, a file is missing, a file is rotated, with numbers in either direction or in
the middle of the name, the end of a file is missing, a file was collected twice, times have no date or no fraction or go
over midnight, the context holds an identifier, records were delivered twice, parts of a rotated log overlap, the order
within a millisecond is lost, the newest record comes first, a log is escaped for HTML, another run's job is in the same
session, a logger is off, a search for a job left only lines that name it, files are merged in any order.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

from streamproof.base.errors import InputError
from streamproof.conformance.run_verdict import RunVerdict
from streamproof.conformance.validation import validate_paths

HEAD = re.compile(rb"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)([,.]\d{3})\b")
TASK = re.compile(rb"([0-9a-f]{32}_[0-9a-f]{32}_\d+_\d+)\)?\)? switched from \w+ to (\w+)")
REGISTERED = re.compile(rb" Registered \w+ \w+#\d+@(\w+) ")
CANCELLED = re.compile(rb" from (\w+) to CANCELING")
SPEAKING = re.compile(
    rb"\.(?:runtime\.(?:taskmanager|taskexecutor|jobmaster|executiongraph|resourcemanager|scheduler|io)\.)"
)
ABOUT = re.compile(rb"[0-9a-f]{32}_[0-9a-f]{32}_\d+_\d+")
GRAPH = re.compile(rb"(?:ExecutionGraph|JobMaster) .*?([0-9a-f]{32})_[0-9a-f]{32}_\d+_\d+")
LOGGER = re.compile(rb"[^\n]{19,23} +\w+ +([\w.$]+) ")
JOB = re.compile(rb"(?:Submitting job '.*' \(|for job |Job .* \()([0-9a-f]{32})\b")
MAIN = (b"TaskExecutor ", b"TaskSlotTableImpl ")
MANAGER = (b"ResourceManager ", b"SlotManager ", b"SlotStatusSyncer ")


@dataclass(slots=True)
class Copy:
    """The files of a run: logs as records (a head and its further lines), other files as bytes."""

    logs: dict[str, list[bytes]] = field(default_factory=dict)
    others: dict[str, bytes] = field(default_factory=dict)
    folder: Path = Path()
    """The folder of the original run."""
    last: list[Callable[[], None]] = field(default_factory=list)
    """Changes of the files, applied after the changes of their records."""
    layout: list[Callable[[bytes], bytes]] = field(default_factory=list)
    """Change of the heads of all records, applied last."""
    whole: bool = True
    """Whether no process or part of one is missing: only whole logs can be one session."""

    @classmethod
    def of(cls, folder: Path) -> Copy:
        """Reads a run."""
        copy = cls(folder=folder)
        for file in sorted(folder.iterdir()):
            data = file.read_bytes()
            if re.search(r"\.log(\.[\d-]+)?$", file.name):
                copy.logs[file.name] = records(data)
            else:
                copy.others[file.name] = data
        return copy

    @property
    def traces(self) -> list[str]:
        """Files of the credit agent."""
        return [name for name in self.others if name.endswith((".jsonl", ".ndjson"))]

    def write(self, folder: Path) -> None:
        """Writes the run into an empty folder."""
        for change in self.last:
            change()
        for name, parts in self.logs.items():
            for written in self.layout:
                parts = list(map(written, parts))
            (folder / name).write_bytes(b"".join(parts))
        for name, data in self.others.items():
            (folder / name).write_bytes(data)


def records(data: bytes) -> list[bytes]:
    """The records of a log."""
    found: list[bytes] = []
    for line in data.splitlines(keepends=True):
        if found and not HEAD.match(line):
            found[-1] += line
        else:
            found.append(line)
    return found


def thread(record: bytes) -> tuple[str, bytes] | None:
    """The thread that wrote a record, according to its text; None if several threads write such records."""
    head = record.partition(b"\n")[0]
    task = TASK.search(head)
    if b".taskmanager.Task " in head and task:
        if task[2] == b"CANCELING":
            return "main", b""
        return None if task[2] == b"FAILED" else ("task", task[1])
    if b"Attempting to cancel task" in head or any(name in head for name in MAIN):
        return "main", b""
    registered = REGISTERED.search(head)
    if b"ResultPartitionManager " in head and registered:
        return "task", registered[1]
    if any(name in head for name in MANAGER):
        return "manager", b""
    graph = GRAPH.search(head)
    return ("jobmaster", graph[1]) if graph else None


def may_swap(first: bytes, second: bytes) -> bool:
    """Whether two neighbouring records could have been written in the other order.

    Records of one thread stay in order. So do those of two threads where the first record is written before the second
    thread can act: a task begins after it was received, is cancelled to the end after the request to cancel it, and is
    un-registered after its thread has ended.
    """
    one, other = thread(first), thread(second)
    if one is None or other is None or one == other:
        return False
    mine, yours = set(ABOUT.findall(first[:2000])), set(ABOUT.findall(second[:2000]))
    if {one[0], other[0]} == {"main", "task"} and mine & yours:
        text = first[:2000] + second[:2000]
        if b"Received task " in text or b"Un-registering task" in text or b"Attempting to cancel" in text:
            return False
        cancelled = CANCELLED.search(text)
        return not cancelled or b" to CANCELED" in text or b" to %s" % cancelled[1] in text
    return {one[0], other[0]} in ({"main", "task"}, {"task"}, {"manager", "jobmaster"}, {"jobmaster"})


def swap(copy: Copy, rng: random.Random) -> str:
    """Neighbouring records of different threads change places, up to forty pairs of a log. The agent writes its records
    under a lock, so traces have no such pairs."""
    made = 0
    for parts in copy.logs.values():
        places = [n for n in range(len(parts) - 1) if may_swap(parts[n], parts[n + 1])]
        for place in sorted(rng.sample(places, min(len(places), rng.randint(1, 40)))):
            if may_swap(parts[place], parts[place + 1]):
                parts[place], parts[place + 1] = parts[place + 1], parts[place]
                made += 1
    return f"swap {made} pairs"


def is_aside(record: bytes) -> bool:
    """Whether a record is unrelated to tasks, partitions, slots and the job, so that it commutes with any other."""
    return not (ABOUT.search(record[:2000]) or SPEAKING.search(record.partition(b"\n")[0]))


def linger(copy: Copy, rng: random.Random) -> str:
    """Threads are held up before they write: up to forty records of a log come later than up to twenty of other threads."""
    made = 0
    for parts in copy.logs.values():
        places = [n for n in range(len(parts) - 1) if thread(parts[n])]
        for place in sorted(rng.sample(places, min(len(places), rng.randint(1, 40))), reverse=True):
            passed = 0
            for at in range(place, min(place + rng.randint(1, 20), len(parts) - 1)):
                if is_aside(parts[at + 1]):
                    pass
                elif may_swap(parts[at], parts[at + 1]):
                    passed += 1
                else:
                    break
                parts[at], parts[at + 1] = parts[at + 1], parts[at]
            made += passed > 0
    return f"linger {made} records"


def moved(record: bytes, by: timedelta) -> bytes:
    """A record at another time."""
    head = HEAD.match(record)
    if not head:
        return record
    at = datetime.fromisoformat(head[1].decode()) + by
    text = at.isoformat(sep=chr(head[1][10])).encode()
    return text + record[len(head[1]) :]


def _moved_trace(data: bytes, nanos: int) -> bytes:
    return re.sub(rb'"(ns0?)":(\d+)', lambda m: b'"%s":%d' % (m[1], max(0, int(m[2]) + nanos)), data)


def process(name: str) -> str:
    """The process that wrote a file; all parts of a rotated log have the same process."""
    return name.partition(".")[0]


def _later(copy: Copy, name: str, seconds: int) -> None:
    """Moves all that the process of a file wrote to a later time."""
    for log in copy.logs:
        if process(log) == process(name):
            copy.logs[log] = [moved(r, timedelta(seconds=seconds)) for r in copy.logs[log]]
    if name in copy.others:
        copy.others[name] = _moved_trace(copy.others[name], seconds * 10**9)


def shift(copy: Copy, rng: random.Random) -> str:
    """The clock of one process is off, by up to two hours either way."""
    seconds = round(rng.choice((-1, 1)) * rng.choice((1, 20, 600, 7200)) * rng.uniform(0.1, 1))
    name = rng.choice(sorted(copy.logs) + copy.traces)
    _later(copy, name, seconds)
    return f"shift {process(name)} by {seconds} s"


def delay(copy: Copy, rng: random.Random) -> str:
    """One process's log arrives late: a collector has written its own times over those of the process."""
    name = rng.choice(sorted(copy.logs) or copy.traces)
    seconds = round(rng.uniform(1, 90))
    _later(copy, name, seconds)
    return f"delay {process(name)} by {seconds} s"


def drop(copy: Copy, rng: random.Random) -> str:
    """A file is missing. Of a JobManager's rotated log only the oldest or the newest part: a missing middle part without a
    gap in the numbers cannot be distinguished from lines that Flink did not write."""
    parts = {n for n in copy.logs if "taskmanager" not in n and "taskexecutor" not in n and n[-1].isdigit()}
    files = sorted(copy.logs.keys() - {n for n in parts if not n.endswith(".1")})
    files += [n for n in copy.others if n in copy.traces or n.startswith("rest-")]
    name = rng.choice(files)
    if len(copy.logs) + len(copy.traces) > 1 or name.startswith("rest-"):
        copy.logs.pop(name, None)
        copy.others.pop(name, None)
    return f"drop {name}"


def split(copy: Copy, rng: random.Random) -> str:
    """A file is rotated: its older part gets a number."""
    name = rng.choice(sorted(copy.logs) + copy.traces)
    if name in copy.logs and name.endswith(".log") and f"{name}.1" not in copy.logs:
        parts = copy.logs[name]
        place = rng.randint(0, len(parts))
        copy.logs[f"{name}.1"], copy.logs[name] = parts[:place], parts[place:]
    elif name in copy.others:
        lines = copy.others[name].splitlines(keepends=True)
        place = rng.randint(0, len(lines))
        copy.others[name] = b"".join(lines[:place])
        stem, _, ending = name.partition(".")
        copy.others[f"{stem}-later.{ending}"] = b"".join(lines[place:])
    return f"split {name}"


def cut(copy: Copy, rng: random.Random) -> str:
    """The end of a file is missing, from within a line or after one. An older part of a rotated log is cut within a line: a
    cut after a line cannot be distinguished from lines that Flink did not write."""
    name = rng.choice(sorted(copy.logs) + copy.traces)
    data = b"".join(copy.logs[name]) if name in copy.logs else copy.others[name]
    data = data[: rng.randint(len(data) // 4, len(data))]
    if name in copy.logs and name[-1].isdigit():
        data = data.rstrip(b"\n")[:-1]
    elif rng.random() < 0.5:
        data = data[: data.rfind(b"\n") + 1]
    if name in copy.logs:
        copy.logs[name] = records(data)
    else:
        copy.others[name] = data
    return f"cut {name} after {len(data)} bytes"


def rotate(copy: Copy, rng: random.Random) -> str:
    """Logs are rotated: their parts count upwards or downwards, or have a date in their names."""
    number, share, seed = rng.randint(2, 6), rng.choice((0.5, 1)), rng.random()
    style = rng.choice(("{}.log.{up}", "{}.log.{down}", "{}-2026-11-21-{up}.log", "{}.log.2026-11-21-{down}",
                        "{}.{up}.log", "{}-{down}.log"))  # fmt: skip

    def rotated() -> None:
        own = random.Random(seed)
        whole = [n for n in copy.logs if n.endswith(".log") and not any(o.startswith(f"{n}.") for o in copy.logs)]
        for name in own.sample(whole, int(share * len(whole))):
            parts = copy.logs[name]
            cuts = [0, *sorted(own.randint(0, len(parts)) for _ in range(number)), len(parts)]
            for at in range(number):
                older = style.format(name.removesuffix(".log"), up=at + 1, down=number - at)
                copy.logs[older] = parts[cuts[at] : cuts[at + 1]]
            copy.logs[name] = parts[cuts[-2] :]

    if rotated.__name__ not in {change.__name__ for change in copy.last}:
        copy.last.insert(0, rotated)
    return f"rotate {share:.0%} of the logs into {number + 1} parts as {style}"


def twice(copy: Copy, rng: random.Random) -> str:
    """A file was collected twice, the second time perhaps without its end or its beginning."""
    seed = rng.random()

    def collected() -> None:
        own = random.Random(seed)
        name = own.choice(sorted(copy.logs) + copy.traces)
        if name in copy.logs:
            parts = copy.logs[name]
            place = own.randint(0, len(parts))
            copy.logs[f"collected-{name}"] = own.choice((parts, parts[:place], parts[place:]))
        else:
            copy.others[f"collected-{name}"] = copy.others[name]

    copy.last.append(collected)
    return "twice a file"


def layout(copy: Copy, rng: random.Random) -> str:
    """Times without date, without fraction, or without both; perhaps midnight comes in the middle of the run."""
    date, fraction = rng.choice(((False, True), (True, False), (False, False)))
    times = [head[1].decode() for parts in copy.logs.values() for part in parts if (head := HEAD.match(part))]
    by = timedelta()
    if times and rng.random() < 0.5:
        middle = datetime.fromisoformat(sorted(times)[len(times) // 2])
        by = datetime(middle.year, middle.month, middle.day) + timedelta(days=1) - middle

    def changed(record: bytes) -> bytes:
        head = HEAD.match(record)
        if not head:
            return record
        at = (datetime.fromisoformat(head[1].decode()) + by).isoformat(sep=" ")
        return at[0 if date else 11 :].encode() + (head[2] if fraction else b"") + record[head.end() :]

    if not copy.layout:
        copy.layout.append(changed)
    return f"layout {'with' if date else 'without'} date, {'with' if fraction else 'without'} fraction, {by} later"


def context(copy: Copy, rng: random.Random) -> str:
    """The diagnostic context has an identifier of no job."""
    identifier = b"%032x" % rng.getrandbits(128)
    form = rng.choice((b"\\1[%s] \\2- ", b"\\1\\2[%s] - ", b"\\1\\g<2>%s - ")) % identifier

    def changed(record: bytes) -> bytes:
        return re.sub(rb"^([^\n]{19,23} \w+ +)([\w.$]+ +)\[\] - ", form, record, count=1)

    copy.layout.insert(0, changed)
    return f"context {identifier.decode()}"


def double(copy: Copy, rng: random.Random) -> str:
    """Every record of a file was delivered twice, one after the other."""
    name = rng.choice(sorted(copy.logs) + copy.traces)

    def doubled() -> None:
        if name in copy.logs:
            copy.logs[name] = [record for record in copy.logs[name] for _ in range(2)]
        elif name in copy.others:
            lines = copy.others[name].splitlines(keepends=True)
            copy.others[name] = b"".join(line for line in lines for _ in range(2))

    copy.last.insert(0, doubled)
    return f"double {name}"


def again(copy: Copy, rng: random.Random) -> str:
    """Up to sixty records of each log were delivered a second time, up to thirty records later."""
    seed = rng.random()

    def delivered() -> None:
        own = random.Random(seed)
        for name, parts in copy.logs.items():
            begin = own.randrange(len(parts) or 1)
            end = min(len(parts), begin + own.randint(2, 60))
            place = min(len(parts), end + own.randint(0, 30))
            copy.logs[name] = [*parts[:place], *parts[begin:end], *parts[place:]]

    copy.last.insert(0, delivered)
    return "again some records"


def overlap(copy: Copy, rng: random.Random) -> str:
    """A file is rotated, and up to ten records are in both parts."""
    name = rng.choice(sorted(copy.logs) + copy.traces)
    if name in copy.logs and name.endswith(".log") and f"{name}.1" not in copy.logs:
        parts = copy.logs[name]
        place = rng.randint(0, len(parts))
        copy.logs[f"{name}.1"], copy.logs[name] = parts[: place + rng.randint(1, 10)], parts[place:]
    return f"overlap {name}"


def shuffle(copy: Copy, rng: random.Random) -> str:
    """A store of logs has lost the order of records with the same time: it returns the newest first, or for large logs
    any."""
    seed, newest = rng.random(), rng.random() < 0.5 or sum(map(len, copy.logs.values())) < 1000

    def shuffled() -> None:
        own = random.Random(seed)
        for name, parts in copy.logs.items():
            times = [head[0] if (head := HEAD.match(part)) else b"" for part in parts]
            places = [(time, -at if newest else own.random(), at) for at, time in enumerate(times)]
            copy.logs[name] = [parts[at] for _, _, at in sorted(places)]

    copy.last.append(shuffled)
    return "shuffle records of a millisecond"


def reverse(copy: Copy, rng: random.Random) -> str:
    """An export has the newest record first, of all logs and traces or of one."""
    names = sorted(copy.logs) + copy.traces
    names = names if rng.random() < 0.5 else [rng.choice(names)]

    def reversed_() -> None:
        for name in names:
            if name in copy.logs:
                copy.logs[name] = copy.logs[name][::-1]
            elif name in copy.others:
                copy.others[name] = b"".join(copy.others[name].splitlines(keepends=True)[::-1])

    copy.last.insert(0, reversed_)
    return f"reverse {len(names)} files"


def escape(copy: Copy, rng: random.Random) -> str:
    """The log of one process was escaped for HTML."""
    name = process(rng.choice(sorted(copy.logs) or [""]))

    def escaped(record: bytes) -> bytes:
        return record.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;").replace(b'"', b"&quot;")

    for log in copy.logs:
        if process(log) == name:
            copy.logs[log] = list(map(escaped, copy.logs[log]))
    return f"escape {name}"


def behead(copy: Copy, rng: random.Random) -> str:
    """The beginning of a log is missing, up to any record: it was deleted, or the collector began late."""
    processes = Counter(map(process, copy.logs))
    single = sorted(name for name in copy.logs if processes[process(name)] == 1)
    if not single:
        return "behead no log: all are rotated"
    name = rng.choice(single)
    place = rng.randrange(len(copy.logs[name]) or 1)
    copy.logs[name] = copy.logs[name][place:]
    copy.whole = False
    return f"behead {name} before record {place}"


def lose(copy: Copy, rng: random.Random) -> str:
    """All files of one process are missing."""
    if not copy.logs:
        return "lose nothing: there are no logs"
    names = sorted({process(name) for name in copy.logs})
    lost = rng.choice(names)
    if len(names) > 1:
        copy.whole = False
        copy.logs = {name: parts for name, parts in copy.logs.items() if process(name) != lost}
    return f"lose {lost}"


def gap(copy: Copy, rng: random.Random) -> str:
    """A log is rotated, and a part that is neither the first nor the last is missing: the numbers of the others show it."""
    if not copy.logs:
        return "gap in nothing: there are no logs"
    name = rng.choice(sorted(copy.logs))
    parts = copy.logs[name]
    if not name.endswith(".log") or any(other.startswith(f"{name}.") for other in copy.logs):
        return f"gap in no log: {name} is rotated"
    copy.whole = False
    cuts = [0, *sorted(rng.randint(0, len(parts)) for _ in range(3)), len(parts)]
    for number in (3, 1):
        copy.logs[f"{name}.{number}"] = parts[cuts[3 - number] : cuts[4 - number]]
    copy.logs[name] = parts[cuts[3] :]
    return f"gap in {name} from record {cuts[1]} to {cuts[2]}"


def session(copy: Copy, rng: random.Random) -> str:
    """A second job, that of another run, ran in the same session: both are in one JobManager's log."""

    def master(run: Copy) -> list[str]:
        return [n for n in run.logs if b"executiongraph.ExecutionGraph " in b"".join(run.logs[n])]

    beside = sorted(f for f in copy.folder.parent.iterdir() if f.is_dir())
    others = [f for f in beside if f.name != copy.folder.name and f.name not in UNREAD]
    other = Copy.of(rng.choice(others)) if others else copy
    mine, theirs = master(copy), master(other)
    if (
        not copy.whole
        or len(mine) != 1
        or len(theirs) != 1
        or copy.traces
        or other.traces
        or copy.folder == other.folder
    ):
        return "session of no other job"
    copy.logs[mine[0]] = [r for parts in sorted([copy.logs[mine[0]], other.logs[theirs[0]]]) for r in parts]
    copy.logs |= {f"other-{name}": parts for name, parts in other.logs.items() if name not in theirs}
    copy.others |= {name: data for name, data in other.others.items() if name.startswith("rest-")}
    return f"session with {other.folder.name}"


def silence(copy: Copy, rng: random.Random) -> str:
    """A logger is off in all processes: all its lines are gone. Left out are loggers with one line, and the one of failed
    checkpoints, of which few are pending at a time: such a log equals one from which a single line was removed."""
    loggers = Counter(head[1] for parts in copy.logs.values() for part in parts if (head := LOGGER.match(part)))
    several = sorted(x for x, n in loggers.items() if n > 1 and not x.endswith(b".CheckpointFailureManager"))
    if not several:
        return "silence no logger"
    off = rng.choice(several)
    copy.whole = False

    def is_of_other(record: bytes) -> bool:
        head = LOGGER.match(record)
        return head is None or head[1] != off

    for name, parts in copy.logs.items():
        copy.logs[name] = list(filter(is_of_other, parts))
    return f"silence {off.decode()}"


def search(copy: Copy, rng: random.Random) -> str:
    """Only the lines that name a job are left, as a search for its identifier gives them; of all logs or of one."""
    jobs = sorted({found[1] for parts in copy.logs.values() for part in parts if (found := JOB.search(part))})
    if not jobs:
        return "search for no job"
    job, one = rng.choice(jobs), rng.random() < 0.3
    copy.whole = False
    for name in rng.sample(sorted(copy.logs), 1) if one else list(copy.logs):
        lines = b"".join(copy.logs[name]).splitlines(keepends=True)
        copy.logs[name] = records(b"".join(line for line in lines if job in line))
    return f"search for {job.decode()} in {'one log' if one else 'all logs'}"


def _parts(parts: list[bytes], rng: random.Random) -> list[list[bytes]]:
    """Up to four parts of a log, each of at least two seconds and ten records."""
    times = [datetime.fromisoformat(head[1].decode()) for part in parts if (head := HEAD.match(part))]
    cuts = [0]
    for at in sorted(rng.randint(0, len(parts)) for _ in range(3)) if len(times) == len(parts) else ():
        if min(at - cuts[-1], len(parts) - at) >= 10 and (
            min(times[at] - times[cuts[-1]], times[-1] - times[at]) >= timedelta(seconds=2)
        ):
            cuts.append(at)
    return [parts[one:other] for one, other in pairwise([*cuts, len(parts)])]


def merge(copy: Copy, rng: random.Random) -> str:
    """The files of each process, or of all, are one file, in any order; a log is perhaps rotated before, into parts of at
    least two seconds."""
    seed, parted, every = rng.random(), rng.random() < 0.7, rng.random() < 0.5

    def merged() -> None:
        own = random.Random(seed)
        files: dict[str, list[list[bytes]]] = {}
        for name in sorted(copy.logs):
            several = _parts(copy.logs[name], own) if parted else [copy.logs[name]]
            files.setdefault("all" if every else process(name), []).extend(several)
        copy.logs = {}
        for name, several in files.items():
            own.shuffle(several)
            copy.logs[f"{name}.log"] = [record for part in several for record in part]

    copy.last.insert(0, merged)
    return f"merge the files of {'all processes' if every else 'each process'}"


UNREAD = ("json-layout",)
"""Recorded runs in a layout that is not read."""
DISTURBANCES: Sequence[Callable[[Copy, random.Random], str]] = (
    swap, linger, shift, delay, drop, split, cut, rotate, twice, layout, context,
    double, again, overlap, shuffle, reverse, escape, session, behead, lose, gap, silence, search, merge,
)  # fmt: skip
PARTIAL = (behead, lose, gap)
"""Disturbances that remove records of a process: what is missing may explain what is there."""
FILTERED = (silence, search, merge)
"""Disturbances that remove records of one kind, or move whole files."""
HARMLESS = frozenset({"swap", "linger", "shift", "delay", "twice", "layout", "context", "double", "escape"})
"""Disturbances that remove no information: the verdict must not change."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One disturbed copy: the run, its disturbances, and the verdicts."""

    run: str
    seed: int
    done: tuple[str, ...]
    verdicts: tuple[str, ...]
    reasons: tuple[str, ...]

    @property
    def harmless(self) -> bool:
        """Whether the copy has all information of the original run."""
        return all(text.partition(" ")[0] in HARMLESS for text in self.done)

    @property
    def rejected(self) -> bool:
        """Whether anything of the run was rejected."""
        return not {"rejected", "error"}.isdisjoint(self.verdicts)


def outcome(
    run: Path,
    seed: int,
    folder: Path,
    model: str | None = None,
    first: Sequence[Callable[[Copy, random.Random], str]] = DISTURBANCES,
) -> Outcome:
    """Disturbs a copy of a run in an empty folder and judges it, against one model or all that have records. `first` are
    the possible first disturbances."""
    rng = random.Random(seed)
    copy = Copy.of(run)
    # What one lost order within a millisecond explains is not seen in one attempt alone.
    others = DISTURBANCES if first is DISTURBANCES else [d for d in DISTURBANCES if d is not shuffle]
    done = tuple(rng.choice(others if at else first)(copy, rng) for at in range(rng.randint(1, 3)))
    copy.write(folder)
    found: Sequence[RunVerdict] = ()
    with suppress(InputError):  # nothing is left
        found = validate_paths([folder], model=model)
    wrong = tuple(
        f"{v.title}: {v.reason} ({v.rejection.event.loc if v.rejection and v.rejection.event else None})"
        for v in found
        if v.answer not in ("accepted", "inconclusive")
    )
    return Outcome(run.name, seed, done, tuple(v.answer for v in found), wrong)


def outcomes(
    runs: Sequence[Path],
    copies: int,
    first: int = 0,
    model: str | None = None,
    disturbances: Sequence[Callable[[Copy, random.Random], str]] = DISTURBANCES,
) -> Iterator[Outcome]:
    """`copies` disturbed copies, of the runs in turn; the first disturbance of each is one of `disturbances`."""
    for number in range(copies):
        with tempfile.TemporaryDirectory() as folder:
            yield outcome(runs[number % len(runs)], first + number, Path(folder), model, disturbances)
            shutil.rmtree(folder, ignore_errors=True)
            Path(folder).mkdir(exist_ok=True)


def table(found: Iterable[Outcome]) -> str:
    """Verdicts of jobs and channels by kind of disturbance, as Markdown."""
    counts: Counter[tuple[str, str]] = Counter()
    for o in found:
        for kind in {text.partition(" ")[0] for text in o.done}:
            counts.update((kind, verdict) for verdict in o.verdicts)
            counts[kind, "copies"] += 1
    columns = ("copies", "accepted", "inconclusive", "rejected")
    rows = [
        f"| {kind} | {' | '.join(str(counts[kind, column]) for column in columns)} |"
        for kind in dict.fromkeys(d.__name__ for d in DISTURBANCES)
    ]
    return "\n".join([f"| disturbance | {' | '.join(columns)} |", "|---|--:|--:|--:|--:|", *rows])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--copies", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model")
    first = {"any": DISTURBANCES, "partial": PARTIAL, "filtered": FILTERED, **{d.__name__: (d,) for d in DISTURBANCES}}
    parser.add_argument("--first", choices=first, default="any", help="the first disturbance of each copy")
    given = parser.parse_args()
    found = []
    for o in outcomes(given.runs, given.copies, given.seed, given.model, first[given.first]):
        found.append(o)
        if o.rejected:
            print(f"{o.run}, seed {o.seed}: {'; '.join(o.done)}: {'; '.join(o.reasons)[:700]}", flush=True)
    print(table(found))


if __name__ == "__main__":
    main()
