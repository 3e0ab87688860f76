"""Certificates of ranking functions: those of true properties are accepted, and forged ranks are rejected."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from random_arrays import random_array_model
from shares import share
from streamproof import WEAK, Array, Model, Nat, Range, Spec, State, action, eventually, leads_to, require, temporal
from streamproof.any.array_ranks import parsed_rank, prove_over_indices
from streamproof.any.certify.formulas import condition_data
from streamproof.any.certify.obligations import ProofObligation, expected
from streamproof.any.certify.proofs import contents_ranked
from streamproof.any.certify.ranks import claimed
from streamproof.any.ranking import prove_by_ranking
from streamproof.base.errors import Rejected, StreamproofError
from streamproof.cli.verbs import run
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof.transform.unbounded import Parametric

pytestmark = pytest.mark.usefixtures("here")


class Wires(Model):
    """Each channel has records to send, and a wire from which they are consumed."""

    n: int = 2
    limits: ClassVar = {"n": (1, None)}

    def state(self):
        """Everything is to be sent."""
        return State(left=Array(self.n, Range(0, 3, init=3)), wire=Array(self.n, Range(0, 3)))

    @action(i=lambda m: range(m.n), fairness=WEAK)
    def send(self, s, i):
        """A record goes."""
        require(s.left[i] > 0 and s.wire[i] < 3)
        s.left[i] -= 1
        s.wire[i] += 1

    @action(i=lambda m: range(m.n), fairness=WEAK)
    def consume(self, s, i):
        """A record comes."""
        require(s.wire[i] > 0)
        s.wire[i] -= 1

    @temporal
    def drained(self, s):
        """In the end nothing is left."""
        return eventually(all(s.left[i] == 0 and s.wire[i] == 0 for i in range(self.n)))

    @temporal
    def each(self, s):
        """Every channel empties."""
        return all(leads_to(s.left[c] > 0, s.left[c] == 0 and s.wire[c] == 0) for c in range(self.n))


class Unfair(Wires, variant="unfair"):
    """Nobody has to consume."""

    @action(i=lambda m: range(m.n))
    def consume(self, s, i):
        """As in the machine."""
        require(s.wire[i] > 0)
        s.wire[i] -= 1


class Counters(Model):
    """Integers without bounds."""

    def state(self):
        """Nothing is there."""
        return State(left=Nat(), wire=Nat())

    @action
    def fill(self, s):
        """Some come."""
        require(s.left == 0 and s.wire == 0)
        s.left = 7

    @action(fairness=WEAK)
    def send(self, s):
        """One goes."""
        require(s.left > 0)
        s.left -= 1
        s.wire += 1

    @action(fairness=WEAK)
    def receive(self, s):
        """One comes."""
        require(s.wire > 0)
        s.wire -= 1

    @temporal
    def drained(self, s):
        """In the end nothing is there."""
        return leads_to(s.left > 0, s.left == 0 and s.wire == 0)


def live(model: type[Model], names: Sequence[str], certificate: Any) -> Any:
    """The certificate of properties that are proved for every `n`."""
    spec = Spec(model)
    parametric = spec.endless(["n"])
    assert isinstance(parametric, Parametric)
    proved = {}
    for name in names:
        found = prove_over_indices(
            parametric,
            name,
            rank=None,
            instantiate=lambda values: spec.system(**values),
            stages=(),
            query_limit=10.0,
            seconds=60.0,
        )
        proved |= {name: found.proofs} if found.proofs else {}
    return certificate(parametric, *contents_ranked(parametric, "model", ("--any", "n", "--rank", ""), proved))


@pytest.fixture(scope="module")
def wires(certificate: Any) -> Any:
    """A proof with sums, and one at an index."""
    return live(Wires, ["drained", "each"], certificate)


def remade(certificate: Any) -> Any:
    """The same claims with scripts that assume everything that may be assumed."""
    made = certificate.copy()
    proofs = made.evidence["proofs"]
    for _, of, data in claimed(certificate.parametric, [*made.header["claims"]], proofs):
        rows = [
            ("obligations", of.parametric, of.claims, expected(of.parametric, of.claims)),
            ("decreases", of.helping, of.known, of.steps),
        ]
        for part, parametric, claims, wanted in rows:
            data[part] = []
            for claim, rule in wanted:
                needs = [] if rule is None else [at for at, other in enumerate(claims) if not other.step]
                one = ProofObligation(parametric, claim, rule, [claims[at] for at in needs])
                data[part].append(
                    {"claim": claims.index(claim), "rule": rule, "needs": needs, "terms": one.terms, "text": one.text}
                )
    return made


def rejected(certificate: Any) -> str:
    """Why it is."""
    with pytest.raises(Rejected) as refused:
        certificate.verify()
    return refused.value.message


def test_a_proof_by_ranks_is_accepted(wires: Any) -> None:
    """With the ranks, also when its scripts are made again."""
    shown = wires.verify()
    assert shown.ranks == (
        (
            "drained",
            "2 * sum(left[c] for c in range(n)) + sum(wire[c] for c in range(n)), helped by send(i), consume(i)",
        ),
        ("each", "2 * left[c] + wire[c], helped by send(i=c), consume(i=c)"),
    )
    assert wires.without == {}
    assert remade(wires).verify().ranks == shown.ranks


def test_integers_without_bounds(certificate: Any) -> None:
    """A rank over numbers alone has a certificate too."""
    parametric = Spec(Counters).endless([])
    proofs = prove_by_ranking(parametric, "drained").proofs
    made = certificate(
        parametric, *contents_ranked(parametric, "model", ("--any", "", "--rank", ""), {"drained": proofs})
    )
    assert made.verify().ranks == (("drained", "2 * left + wire, helped by send(), receive()"),)


FORGED = [
    ("2*sum(left[i] for i in range(n)) + sum(wire[i] for i in range(n))", [0], "a helpful action is enabled"),
    ("2*sum(left[i] for i in range(n)) + sum(wire[i] for i in range(n))", [], "a helpful action is enabled"),
    ("sum(left[i] + wire[i] for i in range(n))", [0, 1], "send(i) stays enabled"),
    ("sum(left[i] + wire[i] for i in range(n))", [1], "a helpful action is enabled"),
    ("sum(left[i] for i in range(n))", [0], "a helpful action is enabled"),
    ("2*sum(left[i] for i in range(n)) + sum(wire[i] for i in range(n)) - 7", [0, 1], "the rank is not negative"),
    ("0 - sum(left[i] for i in range(n))", [0, 1], ""),
    ("2*left[0] + wire[0]", [0, 1], "send(i) stays enabled"),
    ("0", [0, 1], "send(i) stays enabled"),
]


@pytest.mark.parametrize(("rank", "helpful", "claim"), share(FORGED, 3))
def test_a_forged_rank_is_rejected(wires: Any, rank: str, helpful: list[int], claim: str) -> None:
    """With scripts that are made from it: some claim of the rule does not follow, whatever is assumed."""
    forged = wires.copy()
    del forged.header["claims"]["each"]
    (data, _) = forged.evidence["proofs"]
    forged.evidence["proofs"] = [data]
    data |= {"rank": condition_data(parsed_rank(wires.parametric, rank)), "helpful": helpful}
    why = rejected(remade(forged))
    assert claim in why
    assert "does not follow from its assumptions" in why


def test_a_rank_at_one_index_is_none_for_all(wires: Any) -> None:
    """The claims of a property of every index are about any index."""
    forged = wires.copy()
    del forged.header["claims"]["drained"]
    forged.evidence["proofs"] = [forged.evidence["proofs"][1]]
    index = forged.evidence["proofs"][0]["rank"]
    assert remade(forged).verify().ranks
    (data,) = forged.evidence["proofs"]
    data["rank"] = condition_data(parsed_rank(wires.parametric, "2*left[0] + wire[0]"))
    assert data["rank"] != index
    assert "does not follow" in rejected(remade(forged))
    data["rank"] = index
    data["helpful"] = sorted({*range(4)} - {*data["helpful"]})  # at every index
    assert "does not follow" in rejected(remade(forged))


def test_what_is_false_has_no_rank(wires: Any, certificate: Any) -> None:
    """The proof of the machine is none of a variant that violates the property."""
    parametric = Spec(Unfair).endless(["n"])
    forged = certificate(parametric, *[wires.copy().header, wires.copy().evidence], {})
    assert "of another" in rejected(forged)
    empty = contents_ranked(parametric, "model", (), {})[0]
    forged.header["fingerprint"] = empty["fingerprint"]
    for proof in forged.evidence["proofs"]:  # consume is not among the constraints any more
        proof["helpful"] = [0]
    assert "a helpful action is enabled" in rejected(remade(forged))


@pytest.mark.parametrize(
    "change",
    [
        {"region": 1},
        {"region": True},
        {"idles": 1},
        {"helpful": [1, 0]},
        {"helpful": [0, 0]},
        {"helpful": [-1]},
        {"helpful": [9]},
        {"lemmas": ["each"]},
        {"lemmas": ["nobody"]},
        {"rank": True},
        {"rank": ["Var", "nobody"]},
        {"rank": ["Add", 1, 1]},
        {"more": 1},
    ],
)
def test_malformed_parts_are_rejected(wires: Any, change: dict[str, Any]) -> None:
    """Each has one form."""
    forged = wires.copy()
    forged.evidence["proofs"][0] |= change
    with pytest.raises(StreamproofError):
        forged.verify()


def test_a_proof_is_of_each_claim(wires: Any) -> None:
    """None is missing, and none is left over."""
    fewer, more, kinds = wires.copy(), wires.copy(), wires.copy()
    fewer.evidence["proofs"].pop()
    more.evidence["proofs"].append(more.evidence["proofs"][0])
    kinds.evidence = {**kinds.evidence, "lemmas": [], "discovered": [], "obligations": []}
    for forged in (fewer, more, kinds):
        rejected(forged)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A certificate is written and verified, and says what it shows; one instance has none."""
    file, made = tmp_path / "counters.py", tmp_path / "rank.certificate"
    source = Path(__file__).read_text(encoding="utf-8")
    body = source[source.index("class Wires(Model)") : source.index("class Unfair(")]
    file.write_text(f"from typing import ClassVar\nfrom streamproof import *\n{body}", encoding="utf-8")
    assert (
        run(["prove", str(file), "--any", "n", "--property", "each", "--rank", "", "-q", "--certificate", str(made)])
        == 0
    )
    assert run(["verify-certificate", str(made), "--model", str(file), "-q"]) == 0
    assert "each by the rank 2 * left[c] + wire[c], helped by send(i=c), consume(i=c)" in capsys.readouterr().out


