"""Protocols with free parameters, most of whose properties are inductive, with slots at which a condition may be put in."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

Limits = tuple[int | None, int | None]


@dataclass
class Draft:
    """A model that is being drawn. `slots` are places for a condition: how the text reads, with and without it."""

    chance: random.Random
    parameters: dict[str, tuple[int, Limits]] = field(default_factory=dict)
    state: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    setup: list[str] = field(default_factory=list)
    slots: list[tuple[str, str, str]] = field(default_factory=list)
    varied: str = ""
    """The members of a variant."""
    deadlock: bool = False

    def parameter(self, name: str, default: int, least: int | None, most: int | None = None) -> None:
        """A free parameter with its limits."""
        self.parameters[name] = default, (least, most)

    def guard(self, text: str) -> str:
        """A condition that a rule requires, which may be loosened."""
        return self._slot("guard", text, f"({text} or {{lie}})")

    def claim(self, text: str) -> str:
        """A condition that a property states, which may be made false."""
        return self._slot("claim", text, f"({text} and not {{lie}})")

    def number(self, text: str) -> str:
        """A number that a rule computes with, which may be one more."""
        return self._slot("number", text, f"({text} + 1 if {{lie}} else {text})")

    def first(self, text: str) -> str:
        """A number of ``state()``, which may be one more."""
        return self._slot("first", text, f"({text} + 1 if {{lie}} else {text})")

    def action(self, name: str, over: str, *body: str) -> None:
        """A rule; `over` are its parameters as in ``@action(...)``."""
        names = "".join(f", {part.split('=')[0].strip()}" for part in over.split(",") if "=" in part)
        self.members.append(f"@action({over})\ndef {name}(self, s{names}):\n" + _block(body))

    def invariant(self, name: str, *body: str, kind: str = "invariant") -> None:
        """A property of states; the last line is what it returns."""
        lines = [*body[:-1], f"return {body[-1]}"]
        self.members.append(f"@{kind}\ndef {name}(self, s):\n" + _block(lines))

    def step(self, name: str, text: str) -> None:
        """A property of steps from `s` to `t`."""
        self.members.append(f"@step\ndef {name}(self, s, t):\n    return {text}\n")

    def _slot(self, kind: str, plain: str, lying: str) -> str:
        self.slots.append((kind, plain, lying))
        return f"<<{len(self.slots) - 1}>>"


def _block(lines: tuple[str, ...] | list[str]) -> str:
    return "\n".join(f"    {row}" for line in lines for row in line.split("\n")) + "\n"


def transfers(d: Draft) -> None:
    """Units move from a pool to any number of places, and between two of them."""
    d.parameter("n", 2, 1)
    d.parameter("most", 2, 0)
    cap = d.chance.choice(["self.most", "2 * self.most", "self.most + 1"])
    d.setup.append(f"self.cap = {cap}")
    d.state += [
        "each = range(self.n)",
        "x = Array(each, Range(0, self.cap))",
        f"pool = Range(0, self.cap, init={d.first('self.most')})",
    ]
    d.action("take", "i='n'", f"require({d.guard('s.pool > 0')})", "s.pool -= 1", f"s.x[i] += {d.number('1')}")
    d.action("give", "i='n'", f"require({d.guard('s.x[i] > 0')})", "s.x[i] -= 1", "s.pool += 1")
    if d.chance.random() < 0.6:
        d.action("move", "i='n', j='n'", f"require({d.guard('s.x[i] > 0 and i != j')})", "s.x[i] -= 1", "s.x[j] += 1")
    d.invariant("conserved", d.claim("s.pool + sum(s.x[i] for i in range(self.n)) == self.most"))
    d.invariant("each_small", d.claim("all(s.x[i] <= self.most for i in range(self.n))"))
    d.invariant("pairs", "all(s.x[i] + s.x[j] <= self.most for i in range(self.n) for j in range(self.n) if i != j)")
    d.invariant("tail", d.claim("sum(s.x[i] for i in range(1, self.n)) <= self.most"))
    d.invariant("front", "sum(s.x[i] for i in range(self.n - 1)) + s.pool <= self.most")
    d.step("one_at_a_time", d.claim("t.pool <= s.pool + 1 and s.pool <= t.pool + 1"))


def token(d: Draft) -> None:
    """A token goes round any number of processes; who holds it is known twice."""
    d.parameter("n", 3, d.chance.choice([1, 2]))
    d.state += ["at = Range(0, self.n - 1)", "m = Array(self.n, Enum('OUT', 'IN'))"]
    d.action("enter", "i='n'", f"require({d.guard('s.at == i')})", "s.m[i] = 'IN'")
    d.action(
        "leave",
        "i='n'",
        f"require(s.m[i] == 'IN' and {d.guard('s.at == i')})",
        "s.m[i] = 'OUT'",
        f"s.at = s.at + 1 if s.at < {d.number('self.n - 1')} else 0",
    )
    if d.chance.random() < 0.5:
        d.action("jump", "i='n'", f"require({d.guard('s.m[s.at] == ' + repr('OUT'))})", "s.at = i")
    d.invariant("holder", d.claim("all(s.m[i] == 'OUT' or s.at == i for i in range(self.n))"))
    d.invariant(
        "exclusive",
        d.claim("all(s.m[i] == 'OUT' or s.m[j] == 'OUT' for i in range(self.n) for j in range(self.n) if i != j)"),
    )
    d.invariant(
        "at_most_one",
        "all(all(i == j or not (s.m[i] == 'IN' and s.m[j] == 'IN') for j in range(self.n)) for i in range(self.n))",
    )
    d.invariant("somebody", d.claim("any(s.at == i for i in range(self.n))"))
    d.invariant(
        "deep",
        "all(any(all(s.m[k] == 'OUT' or k == j for k in range(self.n)) for j in range(self.n)) for i in range(self.n))",
    )
    d.invariant("counted", "sum(1 for i in range(self.n) if s.m[i] == 'IN') <= 1")


def credits(d: Draft) -> None:
    """Credit for each of any number of channels, in a record."""
    d.parameter("channels", 2, 1)
    d.parameter("exclusive", 1, d.chance.choice([0, 1]))
    d.parameter("floating", 1, 0)
    d.state += [
        "top = self.exclusive + self.floating",
        f"ch = Array(range(self.channels), Record(credit=Range(0, top, init={d.first('self.exclusive')}), "
        "wire=Range(0, top), open=Bool()))",
        "pool = Range(0, self.floating, init=self.floating)",
    ]
    d.action(
        "send", "c='channels'", f"require({d.guard('s.ch[c].credit > 0')})", "s.ch[c].credit -= 1", "s.ch[c].wire += 1"
    )
    d.action(
        "receive",
        "c='channels'",
        f"require({d.guard('s.ch[c].wire > 0')})",
        "s.ch[c].wire -= 1",
        f"s.ch[c].credit += {d.number('1')}",
        "s.ch[c].open = True",
    )
    if d.chance.random() < 0.5:
        d.action("toggle", "c='channels'", "s.ch[c].open = not s.ch[c].open", f"s.pool = {d.number('0')}")
    d.invariant(
        "conservation", d.claim("all(s.ch[c].credit + s.ch[c].wire == self.exclusive for c in range(self.channels))")
    )
    d.invariant("no_overflow", d.claim("all(s.ch[c].wire <= self.exclusive for c in range(self.channels))"))
    d.invariant(
        "all_of_them",
        "sum(s.ch[c].credit + s.ch[c].wire for c in range(self.channels)) == self.channels * self.exclusive",
    )
    d.invariant("pool_small", d.claim("s.pool <= self.floating"))
    d.invariant("one", d.claim("s.ch[0].credit <= self.exclusive"))
    d.step("wire_by_one", d.claim("all(t.ch[c].wire <= s.ch[c].wire + 1 for c in range(self.channels))"))


def phases(d: Draft) -> None:
    """A control state and two counters, with or without legal ends."""
    d.parameter("top", 3, 1)
    d.parameter("slack", 1, 0)
    d.deadlock = True
    d.state += ["mode = Enum('IDLE', 'RUN', 'STOP')", "x = Range(0, self.top + self.slack)", "y = Range(0, self.top)"]
    d.action("start", "", f"require({d.guard('s.mode == ' + repr('IDLE'))})", "s.mode = 'RUN'")
    d.action("work", "", f"require(s.mode == 'RUN' and {d.guard('s.x < self.top')})", f"s.x += {d.number('1')}")
    d.action("also", "", f"require({d.guard('s.mode == ' + repr('RUN'))} and s.y < s.x)", "s.y += 1")
    d.action("stop", "", f"require({d.guard('s.x == self.top and s.y == self.top')})", "s.mode = 'STOP'")
    d.invariant("bounded", d.claim("s.x <= self.top"))
    d.invariant("behind", d.claim("s.y <= s.x"))
    d.invariant("idle", d.claim("s.mode != 'IDLE' or s.x + s.y == 0"))
    d.invariant("stopped", d.claim("s.mode != 'STOP' or s.x == self.top"))
    d.invariant("twice", "2 * s.y <= s.x + self.top")
    d.step("forward", d.claim("s.x <= t.x and s.y <= t.y"))
    d.invariant("ends", d.claim("s.mode == 'STOP'"), kind="terminal")


def leader(d: Draft) -> None:
    """Somebody is chosen once, and everybody may follow."""
    d.parameter("n", 3, d.chance.choice([1, 2]))
    d.state += [
        "who = Option(Range(0, self.n - 1))",
        "follows = Array(self.n, Option(Range(0, self.n - 1)))",
        "round = Range(0, self.n)",
    ]
    d.action("elect", "i='n'", f"require({d.guard('s.who is None')})", "s.who = i")
    d.action("follow", "i='n'", "require(s.who is not None)", "s.follows[i] = s.who")
    if d.chance.random() < 0.6:
        d.action(
            "retire",
            "i='n'",
            f"require(s.who == i and {d.guard('all(s.follows[j] is None for j in range(self.n))')})",
            "s.who = None",
        )
    d.action("tick", "", f"require({d.guard('s.round < self.n - 1')})", "s.round += 1")
    d.invariant("agree", d.claim("all(s.follows[i] is None or s.follows[i] == s.who for i in range(self.n))"))
    d.invariant(
        "same",
        "all(s.follows[i] is None or s.follows[j] is None or s.follows[i] == s.follows[j] "
        "for i in range(self.n) for j in range(self.n))",
    )
    d.invariant("early", d.claim("s.round < self.n"))
    d.invariant("nobody", d.claim("s.who is not None or all(s.follows[i] is None for i in range(self.n))"))
    d.step("kept", d.claim("all(s.follows[i] is None or t.follows[i] is not None for i in range(self.n))"))


def begun(d: Draft) -> None:
    """First values that are any that a condition allows."""
    d.parameter("n", 2, 2)
    d.parameter("m", 1, 1)
    d.state += [
        "x = Array(self.n, Range(0, self.m, init=ANY))",
        "b = Array(self.n, Bool(init=ANY))",
        "k = Range(0, self.n - 1, init=ANY)",
    ]
    d.members.append(
        "@initially\ndef first(self, s):\n    return "
        + d.chance.choice(
            [
                "all(s.x[i] == 0 for i in range(self.n))",
                "all(s.x[i] <= 1 for i in range(self.n)) and s.x[0] == 0",
                "all(s.x[j] == 0 for j in range(1, self.n)) and s.x[s.k] == 0",
                "any(s.x[i] == 0 for i in range(self.n)) and all(s.b[i] for i in range(self.n - 1))",
                "s.k == self.n - 1 and not any(s.x[i] > 0 for i in range(self.n))",
                "all(s.x[i] == s.x[0] for i in range(self.n))",
                "sum(s.x[i] for i in range(self.n)) == 0",
                "all(s.x[i] == self.m for i in range(self.n) if i != s.k)",
            ]
        )
        + "\n"
    )
    d.action("lower", "i='n'", f"require({d.guard('s.x[i] > 0')})", "s.x[i] -= 1")
    d.action("mark", "i='n'", f"require({d.guard('s.x[i] == 0')})", "s.b[i] = True")
    d.action("choose_one", "i='n'", f"require({d.guard('s.b[i] and i < self.n')})", "s.k = i")
    d.invariant("zero", d.claim("all(s.x[i] == 0 for i in range(self.n))"))
    d.invariant("small", d.claim("all(s.x[i] <= 1 or s.b[0] for i in range(self.n))"))
    d.invariant("nothing", "sum(s.x[i] for i in range(self.n)) == 0")
    d.invariant("rest", d.claim("all(s.x[j] == 0 for j in range(1, self.n))"))
    d.invariant("at_k", d.claim("s.x[s.k] <= self.m"))
    d.invariant("limit", d.claim("sum(s.x[i] for i in range(1, self.n)) <= self.n * self.m"))
    d.invariant("some", "any(s.x[i] == 0 for i in range(self.n))")
    d.step("falling", d.claim("all(t.x[i] <= s.x[i] for i in range(self.n))"))


def shifted(d: Draft) -> None:
    """Numbers around a parameter that may be negative."""
    d.parameter("low", 0, d.chance.choice([-3, -5, None]), d.chance.choice([None, 40]))
    d.parameter("width", 2, 0)
    d.state += [
        "x = Range(self.low, self.low + self.width)",
        f"y = Range(self.low - 1, self.low + self.width + 1, init={d.first('self.low')})",
    ]
    d.state[-2] = "x = Range(self.low, self.low + self.width, init=self.low)"
    d.action("up", "", f"require({d.guard('s.x < self.low + self.width')})", "s.x += 1")
    d.action("pull", "", f"require({d.guard('s.y < s.x')})", f"s.y += {d.number('1')}")
    d.action("back", "", f"require(s.x > self.low and {d.guard('s.y < s.x')})", "s.x -= 1")
    d.invariant("order", d.claim("s.y <= s.x"))
    d.invariant("inside", d.claim("self.low <= s.x <= self.low + self.width"))
    d.invariant("near", d.claim("s.x - s.y <= self.width"))
    d.invariant("least", d.claim("s.y >= self.low"))
    d.step("by_one", d.claim("t.x <= s.x + 1"))


def grids(d: Draft) -> None:
    """Two indices of two lengths."""
    d.parameter("n", 2, 1)
    d.parameter("m", 2, 1)
    d.state += ["up = Array(self.n, Bool())", "down = Array(range(self.m), Range(0, 2))", "all_up = Bool()"]
    d.action("raise_one", "i='n', j='m'", f"require({d.guard('s.down[j] == 0')} and not s.all_up)", "s.up[i] = True")
    d.action(
        "sink",
        "j='m'",
        f"require({d.guard('all(not s.up[i] for i in range(self.n))')} and s.down[j] < 2)",
        f"s.down[j] += {d.number('1')}",
    )
    d.action("declare", "", f"require({d.guard('all(s.up[i] for i in range(self.n))')})", "s.all_up = True")
    d.invariant("declared", d.claim("not s.all_up or all(s.up[i] for i in range(self.n))"))
    d.invariant("apart", "all(not s.up[i] or s.down[j] <= 1 for i in range(self.n) for j in range(self.m))")
    d.invariant("two", d.claim("all(s.down[j] <= 2 for j in range(self.m))"))
    d.invariant(
        "either",
        d.claim("not s.all_up or all(any(s.up[k] or s.down[j] > 0 for k in range(self.n)) for j in range(self.m))"),
    )
    d.invariant("sums", d.claim("sum(s.down[j] for j in range(self.m)) <= 2 * self.m"))
    d.invariant(
        "shadow",
        "all(all(s.down[i] >= 0 for i in range(self.m)) and not (s.all_up and not s.up[i]) for i in range(self.n))",
    )
    d.step("stays", d.claim("all(t.up[i] or not s.up[i] for i in range(self.n))"))


def chosen(d: Draft) -> None:
    """A rule picks one of a few numbers, a variant picks others."""
    d.parameter("n", 4, 3)
    d.state += ["x = Range(0, self.n)", "a = Array(4, Range(0, self.n))", "k = Range(0, 3)"]
    d.action("pick", "", "k = choose(range(3))", f"require({d.guard('s.x + k <= self.n')})", "s.x += k")
    d.action("reset", "", f"require({d.guard('s.x == self.n')})", "s.x = 0", "s.k = choose(range(4))")
    d.action("put", "i=4", f"require({d.guard('s.a[i] < s.x')})", f"s.a[i] += {d.number('1')}")
    deep = "s.k"
    for at in range(d.chance.randrange(18, 24)):
        deep = f"(({deep} + {at % 3}) % 4)"
    other = deep.replace("(s.k + 0)", f"(s.k + {d.chance.choice([0, 1, 4])})", 1)
    d.invariant("bounded", d.claim("s.x <= self.n"))
    d.invariant("few", d.claim("all(s.a[i] <= self.n for i in range(4))"))
    d.invariant("deep", f"s.a[{deep}] == s.a[{other}]")
    d.invariant("deep_too", d.claim(f"s.a[{deep}] <= self.n"))
    d.invariant("total", d.claim("sum(s.a) <= 4 * self.n"))
    d.invariant("most", d.claim("max(s.a[0], s.a[1]) <= self.n"))
    d.varied = f"@action\ndef reset(self, s):\n    require({d.guard('s.x >= 1')})\n    s.x -= 1\n"


def chain(d: Draft) -> None:
    """A claim that needs a lemma, and helpers with early returns."""
    d.parameter("n", 3, 1)
    d.parameter("k", 1, 1)
    d.state += [
        "sent = Range(0, self.n)",
        "got = Range(0, self.n)",
        "acked = Range(0, self.n)",
        "late = Array(self.k, Range(0, self.n))",
    ]
    d.members.append(
        "def window(self, x, y):\n    if x < y:\n        return 0\n"
        "    for z in (x, y):\n        if z < 0:\n            return 1\n    return x - y\n"
    )
    d.action("send", "", f"require({d.guard('s.sent < self.n')})", "s.sent += 1")
    d.action("get", "", f"require({d.guard('self.window(s.sent, s.got) > 0')})", f"s.got += {d.number('1')}")
    d.action("ack", "", f"require({d.guard('s.acked < s.got')})", "s.acked += 1")
    d.action("note", "i='k'", f"require({d.guard('s.late[i] <= s.acked')})", "s.late[i] = s.acked")
    d.invariant("got_sent", d.claim("s.got <= s.sent"), kind="lemma")
    d.invariant("acked_sent", d.claim("s.acked <= s.sent"))
    d.invariant("noted", d.claim("all(s.late[i] <= s.acked for i in range(self.k))"))
    d.invariant("window_small", d.claim("self.window(s.sent, s.acked) <= self.n"))
    d.invariant("any_late", "any(s.late[i] <= s.sent for i in range(self.k))")
    d.step("monotone", d.claim("s.acked <= t.acked and all(s.late[i] <= t.late[i] for i in range(self.k))"))


def neighbours(d: Draft) -> None:
    """Values handed from one index to the next, with other and constant indices in sums."""
    d.parameter("n", 3, 2)
    d.parameter("cap", 1, 0)
    d.state += [
        "x = Array(range(self.n), Range(0, self.cap))",
        "seen = Range(0, self.cap)",
        "done = Array(range(self.n), Bool())",
    ]
    d.action("put", "", f"require({d.guard('s.x[0] < self.cap')})", "s.x[0] += 1")
    d.action("hand", "i='n'", f"require(i < {d.number('self.n - 1')} and s.x[i] > s.x[i + 1])", "s.x[i + 1] += 1")
    d.action("see", "", f"require({d.guard('s.x[self.n - 1] > s.seen')})", "s.seen += 1")
    d.action("finish", "i='n'", f"require({d.guard('s.x[i] == self.cap')})", "s.done[i] = True")
    d.invariant("falling", d.claim("all(s.x[i] >= s.x[i + 1] for i in range(self.n - 1))"))
    d.invariant("seen_last", d.claim("s.seen <= s.x[self.n - 1]"))
    d.invariant("done_full", d.claim("all(not s.done[i] or s.x[i] == self.cap for i in range(self.n))"))
    d.invariant("first_most", d.claim("all(s.x[i] <= s.x[0] for i in range(self.n))"))
    d.invariant("weighted", d.claim("sum(s.x[0] for i in range(self.n)) <= self.n * self.cap"))
    d.invariant("all_small", "sum(s.x[i] for i in range(1, self.n)) <= (self.n - 1) * self.cap")
    d.step("growing", d.claim("all(t.x[i] >= s.x[i] for i in range(self.n))"))


def witnesses(d: Draft) -> None:
    """Claims with alternating quantifiers, names used again at other depths, sums under quantifiers."""
    d.parameter("n", 2, 1)
    d.parameter("m", 1, 1)
    d.state += ["a = Array(self.n, Bool())", "e = Array(self.n, Enum('P', 'Q', 'R'))", "z = Array(self.m, Range(0, 3))"]
    d.action("next_e", "i='n'", f"require({d.guard('s.e[i] == ' + repr('P'))})", "s.e[i] = 'Q'", "s.a[i] = True")
    d.action("last_e", "i='n'", f"require(s.e[i] == 'Q' and {d.guard('s.a[i]')})", "s.e[i] = 'R'")
    d.action(
        "add",
        "j='m'",
        f"require({d.guard('s.z[j] < 3')} and any(s.a[i] for i in range(self.n)))",
        f"s.z[j] += {d.number('1')}",
    )
    d.invariant("active", d.claim("all(s.e[i] == 'P' or s.a[i] for i in range(self.n))"))
    d.invariant("caused", d.claim("all(s.z[j] == 0 or any(s.a[i] for i in range(self.n)) for j in range(self.m))"))
    d.invariant(
        "again", "all(any(s.z[i] <= 3 for i in range(self.m)) and (s.e[i] != 'R' or s.a[i]) for i in range(self.n))"
    )
    d.invariant(
        "three",
        d.claim(
            "all(all(any(s.z[k] <= s.z[j] for k in range(self.m)) for j in range(self.m)) or s.a[i] for i in range(self.n))"
        ),
    )
    d.invariant(
        "sum_under", d.claim("all(s.a[i] or sum(s.z[j] for j in range(self.m)) <= 3 * self.m for i in range(self.n))")
    )
    d.invariant("counting", "sum(1 for i in range(self.n) if s.a[i]) <= self.n")
    d.invariant("ranged", "all(all(s.a[j] or s.e[j] == 'P' for j in range(self.n) if j != i) for i in range(self.n))")
    d.step("kept", d.claim("all(t.a[i] or not s.a[i] for i in range(self.n))"))


def fixed_lengths(d: Draft) -> None:
    """Sums whose range is free over arrays whose length is not, beside arrays of any length."""
    most = d.chance.choice([2, 3, 4])
    late = d.chance.choice([1, 2, 3])
    d.parameter("n", 1, 1, most)
    d.state += [
        f"f = Array({most}, Range(0, 3))",
        "g = Array(self.n, Range(0, 3))",
        f"h = Array({most}, Record(q=Range(0, 3), on=Bool()))",
        f"clock = Range(0, {late})",
    ]
    at = d.chance.choice(["0", str(most - 1), "self.n - 1"])
    d.action("tick", "", f"require(s.clock < {late})", "s.clock += 1")
    d.action("one", "", f"require(s.clock == {late} and {d.guard(f's.f[{at}] < 3')})", f"s.f[{at}] += 1")
    d.action("each", "i='n'", f"require({d.guard('s.f[i] > 0 and s.g[i] < 3')})", "s.f[i] -= 1", "s.g[i] += 1")
    d.action("other", f"i={most}", f"require({d.guard('s.h[i].q < 3')})", f"s.h[i].q += {d.number('1')}")
    if d.chance.random() < 0.5:
        d.action("clear", "", f"require(s.clock == {late})", f"s.f = {[0] * most}")
    if d.chance.random() < 0.5:
        d.action("set_on", "i='n'", "s.h[i].on = True")
    d.step("f_same", "sum(t.f[i] for i in range(self.n)) == sum(s.f[i] for i in range(self.n))")
    d.step("f_up", d.claim("sum(t.f[i] for i in range(self.n)) <= sum(s.f[i] for i in range(self.n)) + 1"))
    d.step("g_up", d.claim("sum(t.g[i] for i in range(self.n)) >= sum(s.g[i] for i in range(self.n))"))
    d.step("h_up", d.claim("sum(t.h[i].q for i in range(self.n)) <= sum(s.h[i].q for i in range(self.n)) + 1"))
    d.step(
        "both",
        "sum(t.f[i] + t.g[i] for i in range(self.n)) == sum(s.f[i] + s.g[i] for i in range(self.n)) or t.f[0] != s.f[0]",
    )
    on = "sum({0}.h[i].q if {0}.h[i].on else 0 for i in range(self.n))"
    d.step("where_on", f"{on.format('t')} == {on.format('s')}")
    d.step("pairs", "sum(t.f[i] * t.g[i] for i in range(self.n)) == sum(s.f[i] * s.g[i] for i in range(self.n))")
    d.invariant("none_at_first", "sum(s.f[i] for i in range(self.n)) + sum(s.g[i] for i in range(self.n)) == 0")
    d.invariant("few", d.claim("sum(s.f[i] for i in range(self.n)) <= 3 * self.n"))
    d.invariant("clocked", d.claim(f"s.clock == {late} or sum(s.f[i] for i in range(self.n)) == 0"))
    d.invariant("quiet", "sum(s.h[i].q for i in range(self.n)) <= 3 * self.n")


def domains(d: Draft) -> None:
    """Rules with an index that they do not read, from ranges that become empty as a parameter grows."""
    d.parameter("n", 1, 0)
    d.parameter("m", 1, 0)
    first, second = d.chance.choice([2, 3, 5]), d.chance.choice([1, 4, 6])
    free = d.chance.choice(
        [f"{first} - self.n", f"2 * {first} - self.n - self.m", "self.n - self.m", f"{first} + self.n"]
    )
    d.members.append(f"def some(self):\n    return range({free})\n")
    d.members.append(f"def others(self):\n    return range(self.n, {second})\n")
    d.deadlock = True
    d.state += ["x = Range(0, 3)", "y = Range(0, 2)", "over = Bool()"]
    d.action("up", "i=some", f"require({d.guard('s.x < 3')})", f"s.x += {d.number('1')}")
    d.action("down", "j=others", f"require({d.guard('s.x > 0')})", "s.x -= 1")
    if d.chance.random() < 0.5:
        d.action("both", "i=some, j=others", f"require({d.guard('s.y < 2')})", "s.y += 1")
    else:
        d.action("read", "i=some", "require(s.y < 2 and s.y == i)", "s.y += 1")
    if d.chance.random() < 0.4:
        d.action("back", "", "require(s.x == 3)", "s.x = 0")
    if d.chance.random() < 0.4:
        d.invariant("ends", "s.x == 3", kind="terminal")
    d.invariant("bounded", d.claim("s.x <= 3"))
    d.invariant("never", "s.x == 0")
    d.invariant("nobody", f"s.x == 0 or {free} > 0")
    d.invariant("idle", "s.y == 0")
    d.invariant("some_index", f"any(i >= 0 for i in range({free})) or s.x == 0")
    d.invariant("as_many", f"sum(1 for i in range({free})) <= max(0, {free})")
    d.step("small_steps", d.claim("t.x <= s.x + 1"))
    d.step("moves", "t.x != s.x or t.y != s.y")


FAMILIES: tuple[Callable[[Draft], None], ...] = (
    transfers, token, credits, phases, leader, begun, shifted, grids, chosen, chain, neighbours, witnesses,
    fixed_lengths, domains,
)  # fmt: skip
