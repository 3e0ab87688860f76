"""Properties of the baton on bounded channels: both machines' own, and that they agree on what is in each channel."""

from __future__ import annotations

from streamproof import Spec, invariant
from streamproof_models.baton import variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.compositions.baton_channels import BatonChannels
from streamproof_specs.baton import properties as baton


@invariant
def same_items(m, s):
    """The buffers of each channel contain its records and events, in the operators' order."""
    return all(
        len(s.channel[c].items) == len(s.baton.channel[c])
        and all(
            at >= len(s.channel[c].items)
            or (s.channel[c].items[at].kind == "RECORD") == (s.baton.channel[c][at].kind == "RECORD")
            for at in range(m.buffers)
        )
        for c in m.forward
    ) and all(m.back[c].waiting(s.back[c]) == len(s.baton.channel[c]) for c in m.feedback)


SPEC = Spec(
    BatonChannels,
    properties=(same_items,),
    carries={
        "baton": (
            baton.nothing_lost,
            baton.no_early_end,
            baton.everybody_terminates,
            baton.quiet_ones_terminate,
            baton.records_get_through,
        )
    },
    expected={
        "weak": {"baton.records_get_through": "violated"},
        "bounded": {"deadlock": "violated"},
        "bounded-without-end": {"baton.everybody_terminates": "violated"},
        "dropped": dict.fromkeys(
            (
                "baton.everybody_terminates",
                "baton.quiet_ones_terminate",
                "baton.records_get_through",
                "back.in_order",
                "same_items",
                "deadlock",
            ),
            "violated",
        ),
        "one-too-many": {"channel.within_capacity": "violated", "back.within_capacity": "violated"},
        "no-dirty-check": {"baton.nothing_lost": "violated", "baton.no_early_end": "violated"},
    },
    variant_parameters={"bounded": {"work": 2}},
)
