"""`river opt`: River IL to better River IL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from river.cli.arguments import PROFILE, backends, check_output, one_of
from river.cli.limits import MEMORY, TIME
from river.cli.programs import PROGRAM, program_of
from river.cli.terminal import say, write

if TYPE_CHECKING:
    from river.cli.programs import Asked
    from river.cli.terminal import Streams


@click.command("opt", short_help="Optimize PROGRAM, and print it.")
@PROGRAM
@click.option(
    "-p", "--passes", metavar="PASSES", help="what to apply, in this order; without it, what a run applies"
)
@click.option(
    "--backend",
    default="multicore",
    show_default=True,
    metavar="NAME",
    shell_complete=one_of(backends),
    help="whose passes, without `-p`",
)
@click.option("--cores", type=click.IntRange(1, 4096), help="of one machine; without it, those of this one")
@click.option("--machines", type=click.IntRange(1, 4096), default=1, show_default=True, help="machines alike")
@click.option("-o", "--output", metavar="FILE", help="where the River IL goes; without it, standard output")
@PROFILE
@click.option("-q", "--quiet", is_flag=True, help="say nothing of what was refused")
@TIME
@MEMORY
@click.pass_obj
def opt_(
    streams: Streams,
    asked: Asked,
    passes: str | None,
    backend: str,
    cores: int | None,
    machines: int,
    output: str | None,
    profile: str | None,
    *,
    quiet: bool,
) -> None:
    """Optimize PROGRAM: River IL, or a text that is compiled to it first.

    Without `-p`, what is printed is what `river run` runs on this machine. PASSES are names with options:
    `fusion,fission{degree=2,epoch=64},expand,placement`. What a pass refuses to do is told on standard error, with the reason.

    \b
    Examples:
      river opt q.cql
      river opt -p fusion q.river
      river opt -p 'fission{degree=4},expand' q.cql -o q4.river
    """  # noqa: D301
    from river import plugins
    from river.il.pretty import pretty
    from river.passes import apply, pipeline
    from river.platform import Platform, here

    check_output(streams, asked.program, output)
    wanted: str = getattr(plugins.backend(backend), "passes", "") if passes is None else passes
    found = pipeline(wanted, plugins.pass_) if wanted else ()
    compiled = program_of(streams, asked, profile=profile)
    platform = Platform(here().cores if cores is None else cores, machines)
    applied = apply(compiled.program, found, platform, compiled.templates)
    if not quiet:
        say(streams, applied.remarks)
    text = pretty(applied.program)
    write(streams, output, text)
