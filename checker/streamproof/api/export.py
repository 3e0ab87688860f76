"""`export`: traces, graphs and models as texts for other tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from streamproof.api.subject import NO_PARAMETERS, ChosenSystem, Subject, choose_system, within
from streamproof.base.errors import Exit, TooLarge, UsageError
from streamproof.base.files import form_of, write
from streamproof.base.options import DEFAULTS, SearchOptions
from streamproof.base.records import dataclass, replace
from streamproof.engines.registry import CHECKS, explored
from streamproof.exchange.drawings.dot import MAX_STATES, search_dot, trace_dot
from streamproof.exchange.drawings.sequence import sequence_svg
from streamproof.exchange.itf.writing import itf_text
from streamproof.exchange.promela.model import Promela, promela
from streamproof.exchange.promela.spin import claimed
from streamproof.exchange.smt.chc import chc
from streamproof.exchange.smt.smtlib import DEPTH, smtlib
from streamproof.exchange.tla.module import Tla
from streamproof.exchange.tla.module import export as tla
from streamproof.system.model import Kind, Property, System
from streamproof.system.verdict import Trace, Verdict
from streamproof.traces.replay import confirm_finding, replay_labels

FORMS = {
    "itf": ".itf.json",
    "dot": ".dot",
    "sequence": ".svg",
    "html": ".html",
    "promela": ".pml",
    "tla": ".tla",
    "smtlib": ".smt2",
    "chc": ".smt2",
}
"""The formats by name, each with its file suffix."""


def _page(system: System, trace: Trace, prop: Property | None = None) -> str:
    from streamproof.report.behaviour import behaviour_page

    return behaviour_page(system, trace, prop)


TRACES = {"itf": itf_text, "dot": trace_dot, "sequence": sequence_svg, "html": _page}
"""The formats of traces, with their writers."""
MODELS = ("promela", "tla", "smtlib", "chc")
"""The formats of whole models, written without a search."""


@dataclass(frozen=True, slots=True)
class Exported:
    """Texts for another tool."""

    system: System
    texts: Mapping[str, str]
    """By name; those of TLA+ have their suffixes."""
    suffix: str
    left_out: Mapping[str, str]
    """Properties without a text, with the reason."""
    tla: Tla | None = None
    """The modules and configurations, and what they ask TLC."""

    def write(self, folder: str | PathLike[str]) -> tuple[Path, ...]:
        """Writes each text to a file in a folder; returns the paths. Raises `SystemFailure`, also for a file of others."""
        paths = []
        for name, text in self.texts.items():
            path = Path(folder) / (name if self.tla is not None else f"{name}{self.suffix}")
            write(path, text, form_of(path.suffix if self.tla is not None else self.suffix))
            paths.append(path)
        return tuple(paths)


class NoTrace(UsageError):
    """No trace to write: the properties hold, or the search ended before they were decided."""

    def __init__(self, message: str, *, decided: bool) -> None:
        self.exit_code = Exit.USAGE if decided else Exit.INCONCLUSIVE
        super().__init__(message, remedy="choose a property that is violated or reached, or raise the limits")


def export(
    model: Subject,
    form: str,
    properties: Iterable[str] | None = None,
    *,
    variant: str | None = None,
    size: str | None = None,
    parameters: Mapping[str, Any] = NO_PARAMETERS,
    actions: Sequence[str] = (),
    limit: int = MAX_STATES,
    depth: int = DEPTH,
    options: SearchOptions = DEFAULTS,
) -> Exported:
    """The traces of a model, the graph of its states, or the model itself, as texts, as `streamproof export` writes them.

    `form` is `itf`, `dot`, `sequence`, `html`, `promela`, `tla`, `smtlib` or `chc`. `actions` are the labels of a trace to
    write instead of those of properties. `limit` is the maximum number of states of a graph, `depth` the number of steps of
    the queries of `smtlib`; `options` limit the search for traces and graphs, by `max_states` and `time_limit`, and have the
    `view` of `tla`. The other arguments are those of `check`.

    Raises as `check`, `NoTrace` if no property has a trace, and `TooLarge` for a graph of too many states.
    """
    if form not in FORMS:
        raise UsageError(f"no format {form!r}", remedy=f"the formats: {', '.join(FORMS)}")
    chosen = choose_system(model, properties, variant, size, parameters, options)
    names = chosen.properties or ()
    if actions and names:
        raise UsageError("actions and properties exclude each other", remedy="give one of them")
    for name in options.given():
        if name not in ("properties", "max_states", "time_limit", "view"):
            raise UsageError(f"export does not support {name}", remedy="leave it out of the options")
    if options.view is not None and form != "tla":
        raise UsageError(f"{form} has no view", remedy="leave it out of the options, or export tla")
    if form in MODELS and (actions or (names and form not in ("promela", "chc"))):
        raise UsageError(f"{form} writes the whole model", remedy="leave out actions and properties")
    with within(options.time_limit):
        system = chosen.given if chosen.given is not None else chosen.model("export").system()
        return exported(chosen, system, form, actions, limit=limit, depth=depth, options=options)


def exported(
    chosen: ChosenSystem,
    system: System,
    form: str,
    actions: Sequence[str],
    *,
    limit: int = MAX_STATES,
    depth: int = DEPTH,
    options: SearchOptions = DEFAULTS,
    single: bool = False,
) -> Exported:
    """The texts of `export`; `single`: for one file. Raises as `export`."""
    names, documents = chosen.properties or (), list[tuple[str, str]]()
    left_out: dict[str, str] = {}
    module: Tla | None = None
    if form == "promela":
        documents, too_large = _promela(system, names, single=single)
        left_out = {name: error.short_text for name, error in too_large.items()}
    elif form == "smtlib":
        documents = [(_file_name(system.name), smtlib(system, depth).text)]
    elif form == "chc":
        documents = _clauses(system, names)
    elif form == "tla":
        module = tla(system, options.view)
        documents = list(module.files.items())
        left_out = {name: f"{name}: TLA+ has no text for it" for name in module.left_out}
    elif actions:
        documents = [("actions", TRACES[form](system, replay_labels(system, actions)))]
    elif form == "dot" and not names:
        documents = [("graph", _graph(system, options, limit))]
    else:
        documents = list(_traces(system, form, replace(options, properties=chosen.properties)))
    return Exported(system, dict(documents), FORMS[form], left_out, module)


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)


def _promela(
    system: System, properties: Sequence[str], *, single: bool
) -> tuple[list[tuple[str, str]], dict[str, TooLarge]]:
    """The model, unless properties were chosen, and the text of each temporal property, if the output is a folder.

    Also returns the properties whose formulas are too large for Spin. Raises `TooLarge` for a chosen one.
    """
    name = _file_name(system.name)
    temporal = [p.name for p in system.properties if p.kind is Kind.TEMPORAL]
    for chosen in properties:
        if chosen not in temporal:
            raise UsageError(
                f"{chosen} is part of the text of the model; only temporal properties have separate texts",
                remedy="leave out --property",
            )
    own = [] if properties else [(name, promela(system))]
    wanted = properties or ([] if single else temporal)
    claims: dict[str, Sequence[Promela]] = {}
    too_large: dict[str, TooLarge] = {}
    for p in wanted:
        try:
            claims[p] = claimed(system, p)
        except TooLarge as error:
            too_large[p] = TooLarge(f"{p}: {error.message}", loc=system.property(p).loc, remedy=error.remedy)
            if properties:
                raise too_large[p] from None
    for chosen, parts in claims.items():
        if single and len(parts) > 1:
            raise UsageError(f"{chosen} is split into {len(parts)} texts", remedy="name a folder")
    return [*own, *(text for p in claims for text in _claims(f"{name}.{_file_name(p)}", claims[p]))], too_large


def _claims(name: str, texts: Sequence[Promela]) -> Iterator[tuple[str, str]]:
    """The texts of a temporal property, numbered if there are several."""
    for number, text in enumerate(texts, 1):
        yield (f"{name}-{number}" if len(texts) > 1 else name), text.text


def _clauses(system: System, properties: Sequence[str]) -> list[tuple[str, str]]:
    """A text for each (chosen) property."""
    clauses = chc(system)
    for chosen in properties:
        if chosen not in clauses.kinds:
            raise UsageError(f"{chosen} is not a property of states or steps", remedy="use streamproof check")
    return [(_file_name(name), text) for name, text in clauses.texts.items() if not properties or name in properties]


def _graph(system: System, options: SearchOptions, limit: int) -> str:
    """The graph of reachable states. Raises `TooLarge` for more than `limit` states, after visiting one more."""
    most = limit + 1 if options.max_states is None else min(options.max_states, limit + 1)
    found = CHECKS["explicit"].run(system, replace(options, max_states=most))
    states = explored(found)
    assert states is not None, "the explicit engine visits states"
    return search_dot(states.system, states.states(), found.findings, limit=limit)


def _traces(system: System, form: str, options: SearchOptions) -> Iterator[tuple[str, str]]:
    """The confirmed traces of the chosen properties. Raises `NoTrace` if there is none."""
    result = CHECKS["explicit"].run(system, options)
    if result.interrupted:
        raise KeyboardInterrupt
    if result.mistake is not None:
        raise result.mistake.error
    found = [finding for finding in result.findings if finding.trace is not None]
    if not found:
        facts = "; ".join(f"{f.property} {f.text()}: {f.because}" for f in result.findings)
        decided = all(f.verdict is not Verdict.INCONCLUSIVE for f in result.findings)
        raise NoTrace(f"no property has a trace ({facts})", decided=decided)
    for finding in found:
        error = confirm_finding(system, finding, "explicit")
        assert finding.trace is not None, "chosen above"
        prop = None if error else system.property(finding.property)
        yield finding.property, TRACES[form](system, finding.trace, prop)
