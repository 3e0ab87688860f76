"""The Python that the explicit engine generates: what is shared, what is asked first, and how deep terms are cut."""

from __future__ import annotations

import gc
import linecache

import pytest

from streamproof.explicit.exploration import explore
from streamproof.explicit.successors import expander
from streamproof.explicit.writer import Writer, load, local_names, shared
from streamproof.system import (
    BOOL,
    Action,
    ArraySort,
    Conjunct,
    EnumSort,
    Expr,
    Fairness,
    Instance,
    Interpreter,
    Kind,
    OptionSort,
    Property,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    System,
    Variable,
    Verdict,
)
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.sorts import UnionSort
from streamproof.transform.assume import Assuming, Substitution, simplify

LAMP = EnumSort(("RED", "GREEN"))
x, y = b.var("x", RangeSort(0, 3)), b.var("y", RangeSort(0, 3))
lamp = b.var("lamp", LAMP)


def action(name: str, guard: tuple[Expr, ...], **updates: Expr) -> Action:
    """An action of one instance."""
    conjuncts = tuple(Conjunct(g, "", None) for g in guard)
    return Action(name, (), Fairness.NONE, (Instance(name, (), (), conjuncts, tuple(updates.items())),))


def crossing(*actions: Action) -> System:
    """Two numbers and a lamp."""
    start = (Variable("x", x.sort, (0,)), Variable("y", y.sort, (0,)), Variable("lamp", LAMP, ("RED",)))
    return System("crossing", start, actions)


def source(system: System) -> list[str]:
    """The lines of the generated successor function inside the loop, without those that end a state."""
    function = expander(simplify(system), [], edges=False)
    lines = [line.rstrip("\n") for line in linecache.cache[function.__code__.co_filename][2]]
    first = next(at for at, line in enumerate(lines) if "_degree = 0" in line)
    last = next(at for at, line in enumerate(lines) if line.startswith("  if not _degree"))
    return [line[2:] for line in lines[first + 1 : last]]


def test_a_guard_that_neighbours_share_is_asked_once() -> None:
    """The lamp is looked at once for both actions; the pinned value needs no look-up in what follows."""
    red = b.eq(lamp, b.const(LAMP, "RED"))
    one = action("one", (red, b.less(x, y)), x=b.add(x, b.num(1)))
    two = action("two", (red,), y=b.ite(red, b.num(1), b.num(2)))
    assert source(crossing(one, two)) == [
        "if (lamp == 'RED'):",
        " if (y > x):",
        "  _next = ((x + 1), y, lamp,)",
        "  _at = _put(_next, _known)",
        "  if _at == _known:",
        "   _known += 1; _add(_next); _parent(_number); _d0 += 1",
        "  _g0 += 1; _degree += 1",
        " _next = (x, 1, lamp,)",
        " _at = _put(_next, _known)",
        " if _at == _known:",
        "  _known += 1; _add(_next); _parent(_number); _d1 += 1",
        " _g1 += 1; _degree += 1",
    ]


def test_shared_terms_become_local_variables_and_nothing_changed_is_not_looked_up() -> None:
    """A sum that is read twice is computed once, after the cheap guard; an instance that changes nothing stays put."""
    total = b.add(x, y)
    one = action("one", (b.less(x, y), b.less(total, b.num(4))), x=b.ite(b.less(total, b.num(2)), total, x))
    idle = action("idle", (b.not_(b.eq(x, y)),))
    assert source(crossing(one, idle)) == [
        "if (y > x):",
        " _0 = (x + y)",
        " if (_0 <= 3):",
        "  _next = ((_0 if (_0 <= 1) else x), y, lamp,)",
        "  _at = _put(_next, _known)",
        "  if _at == _known:",
        "   _known += 1; _add(_next); _parent(_number); _d0 += 1",
        "  _g0 += 1; _degree += 1",
        "if (x != y):",
        " _g1 += 1; _degree += 1",
    ]


def test_an_instance_that_can_never_be_taken_is_not_written() -> None:
    """A guard that contradicts itself leaves no code behind."""
    red = b.eq(lamp, b.const(LAMP, "RED"))
    green = b.eq(lamp, b.const(LAMP, "GREEN"))
    assert source(crossing(action("never", (red, green), x=b.num(1)))) == []


