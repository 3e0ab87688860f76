"""An adapter: drives a lease service through the actions of its model.

``streamproof drive lease.py --adapter adapter.py:LeaseAdapter`` runs it in its own process, ``--adapter "python adapter.py"``
as a program of its own. `Unfenced` is a service whose storage does not look at tokens.
"""

from __future__ import annotations

from typing import Any

from streamproof.driving import Adapter, Happened, Refused, Unsupported, serve


class Leases:
    """One lease at a time; each has a token, one larger than the last."""

    def __init__(self) -> None:
        self.holder: int | None = None
        self.issued = 0

    def acquire(self, client: int) -> int | None:
        """The token of the client's lease; None if another lease is valid."""
        if self.holder is not None:
            return None
        self.holder = client
        self.issued += 1
        return self.issued

    def expire(self) -> bool:
        """Ends the lease; False if there is none."""
        ended, self.holder = self.holder is not None, None
        return ended


class Storage:
    """One value, and the newest token that it has seen."""

    def __init__(self, fenced: bool) -> None:
        self.fenced, self.newest, self.stored = fenced, 0, 0

    def write(self, token: int) -> bool:
        """Whether the write was accepted."""
        if self.fenced and token < self.newest:
            return False
        self.stored, self.newest = token, max(token, self.newest)
        return True


class LeaseAdapter(Adapter):
    """The service, with the tokens that its clients hold."""

    fenced = True

    def reset(self, parameters: dict[str, Any], seed: int) -> None:
        """A new service."""
        self.leases, self.storage = Leases(), Storage(self.fenced)
        self.tokens: dict[int, int] = {}

    def grant(self, client: int) -> None:
        """The client asks for the lease."""
        token = self.leases.acquire(client)
        if token is None:
            raise Refused("another client has the lease")
        self.tokens[client] = token

    def expire(self) -> None:
        """The time of the lease is over."""
        if not self.leases.expire():
            raise Refused("there is no lease")

    def write(self, client: int, token: int) -> Happened:
        """The client writes; what the storage does with it is its answer."""
        if self.tokens.get(client) != token:
            raise Unsupported("a client has no other token than its own")
        return Happened("write" if self.storage.write(token) else "refuse", {"client": client, "token": token})

    refuse = write

    def observe(self, of: list[str] | None) -> dict[str, Any]:
        """What the lease service and the storage know."""
        return {
            "holder": self.leases.holder,
            "issued": self.leases.issued,
            "stored": self.storage.stored,
            "newest": self.storage.newest,
        }


class Unfenced(LeaseAdapter):
    """The storage does not look at tokens."""

    fenced = False


if __name__ == "__main__":
    serve(LeaseAdapter)
