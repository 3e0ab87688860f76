"""``streamproof prove --any``: the report on proofs for every size, and of what small instances show instead."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MODEL = '''
from streamproof import Array, Model, Range, State, action, invariant, reachable, require, temporal, always


class Pool(Model):
    """Buffers go out of a pool and come back."""

    users: int = 2
    size: int = 2
    kind: str = "plain"
    limits = {"users": (1, None), "size": (0, None)}
    check_deadlock = False

    def state(self):
        return State(pool=Range(0, self.size, init=self.size), held=Array(range(self.users), Range(0, self.size)))

    @action(u="users")
    def take(self, s, u):
        require(s.pool > 0)
        s.pool -= 1
        s.held[u] += 1

    @action(u="users")
    def put(self, s, u):
        require(s.held[u] > 0)
        s.held[u] -= 1
        self.back(s)

    def back(self, s):
        s.pool += 1

    @invariant
    def bounded(self, s):
        """Nobody holds more than there is."""
        return all(s.held[u] <= self.size for u in range(self.users))

    @invariant
    def few(self, s):
        """True of small pools only."""
        return all(s.held[u] <= 10**7 for u in range(self.users))

    @invariant
    def never_three(self, s):
        """False once there are three."""
        return all(s.held[u] < 3 for u in range(self.users))

    @invariant
    def small(self, s):
        """False once there are more than forty, which the search tries because the number is written here."""
        return s.pool <= 40

    @reachable
    def empty(self, s):
        return s.pool == 0

    @temporal
    def stays(self, s):
        return always(s.pool >= 0)


class Leak(Pool, variant="leak"):
    """What is given back is gone."""

    def back(self, s):
        pass

    @invariant
    def conserved(self, s):
        """Nothing is lost."""
        return s.pool + sum(s.held[u] for u in range(self.users)) == self.size


class Loop(Pool, variant="loop"):
    """Everyone gives back at once."""

    @action
    def all_back(self, s):
        for u in range(self.users):
            s.held[u] = 0
'''

ENDLESS = '''
from streamproof import Model, Nat, State, action, invariant


class Count(Model):
    """Counts for ever."""

    check_deadlock = False

    def state(self):
        return State(n=Nat(), twice=Nat())

    @action
    def up(self, s):
        s.n += 1
        s.twice += 2

    @invariant
    def double(self, s):
        """One is twice the other."""
        return s.twice == 2 * s.n
'''


@pytest.fixture
def pool(folder: Path) -> Path:
    """A model file in the working folder."""
    path = folder / "pool.py"
    path.write_text(MODEL, encoding="utf-8")
    return path


@pytest.mark.push
def test_a_proof_for_every_size(streamproof: Any, pool: Path, golden: Callable[[str, str], None]) -> None:
    """The lemma that was discovered, for which values it is proved, and the way to do it again."""
    done = streamproof("prove", "pool.py", "--any", "users,size", "--property", "bounded")
    assert (done.code, done.err) == (0, "")
    golden("prove_any", done.out)


@pytest.mark.long
def test_json_says_for_which_sizes(streamproof: Any, pool: Path) -> None:
    """`sizes` is "any" where it is proved, and the values at which it was found to hold where it is not."""
    done = streamproof("prove", "pool.py", "--any", "size", "--any", "users", "--property", "bounded", "--property", "few",
                       "--json", "-", "-q")  # fmt: skip
    answer = json.loads(done.out)
    assert (done.code, answer["exit_code"], answer["verdict"]) == (160, 160, "inconclusive")
    sizes = {p["name"]: (p["verdict"], p["sizes"]) for p in answer["properties"]}
    assert sizes["bounded"] == ("holds", "any")
    verdict, searched = sizes["few"]
    assert verdict == "inconclusive"
    assert all(
        values in searched for values in ({"size": 2, "users": 2}, {"size": 0, "users": 1}, {"size": 3, "users": 2})
    )
    assert {"size": 2, "users": 2} in answer["readings_compared"]["values"]
    assert {"size": 2, "users": 2} in answer["induction_checked"]
    assert sum(s["complete"] for s in answer["instances_searched"]) >= len(searched)
    assert answer["any"] == {"size": [0, None], "users": [1, None]}
    assert answer["parameters"] == {"kind": "plain", "size": "any", "users": "any"}
    assert [lemma["name"] for lemma in answer["lemmas"]] == ["pool + sum(held[c]) = size"]
    (cti,) = answer["counterexamples_to_induction"]
    assert (cti["of"], cti["k"], int(cti["parameters"]["size"]) > 10**7) == ("few", 1, True)


def test_what_is_false_is_shown_at_a_small_size(streamproof: Any, pool: Path) -> None:
    """A search of small instances finds the violation, with a trace that replays."""
    done = streamproof("prove", "pool.py", "--variant", "leak", "--any", "users,size", "--property", "conserved")
    assert done.code == 12
    assert "conserved  invariant  violated" in done.out
    assert "at users=2, size=2: false after 2 steps" in done.out
    assert "Not inductive" not in done.out
    assert streamproof("replay", "streamproof-out/pool-leak/conserved.itf.json", "--model", "pool.py", "-q").code == 0


def test_what_is_true_at_small_sizes_only_stays_open(streamproof: Any, pool: Path) -> None:
    """The outcome names the sizes at which it holds, shows why it is not inductive, and says what to try."""
    done = streamproof("prove", "pool.py", "--any", "size", "--property", "few")
    assert done.code == 160
    assert "Not inductive: few" in done.out
    assert "add a lemma that excludes the state of the counterexample" in " ".join(done.out.split())
    assert "it holds at size=2 and at size=0 and at size=1 and at" in " ".join(done.out.split())


@pytest.mark.parametrize(("name", "size"), [("never_three", 3), ("small", 41)])
def test_sizes_near_numbers_of_the_source_are_searched(streamproof: Any, pool: Path, name: str, size: int) -> None:
    """A property that fails from some size on is violated where the number is written in the model."""
    done = streamproof("prove", "pool.py", "--any", "size", "--property", name)
    assert done.code == 12
    assert f"at size={size}: false" in " ".join(done.out.split())


def test_numbers_without_bounds_need_no_option(streamproof: Any, folder: Path) -> None:
    """A model with a Nat is proved as it is, and cannot be searched."""
    (folder / "count.py").write_text(ENDLESS, encoding="utf-8")
    done = streamproof("prove", "count.py")
    assert (done.code, "by induction, for every reachable state" in done.out) == (0, True)
    checked = streamproof("check", "count.py")
    assert checked.code == 150
    assert "n is a Nat: a search counts states, and there are too many" in checked.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--any", "sise"], "pool has no parameter 'sise'"),
        (["--any", "kind"], "kind is not a number"),
        (["--any", "size", "-p", "size=3"], "size is to be any number and 3"),
        (["--any", "size", "--k", "2"], "--k is for proofs of one instance"),
        (["--any", "size", "--property", "empty"], "empty is of kind reachable, which is not proved for every size"),
        (["--any", "size", "--property", "stays"], "stays is of kind temporal, which is not proved for every size"),
    ],
    ids=lambda value: value[1] + value[-1] if isinstance(value, list) else "",
)
def test_wrong_usage(streamproof: Any, pool: Path, arguments: list[str], message: str) -> None:
    """What makes no sense with --any is said in one line, with exit code 2."""
    done = streamproof("prove", "pool.py", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_what_leaves_the_fragment_is_named(streamproof: Any, pool: Path) -> None:
    """The line of the term that cannot be said for every size, and exit code 150."""
    done = streamproof("prove", "pool.py", "--variant", "loop", "--any", "users")
    assert done.code == 150
    line = next(n for n, row in enumerate(MODEL.splitlines(), start=1) if "for u in range(self.users):" in row)
    assert f"pool.py:{line}: a loop over Range(0, users - 1), which has any number of elements" in done.err


def test_a_limit_on_time(streamproof: Any, pool: Path) -> None:
    """A run that is out of time says so, and claims nothing."""
    done = streamproof("prove", "pool.py", "--any", "size", "--timeout", "0.001", "--property", "bounded")
    assert done.code == 160
    assert "time limit of 0.001 s reached while reading the model" in done.err


def test_a_model_that_asks_for_a_number_is_refused(streamproof: Any, pool: Path) -> None:
    """One line with the place and what to do instead; exit code 150."""
    trap = MODEL.replace(
        "    def state(", "    def setup(self):\n        self.odd = str(self.size) == '8'\n\n    def state("
    )
    pool.write_text(trap, encoding="utf-8")
    line = next(n for n, row in enumerate(trap.splitlines(), start=1) if "self.odd" in row)
    for more in ((), ("--rank", "s.pool", "--property", "stays")):
        done = streamproof("prove", "pool.py", "--any", "size", *more)
        assert done.code == 150, more
        assert f"pool.py:{line}: str() cannot be called with a free parameter" in done.err
        assert "\n  it is not written in Python" in done.err


OPTIONAL = """
from streamproof import Model, Range, State, action, invariant, require


