"""The arguments that commands share, and what they say: the program, and the job to run it over."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from river.cli.terminal import say
from river.diagnostics import Diagnostic, Rejected

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.cli.terminal import Streams
    from river.driver import Compiled, Job


def pairs(flag: str, values: tuple[str, ...]) -> dict[str, str]:
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


def program_of(streams: Streams, path: str, lang: str | None) -> Compiled:
    """The program at `path` (`-`: standard input), compiled; its warnings are printed. Raises: Rejected."""
    from river.driver import compile_source, read_source

    text = streams.stdin.read() if path == "-" else None
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
    say(streams, compiled.warnings)
    return compiled


def functions(modules: tuple[str, ...]) -> Mapping[str, Callable[..., Any]]:
    """The functions of the modules that the user named: only these may `extern python` operators call.

    A module may stand in the current folder.
    """
    import importlib
    import sys
    from pathlib import Path

    if modules and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
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
        found |= {f"{name}:{key}": value for key, value in vars(module).items() if callable(value)}
    return found


Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def one_of(names: Callable[[], Iterable[str]]) -> Complete:
    """Completes what is typed to one of the names."""

    def complete(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
        return [name for name in names() if name.startswith(typed)]

    return complete


def languages() -> Iterable[str]:
    """What `--lang` takes."""
    from river import plugins

    return (*plugins.frontends(), "river")


def backends() -> Iterable[str]:
    """What `--backend` takes."""
    from river import plugins

    return plugins.backends()


PROGRAM = click.argument("program", metavar="PROGRAM", type=click.Path(allow_dash=True))
LANG = click.option(
    "--lang",
    metavar="NAME",
    shell_complete=one_of(languages),
    help="language of the program; without it the file's suffix tells",
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
    shell_complete=one_of(lambda: ("stop", "skip", "dead-letter=")),
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
ITERATIONS = click.option(
    "--iterations",
    type=click.IntRange(0),
    metavar="N",
    help="ticks of the clock, for a program that makes its own items",
)
EXTERN = click.option(
    "--extern",
    "externs",
    multiple=True,
    metavar="MODULE",
    help="Python module whose functions `extern python` operators may call",
)


def job_of(streams: Streams, program: str, given: Mapping[str, Any]) -> Job:
    """What the options of `run` and `check` say of the program at path `program`.

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
    if from_stdin and program == "-":
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
    )
    return Job(
        inputs,
        {},
        OnError.parse(given["on_error"]),
        formats=formats,
        lateness=given["lateness"],
        iterations=given["iterations"],
        options=options,
    )
