"""Values under construction.

A value is a scalar in a register, an address, the parts of a record not put together, a row of the input's columns, or a list
that is sent as it is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from river.classes import frozen

if TYPE_CHECKING:
    from river.lang import types as t

TEMPORARY: Final = "%temporary"  # the arena that is emptied after each firing


@frozen
class Scalar:
    """A register."""

    type: t.Type
    reg: str


@frozen
class Memory:
    """An address. `arena`: of the place that it is part of; what a write puts there must live in it.

    `lent`: its texts are the input's, which lie there as long as anybody has what the firing emits.
    """

    type: t.Type
    ptr: str
    arena: str = TEMPORARY
    lent: bool = False


@frozen
class Parts:
    """A record whose fields are where they are."""

    type: t.Type
    values: tuple[Value, ...]


@frozen
class Row:
    """A row of columns from `column` on; of an array, `row` is that of its first item."""

    type: t.Type
    column: int
    row: str


@frozen
class Sent:
    """A list whose items are rows of an output's columns already (see `sending`), the last ones of their table.

    They are part of the next item of type `of` of the output whose block is at `out`. `column`: of its offsets; `table`: of
    its items. `starts`: how many rows that table and those for parts of its items had before; `sent`: the items.
    """

    type: t.Type
    out: str
    of: t.Type
    column: int
    table: int
    starts: tuple[str, ...]
    sent: str


Value = Scalar | Memory | Parts | Row | Sent
