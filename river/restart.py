"""Runs that can go on after they were ended by force: which inputs and outputs allow that, and what must be the same then.

What was read before is read again and dropped; files are cut back to where they were at the checkpoint.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from river.backend import Summary
from river.checkpoint import Checkpoint, Keeper, Snapshot, fingerprint
from river.classes import define, field
from river.diagnostics import Diagnostic, Rejected, Severity
from river.digests import sha256
from river.entries import version
from river.il.annotations import without
from river.il.program import Input, Program, Use
from river.io.errors import missing_file, unreadable
from river.io.live import Follow, asked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.backend import Backend
    from river.driver import Compiled, CountedSink, Job

LINES: Final = ("csv", "tsv", "jsonl", "text")
"""Formats of files that can be cut after any row."""

SAMPLE: Final = 1 << 16


def keeper_of(compiled: Compiled, platform: Backend[Any], job: Job, checkpoint: Checkpoint) -> RunKeeper:
    """The keeper of a run with checkpoints; `open` it before anything is written.

    Raises: Rejected for a backend, inputs, outputs or settings that do not allow it.
    """
    if not getattr(platform, "checkpoints", False):
        message = f"the backend `{platform.name}` keeps no state of its runs"
        raise Rejected([Diagnostic("run-checkpoint", message, help="use `multicore`")])
    identity = identity_of(compiled, job)
    followed: dict[str, _Followed] = {}
    for name, spec in job.inputs.items():
        again = _again(name, spec)
        if isinstance(again, _Followed):
            followed[name] = again
        else:
            identity[f"the data of input `{name}`"] = again
    for name in compiled.outputs:
        identity[f"the place of output `{name}`"] = _place(job, name)
    return RunKeeper(checkpoint, identity, followed=followed)


def identity_of(compiled: Compiled, job: Job) -> dict[str, Any]:
    """What must stay the same of any run whose state is kept, apart from its inputs and outputs.

    Raises: Rejected for settings by which a run does not come to the same a second time.
    """
    if job.live is not None and (job.live.idle is not None or job.live.clock != "data"):
        message = "what is late depends on when it came, with `--idle` and `--clock wall`, and that does not come again"
        raise Rejected(
            [Diagnostic("run-checkpoint", message, help="leave them out, or run without `--checkpoint`")]
        )
    identity: dict[str, Any] = {
        "the version of River": version("river-streams"),
        "the program": sha256(_meant(compiled.program).encode()).hexdigest(),
        "the lateness": job.lateness,
        "the policy for errors": [job.on_error.action, job.on_error.path],
        "the number of iterations": job.iterations,
    }
    if job.options.until is not None:
        identity["the end of time"] = job.options.until
    return identity


def _meant(program: Program) -> str:
    """The text of a program but for how many workers run it, and where: another run may have others."""
    from river.il.pretty import pretty

    where = "Parallel", "Region", "Exits", "Epoch", "Group", "Cost"
    bare = (without(decl, *where) if isinstance(decl, Use | Input) else decl for decl in program.decls)
    return pretty(Program(tuple(bare)))


def _again(name: str, spec: object) -> list[Any] | _Followed | None:
    """What tells an input's data from others; None for data in memory. Raises: Rejected where it cannot be read again."""
    match spec:
        case Follow() if not Path(spec.path).is_dir() and not spec.path.endswith("/"):
            return _Followed(name, spec.path)
        case str() | os.PathLike():
            path = os.fspath(cast("str | os.PathLike[str]", spec))
            if (
                path != "-"
                and "://" not in path
                and not asked(path)
                and (Path(path).is_file() or not Path(path).exists())
            ):
                try:
                    return fingerprint(path)
                except FileNotFoundError:
                    raise Rejected([missing_file(path)]) from None
                except OSError as error:
                    raise Rejected([unreadable(path, error)]) from error
        case _ if not (
            isinstance(spec, Follow | Iterator) or hasattr(spec, "read") or hasattr(spec, "read_next_batch")
        ):
            return None
        case _:
            pass
    message = f"input `{name}` cannot be read a second time, so the run could not go on after a crash"
    help_ = "keep what comes in a file, and read that (`--follow` while it grows)"
    raise Rejected([Diagnostic("run-checkpoint", message, help=help_)])


