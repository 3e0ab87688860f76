"""Rendering of a trace: the steps, what each changed, and the violated condition with its explanation.

`render_text` gives the form of the files in ``counterexamples/`` (no colours, fixed width); `counterexample` gives the
same as styled lines, which the console colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from streamproof.base.errors import Loc, StreamproofError
from streamproof.base.records import dataclass
from streamproof.base.text import BLANK, Line, Style, StyledText, line, parameters_text, text
from streamproof.system.expr import Expr
from streamproof.system.interpreter import Interpreter, with_derived
from streamproof.system.model import Instance, Kind, Property, State, System, Variable
from streamproof.system.sorts import show
from streamproof.system.verdict import Trace, prefix_text
from streamproof.traces.explain import Blocked, Explanation, Reason, explain, last_step
from streamproof.traces.places import Change, changes

MAX_GROUPS = 3
"""Maximum number of reasons printed per disabled action."""

MAX_LABELS = 4
"""Maximum number of instances named for a common reason."""


@dataclass(frozen=True, slots=True)
class About:
    """Context printed with a trace; empty entries are omitted.

    `shortest`: the trace is of minimal length (breadth-first search, or increasing depth). `replayed`: the interpreter
    has replayed it. `reproduce`: a command that gives the trace again. `file`: the path of its ITF form. `error`: a
    model error in the last state, if the trace shows one.
    """

    engine: str = ""
    shortest: bool = False
    replayed: bool = False
    reproduce: str = ""
    file: str = ""
    error: StreamproofError | None = None


def render_text(
    system: System,
    prop: Property | None,
    trace: Trace,
    *,
    about: About | None = None,
    width: int = 100,
    full: bool = False,
) -> str:
    """The trace as plain text of at most `width` columns. See `counterexample`."""
    return text(counterexample(system, prop, trace, about=about, full=full), width)


def counterexample(
    system: System,
    prop: Property | None,
    trace: Trace,
    *,
    about: About | None = None,
    full: bool = False,
    why: Mapping[int, str] | None = None,
) -> list[Line]:
    """The trace as styled lines: header, steps with their changes, the violation, and how to reproduce it.

    `prop` is the property that the trace violates (or reaches); None for a trace without a property. With `full`, the
    whole state follows each step. `why` has sentences about steps, counted from 1. The trace must have passed
    `replay.verify`.
    """
    about = about or About()
    lines = list(_header(system, prop, trace, about))
    lines.append(BLANK)
    view = None if prop is None else _View.of(system, prop)
    lines.extend(_steps(*with_derived(system, trace), view, why or {}, full=full))
    if prop is not None and about.error is None:
        conclusion = list(_conclusion(system, prop, trace, explain(system, prop, trace)))
        if conclusion:
            lines.extend((BLANK, *conclusion))
    if about.error is not None:
        lines.extend((BLANK, *_mistake(about.error, len(trace) - 1)))
    footer = list(_footer(about))
    if footer:
        lines.extend((BLANK, *footer))
    return lines


def source(loc: Loc | None) -> str:
    """``file:line`` in its shortest unambiguous form: from the package's folder, or else from the working folder."""
    return "" if loc is None else loc.short


def _claim(prop: Property, trace: Trace) -> tuple[str, str, Style]:
    """The headline, the kind of trace, and its style."""
    match prop.kind:
        case Kind.REACHABLE:
            return "Witness", f"{prop.name} is reached", "good"
        case Kind.DEADLOCK:
            return "Counterexample", f"{prop.name} is violated: no action is enabled", "failed"
        case Kind.TERMINATION:
            return "Counterexample", f"{prop.name} is violated: an infinite execution exists", "failed"
        case Kind.TEMPORAL if trace.loop is None:
            return "Counterexample", f"{prop.name} is violated by {prefix_text(len(trace.steps))}", "failed"
        case Kind.TEMPORAL:
            return "Counterexample", f"{prop.name} is violated by a fair behaviour", "failed"
        case Kind.STEP:
            return "Counterexample", f"{prop.name} is violated by step {len(trace.steps)}", "failed"
        case Kind.INVARIANT:
            where = f"after step {len(trace.steps)}" if trace.steps else "in the initial state"
            return "Counterexample", f"{prop.name} is violated {where}", "failed"


