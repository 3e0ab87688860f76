"""The families of Flink's coordination log messages: their loggers and formats, and the arguments of their events.

A family is a name (`exec.transition`), the classes that log it, and the format of its message. Formats hold for Flink
1.16 to 2.3, those of attempts and slots from 1.9 on; where versions differ, the format accepts both. Loggers are
identified by the last part of their name, so layouts that abbreviate packages are supported.

Arguments of events are the named groups. An attempt gives `attempt`, `graph`, `vertex`, `subtask`, `number`; a
partition `partition`, `dataset`, `pnum`, `producer`; a task `task` and `parallelism`; a location `tm`, `host`, `port`.
`conflict` is present if the two names of an attempt in one line differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from sys import intern
from typing import Any, Final

from streamproof.base.records import dataclass
from streamproof.conformance.flink.identifiers import ATTEMPT_TEXT, HEX, PARTITION_TEXT

_ATTEMPT: Final = rf"(?P<attempt>(?P<graph>{HEX})_(?P<vertex>{HEX})_(?P<subtask>\d+)_(?P<number>\d+))"
_PARTITION: Final = rf"(?P<partition>(?P<dataset>{HEX})#(?P<pnum>\d+)@(?P<producer>{ATTEMPT_TEXT}))"
# User-defined names may contain anything, so the pattern relies on the surrounding text, greedily up to the last
# "(i/p)".
_TASK: Final = r"(?P<task>.*) \((?P<place>\d+)/(?P<parallelism>\d+)\)"
_TASK_ATTEMPT: Final = rf"{_TASK}#(?P<shown>\d+) \({_ATTEMPT}\)"
# Before 1.16 an attempt is one number, and before 1.12 the name of a task does not have that of the attempt.
_OLD: Final = rf"(?P<attempt>{HEX})"
_OLD_TASK: Final = rf"{_TASK}(?:#(?P<shown>\d+))? \({_OLD}\)"
_AT: Final = r"(?P<tm>\S++) @ (?P<host>.{0,1000}) \(dataPort=(?P<port>-?\d+)\)"
_JOB: Final = rf"(?P<job>{HEX})"
_ALLOC: Final = rf"(?P<alloc>{HEX})"
_REQUEST: Final = rf"SlotRequestId\{{(?P<req>{HEX})\}}"
_CHECKPOINT: Final = r"(?P<checkpoint>\d+)"
_TM: Final = r"(?P<tm>\S+)"
_PROFILE: Final = r"(?P<profile>.*)"
_STATE: Final = "CREATED|SCHEDULED|DEPLOYING|INITIALIZING|RUNNING|FINISHED|CANCELING|CANCELED|FAILED|RECONCILING"
_JOB_STATE: Final = (
    "INITIALIZING|CREATED|RUNNING|FAILING|FAILED|CANCELLING|CANCELED|FINISHED|RESTARTING|SUSPENDED|RECONCILING"
)
_OLD_NEW: Final = rf"(?P<old>{_STATE}) to (?P<new>{_STATE})"
_RANGE: Final = r"subpartitions? (?:\[(?P<from>\d+), (?P<to>\d+)\]|(?P<sub>\d+))"
_STORE: Final = r"\[(?P<type>\w+), (?P<subparts>\d+) subpartitions(?:, (?P<pending>\d+) pending consumptions)?\]"
_SUBPARTITION: Final = (
    r"PipelinedSubpartition#(?P<sub>\d+) \[number of buffers: (?P<buffers>\d+) \((?P<bytes>\d+) bytes\),"
    r" number of buffers in backlog: (?P<backlog>\d+), .*\]\."
)
_LOGICAL: Final = (
    rf"logical slot \(SlotRequestId\{{(?P<lreq>{HEX})\}}\) for execution vertex \(id (?P<vertex>{HEX})_(?P<subtask>\d+)\)"
    rf" from the physical slot \(SlotRequestId\{{(?P<req>{HEX})\}}\)"
)

_MASTER = ("JobMaster",)
_EXECUTOR = ("TaskExecutor",)
_SLOT_MANAGER = ("FineGrainedSlotManager", "DeclarativeSlotManager")
_MANAGER = ("StandaloneResourceManager", "ActiveResourceManager", "ResourceManager")

_TABLE: Final[Mapping[tuple[str, ...], Mapping[str, str | tuple[str, ...]]]] = {
    # Execution states, as the JobManager sees them.
    ("ExecutionGraph",): {
        "exec.transition": (
            rf"{_TASK} \({_ATTEMPT}\) switched from {_OLD_NEW}(?: on (?:\S?unassigned resource\S?|{_AT}))?\.",
            rf"{_TASK} \({_OLD}\) switched from {_OLD_NEW}(?: on (?:\S?unassigned resource\S?|{_AT}|\S+))?\.",
        ),
        "exec.deploy": (
            rf"Deploying {_TASK} \(attempt #(?P<shown>\d+)\) with attempt id {_ATTEMPT} and vertex id {HEX}_\d+ to {_AT}"
            rf" with allocation id {_ALLOC}",
            rf"Deploying {_TASK} \(attempt #(?P<shown>\d+)\) with attempt id {_OLD}(?: and vertex id {HEX}_\d+)? to {_AT}"
            rf" with allocation id {_ALLOC}",
        ),
        "exec.ignored": (
            rf"Ignoring transition of vertex {_TASK} - execution #(?P<number>\d+) to (?P<new>{_STATE})"
            rf" while being (?P<old>{_STATE})\."
        ),
        "exec.discard": rf"Discarding the results produced by task execution {_ATTEMPT}\.",
        "job.transition": (
            rf"Job (?P<name>.*) \({_JOB}\) switched from state (?P<old>{_JOB_STATE}) to (?P<new>{_JOB_STATE})\."
        ),
        "graph.vertex": (
            rf"Connecting ExecutionJobVertex (?P<vertex>{HEX}) \((?P<task>.*)\) to (?P<inputs>\d+) predecessors\."
        ),
        "graph.edge": (
            rf"Connecting input (?P<input>\d+) of vertex (?P<vertex>{HEX}) \((?P<task>.*)\) to intermediate result referenced"
            rf" via (?:predecessor (?P<source>{HEX}) \(.*\)|ID (?P<dataset>{HEX}))\."
        ),
        "job.graph": rf"Created execution graph (?P<graph>{HEX}) for job {_JOB}\.",
    },
    # Execution states, as a TaskManager sees them.
    ("Task",): {
        # At DEBUG the exception of a cancelled task follows as a stack trace.
        "tm.transition": tuple(
            rf"{task} switched from {_OLD_NEW}"
            r"(?: with failure cause:(?: (?P<cause>.+))?| due to CancelTaskException:?)?\.?"
            for task in (_TASK_ATTEMPT, _OLD_TASK)
        ),
        "tm.failext": tuple(
            rf"Attempting to (?P<what>cancel|fail) task(?: externally)? {task}\." for task in (_TASK_ATTEMPT, _OLD_TASK)
        ),
    },
    _EXECUTOR: {
        "tm.submit": tuple(
            rf"Received task {task}, deploy into slot with allocation id {_ALLOC}\."
            for task in (_TASK_ATTEMPT, _OLD_TASK)
        ),
        "tm.final": tuple(
            rf"Un-registering task and sending final execution state (?P<new>{_STATE}) to JobManager for task {task}\."
            for task in (rf"{_TASK}#(?P<shown>\d+) {_ATTEMPT}", rf"{_TASK}(?:#(?P<shown>\d+))? {_OLD}")
        ),
        "slot.tm.request": (
            rf"Receive slot request {_ALLOC} for job {_JOB} from resource manager"
            rf" with leader id (?P<leader>{HEX})\."
        ),
        "slot.tm.offer": rf"Offer reserved slots to the leader of job {_JOB}\.",
        "tm.closejm": rf"Close JobManager connection for job {_JOB}\.",
        "tm.estjm": rf"Establish JobManager connection for job {_JOB}\.",
        "tm.closerm": rf"Close ResourceManager connection (?P<id>{HEX})\.",
        "tm.fatal": r"Fatal error occurred in TaskExecutor \S+\.",
    },
    ("TaskManagerRunner",): {
        "tm.fatal": r"Fatal error occurred while executing the TaskManager\. Shutting it down\.\.\.",
    },
    # Region failover.
    ("DefaultExecutionTopology",): {
        "region.built": (
            r"Built (?P<new>\d+) new pipelined regions in (?P<ms>\d+) ms, total (?P<total>\d+) pipelined regions currently\."
        ),
    },
    _MASTER: {
        "failover.strategy": rf"Using failover strategy (?P<strategy>\S+) for (?P<name>.*) \({_JOB}\)\.",
        "failover.restart": rf"(?P<count>\d+) tasks will be restarted to recover the failed task {_ATTEMPT}\.",
        "failover.archive": rf"Archive local failure causing attempt {_ATTEMPT} to fail: (?P<cause>.*)",
        # A global failure (a coordinator, a checkpoint limit), or the final failure of the job.
        "failover.global": r"Trying to recover from a global failure\.",
        "failover.global.restart": r"(?P<count>\d+) tasks will be restarted to recover from a global failure\.",
        "failover.global.archive": r"Archive global failure\.",
        "sched.strategy": r"Starting scheduling with scheduling strategy \[(?P<strategy>\S+)\]",
        "jm.disconnect": rf"Disconnect TaskExecutor {_TM} because: (?P<why>.*)",
    },
    ("AdaptiveScheduler",): {
        "sched.adaptive": (
            rf"Running initialization on master for job (?P<name>.*) \({_JOB}\)\.",
            rf"Job {_JOB} reached terminal state (?P<new>{_JOB_STATE})\.",
        ),
    },
    # Checkpoints, as the JobMaster's coordinator logs them.
    ("CheckpointCoordinator",): {
        "ckpt.trigger": rf"Triggering checkpoint {_CHECKPOINT} \(type=(?P<kind>\w+)\b.*\) @ \d+ for job {_JOB}\.",
        "ckpt.complete": rf"Completed checkpoint {_CHECKPOINT} for job {_JOB} \((?P<bytes>\d+) bytes\b.*\)\.",
        "ckpt.expired": rf"Checkpoint {_CHECKPOINT} of job {_JOB} expired before completing\.",
        "ckpt.declined": rf"Decline checkpoint {_CHECKPOINT} by task \S+ of job {_JOB} at .*\.",
        "ckpt.none": r"No checkpoint found during restore\.",
        "ckpt.restore": rf"Restoring job {_JOB} from (?P<kind>\D+) {_CHECKPOINT} @ \d+ for {HEX} located at (?P<path>.*)\.",
        "ckpt.savepoint": rf"Starting job {_JOB} from savepoint (?P<path>\S*).*",
    },
    ("CheckpointFailureManager",): {
        "ckpt.failed": (
            rf"Failed to trigger or complete checkpoint {_CHECKPOINT} for job {_JOB}\. \(\d+ consecutive .*\)"
        ),
    },
    ("StandaloneDispatcher", "MiniDispatcher", "Dispatcher"): {
        "job.terminal": rf"Job {_JOB} reached terminal state (?P<new>{_JOB_STATE})\.",
    },
    # Life of a result partition.
    ("ResultPartitionManager",): {
        "part.registered": rf"Registered (?P<kind>\w+) {_PARTITION} {_STORE}\.",
        "part.consumed": rf"Received consume notification from (?P<kind>\w+) {_PARTITION} {_STORE}\.",
        "part.request": rf"Requesting {_RANGE} of (?P<kind>\w+) {_PARTITION} {_STORE}\.",
        "part.released": (
            rf"Released partition (?P<dataset>{HEX})#(?P<pnum>\d+) produced by (?P<producer>{ATTEMPT_TEXT})\."
        ),
    },
    ("ResultPartition",): {
        "part.init": rf"Sort-merge partition {_PARTITION} initialized\.",
        "part.file": (
            r"New partitioned file produced: PartitionedFile\{numRegions=(?P<regions>\d+),"
            r" numSubpartitions=(?P<subparts>\d+), dataFilePath=(?>(?P<path>.*?), ).*\}\."
        ),
        "part.releasing": rf"{_TASK_ATTEMPT}: Releasing (?P<kind>\w+) {_PARTITION} {_STORE}\.",
    },
    ("PipelinedSubpartition",): {
        "part.subfinished": rf"{_TASK_ATTEMPT}: Finished {_SUBPARTITION}",
        "part.subreleased": rf"{_TASK_ATTEMPT}: Released {_SUBPARTITION}",
        "part.view": rf"{_TASK_ATTEMPT}: Creating read view for subpartition (?P<sub>\d+) of partition {_PARTITION}\.",
    },
    ("RemoteInputChannel",): {
        "part.reqremote": (
            rf"RemoteInputChannel \[.* at (?P<addr>\S++) \({_TM}\) \[-?\d+\]\]: Requesting REMOTE {_RANGE}"
            rf" of partition {_PARTITION}\..*"
        ),
    },
    ("LocalInputChannel",): {
        "part.reqlocal": rf"LocalInputChannel \[.*\]: Requesting LOCAL {_RANGE} of partition {_PARTITION}\..*",
    },
    ("TaskExecutorPartitionTrackerImpl",): {
        "part.tmrelease": (
            rf"Releasing Job Partitions \[(?P<partitions>(?:{PARTITION_TEXT}(?:, )?)*)\](?: for job {_JOB})?\.?"
        ),
    },
    ("SingleInputGateFactory",): {
        "gate.created": (
            rf"{_TASK_ATTEMPT}: Created (?P<channels>\d+) input channels \(local: (?P<local>\d+), remote: (?P<remote>\d+),"
            r" unknown: (?P<unknown>\d+)\)\."
        ),
    },
    ("SingleInputGate",): {
        "gate.released": rf"{_TASK_ATTEMPT}: Releasing SingleInputGate\{{.*gateIndex=(?P<gate>\d+)\}}\.",
        "gate.retrigger": (
            rf"{_TASK_ATTEMPT}: Retriggering partition request {_PARTITION}:(?:\[(?P<from>\d+), (?P<to>\d+)\]|(?P<sub>\d+))\."
        ),
    },
    # Network: requests and buffers. Credits are not logged.
    ("PartitionRequestServerHandler",): {
        "net.partreq": (
            rf"Read channel on (?P<addr>\S+): PartitionRequest\({_PARTITION}:(?:\[(?P<from>\d+), (?P<to>\d+)\]|(?P<sub>\d+))"
            r":(?P<credit>\d+)\)\."
        ),
    },
    ("NettyPartitionRequestClient",): {
        "net.partreq.client": rf"Requesting {_RANGE} of partition {_PARTITION} with (?P<delay>\d+) ms delay\.",
    },
    ("PartitionRequestClientFactory",): {
        "net.connfail": r"Failed(?: (?P<n>\d+) times?)? to connect to (?P<addr>\S+)\. (?P<what>Giving up|Retrying)\.",
    },
    ("LocalBufferPool",): {
        "buf.pool": r"Using a local buffer pool with (?P<min>\d+)-(?P<max>\d+) buffers",
    },
    # Slots: resource manager, TaskManager, JobMaster.
    _SLOT_MANAGER: {
        "slot.require": rf"Received resource requirements from job {_JOB}: \[(?P<reqs>.*)\]",
        "slot.clear": rf"Clearing resource requirements of job {_JOB}\.?",
        "slot.unfulfilled": rf"Could not fulfill resource requirements of job {_JOB}\..*",
        "slot.rm.alloc": (
            rf"Starting allocation of slot {_TM}_(?P<index>\d+) for job {_JOB}"
            rf" with resource profile {_PROFILE}\."
        ),
        "slot.rm.freeing": rf"Freeing slot {_TM}_(?P<index>\d+)\.",
        "rm.slotregister": (
            rf"(?P<what>Registering|Unregistering) task executor {_TM}(?: under (?P<inst>{HEX}) at| from)"
            r" the slot manager\."
        ),
    },
    ("DefaultSlotStatusSyncer", "DefaultSlotTracker", *_SLOT_MANAGER): {
        "slot.rm.alloc": (
            rf"Starting allocation of slot {_ALLOC} from {_TM} for job {_JOB}"
            rf" with resource profile {_PROFILE}\."
        ),
        "slot.rm.freeing": rf"Freeing slot {_ALLOC}(?P<report> by slot report)?\.",
    },
    ("FineGrainedTaskManagerTracker",): {
        "slot.rm.pending": rf"Add pending slot with allocationId {_ALLOC}\.",
        "slot.rm.complete": rf"Complete slot allocation with allocationId {_ALLOC}\.",
        "slot.rm.freed": rf"Free allocated slot with allocationId {_ALLOC}\.",
    },
    ("TaskSlotTableImpl",): {
        "slot.tm.alloc": rf"Allocated slot for {_ALLOC} with resources {_PROFILE}\.",
        "slot.tm.activate": rf"Activate slot {_ALLOC}\.",
        "slot.tm.free": (
            r"Free slot TaskSlot\(index:(?P<index>-?\d+), state:(?P<state>\w+), resource profile: .*,"
            rf" allocationId: {_ALLOC}, jobId: {_JOB}\)\."
        ),
    },
    ("DefaultDeclarativeSlotPool", "BlocklistDeclarativeSlotPool"): {
        # While the job restarts, offers are registered without a comparison with its requirements.
        "slot.jm.offers": (
            rf"Received (?P<offers>\[.*\]) slot offers from TaskExecutor {_AT}\.",
            rf"Register slots (?P<offers>\[.*\]) from TaskManager {_AT}\.",
        ),
        "slot.jm.match": rf"Matched slot offer {_ALLOC} to requirement {_PROFILE}\.",
        "slot.jm.freereserved": rf"Free reserved slot {_ALLOC}\.",
        "slot.jm.releasing": rf"Releasing slot \[{_ALLOC}\]\.",
    },
    ("DeclarativeSlotPoolBridge",): {
        "slot.jm.newreq": (
            rf"Request new allocated (?P<batch>batch )?slot with slot request id {_REQUEST}"
            rf" and resource profile {_PROFILE}"
        ),
        "slot.jm.reserve": rf"Reserve slot {_ALLOC} for slot request id {_REQUEST}",
        "slot.jm.release": rf"Release slot with slot request id {_REQUEST}\.?",
        "slot.jm.notenough": (
            r"Could not acquire the minimum required resources, failing slot requests\. Acquired: (?P<acq>.*)\."
            r" Current slot pool status: (?P<status>.*)"
        ),
    },
    ("SharedSlot",): {
        "slot.logical.request": rf"Request a {_LOGICAL}",
        "slot.logical.alloc": rf"Allocated {_LOGICAL}",
        "slot.logical.remove": rf"Remove {_LOGICAL}",
        "slot.shared.release": rf"Release shared slot (?P<ext>externally )?\({_REQUEST}\)",
    },
    # Registration, heartbeats, disconnects. The log of the ResourceManager has the name of the deployment's subclass.
    _MANAGER: {
        "rm.register": rf"Registering TaskManager with ResourceID {_TM} \((?P<addr>.*)\) at ResourceManager",
        "rm.close": rf"Closing TaskExecutor connection {_TM} because: (?P<why>.*)",
    },
    (*_MANAGER, *_MASTER, *_EXECUTOR): {
        "hb.unreachable": (
            r"(?:The )?(?P<what>TaskManager|JobManager|ResourceManager) with id (?P<id>\S+) is no longer reachable\."
        ),
        "hb.timeout": (
            r"(?:The heartbeat of|Heartbeat of) (?P<what>TaskManager|JobManager|ResourceManager) with id (?P<id>\S+)"
            r" timed out\."
        ),
        "hb.recv": r"Received heartbeat(?P<request> request)? from (?P<id>\S+)\.",
    },
    ("DefaultHeartbeatMonitor", "HeartbeatMonitorImpl"): {
        "hb.mark": (
            r"Mark heartbeat target (?P<id>\S+) as unreachable because (?P<n>\d+) consecutive heartbeat RPCs have failed\."
        ),
    },
    (*_MANAGER, *_MASTER): {
        "hb.trigger": r"Trigger heartbeat request\.",
    },
    # Loops of the DataSet API and of DataStream.iterate, both gone after 1.x.
    (
        "IterationHeadTask",
        "IterationIntermediateTask",
        "IterationTailTask",
        "IterationSynchronizationSinkTask",
        "AbstractIterativeTask",
    ): {
        "loop.step": (
            r"(?P<what>starting|finishing|waiting for other workers in|head received termination request in|"
            r"signaling that all workers are to terminate in|signaling that all workers are done in)"
            rf" iteration \[(?P<step>\d+)\]:  {_TASK}"
        ),
        "loop.worker": rf"sending (?P<event>\w+) to sync:  {_TASK}",
        "loop.final": rf"streaming out final result after \[(?P<step>\d+)\] iterations:  {_TASK}",
        "loop.end": (
            r"(?P<why>maximum number of iterations|convergence reached after|empty workset convergence reached after)"
            rf" \[(?P<step>\d+)\](?: iterations| reached), terminating\.\.\.:  {_TASK}"
        ),
    },
    ("StreamIterationHead",): {
        "loop.head": (
            rf"Iteration head {_TASK}#(?P<number>\d+) (?P<what>added|removed) feedback queue under (?P<broker>\S+)"
        ),
    },
    ("StreamIterationTail",): {
        "loop.tail": (
            rf"Iteration tail {_TASK}#(?P<number>\d+) (?P<what>trying to acquire|acquired) feedback queue"
            r" (?:under )?(?P<broker>\S+)"
        ),
    },
}

_NUMBER: Final = re.compile(r"\(\?P<(\w+)>(?:-\?)?\\d\+\)")
"""In a format: an argument that is a number."""
_FLAGS: Final = frozenset(("report", "batch", "request", "ext"))
_LONG: Final = frozenset(
    [
        "failover.archive",
        "jm.disconnect",
        "part.tmrelease",
        "rm.close",
        "slot.jm.notenough",
        "slot.jm.offers",
        "slot.require",
        "tm.transition",
    ]
)
"""Families whose messages contain lists or exception texts, and so have any length."""
LONGEST: Final = 1 << 16
"""Maximum length of a message of any other family, in characters."""
_OFFERED: Final = re.compile(rf"allocationId=({HEX})")


_TEXT_ARGUMENT, _NUMBER_ARGUMENT, _FLAG = range(3)


@dataclass(frozen=True, slots=True)
class MessageForm:
    """One family's message: `read` gives the arguments of a message of this format."""

    family: str
    pattern: re.Pattern[str]
    arguments: tuple[tuple[str, int, int], ...]
    """The name of each, the position of its group, and its kind. Texts are kept once: attempts have a dozen lines each."""

    def read(self, message: str) -> dict[str, Any] | None:
        """Arguments of the event, or None if `message` does not match."""
        if len(message) > LONGEST and self.family not in _LONG:
            return None
        found = self.pattern.fullmatch(message)
        if found is None:
            return None
        try:
            return self._arguments(found.groups())
        except ValueError:  # a number of thousands of digits, caused only by damage
            return None

    def _arguments(self, groups: Sequence[str | None]) -> dict[str, Any]:
        args: dict[str, Any] = {}
        for name, group, kind in self.arguments:
            text = groups[group]
            if kind == _FLAG:
                args[name] = text is not None
            elif text is not None:
                args[name] = intern(text) if kind == _TEXT_ARGUMENT else int(text)
        if "place" in args:
            # Names count subtasks from 1, identifiers from 0.
            place = args.pop("place")
            if args.setdefault("subtask", place - 1) != place - 1:
                args["conflict"] = (
                    f"the name is that of subtask {place}, the identifier that of subtask {args['subtask'] + 1}"
                )
        shown = args.pop("shown", None)
        if shown is not None and shown != args.setdefault("number", shown):
            args["conflict"] = f"the name is that of attempt {shown}, the identifier that of attempt {args['number']}"
        match self.family:
            case "part.tmrelease":
                args["partitions"] = [text for text in args["partitions"].split(", ") if text]
            case "slot.jm.offers":
                args["offers"] = _OFFERED.findall(args["offers"])
        return args


