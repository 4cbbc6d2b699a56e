"""Regions of joins and windows: both sides split by one key, as `expand` writes them out, compute what the program does."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import river
from optimizers import Expand, Fission
from river.il.annotations import annotated
from river.il.pretty import pretty
from river.passes import apply
from river.platform import Platform
from river.testing.seeds import chance

if TYPE_CHECKING:
    from random import Random

    from river.driver import Compiled

HEAD = (
    "a: {ts: int; k: int; v: int} stream by ts;\nb: {ts: int; k: int; v: int} stream by ts;\n"
    "d: {ts: int; k: int?; v: int} stream by ts;\nc: relation = "
)
QUERIES = {
    "window and groups": ("select k, count(*) as n from a[range 5] group by k;", [["range", "group"]]),
    "join of windows": (
        "select a.k, a.v, b.v as w from a[range 5], b[range 7] where a.k = b.k;",
        [["range", "range", "join"], ["net"]],
    ),
    "outer join": (
        "select a.k, a.v, b.v as w from a[range 5] left join b[range 7] on a.k = b.k;",
        [["range", "range", "outer", "select"], ["net"]],
    ),
    "union": (
        "select k, v from a[range 5] union all select k, v from b[range 7];",
        [["range", "select", "range", "select", "union"], ["net"]],
    ),
    "with itself": (
        "select s.k, s.v, t.v as w from a[range 3] as s, a[range 6] as t where s.k = t.k;",
        [["copy"], ["range", "range", "join"], ["net"]],
    ),
    "of groups": (
        "select s.k, s.n, t.v from (select k, count(*) as n from a[range 4] group by k) as s, b[range 6] as t where s.k = t.k;",
        [["range", "group", "range", "join"], ["net"]],
    ),
    "by a column that may be missing on one side": (
        "select a.k, d.v from a[range 5], d[range 7] where a.k = d.k;",
        [["net"], ["select"]],
    ),
    "by other columns": (
        "select a.k, b.k as j from a[range 5], b[range 7] where a.k = b.v;",
        [["net"]],
    ),
}


def rows(random: Random, count: int) -> list[dict[str, int]]:
    made = [
        {"ts": random.randrange(25), "k": random.randrange(3), "v": random.randrange(4)} for _ in range(count)
    ]
    return sorted(made, key=lambda row: row["ts"])


def bags(compiled: Compiled, backend: str, inputs: Any) -> Counter[str]:
    """What a query says, whatever the order of rows within an instant."""
    return Counter(map(str, compiled.run(inputs, backend=backend)["c"].to_pylist()))


@pytest.mark.parametrize("name", QUERIES)
def test_what_is_split_by_one_key_is_one_region(name: str) -> None:
    query, regions = QUERIES[name]
    compiled = river.compile(HEAD + query, lang="cql")
    divided = river.compile(
        pretty(apply(compiled.program, (Fission(auto=True),), Platform(1, 3), compiled.templates).program),
        lang="river",
    )
    found: dict[str, list[str]] = {}
    for instance in divided.graph.instances:
        if (region := annotated(instance.use).region) is not None:
            found.setdefault(region.id, []).append(instance.name.partition("_")[0])
    assert sorted(found.values()) == sorted(regions)
    applied = apply(divided.program, (Expand(),), Platform(1, 3), compiled.templates)
    assert [each.message for each in applied.remarks] == []
    apart, random = river.compile(pretty(applied.program), lang="river"), chance("joined regions", name)
    inputs: dict[str, Any] = {name: rows(random, 12) for name in "abd"}
    inputs["d"] = [{**row, "k": row["k"] or None} for row in inputs["d"]]
    inputs = {name: inputs[name] for name in compiled.graph.inputs}
    assert bags(apart, "reference", inputs) == bags(compiled, "reference", inputs)
