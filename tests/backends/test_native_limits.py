"""Nothing ends the process: endless loops stop, deep recursion and hostile sizes trap, large variables leave the stack."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llvmlite")

import river
from backends.native import Batch, NativeOperator, Refused, compile_native
from backends.native.contract import ARENA_SIZE
from backends.native.explain import explained
from backends.native.ir import size_of
from backends.native.pool import POOL
from river.diagnostics import InternalError, Rejected
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import memory, typed
from river.lang import types as t
from river.lang.evaluate import Trap, compile_operator
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.native import Fired

MEGABYTE = 1 << 20


def checked(text: str) -> typed.Operator:
    graph = verify(parse(Source("test.river", "river 1;\n" + text)), Library.of({}))
    (instance,) = graph.instances
    assert isinstance(instance.operator, typed.Operator)
    return instance.operator


def native(text: str) -> NativeOperator:
    found = compile_native(checked(text))
    assert isinstance(found, NativeOperator), found
    return found


def body(statements: str, functions: str = "") -> str:
    return f"""input t: i64; output o: i64; {functions}
        operator f(t: i64) -> (o: i64) {{ on t(x) {{ {statements} }} }}
        (o) <- f(t);"""


# --------------------------------------------------------------------------------------------------- stopping

ENDLESS = {
    "while": ("var n = 0; while x >= 0 { n = n +% 1; } emit o n;", ""),
    "for": ("var n = 0; for i in 0 .. 1 << 62 { n = n +% i; } emit o n;", ""),
    "nested": (
        """var n = 0; for i in 0 .. 1000 { for j in 0 .. 1000 { for k in 0 .. 1000 { for l in 0 .. 1000 {
          if n == x { n = n +% 2; } } } } } emit o n;""",
        "",
    ),
    "functions": (
        "emit o g(x);",
        "fn g(n: i64) -> i64 { return h(n) + h(n); } fn h(n: i64) -> i64 { if n > 90 { return 1; } return g(n + 1); }",
    ),
    "lambdas": (
        """let l: list<i64> = fill(1, 100000);
          emit o fold(l, 0, fn(a, b) => fold(l, a, fn(c, d) => if any(l, fn(e) => e == x) { c } else { c +% d }));""",
        "",
    ),
    "comprehension": ("emit o len([i for i in 0 .. 1 << 40 if i == x]);", ""),
    "sort": ("let l: list<i64> = fill(x, 16000000); emit o len(sort(l));", ""),
    "order of maps": (
        "let m = many(1000000); emit o compare(m, m);",
        "fn many(n: i64) -> map<i64, i64> { var m: map<i64, i64> = {}; for i in 0 .. n { m[i] = i; } return m; }",
    ),
    "re_replace": (
        'var s = "a"; while len(s) < 1000000 { s = s + s; } emit o len(re_replace(regex("(a*b)?"), s, "x"));',
        "",
    ),
}


def stopped_after(op: NativeOperator, seconds: float, rows: list[Any]) -> tuple[Fired, float]:
    """What a firing says that is told to stop after a while, and how long it took to listen."""
    batch = Batch.of(op.handlers[0].slots[0], rows)
    asked: list[float] = []

    def ask() -> None:
        asked.append(time.perf_counter())
        op.stop()

    timer = threading.Timer(seconds, ask)
    timer.start()
    fired = op.fire("item.0", batch.addresses, 0, len(rows))
    took = time.perf_counter() - asked[0] if asked else -1.0
    timer.join()
    return fired, took


@pytest.mark.parametrize("name", sorted(ENDLESS))
def test_what_goes_on_for_ever_can_be_stopped(name: str) -> None:
    statements, functions = ENDLESS[name]
    op = native(body("if x < 0 { emit o x; } else { " + statements + " }", functions))
    fired, _ = stopped_after(op, 0.1, [-1, 5, -1])
    assert (fired.stopped, fired.row, fired.trap) == (True, 1, None)
    assert op.outputs[0].batch().values() == [-1]


@pytest.mark.parametrize("name", ["while", "for", "nested", "functions", "lambdas", "comprehension"])
def test_what_goes_on_for_ever_can_be_stopped_in_the_evaluator(name: str) -> None:
    def poll() -> None:
        raise Trap("stopped")

    fire = compile_operator(checked(body(*ENDLESS[name])), poll).item[0]
    assert fire is not None
    with pytest.raises(Trap, match="stopped"):
        fire([], 5, [[]])


def test_a_search_takes_linear_time() -> None:
    text = """var s = "a"; while len(s) < 4000000 { s = s + s; } var part = take(x, s) + "b";
        emit o find(s, part); emit o find(s + "b", part); emit o len(replace(s, part, "")); emit o len(split(s, part));"""
    op = native(body(text, "fn take(n: i64, s: string) -> string { return slice(s, 0, len(s) - n); }"))
    assert op.fire_batch([[2097152]])[0] == ([-1, 2097152, 1 << 22, 1],)


def test_stop_stays_until_it_is_taken_back() -> None:
    op = native(body("emit o x;"))
    batch = Batch.of(op.handlers[0].slots[0], [1, 2, 3])
    op.stop()
    for _ in range(2):
        fired = op.fire("item.0", batch.addresses, 1, 3)
        assert (fired.stopped, fired.row) == (True, 1)
    op.unstop()
    fired = op.fire("item.0", batch.addresses, 1, 3)
    assert (fired.stopped, fired.row) == (False, 3)
    assert op.outputs[0].batch().values() == [2, 3]


# --------------------------------------------------------------------------------------------------- recursion

DEEP = "fn down(n: i64) -> i64 { if n == 0 { return 0; } return 1 + down(n - 1); }"
WIDE = """fn down(n: i64) -> i64 {
    var a: array<f64, 3000> = fill(1.5); a[n] = 2.5;
    if n == 0 { return 0; } let r = down(n - 1); return r + 1 + i64(a[n]) - 2; }"""


def many(count: int) -> str:
    """A function with as many values that live across its call."""
    lets = " ".join(f"let v{i} = f64(n) * {i}.5;" for i in range(count))
    sums = " ".join(f"s = s + v{i};" for i in range(count))
    squares = " ".join(f"s = s + v{i} * v{i};" for i in range(count))
    return f"""fn down(n: i64) -> i64 {{ {lets} if n == 0 {{ return 1; }} var q = 0.0; {sums.replace("s ", "q ")}
        let r = down(n - 1 - i64(q * 0.0)); var s = 0.0; {squares}
        return r *% 3 +% i64(s * 0.0 + q * 0.0); }}"""


def in_thread(run: Callable[[], None], stack: int) -> None:
    """Runs in a thread with so small a stack."""
    failures: list[BaseException] = []

    def kept() -> None:
        try:
            run()
        except BaseException as failure:  # noqa: BLE001 - it is raised again
            failures.append(failure)

    before = threading.stack_size(stack)
    try:
        thread = threading.Thread(target=kept)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    for failure in failures:
        raise failure


@pytest.mark.parametrize("functions", [DEEP, WIDE, many(40)], ids=["deep", "wide", "many"])
def test_calls_nest_as_deeply_as_there_is_memory(functions: str) -> None:
    """On a small stack, which is used up soon: in code that is optimised, and in code that looks where it writes."""
    operator = checked(body("emit o down(x);", functions))
    fire = compile_operator(operator).item[0]
    assert fire is not None
    outs: list[list[Any]] = [[]]
    for item in (2500, 5):
        fire([], item, outs)
    (few,) = outs
    deep = {DEEP: 100_000, WIDE: 2999}.get(functions, 5000)
    for debug in (False, functions is DEEP):
        op = compile_native(operator, debug=debug)
        assert isinstance(op, NativeOperator)

        def run(op: NativeOperator = op) -> None:
            (items,), fired = op.fire_batch([[2500, 5, deep, 5]])
            assert (items[:2], len(items), items[3], fired.trap) == (few, 4, few[1], None)
            if functions is WIDE:  # its variables are elsewhere
                return
            op.limit_memory(4 * MEGABYTE)
            (items,), fired = op.fire_batch([[5, deep, 5]])
            assert (items, fired.row) == (few[1:], 1)
            assert fired.trap is not None
            assert fired.trap.code == "recursion-depth"

        in_thread(run, 2 * MEGABYTE)


def test_what_is_abandoned_on_a_further_stack_is_all_abandoned() -> None:
    """Memory is refused there, or the firing is told to stop: the rows before it stay."""
    text = """fn down(n: i64, m: i64) -> i64 { if n == 0 { return grow(m); } return 1 + down(n - 1, m); }
        fn grow(m: i64) -> i64 {
          var l: list<i64> = []; while m < 0 or len(l) < m { push(l, m); if m < 0 { pop(l); } } return len(l); }"""
    op = native(
        body("emit o x; if x > 9 { emit o down(40000, x); } if x < 0 { emit o down(40000, x); }", text)
    )
    op.limit_memory(64 * MEGABYTE)
    (items,), fired = op.fire_batch([[5, 100_000, 50_000_000, 5]])
    assert items == [5, 100_000, 140_000]
    assert fired.trap is not None
    assert (fired.trap.code, fired.trap.row) == ("arena-limit", 2)
    assert op.fire_batch([[6]])[0] == ([6],)
    fired, _ = stopped_after(op, 0.1, [7, -1, 7])
    assert (fired.stopped, fired.row) == (True, 1)
    assert POOL.used < 64 * MEGABYTE


def test_a_handler_with_large_variables() -> None:
    op = native(body("var a: array<i64, 500000> = fill(0); a[x] = x; emit o a[x];"))
    (items,), fired = op.fire_batch([[3, 499_999, 500_000]])
    assert items == [3, 499_999]
    assert fired.trap is not None
    assert fired.trap.code == "index-range"


def test_sizes_of_types() -> None:
    assert size_of("{ i8, i64, [3 x { i1, i32 }], i128 }") == (64, 16)
    assert size_of("[5 x i16]") == (10, 2)
    assert size_of("{ { ptr, float }, double }") == (24, 8)


# ------------------------------------------------------------------------------------------------------ memory

HOSTILE = {
    "fill": "let l: list<i64> = fill(1, 1 << 60); emit o len(l);",
    "fill a little less": "let l: list<i64> = fill(1, 1 << 25); emit o len(l);",
    "push": "var l: list<i64> = []; while x == 7 { push(l, x); } emit o len(l);",
    "push_back": "var l: deque<i64> = {}; while x == 7 { push_back(l, x); } emit o len(l);",
    "map": "var m: map<i64, i64> = {}; var i = 0; while x == 7 { m[i] = i; i = i + 3; } emit o len(m);",
    "omap": "var m: omap<i64, i64> = {}; var i = 0; while x == 7 { m[i] = i; i = i + 1; } emit o len(m);",
    "bag": "var m: bag<i64> = {}; while x == 7 { add(m, x); } emit o len(m);",
    "text": 'var s = "0123456789"; while x == 7 { s = s + s; } emit o len(s);',
    "join": 'let l: list<string> = fill("0123456789abcdef", 1 << 20); emit o len(join(l, join(l, ".")));',
    "replace": 'var s = "aaaaaaaaaaaaaaaaaaaaaaa"; while x == 7 { s = replace(s, "a", s); } emit o len(s);',
    "emit": "while x == 7 { emit o x; }",
    "comprehension": "emit o len([i for i in 0 .. 1 << 60]);",
    "split": 'var s = "0123456789"; while len(s) < 100000000 { s = s + s; } emit o len(split(s, ""));',
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_sizes_trap(name: str) -> None:
    op = native(body("if x < 7 { emit o x; } else { " + HOSTILE[name] + " }"))
    op.limit_memory(64 * MEGABYTE)
    for _ in range(2):
        (items,), fired = op.fire_batch([[1, 2, 7, 3]])
        assert items == [1, 2]
        assert fired.trap is not None
        assert (fired.trap.code, fired.trap.row, fired.trap.site, fired.trap.operands[1:]) == (
            "arena-limit", 2, fired.trap.site, (),
        )  # fmt: skip
    (items,), fired = op.fire_batch([[4, 5]])
    assert (items, fired.trap) == ([4, 5], None)


def nested(item: str, depth: int, size: int) -> str:
    """Arrays in arrays: the evaluator has one of each depth, as they are alike, so that small ones may be large together."""
    return item if depth == 0 else f"array<{nested(item, depth - 1, size)}, {size}>"


TOO_LARGE = {
    "wraps around": (
        nested("i64", 5, 32_768),
        "var a: A = zero(); a[x][x][x][x][x] = x; emit o a[x][x][x][x][x];",
    ),
    "wraps to nothing": (
        f"array<{nested('i64', 3, 32_768)}, 65536>",
        "var a: A = zero(); a[x][x][x][x] = x; emit o a[x][x][x][x];",
    ),
    "filled": ("array<array<i64, 100000>, 100000>", "var a: A = fill(fill(0)); a[x][x] = x; emit o a[x][x];"),
    "in a list": (
        nested("i64", 3, 65_536),
        "var l: list<A> = []; push(l, zero()); l[0][x][x][x] = x; emit o l[0][x][x][x];",
    ),
    "in a map": (
        f"{{a: {nested('i64', 3, 65_536)}}}",
        "var m: map<i64, A> = {}; m[x] = zero(); m[x].a[x][x][x] = x; emit o m[x].a[x][x][x];",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TOO_LARGE))
def test_types_too_large_for_machine_code_are_left_to_the_evaluator(name: str) -> None:
    type_, statements = TOO_LARGE[name]
    text = f"type A = {type_}; " + body(statements)
    refused = compile_native(checked(text))
    assert isinstance(refused, Refused)
    assert "bytes" in str(refused.reasons[0])
    result = river.compile("river 1;\n" + text, "river").run({"t": [1, 2]})
    assert result["o"].column(0).to_pylist() == [1, 2]


def test_a_variable_too_large_for_machine_code_is_left_to_the_evaluator() -> None:
    text = """type A = array<array<i64, 100000>, 2000>; input t: i64; output o: i64; var $a: A = fill(fill(0));
        operator f(t: i64; $a: A) -> (o: i64) { on t(x) { $a[x][x] = x; emit o $a[x][x]; } }
        (o, $a) <- f(t, $a);"""
    assert isinstance(compile_native(checked(text)), Refused)
    result = river.compile("river 1;\n" + text, "river").run({"t": [1, 2]})
    assert result["o"].column(0).to_pylist() == [1, 2]


def test_a_variable_has_a_limit() -> None:
    op = native("""input t: i64; output o: i64; var $l: list<i64> = [];
        operator f(t: i64; $l: list<i64>) -> (o: i64) { on t(x) { for i in 0 .. x { push($l, i); } emit o len($l); } }
        (o, $l) <- f(t, $l);""")
    op.limit_memory(8 * MEGABYTE)
    (items,), fired = op.fire_batch([[10, 1 << 40]])
    assert items == [10]
    assert fired.trap is not None
    assert (fired.trap.code, fired.trap.site) == ("memory-limit", -1)
    op.variables[0].clear()
    assert op.fire_batch([[3]])[0] == ([3],)


def test_what_functions_make_for_a_firing_is_gone_with_it() -> None:
    """Also where the handler itself, which has the list from a function, makes nothing."""
    functions = """fn last(x: i64) -> list<i64> { return upto(x); }
        fn upto(x: i64) -> list<i64> { var l: list<i64> = []; for i in 0 .. x { push(l, i); } return l; }"""
    text = """input t: i64; output o: i64;
        operator f(t: i64) -> (o: i64) { FUNCTIONS on t(x) { let l = last(x); emit o len(l); } }
        (o) <- f(t);"""
    op = native(text.replace("FUNCTIONS", functions))
    op.limit_memory(MEGABYTE)
    batch = Batch.of(op.handlers[0].slots[0], [100] * 4000)
    fired = op.fire("item.0", batch.addresses, 0, len(batch))
    assert (fired.trap, fired.row) == (None, len(batch))


@pytest.mark.parametrize("before", [0, 1500, 3000, 131_072])
def test_a_column_of_an_output_has_a_limit_whatever_came_before(before: int) -> None:
    op = native(body("for i in 0 .. x { emit o i; }"))
    op.limit_memory(MEGABYTE)
    batch = Batch.of(op.handlers[0].slots[0], [before, 131_072, 131_073])
    kept = list[Batch]()  # while it lives its memory is not used again
    for row in range(2):
        assert op.fire("item.0", batch.addresses, row, row + 1).trap is None
        kept += [made for _, made, _ in op.take()]
    trap = op.fire("item.0", batch.addresses, 2, 3).trap
    assert trap is not None
    assert trap.code == "arena-limit"
    assert [sum(made.values()) for made in kept] == [n * (n - 1) // 2 for n in (before, 131_072) if n]


def test_the_process_has_a_limit() -> None:
    op = native(body("let l: list<i64> = fill(x, 1 << 22); emit o len(l);"))
    before, most = POOL.used, POOL.most
    try:
        POOL.most = before + MEGABYTE
        _, fired = op.fire_batch([[1]])
        assert fired.trap is not None
        assert fired.trap.code == "arena-limit"
    finally:
        POOL.most = most
    assert op.fire_batch([[1]])[1].trap is None
    del op
    assert POOL.used <= before + MEGABYTE


def test_the_evaluator_traps_where_memory_ends() -> None:
    fire = compile_operator(checked(body("let l: list<i64> = fill(1, x); emit o len(l);"))).item[0]
    assert fire is not None
    for size in (1 << 62, memory.most() // 8):
        with pytest.raises(Trap) as caught:
            fire([], size, [[]])
        assert caught.value.code == "arena-limit"


MORE_HOSTILE = {
    "list": "var l: list<i64> = [1, 2]; while x == 7 { l = concat(l, l); } emit o len(l);",
    "points": 'var s = "0123456789"; while len(s) < 10000000 { s = s + s; } emit o len(code_points(s));',
    "map of lists": "var m: map<i64, list<i64>> = {}; var i = 0; while x == 7 { m[i] = fill(i, 500); i = i + 1; } emit o len(m);",
    "map of a list": "let l: list<i64> = fill(1, 1 << 17); emit o len(map(l, fn(a) => fill(a, 1000)));",
}


@pytest.mark.some(8)
@pytest.mark.parametrize("name", sorted(HOSTILE | MORE_HOSTILE))
def test_hostile_sizes_trap_in_the_evaluator(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fire = compile_operator(checked(body((HOSTILE | MORE_HOSTILE)[name]))).item[0]
    assert fire is not None
    limit = memory.used() + 3 * MEGABYTE
    monkeypatch.setattr(memory, "most", lambda: limit)
    with pytest.raises(Trap) as caught:
        fire([], 7, [[]])
    assert caught.value.code == "arena-limit"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["emit", "fill", "text", "push"])
def test_what_was_too_much_is_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = body("if x < 7 { emit o x; } else { emit o 8; " + HOSTILE[name] + " }")
    limit = memory.used() + 4 * MEGABYTE
    monkeypatch.setattr(memory, "most", lambda: limit)
    compiled = river.compile("river 1;\n" + text, "river")
    result = compiled.run({"t": [1, 2, 7, 3]}, native="off", on_error="skip")
    assert result["o"].column(0).to_pylist() == [1, 2, 3]
    with pytest.raises(Rejected) as caught:
        compiled.run({"t": [1, 2, 7, 3]}, native="off")
    (found,) = caught.value.diagnostics
    assert (found.code, found.span is None) == ("trap-arena-limit", False)
    assert "the item 7" in str(caught.value)


def test_variables_of_the_evaluator_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = river.compile(
        """river 1; input t: i64; output o: i64; var $l: list<list<i64>> = [];
        operator f(t: i64; $l: list<list<i64>>) -> (o: i64) { on t(x) { push($l, fill(x, 1000)); emit o x; } }
        (o, $l) <- f(t, $l);""",
        "river",
    )
    limit = memory.used() + 16 * MEGABYTE
    monkeypatch.setattr(memory, "most", lambda: limit)
    with pytest.raises(Rejected) as caught:
        compiled.run({"t": list(range(100_000))}, native="off", batch=100, on_error="skip")
    assert [found.code for found in caught.value.diagnostics] == ["trap-memory-limit"]


def test_a_constant_that_is_too_large_is_told() -> None:
    text = body("emit o len(l);").replace("{ on t", "{ const l: list<i64> = fill(1, 1 << 60); on t")
    with pytest.raises(Trap) as caught:
        compile_operator(checked(text))
    assert caught.value.code == "arena-limit"


# ------------------------------------------------------------------------------------------------- debugging

READER = """input t: {l: list<i64>, i: i64}; output o: i64; var $l: list<string> = [];
    operator f(t: {l: list<i64>, i: i64}; $l: list<string>) -> (o: i64) {
      on t(x) { push($l, "an item of some length " + string(x.i)); emit o x.l[x.i] + len($l[x.i]); } }
    (o, $l) <- f(t, $l);"""


def checking(text: str) -> NativeOperator:
    found = compile_native(checked(text), debug=True)
    assert isinstance(found, NativeOperator), found
    return found


def test_a_bad_length_in_a_variable_is_found() -> None:
    op = checking(READER)
    (items,), fired = op.fire_batch([[((5, 6), 0), ((5, 6), 1)]])
    assert (items, fired.trap) == ([29, 30], None)
    op.variables[0].block.word(ARENA_SIZE + 8).value = 1 << 30
    with pytest.raises(InternalError, match="bad access"):
        op.fire_batch([[((1,) * 1000, 999)]])


def test_bad_offsets_of_a_column_are_found() -> None:
    op = checking(READER)
    batch = Batch.of(op.handlers[0].slots[0], [((5, 6), 0)])
    ctypes.c_int64.from_address(batch.addresses[0] + 8).value = 1 << 40
    op._lent = [batch]  # what the operator may reach
    assert op.fire("item.0", batch.addresses, 0, 1).trap is None
    ctypes.c_int64.from_address(batch.addresses[2]).value = 1 << 35
    op.variables[0].block.word(ARENA_SIZE + 8).value = 1 << 36
    with pytest.raises(InternalError, match="bad access"):
        op.fire("item.0", batch.addresses, 0, 1)


def test_memory_given_back_is_spoilt() -> None:
    op = checking("""input t: i64; output o: i64; var $l: list<i64> = [];
        operator f(t: i64; $l: list<i64>) -> (o: i64) { on t(x) { push($l, x); emit o $l[0]; } }
        (o, $l) <- f(t, $l);""")
    assert op.fire_batch([[7, 8]])[0] == ([7, 7],)
    old = op.variables[0].block.word(ARENA_SIZE).value
    assert op.fire_batch([[9] * 40])[0] == ([7] * 40,)
    assert op.variables[0].block.word(ARENA_SIZE).value != old
    op.variables[0].block.word(ARENA_SIZE).value = old
    with pytest.raises(InternalError, match="bad access"):
        op.fire_batch([[1]])


MISSING = """river 1;
input x: KEY;
operator f(x: KEY; $m: map<KEY, i64>) -> (y: i64) { on x(k) { BODY } }
var $m: map<KEY, i64> = {};
(LEFT) <- f(x, $m);
output y: i64;
"""


@pytest.mark.parametrize(("key", "value"), [("i64", -3), ("u64", (1 << 64) - 1), ("i32", 7), ("string", "a")])
@pytest.mark.parametrize(
    ("body", "left"), [("emit y $m[k];", "y"), ("with e = $m[k] { emit y e; }", "y, $m")]
)
def test_a_trap_tells_the_key_that_is_missing(key: str, value: Any, body: str, left: str) -> None:
    text = MISSING.replace("KEY", key).replace("BODY", body).replace("LEFT", left)
    (instance,) = verify(parse(Source("missing.river", text)), Library.of({})).instances
    assert isinstance(instance.operator, typed.Operator)
    native = compile_native(instance.operator)
    assert isinstance(native, NativeOperator)
    _, fired = native.fire_batch([[value]])
    assert fired.trap is not None
    assert explained(instance.operator, fired.trap).operands == ((value,) if isinstance(value, int) else ())


def test_large_variables_take_large_chunks_while_there_is_memory_for_them() -> None:
    """A map that is in several chunks of them; what is left of the memory is used to the last small one."""
    text = """input t: i64; output o: i64; var $m: map<string, i64> = {};
        operator f(t: i64; $m: map<string, i64>) -> (o: i64) {
          on t(x) {
            for i in 0 .. 1000 { let n = x * 1000 + i; $m["one of many keys, number " + string(n)] = n; }
            emit o len($m);
          }
        }
        (o, $m) <- f(t, $m);"""
    op, rows = native(text), Batch.of(t.I64, list(range(80)))
    fired = op.fire("item.0", rows.addresses, 0, 80)
    assert (fired.row, fired.trap) == (80, None)
    assert op.variables[0].memory > 10 * MEGABYTE
    assert op.variables[0].get() == {f"one of many keys, number {n}": n for n in range(80_000)}
    small = native(text)
    small.limit_memory(6 * MEGABYTE)
    fired = small.fire("item.0", rows.addresses, 0, 80)
    assert fired.trap is not None
    assert fired.trap.code == "memory-limit"
    assert 5 * MEGABYTE < small.variables[0].memory <= 6 * MEGABYTE
