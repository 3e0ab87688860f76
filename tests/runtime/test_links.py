"""Messages between processes: values keep their types, cut frames are joined, and strangers are refused."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof_runtime.command import Simulated
from streamproof_runtime.errors import Unsendable
from streamproof_runtime.jobs.records import DEEPEST, own
from streamproof_runtime.jobs.scopes import Scope
from streamproof_runtime.messages import DATA
from streamproof_runtime.processes.links import HOST, NONCE, PROOF, SECRET, Link, connect, listening, proof, serve
from streamproof_runtime.processes.wire import MOST, Frames, frame, message_frame
from streamproof_runtime.subtasks.batons import Baton

_PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(), st.just("\ud800")
)
_KEYS = st.one_of(st.integers(), st.text(), st.tuples(st.integers(), st.text()))
_VALUES = st.recursive(
    _PLAIN,
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.dictionaries(_KEYS, inner),
        st.sets(_KEYS),
        st.frozensets(_KEYS),
    ),
    max_leaves=8,
)


def one(data: bytes) -> Any:
    """The single value of a frame."""
    (value,) = Frames().feed(data)
    return value


def typed(value: Any) -> Any:
    """A value with the types of all its parts, as text."""
    if isinstance(value, dict):
        return "dict", sorted(f"{typed(key)}: {typed(own)}" for key, own in value.items())
    if isinstance(value, set | frozenset):
        return type(value).__name__, sorted(map(str, map(typed, value)))
    if isinstance(value, list | tuple):
        return type(value).__name__, [*map(typed, value)]
    return type(value).__name__, repr(value)


@given(_VALUES)
def test_values_arrive_as_they_are(value: Any) -> None:
    """Equal, and of equal types at every depth: a tuple is no list, and 1 is neither 1.0 nor True."""
    assert typed(one(frame(value))) == typed(value)


@given(st.lists(_VALUES, max_size=4), st.integers(1, 7))
def test_frames_are_joined(sent: list[Any], size: int) -> None:
    """Bytes may arrive in pieces of any size."""
    data = b"".join(map(frame, sent))
    frames = Frames()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert [value for piece in pieces for value in frames.feed(piece)] == sent


def test_an_item_with_a_baton_arrives() -> None:
    """The kinds of batons are part of messages."""
    baton = Baton(Scope(("L",)), ("M",), (1, 2))
    assert one(message_frame((DATA, 0, 3, "a>b", (2, {"a": 1}, baton, True, 0), 7))) == [
        DATA,
        0,
        3,
        "a>b",
        [2, {"a": 1}, baton, True, 0],
        7,
    ]


def test_records_are_what_has_a_form(tmp_path: Path) -> None:
    """The same random values are refused, with the same words; and a simulated run ends as on processes."""

    class Text(str):
        """No plain text."""

    draw = random.Random(5)

    def value(depth: int) -> Any:
        kind = draw.randrange(12 if depth else 8)
        plain = (
            1,
            -(1 << 70),
            "a\udc80",
            1.5,
            b"b",
            None,
            True,
            draw.choice((object(), Text("x"), len, 1j)),
        )
        if kind < 8:
            return plain[kind]
        parts = [value(depth - 1) for _ in range(draw.randrange(4))]
        hashable = [part for part in parts if isinstance(part, int | str | float | bytes)]
        return [parts, tuple(parts), frozenset(hashable), dict(zip(hashable, parts, strict=False))][kind - 8]

    refused = 0
    for _ in range(3_000):
        one, words = value(3), []
        for check in (frame, own):
            try:
                check(one)
            except Unsendable as error:
                words.append(str(error).partition(" of type ")[2].partition(";")[2])
        assert len(words) in (0, 2), one
        assert len({*words}) < 2
        refused += bool(words)
    assert 200 < refused < 2_800
    text = "from streamproof_runtime import Job\ndef job():\n    made = Job('bad')\n    "
    stream = "made.source('a', [1]).process('b', lambda _, r: [object()]).process('d', lambda _, r: [], 2).collect('c')"
    (tmp_path / "job.py").write_text(f"{text}{stream}\n    return made\n")
    found = Simulated(tmp_path / "job.py", level="none", variant=None, executors=3, slots=1).seed(0)
    assert found["wrong"].startswith("b: a record has a value of type object; records are numbers")


def test_other_values_cannot_be_sent() -> None:
    """Objects, functions and subclasses of plain types are refused with what can be sent; a frame has a limit."""

    class Name(str):
        """Text with a meaning."""

    for value in (object(), len, Name("x"), [1, (2, {3: object()})]):
        with pytest.raises(Unsendable, match="records are numbers, text"):
            frame(value)
    nested: list[Any] = []
    for _ in range(5000):
        nested = [nested]
    with pytest.raises(Unsendable):
        frame(nested)
    with pytest.raises(ValueError, match="a frame of"):
        list(Frames().feed(b"\xff\xff\xff\xff"))
    with pytest.raises(ValueError, match="extension"):
        list(Frames().feed(b"\x00\x00\x00\x03\xd4\x63\x00"))


@pytest.mark.parametrize("wrap", [lambda v: (0, v), lambda v: [v], lambda v: {1: v}, lambda v: frozenset([v])])
def test_deep_records_arrive_or_are_refused(wrap: Callable[[Any], Any]) -> None:
    """Containers inside containers arrive up to one depth, of whatever kind, in every message; deeper ones are no records."""
    value: Any = None
    for _ in range(DEEPEST):
        value = wrap(value)
    assert own(value) == value
    state = [[[(7, {None: {"records": [value]}}, {})]]]
    assert one(frame(state)) == state
    with pytest.raises(Unsendable, match=f"a record has values inside values, more than {DEEPEST} deep"):
        own(wrap(value))


def test_a_record_that_holds_itself_is_refused() -> None:
    """Soon, also if it holds itself twice."""
    value: list[Any] = [1]
    value += [value, value]
    with pytest.raises(Unsendable):
        own(value)


def test_a_large_message_goes_in_frames() -> None:
    """Of the largest size each; values before and after it stay what they are."""
    large = [b"x" * MOST, "y" * 9, b"z" * MOST]
    data = frame(1) + frame(large) + frame(2)
    frames = Frames()
    found = [value for at in range(0, len(data), MOST // 3) for value in frames.feed(data[at : at + MOST // 3])]
    assert found == [1, large, 2]


def test_sockets_listen_on_the_loopback_address_only() -> None:
    """On a free port of 127.0.0.1."""
    with listening() as made:
        assert made.getsockname()[0] == HOST == "127.0.0.1"


def served(attempt: Any, secret: bytes = b"s" * SECRET) -> tuple[list[Any], Any]:
    """What a server with a secret has accepted while `attempt(port)` ran, and the result of that."""

    async def main() -> tuple[list[Any], Any]:
        accepted: list[Any] = []
        done = asyncio.Event()

        async def welcome(link: Link, hello: Any) -> None:
            accepted.append(hello)
            await link.each(accepted.append)
            done.set()

        with listening() as listener:
            close = await serve(listener, secret, welcome)
            try:
                result = await attempt(listener.getsockname()[1])
                if accepted:
                    await done.wait()
            finally:
                close()
        return accepted, result

    return asyncio.run(main())


def test_a_peer_with_the_secret_is_heard() -> None:
    """Its first value and all that follow, in order; also those that arrive together with the first."""

    async def attempt(port: int) -> None:
        link = await connect(port, b"s" * SECRET, "hello")
        for n in range(5):
            link.send(frame(n))
        link.close()
        await asyncio.sleep(0.01)

    async def until_heard(port: int) -> None:
        await attempt(port)

    accepted: list[Any] = []
    while not accepted:  # the server may not have read when the client has closed
        accepted, _ = served(until_heard)
    assert accepted == ["hello", 0, 1, 2, 3, 4]


def test_a_peer_without_the_secret_is_refused() -> None:
    """Neither its first value nor anything else is read, and its own side learns that it is refused."""

    async def attempt(port: int) -> str:
        try:
            await connect(port, b"x" * SECRET, "hello")
        except ConnectionError as error:
            return str(error)
        return "connected"

    accepted, result = served(attempt)
    assert accepted == []
    assert "closed the connection" in result


@pytest.mark.parametrize("answer", [b"", b"short", bytes(NONCE + PROOF), b"\x80\x04" * 100], ids=len)
def test_bytes_that_prove_nothing_are_refused(answer: bytes) -> None:
    """A connection that sends anything else is closed; a proof for one connection does not open another."""

    async def attempt(port: int) -> bytes:
        reader, writer = await asyncio.open_connection(HOST, port)
        await reader.readexactly(NONCE)
        writer.write(answer)
        writer.write_eof()
        rest = await reader.read()
        writer.close()
        return rest

    assert served(attempt) == ([], b"")


def test_a_recorded_proof_does_not_open_another_connection() -> None:
    """The server's random number is new for each connection."""
    secret, own = b"s" * SECRET, bytes(NONCE)

    async def attempt(port: int) -> bytes:
        first, writer = await asyncio.open_connection(HOST, port)
        recorded = own + proof(secret, b"client", await first.readexactly(NONCE), own)
        writer.close()
        reader, writer = await asyncio.open_connection(HOST, port)
        await reader.readexactly(NONCE)
        writer.write(recorded)
        rest = await reader.read()
        writer.close()
        return rest

    assert served(attempt, secret) == ([], b"")


def test_a_server_without_the_secret_learns_nothing() -> None:
    """The client sends neither the secret nor its first value to one that has taken the port."""
    received: list[bytes] = []

    async def main() -> None:
        async def impostor(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(bytes(NONCE))
            received.append(await reader.readexactly(NONCE + PROOF))
            writer.write(bytes(PROOF))
            received.append(await reader.read())
            writer.close()

        with socket.socket() as taken:
            taken.bind((HOST, 0))
            server = await asyncio.start_server(impostor, sock=taken)
            with pytest.raises(ConnectionError, match="does not know the secret"):
                await connect(taken.getsockname()[1], b"s" * SECRET, "hello")
            while len(received) < 2:
                await asyncio.sleep(0)
            server.close()

    asyncio.run(main())
    assert b"s" * 4 not in received[0]
    assert received[1] == b""
