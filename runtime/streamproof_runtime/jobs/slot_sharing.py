"""Slot sharing groups: which operators may share slots.

As in Flink, an operator is in the group that it is given; without one in that of its inputs, if all of them are in one group,
else in `DEFAULT`. Feedback is no input here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

DEFAULT = "default"
"""The group of operators whose inputs are in no group, or in different ones."""


def groups(given: Mapping[str, str], inputs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The group of each operator. `given` has the name of its group or nothing, each operator after its inputs; `inputs` are
    pairs of an operator and one that reads it."""
    if not any(given.values()):
        return dict.fromkeys(given, DEFAULT)
    sources: dict[str, list[str]] = {name: [] for name in given}
    for source, target in inputs:
        sources[target].append(source)
    found: dict[str, str] = {}
    for name, group in given.items():
        of_inputs = {found[source] for source in sources[name]}
        found[name] = group or (of_inputs.pop() if len(of_inputs) == 1 else DEFAULT)
    return found
