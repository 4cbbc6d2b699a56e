"""Native code does what the evaluator does, to the bit, traps included: random bodies and those of `tests/bodies`."""

from __future__ import annotations

import gc
import os
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings

pytest.importorskip("llvmlite")

from backends.native import NativeOperator, compile_native, jit
from backends.native import shared as native_code
from river.diagnostics import Rejected
from river.il.parse import parse
from river.il.pretty import pretty
from river.il.templates import Library
from river.il.verify import verify
from river.lang import check, typed
from river.lang import types as t
from river.lang.evaluate import Trap, compile_operator, freeze_variables
from river.lang.values import default
from river.source import Source
from river.testing.body_strategies import BodyCase, bodies
from river.testing.value_strategies import values_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FOLDER = Path(__file__).resolve().parents[1] / "bodies"
SEEN: Counter[str] = Counter()


@pytest.fixture(scope="module", autouse=True)
def _rate() -> Iterator[None]:
    yield
    print(f"\nnative: {dict(SEEN)}")


def evaluated(op: typed.Operator, states: Sequence[Any], name: str, rows: Sequence[tuple[Any, ...]]) -> Any:
    """Items by output, final variables, and the trap if there was one, with its row."""
    body = compile_operator(op)
    variables, outs = list(states), [[] for _ in op.outs]
    for row, slots in enumerate(rows):
        before = [len(out) for out in outs]
        try:
            match name.split("."):
                case ["item", port]:
                    fire = body.item[int(port)]
                    assert fire is not None
                    fire(variables, slots[0], outs)
                case ["phase", index]:
                    body.phases[int(index)](variables, slots[0], outs)
                case ["cycle"]:
                    body.phases[slots[0]](variables, slots[1], outs)
                case ["merge"]:
                    assert body.merge is not None
                    body.merge(variables, slots[0], slots[1:], outs)
                case ["mark"]:
                    assert body.mark is not None
                    body.mark(variables, slots[0], outs)
                case _:
                    fire = body.first if name == "first" else body.rated
                    assert fire is not None
                    fire(variables, slots, outs)
        except Trap as trap:
            for out, size in zip(outs, before, strict=True):
                del out[size:]
            return outs, None, (trap.code, trap.site, row)
    return outs, freeze_variables(op, variables), None


def merged(op: typed.Operator, sides: list[list[Any]]) -> list[tuple[Any, ...]]:
    """The rows of the merge of ordered inputs: the key, and the item of each side that has it."""
    assert op.merge is not None
    places = [0] * len(sides)
    keys = [key_of(op, port) for port in op.merge.ports]
    rows: list[tuple[Any, ...]] = []
    while any(place < len(side) for place, side in zip(places, sides, strict=True)):
        heads = [
            side[p][k] if p < len(side) else None for side, p, k in zip(sides, places, keys, strict=True)
        ]
        key = min(head for head in heads if head is not None)
        found = [side[p] if h == key else None for side, p, h in zip(sides, places, heads, strict=True)]
        places = [p + (item is not None) for p, item in zip(places, found, strict=True)]
        rows.append((key, *found))
    return rows


