"""The Spark session that a run uses: the caller's, one of a cluster, or one started on this machine.

| environment | meaning |
|---|---|
| `SPARK_REMOTE` | the address of a Spark Connect server (`sc://host:port`); no Java is needed here |
| `RIVER_SPARK_MASTER` | a master, as Spark writes it (`spark://host:7077`); without it `local[workers, 4]` |
| `PYSPARK_PYTHON` | the Python of a cluster's executors, unless the setting `spark.pyspark.python` says it |
| `RIVER_SPARK_FOLDER` | where runs keep their files; driver and executors must see it under one name |

What the settings of a run say comes before the environment. A session that the caller has made is used first, whichever
thread made it. One that River starts stays for the next run of the process; it talks to this machine only, or to its cluster.
Either way a run gets a new session of the same Spark: what River sets there is seen by nobody else.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from importlib import import_module, resources
from socket import create_connection
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from backends.spark.executors import runs_here, see
from backends.spark.java import find_java
from river.diagnostics import Diagnostic, Note, Rejected

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

Session = Any
"""A SparkSession; pyspark's own types are those of two implementations and say little."""

REMOTE: Final = "SPARK_REMOTE"
MASTER: Final = "RIVER_SPARK_MASTER"
FOLDER: Final = "RIVER_SPARK_FOLDER"

OWN: Final = "spark://"
"""What addresses of masters of Spark's own clusters begin with."""

MASTER_KEY: Final = "spark.master"
PYTHON_KEY: Final = "spark.pyspark.python"
ARCHIVES_KEY: Final = "spark.archives"

SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""A variable that processes have which `spark-submit` has started: their Java is there, and knows master and settings."""

CONNECT_PORT: Final = 15002
MASTER_PORT: Final = 7077
ANSWER: Final = 10.0
"""Seconds in which a server has to take a connection."""

START: Final = 20.0
"""Seconds for which a signal waits while Spark starts: its Java, left alone before it is connected, would stay for ever."""

_SEEN: Final = set[str]()
"""Applications of Spark whose executors have been looked at: they all have the same Python."""

ATTEMPTS: Final = 4
"""How often a task of a local master is tried: a worker process may be killed for memory."""


def check(settings: Mapping[str, str]) -> None:
    """Sees that a session can be had. Raises: Rejected("spark-no-java", "spark-settings")."""
    if os.environ.get(REMOTE):
        if MASTER_KEY in settings:
            message = f"`{REMOTE}` names a Spark that is there, so `{MASTER_KEY}` has no effect"
            raise Rejected([Diagnostic("spark-settings", message, help="say one of both")])
        return
    found = _given()
    if found is not None:
        _fits(found, settings)
    elif SUBMITTED not in os.environ:
        find_java()


def _fits(found: Session, settings: Mapping[str, str]) -> None:
    """Sees that the Spark which this process has can be what the settings say. Raises: Rejected("spark-settings")."""
    for key, value in settings.items():
        if not found.conf.isModifiable(key) and (now := found.conf.get(key, "")) != value:
            message = f"there is a Spark session already, with `{key}` = `{now}` for good"
            help_ = "stop that session, or leave the setting out"
            raise Rejected([Diagnostic("spark-settings", message, help=help_)])


@contextmanager
def session(workers: int, settings: Mapping[str, str], *, chunks: bool = True) -> Generator[Session]:
    """A session for one run; a Spark that has to be started gets `workers` threads, and what `settings` say.

    `chunks`: what goes from stage to stage are chunks of rows, not rows.

    Raises: Rejected("spark-no-java", "spark-settings", "spark-master", "spark-no-river").
    """
    address = os.environ.get(REMOTE)
    found = _beside(lambda: _opened(address, workers, settings, chunks=chunks), START)
    try:
        see_once(found, remote=bool(address))
        yield found
    finally:
        if address:
            found.stop()  # elsewhere `stop` would end Spark itself, which stays for the next run


def see_once(found: Session, *, remote: bool = False, given: bool = False) -> None:
    """Looks at the executors of a session once for each application of Spark; see `see`.

    Raises: Rejected("spark-no-river").
    """
    context = getattr(found, "_sc", None)  # a client of Spark Connect has none
    name = None if context is None else context.applicationId
    if (remote or not runs_here(found)) and name not in _SEEN:
        _beside(lambda: see(found, remote=remote, given=given), 0)
        _SEEN.update(() if name is None else (name,))


def _opened(address: str | None, workers: int, settings: Mapping[str, str], *, chunks: bool) -> Session:
    """A new session, of a server at an address or of this process' Spark, which may have to be started."""
    if address:
        found = _connected(address, settings)
    else:
        given = _given()
        if given is not None:
            _fits(given, settings)
        found = (given or _started(workers, settings)).newSession()
    for key, value in {**(_of_chunks(workers) if chunks else _OF_ROWS), **settings}.items():
        if found.conf.isModifiable(key):
            found.conf.set(key, value)
    return found


