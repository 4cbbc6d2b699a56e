"""Topics of Kafka as a source and as a place, without Spark: brokers are mocked in another process."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
pytest.importorskip("confluent_kafka", reason="the extra `kafka` is not installed")

import confluent_kafka
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from backends.spark import kafka
from backends.spark.manifests import Manifests
from river.checkpoint import Checkpoint
from river.diagnostics import Rejected
from river.manifest import Epoch
from tests.backends.kafka_brokers import brokers, produce

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with brokers() as found:
        yield found


def reader(servers: str, **options: str) -> Any:
    """What Spark makes of options; their names come in small letters."""
    given = {"kafka.bootstrap.servers": servers, "kafka.log_level": "0", **options}
    return kafka.KafkaSource({name.lower(): value for name, value in given.items()}).streamReader(None)  # type: ignore[arg-type]


def read(source: Any, start: Any, end: Any) -> list[tuple[int, int, str]]:
    """The messages from `start` to before `end`, as executors read them: partition, offset, text."""
    copy = pickle.loads(pickle.dumps(source))  # noqa: S301 - of our own
    found: list[tuple[int, int, str]] = []
    for part in source.partitions(start, end):
        for batch in copy.read(part):
            rows = batch.to_pylist()
            assert {row["topic"] for row in rows} == set(source.options.topics)
            found += [(row["partition"], row["offset"], row["value"].decode()) for row in rows]
    return found


def test_ranges_of_offsets_come_again(servers: str) -> None:
    """In epochs of some messages, of all partitions; and the same ones when Spark asks again."""
    produce(servers, "ranges", [(0, f"a{n}") for n in range(7)] + [(1, f"b{n}") for n in range(3)])
    source = reader(servers, subscribe="ranges", maxOffsetsPerTrigger="4")
    offset = source.initialOffset()
    assert offset == {"ranges": {"0": 0, "1": 0, "2": 0, "3": 0}}
    assert json.loads(json.dumps(offset)) == offset
    limit = source.getDefaultReadLimit()
    assert limit == ReadMaxRows(4)
    epochs: list[list[tuple[int, int, str]]] = []
    while (following := source.latestOffset(offset, limit)) != offset:
        epochs.append(read(source, offset, following))
        assert read(source, offset, following) == epochs[-1]
        offset = following
    assert [len(each) for each in epochs] == [4, 4, 2]
    found = sorted(row for each in epochs for row in each)
    assert found == [(0, n, f"a{n}") for n in range(7)] + [(1, n, f"b{n}") for n in range(3)]
    assert offset == source.reportLatestOffset()
    assert source.latestOffset(offset, ReadAllAvailable()) == offset
    produce(servers, "ranges", [(2, "later")])
    assert read(source, offset, source.latestOffset(offset, ReadAllAvailable())) == [(2, 0, "later")]
    without = {"ranges": {number: at for number, at in offset["ranges"].items() if number != "1"}}
    assert read(source, without, offset) == [(1, n, f"b{n}") for n in range(3)]  # a partition that is new
    source.stop()
    late = reader(servers, subscribe="ranges", startingOffsets="latest")
    assert late.initialOffset() == {"ranges": {"0": 7, "1": 3, "2": 1, "3": 0}}
    late.stop()


def test_messages_that_are_gone_end_the_run(servers: str) -> None:
    produce(servers, "gone", [(0, "one")])
    source = reader(servers, subscribe="gone")
    with pytest.raises(Rejected, match="messages 5 to 8 of partition 0 of `gone` are gone"):
        read(source, {"gone": {"0": 5}}, {"gone": {"0": 9}})
    source.stop()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "`subscribe` is missing"),
        ({"subscribe": "a", "startingOffsets": "7"}, "`startingOffsets` is `7`"),
        ({"subscribe": "a", "maxOffsetsPerTrigger": "0"}, "`maxOffsetsPerTrigger` is `0`"),
        ({"subscribe": "a", "subscribePattern": "a"}, "there is no option `subscribepattern`"),
        ({"subscribe": "a", "kafka.no.such.thing": "1"}, 'Kafka says: No such configuration property: "no.such.thing"'),
        ({"subscribe": "there-is-none"}, "the topic `there-is-none` cannot be read"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(servers: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(Rejected) as refused:
        reader(servers, **options).initialOffset()
    (found,) = refused.value.diagnostics
    assert found.code == "spark-kafka"
    assert message in found.message


def test_brokers_are_named() -> None:
    with pytest.raises(Rejected, match=r"`kafka\.bootstrap\.servers` is missing"):
        kafka.KafkaSource({"subscribe": "a"}).streamReader(None)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------------------------- out


def epoch(state: Path, out: Path, number: int, lines: list[str], *, restart: bool = False) -> None:
    """An epoch that has made rows."""
    out.mkdir(exist_ok=True)
    manifests = Manifests(Checkpoint(state, restart=restart), {}, places={"o": out})
    manifests.open()
    try:
        name = f"{manifests.run}-{number:09}-0-{0:016}.jsonl"
        (out / name).write_text("".join(f"{line}\n" for line in lines))
        manifests.commit(Epoch(number, outputs={"o": ((name, len(lines)),)}))
    finally:
        manifests.close()


def received(servers: str, topic: str) -> list[tuple[str, str]]:
    """The messages of a topic: the header, and the text."""
    settings = {
        "bootstrap.servers": servers,
        "group.id": "test",
        "enable.partition.eof": True,
        "log_level": 0,
    }
    consumer: Any = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found: list[tuple[str, str]] = []
    while (message := consumer.poll(60)) is not None and message.error() is None:
        ((key, value),) = message.headers()
        assert key == "river-row"
        found.append((value.decode(), message.value().decode()))
    consumer.close()
    return found


def test_rows_are_sent_once_or_more(servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order; what may not have been sent is sent again, under the same header."""
    state, out, settings = (
        tmp_path / "state",
        tmp_path / "out",
        {"bootstrap.servers": servers, "log_level": "0"},
    )
    epoch(state, out, 0, ["0", "1"])
    epoch(state, out, 1, ["2"])
    assert kafka.send(state, "o", out, "sent", settings) == 3
    assert kafka.send(state, "o", out, "sent", settings) == 0
    epoch(state, out, 2, ["3", "4"])
    with monkeypatch.context() as patch:
        patch.setattr(kafka, "_noted", _killed)
        with pytest.raises(KeyboardInterrupt):
            kafka.send(state, "o", out, "sent", settings)
    assert kafka.send(state, "o", out, "sent", settings) == 2
    found = received(servers, "sent")
    assert [text for _, text in found] == ["0", "1", "2", "3", "4", "3", "4"]
    assert [*dict(found).values()] == ["0", "1", "2", "3", "4"]
    epoch(state, out, 0, ["5"], restart=True)
    assert kafka.send(state, "o", out, "sent", settings) == 1  # of a run that has begun anew


def _killed(*_: Any) -> None:
    raise KeyboardInterrupt


def test_what_cannot_be_sent(servers: str, tmp_path: Path) -> None:
    assert kafka.send(tmp_path, "o", tmp_path, "none", {"bootstrap.servers": servers}) == 0
    epoch(tmp_path / "state", tmp_path / "out", 0, ["0"])
    (file,) = (tmp_path / "out").iterdir()
    with pytest.raises(Rejected, match="No such configuration property"):
        kafka.send(tmp_path / "state", "o", tmp_path / "out", "none", {"no.such": "1"})
    file.unlink()
    with pytest.raises(Rejected, match="cannot be read: no such file"):
        kafka.send(tmp_path / "state", "o", tmp_path / "out", "none", {"bootstrap.servers": servers})
    manifests = Manifests(Checkpoint(tmp_path / "parts"), {})
    manifests.open()
    manifests.commit(Epoch(0, outputs={"o": (("k=1/a.jsonl", 1),)}))
    manifests.close()
    with pytest.raises(Rejected, match="has not all columns of its rows"):
        kafka.send(tmp_path / "parts", "o", tmp_path / "out", "none", {"bootstrap.servers": servers})
