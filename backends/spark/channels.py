"""The state of a run in epochs, divided by key: groups of keys, and the channels that have them.

A key belongs to one of many groups by its hash; how many there are is decided when a run begins. Each group has a state of its
own, as if its rows were all there are, and one channel (a task) runs several groups one after the other: group g belongs to
channel g modulo their number. So another number of channels only takes over groups, and no state is ever taken apart.

Paper: Auto-parallelizing §3 (keyed regions).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from backends.native.llvm import available
from backends.spark.columns import as_batch, hashed, is_columnar, splitter
from backends.spark.marshal import Piece, coder, longs, values_of
from river.checkpoint import Snapshot, read_state, write_state
from river.classes import frozen
from river.diagnostics import InternalError
from river.io.deltas import INSERTED
from river.io.packed import Damaged
from river.io.schema import arrow
from river.lang import types as t
from river.lang.values import frozen_form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from river.backend import Items, Rows
    from river.il.graph import Graph

GROUPS: Final = 16
EACH: Final = 4
"""Groups of a run at least, and for each worker that it begins with."""

ROWS: Final = 1 << 17
"""Rows that are divided at once."""


def united(graph: Graph, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The final variables, of which each group that had rows has its part."""
    if not parts:
        return {variable.name: variable.initial for variable in graph.variables}
    found: dict[str, Any] = {}
    for variable in graph.variables:
        values = [part[variable.name] for part in parts if variable.name in part]
        if not values:
            continue
        match variable.type:
            case t.Map() | t.OMap() if len(values) > 1:
                pairs = [pair for value in values for pair in value.items()]
                whole = frozen_form(variable.type, pairs)
                if len(whole) < len(pairs) and any(value != values[0] for value in values):
                    raise InternalError(f"groups of keys share entries of `${variable.name}`")
                found[variable.name] = whole
            case _:
                found[variable.name] = values[0]
    return found


# --------------------------------------------------------------------------------------------------------------- rows


@frozen(eq=False)
class Divider:
    """Divides rows of an input by the groups of their keys. `keys`: their places in a row."""

    type: t.Record
    keys: tuple[int, ...]
    groups: int
    native: bool

    def chunks(self, batches: Iterable[Items | Rows]) -> Iterator[tuple[int, bytes]]:
        """The rows as chunks, in order, each with its group."""
        split = self._split()
        held: list[list[Any]] = [[] for _ in range(self.groups)]
        count = 0
        for batch in batches:
            for parts, part in zip(held, split(batch), strict=True):
                if len(part):
                    parts.append(part)
            count += len(batch)
            if count >= ROWS:
                yield from self._written(held)
                count = 0
        yield from self._written(held)

    def places(self, batches: Iterable[Items | Rows]) -> list[Any]:
        """The numbers of the rows that each group has, as Arrow arrays."""
        pa, compute = arrow(), arrow("compute")
        held: list[list[Any]] = [[longs([])] for _ in range(self.groups)]
        before = 0
        columns = splitter(self.type, self.keys, self.groups, rows=False) if self.native else None
        group = hashed(self.type, self.keys, self.groups)
        for batch in batches:
            if columns is not None:
                parts = [longs(piece.places) for piece in columns(Piece(range(len(batch)), batch))]
            else:
                found = pa.array([group(item) for item in values_of(batch)], pa.int64())
                parts = [
                    compute.indices_nonzero(compute.equal(found, number)).cast(pa.int64())
                    for number in range(self.groups)
                ]
            for ours, part in zip(held, parts, strict=True):
                ours.append(compute.add(part, before))
            before += len(batch)
        return [pa.concat_arrays(parts) for parts in held]

    def _split(self) -> Callable[[Items | Rows], Sequence[Any]]:
        columns = splitter(self.type, self.keys, self.groups, rows=False) if self.native else None
        if columns is not None:
            by_column = columns
            return lambda batch: [piece.items for piece in by_column(Piece(range(len(batch)), batch))]
        group = hashed(self.type, self.keys, self.groups)

        def by_value(batch: Items | Rows) -> list[list[Any]]:
            found: list[list[Any]] = [[] for _ in range(self.groups)]
            for item in values_of(batch):
                found[group(item)].append(item)
            return found

        return by_value

    def _written(self, held: list[list[Any]]) -> Iterator[tuple[int, bytes]]:
        encode = coder(self.type).encode
        for group, parts in enumerate(held):
            if parts:
                yield group, encode(_joined(parts))
                parts.clear()


