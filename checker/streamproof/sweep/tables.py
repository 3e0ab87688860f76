"""The points of a sweep as a Parquet table: one row per point and property."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamproof.sweep.result import SweepReport, shown

_KEPT: dict[str, pa.DataType] = {
    "variant": pa.string(),
    "checked_as": pa.string(),
    "property": pa.string(),
    "verdict": pa.string(),
    "because": pa.string(),
    "length": pa.int64(),
    "vacuous": pa.bool_(),
    "within": pa.string(),
    "states": pa.int64(),
    "seconds": pa.float64(),
}


def parquet(report: SweepReport) -> bytes:
    """The table as a file. Parameters are columns named ``p_NAME``: integers, truth values or text; those of
    generated values are followed by their sizes, columns named ``size_NAME``.
    """
    axis = report.plan.sampled
    types: dict[str, pa.DataType] = {}
    for name in sorted({name for point in report.points for name in point.parameters}):
        kinds = {type(point.parameters.get(name)) for point in report.points} - {type(None)}
        types[name] = pa.bool_() if kinds == {bool} else pa.int64() if kinds == {int} else pa.string()

    rows = []
    for point in report.points:
        row: dict[str, Any] = {"variant": point.variant, "checked_as": point.checked_as}
        row |= {"states": point.states, "seconds": point.seconds}
        for name, kind in types.items():
            value = point.parameters.get(name)
            row[f"p_{name}"] = shown(value) if kind == pa.string() and value is not None else value
        if axis is not None:
            row |= {f"size_{name}": size for name, size in axis.sizes[point.parameters[axis.parameter]].items()}
        for name, answer in point.verdicts.items():
            result = {"because": answer.because or point.because, "length": answer.length, "vacuous": answer.vacuous}
            rows.append({**row, "property": name, "verdict": answer.verdict, "within": answer.within, **result})
    sizes = [] if axis is None else [(f"size_{name}", pa.int64()) for name in next(iter(axis.sizes.values()))]
    columns = [*_KEPT.items(), *((f"p_{name}", kind) for name, kind in types.items()), *sizes]
    written = io.BytesIO()
    table = pa.Table.from_pylist(rows, schema=pa.schema(columns, {"schema": "streamproof.sweep"}))
    pq.write_table(table, written, compression="zstd")
    return written.getvalue()
