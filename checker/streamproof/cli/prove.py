"""``streamproof prove``: safety for every behaviour, however long, by induction."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from streamproof import interrupts
from streamproof.base.errors import Exit, StreamproofError, UsageError
from streamproof.base.files import CERTIFICATE, expect_writable
from streamproof.base.options import MOST_PATIENCE, SOLVER_DEPTH, SearchOptions, flag, flag_words
from streamproof.base.records import dataclass, replace
from streamproof.base.text import BLANK, Line, StyledText, line
from streamproof.cli.answer import (
    Output,
    Request,
    cautioned,
    certificate_json,
    judged_beside,
    print_certificate,
    print_left_out,
    trace_folder,
)
from streamproof.cli.arguments import certificate_flag, limited, part, verb
from streamproof.cli.outputs import expect_json_writable, people
from streamproof.cli.selection import ModelArguments
from streamproof.cli.ticking import Ticking
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
from streamproof.selection import Selection
from streamproof.system.model import Kind, System
from streamproof.system.sorts import show
from streamproof.system.verdict import Verdict
from streamproof.traces.places import changes
from streamproof.transform.unbounded import Unbounded, as_declared

if TYPE_CHECKING:
    from streamproof.symbolic.induction import Cti
    from streamproof.symbolic.proof import Proof

MAX_SHOWN = 2
"""Largest number of counterexamples to induction that are printed; each is one state and a few steps."""
MOST_LEMMAS = 12
"""Largest number of discovered lemmas that are printed; the JSON has all of them."""


USUAL = SearchOptions(max_depth=SOLVER_DEPTH + 1)
"""The options that are not given."""


@dataclass(frozen=True, slots=True)
class ProveArguments:
    """The arguments of the verb."""

    chosen: ModelArguments = part(ModelArguments)
    engine: str = flag(
        "Induction with the model's lemmas; also with discovered lemmas; IC3/PDR; or all.", choices=PROVERS
    )
    options: SearchOptions = part(
        SearchOptions,
        *("max_k", "max_depth", "query_limit", "time_limit"),
        usual=USUAL,
        max_depth="Largest number of steps of counterexamples.",
        query_limit="Stop one query to the solver after SECONDS.  "
        f"[default: {QUERY_SECONDS:g}, with --any {ANY_QUERY_SECONDS:g}]",
        time_limit={
            "help": "Stop after SECONDS; inf for never.  "
            f"[default: {SECONDS:g}, with --rank {RANK_SECONDS:g} for each property]",
            "read": float,
        },
    )
    free: tuple[str, ...] = flag(
        "Prove for every value of these parameters, not for one instance.", "--any", unit="NAME[,NAME]"
    )
    rank: str | None = flag(
        'Prove a leads_to by this ranking function, of variables and parameters, or a @measure; "" searches for one.',
        unit="EXPRESSION",
    )
    certificate: Path | None = certificate_flag()
    output: Output = part(Output, quiet="No progress, no counterexamples, only the outcome.")


@verb(
    "prove",
    ProveArguments,
    example="streamproof prove failover --property stops_before_restart",
)
@limited(SECONDS)
@as_declared()
def command(given: ProveArguments) -> int:
    """Prove the invariants, step properties and deadlock freedom of MODEL for all behaviours, by k-induction.

    With --property also temporal properties: no fair cycle violates them. The lemmas of the model are proved and used. For a
    property that is not inductive, the output has a counterexample to induction, and prove searches for a counterexample
    from an initial state, which the interpreter replays. With --any, the proof is for every value of parameters within their
    limits, and lemmas are discovered. Ends with 0 when all properties are proved.
    """
    begun, engine, rank, free, certificate = (
        time.perf_counter(),
        given.engine,
        given.rank,
        given.free,
        given.certificate,
    )
    output, auto = given.output, next(iter(PROVERS))
    json_to, properties = output.json_to, given.chosen.properties
    selection = given.chosen.select()
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
    words = (*(("--rank", rank) if rank is not None else ()), *flag_words(given.options, USUAL))
    words = (*(("--any", ",".join(names)) if names else ()), *(("--engine", engine) if engine != auto else ()), *words)
    # Every proof is finally checked by induction, whatever engine proposed it.
    name = "induction" if engine == auto else engine
    request = Request("prove", name, selection, words, trace_folder(output.out, selection), output, begun)
    request = replace(request, cautions=cautioned(selection))
    patience = None if given.options.query_limit is None else min(given.options.query_limit, MOST_PATIENCE)
    options = replace(given.options, properties=tuple(chosen), query_limit=patience)
    try:
        if rank is not None or names:
            _expect_alone(selection)
        if rank is not None:
            from streamproof.cli.prove_rank import answer_ranked

            return answer_ranked(request, names, rank, options, certificate)
        system = _instance(request, names)
        if system is None:
            or_any = ", or --any" if names else ""
            for name in ("--k", "--depth"):
                if name in flag_words(options, USUAL):
                    raise UsageError(f"{name} is for proofs of one instance", remedy=f"leave out {name}{or_any}")
            if engine != auto:
                what = "--any" if names else "a proof over unbounded integers"
                raise UsageError(f"{what} does not support --engine", remedy=f"leave out --engine{or_any}")

            from streamproof.cli.prove_any import answer_any

            return answer_any(request, names, left_out, options, certificate)
        if certificate is not None and any(system.property(name).kind is Kind.TEMPORAL for name in chosen):
            raise UsageError(
                "a proof of a temporal property has no certificate", remedy="check --certificate FILE writes one"
            )
        ready = time.perf_counter() - begun
        options = replace(options, time_limit=seconds_of(options.time_limit))
        with Ticking(live=not output.quiet) as progress:
            prover = PROVERS[engine]
            beside = judged_beside(request, lambda s, _: prover.run(s, options, on_progress=progress))
            proof = cast("Proof", prover.run(system, options, on_progress=progress))
        times = replace(proof.seconds, compile=ready)
        proof = replace(proof, seconds=times)
        if not output.quiet:
            _show_open(system, proof, json_to)
            print_lines(_discovered(proof), people(json_to))
        with interrupts.unlimited():  # as the answer
            more: dict[str, Any] = {}
            if certificate is not None:
                from streamproof.api.certificates import certify_proved

                written = certify_proved(certificate, selection, system, proof)
                more["certificate"] = certificate_json(written)
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
