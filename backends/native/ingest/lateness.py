"""Rows that may come late: they wait in columns until no earlier one can come, as in `river.io.order.Ordering`.

What is given out in the end is all that was taken, in order of keys, equal ones as they came. A block in which a row comes too
late is left to the general reader, which has the rows that wait meanwhile.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Final

from attrs import define, field

from backends.native.batch import Batch, concat
from backends.native.ingest.memory import address
from backends.native.layout import Kind, columns, widths
from backends.native.shared import Made, shared
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from backends.native.jit import Code
    from river.io.order import Ordering

_P: Final = ctypes.c_void_p
_I: Final = ctypes.c_int64
_LEAST: Final = -(1 << 63)
_KEYS: Final = (t.I64, t.TIME, t.DURATION)
_EXPORTS: Final = ("first_late", "arrange", "until", "gather", "texts_size", "texts_kept")


@cache
def _code() -> Code:
    """The functions of `runtime/ingest_order.rt`."""

    def make() -> Made:
        from backends.native.ir import module_text, reachable
        from backends.native.rtlang import Unit, compile_file

        functions = compile_file("ingest_order.rt", Unit()).functions
        texts = [
            f.text.replace("define internal", "define", 1) if f.name in _EXPORTS else f.text
            for f in reachable(functions, _EXPORTS)
        ]
        return Made(module_text(texts), _EXPORTS)

    return shared("ingest order", make)


def may_wait(type_: t.Type, key: int) -> bool:
    """Whether rows of a type can wait in columns: they have a column for each part, and the key is a number of 64 bits."""
    return t.parts(type_)[key] in _KEYS and not any(c.kind is Kind.OFFSETS for c in columns(type_).columns)


@define(eq=False)
class Waiting:
    """The rows of an input that wait."""

    type: t.Type
    ordering: Ordering
    _held: Batch = field(init=False)
    _column: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._held = Batch.of(self.type, [])
        self._column = sum(widths(part)[0] for part in t.parts(self.type)[: self.ordering.key])

    def takes(self, batches: Sequence[Batch]) -> bool:
        """Whether none of these rows is late."""
        state = self._top()
        return all(self._seen(batch, state) == batch.rows for batch in batches)

    def _top(self) -> Any:
        """Memory with the largest key so far."""
        return (_I * 1)(_LEAST if self.ordering.top is None else self.ordering.top)

    def _seen(self, batch: Batch, state: Any) -> int:
        """The first row that is late, or how many rows there are."""
        lateness = min(self.ordering.lateness, -_LEAST - 1)
        late = _code().function("first_late", (_P, _I, _P, _I), _I)
        return late(batch.addresses[self._column], batch.rows, state, lateness)

    def push(self, batch: Batch) -> Batch:
        """What is given out now that these rows, none of them late, have come."""
        if not batch.rows:
            return batch
        state = self._top()
        self._seen(batch, state)
        top = self.ordering.top = state[0]
        waiting = self._held.rows
        found = concat([self._held, batch]) if waiting else batch
        places, room = (_I * found.rows)(), (_I * found.rows)()
        at = found.addresses[self._column]
        still = _code().function("arrange", (_P, _I, _I, _P, _P), _I)(at, waiting, found.rows, places, room)
        bound = top - self.ordering.lateness
        until = _code().function("until", (_P, _P, _I, _I), _I)
        ready = 0 if bound < _LEAST else until(at, places, found.rows, bound)
        out = found[:ready] if still else self._gathered(found, places, 0, ready)
        self._held = self._kept(self._gathered(found, places, ready, found.rows))
        self._given(out)
        return out

    def rest(self) -> Batch:
        """All that wait: no more will come."""
        found, self._held = self._held, Batch.of(self.type, [])
        self._given(found)
        return found

    def lend(self) -> None:
        """The general reader has the rows that wait."""
        self.ordering.hold(self._held.values())
        self._held = Batch.of(self.type, [])

    def take_back(self) -> None:
        """It has them no more."""
        self._held = Batch.of(self.type, self.ordering.held())

    def _given(self, out: Batch) -> None:
        if out.rows:
            self.ordering.given = out.number(self.ordering.key, out.rows - 1)

    def _gathered(self, found: Batch, places: Any, start: int, stop: int) -> Batch:
        """The rows at some of the places, in columns of their own."""
        count = stop - start
        gather = _code().function("gather", (_P, _P, _I, _P, _I))
        kept: list[Any] = [found.kept]
        addresses: list[int] = []
        for column, from_ in zip(columns(self.type).columns, found.addresses, strict=True):
            size = column.kind.size
            kept.append(room := bytearray(max(size * count, 1)))
            addresses.append(address(room))
            gather(addresses[-1], from_, size, ctypes.addressof(places) + 8 * start, count)
        return Batch(self.type, count, tuple(addresses), kept)

    def _kept(self, batch: Batch) -> Batch:
        """The rows with texts of their own, so that those they were read from can go."""
        kept: list[Any] = batch.kept[1:]
        for column, at in zip(columns(self.type).columns, batch.addresses, strict=True):
            if column.kind is Kind.VIEW:
                size = _code().function("texts_size", (_P, _I), _I)(at, batch.rows)
                kept.append(room := bytearray(max(size, 1)))
                _code().function("texts_kept", (_P, _I, _P))(at, batch.rows, address(room))
        return Batch(self.type, batch.rows, batch.addresses, kept)
