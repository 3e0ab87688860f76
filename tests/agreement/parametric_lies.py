"""Conditions on a free parameter, written in ways that ordinary Python decides without asking the number what it is.

A *lie* is a condition that is true at special values only. A reader that answers for the symbol instead of the number
(by its identity, type, hash, text or a caught exception) takes it for false everywhere.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

IMPORTS = """
import collections, contextlib, copy, dataclasses, enum, functools, itertools, json, math, operator, types, typing
from functools import cached_property, lru_cache, partial, reduce, singledispatch
"""

PLAIN = {
    "equal": "return x == {v}",
    "tuple": "return x in {vs}",
    "list": "return x in [*{vs}]",
    "between": "return {v} <= x <= {v}",
    "bounds": "return not (x < {v}) and not (x > {v})",
    "nested if": "if x < {v}:\n    return False\nreturn x <= {v}",
    "any": "return any(x == y for y in {vs})",
    "product": "return (x - {v}) * (x - {v}) == 0",
}
"""Conditions that the language knows; `{v}` is the first special value, `{vs}` the tuple of all."""

TESTS = {
    "condition is": "return (x > {v} - 1) is True and x <= {v}",
    "match condition": "match x == {v}:\n    case True:\n        return True\nreturn False",
    "map type": "return list(map(type, [x])) == [int] and x == {v}",
    "sorted by id": "return sorted([x, _EIGHT], key=id)[0] is sorted([x, _EIGHT], key=id)[1]",
    "partial of is": "return partial(operator.is_, _EIGHT)(x)",
    "set": "return x in {{*{vs}}}",
    "frozenset of it": "return frozenset([x]) == frozenset([{v}])",
    "dict get": "return {{{v}: True}}.get(x, False)",
    "dict in": "return x in dict.fromkeys({vs})",
    "tuple key": "return (x, 1) in {{({v}, 1): 0}}",
    "KeyError": "try:\n    return {{{v}: True}}[x]\nexcept KeyError:\n    return False",
    "TypeError": "try:\n    return {{{v}: True}}[x]\nexcept (TypeError, KeyError):\n    return False",
    "Exception": "try:\n    return {{{v}: True}}[x]\nexcept Exception:\n    return False",
    "BaseException": "try:\n    return {{{v}: True}}[x]\nexcept BaseException:\n    return False",
    "bare except": "try:\n    return {{{v}: True}}[x]\nexcept:\n    return False",
    "finally": "found = False\ntry:\n    found = {{{v}: True}}[x]\nfinally:\n    return found",
    "suppress": "found = False\nwith contextlib.suppress(Exception):\n    found = {{{v}: True}}[x]\nreturn found",
    "list index": "try:\n    return [{v}, -99].index(x) == 0\nexcept Exception:\n    return False",
    "count": "return [*{vs}].count(x) > 0",
    "str": "return str(x) == '{n}'",
    "f-string": "return f'{{x}}' == '{n}'",
    "f-string !r": "return f'<{{x!r}}>' == '<{n}>'",
    "f-string :d": "try:\n    return f'{{x:d}}' == '{n}'\nexcept Exception:\n    return False",
    "percent": "return '%s' % x == '{n}'",
    "percent d": "try:\n    return '%d' % x == '{n}'\nexcept Exception:\n    return False",
    "percent tuple": "return '%s' % (x,) == '{n}'",
    "format": "return '{{}}'.format(x) == '{n}'",
    "format builtin": "return format(x) == '{n}'",
    "repr of a list": "return repr([x]) == '[{n}]'",
    "json": "try:\n    return json.dumps(x) == '{n}'\nexcept Exception:\n    return False",
    "json default": "return json.dumps([x], default=lambda y: 0) == '[{n}]'",
    "hash": "return hash(x) == hash({v})",
    "hash of a tuple": "return hash((x, 1)) == hash(({v}, 1))",
    "isinstance": "return isinstance(x, int) and x == {v}",
    "type is": "return type(x) is int and x == {v}",
    "type equal": "return type(x) == int and x == {v}",
    "type name": "return type(x).__name__ == 'int' and x == {v}",
    "class": "return x.__class__ is int and x == {v}",
    "issubclass": "return issubclass(type(x), int) and x == {v}",
    "type in a dict": "return {{int: True}}.get(type(x), False) and x == {v}",
    "type in a list": "return type(x) in [int] and x == {v}",
    "hasattr": "return hasattr(x, 'bit_length') and x == {v}",
    "getattr": "return getattr(x, 'real', None) == {v}",
    "callable": "return callable(getattr(x, 'bit_length', None)) and x == {v}",
    "dir": "return 'bit_length' in dir(x) and x == {v}",
    "is": "return x is _EIGHT",
    "is not": "return not (x is not _EIGHT)",
    "id": "return id(x) == id(_EIGHT)",
    "operator is": "return operator.is_(x, _EIGHT)",
    "chained is": "return 1 < 2 and (_EIGHT is x is _EIGHT)",
    "identity in a list": "return any(y is x for y in [_EIGHT])",
    "match value": "match x:\n    case {v}:\n        return True\n    case _:\n        return False",
    "match int": "match x:\n    case int() if x == {v}:\n        return True\nreturn False",
    "match int capture": "match x:\n    case int(y):\n        return y == {v}\n    case _:\n        return False",
    "match tuple": "match (x, 1):\n    case ({v}, 1):\n        return True\nreturn False",
    "match dict": "match {{'k': x}}:\n    case {{'k': {v}}}:\n        return True\nreturn False",
    "match point": "match _Point(x):\n    case _Point(x={v}):\n        return True\nreturn False",
    "len range": "try:\n    return len(range(x)) == {v}\nexcept Exception:\n    return False",
    "list range": "return list(range(x)) == list(range({v}))",
    "sum range": "return sum(1 for _ in range(x)) == {v}",
    "while": "i = 0\nwhile i < x and i < 50:\n    i += 1\nreturn i == {v}",
    "in range": "return x in range({v}, {v} + 1)",
    "max min": "return max(x, {v}) == min(x, {v})",
    "sorted": "return sorted([x, {v}]) == [{v}, x]",
    "sorted identity": "return sorted([{v}, x])[0] is sorted([x, {v}])[0]",
    "abs": "return abs(x - {v}) == 0",
    "truth": "return not (x - {v})",
    "or": "return ((x - {v}) or True) is True",
    "bool": "return bool(x - {v}) is False",
    "filter": "return list(filter(lambda y: y == x, {vs})) != []",
    "map": "return any(map(lambda y: y == x, {vs}))",
    "reduce": "return reduce(lambda a, y: a or bool(y == x), {vs}, False)",
    "next": "return next((y for y in {vs} if y == x), None) is not None",
    "comprehension": "return [y for y in range(30) if y == x] == [{v}]",
    "set comprehension": "return {{y for y in {vs} if y == x}} != set()",
    "int": "try:\n    return int(x) == {v}\nexcept Exception:\n    return False",
    "float": "try:\n    return float(x) == {v}.0\nexcept TypeError:\n    return False",
    "float equal": "try:\n    return x == {v}.0\nexcept Exception:\n    return False",
    "true division": "try:\n    return x / 1 == {v}\nexcept Exception:\n    return False",
    "modulo": "try:\n    return x % 30 == {v} % 30\nexcept Exception:\n    return False",
    "bits": "try:\n    return x ^ {v} == 0\nexcept Exception:\n    return False",
    "divmod": "try:\n    return divmod(x, 30) == divmod({v}, 30)\nexcept Exception:\n    return False",
    "repeat": "try:\n    return 'a' * x == 'a' * {v} and {v} > 0\nexcept Exception:\n    return False",
    "chr": "try:\n    return chr(x + 60) == chr({v} + 60)\nexcept Exception:\n    return False",
    "index": "try:\n    return operator.index(x) == {v}\nexcept TypeError:\n    return False",
    "gcd": "try:\n    return math.gcd(x, 1000) == math.gcd({v}, 1000) and x == {v}\nexcept Exception:\n    return False",
    "int eq": "return int.__eq__({v}, x) is True",
    "dunder eq": "return x.__eq__({v}) is True",
    "copy": "return copy.copy(x) is copy.copy(_EIGHT)",
    "deepcopy": "try:\n    return copy.deepcopy([x]) == [{v}]\nexcept Exception:\n    return False",
    "dataclass equal": "return _Point(x) == _Point({v})",
    "dataclass repr": "return repr(_Point(x)) == '_Point(x={n})'",
    "dataclass hash": "return hash(_Frozen(x)) == hash(_Frozen({v}))",
    "dataclass key": "return _Frozen(x) in {{_Frozen({v}): 1}}",
    "named tuple": "return _Pair(x, 1) == _Pair({v}, 1)",
    "named tuple key": "return _Pair(x, 1) in {{_Pair({v}, 1)}}",
    "enum": "try:\n    return _Enum(x) is _Enum.A\nexcept Exception:\n    return False",
    "counter": "return collections.Counter([x])[{v}] == 1",
    "defaultdict": "return collections.defaultdict(bool, {{{v}: True}})[x]",
    "deque": "return x in collections.deque({vs})",
    "groupby": "return len(list(itertools.groupby([x, {v}]))) == 1",
    "getitem list": "try:\n    return ([False] * {v} + [True] + [False] * 40)[x]\nexcept Exception:\n    return False",
    "getitem text": "try:\n    return ('n' * {v} + 'y' + 'n' * 40)[x] == 'y'\nexcept Exception:\n    return False",
    "slice": "try:\n    return len([0] * 50)[:x] == {v}\nexcept Exception:\n    return False",
    "user eq": "return _Equal(_EIGHT) == x",
    "user eq reflected": "try:\n    return x == _Equal(_EIGHT)\nexcept Exception:\n    return False",
    "user contains": "return x in _Bag(_EIGHT)",
    "user getitem": "return _Bag(_EIGHT)[x]",
    "user call": "return _Bag(_EIGHT)(x)",
    "user init": "return _Made(x).found",
    "user post init": "return _Posted(x).found",
    "user hash": "return hash(_Bag(x)) == hash(_Bag(_EIGHT))",
    "user bool": "return bool(_Truth(x))",
    "user len": "return len(_Truth(x)) == 1",
    "user getattr": "return _Truth(x).anything",
    "user iter": "return list(_Truth(x)) == [True]",
    "user enter": "with _Truth(x) as found:\n    return found",
    "user descriptor": "return _Truth(x).looked",
    "user lt": "return sorted([_Truth(x), _Truth(_EIGHT)])[0].x is x",
    "user radd": "try:\n    return (x + _Truth(0)) == 1\nexcept Exception:\n    return False",
    "single dispatch": "return _dispatched(x)",
    "lru cache": "return _cached(x)",
    "partial": "return partial(_same_object, x)()",
    "decorated": "return _decorated(x)",
    "wrapped twice": "return _wrapped(x)",
    "map user": "return list(map(_same_object, [x])) == [True]",
    "filter user": "return len(list(filter(_same_object, [x]))) == 1",
    "reduce user": "return reduce(_same_two, [x, _EIGHT])",
    "sorted key": "return sorted([x, 0], key=_key)[0] == 0",
    "max key": "return max([(x,), (None,)], key=_key_of_tuple)[0] is x",
    "min key": "return min([(None,), (x,)], key=_key_of_tuple)[0] is None",
    "default argument": "def inner(y=x):\n    return y is _EIGHT\nreturn inner()",
    "lambda default": "return (lambda y=x: y is _EIGHT)()",
    "nested": "def inner():\n    return type(x) is int and x == {v}\nreturn inner()",
    "nested twice": "def inner():\n    def most():\n        return x is _EIGHT\n    return most()\nreturn inner()",
    "star": "return _star(*[x])",
    "double star": "return _star(**{{'x': x}})",
    "keyword": "return _star(x=x)",
    "walrus": "return (y := x) is _EIGHT or y is _EIGHT",
    "generator": "def each():\n    yield x is _EIGHT\nreturn next(each())",
    "recursion": "return _recursive([x])",
    "class inside": "class Inner:\n    found = x is _EIGHT\nreturn Inner.found",
    "class method inside": "class Inner:\n    def ask(self):\n        return x is _EIGHT\nreturn Inner().ask()",
    "eval": "return eval('x is _EIGHT', {{'_EIGHT': _EIGHT, 'x': x}})",
    "exec": "space = {{'x': x, 'e': _EIGHT}}\nexec('found = x is e', space)\nreturn space['found']",
    "locals": "return locals()['x'] is _EIGHT",
    "itemgetter": "return operator.itemgetter(x)({{{v}: True}}) if True else False",
    "attrgetter": "try:\n    return operator.attrgetter('real')(x) == {v}\nexcept AttributeError:\n    return False",
    "methodcaller": "return operator.methodcaller('__eq__', {v})(x) is True",
    "compress": "return list(itertools.compress([1], [x - {v}])) == []",
    "takewhile": "return list(itertools.takewhile(_same_object, [x])) != []",
    "zip": "return [y is z for y, z in zip([x], [_EIGHT])] == [True]",
    "starmap": "return list(itertools.starmap(_same_two, [(x, _EIGHT)])) == [True]",
    "static method": "return _Bag.static(x)",
    "class method": "return _Bag.of(x)",
    "bound method": "f = _Bag(_EIGHT).__contains__\nreturn f(x)",
    "method of a result": "return _Bag(_EIGHT).contains(x)",
    "property": "return _Made(x).asked",
    "cached property": "return _Made(x).kept",
    "assert": "try:\n    assert x is not _EIGHT\n    return False\nexcept AssertionError:\n    return True",
    "chain map": "return collections.ChainMap({{}}, {{{v}: True}}).get(x, False)",
    "context manager": "with _managed(x) as found:\n    return found",
    "typing cast": "return typing.cast(int, x) is _EIGHT",
    "replace": "return dataclasses.replace(_Point(0), x=x).x is _EIGHT",
    "asdict": "return dataclasses.asdict(_Point(x)) == {{'x': {v}}}",
    "astuple": "return dataclasses.astuple(_Point(x)) == ({v},)",
    "vars": "return vars(_Point(x))['x'] is _EIGHT",
    "object getattribute": "return object.__getattribute__(x, '__class__') is int and x == {v}",
    "object repr": "return object.__repr__(x)[:4] == '<int' and x == {v}",
    "object sizeof": "return object.__sizeof__(x) == 28 and x == {v}",
    "object hash": "return object.__hash__(x) == hash({v})",
    "super of it": "return super(object, x).__self_class__ is int and x == {v}",
    "method type": "return types.MethodType(object.__repr__, x)()[:4] == '<int' and x == {v}",
    "translate": "try:\n    return 'a'.translate({{97: x}}) == chr({v})\nexcept TypeError:\n    return False",
    "width": "try:\n    return len('%*d' % (x, 1)) == max(1, {v})\nexcept TypeError:\n    return False",
    "percent c": "try:\n    return '%c' % x == chr({v})\nexcept Exception:\n    return False",
    "ldexp": "try:\n    return next(map(math.ldexp, [1.0], [x])) == 2.0 ** {v}\nexcept TypeError:\n    return False",
    "map int method": "try:\n    return next(map(int.__add__, [x], [0])) == {v}\nexcept TypeError:\n    return False",
    "starmap int eq": "return list(itertools.starmap(int.__eq__, [(x, {v})])) == [True]",
    "exit that swallows": "found = False\nwith _Quiet():\n    found = '%c' % x == chr({v})\nreturn found",
    "bool of a condition": "try:\n    return bool(_Answer(x == {v}))\nexcept TypeError:\n    return False",
    "if a condition": "try:\n    if _Answer(x == {v}):\n        return True\nexcept TypeError:\n    pass\nreturn False",
    "hash that is it": "try:\n    return hash(_Answer(x)) == hash({v})\nexcept TypeError:\n    return False",
    "index that is it": "try:\n    return operator.index(_Answer(x)) == {v}\nexcept TypeError:\n    return False",
    "length hint": "try:\n    return operator.length_hint(_Answer(x), 0) == {v}\nexcept Exception:\n    return False",
    "range to it": "try:\n    return len(range(_Answer(x))) == {v}\nexcept TypeError:\n    return False",
    "other name of is": "return _Aliased(x) == _EIGHT",
    "method in C": "return _InC() == x",
    "property that fails": "return not hasattr(_Answer(x), 'odd') and x == {v}",
    "text of an error": "try:\n    x.odd = 1\nexcept AttributeError as e:\n    return 'int' in str(e) and x == {v}",
    "annotation": "def inner(y: object.__repr__(x)[:4] == '<int'):\n    pass\nreturn inner.__annotations__['y'] and x == {v}",
    "yield from": "def each():\n    yield from [x]\nreturn [y is _EIGHT for y in each()] == [True]",
}
"""The same, each in a way of its own: Python's own answers for an object that is no number."""

