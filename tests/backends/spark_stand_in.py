# ruff: noqa: N802 - the names are those of pyspark
"""A stand-in for Spark: the few transformations that `backends.spark.lower` uses, on lists of rows in this process.

Rows are dealt to partitions at random, and partitions come in any order, so that only what is sorted is sorted.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from backends.spark import run as runs
from backends.spark.plan import plan

if TYPE_CHECKING:
    from river.backend import Summary

NAMES = ("queue", "chunk", "channel", "part", "at", "items", "marks")
KINDS = {
    **{name: pa.int32() for name in ("queue", "channel", "part", "place")},
    **{name: pa.int64() for name in ("chunk", "id")},
    **{name: pa.binary() for name in ("at", "items")},
    **{name: pa.string() for name in ("marks", "told")},
}
Rows = list[dict[str, Any]]


class Session:
    """`session` of `backends.spark.session`, and its `read`."""

    def __init__(self, seed: int = 0) -> None:
        self.random = Random(seed)
        self.jobs = 0

    @property
    def read(self) -> Session:
        return self

    def schema(self, _: str) -> Session:
        return self

    def parquet(self, folder: str) -> Folder:
        return Folder(self, Path(folder))

    def range(self, start: int, stop: int, step: int, partitions: int) -> Frame:
        """Numbers, each in a partition of its own."""
        assert partitions == len(range(start, stop, step))
        return Frame(self, [[{"id": number}] for number in range(start, stop, step)])

    def addTag(self, tag: str) -> None:
        self.jobs += 1

    def removeTag(self, tag: str) -> None:
        pass


class Column:
    """`frame["queue"]`, of which membership is asked."""

    def isin(self, wanted: list[int]) -> list[int]:
        return wanted


class Folder:
    """A DataFrame that is not read yet: of a tree of files only the branches that are wanted are."""

    def __init__(self, session: Session, folder: Path) -> None:
        self.session = session
        self.folder = folder

    def __getitem__(self, _: str) -> Column:
        return Column()

    def where(self, wanted: list[int]) -> Frame:
        rows: Rows = []
        for number in wanted:
            for file in (self.folder / f"queue={number}").glob("*.parquet"):
                table = pq.ParquetFile(file).read(use_threads=False)
                rows += [{"queue": number, **row} for row in table.to_pylist()]
        self.session.random.shuffle(rows)
        cut = self.session.random.randint(0, len(rows))
        return Frame(self.session, [rows[:cut], rows[cut:]])


class Frame:
    """A DataFrame, computed at once."""

    def __init__(self, session: Session, partitions: list[Rows]) -> None:
        self.session = session
        self.partitions = partitions

    def select(self, columns: list[str]) -> Frame:
        assert tuple(columns) == NAMES
        return self

    def coalesce(self, count: int) -> Frame:
        assert count == 1
        return Frame(self.session, [[row for rows in self.partitions for row in rows]])

    def repartition(self, count: int, column: str) -> Frame:
        """As many partitions as Spark likes: values of the column share them by another hash than ours."""
        found: list[Rows] = [[] for _ in range(count)]
        for row in (row for rows in self.partitions for row in rows):
            found[row[column] * 7 % 5 % count].append(row)
        self.session.random.shuffle(found)
        return Frame(self.session, found)

    def __getitem__(self, name: str) -> str:
        return name

    def repartitionById(self, count: int, column: str) -> Frame:
        """The partition of a row is its number in the column."""
        found: list[Rows] = [[] for _ in range(count)]
        for row in (row for rows in self.partitions for row in rows):
            found[row[column]].append(row)
        return Frame(self.session, found)

    def collect(self) -> list[tuple[Any, ...]]:
        """The rows, of partitions in any order."""
        self.session.random.shuffle(self.partitions)
        return [tuple(row.values()) for rows in self.partitions for row in rows]

    def sortWithinPartitions(self, *columns: str) -> Frame:
        for rows in self.partitions:
            self.session.random.shuffle(rows)
            rows.sort(key=lambda row: [row[c] for c in columns])
        return self

    def mapInArrow(self, function: Any, schema: str) -> Frame:
        def batches(rows: Rows) -> list[pa.RecordBatch]:
            size = self.session.random.randint(1, 3)
            names = list(rows[0]) if rows else []
            return [
                pa.record_batch(
                    [pa.array([r[n] for r in rows[i : i + size]], KINDS[n]) for n in names],
                    names,
                )
                for i in range(0, len(rows), size)
            ]

        return Frame(
            self.session,
            [
                [row for b in function(iter(batches(rows))) for row in b.to_pylist()]
                for rows in self.partitions
            ],
        )

    @property
    def write(self) -> Frame:
        return self

    def mode(self, _: str) -> Frame:
        return self

    def partitionBy(self, _: str) -> Frame:
        return self

    def parquet(self, folder: str) -> None:
        for n, rows in enumerate(self.partitions):
            for queue in {row["queue"] for row in rows}:
                branch = Path(folder) / f"queue={queue}"
                branch.mkdir(exist_ok=True)
                mine = [
                    {k: v for k, v in row.items() if k != "queue"} for row in rows if row["queue"] == queue
                ]
                table, file = pa.Table.from_pylist(mine), branch / f"{self.session.jobs}-{n}.parquet"
                pq.write_table(table, file, use_dictionary=False, compression="none", write_statistics=False)


class StandIn:
    """The backend on the stand-in."""

    name: ClassVar[str] = "spark"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def plan(self, *given: Any) -> Any:
        return plan(*given)

    def run(self, *given: Any) -> Summary:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(runs, "session", lambda *_: nullcontext(Session(self.seed)))
            return runs.run(*given)
