"""Runs over folders that grow, exactly once: Spark says which files came, and each such epoch is one task from state to state.

Spark's structured streaming calls `foreachBatch` with the files of an epoch, the same ones again after a crash. A task of Spark
runs the program on them from the state that the epoch before left (`epoch`); then the manifest of the epoch is created
(`manifests`), and with that it has been. Behind the last epoch there is one without files, at which all inputs end.

Paper: River §2.4, §4.6.
"""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext, suppress
from functools import partial
from os import PathLike, environ, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from backends.spark import epoch as tasks
from backends.spark import parts as small
from backends.spark import task
from backends.spark.channels import EACH, GROUPS, read_groups, united
from backends.spark.door import streamed
from backends.spark.epoch import drop, of_shares
from backends.spark.errands import EpochErrand, EpochTelling, heard, together, told
from backends.spark.jobs import EXCHANGE, TOLD, tellings, tellings_of_channels, told_by
from backends.spark.keys import Partitioning
from backends.spark.lower import by_channel
from backends.spark.manifests import AGAIN, SPARK, Manifests
from backends.spark.parts import GivenFile, portions
from backends.spark.run import POLL, first_said, watched
from backends.spark.session import REMOTE, see_once, session
from backends.spark.ways import InParts, RowByRow, apart
from river.backend import Summary
from river.checkpoint import stored
from river.classes import define, evolve, field, frozen
from river.diagnostics import Diagnostic, Note, Rejected, Severity
from river.driver import Results, dividing, stamps, wholes
from river.io.appended import check_added
from river.io.errors import file_unread, files_unread, missing_file, rows_lost, unreadable, unwritable
from river.io.folders import Partitions, format_in, is_folder
from river.io.live import Follow, Live
from river.io.packed import Damaged
from river.io.partitions import PartitionedSink
from river.io.several import hidden
from river.io.sources import format_of
from river.manifest import Epoch, added
from river.metrics import Durations, EpochFigures, Metrics, OperatorFigures, OutputFigures, Recorder
from river.platform import here
from river.restart import identity_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from backends.spark import Spark
    from backends.spark.plan import Plan
    from backends.spark.session import Session
    from river.driver import Compiled, Job
    from river.lang.types import Type

MOST: Final = 1000
"""Files of an input that come in one epoch at most."""

SMALL: Final = 1 << 24
"""Bytes of files and state up to which an epoch is one task, though its state is divided by key: an exchange takes longer."""

PATIENCE: Final = 60
"""Seconds in which Spark has to end a stream."""

_LISTED: Final = "path STRING, modificationTime TIMESTAMP, length LONG, content BINARY"
_FOR_EVER: Final = "36500d"  # else Spark leaves files out, silently, that are older than others by a week
_UNREAD: Final = ("MALFORMED_LOG_FILE", "MALFORMED_CHECKPOINT", "StreamMetadata")
_PATTERN: Final = "*?[]{}\\"  # which Spark reads as one


@frozen(eq=False)
class _Places:
    """What is read and written.

    `followed`: folders; `streams`: DataFrames without end. With the first epoch come `still`, files, and `tables`, DataFrames.
    """

    followed: Mapping[str, Path]
    streams: Mapping[str, Any]
    tables: Mapping[str, Any]
    still: Mapping[str, GivenFile]
    outputs: Mapping[str, tuple[Path, str, tuple[str, ...]]]
    letters: Path | None


