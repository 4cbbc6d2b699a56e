"""Addresses of data beyond this machine, such as `s3a://bucket/log/`, and tables of a catalog, such as `table:sales.log`."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final, cast

from river.diagnostics import Diagnostic, Rejected

if TYPE_CHECKING:
    from collections.abc import Mapping

ADDRESS: Final = re.compile(r"(?!tcp://)[A-Za-z][A-Za-z0-9+.-]+://.+", re.DOTALL)
"""A scheme and what it says. A single letter is no scheme: some systems have drives. At `tcp://` River listens itself."""

CATALOG: Final = "table:"

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(//[^/]*)?")


def address(target: object) -> str | None:
    """What is read or written, if that is an address or a table of a catalog; None for all else."""
    if not isinstance(target, str | os.PathLike):
        return None
    text = os.fspath(cast("str | os.PathLike[str]", target))
    return text if ADDRESS.fullmatch(text) or table(text) else None


def table(text: str) -> str | None:
    """The name of a table of a catalog; None for other addresses."""
    return text.removeprefix(CATALOG) if text.startswith(CATALOG) and len(text) > len(CATALOG) else None


def path_of(address: str) -> str:
    """The path of an address, without its scheme and host."""
    return _SCHEME.sub("", address, count=1)


def base(address: str, path: str) -> str:
    """The address of another path, where an address is."""
    return address.removesuffix(path_of(address)) + path


def addresses(inputs: Mapping[str, object], outputs: Mapping[str, object]) -> list[str]:
    """All addresses of what is read and written. Raises: Rejected("data-overwrite") where what is written is also read.

    Files of this machine may be named by their paths, too.
    """
    read, written = ([*filter(None, map(_named, each.values()))] for each in (inputs, outputs))
    for i, (one, place, far) in enumerate(written):
        for other, there, beyond in (*read, *written[:i], *written[i + 1 :]):
            if (far or beyond) and f"{there.rstrip('/')}/".startswith(f"{place.rstrip('/')}/"):
                message = f"`{one}` would be written, and `{other}` is used, too"
                raise Rejected([Diagnostic("data-overwrite", message, help="name another address")])
    return [name for name, _, far in (*read, *written) if far]


def _named(target: object) -> tuple[str, str, bool] | None:
    """What is read or written as it is named, the address of that, and whether it is an address; None for other data."""
    if not isinstance(target, str | os.PathLike):
        return None
    name = os.fspath(cast("str | os.PathLike[str]", target))
    far = address(name) is not None
    if far and not name.startswith(_FILE):
        return name, name, True
    try:
        return name, _FILE + os.path.realpath(path_of(name) if far else name), far
    except ValueError:  # no file can be called so, which who opens it tells
        return name, name, far


_FILE: Final = "file:"
