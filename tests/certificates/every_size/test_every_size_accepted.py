"""Certificates of proofs for every size are accepted, by two solvers, for all that the engine proves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nonempty import nonempty
from shares import share
from streamproof.any.certify import solvers
from streamproof.any.certify import verifier as verifier_any
from streamproof.any.certify.any_values import refuted
from streamproof.any.certify.formulas import condition_data, condition_of, readable
from streamproof.any.certify.obligations import SAFE, CertifiedClaim, ProofObligation
from streamproof.any.certify.proofs import contents_any
from streamproof.any.certify.smt_conditions import Conditions
from streamproof.any.certify.solvers import Answers
from streamproof.any.certify.verifier import SolversDisagree
from streamproof.any.engine import prove_any
from streamproof.base.errors import Rejected
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof.system import build as b

PROVED = [
    ("OnlySmall", None, False),
    ("Limited", None, False),
    ("SomeIndex", None, False),
    ("Transfers", None, False),
    ("SameNames", None, True),
    ("WholeArrays", None, False),
    ("TokenRing", None, False),
    ("TokenRing", "careless", False),
    ("Guarded", None, False),
    ("Branches", None, False),
    ("Composite", None, False),
    ("Helpers", None, False),
    ("Buffers", None, True),
    ("Unlimited", None, False),
    ("Tally", None, False),
]


@pytest.mark.parametrize(("name", "variant", "discover"), share(PROVED, 6))
def test_every_small_proof_has_a_certificate(
    small: Any, certified: Any, name: str, variant: str | None, discover: bool
) -> None:
    """What is proved is claimed, and both solvers discharge every obligation."""
    certificate = certified(small(name, variant), discover=discover)
    assert certificate.header["claims"]
    assert certificate.without == {}
    shown = certificate.verify()
    assert {*shown.solvers} == {"z3", "cvc5"}
    assert all({*one.answers.values()} == {"unsat"} for one in shown.obligations)
    assert len(shown.obligations) == len(certificate.evidence["obligations"])
    assert len(shown.lemmas) == len(certificate.evidence["lemmas"]) + len(certificate.evidence["discovered"])
    assert {name for name, _ in shown.lemmas}.isdisjoint(certificate.header["claims"])


@pytest.mark.long
def test_credit_with_all_parameters_free(bundled: Any, certified: Any) -> None:
    """Four properties of any number of channels, buffers and records, with discovered lemmas."""
    from streamproof.model_registry import find

    parametric = bundled("credit", "channels", "exclusive", "floating", "depth")
    certificate = certified(parametric, lambda values: find("credit").system(None, dict(values)))
    assert {*certificate.header["claims"]} == {"conservation", "no_overflow", "pool_conserved", "within_limit"}
    shown = certificate.verify()
    assert all({*one.answers.values()} == {"unsat"} for one in shown.obligations)
    texts = {text for _, text in shown.lemmas}
    assert "sum(available_buffers[c]) + sum(received_buffers[c]) + pool = channels * exclusive + floating" in texts
    needed = {need for one in shown.obligations if one.claim == "within_limit" for need in one.needs}
    assert needed & {name for name, _ in shown.lemmas}


@pytest.mark.long
@pytest.mark.parametrize("channels", share([1, 2], 2))
def test_credit_with_some_channels(bundled: Any, certified: Any, channels: int) -> None:
    """Arrays of a fixed length beside free parameters."""
    from streamproof.model_registry import find

    parametric = bundled("credit", "exclusive", "floating", "depth", channels=channels)
    instance = lambda values: find("credit").system(None, {"channels": channels, **values})  # noqa: E731
    certificate = certified(parametric, instance)
    assert len(certificate.header["claims"]) == 4
    assert all({*one.answers.values()} == {"unsat"} for one in certificate.verify().obligations)


def test_ewd840_on_a_ring_of_any_length(bundled: Any, certified: Any) -> None:
    """What is detected needs Dijkstra's invariant, for the rules for which it does."""
    certificate = certified(bundled("reference.ewd840", "n"))
    shown = certificate.verify()
    assert [*certificate.header["claims"]] == ["detection_is_right", "dijkstra"]
    needs = {one.rule: one.needs for one in shown.obligations if one.claim == "detection_is_right"}
    assert needs["deactivate"] == ("dijkstra",)
    assert needs["send"] == ("detection_is_right",)
    assert needs[None] == ()
    assert all({*one.answers.values()} == {"unsat"} for one in shown.obligations)


@pytest.mark.parametrize("seed", share(range(8), 4))
def test_random_models(generated: Any, certified: Any, seed: int) -> None:
    """What the engine proves of random models has a certificate that is accepted, and holds at small sizes."""
    spec, parametric = generated(seed)
    certificate = certified(parametric, lambda values: spec.system(**values))
    assert certificate.without == {}
    if certificate.header["claims"]:
        shown = certificate.verify()
        assert all("unsat" in one.answers.values() for one in shown.obligations)
        found = explore(spec.system(n=2, cap=1, more=1))
        assert all(found.finding(name).verdict is Verdict.HOLDS for name in certificate.header["claims"])


# --- when something is missing or wrong


def test_a_missing_second_solver_is_seen(monkeypatch: pytest.MonkeyPatch, small: Any, certified: Any) -> None:
    """Then Z3 alone shows the claims, and the versions say who was asked."""
    monkeypatch.setattr(verifier_any, "present", lambda solver: solver == "z3")
    shown = certified(small("OnlySmall")).verify()
    assert {*shown.solvers} == {"z3"}


def _answering(monkeypatch: pytest.MonkeyPatch, **said: str) -> None:
    def asked(solver: str, scripts: Any, tell: Any, seconds: float) -> Answers:
        return Answers(solver, "1", (said[solver], *["unsat"] * (len(scripts) - 1)))

    monkeypatch.setattr(verifier_any, "solve", asked)


