"""Mutation testing: what is drawn, what is left out, and that its lists name what exists."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import mutants
from nonempty import nonempty

ROOT = Path(__file__).resolve().parents[2]
SOURCE = '''
from dataclasses import dataclass
Either = int | str

@dataclass(frozen=True)
class Box:
    size: int | None = None

    def fits(self, given: int | str) -> bool | None:
        """Compares."""
        if isinstance(given, int | float):
            raise ValueError(f"{given + 1} is no size")
        assert self.size != 7
        for one, other in zip([1], [2], strict=True):
            return one < other
        return None
'''


def test_each_part_has_its_modules_and_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every module, test file and test function that a part names exists, and the samples have at least 500 mutants."""
    monkeypatch.chdir(ROOT)
    for name, part in mutants.PARTS.items():
        assert mutants.files_of(part), name
        for path in (*part.tests.split(), *part.more.split()):
            file, _, function = path.partition("::")
            assert f"def {function}" in (ROOT / "tests" / file).read_text(encoding="utf-8"), path
    assert sum(part.size for part in mutants.PARTS.values()) >= 500


def test_what_means_the_same_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Annotations, decorators, assertions and texts of errors have no mutants; other places have one each."""
    folder = tmp_path / "checker" / "streamproof"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    (folder / "box.py").write_text(SOURCE, encoding="utf-8")
    part = mutants.Part(100, "box.py", "")
    places = sorted(item.mutations[0].start_pos for item in mutants.sample(part))
    lines = [SOURCE.splitlines()[line - 1].strip() for line, _ in places]
    assert set(lines) == {
        "if isinstance(given, int | float):",
        "for one, other in zip([1], [2], strict=True):",
        "return one < other",
    }
    assert len(set(places)) == len(places)


def test_the_sample_is_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant keeps its name when lines are added elsewhere, and a smaller sample is a part of a larger one."""
    folder = tmp_path / "checker" / "streamproof"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    (folder / "box.py").write_text(SOURCE, encoding="utf-8")
    part = mutants.Part(100, "box.py", "")
    before = [item.job_id for item in mutants.sample(part)]
    (folder / "box.py").write_text("LIMIT = None\n" + SOURCE, encoding="utf-8")
    assert [item.job_id for item in mutants.sample(part)] == before
    assert [item.job_id for item in mutants.sample(replace(part, size=2))] == before[:2]


def test_each_explanation_has_a_kind_and_a_reason() -> None:
    """A line of the table names a kind, a reason, a module that exists, a definition, and two different lines."""
    for (module, _, before, after), (kind, reason) in nonempty(mutants.explanations().items()):
        assert kind in mutants.KINDS
        assert reason
        assert (ROOT / "checker" / "streamproof" / module).is_file()
        assert before != after
