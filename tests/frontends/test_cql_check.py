"""What River-CQL refuses, warns of and assumes: each code, and what the checked query is."""

from __future__ import annotations

import pytest

import river
from frontends.cql import FRONTEND
from frontends.cql import typed as ty
from frontends.sql import typed as r
from frontends.sql.values import spelled
from river.diagnostics import Diagnostic, Rejected, Severity
from river.lang import syntax as s
from river.lang import types as t
from river.source import Source

INPUTS = """
s: {ts: int; a: int; x: float; k: string; q: int?} stream by ts;
t: {ts: int; a: int; b: int; k: string} stream by ts;
p: {at: int; a: int; k: string} relation by at;
"""


def check(text: str, inputs: str = INPUTS) -> ty.Program:
    return FRONTEND.check(FRONTEND.parse(Source("<query>", inputs + text)))


def refused(text: str, inputs: str = INPUTS) -> tuple[Diagnostic, ...]:
    with pytest.raises(Rejected) as found:
        check(text, inputs)
    return found.value.diagnostics


def codes(text: str, inputs: str = INPUTS) -> list[str]:
    return [d.code for d in refused(text, inputs)]


def select(text: str) -> ty.View:
    return check(f"v: relation = {text};").views[-1]


def columns(text: str) -> dict[str, t.Type]:
    return dict(select(text).row.fields)


def test_a_condition_inside_an_expression_may_be_none() -> None:
    assert columns("select if q > 1 {a} else {0} as r from s") == {"r": t.I64}
    assert codes("v: relation = select if a {1} else {0} as r from s;") == ["sql-condition"]


def test_the_greatest_of_several_is_none_where_all_may_be() -> None:
    made = columns("select greatest(a, 2) as n, least(q, a) as m, greatest(q, q) as l from s")
    assert made == {"n": t.I64, "m": t.I64, "l": t.Optional(t.I64)}


def test_none_takes_its_type_from_what_stands_around_it() -> None:
    found = columns("select if a > 1 {q} else {null} as r from s")
    assert found == {"r": t.Optional(t.I64)}


