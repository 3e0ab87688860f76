"""Compiler of kernels: Python functions over 64-bit words, translated to LLVM's intermediate representation.

The loops of the search are the same for every model. They are written in Python's syntax and compiled by the same compiler as
the code of the model. Every value is an unsigned 64-bit word: ``+ - *`` wrap around; comparisons, ``//``, ``%`` and ``>>``
are unsigned. Parameters are annotated ``word`` or, for memory, ``words`` (64 bits per element), ``halves`` (32), ``shorts``
(16) and ``bytes_`` (8); elements are zero-extended when read and truncated when written. The language has ``if``, ``while``,
``for i in range``, ``break``, ``continue``, ``return``, conditional expressions, calls of other kernels, and these functions:

=====================  =========================================================================================
``mulhi(a, b)``        the upper half of the 128-bit product
``prefetch(p, i)``     prefetch the cache line of ``p[i]`` for writing
``words_at(a)``        the memory at an address, as ``words``; likewise ``halves_at``, ``shorts_at``, ``bytes_at``
``address(p, i)``      the address of ``p[i]``
``invoke(f, ...)``     call the function at address ``f`` with words (memory is passed as an address); returns a word
``copy(to, from_, n)`` copy n bytes between addresses (they must not overlap)
``clear(to, n)``       set n bytes to zero
``lanes(p, i, m, a, b)`` compares the eight words of the cache line from ``p[i]`` on, under the mask ``m``, with ``a`` (even
                       words) and ``b`` (odd words): one bit per equal word
``lowest(a)``          the position of the lowest set bit; ``a`` must not be zero
=====================  =========================================================================================

Upper-case names are constants, substituted when the kernels are translated, so that code for states of one word has no loop
over words.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

WIDTHS = {"words": 64, "halves": 32, "shorts": 16, "bytes_": 8}
"""The memory types of kernel parameters, with the bits per element."""
_CASTS = {"words_at": "words", "halves_at": "halves", "shorts_at": "shorts", "bytes_at": "bytes_"}
_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "udiv", ast.Mod: "urem",
    ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "lshr",
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "ult", ast.LtE: "ule", ast.Gt: "ugt", ast.GtE: "uge",
}  # fmt: skip

PRELUDE = """
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.cttz.i64(i64, i1)
"""
"""Declarations of a module with kernels."""


def translate(kernels: Sequence[Callable[..., Any]], constants: Mapping[str, int]) -> str:
    """The text of a module with `kernels`; each may call earlier ones. `constants` has the values of upper-case names."""
    known: dict[str, list[str]] = {}
    parts = [PRELUDE]
    for kernel in kernels:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kernel))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        known[tree.name] = [_annotation(a) for a in tree.args.args]
        parts.append(_Function(tree, known, constants).text())
    return "\n".join(parts)


def _annotation(argument: ast.arg) -> str:
    assert isinstance(argument.annotation, ast.Name)
    return argument.annotation.id


def _literal(number: int) -> str:
    """A word in LLVM's syntax: a signed integer."""
    return str(number - (1 << 64) if number >> 63 else number)


def _type(kind: str) -> str:
    return "i64" if kind == "word" else "ptr"


