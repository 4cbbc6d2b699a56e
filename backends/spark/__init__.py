"""The backend of Apache Spark: programs as jobs of PySpark, with the results of the calculus.

Where executors can read the inputs, `ways` says how they run the program over `parts` of files, `files` are their tasks and
`direct` is such a run. Everything else goes by stages: `plan` cuts the graph, `worker` runs stages inside Spark's Python
processes, `marshal` is the form in which elements travel, `lower` makes Spark transformations of stages, and `run` executes a
plan; `java` and `session` find what Spark needs. `door` is for programs over DataFrames,
`addresses` for what Spark alone reaches. A run that follows folders is `continuous`: each `epoch` of it is a task, or several
`channels` of keys are, which `errands` tell what to do, and has been if `manifests` say so.

Paper: River §2.4, §4.6 (the platform is chosen late); Auto-parallelizing §4 (keyed regions).
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from river.diagnostics import Diagnostic, Rejected
from river.lang.memory import limited

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from backends.spark.plan import Plan
    from river.backend import Options, Sinks, Sources, Summary
    from river.driver import Compiled, Job, Results
    from river.il.graph import Graph
    from river.platform import Platform

for _needed in ("pyspark", "pandas"):  # whoever loads plugins says which extra brings them
    if find_spec(_needed) is None:
        raise ModuleNotFoundError(f"the backend `spark` needs {_needed}", name=_needed)


class Spark:
    """The backend `spark` (see `river.backend.Backend`)."""

    name: ClassVar[str] = "spark"
    settings: ClassVar[bool] = True
    slow_start: ClassVar[bool] = True
    views: ClassVar[bool] = True
    passes: ClassVar[str] = "hoisting,sharing,zipping,fusion{auto=true,light=true},sharing"

    def plan(self, graph: Graph, platform: Platform, options: Options, /) -> Plan:
        """The stages. Raises: Rejected("spark-no-java"), or with what the program has that cannot run here."""
        if limited() is not None:
            message = "Spark works in processes of its own, for which `--memory` has no effect"
            help_ = "leave it out, and set Spark's own: `spark.driver.memory`, `spark.executor.memory`"
            raise Rejected([Diagnostic("run-memory", message, help=help_)])
        from backends.spark.plan import plan
        from backends.spark.session import check

        made = plan(graph, platform, options)
        check(options.settings)
        return made

    def run(self, plan: Plan, sources: Sources, sinks: Sinks, /) -> Summary:
        from backends.spark.run import run

        return run(plan, sources, sinks)

    def follow(self, compiled: Compiled, job: Job, /) -> Results:
        """Runs over folders that grow, in epochs. Raises: Rejected; KeyboardInterrupt."""
        from backends.spark.continuous import follow

        return follow(self, compiled, job)

    def beyond(self, compiled: Compiled, job: Job, /) -> Results:
        """Runs over addresses that Spark reaches, and tables of its catalog. Raises: Rejected; KeyboardInterrupt."""
        from backends.spark.addresses import run

        return run(self, compiled, job)

    def frames(
        self,
        graph: Graph,
        inputs: Mapping[str, Any],
        *,
        order_by: Mapping[str, Sequence[str]],
        externs: Mapping[str, Callable[..., Any]],
    ) -> dict[str, Any]:
        """The outputs as DataFrames, made of the inputs' (`river.driver.Compiled.on_spark`). Raises: Rejected."""
        from backends.spark.door import frames

        return frames(graph, inputs, order_by=order_by, externs=externs)

    def submission(self, **wanted: Any) -> tuple[list[str], Callable[[], dict[str, str]]]:
        """A command line for `spark-submit`, and what makes the files that it names and says what environment it needs.

        The keywords are the fields of `submit.Submission`. Raises: Rejected("spark-submit").
        """
        from backends.spark.submit import Submission, command, prepared

        asked = Submission(**wanted)
        return command(asked), lambda: prepared(asked)

    def package(self, folder: str, python: str | None, more: Sequence[str]) -> str:
        """The path of the archive with River, which is made in a folder. Raises: Rejected("spark-submit", "data-output")."""
        from backends.spark.submit import packaged

        return str(packaged(folder, python, more))


BACKEND = Spark()
