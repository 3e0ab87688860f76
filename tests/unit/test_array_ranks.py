"""Ranking functions over arrays of any length: what is proved, what stays open, and random models against a search."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from pathlib import Path
from typing import ClassVar

import pytest

from random_arrays import random_array_model
from shares import share
from streamproof import (
    WEAK,
    Array,
    Bool,
    Enum,
    Model,
    ModelError,
    Range,
    Spec,
    State,
    UsageError,
    action,
    always,
    eventually,
    initially,
    invariant,
    leads_to,
    measure,
    prove_rank,
    require,
    temporal,
)
from streamproof.any.array_ranks import prove_over_indices
from streamproof.any.ranking import Ranked
from streamproof.cli.verbs import run
from streamproof.explicit.exploration import explore
from streamproof.model_registry import find
from streamproof.system import Verdict
from streamproof.transform.unbounded import Parametric


class Drain(Model):
    """Each channel has records to send, and a wire from which they are consumed."""

    n: int = 2
    limits: ClassVar = {"n": (1, None)}

    def state(self):
        """Everything is to be sent."""
        return State(
            left=Array(self.n, Range(0, 3, init=3)), wire=Array(self.n, Range(0, 3)), used=Array(self.n, Bool())
        )

    @action(i=lambda m: range(m.n), fairness=WEAK)
    def send(self, s, i):
        """A record goes."""
        require(s.left[i] > 0 and s.wire[i] < 3)
        s.left[i] -= 1
        s.wire[i] += 1
        s.used[i] = True

    @action(i=lambda m: range(m.n), fairness=WEAK)
    def consume(self, s, i):
        """A record comes."""
        require(s.wire[i] > 0)
        s.wire[i] -= 1

    @invariant
    def full(self, s):
        """Every wire is full, which is so in no state."""
        return all(s.wire[i] == 3 for i in range(self.n))

    @temporal
    def drained(self, s):
        """In the end nothing is left."""
        return eventually(all(s.left[i] == 0 and s.wire[i] == 0 for i in range(self.n)))

    @temporal
    def used_up(self, s):
        """Whatever is on a wire is consumed."""
        return leads_to(any(s.left[i] > 0 for i in range(self.n)), all(s.wire[i] == 0 for i in range(self.n)))

    @temporal
    def empties_again(self, s):
        """Again and again nothing is on a wire."""
        return always(eventually(all(s.wire[i] == 0 for i in range(self.n))))

    @temporal
    def each_sent(self, s):
        """Every channel sends everything, whatever the others do."""
        return all(leads_to(s.left[c] > 0, s.left[c] == 0) for c in range(self.n))

    @temporal
    def each_consumed(self, s):
        """What is on a wire is consumed, whatever the others do."""
        return all(always(eventually(s.wire[c] == 0)) for c in range(self.n))


class Unfair(Drain, variant="unfair"):
    """Nobody has to consume."""

    @action(i=lambda m: range(m.n))
    def consume(self, s, i):
        """As in the machine."""
        require(s.wire[i] > 0)
        s.wire[i] -= 1


class Refilled(Drain, variant="refilled"):
    """A channel may get another record."""

    @action(i=lambda m: range(m.n))
    def refill(self, s, i):
        """As often as there is room."""
        require(s.left[i] < 3)
        s.left[i] += 1


class RefilledFirst(Drain, variant="refilled-first"):
    """The first channel has something to send again and again, so that no sum over all channels becomes smaller."""

    @action(i=lambda m: range(m.n))
    def refill(self, s, i):
        """As often as there is room."""
        require(i == 0 and s.left[i] < 3)
        s.left[i] += 1

    @temporal
    def others_sent(self, s):
        """Every other channel sends everything."""
        return all(leads_to(c != 0, s.left[c] == 0) for c in range(self.n))


class FirstOnly(Drain, variant="first-only"):
    """Only the first channel is served."""

    @action(i=lambda m: range(m.n), fairness=WEAK)
    def consume(self, s, i):
        """As in the machine, for the first channel."""
        require(s.wire[i] > 0 and i == 0)
        s.wire[i] -= 1


class Blocked(Drain, variant="blocked"):
    """A channel can be blocked and unblocked without end, so weak fairness does not guarantee that it is served."""

    @action(i=lambda m: range(m.n), fairness=WEAK)
    def consume(self, s, i):
        """As in the machine, while the channel is not blocked."""
        require(s.wire[i] > 0 and s.used[i])
        s.wire[i] -= 1

    @action(i=lambda m: range(m.n), fairness=WEAK)
    def block(self, s, i):
        """The channel is blocked, or not any longer."""
        s.used[i] = not s.used[i]


class SomeSent(Drain, variant="some-sent"):
    """A property of some index."""

    @temporal
    def sent(self, s):
        """One of the channels sends everything."""
        return any(eventually(s.left[c] == 0) for c in range(self.n))


class LaterSent(Drain, variant="later-sent"):
    """A property of the indices that satisfy a condition."""

    @temporal
    def sent(self, s):
        """All channels but the first one send everything."""
        return all(eventually(s.left[c] == 0) for c in range(self.n) if c > 0)


def proof(model: type[Model], name: str, rank: str | None = None) -> Ranked:
    """The attempt for every `n`."""
    spec = Spec(model)
    parametric = spec.endless(["n"])
    assert isinstance(parametric, Parametric)
    return prove_over_indices(
        parametric,
        name,
        rank=rank,
        instantiate=lambda values: spec.system(**values),
        stages=(),
        query_limit=10.0,
        seconds=60.0,
    )


@pytest.mark.parametrize("name", ["drained", "used_up", "empties_again"])
def test_a_rank_is_found_and_proved(name: str) -> None:
    """Sums over all channels; the helpful steps are instances, not actions."""
    found = proof(Drain, name)
    assert found.finding.verdict is Verdict.HOLDS, found.finding.because
    assert set(found.helpful) <= {"send(i)", "consume(i)"}
    for n in (1, 2):
        assert explore(Spec(Drain).system(n=n)).finding(name).verdict is Verdict.HOLDS


def test_the_rank_of_a_drain() -> None:
    """The smallest weights: each record is sent and then consumed."""
    found = proof(Drain, "drained")
    assert found.rank == "2 * sum(left[c] for c in range(n)) + sum(wire[c] for c in range(n))"
    assert found.helpful == ("send(i)", "consume(i)")


@pytest.mark.parametrize(
    ("model", "name", "helpful"),
    [
        (Drain, "each_consumed", ("consume(i=c)",)),
        pytest.param(RefilledFirst, "others_sent", ("send(i=c)", "consume(i=c)"), marks=pytest.mark.long),
    ],
)
def test_a_property_of_every_index(model: type[Model], name: str, helpful: tuple[str, ...]) -> None:
    """Constraints at the index alone are helpful where others are not."""
    found = proof(model, name)
    assert found.finding.verdict is Verdict.HOLDS
    assert found.helpful == helpful


@pytest.mark.parametrize(
    ("variant", "name"),
    [
        ("unfair", "each_consumed"),
        ("first-only", "each_consumed"),
        pytest.param("blocked", "each_consumed", marks=pytest.mark.long),
        pytest.param("refilled-first", "each_sent", marks=pytest.mark.long),
    ],
)
def test_what_is_false_at_some_index_stays_open(variant: str, name: str) -> None:
    """Also where it is true at the other indices."""
    model = Drain.variants[variant]
    assert Verdict.VIOLATED in {explore(Spec(model).system(n=n)).finding(name).verdict for n in (1, 2)}
    for rank in (None, "2*left[c] + wire[c]"):
        assert proof(model, name, rank).finding.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("model", [SomeSent, LaterSent])
def test_other_formulas_over_any_number_of_indices_are_refused(model: type[Model]) -> None:
    """With what to write instead."""
    with pytest.raises(ModelError, match="temporal formulas over any number of indices") as refused:
        proof(model, "sent")
    assert "all(...) without a condition on the index" in str(refused.value.remedy)


@pytest.mark.parametrize("variant", share(["unfair", "refilled", "first-only", "blocked"], 4))
def test_what_is_false_stays_open(variant: str) -> None:
    """The explicit engine refutes it at one or two channels; no rank is proved, whether it is given or not."""
    model = Drain.variants[variant]
    assert Verdict.VIOLATED in {explore(Spec(model).system(n=n)).finding("drained").verdict for n in (1, 2)}
    for rank in (None, "sum(2*left[i] + wire[i] for i in range(n))"):
        assert proof(model, "drained", rank).finding.verdict is Verdict.INCONCLUSIVE


def test_a_given_rank() -> None:
    """The right one proves it; one that a step does not decrease does not, and the answer says so."""
    assert proof(Drain, "drained", "sum(2*left[i] + s.wire[i] for i in range(n))").finding.verdict is Verdict.HOLDS
    wrong = proof(Drain, "drained", "sum(left[i] + wire[i] for i in range(n))")
    assert wrong.finding.verdict is Verdict.INCONCLUSIVE
    negative = proof(Drain, "drained", "sum(2*left[i] + wire[i] for i in range(n)) - 9")
    assert negative.finding.verdict is Verdict.INCONCLUSIVE
    assert "the rank is not negative" in negative.finding.because


@pytest.mark.parametrize(
    "rank",
    [
        "left",
        "left[0",
        "sum(left[i] for i in range(wire[0]))",
        "sum(left[i] for i in left)",
        "sum(left[i] for i in range(n) if i)",
        "nobody",
        "max(left[0], 1)",
    ],
)
def test_what_is_no_rank_is_refused(rank: str) -> None:
    """With the part that is not supported."""
    with pytest.raises(UsageError, match=r"not supported in a rank|is not an expression"):
        proof(Drain, "drained", rank)


def test_a_sum_over_a_fixed_range() -> None:
    """The sum of its elements: it is no rank of all channels."""
    found = proof(Drain, "drained", "sum(2*left[i] + wire[i] for i in range(2))")
    assert found.finding.verdict is Verdict.INCONCLUSIVE


class FromNone(Drain, variant="from-none"):
    """There may be no channel."""

    limits: ClassVar = {"n": (0, None)}


class NoInstance(Drain, variant="no-instance"):
    """No number of channels can begin."""

    @initially
    def contradiction(self, s):
        """Of no state."""
        return all(s.left[i] == 0 for i in range(self.n))


def test_instances_without_elements_or_states() -> None:
    """An empty array is no sample, and what no instance shows is not proved."""
    assert proof(FromNone, "drained").finding.verdict is Verdict.HOLDS
    assert proof(NoInstance, "drained").finding.verdict is Verdict.INCONCLUSIVE


def test_what_holds_because_nothing_begins_is_vacuous(capsys: pytest.CaptureFixture[str]) -> None:
    """For every size as at one size."""
    file = Path(__file__)
    words = ["prove", f"{file}:Drain", "--variant", "no-instance", "--any", "n", "--property", "full"]
    assert run(words) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "holds, vacuously" in shown
    assert "the system has no initial state at any value" in shown


class Stages(Model):
    """Each place goes through stages, and a rule may be enabled without changing anything."""

    n: int = 2
    limits: ClassVar = {"n": (1, None)}

    def state(self):
        """All are new."""
        return State(stage=Array(self.n, Enum("NEW", "AT_WORK", "DONE")), seen=Array(self.n, Bool()))

    @action(i=lambda m: range(m.n), fairness=WEAK)
    def begin(self, s, i):
        """A new one begins."""
        require(s.stage[i] == "NEW")
        s.stage[i] = "AT_WORK"

    @action(i=lambda m: range(m.n), fairness=WEAK)
    def end(self, s, i):
        """It ends."""
        require(s.stage[i] == "AT_WORK")
        s.stage[i] = "DONE"

    @action(i=lambda m: range(m.n), fairness=WEAK)
    def look(self, s, i):
        """It is seen, perhaps again."""
        require(s.stage[i] == "DONE")
        s.seen[i] = True

    @temporal
    def all_seen(self, s):
        """Everyone is seen."""
        return eventually(all(s.seen[i] for i in range(self.n)))


def test_values_of_enums_and_idle_steps() -> None:
    """Indicators of values have weights of their own, and a step that changes nothing helps nobody."""
    found = proof(Stages, "all_seen")
    assert found.finding.verdict is Verdict.HOLDS, found.finding.because
    assert set(found.helpful) == {"begin(i)", "end(i)", "look(i)"}


class Switched(Model):
    """What helps at first helps no more after ten steps of another action, which no small instance has."""

    n: int = 2
    limits: ClassVar = {"n": (1, None)}

    def state(self):
        """Everything is to be sent."""
        return State(left=Array(self.n, Range(0, 1, init=1)), late=Range(0, self.n), seen=Bool())

    @action(i=lambda m: range(m.n), fairness=WEAK)
    def send(self, s, i):
        """A record goes, if it is not too late."""
        require(s.left[i] > 0)
        if s.late < 10:
            s.left[i] -= 1
        else:
            s.seen = not s.seen

    @action
    def wait(self, s):
        """Time goes by."""
        require(s.late < self.n)
        s.late += 1

    @temporal
    def each_sent(self, s):
        """Every channel sends everything, which is false of ten channels."""
        return all(eventually(s.left[c] == 0) for c in range(self.n))


def test_a_helpful_action_helps_after_every_other_one(capsys: pytest.CaptureFixture[str]) -> None:
    """What is discovered of the helpful rules alone, that it is never late, is not assumed."""
    assert run(["prove", f"{Path(__file__)}:Switched", "--any", "n", "--property", "each_sent", "--rank", ""]) == 160
    assert "not proved that a helpful step decreases the rank" in " ".join(capsys.readouterr().out.split())


CONSUMED = ("prove", "credit", "--property", "consumed", "--rank", "", "--timeout", "300", "-q")


@pytest.mark.long
def test_credit_is_consumed_for_any_number_of_buffers() -> None:
    """Flow control: everything produced is read, for every depth and any exclusive and floating buffers."""
    assert run([*CONSUMED, "--any", "exclusive,floating,depth"]) == 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "name", "free"), [("checkpoints", "ends", "failures"), ("buffer_pool", "served", "segments")]
)
def test_other_models_are_live_for_every_value(model: str, name: str, free: str, tmp_path: Path) -> None:
    """With a certificate that is accepted."""
    made = tmp_path / "made.certificate"
    words = ["--property", name, "-q", "--rank", "", "--any", free, "--timeout", "600", "--certificate", str(made)]
    assert run(["prove", model, *words]) == 0
    assert run(["verify-certificate", str(made), "-q"]) == 0


@pytest.mark.long
@pytest.mark.parametrize("name", ["consumed", "isolation"])
def test_credit_is_live_for_any_number_of_channels(name: str) -> None:
    """With any number of buffers: what is produced for a channel is read, whatever the other channels do."""
    everything = ["--any", "channels,exclusive,floating,depth", "--timeout", "600"]
    assert run(["prove", "credit", "--property", name, "-q", "--rank", "", *everything]) == 0


@pytest.mark.long
@pytest.mark.parametrize("variant", ["lost-announcement", "zero-exclusive-silent"])
def test_broken_flow_control_is_not_proved(variant: str) -> None:
    """Variants that violate the property at the default size."""
    assert find("credit").spec.expectation(variant, "consumed") == "violated"
    assert run([*CONSUMED, "--any", "depth", "--variant", variant]) == 160


def agreement(seeds: range, folder: Path, *, indexed: bool = False) -> Counter[tuple[str, bool]]:
    """Random models: what is proved for every size holds at the sizes that the explicit engine searches."""
    seen: Counter[tuple[str, bool]] = Counter()
    for seed in seeds:
        name = f"rows_{seed}"
        file = folder / f"{name}.py"
        file.write_text(random_array_model(seed, indexed=indexed), encoding="utf-8")
        place = importlib.util.spec_from_file_location(name, file)
        assert place is not None
        assert place.loader is not None
        module = importlib.util.module_from_spec(place)
        sys.modules[name] = module
        try:
            place.loader.exec_module(module)
            found = proof(module.Rows, "reached").finding
            true = all(
                explore(Spec(module.Rows).system(n=n)).finding("reached").verdict is Verdict.HOLDS for n in (1, 2, 3)
            )
        finally:
            del sys.modules[name]
        assert true or found.verdict is Verdict.INCONCLUSIVE, f"{file}: {found.because}"
        seen[found.verdict.value, true] += 1
    return seen


@pytest.mark.push
def test_proofs_of_random_models_are_true(tmp_path: Path) -> None:
    """Most of what is true at small sizes is proved, and nothing that is not."""
    seen = agreement(range(16), tmp_path)
    assert seen["holds", True] > 5
    assert seen["inconclusive", False] > 5


def test_proofs_of_random_properties_of_every_index_are_true(tmp_path: Path) -> None:
    """The same for properties of every index, which constraints at that index may help to reach."""
    seen = agreement(range(12), tmp_path, indexed=True)
    assert seen["holds", True] > 1
    assert seen["inconclusive", False] > 1


@pytest.mark.long
@pytest.mark.parametrize("start", range(1_000, 2_000, 100))
def test_proofs_of_many_random_properties_of_every_index_are_true(start: int, tmp_path: Path) -> None:
    """The same for 1,000 properties of every index."""
    assert agreement(range(start, start + 100), tmp_path, indexed=True)["holds", True] > 10


@pytest.mark.long
@pytest.mark.parametrize("start", range(1_000, 3_000, 100))
def test_proofs_of_many_random_models_are_true(start: int, tmp_path: Path) -> None:
    """The same for 2,000 models."""
    assert agreement(range(start, start + 100), tmp_path)["holds", True] > 20


def test_a_rank_is_written_so_that_it_can_be_given(tmp_path: Path) -> None:
    """Also in a model whose variable has the name of an index."""
    file = tmp_path / "named.py"
    file.write_text(
        "from streamproof import *\n"
        "class Named(Model):\n"
        "    n: int = 2\n"
        "    limits = {'n': (1, None)}\n"
        "    def state(self):\n"
        "        return State(c=Array(self.n, Range(0, 2, init=2)), c_=Range(0, 1))\n"
        "    @action(i=lambda m: range(m.n), fairness=WEAK)\n"
        "    def less(self, s, i):\n"
        "        require(s.c[i] > 0)\n"
        "        s.c[i] -= 1\n"
        "    @temporal\n"
        "    def ends(self, s):\n"
        "        return eventually(all(s.c[i] == 0 for i in range(self.n)))\n",
        encoding="utf-8",
    )
    out = tmp_path / "proof.json"
    words = ["prove", str(file), "--any", "n", "--property", "ends", "-q", "--json", str(out)]
    assert run([*words, "--rank", ""]) == 0
    (found,) = json.loads(out.read_text())["ranks"]
    assert found["rank"] == "sum(c[c_] for c_ in range(n))"
    assert run([*words, "--rank", found["rank"]]) == 0


def test_the_time_limit_is_kept() -> None:
    """No time: nothing is proved, and the answer says so."""
    spec = Spec(Drain)
    parametric = spec.endless(["n"])
    assert isinstance(parametric, Parametric)
    found = prove_over_indices(
        parametric,
        "drained",
        rank=None,
        instantiate=lambda values: spec.system(**values),
        stages=(),
        query_limit=10.0,
        seconds=0.001,
    )
    assert found.finding.verdict is Verdict.INCONCLUSIVE


class Keyed(Model):
    """Two records by name."""

    most: int = 2
    limits: ClassVar = {"most": (1, None)}

    def state(self):
        """Both have something left."""
        whole = Range(0, self.most, init=self.most)
        return State(left=Array(("A", "B"), whole), more=whole, used=Array(self.most, Bool()))

    @action(k=("A", "B"), fairness=WEAK)
    def take(self, s, k):
        """One less."""
        require(s.left[k] > 0)
        s.left[k] -= 1

    @temporal
    def emptied(self, s):
        """In the end nothing is left."""
        return eventually(s.left["A"] == 0 and s.left["B"] == 0)


def test_an_element_of_an_array_by_name_is_in_a_rank() -> None:
    """For every size of the rest."""
    (finding,) = prove_rank(Keyed, ["emptied"], "left['A'] + left['B']", free=("most",)).findings
    assert finding.verdict is Verdict.HOLDS


@measure
def to_go(m, s):
    """Number of steps that records have before them."""
    return sum(2 * s.left[i] + s.wire[i] for i in range(m.n))


@measure
def on_wires(m, s):
    """Number of records that were sent and not consumed."""
    return sum(s.wire[i] for i in range(m.n))


@measure
def first_or_none(m, s):
    """Without a value if nothing is on the first wire."""
    return 6 // s.wire[0]


MEASURED = Spec(Drain, measures=(to_go, on_wires, first_or_none))


@pytest.mark.parametrize("free", [(), ("n",)], ids=["two", "any"])
def test_a_rank_is_a_quantity_of_the_model(free: tuple[str, ...]) -> None:
    """Named, for one size, whose arrays are scalars, and for every size; another quantity is no rank."""
    result = prove_rank(MEASURED, ["drained"], "to_go", free=free)
    (finding,) = result.findings
    assert finding.verdict is Verdict.HOLDS
    assert "by the ranking function to_go, which" in finding.because
    assert [r.rank for r in result.ranks] == ["to_go"]
    assert prove_rank(MEASURED, ["drained"], "on_wires", free=free).findings[0].verdict is Verdict.INCONCLUSIVE


def test_a_quantity_without_a_value_is_no_rank() -> None:
    """It is refused, and so is a name that nothing has."""
    with pytest.raises(UsageError, match="first_or_none may have no value in some state"):
        prove_rank(MEASURED, ["drained"], "first_or_none", free=("n",))
    for key in ("[1]", "{1: 2}", "'C'", "1 + x", "2"):
        with pytest.raises(UsageError, match="is not supported in a rank"):
            prove_rank(Keyed, ["emptied"], f"left[{key}] + more", free=("most",))
    with pytest.raises(UsageError, match="'nothing' is not supported in a rank"):
        prove_rank(MEASURED, ["drained"], "nothing", free=("n",))
