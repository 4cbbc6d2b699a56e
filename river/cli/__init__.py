"""The command line: `river compile | opt | run | profile | check | submit | graph | explain | version`.

It is the only package that prints.

Exit status: 0 all right, 1 a mistake in the text, the data or the arguments, 2 a mistake of River's, 130 interrupted, 141
the reader of our output is gone, 143 terminated.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

from river.cli import signals, standard

if TYPE_CHECKING:
    from typing import TextIO


def command() -> None:
    """The `river` command as a process, which ends with it."""
    status = _status()
    from river.cli.leaving import leave

    leave(status)


def run() -> None:
    """The `river` command in a process that may go on. Raises: SystemExit."""
    sys.exit(_status())


def _status() -> int:
    """The exit status of the command that the process's arguments say."""
    signals.heed()
    try:
        stdin, stdout, stderr = standard.opened()
        status = _run(stdin, stdout, stderr) or signals.ended(sys.stderr) or 0
    except BaseException:  # a signal may come before `main` begins, or behind it
        ended = signals.ended(sys.stderr)
        if ended is None:
            raise
        status = ended
    signals.unheed()
    return status


def _run(stdin: TextIO, stdout: TextIO, stderr: TextIO) -> int:
    # Trees and items are made by the hundred thousand and hardly any is garbage: looking for cycles that often costs 12 %,
    # while modules are imported, too.
    gc.set_threshold(200_000, 20, 20)
    from river.cli.commands import river

    if instruction := os.environ.get("_RIVER_COMPLETE"):
        from click.shell_completion import shell_complete

        from river.diagnostics import Rejected

        try:
            status = shell_complete(river, {}, "river", "_RIVER_COMPLETE", instruction)
        except (BrokenPipeError, Rejected):  # the shell that asked is gone
            status = 1
    else:
        status = main(sys.argv[1:], stdin, stdout, stderr, alone=True)
    standard.closed(stdout)
    return status


def main(argv: list[str], stdin: TextIO, stdout: TextIO, stderr: TextIO, *, alone: bool = False) -> int:
    """Runs one command and returns its exit status. `alone`: the process ends then."""
    from river.cli import commands

    return commands.main(argv, stdin, stdout, stderr, alone=alone)