@pytest.mark.parametrize(
    ("text", "code", "help_line"),
    [
        ("v: relation = select aa from s;", "sql-unknown-column", "did you mean `a`?"),
        ("v: relation = select s.kk from s, t;", "sql-unknown-column", "did you mean `k`?"),
        ("v: relation = select a from s, t;", "sql-ambiguous-column", "write `s.a` or `t.a`"),
        ("v: relation = select u.* from s;", "sql-unknown-source", None),
        ("v: relation = select s.a from s as u;", "sql-unknown-column", "write `u.a`"),
        ("v: relation = select a from s, s;", "sql-duplicate-source", "give one of them another name: `as other`"),
        ("v: relation = select a from s where count(*) > 1;", "sql-aggregate-place", "conditions on groups stand after `having`"),
        ("v: relation = select a from s where sum(a) > 1;", "sql-aggregate-place", None),
        ("v: relation = select sum(max(a)) from s;", "sql-aggregate-place", None),
        ("v: relation = select sum(k) from s;", "sql-aggregate-argument", None),
        ("v: relation = select median(distinct a) from s;", "sql-aggregate-argument", None),
        ("v: relation = select avg() from s;", "sql-aggregate-argument", None),
        ("v: relation = select k, count(*) from s group by a;", "sql-not-grouped", "add it to `group by`"),
        ("v: relation = select count(*) from s having a > 1;", "sql-not-grouped", "aggregate it"),
        ("v: relation = select a, count(*) from s group by 3;", "sql-group-number", None),
        ("v: relation = select a from s having a > 1;", "sql-having", None),
        ("v: relation = select a from s where a;", "sql-condition", None),
        ("v: relation = select a, k as a from s;", "sql-duplicate-column", "rename one of them with `as`"),
        ("v: {a: int; b: int} relation = select a from s;", "sql-arity", None),
        ("v: {b: int} relation = select a as c from s;", "sql-column-name", "write `as b`, or nothing"),
        ("v: {a: int} relation = select k from s;", "sql-column-type", None),
        ("v: {q: int} relation = select q from s;", "sql-may-be-none", None),
        ("v: {n: int} relation = select sum(a) from s;", "sql-may-be-none", None),
        ("v: relation = select [i for i in 0 .. a] as b from s;", "sql-expression", None),
        ("v: relation = select any([a], fn(i) => i > 0) as b from s;", "sql-expression", None),
        ("v: relation = select a + k as b from s;", "lang-operation-types", None),
        ("v: relation = select nope(a) as b from s;", "sql-unknown-function", None),
        ("v: {a: nope} relation = select a from s;", "lang-unknown-type", None),
        ("v: relation = select a from ss;", "cql-unknown-source", "did you mean `s`?"),
        ("v: relation = select a from s; v: relation = select a from t;", "cql-duplicate-name", None),
        ("v: relation = select a from w; w: relation = select a from v;", "cql-cyclic", None),
        ("v: relation = select a from v;", "cql-cyclic", None),
        ("v: relation = select a from p[range 3];", "cql-window-on-relation", None),
        ("v: relation = select a from s[rows 0];", "cql-window-empty", None),
        ("v: relation = select a from s[rows 99999999999999999999];", "cql-window-long", "write `[unbounded]`"),
        ("v: relation = select a from s where q like 'a';", "sql-like", None),
        ("v: relation = select a from s where q = null;", "sql-none", "`is null` asks for it; a value is `cast(null as int)`"),
        ("v: relation = select a from s[range 9007199254740992];", "cql-window-long", "write `[unbounded]`"),
        ("v: relation = select a from s[range 3 slide 0];", "cql-window-step", None),
        ("v: relation = select a from s[range 3 slide 2 minuts];", "cql-unit", "did you mean `minutes`?"),
        ("v: relation = select a from s[range 3 minuts];", "cql-unit", "did you mean `minutes`?"),
        ("v: relation = select a from s[range 3 milliseconds];", "cql-unit", None),
        ("v: relation = select a from s[range 0.5 seconds];", "cql-unit", "say what a time stamp counts: `tick 1 millisecond;`"),
        ("windows half-open; v: relation = select a from s[range 0];", "cql-window-empty", "write `[now]`"),
        ("tick 0 seconds;", "cql-tick", None),
        ("tick 1 nope;", "cql-unit", None),
        ("v: relation = select a from s[session 0];", "cql-window-empty", None),
        ("v: relation = select a from s[rows 3 slide 0];", "cql-window-step", None),
        ("v: relation = select a from s[partition by z session 3];", "sql-unknown-column", None),
        ("v: relation = select a, window_end from tumble(s, interval '0' seconds) w;", "cql-window-empty", None),
        ("v: relation = select a from tumble(s, a, 3) w;", "cql-window-stamp", None),
        ("v: relation = select a from session(s partition by z, 3) w;", "sql-unknown-column", None),
        ("v: relation = select a from tumble(p, 3) w;", "cql-window-on-relation", None),
        ("v: stream = select * from tumble(s, 3) u; w: relation = select a from tumble(v, 3) u;", "cql-window-column",
         "give that another name by `as` where it is selected"),
        ("v: stream = select a from session(s, 3) w;", "cql-not-monotonic", None),
        ("v: stream = select count(*) as n from tumble(s, 3) w group by a;", "cql-not-monotonic", None),
        ("v: relation = select a from s[partition by a + 1 rows 3];", "cql-partition", None),
        ("v: relation = select a from s[partition by aa rows 3];", "sql-unknown-column", "did you mean `a`?"),
        ("v: relation = istream(select a from s);", "cql-stream-found", "declare it as `v: ... stream`"),
        ("v: stream = select count(*) from s;", "cql-not-monotonic", None),
        ("v: stream = select a from s[range 3];", "cql-not-monotonic", None),
        ("v: stream = select a from p;", "cql-not-monotonic", None),
        ("v: relation by ts = select a from s;", "cql-relation-stamp", "leave out `by ts`"),
        ("v: stream by ts = istream(select ts, a from s);", "cql-stamp-selected", "leave it out of the select list"),
        ("v: {ts: time; a: int} stream by ts = istream(select a from s);", "cql-stamp-type", None),
        ("output i: {ts: int} stream by ts;", "cql-output", None),
        ("i: stream by ts;", "cql-needs-type", "write `i: {ts: int; ...} stream by ts;`"),
        ("i: {ts: int} relation by ts;", "cql-needs-type", None),
        ("i: {ts: int} stream;", "cql-needs-stamp", "say which column is the time stamp: `by ts`"),
        ("i: {time: int} stream by tim;", "sql-unknown-column", "did you mean `time`?"),
        ("i: {ts: float} stream by ts;", "cql-stamp-type", "write `by cast(ts * 1000 as int)`, after `tick 1 millisecond;`"),
        ("i: {ts: int?} stream by ts;", "cql-stamp-type", "say what stands for none: `by coalesce(ts, ...)`"),
        ("i: {ts: string} stream by ts;", "cql-stamp-type", "write `by to_timestamp(ts)`, or `by cast(ts as int)`"),
        ("i: {ts: int; op: int} relation by ts;", "cql-reserved-column", None),
        ("i: {ts: int; m: map<int, int>} stream by ts;", "cql-column-type", None),
        ("i: {ts: time} stream by ts; v: relation = select s.a from s, i;", "cql-stamp-mixed", None),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, code: str, help_line: str | None) -> None:
    found = [d for d in refused(text + " z: relation = select a from t;") if d.code == code]
    assert found, refused(text)
    assert found[0].span is not None
    if help_line is not None:
        assert found[0].help == help_line


def test_grouping_by_what_cannot_be_compared() -> None:
    assert codes("v: relation = select count(*) from s group by {a: a, m: {(k): a}};") == ["sql-key-type"]


def test_a_program_without_query() -> None:
    assert codes("") == ["cql-no-query"]


def test_all_errors_are_told_at_once() -> None:
    text = """
        v: relation = select aa, bb + kk as c from s[rows 0] where cc = 1;
        w: relation = select dd, ee + ff as c, sum(k) from s where gg = 1 and hh = 2;
        u: relation = select a from v;
    """
    found = [d.message for d in refused(text)]
    unknown = [f"unknown column `{name}`" for name in ("aa", "bb", "kk", "cc", "dd", "ee", "ff", "gg", "hh")]
    assert found[:3] == unknown[:3]  # in the order of the text
    others = ["a window of no rows", "`sum` takes numbers, this is `string`"]
    assert sorted(found) == sorted(unknown + others)  # what uses a refused declaration says nothing more


def test_an_unused_input_is_told() -> None:
    program = check("v: relation = select a from s;")
    assert [(d.code, d.severity) for d in program.remarks] == [("cql-unused-input", Severity.WARNING)] * 2
    assert [one.name for one in program.inputs] == ["s"]


def test_data_of_an_input_that_no_query_uses_are_not_read() -> None:
    text = (
        "s: {ts: int; a: int} stream by ts; t: {ts: int; b: int} stream by ts; v: relation = select a from s;"
    )
    program = river.compile(text, lang="cql")
    found = program.run({"s": [(1, 2)], "t": "there/is/no/such/file.csv"}, backend="reference")["v"]
    assert found["a"].to_pylist() == [2]
    with pytest.raises(Rejected) as refused_:
        program.run({"s": [(1, 2)], "u": [(1, 2)]}, backend="reference")
    assert [each.code for each in refused_.value.diagnostics] == ["unknown-input"]


def test_a_fraction_that_is_dropped_is_told() -> None:
    program = check(
        "v: {m: int; k: string} relation = select avg(a), k from s; w: relation = select t.a from t, p;"
    )
    (warning,) = program.remarks
    assert (warning.code, warning.severity) == ("sql-truncates", Severity.WARNING)
    assert warning.span is not None
    assert warning.span.text == "avg(a)"


# ------------------------------------------------------------------------------------------------------ Figure 3(b)

FIGURE_3B = """congested: { speed: int; seg_no: int; dir: int; hwy: int } relation
  = select avg(speed), seg_no, dir, hwy from seg_speed[range 300];"""


def test_figure_3b_is_accepted_as_printed() -> None:
    program = check(FIGURE_3B, "")
    warning, remark = program.remarks
    assert (remark.code, remark.severity) == ("cql-assumed-source", Severity.REMARK)
    assert "`{ts: int; speed: int; seg_no: int; dir: int; hwy: int} stream by ts`" in remark.message
    assert warning.code == "sql-truncates"
    (source,) = program.inputs
    assert source.row == t.Record(tuple((n, t.I64) for n in ("ts", "speed", "seg_no", "dir", "hwy")))
    group = program.views[0].query.relation
    assert isinstance(group, r.Group)
    assert [key.name for key in group.keys] == ["seg_no", "dir", "hwy"]


@pytest.mark.parametrize(
    ("declared", "query", "columns"),
    [
        ("m: float?; n: int?", "select avg(v), max(w) from unseen", {"v": t.F64, "w": t.I64}),
        ("m: float; k: string", "select avg(v), k from unseen", {"v": t.F64, "k": t.STRING}),
        ("m: string; n: int", "select max(v), count(w) from unseen where w = 1", None),
        ("m: string; n: int?", "select max(v), sum(w) from unseen group by v", {"v": t.STRING, "w": t.I64}),
        ("m: int", "select v from unseen where ts > 3", {"v": t.I64}),
        ("m: int", "select v from unseen where w > 3", None),
        ("m: int; n: float", "select v, v from unseen", None),
        ("m: int", "select u.v from unseen as u, s", {"v": t.I64}),
        ("m: int; n: int", "select * from unseen", None),
        ("m: int", "select * from unseen", None),
        ("m: int", "select v + 1 from unseen", None),
    ],
)
def test_what_follows_for_an_undeclared_source(
    declared: str, query: str, columns: dict[str, t.Type] | None
) -> None:
    text = f"v: {{{declared}}} relation = {query};"
    if columns is None:
        assert codes(text) == ["cql-unknown-source"]
    else:
        found = next(one for one in check(text).inputs if one.name == "unseen")
        assert dict(found.row.fields) == {"ts": t.I64, **columns}


# ------------------------------------------------------------------------------------------------------ types


def test_names_and_types_of_results() -> None:
    assert columns("select a, x as y, count(*), sum(a), avg(a), min(k), count(q) from s group by a, x") == {
        "a": t.I64, "y": t.F64, "count": t.I64, "sum_a": t.I64, "avg_a": t.F64, "min_k": t.STRING, "count_q": t.I64,
    }  # fmt: skip


def test_without_groups_only_counts_are_always_there() -> None:
    assert columns("select count(*), sum(a), avg(a), max(x) from s") == {
        "count": t.I64, "sum_a": t.Optional(t.I64), "avg_a": t.Optional(t.F64), "max_x": t.Optional(t.F64),
    }  # fmt: skip


def test_numbers_meet_in_the_wider_type() -> None:
    assert columns("select a + x as b, a / 2 as c, x / 2 as d, -a as e, q + 1 as f, a + q as g from s") == {
        "b": t.F64, "c": t.I64, "d": t.F64, "e": t.I64, "f": t.Optional(t.I64), "g": t.Optional(t.I64),
    }  # fmt: skip


def test_division_is_spelled_out() -> None:
    make = select("select a / 2 as c, x / 2 as d from s").query.relation
    assert isinstance(make, r.Filter)
    row = s.Name("r")
    assert make.make.body == s.RecordValue(
        (
            s.FieldValue("c", s.Call("div.trunc", (s.Member(row, "a"), s.Int(2)))),
            s.FieldValue("d", s.Call("div.trap", (s.Member(row, "x"), s.Float(2.0)))),
        )
    )


def test_a_declared_type_converts() -> None:
    view = check("v: {a: float; n: int?; q: float?} relation = select a, x, q from s;").views[0]
    assert dict(view.row.fields) == {"a": t.F64, "n": t.Optional(t.I64), "q": t.Optional(t.F64)}


def test_stars() -> None:
    assert list(columns("select t.*, x from s, t")) == ["ts", "a", "b", "k", "x"]
    assert list(columns("select * from p")) == ["a", "k"]
    assert list(columns("select * from p, t")) == ["p_a", "p_k", "ts", "t_a", "b", "t_k"]


def test_the_time_stamp_of_a_derived_stream() -> None:
    views = check("""
        plain: stream = select a from s;
        taken: stream = select ts from s;
        stated: stream by at = select a from s;
        listed: {a: int; at: int} stream by at = select a from s;
        uses: relation = select at, a from stated[now];
    """).views
    assert {v.name: (v.stamp.name, v.stamp.column, [n for n, _ in v.row.fields]) for v in views} == {
        "plain": ("ts", False, ["a"]),
        "taken": ("tau", False, ["ts"]),
        "stated": ("at", True, ["at", "a"]),
        "listed": ("at", True, ["a", "at"]),
        "uses": ("tau", False, ["at", "a"]),
    }


def test_outputs_are_what_nobody_uses_and_what_says_so() -> None:
    views = check(
        "output a1: relation = select a from s; b1: relation = select a from a1; c1: relation = select a from b1;"
    ).views
    assert [(v.name, v.output) for v in views] == [("a1", True), ("b1", False), ("c1", True)]


def test_time_in_microseconds() -> None:
    inputs = "s: {at: time; a: int} stream by at;"
    program = check(
        "v: relation = select a from s[range 2 milliseconds]; w: relation = select a from s[range 3];", inputs
    )
    assert program.tau == t.TIME
    lengths = [view.query.sources[0].window for view in program.views]
    assert lengths == [ty.Range(2_000), ty.Range(3_000_000)]


# ------------------------------------------------------------------------------------------------------ algebra


def test_conditions_go_where_they_can() -> None:
    view = select("select x, b from s[now], t where s.a = t.a and s.k = 'u' and x > b and s.a / t.b = 1")
    rest = view.query.relation
    assert isinstance(rest, r.Filter)  # what compares both sides, and what may trap, comes last
    join = rest.input
    assert isinstance(join, r.Join)
    assert join.key == t.I64
    assert isinstance(join.left, r.Filter)  # `s.k = 'u'`
    assert isinstance(join.right, r.Input)
    assert {name for name, _ in join.row.fields} == {"a", "x", "b"}


def test_what_is_a_key_of_a_join_and_unknown_equals_nothing() -> None:
    numbers = select("select s.k from s, s as o where s.x = o.x").query.relation
    assert isinstance(numbers, r.Join)
    assert numbers.key == t.F64
    assert isinstance(numbers.left, r.Filter)  # NaN equals nothing
    product = select("select s.k from s, s as o where s.x < o.x").query.relation
    assert isinstance(product, r.Filter)
    assert isinstance(product.input, r.Join)
    assert product.input.key == t.UNIT
    optional = select("select s.k from s, t where q = b").query.relation
    assert isinstance(optional, r.Join)
    assert optional.key == t.I64
    assert isinstance(optional.left, r.Filter)


def test_a_number_after_group_by_is_an_item_of_the_select_list() -> None:
    by_number = select("select k, a % 2 as odd, count(*) as n from s group by 2, 1")
    by_value = select("select k, a % 2 as odd, count(*) as n from s group by a % 2, k")
    assert by_number.query.relation == by_value.query.relation


def test_aggregates_are_computed_once() -> None:
    view = select("select k, sum(a) + 1 as n, sum(a) as m from s group by k having sum(a) > 2")
    assert isinstance(view.query.relation, r.Group)
    assert len(view.query.relation.aggregates) == 1


def seen(text: str) -> ty.Window | None:
    (*_, view) = check(text).views
    return view.query.sources[0].window


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("v: relation = select a from s[range 1.5 minutes];", ty.Range(90)),
        ("tick 1 millisecond; v: relation = select a from s[range 0.5 seconds];", ty.Range(500)),
        ("tick 1 millisecond; v: relation = select a from s[range 2];", ty.Range(2000)),
        ("tick 2 minutes; v: relation = select a from s[range 4 minutes slide 1 hour];", ty.Range(2, 30)),
        ("windows half-open; v: relation = select a from s[range 5];", ty.Range(4)),
        ("windows half-open; v: relation = select a from s[range 5 slide 2];", ty.Range(4, 2)),
        ("windows half-open; v: relation = select a from s[now];", ty.Range(0)),
        ("windows closed; v: relation = select a from s[range 5];", ty.Range(5)),
        ("windows half-open; v: relation = select a from s[session 5];", ty.Expiring((), 0, 5)),
        ("v: relation = select a from s[partition by k range 5 secs];", ty.Range(5)),
        ("v: relation = select a from s[partition by k rows 2 expire after 1 min];", ty.Expiring(("k",), 2, 60)),
        ("v: relation = select a from s[partition by k rows 2 range 1 min];", ty.Recent(("k",), 2, 60)),
        ("windows half-open; v: relation = select a from s[rows 2 range 5];", ty.Recent((), 2, 4)),
        ("windows half-open; v: relation = select a from s[partition by k rows 2 expire after 5];", ty.Expiring(("k",), 2, 4)),
        ("v: relation = select a from s[rows 7 slide 3];", ty.RowSteps(7, 3)),
        ("v: relation = select a from hop(s, 5, 1 minute) w;", ty.Buckets(60, 5)),
        ("windows half-open; v: relation = select a from tumble(s, 5) w;", ty.Buckets(5, 5)),
        ("v: relation = select a from session(s partition by k, 5) w;", ty.Sessions(("k",), 5)),
        ("v: relation = select count(*) as n from session(s partition by k, 5) w group by k, window_end;",
         ty.Sessions(("k",), 5, grows=True)),
        ("v: relation = select count(*) as n from session(s partition by k, 5) w group by window_start;",
         ty.Sessions(("k",), 5)),
        ("v: relation = select max(window_end) as n from session(s, 5) w group by window_start;", ty.Sessions((), 5)),
    ],
)  # fmt: skip
def test_lengths_are_counted_in_ticks(text: str, window: ty.Window) -> None:
    assert seen(text) == window


