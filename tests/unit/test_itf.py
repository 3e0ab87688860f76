"""ITF: every value and every trace comes back as it was; what others write is read; what is wrong is said in place."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.exchange.itf.reading import Malformed, Unexplained, canonical, decode, read_itf, read_meta
from streamproof.exchange.itf.writing import encode, encode_plain, itf_text, to_itf, type_text, write_itf
from streamproof.system import (
    BOOL,
    Action,
    ArraySort,
    EnumSort,
    Fairness,
    InputError,
    Instance,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    System,
    SystemFailure,
    Trace,
    Value,
    Variable,
)
from streamproof.system import build as b
from streamproof.system.model import parameter_json
from streamproof.traces.replay import replay, replay_labels

LOST = ("send(c=1)", "receive()[lost=False]", "send(c=0)", "receive()[lost=True]")

NAMES = st.sampled_from(["a", "b", "tag", "value", "kind", "è"])
RANGES = st.tuples(st.integers(-(2**70), 2**70), st.integers(0, 5)).map(lambda p: RangeSort(p[0], p[0] + p[1]))
SMALL = st.tuples(st.integers(-3, 3), st.integers(0, 3)).map(lambda p: RangeSort(p[0], p[0] + p[1]))
ENUMS = st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=3, unique=True).map(lambda m: EnumSort(tuple(m)))
SCALARS: st.SearchStrategy[Sort] = st.just(BOOL) | RANGES | ENUMS


def _options(element: st.SearchStrategy[Sort]) -> st.SearchStrategy[Sort]:
    return element.filter(lambda s: not isinstance(s, OptionSort)).map(OptionSort)


def _records(element: st.SearchStrategy[Sort]) -> st.SearchStrategy[Sort]:
    return st.dictionaries(NAMES, element, min_size=1, max_size=3).map(lambda d: RecordSort(tuple(d.items())))


SORTS: st.SearchStrategy[Sort] = st.recursive(
    SCALARS,
    lambda inner: (
        _options(inner)
        | _records(inner)
        | inner.map(SetSort)
        | st.builds(QueueSort, inner, st.integers(0, 3))
        | st.builds(ArraySort, st.just(BOOL) | SMALL | ENUMS, inner)
    ),
    max_leaves=5,
)


def _values(sort: Sort) -> st.SearchStrategy[Value]:
    """Values of a sort, drawn without enumerating it."""
    match sort:
        case RangeSort(lo, hi):
            return st.integers(lo, hi)
        case EnumSort(members):
            return st.sampled_from(members)
        case RecordSort(fields):
            return st.tuples(*(_values(s) for _, s in fields))
        case OptionSort(element):
            return st.none() | _values(element)
        case ArraySort(index, element):
            size = {BOOL: 2}.get(index) or (
                len(index.members) if isinstance(index, EnumSort) else index.hi - index.lo + 1
            )
            return st.tuples(*(_values(element) for _ in range(size)))
        case QueueSort(element, capacity):
            return st.lists(_values(element), max_size=capacity).map(tuple)
        case SetSort(element):
            return st.frozensets(_values(element), max_size=4)
        case _:
            return st.booleans()


SORTED_VALUES = SORTS.flatmap(lambda s: st.tuples(st.just(s), _values(s)))


@given(SORTED_VALUES)
def test_values_come_back(pair: tuple[Sort, Value]) -> None:
    """Encoding, writing as JSON, reading and decoding gives the value again, whatever its sort."""
    sort, value = pair
    assert decode(sort, json.loads(json.dumps(encode(sort, value))), "v") == value


@given(SORTED_VALUES, st.data())
def test_different_values_have_different_forms(pair: tuple[Sort, Value], data: st.DataObject) -> None:
    """The canonical form that picks are compared by is equal exactly for equal values."""
    sort, value = pair
    other = data.draw(_values(sort))
    assert (canonical(encode(sort, value)) == canonical(encode(sort, other))) == (value == other)


@given(st.lists(SORTED_VALUES, min_size=1, max_size=4), st.data())
def test_states_come_back_from_a_file(pairs: list[tuple[Sort, Value]], data: st.DataObject) -> None:
    """A trace of random variables over random sorts, its step chosen by its parameter, is read as it was written."""
    variables = tuple(Variable(f"v{i}", sort, (value,)) for i, (sort, value) in enumerate(pairs))
    after = tuple(data.draw(_values(sort)) for sort, _ in pairs)
    instances = tuple(
        Instance(
            "set",
            (("to", number),),
            (),
            (),
            tuple((v.name, b.const(v.sort, x)) for v, x in zip(variables, to, strict=True)),
        )
        for number, to in enumerate([tuple(value for _, value in pairs), after])
    )
    system = System("random", variables, (Action("set", ("to",), Fairness.NONE, instances),))
    trace = Trace((tuple(value for _, value in pairs), after), (instances[1],))
    replay(system, trace)
    document = json.loads(itf_text(system, trace))
    assert _read(document, system) == trace


def _read(document: Any, system: System) -> Trace:
    """The document through a file, as `read_itf` takes it."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "t.itf.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
        return read_itf(path, system)


