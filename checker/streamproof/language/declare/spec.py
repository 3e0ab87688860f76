"""`Spec`: a model with its properties and the expected verdicts of its variants; compiles to the transition system.

`unmarked` and `unused` find probable mistakes: functions of the state without a decorator, and unused variables.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from streamproof.base.errors import Loc, ModelError
from streamproof.base.records import dataclass, replace
from streamproof.language.declare.declarations import (
    check_module,
    class_place,
    known_names,
    parameter_types,
    wrong_values,
)
from streamproof.language.declare.model import RESERVED, Model, marked
from streamproof.language.declare.origin import compiled_from
from streamproof.language.declare.primitives import MARK, StateMark
from streamproof.language.declare.variables import Decl
from streamproof.language.lower.model_reader import Reader, deep, is_constrained
from streamproof.language.lower.mutation_guard import MutationGuard
from streamproof.language.lower.sources import caller, codes, parameters, parsed, place, source_of
from streamproof.language.lower.terms import article
from streamproof.system.expr import Var, variables
from streamproof.system.formula import atoms
from streamproof.system.model import Kind, Property, System
from streamproof.system.sorts import Sort, cardinality_up_to
from streamproof.system.verdict import Measure
from streamproof.transform.unbounded import (
    Parametric,
    Unbounded,
    as_declared,
    endless,
    has_unbounded,
    instead_of,
    ranges,
    unsupported,
)

if TYPE_CHECKING:
    from streamproof.language.declare.composite import CompositeReader
    from streamproof.language.declare.sweeping import Comparison, Sweep

VERDICTS = ("holds", "violated")
"""Possible expected verdicts."""
PropertyFunction = Callable[..., Any]


def compile_model(
    model: Model,
    properties: Iterable[Callable[..., Any]] = (),
    *,
    termination: bool = False,
    without_properties: bool = False,
    carries: Mapping[str, Any] = MappingProxyType({}),
) -> System:
    """The transition system of `model` with its own and the given properties. Raises `ModelError` for a malformed model.

    `without_properties`: omit properties and lemmas, for the abstract model of a refinement. `carries`: properties
    stated outside the models of the parts of a composite.
    """
    with deep():
        reader = _reader(model, without_properties, None, carries)
        for name, decl in reader.declarations.items():
            if any(endless(part) for part in ranges(decl.sort)):
                raise Unbounded(
                    f"{name} is {article(decl.sort)} {decl.sort}: a search counts states, and there are too many",
                    loc=decl.loc,
                    remedy=f"{_bounds(model, decl, abstract=without_properties)}, or prove what must hold: "
                    "streamproof prove, for temporal properties with --rank",
                )
        return compiled_from(_constrained(reader.run(tuple(properties), termination), reader), model)


def _bounds(model: Model, decl: Decl, sorts: str = "", *, abstract: bool = False) -> str:
    """What to declare for unbounded integers that no search of a model takes; `sorts`: the names of those to replace."""
    declare = f"declare a Range{sorts and f' instead of {sorts}'}"
    if is_constrained(model):
        return f"{declare} beyond what its constraint admits, as Range(0, 1_000_000)"
    takes = type(model).parts is Model.parts and not abstract and not has_unbounded(decl.searched().sort)
    return f"{declare}, or bound {'them' if sorts else 'it'} in a @constraint" if takes else declare


def compile_unbounded(
    model: Model,
    free: frozenset[str],
    properties: Iterable[Callable[..., Any]],
    *,
    temporal: bool = False,
    carries: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[System, Mapping[str, Decl]]:
    """The rules, properties and declarations of a model whose parameters `free` are symbolic.

    Temporal properties are included if `temporal`.
    """
    with deep():
        reader = _reader(model, False, free, carries)
        for name, decl in reader.declarations.items() if free else ():
            if (part := unsupported(decl.sort)) is not None:
                raise ModelError(
                    f"{name} of {decl.sort} is not supported in proofs for every size",
                    loc=decl.loc,
                    remedy=f"{instead_of(part)}; or give every parameter a value",
                )
        reader.safety_only = not temporal
        system = reader.run(tuple(properties), False)
        for limit in reader.step_constraints:
            raise ModelError(
                f"{limit.text} is a constraint on steps, which a proof for every size does not support",
                loc=limit.loc,
                remedy="write the condition into the actions, as require(...)"
                + (", or prove it for given sizes" if free else ""),
            )
        return _constrained(system, reader), reader.declarations


def _constrained(system: System, reader: Reader | CompositeReader) -> System:
    """The system with the constraints of its model, if there are any."""
    if not (reader.constraints or reader.step_constraints):
        return system
    from streamproof.transform.constraint import constrained

    read = variables(*(limit.expr for limit in (*reader.constraints, *reader.step_constraints)))
    free = tuple(f"{n} ({d.endless})" for n, d in reader.declarations.items() if d.endless and n not in read)
    found = constrained(system, reader.constraints, reader.step_constraints)
    return found if found.constraint is None else replace(found, constraint=replace(found.constraint, unread=free))


def _reader(
    model: Model, without_properties: bool, free: frozenset[str] | None, carries: Mapping[str, Any]
) -> Reader | CompositeReader:
    """The reader for a model, a single machine or a composition."""
    abstract = partial(compile_model, without_properties=True)
    if type(model).parts is Model.parts:
        if carries:
            raise ModelError(
                f"{type(model).title()} has no parts whose properties could be carried over",
                loc=class_place(type(model)),
                remedy="leave carries={...} out of its Spec",
            )
        return Reader(model, without_properties, free, abstract=abstract)
    from streamproof.language.declare.composite import CompositeReader

    return CompositeReader(model, without_properties, free, carries, abstract)


def measures_of(model: Model, outside: Iterable[Callable[..., Any]] = ()) -> tuple[Measure, ...]:
    """The quantities of a model: its own, and external functions ``(m, s)``. Raises `ModelError`.

    A quantity that is None in every state is omitted. The quantities of the parts of a composite are not included.
    """
    found = _named(type(model), outside)
    return _measured(model, None, found) if found else ()


def _measured(
    model: Model, free: frozenset[str] | None, found: Mapping[str, Callable[..., Any]]
) -> tuple[Measure, ...]:
    """These quantities of a model whose parameters `free` are symbolic."""
    with deep():
        reader = _reader(model, True, free, {})
        properties = (reader if isinstance(reader, Reader) else reader.outermost()).properties
        unchanged = MutationGuard(model, found.values())
        read = (properties.measure(name, function, unchanged) for name, function in found.items())
        return tuple(measure for measure in read if measure is not None)


CONDITION = "condition"
"""The name of a condition in a text, and the file of messages about it."""


def condition_of(model: Model, text: str) -> Property:
    """A condition on states in a text, in the language of a model over `self` and `s`, as a reachability property.

    Its names are those of the model's module, without modules and names with two underscores. Raises `ModelError` for a text
    that is no such condition.
    """
    file = f"<{CONDITION}>"
    if "__" in text:
        raise ModelError("names with two underscores are not for conditions", remedy="write one over the state")
    try:
        body = ast.parse(text.strip(), file, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = getattr(error, "msg", None) or "too deep"
        raise ModelError(f"not a condition: {why}", remedy="write one over the state, such as s.n == 3") from None
    source = f"def {CONDITION}(self, s):\n    return {ast.unparse(body)}\n"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    own = vars(sys.modules.get(type(model).__module__, types))
    space = {name: value for name, value in own.items() if not isinstance(value, types.ModuleType)}
    exec(compile(source, file, "exec"), space)
    with deep():
        reader = _reader(model, True, None, {})
        properties = (reader if isinstance(reader, Reader) else reader.outermost()).properties
        expr, parts, checks = properties.predicate(space[CONDITION], 1)
    return Property(CONDITION, Kind.REACHABLE, expr, parts, checks)


def _named(cls: type[Model], outside: Iterable[Callable[..., Any]] = ()) -> Mapping[str, Callable[..., Any]]:
    """The quantity functions of a model class by name, including external ones. Raises `ModelError`."""
    own = marked(cls)
    outside = tuple(outside)
    check_module(f for f in outside if isinstance(f, types.FunctionType))
    found = {name: function for name, (mark, function) in own.items() if mark is StateMark.MEASURE}
    for function in outside:
        name = function.__name__
        if getattr(function, MARK, None) is not StateMark.MEASURE:
            raise ModelError(
                f"{name} is not marked as a measure", loc=place(function), remedy="decorate it with @measure"
            )
        if name in found or name in own:
            raise ModelError(f"{name!r} is the name of two things", loc=place(function), remedy="rename one of them")
        found[name] = function
    return found


@dataclass(frozen=True)
class Spec:
    """A model, the properties stated outside it, and the expected verdicts.

    `expected` maps a variant's name (or ``None`` for the model itself) to ``{property: "holds" | "violated"}``;
    unlisted properties are expected to hold. `variant_parameters` are the parameter values at which a variant is
    refuted, if the defaults do not refute it; `sizes` override the model's.
    """

    model: type[Model]
    properties: tuple[PropertyFunction, ...] = ()
    expected: Mapping[str | None, Mapping[str, str]] = field(default_factory=dict)
    variant_parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    termination: bool = False
    """Also require termination: every behaviour is finite."""
    carries: Mapping[str, Spec | Sequence[PropertyFunction]] = field(default_factory=dict)
    """For parts of a composite, by name: further properties, those of a `Spec` or a list of functions."""
    measures: tuple[PropertyFunction, ...] = ()
    """Quantities in addition to the model's own: functions ``(m, s)`` marked ``@measure``."""
    sweeps: Sweep | None = None
    """The default configurations of ``streamproof sweep``."""
    comparison: Comparison | None = None
    """Designs to compare, and claims about them: `streamproof compare`."""
    inputs: Mapping[str, Callable[[str], Mapping[str, Any]]] = field(default_factory=dict)
    """Further options of the command line by name: each gives parameters for a text, such as the path of a file."""
    questions: Mapping[str, Callable[[Any, str, Mapping[str, str]], Iterable[str]]] = field(default_factory=dict)
    """Further options of ``streamproof check`` by name: each answers a text about an instance of the model, in lines, from
    the text and those of the options of `inputs`. Nothing is searched then."""
    facts: Callable[[Any], Iterable[str]] | None = None
    """What ``streamproof check`` prints about an instance of the model before its search, in lines."""
    cautions: Callable[[Any], Iterable[str]] | None = None
    """What every verb warns of about an instance of the model, in lines."""
    beside: Callable[[Any], Iterable[str]] | None = None
    """The variants whose deadlocks (without them, all properties) are judged beside an instance of the model itself, because
    they describe what runs."""
    decided: Callable[[Any], Iterable[tuple[str, bool, str]]] | None = None
    """Deadlock verdicts that an instance alone decides, without a search: a name, whether it holds, and the reason."""
    infeasible: Callable[[Any, bool], str | None] | None = None
    """Why the rules of an instance, or (True) a search of all its states, would be too large; None: they may be possible."""
    loc: Loc | None = field(default=None, compare=False, repr=False)
    """The source position of the specification."""

    def __post_init__(self) -> None:
        if self.loc is None:
            object.__setattr__(self, "loc", caller())
        check_spec(self, self.loc)

    def of_subclass(self, cls: type[Model]) -> Spec:
        """The specification of a model that extends this one's: its properties, without expected verdicts."""
        return replace(self, model=cls, expected={}, variant_parameters={}, sweeps=None, comparison=None)

    def system(self, variant: str | None = None, **parameters: Any) -> System:
        """The transition system with every property; raises `ModelError` or `UsageError`."""
        return self.read(variant, parameters)[1]

    def read(self, variant: str | None, parameters: Mapping[str, Any]) -> tuple[Model, System]:
        """An instance of the model, and the transition system read from it; raises as `system`."""
        model = self._built(variant, parameters)
        return model, self.compiled(model)

    def compiled(self, model: Model) -> System:
        """The transition system read from an instance of the model. Raises `ModelError`."""
        return compile_model(model, self.properties, termination=self.termination, carries=self.carries)

    def measured(self, variant: str | None = None, **parameters: Any) -> tuple[Measure, ...]:
        """The quantities of the model as expressions over the variables of its system; raises as `system`."""
        return measures_of(self._built(variant, parameters), self.measures)

    def condition(self, text: str, variant: str | None = None, **parameters: Any) -> Property:
        """A condition on the states of the model in a text; see `condition_of`. Raises as `system`."""
        return condition_of(self._built(variant, parameters), text)

    def _built(self, variant: str | None, parameters: Mapping[str, Any]) -> Model:
        """The instance of the model or a variant, at the parameters that refute the variant unless others are given."""
        return self.model.build(variant, **{**self.variant_parameters.get(variant or "", {}), **parameters})

    def parametric(self, free: Sequence[str], variant: str | None = None, **parameters: Any) -> Parametric:
        """The transition system in which the parameters `free` range over every number within their limits, without
        temporal properties.

        Raises `UsageError` for a name that is not a numeric parameter, and `ModelError`.
        """
        return self._parametric(free, variant, parameters, temporal=False)

    def endless(self, free: Sequence[str], variant: str | None = None, **parameters: Any) -> Parametric:
        """Like `parametric`, with temporal properties, for proofs by ranking functions."""
        return self._parametric(free, variant, parameters, temporal=True)

    def _parametric(
        self, free: Sequence[str], variant: str | None, parameters: Mapping[str, Any], *, temporal: bool
    ) -> Parametric:
        from streamproof.language.free.parametric import compile_parametric

        own = {n: v for n, v in self.variant_parameters.get(variant or "", {}).items() if n not in free}
        return compile_parametric(
            compile_unbounded,
            self.model,
            tuple(free),
            variant,
            {**own, **parameters},
            self.properties,
            temporal=temporal,
            carries=self.carries,
        )

    def quantity(self, name: str, free: Sequence[str], variant: str | None = None, **parameters: Any) -> Measure | None:
        """The quantity called `name` for every value of the parameters `free`; None if there is none of this name. Raises as
        `parametric`."""
        from streamproof.language.free.parametric import quantity

        function = _named(self.model.variants.get(variant or "", self.model), self.measures).get(name)
        if function is None:
            return None

        def read(model: Model, symbolic: frozenset[str]) -> Measure | None:
            return next(iter(_measured(model, symbolic or None, {name: function})), None)

        own = {n: v for n, v in self.variant_parameters.get(variant or "", {}).items() if n not in free}
        return quantity(read, self.model, free, variant, {**own, **parameters})

    def bounds_missing(self, variant: str | None = None, **parameters: Any) -> str | None:
        """What to declare for the unbounded integers that no search takes, if there are any; raises as `system`."""
        model = self._built(variant, parameters)
        with as_declared(False):
            declared = _reader(model, True, None, {}).declarations
        return next(
            (_bounds(model, decl, "Nat and Int") for decl in declared.values() if has_unbounded(decl.sort)), None
        )

    def expectation(self, variant: str | None, prop: str) -> str:
        """The expected verdict of a property: ``holds`` or ``violated``."""
        return self.expected.get(variant, {}).get(prop, "holds")


