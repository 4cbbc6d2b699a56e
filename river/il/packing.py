"""Verified programs as JSON and back, so that they can be kept: neither parsed nor verified again.

Every object is a row that names its class and its parts; parts without parts stand where they are, others by the number of
their row, so what was one object is one again. Numbers of long tables stand in columns. Only classes of the modules below are
ever made.
"""

from __future__ import annotations

import json
from contextlib import suppress
from enum import Enum
from functools import cache
from importlib import import_module
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, cast

from river.classes import define, field, fields, has_fields
from river.digests import sha256
from river.lang import syntax, typed
from river.lang.tables import evict, fingerprint, keep, own_folder
from river.lang.values import NAN, FrozenBag, FrozenMap, FrozenOMap
from river.lang.values.order import ordered_type, total_key
from river.nesting import room
from river.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MODULES: Final = (
    "river.diagnostics", "river.il.graph", "river.il.program", "river.lang.syntax", "river.lang.typed", "river.lang.types",
)  # fmt: skip
_NUMBERS, _SPAN, _ENUM, _BYTES, _TUPLE, _BAG, _DICT, _MAP, _OMAP = range(-9, 0)
_SEQUENCES: Final[dict[int, Any]] = {_TUPLE: tuple, _BAG: FrozenBag}
_MAPPINGS: Final[dict[int, Any]] = {_DICT: dict, _MAP: FrozenMap}
_KINDS: Final[dict[type, int]] = {class_: kind for kind, class_ in (*_SEQUENCES.items(), *_MAPPINGS.items())}
_WRITTEN: Final = (syntax.Int, syntax.Float, syntax.Bool, syntax.Unary, typed.Literal)
"""What numbers of a table are, which nobody tells apart but by their values."""
_LONG: Final = 64
"""From so many on they are columns."""
_PLAIN: Final = frozenset((str, int, float, bool, type(None)))


class NotPacked(Exception):  # noqa: N818 - a remark, not a mistake
    """Something of a class that is not kept."""


def packed(root: object, sources: Sequence[Source], others: list[Source] | None = None) -> dict[str, Any]:
    """A tree as what JSON can hold. Places in texts other than `sources` are left out, or these texts are put in `others`.

    Raises: NotPacked.
    """
    packer = _Packer({source: i for i, source in enumerate(sources)}, others)
    last = packer.part(root)
    return {"classes": [*packer.classes], "rows": packer.rows, "root": last}


def unpacked(kept: Mapping[str, Any], sources: Sequence[Source]) -> Any:
    """The tree again.

    Raises: what Python raises where `kept` is not what `packed` gave: KeyError, IndexError, TypeError, ValueError.
    """
    room()
    makers = [_maker(_classes()[name]) for name in kept["classes"]]
    made: list[Any] = []

    def parts(values: list[Any]) -> list[Any]:
        return [
            made[value[0]] if value.__class__ is list else value if value == value else NAN  # noqa: PLR0124 - it is one object
            for value in values
        ]

    for row in cast("list[list[Any]]", kept["rows"]):
        kind, values = row[0], row[1:]
        if kind >= 0:  # written out: most are these
            made.append(
                makers[kind](
                    *[
                        made[value[0]] if value.__class__ is list else value if value == value else NAN  # noqa: PLR0124
                        for value in values
                    ]
                )
            )
        elif kind == _SPAN:
            source, first, last = cast("list[int]", values)
            made.append(Span(sources[source], first, last))
        elif kind in _SEQUENCES:
            made.append(_SEQUENCES[kind](parts(values)))
        elif kind in _MAPPINGS:
            made.append(_MAPPINGS[kind](zip(parts(values[::2]), parts(values[1::2]), strict=True)))
        elif kind == _OMAP:
            type_, *entries = parts(values)
            order = None if type_ is None else total_key(type_)
            made.append(FrozenOMap(order, zip(entries[::2], entries[1::2], strict=True)))
        elif kind == _NUMBERS:
            which, *tables = cast("tuple[list[int] | None, *tuple[list[Any], ...]]", tuple(values))
            columns: list[tuple[Callable[..., object], list[Any]]] = [
                (makers[number], [parts(c) if many else repeat(*parts(c)) for many, c in rest])
                for number, *rest in tables
            ]
            each = [map(maker, *column) for maker, column in columns]
            made.append(tuple(each[0] if which is None else (next(each[i]) for i in which)))
        elif kind == _ENUM:
            made.append(makers[values[0]](*parts(values[1:])))
        elif kind == _BYTES:
            made.append(bytes.fromhex(values[0]))
        else:
            raise ValueError(kind)
    return parts([kept["root"]])[0]


MOST: Final = 4096
"""Parts of texts of which something is kept; when there are more, the older half goes."""


def kept_part(source: Source, begin: int, end: int, depends: Sequence[str], make: Callable[[], Any]) -> Any:
    """What `make` makes of a part of a text, a tree. It is kept on disk: to parse and check one takes longer than to use it.

    `depends`: on what else it depends, beside the part, its place, and this version of River.
    """
    folder = own_folder("templates")
    if folder is None:
        return make()
    told = (fingerprint("river.il", "river.lang"), *depends, source.name, str(begin), source.text[begin:end])
    file = folder / f"{sha256(chr(0).join(told).encode()).hexdigest()[:40]}.json"
    with suppress(OSError, ValueError, KeyError, TypeError, IndexError):
        return unpacked(json.loads(file.read_text(encoding="utf-8")), (source,))
    made = make()
    with suppress(OSError, NotPacked):  # a cache that cannot be written is slow, not wrong
        keep(file, json.dumps(packed(made, (source,))).encode())
        evict(folder, MOST)
    return made


