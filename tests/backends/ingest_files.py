"""Files for the tests of ingest, and both readers of them: the general one and the native one."""

from __future__ import annotations

import atexit
import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from attrs import frozen
from hypothesis import strategies as st

from backends.native.ingest import open_native
from river.diagnostics import Rejected
from river.io.errors import SKIP, STOP, OnError, Refusals, RowError
from river.io.sources import open_source
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


FOLDER = Path(mkdtemp(prefix="river-ingest-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
ALL = (
    ("a", t.I64), ("b", t.I32), ("c", t.U64), ("d", t.F64), ("e", t.F32), ("f", t.STRING), ("g", t.BOOL), ("h", t.TIME),
    ("i", t.DURATION), ("j", t.Decimal(9, 2)), ("k", t.Decimal(38, 20)),
)  # fmt: skip
TYPES = {
    "two": t.Record((("a", t.I64), ("b", t.STRING))),
    "texts": t.Record((("a", t.STRING), ("b", t.Optional(t.STRING)), ("c", t.STRING))),
    "all": t.Record(ALL),
    "optional": t.Record(tuple((name, t.Optional(type_)) for name, type_ in ALL)),
}


DEEP = t.Record((("x", t.STRING), ("z", t.F64), ("ü", t.Optional(t.STRING))))
NESTED = t.Record((
    ("a", t.I64),
    ("n", t.Record((("a", t.STRING), ("y", t.Optional(t.I64)), ("m", t.Optional(DEEP)), ("g", t.BOOL)))),
    ("b", t.Optional(t.STRING)),
    ("o", t.Optional(t.Record((("b", t.Decimal(9, 2)), ("p", DEEP))))),
))  # fmt: skip
JSON_TYPES = {**TYPES, "nested": NESTED}


class Recorder(Refusals):
    """A policy that remembers what it refused."""

    def __init__(self, policy: OnError) -> None:
        super().__init__(policy)
        self.seen: list[RowError] = []

    def refuse(self, error: RowError) -> None:
        self.seen.append(error)
        super().refuse(error)


@frozen
class Found:
    """What became of a file."""

    items: list[str]
    errors: list[RowError]
    rejected: tuple[Any, ...]


def taken(policy: OnError, read: Callable[[Refusals], Iterable[list[Any]]]) -> Found:
    recorder = Recorder(policy)
    items: list[str] = []
    rejected: tuple[Any, ...] = ()
    try:
        for part in read(recorder):
            items += map(repr, part)
    except Rejected as error:
        rejected = error.diagnostics
    return Found(items, recorder.seen, rejected)


def general(
    path: Path,
    type_: t.Type,
    policy: OnError,
    by: str | None = None,
    lateness: int = 0,
    batch: int = 3,
    form: str | None = None,
) -> Found:
    return taken(
        policy,
        lambda r: open_source(
            path, type_, name="in", on_error=r, batch=batch, by=by, lateness=lateness, format=form
        ),
    )


def native(
    path: Path,
    type_: t.Type,
    policy: OnError,
    block: int = 1 << 20,
    rows: int = 1 << 16,
    by: str | None = None,
    lateness: int = 0,
    form: str | None = None,
    **more: Any,
) -> Found:
    def read(refusals: Refusals) -> Iterable[list[Any]]:
        source = open_source(path, type_, name="in", on_error=refusals, by=by, lateness=lateness, format=form)
        reader = open_native(source, rows, block=block, **more)
        assert reader is not None
        for batch in reader:
            assert 0 < batch.rows <= rows
            yield batch.values()

    return taken(policy, read)


def same(
    name: str, data: bytes, type_: t.Type, block: int = 1 << 20, rows: int = 1 << 16, form: str | None = None
) -> None:
    path = FOLDER / name
    path.write_bytes(data)
    for policy in (SKIP, STOP):
        assert native(path, type_, policy, block, rows, form=form) == general(path, type_, policy, form=form)


# --------------------------------------------------------------------------------------------------- texts

WHOLES = st.one_of(
    st.integers(-5, 200).map(str),
    st.integers(-(2**63) - 2, 2**64 + 1).map(str),
    st.integers(0, 10**25).map(str),
    st.sampled_from(["", "-", "+5", "-0", "007", "1_0", " 1", "1.0", "1e3", "٣", "9223372036854775807", "-9223372036854775808",
                     "2147483647", "2147483648", "-2147483648", "18446744073709551615", "18446744073709551616"]),
)  # fmt: skip
FLOATS = st.one_of(
    st.floats().map(repr),
    st.decimals(-(10**9), 10**9, places=6).map(str),
    st.from_regex(r"-?[0-9]{1,21}(\.[0-9]{1,21})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(["", ".5", "5.", "-0", "-0.0", "0.0", "00.5", "1e400", "-1e-400", "4.9e-324", "nan", "inf", "1e", "NaN",
                     "Infinity", "9007199254740993", "3.4028236e38", "1.7976931348623157e308", "123456789012345678.5"]),
)  # fmt: skip
STRINGS = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters='",\n\r\\\t'), max_size=40),
    st.text("abc ", max_size=80),
    st.sampled_from(["", "twelve bytes", "thirteen byte", "é" * 20, "x" * 31, "x" * 32, "y" * 33, "x" * 64, "null", "true"]),
)  # fmt: skip
TIMES = st.one_of(
    st.datetimes().map(lambda x: x.isoformat()),
    st.datetimes().map(lambda x: x.isoformat(" ", "milliseconds") + "Z"),
    st.sampled_from(["2024-02-30", "2024-02-29", "1900-02-29", "2024-01-01T24:00", "2024-01-01T12:30",
                     "2024-01-01T12:30:00+02:00", "2024-1-1", "+12024-01-01", "2024-01-01T10:00:00.1234567",
                     "2024-01-01T10:00:00.", "2024-01-01x"]),
)  # fmt: skip
DURATIONS = st.from_regex(r"[+-]?[0-9]{1,10}(\.[0-9]{1,9})?(us|ms|s|min|h|d|m|)", fullmatch=True)
BOOLS = st.sampled_from(["true", "false", "1", "0", "True", "FALSE", "", "truex", "fals"])
DECIMALS = st.from_regex(r"-?[0-9]{0,20}(\.[0-9]{0,21})?(e-?[0-9])?", fullmatch=True)
OF = {"i64": WHOLES, "i32": WHOLES, "u64": WHOLES, "f64": FLOATS, "f32": FLOATS, "string": STRINGS, "bool": BOOLS, "time": TIMES,
      "duration": DURATIONS}  # fmt: skip