def _system(cls: type[Model], /, variant: str | None = None, **parameters: Any) -> System:
    """The transition system of the model with its own properties."""
    return Spec(cls).system(variant, **parameters)


Model.system = classmethod(_system)  # type: ignore[assignment]


def check_spec(spec: Spec, loc: Loc | None) -> None:
    """Raises `ModelError`, at the line that creates the `Spec`, for an invalid specification."""
    for what, remedy in _of_spec(spec):
        raise ModelError(what, loc=loc, remedy=remedy)


def _of_spec(spec: Spec) -> Iterator[tuple[str, str]]:
    if not (isinstance(spec.model, type) and issubclass(spec.model, Model)):
        yield f"the model of a Spec is {spec.model!r}", "give the class: Spec(MyModel, ...)"
        return
    for part in ("properties", "measures"):
        given = getattr(spec, part)
        if not isinstance(given, Sequence) or isinstance(given, str):
            yield f"{part} of a Spec is {given!r}", f"give a tuple of functions: {part}=(my_property,)"
            return
        for one in given:
            if not inspect.isfunction(one):
                yield f"{part} of a Spec holds {one!r}", "give functions marked @invariant, @step and so on"
    if not isinstance(spec.termination, bool):
        yield f"termination of a Spec is {spec.termination!r}", "give True or False"
    if spec.sweeps is not None or spec.comparison is not None:
        from streamproof.language.declare.sweeping import Comparison, Sweep

        for name, one, kind in (("sweeps", spec.sweeps, Sweep), ("comparison", spec.comparison, Comparison)):
            if not isinstance(one, kind | None):
                yield f"{name} of a Spec is {one!r}", f"give a {kind.__name__}(...)"
    for part in ("inputs", "questions"):
        taken = [name for name in getattr(spec, part) if name in spec.model.parameters()]
        if taken:
            yield f"{part} of a Spec has {taken[0]!r}, a parameter of the model", "choose another name"
    if not isinstance(spec.carries, Mapping):
        yield f"carries of a Spec is {spec.carries!r}", "give a dict, part by part"
    variants = list(spec.model.variants)
    for part in ("expected", "variant_parameters"):
        given = getattr(spec, part)
        if not isinstance(given, Mapping) or not all(isinstance(one, Mapping) for one in given.values()):
            yield f"{part} of a Spec is {given!r}", f"give a dict of dicts: {part}={{VARIANT: {{...}}}}"
            return
        for variant in given:
            if variant not in variants and not (variant is None and part == "expected"):
                yield (
                    f"{part} names {variant!r}, which is not a variant",
                    known_names(variant, variants, "its variants"),
                )
    for verdicts in spec.expected.values():
        for name, verdict in verdicts.items():
            if verdict not in VERDICTS:
                yield (
                    f"{verdict!r} is expected of {name}, which is not a verdict",
                    f"expect one of {', '.join(VERDICTS)}",
                )
    for variant, values in spec.variant_parameters.items():
        if wrong := wrong_values(values, parameter_types(spec.model.variants[variant])):
            yield f"variant_parameters sets, for {variant!r}, {wrong[0]}", wrong[1]