def test_names_are_kept_where_python_allows_it() -> None:
    """Leaves get readable identifiers; keywords, built-ins, clashes and other alphabets get a number."""
    names = ("wire[0].len", "wire[0,len", "class", "len", "_", "grün", "seen{A}", "Δ")
    start = tuple(Variable(name, BOOL, (False,)) for name in names)
    given = local_names(System("names", start, ()))
    assert list(given.values()) == ["wire_0_len", "v1_wire_0_len", "v2_class", "v3_len", "v", "v5_", "seen_A", "v7_"]
    assert all(name.isidentifier() for name in given.values())


def test_variables_with_awkward_names_explore() -> None:
    """A variable that is called like a built-in the generated code needs does no harm."""
    names = ("enumerate", "len", "_put", "for", "g0", "_0")
    start = tuple(Variable(name, BOOL, (False,)) for name in names)
    actions = tuple(
        Action(f"set {n}", (), Fairness.NONE, (Instance(f"set {n}", (), (), (), ((n, b.TRUE),)),)) for n in names
    )
    prop = Property("not all", Kind.INVARIANT, b.not_(b.and_(b.var(n, BOOL) for n in names)))
    result = explore(System("awkward", start, actions, (prop,)))
    assert (result.counts.distinct, result.counts.depth) == (64, 7)
    assert result.finding("not all").verdict is Verdict.VIOLATED


@pytest.mark.parametrize("kind", ["alternating", "sum", "conditional", "quotient"])
def test_deep_terms_do_not_meet_any_limit(kind: str) -> None:
    """Three thousand levels of one term pass the parser, the compiler and the interpreter."""
    flag = b.var("flag", BOOL)
    number: Expr = x
    truth: Expr = flag
    for level in range(3000):
        if kind == "alternating":
            part = b.less(x, b.num(level % 3 + 1))
            truth = b.or_((part, b.not_(truth))) if level % 2 else b.and_((b.not_(part), truth))
        elif kind == "sum":
            number = b.mod(b.add(b.mul(number, b.num(3)), y), b.num(7))
        elif kind == "conditional":
            number = b.ite(b.less(number, y), b.num(level % 4), x)
        else:
            number = b.floor_div(b.num(level % 9), number)
    start = (Variable("x", x.sort, (0, 1, 2, 3)), Variable("y", y.sort, (0, 1, 2, 3)), Variable("flag", BOOL, (False,)))
    step = Action(
        "step",
        (),
        Fairness.NONE,
        (Instance("step", (), (), (Conjunct(b.not_(flag), "", None),), (("flag", b.or_((b.not_(flag), truth))),)),),
    )
    wanted = b.or_((truth, b.eq(number, b.num(2))))
    system = System(
        "deep",
        start,
        (step,),
        (Property("wanted", Kind.REACHABLE, wanted), Property("never", Kind.INVARIANT, b.not_(wanted))),
    )
    result = explore(system)
    interpreter = Interpreter(system)
    true_in = [state for state in result.states() if interpreter.value(wanted, state)]
    assert result.counts.distinct == 32
    assert (result.finding("wanted").verdict is Verdict.HOLDS) == bool(true_in)
    trace = result.finding("never").trace
    assert (trace.states[-1] if trace else None) == (true_in[0] if true_in else None)


def test_wide_terms_do_not_meet_any_limit() -> None:
    """A conjunction of five thousand parts is one condition."""
    big = b.var("big", RangeSort(0, 6000))
    parts = b.and_(b.not_(b.eq(b.add(big, b.num(k)), b.num(5500))) for k in range(5000))
    up = Instance("up", (), (), (Conjunct(b.less(big, b.num(600)), "", None),), (("big", b.add(big, b.num(1))),))
    system = System(
        "wide",
        (Variable("big", big.sort, (0,)),),
        (Action("up", (), Fairness.NONE, (up,)),),
        (Property("p", Kind.INVARIANT, parts),),
    )
    trace = explore(system).finding("p").trace
    assert trace is not None
    assert trace.states[-1] == (501,)


def test_generated_source_is_shown_in_tracebacks_and_forgotten_with_its_function() -> None:
    """The source stands in linecache under the function's file name for as long as the function lives."""
    function = load("double", "test", "def double(a):\n return a * 2\n")
    filename = function.__code__.co_filename
    assert function(4) == 8
    assert linecache.getline(filename, 2) == " return a * 2\n"
    del function
    gc.collect()
    assert filename not in linecache.cache


