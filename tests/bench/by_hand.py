"""What a data engineer writes for Spark by hand, without River: the same rows as programs of ours give, for benchmarks.

Functions are given a session, and files of Parquet by the names of the inputs; they give the DataFrames of the outputs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def log_analyser(spark: Any, files: Mapping[str, str]) -> dict[str, Any]:
    """How often each text stands in each column."""
    read = spark.read.parquet(files["logRecord"])
    names = {"queryOrigins": "origin", "queryTargets": "target"}
    return {table: read.groupBy(column).count().toDF("url", "count") for table, column in names.items()}


GROUPED = """
with changes as (
  select ts, k, 1 as c, v from t
  union all select ts + 301, k, -1, -v from t where ts + 301 <= (select max(ts) from t)
), told as (
  select ts, k, sum(c) as c, sum(v) as v from changes group by ts, k
), sums as (
  select ts, k, sum(c) over w as n, sum(v) over w as w from told window w as (partition by k order by ts)
), steps as (
  select ts, k, n, w, lag(n, 1, 0) over o as m, lag(w, 1, 0) over o as u from sums
  window o as (partition by k order by ts)
)
select ts, each.op, k, each.n, each.w from (
  select ts, k, explode(filter(array(
    named_struct('op', '-', 'n', m, 'w', u), named_struct('op', '+', 'n', n, 'w', w)
  ), each -> each.n > 0 and (n != m or w != u))) as each from steps
)
"""
"""The change log of `range 300 group by`: running sums of what comes and of what goes, and rows where they have changed."""


def grouped(spark: Any, files: Mapping[str, str]) -> dict[str, Any]:
    """How many rows of the last 300 there are by key, and what they add up to: its change log."""
    spark.read.parquet(files["t"]).createOrReplaceTempView("t")
    return {"o": spark.sql(GROUPED)}


JOINED = """
select greatest(a.ts, b.ts) as ts, k, v, w from a join b on k = j and b.ts between a.ts - 300 and a.ts + 300
"""


def joined(spark: Any, files: Mapping[str, str]) -> dict[str, Any]:
    """Rows of two streams with equal keys and at most 300 apart."""
    for name in "ab":
        spark.read.parquet(files[name]).createOrReplaceTempView(name)
    return {"o": spark.sql(JOINED)}


TOLLS = """
with seen as (
  select *, lag(struct(xway, dir, seg)) over (partition by car order by ts) as before,
    avg(speed) over (partition by xway, dir, seg order by ts range between 300 preceding and current row) as speeds,
    size(collect_set(car) over (partition by xway, dir, seg order by ts range between 30 preceding and current row)) as cars
  from reports
)
select ts, car, xway, dir, seg, cast(2 * (cars - 50) * (cars - 50) as bigint) as toll from seen
where speeds < 40 and cars > 50 and (before is null or before != struct(xway, dir, seg))
"""


def tolls(spark: Any, files: Mapping[str, str]) -> dict[str, Any]:
    """What cars pay that enter a congested stretch (`examples/linear_road`)."""
    spark.read.parquet(files["reports"]).createOrReplaceTempView("reports")
    return {"tolls": spark.sql(TOLLS)}


RATE, TAPS = 64_000.0, 32


def taps(cutoff: float, rate: float = RATE) -> Any:
    """A sinc under a Hamming window."""
    import numpy as np

    at = np.arange(TAPS)
    turn = 2 * math.pi * cutoff / rate
    x = at - (TAPS - 1) / 2
    return (np.sin(turn * x) / (math.pi * x) * (0.54 - 0.46 * np.cos(2 * math.pi * at / (TAPS - 1)))).astype(
        "f4"
    )


def radio_of(batches: Iterator[Any]) -> Iterator[Any]:
    """The FM radio (`examples/fm_radio`) on all samples: one task has them all in memory."""
    import numpy as np
    import pyarrow as pa

    found = list(batches)
    if not found:
        return
    samples = pa.Table.from_batches(found).column(0).combine_chunks().to_numpy()

    def low_pass(signal: Any, cutoff: float, every: int = 1, rate: float = RATE) -> Any:
        return np.convolve(signal, taps(cutoff, rate)[::-1], "valid")[::every]

    front = low_pass(samples, 28_000)
    phase = np.float32(-4) * front[:-1] * front[1:]
    base = low_pass(phase, 3_600, 8)
    edges = [low_pass(base, 200 * 2**n, rate=RATE / 8) for n in range(5)]
    bands = [
        np.float32(gain) * (high - low)
        for gain, low, high in zip((0.5, 1, 2, 1), edges, edges[1:], strict=False)
    ]
    yield pa.record_batch([pa.array(sum(bands[1:], bands[0]))], ["value"])


def radio(spark: Any, files: Mapping[str, str]) -> dict[str, Any]:
    """Sound, of what the antenna gives."""
    samples = spark.read.parquet(files["input"]).coalesce(1)
    return {"output": samples.mapInArrow(radio_of, "value float")}