def follow(backend: Spark, compiled: Compiled, job: Job) -> Results:
    """Runs until the run is told to end, from where it was. Raises: Rejected; KeyboardInterrupt."""
    began = time.perf_counter()
    identity = identity_of(compiled, job)
    places = _places(compiled, job)
    plan = backend.plan(compiled.graph, here(), job.options)
    for name, folder in places.followed.items():
        identity[f"the folder of input `{name}`"] = str(folder)
    for name, frame in {**places.streams, **places.tables}.items():
        order = [*job.order_by.get(name, ())]
        identity[f"the columns of input `{name}`"] = [frame.schema.simpleString(), order]
    for name, file in places.still.items():
        identity[f"the data of input `{name}`"] = file.cells()
    for name, (folder, *how) in places.outputs.items():
        identity[f"the place of output `{name}`"] = [str(folder), *how]
    assert job.checkpoint is not None  # noqa: S101 - by `_places`
    if not stored(Path(job.checkpoint.folder)):  # else there may be files of the run, which is not over
        _check_added(compiled, places)
    written = {name: folder for name, (folder, *_) in places.outputs.items()}
    inner = [folder for folder, _, by in places.outputs.values() if by]
    if places.letters is not None:
        written[""] = places.letters
    division = apart(plan, skips=job.on_error.action != "stop")
    keys: Mapping[str, tuple[str, ...]] = division.columns if isinstance(division, Partitioning) else {}
    shares = "tables" if isinstance(division, InParts) else "rows" if isinstance(division, RowByRow) else ""
    groups = max(GROUPS, EACH * plan.workers) if keys else 1
    manifests = Manifests(job.checkpoint, identity, places=written, inner=inner, groups=groups)
    manifests.open()
    try:
        if manifests.last.epoch < 0:  # files of the run itself, which may be incomplete, are gone
            _check_added(compiled, places)
        run = _Run(compiled, job, plan, places, keys, shares, manifests)
        if manifests.complete:
            return run.results(began, again=True)
        run.through()
        return run.results(began)
    finally:
        manifests.close()


def _check_added(compiled: Compiled, places: _Places) -> None:
    """Sees that rows of outputs may come beside the files that are there. Raises: Rejected."""
    for name, (folder, kind, by) in places.outputs.items():
        check_added(name, str(folder), kind, compiled.outputs[name], by, instead="name another folder")


# ------------------------------------------------------------------------------------------------------- what is asked


def _places(compiled: Compiled, job: Job) -> _Places:
    """What a run is over. Raises: Rejected for what cannot be done."""
    graph = compiled.graph
    if job.checkpoint is None:
        message = "the backend `spark` follows inputs in epochs, whose state has to be kept"
        raise _refused(message, "name a folder: `--checkpoint FOLDER`")
    if environ.get(REMOTE):
        message = f"epochs need a driver of Spark in this process, and `{REMOTE}` names one elsewhere"
        raise _refused(message, "run without it")
    if job.mode is not None:
        raise _refused(
            f"`--mode {job.mode}`: each epoch adds files to the folders of outputs", "leave it out"
        )
    if job.iterations is not None:
        raise _refused("`--iterations` says how long a run is that has no end", "leave it out")
    followed: dict[str, Path] = {}
    streams: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    still: dict[str, GivenFile] = {}
    for name in graph.inputs:
        spec, stated = job.inputs[name], job.formats.get(name)
        if name in stamps(graph.program):
            message = f"the input `{name}` has time stamps that are computed, which is not done in epochs"
            raise _refused(message, "use `multicore`")
        if name in wholes(graph.program) and (
            isinstance(spec, Follow) or getattr(spec, "isStreaming", False)
        ):
            message = f"all rows of input `{name}` are to be there at the beginning, and it has no end"
            raise _refused(message, "give it a file, or follow other inputs only: `--follow-input NAME`")
        match spec:
            case Follow():
                followed[name] = _folder(name, spec)
            case str() | PathLike():
                still[name] = _given(name, Path(fspath(cast("str", spec))), stated)
            case _ if hasattr(spec, "mapInArrow"):
                (streams if _stream(name, spec) else tables)[name] = spec
            case _:
                message = f"input `{name}` is no file or folder, which executors could read"
                raise _refused(message, "keep what comes in files of a folder, and follow that")
    if tables and not streams:
        raise _refused(
            f"input `{min(tables)}` is a DataFrame that has an end", "use `on_spark`, or `spark.readStream`"
        )
    if streams and followed:
        message = "some inputs are DataFrames and others follow folders, and an epoch comes from one stream"
        raise _refused(message, "make DataFrames of all: `spark.readStream`")
    if not followed and not streams:
        message = "the backend `spark` keeps the state of runs that follow folders, and none is followed"
        raise _refused(message, "say `--follow`, or leave `--checkpoint` out")
    outputs = {name: _output(name, type_, job) for name, type_ in compiled.outputs.items()}
    letters = None
    if job.on_error.path is not None:
        letters = _made("dead letters", job.on_error.path)
    taken: dict[Path, str] = {folder: f"input `{name}`" for name, folder in followed.items()}
    for name, folder in [
        *((f"output `{name}`", folder) for name, (folder, *_) in outputs.items()),
        *([] if letters is None else [("the dead letters", letters)]),
    ]:
        if folder in taken:
            message = f"{name} and {taken[folder]} go to the same folder `{folder}`"
            raise Rejected([Diagnostic("data-overwrite", message, help="name a folder for each")])
        taken[folder] = name
    return _Places(followed, streams, tables, still, outputs, letters)


