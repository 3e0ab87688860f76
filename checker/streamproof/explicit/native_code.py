"""Compilation of LLVM's intermediate representation to callable functions, with a cache of compiled code.

The cache has files named by a hash of everything that the code depends on, loaded only if intact. A file has the magic line,
the SHA-256 of the key, the SHA-256 of the code, and the code. After any failure of a file or the folder, the code is compiled
again, and replaces the file if possible.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from streamproof import interrupts
from streamproof.base.errors import SystemFailure
from streamproof.base.files import CODE, write
from streamproof.base.records import dataclass
from streamproof.base.seals import cache_folder, only_ours
from streamproof.base.text import visible
from streamproof.version import VERSION

KEPT = 200
"""Largest number of compiled modules in the folder; the least recently used are removed."""
LARGE = 1 << 15
"""Size of a text, in characters, from which its compilation takes long enough that signals are handled meanwhile."""
MAGIC = b"streamproof code 2\n"
_HEAD = len(MAGIC) + 2 * (64 + 1)
"""Size of the header in bytes: the magic line and two lines of 64 digits."""
_OURS = re.compile(r"[0-9a-f]{64}\.(code|[^.]+\.part)|[0-9a-f]{40}\.o")
"""Names of cache files of this and earlier versions, incomplete files of killed processes included."""


class CacheEntry:
    """The cache entry of the code determined by `parts`: texts by name, in any order."""

    def __init__(self, parts: Mapping[str, str]) -> None:
        whole = {
            **parts,
            "python": f"{sys.implementation.cache_tag} {sys.maxsize}",
            "platform": f"{sys.platform} {platform.machine()}",
        }
        # Each part with its length, so that different sets of parts have different texts.
        text = "".join(f"{name} {len(value)}\n{value}\n" for name, value in sorted(whole.items()))
        self._digest = sha256(text.encode()).hexdigest()
        folder = cache_folder()
        self.path = None if folder is None else folder / f"{self._digest}.code"

    def load(self) -> bytes | None:
        """The stored code; None if it is missing or not intact."""
        data = _read(self.path) if self.path is not None and _is_safe(self.path.parent) else None
        if data is None:
            return None
        code = data[_HEAD:]
        return code if code and data[:_HEAD] == self._header(code) else None

    def store(self, code: bytes) -> None:
        """Write the file atomically; a folder that cannot be written is ignored."""
        if self.path is None:
            return
        with suppress(OSError, SystemFailure):
            folder = self.path.parent
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_safe(folder):
                return
            with suppress(FileNotFoundError):
                self.path.unlink()  # an entry that was not loaded
            write(self.path, self._header(code) + code, CODE, 0o600)
            ours = [(p.stat().st_mtime, p) for p in folder.iterdir() if _OURS.fullmatch(p.name)]
            for _, old in sorted(ours)[:-KEPT]:
                old.unlink(missing_ok=True)

    def _header(self, code: bytes) -> bytes:
        return MAGIC + f"{self._digest}\n{sha256(code).hexdigest()}\n".encode()


def _is_safe(folder: Path) -> bool:
    """Whether only this user and root can write to the folder; else prints a note, once."""
    try:
        about = folder.lstat()
    except OSError:
        return False
    if stat.S_ISDIR(about.st_mode) and only_ours(about):
        return True
    _note(f"{folder} is a link, is not a folder, or is writable by others")
    return False


@cache
def _note(why: str) -> None:
    sys.stderr.write(f"streamproof: note: cached compiled code is not used: {visible(why)}\n")


def _read(path: Path) -> bytes | None:
    """The content of a regular file that only its owner, this user or root, can have written; else None."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode) or not only_ours(about):
                _note(f"{path} is not a regular file, or is writable by others")
                return None
            data = file.read()
    except OSError:
        return None
    with suppress(OSError):
        os.utime(path)  # the order of removal is least recently used
    return data


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
    found = _text(text)
    if len(found) < LARGE:
        return _compiled(found, names, machine, entry, optimise=optimise)
    return interrupts.apart(lambda: _compiled(found, names, machine, entry, optimise=optimise))


def _compiled(text: str, names: Sequence[str], machine: Any, entry: CacheEntry, *, optimise: bool) -> Module:
    module = llvm.parse_assembly(text)
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
