"""The options that commands share, and what they say of the job to run a program over."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from river.classes import define, field
from river.cli.quantities import DURATION
from river.diagnostics import Diagnostic, Rejected

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from river.backend import Options
    from river.cli.terminal import Streams
    from river.driver import Job
    from river.driver.places import Endpoint
    from river.platform import Platform


Run = tuple["str | None", "Platform"]
"""The passes that a program goes through before it runs, and where it does."""


def passes_of(backend: str, options: Options) -> Run:
    """What a program goes through before it runs on `backend`. Raises: Rejected("unknown-backend")."""
    from river import plugins
    from river.platform import here

    return options.through(plugins.backend(backend)), here(options.workers)


def pairs(flag: str, values: tuple[str, ...], form: str = "NAME=FILE") -> dict[str, str]:
    """`name=value` arguments as a dictionary; `form`: how they are written."""
    found: dict[str, str] = {}
    for value in values:
        name, equals, rest = value.partition("=")
        if not equals or not name or not rest:
            help_ = f"write `{flag} {form}`" + ("; `-` is standard input or output" if "FILE" in form else "")
            raise Rejected([Diagnostic("usage", f"`{flag} {value}` is not of the form {form}", help=help_)])
        if name in found:
            raise Rejected([Diagnostic("usage", f"`{flag} {name}=...` is given twice")])
        found[name] = rest
    return found


def check_output(
    streams: Streams, program: tuple[str, ...], output: str | None, modules: tuple[str, ...] = ()
) -> None:
    """Raises: Rejected("data-overwrite") where the file for `output` is the program's, or one of the modules that it calls."""
    from river.driver.places import Endpoint, check_places, extern_places

    target = streams.stdout if output in (None, "-") else output
    option = "standard output" if output in (None, "-") else f"`-o {output}`"
    read = (*_program_places(streams, program), *extern_places(functions(modules)))
    check_places(read, (Endpoint(option, target),))


def _program_places(streams: Streams, program: tuple[str, ...]) -> tuple[Endpoint, ...]:
    from river.driver.places import program_place

    return tuple(program_place(path, streams.stdin if path == "-" else None) for path in program)


def functions(modules: tuple[str, ...]) -> Mapping[str, Callable[..., Any]]:
    """The functions of the modules that the user named: only these may `extern python` operators call.

    A module may stand in the current folder. Of a command in another folder before, in the same process, none is taken.
    """
    import importlib

    if modules:
        _enter(str(Path.cwd()))
    known = {name.partition(".")[0] for name in sys.modules}
    found: dict[str, Callable[..., Any]] = {}
    for name in modules:
        if not all(part.isidentifier() for part in name.split(".")):
            hint = "name it as `import` does: without folder and suffix"
            raise Rejected([Diagnostic("extern-module", f"`{name}` is not the name of a module", help=hint)])
        try:
            module = importlib.import_module(name)
        except Exception as error:  # whatever the user's module does
            why = f"cannot import module `{name}`: {type(error).__name__}: {error}"
            raise Rejected([Diagnostic("extern-module", why)]) from error
        finally:
            _ENTERED.modules |= {each for each in sys.modules if each.partition(".")[0] not in known}
        found |= {f"{name}:{key}": value for key, value in vars(module).items() if callable(value)}
    return found


@define
class _Entered:
    """The folder from which modules were imported last, if that was not searched anyway, and all that came in with them."""

    folder: str | None = None
    modules: set[str] = field(factory=set[str])


_ENTERED: Final = _Entered()


def _enter(folder: str) -> None:
    """Has modules searched in a folder, and forgets those of another one that was entered before."""
    before = _ENTERED.folder
    if before is not None and before != folder:
        sys.path[:] = [each for each in sys.path if each != before]
        for name in _ENTERED.modules & sys.modules.keys():
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and Path(file).is_relative_to(before):
                del sys.modules[name]
        _ENTERED.folder, _ENTERED.modules = None, set()
    if folder not in sys.path:
        sys.path.insert(0, folder)
        _ENTERED.folder = folder


