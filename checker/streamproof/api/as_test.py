"""A behaviour as a test in Python: its steps are possible, and end in its last state."""

from __future__ import annotations

from ast import literal_eval

from streamproof.base.errors import StreamproofError, UsageError
from streamproof.base.text import visible
from streamproof.selection import Selection
from streamproof.system.model import System
from streamproof.system.verdict import Trace
from streamproof.traces.replay import replay_labels


def test_text(chosen: Selection, system: System, trace: Trace) -> str:
    """The test of a behaviour, for pytest. Raises `UsageError` for one without steps, or that its labels do not determine."""
    labels = [step.label for step in trace.steps]
    loop = None if trace.stutters else trace.loop
    try:
        if not labels or replay_labels(system, labels, loop=loop).states != trace.states:
            raise UsageError("the labels of its steps do not determine the behaviour")
        replay_labels(system, labels)
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
    last = "".join(f"        {v.name!r}: {value!r},\n" for v, value in system.named(trace.states[-1]))
    again = "" if loop is None else f", loop={loop}"
    return (
        f"# A behaviour of {visible(system.heading)}.\n\n"
        "from streamproof import export, replay_labels\n\n"
        f"STEPS = [\n{steps}]\n\n\n"
        "def test_behaviour() -> None:\n"
        '    """The steps are possible, and end in this state."""\n'
        f'    system = export({chosen.target.text!r}, "itf"{more}, actions=STEPS).system\n'
        f"    trace = replay_labels(system, STEPS{again})\n"
        f"    assert dict(zip(system.index, trace.states[-1])) == {{\n{last}    }}\n"
    )
