"""An Option is a value of its sort wherever it is compared, looked for or assigned; None is as in plain Python."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from streamproof import ModelError
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


IN_OPTIONS = """
from streamproof import *

class Ask(Case):
    n: int

class Stop(Case):
    pass

class M(Model):
    check_deadlock = False

    def state(self):
        small, record, case = Range(0, 2), Record(n=Range(0, 2), p=Bool()), Union(Ask(n=Range(0, 2)), Stop())
        return State(
            q=Option(Queue(small, capacity=2)), f=Option(Set(small)), b=Option(Bag(small, capacity=2)),
            a=Option(Array(2, small)), k=Option(Array(["A", "B"], small)), r=Option(record), u=Option(case), o=Option(small),
            x=small, p=Bool(), vq=Queue(small, capacity=2), vf=Set(small), vb=Bag(small, capacity=2), va=Array(2, small),
            rs=Option(Set(record)), rb=Option(Bag(record, capacity=2)),
        )
"""
"""Containers in options, and others."""
OPTIONS = ["q", "f", "b", "a", "k", "r", "u", "o", "rs", "rb"]
CONTAINED = [
    one
    for line in """
len(s.q) == 1 ;; 1 in s.q ;; s.o in s.q ;; s.q.full ;; s.q.count(1) == 1 ;; sum(s.q) > 1 ;; s.q == [1, s.x]
s.q == s.vq ;; any(v > 1 for v in s.q) ;; all(v > 1 for v in s.q) ;; sum(1 for v in s.q if v == s.x) == 1
s.q + s.vq == [1, 1] ;; len(s.q[1:]) == 1 ;; len(list(s.q)) == 2 ;; set(s.q) == s.vf
first((v for v in s.q), default=0) == 1 ;; sum(i * v for i, v in enumerate(s.q)) == 2
[v for v in reversed(s.q)] == [1, 2] ;; max(s.q) == 1 ;; len(s.f) == 1 ;; 1 in s.f ;; s.x in s.f ;; s.f <= s.vf
s.vf <= s.f ;; s.vf < s.f ;; {1} <= s.f ;; s.f == {1, s.x} ;; len(s.f | {1}) == 2 ;; s.f - s.vf == {1}
s.vf & s.f == s.vf ;; max(v for v in s.f) == 1 ;; sum(s.f) == 3 ;; any(v in s.f for v in s.q) ;; s.o in s.f
{v for v in s.f} == s.vf ;; s.f != s.vf ;; s.f >= s.vf ;; s.f > {1} ;; len(s.b) == 1 ;; 1 in s.b ;; s.b.count(1) == 1
s.b == s.vb ;; s.b <= s.vb ;; s.vb <= s.b ;; s.b == [1, 2] ;; sum(s.b) == 2 ;; s.a[0] == 1 ;; s.a[s.o] == 1
s.va[s.o] == 1 ;; s.a == s.va ;; 1 in s.a ;; sum(s.a) == 1 ;; max(s.a) == 2 ;; len(s.a) == 2 ;; all(v < 2 for v in s.a)
list(s.a) == [0, 1] ;; s.k['A'] == 1 ;; sum(s.k) == 2 ;; sum(i * v for i, v in enumerate(s.a)) == 1 ;; s.r.n == 1
s.r.p ;; s.r == {'n': 1, 'p': True} ;; isinstance(s.u, Ask) ;; s.u == Stop() ;; (s.r.n, s.r.p) == (1, s.p)
{'n': s.x, 'p': True} in s.rs ;; len(s.rs) == 2 ;; any(one.p for one in s.rs)
""".strip().splitlines()
    for one in line.split(" ;; ")
]
CONTAINING = [
    one
    for line in """
