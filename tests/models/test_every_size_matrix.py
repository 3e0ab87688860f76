"""`prove --any` of every bundled model and every numeric parameter: proved, open with its reason, or refused at a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from streamproof.base.errors import Exit
from streamproof.cli.verbs import run
from streamproof.language.declare.declarations import parameter_types
from streamproof.model_registry import bundled, find

ANSWERS = (Exit.HOLDS, Exit.DEADLOCK, Exit.SAFETY, Exit.INCONCLUSIVE)
"""A verdict; a violation is one at a small value."""
QUICK = ("buffer_pool", "failover", "task_attempt")
"""Models of which a push looks at every parameter, one with an optional parameter; the others are long."""


def numbers() -> Iterator[tuple[str, str]]:
    """Each model with each of its numeric parameters."""
    for name in bundled():
        types = parameter_types(find(name).spec.model)
        yield from ((name, parameter) for parameter, kind in types.items() if kind.kind is int)


def test_there_are_numbers() -> None:
    """The long tests below have something to look at."""
    assert len([*numbers()]) > 150


CASES = [
    pytest.param(model, parameter, marks=[] if model in QUICK else [pytest.mark.long]) for model, parameter in numbers()
]


@pytest.mark.parametrize(("model", "parameter"), CASES)
def test_any_value_of_a_parameter(
    model: str, parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never a failure of the system, never a disagreement of engines, and no refusal without a line and a remedy."""
    monkeypatch.chdir(tmp_path)
    code = run(["prove", model, "--any", parameter, "-q", "--timeout", "10"])
    if code in ANSWERS:
        return
    message, remedy = capsys.readouterr().err.strip().splitlines()[:2]
    assert remedy.strip()
    if parameter_types(find(model).spec.model)[parameter].optional:
        assert code == Exit.USAGE
        assert "None" in message
    else:
        assert code == Exit.MALFORMED
        assert ".py:" in message