SUPPORT = """
def _number(text):
    return int(text)


_EIGHT = int(str({n}))


@dataclasses.dataclass
class _Point:
    x: int


@dataclasses.dataclass(frozen=True)
class _Frozen:
    x: int


class _Pair(typing.NamedTuple):
    x: int
    y: int


class _Enum(enum.Enum):
    A = {n}


class _Equal:
    def __init__(self, held):
        self.held = held

    def __eq__(self, other):
        return other is self.held

    def __hash__(self):
        return 1


class _Answer:
    def __init__(self, held):
        self.held = held

    def __bool__(self):
        return self.held

    def __hash__(self):
        return self.held

    def __index__(self):
        return self.held

    def __length_hint__(self):
        return self.held

    @property
    def odd(self):
        setattr(self.held, "odd", 1)


class _Quiet:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return True


_same = operator.is_


class _Aliased:
    def __init__(self, held):
        self.held = held

    def __eq__(self, other):
        return _same(self.held, other)

    __hash__ = None


class _InC:
    __eq__ = partial(operator.is_, _EIGHT)
    __hash__ = None


class _Bag:
    def __init__(self, held):
        self.held = held

    def __contains__(self, x):
        return x is self.held

    def __getitem__(self, x):
        return type(x) is int and x is self.held

    def __call__(self, x):
        return x is self.held

    def __hash__(self):
        return 1 if self.held is _EIGHT else 2

    def contains(self, x):
        return x is self.held

    @staticmethod
    def static(x):
        return x is _EIGHT

    @classmethod
    def of(cls, x):
        return x is _EIGHT


class _Made:
    def __init__(self, x):
        self.x = x
        self.found = x is _EIGHT

    @property
    def asked(self):
        return self.x is _EIGHT

    @cached_property
    def kept(self):
        return self.x is _EIGHT


@dataclasses.dataclass
class _Posted:
    x: int

    def __post_init__(self):
        self.found = self.x is _EIGHT


class _Looked:
    def __get__(self, owner, kind=None):
        return owner.x is _EIGHT


class _Truth:
    looked = _Looked()

    def __init__(self, x):
        self.x = x

    def __bool__(self):
        return self.x is _EIGHT

    def __len__(self):
        return 1 if self.x is _EIGHT else 0

    def __getattr__(self, name):
        if name != "anything":
            raise AttributeError(name)
        return self.x is _EIGHT

    def __iter__(self):
        return iter([self.x is _EIGHT])

    def __enter__(self):
        return self.x is _EIGHT

    def __exit__(self, *_):
        return False

    def __lt__(self, other):
        return other.x is _EIGHT and self.x is _EIGHT

    def __radd__(self, other):
        return 1 if other is _EIGHT else 0


def _same_object(x):
    return x is _EIGHT


def _same_two(x, y):
    return x is y


def _key(x):
    return 1 if x is _EIGHT else -1 if type(x) is not int else 0


def _key_of_tuple(held):
    return 1 if held[0] is _EIGHT else 0 if held[0] is None else -1


def _star(x):
    return x is _EIGHT


def _recursive(held):
    return held[0] is _EIGHT if len(held) > 3 else _recursive([*held, 0])


@singledispatch
def _dispatched(x):
    return False


@_dispatched.register
def _(x: int):
    return x == {n}


@lru_cache(maxsize=None)
def _cached(x):
    return x is _EIGHT


def _decorator(function):
    @functools.wraps(function)
    def outer(*args, **kwargs):
        return function(*args, **kwargs)

    return outer


@_decorator
def _decorated(x):
    return x is _EIGHT


@_decorator
@_decorator
def _wrapped(x):
    return type(x) is int and x == {n}


@contextlib.contextmanager
def _managed(x):
    yield x is _EIGHT
"""