def _connected(address: str, settings: Mapping[str, str]) -> Session:
    """A session of a Spark Connect server, which gets archives for its executors, and their Python, as a session can have them.

    Raises: Rejected("spark-connect", "spark-settings").
    """
    try:
        _reach(address, CONNECT_PORT)  # the client itself would try for minutes
        found = import_module("pyspark.sql").SparkSession.builder.remote(address).create()
    except (OSError, ValueError, import_module("pyspark.errors").PySparkException) as error:
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        message = f"`{REMOTE}` names `{address}`, and no Spark Connect server can be had there"
        help_ = "start the server; here its client is needed: `pip install 'river-streams[connect]'`"
        raise Rejected([Diagnostic("spark-connect", message, notes=(Note(first),), help=help_)]) from error
    try:
        for archive in filter(None, settings.get(ARCHIVES_KEY, "").split(",")):
            found.addArtifacts(archive, archive=True)
        if PYTHON_KEY in settings:
            found.conf.set("spark.sql.execution.pyspark.python", settings[PYTHON_KEY])
        _fits(found, {key: value for key, value in settings.items() if key not in (ARCHIVES_KEY, PYTHON_KEY)})
    except BaseException:
        found.stop()
        raise
    return found


def _reach(address: str, port: int) -> None:
    """Sees that something takes connections at an address. Raises: OSError, ValueError."""
    place = urlsplit(address)
    with create_connection((place.hostname, place.port or port), ANSWER):
        pass


def see_master(master: str) -> None:
    """Sees that one of the masters that Spark's own clusters have is there: Spark would try for a minute, and then give up.

    Raises: Rejected("spark-master").
    """
    if not master.startswith(OWN):
        return
    reasons: list[str] = []
    for each in master.removeprefix(OWN).split(","):
        try:
            _reach(f"{OWN}{each}", MASTER_PORT)
        except (OSError, ValueError) as error:
            reasons.append(f"{each}: {error}")
        else:
            return
    raise _no_master(master, reasons)


def _no_master(master: str, reasons: Iterable[str]) -> Rejected:
    message = f"Spark cannot be started with the master `{master}`"
    help_ = "name one that runs, such as `spark://host:7077`, and see to the settings that are stated"
    return Rejected([Diagnostic("spark-master", message, notes=tuple(map(Note, reasons)), help=help_)])


def look_again(wrote: Session, table: str) -> None:
    """Lets the sessions of this process look again which files a table of the catalog has, which one of ours has written."""
    first = import_module("pyspark.sql").SparkSession._instantiatedSession  # noqa: SLF001 - of which others are made
    users = {id(each): each for each in (_given(), first) if each is not None}
    if not users or os.environ.get(REMOTE):
        return
    found = wrote.catalog.getTable(table)
    parts = [*(each for each in (found.catalog,) if each), *(found.namespace or ()), found.name]
    for each in users.values():
        each.catalog.refreshTable(".".join(f"`{part.replace('`', '``')}`" for part in parts))


_OF_ROWS: Final = {
    "spark.sql.session.timeZone": "UTC",  # for the names of folders that say times without a zone
    "spark.sql.sources.partitionOverwriteMode": "static",
}
"""What a session needs whose plans are over rows of data."""


