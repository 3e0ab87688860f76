"""What failover promises of whole behaviours, under weak fairness of the actions of the job, and who breaks it."""

from __future__ import annotations

from typing import Any

import pytest

from shares import share
from streamproof import Spec, eventually, leads_to, temporal
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof.traces.replay import verify
from streamproof_models.failover.machine import Failover
from streamproof_specs.failover.properties import SPEC


@temporal
def comes_to_an_end(m: Failover, s: Any) -> Any:
    """The job finishes or is given up."""
    return eventually(s.job in ("FINISHED", "FAILED"))


@temporal
def recovers(m: Failover, s: Any) -> Any:
    """A task that failed runs again, unless the job ends before."""
    return all(
        leads_to(s.status[t] == "FAILED", s.status[t] == "RUNNING" or s.job in ("FINISHED", "FAILED")) for t in m.tasks
    )


VERDICTS: dict[str | None, tuple[str, str]] = {
    # nobody owes it to a job to be given up: without restarts that help, it may hang
    "region-without-backtracking": ("violated", "holds"),
    "early-release": ("violated", "violated"),
    # the job cannot even begin
    "no-merging": ("violated", "holds"),
    "merge-within-logical-region-only": ("violated", "holds"),
    # it fails and restarts for ever
    "literal-pseudocode": ("violated", "violated"),
}


@pytest.mark.parametrize("variant", share([None, *Failover.variants], 6))
def test_temporal_properties_of_failover(variant: str | None) -> None:
    """The verdict on each variant; each violation is a fair lasso that replay confirms."""
    spec = Spec(Failover, (comes_to_an_end, recovers), {}, SPEC.variant_parameters)
    system = spec.system(variant)
    result = explore(system, SearchOptions(properties=["comes_to_an_end", "recovers"]))
    assert tuple(f.verdict.value for f in result.findings) == VERDICTS.get(variant, ("holds", "holds"))
    for finding in result.findings:
        if finding.verdict is Verdict.VIOLATED:
            assert finding.trace is not None
            verify(system, finding.property, finding.trace)
            assert finding.trace.stutters is (variant != "literal-pseudocode")
