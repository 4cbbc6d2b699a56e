"""Machine code in the multicore backend: the same results as the evaluator's, whatever stands behind inputs and outputs."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("llvmlite")

import river
from backends.multicore import parallel
from backends.multicore.plan import plan
from backends.multicore.run import run
from backends.native import llvm
from backends.native.batch import Batch
from backends.native.lower import expressions
from river.backend import Options
from river.driver import Compiled, compile_source, observe
from river.lang import types as t
from river.platform import Platform
from river.source import Source
from river.testing import seeds

if TYPE_CHECKING:
    from pathlib import Path

WAYS = [
    Options(workers=workers, batch=batch, bound=bound, native=native)
    for workers, batch, bound in ((1, 1, 1), (2, 3, 2), (4, 64, 64), (2, 4096, 16384))
    for native in ("on", "off")
] + [Options(workers=1, batch=7, bound=7, native="debug")]

PROGRAMS = {
    "texts": """river 1;
type R = {t: i64, k: string, v: f64};
input r: R by t;
var $m: map<string, {n: i64, last: string}> = {};
operator long(r: R by t) -> (o: R by t) {
  on r(x) { let k = x.k + "-a long tail that is not inline"; if x.v > 0.2 { emit o {t: x.t, k: k, v: x.v}; } }
}
operator pass(r: R by t) -> (o: R by t) { on r(x) { emit o x; } }
operator count(r: R by t; $m: map<string, {n: i64, last: string}>) -> (o: {k: string, n: i64, last: string}) {
  on r(x) {
    with e = $m[x.k] else {n: 0, last: ""} { emit o {k: x.k, n: e.n, last: e.last}; e.n = e.n + 1; e.last = x.k; }
  }
}
(a) <- long(r);
(b) <- pass(a);
(c, $m) <- count(b, $m);
output c: {k: string, n: i64, last: string};
""",
    "windows": """river 1;
input r: f32;
operator low(r: f32) -> (o[push 1]: f32) {
  on r[peek 5, pop 2](w) { var s: f32 = 0.0; for i in 0 .. 5 { s = s + w[i]; } emit o s; }
}
operator deal(r: f32) -> (a: f32, b: f32) { on r(x) { emit a x; emit b x; } }
operator half(r: f32) -> (o[push 1]: f32) { on r[pop 1](w) { emit o w[0] * 0.5; } }
operator turns(a: f32, b: f32) -> (o: f32) { phase 1 on a(x) { emit o x; } phase 2 on b(x) { emit o x + 1.0; } }
operator pairs(r: f32) -> (o[push 2]: f32) { on r[pop 3](w) { emit o w[0] - w[2]; emit o w[1]; } }
(l) <- low(r);
(a, b) <- deal(l);
(c) <- half(a);
(d) <- turns(c, b);
(e) <- pairs(d);
output e: f32;
""",
    "merge": """river 1;
