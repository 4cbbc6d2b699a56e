"""A cluster of Spark on the loopback interface: a master and workers, whose Python is one that has no River."""

from __future__ import annotations

import os
import re
import shutil
import signal
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
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""What each Java is told: it starts in half the seconds of the processors, and all that it does here is short."""
LOCAL = "local"
"""Where the processes of a cluster keep what they need for a while."""


def bare_python(folder: Path) -> str:
    """The path of a Python of this version that has nothing but its standard library."""
    venv.create(folder, symlinks=True)
    return str(folder / "bin" / "python3")


class Cluster:
    """A master with workers of one core, whose files are in `folder`. `workers`: their processes.

    `surroundings`: what a driver's environment says, too, so that it keeps its files there.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.surroundings = _surroundings(folder)
        self.workers: list[subprocess.Popen[bytes]] = []
        self._stack = stack
        self._count = 0
        master, log = _started(
            stack, folder / "master.log", f"{CLASSES}.master.Master", "--port", "0", "--webui-port", "0"
        )
        self.address = _told(master, log, r"spark://127\.0\.0\.1:\d+")

    def add_worker(self) -> None:
        """One more."""
        name, self._count = f"worker{self._count}", self._count + 1
        worker, log = _started(
            self._stack, self.folder / f"{name}.log", f"{CLASSES}.worker.Worker", "-c", "1", "-m", "1g", "--webui-port", "0",
            "-d", str(self.folder / name), self.address,
        )  # fmt: skip
        _told(worker, log, r"Successfully registered with master")
        self.workers.append(worker)

    def tidy(self) -> None:
        """Removes the files of all applications, which have ended: each has had River unpacked, hundreds of megabytes."""
        for application in (*self.folder.glob("worker*/app-*"), *self.folder.glob(f"{LOCAL}/*")):
            shutil.rmtree(application, ignore_errors=True)


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A cluster that lasts as long as the context."""
    with ExitStack() as stack:
        found = Cluster(folder, stack)
        for _ in range(workers):
            found.add_worker()
        yield found


@contextmanager
def connect_server(folder: Path, master: str, python: str) -> Iterator[str]:
    """The address of a Spark Connect server, which runs on a cluster with this Python."""
    with ExitStack() as stack:
        settings = {
            **LOOPBACK, "spark.master": master, "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0", "spark.pyspark.python": python,
        }  # fmt: skip
        words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
        command = [
            "spark-submit",
            "--class",
            "org.apache.spark.sql.connect.service.SparkConnectServer",
            *words,
        ]
        process, log = _process(stack, folder / "connect.log", [*command, "spark-internal"])
        yield (
            "sc://" + _told(process, log, r"Connect server started at: (127\.0\.0\.1:\d+)").rpartition(" ")[2]
        )


def _surroundings(folder: Path) -> dict[str, str]:
    """What keeps the files of Spark's processes in a folder: those of one that is killed would stay in `/tmp` for ever."""
    local = folder / LOCAL
    local.mkdir(exist_ok=True)
    return {"SPARK_LOCAL_DIRS": str(local), "JAVA_TOOL_OPTIONS": f"{QUICK} -Djava.io.tmpdir={local}"}


def _started(stack: ExitStack, log: Path, class_: str, *args: str) -> tuple[subprocess.Popen[bytes], Path]:
    return _process(stack, log, ["spark-class", class_, "--host", "127.0.0.1", *args])


def _process(stack: ExitStack, log: Path, command: list[str]) -> tuple[subprocess.Popen[bytes], Path]:
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK", "PYTHON"))
    }
    environment |= {
        "JAVA_HOME": str(find_java().home()),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        **_surroundings(log.parent),
    }
    file = stack.enter_context(log.open("wb"))
    command = [str(SPARK_HOME / "bin" / command[0]), *command[1:]]
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


def below(pids: set[int]) -> dict[int, str]:
    """The processes that these have started, and those of these, with what they are."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # ended meanwhile
    found: dict[int, str] = {}
    while more := {pid for pid, parent in parents.items() if parent in pids | {*found} and pid not in found}:
        for pid in more:
            try:
                found[pid] = (Path("/proc") / str(pid) / "cmdline").read_text().split("\0")[0]
            except OSError:
                found[pid] = ""
    return found


def end(pids: set[int]) -> None:
    """Kills processes that are ours."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
