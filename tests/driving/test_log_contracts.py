"""Contracts of logs that bindings read describe real logs, and are what the bindings check; changed lines do not fit."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nonempty import nonempty
from offloading_jobs import KINDS as OFFLOADING
from offloading_jobs import offloaded
from runtime_mix import crashing, looping, run_of
from session_jobs import ran as session
from spanning_jobs import KINDS, spanned
from streamproof.conformance import InputError, LogForm, Observation, judge
from streamproof.conformance.event_table import record
from streamproof.conformance.events import logs_read_once, read_events
from streamproof.conformance.found_runs import _bindings_of, log_forms, registered
from streamproof.driving.contract import contract, log_line_schema, page
from streamproof.driving.suite import random_suite
from streamproof.driving.testing import subject_of
from streamproof.selection import selected
from streamproof_runtime.event_log import lines

jsonschema = pytest.importorskip("jsonschema")
AGENT = "credit_channel"
MODELS = sorted(model for model in registered() if log_forms(model))
OF_RUNTIME = [model for model in MODELS if model != AGENT]
DATA = Path(__file__).resolve().parents[1] / "data" / "flink"
WRONG: tuple[Any, ...] = (None, {"x": [{}]}, [[None]], "no", -1, True)
"""Values of which at least one has another form than an argument."""


def few(*quick: str) -> list[Any]:
    """The models with logs of the runtime, of which only some are checked in quick runs."""
    return [pytest.param(model, marks=() if model in quick else pytest.mark.long) for model in OF_RUNTIME]


def form_of(model: str) -> LogForm:
    """The only form of a log that the bindings of a model declare."""
    (form,) = log_forms(model)
    return form


@cache
def runs() -> tuple[str, ...]:
    """Simulated runs of all kinds of jobs, as text."""
    outcomes = [run_of(seed)[1] for seed in (*range(18), 55, 72)]
    outcomes += [crashing(1)[0], crashing(2, unaligned=True)[0], looping(0)[0], looping(3)[0]]
    outcomes += [session(32, "severe"), session(123, "severe")]
    outcomes += [spanned(0, **KINDS["pools"])[0]]
    outcomes += [offloaded(seed, **OFFLOADING["all, small cache"])[0] for seed in (31, 54)]
    return tuple("".join(lines(outcome.entries)) for outcome in outcomes)


@cache
def samples(most: int = 4) -> dict[str, list[dict[str, Any]]]:
    """Some lines of each event of these runs, by its name and writer."""
    found: dict[str, list[dict[str, Any]]] = {}
    for text in runs():
        for line in text.splitlines():
            data = json.loads(line)
            kind = f"{data['event']} {'#' in data['trace']} {data['trace'].endswith('/slots')} {sorted(data.get('args', ()))}"
            own = found.setdefault(kind, [])
            if len(own) < most:
                own.append(data)
    return found


def changed(data: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    """Copies of a line with one argument, or one part of the state, left out or of another form."""
    for name in data.get(kind, ()):
        for value in ("", *WRONG):
            copy = deepcopy(data)
            if value == "":
                del copy[kind][name]
            else:
                copy[kind][name] = value
            yield copy


def as_event(data: dict[str, Any]) -> Any:
    """The event of a line, as far as forms look at it."""
    from streamproof.conformance import Event

    return Event(data["trace"], data["process"], data["seq"], data["event"], data.get("args", {}))


def is_read(form: LogForm, data: dict[str, Any]) -> bool:
    """Whether the binding reads a line."""
    try:
        form.expect([as_event(data)])
    except InputError as error:
        return "needs the argument" not in str(error)
    return True


@pytest.mark.parametrize("model", few("partition_lifecycle", "slot_pool"))
def test_lines_of_the_runtime_fit_and_changed_ones_do_not(model: str) -> None:
    """Each line is an instance of the schema; of changed ones the schema and the binding say the same."""
    form = form_of(model)
    schema = log_line_schema(form)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    seen, refused = set(), 0
    for own in samples().values():
        for data in own:
            validator.validate(data)
            form.expect([as_event(data)])
        if own[0]["event"] not in form.events:
            continue
        seen.add(own[0]["event"])
        for copy in changed(own[0], "args"):
            is_valid = validator.is_valid(copy)
            refused += not is_valid
            assert is_valid == is_read(form, copy), copy
    assert refused > 5
    rare = {"answer_discarded", "job_failed", "executor_lost", "requirements_cleared", "slot_failed"}
    rare |= {"partitions_lost", "partition_missing", "descriptor_missing"}
    assert form.events.keys() - seen <= rare


@pytest.mark.parametrize("model", few("checkpoints"))
def test_events_stand_for_the_actions_that_the_contract_lists(model: str, tmp_path: Path) -> None:
    """What the binding makes of each event of the runs is among the actions of its form, all of which the machine has."""
    form = form_of(model)
    known = {name for event in form.events.values() for name in event.actions}
    log, taken, possible, observations = tmp_path / "run.ndjson", set(), set(), 0
    for text in runs():
        log.write_text(text, encoding="ascii")
        for binding in _bindings_of(model, (), log):
            for task in (task for case in binding.plan(log, None).cases for task in case.tasks):
                possible |= {action.name for action in task.system.actions}
                for observation in _observations(task):
                    name = observation.event.event
                    moves = {move.action for way in observation.alternatives for move in way}
                    assert not moves or moves <= {*form.events[name].actions}, (name, moves)
                    taken |= moves
                    observations += 1
    assert observations > 20
    assert not possible or known - possible <= {"stop"}  # of jobs with a failure budget
    assert taken
    assert taken <= known


def _observations(task: Any) -> Iterator[Observation]:
    for stream in task.streams:
        yield from stream.observations
    for account in task.spans:
        yield from (span.observation for span in account)


def of_agent(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Some records of Flink's agent of each call, both forms as lines of an event log."""
    for name in ("agent", "credit"):
        with tarfile.open(DATA / f"{name}.tar.xz") as tar:
            tar.extractall(folder, filter="data")
    found: dict[str, list[dict[str, Any]]] = {}
    for file in sorted(folder.rglob("*.trace.*")):
        for data in (json.loads(line) for line in file.read_text().splitlines() if line.startswith("{")):
            if "ph" not in data and len(own := found.setdefault(data.get("event", data.get("ev")), [])) < 40:
                own.append(data if "event" in data else _unflat(data))
    return found