def test_a_tick_is_of_whole_numbers() -> None:
    text = "i: {ts: time} stream by ts; tick 1 millisecond; v: relation = select ts from i;"
    assert codes(text, "") == ["cql-tick"]


def test_a_step_longer_than_the_window_is_told() -> None:
    (found,) = (d for d in check("v: relation = select a from hop(s, 5, 2) w;").remarks if "step" in d.code)
    assert (found.code, found.severity) == ("cql-window-step", Severity.WARNING)


@pytest.mark.parametrize(
    "query",
    [
        "select * from tumble(s, 3) w",
        "select k, count(*) as n from tumble(s, 3) w where a > 1 group by k, window_start",
        "select distinct k from hop(s, 2, 3) w",
        "select w.k, v.b from tumble(s, 3) w join hop(t, 2, 3) v on w.window_start = v.window_start",
        "select max(n) as m from (select count(*) as n, window_end as e from tumble(s, 3) w group by k, window_end) d group by e",
    ],
)
def test_what_windows_tell_at_their_end_is_a_stream(query: str) -> None:
    (*_, view) = check(f"v: stream = {query};").views
    assert view.query.operator == "istream"


def test_begins_of_windows_of_other_lengths_do_not_meet_at_once() -> None:
    inner = "select w.window_end as e from tumble(s, 3) w join tumble(t, 2) v on {}"
    text = f"v: stream = select count(*) as n from ({inner}) d group by e;"
    assert check(text.format("w.window_end = v.window_end")).views
    assert codes(text.format("w.window_start = v.window_start")) == ["cql-not-monotonic"]


