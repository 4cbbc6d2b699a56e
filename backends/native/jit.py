"""LLVM text to code that can be called: verified, optimised for this processor, kept on disk, linked.

Code is never unmapped: what is linked stays for the life of the process.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from backends.native.llvm import Linker, Processor, library, processor
from backends.native.tables import SECRET_WORDS, SECRETS
from river.classes import field, frozen
from river.diagnostics import InternalError
from river.lang import memory

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

    from backends.native.tiers import Tier

LIBM: Final = ("fmod",)
"""Functions of the C library that code may call as `river_<name>`: exact ones (il.md P7), of two operands."""

FUSED: Final = ("fma", "fmaf")
"""Functions of the C library that LLVM calls by these names, where a processor has no such instruction."""

secrets: Final = (ctypes.c_uint64 * SECRET_WORDS).from_buffer_copy(os.urandom(8 * SECRET_WORDS))
"""What the hash of the index of maps depends on (`runtime/text.rt`). Code reads it where it lies, so that code can be shared.

Tests may write it, as long as nothing made before is used until they have put it back.
"""

OPTIMISATION: Final = 3
"""How much code is optimised, from 0 (not at all)."""

QUICK: Final = 1
"""How much code is optimised that a run waits for: by what makes it faster and takes LLVM least. Small functions are written out
where they are called, variables are values where nothing has their addresses, blocks are joined, and values stay in registers
from block to block. Twice the time to make, a quarter less to run."""

LARGE: Final = 150_000
"""Characters of a module from which on `QUICK` is not at all: this would take more than in proportion."""

_CHECKED_LANES: Final = ".with.overflow.v"
"""In the names of operations on vectors that tell whether they overflow: where passes have moved what takes their results to
other blocks, LLVM's quick selection of instructions ends the process (22.1)."""

_INLINED: Final = re.compile(r"^(define internal [^<\n]*) alwaysinline", re.MULTILINE)
"""The head of a function that is written out where it is called; not of those of vectors, which are one instruction."""

QUICKLY: Final = "RIVER_QUICKLY"
"""A variable of the environment. If set, code of programs is not optimised: for processes that tests have Spark start."""

_LEVELS: Final = [OPTIMISATION, 0] if QUICKLY in os.environ else [OPTIMISATION]
_LOCK: Final = threading.Lock()  # of the linker
_STARTING: Final = threading.Lock()


@memory.lifted()
def _linker() -> Linker:
    with _STARTING:  # else two threads could have one each, and the code of one would be unmapped with it
        return _started()


@cache
def _started() -> Linker:
    return Linker.started()


@memory.lifted()
def host() -> Processor:
    """This processor."""
    with _STARTING:
        return _processor()


@cache
def _processor() -> Processor:
    return processor()


def expect() -> None:
    """Has the library loaded and the linker started, once in a process: long before there is code, on another thread."""
    host()
    _linker()


def level() -> int:
    """How much code of programs is optimised that is made now."""
    return _LEVELS[-1]


def stated() -> bool:
    """Whether somebody has said how much code is optimised; then it is from the start."""
    return len(_LEVELS) > 1


@contextmanager
def optimised(level_: int) -> Generator[None]:
    """For tests: has the code of programs made quickly (0), where only what it computes matters."""
    _LEVELS.append(level_)
    try:
        yield
    finally:
        _LEVELS.pop()


@frozen
class Code:
    """Linked functions, by name, as addresses; `facts` is what whoever made them wants to know of them (JSON).

    `tier`: through what they are called, if better code may come later.
    """

    addresses: dict[str, int] = field(hash=False)
    facts: Any = field(default=None, eq=False)
    tier: Tier | None = field(default=None, eq=False)

    def function(
        self, name: str, params: Iterable[Any], result: Any = None, *, short: bool = False
    ) -> Callable[..., Any]:
        """A function to be called without the GIL; `params` and `result` are types of `ctypes`.

        `short`: with the GIL, for what is sooner done than other threads give it back.
        """
        own = tuple(params)
        made = _callable(self.addresses[name], own, result, short)
        return made if self.tier is None else self.tier.function(name, made, own, result, short=short)

    def entry(self, name: str) -> int:
        """Where a function lies, for machine code that calls it: that of the better code, once it is there."""
        better = None if self.tier is None else self.tier.better
        return (self if better is None else better).addresses[name]

    def ran(self, seconds: float) -> None:
        """Machine code has called functions of it for so long: who improves code has to know (`tiers`)."""
        if self.tier is not None:
            self.tier.seconds += seconds


