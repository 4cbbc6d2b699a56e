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
