"""What runs on each push: a bounded time of each test, a share of the long ones, and what failed once more.

Of a test whose cases together need more than `PUSH` seconds, as many stay as fit, evenly spread, or one that needs at
most `ALONE`; the others are long. The mark `push` exempts a test.

A pytest plugin (`tests/conftest.py` loads it) with three options, which `.ci/run` and `make test-durations` use:

    --share NUMBER      one of `SHARES` shares of the long tests, for at most `LIMIT` seconds, then all that are not long
    --again             with --last-failed: list the tests that pass now as unstable
    --write-durations   write `tests/durations.tsv`, and print the seconds of each folder
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

PUSH, ALONE = 1.0, 2.0
"""Seconds of processor time that the cases of one test may need on each push, and a single case of it."""
SHARES = 30
"""Number of shares. Every long test has run after as many pushes of one commit each."""
START = 600.0
"""Seconds after which no further long test is started."""
LIMIT = 840.0
"""Seconds after which a long test that still runs is interrupted: a minute is left to end the run within 15 minutes."""
MOST_AGAIN = 20
"""When more tests than this fail, the cause is none of chance."""
UNKNOWN = 5.0
"""Seconds that a long test without a measured duration is taken to need."""
SINGLE = 10.0
"""Seconds from which a case has a line of its own in the table."""
TABLE = Path(__file__).parents[1] / "durations.tsv"
HEADER = "seconds\tcases\ttest\n"
SECONDS_LEFT = pytest.StashKey[float]()
NAME = pytest.StashKey[str]()
"""The name of a test without the group that pytest-xdist appends."""
OVER = "the time of the share is over"


def read_durations(table: Path) -> dict[str, float]:
    """Measured seconds of processor time of a case by test, or by test and case for a slow one; none without table."""
    if not table.exists():
        return {}
    lines = table.read_text(encoding="utf-8").splitlines()[1:]
    return {test: float(seconds) for seconds, _, test in (line.split("\t", 2) for line in lines)}


def expected(node: str, durations: dict[str, float]) -> float | None:
    """Seconds that a test needs: its own, or those of the other cases of its function; None if none was measured."""
    return durations.get(node, durations.get(_function(node)))


def within_budget(items: Sequence[pytest.Item], durations: dict[str, float]) -> list[pytest.Item]:
    """Those of the tests, in order, that run on each push: unknown ones need no time."""
    functions: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not item.get_closest_marker("long"):
            functions[_function(item.nodeid)].append(item)
    stay = set()
    for cases in functions.values():
        needed = [durations.get(item.nodeid, durations.get(_function(item.nodeid), 0.0)) for item in cases]
        whole, mean = sum(needed), sum(needed) / len(needed)
        number = len(cases) if whole <= PUSH else int(PUSH / mean) or int(mean <= ALONE)
        chosen = {position * len(cases) // number for position in range(number)}
        stay |= {item for position, item in enumerate(cases) if position in chosen or item.get_closest_marker("push")}
    return [item for item in items if item in stay]


def processor_seconds() -> float:
    """Processor time of this process and of those that it waited for."""
    return sum(os.times()[:4])


def divide(durations: Sequence[float], shares: int = SHARES) -> list[int]:
    """The share, 0 to `shares` - 1, of each test: consecutive tests, which have fixtures in common, with equal sums."""
    whole, before, found = sum(durations), 0.0, []
    for seconds in durations:
        found.append(min(shares - 1, int(shares * (before + seconds / 2) / whole)) if whole else 0)
        before += seconds
    return found


def table_text(measured: dict[str, float], long: Iterable[str], kept: dict[str, tuple[int, float]]) -> str:
    """The table: slow cases, functions whose other cases take a second, all that are long, and the lines that are kept."""
    rows = dict(kept)
    functions: dict[str, list[float]] = {}
    for node, seconds in measured.items():
        if seconds >= SINGLE and node != _function(node):
            rows[node] = 1, seconds
        else:
            functions.setdefault(_function(node), []).append(seconds)
    wanted = {_function(node) for node in long}
    for name, cases in functions.items():
        if name in wanted or sum(cases) >= 1.0:
            rows[name] = len(cases), sum(cases) / len(cases)
    return HEADER + "".join(f"{seconds:.1f}\t{cases}\t{test}\n" for test, (cases, seconds) in sorted(rows.items()))


def _function(node: str) -> str:
    return node.partition("[")[0]


def _folder(node: str) -> str:
    return str(Path(node.partition("::")[0]).parent)


def _kept_lines(table: Path, measured: set[str]) -> dict[str, tuple[int, float]]:
    """Lines of files that still exist and of tests that were not measured now."""
    lines = table.read_text(encoding="utf-8").splitlines()[1:] if table.exists() else []
    rows = {test: (int(cases), float(seconds)) for seconds, cases, test in (line.split("\t", 2) for line in lines)}
    functions = {_function(test) for test in measured}
    return {
        test: row
        for test, row in rows.items()
        if _function(test) not in functions and Path(test.partition("::")[0]).exists()
    }


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of this plugin."""
    group = parser.getgroup("long tests")
    group.addoption("--share", type=int, help=f"Number of the share of the long tests, modulo {SHARES}.")
    group.addoption("--share-seconds", type=float, default=START, help="Seconds after which no long test is started.")
    group.addoption("--share-began", type=float, default=0.0, help="Time at which the run began; set by itself.")
    group.addoption("--again", action="store_true", help="List the tests that pass now as unstable.")
    group.addoption("--write-durations", action="store_true", help=f"Write {TABLE.name}.")