def _refused(message: str, help_: str | None = None) -> Rejected:
    return Rejected([Diagnostic("run-checkpoint", message, help=help_)])


def _stream(name: str, frame: Any) -> bool:
    """Whether a DataFrame, of a Spark of this process, is one without end. Raises: Rejected."""
    if not hasattr(frame, "_jdf"):
        message = f"input `{name}` is a DataFrame of Spark Connect, and epochs need a driver of Spark in this process"
        raise _refused(message)
    return bool(frame.isStreaming)


def _folder(name: str, spec: Follow) -> Path:
    path = Path(spec.path)
    if "://" in spec.path:
        message = f"input `{name}`: executors read paths of files that they share, and `{spec.path}` is none"
        raise _refused(message, "mount it, or copy it to a folder")
    if not path.exists():
        raise Rejected([missing_file(spec.path)])
    if not path.is_dir():
        message = (
            f"input `{name}`: `{spec.path}` is a file, and the backend `spark` follows folders that get files"
        )
        raise _refused(message, "use `multicore`, or a folder")
    if wrong := [sign for sign in _PATTERN if sign in str(path.resolve())]:
        message = f"input `{name}`: Spark takes `{path.resolve()}` for a pattern, because of `{wrong[0]}`"
        raise _refused(message, "rename the folder")
    return path.resolve()


def _given(name: str, path: Path, stated: str | None) -> GivenFile:
    """A file as it is now. Raises: Rejected."""
    kind, packed = format_of(str(path), stated, name)
    try:
        state = path.stat()
    except FileNotFoundError:
        raise Rejected([missing_file(str(path))]) from None
    except OSError as error:
        raise Rejected([unreadable(str(path), error)]) from error
    if not path.is_file():
        raise _refused(f"input `{name}`: `{path}` is no regular file", "`--follow` follows a folder")
    return GivenFile(str(path.absolute()), kind, packed, state.st_size, state.st_mtime_ns)


def _output(name: str, type_: Type, job: Job) -> tuple[Path, str, tuple[str, ...]]:
    """Folder and format of an output, and the columns by which it is divided. Raises: Rejected."""
    target = job.outputs.get(name)
    if not is_folder(target):
        message = f"output `{name}` is not a folder, and each epoch writes files of its own"
        raise _refused(message, f"name one: `--out {name}=FOLDER/`")
    path = fspath(cast("str", target))
    if "://" in path:
        message = f"output `{name}`: executors write to paths that they share, and `{path}` is none"
        raise _refused(message, "mount it, or copy the files of the folder")
    kind, by = format_in(path, job.formats.get(name), name), dividing(job, name, type_)
    if by:
        PartitionedSink(Partitions(path, kind, by), type_, name)  # it says what cannot be divided
    return _made(f"output `{name}`", path), kind, by


def _made(what: str, path: str | PathLike[str]) -> Path:
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise _refused(f"{what}: `{path}` is a file, and each epoch writes files of its own") from None
    except OSError as error:
        raise Rejected([unwritable(str(path), error)]) from error
    return folder.resolve()


# --------------------------------------------------------------------------------------------------------------- a run


