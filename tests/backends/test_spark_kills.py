"""Processes of a Spark cluster are killed while programs run there: nothing is lost, nothing comes twice, the order stays.

The cluster is a master and two workers on the loopback interface. Its executors run the Python that is here, so that those that
come for killed ones have nothing to unpack: that a Python without River runs what is packaged, `test_spark_cluster.py` tries.
`RIVER_CASES` says how often each kind of process is killed, in runs over files and in those that follow a folder.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
pytest.importorskip("pandas", reason="the extra `spark` is not installed")

import river
from river.testing.seeds import chance
from tests.backends.spark_cluster import LOOPBACK, below, cluster, end
from tests.patience import PATIENCE, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from tests.backends.spark_cluster import Cluster

pytestmark = pytest.mark.long

CASES = int(os.environ.get("RIVER_CASES", "1"))
LONG = 10 * PATIENCE
"""Seconds until a test gives up on a cluster that starts anew, beside other work."""
VICTIMS = ("python", "executor", "worker", "driver")
SETTINGS = {**LOOPBACK, "spark.pyspark.python": sys.executable}
"""Those of a driver, which may be started on any cluster."""


@pytest.fixture(scope="module")
def spark() -> Iterator[Cluster]:
    """On a disk: what tens of executors leave that are killed would fill the memory."""
    with (
        tempfile.TemporaryDirectory(prefix="river-kills-", dir="/var/tmp") as place,
        cluster(Path(place)) as found,
    ):
        yield found


# ------------------------------------------------------------------------------------------------------------ killing


class Killer:
    """Ends a process of a kind, at once. `driver`: the process of a driver, which is ended with its Java, or one of both is."""

    def __init__(self, spark: Cluster, victim: str, what: str) -> None:
        self.spark = spark
        self.victim = victim
        self.random = chance(what, victim)

    def kill(self, driver: subprocess.Popen[str]) -> None:
        """Where there is none of the kind yet, it is waited for."""
        random = self.random
        if self.victim == "driver":
            javas = {pid for pid, name in below({driver.pid}).items() if name.endswith("java")}
            end(random.choice([{driver.pid}, javas, {driver.pid, *javas}]))
            driver.wait(LONG)  # which does not live on without its Java
            return
        if self.victim == "worker":
            gone = self.spark.workers.pop(random.randrange(len(self.spark.workers)))
            end({gone.pid})
            gone.wait()
            self.spark.add_worker()
            return
        found: list[int] = []

        def there() -> bool:
            under = below({worker.pid for worker in self.spark.workers})
            java = self.victim == "executor"
            found[:] = [pid for pid, name in under.items() if name and name.endswith("java") == java]
            return bool(found)

        until(there)
        chosen = random.choice(found)
        end(
            {chosen, *below({chosen})}
        )  # workers of Python outlive the daemon that has started them, and go on


class Driver:
    """A process that runs a program on the cluster; what it prints can be waited for."""

    def __init__(self, script: str, spark: Cluster, **told: Any) -> None:
        command = [sys.executable, "-c", script, json.dumps(told)]
        surroundings = {**os.environ, **spark.surroundings}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=surroundings
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.strip())
        self._lines.put("")

    def say(self, text: str) -> None:
        """Tells the process something."""
        assert self.process.stdin is not None
        print(text, file=self.process.stdin, flush=True)

    def hang_up(self) -> None:
        """Tells the process that nothing more is to be done."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def hears(self, text: str) -> None:
        """Waits for a line that it prints."""
        assert self._lines.get(timeout=LONG) == text

    def close(self) -> None:
        """Ends it."""
        end({self.process.pid, *below({self.process.pid})})
        self.process.wait()
        self._thread.join()
        self.hang_up()
        assert self.process.stdout is not None
        self.process.stdout.close()


# ---------------------------------------------------------------------------------------------------------- continuous

NUMBERED = """river 1;
input a: {k: i64, v: i64};
output o: {n: i64, k: i64, v: i64, total: i64};
var $n: i64 = 0;
var $t: map<i64, i64> = {};
operator number(x: {k: i64, v: i64}; $n: i64, $t: map<i64, i64>) -> (y: {n: i64, k: i64, v: i64, total: i64}) {
  on x(r) {
    $n = $n + 1;
    with t = $t[r.k] else 0 { t = t + r.v; emit y {n: $n, k: r.k, v: r.v, total: t}; }
  }
}
(o, $n, $t) <- number(a, $n, $t);
"""
"""Numbers rows, with sums by key: a row that is lost, comes twice or elsewhere changes all behind it."""

FOLLOWS = """
import json, sys, threading
import river
told = json.loads(sys.argv[1])
live = river.Live()
threading.Thread(target=lambda: (sys.stdin.readline(), live.stop()), daemon=True).start()
program = river.load(told["program"])
results = program.run(
    {"a": river.follow(told["folder"])}, {"o": told["out"]}, backend="spark", live=live, settings=told["settings"], workers=2,
    checkpoint=river.Checkpoint(told["state"], every=0.05),
)
print("done", flush=True)
"""


