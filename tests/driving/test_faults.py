"""Seeded faults: each is found within 200 scripts, with the message that tells what is wrong; what is right is not blamed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from driven_flow import FlowAdapter
from shares import share
from streamproof.driving.connection import of_class
from streamproof.driving.drive import Drive, DriveOptions, drive
from streamproof.driving.suite import MOST_STATES, suite_or_none
from streamproof.driving.testing import subject_of
from streamproof.selection import selected
from streamproof.user_code import import_file
from streamproof_runtime.variants.flow_variants import FLOWS

LEASE = Path(__file__).resolve().parents[2] / "examples" / "lease"
lease: Any = import_file(LEASE / "adapter.py")
MOST_SCRIPTS = 200


def changed(base: type, **methods: Any) -> type:
    """A subclass with other methods."""
    return type(f"Changed{base.__name__}", (base,), methods)


def service(leases: dict[str, Any] | None = None, storage: dict[str, Any] | None = None) -> type:
    """The lease service with a fault in one of its parts."""
    wrong_leases, wrong_storage = changed(lease.Leases, **(leases or {})), changed(lease.Storage, **(storage or {}))

    def reset(self: Any, parameters: Any, seed: int) -> None:
        self.leases, self.storage = wrong_leases(), wrong_storage(True)
        self.tokens: dict[int, int] = {}

    return changed(lease.LeaseAdapter, reset=reset)


def acquire(
    self: Any, client: int, *, check: bool = True, more: int = 1, keep: bool = False, other: bool = False
) -> int | None:
    """`Leases.acquire` with a fault."""
    if check and self.holder is not None:
        return None
    self.holder = 1 - client if other else client
    self.issued += more
    return self.issued - (1 if keep else 0)


def faulty_acquire(**fault: Any) -> dict[str, Any]:
    """The lease service's part with a fault in `acquire`."""
    return {"acquire": lambda self, client: acquire(self, client, **fault)}


def writes(test: Any, after: Any) -> dict[str, Any]:
    """The storage with another test and another effect of a write."""

    def write(self: Any, token: int) -> bool:
        if not test(self, token):
            return False
        self.stored, self.newest = after(self, token)
        return True

    return {"write": write}


def right(self: Any, token: int) -> bool:
    """What the storage accepts."""
    return token >= self.newest


def taken_back(self: Any) -> bool:
    """`Leases.expire` that takes the last token back."""
    ended, self.holder = self.holder is not None, None
    self.issued -= ended
    return bool(ended)


LEASE_FAULTS: dict[str, tuple[type, str]] = {
    "no fence": (lease.Unfenced, "is not possible in the model"),
    "the newest token is not kept": (service(storage=writes(right, lambda s, t: (t, s.newest))), "newest is 0"),
    "a write is lost": (service(storage=writes(right, lambda s, t: (s.stored, max(t, s.newest)))), "stored is 0"),
    "off by one: equal tokens are refused": (
        service(storage=writes(lambda s, t: t > s.newest, lambda s, t: (t, t))),
        "refuse(client=0, token=1) happened",
    ),
    "stale: one token behind is accepted": (
        service(storage=writes(lambda s, t: t >= s.newest - 1, lambda s, t: (t, max(t, s.newest)))),
        "write(client=0, token=1) happened",
    ),
    "swapped: an older write wins": (
        service(storage=writes(lambda s, t: True, lambda s, t: (min(t, s.stored or t), max(t, s.newest)))),
        "",
    ),
    "two leases at once": (service(faulty_acquire(check=False)), "grant(client=0) happened"),
    "tokens are not raised": (service(faulty_acquire(more=0)), "issued is 0"),
    "doubled: two tokens for one lease": (service(faulty_acquire(more=2)), "issued is 2"),
    "the lease of the other client": (service(faulty_acquire(other=True)), "holder is 1"),
    "a lease does not expire": (service({"expire": lambda self: self.holder is not None}), "holder is 0"),
    "an expired lease takes its token back": (service({"expire": taken_back}), "issued is 0"),
}


class DoubledCredit(FlowAdapter):
    """A credit that arrives counts twice."""

    def granted(self, name: str) -> Any:
        """Two of them."""
        return self.outputs.grant(name, 2)


