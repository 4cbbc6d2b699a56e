"""Programs on Spark beside the same written by hand as DataFrames, on `local[2]`: seconds of all processors, and by the clock.

Everything is read from files of Parquet and written to folders of Parquet, with the same rows, which is checked first. River
runs in two ways: over files, which executors read themselves (`--backend spark`), and over DataFrames (`on_spark`). Ways take
turns, in one session, after a run each that is not counted. Processors are those of Spark's processes and of this one.

Run: python tests/bench/bench_frames.py [NAME ...] [--runs N], where NAME is one of analyser, grouped, joined, tolls, radio
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import by_hand
import measure
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen
from processes import family, seconds

import river

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from river.driver import Compiled

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLES: Final = ROOT / "examples"
GROUPED: Final = """t: {ts: int; k: int; v: int} stream by ts;
output o: relation = select k, count(*) as n, sum(v) as w from t[range 300] group by k;"""
JOINED: Final = """a: {ts: int; k: int; v: int} stream by ts; b: {ts: int; j: int; w: int} stream by ts;
output o: stream = istream(select k, v, w from a[range 300], b[range 300] where k = j);"""

Tables = dict[str, pa.Table]


@frozen
class Contest:
    """A program, its data, and the same by hand. `target`: what River may take of that, in seconds of processors."""

    title: str
    program: Callable[[], Compiled]
    data: Callable[[int, Any], Tables]
    rows: int
    hand: Callable[[Any, Mapping[str, str]], dict[str, Any]]
    target: float
    order_by: Mapping[str, list[str]] | None = None


def requests(rows: int, choice: Any) -> Tables:
    """A log: from where, and where to."""
    texts = pa.array([f"http://example.org/{n}" for n in range(10_000)])
    columns = {name: texts.take(pa.array(choice.integers(0, 10_000, rows))) for name in ("origin", "target")}
    return {"logRecord": pa.table(columns)}


def keyed(rows: int, choice: Any) -> Tables:
    """Numbers with a thousand keys, four to an instant."""
    stamps = np.sort(choice.integers(0, rows // 4, rows))
    found = {"ts": stamps, "k": choice.integers(0, 1000, rows), "v": choice.integers(0, 100, rows)}
    return {"t": pa.table(found)}


def two(rows: int, choice: Any) -> Tables:
    """Two streams with keys that meet."""
    both = keyed(rows, choice)["t"]
    names = {"a": ["ts", "k", "v"], "b": ["ts", "j", "w"]}
    return {
        name: both.take(pa.array(np.arange(part, rows, 4))).rename_columns(columns)
        for part, (name, columns) in enumerate(names.items())
    }


def reports(rows: int, choice: Any) -> Tables:
    """Cars on twenty miles of an expressway, each of which reports a hundred times, every thirty seconds."""
    count = rows // 100
    car = np.repeat(np.arange(count), 100)
    began = np.repeat(choice.integers(0, 3600, count), 100)
    ts = began + np.tile(np.arange(100) * 30, count)
    way = car % 2
    speed = np.clip(np.rint(choice.normal(58, 6, rows)), 5, None).reshape(count, 100)
    mile = (np.cumsum(speed, axis=1) * 30 / 3600).reshape(rows) + np.repeat(
        choice.integers(0, 20, count), 100
    )
    seg = mile.astype(np.int64) % 20
    jam = (seg % 7 == 3) & (way == 0)
    slow = np.clip(np.rint(choice.normal(18, 4, rows)), 5, None)
    speeds = np.where(jam, slow, speed.reshape(rows)).astype(np.int64)
    order = np.lexsort((car, ts))
    columns = {
        "ts": ts,
        "car": car,
        "speed": speeds,
        "xway": np.zeros(rows, np.int64),
        "dir": way,
        "seg": seg,
    }
    return {"reports": pa.table({name: column[order] for name, column in columns.items()})}


def signal(rows: int, choice: Any) -> Tables:
    """Two tones on a carrier, with noise."""
    at = np.arange(rows) / by_hand.RATE
    tones = (np.sin(2 * math.pi * 440 * at) + np.sin(2 * math.pi * 1_800 * at)) / 2
    phase = 2 * math.pi * np.cumsum(by_hand.RATE / 4 + 3_000 * tones) / by_hand.RATE
    return {"input": pa.table({"value": (np.cos(phase) + choice.normal(0, 0.01, rows)).astype(np.float32)})}


CONTESTS: Final = {
    "analyser": Contest(
        "log analyser",
        lambda: river.load(str(EXAMPLES / "log_analyzer/query_log.szl")),
        requests,
        2_000_000,
        by_hand.log_analyser,
        1.0,
    ),
    "grouped": Contest(
        "range 300, group by", lambda: river.compile(GROUPED, "cql"), keyed, 400_000, by_hand.grouped, 1.0
    ),
    "joined": Contest(
        "range 300, join by key", lambda: river.compile(JOINED, "cql"), two, 400_000, by_hand.joined, 1.0
    ),
    "tolls": Contest(
        "Linear Road tolls",
        lambda: river.load(str(EXAMPLES / "linear_road/tolls.cql")),
        reports,
        400_000,
        by_hand.tolls,
        0.5,
    ),
    "radio": Contest(
        "FM radio",
        lambda: river.load(str(EXAMPLES / "fm_radio/fm_radio.str")),
        signal,
        400_000,
        by_hand.radio,
        1.0,
    ),
}


def contest(spark: Any, this: Contest, rows: int, runs: int) -> None:
    """Prints the median of each way, and what River's takes of the one by hand."""
    program = this.program()
    with TemporaryDirectory() as name:
        folder = Path(name)
        files: dict[str, str] = {}
        for input_, table in this.data(rows, np.random.default_rng(7)).items():
            files[input_] = str(folder / f"{input_}.parquet")
            pq.write_table(table, files[input_], row_group_size=1 << 18)
        outputs = list(this.hand(spark, files))
        places = {
            way: {output: folder / way / output for output in outputs} for way in ("files", "frames", "hand")
        }

        (folder / "files").mkdir()

        def over_files() -> None:
            targets = {output: f"{place}/" for output, place in places["files"].items()}
            program.run(files, targets, backend="spark", workers=2, mode="overwrite")

        def over_frames() -> None:
            found = program.on_spark({name: spark.read.parquet(file) for name, file in files.items()})
            for output, place in places["frames"].items():
                found[output].write.mode("overwrite").parquet(str(place))

        def hand() -> None:
            for output, frame in this.hand(spark, files).items():
                frame.write.mode("overwrite").parquet(str(places["hand"][output]))

        ways = {"river, files": over_files, "by hand": hand}
        if this.hand is not by_hand.radio:  # frames have no order, and samples no time stamp
            ways = {"river, files": over_files, "river, frames": over_frames, "by hand": hand}
        race(this, ways, runs)
        given = [way for way in places if (folder / way).is_dir()]
        for output in outputs:
            found = [rows_of(places[way][output]) for way in given]
            if not all(same(each, found[-1]) for each in found):
                raise AssertionError(f"`{output}` has other rows by hand")


