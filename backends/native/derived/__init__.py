"""What is derived from types, by kind.

Derived functions take addresses: `copy(arena, to, from)`, `drop(arena, at)`, `same(x, y) -> i1`, `hash(h, x) -> i64` and so on,
as is said where they are made. A temporary arena shares texts and drops nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.derived.copying import make_copy, make_drop, make_replace
from backends.native.derived.equality import make_same
from backends.native.derived.hashing import make_hash, make_index_hash, make_index_word, make_stable_hash
from backends.native.derived.keys import make_canonical, make_number
from backends.native.derived.ordering import make_key_order, make_order

if TYPE_CHECKING:
    from backends.native.derived.maker import Maker

DERIVED: Final[dict[str, Maker]] = {
    "copy": make_copy,
    "drop": make_drop,
    "replace": make_replace,
    "same": make_same,
    "hash": make_hash,
    "stable_hash": make_stable_hash,
    "index_hash": make_index_hash,
    "index_word": make_index_word,
    "number": make_number,
    "canonical": make_canonical,
    "order": make_order,
    "key_order": make_key_order,
}
