"""Sequence diagrams: lifelines, arrows of messages, loops, verdicts, and text that comes from input."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

from streamproof import Array, Enum, Model, Queue, Record, State, action, require
from streamproof.exchange.drawings.sequence import sequence_svg
from streamproof.system import System
from streamproof.traces.replay import replay_labels

SVG = "{http://www.w3.org/2000/svg}"


class Post(Model):
    """Letters from a to b, and answers."""

    channels = ("a>b", "b>a")

    def state(self):
        """All channels are empty."""
        letter = Record(kind=Enum("ASK", "TELL"), urgent=Enum("NO", "YES"))
        return State(box=Array(self.channels, Queue(letter, capacity=2)), done=Array(("a", "b"), Enum("NO", "YES")))

    @action(c=channels)
    def send(self, s, c):
        """A letter."""
        s.box[c].push({"kind": "ASK", "urgent": "YES"})

    @action(c=channels)
    def receive(self, s, c):
        """The oldest letter."""
        require(len(s.box[c]) > 0)
        s.box[c].pop()

    @action(t=("a", "b"))
    def stop(self, s, t):
        """Nothing more."""
        s.done[t] = "YES"


def drawn(text: str, tag: str, kind: str) -> list[ET.Element]:
    """The elements of one class in a well-formed drawing."""
    return [e for e in ET.fromstring(text).iter(SVG + tag) if e.get("class") == kind]


def words(text: str, kind: str) -> list[str]:
    """The texts of one class."""
    return ["".join(e.itertext()) for e in drawn(text, "text", kind)]


def test_lifelines_links_and_messages() -> None:
    """Channels name their ends; a message is an arrow to the step that takes it, or open."""
    system = Post().system()
    text = sequence_svg(system, replay_labels(system, ["send(a>b)", "receive(a>b)", "send(b>a)", "stop(b)"]))
    assert words(text, "name") == ["a", "b"]
    assert len(drawn(text, "path", "arc")) == 2
    assert len(drawn(text, "path", "send")) == 1
    assert len(drawn(text, "path", "send open")) == 1
    assert words(text, "word") == ["ASK YES", "ASK YES"]
    assert words(text, "step") == ["1. send(c=a>b)", "2. receive(c=a>b)", "3. send(c=b>a)", "4. stop(t=b)"]
    steps = [float(e.get("x", "0")) for e in drawn(text, "text", "step")]
    assert steps[0] < min(steps[1:])


def test_messages_are_matched_in_their_order() -> None:
    """Two equal messages on a channel arrive in the order in which they were sent."""
    system = Post().system()
    text = sequence_svg(system, replay_labels(system, ["send(a>b)", "send(a>b)", "receive(a>b)", "receive(a>b)"]))
    starts = [e.get("d", "").split("L")[0] for e in drawn(text, "path", "send")]
    assert len(starts) == 2
    assert len(set(starts)) == 2


def test_verdicts_and_loops(relay: System, toggle: System) -> None:
    """The last step of a violation is red, of a witness green; a loop is marked and neither."""
    violated = sequence_svg(relay, replay_labels(relay, ["send(1)"]), relay.property("one_buffer"))
    witness = sequence_svg(relay, replay_labels(relay, ["send(1)"]), relay.properties[3])
    lasso = sequence_svg(toggle, replay_labels(toggle, ["flip", "flip", "flip"], loop=1), toggle.property("ends"))
    counts = [
        tuple(len(drawn(text, "rect", kind)) for kind in ("bad", "good", "loop")) for text in (violated, witness, lasso)
    ]
    assert counts == [(1, 0, 0), (0, 1, 0), (0, 0, 1)]


def test_text_is_data(relay: System) -> None:
    """Names from a model are escaped, long ones cut with the whole text as tooltip."""
    name = "<script>&\x1b[31m" + "x" * 80
    text = sequence_svg(replace(relay, name=name), replay_labels(relay, ["send(1)"]))
    assert "<script>" not in text
    assert "\x1b" not in text
    assert "&lt;script&gt;&amp;\\x1b" in text
    assert ET.fromstring(text).findtext(SVG + "title", "").startswith("<script>&")