USUAL: dict[str, st.SearchStrategy[str]] = {
    "i64": st.integers(-(2**60), 2**60).map(str), "i32": st.integers(-9999, 9999).map(str), "u64": st.integers(0, 2**60).map(str),
    "f64": st.floats(allow_nan=False, allow_infinity=False).map(repr), "f32": st.floats(-65536, 65536, width=32).map(repr),
    "string": STRINGS, "bool": st.sampled_from(["true", "false"]), "time": st.datetimes().map(lambda x: x.isoformat()),
    "duration": st.integers(-(10**6), 10**6).map(lambda x: f"{x}s"),
}  # fmt: skip


def inner(type_: t.Type) -> t.Type:
    return type_.inner if isinstance(type_, t.Optional) else type_


def cell_texts(type_: t.Type, *, usual: bool) -> st.SearchStrategy[str]:
    kind = inner(type_)
    if isinstance(kind, t.Decimal):
        found = st.integers(-999, 999).map(lambda x: f"{x}.25") if usual else DECIMALS
    else:
        assert isinstance(kind, t.Primitive)
        found = (USUAL if usual else OF)[kind.name]
    return st.one_of(found, st.just("")) if isinstance(type_, t.Optional) else found


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n"])
STRAY = [b"", b'"', b",", b"\r", b"\n", b"\xff", b"\xc3", b"\xe2\x82", b"\x00", b"\\", b"{", b"9", b" "]
DAMAGE = st.tuples(st.integers(0, 400), st.sampled_from(STRAY), st.integers(0, 2))
DAMAGES = st.one_of(st.just([]), st.just([]), st.lists(DAMAGE, max_size=3))
BLOCKS = st.sampled_from([4, 7, 40, 100, 1000, 1 << 20])
ROWS = st.sampled_from([1, 2, 5, 1 << 16])


def damaged(data: bytes, places: list[tuple[int, bytes, int]]) -> bytes:
    for place, put, lost in places:
        at = place % (len(data) + 1)
        data = data[:at] + put + data[at + lost :]
    return data


