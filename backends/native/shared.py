"""Code that is made once: in a process and, by the cache, across runs, without even making the text of the module.

What code depends on is told by a key (the typed tree of an operator, the schema of a file), the processor, LLVM, and the
compiler itself.
"""

from __future__ import annotations

import json
from threading import RLock
from typing import TYPE_CHECKING, Final

from backends.native.cache import kept
from backends.native.jit import OPTIMISATION, Code, host, linked, machine_code
from river.lang.tables import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_LOCK: Final = RLock()
_KNOWN: Final[dict[str, Code]] = {}


def shared(key: str, make: Callable[[], tuple[str, Iterable[str]]], level: int = OPTIMISATION) -> Code:
    """The code that `make` gives the text and the exported names of, unless code with this key is there already."""
    machine = host()
    with _LOCK:
        if key not in _KNOWN:

            def build() -> bytes:
                text, exports = make()
                return json.dumps(list(exports)).encode() + b"\n" + machine_code(text, level)

            compiler = fingerprint("backends.native", "river.lang")
            parts = (compiler, key, machine.triple, machine.cpu, machine.features, machine.llvm)
            exports, _, code = kept(parts, build).partition(b"\n")
            _KNOWN[key] = linked(code, tuple(json.loads(exports)))
        return _KNOWN[key]
