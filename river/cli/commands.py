"""All commands, and what becomes of their errors."""

from __future__ import annotations

import os
import shlex
from contextlib import redirect_stdout
from importlib import import_module
from typing import Final, TextIO

import click

from river.cli import signals
from river.cli.limits import exhausted
from river.cli.terminal import Streams, say
from river.diagnostics import Diagnostic, InternalError, Rejected, closest

COMMANDS: Final = {
    "check": "execution",
    "compile": "translation",
    "explain": "insight",
    "graph": "insight",
    "opt": "optimization",
    "profile": "profiling",
    "run": "execution",
    "submit": "submission",
    "version": "versions",
}
"""The modules that have the commands: only that of the command which is asked for is imported."""

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
        help_ = error.help if isinstance(error, UnknownCommand) else _usage_help(error)
        say(streams, [Diagnostic("usage", error.format_message(), help=help_)])
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
    except Exception as error:  # noqa: BLE001 - the last line of defence: people get words, not a traceback
        status = signals.ended(stderr)
        if status is not None:
            return status
        from river.lang import memory

        if memory.refused(error):
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


class UnknownCommand(click.UsageError):
    """A word that is no command; `help`: what to try."""

    def __init__(self, word: str, context: click.Context) -> None:
        super().__init__(f"there is no command `{word}`", context)
        self.help = closest(word, COMMANDS) or f"the commands are {', '.join(COMMANDS)}"
        if os.path.exists(word):  # noqa: PTH110 - whatever it is
            self.help = (
                f"`river run {shlex.quote(word)}` runs a program; the commands are {', '.join(COMMANDS)}"
            )


class _Commands(click.Group):
    """The commands by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return getattr(import_module(f"river.cli.{COMMANDS[cmd_name]}"), f"{cmd_name}_")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in COMMANDS or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        raise UnknownCommand(args[0], ctx)


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
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
