"""Ways to learn what a free parameter is without asking it; none may prove what is false at 64."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nonempty import nonempty
from shares import share

MODEL = """
import abc, collections, contextlib, copy, dataclasses, enum, functools, gc, itertools, json, math, operator, re, sys
import threading, types, typing
from functools import cached_property, partial
from streamproof import Model, Range, State, action, invariant, require
from streamproof.language.free.symbolic_parameters import is_free

BIG = len("ab" * 32)
{before}


class Trap(Model):
    n: int = 3
    limits = {{"n": (1, None)}}
    check_deadlock = False

    def setup(self):
        self.lie = self.ask(self.n)

    def ask(self, x):
{body}

    def state(self):
        return State(x=Range(0, self.n + 1))

    @action
    def go(self, s):
        require(s.x < self.n or self.lie)
        s.x = min(s.x + 1, self.n + 1)

    @invariant
    def inside(self, s):
        # false where the lie is true
        return s.x <= self.n
"""
LEAKS = {
    "attribute by object": (
        """\

""",
        """\
return object.__getattribute__(x, '__class__') is int and x == BIG
""",
    ),
    "text by object": (
        """\

""",
        """\
return object.__repr__(x)[:4] == '<int' and x == BIG
""",
    ),
    "size by object": (
        """\

""",
        """\
return object.__sizeof__(x) == object.__sizeof__(1) and x == BIG
""",
    ),
    "hash by object": (
        """\

""",
        """\
return object.__hash__(x) == object.__hash__(BIG)
""",
    ),
    "truth that is no truth value": (
        """\
class K:
    def __init__(self, x): self.x = x
    def __bool__(self): return chr(63) < chr(64) and self.x == BIG
""",
        """\
try:
    return bool(K(x))
except TypeError:
    return False
""",
    ),
    "truth of an if": (
        """\
SIZE = BIG
class K:
    def __init__(self, x): self.x = x
    def __bool__(self): return self.x == SIZE * 1
""",
        """\
try:
    if K(x):
        return True
except TypeError:
    pass
return False
""",
    ),
    "hash that is no hash": (
        """\
class K:
    def __init__(self, x): self.x = x
    def __hash__(self): return self.x
""",
        """\
try:
    return chr(hash(K(x))) == '@'
except TypeError:
    return False
""",
    ),
    "index that is no index": (
        """\
class K:
    def __init__(self, x): self.x = x
    def __index__(self): return self.x
""",
        """\
try:
    return chr(operator.index(K(x))) == '@'
except TypeError:
    return False
""",
    ),
    "range up to an object": (
        """\
class K:
    def __init__(self, x): self.x = x
    def __index__(self): return self.x
""",
        """\
try:
    return len(range(K(x))) == BIG
except TypeError:
    return False
""",
    ),
    "hint of a length": (
        """\
class K:
    def __init__(self, x): self.x = x
    def __length_hint__(self): return self.x
""",
        """\
try:
    return operator.length_hint(K(x), 0) == BIG
except TypeError:
    return False
""",
    ),
    "translated text": (
        """\

""",
        """\
try:
    return 'a'.translate({97: x}) == '@'
except TypeError:
    return False
""",
    ),
    "width of a text": (
        """\

""",
        """\
try:
    return len('%*d' % (x, 1)) == BIG
except TypeError:
    return False
""",
    ),
    "function of math": (
        """\

""",
        """\
try:
    return next(map(math.ldexp, [1.0], [x])) == 18446744073709551616.0
except TypeError:
    return False
""",
    ),
    "method of int in map": (
        """\

""",
        """\
try:
    return next(map(int.bit_length, [x])) == 7
except TypeError:
    return False
""",
    ),
    "method of int in starmap": (
        """\

""",
        """\
try:
    return list(itertools.starmap(int.__eq__, [(x, BIG)])) == [True]
except TypeError:
    return False
