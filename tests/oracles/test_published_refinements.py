"""Published refinements hold, fairness included; broken mappings and broken protocols are refuted by replayed traces."""

from __future__ import annotations

from typing import Any

import pytest

from streamproof import WEAK, Bool, Model, ModelError, Range, Spec, State, action, refines, require
from streamproof.explicit.exploration import explore
from streamproof.language.lower.mutation_guard import is_elsewhere
from streamproof.model_registry import Target
from streamproof.symbolic.bmc import bmc
from streamproof.symbolic.proof import prove
from streamproof.system import System, Verdict
from streamproof.traces.render import render_text
from streamproof.traces.replay import verify
from streamproof_models.reference.async_termination_detection import AsyncTerminationDetection
from streamproof_models.reference.ewd840 import Ewd840
from streamproof_models.reference.ewd998 import Ewd998
from streamproof_models.reference.transaction_commit import TransactionCommit
from streamproof_models.reference.two_phase_commit import TwoPhaseCommit


def verdicts(system: System) -> dict[str, str]:
    """The verdicts of the explicit engine; every trace of a violation is verified again."""
    found = {}
    for finding in explore(system).findings:
        found[finding.property] = finding.verdict.value
        if finding.verdict is Verdict.VIOLATED:
            assert finding.trace is not None
            verify(system, finding.property, finding.trace)
    return found


class Commit(TwoPhaseCommit):
    """Two-phase commit, with the claim of its authors."""

    implements = refines(TransactionCommit, {"manager": "manager"}, resource_managers="resource_managers")


class Hasty(Commit, variant="hasty"):
    """The transaction manager commits without waiting."""

    @action
    def decide_commit(self, s: Any) -> None:
        """Does not ask who is prepared."""
        require(s.transaction == "undecided")
        s.transaction = "committed"
        s.commit_sent = True


def test_transaction_commit_has_34_states() -> None:
    """As TLC counts them for three resource managers; two-phase commit reaches all of them, seen through the mapping."""
    result = explore(TransactionCommit.system())
    assert (result.counts.distinct, result.counts.generated, result.counts.depth) == (34, 94, 7)
    system = Commit.system()
    assert {state[system.index["manager"]] for state in explore(system).states()} == {s[0] for s in result.states()}


def test_what_a_refinement_reads_does_not_depend_on_what_is_loaded() -> None:
    """Its rules are made by streamproof, whose modules stay leaves to what looks for changed objects."""
    Commit.system()
    assert is_elsewhere("streamproof.language.lower.refinement")


def test_two_phase_commit_refines_transaction_commit() -> None:
    """By exploration, and by induction at the same size; there are no fairness constraints."""
    system = Commit.system()
    assert verdicts(system) == dict.fromkeys(("consistent", "implements_start", "implements", "deadlock"), "holds")
    proof = prove(Commit.system(resource_managers=2), ["implements_start", "implements"])
    assert [f.verdict for f in proof.findings] == [Verdict.HOLDS, Verdict.HOLDS]


def test_a_hasty_manager_refines_nothing() -> None:
    """The step that no action of the specification makes is the last of the trace, and each state is shown as it is seen."""
    system = Commit.system("hasty")
    assert verdicts(system)["implements"] == "violated"
    finding = explore(system).finding("implements")
    assert finding.trace is not None
    assert [i.action for i in finding.trace.steps] == ["decide_commit", "obey_commit"]
    text = render_text(system, system.property("implements"), finding.trace).splitlines()
    seen = [line.strip() for line in text if line.strip().startswith("seen as")]
    assert seen == [
        "seen as manager = [rm1: working, rm2: working, rm3: working]",
        "seen as no step",
        "seen as manager[rm1]: working -> committed",
    ]
    bounded = next(f for f in bmc(system, 4, ["implements"]).findings)
    assert bounded.verdict is Verdict.VIOLATED
    assert bounded.trace is not None
    assert len(bounded.trace) == 3


class Detecting998(Ewd998):
    """EWD 998, with the published claim."""

    @refines(AsyncTerminationDetection, n="n", most_pending="most")
    def detects(self, s: Any) -> Any:
        """What the machines do is a detection of termination."""
        return dict(active=s.active, pending=s.pending, detected=self.detected(s))  # noqa: C408  (as an author may write it)


class Forgetful(Detecting998, variant="forgetful"):
    """Receiving does not stain the machine."""

    @action(i="n")
    def receive(self, s: Any, i: Any) -> None:
        """Activates its receiver, and leaves no trace."""
        require(s.pending[i] > 0)
        s.pending[i] -= 1
        s.counter[i] -= 1
        s.active[i] = True


class Lazy(Detecting998, variant="lazy"):
    """Nobody has to hand on the token."""

    @action(i="others")
    def pass_token(self, s: Any, i: Any) -> None:
        """As before, without fairness."""
        super().pass_token(s, i)


class TooEarly(Detecting998, variant="too-early"):
    """A mapping that takes the end itself for its detection."""

    @refines(AsyncTerminationDetection, n="n", most_pending="most")
    def detects(self, s: Any) -> Any:
        """Nothing is ever detected, whatever happened."""
        return {"active": s.active, "pending": s.pending, "detected": False}


def test_ewd998_refines_asynchronous_termination_detection() -> None:
    """Steps and fairness, as proved in the TLA+ examples; this machine-checked at two machines."""
    system = Detecting998.system(n=2)
    names = ("detection_is_right", "safra", "end_is_detected", "detects_start", "detects", "detects_fairness")
    assert verdicts(system) == dict.fromkeys(names, "holds")


