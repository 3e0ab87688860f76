"""Records and tuples are values, keys and elements: they are read as the tuple of their parts, like a named tuple."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from loading import load
from quick_tlc import QUICK
from streamproof import (
    Array,
    Bag,
    Enum,
    Model,
    ModelError,
    Option,
    Range,
    Record,
    Set,
    State,
    Tuple,
    action,
    choose,
    explore,
    invariant,
    require,
)
from streamproof.agree.plain_python import compare_with_python
from streamproof.conformance import InputError
from streamproof.conformance.recorded_values import agrees, expect_value, sort_schema, value_json
from streamproof.exchange.itf.reading import decode
from streamproof.exchange.itf.writing import encode, type_text
from streamproof.exchange.promela import spin
from streamproof.exchange.tla import tlc
from streamproof.exchange.tla.module import export
from streamproof.language.declare.spec import Spec
from streamproof.system import Verdict
from streamproof.system.sorts import EnumSort, RangeSort, show, tuple_sort
from streamproof.traces.places import changes

jsonschema = pytest.importorskip("jsonschema")

HEAD = """
from streamproof import *

class M(Model):
    check_deadlock = False

    def setup(self):
        self.keys = [(a, b) for a in range(2) for b in range(2)]
        self.cost = {(0, 0): 1, (0, 1): 2, (1, 0): 0, (1, 1): 1}

    def state(self):
        pair = PAIR
        return State(
            p=pair, q=pair, n=Range(0, 1), m=Range(0, 1), up=Bool(),
            ps=Set(pair), pq=Queue(pair, capacity=2), pb=Bag(pair, capacity=2), po=Option(pair), pa=Array(2, pair),
            by=Array(self.keys, Range(0, 2)), of=Array(pair, Range(0, 2)),
            nest=Record(p=pair, z=Range(0, 1)), nested=Set(Tuple(pair, Range(0, 1))),
            no=Set(Tuple(Option(Range(0, 1)), Range(0, 1))),
        )
