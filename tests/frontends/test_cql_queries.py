"""Queries inside of queries, combinations and joins: at every instant what DuckDB makes of the bags of that instant."""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from backends.multicore.plan import plan
from backends.multicore.run import run as run_multicore
from calculus.observe import Faulted, Finished
from calculus.run import run
from calculus.schedule import Seeded
from frontends.cql import FRONTEND
from frontends.sql import typed as r
from river.backend import Options
from river.diagnostics import Diagnostic, Rejected, Severity
from river.il import erase
from river.il.templates import Library
from river.il.trees import walk
from river.il.verify import verify
from river.lang.values import Mark
from river.platform import Platform
from river.source import Source
from river.testing import seeds
from tests.oracles import cql_bag as bags

if TYPE_CHECKING:
    from random import Random

LIBRARY = Library.of({"cql": FRONTEND.templates})
INPUTS = """
s: {ts: int; a: int; k: string; q: int?} stream by ts;
t: {ts: int; a: int; k: string; q: int?} stream by ts;
p: {at: int; a: int; k: string; q: int?} relation by at;
"""
LAST = 8
SEEN = {
    "s": "(select * from s where ts <= {now})",
    "s[range 2]": "(select * from s where ts <= {now} and ts >= {now} - 2)",
    "s[range 2 slide 3]": "(select * from s where ts <= {now} // 3 * 3 and ts >= {now} // 3 * 3 - 2)",
    "s[range 4 slide 2]": "(select * from s where ts <= {now} // 2 * 2 and ts >= {now} // 2 * 2 - 4)",
    "t[range 0 slide 2]": "(select * from t where ts = {now} // 2 * 2)",
    "t": "(select * from t where ts <= {now})",
    "t[now]": "(select * from t where ts = {now})",
    "t[range 1]": "(select * from t where ts <= {now} and ts >= {now} - 1)",
    "t[range 3]": "(select * from t where ts <= {now} and ts >= {now} - 3)",
    "tumble(s, 3)": (
        "(select *, ts // 3 * 3 as window_start, ts // 3 * 3 + 3 as window_end from s where ts // 3 * 3 + 3 <= {now})"
    ),
    "table(tumble(table t, descriptor(ts), interval '2' seconds))": (
        "(select *, ts // 2 * 2 as window_start, ts // 2 * 2 + 2 as window_end from t where ts // 2 * 2 + 2 <= {now})"
    ),
    "hop(s, ts, 2, 5)": (
        "(select s.*, w * 2 as window_start, w * 2 + 5 as window_end from s, range(-9, 9) as i(w)"
        " where ts >= w * 2 and ts < w * 2 + 5 and w * 2 + 5 <= {now})"
    ),
    "hop(t, 3, 1)": "(select *, ts as window_start, ts + 1 as window_end from t where ts % 3 = 0 and ts + 1 <= {now})",
    "session(s partition by k, 1)": """(
        select ts, a, k, q, min(ts) over whole as window_start, max(ts) over whole + 1 as window_end
        from (select *, sum(new) over in_order as nth from
              (select *, case when ts - lag(ts) over in_order <= 1 then 0 else 1 end as new
               from (select *, row_number() over () as i from s where ts <= {now})
               window in_order as (partition by k order by ts, i)) window in_order as (partition by k order by ts, i))
        window whole as (partition by k, nth))""",
    "s[session 1]": """(
        select * from s where ts <= {now} and {now} - (select max(ts) from s where ts <= {now}) <= 1
        and ts >= (select max(ts) from s as b where ts <= {now}
                   and not exists (select 1 from s as c where c.ts < b.ts and b.ts - c.ts <= 1)))""",
    "t[partition by k rows 1 range 2]": (
        "(select * from (select *, row_number() over (partition by k order by i desc) as nth from"
        " (select *, row_number() over () as i from t) where ts <= {now}) where nth <= 1 and ts >= {now} - 2)"
    ),
    "t[partition by k rows 1 expire after 2]": (
        "(select distinct on (k) * from (select *, row_number() over () as i from t) where ts <= {now} and "
        "{now} - ts <= 2 order by k, i desc)"
    ),
    "s[rows 2 slide 3]": (
        "(select * from (select *, row_number() over (order by ts) as i, (select count(*) from s where ts <= {now}) // 3 * 3 as n"
        " from s where ts <= {now}) where i <= n and i > n - 2)"
    ),
    "s[partition by k range 2]": "(select * from s where ts <= {now} and ts >= {now} - 2)",
    "p": "p_then",
}
"""Sources as they are seen, and what that is at an instant. `p_then` is the relation as it is then."""