@pytest.fixture
def lost(relay: System) -> Trace:
    """A message is lost after a round trip."""
    return replay_labels(relay, LOST)


def test_text_is_as_documented(relay: System) -> None:
    """The whole file for one step, byte for byte."""
    trace = replay_labels(relay, LOST[:1])
    assert itf_text(relay, trace, relay.property("one_buffer")) == (
        """\
{
 "#meta": {
  "format": "ITF",
  "format-description": "https://apalache-mc.org/docs/adr/015adr-trace.html",
  "model": "relay",
  "variant": "lossy",
  "parameters": {"channels": 2},
  "property": "one_buffer",
  "kind": "invariant",
  "version": 1,
  "varTypes": {"pool": "Int", "backlog": "Int -> Int", "wire": "Seq(Str)"}
 },
 "vars": ["mbt::actionTaken", "mbt::nondetPicks", "pool", "backlog", "wire"],
 "states": [
  {
   "#meta": {"index": 0},
   "mbt::actionTaken": "init",
   "mbt::nondetPicks": {},
   "pool": {"#bigint": "1"},
   "backlog": {"#map": [[{"#bigint": "0"}, {"#bigint": "1"}], [{"#bigint": "1"}, {"#bigint": "1"}]]},
   "wire": []
  },
  {
   "#meta": {"index": 1},
   "mbt::actionTaken": "send",
   "mbt::nondetPicks": {"c": {"tag": "Some", "value": {"#bigint": "1"}}},
   "pool": {"#bigint": "0"},
   "backlog": {"#map": [[{"#bigint": "0"}, {"#bigint": "1"}], [{"#bigint": "1"}, {"#bigint": "0"}]]},
   "wire": ["DATA"]
  }
 ]
}
"""
    )


def test_file_round_trip(relay: System, lost: Trace, tmp_path: Path) -> None:
    """A trace is read as it was written, and the file says what it is of."""
    path = tmp_path / "deep" / "lost.itf.json"
    write_itf(path, relay, lost, relay.property("one_buffer"))
    assert read_itf(path, relay) == lost
    meta = read_meta(path)
    assert (meta.model, meta.variant, meta.property, meta.kind, meta.version) == (
        "relay",
        "lossy",
        "one_buffer",
        "invariant",
        1,
    )
    assert meta.parameters == {"channels": 2}
    assert [p.name for p in path.parent.iterdir()] == ["lost.itf.json"]


def test_loop_round_trip(toggle: System, tmp_path: Path) -> None:
    """The closing step of a lasso comes back, also when another step would close the loop as well."""
    path = tmp_path / "loop.itf.json"
    for labels, loop in ((["flip", "flip"], 0), (["flip", "stay"], 1), (["stay"], 0)):
        trace = replay_labels(toggle, labels, loop=loop)
        write_itf(path, toggle, trace)
        assert read_itf(path, toggle) == trace
    assert to_itf(toggle, trace)["loop"] == 0


def test_loop_with_its_first_state_repeated(toggle: System) -> None:
    """Other tools end a lasso with a copy of the state where it begins; that copy is no state of its own."""
    document = {"vars": ["on"], "states": [{"on": False}, {"on": True}, {"on": False}], "loop": 0}
    flips = (toggle.instances[0], toggle.instances[1])
    assert _read(document, toggle) == Trace(((False,), (True,)), flips, 0)


def test_plain_forms_are_read(relay: System, lost: Trace) -> None:
    """Plain numbers, module prefixes, unknown keys and variables, bare picks and maps as lists are understood."""
    document = {
        "#meta": "free text",
        "vars": ["m::pool", "backlog", "wire", "extra"],
        "future": 1,
        "states": [
            {"m::pool": 1, "backlog": [1, 1], "wire": {"#tup": []}, "extra": {"#unserializable": "?"}},
            {
                "m::pool": 0,
                "backlog": {"0": 1, "1": 0},
                "wire": ["DATA"],
                "#note": 0,
                "mbt::actionTaken": "m::send",
                "mbt::nondetPicks": {"c": 1, "lost": {"tag": "None", "value": {"#tup": []}}},
            },
        ],
    }
    assert _read(document, relay) == Trace(lost.states[:2], lost.steps[:1])


