"""The published state spaces of the reference models: what `tests/oracles` counts, and what a table of the documents says."""

from __future__ import annotations

from typing import Any

from streamproof import Model
from streamproof_models.reference.async_termination_detection import AsyncTerminationDetection
from streamproof_models.reference.bakery import Bakery
from streamproof_models.reference.chang_roberts import ChangRoberts
from streamproof_models.reference.coffee_can import CoffeeCan
from streamproof_models.reference.die_hard import DieHard
from streamproof_models.reference.dining_philosophers import DiningPhilosophers
from streamproof_models.reference.ewd840 import Ewd840
from streamproof_models.reference.ewd998 import Ewd998
from streamproof_models.reference.hanoi import Hanoi
from streamproof_models.reference.huang import Huang
from streamproof_models.reference.mattern import Mattern
from streamproof_models.reference.missionaries_and_cannibals import MissionariesAndCannibals
from streamproof_models.reference.raft_election import RaftElection
from streamproof_models.reference.sliding_window import SlidingWindow
from streamproof_models.reference.three_way_handshake import ThreeWayHandshake
from streamproof_models.reference.token_ring import TokenRing
from streamproof_models.reference.transaction_commit import TransactionCommit
from streamproof_models.reference.two_phase_commit import TwoPhaseCommit

Row = tuple[type[Model], dict[str, Any], int, int, int]
"""A model, its parameters, distinct states, generated states, depth."""

PUBLISHED: list[Row] = [
    (TwoPhaseCommit, {"resource_managers": 1}, 12, 20, 5),
    (TwoPhaseCommit, {"resource_managers": 2}, 56, 154, 8),
    (TwoPhaseCommit, {"resource_managers": 3}, 288, 1_146, 11),
    (TwoPhaseCommit, {"resource_managers": 4}, 1_568, 8_258, 14),
    (TwoPhaseCommit, {"resource_managers": 5}, 8_832, 58_146, 17),
    (TwoPhaseCommit, {"resource_managers": 6}, 50_816, 402_306, 20),
    (TransactionCommit, {}, 34, 94, 7),
    (DieHard, {}, 16, 97, 8),
    (MissionariesAndCannibals, {}, 64, 283, 13),
    (Hanoi, {}, 243, 913, 32),
    (Ewd840, {"n": 2}, 54, 214, 6),
    (Ewd840, {"n": 3}, 302, 2_001, 9),
    (Ewd840, {"n": 4}, 1_566, 15_986, 12),
    (Ewd840, {"n": 5}, 7_742, 114_211, 15),
    (Ewd840, {"n": 6}, 36_990, 750_020, 18),
    (AsyncTerminationDetection, {"n": 2}, 65, 297, 8),
    (AsyncTerminationDetection, {"n": 3}, 513, 4_238, 11),
    (AsyncTerminationDetection, {"n": 4}, 4_097, 53_271, 14),
    (AsyncTerminationDetection, {"n": 5}, 32_769, 614_440, 17),
    (DiningPhilosophers, {}, 67, 336, 29),
    (TokenRing, {}, 46_656, 248_832, 1),
    (TwoPhaseCommit, {"resource_managers": 7}, 296_448, 2_744_706, 23),
    (CoffeeCan, {}, 501_500, 2_000_002, 1),
    (Ewd998, {}, 1_520_618, 11_238_019, 59),
    (Huang, {}, 81_256, 1_205_729, 21),
]

COUNTED_BY_TLC: list[Row] = [
    (Huang, {"n": 2}, 1_836, 12_715, 21),
    (Huang, {"n": 3}, 8_476, 78_765, 21),
    (Huang, {"n": 4}, 29_016, 346_867, 21),
]
"""What TLC counts of the published TLA+ specification at other numbers of processes."""

COUNTED: list[Row] = [
    (Mattern, {"n": 2, "messages": 2}, 360, 653, 13),
    (Mattern, {}, 34_017, 83_500, 20),
    (Bakery, {}, 1_001, 1_987, 32),
    (ChangRoberts, {}, 18_008, 38_320, 15),
    (RaftElection, {}, 5_351, 50_863, 13),
    (SlidingWindow, {}, 585, 2_352, 18),
    (ThreeWayHandshake, {}, 1_415, 7_095, 16),
]
"""Of algorithms whose state spaces nobody published; `tests/agreement` has TLC count those of the exported models."""

LARGE: list[Row] = [(TwoPhaseCommit, {"resource_managers": 10}, 61_515_776, 817_760_258, 32)]