QUERIES = [
    # combinations
    "select a, k from {s[range 2]} union all select a, k from {t[range 1]}",
    "select a, k from {s[range 2]} union select a, k from {t[range 3]}",
    "select a from {s[range 2]} except select a from {t[range 1]}",
    "select a, k from {s} except all select a, k from {p}",
    "select a from {t[range 3]} intersect select a from {p}",
    "select a from {s} intersect all select a from {p}",
    "select k from {s} union all select k from {t[range 1]} except all select k from {p}",
    "select a from {p} union select a from {s[range 2]} intersect select a from {t[range 3]}",
    "select a, q from {s[range 2]} except select q, a from {t[range 3]}",
    "select a * 1.5 as x from {s[range 2]} union all select a from {t[range 3]}",
    (
        "(select a, count(*) as n from {s[range 2]} group by a) union all ((select a + 1, count(*) from {t[range 3]} "
        "group by a + 1) except select a, 1 from {p}) order by n desc, a limit 3"
    ),
    # queries after `from` and `with`
    "select d.k, d.n from (select k, count(*) as n from {s[range 2]} group by k) as d where d.n > 1",
    "select d.a, p.k from (select a from {s[range 2]} union all select a from {t[range 1]}) d join {p} p on d.a = p.a",
    "select count(*) as n from (select distinct k from {s[range 2]}) d",
    "with d as (select k, sum(a) n from {s[range 2]} group by k), e as (select k from d where n > 0) select e.k, d.n from d, e",
    "with p as (select k from {t[range 1]}) select k from p union all select k from p",
    # joins
    "select u.a, w.k from {s[range 2]} u join {t[range 3]} w on u.a = w.a and u.k <> w.k",
    "select k, u.a, w.a as b from {s[range 2]} u inner join {p} w using (k)",
    "select * from {s[range 2]} u join {t[range 1]} w using (a, k) where u.ts <= w.ts",
    "select u.a, w.a as b from {t[now]} u cross join {p} w",
    # outer joins
    "select u.a, w.k from {s[range 2]} u left join {t[range 3]} w on u.a = w.a",
    "select u.a, w.k, w.q from {s[range 2]} u left outer join {t[range 1]} w on u.q = w.q and w.a > 0 and u.k <> 'x'",
    "select u.a, w.a as b from {s[range 2]} u right join {p} w on u.k = w.k",
    "select u.a, u.k, w.a as b, w.k as m from {s[range 2]} u full outer join {t[range 1]} w on u.a = w.a and u.q is null",
    "select k, u.a, w.a as b from {p} u left join {t[now]} w using (k) where coalesce(w.a, 5) > 1 and u.a > 0",
    "select k, count(w.a) as n, count(*) as m from {s[range 2]} u left join {t[range 3]} w using (k) group by k",
    "select u.a, w.a as b, v.k from {s[range 2]} u left join {t[range 3]} w on u.a = w.a left join {p} v on v.a = w.q",
    "select u.a, w.a as b, v.k from {s[range 2]} u join {t[range 3]} w on u.a = w.a full join {p} v on v.q = u.q",
    "select u.a, w.a as b, v.k from {s[range 2]} u left join {t[range 3]} w on u.a = w.a join {p} v on v.a = w.a or w.a is null",
    "select u.a from {s[range 2]} u left join {t[range 3]} w on u.a = w.a where w.a is null",
    "select u.a, v.k from {s[range 2]} u left join {t[range 1]} w on u.a = w.a, {p} v where v.k = u.k and w.k is null",
    # joins by order
    "select u.a, w.a as b from {s[range 2]} u join {t[range 3]} w on u.a < w.a",
    "select u.ts as b, w.ts as c, u.k from {s} u, {t} w where u.ts between w.ts - 2 and w.ts + 1",
    "select u.q as b, w.q as c, u.k from {s[range 2]} u, {t[range 3]} w where w.q + 1 >= u.q and u.k > w.k and w.q <= 1",
    "select u.a, w.a as b from {s[range 2]} u join {t[range 3]} w on u.k = w.k and u.ts >= w.ts - 1 and w.ts + 1 > u.ts",
    "select u.a * 0.5 as b, w.a as c from {s[range 2]} u join {p} w on w.a >= u.q * 1.0 and u.a <= w.q",
    # outer joins by any condition
    "select u.a, w.k from {s[range 2]} u left join {t[range 3]} w on u.a < w.a",
    "select u.a, u.q, w.k, w.q as r from {s[range 2]} u full join {t[range 3]} w on u.k = w.k and u.q >= w.q and w.a > 0",
    "select u.k, w.a as b from {p} u right join {s[range 2]} w on u.a + w.a = 2 or u.k = w.k",
    "select u.a, w.a as b from {s[range 2]} u right join {p} w on u.k = w.k where 1 = 0",
    "select u.a, w.a as b from {s[range 2]} u full join {t[range 3]} w on w.a between u.a - 1 and u.a",
    "select u.a, w.q as b from {s[range 2]} u left join {t[range 3]} w on u.k = w.k and w.q between u.a and u.a + 1",
    "select u.a, w.a as b, v.k from {s[range 2]} u left join {t[range 3]} w on u.a > w.a full join {p} v on v.a < w.q",
    # windows that slide in steps
    "select a, k from {s[range 2 slide 3]}",
    "select k, count(*) as n from {s[range 4 slide 2]} group by k",
    "select u.a, w.k from {s[range 2 slide 3]} u join {t[range 0 slide 2]} w on u.a = w.a",
    "select u.a, w.k from {s[range 4 slide 2]} u left join {p} w on u.a = w.a",
    "select a from {s[range 4 slide 2]} except select a from {t[range 1]}",
    # windows as tables
    "select ts, a, k, window_start, window_end from {tumble(s, 3)} w",
    "select window_start, window_end, k, count(*) as n, sum(a) as m from {tumble(s, 3)} w group by window_start, window_end, k",
    "select k, max(a) as m from {hop(s, ts, 2, 5)} w group by k, window_end having count(*) > 1",
    "select a, window_start from {hop(t, 3, 1)} w",
    """select w.k, w.n, v.m from (select k, window_end as e, count(*) as n from {hop(s, ts, 2, 5)} u group by k, window_end) w
        join (select window_end as e, max(a) as m from {hop(s, ts, 2, 5)} u group by window_end) v on w.e = v.e and w.n >= v.m""",
    """select distinct w.k, w.window_start as b from {tumble(s, 3)} w
        join {table(tumble(table t, descriptor(ts), interval '2' seconds))} v on w.window_end = v.window_end""",
    """select w.k, v.a from {tumble(s, 3)} w
        join {table(tumble(table t, descriptor(ts), interval '2' seconds))} v on w.window_start = v.window_start""",
    "select a, k, window_start, window_end from {session(s partition by k, 1)} w",
    """select k, window_start, window_end, count(*) as n, sum(a) as m from {session(s partition by k, 1)} w
        group by k, window_start, window_end""",
    "select k, count(*) as n from {session(s partition by k, 1)} w group by k, window_end having window_end > 3",
    "select k, min(window_end) as n from {session(s partition by k, 1)} w where a > 0 group by k, window_start",
    # windows of sessions, keys and counts
    "select a, k from {s[session 1]} w",
    "select a, k from {t[partition by k rows 1 expire after 2]} w",
    "select a, k from {t[partition by k rows 1 range 2]} w",
    "select a, k, q from {s[rows 2 slide 3]} w",
    "select a, k from {s[partition by k range 2]} w",
    # several joins
    "select u.a, w.a as b, v.k from {s[range 2]} u join {t[range 1]} w on u.ts >= w.ts join {t[range 3]} v on v.k = u.k",
    "select u.a, v.k, w.q from {s[range 2]} u join {t[range 3]} v on u.a = v.a join {p} w on w.k = v.k where w.q is null",
]


