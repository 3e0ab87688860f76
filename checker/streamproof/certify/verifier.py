"""The verifier: accepts a certificate, or rejects it with the first thing that is wrong. A program of its own, kept small.

It shares `streamproof.system` with the engines, chiefly the interpreter. A certificate is a line ``streamproof certificate
2 SHA256``, a line of JSON, the header (which system; what is claimed), and compressed JSON, the evidence. The *closed set* is
states on levels: the initial ones, then always those to which steps from the level before lead and that no level had. On it
states and steps are decided, temporal properties by `Endless`, *termination* by ranks that fall with every step; a
*behaviour* is replayed, at its end the claim shows; proofs by induction are a matter of `verifier_induction`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import accumulate, pairwise, product
from operator import and_, or_
from typing import Any, TypeAlias

from streamproof.base.errors import EvaluationError, StreamproofError, reject
from streamproof.base.reading import MOST_EVIDENCE, parsed
from streamproof.base.unpacking import malformed, parts_of
from streamproof.system.fingerprint import fingerprint
from streamproof.system.formula import Formula
from streamproof.system.interpreter import Interpreter
from streamproof.system.leaves import decode
from streamproof.system.model import Fairness, Instance, Kind, Property, State, System, fairness_constraints
from streamproof.system.prefixes import may_leave_open
from streamproof.system.reference_temporal import ReferenceTableau
from streamproof.system.sorts import Sort, Value, contains, show
from streamproof.system.temporal import is_violated_by
from streamproof.system.verdict import Trace, Verdict

MAGIC = b"streamproof certificate 2 "
HEADER, COUNTS = {"model", "options", "fingerprint", "claims", "counts"}, {"distinct", "generated", "depth", "levels"}
EVIDENCE = {"values", "traces", "ranks", "proofs"}
Node: TypeAlias = tuple[int, int]  # a state of the closed set, and a guess of a tableau, by their numbers


def parse(data: bytes, *parts: set[str], most: int = MOST_EVIDENCE) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and evidence of a certificate, with one of these sets of parts (default: `EVIDENCE`). Raises `Rejected`."""
    first, _, rest = data.partition(b"\n")
    if not first.startswith(MAGIC):
        reject("it does not begin as a certificate of this version does")
    if first[len(MAGIC) :] != hashlib.sha256(rest).hexdigest().encode():
        reject("it has a wrong checksum: it was changed, or is incomplete")
    header, evidence = (parsed(part.decode(), whole=True) for part in parts_of(rest, most))
    if not isinstance(header, dict) or {*header} != HEADER or not isinstance(evidence, dict):
        reject("its parts are not those of a certificate")
    if {*evidence} not in (parts or (EVIDENCE,)):
        reject("its parts are not those of a certificate")
    if type(header["claims"]) is not dict or not header["claims"]:
        reject("it claims nothing")
    return header, evidence


def verify(
    data: bytes, system_of: Callable[[Any], System], report: Callable[[str], None], most: int = MOST_EVIDENCE
) -> dict[str, Any]:
    """The header of a certificate for the named system, all of whose claims are verified, with the text of the system's
    constraint as ``constraint``. Raises `Rejected`."""
    try:
        header, evidence = parse(data, most=most)
        system = system_of(header)
        if fingerprint(system) != header["fingerprint"]:
            reject(f"it is of another {system.name} than this one: the model or its parameters have changed")
        Verifier(system, header, evidence, report).run()
        header["constraint"] = None if system.constraint is None else system.constraint.text
    except EvaluationError as mistake:
        reject(f"the model makes a mistake where it claims none: {mistake.message}")
    except StreamproofError:
        raise
    except Exception as error:  # whatever the error, nothing is proved
        reject(malformed(error))
    return header


