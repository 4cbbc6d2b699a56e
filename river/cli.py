"""The command line: `river compile | run | check | version`. The only file that prints.

Exit status: 0 all right, 1 a mistake in the text, the data or the arguments, 2 a mistake of River's, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

import click
from attrs import define, field, frozen

from river.diagnostics import Diagnostic, InternalError, Rejected, Severity, render

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from river.driver import Compiled, Job
    from river.io.sinks import Sink
    from river.lang.types import Type

OK, USER_ERROR, INTERNAL, INTERRUPTED = 0, 1, 2, 130


@frozen
class Streams:
    """Where a command reads and writes."""

    stdin: TextIO
    stdout: TextIO
    stderr: TextIO


def run() -> None:
    """The entry point of the `river` command."""
    try:
        status = main(sys.argv[1:], sys.stdin, sys.stdout, sys.stderr)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output is gone (`river run ... | head`): nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = OK
    sys.exit(status)


def main(argv: list[str], stdin: TextIO, stdout: TextIO, stderr: TextIO) -> int:
    """Runs one command and returns its exit status."""
    streams = Streams(stdin, stdout, stderr)
    try:
        with river.make_context("river", list(argv), obj=streams) as context:
            river.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.UsageError as error:
        _say(streams, [Diagnostic("usage", error.format_message(), help=_usage_help(error))])
        return USER_ERROR
    except Rejected as rejected:
        _say(streams, rejected.diagnostics)
        return USER_ERROR
    except (KeyboardInterrupt, click.Abort):
        print("interrupted", file=stderr)
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - the last line of defence: people get words, not a traceback
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


COLOURS = {Severity.ERROR: "31;1", Severity.WARNING: "33;1", Severity.REMARK: "36;1"}


def _say(streams: Streams, diagnostics: Iterable[Diagnostic]) -> None:
    """Prints diagnostics to stderr, the severity in colour on a terminal."""
    for diagnostic in diagnostics:
        text = render(diagnostic)
        if _coloured(streams.stderr):
            word = f"{diagnostic.severity.value}[{diagnostic.code}]"
            text = text.replace(word, f"\x1b[{COLOURS[diagnostic.severity]}m{word}\x1b[0m", 1)
        print(text, file=streams.stderr)


def _coloured(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


# ---------------------------------------------------------------------------------------------- arguments


def _pairs(flag: str, values: tuple[str, ...]) -> dict[str, str]:
    """`name=value` arguments as a dictionary."""
    found: dict[str, str] = {}
    for value in values:
        name, equals, rest = value.partition("=")
        if not equals or not name or not rest:
            help_ = f"write `{flag} NAME=FILE`; `-` is standard input or output"
            raise Rejected(
                [Diagnostic("usage", f"`{flag} {value}` is not of the form NAME=FILE", help=help_)]
            )
        if name in found:
            raise Rejected([Diagnostic("usage", f"`{flag} {name}=...` is given twice")])
        found[name] = rest
    return found


def _compiled(streams: Streams, path: str, lang: str | None) -> Compiled:
    from river.driver import compile_source, read_source

    text = _stdin(streams).read() if path == "-" else None
    if path == "-" and lang is None:
        raise Rejected(
            [
                Diagnostic(
                    "unknown-language",
                    "standard input has no suffix that tells the language",
                    help="say it with `--lang`",
                )
            ]
        )
    compiled = compile_source(read_source(path, text), lang)
    _say(streams, compiled.warnings)
    return compiled


def _stdin(streams: Streams) -> TextIO:
    return streams.stdin


def _externs(modules: tuple[str, ...]) -> Mapping[str, Callable[..., Any]]:
    """The functions of the modules that the user named: only these may `extern python` operators call."""
    import importlib

    found: dict[str, Callable[..., Any]] = {}
    for name in modules:
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            raise Rejected(
                [Diagnostic("extern-module", f"cannot import module `{name}`: {error}")]
            ) from error
        found |= {f"{name}:{key}": value for key, value in vars(module).items() if callable(value)}
    return found


PROGRAM = click.argument("program", metavar="PROGRAM")
LANG = click.option(
    "--lang", metavar="NAME", help="language of the program; without it the file's suffix tells"
)
IN = click.option(
    "--in", "ins", multiple=True, metavar="NAME=FILE", help="data of an input; `-` is standard input"
)
FORMAT_IN = click.option(
    "--in-format",
    "in_formats",
    multiple=True,
    metavar="NAME=FORMAT",
    help="csv, tsv, jsonl, parquet, arrow: when the suffix does not tell",
)
ON_ERROR = click.option(
    "--on-error",
    default="stop",
    show_default=True,
    metavar="POLICY",
    help="bad rows: stop, skip, or dead-letter=FILE",
)
WORKERS = click.option("--workers", type=click.IntRange(1, 1024), help="threads; without it, one a core")
BATCH = click.option(
    "--batch",
    type=click.IntRange(1, 1 << 24),
    default=4096,
    show_default=True,
    help="items handled at once, at most",
)
BOUND = click.option(
    "--bound",
    type=click.IntRange(1, 1 << 30),
    default=16384,
    show_default=True,
    help="items a queue holds (soft)",
)
SEED = click.option(
    "--seed", type=int, help="schedule of the reference backend; without it, first come first served"
)
LATENESS = click.option(
    "--lateness",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="how far back in time rows may come, in units of the time stamp",
)
EXTERN = click.option(
    "--extern",
    "externs",
    multiple=True,
    metavar="MODULE",
    help="Python module whose functions `extern python` operators may call",
)


def _job(streams: Streams, given: Mapping[str, Any]) -> Job:
    from river.backend import Options
    from river.driver import Job
    from river.io.errors import OnError

    inputs: dict[str, Any] = _pairs("--in", given["ins"])
    formats = _pairs("--in-format", given["in_formats"])
    from_stdin = [name for name, path in inputs.items() if path == "-"]
    if len(from_stdin) > 1:
        shown = " and ".join(f"`{name}`" for name in from_stdin)
        raise Rejected([Diagnostic("usage", f"standard input cannot be {shown} at once")])
    for name in from_stdin:
        inputs[name] = getattr(streams.stdin, "buffer", streams.stdin)
        if name not in formats:
            help_ = f"say it: `--in-format {name}=csv`"
            raise Rejected(
                [
                    Diagnostic(
                        "data-format", f"the format of standard input for `{name}` is not known", help=help_
                    )
                ]
            )
    options = Options(
        workers=given["workers"],
        batch=given["batch"],
        bound=given["bound"],
        seed=given["seed"],
        externs=_externs(given["externs"]),
    )
    return Job(
        inputs,
        {},
        OnError.parse(given["on_error"]),
        formats=formats,
        lateness=given["lateness"],
        options=options,
    )


# ---------------------------------------------------------------------------------------------- commands


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def river() -> None:
    """River runs stream programs: CQL and River IL, on all cores.

    \b
    Examples:
      river run delays.cql --in flights=flights.csv --out delays=delays.csv
      river compile --lang cql delays.cql -o delays.river
      river check delays.cql --in flights=flights.csv

    Shell completion: eval "$(_RIVER_COMPLETE=bash_source river)" (or zsh_source, fish_source).
    """  # noqa: D301 - \b is click's sign for a block that keeps its lines


@river.command("compile")
@PROGRAM
@LANG
@click.option("-o", "--output", metavar="FILE", help="where the River IL goes; without it, standard output")
@click.option("--expand", is_flag=True, help="show the bodies behind template instances")
@click.pass_obj
def compile_(streams: Streams, program: str, lang: str | None, output: str | None, *, expand: bool) -> None:
    """Translate PROGRAM to River IL, which is readable and can be edited.

    \b
    Examples:
      river compile --lang cql q.cql
      river compile q.cql -o q.river
      echo '...' | river compile --lang cql -
    """  # noqa: D301
    compiled = _compiled(streams, program, lang)
    compiled.graph  # noqa: B018 - what does not verify is not handed out
    text = compiled.text
    if expand:
        from river.il.pretty import pretty
        from river.il.templates import expand_instances

        text = pretty(expand_instances(compiled.program, compiled.library))
    if output is None or output == "-":
        streams.stdout.write(text)
        return
    from river.io.atomic import Output

    file = Output(output)
    try:
        file.write(text)
        file.close()
    except BaseException:
        file.abort()
        raise


@river.command("run")
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
    help="format of what goes to standard output: csv, jsonl, tsv or table (default on a terminal)",
)
@click.option(
    "--limit", type=click.IntRange(0), help="print only the first N rows of each output to standard output"
)
@click.option(
    "--backend", default="multicore", show_default=True, metavar="NAME", help="multicore or reference"
)
@ON_ERROR
@WORKERS
@BATCH
@BOUND
@SEED
@LATENESS
@EXTERN
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
    """  # noqa: D301
    from attrs import evolve

    from river.driver import execute

    compiled = _compiled(streams, program, lang)
    job = _job(streams, given)
    screen = _Screen(streams, given["format_"], given["limit"], several=len(compiled.outputs) > 1)
    targets = _pairs("--out", given["outs"])
    outputs: dict[str, Any] = {name: path for name, path in targets.items() if path != "-"}
    progress = _Progress(streams.stderr, quiet=given["quiet"])
    job = evolve(
        job,
        outputs=outputs,
        formats={**job.formats, **_pairs("--out-format", given["out_formats"])},
        default=screen.target,
        watch=progress.update,
    )
    try:
        results = execute(compiled, given["backend"], job)
    finally:
        progress.clear()
    screen.finish()
    _say(streams, results.warnings)
    if not given["quiet"]:
        rate = results.read / results.seconds if results.seconds > 0 else 0.0
        shown = ", ".join(f"{name}: {count:,} rows" for name, count in results.rows.items())
        print(
            f"{results.read:,} items in {results.seconds:.2f} s ({rate:,.0f}/s); {shown}", file=streams.stderr
        )


