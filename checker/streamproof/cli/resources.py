"""The options for the resources of the explicit engine: tier, threads, memory, disk, checkpoints."""

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
    """The command-line words for the engine and its options; --resume is left out, so a repetition starts from the
    beginning."""
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
    """The value of an option in bytes."""
    try:
        return None if text is None else parse_bytes(text)
    except UsageError as error:
        raise click.BadParameter(f"{error.message}; {error.remedy}") from None


def resource_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which receives them as the argument `resources`: a `SearchOptions` with these set."""

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
            help="Generated Python or compiled code; auto: compiled code for large state spaces.",
        ),
        click.option(
            "--workers",
            type=click.IntRange(1, MOST_WORKERS),
            metavar="N",
            help="Number of threads of compiled code.  [default: one for each processor, at most 8]",
        ),
        click.option(
            "--memory",
            callback=amount,
            metavar="SIZE",
            help="Memory limit of the process (500MB, 4GB, 4GiB).  [default: four fifths of the machine's memory]",
        ),
        click.option(
            "--spill",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="At the memory limit, continue on disk in DIR.",
        ),
        click.option(
            "--checkpoint",
            type=click.Path(path_type=Path, file_okay=False),
            metavar="DIR",
            help="Write a checkpoint to DIR once a minute, and when a limit ends the search.",
        ),
        click.option(
            "--resume",
            type=click.Path(path_type=Path, file_okay=False),
            metavar="DIR",
            help="Continue from the checkpoint in DIR, and keep writing it.",
        ),
    )
    for option in reversed(options):
        collected = option(collected)
    return collected
