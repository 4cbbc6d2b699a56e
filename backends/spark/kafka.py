"""Topics of Apache Kafka as a source that can be replayed, and as the place to which rows of epochs are sent; in Python.

PySpark as it is installed by pip has no connector for Kafka, which is a package for Java. This one needs `confluent-kafka`
instead (`river-streams[kafka]`), on the driver and on all executors. Offsets say of each partition of a topic which message
comes next: an epoch is a range of offsets, which Spark notes before the epoch is run, so the same messages come again.

What comes is read exactly once. What is sent is sent at least once: see `send`.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from river.diagnostics import Diagnostic, Rejected
from river.io.schema import arrow
from river.manifest import epochs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping

    from pyspark.sql.types import StructType

__all__ = ["KafkaSource", "send"]

SCHEMA: Final = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"

PATIENCE: Final = 30.0
"""Seconds for which a broker may be silent."""

_PREFIX: Final = "kafka."
_BATCH: Final = 10_000  # messages, which are one record batch
_EARLIEST, _LATEST = "earliest", "latest"
_ROW: Final = "river-row"

Offsets = dict[str, dict[str, int]]
"""The offset of the message that comes next, by topic and partition; Spark keeps it as JSON."""


class KafkaSource(DataSource):
    """`spark.dataSource.register(KafkaSource)` makes it known to a session as the format `river-kafka`.

    Options are called as those of Spark's own source: `kafka.bootstrap.servers` and all others of librdkafka behind `kafka.`;
    `subscribe`: topics, with commas; `startingOffsets`: `earliest` or `latest`, at the first run; `maxOffsetsPerTrigger`:
    messages of an epoch, of each partition at least one. Messages that are gone before they were read end the run.
    """

    @classmethod
    def name(cls) -> str:
        return "river-kafka"

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - of pyspark
        return _Reader(_Options.of(self.options))


class _Options:
    """What a user says of the source."""

    def __init__(self, settings: dict[str, str], topics: list[str], start: str, most: int | None) -> None:
        self.settings = settings
        self.topics = topics
        self.start = start
        self.most = most

    @staticmethod
    def of(options: MutableMapping[str, str]) -> _Options:
        """Names are in small letters here, as Spark hands them on. Raises: Rejected("spark-kafka")."""
        given = {name.lower(): value for name, value in options.items()}
        settings = {
            name.removeprefix(_PREFIX): given.pop(name) for name in [*given] if name.startswith(_PREFIX)
        }
        topics = [name for each in given.pop("subscribe", "").split(",") if (name := each.strip())]
        start, most = given.pop("startingoffsets", _EARLIEST), given.pop("maxoffsetspertrigger", None)
        if "bootstrap.servers" not in settings:
            raise _wrong("`kafka.bootstrap.servers` is missing", "name brokers: `host:9092`")
        if not topics:
            raise _wrong("`subscribe` is missing", "name topics")
        if start not in (_EARLIEST, _LATEST):
            raise _wrong(f"`startingOffsets` is `{start}`", f"say `{_EARLIEST}` or `{_LATEST}`")
        if most is not None and not (most.isdecimal() and int(most) > 0):
            raise _wrong(f"`maxOffsetsPerTrigger` is `{most}`", "say a number of messages")
        if given:
            known = "`kafka...`, `subscribe`, `startingOffsets`, `maxOffsetsPerTrigger`"
            raise _wrong(f"there is no option `{min(given)}`", f"the options are {known}")
        return _Options(settings, topics, start, None if most is None else int(most))


class _Range(InputPartition):
    """Messages of a partition: from `start` to before `end`."""

    def __init__(self, topic: str, number: int, start: int, end: int) -> None:
        super().__init__(None)
        self.topic, self.number, self.start, self.end = topic, number, start, end


class _Reader(DataSourceStreamReader):
    """Reads what Spark has chosen, and offers what there is."""

    def __init__(self, options: _Options) -> None:
        self.options = options
        self._consumer: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """As executors get it."""
        return {**self.__dict__, "_consumer": None}

    def initialOffset(self) -> Offsets:  # noqa: N802 - of pyspark
        return self._bounds(int(self.options.start == _LATEST))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - of pyspark
        most = self.options.most
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:  # noqa: N802 - of pyspark
        """As far as the next epoch goes: all partitions get on, so that none waits for ever."""
        ends = self._bounds(1)
        begins = self._since(start)
        if not isinstance(limit, ReadMaxRows):
            return ends
        waiting = {
            (topic, number): end - begins[topic][number]
            for topic, partitions in ends.items()
            for number, end in partitions.items()
        }
        taken = _shared(waiting, limit.max_rows)
        return {
            topic: {number: begins[topic][number] + taken[topic, number] for number in partitions}
            for topic, partitions in ends.items()
        }

    def reportLatestOffset(self) -> Offsets:  # noqa: N802 - of pyspark
        return self._bounds(1)

    def partitions(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        begins = self._since(start)
        return [
            _Range(topic, int(number), begins[topic][number], last)
            for topic, partitions in end.items()
            for number, last in partitions.items()
            if begins[topic][number] < last
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Range)  # noqa: S101 - by `partitions`
        consumer = _consumer(self.options.settings)
        try:
            yield from _batches(consumer, partition)
        finally:
            consumer.close()

    def stop(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    # -- what there is

    def _since(self, start: Offsets) -> Offsets:
        """Where partitions begin: those that have come meanwhile, at their first message."""
        first = self._bounds(0)
        return {
            topic: {number: start.get(topic, {}).get(number, at) for number, at in found.items()}
            for topic, found in first.items()
        }

    def _bounds(self, which: int) -> Offsets:
        """The first offset of each partition (0), or the one behind the last (1). Raises: Rejected("spark-kafka")."""
        kafka = _kafka()
        if self._consumer is None:
            self._consumer = _consumer(self.options.settings)
        try:
            return {
                topic: {
                    str(number): self._consumer.get_watermark_offsets(
                        kafka.TopicPartition(topic, number), timeout=PATIENCE, cached=False
                    )[which]
                    for number in self._partitions(topic)
                }
                for topic in self.options.topics
            }
        except kafka.KafkaException as error:
            raise _failed(error.args[0]) from error

    def _partitions(self, topic: str) -> list[int]:
        found = self._consumer.list_topics(topic, timeout=PATIENCE).topics[topic]
        if found.error is not None:
            raise _wrong(f"the topic `{topic}` cannot be read: {found.error.str()}")
        return sorted(found.partitions)


def _shared(waiting: Mapping[Any, int], most: int) -> dict[Any, int]:
    """About so many of what waits in all: of each as much as of the others as far as it has so many, and at least one."""
    taken: dict[Any, int] = {}
    for at, (each, count) in enumerate(sorted(waiting.items(), key=lambda pair: pair[1])):
        taken[each] = min(count, max(1, most // (len(waiting) - at)))
        most -= taken[each]
    return taken


def _batches(consumer: Any, given: _Range) -> Iterator[Any]:
    """The messages of a range. Raises: Rejected("spark-kafka") where some are gone, or none come."""
    kafka = _kafka()
    consumer.assign([kafka.TopicPartition(given.topic, given.number, given.start)])
    position, heard = given.start, time.monotonic()
    while position < given.end:
        rows: list[Any] = []
        for message in consumer.consume(min(_BATCH, given.end - position), timeout=1.0):
            error = message.error()
            if error is None:
                if message.offset() < given.end:
                    rows.append(message)
                position = message.offset() + 1
            elif error.code() == kafka.KafkaError._PARTITION_EOF:  # noqa: SLF001 - its only name
                position = max(position, message.offset())
            elif error.code() == kafka.KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001
                what = (
                    f"messages {position} to {given.end - 1} of partition {given.number} of `{given.topic}`"
                )
                raise _wrong(f"{what} are gone, or are not there", "a new run begins with what is there")
            elif not error.retriable() or error.fatal():
                raise _failed(error)
            heard = time.monotonic()
        if rows:
            yield _table(rows)
        elif time.monotonic() > heard + PATIENCE:
            raise _wrong(f"no broker has answered for {PATIENCE:.0f} seconds")


def _table(messages: list[Any]) -> Any:
    """A record batch of `SCHEMA`."""
    pa = arrow()
    kind, stamp = 0, 1
    times = [None if each.timestamp()[kind] == 0 else each.timestamp()[stamp] * 1000 for each in messages]
    columns = {
        "key": pa.array([each.key() for each in messages], pa.binary()),
        "value": pa.array([each.value() for each in messages], pa.binary()),
        "topic": pa.array([each.topic() for each in messages], pa.string()),
        "partition": pa.array([each.partition() for each in messages], pa.int32()),
        "offset": pa.array([each.offset() for each in messages], pa.int64()),
        "timestamp": pa.array(times, pa.timestamp("us", "UTC")),
    }
    return pa.record_batch([*columns.values()], [*columns])


# ---------------------------------------------------------------------------------------------------------------- out


def send(
    state: str | os.PathLike[str],
    output: str,
    folder: str | os.PathLike[str],
    topic: str,
    settings: Mapping[str, str],
) -> int:
    """Sends the rows of an output, a message for each, that epochs have made since it was called last; how many.

    `state`: the folder of the checkpoint; `folder`: that of the output, whose files are `jsonl`. `settings`: of librdkafka.
    Messages come in the order of the rows, to one partition, at least once: what was sent is noted in `state` when the brokers
    have it, so if the process is killed before, an epoch is sent again. The header `river-row` is the same then: who reads can
    leave out what came before.

    Raises: Rejected("spark-kafka", "run-checkpoint-damaged").
    """
    kafka = _kafka()
    note = Path(state) / f"sent-{output}-{topic}.json"
    before: dict[str, Any] = json.loads(note.read_text()) if note.exists() else {"run": None}
    found = [each for each in epochs(state) if each.outputs.get(output)]
    if found and before["run"] == found[0].run:  # else the run has begun anew
        found = [each for each in found if each.epoch > before["epoch"]]
    if not found:
        return 0
    failed: list[Any] = []
    try:
        producer = kafka.Producer({"enable.idempotence": True, **settings})
    except kafka.KafkaException as error:
        raise _failed(error.args[0]) from error
    sent = 0
    for each in found:
        for name, _ in each.outputs[output]:
            if "/" in name:
                raise _wrong(f"`{name}` has not all columns of its rows", "run without `--partition-by`")
            sent += _send_file(producer, Path(folder) / name, topic, failed)
        left = producer.flush(PATIENCE)
        if failed:
            raise _failed(failed[0])
        if left:
            raise _wrong(f"no broker has taken {left} messages for {PATIENCE:.0f} seconds")
        _noted(note, {"run": each.run, "epoch": each.epoch})
    return sent


def _send_file(producer: Any, path: Path, topic: str, failed: list[Any]) -> int:
    """Sends the lines of a file."""
    if path.suffix != ".jsonl":
        raise _wrong(f"`{path}` is no file of JSON lines", "run with `--out-format NAME=jsonl`")

    def delivered(error: Any, _message: Any) -> None:
        if error is not None:
            failed.append(error)

    number = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                header = [(_ROW, f"{path.name}:{number}".encode())]
                while not _taken(producer, topic, line.rstrip(b"\n"), header, delivered):
                    producer.poll(0.1)  # its queue is full
                producer.poll(0)
    except OSError as error:
        raise _wrong(f"`{path}` cannot be read: {(error.strerror or str(error)).lower()}") from error
    return number


def _taken(producer: Any, topic: str, value: bytes, headers: Any, delivered: Any) -> bool:
    try:
        producer.produce(topic, value, partition=0, headers=headers, on_delivery=delivered)
    except BufferError:
        return False
    return True


def _noted(note: Path, sent: dict[str, Any]) -> None:
    """Notes, in one step, up to where messages have been sent."""
    part = note.with_suffix(".part")
    with part.open("w") as file:
        file.write(json.dumps(sent))
        file.flush()
        os.fsync(file.fileno())
    part.replace(note)


# ------------------------------------------------------------------------------------------------------------ brokers


def _kafka() -> Any:
    """The library. Raises: Rejected("spark-kafka") where it is not installed."""
    try:
        import confluent_kafka
    except ImportError as error:
        message = "`confluent-kafka` is not installed"
        raise _wrong(message, "run `pip install 'river-streams[spark,kafka]'`") from error
    return confluent_kafka


def _consumer(settings: Mapping[str, str]) -> Any:
    """One that reads what it is told to, and notes nothing on the brokers. Raises: Rejected("spark-kafka")."""
    kafka = _kafka()
    own = {"enable.auto.commit": False, "enable.partition.eof": True, "auto.offset.reset": "error"}
    try:
        return kafka.Consumer({"group.id": "river", **settings, **own})
    except kafka.KafkaException as error:
        raise _failed(error.args[0]) from error


def _failed(error: Any) -> Rejected:
    return _wrong(f"Kafka says: {error.str()}")


def _wrong(message: str, help_: str | None = None) -> Rejected:
    return Rejected([Diagnostic("spark-kafka", message, help=help_)])
