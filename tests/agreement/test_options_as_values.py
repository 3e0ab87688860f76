"""An Option is a value of its sort wherever it is compared, looked for or assigned; None is as in plain Python."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from streamproof.agree.plain_python import compare_with_python
from streamproof.language.declare.spec import Spec

HEAD = """
from streamproof import *

class Ask(Case):
    n: int

class Stop(Case):
    pass

class M(Model):
    check_deadlock = False

    def state(self):
        record, case = Record(n=Range(0, 2), p=Bool()), Union(Ask(n=Range(0, 2)), Stop())
        return State(
            o=Option(Range(0, 2)), f=Set(Range(0, 2)), b=Bag(Range(0, 2), capacity=2), q=Queue(Range(0, 2), capacity=3),
            x=Range(0, 2), a=Array(2, Range(0, 2)), r=record, rs=Set(record), rq=Queue(record, capacity=2),
            u=case, us=Set(case), ub=Bag(case, capacity=2), rows=Array(2, Set(Range(0, 2))),
        )
"""
CONDITIONS = [
    *(
        "s.o in s.f",
        "s.o not in s.b",
        "s.b.count(s.o) > 0",
        "s.o in s.q",
        "s.o in s.a",
        "s.o in s.rows[0]",
        "s.o in range(2)",
    ),
    *("{s.o, 1} == s.f", "s.f == {s.o}", "{s.o} <= s.f", "s.f >= {s.o, 1}", "{s.o} < s.f", "len(s.f | {s.o}) > 1"),
    *("len({s.o, s.x}) == 1", "{s.o} == {s.x}", "{s.o} == s.rows[0]", "any(s.o in one for one in s.rows)"),
    *("{'n': s.o, 'p': True} in s.rs", "{'n': s.o, 'p': True} == s.r", "(s.o, True) in s.rs", "(s.o, True) == s.r"),
    *("{'n': s.o, 'p': True} in s.rq", "s.rq.count({'n': s.o, 'p': True}) == 1", "(s.o, True) != s.r"),
    *("Ask(n=s.o) in s.us", "Ask(n=s.o) == s.u", "Ask(n=s.o) in s.ub", "Ask(s.o) == Ask(s.x)", "Ask(s.o) not in s.us"),
    *(
        "s.o in (0, 1)",
        "s.o in [0, s.x]",
        "s.o in {0, 1}",
        "s.q.count(s.o) == 1",
        "s.o == s.x",
        "s.o < s.x",
        "min(s.o, 1) == 1",
    ),
    *(
        "[s.o] == s.q",
        "s.q == [s.o, s.x]",
        "s.q + [s.o] == [0, s.x]",
        "s.a == [s.o, 1]",
        "[s.o, 1] != s.a",
        "(0, 1, 2)[s.o] == 1",
    ),
    *("{s.o for v in s.a if v == 1} <= s.f", "{s.o for v in s.a if v == 1} == s.f", "(s.o if s.p else None) in s.f"),
    *(
        "[s.o] <= s.b",
        "s.b <= [s.o, 1]",
        "s.b == [s.o]",
        "[s.o, s.o] == s.b",
        "s.b < [s.o, 0, 0]",
        "(s.o if s.p else 0) in s.b",
    ),
]
ACTIONS = [
    *(
        "s.f = {s.o}",
        "s.f |= {s.o}",
        "s.f -= {s.o}",
        "s.f.add(s.o)",
        "s.f.discard(s.o)",
        "s.f.remove(s.o)",
        "s.rows[0] = {s.o}",
    ),
    *(
        "s.b.add(s.o)",
        "s.b.remove(s.o)",
        "s.b.discard(s.o)",
        "s.b = [s.o]",
        "s.q = [s.o]",
        "s.q.push(s.o)",
        "s.q.remove(s.o)",
    ),
    *("s.q = s.q + [s.o]", "s.x = s.q.index(s.o)", "s.r = {'n': s.o, 'p': True}", "s.r = (s.o, True)", "s.r.n = s.o"),
    *(
        "s.rs = {(s.o, True)}",
        "s.rs.add({'n': s.o, 'p': False})",
        "s.rq.push({'n': s.o, 'p': False})",
        "s.u = Ask(n=s.o)",
    ),
    *(
        "s.us = {Ask(s.o), Stop()}",
        "s.us.discard(Ask(s.o))",
        "s.ub.add(Ask(s.o))",
        "s.a = [s.o, s.o]",
        "s.a[s.o % 2] = s.o",
    ),
    *("s.x = 1 if s.o in s.f else 0", "require(s.o in s.f)", "s.x = choose([v for v in range(3) if v == s.o])"),
]


@pytest.mark.parametrize("guarded", [True, False], ids=["tested first", "perhaps None"])
def test_an_option_is_a_value_of_its_sort(tmp_path: Path, guarded: bool) -> None:
    """Every condition and action is accepted, and means what Python makes of it, errors included."""
    body = []
    for at, condition in enumerate(CONDITIONS):
        condition = condition.replace("s.p", "s.r.p")
        text = f"s.o is None or ({condition})" if guarded else condition
        body += ["    @invariant", f"    def c{at}(self, s):", f"        return {text}", ""]
    for at, action in enumerate(ACTIONS):
        body += ["    @action", f"    def a{at}(self, s):"]
        body += [*(["        require(s.o is not None)"] if guarded else []), f"        {action}", ""]
    file = tmp_path / "options.py"
    file.write_text(HEAD + "\n" + "\n".join(body), encoding="utf-8")
    made = importlib.util.spec_from_file_location("options_as_values", file)
    assert made is not None
    assert made.loader is not None
    module: Any = importlib.util.module_from_spec(made)
    sys.modules["options_as_values"] = module
    made.loader.exec_module(module)
    system = module.M.system()
    for seed in range(4):
        done = compare_with_python(Spec(module.M), module.M(), system, seed)
        assert (done.properties, done.rules) == (len(CONDITIONS), len(ACTIONS))
