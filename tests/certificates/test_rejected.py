"""Tampered certificates are rejected, with the reason: by the checksum, and by their meaning where it fits again."""

from __future__ import annotations

import ast
import hashlib
import json
import lzma
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from program_size import program_size
from random_systems import random_system, temporal_system
from shares import share
from streamproof.base.errors import EvaluationError, Rejected
from streamproof.certify import verifier
from streamproof.certify.evidence import certify_findings
from streamproof.certify.verifier import MAGIC, verify
from streamproof.model_registry import find
from streamproof.system import (
    Action,
    Check,
    Conjunct,
    Fairness,
    Instance,
    Kind,
    Property,
    RangeSort,
    System,
    Variable,
    Verdict,
)
from streamproof.system import build as b
from streamproof.system.interpreter import Interpreter
from streamproof.system.reference import reference
from streamproof.system.verdict import Finding, Trace

PROGRAM = Path(verifier.__file__).parent
LARGEST_VERIFIER = 3_200
"""Statements and expressions of the verifier, at most: less than 400 lines."""


@pytest.fixture(scope="module")
def whole(searched: Any, model: Any) -> Any:
    """A certificate with a closed set, ranks of termination, and behaviours: of a variant that is violated."""
    return searched(model("failover", "no-topological-order", topology="pair"))


@pytest.fixture(scope="module")
def fair(searched: Any, model: Any) -> Any:
    """A certificate with ranks of a temporal property."""
    return searched(model("reference.ewd840", n=3))


@pytest.fixture(scope="module")
def lasso(searched: Any, model: Any) -> Any:
    """A certificate with lassos: of termination, and of temporal properties."""
    return searched(model("credit", "lost-announcement", channels=1))


@pytest.fixture(scope="module")
def induction(proved: Any, model: Any) -> Any:
    """A certificate of a proof by induction that needs lemmas."""
    return proved(model("failover"), ["stops_before_restart", "consistent_result", "fresh_attempts"])