def test_fields_of_records_are_read_by_their_path() -> None:
    inputs = "s: {ts: int; p: {user: {id: int; name: string?}?; n: int}} stream by ts;"
    (view,) = check(
        "v: relation = select p.n, s.p.user.id, p.user.name from s where p.user.id = 3;", inputs
    ).views
    assert [spelled(kind) for _, kind in view.row.fields] == ["int", "int?", "string?"]
    assert codes("v: relation = select p.nope as a from s;", inputs) == ["lang-unknown-field"]


HIDDEN = """
h: {ts: int; a: int; k: string} stream by ts hidden;
t: {ts: int; b: int; k: string} stream by ts;
"""


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("select * from h", ["a", "k"]),
        ("select h.*, ts + 1 as c from h", ["a", "k", "c"]),
        ("select * from h[range 3] as x join t[range 3] as y using (k)", ["a", "k", "ts", "b"]),
        ("select * from tumble(h, 3)", ["a", "k", "window_start", "window_end"]),
        ("select d.* from (select * from h) d", ["a", "k"]),
        ("select ts from h", ["ts"]),
        ("select * from g", ["a"]),
    ],
)
def test_a_hidden_time_stamp_is_not_among_all_columns(query: str, columns: list[str]) -> None:
    text = f"g: stream by at hidden = select a from h; v: relation = {query};"
    view = next(view for view in check(text, HIDDEN).views if view.name == "v")
    assert [name for name, _ in view.row.fields] == columns


