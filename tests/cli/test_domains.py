"""What gives its values once is no domain, and an action without instances is reported as never enabled."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from shares import share

HEAD = '''
from streamproof import *


class Again:
    """Goes on where the last reading ended."""

    def __init__(self):
        self.left = iter([1, 2])

    def __iter__(self):
        return self.left


class Fewer:
    """Has one value less each time."""

    def __init__(self):
        self.values = [1, 2, 3]

    def __iter__(self):
        self.values.pop()
        return iter(list(self.values))


class M(Model):
    check_deadlock = False

    def setup(self):
        self.numbers = {domain}

    def state(self):
        return State(x=Range(0, 9), y=Range(0, 9))

    def one_by_one(self):
        yield from (1, 2)

    @action(p={given})
    def left(self, s, p):
        s.x = p

    @action(p={given})
    def right(self, s, p):
        s.y = p

    @invariant
    def never(self, s):
        return s.y == 0
'''


def written(domain: str, given: str = '"numbers"') -> None:
    """Writes the model with this domain."""
    Path("m.py").write_text(HEAD.replace("{domain}", domain).replace("{given}", given))


@pytest.mark.parametrize(
    "domain",
    ["zip([1, 2])", "iter([1, 2])", "(v for v in range(5))", "map(int, '12')", "enumerate([4])", "reversed([1, 2])"],
)
@pytest.mark.parametrize("kept", [True, False])
def test_iterators_are_no_domains(domain: str, kept: bool, streamproof: Any) -> None:
    """Kept by the model, or written in the decorator: the second action, or reading, would find them empty."""
    written(domain) if kept else written("3", domain)
    done = streamproof("check", "m.py")
    assert done.code == 150
    assert "m.py:38: the domain of left(p) is" in done.err
    assert "empty after its first use" in " ".join(done.err.split())


@pytest.mark.parametrize("domain", ["Again()", "Fewer()"])
def test_domains_have_the_same_values_at_each_reading(domain: str, streamproof: Any) -> None:
    """Also those of objects that are no iterators themselves."""
    written(domain)
    done = streamproof("check", "m.py")
    assert done.code == 150
    assert "m.py:38: the domain of left(p) is not deterministic: two evaluations gave different values" in done.err


@pytest.mark.parametrize(
    "domain",
    [
        "lambda m: range(random.randint(1, 2))",
        "lambda m: random.sample(range(3), 2)",
        "lambda m: list(os.urandom(8))",
        '"drawn"',
    ],
)
def test_a_random_domain_is_a_mistake_of_the_model(domain: str, streamproof: Any) -> None:
    """Two evaluations are compared, more of a function that uses random numbers; it is no disagreement of engines."""
    drawn = "    @property\n    def drawn(self):\n        return [random.random()]\n\n"
    written("3", domain)
    text = Path("m.py").read_text().replace("    @action", f"{drawn}    @action", 1)
    Path("m.py").write_text("import os, random\n" + text)
    done = streamproof("check", "m.py")
    assert done.code == 150
    assert re.search(r"m\.py:\d+: the domain of left\(p\) is not deterministic: two evaluations gave", done.err)


def test_a_drawn_domain_that_stays_the_same_is_one(streamproof: Any) -> None:
    """A generator of random numbers with a seed."""
    written("3", "lambda m: random.Random(7).sample(range(3), 2)")
    Path("m.py").write_text("import random\n" + Path("m.py").read_text())
    assert streamproof("check", "m.py").code in (0, 12)


@pytest.mark.parametrize("verb", share(["check m.py", "check m.py --agree", "prove m.py --any n", "simulate m.py"], 2))
def test_a_random_setup_is_a_mistake_of_the_model(verb: str, streamproof: Any) -> None:
    """Each instance would be another model; a generator with a seed gives the same one."""
    written("random.Random(7).sample(range(3), 2)")
    text = "import random\n" + Path("m.py").read_text().replace("check_deadlock", "n: int = 3\n    check_deadlock")
    Path("m.py").write_text(text)
    assert streamproof(*verb.split()).code in (0, 12)
    Path("m.py").write_text(text.replace("random.Random(7).sample", "random.sample"))
    done = streamproof(*verb.split())
    assert done.code == 150
    assert re.search(r"m\.py:\d+: setup\(\) of m is not deterministic: two calls gave different values", done.err)


def test_a_generator_function_is_no_domain(streamproof: Any) -> None:
    """What a function gives is looked at like anything else."""
    written("3", "one_by_one")
    done = streamproof("check", "m.py")
    assert done.code == 150
    assert "m.py:38: the domain of left(p) is a generator" in done.err


def test_an_action_without_instances_is_reported(streamproof: Any) -> None:
    """As never enabled, with its name."""
    written("()")
    text = Path("m.py").read_text()
    Path("m.py").write_text(text.replace('@action(p="numbers")', "@action(p=range(3))", 1))
    done = streamproof("check", "m.py")
    assert done.code == 0
    assert "1 of 2 actions were taken; never enabled: right" in done.out
    assert "right           0         0  <- never enabled" in streamproof("check", "m.py", "--coverage").out


def test_a_state_declares_the_same_each_time(streamproof: Any) -> None:
    """An iterator that the first values are taken from is used up by the first call."""
    written("3")
    text = Path("m.py").read_text().replace("y=Range(0, 9))", "y=Range(0, 9, init=sum(FIRST)))")
    Path("m.py").write_text(text.replace("class M(Model):", "FIRST = iter([1, 2])\n\n\nclass M(Model):"))
    done = streamproof("check", "m.py")
    assert done.code == 150
    assert "m.py:35: state() of M is not deterministic: two calls gave different declarations" in done.err


def test_measures_change_nothing(streamproof: Any) -> None:
    """Quantities are read as rules are."""
    written("3")
    text = (
        Path("m.py").read_text().replace("    @invariant\n    def never(self, s):\n        return s.y == 0\n", MEASURE)
    )
    Path("m.py").write_text(text.replace("import *", "import *\nfrom streamproof import measure"))
    done = streamproof("check", "m.py")
    assert done.code == 150
    assert "reading most() changed self.seen" in done.err


MEASURE = """
    seen = ()

    def note(self):
        self.seen = (*self.seen, 1)
        return len(self.seen)

    @measure
    def most(self, s):
        return s.x + self.note()
"""
