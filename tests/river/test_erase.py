"""What programs mean: each firing rule of il.md 2.5, in the calculus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from calculus.observe import Faulted, Finished
from calculus.outcomes import outcomes
from calculus.run import run
from calculus.schedule import FirstCome, Seeded
from river.diagnostics import Rejected
from river.il.erase import Waiting, erase, inputs
from river.il.loops import back_edges
from river.il.observe import Observation, observe
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang.values import END, Mark
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from river.il.graph import Graph

LIBRARY = Library.of({})
HEAD = "river 1;\ntype K = {n: i64, v: string};\n"


def graph(text: str) -> Graph:
    return verify(parse(Source("test.river", HEAD + text)), LIBRARY)


def finished(text: str, data: Mapping[str, Sequence[Any]], externs: Any = None) -> Finished:
    """The result of one run under the first-come schedule, checked to be that of others."""
    g = graph(text)
    program = erase(g, externs)
    filled = inputs(g, data)
    found = run(program, filled, FirstCome()).outcome
    assert isinstance(found, Finished), found
    for seed in range(5):
        other = run(program, filled, Seeded(seed)).outcome
        assert other is not None
        assert observe(g, other) == observe(g, found)
    return found


def sent(text: str, data: Mapping[str, Sequence[Any]], externs: Any = None) -> dict[str, tuple[Any, ...]]:
    return dict(finished(text, data, externs).outputs)


def plain(items: Sequence[Any]) -> list[Any]:
    return [item for item in items if not isinstance(item, Mark)]


def fault(text: str, data: Mapping[str, Sequence[Any]], externs: Any = None) -> Any:
    g = graph(text)
    found = run(erase(g, externs), inputs(g, data), FirstCome()).outcome
    assert isinstance(found, Faulted)
    assert observe(g, found) == found
    return found.info


def raw(text: str, queues: Mapping[str, Sequence[Any]]) -> Any:
    """The outcome of queues that have no marks but those given."""
    return run(erase(graph(text)), queues, FirstCome()).outcome


# ---------------------------------------------------------------------------------------------------------------- items

COUNT = """operator count(x: i64; $c: map<i64, i64>, $unit: i64) -> (o: i64) {
  on x(v) { with c = $c[v] else 0 { c = c + $unit; emit o c; } } }
