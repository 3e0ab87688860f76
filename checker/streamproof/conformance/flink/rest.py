"""Flink's REST API answers about a job: its graph, and the scheduler.

A file `rest-<job>.json` beside the logs holds the answers under `job` (`/jobs/:id`) and `plan` (`/jobs/:id/plan`); others
in it are ignored. A bare answer of `/jobs/:id` is also accepted, and so are one of `/jobs/:id/plan`, and the archive of a job
that the history server reads. The plan states ship strategies, not distribution patterns: `graph.pattern_of` translates.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from streamproof.base.errors import InputError
from streamproof.base.reading import misfit, parse_json, read_text
from streamproof.base.records import dataclass
from streamproof.conformance.flink.archives import files_in, real
from streamproof.conformance.flink.graph import (
    MOST_PARALLELISM,
    Edge,
    JobGraph,
    Vertex,
    gaps,
    pattern_of,
    possible,
    same_connections,
)
from streamproof.conformance.flink.identifiers import HEX
from streamproof.conformance.flink.log_records import Problem, unescaped

_REMEDY: Final = (
    "give the REST API's answer to /jobs/JOB (it has `jid`, `vertices` and `plan`) or to /jobs/JOB/plan, or the job's "
    "archive of the history server"
)
MOST_BYTES: Final = 64_000_000
"""Maximum size of an answer, in bytes."""
_STORED: Final = re.compile(r"/jobs/(?P<job>[0-9a-f]{32})(?P<rest>/plan|/exceptions|/vertices/[0-9a-f]{32})?")
"""The paths of answers about a job in an archive of the history server."""
_FILES: Final = re.compile(r"rest-.*\.json|[0-9a-f]{32}(?:\.json)?|(?:.*[-_.])?plan(?:[-_.].*)?\.json")
"""The names of answers beside the logs."""
_TAG: Final = re.compile(r"<[^<>]{0,20}>")
_NAMED: Final = re.compile(r"rest-(?:.*-)?(?P<job>[0-9a-f]{8,32})\.json")


class NoAnswer(InputError):
    """The file records that the API did not answer, for example because the JobManager was gone."""


@dataclass(frozen=True, slots=True)
class Subtask:
    """The state of a subtask's current attempt, and the TaskManager that has it; None: not stated."""

    state: str | None
    taskmanager: str | None


@dataclass(frozen=True, slots=True)
class RestJob:
    """One job according to the REST API."""

    job: str
    name: str
    state: str
    scheduler: str | None
    graph: JobGraph
    file: str
    subtasks: Mapping[tuple[str, int], Subtask] = field(default_factory=dict)
    """By vertex id and subtask; empty if the file has no answers about vertices."""


def read_rest(path: str | os.PathLike[str], job: str | None = None) -> RestJob:
    """Reads a REST answer; if `job` is given, it must be that job's.

    Raises `InputError` for a file that is missing, not JSON, not such an answer, or another job's; `NoAnswer`, a
    subclass, for a file that records a missing answer.
    """
    file = str(path)
    data = _answers(read_data(Path(path)), file)
    answer = data.get("job", data)
    if isinstance(answer, str):
        raise NoAnswer(
            f"{file}: the API gave no answer: {answer[:120]}", remedy="request it again while the JobManager is running"
        )
    answer = _expect(answer, dict, "job", file)
    if "vertices" not in answer and ("jid" not in answer or "nodes" in answer):
        answer = _from_plan(data, file) or answer
    found = _required_text(answer, "jid", file)
    if job is not None and found != job:
        raise _refusal(file, f"the answer is about job {found}, not {job}", "give the answer for the job of the logs")
    name = _required_text(answer, "name", file)
    vertices = tuple(
        Vertex(
            _required_text(item, "id", file),
            _required_text(item, "name", file),
            possible(_field(item, "parallelism", int, file)),
        )
        for item in _objects(answer, "vertices", file)
    )
    if not vertices:
        raise _refusal(file, "the job has no vertices", _REMEDY)
    plan = _plan(data, answer, file)
    edges = _edges(plan, vertices, file)
    planned = {node["id"] for node in plan["nodes"]}
    beyond = {
        f"the parallelism of {item['name']!r}": f", claimed to be {item['parallelism']:,}; Flink allows {MOST_PARALLELISM:,}"
        for item in answer["vertices"]
        if possible(item["parallelism"]) is None
    }
    missing = [f"{gap}{beyond.get(gap, '')}" for gap in gaps(vertices, edges)]
    missing += [
        f"the inputs of {vertex.name!r}, which the plan leaves out" for vertex in vertices if vertex.id not in planned
    ]
    graph = JobGraph(found, name, vertices, edges, (), not missing, tuple(missing), "rest")
    return RestJob(
        job=found,
        name=name,
        state=_required_text(answer, "state", file),
        scheduler=_optional_text(answer, "schedulerType"),
        graph=graph,
        file=file,
        subtasks=_subtasks(data),
    )


