"""The program that a command is for: the arguments that name it and say how it is read, and its compilation.

All commands take them alike, so that `river check` and `river explain` are of the program that `river run` runs.
"""

from __future__ import annotations

import os
import re
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import click

from river.classes import frozen
from river.cli.arguments import one_of, pairs, together
from river.cli.terminal import say
from river.diagnostics import Diagnostic, Rejected
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from river.cli.arguments import Run
    from river.cli.terminal import Streams
    from river.driver import Compiled

SAWZALL: Final = ("szl", "sawzall")
STREAMIT: Final = ("str", "streamit")


@frozen
class Asked:
    """The program that a command line names, and what it says of how that is read.

    `program`: the paths of its texts; `-` is standard input. `params`: values of its parameters, as `NAME=VALUE`. The last four
    are of programs in Sawzall.
    """

    program: tuple[str, ...]
    lang: str | None
    main: str | None
    params: tuple[str, ...]
    undefined: str | None
    zone: str | None
    env: tuple[str, ...]
    load: tuple[str, ...]

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """What all arguments of a command say of it."""
        return cls(**{name: given[name] for name in ASKED})


ASKED: Final = ("program", "lang", "main", "params", "undefined", "zone", "env", "load")
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
    from river.driver import compile_once, compile_source, read_source

    paths, lang, main = asked.program, asked.lang, asked.main
    if "-" in paths and lang is None:
        message = "standard input has no suffix that tells the language"
        raise Rejected([Diagnostic("unknown-language", message, help="say it with `--lang`")])
    if paths.count("-") > 1:
        raise Rejected([Diagnostic("usage", "standard input cannot be two texts at once")])
    source, *more = (read_source(path, _piped(streams) if path == "-" else None) for path in paths)
    source = _with_parameters(source, lang, pairs("--param", asked.params))
    source = _with_options(source, asked, seed)
    if profile is not None:
        compiled = compile_once(source, lang, more=more, main=main).profiled(profile)
    elif run is None:
        compiled = compile_source(source, lang, more=more, main=main)
    else:
        compiled = compile_once(source, lang, more=more, main=main, passes=run[0], platform=run[1])
    say(streams, compiled.warnings)
    return compiled


def _with_parameters(source: Source, lang: str | None, params: Mapping[str, str]) -> Source:
    """The text of a program with values of its parameters behind it, as it says them itself.

    Raises: Rejected("usage") where the language has no parameters.
    """
    if not params:
        return source
    if (lang or source.name.rpartition(".")[2]) != "cql":
        raise Rejected([Diagnostic("usage", "`--param` is of programs in CQL", help="leave it out")])
    for name in params:
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is None:
            raise Rejected([Diagnostic("usage", f"`--param {name}=...`: this is no name")])
    said = "".join(f"\nparam {name} = {_literal(value)};" for name, value in params.items())
    return Source(source.name, source.text + said)


def _with_options(source: Source, asked: Asked, seed: int | None) -> Source:
    """The text of a program in Sawzall with how it runs behind it, as it says that itself; zones are those of `TZ`.

    Of programs in StreamIt that is only the seed of their random numbers.

    Raises: Rejected("usage") where the language knows no such options, and for a zone that there is not.
    """
    language, zone = asked.lang or source.name.rpartition(".")[2], asked.zone
    if language not in SAWZALL:
        flags = {"--undefined": asked.undefined, "--zone": zone, "--env": asked.env, "--load": asked.load}
        for flag, value in flags.items():
            if value:
                message = f"`{flag}` is of programs in Sawzall"
                raise Rejected([Diagnostic("usage", message, help="leave it out")])
        draws = seed is not None and language in STREAMIT
        return Source(source.name, f"{source.text}\n#river seed {seed}") if draws else source
    if zone is not None:
        from zoneinfo import ZoneInfo

        try:
            ZoneInfo(zone)
        except (ValueError, KeyError, OSError):
            hint = "such as `America/Los_Angeles`"
            raise Rejected(
                [Diagnostic("usage", f"`--zone {zone}`: there is no such zone", help=hint)]
            ) from None
        os.environ["TZ"] = zone
    said = {"undefined": asked.undefined, "seed": seed}
    options = "".join(f"\n#river {name} {value}" for name, value in said.items() if value is not None)
    return Source(source.name, source.text + options + _outside(asked.env, asked.load))


def _outside(variables: Iterable[str], files: Iterable[str]) -> str:
    """What a program in Sawzall may ask of what is around it, as lines of its text; a variable that is not set has none.

    Raises: Rejected("usage") for a file that cannot be read.
    """
    import json
    from base64 import b64encode

    found = [("env", name, os.environb[name.encode()]) for name in variables if name.encode() in os.environb]
    for name in files:
        try:
            found.append(("load", name, Path(name).read_bytes()))
        except (OSError, ValueError) as error:
            raise Rejected([Diagnostic("usage", f"`--load {name}`: it cannot be read: {error}")]) from None
    return "".join(
        f"\n#river {word} {json.dumps(name)} {b64encode(value).decode()}" for word, name, value in found
    )


def _literal(value: str) -> str:
    """A value as the text of a program: a number, a truth, a time or a length of time as it is, all else as a text."""
    number = r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"
    if re.fullmatch(rf"(?i){number}|true|false|(timestamp|date|interval)\s*'[^']*'(\s*[a-z]+)?", value):
        return value
    return "'" + value.replace("'", "''") + "'"


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
    _asking,
)
"""The arguments of a command for a program, which gets them as `asked`."""
