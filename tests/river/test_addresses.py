"""Addresses, which only backends read that reach them."""

from __future__ import annotations

from pathlib import Path

import pytest

import river
from river.diagnostics import Rejected
from river.io.addresses import address, addresses, base, path_of

VIEWS = """clicks: { ts: int; page: string } stream by ts;
views: relation = select page, count(*) as n from clicks[range 2] group by page;
"""


def test_what_an_address_is() -> None:
    assert [address(each) for each in ("s3a://b/x", "table:db.log", Path("x"), "C:/x", "a.csv", "table:", 7)] == [
        "s3a://b/x", "table:db.log", None, None, None, None, None
    ]  # fmt: skip
    assert address("tcp://127.0.0.1:0") is None, "there this process listens"


def test_the_path_of_an_address() -> None:
    for each, path in [
        ("s3a://b/x/y", "/x/y"),
        ("file:/x/k=1/a.csv", "/x/k=1/a.csv"),
        ("file:///x", "/x"),
        ("hdfs://host:9000/x/*", "/x/*"),
    ]:
        assert path_of(each) == path
        assert base(each, "/z") == each.removesuffix(path) + "/z"


@pytest.mark.parametrize("backend", ["multicore", "reference"])
def test_rows_of_files_are_put_in_no_other_order(backend: str) -> None:
    program = river.compile(VIEWS, lang="cql")
    for name, code in (("clicks", "usage"), ("click", "unknown-input")):
        with pytest.raises(Rejected) as refused:
            program.run({"clicks": [{"ts": 1, "page": "a"}]}, backend=backend, order_by={name: "page"})
        (told,) = refused.value.diagnostics
        assert told.code == code
        assert code != "usage" or told.message.startswith(
            "`--order-by clicks=page`: the rows of `clicks` have an order"
        )


def test_other_backends_say_who_reads_addresses() -> None:
    program = river.compile(VIEWS, lang="cql")
    for backend in ("multicore", "reference"):
        for inputs, outputs in (
            ({"clicks": "s3a://bucket/clicks/"}, {}),
            ({"clicks": "clicks.csv"}, {"views": "hdfs://host/views/"}),
        ):
            with pytest.raises(Rejected, match="neither reads nor writes") as refused:
                program.run(inputs, outputs, backend=backend)
            (told,) = refused.value.diagnostics
            assert (told.code, told.help) == ("data-address", "`--backend spark` does")


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        (["s3a://b/x"], ["s3a://b/x/"]),
        (["s3a://b/x/day=1/*.parquet"], ["s3a://b/x"]),
        (["table:x"], ["table:x"]),
        ([], ["s3a://b/x", "s3a://b/x"]),
        ([], ["s3a://b/x/", "s3a://b/x/y"]),
        (["/x/y/"], ["file:///x/y"]),
        (["x/*.parquet"], [f"file://{Path.cwd()}/x/"]),
        (["file:///x/y/a.parquet"], ["/x/y/"]),
        (["file://localhost/x"], ["file:///x"]),
    ],
)
def test_what_is_written_is_not_used_otherwise(inputs: list[str], outputs: list[str]) -> None:
    with pytest.raises(Rejected, match="would be written, and") as refused:
        addresses(_named(inputs), _named(outputs))
    assert refused.value.diagnostics[0].code == "data-overwrite"


def test_files_of_this_machine_are_none_of_an_address() -> None:
    assert addresses(_named(["-", "/x/y", "s3a://b/x"]), _named(["-", "/x/y", "file:///x/z"])) == [
        "s3a://b/x",
        "file:///x/z",
    ]


def _named(places: list[str]) -> dict[str, str]:
    return {f"q{n}": each for n, each in enumerate(places)}
