"""LLVM text to code that can be called: verified, optimised for this processor, kept on disk, linked.

Code is never unmapped: what is linked stays for the life of the process.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import threading
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field, frozen

from backends.native.cache import kept
from river.diagnostics import InternalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LIBM: Final = ("fmod",)
"""Functions of the C library that code may call as `river_<name>`: exact ones (il.md P7), of two operands."""

OPTIMISATION: Final = 3
_LOCK: Final = threading.Lock()  # of the linker, and of LLVM's command line options


def available() -> bool:
    """Whether llvmlite is installed."""
    return find_spec("llvmlite") is not None


@frozen
class Machine:
    """The processor that code is made for."""

    triple: str
    cpu: str
    features: str
    llvm: str

    @property
    def architecture(self) -> str:
        """The first word of the triple: `x86_64`, `aarch64`."""
        return self.triple.split("-", 1)[0]


@define
class _Linker:
    binding: Any
    jit: Any
    libm: ctypes.CDLL
    machine: Machine
    count: int = 0
    linked: list[Any] = field(factory=list[Any])  # keeps the code mapped


@cache
def _linker() -> _Linker:
    binding: Any = import_module("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = Machine(
        binding.get_process_triple(), binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten(),
        ".".join(map(str, binding.llvm_version_info)),
    )  # fmt: skip
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    return _Linker(binding, binding.create_lljit_compiler(), libm, machine)


def host() -> Machine:
    """This processor."""
    return _linker().machine


@frozen
class Code:
    """Linked functions, by name, as addresses; `facts` is what whoever made them wants to know of them (JSON)."""

    addresses: dict[str, int] = field(hash=False)
    facts: Any = field(default=None, eq=False)

    def function(self, name: str, params: Iterable[Any], result: Any = None) -> Callable[..., Any]:
        """A function to be called without the GIL; `params` and `result` are types of `ctypes`."""
        return _callable(self.addresses[name], tuple(params), result)


@cache
def _callable(address: int, params: tuple[Any, ...], result: Any) -> Callable[..., Any]:
    return ctypes.CFUNCTYPE(result, *params)(address)


def compile_text(text: str, exports: Iterable[str]) -> Code:
    """The functions `exports` of an LLVM module.

    Raises: InternalError if the text is not a correct module.
    """
    with _LOCK:
        linker = _linker()
        machine = linker.machine
        parts = (text, machine.triple, machine.cpu, machine.features, machine.llvm, str(OPTIMISATION))
        return _link(linker, kept(parts, lambda: _object(linker, text)), tuple(exports))


def machine_code(text: str, level: int = OPTIMISATION) -> bytes:
    """An LLVM module as an object file for this processor, optimised from 0 (not at all) to 3.

    Raises: InternalError if the text is not a correct module.
    """
    with _LOCK:
        return _object(_linker(), text, level)


def linked(code: bytes, exports: tuple[str, ...]) -> Code:
    """The functions of an object file."""
    with _LOCK:
        return _link(_linker(), code, exports)


def _object(linker: _Linker, text: str, level: int = OPTIMISATION) -> bytes:
    binding, machine = linker.binding, linker.machine
    target = binding.Target.from_triple(machine.triple).create_target_machine(
        cpu=machine.cpu,
        features=machine.features,
        opt=level,
        reloc="pic",
        codemodel="default",
        jit=True,
    )
    try:
        module = binding.parse_assembly(text)
        module.triple, module.data_layout = machine.triple, str(target.target_data)
        module.verify()
    except RuntimeError as wrong:
        raise InternalError(f"native code is not well formed: {wrong}\n{text}") from None
    tuning = binding.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = tuning.slp_vectorization = level > 0
    builder = binding.create_pass_builder(target, tuning)
    builder.getModulePassManager().run(module, builder)
    return target.emit_object(module)


def _link(linker: _Linker, code: bytes, exports: tuple[str, ...]) -> Code:
    library = linker.binding.JITLibraryBuilder().add_object_img(code).add_current_process()
    for name in LIBM:
        library.import_symbol(f"river_{name}", ctypes.cast(getattr(linker.libm, name), ctypes.c_void_p).value)
    for name in exports:
        library.export_symbol(name)
    linker.count += 1
    linked = library.link(linker.jit, f"river{linker.count}")
    linker.linked.append(linked)
    return Code({name: linked[name] for name in exports})
