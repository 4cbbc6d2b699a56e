"""Rows that cannot be taken, and what is done with them.

Codes: `data-type`, `data-range`, `data-syntax`, `data-utf8`, `data-missing-field`, `data-extra-field`,
`data-order`, `data-late` for rows; `data-missing-file`, `data-format`, `data-column`, `data-unreadable`,
`data-output`, `data-on-error` for whole inputs and outputs; `data-skipped` reports what a policy let pass.
"""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO

from river.classes import field as attribute
from river.classes import frozen
from river.diagnostics import Diagnostic, Note, Rejected, Severity, closest, render

if TYPE_CHECKING:
    from collections.abc import Mapping

Action = Literal["stop", "skip", "dead-letter"]


@frozen
class RowError:
    """A row of an input that cannot become an item.

    Units: `line` counts from 1: lines of a text, rows (`unit` says so) elsewhere; `column` is a character of
    the line from 1. `field` is the path of the value at fault, such as `a.b[2]`. `text` is the row as it was
    read.
    """

    input: str
    code: str
    reason: str
    line: int
    column: int | None = None
    field: str | None = None
    file: str | None = None
    text: str = attribute(default="", repr=False)
    unit: Literal["line", "row"] = "line"
    help: str | None = None

    @property
    def diagnostic(self) -> Diagnostic:
        """The error for the user, with its place."""
        head = self.file if self.file is not None else f"input `{self.input}`"
        if self.unit == "row":
            place = f"{head}, row {self.line}"
        else:
            place = f"{head}:{self.line}" if self.column is None else f"{head}:{self.line}:{self.column}"
        message = self.reason if self.field is None else f"field `{self.field}`: {self.reason}"
        return Diagnostic(self.code, message, place=place, help=self.help)


@frozen
class OnError:
    """What happens to a row that cannot be taken: the run stops, the row is skipped, or it goes to a file."""

    action: Action = "stop"
    path: str | None = None

    @staticmethod
    def parse(text: str) -> OnError:
        """The policy that `text` spells: `stop`, `skip` or `dead-letter=FILE`.

        Raises: Rejected("data-on-error") for anything else.
        """
        match text.partition("="):
            case ("stop", "", ""):
                return STOP
            case ("skip", "", ""):
                return SKIP
            case ("dead-letter", "=", path) if path:
                return OnError("dead-letter", path)
            case _:
                raise Rejected([_unknown_policy(text)])


STOP = OnError()
SKIP = OnError("skip")


def _unknown_policy(text: str) -> Diagnostic:
    return Diagnostic(
        "data-on-error",
        f"`{text}` does not say what to do with bad rows",
        help="use `stop`, `skip` or `dead-letter=FILE`",
    )


class Refusals:
    """The rows that a policy took out of a run: counted, and written down if the policy says so.

    One object may serve several inputs, also from several threads: they then share the dead-letter file,
    which is emptied at construction. A dead letter is one JSON object per line: input, file, line, reason,
    text.
    """

    def __init__(self, policy: OnError) -> None:
        self.policy = policy
        self._counts: dict[str, dict[str, int]] = {}
        self._first: dict[str, RowError] = {}
        self._lock = threading.Lock()
        self._file: TextIO | None = None
        if policy.path is not None:
            try:
                self._file = Path(policy.path).open("w", encoding="utf-8", newline="\n")  # noqa: SIM115 - `close` does
            except (OSError, ValueError) as error:  # a name may hold what no file name can
                raise Rejected([unwritable(policy.path, error)]) from error

    @property
    def stops(self) -> bool:
        """Whether nothing behind a bad row is taken: order must not depend on it, where others go on."""
        return self.policy.action == "stop"

    def refuse(self, error: RowError) -> None:
        """Count `error` and write it down.

        Raises: Rejected with the error itself if the policy is to stop.
        """
        if self.stops:
            raise Rejected([error.diagnostic])
        with self._lock:
            counts = self._counts.setdefault(error.input, {})
            counts[error.code] = counts.get(error.code, 0) + 1
            self._first.setdefault(error.input, error)
            if self._file is not None:
                try:
                    self._file.write(_letter(error))
                except OSError as full:
                    self._file, file = None, self._file
                    with suppress(OSError):  # what is held for it cannot be written either
                        file.close()
                    raise Rejected([unwritable(str(self.policy.path), full)]) from full

    def count(self, name: str | None = None, code: str | None = None) -> int:
        """How many rows were refused: in all, of input `name`, with `code`."""
        with self._lock:
            return sum(
                number
                for input_, counts in self._counts.items()
                if name is None or input_ == name
                for code_, number in counts.items()
                if code is None or code_ == code
            )

    def counts(self) -> dict[str, tuple[dict[str, int], Diagnostic]]:
        """Of each input that lost rows how many, by code, and what was wrong with the first of them."""
        with self._lock:
            return {
                name: (dict(counts), self._first[name].diagnostic) for name, counts in self._counts.items()
            }

    def report(self) -> tuple[Diagnostic, ...]:
        """One warning per input that lost rows: how many, why, and the first of them."""
        with self._lock:
            return tuple(self._report(name, counts) for name, counts in self._counts.items())

    def _report(self, name: str, counts: dict[str, int]) -> Diagnostic:
        return rows_lost(self.policy, name, counts, self._first[name].diagnostic)

    def close(self) -> None:
        """Finish the dead-letter file. Raises: Rejected("data-output")."""
        with self._lock:
            self._file, file = None, self._file
            try:
                if file is not None:
                    file.close()
            except OSError as error:
                raise Rejected([unwritable(str(self.policy.path), error)]) from error


