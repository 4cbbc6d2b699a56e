"""`river graph` and `river explain`: programs to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from river.cli.arguments import (
    EXTERN,
    OPTIMIZE,
    PROFILE,
    WORKERS,
    backends,
    check_output,
    functions,
    one_of,
    passes_of,
)
from river.cli.limits import MEMORY, TIME
from river.cli.programs import PROGRAM, program_of
from river.cli.terminal import coloured, say, write
from river.diagnostics import Diagnostic, Rejected

if TYPE_CHECKING:
    from river.cli.arguments import Run
    from river.cli.programs import Asked
    from river.cli.terminal import Streams
    from river.driver import Compiled
    from river.pictures.drawing import Drawing

SUFFIXES = {".svg": "svg", ".mmd": "mermaid", ".mermaid": "mermaid", ".md": "mermaid", ".txt": "text"}

PASSES = click.option(
    "-p", "--passes", metavar="PASSES", help="look at what these passes make of it, as in `river opt -p`"
)
BACKEND = click.option(
    "--backend", metavar="NAME", shell_complete=one_of(backends), help="whose plan to look at"
)


@click.command("graph")
@PROGRAM
@click.option("-o", "--output", metavar="FILE", help="where the picture goes; without it, standard output")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["svg", "mermaid", "text"]),
    help="without it, the suffix of FILE tells (.svg, .mmd, .txt); on standard output, text",
)
@click.option("--plan", "planned", is_flag=True, help="show how it will run: locks, and how much queues hold")
@click.option(
    "--backend",
    default="multicore",
    show_default=True,
    metavar="NAME",
    shell_complete=one_of(backends),
    help="whose plan to show",
)
@PASSES
@WORKERS
@EXTERN
@TIME
@MEMORY
@click.pass_obj
def graph_(
    streams: Streams,
    asked: Asked,
    output: str | None,
    format_: str | None,
    backend: str,
    passes: str | None,
    workers: int | None,
    externs: tuple[str, ...],
    *,
    planned: bool,
) -> None:
    """Draw the operators, queues and variables of PROGRAM.

    Operators with state have a folded corner, those that may run in parallel a second box behind them; variables are
    dashed ellipses, regions, segments and groups dashed frames. Under the pointer, an SVG tells the type of each queue.

    \b
    Examples:
      river graph delays.cql
      river graph delays.cql -o delays.svg
      river graph delays.cql --plan -o plan.svg
      river graph delays.cql --format mermaid
    """  # noqa: D301
    from river.backend import Options
    from river.pictures.drawing import Planned, drawing

    form = format_ or _format(output)
    check_output(streams, asked.program, output, externs)
    run = passes_of(backend, Options(workers=workers, optimize=planned))
    compiled = _passed(program_of(streams, asked), passes, run)
    if passes is not None:
        say(streams, compiled.remarks)
    plan = None
    if planned:
        plan = _plan(compiled, backend, externs, workers)
        if not isinstance(plan, Planned):
            help_ = f"`river explain --backend {backend}` prints it"
            raise Rejected([Diagnostic("graph-plan", f"the plan of `{backend}` cannot be drawn", help=help_)])
    picture = drawing(compiled.graph, plan)
    tinted = output in (None, "-") and coloured(streams.stdout)
    title = Path(asked.program[0]).name.encode(errors="backslashreplace").decode()  # a name may be no text
    write(streams, output, _picture(picture, form, title, tinted=tinted))


def _format(output: str | None) -> str:
    if output is None or output == "-":
        return "text"
    suffix = Path(output).suffix
    if suffix not in SUFFIXES:
        message = f"the suffix of `{output}` does not tell the format of the picture"
        raise Rejected(
            [Diagnostic("graph-format", message, help="say it with `--format`: svg, mermaid or text")]
        )
    return SUFFIXES[suffix]


def _picture(picture: Drawing, form: str, title: str, *, tinted: bool) -> str:
    if form == "svg":
        from river.pictures.svg import svg

        return svg(picture, title)
    if form == "mermaid":
        from river.pictures.mermaid import mermaid

        return mermaid(picture)
    from river.pictures.text import text

    return text(picture, coloured=tinted)


def _passed(compiled: Compiled, passes: str | None, run: Run) -> Compiled:
    """The program after the passes: those that are asked for, else those of a run."""
    return compiled.tuned(run[0] if passes is None else passes, run[1])


def _plan(compiled: Compiled, backend: str, modules: tuple[str, ...], workers: int | None) -> Any:
    from river import plugins
    from river.backend import Options
    from river.platform import here

    return plugins.backend(backend).plan(
        compiled.graph, here(), Options(externs=functions(modules), workers=workers)
    )


@click.command("explain", short_help="Tell what River knows of PROGRAM.")
@PROGRAM
@BACKEND
@PASSES
@WORKERS
@EXTERN
@OPTIMIZE
@PROFILE
@click.option(
    "--native", is_flag=True, help="which operators run as machine code and how, and why others do not"
)
@click.option("--algebra", is_flag=True, help="CQL: the relational algebra of each query, and nothing else")
@click.option("--json", "json_", is_flag=True, help="for programs: one JSON object")
@TIME
@MEMORY
@click.pass_obj
def explain_(
    streams: Streams,
    asked: Asked,
    backend: str | None,
    passes: str | None,
    workers: int | None,
    externs: tuple[str, ...],
    profile: str | None,
    *,
    optimize: bool,
    native: bool,
    algebra: bool,
    json_: bool,
) -> None:
    """Tell what River knows of PROGRAM and its operators, as they run here.

    What runs in parallel, and why the rest does not. For each operator: where it comes from, its state and how that grows, what
    it sends per firing, the fields it passes on and those it reads, whether order matters, how it can trap. Also what passes
    refused to do, and why: those that a run applies, or those that `-p` names.

    \b
    Examples:
      river explain delays.cql
      river explain delays.cql --backend multicore
      river explain delays.cql --no-optimize
      river explain delays.cql -p fission,fusion
      river explain delays.cql --native
      river explain delays.cql --profile delays.profile
      river explain delays.cql --json
      river explain delays.cql --algebra
    """  # noqa: D301
    from river.backend import Options
    from river.explain.explain import explain
    from river.explain.show import as_json, text

    if algebra:
        from river.driver.compilation import algebra as algebra_of

        streams.stdout.write(algebra_of(program_of(streams, asked)))
        return
    run = passes_of(backend or "multicore", Options(workers=workers, optimize=optimize))
    read = program_of(streams, asked, profile=profile)
    compiled = _passed(read, passes, run)
    several = passes is None and run[0] is not None and run[1].cores > 1
    cores = run[1].cores if backend in (None, "multicore") else 1
    found = explain(compiled.graph, asked.program[0], several=several, cores=cores)
    shown = None if backend is None else _plan(compiled, backend, externs, workers)
    refused = (
        each for each in compiled.remarks if not several or each.place != "fission"
    )  # that is told above
    remarks = (*refused, *getattr(shown, "remarks", ()))
    plan = None if shown is None else str(shown.show())
    if native:
        report = str(_plan(compiled, "multicore", externs, workers).native_report())
        plan = report if plan is None else f"{plan}\n\n{report}"
    if json_:
        streams.stdout.write(as_json(found, remarks, plan))
        return
    streams.stdout.write(text(found, coloured=coloured(streams.stdout)))
    if plan is not None:
        streams.stdout.write(f"\n{plan}\n")
    say(streams, remarks)