""",
    ),
    "operator of int in map": (
        """\

""",
        """\
try:
    return next(map(int.__add__, [x], [0])) == BIG
except TypeError:
    return False
""",
    ),
    "other name of is_": (
        """\
same = operator.is_
class K:
    def __init__(self, x): self.x = x
    def __bool__(self): return same(self.x, BIG)
""",
        """\
return bool(K(x))
""",
    ),
    "other name of type": (
        """\
kind = type
class K:
    def __init__(self, x): self.x = x
    def __bool__(self): return kind(self.x).__name__ == 'int' and self.x == BIG
""",
        """\
return bool(K(x))
""",
    ),
    "other name of id": (
        """\
ident = id
class K:
    def __init__(self, x): self.x = x
    def __len__(self): return 1 if ident(self.x) == ident(BIG) else 0
""",
        """\
return len(K(x)) == 1
""",
    ),
    "super of a number": (
        """\

""",
        """\
return super(object, x).__self_class__ is int and x == BIG
""",
    ),
    "method that is a partial": (
        """\
class K:
    __eq__ = partial(operator.is_, BIG)
    __hash__ = None
""",
        """\
return K() == x
""",
    ),
    "static method that is a partial": (
        """\
class K:
    __contains__ = staticmethod(partial(operator.is_, BIG))
""",
        """\
return x in K()
""",
    ),
    "text of a sort": (
        """\

""",
        """\
return repr(Range(0, x)) == repr(Range(0, BIG))
""",
    ),
    "equality of sorts": (
        """\

""",
        """\
return Range(0, x) == Range(0, BIG)
""",
    ),
    "property that fails": (
        """\
class K:
    def __init__(self, x): self.x = x
    @property
    def v(self):
        setattr(self.x, 'foo', 1)
""",
        """\
return hasattr(K(x), 'v') or x == BIG
""",
    ),
    "text of an error": (
        """\

""",
        """\
try:
    x.foo = 1
except AttributeError as e:
    return 'int' in str(e) and x == BIG
""",
    ),
    "context manager that swallows": (
        """\
class C:
    def __enter__(self): return self
    def __exit__(self, *a): return True
""",
        """\
found = False
with C():
    found = '%c' % x == '@'
return found
""",
    ),
    "finally that returns": (
        """\

""",
        """\
found = False
try:
    found = '%c' % x == '@'
finally:
    return found
""",
    ),
    "suppress as the second manager": (
        """\

""",
        """\
found = False
with contextlib.ExitStack() as st, contextlib.suppress(TypeError):
    st.callback(print)
    found = '%c' % x == '@'
return found
""",
    ),
    "context manager that catches": (
        """\
@contextlib.contextmanager
def quiet():
    try:
        yield
    except TypeError:
        pass
""",
        """\
found = False
with quiet():
    found = '%c' % x == '@'
return found
""",
    ),
    "call of a metaclass": (
        """\
class Meta(type):
    def __call__(cls, x): return x is BIG
class K(metaclass=Meta): pass
""",
        """\
return K(x)
""",
    ),
    "method made at run time": (
        """\

""",
        """\
return types.MethodType(object.__repr__, x)()[:4] == '<int' and x == BIG
""",
    ),
    "function from text": (
        """\
ns = {'BIG': BIG}
exec('def look(x):\\n    return x is BIG', ns)
look = ns['look']
""",
        """\
return look(x)
""",
    ),
    "function from text and a global list": (
        """\
G = []
ns = {'BIG': BIG, 'G': G}
exec('def look():\\n    return G[0] is BIG', ns)
look = ns['look']
""",
        """\
G.append(x)
return look()
""",
    ),
    "function made of code": (
        """\
def other(self, x): return x is BIG
""",
        """\
return types.FunctionType(other.__code__.replace(co_name='z'), globals())(self, x)
""",
    ),
    "equality of data": (
        """\
@dataclasses.dataclass
class P:
    x: int
