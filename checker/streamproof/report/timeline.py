"""The time line of a job: checkpoints, TaskManagers, and execution attempts, a row for each task, or for a large job one for
each vertex.

Rows are stretched to the width of the page; marks and lines over them are placed in percent.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from markupsafe import Markup

from streamproof.base.records import dataclass
from streamproof.report.job_graph import colour, cut
from streamproof.report.rows import duration
from streamproof.report.time_scale import WIDTH, TimeScale, time_scale
from streamproof.system.verdict import number_of

MOST_TASKS: Final = 48
MOST_ATTEMPTS: Final = 400
"""Largest job that is drawn task by task."""
MOST_SINGLE: Final = 16
"""Maximum number of tasks with rows of their own in a large job."""
MOST_EACH: Final = 25
"""Maximum number of attempts in such a row."""
MOST_VERTICES: Final = 24
MOST_LINES: Final = 40
"""Maximum number of restarts with a line over all rows; more are marks in a row of their own."""
MOST_RESTARTS: Final = 12
MOST_REJECTED: Final = 10
MOST_PLACES: Final = 24
"""Maximum number of TaskManagers, those that were lost first."""
_STEPS = 125
"""Number of steps of a vertex's row."""
_HIGH = 14
_FULL = 28
_APART = 30.0
_NEAR = 4.0
"""Signs of one kind are not closer in a row than this."""

