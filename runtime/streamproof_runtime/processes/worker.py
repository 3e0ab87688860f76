"""A process of a job: ``python -m streamproof_runtime.processes.worker``, started by `cluster` with its configuration."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from traceback import extract_tb
from typing import Any

from streamproof_runtime.errors import RuntimeFailure
from streamproof_runtime.garbage import rare_collections
from streamproof_runtime.jobs.job_file import JobFile
from streamproof_runtime.processes.process import DEFECTIVE, Parent
from streamproof_runtime.processes.real_executor import RealExecutor
from streamproof_runtime.processes.real_jobmaster import RealJobMaster
from streamproof_runtime.processes.real_manager import RealManager

ROLES: dict[str, type[RealJobMaster | RealManager | RealExecutor]] = {
    "jobmaster": RealJobMaster,
    "rm": RealManager,
    "taskexecutor": RealExecutor,
}
DEFECT = 70
"""Exit code after an error that is none of the user's; the traceback is on standard error."""


def main() -> None:
    """Runs the JobMaster, the ResourceManager or a TaskExecutor until the job is over."""
    parent = Parent()
    try:
        jobs = JobFile(Path(parent.configuration["job"])).jobs()
        role = ROLES[parent.configuration["role"]]
        with rare_collections():
            asyncio.run(_run(parent, role(jobs, parent).run()))
    except RuntimeFailure as error:
        parent.broken(f"{parent.configuration['name']}: {error}")
    except OSError as error:
        parent.broken(f"{parent.configuration['name']}: {error}", by_system=True)
    except BaseException as error:
        parent.report(DEFECTIVE, _named(error))
        raise


def _named(error: BaseException) -> str:
    """An error in one line, with the place where it was raised."""
    frames = extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}".removesuffix(": ") + place


async def _run(parent: Parent, work: Coroutine[Any, Any, None]) -> None:
    def failed(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        loop.default_exception_handler(context)
        if isinstance(error := context.get("exception"), BaseException):
            parent.report(DEFECTIVE, _named(error))
        sys.stderr.flush()
        os._exit(DEFECT)

    asyncio.get_running_loop().set_exception_handler(failed)
    await work
    sys.stderr.flush()
    os._exit(0)  # neither tasks of the event loop nor threads of the user's functions keep the process


if __name__ == "__main__":
    main()
