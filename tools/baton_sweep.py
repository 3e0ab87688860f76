"""Runs the published sweep of the termination baton, and writes its table and summary page.

``python tools/baton_sweep.py --write`` takes about twenty minutes on two cores, less with records of earlier runs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamproof.base.errors import Exit
from streamproof.cli.verbs import run as streamproof

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "protocols" / "baton-sweep.parquet"
PAGE = ROOT / "docs" / "protocols" / "baton-sweep.md"
KEPT = ROOT / "build" / "baton-sweep"
BEGIN, END = "<!-- written by tools/baton_sweep.py -->", "<!-- to here -->"


@dataclass(frozen=True, slots=True)
class Part:
    """One sweep: its coverage as text and as options."""

    name: str
    covers: str
    options: tuple[str, ...]

    @property
    def command(self) -> str:
        """The command of the sweep."""
        return " ".join(("streamproof", "sweep", "baton", *self.options))


PARTS = (
    Part("every", "every graph of up to 5 operators", ("--max-operators", "5")),
    Part("trees", "6 operators, each with one input", ("--max-operators", "6", "--max-joins", "0")),
    Part("feedback", "any number of feedback edges", ("--max-operators", "4", "--max-feedback", "4")),
    Part("two", "two records at a time", ("--max-operators", "4", "-p", "work=2")),
    Part("three", "three records at a time", ("--max-operators", "4", "-p", "work=3")),
    Part(
        "parallel",
        "up to two subtasks each",
        (
            *("--max-operators", "3", "--parallelism", "2"),
            *("--variants", "uncoordinated-heads,mark-reset,literal,literal-two-types"),
        ),
    ),
    Part("sources", "up to two sources", ("--max-operators", "4", "--max-sources", "2", "--variants", "first-entry")),
    Part("variants", "every variant", ("--max-operators", "4", "--variants", "all", "--max-states", "2000000")),
)


def swept(part: Part, jobs: int) -> dict[str, Any]:
    """The JSON of one part; reuses records of earlier runs."""
    folder = KEPT / part.name
    folder.mkdir(parents=True, exist_ok=True)
    answer = folder / "answer.json"
    command = [
        "sweep",
        "baton",
        *part.options,
        "--out",
        str(folder),
        "--workers",
        str(jobs),
        "-q",
        "--json",
        str(answer),
    ]
    code = streamproof(command)
    if code not in (Exit.HOLDS, Exit.INCONCLUSIVE):
        raise SystemExit(f"{part.command} ended with {code}")
    found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    return found


def rows(part: Part, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One row per graph and variant: states, and for each property the length of its counterexample, if any."""
    for point in document["points"]:
        row: dict[str, Any] = {
            "part": part.name,
            "variant": point["variant"],
            "topology": point["parameters"]["topology"],
            "work": point["parameters"]["work"],
            "states": point["states"],
        }
        for name, found in point["verdicts"].items():
            row[name] = found["verdict"]
            row[f"{name}_length"] = found["length"]
        yield row


def write_table(documents: Mapping[str, Mapping[str, Any]]) -> None:
    """All parts as one Parquet file."""
    every = [row for part in PARTS for row in rows(part, documents[part.name])]
    table = pa.Table.from_pylist(every)
    pq.write_table(table, TABLE, compression="zstd", compression_level=19)


def covered(documents: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """One line per part: the graphs on which the rules were checked."""
    yield "| covers | records | command | operators | graphs | states | largest | violated |"
    yield "|---|---:|---|---:|---:|---:|---:|---|"
    for part in PARTS:
        (own,) = (row for row in documents[part.name]["generated"]["rows"] if row["variant"] is None)
        for stage in own["stages"]:
            violated = sum(marks.get("violated", 0) for marks in stage["verdicts"].values())
            first = stage is own["stages"][0]
            cells = [
                part.covers if first else "",
                str(own["parameters"]["work"]) if first else "",
                f"`{part.command}`" if first else "",
                str(stage["size"]),
                f"{stage['samples']:,}",
                f"{stage['states']:,}",
                f"{stage['largest']:,}",
                str(violated) if violated else "none",
            ]
            yield f"| {' | '.join(cells)} |"


def refuted(documents: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """One line per variant: the first graph of the smallest size that refutes it, if any."""
    yield "| variant | records | graphs | property | steps | smallest graph | of its size |"
    yield "|---|---:|---:|---|---:|---|---|"
    for part in PARTS:
        for row in documents[part.name]["generated"]["rows"]:
            if row["variant"] is not None:
                yield from _refuted(part, row)


def _refuted(part: Part, row: Mapping[str, Any]) -> Iterator[str]:
    graphs = sum(stage["samples"] for stage in row["stages"])
    open_ = sum(marks.get("inconclusive", 0) for stage in row["stages"] for marks in stage["verdicts"].values())
    named = f"`{row['variant']}`" + ("" if part.name == "variants" else f" ({part.covers})")
    heads = [named + (f", {open_} verdicts open" if open_ else ""), str(row["parameters"]["work"]), f"{graphs:,}"]
    if not row["refutations"]:
        yield f"| {' | '.join([*heads, 'harmless on all of them', '', '', ''])} |"
    for at, found in enumerate(row["refutations"]):
        size = f"{found['alike']} of {found['of']} with {found['size']['operators']} operators"
        cells = heads if at == 0 else ["", "", ""]
        graph = f"`{found['value']}`"
        yield f"| {' | '.join([*cells, found['property'], str(found['length']), graph, size])} |"


def write_page(lines: Sequence[str]) -> None:
    """Write the tables between the two marks of the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text("\n".join([before + BEGIN, "", *lines, "", END + after]), encoding="utf-8")


def main(words: Sequence[str]) -> None:
    """Run all parts, and print or write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table and the page")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    given = parser.parse_args(words)
    documents = {part.name: swept(part, given.jobs) for part in PARTS}
    lines = [*covered(documents), "", *refuted(documents)]
    if given.write:
        write_table(documents)
        write_page(lines)
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
