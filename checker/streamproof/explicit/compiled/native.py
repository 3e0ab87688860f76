"""Compilation of LLVM's intermediate representation to callable functions, with a cache of compiled code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from streamproof.explicit.compiled.code_cache import CacheEntry
from streamproof.system.records import dataclass
from streamproof.version import VERSION


@dataclass(frozen=True)
class Module:
    """Compiled functions by name. The code lives as long as this object or a function taken from it."""

    addresses: dict[str, int]
    _engine: Any = field(repr=False)

    def function(self, name: str, arguments: int) -> Callable[..., int]:
        """The function `name` with `arguments` words as parameters. Thread-safe; calls release the GIL."""
        prototype = ctypes.CFUNCTYPE(ctypes.c_uint64, *[ctypes.c_uint64] * arguments)
        found = prototype(self.addresses[name])
        found.module = self  # type: ignore[attr-defined]  # the code lives as long as the function that calls it
        return found


def build(text: str | Callable[[], str], names: Sequence[str], *, optimise: bool, key: str | None = None) -> Module:
    """Compile a module given as text; `names` are its exported functions.

    `optimise` runs LLVM's passes, which pay off for kernels; generated code does not need them. With a `key` that identifies
    the text, cached code is found without the text, which may then be a function that returns it.
    """
    machine = _machine()
    entry = CacheEntry({**_compiler(), "optimise": str(optimise), "code": key if key is not None else _text(text)})
    code = entry.load()
    if code is not None:
        # An execution engine needs a module, even an empty one.
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
    made: list[bytes] = []
    engine.set_object_cache(lambda _, code: made.append(code), lambda _: None)
    engine.finalize_object()
    if made:
        entry.store(made[0])
    return Module({name: engine.get_function_address(name) for name in names}, engine)


def _text(given: str | Callable[[], str]) -> str:
    return given if isinstance(given, str) else given()


def _machine() -> Any:
    """The target machine of this processor. An execution engine takes ownership, so each needs its own."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    # MCJIT allocates code and data at any address, hence the large code model.
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        reloc="pic",
        codemodel="jitdefault",
    )


@cache
def _compiler() -> dict[str, str]:
    """The parts of the cache key besides the text: compilers, their settings, the processor."""
    return {
        "streamproof": VERSION,
        "settings": sha256(Path(__file__).read_bytes()).hexdigest(),
        "llvmlite": llvmlite.__version__,
        "llvm": str(llvm.llvm_version_info),
        "target": llvm.get_process_triple(),
        "processor": llvm.get_host_cpu_name(),
        "features": llvm.get_host_cpu_features().flatten(),
    }
