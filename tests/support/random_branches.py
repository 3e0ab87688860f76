"""Random models with labelled branches, each with a twin that chooses names and tests them afterwards."""

from __future__ import annotations

from random import Random

HEAD = """
from streamproof import *


class {name}(Model):
    def state(self):
        return State(x=Range(0, 3), y=Bool(), z=Range(0, 2, init=ANY))

    @action
    def other(self, s):
        require({guard})
        {change}

    def chosen(self, s{picks}):
        return {chosen}

    @action(fairness={fairness})
    def carry(self, s):
{body}
    @temporal
    def comes(self, s):
        return eventually({goal})

    @temporal
    def again(self, s):
        return {formula}
"""
CONDITIONS = ("s.y", "not s.y", "s.x > 1", "s.z == 1", "s.x == s.z", "s.z < 2 or s.y")
CHANGES = ("s.y = not s.y", "s.z = (s.z + 1) % 3", "s.y, s.x = True, 0")


def branching(seed: int) -> tuple[str, str]:
    """The source of a model with labelled branches, and that of its twin, both called ``Random``."""
    random = Random(seed)
    count = random.choice((1, 1, 2, 2, 3))
    labels = [random.sample("abc", random.choice((1, 2, 2, 3))) for _ in range(count)]
    values = [[1, *(random.randrange(4) for _ in row[1:])] for row in labels]  # a choice always has a way on
    conditions = [random.choice((None, *CONDITIONS)) for _ in range(count)]
    nested = [random.random() < 0.4 for _ in range(count)]
    targets = [random.choice(("s.x = ({0} + s.x) % 4", "s.z = {0} % 3", "require({0} > 0)")) for _ in range(count)]
    guard, change, goal, left, right, start = (random.choice(CONDITIONS) for _ in range(6))
    change = random.choice(CHANGES)
    fair = random.choice([one for row in labels for one in row])
    word = random.choice(("WEAK", "STRONG"))
    formula = random.choice(
        (f"leads_to({left}, {right})", f"eventually(always({left}))", f"always(eventually({right}))")
    )

    def source(labelled: bool) -> str:
        lines, depth = [f"require({start})"], 0
        for at in range(count):
            depth = depth if nested[at] else 0
            if conditions[at] is not None:
                lines.append(f"{'    ' * depth}if {conditions[at]}:")
                depth += 1
            pad, pairs = "    " * depth, list(zip(labels[at], values[at], strict=True))
            if labelled:
                lines.append(f"{pad}f{at} = choose({', '.join(f'{label}={v}' for label, v in pairs)})")
                value = f"f{at}"
            else:
                lines.append(f"{pad}f{at} = choose({labels[at]!r})")
                value = str(pairs[-1][1])
                for label, v in pairs[:-1]:
                    value = f"({v} if f{at} == {label!r} else {value})"
            lines.append(pad + targets[at].format(value))
        if not any(not line.startswith("require") for line in lines):
            lines.append("s.y = True")
        lines.append("s.y = s.y or s.x == 2")
        picks = [f"f{at}" for at in range(count)]
        return HEAD.format(
            name="Random",
            guard=guard,
            change=change,
            picks="".join(f", {p}" for p in picks),
            chosen=" or ".join(f"{p} == {fair!r}" for p in picks),
            fairness=f"{word}.branch({fair!r})" if labelled else f'{word}.where("chosen")',
            body="".join(f"        {line}\n" for line in lines),
            goal=goal,
            formula=formula,
        )

    return source(True), source(False)
