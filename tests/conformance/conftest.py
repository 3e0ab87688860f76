"""Recorded runs of Flink, unpacked once for each test process."""

from __future__ import annotations

import importlib.util
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from streamproof.conformance.flink import reader
from streamproof.conformance.flink.layouts import given_pattern

DATA = Path(__file__).parents[1] / "data" / "flink"
KEPT = 12
"""Recorded runs that are kept as they were read."""


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


@pytest.fixture(scope="session", autouse=True)
def _recorded_runs_are_read_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Test after test judges the recorded runs, which no test changes; copies are read as always."""
    place, kept = str(tmp_path_factory.getbasetemp() / "flink"), dict[Any, Any]()
    read = reader._LogReader.read

    def once(of: reader._LogReader) -> reader.FlinkRun:
        if not str(of.source.folder).startswith(place):
            return read(of)
        key = of.source, given_pattern()
        found = kept.pop(key, None) or read(of)
        kept[key] = found
        if len(kept) > KEPT:
            del kept[next(iter(kept))]
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader._LogReader, "read", once)
        yield


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


@pytest.fixture(scope="session")
def flink_public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of logs that were rebuilt from public reports, one folder for each. Read only."""
    return _unpack("public", tmp_path_factory.mktemp("flink"))