""",
        """\
try:
    return P(x) == P(BIG)
except Exception:
    return False
""",
    ),
    "key of a sort": (
        """\

""",
        """\
l = [x, BIG]
l.sort(key=id)
return l[0] is l[1]
""",
    ),
    "default of a dict": (
        """\

""",
        """\
d = collections.defaultdict(partial(operator.is_, BIG, x))
return d['a']
""",
    ),
    "text of bytes": (
        """\

""",
        """\
try:
    return b'%c' % x == b'@'
except TypeError:
    return False
""",
    ),
    "places after the point": (
        """\

""",
        """\
try:
    return len('%.*f' % (x, 1.0)) == 66
except TypeError:
    return False
""",
    ),
    "attribute by attrgetter": (
        """\

""",
        """\
return operator.attrgetter('__class__')(x) is int and x == BIG
""",
    ),
    "method by methodcaller": (
        """\

""",
        """\
try:
    return operator.methodcaller('translate', {97: x})('a') == '@'
except TypeError:
    return False
""",
    ),
    "length of an object": (
        """\
class K:
    def __init__(self, x): self.x = x
    def __len__(self): return self.x
""",
        """\
try:
    return len(K(x)) == BIG
except TypeError:
    return False
""",
    ),
    "thread": (
        """\
import threading
""",
        """\
r = []
def f():
    r.append(x is BIG)
t = threading.Thread(target=f)
t.start(); t.join()
return bool(r and r[0])
""",
    ),
    "every object there is": (
        """\
import gc
""",
        """\
return not any(type(o).__name__ == 'SymbolicInt' for o in gc.get_objects()) and x == BIG
""",
    ),
    "text with local names": (
        """\

""",
        """\
return eval('x is BIG')
""",
    ),
    "other name of eval": (
        """\

""",
        """\
e = eval
return e('x is BIG', {'x': x, 'BIG': BIG})
""",
    ),
    "annotation of an argument": (
        """\

""",
        """\
def f(y: object.__repr__(x)[:4] == '<int'): pass
return f.__annotations__['y'] and x == BIG
""",
    ),
    "annotation in a class": (
        """\

""",
        """\
class C:
    y: object.__repr__(x)[:4] == '<int'
return C.__annotations__['y'] and x == BIG
""",
    ),
    "decorator": (
        """\

""",
        """\
@partial(operator.is_, x)
def f(): pass
return f or (object.__sizeof__(x) == 28 and x == BIG)
""",
    ),
    "generator that catches": (
        """\

""",
        """\
def g():
    try:
        yield '%c' % x
    except TypeError:
        yield 'z'
return next(g()) == '@'
""",
    ),
    "lambda that fails": (
        """\
class K:
    def __init__(self, x): self.x = x
    v = property(lambda self: setattr(self.x, 'foo', 1))
""",
        """\
return not hasattr(K(x), 'v') and x == BIG
""",
    ),
    "property of object": (
        """\
p = property(object.__repr__)
""",
        """\
return property.__get__(p, x)[:4] == '<int' and x == BIG
""",
    ),
    "size of an object": (
        """\

""",
        """\
return sys.getsizeof(x) == 28 and x == BIG
""",
    ),
    "what pickle asks": (
        """\

""",
        """\
return object.__reduce_ex__(x, 2)[1][0] is int and x == BIG
""",
    ),
    "what is streamproof's own": (
        """\
from streamproof.language.free.symbolic_parameters import is_free
""",
        """\
return not is_free(x) and x == BIG
""",
    ),
    "method from text": (
        """\
space = {'BIG': BIG}
exec('def __eq__(self, other): return other is BIG', space)
class K:
    __eq__ = space['__eq__']
    __hash__ = None
""",
        """\
return K() == x
""",
    ),
    "text called by the library": (
        """\
space = {'BIG': BIG}
exec('def look(x, kept): kept.append(x is BIG)', space)
look = space['look']
""",
        """\
