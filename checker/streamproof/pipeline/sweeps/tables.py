"""The points of a sweep as a Parquet table: one row for each point and property."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from streamproof.report.sweep import PointReport, SweepReport
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
    """The table as a file. Parameters are columns named ``p_NAME``: integers, truth values or text; those of
    generated values are followed by their sizes, columns named ``size_NAME``.
    """
    parameters = sorted({name for point in report.points for name in point.parameters})
    kinds = {name: {type(p.parameters.get(name)) for p in report.points} - {type(None)} for name in parameters}
    types = {n: pa.bool_() if k == {bool} else pa.int64() if k == {int} else pa.string() for n, k in kinds.items()}
    sizes = list(next(iter(report.sizes.values()), {}))
    rows = [
        {
            "variant": point.variant,
            "checked_as": point.checked_as,
            **{f"p_{n}": _value(point.parameters.get(n), types[n]) for n in parameters},
            **_sizes(report, point, sizes),
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
    more = ((f"size_{name}", pa.int64()) for name in sizes)
    schema = pa.schema(
        [*_KEPT.items(), *((f"p_{name}", types[name]) for name in parameters), *more], {"schema": "streamproof.sweep"}
    )
    written = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), written, compression="zstd")
    return written.getvalue()


def _sizes(report: SweepReport, point: PointReport, names: Sequence[str]) -> dict[str, int]:
    """How large the generated value of a point is."""
    size = report.sizes.get(point.parameters.get(report.sampled), {})
    return {f"size_{name}": size[name] for name in names}


def _value(value: object, kind: pa.DataType) -> object:
    return shown(value) if kind == pa.string() and value is not None else value
