"""Lists that are sent as they are made, entries fetched ahead, texts replaced: native code against the evaluator."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("llvmlite")

from backends.native import NativeOperator, compile_native
from backends.native.lower import fetching, sending
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import typed
from river.lang.evaluate import Trap, compile_operator, freeze_variables
from river.lang.values import default
from river.source import Source
from river.testing import seeds


def operator(text: str) -> typed.Operator:
    graph = verify(parse(Source("sending.river", "river 1;\n" + text)), Library.of({}))
    (instance,) = graph.instances
    assert isinstance(instance.operator, typed.Operator)
    return instance.operator


def agree(op: typed.Operator, items: list[Any], *, debug: bool = False) -> None:
    """Both send the same, keep the same, and trap at the same item."""
    native = compile_native(op, debug=debug, lend=True)
    assert isinstance(native, NativeOperator), native
    variables = [default(var.type) for var in op.vars]
    outs: list[list[Any]] = [[] for _ in op.outs]
    fire = compile_operator(op).item[0]
    assert fire is not None
    trapped = None
    for row, each in enumerate(items):
        sizes = list(map(len, outs))
        try:
            fire(variables, each, outs)
        except Trap as trap:
            trapped = (trap.code, row)
            for out, size in zip(outs, sizes, strict=True):
                del out[size:]
            break
    found, fired = native.fire_batch([items])
    assert list(found) == outs
    assert (None if fired.trap is None else (fired.trap.code, fired.trap.row)) == trapped
    if trapped is None:
        assert tuple(each.get() for each in native.variables) == tuple(freeze_variables(op, variables))


HEAD = """input d: {t: i64, rows: list<{k: string, n: i64}>};
output o: {t: i64, a: list<{k: string, parts: list<i64>}>, b: list<string>};
"""


def handler(body: str, more: str = "") -> typed.Operator:
    """An operator with this handler of `x`."""
    return operator(
        HEAD
        + f"""operator f(d: {{t: i64, rows: list<{{k: string, n: i64}}>}})
            -> (o: {{t: i64, a: list<{{k: string, parts: list<i64>}}>, b: list<string>}}) {{
            {more} on d(x) {{ {body} }} }}
        (o) <- f(d);"""
    )


LISTS = "var a: list<{k: string, parts: list<i64>}> = []; var b: list<string> = [];"
PUSHES = 'for r in x.rows { push(a, {k: r.k, parts: [r.n, x.t]}); if r.n > 2 { push(b, concat(r.k, "!")); } }'
EMIT = "emit o {t: x.t, a: a, b: b};"
STRAIGHT = {
    "sent": f"{LISTS} {PUSHES} {EMIT}",
    "sent if there is something": f"{LISTS} {PUSHES} if len(b) > 0 {{ {EMIT} }}",
    "sent or not": f"{LISTS} {PUSHES} if x.t != 2 {{ {EMIT} }}",
    "lists made at once": """let a: list<{k: string, parts: list<i64>}> = [{k: r.k, parts: []} for r in x.rows if r.n > 1];
        let b: list<string> = bag_minus([r.k for r in x.rows], [r.k for r in x.rows if r.n > 2]);
        if len(a) != 1 { emit o {t: len(b), a: a, b: b}; }""",
    "made where it is sent": "emit o {t: x.t, a: [{k: r.k, parts: [r.n]} for r in x.rows], b: [r.k for r in x.rows if r.n > 1]};",
    "several times": f"for i in 0 .. 3 {{ {LISTS} {PUSHES} if i != 1 {{ {EMIT} }} }}",
    "a trap": f'{LISTS} {PUSHES} if x.t == 3 {{ trap "no"; }} {EMIT}',
    "a loop that is left": f"{LISTS} for r in x.rows {{ push(b, r.k); if r.n > 3 {{ break; }} }} {EMIT}",
}
APART = {
    "read again": f"{LISTS} {PUSHES} for k in b {{ push(a, {{k: k, parts: []}}); }} {EMIT}",
    "sent twice": f"{LISTS} {PUSHES} {EMIT} {EMIT}",
    "another before it": f"{LISTS} {PUSHES} if x.t > 2 {{ emit o {{t: 0, a: [], b: []}}; }} {EMIT}",
    "written": f'{LISTS} {PUSHES} b = ["x"]; {EMIT}',
    "left before": f"for i in 0 .. 2 {{ {LISTS} {PUSHES} if x.t == 1 {{ break; }} {EMIT} }}",
    "left by return": f"{LISTS} {PUSHES} if x.t == 1 {{ return; }} {EMIT}",
    "a function that sends": f"{LISTS} {PUSHES} say(x.t); {EMIT}",
}


def rows() -> list[Any]:
    chance = seeds.chance("native sending", 5)
    texts = ["", "k", "twelve bytes", "thirteen bytes", "a text of more than sixty-four bytes " * 2, "é"]
    return [(t, tuple((chance.choice(texts), chance.randrange(5)) for _ in range(t % 6))) for t in range(20)]


@pytest.mark.parametrize("name", [*STRAIGHT, *APART])
def test_lists_that_are_sent(name: str) -> None:
    say = "fn say(t: i64) { emit o {t: t, a: [], b: []}; }" if name == "a function that sends" else ""
    op = handler({**STRAIGHT, **APART}[name], say)
    agree(op, rows())
    bodies = [op.items[0].body, *(i.body for i in op.items[0].body.items if isinstance(i, typed.For))]
    straight = any(sending.sent(body, op) for body in bodies)
    if name == "made where it is sent":  # without a name for the lists
        assert not straight
    elif name in ("read again", "written"):  # the other list is
        assert len(sending.sent(op.items[0].body, op)) == 1
    else:
        assert straight == (name in STRAIGHT)


def test_sent_lists_with_every_access_checked() -> None:
    agree(handler(STRAIGHT["sent or not"]), rows(), debug=True)


TEXTS = """input d: {k: i64, a: string, b: string?}; output o: {k: i64, a: string, b: string?};
type Pair = {a: string, b: string?, n: i64};
var $m: map<i64, Pair> = {}; var $p: {x: string, y: string} = {x: "", y: ""};
operator f(d: {k: i64, a: string, b: string?}; $m: map<i64, Pair>, $p: {x: string, y: string})
    -> (o: {k: i64, a: string, b: string?}) {
  on d(x) {
    with e = $m[x.k] else {a: "", b: none, n: 0} {
      emit o {k: e.n, a: e.a, b: e.b};
      e = {a: x.a, b: x.b, n: e.n + 1};
    }
    $p = {x: $p.y, y: x.a};
    $p.x = $p.y;
    $p = {x: $p.y, y: $p.x};
  }
}
(o, $m, $p) <- f(d, $m, $p);"""


@pytest.mark.parametrize("debug", [False, True])
def test_texts_that_are_replaced(debug: bool) -> None:
    chance = seeds.chance("native sending", 6)
    texts = ["", "short", "a text of many letters", "another text of letters", "a text of many lettors" * 5]
    items = [(chance.randrange(4), chance.choice(texts), chance.choice([None, *texts])) for _ in range(400)]
    agree(operator(TEXTS), items, debug=debug)


KEYED = """input d: list<{{k: {key}, n: i64}}>; output o: {{n: i64, sums: list<i64>}};
var $m: map<{key}, i64> = {{}}; var $at: map<{key}, i64> = {{}}; var $s: list<i64> = [];
operator f(d: list<{{k: {key}, n: i64}}>; $m: map<{key}, i64>, $at: map<{key}, i64>, $s: list<i64>)
    -> (o: {{n: i64, sums: list<i64>}}) {{
  on d(x) {{
    var sums: list<i64> = [];
    for r in x {{
      let k: {key} = r.k;
      if r.n != 3 {{
        with e = $m[k] else 0 {{ e = e + r.n; if e > 20 {{ drop e; }} }}
        if get($m, k) is n {{ push(sums, n); }}
      }}
      with i = $at[r.k] else -1 {{ if i < 0 {{ i = len($s); push($s, 0); }} $s[i] = $s[i] + r.n; }}
    }}
    for r in x {{ if r.n < len($s) {{ $s[r.n] = $s[r.n] + 1; }} }}
    emit o {{n: len($m), sums: sums}};
  }}
}}
(o, $m, $at, $s) <- f(d, $m, $at, $s);"""


@pytest.mark.parametrize("key", ["i64", "i32", "u64", "string", "{a: string, b: i64}", "f64", "list<i64>"])
def test_entries_that_are_fetched_ahead(key: str) -> None:
    chance = seeds.chance("native sending", 7)

    def made(i: int) -> Any:
        text = f"{i}" if i % 2 else f"a key of many letters, {i}"
        whole: dict[str, Any] = {"string": text, "f64": i - 0.0, "list<i64>": (i, i)}
        return whole.get(key, (text, i) if key.startswith("{") else i)

    op = operator(KEYED.format(key=key))
    first = op.items[0].body.items[1]
    assert isinstance(first, typed.For)
    assert bool(fetching.searches(first.body, first.slots[-1])) == (key != "list<i64>")
    sizes = [0, 1, 5, 11, 12, 13, 40, 300, 3]
    agree(op, [tuple((made(chance.randrange(200)), chance.randrange(6)) for _ in range(n)) for n in sizes])


DELTA = "{t: i64, ins: list<{k: string, n: i64}>, del: list<{k: string, n: i64}>}"
COMPARED = {
    "both ways": """let ins: list<{k: string, n: i64}> = bag_minus(x.ins, x.del);
        let del: list<{k: string, n: i64}> = bag_minus(x.del, x.ins);
        if len(ins) + len(del) > 0 { emit o {t: x.t, ins: ins, del: del}; }""",
    "only sometimes both ways": """if x.t < 120 {
          let ins: list<{k: string, n: i64}> = bag_minus(x.ins, x.del); emit o {t: len(ins), ins: ins, del: []};
        }
        let del: list<{k: string, n: i64}> = bag_minus(x.del, x.ins);
        emit o {t: x.t, ins: [], del: del};""",
    "other lists": """let ins: list<{k: string, n: i64}> = bag_minus(x.ins, x.del);
        let del: list<{k: string, n: i64}> = bag_minus(x.del, [r for r in x.ins]);
        emit o {t: x.t, ins: ins, del: del};""",
    "told by a field": """let ins: list<{k: string, n: i64}> = bag_minus(x.ins, x.del, fn(r) => r.k);
        let del: list<{k: string, n: i64}> = bag_minus(x.del, x.ins, fn(r) => r.k);
        if len(ins) + len(del) > 0 { emit o {t: x.t, ins: ins, del: del}; }""",
    "told otherwise each way": """let ins: list<{k: string, n: i64}> = bag_minus(x.ins, x.del, fn(r) => r.k);
        let del: list<{k: string, n: i64}> = bag_minus(x.del, x.ins, fn(r) => r.n);
        emit o {t: x.t, ins: ins, del: del};""",
    "told by what is made": """let ins = bag_minus(x.ins, x.del, fn(r) => {k: concat(r.k, "!"), n: r.n + 1});
        emit o {t: len(ins), ins: ins, del: [r for r in bag_minus(x.del, x.ins, fn(r) => len(r.k) + r.n)]};""",
}


@pytest.mark.some(6)
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("name", COMPARED)
def test_lists_that_are_compared_both_ways(name: str, debug: bool) -> None:
    op = operator(
        f"""input d: {DELTA}; output o: {DELTA};
        operator f(d: {DELTA}) -> (o: {DELTA}) {{ on d(x) {{ {COMPARED[name]} }} }}
        (o) <- f(d);"""
    )
    chance = seeds.chance("native sending", 11)

    def rows(most: int, kinds: int) -> tuple[Any, ...]:
        return tuple(
            (f"key {chance.randrange(kinds)} " * 3, int(chance.random() < 0.1))
            for _ in range(chance.randrange(most))
        )

    sizes = [(3, 2), (6, 3), (40, 200), (90, 30)]
    items = [(i, rows(*sizes[i % 4]), rows(*sizes[i % 4])) for i in range(200)]
    agree(op, items, debug=debug)