def in_phases(op: typed.Operator, native: NativeOperator, items: list[list[Any]]) -> list[tuple[Any, ...]]:
    """The rows of whole cycles: the phase and the item."""
    rows: list[tuple[Any, ...]] = []
    left = dict(zip(native.cycle_ports, map(list, items), strict=True))
    while True:
        for i, phase in enumerate(op.phases):
            for _ in range(phase.count):
                if not left[phase.port]:
                    length = sum(each.count for each in op.phases)
                    return rows[: len(rows) // length * length]
                rows.append((i, left[phase.port].pop(0)))


def key_of(op: typed.Operator, port: int) -> int:
    type_ = op.ports[port].type
    assert isinstance(type_, t.Record)
    return [name for name, _ in type_.fields].index(op.ports[port].by or "")


def agrees(
    op: typed.Operator, native: NativeOperator, states: Sequence[Any], name: str, slots: list[list[Any]]
) -> None:
    """Both give the same on these slots of a handler (windows: the items of the queue)."""
    handler = native.handler(name)
    rows: list[tuple[Any, ...]] = list(zip(*slots, strict=False))
    if name in ("first", "rated"):
        windows: list[list[Any]] = []
        for items, slot, pop in zip(slots, handler.slots, handler.pops, strict=True):
            assert isinstance(slot, t.Array)
            firings = 1 if name == "first" else (len(items) - slot.size) // pop + 1 if pop else 1
            windows.append([tuple(items[i * pop : i * pop + slot.size]) for i in range(firings)])
        rows = list(zip(*windows, strict=False))
    if name == "merge":
        rows = merged(op, slots)
    if name == "cycle":
        rows = in_phases(op, native, slots)
    outs, variables, trap = evaluated(op, states, name, rows)
    for variable, value in zip(native.variables, states, strict=True):
        variable.set(value)
    found, fired = native.fire_batch(slots, name)
    got = None if fired.trap is None else (fired.trap.code, fired.trap.site, fired.trap.row)
    assert got == trap
    assert repr(list(found)) == repr(outs)
    if variables is not None:
        assert fired.row == len(rows)
        assert repr([variable.get() for variable in native.variables]) == repr(list(variables))


def compare(case: BodyCase, *, debug: bool) -> None:
    """One random body, both ways."""
    try:
        op = check.operator(case.operator, case.scope)
    except Rejected:
        SEEN["rejected by the checker"] += 1
        return
    assert isinstance(op, typed.Operator)
    native = compile_native(op, debug=debug)
    assert isinstance(native, NativeOperator), f"{native}\n{pretty(case.program)}"
    SEEN["compiled"] += 1
    try:
        agrees(op, native, case.states, "item.0" if op.rated is None else "rated", [list(case.items)])
    except AssertionError as wrong:
        raise AssertionError(f"{wrong}\n{pretty(case.program)}") from None


@pytest.mark.slow
@settings(max_examples=min(15, settings().max_examples // 3))
@given(bodies(firings=4))
def test_random_bodies(case: BodyCase) -> None:
    compare(case, debug=False)


CHUNK = 50
CASES = int(os.environ.get("RIVER_CASES", "0"))  # of each of the two tests below


def chunks(count: int) -> Any:
    """The number of a chunk, and how many cases it has."""
    of = [(n, min(CHUNK, count - start)) for n, start in enumerate(range(0, count, CHUNK))]
    return pytest.mark.parametrize(("chunk", "cases"), of, ids=[str(n) for n, _ in of])


@pytest.fixture
def _forgotten(monkeypatch: pytest.MonkeyPatch, others_are_no_garbage: None) -> Iterator[None]:
    """What is compiled here is neither kept on disk nor stays mapped: tens of thousands of modules are gigabytes."""
    monkeypatch.setattr(native_code, "kept", lambda _parts, build: build())
    known, before = dict(native_code._KNOWN), len(jit._linker().linked)
    yield
    gc.collect()  # operators give their memory back by code that is still there
    native_code._KNOWN.clear()
    native_code._KNOWN.update(known)
    jit._callable.cache_clear()
    jit._linker().forget(before)


@pytest.mark.slow
@pytest.mark.usefixtures("_forgotten")
@chunks(CASES or 50)
def test_many_random_bodies(chunk: int, cases: int) -> None:
    _many(cases, debug=False)


@pytest.mark.slow
@pytest.mark.usefixtures("_forgotten")
@chunks(CASES or 10)
def test_many_random_bodies_that_check_themselves(chunk: int, cases: int) -> None:
    _many(cases, debug=True)


def _many(cases: int, *, debug: bool) -> None:
    """The cases of a chunk; other ones in each chunk."""

    @settings(max_examples=cases, database=None)
    @given(bodies(firings=4))
    def run(case: BodyCase) -> None:
        compare(case, debug=debug)

    run()


@cache
def operators() -> dict[str, typed.Operator]:
    found: dict[str, typed.Operator] = {}
    for path in sorted(FOLDER.glob("*.river")):
        graph = verify(parse(Source(path.name, path.read_text(encoding="utf-8"))), Library.of({}))
        for instance in graph.instances:
            if isinstance(instance.operator, typed.Operator):
                found[f"{path.stem}-{instance.operator.name}"] = instance.operator
    return found


@pytest.mark.some(20)
@pytest.mark.parametrize("debug", [False, True], ids=["fast", "checks"])
@pytest.mark.parametrize("name", sorted(operators()))
def test_the_hard_operators(name: str, *, debug: bool) -> None:
    op = operators()[name]
    native = compile_native(op, debug=debug)
    assert isinstance(native, NativeOperator), native

    @settings(max_examples=4)
    @given(_inputs(native))
    def check_inputs(inputs: list[list[list[Any]]]) -> None:
        for handler, slots in zip(native.handlers, inputs, strict=True):
            agrees(op, native, [default(var.type) for var in op.vars], handler.name, slots)

    check_inputs()


def _inputs(native: NativeOperator) -> Any:
    from hypothesis import strategies as st

    def items(name: str, slot: t.Type) -> Any:
        rated = name in ("first", "rated") and isinstance(slot, t.Array)
        low = slot.size if rated else 0  # pyright: ignore[reportAttributeAccessIssue]
        return st.lists(values_of(slot.item if rated else slot), min_size=low, max_size=low + 5)  # pyright: ignore[reportAttributeAccessIssue]

    def handler(each: Any) -> Any:
        columns = st.tuples(*(items(each.name, slot) for slot in each.slots))
        if each.name == "merge":
            assert native.operator.merge is not None
            keys = [key_of(native.operator, port) for port in native.operator.merge.ports]
            return columns.map(
                lambda found: [sorted(c, key=lambda x: x[k]) for c, k in zip(found, keys, strict=True)]
            )
        if each.name in ("first", "rated"):
            return columns.map(list)
        return columns.map(lambda found: [list(column[: min(map(len, found))]) for column in found])

    return st.tuples(*map(handler, native.handlers)).map(list)
