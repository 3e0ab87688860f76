"""The verifier: accepts a certificate, or rejects it with the first thing that is wrong. A program of its own, kept small.

It shares nothing with the engines: it trusts `streamproof.system`, chiefly the interpreter (for proofs by induction also what
is in `verifier_induction`, and Z3). The caller gives the system of the model that the certificate names, and it must have the
fingerprint stated there; so a verdict on that system is certified, not the lowering that made it of the model.

A certificate is a line ``streamproof certificate 1 SHA256``; a line of JSON, the header: which system, what is claimed;
then, compressed, a line of JSON with the evidence, and numbers in binary. How each claim is checked:

* the *closed set*: exactly the initial states are on level 1, every step from a state of the set leads into the set and at
  most one level on, and every other state is reached from the level before. So it is the set of reachable states, with
  its levels; counts are counted again. Invariants, steps, deadlocks and what is not reachable are decided on it.
* a *behaviour* is replayed; at its end the claim shows.
* *termination*: each state has a number, and every step leads to a smaller one.
* *temporal properties*: see `Verifier.temporal`.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import accumulate, product
from operator import or_
from typing import Any, NoReturn, TypeAlias

from streamproof.system.errors import EvaluationError, Exit, StreamproofError
from streamproof.system.fingerprint import fingerprint
from streamproof.system.formula import AndF, Atom, Formula, NotF, Until
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Fairness, Instance, Kind, Property, State, System
from streamproof.system.reference_temporal import plain, untils
from streamproof.system.sorts import ArraySort, OptionSort, QueueSort, RecordSort, SetSort, Sort, Value, contains, show
from streamproof.system.temporal import fairness_of, obligations, true_of
from streamproof.system.verdict import Trace, Verdict

MAGIC = b"streamproof certificate 1 "
HEADER, COUNTS = {"model", "options", "fingerprint", "claims", "counts"}, {"distinct", "generated", "depth", "levels"}
EVIDENCE = {"values", "traces", "ranks", "proofs"}
Node: TypeAlias = tuple[int, int]
"""A state of the closed set, and a guess: bit k says that the k-th *until* is true from here on."""


class Rejected(StreamproofError):
    """A certificate that does not show what it claims."""

    exit_code = Exit.REJECTED


def reject(why: str) -> NoReturn:
    """Raise `Rejected`."""
    raise Rejected(f"the certificate is rejected: {why}")


def parse(data: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Header, evidence and numbers of a certificate. Raises `Rejected`."""
    first, _, rest = data.partition(b"\n")
    if not first.startswith(MAGIC):
        reject("it does not begin as a certificate of this version does")
    if first[len(MAGIC) :] != hashlib.sha256(rest).hexdigest().encode():
        reject("its checksum is another one: it was changed, or is incomplete")
    head, _, packed = rest.partition(b"\n")
    unpacking = zlib.decompressobj()
    evidence, _, numbers = (unpacking.decompress(packed) + unpacking.flush()).partition(b"\n")
    header, proof = json.loads(head), json.loads(evidence)
    if not unpacking.eof or unpacking.unused_data or set(header) != HEADER or set(proof) != EVIDENCE:
        reject("its parts are not those of a certificate")
    return header, proof, numbers


def verify(data: bytes, system_of: Callable[[Any], System], tell: Callable[[str], None]) -> dict[str, Any]:
    """The header of a certificate whose claims are all shown, of the system that it names. Raises `Rejected`."""
    try:
        header, evidence, numbers = parse(data)
        system = system_of(header)
        if fingerprint(system) != header["fingerprint"]:
            reject(f"it is of another {system.name} than this one: the model or its parameters have changed")
        Verifier(system, header, evidence, numbers, tell).run()
    except EvaluationError as mistake:
        reject(f"the model makes a mistake where it claims none: {mistake.message}")
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, zlib.error, RecursionError) as error:
        reject(f"it is malformed ({type(error).__name__}: {error})")
    return header


