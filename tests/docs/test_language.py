"""The reference of the language says what is accepted and what is refused, each with the message that is really printed.

In `docs/language.md` a block under ``<!-- rule -->`` is the body of an action of the page's first model, and each line of
the table of refusals is such a body too.
"""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamproof import EvaluationError, ModelError, System
from streamproof.language.native.native import Native
from streamproof.model_registry import find
from streamproof.system.interpreter import Interpreter
from streamproof.system.sorts import Sort, values

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
MODEL = re.search(r"^<!-- file everything.py -->\n```python\n(.*?)^```$", PAGE, re.M | re.S)
RULES = re.findall(r"^<!-- rule -->\n```python\n(.*?)^```$", PAGE, re.M | re.S)
REFUSED = re.findall(r"^\| (`.*`) \| (.+?) \| (.+?) \|$", PAGE.partition("| you write |")[2].partition("\n\n")[0], re.M)
SAMPLES = 60
HEAD = '\n    @action(i="n")\n    def rule(self, s, i):\n        """The example."""\n'


def with_rule(folder: Path, body: str) -> Path:
    """A file with the page's model and one more action."""
    assert MODEL is not None
    file = folder / "everything.py"
    file.write_text(MODEL[1] + HEAD + textwrap.indent(body, " " * 8) + "\n", encoding="utf-8")
    return file


def states(system: System, count: int) -> Iterator[tuple[Any, ...]]:
    """The initial state and others drawn from all states, reachable or not; the same ones every time."""
    yield next(iter(Interpreter(system).initial_states()))
    draw = random.Random(count)
    domains = [some(v.sort) for v in system.variables]
    for _ in range(count):
        yield tuple(draw.choice(domain) for domain in domains)


def some(sort: Sort) -> list[Any]:
    """The values of a small sort."""
    return list(values(sort))


def outcome(run: Any) -> Any:
    """The state after a step, None where it is not enabled, "error" where it is a mistake of the model."""
    try:
        return run()
    except EvaluationError:
        return "error"


@pytest.mark.parametrize("number", range(len(RULES)))
def test_examples_mean_the_same_natively_and_in_the_system(number: int, tmp_path: Path) -> None:
    """Each example is read without complaint, is enabled somewhere, and does in the system what Python does with it."""
    target = find(str(with_rule(tmp_path, RULES[number])))
    system = target.system(None, {})
    native, interpreter = Native(target.spec.model()), Interpreter(system)
    enabled = 0
    for state in states(system, SAMPLES):
        for instance in system.action("rule").instances:
            after = outcome(lambda i=instance, s=state: interpreter.take(i, s) if interpreter.enabled(i, s) else None)
            assert outcome(lambda i=instance, s=state: native.take(s, i, system)) == after, (instance.label, state)
            enabled += after not in (None, "error")
    assert enabled > 0


@pytest.mark.parametrize(("code", "message", "remedy"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refusals(code: str, message: str, remedy: str, tmp_path: Path) -> None:
    """The line is refused with the message and the remedy that the table gives, at the line where it stands."""
    body = "\n".join(part.strip("`").replace("\\|", "|") for part in code.split("<br>"))
    file = with_rule(tmp_path, body)
    with pytest.raises(ModelError) as refused:
        find(str(file)).system(None, {})
    assert (refused.value.message, refused.value.remedy) == (message.replace("\\|", "|"), remedy.replace("\\|", "|"))
    assert refused.value.loc is not None
    first = file.read_text(encoding="utf-8").splitlines().index(" " * 8 + body.splitlines()[0]) + 1
    last = first + len(body.splitlines()) - 1
    assert refused.value.loc.file == str(file)
    # What an action returns, and its choices, concern the whole action.
    assert refused.value.loc.line in range(first - 3 if "return" in body else first, last + 1)


def test_the_table_is_complete() -> None:
    """The page has the examples and the refusals that the other tests are about."""
    assert len(RULES) >= 4
    assert len(REFUSED) >= 40
