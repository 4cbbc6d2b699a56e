"""Templates of the runtime library (`runtime/*.rt`) that are compiled once for each type, with derived functions of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.derived.keys import INTEGERS
from backends.native.layout import KEY_AT, Keyed, entry_layout, entry_lines, is_text, size_align, text_room
from backends.native.rtlang import Signature
from river.classes import field, frozen
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Mapping

SIGNATURES: Final = {
    "key_order": Signature(("p8", "p8"), "i64"),
    "order": Signature(("Arena", "p8", "p8"), "i64"),
    "index_hash": Signature(("p8",), "i64"),
    "same": Signature(("p8", "p8"), "i1"),
    "number": Signature(("p8",), "i64"),
}
"""Of the derived functions that templates ask for, by kind."""


@frozen
class Template:
    """A file for a type: its constants, and by the names that it uses the kinds and types of derived functions.

    `stem`: what tells the functions of one type from those of others begins with it.
    """

    file: str
    stem: str
    needs: Mapping[str, tuple[str, t.Type]]
    given: Mapping[str, int] = field(factory=dict[str, int])


def maps(type_: Keyed | t.Bag) -> Template:
    """Maps of a type, or bags."""
    key = t.parts(type_)[0]
    value, entry = entry_layout(type_)
    _, *behind = entry_lines(type_)
    given = {
        "SMALL": int(isinstance(type_, t.Map) and key in INTEGERS),
        "BAG": int(isinstance(type_, t.Bag)),
        "KEY": KEY_AT,
        "VALUE": value,
        "ENTRY": entry,
        "BEHIND": max(behind, default=0),
        "KEY_TEXT": _first_text(key, 0),
        "TEXT_ROOM": text_room(type_),
    }
    if isinstance(type_, t.OMap):
        return Template("omap.rt", "m", {"key_order": ("key_order", key)}, given)
    needs = {"key_hash": ("index_hash", key), "key_same": ("same", key), "key_number": ("number", key)}
    return Template("map.rt", "m", needs, given)


def _first_text(type_: t.Type, at: int) -> int:
    """Where the first text is in a value that lies at a place; -1 if there is none in it, or it is not always there."""
    if is_text(type_):
        return at
    if isinstance(type_, t.Record | t.Tuple):
        for part in t.parts(type_):
            size, align = size_align(part)
            at = -(-at // align) * align
            if (found := _first_text(part, at)) >= 0:
                return found
            at += size
    return -1


def differences(item: t.Type) -> Template:
    """Differences of lists of items of a type."""
    return Template("minus.rt", "d", {"key_hash": ("index_hash", item), "key_same": ("same", item)})


def sorting(key: t.Type) -> Template:
    """Sorting by keys of a type."""
    return Template("sort.rt", "s", {"order": ("order", key)})


def entries(type_: t.Map | t.OMap | t.Bag) -> Template:
    """The order of maps of a type, or of bags."""
    key = t.parts(type_)[0]
    value = t.UNIT if isinstance(type_, t.Bag) else type_.value
    needs = {"key_order": ("order", key), "value_order": ("order", value)}
    return Template("entries.rt", "e", needs, {"KEY": KEY_AT, "VALUE": entry_layout(type_)[0]})