Decorator = Callable[[Any], Any]
Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def together(*options: Decorator) -> Decorator:
    """One decorator for several options, which are shown in this order."""

    def apply(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return apply


def one_of(names: Callable[[], Iterable[str]]) -> Complete:
    """Completes what is typed to one of the names."""

    def complete(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
        return [name for name in names() if name.startswith(typed)]

    return complete


def backends() -> Iterable[str]:
    """What `--backend` takes."""
    from river import plugins

    return plugins.backends()


IN = click.option(
    "--in", "ins", multiple=True, metavar="NAME=FILE", help="data of an input; `-` is standard input"
)
FORMAT_IN = click.option(
    "--in-format",
    "in_formats",
    multiple=True,
    metavar="NAME=FORMAT",
    help="csv, tsv, jsonl, parquet, arrow, when the suffix does not tell; csv-noheader, tsv-noheader: without a line of names;"
    " csv-types: with a line of types",
)
ON_ERROR = click.option(
    "--on-error",
    default="stop",
    show_default=True,
    metavar="POLICY",
    shell_complete=one_of(lambda: ("stop", "skip", "dead-letter=")),
    help="bad rows: stop, skip, or dead-letter=FILE",
)
WORKERS = click.option("--workers", type=click.IntRange(1, 1024), help="threads; without it, one a core")
BATCH = click.option(
    "--batch",
    type=click.IntRange(1, 1 << 24),
    default=32768,
    show_default=True,
    help="items handled at once, at most",
)
BOUND = click.option(
    "--bound",
    type=click.IntRange(1, 1 << 30),
    default=65536,
    show_default=True,
    help="items a queue holds (soft)",
)
SEED = click.option(
    "--seed",
    type=int,
    help="schedule of the reference backend (without it, first come first served), and random numbers of Sawzall and StreamIt",
)
LATENESS = click.option(
    "--lateness",
    default="0",
    show_default=True,
    metavar="LENGTH",
    help="how far back in time rows may come: 2s, or a number in units of the time stamp",
)
UNTIL = click.option(
    "--until",
    metavar="INSTANT",
    help="behind the last rows time goes on to this instant, so that what windows let go of by then is told",
)
ITERATIONS = click.option(
    "--iterations",
    type=click.IntRange(0),
    metavar="N",
    help="ticks of the clock, for a program that makes its own items",
)
NATIVE = click.option(
    "--native/--no-native",
    default=True,
    help="operators as machine code (default), or read by the evaluator",
)
OPTIMIZE = click.option(
    "--optimize/--no-optimize",
    default=True,
    help="apply the passes that the backend asks for (default), or run the program as it is",
)
PASSES = click.option(
    "-p",
    "--passes",
    metavar="PASSES",
    help="apply these passes first, before those that the backend asks for",
)
PROFILE = click.option(
    "--profile",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="what operators take, as `river profile` has measured it: passes go by it",
)
DEBUG_NATIVE = click.option(
    "--debug-native",
    is_flag=True,
    help="machine code that checks every access to memory: slow, for reports of bugs",
)
FIRING: Final = together(BATCH, BOUND, SEED, LATENESS, UNTIL, ITERATIONS, NATIVE, DEBUG_NATIVE)
"""How operators fire: what `run`, `check` and `profile` all take."""
DEADLINE = click.option(
    "--deadline",
    type=DURATION,
    help="how long the firing for one item may take: a longer one is ended by a trap",
)
FOLLOW = click.option(
    "--follow",
    is_flag=True,
    help="inputs are files that grow, or folders that get files; Ctrl-C ends the run well",
)
FOLLOW_INPUT = click.option(
    "--follow-input", "follow_inputs", multiple=True, metavar="NAME", help="the same for this input only"
)
IDLE = click.option(
    "--idle",
    type=DURATION,
    help="how long a silent input holds up the others; without it, until it has something",
)
WALL = click.option(
    "--clock",
    type=click.Choice(["data", "wall"]),
    default="data",
    show_default=True,
    help="what moves time on: time stamps alone, or also the time of day, less the lateness",
)
STOP_AFTER = click.option("--stop-after", type=DURATION, help="end a live run well after so long")
IDLE_EXIT = click.option(
    "--idle-exit", type=DURATION, help="end a live run well when nothing came for so long"
)
TOKEN = click.option(
    "--token",
    metavar="TOKEN",
    help="the line that who connects has to send first; others see it in `ps`: better $RIVER_TOKEN or --token-file",
)
TOKEN_FILE = click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="a file whose first line is the token",
)
HANG_UP = click.option(
    "--hang-up",
    type=DURATION,
    help="end connections that have been silent for so long; without it, they stay",
)
CHECKPOINT = click.option(
    "--checkpoint",
    metavar="FOLDER",
    type=click.Path(file_okay=False),
    help="keep the state of the run there: after a crash the same command goes on",
)
EVERY = click.option(
    "--every", type=DURATION, help="how often the state is kept, with --checkpoint; without it, every 10 s"
)
RESTART = click.option("--restart", is_flag=True, help="with --checkpoint: drop what is kept and begin anew")
METRICS = click.option(
    "--metrics",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="a JSON object a second on what the run does: rates, queues, latency (docs/cli.md)",
)
SUMMARY = click.option(
    "--summary", is_flag=True, help="at the end: where the time went, by operator and queue"
)


def experiments() -> Iterable[str]:
    """What `--experiment` takes, for the backends that are installed."""
    from river import plugins

    offers = [getattr(plugins.backend(name), "experiments", {}) for name in plugins.backends()]
    return [f"{name}={value}" for each in offers for name, values in each.items() for value in values]


EXPERIMENT = click.option(
    "--experiment",
    "experiments",
    multiple=True,
    metavar="NAME=VALUE",
    shell_complete=one_of(experiments),
    help="another way to run, for comparison: docs/multicore.md",
)
SPARK_MASTER = click.option(
    "--spark-master",
    metavar="URL",
    help="with `--backend spark`: its master, such as spark://host:7077; without it, $RIVER_SPARK_MASTER, "
    "else threads of this machine",
)
SPARK_CONF = click.option(
    "--spark-conf",
    "spark_confs",
    multiple=True,
    metavar="KEY=VALUE",
    help="with `--backend spark`: a setting of Spark, such as spark.executor.memory=4g",
)
IN_PLACE = click.option(
    "--in-place", is_flag=True, help="an output may replace the file of an input, when the run has ended well"
)
MODE = click.option(
    "--mode",
    type=click.Choice(["error", "overwrite", "append"]),
    help="what becomes of a folder that outputs go to and that holds files  [default: error]",
)
PARTITION_BY = click.option(
    "--partition-by",
    "partition_by",
    multiple=True,
    metavar="NAME=COLUMN,...",
    help="columns of an output that goes to a `folder/`: rows with equal values get a folder there, such as day=2024-01-31",
)
ORDER_BY = click.option(
    "--order-by",
    "order_by",
    multiple=True,
    metavar="NAME=COLUMN,...",
    help="columns by which the rows of an input are in order that Spark reads from an address or a table",
)
EXTERN = click.option(
    "--extern",
    "externs",
    multiple=True,
    metavar="MODULE",
    help="Python module whose functions `extern python` operators may call",
)


def spark_settings(given: Mapping[str, Any]) -> dict[str, str]:
    """What is set for Spark. Raises: Rejected("usage") for a master that is stated twice, and for what is no setting."""
    found = pairs("--spark-conf", given.get("spark_confs", ()), "KEY=VALUE")
    if strangers := [key for key in found if not key.startswith("spark.")]:
        message = f"`--spark-conf {strangers[0]}=...`: the names of Spark's settings begin with `spark.`"
        raise Rejected([Diagnostic("usage", message)])
    master = given.get("spark_master")
    if master is not None:
        if "spark.master" in found:
            raise Rejected(
                [
                    Diagnostic(
                        "usage", "`--spark-master` and `--spark-conf spark.master=...` both state a master"
                    )
                ]
            )
        found["spark.master"] = master
    return found


def job_of(streams: Streams, program: tuple[str, ...], given: Mapping[str, Any]) -> Job:
    """What the options of `run` and `check` say of the program at the paths `program`.

    Raises: Rejected for those that say nothing sensible.
    """
    from river.backend import Options
    from river.driver import Job
    from river.io.errors import OnError

    inputs: dict[str, Any] = pairs("--in", given["ins"])
    formats = pairs("--in-format", given["in_formats"])
    from_stdin = [name for name, path in inputs.items() if path == "-"]
    if len(from_stdin) > 1:
        shown = " and ".join(f"`{name}`" for name in from_stdin)
        raise Rejected([Diagnostic("usage", f"standard input cannot be {shown} at once")])
    if from_stdin and "-" in program:
        message = f"standard input cannot be the program and `{from_stdin[0]}` at once"
        raise Rejected([Diagnostic("usage", message)])
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
        externs=functions(given["externs"]),
        optimize=given.get("optimize", False),
        passes=given.get("passes") or "",
        native="debug" if given["debug_native"] else "on" if given["native"] else "off",
        deadline=given.get("deadline"),
        experiment=pairs("--experiment", given.get("experiments", ()), "NAME=VALUE"),
        settings=spark_settings(given),
    )
    return Job(
        inputs,
        {},
        OnError.parse(given["on_error"]),
        formats=formats,
        stated={name: given[name] for name in ("lateness", "until") if given[name] is not None},
        iterations=given["iterations"],
        options=options,
        read=_program_places(streams, program),
    )


