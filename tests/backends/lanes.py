"""Operators fired by the evaluator, one by one by machine code, and side by side, and whether all three agree."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, Any

from backends.native import Fired, NativeOperator, compile_native
from backends.native.batch import Batch
from backends.native.jit import host
from backends.native.lanes import Lanes, Scalar, lanes_of
from backends.native.lower.batches import Lowered, lower
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import typed
from river.lang.evaluate import Trap, compile_operator
from river.lang.values import default
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWER = 7  # rows, than any block in lanes has


def operator(text: str, x: str = "f32", y: str | None = None) -> typed.Operator:
    """The operator `f` from x to y of a program."""
    return instance(f"river 1;\ninput x: {x};\noutput y: {y or x};\n{text}\n(y) <- f(x);\n")


def instance(program: str) -> typed.Operator:
    """The only operator of a program."""
    graph = verify(parse(Source("lanes.river", program)), Library.of({}))
    (found,) = graph.instances
    assert isinstance(found.operator, typed.Operator)
    return found.operator


def native(op: typed.Operator) -> NativeOperator:
    """Its machine code."""
    found = compile_native(op)
    assert isinstance(found, NativeOperator), found
    return found


def plan(op: typed.Operator) -> Lanes | Scalar:
    """Whether its firings can run side by side."""
    (found,) = lanes_of(op).values()
    return found


Ran = tuple[list[Any], "tuple[str, int | None, int] | None"]


def rates(op: typed.Operator) -> tuple[typed.Rate, ...]:
    """What a firing takes of each input."""
    return op.rated.rates if op.rated is not None else (typed.Rate(0, 1, 1),)


def firings(op: typed.Operator, columns: Sequence[Sequence[Any]]) -> int:
    """How many firings the items of the inputs are enough for."""
    return min((len(items) - r.peek) // r.pop + 1 for items, r in zip(columns, rates(op), strict=True))


def evaluated(op: typed.Operator, columns: Sequence[Sequence[Any]]) -> Ran:
    """The items that come out, and the trap: code, site, row."""
    body, variables, outs = compile_operator(op), [default(v.type) for v in op.vars], [[] for _ in op.outs]
    for row in range(firings(op, columns)):
        before = [len(out) for out in outs]
        windows = tuple(
            tuple(items[row * r.pop : row * r.pop + r.peek])
            for items, r in zip(columns, rates(op), strict=True)
        )
        try:
            if op.rated is not None:
                assert body.rated is not None
                body.rated(variables, windows, outs)
            else:
                fire = body.item[0]
                assert fire is not None
                fire(variables, windows[0][0], outs)
        except Trap as trap:
            for out, size in zip(outs, before, strict=True):
                del out[size:]
            return outs, (trap.code, trap.site, row)
    return outs, None


def fired(found: NativeOperator, columns: Sequence[Sequence[Any]], step: int) -> Ran:
    """The same by machine code, `step` rows at once."""
    op = found.operator
    name = "item.0" if op.rated is None else "rated"
    batches = [Batch.of(op.ports[r.port].type, items) for items, r in zip(columns, rates(op), strict=True)]
    addresses = [address for batch in batches for address in batch.addresses]
    rows = firings(op, columns)
    outs: list[list[Any]] = [[] for _ in op.outs]
    for row in range(0, rows, step):
        end = min(row + step, rows)
        how = found.fire(name, addresses, row, end)
        for out, values in zip(outs, found.outputs, strict=True):
            out += values.batch().values()
        found.clear()
        if how.trap is not None:
            assert how.trap.row == how.row
            return outs, (how.trap.code, how.trap.site, how.row)
        assert how == Fired(end)
    return outs, None


def bits(ran: Ran) -> str:
    """All of it as text; every float has its own, NaN has one."""
    return repr(ran)


def agree(op: typed.Operator, *columns: Sequence[Any]) -> Ran:
    """Evaluator, scalar code and lanes give the same."""
    found = native(op)
    expected = evaluated(op, columns)
    assert bits(fired(found, columns, FEWER)) == bits(expected)
    assert bits(fired(found, columns, 1 << 30)) == bits(expected)
    return expected


def in_lanes(op: typed.Operator, *columns: Sequence[Any]) -> Ran:
    """`agree`, and it was in lanes."""
    lowered = lower(op, host().architecture)
    assert isinstance(lowered, Lowered)
    ((_, how),) = lowered.lanes
    assert isinstance(how, Lanes), how
    assert isinstance(plan(op), Lanes)
    return agree(op, *columns)


def single(value: float) -> float:
    """A number rounded to f32."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


SPECIAL = (
    0.0,
    -0.0,
    float("inf"),
    float("-inf"),
    float("nan"),
    1e-40,
    -1e-45,
    3.4e38,
    -3.4e38,
    0.5,
    -0.5,
    1.5,
)


def numbers(type_: str, count: int, seed: int, *, wild: bool = True) -> list[Any]:
    """Items, some of them strange."""
    chance = random.Random(seed)
    if type_ == "bool":
        return [chance.random() < 0.5 for _ in range(count)]
    if type_ in ("f32", "f64"):
        made = [
            chance.choice(SPECIAL) if wild and chance.random() < 0.12 else chance.gauss(0, 3)
            for _ in range(count)
        ]
        return [single(x) for x in made] if type_ == "f32" else made
    high = 1 << (30 if type_ == "i32" else 62)
    rare = chance.choice((0.0, 0.0, 0.01)) if wild else 0.0
    return [
        chance.choice((high, -high)) if chance.random() < rare else chance.randrange(-30, 30)
        for _ in range(count)
    ]
