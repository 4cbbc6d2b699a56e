"""What becomes of a program when the platform is known: the passes that a backend asks for, where they pay.

Paper: River §4.6 (translation ahead of time, optimization when the platform is known).
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import attrs

from river import plugins
from river.il.packing import NotPacked, packed, unpacked
from river.il.program import Instance
from river.il.standard import NAMESPACE
from river.lang import syntax as s
from river.lang import typed
from river.lang.tables import fingerprint, own_folder
from river.platform import here
from river.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from river.il.graph import Graph
    from river.il.program import Program
    from river.il.templates import Library


def tuned(
    program: Program, passes: str, library: Callable[[], Library], graph: Callable[[], Graph]
) -> Graph | None:
    """The verified program after `passes`, None where they have nothing to gain: no operator has stated rates.

    The result is kept on disk with the places that its parts come from, under the hash of what it was made from; then
    neither `library` nor `graph` of the program is asked for.

    Raises: Rejected where the program has mistakes.
    """
    sources = _sources(program) if _states_rates(program) else []
    file = _file(program, passes, sources) if sources else None
    if file is not None:
        with suppress(OSError, ValueError, KeyError, TypeError, IndexError):
            return unpacked(json.loads(file.read_text(encoding="utf-8")), sources)
    if not any(isinstance(one.operator, typed.Operator) and one.operator.rated for one in graph().instances):
        return None
    from river.il.verify import verify
    from river.passes import apply, pipeline

    found = verify(apply(program, pipeline(passes, plugins.pass_), here(), library()).program, library())
    if file is not None:
        with suppress(OSError, NotPacked):  # a cache that cannot be written is slow, not wrong
            part = file.with_name(f".{file.name}.{os.urandom(4).hex()}.part")
            part.write_text(json.dumps(packed(found, sources)), encoding="utf-8")
            part.replace(file)
    return found


def _states_rates(program: Program) -> bool:
    """Whether an operator of the program's own text has stated rates."""
    operators = (decl.operator if isinstance(decl, s.Template) else decl for decl in program.decls)
    return any(
        isinstance(handler, s.RatedHandler)
        for operator in operators
        if isinstance(operator, s.Operator)
        for handler in operator.handlers
    )


def _file(program: Program, passes: str, sources: list[Source]) -> Path | None:
    """Where the result is kept: by all that it depends on. None if it needs templates of a language, or there is no place."""
    templates = (decl.template for decl in program.decls if isinstance(decl, Instance))
    if any(
        namespace not in ("", NAMESPACE) for namespace, _, _ in (name.rpartition(".") for name in templates)
    ):
        return None

    folder = own_folder("tuned")
    texts = (source.text for source in sources)
    parts = (
        fingerprint("optimizers", "river.il", "river.lang"),
        repr(here()),
        passes,
        repr(program),  # but for places: the whole tree
        *texts,
    )
    name = hashlib.sha256("\x00".join(parts).encode()).hexdigest()
    return None if folder is None else folder / f"{name[:40]}.json"


def _sources(program: Program) -> list[Source]:
    """The texts that a program's parts come from, in the order in which they are met."""
    return list(dict.fromkeys(span.source for span in _spans(program) if span is not None))


def _spans(node: object) -> Iterator[Span | None]:
    """The places of all nodes of a tree."""
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
