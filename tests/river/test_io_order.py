"""Order of time stamps, lateness, change logs."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from river.diagnostics import InternalError, Rejected
from river.io import deltas
from river.io.errors import SKIP, Refusals
from river.io.sinks import open_sink
from river.io.sources import open_source
from river.lang import types as t

ROW = t.Record((("ts", t.I64), ("x", t.STRING)))


def run(rows: list[Any], lateness: int = 0, batch: int = 3) -> tuple[list[Any], list[tuple[str, int]]]:
    found: list[tuple[str, int]] = []

    class Recorder(Refusals):
        def refuse(self, error: Any) -> None:
            found.append((error.code, error.line))
            super().refuse(error)

    source = open_source(
        rows, ROW, name="in", by="ts", lateness=lateness, batch=batch, on_error=Recorder(SKIP)
    )
    return [item for part in source for item in part], found


stamps = st.lists(st.integers(0, 12), max_size=20)


@given(stamps, st.integers(0, 5), st.integers(1, 6))
def test_order_is_that_of_the_definition(ts: list[int], lateness: int, batch: int) -> None:
    """Refused is an item more than the lateness below the largest before it; the others are sorted, stably."""
    rows = [(tau, str(number)) for number, tau in enumerate(ts)]
    kept: list[Any] = []
    refused: list[int] = []
    for number, row in enumerate(rows):
        if kept and row[0] < max(kept)[0] - lateness:
            refused.append(number + 1)
        else:
            kept.append(row)
    items, errors = run(rows, lateness, batch)
    assert items == sorted(kept, key=lambda row: row[0])
    code = "data-late" if lateness else "data-order"
    assert errors == [(code, line) for line in refused]


@pytest.mark.parametrize(
    ("lateness", "reason"),
    [
        (0, "the time stamp goes back, from 1970-01-01T00:01:00Z to 1970-01-01T00:00:01Z"),
        (2_000_000, "is late: 1970-01-01T00:00:01Z is more than 2s below 1970-01-01T00:01:00Z"),
    ],
)
def test_times_are_told_as_times(lateness: int, reason: str) -> None:
    row = t.Record((("at", t.TIME),))
    rows = [("1970-01-01T00:01:00Z",), ("1970-01-01T00:00:01Z",)]
    with pytest.raises(Rejected) as found:
        list(open_source(rows, row, name="in", by="at", lateness=lateness))
    assert found.value.diagnostics[0].message == f"field `at`: {reason}"


@given(stamps, st.integers(1, 5))
def test_an_item_waits_no_longer_than_the_lateness(ts: list[int], lateness: int) -> None:
    """After each item, exactly those are held back that a later item may still precede."""
    top = -1
    source = open_source(
        ([tau, ""] for tau in ts), ROW, name="in", by="ts", lateness=lateness, batch=1, on_error=SKIP
    )
    given_: list[int] = []
    accepted: list[int] = []
    batches = iter(source.batches)
    for tau in ts:
        if tau >= top - lateness:
            accepted.append(tau)
            top = max(top, tau)
        given_ += [item[0] for item in next(batches).items]
        assert given_ == sorted(a for a in accepted if a <= top - lateness)


def test_a_time_stamp_that_goes_back_stops_the_run_at_its_line() -> None:
    source = open_source(io.StringIO("x,ts\na,1\nb,5\nc,4\n"), ROW, name="in", format="csv", by="ts")
    out: list[Any] = []
    with pytest.raises(Rejected) as caught:
        out.extend(item for part in source for item in part)
    assert out == [(1, "a"), (5, "b")]
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.place) == ("data-order", "<in>:4")


def test_bad_rows_and_late_rows_together() -> None:
    text = "ts,x\n10,a\nq,b\n3,c\n9,d\n20,e\n"
    refusals = Refusals(SKIP)
    source = open_source(
        io.StringIO(text), ROW, name="in", format="csv", by="ts", lateness=2, on_error=refusals
    )
    assert [i for part in source for i in part] == [(9, "d"), (10, "a"), (20, "e")]
    assert refusals.count("in", "data-type") == refusals.count("in", "data-late") == 1


DELTA = t.delta(t.Record((("k", t.STRING), ("n", t.I64))), t.I64)
rows = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), max_size=6)


@given(rows, rows)
def test_net_is_the_difference_of_bags_both_ways_and_keeps_order(ins: list[Any], dels: list[Any]) -> None:
    inserted, deleted = deltas.net(ins, dels)
    assert Counter(inserted) == Counter(ins) - Counter(dels)
    assert Counter(deleted) == Counter(dels) - Counter(ins)
    for kept, whole in ((inserted, ins), (deleted, dels)):
        # The first equal ones are removed, so what stays of each kind is the end of the whole.
        rest = list(kept)
        for item in reversed(whole):
            if rest and rest[-1] == item:
                rest.pop()
        assert rest == []


@given(st.dictionaries(st.integers(0, 9), st.tuples(rows, rows), max_size=5), st.integers(1, 4))
def test_a_change_log_says_the_netted_deltas(changes: dict[int, Any], batch: int) -> None:
    items = [(tau, tuple(ins), tuple(dels)) for tau, (ins, dels) in sorted(changes.items())]
    type_ = deltas.changelog(DELTA)
    target = io.BytesIO()
    with open_sink(target, type_, name="out", format="csv") as sink:
        for item in items:
            sink.write(deltas.changelog_rows(item))
    source = open_source(io.BytesIO(target.getvalue()), type_, name="in", format="csv", batch=batch, by="ts")
    back = deltas.from_changelog(source)
    assert back.type == DELTA
    netted = [(tau, *map(tuple, deltas.net(ins, dels))) for tau, ins, dels in items]
    assert [i for part in back for i in part] == [item for item in netted if item[1] or item[2]]


def test_deletions_stand_before_insertions() -> None:
    assert deltas.changelog_rows((5, (("a", 1), ("b", 2)), (("a", 2), ("b", 2)))) == [
        (5, "-", "a", 2),
        (5, "+", "a", 1),
    ]


def test_streams_only_insert() -> None:
    assert deltas.stream_rows((5, (("a", 1), ("b", 2)), (("b", 2),))) == [(5, "a", 1)]
    with pytest.raises(InternalError):
        deltas.stream_rows((5, (), (("b", 2),)))


def test_names_of_the_columns_do_not_collide() -> None:
    assert [n for n, _ in deltas.changelog(DELTA).fields] == ["ts", "op", "k", "n"]
    taken = t.delta(t.Record((("ts", t.TIME), ("tau", t.I64), ("op", t.STRING))))
    assert [n for n, _ in deltas.changelog(taken).fields] == ["tau_", "change", "ts", "tau", "op"]
    assert [n for n, _ in deltas.stream(taken).fields] == ["tau_", "ts", "tau", "op"]
    assert [n for n, _ in deltas.changelog(DELTA, "at", "what").fields] == ["at", "what", "k", "n"]


def test_a_change_that_is_none_is_a_row_error() -> None:
    type_ = deltas.changelog(DELTA)
    refusals = Refusals(SKIP)
    text = "ts,op,k,n\n1,+,a,1\n1,*,b,2\n1,-,c,3\n2,+,d,4\n"
    source = open_source(io.StringIO(text), type_, name="in", format="csv", on_error=refusals)
    assert [i for part in deltas.from_changelog(source) for i in part] == [
        (1, (("a", 1),), (("c", 3),)),
        (2, (("d", 4),), ()),
    ]
    assert refusals.count("in", "data-type") == 1