type R = {t: i64, k: string};
input r: R by t;
input s: R by t;
operator both(r: R by t, s: R by t; $n: i64) -> (o: {t: i64, a: string?, b: string?, n: i64} by t) {
  on merge(r(x), s(y)) {
    $n = $n + 1;
    var a: string? = none;
    var b: string? = none;
    if x is x { a = x.k; }
    if y is y { b = y.k; }
    emit o {t: key, a: a, b: b, n: $n};
  }
  on mark(k) { $n = $n + 100; mark o k; }
}
operator once(r: R by t; $last: i64?) -> (o: R by t) {
  on r(x) { if $last != x.t { $last = x.t; emit o x; } }
}
var $n: i64 = 0;
var $x: i64? = none;
var $y: i64? = none;
(r1, $x) <- once(r, $x);
(s1, $y) <- once(s, $y);
@Steady() (q, $n) <- both(r1, s1, $n);
output q: {t: i64, a: string?, b: string?, n: i64} by t;
""",
}


def program(name: str) -> Compiled:
    text = PROGRAMS[name]
    if name == "merge":  # how often marks come depends on batches: the program must not tell
        text = text.replace("$n = $n + 100; ", "")
    return compile_source(Source(f"{name}.river", text))


def data(compiled: Compiled, count: int, seed: int) -> dict[str, list[Any]]:
    chance = seeds.chance("multicore native", seed)
    found: dict[str, list[Any]] = {}
    for name in compiled.graph.inputs:
        match name, compiled.graph.queues[name].by:
            case _, None:
                found[name] = [chance.choice([0.5, -1.25, 3.0, 0.1]) for _ in range(count)]
                found[name] = list(pa.array(found[name], pa.float32()).to_pylist())
            case _:
                times = sorted(chance.randrange(count // 2 + 1) for _ in range(count))
                names = [chance.choice(["é", "a", "host.example.org:8080/index", ""]) for _ in range(count)]
                width = len(compiled.graph.queues[name].type.fields)  # pyright: ignore[reportAttributeAccessIssue]
                found[name] = [(t, k, chance.random())[:width] for t, k in zip(times, names, strict=True)]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("worth", [0.0, 1.0])
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_the_same_however_it_runs(name: str, worth: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "WORTH", worth)  # 0: stateless operators always run on all workers at once
    compiled, chance = program(name), seeds.chance("ways of few items", name, worth)
    for count, seed in ((0, 1), (1, 2), (150, 3)):
        given = data(compiled, count, seed)
        expected = observe(compiled, "reference", given, Options())
        for options in WAYS if count > 1 else chance.sample(WAYS, 3):
            assert repr(observe(compiled, "multicore", given, options)) == repr(expected), options


def test_files_tables_and_lists_give_the_same(tmp_path: Path) -> None:
    compiled = program("texts")
    rows = data(compiled, 300, 4)["r"]
    table = pa.table(
        {name: [row[i] for row in rows] for i, name in enumerate(("t", "k", "v"))},
        schema=pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.float64())]),
    )
    lines = [f'{t},"{k}",{v!r}' for t, k, v in rows]
    csv, parquet = tmp_path / "r.csv", tmp_path / "r.parquet"
    csv.write_text("t,k,v\n" + "\n".join(lines), encoding="utf-8")
    pq.write_table(table, parquet, row_group_size=70)
    expected = compiled.run({"r": rows}, native="off")["c"]
    for given in (rows, table, csv, parquet):
        for size in (16, 4096):
            assert compiled.run({"r": given}, batch=size)["c"].equals(expected)
    for suffix in ("csv", "jsonl"):
        for native in ("on", "off"):
            compiled.run({"r": csv}, {"c": tmp_path / f"{native}.{suffix}"}, native=native)
        assert (tmp_path / f"on.{suffix}").read_bytes() == (tmp_path / f"off.{suffix}").read_bytes()


def test_rows_out_of_order_are_the_same_error_in_tables_and_files(tmp_path: Path) -> None:
    compiled = program("texts")
    table = pa.table({"t": [1, 5, 4, 9], "k": ["a"] * 4, "v": [1.0] * 4})
    csv = tmp_path / "r.csv"
    csv.write_text("t,k,v\n1,a,1.0\n5,a,1.0\n4,a,1.0\n9,a,1.0\n")
    for given in (table, csv):
        for native in ("on", "off"):
            with pytest.raises(river.Rejected) as caught:
                compiled.run({"r": given}, native=native)
            assert [d.code for d in caught.value.diagnostics] == ["data-order"]
            results = compiled.run({"r": given}, native=native, on_error="skip")
            assert results["c"].num_rows == 3


def test_traps_tell_the_item_and_the_place() -> None:
    text = """river 1;
input r: i64;
operator f(r: i64) -> (o: i64) { on r(x) { emit o div.trunc(100, x - 3); } }
(o) <- f(r);
output o: i64;
"""
    compiled = compile_source(Source("f.river", text))
    shown = []
    for native in ("on", "off"):
        with pytest.raises(river.Rejected) as caught:
            compiled.run({"r": [1, 2, 3, 4]}, native=native)
        (found,) = caught.value.diagnostics
        shown.append((found.code, found.message, found.span, [note.message for note in found.notes]))
    assert shown[0] == shown[1]
    assert shown[0][0] == "trap-division-by-zero"
    assert compiled.run({"r": [1, 2, 3, 4]}, on_error="skip")["o"].to_pydict() == {"value": [-50, -100, 100]}


@pytest.mark.parametrize("native", ["on", "off"])
def test_traps_tell_numbers_without_sign(native: str) -> None:
    text = """river 1;
