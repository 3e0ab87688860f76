"""Every line that the page of deviations cites is in the recorded run, with the text that it cites."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_cited_lines_are_in_the_logs() -> None:
    """The page names archive, run, file and line, and then the words."""
    page = (ROOT / "docs" / "flink-deviations.md").read_text()
    cited = re.findall(r"`((?:logs|live|more|public)/[^`:]+):(\d+)` ([^|<]+?)(?:<br>| \|)", page)
    assert len(cited) > 12
    texts: dict[str, list[str]] = {}
    for name in {place.partition("/")[0] for place, _, _ in cited}:
        wanted = {place for place, _, _ in cited}
        with tarfile.open(ROOT / "tests" / "data" / "flink" / f"{name}.tar.xz") as archive:
            for member in archive:
                if member.name in wanted and (file := archive.extractfile(member)) is not None:
                    texts[member.name] = file.read().decode().splitlines()
    for place, line, words in cited:
        assert words in texts[place][int(line) - 1], (place, line, words, texts[place][int(line) - 1])
