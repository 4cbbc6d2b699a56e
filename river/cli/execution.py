"""`river run` and `river check`: programs over data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from river.cli.arguments import (
    CHECKPOINT,
    DEADLINE,
    EVERY,
    EXPERIMENT,
    EXTERN,
    FIRING,
    FOLLOW,
    FOLLOW_INPUT,
    FORMAT_IN,
    HANG_UP,
    IDLE,
    IDLE_EXIT,
    IN,
    IN_PLACE,
    METRICS,
    MODE,
    ON_ERROR,
    OPTIMIZE,
    ORDER_BY,
    PARTITION_BY,
    PASSES,
    PROFILE,
    RESTART,
    SPARK_CONF,
    SPARK_MASTER,
    STOP_AFTER,
    SUMMARY,
    TOKEN,
    TOKEN_FILE,
    WALL,
    WORKERS,
    backends,
    checkpoint_of,
    job_of,
    live_of,
    one_of,
    pairs,
    passes_of,
)
from river.cli.limits import MEMORY, TIME
from river.cli.programs import PROGRAM, program_of
from river.cli.signals import ended_by_signals
from river.cli.terminal import Progress, say
from river.diagnostics import Diagnostic, Rejected

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from river.cli.programs import Asked
    from river.cli.terminal import Streams
    from river.driver import Comparison, Compiled, Job, Parting, Results
    from river.metrics import Metrics


NOTED = 0.1
"""Seconds of compiling that are worth a word."""

ALL = "all"
"""What `river check --backend` says for every backend."""

STATES = 100_000
"""States after which trying all schedules gives up, unless it is said: some seconds."""

LINES = 12
"""Firings of a schedule that are shown."""


@click.command("run")
@PROGRAM
@IN
@click.option(
    "--out",
    "outs",
    multiple=True,
    metavar="NAME=FILE",
    help="where an output goes, a file or a `folder/`; without it, standard output",
)
@click.option(
    "--out-dir", metavar="DIR", help="where files are that the program names itself; it names none outside"
)
@click.option("--allow-proc", is_flag=True, help="run the commands to which the program sends data")
@IN_PLACE
@MODE
@PARTITION_BY
@ORDER_BY
@FORMAT_IN
@click.option(
    "--out-format",
    "out_formats",
    multiple=True,
    metavar="NAME=FORMAT",
    help="csv, tsv, jsonl, parquet, arrow, entries or table: when the suffix does not tell",
)
@click.option(
    "--format",
    "format_",
    metavar="FORMAT",
    shell_complete=one_of(lambda: ("csv", "jsonl", "tsv", "table", "entries")),
    help="format of what goes to standard output: csv, jsonl, tsv, entries or table (default on a terminal)",
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
@FIRING
@DEADLINE
@EXTERN
@FOLLOW
@FOLLOW_INPUT
@IDLE
@WALL
@TOKEN
@TOKEN_FILE
@HANG_UP
@STOP_AFTER
@IDLE_EXIT
@OPTIMIZE
@PASSES
@PROFILE
@EXPERIMENT
@SPARK_MASTER
@SPARK_CONF
@CHECKPOINT
@EVERY
@RESTART
@METRICS
@SUMMARY
@click.option("-q", "--quiet", is_flag=True, help="no progress and no summary")
@TIME
@MEMORY
@click.pass_obj
def run_(streams: Streams, asked: Asked, **given: Any) -> None:
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
      river run q.cql --in s=s.csv --out result=result.csv --time 5m --memory 2G
      river run sorted.cql --in s=s.csv --out result=s.csv --in-place
      river run q.cql --in s=s.parquet --backend spark --spark-master spark://host:7077
    """  # noqa: D301
    from river.io.suffixes import ARROW

    if any(each.lower().endswith(ARROW) for each in (*given["ins"], *given["outs"])):
        from river.io.preload import preload

        preload()
    from river import plugins
    from river.classes import evolve
    from river.cli.leaving import at_once
    from river.cli.screen import BINARY, Screen
    from river.driver import errors, execute, placed, sent, texts
    from river.driver.places import Endpoint
    from river.io.schema import plain_arrow
    from river.io.sinks import known_format
    from river.lang.patience import patience

    job = checkpoint_of(live_of(job_of(streams, asked.program, given), given), given)
    if job.live is not None:
        job.live.tell = lambda diagnostic: say(streams, (diagnostic,))
    run = passes_of(given["backend"], job.options)
    backend = plugins.backend(given["backend"])
    if streams.alone and not job.options.externs and getattr(backend, "plain_arrow", False):
        plain_arrow()
        at_once()
    code = getattr(backend, "constants", None)
    with patience(job.options.deadline, code):  # languages compute values, too
        compiled = program_of(streams, asked, run, seed=given["seed"], profile=given["profile"])
    targets = pairs("--out", given["outs"])
    outputs: dict[str, Any] = {name: path for name, path in targets.items() if path != "-"}
    formats = {**job.formats, **pairs("--out-format", given["out_formats"])}
    divided = pairs("--partition-by", given["partition_by"], "NAME=COLUMN,...")
    ordered = pairs("--order-by", given["order_by"], "NAME=COLUMN,...")
    job = placed(compiled.program, evolve(job, outputs={**outputs, **targets}, formats=formats))
    outputs = {name: path for name, path in job.outputs.items() if path != "-"}
    told = errors(compiled.program) - outputs.keys()
    elsewhere = {name: where for name, where in sent(compiled.program).items() if name not in targets}
    apart = {*told, *elsewhere}
    written = [each.name for each in compiled.program.outputs if each.name not in apart]
    printed = [name for name in written if name not in outputs]
    at_once = job.live is not None or job.checkpoint is not None
    several = len(printed if at_once else written) > 1
    screen = Screen(
        streams,
        given["format_"],
        given["limit"],
        several=several,
        live=at_once,
        texts=texts(compiled.program),
        errors=told,
        sent=elsewhere,
        folder=given["out_dir"],
        commands=given["allow_proc"],
        indices=job.indices,
    )
    if printed and known_format(given["format_"], printed[0]) in BINARY and len(printed) > 1:
        message = f"`{given['format_']}` on standard output can hold one output only"
        raise Rejected(
            [Diagnostic("data-format", message, help="write the others to files: `--out NAME=FILE`")]
        )
    progress = Progress(streams.stderr, quiet=given["quiet"] or job.live is not None)
    job = evolve(
        job,
        outputs=outputs,
        default=screen.target,
        watch=progress.update,
        options=evolve(job.options, observe=progress.observe if progress.visible else None),
        metrics=given["metrics"],
        in_place=given["in_place"],
        mode=given["mode"],
        partition_by={name: columns.split(",") for name, columns in divided.items()},
        order_by={name: columns.split(",") for name, columns in ordered.items()},
        written=(Endpoint("standard output", streams.stdout),) if printed else (),
    )
    try:
        with ended_by_signals(job.live):
            results = execute(compiled, given["backend"], job)
    finally:
        progress.clear()
    screen.finish()
    say(streams, results.warnings)
    if not given["quiet"]:
        hidden = {*screen.texts, *told}
        _done(streams, results, {name: n for name, n in results.rows.items() if name not in hidden})
    if given["summary"]:
        _summary(streams, results.summary.metrics, given["backend"])
        say(streams, results.remarks)
    if screen.failed:
        message = f"{screen.failed:,} {'record' if screen.failed == 1 else 'records'} could not be finished"
        help_ = f"`--out {min(told)}=FILE` keeps a row of each, and the run ends well"
        raise Rejected([Diagnostic("run-unfinished", message, help=help_)])


