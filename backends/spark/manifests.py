"""The epochs of a run in its folder: of each one file, created atomically, that names what counts of all that was written.

| in the folder | what |
|---|---|
| `000000000007.checkpoint` | the manifest of epoch 5 (that of -1 is the first): files of inputs and outputs, the state, totals |
| `states/` | the states that epochs leave, by channel of keys, and how far they have read; the last ones stay |
| `spark/` | what Spark keeps: which files each epoch has |
| `lock` | held by the driver |

An epoch has been if its manifest is there. Nothing else decides: neither what tasks have written, nor what Spark has noted.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, ClassVar, Final
from uuid import uuid4

from river.checkpoint import SUFFIX, Keeper, Snapshot, read_state, stored
from river.classes import define, evolve, field
from river.diagnostics import Diagnostic, Rejected
from river.io.errors import unwritable
from river.io.packed import Damaged
from river.manifest import Epoch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

STATES: Final = "states"
SPARK: Final = "spark"

STAY: Final = 2
"""States that stay: of the last epoch, and of the one before, to which one may come back by hand."""

AGAIN: Final = "put the files back, or begin anew with `--restart`"


@define(eq=False)
class Manifests(Keeper):
    """The manifests of one run. `places`: the folders into which its tasks write; `run`: what their files are called by.

    `inner`: the places whose files are in folders by columns. `groups`: into how many groups of keys the state is divided, which
    is decided when the run begins.
    """

    kept: ClassVar[int | None] = None
    strict: ClassVar[bool] = True

    places: Mapping[str, Path] = field(factory=dict[str, Path], kw_only=True)
    inner: Collection[Path] = field(default=(), kw_only=True)
    groups: int = field(default=1, kw_only=True)
    run: str = field(default="", init=False)
    last: Epoch = field(default=Epoch(-1), init=False)

    @property
    def states(self) -> Path:
        """Where states are."""
        return self.folder / STATES

    def open(self) -> None:
        """See `Keeper`. What tasks wrote that does not count is removed."""
        super().open()
        try:
            if self.header:
                self.run, self.last = self.header["run"], Epoch.of(self.header)
                self.groups = self.header["groups"]
            else:
                self._begin()
            if not self.complete:
                self._sweep()
        except OSError as error:
            self.close()
            raise Rejected([unwritable(str(error.filename or self.folder), error)]) from error
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        """Nothing has been. Raises: Rejected("run-checkpoint-damaged") where there was something."""
        if not self.settings.restart and (self.folder / SPARK).exists():
            message = f"no manifest is left in `{self.folder}`, and Spark has notes of epochs there"
            raise Rejected([Diagnostic("run-checkpoint-damaged", message, help=AGAIN)])
        for folder in (self.states, self.folder / SPARK):
            if folder.exists():
                rmtree(folder)
        self.states.mkdir()
        self.run = uuid4().hex[:12]
        self.commit(self.last)

    def _find(self) -> None:
        if not self.settings.restart:
            try:
                super()._find()
            except Rejected:
                if not self._nothing_has_been():
                    raise
                self.settings = evolve(self.settings, restart=True)
        if self.settings.restart:
            for path in stored(self.folder)[:1]:
                with suppress(Damaged, OSError, KeyError):  # then nobody knows which files it wrote
                    self._remove(str(read_state(path)[0]["run"]), _all)
            super()._find()

    def _nothing_has_been(self) -> bool:
        """Whether no epoch of the run that is there has been: so it may be another one now.

        Its first epoch ended with an error, and what that said to change may be part of the run's identity.
        """
        paths = stored(self.folder)
        if any((self.folder / SPARK / "commits").glob("[0-9]*")):
            return False  # its manifest is lost
        try:
            return len(paths) == 1 and Epoch.of(read_state(paths[0])[0]).epoch < 0
        except (Damaged, OSError):
            return False

    def commit(self, manifest: Epoch, *, complete: bool = False) -> None:
        """The epoch has been. Raises: Rejected("run-checkpoint-write")."""
        self.save(Snapshot(), run=self.run, groups=self.groups, complete=complete, **manifest.fields())
        self.last = manifest

    def of(self, epoch: int) -> Epoch:
        """The manifest of an epoch before the last. Raises: Rejected("run-checkpoint-damaged")."""
        if epoch == self.last.epoch:
            return self.last
        path = self.folder / f"{epoch + 2:012}{SUFFIX}"
        try:
            return Epoch.of(read_state(path)[0])
        except (Damaged, OSError) as error:
            message = f"the manifest of epoch {epoch} cannot be read: `{path}`"
            raise Rejected([Diagnostic("run-checkpoint-damaged", message, help=AGAIN)]) from error

    # -- what does not count

    def prune(self) -> None:
        """Removes the states of epochs long past."""
        with suppress(OSError):
            for path in self.states.iterdir():
                number = _epoch_of(path.name, self.run)
                if number is not None and number <= self.last.epoch - STAY:
                    path.unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Removes the files of attempts that do not count."""
        known: dict[int, set[str]] = {}

        def lost(name: str, epoch: int, alone: bool) -> bool:
            if epoch > self.last.epoch:
                return True
            if alone and epoch < self.last.epoch:  # no other attempt has left a file
                return False
            if epoch not in known:
                known[epoch] = set(_names(self.of(epoch)))
            return name not in known[epoch]

        self._remove(self.run, lost)

    def _remove(self, run: str, lost: Callable[[str, int, bool], bool]) -> None:
        """Removes files of a run that are `lost`, by name, epoch, and whether no other of the epoch is beside it."""
        for folder in {*self.places.values(), self.states}:
            if not folder.is_dir():
                continue
            paths = folder.rglob("*") if folder in self.inner else folder.iterdir()
            found = [(p, n) for p in paths if (n := _epoch_of(p.name, run)) is not None]
            many: dict[int, int] = {}
            for _, epoch in found:
                many[epoch] = many.get(epoch, 0) + 1
            for path, epoch in found:
                if lost(path.name, epoch, many[epoch] == 1):
                    path.unlink(missing_ok=True)


def _names(manifest: Epoch) -> Iterable[str]:
    for files in manifest.outputs.values():
        yield from (Path(file).name for file, _ in files)
    yield from manifest.states
    yield from (each for each in (manifest.order, manifest.letters) if each is not None)


def _all(_name: str, _epoch: int, _alone: bool) -> bool:
    return True


def _epoch_of(name: str, run: str) -> int | None:
    """The epoch of which a file is, by its name; None if it is no file of the run."""
    found = re.fullmatch(rf"{run}-(\d{{9,}})-\d+-[0-9a-f]{{16}}\.\w+", name)
    return None if found is None else int(found[1])
