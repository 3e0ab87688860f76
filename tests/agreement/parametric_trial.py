"""One random model through `prove --any`, as the command line runs it, and what exhaustive search says of the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

from streamproof import Spec
from streamproof.any import readings
from streamproof.any.engine import prove_any
from streamproof.any.engine.proof import AnySize
from streamproof.any.every_size import FOR_EVERY_SIZE, check_proof, stages
from streamproof.any.instances import ProofRefuted, search_instances
from streamproof.any.readings import ReadingsDiffer, compare_readings
from streamproof.base.errors import StreamproofError
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.language.free import host_values, symbolic_parameters
from streamproof.language.lower import inlining
from streamproof.language.lower.conversion import first_values_at_most
from streamproof.model_registry import Target
from streamproof.selection import Selection
from streamproof.system import Verdict
from streamproof.system import build as b
from streamproof.system.expr import Const, Eq, Expr
from streamproof.system.sorts import BOOL
from streamproof.transform.ground import Weight
from streamproof.transform.unbounded import Parametric, written

from .parametric_models import Drawn

STATES = 300
"""States of one instance that is searched."""
STARTS = 5_000
"""The most combinations of first values of an instance that is searched."""
SECONDS = 60.0
"""The longest proof."""
HEAVIEST = 3_000
"""The most terms of an instance that is searched (see `Weight`)."""


@dataclass(frozen=True)
class Trial:
    """What became of a model. `refused`: the error that ended it; `wrong`: what the search refutes of the proof, and where;
    `searched`: how many instances were searched beside a proof; `special`: at how many of them a condition was true."""

    drawn: Drawn
    refused: StreamproofError | None = None
    proved: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    searched: int = 0
    special: int = 0


def selected(drawn: Drawn, folder: Path) -> Selection:
    """The model as a command line would choose it."""
    return Selection(Target(str(drawn.seed), Spec(drawn.load(folder)), False), drawn.variant)


def attempt(drawn: Drawn, folder: Path, *, grounding: bool = True) -> Trial:
    """Reading, grounding check unless it is switched off, proof, and a search at the values of the model."""
    selection = selected(drawn, folder)
    try:
        parametric, proof = proved(selection, drawn, grounding=grounding)
    except StreamproofError as error:
        return Trial(drawn, error)
    if not proof.proved:
        return Trial(drawn)
    return judged(selection, drawn, parametric, proof)


def proved(selection: Selection, drawn: Drawn, *, grounding: bool) -> tuple[Parametric, AnySize]:
    """The reading of a model and the proof of its properties."""
    parametric = selection.target.parametric(selection.variant, selection.given, tuple(drawn.free))
    if grounding:
        with patch.multiple(readings, HEAVIEST=4_000, ALL_TERMS=10_000, FIRST_VALUES=2_000):
            compare_readings(selection.target.spec, selection.variant, selection.given, parametric)
    properties = [p for p in parametric.system.properties if p.kind in FOR_EVERY_SIZE]
    proof = prove_any(parametric, properties, stages(selection, parametric), query_limit=1.0, seconds=SECONDS)
    check_proof(selection, parametric, proof)
    return parametric, proof


def judged(selection: Selection, drawn: Drawn, parametric: Parametric, proof: AnySize) -> Trial:
    """What exhaustive search says of a proof."""
    wrong, searched, special = [], 0, 0
    for values in drawn.values():
        if Weight(parametric)(values) > HEAVIEST:
            continue
        try:
            with first_values_at_most(STARTS):
                system = selection.target.system(selection.variant, values)
        except StreamproofError:
            continue  # the model refuses these values
        if prod(len(v.initial) for v in system.variables) > STARTS:
            continue
        found = explore(system, SearchOptions(properties=proof.proved, max_states=STATES))
        searched += 1
        special += drawn.is_special(values)
        if found.mistake is not None:
            wrong.append(f"mistake at {values}: {found.mistake.error.message}")
        violated = [f.property for f in found.findings if f.verdict is Verdict.VIOLATED and f.property in proof.proved]
        wrong += [f"{name} at {values}" for name in violated]
    return Trial(drawn, None, proof.proved, tuple(wrong), searched, special)


# --- one layer at a time


@dataclass(frozen=True)
class Layers:
    """Which layers catch a condition by themselves, of a model of which a reader that believes everything proves something
    false. `live`: it does."""

    live: bool
    reading: bool = False
    grounding: bool = False
    search: bool = False


def layers(drawn: Drawn, folder: Path) -> Layers:
    """Each layer alone: the reading without a grounding check, the two others behind a reader that believes everything."""
    selection = selected(drawn, folder)
    try:
        with credulous():
            parametric, proof = proved(selection, drawn, grounding=False)
    except Exception:
        return Layers(False)  # even such a reader makes nothing of it
    if not proof.proved or not judged(selection, drawn, parametric, proof).wrong:
        return Layers(False)
    reading = not attempt(drawn, folder, grounding=False).wrong
    return Layers(
        True,
        reading,
        _raises(ReadingsDiffer, lambda: compare_readings(selection.target.spec, drawn.variant, {}, parametric)),
        _raises(ProofRefuted, lambda: search_instances(selection, parametric, proof.proved, proof.proved)),
    )


def _raises(kind: type[StreamproofError], run: Callable[[], Any]) -> bool:
    try:
        run()
    except kind:
        return True
    return False


@contextmanager
def credulous() -> Iterator[None]:
    """A reader that runs the conditions as ordinary Python, with parameters that answer whatever is asked of them, as an
    object that is no number does."""
    symbolic, inline = symbolic_parameters.SymbolicInt, inlining.inline

    def number(value: Any) -> Expr:
        if type(value) is symbolic:
            term = symbolic_parameters.term_of(value)
            return b.ite(term, b.num(1), b.num(0)) if term.sort == BOOL else term
        if type(value) not in (int, bool):
            raise TypeError("no number")
        return b.num(int(value))

    def operation(make: Callable[..., Expr], mirrored: bool = False) -> Callable[[Any, Any], Any]:
        def run(self: Any, other: Any) -> Any:
            made = make(*map(number, (other, self) if mirrored else (self, other)))
            return made.value if isinstance(made, Const) else symbolic(made)

        return run

    def equal(self: Any, other: object) -> Any:
        return operation(b.eq)(self, other) if type(other) in (symbolic, int) else False

    def no_number(*_: Any) -> NoReturn:
        raise TypeError("no number")

    def text(self: Any, *_: Any) -> str:
        return written(symbolic_parameters.term_of(self))

    def called(ev: Any, function: Any, args: list[Any], kwargs: dict[str, Any], depth: int, loc: Any) -> Any:
        if not function.__name__.startswith("lie"):
            return inline(ev, function, args, kwargs, depth, loc)
        given = [host_values.host_value(ev, a, loc) for a in args]
        return symbolic_parameters.as_term(function(*given, **kwargs))

    permitted = {
        "__add__": operation(b.add), "__radd__": operation(b.add, mirrored=True),
        "__sub__": operation(b.sub), "__rsub__": operation(b.sub, mirrored=True),
        "__mul__": operation(b.mul), "__rmul__": operation(b.mul),
        "__lt__": operation(b.less), "__gt__": operation(b.less, mirrored=True),
        "__le__": operation(b.less_eq), "__ge__": operation(b.less_eq, mirrored=True),
        "__eq__": equal, "__ne__": lambda self, other: not equal(self, other), "__hash__": id,
        "__bool__": lambda self: not isinstance(symbolic_parameters.term_of(self), Eq),
        "__str__": text, "__repr__": text, "__format__": text,
        "__getattribute__": object.__getattribute__,
    }  # fmt: skip
    believed = patch.multiple(symbolic, **permitted), patch.object(symbolic_parameters, "refuse", no_number)
    with believed[0], believed[1], patch.object(inlining, "inline", called):
        yield


def place(error: StreamproofError, drawn: Drawn) -> bool:
    """Whether an error names a line of the model."""
    at = error.loc
    if at is None or Path(at.file).name != f"parametric_{drawn.seed}.py":
        return False
    return 0 < at.line <= drawn.source.count("\n") + 1
