"""Connections between the processes of a job: TCP on the loopback address, open to those who know the job's secret.

Each side proves that it knows the secret by a keyed hash of two fresh random numbers, so that neither a stranger that
connects nor one that has taken a port learns it. Nothing of a peer is read as a message before that. Proofs are made and
checked in a thread of their own, so that a user function that takes long does not keep a peer waiting.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import cache
from typing import Any

from streamproof_runtime.processes.wire import Frames, frame

HOST = "127.0.0.1"
SECRET = NONCE = PROOF = 32
"""Sizes in bytes."""
PULSE = "pulse"
"""What a TaskExecutor sends by a connection of its own while user functions keep its other ones waiting. It begins with
``[PULSE, name, incarnation]``."""
PATIENCE = 10.0
"""Seconds for the proof of a peer that connects."""
PAUSE = 0.1
"""Seconds until another attempt to accept a connection."""
_CHUNK = 1 << 16


class Refused(ConnectionError):
    """A peer that does not know the secret, or does not prove it in time."""


def proof(secret: bytes, side: bytes, server: bytes, client: bytes) -> bytes:
    """What a side sends to prove that it knows the secret."""
    return hmac.digest(secret, side + server + client, "sha256")


def listening() -> socket.socket:
    """A socket that listens on a free port of the loopback address. Raises `OSError`."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        made.bind((HOST, 0))
        made.listen(128)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


def _nothing() -> None:
    pass


class Link:
    """A connection to a peer that has proved itself; messages of one turn of the event loop leave together."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._frames = Frames()
        self._leaving: list[bytes] = []
        self.before: Callable[[], None] = _nothing
        """Called before anything leaves."""
        found: socket.socket = writer.get_extra_info("socket")
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> None:
        """Sends frames; without effect on a connection that is lost."""
        if not self._leaving:
            asyncio.get_running_loop().call_soon(self.flush)
        self._leaving.append(data)

    def flush(self) -> None:
        """Hands all that was sent to the operating system."""
        data, self._leaving = b"".join(self._leaving), []
        if data and not self._writer.is_closing():
            self.before()
            self._writer.write(data)

    async def first(self) -> Any:
        """The first value of a connection; raises `ConnectionError` if there is none, `ValueError` for other bytes."""
        while data := await self._reader.read(_CHUNK):
            for value in self._frames.feed(data):
                return value
        raise ConnectionResetError("closed")

    @property
    def unsent(self) -> int:
        """Bytes that the operating system has not taken."""
        return self._writer.transport.get_write_buffer_size()

    async def each(self, handle: Callable[[Any], None], ready: Callable[[], Awaitable[None]] | None = None) -> None:
        """Calls a function with each value, until the connection is lost or sends something that is no value. `ready` is
        awaited before each value."""
        data = b""
        while True:
            try:
                values = list(self._frames.feed(data))
            except ValueError:
                return
            for value in values:
                if ready is not None:
                    await ready()
                handle(value)
            try:
                data = await self._reader.read(_CHUNK)
            except OSError:
                return
            if not data:
                return

    def close(self) -> None:
        """Closes the connection."""
        self.flush()
        self._writer.close()


@cache
def _doorkeeper() -> asyncio.AbstractEventLoop:
    """An event loop in a thread of its own, in which both ends prove themselves: no user function keeps it waiting."""
    made = asyncio.new_event_loop()
    threading.Thread(target=made.run_forever, name="doorkeeper", daemon=True).start()
    return made


async def _beside(work: Coroutine[Any, Any, socket.socket]) -> socket.socket:
    """The result of work in the doorkeeper's loop."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _doorkeeper()))


async def _exactly(found: socket.socket, number: int) -> bytes:
    """The next bytes of a peer, which sends no more before it has an answer. Raises `Refused` where they end."""
    loop, data = asyncio.get_running_loop(), b""
    while len(data) < number:
        more = await loop.sock_recv(found, number - len(data))
        if not more:
            raise Refused("the process at the other end closed the connection")
        data += more
    return data