def checkpoint_of(job: Job, given: Mapping[str, Any]) -> Job:
    """What the options of `run` say of its state. Raises: Rejected for those that have no effect."""
    from river.checkpoint import Checkpoint
    from river.classes import evolve

    folder, every = given["checkpoint"], given["every"]
    if folder is None:
        for flag, stated in (("--every", every is not None), ("--restart", given["restart"])):
            if stated:
                message = f"`{flag}` says how the state is kept, and it is not"
                raise Rejected([Diagnostic("usage", message, help="name a folder: `--checkpoint FOLDER`")])
        return job
    wanted = Checkpoint(folder, restart=given["restart"])
    return evolve(job, checkpoint=wanted if every is None else evolve(wanted, every=every))


def live_of(job: Job, given: Mapping[str, Any]) -> Job:
    """What the options of `run` say of inputs that go on. Raises: Rejected for a name that is no input."""
    from river.classes import evolve
    from river.io.live import Follow, Live, asked, listens

    names = given["follow_inputs"]
    if unknown := [name for name in names if name not in job.inputs]:
        message = f"`--follow-input {unknown[0]}`: there is no `--in {unknown[0]}=FILE`"
        raise Rejected([Diagnostic("usage", message)])
    inputs = {
        name: Follow(spec, job.formats.get(name))
        if isinstance(spec, str) and not asked(spec) and (given["follow"] or name in names)
        else spec
        for name, spec in job.inputs.items()
    }
    settings = {key: given[key] for key in ("idle", "stop_after", "idle_exit", "hang_up")}
    listening = any(map(listens, inputs.values()))
    for key in ("token", "token_file", "hang_up"):
        if given[key] is not None and not listening:
            message = f"`--{key.replace('_', '-')}` is for those who connect, and no input listens"
            help_ = "listen at `tcp://127.0.0.1:PORT` or `unix:PATH`"
            raise Rejected([Diagnostic("usage", message, help=help_)])
    if not (
        given["follow"]
        or given["clock"] != "data"
        or any(map(asked, inputs.values()))
        or any(value is not None for value in settings.values())
    ):
        return job
    token = _token(given) if listening else None
    if given["token_file"] is not None:
        from river.driver.places import Endpoint

        place = Endpoint(f"`--token-file {given['token_file']}`", given["token_file"])
        job = evolve(job, read=(*job.read, place))
    return evolve(job, inputs=inputs, live=Live(clock=given["clock"], token=token, **settings))


def _token(given: Mapping[str, Any]) -> str | None:
    """The token of `--token`, `--token-file` or $RIVER_TOKEN. Raises: Rejected("usage") for two of them, and for no line."""
    stated, path = given["token"], given["token_file"]
    if stated is not None and path is not None:
        raise Rejected([Diagnostic("usage", "`--token` and `--token-file` both state a token")])
    if path is not None:
        from pathlib import Path

        from river.io.errors import missing_file, unreadable

        try:
            stated = Path(path).read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
        except FileNotFoundError:
            raise Rejected([missing_file(path)]) from None
        except (OSError, UnicodeDecodeError) as error:
            raise Rejected([unreadable(path, error)]) from error
    token = os.environ.get("RIVER_TOKEN") if stated is None else stated
    if token is not None and (
        not token.strip() or "\n" in token or "\r" in token or len(token.encode()) > 1000
    ):
        raise Rejected([Diagnostic("usage", "a token is a line of at most 1000 bytes that is not empty")])
    return token