input a: i64; output b: i64; var $c: map<i64, i64> = {}; var $one: i64 = 1;
(b, $c) <- count(a, $c, $one);
"""


def test_item_handlers_and_variables() -> None:
    found = finished(COUNT, {"a": [5, 6, 5]})
    assert dict(found.outputs) == {"b": (1, 1, 2, END)}
    assert [(name, value) for name, value in found.variables] == [("c", {5: 2, 6: 1}), ("one", 1)]
    (op,) = erase(graph(COUNT)).ops
    assert (op.reads, op.writes, op.function) == (
        ("c", "one"),
        ("c",),
        "count#0",
    )  # nothing hidden: one plain input


def test_variables_of_configurations_are_not_changed_afterwards() -> None:
    program = erase(graph(COUNT))
    function = program.functions["count#0"]
    start: tuple[Any, ...] = tuple(program.initial[name] for name in ("c", "one"))
    first = function(5, 0, start)
    second = function(5, 0, (*first.written, 1))
    written: list[Any] = [*first.written, *second.written]
    assert (start[0], *written) == ({}, {5: 1}, {5: 2})
    assert hash(first.written) != hash(second.written)


def test_a_trap_is_a_fault_of_the_place() -> None:
    text = "operator f(x: i64) -> (o: i64) { on x(v) { emit o div.trunc(10, v); } }\ninput a: i64; output b: i64;\n(b) <- f(a);"
    assert fault(text, {"a": [5, 0, 2]}) == ("f#0", 0, "division-by-zero", 0)


def test_the_stated_rate_holds() -> None:
    text = (
        "operator f(x: i64) -> (o[push 2]: i64) { on x(v) { for i in 0 .. v { emit o i; } } }\n"
        "input a: i64; output b: i64;\n(b) <- f(a);"
    )
    assert plain(sent(text, {"a": [2, 2]})["b"]) == [0, 1, 0, 1]
    assert fault(text, {"a": [2, 3]}) == ("f#0", None, "rate-violation", 3)


# ---------------------------------------------------------------------------------------------------------------- rated


def rated(operator: str, items: Sequence[Any]) -> Finished:
    return finished(f"{operator}\ninput a: i64; output b: i64;\n(b) <- f(a);", {"a": items})


def test_rated_handlers_slide_over_their_tail() -> None:
    found = rated(
        "operator f(x: i64) -> (o[push 1]: i64) { on x[peek 3, pop 2](w) { emit o w[0] + w[2]; } }", range(6)
    )
    assert dict(found.outputs)["b"] == (2, 6, END)
    ((name, waiting),) = found.variables
    assert isinstance(waiting, Waiting)
    assert (name, waiting.items) == ("f#0.waiting", ((4, 5),))  # the tail that is left is seen


def test_prework_fires_once_even_without_items() -> None:
    delay = """operator f(x: i64) -> (o: i64) {
      first on x[peek 0, pop 0](w) { emit o 0; emit o 0; }
      on x[pop 1](w) { emit o w[0]; } }"""
    assert dict(rated(delay, [7, 8]).outputs)["b"] == (0, 0, 7, 8, END)
    assert dict(rated(delay, []).outputs)["b"] == (0, 0, END)


def test_a_rated_handler_may_read_several_inputs() -> None:
    text = (
        "operator f(x: i64, y: i64 = [100]) -> (o: i64) { on x[pop 1](v), y[pop 2](w) { emit o v[0] + w[0] + w[1]; } }\n"
        "input a: i64; input c: i64; output b: i64;\n(b) <- f(a, c);"
    )
    found = finished(text, {"a": [1, 2, 3], "c": [10, 20, 30, 40]})
    assert dict(found.outputs)["b"] == (111, 52, END)
    assert fault(text.replace("v[0] +", "div.trunc(v[0], 0) +"), {"a": [1], "c": [10]}) == (
        "f#0", 1, "division-by-zero", ((1,), (100, 10)),
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------- phase


def test_splits_and_joins_in_turns() -> None:
    text = (
        "operator s = std.rr_split<T = i64, w = [2, 0, 1]>;\noperator j = std.rr_join<T = i64, w = [1, 2]>;\n"
        "operator d = std.flatten<T = i64>;\n"
        "input a: i64; input l: list<i64>; output x: i64; output y: i64; output z: i64; output j1: i64; input p: i64;\n"
        "(x, y, z) <- s(a);\n(q) <- d(l);\n(j1) <- j(p, q);"
    )
    found = sent(text, {"a": range(5), "p": [1, 2, 3], "l": [(10, 20, 30), (40,), (50,)]})
    assert (plain(found["x"]), plain(found["y"]), plain(found["z"])) == ([0, 1, 3, 4], [], [2])
    assert plain(found["j1"]) == [1, 10, 20, 2, 30, 40, 3, 50]
    assert all(items.count(END) == 1 and items[-1] == END for items in found.values())


def test_a_cycle_ends_when_the_input_it_waits_for_has_ended() -> None:
    text = "operator j = std.rr_join<T = i64, w = [1, 1]>;\ninput a: i64; input c: i64; output b: i64;\n(b) <- j(a, c);"
    program = erase(graph(text))
    done = run(
        program, {"a": [1, END], "c": [2, 3]}, FirstCome()
    ).outcome  # `c` has not ended, but waits for ever
    assert isinstance(done, Finished)
    assert dict(done.outputs)["b"] == (1, 2, END)
    more = run(program, {"a": [1, END], "c": [2, 3, END]}, FirstCome()).outcome
    assert isinstance(more, Finished)
    assert dict(more.outputs)["b"] == (1, 2, END)  # not twice


ECHO = """
operator enter(a: i64, b: i64 = [0, 0]) -> (out: i64) { phase 1 on a(v) { emit out v; } phase 1 on b(v) { emit out v; } }
operator add(x: i64) -> (y[push 1]: i64) { on x[pop 2](w) { emit y w[0] + w[1]; } }
operator two = std.duplicate<T = i64, n = 2>;
input sig: i64; output out: i64;
(q) <- enter(sig, back); (o) <- add(q); (out, back) <- two(o);
"""


def test_a_loop_runs_dry_and_ends() -> None:
    g = graph(ECHO)
    assert back_edges(g) == {"back"}
    found = outcomes(erase(g), inputs(g, {"sig": [1, 2, 3, 4]}))
    assert found.complete
    assert not found.diverges
    (only,) = found.outcomes
    assert isinstance(only, Finished)
    assert dict(only.outputs)["out"] == (1, 2, 4, 6, END)


def test_loops_inside_loops() -> None:
    text = """
    operator j = std.rr_join<T = i64, w = [1, 1]>; operator s = std.duplicate<T = i64, n = 2>;
    input a: i64; output b: i64;
    (q0) <- j(a, outer); (q1) <- j(q0, inner); (q2, inner) <- s(q1); (b, outer) <- s(q2);"""
    assert back_edges(graph(text)) == {"outer", "inner"}
    closed = "operator s = std.identity<T = i64>; (a) <- s(b); (b) <- s(a);"
    assert back_edges(graph(closed)) == {"a", "b"}


# ---------------------------------------------------------------------------------------------------------------- merge

MERGE = """operator m(x: K by n, y: K by n) -> (o: K by n) {
  on merge(x(l), y(r)) {
    var v = "";
    if l is l { v = v + l.v; }
    if r is r { v = v + r.v; }
    emit o {n: key, v: v}; } }
