"""The long tests run in shares on each push: each in exactly one share, within a deadline, and failed ones once more."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import long_shares

SUPPORT = Path(long_shares.__file__).parent


PYTEST = "import pytest, sys\nsys.exit(pytest.main(sys.argv[1:]))"
WITH_TABLE = f"import pathlib, long_shares\nlong_shares.TABLE = pathlib.Path('table.tsv')\n{PYTEST}"


def run(folder: Path, *arguments: str, program: str = PYTEST) -> subprocess.CompletedProcess[str]:
    """pytest in a folder of its own, with this plugin and the one for time limits alone."""
    options = ["-p", "pytest_timeout", "-p", "long_shares", "-c", os.devnull, "--rootdir", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-c", program, *options, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def write(folder: Path, text: str) -> None:
    """A file of tests."""
    (folder / "test_some.py").write_text(f"import pytest\nlong = pytest.mark.long\n{text}", encoding="utf-8")


@given(st.lists(st.floats(0, 1000), max_size=200), st.integers(1, 30))
def test_every_test_is_in_exactly_one_share(durations: list[float], shares: int) -> None:
    """One number for each test, none beyond the last share, in order; a share is longer than the mean by one test at most."""
    numbers = long_shares.divide(durations, shares)
    assert len(numbers) == len(durations)
    assert set(numbers) <= set(range(shares))
    assert numbers == sorted(numbers)
    for share in range(shares):
        mine = sum(seconds for seconds, number in zip(durations, numbers, strict=True) if number == share)
        assert mine <= sum(durations) / shares + max(durations, default=0) + 1e-6


def test_a_push_runs_what_fits_the_budget(tmp_path: Path) -> None:
    """Of cases that need too much the first of each part, a single one up to a limit; marked and unknown ones whole."""
    cases = "@pytest.mark.parametrize('n', range(8))\n"
    write(
        tmp_path,
        f"{cases}def test_many(n):\n    pass\n\n{cases}def test_cheap(n):\n    pass\n\ndef test_alone():\n    pass\n\n"
        f"{cases}def test_dear(n):\n    pass\n\n@pytest.mark.push\n{cases}def test_exempt(n):\n    pass\n\n"
        f"{cases}def test_unknown(n):\n    pass\n",
    )
    (tmp_path / "table.tsv").write_text(
        long_shares.HEADER
        + f"{long_shares.PUSH / 2:.1f}\t8\ttest_some.py::test_many\n{long_shares.PUSH / 8:.3f}\t8\ttest_some.py::test_cheap\n"
        f"{long_shares.ALONE}\t1\ttest_some.py::test_alone\n{2 * long_shares.ALONE}\t8\ttest_some.py::test_dear\n"
        f"{2 * long_shares.ALONE}\t8\ttest_some.py::test_exempt\n",
        encoding="utf-8",
    )
    lines = run(tmp_path, "--collect-only", "-q", "-m", "not long", program=WITH_TABLE).stdout.splitlines()
    assert [line.removeprefix("test_some.py::") for line in lines if "::" in line] == [
        "test_many[0]",
        "test_many[4]",
        *(f"test_cheap[{n}]" for n in range(8)),
        "test_alone",
        *(f"test_exempt[{n}]" for n in range(8)),
        *(f"test_unknown[{n}]" for n in range(8)),
    ]


def test_there_are_at_most_thirty_shares() -> None:
    """The whole list is covered in at most 30 pushes, and a share ends within 15 minutes."""
    assert long_shares.SHARES <= 30
    assert long_shares.START < long_shares.LIMIT < 15 * 60


def test_a_share_has_its_long_tests_and_all_others(tmp_path: Path) -> None:
    """Those that `divide` gives it, at the beginning, the end, and once round; with all numbers each long test is in one."""
    write(
        tmp_path,
        '@long\n@pytest.mark.parametrize("n", range(45))\ndef test_long(n):\n    pass\n\ndef test_short():\n    pass\n',
    )
    program = "import pytest, sys\nfor n in (0, 7, 29, 31): pytest.main([*sys.argv[1:], '--share', str(n)])"
    lines = run(tmp_path, "--collect-only", "-q", program=program).stdout.splitlines()
    listed = [line.removeprefix("test_some.py::") for line in lines if "::" in line]
    numbers = long_shares.divide([long_shares.UNKNOWN] * 45)
    expected = []
    for share in (0, 7, 29, 1):
        expected += [*(f"test_long[{n}]" for n in range(45) if numbers[n] == share), "test_short"]
    assert listed == expected
    assert set(numbers) == set(range(30))


def test_no_long_test_starts_after_the_deadline(tmp_path: Path) -> None:
    """It is skipped and listed; the other tests run, and the share is printed. A single test is in the middle share."""
    write(tmp_path, "@long\ndef test_long():\n    assert False\n\ndef test_short():\n    pass\n")
    ended = run(tmp_path, "--share", "15", "--share-seconds", "0")
    assert ended.returncode == 0
    assert "1 passed, 1 skipped" in ended.stdout
    assert "share 16 of 30: 0 of 1 tests done\nnot started: test_some.py::test_long\n" in ended.stdout


def test_a_long_test_is_interrupted_at_the_end_of_the_share(tmp_path: Path) -> None:
    """It has no result then, unless it had ten minutes and ten times what was measured; beyond its own limit it fails."""
    write(
        tmp_path,
        "@long\n@pytest.mark.timeout(3600)\ndef test_long(request):\n"
        "    assert request.node.get_closest_marker('timeout').args[0] <= 840\n"
        "    pytest.fail('Timeout (>840.0s) from pytest-timeout.')\n",
    )
    late = f"--share-began={time.time() - 400}"
    ended = run(tmp_path, "--share", "15", late)
    assert ended.returncode == 0
    assert "share 16 of 30: 0 of 1 tests done\nnot finished: test_some.py::test_long\n" in ended.stdout
    assert run(tmp_path, "--share", "15").returncode == 0
    for measured, code in ((70.0, 1), (90.0, 0)):
        table = long_shares.HEADER + f"{measured}\t1\ttest_some.py::test_long\n"
        (tmp_path / "table.tsv").write_text(table, encoding="utf-8")
        assert run(tmp_path, "--share", "15", program=WITH_TABLE).returncode == code
    write(tmp_path, "import time\n\n@long\n@pytest.mark.timeout(1)\ndef test_long():\n    time.sleep(60)\n")
    ended = run(tmp_path, "--share", "15", late)
    assert ended.returncode == 1
    assert "Timeout (>1.0s) from pytest-timeout" in ended.stdout


def test_what_passes_the_second_time_is_unstable(tmp_path: Path) -> None:
    """The second run has the failed tests only; it succeeds if they pass, and lists them."""
    write(
        tmp_path,
        "from pathlib import Path\n\ndef test_unstable():\n    found = Path('ran').exists()\n    Path('ran').touch()\n"
        "    assert found\n\ndef test_short():\n    pass\n",
    )
    assert run(tmp_path).returncode == 1
    again = ["--last-failed", "--last-failed-no-failures", "none", "--again"]
    ended = run(tmp_path, *again)
    assert ended.returncode == 0
    assert "failed, then passed alone; to be mended" in ended.stdout
    assert "\ntest_some.py::test_unstable\n" in ended.stdout
    assert "1 passed" in ended.stdout


def test_what_fails_twice_is_not_unstable(tmp_path: Path) -> None:
    """The second run fails too, and lists nothing as unstable; more than some failures are not repeated."""
    write(tmp_path, '@pytest.mark.parametrize("n", range(3))\ndef test_wrong(n):\n    assert n\n')
    again = ["--last-failed", "--last-failed-no-failures", "none", "--again"]
    assert run(tmp_path).returncode == 1
    ended = run(tmp_path, *again)
    assert ended.returncode == 1
    assert "\ntest_some.py::test_wrong" not in ended.stdout
    write(tmp_path, '@pytest.mark.parametrize("n", range(21))\ndef test_wrong(n):\n    assert n < 0\n')
    assert run(tmp_path).returncode == 1
    ended = run(tmp_path, *again)
    assert ended.returncode == 1
    assert "21 tests failed: more than 20 are not repeated" in ended.stdout + ended.stderr


def test_the_table_of_durations() -> None:
    """Slow cases have a line; the others of their function have the mean; short ones that are not long have none."""
    measured = {
        "a.py::f[0]": 2.0,
        "a.py::f[1]": 4.0,
        "a.py::f[2]": 40.0,
        "a.py::quick": 0.1,
        "b.py::g": 0.0,
        "b.py::h": 11.0,
    }
    text = long_shares.table_text(measured, ["b.py::g"], {"c.py::kept": (3, 7.0)})
    assert text.splitlines()[1:] == [
        "3.0\t2\ta.py::f",
        "40.0\t1\ta.py::f[2]",
        "0.0\t1\tb.py::g",
        "11.0\t1\tb.py::h",
        "7.0\t3\tc.py::kept",
    ]


def test_the_durations_are_read_as_written(tmp_path: Path) -> None:
    """A slow case has its own, another one that of its function, an unknown test none."""
    table = tmp_path / "durations.tsv"
    table.write_text(long_shares.table_text({"a.py::f[0]": 2.0, "a.py::f[2]": 40.0}, [], {}), encoding="utf-8")
    durations = long_shares.read_durations(table)
    assert [long_shares.expected(f"a.py::f[{n}]", durations) for n in (2, 0, 5)] == [40.0, 2.0, 2.0]
    assert long_shares.expected("a.py::g", durations) is None
    assert long_shares.read_durations(tmp_path / "none") == {}


def test_the_table_names_each_test_once() -> None:
    """The committed table has positive numbers and no test twice."""
    lines = long_shares.TABLE.read_text(encoding="utf-8").splitlines()
    assert lines[0] + "\n" == long_shares.HEADER
    rows = [line.split("\t", 2) for line in lines[1:]]
    assert rows
    assert len({test for _, _, test in rows}) == len(rows)
    assert all(float(seconds) >= 0 and int(cases) >= 1 for seconds, cases, _ in rows)