@pytest.mark.parametrize(
    ("z3", "cvc5", "error", "why"),
    [
        ("sat", "unsat", SolversDisagree, "solvers disagree on obligation 1"),
        ("unsat", "sat", SolversDisagree, "solvers disagree on obligation 1"),
        ("sat", "sat", Rejected, "does not follow from its assumptions"),
        ("sat", "unknown", Rejected, "does not follow from its assumptions"),
        ("unknown", "sat", Rejected, "does not follow from its assumptions"),
        ("unknown", "unknown", Rejected, "could not be decided"),
        ("error", "unsat", Rejected, "cannot be read by a solver"),
        ("unsat", "error", Rejected, "cannot be read by a solver"),
    ],
)
def test_what_two_answers_mean(
    monkeypatch: pytest.MonkeyPatch, small: Any, certified: Any, z3: str, cvc5: str, error: type[Exception], why: str
) -> None:
    """One satisfiable and one unsatisfiable is a disagreement; anything else but an unsatisfiable one is rejected."""
    certificate = certified(small("OnlySmall"))
    _answering(monkeypatch, z3=z3, cvc5=cvc5)
    with pytest.raises(error, match=why):
        certificate.verify()


@pytest.mark.parametrize(("z3", "cvc5"), [("unknown", "unsat"), ("unsat", "unknown")])
def test_what_one_solver_leaves_open_is_listed(
    monkeypatch: pytest.MonkeyPatch, small: Any, certified: Any, z3: str, cvc5: str
) -> None:
    """The other one shows it, and the obligation is among those that one solver discharged."""
    certificate = certified(small("OnlySmall"))
    _answering(monkeypatch, z3=z3, cvc5=cvc5)
    (one,) = certificate.verify().by_one
    assert (one.claim, one.rule) == (SAFE.name, None)


def test_a_solver_that_hangs_or_crashes_answers_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """It is killed after its time, and asked again from the next script on."""
    program = tmp_path / "solver.py"
    program.write_text(
        "import json, sys, time\nprint('9', flush=True)\n"
        "for text in json.load(sys.stdin):\n"
        "    time.sleep(100 if text == 'hang' else 0)\n"
        "    sys.exit(1) if text == 'crash' else print('unsat' if text == 'yes' else 'what', flush=True)\n"
    )
    monkeypatch.setattr(solvers, "PROGRAM", program)
    monkeypatch.setattr(solvers, "GRACE", 0.5)
    messages: list[str] = []
    answers = solvers.solve("z3", ["yes", "hang", "yes", "crash", "odd", "yes"], messages.append, 0.1)
    assert answers.answers == ("unsat", "unknown", "unsat", "unknown", "error", "unsat")
    assert answers.version == "9"
    assert messages[-1] == "6 obligations answered by z3"


def test_a_wrong_proof_is_a_disagreement(small: Any) -> None:
    """Where plain values refute what the engine calls proved, no certificate is written."""
    parametric = small("OnlySmall")
    proof = prove_any(parametric, list(parametric.system.properties))
    wrong = type(proof)(("small",), (), (), {}, (), 0, 0, 0.0, None, (_claim("small"),))
    with pytest.raises(
        SolversDisagree, match=r"small after up was proved for every size, and plain values refute it at top=\d"
    ):
        contents_any(_lower(parametric), "model", (), wrong)


def _claim(name: str) -> Any:
    from streamproof.any.engine.claims import ParametricClaim as Proved

    return Proved(name, b.TRUE)


def _lower(parametric: Any) -> Any:
    """The system in which the property `small` is false at a size that is small."""
    from dataclasses import replace

    n = b.var("n", parametric.system.variables[0].sort)
    prop = replace(parametric.system.property("small"), expr=b.less_eq(n, b.num(2)))
    return replace(parametric, system=replace(parametric.system, properties=(prop,)))


def test_a_weak_translation_is_no_disagreement(monkeypatch: pytest.MonkeyPatch, small: Any, certified: Any) -> None:
    """Where the verifier does not show what is true, there is no certificate, and the reason says so."""
    monkeypatch.setattr(Conditions, "mention", lambda self, index, sort: None)
    certificate = certified(small("TokenRing"))
    assert certificate.without
    assert all("not shown by the certificate's own translation" in why for why in certificate.without.values())


def test_formulas_survive_as_data(bundled: Any, certified: Any, small: Any) -> None:
    """A condition read from its data is the same term; a reader's text of it has its names."""
    for name in ("WholeArrays", "TokenRing", "Composite", "Branches"):
        parametric = small(name)
        for prop in nonempty(p for p in parametric.system.properties if p.kind.value == "invariant"):
            data = json.loads(json.dumps(condition_data(prop.expr)))
            again = condition_of(parametric, data)
            assert condition_data(again) == data
            assert readable(again)


def test_a_claim_that_fails_is_refuted_at_a_small_size(small: Any) -> None:
    """The counterexample of a false claim is made of plain values."""
    parametric = small("OnlySmall")
    n = b.var("n", parametric.system.variables[0].sort)
    obligation = ProofObligation(parametric, CertifiedClaim("low", b.less_eq(n, b.num(1))), 0, [SAFE])
    assert refuted(parametric, obligation) is not None
    true = ProofObligation(parametric, CertifiedClaim("least", e_less(n)), 0, [SAFE])
    assert refuted(parametric, true) is None


def e_less(term: Any) -> Any:
    """That a term is not negative, not simplified away."""
    from streamproof.system import expr as e
    from streamproof.system.sorts import BOOL

    return e.intern(e.LessEq, BOOL, None, b.num(0), term)
