"""Shell completion of the names of models, variants, sizes, parameters and properties.

Completion never fails: after an error it offers no names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from streamproof import registry
from streamproof.registry import Target

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def models(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The bundled models, and files completed by the shell."""
    names = [_item(name) for name in registry.bundled() if name.startswith(incomplete)]
    return names or [_item(incomplete, type="file")]


def _item(text: str, **more: Any) -> CompletionItem:
    from click.shell_completion import CompletionItem  # used for completion only

    return CompletionItem(text, **more)


def _of_target(offer: Callable[[Target, str | None], Iterable[tuple[str, str]]]) -> Complete:
    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        # While an option still lacks its value, click leaves the arguments before it unassigned.
        model = ctx.params.get("model") or next(iter(ctx.args), None)
        if not model:
            return []
        try:
            target = registry.find(model)
            offered = list(offer(target, ctx.params.get("variant")))
        except Exception:  # a message in the middle of a command line is useless
            return []
        return [_item(name, help=doc or None) for name, doc in offered if name.startswith(incomplete)]

    return complete


variants = _of_target(lambda t, _: ((n, registry.first_line(c.__doc__)) for n, c in t.spec.model.variants.items()))
"""The variants of the model named on the line."""
sizes = _of_target(lambda t, variant: ((name, "") for name in t.variant(variant).sizes))
"""The sizes of the model named on the line."""
properties = _of_target(lambda t, variant: ((p.name, p.kind.value) for p in t.properties(variant)))
"""The properties of the model named on the line."""
parameters = _of_target(lambda t, variant: ((f"{n}=", f"default {v}") for n, v in t.defaults(variant).items()))
"""The parameters of the model named on the line."""
