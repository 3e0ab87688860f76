"""Random models, oddly spelt, through every verb and its options: each answer is compared with plain Python's.

Plain Python explores the model by running its own functions (`python_referee`). An answer may be open where the search was
cut or a proof failed; it may never differ.
"""

from __future__ import annotations

import io
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from forced_spilling import Spilling
from loading import load
from python_referee import SAFE, PythonModel, PythonSearch, explored
from respelled import respelled
from streamproof import ModelError
from streamproof.cli.verbs import run
from streamproof.exchange.itf.reading import read_itf
from streamproof.system import Exit, Kind, System
from streamproof.system.reference import Reference, reference

OPEN = {"inconclusive", "error"}
REFUSED = (
    "in a part of a composition",
    "is empty after its first use",
    "is true in no state",
    "may get several values in one step",
    "in every state",
    "perhaps, in",
)
"""Reasons for which a random model is refused."""


@dataclass(frozen=True)
class Subject:
    """One model, and what plain Python and the referee of temporal properties say of it."""

    path: str
    words: tuple[str, ...]
    """How the command line names it."""
    system: System
    python: PythonSearch
    everywhere: PythonSearch
    """What Python finds without the constraints."""
    referee: Reference
    random: Random
    done: tuple[str, ...]
    """How its spelling is unusual."""

    def right(self, name: str, kind: Kind) -> tuple[str, int | None] | None:
        """The verdict on a property, and the steps that show it; None if a mistake ends the search before."""
        if kind in (Kind.TEMPORAL, Kind.TERMINATION):
            if self.python.mistake is not None:
                return None
            decision = self.referee.decisions[name]
            return decision.verdict.value, None
        at, error = self.python.decided.get(name), self.python.errors.get(name)
        shown = "holds" if kind is Kind.REACHABLE else "violated"
        if at is not None:
            return shown, at
        if error is not None or self.python.mistake is not None:
            return None
        return ("violated" if kind is Kind.REACHABLE else "holds"), None