@river.command("check")
@PROGRAM
@LANG
@IN
@FORMAT_IN
@click.option(
    "--backend",
    "backends",
    multiple=True,
    metavar="NAME",
    help="a backend to compare; without it, all that are installed",
)
@ON_ERROR
@WORKERS
@BATCH
@BOUND
@SEED
@LATENESS
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

    compiled = _compiled(streams, program, lang)
    others = given["backends"] or plugins.backends()
    order = ("reference", *(name for name in others if name != "reference"))
    compared = compare(compiled, _job(streams, given), order)
    for one in compared:
        rows = ", ".join(f"{name}: {count:,} items" for name, count in one.rows.items())
        verdict = "agrees" if not one.differences else "DIFFERS"
        word = "is the measure" if one is compared[0] else verdict
        print(f"{one.backend:<10} {word:<14} {one.seconds:8.2f} s  {rows}", file=streams.stdout)
    differing = [one for one in compared if one.differences]
    for one in differing:
        for difference in one.differences:
            print(f"  {one.backend}: {difference}", file=streams.stdout)
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


@river.command("version")
@click.pass_obj
def version_(streams: Streams) -> None:
    """Print the versions of River and of what it runs on."""
    from importlib.metadata import version

    print(f"river {version('river-streams')}", file=streams.stdout)
    print(f"python {sys.version.split()[0]}", file=streams.stdout)
    for package in ("attrs", "lark", "pyarrow"):
        print(f"{package} {version(package)}", file=streams.stdout)