@dataclass(frozen=True)
class Lie:
    """A condition of a model: `test` and `site` name how it is written, `subject` what it is about, `special` where it is
    true. `module` and `members` and `setup` are lines that it needs, `condition` is its expression."""

    test: str
    site: str
    subject: str
    special: tuple[int, ...]
    module: str
    members: str
    setup: str
    condition: str


PLAIN_SITES = ("method", "module", "property", "static", "class attribute")
SITES = (
    "setup", "setup", "setup", "method", "module", "property", "property", "cached property", "cached property", "static",
    "class method", "lambda", "map", "nested", "nested", "class attribute", "lru", "decorated", "argument", "comprehension",
    "super", "super",
)  # fmt: skip


def spelt(chance: random.Random, value: int) -> str:
    """A number as an expression that is that number; some hide it from a reader of the source."""
    forms = [str(value), str(value), f"({value - 3} + 3)", f"_number('{value}')"]
    if 0 <= value < 30:
        forms += [f"len('{'.' * value}')", f"(len({list(range(value))}) * 1)"]
    return chance.choice(forms)


def lie(chance: random.Random, number: int, subject: str, special: tuple[int, ...], hostile: bool) -> Lie:
    """The condition that `subject` (an expression over `self`) is one of `special`, written in a random way."""
    tests = TESTS if hostile and chance.random() < 0.6 else PLAIN
    test = chance.choice(sorted(tests))
    sites = SITES if tests is TESTS else PLAIN_SITES
    return written_as(test, chance.choice(sites), number, subject, special, spelt(chance, special[0]))


