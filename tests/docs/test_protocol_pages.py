"""Each bundled protocol has a page under docs/ and a file of tests under tests/models/, and both name it."""

from __future__ import annotations

import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from nonempty import nonempty
from streamproof.model_registry import bundled, find

ROOT = Path(__file__).resolve().parents[2]
MODELS = [name for name in bundled() if not name.startswith("reference.")]
PAGES = {
    "baton_any_loop": "protocols/baton.md",
    "baton_channels": "protocols/compositions.md",
    "baton_counts": "protocols/baton.md",
    "buffer_pool": "bugbench.md",
    "split_assignment": "bugbench.md",
    "slot_offers": "bugbench.md",
    "job_restarts": "bugbench.md",
    "late_readers": "bugbench.md",
    "blocking_result": "bugbench.md",
    "buffer_shares": "protocols/credit.md",
    "cached_results": "protocols/failover.md",
    "co_location": "protocols/failover.md",
    "credit_barriers": "protocols/credit.md",
    "credit_channel": "how-to-validate-flink-credit.md",
    "checkpoint_views": "protocols/checkpoints.md",
    "credit_connection": "protocols/credit.md",
    "loop_checkpoint_counts": "protocols/loop-checkpoints.md",
    "loop_head": "protocols/cyclic.md",
    "credit_flush": "protocols/credit.md",
    "credit_locks": "protocols/credit.md",
    "cyclic_counts": "protocols/cyclic.md",
    "failover_any_graph": "protocols/failover.md",
    "failover_decisions": "protocols/failover.md",
    "failure_budgets": "protocols/failover.md",
    "lifecycle_failover": "protocols/compositions.md",
    "logical_slot": "protocols/slots.md",
    "partition_counts": "protocols/partition-lifecycle.md",
    "partition_states": "bugbench.md",
    "record_spans": "protocols/credit.md",
    "region_core": "protocols/regions.md",
    "region_placement": "bugbench.md",
    "region_slots": "protocols/compositions.md",
    "scheduling_types": "protocols/regions.md",
    "shared_slot": "bugbench.md",
    "slot_owners": "protocols/slots.md",
    "slot_pool": "protocols/slots.md",
    "slot_views": "protocols/slots.md",
    "task_attempt": "flink-checks.md",
    "task_descriptors": "protocols/regions.md",
}
"""The pages of models that share one, below docs/; any other model has a page of its own name under docs/protocols/."""
TESTS = {
    "baton_channels": "test_compositions.py",
    "buffer_pool": "test_defects.py",
    "split_assignment": "test_defects.py",
    "slot_offers": "test_defects.py",
    "job_restarts": "test_defects.py",
    "late_readers": "test_defects.py",
    "blocking_result": "test_defects.py",
    "buffer_shares": "test_mechanisms.py",
    "cached_results": "test_mechanisms.py",
    "co_location": "test_mechanisms.py",
    "failure_budgets": "test_mechanisms.py",
    "failover": "test_failover_machine.py",
    "lifecycle_failover": "test_compositions.py",
    "loop_checkpoint_counts": "test_loop_checkpoints.py",
    "partition_states": "test_defects.py",
    "record_spans": "test_mechanisms.py",
    "region_core": "test_regions.py",
    "region_placement": "test_defects.py",
    "region_slots": "test_compositions.py",
    "scheduling_types": "test_mechanisms.py",
    "shared_slot": "test_defects.py",
    "task_descriptors": "test_mechanisms.py",
}
"""The tests of models that share a file; those of any other model are in the file of its name."""


def test_the_lists_name_bundled_models() -> None:
    """A model in the lists of this test is bundled, and there are as many bundled protocols as there were, or more."""
    assert {*PAGES, *TESTS} <= {*MODELS}
    assert len(MODELS) >= 25


@pytest.mark.parametrize("model", MODELS)
def test_each_protocol_has_a_page_and_tests(model: str) -> None:
    """The page of a bundled protocol exists and names the model; its file of tests names it, or imports the specification."""
    page = ROOT / "docs" / PAGES.get(model, f"protocols/{model.replace('_', '-')}.md")
    tests = ROOT / "tests" / "models" / TESTS.get(model, f"test_{model}.py")
    [place] = entry_points(group="streamproof.models", name=model)
    for file, named in ((page, model), (tests, f"{model}|{re.escape(place.module)}")):
        assert file.is_file(), f"{model}: write {file.relative_to(ROOT)}, or name another file in this test"
        assert re.search(rf"\b({named})\b", file.read_text(encoding="utf-8")), f"{file.relative_to(ROOT)}: no {named}"


def test_the_page_of_proposals_names_what_exists() -> None:
    """Models are bundled, variants are of a model of their row, machines follow logs; no row is without an answer."""
    text = (ROOT / "docs" / "proposals.md").read_text(encoding="utf-8")
    machines = re.findall(r"^### `(\w+)`", (ROOT / "docs" / "validated.md").read_text(encoding="utf-8"), re.M)
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in re.findall(r"^\|.*\|$", text, re.M)]
    modelled = [row for row in rows if len(row) == 6 and row[0] != "mechanism" and set(row[0]) != {"-"}]
    assert len(modelled) >= 70
    for mechanism, models, variants, page, runtime, logs in nonempty(modelled):
        known = {name: find(name).spec.model.variants for name in re.findall(r"`([\w.]+)`", models)}
        assert {*known} <= {*MODELS}, mechanism
        assert [v for v in re.findall(r"`([\w-]+)`", variants) if not any(v in of for of in known.values())] == [], (
            mechanism
        )
        assert {*re.findall(r"`(\w+)`", logs)} <= {*machines}, mechanism
        assert re.search(r"\]\([\w/-]+\.md", page), mechanism
        assert runtime, mechanism
        assert logs, mechanism
    reasons = [row for row in rows if len(row) == 2 and row[0] not in ("document", "out of scope")]
    assert len(reasons) >= 15
    assert [row for row in reasons if not all(row)] == []
