"""Sharing: equal streams are computed once, and nothing else is taken for equal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizers.sharing import Sharing
from river.diagnostics import InternalError
from river.il.parse import parse
from river.il.program import Instance
from river.il.templates import Library
from river.passes import apply
from river.platform import Platform
from river.source import Source
from river.testing.dag_strategies import dags
from river.testing.graph_strategies import contents, graphs
from river.testing.pass_laws import check_idempotent, check_pipeline

if TYPE_CHECKING:
    from river.il.program import Program

LIBRARY = Library.of({})
HEAD = """river 1;
type K = {t: i64, v: i64};
operator twice(x: i64) -> (y: i64) { on x(v) { emit y v *% 2; } }
operator double(a: i64) -> (b: i64) { on a(w) { emit b w *% 2; } }
operator inverse(x: i64) -> (y: i64) { on x(v) { emit y div.trunc(12, v); } }
operator add(a: i64, b: i64) -> (y: i64) { on a[pop 1](v), b[pop 1](w) { emit y v[0] +% w[0]; } }
operator sub(a: i64, b: i64) -> (y: i64) { on a[pop 1](v), b[pop 1](w) { emit y v[0] -% w[0]; } }
operator ahead(a: i64, b: i64) -> (y: i64) { on a[pop 1](v), b[peek 2, pop 1](w) { emit y v[0] -% w[1]; } }
operator sum(x: i64; $s: i64) -> (y: i64) { on x(v) { $s = $s +% v; emit y $s; } }
operator plus(x: i64; $s: i64) -> (y: i64) { on x(v) { emit y v +% $s; } }
operator set(x: i64; $s: i64) -> (y: i64) { on x(v) { $s = v; emit y v; } }
operator either(a: i64, b: i64) -> (y: i64) { on a(v) { emit y v; } on b(v) { emit y v *% 2; } }
operator copy(x: i64) -> (a: i64, b: i64) { on x(v) { emit a v; emit b v; } }
operator swap(x: i64) -> (a: i64, b: i64) { on x[pop 1](v) { emit b v[0]; emit a v[0]; } }
operator late(x: i64 = [3]) -> (a: i64, b: i64) { on x[pop 1](v) { emit a v[0]; emit b v[0]; } }
operator ordered(x: K by t) -> (a: K by t, b: K by t) { on x(v) { emit a v; emit b v; } }
operator loose(x: K by t) -> (y: i64) { on x(v) { emit y v.v; } }
operator tagged(x: i64) -> (y: K by t) { on x(v) { emit y {t: v, v: v}; } }
operator plain(x: K) -> (y: i64) { on x(v) { emit y v.v; } }
operator back(x: i64, l: i64 = [1]) -> (y: i64) { phase 1 on x(v) { emit y v; } phase 1 on l(v) { emit y v +% 1; } }
operator turn(x: i64) -> (o: i64, l: i64) { on x[pop 2](w) { emit o w[0]; emit l w[1]; } }
operator minus(x: i64) -> (y: f64) { on x(v) { emit y -0.0; } }
operator zero(x: i64) -> (y: f64) { on x(v) { emit y 0.0; } }
"""
IDENTITY = "operator id = std.identity<T = i64>; input x: i64; output p: i64; "
ID = "operator id = std.identity<T = K, by = t>; "
SPLIT = "input x: i64; output p: i64; output q: i64; (a, b) <- copy(x);"
LOOP = "input x: i64; output p: i64; (a) <- back(x, l); (b, c) <- copy(a); "
CD = "(c) <- twice(a); (d) <- twice(b); "
ONCE = SPLIT + "(p) <- twice(a); (q) <- twice(b);"


def program(text: str) -> Program:
    return parse(Source("p.river", HEAD + text))


def shared(text: str, data: list[Any], name: str = "x") -> Program:
    """The program after sharing, which computes the same from the data."""
    before = program(text)
    check_idempotent(before, Sharing(), Platform(2), LIBRARY)
    return check_pipeline(before, (Sharing(),), Platform(2), LIBRARY, {name: data})


def uses(after: Program) -> list[str]:
    """The operators, standard ones by their template."""
    templates = {d.name: d.template for d in after.decls if isinstance(d, Instance)}
    return sorted(templates.get(use.operator, use.operator) for use in after.uses)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (ONCE, ["std.duplicate", "twice"]),
        (SPLIT + "(p) <- twice(a); (q) <- double(b);", ["std.duplicate", "twice"]),
        (SPLIT + CD + "(p) <- inverse(c); (q) <- inverse(d);", ["inverse", "std.duplicate", "twice"]),
        (SPLIT + CD + "(p) <- twice(c); (q) <- inverse(d);", ["inverse", "std.duplicate", "twice", "twice"]),
        (SPLIT + "(c, d) <- swap(b); (q) <- add(a, c); (p) <- twice(d);", ["add_1", "std.duplicate", "twice"]),
        ("input x: i64; output p: i64; (a, b) <- copy(x); (p) <- add(a, b);", ["add_1"]),
        ("input x: i64; output p: i64; output q: i64; output r: i64; (a, p) <- copy(x); (q, r) <- copy(a);", ["std.duplicate"]),
        (IDENTITY + "(a) <- id(x); (p) <- twice(a);", ["twice"]),
        (IDENTITY + "(a) <- id(x); (p) <- id(a);", ["std.duplicate"]),
        (IDENTITY + "(p) <- id(x);", ["std.identity"]),
        ("var $s: i64 = 2; var $t: i64 = 2;" + SPLIT + "(p) <- plus(a, $s); (q) <- plus(b, $t);", ["plus", "std.duplicate"]),
    ],
)  # fmt: skip
def test_equal_streams_are_computed_once(text: str, found: list[str]) -> None:
    assert uses(shared(text, [1, -2, 12, 5])) == found


def test_a_trap_stays() -> None:
    assert uses(shared(SPLIT + "(p) <- inverse(a); (q) <- inverse(b);", [1, 0, 2])) == [
        "inverse",
        "std.duplicate",
    ]


REFUSED: dict[str, tuple[str, str]] = {
    "results": (
        "var $s: i64 = 0; var $t: i64 = 0;" + SPLIT + "(p, $s) <- sum(a, $s); (q, $t) <- sum(b, $t);",
        "`$s` and `$t` are both results",
    ),
    "one variable": (
        "var $s: i64 = 0;" + SPLIT + "(p, $s) <- sum(a, $s); (q, $s) <- sum(b, $s);",
        "both write `$s`",
    ),
    "other beginnings": (
        "var $s: i64 = 0; var $t: i64 = 1;" + SPLIT + "(p) <- plus(a, $s); (q) <- plus(b, $t);",
        "`$s` and `$t` begin with different values",
    ),
    "written elsewhere": (
        "var $s: i64 = 0; var $t: i64 = 0; input y: i64; output r: i64; (r, $t) <- set(y, $t);"
        + SPLIT
        + "(p) <- plus(a, $s); (q) <- plus(b, $t);",
        "`$s` or `$t` is written",
    ),
    "read and written": (
        "var $s: i64 = 0; input y: i64; output r: i64; (r, $s) <- set(y, $s);"
        + SPLIT
        + "(p) <- plus(a, $s); (q) <- plus(b, $s);",
        "`$s` is written by another operator",
    ),
    "annotations": (SPLIT + "@Group(1) (p) <- twice(a); @Group(2) (q) <- twice(b);", "their annotations differ"),
    "regions": (
        SPLIT + "@Region(1, replica) (p) <- twice(a); @Region(1, replica) (q) <- twice(b);",
        "they are parts of parallel regions",
    ),
    "as they come": (
        SPLIT + "(c, d) <- copy(a); (e, f) <- copy(b); (p) <- either(c, d); (q) <- either(e, f);",
        "they take the items of their inputs as they come",
    ),
    "extern": (
        'operator f(x: i64) -> (y: i64) = extern python "m:f"; ' + SPLIT + "(p) <- f(a); (q) <- f(b);",
        "what an extern does is not known",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_differ_stays_two(name: str) -> None:
    text, reason = REFUSED[name]
    applied = apply(program(text), (Sharing(),), Platform(2), LIBRARY)
    assert any(remark.message.endswith(f"stay two: {reason}") for remark in applied.remarks), applied.remarks
    operators = [use.operator for use in applied.program.uses]
    assert any(operators.count(operator) > 1 for operator in ("twice", "sum", "plus", "either", "f"))


def test_externs_of_one_function_are_not_alike_if_they_are_declared_otherwise() -> None:
    texts = (
        f'operator {f}(x: i64) -> (y: {of}) = extern python "m:f"; '
        for f, of in (("f", "i64"), ("g", "string"))
    )
    text = "".join(texts) + SPLIT.replace("q: i64", "q: string") + "(p) <- f(a); (q) <- g(b);"
    assert not apply(program(text), (Sharing(),), Platform(2), LIBRARY).remarks


def test_many_readers_are_fed_by_a_tree() -> None:
    ends = [f"q{i}" for i in range(33)]
    outs = "".join(f"output {end}: i64; " for end in ends)
    text = (
        f"input x: i64; {outs} operator all = std.duplicate<T = i64, n = 33>; ({', '.join(ends)}) <- all(x);"
    )
    once = apply(program(text), (Sharing(),), Platform(2), LIBRARY)
    assert not once.remarks
    assert sorted(len(use.outs) for use in once.program.uses) == [3, 16, 16]
    assert {out for use in once.program.uses for out in use.outs} >= set(ends)
    assert apply(once.program, (Sharing(),), Platform(2), LIBRARY).program == once.program


@pytest.mark.parametrize(
    "text",
    [
        SPLIT.replace("copy", "late") + "(p) <- twice(a); (q) <- twice(b);",  # equal, but not to the input
        SPLIT.replace("q: i64", "q: f64") + "output r: f64; (c, p) <- copy(b); (q) <- minus(a); (r) <- zero(c);",
        SPLIT + "(c, d) <- copy(b); (p) <- ahead(a, c); (q) <- twice(d);",
        SPLIT + "(c, d) <- copy(a); (e, f) <- copy(b); (g) <- twice(d); (h) <- twice(f); (p) <- sub(c, g); (q) <- sub(h, e);",
        LOOP + "(d) <- twice(b); (e) <- twice(c); (f) <- add(d, e); (p, l) <- turn(f);",
    ],
)  # fmt: skip
def test_what_looks_alike_is_not_mixed_up(text: str) -> None:
    shared(text, [1, -2, 5])


ORDERED = "input x: K by t; output p: i64; (a, b) <- ordered(x);"


@pytest.mark.parametrize("data", [[(1, 5), (2, 6)], [(2, 5), (1, 6)]])
@pytest.mark.parametrize(
    "text",
    [
        ORDERED + "output q: i64; (p) <- loose(a); (q) <- loose(b);",
        ORDERED + "output q: i64; (p) <- plain(a); (q) <- plain(b);",
        ID + "input x: K by t; output p: i64; (a) <- id(x); (p) <- plain(a);",
        ID + "input x: K by t; output p: i64; (a) <- id(x); (p) <- loose(a);",
    ],
)  # fmt: skip
def test_order_is_checked_as_before(text: str, data: list[Any]) -> None:
    shared(text, data)


def test_order_is_checked_before_an_output() -> None:
    text = ID + "input x: i64; output p: K by t; (a) <- tagged(x); (p) <- id(a);"
    for data in ([1, 2], [2, 1]):
        shared(text, data)


TWO = (
    "operator first(x: i64) -> (a: i64, b: i64) { on x[pop 2](v) { emit a v[0]; emit b v[0]; } }"
    " operator other(x: i64) -> (a: i64, b: i64) { on x(v) { emit a v; emit b v *% 3; } }"
    " input x: i64; output p: i64; output q: i64; "
)
BACK = [(2, 5), (1, 6)]


@pytest.mark.parametrize(
    ("condition", "instead", "text", "data"),
    [
        ("optimizers.numbers.obstacle", None, REFUSED["other beginnings"][0], [1]),
        ("optimizers.numbers.obstacle", None, REFUSED["results"][0], [1]),
        ("optimizers.numbers._one_by_one", True, TWO + "(a, b) <- first(x); (p) <- twice(a); (q) <- twice(b);", [1, 2]),
        ("optimizers.numbers._is_item", True, TWO + "(a, b) <- other(x); (p) <- twice(a); (q) <- twice(b);", [1, 2]),
        ("optimizers.sharing._needed", False, ID + "input x: K by t; output p: i64; (a) <- id(x); (p) <- plain(a);", BACK),
    ],
)  # fmt: skip
def test_without_the_condition_the_laws_are_broken(
    condition: str, instead: Any, text: str, data: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_pipeline(program(text), (Sharing(),), Platform(2), LIBRARY, {"x": data})
    monkeypatch.setattr(condition, lambda *_args: instead)
    with pytest.raises((AssertionError, InternalError)):
        check_pipeline(program(text), (Sharing(),), Platform(2), LIBRARY, {"x": data})


@pytest.mark.slow
@settings(max_examples=15)
@given(dags(6), st.lists(st.integers(-9, 9), max_size=7))
def test_random_graphs_keep_their_outcome(text: str, items: list[int]) -> None:
    before = parse(Source("p.river", text))
    check_pipeline(before, (Sharing(),), Platform(2), LIBRARY, {"x": items}, limit=200)
    check_idempotent(before, Sharing(), Platform(2), LIBRARY)


@settings(max_examples=5)
@given(graphs(4), contents(3))
def test_graphs_with_loops_and_keys_keep_their_outcome(text: str, items: dict[str, list[Any]]) -> None:
    data = {name: values for name, values in items.items() if f"input {name}:" in text}
    check_pipeline(parse(Source("p.river", text)), (Sharing(),), Platform(2), LIBRARY, data, limit=100)
