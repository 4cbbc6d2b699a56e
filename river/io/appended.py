"""What is added to a folder of files must have the format and the columns of what is there: nobody could read both as one input.

One file is looked at, the last one. Of columns in Parquet and Arrow files names and types count, of others names; lines of
JSON and of text say of each row what it has.
"""

from __future__ import annotations

import csv
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from river.diagnostics import Diagnostic, Note, Rejected
from river.io.errors import unreadable
from river.io.schema import arrow, arrow_schema, columns, growable
from river.io.several import hidden
from river.io.sources import format_of
from river.lang.types import Record, Type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


ELSE: Final = "name another folder; `--mode overwrite` replaces the files"


def check_added(
    name: str, folder: str, kind: str, type_: Type, by: Sequence[str] = (), *, instead: str = ELSE
) -> None:
    """Sees that rows of output `name` fit to the files of a folder, which are divided as they will be. `instead`: what to try.

    Raises: Rejected("data-folder"); ("data-unreadable") for a file that cannot be read.
    """
    path = _last(Path(folder))
    if path is None:
        return
    there, packed = "", None
    with suppress(Rejected):  # of no format that is known
        there, packed = format_of(str(path), None, name)
    if there != kind:
        what = f"its files are to be {kind}, and there is `{path.name}`"
    else:
        rest = Record(tuple(each for each in columns(type_) if each[0] not in by))
        try:
            what = "; ".join(_otherwise(path, kind if packed is None else "", rest))
        except (OSError, ValueError) as error:  # Arrow's errors are such
            raise Rejected([unreadable(str(path), error)]) from error
    if what:
        message = f"output `{name}`: its rows do not fit to the files in `{folder}`: {what}"
        note = Note(f"such as `{path}`")
        raise Rejected([Diagnostic("data-folder", message, notes=(note,), help=instead)])


def unlike(there: Sequence[tuple[str, str]], ours: Sequence[tuple[str, str]]) -> list[str]:
    """What is other of an output's columns than of those that are there; each is a name and the word for a type."""
    known, wanted = dict(there), dict(ours)
    return [
        *(f"there is no column `{each}`" for each in wanted if each not in known),
        *(f"the column `{each}` is none of the output's" for each in known if each not in wanted),
        *(
            f"the column `{each}` is `{known[each]}`, and that of the output `{kind}`"
            for each, kind in wanted.items()
            if known.get(each, kind) != kind
        ),
    ]


def _last(folder: Path) -> Path | None:
    """The last file of a folder, and of those in it."""
    for path in sorted(folder.iterdir(), reverse=True):
        if hidden(path.name):
            continue
        found = _last(path) if path.is_dir() else path
        if found is not None:
            return found
    return None


def _otherwise(path: Path, kind: str, type_: Record) -> Iterator[str]:
    """What columns of a file are otherwise than those of rows. Raises: OSError, ValueError."""
    match kind:
        case "parquet" | "arrow":
            found = _schema(path, kind)
            wanted = arrow_schema(growable(type_) if kind == "parquet" else type_)
            yield from unlike(_named(found), _named(wanted))
        case "csv" | "tsv":
            with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
                header = next(csv.reader(file, delimiter="," if kind == "csv" else "\t"), None)
            if header is not None:
                yield from unlike([(each, "") for each in header], [(each, "") for each, _ in type_.fields])
        case _:
            pass


def _schema(path: Path, kind: str) -> Any:
    """The schema of a file of Parquet or Arrow."""
    if kind == "parquet":
        return arrow("parquet").read_schema(path)
    ipc, magic = arrow("ipc"), b"ARROW1"
    with path.open("rb") as file:
        whole = file.read(len(magic)) == magic
        file.seek(0)
        return (ipc.open_file if whole else ipc.open_stream)(file).schema


def _named(schema: Any) -> list[tuple[str, str]]:
    """The columns of a schema, and what their types are called, whoever has written them."""
    return [(field.name, _word(field.type)) for field in schema]


def _word(type_: Any) -> str:
    """An Arrow type, as if there were one of texts, one of lists, and so on."""
    kind = arrow("types")
    if kind.is_dictionary(type_):
        return _word(type_.value_type)
    if kind.is_large_string(type_) or kind.is_string_view(type_):
        return "string"
    if kind.is_large_binary(type_) or kind.is_binary_view(type_):
        return "binary"
    if kind.is_timestamp(type_):
        return "timestamp" if type_.tz is None else "timestamp with a zone"
    if kind.is_duration(type_):
        return "duration"
    if kind.is_struct(type_):
        return f"struct<{', '.join(f'{each.name}: {_word(each.type)}' for each in type_)}>"
    if kind.is_map(type_):
        return f"map<{_word(type_.key_type)}, {_word(type_.item_type)}>"
    if kind.is_list(type_) or kind.is_large_list(type_) or kind.is_list_view(type_):
        return f"list<{_word(type_.value_type)}>"
    return str(type_)
