"""A behaviour as a test in Python: its steps are possible, and end in its last state."""

from __future__ import annotations

from ast import literal_eval

from streamproof.base.errors import StreamproofError, UsageError
from streamproof.base.text import visible
from streamproof.exploring.explorer import Explorer, Visit
from streamproof.traces.replay import replay_labels


def test_text(explorer: Explorer, visit: Visit) -> str:
    """The test of a behaviour, for pytest. Raises `UsageError` for one without steps, or that its labels do not determine."""
    trace, chosen = visit.trace, explorer.selection
    labels = explorer.labels(visit)
    loop = None if trace.stutters else trace.loop
    try:
        if not labels or replay_labels(explorer.system, labels, loop=loop).states != trace.states:
            raise UsageError("the labels of its steps do not determine the behaviour")
        replay_labels(explorer.system, labels)
    except StreamproofError as error:
        raise UsageError(
            f"no test of this behaviour: {error.message if labels else 'it has no step'}", remedy="save it as ITF"
        ) from error
    given = chosen.given
    try:
        literal_eval(repr(given))
    except (ValueError, SyntaxError):
        raise UsageError("no test of this behaviour: its parameters are no literals", remedy="save it as ITF") from None
    more = f", variant={chosen.variant!r}" if chosen.variant else ""
    more += f", parameters={given!r}" if given else ""
    steps = "".join(f"    {label!r},\n" for label in labels)
    last = "".join(f"        {v.name!r}: {value!r},\n" for v, value in explorer.system.named(trace.states[-1]))
    again = "" if loop is None else f", loop={loop}"
    return (
        f"# A behaviour of {visible(explorer.system.heading)}.\n\n"
        "from streamproof import export, replay_labels\n\n"
        f"STEPS = [\n{steps}]\n\n\n"
        "def test_behaviour() -> None:\n"
        '    """The steps are possible, and end in this state."""\n'
        f'    system = export({chosen.target.text!r}, "itf"{more}, actions=STEPS).system\n'
        f"    trace = replay_labels(system, STEPS{again})\n"
        f"    assert dict(zip(system.index, trace.states[-1])) == {{\n{last}    }}\n"
    )
