"""An equi-join of two streams within 60 seconds in Flink's SQL; prints the seconds of the processor that it took.

They are those of the virtual machine from when it has started: all of Flink runs in threads of that process.

Run: python tests/bench/peers/flink_join.py LEFT RIGHT ANSWER (bench_relations.py does)
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from pyflink.java_gateway import get_gateway
from pyflink.table import EnvironmentSettings, TableEnvironment

LEFT, RIGHT, ANSWER = map(Path, sys.argv[1:])
FIRST = 1_000_000
"""What instants begin with: Flink drops rows of the time 0."""

table: Any = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
for name, value in {
    "parallelism.default": "1",
    "rest.bind-address": "127.0.0.1",
    "rest.address": "127.0.0.1",
    "pipeline.object-reuse": "true",
    "table.local-time-zone": "UTC",
    "fs.local.block-size": str(1 << 32),
}.items():
    table.get_config().set(name, value)
folder = ANSWER.with_suffix(".parts")
for name, path, column in (("l", LEFT, "a"), ("r", RIGHT, "b")):
    plain = path.with_suffix(".plain")
    plain.write_text(path.read_text().split("\n", 1)[1])
    table.execute_sql(
        f"create table {name} (ts bigint, k int, {column} int, rt as to_timestamp_ltz((ts + {FIRST}) * 1000, 3),"
        f" watermark for rt as rt - interval '0.001' second)"
        f" with ('connector' = 'filesystem', 'path' = '{plain}', 'format' = 'csv')"
    )
table.execute_sql(
    "create table answer (ts bigint, k int, a int, b int)"
    f" with ('connector' = 'filesystem', 'path' = '{folder}', 'format' = 'csv')"
)
name = get_gateway().jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getName()
used = Path("/proc") / name.split("@")[0] / "stat"


def seconds() -> float:
    """Of the processor, that the virtual machine has had."""
    return sum(map(int, used.read_text().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


began = seconds()
table.execute_sql(
    "insert into answer select greatest(l.ts, r.ts), l.k, l.a, r.b from l join r on l.k = r.k"
    " and l.rt between r.rt - interval '60' second and r.rt + interval '60' second"
).wait()
print(seconds() - began)
with ANSWER.open("w") as out:
    out.write("ts,k,a,b\n")
    for part in sorted(each for each in folder.rglob("*") if each.is_file()):
        out.write(part.read_text())
shutil.rmtree(folder)
