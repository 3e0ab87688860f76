"""Conformance checking of implementations against models: the interface for bindings of logs, and validation.

A system that writes its own log needs `EventLog` only, which reads event logs: an event is an action of the model.

A *binding* ties the logs of one implementation to one model. Subclass `Binding`, and register an instance of the class
in the entry-point group ``streamproof.bindings`` under the model's name. A log passes through these stages:

1. ``Binding.plan`` reads a run into `Event` objects and interprets them: a `Unit` for each unit with a verdict, in it a
   `Task` for each behaviour to follow, in that the `Observation` objects of each process, in a `Stream`.
2. The tracker follows each task through its machine; the result is `Tracked`.
3. `judge` combines the outcomes of a case into one `RunVerdict`, and ``RunVerdict.record`` is its JSON.

A binding provides: `Binding`, `Plan`, `Unit`, `Task`; `Stream` of `Observation` (`BY_VALUE`), or `Span` for overlapping
calls; `Move`, `Constraint` on a `StateReader`; optionally `Explainer`, `RecoveryReader`, `Grounding`. Results are: `Tracked`,
`RunVerdict`,
`Followed`, `Rejection`, `Candidate`, `Recovery`, `RestartReason`, `RunFinding`, `Designed`. For drawings: `JobHistory` of
`DrawnVertex`, `DrawnEdge`, `DrawnAttempt`, `DrawnCheckpoint`, and `Happening`. Machines come from `compile_model`, or from
`Rules` if they have too many instances to enumerate. Unreadable input raises `InputError`. Files of events: `read_events`,
`first_event_fields`, `may_have_event`, `json_value`, `write_ndjson`, `write_parquet`. What a binding reads in its events,
for itself and for contracts: a `LogForm` of `EventForm`, with the `LogWriter`, and arguments made of `TEXT`, `NUMBER`,
`list_of` and others. The share of judged events: `JudgedEvents`. In a test: `assert_conforms`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from streamproof.base.errors import Loc
from streamproof.base.reading import why_no_file
from streamproof.conformance.binding import (
    BY_VALUE,
    Binding,
    Constraint,
    Explainer,
    Grounding,
    Move,
    Observation,
    Plan,
    RecoveryReader,
    Span,
    StateReader,
    Stream,
    Task,
    Unit,
)
from streamproof.conformance.coverage import JudgedEvents
from streamproof.conformance.event import Event
from streamproof.conformance.event_forms import (
    ANYTHING,
    INTEGER,
    NUMBER,
    TEXT,
    TEXTS,
    TRUTH,
    EventForm,
    EventPart,
    LogForm,
    LogWriter,
    by_name,
    list_of,
    matching,
    one_of,
    up_to,
)
from streamproof.conformance.event_table import json_value, write_parquet
from streamproof.conformance.events import (
    first_event_fields,
    may_have_event,
    read_events,
    write_ndjson,
)
from streamproof.conformance.history import (
    Designed,
    DrawnAttempt,
    DrawnCheckpoint,
    DrawnEdge,
    DrawnVertex,
    Happening,
    JobHistory,
    Since,
    seconds_of,
)
from streamproof.conformance.run_verdict import (
    Candidate,
    Followed,
    Recovery,
    Rejection,
    RestartReason,
    RunFinding,
    RunVerdict,
    Tracked,
)
from streamproof.system import BOOL, InputError, Instance, Variable

if TYPE_CHECKING:
    from streamproof.conformance.event_log import EventLog
    from streamproof.conformance.judging import judge
    from streamproof.conformance.validation import assert_conforms, validate_paths
    from streamproof.language.declare.spec import compile_model
    from streamproof.language.free.grounding import Rules

_LATER = {
    "EventLog": "streamproof.conformance.event_log",
    "judge": "streamproof.conformance.judging",
    "assert_conforms": "streamproof.conformance.validation",
    "validate_paths": "streamproof.conformance.validation",
    "compile_model": "streamproof.language.declare.spec",
    "Rules": "streamproof.language.free.grounding",
}
"""Names that are loaded when they are used: a report, which has no model, needs none of them."""


def __getattr__(name: str) -> "Any":
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_LATER[name]), name)
    return found


__all__ = [
    "ANYTHING",
    "BOOL",
    "BY_VALUE",
    "INTEGER",
    "NUMBER",
    "TEXT",
    "TEXTS",
    "TRUTH",
    "Binding",
    "Candidate",
    "Constraint",
    "Designed",
    "DrawnAttempt",
    "DrawnCheckpoint",
    "DrawnEdge",
    "DrawnVertex",
    "Event",
    "EventForm",
    "EventLog",
    "EventPart",
    "Explainer",
    "Followed",
    "Grounding",
    "Happening",
    "InputError",
    "Instance",
    "JobHistory",
    "JudgedEvents",
    "Loc",
    "LogForm",
    "LogWriter",
    "Move",
    "Observation",
    "Plan",
    "Recovery",
    "RecoveryReader",
    "Rejection",
    "RestartReason",
    "Rules",
    "RunFinding",
    "RunVerdict",
    "Since",
    "Span",
    "StateReader",
    "Stream",
    "Task",
    "Tracked",
    "Unit",
    "Variable",
    "assert_conforms",
    "by_name",
    "compile_model",
    "first_event_fields",
    "json_value",
    "judge",
    "list_of",
    "matching",
    "may_have_event",
    "one_of",
    "read_events",
    "seconds_of",
    "up_to",
    "validate_paths",
    "why_no_file",
    "write_ndjson",
    "write_parquet",
]
