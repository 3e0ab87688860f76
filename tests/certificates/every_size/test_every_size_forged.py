"""Forged certificates of proofs for every size are rejected, whatever part was changed, and however consistently."""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from program_size import program_size
from shares import share
from streamproof.any.certify import obligations
from streamproof.any.certify import verifier as verifier_any
from streamproof.any.certify.formulas import condition_data
from streamproof.any.certify.obligations import SAFE, claim_of
from streamproof.any.certify.verifier import verify_any
from streamproof.base.errors import Rejected, StreamproofError
from streamproof.certify.verifier import parse
from streamproof.certify.writing import packed
from streamproof.cli.verbs import run
from streamproof.transform.unbounded import Parametric

pytestmark = pytest.mark.usefixtures("here")
CHECKER = Path(__file__).parents[3] / "checker" / "streamproof"
LARGEST_VERIFIER = 9_200
"""Statements and expressions of the verifier of proofs for every size, at most: less than 1,700 lines."""


@pytest.fixture(scope="module")
def ring(small: Any, certified: Any) -> Any:
    """A proof with a written lemma and a step property."""
    return certified(small("TokenRing"))


@pytest.fixture(scope="module")
def buffers(small: Any, certified: Any) -> Any:
    """A proof with discovered lemmas."""
    return certified(small("Buffers"), discover=True)


def _rejected(certificate: Any) -> str:
    with pytest.raises(Rejected) as refused:
        certificate.verify()
    return refused.value.message


def test_what_is_not_changed_is_accepted(ring: Any, buffers: Any) -> None:
    """Also when every script is made again."""
    for certificate in (ring, buffers):
        certificate.verify()
        assert certificate.remade().evidence == certificate.evidence


def _places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(data, dict | list):
        for key, part in data.items() if isinstance(data, dict) else enumerate(data):
            yield from _places(part, (*path, key))
    yield path


def _other(value: Any) -> Any:
    match value:
        case bool() | None:
            return 7
        case int():
            return value + 1
        case str():
            return value + "x"
        case list():
            return [*value, value[-1]] if value else [1]
        case _:
            return {**value, "x": 1}


def _changed(root: Any, path: tuple[Any, ...], *, drop: bool) -> Any:
    if not path:
        return _other(root)
    inner = root
    for key in path[:-1]:
        inner = inner[key]
    if drop:
        del inner[path[-1]]
    else:
        inner[path[-1]] = _other(inner[path[-1]])
    return root


@pytest.mark.parametrize("drop", [False, True], ids=["changed", "dropped"])
@pytest.mark.parametrize("name", share(["ring", "buffers"], 2))
def test_no_part_of_the_file_can_be_changed(request: Any, name: str, drop: bool) -> None:
    """Each number, text, list and entry of the header and the evidence, one at a time. Only the names by which the model
    is asked for are no claim: the caller gives the system, and its fingerprint is checked."""
    certificate = request.getfixturevalue(name)
    paths = [("header", *p) for p in _places(certificate.header)] + [
        ("evidence", *p) for p in _places(certificate.evidence)
    ]
    tried = 0
    for part, *path in paths:
        if (part == "header" and path[:1] in (["model"], ["options"])) or (drop and not path):
            continue
        forged = certificate.copy()
        setattr(forged, part, _changed(getattr(forged, part), tuple(path), drop=drop))
        try:
            forged.verify()
        except StreamproofError:
            tried += 1
        else:
            raise AssertionError(f"accepted with {part} {path} changed")
    assert tried > 60


@pytest.mark.long
def test_no_assumption_can_be_dropped(ring: Any, buffers: Any) -> None:
    """Not even when the script is made again: each obligation assumes only what it needs."""
    dropped = 0
    for certificate in (ring, buffers):
        for at, one in enumerate(certificate.evidence["obligations"]):
            for need in one["needs"]:
                forged = certificate.copy()
                forged.evidence["obligations"][at]["needs"].remove(need)
                assert "differs from the one generated from the model and the lemmas" in _rejected(forged)
                assert "does not follow from its assumptions" in _rejected(forged.remade())
                dropped += 1
    assert dropped > 10


