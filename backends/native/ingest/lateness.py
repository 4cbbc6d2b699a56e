"""Rows that may come late: they wait in columns until no earlier one can come, as in `river.io.order.Ordering`.

What is given out in the end is all that was taken, in order of keys, equal ones as they came. A block in which a row comes too
late is left to the general reader, which sieves it. The rows that wait lie in runs, each in order; small ones are merged when
there are several of about their size, so that a row that comes alone costs little, however many wait (O'Neil et al. 1996,
The log-structured merge-tree).
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Final

from backends.native.batch import Batch, concat
from backends.native.ingest.memory import address
from backends.native.layout import ColumnKind, columns, starts
from backends.native.shared import ModuleText, shared
from river.classes import define, field
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from backends.native.jit import Code
    from river.io.order import Ordering

_P: Final = ctypes.c_void_p
_I: Final = ctypes.c_int64
_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 63) - 1
_RUNS: Final = 12  # of about one size, which are merged
_FEW: Final = 16  # rows that keep what they were read from until they are merged
_KEYS: Final = (t.I64, t.TIME, t.DURATION)
_EXPORTS: Final = ("first_late", "arrange", "until", "gather", "texts_size", "texts_kept")


@cache
def _code() -> Code:
    """The functions of `runtime/ingest_order.rt`."""

    def make() -> ModuleText:
        from backends.native.ir import module_text, reachable
        from backends.native.rtlang import Unit, compile_file

        functions = compile_file("ingest_order.rt", Unit()).functions
        texts = [
            f.text.replace("define internal", "define", 1) if f.name in _EXPORTS else f.text
            for f in reachable(functions, _EXPORTS)
        ]
        return ModuleText(module_text(texts), _EXPORTS)

    return shared("ingest order", make)


def may_wait(type_: t.Type, key: int) -> bool:
    """Whether rows of a type can wait in columns: they have a column for each part, and the key is a number of 64 bits."""
    return t.parts(type_)[key] in _KEYS and all(
        column.table == 0 and column.kind is not ColumnKind.OFFSETS for column in columns(type_).columns
    )


@define(eq=False)
class Waiting:
    """The rows of an input that wait: in `_runs`, each with its first key, those that came first in the first."""

    type: t.Type
    ordering: Ordering
    _runs: list[tuple[int, Batch]] = field(factory=list[tuple[int, Batch]], init=False)
    _nothing: Batch = field(init=False)
    _column: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._nothing = Batch.of(self.type, [])
        self._column = starts(self.type)[self.ordering.key][0]

    def takes(self, batches: Sequence[Batch], passed: int | None = None) -> bool:
        """Whether none of these rows is late, or below `passed`."""
        state = self._top()
        if passed is not None:
            top = passed + self.ordering.lateness  # what makes `passed` the bound
            if top > _MOST:
                return False
            state[0] = max(state[0], top)
        return all(self._seen(batch, state) == batch.rows for batch in batches)

    def _top(self) -> Any:
        """Memory with the largest key so far."""
        return (_I * 1)(_LEAST if self.ordering.top is None else self.ordering.top)

    def _seen(self, batch: Batch, state: Any) -> int:
        """The first row that is late, or how many rows there are."""
        lateness = min(self.ordering.lateness, _MOST)
        late = _code().function("first_late", (_P, _I, _P, _I), _I)
        return late(batch.addresses[self._column], batch.rows, state, lateness)

    def push(self, batch: Batch) -> Batch:
        """What is given out now that these rows, none of them late, have come."""
        if not batch.rows:
            return batch
        state = self._top()
        self._seen(batch, state)
        self.ordering.top = state[0]
        run = self._arranged(batch, 0)
        self._runs.append((self._key(run, 0), run))
        bound = state[0] - self.ordering.lateness
        out = self.release(bound)
        if self._key(run, run.rows - 1) > bound:
            first, rest = self._runs[-1]
            if rest.rows > _FEW:
                self._runs[-1] = first, self._kept(self._gathered(rest))
            self._merge()
        return out

    def release(self, bound: int | None) -> Batch:
        """The rows up to a key; all that wait for None."""
        if bound is not None and all(first > bound for first, _ in self._runs):
            return self._nothing
        ready: list[Batch] = []
        waiting: list[tuple[int, Batch]] = []
        for first, run in self._runs:
            if bound is not None and first > bound:
                waiting.append((first, run))
                continue
            count = run.rows if bound is None else self._until(run, bound)
            ready.append(run[:count])
            if count < run.rows:
                waiting.append((self._key(run, count), run[count:]))
        self._runs = waiting
        if not ready:
            return self._nothing
        out = self._joined(ready)
        self.ordering.given = self._key(out, out.rows - 1)
        return out

    def _key(self, batch: Batch, row: int) -> int:
        return _I.from_address(batch.addresses[self._column] + 8 * row).value

    def _until(self, run: Batch, bound: int) -> int:
        """How many rows of a run there are up to a key."""
        until = _code().function("until", (_P, _I, _I), _I)
        return 1 if run.rows == 1 else until(run.addresses[self._column], run.rows, min(bound, _MOST))

    def _merge(self) -> None:
        """Makes one of the last runs where they are of about one size."""
        while len(self._runs) >= _RUNS:
            last = [run for _, run in self._runs[-_RUNS:]]
            if last[0].rows > sum(run.rows for run in last[1:]):
                return
            found = concat(last)
            found.kept = [found.kept[:_RUNS], *found.kept[_RUNS:]]
            merged = self._kept(self._arranged(found, last[0].rows))
            self._runs[-_RUNS:] = [(self._key(merged, 0), merged)]

    def _joined(self, runs: list[Batch]) -> Batch:
        """The rows of some runs in order."""
        return runs[0] if len(runs) == 1 else self._arranged(concat(runs), runs[0].rows)

    def _arranged(self, batch: Batch, before: int) -> Batch:
        """The rows in order, the first `before` of which are."""
        if batch.rows == 1:
            return batch
        places, room = bytearray(8 * batch.rows), bytearray(8 * batch.rows)
        at = batch.addresses[self._column]
        still = _code().function("arrange", (_P, _I, _I, _P, _P), _I)(
            at, before, batch.rows, address(places), address(room)
        )
        return batch if still else self._gathered(batch, places)

    def _gathered(self, batch: Batch, places: Any = None) -> Batch:
        """The rows, in another order if `places` says so, in columns of their own."""
        gather = _code().function("gather", (_P, _P, _I, _P, _I))
        kept: list[Any] = [batch.kept]
        addresses: list[int] = []
        for column, from_ in zip(columns(self.type).columns, batch.addresses, strict=True):
            size = column.kind.size
            kept.append(room := bytearray(size * batch.rows))
            addresses.append(address(room))
            if places is None:
                ctypes.memmove(addresses[-1], from_, size * batch.rows)
            else:
                gather(addresses[-1], from_, size, address(places), batch.rows)
        return Batch(self.type, batch.rows, tuple(addresses), kept)

    def _kept(self, batch: Batch) -> Batch:
        """Rows in columns of their own with texts of their own, so that what they were read from, first in `kept`, can go."""
        kept: list[Any] = batch.kept[1:]
        for column, at in zip(columns(self.type).columns, batch.addresses, strict=True):
            if column.kind is ColumnKind.VIEW:
                size = _code().function("texts_size", (_P, _I), _I)(at, batch.rows)
                kept.append(room := bytearray(max(size, 1)))
                _code().function("texts_kept", (_P, _I, _P))(at, batch.rows, address(room))
        return Batch(self.type, batch.rows, batch.addresses, kept)