NESTED = [
    # conditions
    "select a, k from {s[range 2]} where a in (select a from {t[range 3]})",
    "select a, k from {s[range 2]} where a not in (select a from {t[range 3]})",
    "select a, q from {s[range 2]} where q in (select q from {t[range 3]})",
    "select a, q from {s[range 2]} where q not in (select q from {t[range 3]})",
    "select a, q, q in (select q from {t[range 1]}) as x from {s[range 2]}",
    "select u.a, u.k from {s[range 2]} u where exists (select * from {t[range 3]} w where w.a = u.a)",
    "select u.a, u.k from {s[range 2]} u where not exists (select * from {t[range 3]} w where w.a = u.a and w.k = u.k)",
    "select u.a, u.k from {s[range 2]} u where exists (select 1 from {t[range 3]} w where w.a > u.a and w.k = u.k)",
    "select u.a, u.q from {s[range 2]} u where not exists (select 1 from {t[range 3]} w where w.q < u.q or u.q is null)",
    "select a, (select max(a) from {t[range 3]}) as m from {s[range 2]}",
    "select a, (select count(*) from {t[range 1]}) as m from {s[range 2]}",
    "select u.a, (select count(*) from {t[range 1]} w where w.a = u.a) as m from {s[range 2]} u",
    "select u.a, (select count(*) + sum(w.q) from {t[range 3]} w where w.a < u.a) as m from {s[range 2]} u",
    "select a, k from {s[range 2]} where a > (select avg(a) from {t[range 3]})",
    "select a, k from {s[range 2]} u where a >= (select max(a) from {t[range 3]} w where w.k = u.k)",
    "select a, k from {s[range 2]} u where 1 < (select count(*) from {t[range 3]} w where w.k = u.k)",
    "select a, k from {s[range 2]} u where 1 > (select count(*) from {t[range 3]} w where w.k = u.k)",
    "select a, k from {s[range 2]} where a > all (select a from {t[range 3]})",
    "select a, q from {s[range 2]} where q >= any (select q from {t[range 3]})",
    (
        "select a, q, q <= all (select q from {t[range 1]}) as x, q = any (select q from {t[range 1]}) as y, "
        "q <> all (select q from {t[range 1]}) as z from {s[range 2]}"
    ),
    "select k, count(*) as n from {s[range 2]} group by k having count(*) >= (select count(*) from {t[range 1]})",
    "select k, count(*) as n, (select sum(a) from {t[range 3]} w where w.k = s.k) as m from {s[range 2]} s group by k",
    "select u.k, sum(u.a) as n from {s[range 2]} u where u.a in (select w.a from {t[range 3]} w where w.k = u.k) group by u.k",
    "select u.a, w.k from {s[range 2]} u join {t[range 3]} w on u.a = w.a where u.q in (select q from {p}) or w.q is null",
    "select a, k from {s[range 2]} where (a, k) in (select a, k from {p})",
    "select a, k from {s[range 2]} u where exists (select k from {t[range 3]} w where w.k = u.k group by k having count(*) > 1)",
    "select a, k from {s[range 2]} u where a in (select a from {t[range 3]} union select q from {p})",
    "select a, case when exists (select 1 from {p} p where p.a = u.a) then 'yes' else 'no' end as x from {s[range 2]} u",
    (
        "select a, k from {s[range 2]} u where a = (select max(a) from {s[range 2]} x where x.k = u.k and "
        "x.a in (select a from {p}))"
    ),
    (
        "select a, k from {s[range 2]} u where exists (select 1 from {t[range 3]} w where w.k = u.k and not "
        "exists (select 1 from {p} p where p.a = w.a and p.k = u.k))"
    ),
    "select count(*) as n from {s} u where not exists (select 1 from {t} w where w.a = u.a)",
    "select u.a, w.a as b from {s[range 2]} u left join {t[range 1]} w on u.k = w.k where u.a in (select a from {p})",
    "select u.a, (select w.k from {p} w where w.a = u.a and w.k = 'x' group by w.k) as m from {s[range 2]} u",
    "select a, k from {s[range 2]} u where a * 1.0 in (select a * 1.0 from {t[range 3]} w where w.k <> u.k)",
    "select a, k from {s[range 2]} u where a * 0.5 not in (select a * 1.0 from {t[range 3]})",
    "select a, k, q from {s[range 2]} u natural join (select a, k from {t[range 3]}) w",
    "select k, b, a from (select k, q as b from {p}) natural left join (select k, a from {t[range 3]})",
    # the first rows
    "select a, k from {s[range 2]} order by a, k limit 2",
    "select a, k from {s[range 2]} order by a desc, k desc limit 3 offset 1",
    "select k, count(*) as n from {s[range 4 slide 2]} group by k order by n desc, k limit 1",
    "select k from {s} group by k order by sum(a) desc, k limit 2",
    "select q, a from {s[range 2]} order by q nulls last, a limit 2",
    "select q, a from {s[range 2]} order by q desc nulls first, a limit 2",
    "select distinct k from {s} order by k desc limit 2",
    (
        "select k, a, rn from (select k, a, row_number() over (partition by k order by a, ts desc, q "
        "nulls last) as rn from {s[range 2]}) x where rn <= 2"
    ),
    "select k, a, rank() over (partition by k order by a) as r, dense_rank() over (order by k desc) as d from {s[range 2]}",
    "select a, k from {t[range 3]} qualify rank() over (partition by k order by a desc) = 1",
    "select k, count(*) as n, rank() over (order by count(*) desc) as r from {s[range 2]} group by k",
    "select a, k from (select a, k from {s[range 2]} union all select a, k from {p}) x order by k, a limit 3",
    "select * from (select a, k, row_number() over (order by k, a) as n from {p}) x where n < 3 and 2 >= n",
    "select a, k from {s} u where a in (select a from {t[range 3]} order by a desc limit 1)",
    "select a, (select k from {t[range 3]} order by k desc limit 1) as k from {s[range 2]}",
    "select a, k from {s[range 2]} order by a limit 0",
    "select a, k from {s[range 2]} u where a > (select w.a from {t[range 3]} w where w.k = u.k order by a desc, q limit 1)",
    "select u.a, (select w.a from {t[range 3]} w where w.k = u.k order by a limit 1 offset 1) as m from {s[range 2]} u",
    "select a, k from {s[range 2]} u where a in (select w.a from {t[range 3]} w where w.k = u.k order by 1 limit 2)",
    "select a, k from {s[range 2]} u where exists (select 1 from {t[range 3]} w where w.k = u.k limit 1 offset 1)",
    # aggregates over other rows
    "select a, k, sum(a) over (partition by k) as n, count(*) over () as m from {s[range 2]}",
    "select a, q, ts, avg(a) over (partition by q order by ts, a, k) as n from {s[range 4 slide 2]}",
    (
        "select ts, a, k, sum(a) over (partition by k order by ts, a, q nulls last rows between 1 "
        "preceding and current row) as n from {s[range 2]}"
    ),
    "select k, sum(a) as b, sum(sum(a)) over () as n from {s[range 2]} group by k",
    "select a, k, lag(a) over (partition by k order by ts, a, q nulls last) as b from {s[range 2]}",
    "select a, ts, lead(a, 2) over (order by ts, a, k, q nulls last) as b from {s}",
    "select a, k, first_value(q) over (partition by k order by a desc, q nulls last) as b from {t[range 3]}",
    "select ts, a, sum(a) over (partition by k order by ts range between 2 preceding and current row) as n from {s}",
    "select a, k from {s[range 2]} qualify a = max(a) over (partition by k)",
    (
        "select a, k, ntile(2) over w as n, percent_rank() over (order by a) as p, "
        "cume_dist() over (partition by k order by a) as c from {s[range 4 slide 2]} "
        "window w as (partition by k order by ts, a, q nulls last)"
    ),
    (
        "select a, k, last_value(q) over (partition by k, a order by ts, a, q nulls last rows between unbounded preceding and "
        "unbounded following) as l, nth_value(a, 2) over (partition by k order by ts, a, q nulls last) as n from {s[range 2]}"
    ),
    (
        "select a, k, first_value(a) over (order by ts, a, k, q nulls last rows between 1 preceding and current row) as f, "
        "last_value(a) over (order by ts, a, k, q nulls last rows between current row and 1 following) as l from {s[range 2]}"
    ),
    # several groupings
    "select k, a, count(*) as n, sum(q) as m, grouping(k, a) as g from {s[range 2]} group by rollup(k, a)",
    "select k, a % 2 as odd, max(q) as m from {s[range 2]} where a > 0 group by cube(k, odd) having count(*) > 1",
    "select u.k, w.a, count(*) as n from {s[range 2]} u join {p} w on u.k = w.k group by u.k, grouping sets ((w.a), ())",
    "select k, a, count(*) as n from {s[range 2]} group by grouping sets ((k, a), k) order by n desc, k, a limit 3",
    "select k, count(*) as n from {s[range 2]} group by all",
]
"""Queries inside of expressions, and of the first rows, of which each version of the sources tries some."""

