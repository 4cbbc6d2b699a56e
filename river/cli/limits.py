"""What a command may take: `--time` and `--memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from river.cli.quantities import DURATION, SIZE
from river.cli.signals import end_after
from river.diagnostics import Diagnostic, Rejected, render

if TYPE_CHECKING:
    from collections.abc import Callable

BEGIN: Final = 96 << 20
"""Bytes that a command needs to begin, besides what the process has when its options are read."""


def shown(size: int) -> str:
    """A size for people, rounded up."""
    return f"{-(-size >> 20)}M"


def _at_the_end(context: click.Context, end: Callable[[], None]) -> None:
    """Has `end` called when the whole command is over: click leaves a subcommand open whose other options are refused."""
    context.find_root().call_on_close(end)


def _begin_time(context: click.Context, _parameter: click.Parameter, seconds: float | None) -> None:
    if seconds is not None:
        from river.io.scalars import format_duration

        message = f"the command took longer than `--time {format_duration(round(seconds * 1_000_000))}`"
        words = render(Diagnostic("run-time", message, help="give it more"))
        _at_the_end(context, end_after(seconds, words))


def _begin_memory(context: click.Context, _parameter: click.Parameter, size: int | None) -> None:
    if size is not None:
        from river.lang import memory

        if size < memory.taken() + BEGIN:
            message = f"`--memory {shown(size)}` is too little to begin"
            help_ = f"give it {shown(memory.taken() + BEGIN)} at least"
            raise Rejected([Diagnostic("run-memory", message, help=help_)])
        memory.limit(size)
        _at_the_end(context, lambda: memory.limit(None))


def exhausted() -> Diagnostic:
    """What is told when there is no memory left for something that cannot trap."""
    from river.lang import memory

    memory.limit(None)  # to be able to tell it
    message = "the command needs more memory than it may have"
    help_ = "give it more, or run it with fewer `--workers` or a smaller `--batch`"
    return Diagnostic("run-memory", message, help=help_)


TIME = click.option(
    "--time",
    type=DURATION,
    expose_value=False,
    callback=_begin_time,
    help="how long the command may take, compiling included: then it ends with status 124",
)
MEMORY = click.option(
    "--memory",
    type=SIZE,
    expose_value=False,
    callback=_begin_memory,
    help="how much memory the command may have, such as 500M or 2G: what needs more ends in a trap",
)
