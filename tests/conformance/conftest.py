"""Recorded runs of Flink, unpacked once for each test process."""

from __future__ import annotations

import importlib.util
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

DATA = Path(__file__).parents[1] / "data" / "flink"


def _unpack(name: str, folder: Path) -> Path:
    with tarfile.open(DATA / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / name


@pytest.fixture(scope="session")
def flink_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the recorded runs with failures, loops and slots, one folder for each run. Read only."""
    return _unpack("logs", tmp_path_factory.mktemp("flink"))


@pytest.fixture(scope="session")
def flink_credit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the recorded runs of credit-based flow control, one folder for each run. Read only."""
    return _unpack("credit", tmp_path_factory.mktemp("flink"))


@pytest.fixture(scope="session")
def flink_more(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of recorded runs in which Flink does what is rare, one folder for each run. Read only."""
    return _unpack("more", tmp_path_factory.mktemp("flink"))


@pytest.fixture(scope="session")
def flink_live(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of recorded runs of live clusters that once were misjudged, one folder for each run. Read only."""
    return _unpack("live", tmp_path_factory.mktemp("flink"))


@pytest.fixture(scope="session")
def flink_versions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of recorded runs of Flink 1.20 and 2.2 and of parts of logs, one folder for each run. Read only."""
    return _unpack("versions", tmp_path_factory.mktemp("flink"))


@pytest.fixture(scope="session")
def flink_agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of traces that the bundled agent recorded, one folder for each run. Read only."""
    return _unpack("agent", tmp_path_factory.mktemp("flink"))


@pytest.fixture(scope="session")
def tool_module() -> Callable[[str], ModuleType]:
    """Imports a script of `tools/` by its name."""

    def imported(name: str) -> ModuleType:
        path = Path(__file__).parents[2] / "tools" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    return imported
