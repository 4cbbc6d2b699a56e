"""`river compile`: a text to River IL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from river.cli.arguments import check_output
from river.cli.limits import MEMORY, TIME
from river.cli.programs import PROGRAM, program_of
from river.cli.terminal import write

if TYPE_CHECKING:
    from river.cli.programs import Asked
    from river.cli.terminal import Streams


@click.command("compile", short_help="Translate PROGRAM to River IL.")
@PROGRAM
@click.option("-o", "--output", metavar="FILE", help="where the River IL goes; without it, standard output")
@click.option("--expand", is_flag=True, help="show the bodies behind template instances")
@TIME
@MEMORY
@click.pass_obj
def compile_(
    streams: Streams,
    asked: Asked,
    output: str | None,
    *,
    expand: bool,
) -> None:
    """Translate PROGRAM to River IL, which is readable and can be edited.

    \b
    Examples:
      river compile --lang cql q.cql
      river compile q.cql -o q.river
      echo '...' | river compile --lang cql -
    """  # noqa: D301
    check_output(streams, asked.program, output)
    compiled = program_of(streams, asked)
    if not compiled.lowered:
        compiled.graph  # noqa: B018 - what a person wrote and does not verify is not handed out
    text = compiled.text
    if expand:
        from river.il.pretty import pretty
        from river.il.templates import expand_instances

        text = pretty(expand_instances(compiled.program, compiled.templates))
    write(streams, output, text)
