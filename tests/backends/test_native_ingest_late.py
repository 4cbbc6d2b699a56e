"""Rows that may come late wait in columns as they do in the general reader: the same order, the same ones refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

import river
from backends.native.ingest import open_native
from river.io.errors import SKIP, STOP
from river.io.schema import arrow
from river.io.sources import open_source
from river.lang import types as t
from tests.backends.ingest_files import ALL, BLOCKS, FOLDER, TYPES, general, native

if TYPE_CHECKING:
    from pathlib import Path

LEAST, MOST = -(1 << 63), (1 << 63) - 1
KEYS = st.integers(0, 40) | st.sampled_from([LEAST, LEAST + 3, MOST - 3, MOST])
THROUGH = """river 1;
type R = {a: i64, b: string?};
input r: R by a;
operator p(r: R by a) -> (o: R by a) { on r(x) { emit o x; } }
(o) <- p(r);
output o: R by a;
"""
ROWS = st.lists(st.tuples(KEYS, st.sampled_from(["x", "a text that lies outside", "", None])), max_size=40)
LATENESS = st.sampled_from([1, 5, 50, MOST])


def written(name: str, rows: list[tuple[int, str | None]], *, ascending: bool, lateness: int) -> Path:
    """A file in which rows are late by less than `lateness` if they ascend; None stands for a bad row."""
    if ascending:
        rows = sorted(rows, key=lambda row: row[0] // lateness)
    path = FOLDER / name
    if path.suffix == ".csv":
        lines = ["a,b", *("bad" if b is None else f'{a},"{b} {i}"' for i, (a, b) in enumerate(rows))]
    else:
        lines = ["bad" if b is None else f'{{"a":{a},"b":"{b} {i}"}}' for i, (a, b) in enumerate(rows)]
    path.write_text("".join(line + "\n" for line in lines))
    return path


@given(
    ROWS,
    st.booleans(),
    LATENESS,
    BLOCKS,
    st.sampled_from(["late.csv", "late.jsonl"]),
    st.sampled_from([2, 1000]),
)
@example([(5, "x"), (3, "y"), (9, None), (4, "z"), (8, "u"), (7, "v")], False, 5, 8, "late.csv", 2)
@example([(LEAST, "x"), (MOST, "y"), (LEAST, "z"), (MOST, "u")], False, MOST, 8, "late.jsonl", 2)
def test_rows_wait_as_in_the_general_reader(rows, ascending, lateness, block, name, batch):
    path = written(name, rows, ascending=ascending, lateness=lateness)
    for policy in (SKIP, STOP):
        found = native(path, TYPES["two"], policy, block, batch, by="a", lateness=lateness)
        assert found == general(path, TYPES["two"], policy, by="a", lateness=lateness)


@pytest.mark.slow
@given(ROWS, LATENESS, st.sampled_from([1, 3, 100]))
def test_rows_of_tables_wait_too(rows, lateness, size):
    """Several parts of a table, each of which may have late rows."""
    pa = arrow()
    texts = pa.array([f"{b} and {i}" for i, (_, b) in enumerate(rows)], pa.string())
    table = pa.table({"a": pa.array([a for a, _ in rows], pa.int64()), "b": texts})
    parts = pa.Table.from_batches(table.to_batches(size), table.schema)
    made = river.compile(THROUGH, "river")
    found = [
        made.run({"r": parts}, backend=backend, lateness=lateness, on_error="skip")["o"].to_pylist()
        for backend in ("multicore", "reference")
    ]
    assert found[0] == found[1]


def test_all_types_of_columns_move():
    rows = [
        f"{(i * 7) % 10 + i},{i},{i},{i}.5,{i}.25,{'text ' * (i % 5)}{i},{i % 2},2024-01-01,{i}s,{i}.25,{i}.5"
        for i in range(200)
    ]
    path = FOLDER / "wide.csv"
    path.write_text("a,b,c,d,e,f,g,h,i,j,k\n" + "\n".join(rows))
    for type_ in (t.Record(ALL), t.Record((ALL[0], *((name, t.Optional(each)) for name, each in ALL[1:])))):
        found = native(path, type_, STOP, block=300, by="a", lateness=20)
        assert len(found.items) == 200
        assert found == general(path, type_, STOP, by="a", lateness=20)


def test_what_waits_does_not_keep_what_was_read():
    path = FOLDER / "kept.csv"
    path.write_text("a,b\n" + "".join(f"{i // 2},a text of more than twelve bytes\n" for i in range(40_000)))
    source = open_source(path, TYPES["two"], name="in", by="a", lateness=3)
    reader = open_native(source, 1000, block=10_000)
    assert reader is not None
    assert sum(batch.rows for batch in reader) == 40_000
    assert sum(map(len, reader.pool.free.values())) <= 12


def test_keys_of_other_kinds_do_not_wait_natively():
    path = FOLDER / "other.csv"
    path.write_text("a,b\n1,2\n")
    source = open_source(path, t.Record((("a", t.I32), ("b", t.I64))), name="in", by="a", lateness=3)
    assert open_native(source, 10) is None
    source.close()


def test_rows_wait_for_what_the_general_reader_reads_to_the_end():
    """A record is too long to be read natively: the rest is the general reader's, with the rows that wait."""
    path = FOLDER / "rest.csv"
    rows = [f"{i + 5 * (i % 2)},text number {i}" for i in range(60)]
    rows[20] = '21,"' + "long\n" * 100 + '"'
    path.write_text("a,b\n" + "\n".join(rows))
    for policy in (SKIP, STOP):
        found = native(path, TYPES["two"], policy, block=40, largest=64, by="a", lateness=9)
        assert len(found.items) == 60
        assert found == general(path, TYPES["two"], policy, by="a", lateness=9)
