"""Many operators that differ in constants only have one code, and do what each would do with code of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llvmlite")

import river
from backends.native import NativeOperator, compile_native
from backends.native.parameters import CROWD, MANY, parameters
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import typed
from river.lang import types as t
from river.lang.evaluate import Trap, compile_operator
from river.source import Source
from river.testing import seeds

if TYPE_CHECKING:
    from collections.abc import Sequence

HEAD = """river 1;
type In = {key: i64, text: string, real: f64};
type Out = {key: i64, text: string, real: f64, data: bytes, u: u64, w: time, d: duration, f: f32, i: i32};
"""
TEMPLATE = """template <#n: i64, #text: string, #real: f64, #same: i64>
operator t{i}(x: In) -> (out: Out) {{
  const twice: i64 = #n *% 2;
  const mark: string = #text + "!";
  const steady: i64 = 5;
  fn scaled(x: i64) -> i64 {{ return x *% #n +% twice; }}
  on x(x) {{
    if mod.floor(x.key, if #n == 0 {{1}} else {{#n}}) != 1 {{
      var s = scaled(x.key);
      for i in 0 .. 3 {{ s = s *% 31 +% #n ^ steady; }}
      emit out {{key: s +% #same, text: x.text + #text + mark, real: x.real + #real, data: encode(#text),
                 u: u64({u}), w: time({w}), d: duration({w}), f: f32(#real) + {f}, i: {i32}}};
    }}
    if re_test(regex("{pattern}"), x.text) {{
      emit out {{key: div.trunc(x.key, #n), text: mark, real: #real, data: b"{i}", u: u64(1), w: time(0), d: duration(0),
                 f: {f}, i: {i32}}};
    }}
  }}
}}
"""


def operators(text: str) -> list[typed.Operator]:
    graph = verify(parse(Source("test.river", text)), Library.of({}))
    return [each.operator for each in graph.instances if isinstance(each.operator, typed.Operator)]


def program(values: Sequence[tuple[int, str, float]], pattern: str = "b+") -> str:
    """An instance of one template for each row of arguments; beside these, numbers in the text of each differ."""
    lines = [HEAD]
    for i, (n, text, real) in enumerate(values):
        numbers = {"u": 3 * i, "w": i * 1000003, "f": f"{i}.5", "i32": i % 7}
        lines += [
            TEMPLATE.format(i=i, pattern=pattern, **numbers),
            f"operator o{i} = t{i}<n = {n}, text = {quoted(text)}, real = {real!r}, same = 12>;",
            f"input x{i}: In;",
            f"output y{i}: Out;",
        ]
    uses = [f"(y{i}) <- o{i}(x{i});" for i in range(len(values))]
    return "\n".join((*lines, *uses))


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


ROWS = [
    {"key": key, "text": text, "real": real}
    for key, text, real in (
        (0, "", 0.0), (7, "abbb", -0.0), (-3, "a text that is long enough to lie outside", 1e300),
        (1 << 62, "b", float("inf")), (13, "\N{GREEK SMALL LETTER LAMDA}b", 0.1),
    )
]  # fmt: skip


def expected(op: typed.Operator, row: tuple[Any, ...]) -> tuple[list[Any], str | None]:
    fire = compile_operator(op).item[0]
    assert fire is not None
    outs: list[list[Any]] = [[]]
    try:
        fire([], row, outs)
    except Trap as trap:
        return [], trap.code  # what a firing that traps has emitted is withdrawn
    return outs[0], None


def agree(ops: Sequence[typed.Operator], *, debug: bool = False, codes: int = 1) -> None:
    """All operators do with code in common what the evaluator does, also those made `again`."""
    found = parameters(ops)
    made: list[NativeOperator] = []
    for op, own in zip(ops, found, strict=True):
        native = compile_native(op, parameters=own, lend=True, debug=debug)
        assert isinstance(native, NativeOperator), native
        made.append(native)
    assert len({id(native.code) for native in made}) == codes
    for op, native in zip(ops, made, strict=True):
        assert native.operator is op
        for row in (tuple(each.values()) for each in ROWS):
            wanted, trap = expected(op, row)
            for each in (native, native.again()):
                (items,), fired = each.fire_batch([[row]])
                assert repr(items) == repr(wanted)
                assert (fired.trap.code if fired.trap else None) == trap


def arguments(count: int, seed: int) -> list[tuple[int, str, float]]:
    draw = seeds.chance("native parameters", seed)
    texts = ["", "a", "twelve bytes", "thirteen byte", "\N{GREEK SMALL LETTER LAMDA}" * 9, 'quote " and \\']
    reals = [0.0, -0.0, 0.1, -1e300, 5e-324]
    return [(draw.randrange(-9, 9), draw.choice(texts), draw.choice(reals)) for _ in range(count)]


@pytest.mark.parametrize("debug", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_one_code_for_many(*, debug: bool) -> None:
    agree(operators(program(arguments(MANY + 4, 1))), debug=debug)


def test_few_have_code_of_their_own() -> None:
    ops = operators(program(arguments(MANY - 1, 2)))
    assert parameters(ops) == [None] * len(ops)


def test_equal_operators_are_not_many() -> None:
    ops = operators(program(arguments(1, 3))) * (2 * MANY)
    assert parameters(ops) == [None] * len(ops)


def test_constants_that_agree_stay_in_the_code() -> None:
    ops = operators(program([(3, "same", 0.5 * i) for i in range(MANY)]))
    (found,) = {type(own).__name__ for own in parameters(ops)}
    assert found == "Parameters"
    own = parameters(ops)[5]
    assert own is not None
    assert t.STRING not in own.type.items
    assert 2.5 in own.value


@pytest.mark.slow
def test_zeros_of_two_signs_differ() -> None:
    ops = operators(program([(3, "x", -0.0 if i % 2 else 0.0) for i in range(MANY)]))
    owns = parameters(ops)
    signs = {
        str(value)
        for own in owns
        if own is not None
        for value in own.value
        if value == 0.0 and isinstance(value, float)
    }
    assert signs >= {"0.0", "-0.0"}
    agree(ops)


@pytest.mark.slow
def test_patterns_stay_in_the_code() -> None:
    values = arguments(MANY, 4)
    ops = operators(program(values)) + operators(program(values, pattern="[xy]"))
    agree(ops, codes=2)


def filters(count: int) -> list[typed.Operator]:
    """Operators at stated rates that differ in factors, taps, and one in how far it counts."""
    lines = ["river 1;"]
    for i in range(count):
        lines += [
            f"input x{i}: i64;",
            f"output y{i}: i64;",
            f"operator o{i}(x: i64) -> (y: i64) {{",
            f"  const taps: array<i64, 3> = [{i}, 5, {-i}];",
            "  fn scaled(x: i64) -> i64 { return x *% taps[1]; }",
            f"  on x[peek 3, pop 2](w) {{ var s = {7 * i}; for k in 0 .. {3 if i else 2} {{ s = s +% w[k] *% taps[k]; }}",
            f"    if w[0] > 2 {{ emit y scaled(s) ^ {i}; }} }}",
            "}",
            f"(y{i}) <- o{i}(x{i});",
        ]
    return operators("\n".join(lines))


def test_only_a_crowd_of_rated_operators_shares_code() -> None:
    assert parameters(filters(CROWD)) == [None] * CROWD  # one of them counts otherwise


def test_rated_operators_share_code_but_for_their_bounds() -> None:
    ops = filters(CROWD + 1)
    found = parameters(ops)
    assert found[0] is None
    (code,) = {id(own.operator) for own in found[1:] if own is not None}
    assert code
    items = [1, 2, 3, -5, 6, 1 << 62, 7, 1 << 62, 9]
    for op, own in zip(ops, found, strict=True):
        native = compile_native(op, parameters=own, lend=True)
        assert isinstance(native, NativeOperator), native
        fire = compile_operator(op).rated
        assert fire is not None
        outs: list[list[Any]] = [[]]
        for start in range(0, len(items) - 2, 2):
            fire([], (tuple(items[start : start + 3]),), outs)
        assert native.fire_batch([items], "rated")[0] == tuple(outs)


def test_constants_that_bound_loops_stay_in_the_code() -> None:
    """Also those that other constants stand beside, which could be read from a variable."""
    lines = ["river 1;"]
    for i in range(CROWD + 1):
        lines += [
            f"input x{i}: i64;",
            f"output y{i}: i64;",
            f"operator o{i}(x: i64) -> (y: i64) {{",
            f"  const times: i64 = {i + 1};",
            f"  const factor: i64 = {7 * i};",
            "  on x[peek 1, pop 1](w) { var s = w[0]; for k in 0 .. times { s = s *% factor +% k; } emit y s; }",
            "}",
            f"(y{i}) <- o{i}(x{i});",
        ]
    ops = operators("\n".join(lines))
    assert parameters(ops) == [None] * len(ops)


@pytest.mark.some(3)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 16))
def test_random_arguments(seed: int) -> None:
    agree(operators(program(arguments(MANY, seed))))


def delays(count: int, factor: str) -> str:
    """A program of operators that look one item back, each at first at an item of its own."""
    lines = ["river 1;"]
    for i in range(count):
        lines += [
            f"input x{i}: i64;",
            f"output y{i}: i64;",
            f"operator o{i}(x: i64 = [{i}]) -> (y: i64) {{",
            f"  on x[peek 2, pop 1](w) {{ emit y w[0] *% {factor.format(i)} +% w[1]; }}",
            "}",
            f"(y{i}) <- o{i}(x{i});",
        ]
    return "\n".join(lines)


@pytest.mark.parametrize("factor", ["3", "{}"])
def test_items_that_wait_at_first_are_no_part_of_the_code(factor: str) -> None:
    """Whether constants differ beside them or not; each operator has its own."""
    count = CROWD + 1
    text = delays(count, factor)
    ops = operators(text)
    made = [compile_native(op, parameters=own) for op, own in zip(ops, parameters(ops), strict=True)]
    assert len({id(each.code) for each in made if isinstance(each, NativeOperator)}) == 1
    assert [each.operator for each in made if isinstance(each, NativeOperator)] == ops
    found = river.compile(text, "river").run({f"x{i}": [10, 20] for i in range(count)})
    for i in range(count):
        k = int(factor.format(i))
        assert found[f"y{i}"]["value"].to_pylist() == [i * k + 10, 10 * k + 20]
