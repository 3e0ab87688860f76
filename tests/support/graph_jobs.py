"""The iterative jobs of `examples/` on random graphs and texts, and what networkx and `Counter` compute of the same input."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import networkx as nx
import numpy as np

from runtime_runs import example

GRAPH_JOBS = ("pagerank", "components", "shortest_paths", "word_count")


def graph_job(name: str, seed: int, *, most: int = 6, least: float = 1e-3) -> tuple[Any, dict[str, Any]]:
    """The example on a random input of up to `most` vertices, and the results that another library computes.

    `least` is the smallest change of a rank that a vertex passes on; a smaller one takes more steps.
    """
    draw = random.Random(seed)
    module: Any = example(name)
    size = draw.randint(2, most)
    if name == "word_count":
        module.LINES = [" ".join(draw.choices("abcdef", k=draw.randrange(8))) for _ in range(size)]
        return module, {"counts": Counter(word for text in module.LINES for word in text.split())}
    pairs = [(a, b) for a in range(size) for b in range(size) if draw.random() < 0.35]
    if name == "components":
        module.EDGES = pairs = pairs or [(0, 0)]
        parts = nx.connected_components(nx.Graph(pairs))
        expected: dict[str, Any] = {"labels": {v: min(part) for part in parts for v in part}}
    elif name == "shortest_paths":
        module.EDGES = [(a, b, draw.randrange(9)) for a, b in pairs]
        module.START = draw.randrange(size)
        graph = nx.MultiDiGraph()
        graph.add_node(module.START)
        graph.add_weighted_edges_from(module.EDGES)
        expected = {"distances": nx.single_source_dijkstra_path_length(graph, module.START)}
    else:
        out = {a for a, _ in pairs}
        module.EDGES = pairs = [*pairs, *((a, draw.randrange(size)) for a in range(size) if a not in out)]
        vertices = sorted({vertex for edge in pairs for vertex in edge})
        module.LEAST, module.TOLERANCE = least, least * len(vertices) / (1 - module.DAMPING)
        steps = nx.google_matrix(nx.DiGraph(pairs), module.DAMPING, nodelist=vertices)
        ranks = np.linalg.matrix_power(steps, 300)[0]  # networkx's own `pagerank` needs another library
        expected = {"ranks": dict(zip(vertices, map(float, ranks), strict=True))}
    if name != "shortest_paths":
        module.VERTICES = sorted({vertex for edge in pairs for vertex in edge})
    return module, expected


def same(found: Any, expected: Any, tolerance: float = 0) -> bool:
    """Whether results agree: numbers with a fraction within the tolerance, everything else exactly."""
    if isinstance(expected, Mapping):
        return found.keys() == expected.keys() and all(same(found[k], v, tolerance) for k, v in expected.items())
    return abs(found - expected) <= tolerance if isinstance(expected, float) else bool(found == expected)


def file_of(name: str, module: ModuleType, folder: Path) -> Path:
    """A job file with the input of the module, for runs on processes."""
    names = ("EDGES", "VERTICES", "START", "LEAST", "TOLERANCE", "LINES")
    given = "".join(f"{n} = {getattr(module, n)!r}\n" for n in names if hasattr(module, n))
    file = folder / f"{name}.py"
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    file.write_text(f"{source}\n\n{given}", encoding="utf-8")
    return file
