"""What `river explain` says, and that it is true."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

import river
from river.cli import main
from river.explain.explain import explain
from river.explain.memory import Growth, growth
from river.explain.show import as_json, text

ROOT = Path(__file__).resolve().parents[2]


def command(*argv):
    out, err = io.StringIO(), io.StringIO()
    status = main([str(a) for a in argv], io.StringIO(), out, err)
    return status, out.getvalue(), err.getvalue()


def one(variables: str, body: str, fns: str = ""):
    """The growth of the variables of an operator with this body."""
    names = [v.split(":")[0] for v in variables.split("; ")]
    declared = "".join(f"var {v} = {'0' if v.endswith('i64') else '{}'};\n" for v in variables.split("; "))
    source = (
        f"river 1;\ninput q: {{k: string, v: i64}};\n{declared}output o: i64;\n"
        f"operator f(x: {{k: string, v: i64}}; {variables.replace('; ', ', ')}) -> (o: i64) {{\n"
        f"{fns} on x(r) {{ {body} emit o 1; }} }}\n"
        f"(o, {', '.join(names)}) <- f(q, {', '.join(names)});\n"
    )
    return growth(river.compile(source, "river").graph.instances[0].operator)


@pytest.mark.parametrize(
    ("variables", "body", "expected"),
    [
        ("$n: i64", "$n = $n +% 1;", Growth.FIXED),
        ("$m: map<string, i64>", "with n = $m[r.k] else 0 { n = n +% 1; }", Growth.GROWS_KEYS),
        ("$m: map<string, i64>", "$m[r.k] = r.v;", Growth.GROWS_KEYS),
        ("$m: map<string, i64>", "with n = $m[r.k] else 0 { if n > 3 { drop n; } }", Growth.KEYS),
        ("$m: map<string, i64>", "$m[r.k] = 1; delete($m, r.k);", Growth.KEYS),
        ("$w: deque<i64>", "push_back($w, r.v);", Growth.GROWS),
        ("$w: deque<i64>", "push_back($w, r.v); if len($w) > 3 { pop_front($w); }", Growth.BOUNDED),
        ("$l: list<i64>", "push($l, r.v); if len($l) > 3 { $l = []; }", Growth.BOUNDED),
        ("$l: list<i64>", "$l = concat($l, [r.v]);", Growth.GROWS),
        ("$l: list<i64>", "$l = drop_first(concat($l, [r.v]), 1);", Growth.BOUNDED),
        ("$l: list<i64>", "$l = concat($l, [r.v]); $l = bag_minus($l, [0]);", Growth.BOUNDED),
        ("$m: map<string, i64>", "set($m, r.k, r.v);", Growth.GROWS_KEYS),
        ("$l: list<i64>", "push($l, r.v); $l = take($l, 3);", Growth.BOUNDED),
        (
            "$m: map<string, deque<i64>>",
            "with w = $m[r.k] else {} { push_back(w, r.v); pop_front(w); }",
            Growth.GROWS_KEYS,
        ),
        (
            "$m: map<string, deque<i64>>",
            "with w = $m[r.k] else {} { push_back(w, r.v); if r.v == 0 { drop w; } }",
            Growth.KEYS,
        ),
        (
            "$m: map<string, list<i64>>",
            "delete($m, r.k); with l = $m[r.k] else [] { push(l, r.v); }",
            Growth.KEYS,
        ),
    ],
)
def test_how_variables_grow(variables, body, expected):
    assert one(variables, body) == (expected,)


def test_growth_is_followed_through_functions():
    fns = "fn put(ref w: deque<i64>, v: i64) { push_back(w, v); } fn cut(ref w: deque<i64>) { pop_front(w); }"
    assert one("$w: deque<i64>", "put($w, r.v);", fns) == (Growth.GROWS,)
    assert one("$w: deque<i64>", "put($w, r.v); cut($w);", fns) == (Growth.BOUNDED,)


def test_growth_of_a_parameter_that_is_made_of_itself():
    fns = "fn put(ref l: list<i64>, v: i64) { l = concat(l, [v]); }"
    assert one("$l: list<i64>", "put($l, r.v);", fns) == (Growth.GROWS,)


def test_templates_of_cql_are_told_by_what_they_do():
    text_ = (
        "s: {ts: int; k: string; v: int} stream by ts;\n"
        "latest: {k: string; v: int} relation = select k, v from s[partition by k rows 1];\n"
    )
    graph = river.compile(text_, "cql").graph
    grown = {kept.name: kept.growth for facts in explain(graph, "q").operators for kept in facts.kept}
    assert Growth.GROWS_KEYS.value in grown.values()
    assert "grows with the keys" in text(explain(graph, "q"))


def test_facts_of_an_operator():
    graph = river.load(str(ROOT / "examples/flights/delays.cql")).graph
    explanation = explain(graph, "delays.cql")
    assert explanation.deterministic
    group = explanation.operators[-1]
    assert (group.made_of, group.state, group.annotations) == (
        "cql.group",
        "keyed by rows (origin)",
        ("@Parallel()", "@Keys(origin)"),
    )
    assert group.place is not None
    assert group.place.startswith(str(ROOT / "examples/flights/delays.cql") + ":")
    assert set(group.reads or ()) == {"origin", "dep_delay"}
    assert "overflow" in group.traps


def test_time_grows_with_the_program_and_no_faster():
    def lines(count: int) -> int:
        """Lines of Python that an explanation of so many operators takes."""
        text = "river 1; input q0: {x: i64}; output o: {x: i64};\n" + "".join(
            f"operator f{i}(a: {{x: i64}}) -> (b: {{x: i64}}) {{ on a(r) {{ emit b r; }} }}\n"
            for i in range(count)
        )
        ends = [*(f"q{i}" for i in range(count)), "o"]
        uses = (f"({ends[i + 1]}) <- f{i}({ends[i]});\n" for i in range(count))
        graph = river.compile(text + "".join(uses), "river").graph
        seen = 0

        def trace(frame, event, argument):
            nonlocal seen
            seen += event == "line"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            explain(graph, "it")
        finally:
            sys.settrace(before)
        return seen

    lines(2)
    assert lines(80) < 2.1 * lines(40)


def test_what_breaks_determinism_is_named():
    source = (
        "river 1;\ninput a: i64;\ninput b: i64;\noutput o: i64;\n"
        "operator both(p: i64, q: i64) -> (o: i64) { on p(v) { emit o v; } on q(v) { emit o v; } }\n"
        "(o) <- both(a, b);\n"
    )
    explanation = explain(river.compile(source, "river").graph, "race")
    assert not explanation.deterministic
    assert "`both` takes items from `p`, `q`" in text(explanation)


def test_json_holds_all_that_the_text_says():
    status, out, err = command(
        "explain", ROOT / "examples/flights/delays.cql", "--json", "--backend", "multicore"
    )
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert found["deterministic"] is True
    assert [op["name"] for op in found["operators"]] == [
        "flights_in#0",
        "range_delays_flights#1",
        "group_delays#2",
    ]
    assert found["plan"].startswith("multicore:")
    assert as_json(
        explain(river.load(str(ROOT / "examples/flights/delays.cql")).graph, "q"), (), None
    ).startswith("{")


def test_refusals_of_passes_are_told(tmp_path):
    (tmp_path / "p.river").write_text(
        "river 1;\ninput a: i64;\nvar $n: i64 = 0;\noutput b: i64;\n"
        "operator count(x: i64; $n: i64) -> (y: i64) { on x(v) { $n = $n +% v; emit y $n; } }\n"
        "@Parallel(2) (b, $n) <- count(a, $n);\n"
    )
    status, out, err = command("explain", tmp_path / "p.river", "-p", "fission")
    assert status == 0
    assert "count#0" in out
    assert "remark[pass-refused]: no fission" in err


def test_the_reference_backend_prints_the_program_of_the_calculus():
    status, out, _ = command("explain", ROOT / "tests/bodies/c_echo.river", "--backend", "reference")
    assert status == 0
    assert "echo" in out.split("\n\n")[-1]


def test_what_leaves_blocks_is_told():
    program = """river 1; @Region(r, combine) input x: i64; output y: i64; var $n: i64 = 0;
    operator both(x: i64) -> (a: i64, b: i64) { on x(v) { emit a v; emit b v; } }
    operator sum(x: i64; $n: i64) -> () { on x(v) { $n = $n +% v; } }
    @Region(r, combine) (y, a) <- both(x); @Region(r, combine) ($n) <- sum(a, $n);"""
    told = " ".join(text(explain(river.compile(program, lang="river").graph, "it", several=True)).split())
    assert "combined at the end, and `y` sent on in the order of the file" in told
