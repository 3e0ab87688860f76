"""Random rules do the same when they are lowered as when Python runs them."""

from __future__ import annotations

import random
import textwrap
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loading import load
from streamproof import Model
from streamproof.language.lower import model_reader
from streamproof.language.lower.sources import PythonError
from streamproof.language.native.native import Native
from streamproof.system import EvaluationError, Interpreter, ModelError, System
from streamproof.system.sorts import (
    ArraySort,
    BagSort,
    BoolSort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    UnionSort,
    bag_of,
    is_empty,
)

HEAD = """
from streamproof import *

NUMBERS = (2, 0, 1)
TABLE = {"A": 1, "B": 0, "C": 2}
FLAG = "Y"
TABLES = {0: 2, 1: 0}

class Ask(Case):
    n: int
    who: str

class Give(Case):
    n: int

class Stop(Case):
    pass

class Random(Model):
    n: int = 2
    check_deadlock = False

    def state(self):
        who = Enum("A", "B", "C")
        message = Union(Ask(n=Range(0, 3), who=Option(who)), Give(n=Range(1, 2)), Stop())
        return State(
            a=Range(0, 3), b=Range(-2, 2, init=-2), p=Bool(), m=Enum("A", "B", "C"),
            arr=Array(range(3), Range(0, 3)), flags=Array(["X", "Y"], Bool()), by=Array(Enum("A", "B", "C"), Range(0, 2)),
            grid=Array(range(2), Array(range(2), Range(0, 2))),
            link=Array([(0, "A"), (2, "B"), (1, "A")], Range(0, 3)), odd=Array([5, -1, 2], Range(0, 2)),
            none=Array(0, Range(0, 2)), nobody=Set(Range(0, -1)), noone=Option(Range(0, -1)),
            recs=Array(range(2), Record(n=Range(0, 3), ok=Bool(), m=who)),
            rec=Record(n=Range(0, 2), items=Array(range(2), Range(0, 2)), who=Option(Range(0, 2))),
            queue=Queue(Range(0, 3), capacity=2), mail=Queue(Record(k=Enum("D", "E"), n=Range(0, 2)), capacity=2),
            chans=Array(range(2), Queue(Range(0, 2), capacity=2)),
            few=Set(Range(0, 3)), names=Set(Enum("A", "B", "C")), sets=Array(range(2), Set(Range(0, 2))),
            opt=Option(Range(0, 3)), who=Option(Enum("A", "B", "C")),
            msg=message, told=Array(range(2), message), line=Queue(message, capacity=2), msgs=Set(message),
            maybe=Option(message), net=Bag(Range(0, 3), capacity=3), mails=Bag(message, capacity=2),
        )

    def early(self, s, x):
        if x > s.a:
            return x - 1
        for v in s.arr:
            if v == x:
                return v
        return s.b

    def bump(self, s, x, by=1):
        if s.arr[0] + by > 3:
            return False
        s.arr[0] += by
        return s.arr[0] == x

    def channel(self, s, x):
        return s.chans[x % 2]

    def demand(self, s, x):
        require(x < s.a + 3)
        return x
"""


