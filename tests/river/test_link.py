"""Programs of several languages as one: `tests/programs/cross_language.river` is a Sawzall map before a CQL window."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from river.backend import Options
from river.diagnostics import Rejected
from river.driver import Compiled, Job, compare, compile_source, observe, read_source
from river.il.link import Connection, link, ordered
from river.il.parse import parse
from river.il.pretty import pretty
from river.il.templates import expand_instances
from river.io.errors import OnError
from river.source import Source
from river.testing.laws import check_prints

if TYPE_CHECKING:
    from river.il.program import Program

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
CROSS = PROGRAMS / "cross_language.river"
WIRE = Connection("log", "requests", "report", "requests")


def compiled(program: Program) -> Compiled:
    return Compiled(program)


def cross_language() -> Program:
    log = compile_source(read_source(str(PROGRAMS / "requests.szl"))).program
    report = compile_source(read_source(str(PROGRAMS / "origins.cql"))).program
    log = ordered(log, {"line": "ts", "requests": "ts"})  # Sawzall has no time: its map passes it on
    return link({"log": log, "report": report}, [WIRE])


def test_the_program_is_what_the_frontends_and_the_linker_make(pytestconfig: pytest.Config) -> None:
    text = pretty(cross_language())
    if pytestconfig.getoption("--update-golden"):
        CROSS.write_text(text, "utf-8")
    assert CROSS.read_text("utf-8") == text, "if the new text is right: pytest --update-golden"


def test_what_a_template_may_not_do_is_told_where_it_is_used() -> None:
    """The user cannot change the template's text, but what is given to it."""
    source = Source("cross.river", CROSS.read_text("utf-8").replace("end = 9223372036854775807", "end = 1"))
    with pytest.raises(Rejected) as refused:
        assert compile_source(source).graph
    (found,) = refused.value.diagnostics
    assert (found.code, found.span and found.span.source) == ("il-mark-counted", source)
    assert [(note.message, note.span and note.span.source.name) for note in found.notes] == [
        ("the template", "range.river")
    ]


@pytest.fixture(scope="module")
def cross() -> Compiled:
    program = compile_source(read_source(str(CROSS)))
    assert program.graph.deterministic
    return program


lines = st.lists(
    st.tuples(
        st.integers(0, 200),
        st.sampled_from([200, 301, 404, 500]),
        st.sampled_from(["A.org", "a.org", "b.org"]),
    ),
    max_size=12,
)


