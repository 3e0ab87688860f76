"""The options about how the explicit engine works: which code, how many threads, where it keeps what."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from streamproof.system.byte_sizes import bytes_text, parse_bytes
from streamproof.system.errors import UsageError
from streamproof.system.records import dataclass, replace

TIERS = ("auto", "python", "compiled")
"""As in `explicit.tiers`, which is not imported before it is needed."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What ``--tier``, ``--workers``, ``--memory``, ``--spill``, ``--checkpoint`` and ``--resume`` say."""

    tier: str = TIERS[0]
    workers: int | None = None
    checkpoint: Path | None = None
    resume: Path | None = None
    memory: int | None = None
    """Bytes."""
    spill: Path | None = None

    @property
    def given(self) -> tuple[str, ...]:
        """The options that were given, as words; empty for a run with none of them."""
        words: list[str] = []
        if self.tier != TIERS[0]:
            words += ["--tier", self.tier]
        if self.workers is not None:
            words += ["--workers", str(self.workers)]
        if self.memory is not None:
            words += ["--memory", bytes_text(self.memory)]
        folders = {"--spill": self.spill, "--checkpoint": self.checkpoint, "--resume": self.resume}
        for name, folder in folders.items():
            if folder is not None:
                words += [name, str(folder)]
        return tuple(words)

    @property
    def words(self) -> tuple[str, ...]:
        """The options that do the same again; a run that resumed is done again from its beginning."""
        return replace(self, checkpoint=None, resume=None).given


DEFAULTS = Resources()
"""As when no option is given."""


def amount(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    """An amount in bytes, as an option gives it."""
    try:
        return None if text is None else parse_bytes(text)
    except UsageError as error:
        raise click.BadParameter(f"{error.message}; {error.remedy}") from None


def resource_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which receives them as the argument `resources`."""

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
        return command(*args, resources=Resources(tier, workers, checkpoint, resume, memory, spill), **more)

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
            type=click.IntRange(1, 64),
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