def test_a_stream_of_hidden_time_stamps_has_no_columns() -> None:
    assert codes("v: relation = select * from h;", "h: {ts: int} stream by ts hidden;") == ["cql-needs-type"]


@pytest.mark.parametrize(
    ("grouped", "after_from"),
    [
        (
            """select tumble_start(ts, interval '10' second) as b, k, count(*) as n from s
               group by tumble(ts, interval '10' second), k""",
            "select window_start as b, k, count(*) as n from tumble(s, ts, 10 seconds) group by window_start, window_end, k",
        ),
        (
            """select HOP_END(s.ts, interval '2' second, interval '6' second) as e, max(a) as m from s where a > 1
               group by HOP(s.ts, interval '2' second, interval '6' second) having count(*) > 1""",
            """select window_end as e, max(a) as m from hop(s, ts, 2, 6) where a > 1
               group by window_start, window_end having count(*) > 1""",
        ),
        (
            """select k, session_end(ts, interval '5' second) as e, count(*) as n from s
               group by s.k, session(ts, interval '5' second)""",
            "select k, window_end as e, count(*) as n from session(s partition by k, ts, 5) group by window_start, window_end, k",
        ),
    ],
)
def test_windows_that_are_grouped_by_are_windows_as_tables(grouped: str, after_from: str) -> None:
    assert check(f"v: relation = {grouped};").views == check(f"v: relation = {after_from};").views


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) as n from s, t group by tumble(ts, interval '5' second)",
        "select count(*) as n from s[range 3] group by tumble(ts, interval '5' second)",
        "select count(*) as n from s group by tumble(ts)",
        "select count(*) as n from s group by a + 1, session(ts, interval '5' second)",
        "select count(*) as n from s group by tumble(ts, interval '5' second), hop(ts, interval '1' second, interval '5' second)",
    ],
)
def test_windows_that_cannot_be_grouped_by(query: str) -> None:
    assert "cql-group-window" in codes(f"v: relation = {query};")