def _imported(path: Path) -> set[str]:
    """The modules that a program imports anywhere; relative imports count as their own."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." * node.level + (node.module or ""))
    return found


def test_the_verifier_stays_small_and_shares_the_interpreter_only() -> None:
    """It imports `streamproof.system` and what that needs, one more file, the standard library and Z3; both are short."""
    todo, seen = [PROGRAM / "verifier.py"], set[Path]()
    while todo:
        path = todo.pop()
        seen.add(path)
        for name in _imported(path):
            top, *rest = name.split(".")
            if top == "streamproof" and rest[:1] not in (["base"], ["system"], ["transform"]):
                assert rest[0] == "certify", f"{path.name} imports {name}"
                own = PROGRAM / f"{rest[1]}.py"
                todo += [own] if own not in seen else []
            else:
                assert top in {*sys.stdlib_module_names, "z3", "streamproof"}, f"{path.name} imports {name}"
    assert seen == {PROGRAM / "verifier.py", PROGRAM / "verifier_induction.py"}
    sizes = {path.name: program_size(path) for path in seen}
    assert sum(sizes.values()) <= LARGEST_VERIFIER, sizes


def test_the_size_of_a_program_is_not_a_matter_of_layout(tmp_path: Path) -> None:
    """Statements on one line and conditions in one expression count as much as those written apart."""
    apart, dense, more = tmp_path / "apart.py", tmp_path / "dense.py", tmp_path / "more.py"
    apart.write_text('"""Words."""\n\n# Why.\nx = (\n    1\n    + y\n)\nz = x\n', encoding="utf-8")
    dense.write_text("x = 1 + y; z = x", encoding="utf-8")
    more.write_text("x = 1 + y; z = x + 1", encoding="utf-8")
    assert program_size(apart) == program_size(dense) == program_size(more) - 2 == 8


def _refused(data: bytes, system: System) -> str:
    with pytest.raises(Rejected) as refused:
        verify(data, lambda _: system, lambda _: None)
    return refused.value.message


def test_every_flipped_bit_and_every_truncation_is_seen(fair: Any) -> None:
    """Five hundred single bits, the first and the last among them, and files cut short or with more at the end."""
    data, random = fair.file(), Random(1)
    bits = {0, 8 * len(data) - 1, *(random.randrange(8 * len(data)) for _ in range(500))}
    for bit in bits:
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        assert "rejected: it does not begin" in (said := _refused(bytes(changed), fair.system)) or "checksum" in said
    for size in (0, 1, 30, 90, len(data) // 2, len(data) - 1):
        assert "rejected: it" in _refused(data[:size], fair.system)
    assert "checksum" in _refused(data + b"\n", fair.system)


def _rejected(certificate: Any) -> str:
    return _refused(certificate.file(), certificate.system)


# --- the closed set -------------------------------------------------------------------------------------------------


def test_no_state_can_be_left_out(whole: Any) -> None:
    """Any state removed, with the counts adapted: a step leads out of the set, or an initial state is missing."""
    count = whole.header["counts"]["distinct"]
    for at in (0, 1, count - 1, *Random(2).sample(range(count), 12)):
        changed = whole.copy()
        changed.remove_state(at)
        said = _rejected(changed)
        assert any(why in said for why in ("leads out of its states", "first level", "counts do not fit"))


def test_no_state_can_be_added(whole: Any) -> None:
    """A combination of values that is not reachable, on any level, with the counts adapted."""
    random, states = Random(3), set(zip(*whole.columns, strict=True))
    added = 0
    while added < 12:
        changed = whole.copy()
        extra = tuple(random.randrange(len(values)) for values in whole.tables)
        if extra in states:
            continue
        added += 1
        level = random.randrange(len(whole.header["counts"]["levels"]))
        at = sum(whole.header["counts"]["levels"][: level + 1])
        for column, value in zip(changed.columns, extra, strict=True):
            column.insert(at, value)
        changed.header["counts"]["distinct"] += 1
        changed.header["counts"]["levels"][level] += 1
        for ranks in changed.ranks():
            ranks.insert(at, 1 << 30)
        assert "malformed" not in _rejected(changed)


def test_no_state_can_be_put_on_another_level(whole: Any) -> None:
    """The last state of a level counted with the next, or the first of the next with it, for pairs of levels."""
    levels = whole.header["counts"]["levels"]
    assert len(levels) > 9
    for at in range(0, len(levels) - 1, 3):
        for shift in (1, -1):
            changed = whole.copy()
            changed.header["counts"]["levels"][at] += shift
            changed.header["counts"]["levels"][at + 1] -= shift
            said = _rejected(changed)
            assert "level" in said or "counts do not fit" in said


def test_a_value_of_one_state_cannot_be_changed(whole: Any) -> None:
    """The number of a value in some state is another one."""
    random = Random(4)
    for _ in range(12):
        changed = whole.copy()
        column = random.choice([k for k, values in enumerate(whole.tables) if len(values) > 1])
        state = random.randrange(len(changed.columns[column]))
        values = len(whole.tables[column])
        changed.columns[column][state] = (changed.columns[column][state] + random.randrange(1, values)) % values
        said = _rejected(changed)
        assert any(why in said for why in ("leads out", "twice", "first level", "no step", "deeper level", "mistake"))


@pytest.mark.parametrize("what", ["distinct", "generated", "depth"])
def test_counts_are_counted_again(whole: Any, what: str) -> None:
    """One more or one less than there are."""
    for shift in (1, -1):
        changed = whole.copy()
        changed.header["counts"][what] += shift
        assert "rejected" in _rejected(changed)


@pytest.mark.push
def test_the_verdict_cannot_be_changed(whole: Any, fair: Any, lasso: Any, induction: Any) -> None:
    """Every claim of four certificates, turned into every other verdict."""
    tried: Counter[str] = Counter()
    for certificate in (whole, fair, lasso, induction):
        for name, claimed in certificate.header["claims"].items():
            for other in {"holds", "violated", "inconclusive", "error"} - {claimed}:
                changed = certificate.copy()
                changed.header["claims"][name] = other
                assert name in _rejected(changed)
                tried[claimed] += 1
    assert min(tried["holds"], tried["violated"]) >= 15, tried


def _claiming_error(path: Path, system: System, prop: Property, trace: Trace) -> bool:
    """Whether the verifier accepts that a property is an error, shown by a behaviour at whose end evaluation fails."""
    written = certify_findings(path, system, "model", (), (Finding(prop.name, prop.kind, Verdict.ERROR, trace),), "no")
    if not written.claims:
        return False
    try:
        verify(path.read_bytes(), lambda _: system, lambda _: None)
    except Rejected as refused:
        return f"{prop.name} is decided before the evaluation error" not in refused.message
    return True


def _failing(system: System) -> Iterator[tuple[Property, Trace]]:
    """Every property with a behaviour to each state in which it, or a step from there, cannot be evaluated."""
    interpreter = Interpreter(system)
    traces = {state: Trace((state,), ()) for state in interpreter.initial_states()}
    todo = list(traces)
    for state in todo:  # which grows
        trace = traces[state]
        try:
            steps = list(interpreter.steps(state))
        except EvaluationError:
            yield from ((prop, trace) for prop in system.properties)
            continue
        for prop in system.properties:
            ends = [(Trace((*trace.states, s.state), (*trace.steps, s.instance)), (state, s.state)) for s in steps]
            for way, end in ends if prop.kind is Kind.STEP else [(trace, (state,))]:
                try:
                    interpreter.holds(prop, *end)
                except EvaluationError:
                    yield prop, way
        for step in steps:
            if step.state not in traces:
                traces[step.state] = Trace((*trace.states, step.state), (*trace.steps, step.instance))
                todo.append(step.state)


@pytest.mark.parametrize("seeds", share([range(40), range(40, 400), range(400, 1500)], 3), ids=["few", "more", "many"])
def test_an_error_is_accepted_where_check_says_error(tmp_path: Path, seeds: range) -> None:
    """A state or step on a smaller level decides a property before an error; so does one on the same level, except steps and
    deadlocks beside an error of the model, where the order of states decides."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        system = random_system(Random(seed)) if seed % 3 else temporal_system(Random(seed))
        found = reference(system)
        for number, (prop, trace) in enumerate(_failing(system)):
            decision, level = found.decisions[prop.name], found.mistake
            either = level is not None and decision.length is not None
            if either and level is not None and decision.length is not None:
                either = decision.length + (prop.kind is Kind.DEADLOCK) > level
            right = (decision.verdict is Verdict.ERROR or either) and prop.kind is not Kind.TERMINATION
            assert _claiming_error(tmp_path / f"{seed}-{number}", system, prop, trace) is right, (seed, prop.name)
            seen["error" if right else decision.verdict.value] += 1
            if number > 30:
                break
    assert min(seen[verdict] for verdict in ("error", "holds", "violated")) >= len(seeds) // 30, seen


