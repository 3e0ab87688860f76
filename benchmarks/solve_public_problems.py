"""Prove the problems in `public_problems/` for every size and write docs/public-problems.md.

    python benchmarks/solve_public_problems.py [--only NAME] [--write]

Each proof writes a certificate, which `streamproof verify-certificate` must accept with both solvers.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "public_problems"
PAGE = HERE.parent / "docs" / "public-problems.md"
PROBLEMS = (
    ("locks.py:LockServer", "clients,servers"),
    ("locks.py:LockService", "n"),
    ("locks.py:LockServices", "n,locks"),
    ("locks.py:SimpleDecentralizedLock", "n"),
    ("locks.py:DecentralizedLock", "n,epochs"),
    ("locks.py:DistributedLock", "n,epochs"),
    ("locks.py:DistributedLockEpochs", "n,epochs"),
    ("locks.py:RicartAgrawala", "n"),
    ("locks.py:Ticket", "n"),
    ("agreement.py:ToyConsensusForall", "n,quorums,values"),
    ("agreement.py:QuorumLeaderElection", "n,quorums"),
    ("agreement.py:ConsensusWithoutDecision", "n,quorums"),
    ("agreement.py:ConsensusForall", "n,quorums,values"),
    ("agreement.py:TransactionCommit", "n"),
    ("agreement.py:TwoPhaseCommit", "n"),
    ("agreement.py:TwoPhase", "n"),
    ("messages.py:ShardedTable", "n,keys,values"),
    ("messages.py:RingElection", "n"),
    ("messages.py:ClientServer", "n,requests,responses"),
    ("messages.py:Firewall", "n"),
    ("messages.py:Simple", "n"),
)
"""The problems, each with the parameters that are free."""


@dataclass(frozen=True)
class Row:
    """One problem: its source, the verdict, the numbers of lemmas in the proof that are written by hand and discovered, and
    the processor time in seconds of the proof with all its comparisons."""

    problem: str
    source: str
    free: str
    verdict: str
    written: int
    discovered: int
    seconds: float
    certificate: str

    def __str__(self) -> str:
        cells = (
            self.problem,
            self.source,
            self.free,
            self.verdict,
            self.written,
            self.discovered,
            f"{self.seconds:.1f}",
        )
        return "| " + " | ".join(map(str, (*cells, self.certificate))) + " |"


def solve(problem: str, free: str) -> Row:
    """The result of one problem."""
    file, name = problem.split(":")
    body = (FOLDER / file).read_text(encoding="utf-8").partition(f"class {name}(")[2].partition("\n\n\nclass ")[0]
    source = re.search(r'"""`([^`]+)`', body)
    assert source is not None, problem
    with tempfile.TemporaryDirectory() as folder:
        place, answer = Path(folder) / "proof.cert", Path(folder) / "answer.json"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        words = (
            "prove",
            problem,
            "--any",
            free,
            "--timeout",
            "900",
            "--certificate",
            str(place),
            "--json",
            str(answer),
            "-q",
        )
        _run(words)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = json.loads(answer.read_text(encoding="utf-8"))
        certificate = ""
        if place.exists():
            checked = _run(("verify-certificate", str(place), "--model", problem))
            assert checked.returncode == 0, checked.stdout + checked.stderr
            certificate = f"{place.stat().st_size / 1000:.1f} kB"
    verdicts = {p["verdict"] for p in found["properties"]}
    used = [lemma["because"] == "discovered" for lemma in found.get("lemmas", ()) if lemma["used"]]
    seconds = after.ru_utime - before.ru_utime
    verdict = "proved" if verdicts == {"holds"} and certificate else "open"
    return Row(name, source[1], free, verdict, used.count(False), used.count(True), seconds, certificate)


def _run(words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "streamproof"
    return subprocess.run([program, *words], cwd=FOLDER, capture_output=True, text=True, check=False)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="only the problem of this name")
    parser.add_argument("--write", action="store_true", help="write docs/public-problems.md")
    given = parser.parse_args()
    if given.only and given.write:
        parser.error("--write writes all rows")
    found = []
    for problem, free in PROBLEMS:
        if given.only in (None, problem.split(":")[1]):
            found.append(solve(problem, free))
            print(found[-1], flush=True)
    if given.write:
        machine = f"Python {platform.python_version()}, {os.cpu_count()} processors"
        text = (HERE / "public_problems.template.md").read_text(encoding="utf-8")
        proved = sum(row.verdict == "proved" for row in found)
        table = "\n".join(map(str, found))
        PAGE.write_text(text.format(machine=machine, proved=proved, count=len(found), table=table), encoding="utf-8")


if __name__ == "__main__":
    main()
