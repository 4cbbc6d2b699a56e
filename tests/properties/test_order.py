"""An operator of which the model says that it does not read order answers a delta the same, however its rows stand.

Bodies are random: lists made of the rows in all ways, what may be asked of these, and loops over them that leave something
behind. The rows of a delta that is sent have no order; items of another output come in theirs.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from river.il.model import model
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import scope
from river.lang import check, typed
from river.lang import syntax as s
from river.lang.evaluate import compile_operator
from river.source import Source

HEAD = """river 1;
type R = {k: string, n: i64, x: f64};
type D = {tau: i64, ins: list<R>, del: list<R>};
type O = {k: string, m: i64};
type DO = {tau: i64, ins: list<O>, del: list<O>};
"""
OPERATOR = """operator f(d: D by tau) -> (o: DO by tau, p: O) {
  fn last(ref n: i64, r: R) { n = r.n; }
  fn more(ref n: i64, r: R) { n = n +% r.n; }
  fn some(rows: list<R>) -> i64 { for r in rows { if r.n > 1 { return r.n; } } return 0; }
  on d(x) {
    var n = 0; var c: map<string, i64> = {}; var sent: list<O> = []; var b: bag<i64> = {};
    BODY
    emit o {tau: x.tau, ins: sent, del: [{k: k, m: v} for k, v in c]};
    emit p {k: "", m: n};
    emit p {k: "", m: ASKED};
  } }
"""
ROWS = st.deferred(lambda: st.sampled_from(["x.ins", "x.del"]) | MADE)
MADE = st.one_of(
    st.builds("concat({}, {})".format, ROWS, ROWS),
    st.builds("bag_minus({}, {})".format, ROWS, ROWS),
    st.builds("[y for y in {} if y.n > 1]".format, ROWS),
    st.builds("reverse({})".format, ROWS),
    st.builds("sort({})".format, ROWS),
    st.builds("sort_by({}, fn(y) => y.k)".format, ROWS),
    st.builds("take({}, 1)".format, ROWS),
)
ASKED = st.one_of(
    st.sampled_from(["n", "0", "x.tau", "len(c)", 'get(c, "a", 0)', "len(sent)", "count(b, 1)", "len(b)"]),
    st.builds("len({})".format, ROWS),
    st.builds("sum(map({}, fn(z) => z.n))".format, ROWS),
    st.builds("i64.wrap(hash64({}))".format, ROWS),
    st.builds("i64.wrap(hash64(sort([z.n for z in {}])))".format, ROWS),
    st.builds("i64.wrap(hash64(sort([string(z.x) for z in {}])))".format, ROWS),
    st.builds("i64.wrap(hash64([string(z) for z in sort([w.x for w in {}])]))".format, ROWS),
    st.builds("fold({}, 0, fn(a, z) => a *% 3 +% z.n)".format, ROWS),
    st.builds("compare({}, {})".format, ROWS, ROWS),
    st.builds("(if {} == {} {{1}} else {{0}})".format, ROWS, ROWS),
    st.builds("(if any({}, fn(z) => z.n > 1) {{1}} else {{0}})".format, ROWS),
    st.builds("(if len({0}) > 0 {{ {0}[0].n }} else {{0}})".format, st.sampled_from(["x.ins", "x.del"])),
    st.builds("some({})".format, ROWS),
)
STEP = st.sampled_from([
    "n = n +% r.n;", "n = n +% r.n;", "n = max(n, r.n);", "n = r.n;", "last(n, r);", "more(n, r);", "n = n *% 3;",
    "push(sent, {k: r.k, m: r.n});", "push(sent, {k: r.k, m: n});", "push(sent, {k: r.k, m: len(c)});",
    "with e = c[r.k] else 0 { e = e +% r.n; }", "with e = c[r.k] else r.n { e = e +% 1; }",
    "with e = c[r.k] else 0 { e = r.n; }", "add(b, r.n);", "if r.n > 1 { break; }", "if r.n > 1 { continue; }",
    "emit p {k: r.k, m: r.n};", "var own = 0; own = r.n; push(sent, {k: r.k, m: own});",
])  # fmt: skip
LOOP = st.builds("for r in {} {{ {} }}".format, st.sampled_from(["x.ins", "x.del"]), STEP)
STATEMENT = st.one_of(
    LOOP,
    LOOP,
    LOOP,
    st.builds("for r in {} {{ {} }}".format, ROWS, st.lists(STEP, min_size=1, max_size=2).map(" ".join)),
    st.builds('push(sent, {{k: "", m: {}}});'.format, ASKED),
    st.builds("n = {};".format, ASKED),
    st.builds("if {} > 1 {{ n = 1; }}".format, ASKED),
    st.just("for y in b { n = n +% y; }"),
    st.just("for k, v in c { n = n *% 3 +% v; }"),
)
ROW = st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.sampled_from([0.0, -0.0, 1.0]))


def compiled(body: str, asked: str) -> typed.Operator:
    program = parse(Source("order.river", HEAD + OPERATOR.replace("BODY", body).replace("ASKED", asked)))
    (decl,) = (d for d in program.decls if isinstance(d, s.Operator))
    found = check.operator(decl, scope(program, Library.of({})))
    assert isinstance(found, typed.Operator)
    return found


def seen(op: typed.Operator, *rows: list[tuple[str, int, float]]) -> object:
    """What is sent for one delta: its rows as bags, and the other items in their order."""
    fire = compile_operator(op).item[0]
    assert fire is not None
    outs: tuple[list[Any], ...] = ([], [])
    fire([], (1, *map(tuple, rows)), outs)
    deltas = [(tau, sorted(map(repr, ins)), sorted(map(repr, gone))) for tau, ins, gone in outs[0]]
    return deltas, outs[1]


@pytest.mark.slow
@given(
    st.builds("{}\n    {}".format, LOOP, st.just("") | STATEMENT),
    st.just("0") | ASKED,
    st.lists(ROW, min_size=2, max_size=4),
    st.lists(ROW, max_size=3),
)
def test_who_does_not_read_order_does_not_show_it(body, asked, inserted, deleted) -> None:
    op = compiled(body, asked)
    if not model(op).order_reading:
        assert seen(op, inserted, deleted) == seen(op, inserted[::-1], deleted[::-1])


@pytest.mark.parametrize(
    "body", ["n = r.n;", "push(sent, {k: r.k, m: n}); n = n +% 1;", "emit p {k: r.k, m: r.n};"]
)
def test_who_shows_order_is_seen(body: str) -> None:
    op = compiled(f"for r in x.ins {{ {body} }}", "n")
    rows = [("a", 1, 0.0), ("b", 2, 0.0)]
    assert model(op).order_reading
    assert seen(op, rows, []) != seen(op, rows[::-1], [])
