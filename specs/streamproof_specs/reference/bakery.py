"""The bakery without `choosing`, in which two processes enter the critical section."""

from __future__ import annotations

from streamproof import Spec
from streamproof_models.reference.bakery import Bakery

SPEC = Spec(Bakery, expected={"nobody-chooses": {"mutual_exclusion": "violated"}})
