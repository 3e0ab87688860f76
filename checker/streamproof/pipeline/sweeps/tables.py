"""The points of a sweep as a Parquet table: one row for each point and property."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from streamproof.report.sweep import SweepReport
from streamproof.report.sweep_maps import shown

_KEPT: dict[str, pa.DataType] = {
    "variant": pa.string(),
    "checked_as": pa.string(),
    "property": pa.string(),
    "verdict": pa.string(),
    "because": pa.string(),
    "length": pa.int64(),
    "vacuous": pa.bool_(),
    "states": pa.int64(),
    "seconds": pa.float64(),
}


def parquet(report: SweepReport) -> bytes:
    """The table as a file. Parameters are columns named ``p_NAME``: integers, truth values or text."""
    parameters = sorted({name for point in report.points for name in point.parameters})
    kinds = {name: {type(p.parameters.get(name)) for p in report.points} - {type(None)} for name in parameters}
    types = {n: pa.bool_() if k == {bool} else pa.int64() if k == {int} else pa.string() for n, k in kinds.items()}
    rows = [
        {
            "variant": point.variant,
            "checked_as": point.checked_as,
            **{f"p_{n}": _value(point.parameters.get(n), types[n]) for n in parameters},
            "property": name,
            "verdict": answer.mark,
            "because": answer.because or point.because,
            "length": answer.length,
            "vacuous": answer.vacuous,
            "states": point.distinct,
            "seconds": point.seconds,
        }
        for point in report.points
        for name, answer in point.answers.items()
    ]
    schema = pa.schema([*_KEPT.items(), *((f"p_{name}", types[name]) for name in parameters)])
    written = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), written)
    return written.getvalue()


def _value(value: object, kind: pa.DataType) -> object:
    return shown(value) if kind == pa.string() and value is not None else value
