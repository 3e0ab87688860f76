"""The verifier of proofs for every size is a second program: it shares no text with the engine, under any names.

A run of equal statements in both would be wrong in both. Each module is compared as a sequence of tokens, without imports,
annotations and docstrings, and with one token for all names and one for all values of a kind.
"""

from __future__ import annotations

import ast
import io
import keyword
import tokenize
from collections.abc import Iterator
from pathlib import Path

import streamproof.any

LONGEST = 40
"""Tokens that no run of both programs has, some three lines. Code of packages that have nothing to do with each other shares
runs of up to 42: of `any/certify` with `report`, dictionaries of texts."""
ANY = Path(streamproof.any.__file__).parent
WRITTEN = """
    pending = [update]
    while pending:
        match pending.pop():
            case e.Store(array=array, index=index):
                found.append(view.scalar(index))
                pending.append(array)
            case e.Ite(then=a, other=b):
                pending += [a, b]
"""
RENAMED = """
    todo: list[Expr] = [term]  # a copy with other names
    while todo:
        match todo.pop():
            case expr.Store(
                array=inner,
                index=at,
            ):
                places.append(state.value(at))
                todo.append(inner)
            case expr.Ite(then=yes, other=no):
                todo += [yes, no]
"""


class _Bare(ast.NodeTransformer):
    """Removes imports, annotations, and strings that are statements."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        return None if node.value is None else ast.Assign([node.target], node.value)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)


def tokens(source: str) -> tuple[str, ...]:
    """The tokens of a program, whatever its names, values and layout."""
    bare = ast.unparse(ast.fix_missing_locations(_Bare().visit(ast.parse(source))))
    found = []
    for token in tokenize.generate_tokens(io.StringIO(bare).readline):
        if token.type == tokenize.NAME:
            found.append(token.string if keyword.iskeyword(token.string) else "name")
        elif token.type in (tokenize.NUMBER, tokenize.STRING):
            found.append(tokenize.tok_name[token.type])
        elif token.string.strip():
            found.append(token.string)
    return tuple(found)


def runs(program: tuple[str, ...], length: int = LONGEST) -> Iterator[tuple[str, ...]]:
    """Every run of some tokens."""
    return (program[at : at + length] for at in range(len(program) - length + 1))


def test_no_run_of_tokens_of_the_verifier_is_one_of_the_engine() -> None:
    """What both programs need, each computes by its own method."""
    engine = [tokens(file.read_text(encoding="utf-8")) for file in sorted((ANY / "engine").glob("*.py"))]
    verifier = {file.name: tokens(file.read_text(encoding="utf-8")) for file in sorted((ANY / "certify").glob("*.py"))}
    assert sum(map(len, engine)) > 10_000
    assert sum(map(len, verifier.values())) > 10_000
    known = {run for program in engine for run in runs(program)}
    shared = {name: " ".join(run) for name, program in verifier.items() for run in runs(program) if run in known}
    assert shared == {}


def test_a_copy_with_other_names_is_seen() -> None:
    """Neither names, annotations, comments nor the layout make a copy another program."""
    one, other = (tokens(f"if True:{text}") for text in (WRITTEN, RENAMED))
    assert one == other
    assert len(one) > LONGEST
