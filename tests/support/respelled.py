"""Random models in unusual spelling, which means the same to Python: other names for the functions of the language and for
the cases of a union, rules that are inherited and extended, helpers, functions that hide built-in ones, machines in a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from random_models import model_source

CASES = """
    @action
    def answer(self, s):
        match s.msg:
            case {first}:
                s.x = 1
            case {second}:
                s.x = 2 if s.x != 2 else 0
"""
LAMP = """

class Lamp(Model):
    def state(self):
        return State(lit=Bool())

    @action
    def turn(self, s):
        s.lit = not s.lit

    @invariant
    def any_light(self, s):
        return s.lit or not s.lit


class Whole(Model):
    check_deadlock = {check_deadlock}

    def parts(self):
        return Parts(one=Random(), lamp=Lamp()){joint}

    @invariant
    def dark(self, s):
        return not s.lamp.lit or s.one.x != 1

    @reachable
    def bright(self, s):
        return s.lamp.lit and s.one.x == 2
"""


class Spelling:
    """The text of a model while it is changed; `name` is the model to check."""

    def __init__(self, seed: int) -> None:
        self.random, self.name = Random(seed), "Random"
        text = model_source(seed)
        at = text.index("class Base")
        self.head, self.body = text[:at], text[at:]
        self.done: list[str] = []

    def rename(self, old: str, new: str, head: str) -> None:
        """Use another name in the rules."""
        self.body = re.sub(rf"(?<![.\w]){old}(?=[(,):])", new, self.body)
        self.head += head + "\n"

    def functions(self) -> None:
        """Functions of the language under other names."""
        for old, new in (("choose", "pick"), ("require", "need"), ("first", "earliest"), ("enabled", "able")):
            if self.random.random() < 0.6:
                self.rename(old, new, f"from streamproof import {old} as {new}")

    def builtins(self) -> None:
        """Built-in functions under other names."""
        for old, new in (("len", "size"), ("any", "some"), ("sum", "total"), ("isinstance", "kind"), ("range", "span")):
            if self.random.random() < 0.5:
                self.rename(old, new, f"{new} = {old}")

    def hidden(self) -> None:
        """A function of the module hides a built-in one, and does something else."""
        name, body = self.random.choice((("sum", "builtins.sum(values) + 1"), ("len", "1"), ("any", "True")))
        self.head += f"import builtins\n\n\ndef {name}(values):\n    return {body}\n\n\n"

    def cases(self) -> None:
        """The cases of the union under other names, perhaps with some of them left out of a `match`."""
        self.rename("Ask", "Question", "Question = Ask")
        self.rename("Stop", "Halt", "Halt = Stop\nHalted = Stop")
        if " msg=" in self.body or "(msg=" in self.body:
            first, second = self.random.sample(("Halt()", "Halted()", "Question(n=0)", "Ask(1)", "Stop()"), 2)
            self.add(CASES.format(first=first, second=second))

    def add(self, text: str) -> None:
        """Another rule or property of the base class."""
        at = self.body.index("class Random")
        self.body = self.body[:at].rstrip("\n") + "\n" + text + "\n\n" + self.body[at:]

    def inherited(self) -> None:
        """Some rules are extended in the subclass, through ``super()``."""
        for name, parameters in re.findall(r"@action.*\n    def (act\d)\(self, s(.*)\):", self.body):
            if self.random.random() < 0.5:
                more = self.random.choice(("", "        s.x = min(s.x, 1)\n", "        require(s.x != 2)\n"))
                call = self.random.choice((f"super().{name}(s{parameters})", f"Base.{name}(self, s{parameters})"))
                self.body += f"\n    def {name}(self, s{parameters}):\n        {call}\n{more}"

    def option(self) -> None:
        """Options as elements that are looked for."""
        if " last=" in self.body:
            places = self.random.choice(("[0]", "{0}", "(0, s.x)", "{s.x}", "range(1)"))
            self.add(f"    @invariant\n    def option(self, s):\n        return s.last is None or s.last in {places}\n")

    def whole(self) -> None:
        """The model is a part of a larger one."""
        alone = re.findall(r"    def (act\d)\(self, s\):", self.body)
        joint = f'.together("both", "one.{alone[0]}()", "lamp.turn()", doc="both")' if alone else ""
        deadlock = self.random.choice((True, False))
        self.body += LAMP.format(joint=joint if self.random.random() < 0.7 else "", check_deadlock=deadlock)
        self.name = "Whole"

    def write(self) -> str:
        """The whole text, after some changes."""
        changes: tuple[tuple[float, Callable[[], None]], ...] = (
            (0.3, self.option),
            (0.4, self.cases),
            (0.4, self.functions),
            (0.3, self.builtins),
            (0.15, self.hidden),
            (0.4, self.inherited),
            (0.2, self.whole),
        )
        for chance, change in changes:
            if self.random.random() < chance:
                change()
                self.done.append(change.__name__)
        return self.head + "\n\n" + self.body


def respelled(seed: int) -> tuple[str, str, list[str]]:
    """The source of a random model, the name of the class to check, and what was changed."""
    spelling = Spelling(seed)
    return spelling.write(), spelling.name, spelling.done