def _agreement(seeds: range, folder: Path, certificate: Any, *, indexed: bool) -> Counter[str]:
    """What is proved of random models has a certificate that is accepted, and what is false at a size has none."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        name = f"ranked_{seed}_{indexed}"
        file = folder / f"{name}.py"
        file.write_text(random_array_model(seed, indexed=indexed), encoding="utf-8")
        place = importlib.util.spec_from_file_location(name, file)
        assert place is not None
        assert place.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(place)
        try:
            place.loader.exec_module(module)
            made = live(module.Rows, ["reached"], certificate)
            if made.header["claims"]:
                made.verify()
                assert explore(Spec(module.Rows).system(n=2)).finding("reached").verdict is Verdict.HOLDS
                seen["accepted"] += 1
            else:
                seen["without" if made.without else "open"] += 1
        finally:
            del sys.modules[name]
    return seen


@pytest.mark.parametrize("indexed", share([True, False], 2))
def test_random_models(tmp_path: Path, certificate: Any, indexed: bool) -> None:
    """Every proof has a certificate."""
    seen = _agreement(range(6), tmp_path, certificate, indexed=indexed)
    assert (seen["accepted"] > 0, seen["without"]) == (True, 0)


@pytest.mark.long
@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("start", range(5_000, 5_400, 50))
def test_many_random_models(tmp_path: Path, certificate: Any, start: int, indexed: bool) -> None:
    """The same for 800 models."""
    seen = _agreement(range(start, start + 50), tmp_path, certificate, indexed=indexed)
    assert (seen["accepted"] > 5, seen["without"]) == (True, 0)
