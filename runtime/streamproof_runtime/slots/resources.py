"""Resource profiles: what the slots of a TaskExecutor have, and what a slot sharing group needs of a slot."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

from streamproof_runtime.errors import RuntimeFailure

Resources: TypeAlias = Mapping[str, int]
"""Amounts by name, whole numbers; what is not named is 0."""
MOST = 10**15
"""What amounts are below."""
_FORM = re.compile(r"([\w-]+):(.+)", re.ASCII)
_AMOUNT = re.compile(r"([A-Za-z]\w*)=(\d{1,15})", re.ASCII)


def fits(profile: Resources, needed: Resources) -> bool:
    """Whether a slot with this profile has what is needed."""
    return all(profile.get(name, 0) >= amount for name, amount in needed.items())


def text(resources: Resources) -> str:
    """For messages: ``gpu=1, memory=512``."""
    return ", ".join(f"{name}={amount}" for name, amount in sorted(resources.items()))


def checked(resources: object) -> dict[str, int]:
    """What a job asks for. Raises `ValueError` for anything but positive whole numbers by name."""
    if not isinstance(resources, Mapping):
        raise ValueError(f"{resources!r} are no amounts by name")
    for name, amount in resources.items():
        if not isinstance(name, str) or not _AMOUNT.fullmatch(f"{name}=1"):
            raise ValueError(f"{name!r} cannot name a resource")
        if type(amount) is not int or not 0 < amount < MOST:
            raise ValueError(f"{amount!r} is no amount of {name}")
    return dict(resources)


def parse(texts: Iterable[str], names: Collection[str]) -> dict[str, dict[str, int]]:
    """The profile of each TaskExecutor. Raises `RuntimeFailure` for another form, and for a name that is none of `names`."""
    found: dict[str, dict[str, int]] = {}
    for given in texts:
        match = _FORM.fullmatch(given)
        amounts = [_AMOUNT.fullmatch(part) for part in match[2].split(",")] if match else [None]
        if match is None or not all(amounts):
            raise RuntimeFailure(f"{given!r} are no resources; write NAME:KEY=NUMBER, as in tm-1:gpu=1,memory=512")
        if match[1] not in names:
            raise RuntimeFailure(f"there is no TaskExecutor {match[1]!r}; there are {', '.join(names)}")
        if match[1] in found:
            raise RuntimeFailure(f"the resources of {match[1]} are given twice; write them once, with commas")
        found[match[1]] = {amount[1]: int(amount[2]) for amount in amounts if amount}
    return found
