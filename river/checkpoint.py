"""The state of a run in a folder, from which the same run goes on after it was ended by force.

A checkpoint is one file: what the backend keeps (`Snapshot`), how far the outputs were written, and of which program and
which data this is. It is complete or not there: it is written beside its place, brought to the disk, moved over, and covered
by a checksum. The one before it stays until then, and one more.

Layout: magic, format, sizes of header and data, header (JSON), data (values, see `river.io.packed`), SHA-256 of all that.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from river.classes import define, field, frozen
from river.diagnostics import Diagnostic, Rejected, Severity
from river.io.atomic import settle_folder
from river.io.packed import Damaged, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from river.lang.types import Type
    from river.part import Part

FORMAT: Final = 2
MAGIC: Final = b"RIVERCKP"
SUFFIX: Final = ".checkpoint"
KEPT: Final = 2
"""How many checkpoints stay."""

_DIGITS: Final = 12  # of the number of a checkpoint in its name

_HEAD: Final = struct.Struct("<8sIQQ")
_DIGEST: Final = 32
_SAMPLE: Final = 1 << 16


LOCK: Final = "lock"


def is_kept(name: str) -> bool:
    """Whether a file in the folder of a checkpoint is one of ours, by its name."""
    return name == LOCK or name.endswith((SUFFIX, f"{SUFFIX}.part"))


def stored(folder: Path) -> list[Path]:
    """The checkpoints in a folder, in order. Other programs' files may have that suffix, too: they are left alone."""
    return sorted(folder.glob("[0-9]" * _DIGITS + SUFFIX))


@frozen
class Checkpoint:
    """That the state of a run is kept in `folder`, `every` so many seconds. `restart`: what is there is dropped first."""

    folder: str | os.PathLike[str]
    every: float = 10.0
    restart: bool = False


@define
class Snapshot:
    """What a backend keeps: `fields`, which are JSON, and values of types in `data`, to which fields refer."""

    fields: dict[str, Any] = field(factory=dict[str, Any])
    data: bytearray = field(factory=bytearray)

    def put(self, type_: Type, values: Sequence[Any]) -> list[int]:
        """Keeps values; what refers to them."""
        found = pack(type_, values)
        self.data += found
        return [len(self.data) - len(found), len(found), len(values)]

    def get(self, type_: Type, reference: Sequence[int]) -> list[Any]:
        """The values that were kept. Raises: Damaged."""
        at, size, count = reference
        return unpack(type_, count, memoryview(self.data)[at : at + size])


