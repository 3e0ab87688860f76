"""``streamproof prove``: safety for every behaviour, however long, by induction."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from streamproof import interrupts
from streamproof.base.errors import Exit, StreamproofError, UsageError
from streamproof.base.files import CERTIFICATE, expect_writable
from streamproof.base.options import MOST_PATIENCE, SOLVER_DEPTH, STRENGTH, SearchOptions
from streamproof.base.records import replace
from streamproof.base.text import BLANK, Line, StyledText, line
from streamproof.cli.answer import Request, out_option, print_left_out, trace_folder
from streamproof.cli.beside import cautioned, judged_beside
from streamproof.cli.certificate import certificate_json, certify_proved, print_certificate
from streamproof.cli.outputs import ci_options, expect_json_writable, people
from streamproof.cli.selection import (
    certificate_option,
    choice_option,
    json_option,
    limited_by,
    model_options,
    number_option,
    property_option,
    timeout_option,
)
from streamproof.cli.ticking import Ticking
from streamproof.cli.verbs import SecondsType, Verb
from streamproof.engines.proving import (
    ANY_QUERY_SECONDS,
    BY_NAME,
    PROVABLE,
    QUERY_SECONDS,
    RANK_SECONDS,
    SECONDS,
    seconds_of,
)
from streamproof.engines.registry import PROVERS
from streamproof.report.console import print_lines
from streamproof.selection import Selection, select
from streamproof.system.model import Kind, System
from streamproof.system.sorts import show
from streamproof.system.verdict import Verdict
from streamproof.traces.places import changes
from streamproof.transform.unbounded import Unbounded

if TYPE_CHECKING:
    from streamproof.symbolic import Cti, Proof

MAX_SHOWN = 2
"""Largest number of counterexamples to induction that are printed; each is one state and a few steps."""
MOST_LEMMAS = 12
"""Largest number of discovered lemmas that are printed; the JSON has all of them."""


@click.command(
    "prove",
    cls=Verb,
    short_help="Prove safety by induction, without a bound.",
    example="streamproof prove failover --property stops_before_restart",
)
@model_options
@property_option
@choice_option(
    "--engine",
    choices=PROVERS,
    help="Induction with the model's lemmas; also with discovered lemmas; IC3/PDR; or all.",
)
@number_option("--k", help="Strength of induction.", default=STRENGTH)
@number_option("--depth", help="Largest number of steps of counterexamples.", least=0, default=SOLVER_DEPTH)
@click.option(
    "--any",
    "free",
    metavar="NAME[,NAME]",
    multiple=True,
    help="Prove for every value of these parameters, not for one instance.",
)
@click.option(
    "--rank",
    metavar="EXPRESSION",
    help='Prove a leads_to by this ranking function, of variables and parameters; "" searches for one.',
)
@click.option(
    "--query-timeout",
    type=SecondsType(),
    metavar="SECONDS",
    help=f"Stop one query to the solver after SECONDS.  [default: {QUERY_SECONDS:g}, with --any {ANY_QUERY_SECONDS:g}]",
)
@timeout_option(
    f"Stop after SECONDS; inf for never.  [default: {SECONDS:g}, with --rank {RANK_SECONDS:g} for each property]"
)
@out_option
@certificate_option
@click.option("--full", is_flag=True, help="Show the whole state after every step of a counterexample.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no counterexamples, only the outcome.")
@json_option
@ci_options
@limited_by("timeout", SECONDS)
def command(
    model: str,
    variant: str | None,
    size: str | None,
    parameters: Sequence[str],
    properties: Sequence[str],
    engine: str,
    k: int,
    depth: int,
    free: Sequence[str],
    rank: str | None,
    query_timeout: float | None,
    timeout: float | None,
    out: Path | None,
    certificate: Path | None,
    full: bool,
    quiet: bool,
    json_to: str | None,
) -> int:
    """Prove the invariants, step properties and deadlock freedom of MODEL for all behaviours, by k-induction.

    With --property also temporal properties: no fair cycle violates them. The lemmas of the model are proved and used. For a
    property that is not inductive, the output has a counterexample to induction, and prove searches for a counterexample
    from an initial state, which the interpreter replays. With --any, the proof is for every value of parameters within their
    limits, and lemmas are discovered. Ends with 0 when all properties are proved.
    """
    begun, auto = time.perf_counter(), next(iter(PROVERS))
    patience = None if query_timeout is None else min(query_timeout, MOST_PATIENCE)
    selection = select(model, variant, size, parameters, properties)
    wanted = (Kind.TEMPORAL,) if rank is not None else PROVABLE
    chosen = [p.name for p in selection.listed() if properties or p.kind in wanted]
    left_out = [p.name for p in selection.listed() if p.name not in chosen]
    by_name = [p.name for p in selection.listed() if p.name in left_out and p.kind in BY_NAME]
    if not chosen:
        from streamproof.any.every_size import elsewhere

        what = "temporal property" if rank is not None else "invariant, step property or deadlock"
        others = {p.name: elsewhere(selection, p.kind, free) for p in selection.listed()}
        remedy = "; ".join(f"{name}: {advice}" for name, advice in others.items()) or "mark one, as @invariant"
        if {*others.values()} == {"use streamproof check"}:
            remedy = f"streamproof check decides the others: {', '.join(others)}"
        raise UsageError(
            f"{selection.target.name} has no {what} to prove", remedy="leave out --rank" if rank is not None else remedy
        )
    expect_json_writable(json_to, "streamproof.prove/1")
    if certificate is not None:
        expect_writable(certificate, CERTIFICATE)
    names = tuple(name for text in free for name in text.split(",") if name)
    if free and not names:
        raise UsageError(f"--any {free[0]!r} names no parameter", remedy="write --any NAME[,NAME], or leave it out")
    given = {
        "--k": (k, STRENGTH),
        "--depth": (depth, SOLVER_DEPTH),
        "--query-timeout": (query_timeout, None),
        "--timeout": (timeout, None),
    }
    words = tuple(w for name, (v, usual) in given.items() if v != usual for w in (name, f"{v:g}"))
    words = (*(("--rank", rank) if rank is not None else ()), *words)
    words = (*(("--any", ",".join(names)) if names else ()), *(("--engine", engine) if engine != auto else ()), *words)
    # Every proof is finally checked by induction, whatever engine proposed it.
    name = "induction" if engine == auto else engine
    request = Request("prove", name, selection, words, trace_folder(out, selection), json_to, full, quiet, begun)
    request = replace(request, cautions=cautioned(selection))
    try:
        if rank is not None or names:
            _expect_alone(selection)
        if rank is not None:
            if certificate is not None:
                raise UsageError("a proof by a ranking function has no certificate", remedy="leave out --certificate")
            from streamproof.cli.prove_rank import answer_ranked

            limit = None if timeout is None else min(timeout, MOST_PATIENCE)
            return answer_ranked(request, names, chosen, rank, patience, limit)
        system = _instance(request, names)
        if system is None:
            or_any = ", or --any" if names else ""
            for name in ("--k", "--depth"):
                if given[name][0] != given[name][1]:
                    raise UsageError(f"{name} is for proofs of one instance", remedy=f"leave out {name}{or_any}")
            if engine != auto:
                what = "--any" if names else "a proof over unbounded integers"
                raise UsageError(f"{what} does not support --engine", remedy=f"leave out --engine{or_any}")

            from streamproof.cli.prove_any import answer_any

            return answer_any(request, names, chosen, left_out, patience, seconds_of(timeout), certificate)
        if certificate is not None and any(system.property(name).kind is Kind.TEMPORAL for name in chosen):
            raise UsageError(
                "a proof of a temporal property has no certificate", remedy="check --certificate FILE writes one"
            )
        ready = time.perf_counter() - begun
        options = SearchOptions(
            properties=tuple(chosen),
            max_depth=depth + 1,
            time_limit=seconds_of(timeout),
            max_k=k,
            query_limit=patience,
        )
        with Ticking(live=not quiet) as progress:
            prover = PROVERS[engine]
            beside = judged_beside(request, out, lambda s, _: prover.run(s, options, on_progress=progress))
            proof = cast("Proof", prover.run(system, options, on_progress=progress))
        times = replace(proof.seconds, compile=ready)
        proof = replace(proof, seconds=times)
        if not quiet:
            _show_open(system, proof, json_to)
            print_lines(_discovered(proof), people(json_to))
        with interrupts.unlimited():  # as the answer
            written = None if certificate is None else certify_proved(certificate, selection, system, proof)
        more = {} if certificate is None else {"certificate": certificate_json(written)}
        code = request.answer(system, proof, {**_more(system, proof, left_out), **more}, beside=beside)
    except StreamproofError as error:
        request.fail(error)
        raise
    print_left_out(by_name, json_to, "choose them with --property, or use streamproof check", "not selected")
    print_left_out([name for name in left_out if name not in by_name], json_to)
    if certificate is not None:
        print_certificate(written, selection, json_to)
    return code


def _expect_alone(selection: Selection) -> None:
    """Raises `UsageError` if a variant is to be judged beside the model itself."""
    for other in selection.beside():
        why = f"variant {other.variant} is judged beside this job, but not with --any and --rank"
        raise UsageError(why, remedy=f"leave them out, or add --variant {other.variant}")


def _instance(request: Request, free: Sequence[str]) -> System | None:
    """The system of the proof; None if free parameters or unbounded variables make it infinite.

    With free parameters, the instance with the given and default values is compared with plain Python, if it exists.
    """
    try:
        system = request.system()
    except Unbounded:
        return None
    except StreamproofError as error:
        if not free or error.exit_code is Exit.DISAGREE:
            raise
        return None
    return None if free else system


def _more(system: System, proof: Proof, left_out: Sequence[str]) -> dict[str, Any]:
    """The part of the JSON that only proofs have."""
    return {
        "k": dict(proof.k),
        "lemmas": [
            {"name": f.property, "verdict": f.verdict.value, "because": f.because, "used": f.property in proof.used}
            for f in proof.lemmas
        ],
        "engines": {name: engine.value for name, engine in proof.engines.items()},
        "discovered": [{"name": m.name, "text": m.text, "source": m.source} for m in proof.discovered],
        "confirmed": proof.confirmed,
        "depth": proof.depth,
        "queries": proof.queries,
        "counterexamples_to_induction": [
            {
                "of": cti.of,
                "k": cti.k,
                "because": cti.because,
                "first": {v.name: show(v.sort, value) for v, value in system.named(cti.trace.states[0])},
                "steps": [instance.label for instance in cti.trace.steps],
            }
            for cti in proof.ctis.values()
        ],
        "not_for_this_engine": list(left_out),
    }


def _discovered(proof: Proof) -> Iterator[Line]:
    """The discovered lemmas used by the proof."""
    if not proof.discovered:
        return
    yield line(StyledText("Discovered, proved and used:", "title"))
    for lemma in proof.discovered[:MOST_LEMMAS]:
        yield line(StyledText(lemma.name, "place"), "  ", lemma.text, indent=2, hang=4)
    left = len(proof.discovered) - MOST_LEMMAS
    if left > 0:
        yield line(f"and {left:,} more; --json FILE has them all.", indent=2)
    yield BLANK


def _show_open(system: System, proof: Proof, json_to: str | None) -> None:
    """Print the counterexamples to induction of the open properties and lemmas."""
    undecided = {f.property for f in (*proof.findings, *proof.lemmas) if f.verdict is Verdict.INCONCLUSIVE}
    known = {f.property for f in (*proof.findings, *proof.lemmas)}
    ctis = [cti for cti in proof.ctis.values() if cti.of in undecided or (undecided and cti.of not in known)]
    for cti in ctis[:MAX_SHOWN]:
        print_lines((*_not_inductive(system, cti), BLANK), people(json_to))
    others = [cti.of for cti in ctis[MAX_SHOWN:]]
    if others:
        some = f"{len(others)} more {'is' if len(others) == 1 else 'are'} not inductive"
        text = f"{some} ({', '.join(others)}); --property NAME shows its counterexample to induction."
        print_lines((line(text), BLANK), people(json_to))


def _not_inductive(system: System, cti: Cti) -> Iterator[Line]:
    """A counterexample to induction: its first state, which may be unreachable, and the steps that break the claim."""
    yield line(StyledText("Not inductive: ", "title"), StyledText(cti.of, "failed"), f" (k={cti.k})")
    yield line("From this state, which satisfies all assumptions and may be unreachable:", indent=2)
    for variable, value in system.named(cti.trace.states[0]):
        yield line(StyledText(variable.name, "place"), " = ", show(variable.sort, value), indent=6)
    for number, instance in enumerate(cti.trace.steps, start=1):
        yield line(StyledText(f"{number:>4}", "faint"), "  ", StyledText(instance.label, "action"), hang=8)
        for change in changes(system, cti.trace.states[number - 1], cti.trace.states[number]):
            yield line(str(change), indent=8)
    yield line(StyledText(cti.because.partition("\n")[0], "failed"), indent=2, hang=2)
    yield line("A lemma that excludes the first state, or a larger --k, may complete the proof.", indent=2, hang=2)
