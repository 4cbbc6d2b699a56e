"""How deep and how wide programs may be: what is plausible works, what is beyond is told."""

from __future__ import annotations

import subprocess
import sys

import pytest

from river.diagnostics import Rejected
from river.driver.compilation import Compiled, compile_source
from river.lang import syntax as s
from river.lang import typed
from river.lang.parse import parse_expr
from river.lang.pretty import pretty as spelled
from river.nesting import MAX_DEPTH
from river.source import Source

HEAD = "river 1; type T = {v: i64}; input q: T; output out: T;\n"


def il(body: str, declarations: str = "") -> Compiled:
    """A program with one operator, whose handler of an item `x` is `body`."""
    text = f"{HEAD}{declarations}\noperator f(p: T) -> (o: T) {{ on p(x) {{ {body} }} }}\n(out) <- f(q);"
    return compile_source(Source("q.river", text), "river")


def cql(condition: str) -> Compiled:
    """The rows of a stream that meet a condition."""
    text = (
        "s: {ts: int; v: int} stream by ts;\n"
        f"out: {{ts: int; v: int}} stream = istream(select * from s[now] where {condition});"
    )
    return compile_source(Source("q.cql", text), "cql")


def refused(program: Compiled) -> list[str]:
    """Codes of what is wrong with a program that can be read."""
    with pytest.raises(Rejected) as caught:
        program.graph  # noqa: B018
    for diagnostic in caught.value.diagnostics:
        assert diagnostic.span is not None
    return [diagnostic.code for diagnostic in caught.value.diagnostics]


def height(expr: s.Expr) -> int:
    """Levels of a tree of `and` and `or`."""
    return 1 + max(height(expr.left), height(expr.right)) if isinstance(expr, s.Binary) else 0


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["reference", "multicore"])
def test_a_list_of_hundreds_of_values_is_looked_up(backend: str) -> None:
    rows = [{"ts": i, "v": i} for i in range(40)]
    program = cql(f"v in ({', '.join(str(3 * i) for i in range(400))})")
    assert [row["v"] for row in program.run({"s": rows}, backend=backend)["out"].to_pylist()] == list(
        range(0, 40, 3)
    )


@pytest.mark.slow
@pytest.mark.parametrize("word", ["and", "or"])
def test_chains_of_a_thousand_conditions_are_shallow(word: str) -> None:
    tree = parse_expr(Source("<expr>", f" {word} ".join(f"a == {i}" for i in range(1_000))))
    assert height(tree) == 11  # ten levels hold 1,024, one is `==`
    assert parse_expr(Source("<expr>", spelled(tree))) == tree
    cql(f" {word} ".join(f"v <> {i}" for i in range(1_000))).graph  # noqa: B018


def test_long_chains_ask_their_operands_in_order_and_stop() -> None:
    """The 50th operand ends it, the 51st would trap."""
    for word, stop in (("and", "x.v != 50"), ("or", "x.v == 50")):
        keeps = "x.v == x.v" if word == "and" else "x.v != x.v"
        chain = f" {word} ".join([*([keeps] * 49), stop, "div.trunc(1, x.v -% 50) == 7", *([keeps] * 60)])
        program = il(f"if {chain} {{ emit o x; }}")
        found = program.run({"q": [{"v": 50}]}, backend="reference")["out"].to_pylist()
        assert found == ([] if word == "and" else [{"v": 50}])


@pytest.mark.slow
def test_cases_inside_one_another_are_levels_and_their_branches_are_not() -> None:
    def flat(count: int) -> str:
        return "case" + "".join(f" when v = {i} then {i}" for i in range(count)) + " else 0 end = v"

    def nested(count: int) -> str:
        return (
            "".join(f"case when v = {i} then {i} else " for i in range(count)) + "0" + " end" * count + " = v"
        )

    cql(flat(MAX_DEPTH)).graph  # noqa: B018
    cql(nested(150)).graph  # noqa: B018
    with pytest.raises(Rejected) as caught:
        cql(nested(MAX_DEPTH))
    (found,) = caught.value.diagnostics
    assert (found.code, str(MAX_DEPTH) in found.message) == ("syntax-too-deep", True)
    assert found.span is not None


def test_functions_that_call_one_another_in_a_row() -> None:
    rows = "".join(f"fn f{i}(x: i64) -> i64 = f{i - 1}(x) +% 1;\n" for i in range(1, 600))
    graph = il("emit o {v: f599(x.v)};", "fn f0(x: i64) -> i64 = x;\n" + rows).graph
    operator = graph.instances[0].operator
    assert isinstance(operator, typed.Operator)
    assert len(operator.fns) == 600


def test_results_of_functions_in_a_row_that_are_not_stated() -> None:
    rows = "".join(f"fn f{i}(x: i64) = f{i - 1}(x) +% 1;\n" for i in range(1, 60))
    assert refused(il("emit o {v: f59(x.v)};", rows + "fn f0(x: i64) = x;\n"))[0] == "lang-result-depth"
    il("emit o {v: f40(x.v)};", "fn f0(x: i64) = x;\n" + rows).graph  # noqa: B018 - each is known when it is asked for


def test_types_that_double() -> None:
    types = "type T0 = {a: i64};\n" + "".join(
        f"type T{i} = {{a: T{i - 1}, b: T{i - 1}}};\n" for i in range(1, 40)
    )
    assert set(refused(il("emit o x;", types))) == {"lang-type-size"}
    values = "let a0 = (x, x); " + "".join(f"let a{i} = (a{i - 1}, a{i - 1}); " for i in range(1, 60))
    assert "lang-type-size" in refused(il(f"{values} emit o x;"))


def test_types_of_many_levels() -> None:
    types = "type T0 = {a: i64};\n" + "".join(f"type T{i} = {{a: T{i - 1}}};\n" for i in range(1, 1_000))
    assert set(refused(il("emit o x;", types))) == {"lang-type-size"}
    values = "let a0 = [x]; " + "".join(f"let a{i} = [a{i - 1}]; " for i in range(1, 1_000))
    assert refused(il(f"{values} emit o x;")) == ["lang-type-size"]


def test_displays_inside_of_displays_are_looked_at_once() -> None:
    """Twice on each level would never end."""
    il("let a = " + "[" * 90 + "1" + "]" * 90 + "; emit o x;").graph  # noqa: B018
    il("let a = " + "{(1): " * 90 + "1" + "}" * 90 + "; emit o x;").graph  # noqa: B018


DEEPEST = """
import sys
from river.driver.compilation import compile_source
from river.source import Source
text = 'river 1; type T = {v: i64}; input q: T; output out: T; operator f(p: T) -> (o: T) { on p(x) { emit o {v: %s}; } }'
deep = 'if x.v == 1 {' * 180 + 'x.v' + '} else {2}' * 180
program = compile_source(Source('q.river', text % deep + '(out) <- f(q);'), 'river')
assert compile_source(Source('q.river', program.text), 'river').program == program.program
print(program.run({'q': [{'v': 1}, {'v': 3}]}, backend=sys.argv[1])['out'].to_pylist())
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["reference", "multicore"])
def test_the_deepest_program_runs_in_a_fresh_process(backend: str) -> None:
    command = [sys.executable, "-W", "error", "-c", DEEPEST, backend]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[{'v': 1}, {'v': 2}]\n", "")