input r: u64;
operator f(r: u64) -> (o: i64) { on r(x) { emit o i64(x); } }
(o) <- f(r);
output o: i64;
"""
    with pytest.raises(river.Rejected, match=r"`i64` of 9223372036854775808"):
        compile_source(Source("f.river", text)).run({"r": [1, 1 << 63]}, native=native)


@pytest.mark.parametrize("zero", [0, 7, 11, 12, 17])
def test_traps_in_whole_cycles_tell_the_item(zero: int) -> None:
    text = """river 1;
input a: i64;
input b: i64;
operator f(a: i64, b: i64) -> (o: i64) {
  phase 2 on a(x) { emit o div.trunc(100, x); } phase 1 on b(x) { emit o x; } phase 1 on a(x) { emit o div.trunc(9, x); }
}
(o) <- f(a, b);
output o: i64;
"""
    compiled = compile_source(Source("f.river", text))
    given = {"a": [n - zero for n in range(60)], "b": [*range(60)]}
    shown = []
    for native in ("on", "off"):
        with pytest.raises(river.Rejected) as caught:
            compiled.run(given, native=native, batch=16)
        (found,) = caught.value.diagnostics
        shown.append((found.code, found.message, found.span, [note.message for note in found.notes]))
    assert shown[0] == shown[1]
    assert any("item" in note for note in shown[0][3])


@pytest.mark.parametrize("workers", [1, 3])
def test_what_a_run_has_used_is_gone_without_the_collector(workers: int, tmp_path: Path) -> None:
    """In a circle, batches and the state of operators would stay until that comes."""
    compiled = program("texts")
    rows = data(compiled, 200, 1)
    ways: list[dict[str, Any]] = [{"outputs": {"c": tmp_path / "c.csv"}}, {"outputs": {"c": None}}]

    def used() -> list[type]:
        kinds = set(map(type, gc.get_objects()))
        ours = (kind for kind in kinds if str(kind.__module__).startswith(("backends.", "river.io.")))
        return [kind for kind in ours if "_Array_" not in kind.__name__]  # types are in circles

    for way in ways:
        asked = {**way, "workers": workers, "experiment": {"gate": "open"}}
        for _ in range(2):  # what is kept on purpose is there then
            compiled.run(rows, **asked)
        gc.freeze()  # the millions of objects of other tests: what is listed now came later
        gc.disable()
        try:
            compiled.run(rows, **asked)
            assert used() == []
        finally:
            gc.enable()


def test_without_llvmlite_the_evaluator_runs_with_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = program("windows")
    expected = compiled.run({"r": [1.0] * 50})["e"]
    monkeypatch.setattr(llvm, "available", lambda: False)
    results = compiled.run({"r": [1.0] * 50})
    assert results["e"].equals(expected)
    assert [d.code for d in results.warnings] == ["native-missing"]
    assert not compiled.run({"r": [1.0] * 50}, native="off").warnings


def test_what_the_evaluator_runs_is_told_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(expressions._RULES, "re_test")
    text = """river 1;
type R = {pattern: string, text: string};
input r: R;
operator find(r: R) -> (o: bool) { on r(x) { emit o re_test(regex(x.pattern), x.text); } }
operator turn(r: bool) -> (o: bool) { on r(x) { emit o not x; } }
(q) <- find(r);
(o) <- turn(q);
output o: bool;
"""
    compiled = compile_source(Source("f.river", text))
    results = compiled.run({"r": [("a+", "xaa"), ("b", "c")]})
    assert results["o"].to_pydict() == {"value": [False, True]}
    (found,) = results.warnings
    assert found.code == "native-refused"
    assert "is not compiled, which is many times slower: " in found.message
    assert found.span is not None
    (calls,) = results.summary.host_calls.items()
    assert calls == (next(name for name in results.summary.fired if name.startswith("find")), 2)
    assert not compiled.run({"r": []}, native="off").summary.host_calls


@pytest.mark.slow
def test_patterns_compiled_while_a_program_runs_are_counted() -> None:
    text = """river 1;