def _joined(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, list) for part in parts):
        return [item for part in parts for item in part]
    (found,) = arrow().Table.from_batches(parts).combine_chunks().to_batches()
    return found


def items_of(type_: t.Type, chunk: bytes, *, native: bool) -> Any:
    """The items of a chunk: columns for machine code, if it runs, or values."""
    found = coder(type_)
    if native and found.records is not None and is_columnar(type_):
        return as_batch(type_, found.records(chunk))
    return found.decode(chunk)


def in_order(tables: Sequence[Any]) -> Any:
    """Change logs as one: by instant, and what goes before what comes."""
    pa, compute = arrow(), arrow("compute")
    table = pa.concat_tables(tables)
    if len(tables) == 1:
        return table
    instants = table.column(0).cast(pa.int64())
    comes = compute.equal(table.column(1), INSERTED)
    try:  # one number is sorted many times as fast as two columns
        both = compute.add_checked(compute.multiply_checked(instants, 2), comes.cast(pa.int64()))
        order = compute.sort_indices(both)
    except pa.ArrowInvalid:
        keys = pa.table({"instant": instants, "comes": comes.cast(pa.int8())})
        order = compute.sort_indices(keys, sort_keys=[("instant", "ascending"), ("comes", "ascending")])
    return table.take(order)


def ordered(table: Any, columns: Sequence[str]) -> Any:
    """The rows of a table by columns, as Spark orders them: nothing comes first, and what is no number last."""
    pa, compute = arrow(), arrow("compute")  # which has what is no number behind numbers, too
    keys: list[Any] = []
    for column in map(table.column, columns):
        if column.null_count:  # which versions of Arrow are told in different ways where to put
            keys.append(column.is_valid().cast(pa.int8()))
        keys.append(column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column)
        if pa.types.is_floating(column.type):  # the zero that has a sign comes first, and they are equal
            keys.append(compute.divide(1.0, column))
    names = [str(number) for number in range(len(keys))]
    return table.take(
        compute.sort_indices(pa.table(keys, names), sort_keys=[(name, "ascending") for name in names])
    )


def machine_code(native: str) -> bool:
    """Whether machine code is to run, and can."""
    return native != "off" and available()


# -------------------------------------------------------------------------------------------------------------- state


def write_named(path: Path, header: Mapping[str, Any], data: bytes | bytearray) -> None:
    """Writes a file of the state, which knows its name. Raises: OSError."""
    write_state(path, {"name": path.name, **header}, data)


def read_named(path: Path) -> tuple[dict[str, Any], bytes]:
    """Header and data of such a file. Raises: Damaged, also for another one under its name; OSError."""
    header, data = read_state(path)
    if header.get("name") != path.name:
        raise Damaged("it is another file")
    return header, data


def write_groups(path: Path, groups: Mapping[int, Snapshot]) -> None:
    """Writes the states of groups as a file. Raises: OSError."""
    data = bytearray()
    places: dict[int, Any] = {}
    for group, snapshot in groups.items():
        places[group] = [len(data), len(snapshot.data), snapshot.fields]
        data += snapshot.data
    write_named(path, {"groups": places}, data)


def read_groups(path: Path) -> dict[int, Snapshot]:
    """The states of groups in a file. Raises: Damaged, OSError."""
    header, data = read_named(path)
    return {
        int(group): Snapshot(fields, bytearray(data[at : at + size]))
        for group, (at, size, fields) in header["groups"].items()
    }
