"""Properties of the placement of regions: every region gets its slot, after its inputs."""

from __future__ import annotations

from streamproof import Spec, eventually, invariant, temporal
from streamproof_models.defects.region_placement import RegionPlacement


@invariant
def inputs_first(m, s):
    """A task is scheduled after its input is finished."""
    return all(s.task[t] == "CREATED" or s.task[t - 1] == "FINISHED" for t in range(1, m.regions))


@temporal
def completed(m, s):
    """The job finishes."""
    return eventually(all(at == "FINISHED" for at in s.task))


SPEC = Spec(
    RegionPlacement,
    properties=(inputs_first, completed),
    expected={
        "waits-for-all": {"completed": "violated", "deadlock": "violated"},
        "unfinished-input": {"inputs_first": "violated"},
    },
    variant_parameters={"waits-for-all": {"regions": 3}, "unfinished-input": {"regions": 2}},
)