def test_a_state_that_is_reached_is_no_error_of_a_deeper_state(tmp_path: Path, searched: Any) -> None:
    """Check says that it is reached; the behaviour that goes on to where it cannot be evaluated shows nothing else."""
    n = b.var("n", RangeSort(0, 3))
    up = Instance("up", (), (), (Conjunct(b.less(n, b.num(3)), "n < 3", None),), (("n", b.add(n, b.num(1))),))
    check = Check(b.eq(n, b.num(3)), "three", None)
    system = System(
        "deeper",
        (Variable("n", RangeSort(0, 3), (0,)),),
        (Action("up", (), Fairness.NONE, (up,)),),
        tuple(Property(f"at_{k}", Kind.REACHABLE, b.eq(n, b.num(k)), checks=(check,)) for k in (1, 3)),
    )
    assert searched(system).header["claims"] == {"at_1": "holds", "at_3": "error"}
    whole = Trace(((0,), (1,), (2,), (3,)), (up, up, up))
    accepted = [_claiming_error(tmp_path / prop.name, system, prop, whole) for prop in system.properties]
    assert accepted == [False, True]


def test_what_is_violated_cannot_be_claimed_without_its_behaviour(whole: Any) -> None:
    """The behaviour is taken out, and the property said to hold: the states show that it does not."""
    violated = [name for name, verdict in whole.header["claims"].items() if verdict == "violated"]
    assert violated
    for name in violated:
        changed = whole.copy()
        changed.header["claims"][name] = "holds"
        del changed.evidence["traces"][name]
        said = _rejected(changed)
        assert name in said or "numbers" in said


