"""Driving in tests: an assertion for any test, and stateful machines for Hypothesis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from streamproof.base.records import replace
from streamproof.base.text import text
from streamproof.conformance.event import Event
from streamproof.conformance.event_log import EventLog
from streamproof.driving.adapter import Adapter
from streamproof.driving.choosing import Walking
from streamproof.driving.connection import AdapterSource, adapter_source, of_class
from streamproof.driving.drive import Drive, DriveOptions, drive
from streamproof.driving.drive_subject import Subject
from streamproof.driving.driver import Driver
from streamproof.driving.lines import difference_lines, drive_lines
from streamproof.driving.script import PROCESS, Asked, CallScript, read_scripts
from streamproof.driving.script_run import Running
from streamproof.driving.suite import MOST_STATES, occurring, suite_or_none
from streamproof.exchange.itf.reading import read_itf, read_meta
from streamproof.language.declare.model import Model
from streamproof.language.declare.spec import Spec
from streamproof.selection import Selection, selected

WIDTH = 120
NOTHING: Mapping[str, Any] = MappingProxyType({})


def subject_of(selection: Selection) -> Subject:
    """What an implementation is compared with: a chosen model, whatever its constraint on searches is."""
    system = selection.system()
    return Subject(system.unconstrained, selection.target.spec, selection.variant, selection.given, system)


def scripts_of(path: Path, subject: Subject) -> list[CallScript]:
    """The scripts of an event log, or that of a trace in ITF, such as a counterexample. Raises `InputError`."""
    if not path.name.endswith(".itf.json"):
        return read_scripts(path, subject.system)
    system, variant = subject.searched or subject.system, read_meta(path).variant
    if subject.spec is not None and variant != subject.variant:
        system = subject.spec.system(variant, **subject.parameters)
    known = {action.name for action in subject.system.actions}
    steps = [step for step in read_itf(path, system).steps if step.action in known]
    return [CallScript(path.name.removesuffix(".itf.json"), tuple(map(Asked.of, steps)))]


def _source(adapter: str | type[Adapter]) -> AdapterSource:
    return adapter_source(adapter) if isinstance(adapter, str) else of_class(adapter)


def assert_no_difference(
    model: str | type[Model] | Model | Spec,
    adapter: str | type[Adapter],
    script: Sequence[Mapping[str, Any]] | None = None,
    *,
    variant: str | None = None,
    parameters: Mapping[str, Any] = NOTHING,
    seed: int = 0,
    walks: int | None = None,
    steps: int | None = None,
    without: Sequence[str] = (),
) -> Drive:
    """For tests: drives an implementation, and raises `AssertionError` with the calls for a difference, and for a drive from
    which nothing can be concluded.

    `script` are the only calls, such as ``{"event": "grant", "args": {"client": 0}}``; without it a suite of the model runs,
    and then random walks. `adapter` is a class, or a text as for ``--adapter``. Raises `InputError` for a call that the model
    does not have.
    """
    subject, source = subject_of(selected(model, variant, parameters=parameters)), _source(adapter)
    if script is not None:
        calls = tuple(Asked(c["event"], c.get("args", {}), c.get("picks", {})) for c in script)
        log = EventLog(subject.system)
        for call in calls:  # its names and types are those of the model
            log.observation(Event("script", PROCESS, 0, call.action, call.args, picks=call.picks))
        every = tuple(action.name for action in subject.system.actions)
        options = DriveOptions(walks=0, seed=seed, without=every)
        found = drive(subject, source, [CallScript("script", calls)], options)
    else:
        options = DriveOptions(seed=seed, without=tuple(without))
        options = replace(options, walks=walks, steps=steps or options.steps)
        scripts = suite_or_none(subject, MOST_STATES)
        found = drive(subject, source, scripts, options, occurring(subject, scripts))
    if found.answer != "no difference":
        raise AssertionError("\n" + text(drive_lines(found), WIDTH))
    return found


def rule_based(
    model: str | type[Model] | Model | Spec,
    adapter: str | type[Adapter],
    *,
    variant: str | None = None,
    parameters: Mapping[str, Any] = NOTHING,
    refusals: bool = True,
) -> Any:
    """A stateful machine of Hypothesis that drives an implementation; its ``TestCase`` is a test.

    A rule for each action draws a call of it that the model permits; with `refusals`, one more draws a call that must be
    refused. Hypothesis chooses and shrinks the calls.
    """
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

    subject = subject_of(selected(model, variant, parameters=parameters))
    instances, driver = subject.system.instances, Driver(subject, _source(adapter))
    walking = Walking(driver, 0)  # its caches, and the adapter, serve all runs

    class DrivenMachine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.running = Running(driver, "hypothesis")
            self.running.reset()
            self.look()

        def look(self) -> None:
            """Fails if there is a difference, or nothing can be concluded; else finds what is possible now, by action."""
            self.calls: dict[str, list[int]] = {}
            ran = self.running.ran()
            if ran.is_difference or ran.ended == "undecided":
                raise AssertionError("\n" + text(difference_lines(subject.system, ran), WIDTH))
            if self.running.ended is None:
                for at in sorted(walking.possible(self.running.following)):
                    if instances[at].action not in driver.absent:
                        self.calls.setdefault(instances[at].action, []).append(at)
                if refusals and (wrong := walking.wrong(self.running.following)):
                    self.calls[""] = wrong

        def call(self, at: int, *, refused: bool = False) -> None:
            self.running.do(Asked.of(instances[at], refused=refused))
            self.look()

        def teardown(self) -> None:
            if self.running.ended is None:
                self.running.finish()
                self.look()

    def rule_of(action: str) -> Any:
        def step(self: DrivenMachine, data: Any) -> None:
            self.call(data.draw(st.sampled_from(self.calls[action]), label=action or "refused"), refused=not action)

        step.__name__ = action.replace(".", "_") or "call_that_must_be_refused"
        return precondition(lambda self: action in self.calls)(rule(data=st.data())(step))

    @precondition(lambda self: not self.calls)
    @rule()
    def rest(self: DrivenMachine) -> None:
        """Nothing is possible."""

    rules = {f"do_{at}": rule_of(name) for at, name in enumerate(("", *(a.name for a in subject.system.actions)))}
    return type(f"{subject.system.name.title()}Machine", (DrivenMachine,), {**rules, "rest": rest})