async def _linked(found: socket.socket) -> Link:
    return Link(*await asyncio.open_connection(sock=found))


async def connect(port: int, secret: bytes, hello: Any) -> Link:
    """Connects to a process of the job, and sends a first value. Raises `OSError`, also for one without the secret."""
    return await _linked(await _beside(_opened(port, secret, frame(hello))))


async def _opened(port: int, secret: bytes, hello: bytes) -> socket.socket:
    """A connection to a process that knows the secret, and has the first value."""
    loop = asyncio.get_running_loop()
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    made.setblocking(False)
    try:
        async with asyncio.timeout(PATIENCE):
            await loop.sock_connect(made, (HOST, port))
            own = os.urandom(NONCE)
            other = await _exactly(made, NONCE)
            await loop.sock_sendall(made, own + proof(secret, b"client", other, own))
            if not hmac.compare_digest(await _exactly(made, PROOF), proof(secret, b"server", other, own)):
                raise Refused("the process at the other end does not know the secret of the job")
            await loop.sock_sendall(made, hello)
    except BaseException:
        made.close()
        raise
    return made


def send_pulses(port: int, secret: bytes, name: str, incarnation: int, every: float) -> None:
    """Tells a process of the job, every so many seconds, that this one is there: in a thread beside user functions."""
    hello = frame([PULSE, name, incarnation])
    asyncio.run_coroutine_threadsafe(_pulses(port, secret, hello, every), _doorkeeper())


async def _pulses(port: int, secret: bytes, hello: bytes, every: float) -> None:
    while True:
        with suppress(OSError):
            made = await _opened(port, secret, hello)
            with made:
                while True:
                    await asyncio.get_running_loop().sock_sendall(made, frame([PULSE]))
                    await asyncio.sleep(every)
        await asyncio.sleep(every)


async def _proved(found: socket.socket, secret: bytes) -> bool:
    """Whether a peer that has connected knows the secret. Raises `OSError`."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(PATIENCE):
        own = os.urandom(NONCE)
        await loop.sock_sendall(found, own)
        sent = await _exactly(found, NONCE + PROOF)
        other, answer = sent[:NONCE], sent[NONCE:]
        if not hmac.compare_digest(answer, proof(secret, b"client", own, other)):
            return False
        await loop.sock_sendall(found, proof(secret, b"server", own, other))
        return True


async def serve(
    listener: socket.socket, secret: bytes, accepted: Callable[[Link, Any], Awaitable[None]]
) -> Callable[[], object]:
    """Serves a listening socket: calls `accepted` with each peer that knows the secret, and its first value. The result is a
    function that ends this."""
    main = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    async def accepting() -> None:
        arrivals = set()
        while True:
            try:
                found, _ = await asyncio.get_running_loop().sock_accept(listener)
            except OSError:  # no descriptor is left, now
                await asyncio.sleep(PAUSE)
                continue
            arrival = asyncio.create_task(arrived(found))
            arrivals.add(arrival)
            arrival.add_done_callback(arrivals.discard)

    async def arrived(found: socket.socket) -> None:
        try:
            is_of_job = await _proved(found, secret)
        except OSError:
            is_of_job = False
        if is_of_job:
            main.call_soon_threadsafe(welcome, found)
        else:
            with suppress(OSError):
                found.recv(_CHUNK)  # a peer whose bytes are not read is told of an error
            found.close()

    def welcome(found: socket.socket) -> None:
        task = main.create_task(welcomed(found))
        tasks.add(task)
        task.add_done_callback(ended)

    def ended(task: asyncio.Task[None]) -> None:
        tasks.discard(task)
        if not task.cancelled():
            task.result()

    async def welcomed(found: socket.socket) -> None:
        link = await _linked(found)
        try:
            hello = await link.first()
        except (OSError, ValueError):
            pass
        else:
            await accepted(link, hello)
        finally:
            link.close()

    return asyncio.run_coroutine_threadsafe(accepting(), _doorkeeper()).cancel
