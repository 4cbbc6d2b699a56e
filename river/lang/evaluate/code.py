"""What all closures of one compiled body share, and the layout of a frame.

A frame is a list: the slots, then the four cells below. A compiled expression is a function of the frame to a
value; a compiled statement returns None, or the signal by which control leaves it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from river.classes import define, field
from river.lang import memory
from river.lang.evaluate.further import unless_ended
from river.lang.evaluate.traps import Trap
from river.lang.patience import POLL_EVERY

if TYPE_CHECKING:
    from collections.abc import Callable

    from river.lang import typed
    from river.lang.values import TrapSignal
    from river.source import Span

Frame: TypeAlias = "list[Any]"
Run: TypeAlias = "Callable[[Frame], Any]"

RESULT: Final = -4  # what `return` leaves
DEPTH: Final = -3  # of nested calls
OUTS: Final = -2  # a list per output
VARIABLES: Final = -1  # of the operator
CELLS: Final = ((), 0)  # RESULT and DEPTH at the start


class Signal:
    """How control leaves a block, other than at its end."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Signal({self.name})"


RETURN: Final = Signal("return")


@define
class Compilation:
    """The context of a compilation; `functions` is filled after the closures that call them are made."""

    fns: tuple[typed.Fn, ...] = ()
    consts: tuple[typed.Value, ...] = ()
    tick: Callable[[Span | None], None] = lambda _span: memory.check()
    functions: list[Run] = field(factory=list[Run])
    owned: frozenset[int] = frozenset()  # slots whose value dies with the frame
    signals: dict[tuple[str, int], Signal] = field(factory=dict[tuple[str, int], Signal])

    def signal(self, kind: str, loop: int) -> Signal:
        """The signal to break or continue a loop."""
        return self.signals.setdefault((kind, loop), Signal(f"{kind} {loop}"))


def trapped(signal: TrapSignal, node: typed.Node, operator: str, site: int | None) -> Trap:
    """The trap of an operation at its place."""
    return Trap(signal.code, signal.operands, operator, site, node.span)


def ticker(poll: Callable[[], None] | None) -> Callable[[Span | None], None]:
    """Counts calls; at every `POLL_EVERY`th it polls, and looks after the memory. What it gives may raise MemoryError.

    It takes the place of the loop or call that is under way, where a trap of `poll` without a place stands then.
    """
    left = POLL_EVERY

    def tick(span: Span | None) -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            left = POLL_EVERY
            memory.check()
            unless_ended()
            if poll is not None:
                try:
                    poll()
                except Trap as trap:
                    trap.span = trap.span or span
                    raise

    return tick
