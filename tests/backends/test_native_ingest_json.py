"""JSON lines read natively give what the general reader gives: items, errors, places."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.native.ingest import open_native
from river.io.errors import SKIP
from river.io.sources import open_source
from tests.backends.ingest_files import ALL, BLOCKS, FOLDER, ROWS, TYPES, general, json_files, native, same

pytest.importorskip("llvmlite")


@given(st.data(), st.sampled_from(sorted(TYPES)), BLOCKS, ROWS)
def test_json_lines_give_what_the_general_reader_gives(data, name, block, rows):
    same("x.jsonl", data.draw(json_files(TYPES[name])), TYPES[name], block, rows)


@given(st.data())
def test_what_nobody_reads_is_checked_all_the_same(data):
    type_ = TYPES["all"]
    path = FOLDER / "u.jsonl"
    path.write_bytes(data.draw(json_files(type_)))
    used = data.draw(st.sampled_from([frozenset(), frozenset("abdefhk")]))
    found = native(path, type_, SKIP, used=used)
    whole = general(path, type_, SKIP)
    assert (found.errors, len(found.items)) == (whole.errors, len(whole.items))
    source = open_source(path, type_, name="in", on_error=SKIP)
    places = [i for i, (name, _) in enumerate(ALL) if name in used]
    reader = open_native(open_source(path, type_, name="in", on_error=SKIP), 100, used)
    assert reader is not None
    ours = [[repr(row[i]) for i in places] for batch in reader for row in batch.values()]
    assert ours == [[repr(row[i]) for i in places] for part in source for row in part]
