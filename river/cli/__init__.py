"""The command line: `river compile | opt | run | check | graph | explain | version`. The only package that prints.

Exit status: 0 all right, 1 a mistake in the text, the data or the arguments, 2 a mistake of River's, 130 interrupted, 143
terminated.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

from river.cli import signals

if TYPE_CHECKING:
    from typing import TextIO

OK = 0


def run() -> None:
    """The entry point of the `river` command."""
    signals.heed()
    try:
        status = _run() or signals.ended(sys.stderr) or OK
    except BaseException:  # a signal may come before `main` begins, or behind it
        ended = signals.ended(sys.stderr)
        if ended is None:
            raise
        status = ended
    signals.unheed()
    sys.exit(status)


def _run() -> int:
    # Trees and items are made by the hundred thousand and hardly any is garbage: looking for cycles that often costs 12 %,
    # while modules are imported, too.
    gc.set_threshold(200_000, 20, 20)
    from river.cli.commands import river

    if instruction := os.environ.get("_RIVER_COMPLETE"):
        from click.shell_completion import shell_complete

        return shell_complete(river, {}, "river", "_RIVER_COMPLETE", instruction)
    try:
        status = main(sys.argv[1:], sys.stdin, sys.stdout, sys.stderr)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output is gone (`river run ... | head`): nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = OK
    return status


def main(argv: list[str], stdin: TextIO, stdout: TextIO, stderr: TextIO) -> int:
    """Runs one command and returns its exit status."""
    from river.cli import commands

    return commands.main(argv, stdin, stdout, stderr)
