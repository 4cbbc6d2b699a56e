"""What becomes of a program when the platform is known: the passes that a backend asks for, where they pay.

Paper: River §4.6 (translation ahead of time, optimization when the platform is known).
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, cast

import attrs

from river import plugins
from river.diagnostics import Rejected
from river.il.parse import parse
from river.il.pretty import pretty
from river.lang import typed
from river.lang.tables import cache_folder, fingerprint
from river.platform import here
from river.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from river.il.graph import Graph
    from river.il.program import Program
    from river.il.templates import Library


def tuned(program: Program, library: Library, graph: Graph, passes: str) -> Program | None:
    """The program after `passes`, None where they have nothing to gain: no operator has stated rates.

    The result is kept on disk, as River IL with the places that its parts come from, under the hash of what it was made
    from.
    """
    if not any(isinstance(one.operator, typed.Operator) and one.operator.rated for one in graph.instances):
        return None
    from river.passes import apply, pipeline

    text = "\x00".join((fingerprint("optimizers", "river.il", "river.lang"), passes, pretty(program)))
    file = cache_folder() / f"tuned-{hashlib.sha256(text.encode()).hexdigest()[:40]}.json"
    sources = _sources(program)
    with suppress(OSError, ValueError, KeyError, TypeError, IndexError, StopIteration, Rejected):
        return _read(file, sources)
    found = apply(program, pipeline(passes, plugins.pass_), here(), library).program
    with suppress(OSError):  # a cache that cannot be written is slow, not wrong
        _write(file, found, sources)
    return found


def _write(file: Path, program: Program, sources: list[Source]) -> None:
    """Keeps a program: its text, and by node the source and place it comes from, if that is one of `sources`."""
    numbers = {source: i for i, source in enumerate(sources)}
    places = [
        None if span is None or span.source not in numbers else [numbers[span.source], span.start, span.end]
        for span in _spans(program)
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{token_hex(4)}.part")
    part.write_text(json.dumps({"text": pretty(program), "places": places}), encoding="utf-8")
    part.replace(file)


def _read(file: Path, sources: list[Source]) -> Program:
    kept = json.loads(file.read_text(encoding="utf-8"))
    places: list[tuple[int, int, int] | None] = kept["places"]
    spans = (None if at is None else Span(sources[at[0]], at[1], at[2]) for at in places)
    return cast("Program", _placed(parse(Source(file.name, kept["text"])), spans))


def _sources(program: Program) -> list[Source]:
    """The texts that a program's parts come from, in the order in which they are met."""
    return list(dict.fromkeys(span.source for span in _spans(program) if span is not None))


def _spans(node: object) -> Iterator[Span | None]:
    """The places of all nodes of a tree, in the order of `_placed`."""
    if isinstance(node, tuple):
        for each in cast("tuple[object, ...]", node):
            yield from _spans(each)
    elif attrs.has(type(node)) and not isinstance(node, Source | Span):
        for part in attrs.fields(type(node)):
            value = getattr(node, part.name)
            if part.name == "span":
                yield value
            else:
                yield from _spans(value)


def _placed(node: object, spans: Iterator[Span | None]) -> object:
    """The tree with other places."""
    if isinstance(node, tuple):
        values = cast("tuple[object, ...]", node)
        made = tuple(_placed(each, spans) for each in values)
        return values if all(a is b for a, b in zip(values, made, strict=True)) else made
    if not attrs.has(type(node)) or isinstance(node, Source | Span):
        return node
    changes: dict[str, object] = {}
    for part in attrs.fields(type(node)):
        value = getattr(node, part.name)
        made = next(spans) if part.name == "span" else _placed(value, spans)
        if made is not value:
            changes[part.alias] = made
    return attrs.evolve(node, **changes) if changes else node  # pyright: ignore[reportArgumentType]
