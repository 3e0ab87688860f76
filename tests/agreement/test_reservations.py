"""What a search says without a reservation is true of all reachable states, as the interpreter finds them.

That includes searches that are reduced, cut, resumed or on disk, random walks, and proofs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from random_constraints import limited, step_limited
from random_symmetric_systems import symmetric_system
from random_systems import random_system
from streamproof.base.errors import EvaluationError
from streamproof.base.options import SearchOptions
from streamproof.base.records import dataclass
from streamproof.base.text import text
from streamproof.engines.registry import CHECKS, PROVERS
from streamproof.explicit.exploration import explore
from streamproof.explicit.findings import antecedents
from streamproof.explicit.simulation import simulate
from streamproof.report.check_report import CheckReport, Result
from streamproof.report.console import check_lines
from streamproof.system import Kind, System, Verdict
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Conjunct, Property, State
from streamproof.system.reference import Reference, reference
from streamproof.system.sorts import RangeSort, values
from streamproof.system.verdict import CheckResult, Measure
from streamproof.transform.constraint import constrained
from streamproof.transform.scalarise import scalarise

ABOUT_ALL = {Kind.REACHABLE: Verdict.VIOLATED}


@dataclass(frozen=True)
class Drawn:
    """A random system with implications, and what the interpreter finds."""

    system: System
    implications: tuple[str, ...]
    measures: tuple[Measure, ...]
    full: Reference
    free: Reference
    """The results without the constraint."""
    states: list[State] = field(default_factory=list)

    def vacuous(self, name: str) -> bool:
        """Whether the antecedents of an implication are false in all reachable states."""
        scalarised = scalarise(self.system)
        assumed, interpreter = antecedents(scalarised.system.property(name)), Interpreter(scalarised.system)
        true = (interpreter.value(b.or_(assumed), scalarised.encode(state)) for state in self.states)
        return bool(assumed) and not any(true)

    def ever(self, condition: Expr) -> bool:
        """Whether a condition is true in some reachable state."""
        interpreter = Interpreter(self.system)
        return any(interpreter.value(condition, state) for state in self.states)

    def taken(self) -> Counter[str]:
        """The steps of each action from all reachable states."""
        interpreter = Interpreter(self.system)
        return Counter(step.instance.action for state in self.states for step in interpreter.steps(state))


def drawn(seed: int) -> Drawn | None:
    """The system of a seed; None if evaluation fails somewhere, or there is no state."""
    random = Random(seed)
    made: list[Callable[[], System | None]] = [
        lambda: limited(seed),
        lambda: step_limited(seed),
        lambda: random_system(random),
        lambda: symmetric_system(random),
        lambda: _inside(symmetric_system(random), random),
        lambda: _inside(random_system(random), random),
    ]
    system = made[seed % len(made)]()
    if system is None:
        return None
    own = system.unconstrained.variables
    equal = [b.eq(b.var(v.name, v.sort), b.const(v.sort, x)) for v in own for x in islice(values(v.sort), 4)]
    more: list[Property] = []
    for k in range(6 if equal else 0):
        one, other = random.choice(equal), random.choice(equal)
        more.append(Property(f"implied_{k}", Kind.INVARIANT, b.or_((b.not_(one), other))))
        more.append(Property(f"reached_{k}", Kind.REACHABLE, one))
    system = replace(system, properties=(*system.properties, *more))
    try:
        full, free = reference(system), reference(replace(system.unconstrained, properties=system.properties))
    except EvaluationError:
        return None
    if full.mistake is not None or not full.levels:
        return None
    numbers = [b.var(v.name, v.sort) for v in system.variables if isinstance(v.sort, RangeSort)]
    measures = tuple(Measure(f"largest_{k}", term) for k, term in enumerate(numbers))
    implied = tuple(p.name for p in more if p.kind is Kind.INVARIANT)
    return Drawn(system, implied, measures, full, free, [s for level in full.levels for s in level])


def _inside(system: System, random: Random) -> System:
    """The system with a constraint that some of its behaviours may break, or none."""
    variable = random.choice(system.variables)
    value = random.choice(list(islice(values(variable.sort), 8)))
    here = b.not_(b.eq(b.var(variable.name, variable.sort), b.const(variable.sort, value)))
    return system if here is b.FALSE else constrained(system, [Conjunct(here, "limit", None)])


def expect_true(case: Drawn, result: CheckResult) -> Counter[str]:
    """Every statement of the report that has no reservation is true; gives the number of statements by kind."""
    full, system = case.full, case.system
    limit = None if system.constraint is None else system.constraint.text
    sizes = result.measured(case.measures) if hasattr(result, "states") else ()  # type: ignore[arg-type]
    report = CheckReport(
        "model", "engine", tuple(map(Result, result.findings)), result, measures=sizes, constraint=limit
    )
    data: dict[str, Any] = report.to_json()
    lines = text(check_lines(report, detailed=True), 1000) + text(check_lines(report), 1000)
    said, outside = Counter[str](), sum(full.counts.outside)
    for prop in data["properties"]:
        name, verdict = prop["name"], Verdict(prop["verdict"])
        if verdict in (Verdict.HOLDS, Verdict.VIOLATED):
            kind, decided = Kind(prop["kind"]), full.decisions[name].verdict
            assert verdict is decided or (decided is Verdict.ERROR and kind is Kind.TERMINATION), name
            if verdict is ABOUT_ALL.get(kind, Verdict.HOLDS) and prop["within"] is None:
                assert outside == 0, f"{name} is about all behaviours"
                assert verdict is case.free.decisions[name].verdict
                said["about all behaviours"] += limit is not None
        if name in case.implications and verdict is Verdict.HOLDS:
            if prop["vacuous"] is None:
                assert data["left_out"] is not None
                assert "not known" in prop["because"] or "leaves states out" in prop["because"]
            else:
                assert prop["vacuous"] is case.vacuous(name), name
            said[f"vacuous: {prop['vacuous']}"] += 1
    if data["constraint"] is not None:
        assert data["constraint"]["outside"] in (None, outside)
        assert outside == 0 or "every state is inside" not in lines
        said["outside"] += data["constraint"]["outside"] is not None
    if data["left_out"] is None:
        inside = full.counts.inside
        assert data["states"]["distinct"] == inside.distinct
        assert (data["states"]["depth"], tuple(data["levels"])) == (inside.depth, inside.levels)
        said["counts"] += 1
    elif data["states"] is not None:
        assert data["stopped"] is not None or "those of the reduced search, which left states out" in lines
    for size in data["measures"]:
        interpreter = Interpreter(system)
        term = next(m.expr for m in case.measures if m.name == size["name"])
        largest = max(interpreter.value(term, state) for state in case.states)
        assert size["largest"] == largest if size["exact"] else size["largest"] <= largest
        said["exact"] += size["exact"]
    if data["coverage"] is not None:
        taken = case.taken()
        never = set(data["coverage"]["never_enabled"])
        assert not never & {action for action, count in taken.items() if count}
        assert "never enabled" in lines or not never
        assert all(f"all {len(taken)} actions were taken" in lines or count for count in taken.values() if not count)
        for one in data["coverage"]["never_true"]:
            guards = [
                c.expr for i in system.instances if i.action == one["action"] for c in i.guard if c.text == one["text"]
            ]
            assert not case.ever(b.or_(guards))
            said["never true"] += 1
        said["never enabled"] += len(never)
    return said


SEARCHES: tuple[Mapping[str, Any], ...] = (
    {"por": True, "tier": "python"},
    {"symmetry": True, "tier": "python"},
    {"por": True, "symmetry": True, "tier": "python"},
    {"por": True},
    {"tier": "python", "max_states": 3},
    {"tier": "python", "max_depth": 2},
    {"tier": "python", "max_violations": 1},
    {"por": True, "tier": "python", "max_states": 4},
    {"tier": "python"},
    {"tier": "compiled", "workers": 2},
    {"tier": "compiled", "max_states": 5},
)


def searched(case: Drawn, random: Random, folder: Path) -> Iterator[CheckResult]:
    """The results of searches with every option that may leave states out, each for some properties and for all."""
    names = [p.name for p in case.system.properties if p.kind is not Kind.TEMPORAL]
    for options in SEARCHES:
        if options.get("tier") == "compiled" and random.random() < 0.7:
            continue  # takes time to compile
        some = random.sample(names, min(len(names), random.choice((1, 2, len(names)))))
        early = random.random() < 0.3
        yield explore(case.system, SearchOptions(properties=some, stop_when_decided=early, **options))
    yield simulate(case.system, seed=1, properties=names, walks=2, steps=3)
    if random.random() < 0.2:
        kept, spilled = folder / "kept", folder / "spilled"
        chosen: dict[str, Any] = {"properties": names, "tier": "compiled"}
        yield explore(case.system, SearchOptions(**chosen, checkpoint=kept, checkpoint_seconds=0.0, max_depth=2))
        yield explore(case.system, SearchOptions(**chosen, resume=kept))
        yield explore(case.system, SearchOptions(**chosen, spill=spilled))


@pytest.mark.push
@pytest.mark.parametrize(
    "seeds",
    [
        range(24),
        pytest.param(range(24, 400), marks=pytest.mark.long),
        pytest.param(range(400, 3000), marks=pytest.mark.long),
    ],
    ids=["few", "more", "many"],
)
def test_what_a_search_says_of_all_states_is_true(tmp_path: Path, seeds: range) -> None:
    """Counts, levels, coverage, vacuity, measures, the constraint, and verdicts without a reservation."""
    said: Counter[str] = Counter()
    for seed in seeds:
        case = drawn(seed)
        if case is None:
            continue
        for result in searched(case, Random(seed), tmp_path / str(seed)):
            said += expect_true(case, result)
    few = len(seeds) // 24
    for kind in (
        "about all behaviours",
        "vacuous: True",
        "vacuous: False",
        "vacuous: None",
        "outside",
        "counts",
        "exact",
    ):
        assert said[kind] >= few, said
    assert said["never enabled"] + said["never true"] >= few, said


@pytest.mark.push
@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 300), marks=pytest.mark.long)], ids=["few", "many"]
)
def test_what_a_proof_says_of_vacuity_is_true(seeds: range) -> None:
    """Provers and bounded model checking examine it: as the interpreter finds it, or not at all."""
    said: Counter[str] = Counter()
    for seed in seeds:
        case = drawn(seed)
        if case is None or not case.implications:
            continue
        options = SearchOptions(properties=case.implications, max_depth=6, time_limit=20.0)
        for engine in (CHECKS["bmc"], PROVERS["induction"], PROVERS["pdr"])[: 1 + seed % 3]:
            said += expect_true(case, engine.run(case.system, options))
    assert min(said["vacuous: True"], said["vacuous: False"]) >= len(seeds) // 12, said