class Verifier:
    """One certificate being verified. `follow`: the successors of each state, with the fair actions (bits) of each step."""

    def __init__(self, system: System, header: Any, evidence: Any, report: Callable[[str], None]) -> None:
        self.system, self.header, self.evidence, self.report = system, header, evidence, report
        self.interpreter, self.states, self.initial = Interpreter(system), list[State](), 0
        self.follow, self.covered = list[dict[int, int]](), list[Property]()

    def run(self) -> None:
        """Checks every claim: by its behaviour, by its induction, or by the closed set. Raises `Rejected`."""
        traces, ranks, proofs = (self.evidence[part] for part in ("traces", "ranks", "proofs"))
        shown = {*traces, *(name for proof in proofs for name in proof["claims"])}
        if not shown <= {*self.header["claims"]} or not {*ranks} <= {*self.header["claims"]} - shown:
            reject("it has evidence without a claim")
        for name, said in self.header["claims"].items():
            prop, verdict = self.system.property(name), Verdict(said)
            once = (Verdict.HOLDS if prop.kind is Kind.REACHABLE else Verdict.VIOLATED), Verdict.ERROR
            if verdict is Verdict.INCONCLUSIVE or (verdict in once) is not (name in traces):
                reject(f"{name} is said to be {said}, and nothing shows it")
            if name in traces and not self.shows(prop, verdict, self.replayed(name, traces[name])):
                reject(f"the behaviour for {name} is not fair, or does not show that it is {said}")
            if verdict is Verdict.ERROR and not self.fails_first(prop):
                reject(f"{name} is decided before the evaluation error")
            self.covered += [] if name in shown else [prop]
        if self.header["counts"] is not None:
            self.closed_set(self.header["counts"])
        elif self.covered or self.evidence["values"]:
            reject("it has claims that need the set of all states, but no such set")
        for prop in self.covered:
            if prop.formula is not None:
                if may_leave_open(self.system, prop.name, self.states):
                    reject(f"parts of {prop.name} may contradict each other after behaviours that leave the constraint")
                self.report(f"checking the ranks for {prop.name}")
                endless = Endless(self, prop.name, prop.formula)
                endless.end(endless.reachable(), ranks[prop.name])
            elif prop.kind is Kind.TERMINATION:
                for at, followers in enumerate(self.follow):
                    if any(ranks[prop.name][to] >= ranks[prop.name][at] for to in followers):
                        reject(f"the rank for {prop.name} does not fall from {self.shown(at)}")
        for proof in proofs:
            from streamproof.certify.verifier_induction import CheckedInduction  # loading Z3 takes long

            CheckedInduction(self.system, proof).run()

    def shown(self, at: int) -> str:
        """The text of a state in a message."""
        return ", ".join(f"{v.name} = {show(v.sort, value)}" for v, value in self.system.named(self.states[at]))

    def value(self, sort: Sort, parts: Sequence[Any]) -> Value:
        """The value encoded by its `leaves`."""
        value = decode(sort, iter(parts))
        return value if contains(sort, value) else reject(f"{parts} is not a value of {sort}")

    def decides(self, prop: Property, *states: State) -> bool:
        """Whether a state, or a step, violates a property, or reaches its goal."""
        if prop.kind is Kind.DEADLOCK:
            return not self.interpreter.terminal(states[0]) and not any(True for _ in self.interpreter.steps(states[0]))
        return self.interpreter.holds(prop, *states) is (prop.kind is Kind.REACHABLE)

    def shows(self, prop: Property, verdict: Verdict, trace: Trace) -> bool:
        """Whether a behaviour of the system shows the verdict."""
        end = trace.states[-2 if prop.kind is Kind.STEP else -1 :]
        whole = len(end) == 2 or prop.kind is not Kind.STEP
        if verdict is Verdict.ERROR:
            try:
                list(self.interpreter.steps(end[-1]))
                if whole:
                    self.interpreter.holds(prop, *end)
            except EvaluationError:
                return True
            return False
        if prop.formula is not None:
            return is_violated_by(self.system, prop.formula, trace)
        if prop.kind is Kind.TERMINATION:
            return trace.loop is not None and trace.loop < len(trace.steps)
        return whole and self.decides(prop, *end)

    def fails_first(self, prop: Property) -> bool:
        """Whether evaluation fails before a state or step decides the property, level by level. On one level, states decide
        it before an error does; steps and deadlocks only if the model itself has no error. No error decides termination."""
        level, seen = {*self.interpreter.initial_states()}, set[State]()
        late = prop.kind in (Kind.STEP, Kind.DEADLOCK)
        while level and prop.kind is not Kind.TERMINATION:
            found = {self.judged(prop, state) for state in level if not late}
            try:
                steps = [(state, step.state) for state in level for step in self.interpreter.steps(state)]
            except EvaluationError:
                return True not in found
            if late:
                found = {
                    self.judged(prop, *end) for end in (steps if prop.kind is Kind.STEP else zip(level, strict=True))
                }
            if found - {False}:
                return True not in found
            seen |= level
            level = {to for _, to in steps} - seen
        return False

    def judged(self, prop: Property, *states: State) -> bool | None:
        """Whether a state or step decides a property; None if that cannot be evaluated."""
        try:
            return self.decides(prop, *states)
        except EvaluationError:
            return None

    def replayed(self, name: str, data: Mapping[str, Any]) -> Trace:
        """The behaviour in `data`, checked from an initial state step by step by the interpreter."""
        rows = (zip(self.system.variables, row, strict=True) for row in data["states"])
        states = [tuple(self.value(v.sort, parts) for v, parts in row) for row in rows]
        loop, labels = data["loop"], data["steps"]
        if states[0] not in set(self.interpreter.initial_states()):
            reject(f"the behaviour for {name} does not begin in an initial state")
        closed = loop is not None and len(labels) == len(states)
        ways = [*states, states[range(len(states))[loop]]] if closed else states
        steps = list[Instance]()
        for label, (before, after) in zip(labels, pairwise(ways), strict=True):
            some = (i for i in self.system.instances if i.label == label)
            steps += [i for i in some if self.interpreter.take(i, before) == after][:1]
        trace = Trace(tuple(states), tuple(steps), loop)
        if len(steps) < len(labels) or (loop is not None and (loop < 0 or not closed) and not trace.stutters):
            reject(f"a step of the behaviour for {name} does not lead to the next state, or its loop is none")
        return trace

    def closed_set(self, counts: Mapping[str, Any]) -> None:
        """Checks that the states are exactly the reachable ones, on their levels, and that the covered properties hold
        there."""
        ends, columns = list(accumulate(counts["levels"])), list[list[Value]]()
        numbers = [*counts["levels"], *(number for name, number in counts.items() if name != "levels")]
        positive = all(type(number) is int and number > 0 for number in numbers)  # JSON's true and 1.0 equal 1
        if {*counts} != COUNTS or not positive or ends[-1] != counts["distinct"] or len(ends) != counts["depth"]:
            reject("its counts do not fit each other")
        for variable, (some, column) in zip(self.system.variables, self.evidence["values"], strict=True):
            table = dict(enumerate(self.value(variable.sort, parts) for parts in some))
            columns.append([table[number] for number in column])
        self.states = list(zip(*columns, strict=True)) if columns else [()]
        position, self.initial = {state: at for at, state in enumerate(self.states)}, ends[0]
        if not len(position) == len(self.states) == ends[-1] or {*self.states[: ends[0]]} != {
            *self.interpreter.initial_states()
        }:
            reject("it lists a state twice, or its first level is not the initial states")
        fair: Counter[int] = Counter()
        for k, constraint in enumerate(fairness_constraints(self.system)):
            for number in constraint.numbers:
                fair[id(self.system.instances[number])] |= 1 << k
        generated, first = ends[0], 0
        for last, deeper in pairwise([*ends, ends[-1]]):
            self.report(f"{first:,} of {len(self.states):,} states")
            reached = set[int]()
            for at in range(first, last):
                followers: dict[int, int] = {}
                for step in self.interpreter.steps(self.states[at]):
                    if (to := position.get(step.state)) is None:
                        reject(f"{step.instance.label} leads out of its states, from {self.shown(at)}")
                    followers[to] = followers.get(to, 0) | (fair.get(id(step.instance), 0) if to != at else 0)
                    generated += 1
                self.follow.append(followers)
                reached.update(to for to in followers if to >= last)
                for prop in self.covered:
                    ends = [(self.states[to],) for to in followers] if prop.kind is Kind.STEP else [()]
                    if any(self.decides(prop, self.states[at], *end) for end in ends):
                        reject(f"{prop.name} is not what is claimed, as seen in {self.shown(at)}")
            for to in reached ^ {*range(last, deeper)}:
                reject(f"no step from the level before leads to a state, or one from a higher level: {self.shown(to)}")
            first = last
        if generated != counts["generated"]:
            reject(f"it claims {counts['generated']} generated states, there are {generated}")