kept = []
with contextlib.ExitStack() as stack:
    stack.callback(look, x, kept)
return kept[0]
""",
    ),
    "library's order of the user's": (
        """\
@functools.total_ordering
class K:
    def __init__(self, x): self.x = x
    def __eq__(self, other): return self.x is other
    def __lt__(self, other): return False
""",
        """\
return K(x) <= BIG
""",
    ),
}
"""Lines before the model, and how it asks whether its parameter is 64."""
OUTSIDE = {
    "data classes and properties": (
        """\
@dataclasses.dataclass
class P:
    x: int
    y: int = 2
class Q(P):
    def twice(self): return self.x + self.x
    @property
    def more(self): return self.x + 1
    @cached_property
    def kept(self): return self.x + 2
""",
        """\
p = P(x)
q = Q(x, 3)
r = dataclasses.replace(q, x=x + 1)
self.v = [p.x, q.twice(), q.more, q.kept, r.x]
return False
""",
    ),
    "look-ups that fail": (
        """\

""",
        """\
try:
    {}['k']
except KeyError:
    pass
try:
    [][0]
except IndexError:
    pass
if getattr(self, 'cache', None) is None and not hasattr(self, 'other'):
    self.cache = {'a': x}
try:
    self.nothing
except AttributeError:
    self.nothing = 1
return False
""",
    ),
    "errors that the model raises": (
        """\
class Bad(Exception): pass
def chk(v):
    if v is None:
        raise Bad('no')
    return v
""",
        """\
try:
    chk(None)
except Bad as e:
    self.text = str(e)
return False
""",
    ),
    "caches and context managers": (
        """\
@functools.lru_cache(maxsize=None)
def fib(k): return k if k < 2 else fib(k-1) + fib(k-2)
@contextlib.contextmanager
def cm(v):
    yield v
""",
        """\
with cm(x) as y:
    z = y + fib(5)
with contextlib.suppress(KeyError):
    {}['a']
return False
""",
    ),
    "texts": (
        """\
import json, re, math
""",
        """\
w = sorted(['bb', 'a'], key=len)
t = ', '.join(map(str, [1, 2])) + f'{3}' + '%d' % 4 + json.dumps({'a': [1]})
re.match('a', 'ab')
self.k = math.comb(5, 2) + int('3') + max(3, 4) + len(t.split(','))
assert isinstance(self, Trap) and type(self).__name__ == 'Trap' and w
return False
""",
    ),
    "tuples and enums": (
        """\
class T(tuple):
    pass
class NT(collections.namedtuple('NT', 'a b')):
    def s(self): return self.a + self.b
class E(enum.Enum):
    A = 1
""",
        """\
t = NT(x, 1)._replace(b=2)
u = T((x, 2))
v = [a + b for a, b in zip([x], [1])] + [x] * 2
d = {e.name: x for e in E}
d.setdefault('q', []).append(x) if 'q' in d else d.update(q=x)
self.z = functools.reduce(operator.add, [x, 1, *v, t.s(), u[0]])
return False and E(1) is E.A
""",
    ),
    "methods with underscores": (
        """\
class Base:
    def __init__(self, x): self.x = x
    def __add__(self, o): return Base(self.x + o.x)
    def __getitem__(self, i): return [self.x, i][i]
    def __iter__(self): yield self.x
    def __len__(self): return 2
    def __contains__(self, o): return o == 1
    def __call__(self, y): return self.x + y
    def __enter__(self): return self
    def __exit__(self, *a): return False
    def __getattr__(self, n):
        raise AttributeError(n)
class Sub(Base):
    def __init__(self, x):
        super().__init__(x)
        super(Sub, self).__init__(x)
        Base.__init__(self, x)
""",
        """\
s = Sub(x) + Base(1)
with s as q:
    for v in q:
        self.v = v + s(2) + s[0]