def _header(system: System, prop: Property | None, trace: Trace, about: About) -> Iterator[Line]:
    if about.error is not None:
        yield line(StyledText("Error of the model: ", "title"), StyledText(about.error.message, "failed"))
    elif prop is None:
        yield line(StyledText("Behaviour", "title"), f" of {system.name}")
    else:
        what, claim, style = _claim(prop, trace)
        yield line(StyledText(f"{what}: ", "title"), StyledText(claim, style))
    if prop is not None:
        kind = prop.kind.value
        yield _fact("property", f"{prop.doc.strip().splitlines()[0]} ({kind})" if prop.doc else kind)
    yield _fact("model", system.name + (f", variant {system.variant}" if system.variant else ""))
    if system.parameters:
        yield _fact("parameters", parameters_text(system.parameters))
    count = len(trace.steps)
    length = f"{count} step{'' if count == 1 else 's'}"
    if about.shortest:
        length += ", no shorter one exists"
    elif about.engine and trace.loop is not None:
        length += ", which need not be the fewest"
    if trace.stutters:
        length += ", then stuttering forever"
    elif trace.loop is not None:
        length += f", a loop from state {trace.loop} on"
    yield _fact("length", length)
    if about.engine or about.replayed:
        by = "replayed by the interpreter" if about.replayed else ""
        yield _fact("found by", ", ".join(filter(None, (about.engine, by))))


def _fact(name: str, value: str) -> Line:
    return line(StyledText(f"{name:<12}", "faint"), value, indent=2, hang=14)


@dataclass(frozen=True, slots=True)
class _View:
    """The view of a property on the states, as states of a separate system: for a refinement, the abstract states."""

    interpreter: Interpreter
    terms: tuple[Expr, ...]
    seen: System

    @classmethod
    def of(cls, system: System, prop: Property) -> _View | None:
        """None if the property shows nothing but the variables."""
        if not prop.views:
            return None
        variables = tuple(Variable(name, term.sort, ()) for name, term in prop.views)
        return cls(Interpreter(system), tuple(term for _, term in prop.views), System("", variables, ()))

    def state(self, state: State) -> State:
        """The visible state."""
        return tuple(self.interpreter.value(term, state) for term in self.terms)

    def first(self, state: State, indent: int) -> Iterator[Line]:
        """The whole initial view."""
        for variable, value in self.seen.named(self.state(state)):
            yield line(
                StyledText("seen as ", "faint"),
                StyledText(variable.name, "place"),
                " = ",
                show(variable.sort, value),
                indent=indent,
            )

    def changed(self, before: State, after: State, indent: int) -> Iterator[Line]:
        """The changes of the view by a step."""
        made = changes(self.seen, self.state(before), self.state(after))
        if not made:
            yield line(StyledText("seen as no step", "faint"), indent=indent)
        for change in made:
            yield line(StyledText("seen as ", "faint"), *_change(change, [change.text]), indent=indent)


def _steps(system: System, trace: Trace, view: _View | None, why: Mapping[int, str], *, full: bool) -> Iterator[Line]:
    digits = max(3, len(str(len(trace.steps))) + 1)
    inner = digits + 6
    labels = [i.label for i in trace.steps]
    column = min(max((len(label) for label in labels), default=0), 48)
    yield line(StyledText(f"{0:>{digits}}", "faint"), "  ", StyledText("initial state", "title"))
    yield from _state(system, trace.states[0], inner)
    if view is not None:
        yield from view.first(trace.states[0], inner)
    if trace.loop == 0 and not trace.stutters:
        yield _loop_start(inner)
    for number, instance in enumerate(trace.steps, start=1):
        closing = number == len(trace.states)
        before, after = trace.states[number - 1], trace.states[(trace.loop or 0) if closing else number]
        yield _step(system, instance, number, digits, column)
        if instance.of:
            yield line(StyledText(" and ".join(instance.of), "faint"), indent=inner, hang=inner + 2)
        made = changes(system, before, after)
        yield from _changed(made, inner)
        if view is not None:
            yield from view.changed(before, after, inner)
        if number in why:
            yield line(StyledText(why[number], "faint"), indent=inner, hang=inner + 2)
        if closing:
            yield line(StyledText(f"back to state {trace.loop}: the loop repeats forever", "failed"), indent=inner - 2)
        elif full:
            yield line(StyledText("state", "faint"), indent=inner)
            yield from _state(system, after, inner + 2)
        if number == trace.loop and not trace.stutters:
            yield _loop_start(inner)
    if trace.stutters:
        yield line(StyledText("stuttering: the behaviour stays in this state forever", "failed"), indent=inner - 2)


