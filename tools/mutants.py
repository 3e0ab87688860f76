"""Mutation testing of the code that decides verdicts: do the tests of a part fail when one place in it is changed?

    python tools/mutants.py [PART ...] [--again] [--minutes N] [--write]

cosmic-ray makes the mutants: a comparison, an operator, a number or a condition is replaced, a loop left out. Each part has a
seeded sample, at most one mutant for each place, without the places of `_equal_places`. Each mutant is run in a copy of the
committed files below `build/mutants/`, and its result is kept there: a run that was ended goes on. After a change of the code
or the tests, `--again` repeats the survivors and runs what is new in the sample.
A survivor is explained by a line of `tools/mutants.tsv`; without one, the exit code is 1.
"""

from __future__ import annotations

import argparse
import ast
import csv
import difflib
import hashlib
import importlib
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from cosmic_ray.commands import init
from cosmic_ray.mutating import use_mutation
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

from page_section import placed

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "mutants"
EXPLAINED = ROOT / "tools" / "mutants.tsv"
PAGE = ROOT / "docs" / "how-to-compare-engines.md"
SEED = "1"
ROOTS = ("checker", "models", "specs", "runtime")
LIBRARIES = (
    "hypothesis",
    "numpy",
    "z3",
    "networkx",
    "click",
    "rich.console",
    "rich.table",
    "jinja2",
    "llvmlite.binding",
    "pyarrow",
)
CPU_SECONDS, BYTES = 30, 4 << 30
"""What one process of the tests of a mutant may use; more counts as timed out, as does a test that waits for ever."""
CHOSEN = "not long and not spark"
TIMED = "not interrupt and not ctrl_c and not pipe and not clock"
"""Tests that a loaded machine could fail are left out, so that no mutant counts as killed by the load."""
KINDS = ("equivalent", "speed", "wording", "open")
"""What an explained survivor may be; see the page."""
OPEN = "not explained"
MORE = "more tests: "
"""Begins the output of the second tests of a mutant."""
UNCHANGED = re.compile(r"_(Eq_Is|NotEq_IsNot|Is_Eq|IsNot_NotEq)$|RemoveDecorator")
"""Operators that exchange equality and identity: the same for terms, which are hash-consed, and for small numbers; those that
remove a decorator, which makes values immutable or keeps results."""


@dataclass(frozen=True)
class Part:
    """The size of a sample, the modules it is drawn from, the fast tests that must notice its mutants, and more tests for the
    mutants that survive."""

    size: int
    modules: str
    tests: str
    more: str = ""


