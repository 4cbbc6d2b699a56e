"""What a source yields: batches of items that know their lines, and the row errors between them."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Protocol

from river.classes import evolve, field, frozen
from river.io.errors import OnError, Refusals, RowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from river.diagnostics import Rejected
    from river.io.order import Ordering
    from river.io.several import Files
    from river.lang.types import Type

Item = Any


class Sender(Protocol):
    """One of several who send rows to an input: a bad row ends what that one sends, and the others go on.

    `parted`: that has happened, so nothing that came of it and was not taken is.
    """

    parted: bool

    def part(self, rejected: Rejected) -> None:
        """Ends it, and tells the reason. From any thread."""
        ...


@frozen
class Origin:
    """Where the rows of a source come from: the input's name, the file, and whether lines or rows are counted.

    `sender`: who sent them, where a bad row ends that one alone.
    """

    input: str
    file: str | None = None
    rows: bool = False
    sender: Sender | None = field(default=None, eq=False, repr=False)

    def error(self, line: int, code: str, reason: str, **more: Any) -> RowError:
        """The row error at `line` of this origin."""
        return RowError(
            self.input, code, reason, line, file=self.file, unit="row" if self.rows else "line", **more
        )


@frozen
class Batch:
    """Consecutive items with the line of each, and errors: `(n, e)` says that `e` stood before item `n`.

    `text(i)` is item `i` as it was read, for dead letters of later checks. `origin`: where they come from, if that is
    one of several places of the input.
    """

    items: list[Item]
    lines: Sequence[int]
    errors: Sequence[tuple[int, RowError]] = ()
    text: Callable[[int], str] = repr
    origin: Origin | None = None

    def until_error(self) -> Batch:
        """What comes before the first error, and that."""
        if not self.errors:
            return self
        position, _ = self.errors[0]
        return evolve(self, items=self.items[:position], lines=self.lines[:position], errors=self.errors[:1])


class RowReader(Protocol):
    """The rules of a text format for items of a type."""

    def rows(self, texts: Sequence[str], lines: Sequence[int]) -> Batch:
        """The items of records given one by one, each with the number of its line."""
        ...

    def rest(self, blocks: Iterable[list[str]], line: int) -> Iterator[Batch]:
        """The batches of what follows the first `line` lines of a file."""
        ...


@frozen(eq=False)
class FileInput:
    """The text file behind a source, for those who read it by other means under the same rules.

    `reader` tells what a row is; `packed`: `gzip`, `zstd` or None (see `sources.unpacked`); `size`: items of a batch;
    `key`: the field that must ascend, or go back by no more than `lateness` (see `order.ordered`).
    """

    path: str
    format: str
    packed: str | None
    type: Type
    origin: Origin
    refusals: Refusals
    size: int
    reader: RowReader
    key: int | None = None
    lateness: int = 0


@frozen
class RegularFile:
    """The file whose rows a source gives, all of them: somebody else may open it again. `packed`: see `FileInput`."""

    path: str
    format: str
    packed: str | None


class ItemSource:
    """An open input: lazily yields lists of items of `type`, in order, under an error policy.

    Memory is bounded by a batch. It can be iterated once; `close` may be called early. A row error under the
    policy `stop` is raised (Rejected) after the items before it have been yielded. `file`: what it reads, if
    that is a regular file of text; `regular`: the regular file of any kind; `bytes`: how large what it reads is, 0
    where that is not known; `ordering`: its items are those of `unordered` that keep to it; `rows`: its one item is the
    list of all of these; `several`: the files that it reads one after the other, `members`: the sources of these, each to be
    read before the next, where their items are in order then, or wait for each other as `ordering` says. Who reads one of these
    instead still closes the source.
    """

    def __init__(
        self,
        type_: Type,
        origin: Origin,
        batches: Iterable[Batch],
        refusals: Refusals,
        close: Callable[[], None] | None = None,
        file: FileInput | None = None,
    ) -> None:
        self.type = type_
        self.file = file
        self.origin = origin
        self.batches = batches
        self.refusals = refusals
        self.unordered: Iterable[Batch] = batches
        self.ordering: Ordering | None = None
        self.rows: ItemSource | None = None
        self.regular: RegularFile | None = None
        self.several: Files | None = None
        self.members: Callable[[], Iterator[ItemSource]] | None = None
        self.bytes = 0
        self._closers = [] if close is None else [close]

    @property
    def name(self) -> str:
        """The name of the input."""
        return self.origin.input

    def derived(self, type_: Type, batches: Iterable[Batch], file: FileInput | None = None) -> ItemSource:
        """A source of `batches` made from this one's; closing it closes this one."""
        found = ItemSource(type_, self.origin, batches, self.refusals, self.close, file)
        found.bytes = self.bytes
        return found

    def __iter__(self) -> Iterator[list[Item]]:
        try:
            for batch in self.batches:
                yield from self.accepted(batch)
        finally:
            self.close()

    def accepted(self, batch: Batch) -> Iterator[list[Item]]:
        """The items of `batch`; those before an error go out before the policy sees the error, and may raise it."""
        done = 0
        if self.refusals.stops:
            for position, error in batch.errors:
                if position > done:
                    yield batch.items[done:position]
                    done = position
                self.refusals.refuse(error)
        else:
            for _, error in batch.errors:
                self.refusals.refuse(error)
        if len(batch.items) > done:
            yield batch.items[done:] if done else batch.items

    def on_close(self, close: Callable[[], None]) -> None:
        """Have `close` called when the source is done with."""
        self._closers.append(close)

    def close(self) -> None:
        """Release the file behind the source."""
        while self._closers:
            self._closers.pop()()


def refusals(on_error: OnError | Refusals) -> Refusals:
    """The counter for a policy; a counter is taken as it is, so that several inputs may share one."""
    return on_error if isinstance(on_error, Refusals) else Refusals(on_error)


def assemble(
    parts: list[list[Any]],
    lines: Sequence[int],
    text: Callable[[int], str],
    errors: Sequence[tuple[int, RowError]],
    faults: dict[int, RowError],
    *,
    record: bool,
) -> Batch:
    """The batch of decoded columns: rows of `parts` except those with faults; `errors` stand between rows."""
    items: list[Item] = list(zip(*parts, strict=True)) if record else parts[0]
    if not faults:
        return Batch(items, lines, errors, text)
    rows = [row for row in range(len(items)) if row not in faults]
    # An error before row n stands before n's place among the rows that stay; at one row, earlier lines come first.
    merged = sorted(
        [(row, 1, fault) for row, fault in faults.items()] + [(row, 0, error) for row, error in errors],
        key=lambda entry: entry[:2],
    )
    placed = [(bisect_left(rows, row), error) for row, _, error in merged]
    return Batch([items[row] for row in rows], [lines[row] for row in rows], placed, lambda i: text(rows[i]))
