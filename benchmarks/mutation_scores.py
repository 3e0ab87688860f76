"""Judge the mutants of every bundled model by its properties, and write docs/mutation-scores.md.

    python benchmarks/mutation_scores.py [--seconds 60] [--states 60000] [--only MODEL ...] [--again] [--write]

Each model runs at its small size, in a process of its own. Its mutants are judged in their order until the seconds of
processor time are over; a model with more states is not run. Survivors are classified by a comparison of all their
behaviours with the model's.
Results are kept in build/mutation_scores/, so that a run that was ended goes on; `--write` makes the page of what is there,
and keeps the lines of other models.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from streamproof.base.errors import StreamproofError
from streamproof.base.options import SearchOptions
from streamproof.base.processes import Ended, in_processes
from streamproof.difference.behaviours import ACTIONS, compare_behaviours
from streamproof.model_registry import find
from streamproof.mutation.judging import ANSWERS, SURVIVED, JudgedMutant, mutate
from streamproof.mutation.mutants import Mutant, mutants
from streamproof.system.model import System

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "build" / "mutation_scores"
PAGE = ROOT / "docs" / "mutation-scores.md"
SMALL = "small"

FAIRNESS, NARROWER, SAME_ACTIONS, WIDER, UNCLASSIFIED = "fairness", "narrower", "same actions", "wider", "unclassified"
CLASSES = {
    NARROWER: "every behaviour of the mutant is one of the model, so that no safety property that holds of the model can "
    "notice it: only `@reachable`, temporal properties, deadlock and termination can",
    FAIRNESS: "the mutant has the same steps and less fairness: no temporal property needs it",
    SAME_ACTIONS: "the mutant takes the same sequences of actions; it differs in values alone",
    WIDER: "the mutant has behaviours that the model lacks: the specification does not exclude them",
    UNCLASSIFIED: "the time was over before the comparison",
}
"""The classes of survivors, and what each says."""


def classified(system: System, mutant: Mutant, options: SearchOptions) -> str:
    """The class of a survivor, by all behaviours of both."""
    if mutant.kind == "fairness":
        return FAIRNESS
    found = compare_behaviours(system, mutant.system, options)
    if found.stopped is not None:
        return UNCLASSIFIED
    if not found.gained:
        return NARROWER
    seen = compare_behaviours(system, mutant.system, options, view=ACTIONS)
    return SAME_ACTIONS if seen.stopped is None and not seen.gained and not seen.lost else WIDER


def judge(job: tuple[str, float, int]) -> dict[str, Any]:
    """The result of one model."""
    name, seconds, states = job
    end = time.process_time() + seconds
    target = find(name)
    sizes = target.variant(None).sizes
    try:
        system = target.system(None, dict(sizes.get(SMALL, {})))
        every = list(mutants(system))
        options = SearchOptions(max_states=states, time_limit=2 * seconds)
        found = mutate(system, options, only=lambda mutant: time.process_time() < end)
    except StreamproofError as error:
        return {"model": name, "why": error.message.replace("\n", " ")}
    finish = time.process_time() + seconds
    rows = [row(system, one, options, finish) for one in found.judged]
    return {
        "model": name,
        "size": SMALL if SMALL in sizes else "default",
        "states": found.states,
        "mutants": len(every),
        "properties": list(found.properties),
        "idle": list(found.idle),
        "judged": rows,
    }


def row(system: System, one: JudgedMutant, options: SearchOptions, finish: float) -> dict[str, Any]:
    """A judged mutant as JSON data."""
    kind = None
    if one.answer == SURVIVED:
        left = finish - time.process_time()
        kind = (
            UNCLASSIFIED
            if left <= 0
            else classified(system, one.mutant, SearchOptions(options.properties, max_states=50_000, time_limit=left))
        )
    return {
        "mutant": one.mutant.label,
        "kind": one.mutant.kind,
        "answer": one.answer,
        "class": kind,
        "by": list(one.by),
    }


def run(names: list[str], seconds: float, states: int, *, again: bool) -> None:
    """Judges the models that have no result yet."""
    KEPT.mkdir(parents=True, exist_ok=True)
    left = [n for n in names if again or not (KEPT / f"{n}.json").exists()]
    for (name, *_), result in in_processes(judge, [(n, seconds, states) for n in left], 1, "mutants of a model"):
        if result is None or isinstance(result, Ended):
            result = {"model": name, "why": "its process ended early"}
        (KEPT / f"{name}.json").write_text(json.dumps({**result, "seconds": seconds, "limit": states}) + "\n")
        counts = Counter(one["answer"] for one in result.get("judged", ()))
        print(f"{name}: {result.get('why') or dict(counts)}", flush=True)


# --- the page


def cells(result: dict[str, Any]) -> str:
    """The row of a model."""
    judged = result["judged"]
    counts = Counter(one["answer"] for one in judged)
    classes = Counter(one["class"] for one in judged if one["class"])
    different = len(judged) - counts["equivalent"] - counts["undecided"]
    score = f"{100 * counts['killed'] / different:.0f} %" if different else "none"
    of = f"{len(judged)} of {result['mutants']}" if len(judged) < result["mutants"] else str(result["mutants"])
    name = f"`{result['model']}`" + ("" if result["size"] == SMALL else " (default)")
    parts = (
        name,
        f"{result['states']:,}",
        of,
        *(str(counts[a]) for a in ANSWERS),
        score,
        *(str(classes[c]) for c in CLASSES),
    )
    return f"| {' | '.join(parts)} |"


def lines(results: list[dict[str, Any]]) -> tuple[dict[str, str], ...]:
    """Model -> its line, in each list of the page: the table, idle properties, wider survivors, models that were not run."""
    table: dict[str, str] = {}
    idle: dict[str, str] = {}
    wider: dict[str, str] = {}
    others: dict[str, str] = {}
    for r in results:
        name = f"`{r['model']}`"
        if not r.get("judged"):
            others[name] = f"* {name}: {r.get('why', 'no mutant was judged within the time')}"
            continue
        table[name] = cells(r)
        if r["idle"]:
            idle[name] = f"* {name}: {', '.join(f'`{prop}`' for prop in r['idle'])}"
        texts = [f"`{one['mutant']}`" for one in r["judged"] if one["class"] == WIDER]
        if texts:
            wider[name] = f"* {name}: {'; '.join(texts)}"
    return table, idle, wider, others


def kept_lines(text: str, without: set[str]) -> tuple[dict[str, str], ...]:
    """The lines of a page, as `lines`, about models that have no result now."""
    parts = re.split(r"^## .*$", text, flags=re.M)
    found = ({m[1]: m[0] for m in re.finditer(r"^[|*] (`[\w.]+`).*$", part, re.M)} for part in parts)
    return tuple({name: line for name, line in part.items() if name not in without} for part in found)


def page(old: str, results: list[dict[str, Any]], names: list[str], seconds: float, limit: int) -> Iterator[str]:
    """The lines of the page: models without a result now keep theirs of the old page."""
    before = kept_lines(old, {f"`{r['model']}`" for r in results})
    now = lines(results)
    table, idle, wider, others = ({**a, **b} for a, b in zip(before, now, strict=True))
    for name in (f"`{n}`" for n in names):
        if name not in table and name not in others:
            others[name] = f"* {name}: not run"
    rows = [[int(cell.split()[0].replace(",", "")) for cell in line.split("|")[3:8]] for line in table.values()]
    judged, killed, survived, equivalent, _ = (sum(column) for column in zip(*rows, strict=True))
    yield "# Mutation scores of the bundled models"
    yield ""
    yield (
        f"[`streamproof mutate`](how-to-mutate.md) changed the rules of {len(table)} of the {len(names)} bundled models in "
        f"{judged:,} ways, one at a time. The properties"
    )
    share = 100 * killed / (killed + survived)
    yield f"of the models notice {killed:,} of the {killed + survived:,} changes that make a difference: {share:.1f} %."
    yield f"{equivalent:,} mutants are proved to be equivalent."
    yield ""
    yield "`python benchmarks/mutation_scores.py --write` wrote this page. Each model runs at its small size, those without"
    yield (
        f"sizes at their defaults, with at most {limit:,} states and {seconds:.0f} seconds of processor time for "
        "its mutants, in their order."
    )
    yield "*Mutants* says how many were judged where the time was over before the last one. The variants of a model, which"
    yield "break its rules on purpose, are not counted."
    yield ""
    yield "* *Equivalent*: the same initial states, and the same steps from every reachable state. *Undecided*: a limit."
    yield "* *Score*: killed mutants of those that are killed or survive."
    yield "* Survivors are classified by a [comparison](how-to-diff.md) of all behaviours of the mutant with the model's:"
    for name, text in CLASSES.items():
        yield f"  *{name}*: {text}."
    yield ""
    yield "Models of public specifications (`reference.*`) have the properties of their publications."
    yield ""
    yield f"| model | states | mutants | {' | '.join(ANSWERS)} | score | {' | '.join(CLASSES)} |"
    yield "|---|--:|--:|" + "--:|" * (len(ANSWERS) + 1 + len(CLASSES))
    yield from (table[name] for name in sorted(table, key=lambda n: n.strip("`")))
    for title, text, listed in (
        (
            "Properties that notice no mutant",
            "Among the mutants that were judged. It may be weaker than it looks, or follow from types of variables.",
            idle,
        ),
        ("Survivors that are wider", "What the specifications do not exclude, in the words of `mutate`:", wider),
        ("Models that were not run", "", others),
    ):
        yield ""
        yield f"## {title}"
        yield ""
        if text:
            yield text
            yield ""
        yield from (listed[name] for name in sorted(listed, key=lambda n: n.strip("`")))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--states", type=int, default=60_000)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    every = sorted(entry.name for entry in entry_points(group="streamproof.models"))
    if given.only != []:
        run(given.only or every, given.seconds, given.states, again=given.again)
    if given.write:
        kept = [KEPT / f"{n}.json" for n in every]
        results = [json.loads(p.read_text()) for p in kept if p.exists()]
        old = PAGE.read_text(encoding="utf-8")
        PAGE.write_text("\n".join(page(old, results, every, given.seconds, given.states)) + "\n", encoding="utf-8")
        print(PAGE)


if __name__ == "__main__":
    main()
