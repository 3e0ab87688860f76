"""The Java agent is compiled and records the calls of classes that are named and shaped like Flink's.

It needs a JDK. Flink's own copy of ASM is in a jar of a hundred megabytes; the JDK has one of its own, which stands for it
here: the sources are the agent's but for its name and its level. Where `FLINK_DIST` names Flink's jar, the agent is
also built as users build it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

AGENT = Path(__file__).resolve().parents[2] / "adapters" / "flink-agent"
SHADED, INTERNAL = "org.apache.flink.shaded.asm9.org.objectweb.asm", "jdk.internal.org.objectweb.asm"
LEVELS = "Opcodes.ASM9", "Opcodes.ASM8"
"""The level of ASM's interface that the agent asks for, and the highest that every such JDK has."""
OPEN = [f"--add-exports=java.base/{INTERNAL}{part}=ALL-UNNAMED" for part in ("", ".commons")]

READER = """
package org.apache.flink.runtime.io.network.netty;

public class CreditBasedSequenceNumberingViewReader {
    private final String receiverId = "c1";
    private final Object subpartitionView = null;
    private int numCreditsAvailable;
    private boolean isRegisteredAsAvailable;

    public void addCredit(int more) {
        numCreditsAvailable += more;
    }

    public synchronized Object getNextBuffer() {
        return null;
    }

    public void resumeConsumption() {
        throw new IllegalStateException("not blocked");
    }

    public int addCredit(int more, int times) {
        return more * times;
    }
}
"""
CHANNEL = """
package org.apache.flink.runtime.io.network.partition.consumer;

import java.util.ArrayDeque;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

public class RemoteInputChannel {
    private final String id = "c2";
    private final AtomicInteger unannouncedCredit = new AtomicInteger(3);
    private final ArrayDeque<Object> receivedBuffers = new ArrayDeque<>();
    private final int expectedSequenceNumber = 7;
    private final AtomicBoolean isReleased = new AtomicBoolean(true);
}
"""
BUFFERS = """
package org.apache.flink.runtime.io.network.partition.consumer;

import java.util.List;

public class BufferManager {
    private final RemoteInputChannel inputChannel = new RemoteInputChannel();
    private final Queue bufferQueue = new Queue();
    private int numRequiredBuffers;
    private boolean isWaitingForFloatingBuffers = true;

    private int requestFloatingBuffers(int wanted) {
        numRequiredBuffers = wanted;
        return wanted - 1;
    }

    public int ask(int wanted) {
        return requestFloatingBuffers(wanted);
    }

    static class Queue {
        final List<String> exclusiveBuffers = List.of("a", "b");
        final List<String> floatingBuffers = List.of("d");
    }
}
"""
MAIN = r"""
import org.apache.flink.runtime.io.network.netty.CreditBasedSequenceNumberingViewReader;
import org.apache.flink.runtime.io.network.partition.consumer.BufferManager;

public class Main {
    public static void main(String[] given) {
        Thread.currentThread().setName("a \"task\"\n\\1");
        CreditBasedSequenceNumberingViewReader reader = new CreditBasedSequenceNumberingViewReader();
        reader.addCredit(2);
        System.out.println(reader.getNextBuffer());
        System.out.println(reader.addCredit(2, 21));
        try {
            reader.resumeConsumption();
        } catch (IllegalStateException error) {
            System.out.println(error.getMessage());
        }
        System.out.println(new BufferManager().ask(5));
    }
}
"""


