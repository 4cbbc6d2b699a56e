"""Parser tables kept on disk: building them from a grammar takes 0.3 s, reading them 20 ms.

The tables are JSON (lark's own cache is a pickle, which could run what somebody put there). A file's name is the hash of
all that the tables depend on; it appears by an atomic rename, and a damaged one is built again.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

FORMAT = 1


def cache_folder() -> Path:
    """Where River keeps what it can make again: `$RIVER_CACHE`, else `river` in the user's cache folder."""
    if named := os.environ.get("RIVER_CACHE"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "river"


@cache
def fingerprint(*packages: str) -> str:
    """What tells this version of River's packages from others: names, sizes and times of their files."""
    found = hashlib.sha256()
    for package in packages:
        for path in sorted(Path(str(files(package))).rglob("*")):
            if path.suffix in _SOURCES:
                stat = path.stat()
                found.update(f"{path.name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return found.hexdigest()


_SOURCES = (".py", ".rt", ".lark", ".river")


def cached(grammar: str, start: tuple[str, ...], build: Callable[[], Any]) -> Any:
    """The `lark.Lark` of a grammar, from the cache if it can be read there, else built and kept."""
    import lark

    text = "\x00".join((str(FORMAT), lark.__version__, *start, grammar))
    file = cache_folder() / f"grammar-{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, AssertionError):
        return _load(json.loads(file.read_text(encoding="utf-8")))
    tables = build()
    with suppress(OSError):  # a cache that cannot be written is slow, not wrong
        _store(file, tables)
    return tables


def _store(file: Path, tables: Any) -> None:
    from lark.grammar import Rule
    from lark.lexer import TerminalDef

    data, memo = tables.memo_serialize([TerminalDef, Rule])
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{token_hex(4)}.part")
    part.write_text(json.dumps({"data": data, "memo": memo}), encoding="utf-8")
    part.replace(file)


def _load(kept: Any) -> Any:
    """The tables from their JSON, in which the keys that were numbers have become texts."""
    from lark import Lark

    load: Any = getattr(Lark, "load")  # noqa: B009 - its annotations are partial
    table = kept["data"]["parser"]["parser"]
    table["tokens"] = _numbered(table["tokens"])
    table["states"] = {state: _numbered(actions) for state, actions in _numbered(table["states"]).items()}
    return load({"data": kept["data"], "memo": _numbered(kept["memo"])})


def _numbered(mapping: dict[str, Any]) -> dict[int, Any]:
    return {int(key): value for key, value in mapping.items()}
