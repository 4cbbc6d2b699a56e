"""The benchmark programs say what plain loops over their inputs say: in the calculus on tiny data, and on threads."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import river
from river.backend import BATCH
from tests.bench import data, kernels, oracle

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PROGRAMS = Path(__file__).parent / "bench" / "programs"
Row = tuple[Any, ...]

CQL = {
    "request_counts.cql": ("requests", "answers", data.requests, {"origins": 6}, oracle.request_counts),
    "count_changes.cql": ("requests", "changes", data.requests, {"origins": 6}, oracle.count_changes),
    "linear_road.cql": ("reports", "tolls", data.reports, {}, oracle.linear_road),
    "vwap.cql": ("ticks", "bargains", data.ticks, {"symbols": 3, "seconds": 1}, oracle.vwap),
}
SIZES = {
    "request_counts.cql": (
        ({"rows": 40, "seconds": 900}, "reference"),
        ({"rows": 700, "seconds": 900}, "multicore"),
    ),
    "count_changes.cql": (
        ({"rows": 40, "seconds": 900}, "reference"),
        ({"rows": 700, "seconds": 900}, "multicore"),
    ),
    "linear_road.cql": (
        ({"rows": 300, "seconds": 60, "segments": 1}, "reference"),
        ({"rows": 3_300, "seconds": 450, "segments": 2}, "multicore"),
    ),
    "vwap.cql": (({"rows": 60}, "reference"), ({"rows": 800}, "multicore")),
}


def run(program: str, rows: Iterable[Row], backend: str, name: str) -> dict[str, list[Row]]:
    """The rows of each output."""
    results = river.load(str(PROGRAMS / program)).run({name: list(rows)}, backend=backend)
    return {out: list(map(tuple, map(dict.values, results[out].to_pylist()))) for out in results.collected}


@pytest.mark.parametrize(
    ("program", "size", "backend"), [(p, *case) for p, cases in SIZES.items() for case in cases]
)
def test_queries(program: str, size: dict[str, int], backend: str) -> None:
    name, output, make, options, expected = CQL[program]
    rows = list(make(**size, **options))
    wanted = expected(rows)
    found = run(program, rows, backend, name)[output]
    assert [row[0] for row in found] == sorted(row[0] for row in found)
    assert Counter(found) == Counter(wanted)
    assert wanted


@pytest.mark.parametrize(("rows", "backend"), [(40, "reference"), (900, "multicore")])
def test_query_log(rows: int, backend: str) -> None:
    queries = list(data.queries(rows, origins=30, targets=20))
    found = run("query_log.szl", queries, backend, "query")
    for output, counts in zip(("origins", "targets"), oracle.query_log(queries), strict=True):
        assert found[output] == sorted(counts.items())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bands", "rows", "backend"), [(2, 400, "reference"), (10, 1_000, "multicore"), (2, 1_500, "multicore")]
)
def test_fm_radio(bands: int, rows: int, backend: str) -> None:
    text = (PROGRAMS / "fm_radio.str").read_text("utf-8").replace("BANDS = 10", f"BANDS = {bands}")
    signal = array("f", [value for (value,) in data.samples(rows)]).tolist()
    results = river.compile(text, lang="streamit").run({"input": signal}, backend=backend)
    found: Sequence[float] = results["output"]["value"].to_pylist()
    wanted = oracle.fm_radio(signal, bands)
    rms = math.sqrt(sum(x * x for x in wanted) / len(wanted))
    assert len(found) == len(wanted)
    assert max(abs(a - b) for a, b in zip(found, wanted, strict=True)) < 1e-3 * rms


@pytest.mark.slow
def test_fm_radio_to_the_end_and_to_the_bit() -> None:
    """Every answer that the samples are enough for comes, and is the evaluator's."""
    program = river.load(str(PROGRAMS / "fm_radio.str"))
    signal = array("f", [value for (value,) in data.samples(800)]).tolist()
    whole = program.run({"input": signal}, native="off")["output"]["value"].to_pylist()
    for samples in (0, 382, 383, 388, 699, 800):
        for batch in (BATCH, 17) if samples > 600 else (BATCH,):
            found = program.run({"input": signal[:samples]}, batch=batch)["output"]["value"].to_pylist()
            answers = max(0, (samples - 64) // 5 - 63)
            assert array("f", found) == array("f", whole[:answers])


@pytest.mark.parametrize("kind", data.KINDS)
def test_data_are_the_same_every_time(kind: str) -> None:
    make, columns = data.KINDS[kind]
    rows = list(make(50))
    assert rows == list(make(50))
    assert rows != list(make(50, seed=1))
    assert all(len(row) == len(columns) for row in rows)


SMALL: dict[str, tuple[tuple[int], dict[str, int]]] = {
    "visits": ((60,), {"servers": 3, "users": 2}),
    "webs": ((1,), {"pages": 40, "links": 3}),
    "tweets": ((60,), {}),
    "documents": ((60,), {"authors": 2}),
    "trades": ((60,), {"symbols": 3}),
    "quotes": ((60,), {"symbols": 3}),
}


@pytest.mark.parametrize("program", [name for name in kernels.BENCHES if name.endswith(".river")])
def test_kernels_on_two_workers_say_what_the_calculus_says(program: str) -> None:
    """As they are, and with annotations by hand; with less work for each item."""
    bench = kernels.BENCHES[program]
    inputs = {
        name: [*data.KINDS[kind][0](*SMALL[kind][0], **SMALL[kind][1])] for name, kind in bench.inputs.items()
    }
    found: list[Any] = []
    for compiled in (river.load(str(PROGRAMS / program)), kernels.annotated(program, bench)):
        quick = river.compile(
            re.sub(r"(work|model)\((.*), \d+\);", r"\1(\2, 3);", compiled.text), lang="river"
        )
        for backend, batch in (("reference", BATCH), ("multicore", 7)):
            results = quick.run(inputs, backend=backend, batch=batch, workers=2)
            found.append({out: results[out].to_pylist() for out in results.collected})
    assert all(each == found[0] for each in found)
    assert all(found[0].values())