def test_no_lemma_can_be_dropped(ring: Any, buffers: Any) -> None:
    """Nor with all that assumes it made again."""
    forged = ring.copy()
    forged.evidence["lemmas"] = []
    assert "obligations are not those of its claims" in _rejected(forged)
    assert "does not follow from its assumptions" in _rejected(_rebuilt(forged))
    assert buffers.evidence["discovered"]
    for at in range(len(buffers.evidence["discovered"])):
        forged = buffers.copy()
        del forged.evidence["discovered"][at]
        assert "does not follow from its assumptions" in _rejected(_rebuilt(forged))


def _rebuilt(certificate: Any) -> Any:
    """With every obligation that its claims have, each assuming everything."""
    certificate.evidence["obligations"] = []
    return certificate.remade()


def test_no_number_or_relation_of_a_formula_can_be_changed(buffers: Any) -> None:
    """A lemma with another constant, operator or variable is not inductive, or does not help."""
    changed = 0
    rebuilt = 0
    for at, formula in enumerate(buffers.evidence["discovered"]):
        swaps = {"Add": "Sub", "Sub": "Add", "Eq": "Less", "free": "used", "used": "free", "most": "n"}
        for path in _places(formula):
            found = formula
            for key in path:
                found = found[key]
            if not (isinstance(found, int) and found != 0) and not (isinstance(found, str) and found in swaps):
                continue
            if path[:1] in ((1,), (2,)):
                continue  # the range of the index
            forged = buffers.copy()
            inner = forged.evidence["discovered"][at]
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = found + 1 if isinstance(found, int) else swaps[found]
            assert "differs from the one generated from the model and the lemmas" in _rejected(forged)
            changed += 1
            try:
                again = _rebuilt(forged)
            except StreamproofError:
                continue
            _rejected(again)
            rebuilt += 1
    assert min(changed, rebuilt) >= 6


@pytest.mark.parametrize("what", ["true", "false"])
def test_a_trivial_lemma_does_not_help(ring: Any, what: str) -> None:
    """True says nothing, and false is not true at first."""
    forged = ring.copy()
    forged.evidence["lemmas"] = []
    forged.evidence["discovered"] = [what == "true"]
    _rejected(_rebuilt(forged))


def test_step_claims_are_not_assumed(ring: Any) -> None:
    """A claim on steps says nothing of the state before; and nothing is known of the state before the initial ones."""
    step = next(n for n, claim in enumerate(["", *ring.header["claims"]]) if claim == "one_at_a_time")
    for needs in ([step], [0, step]):
        with pytest.raises(Rejected, match="assumes a claim that does not hold in the state before"):
            ring.remade(needs).verify()
    forged = ring.copy()
    forged.evidence["obligations"][0]["needs"] = [0]
    assert "assumes a claim that does not hold in the state before" in _rejected(forged)


def test_no_obligation_can_be_left_out(ring: Any) -> None:
    """Neither an initial one nor one of a rule, nor all of the claim that no error occurs."""
    for at in range(len(ring.evidence["obligations"])):
        forged = ring.copy()
        del forged.evidence["obligations"][at]
        assert "obligations are not those of its claims" in _rejected(forged)
    forged = ring.copy()
    forged.evidence["obligations"] = [one for one in forged.evidence["obligations"] if one["claim"] != 0]
    assert "obligations are not those of its claims" in _rejected(forged)


