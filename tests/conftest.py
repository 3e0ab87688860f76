"""What holds for every test: where Spark tests run, and how property-based tests draw their examples."""

from __future__ import annotations

import os

import hypothesis
import pytest

# In CI the same examples every time, so a red run can be repeated; elsewhere new ones, so the search goes on.
# No deadline per example: the machine's load decides it, not the code.
hypothesis.settings.register_profile(
    "streamproof", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True
)
hypothesis.settings.load_profile("streamproof")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep all Spark tests on one worker of pytest-xdist: a session takes seconds to start and both cores to run."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