def test_division_reads_its_divisor_once() -> None:
    """A composite divisor that may be zero is computed before it is tested."""
    writer = Writer({"x": "x", "y": "y"})
    term = b.floor_div(x, b.sub(y, b.num(1)))
    assert writer.needs_lines(term, ())
    assert writer.term(term, ()) == "(x // _0 if _0 else 0)"
    assert writer.lines == ["_0 = (y - 1)"]
    assert writer.term(b.mod(x, b.add(y, b.num(1))), ()) == "(x % (y + 1))"


def test_shared_counts_uses_not_terms() -> None:
    """A term below two parents, or asked for twice, is shared; variables and their negations are not worth it."""
    total, flag = b.add(x, y), b.not_(b.var("flag", BOOL))
    less = b.less(total, b.num(3))
    assert shared([less, b.less_eq(total, x)]) == {total}
    assert shared([less, less]) == {less}
    assert shared([b.and_((flag, less)), b.or_((flag, less))]) == {less}


def test_facts_are_what_conditions_pin_down() -> None:
    """Equalities with constants pin a variable, negations and comparisons settle their opposites."""
    settle = Assuming([b.eq(x, b.num(2)), b.not_(b.or_((b.var("p", BOOL), b.var("q", BOOL)))), b.less(b.num(1), y)])
    assert settle(b.add(x, y)) is b.add(b.num(2), y)
    assert settle(b.var("p", BOOL)) is b.FALSE
    assert settle(b.var("q", BOOL)) is b.FALSE
    assert settle(b.less_eq(y, b.num(1))) is b.FALSE
    assert settle(b.ite(b.less(b.num(1), y), x, y)) is b.num(2)


def test_substitution_rebuilds_every_kind_of_term() -> None:
    """Renaming a variable there and back gives the very same term, for terms of every kind."""
    array = b.var("a", ArraySort(RangeSort(0, 3), RangeSort(0, 3)))
    record = b.var("r", RecordSort((("f", RangeSort(0, 3)),)))
    option = b.var("o", OptionSort(RangeSort(0, 3)))
    queue = b.var("q", QueueSort(RangeSort(0, 3), 2))
    set_ = b.var("s", SetSort(RangeSort(0, 3)))
    z = b.var("z", RangeSort(0, 3))
    either = UnionSort((("A", RecordSort((("f", RangeSort(0, 3)),))), ("B", RecordSort(()))))
    case = b.var("u", either)
    terms = [
        b.and_((b.less(x, y), b.or_((b.less_eq(x, z), b.not_(b.eq(x, y)))))),
        b.ite(b.less(x, y), b.add(x, y), b.sub(x, y)),
        b.mul(x, b.floor_div(y, b.mod(x, y))),
        b.select(b.store(array, x, y), z),
        b.make_array(ArraySort(BOOL, RangeSort(0, 3)), (x, y)),
        b.field(b.with_field(b.ite(b.less(x, y), record, b.make_record(record.sort, (x,))), "f", y), "f"),  # type: ignore[arg-type]
        b.with_field(record, "f", x),
        b.make_record(record.sort, (x,)),  # type: ignore[arg-type]
        b.add(b.field(record, "f"), b.num(1)),
        b.unwrap(b.ite(b.is_none(option), b.some(x), option)),
        b.add(b.length(b.push(queue, x)), b.peek(b.pop(queue), y)),
        b.member(b.insert(b.remove(set_, x), y), z),
        b.subset(b.union(set_, b.insert(set_, x)), b.intersection(set_, b.difference(set_, b.remove(set_, x)))),
        b.size(b.insert(set_, x)),
        b.ite(b.is_case(case, "A"), b.field(b.payload(case, "A"), "f"), x),
        b.make_case(either, "A", b.make_record(either.payload("A"), (x,))),
        b.less(x, b.next_("x", RangeSort(0, 3))),
    ]
    kinds = {type(t) for t in e.subterms(*terms)}
    assert kinds == set(e.Expr.__args__)  # type: ignore[attr-defined]
    fresh = b.var("fresh", RangeSort(0, 3))
    there, back = Substitution({x: fresh}), Substitution({fresh: x})
    for term in terms:
        renamed = there(term)
        assert "x" not in {t.name for t in e.subterms(renamed) if isinstance(t, e.Var)}
        assert back(renamed) is term
