"""The backend of one machine: operator instances on threads, bounded queues between them.

`plan` decides (queue bounds, locks, components), `assembly` makes queues and tasks of it, `scheduling` says who does what when,
`dispatch` and `reading` are the threads that obey, `run` starts and ends them. What fires stands in `backends.firing`.

Paper: River §2.3, §2.4.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final

from backends.multicore.experiments import EXPERIMENTS
from river.garbage import seldom

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backends.multicore.plan import Plan
    from river.aside import Aside
    from river.backend import Options, Sinks, Sources, Summary
    from river.il.graph import Graph
    from river.lang.typed import Operator
    from river.platform import Platform


_NEEDED: Final = (
    "backends.multicore.plan",
    "backends.multicore.run",
    "backends.native.arrow",
    "backends.native.ingest.reader",
    "backends.native.parameters",
    "river.io.columnar",
    "river.io.folders",
    "river.io.order",
)
"""Modules that runs import when they come to need them, with those that these import."""


class Multicore:
    """The backend `multicore` (see `river.backend.Backend`)."""

    name: ClassVar[str] = "multicore"
    live: ClassVar[bool] = True
    checkpoints: ClassVar[bool] = True
    metrics: ClassVar[bool] = True
    deadlines: ClassVar[bool] = True
    views: ClassVar[bool] = True
    plain_arrow: ClassVar[bool] = True
    experiments: ClassVar[Mapping[str, tuple[str, ...]]] = EXPERIMENTS
    passes: ClassVar[str] = (
        "hoisting,sharing,fusion{steady=true},zipping,fusion{auto=true,light=true,loops=true},sharing,fusion{auto=true,light=true},sharing,"
        "fission{auto=true,rules=runtime}"
    )

    def plan(self, graph: Graph, platform: Platform, options: Options, /) -> Plan:
        if options.native != "off" and (options.workers or platform.cores) > 1:
            _expect_code()
        from backends.multicore.plan import plan

        return plan(graph, platform, options)

    def ready(self) -> None:
        """Has what most runs need imported, and LLVM loaded by a thread that has ended when it returns."""
        loading = _expect_code()
        with seldom():
            for name in _NEEDED:
                import_module(name)
        if loading is not None:
            loading.done(None)

    def run(self, plan: Plan, sources: Sources, sinks: Sinks, /) -> Summary:
        with seldom():
            from backends.multicore.run import run

        return run(plan, sources, sinks)

    def constants(self, operator: Operator, /) -> tuple[Any, ...]:
        """The values of an operator's constants by machine code; none where it can have none, or they trap."""
        from backends.native.computed import computed
        from backends.native.llvm import available

        return computed(operator) if available() else ()


@cache
def _expect_code() -> Aside[None] | None:
    """Has a thread make ready what links machine code, while the modules of the run are imported: LLVM does without the GIL."""
    from backends.native.jit import expect
    from backends.native.llvm import available
    from river.aside import Aside

    return Aside(expect, "river-linker") if available() else None


BACKEND = Multicore()
