"""Runs in epochs, as their folder tells them: which files each epoch had, and which rows it has made.

An epoch has been if its manifest is there, which names what counts of all that was written for it.
"""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from river.checkpoint import read_state, stored
from river.classes import evolve, field, frozen
from river.diagnostics import Diagnostic, Rejected
from river.io.packed import Damaged

if TYPE_CHECKING:
    from collections.abc import Mapping


@frozen
class Totals:
    """What all epochs came to.

    `refused`: rows by input and code, with the first; `skipped`: items by operator; `unread`: how many files of an input were not
    read, with what was said of the first.
    """

    read: Mapping[str, int] = field(factory=dict[str, int])
    rows: Mapping[str, int] = field(factory=dict[str, int])
    refused: Mapping[str, list[Any]] = field(factory=dict[str, "list[Any]"])
    skipped: Mapping[str, int] = field(factory=dict[str, int])
    trap: list[Any] | None = None
    unread: Mapping[str, list[Any]] = field(factory=dict[str, "list[Any]"])


@frozen
class Epoch:
    """An epoch that has been; `epoch` is its number, from 0 on.

    `inputs`: the files that came of each, in order; `outputs`: of each that got rows its files, in order, with how many rows
    they have; `states`: the files of the state that it left, by channel of keys; `order`: the one that says how far the inputs
    had been read, None if they have ended; `letters`: the file of rows that were wrong; `unread`: files of each input that came
    and were not read; `run`: what the run is called, which another one over the same folder is not.
    """

    epoch: int
    inputs: Mapping[str, tuple[str, ...]] = field(factory=dict[str, "tuple[str, ...]"])
    outputs: Mapping[str, tuple[tuple[str, int], ...]] = field(
        factory=dict[str, "tuple[tuple[str, int], ...]"]
    )
    states: tuple[str, ...] = ()
    order: str | None = None
    letters: str | None = None
    totals: Totals = Totals()
    unread: Mapping[str, tuple[str, ...]] = field(factory=dict[str, "tuple[str, ...]"])
    run: str = ""

    @staticmethod
    def of(header: Mapping[str, Any]) -> Epoch:
        """That which a header tells."""
        return Epoch(
            header["epoch"],
            {name: tuple(files) for name, files in header["inputs"].items()},
            {name: tuple((file, rows) for file, rows in files) for name, files in header["outputs"].items()},
            tuple(header["left"]),
            header["order"],
            header["letters"],
            Totals(**header["totals"]),
            {name: tuple(files) for name, files in header.get("unread", {}).items()},
            header["run"],
        )

    def fields(self) -> dict[str, Any]:
        """As JSON."""
        totals = self.totals
        return {
            "epoch": self.epoch,
            "inputs": dict(self.inputs),
            "outputs": dict(self.outputs),
            "left": self.states,
            "order": self.order,
            "letters": self.letters,
            "totals": {
                "read": dict(totals.read), "rows": dict(totals.rows), "refused": dict(totals.refused),
                "skipped": dict(totals.skipped), "trap": totals.trap, "unread": dict(totals.unread),
            },
            "unread": dict(self.unread),
        }  # fmt: skip


def epochs(folder: str | PathLike[str]) -> tuple[Epoch, ...]:
    """The epochs of the run whose state is in a folder, in order. Raises: Rejected("run-checkpoint-damaged")."""
    found: list[Epoch] = []
    for path in stored(Path(fspath(folder))):
        try:
            header, _ = read_state(path)
            found.append(Epoch.of(header))
        except (Damaged, OSError, KeyError, TypeError) as error:
            message = f"`{path}` is no manifest of an epoch: {error}"
            raise Rejected([Diagnostic("run-checkpoint-damaged", message)]) from error
    if [each.epoch for each in found] != list(range(-1, len(found) - 1)):
        message = f"a manifest of an epoch is missing in `{folder}`"
        raise Rejected([Diagnostic("run-checkpoint-damaged", message)])
    return tuple(found[1:])


def added(
    totals: Totals,
    read: Mapping[str, int],
    rows: Mapping[str, int],
    refused: Mapping[str, tuple[Mapping[str, int], list[Any]]],
    skipped: Mapping[str, int],
    trap: list[Any] | None,
    unread: Mapping[str, tuple[int, list[Any]]],
) -> Totals:
    """The totals with those of one epoch more."""
    both = dict(totals.refused)
    for name, (counts, first) in refused.items():
        before, earlier = both.get(name, [{}, first])
        both[name] = [_sum(before, counts), earlier]
    files = dict(totals.unread)
    for name, (count, first) in unread.items():
        number, earlier = files.get(name, [0, first])
        files[name] = [number + count, earlier]
    return evolve(
        totals,
        read=_sum(totals.read, read),
        rows=_sum(totals.rows, rows),
        refused=both,
        skipped=_sum(totals.skipped, skipped),
        trap=totals.trap or trap,
        unread=files,
    )


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}