def _run(*command: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture(scope="module")
def jdk() -> None:
    """A JDK is there, and has a copy of ASM."""
    if shutil.which("javac") is None or shutil.which("java") is None or shutil.which("jar") is None:
        pytest.skip("needs a JDK: javac, java and jar")
    listed = subprocess.run(["java", "--describe-module", "java.base"], capture_output=True, text=True, check=False)
    if f"{INTERNAL}.commons" not in listed.stdout:
        pytest.skip(f"needs a JDK with {INTERNAL}, as those up to 23 have it")


@pytest.fixture(scope="module")
def recorded(jdk: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[dict[str, Any]]]:
    """What a program with the agent prints, and the lines that are recorded of it."""
    place = tmp_path_factory.mktemp("agent")
    sources = []
    for source in sorted((AGENT / "src" / "streamproof" / "flink").glob("*.java")):
        sources.append(place / source.name)
        text = source.read_text(encoding="utf-8").replace(SHADED, INTERNAL).replace(*LEVELS)
        sources[-1].write_text(text, encoding="utf-8")
    assert len(sources) == 7
    _run("javac", "-Xlint:all", "-Werror", *OPEN, "-d", place / "agent", *sources)
    (place / "manifest").write_text("Premain-Class: streamproof.flink.CreditAgent\n", encoding="utf-8")
    _run("jar", "cfm", place / "agent.jar", place / "manifest", "-C", place / "agent", "streamproof")
    texts = {"CreditBasedSequenceNumberingViewReader": READER, "RemoteInputChannel": CHANNEL, "BufferManager": BUFFERS}
    for name, text in {**texts, "Main": MAIN}.items():
        (place / f"{name}.java").write_text(text, encoding="utf-8")
    _run("javac", "--release", 11, "-d", place / "program", *(place / f"{name}.java" for name in (*texts, "Main")))
    agent = f"-javaagent:{place / 'agent.jar'}={place / 'traces'},tm-1"
    printed = _run("java", *OPEN, agent, "-cp", place / "program", "Main")
    lines = (place / "traces" / "tm-1.trace.ndjson").read_text(encoding="utf-8").splitlines()
    return printed, [json.loads(line) for line in lines]


@pytest.mark.long
def test_a_program_does_what_it_did(recorded: tuple[str, list[dict[str, Any]]]) -> None:
    """Values that are returned and exceptions that are thrown pass through the recording methods."""
    assert recorded[0].splitlines() == ["null", "42", "not blocked", "4"]


@pytest.mark.long
def test_calls_that_return_are_recorded(recorded: tuple[str, list[dict[str, Any]]]) -> None:
    """One line a hooked call, in order, with what it was given and returned and the counters; none for one that throws."""
    lines = recorded[1]
    assert [(one["event"], one["trace"], one["process"]) for one in lines] == [
        ("p.credit_add", "c1", "tm-1"),
        ("p.send", "c1", "tm-1"),
        ("c.float_request", "c2", "tm-1"),
    ]
    said = [{k: v for k, v in one["args"].items() if k not in ("ns", "ns0", "q0", "th")} for one in lines]
    assert said == [
        {"ch": "c1", "n": 2, "credits": 2, "registered": False},
        {"ch": "c1", "got": False, "credits": 2, "registered": False},
        {
            "ch": "c2", "want": 5, "got": 4, "unannounced": 3, "excl": 2, "float": 1, "required": 5, "waiting": True,
            "queued": 0, "next_seq": 7, "released": True,
        },
    ]  # fmt: skip


@pytest.mark.long
def test_records_tell_when_a_call_began_and_ended(recorded: tuple[str, list[dict[str, Any]]]) -> None:
    """Places in the order of the process rise, a call begins before it ends, and the thread is named as it is."""
    places = [(one["args"]["q0"], one["seq"]) for one in recorded[1]]
    # The third call of all was not hooked; the fourth threw and has a beginning only.
    assert places == [(0, 1), (2, 3), (5, 6)]
    assert all(0 < one["args"]["ns0"] <= one["args"]["ns"] for one in recorded[1])
    assert {one["args"]["th"].rpartition(" ")[0] for one in recorded[1]} == {'a "task"\n\\1'}


def test_the_agent_is_built_against_flink(tmp_path: Path) -> None:
    """With Flink's jar, the build that users are told of makes an agent, without a warning."""
    given = os.environ.get("FLINK_DIST")
    if given is None or shutil.which("javac") is None:
        pytest.skip("needs javac, and FLINK_DIST=flink-dist-VERSION.jar")
    assert _run("sh", AGENT / "build.sh", given, tmp_path) == f"{tmp_path}/credit-agent.jar\n"
    assert "Premain-Class: streamproof.flink.CreditAgent" in _run(
        "unzip", "-p", tmp_path / "credit-agent.jar", "META-INF/MANIFEST.MF"
    )
