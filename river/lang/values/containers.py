"""The classes of containers that Python lacks: frozen and ordered maps, bags."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from typing import TYPE_CHECKING, Any, NoReturn, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from river.lang.values.scalars import Order


def _blocked(self: object, *_args: object, **_named: object) -> NoReturn:
    raise TypeError(f"a {type(self).__name__} cannot change")


class FrozenMap(dict[Any, Any]):
    """A map that cannot change. Equality and hash see the order of entries: it is part of a state."""

    __slots__ = ("_hash",)
    _hash: int

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(tuple(self.items()))
            return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, dict) and list(self.items()) == list(_pairs(cast("dict[Any, Any]", other)))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __repr__(self) -> str:
        return f"FrozenMap({super().__repr__()})"

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _blocked  # pyright: ignore[reportAssignmentType]


def _pairs(entries: dict[Any, Any]) -> Iterable[tuple[Any, Any]]:
    return entries.items()


class OMap:
    """Keys to values, in ascending order of `order(key)` (of the keys themselves when `order` is None)."""

    __slots__ = ("_entries", "_keys", "_sorted", "order")

    def __init__(self, order: Order | None, pairs: Iterable[tuple[Any, Any]] = ()) -> None:
        self.order = order
        self._entries: dict[Any, Any] = dict(pairs)
        self._keys: list[Any] = sorted(self._entries, key=order)
        self._sorted: list[Any] = self._keys if order is None else [order(key) for key in self._keys]

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys)

    def __getitem__(self, key: Any) -> Any:
        return self._entries[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        if key not in self._entries:
            place = bisect_left(self._sorted, key if self.order is None else self.order(key))
            self._keys.insert(place, key)
            if self.order is not None:
                self._sorted.insert(place, self.order(key))
        self._entries[key] = value

    def __delitem__(self, key: Any) -> None:
        del self._entries[key]
        place = bisect_left(self._sorted, key if self.order is None else self.order(key))
        del self._keys[place]
        if self.order is not None:
            del self._sorted[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OMap) and self._keys == other._keys and self._entries == other._entries

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self.items())!r})"

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of `key`, or `default`."""
        return self._entries.get(key, default)

    def keys(self) -> list[Any]:
        """The keys, ascending."""
        return list(self._keys)

    def values(self) -> list[Any]:
        """The values, in the order of their keys."""
        return [self._entries[key] for key in self._keys]

    def items(self) -> list[tuple[Any, Any]]:
        """Key and value, ascending."""
        return [(key, self._entries[key]) for key in self._keys]

    def first(self) -> Any:
        """The smallest key; the map is not empty."""
        return self._keys[0]

    def last(self) -> Any:
        """The greatest key; the map is not empty."""
        return self._keys[-1]

    def floor(self, key: Any) -> Any:
        """The greatest key at most `key`, or None."""
        place = bisect_right(self._sorted, key if self.order is None else self.order(key))
        return self._keys[place - 1] if place else None

    def ceil(self, key: Any) -> Any:
        """The smallest key at least `key`, or None."""
        place = bisect_left(self._sorted, key if self.order is None else self.order(key))
        return self._keys[place] if place < len(self._keys) else None

    def between(self, low: Any, high: Any) -> list[Any]:
        """The keys from `low` to `high`, which is excluded."""
        start, stop = (
            bisect_left(self._sorted, k if self.order is None else self.order(k)) for k in (low, high)
        )
        return self._keys[start:stop]


class FrozenOMap(OMap):
    """An `OMap` that cannot change."""

    __slots__ = ("_hash",)
    _hash: int

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(tuple(self.items()))
            return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)

    __setitem__ = __delitem__ = _blocked  # pyright: ignore[reportAssignmentType]


class Bag:
    """A multiset, iterated in insertion order of the survivors; an item that leaves is the oldest of its equals."""

    __slots__ = ("_at", "_items", "_next")

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self._items: dict[int, Any] = {}  # by number of insertion
        self._at: dict[Any, deque[int]] = {}
        self._next = 0
        for item in items:
            self.add(item)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items.values())

    def __contains__(self, item: object) -> bool:
        return item in self._at

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bag | FrozenBag) and tuple(self) == tuple(other)

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"Bag({list(self)!r})"

    def add(self, item: Any) -> None:
        """Adds one."""
        self._items[self._next] = item
        self._at.setdefault(item, deque()).append(self._next)
        self._next += 1

    def remove(self, item: Any) -> None:
        """Removes the oldest equal item.

        Raises: KeyError.
        """
        places = self._at[item]
        del self._items[places.popleft()]
        if not places:
            del self._at[item]

    def count(self, item: Any) -> int:
        """How many are equal to `item`."""
        return len(self._at.get(item, ()))


class FrozenBag(tuple[Any, ...]):
    """A `Bag` that cannot change: its items in order."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenBag) and super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return super().__hash__()

    def __repr__(self) -> str:
        return f"FrozenBag({list(self)!r})"