def test_several_groupings_are_told_apart_and_refused_where_they_cannot_stand() -> None:
    assert columns("select k, a, count(*) as n, grouping(k) as g from s group by rollup(k, a)") == {
        "k": t.Optional(t.STRING), "a": t.Optional(t.I64), "n": t.I64, "g": t.I64,
    }  # fmt: skip
    for query in (
        "select * from s group by rollup(k)",
        "select k, rank() over (order by count(*)) as n from s group by rollup(k)",
        "select count(*) as n, grouping(a) as g from s group by rollup(k)",
        "select count(*) as n from s group by cube(a, k, a + 1, a + 2, a + 3, a + 4, a + 5)",
    ):
        assert "sql-grouping" in codes(f"v: relation = {query};"), query


def test_casts_to_decimals_have_functions_of_their_own() -> None:
    wanted = {"x": t.Decimal(10, 2)}
    assert columns("select cast(a as decimal(10,2)) as x from s") == wanted
    assert columns("select (cast(a as decimal(10,2)))::numeric(10, 2) as x from s") == wanted
    assert "cql-duplicate-name" in codes("decimal_5_1: relation = select a::decimal(5,1) as x from s;")
    assert codes(
        "v: relation = select cast(b as decimal(5,1)) as x from s;", "s: {ts: int; b: bool} stream by ts;"
    ) == ["sql-cast"]


