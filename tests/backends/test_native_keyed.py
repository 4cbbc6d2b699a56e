"""Maps and bags of many entries: index, splits, chains of equals, reuse of entries, remembered entries; as the evaluator."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llvmlite")

from backends.native import NativeOperator, compile_native
from backends.native.lower.hints import noted
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang.evaluate import Trap, compile_operator, freeze_variables
from river.lang.values import NAN, default
from river.source import Source
from river.testing import seeds

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

PROGRAM = """river 1;
type K = {key};
type Change = {{ins: list<K>, del: list<K>}};
input d: Change;
var $m: map<K, {{n: i64, seen: bool, w: string}}> = {{}};
var $b: bag<K> = {{}};
var $g: map<i64, bag<K>> = {{}};
output o: {{a: list<K>, b: list<K>, n: i64, all: list<K>}};
operator keyed(d: Change; $m: map<K, {{n: i64, seen: bool, w: string}}>, $b: bag<K>, $g: map<i64, bag<K>>)
    -> (o: {{a: list<K>, b: list<K>, n: i64, all: list<K>}}) {{
  on d(x) {{
    var touched: list<K> = [];
    var n = 0;
    for k in x.ins {{
      with e = $m[k] else {{n: 0, seen: false, w: "a text of more than twelve bytes"}} {{
        if not e.seen {{ e.seen = true; push(touched, k); }}
        e.n = e.n + 1;
      }}
      add($b, k);
      with g = $g[count($b, k) & 3] else {{}} {{ add(g, k); }}
    }}
    for k in x.del {{
      if has($m, k) {{
        with e = $m[k] {{
          if not e.seen {{ e.seen = true; push(touched, k); }}
          e.n = e.n - 1;
          if e.n == 0 {{ drop e; }}
        }}
      }}
      if contains($b, k) {{ remove($b, k); }}
      with g = $g[0] else {{}} {{ if contains(g, k) {{ remove(g, k); }} }}
    }}
    for k in x.ins {{ with e = $m[k] else {{n: 0, seen: false, w: "again"}} {{ n = n + len(e.w); }} }}
    for k in touched {{
      with e = $m[k] else {{n: 0, seen: false, w: "new"}} {{ e.seen = false; n = n + e.n; }}
    }}
    for k in touched {{ with e = $m[k] {{ if e.n == 0 {{ drop e; }} }} }}
    emit o {{a: bag_minus(x.ins, x.del), b: [k for k in bag_minus(x.del, x.ins)], n: n, all: to_list($b)}};
  }}
}}
(o, $m, $b, $g) <- keyed(d, $m, $b, $g);
"""
KEYS: dict[str, Callable[[int], Any]] = {
    "string": lambda k: f"key{k}" if k % 3 else f"a key of many letters: {k}",
    "{a: i64, b: string, c: bool}": lambda k: (k // 7, f"k{k}", k % 2 == 0),
    "i64": lambda k: k if k % 2 else (k << 40) - 5,
    "f64": lambda k: (0.0, -0.0, NAN, k * 0.5)[min(k, 3)],
    "i64?": lambda k: None if k == 0 else k,
    "list<string>": lambda k: (f"{k}",) * (k % 3),
}


@cache
def operator(key: str, program: str = PROGRAM) -> tuple[Any, NativeOperator]:
    graph = verify(parse(Source("keyed.river", program.format(key=key))), Library.of({}))
    (instance,) = graph.instances
    found: Any = compile_native(instance.operator)  # pyright: ignore[reportArgumentType]
    assert isinstance(found, NativeOperator), found
    return instance.operator, found


def changes(chance: random.Random, make: Callable[[int], Any], keys: int, size: int, ticks: int) -> list[Any]:
    """Rows come, and most go again, oldest first or in any order."""
    there: list[Any] = []
    found: list[Any] = []
    for tick in range(ticks):
        ins = [make(chance.randrange(keys)) for _ in range(chance.randrange(size))]
        there += ins
        if tick % 2:
            chance.shuffle(there)
        gone = min(
            len(there), chance.randrange(2 * size) if len(there) > 3 * keys else chance.randrange(size)
        )
        found.append((tuple(ins), tuple(there[:gone])))
        del there[:gone]
    return found


def agree(op: Any, native: NativeOperator, rows: list[Any]) -> None:
    """Evaluator and machine code give the same, or trap at the same place."""
    outs: list[list[Any]] = [[]]
    variables: list[Any] = [default(var.type) for var in op.vars]
    fire = compile_operator(op).item[0]
    assert fire is not None
    trap = None
    for number, row in enumerate(rows):
        before = len(outs[0])
        try:
            fire(variables, row, outs)
        except Trap as found:
            del outs[0][before:]
            trap = found.code, found.site, number
            break
    items, fired = native.fire_batch([rows])
    assert (None if fired.trap is None else (fired.trap.code, fired.trap.site, fired.trap.row)) == trap
    assert repr(items) == repr(tuple(outs))
    if trap is None:
        assert repr([each.get() for each in native.variables]) == repr(list(freeze_variables(op, variables)))


LINES = {
    "": True,
    "n = n + len($m);": True,
    "with e = $m[k] { if e.n > 0 { push(touched, k); } }": True,
    "with g = $g[0] else {} { if len(g) > 2 { push(touched, k); } }": False,
    'for q in x.ins { with z = $m[q] else {n: 1, seen: false, w: "z"} { z.n = z.n + 1; } }': True,
    "n = n + len(touched);": False,
    "if n > 9 { clear($m); }": False,
    "$m = {};": False,
    "push(touched, k);": False,
}
"""Lines among which entries may be remembered, or not."""


@pytest.mark.parametrize(("line", "remembered"), LINES.items())
def test_entries_are_remembered_while_the_map_stays(line: str, remembered: bool) -> None:
    """A list of keys beside which entries are noted, and the uses that forbid it."""
    place = "for k in x.del {{"
    op, native = operator(
        "string", PROGRAM.replace(place, place + line.replace("{", "{{").replace("}", "}}"))
    )
    found = {slot: (each.variable, each.steady) for slot, each in noted(op.items[0].body).items()}
    assert found == ({1: (0, False)} if remembered else {})
    agree(op, native, changes(seeds.chance("native keyed", 5), KEYS["string"], 20, 12, 15))


STEADY = """river 1;
type K = {key};
input d: {{ins: list<K>, del: list<K>, more: K}};
var $m: map<K, {{n: i64, seen: bool}}> = {{}};
output o: {{gone: list<K>, kept: list<K>}};
operator keyed(d: {{ins: list<K>, del: list<K>, more: K}}; $m: map<K, {{n: i64, seen: bool}}>)
    -> (o: {{gone: list<K>, kept: list<K>}}) {{
  on d(x) {{
    var touched: list<K> = [];
    var gone: list<K> = [];
    var kept: list<K> = [];
    for r in x.ins {{
      let k: K = r;
      with e = $m[k] else {{n: 0, seen: false}} {{
        if not e.seen {{ e.seen = true; push(touched, k); }}
        e.n = e.n + 1;
      }}
    }}
    for k in x.del {{
      with e = $m[k] {{
        if not e.seen {{ e.seen = true; push(touched, k); }}
        e.n = e.n - 1;
        {early}
      }}
    }}
    for k in touched {{
      with e = $m[k] {{
        e.seen = false;
        {late}
        if e.n == 0 {{ push(gone, k); drop e; }} else {{ push(kept, k); }}
      }}
      {after}
    }}
    emit o {{gone: gone, kept: kept}};
  }}
}}
(o, $m) <- keyed(d, $m);
"""
WAYS = {
    "": ({}, True),
    "a key twice": ({"early": "push(touched, k);"}, True),
    "out in the midst": ({"early": "if e.n == 0 { e.n = 1; }"}, True),
    "out before the last comes": ({"early": "if e.n == 0 { drop e; }"}, True),
    "in after the first is out": (
        {"after": "with z = $m[x.more] else {n: 1, seen: false} { z.n = z.n + 1; }"},
        False,
    ),
    "deleted": ({"after": "delete($m, x.more);"}, True),
    "assigned": ({"after": "$m[x.more] = {n: 2, seen: false};"}, False),
    "set": ({"after": "set($m, x.more, {n: 2, seen: false});"}, False),
}
"""Ways of a handler that notes entries, and whether entries are removed only after the last one was put in."""


@pytest.mark.some(9)
@pytest.mark.parametrize(
    ("key", "lend"),
    [
        ("string", True),
        pytest.param("i64", False, marks=pytest.mark.slow),
        pytest.param("{a: string, b: i64}", True, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("way", WAYS)
def test_noted_entries_are_not_used_again_where_keys_are_not_compared(key: str, way: str, lend: bool) -> None:
    parts, steady = WAYS[way]
    program = STEADY
    for name in ("early", "late", "after"):
        program = program.replace(f"{{{name}}}", parts.get(name, "").replace("{", "{{").replace("}", "}}"))
    graph = verify(parse(Source("steady.river", program.format(key=key))), Library.of({}))
    op: Any = graph.instances[0].operator
    native = compile_native(op, lend=lend)
    assert isinstance(native, NativeOperator)
    assert {each.steady for each in noted(op.items[0].body).values()} == {steady}
    make = (lambda k: (f"key number {k} of several", k % 3)) if key.startswith("{") else KEYS[key]
    chance = seeds.chance("native keyed", way)
    rows = [(*row, make(chance.randrange(30))) for row in changes(chance, make, 30, 25, 30)]
    agree(op, native, rows)


@pytest.mark.some(5)
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("keys", "size", "ticks"), [(6, 4, 60), pytest.param(40, 30, 30, marks=pytest.mark.slow), (3000, 900, 12)]
)
def test_keyed_as_the_evaluator(key: str, keys: int, size: int, ticks: int) -> None:
    op, native = operator(key)
    agree(op, native.again(), changes(seeds.chance("native keyed", keys), KEYS[key], keys, size, ticks))


HELD = """river 1;
type K = {key};
input d: list<K>;
var $m: map<K, i64> = {{}};
output o: {{gone: list<K>, all: list<K>}};
operator held(d: list<K>; $m: map<K, i64>) -> (o: {{gone: list<K>, all: list<K>}}) {{
  on d(x) {{
    var gone: list<K> = [];
    for k, n in $m {{ if n & 1 == 0 {{ push(gone, k); }} }}
    for k in gone {{ delete($m, k); }}
    for k in x {{ with e = $m[k] else 0 {{ e = e + 1; }} }}
    emit o {{gone: gone, all: keys($m)}};
  }}
}}
(o, $m) <- held(d, $m);
"""


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(("key", "make"), [("string", str), ("{a: {b: string}}", lambda text: ((text,),))])
def test_keys_in_their_entries_stay_while_they_are_about(
    key: str, make: Callable[[str], Any], debug: bool
) -> None:
    """Keys have gone from a map, others have come to their entries, and the firing still has the texts of those that went."""
    graph = verify(parse(Source("held.river", HELD.format(key=key))), Library.of({}))
    op: Any = graph.instances[0].operator
    native = compile_native(op, debug=debug)
    assert isinstance(native, NativeOperator)
    chance = seeds.chance("native held", key)
    texts = [f"{number:02}{'x' * (number % 30)}y" for number in range(90)]
    rows = [tuple(make(chance.choice(texts)) for _ in range(chance.randrange(20))) for _ in range(150)]
    agree(op, native, rows)


BOUNDED = """river 1;
type K = {key};
input d: {{k: K, n: i64}};
var $m: omap<K, {{n: i64, w: string}}> = {{}};
var $seen: i64 = 0;
output o: list<K>;
operator bounded(d: {{k: K, n: i64}}; $m: omap<K, {{n: i64, w: string}}>, $seen: i64) -> (o: list<K>) {{
  on d(x) {{
    with e = $m[x.k] else {{n: {first}, w: "a text of more than twelve bytes"}} {{ e.n = e.n +% x.n; {also} }}
    {keep}($m, {most});
    $seen = $seen ^ 1;
    emit o keys($m);
  }}
}}
(o, $m, $seen) <- bounded(d, $m, $seen);
"""


@pytest.mark.some(10)
@pytest.mark.parametrize("key", ["string", "f64", "{a: i64, b: string, c: bool}"])
@pytest.mark.parametrize("keep", ["keep_first", "keep_last"])
@pytest.mark.parametrize(
    ("first", "most", "also"),
    [
        ("0", "3", ""),
        ("0", "9", 'e.w = if x.n > 0 { "more" } else { e.w };'),
        ("0", "0", ""),
        ("0", "3", "$seen = $seen + 1;"),
        ("0", "x.n", ""),
        ("0", "len($m)", ""),
        ("div.trunc(6, x.n)", "3", ""),
    ],
)
def test_entries_that_would_leave_at_once_need_not_come(
    key: str, keep: str, first: str, most: str, also: str
) -> None:
    text = BOUNDED.format(key=key, keep=keep, first=first, most=most, also=also)
    graph = verify(parse(Source("test.river", text)), Library.of({}))
    (instance,) = graph.instances
    op = instance.operator
    code = compile_native(op)  # pyright: ignore[reportArgumentType]
    assert isinstance(code, NativeOperator), code
    chance = seeds.chance("bounded", key, keep, most)
    zero = 0 if first == "0" else 1
    rows = [(KEYS[key](chance.randrange(40)), chance.randrange(zero, 6)) for _ in range(300)]
    agree(op, code, [*rows, *((KEYS[key](k), zero - 1) for k in (0, 99))])
