"""``streamproof export``: files with traces, graphs and models for other tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from streamproof import __version__
from streamproof.api.export import FORMS, MODELS, exported
from streamproof.api.subject import ChosenSystem
from streamproof.base.errors import Exit, UsageError
from streamproof.base.files import DRAWING, Folder, expect_writable, form_of, write
from streamproof.base.options import SearchOptions, flag
from streamproof.base.records import dataclass
from streamproof.base.text import inner, standard_output
from streamproof.cli.answer import cautioned
from streamproof.cli.arguments import json_flag, part, verb
from streamproof.cli.outputs import STANDARD, expect_json_writable, people, write_json
from streamproof.cli.selection import ModelArguments
from streamproof.exchange.drawings.dot import MAX_STATES, render_svg
from streamproof.exchange.smt.smtlib import DEPTH
from streamproof.system.model import parameter_json

SCHEMA = "streamproof.export/1"


@dataclass(frozen=True, slots=True)
class ExportArguments:
    """The arguments of the verb."""

    chosen: ModelArguments = part(ModelArguments)
    actions: tuple[str, ...] = flag(
        'Export the trace of these actions, not of a property: "send(c=1)"; repeated, in order.',
        "--action",
        unit="LABEL",
    )
    form: str = flag("Output format.", "--format", choices=FORMS, required=True)
    out: Path = flag("Output file or folder.", unit="FILE|DIR", required=True)
    limit: int = flag("Largest number of states of a graph.", default=MAX_STATES)
    depth: int = flag("With smtlib: largest number of steps of the queries.", least=0, default=DEPTH)
    svg: bool = flag("With dot: also draw it with Graphviz.")
    options: SearchOptions = part(
        SearchOptions,
        *("max_states", "time_limit", "view"),
        max_states="Stop the search after N states.",
        time_limit="Stop the search after SECONDS.",
        view="With tla: let TLC identify states by these variables and derived values, with commas between them.",
    )
    json_to: str | None = json_flag()


@verb(
    "export",
    ExportArguments,
    example="streamproof export reference.die_hard --format itf --property measured --out traces",
)
def command(given: ExportArguments) -> int:
    """Write a trace of MODEL, the graph of its reachable states, or MODEL itself for another checker.

    itf: the counterexample or witness of each property that has one, or of the chosen properties. sequence: the same as
    sequence diagrams (SVG). html: the same as pages with explanation, diagram and states. dot: the graph of reachable
    states; with --property or --action, the trace. promela: the model with its properties, for Spin, and a separate text
    for each temporal property. tla: a module and its configurations, for TLC and Apalache. smtlib: queries for Z3 or
    cvc5. chc: Horn clauses for Spacer or Eldarica, a text for each property. The last four need no search. --out is a
    file for a single trace, graph or model (a name with a suffix, or - for standard output), otherwise a folder.
    """
    selection, properties, options = given.chosen.select(), given.chosen.properties, given.options
    form, actions, out, json_to = given.form, given.actions, given.out, given.json_to
    if actions and properties:
        raise UsageError("--action and --property exclude each other", remedy="give one of them")
    if given.svg and form != "dot":
        raise UsageError("--svg draws what --format dot writes", remedy="write --format dot --svg")
    if options.view is not None and form != "tla":
        raise UsageError(f"--format {form} has no view", remedy="leave out --view, or write --format tla")
    chooses = form in ("promela", "chc")
    if form in MODELS and (actions or (properties and not chooses) or options.max_states or options.time_limit):
        rest = "--action, --max-states" if chooses else "--property, --action, --max-states"
        raise UsageError(
            f"--format {form} writes the whole model and searches nothing", remedy=f"leave out {rest} and --timeout"
        )
    expect_json_writable(json_to, SCHEMA)
    place = ExportPlace(out, FORMS[form], given.svg)
    if form == "tla" and place.single:
        raise UsageError(f"{out} is a single file, and --format tla writes several", remedy="name a folder")
    place.expect_writable()
    if place.standard and json_to == STANDARD:
        raise UsageError("--out - and --json - write to the same place", remedy="name a file for one of them")
    cautions = cautioned(selection)
    system = selection.system()
    found = exported(
        ChosenSystem(selection, None, selection.properties, selection.listed()),
        system,
        form,
        actions,
        limit=given.limit,
        depth=given.depth,
        options=options,
        single=place.single,
    )
    module, documents = found.tla, list(found.texts.items())
    files = []
    for path in place.write(documents) if module is None else place.write_named(documents, module.module):
        people(STANDARD if place.standard else json_to).write(f"{path}\n")
        files.append(str(path))
    for why in found.left_out.values():
        people(STANDARD if place.standard else json_to).write(f"left out: {why}\n")
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "version": __version__,
        "model": selection.target.name,
        "variant": system.variant,
        "parameters": {name: parameter_json(value) for name, value in system.parameters.items()},
        "format": form,
        "files": files,
        "left_out": list(found.left_out),
        "warnings": list(cautions),
        "exit_code": int(Exit.HOLDS),
    }
    if module is not None:
        document["asked"] = [
            {
                "configuration": f"{run.name}.cfg",
                "module": f"{run.module}.tla",
                "name": claim.name,
                "property": claim.property,
                "violated_means": claim.means.value,
            }
            for run in module.runs
            for claim in run.claims
        ]
    write_json(document, json_to)
    return Exit.HOLDS


@dataclass(frozen=True, slots=True)
class ExportPlace:
    """The output of documents: one file if the name has a suffix, otherwise a folder."""

    out: Path
    suffix: str
    svg: bool

    @property
    def standard(self) -> bool:
        """Whether `out` is standard output."""
        return str(self.out) == STANDARD

    @property
    def single(self) -> bool:
        """Whether `out` names one file; names of models have dots too, and TLA+ always needs several files."""
        named = self.out.suffix in (".tla", ".cfg") if self.suffix == ".tla" else bool(self.out.suffix)
        return self.standard or (named and not self.out.is_dir())

    def expect_writable(self) -> None:
        """Raises `SystemFailure` if the output cannot be written, or would replace a foreign file."""
        if self.standard:
            if self.svg:
                raise UsageError("--svg writes a second file, and --out - is one place", remedy="name a file or folder")
            return
        expect_writable(self.out, form_of(self.suffix) if self.single else None)
        if self.single and self.svg:
            expect_writable(self.out.with_suffix(".svg"), DRAWING)

    def write(self, documents: Sequence[tuple[str, str]]) -> Iterator[Path]:
        """Write each document (a name, a text), with its drawing; yields the paths."""
        if self.single and len(documents) > 1:
            raise UsageError(
                f"{self.out} is one file, and there are {len(documents)} traces: {', '.join(n for n, _ in documents)}",
                remedy="choose one with --property, or name a folder",
            )
        folder, suffixes = Folder(self.out), (self.suffix, ".svg") if self.svg else (self.suffix,)
        if not self.single:
            folder.announce({f"{name}{suffix}": name for name, _ in documents for suffix in suffixes})
        for name, text in documents:
            texts = (text, render_svg(text)) if self.svg else (text,)
            for suffix, content in zip(suffixes, texts, strict=True):
                if self.standard:
                    inner(standard_output()).write(content)
                elif self.single:
                    path = self.out if content is text else self.out.with_suffix(suffix)
                    write(path, content, form_of(suffix))
                    yield path
                else:
                    yield folder.write(f"{name}{suffix}", content, name)

    def write_named(self, documents: Sequence[tuple[str, str]], about: str) -> Iterator[Path]:
        """Write files with fixed names, and remove older files about the same subject; yields paths."""
        folder = Folder(self.out)
        folder.expect_writable(name for name, _ in documents)
        for name, text in documents:
            yield folder.write(name, text, about)
        folder.forget([about])