@pytest.mark.parametrize(
    ("item", "message", "hint"),
    [
        ("k > 3", "expected `string`, found `int`", "as in `'3'`"),
        ("x and true", "expected `bool`, found `float`", "a condition is a comparison, as in `x <> 0`"),
        ("not a", "`not` does not apply to `int`", "it is of a condition, as in `not (x > 3)`"),
        ("-k", "`-` does not apply to `string`", "a text is one by `cast(x as int)`"),
        ("k % 2", "`%` does not apply to `string`", "as in `cast(x as int)`"),
        ("greatest(a, k)", "`greatest` does not apply to `int`, `string`", "all operands are of one type"),
        ("interval '5' minute + a", "`+` does not apply to `duration`, `int`", "a length of time has a unit"),
        ("a + true", "`+` does not apply to `int`, `bool`", "both operands are of one type"),
        ("9223372036854775808", "9223372036854775808 is out of the range of `int`", "`float` or `decimal`"),
        ("regexp_like(k, '(')", "this is no pattern: missing `)` at position 1", "RE2's syntax"),
    ],
)
def test_what_does_not_fit_is_told_in_the_words_of_queries(item: str, message: str, hint: str) -> None:
    (found,) = refused(f"v: relation = select {item} as r from s[now];")
    assert found.message == message
    assert hint in str(found.help)
    if "regexp" in item:
        assert found.code == "sql-pattern"


