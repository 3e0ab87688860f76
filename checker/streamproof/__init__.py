"""streamproof: prove and refute the coordination protocols of stream processors, and check real runs against them.

A *model* is a class: its annotated attributes are parameters, ``state()`` declares the variables, methods marked
``@action`` are the rules, and methods marked ``@invariant``, ``@step``, ``@reachable``, ``@temporal``, ``@refines`` say what
must hold.

    from streamproof import Model, Range, State, action, invariant, require

    class Counter(Model):
        limit: int = 3

        def state(self):
            return State(n=Range(0, self.limit))

        @action
        def increment(self, s):
            require(s.n < self.limit)
            s.n += 1

        @invariant
        def below(self, s):
            return s.n <= self.limit

``streamproof check counter.py`` explores it; ``Counter.system()`` is the transition system as a value.
"""

# Nothing is imported here, not even `typing`: the program handles Ctrl-C before it loads anything.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from streamproof.base.errors import EvaluationError, ModelError, StreamproofError, UsageError
    from streamproof.base.options import SearchOptions as SearchOptions
    from streamproof.conformance.binding import Binding as Binding
    from streamproof.conformance.run_verdict import RunVerdict as RunVerdict
    from streamproof.conformance.validation import validate_paths as validate_paths
    from streamproof.explicit.exploration import Exploration as Exploration
    from streamproof.explicit.exploration import explore as explore
    from streamproof.explicit.simulation import Simulation as Simulation
    from streamproof.explicit.simulation import simulate as simulate
    from streamproof.language.declare.composition import Parts, each, part
    from streamproof.language.declare.model import Model
    from streamproof.language.declare.primitives import (
        STRONG,
        WEAK,
        action,
        always,
        choose,
        constraint,
        derived,
        enabled,
        eventually,
        first,
        initially,
        invariant,
        leads_to,
        lemma,
        measure,
        reachable,
        require,
        step,
        temporal,
        terminal,
        until,
    )
    from streamproof.language.declare.spec import Spec
    from streamproof.language.declare.sweeping import Block as Block
    from streamproof.language.declare.sweeping import Claim as Claim
    from streamproof.language.declare.sweeping import Column as Column
    from streamproof.language.declare.sweeping import Comparison as Comparison
    from streamproof.language.declare.sweeping import Generated, Sample, Sweep
    from streamproof.language.declare.sweeping import Judgement as Judgement
    from streamproof.language.declare.sweeping import Table as Table
    from streamproof.language.declare.variables import (
        Array,
        Bag,
        Bool,
        Decl,
        Enum,
        Int,
        Nat,
        Option,
        Queue,
        Range,
        Record,
        Set,
        State,
        Symmetric,
        Union,
    )
    from streamproof.language.lower.cases import Case
    from streamproof.language.lower.conversion import ANY, any_of
    from streamproof.language.lower.refinement import refines
    from streamproof.language.native.native import Native
    from streamproof.symbolic.bmc import Bounded as Bounded
    from streamproof.symbolic.bmc import bmc as bmc
    from streamproof.symbolic.proof import Proof as Proof
    from streamproof.symbolic.proof import prove as prove
    from streamproof.system.model import Fairness, System
    from streamproof.system.verdict import CheckResult as CheckResult
    from streamproof.system.verdict import Counts as Counts
    from streamproof.system.verdict import Finding as Finding
    from streamproof.system.verdict import Trace as Trace
    from streamproof.system.verdict import Verdict as Verdict
    from streamproof.traces.replay import replay_labels as replay_labels
    from streamproof.traces.replay import verify as verify
    from streamproof.version import VERSION as __version__

AUTHORING = {
    "sorts": (
        "language.declare.variables",
        "Array Bag Bool Decl Enum Int Nat Option Queue Range Record Set Symmetric Union",
    ),
    "initial values": ("language.lower.conversion", "ANY any_of"),
    "cases": ("language.lower.cases", "Case"),
    "state": ("language.declare.variables", "State"),
    "models": ("language.declare.spec", "Model"),
    "rules": (
        "language.declare.primitives",
        "Fairness STRONG WEAK action choose constraint enabled first initially require terminal",
    ),
    "properties": ("language.declare.primitives", "derived invariant lemma measure reachable step temporal"),
    "formulas": ("language.declare.primitives", "always eventually leads_to until"),
    "refinement": ("language.lower.refinement", "refines"),
    "composition": ("language.declare.composition", "Parts each part"),
    "specifications": ("language.declare.spec", "Spec"),
    "grids": ("language.declare.sweeping", "Generated Sample Sweep"),
    "execution": ("language.native.native", "Native"),
    "errors": ("base.errors", "EvaluationError ModelError StreamproofError UsageError"),
    "systems": ("system.model", "System"),
}
"""What models and specifications are written with, by kind: the module inside this package, and the names. ``import *``
gives these."""

USING = {
    "comparisons": ("language.declare.sweeping", "Block Claim Column Comparison Judgement Table"),
    "options": ("base.options", "SearchOptions"),
    "results": ("system.verdict", "CheckResult Counts Finding Trace Verdict"),
    "search": ("explicit.exploration", "Exploration explore"),
    "simulation": ("explicit.simulation", "Simulation simulate"),
    "bounded model checking": ("symbolic.bmc", "Bounded bmc"),
    "proof": ("symbolic.proof", "Proof prove"),
    "traces": ("traces.replay", "replay_labels verify"),
    "conformance": ("conformance.binding", "Binding"),
    "validation": ("conformance.validation", "validate_paths"),
    "verdicts on runs": ("conformance.run_verdict", "RunVerdict"),
}
"""What designs are compared with, and systems and logs are checked with. All names for bindings are in
`streamproof.conformance`.

Whatever is in neither table is internal, and may change without notice."""

_HOMES = {
    name: f"streamproof.{module}" for module, names in (*AUTHORING.values(), *USING.values()) for name in names.split()
}


def __getattr__(name: str) -> "Any":
    """Names are loaded when they are used: the program handles Ctrl-C before it loads anything."""
    from importlib import import_module

    if name == "__version__":
        from streamproof.version import VERSION

        return VERSION
    if name in _HOMES:
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, "__version__"})


__all__ = [  # noqa: RUF022 -- by kind
    # sorts
    "ANY",
    "Array",
    "Bool",
    "Decl",
    "Enum",
    "Int",
    "Nat",
    "Option",
    "Queue",
    "Range",
    "Record",
    "Set",
    "Bag",
    "Symmetric",
    "Union",
    "Case",
    "any_of",
    # state, models
    "State",
    "Model",
    # rules
    "Fairness",
    "STRONG",
    "WEAK",
    "action",
    "choose",
    "constraint",
    "enabled",
    "first",
    "initially",
    "require",
    "terminal",
    # properties
    "derived",
    "invariant",
    "lemma",
    "measure",
    "reachable",
    "step",
    "temporal",
    "always",
    "eventually",
    "leads_to",
    "until",
    "refines",
    # composition
    "Parts",
    "each",
    "part",
    # specifications
    "Spec",
    "Generated",
    "Sample",
    "Sweep",
    # execution
    "Native",
    "System",
    # errors
    "EvaluationError",
    "ModelError",
    "StreamproofError",
    "UsageError",
    # version
    "__version__",
]
