"""Nothing in the working folder is run as a module of Python, by the program or by what it starts."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

RUN = "a-taskfail-1"
OTHERS = (
    "numpy",
    "pandas",
    "pyarrow",
    "py4j",
    "pyspark",
    "sitecustomize",
    "streamproof",
    "usercustomize",
    "z3",
    "zstandard",
)
OWNED = "owned"


@pytest.fixture
def planted(folder: Path) -> Path:
    """The working folder with recorded logs, and a file for each module that Python, Spark or streamproof may load.

    The model is elsewhere: whoever names a model trusts what lies beside it, which it may import.
    """
    (folder / "models").mkdir()
    (folder / "counter.py").rename(folder / "models" / "counter.py")
    for name in {*sys.stdlib_module_names, *OTHERS}:
        (folder / f"{name}.py").write_text(
            f"open({str(folder / OWNED)!r}, 'a').write('{name}\\n')\nraise ImportError\n"
        )
    with tarfile.open(Path(__file__).parents[1] / "data" / "flink" / "logs.tar.xz") as packed:
        for member in packed.getmembers():
            if f"/{RUN}/" in f"/{member.name}" and member.isfile():
                member.name = f"{RUN}/{Path(member.name).name}"
                packed.extract(member, folder, filter="data")
    return folder


def streamproof(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The program as its users start it, in this folder."""
    command = [sys.executable, "-P", "-m", "streamproof", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def runs_nothing(planted: Path, words: tuple[str, ...]) -> None:
    """Asserts that a command ends as usual, and that nothing of the folder ran."""
    done = streamproof(planted, *words)
    assert done.returncode in (0, 12), done.stderr
    assert not (planted / OWNED).exists(), (words, (planted / OWNED).read_text())


def test_streamproof_imports_nothing_that_lies_beside_a_model(planted: Path) -> None:
    """The model does, whenever it wants to; the program and its libraries do not, even what is not installed."""
    for file in planted.glob("*.py"):
        file.rename(planted / "models" / file.name)
    (planted / "models" / "early.py").write_text("import deeper\n")
    (planted / "models" / "deeper.py").write_text(
        "def later():\n    import importlib\n    return importlib.import_module('late')\n"
    )
    (planted / "models" / "late.py").write_text("LIMIT = 100\n")
    model = planted / "models" / "counter.py"
    text = model.read_text().replace("self.limit > 100", "early.deeper.later() is None")
    model.write_text(f"import early\n{text}")
    for folder, words, code in (
        (planted, ("sweep", "models/counter.py", "-q", "-p", "limit=1..2"), 0),
        (planted / "models", ("prove", "counter:Counter", "-q", "--property", "grows"), 0),
    ):
        done = streamproof(folder, *words)
        assert done.returncode == code, done.stderr
        assert not (planted / OWNED).exists(), (planted / OWNED).read_text()


@pytest.mark.long
@pytest.mark.spark
def test_spark_runs_nothing_of_the_working_folder(planted: Path) -> None:
    """Not in its daemon and workers, and not in the processes that plan a read."""
    runs_nothing(planted, ("validate", RUN, "--master", "local[1]", "--json", "verdicts.json"))


@pytest.mark.long
@pytest.mark.spark
def test_spark_runs_nothing_of_the_working_folder_for_any_verb(planted: Path) -> None:
    """Of logs, events and points."""
    runs_nothing(planted, ("validate", RUN, "--master", "local[1]", "--events", "events", "--json", "verdicts.json"))
    runs_nothing(planted, ("report", "verdicts.json", "events", "--out", "report"))
    runs_nothing(planted, ("sweep", "models/counter.py", "-p", "limit=1..2", "-q", "--spark", "--master", "local[1]"))