def test_a_certificate_is_of_one_system(ring: Any, small: Any) -> None:
    """Of the same model with other limits, another variant, or fixed parameters it shows nothing."""
    data = packed(ring.header, ring.evidence)
    for other in (small("TokenRing", "careless"), small("Transfers")):
        with pytest.raises(Rejected, match="it is of another"):
            verify_any(data, lambda _, other=other: other, lambda _: None)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Header and evidence of a certificate as the command line writes it."""
    path = tmp_path_factory.mktemp("written") / "c"
    words = ("prove", "reference.ewd840", "--any", "n", "-q", "--certificate", str(path), "--property", "dijkstra")
    assert run(words) == 0
    return parse(path.read_bytes(), verifier_any.EVIDENCE)


def _code(written: Any, tmp_path: Path, *words: str, **changed: Any) -> int:
    """The exit code of the verifier for a certificate with another header."""
    header, evidence = written
    (tmp_path / "forged").write_bytes(packed({**header, **changed}, evidence))
    return run(("verify-certificate", str(tmp_path / "forged"), "-q", *words))


@pytest.mark.parametrize(
    "options",
    share(
        [
            ["--variant", "wrong-guard", "--any", "n"],
            ["--any", "n", "--any", "n"],
            ["--any", "n,n"],
            ["--any", ",n"],
            ["--any", "n", "-p", "n=3"],
            ["--any", "n", "--any"],
            ["--any", ["n"]],
            "--any n",
        ],
        4,
    ),
    ids=str,
)
def test_the_options_that_are_printed_are_those_of_the_system(written: Any, tmp_path: Path, options: Any) -> None:
    """In another form they might choose another system on a command line."""
    assert _code(written, tmp_path, options=["--any", "n"]) == 0
    assert _code(written, tmp_path, options=options) in (2, 161)


def test_an_option_is_given_once(tmp_path: Path) -> None:
    """A command line takes the last variant of two; the certificate of the first says nothing of that one."""
    model = """
from streamproof import Model, Range, State, action, invariant, require

class Limited(Model):
    n: int = 3
    limits = {"n": (0, None)}
    check_deadlock = False
    most = 0

    def state(self):
        return State(x=Range(0, self.n + 2))

    @action
    def up(self, s):
        require(s.x < self.n + self.most)
        s.x += 1

    @invariant
    def limited(self, s):
        return s.x <= self.n

class Right(Limited, variant="right"):
    pass

class Wrong(Limited, variant="wrong"):
    most = 1
"""
    (tmp_path / "limited.py").write_text(model, encoding="utf-8")
    words = [str(tmp_path / "limited.py"), "--variant", "right"]
    assert run(("prove", *words, "--any", "n", "-q", "--certificate", str(tmp_path / "c"))) == 0
    written = parse((tmp_path / "c").read_bytes(), verifier_any.EVIDENCE)
    given = ("--model", words[0])
    assert _code(written, tmp_path, *given) == 0
    twice = ["--variant", "right", "--variant", "wrong", "--any", "n"]
    assert _code(written, tmp_path, *given, options=twice) == 161


@pytest.mark.push
def test_the_model_given_is_the_model_printed(written: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With `--model` the name in the certificate is not looked at, and not printed."""
    assert _code(written, tmp_path, "--model", "reference.ewd840", model="another") == 0
    said = capsys.readouterr().out
    assert "reference.ewd840 --any n" in said
    assert "another" not in said


FALSE: list[tuple[str, str | None, tuple[str, ...]]] = [
    ("OnlySmall", None, ("small", "not_seven")),
    ("Limited", None, ("at_most_eight", "unlimited")),
    ("SomeIndex", None, ("maybe_none",)),
    ("TwoAlternatives", None, ("one_is_whole", "never_both")),
    ("Overflow", None, ("nothing",)),
    ("StartsOutside", None, ("nothing",)),
    ("WrongIndex", None, ("zero",)),
    ("Transfers", "copies", ("conserved", "each_small")),
    ("Transfers", "overwrites", ("conserved", "each_small")),
    ("SameNames", None, ("nothing_marked", "marked_where_it_is", "first_only")),
    ("WholeArrays", None, ("nothing",)),
    ("Scales", None, ("nothing",)),
    ("TokenRing", "careless", ("exclusive",)),
    ("Guarded", "impatient", ("everyone_is_here", "deadlock")),
    ("Branches", None, ("always_clean",)),
    ("Composite", None, ("left_is_empty", "started_low")),
    ("Helpers", None, ("at_most_size",)),
]
"""Models of the unit tests with properties that some size violates, or that a model with errors cannot have."""


def _by_hand(parametric: Parametric, certified: Any, names: tuple[str, ...], lemmas: Any = ()) -> Any:
    """A certificate of properties that somebody makes without a proof, in which everything is assumed everywhere."""
    made = certified(parametric).copy()
    made.header["claims"] = dict.fromkeys(names, "holds")
    made.evidence["lemmas"] = [lemma.name for lemma in parametric.system.lemmas]
    made.evidence["discovered"] = list(lemmas)
    return _rebuilt(made)


