"""Programs for `spark-submit`: the command line, and the files that it names.

The environment travels as an archive (`packaging`), which becomes the Python of the executors, and of a driver in the cluster.
There is no other difference to `river run`: the driver is that command, in a process that Spark has made.

| `--deploy-mode` | the driver | the program |
|---|---|---|
| `client` | here, with the Python that is here | is read here |
| `cluster` | in the cluster, with the Python of the archive | goes along as River IL, checked here |
"""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from backends.spark.java import find_java
from backends.spark.packaging import NAME, archive, usual_python
from backends.spark.session import ARCHIVES_KEY, FOLDER, MASTER, MASTER_KEY, PYTHON_KEY, see_master
from river.classes import field, frozen
from river.diagnostics import Diagnostic, Rejected
from river.io.errors import unwritable
from river.lang.tables import cache_folder, keep

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

DRIVER_KEY: Final = "spark.pyspark.driver.python"
LOG_KEY: Final = "spark.log.level"

_KUBERNETES: Final = {
    "spark.kubernetes.container.image": "an image that has Spark and Python",
    "spark.kubernetes.file.upload.path": "a place that you and the cluster see, such as s3a://bucket/uploads",
}
"""What has to be said for a driver in Kubernetes."""

_ENVIRONMENT: Final = {"yarn": "spark.yarn.appMasterEnv.", "k8s": "spark.kubernetes.driverEnv."}
"""By kind of master, what settings begin with that are the environment of a driver in the cluster."""

_MAIN: Final = '''"""Runs a command of River's in a process that `spark-submit` has started."""

import sys

from river.cli import main

sys.exit(main(sys.argv[1:], sys.stdin, sys.stdout, sys.stderr))
'''


@frozen(hash=False)
class Submission:
    """What is to be submitted. `name`: of the program, for people; `text`: the program, where the driver cannot read it.

    `arguments`: of `river run`, behind the program where there is a text. `settings`: of Spark. `modules`: files that executors
    import. `python`: the executors' own Python; `more`: what else to package; `folder`: where the files are put.
    """

    name: str
    arguments: tuple[str, ...]
    mode: Literal["client", "cluster"] = "client"
    text: str | None = None
    settings: Mapping[str, str] = field(factory=dict[str, str])
    modules: tuple[str, ...] = ()
    python: str | None = None
    more: tuple[str, ...] = ()
    folder: str | None = None

    @property
    def home(self) -> Path:
        """The folder of the files."""
        return cache_folder() / "spark" if self.folder is None else Path(self.folder)

    @property
    def program(self) -> Path:
        """The file of the text."""
        return self.home / f"{Path(self.name).stem or 'program'}.river"

    @property
    def main(self) -> Path:
        """What Spark starts."""
        return self.home / "run_river.py"

    @property
    def master(self) -> str:
        """As Spark writes it; empty if nobody says it."""
        return self.settings.get(MASTER_KEY) or os.environ.get(MASTER, "")


def command(wanted: Submission) -> list[str]:
    """The command line. Raises: Rejected("spark-submit") for what Spark cannot do."""
    _check(wanted)
    options: list[tuple[str, str]] = [
        ("--master", wanted.master),
        ("--deploy-mode", wanted.mode),
        ("--name", f"river {wanted.name}"),
        (
            "--archives",
            ",".join(
                filter(None, (f"{wanted.home / NAME}.tar.gz#{NAME}", wanted.settings.get(ARCHIVES_KEY)))
            ),
        ),
    ]
    if wanted.modules:
        options.append(("--py-files", ",".join(wanted.modules)))
    if wanted.text is not None:
        options.append(("--files", str(wanted.program)))
    options += [("--conf", f"{key}={value}") for key, value in _settings(wanted).items()]
    words = [_spark_submit(), *(word for option in options for word in option), str(wanted.main), "run"]
    program = () if wanted.text is None else (wanted.program.name,)
    return [*words, *program, *wanted.arguments, "--backend", "spark"]


def _settings(wanted: Submission) -> dict[str, str]:
    found = {LOG_KEY: "WARN", PYTHON_KEY: f"./{NAME}/bin/python"}
    if wanted.mode == "client":
        found[DRIVER_KEY] = sys.executable
    elif folder := os.environ.get(FOLDER):
        prefix = next((each for kind, each in _ENVIRONMENT.items() if wanted.master.startswith(kind)), None)
        if prefix is not None:
            found[f"{prefix}{FOLDER}"] = folder
    own = {MASTER_KEY, ARCHIVES_KEY}
    return found | {key: value for key, value in wanted.settings.items() if key not in own}


def _check(wanted: Submission) -> None:
    found = list(_wrong(wanted))
    if found:
        raise Rejected(found)


def _wrong(wanted: Submission) -> Iterator[Diagnostic]:
    """Why Spark cannot do that."""
    master = wanted.master
    if not master:
        help_ = f"name it: `--spark-master URL`, or set {MASTER}"
        yield Diagnostic("spark-submit", "there is no cluster to submit the program to", help=help_)
    elif master.startswith("local"):
        message = f"`{master}` is this machine, for which nothing has to be packaged"
        yield Diagnostic("spark-submit", message, help="use `river run --backend spark`")
    elif master.startswith("spark://") and wanted.mode == "cluster":
        message = "Spark's own clusters run drivers of Python only where they are submitted"
        yield Diagnostic("spark-submit", message, help="use `--deploy-mode client`")
    elif master.startswith("k8s://") and wanted.mode == "cluster":
        for key, what in _KUBERNETES.items():
            if key not in wanted.settings:
                message = f"Kubernetes needs `{key}`: {what}"
                yield Diagnostic("spark-submit", message, help=f"say it: `--spark-conf {key}=...`")
    for key in (PYTHON_KEY, DRIVER_KEY):
        if key in wanted.settings:
            message = f"`{key}` is the Python of the package"
            help_ = "`--python PATH` names the executors' own, which that starts"
            yield Diagnostic("spark-submit", message, help=help_)


def _spark_submit() -> str:
    """The program of the Spark that the user has, or of the package."""
    if home := os.environ.get("SPARK_HOME"):
        return str(Path(home) / "bin" / "spark-submit")
    if on_path := shutil.which("spark-submit"):
        return on_path
    spec = find_spec("pyspark")
    assert spec is not None  # noqa: S101 - the backend is there
    assert spec.origin is not None  # noqa: S101 - it is a package
    return str(Path(spec.origin).parent / "bin" / "spark-submit")


def prepared(wanted: Submission) -> dict[str, str]:
    """Makes the files that the command line names; what the environment of the command is to have besides.

    Raises: Rejected("spark-submit", "spark-no-java", "spark-master", "data-output").
    """
    java = find_java()
    if wanted.mode == "client":
        see_master(wanted.master)
    packaged(wanted.home, wanted.python, wanted.more)
    try:
        keep(wanted.main, _MAIN.encode())
        if wanted.text is not None:
            keep(wanted.program, wanted.text.encode())
        return {"JAVA_HOME": str(java.home())}
    except OSError as error:
        raise Rejected([unwritable(str(wanted.home), error)]) from error


def packaged(folder: str | Path, python: str | None, more: Iterable[str]) -> Path:
    """The archive in a folder. Raises: Rejected("spark-submit", "data-output")."""
    try:
        return archive(Path(folder), python or usual_python(), more)
    except OSError as error:
        raise Rejected([unwritable(str(folder), error)]) from error