HERE = seeds.chance("which queries are tried").sample(NESTED, 12)


def checked(text: str) -> Any:
    return FRONTEND.check(FRONTEND.parse(Source("<query>", INPUTS + text)))


def in_cql(query: str) -> str:
    return query.replace("{", "").replace("}", "")


def in_sql(query: str, now: int) -> str:
    found = query
    for seen, sql in SEEN.items():
        found = found.replace(f"{{{seen}}}", sql.replace("{now}", str(now)))
    return found


@cache
def compiled(query: str) -> Any:
    return verify(FRONTEND.lower(checked(f"output v: relation = {in_cql(query)};")), LIBRARY)


def says(
    query: str, data: dict[str, list[Any]], *, multicore: bool = False, seed: int = 0
) -> dict[int, list[Any]]:
    """The bag of a relation at each instant at which it changes."""
    graph = compiled(query)
    given = {name: tuple(rows) for name, rows in data.items() if name in graph.inputs}
    made: list[Any] = []
    if multicore:
        sources = {name: iter([list(rows)]) for name, rows in given.items()}
        run_multicore(plan(graph, Platform(2), Options(workers=2)), sources, {"v": made.extend})
    else:
        outcome = run(erase.erase(graph), erase.inputs(graph, given), Seeded(seed)).outcome
        assert isinstance(outcome, Finished)
        ((_, items),) = outcome.outputs
        made = list(items)
    changes: list[Any] = [item for item in made if not isinstance(item, Mark)]
    bag: list[Any] = []
    found: dict[int, list[Any]] = {}
    for tau, ins, gone in changes:
        for row in gone:
            bag.remove(row)
        bag += ins
        assert tau not in found
        found[tau] = sorted(bag, key=repr)
    return found


