"""Where inputs and outputs are, and how much of them a run needs, as the program itself says (see `river.il.borders`)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from river.classes import evolve
from river.il.borders import Border, Sent, Stream, border

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from river.driver.job import Job
    from river.il.program import Input, Output, Program
    from river.io.batches import ItemSource


def placed(program: Program, job: Job) -> Job:
    """The job with the files that the program names, where the job names none."""
    inputs, formats = _placed(program.inputs, job.inputs, job.formats)
    outputs, formats = _placed(program.outputs, job.outputs, formats)
    indices = {decl.name: border(decl).index for decl in program.outputs}
    return evolve(job, inputs=inputs, outputs=outputs, formats=formats, indices=indices)


def _placed(
    decls: tuple[Input, ...] | tuple[Output, ...], given: Mapping[str, Any], formats: Mapping[str, str]
) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    named, stated = dict(given), dict(formats)
    for decl in decls:
        known = border(decl)
        if known.once and decl.name not in named:
            named[decl.name] = [""]
        if known.lines and _of_lines(named.get(decl.name), stated.get(decl.name)):
            stated[decl.name] = "lines"
        if known.printed is not None and _written_plainly(named.get(decl.name), stated.get(decl.name)):
            stated[decl.name] = "raw"  # its lines have their ends
        if known.path is None or known.format is None:
            continue
        if decl.name not in named:
            named[decl.name] = known.path
            stated.setdefault(decl.name, known.format)
        elif _raw(named[decl.name]):  # another file of the same kind
            stated.setdefault(decl.name, known.format)
    return named, stated


def _of_lines(target: object, stated: str | None) -> bool:
    """Whether the lines of what is given as an input of lines are its items; `stated`: the format, if one is."""
    from river.io.live import Follow
    from river.io.sources import STREAMED
    from river.io.suffixes import SUFFIXES

    if stated is not None or target is None:
        return stated == "text"
    if isinstance(target, Follow):
        return target.format is None
    if not isinstance(target, str | os.PathLike):
        return hasattr(target, "read")
    return SUFFIXES.get(Path(os.fspath(target)).suffix.lower(), "text") in STREAMED


def _written_plainly(target: object, stated: str | None) -> bool:
    """Whether what a program prints goes to a file of text, or to one whose name tells no format."""
    from river.io.suffixes import SUFFIXES

    if stated is not None or not isinstance(target, str | os.PathLike) or target == "-":
        return stated == "text"
    name = os.fspath(cast("str | os.PathLike[str]", target))
    return not name.endswith("/") and SUFFIXES.get(Path(name).suffix.lower(), "text") == "text"


def _raw(target: object) -> bool:
    """Whether a name tells a raw file, or nothing."""
    from river.io.sources import RAW
    from river.io.suffixes import SUFFIXES

    if not isinstance(target, str | os.PathLike) or target == "-":
        return False
    kind = SUFFIXES.get(Path(os.fspath(target)).suffix.lower())
    return kind is None or kind in RAW


def texts(program: Program) -> Mapping[str, Stream]:
    """The outputs whose items are one text, for people, and where that goes."""
    found: dict[str, Stream] = {}
    for decl in program.outputs:
        stream = border(decl).printed
        if stream is not None:
            found[decl.name] = stream
    return found


def sent(program: Program) -> Mapping[str, Sent]:
    """The outputs whose rows say where their bytes go: to files, or to commands."""
    found: dict[str, Sent] = {}
    for decl in program.outputs:
        where = border(decl).sent
        if where is not None:
            found[decl.name] = where
    return found


def wholes(program: Program) -> frozenset[str]:
    """The inputs that have one item, all rows of their data."""
    return frozenset(decl.name for decl in program.inputs if border(decl).whole)


def stamps(program: Program) -> Mapping[str, str]:
    """The inputs whose key is computed, each with the function that does it."""
    found = {decl.name: border(decl).stamp for decl in program.inputs}
    return {name: stamp for name, stamp in found.items() if stamp is not None}


def errors(program: Program) -> frozenset[str]:
    """The outputs whose rows are errors of the run."""
    return frozenset(decl.name for decl in program.outputs if border(decl).errors)


def most(program: Program, job: Job) -> Mapping[str, int]:
    """How many items the inputs and outputs have that a job's iterations limit, by name."""
    if job.iterations is None:
        return {}
    known: dict[str, Border] = {decl.name: border(decl) for decl in (*program.inputs, *program.outputs)}
    found = {name: each.items(job.iterations) for name, each in known.items()}
    return {name: count for name, count in found.items() if count is not None}


def limited(source: ItemSource, count: int) -> ItemSource:
    """The first so many items of a source; what is behind them is not read."""
    from river.io.columnar import Tables

    if isinstance(source.unordered, Tables) and source.batches is source.unordered:
        return source.derived(source.type, source.unordered.limited(count))
    return source.derived(source.type, _limited(source, count))


def _limited(source: ItemSource, count: int) -> Iterator[Any]:
    for batch in source.batches:
        if count <= 0:
            return
        errors = tuple(error for error in batch.errors if error[0] <= count)
        yield evolve(batch, items=batch.items[:count], lines=batch.lines[:count], errors=errors)
        count -= len(batch.items)
