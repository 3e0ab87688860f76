"""The jobs of the tables about many simulated runs, each with a check of its results."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from batch_jobs import batch, cached, chain, grouped, narrow, of_subtasks
from graph_jobs import GRAPH_JOBS, graph_job, same
from runtime_runs import EXAMPLES, example
from streamproof.conformance import InputError, judge
from streamproof.conformance.events import logs_read_once
from streamproof.conformance.found_runs import bindings_for
from streamproof_models.scopes.topologies import NAMED
from streamproof_runtime import JobError
from streamproof_runtime.event_log import lines
from streamproof_runtime.jobmaster.regions import regions
from streamproof_runtime.jobs import walks
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.jobs.input_policies import POLICIES
from streamproof_runtime.jobs.job_file import JobFile
from streamproof_runtime.simulator.faults import Fault
from streamproof_runtime.simulator.simulation import Outcome, Simulation
from streamproof_runtime.variants.all_variants import simulated

JOBS = (
    *GRAPH_JOBS,
    "collatz",
    "doubling",
    "readings",
    "sales",
    "batch",
    "cached",
    "memory",
    "shared",
    "narrow",
    "subtasks",
    "walk",
)
TIMEOUTS = (None, 0.05, None, 0, None, 0.3, None, -1, None, 100)
"""Buffer timeouts in milliseconds of virtual time, in turn."""
MICROSECOND = 1_000
CHECKPOINT_INTERVAL = 200 * MICROSECOND
"""Between two checkpoints of the job that takes them."""
LIMIT = 100_000
"""Largest number of steps of a run."""
WHOLE = 4
"""One of so many turns has the larger jobs in their full size."""

Check = Callable[[Outcome], bool]


def job_of(name: str, turn: int) -> tuple[Job, Check]:
    """A job, and whether an outcome has its results. Random inputs and graphs are those of the turn."""
    if name in _BATCHES:
        job, expected = _BATCHES[name](turn)
        return job, lambda o: {n: Counter(records or ()) for n, records in o.results.items()} == expected
    if name == "walk":
        job = walks.walk([*NAMED.values()][turn % len(NAMED)])
        return job, lambda o: walks.visits(job, o.results) == walks.expected(job)
    if name in GRAPH_JOBS:
        module, expected = graph_job(name, turn)
        tolerance = getattr(module, "TOLERANCE", 0)
        return module.job(), lambda o: same({k: v or {} for k, v in o.results.items()}, expected, tolerance)
    if name in _SIZES:
        module = example(name)
        for constant, (whole, part) in _SIZES[name].items():
            setattr(module, constant, whole if turn % WHOLE == 0 else part)
        return module.job(), lambda o: bool(o.results == module.expected())
    file = JobFile(EXAMPLES / f"{name}.py")
    return file.job(), lambda o: not file.wrong(o.results)


def _shared(turn: int) -> tuple[Job, dict[str, Counter[int]]]:
    """The first random job from this one on whose groups are not refused."""
    for seed in range(turn, turn + 100):
        job, expected = grouped(seed)
        with suppress(JobError):
            regions(job)
            return job, expected
    raise AssertionError("all were refused")


def _memory(turn: int) -> tuple[Job, dict[str, Counter[int]]]:
    """Results one after the other, which are kept in memory while there is room."""
    length = 2 + turn % 3
    return chain(length), {"all": Counter(range(length, length + 10))}


_BATCHES: dict[str, Callable[[int], tuple[Job, dict[str, Counter[int]]]]] = {
    "batch": batch,
    "cached": cached,
    "memory": _memory,
    "shared": _shared,
    "subtasks": of_subtasks,
    "narrow": lambda _: (narrow(), {"sorted": Counter(range(1, 41))}),
}


def _more(name: str, seed: int, turn: int) -> dict[str, Any]:
    """Arguments of `Simulation` for a job."""
    found: dict[str, Any] = {"timeout": TIMEOUTS[turn % len(TIMEOUTS)]}
    if name == "readings":
        found["checkpoint_interval"] = CHECKPOINT_INTERVAL
    elif name == "memory":  # less room than all that is stored
        found |= {"executors": 2, "room": 14 + turn % 7}
    elif name == "shared":
        found["executors"] = 4
    elif name == "narrow":  # TaskExecutors that are idle are released
        found |= {"executors": 4, "slots": 1, "idle": 5_000 * MICROSECOND}
    elif name == "word_count" and turn % 4 == 3:
        found["faults_given"] = slow_slots(seed)
    return found


_SIZES: dict[str, dict[str, tuple[Any, Any]]] = {
    "readings": {"NORTH": (range(120), range(60)), "SOUTH": (range(1_000, 1_060), range(1_000, 1_030))},
    "doubling": {"NUMBERS": (20, 6)},
    "sales": {"SALES": (example("sales").SALES, example("sales").SALES[:30])},
}
"""Inputs in their full size and smaller, by job and name."""


def wrong(outcome: Outcome, check: Check) -> str:
    """What is wrong with the outcome itself, if anything."""
    if not outcome.finished:
        return outcome.reason
    return "records lost" if outcome.lost else "" if check(outcome) else "wrong result"


def run_of(seed: int, variant: str | None = None) -> tuple[str, Outcome, str]:
    """The run of a seed: its job, its outcome, and what is wrong with that."""
    name, turn = JOBS[seed % len(JOBS)], seed // len(JOBS)
    job, check = job_of(name, turn)
    more: dict[str, Any] = simulated(variant, POLICIES[turn % len(POLICIES)])
    more |= _more(name, seed, turn)
    level = "severe" if seed % 5 == 4 else "heavy"
    outcome = Simulation(job, seed=seed, level=level, eager=seed % 2 == 1, **more).run(LIMIT)
    return name, outcome, wrong(outcome, check)


def rejections(outcome: Outcome, folder: Path, among: Container[str] | None = None) -> Iterator[str]:
    """The machines that reject a run, of all that judge such logs, or of these."""
    log = folder / "run.ndjson"
    log.write_text("".join(lines(outcome.entries)), encoding="ascii")
    with logs_read_once():
        for model, binding in sorted(bindings_for(log, requested=True), key=lambda pair: pair[0]):
            if among is not None and model not in among:
                continue
            try:
                if any(v.answer == "rejected" for v in judge(binding.plan(log, None), model)):
                    yield model
            except InputError:  # such as two subtasks that are one attempt of one
                yield f"{model} (the log contradicts itself)"


# --- directed faults


def slow_slots(seed: int) -> list[Fault]:
    """Slow connections, so that slot messages overtake those of other connections, and losses of connections and processes
    at the beginning, when slots are requested and offered."""
    draw = random.Random(seed)
    executors = [f"tm-{n}" for n in (1, 2, 3)]
    pairs = [(one, other) for one in ("jobmaster", "rm") for other in executors] + [("jobmaster", "rm")]
    found = [Fault("slow", 0, pair, 60_000 * MICROSECOND, draw.randint(2, 50)) for pair in pairs if draw.random() < 0.5]

    def soon() -> int:
        return draw.randrange(12_000 * MICROSECOND) >> draw.randrange(4)

    found += [Fault("disconnect", soon(), draw.choice(pairs)) for _ in range(draw.randrange(7))]
    crashed = [node for node in ("jobmaster", "rm", *executors) if draw.random() < 0.25]
    found += [Fault("crash", soon(), (node,), draw.randrange(3_000 * MICROSECOND)) for node in crashed]
    return sorted(found, key=lambda fault: fault.at)


def readings() -> Any:
    """The example with fewer readings."""
    module: Any = example("readings")
    module.NORTH, module.SOUTH = range(160), range(1_000, 1_080)
    return module


def crashes(seed: int, executors: int = 3) -> list[Fault]:
    """A slow connection, by which barriers are late, and three crashes of all TaskExecutors; in every second run of the
    JobMaster, too."""
    draw = random.Random(seed)
    slow = Fault("slow", 250 * MICROSECOND, ("jobmaster", f"tm-{draw.randint(1, 3)}"), 20_000 * MICROSECOND, 50)
    at, found = 0, [slow]
    for pause in (draw.randrange(300, 1_500), *(draw.randrange(2_600, 4_000) for _ in range(2))):
        at += pause
        found += [Fault("crash", at * MICROSECOND, (f"tm-{n}",), 300 * MICROSECOND) for n in (1, 2, 3, 4)[:executors]]
    if seed % 2:
        at = draw.randrange(300, 6_000) * MICROSECOND
        found += [Fault("crash", at, ("jobmaster",), draw.randrange(100, 1_000) * MICROSECOND)]
    return sorted(found, key=lambda fault: fault.at)


def crashing(seed: int, variant: str = "", *, unaligned: bool = False) -> tuple[Outcome, str]:
    """A run of the readings that goes on from checkpoints after such crashes, and what is wrong with it."""
    module = readings()
    simulation = Simulation(
        module.job(),
        seed=seed,
        faults_given=crashes(seed),
        checkpoint_interval=random.Random(seed).choice((50, 100, 200)) * MICROSECOND,
        timeout=(None, 1, 0.1)[seed % 3],
        unaligned=unaligned,
        **simulated(variant),
    )
    simulation.records = 1 + seed % 3  # so that the job is still running when something crashes
    outcome = simulation.run(LIMIT)
    return outcome, wrong(outcome, lambda o: bool(o.results == module.expected()))


def counted(graph: str) -> str:
    """A graph with a further operator, to which all operators in outermost loops send."""
    operators, edges, feedback = graph.split(";")
    inside = [word.partition(":")[2].partition("*")[0] for word in operators.split() if re.match(r"\w+:", word)]
    return f"{operators} z;{edges} {' '.join(f'{name}>>z' for name in inside)};{feedback}"


LOOPS = tuple(counted(graph) for graph in NAMED.values() if "~" in graph)


def looping(seed: int, variant: str = "") -> tuple[Outcome, str]:
    """A run of records that walk through a graph with loops, which goes on from checkpoints after such crashes, and what is
    wrong with it."""
    draw = random.Random(seed)
    job = walks.walk(LOOPS[seed % len(LOOPS)], records=draw.randint(6, 14), steps=draw.randint(12, 24))
    simulation = Simulation(
        job,
        seed=seed,
        executors=4,
        slots=4,
        faults_given=crashes(seed, 4),
        checkpoint_interval=draw.choice((20, 50, 100)) * MICROSECOND,
        timeout=(None, 1, 0.1)[seed % 3],
        **simulated(variant, POLICIES[seed % len(POLICIES)]),
    )
    simulation.records = 1 + seed % 3
    outcome = simulation.run(LIMIT)
    return outcome, wrong(outcome, lambda o: walks.visits(job, o.results) == walks.expected(job))
