"""How a program runs, and what it may see of what is around it, said in its text."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING

from frontends.sawzall.times import zone
from river.diagnostics import Diagnostic, Rejected
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from river.frontend import LanguageOptions


def stated(source: Source, options: LanguageOptions) -> Source:
    """The text of a program with what the options say behind it, as lines such as `#river undefined skip`.

    Raises: Rejected("usage") for a zone that there is not, and a file that cannot be read.
    """
    named = options.get("zone")
    if named is not None and zone(named) is None:
        message = f"zone `{named}`: there is no such zone"
        raise Rejected([Diagnostic("usage", message, help="such as `America/Los_Angeles`")])
    said = {"undefined": options.get("undefined"), "zone": named, "seed": options.get("seed")}
    lines = [
        *(f"{name} {value}" for name, value in said.items() if value is not None),
        *_outside(options.get("env", ()), options.get("load", ())),
    ]
    return Source(source.name, source.text + "".join(f"\n#river {line}" for line in lines))


def _outside(variables: Iterable[str], files: Iterable[str]) -> Iterator[str]:
    """The variables and files that a program may ask for, with what they hold; a variable that is not set has no line."""
    for name in variables:
        if (value := os.environb.get(name.encode())) is not None:
            yield f"env {json.dumps(name)} {b64encode(value).decode()}"
    for name in files:
        try:
            found = Path(name).read_bytes()
        except (OSError, ValueError) as error:
            raise Rejected([Diagnostic("usage", f"`{name}` cannot be loaded: {error}")]) from None
        yield f"load {json.dumps(name)} {b64encode(found).decode()}"
