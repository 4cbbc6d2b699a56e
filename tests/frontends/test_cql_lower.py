"""Typed queries to River IL: what the text looks like, and what small runs of it say."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from calculus.observe import Faulted, Finished
from calculus.run import run
from calculus.schedule import FirstCome
from frontends.cql import FRONTEND
from river.il import erase
from river.il.parse import parse
from river.il.pretty import pretty
from river.il.program import Instance, Program, TypeDecl, Use, Variable
from river.il.templates import Library
from river.il.verify import verify
from river.lang import syntax as s
from river.lang.types import Map
from river.lang.values import Mark
from river.source import Source

LIBRARY = Library.of({"cql": FRONTEND.templates})
FIGURE_3B = """congested: { speed: int; seg_no: int; dir: int; hwy: int } relation
  = select avg(speed), seg_no, dir, hwy from seg_speed[range 300];"""
INPUTS = """
s: {ts: int; a: int; k: string} stream by ts;
t: {ts: int; a: int; b: float?} stream by ts;
p: {at: int; k: string; n: int} relation by at;
"""


def lower(text: str, inputs: str = INPUTS) -> Program:
    return FRONTEND.lower(FRONTEND.check(FRONTEND.parse(Source("<query>", inputs + text))))


def shown(text: str, begin: str, inputs: str = INPUTS) -> str:
    """The declarations of the IL from the first that begins with `begin`."""
    il = pretty(lower(text, inputs))
    return il[il.index(f"\n{begin}") + 1 :]


def says(text: str, inputs: str = INPUTS, **data: list[Any]) -> Any:
    """What each output says; one output alone is given without its name."""
    graph = verify(lower(text, inputs), LIBRARY)
    found = {name: tuple(rows) for name, rows in data.items()}
    outcome = run(erase.erase(graph), erase.inputs(graph, found), FirstCome()).outcome
    if isinstance(outcome, Faulted):
        return outcome.info
    assert isinstance(outcome, Finished)
    outputs = {
        name: [item for item in items if not isinstance(item, Mark)] for name, items in outcome.outputs
    }
    return outputs if len(outputs) > 1 else outputs.popitem()[1]


# ---------------------------------------------------------------------------------------------------- the texts


def test_figure_3b() -> None:
    assert pretty(lower(FIGURE_3B, "")) == dedent("""\
        river 1;

        type delta<R> = {tau: i64, ins: list<R>, del: list<R>};
        type SegSpeed = {ts: i64, speed: i64, seg_no: i64, dir: i64, hwy: i64};
        type SegSpeedRead = {speed: i64, seg_no: i64, dir: i64, hwy: i64};
        type Congested = {speed: i64, seg_no: i64, dir: i64, hwy: i64};
        type CongestedAcc = {n: i64, sum_speed: i128};
        type CongestedKey = {seg_no: i64, dir: i64, hwy: i64};
        type CongestedTold = {speed: i64};

        input seg_speed: SegSpeed by ts;
        var $seg_speed_now: i64? = none;
        var $seg_speed_ins: list<SegSpeedRead> = [];
        var $congested_window_seg_speed: deque<{t: i64, r: SegSpeedRead}> = [];
        var $congested_groups: map<CongestedKey, {acc: CongestedAcc, seen: i64?, was: CongestedTold?}> = {};

        operator seg_speed_in(x: SegSpeed by ts; $now: i64?, $ins: list<SegSpeedRead>) -> (
          out: delta<SegSpeedRead> by tau
        ) {
          on x(r) {
            if $now is now {
              if now < r.ts {
                emit out {tau: now, ins: $ins, del: []};
                $ins = [];
                $now = none;
              }
            }
            $now = r.ts;
            push($ins, {speed: r.speed, seg_no: r.seg_no, dir: r.dir, hwy: r.hwy});
          }
          on mark(k) {
            if $now is now {
              if now < k or k == 9223372036854775807 {
                emit out {tau: now, ins: $ins, del: []};
                $ins = [];
                $now = none;
              }
            }
            mark out k;
          }
        }

        operator range_congested_seg_speed = cql.range<
          R = SegSpeedRead,
          Tau = i64,
          Span = i64,
          span = 300,
          granule = 1,
          last = 9223372036854775506,
          end = 9223372036854775807
        >;
        operator group_congested = cql.group<
          R = SegSpeedRead,
          O = Congested,
          Tau = i64,
          K = CongestedKey,
          V = CongestedTold,
          Acc = CongestedAcc,
          key = fn(r) => {seg_no: r.seg_no, dir: r.dir, hwy: r.hwy},
          Sums = {sum_speed: i64 = fn(r) => r.speed},
          FSums = {},
          Orders = {},
          Options = {},
          Firsts = {},
          Lasts = {},
          Decimals = {},
          Distinct = {},
          FDistinct = {},
          DDistinct = {},
          Ranks = {},
          Discs = {},
          Modes = {},
          Folds = {},
          Folded = {},
          keep = fn(k, a) => true,
          value = fn(k, a) => {speed: i64(f64(a.sum_speed) / f64(a.n))},
          row = fn(k, v) => {speed: v.speed, seg_no: k.seg_no, dir: k.dir, hwy: k.hwy},
          quiet = true,
          once = false
        >;

        (seg_speed_deltas, $seg_speed_now, $seg_speed_ins) <- seg_speed_in(seg_speed, $seg_speed_now, $seg_speed_ins);
        @Apart(speed, seg_no, dir, hwy)
        (congested_range_seg_speed, $congested_window_seg_speed) <- range_congested_seg_speed(
          seg_speed_deltas,
          $congested_window_seg_speed
        );
        @Parallel()
        @Keys(seg_no, dir, hwy)
        (congested, $congested_groups) <- group_congested(congested_range_seg_speed, $congested_groups);

        output congested: delta<Congested> by tau;
        """)


TOLD = {
    "select k, count(*) as n, k as again from s[range 5] group by k": "{n: i64}",
    "select count(*) as n from s[range 5] group by k": "{n: i64}",
    "select k from s[range 5] group by k": "{k: string}",
    "select b, count(*) as n from t[range 5] group by b": "{b: f64?, n: i64}",
    "select a, b, count(*) as n from t[range 5] group by a, b": "{a: i64, b: f64?, n: i64}",
    "select a, k, sum(a) as n, a + 1 as more from s[range 5] group by a, k": "{n: i64, more: i64}",
}
"""Queries, and what is kept of the row that was told of a group last: floats may be equal and look different."""


@pytest.mark.parametrize(("query", "kept"), TOLD.items())
def test_what_follows_from_the_key_of_a_group_is_not_kept(query: str, kept: str) -> None:
    program = lower(f"v: relation = {query};")
    types = {decl.name: pretty(Program((decl,))) for decl in program.decls if isinstance(decl, TypeDecl)}
    (group,) = (one for one in program.decls if isinstance(one, Instance) and one.template == "cql.group")
    told = dict(group.args)["V"]
    assert isinstance(told, s.TypeName)
    assert types[told.name].split(" = ")[1].rstrip(";\n") == kept


def test_rows_of_groups_of_equal_keys_that_look_different() -> None:
    """What is told of a group that goes is what was told of it when it came."""
    rows = [(0, 1, 0.0), (1, 1, -0.0), (2, 1, None)]
    found = says("v: relation = select b, count(*) as n from t[range 1] group by b;", t=rows)
    assert [repr(each) for each in found[1][1:]] == [repr(((-0.0, 2),)), repr(((0.0, 1),))]


SUGAR = """v: stream = select a from s where {};"""


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a between 2 and 3", [2, 3]),
        ("a not between 2 and 3", [1, 4]),
        ("a in (1, 3, 7)", [1, 3]),
        ("a not in (1, 3)", [2, 4]),
        ("k like 'a%'", [1, 2]),
        ("k like '%b'", [2]),
        ("k like '%.%'", [3]),
        ("k like 'a_'", [2]),
        ("k like '_._'", [3]),
        ("k like 'a%b'", [2]),
        ("k not like ''", [1, 2, 3]),
        ("case a when 1 then true when 2 then false else k = '' end", [1, 4]),
        ("case when a > 3 then 0 when k like 'a%' then 1.5 else 2 end > 0.5", [1, 2, 3]),
        ("case when a < 3 then a end > 1", [2]),
    ],
)
def test_conditions_that_are_written_shorter(condition: str, expected: list[int]) -> None:
    rows = [(1, 1, "a"), (2, 2, "ab"), (3, 3, "x.y"), (4, 4, "")]
    assert [row[0] for row in says(SUGAR.format(condition), s=rows)] == expected


def test_names_from_the_select_list() -> None:
    text = "v: relation = select a / 2 as half, count(*) as n from s group by half having n > 1 and half in (0, 1);"
    rows = [(1, 0, ""), (1, 1, ""), (1, 2, ""), (2, 4, ""), (2, 5, "")]
    assert says(text, s=rows) == [(1, ((0, 2),), ())]


def test_a_range_of_no_length_is_the_present() -> None:
    text = "v: {{a: int}} stream = dstream(select a from s[{}]);"
    rows = [(1, 1, ""), (2, 2, ""), (4, 3, "")]
    assert says(text.format("range 0"), s=rows) == says(text.format("now"), s=rows)


@pytest.mark.parametrize(
    "query", ["select a, k from s where a > 3", "rstream(select a, k from s[now] where a > 3)"]
)
def test_a_filtered_stream_is_one_operator_that_keeps_nothing(query: str) -> None:
    assert shown(f"v: stream by at = {query};", "operator") == dedent("""\
        operator select_v(x: S by ts) -> (out: V by at) {
          on x(r) {
            if r.a > 3 {
              emit out {at: r.ts, a: r.a, k: r.k};
            }
          }
        }

        @Parallel() (v) <- select_v(s);

        output v: V by at;
        """)


@pytest.mark.parametrize(
    "query",
    [
        "v: stream by at = istream(select a from s[now] where a > 1);",
        "v: stream by at = select a from s where a > 1; w: stream by at = select k from s;",
        "v: stream by at = select a from s where a > 1; w: relation = select count(*) as n from v[range 5];",
    ],
)
def test_a_stream_that_more_is_made_of_is_told_as_changes(query: str) -> None:
    assert "operator s_in(" in pretty(lower(query))


def test_rows_that_come_one_by_one_are_those_of_each_instant() -> None:
    rows = [(1, 2, "b"), (1, 2, "a"), (1, 2, "b"), (2, 2, "b"), (5, 1, "b"), ((1 << 63) - 1, 3, "c")]
    text = "v: stream = select a, upper(k) as k from s where a > 1;"
    also = "w: relation = select count(*) as n from s;"
    assert says(text, s=rows) == says(text + also, s=rows)["v"]


def test_a_join_of_a_stream_with_itself_and_a_relation() -> None:
    text = """v: stream = rstream(select one.a, n from s[now] as one, s[partition by k rows 2] as last, p
                                  where one.k = last.k and one.k = p.k and one.a < last.a);"""
    assert shown(text, "(s_deltas") == dedent("""\
        (s_deltas, $s_now, $s_ins) <- s_in(s, $s_now, $s_ins);
        (s_1, s_2) <- copy_s(s_deltas);
        (p_deltas, $p_now, $p_ins, $p_del, $p_rows) <- p_in(p, $p_now, $p_ins, $p_del, $p_rows);
        @Parallel() @Keys(k) (v_rows_last, $v_window_last) <- rows_by_v_last(s_2, $v_window_last);
        @Parallel() @Keys(k) (v_joined, $v_rows) <- join_now_v(s_1, v_rows_last, $v_rows);
        @Parallel() (v_selected) <- select_v(v_joined);
        @Parallel() @Keys(k) (v_joined_1, $v_rows_1) <- join_now_v_1(v_selected, p_deltas, $v_rows_1);
        (v) <- v_out(v_joined_1);

        output v: VRow by ts;
        """)


COUNTS = "g: relation = select k, count(*) as n, avg(a) as m from s[range 9] group by k having avg(a) > 0.5;"
OUTPUT = "output g: relation = select k, count(*) as n from s[range 9] group by k;"
TRAPS = "g: relation = select k, sum(a) as n from s[range 9] group by k;"
OTHER = "g: relation = select a, k, count(*) as n from s[range 9] where a > 1 group by k, a;"
BY_NUMBER = "g: relation = select a as k, count(*) as n from s[range 9] group by a;"
TWICE = "x: relation = select k from g;"


@pytest.mark.parametrize(
    ("groups", "query", "templates"),
    [
        (COUNTS, "s[now] as l, g where l.k = g.k", "own_group_now"),
        (COUNTS, "g, s[range 0] as l where g.k = l.k and g.n > 2", "own_group_now"),
        (COUNTS, "s[now] as l, g where l.k = g.k and l.a > 1", "select group_now"),
        (BY_NUMBER, "t[now] as l, g, p where l.a = g.k and l.a = p.n", "group_now join_now"),
        (OTHER, "s[now] as l, g where l.a = g.a and l.k = g.k", "group_now"),
        (OTHER, "s[now] as l, g where l.k = g.k", "range select group join_now"),
        (OUTPUT, "s[now] as l, g where l.k = g.k", "range group join_now"),
        (TRAPS, "s[now] as l, g where l.k = g.k", "range group join_now"),
        (COUNTS + TWICE, "s[now] as l, g where l.k = g.k", "range group select join_now net"),
        (COUNTS, "s[range 1] as l, g where l.k = g.k", "range group range join_lasting rstream"),
        (
            BY_NUMBER,
            "s[now] as l, g, t[now] as t where l.a = g.k and t.a = l.a",
            "range group range join_lasting range join_lasting rstream",
        ),
    ],
)
def test_joins_with_the_present_keep_nothing_of_it(groups: str, query: str, templates: str) -> None:
    program = lower(f"{groups} v: stream = rstream(select g.k, g.n from {query});", INPUTS)
    found = [use.operator for use in program.decls if isinstance(use, Use)]
    instances = {d.name: d.template for d in program.decls if isinstance(d, Instance)}
    chosen = [instances[name].removeprefix("cql.") for name in found if name in instances]
    assert sorted(name for name in chosen if name != "std.duplicate") == sorted(templates.split())


@pytest.mark.parametrize(
    ("query", "template", "state"),
    [
        ("s[range 3], t[range 5]", "join_lasting", "deque deque"),
        ("s[range 3], t", "join_lasting", "deque bag"),
        ("s[range 3], t[partition by a rows 1]", "join_lasting", "deque bag"),
        ("s[range 3], t[rows 4]", "join", "bag bag"),
        ("s[range 3], p", "join", "bag bag"),
        ("s[range 3], g", "join_lasting", "deque bag"),
        ("s[range 3], h", "join", "bag bag"),
    ],
)
def test_joins_keep_rows_in_the_order_in_which_they_go(query: str, template: str, state: str) -> None:
    views = "g: relation = select a, count(*) as n from t[rows 4] group by a; h: relation = select a from t[rows 4];"
    name = query.split(", ")[1][0]
    key = f"{name}.{'n' if name == 'p' else 'a'}"
    program = lower(f"{views} v: relation = select s.k from {query} where s.a = {key};", INPUTS)
    (found,) = (d for d in program.decls if isinstance(d, Instance) and d.template.startswith("cql.join"))
    assert found.template == f"cql.{template}"
    maps = [d.type for d in program.decls if isinstance(d, Variable) and d.name in ("v_left", "v_right")]
    kept = [
        kind.name
        for map_ in maps
        if isinstance(map_, s.TypeName)
        for kind in map_.args[1:]
        if isinstance(kind, s.TypeName)
    ]
    assert kept == state.split()


def test_present_rows_meet_the_relation_of_their_instant() -> None:
    text = (
        COUNTS + "v: stream by at = rstream(select l.k, n, m from s[now] as l, g where l.k = g.k and n > 1);"
    )
    rows = [(1, 1, "x"), (1, 2, "x"), (5, 3, "y"), (10, 0, "x"), (11, 1, "x"), (30, 1, "x")]
    assert says(text, s=rows) == [(1, "x", 2, 1.5), (1, "x", 2, 1.5), (10, "x", 3, 1.0)]


def test_the_last_row_of_a_key_says_only_what_changes() -> None:
    text = "v: {k: string} stream = {}(select k from s[partition by a rows 1]);"
    rows = [(1, 1, "x"), (2, 1, "x"), (3, 1, "y"), (4, 1, "z"), (4, 1, "y"), (5, 1, "x"), (5, 1, "z")]
    assert says(text.replace("{}", "istream"), s=rows) == [(1, "x"), (3, "y"), (5, "z")]
    assert says(text.replace("{}", "dstream"), s=rows) == [(3, "x"), (5, "y")]


@pytest.mark.parametrize(
    ("query", "templates"),
    [
        ("select k, n from p order by n desc limit 2", "top"),
        ("select distinct k, n from p", "distinct"),
        ("select k from p except select k from p where k > 'a'", "combine select"),
        ("select distinct n as k, k as n from p", "distinct select"),
        ("select n from p", "net select"),
    ],
)
def test_rows_that_stay_as_they_are_are_not_selected(query: str, templates: str) -> None:
    program = lower(f"q: relation = {query};")
    chosen = {d.template.removeprefix("cql.") for d in program.decls if isinstance(d, Instance)}
    assert chosen - {"std.duplicate"} == set(templates.split())


def test_columns_that_no_query_reads_do_not_enter() -> None:
    assert "type SRead = {a: i64};" in pretty(lower("v: relation = select sum(a) as n from s[range 3];"))
    text = "v: relation = select count(*) as n from s[partition by k rows 2]; w: relation = select distinct a from s;"
    assert "SRead" in pretty(lower("v: relation = select count(*) as n from s[partition by k rows 2];"))
    assert "type SRead = {a: i64, k: string};" in pretty(lower(text))
    assert "SRead" not in pretty(lower("v: relation = select * from s[now] where a > 1;"))


TEXTS = (
    FIGURE_3B,
    "v: relation = select count(*), avg(b), min(b), count(distinct a) from t[range 2 minutes] where b is not null;",
    "v: relation = select distinct s.k, sum(b) + 1 as m from s, t where s.a = t.a group by s.k having max(b) > 2;",
    "x: relation = select k, n + 1 as m from p; y: stream = dstream(select * from x, s[rows 3] where s.k = x.k);",
    "x: stream by at = select a from s; output y: relation = select * from x[now]; z: relation = select y.at from y, x;",
)


@pytest.mark.parametrize("text", TEXTS)
def test_programs_print_and_verify(text: str) -> None:
    inputs = "" if text == FIGURE_3B else INPUTS
    program = lower(text, inputs)
    assert parse(Source("<il>", pretty(program))) == program
    graph = verify(program, LIBRARY)
    assert graph.deterministic


@pytest.mark.parametrize("text", TEXTS)
def test_every_use_points_at_the_query(text: str) -> None:
    inputs = "" if text == FIGURE_3B else INPUTS
    uses = [decl for decl in lower(text, inputs).decls if isinstance(decl, Use)]
    assert all(use.span is not None and use.span.source.name == "<query>" for use in uses)


def test_time_stamps_of_type_time() -> None:
    text = "v: relation = select a from u[range 2 minutes];"
    il = shown(text, "operator range_v", "u: {at: time; a: int} stream by at;")
    assert "Tau = time,\n  Span = duration,\n  span = duration(120000000),\n  granule = duration(1),\n" in il
    assert "last = time(9223372036734775806),\n  end = time(9223372036854775807)\n" in il
    second = 1_000_000
    said = says(text, "u: {at: time; a: int} stream by at;", u=[(0, 1), (200 * second, 2)])
    assert said == [(0, ((1,),), ()), (120 * second + 1, (), ((1,),)), (200 * second, ((2,),), ())]


# ---------------------------------------------------------------------------------------------------- small runs


def test_a_window_speaks_when_it_lets_go() -> None:
    said = says("v: relation = select a from s[range 2];", s=[(1, 7, ""), (9, 8, "")])
    assert said == [(1, ((7,),), ()), (4, (), ((7,),)), (9, ((8,),), ())]


def test_time_stops_after_the_last_row() -> None:
    assert says("v: relation = select a from s[now];", s=[(1, 7, ""), (1, 8, "")]) == [(1, ((7,), (8,)), ())]


def test_a_row_that_goes_when_its_like_comes_is_not_told() -> None:
    said = says("v: relation = select a from s[now];", s=[(1, 7, "x"), (2, 7, "y"), (3, 8, "z")])
    assert said == [(1, ((7,),), ()), (3, ((8,),), ((7,),))]
    assert says("v: stream = istream(select a from s[now]);", s=[(1, 7, "x"), (2, 7, "y")]) == [(1, 7)]
    assert says("v: stream = rstream(select a from s[now]);", s=[(1, 7, "x"), (2, 7, "y")]) == [
        (1, 7),
        (2, 7),
    ]


def test_a_distinct_row_goes_with_its_last_copy() -> None:
    said = says("v: relation = select distinct a from s[range 2];", s=[(1, 7, ""), (2, 7, ""), (9, 8, "")])
    assert said == [(1, ((7,),), ()), (5, (), ((7,),)), (9, ((8,),), ())]


def test_a_group_that_does_not_change_says_nothing() -> None:
    said = says(
        "v: relation = select k, max(a) from s[unbounded] group by k;",
        s=[(1, 7, "x"), (2, 5, "x"), (3, 9, "x")],
    )
    assert said == [(1, (("x", 7),), ()), (3, (("x", 9),), (("x", 7),))]


def test_extremes_survive_the_deletion_of_the_extreme() -> None:
    said = says(
        "v: relation = select k, min(a) from s[rows 2] group by k;",
        s=[(1, 7, "x"), (2, 5, "x"), (3, 9, "x"), (4, 8, "x")],
    )
    assert said == [(1, (("x", 7),), ()), (2, (("x", 5),), (("x", 7),)), (4, (("x", 8),), (("x", 5),))]


def test_extremes_of_what_may_be_none() -> None:
    text = "v: relation = select a, min(b), max(b) from t[rows 2] group by a;"
    said = says(text, t=[(1, 0, None), (2, 0, 2.5), (3, 0, 1.5), (4, 0, None)])
    assert [row for _, (row,), _ in said] == [(0, None, None), (0, 2.5, 2.5), (0, 1.5, 2.5), (0, 1.5, 1.5)]


def test_sums_of_floats_do_not_drift() -> None:
    rows = [(1, 0, 1e16), (2, 0, 1.0), (9, 0, 0.5), (10, 1, None)]
    said = says("v: relation = select sum(b), count(b) from t[range 7];", t=rows)
    assert [row for _, (row,), _ in said] == [(1e16, 1), (1e16 + 1, 2), (1.5, 2), (0.5, 1)]


def test_more_rows_in_an_instant_than_a_window_holds() -> None:
    said = says(
        "v: relation = select k, sum(a) from s[rows 1] group by k;", s=[(1, 1, "x"), (1, 2, "y"), (1, 3, "z")]
    )
    assert said == [(1, (("z", 3),), ())]


def test_without_groups_there_is_a_row_from_the_first_instant() -> None:
    said = says(
        "v: relation = select count(*), sum(a) from s[range 1] where a > 5;",
        s=[(1, 3, ""), (4, 6, ""), (9, 1, "")],
    )
    assert said == [(1, ((0, None),), ()), (4, ((1, 6),), ((0, None),)), (6, ((0, None),), ((1, 6),))]


def test_rstream_speaks_at_every_instant_of_its_sources() -> None:
    text = "x: relation = select a from s[range 2] where a > 5; v: stream = rstream(select * from x);"
    assert says(text, s=[(1, 6, ""), (2, 1, ""), (8, 7, "")]) == [(1, 6), (2, 6), (8, 7)]


def test_a_relation_is_read_from_its_changes() -> None:
    text = "v: relation = select k, sum(n) from p group by k;"
    log = [(1, "+", "x", 3), (1, "+", "x", 4), (2, "-", "x", 3), (3, "-", "x", 4)]
    assert says(text, p=log) == [(1, (("x", 7),), ()), (2, (("x", 4),), (("x", 7),)), (3, (), (("x", 4),))]


@pytest.mark.parametrize(
    ("change", "code"), [((1, "-", "x", 3), "remove-missing"), ((1, "*", "x", 3), "assert")]
)
def test_a_wrong_change_is_a_trap_at_the_input(change: Any, code: str) -> None:
    name, _, found, item = says("v: relation = select k from p;", p=[change])
    assert (name, found, item) == ("p_in#0", code, change)


def test_a_sum_traps_where_its_value_does_not_fit() -> None:
    large = (1 << 63) - 1
    rows = [(1, large, "x"), (1, 1, "x"), (1, -1, "x")]
    assert says("v: relation = select k, sum(a) from s group by k;", s=rows) == [(1, (("x", large),), ())]
    assert says("v: relation = select k, sum(a) from s group by k;", s=rows[:2])[2] == "overflow"


@pytest.mark.parametrize(
    "query",
    [
        "select k, sum(a), max(a), count(distinct a) from s[now] group by k",
        "select distinct k from s[now]",
        "select s.k from s[now], s[range 1] as o where s.k = o.k",
    ],
)
def test_what_is_gone_is_forgotten(query: str) -> None:
    graph = verify(lower(f"v: relation = {query};"), LIBRARY)
    rows = ((1, 7, "x"), (1, 8, "y"), (9, 7, "z"))
    outcome = run(erase.erase(graph), erase.inputs(graph, {"s": rows}), FirstCome()).outcome
    assert isinstance(outcome, Finished)
    state = dict(outcome.variables)
    kept: list[Any] = [state[v.name] for v in graph.variables if isinstance(v.type, Map)]
    assert kept
    assert all(len(value) == 1 for value in kept)


def test_several_outputs_and_a_view_that_is_used_and_shown() -> None:
    text = "output x: relation = select a from s where a > 1; v: stream by at = istream(select a from x);"
    assert says(text, s=[(1, 1, ""), (2, 5, "")]) == {"x": [(2, ((5,),), ())], "v": [(2, 5)]}