def test_missing_actions_are_searched_for(relay: System, lost: Trace) -> None:
    """A trace of states alone gets the instances that lead from one to the next."""
    document = to_itf(relay, lost)
    for state in document["states"]:
        del state["mbt::actionTaken"], state["mbt::nondetPicks"]
    assert _read(document, relay) == lost


def test_named_action_without_picks_is_completed(relay: System, lost: Trace) -> None:
    """The name of the action narrows the search, the states decide."""
    document = to_itf(relay, lost)
    for state in document["states"]:
        state["mbt::nondetPicks"] = {}
    assert _read(document, relay) == lost


def test_wrong_step_that_is_named_is_left_to_replay(relay: System, lost: Trace) -> None:
    """A step that the file names exactly is read even where it is impossible, so that replay can say why."""
    document = to_itf(relay, Trace(lost.states[:2], lost.steps[:1]))
    document["states"][1]["mbt::nondetPicks"]["c"]["value"] = {"#bigint": "0"}
    assert _read(document, relay).steps == (relay.instances[0],)


def test_colliding_names_are_kept_apart() -> None:
    """A pick that is called as a parameter or as another pick is written with a number."""
    x = Variable("x", BOOL, (False,))
    instances = tuple(
        Instance("go", (("c", 0),), (("c", i), ("c", j)), (), (("x", b.TRUE),)) for i in (1, 2) for j in (1, 2)
    )
    system = System("m", (x,), (Action("go", ("c",), Fairness.NONE, instances),))
    trace = Trace(((False,), (True,)), (instances[2],))
    document = to_itf(system, trace)
    assert list(document["states"][1]["mbt::nondetPicks"]) == ["c", "c_2", "c_3"]
    assert _read(document, system) == trace


def _broken(relay: System, change: Any) -> dict[str, Any]:
    document = to_itf(relay, replay_labels(relay, LOST))
    change(document)
    return document


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["states"][2].pop("pool"), "states[2]: the variable pool is missing"),
        (lambda d: d["states"][1].update(pool=2), "states[1].pool: 2 is outside Range(0, 1)"),
        (
            lambda d: d["states"][1].update(pool=True),
            'states[1].pool: expected an integer, {"#bigint": "..."}, found true',
        ),
        (
            lambda d: d["states"][1].update(pool={"#bigint": "1_0"}),
            'states[1].pool: expected an integer, {"#bigint": "..."}, found {"#bigint": "1_0"}',
        ),
        (lambda d: d["states"][3].update(wire=["DATA", "X"]), 'states[3].wire[1]: "X" is not one of DATA, EVENT'),
        (lambda d: d["states"][3].update(wire=["DATA"] * 3), "states[3].wire: 3 elements in a queue of capacity 2"),
        (lambda d: d["states"][0].update(backlog={"#map": [[0, 1]]}), "states[0].backlog: the key 1 is missing"),
        (
            lambda d: d["states"][0].update(backlog={"#map": [[0, 1], [0, 1]]}),
            "states[0].backlog: the key 0 is there twice",
        ),
        (
            lambda d: d["states"][0].update(backlog={"#map": [[0, 1], [7, 1]]}),
            "states[0].backlog.#map[1][0]: 7 is outside Range(0, 1)",
        ),
        (lambda d: d.update(loop=9), "loop: expected the index of a state, 0 to 4, found 9"),
        (lambda d: d.update(states=[]), "states: the trace has no state"),
        (lambda d: d["states"].insert(1, 3), "states[1]: expected an object with the variables, found 3"),
    ],
)
def test_what_is_wrong_is_said_in_place(relay: System, tmp_path: Path, change: Any, message: str) -> None:
    """The message has the file, the place in it and what was expected there."""
    path = tmp_path / "t.itf.json"
    path.write_text(json.dumps(_broken(relay, change)), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_itf(path, relay)
    assert str(caught.value).splitlines() == [
        f"{path}: {message}",
        "  correct the file, or give the model, variant and parameters that it was written for",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda d: d["states"][1].update({"mbt::actionTaken": "sent"}),
            "states[1].mbt::actionTaken: no action 'sent'; the model has send, receive",
        ),
        (
            lambda d: d["states"][1].update({"mbt::nondetPicks": {"c": 5}}),
            "states[1].mbt::nondetPicks: no such choice for send; it has send(c=0), send(c=1)",
        ),
        (
            lambda d: d["states"][2].update({"mbt::nondetPicks": {}, "wire": ["EVENT"]}),
            "states[2]: no step of the model leads here from the state before "
            "(tried receive()[lost=False], receive()[lost=True])",
        ),
    ],
)
def test_a_step_that_the_model_does_not_have_is_rejected(
    relay: System, tmp_path: Path, change: Any, message: str
) -> None:
    """A name, a choice or a state that no action explains makes no bad file but a trace that is none of the model's."""
    path = tmp_path / "t.itf.json"
    path.write_text(json.dumps(_broken(relay, change)), encoding="utf-8")
    with pytest.raises(Unexplained) as caught:
        read_itf(path, relay)
    assert str(caught.value).splitlines() == [
        f"{path}: {message}",
        "  give the model, variant and parameters that it was written for",
    ]
    assert int(caught.value.exit_code) == 161