def value_of(sort: Sort, data: Any) -> Value:
    """The value of `sort` that JSON data stands for: what has parts is a list of them."""
    match sort:
        case RecordSort(fields):
            return tuple(value_of(s, part) for (_, s), part in zip(fields, data, strict=True))
        case ArraySort(_, element) | QueueSort(element, _):
            return tuple(value_of(element, part) for part in data)
        case OptionSort(element):
            return None if data is None else value_of(element, data)
        case SetSort(element):
            return frozenset(value_of(element, part) for part in data)
        case _:
            return data


class Verifier:
    """One certificate under examination."""

    def __init__(self, system: System, header: Any, evidence: Any, numbers: bytes, tell: Callable[[str], None]) -> None:
        self.system, self.header, self.evidence, self.numbers, self.tell = system, header, evidence, numbers, tell
        self.interpreter = Interpreter(system)
        self.verdicts = {system.property(name): Verdict(said) for name, said in header["claims"].items()}
        self.states: list[State] = []
        self.ends: tuple[int, ...] = ()
        self.follow: list[dict[int, int]] = []
        """Per state, those that follow it, with the fair actions (as bits) that the step takes if it changes the state."""

    def run(self) -> None:
        """Check every claim. Raises `Rejected`."""
        traces, proofs = self.evidence["traces"], self.evidence["proofs"]
        shown = {*traces, *(name for proof in proofs for name in proof["claims"])}
        if not shown <= {prop.name for prop in self.verdicts}:
            reject("it has evidence for what it does not claim")
        self.covered = [prop for prop in self.verdicts if prop.name not in shown]
        for prop, verdict in self.verdicts.items():
            if prop.name in traces:
                self.behaviour(prop, verdict, self.replayed(prop.name, traces[prop.name]))
            elif verdict is not (Verdict.VIOLATED if prop.kind is Kind.REACHABLE else Verdict.HOLDS):
                reject(f"{prop.name} is said to be {verdict.value}, and nothing shows it")
        if self.header["counts"] is not None:
            self.closed_set(self.header["counts"])
        elif self.covered or self.numbers or self.evidence["values"]:
            reject("it claims what only all states show, without them")
        for prop in self.covered:
            if prop.kind is Kind.TERMINATION:
                self.termination(prop)
            elif prop.formula is not None:
                self.temporal(prop, prop.formula)
        if self.numbers or {*self.evidence["ranks"]} != {p.name for p in self.covered if p.formula is not None}:
            reject("it has numbers that nothing needs")
        for proof in proofs:
            from streamproof.certify.verifier_induction import Induction  # Z3 takes long to load

            self.tell("checking the induction")
            claimed = {p: v for p, v in self.verdicts.items() if p.name in proof["claims"]}
            Induction(self.system, claimed, proof, reject).run()

    def shown(self, state: State) -> str:
        """A state as a message names it."""
        return ", ".join(f"{v.name} = {show(v.sort, value)}" for v, value in self.system.named(state))

    def take_numbers(self, count: int, bound: int) -> array[int]:
        """The next `count` numbers, none of which has to be `bound` or more."""
        code = "B" if bound <= 1 << 8 else "H" if bound <= 1 << 16 else "I"
        size = count * array(code).itemsize
        found, self.numbers = array(code, self.numbers[:size]), self.numbers[size:]
        if len(found) != count:
            reject("numbers are missing")
        return found

    def behaviour(self, prop: Property, verdict: Verdict, trace: Trace) -> None:
        """That a behaviour of the system shows the verdict."""
        last, interpreter = trace.states[-1], self.interpreter
        if verdict is Verdict.ERROR:
            try:
                for _ in interpreter.steps(last):
                    pass
                interpreter.holds(prop, *(trace.states[-2:] if prop.kind is Kind.STEP else (last,)))
            except EvaluationError:
                return
            reject(f"no mistake shows at the end of the behaviour for {prop.name}")
        if verdict is not (Verdict.HOLDS if prop.kind is Kind.REACHABLE else Verdict.VIOLATED):
            reject(f"a behaviour cannot show that {prop.name} is {verdict.value}")
        match prop.kind:
            case Kind.INVARIANT | Kind.REACHABLE:
                right = interpreter.holds(prop, last) is (prop.kind is Kind.REACHABLE)
            case Kind.STEP:
                right = len(trace) > 1 and not interpreter.holds(prop, *trace.states[-2:])
            case Kind.DEADLOCK:
                right = not interpreter.terminal(last) and not any(True for _ in interpreter.steps(last))
            case Kind.TERMINATION:
                right = trace.loop is not None and trace.loop < len(trace.steps)
            case _:
                assert prop.formula is not None
                right = not true_of(self.system, prop.formula, trace)
                for owed in fairness_of(self.system, trace):
                    if not owed.paid:
                        reject(f"the behaviour for {prop.name} is not fair to {owed.label}")
        if not right:
            reject(f"the behaviour for {prop.name} does not show that it is {verdict.value}")

    def replayed(self, name: str, data: Mapping[str, Any]) -> Trace:
        """The behaviour that `data` tells, from an initial state and step by step as the interpreter takes them."""
        sorts = [v.sort for v in self.system.variables]
        states = [tuple(map(value_of, sorts, row)) for row in data["states"]]
        loop, labels, steps = data["loop"], data["steps"], list[Instance]()
        if states[0] not in set(self.interpreter.initial_states()):
            reject(f"the behaviour for {name} does not begin in an initial state")
        if loop is not None and (type(loop) is not int or not 0 <= loop < len(states)):
            reject(f"the loop of the behaviour for {name} leads nowhere")
        ways = [*states, states[loop]] if loop is not None and len(labels) == len(states) else states
        for label, before, after in zip(labels, ways[:-1], ways[1:], strict=True):
            some = (i for i in self.system.instances if i.label == label)
            instance = next((i for i in some if self.interpreter.take(i, before) == after), None)
            if instance is None:
                reject(f"in the behaviour for {name}, {label} does not lead from step {len(steps)} to the next state")
            steps.append(instance)
        trace = Trace(tuple(states), tuple(steps), loop)
        if loop is not None and len(steps) < len(states) and not trace.stutters:
            reject(f"the loop of the behaviour for {name} is not closed")
        return trace

    def closed_set(self, counts: Mapping[str, Any]) -> None:
        """That the states are exactly the reachable ones, on their levels, and that the covered properties hold there."""
        levels, columns = counts["levels"], list[list[Value]]()
        if {*counts} != COUNTS or min(levels) < 1 or len(levels) != counts["depth"]:
            reject("its counts do not fit each other")
        for variable, data in zip(self.system.variables, self.evidence["values"], strict=True):
            table = [value_of(variable.sort, item) for item in data]
            if not all(contains(variable.sort, value) for value in table):
                reject(f"{variable.name} is given a value that its sort does not have")
            columns.append([table[k] for k in self.take_numbers(counts["distinct"], len(table))])
        self.states = list(zip(*columns, strict=True)) if columns else [()] * counts["distinct"]
        self.ends = tuple(accumulate(levels))
        position = {state: at for at, state in enumerate(self.states)}
        if not len(position) == len(self.states) == self.ends[-1]:
            reject("it lists a state twice, or other numbers of states than it claims")
        first = set(self.states[: self.ends[0]])
        for state in first ^ set(self.interpreter.initial_states()):
            reject(f"its first level is not the initial states: not both have {self.shown(state)}")
        generated = self.ends[0] + self.steps(position)
        if generated != counts["generated"]:
            reject(f"it claims {counts['generated']} generated states, there are {generated}")

    def steps(self, position: Mapping[State, int]) -> int:
        """How many steps there are between the states; none leaves them, none is missing between the levels."""
        owner = {n: 1 << at for at, one in enumerate(obligations(self.system)) for n in one.numbers}
        endless = any(p.kind in (Kind.TERMINATION, Kind.TEMPORAL) for p in self.covered)
        on_steps = [p for p in self.covered if p.kind is Kind.STEP]
        begun = bytearray(b"\x01" * self.ends[0] + b"\x00" * (len(self.states) - self.ends[0]))
        level, count = 0, 0
        for at, state in enumerate(self.states):
            if at == self.ends[level]:
                level += 1
            if at % 1000 == 0:
                self.tell(f"{at:,} of {len(self.states):,} states")
            followers: dict[int, int] = {}
            stuck = True
            for number, instance in enumerate(self.system.instances):
                after = self.interpreter.take(instance, state)
                if after is None:
                    continue
                stuck, count = False, count + 1
                to = position.get(after)
                if to is None:
                    reject(f"{instance.label} leads out of its states, from {self.shown(state)} to {self.shown(after)}")
                if level + 1 < len(self.ends) and to >= self.ends[level + 1]:
                    reject(f"a state is on a deeper level than {instance.label} reaches it: {self.shown(after)}")
                if to >= self.ends[level]:
                    begun[to] = 1
                followers[to] = followers.get(to, 0) | (owner.get(number, 0) if to != at else 0)
                for prop in on_steps:
                    if not self.interpreter.holds(prop, state, after):
                        reject(f"{prop.name} is false of {instance.label} from {self.shown(state)}")
            self.follow += [followers] if endless else []
            self.state(state, stuck)
        if not all(begun):
            reject(f"no step from the level before leads to {self.shown(self.states[begun.index(0)])}")
        return count

    def state(self, state: State, stuck: bool) -> None:
        """That the covered properties of single states hold in this one."""
        for prop in self.covered:
            match prop.kind:
                case Kind.DEADLOCK:
                    wrong = stuck and not self.interpreter.terminal(state)
                case Kind.INVARIANT | Kind.REACHABLE:
                    wrong = self.interpreter.holds(prop, state) is (prop.kind is Kind.REACHABLE)
                case _:  # of the others only the checks are meant here: a mistake is no verdict
                    wrong = prop.kind is Kind.TEMPORAL and not self.interpreter.holds(prop, state)
            if wrong:
                reject(f"{prop.name} is not {self.verdicts[prop].value}, as seen in {self.shown(state)}")

    def termination(self, prop: Property) -> None:
        """That every step leads to a state of a smaller rank."""
        rank = self.take_numbers(len(self.states), 1 << 32)
        for at, followers in enumerate(self.follow):
            if any(rank[to] >= rank[at] for to in followers):
                reject(f"the rank for {prop.name} does not fall from {self.shown(self.states[at])}")

    def temporal(self, prop: Property, formula: Formula) -> None:
        """That no fair behaviour makes a formula false, by the tableau of Lichtenstein and Pnueli, built here from scratch.

        A behaviour that does is a path of nodes, each a state with the true answers of every *until*, from one where the
        formula is false; the state of a step may stay the same. Ranks of nodes never rise along such paths, so a path
        stays, in the end, among nodes of one rank. Per rank the certificate says why none can: it has no edges inside; an
        *until* is promised there and never kept; an action to which weak fairness is owed is always enabled and never
        taken; or one to which strong fairness is owed is never taken, so that where it is enabled is left for good, and the
        other nodes of this rank have ranks of their own in the next table.
        """
        self.tell(f"checking the ranks for {prop.name}")
        search = Tableau(self, prop, plain(formula))
        tables = []
        for table in self.evidence["ranks"][prop.name]:
            ranks = {int(guess): self.take_numbers(len(self.states), 1 << 32) for guess in table["guesses"]}
            tables.append((ranks, {int(rank): tuple(why) for rank, why in table["reasons"].items()}))
        search.fruitless(search.reachable(), tables)