@pytest.mark.parametrize("backend", ["multicore", "reference"])
@pytest.mark.parametrize(
    ("query", "place", "notes"),
    [
        ("select cast(k as int) as n from s[now]", "cast(k as int)", []),
        ("select sum(cast(k as int)) as n from s[now]", "cast(k as int)", []),
        ("select 1 as n from s[now] where substring(k, 0, -1) = ''", "substring(k, 0, -1)", []),
        (
            "select cast(k as int) + cast(k as float) as n from s[now]",
            "cast(k as int)",
            [],
        ),
        (
            "select cast(k as int) + cast('7' || k as int) as n from s[now]",
            "select cast(k as int) + cast('7' || k as int) as n from s[now]",
            ["in one of `cast(k as int)`, `cast('7' || k as int)`"],
        ),
    ],
)
def test_a_trap_in_a_function_of_the_language_stands_where_the_query_calls_it(
    backend: str, query: str, place: str, notes: list[str]
) -> None:
    program = river.compile(f"s: {{ts: int; k: string}} stream by ts; v: relation = {query};", lang="cql")
    with pytest.raises(Rejected) as found:
        program.run({"s": [{"ts": 1, "k": "a"}]}, backend=backend)
    (told,) = found.value.diagnostics
    assert told.span is not None
    assert told.span.text == place
    assert [note.message for note in told.notes[:-1]] == notes