def _done(streams: Streams, results: Results, rows: Mapping[str, int]) -> None:
    """Says what a run read and made, how long it took, and what of it was not the run itself."""
    compiling = results.summary.compiling
    seconds = max(results.seconds - compiling, 0.0)
    done = f"done in {seconds:.2f} s"
    if results.read is not None:
        rate = results.read / seconds if seconds > 0 else 0.0
        noun = "item" if results.read == 1 else "items"
        done = f"{results.read:,} {noun} in {seconds:.2f} s ({rate:,.0f}/s)"
    shown = ", ".join(f"{name}: {count:,} rows" for name, count in rows.items())
    print(f"{done}; {shown}" if shown else done, file=streams.stderr)
    if compiling >= NOTED:
        made = f"before that, machine code was made in {compiling:.1f} s; it is kept for runs with the same formats"
        print(made, file=streams.stderr)
    calls = sum(results.summary.host_calls.values())
    if calls:
        of = ", ".join(f"{name}: {n:,}" for name, n in results.summary.host_calls.items())
        print(f"{calls:,} times Python ran, not machine code; {of}", file=streams.stderr)


def _summary(streams: Streams, metrics: Metrics | None, backend: str) -> None:
    from river.metrics import table

    text = f"the backend `{backend}` does not tell where its time went" if metrics is None else table(metrics)
    print(text, file=streams.stderr)


@click.command("check", short_help="Compare backends with the calculus on data files.")
@PROGRAM
@IN
@FORMAT_IN
@click.option(
    "--backend",
    "backends",
    multiple=True,
    metavar="NAME",
    shell_complete=one_of(backends),
    help="a backend to compare, or `all`; without it, all but those that take seconds to start",
)
@ON_ERROR
@WORKERS
@FIRING
@EXPERIMENT
@SPARK_MASTER
@SPARK_CONF
@EXTERN
@click.option(
    "--outcomes",
    is_flag=True,
    help="try all schedules on the calculus, for a small program on a few rows: how many results there are",
)
@click.option(
    "--max-states",
    type=click.IntRange(1),
    metavar="N",
    help=f"with --outcomes: give up after so many states  [default: {STATES}]",
)
@TIME
@MEMORY
@click.pass_obj
def check_(streams: Streams, asked: Asked, **given: Any) -> None:
    """Run PROGRAM on backends and compare the results with the calculus.

    The reference backend is the Brooklet calculus itself: slow, and the definition of what is right. With `--outcomes`, every
    order in which operators may fire is tried instead; where the result depends on it, two orders are shown.

    \b
    Examples:
      river check delays.cql --in flights=flights.csv
      river check --outcomes race.river --in a=a.csv --in b=b.csv
    """  # noqa: D301
    job = job_of(streams, asked.program, given)
    compiled = program_of(streams, asked, seed=given["seed"])
    if given["outcomes"]:
        _outcomes(streams, compiled, job, given)
        return
    if given["max_states"] is not None:
        raise click.UsageError("`--max-states` goes with `--outcomes`")
    _compare(streams, compiled, job, given)


