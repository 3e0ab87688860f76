"""`streamproof run --trace-format`: a folder has the logs of one run in one form, and no file of others is replaced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_the_option(streamproof: Any, tmp_path: Path) -> None:
    """A folder has the logs of one run in one form, whichever run came before."""
    job = str(EXAMPLES / "word_count.py")
    simulated = ("run", job, "--simulate", "--trace", str(tmp_path / "seeds"), "--trace-format")
    for form in ("parquet", "ndjson", "parquet"):
        assert streamproof(*simulated, form).code == 0
        assert [log.name for log in (tmp_path / "seeds").iterdir()] == [f"seed-0.{form}"]
    real = ("run", job, "--taskmanagers", "1", "--slots", "4", "--trace", str(tmp_path / "real"))
    assert streamproof(*real, "--trace-format", "parquet").code == 0
    assert {log.name for log in (tmp_path / "real").iterdir()} == {"jobmaster.parquet", "rm.parquet", "tm-1.0.parquet"}
    for path in ("seeds", "real"):
        done = streamproof("validate", str(tmp_path / path), "--model", "all")
        assert (done.code, "rejected" in done.out) == (0, False)
    assert streamproof(*real).code == 0
    assert {log.suffix for log in (tmp_path / "real").iterdir()} == {".ndjson"}
    done = streamproof("run", job, "--trace-format", "parquet")
    assert (done.code, "--trace-format requires --trace\n  add --trace DIR" in done.err) == (2, True)


def test_no_foreign_table_is_replaced(streamproof: Any, tmp_path: Path) -> None:
    """A file of somebody else under the name of a log is kept, and the run does not begin."""
    pq.write_table(pa.table({"x": [1]}), tmp_path / "tm-1.0.parquet")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    done = streamproof("run", str(EXAMPLES / "word_count.py"), "--trace", str(tmp_path), "--trace-format", "parquet")
    assert (done.code, "was not written by streamproof" in done.err) == (153, True)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