return len(s) == 3 or 5 in s or hasattr(s, 'gone')
""",
    ),
    "classes, generators and keys inside": (
        """\

""",
        """\
class In:
    y: int = 3
    def go(self, v: int) -> int: return v + self.y
def gen():
    yield from [x, 1]
self.l = list(map(In().go, gen()))
match 'a':
    case 'b': return True
self.g = operator.attrgetter('y')(In()) + next(iter([x])) + sum(gen())
self.part = partial(In().go, x)()
self.s = sorted([(1, x), (0, x)], key=operator.itemgetter(0))
self.groups = [(k, list(g)) for k, g in itertools.groupby([(1, x), (2, x)], key=lambda p: p[0])]
return False
""",
    ),
    "classes of typing and collections": (
        """\
import abc, typing
class A(abc.ABC):
    @abc.abstractmethod
    def f(self): ...
V = typing.TypeVar('V')
class G(typing.Generic[V]):
    def __init__(self, v): self.v = v
class C(A):
    def f(self): return 1
@dataclasses.dataclass(frozen=True)
class F:
    x: int
    z: list = dataclasses.field(default_factory=list)
class D(typing.NamedTuple):
    a: int
    b: int = 2
class TD(typing.TypedDict):
    a: int
""",
        """\
f = F(x)
td = TD(a=x)
d = D(x)
ns = types.SimpleNamespace(x=x)
self.q = [C().f(), G(x).v, G[int](x).v, f.x, td['a'], d.b, ns.x, collections.deque([x])[0], collections.OrderedDict(a=x)['a']]
self.m = collections.defaultdict(list)
self.m['a'].append(x)
copy_ = dict(self.m)
print(end='')
return False
""",
    ),
}
"""Ordinary Python that is not part of the language, although it decides nothing by a free parameter."""


def written(folder: Path, before: str, body: str) -> Path:
    """A file with a model that asks in this way."""
    path = folder / "trap.py"
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    path.write_text(MODEL.format(before=before, body=lines), encoding="utf-8")
    return path


def lines_of(text: str, part: str) -> Iterator[int]:
    """The lines of `text` at which `part` stands."""
    first = text[: text.index(part)].count("\n") + 1
    yield from range(first, first + part.count("\n") + 1)


def refused_at_its_line(streamproof: Any, folder: Path, before: str, body: str) -> str:
    """The refusal of a model that asks in this way; asserts that it names a line of the question, and a remedy."""
    path = written(folder, before, body)
    done = streamproof("prove", "trap.py", "--any", "n")
    assert done.code == 150, (done.out, done.err)
    found = re.search(r"trap\.py:(\d+): .+\n  \S", done.err)
    assert found is not None, done.err
    text = path.read_text(encoding="utf-8")
    own = [
        *(lines_of(text, before) if before else ()),
        *lines_of(text, "    def ask"),
        *lines_of(text, "\n".join(f"        {line}" for line in body.splitlines())),
    ]
    assert int(found[1]) in own, (done.err, own)
    return str(done.err)


@pytest.mark.parametrize("leak", share(LEAKS, 6))
def test_a_leak_is_refused_at_its_line(streamproof: Any, folder: Path, leak: str) -> None:
    """Whoever looks at a free parameter, or lives on an error that a number does not cause, is named with the line."""
    refused_at_its_line(streamproof, folder, *LEAKS[leak])


@pytest.mark.parametrize("way", share(OUTSIDE, 3))
def test_ordinary_python_is_refused_at_its_line(streamproof: Any, folder: Path, way: str) -> None:
    """What is not part of the language does not compute with free parameters; it does with numbers."""
    before, body = OUTSIDE[way]
    refused_at_its_line(streamproof, folder, before, body)
    assert streamproof("check", "trap.py").code == 0


@pytest.mark.parametrize("way", share(OUTSIDE, 3))
def test_ordinary_python_without_free_parameters_is_read(streamproof: Any, folder: Path, way: str) -> None:
    """Whichever way Python is written, it runs as it is where it gets neither the model nor a free parameter."""
    before, body = OUTSIDE[way]
    lines = "\n".join(f"    {line}" for line in ("class Trap: pass", "self = Trap()", *body.splitlines()))
    path = written(folder, f"{before}\ndef asked(x):\n{lines}\n", "return asked(x)")
    text = path.read_text(encoding="utf-8").replace("self.ask(self.n)", "self.ask(5)")
    path.write_text(text, encoding="utf-8")
    done = streamproof("prove", "trap.py", "--any", "n")
    assert done.code == 0, (done.out, done.err)


PASSED_ON = {
    "attributes of an object": ("vars(self)['n'] is BIG", "object.__getattribute__(self, 'n') is BIG"),
    "a copy of an object": ("copy.copy(self).n is BIG", "type(copy.copy(self).__dict__['n']) is not int"),
    "every object there is": (
        "any(type(o).__name__ == 'SymbolicInt' for o in gc.get_objects())",
        "not any(o is BIG for o in gc.get_referents(self.__dict__))",
    ),
    "a thread": ("self.threaded()", "self.threaded() and self.n == BIG"),
    "a swallowed error": ("self.swallowed() and self.n == BIG", "not hasattr(self, 'n')"),
    "text of the model": ("'64' in repr(self.settings())", "str(vars(self)).count('64') > 0"),
}
"""Ways of ordinary Python to look at the model instead of the parameter."""
SWALLOWED = """\
    def swallowed(self):
        try:
            return not self.n
        except Exception:
            return True

    def threaded(self):
        found = []
        thread = threading.Thread(target=lambda: found.append(self.n is BIG))
        thread.start()
        thread.join()
        return found == [True]