def _step(system: System, instance: Instance, number: int, digits: int, column: int) -> Line:
    label = instance.label
    name, rest = instance.action, label[len(instance.action) :]
    spans = [StyledText(f"{number:>{digits}}", "faint"), StyledText("  "), StyledText(name, "action"), StyledText(rest)]
    action = system.action(instance.action)
    at = source(action.loc)
    if at:
        spans += [StyledText(" " * (max(column - len(label), 0) + 3)), StyledText(at, "source")]
    if action.internal:
        spans += [StyledText("   internal", "faint")]
    return line(*spans, hang=digits + 6)


def _loop_start(inner: int) -> Line:
    return line(StyledText("the loop starts here", "failed"), indent=inner - 2)


def _state(system: System, state: State, indent: int) -> Iterator[Line]:
    for variable, value in system.named(state):
        yield line(StyledText(variable.name, "place"), " = ", show(variable.sort, value), indent=indent)


def _changed(made: tuple[Change, ...], indent: int) -> Iterator[Line]:
    if not made:
        yield line(StyledText("(nothing changed)", "faint"), indent=indent)
    # Places of one variable with the same change share a line: the reset of an array is one line, not one per cell.
    groups: dict[tuple[str, str, str], list[Change]] = {}
    for change in made:
        groups.setdefault((change.place.variable, change.old, change.new), []).append(change)
    for alike in groups.values():
        yield line(*_change(alike[0], [change.text for change in alike]), indent=indent)


def _change(change: Change, places: Sequence[str]) -> tuple[StyledText, ...]:
    """A change with the places that have it."""
    start = (StyledText(", ".join(places), "place"), StyledText(": "))
    if change.difference:
        return (*start, StyledText(change.difference, "new"))
    return (*start, StyledText(change.old, "old"), StyledText(" -> "), StyledText(change.new, "new"))


def _conclusion(system: System, prop: Property, trace: Trace, explanation: Explanation) -> Iterator[Line]:
    match prop.kind:
        case Kind.INVARIANT | Kind.STEP:
            where = (
                f"in state {len(trace) - 1}" if prop.kind is Kind.INVARIANT else f"in step {last_step(trace)[0] + 1}"
            )
            for reason in explanation.reasons:
                yield line(StyledText(f"False {where}:", "title"))
                yield from _reason(reason, 4)
        case Kind.DEADLOCK:
            yield line(StyledText(f"No action is enabled in state {len(trace) - 1}:", "title"))
            yield from _blocked(system, explanation.blocked)
            for reason in explanation.reasons:
                tail = f"   because  {reason.because}" if reason.readings else ""
                yield line(f"The state is not terminal{tail}", indent=2)
            if system.terminal is None:
                yield line(
                    "The model has no terminal states: declare the states in which it may end with @terminal.", indent=2
                )
            if explanation.waiting:
                yield line(StyledText("A circle of processes that wait for each other:", "title"))
            for wait in explanation.waiting:
                spans = (StyledText(wait.label, "action"), " needs ", StyledText(wait.condition.text, "failed"))
                helps = (", which ", StyledText(wait.helper, "action"), f" of {wait.other} would make true")
                yield line(f"{wait.process}: ", *spans, *helps, indent=2, hang=6)
        case Kind.TEMPORAL if trace.loop is None:
            yield line(
                "The formula is false, whatever follows these states within or outside the constraint.", indent=2
            )
        case Kind.TEMPORAL:
            yield from _unmet(explanation)
            yield from _fairness(system, trace)
        case Kind.TERMINATION | Kind.REACHABLE:
            pass
        case _:
            assert_never(prop.kind)
    skipped = len(trace.steps) - len(explanation.steps)
    if explanation.steps and skipped:
        yield line(f"Steps that this depends on: {', '.join(map(str, explanation.steps))}", indent=2)