def _compare(streams: Streams, compiled: Compiled, job: Job, given: Mapping[str, Any]) -> None:
    """Every backend against the calculus."""
    from river import plugins
    from river.driver import compare

    asked = [name for name in given["backends"] if name != ALL]
    others, left = asked, list[str]()
    if len(asked) < len(given["backends"]):
        others = list(dict.fromkeys((*asked, *plugins.backends())))
    elif not asked:
        others, left = _unasked(job, given)
    named = bool(asked or given["experiments"])
    order = ("reference", *(name for name in others if name != "reference"))
    differing: list[Comparison] = []
    for one in compare(compiled, job, order, named=named):
        print(_verdict(one, measure=one.backend == "reference"), file=streams.stdout, flush=True)
        for difference in one.differences:
            print(f"  {one.backend}: {difference}", file=streams.stdout)
        if one.differences:
            differing.append(one)
    for name in left:
        told = f"not run: it takes seconds to start; say `--backend {name}`, or `--backend {ALL}`"
        print(f"{name:<10} {told}", file=streams.stdout)
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


def _unasked(job: Job, given: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The backends that are compared where none is named, and those that take too long to start for that."""
    from river import plugins

    found, left = list[str](), list[str]()
    for name in plugins.backends():
        try:
            platform: Any = plugins.backend(name)
        except Rejected:  # it cannot be loaded: the comparison says why
            platform = None
        if given["experiments"] and not getattr(platform, "experiments", {}):
            continue
        meant = job.options.settings and getattr(platform, "settings", False)
        (left if getattr(platform, "slow_start", False) and not meant else found).append(name)
    return found, left


def _verdict(one: Comparison, *, measure: bool) -> str:
    """One line of `river check`."""
    if one.refused:
        return f"{one.backend:<10} not run: {one.refused[0].message}"
    word = "is the measure" if measure else "DIFFERS" if one.differences else "agrees"
    rows = ", ".join(f"{name}: {count:,} items" for name, count in one.rows.items())
    return f"{one.backend:<10} {word:<14} {one.seconds:8.2f} s  {rows}"


def _outcomes(streams: Streams, compiled: Compiled, job: Job, given: Mapping[str, Any]) -> None:
    """All schedules on the calculus."""
    from river.driver import schedules

    if given["backends"] or given["experiments"]:
        raise click.UsageError(
            "`--outcomes` is about the calculus: it goes without `--backend` and `--experiment`"
        )
    limit: int = given["max_states"] or STATES
    found = schedules(compiled, job, limit)
    states, ends = _counted(found.states, "state"), _counted(found.outcomes, "outcome")
    if found.parting is not None:
        least = "" if found.complete else "at least "
        print(f"{states}, {least}{ends}: the result depends on what fires first", file=streams.stdout)
        for line in _parted(found.parting):
            print(line, file=streams.stdout)
        help_ = "`river explain` says where the program leaves the order open"
        message = f"{least}{ends}: what comes out depends on the schedule"
        raise Rejected([Diagnostic("check-outcomes", message, help=help_)])
    if not found.complete:
        message = f"not all schedules were tried: there are more than {_counted(limit, 'state')}"
        help_ = "give it fewer rows, or more time: `--max-states N`"
        raise Rejected([Diagnostic("check-states", message, help=help_)])
    if found.endless:
        message = "some schedule never ends: it comes back to where it was"
        help_ = "a loop must stop sending some time, whatever else fires"
        raise Rejected([Diagnostic("check-endless", message, help=help_)])
    print(
        f"{states}, {ends}: on these rows the result does not depend on what fires first", file=streams.stdout
    )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _parted(parting: Parting) -> Iterator[str]:
    """Two schedules as text."""
    if parting.both:
        yield "both schedules begin:"
        yield from _numbered(parting.both, 1, last=True)
    begun = len(parting.both) + 1
    yield "then one goes on:" if parting.both else "one schedule:"
    yield from _numbered(parting.one, begun)
    yield "and the other:"
    yield from _numbered(parting.other, begun)
    yield "in the end:"
    for difference in parting.differences:
        yield f"  {difference}"


def _numbered(firings: Sequence[str], first: int, *, last: bool = False) -> Iterator[str]:
    """Firings with their numbers, the first or the last of them if there are many."""
    left = len(firings) - LINES
    numbered = list(enumerate(firings, first))
    if left > 1 and last:
        yield f"       ({left} firings)"
        numbered = numbered[left:]
    yield from (f"  {number:>4}  {firing}" for number, firing in (numbered[:LINES] if left > 1 else numbered))
    if left > 1 and not last:
        yield f"        ({left} more firings)"