PARTS = {
    "reading of rules": Part(
        120,
        "language/lower/model_reader.py language/lower/matching.py language/lower/statements.py language/lower/operators.py"
        " language/lower/partial_fairness.py",
        "unit/test_language_rules.py unit/test_language_names.py unit/test_fair_steps.py unit/test_known_values.py"
        " unit/test_language_errors.py unit/test_language_choices.py unit/test_language_model.py"
        " unit/test_language_enabled.py unit/test_language_steady.py unit/test_temporal_language.py"
        " agreement/test_enum_subsets.py agreement/test_unions.py"
        " agreement/test_branches.py agreement/test_plain_python.py",
        "cli/test_reading.py unit/test_constraints.py unit/test_any_size.py agreement/test_bags.py"
        " agreement/test_own_methods.py"
        " agreement/test_native.py agreement/test_enumerations.py"
        " agreement/test_replaced_containers.py unit/test_composition.py agreement/test_partial_fairness.py"
        " unit/test_language_facts.py",
    ),
    "interpreter": Part(
        80,
        "system/interpreter.py",
        "unit/test_interpreter.py unit/test_scalarise.py unit/test_replay.py unit/test_single_steps.py"
        " unit/test_explicit_verdicts.py unit/test_language_rules.py unit/test_temporal.py unit/test_random_systems.py",
        "unit/test_derived.py unit/test_constraints.py agreement/test_explicit_agreement.py",
    ),
    "constraints and wording": Part(
        80,
        "transform/constraint.py system/verdict.py report/check_report.py explicit/exploration.py",
        "unit/test_check_report.py unit/test_step_bits.py unit/test_explicit_verdicts.py unit/test_temporal.py"
        " unit/test_measures.py unit/test_constraints.py unit/test_explicit_limits.py",
        "unit/test_spilling.py unit/test_explicit_source.py cli/test_check.py cli/test_reductions.py"
        " agreement/test_constraints.py",
    ),
    "reductions": Part(
        90,
        "explicit/reductions/*.py",
        "unit/test_reductions.py cli/test_reductions.py",
        "agreement/test_reductions_agreement.py",
    ),
    "fair cycles": Part(
        90,
        "explicit/liveness/*.py",
        "unit/test_liveness_automata.py unit/test_temporal.py unit/test_explicit_verdicts.py"
        " agreement/test_liveness_agreement.py::test_steps_noted_on_the_way"
        " agreement/test_liveness_agreement.py::test_limits_count_states_with_monitors"
        " agreement/test_liveness_agreement.py::test_large_tables_in_pieces"
        " agreement/test_partial_fairness.py",
        "unit/test_digraph.py unit/test_temporal_language.py agreement/test_temporal_agreement.py"
        " agreement/test_liveness_agreement.py",
    ),
    "certificates": Part(
        60,
        "certify/verifier.py certify/verifier_induction.py",
        "certificates/test_verifier_parts.py certificates/test_rejected.py"
        " certificates/test_accepted.py::test_a_search_cut_short_claims_what_behaviours_show"
        " certificates/test_accepted.py::test_every_verdict_on_a_bundled_model_is_certified"
        " certificates/test_accepted.py::test_proofs_of_random_systems_are_certified",
        "certificates/test_accepted.py certificates/test_perturbed.py",
    ),
    "certificates for every size": Part(
        20,
        "any/certify/verifier.py",
        "certificates/every_size/test_every_size_accepted.py certificates/every_size/test_every_size_forged.py",
    ),
    "conformance": Part(
        80,
        "conformance/tracker.py conformance/delaying.py conformance/moves.py",
        "conformance/test_tracker.py conformance/test_hidden_groups.py conformance/test_overlapping.py"
        " conformance/test_binding.py"
        " conformance/test_random_orders.py conformance/test_tracker_random.py",
        "conformance/test_delaying.py conformance/test_generated_steps.py conformance/test_following.py"
        " conformance/test_frontier.py conformance/test_validate.py",
    ),
}


def files_of(part: Part) -> list[Path]:
    """The modules of a part, in the current directory. Raises `SystemExit` if one is missing."""
    found = [sorted(Path("checker/streamproof").glob(pattern)) for pattern in part.modules.split()]
    if not all(found):
        raise SystemExit(f"a module is missing: {part.modules}")
    return [path for paths in found for path in paths if path.name != "__init__.py"]


