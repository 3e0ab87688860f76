"""A model with a mistake gets one message: the file, the line, what is wrong and what to do instead."""

from __future__ import annotations

import importlib.util
import re
import sys
import traceback
from functools import cache
from pathlib import Path

import pytest

from streamproof.language.lower.sources import definition
from streamproof.language.lower.sources import text as source_text
from streamproof.system import Exit, ModelError

GOLDEN = Path(__file__).parent / "golden"
BROKEN = sorted(file.stem for file in GOLDEN.glob("*.py"))
EXPECTED = {
    found[1]: found[0]
    for found in re.finditer(
        r"^(\w+)\.py:\d+.*\n(?: .*\n)*", (GOLDEN / "messages.txt").read_text(encoding="utf-8"), re.M
    )
}
"""By model: the message, or only the file and the line where another model has a message from the same place."""


@cache
def refused(name: str) -> tuple[str, tuple[str, int]]:
    """The message for the author of the broken model, with the folder left out, and the place in our code that refuses it."""
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
    first: BaseException = caught.value
    while isinstance(earlier := first.__cause__ or first.__context__, ModelError):
        first = earlier
    ours = [at for at in traceback.extract_tb(first.__traceback__) if "/checker/streamproof/" in at.filename]
    return f"{caught.value}\n".replace(f"{GOLDEN}/", ""), (ours[-1].filename, ours[-1].lineno or 0)


@pytest.mark.parametrize("name", BROKEN)
def test_message(name: str) -> None:
    """The message is the expected one, or is at the expected line; it names a line of the file and a remedy."""
    shown, _ = refused(name)
    assert re.match(rf"{name}\.py:\d+: .+\n  .+\n\Z", shown)
    expected = EXPECTED[name]
    if "\n " in expected:
        assert shown == expected
    else:
        assert shown.startswith(f"{expected.strip()}: ")


def test_every_model_has_one_expectation() -> None:
    """In the order of the files; no expected message is left over."""
    assert list(EXPECTED) == BROKEN
    assert "".join(EXPECTED.values()) == (GOLDEN / "messages.txt").read_text(encoding="utf-8")


def test_every_kind_of_message_is_expected_word_for_word() -> None:
    """Of the models that one place in our code refuses, at least one has its exact message."""
    exact = {refused(name)[1] for name in BROKEN if "\n " in EXPECTED[name]}
    assert {name: place for name in BROKEN if (place := refused(name)[1]) not in exact} == {}


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
