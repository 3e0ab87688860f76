"""Small graphs are decomposed and searched in plain Python, large ones by SciPy: both give the same."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from streamproof.explicit import graph
from streamproof.explicit.liveness import region


def drawn(random: Random) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and targets of a random graph, parallel edges and loops included."""
    n = random.randint(1, 12)
    rows = [random.choices(range(n), k=random.choice((0, 0, 1, 2, 3))) for _ in range(n)]
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    return offsets, np.array([t for row in rows for t in row], dtype=np.int32)


def test_components_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same nodes are together, whatever the components are called."""
    random = Random(11)
    several = 0
    for _ in range(200):
        offsets, targets = drawn(random)
        count, of = graph.strong_components(offsets, targets)
        with monkeypatch.context() as patched:
            patched.setattr(graph, "SMALL", -1)
            other_count, other = graph.strong_components(offsets, targets)
        assert count == other_count
        assert len({(int(a), int(b)) for a, b in zip(of, other, strict=True)}) == count
        several += 1 < count < len(of)
    assert several > 50


def test_nodes_within_reach_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same nodes are reached, each as near, by a way that exists."""
    random = Random(12)
    for _ in range(200):
        offsets, targets = drawn(random)
        n = len(offsets) - 1
        none = np.zeros(n, dtype=np.int32)
        part = region.Region(none, none, offsets, targets, np.zeros(len(targets), dtype=np.int32))
        entries = np.array(sorted(random.sample(range(n), k=random.randint(1, n))), dtype=np.int32)
        found = [part.reached(entries)]
        with monkeypatch.context() as patched:
            patched.setattr(region, "WALKED", -1)
            found.append(part.reached(entries))
        far = []
        for order, before in found:
            distance = {}
            for node in order.tolist():
                distance[node] = 0 if before[node] < 0 else 1 + distance[int(before[node])]
                assert before[node] < 0 or node in targets[offsets[before[node]] : offsets[before[node] + 1]]
            far.append(distance)
        assert far[0] == far[1]
