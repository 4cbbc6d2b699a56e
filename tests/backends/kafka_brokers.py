"""Brokers of Kafka that exist for a test: those that librdkafka mocks, in a process of their own, on the loopback interface."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BROKERS = """
import sys, confluent_kafka
producer = confluent_kafka.Producer({"test.mock.num.brokers": 2, "bootstrap.servers": "none", "log_level": 0})
print(",".join(f"{each.host}:{each.port}" for each in producer.list_topics(timeout=60).brokers.values()), flush=True)
sys.stdin.read()
"""


@contextmanager
def brokers() -> Iterator[str]:
    """Where they listen; a topic has four partitions, and is there when something has been sent to it."""
    with subprocess.Popen(
        [sys.executable, "-c", BROKERS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def produce(servers: str, topic: str, messages: Sequence[tuple[int, str]]) -> None:
    """Sends texts to partitions."""
    import confluent_kafka

    producer: Any = confluent_kafka.Producer({"bootstrap.servers": servers, "log_level": 0})
    for partition, text in messages:
        producer.produce(topic, text, partition=partition)
    assert producer.flush(60) == 0
