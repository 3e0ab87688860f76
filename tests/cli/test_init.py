"""What `init` writes runs as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamproof.cli.verbs import cli
from streamproof.system import UsageError


def said(*words: str) -> tuple[int, str]:
    """The exit code and the output of the program."""
    done = CliRunner().invoke(cli, list(words), standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.return_value, done.output


def test_a_first_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model holds, its variant is refuted; existing files stay; other names are refused."""
    monkeypatch.chdir(tmp_path)
    code, text = said("init", "--name", "my_lease")
    assert (code, text.splitlines()[-1]) == (0, "next: streamproof check my_lease.py")
    assert said("check", "my_lease.py", "-q")[0] == 0
    assert said("check", "my_lease.py", "--variant", "unfenced", "-q")[0] == 12
    before = (tmp_path / "my_lease.py").read_text()
    with pytest.raises(UsageError, match=r"my_lease\.py exists"):
        said("init", "--name", "my_lease")
    assert (tmp_path / "my_lease.py").read_text() == before
    for name in ("class", "a-b", "é", "model", ""):
        with pytest.raises(UsageError, match="--name"):
            said("init", "other", "--name", name)
    assert not (tmp_path / "other").exists()


@pytest.mark.long
def test_its_test_runs(tmp_path: Path) -> None:
    """With the lint rules of this project's documents."""
    subprocess.run([sys.executable, "-m", "streamproof", "init", str(tmp_path)], check=True)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_lease.py"], cwd=tmp_path, check=False
    )
    assert done.returncode == 0
