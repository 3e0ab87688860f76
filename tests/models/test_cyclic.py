"""The loop with finite buffers: every expected verdict with exact counts, its parts by themselves, and the comparison."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from model_verdicts import established
from shares import share
from streamproof import Model, UsageError
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.language.declare.sweeping import Cell, Comparison, Judgement, Table
from streamproof.model_registry import find
from streamproof.sweep.comparing import compare
from streamproof.system import Verdict
from streamproof_models.cyclic.feedback import FeedbackEdge
from streamproof_models.cyclic.machine import POLICIES
from streamproof_models.cyclic.operators import Entry, Operator
from streamproof_models.cyclic.parts import Channel, Source
from streamproof_specs.cyclic.claims import COMPARISON
from streamproof_specs.cyclic.properties import SPEC

COUNTS = {
    None: (6979, 20938, 39),
    "bounded": (473, 1132, 17),
    "bounded-unamplified": (364, 855, 19),
    "feedback-first": (1945, 5176, 31),
    "feedback-first-in-memory": (4608, 12970, 39),
    "feedback-first-when-utilised": (6979, 20728, 44),
    "forward-first-until-utilised": (6979, 21133, 41),
    "forward-first": (4608, 12970, 39),
    "strict-turns": (4608, 11962, 48),
    "aligned-barriers": (1196, 3391, 34),
    "one-too-many": (6979, 20938, 39),
    "spill-dropped": (1234, 2990, 22),
    "spill-overtaken": (116448, 279485, 94),
    "barrier-overtakes": (42988, 106250, 130),
    "spill-newest-first": (121073, 284235, 105),
    "spill-read-twice": (65700, 185477, 73),
    "spill-left-over": (1279, 3122, 33),
    "spill-forgotten": (4608, 12565, 39),
}
"""Distinct states, generated states and depth, at the parameters that a variant is refuted at."""

LENGTHS = {
    "bounded": {"feedback_served": 8, "unblocked": 8, "checkpoints_complete": 8, "deadlock": 8},
    "bounded-unamplified": {"feedback_served": 18, "unblocked": 18, "checkpoints_complete": 18, "deadlock": 18},
    "feedback-first": {"forward_served": 11, "checkpoints_complete": 11},
    "feedback-first-in-memory": {"forward_served": 11, "checkpoints_complete": 11},
    "feedback-first-when-utilised": {"forward_served": 29, "checkpoints_complete": 29},
    "forward-first-until-utilised": {"forward_served": 29, "feedback_served": 9, "checkpoints_complete": 9},
    "forward-first": {"feedback_served": 9, "checkpoints_complete": 9},
    "strict-turns": {"forward_served": 4, "feedback_served": 8, "checkpoints_complete": 4, "deadlock": 4},
    "aligned-barriers": {"forward_served": 1, "feedback_served": 9, "checkpoints_complete": 1, "deadlock": 1},
    "one-too-many": {"channel.within_capacity": 2, "back.within_capacity": 6, "counted": 2},
    "spill-dropped": {"back.in_order": 6, "conserved": 6, "counted": 6, "checkpoints_complete": 12},
    "spill-overtaken": {"back.in_order": 10, "counted": 10, "checkpoints_complete": 29},
    "barrier-overtakes": {"back.in_order": 12, "counted": 12},
    "spill-newest-first": {"back.in_order": 11, "checkpoints_complete": 34},
    "spill-read-twice": {"back.in_order": 8, "conserved": 8, "counted": 8},
    "spill-left-over": {"conserved": 0, "counted_start": 0, "counted": 3},
    "spill-forgotten": {"forward_served": 12, "feedback_served": 8, "checkpoints_complete": 12},
}
"""Steps of the counterexamples."""

SAFETY = ("conserved", "back.in_order", "back.within_capacity", "channel.within_capacity", "deadlock")


@pytest.mark.parametrize("variant", share([None, *SPEC.model.variants], 5), ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """In turns and with a disk everything holds; each broken rule shows in what is expected of it, after so many steps."""
    result = established(SPEC, variant, COUNTS[variant])
    traces = {f.property: f.trace for f in result.findings if f.verdict is Verdict.VIOLATED}
    assert {name: len(t.steps) for name, t in traces.items() if t is not None} == LENGTHS.get(variant or "", {})


@pytest.mark.parametrize(
    ("parameters", "distinct"),
    share(
        [
            ({"operators": 1}, 2057),
            ({"barriers": 2}, 33854),
            ({"operators": 3, "buffers": 1, "records": 2}, 2557),
            ({"rounds": 2}, 30274),
            ({"barriers": 0}, 684),
            ({"amplification": 3, "records": 4}, 21895),
        ],
        2,
    ),
    ids=str,
)
def test_the_sound_loop_holds_at_other_sizes(parameters: dict[str, int], distinct: int) -> None:
    """With one operator or three, more barriers or none, a limit on rounds, and records that triple."""
    result = explore(SPEC.system(**parameters))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert result.counts.distinct == distinct


@pytest.mark.parametrize("policy", share(POLICIES, 3))
def test_a_disk_takes_every_deadlock_away(policy: str) -> None:
    """Whatever the entry prefers, something can always happen and no operator waits for ever, and nothing is lost."""
    result = explore(SPEC.system(policy=policy, records=4), SearchOptions(properties=(*SAFETY, "unblocked")))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}


def test_the_counts_at_medium() -> None:
    """Three operators and seven records: the safety properties hold in all of more than a million states."""
    result = explore(SPEC.system(**SPEC.model.sizes["medium"]), SearchOptions(properties=SAFETY))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert (result.counts.distinct, result.counts.generated, result.counts.depth) == (1031634, 4675588, 76)


@pytest.mark.parametrize(
    ("model", "variant", "distinct", "violated"),
    [
        (Channel, None, 7, {}),
        (Channel, "one-too-many", 15, {"within_capacity": 3}),
        (Operator, None, 24, {"deadlock": 3}),
        (Entry, None, 96, {"deadlock": 3}),
        (Source, None, 8, {"deadlock": 4}),
        (FeedbackEdge, None, 441, {}),
        (FeedbackEdge, "one-too-many", 561, {"within_capacity": 3}),
        (FeedbackEdge, "dropped", 2751, {"in_order": 3}),
        (FeedbackEdge, "overtaken", 13921, {"in_order": 5}),
        (FeedbackEdge, "barrier-in-memory", 30131, {"in_order": 5}),
        (FeedbackEdge, "newest-first", 69001, {"in_order": 6}),
        (FeedbackEdge, "read-twice", 1762, {"in_order": 5}),
        (FeedbackEdge, "forgotten", 441, {}),
    ],
)
def test_parts_by_themselves(model: type[Model], variant: str | None, distinct: int, violated: dict[str, int]) -> None:
    """A channel and a feedback edge have their properties in any environment, and their variants do not. An operator and a
    source stop when no record is left for them, which only other parts return."""
    result = explore(model.system(variant))
    traces = {f.property: f.trace for f in result.findings if f.verdict is Verdict.VIOLATED}
    assert {name: len(t.steps) for name, t in traces.items() if t is not None} == violated
    assert {f.property for f in result.findings if f.verdict is not Verdict.HOLDS} == set(violated)
    assert result.counts.distinct == distinct


def test_measures_agree_with_the_states() -> None:
    """The longest spill and the longest wait are those of the states themselves."""
    system = SPEC.system(rounds=1, watch=6, policy="feedback-first")
    explored = explore(system, SearchOptions(properties=("conserved",)))
    found = {m.name: m.value for m in explored.measured(SPEC.measured(rounds=1, watch=6, policy="feedback-first"))}
    disk, wait = system.index["back.disk"], system.index["forward_wait"]
    states = list(explored.states())
    assert found["longest_spill"] == max(len(s[disk]) for s in states) == 3
    assert found["longest_forward_wait"] == max(s[wait] for s in states) == 5


def test_unknown_words_are_refused() -> None:
    """A policy that does not exist is no policy that does nothing."""
    with pytest.raises(UsageError, match="'random' is none of feedback-first, "):
        find("cyclic").system(None, {"policy": "random"})


TABLE = pytest.mark.xdist_group("the table of designs")
"""One process makes the table, for all tests that read it."""


@pytest.fixture(scope="module")
def table() -> Table:
    """The comparison, carried out once."""
    compared = compare(SPEC, COMPARISON)
    assert compared.decided
    assert compared.searches == 18 * len(POLICIES)
    return compared.table


STARVED = {
    "feedback-first": ("violated (16)", "holds", "violated (16)", "holds"),
    "feedback-first-in-memory": ("violated (16)", "holds", "violated (16)", "holds"),
    "feedback-first-when-utilised": ("violated (30)", "holds", "violated (30)", "holds"),
    "forward-first-until-utilised": ("violated (30)", "violated (13)", "violated (9)", "holds"),
    "fair": ("holds", "holds", "holds", "holds"),
    "forward-first": ("holds", "violated (13)", "violated (9)", "holds"),
}
SERVED = ("forward_served", "feedback_served", "checkpoints_complete", "unblocked")
SIZES = {  # longest spill without amplification and with, with 4, 6 and 8 records; forward and feedback wait
    "feedback-first": ([4, 4, 4], [5, 7, 9], ("10", "0")),
    "feedback-first-in-memory": ([5, 7, 9], [5, 7, 9], ("10", "12 or more")),
    "feedback-first-when-utilised": ([5, 5, 5], [5, 7, 9], ("8", "1")),
    "forward-first-until-utilised": ([5, 5, 5], [5, 7, 9], ("7", "12 or more")),
    "fair": ([5, 7, 9], [5, 7, 9], ("1", "1")),
    "forward-first": ([5, 7, 9], [5, 7, 9], ("0", "12 or more")),
}


@pytest.mark.long
@TABLE
def test_the_table_of_verdicts(table: Table) -> None:
    """Who starves under which policy, though the entry is strongly fair, and what a bounded feedback edge does."""
    assert {p: tuple(table.text(p, f"endless: {of}") for of in SERVED) for p in POLICIES} == STARVED
    first = {p: [n for n in (2, 3, 4) if not table.holds(p, f"few: {n}")] for p in POLICIES}
    assert first == {
        "feedback-first": [3, 4],
        "feedback-first-in-memory": [3, 4],
        "feedback-first-when-utilised": [4],
        "forward-first-until-utilised": [4],
        "fair": [],
        "forward-first": [],
    }
    assert {p for p in POLICIES if not table.holds(p, "bounded, 1")} == {"fair", "forward-first"}
    assert not any(table.holds(p, "bounded, 2") for p in POLICIES)
    assert all(table.holds(p, f"spilling, {most}") for p in POLICIES for most in (1, 2))


@pytest.mark.long
@TABLE
def test_the_table_of_quantities(table: Table) -> None:
    """What the disk has to take stops growing only where the feedback edge is preferred and nothing is amplified."""
    found = {
        p: (
            [table.largest(p, f"spill: {n}") for n in (4, 6, 8)],
            [table.largest(p, f"amplified: {n}") for n in (4, 6, 8)],
            (table.text(p, "forward wait"), table.text(p, "feedback wait")),
        )
        for p in POLICIES
    }
    assert found == SIZES


@pytest.mark.long
def test_a_column_of_the_table() -> None:
    """One policy, as in the whole table."""
    some = ("forward-first",)
    table = compare(SPEC, replace(COMPARISON, designs=some, claims=())).table
    assert {p: tuple(table.text(p, f"endless: {of}") for of in SERVED) for p in some} == {p: STARVED[p] for p in some}
    assert {p: [table.largest(p, f"spill: {n}") for n in (4, 6, 8)] for p in some} == {p: SIZES[p][0] for p in some}


@pytest.mark.long
@TABLE
def test_claims_as_judged(table: Table) -> None:
    """What became of each claim of the proposal, in its order."""
    words = [claim.judge(table)[0].value for claim in COMPARISON.claims]
    assert words == [
        *("partly", "confirmed", "confirmed"),
        *("confirmed", "partly", "confirmed", "confirmed", "partly", "partly", "confirmed"),
        *("partly", "confirmed", "confirmed", "confirmed", "confirmed"),
    ]


def _other(table: Table, holds: bool | None, largest: int | None) -> Table:
    """Other answers to the same questions: these ones everywhere, or for None the opposite of each."""

    def other(cell: Cell) -> Cell:
        if cell.holds is not None:
            return Cell(holds=not cell.holds if holds is None else holds)
        return Cell(largest=99 - (cell.largest or 0) if largest is None else largest)

    return Table({at: other(cell) for at, cell in table.cells.items()})


@pytest.mark.long
@TABLE
def test_no_claim_is_judged_the_same_whatever_is_found(table: Table) -> None:
    """For each claim there are answers by which it would be judged otherwise."""
    others = [_other(table, None, None), _other(table, True, 5), _other(table, False, 5)]
    same = [c.says for c in COMPARISON.claims if all(c.judge(table)[0] is c.judge(o)[0] for o in others)]
    assert same == []


def test_what_is_not_decided_leaves_claims_open() -> None:
    """A search that is cut short decides nothing, and nothing is made of it."""
    few = Comparison(
        "policy", ("fair", "feedback-first"), COMPARISON.blocks[5:6], COMPARISON.claims[3:4], COMPARISON.properties
    )
    compared = compare(SPEC, few, max_states=5)
    assert not compared.decided
    assert [(j.judgement, j.because) for j in compared.claims] == [
        (Judgement.OPEN, "not decided: past feedback of feedback-first")
    ]


@pytest.mark.long
def test_the_command_prints_the_table(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    """The verb shows blocks and claims, writes JSON, and refuses a model without designs."""
    import json

    from streamproof.cli.verbs import run

    out = tmp_path / "compare.json"
    assert run(["compare", "cyclic", "--max-states", "3", "--json", str(out)]) == 160
    shown = capsys.readouterr().out
    assert shown.startswith("cyclic by policy\n\n  Deadlock freedom, ")
    assert "\n  open       spilling: " in shown
    data = json.loads(out.read_text())
    assert (data["schema"], data["exit_code"], len(data["claims"])) == ("streamproof.compare/1", 160, 15)
    assert data["blocks"][0]["columns"][0]["answers"][0] == {
        "design": "feedback-first",
        "holds": None,
        "length": None,
        "within": None,
        "vacuous": False,
        "largest": None,
        "at_least": False,
    }
    assert run(["compare", "task_attempt"]) == 2
    assert "task_attempt has no designs to compare" in capsys.readouterr().err
