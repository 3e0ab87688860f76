"""Import of TLC's behaviours from its output, replayed step by step by the interpreter."""

from __future__ import annotations

from streamproof.exchange.tla import Tla
from streamproof.exchange.tlc_run import Violation
from streamproof.exchange.tlc_values import read_state
from streamproof.exchange.tool_run import Refuted
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import System
from streamproof.system.verdict import Trace


def trace_of(system: System, model: Tla, violation: Violation) -> Trace:
    """TLC's behaviour as a trace: converted states, and for each step an instance that the interpreter takes.

    States repeated without a step are left out. Raises `Refuted` if no instance matches a step, or the first state is
    not initial, and `Unreadable` for an unknown value.
    """
    states = [read_state(system, model.variables, printed.text) for printed in violation.states]
    actions = [model.actions.get(printed.operator or "") for printed in violation.states]
    back_to, stutters = violation.back_to, violation.stutters
    interpreter = Interpreter(system)
    if not states or states[0] not in set(interpreter.initial_states()):
        raise Refuted("TLC's behaviour does not begin in an initial state")
    kept, steps, place = [states[0]], [], [0]
    for at in range(1, len(states)):
        named = (i for i in system.instances if i.action == actions[at])
        step = interpreter.leading((*named, *system.instances), states[at - 1], states[at])
        if step is not None:
            kept.append(states[at])
            steps.append(step)
        elif states[at] != states[at - 1]:
            raise Refuted(f"no action leads from state {at} of TLC's behaviour to state {at + 1}")
        place.append(len(kept) - 1)
    if back_to is None and not stutters:
        return Trace(tuple(kept), tuple(steps))
    if back_to is not None and not 1 <= back_to <= len(place):
        raise Refuted("TLC's behaviour goes back to a state that it does not have")
    loop = len(kept) - 1 if back_to is None else place[back_to - 1]
    if loop < len(kept) - 1 and kept[-1] == kept[loop]:
        return Trace(tuple(kept[:-1]), tuple(steps), loop)
    closing = None if stutters else interpreter.leading(system.instances, kept[-1], kept[loop])
    if closing is not None:
        return Trace(tuple(kept), (*steps, closing), loop)
    if loop < len(kept) - 1:
        raise Refuted("no action closes the loop of TLC's behaviour")
    return Trace(tuple(kept), tuple(steps), loop)
