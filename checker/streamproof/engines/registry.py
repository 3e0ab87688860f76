"""The registry of engines: each is a function in its own file, from a system and options to a result, and an entry here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from streamproof import interrupts
from streamproof.base.errors import UsageError
from streamproof.base.options import DEFAULTS, SearchOptions, flag_name
from streamproof.base.records import dataclass, described, replace
from streamproof.system.model import System
from streamproof.system.verdict import CheckResult, Finding
from streamproof.transform.constraint import within_constraint

if TYPE_CHECKING:
    from streamproof.explicit.exploration import Exploration


@dataclass(frozen=True, slots=True)
class RegisteredEngine:
    """An engine: its name, its function, and its options."""

    name: str
    place: str
    """``module:function``, loaded on first use."""
    options: frozenset[str]
    """The fields of `SearchOptions` that it supports."""
    because: str
    """The reason why it does not support the others."""

    def expect(self, options: SearchOptions) -> None:
        """Raises `UsageError` for an option that this engine does not support."""
        for name in options.given():
            if name not in self.options:
                _, about = described(SearchOptions).get(name, (None, {"names": ("--property",)}))
                flag = flag_name(name, about)
                raise UsageError(f"{self.name} has no {flag}: {REASONS.get(name, self.because)}", remedy="leave it out")

    def run(
        self,
        system: System,
        options: SearchOptions = DEFAULTS,
        *,
        on_progress: Callable[[Any], None] | None = None,
        on_violation: Callable[[Finding], None] | None = None,
    ) -> CheckResult:
        """Decide the properties of a system selected by the options; None: all that the engine can decide.

        `on_progress` is called about once a second with the progress of the engine; `on_violation` with each violation found
        before the end. Ctrl-C ends the engine with the results found so far. The function has this interface, too. Raises
        `UsageError` for an option that this engine does not support.
        """
        self.expect(options)
        module, _, function = self.place.partition(":")
        answer: CheckResult = getattr(import_module(module), function)(
            system, options, on_progress=on_progress, on_violation=on_violation
        )
        if answer.counts is None:
            from streamproof.engines.proving import examined

            answer = examined(system, answer, options)
        if system.constraint is not None:
            answer = within_constraint(system, answer)
        return replace(answer, interrupted=answer.interrupted or interrupts.requested())


_WALKS = frozenset({"walks", "steps", "seed", "guided"})
REASONS: Mapping[str, str] = {
    "max_k": "it is the strength of induction",
    **dict.fromkeys(_WALKS, "it takes no random walks"),
}
"""Reasons that depend on the option alone."""

_LIMITS = frozenset({"properties", "max_depth", "time_limit", "query_limit", "stop_when_decided", "tuning"})
_SEARCH = frozenset(SearchOptions.names()) - {"max_k", "query_limit", "master"} - _WALKS
_ON_SPARK = (_SEARCH | {"master"}) - {"por", "view", "tier", "workers", "checkpoint", "checkpoint_seconds"}
_VISITS = "it visits no states"

CHECKS: Mapping[str, RegisteredEngine] = {
    engine.name: engine
    for engine in (
        RegisteredEngine("explicit", "streamproof.explicit.exploration:explore", _SEARCH, "it is not a solver"),
        RegisteredEngine(
            "spark", "streamproof.pipeline.spark_search:explore_on_spark", _ON_SPARK, "it searches all states on Spark"
        ),
        RegisteredEngine("bmc", "streamproof.symbolic.bmc:look_ahead", _LIMITS, _VISITS),
    )
}
"""The engines that search for violations, the default first."""

PROVERS: Mapping[str, RegisteredEngine] = {
    name: RegisteredEngine(name, f"streamproof.engines.proving:{name}", _LIMITS | {"max_k"}, _VISITS)
    for name in ("auto", "induction", "discovery", "pdr")
}
"""The engines that prove properties of all behaviours, the default first."""


def explored(found: CheckResult) -> Exploration | None:
    """The result of an engine that visits states; None for other engines."""
    if found.counts is None:
        return None
    from streamproof.explicit.exploration import Exploration

    return found if isinstance(found, Exploration) else None
