"""The options about how the explicit engine works: which code, how many threads, where it keeps what."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from streamproof.engines import CHECKS
from streamproof.system.byte_sizes import bytes_text, parse_bytes
from streamproof.system.errors import UsageError
from streamproof.system.options import MOST_WORKERS, TIERS, SearchOptions


def option_words(engine: str, options: SearchOptions) -> tuple[str, ...]:
    """The words that choose the engine and set the options again; a run that resumed is done again from its beginning."""
    given = {
        "--engine": None if engine == next(iter(CHECKS)) else engine,
        "--max-states": options.max_states,
        "--depth": None if options.max_depth is None else options.max_depth - 1,
        "--timeout": None if options.time_limit is None else f"{options.time_limit:g}",
        "--tier": None if options.tier == TIERS[0] else options.tier,
        "--workers": options.workers,
        "--memory": None if options.memory is None else bytes_text(options.memory),
        "--spill": options.spill,
    }
    flags = {"--symmetry": options.symmetry, "--por": options.por}
    words = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    return (*words, *(name for name, wanted in flags.items() if wanted))


def amount(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    """An amount in bytes, as an option gives it."""
    try:
        return None if text is None else parse_bytes(text)
    except UsageError as error:
        raise click.BadParameter(f"{error.message}; {error.remedy}") from None


def resource_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which receives them as the argument `resources`: a `SearchOptions` with these alone."""

    @wraps(command)
    def collected(
        *args: Any,
        tier: str,
        workers: int | None,
        checkpoint: Path | None,
        resume: Path | None,
        memory: int | None,
        spill: Path | None,
        **more: Any,
    ) -> Any:
        resources = SearchOptions(
            tier=tier, workers=workers, checkpoint=checkpoint, resume=resume, memory=memory, spill=spill
        )
        return command(*args, resources=resources, **more)

    options = (
        click.option(
            "--tier",
            type=click.Choice(TIERS),
            default=TIERS[0],
            show_default=True,
            help="Search by generated Python or by compiled code; auto changes over when the state space turns out large.",
        ),
        click.option(
            "--workers",
            type=click.IntRange(1, MOST_WORKERS),
            metavar="N",
            help="Threads of compiled code; results do not depend on it. By default one for each processor, at most 8.",
        ),
        click.option(
            "--memory",
            callback=amount,
            metavar="SIZE",
            help="Stop when the process holds SIZE (500MB, 4GB, 4GiB).  [default: four fifths of the machine's memory]",
        ),
        click.option(
            "--spill",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Beyond --memory keep states on disk, in DIR, instead of stopping.",
        ),
        click.option(
            "--checkpoint",
            type=click.Path(path_type=Path, file_okay=False),
            metavar="DIR",
            help="Write the search to DIR once a minute, and when a limit ends it.",
        ),
        click.option(
            "--resume",
            type=click.Path(path_type=Path, file_okay=False),
            metavar="DIR",
            help="Go on from the checkpoint in DIR, and go on writing it.",
        ),
    )
    for option in reversed(options):
        collected = option(collected)
    return collected
