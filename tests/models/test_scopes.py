"""Stream scopes, scoped graphs, their text, and the Loops API that makes them."""

from __future__ import annotations

import pytest

from streamproof_models.scopes.graph import (
    ROOT,
    Edge,
    Operator,
    Pattern,
    ScopedGraph,
    ScopeError,
    StreamScope,
)
from streamproof_models.scopes.loops_api import Connected, Job, Stream
from streamproof_models.scopes.rules import validate
from streamproof_models.scopes.text import parse, parse_unchecked
from streamproof_models.scopes.topologies import NAMED, UNSCOPED, topology

OUTER = ROOT.nest("L")
INNER = OUTER.nest("M")


def test_a_scope_is_the_chain_of_its_loops() -> None:
    """Nesting adds a level, unnesting takes it away, and scopes of one loop are equal."""
    assert (ROOT.level, OUTER.level, INNER.level) == (0, 1, 2)
    assert INNER.unnest() == OUTER == StreamScope(("L",))
    assert ROOT.nest("L").nest("M") == INNER != ROOT.nest("M").nest("L")
    assert [str(scope) for scope in (ROOT, OUTER, INNER)] == ["root", "L", "L.M"]


def test_scopes_are_compared_by_what_lies_in_what() -> None:
    """A scope is inner of every scope around it, of no other, and not of itself."""
    inside = {(a, b) for a in (ROOT, OUTER, INNER, ROOT.nest("M")) for b in (ROOT, OUTER, INNER) if a.is_inner_of(b)}
    assert inside == {(OUTER, ROOT), (INNER, ROOT), (INNER, OUTER), (ROOT.nest("M"), ROOT)}
    assert [OUTER.is_outer_of(s) for s in (ROOT, OUTER, INNER, ROOT.nest("M"))] == [False, False, True, False]
    assert [OUTER.contains(s) for s in (ROOT, OUTER, INNER, ROOT.nest("M"))] == [False, True, True, False]


def test_every_scope_around_one_is_known_by_its_level() -> None:
    """The context of a scope at each level from 0 to its own; there is none below or above."""
    assert [INNER.context_for_level(k) for k in range(3)] == [ROOT, OUTER, INNER]
    with pytest.raises(ScopeError, match=r"scope L\.M has the levels 0 to 2, not 3"):
        INNER.context_for_level(3)
    with pytest.raises(ScopeError, match="the root scope has no scope around it"):
        ROOT.unnest()


@pytest.mark.parametrize("name", NAMED)
def test_the_text_of_a_graph_is_read_and_written_alike(name: str) -> None:
    """Every graph of the catalogue is valid, and printing what was read gives the text back."""
    graph = topology(name)
    assert str(graph) == NAMED[name]
    assert parse(str(graph)) == validate(graph) == topology(str(graph))


def test_what_derives_from_a_graph() -> None:
    """Sources, heads, and the edges into and out of a loop, for figure 2 of the proposal."""
    graph = topology("nested")
    names = [[o.name for o in found] for found in (graph.sources, graph.heads(OUTER))]
    assert names == [["a"], ["b"]]
    assert graph.scopes == (OUTER, INNER)
    assert (graph.entries(INNER), graph.exits(INNER)) == ((Edge("b", "c"),), (Edge("d", "e"),))
    assert [str(graph.stream_scope(e)) for e in graph.edges] == ["root", "L", "L.M", "L", "root"]


def test_a_stream_may_leave_several_loops_at_once() -> None:
    """The feedback of the outer loop, and the job's output, may be made in the inner one, as in the proposal's example."""
    graph = parse("a L:b L.M:c d; a>b b>c c>d; c~b c~c")
    assert graph.exits(INNER) == (Edge("c", "d"), Edge("c", "b"))