class LostCredit(FlowAdapter):
    """A credit that arrives does not count."""

    def granted(self, name: str) -> Any:
        """None."""
        return []


class NewestBacklog(FlowAdapter):
    """Buffers of a channel arrive in the wrong order, with the backlog of the last one: the counters are the same."""

    def receive(self, c: int) -> None:
        """The last one first."""
        self.wire[str(c)].reverse()
        super().receive(c)


class KeptFloating(FlowAdapter):
    """A consumed floating buffer never returns to the pool."""

    def consume(self, c: int) -> None:
        """It becomes a credit."""
        floating, self.gate.floating[str(c)] = self.gate.floating[str(c)], 0
        super().consume(c)
        self.gate.floating[str(c)] = floating


class StaleBacklog(FlowAdapter):
    """The receiver keeps the first backlog."""

    def receive_backlog(self, c: int) -> None:
        """The message is read, and changes nothing."""
        before = self.gate.backlog[str(c)]
        super().receive_backlog(c)
        self.gate.backlog[str(c)] = before


FLOW_FAULTS: dict[str, tuple[type, str]] = {
    **{
        name: (changed(FlowAdapter, outputs_of=FLOWS[name].outputs, gate_of=FLOWS[name].gate), text)
        for name, text in (
            ("no-credit", "send(c="),
            ("credit-before-free", "unannounced_credit"),
            ("floating-leak", "is "),
            ("uncounted-lending", "pool is "),
            ("lost-announcement", "add_credit(c="),
        )
    },
    "doubled: a credit counts twice": (DoubledCredit, ""),
    "lost: a credit does not count": (LostCredit, "num_credits_available"),
    "a floating buffer is kept": (KeptFloating, ""),
}
NOT_OBSERVABLE: dict[str, type] = {
    "swapped: buffers arrive in another order": NewestBacklog,
    "stale: the receiver keeps an old backlog": StaleBacklog,
}
"""Faults whose effects are behaviours of the model, because requests of floating buffers are the receiver's own decision."""

SUBJECTS = {
    "lease": subject_of(selected(str(LEASE / "lease.py"))),
    "flow": subject_of(
        selected("credit", "runtime", parameters={"channels": 2, "exclusive": 2, "floating": 2, "depth": 4})
    ),
}


def driven(model: str, adapter: type, walks: int = MOST_SCRIPTS) -> Drive:
    """A drive of at most 200 scripts."""
    subject = SUBJECTS[model]
    scripts = suite_or_none(subject, MOST_STATES) if model == "lease" else []
    options = DriveOptions(walks=walks - len(scripts), steps=40, seed=1)
    return drive(subject, of_class(adapter), scripts, options)


@pytest.mark.parametrize("name", share(list(LEASE_FAULTS), 4))
def test_faults_of_the_lease_service(name: str) -> None:
    """Each is found, and says what is wrong."""
    adapter, text = LEASE_FAULTS[name]
    found = driven("lease", adapter)
    assert found.difference is not None
    assert text in found.shortest.message
    assert len(found.shortest.script.calls) <= 6


@pytest.mark.parametrize("name", share(list(FLOW_FAULTS), 4))
def test_faults_of_the_runtimes_flow_control(name: str) -> None:
    """Each is found, and says what is wrong."""
    adapter, text = FLOW_FAULTS[name]
    found = driven("flow", adapter)
    assert found.difference is not None
    assert text in found.shortest.message


def test_the_runtimes_flow_control_is_right() -> None:
    """The reference runtime's own classes have no difference."""
    found = driven("flow", FlowAdapter, walks=15)
    assert (found.answer, found.doubts) == ("no difference", ())


@pytest.mark.parametrize("name", NOT_OBSERVABLE)
def test_what_cannot_be_seen_is_not_found(name: str) -> None:
    """These faults lead to behaviours that the model has."""
    assert driven("flow", NOT_OBSERVABLE[name], walks=10).difference is None


if __name__ == "__main__":
    for model, faults in (("lease", LEASE_FAULTS), ("flow", FLOW_FAULTS)):
        for name, (adapter, _) in faults.items():
            result = driven(model, adapter)
            calls = len(result.shortest.script.calls) if result.shortest else 0
            text = result.shortest.message if result.shortest else "not found"
            print(f"| {name} | {result.coverage.scripts} | {calls} | {text} |")