class Endless:
    """That no fair behaviour makes a formula false: by its tableau, after Lichtenstein and Pnueli.

    One that does is a path of nodes from an initial state where the formula is guessed false; the state of a step may stay
    the same. Ranks of nodes never rise along paths, so a path stays, in the end, among nodes of one rank. It cannot, where
    those have no edges inside; or an *until* is guessed true in all and kept in none; or an action with a fairness constraint
    is enabled in all and never taken. Where actions with strong fairness are never taken, the nodes that enable
    one are left for good, and the others of this rank have ranks of their own in the next table.
    """

    def __init__(self, verifier: Verifier, name: str, formula: Formula) -> None:
        self.verifier, self.name, self.tableau = verifier, name, ReferenceTableau(verifier.system, formula)
        self.edges: dict[Node, list[tuple[Node, int]]] = {}
        self.enabled = [reduce(or_, followers.values(), 0) for followers in verifier.follow]

    def true(self, formula: Formula, node: Node) -> bool:
        """Whether a formula is true at a node, if the guess there is right."""
        return self.tableau.true(formula, (self.verifier.states[node[0]], self.tableau.guesses[node[1]]))

    def reachable(self) -> set[Node]:
        """The nodes on paths from a violation of the formula; `edges` has the successors of each, and the fair actions
        taken."""
        guesses, begin = self.tableau.guesses, product(range(self.verifier.initial), range(len(self.tableau.guesses)))
        todo = [node for node in begin if not self.true(self.tableau.formula, node)]
        for node in todo:  # which grows
            if node not in self.edges:
                then = self.tableau.after((self.verifier.states[node[0]], guesses[node[1]]))
                follow = {node[0]: 0, **self.verifier.follow[node[0]]}
                self.edges[node] = [((to, number), takes) for to, takes in follow.items() for number in then]
                todo += (to for to, _ in self.edges[node] if to not in self.edges)
        return {*self.edges}

    def staying(self, nodes: Sequence[Node], taken: int) -> set[Node]:
        """The nodes among which a fair behaviour may remain if it remains among these, and takes these fair actions."""
        for k, until in enumerate(self.tableau.untils):
            if all(self.tableau.guesses[node[1]][k] and not self.true(until.right, node) for node in nodes):
                return set()
        idle = {1 << k: one for k, one in enumerate(self.tableau.fairness) if not taken >> k & 1}
        if reduce(and_, (self.enabled[at] for at, _ in nodes)) & sum(idle):
            return set()
        strong = sum(bit for bit, one in idle.items() if one.fairness is Fairness.STRONG)
        return {node for node in nodes if not self.enabled[node[0]] & strong}

    def end(self, nodes: set[Node], tables: Sequence[Mapping[str, Sequence[int]]]) -> None:
        """Checks that no fair behaviour that fulfils every *until* remains among nodes with these ranks. Raises
        `Rejected`."""
        rank, classes = {node: tables[0][str(node[1])][node[0]] for node in nodes}, dict[int, list[Node]]()
        for node in nodes:
            classes.setdefault(rank[node], []).append(node)
        for number, some in classes.items():
            inner = [(rank[to], takes) for node in some for to, takes in self.edges[node] if to in nodes]
            if any(other > number for other, _ in inner):
                reject(f"a rank rises, for {self.name}, at {self.verifier.shown(some[0][0])} or a state of this rank")
            if takes := [takes for other, takes in inner if other == number]:
                left = self.staying(some, reduce(or_, takes))
                if len(left) == len(some):
                    reject(
                        f"a fair behaviour may make {self.name} false that stays at {self.verifier.shown(some[0][0])}"
                    )
                self.end(left, tables[1:])
