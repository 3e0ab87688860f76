"""The symbolic engine: solver-based checks of all behaviours up to a depth (BMC), and proofs for all depths
(k-induction, PDR)."""

from streamproof.symbolic.bmc import Bounded, bmc
from streamproof.symbolic.induction import NO_MISTAKE, Cti
from streamproof.symbolic.portfolio import Engine, Lemma
from streamproof.symbolic.proof import Proof, prove
from streamproof.symbolic.replay import ReplayFailure
from streamproof.symbolic.solver import Effort

__all__ = ["NO_MISTAKE", "Bounded", "Cti", "Effort", "Engine", "Lemma", "Proof", "ReplayFailure", "bmc", "prove"]