def row(chance: Random) -> tuple[Any, ...]:
    return chance.randint(0, 2), chance.choice("xyz"), chance.choice([None, 0, 1])


def random_data(chance: Random) -> dict[str, list[Any]]:
    """Two streams and a change log, of few values, some instants with several rows and some with none."""
    data: dict[str, list[Any]] = {
        name: [(at, *row(chance)) for at in sorted(chance.randint(0, LAST) for _ in range(7))]
        for name in "st"
    }
    there: list[Any] = []
    log: list[Any] = []
    for at in sorted(chance.randint(0, LAST) for _ in range(9)):
        if there and chance.random() < 0.4:
            log.append((at, "-", *there.pop(chance.randrange(len(there)))))
        else:
            there.append(row(chance))
            log.append((at, "+", *there[-1]))
    return data | {"p": log}


@pytest.fixture(scope="module")
def duckdb():
    connection = pytest.importorskip("duckdb").connect()
    connection.execute("set threads to 1")
    for name in ("s", "t"):
        connection.execute(f"create table {name} (ts bigint, a bigint, k varchar, q bigint)")
    connection.execute("create table p_then (a bigint, k varchar, q bigint)")
    yield connection
    connection.close()


def fill(duckdb: Any, name: str, rows: list[Any]) -> None:
    """The table has these rows. One statement for all of them: `executemany` took half of the time of the test."""
    duckdb.execute(f"delete from {name}")
    if rows:
        marks = f"({', '.join('?' * len(rows[0]))})"
        values = [value for row in rows for value in row]
        duckdb.execute(f"insert into {name} values {', '.join([marks] * len(rows))}", values)