def test_graphs_are_equal_when_they_print_alike() -> None:
    """The order in which edges are given does not count, nor does the pattern between two single subtasks."""
    operators = (Operator("a"), Operator("b"), Operator("c"))
    one = ScopedGraph(operators, (Edge("b", "c"), Edge("a", "b")))
    other = ScopedGraph(operators, (Edge("a", "b", Pattern.ALL_TO_ALL), Edge("b", "c")))
    assert one == other
    assert str(other) == "a b c; a>b b>c"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b; a-b", "'a-b' among the edges, the second section, is not of the form a>b or a>>b"),
        ("a b; a~b", "'a~b' among the edges, the second section, is not of the form a>b or a>>b"),
        ("a b; ; a>b", "'a>b' among the feedback edges, the third section, is not of the form a~b or a~~b"),
        ("a L.:b; a>b", "'L.:b' among the operators, the first section, is not of the form LOOP.LOOP:name*parallelism"),
        ("a; ; ; b", "'a; ; ; b' has 4 sections; there are operators; edges; feedback edges"),
        ("; a>b", "a graph has at least one operator"),
        ("a a", "operator a is there twice"),
        ("a b; a>c", "edge a to c: there is no operator c"),
        ("a b; a>b a>b", "edge a to b is there twice"),
        ("a b*0; a>>b", "operator b has parallelism 0, the least is 1"),
        ("a b*2; a>b", "edge a to b is pointwise between 1 and 2 subtasks; make it all-to-all"),
        ("a b; a>b; b~b", "feedback from b (scope root) to b (scope root): it ends outside every loop"),
        (UNSCOPED, "feedback from d (scope root) to c (scope L.M): it starts outside the loop that it closes"),
        ("a L:b; a>b", "loop L has one operator that its feedback leads to, its head; here it is none"),
        (
            "a L:b L:c; a>b b>c; c~b c~c",
            "loop L has one operator that its feedback leads to, its head; here it is b and c",
        ),
        (
            "a L:b L:c; a>b a>c b>c; c~b",
            "edge from a (scope root) to c (scope L): a stream of scope root is not one of scope L; a loop is entered at "
            "its head, by a stream of the scope around it, and all inputs of an operator are streams of one scope",
        ),
        ("a b c; a>b b>c c>b", "operator b reaches itself without a feedback edge"),
        ("L:a L:b; a>b; b~b", "source a is in scope L; sources are outside every loop"),
    ],
)
def test_what_no_program_makes_is_refused(text: str, message: str) -> None:
    """One message says what is wrong and where, with operators and scopes."""
    with pytest.raises(ScopeError) as refused:
        parse(text)
    assert str(refused.value) == message


def test_an_unknown_name_is_answered_with_those_that_there_are() -> None:
    """The names of the catalogue, and how a graph is written."""
    with pytest.raises(ScopeError) as refused:
        topology("nestd")
    assert str(refused.value) == (
        f"unknown topology 'nestd'; known are {', '.join(sorted(NAMED))}, and graphs as text: 'a L:b L:c; a>b b>c; c~b'"
    )


def test_the_graph_of_the_api_before_is_read_unchecked() -> None:
    """A loop that is closed outside the one it begins in can be named, to show what goes wrong."""
    assert topology("unscoped") == parse_unchecked(UNSCOPED)


# --- the Loops API


def test_loop_functions_nest() -> None:
    """A loop in a loop makes figure 2 of the proposal."""
    job = Job()

    def inner(stream: Stream) -> tuple[Stream, Stream]:
        last = stream.op("d")
        return last, last

    def outer(stream: Stream) -> tuple[Stream, Stream]:
        last = stream.iterate("M", "c", inner).op("e")
        return last, last

    job.source("a").iterate("L", "b", outer).op("f")
    assert job.graph() == topology("nested")


def test_feedback_of_another_type_is_joined_at_the_head() -> None:
    """The function says with which operator input and feedback are joined: one, once."""
    job = Job()

    def body(both: Connected) -> tuple[Stream, Stream]:
        head = both.op("b")
        return head.op("t"), head

    job.source("a").iterate_with_feedback("L", body).op("c")
    assert str(job.graph()) == NAMED["alignment"]

    def twice(both: Connected) -> tuple[Stream, Stream]:
        return both.op("x"), both.op("y")

    with pytest.raises(ScopeError, match="loop L joins input and feedback 2 times, not once"):
        Job().source("a").iterate_with_feedback("L", twice)


def test_binary_operations_across_scopes_are_refused() -> None:
    """A union or a join of streams of two scopes names both operators and both scopes; of one scope it is made."""
    job = Job()
    first, second = job.source("a"), job.source("z")

    def body(stream: Stream) -> tuple[Stream, Stream]:
        stream.union(second)
        return stream, stream

    with pytest.raises(ScopeError) as refused:
        first.iterate("L", "b", body)
    assert str(refused.value) == (
        "union of b (scope L) with z (scope root): binary operations are on streams of one scope"
    )
    job = Job()
    first, second = job.source("a"), job.source("z")
    out = first.iterate("L", "b", lambda stream: (stream, stream))
    out.connect(second, "c")
    assert str(job.graph()) == "a z L:b c; a>b z>c b>c; b~b"


def test_the_results_of_a_loop_are_streams_of_the_loop() -> None:
    """Feedback that is made outside is refused, with the operator and both scopes."""
    job = Job()
    outside = job.source("a")
    with pytest.raises(ScopeError) as refused:
        outside.iterate("L", "b", lambda stream: (outside, stream))
    assert str(refused.value) == "the feedback of loop L is a stream of a (scope root), not one of the loop"


def test_operators_of_two_scopes_are_not_chained() -> None:
    """What a loop returns is of the scope around it, but its maker is not; within a scope chaining makes no operator."""
    job = Job()
    out = job.source("a").chain("map").iterate("L", "b", lambda stream: (stream, stream))
    with pytest.raises(ScopeError) as refused:
        out.chain("c")
    assert str(refused.value) == ("c (scope root) cannot be chained to b (scope L): chained operators are of one scope")
    assert str(job.graph()) == "a L:b; a>b; b~b"
