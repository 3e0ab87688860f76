"""A second judge of the slots in the runtime's logs: dictionaries and sorted times, without a machine.

It orders events by a time of its own (one more than what is received, and than the event before), and replays each process:
what it may do follows from its own slots and the message alone.
Kept beside the sabotage of rules: many messages and losses of the machine are hidden; no walk shows half of its guards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]


class Refused(Exception):
    """An event that no run has."""


def refuse(condition: Any, why: str) -> None:
    """Raises `Refused` if the condition holds."""
    if condition:
        raise Refused(why)


SENT = {
    "requirements_received": {"slots_declared"},
    "executor_registered": {"registered"},
    "report_received": {"slots_reported"},
    "slot_requested": {"allocation_started"},
    "request_answered": {"slot_requested"},
    "slot_available": {"offer_answered", "slot_returned", "list_received", "slot_timed_out"},
    "offer_received": {"slot_offered"},
    "offer_answered": {"offer_received"},
    "answer_discarded": {"offer_received"},
    "slot_returned": {"slot_released"},
    "list_received": {"slots_listed"},
    "slot_failed": {"offer_answered", "list_received"},
    "tasks_deployed": {"slots_reserved"},
}
KNOWN = {
    *SENT,
    *(name for names in SENT.values() for name in names),
    *("requirements_cleared", "executor_lost", "slots_unreserved", "slots_lost", "jobmaster_lost", "tasks_ended"),
}
MAY_BE_LOST = {"slot_available", "slot_returned", "requirements_received", "tasks_deployed"}


def name_of(process: str) -> str:
    """Without the number of those before it."""
    return process.split("@")[0]


class SlotJudge:
    """All events of the slots of one job."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.own: dict[str, list[Record]] = {}
        for record in sorted(records, key=lambda r: r["seq"]):
            self.own.setdefault(record["process"], []).append(record)
        for process, own in self.own.items():
            refuse([r["seq"] for r in own] != list(range(len(own))), f"numbers of {process}")
            refuse(any(r["event"] not in KNOWN for r in own), "unknown event")
        self.place: dict[str, str] = {}
        self.totals = {r["args"]["total"] for own in self.own.values() for r in own if r["event"] == "registered"}
        self.got: set[tuple[Any, ...]] = set()
        for own in self.own.values():
            for record in own:
                self.matched(record)

    def args(self, record: Record) -> dict[str, Any]:
        """The arguments."""
        found: dict[str, Any] = record.get("args", {})
        return found

    def sender(self, record: Record) -> Record:
        """The event that a receipt names."""
        args = self.args(record)
        refuse(
            type(args["sent"]) is not int or not 0 <= args["sent"] < len(self.own.get(args["from"], ())), "nothing sent"
        )
        found: Record = self.own[args["from"]][args["sent"]]
        return found

    def freed(self, record: Record) -> set[str]:
        """The slots that an event removes from a table."""
        earlier = self.own[record["process"]][: record["seq"]]
        return {*(slots_of(earlier[-1]) if earlier else ())} - {*slots_of(record)}

    def matched(self, record: Record) -> None:
        """A receipt is of what was sent, to this process, and the first one."""
        if record["event"] not in SENT:
            return
        args, process, event = self.args(record), record["process"], record["event"]
        source = self.sender(record)
        sent = self.args(source)
        refuse(source["event"] not in SENT[event], "another kind of message")
        if event == "slot_available":
            refuse(args["slot"] not in self.freed(source), "it was not freed")
        elif event == "slot_failed":
            refuse(args["slot"] not in sent["failed"], "another slot")
        else:
            same = {*args} & {*sent} - {
                *("from", "sent", "accepted", "done", "slots", "executor", "stopped", "failed", "subtasks")
            }
            refuse(any(args[n] != sent[n] for n in same), "other contents")
        if event in ("executor_registered", "report_received"):
            refuse(args["executor"] != source["process"] or args["slots"] != sent["slots"], "another report")
        if event == "slot_requested":
            refuse(sent["executor"] != process, "of another TaskExecutor")
        if event == "list_received":
            refuse(sent["executor"] != name_of(process) or args["slots"] != sent["slots"], "another list")
        if event in ("offer_answered", "answer_discarded"):
            refuse(sent["from"] != process or args["accepted"] != sent["accepted"], "another answer")
        if event == "request_answered":
            refuse(args["done"] != sent["done"], "another answer")
        key: tuple[Any, ...] = (event, source["process"], source["seq"], None if "slots" in args else args.get("slot"))
        if event == "tasks_deployed":
            key = (*key, process)
        refuse(key in self.got, "received twice")
        self.got.add(key)

    def ordered(self) -> list[Record]:
        """By a time that rises from cause to effect."""
        times: dict[tuple[str, int], int] = {}
        left = {process: list(own) for process, own in self.own.items()}
        while any(left.values()):
            moved = False
            for process, own in left.items():
                before = [p for p in left if name_of(p) == name_of(process) and turn(p) < turn(process)]
                if not own or any(left[p] for p in before):
                    continue
                record = own[0]
                causes = (
                    [(process, record["seq"] - 1)] if record["seq"] else [(p, len(self.own[p]) - 1) for p in before]
                )
                if record["event"] in SENT:
                    causes.append((record["args"]["from"], record["args"]["sent"]))
                if all(cause in times for cause in causes):
                    times[process, record["seq"]] = 1 + max((times[c] for c in causes), default=0)
                    own.pop(0)
                    moved = True
            refuse(not moved, "received before it was sent")
        everything = [r for own in self.own.values() for r in own]
        return sorted(everything, key=lambda r: times[r["process"], r["seq"]])

    def connections(self) -> None:
        """Between two processes the order is kept, and nothing is skipped unless the sender lost the connection."""
        for process, own in self.own.items():
            last: dict[str, int] = {}
            for record in own:
                if record["event"] not in SENT:
                    continue
                source = self.sender(record)
                begin = last.get(source["process"], -1)
                refuse(source["seq"] < begin, "out of order")
                last[source["process"]] = max(begin, source["seq"])
                if record["event"] == "tasks_deployed":
                    continue
                passed = self.own[source["process"]][begin + 1 : source["seq"] + 1]
                for at, earlier in enumerate(passed[:-1]):
                    if not any(self.resets(r, name_of(process)) for r in passed[at + 1 :]):
                        for key in self.sends(earlier, name_of(process)):
                            refuse(not self.got & key, "a message was skipped")

    def resets(self, record: Record, peer: str) -> bool:
        """Whether a process makes a new connection to a peer, or has lost the old one."""
        event = record["event"]
        if event in ("slots_lost", "executor_lost"):
            return name_of(self.args(record)["executor"]) == peer
        return (event == "jobmaster_lost" and peer == "pool") or (event == "registered" and peer == "rm")

    def sends(self, record: Record, peer: str) -> Iterable[set[tuple[Any, ...]]]:
        """The receipts of what an event sends to a peer: one of each set."""
        args, event = self.args(record), record["event"]
        here = record["process"], record["seq"]
        slot = args.get("slot")
        to = {
            "offer_received": name_of(args.get("from", "")),
            "slots_listed": args.get("executor"),
            "allocation_started": name_of(args.get("executor", "")),
            "slot_requested": "rm",
            "registered": "rm",
            "slots_reported": "rm",
            "slot_offered": "pool",
            "offer_answered": "pool",
            "list_received": "pool",
        }
        if to.get(event) != peer:
            return
        if event in ("offer_answered", "list_received"):
            for failed in args["failed"]:
                yield {("slot_failed", *here, failed)}
        else:
            receipts = [receipt for receipt, senders in SENT.items() if event in senders and receipt not in MAY_BE_LOST]
            lists = event in ("registered", "slots_reported", "slots_listed")
            yield {(receipt, *here, None if lists else slot) for receipt in receipts}