@pytest.mark.some(25)
@pytest.mark.parametrize("query", [*QUERIES, *HERE])
def test_queries_say_at_every_instant_what_sql_says(duckdb, query: str) -> None:
    chance = seeds.chance("queries", query)
    for seed in range(2):
        data = random_data(chance)
        found = says(query, data, seed=seed)
        for name in ("s", "t"):
            fill(duckdb, name, data[name])
        used = [name for name in data if re.search(rf"{{[^}}]*\b{name}\b", query)]
        instants = [row[0] for name in used for row in data[name]]
        first, last = min(instants), max(instants)
        assert not found or max(found) <= last  # time ends with the last row
        now: list[Any] = []
        for at in range(last + 1):
            there: list[Any] = []
            for when, sign, *values in data["p"]:
                if when <= at:
                    there.append(values) if sign == "+" else there.remove(values)
            fill(duckdb, "p_then", there)
            expected = sorted(duckdb.execute(in_sql(query, at)).fetchall(), key=repr)
            now = found.get(at, now)
            if not now and (at < first or "select count(*) as n from" in query):
                continue  # a group of all rows is there from the first instant on
            assert now == expected, (at, data)


@pytest.mark.some(14)
@pytest.mark.parametrize("query", QUERIES)
def test_bags_say_the_same(query: str) -> None:
    """So the oracle knows the same algebra, with whatever is nested in it."""
    data = random_data(seeds.chance("bags", query))
    text = INPUTS + f"output v: relation = {in_cql(query)};"
    program = FRONTEND.check(FRONTEND.parse(Source("<query>", text)))
    history = bags.run(program, {one.name: data[one.name] for one in program.inputs})
    found = says(query, data)
    now: list[Any] = []
    for tau in history.instants:
        now = found.get(tau, now)
        assert now == sorted(history.rows["v"][tau], key=repr), tau


