"""Patterns that are made while the program runs: a call of machine code back into Python makes their tables.

An instance has an index of the patterns it knows, which machine code searches (`regex_lookup` of `runtime/regex.rt`); only
what is not there is asked for here. A pattern is run by Pike's machine at first, and gets a DFA when it has been used
`regex.rt`'s PATTERN_OFTEN times: to make that takes a millisecond. One not used since the last look around leaves when there are
too many.
"""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from backends.native.batch import address_of
from river.classes import define, field
from river.lang.patterns import BadPattern, compile_pattern

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Iterator

    from backends.native.operator import Calls
    from river.lang.patterns import Regex

SLOTS: Final = 1024  # as in regex.rt, PATTERN_SLOTS
_WORDS: Final = (
    5  # of a slot: hash, the two words of the text, the address of the table, how often it was used
)
MOST: Final = 512
MOST_BYTES: Final = 1 << 25  # of all tables
_WORK: Final = (
    50_000  # threads visited while a table is made: about 20 ms at most; then Pike's machine runs the pattern
)
_SHORT: Final = 12
_LENGTH: Final = (1 << 31) - 1
_FAILED: Final = -1

_I: Final = ctypes.c_int64
_HOST: Final = ctypes.CFUNCTYPE(_I, _I, _I)


@lru_cache(maxsize=256)
def _table(pattern: str, often: bool) -> array[int]:
    """The table of a pattern, shared by all instances; without a DFA if it is not used often.

    Raises: BadPattern.
    """
    from river.lang.automata.tables import table

    return table(compile_pattern(pattern).machine.program, work=_WORK if often else 0)


@lru_cache(maxsize=256)
def words(regex: Regex) -> bytes:
    """The table of a constant pattern, little-endian."""
    from river.lang.automata.tables import table

    found = table(regex.machine.program)
    if sys.byteorder == "big":
        found.byteswap()
    return found.tobytes()


@define(eq=False)
class _Known:
    """A pattern with its table. `a`, `b`: the words of its text, which lies in `text`; `hash`: as machine code has it."""

    hash: int
    a: int
    b: int
    text: Any
    table: array[int]

    @property
    def size(self) -> int:
        """Bytes of the table."""
        return len(self.table) * self.table.itemsize


@define(eq=False)
class Patterns:
    """The patterns of an instance.

    `make`: gives the table of a pattern and of whether it is used often, or raises BadPattern. `failure`: what else was
    raised in the last call, to be raised where native code was called.
    """

    calls: Calls
    make: Callable[[str, bool], array[int]] = _table
    failure: BaseException | None = None
    _known: list[_Known] = field(factory=list["_Known"], repr=False)
    _slots: Any = field(factory=_I * (SLOTS * _WORDS), repr=False)
    _head: Any = field(init=False, repr=False)
    _host: Any = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._host = _HOST(self._asked)
        host = ctypes.cast(self._host, ctypes.c_void_p).value or 0
        self._head = (_I * 2)(host, ctypes.addressof(self._slots))

    @property
    def address(self) -> int:
        """What the context has."""
        return ctypes.addressof(self._head)

    def regions(self) -> Iterator[tuple[int, int]]:
        """The memory that machine code may reach, by address and size."""
        for each in (self._head, self._slots):
            yield ctypes.addressof(each), ctypes.sizeof(each)
        for known in self._known:
            yield address_of(known.table), known.size
            yield ctypes.addressof(known.text), ctypes.sizeof(known.text)

    def _asked(self, text: int, hash_: int) -> int:
        """The address of the table of a text's pattern; 0: it is no pattern, `_FAILED`: something else went wrong."""
        self.calls.count += 1
        try:
            return address_of(self._found(text, hash_))
        except BadPattern:
            return 0
        except BaseException as failure:  # noqa: BLE001 - nothing may be raised through machine code
            self.failure = failure
            return _FAILED

    def _found(self, text: int, hash_: int) -> array[int]:
        """Keeps the pattern whose view is at an address, or one that is known by a better table."""
        a, b = _I.from_address(text).value, _I.from_address(text + 8).value
        size = a & _LENGTH
        data = ctypes.string_at(text + 4, size) if size <= _SHORT else ctypes.string_at(b, size)
        for known in self._known:
            if known.hash == hash_ and known.text.raw[:size] == data and known.a == a:
                before, known.table = address_of(known.table), self.make(data.decode(), True)
                place = next(i for i in range(3, SLOTS * _WORDS, _WORDS) if self._slots[i] == before)
                self._slots[place] = address_of(known.table)
                return known.table
        found = self.make(data.decode(), False)
        kept = ctypes.create_string_buffer(data, max(size, 1))
        known = _Known(hash_, a, b if size <= _SHORT else ctypes.addressof(kept), kept, found)
        if len(self._known) == MOST or sum(each.size for each in (known, *self._known)) > MOST_BYTES:
            self._sweep()
        self._known.append(known)
        self._enter(known, used=True)
        return found

    def clear(self) -> None:
        """Lets go all patterns."""
        self._known = []
        ctypes.memset(self._slots, 0, ctypes.sizeof(self._slots))

    def _enter(self, known: _Known, *, used: bool) -> None:
        at = known.hash & SLOTS - 1
        while self._slots[at * _WORDS + 3]:
            at = at + 1 & SLOTS - 1
        row = (known.hash, known.a, known.b, address_of(known.table), int(used))
        self._slots[at * _WORDS : (at + 1) * _WORDS] = row

    def _sweep(self) -> None:
        """Lets go what was not used since the last time; everything, where that is not half of it."""
        used = {self._slots[i + 3] for i in range(0, SLOTS * _WORDS, _WORDS) if self._slots[i + 4]}
        left = [known for known in self._known if address_of(known.table) in used]
        small = 2 * sum(known.size for known in left) <= MOST_BYTES
        self.clear()
        if 2 * len(left) <= MOST and small:
            self._known = left
            for known in left:
                self._enter(known, used=False)


__all__ = ["MOST", "MOST_BYTES", "SLOTS", "Patterns", "words"]
