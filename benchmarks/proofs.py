"""Run `prove` on the bundled models and write docs/proofs.md: verdicts, engines, times and sizes of certificates.

    python benchmarks/proofs.py [--timeout 60] [--only MODEL | --missing] [--write]

Each model and variant runs at its small size and writes a certificate, which `streamproof verify-certificate` must accept.
`--write` writes the page; with `--only` it keeps the other models' rows. `--missing` runs models and variants without
rows, and writes the page after each of them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from streamproof.model_registry import find

HERE = Path(__file__).resolve().parent
SIZES = ("small", "default")
LIMIT = 60.0
"""Usual number of seconds for each model or variant."""
PAGE = HERE.parent / "docs" / "proofs.md"
FOR_EVERY_SIZE = (
    ("baton_any_loop", None, "operators,channels,work,rounds"),
    ("baton_counts", None, "work"),
    ("credit", None, "channels,exclusive,floating,depth"),
    ("credit", None, "exclusive,floating,depth"),
    ("credit", "lost-announcement", "channels,exclusive,floating,depth"),
    ("credit", "zero-exclusive", "channels,floating,depth"),
    ("failover_any_graph", None, "tasks,partitions,decisions"),
    ("failover_decisions", None, "failures,losses"),
    ("loop_checkpoint_counts", None, "records,failures"),
    ("main_thread", None, "parallelism,interval,reserve"),
    ("partition_counts", None, "executors,partitions,consumers,attempts,failures,crashes"),
    ("partition_counts", "grace", "executors,partitions,consumers,attempts,failures,crashes"),
    ("regions", None, "failures,executors,inline"),
    ("slot_owners", None, "instances,slots,subtasks,vertices,constraints"),
    ("slot_pool", None, "allocations,slots,demand,failures"),
    ("slot_pool", "return-voids-offers", "allocations,slots,demand,failures"),
    ("task_descriptors", None, "failures"),
)
"""Models and variants with proofs for every value of some parameters (`--any`)."""


@dataclass(frozen=True)
class Row:
    """One property of one model."""

    model: str
    variant: str
    name: str
    verdict: str
    engine: str
    sizes: str
    seconds: float
    certificate: str

    def __str__(self) -> str:
        cells = (self.model, self.variant, self.name, self.verdict, self.engine, self.sizes, f"{self.seconds:.1f}")
        return "| " + " | ".join((*cells, self.certificate)) + " |"


HEAD = """| model | variant | property | verdict | engine | sizes | seconds | certificate |
| --- | --- | --- | --- | --- | --- | --- | --- |"""


def tasks(only: str | None) -> Iterator[tuple[str, str | None, tuple[str, ...], str]]:
    """Model, variant, the options for its size, and the name of that size."""
    for entry in sorted(entry_points(group="streamproof.models"), key=lambda e: e.name):
        if only not in (None, entry.name):
            continue
        target = find(entry.name)
        for variant in (None, *target.spec.model.variants):
            small = "small" in target.variant(variant).sizes
            yield entry.name, variant, ("--size", "small") if small else (), "small" if small else "default"


def rows(model: str, variant: str | None, words: tuple[str, ...], size: str, timeout: float) -> Iterator[Row]:
    """The rows of one model or variant."""
    chosen = (model, *(("--variant", variant) if variant else ()), *words)
    with tempfile.TemporaryDirectory() as folder:
        certificate = Path(folder) / "certificate.json"
        options = ("--timeout", f"{timeout:g}", "--certificate", str(certificate), "-q", "--json", "-")
        answer = _json(("prove", *chosen, *options), folder)
        if answer is None:
            return
        kept = _accepted_size(certificate, folder)
    engines = answer.get("engines", {})
    for prop in answer["properties"]:
        engine = engines.get(prop["name"], "none")
        # A search without a counterexample has no certificate.
        shown = engine != "none" and (engine != "search" or prop["verdict"] == "violated")
        evidence = kept if shown else "none"
        yield Row(
            model, variant or "", prop["name"], prop["verdict"], engine, size, answer["seconds"]["total"], evidence
        )


def for_every_size(model: str, variant: str | None, free: str, timeout: float) -> Iterator[Row]:
    """The rows of one model or variant with `--any`."""
    chosen = (model, *(("--variant", variant) if variant else ()))
    with tempfile.TemporaryDirectory() as folder:
        certificate = Path(folder) / "certificate.json"
        options = ("--timeout", f"{timeout:g}", "--certificate", str(certificate), "-q", "--json", "-")
        answer = _json(("prove", *chosen, "--any", free, *options), folder)
        kept = _accepted_size(certificate, folder)
    if answer is None:
        return
    for prop in answer["properties"]:
        found = prop.get("sizes")
        sizes = f"any {free}" if found == "any" else _listed(found or [])
        engine = {"holds": "induction", "violated": "explicit"}.get(prop["verdict"], "none")
        seconds, evidence = answer["seconds"]["total"], kept if prop["verdict"] == "holds" else "none"
        yield Row(model, variant or "", prop["name"], prop["verdict"], engine, sizes, seconds, evidence)


def _listed(sizes: list[dict[str, int]]) -> str:
    """The small instances in which a property holds, as text."""
    return "; ".join(" ".join(f"{name}={value}" for name, value in one.items()) for one in sizes) or "none"


def others(only: str | None) -> list[Row]:
    """The rows of the page about the other models; None: all rows."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 8 and cells[0] not in ("model", "---", only):
            model, variant, name, verdict, engine, sizes, seconds, certificate = cells
            found.append(Row(model, variant, name, verdict, engine, sizes, float(seconds), certificate))
    return found