@pytest.mark.parametrize(
    ("variant", "broken"),
    [
        ("forgetful", {"detection_is_right", "safra", "end_is_detected", "detects", "detects_fairness"}),
        ("lazy", {"end_is_detected", "detects_fairness"}),
        ("too-early", {"detects_fairness"}),
    ],
)
def test_broken_variants_of_ewd998(variant: str, broken: set[str]) -> None:
    """A wrong step, a missing fairness and a wrong mapping are each found where they belong."""
    found = verdicts(Detecting998.system(variant, n=2))
    assert {name for name, verdict in found.items() if verdict == "violated"} == broken


class Detecting840(Ewd840):
    """EWD 840, whose messages arrive at once."""

    @refines(AsyncTerminationDetection, n="n")
    def detects(self, s: Any) -> Any:
        """No message is ever on its way."""
        return {"active": s.active, "pending": [0 for _ in range(self.n)], "detected": self.detected(s)}


def test_sending_and_receiving_at_once_is_no_step_of_the_specification() -> None:
    """An activation by EWD 840 is two steps of the specification, so this mapping is refuted, by its first activation."""
    system = Detecting840.system(n=2)
    finding = explore(system).finding("detects")
    assert finding.verdict is Verdict.VIOLATED
    assert finding.trace is not None
    assert finding.trace.steps[-1].action == "send"
    verify(system, "detects", finding.trace)


class Clock(Model):
    """Counts to three and again; WEAK: it does not stop."""

    def state(self) -> State:
        """A number."""
        return State(hour=Range(0, 2))

    @action(fairness=WEAK)
    def tick(self, s: Any) -> None:
        """The next one."""
        s.hour = (s.hour + 1) % 3


class Halves(Model):
    """A clock with half hours, which may not go at all."""

    n: int = 6

    def state(self) -> State:
        """Two numbers in one."""
        return State(half=Range(0, 5), running=Bool(init=True))

    @action
    def move(self, s: Any) -> None:
        """Half an hour."""
        require(s.running)
        s.half = (s.half + 1) % 6

    @refines(Clock)
    def clock(self, s: Any) -> Any:
        """A whole hour is two steps; every other one is seen as none."""
        return {"hour": s.half // 2}


class Fair(Halves, variant="fair"):
    """It goes."""

    @action(fairness=WEAK)
    def move(self, s: Any) -> None:
        """As before."""
        super().move(s)


class Beyond(Halves, variant="beyond"):
    """A mapping that leaves what the specification allows."""

    @refines(Clock)
    def clock(self, s: Any) -> Any:
        """Too many hours."""
        return {"hour": s.half}


class Late(Halves, variant="late"):
    """It starts at an hour that the specification does not start at."""

    def state(self) -> State:
        """Three o'clock, and more."""
        return State(half=Range(0, 5, init=2), running=Bool(init=True))


def test_a_wrong_start_names_the_variable_of_the_specification() -> None:
    """Which of its variables starts otherwise."""
    system = Late.system()
    finding = explore(system).finding("clock_start")
    assert finding.trace is not None
    shown = render_text(system, system.property("clock_start"), finding.trace)
    assert "hour starts as clock has it" in shown
    assert "half = 2" in shown


def test_steps_that_are_seen_as_none() -> None:
    """Stuttering is no step of the specification and none of its fairness: a clock that may stop is refuted."""
    assert verdicts(Halves.system()) == {
        "clock_start": "holds",
        "clock": "holds",
        "clock_fairness": "violated",
        "deadlock": "holds",
    }
    assert verdicts(Halves.system("fair"))["clock_fairness"] == "holds"


def test_a_mapping_that_leaves_the_sort_is_a_mistake() -> None:
    """It is reported with its line, like a value of a variable that leaves its sort."""
    finding = explore(Halves.system("beyond")).finding("clock")
    assert finding.verdict is Verdict.ERROR
    assert "hour of clock leaves Range(0, 2) in property clock" in finding.because


def test_properties_are_listed_without_compiling() -> None:
    """The list of a model's properties has those of its refinements, in the order of the compiled system."""
    for model in (Commit, Detecting998, Halves):
        target = Target("", Spec(model), False)
        listed = [(p.name, p.kind) for p in target.properties()]
        assert listed == [(p.name, p.kind) for p in model.system().properties]


def test_what_cannot_be_a_refinement_is_refused() -> None:
    """Unknown models, parameters and variables are named, with what there is."""

    def mistaken(**of: Any) -> type[Model]:
        """A clock that claims something."""
        body = {"claim": refines(*of.pop("args"), **of), "state": Halves.state, "move": Halves.move}
        return type("Mistaken", (Model,), body)

    with pytest.raises(ModelError, match=r"refines\(3\) names no model"):
        refines(3)
    with pytest.raises(ModelError, match="has no parameter 'n'"):
        mistaken(args=(Clock, {"hour": "half"}), n=3).system()
    with pytest.raises(ModelError, match="'minute', which is not a variable of clock"):
        mistaken(args=(Clock, {"minute": "half", "hour": "half"})).system()
    with pytest.raises(ModelError, match="maps 'hour' to 'hours', which is not a variable"):
        mistaken(args=(Clock, {"hour": "hours"})).system()
    with pytest.raises(ModelError, match="does not map 'hour' of clock"):
        mistaken(args=(Clock, {})).system()
    with pytest.raises(ModelError, match="is not a mapping of states"):
        refines(Clock, 7)