class _Function:
    """One kernel. Locals live in stack slots, which LLVM turns into registers."""

    def __init__(self, tree: ast.FunctionDef, known: Mapping[str, Sequence[str]], constants: Mapping[str, int]) -> None:
        self._tree = tree
        self._known = known
        self._constants = constants
        self._lines: list[str] = []
        self._slots: list[str] = []
        self._kinds: dict[str, str] = {}
        self._count = 0
        self._loops: list[tuple[str, str]] = []
        self._open = True

    def text(self) -> str:
        """The function's definition."""
        parameters = [(a.arg, _annotation(a)) for a in self._tree.args.args]
        for name, kind in parameters:
            self._declare(name, kind)
            self._line(f"store {_type(kind)} %arg.{name}, ptr %l.{name}")
        self._body(self._tree.body)
        if self._open:
            self._line("ret i64 0")
        head = ", ".join(f"{_type(kind)} %arg.{name}" for name, kind in parameters)
        # Only the entry points are exported; the other kernels are inlined.
        inside = "alwaysinline" if self._tree.name.startswith("_") else "nounwind"
        link = "internal " if self._tree.name.startswith("_") else ""
        body = "\n".join(f" {line}" if not line.endswith(":") else line for line in self._lines)
        slots = "\n".join(f" {line}" for line in self._slots)
        return f"define {link}i64 @{self._tree.name}({head}) {inside} {{\nentry:\n{slots}\n{body}\n}}\n"

    # --- statements ---

    def _body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if not self._open:
                return
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case ast.Expr(value=value):
                self._value(value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                kind, text = self._typed(value)
                if name not in self._kinds:
                    self._declare(name, kind)
                self._line(f"store {_type(kind)} {text}, ptr %l.{name}")
            case ast.Assign(targets=[ast.Subscript() as place], value=value):
                self._store(place, self._value(value))
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                result = self._binary(op, self._load(target.id), self._value(value))
                self._line(f"store i64 {result}, ptr %l.{name}")
            case ast.AugAssign(target=ast.Subscript() as place, op=op, value=value):
                pointer, bits = self._place(place)
                result = self._binary(op, self._read(pointer, bits), self._value(value))
                self._write(pointer, bits, result)
            case ast.If(test=test, body=body, orelse=orelse):
                self._if(test, body, orelse)
            case ast.While(test=test, body=body):
                self._loop(lambda: self._truth(test), body, None)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=args), body=body):
                first, last = (ast.Constant(value=0), args[0]) if len(args) == 1 else (args[0], args[1])
                self._for(name, self._value(first), self._value(last), body)
            case ast.Return(value=value):
                self._line(f"ret i64 {'0' if value is None else self._value(value)}")
                self._open = False
            case ast.Break():
                self._jump(self._loops[-1][1])
            case ast.Continue():
                self._jump(self._loops[-1][0])
            case ast.Pass():
                pass
            case _:
                raise AssertionError(f"no kernel statement: {ast.unparse(statement)}")

    def _if(self, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> None:
        if isinstance(test, ast.Compare) and (known := self._folded(test)) is not None:
            self._body(body if known else orelse)
            return
        yes, no, after = self._label("then"), self._label("else"), self._label("endif")
        self._line(f"br i1 {self._truth(test)}, label %{yes}, label %{no if orelse else after}")
        self._begin(yes)
        self._body(body)
        self._jump(after)
        if orelse:
            self._begin(no)
            self._body(orelse)
            self._jump(after)
        self._begin(after)

    def _folded(self, test: ast.Compare) -> bool | None:
        """The value of a comparison of constants; else None."""
        try:
            return bool(
                eval(compile(ast.Expression(test), "<kernel>", "eval"), {"__builtins__": {}}, dict(self._constants))
            )
        except NameError:
            return None

    def _for(self, name: str, first: str, last: str, body: Sequence[ast.stmt]) -> None:
        if name not in self._kinds:
            self._declare(name, "word")
        self._line(f"store i64 {first}, ptr %l.{name}")

        def more() -> str:
            return self._new(f"icmp ult i64 {self._load(name)}, {last}")

        self._loop(
            more, body, lambda: self._line(f"store i64 {self._new(f'add i64 {self._load(name)}, 1')}, ptr %l.{name}")
        )

    def _loop(self, test: Callable[[], str], body: Sequence[ast.stmt], step: Callable[[], None] | None) -> None:
        head, inside, again, after = (self._label(x) for x in ("head", "body", "again", "done"))
        self._jump(head)
        self._begin(head)
        self._line(f"br i1 {test()}, label %{inside}, label %{after}")
        self._begin(inside)
        self._loops.append((again, after))
        self._body(body)
        self._loops.pop()
        self._jump(again)
        self._begin(again)
        if step is not None:
            step()
        self._jump(head)
        self._begin(after)

    # --- expressions ---

    def _typed(self, value: ast.expr) -> tuple[str, str]:
        """The type and the text of a value that may be memory."""
        match value:
            case ast.Name(id=name) if name in self._kinds:
                return self._kinds[name], self._load(name)
            case ast.Call(func=ast.Name(id=name), args=[argument]) if name in _CASTS:
                return _CASTS[name], self._new(f"inttoptr i64 {self._value(argument)} to ptr")
            case _:
                return "word", self._value(value)

    def _value(self, value: ast.expr) -> str:
        match value:
            case ast.Constant(value=bool()) | ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return self._new(f"zext i1 {self._truth(value)} to i64")
            case ast.Constant(value=int(number)):
                return _literal(number)
            case ast.Name(id=name) if name in self._kinds:
                return self._load(name)
            case ast.Name(id=name):
                return _literal(self._constants[name])
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, self._value(left), self._value(right))
            case ast.Subscript():
                return self._read(*self._place(value))
            case ast.IfExp(test=test, body=yes, orelse=no):
                return self._new(f"select i1 {self._truth(test)}, i64 {self._value(yes)}, i64 {self._value(no)}")
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._call(name, args)
            case _:
                raise AssertionError(f"no kernel expression: {ast.unparse(value)}")

    def _truth(self, test: ast.expr) -> str:
        match test:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._new(f"icmp {_COMPARE[type(op)]} i64 {self._value(left)}, {self._value(right)}")
            case ast.Constant(value=bool(known)):
                return "true" if known else "false"
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return self._new(f"xor i1 {self._truth(inner)}, true")
            case ast.BoolOp(op=op, values=values):
                return self._short(isinstance(op, ast.And), values)
            case _:
                return self._new(f"icmp ne i64 {self._value(test)}, 0")

    def _short(self, both: bool, values: Sequence[ast.expr]) -> str:
        """``and`` and ``or`` with short-circuit evaluation: later operands may read memory that is valid only then."""
        slot = f"%short.{self._count}"
        self._count += 1
        self._slots.append(f"{slot} = alloca i1")
        after = self._label("short")
        for at, part in enumerate(values):
            self._line(f"store i1 {self._truth(part)}, ptr {slot}")
            if at + 1 < len(values):
                more = self._label("more")
                known = self._new(f"load i1, ptr {slot}")
                way = (more, after) if both else (after, more)
                self._line(f"br i1 {known}, label %{way[0]}, label %{way[1]}")
                self._begin(more)
        self._jump(after)
        self._begin(after)
        return self._new(f"load i1, ptr {slot}")

    def _call(self, name: str, args: Sequence[ast.expr]) -> str:
        if name in self._known:
            parts = [f"{_type(kind)} {self._typed(a)[1]}" for kind, a in zip(self._known[name], args, strict=True)]
            return self._new(f"call i64 @{name}({', '.join(parts)})")
        if name in ("prefetch", "address"):
            pointer, _ = self._place(ast.Subscript(value=args[0], slice=args[1]))
            if name == "address":
                return self._new(f"ptrtoint ptr {pointer} to i64")
            self._line(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 1, i32 3, i32 1)")
            return "0"
        if name == "lanes":
            return self._lanes(*args)
        texts = [self._typed(a)[1] for a in args]
        match name:
            case "lowest":
                return self._new(f"call i64 @llvm.cttz.i64(i64 {texts[0]}, i1 true)")
            case "mulhi":
                wide = [self._new(f"zext i64 {text} to i128") for text in texts]
                product = self._new(f"mul i128 {wide[0]}, {wide[1]}")
                return self._new(f"trunc i128 {self._new(f'lshr i128 {product}, 64')} to i64")
            case "invoke":
                function = self._new(f"inttoptr i64 {texts[0]} to ptr")
                return self._new(f"call i64 {function}({', '.join(f'i64 {text}' for text in texts[1:])})")
            case "copy":
                to, source = (self._new(f"inttoptr i64 {text} to ptr") for text in texts[:2])
                self._line(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {texts[2]}, i1 false)")
                return "0"
            case "clear":
                to = self._new(f"inttoptr i64 {texts[0]} to ptr")
                self._line(f"call void @llvm.memset.p0.i64(ptr {to}, i8 0, i64 {texts[1]}, i1 false)")
                return "0"
            case _:
                raise AssertionError(f"no kernel function: {name}")

    def _lanes(self, memory: ast.expr, at: ast.expr, mask: ast.expr, even: ast.expr, odd: ast.expr) -> str:
        pointer, _ = self._place(ast.Subscript(value=memory, slice=at))
        line = self._new(f"load <8 x i64>, ptr {pointer}, align 64")
        under = self._new(f"and <8 x i64> {line}, {self._spread(mask, mask)}")
        equal = self._new(f"icmp eq <8 x i64> {under}, {self._spread(even, odd)}")
        return self._new(f"zext i8 {self._new(f'bitcast <8 x i1> {equal} to i8')} to i64")

    def _spread(self, even: ast.expr, odd: ast.expr) -> str:
        """Eight words: one value in the even lanes, another in the odd ones."""
        pair = "<8 x i64> poison"
        for lane, part in enumerate((even, odd)):
            pair = f"<8 x i64> {self._new(f'insertelement {pair}, i64 {self._value(part)}, i64 {lane}')}"
        order = ", ".join(f"i32 {lane % 2}" for lane in range(8))
        return self._new(f"shufflevector {pair}, <8 x i64> poison, <8 x i32> <{order}>")

    def _binary(self, op: ast.operator, left: str, right: str) -> str:
        return self._new(f"{_BINARY[type(op)]} i64 {left}, {right}")

    # --- memory and text ---

    def _place(self, place: ast.expr) -> tuple[str, int]:
        """A pointer to an element, and the number of bits of the element."""
        assert isinstance(place, ast.Subscript)
        kind, base = self._typed(place.value)
        bits = WIDTHS[kind]
        return self._new(f"getelementptr i{bits}, ptr {base}, i64 {self._value(place.slice)}"), bits

    def _read(self, pointer: str, bits: int) -> str:
        loaded = self._new(f"load i{bits}, ptr {pointer}")
        return loaded if bits == 64 else self._new(f"zext i{bits} {loaded} to i64")

    def _write(self, pointer: str, bits: int, value: str) -> None:
        cut = value if bits == 64 else self._new(f"trunc i64 {value} to i{bits}")
        self._line(f"store i{bits} {cut}, ptr {pointer}")

    def _store(self, place: ast.Subscript, value: str) -> None:
        self._write(*self._place(place), value)

    def _declare(self, name: str, kind: str) -> None:
        self._kinds[name] = kind
        self._slots.append(f"%l.{name} = alloca {_type(kind)}")

    def _load(self, name: str) -> str:
        return self._new(f"load {_type(self._kinds[name])}, ptr %l.{name}")

    def _new(self, operation: str) -> str:
        name = f"%t{self._count}"
        self._count += 1
        self._line(f"{name} = {operation}")
        return name

    def _line(self, text: str) -> None:
        self._lines.append(text)

    def _label(self, what: str) -> str:
        self._count += 1
        return f"{what}.{self._count}"

    def _begin(self, label: str) -> None:
        self._lines.append(f"{label}:")
        self._open = True

    def _jump(self, label: str) -> None:
        if self._open:
            self._line(f"br label %{label}")
        self._open = False
