"""What changed between two models: every difference is true, and none is missing, by plain searches with the interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

import streamproof as sp
from random_systems import random_system
from shares import share
from streamproof.base.errors import Exit
from streamproof.base.options import SearchOptions
from streamproof.cli.diff import exit_code
from streamproof.cli.verbs import cli
from streamproof.difference.behaviours import ACTIONS, ENDS, INITIAL, MISTAKE, STATES, STEPS, compare_behaviours
from streamproof.difference.comparing import compare_systems
from streamproof.difference.rendering import difference_markdown, summary
from streamproof.mutation.mutants import mutants
from streamproof.system import EvaluationError, System, UsageError
from streamproof.system.basics import FALSE, TRUE
from streamproof.system.interpreter import Interpreter
from streamproof_models.reference.two_phase_commit import TwoPhaseCommit

DEEPEST, MOST_WORDS = 4, 200
"""Bounds of the naive comparison: length of words, and number of words of a length."""
TANK = """
from streamproof import WEAK, Bool, Model, Range, State, action, eventually, invariant, require, temporal, terminal


class Tank(Model):
    size: int = 3

    def state(self):
        return State(level=Range(0, self.size), rung=Bool())

    @action(fairness=WEAK)
    def fill(self, s):
        require(s.level < self.size)
        s.level += 1

    @action
    def ring(self, s):
        require(s.level == self.size)
        require(not s.rung)
        s.rung = True

    @terminal
    def full(self, s):
        return s.rung

    @invariant
    def late(self, s):
        return not s.rung or s.level == self.size


class Hasty(Tank, variant="hasty"):
    @action
    def ring(self, s):
        require(s.level >= 1)
        require(not s.rung)
        s.rung = True


class Idle(Tank, variant="idle"):
    @action
    def fill(self, s):
        super().fill(s)
