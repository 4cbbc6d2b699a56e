"""The thread that reads the sources: it sends turn by turn, waits for room, helps the workers, and pauses for checkpoints."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from backends.multicore.inputs import opened
from backends.multicore.scheduling.scheduler import READER, ReaderState
from river.classes import define, evolve
from river.ingress import passed, turns
from river.part import WHOLE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from backends.firing.ports import Out
    from backends.multicore.checkpoint import EngineState
    from backends.multicore.dispatch import Dispatcher
    from backends.multicore.plan import Plan
    from backends.multicore.scheduling.task import Task
    from river.backend import Sources

MANY = 1024
"""Items of a turn with which it matters how many are done in a second, and not how soon each is."""


@define(eq=False)
class Feeder:
    """Sends what sources give into the `entries` of a plan. `columns`: machine code takes what is read."""

    plan: Plan
    dispatcher: Dispatcher
    entries: Mapping[str, Out]
    kept: EngineState
    columns: bool

    def run(self, sources: Sources, others: Collection[str] = ()) -> None:
        """All there is, or until nothing more is wanted. `others`: the inputs that others read."""
        threads = self.dispatcher
        try:
            self._read(sources, others)
        except Exception as error:  # noqa: BLE001 - a source is the user's: whatever it raises ends the run
            with threads.lock:
                threads.failures.of_sources.append(error)
        except BaseException as error:  # noqa: BLE001 - a source may even want to exit
            threads.fail(error)
        finally:
            with threads.lock:
                threads.scheduler.end()
                threads.obey()

    def _read(self, sources: Sources, others: Collection[str]) -> None:
        threads, kept, whole = self.dispatcher, self.kept, self.plan.graph
        graph = evolve(whole, inputs=tuple(name for name in whole.inputs if name not in others))
        sources = {name: source for name, source in sources.items() if name not in others}
        scheduler, keeper = threads.scheduler, self.plan.options.keeper
        anchors = {} if keeper is None else kept.anchors
        given: Any = sources
        if self.columns:
            given = opened(self.plan, sources, anchors, scheduler.spare, threads.failures.partly)
        part = WHOLE
        positions = {n: evolve(p, begun=kept.anchors[n].items) for n, p in kept.positions.items()}
        if keeper is not None and keeper.part is not None:  # sources give what follows
            part = evolve(keeper.part, held=kept.held)
            positions = {name: evolve(position, begun=position.items) for name, position in positions.items()}
            kept.held = {}
        for turn in turns(graph, given, self.plan.batch, positions, until=self.plan.options.until, part=part):
            for name, elements in turn.held:
                items = elements if isinstance(elements, list) else elements.values()
                kept.held[name] = kept.held.get(name, []) + items
            for name, elements in (*turn.items, *turn.marks):
                self.entries[name].add(elements)
            with threads.lock:
                if not scheduler.read(perf_counter()):
                    return
                threads.meter.sending(turn, self.entries)
            many = sum(len(elements) for _, elements in turn.items) >= MANY
            if not self._send([self.entries[name] for name, _ in (*turn.items, *turn.marks)], many=many):
                return
            if keeper is not None:
                positions = passed(graph, positions, turn)
                keeper.read = sum(position.items for position in positions.values())
                if keeper.due and self._pause():
                    keeper.save(kept.snapshot(positions))
        if keeper is not None and keeper.goes_on and self._pause():
            keeper.save(kept.snapshot(positions))
            threads.stop()

    def _send(self, outs: Sequence[Out], *, many: bool) -> bool:
        """Puts everything, waiting for room; False when no more is wanted. `many`: there are many items in it."""
        threads = self.dispatcher
        scheduler = threads.scheduler
        while True:
            for out in outs:
                out.drain()
            with threads.lock:
                scheduler.sent(outs)
                light = threads.next(READER, perf_counter()) if scheduler.helps(many=many) else None
            helped = 0.0 if light is None else self._help(light)
            with threads.lock:
                full = [out.queue for out in outs if out.waiting]
                wanted = scheduler.turned(full, helped, perf_counter())
                threads.obey()
                if not wanted:
                    return False
                if not full:
                    return True
                while scheduler.reader is ReaderState.BLOCKED:
                    threads.sleep(READER)

    def _help(self, light: Task) -> float:
        """Runs a task, and what is ready then as long as that is sooner done than waking a worker. Returns the seconds."""
        began = perf_counter()
        self.dispatcher.run(light, READER)
        return perf_counter() - began

    def _pause(self) -> bool:
        """Waits until nothing moves; then nothing does until more is sent. False where the run ends before."""
        threads = self.dispatcher
        scheduler = threads.scheduler
        with threads.lock:
            scheduler.pause()
            threads.obey()
            while scheduler.reader is ReaderState.PAUSING:
                threads.sleep(READER)
            return scheduler.wanted
