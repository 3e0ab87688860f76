"""The explorer on a terminal, or on lines of standard input: enabled steps by number, undo, searches, and files.

On a terminal, lines are edited and completed, and a wrong one is reported. Elsewhere a wrong line ends the program: no script
goes on after it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TextIO

from streamproof.api.as_test import test_text
from streamproof.base.errors import StreamproofError, UsageError
from streamproof.base.files import ITF, write
from streamproof.base.text import BLANK, Line, StyledText, inner, line, standard_output, visible
from streamproof.exchange.itf.writing import itf_text
from streamproof.exploring.explorer import Explorer, Forever, Moves, Visit
from streamproof.report.console import print_lines
from streamproof.system.verdict import Trace
from streamproof.traces.render import MAX_LABELS, counterexample, source

HELP = (
    ("NUMBER or LABEL", "take a step, such as 2 or take(n=1)"),
    ("undo, u", "take back the last step"),
    ("go N", "view state N of the behaviour; a step from there replaces the rest"),
    ("state, s", "print the whole state"),
    ("why, w [ACTION]", "print what is not enabled, and the condition that fails"),
    ("list, l", "print the behaviour"),
    ("find, f CONDITION", "go to the nearest state where a condition is true, such as find s.n == 3"),
    ("action, a [NAME]", "go to the nearest step of an action; without a name, of one not taken yet"),
    ("violation, v [NAME]", "go to a violation of a property, or of any"),
    ("random, r", "go to a random deep state"),
    ("start [N]", "begin again, in initial state N"),
    ("save FILE", "write the behaviour as ITF"),
    ("test", "print the behaviour as a test for pytest"),
    ("quit, q", "end"),
)
_SHORT = {
    "u": "undo",
    "s": "state",
    "w": "why",
    "l": "list",
    "f": "find",
    "a": "action",
    "v": "violation",
    "r": "random",
}
_SHORT |= {"q": "quit", "h": "help", "?": "help", "b": "undo"}


class Session:
    """A session of one explorer with its lines of input; `stream` gets the output."""

    def __init__(self, explorer: Explorer, visit: Visit, stream: TextIO) -> None:
        self.explorer, self.visit, self.stream = explorer, visit, stream
        self.moves: Moves = explorer.moves(visit)
        self.is_terminal = sys.stdin.isatty() and inner(stream).isatty() and os.isatty(1)

    def run(self) -> None:
        """Answers lines until the input ends. Raises `StreamproofError` for a wrong line that is not typed on a terminal."""
        print_lines(self._shown(), self.stream)
        for text in self._lines():
            try:
                if not self.command(text.strip()):
                    return
            except StreamproofError as error:
                if not self.is_terminal:
                    raise
                remedy = f"\n  {error.remedy}" if error.remedy else ""
                self.stream.write(f"{error.message}{remedy}\n")

    def command(self, text: str) -> bool:
        """Does one line; false if it is the last one. Raises `StreamproofError` for a wrong one."""
        word, _, rest = text.partition(" ")
        explorer, rest, visit = self.explorer, rest.strip(), self.visit
        match _SHORT.get(word, word):
            case "":
                print_lines(self._shown(), self.stream)
            case "quit" | "exit":
                return False
            case "help":
                print_lines((line(f"{name:<22}", what, hang=22) for name, what in HELP), self.stream)
            case "undo":
                if not visit.at:
                    raise UsageError("there is no step to take back", remedy="start N begins in another initial state")
                past = Trace(visit.trace.states[: visit.at], visit.trace.steps[: visit.at - 1])
                self._view(Visit(past, visit.at - 1))
            case "go":
                self._view(visit.move(_number(rest, len(visit.trace) - 1)))
            case "state":
                print_lines(
                    (line(StyledText(row.text, "place"), " = ", row.value) for row in explorer.rows(visit)), self.stream
                )
            case "why":
                print_lines(self._blocked(rest), self.stream)
            case "list":
                print_lines(counterexample(explorer.system, visit.shows(explorer.system), visit.trace), self.stream)
            case "find":
                self._view(explorer.find(visit, rest))
            case "action":
                self._view(explorer.reach(visit, rest or None))
            case "violation":
                self._view(explorer.violate(rest or None))
            case "random":
                self._view(explorer.deep(visit))
            case "start":
                self._view(explorer.begin(_number(rest or "0", len(explorer.initial) - 1)))
            case "save":
                if not rest:
                    raise UsageError("save needs a name", remedy="save trace.itf.json")
                write(
                    Path(rest),
                    itf_text(explorer.system, visit.trace, visit.shows(explorer.system), explorer.origin),
                    ITF,
                )
                self.stream.write(f"{rest}\n")
            case "test":
                inner(self.stream).write(test_text(explorer.selection, explorer.system, visit.trace))
            case _ if word.isdecimal():
                number = _number(word, len(self.moves.enabled), "step")
                if not number:
                    raise UsageError("no step 0", remedy="steps are numbered from 1")
                self._view(explorer.take(visit, self.moves.enabled[number - 1].label))
            case _ if text.rstrip(")]").isidentifier() or any(c in text for c in "([:."):
                self._view(explorer.take(visit, text))
            case _:
                raise UsageError(f"no command {text!r}", remedy="help lists the commands")
        return True

    def _view(self, visit: Visit) -> None:
        self.visit, self.moves = visit, self.explorer.moves(visit)
        print_lines(self._shown(), self.stream)

    def _shown(self) -> Iterator[Line]:
        """The viewed state: the last step and its changes, what is false, and the enabled steps with their numbers."""
        visit = self.visit
        if visit.note:
            yield line(StyledText(visit.note, "faint"))
        last = len(visit.trace) - 1
        where = f"state {visit.at}" + (f" of {last}" if visit.at < last else "")
        if visit.trace.stutters:
            where += f"; the behaviour stays in state {last} forever"
        elif visit.trace.loop is not None:
            where += f"; states {visit.trace.loop} to {last} repeat forever"
        by = visit.trace.steps[visit.at - 1].label if visit.at else "initial state"
        yield line(StyledText(where, "title"), "  ", StyledText(by, "action"))
        for row in self.explorer.rows(visit):
            if row.old is not None:
                change = (StyledText(row.old, "old"), " -> ", StyledText(row.value, "new"))
                yield line(StyledText(row.text, "place"), ": ", *change, indent=4)
            elif not visit.at:
                yield line(StyledText(row.text, "place"), " = ", row.value, indent=4)
        for prop, reasons in self.explorer.false(visit):
            yield line(StyledText(f"{prop.name} is false here", "failed"), indent=2)
            for reason in reasons:
                yield line(str(reason), indent=4)
        forever = self.explorer.forever(visit)
        if forever is not None:
            yield from self._forever(forever)
        for number, one in enumerate(self.moves.enabled, start=1):
            fairness = self.explorer.fairness.get(one.label)
            more = (StyledText(f"  {fairness}", "faint"),) if fairness else ()
            yield line(StyledText(f"{number:>3}  "), StyledText(one.label, "action"), *more, hang=7)
        for label, error in self.moves.errors:
            yield line(StyledText(f"{label}: {error.message}", "failed"), indent=5)
        if not self.moves.enabled and not self.moves.errors:
            ends = "the state is terminal" if self.moves.terminal else "a deadlock, the state is not terminal"
            yield line(StyledText(f"no action is enabled: {ends}", "failed" if not self.moves.terminal else "plain"))

    def _forever(self, forever: Forever) -> Iterator[Line]:
        """The fairness of a behaviour without end, and what is false of it."""
        for prop, conditions in forever.false:
            yield line(StyledText(f"{prop.name} is false of this behaviour", "failed"), indent=2)
            for where, reason in conditions:
                yield line(f"{where}: {reason}", indent=4)
        if forever.treatments:
            yield line("fair:" if forever.fair else "not fair, so no temporal property is violated by it:", indent=2)
        for one in forever.treatments:
            more = f" and {len(one.labels) - MAX_LABELS} more" if len(one.labels) > MAX_LABELS else ""
            yield line(StyledText(", ".join(one.labels[:MAX_LABELS]), "action"), f"{more}: {one.text}", indent=4)

    def _blocked(self, action: str) -> Iterator[Line]:
        names = {a.name for a in self.explorer.system.actions}
        if action and action not in names:
            raise UsageError(f"no action {action!r}", remedy=f"it has: {', '.join(sorted(names))}")
        for one in self.moves.blocked:
            if action in ("", one.action):
                more = f" and {len(one.labels) - MAX_LABELS} more" if len(one.labels) > MAX_LABELS else ""
                yield line(StyledText(", ".join(one.labels[:MAX_LABELS]), "action"), more)
                at = source(one.reason.loc)
                yield line(str(one.reason), StyledText(f"   {at}" if at else "", "source"), indent=4)
        yield BLANK

    # --- input

    def _lines(self) -> Iterator[str]:
        """The lines of the input: edited and completed on a terminal."""
        if not self.is_terminal:
            try:
                yield from sys.stdin
            except UnicodeDecodeError as error:
                raise UsageError(f"the input is no text: {error.reason}", remedy="write UTF-8") from None
            return
        with suppress(ImportError):
            import readline

            readline.set_completer_delims("")
            readline.set_completer(self._completed)
            readline.parse_and_bind("tab: complete")
        # Python edits lines only where standard output is the descriptor 1; the results of the program have another one.
        with open(1, "w", encoding="utf-8", closefd=False) as terminal:
            while True:
                written, sys.stdout = sys.stdout, terminal
                try:
                    text = input("> ")
                except EOFError:
                    self.stream.write("\n")
                    return
                finally:
                    sys.stdout = written
                yield text

    def _completed(self, text: str, number: int) -> str | None:
        """The completion of a line with a number, for readline."""
        known = [one.label for one in self.moves.enabled] + [
            name.partition(",")[0].partition(" ")[0] for name, _ in HELP[1:]
        ]
        return next(islice((visible(k) for k in known if k.startswith(text)), number, None), None)


def _number(text: str, most: int, what: str = "state") -> int:
    if not (text.isdecimal() and text.isascii() and len(text) < 10 and int(text) <= most):
        raise UsageError(
            f"no {what} {text!r}", remedy=f"give {int(what == 'step')} to {most}" if most else "there is none"
        )
    return int(text)


def step_through(explorer: Explorer, visit: Visit) -> None:
    """A session on standard input and output; raises as `Session.run`."""
    Session(explorer, visit, standard_output()).run()