def check_expected(spec: Spec, variant: str | None, names: Collection[str]) -> None:
    """Raises `ModelError` for an expected verdict of a property that the model or variant does not have."""
    for name in spec.expected.get(variant, {}):
        if name not in names:
            raise ModelError(
                f"a verdict is expected of {name!r}, which is not a property",
                loc=spec.loc,
                remedy=known_names(name, names, "its properties"),
            )


def unmarked(spec: Spec, cls: type[Model]) -> list[tuple[Loc, str]]:
    """The unused functions of `cls` (the model or a variant), with their positions and the reason."""
    found = [*_methods(cls), *_properties(spec, cls)]
    homes = {c.__module__: None for c in cls.__mro__ if issubclass(c, Model) and c is not Model}
    homes |= {f.__module__: None for f in (*spec.properties, *spec.measures)}
    called = _called(homes) if found else set()
    found = [one for one in found if one[0] not in called]
    for file in _files(homes) if found else ():
        used = _used(file)
        if used is None:
            return []
        found = [one for one in found if one[0] not in used]
        if not found:
            break
    return [(loc, why) for _, loc, why in found]


def unused(system: System) -> list[str]:
    """The variables that no rule or property reads or writes, one line each; those with one value have no use."""
    updates = [(name, term) for i in system.instances for name, term in i.updates]
    written = {name for name, term in updates if not (isinstance(term, Var) and term.name == name)}
    terms = [term for name, term in updates if name in written]
    for i in system.instances:
        terms += [c.expr for c in i.guard] + [c.condition for c in (*i.guard_checks, *i.effect_checks)]
    for p in (*system.properties, *system.lemmas):
        terms += [p.expr, *(view for _, view in p.views), *(a.expr for a in (atoms(p.formula) if p.formula else ()))]
    terms += [system.initially, *([] if system.terminal is None else [system.terminal])]
    used = written | variables(*terms)
    idle = [v for v in system.variables if v.name not in used]
    why = "no rule and no property uses the variable {} at these parameters"
    return [why.format(v.name) for v in idle if not _has_one_value(v.sort)]