SMALL = """
from backends.spark import continuous, parts
continuous.SMALL, parts.LEAST = 0, 1
"""
"""Said before `FOLLOWS`: however few rows an epoch has, several tasks read them, and several have the keys."""

GROUPED = """
a: {k: int; v: int} stream by v;
o: relation = select k, count(*) as n, sum(v) as total from a[range 100] group by k;
"""
"""Rows go out of the window in files, and epochs, that come later."""


class Arrivals:
    """Files that come, a few rows in each."""

    def __init__(self, folder: Path, random: Random) -> None:
        folder.mkdir()
        self.folder = folder
        self.random = random
        self.rows = 0
        self.count = 0

    def come(self) -> None:
        """One more, whole."""
        more = self.random.randint(0, 300)
        lines = [f"{self.random.randrange(7)},{n}\n" for n in range(self.rows, self.rows + more)]
        self.rows += more
        name = f"{self.count:06}.csv"
        self.count += 1
        (self.folder / f".{name}").write_text("k,v\n" + "".join(lines))
        (self.folder / f".{name}").rename(self.folder / name)


def lines_of(paths: list[Path]) -> list[list[int]]:
    """The rows of files of text."""
    return [[*map(int, line.split(","))] for path in paths for line in path.read_text().splitlines()[1:]]


@pytest.mark.parametrize("victim", VICTIMS)
def test_runs_that_follow_a_folder(victim: str, spark: Cluster, tmp_path: Path) -> None:
    files, written = followed(Killer(spark, victim, "kills"), FOLLOWS, tmp_path / "p.river", NUMBERED)
    expected: list[list[int]] = []
    totals: dict[int, int] = {}
    for n, (k, v) in enumerate(lines_of(files), 1):
        totals[k] = totals.get(k, 0) + v
        expected.append([n, k, v, totals[k]])
    assert lines_of(written) == expected
    assert lines_of(sorted(written)) == expected


@pytest.mark.parametrize("victim", VICTIMS)
def test_runs_that_follow_a_folder_whose_keys_are_divided(
    victim: str, spark: Cluster, tmp_path: Path
) -> None:
    program = tmp_path / "p.cql"
    files, written = followed(Killer(spark, victim, "kills by key"), SMALL + FOLLOWS, program, GROUPED)
    (tmp_path / "all.csv").write_text("k,v\n" + "".join(f"{k},{v}\n" for k, v in lines_of(files)))
    wanted = tmp_path / "wanted.csv"
    river.load(str(program)).run({"a": str(tmp_path / "all.csv")}, {"o": str(wanted)})
    assert len(written) > len(river.epochs(tmp_path / "state"))
    assert known("p.cql", written) == known("p.cql", [wanted])


SUMMED = "a: {k: int, v: int} = input; o: table sum[k: int] of {n: int, total: int}; emit o[a.k] <- {1, a.v};"


@pytest.mark.parametrize("victim", VICTIMS)
def test_runs_that_follow_a_folder_whose_rows_are_accumulated(
    victim: str, spark: Cluster, tmp_path: Path
) -> None:
    """Tasks have shares of what came, and tables of their own."""
    script = SMALL.replace("= 0, 1", "= -1, 1") + FOLLOWS
    files, written = followed(Killer(spark, victim, "kills of shares"), script, tmp_path / "p.szl", SUMMED)
    totals: dict[int, list[int]] = {}
    for k, v in lines_of(files):
        found = totals.setdefault(k, [0, 0])
        found[0] += 1
        found[1] += v
    assert lines_of(written) == [[k, *found] for k, found in sorted(totals.items())]
    assert 2 in {len(each.states) for each in river.epochs(tmp_path / "state")}


def followed(killer: Killer, script: str, program: Path, text: str) -> tuple[list[Path], list[Path]]:
    """What a run that follows a folder has read, in order, and written, while processes were killed."""
    spark, random, place = killer.spark, killer.random, program.parent
    program.write_text(text)
    arrivals = Arrivals(place / "in", random)
    (place / "out.csv").mkdir()
    state = place / "state"
    told = {
        "program": str(program), "folder": f"{place}/in/", "out": f"{place}/out.csv/", "state": str(state),
        "settings": {**SETTINGS, "spark.master": spark.address},
    }  # fmt: skip
    driver = Driver(script, spark, **told)
    try:
        for _ in range(CASES):
            goes_on(driver, arrivals, state)
            until_moment(random.random(), arrivals.come)
            killer.kill(driver.process)
            if killer.victim == "driver":
                driver.close()
                spark.tidy()
                driver = Driver(script, spark, **told)
        arrivals.come()
        until_all(lambda: len(files_of(state)) == arrivals.count)
        driver.say("stop")
        driver.hears("done")
    finally:
        driver.close()
        spark.tidy()
    files = files_of(state)
    assert sorted(files) == sorted(arrivals.folder.glob("[!.]*"))
    assert sorted(v for _, v in lines_of(files)) == [*range(arrivals.rows)]
    return files, [
        place / "out.csv" / f for each in river.epochs(state) for f, _ in each.outputs.get("o", ())
    ]


