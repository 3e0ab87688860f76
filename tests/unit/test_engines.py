"""Every engine behind its one interface: it answers, refuses options that it has no use for, and is not believed."""

from __future__ import annotations

import pytest

import streamproof
from streamproof import SearchOptions
from streamproof.cli.evidence import Unconfirmed, confirm
from streamproof.engines import CHECKS, PROVERS
from streamproof.system import Exit, Finding, Kind, System, UsageError, Verdict
from streamproof.traces.replay import replay_labels

ENGINES = {**CHECKS, **PROVERS}


@pytest.mark.parametrize("name", ENGINES)
def test_engines_answer(name: str, relay: System) -> None:
    """Each decides the properties that the options name, shows shortest traces, and says what it covered."""
    told: list[object] = []
    options = SearchOptions(("deadlock_free", "one_buffer"), max_depth=9)
    result = ENGINES[name].run(relay, options, on_progress=told.append)
    assert [f.property for f in result.findings] == ["deadlock_free", "one_buffer"]
    assert [f.verdict for f in result.findings] == [Verdict.VIOLATED, Verdict.VIOLATED]
    assert [len(f.trace.steps) for f in result.findings if f.trace] == [2, 2]
    assert all(f.because for f in result.findings)
    assert not result.interrupted


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("bmc", SearchOptions(max_states=3), "bmc has no --max-states: it visits no states"),
        ("bmc", SearchOptions(tier="python"), "bmc has no --tier: it visits no states"),
        ("bmc", SearchOptions(max_k=3), "bmc has no --k: it visits no states"),
        ("explicit", SearchOptions(query_limit=1.0), "explicit has no --query-timeout: it is not a solver"),
        ("pdr", SearchOptions(por=True), "pdr has no --por: it visits no states"),
    ],
)
def test_engines_refuse_options_that_they_do_not_have(
    name: str, options: SearchOptions, message: str, relay: System
) -> None:
    """An option that would change nothing is refused, with the name that it has on the command line."""
    with pytest.raises(UsageError, match=message):
        ENGINES[name].run(relay, options)


def test_the_finding_of_an_engine_is_not_believed(relay: System) -> None:
    """What an engine calls a violation is judged by the interpreter before it is shown, whichever engine it is."""
    wrong = Finding("one_buffer", Kind.INVARIANT, Verdict.VIOLATED, replay_labels(relay, ["send(1)"]), "so it says")
    with pytest.raises(Unconfirmed, match="one_buffer is true in the last state") as caught:
        confirm(relay, wrong, "lying", "again")
    assert caught.value.exit_code is Exit.DISAGREE


def test_the_public_door() -> None:
    """Each public name stands in exactly one table, and can be had."""
    tables = (*streamproof.AUTHORING.values(), *streamproof.USING.values())
    names = [name for _, listed in tables for name in listed.split()]
    assert sorted([*names, "__version__"]) == sorted(streamproof.__all__)
    assert len(set(names)) == len(names)
    assert all(getattr(streamproof, name).__doc__ for name in names if callable(getattr(streamproof, name)))
