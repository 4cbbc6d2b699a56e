"""Views at the end of a run: rows of variables, made, sorted and handed over as columns by machine code.

The evaluator makes those of variables that no machine code keeps, of small ones, which are done before code is made, and
of functions that are not compiled.
"""

from __future__ import annotations

from contextlib import closing
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from backends.firing.remarks import refused
from backends.native.egress.sinks import ColumnSink, column_sink
from backends.native.tiers import ending
from river.aside import in_turns
from river.classes import define, field
from river.garbage import seldom
from river.lang import types as t
from river.metrics import OutputFigures

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from backends.multicore.plan import Plan
    from backends.multicore.variables import Store
    from backends.native.contract import Reason
    from backends.native.operator import NativeVariable
    from backends.native.views import NativeView
    from river.backend import Items, Sinks
    from river.diagnostics import Diagnostic
    from river.il.graph import View

LEAST: Final = 256 << 10
"""Bytes of a variable from which on machine code makes its views: the evaluator takes 20 us for a row; to find code, 10 ms."""

ENTRY: Final = 128
"""Bytes that an entry is taken for of a map whose entries are of one size but for texts."""

PART: Final = 1 << 13
"""Rows that are gathered and written at a time, at most: their texts, which lie anywhere, stay in the caches meanwhile."""

_GROWING: Final = (t.List, t.Deque, t.Map, t.OMap, t.Bag)


@define(eq=False)
class Views:
    """The views of a run. `look` is called again and again while they are made.

    `outputs`: rows and seconds by view; `calls`: how often Python ran for views that machine code was wanted for;
    `doing`: what is going on now, for people.
    """

    plan: Plan
    store: Store
    sinks: Sinks
    look: Callable[[], None]
    outputs: dict[str, OutputFigures] = field(factory=dict[str, OutputFigures])
    calls: dict[str, int] = field(factory=dict[str, int])
    doing: str = ""
    _reasons: list[tuple[str, Reason]] = field(factory=list["tuple[str, Reason]"])

    def deliver(self, variables: Mapping[str, Any]) -> None:
        """Hands the rows of all views that have a sink to these. `variables`: their frozen values.

        Raises: Trap; whatever a sink or `look` raises.
        """
        for view in self.plan.graph.views:
            sink = self.sinks.get(view.name)
            if sink is None:
                continue
            began = perf_counter()
            with seldom():
                code = self._code(view)
            if code is None:
                rows = self._evaluated(view, variables[view.variable])
                self._written(view, len(rows), began)
                sink(rows)
                self._written(view, len(rows), began)
            else:
                self._columns(view, code, sink, began)
        self.doing = ""

    @property
    def remarks(self) -> tuple[Diagnostic, ...]:
        """What the user should know of how they were made."""
        return refused(self._reasons, len(self.calls))

    def _code(self, view: View) -> NativeView | None:
        """The machine code of a view, if there is any and it pays to make it."""
        parts = self.store.parts(view.variable)
        if sum(map(_size, parts)) < LEAST:
            return None
        from backends.native.contract import Reason
        from backends.native.operator import Refused
        from backends.native.views import compile_view

        made = compile_view(view, parts[0].type, debug=self.plan.options.native == "debug")
        if isinstance(made, Refused):
            reasons = made.reasons
        elif len(parts) == 1 or made.by_entry:
            return made
        else:
            span = view.fns[view.function].span
            reasons = (Reason("it reads the whole of a map whose entries several workers keep", span),)
        self.calls[view.name] = 0
        self._reasons += [(view.name, reason) for reason in reasons]
        return None

    def _evaluated(self, view: View, value: Any) -> Items:
        """The rows as the evaluator makes them."""
        from river.il.views import rows_of

        self._note(f"rows of `{view.name}`, made by the evaluator")
        if view.name in self.calls:
            self.calls[view.name] = len(value) if len(view.fns[view.function].params) > 1 else 1
        return list(rows_of(view, value))

    def _columns(self, view: View, code: NativeView, sink: Callable[[Items], None], began: float) -> None:
        """Rows made, sorted and written by machine code."""
        from backends.native.ranking import ranked

        def made(done: int, of: int) -> None:
            self._note(f"rows of `{view.name}`, {done:,} of {of:,} entries")

        made(0, 0)
        rows = code.rows(self.store.parts(view.variable), made, self.plan.workers)
        self._note(f"{len(rows):,} rows of `{view.name}` in order")
        workers, size = self.plan.workers, min(self.plan.batch, PART)
        order = ranked(rows, view.order, workers)
        taken = column_sink(sink)

        def part(i: int) -> tuple[int, Callable[[], None]]:
            """How many rows a part has, and what writes them."""
            with ending():
                batch = order.part(size * i, min(size * (i + 1), len(rows)))
                if isinstance(taken, ColumnSink):
                    return len(batch), taken.made(batch)
                return len(batch), lambda: taken(batch.values())

        done = 0
        self._written(view, 0, began)
        with closing(in_turns(part, -(-len(rows) // size), workers, "river-rows")) as parts:
            for count, write in parts:
                write()
                done += count
                self._written(view, done, began)
                self._note(f"{done:,} of {len(rows):,} rows of `{view.name}` written")

    def _written(self, view: View, rows: int, began: float) -> None:
        self.outputs[view.name] = OutputFigures(rows, perf_counter() - began)

    def _note(self, doing: str) -> None:
        self.doing = doing
        self.look()


def _size(variable: NativeVariable) -> int:
    """Bytes of a variable, of most maps as so many for each entry.

    What memory these have depends on who came first to which entry: then a run would make code that the same run before it
    has done without.
    """
    from backends.native.places import entries

    match variable.type:
        case t.Map(key, value) | t.OMap(key, value) if not t.contains(t.Tuple((key, value)), *_GROWING):
            return ENTRY * entries(variable)
        case _:
            return variable.memory
