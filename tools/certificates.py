"""Sizes and verification times of certificates: the table of docs/how-to-certify.md, measured on this machine.

    python tools/certificates.py [--write]

Each model is checked or proved with a certificate, which `verify-certificate` must accept. Times are processor seconds of
whole processes, so that other load has little influence. `--write` writes the table to the page.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to-certify.md"
HEAD = "| model | states | certificate | written with the check in | verified in |\n|---|---|---|---|---|\n"
ROWS = (
    ("`failover`", ("check", "failover")),
    ("`credit`", ("check", "credit")),
    ("`reference.token_ring`", ("check", "reference.token_ring")),
    ("`reference.coffee_can`", ("check", "reference.coffee_can")),
    ("`failover`, proved by induction", ("prove", "failover", "--engine", "induction")),
)


def run(*words: str) -> tuple[float, Any]:
    """The processor seconds of a command, and its JSON result. Raises `SystemExit` without result."""
    begun = _spent()
    done = subprocess.run(
        [sys.executable, "-m", "streamproof", *words, "-q", "--json", "-"], capture_output=True, text=True, check=False
    )
    seconds = _spent() - begun
    if not done.stdout:
        raise SystemExit(f"streamproof {' '.join(words)}\n{done.stderr}")
    return seconds, json.loads(done.stdout)


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def row(name: str, words: tuple[str, ...], folder: Path) -> str:
    """One line of the table. Raises `SystemExit` for a rejected certificate."""
    file = folder / "certificate"
    written, _ = run(*words, "--certificate", str(file))
    verified, answer = run("verify-certificate", str(file))
    if not answer["accepted"]:
        raise SystemExit(f"{name}: {answer['because']}")
    counts = answer["counts"]
    states = "any number that it has" if counts is None else f"{counts['distinct']:,}"
    size = file.stat().st_size / 1000
    file.unlink()
    return f"| {name} | {states} | {size:.{0 if size >= 10 else 1}f} kB | {written:.0f} s | {verified:.0f} s |\n"


def placed(page: str, table: str) -> str:
    """The page with its table replaced. Raises `ValueError` for a page without table."""
    begin = page.index(HEAD)
    return page[:begin] + table + page[page.index("\n\n", begin) + 1 :]


def main() -> None:
    """Measure, print, and write the page if requested."""
    parser = argparse.ArgumentParser(description="sizes of certificates and the seconds to check them")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}")
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}")
    table = HEAD
    with tempfile.TemporaryDirectory() as folder:
        for name, words in ROWS:
            table += row(name, words, Path(folder))
            print(table.splitlines()[-1], flush=True)
    if options.write:
        fresh = PAGE.with_suffix(".fresh")
        fresh.write_text(placed(PAGE.read_text(encoding="utf-8"), table), encoding="utf-8")
        os.replace(fresh, PAGE)


if __name__ == "__main__":
    main()
