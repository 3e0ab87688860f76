"""``streamproof models``: the bundled models, with parameters, variants, properties and expected verdicts."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from streamproof.base.errors import StreamproofError
from streamproof.base.files import LISTING
from streamproof.base.records import dataclass
from streamproof.base.text import BLANK, Line, StyledText, aligned, line
from streamproof.cli.arguments import argument, json_flag, verb
from streamproof.cli.outputs import expect_json_writable, people, write_json
from streamproof.cli.selection import complete_models
from streamproof.language.declare.model import Model, limits_text
from streamproof.model_registry import Target, bundled, find, first_line
from streamproof.report.console import print_lines
from streamproof.system.model import parameter_json


@dataclass(frozen=True, slots=True)
class ModelsArguments:
    """The arguments of the verb."""

    model: str | None = argument(required=False, shell_complete=complete_models)
    json_to: str | None = json_flag()


@verb(
    "models",
    ModelsArguments,
    example="streamproof models failover",
)
def command(given: ModelsArguments) -> int:
    """List the bundled models, or describe one MODEL.

    The description has the parameters with their defaults, the sizes, the variants with the properties that they violate,
    and the properties.
    """
    model, json_to = given.model, given.json_to
    expect_json_writable(json_to, LISTING)
    targets = [find(model)] if model is not None else list(_loadable())
    if json_to is not None:
        write_json([described(target) for target in targets], json_to, LISTING)
    if json_to != "-":
        print_lines(_detail(targets[0]) if model is not None else _overview(targets), people(json_to))
    return 0


def _loadable() -> Iterator[Target]:
    """All bundled models; a model that cannot be loaded is reported on standard error and skipped."""
    for name in bundled():
        try:
            yield find(name)
        except StreamproofError as error:
            sys.stderr.write(f"streamproof: warning: {error}\n")


def described(target: Target) -> dict[str, Any]:
    """One entry of ``models --json``."""

    def parameters(values: dict[str, Any]) -> dict[str, Any]:
        return {name: parameter_json(value) for name, value in values.items()}

    def expected(variant: str | None) -> dict[str, str]:
        if not target.specified:
            return {}
        return {p.name: target.spec.expectation(variant, p.name) for p in target.properties(variant)}

    model = target.spec.model
    return {
        "name": target.text,
        "doc": first_line(model.__doc__),
        "parameters": parameters(target.defaults(None)),
        "limits": {name: {"least": least, "most": most} for name, (least, most) in model.parameter_limits().items()},
        "sizes": {name: parameters({**target.defaults(None), **values}) for name, values in model.sizes.items()},
        "expected": expected(None),
        "variants": [
            {
                "name": name,
                "doc": first_line(cls.__doc__),
                "parameters": parameters(target.defaults(name)),
                "expected": expected(name),
            }
            for name, cls in model.variants.items()
        ],
        "properties": [{"name": p.name, "kind": p.kind.value, "doc": p.doc} for p in target.properties()],
    }


def _overview(targets: Iterable[Target]) -> Iterator[Any]:
    for target in targets:
        model = target.spec.model
        yield line(StyledText(target.text, "title"), f"  {first_line(model.__doc__)}")
        for name, value in (
            ("parameters", ", ".join(f"{n}={v}" for n, v in target.defaults(None).items())),
            ("sizes", ", ".join(model.sizes)),
            ("variants", ", ".join(model.variants)),
            ("properties", ", ".join(p.name for p in target.properties())),
        ):
            if value:
                yield line(StyledText(f"{name:<12}", "faint"), value, indent=4, hang=16)
        yield BLANK
    yield line("Describe one: streamproof models NAME. Check one: streamproof check NAME.")


def _detail(target: Target) -> Iterator[Any]:
    model = target.spec.model

    def table(title: str, rows: list[tuple[str, str, str]]) -> Iterator[Line]:
        if not rows:
            return
        yield BLANK
        yield line(StyledText(title, "title"))
        for (name, fact), (_, _, doc) in zip(aligned([row[:2] for row in rows]), rows, strict=True):
            fact = f"{fact}  " if fact else ""
            yield line(f"{name}  ", StyledText(fact, "faint"), doc, indent=2, hang=len(name) + len(fact) + 4)

    yield line(StyledText(target.text, "title"), f"  {first_line(model.__doc__)}")
    docs = parameter_docs(model)
    limits = {name: f"({limits_text(*ends)})" for name, ends in model.parameter_limits().items()}
    texts = {n: " ".join(filter(None, (docs.get(n, ""), limits.get(n, "")))) for n in target.defaults(None)}
    yield from table("parameters", [(n, str(v), texts[n]) for n, v in target.defaults(None).items()])
    own = {**target.spec.inputs, **target.spec.questions}
    options = [("--" + name.replace("_", "-"), "", first_line(function.__doc__)) for name, function in own.items()]
    yield from table("further options", options)
    sizes = [(name, "", ", ".join(f"{k}={v}" for k, v in s.items()) or "defaults") for name, s in model.sizes.items()]
    yield from table("sizes", sizes)
    yield from table("properties", [(p.name, p.kind.value, p.doc) for p in target.properties()])
    variants = [(n, "", first_line(c.__doc__) + _breaks(target, n)) for n, c in model.variants.items()]
    yield from table("variants", variants)


def _breaks(target: Target, variant: str) -> str:
    broken = [n for n, verdict in target.spec.expected.get(variant, {}).items() if verdict == "violated"]
    return f" Breaks {', '.join(broken)}." if broken else ""


def parameter_docs(model: type[Model]) -> dict[str, str]:
    """The first line of the text under each parameter, a string that follows ``n: int = 2`` in the class body.

    A subclass that repeats a parameter without one keeps it.
    """
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if cls is Model or not issubclass(cls, Model):
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
        except (OSError, TypeError, SyntaxError):
            continue  # without source, parameters are listed without their docstrings
        body = tree.body[0].body if tree.body and isinstance(tree.body[0], ast.ClassDef) else []
        for first, second in pairwise(body):
            match first, second:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = first_line(text)
    return found