"""
CONDITIONS = """
s.by[s.p] == 0 ;; s.of[s.p] == 0 ;; s.of[s.n, s.m] == 0 ;; s.of[1, 0] > s.of[s.q] ;; s.p[0] == 1 ;; s.p[-1] == 1
s.p[s.n] == 1 ;; s.p == (1, 0) ;; (1, 0) != s.p ;; s.p in s.ps ;; (s.n, s.m) in s.ps ;; s.p in [(0, 1), (1, 1)]
s.p in {(0, 1), (1, 1)} ;; s.p in self.keys ;; s.p in self.cost ;; any(a == s.n for a, b in s.ps)
all(p[0] <= p[1] for p in s.ps) ;; s.pq.head == (1, 0) ;; (1, s.n) in s.pq ;; s.pb.count((s.n, 1)) == 1 ;; s.po == (1, 0)
s.po in s.ps ;; s.po[0] == 1 ;; s.by[s.po] == 1 ;; len(s.po) == 2 ;; self.cost[s.p] == 1 ;; self.cost[s.n, s.m] == 1
self.cost[s.pq.head] == 2 ;; {(0, 0): 1, (1, 1): 0}[s.p] == 1 ;; s.p < s.q ;; s.p <= (1, 0) ;; (0, 1) > s.p ;; s.p >= (s.n,)
() < s.p ;; (s.n, s.p) < (s.m, s.q) ;; (s.n, s.up) >= (1, True) ;; s.p > max(s.ps) ;; min(s.ps) == (0, 1)
max(s.ps, default=(0, 0)) == (1, 1) ;; min(s.p, s.q) == s.p ;; max((s.p, s.q))[1] == 1
max((b, a) for a, b in s.ps)[0] == s.n ;; min(s.no) == (0, 1) ;; max(s.pa) == s.pa[0] ;; s.po < s.p
max(s.p, (s.n, s.m)) == s.p ;; ((0, 1), 1) in s.nested ;; (s.p, s.n) in s.nested ;; any(a == z for (a, b), z in s.nested)
(None, s.n) in s.no ;; any(o is not None and o + z == 1 for o, z in s.no) ;; {(b, a) for a, b in s.ps} == s.ps
(s.n, s.m) in {(b, a) for a, b in s.ps} ;; len({(b, a) for a, b in s.ps} - s.ps) > 0 ;; s.ps <= {(0, 1), (1, 1)}
s.ps == set(self.keys) ;; list(s.pq) == [(0, 1)] ;; len(s.p) == 2 ;; 1 in s.p ;; sum(s.p) == 1 ;; tuple(s.p) == (0, 1)
s.p + (1,) == (0, 0, 1) ;; (1,) + s.p == (1, *s.q) ;; s.p[:1] == (0,) ;; s.p[::-1] == s.q ;; s.p in s.pa
set(s.pa) == {(0, 0)} ;; (s.n, s.p) == (1, (0, 1)) ;; s.nest == ((0, 1), 1) ;; (s.p, s.q) in {((0, 0), (1, 1))}
any(s.by[a, b] > 0 for a, b in s.ps) ;; any(s.of[p] > 0 for p in s.ps) ;; s.pa[0][s.n] == 1
all(a <= b for a, b in zip(s.pa[0], s.pa[1])) ;; sum(s.of[k] for k in self.keys if k in s.ps) > 1 ;; s.nest.p == s.p
s.nest[0][1] == 1
"""
ACTIONS = """
s.by[s.p] = 1 ;; s.of[s.p] = 2 ;; s.of[s.n, 1] = 1 ;; s.p = (1, 0) ;; s.p = (s.n, s.m) ;; s.p = s.q ;; s.p, s.q = s.q, s.p
a, b = s.p; s.n = b ;; s.ps.add((s.n, s.m)) ;; s.ps.add(s.p) ;; s.ps.discard((0, s.m)) ;; s.ps |= {(0, s.n)}
s.ps.remove((0, s.n)) ;; s.ps = {(s.n, s.m), (1, 1)} ;; s.ps = {(a, b) for a in range(2) for b in range(2) if s.n == a}
s.ps = set(s.pq) ;; s.n = sum(a for a, b in s.ps) % 2 ;; a, b = choose(s.ps); s.n = a ;; p = choose(s.ps); s.n = p[1]
s.p = choose(self.keys) ;; s.p = choose([k for k in self.keys if s.by[k] > 0]) ;; s.pq.push((s.n, s.m)) ;; s.pq.push(s.p)
a, b = s.pq.pop(); s.n = a ;; s.by[s.pq.pop()] = 2 ;; s.pq = [(b, a) for a, b in s.pq] ;; s.pb.add((s.n, 1))
s.pb.remove(s.p) ;; p = choose(s.pb); s.p = p ;; s.po = (s.n, s.m) ;; s.po = s.p if s.up else None ;; a, b = s.po; s.n = a
s.ps.add(s.po) ;; s.by[s.po] = 1 ;; s.of[s.po] = 0 ;; s.pa[s.n] = (s.m, s.n) ;; s.pa = [(0, 1), s.p] ;; s.p = min(s.ps)
s.p = max(p for p in s.ps) ;; s.p = max(s.ps, default=s.q) ;; s.p = min(s.p, (s.m, s.n)) ;; s.p = (0, 1) if s.up else s.q
s.p = first(p for p in s.ps if p[0] == 1) ;; s.by = {k: 1 if k == s.p else 0 for k in self.keys}
s.p = self.keys[2 * s.n + s.m] ;; s.p = (s.p[1], s.p[0]) ;; s.p = s.p[::-1] ;; s.p = s.p[1:] + (s.n,)
s.p = tuple(1 - v for v in s.p) ;; s.nest.p = (1, s.n) ;; s.nest = (s.p, 1) ;; (a, b), z = s.nest; s.n = a
s.nested.add((s.p, s.n)) ;; s.no.add((None, 1)) ;; s.no.add((s.n, s.m)) ;; x = s.p if s.up else s.q; a, b = x; s.n = b
x = (0, 1) if s.up else (1, 1); s.p = x ;; s.p = s.pq.pop() if len(s.pq) > 0 else (0, 0) ;; for a, b in s.ps: s.up = a == b
for i, (a, b) in enumerate(s.pa): s.up = a == i ;; for v in s.p: s.up = v == 1 ;; match s.p:¦    case (1, b): s.n = b
match s.p:¦    case (0, 0) / (1, 1): s.up = True¦    case _: s.up = False
match (s.n, s.m):¦    case (0, 1): s.up = True¦    case (x, _): s.m = x
match s.nest:¦    case ((1, b), 0): s.n = b¦    case (p, z): s.m = z
match s.po:¦    case None: s.n = 1¦    case (a, b) if a == b: s.n = 0¦    case (_, b): s.n = b
match s.p:¦    case (0, 0, 0): s.up = True
match (s.po, s.n):¦    case (None, 1): s.up = True¦    case ((1, _), n): s.m = n ;; s.up = s.po < (s.n, s.m)
"""
NAMED = {
    "Record(a=Range(0, 1), b=Range(0, 1))": (
        "s.p.a == s.p[0] ;; any(p.b == 1 for p in s.ps) ;; s.p._replace(a=1) in s.ps ;; max(s.ps).b == 1",
        "s.p = s.p._replace(a=1) ;; s.p = s.p._replace(b=s.n + 1) ;; s.p.a = s.p[1] ;; s.ps.add(s.po._replace(b=s.n))",
    ),
    "Tuple(Range(0, 1), Range(0, 1))": ("s.p == s.pa[1]", "t = s.p; s.p = (1, 1); s.n = t[0]"),
}


def _each(lines: str) -> list[str]:
    return [one for line in lines.strip().splitlines() for one in line.split(" ;; ")]


def _lines(statements: str) -> list[str]:
    return [line.replace(" / ", " | ") for line in statements.replace("; ", "¦").split("¦")]


@pytest.mark.parametrize("pair", NAMED)
def test_every_use_means_what_python_makes_of_it(tmp_path: Path, pair: str) -> None:
    """Conditions, actions and errors: for records and for tuples."""
    conditions, actions = (
        _each(common) + _each(own) for common, own in zip((CONDITIONS, ACTIONS), NAMED[pair], strict=True)
    )
    body = [HEAD.replace("PAIR", pair)]
    for at, condition in enumerate(conditions):
        body += ["    @invariant", f"    def c{at}(self, s):", f"        return {condition}", ""]
    for at, statements in enumerate(actions):
        body += ["    @action", f"    def a{at}(self, s):", *(f"        {line}" for line in _lines(statements)), ""]
    model = load("\n".join(body), tmp_path).M
    system = model.system()
    for seed in range(2):
        done = compare_with_python(Spec(model), model(), system, seed)
        assert (done.properties, done.rules) == (len(conditions), len(actions))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("s.t[0] = 1", "cannot assign into a Tuple"),
        ("s.t = (1, 2, 3)", "is not a value of Tuple"),
        ("a, b, c = s.t", "3 names for 2 values"),
        ("s.n = s.t[2]", "IndexError"),
        ("s.n = s.t.a", "no field 'a' in Tuple"),
        ("require(s.t < 1)", "an integer expected"),
        ("require(s.t)", "a condition must be a Bool"),
        ("s.r = s.r._replace(c=1)", "no field 'c' in Record"),
        ("s.r = s.r._replace(1)", "_replace"),
        ("match s.n:\n            case (1, b): s.n = b", "is never a tuple"),
        ("match s.t:\n            case (1, *b): s.n = 1", "is not part of the language"),
    ],
)
def test_mistakes_are_refused(tmp_path: Path, change: str, message: str) -> None:
    """With the place and what is meant."""
    source = f"""