type R = {pattern: string, text: string};
input r: R;
operator look(r: R) -> (o: list<string>) { on r(x) { emit o re_strs(regex(x.pattern), x.text); } }
(o) <- look(r);
output o: list<string>;
"""
    compiled = compile_source(Source("f.river", text))
    rows = [("a+", "xaa"), ("b(c?)", "abc"), ("a+", "")] * 50
    for options in WAYS:
        assert observe(compiled, "multicore", {"r": rows}, options) == observe(
            compiled, "reference", {"r": rows}, Options()
        )
    results = compiled.run({"r": rows}, workers=1)
    assert not results.warnings
    assert dict(results.summary.host_calls) == {
        "look#0": 4
    }  # each at first, and once more when it is used often
    assert results.summary.metrics is not None
    assert results.summary.metrics.host_calls == results.summary.host_calls
    with pytest.raises(river.Rejected, match="not a regular expression"):
        compiled.run({"r": [("(", "")]})


@pytest.mark.parametrize(("handler", "t"), [("on x(r)", "r.t"), ("on merge(x(r))", "key")])
def test_lists_that_firings_send_are_passed_on_before_they_are_many(handler: str, t: str) -> None:
    """So what waits between operators is bounded by the rows inside of items, too: one firing of a join makes thousands."""
    text = f"""river 1;
    input x: {{t: i64}} by t;
    operator many(x: {{t: i64}} by t) -> (y: {{t: i64, of: list<i64>}} by t) {{
      {handler} {{ var of: list<i64> = []; for i in 0 .. 100 {{ push(of, i); }} emit y {{t: {t}, of: of}}; }}
    }}
    (y) <- many(x); output y: {{t: i64, of: list<i64>}} by t;
    """
    graph = compile_source(Source("test.river", text)).graph
    seen: list[int] = []
    run(
        plan(graph, Platform(1), Options(workers=1, batch=64, bound=64)),
        {"x": iter([[(i,) for i in range(1000)]])},
        {"y": lambda items: seen.append(len(items))},
    )
    assert sum(seen) == 1000
    # with 256 rows no further firing begins; such a batch may come to one that has fewer
    assert max(seen) <= 5


def test_fields_of_a_file_that_leave_inside_of_something_else_are_read(tmp_path: Path) -> None:
    text = """river 1;
    type R = {a: string, b: i64, c: f64};
    input r: R;
    var $n: i64 = 0;
    operator number(r: R; $n: i64) -> (out: {at: i64, item: R}, of: {list: list<i64>}) {
      on r(x) { $n = $n + 1; emit out {at: $n, item: x}; emit of {list: [x.b]}; }
    }
    operator apart(x: {at: i64, item: R}) -> (out: {at: i64, a: string}) { on x(y) { emit out {at: y.at, a: y.item.a}; } }
    (numbered, of, $n) <- number(r, $n);
    (out) <- apart(numbered);
    output out: {at: i64, a: string};
    output of: {list: list<i64>};
    """
    path = tmp_path / "r.csv"
    path.write_text("a,b,c\nx,1,0.5\ny,2,0.5\n")
    found = river.compile(text, "river").run({"r": path})
    assert found["out"].to_pylist() == [{"at": 1, "a": "x"}, {"at": 2, "a": "y"}]
    assert found["of"].to_pylist() == [{"list": [1]}, {"list": [2]}]


def test_texts_that_firings_send_are_passed_on_before_they_are_large() -> None:
    """So a join of rows with long texts keeps few of them: what waits is bounded by bytes, and so is what waits in queues."""
    text = """river 1;
    operator long(x: i64) -> (y: string) {
      on x(n) { var s: string = "0123456789abcdef"; for i in 0 .. 8 { s = concat(s, s); } emit y s; }
    }
    input x: i64; (y) <- long(x); output y: string;
    """
    graph = compile_source(Source("test.river", text)).graph
    seen: list[int] = []
    run(
        plan(graph, Platform(1), Options(workers=1, batch=64, bound=64)),
        {"x": iter([list(range(1000))])},
        {"y": lambda items: seen.append(len(items))},
    )
    assert sum(seen) == 1000
    assert max(seen) < 40  # 256 rows of 64 bytes, and what memory is asked for at once
    batch = Batch.of(t.STRING, ["x" * 100] * 10)
    batch.texts = 6400
    assert (batch.weight, batch[2:4].weight, batch[2:4][1:].weight) == (100, 20, 10)