def rows_lost(policy: OnError, name: str, counts: Mapping[str, int], first: Diagnostic) -> Diagnostic:
    """The warning that an input lost rows: how many by code, and what was wrong with the first of them."""
    number = sum(counts.values())
    rows = "1 row" if number == 1 else f"{number} rows"
    reasons = ", ".join(f"{count} {code}" for code, count in sorted(counts.items()))
    where = "skipped" if policy.path is None else f"sent to `{policy.path}`"
    note = Note("first: " + render(first).splitlines()[0])
    message = f"input `{name}`: {rows} {where} ({reasons})"
    return Diagnostic("data-skipped", message, severity=Severity.WARNING, notes=(note,))


def file_unread(name: str, path: str, why: str) -> Diagnostic:
    """The warning that a file which came to the folder of an input is not read."""
    message = f"input `{name}` does not read `{path}`: {why}"
    help_ = "say `--in-format`, or rename it; write what is not complete under a name that begins with a dot"
    return Diagnostic("data-unread", message, severity=Severity.WARNING, help=help_)


def files_unread(name: str, count: int, first: Diagnostic) -> Diagnostic:
    """The warning that so many files were not read which came to the folder of an input, with the first of them."""
    files = "1 file that came was" if count == 1 else f"{count:,} files that came were"
    message = f"input `{name}`: {files} not read"
    note = Note(f"first: {first.message}")
    return Diagnostic("data-unread", message, severity=Severity.WARNING, notes=(note,), help=first.help)


def _letter(error: RowError) -> str:
    reason = error.reason if error.field is None else f"field `{error.field}`: {error.reason}"
    letter = {
        "input": error.input,
        "file": error.file,
        "line": error.line,
        "code": error.code,
        "reason": reason,
        "text": error.text,
    }
    text = json.dumps(letter, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def missing_file(path: str) -> Diagnostic:
    """The diagnostic for an input file that is not there."""
    return Diagnostic("data-missing-file", f"there is no file `{path}`", help=sought(path))


def sought(path: str) -> str:
    """What to try where there is no file `path`: the name nearest to it, or where it is sought."""
    folder = Path(path).parent
    where = f"in `{folder}`" if Path(path).is_absolute() else "from the folder in which River was started"
    try:
        if not folder.is_dir():
            return f"there is no folder `{folder}`; paths begin in the folder in which River was started"
        near = closest(Path(path).name, [each.name for each in folder.iterdir()])
    except (OSError, ValueError):
        near = None
    return near or f"it is sought {where}"


def unreadable(path: str, error: Exception, help_: str | None = None) -> Diagnostic:
    """The diagnostic for an input that exists and cannot be read."""
    return Diagnostic("data-unreadable", f"cannot read `{path}`: {_reason(error)}", help=help_)


def unwritable(path: str, error: Exception) -> Diagnostic:
    """The diagnostic for an output that cannot be written."""
    return Diagnostic("data-output", f"cannot write `{path}`: {_reason(error)}")


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if not text and isinstance(error, MemoryError):
        return "there is not enough memory"
    first = (text.splitlines() or [type(error).__name__])[0]
    return first if first[1:2].isupper() else first[:1].lower() + first[1:]
