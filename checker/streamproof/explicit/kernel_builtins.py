"""Declarations of the built-in names of kernels, for readers and type checkers; `kernel_compiler` defines their meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

word: TypeAlias = int


class words(list[word]):
    """Memory of 64-bit elements."""


class halves(words):
    """Memory of 32-bit elements."""


class shorts(words):
    """Memory of 16-bit elements."""


class bytes_(words):
    """Memory of 8-bit elements."""


words_at: Callable[[word], words]
halves_at: Callable[[word], halves]
shorts_at: Callable[[word], shorts]
bytes_at: Callable[[word], bytes_]
"""The memory at an address."""
mulhi: Callable[[word, word], word]
"""The upper half of the product."""
prefetch: Callable[[words, word], None]
"""Prefetch a cache line."""
address: Callable[[words, word], word]
"""The address of an element."""
invoke: Callable[..., word]
"""Call the function at an address."""
copy: Callable[[word, word, word], None]
"""Copy bytes: to, from, count."""
clear: Callable[[word, word], None]
"""Set bytes to zero: from, count."""
lanes: Callable[[words, word, word, word, word], word]
"""The words of a line of eight that equal the two values, one bit each."""
lowest: Callable[[word], word]
"""The position of the lowest set bit."""
