"""Values of an Enum are values of a wider Enum, in every container: lowered rules do what Python does."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from loading import load
from streamproof import Native
from streamproof.system import EvaluationError, Interpreter, ModelError
from streamproof.system.sampling import random_state

HEAD = """
from streamproof import *

class M(Model):
    check_deadlock = False

    def state(self):
        sub, wide = Enum("A", "B"), Enum("B", "C", "A")
        return State(
            u=sub, w=wide, ou=Option(sub), ow=Option(wide), su=Set(sub), sw=Set(wide),
            qu=Queue(sub, capacity=2), qw=Queue(wide, capacity=2), au=Array(2, sub), aw=Array(2, wide),
            iu=Array(sub, Bool()), iw=Array(wide, Bool()), ru=Record(k=sub, o=Option(sub)), rw=Record(k=wide, o=Option(wide)),
            tu=Set(Record(k=sub)), tw=Set(Record(k=wide)), kw=Array([("A", 0), ("C", 1)], Bool()), p=Bool(),
        )

    @action
    def go(self, s):
        """

WIDER = [
    "s.w = s.u", "s.ow = s.u", "s.ow = s.ou", "s.sw = s.su", "s.sw.add(s.u)", "s.sw |= s.su", "s.sw = s.su | s.sw",
    "s.sw = s.sw - s.su", "s.sw.discard(s.u)", "s.qw.push(s.u)", "s.qw = s.qu", "s.qw = s.qu + s.qw", "s.qw.extend(s.qu)",
    "s.qw.remove(s.u)", "s.aw = s.au", "s.aw[0] = s.u", "s.iw[s.u] = True", "s.rw = s.ru", "s.rw.k = s.u", "s.tw = s.tu",
    "s.rw = {'k': s.u, 'o': s.ou}", "s.tw.add({'k': s.u})", "s.w = s.u if s.p else s.w", "s.w = s.w if s.p else s.u",
    "s.w = choose(s.su)", "s.sw = {s.u, s.w}", "s.qw = [s.u, s.w]",
    "s.p = s.u == s.w", "s.p = s.ou == s.ow", "s.p = s.w == s.ou", "s.p = s.ru == s.rw", "s.p = s.qu == s.qw",
    "s.p = s.au == s.aw", "s.p = s.su == s.sw", "s.p = s.su <= s.sw", "s.p = s.sw <= s.su", "s.p = s.su < s.sw",
    "s.p = s.w in s.su", "s.p = s.u in s.sw", "s.p = s.w in s.qu", "s.p = s.u in s.qw", "s.p = s.w in s.au",
    "s.p = s.kw[s.u, 0]", "s.p = s.qw.count(s.u) == 1", "s.p = len({s.u, s.w}) == 1",
]  # fmt: skip
NARROWER = [
    "s.u = s.w", "s.ou = s.w", "s.ou = s.ow", "s.qu.push(s.w)", "s.qu = s.qw", "s.su.add(s.w)", "s.su = s.sw",
    "s.su = s.su & s.sw", "s.iu[s.w] = True", "s.iw = s.iu", "s.au = s.aw", "s.ru = s.rw", "s.u = s.w if s.p else s.u",
]  # fmt: skip


def outcome(run: Any, *args: Any) -> Any:
    """The next state, None, or the message of an error."""
    try:
        return run(*args)
    except EvaluationError as error:
        return error.message


@pytest.mark.parametrize("rule", WIDER)
def test_a_value_of_the_subset_is_one_of_the_wider_enum(tmp_path: Path, rule: str) -> None:
    """Assignment, comparison, membership, indices: the interpreter and Python agree in random states."""
    model = load(f"{HEAD}{rule}\n", tmp_path).M
    system, native, chance = model.system(), Native(model()), random.Random(rule)
    interpreter, changed = Interpreter(system), 0
    for _ in range(40):
        state = random_state([v.sort for v in system.variables], chance)
        for instance in system.instances:
            lowered = outcome(interpreter.take, instance, state)
            if native.picks(state, instance, system) is not None:
                assert outcome(native.take, state, instance, system) == lowered, state
                changed += lowered not in (None, state)
    assert changed


@pytest.mark.parametrize("rule", NARROWER)
def test_the_other_direction_is_refused(tmp_path: Path, rule: str) -> None:
    """A wider value is none of the subset; the message names both."""
    with pytest.raises(ModelError, match=r"Enum\('A', 'B'\)|two branches|on one path") as caught:
        load(f"{HEAD}{rule}\n", tmp_path).M.system()
    assert caught.value.remedy
