"""`river profile`: what the operators of a program take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from river.cli.arguments import EXTERN, FIRING, FORMAT_IN, IN, ON_ERROR, check_output, job_of
from river.cli.limits import MEMORY, TIME
from river.cli.programs import PROGRAM, program_of
from river.cli.terminal import write

if TYPE_CHECKING:
    from river.cli.programs import Asked
    from river.cli.terminal import Streams


@click.command("profile", short_help="Measure what each operator of PROGRAM takes.")
@PROGRAM
@IN
@FORMAT_IN
@click.option("-o", "--output", metavar="FILE", help="where the profile goes; without it, standard output")
@ON_ERROR
@FIRING
@EXTERN
@TIME
@MEMORY
@click.pass_obj
def profile_(streams: Streams, asked: Asked, **given: Any) -> None:
    """Measure what each operator of PROGRAM takes over data files, for `river run --profile`.

    PROGRAM runs as it is, without passes, on one worker, and what it sends goes nowhere; twice, where the inputs are files. Some
    seconds' worth of rows are enough. The profile says of each operator how many nanoseconds it took, for how many items, how
    many it sent, and the bytes of these. With it, `river run` decides which operators become one, which are worth several
    workers, and how many. Results do not depend on it.

    \b
    Examples:
      river profile delays.cql --in flights=flights.csv -o delays.profile
      river run delays.cql --in flights=flights.csv --profile delays.profile
      river explain delays.cql --profile delays.profile
    """  # noqa: D301
    from river.driver import profiled

    check_output(streams, asked.program, given["output"], given["externs"])
    job = job_of(streams, asked.program, {**given, "workers": 1})
    compiled = program_of(streams, asked, seed=given["seed"])
    write(streams, given["output"], profiled(compiled, job).text)
