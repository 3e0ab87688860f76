"""A lease service: one client at a time may write to a storage, until its lease expires.

``python service.py run.jsonl`` runs it with three clients in threads; the first one pauses for longer than its lease in
each round, and then writes. The storage refuses tokens older than the newest it has seen; with ``--unfenced`` it does not.
"""

from __future__ import annotations

import argparse
import time
from threading import Barrier, Condition, Event, Thread
from typing import Any

from spans import Tracer

LEASE = 0.01  # seconds
Context = tuple[str, str]


class Leases:
    """Grants the lease to one client at a time, with a token that rises by one each time."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer, self.turn = tracer, Condition()
        self.issued, self.until = 0, None

    def acquire(self, client: int, parent: Context) -> int:
        """Waits for the lease, and takes it. The client's token."""
        with self.tracer.span("grant", parent, client=client) as span, self.turn:
            while self.until is not None:
                left = self.until - time.monotonic()
                if left > 0:
                    self.turn.wait(left)
                else:
                    with self.tracer.span("expire"):
                        self.until = None
            self.issued += 1
            self.until = time.monotonic() + LEASE
            span.values["token"] = self.issued
            return self.issued


class Storage:
    """One value, with the token that it was written under."""

    def __init__(self, tracer: Tracer, fenced: bool) -> None:
        self.tracer, self.fenced, self.turn = tracer, fenced, Condition()
        self.newest = self.stored = 0

    def write(self, client: int, token: int, parent: Context) -> bool:
        """Whether the write was accepted."""
        with self.tracer.span("write", parent, client=client, token=token) as span, self.turn:
            accepted = token >= self.newest or not self.fenced
            if accepted:
                self.stored, self.newest = token, max(token, self.newest)
            span.values["outcome"] = "stored" if accepted else "refused"
            span.values["streamproof.state"] = f'{{"stored": {self.stored}}}'
            return accepted


def work(client: int, tracer: Tracer, leases: Leases, storage: Storage, pause: Any) -> None:
    """One round of a client: get the lease, perhaps pause, write."""
    with tracer.span("acquire") as span:
        token = leases.acquire(client, span.context)
    pause(token)
    with tracer.span("store") as span:
        storage.write(client, token, span.context)


def main() -> None:
    """Runs the service, and writes its spans."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("file")
    words.add_argument("--unfenced", action="store_true")
    words.add_argument("--rounds", type=int, default=3)
    given = words.parse_args()
    with open(given.file, "w", encoding="utf-8") as file:
        leases = Leases(Tracer("leases", file))
        storage = Storage(Tracer("storage", file), not given.unfenced)
        clients = 3
        tracers = [Tracer(f"client-{client}", file) for client in range(clients)]
        for _ in range(given.rounds):
            held, others, start = Event(), Barrier(clients), Barrier(clients)

            def paused(token: int, held: Event = held, others: Barrier = others) -> None:
                held.set()
                others.wait()  # until the others have written: longer than the lease

            def first(begun: Barrier = start, pause: Any = paused) -> None:
                begun.wait()
                work(0, tracers[0], leases, storage, pause)

            def later(client: int, begun: Barrier = start, held: Event = held, others: Barrier = others) -> None:
                begun.wait()
                held.wait()
                work(client, tracers[client], leases, storage, lambda token: None)
                others.wait()

            threads = [Thread(target=first), *(Thread(target=later, args=(c,)) for c in range(1, clients))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    print(f"the storage has the value of token {storage.stored}, the newest it has seen is {storage.newest}")


if __name__ == "__main__":
    main()