def _edit(path: list[str], value: Any) -> Callable[[Any], None]:
    def change(certificate: Any) -> None:
        place = {"header": certificate.header, "evidence": certificate.evidence}
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_edit(["header", "fingerprint"], "0" * 64), "it is of another failover than this one"),
        (_edit(["header", "counts"], None), "it has claims that need the set of all states"),
        (_edit(["header", "note"], 1), "its parts are not those of a certificate"),
        (_edit(["evidence", "note"], 1), "its parts are not those of a certificate"),
        (_edit(["header", "claims", "unknown"], "holds"), "it is malformed: it names a missing entry"),
        (_edit(["header", "counts", "levels"], [1]), "its counts do not fit"),
        (_edit(["evidence", "ranks", "no_such"], []), "it has evidence without a claim"),
        (_edit(["evidence", "traces", "no_such"], {}), "it has evidence without a claim"),
        (_edit(["evidence", "proofs"], [{"claims": ["nothing"]}]), "it has evidence without a claim"),
    ],
)
def test_other_parts_cannot_be_changed(whole: Any, change: Callable[[Any], None], why: str) -> None:
    """Header and evidence changed elsewhere, each with its own message."""
    changed = whole.copy()
    change(changed)
    assert why in _rejected(changed)


def test_a_certificate_is_of_one_system(whole: Any, model: Any) -> None:
    """With another variant, other parameters or another property it is refused before anything is looked at."""
    others = [model("failover"), replace(whole.system, properties=whole.system.properties[:-1])]
    for other in others:
        assert "have changed" in _refused(whole.file(), other)


# --- behaviours -----------------------------------------------------------------------------------------------------


def test_no_step_or_state_of_a_behaviour_can_be_changed(whole: Any, lasso: Any) -> None:
    """For every behaviour: a state or step left out, a label or value of another, a loop that leads elsewhere."""
    looked_at = 0
    for certificate in (whole, lasso):
        for name, trace in certificate.evidence["traces"].items():
            steps = len(trace["steps"])
            edits: list[Callable[[Any], None]] = [
                lambda t: t["states"].pop(0),
                lambda t: t["states"].reverse() if len(t["states"]) > 1 else t["states"].clear(),
                lambda t: t["states"].append(t["states"][0]),
                lambda t: t["steps"].append("nothing()"),
                lambda t: t.update(loop=len(t["states"])),
                lambda t: t.update(loop=-1),
                lambda t: t["states"][-1].pop(),
            ]
            if steps:
                edits += [lambda t: t["steps"].pop(), lambda t: t["steps"].__setitem__(0, "nothing()")]
                edits += [lambda t, k=k: (t["states"].pop(k), t["steps"].pop(k)) for k in range(min(steps, 6))]
            for edit in edits:
                changed = certificate.copy()
                edit(changed.evidence["traces"][name])
                assert "rejected" in _rejected(changed)
                looked_at += 1
    assert looked_at > 40


def test_a_lasso_must_be_fair(lasso: Any) -> None:
    """To stay in the first state for ever makes the formula false, but something is owed there."""
    changed = lasso.copy()
    (name,) = {n for n, t in changed.evidence["traces"].items() if n == "consumed"}
    changed.evidence["traces"][name] = {
        "states": changed.evidence["traces"][name]["states"][:1],
        "steps": [],
        "loop": 0,
    }
    said = _rejected(changed)
    assert f"the behaviour for {name}" in said


# --- ranks ----------------------------------------------------------------------------------------------------------