def _has_one_value(sort: Sort) -> bool:
    try:
        return cardinality_up_to(sort, 1) <= 1
    except ModelError:  # the ends of a range are free parameters, or infinite
        return False


def _methods(cls: type[Model]) -> Iterator[tuple[str, Loc, str]]:
    """Undecorated methods that take the state like decorated ones, and override nothing."""
    rules = marked(cls)
    states = {names[1] for _, f in rules.values() if callable(f) and len(names := parameters(f)) > 1}
    for c in cls.__mro__:
        for name, member in vars(c).items() if issubclass(c, Model) and c is not Model else ():
            if not isinstance(member, types.FunctionType) or name in rules or name in RESERVED or name.startswith("_"):
                continue
            loc, taken = place(member), parameters(member)
            inherited = sum(name in vars(other) for other in cls.__mro__) > 1
            if loc is not None and not inherited and len(taken) > 1 and taken[1] in states and member.__name__ == name:
                yield (
                    name,
                    loc,
                    f"{name}({', '.join(taken)}) has no mark, and nothing calls it; is a decorator missing?",
                )


def _properties(spec: Spec, cls: type[Model]) -> Iterator[tuple[str, Loc, str]]:
    """Decorated functions in the module of the model, or of its `Spec`'s properties, that are not listed there."""
    listed = (*spec.properties, *spec.measures)
    for module in {cls.__module__, *(f.__module__ for f in listed)}:
        for name, member in vars(sys.modules.get(module, types.ModuleType(""))).items():
            ours = isinstance(member, types.FunctionType) and member.__module__ == module and MARK in vars(member)
            loc = place(member) if ours and member not in listed else None
            if loc is not None:
                yield name, loc, f"{name} is marked, and no Spec has it among its properties"


