"""Operators with one input and an item handler, fired over columns: places in one list, items in another.

What a firing emits gets the place of the item that caused it, so that channels can be put in order again.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from backends.firing.instance import may_skip
from backends.spark.marshal import Piece
from backends.spark.report import Caught
from river.il.extern import compile_extern
from river.lang import typed
from river.lang.evaluate import Trap, compile_operator

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.spark.report import Report
    from river.il.graph import Instance


class Trapped(Exception):  # noqa: N818 - what happened
    """A firing ended in a trap, and the task with it."""

    def __init__(self, caught: Caught) -> None:
        super().__init__(caught)
        self.caught = caught


class Rowwise:
    """An instance with its variables. `skip`: items that trap are left out (il.md P10), which only who has no state may."""

    def __init__(self, instance: Instance, variables: list[Any], report: Report, *, skip: bool) -> None:
        self.instance = instance
        self.variables = variables
        self.report = report
        self.skip = skip and may_skip(instance.operator)
        self._fire = _compiled(instance.operator)
        operator = instance.operator
        self._keyed = [out.by is not None and operator.ports[0].by is not None for out in operator.outs]

    def __call__(self, chunk: int, piece: Piece) -> list[Piece]:
        """A piece for each output. Raises: Trapped."""
        fire, variables = self._fire, self.variables
        emitted: list[list[Any]] = [[] for _ in self.instance.outs]
        places: list[list[int]] = [[] for _ in emitted]
        done = 0
        try:
            for place, item in zip(piece.places, piece.values(), strict=True):
                try:
                    fire(variables, item, emitted)
                except Trap as trap:
                    self.trapped(trap, item, chunk, place)
                    for out, known in zip(emitted, places, strict=True):
                        del out[len(known) :]
                    continue
                done += 1
                for out, known in zip(emitted, places, strict=True):
                    if len(out) > len(known):
                        known += [place] * (len(out) - len(known))
        finally:
            self.report.fired[self.instance.name] += done
        return [
            Piece(known, out, piece.marks if keyed else ())
            for known, out, keyed in zip(places, emitted, self._keyed, strict=True)
        ]

    def trapped(self, trap: Trap, item: Any, chunk: int, place: int) -> None:
        """Notes an item that may be left out. Raises: Trapped for one that may not."""
        trap.item = self.instance.operator.ports[0].type, item
        caught = Caught(trap, self.instance.index, chunk, place)
        if not self.skip:
            raise Trapped(caught) from trap
        self.report.skipped[self.instance.name] += 1
        self.report.passed.append(caught)


def _compiled(operator: typed.Operator | typed.Extern) -> Callable[[list[Any], Any, Any], None]:
    match operator:
        case typed.Operator():
            (fire,) = (fire for fire in compile_operator(operator).item if fire is not None)
            return fire
        case typed.Extern():
            call = compile_extern(operator, imported(operator.target))
            return lambda variables, item, outs: call(0, item, variables, outs)


def imported(target: str) -> Callable[..., Any]:
    """The function `module:name`."""
    module, _, name = target.partition(":")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found