_PHASES: Mapping[str, str] = {
    "CREATED": "waiting",
    "SCHEDULED": "waiting",
    "DEPLOYING": "starting",
    "INITIALIZING": "starting",
    "RUNNING": "running",
    "CANCELING": "cancelling",
    "FINISHED": "finished",
    "FAILED": "",
    "CANCELED": "",
}
"""Phases of an attempt, by its state; empty: it is over."""
_AREA = ("running", "starting", "waiting", "cancelling")
_BARS: Mapping[str, tuple[int, int]] = {
    "waiting": (5, 4),
    "starting": (3, 8),
    "running": (1, 12),
    "cancelling": (1, 12),
    "finished": (6, 2),
}
"""Top and height of the bar of a phase."""
_JOB: Mapping[str, str] = {
    "RUNNING": "running",
    **dict.fromkeys(("RESTARTING", "FAILING", "CANCELLING"), "cancelling"),
    **dict.fromkeys(("FINISHED", "FAILED", "CANCELED", "SUSPENDED"), ""),
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A sign over a row or over all rows, at a share of the width."""

    left: float
    text: str
    style: str
    title: str


@dataclass(frozen=True, slots=True)
class TimeRow:
    """A row: without `bar` a heading. `style` is the class of its region."""

    label: str
    title: str = ""
    style: str = ""
    bar: Markup | None = None
    marks: tuple[Mark, ...] = ()


def timeline(
    history: Mapping[str, Any], restarts: Sequence[Mapping[str, Any]], *, hangs: bool = False
) -> dict[str, Any] | None:
    """The drawing, with notes about what it leaves out; None if no attempt has a time. `hangs`: a verdict says that the job
    hangs."""
    timed = [(at, a) for at, a in enumerate(history["attempts"]) if any(t is not None for _, t in a["states"])]
    known = [t for _, a in timed for _, t in a["states"]] + [t for _, t in history["states"]]
    known += [r["decided"] for r in restarts] + [r["at"] for r in history["rejected"]]
    if not history["states"] or _JOB.get(history["states"][-1][0], "waiting"):
        known.append(history["ends"])
    known += [h["at"] for h in history["happenings"]]
    known += [t for c in history["checkpoints"] for t in (c["begun"], c["ended"])]
    times = [t for t in known if t is not None]
    hang = _hang(history, times) if hangs else None
    scale = time_scale(times, hang)
    return None if scale is None or not timed else _Drawing(history, restarts, timed, scale, hang).parts()


def _hang(history: Mapping[str, Any], times: Sequence[float]) -> tuple[float, float] | None:
    """From the last line about a task while the job runs, to the end of the log or the next state of the job."""
    states = [(state, t) for state, t in history["states"] if t is not None]
    running = max((at for at, (state, _) in enumerate(states) if state == "RUNNING"), default=None)
    if running is None:
        return None
    end = states[running + 1][1] if running + 1 < len(states) else max(times)
    moved = [t for a in history["attempts"] for _, t in a["states"] if t is not None and t < end]
    begin = max([states[running][1], *moved])
    return (begin, end) if begin < end else None


@dataclass(frozen=True, slots=True)
class _Drawing:
    history: Mapping[str, Any]
    restarts: Sequence[Mapping[str, Any]]
    attempts: Sequence[tuple[int, Mapping[str, Any]]]
    """Those with a time, with their numbers."""
    scale: TimeScale
    hang: tuple[float, float] | None = None
    """When the job hangs."""

    def parts(self) -> dict[str, Any]:
        """The rows, the marks over them, and the notes."""
        tasks: dict[tuple[int, int], list[tuple[int, Mapping[str, Any]]]] = defaultdict(list)
        for at, attempt in self.attempts:
            tasks[attempt["vertex"], attempt["subtask"]].append((at, attempt))
        large = len(tasks) > MOST_TASKS or len(self.attempts) > MOST_ATTEMPTS
        notes = list(self._left_out())
        rows = [*self._job(), *self._checkpoints(), *self._places(notes)]
        if large:
            rows += self._by_vertex(tasks, notes)
        else:
            for vertex, group in groupby(sorted(tasks), key=lambda task: task[0]):
                rows.append(self._heading(vertex))
                rows += [self._task(task, tasks[task]) for task in group]
        cuts = [
            Mark(c.x / 10, f"{duration(c.seconds)}", "", f"{duration(c.seconds)} without a line are cut")
            for c in self.scale.cuts
        ]
        ticks = [(x / 10, text) for x, text in self.scale.ticks()]
        lines = list(self._lines())
        hang = self._hanging(notes)
        return {
            "rows": rows,
            "ticks": ticks,
            "cuts": cuts,
            "lines": lines,
            "notes": notes,
            "by_vertex": large,
            "hang": hang,
        }

    def _hanging(self, notes: list[str]) -> dict[str, Any] | None:
        if self.hang is None:
            return None
        left, right = (self.scale.x(t) / 10 for t in self.hang)
        length = self.hang[1] - self.hang[0]
        said = f"hangs for {duration(length)}"
        others = self.scale.end - self.scale.start - length - sum(cut.seconds for cut in self.scale.cuts)
        if others * (right - left) < 0.95 * length * (100 - right + left):
            notes.append("The time for which the job hangs is drawn on a smaller scale than the rest.")
        return {"left": left, "width": right - left, "text": said}

    def _left_out(self) -> Iterator[str]:
        history = self.history
        recorded = len(history["attempts"])
        if history["total_attempts"] > recorded:
            total = history["total_attempts"]
            yield f"The verdict's JSON has the first {recorded:,} of {total:,} attempts; the others are not drawn."
        untimed = recorded - len(self.attempts)
        if untimed:
            many = number_of(untimed, "attempt has", "attempts have")
            yield f"{many} no times in the log and {'is' if untimed == 1 else 'are'} not drawn."

    # --- rows

    def _after(self, time: float) -> str:
        return f"+{duration(max(time - self.scale.start, 0.0))}"

    def _spans(self, states: Sequence[tuple[str, float | None]]) -> list[tuple[str, float, float, float]]:
        """The states with known times: each with its time, and the places of its begin and its end."""
        known = [(state, t) for state, t in states if t is not None]
        ends = [*(self.scale.x(t) for _, t in known[1:]), WIDTH]
        return [(state, t, self.scale.x(t), end) for (state, t), end in zip(known, ends, strict=False)]

    def _job(self) -> Iterator[TimeRow]:
        pieces, said = [], []
        for state, t, x, until in self._spans(self.history["states"]):
            said.append(f"{cut(state)} {self._after(t)}")
            if phase := _JOB.get(state, "waiting"):
                pieces.append(_bar(phase, x, until, (3, 8)))
        if not said:
            return
        if self.hang is not None:
            pieces.append(_bar("hang", self.scale.x(self.hang[0]), self.scale.x(self.hang[1]), (1, 12)))
        yield TimeRow("job", ", ".join(said[:20]), "", _svg(pieces, _HIGH))
        decided = {round(self.scale.x(r["decided"])) for r in self.restarts if r["decided"] is not None}
        if len(self.restarts) > MOST_LINES and decided:
            marks = [_line("restart", float(x)) for x in sorted(decided)]
            yield TimeRow("restarts", f"{len(self.restarts):,} decisions to restart", "", _svg(marks, _HIGH))

    def _checkpoints(self) -> Iterator[TimeRow]:
        """Each checkpoint from its beginning to its end, and what is restored."""
        bars, marks, counts = dict[tuple[str, int], Markup](), dict[tuple[str, int], Mark](), Counter[str]()
        for checkpoint in self.history["checkpoints"]:
            begun, ended, outcome = (checkpoint[name] for name in ("begun", "ended", "outcome"))
            counts[outcome] += 1
            if begun is not None or ended is not None:
                x, until = (self.scale.x(ended if t is None else t) for t in (begun, ended or begun))
                style = "stored" if outcome == "completed" else "cancelling"
                bars[style, int(x / _NEAR)] = _bar(style, x, max(until, x + 2), (3, 8))
            if outcome == "failed" and ended is not None:
                said = f"checkpoint {checkpoint['number']} fails {self._after(ended)}"
                x = self.scale.x(ended)
                marks["✗", int(x / _NEAR)] = Mark(x / 10, "✗", "failed", said)
        for happening in self.history["happenings"]:
            if happening["kind"] == "restored" and happening["at"] is not None:
                said = f"{cut(happening['text'])} {self._after(happening['at'])}"
                x = self.scale.x(happening["at"])
                marks["↺", int(x / _NEAR)] = Mark(x / 10, "↺", "restored", said)
        if bars or marks:
            said = ", ".join(f"{n} {outcome}" for outcome, n in counts.items())
            yield TimeRow(
                "state", f"checkpoints: {said or 'none'}", "", _svg(list(bars.values()), _HIGH), tuple(marks.values())
            )

    def _places(self, notes: list[str]) -> Iterator[TimeRow]:
        """Each TaskManager: when it had attempts of the job, when it was lost, and when it came back."""
        at_work: dict[str, list[tuple[float, float]]] = {}
        for _, attempt in self.attempts:
            if attempt["place"]:
                spans = [s for s in self._spans(attempt["states"]) if _PHASES.get(s[0], "waiting") in _AREA[:2]]
                at_work.setdefault(attempt["place"], []).extend((x, until) for *_, x, until in spans)
        turns: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for happening in self.history["happenings"]:
            if happening["process"] and happening["at"] is not None:
                turns[happening["process"]].append(happening)
                at_work.setdefault(happening["process"], [])
        shown = sorted(at_work, key=lambda place: not turns[place])[:MOST_PLACES]
        if at_work:
            yield TimeRow("TaskManagers", "when each had tasks at work, was lost, and came back")
        for place in shown:
            marks, gone, since, said = [], [], None, []
            for turn in turns[place][:MOST_LINES]:
                x, lost = self.scale.x(turn["at"]), turn["kind"] != "returned"
                marks.append(
                    Mark(x / 10, "✗" if lost else "✓", "failed" if lost else "returned", cut(turn["text"], 300))
                )
                said.append(f"{'lost' if lost else 'returns'} {self._after(turn['at'])}")
                if lost:
                    since = x if since is None else since
                elif since is not None:
                    gone.append((since, x))
                    since = None
            if since is not None:
                later = [x for x, _ in at_work[place] if x > since + 1]
                gone.append((since, min(later, default=WIDTH)))
            pieces = [_bar("running", x, until, (1, 12)) for x, until in _joined(at_work[place])]
            pieces += [_bar("gone", x, until, (6, 2)) for x, until in gone]
            title = f"{cut(place)}: {', '.join(said) or 'never lost'}"
            yield TimeRow(place if len(place) < 8 else f"…{place[-6:]}", title, "", _svg(pieces, _HIGH), tuple(marks))
        if len(at_work) > len(shown):
            notes.append(f"{len(shown)} of {len(at_work):,} TaskManagers are drawn, those that were lost first.")

    def _heading(self, vertex: int) -> TimeRow:
        found = self.history["vertices"][vertex]
        return TimeRow(cut(found["name"]), f"{cut(found['name'])}, parallelism {found['parallelism']}")

    def _task(
        self, task: tuple[int, int], attempts: Sequence[tuple[int, Mapping[str, Any]]], label: str = ""
    ) -> TimeRow:
        vertex = self.history["vertices"][task[0]]
        name = f"{cut(vertex['name'])} ({task[1] + 1}/{vertex['parallelism']})"
        region = vertex["regions"][task[1]] if task[1] < len(vertex["regions"]) else None
        marks: list[Mark] = []
        pieces = [self._attempt(at, attempt, name, marks) for at, attempt in attempts]
        said = name if region is None else f"{name}, region {region + 1}"
        short = label or f"{task[1] + 1}/{vertex['parallelism']}"
        return TimeRow(short, said, "" if region is None else colour(region), _svg(pieces, _HIGH), tuple(marks))

    def _attempt(self, at: int, attempt: Mapping[str, Any], name: str, marks: list[Mark]) -> Markup:
        spans = self._spans(attempt["states"])
        pieces, said = [], []
        for state, t, x, until in spans:
            said.append(f"{cut(state)} {self._after(t)}")
            if phase := _PHASES.get(state, "waiting"):
                pieces.append(_bar(phase, x, until, _BARS[phase]))
            elif state == "FAILED":
                marks.append(Mark(x / 10, "✗", "failed", f"{name} attempt {attempt['number']} FAILED {self._after(t)}"))
            else:
                pieces.append(_line("canceled", x))
        begun = spans[0][2]
        pieces.append(_line("begun", begun))
        if attempt["number"]:
            marks.append(Mark(begun / 10, str(attempt["number"]), "number", f"attempt {attempt['number']} begins"))
        for rejected in self.history["rejected"][:MOST_REJECTED]:
            if rejected["attempt"] == at and rejected["at"] is not None:
                marks.append(Mark(self.scale.x(rejected["at"]) / 10, "▲", "rejected", cut(rejected["message"], 300)))
        place = f" on {cut(attempt['place'])}" if attempt["place"] else ""
        return Markup("<g><title>{} attempt {}{}: {}</title>{}</g>").format(
            name, attempt["number"], place, ", ".join(said), Markup().join(pieces)
        )

    # --- a large job

    def _by_vertex(
        self, tasks: Mapping[tuple[int, int], Sequence[tuple[int, Mapping[str, Any]]]], notes: list[str]
    ) -> Iterator[TimeRow]:
        rejected = {r["attempt"] for r in self.history["rejected"]}
        notable = [
            task
            for task, attempts in sorted(tasks.items())
            if any(at in rejected or any(s == "FAILED" for s, _ in a["states"]) for at, a in attempts)
        ]
        notable.sort(key=lambda task: not any(at in rejected for at, _ in tasks[task]))
        vertices = sorted({vertex for vertex, _ in tasks})
        single = notable[:MOST_SINGLE]
        few = f" {len(single)} of the {len(notable):,} tasks that failed or have a rejected line" if notable else ""
        notes.append(
            f"The job has {len(tasks):,} tasks with {len(self.attempts):,} attempts. A row shows how many attempts of a"
            " vertex are in each state at a time, relative to the most of that vertex."
            + (f" Rows of their own have{few}; the others have none." if few else "")
        )
        if len(vertices) > MOST_VERTICES:
            notes.append(f"The first {MOST_VERTICES} of {len(vertices):,} vertices have a row.")
        for vertex in vertices[:MOST_VERTICES]:
            yield self._heading(vertex)
            yield self._area(vertex)
        if single:
            yield TimeRow("tasks that failed or have a rejected line")
        for task in single:
            attempts = tasks[task]
            name = cut(self.history["vertices"][task[0]]["name"], 14)
            yield self._task(task, attempts[-MOST_EACH:], f"{name} {task[1] + 1}")
        if any(len(tasks[task]) > MOST_EACH for task in single):
            notes.append(f"Of these tasks the last {MOST_EACH} attempts are drawn.")

    def _area(self, vertex: int) -> TimeRow:
        """How many attempts of a vertex are in each phase, over time."""
        share = {phase: [0.0] * _STEPS for phase in _AREA}
        failed: set[int] = set()
        width = WIDTH / _STEPS
        count = 0
        for _, attempt in self.attempts:
            if attempt["vertex"] != vertex:
                continue
            count += 1
            for state, _, x, until in self._spans(attempt["states"]):
                phase = _PHASES.get(state, "waiting")
                if state == "FAILED":
                    failed.add(round(x))
                for step in range(int(x / width), min(int(until / width) + 1, _STEPS)) if phase in share else ():
                    share[phase][step] += max(min(until, (step + 1) * width) - max(x, step * width), 0.0) / width
        most = max((sum(share[p][n] for p in _AREA) for n in range(_STEPS)), default=0.0) or 1.0
        floor = [float(_FULL)] * _STEPS
        pieces = []
        for phase in _AREA:
            top = [y - share[phase][n] * _FULL / most for n, y in enumerate(floor)]
            if any(share[phase]):
                pieces.append(Markup('<path class="t-{}" d="{}"/>').format(phase, _stairs(top, floor, width)))
            floor = top
        pieces += [_line("failed", float(x), 8) for x in sorted(failed)]
        found = self.history["vertices"][vertex]
        title = f"{cut(found['name'])}: {count:,} attempts, full height: {most:.3g} at a time"
        return TimeRow(f"×{found['parallelism']}", title, "", _svg(pieces, _FULL))  # noqa: RUF001

    # --- over all rows

    def _lines(self) -> Iterator[Mark]:
        last = -_APART
        few = self.restarts if len(self.restarts) <= MOST_LINES else ()
        for number, restart in enumerate(few, 1):
            if restart["decided"] is None:
                continue
            x = self.scale.x(restart["decided"])
            who = f"{cut(restart['failed'])} failed" if restart["failed"] else "a global failure"
            said = f"restart {number}, {self._after(restart['decided'])}: {who}"
            text, last = (str(number), x) if x - last >= _APART else ("", last)
            yield Mark(x / 10, text, "restart", said)
        for rejected in self.history["rejected"][:MOST_REJECTED]:
            if rejected["at"] is not None:
                yield Mark(
                    self.scale.x(rejected["at"]) / 10, "✗", "rejected", f"rejected: {cut(rejected['message'], 300)}"
                )


def _joined(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The spans in their order, those that overlap or nearly touch as one."""
    found: list[tuple[float, float]] = []
    for x, until in sorted(spans):
        if found and x - found[-1][1] < _NEAR:
            found[-1] = (found[-1][0], max(until, found[-1][1]))
        else:
            found.append((x, until))
    return found


def _svg(pieces: Sequence[Markup], height: int) -> Markup:
    return Markup(
        '<svg class="bar" viewBox="0 0 {:g} {}" height="{}" preserveAspectRatio="none" aria-hidden="true">{}</svg>'
    ).format(WIDTH, height, height, Markup().join(pieces))


def _bar(phase: str, x: float, until: float, place: tuple[int, int]) -> Markup:
    width = round(max(until - x, 1.2), 1)
    return Markup('<path class="t-{}" d="M{:g} {}h{:g}v{}h-{:g}z"/>').format(
        phase, round(x, 1), place[0], width, place[1], width
    )


def _line(style: str, x: float, height: int = _HIGH) -> Markup:
    return Markup('<path class="l-{}" d="M{:g} 0v{}"/>').format(style, round(x, 1), height)


def _stairs(top: Sequence[float], floor: Sequence[float], width: float) -> str:
    """A closed path between two stairs, from left to right along the top, and back along the floor."""
    path = [f"M0 {floor[0]:.1f}"]
    for steps, ends in ((top, range(1, len(top) + 1)), (floor[::-1], range(len(floor) - 1, -1, -1))):
        previous = None
        for value, end in zip(steps, ends, strict=True):
            if previous is None or abs(value - previous) >= 0.05:
                path.append(f"V{value:.1f}H{end * width:g}")
                previous = value
            else:
                path[-1] = f"{path[-1].rpartition('H')[0]}H{end * width:g}"
    return "".join((*path, "z"))