def test_other_model_is_pointed_out(relay: System, toggle: System, lost: Trace) -> None:
    """When the file does not fit, it is said of which model it is."""
    with pytest.raises(InputError) as caught:
        _read(to_itf(relay, lost), toggle)
    assert str(caught.value).endswith(
        "states[0]: the variable on is missing\n  the file is a trace of model relay, not of toggle"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", ":1: not JSON: Expecting property name enclosed in double quotes"),
        ("[]", ": not a trace in ITF: no list of states"),
        ('{"vars": []}', ": not a trace in ITF: no list of states"),
    ],
)
def test_files_that_are_no_traces(relay: System, tmp_path: Path, text: str, message: str) -> None:
    """What is not JSON, or not a trace, is refused with its name."""
    path = tmp_path / "t.itf.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_itf(path, relay)
    assert str(caught.value).splitlines()[0] == f"{path}{message}"


def test_deep_nesting_is_refused(relay: System) -> None:
    """A file made to exhaust the reader is an input error like any other."""
    deep = "[" * 100_000 + "]" * 100_000
    with pytest.raises(InputError):
        _read(f'{{"states": [{{"pool": {deep}}}]}}', relay)


def test_missing_file(relay: System, tmp_path: Path) -> None:
    """A path that leads nowhere, or to a folder, is an input error."""
    with pytest.raises(InputError, match=r"none\.itf\.json does not exist"):
        read_itf(tmp_path / "none.itf.json", relay)
    with pytest.raises(InputError, match="is a folder"):
        read_itf(tmp_path, relay)


def test_failed_write_leaves_the_old_file(relay: System, lost: Trace, tmp_path: Path) -> None:
    """When the new text cannot be put in place nothing is lost and nothing is left behind."""
    (tmp_path / "file").write_text("old")
    with pytest.raises(SystemFailure, match="cannot be written"):
        write_itf(tmp_path / "file" / "t.itf.json", relay, lost)
    target = tmp_path / "folder"
    target.mkdir()
    with pytest.raises(SystemFailure, match="folder is a folder"):
        write_itf(target, relay, lost)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "old"


@pytest.mark.parametrize(
    ("sort", "text"),
    [
        (RangeSort(0, 3), "Int"),
        (ArraySort(EnumSort(("A",)), BOOL), "Str -> Bool"),
        (ArraySort(BOOL, ArraySort(BOOL, BOOL)), "Bool -> (Bool -> Bool)"),
        (OptionSort(RecordSort((("a", BOOL), ("b", RangeSort(0, 1))))), "None(UNIT) | Some({ a: Bool, b: Int })"),
        (QueueSort(SetSort(RangeSort(0, 1)), 2), "Seq(Set(Int))"),
    ],
)
def test_types_are_apalaches(sort: Sort, text: str) -> None:
    """Sorts are written in Apalache's type language."""
    assert type_text(sort) == text


def test_sets_are_sorted() -> None:
    """Members of a set come in the order of their sort, so equal states are equal text."""
    sort = SetSort(EnumSort(("Z", "A", "M")))
    assert encode(sort, frozenset({"A", "M", "Z"})) == {"#set": ["Z", "A", "M"]}
    assert encode_plain(frozenset({"b", "a"})) == {"#set": ["a", "b"]}


def test_absent_options() -> None:
    """An absent option is read from its tag or from null; anything untagged is refused."""
    sort = OptionSort(RangeSort(0, 3))
    assert decode(sort, {"tag": "None", "value": "U_OF_UNIT"}, "v") is None
    assert decode(sort, None, "v") is None
    with pytest.raises(Malformed, match="v: expected"):
        decode(sort, 3, "v")


def test_parameters_are_plain_json() -> None:
    """Parameters are written as JSON writes them; what JSON does not know is written by its text."""
    assert parameter_json({"n": 2, "names": ("a", "b"), "set": {2, 1}, "r": range(2), "path": Path("x")}) == {
        "n": 2,
        "names": ["a", "b"],
        "set": [1, 2],
        "r": [0, 1],
        "path": "x",
    }


def test_parameters_of_the_system_do_not_matter_to_reading(relay: System, lost: Trace) -> None:
    """A trace may be read for a variant other than the one it was written for; replay decides what it is worth there."""
    other = replace(relay, variant="fixed", parameters={})
    assert _read(to_itf(relay, lost), other) == lost