def pytest_configure(config: pytest.Config) -> None:
    """All worker processes count from the beginning of the run."""
    config.option.share_began = config.option.share_began or time.time()
    config.pluginmanager.register(Shares(config))


class Shares:
    """What the options do in one run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._share: int | None = config.option.share
        self._durations = read_durations(TABLE)
        self._seconds: dict[str, float] = defaultdict(float)
        self._long: set[str] = set()
        self._cut: dict[str, str] = {}
        self._measured = 0.0

    @pytest.hookimpl(tryfirst=True)  # before the marks are read
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """The long tests of the share first, which balances two workers, then those that are not long."""
        stay = set(within_budget(items, self._durations))
        for item in items:
            item.stash[NAME] = item.nodeid
            if item not in stay and not item.get_closest_marker("long"):
                item.add_marker(pytest.mark.long)
        if self._share is None:
            return
        long = [item for item in items if item.get_closest_marker("long")]
        numbers = divide([self._likely(item) for item in long])
        mine = [item for item, number in zip(long, numbers, strict=True) if number == self._share % SHARES]
        self._config.hook.pytest_deselected(items=[item for item in long if item not in set(mine)])
        items[:] = mine + [item for item in items if not item.get_closest_marker("long")]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Many failures are not repeated."""
        if self._config.option.again and len(session.items) > MOST_AGAIN:
            pytest.exit(f"{len(session.items)} tests failed: more than {MOST_AGAIN} are not repeated", returncode=1)

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # before pytest-timeout reads the limit
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """A long test starts only before the deadline and if it is likely to end in time."""
        self._measured = processor_seconds()
        if self._share is not None and item.get_closest_marker("long"):
            passed = time.time() - self._config.option.share_began
            if passed >= self._config.option.share_seconds or passed + self._likely(item) > LIMIT:
                item.add_marker(pytest.mark.skip(reason=f"not started: {OVER}"), append=False)
            else:
                usual = item.get_closest_marker("timeout")
                left = LIMIT - passed
                if usual is None or not usual.args or usual.args[0] > left:
                    item.stash[SECONDS_LEFT] = left
                    item.add_marker(pytest.mark.timeout(left), append=False)
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """What the end of the share interrupts has no result, unless it had ten times its measured time and ten minutes."""
        report = yield
        before, self._measured = self._measured, processor_seconds()
        vars(report)["measured"] = item.stash[NAME], self._measured - before
        left = item.stash.get(SECONDS_LEFT, LIMIT)
        interrupted = report.failed and SECONDS_LEFT in item.stash and "from pytest-timeout" in report.longreprtext
        usual = expected(item.nodeid, self._durations)
        if interrupted and (usual is None or left < max(START, 10 * usual)):
            report.outcome = "skipped"
            report.longrepr = (str(item.path), 0, f"Skipped: not finished: {OVER}")
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the parts of a test; note what the end of the share left out."""
        name, seconds = getattr(report, "measured", (report.nodeid, 0.0))  # none of a worker that died
        self._seconds[name] += seconds
        if "long" in report.keywords:
            self._long.add(name)
        reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
        if reason.endswith(OVER):
            self._cut[report.nodeid] = reason.removeprefix("Skipped: ").partition(":")[0]

    def pytest_report_header(self) -> list[str]:
        """The share."""
        return [] if self._share is None else [f"long tests: share {self._share % SHARES + 1} of {SHARES}"]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """What of the share did not run, what is unstable, and the seconds of each folder."""
        if self._share is not None:
            terminalreporter.section("long tests")
            done = len(self._long) - len(self._cut)
            terminalreporter.line(
                f"share {self._share % SHARES + 1} of {SHARES}: {done} of {len(self._long)} tests done"
            )
            for node, reason in sorted(self._cut.items()):
                terminalreporter.line(f"{reason}: {node}")
        if self._config.option.again:
            stats = terminalreporter.stats
            failed = {report.nodeid for kind in ("failed", "error") for report in stats.get(kind, ())}
            terminalreporter.section("unstable: failed, then passed alone; to be mended")
            for node in sorted({report.nodeid for report in stats.get("passed", ())} - failed):
                terminalreporter.line(node)
        if self._config.option.write_durations:
            kept = _kept_lines(TABLE, set(self._seconds))
            TABLE.write_text(table_text(self._seconds, self._long, kept), encoding="utf-8")
            terminalreporter.section(f"{TABLE.name} is written")
            for line in self._folders():
                terminalreporter.line(line)

    def _likely(self, item: pytest.Item) -> float:
        usual = expected(item.nodeid, self._durations)
        return UNKNOWN if usual is None else usual

    def _folders(self) -> Iterator[str]:
        """A table of folders: cases and seconds of the tests that are not long, and of the long ones."""
        yield f"{'folder':36}{'cases':>8}{'seconds':>10}{'long':>8}{'seconds':>10}"
        for folder in sorted({_folder(node) for node in self._seconds}):
            row = f"{folder:36}"
            for long in (False, True):
                found = [s for n, s in self._seconds.items() if _folder(n) == folder and (n in self._long) == long]
                row += f"{len(found):8}{sum(found):10.1f}"
            yield row