# ---------------------------------------------------------------------------------------------- the terminal


@define
class _Progress:
    """A line on a terminal that says how many items were read; nothing elsewhere."""

    stream: TextIO
    quiet: bool
    began: float = 0.0
    last: float = 0.0
    shown: bool = False

    def update(self, items: int) -> None:
        """Called from whichever thread reads: at most five lines a second, the first after half a second."""
        import time

        if self.quiet or not self.stream.isatty():
            return
        now = time.monotonic()
        self.began = self.began or now
        if now - self.began < 0.5 or now - self.last < 0.2:
            return
        self.last, self.shown = now, True
        rate = items / (now - self.began)
        self.stream.write(f"\r\x1b[K{items:,} items, {rate:,.0f}/s")
        self.stream.flush()

    def clear(self) -> None:
        """Removes the line."""
        if self.shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()


@define
class _Screen:
    """Standard output as the place of outputs that have no file: at once when there is one, else one after the other."""

    streams: Streams
    format: str | None
    limit: int | None
    several: bool
    held: list[_Print] = field(factory=list["_Print"])

    def target(self, name: str, type_: Type) -> _Print:
        """The sink of output `name`."""
        form = self.format or ("table" if self.streams.stdout.isatty() else "csv")
        self.held.append(_Print(self.streams.stdout, name, type_, form, self.limit, hold=self.several))
        return self.held[-1]

    def finish(self) -> None:
        """Prints what was held back, each output under its name, and says what the limit left out."""
        for sink in self.held:
            sink.show()


@define
class _Print:
    """A sink that prints its first `limit` rows; `hold` keeps them until the end."""

    stream: TextIO
    name: str
    type: Type
    format: str
    limit: int | None
    hold: bool
    seen: int = 0
    rows: list[Any] = field(factory=list[Any])
    sink: Sink | None = None

    def write(self, items: Sequence[Any]) -> None:
        """Takes rows."""
        room = len(items) if self.limit is None else max(0, self.limit - self.seen)
        self.seen += len(items)
        shown = items[:room]
        if self.hold:
            self.rows.extend(shown)
        elif shown or self.sink is None:
            self._open().write(shown)

    def _open(self) -> Sink:
        from river.io.sinks import open_sink

        if self.sink is None:
            binary = self.format in ("arrow", "parquet")
            target = getattr(self.stream, "buffer", self.stream) if binary else self.stream
            self.sink = open_sink(target, self.type, name=self.name, format=self.format)
        return self.sink

    def close(self) -> None:
        """Ends the output unless it is held back."""
        if not self.hold:
            self._open().close()

    def abort(self) -> None:
        """What is printed is printed; what is held back is dropped."""
        self.rows.clear()
        if self.sink is not None:
            self.sink.abort()

    def show(self) -> None:
        """Prints what was held back, and how much the limit left out."""
        if self.hold:
            self.stream.write(f"# {self.name}\n")
            sink = self._open()
            sink.write(self.rows)
            sink.close()
        if self.limit is not None and self.seen > self.limit and self.format == "table":
            self.stream.write(f"... {self.seen - self.limit:,} more rows\n")