input a: K by n; input c: K by n; output b: K by n;
(b) <- m(a, c);
"""


LAST = (1 << 63) - 1
OVER = (
    MERGE.replace("output b: K by n;", "output over: K by n;")
    + f"""
operator last(x: K by n) -> (o: K by n) {{
  on x(r) {{ emit o r; }}
  on mark(k) {{ if k == {LAST} {{ emit o {{n: k, v: "over"}}; }} mark o k; }} }}
(over) <- last(b);
"""
)


def test_a_merge_fires_for_the_greatest_key_before_it_says_that_it_is_over() -> None:
    g, data = graph(OVER), {"a": [(LAST, "a")], "c": [(1, "p")]}
    found = outcomes(erase(g), inputs(g, data))
    assert len({observe(g, outcome) for outcome in found.outcomes}) == 1
    assert sent(OVER, data)["over"] == ((1, "p"), (LAST, "a"), (LAST, "over"), Mark(LAST), END)


def test_a_merge_fires_for_the_smallest_key_with_all_its_sides() -> None:
    data = {"a": [(1, "a"), (3, "b"), (3, "c")], "c": [(2, "p"), (3, "q"), (9, "r")]}
    assert sent(MERGE, data)["b"] == ((1, "a"), (2, "p"), (3, "bq"), (3, "c"), (9, "r"), Mark(10), END)
    g = graph(MERGE)
    found = outcomes(erase(g), inputs(g, data))
    assert (found.complete, len(found.outcomes)) == (True, 1)


def test_a_merge_waits_until_no_input_can_undercut_it() -> None:
    waiting = {"a": [(5, "a")]}
    for queue, out in (
        ([], ()),
        ([(4, "p")], ((4, "p"),)),
        ([Mark(5)], ()),  # an item with key 5 may still come, and would join
        ([Mark(6)], ((5, "a"),)),
        ([(5, "p")], ((5, "ap"),)),
        ([(7, "p")], ((5, "a"),)),
        ([END], ((5, "a"),)),
    ):
        found = raw(MERGE, {**waiting, "c": queue})
        assert isinstance(found, Finished)
        assert dict(found.outputs)["b"] == out


# ---------------------------------------------------------------------------------------------------------------- marks

FILTER = """operator f(x: K by n) -> (o: K by n, p: i64) { on x(k) { if k.v == "y" { emit o k; emit p k.n; } } }
input a: K by n; output b: K by n; output c: i64;
(b, c) <- f(a);
"""


def test_marks_pass_what_items_do_not() -> None:
    found = raw(FILTER, {"a": [(1, "y"), Mark(1), (4, "n"), Mark(5), END]})
    assert isinstance(found, Finished)
    assert dict(found.outputs) == {"b": ((1, "y"), Mark(1), Mark(5), END), "c": (1, END)}


EXPIRE = """operator f(x: K by n; $w: deque<K>) -> (o: K by n) {
  fn upto(ref w: deque<K>, k: i64) {
    while len(w) > 0 and front(w).n + 10 < k { emit o {n: front(w).n + 10, v: pop_front(w).v}; } }
  on x(v) { upto($w, v.n); push_back($w, v); }
  on mark(k) { upto($w, k); mark o k; } }
