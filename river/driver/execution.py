"""A run: planned when the platform is known, from its inputs to its outputs.

Paper: River section 4.6 (planning when the platform is known).
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from river import plugins
from river.backend import chosen
from river.classes import define, evolve, field
from river.diagnostics import Diagnostic, Note, Rejected, Severity
from river.driver.borders import most, placed
from river.driver.inputs import (
    ItemCounter,
    Reading,
    check_live,
    check_names,
    check_order,
    given_inputs,
    live_job,
    open_input,
    read_of,
)
from river.driver.instants import timed
from river.driver.job import Job, Results, without_addresses
from river.driver.outputs import CountedSink, Writer, check_folders, open_output
from river.driver.places import check_job
from river.garbage import seldom
from river.il.combined import unseen, with_results
from river.io.addresses import addresses
from river.platform import here

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

    from river.backend import Backend, Items, Summary
    from river.driver.compilation import Compiled
    from river.il.graph import Graph, View
    from river.io.errors import Refusals
    from river.io.live import Live
    from river.lang.evaluate import Trap
    from river.lang.types import Type
    from river.metrics import Metrics, Recorder
    from river.restart import RunKeeper
    from river.source import Span


CAUSES: Final = 10
"""Causes of skipped items that are told, one by one."""
SHOWN: Final = 1_000
"""Characters of an item that are shown beside its trap."""


def execute(compiled: Compiled, backend: str, job: Job) -> Results:
    """Plans and runs; nothing is left at the outputs' places unless the run ends well.

    Raises: Rejected; KeyboardInterrupt when the user stops it.
    """
    from river.lang.patience import patience

    platform = plugins.backend(backend)
    with patience(job.options.deadline, getattr(platform, "constants", None)):
        return _through(compiled, platform, job)


def _through(compiled: Compiled, platform: Backend[Any], job: Job) -> Results:
    """Through the passes, and run."""
    with seldom():
        compiled = compiled.tuned(job.options.through(platform), here(job.options.workers))
        graph = compiled.graph
    job = read_of(compiled, job)
    job = timed(graph, placed(graph.program, job))
    check_names("input", "--in NAME=FILE", graph.inputs, given_inputs(graph, job), required=True)
    known = (*graph.outputs, *(v.name for v in graph.views))
    check_names("output", "--out NAME=FILE", known, job.outputs, required=False)
    check_names("output", "--partition-by NAME=COLUMN", known, job.partition_by, required=False)
    check_names("input", "--order-by NAME=COLUMN", graph.inputs, job.order_by, required=False)
    far = addresses(job.inputs, job.outputs)
    check_order(job, far)
    check_job(without_addresses(job) if far else job)
    chosen(platform.name, getattr(platform, "experiments", {}), job.options)
    if job.options.deadline is not None and not getattr(platform, "deadlines", False):
        message = f"the backend `{platform.name}` has no deadlines"
        raise Rejected([Diagnostic("run-deadline", message, help="use `multicore`")])
    if job.options.settings and not getattr(platform, "settings", False):
        message = f"the backend `{platform.name}` has no platform beneath that `{min(job.options.settings)}` could be set for"
        raise Rejected([Diagnostic("run-settings", message, help="use `spark`")])
    if far:
        return _beyond(compiled, platform, job, far[0])
    follow = getattr(platform, "follow", None)
    if follow is not None and (job.checkpoint is not None or job.live is not None or _followed(job)):
        return follow(compiled, job)
    job, live = live_job(job, platform)
    check_folders(job)
    if job.checkpoint is None:
        return _execute(compiled, platform, job, live, None)
    from river.restart import keeper_of

    keeper = keeper_of(compiled, platform, job, job.checkpoint)
    keeper.open()
    try:
        if not keeper.complete:
            return _execute(compiled, platform, job, live, keeper)
        summary, rows, read = keeper.ended(compiled)
        summary = evolve(summary, variables=with_results(graph, summary.variables))
        return Results({}, rows, summary, 0.0, read, summary.remarks, private=unseen(compiled.graph))
    finally:
        keeper.close()


def _beyond(compiled: Compiled, platform: Backend[Any], job: Job, far: str) -> Results:
    """Runs a job with an address on a backend that reaches it. Raises: Rejected("data-address") where it does not."""
    beyond = getattr(platform, "beyond", None)
    if beyond is not None and job.checkpoint is None and job.live is None and not _followed(job):
        return beyond(compiled, job)
    how = f"the backend `{platform.name}`" if beyond is None else "a run that goes on"
    message = f"`{far}` is an address, which {how} neither reads nor writes"
    help_ = "`--backend spark` does" if beyond is None else "read it from Python, by `write_stream`"
    raise Rejected([Diagnostic("data-address", message, help=help_)])


def _followed(job: Job) -> bool:
    """Whether an input is to be followed."""
    from river.io.live import asked

    return any(map(asked, job.inputs.values()))


def _execute(
    compiled: Compiled, platform: Backend[Any], job: Job, live: Live, keeper: RunKeeper | None
) -> Results:
    from river.io.batches import ItemSource as Rows
    from river.io.errors import Refusals as Counter
    from river.io.live import Arriving
    from river.io.sinks import Collector

    graph = compiled.graph
    refusals = Counter(job.on_error)
    trapped = _Trapped()
    options = job.options if job.on_error.action == "stop" else evolve(job.options, on_trap=trapped.take)
    options = options if keeper is None else evolve(options, keeper=keeper)
    recorder = _recorder(job, platform)
    if recorder is not None:
        options = evolve(options, observe=_both(_noting(recorder, live), options.observe))
    began = time.perf_counter()
    sinks: dict[str, CountedSink] = {}
    sources: dict[str, Iterable[Items]] = {}
    counter = ItemCounter(job.watch)
    try:
        try:
            with seldom():
                going = live if getattr(platform, "live", False) else None
                failure = _opened(graph, job, refusals, going, counter, sources)
                planning = time.perf_counter()
                with traps_told():
                    plan = platform.plan(graph, here(), options)
                began += time.perf_counter() - planning
                _tell(failure)
                limits = most(graph.program, job)
                for name, type_ in compiled.outputs.items():
                    sinks[name] = open_output(job, name, type_, keeper, limits.get(name))
            if keeper is not None:
                keeper.watch(sinks)
            if recorder is not None:
                recorder.open()
            summary = _run(platform, plan, graph, sources, sinks)
            if summary.metrics is not None:
                summary = evolve(summary, metrics=_with_arrivals(summary.metrics, live))
            if recorder is not None and summary.metrics is not None:
                recorder.take(summary.metrics, end=True)
            for view in () if getattr(platform, "views", False) else graph.views:
                sinks[view.name].write(_view_rows(graph, view, summary))
            if keeper is not None:
                described = keeper.describe()
                keeper.describe = lambda: described
            for counted in sinks.values():
                counted.complete()
            for counted in sinks.values():
                counted.sink.close()
            if keeper is not None:
                keeper.finish(compiled, summary)
        except BaseException:
            for counted in sinks.values():
                counted.sink.abort()
            raise
    finally:
        if recorder is not None:
            recorder.close()
        for source in sources.values():
            if isinstance(source, Arriving | Reading) and isinstance(source.source, Rows):
                source.source.close()
        refusals.close()
    summary = evolve(summary, variables=with_results(graph, summary.variables))
    told = (
        *(() if keeper is None else keeper.remarks),
        *compiled.remarks,
        *summary.remarks,
        *live.report(),
        *refusals.report(),
        *_skipped(summary, trapped),
    )
    return Results(
        {name: counted.sink for name, counted in sinks.items() if isinstance(counted.sink, Collector)},
        {name: counted.rows for name, counted in sinks.items()},
        summary,
        time.perf_counter() - began,
        counter.items if keeper is None else keeper.read,
        tuple(each for each in told if each.severity is not Severity.REMARK),
        tuple(each for each in told if each.severity is Severity.REMARK),
        unseen(compiled.graph),
    )


def _opened(
    graph: Graph,
    job: Job,
    refusals: Refusals,
    live: Live | None,
    counter: ItemCounter,
    sources: dict[str, Iterable[Items]],
) -> Rejected | None:
    """Opens the inputs, before it is planned what becomes of them: some are read from now on. What is wrong with one.

    It is told when nothing is wrong with the plan.
    """
    try:
        for name in graph.inputs:
            sources[name] = counter.counted(open_input(graph, name, job, refusals, live))
        check_live(job, sources.values())
    except Rejected as rejected:
        return rejected
    return None


def _tell(failure: Rejected | None) -> None:
    """Raises: what failed, if something did."""
    if failure is not None:
        raise failure


def _recorder(job: Job, platform: Backend[Any]) -> Recorder | None:
    """The file of metrics, if there is to be one. Raises: Rejected("run-metrics")."""
    from river.metrics import Recorder as File

    if job.metrics is None:
        return None
    if not getattr(platform, "metrics", False):
        message = f"the backend `{platform.name}` tells nothing of its runs"
        raise Rejected([Diagnostic("run-metrics", message, help="use `multicore`")])
    return File(job.metrics)


def _noting(recorder: Recorder, live: Live) -> Callable[[Metrics], None]:
    """What the backend tells is recorded, and what it knows nothing of."""
    return lambda metrics: recorder.take(_with_arrivals(metrics, live))


def _with_arrivals(metrics: Metrics, live: Live) -> Metrics:
    """With the counts of connections, and of files that were not read."""
    return evolve(metrics, connections=live.connections(), unread=live.unread())


def _both(
    first: Callable[[Metrics], None], second: Callable[[Metrics], None] | None
) -> Callable[[Metrics], None]:
    if second is None:
        return first

    def tell(metrics: Metrics) -> None:
        first(metrics)
        second(metrics)

    return tell


def _run(
    platform: Backend[Any],
    plan: Any,
    graph: Graph,
    sources: Mapping[str, Iterable[Items]],
    sinks: Mapping[str, CountedSink],
) -> Summary:
    writers: dict[str, Callable[[Items], None]] = {
        name: Writer(graph.queues[name].type, sinks[name]) for name in graph.outputs
    }
    if getattr(platform, "views", False):
        writers |= {view.name: _of_view(view, sinks[view.name]) for view in graph.views}
    with traps_told():
        return platform.run(plan, sources, writers)


@contextmanager
def traps_told() -> Generator[None]:
    """Tells people of a trap: of a firing, or of a constant, which some backends compute when they plan."""
    from river.lang.evaluate import Trap

    try:
        yield
    except Trap as trap:
        raise Rejected([trap_diagnostic(trap)]) from trap


def trap_diagnostic(trap: Trap) -> Diagnostic:
    """A trap for people: its place and reason, and the item that was being handled."""
    from river.lang.types import UNIT

    found = trap.diagnostic()
    if trap.item is None or trap.item[0] == UNIT:  # a tick of a clock says nothing
        return found
    from river.io.encode import encoder

    type_, item = _legible(*trap.item)
    rest = "; fields that nobody reads are not shown" if trap.partly else ""
    shown = encoder(type_)(item)
    if len(shown) > SHOWN:
        shown = f"{shown[:SHOWN]}... ({len(shown):,} characters)"
    return evolve(found, notes=(*found.notes, Note(f"while handling the item {shown}{rest}")))


def _legible(type_: Type, item: Any) -> tuple[Type, Any]:
    """An item for people: bytes, such as lines, are read as text."""
    from river.lang.types import BYTES, STRING, Record

    match type_:
        case Record(fields):
            parts = [_legible(of, part) for (_, of), part in zip(fields, item, strict=True)]
            made = Record(tuple((name, of) for (name, _), (of, _) in zip(fields, parts, strict=True)))
            return made, tuple(part for _, part in parts)
        case _:
            return (STRING, item.decode("utf-8", "backslashreplace")) if type_ == BYTES else (type_, item)


def _of_view(view: View, sink: CountedSink) -> Callable[[Items], None]:
    """What takes the rows of a view, which are never a change log."""
    from river.io import deltas

    return sink.write if deltas.is_delta(view.type) else Writer(view.type, sink)


def _view_rows(graph: Graph, view: View, summary: Summary) -> list[Any]:
    from river.il.views import rows_of
    from river.lang.evaluate import Trap

    try:
        return list(rows_of(view, with_results(graph, summary.variables)[view.variable]))
    except Trap as trap:
        raise Rejected([trap_diagnostic(trap)]) from trap


@define
class _Trapped:
    """Why items were skipped: of each code and place the first trap, and how many there were."""

    causes: dict[tuple[str, Span | None], tuple[Diagnostic, int]] = field(factory=dict[Any, Any])

    def take(self, trap: Diagnostic) -> None:
        """Notes a trap."""
        cause = trap.code, trap.span
        first, count = self.causes.get(cause, (trap, 0))
        self.causes[cause] = first, count + 1

    def notes(self) -> tuple[Note, ...]:
        """The causes, the most frequent ones first."""
        ranked = sorted(self.causes.values(), key=lambda found: -found[1])
        if len(ranked) == 1:
            return (Note(f"first: {ranked[0][0].message}"),)
        told = [
            Note(f"{count} {'were' if count > 1 else 'was'} {first.code}, first: {first.message}", first.span)
            for first, count in ranked[:CAUSES]
        ]
        rest = sum(count for _, count in ranked[CAUSES:])
        return (*told, Note(f"{rest} had other causes")) if rest else tuple(told)


def _skipped(summary: Summary, trapped: _Trapped) -> list[Diagnostic]:
    total = sum(summary.skipped.values())
    if not total:
        return []
    message = f"{total} item{'s' * (total != 1)} skipped because an operator trapped"
    if not trapped.causes:  # all of them before the checkpoint from which the run went on
        return [Diagnostic("run-skipped", message, severity=Severity.WARNING)]
    first, _ = next(iter(trapped.causes.values()))
    return [Diagnostic("run-skipped", message, first.span, Severity.WARNING, trapped.notes())]
