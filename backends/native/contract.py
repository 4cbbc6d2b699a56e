"""What native code and those who call it agree on: the context, trap codes, how a batch function ends, and its handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.layout import Unsupported
from river.classes import frozen
from river.lang import types as t

if TYPE_CHECKING:
    from river.lang import typed
    from river.source import Span

FULL, STOP, TRAPPED = 1, 2, 3
"""How a batch function ended, if not at the last row."""

MARK = t.Tuple((t.I64, t.I64))
"""A mark in the output: how many items come before it, and its key."""


def mark_type(out: typed.Out) -> t.Type:
    """The type of the marks of an output, which lie as `MARK` does."""
    by = out.type.field(out.by) if out.by is not None and isinstance(out.type, t.Record) else None
    return t.Tuple((t.I64, t.U64)) if by == t.U64 else MARK


BASE: Final = "base"
"""The part of the runtime library that nearly all operators need."""

ARENA_SIZE: Final = 544
ARENA_USED: Final = 24
"""Where an arena counts the bytes that it has of the system, in chunks of at least `CHUNK`."""
CHUNK: Final = 65536
ROW: Final = 64
"""Bytes of an item for which batches and bounds are meant that nobody stated."""


CODES: Final = (
    "overflow", "division-by-zero", "shift-range", "conversion-range", "index-range", "key-missing", "remove-missing",
    "optional-empty", "decimal-precision", "bad-utf8", "bad-parse", "recursion-depth", "assert",
    "arena-limit", "rate-violation", "bad-regex", "memory-limit", "internal",
)  # fmt: skip
"""What a trap record's code means."""

# The context that every function gets: offsets in bytes.
CONTEXT: Final = {
    "code": 0, "site": 8, "row": 16, "a": 24, "b": 32, "stop": 40, "limit": 48, "variables": 56, "outs": 64,
    "given": 72, "jump": 80, "most": 88, "pool": 96, "stack": 104, "frames": 112, "regions": 120, "grown": 128,
    "patterns": 136, "temporary": 144, "texts": 144 + ARENA_SIZE,
}  # fmt: skip
CONTEXT_SIZE: Final = 144 + 2 * ARENA_SIZE

SIDE: Final = 4
"""Words of a side in the state of a merge: the next row, the number of rows, what its marks promise when the rows are
used up, and whether it ends there."""


@frozen
class Handler:
    """What a batch function takes: the types of its slots, and how many items of a slot's window one firing consumes.

    `pops` is 0 for a slot that is one row per firing. `merge` and `cycle` take the items of each input instead: a firing
    takes one of each side that has the smallest key; a row of a cycle is the firings of all its phases.
    """

    name: str
    slots: tuple[t.Type, ...]
    pops: tuple[int, ...]
    body: typed.Block | None


@frozen
class Reason:
    """Why an operator is not compiled."""

    text: str
    span: Span | None


class NotCompiled(Exception):  # noqa: N818 - carries the reasons out of what makes code when it is first wanted
    """There is no code, for these reasons."""

    def __init__(self, reasons: tuple[Reason, ...]) -> None:
        """The reasons."""
        super().__init__(reasons)
        self.reasons = reasons


def handlers_of(op: typed.Operator) -> tuple[Handler, ...]:
    """The batch functions of an operator, by name: item.<port>, first, rated, phase.<n>, cycle, merge, mark."""
    found = [Handler(f"item.{each.port}", (op.ports[each.port].type,), (0,), each.body) for each in op.items]
    for name, rated in (("first", op.first), ("rated", op.rated)):
        if rated is not None:
            windows = tuple(t.Array(op.ports[rate.port].type, rate.peek) for rate in rated.rates)
            found.append(Handler(name, windows, tuple(rate.pop for rate in rated.rates), rated.body))
    for i, phase in enumerate(op.phases):
        found.append(Handler(f"phase.{i}", (op.ports[phase.port].type,), (0,), phase.body))
    if op.phases:
        ports = tuple(op.ports[i].type for i in dict.fromkeys(p.port for p in op.phases if p.count))
        found.append(Handler("cycle", ports, (0,) * len(ports), None))
    if op.merge is not None:
        sides = tuple(op.ports[port].type for port in op.merge.ports)
        found.append(Handler("merge", sides, (0,) * len(sides), op.merge.body))
    if op.mark is not None:
        found.append(Handler("mark", (key_type(op),), (0,), op.mark.body))
    return tuple(found)


def key_type(op: typed.Operator) -> t.Type:
    """The type of the key of marks and merges."""
    for port in op.ports:
        if port.by is not None and isinstance(port.type, t.Record):
            found = port.type.field(port.by)
            if found is not None:
                return found
    raise Unsupported("a key that is not a field")