def read_data(path: Path) -> Any:
    """The JSON object in a file. Raises `InputError`."""
    data = parse_json(read_text(real(path), MOST_BYTES), str(path), _REMEDY)
    why = misfit(data, {})
    if why:
        raise InputError(f"{path}: {why}", remedy=_REMEDY)
    return data


def _answers(data: dict[str, Any], file: str) -> dict[str, Any]:
    """The answers in a file, those of an archive of the history server by their paths."""
    if not isinstance(data.get("archive"), list):
        return data
    found: dict[str, Any] = {}
    jobs: set[str] = set()
    for entry in data["archive"]:
        stored = (
            _STORED.fullmatch(entry["path"]) if isinstance(entry, dict) and isinstance(entry.get("path"), str) else None
        )
        if stored is None or not isinstance(entry.get("json"), str):
            continue
        jobs.add(stored["job"])
        found[(stored["rest"] or "/job")[1:]] = parse_json(entry["json"], f"{file}, {entry['path']}", _REMEDY)
    if len(jobs) != 1 or "job" not in found:
        raise _refusal(file, f"the archive has the answers of {len(jobs)} jobs, not of one", _REMEDY)
    return found


def _from_plan(data: Mapping[str, Any], file: str) -> dict[str, Any] | None:
    """The answer for a job of which only the plan is given; None if there is none either."""
    plan = data.get("plan", data)
    plan = plan.get("plan", plan) if isinstance(plan, dict) else plan
    if not isinstance(plan, dict) or "nodes" not in plan:
        return None
    vertices = [
        {"id": node.get("id"), "name": _described(node), "parallelism": node.get("parallelism")}
        for node in _objects(plan, "nodes", file)
    ]
    return {"jid": plan.get("jid"), "name": plan.get("name"), "state": "UNKNOWN", "vertices": vertices, "plan": plan}


def _described(node: Mapping[str, Any]) -> str:
    """The name of a node, from its description: a chain of operators, one a line."""
    said = node.get("description")
    lines = re.split(r"<br ?/?>", said) if isinstance(said, str) else []
    names = [re.sub(r"^[\s:+|-]*(?=\S)", "", _TAG.sub("", line)).strip() for line in lines]
    return unescaped(" -> ".join(filter(None, names))) or str(node.get("id"))


def find_rest(folder: Path, jobs: Iterable[str], report: Callable[[Problem], None]) -> dict[str, Path]:
    """The REST answers in a folder (`rest-*.json`, `*plan*.json`, archives of the history server), by job.

    An unreadable file counts for the job of `jobs` whose identifier begins its name, so that reading it reports the
    error; a readable one of the same job takes precedence. Missing answers are omitted. An answer about a job that is
    not in the logs is reported.
    """
    known = sorted(jobs)
    found: dict[str, Path] = {}
    unreadable: dict[str, Path] = {}
    plans: dict[str, Path] = {}
    for file in files_in(folder, _FILES):
        try:
            answer = read_rest(file)
            about = answer.job
            (found if answer.state != "UNKNOWN" else plans).setdefault(about, file)
            if known and about not in known:
                report(
                    Problem(str(file), 0, f"the answer is about job {about}, which is not in the logs; it is left out")
                )
        except NoAnswer:
            continue
        except InputError:
            named = _NAMED.fullmatch(file.name)
            job = next((job for job in known if named and job.startswith(named["job"])), None)
            if job:
                unreadable.setdefault(job, file)
    return plans | unreadable | found


