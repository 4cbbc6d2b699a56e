"""Functions that people know from SQL and that are not there: what does instead."""

from __future__ import annotations

ABSENT = {
    "all": "values that are written out are compared one by one: `a > 1 and a > 2`",
    "any": "values that are written out stand after `in`: `a in (1, 2)`",
    "some": "values that are written out stand after `in`: `a in (1, 2)`",
    "decode": "write `case a when 1 then b else c end`",
    "age": "the time between two instants is `a - b`",
    "approx_percentile": "it is called `quantile_cont(x, 0.9)`",
    "earliest_by_offset": "say by what: `min_by(x, ts)`",
    "explode": "a list is read by its positions: `xs[0]`",
    "firstever": "say by what: `min_by(x, ts)`",
    "lastever": "say by what: `max_by(x, ts)`",
    "latest_by_offset": "say by what: `max_by(x, ts)`",
    "proctime": "time is that of the rows: use the time stamp",
    "timestamptostring": "it is called `date_format(t, 'yyyy-MM-dd')`",
    "len": "it is called `length(s)`",
    "ucase": "it is called `upper(s)`",
    "lcase": "it is called `lower(s)`",
    "mode": "number the counts of a group by `row_number() over (order by n desc)`",
    "cube": "write a query for each grouping, and `union all`",
    "group_concat": "it is called `string_agg(x, ',')`",
    "iif": "write `case when c then a else b end`",
    "irstream": "a relation tells what comes and goes: declare it as `name: relation = select ...;`",
    "lag": "the row before is known by its number: join two queries with `row_number() over (...)`",
    "lead": "the row behind is known by its number: join two queries with `row_number() over (...)`",
    "now": "time is that of the rows: use the time stamp",
    "ntile": "compute it of `row_number() over (...)` and a count",
    "nvl": "it is called `coalesce(a, b)`",
    "nvl2": "write `case when a is not null then b else c end`",
    "on": "the first row of each group is `row_number() over (partition by k order by t) = 1` after `qualify`",
    "percentile_disc": "write `quantile_cont(x, p)`, which lies between two values",
    "rollup": "write a query for each grouping, and `union all`",
    "unnest": "a list is read by its positions: `xs[0]`",
    "current_timestamp": "time is that of the rows: use the time stamp",
}
"""Help by name."""