def _place(job: Job, name: str) -> list[str | None] | None:
    """Where an output goes; None for one that is only passed on. Raises: Rejected where nothing can be taken back."""
    from river.io.sinks import format_of_target

    target, stated = job.outputs.get(name), job.formats.get(name)
    if target is None and job.default is None:
        message = f"output `{name}` is collected in memory, where it does not survive a crash"
        raise Rejected([Diagnostic("run-checkpoint", message, help="name a file for it")])
    if not isinstance(target, str | os.PathLike) or target == "-":
        return None
    path = Path(cast("str | os.PathLike[str]", target))
    if path.exists() and not path.is_file():
        return None
    kind = format_of_target(os.fspath(cast("str | os.PathLike[str]", target)), stated, name)
    if kind not in (*LINES, "raw"):
        message = f"output `{name}`: a {kind} file cannot be cut back to a checkpoint"
        help_ = f"the formats that can are {', '.join(LINES)}, raw"
        raise Rejected([Diagnostic("run-checkpoint", message, help=help_)])
    return [str(path.resolve()), kind]


@define(eq=False)
class _Followed:
    """A file that grows, which must stay the same as far as it was read."""

    name: str
    path: str
    sample: list[Any] = field(factory=lambda: [0, sha256().hexdigest()])

    def check(self, least: int = 0) -> int:
        """Its size. Raises: Rejected("run-checkpoint-input") if it is another file, or shorter than `least`."""
        try:
            size = Path(self.path).stat().st_size
            same = size >= least and fingerprint(self.path, size=self.sample[0]) == self.sample
            self.sample = fingerprint(self.path, size=SAMPLE) if same else self.sample
        except FileNotFoundError:
            size, same = 0, not self.sample[0]
        except OSError as error:
            raise Rejected([unreadable(self.path, error)]) from error
        if not same:
            message = f"input `{self.name}`: `{self.path}` was replaced or cut, and cannot be read again from its beginning"
            help_ = "a run with checkpoints follows files that only grow"
            raise Rejected([Diagnostic("run-checkpoint-input", message, help=help_)])
        return size


@define(eq=False)
class RunKeeper(Keeper):
    """The keeper of a run of the driver."""

    followed: Mapping[str, _Followed] = field(factory=dict[str, "_Followed"], kw_only=True)

    def open(self) -> None:
        super().open()
        try:
            for name, (size, *sample) in self.header.get("followed", {}).items():
                self.followed[name].sample = sample
                if not self.complete:
                    self.followed[name].check(size)
        except BaseException:
            self.close()
            raise

    def watch(self, sinks: Mapping[str, CountedSink]) -> None:
        """Sees to the outputs at each checkpoint, and says what cannot be taken back."""
        for name, counted in sinks.items():
            if not hasattr(counted.sink, "settled"):
                message = (
                    f"output `{name}` cannot be taken back: after a crash some of its rows may come twice"
                )
                self.remarks.append(Diagnostic("run-checkpoint", message, severity=Severity.WARNING))

        def describe() -> dict[str, Any]:
            positions = {n: getattr(c.sink, "settled", lambda: None)() for n, c in sinks.items()}
            return {
                "outputs": {name: [positions[name], c.rows] for name, c in sinks.items()},
                "followed": {name: [each.check(), *each.sample] for name, each in self.followed.items()},
            }

        self.describe = describe

    def position(self, name: str) -> tuple[int | None, int]:
        """How far an output had been written: bytes, None for a new one, and rows."""
        position, rows = self.header.get("outputs", {}).get(name, (None, 0))
        return position, rows

    def finish(self, compiled: Compiled, summary: Summary) -> None:
        """Keeps that the run has ended well, and with what; the outputs were described before they were closed."""
        found = Snapshot()
        found.fields = {
            v.name: found.put(v.type, [summary.variables[v.name]]) for v in compiled.graph.variables
        }
        self.save(found, complete=True, read=self.read)

    def _files(self) -> Iterator[Path]:
        """The outputs that are files."""
        for name, (position, _) in self.header["outputs"].items():
            place = self.identity.get(f"the place of output `{name}`")
            if position is not None and place is not None:
                yield Path(place[0])

    def ended(self, compiled: Compiled) -> tuple[Summary, dict[str, int], int]:
        """What the run that has ended gave: its summary, rows by output, items read."""
        found = self.found or Snapshot()
        message = f"the run whose state is in `{self.folder}` has ended well; nothing was done"
        if gone := [f"`{path}`" for path in self._files() if not path.exists()]:
            message += f", although its output {' and '.join(gone)} is not there any more"
        remark = Diagnostic(
            "run-checkpoint-complete", message, severity=Severity.WARNING, help="`--restart` begins anew"
        )
        variables = {v.name: found.get(v.type, found.fields[v.name])[0] for v in compiled.graph.variables}
        rows = {name: rows for name, (_, rows) in self.header["outputs"].items()}
        return Summary(variables, remarks=(*self.remarks, remark)), rows, self.header["read"]


__all__ = ["Checkpoint", "RunKeeper", "keeper_of"]
