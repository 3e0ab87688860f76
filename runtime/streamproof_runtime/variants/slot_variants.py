"""Variants that omit a rule of the slot protocol, to be switched on for demonstration.

Variants that the model `slot_pool` has, too, have its names.
"""

from __future__ import annotations

from streamproof_runtime.slots.slot_rules import SlotRules

SLOTS: dict[str, SlotRules] = {
    "allocated-freed": SlotRules(exempts_allocated=False),
    "pending-freed": SlotRules(exempts_pending=False),
    "unchecked-ticket": SlotRules(checks_ticket=False),
    "stale-answer": SlotRules(discards_stale=False),
    "no-reconciliation": SlotRules(reconciles=False),
    "silent": SlotRules(fails_slots=False),
    "no-slot-report": SlotRules(reports_slots=False),
    "never-idle": SlotRules(releases_idle=False),
    "excess-accepted": SlotRules(rejects_excess=False),
    "leak-on-rejection": SlotRules(frees_rejected=False),
    "release-ignored": SlotRules(frees_returned=False),
}
RESOURCES: dict[str, SlotRules] = {"resources-ignored": SlotRules(matches_resources=False)}
"""Variants of resource profiles: they change nothing of a job that asks for none."""
"""All variants by name."""
HARMLESS = frozenset({"stale-answer"})
"""Variants of which no run shows anything: a lost connection loses the answers on their way, and in one connection a slot is
offered once, so that no answer arrives after a newer offer."""
