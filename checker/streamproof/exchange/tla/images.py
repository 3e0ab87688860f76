"""Operators for what the properties of a refinement repeat: the image of each abstract variable, and the initial condition.

The properties contain the refinement mapping once for each use. Here a use becomes a pseudo variable, its element, or a
replacement of elements, so that the text has the name of an operator: ``image``, ``image'``, ``image[i]`` and
``[image EXCEPT ![i] = @ + 1]``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamproof.base.records import dataclass, replace
from streamproof.exchange.tla.names import TlaNames
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.formula import rewritten
from streamproof.system.model import Kind, Property, System
from streamproof.system.sorts import BOOL, ArraySort, values
from streamproof.transform.assume import Substitution
from streamproof.transform.refinement import initial_condition

INIT = "Init"
"""The operator of the initial condition."""


@dataclass(frozen=True, slots=True)
class Image:
    """The image of an abstract variable: the name of its operator, and its term over the variables of the model."""

    name: str
    term: Expr
    about: str


class Images(Substitution):
    """Replaces images by pseudo variables. `variables` are the names in the module by those of the model."""

    def __init__(self, system: System, variables: Mapping[str, str], names: TlaNames) -> None:
        now = Substitution({b.var(v.name, v.sort): b.next_(v.name, v.sort) for v in system.variables})
        self.images: list[Image] = []
        self.names: dict[str, str] = {}
        """Operators by pseudo variables, whose names no variable of a model has."""
        self.next_is_now: dict[Expr, Expr] = {}
        """Pseudo variables of the next state with those of the present one."""
        self.tuples: dict[str, str] = {}
        """Operators for all images of a refinement, by the elements of the tuple."""
        self._arrays: list[tuple[Expr, Expr]] = []
        found: dict[Expr, Expr] = {}
        for prop in system.properties:
            for name, term in prop.views if prop.kind is Kind.STEP else ():
                if term in found or isinstance(term, e.Var | e.Const) or not e.variables(term):
                    continue
                own = names.new(f"{prop.name}_{name}")
                self.images.append(Image(own, term, f"The image of {name} under the refinement {prop.name}."))
                self.names[f".{own}"] = own
                here, there = b.var(f".{own}", term.sort), b.next_(f".{own}", term.sort)
                self.next_is_now[there] = here
                for image, whole in ((here, term), (there, now(term))):
                    found[whole] = image
                    if isinstance(whole, e.MakeArray):
                        self._arrays.append((image, whole))
                        for at, element in enumerate(whole.elements):
                            if not isinstance(element, e.Const | e.Select):
                                found.setdefault(element, self._element(image, at))
            if prop.kind is Kind.STEP and prop.views:
                parts = [found.get(t, t) for _, t in prop.views if not isinstance(t, e.Const)]
                self._whole(prop, parts, names, variables)
        starts = initial_condition(system.variables, system.initially)
        if self.images and not isinstance(starts, e.Const):
            self.names[f".{INIT}"] = INIT
            found[starts] = b.var(f".{INIT}", BOOL)
        super().__init__(found)

    def _whole(self, prop: Property, parts: Sequence[Expr], names: TlaNames, variables: Mapping[str, str]) -> None:
        """Names the tuple of all images, if each is a variable or has an operator."""
        known = {**variables, **self.names}
        if self.images and len(parts) > 1 and all(isinstance(part, e.Var) for part in parts):
            texts = ", ".join(dict.fromkeys(known[part.name] for part in parts if isinstance(part, e.Var)))
            self.tuples[texts] = names.new(f"{prop.name}_vars")

    @staticmethod
    def _element(image: Expr, at: int) -> Expr:
        assert isinstance(image.sort, ArraySort)
        index = image.sort.index
        return b.select(image, b.const(index, tuple(values(index))[at]))

    def of(self, prop: Property) -> Property:
        """A property over the pseudo variables."""
        if not prop.views:
            return prop
        checks = tuple(replace(check, condition=self(check.condition)) for check in prop.checks)
        formula = None if prop.formula is None else rewritten(prop.formula, self)
        return replace(prop, expr=self(prop.expr), checks=checks, formula=formula)

    def rebuild(self, term: Expr) -> Expr:
        """A term from its operands; an array most of whose elements are those of an image is that image with changes."""
        done = super().rebuild(term)
        if isinstance(done, e.MakeArray) and isinstance(done.sort, ArraySort):
            for image, _ in self._arrays:
                assert isinstance(image.sort, ArraySort)
                if image.sort.index == done.sort.index:
                    changed = [at for at, part in enumerate(done.elements) if part is not self._element(image, at)]
                    if 2 * len(changed) <= len(done.elements):
                        return self._with(image, done.elements, changed)
        return done

    def _with(self, image: Expr, elements: Sequence[Expr], changed: Sequence[int]) -> Expr:
        assert isinstance(image.sort, ArraySort)
        index = image.sort.index
        for at in changed:
            image = b.store(image, b.const(index, tuple(values(index))[at]), elements[at])
        return image
