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

``streamproof check counter.py`` explores it, and ``streamproof.check(Counter)`` does in a program: there is a function for
each verb. ``Counter.system()`` is the transition system as a value.
"""

# Nothing is imported here, not even `typing`: the program handles Ctrl-C before it loads anything.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from streamproof.any.every_size import AnyProof as AnyProof
    from streamproof.any.ranked import RankedProof as RankedProof
    from streamproof.api.check import check as check
    from streamproof.api.diff import diff as diff
    from streamproof.api.explain import explain as explain
    from streamproof.api.export import Exported as Exported
    from streamproof.api.export import export as export
    from streamproof.api.incident import Incidents as Incidents
    from streamproof.api.incident import incident as incident
    from streamproof.api.mutate import mutate as mutate
    from streamproof.api.prove import prove as prove
    from streamproof.api.prove import prove_any as prove_any
    from streamproof.api.prove import prove_rank as prove_rank
    from streamproof.api.replay import Replayed as Replayed
    from streamproof.api.replay import replay as replay
    from streamproof.api.simulate import simulate as simulate
    from streamproof.api.validate import Validation as Validation
    from streamproof.api.validate import ValidationOptions as ValidationOptions
    from streamproof.api.validate import validate as validate
    from streamproof.base.errors import EvaluationError, ModelError, StreamproofError, UsageError
    from streamproof.base.options import SearchOptions as SearchOptions
    from streamproof.conformance.binding import Binding as Binding
    from streamproof.conformance.run_verdict import RunVerdict as RunVerdict
    from streamproof.difference.comparing import ModelDifference as ModelDifference
    from streamproof.explicit.exploration import Exploration as Exploration
    from streamproof.explicit.exploration import explore as explore
    from streamproof.explicit.simulation import Simulation as Simulation
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
        happened,
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
    from streamproof.language.declare.refining import refines
    from streamproof.language.declare.spec import Spec
    from streamproof.language.declare.sweeping import Comparison as Comparison
    from streamproof.language.declare.sweeping import Generated, Sample, Sweep
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
    from streamproof.language.native.native import Native
    from streamproof.mutation.judging import JudgedMutant as JudgedMutant
    from streamproof.mutation.judging import Mutation as Mutation
    from streamproof.mutation.mutants import Mutant as Mutant
    from streamproof.symbolic.bmc import Bounded as Bounded
    from streamproof.symbolic.proof import Proof as Proof
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
        "Array Bag Bool Decl Enum Int Nat Option Queue Range Record Set Symmetric Tuple Union",
    ),
    "initial values": ("language.lower.conversion", "ANY any_of"),
    "cases": ("language.lower.cases", "Case"),
    "state": ("language.declare.variables", "State"),
    "models": ("language.declare.spec", "Model"),
    "rules": (
        "language.declare.primitives",
        "Fairness STRONG WEAK action choose constraint enabled first happened initially require terminal",
    ),
    "properties": ("language.declare.primitives", "derived invariant lemma measure reachable step temporal"),
    "formulas": ("language.declare.primitives", "always eventually leads_to until"),
    "refinement": ("language.declare.refining", "refines"),
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
    "checking": ("api.check", "check"),
    "proving": ("api.prove", "prove prove_any prove_rank"),
    "walking": ("api.simulate", "simulate"),
    "mutating": ("api.mutate", "mutate"),
    "comparing": ("api.diff", "diff"),
    "validating": ("api.validate", "Validation ValidationOptions validate"),
    "explaining runs": ("api.incident", "Incidents incident"),
    "explaining traces": ("api.explain", "explain"),
    "replaying": ("api.replay", "Replayed replay"),
    "exporting": ("api.export", "Exported export"),
    "options": ("base.options", "SearchOptions"),
    "results": ("system.verdict", "CheckResult Counts Finding Trace Verdict"),
    "results of checks": ("explicit.exploration", "Exploration explore"),
    "results of bounded checks": ("symbolic.bmc", "Bounded"),
    "results of proofs": ("symbolic.proof", "Proof"),
    "results of proofs for every size": ("any.every_size", "AnyProof"),
    "results of proofs by ranking functions": ("any.ranked", "RankedProof"),
    "results of walks": ("explicit.simulation", "Simulation"),
    "results of mutations": ("mutation.judging", "JudgedMutant Mutation"),
    "mutants": ("mutation.mutants", "Mutant"),
    "results of comparisons": ("difference.comparing", "ModelDifference"),
    "verdicts on runs": ("conformance.run_verdict", "RunVerdict"),
    "traces": ("traces.replay", "replay_labels verify"),
    "conformance": ("conformance.binding", "Binding"),
    "comparisons": ("language.declare.sweeping", "Comparison"),
}
"""What models, systems and logs are checked with: a function for each verb, its options and its result. All names for
bindings are in `streamproof.conformance`, those for comparisons of designs in `streamproof.comparison`.

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
    "Tuple",
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
    "happened",
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