def _of_chunks(workers: int) -> dict[str, str]:
    """What a session needs whose rows are chunks of thousands of items: few of them make a batch."""
    return {
        "spark.sql.shuffle.partitions": str(workers),
        "spark.sql.adaptive.enabled": "false",  # it would join partitions of ours
        "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
        "spark.sql.parquet.columnarReaderBatchSize": "16",
        "spark.sql.parquet.compression.codec": "snappy",
        "spark.sql.sources.partitionOverwriteMode": "static",
    }


def _given() -> Session | None:
    """The session that this process has: of this thread, else of another. One that has been stopped is none."""
    try:
        found = import_module("pyspark.sql").SparkSession.active()
    except import_module("pyspark.errors").PySparkRuntimeError:  # there is none
        return None
    context = getattr(found, "_sc", None)  # a client of Spark Connect has none
    return None if context is not None and context._jsc is None else found  # noqa: SLF001 - no public way to ask


def _started(workers: int, settings: Mapping[str, str]) -> Session:
    """A session of its own, quiet and on the loopback interface; of `spark-submit`, the one that it is to be.

    Raises: Rejected("spark-master").
    """
    if SUBMITTED in os.environ:
        return _begun(import_module("pyspark.sql").SparkSession.builder, "of spark-submit")
    master = settings.get(MASTER_KEY) or os.environ.get(MASTER) or f"local[{workers},{ATTEMPTS}]"
    builder = import_module("pyspark.sql").SparkSession.builder.appName("river").master(master)
    with resources.as_file(resources.files("backends.spark") / "log4j2.properties") as log:
        local = master.startswith("local")
        # Java plans and moves bytes here: compiling it well costs more than it brings.
        java = [f"-Dlog4j2.configurationFile={log.as_uri()}", "-XX:TieredStopAtLevel=1"]
        given = {
            "spark.driver.extraJavaOptions": " ".join(java),
            "spark.driver.memory": "2g",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        surroundings = {"JAVA_HOME": str(find_java().home())}
        python = settings.get(PYTHON_KEY)
        if local:
            given |= {
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.python.daemon.module": "backends.spark.daemon",
                "spark.executorEnv.PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            }
            surroundings["SPARK_LOCAL_IP"] = "127.0.0.1"
            python = python or sys.executable  # PATH may have no `python3`
        if python is not None:  # the setting itself is read by `spark-submit` alone
            surroundings["PYSPARK_PYTHON"] = python
        for key, value in {**given, **settings}.items():
            builder = builder.config(key, value)
        see_master(master)
        with _environment(surroundings):
            return _begun(builder, master)


def _begun(builder: Any, master: str) -> Session:
    """What a builder makes. Raises: Rejected("spark-master")."""
    try:
        return builder.getOrCreate()
    except (
        import_module("pyspark.errors").PySparkException,
        import_module("py4j.protocol").Py4JError,
    ) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        told = next((line for line in lines if line.startswith((": ", "["))), next(iter(lines), ""))
        raise _no_master(master, [told.removeprefix(": ")]) from error


def _beside(work: Callable[[], Any], patience: float) -> Any:
    """What `work` gives, or raises. It is done in another thread, since py4j prints where it was if a signal finds it at work.

    `patience`: how long a signal waits for it. Units: seconds.
    """
    found: list[Any] = []
    failed: list[BaseException] = []
    over = threading.Event()

    def done() -> None:
        try:
            found.append(work())
        except BaseException as error:  # noqa: BLE001 - who waits raises it
            failed.append(error)
        over.set()

    try:
        threading.Thread(target=done, name="river-spark, its session", daemon=True).start()
        over.wait()
    except BaseException:
        over.wait(patience)
        raise
    if failed:
        raise failed[0]
    return found[0]


@contextmanager
def _environment(changes: Mapping[str, str]) -> Generator[None]:
    """The process' environment with changes, as long as Spark's Java is being started."""
    before = {key: os.environ.get(key) for key in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value
