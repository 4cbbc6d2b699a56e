"""`river run` and `river check`: programs over data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from river.cli.arguments import (
    BATCH,
    BOUND,
    CHECKPOINT,
    DEADLINE,
    DEBUG_NATIVE,
    EVERY,
    EXPERIMENT,
    EXTERN,
    FOLLOW,
    FOLLOW_INPUT,
    FORMAT_IN,
    IDLE,
    IDLE_EXIT,
    IN,
    IN_PLACE,
    ITERATIONS,
    LANG,
    LATENESS,
    METRICS,
    NATIVE,
    ON_ERROR,
    OPTIMIZE,
    PROGRAM,
    RESTART,
    SEED,
    STOP_AFTER,
    SUMMARY,
    WALL,
    WORKERS,
    backends,
    checkpoint_of,
    job_of,
    live_of,
    one_of,
    pairs,
    program_of,
)
from river.cli.signals import ended_by_signals
from river.cli.terminal import BINARY, Progress, Screen, say
from river.diagnostics import Diagnostic, Rejected

if TYPE_CHECKING:
    from river.cli.terminal import Streams
    from river.driver import Comparison
    from river.metrics import Metrics


NOTED = 0.1
"""Seconds of compiling that are worth a word."""


@click.command("run")
@PROGRAM
@LANG
@IN
@click.option(
    "--out",
    "outs",
    multiple=True,
    metavar="NAME=FILE",
    help="where an output goes; without it, standard output",
)
@IN_PLACE
@FORMAT_IN
@click.option(
    "--out-format",
    "out_formats",
    multiple=True,
    metavar="NAME=FORMAT",
    help="csv, tsv, jsonl, parquet, arrow or table: when the suffix does not tell",
)
@click.option(
    "--format",
    "format_",
    metavar="FORMAT",
    shell_complete=one_of(lambda: ("csv", "jsonl", "tsv", "table")),
    help="format of what goes to standard output: csv, jsonl, tsv or table (default on a terminal)",
)
@click.option(
    "--limit", type=click.IntRange(0), help="print only the first N rows of each output to standard output"
)
@click.option(
    "--backend",
    default="multicore",
    show_default=True,
    metavar="NAME",
    shell_complete=one_of(backends),
    help="multicore, reference or spark",
)
@ON_ERROR
@WORKERS
@BATCH
@BOUND
@SEED
@LATENESS
@ITERATIONS
@NATIVE
@DEBUG_NATIVE
@DEADLINE
@EXTERN
@FOLLOW
@FOLLOW_INPUT
@IDLE
@WALL
@STOP_AFTER
@IDLE_EXIT
@OPTIMIZE
@EXPERIMENT
@CHECKPOINT
@EVERY
@RESTART
@METRICS
@SUMMARY
@click.option("-q", "--quiet", is_flag=True, help="no progress and no summary")
@click.pass_obj
def run_(streams: Streams, program: str, lang: str | None, **given: Any) -> None:
    """Run PROGRAM over data files.

    Inputs and outputs are CSV, TSV, JSON lines, Parquet or Arrow files, by suffix. A relation comes out as its change log:
    rows with `op` + (inserted) or - (deleted), and the instant at which that happened.

    \b
    Examples:
      river run delays.cql --in flights=flights.csv
      river run delays.cql --in flights=flights.csv --out delays=delays.parquet
      cat flights.csv | river run delays.cql --in flights=- --in-format flights=csv --format csv | head
      river run q.cql --in s=s.jsonl --on-error dead-letter=bad.jsonl
      river run q.cql --in s=logs/ --follow --out result=result.csv
      river run q.cql --in s=s.csv --out result=result.csv --checkpoint state --every 30s
    """  # noqa: D301
    from attrs import evolve

    from river.driver import execute
    from river.driver.places import Place
    from river.io.sinks import known_format

    job = checkpoint_of(live_of(job_of(streams, program, given), given), given)
    compiled = program_of(streams, program, lang, once=True)
    targets = pairs("--out", given["outs"])
    outputs: dict[str, Any] = {name: path for name, path in targets.items() if path != "-"}
    written = [each.name for each in compiled.program.outputs]
    printed = [name for name in written if name not in outputs]
    at_once = job.live is not None or job.checkpoint is not None
    several = len(printed if at_once else written) > 1
    screen = Screen(streams, given["format_"], given["limit"], several=several, live=at_once)
    if printed and known_format(given["format_"], printed[0]) in BINARY and len(printed) > 1:
        message = f"`{given['format_']}` on standard output can hold one output only"
        raise Rejected(
            [Diagnostic("data-format", message, help="write the others to files: `--out NAME=FILE`")]
        )
    progress = Progress(streams.stderr, quiet=given["quiet"] or job.live is not None)
    job = evolve(
        job,
        outputs=outputs,
        formats={**job.formats, **pairs("--out-format", given["out_formats"])},
        default=screen.target,
        watch=progress.update,
        options=evolve(job.options, observe=progress.observe if progress.visible else None),
        metrics=given["metrics"],
        in_place=given["in_place"],
        written=(Place("standard output", streams.stdout),) if printed else (),
    )
    try:
        with ended_by_signals(job.live):
            results = execute(compiled, given["backend"], job)
    finally:
        progress.clear()
    screen.finish()
    say(streams, results.warnings)
    if not given["quiet"]:
        compiling = results.summary.compiling
        seconds = max(results.seconds - compiling, 0.0)
        rate = results.read / seconds if seconds > 0 else 0.0
        shown = ", ".join(f"{name}: {count:,} rows" for name, count in results.rows.items())
        print(f"{results.read:,} items in {seconds:.2f} s ({rate:,.0f}/s); {shown}", file=streams.stderr)
        if compiling >= NOTED:
            print(
                f"before that, machine code was made in {compiling:.1f} s;"
                " it is kept for runs with the same formats",
                file=streams.stderr,
            )
        calls = sum(results.summary.host_calls.values())
        if calls:
            of = ", ".join(f"{name}: {n:,}" for name, n in results.summary.host_calls.items())
            print(f"{calls:,} times Python ran, not machine code; {of}", file=streams.stderr)
    if given["summary"]:
        _summary(streams, results.summary.metrics, given["backend"])


def _summary(streams: Streams, metrics: Metrics | None, backend: str) -> None:
    from river.metrics import table

    text = f"the backend `{backend}` does not tell where its time went" if metrics is None else table(metrics)
    print(text, file=streams.stderr)


@click.command("check")
@PROGRAM
@LANG
@IN
@FORMAT_IN
@click.option(
    "--backend",
    "backends",
    multiple=True,
    metavar="NAME",
    shell_complete=one_of(backends),
    help="a backend to compare; without it, all that are installed",
)
@ON_ERROR
@WORKERS
@BATCH
@BOUND
@SEED
@LATENESS
@ITERATIONS
@NATIVE
@DEBUG_NATIVE
@EXPERIMENT
@EXTERN
@click.pass_obj
def check_(streams: Streams, program: str, lang: str | None, **given: Any) -> None:
    """Run PROGRAM on every backend and compare the results with the calculus.

    The reference backend is the Brooklet calculus itself: slow, and the definition of what is right.

    \b
    Example:
      river check delays.cql --in flights=flights.csv
    """  # noqa: D301
    from river import plugins
    from river.driver import compare

    job = job_of(streams, program, given)
    compiled = program_of(streams, program, lang)
    others = given["backends"] or plugins.backends()
    if given["experiments"] and not given["backends"]:
        others = [name for name in others if getattr(plugins.backend(name), "experiments", {})]
    named = bool(given["backends"] or given["experiments"])
    order = ("reference", *(name for name in others if name != "reference"))
    differing: list[Comparison] = []
    for one in compare(compiled, job, order, named=named):
        print(_verdict(one, measure=one.backend == "reference"), file=streams.stdout, flush=True)
        for difference in one.differences:
            print(f"  {one.backend}: {difference}", file=streams.stdout)
        if one.differences:
            differing.append(one)
    if differing:
        shown = ", ".join(one.backend for one in differing)
        raise Rejected(
            [
                Diagnostic(
                    "check-differs",
                    f"not what the calculus computes: {shown}",
                    help="this is a mistake of River's: please report it",
                )
            ]
        )


def _verdict(one: Comparison, *, measure: bool) -> str:
    """One line of `river check`."""
    if one.refused:
        return f"{one.backend:<10} not run: {one.refused[0].message}"
    word = "is the measure" if measure else "DIFFERS" if one.differences else "agrees"
    rows = ", ".join(f"{name}: {count:,} items" for name, count in one.rows.items())
    return f"{one.backend:<10} {word:<14} {one.seconds:8.2f} s  {rows}"
