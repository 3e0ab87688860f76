"""Connections between the processes of a job: TCP on the loopback address, open to those who know the job's secret.

Each side proves that it knows the secret by a keyed hash of two fresh random numbers, so that neither a stranger that
connects nor one that has taken a port learns it. Nothing of a peer is read as a message before that.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from streamproof_runtime.processes.wire import Frames, frame

HOST = "127.0.0.1"
SECRET = NONCE = PROOF = 32
"""Sizes in bytes."""
PATIENCE = 10.0
"""Seconds for the proof of a peer that connects."""
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


async def connect(port: int, secret: bytes, hello: Any) -> Link:
    """Connects to a process of the job, and sends a first value. Raises `OSError`, also for one without the secret."""
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection(HOST, port)
        try:
            own = os.urandom(NONCE)
            other = await reader.readexactly(NONCE)
            writer.write(own + proof(secret, b"client", other, own))
            answer = await reader.readexactly(PROOF)
            if not hmac.compare_digest(answer, proof(secret, b"server", other, own)):
                raise Refused("the process at the other end does not know the secret of the job")
        except asyncio.IncompleteReadError as error:
            writer.close()
            raise Refused("the process at the other end closed the connection") from error
        except BaseException:
            writer.close()
            raise
    link = Link(reader, writer)
    link.send(frame(hello))
    return link


async def serve(
    listener: socket.socket, secret: bytes, accepted: Callable[[Link, Any], Awaitable[None]]
) -> asyncio.Server:
    """Serves a listening socket: calls `accepted` with each peer that knows the secret, and its first value."""

    async def arrived(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                own = os.urandom(NONCE)
                writer.write(own)
                sent = await reader.readexactly(NONCE + PROOF)
                other, answer = sent[:NONCE], sent[NONCE:]
                if not hmac.compare_digest(answer, proof(secret, b"client", own, other)):
                    return
                writer.write(proof(secret, b"server", own, other))
                link = Link(reader, writer)
                hello = await link.first()
        except (OSError, ValueError, asyncio.IncompleteReadError):
            return
        else:
            await accepted(link, hello)
        finally:
            writer.close()

    return await asyncio.start_server(arrived, sock=listener)
