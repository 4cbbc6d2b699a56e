"""Names of CQL mean what differs from them in case alone, where nothing is declared as they stand."""

from __future__ import annotations

import pytest

from frontends.cql import parse
from frontends.cql.spelling import as_declared
from river.diagnostics import Rejected
from river.driver.compilation import compile_source
from river.source import Source

HEAD = "trades: { ts: int; symbol: string; Price: float; info: { Place: string } } stream by ts; "


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("v: SELECT Symbol, PRICE FROM Trades[ROWS 1];", "v: select symbol, Price from trades[rows 1];"),
        (
            "v: select T.Symbol, t.Info.place as P from TRADES[now] T group by T.symbol, p;",
            "v: select T.symbol, T.info.Place as P from trades[now] T group by T.symbol, P;",
        ),
        (
            "v: select t.*, U.Symbol from trades[now] as T join trades[now] as u using (SYMBOL);",
            "v: select T.*, u.symbol from trades[now] as T join trades[now] as u using (symbol);",
        ),
        (
            "big(Name): select Symbol from trades[Now]; v: select NAME from Big[partition by NAME rows 1];",
            "big(Name): select symbol from trades[now]; v: select Name from big[partition by Name rows 1];",
        ),
        (
            "v: with Q as (select PRICE from trades) select Price from q;",
            "v: with Q as (select Price from trades) select Price from Q;",
        ),
        (
            "v: select sum(price) as Total from trades having TOTAL > 1;",
            "v: select sum(Price) as Total from trades having Total > 1;",
        ),
    ],
)  # fmt: skip
def test_names_are_those_that_are_declared(text: str, plain: str) -> None:
    def read(body: str) -> object:
        return parse.parse(Source("q.cql", HEAD + body))

    found = as_declared(parse.parse(Source("q.cql", HEAD + text)))
    assert found == read(plain)
    assert as_declared(found) is found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("two: { ts: int; a: int; A: int; bc: int } stream by ts; v: select BC, a, A from two;", ""),
        ("two: { ts: int; ab: int; AB: int } stream by ts; v: select Ab from two;", "unknown column `Ab`"),
        ("s: { ts: int; Count: int } stream by ts; w: select count(*), ts from s group by ts; v: select count from w;", ""),
        (
            "v: { Origin: string } stream = select Origin from F; w: { origin: string } stream = select ORIGIN from G;",
            "",
        ),
    ],
)  # fmt: skip
def test_names_that_may_be_others_stay_as_they_are(text: str, why: str) -> None:
    if not why:
        compile_source(Source("q.cql", text), "cql")
        return
    with pytest.raises(Rejected) as caught:
        compile_source(Source("q.cql", text), "cql")
    assert caught.value.diagnostics[0].message == why