def _unmet(explanation: Explanation) -> Iterator[Line]:
    """Why a temporal formula is false."""
    yield line(StyledText("Why the formula is false:", "title"))
    for where, reason in explanation.unmet[:MAX_GROUPS]:
        yield line(f"{where}:", indent=2)
        yield from _reason(reason, 4)
    more = len(explanation.unmet) - MAX_GROUPS
    if more > 0:
        yield line(f"and {more} more", indent=2)


def _fairness(system: System, trace: Trace) -> Iterator[Line]:
    """Why the behaviour is fair: one line per reason, with the instances of one action together."""
    groups = treatments(system, trace)
    if not groups:
        yield line("No fairness constraints: every action may be postponed forever.", indent=2)
        return
    yield line(StyledText("Why this behaviour is fair:", "title"))
    for one in groups:
        yield _instances(one.labels, one.text)


@dataclass(frozen=True, slots=True)
class Treatment:
    """How a lasso treats some fair instances, or those that could change the state in which it stays; `fair`: rightly so."""

    labels: tuple[str, ...]
    text: str
    fair: bool = True


def treatments(system: System, trace: Trace) -> tuple[Treatment, ...]:
    """How a lasso treats the instances with fairness constraints, and which others it postpones; none without constraints."""
    from streamproof.system.temporal import fairness_of, postponed

    groups: dict[tuple[str, bool], list[str]] = {}
    for evidence in fairness_of(system, trace):
        groups.setdefault((f"{evidence.because} ({evidence.fairness.value})", evidence.satisfied), []).append(
            evidence.label
        )
    found = [Treatment(tuple(labels), text, fair) for (text, fair), labels in groups.items()]
    bound = {label for one in found if not one.fair for label in one.labels}
    free = tuple(label for label in postponed(system, trace) if label not in bound) if found else ()
    return (*found, *([Treatment(free, "enabled, but no fairness constraint requires the step")] if free else ()))


def _instances(labels: Sequence[str], about: str) -> Line:
    """Some action instances, and what is true of them."""
    more = f" and {len(labels) - MAX_LABELS} more" if len(labels) > MAX_LABELS else ""
    return line(StyledText(", ".join(labels[:MAX_LABELS]), "action"), f"{more}: {about}", indent=2, hang=6)


def _reason(reason: Reason, indent: int) -> Iterator[Line]:
    yield _failed(reason.text, reason.loc, indent)
    if reason.readings:
        yield line(f"because  {reason.because}", indent=indent + 2, hang=indent + 11)


def _failed(text: str, loc: Loc | None, indent: int) -> Line:
    """What is false or wrong, and where it is written."""
    at = source(loc)
    return line(
        StyledText(text, "failed"), *((StyledText("   "), StyledText(at, "source")) if at else ()), indent=indent
    )


def _blocked(system: System, entries: tuple[Blocked, ...]) -> Iterator[Line]:
    groups: dict[str, list[Blocked]] = {}
    for entry in entries:
        groups.setdefault(entry.action, []).append(entry)
    for action, members in groups.items():
        for entry in members[:MAX_GROUPS]:
            named = ", ".join(entry.labels[:MAX_LABELS])
            hidden = len(entry.labels) - MAX_LABELS
            at = source(entry.reason.loc)
            yield line(
                StyledText(named, "action"),
                f" and {hidden} more" if hidden > 0 else "",
                StyledText(f"   {at}" if at else "", "source"),
                indent=2,
            )
            needs = f" (the first of {entry.missing} conditions that are false)" if entry.missing > 1 else ""
            tail = f"   because  {entry.reason.because}" if entry.reason.readings else "   which is never true"
            yield line("needs  ", StyledText(entry.reason.text, "failed"), tail, needs, indent=6, hang=13)
        rest = sum(len(entry.labels) for entry in members[MAX_GROUPS:])
        if rest:
            yield line(f"{rest} more of {action}, for like reasons", indent=2)


def _mistake(error: StreamproofError, state: int) -> Iterator[Line]:
    yield line(StyledText(f"Goes wrong in state {state}:", "title"))
    yield _failed(error.message, error.loc, 4)
    if error.remedy:
        yield line(error.remedy, indent=6, hang=6)


def _footer(about: About) -> Iterator[Line]:
    if about.reproduce:
        yield _fact("reproduce", about.reproduce)
    if about.file:
        yield _fact("trace", about.file)
