"""Maps and bags of many entries: index, splits, chains of equals, reuse of entries, remembered entries; as the evaluator."""

from __future__ import annotations

import random
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

if TYPE_CHECKING:
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
    assert noted(op.items[0].body) == ({1: 0} if remembered else {})
    agree(op, native, changes(random.Random(5), KEYS["string"], 20, 12, 20))


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("keys", "size", "ticks"), [(6, 4, 60), pytest.param(40, 30, 30, marks=pytest.mark.slow), (3000, 900, 12)]
)
def test_keyed_as_the_evaluator(key: str, keys: int, size: int, ticks: int) -> None:
    op, native = operator(key)
    agree(op, native.again(), changes(random.Random(keys), KEYS[key], keys, size, ticks))
