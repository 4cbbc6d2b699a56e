"""`river submit`: programs for a cluster of Spark, with all that they need."""

from __future__ import annotations

import os
import shlex
import subprocess
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from river.cli.arguments import functions, spark_settings
from river.cli.execution import run_
from river.cli.programs import ASKED, Asked, program_of
from river.diagnostics import Diagnostic, Rejected
from river.io.addresses import address

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from river.cli.terminal import Streams

PATHS: Final = ("ins", "outs", "out_dir", "on_error", "checkpoint", "metrics", "token_file")
"""Those that name files."""


@click.command(
    "submit",
    short_help="Run PROGRAM on a cluster of Spark.",
    context_settings={"ignore_unknown_options": True},
)
@click.option(
    "--spark-master",
    metavar="URL",
    help="the master of the cluster, such as spark://host:7077 or yarn; without it, $RIVER_SPARK_MASTER",
)
@click.option(
    "--spark-conf",
    "spark_confs",
    multiple=True,
    metavar="KEY=VALUE",
    help="a setting of Spark, such as spark.executor.memory=4g",
)
@click.option(
    "--deploy-mode",
    type=click.Choice(["client", "cluster"]),
    default="client",
    show_default=True,
    help="where the driver runs: here, or in the cluster (YARN, Kubernetes)",
)
@click.option("--python", metavar="PATH", help="the executors' own Python, of the version that is here")
@click.option(
    "--with", "more", multiple=True, metavar="NAME", help="one more installed distribution to package"
)
@click.option("--py-files", multiple=True, metavar="FILE", help="a module or zip file that executors import")
@click.option(
    "--package",
    metavar="FOLDER",
    type=click.Path(file_okay=False),
    help="where the package is put; without it, in River's cache; without PROGRAM it is made, and that is all",
)
@click.option("--dry-run", is_flag=True, help="print the command line, and make and run nothing")
@click.argument("arguments", metavar="PROGRAM [OPTIONS OF river run]", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def submit_(streams: Streams, arguments: tuple[str, ...], **given: Any) -> None:
    """Run PROGRAM on a cluster of Spark whose machines have no River: it is packaged, and `spark-submit` takes it there.

    The options are those of `river run`, and the ones below.

    \b
    Examples:
      river submit q.szl --in log=/data/log.parquet --out counts=/data/counts/ --spark-master spark://host:7077
      river submit q.szl --in log=/data/log.parquet --out counts=/data/counts/ --spark-master yarn --deploy-mode cluster
      river submit --package folder
    """  # noqa: D301
    from river import plugins

    if not arguments:
        _package(streams, given)
        return
    context = run_.make_context("river submit", list(arguments))
    stated: dict[str, Any] = run_.make_parser(context).parse_args(list(arguments))[0]
    if stated.get("backend", "spark") != "spark":
        raise Rejected([Diagnostic("usage", "`river submit` is for the backend `spark`")])
    spark: Any = plugins.backend("spark")
    whole = context.params
    compiled = program_of(streams, Asked.of(whole), seed=whole["seed"])
    inside = given["deploy_mode"] == "cluster"
    if inside:
        _check_places(stated)
    words, prepare = spark.submission(
        name=Path(whole["program"][0]).name,
        arguments=tuple(_options(stated)) if inside else arguments,
        mode=given["deploy_mode"],
        text=compiled.text if inside else None,
        settings=spark_settings(given),
        modules=(*given["py_files"], *_modules(whole["externs"])),
        python=given["python"],
        more=given["more"],
        folder=given["package"],
    )
    if given["dry_run"]:
        print(_shown(words), file=streams.stdout)
        return
    streams.stdout.flush()
    done = subprocess.run(words, env={**os.environ, **prepare()}, check=False)  # noqa: S603 - as asked
    if done.returncode:
        raise click.exceptions.Exit(done.returncode)


def _package(streams: Streams, given: Mapping[str, Any]) -> None:
    """Makes the package alone, and says where it is."""
    from river import plugins

    for_runs = ("spark_master", "spark_confs", "py_files", "dry_run")
    if given["package"] is None or any(given[each] for each in for_runs):
        raise click.UsageError(
            "Missing argument 'PROGRAM'; without one, `--package FOLDER` makes the package alone."
        )
    spark: Any = plugins.backend("spark")
    print(spark.package(given["package"], given["python"], given["more"]), file=streams.stdout)


def _options(stated: Mapping[str, Any]) -> Iterator[str]:
    """The words of what a command line states for `river run`, but for what is of no use when the program has been compiled."""
    for option in run_.params:
        name = option.name or ""
        if name not in stated or name in ASKED or name == "backend":
            continue
        value: Any = stated[name]
        values = cast("list[Any]", value if isinstance(value, list) else [value])
        for each in values:
            if isinstance(each, bool):
                yield (option.opts if each else option.secondary_opts)[0]
            else:
                yield from (max(option.opts, key=len), str(each))


def _check_places(stated: Mapping[str, Any]) -> None:
    """Sees that files are named as another machine finds them. Raises: Rejected("spark-submit")."""
    errors: list[Diagnostic] = []
    for name in PATHS:
        found = stated.get(name, ())
        for word in [found] if isinstance(found, str) else found:
            path = word.partition("=")[2] if name in ("ins", "outs", "on_error") else word
            if (path or name != "on_error") and not Path(path).is_absolute() and address(path) is None:
                message = f"`{word}`: the driver runs in the cluster, and in a folder of its own"
                errors.append(
                    Diagnostic("spark-submit", message, help="name files by their whole paths there")
                )
    if errors:
        raise Rejected(errors)


def _modules(names: Iterable[str]) -> Iterator[str]:
    """The files of the modules whose functions operators may call. Raises: Rejected("spark-submit") for packages."""
    functions(tuple(names))
    for name in names:
        spec = find_spec(name)
        origin = None if spec is None else spec.origin
        if origin is None or "." in name or not origin.endswith(".py") or origin.endswith("__init__.py"):
            message = f"`--extern {name}` is no module of one file, which could be sent along"
            help_ = "zip the package, and name it: `--py-files FILE`" if "." in name else None
            raise Rejected([Diagnostic("spark-submit", message, help=help_)])
        yield origin


def _shown(words: list[str]) -> str:
    """A command line for people: each option in a line of its own."""
    lines = [shlex.quote(words[0])]
    for before, word in pairwise(words):
        if word.startswith("-") or not before.startswith("-"):
            lines.append(shlex.quote(word))
        else:
            lines[-1] += f" {shlex.quote(word)}"
    return " \\\n  ".join(lines)
