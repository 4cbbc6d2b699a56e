"""What a Python process of Spark's has. It is sent there by value, so it imports nothing of River."""

from __future__ import annotations


def look(_row: int) -> str:
    """Three lines: the path of the Python; what River needs and is missing, with blanks between; River's version.

    That is empty where River's metadata are missing, as in a zip file of its packages alone.
    """
    import sys
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec

    needed = ("river", "backends", "attrs", "lark", "networkx", "pyarrow", "pandas")
    try:
        release = version("river-streams")
    except PackageNotFoundError:
        release = ""
    return "\n".join((sys.executable, " ".join(name for name in needed if find_spec(name) is None), release))


def river(module: str, name: str, release: str, ways: str) -> object:
    """A function of River's of this `release`, for a task that is sent its name. `ways`: what to do where there is none.

    Raises: RuntimeError, which Spark tells whoever wanted the rows.
    """
    from importlib import import_module

    python, missing, there = look(0).split("\n")
    if missing:
        why = f"it has no {missing.replace(' ', ', ')}"
    elif not there:
        why = "it has River's files without their metadata"
    else:
        why = f"it has River {there}, and the plan is of {release}"
    if not missing and there and release in ("", there):
        return getattr(import_module(module), name)
    message = f"the executors of Spark run `{python}`, which cannot run River: {why}"
    raise RuntimeError(f"error[spark-no-river]: {message}\n  = help: {ways}")