def stamped(steps: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Lines whose first part is the time since the line before."""
    now, found = 0, list[tuple[int, int, str]]()
    for step, status, origin in steps:
        now += step
        found.append((now, status, origin))
    return found


@pytest.mark.slow
@settings(max_examples=25)
@given(lines, st.sampled_from([1, 3, 4096]))
def test_both_backends_and_brute_force_agree(
    cross: Compiled, steps: list[tuple[int, int, str]], batch: int
) -> None:
    rows = stamped(steps)
    data = {"line": rows}
    job = Job(data, {}, OnError.parse("stop"), options=Options(batch=batch, workers=2, bound=2))
    _, threads = compare(cross, job, ("reference", "multicore"))
    assert not threads.differences
    results = cross.run(data)
    failures = Counter(status for _, status, _ in rows if status >= 400)
    assert results["failures"].to_pylist() == [{"status": s, "count": n} for s, n in sorted(failures.items())]
    log = Counter(tuple(row.values()) for row in results["origins"].to_pylist())
    assert log == changes(rows)


def changes(rows: list[tuple[int, int, str]]) -> Counter[tuple[Any, ...]]:
    """The change log of the counts, found at every instant."""
    found: Counter[tuple[Any, ...]] = Counter()
    before: Counter[tuple[str, int]] = Counter()
    for now in range(rows[-1][0] + 1 if rows else 0):
        seen = Counter(o.lower() for ts, status, o in rows if status < 400 and now - 300 <= ts <= now)
        after = Counter(list(seen.items()))
        found.update({(now, "-", *row): 1 for row in before - after})
        found.update({(now, "+", *row): 1 for row in after - before})
        before = after
    return found


# -------------------------------------------------------------------------------------------------------------- names

STEP = """river 1;
type Row = {k: string, n: i64};
type box<T> = {inner: T};
input a: Row;
output b: Row;
output seen: {k: string, n: i64} = rows($seen, shown);
queue q: box<Row>;
var $seen: map<string, i64> = {};
var $parts.0: bag<i64> = {};
result $parts = union($parts.0);
fn twice(n: i64) -> i64 = n *% 2;
fn shown(k: string, n: i64) -> list<Row> = [{k: k, n: twice(n)}];
template <#T: type> operator same(x: #T) -> (y: #T) { on x(v) { emit y v; } }
operator pass = same<T = Row>;
operator put(x: Row; $s: map<string, i64>, $p: bag<i64>) -> (y: box<Row>) {
  fn more(r: Row) -> Row = {k: r.k, n: twice(r.n) +% 1};
  on x(v) { with n = $s[v.k] else 0 { n = n + 1; } add($p, v.n); emit y {inner: more(v)}; }
}
operator take(x: box<Row>) -> (y: Row) { on x(v) { emit y v.inner; } }
@Fuse(1) (p) <- pass(a);
@Fuse(1) (q, $seen, $parts.0) <- put(p, $seen, $parts.0);
(b) <- take(q);
"""


def step(**names: str) -> Program:
    text = STEP
    for old, new in names.items():
        text = text.replace(f"output {old}:", f"output {new}:")
    return parse(Source("step.river", text))


def seen(program: Program, items: list[Any]) -> dict[str, Any]:
    return dict(observe(compiled(program), "reference", {"a": items}, Options()))


def test_an_expanded_program_may_call_the_functions_of_its_language() -> None:
    text = "s: {ts: int; x: float; y: float} stream by ts; output o: relation = select regr_slope(y, x) as b from s;"
    whole = compile_source(Source("q.cql", text))
    again = compile_source(Source("q.river", pretty(expand_instances(whole.program, whole.templates))))
    rows = {"s": [{"ts": i, "x": 2.0 * i, "y": 3.0 * i} for i in range(3)]}
    assert again.run(rows)["o"].to_pylist() == whole.run(rows)["o"].to_pylist()


def test_a_program_linked_to_itself_runs_twice() -> None:
    first, second = step(), step(seen="seen_again")
    linked = link({"x": first, "y": second}, [Connection("x", "b", "y", "a")])
    check_prints(linked)
    items = [("u", 1), ("v", 5), ("u", -3)]
    once = seen(first, items)
    again = seen(second, list(once["b"]))
    found = seen(linked, items)
    y = {f"$y_{name[1:]}" if name.startswith("$") else name: value for name, value in again.items()}
    assert found == {**{name: once[name] for name in once if name != "b"}, **y}
    assert [use.annotations[0].args for use in linked.uses if use.annotations] != []
    fused = {str(use.annotations[0].args[0]) for use in linked.uses if use.annotations}
    assert len(fused) == 2  # what one program fuses, is not fused with the other's


def test_names_that_are_free_stay() -> None:
    other = parse(Source("o.river", "river 1;\ninput c: i64; output d: i64;\n"
                         "operator put(x: i64) -> (y: i64) { on x(v) { emit y v; } }\n(d) <- put(c);\n"))  # fmt: skip
    linked = link({"x": step(), "o": other}, [])
    assert linked.decls[: len(step().decls)] == step().decls
    assert [use.operator for use in linked.uses] == ["pass", "put", "take", "o_put"]
    assert {d.name for d in linked.inputs} == {"a", "c"}


@pytest.mark.parametrize(
    ("connections", "codes"),
    [
        ([Connection("z", "b", "y", "a")], {"il-link-unknown"}),
        ([Connection("x", "c", "y", "c")], {"il-link-unknown"}),
        ([Connection("x", "seen", "y", "a")], {"il-link-view"}),
        ([Connection("x", "b", "y", "a")] * 2, {"il-link-twice"}),
        ([], {"il-link-name"}),
    ],
)
def test_mistakes(connections: list[Connection], codes: set[str]) -> None:
    with pytest.raises(Rejected) as raised:
        link({"x": step(), "y": step()}, connections)
    found = {diagnostic.code for diagnostic in raised.value.diagnostics}
    assert codes <= found <= codes | {"il-link-name"}


def test_types_and_orders_are_compared_when_the_result_is_verified() -> None:
    text = "river 1;\ninput c: i64;\noutput d: i64;\noperator f(x: i64) -> (y: i64) { on x(v) { emit y v; } }\n(d) <- f(c);\n"
    wrong = link({"x": step(), "y": parse(Source("w.river", text))}, [Connection("x", "b", "y", "c")])
    with pytest.raises(Rejected, match="il-queue-type"):
        _ = compiled(wrong).graph
    log = compile_source(read_source(str(PROGRAMS / "requests.szl"))).program
    report = compile_source(read_source(str(PROGRAMS / "origins.cql"))).program
    with pytest.raises(Rejected, match="il-queue-key"):
        _ = compiled(link({"log": log, "report": report}, [WIRE])).graph


def test_an_order_is_stated_where_it_can_be() -> None:
    log = compile_source(read_source(str(PROGRAMS / "requests.szl"))).program
    keyed = ordered(log, {"line": "ts", "requests": "ts"})
    assert compiled(keyed).graph.queues["requests"].by == "ts"
    assert [a.name for a in keyed.uses[0].annotations] == ["Parallel"]  # no longer in any order
    assert ordered(log, {}) == log
    with pytest.raises(Rejected, match="il-mark"):  # the status is not passed on in order
        _ = compiled(ordered(log, {"line": "ts", "failures_emits": "status"})).graph
    for queues, code in (({"lines": "ts"}, "il-link-unknown"), ({"p": "n"}, "il-link-order")):
        with pytest.raises(Rejected, match=code):
            ordered(step(), queues)
