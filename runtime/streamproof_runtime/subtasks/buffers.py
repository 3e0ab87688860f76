"""Network buffers: records of one channel that travel, are received and are processed together.

For the protocols a buffer is what moves: it is one event when it is sent, when it is received, and when it is processed.
"""

from __future__ import annotations

from typing import Any

RECORDS = 512
"""Largest number of records in a buffer."""
PIECE = 32
"""Records of a buffer that one step processes: heartbeats are answered between steps."""
BYTES = 32 * 1024
"""Size of a buffer in bytes. A record that is larger spans several."""

Output = tuple[str, int, list[Any]]
"""A channel, an input of its receiver, and records, one after the other."""