def _subtasks(data: Mapping[str, Any]) -> dict[tuple[str, int], Subtask]:
    """What the answers to `/jobs/JOB/vertices/VERTEX` say of subtasks: those under `subtasks`, by vertex, and those of an
    archive. Entries of another form are left out."""
    known = data.get("subtasks")
    by_vertex = dict(known) if isinstance(known, dict) else {}
    by_vertex |= {k.removeprefix("vertices/"): v for k, v in data.items() if k.startswith("vertices/")}
    found: dict[tuple[str, int], Subtask] = {}
    for vertex, answer in by_vertex.items():
        listed = answer.get("subtasks") if isinstance(answer, dict) else answer
        for item in listed if isinstance(listed, list) else ():
            if isinstance(item, dict) and isinstance(item.get("subtask"), int):
                place = _optional_text(item, "taskmanager-id")
                place = None if place == "(unassigned)" else place
                found[vertex, item["subtask"]] = Subtask(_optional_text(item, "status"), place)
    return found


def _plan(data: Mapping[str, Any], answer: Mapping[str, Any], file: str) -> dict[str, Any]:
    # `/jobs/:id/plan` wraps the plan once more than `/jobs/:id` does.
    for holder in (data.get("plan"), answer.get("plan")):
        if isinstance(holder, dict):
            inner = holder.get("plan", holder)
            if isinstance(inner, dict) and "nodes" in inner:
                return inner
    raise _refusal(file, "the answer has no plan with nodes, so the edges are not known", _REMEDY)


def _edges(plan: Mapping[str, Any], vertices: tuple[Vertex, ...], file: str) -> tuple[Edge, ...]:
    parallelism = {vertex.id: vertex.parallelism or 0 for vertex in vertices}
    edges = []
    for node in _objects(plan, "nodes", file):
        target = _required_text(node, "id", file)
        for place, item in enumerate(_objects(node, "inputs", file) if "inputs" in node else ()):
            source = _required_text(item, "id", file)
            ship, exchange = _optional_text(item, "ship_strategy"), _optional_text(item, "exchange")
            pattern = pattern_of(ship)
            if pattern is None and same_connections(parallelism.get(source, 0), parallelism.get(target, 0)):
                pattern = "ALL_TO_ALL"
            number = item.get("num", place)
            edges.append(
                Edge(
                    source,
                    target,
                    pattern,
                    exchange and exchange.upper(),
                    ship=ship,
                    input=number if isinstance(number, int) else place,
                )
            )
    return tuple(edges)


def _optional_text(item: Mapping[str, Any], key: str) -> str | None:
    """The text in a field that may be missing."""
    found = item.get(key)
    return found if isinstance(found, str) else None


def _refusal(file: str, message: str, remedy: str) -> InputError:
    return InputError(f"{file}: {message}", remedy=remedy)


def _expect(value: object, kind: type, what: str, file: str) -> Any:
    if not isinstance(value, kind):
        wanted = {dict: "an object", list: "a list", str: "text", int: "a whole number"}[kind]
        raise _refusal(file, f"{what} must be {wanted}, got {type(value).__name__}", _REMEDY)
    return value


def _field(item: Mapping[str, Any], key: str, kind: type, file: str) -> Any:
    if key not in item:
        raise _refusal(file, f"the field {key!r} is missing", _REMEDY)
    return _expect(item[key], kind, repr(key), file)


def _required_text(item: Mapping[str, Any], key: str, file: str) -> str:
    text: str = _field(item, key, str, file)
    if key in ("id", "jid") and not re.fullmatch(HEX, text):
        raise _refusal(file, f"{key!r} is not an identifier: {text!r}", _REMEDY)
    return text


def _objects(item: Mapping[str, Any], key: str, file: str) -> list[dict[str, Any]]:
    return [_expect(entry, dict, f"each of {key!r}", file) for entry in _field(item, key, list, file)]