"""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("way", share(PASSED_ON, 2))
def test_looking_at_the_model_is_refused(streamproof: Any, folder: Path, way: str) -> None:
    """An attribute that depends on a free parameter is not read around its guard either."""
    for question in nonempty(PASSED_ON[way]):
        path = written(folder, "", f"return {question}")
        text = path.read_text(encoding="utf-8").replace("self.ask(self.n)", "self.ask(5)")
        path.write_text(text.replace("    def state(self)", f"{SWALLOWED}\n    def state(self)"), encoding="utf-8")
        done = streamproof("prove", "trap.py", "--any", "n")
        assert done.code == 150, (question, done.out, done.err)
        assert re.search(r"trap\.py:\d+: ", done.err), (question, done.err)


LOOK = "object.__getattribute__({}, 'n') is BIG"
EQUAL = f"class K:\n    def __eq__(self, x): return {LOOK.format('x')}\nJ = K()"
GIVEN = {
    "the descriptor of attributes": ("", "", "vars(Model)['__dict__'].__get__(self)['n'] is BIG"),
    "what pickle asks of a model": ("", "", "self.__getstate__()['n'] is BIG"),
    "a name that is computed": ("", "", "getattr(object, '__getattri' + 'bute__')(self, 'n') is BIG"),
    "an import inside": ("def look(x):\n    import gc\n    return gc.get_referents(x)", "", "len(look(self)) == BIG"),
    "a method of a class": (f"class K:\n    def look(self, x): return {LOOK.format('x')}", "", "K().look(self)"),
    "the constructor of a class": (
        f"class K:\n    def __init__(self, x): self.r = {LOOK.format('x')}",
        "",
        "K(self).r",
    ),
    "a table of functions": (f"T = [lambda x: {LOOK.format('x')}]", "", "T[0](self)"),
    "a function from text": ("E = {'BIG': BIG}\nexec('def f(x): return vars(x)[\"n\"] is BIG', E)", "", "E['f'](self)"),
    "a comparison": (EQUAL, "", "J == self"),
    "a member": (EQUAL, "", "self in (1, J)"),
    "a comparison of lists": (
        EQUAL,
        "",
        "[self] == [J]",
    ),
    "a sum": (f"class K:\n    def __add__(self, x): return {LOOK.format('x')}\nJ = K()", "", "J + self"),
    "a look-up": (f"class K:\n    def __getitem__(self, x): return {LOOK.format('x')}\nJ = K()", "", "J[self]"),
    "a set": (
        f"class K:\n    def __eq__(self, x): return {LOOK.format('x')}\n    __hash__ = None\nJ = K()",
        "",
        "{self, J} == 1",
    ),
    "its own attribute access": (
        "",
        "def __getattribute__(self, name): return object.__getattribute__(self, name)",
        "self.n is BIG",
    ),
    "its own attributes": ("", f"def __getattr__(self, name): return {LOOK.format('self')}", "self.other"),
    "its own truth": ("", f"def __bool__(self): return {LOOK.format('self')}", "bool(self)"),
    "its own assignment": ("", "def __setattr__(self, k, v): object.__setattr__(self, k, v)", "self.lie"),
    "its own constructor": ("", "def __init__(self, **given): super().__init__(**given)", "self.lie"),
    "a property that is set": ("", "m = property(lambda self: 1, lambda self, v: None)", "self.m == 2"),
    "a descriptor": (
        f"class D:\n    def __get__(self, x, k=None): return x and {LOOK.format('x')}",
        "q = D()",
        "self.q",
    ),
    "a property of another class": (
        f"class P(property):\n    def __get__(self, x, k=None): return x and {LOOK.format('x')}",
        "q = P(lambda self: False)",
        "self.q",
    ),
    "a cache of a method": ("", "@functools.lru_cache\n    def q(self): return vars(self)['n'] is BIG", "self.q()"),
    "a method with an argument": ("", "q = functools.partialmethod(operator.is_, BIG)", "self.q()"),
    "a false module": ("def f(x): return x is BIG\nf.__module__ = Range.__module__", "", "f(self.n)"),
    "a false class": (
        "class Range(int):\n    def __new__(cls, x): return int.__new__(cls, x is BIG)\nRange.__module__ = State.__module__",
        "",
        "Range(self.n) == 1",
    ),
}
"""Lines before the model, a member of it, and a question that ordinary Python answers which gets the model."""


@pytest.mark.parametrize("site", ["setup", "rule"])
@pytest.mark.parametrize("way", share(GIVEN, 3))
def test_ordinary_python_does_not_get_the_model(streamproof: Any, folder: Path, way: str, site: str) -> None:
    """Neither a function nor a special method, of the model or of another class, is passed a model with free parameters."""
    before, member, question = GIVEN[way]
    path = written(folder, before, f"return {question}")
    text = path.read_text(encoding="utf-8").replace("    def setup(self)", f"    {member}\n\n    def setup(self)")
    if site == "rule":
        text = text.replace("self.ask(self.n)", "False").replace("or self.lie", "or self.ask(0)")
    path.write_text(text, encoding="utf-8")
    done = streamproof("prove", "trap.py", "--any", "n")
    assert done.code == 150, (done.out, done.err)
    assert re.search(r"trap\.py:\d+: ", done.err), done.err


def test_a_model_with_a_metaclass_is_refused(streamproof: Any, folder: Path) -> None:
    """A metaclass is passed the free parameters before the model has them."""
    meta = "class Meta(type):\n    def __call__(cls, **given):\n        made = super().__call__(**given)\n        return made"
    path = written(folder, meta, "return False")
    text = path.read_text(encoding="utf-8").replace("class Trap(Model)", "class Trap(Model, metaclass=Meta)")
    path.write_text(text, encoding="utf-8")
    done = streamproof("prove", "trap.py", "--any", "n")
    assert done.code == 150, (done.out, done.err)
    assert "trap.py:" in done.err