@cache
def _callable(address: int, params: tuple[Any, ...], result: Any, short: bool) -> Callable[..., Any]:
    make = ctypes.PYFUNCTYPE if short else ctypes.CFUNCTYPE
    return make(result, *params)(address)


@memory.lifted()
def machine_code(text: str, level: int = OPTIMISATION) -> bytes:
    """An LLVM module as an object file for this processor, optimised from 0 (not at all) over `QUICK` to 3.

    Several threads may do this at once: each has an LLVM context of its own, and the long calls go past the lock of
    llvmlite.

    Raises: InternalError if the text is not a correct module.
    """
    if level == QUICK and not _quickly_optimised(text):
        level = 0
    if not level:
        text = _INLINED.sub(r"\1", text)  # what code takes that is only made grows with its size
    binding: Any = import_module("llvmlite.binding")
    llvm, machine = library(), host()
    thorough = level if level > QUICK else 0
    target = binding.Target.from_triple(machine.triple).create_target_machine(
        cpu=machine.cpu,
        features=machine.features,
        opt=thorough,
        reloc="pic",
        codemodel="default",
        jit=True,
    )
    try:
        module = binding.parse_assembly(text, binding.create_context())
        module.triple, module.data_layout = machine.triple, str(target.target_data)
        module.verify()
    except RuntimeError as wrong:
        raise InternalError(f"native code is not well formed: {wrong}\n{text}") from None
    tuning = binding.create_pipeline_tuning_options(speed_level=thorough)
    tuning.loop_vectorization = tuning.slp_vectorization = thorough > 0
    builder = binding.create_pass_builder(target, tuning)
    passes = _quick_passes() if level == QUICK else builder.getModulePassManager()
    llvm.LLVMPY_RunNewModulePassManager(passes, module, builder)
    if not thorough:
        _registers_by_function(level == QUICK)
    return _emitted(llvm, target, module)


def _quickly_optimised(text: str) -> bool:
    """Whether `QUICK` is more than 0 for a module. For other processors, LLVM selects instructions quickly by other means."""
    return len(text) < LARGE and _CHECKED_LANES not in text and host().architecture == "x86_64"


def _quick_passes() -> Any:
    """What is done for `QUICK`."""
    binding: Any = import_module("llvmlite.binding")
    passes = binding.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    return passes


_by_function: Final = [False]


def _registers_by_function(wanted: bool) -> None:
    """Whether values stay in registers from block to block, in code that is not optimised from here on.

    LLVM has no switch for a module. If another thread turns it meanwhile, this code is slower, or takes longer to make: to
    give out the registers of a function of 100,000 instructions takes ten times as long as all else that is done with it.
    """
    with _STARTING:
        if _by_function[0] is not wanted:
            binding: Any = import_module("llvmlite.binding")
            binding.set_option("", f"-optimize-regalloc={str(wanted).lower()}")
            _by_function[0] = wanted


def _emitted(llvm: ctypes.CDLL, target: Any, module: Any) -> bytes:
    emit, start, size = (
        getattr(llvm, f"LLVMPY_{name}")
        for name in ("TargetMachineEmitToMemory", "GetBufferStart", "GetBufferSize")
    )
    emit.restype, start.restype, size.restype = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
    message = ctypes.c_char_p()
    buffer = ctypes.c_void_p(emit(target, module, 1, ctypes.byref(message)))
    if not buffer:
        raise InternalError(f"no machine code: {message.value}")
    code = ctypes.string_at(start(buffer), size(buffer))
    llvm.LLVMPY_DisposeMemoryBuffer(buffer)
    return code


@memory.lifted()
def linked(code: bytes, exports: tuple[str, ...], imports: Mapping[str, int]) -> Code:
    """The functions of an object file; `imports`: addresses of functions that it needs."""
    with _LOCK:
        return _link(_linker(), code, exports, imports)


@cache
def _libm(name: str) -> int:
    """The address of a function of the C library, which the interpreter has loaded; looking for its file takes long."""
    library = ctypes.CDLL(None)
    if not hasattr(library, name):
        from ctypes.util import find_library

        library = ctypes.CDLL(find_library("m"))
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


def _link(linker: Linker, code: bytes, exports: tuple[str, ...], imports: Mapping[str, int]) -> Code:
    needed = {f"river_{name}": _libm(name) for name in LIBM} | {name: _libm(name) for name in FUSED}
    needed[SECRETS] = ctypes.addressof(secrets)
    addresses = linker.link(code, exports, needed | dict(imports))
    if not all(addresses.values()):
        raise InternalError(f"native code has no {[name for name, at in addresses.items() if not at]}")
    return Code(addresses)
