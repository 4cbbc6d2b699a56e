"""`river version`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from river.cli.terminal import Streams


@click.command("version")
@click.pass_obj
def version_(streams: Streams) -> None:
    """Print the versions of River and of what it runs on."""
    from river.entries import version

    print(f"river {version('river-streams')}", file=streams.stdout)
    print(f"python {sys.version.split()[0]}", file=streams.stdout)
    for package in ("attrs", "lark", "pyarrow"):
        print(f"{package} {version(package)}", file=streams.stdout)