@define
class _Packer:
    """The rows so far, and of which object each is; `alive` keeps those from being replaced by others of one identity."""

    sources: dict[Source, int]
    others: list[Source] | None
    classes: dict[str, int] = field(factory=dict[str, int])
    rows: list[list[Any]] = field(factory=list[list[Any]])
    known: dict[int, list[int]] = field(factory=dict[int, list[int]])
    alive: list[object] = field(factory=list[object])
    nodes: dict[type, tuple[int, tuple[str, ...]]] = field(
        factory=dict[type, tuple[int, tuple[str, ...]]]
    )  # by class the number and the parts
    latest: Source | None = None  # the text of the last place, and its number
    place: int = 0

    def part(self, value: object) -> Any:
        """What stands for an object in the row of another one."""
        kind = value.__class__
        if kind in _PLAIN:
            return value
        found = self.known.get(id(value))
        if found is not None:
            return found
        if kind is Span:
            span = cast("Span", value)
            if span.source is not self.latest and not self.has(span.source):
                return None
            row = [_SPAN, self.place, span.start, span.end]
        else:
            row = self.row(value)
        self.known[id(value)] = found = [len(self.rows)]
        self.alive.append(value)
        self.rows.append(row)
        return found

    def has(self, source: Source) -> bool:
        """Whether places in a text are kept; it is the `latest` then. To look for one means to hash it."""
        found = self.sources.get(source)
        if found is None:
            if self.others is None:
                return False
            found = self.sources[source] = len(self.sources)
            self.others.append(source)
        self.latest, self.place = source, found
        return True

    def row(self, value: object) -> list[Any]:
        """The row of an object, after those of its parts."""
        if (node := self.nodes.get(value.__class__)) is not None:
            number, names = node
            row = [number]
            for name in names:
                part = getattr(value, name)
                row.append(part if part.__class__ in _PLAIN else self.part(part))
            return row
        kind = _KINDS.get(type(value))
        if kind == _TUPLE and len(items := cast("tuple[object, ...]", value)) >= _LONG:
            classes = dict.fromkeys(map(type, items))
            if all(each in _WRITTEN for each in classes):
                return self.numbers(items, classes)
        if kind in _SEQUENCES:
            return [kind, *map(self.part, cast("tuple[object, ...]", value))]
        if kind in _MAPPINGS:
            pairs = cast("dict[object, object]", value).items()
            return [kind, *(self.part(each) for pair in pairs for each in pair)]
        match value:
            case bytes():
                return [_BYTES, value.hex()]
            case FrozenOMap():
                type_ = None if value.order is None else ordered_type(value.order)
                entries = (self.part(each) for pair in value.items() for each in pair)
                return [_OMAP, self.part(type_), *entries]
            case Enum():
                return [_ENUM, self.number(type(value)), self.part(value.value)]
            case _:
                self.nodes[type(value)] = self.number(type(value)), _fields(type(value))
                return self.row(value)

    def numbers(self, items: tuple[object, ...], classes: Mapping[type, None]) -> list[Any]:
        """The row of a table: of which class each of its numbers is, and by class their parts, in columns.

        A column is a list of what stands for each, or of the one that they all have.
        """
        order = {class_: i for i, class_ in enumerate(classes)}
        which = None if len(order) == 1 else [order[type(item)] for item in items]
        return [
            _NUMBERS,
            which,
            *(self.columns(class_, [x for x in items if type(x) is class_]) for class_ in classes),
        ]

    def columns(self, class_: type, items: Sequence[object]) -> list[Any]:
        """The columns of what is of one class."""
        found: list[Any] = [self.number(class_)]
        for name in _fields(class_):
            parts = list(map(attrgetter(name), items))
            if all(part is parts[0] for part in parts):
                found.append([False, [self.part(parts[0])]])
            elif all(part.__class__ in _PLAIN for part in parts):
                found.append([True, parts])
            else:
                found.append([True, [self.part(part) for part in parts]])
        return found

    def number(self, class_: type) -> int:
        """The number of a class."""
        name = _name(class_)
        if name not in _classes():
            raise NotPacked(name)
        return self.classes.setdefault(name, len(self.classes))


@cache
def _fields(class_: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(class_) if each.init)


@cache
def _name(class_: type) -> str:
    return f"{class_.__module__}.{class_.__qualname__}"


@cache
def _classes() -> dict[str, type]:
    """By name the classes of which objects are kept."""
    return {
        _name(each): each
        for module in map(import_module, MODULES)
        for each in vars(module).values()
        if isinstance(each, type)
        and each.__module__ == module.__name__
        and (has_fields(each) or issubclass(each, Enum))
    }


@cache
def _maker(class_: type) -> Callable[..., Any]:
    """A class, all of whose arguments are given by position."""
    if not has_fields(class_):
        return class_
    taken = [each for each in fields(class_) if each.init]
    named = [each.alias for each in taken if each.kw_only]
    if not named:
        return class_
    if named == [taken[0].alias]:
        (name,) = named

        def make(first: Any, *rest: Any) -> Any:
            return class_(*rest, **{name: first})

        def make_node(first: Any, *rest: Any) -> Any:
            return class_(*rest, span=first)  # a keyword that is written out is sooner passed

        return make_node if name == "span" else make
    names = [each.alias for each in taken]
    return lambda *parts: class_(**dict(zip(names, parts, strict=True)))


__all__ = ["NotPacked", "kept_part", "packed", "unpacked"]