def test_ranks_of_termination_must_fall(whole: Any) -> None:
    """Of a state that has successors: a rank of 0, or one that is no number."""
    ranks = whole.evidence["ranks"]["termination"]
    tried = [at for at in range(len(ranks)) if ranks[at]][:: max(1, len(ranks) // 10)]
    assert tried
    for at in tried:
        changed = whole.copy()
        changed.evidence["ranks"]["termination"][at] = 0
        assert "the rank for termination does not fall" in _rejected(changed)
    text = json.dumps(whole.evidence | {"ranks": {"termination": [float("nan")] * len(ranks)}}).encode()
    rest = json.dumps(whole.header).encode() + b"\n" + lzma.compress(text)
    assert "NaN" in _refused(MAGIC + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest, whole.system)


@pytest.mark.long
@pytest.mark.parametrize("every", share([40, 20], 2))
def test_ranks_of_temporal_properties_are_checked(every: int, fair: Any) -> None:
    """Ranks all alike, missing, in tables that are missing; or in one state raised above all others, or lowered below."""
    (name,) = fair.evidence["ranks"]
    (table,) = fair.evidence["ranks"][name]
    for tables in ([], [{}], [{guess: column[:-1] for guess, column in table.items()}]):
        changed = fair.copy()
        changed.evidence["ranks"][name] = tables
        assert "malformed" in _rejected(changed)
    changed = fair.copy()
    changed.evidence["ranks"][name] = [{guess: [0] * len(column) for guess, column in table.items()}]
    assert "a fair behaviour may make" in _rejected(changed)
    seen = 0
    for guess, column in table.items():
        for at in range(0, len(column), every):
            for rank in (1 << 30, -1):
                changed = fair.copy()
                changed.evidence["ranks"][name][0][guess][at] = rank
                if column[at]:
                    assert "a rank rises" in _rejected(changed)
                    seen += 1
    assert seen > 10


@pytest.mark.parametrize("seeds", share([10, 40], 2))
def test_ranks_never_show_what_is_false(seeds: int, searched: Any) -> None:
    """For violated temporal properties of random systems: random tables of ranks, all rejected."""
    tried = 0
    for seed in range(seeds):
        system, random = temporal_system(Random(seed)), Random(seed)
        found = reference(system)
        if not found.levels or found.mistake is not None:
            continue
        for prop in system.properties:
            if found.decisions[prop.name].verdict is not Verdict.VIOLATED:
                continue
            certificate = searched(replace(system, properties=(prop,)), tier="python")
            certificate.evidence["traces"] = {}
            certificate.header["claims"] = {prop.name: "holds"}
            count = certificate.header["counts"]["distinct"]
            for _ in range(20):
                most = random.choice((1, 3, 9))
                tables = [
                    {str(guess): [random.randrange(most) for _ in range(count)] for guess in range(64)}
                    for _ in range(4)
                ]
                certificate.evidence["ranks"] = {prop.name: tables}
                said = _rejected(certificate)
                assert prop.name in said or "malformed: a number in it is out of range" in said, said
                tried += prop.name in said
    assert tried > 2 * seeds


# --- induction ------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_no_lemma_that_is_needed_can_be_left_out(induction: Any) -> None:
    """Without one of the lemmas the rest is not inductive; it is said what does not follow."""
    (proof,) = induction.evidence["proofs"]
    assert len(proof["lemmas"]) >= 3
    for name in proof["lemmas"]:
        changed = induction.copy()
        changed.evidence["proofs"][0]["lemmas"].remove(name)
        assert "is not always true after 1 states" in _rejected(changed)


def test_formulas_of_a_proof_must_be_inductive(proved: Any, model: Any) -> None:
    """A formula that is false, one that is true and not inductive, and one that is no formula."""
    certificate = proved(model("reference.ewd840"), ["detection_is_right", "dijkstra"])
    end = certificate.system.variables[0].name
    for formula, why in (
        (False, "formula 1 is not always true in the first 1 states"),
        (["Not", 1], "it is malformed"),
        (["Var", "nowhere"], "it is malformed: it names a missing entry"),
        (["Less", 1, 2, 3], "it is malformed"),
        ("true", "it is malformed"),
    ):
        changed = certificate.copy()
        changed.evidence["proofs"][0]["formulas"] = [formula]
        assert why in _rejected(changed), (formula, end)


def test_the_strength_of_an_induction_counts(proved: Any) -> None:
    """What needs two states in a row is rejected with one; the names of states need to be different only then."""
    system = find("reference.die_hard").system(None, {})
    certificate = proved(system, ["deadlock"])
    for change in ({"k": 0}, {"k": "x"}, {"more": 1}):
        changed = certificate.copy()
        changed.evidence["proofs"][0].update(change)
        assert "rejected" in _rejected(changed)