input a: K by n; output b: K by n; var $w: deque<K> = {};
(b, $w) <- f(a, $w);
"""


def test_a_mark_handler_replaces_the_forwarding_and_never_sees_the_end() -> None:
    found = raw(EXPIRE, {"a": [(1, "a"), Mark(9), Mark(12), (30, "b"), END]})
    assert isinstance(found, Finished)
    assert dict(found.outputs)["b"] == (Mark(9), (11, "a"), Mark(12), END)
    assert plain(sent(EXPIRE, {"a": [(1, "a"), (8, "b"), (19, "c")]})["b"]) == [(11, "a"), (18, "b")]


def test_the_least_mark_of_several_inputs_counts_and_at_the_end_the_greatest() -> None:
    for queues, out in (
        ({"a": [Mark(3)], "c": [Mark(5)]}, (Mark(3),)),
        ({"c": [Mark(3), Mark(4)], "a": [Mark(5), END]}, (Mark(3), Mark(4))),
        ({"a": [Mark(3), END], "c": [Mark(5)]}, (Mark(5),)),  # it arrives after the end of the other
        ({"a": [Mark(7), END], "c": [END]}, (Mark(7), END)),
        ({"a": [END], "c": [Mark(7), END]}, (Mark(7), END)),
        ({"a": [END], "c": [END]}, (END,)),
        ({"a": [END]}, ()),
    ):
        found = raw(MERGE, queues)
        assert isinstance(found, Finished)
        assert dict(found.outputs)["b"] == out


@pytest.mark.parametrize(
    ("queue", "late"),
    [
        ([(2, "y"), (1, "y")], (1, "y")),
        ([Mark(5), (4, "y")], (4, "y")),
        ([Mark(5), Mark(4)], Mark(4)),
    ],
)
def test_what_comes_too_late_is_refused(queue: list[Any], late: Any) -> None:
    found = raw(FILTER, {"a": queue})
    assert found == Faulted(("f#0", None, "order-violation", late))
    accepted = raw(
        FILTER, {"a": [(4, "y"), Mark(3), (4, "y")]}
    )  # a mark may say less than the items before it
    assert isinstance(accepted, Finished)


def test_a_body_that_sends_marks_itself_is_not_contradicted() -> None:
    text = """operator s = std.split_turns<T = K, n = 2, by = n>;
    input a: K by n; output b: K by n; output c: K by n; var $n: i64 = 0;
    (b, c, $n) <- s(a, $n);"""
    found = raw(text, {"a": [(3, "p"), Mark(1), (5, "q"), Mark(6), END]})
    assert isinstance(found, Finished)
    assert dict(found.outputs) == {
        "b": ((3, "p"), Mark(1), Mark(5), Mark(6), END),
        "c": (Mark(3), (5, "q"), Mark(6), END),
    }


def test_a_queue_in_order_may_feed_an_input_that_does_not_care() -> None:
    text = """operator i = std.identity<T = K, by = n>; operator o = std.identity<T = K>;
    input a: K by n; output b: K;
    (q) <- i(a); (b) <- o(q);"""
    assert sent(text, {"a": [(1, "x")]})["b"] == ((1, "x"), END)


# --------------------------------------------------------------------------------------------------------------- inputs


def test_inputs_end_one_instant_after_the_last() -> None:
    text = """type S = {at: time}; operator x = std.flatten<T = i64>;
    input a: K by n; input c: K by n; input d: S by at; input e: i64; input f: {m: i64} by m;"""
    assert inputs(graph(text), {"a": [(4, "x")], "c": [(1, "y"), (9, "z")], "e": [1]}) == {
        "a": ((4, "x"), Mark(10), END),
        "c": ((1, "y"), (9, "z"), Mark(10), END),
        "d": (END,),  # no instant is known for times
        "e": (1, END),
        "f": (Mark(10), END),
    }
    with pytest.raises(ValueError, match="not inputs of the program: z"):
        inputs(graph(text), {"z": []})


# --------------------------------------------------------------------------------------------------------- observations


def test_observations_hide_marks_order_of_maps_and_parts_of_unions() -> None:
    text = COUNT.replace(
        "input a", "fn pairs(m: map<i64, i64>) -> list<(i64, i64)> = [(k, n) for k, n in m];\ninput a"
    )
    text += """fn twice(k: i64, n: i64) -> list<i64> = [n, k];
    output t: i64 = rows($c, twice); output p: (i64, i64) = rows($c, pairs);
    var $m.0: map<i64, i64> = {1: 2}; var $m.1: map<i64, i64> = {3: 4}; result $m = union($m.0, $m.1);
    var $s.0: bag<i64> = {}; var $s.1: bag<i64> = {}; result $s = union($s.0, $s.1);
    """
    g = graph(text)
    found = run(erase(g), inputs(g, {"a": [9, 5, 9]}), FirstCome()).outcome
    assert found is not None
    seen = observe(g, found)
    assert isinstance(seen, Observation)
    assert seen.outputs == (("b", (1, 1, 2)),)
    assert seen.views == (("t", (1, 2, 5, 9)), ("p", ((5, 1), (9, 2))))
    variables = dict(seen.variables)
    assert variables["c"] == frozenset({(9, 2), (5, 1)})
    assert variables["m"] == frozenset({(1, 2), (3, 4)})
    assert set(variables) == {"c", "m", "one", "s"}
    few = observe(g, found, ["m"])
    assert isinstance(few, Observation)
    assert dict(few.variables) == {"m": variables["m"]}
    with pytest.raises(ValueError, match="not observed variables of the program: x"):
        observe(g, found, ["x"])


def test_a_view_that_traps_is_a_fault() -> None:
    g = graph(
        f"{COUNT}fn bad(k: i64, n: i64) -> list<i64> = [div.trunc(k, 0)];\noutput t: i64 = rows($c, bad);"
    )
    found = run(erase(g), inputs(g, {"a": [9]}), FirstCome()).outcome
    assert found is not None
    assert observe(g, found) == Faulted(("t", 0, "division-by-zero", 9))


# ------------------------------------------------------------------------------------------------------------- externs

EXTERN = """operator f(x: i64, y: i64; $l: list<i64>) -> (o: i64) = extern python "mine:f";
input a: i64; input c: i64; output b: i64; var $l: list<i64> = [];
(b, $l) <- f(a, c, $l);
"""


def test_externs_are_given_and_called() -> None:
    def f(port: int, item: int, state: list[Any]) -> Any:
        state[0] = [*state[0], item]
        yield 0, item * 10 + port

    g = graph(EXTERN)
    found = run(erase(g, {"mine:f": f}), inputs(g, {"a": [1, 2], "c": [3]}), FirstCome()).outcome
    assert isinstance(found, Finished)
    assert dict(found.outputs)["b"] == (10, 20, 31, END)
    assert dict(found.variables)["l"] == (1, 2, 3)
    with pytest.raises(Rejected) as rejected:
        erase(g)
    assert [d.code for d in rejected.value.diagnostics] == ["run-extern"]


def test_an_extern_that_raises_is_a_fault() -> None:
    def f(port: int, item: int, state: list[Any]) -> Any:
        raise ValueError(item)

    assert fault(EXTERN, {"a": [1]}, {"mine:f": f}) == ("f#0", None, "extern-failed", 1)