@define(eq=False)
class _Run:
    """A run between its first and last epoch. `keys`: the columns by which inputs are divided, if any; `shares`: see errands.

    `lock` is held while an epoch is run or the end is decided. `alone`: one task reads an epoch, since in one that several have
    read there was something wrong, which may be in all of them.
    """

    compiled: Compiled
    job: Job
    plan: Plan
    places: _Places
    keys: Mapping[str, tuple[str, ...]]
    shares: Literal["", "rows", "tables"]
    manifests: Manifests
    live: Live = field(init=False)
    figures: _Figures = field(init=False)
    heard: float = field(factory=time.monotonic, init=False)
    remarks: tuple[Diagnostic, ...] = field(default=(), init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _failure: BaseException | None = field(default=None, init=False)
    _ended: bool = field(default=False, init=False)
    _halted: bool = field(default=False, init=False)
    _alone: bool = field(default=False, init=False)
    _order: list[Any] = field(factory=list[Any], init=False)
    _columns: Mapping[str, tuple[str, ...]] = field(factory=dict[str, "tuple[str, ...]"], init=False)
    _tables: Any = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.live = self.job.live or Live()
        self.figures = _Figures(self.compiled)

    def through(self) -> None:
        """Runs epochs until the run is to end, and the last one. Raises: Rejected; KeyboardInterrupt."""
        recorder = None if self.job.metrics is None else Recorder(self.job.metrics)
        with self._session() as spark:
            if recorder is not None:
                recorder.open()
            try:
                self._epochs(spark, recorder)
                last = self.manifests.last.epoch + 1
                self._epoch(spark, last, {}, more=())
                if recorder is not None:
                    recorder.take(self._metrics(), end=True)
            finally:
                if recorder is not None:
                    recorder.close()

    def _session(self) -> AbstractContextManager[Session]:
        """That of the streams, or one of our own."""
        for frame in self.places.streams.values():
            see_once(frame.sparkSession, given=True)
            return nullcontext(frame.sparkSession)
        return session(self.plan.workers, self.job.options.settings)

    def _epochs(self, spark: Session, recorder: Recorder | None) -> None:
        assert self.job.checkpoint is not None  # noqa: S101 - by `_places`
        every = self._every(self.job.checkpoint.every)
        if self.places.streams:
            graph, places = self.compiled.graph, self.places
            given = {
                n: f for n in graph.inputs if (f := places.streams.get(n, places.tables.get(n))) is not None
            }
            frame, self._tables, self._order, self._columns = streamed(graph, given, self.job.order_by)
        else:
            frame = _listing(spark, self.places.followed)
            spark.conf.set("spark.sql.streaming.stopTimeout", f"{PATIENCE}s")
        stream = (
            frame.writeStream.foreachBatch(self._called)
            .option("checkpointLocation", str(self.manifests.folder.absolute() / SPARK))
            .trigger(processingTime=f"{max(1, round(every * 1000))} milliseconds")
        )
        self._see_to_notes()
        try:
            query = stream.start()
        except Exception as error:  # noqa: BLE001 - of Spark: it is told
            raise self._stream_failed(error) from None
        try:
            self._watch(query, recorder)
        except BaseException:
            self._halted = True
            raise
        finally:
            with suppress(Exception):  # it has failed, or does not end in time: what was is told, or done
                query.stop()

    def _see_to_notes(self) -> None:
        """Without its notes Spark would begin with epoch 0 again, with other rows. Raises: Rejected("run-checkpoint-damaged")."""
        notes, last = self.manifests.folder / SPARK, self.manifests.last.epoch
        if last >= 0 and not (notes / "offsets" / str(last)).exists():
            message = f"the manifests in `{self.manifests.folder}` have epoch {last}, and Spark has no notes of it in `{notes}`"
            raise Rejected([Diagnostic("run-checkpoint-damaged", message, help=AGAIN)])

    def _every(self, stated: float) -> float:
        """How often it is looked what came. Units: seconds."""
        return min(each for each in (stated, self.live.idle_exit, self.live.stop_after) if each is not None)

    def _watch(self, query: Any, recorder: Recorder | None) -> None:
        """Returns when the run is to end, with no epoch under way. Raises: Rejected; KeyboardInterrupt."""
        began, options = time.monotonic(), self.job.options
        while True:
            try:
                ended = query.awaitTermination(POLL)
                idle = not ended and self._idle(query, began)
            except Exception as error:  # noqa: BLE001 - of Spark: it is told below
                raise (self._failure or self._stream_failed(error)) from None
            if self._failure is not None:
                raise self._failure
            if ended:
                raise self._stream_failed(None)
            now = time.monotonic()
            if options.stopping():
                raise KeyboardInterrupt
            if recorder is not None:
                recorder.take(self._metrics())
            late = self.live.stop_after is not None and now >= began + self.live.stop_after
            if (idle or late or self.live.stopped) and self._lock.acquire(blocking=False):
                self._ended = True
                self._lock.release()
                return

    def _stream_failed(self, error: Any) -> Rejected:
        """What is said where Spark's stream has ended by itself (`error`), or somebody has stopped it (None)."""
        if error is None:
            message = "Spark's stream was stopped by somebody else, in the middle of the run"
            help_ = (
                "the same call goes on where it was; `stop` of what `write_stream` returns ends a run well"
            )
            return Rejected([Diagnostic("spark-failed", message, help=help_)])
        notes = (Note(first_said(error)),)
        if any(sign in str(error) for sign in _UNREAD):
            message = f"Spark cannot read its notes in `{self.manifests.folder / SPARK}`"
            return Rejected([Diagnostic("run-checkpoint-damaged", message, notes=notes, help=AGAIN)])
        return Rejected([Diagnostic("spark-failed", "Spark ended the stream", notes=notes)])

    def _idle(self, query: Any, began: float) -> bool:
        """Whether nothing has come for as long as the run waits at most."""
        heard = self.heard
        if self.live.idle_exit is None or time.monotonic() < max(began, heard) + self.live.idle_exit:
            return False
        query.processAllAvailable()  # how long ago Spark looked, nobody knows: now it does
        return self.heard == heard

    def _called(self, frame: Any, number: int) -> None:
        """What Spark calls for an epoch: `frame` has its files."""
        with self._lock:
            if self._ended or self._failure is not None:
                raise _End
            try:
                more = (*self.places.followed, *self.places.streams)
                if self.places.streams:
                    self._epoch(frame.sparkSession, number, {}, more, frame)
                else:
                    files, unread = self._files(frame)
                    self._epoch(frame.sparkSession, number, files, more, unread=unread)
            except BaseException as error:
                self._failure = error
                raise _End from error  # the way back to Java knows no others
            finally:
                self.heard = time.monotonic()

    def _files(self, frame: Any) -> tuple[dict[str, list[str]], dict[str, dict[str, str]]]:
        """The paths of the files that came of each input, in order; and of those that are not read, and why."""
        names: list[str] = list(self.places.followed)
        listed: list[tuple[int, str]] = frame.select("input", "path").collect()
        found: dict[str, list[str]] = {}
        unread: dict[str, dict[str, str]] = {}
        for number, path in sorted(listed):
            name, local = names[number], path.removeprefix("file:").removeprefix("//")
            if hidden(Path(local).name):
                continue
            if (why := self._why_unread(name, local)) is None:
                found.setdefault(name, []).append(local)
            else:
                unread.setdefault(name, {})[local] = why
        return found, unread

    def _why_unread(self, name: str, path: str) -> str | None:
        """Why a file that came is not read, None for one that is."""
        if Path(path).parent != self.places.followed[name]:
            return "it is in a folder of that folder"
        try:
            format_of(path, self._stated(name), name)
        except Rejected:
            return "its suffix tells no format"
        return None

    def _stated(self, name: str) -> str | None:
        spec = self.job.inputs[name]
        return (spec.format if isinstance(spec, Follow) else None) or self.job.formats.get(name)

    def _epoch(
        self,
        spark: Session,
        number: int,
        paths: Mapping[str, Sequence[str]],
        more: tuple[str, ...],
        rows: Any = None,
        unread: Mapping[str, Mapping[str, str]] = {},
    ) -> None:
        """Runs an epoch, unless it has been.

        `rows`: those of streams, tagged; `unread`: files that came and are not read, and why. Raises: Rejected.
        """
        last = self.manifests.last
        inputs = {name: tuple(found) for name, found in paths.items()}
        given = rows
        if number == 0:
            rows = self._with_tables(rows)
            inputs |= {name: (file.path,) for name, file in self.places.still.items()}
        if number <= last.epoch:
            if dict(self.manifests.of(number).inputs) != inputs:
                message = f"Spark says that epoch {number} has other files than its manifest in `{self.manifests.folder}`"
                raise Rejected([Diagnostic("run-checkpoint-damaged", message, help=AGAIN)])
            return
        if number != last.epoch + 1:
            message = f"Spark is at epoch {number}, and the last manifest in `{self.manifests.folder}` is of epoch {last.epoch}"
            raise Rejected([Diagnostic("run-checkpoint-damaged", message, help=AGAIN)])
        began = time.perf_counter()
        files = {
            name: tuple(_given(name, Path(p), self._stated(name)) for p in found)
            for name, found in inputs.items()
        }
        tagged = (
            ()
            if rows is None
            else tuple(
                name
                for name in self.compiled.graph.inputs
                if name in self.places.streams or name in self.places.tables
            )
        )
        errand = self._errand(number, files, more, tagged, given)
        telling = self._told(spark, errand, rows)
        if telling.again and not telling.refused:
            self._alone = True
            channels = 1 if self.shares else errand.channels
            telling = self._told(spark, evolve(errand, portion=0, channels=channels, orders={}), rows)
        if telling.refused:
            raise Rejected(telling.refused)
        self.remarks = telling.remarks
        totals = added(
            last.totals,
            telling.read,
            {name: sum(rows for _, rows in found) for name, found in telling.files.items()},
            {name: (counts, told(first)) for name, (counts, first) in telling.refusals.items()},
            telling.skipped,
            None if telling.trap is None else told(telling.trap),
            {
                name: (len(left), told(file_unread(name, *next(iter(left.items())))))
                for name, left in unread.items()
            },
        )
        outputs = {name: tuple(found) for name, found in telling.files.items()}
        states = tuple(file for file, _ in telling.states)
        left = {name: tuple(whys) for name, whys in unread.items()}
        manifest = Epoch(number, inputs, outputs, states, telling.order, telling.letters, totals, left)
        self.manifests.commit(manifest, complete=not more)
        for name, whys in unread.items():
            for path, why in whys.items():
                self.live.leave(name, path, why)
        self.manifests.prune()
        self.figures.add(telling, sum(map(len, inputs.values())), time.perf_counter() - began)
        if self.job.watch is not None:
            self.job.watch(sum(totals.read.values()))

    def _errand(
        self,
        number: int,
        files: Mapping[str, tuple[GivenFile, ...]],
        more: tuple[str, ...],
        streamed: tuple[str, ...],
        rows: Any,
    ) -> EpochErrand:
        options, job, last = self.plan.options, self.job, self.manifests.last
        states = self.manifests.states.absolute()
        orders: Mapping[str, tuple[str, ...]] = {}
        if streamed:
            channels, portion, orders = self._of_streams(rows)
        else:
            channels, portion = self._channels(files), self._portion(files)
            if self.shares and not portion:
                channels = 1
        return EpochErrand(
            task.portable(self.plan),
            self.manifests.run,
            number,
            files,
            more,
            None if last.order is None else str(states / last.order),
            tuple(str(states / file) for file in last.states),
            {name: (str(folder), kind, by) for name, (folder, kind, by) in self.places.outputs.items()},
            str(states),
            None if self.places.letters is None else str(self.places.letters),
            job.on_error.action,
            options.until,
            job.lateness,
            tuple(options.externs),
            options.native,
            options.batch,
            streamed,
            self.keys,
            self.manifests.groups,
            channels,
            portion if channels > 1 else 0,
            self.shares,
            orders,
        )

    @property
    def _most(self) -> int:
        """How many tasks there are at most that have groups of keys, or shares."""
        return self.plan.workers if self.shares else min(self.plan.workers, self.manifests.groups)

    def _of_streams(self, rows: Any) -> tuple[int, int, Mapping[str, tuple[str, ...]]]:
        """How many tasks have groups of keys, or shares, of an epoch of streams, a portion of files, and what orders rows.

        Nobody knows how many rows there are, but in how many partitions they are.
        """
        several = 0
        if (self.keys or self.shares) and self._columns and not self._one_reads:
            several = _partitions(rows.coalesce(self._most) if self.shares else rows)
        if not self.shares:
            return self._most, 0, self._columns if several and self._most > 1 else {}
        return (several, 0, self._columns) if several > 1 else (1, 0, {})

    @property
    def _one_reads(self) -> bool:
        """Whether one task reads all that comes: rows may wait for others, or there was something wrong."""
        return self._alone or self.job.lateness > 0 or self.plan.options.native == "off"

    def _channels(self, files: Mapping[str, tuple[GivenFile, ...]]) -> int:
        """How many tasks have the groups of keys, or shares, of an epoch of files."""
        most = self._most
        if most == 1:
            return 1
        states = (self.manifests.states / file for file in self.manifests.last.states)
        size = sum(file.size for found in files.values() for file in found)
        size += sum(path.stat().st_size for path in states if path.exists())
        return most if size > SMALL else 1

    def _portion(self, files: Mapping[str, tuple[GivenFile, ...]]) -> int:
        """How many bytes a task reads, where several read the files: none, if rows may wait for others or there is little."""
        if self._one_reads:
            return 0
        size = sum(file.size for found in files.values() for file in found)
        length = min(max(size // (small.EACH * self.plan.workers), small.LEAST), small.MOST)
        return length if len(portions(files, length)) > 1 else 0

    def _with_tables(self, rows: Any) -> Any:
        """The rows of an epoch, and those of DataFrames that have an end."""
        if self._tables is None:
            return rows
        return self._tables if rows is None else rows.unionAll(self._tables)

    def _told(self, spark: Session, errand: EpochErrand, rows: Any) -> EpochTelling:
        """Runs the tasks of an epoch."""
        found: list[EpochTelling] = []

        def job() -> None:
            found.extend(map(EpochTelling.read_text, self._texts(spark, errand, rows)))

        stopping = self.job.options.stopping
        options = evolve(self.job.options, stopping=lambda: self._halted or stopping())
        watched(spark, job, f"epoch {errand.number}", options)
        if not errand.shares or errand.channels == 1:
            return together(found)
        telling = of_shares(errand, found)
        if errand.shares == "tables" and len(found) != errand.channels:
            telling.again = True  # Spark has made other partitions than it said, and there are states that nobody went on from
        if telling.again or telling.refused:
            drop(errand, found)
        return telling

    def _shares(self, rows: Any, count: int) -> Any:
        """The rows of a stream in shares; where they have an order, one share comes behind the other."""
        (name,) = self.compiled.graph.inputs
        timed = self.compiled.graph.queues[name].by is not None
        if self.shares == "tables":
            found = rows.coalesce(count)
            return found.sortWithinPartitions(*self._order) if timed else found
        if timed or self.job.order_by.get(name):
            return rows.repartitionByRange(count, *self._order).sortWithinPartitions(*self._order)
        return rows.coalesce(count)

    def _texts(self, spark: Session, errand: EpochErrand, rows: Any) -> list[str]:
        """What the tasks of an epoch tell, as text."""
        alone, read, work = (
            partial(each, errand.text()) for each in (tasks.epoch, tasks.read, tasks.channel)
        )
        match rows:
            case None if errand.shares and errand.channels > 1:
                return tellings(spark, errand.channels, partial(tasks.apart, errand.text()))
            case None if errand.portion:
                count, read = (
                    len(portions(errand.files, errand.portion)),
                    partial(tasks.read_portions, errand.text()),
                )
                return tellings_of_channels(spark, count, read, errand.channels, work)
            case None if errand.channels == 1:
                return tellings(spark, 1, alone)
            case None:
                return tellings_of_channels(spark, 1, read, errand.channels, work)
            case _ if errand.orders and errand.shares:
                shared = self._shares(rows, errand.channels)
                return told_by(shared.mapInArrow(partial(tasks.apart_of_streams, errand.text()), TOLD))
            case _ if errand.channels == 1:
                return told_by(self._in_one(rows).mapInArrow(alone, TOLD))
            case _:
                if errand.orders:
                    found = rows.mapInArrow(partial(tasks.read_streams, errand.text()), EXCHANGE)
                else:
                    found = self._in_one(rows).mapInArrow(read, EXCHANGE)
                sent = by_channel(found, errand.channels)
                return told_by(sent.sortWithinPartitions("channel", "part", "place").mapInArrow(work, TOLD))

    def _in_one(self, rows: Any) -> Any:
        """The rows of streams in one partition, in order."""
        return rows.repartition(1).sortWithinPartitions(*self._order)

    # -- the end

    def results(self, began: float, *, again: bool = False) -> Results:
        """What all epochs came to. `again`: the run had ended before."""
        totals = self.manifests.last.totals
        warnings: list[Diagnostic] = []
        if again:
            message = f"the run whose state is in `{self.manifests.folder}` has ended well; nothing was done"
            help_ = "`--restart` begins anew"
            warnings.append(
                Diagnostic("run-checkpoint-complete", message, severity=Severity.WARNING, help=help_)
            )
        warnings += [
            files_unread(name, count, heard(first)) for name, (count, first) in sorted(totals.unread.items())
        ]
        warnings += [
            rows_lost(self.job.on_error, name, counts, heard(first))
            for name, (counts, first) in sorted(totals.refused.items())
        ]
        if count := sum(totals.skipped.values()):
            message = f"{count} item{'s' * (count != 1)} skipped because an operator trapped"
            first = None if totals.trap is None else heard(totals.trap)
            notes = () if first is None else (Note(f"first: {first.message}"),)
            warnings.append(Diagnostic("run-skipped", message, severity=Severity.WARNING, notes=notes))
        warnings += [each for each in self.remarks if each.severity is not Severity.REMARK]
        remarks = tuple(each for each in self.remarks if each.severity is Severity.REMARK)
        metrics = None if again else self._metrics()
        summary = Summary(self._variables(), skipped=totals.skipped, metrics=metrics)
        rows = {name: totals.rows.get(name, 0) for name in self.compiled.outputs}
        seconds = time.perf_counter() - began
        return Results({}, rows, summary, seconds, sum(totals.read.values()), tuple(warnings), remarks)

    def _metrics(self) -> Metrics:
        return evolve(self.figures.metrics(), unread=self.live.unread())

    def _variables(self) -> dict[str, Any]:
        """The final variables. Raises: Rejected("run-checkpoint-damaged")."""
        graph = self.compiled.graph
        parts: list[dict[str, Any]] = []
        path = self.manifests.states
        try:
            for file in self.manifests.last.states:
                path = self.manifests.states / file
                parts += [
                    {
                        v.name: found.get(v.type, found.fields[v.name])[0]
                        for v in graph.variables
                        if v.name in found.fields
                    }
                    for found in read_groups(path).values()
                ]
        except (Damaged, OSError) as error:
            message = f"the final variables cannot be read: `{path}`: {error}"
            raise Rejected([Diagnostic("run-checkpoint-damaged", message, help=AGAIN)]) from error
        return united(graph, parts)


class _End(Exception):  # noqa: N818 - control flow of this module
    """The run ends, so no epoch begins."""


def _listing(spark: Session, folders: Mapping[str, Path]) -> Any:
    """A stream of the files that come: of which input, and the path. Spark lists them, and reads nothing of them."""
    found: Any = None
    for number, folder in enumerate(folders.values()):
        reader = spark.readStream.format("binaryFile").schema(_LISTED)
        reader = reader.option("maxFileAge", _FOR_EVER).option("maxFilesPerTrigger", MOST)
        reader = reader.option(
            "recursiveFileLookup", "true"
        )  # else folders in it would be partitions, and not all fit
        frame = reader.load(str(folder)).selectExpr(f"{number} as input", "path")
        found = frame if found is None else found.unionAll(frame)
    return found


def _partitions(frame: Any) -> int:
    """In how many partitions the rows of an epoch are: they come from a job of Spark's stream that is planned already."""
    return frame._jdf.queryExecution().toRdd().getNumPartitions()  # noqa: SLF001 - no public way to ask


# ------------------------------------------------------------------------------------------------------------- figures


@define(eq=False)
class _Figures:
    """What there is to tell of the epochs of this process."""

    compiled: Compiled
    began: float = field(factory=time.perf_counter)
    durations: Durations = field(factory=Durations)
    epochs: EpochFigures = EpochFigures()
    _inputs: dict[str, int] = field(factory=dict[str, int])
    _outputs: dict[str, int] = field(factory=dict[str, int])
    _operators: dict[str, OperatorFigures] = field(factory=dict[str, OperatorFigures])
    _lock: threading.Lock = field(factory=threading.Lock)

    def add(self, telling: EpochTelling, files: int, seconds: float) -> None:
        """One epoch more."""
        with self._lock:
            self.durations.add(seconds)
            state = sum(size for _, size in telling.states)
            self.epochs = EpochFigures(self.epochs.count + 1, self.epochs.files + files, telling.held, state)
            for name, rows in telling.read.items():
                self._inputs[name] = self._inputs.get(name, 0) + rows
            for name, found in telling.files.items():
                self._outputs[name] = self._outputs.get(name, 0) + sum(rows for _, rows in found)
            for name, (fired, skipped, batches, spent, workers, native) in telling.operators.items():
                before = self._operators.get(name, OperatorFigures(0, 0, 0, 0.0, 0, native))
                self._operators[name] = OperatorFigures(
                    before.fired + fired,
                    before.skipped + skipped,
                    before.batches + batches,
                    before.seconds + spent,
                    max(before.workers, workers),
                    native,
                )

    def metrics(self) -> Metrics:
        """All of it."""
        with self._lock:
            inputs = {name: self._inputs.get(name, 0) for name in self.compiled.graph.inputs}
            outputs = {n: OutputFigures(self._outputs.get(n, 0), 0.0) for n in self.compiled.outputs}
            seconds, latency = time.perf_counter() - self.began, self.durations.latency()
            return Metrics(
                seconds, inputs, outputs, dict(self._operators), {}, latency, {}, epochs=self.epochs
            )
