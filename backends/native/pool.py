"""How much memory native code may take: by all arenas of the process together, and by each."""

from __future__ import annotations

import ctypes
from typing import Final

from river.classes import define, field
from river.lang import memory


@define(eq=False)
class Pool:
    """Two words that native code counts in: the bytes that all arenas have taken from the system, and the most."""

    _words: ctypes.Array[ctypes.c_int64] = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._words = (ctypes.c_int64 * 2)(0, default_limit())

    @property
    def address(self) -> int:
        """Of the words."""
        return ctypes.addressof(self._words)

    @property
    def used(self) -> int:
        """Bytes."""
        return self._words[0]

    @property
    def most(self) -> int:
        """Bytes; a firing that asks for more traps."""
        return self._words[1]

    @most.setter
    def most(self, value: int) -> None:
        self._words[1] = value


def default_limit() -> int:
    """What the process may have; where somebody set a limit, what is left of that, less some for all that is not an arena."""
    return memory.most() if memory.limited() is None else max(0, memory.most() - memory.used()) // 8 * 7


POOL: Final = Pool()
"""That of the process; it lives as long as the process, since arenas point to it."""
