"""Readers: strict scanning, exact places of errors, policies, conversions of given Arrow columns."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import json
import time
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import river
from river.classes import evolve
from river.diagnostics import Rejected, render
from river.io import columnar, delimited
from river.io.batches import Origin
from river.io.delimited import Scanner
from river.io.errors import SKIP, STOP, OnError, Refusals, missing_file
from river.io.sinks import open_sink
from river.io.sources import open_source
from river.io.text import blocks
from river.lang import types as t
from river.platform import here

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

I64, F64, STRING = t.I64, t.F64, t.STRING


def test_results_are_asked_for_by_name(tmp_path: Path) -> None:
    program = river.compile(
        "a: {ts: int; k: int} stream by ts; b: select k from a; c: select ts from a;", "cql"
    )
    results = program.run({"a": [{"ts": 1, "k": 2}]}, {"b": str(tmp_path / "b.csv")})
    assert (list(results), "c" in results, "b" in results) == (["c"], True, False)
    assert results["c"].num_rows == 1
    with pytest.raises(KeyError, match="no collected output `b`; collected: `c`"):
        results["b"]


AB = t.Record((("a", I64), ("b", STRING)))


def read(text: str | bytes, type_: t.Type, format_: str = "csv", **options: Any) -> list[Any]:
    data = text if isinstance(text, bytes) else text.encode()
    source = open_source(io.BytesIO(data), type_, name="in", format=format_, **options)
    return [item for part in source for item in part]


def errors(
    text: str | bytes, type_: t.Type, format_: str = "csv"
) -> list[tuple[str, int, int | None, str | None]]:
    """Code, line, column and field of every row error."""
    found: list[Any] = []

    class Recorder(Refusals):
        def refuse(self, error: Any) -> None:
            found.append((error.code, error.line, error.column, error.field))
            super().refuse(error)

    read(text, type_, format_, on_error=Recorder(SKIP))
    return found


def rejected(action: Any) -> list[str]:
    with pytest.raises(Rejected) as caught:
        action()
    return [d.code for d in caught.value.diagnostics]


# ------------------------------------------------------------------------------------------------------------ scanning

cells = st.text(alphabet='ab ,"\n\r\té日', max_size=6)


def scanned(text: str, delimiter: str, chunk: int, size: int) -> list[list[str]]:
    class Slow(io.BytesIO):
        def read1(self, _size: int | None = -1) -> bytes:
            return self.read(chunk)

    scanner = Scanner(blocks(Slow(text.encode()), "in", size), delimiter, Origin("in"))
    records: list[list[str]] = []
    for found in scanner:
        assert not found.errors
        records += [[str(cell) for cell in row] for row in found.rows]
    return records


@pytest.mark.slow
@given(
    st.lists(st.lists(cells, min_size=2, max_size=4), max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([",", "\t"]),
    st.sets(st.integers(0, 31)),
    st.integers(1, 40),
    st.integers(1, 5),
)
@settings(max_examples=200, deadline=None)
@example([["a", "b"], ['"\r\n"', ""]], "\r\n", ",", set(), 1, 1)
def test_the_scanner_agrees_with_the_csv_module(
    rows: list[list[str]], end: str, delimiter: str, in_quotes: set[int], chunk: int, size: int
) -> None:
    """Cells stand in quotes where they must, and in some other places."""
    number = iter(range(1000))

    def spelled(cell: str) -> str:
        if next(number) in in_quotes or any(c in cell for c in f'{delimiter}"\r\n'):
            return '"' + cell.replace('"', '""') + '"'
        return cell

    text = "".join(delimiter.join(map(spelled, row)) + end for row in rows)
    assert list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)) == rows
    assert scanned(text, delimiter, chunk, size) == rows


@given(st.lists(st.lists(cells, min_size=1, max_size=3), max_size=6), st.data())
@settings(max_examples=100, deadline=None)
def test_positions_are_those_of_the_cells(rows: list[list[str]], data: Any) -> None:
    """Spoil one cell: the error names the line and column at which it begins."""
    width = 3
    rows = [[*row, *[""] * width][:width] for row in rows]
    bad = data.draw(st.tuples(st.integers(0, len(rows)), st.integers(0, width - 1)))
    rows.insert(bad[0], ["1"] * width)
    target = io.StringIO()
    csv.writer(target, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows[: bad[0]])
    before = "a,b,c\n" + target.getvalue()
    row = ['"x,y"', '"line\nbreak"', "z"]
    spoiled = [*row[: bad[1]], "!", *row[bad[1] + 1 :]]
    start = before + "".join(cell + "," for cell in spoiled[: bad[1]])
    text = before + ",".join(spoiled) + "\n"
    name = "abc"[bad[1]]
    found = errors(text, t.Record(((name, t.Optional(t.BOOL)),)))
    line, column = start.count("\n") + 1, len(start) - start.rfind("\n")
    assert ("data-type", line, column, name) in found


def test_columns_are_found_by_name_in_any_order_and_the_rest_is_not_read() -> None:
    assert read("x,b,a\n\xff,q,1\r\n,r,2".encode("latin-1"), AB) == [(1, "q"), (2, "r")]


def test_a_byte_order_mark_is_no_part_of_a_name() -> None:
    assert read("\ufeffa,b\n1,x\n", AB) == [(1, "x")]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("format_", ["csv", "jsonl", "text"])
def test_another_encoding_is_told(encoding: str, format_: str) -> None:
    with pytest.raises(Rejected, match="it is UTF-16, not UTF-8") as caught:
        read("\ufeffa\n1\n".encode(encoding), STRING, format_, on_error=SKIP)
    assert [(d.code, d.help) for d in caught.value.diagnostics] == [("data-unreadable", "save it as UTF-8")]


def test_blank_lines_are_rows_only_of_one_column() -> None:
    assert read("a,b\n\n1,x\n\n", AB) == [(1, "x")]
    assert read("a\n\nx\n\n", t.Record((("a", t.Optional(STRING)),))) == [(None,), ("x",), (None,)]


def test_empty_cells() -> None:
    type_ = t.Record((("a", t.Optional(I64)), ("b", t.Optional(STRING)), ("c", STRING)))
    assert read('a,b,c\n,,\n"","",""\n1,x,y\n', type_) == [(None, None, ""), (None, "", ""), (1, "x", "y")]


def test_values_that_are_not_records_come_from_one_column() -> None:
    assert read("price\n1\n2.5\n", F64) == [1.0, 2.5]
    assert read("n,value\n1,2.5\n", F64) == [2.5]
    assert read("1\n2\n", F64, "text") == [1.0, 2.0]
    assert read(" a \r\nb", STRING, "text") == [" a ", "b"]


def test_lines_as_they_are_may_be_any_bytes() -> None:
    assert read(b" \xff\r\n\n\xed\xa0\x80\r\r\n\x00\xe9", t.BYTES, "lines") == [
        b" \xff",
        b"",
        b"\xed\xa0\x80\r",
        b"\x00\xe9",
    ]
    with pytest.raises(Rejected, match="lines as they are hold `bytes`, not `string`") as caught:
        read("a", STRING, "lines")
    assert [d.code for d in caught.value.diagnostics] == ["data-format"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,x\nq,y\n", ("data-type", 3, 1, "a")),
        ("a,b\n 1,x\n", ("data-type", 2, 1, "a")),
        ("a,b\n1_0,x\n", ("data-type", 2, 1, "a")),
        ("a,b\n١,x\n", ("data-type", 2, 1, "a")),
        ("a,b\n,x\n", ("data-type", 2, 1, "a")),
        ("b,a\nxy,9223372036854775808\n", ("data-range", 2, 4, "a")),
        ("b,a\nx," + "9" * 5000 + "\n", ("data-range", 2, 3, "a")),
        ("a,b\n1\n", ("data-missing-field", 2, 2, None)),
        ("a,b\n1,xx,3\n", ("data-extra-field", 2, 6, None)),
        ('a,b\n1,x"y\n', ("data-syntax", 2, 4, None)),
        ('a,b\n1,"x"y\n', ("data-syntax", 2, 6, None)),
        ('a,b\n1,"xy\n2,z\n', ("data-syntax", 2, 3, None)),
        ("a,b\n1,x\ry\n", ("data-syntax", 2, 4, None)),
        (b"a,b\n1,x\xff\n", ("data-utf8", 2, 3, "b")),
        ('b,a\n"x\ny",q\n', ("data-type", 3, 4, "a")),
        ('b,a\n"x\n\ny",1\nz,q\n', ("data-type", 5, 3, "a")),
    ],
)
def test_errors_have_their_place(text: str | bytes, expected: tuple[Any, ...]) -> None:
    assert errors(text, AB) == [expected]


@pytest.mark.parametrize(
    ("text", "rows", "places"),
    [
        ('1,"x\n2,y\n3,z\n', [(2, "y"), (3, "z")], [(2, 3)]),  # the file ends
        ('1,"x\n2,y"z\n3,z\n', [(3, "z")], [(2, 3), (3, 4)]),  # text follows a closing quote
        ('1,"x\n2,",y"\n3,z\n', [(2, ",y"), (3, "z")], [(2, 3)]),  # a quote stands in a cell without quotes
        (
            '1,"x\n2,y\n' + "z" * 40 + '\n3,z\n4,"v"\n',
            [(2, "y"), (3, "z"), (4, "v")],
            [(2, 3), (4, 41)],
        ),  # too long
        ('1,"x\n2,y\n"\n3,z\n', [(1, "x\n2,y\n"), (3, "z")], []),
        ('1,"x\n2,y",q\rz,"\n3,z"\n4,u\n', [(4, "u")], [(3, 7)]),  # its quotes close, so it is not cut
    ],
)
def test_only_the_first_line_of_a_record_that_fails_is_lost(
    text: str, rows: list[Any], places: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "MOST", 32)
    assert read("a,b\n" + text, AB, on_error=SKIP) == rows
    assert [(line, column) for _, line, column, _ in errors("a,b\n" + text, AB)] == places


def test_a_record_that_fails_says_how_quotes_close() -> None:
    with pytest.raises(Rejected) as caught:
        read('a,b\n1,"x\n2,y\n', AB)
    (diagnostic,) = caught.value.diagnostics
    assert render(diagnostic) == (
        "<in>:2:3: error[data-syntax]: the quote is not closed\n"
        "  = help: a closing quote stands before a delimiter or the end of a line; inside, a quote is doubled"
    )


def test_a_header_whose_quotes_do_not_close_is_an_error_whatever_is_done_with_rows() -> None:
    for policy in (STOP, SKIP):
        with pytest.raises(Rejected, match="the quote is not closed"):
            read('a,"b\n1,x\n', AB, on_error=policy)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a,b\nNULL,y\n", "what is missing is an empty cell, and a type with `?` takes it"),
        ("a,b\nN/A,y\n", "what is missing is an empty cell, and a type with `?` takes it"),
        ("a,b\n1.0,y\n", "declare it as a `float`, and make a whole number of it in the program"),
        (
            "a, b\n1,y\n",
            "there are blanks around it in the first line: take them away, and those around cells",
        ),
    ],
)
def test_what_other_files_have_is_told_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(Rejected) as caught:
        read(text, AB)
    assert [found.help for found in caught.value.diagnostics] == [hint]


def test_an_error_reads_well() -> None:
    with pytest.raises(Rejected) as caught:
        read("a,b\n1,x\nq,y\n", AB)
    (diagnostic,) = caught.value.diagnostics
    assert render(diagnostic) == "<in>:3:1: error[data-type]: field `a`: 'q' is not a whole number"


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("B,a", "(2, '1')"),
        ("A,B", "(1, '2')"),
        ("A,a,b", "(2, '3')"),
        ("A,b,a,B", "(3, '2')"),
        ("A,a,A", "there is no column `b`"),
        ("B,a,b,b", "the column `b` occurs 2 times"),
        ("A,ÄB,b", "(1, '3')"),
        ("b,A,A", "there is no column `a`"),
    ],
)
def test_a_name_in_another_case_is_meant_where_no_column_is_called_so(header: str, told: str) -> None:
    text = f"{header}\n" + ",".join(map(str, range(1, header.count(",") + 2))) + "\n"
    try:
        said = str(read(text, AB)[0])
    except Rejected as refused:
        said = refused.diagnostics[0].message
    assert said == told


@pytest.mark.parametrize(
    ("text", "type_", "reason", "help_line"),
    [
        ("a\nyes\n", t.BOOL, "field `a`: 'yes' is not `true` or `false`", None),
        ("a\n1,5\n".replace(",", "'"), t.F64, 'field `a`: "1\'5" is not a number', None),
        (
            "a\n1700000000\n",
            t.TIME,
            "field `a`: '1700000000' is not a time",
            "a number does not say what it counts: read it as an `int`, and make a time of that",
        ),
        ("a\n1/2/06\n", t.TIME, "field `a`: '1/2/06' is not a time", "write it as in `2024-01-31 12:00:00`"),
        (
            b"a\nn\xe9e\n",
            STRING,
            "field `a`: the byte 0xE9, character 2 of 'n\ufffde', is not UTF-8",
            "save the file as UTF-8",
        ),
        ("aa\n1\n", I64, "there is no column `a`", "did you mean `aa`?"),
        (
            "a\tb\n1\t2\n",
            AB,
            "there is one column: tabs separate its names",
            "the format is `tsv`: name the file so, or say it by `--in-format`",
        ),
        (
            "x; b\n1; 2\n",
            AB,
            "there is one column: `;` separate its names",
            "put commas in their places, or tabs, and name the file `.tsv`",
        ),
    ],
)
def test_types_are_told_in_words(
    text: str | bytes, type_: t.Type, reason: str, help_line: str | None
) -> None:
    with pytest.raises(Rejected) as caught:
        read(text, type_ if isinstance(type_, t.Record) else t.Record((("a", type_),)))
    (found,) = caught.value.diagnostics
    assert (found.message, found.help) == (reason, help_line)


def test_what_is_missing_in_json_is_told_in_its_words() -> None:
    with pytest.raises(Rejected) as caught:
        read('{"a": null, "b": "x"}', AB, "jsonl")
    (found,) = caught.value.diagnostics
    assert found.message == "field `a`: is `null`, and its type is not optional"
    assert found.help == "a type with `?` takes what is missing"
    with pytest.raises(Rejected, match=r"`\\ud800`, character 2 of 'x\ufffd', is half a character"):
        read('{"a": 1, "b": "x\\ud800"}', AB, "jsonl")


def test_rows_around_errors_keep_their_order() -> None:
    text = 'a,b\n1,x\n2\n3,y\n4,"z"!\n5,w\nq,v\n6,u\n'
    assert read(text, AB, on_error=SKIP) == [(1, "x"), (3, "y"), (5, "w"), (6, "u")]
    assert [e[:2] for e in errors(text, AB)] == [
        ("data-missing-field", 3), ("data-syntax", 5), ("data-type", 7),
    ]  # fmt: skip


@given(
    st.lists(st.sampled_from(["1,x", "2", "q,y", '3,"z"', '4,"z"!', "5,a,b"]), max_size=12), st.integers(1, 5)
)
def test_the_place_of_a_stop_is_the_same_for_every_batch_size(lines: list[str], size: int) -> None:
    """What comes before the first error is delivered, whatever the batch."""
    text = "a,b\n" + "".join(line + "\n" for line in lines)
    good = {"1,x": (1, "x"), '3,"z"': (3, "z")}
    until = next((i for i, line in enumerate(lines) if line not in good), len(lines))
    source = open_source(io.BytesIO(text.encode()), AB, name="in", format="csv", batch=size)
    out: list[Any] = []
    try:
        for part in source:
            out += part
        assert until == len(lines)
    except Rejected:
        assert until < len(lines)
    assert out == [good[line] for line in lines[:until]]


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (t.BOOL, "TRUE", True), (t.BOOL, "0", False), (t.F64, ".5", 0.5), (t.F64, "-inf", float("-inf")),
        (t.F32, "0.1", 0.10000000149011612), (t.Decimal(5, 2), "1.5", 150), (t.Decimal(5, 2), "-1.500e1", -1500),
        (t.TIME, "1970-01-02", 86_400_000_000), (t.TIME, "1970-01-01 01:00:00+01:00", 0),
        (t.TIME, "1970-01-01T00:00:00.0000010Z", 1), (t.TIME, "1969-12-31T23:59", -60_000_000),
        (t.DURATION, "1.5h", 5_400_000_000), (t.DURATION, "-250ms", -250_000), (t.BYTES, "AAE=", b"\x00\x01"),
        (t.List(I64), "[1, 2]", (1, 2)),
    ],
)  # fmt: skip
def test_texts_of_values(type_: t.Type, text: str, value: Any) -> None:
    quoted = '"' + text.replace('"', '""') + '"'
    assert read(f"v\n{quoted}\n", t.Record((("v", type_),))) == [(value,)]


@pytest.mark.parametrize(
    ("type_", "text", "code"),
    [
        (t.BOOL, "yes", "data-type"), (t.F64, "1_0", "data-type"), (t.F64, "1e999", "data-range"),
        (t.F32, "1e39", "data-range"), (t.Decimal(5, 2), "1.555", "data-range"), (t.Decimal(3, 2), "10", "data-range"),
        (t.TIME, "1970-02-29", "data-type"), (t.TIME, "1970-01-01T24:00:00", "data-type"),
        (t.TIME, "1970-01-01T00:00:00.0000001", "data-range"), (t.TIME, "+999999-01-01", "data-range"),
        (t.TIME, "1970", "data-type"), (t.DURATION, "1", "data-type"), (t.DURATION, "1.5us", "data-range"),
        (t.BYTES, "A", "data-type"), (t.List(I64), "[1", "data-syntax"), (t.List(I64), "[1, true]", "data-type"),
        (t.U64, "-1", "data-range"), (t.I32, "2147483648", "data-range"),
    ],
)  # fmt: skip
def test_texts_that_are_no_values(type_: t.Type, text: str, code: str) -> None:
    quoted = '"' + text.replace('"', '""') + '"'
    assert [e[0] for e in errors(f"v\n{quoted}\n", t.Record((("v", type_),)))] == [code]


# ---------------------------------------------------------------------------------------------------------- JSON lines

NESTED = t.Record(
    (("a", t.Record((("b", t.List(t.I32)),))), ("c", t.Optional(t.F64)), ("m", t.Map(STRING, I64)))
)


def test_json_fields_are_found_by_name_and_missing_optionals_are_none() -> None:
    assert read('{"m": {"x": 1}, "zz": [{}], "a": {"b": [1, 2.0]}}\n\n', NESTED, "jsonl") == [
        (((1, 2),), None, {"x": 1})
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": {"b": [1, 2, "x"]}, "m": {}}', ("data-type", 1, None, "a.b[2]")),
        ('{"a": {"b": [1.5]}, "m": {}}', ("data-type", 1, None, "a.b[0]")),
        ('{"a": {"b": [true]}, "m": {}}', ("data-type", 1, None, "a.b[0]")),
        ('{"a": {"b": [2147483648]}, "m": {}}', ("data-range", 1, None, "a.b[0]")),
        ('{"a": {"B": []}, "m": {}}', ("data-missing-field", 1, None, "a.b")),
        ('{"a": {"b": null}, "m": {}}', ("data-type", 1, None, "a.b")),
        ('{"a": {"b": []}, "c": 1e999, "m": {}}', ("data-range", 1, None, "c")),
        ('{"a": {"b": []}, "c": "1", "m": {}}', ("data-type", 1, None, "c")),
        ('{"a": {"b": []}, "m": {"k": "v"}}', ("data-type", 1, None, "m['k']")),
        ('{"a": {"b": []}, "m": {}, "m": {}}', ("data-syntax", 1, None, None)),
        ('{"a": {"b": []}, "m": {"\\ud800": 1}}', ("data-utf8", 1, None, "m['\\ud800']")),
        ('{"a": {"b": [}}', ("data-syntax", 1, 14, None)),
        ("[1]", ("data-type", 1, None, None)),
        ("[" * 100_000, ("data-syntax", 1, None, None)),
        ('{"c": ' + "9" * 5000 + "}", ("data-syntax", 1, None, None)),
    ],
)
def test_json_errors_have_their_place(text: str, expected: tuple[Any, ...]) -> None:
    assert errors(text, NESTED, "jsonl") == [expected]


def test_json_numbers_become_exact_decimals() -> None:
    type_ = t.Record((("d", t.Decimal(38, 2)), ("f", F64)))
    text = (
        '{"d": 123456789012345678901234567890.10, "f": 0.5}\n{"d": "7", "f": "-inf"}\n{"d": 1e3, "f": NaN}\n'
    )
    found = read(text, type_, "jsonl")
    assert found[0] == (12345678901234567890123456789010, 0.5)
    assert found[1] == (700, float("-inf"))
    assert found[2][0] == 100_000


# ------------------------------------------------------------------------------------------------------------- policies


def test_a_policy_has_a_text() -> None:
    assert OnError.parse("stop") == OnError()
    assert OnError.parse("skip") == SKIP
    assert OnError.parse("dead-letter=a=b") == OnError("dead-letter", "a=b")
    for text in ("", "dead-letter", "dead-letter=", "skip=1", "ignore"):
        assert rejected(lambda text=text: OnError.parse(text)) == ["data-on-error"]


def test_dead_letters_say_everything(tmp_path: Path) -> None:
    path = tmp_path / "dead.jsonl"
    refusals = Refusals(OnError.parse(f"dead-letter={path}"))
    assert read(b'a,b\n1,x\nq,"y\nz"\n2,\xff\n', AB, on_error=refusals) == [(1, "x")]
    assert read("3,x\n", I64, "text", on_error=refusals) == []
    refusals.close()
    letters = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(e["input"], e["file"], e["line"], e["text"]) for e in letters] == [
        ("in", "<in>", 3, 'q,"y\nz"'),
        ("in", "<in>", 5, "2,\udcff"),
        ("in", "<in>", 1, "3,x"),
    ]
    assert letters[0]["reason"] == "field `a`: 'q' is not a whole number"
    assert refusals.count() == refusals.count("in") == 3
    assert refusals.count("in", "data-utf8") == 1
    (warning,) = refusals.report()
    assert warning.code == "data-skipped"
    assert "3 rows" in warning.message


def test_a_source_finishes_a_dead_letter_file_of_its_own(tmp_path: Path) -> None:
    policy = OnError("dead-letter", str(tmp_path / "dead.jsonl"))
    assert read("q,x\n", I64, "text", on_error=policy) == []
    assert len((tmp_path / "dead.jsonl").read_text().splitlines()) == 1
    assert rejected(lambda: open_source("none.csv", AB, name="in", on_error=policy)) == ["data-missing-file"]


def test_where_a_file_is_missing_something_is_to_try(tmp_path: Path) -> None:
    (tmp_path / "numbers.csv").write_text("value\n")
    assert missing_file(f"{tmp_path}/nmbers.csv").help == "did you mean `numbers.csv`?"
    assert missing_file(f"{tmp_path}/else.bin").help == f"it is sought in `{tmp_path}`"
    assert missing_file("zzz.bin").help == "it is sought from the folder in which River was started"
    assert str(missing_file("zzz/numbers.csv").help).startswith("there is no folder `zzz`; ")


def test_a_run_without_errors_leaves_no_old_letters(tmp_path: Path) -> None:
    path = tmp_path / "dead.jsonl"
    path.write_text("old")
    refusals = Refusals(OnError("dead-letter", str(path)))
    refusals.close()
    assert path.read_text() == ""
    assert refusals.report() == ()


# -------------------------------------------------------------------------------------------------------- whole inputs


def test_texts_that_a_file_has_as_numbers_are_read_alike(tmp_path: Path) -> None:
    names = ["a", "b", "a text of more than 12 bytes"]
    rows: list[Any] = [(i, names[i % 3]) for i in range(5_000)]
    file = tmp_path / "few.parquet"
    with open_sink(str(file), AB, name="out") as sink:
        sink.write(rows)
    group = parquet.ParquetFile(file).metadata.row_group(0)
    assert [group.column(i).has_dictionary_page for i in (0, 1)] == [False, True]
    assert [item for part in open_source(str(file), AB, name="in") for item in part] == rows
    program = river.compile("s: {a: int; b: string} relation; v: relation = select a, b from s;", lang="cql")
    told = [
        program.run({"s": str(file)}, backend=each)["v"].to_pylist() for each in ("reference", "multicore")
    ]
    assert [(row["a"], row["b"]) for row in told[0]] == rows
    assert told[1] == told[0]


def test_a_row_without_a_text_is_told_with_its_values(tmp_path: Path) -> None:
    file = tmp_path / "few.parquet"
    texts: list[str | None] = ["a"] * 2_000
    texts[7] = None
    parquet.write_table(pa.table({"a": range(2_000), "b": texts}), file)
    refusals = Refusals(OnError.parse(f"dead-letter={tmp_path / 'bad.jsonl'}"))
    found = [item for part in open_source(str(file), AB, name="in", on_error=refusals) for item in part]
    refusals.close()
    assert len(found) == 1_999
    assert json.loads((tmp_path / "bad.jsonl").read_text())["text"] == "a: 7, b: null"


def test_inputs_that_cannot_be_opened(tmp_path: Path) -> None:
    bad = tmp_path / "bad.parquet"
    bad.write_text("no parquet")
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(b"a,b\n" + b"1,x\n" * 1000)[:40])
    plain = tmp_path / "plain.jsonl.gz"
    plain.write_bytes(b"{}")

    def open_(spec: Any, **options: Any) -> Any:
        return lambda: list(open_source(spec, AB, name="in", **options))

    assert rejected(open_(tmp_path / "none.csv")) == ["data-missing-file"]
    assert rejected(open_(tmp_path)) == ["data-unreadable"]  # the first of its files
    assert set(rejected(open_(tmp_path, format="csv"))) == {"data-column"}
    assert rejected(open_(bad)) == ["data-unreadable"]
    assert rejected(open_(cut)) == ["data-unreadable"]
    assert rejected(open_(plain)) == ["data-unreadable"]
    for name in (
        "empty.jsonl.gz",
        "empty.txt.gz",
        "empty.jsonl.zst",
    ):  # which even no rows would fill
        (tmp_path / name).touch()
        assert rejected(open_(tmp_path / name)) == ["data-unreadable"]
    assert rejected(open_("-")) == ["data-format"]
    assert rejected(open_("x.csb")) == ["data-format"]
    assert rejected(open_("x.csv", format="cvs")) == ["data-format"]
    assert rejected(open_(3)) == ["data-format"]
    assert rejected(open_(io.BytesIO(b""))) == ["data-format"]
    assert rejected(open_(io.BytesIO(b""), format="csv")) == ["data-column"]
    assert rejected(open_(io.BytesIO(b"a,c\n"), format="csv")) == ["data-column"]
    assert rejected(open_(io.BytesIO(b"a,b,a\n"), format="csv")) == ["data-column"]
    assert rejected(open_(io.BytesIO(b"x,y\n"), format="csv")) == ["data-column", "data-column"]
    assert rejected(open_(io.BytesIO(b'a,"b'), format="csv")) == ["data-syntax"]
    assert rejected(open_([], by="c")) == ["data-column"]


def test_a_missing_column_is_seen_before_the_first_row_with_help() -> None:
    with pytest.raises(Rejected) as caught:
        open_source(io.BytesIO(b"a,bb\n"), AB, name="in", format="csv")
    assert caught.value.diagnostics[0].help == "did you mean `bb`?"


def test_a_column_that_is_there_twice_is_not_guessed() -> None:
    with pytest.raises(Rejected, match="the column `a` occurs 2 times") as caught:
        open_source(io.BytesIO(b"a,b,a\n1,x,2\n"), AB, name="in", format="csv")
    assert [d.code for d in caught.value.diagnostics] == ["data-column"]


def test_compressed_texts(tmp_path: Path) -> None:
    packed = tmp_path / "x.csv.gz"
    packed.write_bytes(gzip.compress(b"a,b\n1,x\n") + gzip.compress(b"2,y\n"))
    assert [i for part in open_source(packed, AB, name="in") for i in part] == [(1, "x"), (2, "y")]
    zstd = tmp_path / "x.jsonl.zst"
    with pa.CompressedOutputStream(str(zstd), "zstd") as out:
        out.write(b'{"a": 1, "b": "x"}\n')
    assert [i for part in open_source(zstd, AB, name="in") for i in part] == [(1, "x")]


def test_rows_come_before_the_input_ends() -> None:
    """A live input is not waited for: a batch is what has arrived."""
    arrived: list[str] = []

    class Live:
        def __init__(self) -> None:
            self._chunks: Iterator[bytes] = iter([b"a,b\n1,x\n2", b",y\n", b"3,z\n", b""])

        def read(self, _size: int) -> bytes:
            chunk = next(self._chunks)
            arrived.append(chunk.decode())
            return chunk

    source = iter(open_source(Live(), AB, name="in", format="csv"))
    assert next(source) == [(1, "x")]
    assert len(arrived) == 1
    assert next(source) == [(2, "y")]
    assert list(source) == [[(3, "z")]]


def test_an_endless_iterable_is_read_lazily() -> None:
    def numbers() -> Iterator[int]:
        n = 0
        while True:
            yield n
            n += 1

    source = iter(open_source(numbers(), I64, name="in", batch=3))
    assert [next(source), next(source)] == [[0, 1, 2], [3, 4, 5]]


def test_python_values() -> None:
    type_ = t.Record(
        (("t", t.TIME), ("d", t.DURATION), ("x", t.Decimal(6, 2)), ("f", t.F32), ("m", t.Map(I64, t.BYTES)))
    )
    zone = dt.timezone(dt.timedelta(hours=1))
    rows = [
        {
            "t": dt.datetime(1970, 1, 1, 1, tzinfo=zone), "d": dt.timedelta(seconds=1), "x": Decimal("1.5"),
            "f": 1, "m": {1: b"x"}, "more": 0,
        },
        (dt.date(1970, 1, 2), dt.timedelta(microseconds=7), 1.25, 0.1, [(2, bytearray(b"y"))]),
        {"t": dt.datetime(1970, 1, 1), "d": "1ms", "x": 3, "f": "nan", "m": {}},  # noqa: DTZ001 - naive is UTC
    ]  # fmt: skip
    (found,) = open_source(rows, type_, name="in")
    assert found[0] == (0, 1_000_000, 150, 1.0, {1: b"x"})
    assert found[1] == (86_400_000_000, 7, 125, 0.10000000149011612, {2: b"y"})
    assert found[2][:3] == (0, 1000, 300)


pd = pytest.importorskip("pandas")
np = pytest.importorskip("numpy")
NUMBERS = {"whole": 1704067200, "of numpy": np.int64(1704067200), "with a fraction": 1704067200.5}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("type_", [t.TIME, t.DURATION])
def test_numbers_are_no_times(type_: t.Type, number: str) -> None:
    """What they count is not said: CSV and JSON refuse them, too."""
    value = NUMBERS[number]
    row = t.Record((("at", type_),))
    shapes: list[Any] = [
        [{"at": value}],
        [(value,)],
        iter([[value]]),
        pa.table({"at": [value]}),
        pd.DataFrame({"at": [value]}),
    ]
    for data in shapes:
        with pytest.raises(Rejected) as caught:
            list(open_source(data, row, name="in"))
        (found,) = caught.value.diagnostics
        assert found.code == "data-type"
        assert found.message.startswith("field `at`: ")
        assert found.message.endswith("a number does not say what it counts")
        assert found.help
    nested = t.Record((("at", t.List(type_)),))
    with pytest.raises(Rejected, match=r"at\[\]"):
        open_source(pa.table({"at": [[1]]}), nested, name="in")


def test_times_of_pandas() -> None:
    row = t.Record((("at", t.Optional(t.TIME)), ("for", t.Optional(t.DURATION))))
    seconds = pd.to_datetime([1704067200, None], unit="s")
    frame = pd.DataFrame({"at": seconds, "for": pd.to_timedelta([1.5, None], unit="s")})
    wanted = [(1_704_067_200_000_000, 1_500_000), (None, None)]
    assert list(open_source(frame, row, name="in")) == [wanted]
    rows = [(pd.Timestamp(1704067200, unit="s"), pd.Timedelta("1.5s"))]
    assert list(open_source(rows, row, name="in")) == [wanted[:1]]
    for at, span, code in (
        (pd.NaT, None, "data-type"), (pd.Timestamp(1, unit="ns"), None, "data-range"),
        (None, pd.Timedelta(1, unit="ns"), "data-range"),
    ):  # fmt: skip
        with pytest.raises(Rejected) as caught:
            list(open_source([(at, span)], row, name="in"))
        assert [found.code for found in caught.value.diagnostics] == [code]


def test_kinds_of_strings_are_strings() -> None:
    class Color(StrEnum):
        RED = "red"

    (found,) = open_source([(Color.RED,), ("blue",)], t.Record((("c", t.STRING),)), name="in")
    assert found == [("red",), ("blue",)]
    assert type(found[0][0]) is str


def test_python_errors_name_the_field_and_the_row() -> None:
    with pytest.raises(Rejected) as caught:
        list(open_source([{"a": 1, "b": "x"}, {"a": 2, "b": b"y"}], AB, name="in"))
    assert render(caught.value.diagnostics[0]) == (
        "input `in`, row 2: error[data-type]: field `b`: b'y' is not a `string`"
    )


# ------------------------------------------------------------------------------------------------------ Arrow columns


def column(type_: t.Type, array: Any) -> tuple[list[Any], list[tuple[str, int]]]:
    found: list[tuple[str, int]] = []

    class Recorder(Refusals):
        def refuse(self, error: Any) -> None:
            found.append((error.code, error.line))
            super().refuse(error)

    source = open_source(pa.table({"v": array}), type_, name="in", on_error=Recorder(SKIP))
    return [item for part in source for item in part], found


BAD_UTF8 = pa.StringArray.from_buffers(
    2, pa.array([0, 1, 2], pa.int32()).buffers()[1], pa.py_buffer(b"a\xff")
)


@pytest.mark.parametrize(
    ("type_", "array", "items", "refused"),
    [
        (t.I32, pa.array([1, 2**31, None], pa.int64()), [1], [("data-range", 2), ("data-type", 3)]),
        (t.U64, pa.array([1, -1], pa.int8()), [1], [("data-range", 2)]),
        (
            t.Optional(I64),
            pa.array([1.0, None, 1.5, 2.0**60]),
            [1, None],
            [("data-type", 3), ("data-range", 4)],
        ),
        (t.F64, pa.array([1, 2**53 + 1, 2**54], pa.int64()), [1.0, 2.0**54], [("data-range", 2)]),
        (t.F32, pa.array([0.1, 1e39]), [0.10000000149011612], [("data-range", 2)]),
        (t.F32, pa.array([2**24, 2**24 + 1, 2**25]), [2.0**24, 2.0**25], [("data-range", 2)]),
        (t.STRING, pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"], []),
        (t.STRING, pa.array(["a"], pa.large_string()), ["a"], []),
        (t.STRING, BAD_UTF8, ["a"], [("data-utf8", 2)]),
        (t.TIME, pa.array([1, 1500], pa.timestamp("ns")), [], [("data-range", 1), ("data-range", 2)]),
        (t.TIME, pa.array([1000], pa.timestamp("ns", tz="Europe/Berlin")), [1], []),
        (t.TIME, pa.array([1, 2**62], pa.timestamp("s")), [1_000_000], [("data-range", 2)]),
        (t.TIME, pa.array([1], pa.date32()), [86_400_000_000], []),
        (t.DURATION, pa.array([1], pa.duration("ms")), [1000], []),
        (t.Decimal(4, 2), pa.array([Decimal("1.500"), Decimal("1.555")]), [150], [("data-range", 2)]),
        (t.Optional(I64), pa.array([None, None]), [None, None], []),
        (t.List(I64), pa.array([[1], None, [2, None], []]), [(1,), ()], [("data-type", 2), ("data-type", 3)]),
        (t.List(I64), pa.array([[9], [1], [2, None]]).slice(1), [(1,)], [("data-type", 2)]),
        (t.Array(I64, 2), pa.array([[1, 2], [1]]), [(1, 2)], [("data-type", 2)]),
        (
            t.Array(I64, 2),
            pa.array([[9, 9], [1, 2], [3, 4]], pa.list_(pa.int64(), 2)).slice(1),
            [(1, 2), (3, 4)],
            [],
        ),
        (
            t.List(I64),
            pa.array([[1], [2, None], [3, 4]], pa.list_view(pa.int64())),
            [(1,), (3, 4)],
            [("data-type", 2)],
        ),
        (
            t.Optional(t.Tuple((I64,))),
            pa.array([{"0": 1}, None, {"0": None}]),
            [(1,), None],
            [("data-type", 3)],
        ),
    ],
)
def test_given_columns_are_converted_exactly(type_: t.Type, array: Any, items: Any, refused: Any) -> None:
    assert column(type_, array) == (items, refused)


@pytest.mark.parametrize(
    ("type_", "array", "code"),
    [
        (I64, pa.array(["x"]), "data-type"),
        (t.TIME, pa.array([1]), "data-type"),
        (t.BOOL, pa.array([1]), "data-type"),
        (t.Record((("a", I64),)), pa.array([1]), "data-column"),
        (t.Record((("v", t.Record((("a", I64),))),)), pa.array([{"b": 1}]), "data-missing-field"),
        (t.Record((("v", t.List(t.Map(I64, I64))),)), pa.array([[1]]), "data-type"),
    ],
)
def test_columns_of_other_types_are_refused_before_the_first_row(
    type_: t.Type, array: Any, code: str
) -> None:
    assert rejected(lambda: open_source(pa.table({"v": array}), type_, name="in")) == [code]


def test_frames_are_taken_by_their_arrow_stream() -> None:
    class Frame:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return pa.table({"b": ["x"], "i": [0], "a": [1]}).__arrow_c_stream__(requested_schema)

    class Old:
        def to_arrow(self) -> Any:
            return pa.table({"a": [2], "b": ["y"]})

    assert list(open_source(Frame(), AB, name="in")) == [[(1, "x")]]
    assert list(open_source(Old(), AB, name="in")) == [[(2, "y")]]
    assert list(open_source(pa.record_batch({"a": [3], "b": ["z"]}), AB, name="in")) == [[(3, "z")]]


def test_a_list_of_record_batches_is_what_they_hold() -> None:
    parts = [pa.record_batch({"a": [1, 2], "b": ["x", "y"]}), pa.table({"a": [3], "b": ["z"]})]
    for spec in (parts, tuple(parts)):
        read = open_source(spec, AB, name="in")
        assert [item for batch in read for item in batch] == [(1, "x"), (2, "y"), (3, "z")]


def test_parts_of_a_list_have_the_same_columns() -> None:
    parts = [pa.record_batch({"a": [1], "b": ["x"]}), pa.record_batch({"a": ["2"], "b": ["y"]})]
    with pytest.raises(Rejected) as caught:
        open_source(parts, AB, name="in")
    (found,) = caught.value.diagnostics
    assert (found.code, found.message, found.help) == (
        "data-format",
        "input `in`: part 2 of the list has other columns than the first",
        "let all have the columns of the first, in its order and with its types",
    )


def test_record_batches_are_no_rows_and_how_they_are_read_is_said() -> None:
    parts = [pa.record_batch({"a": [1]})]
    text = "river 1; input r: {a: i64}; operator f(x: {a: i64}) -> () { on x(v) {} } () <- f(r);"
    program = river.compile(text, lang="river")
    for backend in ("reference", "multicore"):
        with pytest.raises(Rejected) as caught:
            program.run({"r": iter(parts)}, backend=backend)
        (found,) = caught.value.diagnostics
        assert (found.code, found.message) == ("data-type", "a RecordBatch is no row")
        assert "give a list of these" in (found.help or "")


def test_columns_are_no_rows_and_how_they_become_some_is_said() -> None:
    with pytest.raises(Rejected) as caught:
        open_source({"a": [1, 2]}, t.Record((("a", t.I64),)), name="in")
    (found,) = caught.value.diagnostics
    assert (found.message, found.help) == (
        "input `in`: a dict is no source of rows", "columns are a table by `pyarrow.table(columns)`"
    )  # fmt: skip


@pytest.mark.parametrize("taken", ["all", "some", "none"])
def test_first_rows_may_be_decoded_before_they_are_asked_for(
    taken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    def slowly(rows: Iterator[Any]) -> Iterator[Any]:
        found: Any = ()
        while found is not None:
            steps.append("begun")
            time.sleep(0.05)
            found = next(rows, None)
            steps.append("over")
            yield found

    class Slow(columnar._Decoder):
        def __init__(self, rows: Iterator[Any]) -> None:
            super().__init__(slowly(rows))

    monkeypatch.setattr(columnar, "_Decoder", Slow)
    monkeypatch.setattr(columnar, "here", lambda: evolve(here(), cores=2))
    rows: list[Any] = [(i, f"row {i}") for i in range(10_000)]
    with open_sink(tmp_path / "a.parquet", AB, name="out") as sink:
        sink.write(rows)
    source = open_source(tmp_path / "a.parquet", AB, name="in", early=True)
    match taken:
        case "all":
            assert [item for part in source for item in part] == rows
        case "some":
            assert next(iter(source)) == rows[:4096]
        case _:
            pass
    source.close()
    done = len(steps)
    assert done == 2 * steps.count("over"), "something still reads"
    time.sleep(0.1)
    assert len(steps) == done, "something reads again"


def test_what_is_wrong_with_a_plan_is_told_before_what_is_wrong_with_an_input(tmp_path: Path) -> None:
    program = river.compile(
        'river 1;\ninput a: i64;\noutput o: i64;\noperator f(a: i64) -> (o: i64) = extern python "none:given";\n(o) <- f(a);\n',
        lang="river",
    )
    with pytest.raises(Rejected) as told:
        program.run({"a": str(tmp_path / "none.parquet")})
    assert [each.code for each in told.value.diagnostics] == ["run-extern"]