@st.composite
def csv_files(draw: Any, type_: t.Record) -> bytes:
    """A header that fits, in any order, with other columns; records, blank lines, damage."""
    declared = [name for name, _ in type_.fields]
    names = draw(
        st.sampled_from([declared, [*declared[::-1], "x"], ["y", *declared[1:], "x", declared[0]]])
    )  # each is compiled
    types = dict(type_.fields)
    lines = [",".join(names)]
    usual = draw(st.booleans())
    cells = st.tuples(*(
        st.one_of(plain, plain, plain, plain.map(quoted), plain.map(lambda x: quoted(x + '\n"')))
        if inner(types.get(name, t.STRING)) == t.STRING else (plain if usual else st.one_of(plain, plain, plain.map(quoted)))
        for name in names for plain in [cell_texts(types.get(name, t.STRING), usual=usual)]
    ))  # fmt: skip
    rows = cells.map(",".join)
    lines += draw(
        st.lists(st.one_of(rows, rows, rows, rows, st.just(""), rows.map(lambda x: x + ",")), max_size=8)
    )
    text = "".join(line + draw(ENDS) for line in lines)
    if draw(st.booleans()):
        text = text.removesuffix("\n")
    head = text.index("\n") + 1 if "\n" in text else len(text)
    mark = draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    return mark + text[:head].encode() + damaged(text[head:].encode(), draw(DAMAGES))


JSON_OTHERS = st.sampled_from(
    [
        "null",
        "1",
        '"x"',
        "true",
        "[1]",
        "{}",
        '"\\u00e9"',
        "1.5",
        "-",
        '"\\ud800"',
        "1e5",
        "[[1, {}]]",
        '{"a": 1, "a": 2}',
        '{"x": [true, null , {"y":"z"}], "q": -1.5e3 }',
        "[1,]",
        '{"a":1,}',
        "[" * 40 + "]" * 40,
        '"a\\tb"',
    ]
)
ESCAPED = st.sampled_from(
    [
        '"\\u0041"',
        '"a\\nb"',
        '"\\"quoted\\" and more text"',
        '"\\ud83d\\ude00"',
        '"\\ud800"',
        '"\\x"',
        '"\\u00e9\\u20ac"',
        '"tab\t"',
    ]
)


def spelled(type_: t.Type, *, usual: bool) -> st.SearchStrategy[str]:
    kind = inner(type_)
    text = objects(kind, usual=usual) if isinstance(kind, t.Record) else cell_texts(kind, usual=usual)
    if kind in (t.STRING, t.TIME, t.DURATION):
        text = text.map(lambda x: f'"{x}"')
    found = st.one_of(text, ESCAPED) if kind == t.STRING else text
    found = found if usual else st.one_of(found, found, JSON_OTHERS)
    return st.one_of(found, st.just("null")) if isinstance(type_, t.Optional) else found


SPACES = st.sampled_from([(",", ":"), (",", ":"), (", ", ": "), (" ,\t", " : ")])


@st.composite
def objects(draw: Any, type_: t.Record, *, usual: bool) -> str:
    """An object with the fields in this order or another, with spaces or without, with other members."""
    names = [name for name, _ in type_.fields]
    types = dict(type_.fields)
    order = draw(st.one_of(st.just(names), st.just(names), st.permutations(names)))
    members = [(name, draw(spelled(types[name], usual=usual))) for name in order]
    if draw(st.integers(0, 3)) == 0:
        place = draw(st.integers(0, len(members)))
        extra = st.tuples(st.sampled_from(["x", "y", "a", "ab", "\\u0061", "é"]), JSON_OTHERS)
        members[place:place] = draw(st.lists(extra, max_size=3))
    if draw(st.integers(0, 5)) == 0:
        del members[draw(st.integers(0, len(members) - 1))]
    comma, colon = draw(SPACES)
    return "{" + comma.join(f'"{name}"{colon}{value}' for name, value in members) + "}"


@st.composite
def json_files(draw: Any, type_: t.Record) -> bytes:
    """Objects, blank lines, damage."""
    usual = draw(st.booleans())
    rows = objects(type_, usual=usual)
    lines = draw(
        st.lists(
            st.one_of(rows, rows, rows, st.sampled_from(["", " ", "{}", "[1]", "5", "{", "\u00a0"])),
            max_size=6,
        )
    )
    text = "".join(line + draw(ENDS) for line in lines)
    if draw(st.booleans()):
        text = text.removesuffix("\n")
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + damaged(text.encode(), draw(DAMAGES))
