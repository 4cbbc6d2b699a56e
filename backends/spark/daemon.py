"""What Python workers of a Spark that River has started are forked of: a process that has imported what their tasks need.

A worker that imports for itself takes most of a second before its first row. Each of them would, and again after a task that has
failed. pyspark's own daemon imports no more than pyspark, as what starts threads must not be forked: of all that is here only
the allocator of Arrow has one, which minds forks.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

NEEDED: Final = (
    "pandas",  # pyspark looks for it in each task that has columns
    "pyarrow.compute",
    "pyarrow.pandas_compat",
    "optimizers",
    "backends.multicore.run",
    "backends.native.module",
    "backends.spark.direct",
    "backends.spark.epoch",
    "pyspark.worker",
)
"""Modules that bring with them what tasks import: readers, machine code, and the passes and the engine for programs in a task."""


def unpacked(path: Sequence[str]) -> list[str]:
    """Where to look for modules, without the archives of a pyspark that is there as files, too.

    Spark puts its archives first. Python reads the whole list of what is in them for each of their folders that it knows whenever
    it is told that there may be new modules, which a worker does at its first task, and for each look at what is installed.
    """
    others = [each for each in path if not each.endswith(".zip")]
    found = {name: PathFinder.find_spec(name, others) for name in ("pyspark", "py4j")}
    origins = [spec.origin for spec in found.values() if spec is not None and spec.origin is not None]
    if len(origins) < len(found):
        return [*path]
    package = Path(origins[0]).parent
    return [each for each in path if each in others or package not in Path(each).parents]


def main() -> None:
    """Imports, and goes on as pyspark's daemon."""
    found = unpacked(sys.path)
    for archive in {*sys.path} - {*found}:
        sys.path_importer_cache.pop(archive, None)
    sys.path[:] = found
    for name in NEEDED:
        import_module(name)
    gc.collect()
    gc.freeze()  # workers look for garbage after each task: among all that is here it took longer than a small task
    import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    main()
