"""Whether the executors of a cluster can run River, which is found out before the data is read."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from inspect import getsource
from typing import TYPE_CHECKING, Any, Final

from backends.spark import look
from river.classes import frozen
from river.diagnostics import Diagnostic, Note, Rejected

if TYPE_CHECKING:
    from collections.abc import Callable

SAY: Final = "say which Python has it there: `--spark-conf spark.pyspark.python=/path/to/python3`"
SAY_HERE: Final = (
    "or name the one that has it before the session starts: `os.environ['PYSPARK_PYTHON'] = sys.executable`"
)
SAY_SESSION: Final = (
    "or send it along, with the archive that `river submit --package FOLDER` makes: before the session starts,"
    " whose setting `spark.archives` is `river.tar.gz#river`, `os.environ['PYSPARK_PYTHON'] = './river/bin/python'`"
)
SAY_CONNECT: Final = (
    "or send it along, with the archive that `river submit --package FOLDER` makes:"
    ' `spark.addArtifacts("river.tar.gz#river", archive=True)`,'
    ' `spark.conf.set("spark.sql.execution.pyspark.python", "./river/bin/python")`'
)
SEND_CONNECT: Final = (
    "`--spark-conf spark.archives=river.tar.gz#river --spark-conf spark.pyspark.python=./river/bin/python`,"
    " with the archive that `river submit --package FOLDER` makes"
)


_INSTALL: Final = "install `river-streams[spark]` of this version for that Python"

_PYTHON: Final = "Error from python worker:"
"""Behind this line Spark quotes what a Python has said."""


def see(session: Any, *, remote: bool = False, given: bool = False) -> None:
    """Looks at one executor; `remote`: of a server of Spark Connect; `given`: of a session that the caller has made.

    Raises: Rejected("spark-no-river") if its Python cannot run programs of this River.
    """
    functions: Any = import_module("pyspark.sql.functions")
    _by_value()
    try:
        told = functions.udf(look.look, "string", useArrow=False)  # which needs nothing there but Python
        ((text,),) = session.range(0, 1, 1, 1).select(told("id")).collect()
    except Exception as error:
        message = "the executors of Spark cannot run Python as River needs it"
        raise Rejected([_cannot(message, _ways(remote=remote, given=given), _last(error))]) from error
    _judge(text, _ways(remote=remote, given=given))


def _by_value() -> None:
    """What `look` has is sent as it is, and not by its name."""
    pickling: Any = import_module("pyspark.cloudpickle")
    pickling.register_pickle_by_value(look)


@frozen
class Carried:
    """A function of River's in a plan of which nothing is run yet, so that nobody has looked at executors.

    It travels by its name, which is looked up there by what needs nothing but Python, and says so if there is no River.
    """

    function: Callable[..., Any]
    ways: str

    def __call__(self, *given: Any) -> Any:
        return self.function(*given)

    def __reduce__(self) -> tuple[Any, ...]:
        _by_value()
        return look.river, (self.function.__module__, self.function.__qualname__, _release(), self.ways)


def carried(session: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, for plans of a session."""
    remote = getattr(session, "_sc", None) is None
    return Carried(function, f"{_INSTALL}, {SAY_CONNECT if remote else SAY_SESSION}")


def see_here(session: Any) -> None:
    """Looks at the Python that runs the tasks of a Spark in this process, if it is another one; no job is run.

    Raises: Rejected("spark-no-river").
    """
    if (python := _another(session)) is not None:
        _judge(_told_by(python), SAY_HERE)


def runs_here(session: Any) -> bool:
    """Whether the tasks of a session run in this process' Python."""
    return session.conf.get("spark.master", "").partition("[")[0] == "local" and _another(session) is None


def _another(session: Any) -> str | None:
    """The Python of a Spark that is this process, where it is not the one that runs this; None, too, for others."""
    context = getattr(session, "_sc", None)  # a client of Spark Connect has none
    if context is None or context.master.partition("[")[0] != "local" or context.pythonExec == sys.executable:
        return None
    return context.pythonExec


@cache
def _told_by(python: str) -> str:
    """What a Python here says of itself. Raises: Rejected("spark-no-river") if there is none."""
    script = f"{getsource(look)}\nprint(look(0), end='')"
    try:
        done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603 - Spark runs it
    except (OSError, subprocess.CalledProcessError) as error:
        message = f"the executors of Spark run `{python}`, which does not run"
        raise Rejected([_cannot(message, SAY_HERE, str(error))]) from error
    return done.stdout


def _judge(text: str, ways: str) -> None:
    """Whether a Python that tells this can run programs; `ways` to have one that can. Raises: Rejected("spark-no-river")."""
    python, missing, release = text.split("\n")
    if missing:
        names = ", ".join(f"`{name}`" for name in missing.split())
        message = f"the executors of Spark run `{python}`, which cannot run River"
        raise Rejected([_cannot(message, ways, f"it has no {names}")])
    if not release:
        message = f"the executors of Spark run `{python}`, which has River's files without their metadata"
        note = "a zip file of River needs the folder `river_streams-*.dist-info` beside its packages"
        raise Rejected([_cannot(message, ways, note)])
    if (here := _release()) and release != here:
        message = f"the executors of Spark run `{python}`, which has River {release}; here is {here}"
        raise Rejected([_cannot(message, ways)])


def _ways(*, remote: bool, given: bool) -> str:
    """How executors get a Python that has River; see `see`."""
    if given:
        return SAY_SESSION
    return f"{SAY}, or send it along: {SEND_CONNECT if remote else '`river submit`'}"


def _cannot(message: str, ways: str, note: str = "") -> Diagnostic:
    help_ = f"{_INSTALL}, {ways}"
    return Diagnostic("spark-no-river", message, notes=(Note(note),) if note else (), help=help_)


def _last(error: Exception) -> str:
    """What Python said in the executor, or else the beginning of what Spark says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if _PYTHON in lines[:-1]:  # it did not start, and this is what was said instead
        return lines[lines.index(_PYTHON) + 1]
    told = [line for line in lines if not line.startswith(("at ", "File ")) and "Error" in line]
    return next(iter([*reversed(told), *lines]), type(error).__name__)


def _release() -> str:
    try:
        return version("river-streams")
    except PackageNotFoundError:
        return ""