def _called(homes: Iterable[str]) -> set[str]:
    """The names read by functions and methods of modules: nearly all used names, found without parsing a file."""
    found = set[str]()
    for home in homes:
        for member in list(vars(sys.modules.get(home, types.ModuleType(""))).values()):
            inner = vars(member).values() if isinstance(member, type) and member.__module__ in homes else (member,)
            for function in inner:
                if isinstance(function, types.FunctionType):
                    found.update(name for code in codes(function.__code__) for name in code.co_names)
    return found


def _files(homes: Iterable[str]) -> Iterator[str]:
    """The files that may use functions of a model: those of these modules, then all loaded from their folders."""
    own = dict.fromkeys(filter(None, (_file(sys.modules.get(name)) for name in homes)))
    yield from own
    folders = {Path(file).parent for file in own}
    for file in filter(None, map(_file, list(sys.modules.values()))):
        if file not in own and Path(file).parent in folders:
            yield file


def _file(module: Any) -> str | None:
    found = getattr(module, "__file__", None)
    return found if isinstance(found, str) and found.endswith(".py") else None


def _used(file: str) -> set[str] | None:
    """Every name in a file, as code or text; None if it uses computed attribute names."""
    found = set[str]()
    for node in ast.walk(parsed(file, source_of(file)) or ast.Module([], [])):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                found.add(name)
            case ast.Constant(value=str(text)):
                found.add(text)
        if _is_lookup(node):
            return None
    return found


def _is_lookup(node: Any) -> bool:
    """Whether a call reads an attribute by a computed name."""
    by_name = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "vars", "dir")
    return by_name and not (len(node.args) > 1 and isinstance(node.args[1], ast.Constant))
