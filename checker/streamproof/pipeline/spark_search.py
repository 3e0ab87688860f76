"""A search of all states by the processes of a Spark cluster: the engine ``spark``."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from streamproof.base.errors import UsageError
from streamproof.base.optional import expect_pyarrow
from streamproof.base.options import DEFAULTS, SearchOptions
from streamproof.base.records import replace
from streamproof.explicit.cluster import Cluster
from streamproof.explicit.exploration import Exploration, explore
from streamproof.pipeline.executors import SparkExecutor
from streamproof.pipeline.session import LOCAL, require_pyspark
from streamproof.system.model import System
from streamproof.system.verdict import Finding, Progress


def explore_on_spark(
    system: System,
    options: SearchOptions = DEFAULTS,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    on_violation: Callable[[Finding], None] | None = None,
) -> Exploration:
    """Search the reachable states as `explore` does, the wide levels on Spark.

    `SearchOptions.master` is Spark's master, `spill` the folder of states and `resume` the one to continue in. Spark starts
    with the first wide level. Raises `UsageError` without a folder.
    """
    folder = options.spill or options.resume
    if folder is None:
        raise UsageError(
            "a search on Spark needs a folder that all of its processes share", remedy="name one with --spill DIR"
        )
    expect_pyarrow("a search on Spark", "spark")
    require_pyspark()
    master = options.master or LOCAL
    plain = replace(options, master=None, spill=None, resume=None)
    with ExitStack() as stack:
        executor = SparkExecutor(master, stack, memory=options.memory)
        cluster = Cluster(executor, _place(folder), resume=options.resume is not None)
        return explore(system, plain, on_progress=on_progress, on_violation=on_violation, cluster=cluster)


def _place(folder: Path) -> str:
    """The folder as `SharedFolder` names it: an address of a file system, from which a path drops a slash, or a full path."""
    address = re.fullmatch(r"([a-z][a-z0-9+]+):/+(.*)", str(folder))
    if address is None:
        return str(folder.absolute())
    scheme = "s3" if address[1] in ("s3a", "s3n") else address[1]
    return f"/{address[2]}" if scheme == "file" else f"{scheme}://{address[2]}"
