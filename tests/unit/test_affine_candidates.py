"""Linear equations of sampled states as candidates: which are found, and that a false one is not proved."""

from __future__ import annotations

import pytest

from streamproof import Array, Enum, Model, Range, Spec, State, action, choose, invariant, require
from streamproof.any.engine import prove_any
from streamproof.any.engine.affine import affine_candidates
from streamproof.system import System

pytest.importorskip("z3")


class Places(Model):
    """Every item is idle, moving or done; what moves is counted twice."""

    items: int = 2
    few: int = 1
    limits = {"items": (1, None), "few": (1, 5)}  # noqa: RUF012
    check_deadlock = False

    def state(self):
        """All are idle."""
        return State(
            at=Array(self.items, Enum("IDLE", "MOVING", "DONE")),
            twice=Range(0, 2 * self.items),
            left=Array(self.items, Range(0, 3, init=3)),
            used=Array(self.items, Range(0, 3)),
            late=Range(0, 100),
        )

    @action(i="items")
    def start(self, s, i):
        """One more moves, whatever it did before."""
        if s.at[i] != "MOVING":
            s.twice += 2
        s.at[i] = "MOVING"
        s.late = min(s.late + 1, 100)

    @action(i="items")
    def end(self, s, i):
        """One less."""
        require(s.at[i] == "MOVING")
        s.twice -= 2
        s.at[i] = choose(["IDLE", "DONE"])

    @action(i="items")
    def use(self, s, i):
        """What is left is used."""
        require(s.left[i] > 0)
        s.left[i] = s.left[i] - 1
        s.used[i] = 3 - s.left[i]

    @invariant
    def counted(self, s):
        """Nothing is counted that does not move."""
        return s.twice <= 2 * self.items


def candidates(model: type[Model], *free: str) -> dict[str, object]:
    """The candidates by name."""
    spec = Spec(model)

    def instance(values: object) -> System:
        assert isinstance(values, dict)
        return spec.system(None, **values)

    return {c.name: c for c in affine_candidates(spec.parametric(free), instance)}


def test_laws_of_sums_and_of_one_index() -> None:
    """An equation of sums over all indices, one at each index, and none that the samples refute."""
    found = candidates(Places, "items")
    assert "2*sum((at[c] == MOVING)) = twice" in found
    assert "for all c: left[c] + used[c] = 3" in found
    assert not any("late" in name for name in found)
    assert not any("few" in name for name in found)


def test_a_law_of_small_samples_only_is_not_proved() -> None:
    """What is true of all samples, and false later, is a candidate that induction drops."""

    class Slow(Model):
        """Ends after more steps than a walk has."""

        n: int = 1
        limits = {"n": (1, None)}  # noqa: RUF012
        check_deadlock = False

        def state(self):
            return State(x=Range(0, 1_000), y=Range(0, self.n))

        @action
        def go(self, s):
            require(s.x < 1_000)
            s.x += 1
            if s.x == 900:
                s.y = 1

        @invariant
        def never(self, s):
            return s.y == 0

    spec = Spec(Slow)
    parametric = spec.parametric(("n",))
    found = affine_candidates(parametric, lambda values: spec.system(None, **values))
    assert "y = 0" in [c.name for c in found]
    assert prove_any(parametric, [parametric.system.property("never")], [lambda: found]).proved == ()
