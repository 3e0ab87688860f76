"""Options that several verbs share, and the completion of models, variants, parameters and properties in shells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from streamproof.base.options import flag
from streamproof.base.records import dataclass
from streamproof.cli.arguments import argument
from streamproof.model_registry import Target, bundled, find, first_line
from streamproof.selection import Selection, select

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# --- shell completion: it never fails, and offers no names after an error

Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def complete_models(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The bundled models, and files completed by the shell."""
    names = [_item(name) for name in bundled() if name.startswith(incomplete)]
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
            target = find(model)
            offered = list(offer(target, ctx.params.get("variant")))
        except Exception:  # a message in the middle of a command line is useless
            return []
        return [_item(name, help=doc or None) for name, doc in offered if name.startswith(incomplete)]

    return complete


complete_variants = _of_target(lambda t, _: ((n, first_line(c.__doc__)) for n, c in t.spec.model.variants.items()))
"""The variants of the model named on the line."""
complete_sizes = _of_target(lambda t, variant: ((name, "") for name in t.variant(variant).sizes))
"""The sizes of the model named on the line."""
complete_properties = _of_target(lambda t, variant: ((p.name, p.kind.value) for p in t.properties(variant)))
"""The properties of the model named on the line."""
complete_parameters = _of_target(lambda t, variant: ((f"{n}=", f"default {v}") for n, v in t.defaults(variant).items()))
"""The parameters of the model named on the line."""


@dataclass(frozen=True, slots=True)
class ModelArguments:
    """A model with a variant, parameters and properties."""

    model: str = argument(shell_complete=complete_models)
    variant: str | None = flag("A variant instead of the model itself.", unit="NAME", shell_complete=complete_variants)
    size: str | None = flag("Named set of parameter values.", unit="small|medium|large", shell_complete=complete_sizes)
    parameters: tuple[str, ...] = flag(
        "Set one parameter; may be repeated. --NAME VALUE is short for it.",
        "-p", unit="NAME=VALUE", shell_complete=complete_parameters,
    )  # fmt: skip
    properties: tuple[str, ...] = flag(
        "Only this property; may be repeated.", "--property", unit="NAME", shell_complete=complete_properties
    )

    def select(self, *, answering: bool = False) -> Selection:
        """The selection; see `streamproof.selection.select`."""
        properties = self.properties or ()  # a verb may leave them out
        return select(self.model, self.variant, self.size, self.parameters, properties, answering=answering)
