"""JSON lines read natively give what the general reader gives: items, errors, places."""

from __future__ import annotations

import sys
from typing import Any, cast

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.native.ingest import open_native
from river.io.errors import SKIP
from river.io.sources import open_source
from river.lang import types as t
from tests.backends.ingest_files import (
    ALL,
    BLOCKS,
    DEEP,
    FOLDER,
    JSON_TYPES,
    NESTED,
    ROWS,
    TYPES,
    general,
    json_files,
    native,
    same,
)

pytest.importorskip("llvmlite")


@pytest.mark.slow
@given(st.data(), st.sampled_from(sorted(JSON_TYPES)), BLOCKS, ROWS)
def test_json_lines_give_what_the_general_reader_gives(data, name, block, rows):
    same("x.jsonl", data.draw(json_files(JSON_TYPES[name])), JSON_TYPES[name], block, rows)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_another_encoding_is_told(encoding):
    same("other.jsonl", '\ufeff{"a": 1, "b": ""}\n'.encode(encoding), TYPES["two"])
    assert native(FOLDER / "other.jsonl", TYPES["two"], SKIP).rejected != ()


@pytest.mark.slow
@given(st.data(), BLOCKS)
def test_records_in_records_are_read_natively(data, block):
    same("n.jsonl", data.draw(json_files(NESTED)), NESTED, block)


def test_a_record_may_begin_with_a_record():
    country = t.Record((("country", t.STRING), ("zone", t.Optional(t.I32))))
    geo = t.Record((("geo", t.Record((("where", country), ("b", t.I64)))), ("a", t.Optional(country))))
    type_ = t.Record((("user", geo), ("home", t.Optional(geo))))
    inner = '{"geo":{"where":{"country":"ch","zone":1},"b":2},"a":{"country":"d"}}'
    other = '{"a":{"country":"d"},"geo":{"b":2,"where":{"zone":1,"country":"ch"}}}'
    rows = [f'{{"user":{inner},"home":{other}}}', f'{{"user":{other}}}', '{"user":{"geo":{"where":{}}}}']
    same("first.jsonl", "\n".join(rows).encode(), type_)


def test_a_record_in_a_record_leaves_no_row_in_doubt():
    """What has been parsed is looked at before the general reader could see it."""
    path = FOLDER / "deep.jsonl"
    deep = '{"z":1.5,"x":"a text of more than twelve bytes","more":{"x":[1]}}'
    row = f'{{"a":1,"n":{{"g":true,"a":"","m":{deep},"q":0}},"o":{{"p":{deep},"b":2.25}}}}'
    path.write_text(f"{row}\n" * 100)
    reader = open_native(open_source(path, NESTED, name="in"), 1000)
    assert reader is not None
    reader.file = attrs.evolve(reader.file, reader=cast("Any", None))  # nobody may ask it
    value = ("a text of more than twelve bytes", 1.5, None)
    found = [row for batch in reader for row in batch.values()]
    assert found == [(1, ("", None, value, True), None, (225, value))] * 100


@pytest.mark.slow
@given(st.data())
def test_what_nobody_reads_is_checked_all_the_same(data):
    type_ = t.Record((*ALL, ("n", DEEP)))
    path = FOLDER / "u.jsonl"
    path.write_bytes(data.draw(json_files(type_)))
    used = data.draw(st.sampled_from([frozenset(), frozenset("abdefhk"), frozenset("n")]))
    found = native(path, type_, SKIP, used=used)
    whole = general(path, type_, SKIP)
    assert (found.errors, len(found.items)) == (whole.errors, len(whole.items))
    source = open_source(path, type_, name="in", on_error=SKIP)
    places = [i for i, (name, _) in enumerate(type_.fields) if name in used]
    reader = open_native(open_source(path, type_, name="in", on_error=SKIP), 100, used)
    assert reader is not None
    ours = [[repr(row[i]) for i in places] for batch in reader for row in batch.values()]
    assert ours == [[repr(row[i]) for i in places] for part in source for row in part]


@pytest.mark.slow
@pytest.mark.parametrize("levels", [30, 31, 32, 33, 34, 499, 500, 50_000])
def test_how_deep_values_lie_in_one_another_does_not_depend_on_python(levels):
    path, type_, limit = FOLDER / "deep.jsonl", TYPES["two"], sys.getrecursionlimit()
    whole = [open_ * (levels - 1) + close * (levels - 1) for open_, close in ("[]", ('{"q":[', "]}"))]
    lines = [
        f'{{"x":{value},"a":1,"b":"{"[" * 600}"}}'
        for value in ("1", *whole, "[" * levels, '"[[' + "\\\\" * 9)
    ]
    path.write_text("".join(line + "\n" for line in [*lines, *whole, '{"a":2,"b":"x"}']))
    found = general(path, type_, SKIP)
    assert len(found.items) == 2 + (levels <= 500) + (2 * levels - 1 <= 500)
    assert native(path, type_, SKIP) == found
    try:
        sys.setrecursionlimit(1_000_000)  # as the evaluator does for recursive functions
        assert general(path, type_, SKIP) == native(path, type_, SKIP) == found
    finally:
        sys.setrecursionlimit(limit)
