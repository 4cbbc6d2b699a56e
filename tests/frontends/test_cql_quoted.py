"""Names in quotes, which may have any characters, and texts in double quotes."""

from __future__ import annotations

import pytest

import river
from frontends.cql import FRONTEND
from frontends.sql import syntax as q
from river.diagnostics import Rejected
from river.il.parse import parse
from river.il.pretty import pretty
from river.lang import syntax as s
from river.source import Source

LOG = """
"order-log": {"@timestamp": int; "order-id": string; "Amount": float; payload: {"user.id": int?}} stream by "@timestamp";
"""
ROWS = [
    {"@timestamp": 1, "order-id": "x", "Amount": 2.5, "payload": {"user.id": 3}},
    {"@timestamp": 2, "order-id": "z", "Amount": 3.0, "payload": {"user.id": None}},
]


def checked(text: str):
    return FRONTEND.check(FRONTEND.parse(Source("<quoted>", LOG + text)))


@pytest.mark.parametrize("backend", ["reference", "multicore"])
def test_names_in_quotes_keep_all_their_characters_up_to_the_output(backend: str) -> None:
    text = """
    "total amount": relation
      = select "order-id", sum("Amount") as "Total €" from "order-log"[range 5] where "order-id" <> "y" group by "order-id";
    users: stream by "@timestamp" = select `order-log`."payload"."user.id" as `user``s` from `order-log`;
    """
    found = river.compile(LOG + text, lang="cql").run({"order-log": ROWS}, backend=backend)
    assert found["total amount"].to_pylist() == [
        {"ts": 1, "op": "+", "order-id": "x", "Total €": 2.5},
        {"ts": 2, "op": "+", "order-id": "z", "Total €": 3.0},
    ]
    assert found["users"].to_pylist() == [{"@timestamp": 1, "user`s": 3}, {"@timestamp": 2, "user`s": None}]


def test_the_il_of_such_names_is_read_as_it_is_written() -> None:
    program = FRONTEND.lower(
        checked('v: relation = select "order-id", "if" from (select "order-id", 1 as "if" from "order-log");')
    )
    text = pretty(program)
    assert "`order-id`: string, `if`: i64" in text
    assert pretty(parse(Source("<il>", text))) == text


def test_double_quotes_that_name_no_column_are_texts() -> None:
    program = checked(
        """
        param who = "z";
        fn known(x: string): bool = x = "a" or x = :who;
        v: relation = select split_part("order-id", "-", 1) as p from "order-log" as o where known("order-id") and exists
          (select * from "order-log"[now] as p where p."order-id" = "o"."order-id" and
            "Amount" > 1.0 and "Amount " <> "order-id");
        """
    )
    (said,) = (found for found in program.remarks if found.code == "cql-quoted")
    assert said.message == "no column is called `Amount `: this is a text"
    assert "did you mean `Amount`?" in str(said.help)


def test_a_name_of_the_select_list_comes_before_a_text_behind_groups() -> None:
    checked(
        'v: relation = select "order-id", count(*) as "n-th" from "order-log" group by "order-id" having "n-th" > 1;'
    )


def test_columns_that_are_not_declared_have_no_names_in_double_quotes() -> None:
    ((code, message),) = (
        (found.code, found.message)
        for found in checked('v: {k: string} relation = select k from unseen where k = "E";').remarks
        if found.code == "cql-assumed-source"
    )
    assert (code, message) == (
        "cql-assumed-source",
        "`unseen` is not declared: taken as `{ts: int; k: string} stream by ts`",
    )


@pytest.mark.parametrize("name", ["", "$a", ":a"])
def test_what_no_name_can_be(name: str) -> None:
    with pytest.raises(Rejected) as found:
        FRONTEND.parse(Source("<quoted>", f'v: relation = select 1 as "{name}" from s;'))
    assert [(each.code, each.help) for each in found.value.diagnostics] == [
        (
            "syntax-name",
            "names in double quotes are not empty, and do not begin with `$` or `:`; texts stand in single quotes",
        )
    ]


def test_the_syntax_knows_them_apart() -> None:
    program = FRONTEND.parse(Source("<quoted>", """v: relation = select "a", `b`, 'c' from s;"""))
    query = program.decls[0].query
    assert query is not None
    assert isinstance(query.select, q.Select)
    values = [item.value for item in query.select.items if isinstance(item, q.Item)]
    assert values == [q.Quoted("a"), s.Name("b"), s.String("c")]
