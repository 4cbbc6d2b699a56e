"""River-CQL text to syntax."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import pytest
from attrs import evolve

from frontends.cql import FRONTEND
from frontends.cql import syntax as c
from frontends.cql.parse import PARSER
from frontends.sql import syntax as q
from river.diagnostics import Rejected
from river.lang import syntax as s
from river.source import Source

FIGURE_3B = """congested: { speed: int; seg_no: int;
                  dir: int; hwy: int } relation
  = select avg(speed), seg_no, dir, hwy
    from seg_speed[range 300];
"""


def parse(text: str) -> c.Program:
    return FRONTEND.parse(Source("<query>", text))


def query(text: str) -> c.Query:
    (decl,) = parse(f"r: relation = {text};").decls
    assert decl.query is not None
    return decl.query


def select(text: str) -> q.Select:
    found = query(text).select
    assert isinstance(found, q.Select)
    return found


def where(text: str) -> s.Expr | None:
    return select(f"select a from s where {text}").where


def codes(text: str) -> list[str]:
    with pytest.raises(Rejected) as refused:
        parse(text)
    return [d.code for d in refused.value.diagnostics]


def length(number: int | str, unit: str | None = None) -> c.Length:
    return c.Length(Fraction(number), unit)


@pytest.mark.long
def test_the_grammar_has_no_two_readings() -> None:
    """Takes seconds, and depends on the grammar alone: who changes that has it proved by `tests/house/test_grammars.py`."""
    PARSER.build(strict=True)


def test_figure_3b() -> None:
    (decl,) = parse(FIGURE_3B).decls
    assert (decl.name, decl.kind, decl.by, decl.output) == ("congested", "relation", None, False)
    columns = ("speed", "seg_no", "dir", "hwy")
    assert decl.type == s.RecordType(tuple(s.FieldType(name, s.TypeName("int")) for name in columns))
    plain = tuple(q.Item(s.Name(name)) for name in columns[1:])
    items = (q.Item(s.Call("avg", (s.Name("speed"),))), *plain)
    assert decl.query == c.Query(
        q.Select(items, (c.Windowed("seg_speed", window=c.Range(c.Length(Fraction(300)))),))
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'10' seconds", length(10, "seconds")),
        ("'10 Seconds'", length(10, "Seconds")),
        ("'0.5'", length("1/2")),
        (".5 minutes", length("1/2", "minutes")),
        ("1. min", length(1, "min")),
        ("'1:30' ", length(5_400_000_000, "microseconds")),
        ("interval '.5 min 2 hrs'", length(7_230_000_000, "microseconds")),
        ("interval .5 minutes", length(30_000_000, "microseconds")),
    ],
)
def test_lengths_have_fractions_and_may_stand_in_quotes(text: str, expected: c.Length) -> None:
    (source,) = select(f"select a from s[range {text}]").sources
    assert source == c.Windowed("s", window=c.Range(expected))
    (decl,) = parse(f"tick {text}; s: {{ts: int}} stream by ts;").decls if text[0] != "i" else (None,)
    assert decl is None or decl.name == "s"


def test_all_may_be_said_and_is_still_a_name() -> None:
    assert select("select all a, b from s") == select("select a, b from s")
    assert select("select all * from s") == select("select * from s")
    assert select("select count(all a) from s") == select("select count(a) from s")
    assert select("select all from s").items == (q.Item(s.Name("all")),)
    assert select("select all as x, all * 2 from s").items[0] == q.Item(s.Name("all"), "x")
    assert select("select all * 2 from s").items == (q.Item(s.Binary("*", s.Name("all"), s.Int(2))),)


def test_mod_stands_between_its_operands_and_is_still_a_name() -> None:
    assert where("a mod 3 = 1") == where("a % 3 = 1")
    assert where("a mod(b + 1) = -7 mod -2") == where("a % (b + 1) = -7 % -2")
    assert select("select a mod, b mod from s as mod").items[1] == q.Item(s.Name("b"), "mod")


def test_keywords_are_read_in_either_case_and_names_are_not() -> None:
    upper = select(
        "SELECT DISTINCT a FROM s[RANGE 5 Minutes] AS x WHERE NOT a = 1 AND b <> 2 GROUP BY a HAVING Count(*) > 1"
    )
    lower = select(
        "select distinct a from s[range 5 Minutes] as x where not a = 1 and b != 2 group by a having Count(*) > 1"
    )
    assert upper == lower
    assert select("select A from s") != select("select a from s")


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("now", c.Now()),
        ("unbounded", c.Unbounded()),
        ("range unbounded", c.Unbounded()),
        ("range 300", c.Range(length(300))),
        ("range 5 minutes", c.Range(length(5, "minutes"))),
        ("range 0.5 MINUTES", c.Range(length("1/2", "MINUTES"))),
        ("range interval '2' hours", c.Range(length(7_200_000_000, "microseconds"))),
        ("range 5 minutes slide 1 minute", c.Range(length(5, "minutes"), length(1, "minute"))),
        ("range 5 slide 2", c.Range(length(5), length(2))),
        ("partition by car range 5", c.Range(length(5), None, (s.Name("car"),))),
        ("rows 10", c.RowWindow(10)),
        ("rows 10 slide 5", c.RowWindow(10, (), 5)),
        (
            "partition by car rows 2 expire after 1 day",
            c.RowWindow(2, (s.Name("car"),), None, length(1, "day")),
        ),
        ("session 10 seconds", c.Session(length(10, "seconds"))),
        ("partition by car session 10", c.Session(length(10), (s.Name("car"),))),
        ("partition by car, dir rows 1", c.RowWindow(1, (s.Name("car"), s.Name("dir")))),
    ],
)
def test_windows(text: str, window: c.Window) -> None:
    assert select(f"select a from s[{text}] as x").sources == (c.Windowed("s", "x", window=window),)


@pytest.mark.parametrize("word", ["istream", "dstream", "rstream"])
def test_operators_stand_before_a_query_or_around_it(word: str) -> None:
    assert query(f"{word}(select a from s)") == query(f"{word.upper()} select a from s")
    assert query(f"{word}(select a from s)").operator == word


def test_select_lists() -> None:
    items = select("select *, s.*, a + 1 as b, s.a, count(*), count(distinct a), 'it''s' from s").items
    assert items == (
        q.Star(),
        q.Star("s"),
        q.Item(s.Binary("+", s.Name("a"), s.Int(1)), "b"),
        q.Item(s.Member(s.Name("s"), "a")),
        q.Item(s.Call("count", ())),
        q.Item(s.Call("count.distinct", (s.Name("a"),))),
        q.Item(s.String("it's")),
    )


@pytest.mark.parametrize(
    ("text", "expr"),
    [
        ("a = 1", s.Binary("==", s.Name("a"), s.Int(1))),
        ("a == 1", s.Binary("==", s.Name("a"), s.Int(1))),
        ("a <> 1", s.Binary("!=", s.Name("a"), s.Int(1))),
        ("a is null", s.IsNone(s.Name("a"))),
        ("a is none", s.IsNone(s.Name("a"))),
        ("a is not null", s.Unary("not", s.IsNone(s.Name("a")))),
        ('a = "x"', s.Binary("==", s.Name("a"), q.Quoted("x"))),
        ("not a and b", s.Binary("and", s.Unary("not", s.Name("a")), s.Name("b"))),
        ("a or b and c", s.Binary("or", s.Name("a"), s.Binary("and", s.Name("b"), s.Name("c")))),
    ],
)
def test_conditions(text: str, expr: s.Expr) -> None:
    assert where(text) == expr


def test_declarations() -> None:
    stream, relation, output = parse("""
        s: {ts: time, name: char(20); x: float?} stream by ts;  -- an input
        r: {at: int; k: string} relation by at;                 // another
        output o: stream by t /* what leaves */ = istream(select x from s);
    """).decls
    text = s.TypeName("char")
    fields = (s.FieldType("ts", s.TypeName("time")), s.FieldType("name", text))
    assert stream.type == s.RecordType((*fields, s.FieldType("x", s.OptionalType(s.TypeName("float")))))
    assert (stream.kind, stream.by, stream.query) == ("stream", "ts", None)
    assert (relation.kind, relation.by) == ("relation", "at")
    assert (output.name, output.output, output.type, output.by) == ("o", True, None, "t")


def test_more_semicolons_than_are_needed() -> None:
    assert [decl.name for decl in parse(";v: select x from s;; w: select a from v;;").decls] == ["v", "w"]


def test_outputs_whose_kind_is_left_out() -> None:
    program = parse("output v: select x from s; output w(a): select x from v; u: select a from w;")
    assert [(decl.name, decl.output, decl.kind) for decl in program.decls] == [
        ("v", True, "query"), ("w", True, "query"), ("u", False, "query"),
    ]  # fmt: skip


def test_words_of_windows_and_of_declarations_are_names_elsewhere() -> None:
    program = parse(
        "range: {rows: int; now: int} stream by rows; output: relation = select now, rows from range[now];"
    )
    assert [decl.name for decl in program.decls] == ["range", "output"]
    assert not program.decls[1].output


def test_spans_cover_what_they_name() -> None:
    (decl,) = parse(FIGURE_3B).decls
    assert decl.query is not None
    assert isinstance(decl.query.select, q.Select)
    assert decl.name_span is not None
    assert decl.name_span.text == "congested"
    (source,) = decl.query.select.sources
    assert source.span is not None
    assert source.span.text == "seg_speed[range 300]"
    item = decl.query.select.items[0]
    assert item.span is not None
    assert item.span.text == "avg(speed)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("r: relation = select from s;", ["syntax-unexpected"]),
        ("r: relation = select a from s", ["syntax-end"]),
        ("r: relation = (s, t) union s;", ["syntax-query"]),
        ("r: relation = () union s;", ["syntax-query"]),
        ("r: relation = ();", ["syntax-query"]),
        ("r: relation = select let from s;", ["syntax-reserved"]),
        ("r: relation = select a from s cross join t on a = b;", ["syntax-join"]),
        ("r: relation = select sum(*), f(a).* from s;", ["syntax-star", "syntax-star"]),
        ("r: relation = select a from s limit 99999999999999999999;", ["syntax-limit"]),
        ("r: relation = select a + interval 99999999999999 weeks as b from s;", ["syntax-interval"]),
        ("r: {a: bool(3)} relation = select a from s;", ["syntax-type"]),
    ],
)
def test_mistakes(text: str, expected: list[str]) -> None:
    assert codes(text) == expected


@pytest.mark.parametrize(
    ("upper", "lower"),
    [
        ("a IS NULL", "a is null"),
        ("a IS NOT NULL AND b Is None", "a is not null and b is none"),
        ("NOT a OR TRUE = FALSE", "not a or true = false"),
        ("coalesce(a, NULL)", "coalesce(a, none)"),
    ],
)
def test_words_of_conditions_are_read_in_either_case(upper: str, lower: str) -> None:
    assert where(upper) == where(lower)


@pytest.mark.parametrize(
    ("text", "word", "help_line"),
    [
        (
            "select a from s where a > 1 orb = 2",
            "orb",
            None,
        ),
        ("selecta from s", "selecta", "did you mean `select`?"),
        ("select a from s[rows5]", "rows5", None),
        ("select a from s[now] ast2 asb where t.a > 1", "asb", None),
        ("select a from s[nowhere]", "nowhere", None),
        (
            "select a from s where a is nulls",
            "nulls",
            "expected one of `distinct`, `false`, `none`, `not`, `null`, `true`, or others",
        ),
        ("select a from s ordery by a", "ordery", "did you mean `order`?"),
    ],
)
def test_a_keyword_is_a_whole_word(text: str, word: str, help_line: str | None) -> None:
    with pytest.raises(Rejected) as found:
        query(text)
    (error,) = found.value.diagnostics
    assert (error.code, error.message) == ("syntax-unexpected", f"unexpected `{word}`")
    assert error.span is not None
    assert error.span.text == word
    if help_line is not None:
        assert error.help == help_line


TEN = c.WindowTable("tumble", (length(10, "minutes"),))
MICROS = length(600_000_000, "microseconds")


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("tumble(s, 10 minutes)", TEN),
        ("TUMBLE(s, ts, interval '10' minute)", c.WindowTable("tumble", (MICROS,), (), s.Name("ts"))),
        ("table(tumble(table s, descriptor(ts), interval '10' minutes))", c.WindowTable("tumble", (MICROS,), (), s.Name("ts"))),
        ("TABLE(TUMBLE(DATA => TABLE s, TIMECOL => DESCRIPTOR(ts), SIZE => 10 minutes))", evolve(TEN, stamp=s.Name("ts"))),
        ("hop(s, 2, 10)", c.WindowTable("hop", (length(2), length(10)))),
        ("hop(s, size => 10, slide => 2)", c.WindowTable("hop", (length(2), length(10)))),
        ("session(s, 5)", c.WindowTable("session", (length(5),))),
        ("session(s partition by k, 5)", c.WindowTable("session", (length(5),), (s.Name("k"),))),
        ("session(table s partition by (k, j), descriptor(ts), 5)",
         c.WindowTable("session", (length(5),), (s.Name("k"), s.Name("j")), s.Name("ts"))),
    ],
)  # fmt: skip
def test_windows_as_tables(text: str, window: c.WindowTable) -> None:
    assert select(f"select a from {text} as w").sources == (c.Windowed("s", "w", None, window),)
    assert select(f"select a from {text}").sources[0].label == "s"


@pytest.mark.parametrize(
    ("text", "help_line"),
    [
        ("tumbl(s, 10)", "did you mean `tumble`?"),
        ("windowed(s, 10)", "there are `tumble`, `hop`, `cumulate` and `session`"),
        ("tumble(s)", "write `tumble(s, 10 minutes)`"),
        ("hop(s, 10)", "write `hop(s, 1 minute, 10 minutes)`: a window of 10 minutes each minute"),
        ("tumble(s, 10, 3)", "write `tumble(s, 10 minutes)`"),
        ("tumble(s, size => 10, size => 3)", None),
        ("tumble(s, 'long')", None),
        ("tumble(1, 10)", None),
        ("tumble(s partition by k, 10)", None),
        ("session(view s, 10)", None),
    ],
)
def test_windows_as_tables_that_are_refused(text: str, help_line: str | None) -> None:
    with pytest.raises(Rejected) as refused:
        parse(f"r: relation = select a from {text} as w;")
    (found,) = refused.value.diagnostics
    assert found.code == "syntax-window-function"
    if help_line is not None:
        assert found.help == help_line


def test_options_stand_between_declarations() -> None:
    program = parse(
        "windows half-open; tick 1 millisecond; tick: { ts: int } stream by ts; windows: relation = select ts from tick;"
    )
    assert (program.half_open, program.tick) == (True, length(1, "millisecond"))
    assert [decl.name for decl in program.decls] == ["tick", "windows"]
    assert not parse("windows closed;").half_open
    assert codes("tick 1 second; tick 2 seconds;") == ["syntax-option"]
    assert codes("windows closed; windows half-open;") == ["syntax-option"]


def test_a_source_stands_behind_the_table_whose_data_it_names() -> None:
    table, query = "table : register stream s (a integer);", "query : select a from s;"
    assert codes(f"{table}\n{query}\nsource : a.dat\n") == ["syntax-source"]
    assert codes(f"{table}\nsource : a.dat\nsource : b.dat\n{query}") == ["syntax-source"]
    assert codes(f"source : a.dat\n{table}\n{query}") == ["syntax-source"]


@pytest.mark.parametrize(
    "text",
    [
        "select a from s foo bar",
        "select a ( from s",
        "select a from s where",
        "select ",
        "select sum(a from s",
    ],
)
def test_what_could_stand_there_is_said_in_words(text: str) -> None:
    with pytest.raises(Rejected) as refused:
        parse(f"r: relation = {text};")
    help_line = refused.value.diagnostics[0].help
    assert help_line is not None
    assert "_" not in help_line


WITHIN = "rows are chosen by `row_number() over (order by ...)`; p is a number that is written out"  # syntax-within


@pytest.mark.parametrize(
    ("text", "help_line"),
    [
        ("select sum(a) within group (order by a) from s", WITHIN),
        (
            "istream(select a from s) where a > 1",
            "it stands in the brackets: `istream(select ... where ...)`",
        ),
        ("rstream(s[range 5])", "with a window it is a query: `select * from s[...]`"),
        ("select a from s[range -5]", "what stands behind `range` is not negative"),
        (
            "select a from s;\nq stream = select a from s",
            "a declaration has a colon: `q: stream = select ...;`",
        ),
        (
            "select a from (values 1) v",
            "rows that are written out stand in parentheses: `values (1, 'a'), (2, 'b')`",
        ),
        (
            "select sum(a) over (order by a range between 3 preceding and 1 following) from s",
            "write `rows between 3 preceding and 1 following`, or `range interval '1' hour preceding`",
        ),
        (
            "select sum(a) over 3 from s",
            "what it is over stands behind it: `over (partition by a order by b)`",
        ),
        (
            "select f(select a from t) from s",
            "one value of a query stands in parentheses of its own: `f((select ...))`",
        ),
        (
            "select a from s join t",
            "write `join s on s.k = r.k`, `join s using (k)`, or `cross join s` for all pairs",
        ),
        ("select a from s cross join t on a = b", None),
        ("select a from s, t full join u on t.a = u.a", "write `cross join` instead of the comma"),
    ],
)
def test_words_that_are_not_there_come_with_what_does_instead(text: str, help_line: str) -> None:
    with pytest.raises(Rejected) as found:
        query(text)
    assert [d.help for d in found.value.diagnostics] == [help_line]


@pytest.mark.parametrize(
    ("text", "place", "help_line"),
    [
        (
            "s: {ts: int} stream by ts\nv: select ts from s;",
            (2, 1),
            "put `;` at the end of line 1: declarations end with it",
        ),
        (
            "a: select ts from s -- all\n\nb: select ts from s;",
            (3, 2),
            "put `;` at the end of line 1: declarations end with it",
        ),
        (
            "v: select ts from s\nwhere k = 'a' -- all\n",
            (2, 21),
            "put `;` at the end of line 2: declarations end with it",
        ),
        ("v: select \u2018a' as k from s;", (1, 11), "quotes are `\"` and `'`"),
        ("v:\u00a0select ts from s;", (1, 3), "a plain blank does"),
        ("v: select ts \u2013 1 as x from s;", (1, 14), "a minus is `-`"),
        ("v: select ts from s;\x1a", (1, 21), "leave it out"),
        ("v: select s.a s.b from s;", (1, 16), "is there a `,` missing in front of `s`?"),
        ("v: select a max(b) from s;", (1, 16), "is there a `,` missing in front of `max`?"),
        (
            "-- all\nstream S (a int);",
            (2, 1),
            "write `register stream s (ts int, x int);`, or `s: { ts: int; x: int } stream by ts;`",
        ),
        ("v: distinct a from s;", (1, 4), "expected one of `except`, `intersect`, `minus` or `union`"),
        (
            "s: { a: int int } stream by a;",
            (1, 13),
            "expected one of `;`, `(`, `,`, `.`, `<`, `?`, or others",
        ),
        (
            "v: select ts from s where k = 'a;\n",
            (1, 31),
            "texts end with `'` on the line they begin, and have `''` for `'`",
        ),
        (
            "s (ts int, k string) stream by ts;",
            (1, 7),
            "columns are declared by `s: { ts: int; speed: int } stream by ts;`, or `create stream s (ts int, speed int);`",
        ),
        (
            "v: (select count(*) from s) / (select count(*) from t);",
            (1, 29),
            "a value that is made of queries is selected: `select (select ...) / (select ...) as x`",
        ),
        ("v: select cuont(*) from s;", (1, 11), "did you mean `count`?"),
        (
            "v: select a from s where exists r;",
            (1, 33),
            "it asks for the rows of a query: `exists (select * from ...)`",
        ),
        ("v: select a from s where a between 1;", (1, 37), "it has two ends: `x between 1 and 2`"),
        ("v: select a from s where a between 1 or b;", (1, 38), "it has two ends: `x between 1 and 2`"),
        (
            "v: select a from s[range interval '1' fortnight];",
            (1, 39),
            "units are `microsecond`, `millisecond`, `second`, `minute`, `hour`, `day`, `week`, `month`, `quarter` and `year`",
        ),
        (
            "v: select a, case, b from s;",
            (1, 18),
            'as a name, a word of the language stands in double quotes: `"case"`',
        ),
        (
            "v: select a from s where a is 3;",
            (1, 31),
            "`is` asks for `null`, `true` or `false`; values are compared by `=`",
        ),
        ("v: select a from s, where a > 1;", (1, 13), "behind the last source stands no `,`"),
        ("v: select a from s where a => 1;", (1, 28), "greater or equal is written `>=`"),
        ("v: select a from s where a =< 1;", (1, 29), "less or equal is written `<=`"),
        ("v: select a from s join t using k;", (1, 33), "its columns stand in parentheses: `using (k)`"),
        (
            "v: select case a > 1 then 2 end from s;",
            (1, 22),
            "a condition stands behind `when`: `case when c then a else b end`",
        ),
        ("v: select a from s order a;", (1, 26), "it is written `order by x`"),
        (
            "v: select a from select a from s;",
            (1, 13),
            "a query after `from` stands in parentheses: `from (select ...) as t`",
        ),
        ("v: with a (select b from s) select * from a;", (1, 4), "write `with a as (select ...)`"),
        ("v: select a from s[rows 2.5];", (1, 26), "`rows` counts whole rows"),
        (
            "v: select a from s[range 5, slide 2];",
            (1, 27),
            "the parts of a window have no `,` between: `[range 5 slide 2]`",
        ),
        (
            "v: select a from s[range 5] [rows 2];",
            (1, 29),
            "a stream is seen through one window; a second one is of a query: `(select * from s[...]) [...]`",
        ),
        (
            "v: istream(istream(select a from s));",
            (1, 19),
            "what it is of is a relation, which a stream is none of: leave one of both out",
        ),
    ],
)
def test_typical_slips_are_told_what_to_write(text: str, place: tuple[int, int], help_line: str) -> None:
    with pytest.raises(Rejected) as caught:
        parse(text)
    (found,) = caught.value.diagnostics
    assert found.span is not None
    assert (found.span.source.position(found.span.start), found.help) == (place, help_line)


def test_names_of_columns_stand_behind_that_of_a_view() -> None:
    text = "v(x, y): select a, b from s;"
    (decl,) = parse(text).decls
    assert decl.query is not None
    assert (decl.name, decl.query.columns) == ("v", ("x", "y"))


def test_importing_the_language_is_light() -> None:
    code = "import frontends.cql, sys; print(*sorted({'lark', 'pyarrow', 'networkx', 'river.lang'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "\n"


def test_what_is_read_but_not_there() -> None:
    assert codes("r: relation = select a from s where k like k escape 'ab';") == ["syntax-like"]
