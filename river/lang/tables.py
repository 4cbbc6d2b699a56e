"""Parser tables kept on disk: making them takes 0.1 s, and lark 0.2 to 0.5 s to read the grammar; reading them takes 5 ms.

The tables are JSON (lark's own cache is a pickle, which could run what somebody put there). A file's name is the hash of
all that the tables depend on; it appears by an atomic rename, and a damaged one is built again.

What lark reads of the grammars of our languages, their `Rules`, is in the package (`*.rules.json`), so that the first run of an
installation need not wait for it. Each says of which text it was read; of another text it is not used, and lark reads that.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from river.digests import sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from river.lang.lalr import Tables
    from river.lang.tabulate import Production


def cache_folder() -> Path:
    """Where River keeps what it can make again: `$RIVER_CACHE`, else `river` in the user's cache folder."""
    if named := os.environ.get("RIVER_CACHE"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "river"


def own_folder(name: str) -> Path | None:
    """A folder in the cache that is the user's alone: for what is trusted. None where others may write to it."""
    folder = cache_folder() / name
    try:
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stat = folder.stat()
    except OSError:
        return None
    if hasattr(os, "getuid") and (stat.st_uid != os.getuid() or stat.st_mode & 0o022):
        return None
    return folder


def keep(file: Path, content: bytes) -> None:
    """Makes a file of the cache appear whole, or not at all. Raises: OSError, and then nothing of it is left."""
    part = file.with_name(f".{file.name}.{os.urandom(4).hex()}.part")
    try:
        part.write_bytes(content)
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def evict(folder: Path, most: int) -> None:
    """Removes the older half of the files of a folder that has more than `most`.

    To be called after each file that is kept. Where there is room for many, the next calls of this process do not look.
    """
    calls = _UNSEEN.get(folder, 0)
    if calls:
        _UNSEEN[folder] = calls - 1
        return
    with os.scandir(folder) as found:
        entries = list(found)
    if len(entries) > most:
        files = sorted((entry.stat().st_mtime_ns, entry.path) for entry in entries)
        for _, path in files[: len(files) // 2]:
            with suppress(OSError):  # another run may have done it
                os.unlink(path)  # noqa: PTH108 - as it was listed
    _UNSEEN[folder] = max(0, most - len(entries)) // 8  # others keep files there, too


_UNSEEN: dict[Path, int] = {}
"""By folder, how many calls of `evict` need not look: to list thousands of files takes longer than to keep one."""


@cache
def fingerprint(*packages: str) -> str:
    """What tells this version of River's packages from others: names, sizes and times of their files."""
    told: list[str] = []
    for package in packages:
        spec = find_spec(package)  # which does not import it
        if spec is None:
            continue
        if spec.submodule_search_locations is None and spec.origin is not None:  # a module of one file
            told.append(_line(*_file(spec.name, spec.origin)))
        for folder in spec.submodule_search_locations or ():
            told += _sources(folder)
    return sha256("".join(told).encode()).hexdigest()


def _sources(folder: str) -> list[str]:
    """A line for each file of a folder, and of those in it."""
    if not os.path.isdir(folder):  # noqa: PTH112 - as it is told
        return [_line(*_archive(folder))]
    told: list[str] = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=_name):
            if entry.name.endswith(_SOURCES):
                told.append(_line(entry.name, entry.stat()))
            elif entry.is_dir():
                told += _sources(entry.path)
    return told


_name = attrgetter("name")


def _line(name: str, stat: os.stat_result) -> str:
    return f"{name} {stat.st_size} {stat.st_mtime_ns}\n"


def _file(name: str, path: str) -> tuple[str, os.stat_result]:
    try:
        return name, os.stat(path)  # noqa: PTH116 - as it is told
    except NotADirectoryError:
        return _archive(path)


def _archive(folder: str) -> tuple[str, os.stat_result]:
    """The file that a folder is in: of a package that is imported from a zip file, as Spark ships them."""
    place, inside = os.path.split(folder)
    while inside and not os.path.isfile(place):  # noqa: PTH113 - as it is told
        place, inside = os.path.split(place)
    return folder, os.stat(place)  # noqa: PTH116 - as it is told


_SOURCES = (".py", ".rt", ".lark", ".river")


def cached(
    grammar: str,
    start: tuple[str, ...],
    build: Callable[[], Any],
    told: Callable[[], str | None] = lambda: None,
) -> Tables:
    """The tables of a grammar, from the cache if they can be read there, else they are made and kept.

    They are made of the rules that are `told`, if these were read of that grammar, else of what `build` makes, a `lark.Lark`.
    """
    made_by = fingerprint("lark", "river.lang.tabulate", "river.lang.tables")
    text = "\x00".join((made_by, *start, grammar))
    file = cache_folder() / f"grammar-{sha256(text.encode()).hexdigest()[:32]}.json"
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        return _read(json.loads(file.read_text(encoding="utf-8")))
    made = _made(_said(grammar, start, told()) or rules(grammar, start, build()), start)
    with suppress(OSError):  # a cache that cannot be written is slow, not wrong
        file.parent.mkdir(parents=True, exist_ok=True)
        keep(file, json.dumps(made).encode())
    return _read(made)


def _read(kept: Any) -> Tables:
    from river.lang.lalr import Rule, Tables, Terminal

    rules = [Rule(*row) for row in kept["rules"]]
    terminals = {row[0]: Terminal(*row) for row in kept["terminals"]}
    states = _States(kept["states"])
    return Tables(kept["start"], kept["end"], states, rules, terminals, frozenset(kept["ignored"]))


class _States(dict[int, dict[str, int]]):
    """The states of a parser by number, each made when it is first asked for: few texts come to many of them."""

    def __init__(self, kept: list[str]) -> None:
        """The states as they are kept: each symbol, and what is done at it."""
        self._kept = kept

    def __missing__(self, number: int) -> dict[str, int]:
        """A state that no text has come to yet."""
        words = self._kept[number].split()
        found = self[number] = dict(zip(words[::2], map(int, words[1::2]), strict=True))
        return found

    def __iter__(self) -> Iterator[int]:
        """The numbers of all of them."""
        return iter(range(len(self._kept)))

    def __len__(self) -> int:
        """How many there are."""
        return len(self._kept)


def rules(grammar: str, start: tuple[str, ...], parser: Any) -> dict[str, Any]:
    """What a `lark.Lark` has read of a grammar, as JSON: all that tables are made of, and the hash of the text."""
    terminals = sorted(
        parser.terminals,
        key=lambda each: (-each.priority, -each.pattern.max_width, -len(each.pattern.value), each.name),
    )
    return {
        "grammar": _hash(grammar, start),
        "ignored": list(parser.lexer_conf.ignore),
        "rules": [[rule.options.priority or 0, *_rule(rule)] for rule in dict.fromkeys(parser.rules)],
        "terminals": [_terminal(each, terminals) for each in terminals],
    }


def _said(grammar: str, start: tuple[str, ...], told: str | None) -> dict[str, Any] | None:
    """Rules that were read before, if it was of this grammar."""
    found: dict[str, Any] = {} if told is None else json.loads(told)
    return found if found.get("grammar") == _hash(grammar, start) else None


def _hash(grammar: str, start: tuple[str, ...]) -> str:
    return sha256("\x00".join((*start, grammar)).encode()).hexdigest()


def accepted(rules: Iterable[Any], start: Iterable[str]) -> dict[int, list[str]]:
    """The terminals that each state of lark's rules accepts. Raises: Ambiguous, if one may be read in two ways."""
    from river.lang.tabulate import tabulate

    read = [(rule.options.priority or 0, *_rule(rule)) for rule in dict.fromkeys(rules)]
    return {
        number: list(each)
        for number, each in enumerate(tabulate(_productions(read), start, strict=True).states)
    }


def _productions(rows: Iterable[Any]) -> list[Production]:
    """What states are made of: of rules as they are kept."""
    from river.lang.tabulate import Production

    return [Production(origin, tuple(parts), priority) for priority, origin, parts, *_ in rows]


def _made(read: dict[str, Any], start: tuple[str, ...]) -> Any:
    """The tables of a grammar of which these are the rules, as JSON."""
    from river.lang.tabulate import tabulate

    found = tabulate(_productions(read["rules"]), start)
    return {
        "start": found.start,
        "end": found.end,
        "states": [" ".join(f"{name} {to}" for name, to in each.items()) for each in found.states],
        "rules": [rule for _, *rule in read["rules"]],
        "terminals": read["terminals"],
        "ignored": read["ignored"],
    }


def _rule(rule: Any) -> list[Any]:
    """A rule of lark's as the fields of a `Rule`."""
    options, parts = rule.options, rule.expansion
    empty = options.empty_indices or (False,) * len(parts)
    missing = [
        len(run) for run in "".join("1" if each else "0" for each in empty).split("0")
    ]  # before each part, and behind
    kept: list[tuple[int, bool, int]] = []
    before = 0
    for i, part in enumerate(parts):
        before += missing[i]
        if options.keep_all_tokens or not (part.is_term and part.filter_out):
            kept.append((i, not part.is_term and part.name.startswith("_"), before))
            before = 0
    before += missing[-1]
    same = not before and kept == [(i, False, 0) for i in range(len(parts))]
    name = rule.alias or options.template_source or rule.origin.name
    single = options.expand1 and not rule.alias
    return [rule.origin.name, [part.name for part in parts], name, single, None if same else kept, before]


def _terminal(each: Any, terminals: Iterable[Any]) -> list[Any]:
    """A terminal of lark's as the fields of a `Terminal`."""
    pattern = each.pattern
    text = pattern.value if pattern.type == "str" else None
    others = [other for other in terminals if other.pattern.type == "str" and other.priority == each.priority]
    regexp = pattern.to_regexp()
    words = [other.name for other in others if text is None and re.fullmatch(regexp, other.pattern.value)]
    return [each.name, regexp, text, "i" in pattern.flags, words]
