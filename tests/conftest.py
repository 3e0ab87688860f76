"""What holds for every test: where Spark tests run, how examples are drawn, and when garbage is collected."""

from __future__ import annotations

import functools
import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import hypothesis
import pytest

pytest_plugins = ["long_shares"]
pytest.register_assert_rewrite("model_verdicts")  # its assertions show their values, as those of tests do

# A caller may ignore Ctrl-C, as a script does for a job in the background: programs under test would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

gc.set_threshold(30_000)
"""New objects before garbage is collected: with the usual 700, that takes an eighth of the processor time, with 10,000 a
fourteenth."""

# In CI the same examples every time, so a red run can be repeated; elsewhere new ones, so the search goes on.
# No deadline per example: the machine's load decides it, not the code.
hypothesis.settings.register_profile(
    "streamproof", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True
)
hypothesis.settings.load_profile("streamproof")
MADE = 150
"""New modules after which those that tests have written are forgotten."""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep all Spark tests on one worker of pytest-xdist: a session takes seconds to start and both cores to run. A test
    that takes minutes may take an hour on a loaded machine before it counts as one that hangs."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
        if item.get_closest_marker("long") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(3600))


def pytest_collection_finish() -> None:
    """Modules and tests stay until the end: garbage is looked for in what is made after them."""
    gc.collect()
    gc.freeze()


INTERPRETED = (
    "--conf spark.sql.codegen.wholeStage=false --conf spark.sql.codegen.factoryMode=NO_CODEGEN"
    " --conf spark.sql.adaptive.enabled=false pyspark-shell"
)
"""Options of Spark for tables of a few rows: queries are not compiled, nor planned again after each stage."""


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A running local session: whatever runs on Spark in this process joins it. The long tests have Spark as users do."""
    from streamproof.pipeline.session import spark_session

    with ExitStack() as running:
        with pytest.MonkeyPatch.context() as patch:
            items = request.session.items
            if not any(item.get_closest_marker("long") and item.get_closest_marker("spark") for item in items):
                patch.setenv("PYSPARK_SUBMIT_ARGS", INTERPRETED)
            session = running.enter_context(spark_session("local[2]"))
        yield session


@pytest.fixture(scope="session", autouse=True)
def _bundled_models_are_compiled_once() -> Iterator[None]:
    """Tests ask for the systems of bundled models again and again, and nothing of a system can be changed."""
    from streamproof.language.declare import spec

    made: dict[Any, Any] = {}
    compiled = spec.compile_model

    def once(model: Any, properties: Any = (), **more: Any) -> Any:
        if not type(model).__module__.startswith("streamproof_models."):
            return compiled(model, properties, **more)
        key = type(model), repr(sorted(model.settings().items())), tuple(properties), repr(sorted(more.items()))
        if key not in made:
            made[key] = compiled(model, properties, **more)
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spec, "compile_model", once)
        yield


_counted = [0]
"""Number of modules when those that tests have written were last looked for."""


@pytest.fixture(autouse=True)
def _what_tests_made_is_forgotten(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Now and then, models that tests wrote and what is known of them: a heap of millions makes every later test slow."""
    yield
    if len(sys.modules) <= _counted[0] + MADE:
        return
    place = str(tmp_path_factory.getbasetemp())
    made = [name for name, m in sys.modules.items() if (getattr(m, "__file__", None) or "").startswith(place)]
    for name in made:
        del sys.modules[name]
    if made:
        for name in [name for name in sys.modules if name.startswith("streamproof.")]:
            for found in vars(sys.modules[name]).values():
                if type(found) is functools._lru_cache_wrapper:
                    found.cache_clear()
        gc.collect()
    _counted[0] = len(sys.modules)


@pytest.fixture(autouse=True)
def _the_recursion_limit_stays() -> Iterator[None]:
    """A library such as mypy raises it for good, and what Python can compile depends on it."""
    before = sys.getrecursionlimit()
    yield
    sys.setrecursionlimit(before)


@pytest.fixture(scope="module", autouse=True)
def _caches_of_a_file_end_with_it(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a file of tests computes once for all of them, such as a million nodes of syntax trees."""
    yield
    for found in vars(request.module).values():
        if type(found) is functools._lru_cache_wrapper and found.__module__ == request.module.__name__:
            found.cache_clear()
