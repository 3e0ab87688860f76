"""Random models with an array of any length, indexed rules, fairness of each kind, and a temporal property."""

from __future__ import annotations

from random import Random

GUARDS = (
    "s.x[i] > 0", "s.x[i] < 2", "s.x[i] == 1", "s.f[i]", "not s.f[i]", "s.e[i] == 'A'", "s.e[i] != 'C'", "s.g > 0", "s.g < 2",
    "all(s.x[j] > 0 for j in range(self.n))", "any(s.f[j] for j in range(self.n))", "all(not s.f[j] for j in range(self.n))",
)  # fmt: skip
EFFECTS = (
    ("s.x[i] > 0", "s.x[i] -= 1"), ("s.x[i] > 0", "s.x[i] -= 1"), ("s.x[i] < 2", "s.x[i] += 1"), ("True", "s.x[i] = 0"),
    ("True", "s.f[i] = True"), ("True", "s.f[i] = False"), ("True", "s.f[i] = not s.f[i]"),
    ("s.e[i] == 'A'", "s.e[i] = 'B'"), ("s.e[i] == 'B'", "s.e[i] = 'C'"), ("True", "s.e[i] = 'A'"),
    ("s.g > 0", "s.g -= 1"), ("s.g < 2", "s.g += 1"),
)  # fmt: skip
CONDITIONS = (
    "all(s.x[j] == 0 for j in range(self.n))", "any(s.x[j] == 0 for j in range(self.n))", "s.g == 0", "s.g == 2",
    "all(s.f[j] for j in range(self.n))", "any(s.f[j] for j in range(self.n))", "all(s.e[j] == 'C' for j in range(self.n))",
    "any(s.e[j] == 'C' for j in range(self.n))", "sum(s.x[j] for j in range(self.n)) <= 1",
)  # fmt: skip
AT_INDEX = (
    "s.x[c] == 0", "s.x[c] == 2", "s.x[c] > 0", "s.f[c]", "not s.f[c]", "s.e[c] == 'A'", "s.e[c] == 'C'", "s.e[c] != 'C'",
    "s.f[c] and s.x[c] == 0", "s.f[c] or s.g == 0", "all(s.f[j] or j == c for j in range(self.n))",
)  # fmt: skip
FAIRNESS = ("", ", fairness=WEAK", ", fairness=WEAK", ", fairness=WEAK", ", fairness=STRONG")


def random_array_model(seed: int, *, indexed: bool = False) -> str:
    """The source of a model `Rows` with the property `reached`; of every index if `indexed`."""
    chance = Random(seed)
    lines = [
        "from streamproof import *",
        "class Rows(Model):",
        "    n: int = 2",
        "    limits = {'n': (1, None)}",
        "    def state(self):",
        f"        return State(x=Array(self.n, Range(0, 2, init={chance.randint(0, 2)})), f=Array(self.n, Bool()),",
        f"            e=Array(self.n, Enum('A', 'B', 'C')), g=Range(0, 2, init={chance.randint(0, 2)}))",
    ]
    for number in range(chance.randint(1, 3)):
        lines += [f"    @action(i=lambda m: range(m.n){chance.choice(FAIRNESS)})", f"    def act{number}(self, s, i):"]
        chosen = chance.sample(EFFECTS, chance.randint(1, 2))
        conditions = [g for g, _ in chosen if g != "True"] + chance.sample(GUARDS, chance.choice((0, 0, 1, 1, 2)))
        lines += [f"        require({condition})" for condition in conditions]
        lines += [f"        {effect}" for _, effect in chosen]
    p, q = chance.choice(CONDITIONS), chance.choice(CONDITIONS)
    if indexed:
        p, q = chance.choice((*AT_INDEX, *AT_INDEX, p)), chance.choice((*AT_INDEX, *AT_INDEX, q))
    formula = chance.choice((f"leads_to({p}, {q})", f"eventually({q})", f"always(eventually({q}))"))
    if indexed:
        loops = chance.choice(
            ("for c in range(self.n)", "for c in range(self.n)", "for d in range(self.n) for c in range(self.n)")
        )
        formula = f"all({formula} {loops})"
    lines += ["    @temporal", "    def reached(self, s):", f"        return {formula}"]
    return "\n".join(lines) + "\n"
