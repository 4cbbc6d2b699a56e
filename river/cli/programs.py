"""The program that a command is for: the arguments that name it and say how it is read, and its compilation.

All commands take them alike, so that `river check` and `river explain` are of the program that `river run` runs.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Self, cast

import click

from river.classes import frozen
from river.cli.arguments import one_of, pairs, together
from river.cli.terminal import say
from river.diagnostics import Diagnostic, Rejected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from river.cli.arguments import Run
    from river.cli.terminal import Streams
    from river.driver import Compiled
    from river.frontend import LanguageOptions


@frozen
class Asked:
    """The program that a command line names, and what it says of how that is read.

    `program`: the paths of its texts; `-` is standard input. `params`: values of its parameters, as `NAME=VALUE`. The last five
    are `river.frontend.LanguageOptions`, as `params` are.
    """

    program: tuple[str, ...]
    lang: str | None
    main: str | None
    params: tuple[str, ...]
    undefined: str | None
    zone: str | None
    env: tuple[str, ...]
    load: tuple[str, ...]
    decimals: int | None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """What all arguments of a command say of it."""
        return cls(**{name: given[name] for name in ASKED})


ASKED: Final = ("program", "lang", "main", "params", "undefined", "zone", "env", "load", "decimals")
"""The arguments of which an `Asked` is made."""


def program_of(
    streams: Streams,
    asked: Asked,
    run: Run | None = None,
    *,
    seed: int | None = None,
    profile: str | None = None,
) -> Compiled:
    """The program that is asked for, compiled; its warnings are printed. `run`: it is only to run so.

    `seed`: of the random numbers that it draws. `profile`: the file of one.

    Raises: Rejected.
    """
    from river.driver import compile_once, compile_source, read_source, stated
    from river.frontend import CommandText

    paths, lang, main = asked.program, asked.lang, asked.main
    if "-" in paths and lang is None:
        message = "standard input has no suffix that tells the language"
        raise Rejected([Diagnostic("unknown-language", message, help="say it with `--lang`")])
    if paths.count("-") > 1:
        raise Rejected([Diagnostic("usage", "standard input cannot be two texts at once")])
    source, *more = (read_source(path, _piped(streams) if path == "-" else None) for path in paths)
    params = {
        name: CommandText(value) for name, value in pairs("--param", asked.params, "NAME=VALUE").items()
    }
    options = {name: getattr(asked, name) for name in ("undefined", "zone", "env", "load", "decimals")} | {
        "params": params
    }
    told = cast("LanguageOptions", {name: value for name, value in options.items() if value or value == 0})
    source = stated(source, lang, told, seed=seed)
    if profile is not None:
        compiled = compile_once(source, lang, more=more, main=main).profiled(profile)
    elif run is None:
        compiled = compile_source(source, lang, more=more, main=main)
    else:
        compiled = compile_once(source, lang, more=more, main=main, passes=run[0], platform=run[1])
    say(streams, compiled.warnings)
    return compiled


def _piped(streams: Streams) -> str | bytes:
    """The text on standard input. Raises: Rejected("missing-file")."""
    try:
        return getattr(streams.stdin, "buffer", streams.stdin).read()
    except OSError as error:
        message = f"cannot read standard input: {(error.strerror or str(error)).lower()}"
        raise Rejected([Diagnostic("missing-file", message)]) from error


def languages() -> Iterable[str]:
    """What `--lang` takes."""
    from river import plugins

    return (*plugins.frontends(), "river")


def _asking(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command that takes an `Asked`, made to take the arguments of one."""

    @wraps(command)
    def packed(*args: Any, **given: Any) -> Any:
        others = {name: value for name, value in given.items() if name not in ASKED}
        return command(*args, asked=Asked.of(given), **others)

    return packed


PROGRAM: Final = together(
    click.argument("program", metavar="PROGRAM", nargs=-1, required=True, type=click.Path(allow_dash=True)),
    click.option(
        "--lang",
        metavar="NAME",
        shell_complete=one_of(languages),
        help="language of the program; without it the file's suffix tells",
    ),
    click.option(
        "--main", metavar="NAME", help="StreamIt: the stream that is the program, where several could be"
    ),
    click.option(
        "--param",
        "params",
        multiple=True,
        metavar="NAME=VALUE",
        help="CQL: what `:name` stands for in the program",
    ),
    click.option(
        "--undefined",
        type=click.Choice(["stop", "skip"]),
        help="Sawzall: whether what is undefined ends the record, or its statement alone  [default: stop]",
    ),
    click.option(
        "--zone",
        metavar="NAME",
        help="Sawzall: the time zone, as America/Los_Angeles; without it that of TZ",
    ),
    click.option(
        "--env",
        multiple=True,
        metavar="NAME",
        help="Sawzall: a variable of the environment for which `getenv` may ask",
    ),
    click.option(
        "--load", multiple=True, metavar="FILE", help="Sawzall: a file that `load` may read, under this name"
    ),
    click.option(
        "--decimals",
        type=click.IntRange(0, 99),
        metavar="N",
        help="StreamIt: floats are printed with N digits behind the point (6: as by C's %f), not the fewest that read back",
    ),
    _asking,
)
"""The arguments of a command for a program, which gets them as `asked`."""