"""


def possible(system: System, state: Any, view: str) -> Iterator[tuple[Any, Any, str]]:
    """What is seen of every step, mistake and end in a state, what it leads to, and its action."""
    plain = Interpreter(system)
    for instance in system.instances:
        label = "" if view == STATES else instance.label
        try:
            after = plain.take(instance, state)
        except EvaluationError:
            yield ("mistake", label), None, instance.action
            continue
        if after is not None:
            yield (label, () if view == ACTIONS else after), after, instance.action
    if plain.terminal(state):
        yield ("end",), None, ENDS


def naively(before: System, after: System, view: str) -> tuple[dict[Any, int], dict[Any, int], int]:
    """For each action, and whether it is a mistake, the least number of steps before a difference: of what only the system
    after has, of what only that before has; and the number of steps that were looked at."""
    words: dict[Any, tuple[set[Any], set[Any]]] = {}
    found: tuple[dict[Any, int], dict[Any, int]] = ({}, {})
    for number, system in enumerate((before, after)):
        for state in Interpreter(system).initial_states():
            words.setdefault((() if view == ACTIONS else state,), (set(), set()))[number].add(state)
    for number in (0, 1):
        if any(sides[number] and not sides[1 - number] for sides in words.values()):
            found[1 - number][INITIAL, False] = 0
    words = {word: sides for word, sides in words.items() if all(sides)}
    depth = 0
    while words and depth <= DEEPEST and len(words) <= MOST_WORDS:
        longer: dict[Any, tuple[set[Any], set[Any]]] = {}
        for word, sides in words.items():
            seen: tuple[dict[Any, set[Any]], dict[Any, set[Any]]] = ({}, {})
            named: tuple[dict[Any, list[str]], dict[Any, list[str]]] = ({}, {})
            for number, system in enumerate((before, after)):
                for state in sides[number]:
                    for what, then, action in possible(system, state, view):
                        seen[number].setdefault(what, set()).update(() if then is None else (then,))
                        named[number].setdefault(what, []).append(action)
            for number in (0, 1):
                for what in seen[number]:
                    if what not in seen[1 - number]:
                        keys = {(action, what[0] == "mistake") for action in named[number][what]}
                        for key in keys if view != STATES else {("", what[0] == "mistake")}:
                            found[1 - number].setdefault(key, depth)
            for what in seen[0].keys() & seen[1].keys():
                if seen[0][what]:
                    longer[(*word, what)] = seen[0][what], seen[1][what]
        words, depth = longer, depth + 1
    return (*found, depth)


def by_key(some: Any, view: str, deepest: int) -> dict[Any, int]:
    """The same of what was found, as far as the naive comparison looked."""
    found: dict[Any, int] = {}
    for one in some:
        key = one.action if view != STATES or one.what == INITIAL else "", one.what == MISTAKE
        if len(one.before) < deepest:
            found[key] = min(found.get(key, deepest), len(one.before))
    return found


def pair(seed: int) -> tuple[System, System]:
    """A random system, and one of its mutants, or one with the actions of another."""
    random = Random(seed)
    system = random_system(random)
    changed = list(mutants(system))
    other = random.choice(changed).system if changed else system
    if random.randrange(4) == 0:
        left_out = random.randrange(len(other.actions))
        other = replace(other, actions=tuple(a for k, a in enumerate(other.actions) if k != left_out))
    if random.randrange(6) == 0:
        other = replace(other, terminal=None)
    return (system, other) if random.randrange(2) else (other, system)


@pytest.mark.parametrize("begin", share(range(0, 1_000, 5), of=200))
def test_agrees_with_a_naive_comparison(begin: int) -> None:
    """Random pairs, in every view: the same actions differ, after the same number of steps; the interpreter replays each."""
    differing = 0
    for seed in range(begin, begin + 5):
        before, after = pair(seed)
        for view in (STEPS, ACTIONS, STATES):
            gained, lost, deepest = naively(before, after, view)
            found = compare_behaviours(before, after, SearchOptions(max_states=20_000), view=view)
            for own, right in ((found.gained, gained), (found.lost, lost)):
                right = {key: at for key, at in right.items() if at < deepest}
                shown = by_key(own, view, deepest)
                assert shown == right or found.stopped is not None, (seed, view)
                differing += bool(right)
    assert differing > 1


def test_reachable_states_and_verdicts_of_random_pairs() -> None:
    """The states that only one system has are those of a plain search; verdicts are those of a check."""
    for seed in range(6):
        before, after = pair(seed)
        if not all(any(Interpreter(one).initial_states()) for one in (before, after)):
            continue
        found = compare_systems(before, after, SearchOptions(max_states=20_000))
        checked = [sp.explore(one, SearchOptions(max_states=20_000)) for one in (before, after)]
        for name, one, other in ((p.name, p.before, p.after) for p in found.verdicts):
            for side, finding in zip(checked, (one, other), strict=True):
                assert finding is not None
                assert finding.verdict is side.finding(name).verdict
        if found.states is not None:
            reached = [set(reachable(one)) for one in (before, after)]
            assert found.states.vanished == len(reached[0] - reached[1])
            assert found.states.appeared == len(reached[1] - reached[0])
            assert found.states.both == len(reached[0] & reached[1])
            assert (found.states.to_appeared is None) == (not found.states.appeared)


def reachable(system: System) -> Iterator[Any]:
    """All states that the interpreter reaches."""
    plain = Interpreter(system)
    frontier = list(plain.initial_states())
    known = set(frontier)
    while frontier:
        state = frontier.pop()
        yield state
        new = {step.state for step in plain.steps(state)} - known
        known |= new
        frontier += new


def test_a_limit_leaves_the_comparison_open() -> None:
    """Two equal systems are not reported as equal before all of both was compared."""
    system = sp.check("reference.two_phase_commit").system
    found = compare_systems(system, system, SearchOptions(max_states=50))
    assert found.stopped is not None
    assert summary(found).startswith("inconclusive: ")
    assert not found.verdicts_differ
    assert not found.behaviours_differ
    assert found.states is None


def test_an_undecided_verdict_is_no_equal_verdict() -> None:
    """Behaviours differ, but a limit left properties of one side open: whether a verdict differs is not known."""
    before, after = (TwoPhaseCommit.system(resource_managers=n) for n in (2, 3))
    found = compare_systems(before, after, SearchOptions(max_states=60))
    assert found.behaviours_differ
    assert not found.verdicts_differ
    assert found.open
    assert exit_code(found) is Exit.INCONCLUSIVE
    assert exit_code(compare_systems(before, after, SearchOptions())) is Exit.BEHAVIOURS_DIFFER


def test_properties_that_are_new_gone_or_restated_are_differences() -> None:
    """An invariant that becomes another one is no equal model; a new one that holds is no changed verdict."""
    system = TwoPhaseCommit.system()
    own, *others = system.properties
    assert own.expr is not TRUE
    for properties, code, text in (
        ([replace(own, expr=TRUE)], Exit.BEHAVIOURS_DIFFER, "differ: 1 property restated"),
        ([own, replace(own, name="also")], Exit.BEHAVIOURS_DIFFER, "differ: 1 property new"),
        ([own, replace(own, name="also", expr=FALSE)], Exit.VERDICTS_DIFFER, "differ: 1 verdict differs"),
        ([], Exit.VERDICTS_DIFFER, "differ: 1 verdict differs"),
    ):
        found = compare_systems(system, replace(system, properties=(*properties, *others)), SearchOptions())
        assert (exit_code(found), summary(found)) == (code, text)
        assert not found.behaviours_differ


def test_mistakes_of_both_are_no_equality() -> None:
    """Where the rules of both fail, properties are undecided."""
    some = (s for s in map(random_system, map(Random, range(200))) if any(Interpreter(s).initial_states()))
    system = next(s for s in some if sp.explore(s).mistake is not None)
    found = compare_systems(system, system, SearchOptions())
    assert not found.behaviours_differ
    assert found.stopped is not None


def test_views_and_names_are_checked() -> None:
    """Two models without a common variable can be compared by actions only."""
    with pytest.raises(UsageError, match="no variable in common"):
        sp.diff("reference.die_hard", "reference.two_phase_commit", view=STATES)
    with pytest.raises(UsageError, match="is no view"):
        sp.diff("reference.die_hard", "reference.die_hard", view="words")
    with pytest.raises(UsageError, match="does not support symmetry"):
        sp.diff("reference.die_hard", "reference.die_hard", options=SearchOptions(symmetry=True))
    found = sp.diff("reference.die_hard", "reference.two_phase_commit")
    assert found.behaviours.gained
    assert found.variables.before
    assert found.actions.after


# --- the command line


def answered(*words: str) -> tuple[int, str]:
    """The exit code and the output of `diff`."""
    done = CliRunner().invoke(cli, ["diff", *words], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.return_value, done.output


def test_variants_parameters_and_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit codes, what is printed, and that the model of a commit is that of the commit, its neighbours included."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "limits.py").write_text("SIZE = 3\n")
    text = TANK.replace("size: int = 3", "size: int = SIZE")
    (tmp_path / "tank.py").write_text("from limits import SIZE\n" + text)
    code, shown = answered("tank.py", "--to-variant", "hasty")
    assert code == 164
    assert "late" in shown
    assert "violated after 2 steps" in shown
    assert "after: ring() changes rung: False -> True" in shown
    assert "before: needs s.level == self.size   because  s.level = 1" in shown
    code, shown = answered("tank.py", "--to-variant", "idle", "-q")
    assert (code, shown) == (163, "differ: fairness differs\n")
    code, shown = answered("tank.py", "--to", "size=2", "--format", "json")
    document = json.loads(shown)
    assert code == document["exit_code"] == 163
    assert not any(v["differs"] for v in document["verdicts"])
    assert document["before"]["parameters"] == {"size": 3}
    assert document["after"]["parameters"] == {"size": 2}
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]):
        subprocess.run(["git", *words], check=True)
    (tmp_path / "limits.py").write_text("SIZE = 4 - 2\n")  # of another length, so that no bytecode is taken for it
    code, shown, _ = at_commit("HEAD", "--format", "markdown")
    assert (code, shown.splitlines()[0]) == (163, "### `tank (size=3) at HEAD` → `tank (size=2)`")
    with pytest.raises(UsageError, match="one model is compared with itself"):
        answered("tank.py")


def at_commit(revision: str, *words: str) -> tuple[int, str, str]:
    """The exit code and the outputs of `diff` of the tank with itself at a commit, in a process without threads."""
    command = [sys.executable, "-m", "streamproof", "diff", "tank.py", "--base", revision, *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.long
def test_models_that_are_not_of_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unchanged model is equal; one that the commit lacks, and an error of the model there, are reported."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tank.py").write_text("raise ValueError(3)\n")
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]):
        subprocess.run(["git", *words], check=True)
    (tmp_path / "tank.py").write_text(TANK)
    code, _, error = at_commit("HEAD")
    assert code == 150
    assert "at HEAD: HEAD:tank.py:1: ValueError: 3" in error
    for words in (
        ["rm", "-q", "--cached", "tank.py"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "two"],
    ):
        subprocess.run(["git", *words, *(["--allow-empty"] if "commit" in words else [])], check=True)
    code, _, error = at_commit("HEAD")
    assert code == 2
    assert "tank.py does not exist at HEAD" in error
    for words in (["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "three"]):
        subprocess.run(["git", *words], check=True)
    assert at_commit("HEAD", "-q")[0] == 0
    assert "no commit 'nowhere'" in at_commit("nowhere")[2]


def test_markdown_has_no_markup_of_models() -> None:
    """Text of a model is code in Markdown, whatever characters it has."""
    system = sp.check("reference.die_hard").system
    odd = replace(system, name="a|b`c`<img src=x>")
    text = difference_markdown(compare_systems(odd, odd, SearchOptions()))
    assert text.startswith("### `` a\\|b`c`<img src=x> (small_jug")
    assert "<img src=x>" not in text.replace("a\\|b`c`<img src=x>", "")
