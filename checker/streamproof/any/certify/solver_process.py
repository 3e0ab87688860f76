"""A solver in a separate process: scripts on standard input, one answer per line on standard output. It is run by its
path and imports one solver only.

``python -I solver_process.py z3|cvc5 MILLISECONDS < scripts.json`` reads a list of SMT-LIB scripts. It prints the
version of the solver, then for each script ``unsat``, ``sat``, ``unknown`` or ``error``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any


def z3_solver(milliseconds: int) -> tuple[str, Callable[[str], str]]:
    """Z3's version, and its answer to a script."""
    import z3

    def answer(text: str) -> str:
        context = z3.Context()
        solver = z3.Solver(ctx=context)
        solver.set("timeout", milliseconds)
        solver.from_string(text)
        return str(solver.check())

    return z3.get_version_string(), answer


def cvc5_solver(milliseconds: int) -> tuple[str, Callable[[str], str]]:
    """The version of cvc5, and its answer to a script."""
    import cvc5

    def answer(text: str) -> str:
        solver: Any = cvc5.Solver()
        solver.setOption("tlimit-per", str(milliseconds))
        parser: Any = cvc5.InputParser(solver)
        parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "obligation")
        symbols, said = parser.getSymbolManager(), ""
        while not (command := parser.nextCommand()).isNull():
            said += command.invoke(solver, symbols)
        return said.strip()

    return str(cvc5.__version__), answer


def main() -> None:
    """Answers every script."""
    name, milliseconds = sys.argv[1], int(sys.argv[2])
    version, answer = {"z3": z3_solver, "cvc5": cvc5_solver}[name](milliseconds)
    print(version, flush=True)
    for text in json.load(sys.stdin):
        try:
            said = answer(text)
        except Exception:  # a script that the solver rejects proves nothing
            said = "error"
        print(said if said in ("unsat", "sat", "unknown") else "error", flush=True)


if __name__ == "__main__":
    main()
