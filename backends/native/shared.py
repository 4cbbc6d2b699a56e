"""Code that is made once: in a process and, by the cache, across runs, without even making the text of the module.

What code depends on is told by a key (the typed tree of an operator, the schema of a file), the processor, LLVM, and the
compiler itself.
"""

from __future__ import annotations

import json
from threading import RLock
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, frozen

from backends.native.cache import kept
from backends.native.jit import OPTIMISATION, Code, host, linked, machine_code
from river.lang.tables import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable

_LOCK: Final = RLock()
_KNOWN: Final[dict[str, Code]] = {}
_SPENT: Final[list[float]] = []  # seconds, by what was not in the cache


def spent() -> float:
    """Seconds that this process has spent making code that was not in the cache."""
    return sum(_SPENT)


@frozen
class Made:
    """The text of a module, what it exports, and facts about it that are kept with the code (JSON)."""

    text: str
    exports: tuple[str, ...]
    facts: Any = None


def shared(key: str, make: Callable[[], Made], level: int = OPTIMISATION) -> Code:
    """The code that `make` gives the text of, unless code with this key is there already."""
    machine = host()
    with _LOCK:
        if key not in _KNOWN:

            def build() -> bytes:
                began = perf_counter()
                made = make()
                head = json.dumps({"exports": made.exports, "facts": made.facts})
                found = head.encode() + b"\n" + machine_code(made.text, level)
                _SPENT.append(perf_counter() - began)
                return found

            compiler = fingerprint("backends.native", "river.lang")
            parts = (compiler, key, machine.triple, machine.cpu, machine.features, machine.llvm)
            head, _, code = kept(parts, build).partition(b"\n")
            told = json.loads(head)
            _KNOWN[key] = evolve(linked(code, tuple(told["exports"])), facts=told["facts"])
        return _KNOWN[key]
