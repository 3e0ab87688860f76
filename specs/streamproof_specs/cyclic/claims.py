"""The proposal's pros and cons of two input policies, and its statements on deadlock and starvation, as claims to judge.

Words in quotation marks are those of FLIP-15, part II. Time is not modelled: latency is measured by the number of items
of the other input that are read while one waits, throughput by the number of items in the loop at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamproof import step
from streamproof.comparison import Block, Claim, Column, Comparison, Judgement, Table
from streamproof_models.cyclic.machine import POLICIES

FIRST, MEMORY, WHEN, UNTIL, FAIR, FORWARD = POLICIES
CONFIRMED, PARTLY, REFUTED = Judgement.CONFIRMED, Judgement.PARTLY, Judgement.REFUTED
MANY = (4, 6, 8)
"""Numbers of records at which growing quantities are measured."""
CAP = 12
"""Waits are counted up to this maximum."""


def _reads(s, t, source):
    """Whether the step from `s` to `t` is the entry's reading of this input."""
    return s.operator[0].task == "IDLE" and t.operator[0].task != "IDLE" and t.operator[0].last_read == source


@step
def never_past_feedback(m, s, t):
    """The forward input is read only when nothing waits on the feedback edge."""
    return not _reads(s, t, "FORWARD") or m.back.waiting(s.back) == 0


@step
def never_past_forward(m, s, t):
    """The feedback edge is read only when nothing waits on the forward input."""
    return not _reads(s, t, "FEEDBACK") or len(s.channel[0].items) == 0


@step
def staged(m, s, t):
    """The forward input is read only when the loop is empty."""
    idle = all(operator.task == "IDLE" for operator in s.operator)
    empty = all(len(s.channel[i].items) == 0 for i in m.inner) and m.back.waiting(s.back) == 0
    return not _reads(s, t, "FORWARD") or (idle and empty)


def _jam() -> Block:
    def column(feedback: str, amplification: int) -> Column:
        at = {"feedback": feedback, "amplification": amplification, "records": 6}
        return Column(f"{feedback}, {amplification}", f"{feedback}, {amplification}", "deadlock", at)

    columns = tuple(column(feedback, most) for feedback in ("spilling", "bounded") for most in (1, 2))
    return Block(
        "Deadlock freedom, by feedback edge and by the number of records that an operator makes of one", columns
    )


def _served(title: str, name: str, **parameters: Any) -> Block:
    def column(title: str, of: str) -> Column:
        return Column(f"{name}: {of}", title, of, parameters)

    columns = (
        column("forward input", "forward_served"),
        column("feedback edge", "feedback_served"),
        column("checkpoints", "checkpoints_complete"),
        column("operators", "unblocked"),
    )
    return Block(title, columns)


def _few(title: str, name: str, of: str) -> Block:
    def column(records: int) -> Column:
        at = {"records": records, "barriers": 0, "strong": True}
        return Column(f"{name}: {records}", f"{records} records", of, at)

    return Block(title, tuple(column(records) for records in (2, 3, 4)))


def _growth(title: str, name: str, of: str, amplification: int) -> Block:
    def column(records: int) -> Column:
        at = {"amplification": amplification, "records": records}
        return Column(f"{name}: {records}", f"{records} records", of, at)

    return Block(title, tuple(column(records) for records in MANY))


ORDER = Block(
    "Never past a waiting feedback item, a forward item; one at a time, with 1 and 2 operators",
    (
        Column("past feedback", "past feedback", "never_past_feedback", {}),
        Column("past forward", "past forward", "never_past_forward", {}),
        Column("staged, 1", "1 operator", "staged", {"operators": 1}),
        Column("staged, 2", "2 operators", "staged", {}),
    ),
)
_DRAINING = {"rounds": 2, "watch": CAP}
WAITS = Block(
    f"Read from the other input meanwhile, and logged for a checkpoint; at most two rounds, {CAP} counted",
    (
        Column("forward wait", "forward wait", "longest_forward_wait", _DRAINING, "watch"),
        Column("feedback wait", "feedback wait", "longest_feedback_wait", _DRAINING, "watch"),
        Column("log", "log", "longest_log", _DRAINING, "watch"),
    ),
)


def _all(table: Table, design: str, *columns: str) -> bool:
    return all(table.holds(design, column) for column in columns)


def _sizes(table: Table, design: str, name: str) -> list[int]:
    return [table.largest(design, f"{name}: {records}") for records in MANY]


def _bounded(sizes: list[int]) -> bool:
    """Whether a quantity has stopped growing with the number of records."""
    return sizes[-1] == sizes[-2]


def _words(sizes: list[int]) -> str:
    return ", ".join(map(str, sizes))