def _unflat(data: dict[str, Any]) -> dict[str, Any]:
    args = {name: value for name, value in data.items() if name not in ("q", "proc", "ev")}
    return {"trace": data.get("ch", ""), "process": data["proc"], "seq": data["q"], "event": data["ev"], "args": args}


def test_records_of_the_agent_fit_and_changed_ones_do_not(tmp_path: Path) -> None:
    """Recorded calls of Flink 1.17 and 2.3, in both forms of lines."""
    form, found = form_of(AGENT), of_agent(tmp_path)
    validator = jsonschema.Draft202012Validator(log_line_schema(form))
    assert form.events.keys() - found.keys() <= {"c.retrigger"}
    assert {name for name in found if not name.startswith("g.")} <= form.events.keys()
    for name, own in found.items():
        for data in own:
            validator.validate(data)
        args = own[0]["args"]
        for part in (
            (part for part, about in form.events[name].args.items() if about.needed) if name in form.events else ()
        ):
            assert not validator.is_valid(
                {**own[0], "args": {key: value for key, value in args.items() if key != part}}
            )
            assert not validator.is_valid({**own[0], "args": {**args, part: [None]}})


@pytest.mark.parametrize("model", ["slot_pool", pytest.param(AGENT, marks=pytest.mark.long), "regions"])
def test_the_page_and_the_json_have_all_events(model: str) -> None:
    """Each event, with the actions that it stands for, which the model has or its recorded machine adds."""
    found = contract(selected(model).system(), log_forms(model))
    json.dumps(found)
    (log,) = found["logs"]
    text = "\n".join(page(found))
    for event in nonempty(log["events"]):
        assert event["meaning"], event["name"]
        assert f"| `{event['name']}` |" in text
        for part in (*event["arguments"], *event["state"]):
            assert part["meaning"], (event["name"], part)


@pytest.mark.long
@pytest.mark.parametrize("model", OF_RUNTIME)
def test_no_log_without_a_needed_part_is_accepted(model: str, tmp_path: Path) -> None:
    """Of each event one argument or part of the state is left out in a whole log: it is refused by the form, or rejected by
    the machine."""
    form, log = form_of(model), tmp_path / "run.ndjson"
    validator, made = jsonschema.Draft202012Validator(log_line_schema(form)), 0
    texts = [text for text in sorted(runs(), key=len) if _judged(model, text, log)]
    for name, event in form.events.items():
        for kind, parts in (("args", event.args), ("state", event.state)):
            for part in (part for part, about in parts.items() if about.needed):
                for text in (text for text in texts if f'"event":"{name}"' in text):
                    lines_ = [json.loads(line) for line in text.splitlines()]
                    records = [_without(data, name, kind, part, validator) for data in lines_]
                    if records != lines_:
                        made += 1
                        assert _verdicts(model, records, log) != {"accepted"}, (name, part)
                        break
    assert made > 5


def _without(data: dict[str, Any], name: str, kind: str, part: str, validator: Any) -> dict[str, Any]:
    """A line of the writer of an event, without one part."""
    if data["event"] != name or part not in data.get(kind, {}):
        return data
    lacking = {**data, kind: {key: value for key, value in data[kind].items() if key != part}}
    return data if validator.is_valid(lacking) else lacking


def _judged(model: str, text: str, log: Path) -> bool:
    log.write_text(text, encoding="ascii")
    return any(binding.recognises(log) for binding in _bindings_of(model, (), log))


def _verdicts(model: str, records: list[dict[str, Any]], log: Path) -> set[str]:
    log.write_text("".join(json.dumps(data) + "\n" for data in records))
    try:
        (binding,) = _bindings_of(model, (), log)
        with logs_read_once():
            return {verdict.answer for verdict in judge(binding.plan(log, None), model)}
    except InputError:
        return {"refused"}


@pytest.mark.parametrize(
    "model", [pytest.param(m, marks=() if m in ("slot_pool", AGENT) else pytest.mark.long) for m in MODELS]
)
def test_a_log_with_the_names_of_the_model_is_judged_by_its_name(model: str, tmp_path: Path) -> None:
    """The model's side of the contract: walks are accepted with stated sizes, a changed one is rejected, an unknown action is
    named."""
    subject = subject_of(selected(model))
    suite = random_suite(subject, 3, 12, 1)
    good = [event for script in suite.scripts[:3] for event in script.events(suite.system)]
    log = tmp_path / "own.ndjson"
    records = [record(event) for event in good]
    validator = jsonschema.Draft202012Validator(contract(subject.system)["line"])
    for data in records:
        validator.validate(data)
    assert _verdicts(model, records, log) == {"accepted"}
    names = [f"{name}={value}" for name, value in subject.system.parameters.items() if value is not None]
    binding = _bindings_of(model, names, log)[0]
    records[1]["event"] = "no_such_action"
    log.write_text("".join(json.dumps(data) + "\n" for data in records))
    with pytest.raises(InputError, match="no_such_action"):
        binding.plan(log, None)
    assert len(read_events(log)) == len(records)