def _equal_places(source: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Places whose mutants mean the same, are mere wording, or are no programs: annotations and unions of types, decorators
    (immutability, caches), assertions, arguments of `raise` (messages), `strict=`, patterns, imports for type checkers."""
    equal: list[ast.AST | None] = []
    tree = ast.parse(source)
    equal += [
        node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp | ast.Subscript)
    ]
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef():
                equal += [node.returns, *node.decorator_list]
            case ast.ClassDef():
                equal += node.decorator_list
            case ast.arg() | ast.AnnAssign():
                equal.append(node.annotation)
            case ast.Raise():
                equal.append(node.exc)
            case ast.Assert():
                equal.append(node)
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                equal.append(kinds)
            case ast.keyword(arg="strict"):
                equal.append(node)
            case ast.MatchOr():
                equal.append(node)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                equal.append(node.test)
    for found in equal:
        if found is not None:
            at = found  # every node in the list has a place
            yield (at.lineno, at.col_offset), (at.end_lineno, at.end_col_offset)  # type: ignore[attr-defined]


def sample(part: Part) -> list[WorkItem]:
    """The mutants of a part of the current directory. Names and ranks of mutants do not depend on other lines."""
    everything = WorkDB(":memory:", WorkDB.Mode.create)
    init(files_of(part), everything, {})
    sources = {path: path.read_text(encoding="utf-8") for path in files_of(part)}
    equal = {path: [*_equal_places(source)] for path, source in sources.items()}
    seen: Counter[tuple[str, ...]] = Counter()
    by_place: dict[tuple[Path, tuple[int, int]], tuple[str, WorkItem]] = {}
    for item in sorted(everything.work_items, key=lambda i: (i.mutations[0].operator_name, i.mutations[0].occurrence)):
        change = item.mutations[0]
        path, begin = change.module_path, change.start_pos
        if UNCHANGED.search(change.operator_name) or any(a <= begin < b for a, b in equal[path]):
            continue
        line = sources[path].splitlines()[begin[0] - 1].strip()
        words = (str(path), str(change.definition_name), change.operator_name, line)
        seen[words] += 1
        name = hashlib.sha256("\0".join((SEED, *words, str(seen[words]))).encode()).hexdigest()[:20]
        best = by_place.get((path, begin))
        if best is None or name < best[0]:
            by_place[path, begin] = name, WorkItem.single(name, change)
    return [item for _, item in sorted(by_place.values(), key=lambda pair: pair[0])[: part.size]]


def session(name: str) -> WorkDB:
    """The results so far of a part."""
    return WorkDB(str(BUILD / f"{name.replace(' ', '-')}.sqlite"), WorkDB.Mode.create)


def checkout(tree: Path) -> None:
    """Write the committed files, and their compiled form, to a folder of their own."""
    tree.mkdir(parents=True, exist_ok=True)
    subprocess.run(f"git archive HEAD | tar -x -C {shlex.quote(str(tree))}", shell=True, check=True, cwd=ROOT)
    compiled = ("-m", "compileall", "-q", "--invalidation-mode", "checked-hash", *ROOTS)
    subprocess.run((sys.executable, *compiled), check=True, cwd=tree)


def prepare(name: str, again: bool) -> WorkDB:
    """The session of a part: its sample, with the results that are known, except those of survivors to be repeated."""
    db = session(name)
    known = dict(db.results)
    items = sample(PARTS[name])
    db.clear()
    db.add_work_items(items)
    for item in items:
        result = known.get(item.job_id)
        if result is not None and not (again and status(result) == "survived"):
            db.set_result(item.job_id, result)
    return db


def run(name: str, again: bool, more: bool, until: float) -> None:
    """Run the mutants of a part that have no result yet, or the survivors with more tests. Raises `SystemExit` if the
    tests fail without a mutant."""
    part, tree = PARTS[name], BUILD / name.replace(" ", "-")
    if not more:
        checkout(tree)
    os.chdir(tree)
    db = session(name) if more else prepare(name, again)
    pending = db.pending_work_items
    if more:
        pending = tuple(
            i for i, r in db.completed_work_items if status(r) == "survived" and not r.output.startswith(MORE)
        )
    tests = (part.more if more else part.tests).split()
    code, output = tested(tests) if pending and tests else (0, "")
    if code:
        raise SystemExit(f"{name}: the tests fail without a mutant\n{output}")
    sys.dont_write_bytecode = True
    for item in sorted(pending, key=lambda i: str(i.job_id)) if tests else ():
        if time.time() > until:
            break
        change = item.mutations[0]
        with use_mutation(change.module_path, get_operator(change.operator_name)(), change.occurrence) as (
            before,
            after,
        ):
            code, output = tested(tests)
        lines = difflib.unified_diff(before.splitlines(), (after or before).splitlines(), n=0, lineterm="")
        outcome = TestOutcome.KILLED if code else TestOutcome.SURVIVED
        result = WorkResult(WorkerOutcome.NORMAL, MORE * more + output[-2000:], outcome, "\n".join(lines))
        db.set_result(item.job_id, result)
        print(f"{name}: {status(result)}  {change.module_path.name}:{change.start_pos[0]}", flush=True)


def tested(tests: Iterable[str]) -> tuple[int, str]:
    """The exit code and the output of tests, in a fork of this process, which has imported no module of ours."""
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if not child:
            os.setsid()
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
            roots = [str(Path(folder).resolve()) for folder in ROOTS]
            sys.path[:0] = roots
            os.environ.update(PYTHONPATH=os.pathsep.join(roots), CI="1")
            options = ["-x", "-q", "-m", CHOSEN, "-k", TIMED, "-p", "no:xdist", "-p", "no:cacheprovider"]
            code = 1
            try:
                code = int(pytest.main([*options, *(f"tests/{path}" for path in tests)]))
            finally:
                sys.stdout.flush()
                os._exit(code)
        while not (waited := os.waitpid(child, os.WNOHANG))[0]:
            with suppress(OSError):
                if int(Path(f"/proc/{child}/statm").read_text().split()[1]) * resource.getpagesize() > BYTES:
                    os.kill(child, signal.SIGKILL)
            time.sleep(0.05)
        ended = os.waitstatus_to_exitcode(waited[1])
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        file.seek(0)
        output = file.read().decode(errors="replace")
    return ended, f"{output}\nsignal {-ended}" if ended < 0 else output


def status(result: WorkResult) -> str:
    """Killed, timed out or survived."""
    if result.test_outcome == "survived":
        return "survived"
    slow = re.search(rf"signal ({signal.SIGXCPU:d}|{signal.SIGKILL:d})$|Failed: Timeout", result.output or "")
    return "timed out" if slow else "killed"


def changed(item: WorkItem, result: WorkResult) -> tuple[str, str, str, str]:
    """A survivor as a line of the table of explanations begins: module, definition, line before and after."""
    lines = (result.diff or "").splitlines()
    before = [line[1:].strip() for line in lines if re.match(r"-(?!-)", line)]
    after = [line[1:].strip() for line in lines if re.match(r"\+(?!\+)", line)]
    change = item.mutations[0]
    module = str(change.module_path).removeprefix("checker/streamproof/")
    return module, str(change.definition_name), " ".join(before), " ".join(after)


def explanations() -> dict[tuple[str, ...], tuple[str, str]]:
    """What each explained survivor means: its kind and the reason, by module, definition, line before and after."""
    with EXPLAINED.open(encoding="utf-8", newline="") as file:
        return {tuple(row[2:6]): (row[0], row[1]) for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}


def table(names: Iterable[str]) -> tuple[str, list[tuple[str, ...]]]:
    """The results as a table, and the survivors without an explanation."""
    explained = explanations()
    columns = ("mutants", "killed", "timed out", "survived", *KINDS, OPEN)
    rows, unexplained, total = [], list[tuple[str, ...]](), Counter[str]()
    for name in names:
        counts = Counter[str]()
        for item, result in session(name).completed_work_items:
            counts.update(["mutants", status(result)])
            if status(result) == "survived":
                words = changed(item, result)
                kind, _ = explained.get(words, (OPEN, ""))
                counts[kind] += 1
                unexplained += [words] if kind == OPEN else []
        total.update(counts)
        rows.append((name, counts))
    lines = [("part", *columns), ["---"] * (1 + len(columns))]
    lines += [(name, *(str(counts[column]) for column in columns)) for name, counts in (*rows, ("all", total))]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines), unexplained


def main() -> int:
    """Run what is pending, print the table and the survivors without an explanation."""
    parser = argparse.ArgumentParser(description="mutation testing of the code that decides verdicts")
    parser.add_argument(
        "parts", nargs="*", choices=[*PARTS, []], help="parts to run; all if none is named", metavar="PART"
    )
    parser.add_argument("--again", action="store_true", help="repeat the survivors with the committed code and tests")
    parser.add_argument("--minutes", type=float, default=240, help="start no mutant after N minutes", metavar="N")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}")
    options = parser.parse_args()
    names = options.parts or [*PARTS]
    BUILD.mkdir(parents=True, exist_ok=True)
    until = time.time() + 60 * options.minutes
    for library in LIBRARIES:
        importlib.import_module(library)
    for more in (False, True):
        for name in names:
            run(name, options.again, more, until)
    text, unexplained = table(PARTS if options.write else names)
    print(text)
    print(f"{sum(len(session(name).pending_work_items) for name in names)} mutants of the sample were not run")
    for words in unexplained:
        print("survived, not explained: {}, {}\n    {}\n    {}".format(*words))
    if options.write:
        PAGE.write_text(placed(PAGE.read_text(encoding="utf-8"), "mutants", text), encoding="utf-8")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