def infinite(table: Table) -> tuple[Judgement, str]:
    """A disk takes the deadlock away."""
    if all(_all(table, p, "spilling, 1", "spilling, 2") for p in POLICIES):
        return CONFIRMED, "with a spilling feedback edge no policy deadlocks"
    return REFUTED, "some policy deadlocks with a spilling feedback edge"


def jams(table: Table) -> tuple[Judgement, str]:
    """Without one there is a deadlock."""
    amplified = [p for p in POLICIES if table.holds(p, "bounded, 2")]
    plain = [p for p in POLICIES if table.holds(p, "bounded, 1")]
    if amplified:
        return REFUTED, f"{', '.join(amplified)}: no deadlock though records are amplified"
    if not plain:
        return CONFIRMED, "with a bounded feedback edge every policy deadlocks"
    return PARTLY, (
        f"every policy deadlocks once an operator makes two records of one; else {', '.join(plain)} do not: the entry lets "
        "nothing in while the feedback edge is full, and what is in the loop always has a place to go"
    )


def prioritising(table: Table) -> tuple[Judgement, str]:
    """Full priority starves the other input."""
    victims = {FIRST: "forward_served", FORWARD: "feedback_served"}
    if all(not table.holds(p, f"endless: {victim}") for p, victim in victims.items()) and _all(
        table, FAIR, "endless: forward_served", "endless: feedback_served"
    ):
        return CONFIRMED, f"{FIRST} starves the forward input and {FORWARD} the feedback edge; {FAIR} starves neither"
    return REFUTED, "the verdicts say otherwise"


def predictable(design: str, wanted: bool) -> Callable[[Table], tuple[Judgement, str]]:
    """Whether the choice of input depends only on which inputs have items."""

    def judge(table: Table) -> tuple[Judgement, str]:
        fixed = table.holds(design, "past feedback") or table.holds(design, "past forward")
        if fixed:
            because = "when both inputs have something it is always the same one that is read"
        else:
            because = "when both inputs have something it depends on how much waits and on what was read last"
        return (CONFIRMED if fixed == wanted else REFUTED), because

    return judge


def spills_little(design: str) -> Callable[[Table], tuple[Judgement, str]]:
    """Whether the disk needs a fixed size, and less than in turns."""

    def judge(table: Table) -> tuple[Judgement, str]:
        plain, fair = _sizes(table, design, "spill"), _sizes(table, FAIR, "spill")
        amplified = _sizes(table, design, "amplified")
        text = f"longest spill with {_words(list(MANY))} records {_words(plain)}, {FAIR} {_words(fair)}"
        if not _bounded(plain) or _bounded(fair):
            return REFUTED, text
        if design == FIRST:
            text += f"; {_words(_sizes(table, MEMORY, 'spill'))} if what is on disk does not count as waiting"
        if _bounded(amplified):
            return CONFIRMED, text
        return PARTLY, f"{text}; where an operator makes two of one, {_words(amplified)}"

    return judge


def quick_rounds(table: Table) -> tuple[Judgement, str]:
    """Items on the feedback edge wait for nothing."""
    waits = {p: table.largest(p, "feedback wait") for p in POLICIES}
    text = f"{waits[FIRST]} forward items are read while one that came back waits, {FAIR} {waits[FAIR]}"
    others = [wait for policy, wait in waits.items() if policy not in (FIRST, MEMORY)]
    return (CONFIRMED if waits[FIRST] < min(others) else REFUTED), text


def less_pipelined(table: Table) -> tuple[Judgement, str]:
    """Fewer items are in the loop at a time."""
    first, fair = _sizes(table, FIRST, "in the loop"), _sizes(table, FAIR, "in the loop")
    text = f"items in the loop with {_words(list(MANY))} records {_words(first)}, {FAIR} {_words(fair)}"
    return (CONFIRMED if _bounded(first) and not _bounded(fair) else REFUTED), text


def stages(table: Table) -> tuple[Judgement, str]:
    """Records pass the loop one by one."""
    one, two = table.holds(FIRST, "staged, 1"), table.holds(FIRST, "staged, 2")
    if one and two:
        return CONFIRMED, "the forward input is read only when the loop is empty"
    if one:
        return PARTLY, (
            "a loop of one operator is empty whenever it reads the forward input; one of two is not: it reads on while "
            "records are between the operators and none has come back yet"
        )
    return REFUTED, "the forward input is read while records are in the loop"


def starves_for_a_while(table: Table) -> tuple[Judgement, str]:
    """The forward input waits, and how long."""
    draining, endless = table.holds(FIRST, "draining: forward_served"), table.holds(FIRST, "endless: forward_served")
    wait = table.text(FIRST, "forward wait")
    if draining and endless:
        return REFUTED, "the forward input is always served"
    if not draining:
        return (
            REFUTED,
            "it is not temporary: the forward input may never be read again even if every record leaves the loop",
        )
    return PARTLY, (
        f"only if every record leaves some time: {wait} items of the feedback edge are read meanwhile if each goes around "
        "twice at most. If two never leave the loop, the forward input may never be read again"
    )


