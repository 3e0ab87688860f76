"""Every engine behind its one interface: it answers, refuses options that it has no use for, and is not believed."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import streamproof
from streamproof import SearchOptions, exchange
from streamproof.agree.panel import PanelLimits, agree
from streamproof.engines.registry import CHECKS, PROVERS
from streamproof.report.evidence import confirm
from streamproof.system import Exit, Finding, Kind, System, UsageError, Verdict
from streamproof.traces.replay import Unconfirmed, replay_labels

ENGINES = {**CHECKS, **PROVERS}
IN_PANEL = {
    "explicit": {"python", "compiled", "compiled, 2 workers"},
    "bmc": {"bmc"},
    "induction": {"induction"},
    "spin": {"Spin"},
    "tlc": {"TLC"},
}
"""The names in the panel of `check --agree`, by engine of the registry or by outside tool."""
NOT_IN_PANEL = {
    "auto": "it runs the other provers in turn",
    "discovery": "it adds lemmas to induction, which is in the panel",
    "pdr": "it proves the same kinds of property as induction, which is in the panel",
    "spark": "it is compared with the search in memory, state by state",
}
"""Why an engine is not in the panel. COMPARED compares their verdicts with others'."""
COMPARED = [
    Path(__file__).parents[1] / place for place in ("agreement/test_pdr_agreement.py", "pipeline/test_spark_search.py")
]


@pytest.mark.parametrize("name", ENGINES)
def test_engines_answer(name: str, relay: System, tmp_path: Path) -> None:
    """Each decides the properties that the options name, shows shortest traces, and says what it covered."""
    received: list[object] = []
    options = SearchOptions(("deadlock_free", "one_buffer"), max_depth=9, spill=tmp_path if name == "spark" else None)
    result = ENGINES[name].run(relay, options, on_progress=received.append)
    assert [f.property for f in result.findings] == ["deadlock_free", "one_buffer"]
    assert [f.verdict for f in result.findings] == [Verdict.VIOLATED, Verdict.VIOLATED]
    assert [len(f.trace.steps) for f in result.findings if f.trace] == [2, 2]
    assert all(f.because for f in result.findings)
    assert not result.interrupted


def test_each_engine_is_in_the_panel_or_has_a_reason(relay: System) -> None:
    """An engine of the registry or an outside tool is in the panel of `check --agree`, or is listed above with a reason."""
    names = [m.name for m in walk_packages(exchange.__path__, f"{exchange.__name__}.") if m.name.endswith("_run")]
    tools = {n.rpartition(".")[2].removesuffix("_run") for n in names if hasattr(import_module(n), "installed")}
    assert tools == {"spin", "tlc"}
    assert sorted([*IN_PANEL, *NOT_IN_PANEL]) == sorted({*ENGINES, *tools})
    panel = agree(relay, PanelLimits(spin=0, tlc=0, depth=1))
    assert {result.engine for result in panel.results} == {"interpreter"}.union(*IN_PANEL.values())
    compared = "".join(file.read_text(encoding="utf-8") for file in COMPARED)
    assert all(f'"{name}"' in compared for name in NOT_IN_PANEL)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("bmc", SearchOptions(max_states=3), "bmc has no --max-states: it visits no states"),
        ("bmc", SearchOptions(tier="python"), "bmc has no --tier: it visits no states"),
        ("bmc", SearchOptions(max_k=3), "bmc has no --k: it is the strength of induction"),
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
    """Each public name is in one table and can be loaded; ``import *`` gives what models are written with."""
    authoring = [name for _, listed in streamproof.AUTHORING.values() for name in listed.split()]
    using = [name for _, listed in streamproof.USING.values() for name in listed.split()]
    assert sorted([*authoring, "__version__"]) == sorted(streamproof.__all__)
    assert len({*authoring, *using}) == len(authoring) + len(using)
    assert {*authoring, *using} <= set(dir(streamproof))
    public = [getattr(streamproof, name) for name in (*authoring, *using)]
    assert all(value.__doc__ for value in public if callable(value))


def test_what_models_are_written_with_loads_no_engine() -> None:
    """A model that imports everything from the door does not wait for engines."""
    program = "from streamproof import *; import sys; print([m for m in sys.modules if 'explicit' in m or 'z3' in m])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
