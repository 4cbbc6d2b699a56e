"""SHA-256 for short texts, without the library that `hashlib` loads: that takes 4 ms, a fortieth of a small run.

Python has the same function of its own, as `random` uses it. Long data have `hashlib`, which is faster there.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

__all__ = ["sha256"]


def _own() -> Any:
    """Python's own function: of the module `_sha2`, which is `_sha256` before Python 3.12; else that of `hashlib`."""
    for name in ("_sha2", "_sha256"):
        with suppress(ImportError, AttributeError):
            return import_module(name).sha256
    return import_module("hashlib").sha256


_sha256 = _own()


def sha256(data: bytes = b"") -> Any:
    """What hashes `data` and what it is given further: see `hashlib.sha256`."""
    return _sha256(data)
