"""Judging runs in several processes, the largest run first, so that none remains alone at the end.

Archives are unpacked once, before. Results are ordered by run, whichever ends first, so that they are those of one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from streamproof.base.processes import Ended, in_processes
from streamproof.conformance.found_runs import FoundRun, JudgedRun, RunReading, ValidationRequest, judge_readings
from streamproof.conformance.run_verdict import RunVerdict
from streamproof.system import StreamproofError

Found = tuple[FoundRun, Sequence[RunReading]]


def judge_in_processes(
    found: Sequence[Found], request: ValidationRequest, processes: int, on_progress: Callable[[str], None] | None = None
) -> Iterator[JudgedRun]:
    """What was judged of each run, in their order. A process that dies gives its own run the verdict `error`.

    Raises what the first run that cannot be judged raises, whatever it is, after what was judged before it, and
    `SystemFailure` if no process can be started.
    """

    def judged(number: int) -> JudgedRun | StreamproofError:
        run, readings = found[number]
        try:
            return judge_readings(readings, request, again=run.again)
        except StreamproofError as error:
            return error

    numbers = sorted(range(len(found)), key=lambda number: -found[number][0].size)
    results: dict[int, JudgedRun | StreamproofError | Ended | None] = {}
    due = 0
    for number, result in in_processes(judged, numbers, processes, "validation"):
        results[number] = result
        if on_progress is not None:
            on_progress(f"{due + len(results)} of {len(found)} runs")
        while due in results:
            now, (run, readings) = results.pop(due), found[due]
            if isinstance(now, StreamproofError):
                raise now
            if isinstance(now, Ended):
                reason = f"the process that validated it ended ({now.code}); it may have been out of memory"
                now = JudgedRun([RunVerdict(run.name, "", "", "error", reason)])
            yield judge_readings(readings, request, again=run.again) if now is None else now
            due += 1