def answered(folder: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the JSON of a verb."""
    file = folder / "answer.json"
    file.unlink(missing_ok=True)
    text = io.StringIO()
    with redirect_stdout(text), redirect_stderr(text):
        code = run([*words, "--json", str(file)])
    assert code not in (Exit.SYSTEM, Exit.DISAGREE), text.getvalue()
    return code, json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"refused": text.getvalue()}


def judged(subject: Subject, answer: dict[str, Any], *, shortest: bool, cut: bool = False) -> Counter[str]:
    """Compares each row of an answer with what is right. `shortest`: counterexamples are shortest ones."""
    seen, kinds = Counter[str](), {p.name: p.kind for p in subject.system.properties}
    for row in answer["properties"]:
        name, found = row["name"], row["verdict"]
        right = subject.right(name, kinds[name])
        seen[f"{kinds[name].value} {found}"] += 1
        assert row["vacuous"] is not True or found == "holds"
        if name in subject.python.vague:
            continue
        if right is None:
            assert found in OPEN or subject.python.mistake is not None, row
            assert found != "holds" or kinds[name] is Kind.REACHABLE or name not in subject.python.errors, row
            continue
        verdict, steps = right
        if found in OPEN:
            assert found == verdict or cut or found == "inconclusive" or subject.python.mistake is not None, row
            continue
        assert found == verdict, (row, right)
        if steps is not None and row["trace"] is not None:
            length = row["trace"]["length"]
            assert (length == steps) if shortest else (length >= steps), (row, right)
        if steps is None and subject.python.cuts and not row["within"] and kinds[name] in SAFE:
            everywhere = subject.everywhere  # a verdict without reservation
            assert everywhere.cut or name not in everywhere.decided, row
    return seen


def traces_run(subject: Subject, answer: dict[str, Any], model: Any) -> int:
    """Every trace of an answer is a behaviour of the model as plain Python runs it, and `replay` accepts it."""
    count = 0
    for row in answer["properties"]:
        if row["trace"] is None or row["verdict"] == "error":
            continue
        path = Path(row["trace"]["file"])
        trace = read_itf(path, subject.system)
        states = trace.states if trace.loop is None else (*trace.states, trace.states[trace.loop])
        assert PythonModel(model, subject.system).runs(states) or states[-1] == states[-2], row
        text = io.StringIO()
        with redirect_stdout(text), redirect_stderr(text):
            assert run(["replay", str(path), "-q", "--model", *subject.words]) == 0, text.getvalue()
        count += 1
    return count


class Ways:
    """The verbs and options that are tried on one model."""

    def __init__(self, subject: Subject, model: Any, folder: Path) -> None:
        self.subject, self.model, self.folder = subject, model, folder
        self.number = 0

    def check(self, *options: str, shortest: bool = True, cut: bool = False) -> Counter[str]:
        """Check with options: verdicts, lengths, traces; without a reduction also counts and coverage."""
        code, answer = self.answer("check", *options)
        if "refused" in answer:
            assert code in (Exit.USAGE, Exit.TOO_LARGE, Exit.MALFORMED), answer["refused"]
            return Counter(refused=1)
        seen = judged(self.subject, answer, shortest=shortest, cut=cut)
        seen["traces"] += traces_run(self.subject, answer, self.model)
        if not cut and self.subject.python.mistake is None and "--property" not in options:
            self.covered(answer, reduced=any(r["applied"] for r in answer["reductions"]))
        return seen

    def covered(self, answer: dict[str, Any], *, reduced: bool) -> None:
        """What an answer says of states and actions, where it says it of all."""
        python, states, coverage = self.subject.python, answer["states"], answer["coverage"]
        decided = all(row["verdict"] == "violated" for row in answer["properties"])
        if decided or answer["stopped"] is not None:
            return  # the search may end early
        if not reduced:
            assert states["distinct"] == python.states
            assert answer["levels"] == ([n for n in python.inside if n] or [0]), (answer["levels"], python.inside)
        never = {a.name for a in self.subject.system.actions} - python.taken
        if coverage is not None and coverage["never_enabled"] is not None:
            assert {*coverage["never_enabled"]} <= never
            assert reduced or {*coverage["never_enabled"]} == never

    def answer(self, verb: str, *options: str) -> tuple[int, dict[str, Any]]:
        """Exit code and JSON of a verb on the model."""
        self.number += 1
        return answered(
            self.folder, verb, *self.subject.words, "-q", "--out", str(self.folder / f"out{self.number}"), *options
        )

    def one(self) -> str:
        """The name of some property."""
        return self.subject.random.choice([p.name for p in self.subject.system.properties])

    def limit(self) -> str:
        """Some number of states at which a search is cut."""
        return str(self.subject.random.randint(1, max(1, self.subject.python.states)))

    def python_tier(self) -> Counter[str]:
        """All properties in generated Python."""
        return self.check("--tier", "python")

    def compiled_tier(self) -> Counter[str]:
        """All properties in compiled code."""
        return self.check("--tier", "compiled", "--workers", self.subject.random.choice("12"))

    def partial_order(self) -> Counter[str]:
        """Stubborn sets, for all properties and for one."""
        return self.check("--por") + self.check("--por", "--property", self.one())

    def symmetry(self) -> Counter[str]:
        """One state of each orbit, perhaps with stubborn sets."""
        return self.check("--symmetry") + self.check("--symmetry", "--por", "--property", self.one())

    def cut(self) -> Counter[str]:
        """Cut at some number of states, and at a depth."""
        return self.check("--max-states", self.limit(), shortest=True, cut=True) + self.check("--depth", "2", cut=True)

    def first(self) -> Counter[str]:
        """Up to the first violation."""
        return self.check("--first", cut=True)

    def spill(self) -> Counter[str]:
        """On disk after a few states."""
        with pytest.MonkeyPatch.context() as patch:
            forced = Spilling(patch)
            forced.after(16, fill=8, piece=8, merge=16)
            disk = self.folder / "disk"
            seen = self.check("--tier", "compiled", "--memory", "4GB", "--spill", str(disk), cut=True)
        return seen + Counter({"on disk": forced.times > 0})

    def resume(self) -> Counter[str]:
        """A search that is cut, and continues from its checkpoint, perhaps with a reduction."""
        more = self.subject.random.choice([[], ["--por"], ["--symmetry"]])
        at = str(self.folder / "checkpoint")
        code, _ = self.answer("check", "--tier", "compiled", "--max-states", self.limit(), "--checkpoint", at, *more)
        if code != Exit.INCONCLUSIVE or not Path(at).exists():
            return Counter(uncut=1)
        return Counter(resumed=1) + self.check("--tier", "compiled", "--resume", at, *more)

    def bounded(self) -> Counter[str]:
        """Bounded model checking."""
        return self.check("--engine", "bmc", "--depth", "3", cut=True)

    def certificate(self) -> Counter[str]:
        """The certificate of a search is accepted."""
        file = str(self.folder / "certificate")
        seen = self.check("--certificate", file)
        if Path(file).exists():
            seen += self.verified(file)
        return seen

    def verified(self, file: str) -> Counter[str]:
        """A certificate that was written is accepted, with the right claims."""
        code, answer = answered(self.folder, "verify-certificate", file, "--model", self.subject.words[0])
        assert code == 0, answer
        kinds = {p.name: p.kind for p in self.subject.system.properties}
        for name, claim in answer["claims"].items():
            if name in self.subject.python.vague:
                continue
            right = self.subject.right(name, kinds[name])
            wanted = {"error"} if self.subject.python.mistake is not None or right is None else set[str]()
            assert claim in wanted | {right and right[0]}, (name, claim, right)
        return Counter(verified=1, claims=len(answer["claims"]))

    def prove(self) -> Counter[str]:
        """A proof, all properties or one, with its certificate."""
        file = str(self.folder / "proof")
        chosen = self.subject.random.choice([[], ["--property", self.one()]])
        engine = self.subject.random.choice(["auto", "induction", "pdr"])
        code, answer = self.answer(
            "prove", "--k", "2", "--depth", "3", "--timeout", "20", "--engine", engine, "--certificate", file, *chosen
        )
        if "refused" in answer:
            assert code in (Exit.USAGE, Exit.TOO_LARGE), answer["refused"]
            return Counter(refused=1)
        seen = judged(self.subject, answer, shortest=False, cut=True)
        return seen + (self.verified(file) if Path(file).exists() else Counter())

    def simulate(self) -> Counter[str]:
        """Random walks: nothing holds but what was reached."""
        _, answer = self.answer("simulate", "--walks", "20", "--steps", "20", "--seed", "1")
        seen = judged(self.subject, answer, shortest=False, cut=True)
        assert not any(row["verdict"] == "holds" and row["kind"] != "reachable" for row in answer["properties"])
        return seen

    def sweep(self) -> Counter[str]:
        """Two points of a sweep, one of which is this model."""
        where, variant = self.subject.words[0], [*self.subject.words[1:]]
        if "whole" in self.subject.done:
            return Counter(no_axis=1)
        code, answer = answered(
            self.folder,
            "sweep",
            where,
            *variant,
            "-q",
            "--out",
            str(self.folder / "sweep"),
            "-p",
            "n=2,3",
            "--workers",
            "1",
        )
        if "points" not in answer:
            return Counter(refused=1)
        chosen = [
            p
            for p in answer["points"]
            if p["parameters"]["n"] == 2 and p["variant"] == (self.subject.words[2:] or (None,))[0]
        ]
        kinds = {p.name: p.kind for p in self.subject.system.properties}
        for name, row in chosen[0]["verdicts"].items():
            if name in self.subject.python.vague:
                continue
            found = row["verdict"]
            right = self.subject.right(name, kinds[name])
            wanted = OPEN if self.subject.python.mistake is not None or right is None else set[str]()
            assert found in wanted | {right and right[0]}, (name, found, right)
        return Counter({f"exit code {code}": 1, "verdicts": len(chosen[0]["verdicts"])})

    def every_engine(self, most: int = 1) -> Counter[str]:
        """All engines compared by the verb itself; Spin and TLC up to `most` states."""
        limits = ("--agree-limit", f"spin={most}", "--agree-limit", f"tlc={most}")
        code, _ = answered(self.folder, "check", *self.subject.words, "-q", "--agree", *limits)
        return Counter({f"exit code {code}": 1})

    def other_checkers(self) -> Counter[str]:
        """Spin and TLC."""
        return self.every_engine(500)

    def all(self) -> dict[str, Callable[[], Counter[str]]]:
        """All ways, by name."""
        return {
            "python tier": self.python_tier,
            "compiled tier": self.compiled_tier,
            "partial order": self.partial_order,
            "symmetry": self.symmetry,
            "cut": self.cut,
            "first": self.first,
            "spill": self.spill,
            "resume": self.resume,
            "bounded": self.bounded,
            "certificate": self.certificate,
            "prove": self.prove,
            "simulate": self.simulate,
            "sweep": self.sweep,
            "agree": self.every_engine,
        }


def subject(seed: int, folder: Path) -> tuple[Subject, Any] | None:
    """The model of a seed; None if it is refused, or has more states than plain Python explores."""
    source, name, done = respelled(seed)
    try:
        kind = getattr(load(source, folder, f"verbs_{seed}"), name)
        system = kind.system()
    except ModelError as error:
        if any(reason in error.message for reason in REFUSED):
            return None
        raise
    found = explored(kind(), system)
    if found.cut:
        return None
    everywhere = explored(kind(), system, 5_000, limited=False) if found.cuts else found
    path = str(folder / f"verbs_{seed}.py")
    words = (
        (f"{path}:{name}",) if kind.variant is None else (f"{path}:{kind.__base__.__name__}", "--variant", kind.variant)
    )
    made = Subject(path, words, system, found, everywhere, reference(system), Random(seed), tuple(done))
    return made, kind()


def compare(seeds: Iterable[int], folder: Path, most: int, *only: str) -> Counter[str]:
    """Asks `most` ways about the model of each seed, in turn; how often which came up, and with what."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        made = subject(seed, folder)
        if made is None:
            seen["refused"] += 1
            continue
        here = folder / str(seed)
        here.mkdir()
        asked = Ways(*made, here)
        ways = asked.all() | {"other checkers": asked.other_checkers}
        names = only or tuple(n for n in ways if n != "other checkers")
        for name in [names[(seed * most + k) % len(names)] for k in range(most)]:
            try:
                found = ways[name]()
            except BaseException as error:
                error.add_note(f"seed {seed}: {name}; {made[0].path}")
                raise
            seen.update({f"{name}: {what}": times for what, times in found.items()})
            seen[name] += 1
        seen.update(made[0].done)
        seen["models"] += 1
        shutil.rmtree(here)
    return seen


PUSHED = {"partial order": 1, "resume": 1, "certificate": 1, "prove": 1, "spill": 1, "sweep": 1}
"""Ways of which a push must try at least so many models."""


def enough(seen: Counter[str], models: int) -> None:
    """Each way was tried, and decided something."""
    assert seen["refused"] <= models // 5
    for way, least in PUSHED.items():
        assert seen[way] >= least, way
    assert min(seen[f"{way}: traces"] for way in ("python tier", "compiled tier", "first", "bounded")) > 0
    assert (
        min(seen["resume: resumed"], seen["spill: on disk"], seen["certificate: verified"], seen["sweep: verdicts"]) > 0
    )


@pytest.mark.push
def test_some_models(tmp_path: Path) -> None:
    """Few models, each in one way or two."""
    enough(compare(range(14), tmp_path, 2), 14)


@pytest.mark.long
@pytest.mark.parametrize("part", range(50))
def test_five_thousand_models(tmp_path: Path, part: int) -> None:
    """A hundred models at a time, each in four ways."""
    seen = compare(range(1_000 + 100 * part, 1_100 + 100 * part), tmp_path, 4)
    enough(seen, 100)
    assert min(seen["prove: verified"], seen["symmetry: traces"], seen["inherited"], seen["whole"]) > 0


@pytest.mark.long
def test_other_checkers(tmp_path: Path) -> None:
    """Spin and TLC are asked about some models."""
    seen = compare(range(7_000, 7_040), tmp_path, 1, "other checkers")
    assert seen["other checkers: exit code 0"] + seen["other checkers: exit code 160"] > 10