def _index() -> dict[str, tuple[MessageForm, ...]]:
    forms: dict[str, list[MessageForm]] = {}
    for loggers, families in _TABLE.items():
        for family, patterns in families.items():
            for pattern in (patterns,) if isinstance(patterns, str) else patterns:
                compiled, numbers = re.compile(pattern, re.ASCII), frozenset(_NUMBER.findall(pattern))
                arguments = tuple(
                    (name, at - 1, _FLAG if name in _FLAGS else _NUMBER_ARGUMENT if name in numbers else _TEXT_ARGUMENT)
                    for name, at in compiled.groupindex.items()
                )
                form = MessageForm(family, compiled, arguments)
                for logger in loggers:
                    forms.setdefault(logger, []).append(form)
    return {logger: tuple(found) for logger, found in forms.items()}


FORMS: Final[Mapping[str, tuple[MessageForm, ...]]] = _index()
"""Formats by the last part of a logger's name, in matching order."""

_LANDMARKS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "ExecutionGraph": (
        (") switched from state ", "job.transition"),
        (") switched from ", "exec.transition"),
        ("Created execution graph ", "job.graph"),
    ),
    "Task": ((") switched from ", "tm.transition"),),
    "JobMaster": ((" tasks will be restarted to recover", "failover.restart"),),
    "TaskExecutor": (("Received task ", "tm.submit"),),
    "ResultPartitionManager": (("Registered ", "part.registered"), ("Released partition ", "part.released")),
    "CheckpointCoordinator": (
        ("Triggering checkpoint ", "ckpt.trigger"),
        ("Completed checkpoint ", "ckpt.complete"),
        ("Decline checkpoint ", "ckpt.declined"),
        # What Flink wrote before 1.10 in the place of the failure, and before 1.11 of a restore.
        ("Discarding checkpoint ", "ckpt.failed"),
        (" from latest valid checkpoint: ", "ckpt.restore"),
        ("Restoring job ", "ckpt.restore"),
    ),
}


_WITHOUT_ATTEMPT: Final = re.compile(r"Received task .* \(\d+/\d+\)\.")
"""What Flink before 1.12 writes of a task, without its attempt."""


def resembles(logger: str, message: str) -> str | None:
    """The probable family of a message of unknown format: a truncated line, or a changed text."""
    if _WITHOUT_ATTEMPT.fullmatch(message):
        return None
    return next((family for mark, family in _LANDMARKS.get(logger, ()) if mark in message), None)
