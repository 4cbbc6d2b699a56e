"""All commands, and what becomes of their errors."""

from __future__ import annotations

import os
from contextlib import redirect_stdout
from typing import TextIO

import click

from river.cli import signals
from river.cli.execution import check_, run_
from river.cli.insight import explain_, graph_
from river.cli.limits import exhausted
from river.cli.optimization import opt_
from river.cli.profiling import profile_
from river.cli.submission import submit_
from river.cli.terminal import Streams, say
from river.cli.translation import compile_
from river.cli.versions import version_
from river.diagnostics import Diagnostic, InternalError, Rejected

OK, USER_ERROR, INTERNAL, INTERRUPTED, UNREAD = 0, 1, 2, 130, 141


def main(argv: list[str], stdin: TextIO, stdout: TextIO, stderr: TextIO, *, alone: bool) -> int:
    """See `river.cli.main`."""
    streams = Streams(stdin, stdout, stderr, alone)
    try:
        with (
            redirect_stdout(stdout),
            river.make_context("river", list(argv) or ["--help"], obj=streams) as context,
        ):
            river.invoke(context)
            stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.UsageError as error:
        say(streams, [Diagnostic("usage", error.format_message(), help=_usage_help(error))])
        return USER_ERROR
    except Rejected as rejected:
        say(streams, rejected.diagnostics)
        return USER_ERROR
    except (KeyboardInterrupt, click.Abort):
        status = signals.ended(stderr)
        if status is None:  # of whoever calls us
            print("interrupted", file=stderr)
        return INTERRUPTED if status is None else status
    except BrokenPipeError:  # who read our output has had enough (`river run ... | head`): nothing is wrong
        return UNREAD
    except MemoryError:
        say(streams, [exhausted()])
        return USER_ERROR
    except Exception as error:  # noqa: BLE001 - the last line of defence: people get words, not a traceback
        status = signals.ended(stderr)
        if status is not None:
            return status
        if isinstance(error, RuntimeError) and "can't start new thread" in str(
            error
        ):  # no memory for its stack
            say(streams, [exhausted()])
            return USER_ERROR
        return _internal(streams, error)
    return OK


def _usage_help(error: click.UsageError) -> str:
    command = error.ctx.command_path if error.ctx is not None else "river"
    return f"`{command} --help` shows how it is used"


def _internal(streams: Streams, error: Exception) -> int:
    if os.environ.get("RIVER_DEBUG"):
        raise error
    kind = "" if isinstance(error, InternalError) else f"{type(error).__name__}: "
    print(f"internal error: {kind}{error}", file=streams.stderr)
    print(
        "  = help: this is a mistake of River's, not yours; please report it with the program",
        file=streams.stderr,
    )
    print("  = help: RIVER_DEBUG=1 shows where it happened", file=streams.stderr)
    return INTERNAL


def _version() -> str:
    from river.entries import version

    return f"river {version('river-streams')}"


def _print_version(context: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(_version())
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version and exit.",
)
def river() -> None:
    """River runs stream programs on all cores: CQL, other languages, and its own intermediate language.

    \b
    Examples:
      river run delays.cql --in flights=flights.csv --out delays=delays.csv
      river compile delays.cql -o delays.river
      river graph delays.cql -o delays.svg
      river check delays.cql --in flights=flights.csv

    \b
    Completion in your shell:
      eval "$(_RIVER_COMPLETE=bash_source river)"     (or zsh_source, fish_source)
    """  # noqa: D301 - \b is click's sign for a block that keeps its lines


for command in (compile_, opt_, run_, profile_, check_, submit_, graph_, explain_, version_):
    river.add_command(command)