def turn(process: str) -> int:
    """How many were before it."""
    return int(process.partition("@")[2] or 0)


def slots_of(record: Record) -> dict[str, str]:
    """The slots in the state of an event."""
    found: dict[str, str] = record["state"]["slots"]
    return found


class Replay:
    """The slots of every process."""

    def __init__(self, judge: SlotJudge) -> None:
        self.judge = judge
        self.slots: dict[str, dict[str, str]] = {process: {} for process in judge.own}
        self.required = dict.fromkeys(judge.own, 0)
        self.busy: dict[str, set[str]] = {process: set() for process in judge.own}
        self.begun: dict[str, str] = {}
        self.groups: dict[str, dict[str, int]] = {}
        self.pairs: list[list[str]] = []
        self.masters: set[str] = set()
        self.members: dict[str, list[str]] = {}
        """The subtasks of each operator."""
        self.residents: list[tuple[str, str, int, str]] = []
        """Slot, operator, number and group of each subtask in a slot."""
        self.last_offer: dict[tuple[str, str], int] = {}
        self.total = max((t for t in judge.totals if type(t) is int), default=1)

    def read(self, record: Record) -> None:
        """Raises `Refused`."""
        process, args = record["process"], self.judge.args(record)
        named = [args["slot"]] if "slot" in args else []
        named += [s for n in ("slots", "failed", "freed", "stopped") for s in args.get(n, ())]
        if record["event"] != "allocation_started":
            refuse(any(s not in self.begun for s in named), "a slot that was never requested")
        if name_of(process) not in ("pool", "rm"):
            refuse(any(self.begun[s] != process for s in named), "a slot of another TaskExecutor")
        for n in ("slots", "failed", "freed", "stopped"):
            refuse(n in args and len({*args[n]}) < len(args[n]), "twice in a list")
        getattr(self, record["event"])(record, process, args, self.slots[process])
        refuse(self.slots[process] != slots_of(record), f"other slots: {self.slots[process]}")
        if name_of(process) in ("pool", "rm"):
            refuse(self.required[process] != record["state"]["required"], "another requirement")

    # --- the JobMaster

    def slots_declared(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """Not fewer than are reserved."""
        number = args["required"]
        refuse(type(number) is not int or number < 0, "no number")
        refuse(number < sum(x == "RESERVED" for x in own.values()) and number < self.required[process], "too few")
        first = process not in self.masters
        self.masters.add(process)
        self.required[process] = number
        if not self.members:
            self.groups, self.pairs = args["groups"], args["co_located"]
            refuse(any(type(pair) is not list or len(pair) != 2 for pair in self.pairs), "no pair")
            for mine in self.groups.values():
                for operator, count in mine.items():
                    refuse(type(count) is not int or count < 1 or operator in self.members, "no parallelism")
                    self.members[operator] = [operator] if count == 1 else [f"{operator}{n}" for n in range(count)]
            names = [task for tasks in self.members.values() for task in tasks]
            refuse(len({*names}) < len(names), "two subtasks of one name")
            refuse(any(len(self.members[a]) != len(self.members[b]) for a, b in self.pairs), "co-located")
        refuse((args["groups"], args["co_located"]) != (self.groups, self.pairs), "other groups")
        if len(self.groups) > 1:
            need = sum(max(mine.values(), default=0) for mine in self.groups.values())
            refuse(number > need or (first and number < need), "not what the groups need")

    def offer_received(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """Accepted if known or required."""
        accepted = args["slot"] in own or self.required[process] > len(own)
        refuse(args["accepted"] is not accepted, "another answer")
        if accepted:
            own.setdefault(args["slot"], "FREE")

    def slots_reserved(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """Free ones, and perhaps others, for subtasks."""
        for slot in args["slots"]:
            refuse(own.get(slot) != "FREE", "not free")
            own[slot] = "RESERVED"
        self.moved_in(args["subtasks"], args["slots"], own)
        refuse(sum(x == "RESERVED" for x in own.values()) > self.required[process], "more than required")

    def moved_in(self, tasks: Any, fresh: list[str], own: dict[str, str]) -> None:
        """All subtasks of some operators: in a slot one group, no operator twice, and co-located ones in the same slots."""
        refuse(not {*fresh} <= {*tasks} or any(own.get(slot) != "RESERVED" for slot in tasks), "not in these slots")
        owner = {task: operator for operator, names in self.members.items() for task in names}
        groups = {operator: group for group, mine in self.groups.items() for operator in mine}
        where: dict[str, str] = {}
        for slot, names in tasks.items():
            refuse(type(names) is not list or not names, "an empty slot")
            for task in names:
                refuse(task not in owner or task in where, "no subtask, or in two slots")
                where[task] = slot
        came = {owner[task] for task in where}
        refuse(any(task not in where for operator in came for task in self.members[operator]), "a part of an operator")
        self.residents = [r for r in self.residents if r[0] not in fresh and r[1] not in came]
        for task, slot in where.items():
            self.residents.append((slot, owner[task], self.members[owner[task]].index(task), groups[owner[task]]))
        for slot in tasks:
            here = [r for r in self.residents if r[0] == slot]
            refuse(len({r[3] for r in here}) > 1, "two groups in one slot")
            refuse(len({r[1] for r in here}) < len(here), "two subtasks of one operator in one slot")
        for one, other in self.pairs:
            both = [[where.get(task) for task in self.members[operator]] for operator in (one, other)]
            refuse(one in came and both[0] != both[1], "not beside the other")

    def slots_unreserved(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """Reserved ones."""
        for slot in args["slots"]:
            refuse(own.get(slot) != "RESERVED", "not reserved")
            own[slot] = "FREE"

    def slot_released(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """A free one, if there are too many."""
        refuse(own.get(args["slot"]) != "FREE" or len(own) <= self.required[process], "not idle")
        del own[args["slot"]]

    def slots_lost(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """Of one TaskExecutor."""
        for slot in [s for s in own if name_of(self.begun[s]) == args["executor"]]:
            del own[slot]

    def slots_listed(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """All of one TaskExecutor."""
        refuse({*args["slots"]} != {s for s in own if name_of(self.begun[s]) == args["executor"]}, "another list")

    def slot_failed(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """It is gone."""
        own.pop(args["slot"], None)

    # --- the ResourceManager

    def requirements_received(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """As declared."""
        self.required[process] = args["required"]

    def requirements_cleared(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """No JobMaster."""
        self.required[process] = 0

    def allocation_started(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """A new one, of a TaskExecutor with a free slot."""
        slot, executor = args["slot"], args["executor"]
        refuse(slot in self.begun or not isinstance(slot, str), "not new")
        refuse(self.required[process] <= len(own), "not required")
        refuse(sum(self.begun[s] == executor for s in own) >= self.total, "none is free")
        self.begun[slot] = executor
        own[slot] = "PENDING"

    def request_answered(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """Unless a report came first."""
        if own.get(args["slot"]) == "PENDING":
            own[args["slot"]] = "ALLOCATED"
            if not args["done"]:
                del own[args["slot"]]

    def slot_available(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """Free."""
        own.pop(args["slot"], None)

    def report_received(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """Adopts, completes and frees."""
        executor = args["executor"]
        for slot in args["slots"]:
            refuse(self.begun[slot] != executor, "of another TaskExecutor")
            own[slot] = "ALLOCATED"
        for slot in [s for s in own if self.begun[s] == executor and own[s] == "ALLOCATED" and s not in args["slots"]]:
            del own[slot]

    executor_registered = report_received

    def executor_lost(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """All its slots."""
        for slot in [s for s in own if self.begun[s] == args["executor"]]:
            del own[slot]

    # --- the TaskExecutors

    def registered(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """With all slots."""
        refuse(args.get("total", self.total) != self.total, "another total")
        refuse({*args["slots"]} != {*own}, "another report")

    slots_reported = registered

    def slot_requested(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """If one is free."""
        done = len(own) < self.total
        refuse(args["done"] is not done, "another answer")
        if done:
            own[args["slot"]] = "ALLOCATED"

    def slot_offered(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """What is not ACTIVE."""
        refuse(own.get(args["slot"]) != "ALLOCATED", "not allocated")
        self.last_offer[process, args["slot"]] = record["seq"]

    def is_last(self, record: Record) -> bool:
        """Whether the answer is to the last offer."""
        answered = self.judge.args(self.judge.sender(record))
        return bool(self.last_offer.get((record["process"], record["args"]["slot"])) == answered["sent"])

    def offer_answered(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """Active, free or failed."""
        refuse(not self.is_last(record), "an earlier offer")
        gone = args["slot"] not in own
        refuse(args["failed"] != ([args["slot"]] if args["accepted"] and gone else []), "another failure")
        if not args["accepted"]:
            own.pop(args["slot"], None)
        elif not gone:
            own[args["slot"]] = "ACTIVE"

    def answer_discarded(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """Of an earlier offer."""
        refuse(self.is_last(record), "the last offer")

    def free(self, process: str, args: Any, own: dict[str, str], freed: Iterable[str]) -> None:
        """Slots are freed, those with tasks by stopping them."""
        freed = [*freed]
        refuse({*args["stopped"]} - {*freed}, "tasks of other slots")
        refuse("freed" in args and {*args["freed"]} != {*freed}, "others are freed")
        for slot in freed:
            refuse((slot in self.busy[process]) is not (slot in args["stopped"]), "its tasks")
            self.busy[process].discard(slot)
            del own[slot]

    def slot_returned(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """It is free."""
        self.free(process, args, own, [s for s in [args["slot"]] if s in own])

    def list_received(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """ACTIVE ones that are not in it are free."""
        refuse(args["failed"] != [s for s in args["slots"] if s not in own], "other failures")
        freed = [s for s, x in own.items() if x == "ACTIVE" and s not in args["slots"]]
        self.free(process, args, own, freed)

    def slot_timed_out(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """Only what is ALLOCATED."""
        refuse(own.get(args["slot"]) != "ALLOCATED", "not allocated")
        self.free(process, args, own, [args["slot"]])

    def jobmaster_lost(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """ACTIVE ones wait again."""
        for slot in args["slots"]:
            refuse(own.get(slot) != "ACTIVE" or slot in self.busy[process], "not active, or with tasks")
            own[slot] = "ALLOCATED"

    def tasks_deployed(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """Into ACTIVE ones, what was reserved there."""
        reserved = self.judge.args(self.judge.sender(record))["subtasks"]
        here = {slot: tasks for slot, tasks in reserved.items() if self.begun.get(slot) == process}
        refuse(args["subtasks"] != here or [*args["subtasks"]] != args["slots"], "not what was reserved")
        for slot in args["slots"]:
            refuse(own.get(slot) != "ACTIVE", "not active")
            self.busy[process].add(slot)

    def tasks_ended(self, record: Record, process: str, args: Any, own: dict[str, str]) -> None:
        """Of slots with tasks."""
        for slot in args["slots"]:
            refuse(slot not in self.busy[process], "no tasks")
            self.busy[process].discard(slot)


def accepts(records: Sequence[Record]) -> bool:
    """Whether the events of the slots of one job are a run."""
    try:
        judge = SlotJudge(records)
        events = judge.ordered()
        judge.connections()
        replay = Replay(judge)
        for record in events:
            replay.read(record)
    except (Refused, KeyError, TypeError, AttributeError, ValueError):
        return False
    return True