class Writer:
    """Writes random rules; every decision is a draw, so that hypothesis can shrink them."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.fresh = 0

    def pick(self, *options: Any) -> Any:
        """One of the options."""
        return self.draw(st.sampled_from(options))

    def chance(self, one_in: int) -> bool:
        """True once in so many times."""
        return self.draw(st.integers(0, one_in - 1)) == one_in - 1

    def name(self, prefix: str) -> str:
        """A new local name."""
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    # --- expressions

    def number(self, depth: int, scope: dict[str, list[str]]) -> str:
        """An integer expression."""
        small = self.pick("0", "1", "2", "s.a", "s.b", "s.rec.n", "len(s.queue)", "len(s.few)", "i", *scope["int"])
        if depth == 0 or self.chance(3):
            return small
        sub = partial(self.number, depth - 1, scope)
        kind = self.pick(
            "arr", "by", "grid", "recs", "op", "op", "op", "div", "min", "sum", "if", "head", "at", "pop", "opt", "early",
            "count", "max", "table", "mail", "neg", "spread", "demand", "bool", "last", "name", "find", "key", "key", "none",
            "case", "case", "bag",
        )  # fmt: skip
        match kind:
            case "bag":
                return self.pick(
                    f"s.net.count({sub()})", "len(s.net)", f"sum(v for v in s.net if v != {sub()})", "len(s.mails)",
                    f"s.mails.count({self.message(depth - 1, scope)})", "len(set(s.net))",
                )  # fmt: skip
            case "arr":
                return f"s.arr[{sub()}]"
            case "by":
                return f"s.by[{self.enum(depth - 1, scope)}]"
            case "grid":
                return f"s.grid[{sub()}][{sub()}]"
            case "recs":
                return f"s.recs[{sub()}].n"
            case "key":
                return self.pick(f"s.link[{sub()}, {self.enum(depth - 1, scope)}]", f"s.odd[{sub()}]", 's.link[2, "B"]')
            case "none":
                return self.pick("len(s.nobody)", "sum(s.none)", f"(s.none[{sub()}] if {self.truth(0, scope)} else 0)")
            case "op":
                return f"({sub()} {self.pick('+', '-', '*')} {sub()})"
            case "div":
                return f"({sub()} {self.pick('//', '%')} {sub()})"
            case "min":
                return f"{self.pick('min', 'max')}({sub()}, {sub()})"
            case "sum":
                return self.pick("sum(s.arr)", f"sum(v for v in s.queue if {self.truth(0, scope)})", "sum(s.few)")
            case "if":
                return f"({sub()} if {self.truth(depth - 1, scope)} else {sub()})"
            case "head":
                return self.pick("s.queue.head", "s.chans[i].head", f"self.channel(s, {sub()}).head")
            case "at":
                return f"s.queue[{sub()}]"
            case "pop":
                return self.pick("s.queue.pop()", "s.chans[i].pop()", f"self.channel(s, {sub()}).pop()")
            case "opt":
                return self.pick("s.opt", "s.rec.who")
            case "early":
                return f"self.early(s, {sub()})"
            case "count":
                return self.pick(
                    "len({*s.arr})", f"len({{{sub()}, {sub()}}})", "len(set(s.arr))", f"len(s.sets[{sub()}])"
                )
            case "max":
                return self.pick(
                    "max(s.few, default=1)", "min(s.queue)", "max(s.arr)", "max(v for v in s.arr if v < s.a)"
                )
            case "table":
                return self.pick(f"NUMBERS[{sub()}]", f"TABLE[{self.enum(depth - 1, scope)}]")
            case "mail":
                return self.pick("s.mail.head.n", f"s.mail[{sub()}].n", "s.mail.pop().n")
            case "case":
                return f"{self.pick('s.msg', 's.line.head', f's.told[{sub()}]', 's.maybe')}.n"
            case "neg":
                return self.pick(f"-{sub()}", f"abs({sub()})")
            case "spread":
                return f"[{sub()}, {sub()}, *s.arr][{sub()}]"
            case "demand":
                return f"self.demand(s, {sub()})"
            case "bool":
                return f"(({self.truth(depth - 1, scope)}) + 1)"
            case "last":
                return self.pick(
                    "s.queue[-1]", f"s.queue.pop({sub()})", f"s.queue.count({sub()})", f"s.chans[i].index({sub()})",
                    "len(s.queue + s.chans[i])", f"sum(s.queue[{sub()}:{sub()}])", f"max(s.queue[:{sub()}])",
                    f"len([v for v in s.arr if v != {sub()}])", f"[v for v in s.arr if v > {sub()}][{sub()}]",
                )  # fmt: skip
            case "name":
                return f"(lambda x, y={sub()}: x + y)({sub()})"
            case _:
                return f"next_of({sub()})" if "next_of" in scope["int"] else f"[v for v in s.arr][{sub()}]"

    def message(self, depth: int, scope: dict[str, list[str]]) -> str:
        """A value of a union."""
        plain = self.pick("Stop()", "s.msg", "s.told[i]", "s.line.head", "s.maybe", "Give(1)", "Ask(n=0, who=None)")
        if depth == 0 or self.chance(3):
            return plain
        num, who = self.number(depth - 1, scope), self.enum(depth - 1, scope)
        inner = self.message(depth - 1, scope)
        return self.pick(
            f"Give(n={num})", f"Ask({num}, {who})", f"Ask(who={self.pick('None', 's.who', who)}, n={num})",
            f"({inner} if {self.truth(depth - 1, scope)} else {plain})", f"s.told[{num}]", "s.line.pop()",
            f"s.line[{num}]",
        )  # fmt: skip

    def enum(self, depth: int, scope: dict[str, list[str]]) -> str:
        """A member of Enum("A", "B", "C")."""
        plain = self.pick('"A"', '"B"', "s.m", "s.recs[i].m", *scope["enum"])
        if depth == 0 or self.chance(2):
            return plain
        inner = self.enum(depth - 1, scope)
        return self.pick(f'("C" if {self.truth(depth - 1, scope)} else {inner})', f"s.recs[{self.number(0, scope)}].m")

    def truth(self, depth: int, scope: dict[str, list[str]]) -> str:
        """A truth value."""
        small = self.pick("s.p", 's.flags["X"]', "s.recs[i].ok", "True", "s.queue.full", *scope["bool"])
        if depth == 0 or self.chance(4):
            return self.pick(small, f"s.a > {self.number(0, scope)}", "s.opt is None", "len(s.queue) > 0")
        num, sub = partial(self.number, depth - 1, scope), partial(self.truth, depth - 1, scope)
        kind = self.pick(
            "cmp", "cmp", "chain", "and", "and", "or", "not", "in", "enum", "opt", "any", "all", "rec", "set", "bump",
            "queue", "names", "lists", "either", "sub", "who", "mail", "none", "case", "case",
            "bag",
        )  # fmt: skip
        match kind:
            case "bag":
                return self.pick(
                    f"{num()} in s.net", f"{self.message(depth - 1, scope)} in s.mails", f"s.net == [{num()}, {num()}]",
                    f"s.net {self.pick('<=', '<', '>=', '>')} [1, {num()}]", f"any(v == {num()} for v in s.net)",
                    "all(isinstance(m, Ask) for m in s.mails)",
                )  # fmt: skip
            case "cmp":
                return f"{num()} {self.pick('==', '!=', '<', '<=', '>', '>=')} {num()}"
            case "chain":
                return f"({num()} {self.pick('<', '<=', '==')} {num()} {self.pick('<', '<=', '!=')} {num()})"
            case "and":
                return f"({sub()} and {sub()})"
            case "or":
                return f"({sub()} or {sub()})"
            case "not":
                return f"(not {sub()})"
            case "in":
                hay = self.pick("s.few", "s.queue", "s.arr", "(0, 2)", "range(3)", "s.sets[i]")
                return f"{num()} {self.pick('in', 'not in')} {hay}"
            case "enum":
                return f"{self.enum(depth - 1, scope)} == {self.enum(depth - 1, scope)}"
            case "opt":
                return self.pick(
                    "s.opt is not None and s.opt > 1", "s.who == s.m", f"s.opt == {num()}", "s.rec.who is None"
                )
            case "any":
                inner = self.truth(0, {**scope, "int": [*scope["int"], "v"]})
                return f"any({inner} and v == {num()} for v in {self.pick('s.arr', 's.queue', 's.few', 'range(3)')})"
            case "all":
                return f"all(s.arr[k] > {num()} for k in range({self.pick('2', '3', '4')}))"
            case "rec":
                return self.pick(
                    f'{{"n": {num()}, "ok": {sub()}, "m": {self.enum(0, scope)}}} == s.recs[i]',
                    "s.recs[0] == s.recs[1]",
                )
            case "set":
                common = f"s.few & {{{num()}}} == {{1}}"
                return self.pick("s.few <= {0, 1}", "s.sets[0] == s.sets[1]", common, "s.sets[i] < s.few")
            case "bump":
                return self.pick(f"self.bump(s, {num()})", f"self.bump(s, {num()}, by={num()})")
            case "queue":
                return self.pick(
                    f"s.queue[1:] == [{num()}]",
                    f"s.queue + [{num()}] == [*s.arr][:{num()}]",
                    f"[v for v in s.arr if v != {num()}] == [1, {num()}]",
                    f"{num()} in s.queue[{num()}:]",
                    f"s.queue == [{num()}]",
                    "s.chans[0] == s.chans[1]",
                    f"s.grid[i] == [{num()}, {num()}]",
                )
            case "case":
                one, other = self.message(depth - 1, scope), self.message(depth - 1, scope)
                kind = self.pick("Ask", "Give", "Stop", "(Ask, Stop)", "Give | Stop")
                return self.pick(
                    f"isinstance({one}, {kind})", f"{one} == {other}", f"{one} in s.msgs", f"{one} in s.line",
                    f"any(isinstance(x, Give) and x.n == {num()} for x in s.msgs)",
                    f"(isinstance(s.msg, Ask) and s.msg.who == {self.enum(0, scope)})", "s.maybe is None",
                    f"{{{one}, {other}}} <= s.msgs", f"all(not isinstance(x, Ask) for x in s.{self.pick('told', 'line')})",
                )  # fmt: skip
            case "names":
                return f"{self.enum(depth - 1, scope)} in s.names"
            case "lists":
                return f"[{num()}, s.p] == [{num()}, {sub()}]"
            case "either":
                return f"({sub()} if {sub()} else {sub()})"
            case "sub":
                one, two = (
                    f"{{{num()}, s.a}}",
                    self.pick(f"{{{num()}}}", "{0, 1}", f"{{v for v in s.arr if v != {num()}}}"),
                )
                return f"({one} {self.pick('|', '&', '-')} {two}) {self.pick('==', '<=', '<')} {{0, 1, {num()}}}"
            case "none":
                return self.pick(
                    "s.noone is None", f"s.noone == {num()}", f"{num()} in s.nobody", f"any(v == {num()} for v in s.none)",
                    f"all(v < {num()} for v in s.nobody)", "s.nobody <= s.few",
                    f"(s.noone is not None and s.noone < {num()})",
                )  # fmt: skip
            case "who":
                return f"s.who in ({self.enum(0, scope)}, None)"
            case _:
                return self.pick('s.mail.head.k == "D"', 'any(x.k == "E" for x in s.mail)', "len(s.mail) == 2")

    # --- statements

    def block(self, depth: int, scope: dict[str, list[str]], loop: bool) -> list[str]:
        """Some statements; what they name is known after them, not outside."""
        inner = {k: list(v) for k, v in scope.items()}
        lines: list[str] = []
        for _ in range(self.pick(1, 1, 2, 2, 3)):
            lines += self.statement(depth, inner, loop)
        return lines

    def statement(self, depth: int, scope: dict[str, list[str]], loop: bool) -> list[str]:
        """One statement, perhaps of several lines."""

        def num(depth: int = 2) -> str:
            return self.number(depth, scope)

        kinds = [
            "int", "int", "aug", "aug", "arr", "arr", "key", "bool", "enum", "opt", "rec", "recfield", "list", "push", "pop",
            "clear", "add", "setop", "local", "local", "localbool", "localenum", "swap", "require", "alias", "helper",
            "choose", "lists", "copy", "chan", "mail", "closure", "grid", "sequence", "sequence", "growing", "growing",
            "none", "case", "case", "send", "receive", "bag", "bag",
        ]  # fmt: skip
        if depth > 0:
            kinds += ["match"] * 5 + ["if"] * 8 + ["for"] * 5 + ["pairs"] * 2
        if loop:
            kinds += ["break", "continue", "break"]
        kinds += ["return"]
        match self.pick(*kinds):
            case "none":
                over = self.pick("range(len(s.none))", "s.nobody")
                return [f"for v in {over}:", f"    s.a = {num()}", f"if {self.truth(1, scope)}:", "    " + self.pick(
                    f"s.nobody.add({num()})", f"s.noone = {num()}", "s.noone = None", f"s.none[{num(1)}] = 0",
                    f"s.nobody.discard({num()})", "s.few |= s.nobody", "s.none = []", "v = choose(s.nobody)",
                )]  # fmt: skip
            case "int":
                return [f"{self.pick('s.a', 's.b', 's.rec.n', 's.recs[i].n')} = {num()}"]
            case "aug":
                place = self.pick(
                    "s.a", "s.b", f"s.arr[{num(1)}]", f"s.recs[{num(1)}].n", "s.grid[i][1]", *scope["int"]
                )
                if place in ("v", "w", "i"):
                    place = "s.a"
                return [f"{place} {self.pick('+=', '-=', '*=', '%=')} {num()}"]
            case "arr":
                return [f"s.arr[{num(1)}] = {num()}"]
            case "key":
                place = self.pick(f"s.link[{num(1)}, {self.enum(1, scope)}]", 's.link[1, "A"]', f"s.odd[{num(1)}]")
                return [f"{place} {self.pick('=', '+=')} {num()}"]
            case "bool":
                return [f"{self.pick('s.p', 's.flags[FLAG]', 's.recs[i].ok')} = {self.truth(2, scope)}"]
            case "enum":
                return [f"{self.pick('s.m', 's.recs[1].m', 's.who')} = {self.enum(2, scope)}"]
            case "opt":
                return [f"{self.pick('s.opt', 's.rec.who')} = {self.pick('None', num(), f'{num()} if s.p else None')}"]
            case "rec":
                return [
                    f's.recs[{num(1)}] = {{"n": {num()}, "ok": {self.truth(1, scope)}, "m": {self.enum(1, scope)}}}'
                ]
            case "recfield":
                return [f"s.rec.items[{num(1)}] = {num()}"]
            case "list":
                row, members = f"[{num()}, {num()}]", f"{{{num()}, {num()}}}"
                return [self.pick(f"s.grid[{num(1)}] = {row}", f"s.queue = [{num()}]", f"s.few = {members}")]
            case "push":
                return [f"{self.pick('s.queue', 's.chans[i]', f's.chans[{num(1)}]')}.push({num()})"]
            case "pop":
                return [f"{self.pick('s.queue', 's.chans[i]')}.pop()"]
            case "clear":
                return [f"{self.pick('s.queue', 's.few', 's.sets[i]')}.clear()"]
            case "add":
                return [f"{self.pick('s.few', 's.sets[i]')}.{self.pick('add', 'discard', 'remove')}({num()})"]
            case "setop":
                return [f"s.few {self.pick('|=', '-=', '&=')} {self.pick('s.sets[i]', '{1, 2}', f'{{{num()}}}')}"]
            case "local":
                name = self.name("x")
                lines = [f"{name} = {num()}"]
                scope["int"].append(name)
                return lines
            case "localbool":
                name = self.name("t")
                lines = [f"{name} = {self.truth(2, scope)}"]
                scope["bool"].append(name)
                return lines
            case "localenum":
                name = self.name("e")
                lines = [f"{name} = {self.enum(2, scope)}"]
                scope["enum"].append(name)
                return lines
            case "swap":
                return [f"s.a, s.arr[{num(1)}] = s.arr[{num(1)}], {num(1)}"]
            case "require":
                return [f"require({self.truth(2, scope)})"]
            case "alias":
                name = self.name("r")
                return [
                    f"{name} = s.recs[{num(1)}]",
                    self.pick(f"{name}.n = {num()}", f"s.recs[0].n = {name}.n", f"s.recs[1] = {name}"),
                    f"s.b = {name}.n - 1",
                ]
            case "helper":
                return [f"self.bump(s, {num()})"]
            case "choose":
                name = self.name("c")
                domain = self.pick(
                    "[0, 1]",
                    "range(2)",
                    "s.few",
                    "[x for x in range(3) if x != i]",
                    "(1, 1)",
                    "[x for x in range(3) if x < s.a]",
                )
                scope["int"].append(name)
                return [f"{name} = choose({domain})"]
            case "lists":
                name = self.name("l")
                return [
                    f"{name} = [{num()}, {num()}, 0]",
                    f"{name}[{self.pick('0', '1', '-1')}] += {num(1)}",
                    self.pick(f"s.arr = {name}", f"s.a = sum({name})", f"s.p = s.a in {name}"),
                ]
            case "copy":
                pairs = [("recs[0]", "recs[1]"), ("chans[0]", "chans[1]"), ("sets[0]", "few"), ("queue", "chans[i]")]
                place, value = self.pick(*pairs)
                return [f"s.{place} = s.{value}"]
            case "chan":
                return [f"self.channel(s, {num(1)}).push({num()})"]
            case "mail":
                return [
                    self.pick(f's.mail.push({{"k": "D", "n": {num()}}})', "s.mail.pop()", "s.rec.n = s.mail.pop().n")
                ]
            case "bag":
                name = self.name("b")
                message = self.message(2, scope)
                scope["int"].append(name)
                return [
                    self.pick(
                        f"s.net.{self.pick('add', 'add', 'discard', 'remove')}({num()})", "s.net.clear()",
                        f"s.mails.{self.pick('add', 'discard', 'remove')}({message})", f"s.net = [{num()}, {num(1)}]",
                        f"s.net = [v for v in s.net if v != {num()}]", f"s.mails = [{message}]",
                    ),
                    f"{name} = {self.pick('choose(s.net)', '1', 'len(s.net)')}",
                ]  # fmt: skip
            case "case":
                place = self.pick("s.msg", "s.maybe", f"s.told[{num(1)}]")
                return [f"{place} = {self.message(2, scope)}"]
            case "send":
                method = self.pick("s.line.push", "s.msgs.add", "s.msgs.discard", "s.msgs.remove")
                return [f"{method}({self.message(2, scope)})"]
            case "receive":
                name = self.name("m")
                return [
                    f"{name} = {self.pick('choose(s.msgs)', 's.line.pop()', self.message(2, scope))}",
                    self.pick(f"s.msg = {name}", f"s.maybe = {name}", f"s.a = {name}.n", f"s.msgs.discard({name})"),
                ]
            case "match":
                return self.match(depth, scope, loop)
            case "sequence":
                place = self.pick("s.queue", "s.queue", "s.chans[i]", f"s.chans[{num(1)}]")
                return [
                    self.pick(
                        f"{place}.insert({num()}, {num()})", f"{place}.remove({num()})", f"{place}.pop({num()})",
                        f"{place}.extend([{num()}])", f"{place}.extend(s.queue)", f"{place} += [{num()}]",
                        f"{place} = {place}[{num()}:] + [{num()}]", f"{place} = s.queue[:{num()}]",
                        f"{place} = [v for v in s.queue if v != {num()}]", "s.chans[0] = s.chans[1] + s.chans[0]",
                    )
                ]  # fmt: skip
            case "growing":
                name, inner = self.name("g"), {**scope, "int": [*scope["int"], "v"]}
                lines = [
                    f"{name} = {self.pick('[]', f'[{num()}]', f's.queue[:{num()}]')}",
                    f"for v in {self.pick('s.arr', 's.few', 's.queue', '(0, 2)')}:",
                    f"    if {self.truth(1, inner)}:",
                    f"        {name}.{self.pick('append', 'append', 'remove')}({self.number(1, inner)})",
                ]
                for _ in range(self.pick(0, 1, 2)):
                    lines.append(
                        self.pick(
                            f"{name}.pop({self.pick('', num())})", f"{name}.insert({num()}, {num()})",
                            f"{name}.remove({num()})", f"{name}.reverse()", f"{name} += [{num()}]",
                            f"{name} = {name}[{num()}:]", f"{name} = {name} + [{num()}]",
                            f"{name} = [w for w in {name} if w != {num()}]", f"{name}.extend(s.queue)",
                        )
                    )  # fmt: skip
                lines.append(
                    self.pick(
                        f"s.queue = {name}", f"s.a = len({name})", f"s.a = sum({name})", f"s.a = {name}[{num()}]",
                        f"s.b = {name}.count({num()})", f"s.b = {name}.index({num()})", f"s.p = {num()} in {name}",
                        f"s.p = {name} == [{num()}]", f"s.p = {name} == s.queue[1:]", f"s.few = set({name})",
                        f"s.a = max({name}, default=1)", f"s.b = {name}[-1]",
                    )
                )  # fmt: skip
                return lines
            case "closure":
                name = self.name("f")
                return [
                    f"def {name}(x, y=s.a):",
                    f"    if {self.truth(1, {**scope, 'int': [*scope['int'], 'x', 'y']})}:",
                    f"        s.b = {self.pick('x', 'y')}",
                    "        return y",
                    "    return x",
                    f"s.a = {name}({num(1)})",
                ]
            case "grid":
                name = self.name("g")
                return [f"{name} = s.grid[{num(1)}]", f"{name}[0] = {num()}", f"s.grid[0] = {name}"]
            case "if":
                lines = [f"if {self.truth(2, scope)}:", *indent(self.block(depth - 1, scope, loop))]
                if self.chance(3):
                    lines += [f"elif {self.truth(1, scope)}:", *indent(self.block(depth - 1, scope, loop))]
                if self.chance(2):
                    lines += ["else:", *indent(self.block(depth - 1, scope, loop))]
                return lines
            case "pairs":
                over = self.pick("enumerate(s.arr)", "zip(s.arr, NUMBERS)", "enumerate(s.queue)", "TABLES.items()")
                inner = {**scope, "int": [*scope["int"], "v", "w"]}
                return [f"for v, w in {over}:", *indent(self.block(depth - 1, inner, True))]
            case "for":
                name = self.pick("v", "w")
                inner = {**scope, "int": [*scope["int"], name]}
                over = self.pick(
                    "range(3)", "s.arr", "s.queue", "s.few", "(0, 2)", "NUMBERS", "s.sets[i]", "reversed(s.arr)"
                )
                return [f"for {name} in {over}:", *indent(self.block(depth - 1, inner, True))]
            case "break":
                return [f"if {self.truth(1, scope)}:", "    break"]
            case "continue":
                return [f"if {self.truth(1, scope)}:", "    continue"]
            case _:
                return [f"if {self.truth(1, scope)}:", "    return"]

    def match(self, depth: int, scope: dict[str, list[str]], loop: bool) -> list[str]:
        """A match over a union or an Enum."""

        def body(names: list[str] = []) -> list[str]:  # noqa: B006
            return indent(indent(self.block(depth - 1, {**scope, "int": [*scope["int"], *names]}, loop)))

        name = self.name("k")
        if self.chance(5):
            lines = [
                f"match {self.enum(1, scope)}:",
                f"    case {self.pick(repr('A'), repr('A') + ' | ' + repr('B'))}:",
            ]
            return [*lines, *body(), "    case _:", *body()]
        guard = self.pick("", "", f" if {self.truth(1, {**scope, 'int': [*scope['int'], name]})}")
        lines = [f"match {self.message(1, scope)}:"]
        first = self.pick(f"Ask(n={name})", f"Ask({name}, who=None)", f'Ask(who="B", n={name})', f"Give({name})")
        lines += [f"    case {first}{guard}:", *body([name])]
        for other in self.pick(["Stop()"], ["Give(2) | Ask(0)", "None"], [f"Give(n={name})", "Ask() | Stop()"], []):
            lines += [f"    case {other}:", *body()]
        if self.chance(2):
            lines += [f"    case {self.pick('_', 'whole')}:", *body()]
        return lines


def indent(lines: list[str]) -> list[str]:
    """One level deeper."""
    return ["    " + line for line in lines]


@st.composite
def rules(draw: Any) -> str:
    """The source of a model with one random rule and one random property."""
    writer = Writer(draw)
    scope: dict[str, list[str]] = {"int": [], "bool": [], "enum": []}
    body: list[str] = []
    for _ in range(draw(st.integers(1, 5))):
        body += writer.statement(2, scope, False)
    truth = writer.truth(2, {"int": [], "bool": [], "enum": []}).replace("i]", "0]").replace("pop()", "head")
    tail = [
        "@action(i='n')",
        "def rule(self, s, i):",
        *indent(body),
        "",
        "@invariant",
        "def holds(self, s):",
        "    i = 1",
    ]
    return HEAD + "\n" + textwrap.indent("\n".join([*tail, f"    return {truth}"]), "    ") + "\n"


def anything(sort: Any, rng: random.Random) -> Any:
    """A random value of a sort."""
    match sort:
        case BoolSort():
            return rng.random() < 0.5
        case RangeSort(lo, hi):
            return rng.randint(lo, hi)
        case EnumSort(members):
            return rng.choice(members)
        case RecordSort(fields):
            return tuple(anything(s, rng) for _, s in fields)
        case UnionSort(cases):
            name, fields = rng.choice(cases)
            return (name, anything(fields, rng))
        case OptionSort(element):
            return None if rng.random() < 0.3 or is_empty(element) else anything(element, rng)
        case BagSort(item=item, capacity=capacity):
            return bag_of(sort, [anything(item, rng) for _ in range(rng.randint(0, capacity))])
        case ArraySort(index, element):
            size = len(index.members) if isinstance(index, EnumSort) else index.hi - index.lo + 1
            return tuple(anything(element, rng) for _ in range(size))
        case QueueSort(element, capacity):
            return tuple(anything(element, rng) for _ in range(rng.randint(0, capacity)))
        case SetSort(element) if is_empty(element):
            return frozenset()
        case SetSort(element):
            return frozenset(anything(element, rng) for _ in range(rng.randint(0, 3)))
    raise AssertionError(sort)


def outcome(run: Any, *args: Any) -> tuple[Any, ...]:
    """What a run does: the state it leads to, None where it is not enabled, or the error with its line."""
    try:
        return ("value", run(*args))
    except EvaluationError as error:
        return ("error", error.loc and error.loc.line, None if isinstance(error, PythonError) else error.message)


def same(lowered: tuple[Any, ...], ran: tuple[Any, ...]) -> bool:
    """Whether two outcomes agree; an error that Python raised by itself is worded differently."""
    return lowered[:2] == ran[:2] and ran[2:] in (lowered[2:], (None,))


def compiled(model: type[Model]) -> System | ModelError:
    """The system of a random rule, or the error that refuses it."""
    try:
        return model.system()
    except ModelError as error:
        return error


def compare(source: str, folder: Path, states: int, stats: dict[str, int]) -> None:
    """Interpret the lowered rule and run the Python one, in random states."""
    model = load(source, folder, f"rules_{abs(hash(source))}").Random
    stats["rules"] += 1
    system = compiled(model)
    if isinstance(system, ModelError):
        assert system.loc is not None
        assert system.remedy
        stats["refused"] += 1
        return
    interpreter, native, rng = Interpreter(system), Native(model()), random.Random(source)
    for _ in range(states):
        state = tuple(anything(v.sort, rng) for v in system.variables)
        shown = f"{dict(zip(system.index, state, strict=True))}\n{source}"
        for instance in system.instances:
            lowered = outcome(interpreter.take, instance, state)
            if native.picks(state, instance, system) is None:
                assert lowered[0] == "error" or lowered[1] is None, f"{instance.label} in {shown}"
                continue
            ran = outcome(native.take, state, instance, system)
            assert same(lowered, ran), f"{lowered}\n{ran}\n{instance.label} in {shown}"
            stats["error" if lowered[0] == "error" else "disabled" if lowered[1] is None else "taken"] += 1
        held = outcome(interpreter.holds, system.property("holds"), state)
        assert same(held, outcome(native.holds, "holds", state)), f"property in {shown}"


def check(folder: Path, examples: int) -> None:
    """Compare so many random rules, and see that most of them were of use."""
    stats = dict.fromkeys(("rules", "refused", "taken", "disabled", "error"), 0)

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(rules())
    def run(source: str) -> None:
        compare(source, folder, 8, stats)

    # A choice in a loop can have more combinations than there is time for.
    with pytest.MonkeyPatch.context() as limits:
        limits.setattr(model_reader, "INSTANCE_LIMIT", 500)
        run()
    assert stats["rules"] - stats["refused"] > examples // 3
    assert stats["taken"] > examples
    assert stats["error"] > examples // 10


@pytest.mark.push
def test_random_rules(tmp_path: Path) -> None:
    """Random rules: the same enabledness, the same next state, an error on the same line."""
    check(tmp_path, 40)


@pytest.mark.parametrize(
    ("rule", "claim"),
    [
        ("s.net = [s.a, s.b]", "s.a <= 3"),
        ("s.net = [s.b, s.a, s.b]", "s.a <= 3"),
        ("s.net = [s.queue.head, s.b]\n        b2 = choose(s.net)\n        s.a = b2", "s.a <= 3"),
        ("s.opt = min(s.few, default=s.opt)", "(max(s.queue, default=None) is None) == (len(s.queue) == 0)"),
        (
            "s.opt = s.opt if s.p else max(s.net, default=s.opt)",
            "min(s.few, default=s.opt) == first(s.few, default=s.opt)",
        ),
        (
            "s.rec.who = max((v for v in s.arr if v > 2), default=None)",
            "max((v for v in s.arr if v > s.a), default=s.opt) != 1",
        ),
        *(("s.a = 1", f"{{(s.maybe if s.recs[0].ok else Stop()), Stop()}} {o} s.msgs") for o in ("<=", "<", ">=", ">")),
        *(("s.a = 1", f"s.msgs {o} {{(s.maybe if s.recs[0].ok else Stop()), Stop()}}") for o in ("<=", "<", ">=", ">")),
    ],
)
def test_rules_that_once_differed(tmp_path: Path, rule: str, claim: str) -> None:
    """A bag of values that may lie outside its items; an option as default of `max`; a set with None beside a container."""
    stats = dict.fromkeys(("rules", "refused", "taken", "disabled", "error"), 0)
    lines = (
        "@action(i='n')",
        "def rule(self, s, i):",
        f"    {rule}",
        "",
        "@invariant",
        "def holds(self, s):",
        f"    return {claim}",
    )
    compare(
        HEAD + "\n" + textwrap.indent("\n".join(lines).replace("\n        ", "\n    "), "    ") + "\n",
        tmp_path,
        60,
        stats,
    )
    assert stats["refused"] == 0
    assert stats["taken"] > 0


@pytest.mark.long
def test_many_random_rules(tmp_path: Path) -> None:
    """3,000 random rules: the same enabledness, the same next state, an error on the same line."""
    check(tmp_path, 3_000)
