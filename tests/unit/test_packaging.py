"""What is shipped: complete wheels, exact pins, the licence, an environment that belongs to this checkout."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import streamproof
from streamproof.version import VERSION, commit

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "streamproof": ROOT / "checker",
    "streamproof_models": ROOT / "models",
    "streamproof_specs": ROOT / "specs",
    "streamproof_runtime": ROOT / "runtime",
}
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def normalised(name: str) -> str:
    """A distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    """The versions that constraints.txt fixes, by normalised name; any other kind of line fails."""
    found = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            match = re.fullmatch(r"([A-Za-z0-9._-]+)==([0-9][A-Za-z0-9.+]*)", line)
            assert match, f"not an exact pin: {line!r}"
            found[normalised(match[1])] = match[2]
    return found


def sources() -> set[str]:
    """Every file of the four packages, by its path inside a wheel; what tools leave in caches is none."""
    paths = {
        file.relative_to(root)
        for package, root in PACKAGES.items()
        for file in (root / package).rglob("*")
        if file.is_file()
    }
    return {
        path.as_posix()
        for path in paths
        if not any(part.startswith(".") or part == "__pycache__" for part in path.parts)
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built without network."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


def test_every_direct_dependency_is_pinned_exactly() -> None:
    """Each distribution that pyproject.toml names has one exact version in constraints.txt."""
    groups = [
        PYPROJECT["build-system"]["requires"],
        PYPROJECT["project"]["dependencies"],
        *PYPROJECT["project"]["optional-dependencies"].values(),
        *PYPROJECT["dependency-groups"].values(),
    ]
    named = {normalised(re.split(r"[\s<>=!~;\[]", entry)[0]) for group in groups for entry in group}
    assert named - pins().keys() == set()


def test_the_tests_run_the_code_of_this_checkout() -> None:
    """The environment imports streamproof from beside this test, not from another copy."""
    assert Path(streamproof.__file__) == ROOT / "checker" / "streamproof" / "__init__.py"


def test_the_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    """Templates, scripts and type markers are shipped with the code, and nothing else is."""
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert shipped - {"streamproof/COMMIT"} == sources()
    assert {f"{package}/py.typed" for package in PACKAGES} <= shipped


def test_the_wheel_knows_its_commit(wheel: Path) -> None:
    """`--version` of an installed wheel names the commit that it was built from, where there is one."""
    with zipfile.ZipFile(wheel) as archive:
        written = (
            archive.read("streamproof/COMMIT").decode().strip() if "streamproof/COMMIT" in archive.namelist() else None
        )
    assert written == commit()


def test_the_wheel_declares_the_command_and_the_licence(wheel: Path) -> None:
    """An installation puts `streamproof` on the path and carries the licence it is under."""
    with zipfile.ZipFile(wheel) as archive:
        (entry_points,) = (name for name in archive.namelist() if name.endswith("/entry_points.txt"))
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        assert "streamproof = streamproof.__main__:program" in archive.read(entry_points).decode()
        assert "License-Expression: Apache-2.0" in archive.read(metadata).decode()
        assert any(name.endswith("/licenses/LICENSE") for name in archive.namelist())


def test_the_licence_is_the_unaltered_apache_licence() -> None:
    """LICENSE is byte for byte the text that the Apache Software Foundation publishes."""
    digest = hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest()
    assert digest == "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"


@pytest.mark.long
def test_a_plain_installation_works_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """Installed from its wheel into a fresh environment, without extras, the packages import and the verbs work."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def run(*command: str | Path, code: int = 0) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    run(sys.executable, "-m", "venv", "fresh")
    programs = tmp_path / "fresh" / "bin"
    run(programs / "python", "-m", "pip", "install", "--constraint", ROOT / "constraints.txt", wheel)
    for package in PACKAGES:
        where = run(programs / "python", "-c", f"import {package}; print({package}.__file__)")
        assert where.startswith(str(tmp_path / "fresh"))
    with tarfile.open(ROOT / "tests" / "data" / "flink" / "logs.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    streamproof = programs / "streamproof"
    assert "Usage: streamproof" in run(streamproof, "--help")
    assert VERSION in run(streamproof, "--version")
    assert "failover" in run(streamproof, "models")
    assert "holds: 12 of 12 properties" in run(streamproof, "check", "failover", "-q")
    run(streamproof, "check", "failover", "--variant", "literal-pseudocode", "--property", "termination", "-q", code=13)
    assert "1 job: 1 accepted" in run(streamproof, "validate", "logs/b-lostpart-1")
    assert "1 defect" in run(streamproof, "bugbench", "FLINK-18595")
    assert "pip install 'streamproof[parquet]'" in run(streamproof, "sweep", "failover", code=153)


def test_the_source_distribution_has_what_its_documents_name(tmp_path: Path) -> None:
    """The changes and the rules for contributors are in it, beside the code, the tests and their settings."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(built) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    documents = {"README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"}
    assert documents | {"Makefile", "constraints.txt", "pyproject.toml", ".ci/run", "tests/README.md"} <= names


def test_the_version_is_one_and_has_a_dated_section_of_changes() -> None:
    """pyproject.toml, the program and CHANGELOG.md agree."""
    assert PYPROJECT["project"]["version"] == VERSION
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    dated = re.findall(r"^## (\d+\.\d+\.\d+) - (\d{4}-\d{2}-\d{2})$", changes, re.MULTILINE)
    assert dated[0][0] == VERSION
