"""Rows gathered by instant without being copied, against the evaluator and against the same operator fired row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llvmlite")

import river
from backends.firing.gathers import Gathered, gathered, instants
from backends.native import Batch
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import typed
from river.lang import types as t
from river.source import Source
from river.testing import seeds

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
s: { ts: int; n: int; k: string } stream by ts;
counts: relation = select k, sum(n) as n from s[range 2] group by k;
all: stream by ts = select k, n from s;
"""
STREAM = """river 1;
type Row = {{ts: {key}, k: string, n: i64}};
type Kept = {{k: string}};
type Delta = {{tau: {key}, ins: list<Kept>, del: list<Kept>}};
input s: Row by ts; output o: Delta by tau;
var $now: {key}? = none; var $ins: list<Kept> = [];
operator f(x: Row by ts; $now: {key}?, $ins: list<Kept>) -> (out: Delta by tau) {{
  on x(r) {{
    if $now is now {{ if now < r.ts {{ emit out {{tau: {tau}, ins: $ins, del: []}}; $ins = []; {forget} }} }}
    $now = r.ts;
    {push}
  }}
  on mark(k) {{
    if $now is now {{ if now < k {{ emit out {{tau: now, ins: $ins, del: []}}; $ins = []; {forget} }} }}
    mark out k;
  }}
}}
@Steady() (o, $now, $ins) <- f(s, $now, $ins);"""


def stream(
    key: str = "i64", tau: str = "now", push: str = "push($ins, {k: r.k});", forget: str = "$now = none;"
) -> Any:
    text = STREAM.format(key=key, tau=tau, push=push, forget=forget)
    graph = verify(parse(Source("gathers.river", text)), Library.of({}))
    (instance,) = graph.instances
    assert isinstance(instance.operator, typed.Operator)
    return gathered(instance.operator)


def test_what_gathers() -> None:
    assert stream() == stream(key="time") == Gathered(0, (1,))
    assert stream(key="i32") is None
    assert stream(tau="now + 1") is None
    assert stream(push='push($ins, {k: "x"});') is None
    assert stream(push="if r.n > 0 { push($ins, {k: r.k}); }") is None
    assert stream(push="push($ins, {k: r.k}); push($ins, {k: r.k});") is None
    assert stream(forget="") is None


def test_instants_of_keys_that_do_not_ascend_are_not_told() -> None:
    type_ = t.Record((("ts", t.I64),))
    what = Gathered(0, (0,))
    for keys in ([3, 3, 4, 9], [1, 2, 3], [7]):
        taus, starts, count = instants(Batch.of(type_, [(key,) for key in keys]), what)
        assert list(taus)[:count] == sorted(set(keys))
        assert list(starts)[: count + 1] == [*(keys.index(key) for key in sorted(set(keys))), len(keys)]
    for keys in ([3, 1, 2], [1, 9, 2, 8, 2], [5, 4]):
        assert instants(Batch.of(type_, [(key,) for key in keys]), what)[2] == 0


@pytest.mark.some(2)
@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 3, 40])
@pytest.mark.parametrize("batch", [16, 4096])
def test_a_program_says_the_same(tmp_path: Path, most: int, batch: int) -> None:
    """`most`: rows of an instant."""
    chance = seeds.chance("gathers", most)
    lines, ts = ["ts,n,k"], 0
    while len(lines) < 900:
        lines += [
            f"{ts},{chance.randrange(9)},{chance.choice(['a', 'bb', 'a text of many letters'])}"
            for _ in range(chance.randrange(1, most + 1))
        ]
        ts += chance.choice([1, 1, 2, 5])
    program, data = tmp_path / "p.cql", tmp_path / "s.csv"
    program.write_text(PROGRAM)
    data.write_text("\n".join(lines) + "\n")

    def found(native: str, workers: int) -> tuple[Any, Any]:
        results = river.load(str(program)).run({"s": str(data)}, batch=batch, native=native, workers=workers)
        kept = {name: value for name, value in results.summary.variables.items() if name.startswith("s_")}
        return {name: sorted(map(str, results[name].to_pylist())) for name in ("counts", "all")}, kept

    meant = found("off", 1)
    assert found("on", 1) == meant
    assert found("on", 2) == meant
