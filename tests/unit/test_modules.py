"""No module of the checker imports itself in a circle, imports for type checkers and inside functions included, no class
shares its name with another, and a check loads few modules."""

from __future__ import annotations

import ast
import functools
import runpy
from collections import defaultdict
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("modules")  # the syntax trees of all modules are made once

CHECKER = Path(__file__).resolve().parents[2] / "checker"


def name_of(file: Path) -> str:
    """The module that a file is, without the name of the whole package."""
    parts = file.relative_to(CHECKER / "streamproof").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def trees() -> dict[str, ast.Module]:
    """The modules of the checker."""
    return {name_of(file): ast.parse(file.read_text(encoding="utf-8")) for file in sorted(CHECKER.rglob("*.py"))}


def imported(tree: ast.AST) -> Iterator[str]:
    """The modules of ours that are imported anywhere in a module, and what may be a name in one of them."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            root, _, rest = name.partition(".")
            if root == "streamproof":
                yield rest


def graph(modules: Mapping[str, ast.AST]) -> dict[str, set[str]]:
    """Which module imports which; an object of a module counts as the module."""
    found: dict[str, set[str]] = {name: set() for name in modules}
    for name, tree in modules.items():
        for target in imported(tree):
            while target and target not in modules:
                target = target.rpartition(".")[0]
            if target and target != name:
                found[name].add(target)
    return found


def cycle(imports: Mapping[str, set[str]]) -> list[str]:
    """The modules of some circle of imports; empty if there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


@pytest.mark.push
def test_there_are_no_import_cycles() -> None:
    """Imports for type checkers and inside functions count: they too say what cannot be understood alone."""
    imports = graph(trees())
    assert sum(map(len, imports.values())) > 1_000, "the imports are not found"
    assert cycle(imports) == []


@pytest.mark.parametrize(
    "text",
    [
        "import streamproof.b",
        "from streamproof.b import thing",
        "from streamproof import b",
        "def later():\n    from streamproof.b import thing",
        "if TYPE_CHECKING:\n    from streamproof.b import thing",
    ],
)
def test_every_kind_of_import_is_found(text: str) -> None:
    """At the top, inside functions, for type checkers; of a module or of what is in it."""
    modules = {"a": ast.parse(text), "b": ast.parse("from streamproof.a import thing")}
    assert sorted(set(cycle(graph(modules)))) == ["a", "b"]


def test_class_names_are_unique() -> None:
    """Whoever looks for a class finds one."""
    homes: dict[str, list[str]] = defaultdict(list)
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(module)
    assert len(homes) > 500, "the classes are not found"
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


MOST = 105
"""Most modules of ours that a check of a bundled model loads."""
EVERYTHING = {"cyclic": 117, "lifecycle_failover": 117}
"""Those that need nearly all there is: composition, the compiled tier, temporal properties and traces."""


@pytest.mark.parametrize(
    ("model", "needed", "needless"),
    [
        ("reference.two_phase_commit", "explicit.search", "explicit.liveness explicit.compiled traces"),  # invariants
        (
            "reference.die_hard",
            "traces.render",
            "explicit.liveness explicit.compiled system.temporal",
        ),
        (
            "failover",
            "traces.render explicit.state_graph",
            "explicit.liveness explicit.compiled language.lower.refinement",
        ),
        ("reference.mattern", "explicit.compiled explicit.liveness", "traces language.lower.refinement"),
        ("reference.raft_election", "traces.render transform.constraint", "explicit.liveness exchange.itf.reading"),
        ("credit_connection", "language.lower.refinement explicit.liveness", "explicit.compiled traces"),
        ("credit_barriers", "language.declare.composition explicit.compiled", "language.lower.refinement traces"),
        ("cyclic", "language.lower.refinement traces.render", "system.temporal explicit.simulation"),
        pytest.param(
            "lifecycle_failover",
            "language.declare.composition traces.render",
            "language.lower.refinement",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_check_loads_what_it_needs(model: str, needed: str, needless: str, tmp_path: Path) -> None:
    """At most 105 modules of ours beside folders, with few exceptions, and none for what the model does not have."""
    loaded = runpy.run_path(str(CHECKER.parent / "benchmarks" / "start_up.py"))["loaded"]
    ours = {name.removeprefix("streamproof.") for name in loaded([model, "--quiet"], str(tmp_path))}
    assert {"cli.check", "explicit.search", "language.lower.model_reader", *needed.split()} <= ours
    assert len(
        [name for name in ours if not (CHECKER / "streamproof" / name.replace(".", "/")).is_dir()]
    ) <= EVERYTHING.get(model, MOST)
    assert ours.isdisjoint(needless.split())
