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

from importlib import import_module
from typing import TYPE_CHECKING, Any

from streamproof.version import VERSION

if TYPE_CHECKING:
    from streamproof.language.composition import Parts, each, part
    from streamproof.language.declare import (
        ANY,
        Array,
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
        any_of,
    )
    from streamproof.language.model import Model
    from streamproof.language.native import Native
    from streamproof.language.primitives import (
        NONE,
        STRONG,
        WEAK,
        action,
        choose,
        initially,
        invariant,
        lemma,
        measure,
        reachable,
        require,
        step,
        temporal,
        terminal,
    )
    from streamproof.language.refines import refines
    from streamproof.language.spec import Spec
    from streamproof.language.sweeping import Generated, Sample, Sweep
    from streamproof.language.temporal import always, eventually, leads_to, until
    from streamproof.system.errors import EvaluationError, ModelError, StreamproofError, UsageError
    from streamproof.system.model import System

__version__ = VERSION

_MODULES = {
    "streamproof.language.composition": "Parts each part",
    "streamproof.language.declare": (
        "ANY Array Bool Decl Enum Int Nat Option Queue Range Record Set State Symmetric any_of"
    ),
    "streamproof.language.spec": "Model Spec",
    "streamproof.language.native": "Native",
    "streamproof.language.primitives": (
        "NONE STRONG WEAK action choose initially invariant lemma measure reachable require step temporal terminal"
    ),
    "streamproof.language.refines": "refines",
    "streamproof.language.sweeping": "Generated Sample Sweep",
    "streamproof.language.temporal": "always eventually leads_to until",
    "streamproof.system.errors": "EvaluationError ModelError StreamproofError UsageError",
    "streamproof.system.model": "System",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Names are loaded when they are used: the program handles Ctrl-C before it loads anything."""
    if name in _HOMES:
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ANY",
    "NONE",
    "STRONG",
    "WEAK",
    "Array",
    "Bool",
    "Decl",
    "Enum",
    "EvaluationError",
    "Generated",
    "Int",
    "Model",
    "ModelError",
    "Nat",
    "Native",
    "Option",
    "Parts",
    "Queue",
    "Range",
    "Record",
    "Sample",
    "Set",
    "Spec",
    "State",
    "StreamproofError",
    "Sweep",
    "Symmetric",
    "System",
    "UsageError",
    "__version__",
    "action",
    "always",
    "any_of",
    "choose",
    "each",
    "eventually",
    "initially",
    "invariant",
    "leads_to",
    "lemma",
    "measure",
    "part",
    "reachable",
    "refines",
    "require",
    "step",
    "temporal",
    "terminal",
    "until",
]
