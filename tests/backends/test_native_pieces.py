"""Programs over Arrow files whose columns are read in pieces: the answers that the evaluator gives, to the last item."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import ipc

pytest.importorskip("llvmlite")

from river.driver import compile_source
from river.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from river.driver import Compiled

RATED = """float->float pipeline Rated {
  add Sums;
  add Products;
}
float->float filter Sums {
  work peek 64 pop 5 push 1 {
    float sum = 0;
    for (int i = 0; i < 64; i++) sum += peek(i) * i;
    push(sum);
    for (int i = 0; i < 5; i++) pop();
  }
}
float->float filter Products { work peek 2 pop 1 push 1 { push(peek(0) * peek(1)); pop(); } }
"""

SENT_ON = """river 1;
input x: {a: i64, b: f32};
output y: {b: f32, a: i64};
operator turned(x: {a: i64, b: f32}) -> (y: {b: f32, a: i64}) { on x(v) { emit y {b: v.b, a: v.a}; } }
(y) <- turned(x);
"""

JOINED = """river 1;
input x: {k: i64, a: i64} by k;
input z: {k: i64, a: i64} by k;
output y: {k: i64, a: i64} by k;
operator both(x: {k: i64, a: i64} by k, z: {k: i64, a: i64} by k) -> (y: {k: i64, a: i64} by k) {
  on merge(x(v), z(w)) { if v is v { emit y v; } if w is w { emit y w; } }
}
(y) <- both(x, z);
"""


def rated() -> Compiled:
    return compile_source(Source("rated.str", RATED))


def written(path: Path, columns: dict[str, pa.Array], sizes: list[int]) -> Path:
    """A file with record batches of these sizes, and one of what is left."""
    table = pa.table(columns)
    with ipc.new_file(str(path), table.schema) as out:
        at = 0
        for size in [*sizes, len(table)]:
            for batch in table.slice(at, size).to_batches():
                out.write_batch(batch)
            at = min(at + size, len(table))
    return path


def floats(path: Path) -> bytes:
    with ipc.open_file(str(path)) as found:
        return array("f", found.read_all().column(0).to_pylist()).tobytes()


@pytest.mark.slow
@settings(deadline=None, max_examples=min(15, settings().max_examples // 2))
@given(
    st.lists(st.one_of(st.integers(1, 200), st.integers(1, 4000)), max_size=5),
    st.one_of(st.integers(0, 200), st.integers(0, 8000)),
    st.one_of(st.none(), st.integers(1, 3000)),
)
def test_windows_reach_over_pieces(
    tmp_path_factory: Any, sizes: list[int], rest: int, batch: int | None
) -> None:
    folder = tmp_path_factory.mktemp("pieces")
    signal = pa.array([(i * 37 % 101 - 50) / 8 for i in range(sum(sizes) + rest)], pa.float32())
    source = written(folder / "in.arrow", {"value": signal}, sizes)
    program = rated()
    options: dict[str, Any] = {} if batch is None else {"batch": batch}
    ours = folder / "ours.arrow"
    program.run({"input": str(source)}, {"output": str(ours)}, workers=1, **options)
    oracle = program.run({"input": signal.to_pylist()}, native="off")["output"]["value"]
    assert floats(ours) == array("f", oracle.to_pylist()).tobytes()
    assert len(floats(ours)) == 4 * max(0, (len(signal) - 64) // 5)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_long_signals_lose_nothing(tmp_path: Path, workers: int) -> None:
    values = array("f", [(i * 37 % 101 - 50) / 8 for i in range(1_500_003)])
    source = written(tmp_path / "in.arrow", {"value": pa.array(values, pa.float32())}, [700_001, 13, 65_536])
    program = rated()
    found, whole = tmp_path / "found.arrow", tmp_path / "whole.arrow"
    program.run({"input": str(source)}, {"output": str(found)}, workers=workers)
    program.run({"input": pa.table({"value": pa.array(values, pa.float32())})}, {"output": str(whole)})
    assert floats(found) == floats(whole)
    assert len(floats(found)) == 4 * ((1_500_003 - 64) // 5)


def test_columns_that_are_sent_on_keep_their_memory(tmp_path: Path) -> None:
    numbers = pa.array(range(500_000), pa.int64())
    columns = {"a": numbers, "b": numbers.cast(pa.float32())}
    source = written(tmp_path / "in.arrow", columns, [1000, 200_000, 7])
    program = compile_source(Source("sent.river", SENT_ON))
    found = program.run({"x": str(source)}, workers=1)["y"]
    assert found.equals(pa.table({"b": columns["b"], "a": numbers}, found.schema))


@pytest.mark.slow
@pytest.mark.parametrize("lateness", [0, 3])
def test_inputs_with_keys_are_merged(tmp_path: Path, lateness: int) -> None:
    sizes, rows = [100, 3, 5000], 20_000
    paths: dict[str, str] = {}
    given: dict[str, list[tuple[int, int]]] = {}
    for name, step in (("x", 3), ("z", 7)):
        keys = [i // step for i in range(rows)]
        if lateness:
            keys = [key - (i % 5 == 4 and key > lateness) * lateness for i, key in enumerate(keys)]
        table = {"k": pa.array(keys, pa.int64()), "a": pa.array(range(rows), pa.int64())}
        paths[name] = str(written(tmp_path / f"{name}.arrow", table, sizes))
        given[name] = list(zip(keys, range(rows), strict=True))
    program = compile_source(Source("joined.river", JOINED))
    found = program.run(paths, workers=1, lateness=lateness)["y"]
    ordered = {name: sorted(items, key=lambda row: row[0]) for name, items in given.items()}
    assert found.equals(program.run(ordered, native="off")["y"])
    assert len(found) == 2 * rows