@pytest.mark.slow
def test_machine_code_says_the_same() -> None:
    chance = seeds.chance("queries natively")
    for query in chance.sample(QUERIES, len(QUERIES) // 10):
        data = random_data(chance)
        assert says(query, data, multicore=True) == says(query, data)


def test_a_union_of_streams_is_a_stream() -> None:
    program = checked("v: stream = select a from s union all select a from t where a > 1;")
    assert program.views[-1].kind == "stream"
    assert [view.output for view in program.views] == [False, False, True]


def test_a_query_after_from_may_be_a_stream_with_a_window() -> None:
    data = {"s": [(1, 1, "x", None), (2, 2, "y", None), (5, 1, "z", None)]}
    query = "select count(*) as n from (istream(select k from s where a = 1))[range 1] as d"
    assert says(query, data) == {1: [(1,)], 3: [(0,)], 5: [(1,)]}


def test_a_name_after_with_hides_others_and_is_known_in_its_query_alone() -> None:
    program = checked(
        "v: relation = with p as (select a from s) select a from p; w: relation = select k from p;"
    )
    assert [name for name, _ in program.views[-1].row.fields] == ["k"]
    assert [(view.name, view.output) for view in program.views] == [("v_p", False), ("v", True), ("w", True)]


def refused(text: str) -> list[Diagnostic]:
    with pytest.raises(Rejected) as found:
        checked(text)
    return list(found.value.diagnostics)


@pytest.mark.parametrize(
    ("query", "code", "help_line"),
    [
        ("select a from s union select a, k from t", "sql-set-columns", None),
        ("select a from s union select k from t", "sql-set-type", "make them alike by `cast`"),
        ("select a from s join t using (b)", "sql-unknown-column", None),
        ("select s.a from s join t on s.a = p.a join p on p.a = s.a", "sql-unknown-column", None),
        ("select a from s join t using (k)", "sql-ambiguous-column", "write `s.a` or `t.a`"),
        ("with d as (select a from s) select a from e", "cql-unknown-source", None),
        ("select a from s where a in (select a, k from t)", "sql-nested-columns", None),
        ("select a from s where a = (istream (select a from t))", "syntax-nested", None),
        ("select a from s where a in (select b from t)", "sql-unknown-column", None),
        ("select a from s where a > (select a from nowhere)", "cql-unknown-source", None),
        ("select s.a from s left join t on s.a = (select max(a) from p)", "sql-nested-place", None),
        (
            "select k, (select max(w.a) from t w where w.a = s.a) as m, count(*) from s group by k",
            "sql-not-grouped",
            "group by it",
        ),
        ("select distinct k from s order by a limit 3", "sql-order", None),
        ("select a from s qualify a > 3", "sql-qualify", "these are made by `row_number() over (...)`"),
        ("select lag(a) over (partition by k) as n from s", "syntax-over", None),
        ("select a from s where (a, q) not in (select a, q from t)", "sql-nested-none", None),
    ],
)
def test_what_is_refused(query: str, code: str, help_line: str | None) -> None:
    found = [one for one in refused(f"v: relation = {query};") if one.code == code]
    assert found
    if help_line is not None:
        assert found[0].help == help_line


def test_a_declared_type_names_the_columns_of_a_combination() -> None:
    (*_, view) = checked("v: {b: int?} relation = select a from s union select q from t;").views
    assert [name for name, _ in view.row.fields] == ["b"]
    assert [d.code for d in refused("v: {b: string} relation = select a from s union select q from t;")] == [
        "sql-column-type"
    ]
    assert [
        d.code for d in refused("v: {b: int; c: int} relation = select a from s union select a from t;")
    ] == ["sql-arity"]


def test_more_than_one_row_is_no_value() -> None:
    query = "select u.a, (select w.k from {t[range 3]} w where w.a = u.a) as m from {s[range 2]} u"
    data: dict[str, list[Any]] = {
        "s": [(1, 1, "x", None)],
        "t": [(1, 1, "y", None), (2, 2, "z", None), (2, 2, "y", None)],
    }
    assert says(query, data) == {1: [(1, "y")]}
    data["s"].append((2, 2, "x", None))
    outcome = run(
        erase.erase(compiled(query)),
        erase.inputs(compiled(query), {n: tuple(r) for n, r in data.items()}),
        Seeded(0),
    ).outcome
    assert isinstance(outcome, Faulted)
    assert "'assert'" in repr(outcome.info)


def test_a_query_without_sources_asks_those_in_it() -> None:
    query = (
        "select (select count(*) from {s[range 2]}) * 10 / (select count(*) + 1 from {t[now]}) as f, 7 as k"
    )
    data: dict[str, list[Any]] = {
        "s": [(1, 1, "x", None), (2, 2, "x", None), (3, 2, "x", None)],
        "t": [(3, 1, "y", None)],
    }
    assert says(query, data) == {1: [(10, 7)], 2: [(20, 7)], 3: [(15, 7)]}


def test_columns_of_nested_queries_are_not_in_a_star() -> None:
    (*_, view) = checked(
        "v: relation = select *, (select max(a) from t) from s where exists (select * from t);"
    ).views
    assert [name for name, _ in view.row.fields] == ["ts", "a", "k", "q", "max_a"]


def test_an_order_without_a_limit_is_told_to_change_nothing() -> None:
    program = checked("v: relation = select a from s order by a;")
    assert ("sql-order", Severity.REMARK) in [(d.code, d.severity) for d in program.remarks]
    assert not any(isinstance(node, r.Top) for node in walk(program.views[-1].query.relation))


@pytest.mark.parametrize(
    ("condition", "most", "by"),
    [
        ("n <= 3", 3, "number"),
        ("5 > n and a > 0", 4, "number"),
        ("m = 1", 1, "rank"),
        ("n > 3", None, "number"),
        ("n <= 3 or a = 0", None, "number"),
    ],
)
def test_rows_are_numbered_as_far_as_they_are_read(condition: str, most: int | None, by: str) -> None:
    inner = "select *, row_number() over (partition by k order by a) as n from s"
    if by == "rank":
        inner = "select *, rank() over (order by a) as m from s"
    views = checked(f"v: relation = select a from ({inner}) as x where {condition};").views
    (top,) = [node for view in views for node in walk(view.query.relation) if isinstance(node, r.Top)]
    assert (top.most, top.by) == (most, by)


def test_numbered_rows_that_others_read_are_all_there() -> None:
    text = "x: relation = select a, row_number() over (order by a) as n from s; "
    views = checked(text + "v: relation = select a from x where n <= 3; w: relation = select a from x;").views
    (top,) = [node for view in views for node in walk(view.query.relation) if isinstance(node, r.Top)]
    assert top.most is None


def test_a_row_that_comes_first_pushes_the_last_one_out() -> None:
    query = "select a, k from {s[range 8]} order by a limit 2"
    data: dict[str, list[Any]] = {"s": [(0, a, "x", None) for a in range(40)] + [(1, -1, "y", None)]}
    found = says(query, data)
    assert found == {0: [(0, "x"), (1, "x")], 1: [(-1, "y"), (0, "x")]}


def test_a_semi_join_of_what_only_grows_is_a_stream() -> None:
    (*_, view) = checked("v: stream = select a from s where a in (select a from t);").views
    assert view.kind == "stream"


def test_a_query_after_with_that_nobody_uses_is_told() -> None:
    remarks = checked("v: relation = with d as (select a from s) select k from s;").remarks
    assert ("cql-unused-query", Severity.WARNING) in [(d.code, d.severity) for d in remarks]


@pytest.mark.parametrize("source", ["tumble(s, 3)", "hop(s, 1, 3)"])
def test_a_window_that_ends_behind_the_last_row_is_not_told(source: str) -> None:
    rows = [(0, 1, "x", None), (2, 2, "y", None)]
    query = f"select a from {source} w where window_start = 0"
    assert says(query, {"s": rows}) == {}
    assert says(query, {"s": [*rows, (3, 3, "z", None)]}) == {3: [(1,), (2,)]}


@pytest.mark.parametrize(
    "query",
    [
        "select k, count(*) as n from tumble(s, 3) w group by k, window_end",
        "select w.k, v.a from tumble(s, 3) w join hop(t, 1, 3) v on w.window_start = v.window_start and w.k = v.k",
        "select distinct k, window_end from tumble(s, 3) w",
    ],
)
def test_windows_that_are_over_are_forgotten(query: str) -> None:
    data = {name: [(at, 1, "x", None) for at in range(12)] for name in "st"}
    graph = verify(FRONTEND.lower(checked(f"output v: relation = {query};")), LIBRARY)
    given = {name: tuple(rows) for name, rows in data.items() if name in graph.inputs}
    outcome = run(erase.erase(graph), erase.inputs(graph, given), Seeded(0)).outcome
    assert isinstance(outcome, Finished)
    kept: dict[str, Any] = dict(outcome.variables)
    assert any(len(items) > 0 for _, items in outcome.outputs)
    assert not [
        name
        for name, value in kept.items()
        if "_window_" not in name and hasattr(value, "__len__") and len(value)
    ]


def test_what_is_in_no_bag_is_divided_by_nothing() -> None:
    """Between two rows of an instant a row may lack its partner, or meet the old one: that is no row of the answer."""
    x, y, z = (1, 6, "x", None), (2, 3, "x", None), (2, 4, "z", None)
    share = "select a, 12 / count(*) over (partition by k) as part from s"
    assert says(share, {"s": [x, y]}) == {1: [(6, 12)], 2: [(3, 6), (6, 6)]}
    total = "select k, 12 / (select count(*) from s) as part from s group by k"
    assert says(total, {"s": [x, y, z]}) == {1: [("x", 12)], 2: [("x", 4), ("z", 4)]}
    pairs = "select 12 / (u.a - w.a) as part from s[rows 1] u, t[rows 1] w"
    data = {"s": [x, (2, 3, "x", None)], "t": [(1, 3, "y", None), (2, 9, "y", None)]}
    assert says(pairs, data) == {1: [(4,)], 2: [(-2,)]}
    mean = "select avg(12 / (u.a - w.a)) as part from s[rows 1] u, t[rows 1] w"
    assert says(mean, data) == {1: [(4.0,)], 2: [(-2.0,)]}
    apart = "select ((u.a - w.a) * (u.a - w.a))::decimal(1,0)::text as far from s[rows 1] u, t[rows 1] w"
    alike = {"s": [(1, 8, "x", None), (2, 3, "x", None)], "t": [(1, 8, "y", None), (2, 2, "y", None)]}
    assert says(apart, alike) == {1: [("0",)], 2: [("1",)]}


def test_a_session_of_groups_does_not_keep_its_rows() -> None:
    """A row then costs the same however many there were."""
    query = "select k, window_end, sum(a) as n from session(s partition by k, 3) w group by k, window_end"
    graph = verify(FRONTEND.lower(checked(f"output v: relation = {query};")), LIBRARY)
    sizes: list[int] = []
    for count in (20, 80):
        data = {"s": [(at, 1, "x", None) for at in range(10, 10 + count)]}
        outcome = run(erase.erase(graph), erase.inputs(graph, {"s": tuple(data["s"])}), Seeded(0)).outcome
        assert isinstance(outcome, Finished)
        sizes.append(len(str(outcome.variables)))
        assert says(query, data)[count + 9] == [("x", count + 12, count)]
    assert sizes[0] == sizes[1]


def calls(query: str, rows: int) -> int:
    """How many functions the evaluator calls for a query over so many rows of `s` and of `t`, one at each instant."""
    data: dict[str, list[Any]] = {name: [(at, at, "x", None) for at in range(rows)] for name in "st"}
    compiled(query)
    count = 0

    def note(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(note)
    try:
        says(query, data)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "condition",
    ["u.ts between w.ts - 2 and w.ts", "u.a > w.a and w.a + 3 > u.a and u.k = w.k"],
)
def test_a_change_of_a_join_by_order_costs_as_much_as_the_rows_near_it(condition: str) -> None:
    """All rows stay, so looking at all of them would cost four times as much for twice as many rows."""
    query = f"select u.a as b, w.a as c from {{s}} u, {{t}} w where {condition}"
    few, many = calls(query, 25), calls(query, 50)
    assert many < 2.5 * few


def test_what_a_join_by_order_keeps() -> None:
    (view,) = checked(
        "v: relation = select u.a, w.a as b from s u, t w where w.q > u.q and u.a + 2 > w.a and u.a <= 5 + w.a - 3;"
    ).views
    (join,) = (node for node in walk(view.query.relation) if isinstance(node, r.Join))
    assert join.band is not None
    assert (join.band.low, join.band.high) == (-2, 2)


def test_rows_at_both_ends_of_time_are_near_as_far_as_there_is_time() -> None:
    last = (1 << 63) - 2
    data: dict[str, list[Any]] = {
        "s": [(0, -last, "x", None), (1, last, "y", None)],
        "t": [(0, last, "x", None), (2, -last, "z", None)],
    }
    query = "select u.k, w.k as m from {s} u, {t} w where u.a <= w.a and w.a >= u.a"
    assert says(query, data) == says(query, data, multicore=True)
    assert says(query, data)[2] == [("x", "x"), ("x", "z"), ("y", "x")]