class Tableau:
    """The nodes of one temporal property, and what may follow what."""

    def __init__(self, verifier: Verifier, prop: Property, formula: Formula) -> None:
        self.verifier, self.prop, self.formula = verifier, prop, formula
        self.untils = tuple(dict.fromkeys(untils(formula)))
        self.owed = obligations(verifier.system)
        self.atoms: dict[tuple[int, Atom], bool] = {}
        self.known: dict[Node, bool] = {}

    def true(self, formula: Formula, node: Node) -> bool:
        """Whether a plain formula is true at a node, if the node's guesses are right."""
        match formula:
            case Atom(expr):
                if (key := (node[0], formula)) not in self.atoms:
                    self.atoms[key] = bool(self.verifier.interpreter.value(expr, self.verifier.states[node[0]]))
                return self.atoms[key]
            case NotF(arg):
                return not self.true(arg, node)
            case AndF(args):
                return all(self.true(arg, node) for arg in args)
            case Until():
                return bool(node[1] >> self.untils.index(formula) & 1)
            case _:
                reject(f"{self.prop.name} says what this verifier does not know: {formula}")

    def fits(self, node: Node) -> bool:
        """Whether what is true at a node does not refute its guesses."""
        if node not in self.known:
            bits = ((node[1] >> at & 1, until) for at, until in enumerate(self.untils))
            self.known[node] = all(
                now == self.true(until.right, node) or (now and self.true(until.left, node)) for now, until in bits
            )
        return self.known[node]

    def after(self, node: Node) -> Iterator[tuple[Node, int]]:
        """The nodes that may follow, with the fair actions that the step takes: guesses must follow from the next ones."""
        allowed: list[tuple[int, ...]] = []
        for at, until in enumerate(self.untils):
            free = self.true(until.right, node) or not self.true(until.left, node)
            allowed.append((0, 1 << at) if free else (node[1] & 1 << at,))
        for guess in map(sum, product(*allowed)):
            for to, takes in {node[0]: 0, **self.verifier.follow[node[0]]}.items():
                if self.fits((to, guess)):
                    yield (to, guess), takes

    def enabled(self, node: Node) -> int:
        """The fair actions, as bits, that can be taken and change the state."""
        return reduce(or_, self.verifier.follow[node[0]].values(), 0)

    def reachable(self) -> set[Node]:
        """The nodes on paths from initial states where the formula is false."""
        initial = product(range(self.verifier.ends[0]), range(1 << len(self.untils)))
        todo = [node for node in initial if self.fits(node) and not self.true(self.formula, node)]
        found = set(todo)
        while todo:
            fresh = {node for node, _ in self.after(todo.pop())} - found
            found |= fresh
            todo += fresh
        return found

    def fruitless(self, nodes: set[Node], tables: Sequence[tuple[Mapping[int, array[int]], Mapping[int, Any]]]) -> None:
        """That no fair behaviour that keeps its promises stays among `nodes`. Raises `Rejected`."""
        (ranks, reasons), left = tables[0], dict[int, set[Node]]()
        for node in nodes:
            rank = ranks[node[1]][node[0]]
            what, which = reasons.get(rank, ("passing", -1))
            bit = 0 if what == "passing" else 1 << range(len(self.untils if what == "until" else self.owed))[which]
            for to, takes in self.after(node):
                if to in nodes and ranks[to[1]][to[0]] >= rank:
                    if ranks[to[1]][to[0]] > rank:
                        self.wrong("a rank rises", node)
                    if what == "passing" or (what != "until" and takes & bit):
                        self.wrong(f"a step stays on rank {rank} ({what} {which})", node)
            match what:
                case "until":
                    fits = bool(node[1] & bit) and not self.true(self.untils[which].right, node)
                case "weak":
                    fits = bool(self.enabled(node) & bit)
                case "strong":
                    fits = self.owed[which].fairness is Fairness.STRONG
                    if not self.enabled(node) & bit:
                        left.setdefault(rank, set()).add(node)
                case _:
                    fits = what == "passing"
            if not fits:
                self.wrong(f"the reason why nobody stays on rank {rank} ({what} {which}) is false", node)
        for some in left.values():
            self.fruitless(some, tables[1:])

    def wrong(self, what: str, node: Node) -> NoReturn:
        """Reject, naming the state of a node."""
        reject(f"{what}, for {self.prop.name}, at {self.verifier.shown(self.verifier.states[node[0]])}")
