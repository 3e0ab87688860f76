"""From LLVM's intermediate form to functions that can be called; compiled code is kept for the next time."""

from __future__ import annotations

import ctypes
import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from streamproof.system.records import dataclass

CACHE_VARIABLE = "STREAMPROOF_CACHE"
"""The environment variable that names the folder for compiled code; empty: nothing is kept."""
KEPT = 200
"""So many compiled modules are kept; the oldest make room."""


@dataclass(frozen=True)
class Module:
    """Compiled functions, by name. They live as long as this object, or a function taken from it."""

    addresses: dict[str, int]
    _engine: Any = field(repr=False)

    def function(self, name: str, arguments: int) -> Callable[..., int]:
        """The function `name` of so many words; calling it releases Python's lock. Threads may share it."""
        prototype = ctypes.CFUNCTYPE(ctypes.c_uint64, *[ctypes.c_uint64] * arguments)
        found = prototype(self.addresses[name])
        found.module = self  # type: ignore[attr-defined]  # the code lives as long as the function that calls it
        return found


def build(text: str | Callable[[], str], names: Sequence[str], *, optimise: bool, key: str | None = None) -> Module:
    """Compile a module given as text; `names` are the functions that will be asked for.

    `optimise` runs LLVM's passes, worth it for the fixed loops; generated code is in good form already. With a `key` that
    stands for the text, code that was kept is found again without the text, which may then be a function that makes it.
    """
    machine = _machine()
    place = _place(key if key is not None else _text(text), optimise)
    code = None
    if place is not None:
        with suppress(OSError):
            code = place.read_bytes()
            os.utime(place)
    if code is not None:
        # An engine wants a module, even an empty one.
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return Module({name: engine.get_function_address(name) for name in names}, engine)
    module = llvm.parse_assembly(_text(text))
    if optimise:
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        passes = llvm.create_pass_builder(machine, options)
        passes.getModulePassManager().run(module, passes)
    engine = llvm.create_mcjit_compiler(module, machine)
    kept: list[bytes] = []
    engine.set_object_cache(lambda _, made: kept.append(made), lambda _: None)
    engine.finalize_object()
    if place is not None and kept:
        _keep(place, kept[0])
    return Module({name: engine.get_function_address(name) for name in names}, engine)


def _text(given: str | Callable[[], str]) -> str:
    return given if isinstance(given, str) else given()


def _machine() -> Any:
    """The processor at hand, as a target. An engine takes it over: each needs its own."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    # MCJIT puts code and data wherever memory is free, hence the large code model.
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        reloc="pic",
        codemodel="jitdefault",
    )


def _place(text: str, optimise: bool) -> Path | None:
    """Where the code of this module is kept: the processor and the compiler's version are part of the name."""
    folder = os.environ.get(CACHE_VARIABLE)
    if folder is None:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        folder = os.path.join(base, "streamproof")
    if not folder:
        return None
    features = llvm.get_host_cpu_features().flatten()
    key = "\n".join((llvmlite.__version__, llvm.get_host_cpu_name(), features, str(optimise), text))
    return Path(folder) / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.o"


def _keep(place: Path, code: bytes) -> None:
    """Write the file as a whole or not at all; a folder that cannot be written is no reason to stop."""
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=place.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(code)
        os.replace(name, place)
        others = sorted(place.parent.glob("*.o"), key=lambda p: p.stat().st_mtime)
        for old in others[:-KEPT]:
            old.unlink(missing_ok=True)
