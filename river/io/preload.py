"""The libraries below pyarrow, loaded by a thread while Python imports other modules.

To load them takes a third of importing pyarrow, and Python's import does it while all its other threads wait.
"""

from __future__ import annotations

import os
import sys
import threading
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from river.lang import memory
from river.platform import here

_LIBRARY = "libarrow_python.so*"  # which needs all others that to import pyarrow loads


_BESIDE = ("array", "base64", "bisect", "fcntl", "json")
"""Modules in C, or that need some, which a run imports next: the system loads one library at a time, so they would wait."""


def preload() -> None:
    """Has them loaded, where there is a core for that. If it does not come to that, whoever imports pyarrow loads them."""
    if (
        sys.platform != "linux"
        or here().cores == 1
        or "pyarrow" in sys.modules
        or memory.limited() is not None
    ):
        return
    found = find_spec("pyarrow")
    folders = () if found is None else found.submodule_search_locations or ()
    libraries = sorted(path for folder in folders for path in Path(folder).glob(_LIBRARY))
    if libraries:
        for name in _BESIDE:
            import_module(name)
        import ctypes

        load = ctypes.CDLL(None).dlopen  # as a function of C: `ctypes.CDLL` has other threads wait, too
        load.argtypes, load.restype = [ctypes.c_char_p, ctypes.c_int], ctypes.c_void_p
        given = os.fsencode(libraries[-1]), os.RTLD_NOW
        threading.Thread(target=load, args=given, name="river-libraries", daemon=True).start()
