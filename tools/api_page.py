"""The page of the Python API, docs/api.md, from the docstrings of the public door.

python tools/api_page.py [--write]
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import streamproof
from streamproof.base.records import described
from streamproof.exchange.drawings.dot import MAX_STATES
from streamproof.exchange.smt.smtlib import DEPTH

PAGE = Path(__file__).resolve().parents[1] / "docs" / "api.md"
FUNCTIONS = ("check", "prove", "prove_any", "prove_rank", "simulate", "validate", "incident", "replay", "export")
OPTIONS = ("SearchOptions", "ValidationOptions")
HEAD = """# Python API

The functions of `import streamproof`, one for each verb: the same engines, evidence and cross-checks as the
[command line](cli.md), with a value as result. All times are in seconds. `tools/api_page.py` makes this page from the
docstrings.

<!-- file counting.py -->
```python
import streamproof
from streamproof import Model, Range, State, action, invariant, require


class Counting(Model):
    limit: int = 3
    check_deadlock = False

    def state(self):
        return State(n=Range(0, self.limit))

    @action
    def increment(self, s):
        require(s.n < self.limit)
        s.n += 1

    @invariant
    def below(self, s):
        return s.n <= self.limit


if __name__ == "__main__":
    result = streamproof.check(Counting, parameters={"limit": 5})
    print(result.verdict.value, result.counts.distinct, result.finding("below").because)
    print(streamproof.prove(Counting).verdict.value)
    print(streamproof.check("failover", ["termination"], variant="literal-pseudocode").verdict.value)
```

<!-- run -->
```console
$ python counting.py
holds 6 true in all 6 reachable states; ranges and parameters alone decide it
holds
violated
```

Every error is a `StreamproofError` with a message, a remedy and an `exit_code`, that of the verb. What models are written
with is described in [language](language.md), temporal formulas in [temporal properties](temporal-properties.md), bindings
of logs in [how to extend](how-to-extend.md#a-reader-of-another-systems-logs). `streamproof.comparison` has the names for
a comparison of designs.
"""
INSTEAD = {
    "NO_PARAMETERS": "{}",
    "DEFAULTS": "SearchOptions()",
    "MAX_STATES": str(MAX_STATES),
    "DEPTH": str(DEPTH),
    "TUNING": "Tuning()",
}
"""Default values as a user would write them."""


def page() -> str:
    """The whole page."""
    others = [name for _, names in streamproof.USING.values() for name in names.split()]
    rest = [name for name in others if name not in (*FUNCTIONS, *OPTIONS)]
    results = [name for name in rest if not isinstance(getattr(streamproof, name), FunctionType)]
    parts = [HEAD]
    for title, names in (("Functions", FUNCTIONS), ("Options", OPTIONS), ("Results and values", results)):
        parts += [f"## {title}\n", *(_about(name) for name in names)]
    parts += ["## Other functions\n", *(_about(name) for name in rest if name not in results)]
    return "\n".join(parts)


def _about(name: str) -> str:
    value: Any = getattr(streamproof, name)
    lines = [f"### `{name}`\n"]
    tree = _tree(value)
    if isinstance(tree, ast.FunctionDef):
        lines += [*(f"    {line}" for line in _signature(tree)), ""]
    lines += [_text(value.__doc__), ""]
    rows = list(_members(tree, value)) if isinstance(tree, ast.ClassDef) else []
    if rows:
        lines += ["| member | |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def _tree(value: Any) -> ast.stmt:
    """The definition of a function or class; of an overloaded function the one with a body."""
    return ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]


def _signature(tree: ast.FunctionDef) -> Iterator[str]:
    """The head of a function, with one line for each argument."""
    yield f"{tree.name}("
    given = tree.args
    defaults: list[ast.expr | None] = [None] * (len(given.args) - len(given.defaults))
    rows = list(zip(given.args, [*defaults, *given.defaults], strict=True))
    for at, (argument, default) in enumerate([*rows, *zip(given.kwonlyargs, given.kw_defaults, strict=True)]):
        if at == len(rows):
            yield "    *,"
        kind = "" if argument.annotation is None else f": {ast.unparse(argument.annotation)}"
        value = "" if default is None else f" = {INSTEAD.get(ast.unparse(default), ast.unparse(default))}"
        yield f"    {argument.arg}{kind}{value},"
    yield f") -> {ast.unparse(tree.returns)}" if tree.returns is not None else ")"


def _members(tree: ast.ClassDef, cls: type) -> Iterator[str]:
    """A row for each public field, property and method of a class; inherited ones are described with their class."""
    flags = described(cls) if hasattr(cls, "__record_shape__") else {}
    for node, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_"):
                text = ""
                if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                    text = str(following.value.value)
                value = "" if node.value is None else ast.unparse(node.value)
                value = repr(flags[name][0].default) if name in flags else value
                default = "" if node.value is None else f" = {INSTEAD.get(value, value)}"
                default = "" if "field(" in default or len(default) > 24 else default
                yield _row(f"{name}: {ast.unparse(node.annotation)}{default}", text)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=text)) if not name.startswith("_"):
                yield _row(f"{name} = {text!r}", "")
            case ast.FunctionDef(name=name) if not name.startswith("_"):
                is_property = any(ast.unparse(d) == "property" for d in node.decorator_list)
                arguments = [a.arg for a in (*node.args.args, *node.args.kwonlyargs) if a.arg not in ("self", "cls")]
                yield _row(name if is_property else f"{name}({', '.join(arguments)})", ast.get_docstring(node) or "")


def _row(member: str, text: str) -> str:
    cells = (f"`{member}`", " ".join(_text(text).split()))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |".replace(" |  |", " | |")


def _text(doc: str | None) -> str:
    """A docstring as Markdown: double backticks are single ones, the exceptions of a section a list."""
    text = re.sub(r"``(.+?)``", r"`\1`", inspect.cleandoc(doc or ""))
    text = re.sub(r"^    (\w+): ", r"- `\1`: ", text, flags=re.M)
    return text.replace("Raises:\n", "Raises:\n\n")


def main() -> int:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description="The page of the Python API.")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    if parser.parse_args().write:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