class Opt(Model):
    cap: int = 3
    check_deadlock = False

    def state(self):
        return State(x=Range(0, 9))

    @action
    def up(self, s):
        require(s.x < 9)
        if self.cap is None or s.x < 3:
            s.x += 1

    @invariant
    def fine(self, s):
        return s.x <= 3
"""


def test_a_certificate_for_every_number_is_none_for_none(streamproof: Any, folder: Path) -> None:
    """A certificate for every number of a parameter is rejected for a model whose parameter may also be None."""
    (folder / "opt.py").write_text(OPTIONAL, encoding="utf-8")
    assert streamproof("prove", "opt.py", "--any", "cap", "--certificate", "opt.cert").code == 0
    assert streamproof("verify-certificate", "opt.cert", "--model", "opt.py").code == 0
    (folder / "opt.py").write_text(OPTIONAL.replace("cap: int = 3", "cap: int | None = None"), encoding="utf-8")
    done = streamproof("verify-certificate", "opt.cert", "--model", "opt.py")
    assert (done.code, done.out) == (161, "")
    assert "cap is of type int | None, and --any proves for numbers only, not for None" in done.err
    assert streamproof("prove", "opt.py", "--any", "cap").code == 2
    assert streamproof("check", "opt.py").code == 12


@pytest.mark.parametrize(
    ("sort", "rule", "remedy"),
    [
        ("Set(Range(0, self.n - 1))", "s.x.add(0)", "use Array(self.n, Bool())"),
        ("Set(Range(0, self.n - 1))", "require(len(s.x) > 1)", "use Array(self.n, Bool())"),
        ("Set(Range(1, self.n))", "pass", "use Array(Range(1, self.n), Bool())"),
        ('Set(Enum("A", "B"))', "pass", "use Array(Enum('A', 'B'), Bool())"),
        ("Array(self.n, Set(Range(0, self.n)))", "pass", "use Array(Range(0, self.n), Bool())"),
        ("Queue(Range(0, self.n - 1), capacity=2)", "s.x.push(0)", "count: a Range or Nat for each kind of element"),
        ("Record(a=Bool(), b=Queue(Bool(), capacity=2))", "pass", "count: a Range or Nat for each kind of element"),
        ("Union(Msg(to=Range(0, self.n - 1)))", "pass", "count: a Range or Nat for each kind of element"),
        ("Array(self.n, Bool())", "require(s.x in ((True,),))", "state it with comparisons"),
    ],
)
def test_unsupported_sorts_are_named(streamproof: Any, folder: Path, sort: str, rule: str, remedy: str) -> None:
    """A set, a queue and a union are refused at their line, with what to write instead; never as a disagreement."""
    (folder / "sorts.py").write_text(
        f"""from streamproof import *

