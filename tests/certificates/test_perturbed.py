"""Every field of every kind of certificate, changed one at a time: rejected, or nothing that is printed depends on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from nonempty import nonempty
from shares import share
from streamproof.base.errors import Rejected
from streamproof.certify.verifier import MAGIC, parse, verify
from streamproof.certify.writing import packed
from streamproof.cli.verbs import run

KINDS: dict[str, tuple[str, ...]] = {
    "closed set, terminating": ("check", "reference.hanoi", "-p", "discs=2"),
    "closed set with behaviours": ("check", "reference.die_hard"),
    "closed set, deadlock free": ("check", "reference.transaction_commit"),
    "ranks of termination": ("check", "reference.coffee_can", "-p", "beans=4"),
    "ranks of a temporal property": ("check", "reference.ewd840", "-p", "n=2"),
    "lasso": ("check", "reference.huang", "--variant", "keeps-its-weight"),
    "mistake of the model": ("check", "mistake.py"),
    "behaviours of bmc": ("check", "reference.die_hard", "--engine", "bmc", "--property", "measured"),
    "induction": ("prove", "reference.ewd840", "-p", "n=2"),
    "induction over two states": ("prove", "reference.die_hard", "--property", "deadlock"),
}
MISTAKE = """from streamproof import Model, Range, State, action, invariant

class Mistake(Model):
    def state(self):
        return State(n=Range(0, 3))

    @action
    def more(self, s):
        s.n += 1

    @invariant
    def small(self, s):
        return s.n < 9
"""
MOST = 60
"""Changes of one certificate that are tried, beside those of its header: a sample where there are more."""


def changes(value: Any) -> Iterator[Any]:
    """Other values in place of one: near ones, others of its type, equal ones of another type."""
    match value:
        case bool():
            yield from (not value, int(value), None)
        case int():
            yield from (value + 1, value - 1, -value, 0, 1 << 70, float(value), str(value), None)
            yield from [bool(value)] * (value in (0, 1))
        case str():
            yield from ("", value + " ", value.upper(), f"{value}\x1b[2J", 0, None, [value])
        case None:
            yield from (0, 1, "", [], {})
        case list():
            yield from ([], [*value, 0], [*value, []], None, {})
            if value:
                yield from (value[:-1], value[1:], [*value, value[-1]], [value[0], *value], value[::-1])
        case dict():
            yield from ({}, {**value, "note": 0}, None, list(value))
            for key in value:
                rest = {k: v for k, v in value.items() if k != key}
                yield from (rest, {**rest, f"{key}x": value[key]})


def edited(value: Any) -> Iterator[Any]:
    """A document with each of its parts, at any depth, changed in each way."""
    yield from changes(value)
    if isinstance(value, dict):
        for key, part in value.items():
            yield from ({**value, key: other} for other in edited(part))
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from ([*value[:at], other, *value[at + 1 :]] for other in edited(part))


@pytest.fixture(params=share(KINDS, 6, first=2))
def certificate(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A certificate of each kind, as the command line writes it."""
    monkeypatch.chdir(tmp_path)
    Path("mistake.py").write_text(MISTAKE, encoding="utf-8")
    run((*KINDS[request.param], "-q", "--certificate", "c"))
    return Path("c").read_bytes()


def printed(data: bytes, *words: str) -> tuple[dict[str, Any], str] | None:
    """What the verifier says of a file, in JSON and to people; None where it is rejected, or names no model that exists."""
    Path("changed").write_bytes(data)
    Path("out.json").unlink(missing_ok=True)
    if not words and b'"model":"mistake.py"' in data:  # a certificate of a file does not lead to it
        words = ("--model", "mistake.py")
    code = run(("verify-certificate", "changed", "-q", "--json", "out.json", *words))
    assert code in (0, 2, 150, 161)
    if code != 0:
        return None
    said = json.loads(Path("out.json").read_text(encoding="utf-8"))
    shown = {key: said[key] for key in ("model", "options", "claims", "counts", "accepted", "because")}
    return shown, repr(shown)  # true, 1 and 1.0 are distinguished


def test_what_is_printed_was_checked(certificate: bytes) -> None:
    """The header is what is printed: each change of it is rejected, except that claims and evidence may be left out."""
    header, evidence = parse(certificate)
    true = printed(certificate)
    assert true is not None
    rejected = 0
    for other in edited(header):
        said = printed(packed(other, evidence))
        if said is None:
            rejected += 1
            continue
        assert said[0]["counts"] in (true[0]["counts"], None)
        assert repr(said[0]["counts"]) in (repr(true[0]["counts"]), "None")
        assert said[0]["claims"].items() <= true[0]["claims"].items()
        assert said[0]["model"] == true[0]["model"]
        assert list(map(str.strip, said[0]["options"])) == true[0]["options"]  # " 2" is the same number
    assert rejected >= 50


def test_evidence_counts(certificate: bytes) -> None:
    """Evidence with a part changed is rejected, or shows the very same."""
    header, evidence = parse(certificate)
    true, tried = printed(certificate), list(edited(evidence))
    assert true is not None
    random = Random(len(tried))
    shown = [printed(packed(header, other)) for other in (tried if len(tried) < MOST else random.sample(tried, MOST))]
    assert all(said in (None, true) for said in shown)
    assert shown.count(None) >= 40


def test_model_given_is_the_model_printed(certificate: bytes) -> None:
    """With `--model` what the certificate calls its model is not looked at, and not printed."""
    header, evidence = parse(certificate)
    said = printed(packed({**header, "model": "of another name\x1b[2J"}, evidence), "--model", header["model"])
    assert said is not None
    assert said == printed(certificate)


@pytest.mark.parametrize("levels", [[0], [0, 0, 0], [-1, 1], [1, -1], [True, -1]])
def test_depth_cannot_be_forged(levels: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels without states, or with fewer, at the end, at the beginning and in between."""
    monkeypatch.chdir(tmp_path)
    run(("check", "reference.die_hard", "-q", "--certificate", "c"))
    header, evidence = parse(Path("c").read_bytes())
    counts = header["counts"]
    for at in nonempty(range(len(counts["levels"]) + 1)):
        longer = [*counts["levels"][:at], *levels, *counts["levels"][at:]]
        forged = {**header, "counts": {**counts, "levels": longer, "depth": len(longer)}}
        assert printed(packed(forged, evidence)) is None


def test_magic() -> None:
    """The changes above are of certificates of this version."""
    assert MAGIC.startswith(b"streamproof certificate ")
    with pytest.raises(Rejected):
        verify(b"", lambda _: None, lambda _: None)  # type: ignore[arg-type, return-value]
