"""Deltas in columns to their change log as Arrow data: netted natively, gathered by pyarrow."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

from backends.native.arrow import called, compiled, to_arrow
from backends.native.batch import Batch
from backends.native.egress.lower import library, net
from backends.native.layout import widths
from backends.native.module import Module
from backends.native.rtlang import compile_file
from river.io import deltas
from river.io.schema import arrow, arrow_schema
from river.lang import types as t

if TYPE_CHECKING:
    from backends.native.jit import Code
    from backends.native.rtlang import Signature


@cache
def _log_rows(row: t.Type) -> tuple[Code, Signature]:
    """The function `log_rows` for rows of a type."""
    module = Module()
    unit = compile_file("egress_log.rt", net(module, row))
    return compiled(module, unit), unit.signatures["log_rows"]


def change_log(type: t.Type, batch: Batch) -> Any:
    """The rows of deltas (`deltas.changelog_rows`) as a record batch of the schema of `type`, which has at least one field.

    `type` is `deltas.changelog` of the batch's, or has lists in place of its arrays (`schema.growable`).

    Raises: Unsupported.
    """
    pa, compute = arrow(), arrow("compute")
    assert isinstance(type, t.Record)  # noqa: S101 - a change log is one
    assert isinstance(batch.type, t.Record)  # noqa: S101 - so is a delta
    tau, row, n = batch.type.fields[0][1], deltas.row_type(batch.type), len(batch)
    schema = arrow_schema(type)
    if n == 0:
        return pa.RecordBatch.from_pylist([], schema=schema)
    first, many = widths(tau)[0], widths(row)[0]
    places = batch.addresses
    inserted, deleted = places[first], places[first + 1 + many]
    ins, dels = places[first + 1 : first + 1 + many], places[first + 2 + many :]
    extents = [[ctypes.c_int64.from_address(at + 8 * i).value for i in (0, n)] for at in (deleted, inserted)]
    numbers = [pa.allocate_buffer(8 * max(sum(b - a for a, b in extents), 1)) for _ in range(2)]
    size, fields = library().records["Out"]
    out = ctypes.create_string_buffer(size)
    tables = [(ctypes.c_void_p * max(many, 1))(*side) for side in (ins, dels)]
    code, signature = _log_rows(row)
    at = list(map(ctypes.addressof, (out, *tables)))
    count = called(
        code, signature, "log_rows", at[0], at[1], inserted, at[2], deleted, 0, n, *(b.address for b in numbers)
    )  # fmt: skip
    scratch = ctypes.c_int64.from_address(at[0] + fields["scratch"][1]).value
    ctypes.CDLL(None).free(ctypes.c_void_p(scratch))
    which, rows = (pa.Array.from_buffers(pa.int64(), count, [None, buffer]) for buffer in numbers)
    instants = to_arrow(tau, Batch(tau, n, places[:first], batch)).column(0).take(which)
    ops = pa.array([deltas.DELETED, deltas.INSERTED])
    is_inserted = compute.greater_equal(rows, extents[0][1] - extents[0][0]).cast(pa.int8())
    found = [instants, ops.take(is_inserted)]
    if many or row != t.Record(()):
        wanted = t.Record(type.fields[2:])
        parts = [
            to_arrow(wanted, Batch(row, b, side, batch), a, b)
            for side, (a, b) in zip((dels, ins), extents, strict=True)
        ]
        found += [
            pa.concat_arrays([part.column(i) for part in parts]).take(rows) for i in range(len(wanted.fields))
        ]
    return pa.record_batch(found, schema=schema)
