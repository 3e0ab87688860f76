"""Labels of steps in text form: ``send(c=1)[lost=True]``, ``send(1)``, ``send``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from streamproof.base.errors import UsageError, nearest
from streamproof.base.records import dataclass
from streamproof.system.model import Instance, System

_WAY = re.compile(r"(?:\w+(?:\[[^\[\]()]*\])?\.)+")
"""The path of parts before an action: ``lane[0].``; brackets not followed by a dot hold picks."""
_BRANCHES = re.compile(r"(?<!:):\s+(\w+(?:\s*,\s*\w+)*)$")
"""The branches at the end of a label."""
_CLOSERS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Label:
    """A step pattern: an action, parameters by position or name, picks by name; omitted ones match anything.

    A value may be given as text, and then matches the value with that text.
    """

    action: str
    positional: tuple[Any, ...] = ()
    args: tuple[tuple[str, Any], ...] = ()
    picks: tuple[tuple[str, Any], ...] = ()
    branches: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Label:
        """Parses ``name``, ``name(args)`` or ``name(args)[picks]``, with ``: branch`` or not; a name may be that of a part's
        action, ``lane[0].push``.

        Raises `UsageError` for any other text.
        """
        rest = text.strip()
        taken = _BRANCHES.search(rest)
        branches = () if taken is None else tuple(one.strip() for one in taken[1].split(","))
        rest = rest if taken is None else rest[: taken.start()].rstrip()
        way = _WAY.match(rest)
        start = way.end() if way else 0
        name = rest[: min((at for c in "([" if (at := rest.find(c, start)) >= 0), default=len(rest))].strip()
        rest = rest[len(name) :].strip() if name else rest
        positional: list[str] = []
        args: list[tuple[str, str]] = []
        picks: list[tuple[str, str]] = []
        if not name[start:].replace(".", "_").replace("::", "_").isidentifier():
            raise _unreadable(text)
        for opener, named in (("(", args), ("[", picks)):
            if rest.startswith(opener):
                inside, rest = _enclosed(rest, text)
                for item in _split(inside):
                    key, equals, value = item.partition("=")
                    if equals and "(" not in key:
                        named.append((key.strip(), _bare(value)))
                    elif opener == "(" and not args:
                        positional.append(_bare(item))
                    else:
                        raise _unreadable(text)
        if rest:
            raise _unreadable(text)
        return cls(name, tuple(positional), tuple(args), tuple(picks), branches)

    def fits(self, instance: Instance) -> bool:
        """Whether `instance` matches this label."""
        texts = instance.texts[0]
        known = {name: (value, text) for (name, value), text in zip(instance.args, texts, strict=True)}
        return (
            len(self.positional) <= len(instance.args)
            and all(_agree(want, *have) for want, have in zip(self.positional, known.values(), strict=False))
            and all(name in known and _agree(want, *known[name]) for name, want in self.args)
            and self._picks_fit(instance)
            and self.branches in ((), instance.branches)
        )

    def _picks_fit(self, instance: Instance) -> bool:
        # A choice in a loop gives several picks of one name, which are matched in order.
        left = [(name, value, text) for (name, value), text in zip(instance.picks, instance.texts[1], strict=True)]
        for name, want in self.picks:
            at = next((i for i, (n, _, _) in enumerate(left) if n == name), None)
            if at is None or not _agree(want, *left.pop(at)[1:]):
                return False
        return True


def matching(system: System, wanted: Label | str) -> tuple[Instance, ...]:
    """The instances that match `wanted`, at least one. Raises `UsageError` with the available labels.

    A text equal to an instance's own label matches that instance, whatever characters its values have.
    """
    if isinstance(wanted, str):
        exact = tuple(i for i in system.instances if i.label == wanted.strip())
        if exact:
            return exact
    label = Label.parse(wanted) if isinstance(wanted, str) else wanted
    try:
        action = system.action(label.action)
    except KeyError:
        names = [a.name for a in system.actions]
        close = nearest(label.action, names)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise UsageError(
            f"{system.name} has no action {label.action!r}", remedy=f"{hint}It has: {', '.join(names)}"
        ) from None
    for name, _ in label.args:
        if name not in action.parameters:
            known = ", ".join(action.parameters) or "none"
            raise UsageError(f"{action.name} has no parameter {name!r}", remedy=f"its parameters: {known}")
    found = tuple(i for i in action.instances if label.fits(i))
    if not found:
        labels = [i.label for i in action.instances]
        some = ", ".join(labels[:6]) + (f" and {len(labels) - 6} more" if len(labels) > 6 else "")
        raise UsageError(f"{action.name} has no instance that fits", remedy=f"its instances: {some or 'none'}")
    return found


def _agree(want: Any, have: Any, shown: str) -> bool:
    # Equal values of different types are different: True is not 1. A case is equal to its value.
    same = type(want) is type(have) or not isinstance(want, int | str)
    return (same and want == have) or (isinstance(want, str) and want in (shown, str(have)))


def _bare(text: str) -> str:
    text = text.strip()
    quoted = len(text) >= 2 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if quoted else text


def _enclosed(text: str, whole: str) -> tuple[str, str]:
    """The text between the bracket that opens `text` and its closing bracket, and the rest."""
    depth: list[str] = []
    for at, char in enumerate(text):
        if char in _CLOSERS:
            depth.append(_CLOSERS[char])
        elif depth and char == depth[-1]:
            depth.pop()
            if not depth:
                return text[1:at], text[at + 1 :].strip()
    raise _unreadable(whole)


def _split(text: str) -> Iterator[str]:
    """The parts separated by commas outside brackets."""
    depth, start = 0, 0
    for at, char in enumerate(text):
        if char in _CLOSERS:
            depth += 1
        elif char in _CLOSERS.values():
            depth -= 1
        elif char == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    if text[start:].strip():
        yield text[start:]


def _unreadable(text: str) -> UsageError:
    return UsageError(
        f"{text!r} is not a step", remedy="write name, name(parameter=value, ...) or name(...)[pick=value, ...]"
    )
