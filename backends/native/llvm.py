"""LLVM's library, as llvmlite brings it: what a run needs whose code is kept, which is this processor's name, and linking.

The modules of llvmlite are for who makes code: importing them takes longer than all that is done here.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from river.classes import define, frozen
from river.diagnostics import InternalError

if TYPE_CHECKING:
    from collections.abc import Mapping

_OBJECT, _LIBRARY = 2, 3
"""What is linked: the content of an object file, a library by its name (none: this process)."""

_STRINGS: Final = {"triple": "GetProcessTriple", "cpu": "GetHostCPUName", "features": "GetHostCPUFeatures"}


class _Element(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_uint8), ("content", ctypes.c_char_p), ("size", ctypes.c_size_t))


class _Symbol(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("address", ctypes.c_uint64))


@cache
def available() -> bool:
    """Whether llvmlite is installed."""
    return find_spec("llvmlite") is not None


@frozen
class Processor:
    """The processor that code is made for."""

    triple: str
    cpu: str
    features: str
    llvm: str

    @property
    def architecture(self) -> str:
        """The first word of the triple: `x86_64`, `aarch64`."""
        return self.triple.split("-", 1)[0]


@cache
def library() -> ctypes.CDLL:
    """The library, whose calls take no lock and not the GIL; it can make code for this processor."""
    spec = find_spec("llvmlite")
    if spec is None or spec.origin is None:
        raise InternalError("llvmlite is not installed")
    suffix = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
    name = f"{'lib' if os.name == 'posix' else ''}llvmlite{suffix}"
    path = str(Path(spec.origin).parent / "binding" / name)
    _load(path)
    found = ctypes.CDLL(path)
    found.LLVMPY_CreateLLJITCompiler.restype = ctypes.c_void_p
    found.LLVMPY_CreateLLJITCompiler.argtypes = [
        ctypes.c_void_p, ctypes.c_bool, ctypes.c_bool, ctypes.POINTER(ctypes.c_char_p),
    ]  # fmt: skip
    found.LLVMPY_LLJIT_Link.restype = ctypes.c_void_p
    found.LLVMPY_LLJIT_Link.argtypes = [
        ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(_Element), ctypes.c_size_t, ctypes.POINTER(_Symbol),
        ctypes.c_size_t, ctypes.POINTER(_Symbol), ctypes.c_size_t, ctypes.POINTER(ctypes.c_char_p),
    ]  # fmt: skip
    found.LLVMPY_LLJIT_Dylib_Tracker_Dispose.restype = ctypes.c_bool
    found.LLVMPY_LLJIT_Dylib_Tracker_Dispose.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p)]
    found.LLVMPY_GetVersionInfo.restype = ctypes.c_uint
    found.LLVMPY_InitializeNativeTarget()
    found.LLVMPY_InitializeNativeAsmPrinter()
    return found


def _load(path: str) -> None:
    """Has the system load a library, if it can: as a call, which others need not wait for as they do where `CDLL` does it."""
    load = getattr(ctypes.CDLL(None), "dlopen", None) if os.name == "posix" else None
    if load is not None:
        load.restype, load.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_int]
        load(os.fsencode(path), os.RTLD_NOW)


def processor() -> Processor:
    """This processor."""
    llvm = library()
    told: dict[str, str] = {}
    for what, name in _STRINGS.items():
        text = ctypes.c_char_p()
        getattr(llvm, f"LLVMPY_{name}")(ctypes.byref(text))
        told[what] = _taken(llvm, text)
    features = sorted(filter(None, told["features"].split(",")), key=lambda feature: feature[1:])
    version = int(llvm.LLVMPY_GetVersionInfo())
    numbers = [version >> shift & 0xFF for shift in (16, 8, 0)]
    return Processor(told["triple"], told["cpu"], ",".join(features), ".".join(map(str, numbers)))


def _taken(llvm: ctypes.CDLL, text: ctypes.c_char_p) -> str:
    """A text that the library has made, which is given back."""
    found = (text.value or b"").decode("utf-8", "replace")
    llvm.LLVMPY_DisposeString(text)
    return found


@define(eq=False)
class Linker:
    """Puts object files into the memory of this process; `linked`: what keeps each there.

    Of LLVM's linkers that which lays the parts of a file side by side: the older one puts each where the system has room,
    and cuts distances of more than 2 GiB off unseen.
    """

    linked: list[int]
    _jit: int
    _count: int = 0

    @classmethod
    def started(cls) -> Linker:
        """A linker; what it has linked ends with the process."""
        wrong = ctypes.c_char_p()
        jit = library().LLVMPY_CreateLLJITCompiler(None, False, sys.platform != "win32", ctypes.byref(wrong))
        if not jit:
            raise InternalError(f"no linker: {_taken(library(), wrong)}")
        return cls([], jit)

    def link(self, code: bytes, exports: tuple[str, ...], imports: Mapping[str, int]) -> dict[str, int]:
        """The addresses of the functions `exports` of an object file that needs `imports`, which are addresses."""
        llvm, wrong = library(), ctypes.c_char_p()
        elements = (_Element * 2)((_OBJECT, code, len(code)), (_LIBRARY, b"", 0))
        needed = _symbols(dict(imports))
        found = _symbols(dict.fromkeys(exports, 0))
        self._count += 1
        tracker: Any = llvm.LLVMPY_LLJIT_Link(
            self._jit, f"river{self._count}".encode(), elements, len(elements), needed, len(needed),
            found, len(found), ctypes.byref(wrong),
        )  # fmt: skip
        if not tracker:
            raise InternalError(f"native code cannot be linked: {_taken(llvm, wrong)}")
        self.linked.append(tracker)
        return {name: found[i].address for i, name in enumerate(dict.fromkeys(exports))}

    def forget(self, since: int) -> None:
        """Takes away all but the first `since` that were linked: nobody may call them."""
        for tracker in reversed(self.linked[since:]):
            library().LLVMPY_LLJIT_Dylib_Tracker_Dispose(tracker, ctypes.byref(ctypes.c_char_p()))
        del self.linked[since:]


def _symbols(addresses: dict[str, int]) -> ctypes.Array[_Symbol]:
    return (_Symbol * len(addresses))(*((name.encode(), at) for name, at in addresses.items()))