from streamproof import *

class M(Model):
    def state(self):
        return State(t=Tuple(Range(0, 1), Enum("A", "B")), r=Record(a=Range(0, 1), b=Bool()), n=Range(0, 1))

    @action
    def go(self, s):
        {change}
"""
    with pytest.raises(ModelError, match=message):
        load(source, tmp_path).M.system()


class Ballots(Model):
    """Nodes promise the greatest of the ballots (round, node) that they have seen."""

    check_deadlock = False

    def state(self):
        """Ballots as elements of sets, queues and bags, as keys, and in options."""
        return State(
            promised=Array(["a", "b"], Option(Tuple(Range(0, 1), Range(0, 1)))),
            asked=Set(Tuple(Range(0, 1), Range(0, 1))),
            net=Bag(Record(ballot=Tuple(Range(0, 1), Range(0, 1)), to=Enum("a", "b")), capacity=1),
            votes=Array(Tuple(Range(0, 1), Range(0, 1)), Set(Enum("a", "b"))),
        )

    @action(round=range(2), node=range(2), to=["a", "b"])
    def ask(self, s, round, node, to):
        """A new ballot, for one node."""
        require(len(s.net) == 0)
        require(all((round, node) >= one for one in s.asked))
        s.asked.add((round, node))
        s.net.add({"ballot": (round, node), "to": to})

    @action
    def promise(self, s):
        """The message that is on its way."""
        message = choose(s.net)
        s.net.remove(message)
        require(s.promised[message.to] is None or s.promised[message.to] < message.ballot)
        s.promised[message.to] = message.ballot
        s.votes[message.ballot].add(message.to)

    @invariant
    def greatest(self, s):
        """No promise is greater than the greatest ballot."""
        return all(p is None or p <= max(s.asked) for p in s.promised)

    @invariant
    def never_both(self, s):
        """Violated: two nodes promise the same ballot."""
        return all(len(v) < 2 for v in s.votes)


def test_a_model_of_ballots() -> None:
    """Counts, verdicts, a counterexample that names elements by position, and TLA+'s own tuples."""
    system = Ballots.system()
    found = explore(system)
    assert found.counts.distinct == 936
    assert found.finding("greatest").verdict is Verdict.HOLDS
    trace = found.finding("never_both").trace
    assert trace is not None
    shown = [[str(change) for change in changes(system, a, b)] for a, b in pairwise(trace.states)]
    assert shown[0] == ["asked: {} -> {(0, 0)}", "net: + (ballot=(0, 0), to=a)"]
    assert shown[1][0] == "promised[a]: None -> (0, 0)"
    sort = system.variables[system.index["asked"]].sort
    assert decode(sort, encode(sort, frozenset({(0, 1)})), "asked") == {(0, 1)}
    assert (encode(sort, frozenset({(0, 0)})), type_text(sort)) == (
        {"#set": [{"#tup": [{"#bigint": "0"}, {"#bigint": "0"}]}]},
        "Set(<<Int, Int>>)",
    )
    module = export(system).modules["ballots"]
    assert "promised[message.to].value[1] < 1" in module
    assert "asked' = asked \\cup {<<0, 1>>}" in module