s.vq = s.q ;; s.q = s.vq ;; s.vq = [v for v in s.q if v > 0] ;; s.vq.extend(s.q) ;; s.q = s.q[1:] ;; s.q = s.q + [s.x]
s.x = s.q.index(1) ;; s.x = s.q.head ;; s.x = s.q[-1] ;; s.vf = set(s.q) ;; s.x = max(s.q) ;; s.x = min(v for v in s.q)
s.vf = s.f ;; s.f = s.vf ;; s.vf |= s.f ;; s.vf -= s.f ;; s.f = s.f | {s.x} ;; s.f |= {1} ;; s.x = choose(s.f)
s.x = max(s.f) ;; s.f = s.f & s.vf ;; s.vq = [v for v in s.f] ;; s.vb = s.b ;; s.b = list(s.vb) ;; s.x = choose(s.b)
s.vb = list(s.b) ;; s.va = s.a ;; s.a = s.va ;; s.a = [min(v, 1) for v in s.a] ;; s.va[s.o % 2] = s.a[0]
s.x = s.a[s.x] ;; s.va = list(s.a) ;; v, w = s.a; s.x = w ;; s.r = {'n': s.r.n, 'p': not s.r.p} ;; s.x = s.r.n
one = choose(s.rs); s.x = one.n ;; one = choose(s.rb); s.x = one.n
s.u = Ask(n=s.x) ;; s.x = s.u.n ;; require(1 in s.f and len(s.q) > 0)
s.x = choose([v for v in range(3) if v in s.f]) ;; s.q = None ;; s.f = None
""".strip().splitlines()
    for one in line.split(" ;; ")
]


@pytest.mark.parametrize("guarded", [True, False], ids=["tested first", "perhaps None"])
@pytest.mark.parametrize("containers", [False, True], ids=["scalars", "containers"])
def test_an_option_is_a_value_of_its_sort(tmp_path: Path, guarded: bool, containers: bool) -> None:
    """Every condition and action is accepted, and means what Python makes of it, errors included."""
    conditions = CONTAINED if containers else [c.replace("s.p", "s.r.p") for c in CONDITIONS]
    actions = CONTAINING if containers else ACTIONS
    options = OPTIONS if containers else ["o"]
    absent, there = (
        word.join(f"s.{n} is {test}" for n in options) for word, test in ((" or ", "None"), (" and ", "not None"))
    )
    body = []
    for at, condition in enumerate(conditions):
        text = f"{absent} or ({condition})" if guarded else condition
        body += ["    @invariant", f"    def c{at}(self, s):", f"        return {text}", ""]
    for at, action in enumerate(actions):
        body += ["    @action", f"    def a{at}(self, s):"]
        body += [*([f"        require({there})"] if guarded else []), f"        {action}", ""]
    file = tmp_path / "options.py"
    file.write_text((IN_OPTIONS if containers else HEAD) + "\n" + "\n".join(body), encoding="utf-8")
    made = importlib.util.spec_from_file_location("options_as_values", file)
    assert made is not None
    assert made.loader is not None
    module: Any = importlib.util.module_from_spec(made)
    sys.modules["options_as_values"] = module
    made.loader.exec_module(module)
    system = module.M.system()
    for seed in range(4):
        done = compare_with_python(Spec(module.M), module.M(), system, seed)
        assert (done.properties, done.rules) == (len(conditions), len(actions))


def test_a_method_that_no_container_has_is_no_change(tmp_path: Path) -> None:
    """The advice for it is that for containers outside options."""
    file = tmp_path / "options.py"
    file.write_text(
        f"{IN_OPTIONS}\n    @action\n    def go(self, s):\n        s.vf = s.f.union(s.vf)\n", encoding="utf-8"
    )
    made = importlib.util.spec_from_file_location("options_without_method", file)
    assert made is not None
    assert made.loader is not None
    module: Any = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    with pytest.raises(ModelError, match="a Set has no 'union'"):
        module.M.system()


@pytest.mark.parametrize(
    "change", ["s.q.push(1)", "s.f.add(1)", "s.b.remove(1)", "s.a[0] = 1", "s.r.n = 1", "s.r.n += 1"]
)
def test_a_container_in_an_option_is_assigned_as_a_whole(tmp_path: Path, change: str) -> None:
    """A change in place is refused: the name of an option is read by value."""
    file = tmp_path / "options.py"
    file.write_text(f"{IN_OPTIONS}\n    @action\n    def go(self, s):\n        {change}\n", encoding="utf-8")
    made = importlib.util.spec_from_file_location("options_in_place", file)
    assert made is not None
    assert made.loader is not None
    module: Any = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    with pytest.raises(ModelError, match=r"an Option is assigned as a whole: s\.[qfbar] = \.\.\.") as refused:
        module.M.system()
    assert refused.value.loc is not None
    assert refused.value.loc.line == file.read_text(encoding="utf-8").count("\n")
