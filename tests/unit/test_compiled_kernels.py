"""The little language of the fixed loops: what its functions compute is what Python computes on 64-bit words."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.base.seals import CACHE_VARIABLE
from streamproof.explicit.kernel_compiler import translate
from streamproof.explicit.native_code import Module, build

if TYPE_CHECKING:
    from streamproof.explicit.kernel_builtins import halves_at, mulhi, word, words, words_at

MASK = (1 << 64) - 1
WORDS = st.integers(0, MASK)


def _collatz(x: word) -> word:
    steps = 0
    while x != 1:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps += 1
        if steps > 200:
            break
    return steps


def mixed(a: word, b: word) -> word:
    """Arithmetic, comparison and connectives in one value."""
    both = a + 3 * b - (a ^ b)
    both = (both << 5) | (both >> 59)
    if a < b and (b != 7 or a != 3):
        both += mulhi(a, b)
    elif a == b:
        both -= 1
    return both + (a & b) % 1000


def count(n: word) -> word:
    """A call, a loop that leaves out some of its rounds, and one that ends early."""
    total = 0
    for i in range(1, n):
        if i % 3 == 0:
            continue
        total += _collatz(i)
    return total


def sums(to: word, n: word) -> word:
    """Writes running sums of 64-bit words, and of 32-bit halves behind them."""
    whole = words_at(to)
    small = halves_at(to + n * 8)
    total = 0
    for i in range(n):
        total += whole[i]
        whole[i] = total
        small[i] = total
        small[i] += 1
    return _last(whole, n)


def _last(p: words, n: word) -> word:
    return p[n - 1] if n > 0 else 0


@pytest.fixture(scope="module")
def module() -> Module:
    """The kernels above, compiled."""
    text = translate([_collatz, _last, mixed, count, sums], {})
    return build(text, ["mixed", "count", "sums"], optimise=True)


@given(WORDS, WORDS)
def test_words_wrap_round(module: Module, a: int, b: int) -> None:
    """Sums, products and shifts keep the low 64 bits; comparisons are unsigned; the upper half of a product is exact."""
    both = (a + 3 * b - (a ^ b)) & MASK
    both = ((both << 5) | (both >> 59)) & MASK
    if a < b and (b != 7 or a != 3):
        both += a * b >> 64
    elif a == b:
        both -= 1
    assert module.function("mixed", 2)(a, b) == (both + (a & b) % 1000) & MASK


def test_loops_and_calls(module: Module) -> None:
    """Loops, continue, break and calls do what they do in Python."""
    assert module.function("count", 1)(50) == sum(_collatz(i) for i in range(1, 50) if i % 3)


def test_memory(module: Module) -> None:
    """Elements are read and written at their width; what does not fit is cut."""
    values = [5, 1 << 31, (1 << 40) + 7]
    memory = (ctypes.c_uint64 * 5)(*values)
    assert module.function("sums", 2)(ctypes.addressof(memory), 3) == sum(values)
    running = [sum(values[: k + 1]) for k in range(3)]
    assert memory[:3] == running
    halves = ctypes.cast(ctypes.addressof(memory) + 24, ctypes.POINTER(ctypes.c_uint32))
    assert [halves[k] for k in range(3)] == [(value + 1) & 0xFFFFFFFF for value in running]


def test_compiled_code_is_kept(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time, the code comes from the folder; a folder that cannot be made stops nothing."""
    folder = str(tmp_path)
    monkeypatch.setenv(CACHE_VARIABLE, folder)
    text = translate([_collatz, count], {})
    first = build(text, ["count"], optimise=True).function("count", 1)(30)
    import os

    (kept,) = os.listdir(folder)
    before = os.stat(os.path.join(folder, kept)).st_ino
    assert build(text, ["count"], optimise=True).function("count", 1)(30) == first
    assert os.listdir(folder) == [kept]
    assert os.stat(os.path.join(folder, kept)).st_ino == before
    monkeypatch.setenv(CACHE_VARIABLE, "/dev/null/nowhere")
    assert build(text, ["count"], optimise=True).function("count", 1)(30) == first
