"""Certificates of proofs for every size: the models of other tests, and certificates taken apart and put together again."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import z3

from streamproof import Spec
from streamproof.any.certify import verifier as verifier_any
from streamproof.any.certify.obligations import ProofObligation
from streamproof.any.certify.proofs import contents_any
from streamproof.any.certify.solvers import Answers
from streamproof.any.certify.verifier import Shown, stated, verify_any
from streamproof.any.engine import prove_any
from streamproof.any.engine.bounds import bound_candidates
from streamproof.any.engine.laws import law_candidates
from streamproof.certify.writing import packed
from streamproof.model_registry import find
from streamproof.system.model import Kind
from streamproof.transform.unbounded import Parametric

TESTS = Path(__file__).parents[2]
SAFETY = (Kind.INVARIANT, Kind.STEP, Kind.DEADLOCK)


def _loaded(path: Path) -> ModuleType:
    name = f"models_of_{path.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(scope="session")
def small() -> Callable[..., Parametric]:
    """A model of the unit tests, with all its parameters free."""

    def parametric(name: str, variant: str | None = None) -> Parametric:
        cls = getattr(_loaded(TESTS / "unit" / "test_any_size.py"), name)
        return Spec(cls).parametric([*cls.parameters()], variant)

    return parametric


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], tuple[Any, Parametric]]:
    """The specification of a random model with parameters of any value, and its parametric system."""
    module = _loaded(TESTS / "agreement" / "test_any_size_agreement.py")
    folder = tmp_path_factory.mktemp("generated")

    def make(seed: int) -> tuple[Any, Parametric]:
        spec = Spec(module._model(folder, seed))
        return spec, spec.parametric(module.FREE)

    return make


@pytest.fixture(scope="session")
def bundled() -> Callable[..., Parametric]:
    """A bundled model with free parameters."""

    def parametric(name: str, *free: str, **given: Any) -> Parametric:
        return find(name).parametric(None, given, free)

    return parametric


@dataclass
class Certificate:
    """A certificate in parts that a test may change. `without` says why it does not claim what was proved."""

    parametric: Parametric
    header: dict[str, Any]
    evidence: dict[str, Any]
    without: dict[str, str]

    def verify(self, **options: Any) -> Shown:
        """Have it verified with the checksum that its parts have now."""
        return verify_any(packed(self.header, self.evidence), lambda _: self.parametric, lambda _: None, **options)

    def copy(self) -> Certificate:
        """Another one with the same parts."""
        return Certificate(self.parametric, *json.loads(json.dumps([self.header, self.evidence, self.without])))

    def remade(self, needs: Sequence[int] | None = None) -> Certificate:
        """One in which every script is what its claims and assumptions give; with these assumptions, or all for a new one."""
        claims = stated(self.parametric, self.header, self.evidence)
        known = {(one["claim"], one["rule"]): one["needs"] for one in self.evidence["obligations"]}
        rows = []
        for claim, rule in verifier_any.expected(self.parametric, claims):
            at = claims.index(claim)
            every = [n for n, other in enumerate(claims) if not other.step] if needs is None else [*needs]
            some = [] if rule is None else known.get((at, rule), every) if needs is None else every
            made = ProofObligation(self.parametric, claim, rule, [claims[n] for n in some])
            rows.append({"claim": at, "rule": rule, "needs": some, "terms": made.terms, "text": made.text})
        return Certificate(self.parametric, self.header, {**self.evidence, "obligations": rows}, self.without)


Certify = Callable[..., Certificate]


@pytest.fixture(scope="session")
def certificate() -> type[Certificate]:
    """A certificate, of its parts."""
    return Certificate


@pytest.fixture(scope="session")
def certified() -> Certify:
    """The certificate of the proof of all safety properties; with `instance` or `discover`, of discovered lemmas too."""

    def certify(parametric: Parametric, instance: Any = None, *, discover: bool = False) -> Certificate:
        stages: list[Any] = [lambda: law_candidates(parametric)] if discover or instance else []
        stages += [lambda: bound_candidates(parametric, instance)] if instance else []
        proof = prove_any(parametric, [p for p in parametric.system.properties if p.kind in SAFETY], stages)
        certificate = Certificate(parametric, *contents_any(parametric, "model", ("--any", ""), proof))
        assert {*certificate.header["claims"], *certificate.without} == {*proof.proved}
        return certificate

    return certify


def answer(text: str) -> str:
    """Z3's answer to a script, in this process."""
    solver = z3.Solver(ctx=z3.Context())
    solver.set("timeout", 10_000)
    solver.from_string(text)
    return str(solver.check())


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Z3 is asked in this process, which is faster where many certificates are verified; cvc5 is not."""

    def asked(solver: str, scripts: Sequence[str], tell: Any, seconds: float) -> Answers:
        return Answers("z3", "", tuple(map(answer, scripts)))

    monkeypatch.setattr(verifier_any, "solve", asked)
    monkeypatch.setattr(verifier_any, "present", lambda solver: solver == "z3")