def stalls_barriers(table: Table) -> tuple[Judgement, str]:
    """Barriers wait with the records."""
    if table.holds(FIRST, "endless: checkpoints_complete"):
        return REFUTED, "every checkpoint completes"
    if table.holds(FIRST, "draining: checkpoints_complete"):
        return CONFIRMED, "a barrier on the forward input may never be read if two records never leave the loop"
    return CONFIRMED, "no checkpoint need complete, even if every record leaves some time"


def quicker_entrance(table: Table) -> tuple[Judgement, str]:
    """The forward input waits less, and more is in the loop."""
    waits = [table.largest(p, "forward wait") for p in (WHEN, FIRST)]
    most = [_sizes(table, p, "in the loop")[-1] for p in (WHEN, FIRST)]
    text = f"a forward item waits for {waits[0]} others, {FIRST} {waits[1]}; items in the loop {most[0]}, {FIRST} {most[1]}"
    if waits[0] < waits[1] and most[0] > most[1]:
        return CONFIRMED, text
    return (PARTLY if waits[0] < waits[1] or most[0] > most[1] else REFUTED), text


def starves_when_busy(table: Table) -> tuple[Judgement, str]:
    """It takes enough records to fill the feedback edge."""
    enough = {p: [n for n in (2, 3, 4) if not table.holds(p, f"few: {n}")] for p in (FIRST, WHEN)}
    if not enough[WHEN]:
        return REFUTED, "the forward input does not starve, however busy the feedback edge is"
    text = f"{enough[WHEN][0]} records starve the forward input, {FIRST} needs {min(enough[FIRST], default='more')}"
    busier = not enough[FIRST] or enough[WHEN][0] > enough[FIRST][0]
    return (CONFIRMED if busier and enough[FIRST] else REFUTED), text


def slower_rounds(table: Table) -> tuple[Judgement, str]:
    """Items on the feedback edge wait for forward items."""
    waits = [table.largest(p, "feedback wait") for p in (WHEN, FIRST)]
    text = f"{waits[0]} forward item is read while one that came back waits, {FIRST} {waits[1]}"
    return (CONFIRMED if waits[0] > waits[1] else REFUTED), text


COMPARISON = Comparison(
    parameter="policy",
    designs=POLICIES,
    properties=(never_past_feedback, never_past_forward, staged),
    blocks=(
        _jam(),
        _served(
            "Eventually served; records may never leave the loop, the entry is strongly fair",
            "endless",
            strong=True,
        ),
        _served("The same; the entry is weakly fair", "weak"),
        _served("The same; a record goes around at most twice", "draining", rounds=2),
        _few("Forward input served, by the number of records; strongly fair, no barrier", "few", "forward_served"),
        ORDER,
        WAITS,
        _growth("Longest spill, no amplification", "spill", "longest_spill", 1),
        _growth("Longest spill, up to two records made of one", "amplified", "longest_spill", 2),
        _growth("Buffers in use, no amplification", "buffers", "buffers_in_use", 1),
        _growth("Items in the loop, no amplification", "in the loop", "items_in_the_loop", 1),
    ),
    claims=(
        Claim("the mechanism before", "a loop with finite buffers “might have deadlocks”", jams),
        Claim("spilling", "making one resource “conceptually 'infinite'” gives deadlock-free execution", infinite),
        Claim("any policy", "one that “prioritises fully a specific flow” starves the other", prioritising),
        Claim(FIRST, "“simple and most predictable”", predictable(FIRST, True)),
        Claim(FIRST, "“discourages spilling”", spills_little(FIRST)),
        Claim(FIRST, "“lowers latency per iterative operation”", quick_rounds),
        Claim(FIRST, "“discourages pipelining”", less_pipelined),
        Claim(FIRST, "“restricts loop logic to staged execution”", stages),
        Claim(FIRST, "“some form of temporary starvation”", starves_for_a_while),
        Claim(FIRST, "it can hold up “fault tolerance barriers”", stalls_barriers),
        Claim(WHEN, "“discourages spilling”", spills_little(WHEN)),
        Claim(WHEN, "“lower end-to-end latency and higher throughput”", quicker_entrance),
        Claim(WHEN, "starvation “only when feedback queue is excessively busier”", starves_when_busy),
        Claim(WHEN, "it “can increase latency per-loop operation”", slower_rounds),
        Claim(WHEN, "“less predictable and more complex”", predictable(WHEN, False)),
    ),
)
