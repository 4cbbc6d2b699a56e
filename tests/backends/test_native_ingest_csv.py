"""CSV read natively gives what the general reader gives: items, errors, places."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.native.ingest.form import Form, guesses
from backends.native.ingest.grammar import GROUP, WIDE, source
from river.io.errors import SKIP
from river.lang import types as t
from tests.backends.ingest_files import BLOCKS, FOLDER, ROWS, TYPES, csv_files, general, native, same

pytest.importorskip("llvmlite")


@pytest.mark.slow
@given(st.data(), st.sampled_from(sorted(TYPES)), BLOCKS, ROWS)
def test_csv_gives_what_the_general_reader_gives(data, name, block, rows):
    same("x.csv", data.draw(csv_files(TYPES[name])), TYPES[name], block, rows)


@pytest.mark.slow
@given(st.data(), st.sampled_from(sorted(TYPES)), BLOCKS, ROWS)
def test_csv_without_names_gives_what_the_general_reader_gives(data, name, block, rows):
    """The files begin with names, which are a bad row then, or a good one of texts."""
    same("x.csv", data.draw(csv_files(TYPES[name])), TYPES[name], block, rows, "csv-noheader")


@pytest.mark.parametrize(
    ("kind", "cells"), [("csv", ("1", '"a\nb"')), ("tsv", ("2", "c")), ("csv", ("3", '"é""x"'))]
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_without_names_the_columns_are_the_fields_in_their_order(
    kind: str, cells: tuple[str, str], mark: str, end: str
):
    """The same rows come as with the names in front, and what is wrong with a row stands a line earlier."""
    type_ = TYPES["two"]
    rows = [("7", "x"), cells, ("bad", "y"), ("8",), cells, ("9", "z")]
    text = "".join(("," if kind == "csv" else "\t").join(row) + end for row in rows)
    named, bare = FOLDER / f"named.{kind}", FOLDER / f"bare.{kind}"
    named.write_text(mark + ("a,b" if kind == "csv" else "a\tb") + end + text, encoding="utf-8", newline="")
    bare.write_text(mark + text, encoding="utf-8", newline="")
    with_names, without = (
        general(path, type_, SKIP, form=form) for path, form in ((named, kind), (bare, f"{kind}-noheader"))
    )
    assert without.items == with_names.items
    assert [(error.line, error.code) for error in without.errors] == [
        ((error.line or 0) - 1, error.code) for error in with_names.errors
    ]
    assert len(without.items) == 4
    assert native(bare, type_, SKIP, form=f"{kind}-noheader") == without
    if kind == "csv":
        bare.write_text(mark + "i,c9" + end + text, encoding="utf-8", newline="")
        assert native(bare, type_, SKIP, form="csv-types") == general(bare, type_, SKIP, form="csv-types")
        assert general(bare, type_, SKIP, form="csv-types").items == with_names.items
    bare.write_text(mark)
    assert general(bare, type_, SKIP, form=f"{kind}-noheader") == native(
        bare, type_, SKIP, form=f"{kind}-noheader"
    )


def test_who_gives_rows_without_names_is_told_of_the_format():
    path = FOLDER / "bare.csv"
    path.write_text("1,x\n2,y\n")
    (first, *_) = general(path, TYPES["two"], SKIP).rejected
    assert first.code == "data-column"
    assert "`csv-noheader`" in first.help
    path.write_text("1,b\n")  # one name is there
    (first, *_) = general(path, TYPES["two"], SKIP).rejected
    assert "noheader" not in first.help


_KINDS = (t.I64, t.STRING, t.Optional(t.F64), t.BOOL, t.Optional(t.STRING))


def wide(count: int) -> t.Record:
    return t.Record(tuple((f"c{i}", _KINDS[i % len(_KINDS)]) for i in range(count)))


@pytest.mark.slow
def test_records_of_many_cells():
    """They are read by several functions; quotes may span lines in the cells of any, and any may leave a row."""
    type_ = wide(WIDE + 3)
    good = [("5", "x", "", "true", "")[i % 5] for i in range(len(type_.fields))]
    rows = [good]
    for place in (0, 1, GROUP - 1, GROUP, GROUP + 1, 2 * GROUP, 4 * GROUP - 1, 4 * GROUP, WIDE + 2):
        for text in ('"a\nb"', '"a""b"', '"7"', "-3", "1.5", "false", "", "é", 'x"y', '"open'):
            rows += [[*good[:place], text, *good[place + 1 :]], good]
    rows += [good[:-1], [*good, "9"], [""]]
    text = "\n".join(",".join(row) for row in [[name for name, _ in type_.fields], *rows])
    same("wide.csv", text.encode(), type_)
    same("wide.csv", text.replace("\n", "\r\n").encode(), type_)


def test_the_code_for_a_cell_is_the_same_in_the_widest_records():
    forms = [Form("csv", wide(count), None, count, tuple(range(count))) for count in (300, 600)]
    one, two = (source(form).count("\n") for form in forms)
    assert two < 2.1 * one
    assert all(len(guesses(form)) == 1 for form in forms)  # a byte holds no number of such a field
    functions = source(forms[0]).split("\ndef ")
    assert max(function.count("\n") for function in functions) < source(
        Form("csv", wide(WIDE), None, WIDE, tuple(range(WIDE)))
    ).count("\n")