def _json(words: tuple[str, ...], folder: str) -> dict[str, Any] | None:
    """The JSON output of a command; None if there is nothing to prove."""
    command = [sys.executable, "-m", "streamproof", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if "to prove" in done.stderr:
        return None
    try:
        return dict(json.loads(done.stdout))
    except ValueError:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}") from None


def _accepted_size(certificate: Path, folder: str) -> str:
    """The size of a certificate, and whether its verifier rejects it."""
    if not certificate.exists():
        return "none"
    command = [sys.executable, "-m", "streamproof", "verify-certificate", str(certificate)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    size = f"{certificate.stat().st_size / 1000:.1f} kB"
    return size if done.returncode == 0 else f"{size}, not accepted"


def page(found: list[Row], timeout: float) -> str:
    """The page, from its template."""
    text = (HERE / "proofs.template.md").read_text(encoding="utf-8")
    undecided = [row for row in found if row.verdict == "inconclusive"]
    left = "\n".join(f"* {r.model}{f', {r.variant}' if r.variant else ''}: {r.name}" for r in undecided) or "None."
    every, run = {name for name, *_ in tasks(None)}, {row.model for row in found}
    listed = {(row.model, row.variant) for row in found}
    names = ", ".join(f"`{name}`" for name in sorted(every - run))
    why = "Without rows, because `prove` was not run on them for this table"
    variants = {name: [v for v in find(name).spec.model.variants if (name, v) not in listed] for name in sorted(run)}
    some = ", ".join(
        f"{len(own)} of {len(find(name).spec.model.variants)} of `{name}`" for name, own in variants.items() if own
    )
    apart = f"Variants without rows: {some}.\n\n" if some else ""
    for key, value in {
        "count": f"{len(run)} of the {len(every)}" if names else f"the {len(every)}",
        "missing": f"{why}: {names}. Their pages say what is established, and by which command.\n\n{apart}"
        if names
        else apart,
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "table": "\n".join((HEAD, *map(str, found))),
        "undecided": left,
        "timeout": f"{timeout:g}",
    }.items():
        text = text.replace("{" + key + "}", value)
    return text


def main() -> None:
    """Measure, print, and write the page if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timeout", type=float, default=LIMIT, help="seconds for each model or variant")
    parser.add_argument("--only", metavar="MODEL")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    print(HEAD)
    kept = others(options.only) if options.only or options.missing else []
    listed = {(row.model, row.variant) for row in kept if row.sizes in SIZES}
    chosen = [task for task in tasks(options.only) if (task[0], task[1] or "") not in listed]
    groups = [rows(*task, options.timeout) for task in sorted(chosen, key=lambda task: task[1] is not None)]
    groups += [
        for_every_size(m, v, free, options.timeout)
        for m, v, free in FOR_EVERY_SIZE
        if options.only in (None, m) and not options.missing
    ]
    found: list[Row] = []
    for group in groups:
        for row in group:
            found.append(row)
            print(row, flush=True)
        if options.write and options.missing:
            written([*kept, *found], options.timeout)
    if options.write:
        written([*kept, *found], LIMIT if options.only else options.timeout)


def written(found: list[Row], timeout: float) -> None:
    """Writes the page about these rows."""
    found = sorted(found, key=lambda row: (row.sizes not in SIZES, row.model))
    partly = PAGE.with_suffix(".part")
    partly.write_text(page(found, timeout), encoding="utf-8")
    os.replace(partly, PAGE)


if __name__ == "__main__":
    main()
