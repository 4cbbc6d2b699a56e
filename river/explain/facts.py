"""The facts that `river explain` tells, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.classes import frozen

if TYPE_CHECKING:
    from river.diagnostics import Diagnostic


@frozen
class VariableFacts:
    """A variable of an operator: its type, and how it grows."""

    name: str
    type: str
    growth: str
    grows: bool
    shared: bool


@frozen
class Sent:
    """An output of an operator: how many items a firing sends, which fields it passes on unchanged (out, in)."""

    queue: str
    rate: str
    forwards: tuple[tuple[str, str], ...]


@frozen
class Facts:
    """What is known of one operator use.

    `place`: file:line:column of the text that it comes from. `made_of`: the template it is an instance of. `reads`: the
    fields that matter to it, None if any may. `traps`: the codes of the traps its body may raise. `host`: operations
    that only Python can do.
    """

    name: str
    place: str | None
    made_of: str | None
    use: str
    annotations: tuple[str, ...]
    state: str
    rows: bool
    sent: tuple[Sent, ...]
    reads: tuple[str, ...] | None
    order_reading: bool
    commutative: bool
    can_trap: bool
    traps: tuple[str, ...]
    kept: tuple[VariableFacts, ...]
    host: tuple[str, ...]


@frozen
class Region:
    """A parallel region: its operators run in `degree` replicas; None leaves the number to the platform.

    `keys` are the fields by which items, or rows of deltas, are divided; without keys any replica takes any item.
    """

    id: str
    strategy: str
    degree: int | None
    keys: tuple[str, ...]
    operators: tuple[str, ...]


@frozen
class Placed:
    """The operators of a `@Group`, and the workers of a machine that run them and nobody else does, counted from 0."""

    id: str
    workers: tuple[int, ...]
    operators: tuple[str, ...]


@frozen
class Serial:
    """Operators that run on one worker at a time, and why."""

    reason: str
    operators: tuple[str, ...]


@frozen
class InBlocks:
    """Operators behind an input that each worker runs on blocks of it, where it is a file that can be read so.

    `leaving`: the queues by which items leave them for others, in the order of the file.
    """

    input: str
    operators: tuple[str, ...]
    leaving: tuple[str, ...]


@frozen
class Read:
    """Inputs of which so many workers read blocks, where they are such files; rows are in the order of the file."""

    readers: int
    inputs: tuple[str, ...]


@frozen
class NotInBlocks:
    """Operators behind an input that get its items in the order of a file, and why; none if that is so of all behind it."""

    reason: str
    operators: tuple[str, ...]


@frozen
class Shuffle:
    """A queue from one region into another of the same degree and other keys: every replica sends to every replica."""

    queue: str
    source: str
    target: str


@frozen
class Explanation:
    """What is known of a program. `reasons`: why it is not deterministic by construction; empty if it is.

    `several`: these are the operators as several workers run them; then `serial` are those of one worker at a time, and
    `blocks` those for whom a file is read in parts, `in_order` others behind such inputs that get what these make, and `read` the
    inputs that several workers read. `groups`: what is placed on some of `cores` of the machine.
    """

    name: str
    reasons: tuple[Diagnostic, ...]
    operators: tuple[Facts, ...]
    regions: tuple[Region, ...] = ()
    shuffles: tuple[Shuffle, ...] = ()
    serial: tuple[Serial, ...] = ()
    blocks: tuple[InBlocks, ...] = ()
    in_order: tuple[NotInBlocks, ...] = ()
    read: tuple[Read, ...] = ()
    several: bool = False
    groups: tuple[Placed, ...] = ()
    cores: int = 1

    @property
    def deterministic(self) -> bool:
        """Whether every run gives the same result, whatever the schedule, the batches, the backend."""
        return not self.reasons