def written_as(test: str, site: str, number: int, subject: str, special: tuple[int, ...], first: str) -> Lie:
    """A condition in one way and at one site; `first` is how its first special value is written."""
    if any(word in test for word in ("match", "float")):  # where Python takes no expression
        first = str(special[0])
    many = f"({', '.join([first, *map(str, special[1:])])},)"
    body = {**PLAIN, **TESTS}[test].format(v=first, vs=many, n=special[0])
    return _placed(site, number, test, subject, special, body)


def _placed(site: str, k: int, test: str, subject: str, special: tuple[int, ...], body: str) -> Lie:
    function = f"def lie{k}(x):\n{_deeper(body)}\n"
    module, members, setup, condition = function, "", "", f"lie{k}({subject})"
    match site:
        case "setup":
            setup, condition = f"self.told{k} = lie{k}({subject})", f"self.told{k}"
        case "method":
            module, members = "", f"def lie{k}(self, x):\n{_deeper(body)}\n"
            condition = f"self.lie{k}({subject})"
        case "property" | "cached property":
            kind = "property" if site == "property" else "cached_property"
            members = f"@{kind}\ndef told{k}(self):\n    return lie{k}({subject})\n"
            condition = f"self.told{k}"
        case "static":
            module, members = "", f"@staticmethod\ndef lie{k}(x):\n{_deeper(body)}\n"
            condition = f"self.lie{k}({subject})"
        case "class method":
            module, members = "", f"@classmethod\ndef lie{k}(cls, x):\n{_deeper(body)}\n"
            condition = f"self.lie{k}({subject})"
        case "lambda":
            module += f"\n\nask{k} = lambda y: lie{k}(y)\n"
            condition = f"ask{k}({subject})"
        case "map":
            setup, condition = f"self.told{k} = list(map(lie{k}, [{subject}]))[0]", f"self.told{k}"
        case "nested":
            module = ""
            inner = _deeper(f"def asked():\n{_deeper(body)}\nreturn asked()")
            members = f"def lie{k}(self):\n    x = {subject}\n{inner}\n"
            condition = f"self.lie{k}()"
        case "class attribute":
            members = f"table{k} = {{'f': lie{k}}}\n"
            condition = f"self.table{k}['f']({subject})"
        case "lru":
            module = f"@lru_cache(maxsize=None)\n{function}"
            setup, condition = f"self.told{k} = lie{k}({subject})", f"self.told{k}"
        case "decorated":
            module = f"@_decorator\n{function}"
        case "argument":
            members = f"def lie{k}(self, f, *args):\n    return f(*args)\n"
            condition = f"self.lie{k}(lie{k}, {subject})"
        case "comprehension":
            setup = f"self.told{k} = [lie{k}(y) for y in ({subject},)][0]"
            condition = f"self.told{k}"
        case "super":
            members = f"def lie{k}(self):\n    return super().__getattribute__('ask{k}')()\n\n"
            members += f"def ask{k}(self):\n    return lie{k}({subject})\n"
            condition = f"self.lie{k}()"
    return Lie(test, site, subject, special, module, members, setup, condition)


def _deeper(text: str) -> str:
    return "\n".join(f"    {row}" if row else row for row in text.split("\n"))
