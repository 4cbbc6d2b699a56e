"""Deltas (il.md P3) as rows: change logs and streams.

A relation output is a change log: one row per change, `+` for an insertion and `-` for a deletion, with the
instant. Within an instant deletions stand before insertions, and what is both inserted and deleted is not
there at all.

Paper: River section 3.4 (CQL's relations and streams).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from river.diagnostics import InternalError
from river.io.batches import Batch, Item, ItemSource, Origin
from river.lang.scope import show
from river.lang.types import STRING, List, Record, Type, delta

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from river.io.errors import RowError

INSERTED: Final = "+"
DELETED: Final = "-"


def bag_minus(left: Sequence[Item], right: Sequence[Item]) -> list[Item]:
    """`left` without, for each element of `right`, the first element equal to it; order is kept."""
    away = Counter(right)
    kept: list[Item] = []
    for item in left:
        if away.get(item, 0):
            away[item] -= 1
        else:
            kept.append(item)
    return kept


def net(ins: Sequence[Item], dels: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """The change that a delta makes: (ins - dels, dels - ins), both as bags in their order."""
    if not ins or not dels:
        return list(ins), list(dels)
    return bag_minus(ins, dels), bag_minus(dels, ins)


def is_delta(type_: Type) -> bool:
    """Whether items of `type_` are CQL's deltas of records."""
    match type_:
        case Record((("tau", _), ("ins", List(Record() as row)), ("del", List(other)))):
            return row == other
        case _:
            return False


def canonical(item: Item) -> Item:
    """A delta as what it says: the instant and the net change as two bags."""
    tau, ins, dels = item
    inserted, deleted = net(ins, dels)
    return tau, frozenset(Counter(inserted).items()), frozenset(Counter(deleted).items())


def row_type(type_: Type) -> Record:
    """The type of the rows of a delta type."""
    match type_:
        case Record((("tau", _), ("ins", List(Record() as row)), ("del", List()))):
            return row
        case _:
            raise InternalError(f"{show(type_)} is not a delta of records")


def _tau_type(type_: Type) -> Type:
    row_type(type_)
    assert isinstance(type_, Record)  # noqa: S101 - row_type has seen to it
    return type_.fields[0][1]


def free_name(row: Record, *names: str) -> str:
    """The first of `names` that no field of `row` has; else the last, with underscores behind it."""
    for name in names:
        if row.index(name) is None:
            return name
    name = names[-1]
    while row.index(name) is not None:
        name += "_"
    return name


def changelog(type_: Type, tau: str | None = None, op: str | None = None) -> Record:
    """The type of change-log rows of a delta type: the instant, `+` or `-`, and the fields of the row.

    The names default to `ts` and `op`; where the row has such a field, to `tau` and `change`.
    """
    row = row_type(type_)
    tau = tau or free_name(row, "ts", "tau")
    op = op or free_name(row, "op", "change")
    return Record(((tau, _tau_type(type_)), (op, STRING), *row.fields))


def stream(type_: Type, tau: str | None = None) -> Record:
    """The type of the rows of a stream given as deltas: the instant and the fields of the row."""
    row = row_type(type_)
    return Record(((tau or free_name(row, "ts", "tau"), _tau_type(type_)), *row.fields))


def changelog_rows(item: Item) -> list[Item]:
    """The change-log rows of one delta: netted, deletions first."""
    tau, ins, dels = item
    inserted, deleted = net(ins, dels)
    return [(tau, DELETED, *row) for row in deleted] + [(tau, INSERTED, *row) for row in inserted]


def stream_rows(item: Item) -> list[Item]:
    """The rows of one delta of a stream, which deletes nothing."""
    tau, ins, dels = item
    inserted, deleted = net(ins, dels)
    if deleted:
        raise InternalError(f"a stream deletes {deleted[0]!r} at {tau}")
    return [(tau, *row) for row in inserted]


def from_changelog(source: ItemSource) -> ItemSource:
    """Deltas from a source of change-log rows (`changelog`): one per run of rows with the same instant.

    A row whose second field is neither `+` nor `-` is a row error (`data-type`). The last delta of a source
    comes at its end: an instant is complete when a later one begins.
    """
    fields = source.type.fields if isinstance(source.type, Record) else ()
    if len(fields) < 2 or fields[1][1] != STRING:
        raise InternalError(f"{show(source.type)} is not the type of a change log")
    type_ = delta(Record(fields[2:]), fields[0][1])
    return source.derived(type_, _grouped(iter(source.batches), fields[1][0], source.origin))


class _Instant:
    """The delta that is being gathered."""

    def __init__(self, tau: Any, line: int) -> None:
        self.tau = tau
        self.line = line
        self.ins: list[Item] = []
        self.dels: list[Item] = []

    def item(self) -> Item:
        return (self.tau, tuple(self.ins), tuple(self.dels))


def _grouped(batches: Iterator[Batch], op: str, origin: Origin) -> Iterator[Batch]:
    instant: _Instant | None = None
    for batch in batches:
        items: list[Item] = []
        lines: list[int] = []
        errors: list[tuple[int, RowError]] = []
        waiting = list(batch.errors)[::-1]
        for number, (tau, change, *row) in enumerate(batch.items):
            while waiting and waiting[-1][0] <= number:
                errors.append((len(items), waiting.pop()[1]))
            if change not in (INSERTED, DELETED):
                reason = f"{change!r} is neither `+` nor `-`"
                text = batch.text(number)
                errors.append(
                    (len(items), origin.error(batch.lines[number], "data-type", reason, field=op, text=text))
                )
                continue
            if instant is None or instant.tau != tau:
                if instant is not None:
                    items.append(instant.item())
                    lines.append(instant.line)
                instant = _Instant(tau, batch.lines[number])
            (instant.ins if change == INSERTED else instant.dels).append(tuple(row))
        errors += [(len(items), error) for _, error in reversed(waiting)]
        yield Batch(items, lines, errors, _spell(items))
    if instant is not None:
        last = [instant.item()]
        yield Batch(last, [instant.line], (), _spell(last))


def _spell(items: list[Item]) -> Callable[[int], str]:
    return lambda i: repr(items[i])