def files_of(state: Path) -> list[Path]:
    """The files that epochs had, in order."""
    return [Path(path) for each in river.epochs(state) for path in each.inputs.get("a", ())]


def until_moment(seconds: float, meanwhile: Callable[[], None]) -> None:
    """So long, with something to do."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        meanwhile()
        time.sleep(0.1)


def until_all(condition: Callable[[], bool]) -> None:
    """Waits for what takes some epochs, and a new driver."""
    deadline = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def goes_on(driver: Driver, arrivals: Arrivals, state: Path) -> None:
    """Waits until an epoch has been that began after now, while more comes."""
    first = len(river.epochs(state))

    def more() -> bool:
        assert driver.process.poll() is None, "the driver has ended"
        if arrivals.count < len(files_of(state)) + 5:
            arrivals.come()
        return len(river.epochs(state)) > first + 1

    until_all(more)


# --------------------------------------------------------------------------------------------------------------- batch

STREAM = "s: {ts: int; k: int; v: int} stream by ts;"
BATCH = {
    "selection.cql": f"{STREAM} o: stream = select istream * from s[now] where k != 3;",
    "groups.cql": f"{STREAM} o: relation = select k, count(*) as n, sum(v) as t from s[range 90] group by k;",
    "sums.szl": "x: {ts: int, k: int, v: int} = input; s: table sum[k: int] of int; emit s[x.k] <- x.v;",
}
"""Row by row, whose files have the rows in order; by key; tables of parts."""

RUNS = """
import json, sys
import river
told = json.loads(sys.argv[1])
for line in sys.stdin:
    program, out = json.loads(line)
    compiled = river.load(program)
    (name,) = compiled.graph.inputs
    (target,) = compiled.outputs
    print("begins", flush=True)
    compiled.run({name: told["data"]}, {target: out}, backend="spark", settings=told["settings"], workers=2)
    print("done", flush=True)
"""


@pytest.mark.parametrize("victim", VICTIMS)
def test_runs_over_files(victim: str, spark: Cluster, tmp_path: Path) -> None:
    """An output is there when the run has ended well, and whole; before that there is none."""
    data = tmp_path / "s.csv"
    data.write_text("ts,k,v\n" + "".join(f"{n // 3},{n * n % 101 % 7},{n % 10}\n" for n in range(130_000)))
    expected: dict[str, Any] = {}
    for name, text in BATCH.items():
        (tmp_path / name).write_text(text)
        compiled = river.load(str(tmp_path / name))
        (input_,), (output,) = compiled.graph.inputs, compiled.outputs
        compiled.run({input_: str(data)}, {output: str(tmp_path / "wanted.parquet")})
        expected[name] = known(name, [tmp_path / "wanted.parquet"])
        assert len(expected[name]) > 5
    killer = Killer(spark, victim, "kills in batch")
    told = {"data": str(data), "settings": {**SETTINGS, "spark.master": spark.address}}
    driver = Driver(RUNS, spark, **told)
    took: dict[str, float] = {}
    try:
        for case in range(CASES + 1):
            name = [*BATCH][case % 3]
            if name not in took:
                took[name] = timed(driver, tmp_path / name, tmp_path / f"first-{name}")
            out = tmp_path / f"out{case}-{name}"
            driver.say(json.dumps([str(tmp_path / name), f"{out}/"]))
            driver.hears("begins")
            time.sleep(killer.random.random() * took[name])
            if victim == "driver":
                driver.hang_up()  # one that has just been done does not see that its Java is gone
            killer.kill(driver.process)
            if victim == "driver":
                driver.close()
                spark.tidy()
                driver = Driver(RUNS, spark, **told)
                if not out.exists():  # else it had just been done
                    driver.say(json.dumps([str(tmp_path / name), f"{out}/"]))
                    driver.hears("begins")
                    driver.hears("done")
            else:
                driver.hears("done")
            assert known(name, sorted(out.glob("[!.]*"))) == expected[name]
    finally:
        driver.close()
        spark.tidy()


def timed(driver: Driver, program: Path, out: Path) -> float:
    """How long a run takes that nobody disturbs, when all is warm. Units: seconds."""
    for attempt in range(2):
        driver.say(json.dumps([str(program), f"{out}-{attempt}/"]))
        driver.hears("begins")
        began = time.monotonic()
        driver.hears("done")
    return time.monotonic() - began


def known(program: str, paths: list[Path]) -> list[str]:
    """What is known of the rows of an output: all of it, but in what order relations change at one instant."""
    pq: Any = __import__("pyarrow.parquet").parquet
    found = [
        line
        for path in paths
        for line in (
            [
                ",".join(map(str, row))
                for row in zip(*(each.to_pylist() for each in pq.read_table(path).columns), strict=True)
            ]
            if path.suffix == ".parquet"
            else path.read_text().splitlines()[1:]
        )
    ]
    return found if program == "selection.cql" else sorted(found)
