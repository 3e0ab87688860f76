"""A plugin of pytest: the fixture `drive`, `streamproof.driving.assert_no_difference` with the options of the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of drives."""
    group = parser.getgroup("streamproof")
    group.addoption("--drive-seed", type=int, default=0, help="Seed of the walks of drives.")
    group.addoption("--drive-walks", type=int, default=None, help="Number of random walks of a drive.")


@pytest.fixture
def drive(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Drives an implementation: ``drive(Model, Adapter)``; raises `AssertionError` for a difference."""
    from streamproof.driving.testing import assert_no_difference

    given = {"seed": request.config.getoption("--drive-seed"), "walks": request.config.getoption("--drive-walks")}
    return lambda *args, **more: assert_no_difference(*args, **{**given, **more})