def race(this: Contest, ways: Mapping[str, Callable[[], None]], runs: int) -> None:
    """Lets ways take turns."""
    walls: dict[str, list[float]] = {way: [] for way in ways}
    spent: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(runs + 1):
        for way, run in ways.items():
            measure.turn()
            cpu, before = seconds(family()), time.perf_counter()
            run()
            wall, cpu = time.perf_counter() - before, seconds(family()) - cpu
            if number:
                walls[way].append(wall)
                spent[way].append(cpu)
    measure.record(f"frames, {this.title}", walls)
    middle = {way: statistics.median(found) for way, found in spent.items()}
    for way in ways:
        ratio = "" if way == "by hand" else f", {middle[way] / middle['by hand']:.2f} of that by hand"
        clock = statistics.median(walls[way])
        print(
            f"{this.title:24} {way:16} {middle[way]:7.2f} s of processors{ratio}, {clock:.2f} s by the clock"
        )
    best = min(middle[way] for way in ways if way != "by hand") / middle["by hand"]
    print(f"{this.title:24} target {this.target}: {'met' if best <= this.target else 'missed'}", flush=True)


def rows_of(place: Path) -> Any:
    """The rows of a folder's files, in the order of their names: numbers of a sound, or else in that of their values."""
    table = pa.concat_tables([pq.read_table(file) for file in sorted(place.glob("*.parquet"))])
    if pa.types.is_floating(table.schema.types[0]):
        return table.column(0).to_numpy()
    columns = [column.cast(pa.string()).to_pylist() for column in table.columns]
    return sorted(zip(*columns, strict=True))


def same(one: Any, other: Any) -> bool:
    """Whether rows are equal, and sounds nearly: sums of floats depend on their order."""
    return np.allclose(one, other, atol=1e-4) if isinstance(one, np.ndarray) else one == other


def main() -> None:
    """Prints lines for each contest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*CONTESTS, []], default=[])
    parser.add_argument("--rows", type=int, help="of each contest")
    parser.add_argument("--runs", type=int, default=7)
    given = parser.parse_args()
    spark = measure.spark()
    spark.conf.set("spark.sql.shuffle.partitions", "2")  # who has two processors says so
    measure.begin("programs on Spark")
    for name in given.names or CONTESTS:
        contest(spark, CONTESTS[name], given.rows or CONTESTS[name].rows, given.runs)


if __name__ == "__main__":
    main()