class Msg(Case):
    to: int

class M(Model):
    n: int = 3
    limits = {{"n": (1, None)}}
    check_deadlock = False
    def state(self):
        return State(x={sort}, k=Range(0, self.n))
    @action
    def act(self, s):
        {rule}
    @invariant
    def fine(self, s):
        return s.k <= self.n
""",
        encoding="utf-8",
    )
    done = streamproof("prove", "sorts.py", "--any", "n")
    line = 14 if "in ((" in rule else 11
    assert (done.code, done.out) == (150, "")
    assert f"sorts.py:{line}: " in done.err
    assert remedy in done.err


FILLS = """
from streamproof import WEAK, Model, Nat, Range, State, action, eventually, leads_to, reachable, temporal


class Fills(Model):
    size: int = 2
    limits = {"size": (1, None)}

    def state(self):
        return State(left=Nat(init=3), test=Nat())

    @action(fairness=WEAK)
    def add(self, s):
        s.test += 1
        if s.left > 0:
            s.left -= 1

    @temporal
    def fills(self, s):
        return leads_to(s.left > 0, s.left == 0)

    @reachable
    def much(self, s):
        return s.test >= 2
"""
BOUNDED = "declare a Range instead of Nat and Int, or bound them in a @constraint, and use streamproof check"
RANKED = "prove it by a ranking function: --property NAME --rank EXPRESSION"


def advice(streamproof: Any, folder: Path, source: str, *words: str) -> tuple[int, str]:
    """The exit code, and the lines that advise something."""
    (folder / "fills.py").write_text(source, encoding="utf-8")
    done = streamproof("prove", "fills.py", *words, "-q")
    lines = (done.err + done.out).splitlines()
    return done.code, "\n".join(row for row in lines if row.startswith(("  ", "not supported", "streamproof")))


def test_advice_for_unbounded_integers_is_true(streamproof: Any, folder: Path) -> None:
    """What induction leaves out of a model with a Nat is proved by a rank; advice names no option that is not given."""
    code, message = advice(streamproof, folder, FILLS)
    assert code == 0
    assert f"not supported by this engine: fills; {RANKED}" in message
    assert f"much; {BOUNDED}" in message
    code, message = advice(streamproof, folder, FILLS, "--property", "fills")
    assert (code, message) == (
        2,
        f"streamproof: error: fills is of kind temporal, which is not proved by induction\n  {RANKED}",
    )
    code, message = advice(streamproof, folder, FILLS, "--property", "much")
    assert (code, "--any" in message, "declare a Range instead of Nat and Int" in message) == (2, False, True)
    for option, value in (("--k", "2"), ("--engine", "pdr")):
        code, message = advice(streamproof, folder, FILLS, option, value)
        assert (code, message.splitlines()[-1]) == (2, f"  leave out {option}")
    assert advice(streamproof, folder, FILLS, "--rank", "left")[0] == 0  # the advice helps
    checked = streamproof("check", "fills.py")
    assert checked.code == 150
    assert "prove what must hold: streamproof prove, for temporal properties with --rank" in checked.err
    within = "@constraint\n    def few(self, s):\n        return s.test < 9\n\n    @reachable"
    limited = FILLS.replace("@reachable", within).replace("WEAK,", "WEAK, constraint,")
    assert "not supported by this engine: fills, much; use streamproof check" in advice(streamproof, folder, limited)[1]
    assert streamproof("check", "fills.py").code != 150
    only = FILLS.replace("limits =", "check_deadlock = False\n    limits =")
    assert advice(streamproof, folder, only) == (
        2,
        "streamproof: error: fills has no invariant, step property or deadlock to prove\n"
        f"  fills: {RANKED}; much: {BOUNDED}",
    )


def test_advice_for_every_size_is_true(streamproof: Any, folder: Path) -> None:
    """With --any, what induction leaves out is decided at one size, or proved by a rank for every size."""
    source = FILLS.replace("left=Nat(init=3), test=Nat()", "left=Range(0, self.size, init=self.size), test=Range(0, 9)")
    source = source.replace("s.test += 1", "s.test = 9 - s.test")
    code, message = advice(streamproof, folder, source, "--any", "size")
    assert code == 0
    assert f"fills; use streamproof check at one size, or {RANKED}" in message
    assert "not supported by this engine: much; use streamproof check at one size\n" in f"{message}\n"
    code, message = advice(streamproof, folder, source, "--any", "size", "--property", "much")
    assert (code, message.splitlines()[-1]) == (2, "  use streamproof check at one size")
    assert advice(streamproof, folder, source, "--any", "size", "--rank", "left", "--property", "fills")[0] == 0


LOCKS = '''
from streamproof import Array, Bool, Enum, Model, State, action, invariant, require


class Locks(Model):
    """A lock server: a request may be sent again, so no rule by itself conserves anything."""

    n: int = 3
    limits = {"n": (1, None)}
    check_deadlock = False

    def state(self):
        node = Array(self.n, Bool())
        return State(asked=node, granted=node, back=node, holds=node, free=Bool(init=True))

    @action(i="n")
    def ask(self, s, i):
        s.asked[i] = True

    @action(i="n")
    def grant(self, s, i):
        require(s.free and s.asked[i])
        s.free = False
        s.asked[i] = False
        s.granted[i] = True

    @action(i="n")
    def take(self, s, i):
        require(s.granted[i])
        self.consume(s, i)
        s.holds[i] = True

    def consume(self, s, i):
        s.granted[i] = False

    @action(i="n")
    def release(self, s, i):
        require(s.holds[i])
        s.holds[i] = False
        s.back[i] = True

    @action(i="n")
    def returned(self, s, i):
        require(s.back[i])
        s.back[i] = False
        s.free = True

    @invariant
    def mutex(self, s):
        return all(i == j or not s.holds[i] or not s.holds[j] for i in range(self.n) for j in range(self.n))


class Leaky(Locks, variant="leaky"):
    """A grant is not consumed."""

    def consume(self, s, i):
        pass
'''


def test_a_token_law_is_discovered(streamproof: Any, folder: Path) -> None:
    """There is one token, which no rule shows by itself; the proof with it is certified. A second token is a violation."""
    (folder / "locks.py").write_text(LOCKS, encoding="utf-8")
    done = streamproof("prove", "locks.py", "--any", "n", "--certificate", "locks.cert", "--json", "locks.json")
    assert done.code == 0
    assert "sum(granted[c]) + sum(back[c]) + sum(holds[c]) + free = 1" in done.out
    answer = json.loads((folder / "locks.json").read_text(encoding="utf-8"))
    assert [p["sizes"] for p in answer["properties"]] == ["any"]
    assert len(answer["induction_checked"]) > 2
    assert streamproof("verify-certificate", "locks.cert", "--model", "locks.py").code == 0
    leaky = streamproof("prove", "locks.py", "--variant", "leaky", "--any", "n", "-q", "--property", "mutex")
    assert leaky.code == 12
    assert "at n=" in leaky.out


def test_nothing_is_proved_of_a_model_without_an_instance(streamproof: Any, folder: Path) -> None:
    """A proof needs the comparison with an instance: without a small one, nothing is proved."""
    (folder / "many.py").write_text(
        """from streamproof import *

class Many(Model):
    n: int = 20
    limits = {"n": (20, None)}
    check_deadlock = False
    def state(self):
        return State(a=Array(self.n, Bool(init=ANY)))
    @action(i="n")
    def go(self, s, i):
        s.a[i] = True
    @invariant
    def fine(self, s):
        return self.n > 3
""",
        encoding="utf-8",
    )
    done = streamproof("prove", "many.py", "--any", "n")
    assert (done.code, done.out) == (160, "")
    assert "many.py:8: nothing is proved: no instance could be compared, of" in done.err
