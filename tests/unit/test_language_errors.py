"""A model with a mistake gets one message: the file, the line, what is wrong and what to do instead."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from streamproof.language.lower.sources import definition
from streamproof.language.lower.sources import text as source_text
from streamproof.system import Exit, ModelError

GOLDEN = Path(__file__).parent / "golden"
BROKEN = sorted(file.stem for file in GOLDEN.glob("*.py"))


def message(name: str) -> str:
    """What the author of the broken model is told, with the folder left out."""
    file = GOLDEN / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"golden_{name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    loader = spec.loader

    def read() -> None:
        loader.exec_module(module)
        module.Shop.system()

    try:
        with pytest.raises(ModelError) as caught:
            read()
    finally:
        del sys.modules[spec.name]
    assert caught.value.exit_code is Exit.MALFORMED
    return f"{caught.value}\n".replace(f"{GOLDEN}/", "")


@pytest.mark.parametrize("name", BROKEN)
def test_message(name: str) -> None:
    """The message is exactly the expected one, and names a line of the file and a remedy."""
    shown = message(name)
    assert re.match(rf"{name}\.py:\d+: .+\n  .+\n\Z", shown)
    assert shown == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_every_expectation_has_its_model() -> None:
    """No expected message is left over."""
    assert sorted(file.stem for file in GOLDEN.glob("*.txt")) == BROKEN


def test_equal_code_of_two_files_is_quoted_from_its_own(tmp_path: Path) -> None:
    """Functions that Python compiles alike, at the same line, are two: each message quotes what its own file says."""
    text = "def rule(self):\n    return self.n + {}\n"
    for name, number in (("one", "2 * 3"), ("other", "3 + 3")):
        file = tmp_path / f"{name}.py"
        file.write_text(text.format(number), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert source_text(definition(module.rule).body[0]) == f"return self.n + {number}"
