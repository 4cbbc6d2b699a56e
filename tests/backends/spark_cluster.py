"""A cluster of Spark on the loopback interface: a master and workers, whose Python is one that has no River."""

from __future__ import annotations

import os
import re
import subprocess
import venv
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from backends.spark.java import find_java

if TYPE_CHECKING:
    from collections.abc import Iterator

SPARK_HOME = Path(str(find_spec("pyspark").origin)).parent  # type: ignore[union-attr]
CLASSES = "org.apache.spark.deploy"
LOOPBACK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.ui.enabled": "false",
}
"""Settings of a driver for such a cluster."""


def bare_python(folder: Path) -> str:
    """The path of a Python of this version that has nothing but its standard library."""
    venv.create(folder, symlinks=True)
    return str(folder / "bin" / "python3")


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """The address of a master with workers of one core; their files are in `folder`."""
    with ExitStack() as stack:
        master, log = _started(
            stack, folder / "master.log", f"{CLASSES}.master.Master", "--port", "0", "--webui-port", "0"
        )
        address = _told(master, log, r"spark://127\.0\.0\.1:\d+")
        for number in range(workers):
            worker, log = _started(
                stack, folder / f"worker{number}.log", f"{CLASSES}.worker.Worker", "-c", "1", "-m", "1g", "--webui-port", "0",
                "-d", str(folder / f"work{number}"), address,
            )  # fmt: skip
            _told(worker, log, r"Successfully registered with master")
        yield address


def _started(stack: ExitStack, log: Path, class_: str, *args: str) -> tuple[subprocess.Popen[bytes], Path]:
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK", "PYTHON"))
    }
    environment |= {
        "JAVA_HOME": str(find_java().home()),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [str(SPARK_HOME / "bin" / "spark-class"), class_, "--host", "127.0.0.1", *args]
    file = stack.enter_context(log.open("wb"))
    process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment)
    stack.callback(_ended, process)
    return process, log


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait()


def _told(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    """What a process writes to its log, which is waited for."""
    while True:
        ended = process.poll() is not None
        found = re.search(pattern, log.read_text(errors="replace"))
        if found is not None:
            return found[0]
        if ended:
            raise AssertionError(log.read_text(errors="replace"))
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