@pytest.mark.long
def test_ballots_in_every_engine(panel: Any, jar: Path) -> None:
    """Counts, states and verdicts of interpreter, both tiers, the solver, TLC and Spin."""
    system = Ballots.system()
    referee = panel.interpreter_result(system)
    referee.compare(panel.explored(system, "python"))
    referee.compare(panel.explored(system, "compiled"))
    referee.compare(panel.bounded(system, 3))
    ours, counted = explore(system), tlc.count(system, QUICK)
    assert (counted.distinct, counted.generated) == (ours.counts.distinct, ours.counts.generated)
    verdicts = {finding.property: finding.verdict for finding in ours.findings}
    assert {d.property: d.verdict for d in spin.decide(system, None)}.items() <= verdicts.items()


def test_recorded_values_of_a_tuple() -> None:
    """In an event log a tuple is a list of all its elements."""
    sort = tuple_sort((RangeSort(0, 2), EnumSort(("a", "b"))))
    assert (str(sort), show(sort, (1, "b"))) == ("Tuple(Range(0, 2), Enum('a', 'b'))", "(1, b)")
    assert value_json(sort, (1, "b")) == [1, "b"]
    assert agrees(sort, (1, "b"), [1, "b"])
    assert not agrees(sort, (1, "b"), [1, "a"])
    assert jsonschema.Draft202012Validator(sort_schema(sort)).is_valid([1, "b"])
    for wrong in ([1], [1, "b", 1], {"a": 1}, None, [3, "c"]):
        assert not agrees(sort, (1, "b"), wrong)
        with pytest.raises(InputError):
            expect_value(sort, wrong, "t", None)
