"""Declarations of the built-in names of kernels, for readers and type checkers; `kernel_compiler` defines their meaning."""

from __future__ import annotations

from typing import TypeAlias

word: TypeAlias = int


class words:
    """Memory of 64-bit elements."""

    def __getitem__(self, at: word) -> word:
        raise NotImplementedError

    def __setitem__(self, at: word, value: word) -> None:
        raise NotImplementedError


class halves(words):
    """Memory of 32-bit elements."""


class shorts(words):
    """Memory of 16-bit elements."""


class bytes_(words):
    """Memory of 8-bit elements."""


def mulhi(a: word, b: word) -> word:
    """The upper half of the product."""
    raise NotImplementedError


def prefetch(p: words, at: word) -> None:
    """Prefetch a cache line."""


def words_at(a: word) -> words:
    """The memory at an address."""
    raise NotImplementedError


def halves_at(a: word) -> halves:
    """The memory at an address."""
    raise NotImplementedError


def shorts_at(a: word) -> shorts:
    """The memory at an address."""
    raise NotImplementedError


def bytes_at(a: word) -> bytes_:
    """The memory at an address."""
    raise NotImplementedError


def address(p: words, at: word) -> word:
    """The address of an element."""
    raise NotImplementedError


def invoke(function: word, *arguments: word) -> word:
    """Call the function at an address."""
    raise NotImplementedError


def copy(to: word, source: word, count: word) -> None:
    """Copy bytes."""


def clear(to: word, count: word) -> None:
    """Set bytes to zero."""


def lanes(p: words, at: word, mask: word, even: word, odd: word) -> word:
    """The words of a line of eight that equal the two values, one bit each."""
    raise NotImplementedError


def lowest(a: word) -> word:
    """The position of the lowest set bit."""
    raise NotImplementedError