@define(eq=False)
class Keeper:
    """The checkpoints of one run. `kept`: how many of them stay, None: all; `strict`: none may be damaged.

    `found`: what to go on from; `header`: what stands beside it. `identity`: what must not change. `describe` brings the
    outputs to the disk and says how far they are. `read`: items that were sent so far. `part`: the run reads one part of its
    inputs; if more follows, it keeps its state when all that can be done is done, and delivers no views.
    """

    kept: ClassVar[int | None] = KEPT
    strict: ClassVar[bool] = False

    settings: Checkpoint
    identity: Mapping[str, Any]
    describe: Callable[[], Mapping[str, Any]] = field(default=dict)
    part: Part | None = field(default=None, kw_only=True)
    found: Snapshot | None = field(default=None, init=False)
    header: Mapping[str, Any] = field(factory=dict[str, Any], init=False)
    remarks: list[Diagnostic] = field(factory=list[Diagnostic], init=False)
    read: int = field(default=0, init=False)
    _number: int = field(default=0, init=False)
    _next: float = field(default=0.0, init=False)
    _closed: bool = field(default=False, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _held: int | None = field(default=None, init=False)

    @property
    def folder(self) -> Path:
        """Where they are."""
        return Path(self.settings.folder)

    @property
    def goes_on(self) -> bool:
        """Whether more of the inputs follows in other runs."""
        return self.part is not None and bool(self.part.more)

    @property
    def complete(self) -> bool:
        """Whether the run ended well, before."""
        return bool(self.header.get("complete"))

    def open(self) -> None:
        """Finds what to go on from.

        Raises: Rejected where another run uses the folder, what is there cannot be read, or is of another run.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._held = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise Rejected([_unusable(self.folder, error)]) from error
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._held)
            self._held = None
            message = f"another run keeps its state in `{self.folder}`"
            raise Rejected(
                [Diagnostic("run-checkpoint-busy", message, help="wait for its end, or name another folder")]
            ) from None
        try:
            self._find()
        except BaseException:
            self.close()
            raise
        self._next = time.monotonic() + self.settings.every

    def _find(self) -> None:
        for part in self.folder.glob(f".{'[0-9a-f]' * 8}{SUFFIX}.part"):
            part.unlink(missing_ok=True)
        paths = stored(self.folder)[::-1]
        if self.settings.restart:
            for path in paths:
                path.unlink(missing_ok=True)
            return
        damage: list[str] = []
        for path in paths:
            try:
                header, data = read_state(path)
            except (Damaged, OSError) as error:
                damage.append(f"`{path.name}`: {error}")
                continue
            self._same(header)
            self.header = header
            self.found = Snapshot(header.get("state", {}), bytearray(data))
            self._number = header["number"]
            break
        if not damage:
            return
        if self.strict or self.found is None:
            what = "a" if self.found is not None else "no"
            cannot = "cannot" if self.found is not None else "can"
            message = f"{what} checkpoint in `{self.folder}` {cannot} be read: {'; '.join(damage)}"
            help_ = "`--restart` begins anew"
            raise Rejected([Diagnostic("run-checkpoint-damaged", message, help=help_)])
        message = f"a checkpoint is damaged, the one before it was used: {'; '.join(damage)}"
        self.remarks.append(Diagnostic("run-checkpoint-damaged", message, severity=Severity.WARNING))

    def _same(self, header: Mapping[str, Any]) -> None:
        """Raises: Rejected("run-checkpoint-changed") where the checkpoint is not of this run."""
        before = header["identity"]
        for what, now in self.identity.items():
            if before.get(what) != json.loads(json.dumps(now)):
                message = f"the state in `{self.folder}` is of another run: {what} changed since"
                help_ = "use what the first run used, or begin anew with `--restart`"
                raise Rejected([Diagnostic("run-checkpoint-changed", message, help=help_)])

    @property
    def due(self) -> bool:
        """Whether it is time for the next one."""
        return time.monotonic() >= self._next

    def save(self, state: Snapshot, **more: Any) -> None:
        """Keeps the state, when nothing moves. Raises: Rejected("run-checkpoint-write"), and what `describe` raises."""
        with self._lock:
            if self._closed:
                return
            self._number += 1
            header = {
                "number": self._number,
                "identity": dict(self.identity),
                "state": state.fields,
                **self.describe(),
                **more,
            }
            try:
                self._write(header, state.data)
            except OSError as error:
                raise Rejected([_unusable(self.folder, error)]) from error
            self._next = time.monotonic() + self.settings.every

    def _write(self, header: Mapping[str, Any], data: bytes | bytearray) -> None:
        final = self.folder / f"{self._number:0{_DIGITS}}{SUFFIX}"
        part = self.folder / f".{os.urandom(4).hex()}{SUFFIX}.part"
        try:
            write_state(part, header, data)
            part.replace(final)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        settle_folder(self.folder)
        if self.kept is None:
            return
        for path in reversed(stored(self.folder)):
            if not self._number - self.kept < int(path.stem) <= self._number:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Keeps nothing any more; others may use the folder."""
        with self._lock:
            self._closed = True
            held, self._held = self._held, None
        if held is not None:
            with suppress(OSError):
                os.close(held)


def write_state(path: Path, header: Mapping[str, Any], data: bytes | bytearray) -> None:
    """Writes a new file of a header and data, and brings it to the disk. Raises: OSError, also where there is one."""
    from hashlib import sha256  # the fastest: the data may be long

    text = json.dumps(header).encode()
    body = _HEAD.pack(MAGIC, FORMAT, len(text), len(data)) + text + data
    with path.open("xb") as file:
        file.write(body)
        file.write(sha256(body).digest())
        file.flush()
        os.fsync(file.fileno())


def read_state(path: Path) -> tuple[dict[str, Any], bytes]:
    """Header and data of such a file. Raises: Damaged, OSError."""
    from hashlib import sha256

    body = path.read_bytes()
    if len(body) < _HEAD.size + _DIGEST:
        raise Damaged("it is too short")
    magic, format_, text, data = _HEAD.unpack_from(body)
    if magic != MAGIC or format_ != FORMAT:
        raise Damaged("it is no checkpoint of this version")
    if len(body) != _HEAD.size + text + data + _DIGEST:
        raise Damaged("its size is wrong")
    if sha256(body[:-_DIGEST]).digest() != body[-_DIGEST:]:
        raise Damaged("its checksum is wrong")
    header = json.loads(body[_HEAD.size : _HEAD.size + text])
    return cast("dict[str, Any]", header), body[_HEAD.size + text : -_DIGEST]


def _unusable(folder: Path, error: OSError) -> Diagnostic:
    reason = (error.strerror or str(error)).lower()
    return Diagnostic("run-checkpoint-write", f"cannot keep state in `{folder}`: {reason}")


def fingerprint(path: str | os.PathLike[str], *, size: int | None = None) -> list[Any]:
    """What tells whether a file is still the same: its size, and a hash of its beginning and its end.

    `size`: of the first so many bytes only, for a file that grows. Raises: OSError.
    """
    from hashlib import sha256

    with Path(path).open("rb") as file:
        whole = os.fstat(file.fileno()).st_size
        length = whole if size is None else min(size, whole)
        digest = sha256(file.read(min(_SAMPLE, length)))
        if size is None:
            file.seek(max(0, length - _SAMPLE))
            digest.update(file.read(_SAMPLE))
    return [length, digest.hexdigest()]