@pytest.mark.parametrize(("name", "variant", "properties"), share(FALSE, 6, first=1))
def test_what_is_false_at_some_size_has_no_certificate(
    small: Any, certified: Any, name: str, variant: str | None, properties: tuple[str, ...]
) -> None:
    """Alone, together, and with the other properties of the model as lemmas."""
    parametric = small(name, variant)
    others = [
        condition_data(claim_of(parametric, p).condition)
        for p in parametric.system.properties
        if p.kind.value == "invariant" and p.name not in properties
    ]
    for count in range(1, len(properties) + 1):
        for some in itertools.combinations(properties, count):
            for lemmas in ([], others, [*others, True], [False]):
                _rejected(_by_hand(parametric, certified, some, lemmas))


@pytest.mark.parametrize("seed", share([50, 52, 54, 55], 4))
def test_what_random_models_violate_has_no_certificate(generated: Any, certified: Any, seed: int) -> None:
    """No property that a search of a small size violates, and none of a model with errors, with any of the others as help."""
    from streamproof.explicit.exploration import explore
    from streamproof.system import Verdict

    spec, parametric = generated(seed)
    wrong: set[str] = set()
    for n, cap, more in ((1, 0, 0), (2, 1, 1), (2, 2, 0), (3, 0, 1)):
        found = explore(spec.system(n=n, cap=cap, more=more))
        if found.mistake is not None:
            wrong = {p.name for p in parametric.system.properties}
        wrong |= {f.property for f in found.findings if f.verdict is not Verdict.HOLDS}
    names = [p.name for p in parametric.system.properties]
    assert wrong
    for name in wrong:
        _rejected(_by_hand(parametric, certified, (name,)))
    _rejected(_by_hand(parametric, certified, tuple(names)))


# --- faults of the verifier's bookkeeping


def _without(keep: Callable[[Any, Any], bool]) -> Callable[[Any, Any], list[Any]]:
    return lambda parametric, claims: [pair for pair in obligations.expected(parametric, claims) if keep(*pair)]


BOOKKEEPING: dict[str, tuple[Callable[[Any, Any], bool], tuple[str, str | None, str]]] = {
    "initial obligations are forgotten": (lambda claim, rule: rule is not None, ("Composite", None, "started_low")),
    "rules are forgotten": (lambda claim, rule: rule is None, ("OnlySmall", None, "small")),
    "one rule is forgotten": (lambda claim, rule: rule != 0, ("WholeArrays", None, "nothing")),
    "errors are forgotten": (lambda claim, rule: claim is not SAFE, ("Overflow", None, "nothing")),
}


@pytest.mark.parametrize("fault", share(BOOKKEEPING, 3))
def test_a_verifier_that_forgets_obligations_accepts_what_is_false(
    monkeypatch: pytest.MonkeyPatch, small: Any, certified: Any, fault: str
) -> None:
    """The certificates by hand show the difference: rejected by the verifier, and accepted by one with the fault."""
    keep, (name, variant, prop) = BOOKKEEPING[fault]
    parametric = small(name, variant)
    _rejected(_by_hand(parametric, certified, (prop,)))
    with monkeypatch.context() as patch:
        patch.setattr(verifier_any, "expected", _without(keep))
        assert _by_hand(parametric, certified, (prop,)).verify().obligations


def test_the_verifier_shares_only_what_a_system_means() -> None:
    """All of ours that it imports beside `streamproof.system` is a program of certificates; else the standard library and two
    solvers."""
    folder = Path(verifier_any.__file__).parent
    todo, seen = [folder / "verifier.py", folder / "solver_process.py"], set[Path]()
    while todo:
        path = todo.pop()
        seen.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or "."] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                top, *rest = name.split(".")
                if top == "streamproof" and rest[:1] not in (["base"], ["system"], ["transform"]):
                    assert "certify" in rest[:2], f"{path.name} imports {name}"
                    own = CHECKER / f"{'/'.join(rest)}.py"
                    todo += [own] if own not in seen else []
                else:
                    assert top in {*sys.stdlib_module_names, "z3", "cvc5", "streamproof"}, f"{path.name} imports {name}"
    sizes = {path.name: program_size(path) for path in seen if path.parent == folder}
    assert sum(sizes.values()) < LARGEST_VERIFIER, sizes
