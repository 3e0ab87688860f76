"""The code of a system: the successor function and the evaluation of conditions, as LLVM modules in text form.

``expand(states, n, number, out, actions, ends, facts)`` writes the successors of `n` packed states, numbered from `number`:
their words to `out`, the instance of each to `actions` (16 bits), and after each state the total number of successors to
`ends` (32 bits). It returns the number of expanded states. `facts` is a block of words (`StepCounters`) for counters and
hits. At an evaluation error of the model it stops, with the successors found before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from streamproof.base.errors import TooLarge
from streamproof.base.records import dataclass
from streamproof.explicit.compiled.packed_states import Emitter, Layout
from streamproof.explicit.successors import PendingRule, Rule, grouped, rules_of
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Property, System

NONE = (1 << 64) - 1
"""Value of a counter without a hit."""
FAR_AHEAD = 96
"""Prefetch distance in the log, in words."""
MOST_INSTANCES = 1 << 16
"""Limit on the number of instances: they are stored in 16 bits."""
CHEAP = 10
"""Number of instructions up to which code is executed unconditionally: a mispredicted branch costs more."""


@dataclass(frozen=True, slots=True)
class StepCounters:
    """Layout of the block `facts`: four totals, the generated successors per instance, and the hits of step properties.

    A hit takes four words: state and instance of the first step that breaks the property, and state and instance of the first
    step where evaluating it fails.
    """

    instances: int
    steps: int

    LEAST, MOST, STUCK, FAULTY = 0, 1, 2, 3

    def generated(self, instance: int) -> int:
        """Position of the number of successors of an instance."""
        return 4 + instance

    def hit(self, step: int) -> int:
        """Position of the hit of step property number `step`."""
        return 4 + self.instances + 4 * step

    @property
    def size(self) -> int:
        """Number of words of the block."""
        return self.hit(self.steps)

    def merged(self, blocks: Sequence[Sequence[int]]) -> list[int]:
        """The merged block of several workers; the first hit is the one with the smallest state number."""
        totals = [sum(counts) for counts in zip(*(block[4 : self.hit(0)] for block in blocks), strict=True)]
        least, stuck, faulty = (min(block[at] for block in blocks) for at in (self.LEAST, self.STUCK, self.FAULTY))
        hits: list[int] = []
        for at in range(self.hit(0), self.size, 2):
            state, instance = min((block[at], block[at + 1]) for block in blocks)
            hits += [state, instance]
        return [least, max(block[self.MOST] for block in blocks), stuck, faulty, *totals, *hits]

    def fresh(self) -> list[int]:
        """The initial block."""
        return [NONE, 0, NONE, NONE, *[0] * self.instances, *[NONE] * (4 * self.steps)]


def module(*functions: str) -> str:
    """A module of functions from the other generators here."""
    return "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n" + "".join(functions)


def expand_code(
    system: System, layout: Layout, steps: Sequence[tuple[int, Property]], *, idle_steps: bool = False
) -> str:
    """The successor function; it also checks the step properties, numbered by position in `steps`.

    Self-loops are counted; they are written to `out` only with `idle_steps`.
    """
    if len(system.instances) > MOST_INSTANCES:
        raise TooLarge(
            f"{system.name} has {len(system.instances)} instances of actions", remedy="compiled code supports 65,536"
        )
    return _Expand(system, layout, steps, idle_steps).text()


class _Expand:
    def __init__(self, system: System, layout: Layout, steps: Sequence[tuple[int, Property]], idle_steps: bool) -> None:
        numbered = [(at, prop) for at, (_, prop) in enumerate(steps)]
        self._system = system
        self._layout = layout
        self._rules = [rule for rule in rules_of(system, numbered) if b.FALSE not in rule.guard]
        self._facts = StepCounters(len(system.instances), len(steps))
        self._emit = Emitter(layout)
        self._idle_steps = idle_steps

    def text(self) -> str:
        """The function."""
        out = self._emit
        for name in ("states", "out", "actions", "ends", "facts"):
            out.line(f"%{name}.p = inttoptr i64 %{name} to ptr")
        out.line("%least.p = getelementptr i64, ptr %facts.p, i64 0")
        out.line("%most.p = getelementptr i64, ptr %facts.p, i64 1")
        out.line("br label %state")
        out.begin("state")
        out.line("%at = phi i64 [0, %entry], [%at.next, %next]")
        out.line("%start = phi i64 [0, %entry], [%pos.next, %next]")
        _read(out, self._layout.words)
        faults = b.or_(check.condition for i in self._system.instances for check in i.guard_checks)
        if faults is not b.FALSE:
            self._fail_if(faults, "%start")
        pos, idle = self._group([(rule, rule.guard) for rule in self._rules], "%start", "0")
        self._finish(pos, idle)
        places = ", ".join(f"i64 %{name}" for name in ("states", "n", "number", "out", "actions", "ends", "facts"))
        head = f"define i64 @expand({places}) nounwind {{\nentry:\n"
        return head + "\n".join(out.lines) + "\n}\n"

    def _group(self, rules: Sequence[PendingRule], pos: str, idle: str) -> tuple[str, str]:
        """Code of the rules in order; adjacent rules with the same leading conjunct share one test of it."""
        for first, inner in grouped(rules):
            if first is None:
                pos, idle = self._rule(*inner[0], pos, idle)
            else:
                pos, idle = self._when((first,), pos, idle, lambda p, i, inner=inner: self._group(inner, p, i))
        return pos, idle

    def _when(self, conditions: Sequence[Expr], pos: str, idle: str, inside) -> tuple[str, str]:  # type: ignore[no-untyped-def]
        """Code that runs if all of `conditions` are true; cheap ones are tested together."""
        out = self._emit
        tested: list[str] = []
        spent = 0
        for k, condition in enumerate(conditions):
            cost = out.cost(condition)
            if tested and spent + cost > CHEAP:
                rest = conditions[k:]
                return self._branch(tested, pos, idle, lambda p, i, rest=rest: self._when(rest, p, i, inside))
            spent += cost
            tested.append(out.term(condition))
        return self._branch(tested, pos, idle, inside) if tested else inside(pos, idle)

    def _branch(self, tested: Sequence[str], pos: str, idle: str, inside) -> tuple[str, str]:  # type: ignore[no-untyped-def]
        out = self._emit
        condition = tested[0]
        for other in tested[1:]:
            condition = out.new(f"and i1 {condition}, {other}")
        yes, after = out.label("yes"), out.label("after")
        out.line(f"br i1 {condition}, label %{yes}, label %{after}")
        before = out.block
        out.begin(yes)
        with out.scope():
            inner_pos, inner_idle = inside(pos, idle)
        last = out.block
        out.line(f"br label %{after}")
        out.begin(after)
        pos = out.new(f"phi i64 [{pos}, %{before}], [{inner_pos}, %{last}]") if inner_pos != pos else pos
        idle = out.new(f"phi i64 [{idle}, %{before}], [{inner_idle}, %{last}]") if inner_idle != idle else idle
        return pos, idle

    def _rule(self, rule: Rule, guard: tuple[Expr, ...], pos: str, idle: str) -> tuple[str, str]:
        """Code of one instance. Cheap effects are computed unconditionally."""
        out = self._emit
        changed = [(v, t) for v, t in zip(self._system.variables, rule.after, strict=True) if not _same(v.name, t)]
        plain = rule.changes and rule.faults is b.FALSE and not rule.steps
        if plain and out.cost(*rule.guard, *(t for _, t in changed)) <= CHEAP:
            with out.scope():
                enabled = "true"
                for condition in guard:
                    term = out.term(condition)
                    enabled = term if enabled == "true" else out.new(f"and i1 {enabled}, {term}")
                self._store(rule, pos)
                one = out.new(f"zext i1 {enabled} to i64")
                self._count(rule, one)
                return out.new(f"add i64 {pos}, {one}"), idle
        return self._when(guard, pos, idle, lambda p, i: self._effect(rule, p, i))

    def _effect(self, rule: Rule, pos: str, idle: str) -> tuple[str, str]:
        out = self._emit
        if rule.faults is not b.FALSE:
            self._fail_if(rule.faults, pos)
        for k, mistake, broken in rule.steps:
            self._check_step(rule, k, mistake, broken)
        self._count(rule, "1")
        if not rule.changes and not self._idle_steps:
            return pos, out.new(f"add i64 {idle}, 1")
        self._store(rule, pos)
        return out.new(f"add i64 {pos}, 1"), idle

    def _store(self, rule: Rule, pos: str) -> None:
        """Write the successor and its instance at position `pos`."""
        out, words = self._emit, self._layout.words
        base = out.new(f"mul i64 {pos}, {words}") if words > 1 else pos
        for word, value in enumerate(self._successor(rule)):
            place = out.new(
                f"getelementptr i64, ptr %out.p, i64 {out.new(f'add i64 {base}, {word}') if word else base}"
            )
            out.line(f"store i64 {value}, ptr {place}")
        place = out.new(f"getelementptr i16, ptr %actions.p, i64 {pos}")
        out.line(f"store i16 {rule.number - (rule.number >> 15 << 16)}, ptr {place}")

    def _successor(self, rule: Rule) -> list[str]:
        """The words of the successor: fields are replaced, flipped, or changed by adding to the whole word."""
        out = self._emit
        clear, put, flip, move = ([0] * self._layout.words for _ in range(4))
        parts: list[list[str]] = [[] for _ in range(self._layout.words)]
        for variable, term in zip(self._system.variables, rule.after, strict=True):
            field = self._layout.fields[variable.name]
            if _same(variable.name, term) or not field.bits:
                continue
            word = field.word
            distance = _distance(variable.name, term)
            if distance is not None:
                move[word] += distance << field.shift
            elif isinstance(term, e.Not) and _same(variable.name, term.arg):
                flip[word] |= field.mask
            elif isinstance(term, e.Const):
                clear[word] |= field.mask
                put[word] |= field.code(term.value) << field.shift
            else:
                clear[word] |= field.mask
                code = out.code(term, field.low)
                parts[word].append(out.new(f"shl i64 {code}, {field.shift}") if field.shift else code)
        result = []
        for word, value in enumerate(out.current):
            if clear[word]:
                value = out.new(f"and i64 {value}, {_signed(~clear[word])}")
            for part in parts[word]:
                value = out.new(f"or i64 {value}, {part}")
            for sign, number in (("or", put[word]), ("xor", flip[word]), ("add", move[word])):
                if number:
                    value = out.new(f"{sign} i64 {value}, {_signed(number)}")
            result.append(value)
        return result

    def _count(self, rule: Rule, one: str) -> None:
        out = self._emit
        place = out.new(f"getelementptr i64, ptr %facts.p, i64 {self._facts.generated(rule.number)}")
        have = out.new(f"load i64, ptr {place}")
        out.line(f"store i64 {out.new(f'add i64 {have}, {one}')}, ptr {place}")

    def _fail_if(self, faults: Expr, pos: str) -> None:
        """Return if the state has an evaluation error of the model."""
        out = self._emit
        fail, fine = out.label("fail"), out.label("fine")
        out.line(f"br i1 {out.term(faults)}, label %{fail}, label %{fine}")
        out.begin(fail)
        number = out.new("add i64 %number, %at")
        self._put(StepCounters.FAULTY, number)
        place = out.new("getelementptr i32, ptr %ends.p, i64 %at")
        out.line(f"store i32 {out.new(f'trunc i64 {pos} to i32')}, ptr {place}")
        out.line(f"ret i64 {out.new('add i64 %at, 1')}")
        out.begin(fine)

    def _check_step(self, rule: Rule, step: int, mistake: Expr, broken: Expr) -> None:
        """Record the first step that breaks a step property, and the first where evaluating it fails."""
        at = self._facts.hit(step)
        wrong = self._emit.term(mistake)
        lost = self._emit.new(f"and i1 {self._emit.term(broken)}, {self._emit.new(f'xor i1 {wrong}, true')}")
        self._note(lost, at, rule.number)
        self._note(wrong, at + 2, rule.number)

    def _note(self, condition: str, at: int, instance: int) -> None:
        with _first(self._emit, condition, "%facts.p", at):
            self._put(at, self._emit.new("add i64 %number, %at"))
            self._put(at + 1, str(instance))

    def _put(self, at: int, value: str) -> None:
        out = self._emit
        out.line(f"store i64 {value}, ptr {out.new(f'getelementptr i64, ptr %facts.p, i64 {at}')}")

    def _finish(self, pos: str, idle: str) -> None:
        """After the last instance: the number of successors of the state, and whether it is a deadlock."""
        out = self._emit
        place = out.new("getelementptr i32, ptr %ends.p, i64 %at")
        out.line(f"store i32 {out.new(f'trunc i64 {pos} to i32')}, ptr {place}")
        degree = out.new(f"sub i64 {pos}, %start")
        if idle != "0":
            degree = out.new(f"add i64 {degree}, {idle}")
        for name, sign in (("least", "umin"), ("most", "umax")):
            have = out.new(f"load i64, ptr %{name}.p")
            relation = out.new(f"icmp {'ult' if sign == 'umin' else 'ugt'} i64 {degree}, {have}")
            out.line(f"store i64 {out.new(f'select i1 {relation}, i64 {degree}, i64 {have}')}, ptr %{name}.p")
        none = out.label("none")
        out.line(f"br i1 {out.new(f'icmp eq i64 {degree}, 0')}, label %{none}, label %next")
        out.begin(none)
        with out.scope():
            terminal = self._system.terminal
            allowed = out.term(b.FALSE if terminal is None else terminal)
        with _first(out, out.new(f"xor i1 {allowed}, true"), "%facts.p", StepCounters.STUCK):
            self._put(StepCounters.STUCK, out.new("add i64 %number, %at"))
        out.line("br label %next")
        out.begin("next")
        out.line(f"%pos.next = add i64 {pos}, 0")
        out.line("%at.next = add i64 %at, 1")
        out.line("br i1 " + out.new("icmp ult i64 %at.next, %n") + ", label %state, label %done")
        out.begin("done")
        out.line("ret i64 %n")


def conditions_code(layout: Layout, conditions: Sequence[Expr]) -> str:
    """``judge(states, n, out)`` writes the truth values of all conditions, state by state, one byte each."""
    return over_states(layout, conditions, "judge", _write_bytes)


def count_code(layout: Layout, conditions: Sequence[Expr]) -> str:
    """``count(states, n, out)`` adds to a word per condition the number of states in which it is true."""
    return over_states(layout, conditions, "count", _add_one)


def watch_code(layout: Layout, watches: Sequence[tuple[Expr, Expr]]) -> str:
    """``watch(states, n, out)`` records, for each pair of an evaluation error and a condition, where they are first true.

    A record takes two words: the position of the first state where only the condition is true, and of the first state where
    the evaluation error is true; both are initially `NONE`.
    """
    return over_states(layout, watches, "watch", _note_first)


def over_states(layout, items, name, write) -> str:  # type: ignore[no-untyped-def]
    """A function of packed states; ``write(out, k, item, count)`` writes the code of an item for one state."""
    out = Emitter(layout)
    out.line("%states.p = inttoptr i64 %states to ptr")
    out.line("%out.p = inttoptr i64 %out to ptr")
    out.line("br label %state")
    out.begin("state")
    out.line("%at = phi i64 [0, %entry], [%at.next, %next]")
    _read(out, layout.words)
    for k, item in enumerate(items):
        write(out, k, item, len(items))
    out.line("br label %next")
    out.begin("next")
    out.line("%at.next = add i64 %at, 1")
    out.line("br i1 " + out.new("icmp ult i64 %at.next, %n") + ", label %state, label %done")
    out.begin("done")
    out.line("ret i64 %n")
    return f"define i64 @{name}(i64 %states, i64 %n, i64 %out) nounwind {{\nentry:\n" + "\n".join(out.lines) + "\n}\n"


def _read(out: Emitter, words: int) -> None:
    """Load state number ``%at`` at ``%states.p``, and prefetch a later one: the hardware prefetcher is late."""
    base = out.new(f"mul i64 %at, {words}") if words > 1 else "%at"
    far = out.new(f"getelementptr i64, ptr %states.p, i64 {out.new(f'add i64 {base}, {FAR_AHEAD}')}")
    out.line(f"call void @llvm.prefetch.p0(ptr {far}, i32 0, i32 3, i32 1)")
    names = []
    for word in range(words):
        place = out.new(f"getelementptr i64, ptr %states.p, i64 {out.new(f'add i64 {base}, {word}') if word else base}")
        names.append(out.new(f"load i64, ptr {place}"))
    out.words(names)


def _write_bytes(out: Emitter, k: int, condition: Expr, many: int) -> None:
    value = out.new(f"zext i1 {out.term(condition)} to i8")
    at = out.new(f"add i64 {out.new(f'mul i64 %at, {many}')}, {k}")
    out.line(f"store i8 {value}, ptr {out.new(f'getelementptr i8, ptr %out.p, i64 {at}')}")


def _add_one(out: Emitter, k: int, condition: Expr, many: int) -> None:
    place = out.new(f"getelementptr i64, ptr %out.p, i64 {k}")
    one = out.new(f"zext i1 {out.term(condition)} to i64")
    have = out.new(f"load i64, ptr {place}")
    out.line(f"store i64 {out.new(f'add i64 {one}, {have}')}, ptr {place}")


def _note_first(out: Emitter, k: int, pair: tuple[Expr, Expr], many: int) -> None:
    wrong, wanted = (out.term(term) for term in pair)
    fair = out.new(f"and i1 {wanted}, {out.new(f'xor i1 {wrong}, true')}")
    for at, condition in ((2 * k, fair), (2 * k + 1, wrong)):
        with _first(out, condition, "%out.p", at) as place:
            out.line(f"store i64 %at, ptr {place}")


@contextmanager
def _first(out: Emitter, condition: str, block: str, at: int) -> Iterator[str]:
    """Inside, code that runs if a condition is true and word `at` of a block has no hit yet; yields the place of the word."""
    hit, note, fine = out.label("hit"), out.label("note"), out.label("fine")
    out.line(f"br i1 {condition}, label %{hit}, label %{fine}")
    out.begin(hit)
    place = out.new(f"getelementptr i64, ptr {block}, i64 {at}")
    have = out.new(f"load i64, ptr {place}")
    out.line(f"br i1 {out.new(f'icmp eq i64 {have}, -1')}, label %{note}, label %{fine}")
    out.begin(note)
    yield place
    out.line(f"br label %{fine}")
    out.begin(fine)


def _same(name: str, term: Expr) -> bool:
    return isinstance(term, e.Var) and term.name == name


def _distance(name: str, term: Expr) -> int | None:
    """The constant `k` if `term` is the variable `name` plus `k`; else None."""
    match term:
        case e.Add(left=e.Var(name=n), right=e.Const(value=k)) | e.Add(left=e.Const(value=k), right=e.Var(name=n)) if (
            n == name
        ):
            return int(k)
        case e.Sub(left=e.Var(name=n), right=e.Const(value=k)) if n == name:
            return -int(k)
        case _:
            return None


def _signed(number: int) -> int:
    """The signed 64-bit integer with the same bits."""
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >> 63 else number
