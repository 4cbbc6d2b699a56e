"""From a text and data to results: compile, verify, plan, run - and check, which compares backends with one another.

The functions here are what the command line and the Python API share; they print nothing.
Paper: River section 4.6 (translation ahead of time, planning when the platform is known).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attrs import define, evolve, field, frozen

from river import plugins
from river.backend import Backend, Items, Options, Summary, chosen
from river.diagnostics import Diagnostic, Note, Rejected, Severity, closest
from river.lang.types import UNIT
from river.platform import here
from river.source import Source

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from river.checkpoint import Checkpoint
    from river.il.graph import Graph, View
    from river.il.program import Program
    from river.il.templates import Library
    from river.io.errors import OnError, Refusals
    from river.io.live import Arriving, Live
    from river.io.sinks import ArrowSink, Collector, Sink, TextSink
    from river.lang.evaluate import Trap
    from river.lang.types import Type
    from river.metrics import Metrics, Recorder
    from river.restart import Kept

IL_SUFFIX = ".river"
IL_NAMES = ("river", "il")

Inputs = Mapping[str, Any]
"""Input queue to its data: a path, an Arrow table, a pandas or polars frame, an iterable of dicts or tuples."""


@frozen(slots=False, eq=False)
class Compiled:
    """A program ready to run: River IL, and what people should know about it.

    `lowered`: a frontend has checked and made it; else a person wrote the IL. Made by `compile_source`; `river.compile` is
    the door from Python. `keep` is told the graph when it has been verified.
    """

    program: Program
    warnings: tuple[Diagnostic, ...] = ()
    lowered: bool = False
    keep: Callable[[Graph], None] | None = None

    @cached_property
    def library(self) -> Library:
        """The templates that the program refers to."""
        return library(self.program)

    @cached_property
    def graph(self) -> Graph:
        """The verified program. Raises: Rejected with every error."""
        from river.il.verify import verify

        graph = verify(self.program, self.library)
        if self.keep is not None:
            self.keep(graph)
        return graph

    def tuned(self, passes: str | None) -> Compiled:
        """The program after the passes that a backend asks for (see `river.tuning`)."""
        from river.tuning import tuned

        if passes is None:
            return self
        graph = tuned(self.program, passes, lambda: self.library, lambda: self.graph)
        if graph is None:
            return self
        found = Compiled(graph.program, self.warnings)
        vars(found)["graph"] = graph  # verified already
        return found

    @property
    def text(self) -> str:
        """The program as canonical River IL."""
        from river.il.pretty import pretty

        return pretty(self.program)

    @property
    def inputs(self) -> Mapping[str, Type]:
        """Item types of the input queues, by name."""
        return {name: self.graph.queues[name].type for name in self.graph.inputs}

    @property
    def outputs(self) -> Mapping[str, Type]:
        """Row types of the outputs as they are written (a relation as its change log), by name."""
        from river.io import deltas

        types = {name: self.graph.queues[name].type for name in self.graph.outputs}
        rows = {name: deltas.changelog(t) if deltas.is_delta(t) else t for name, t in types.items()}
        return rows | {view.name: view.type for view in self.graph.views}

    def run(
        self,
        inputs: Inputs,
        outputs: Mapping[str, Any] | None = None,
        *,
        backend: str = "multicore",
        on_error: str = "stop",
        lateness: int = 0,
        iterations: int | None = None,
        live: Live | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
        metrics: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> Results:
        """Runs the program over `inputs`; outputs without a target in `outputs` are collected in memory.

        `outputs` maps names to paths. `on_error` says what happens to rows and items that cannot be taken: `stop`,
        `skip`, or `dead-letter=FILE`. `lateness`: how far back in time, in units of the time stamp (ticks, or
        microseconds), rows may come. `iterations`: so many ticks for the input `clock` of a program that makes its
        own items. `live`: how a run goes on and ends whose inputs do (`river.follow`, `tcp://...`, pipes, iterators that
        wait). `checkpoint`: a folder where the state of the run is kept, so that the same call goes on there after a crash
        (`river.Checkpoint` says how often). `metrics`: a file that gets a JSON object a second
        (docs/cli.md). Further keywords: see `river.backend.Options`.

        Raises: Rejected for everything that is wrong with the program, the data or the arguments.
        """
        from river.checkpoint import Checkpoint as Wanted
        from river.io.errors import OnError as Policy

        job = Job(
            inputs,
            dict(outputs or {}),
            Policy.parse(on_error),
            lateness=lateness,
            iterations=iterations,
            options=Options(**options),
            live=live,
            checkpoint=Wanted(checkpoint) if isinstance(checkpoint, str | os.PathLike) else checkpoint,
            metrics=metrics,
        )
        return execute(self, backend, job)


@frozen(slots=False)
class Job:
    """What to run over: data, targets, the policy for bad rows.

    `formats` states the format of inputs and outputs whose name does not tell; `default` is the target of outputs that
    `outputs` does not name (None: they are collected). `iterations`: how many ticks the input `clock` gets.
    `watch` is called with the number of items read so far. `live`: the inputs go on, and outputs are written as they come.
    `checkpoint`: the state of the run is kept, and it goes on from there. `metrics`: a file for what the run tells of itself.
    """

    inputs: Inputs
    outputs: Mapping[str, Any]
    on_error: OnError
    formats: Mapping[str, str] = field(factory=dict[str, str])
    default: Callable[[str, Type], Any] | None = None
    lateness: int = 0
    iterations: int | None = None
    options: Options = field(factory=Options)
    watch: Callable[[int], None] | None = None
    live: Live | None = None
    checkpoint: Checkpoint | None = None
    metrics: str | os.PathLike[str] | None = None


@frozen(slots=False, eq=False)
class Results:
    """What a run gave.

    `tables`: outputs collected in memory, as Arrow tables; `rows`: how many rows each output got; `variables`: final
    values of the program's variables; `warnings`: rows and items that were skipped.
    """

    collected: Mapping[str, Collector]
    rows: Mapping[str, int]
    summary: Summary
    seconds: float
    read: int
    warnings: tuple[Diagnostic, ...] = ()

    def __getitem__(self, name: str) -> Any:
        """The collected output `name` as a pyarrow.Table."""
        if name not in self.collected:
            known = ", ".join(f"`{k}`" for k in self.collected) or "none"
            raise KeyError(f"no collected output `{name}`; collected: {known}")
        return self.collected[name].table()

    @property
    def tables(self) -> Mapping[str, Any]:
        """All collected outputs as pyarrow.Tables."""
        return {name: self[name] for name in self.collected}

    @property
    def variables(self) -> Mapping[str, Any]:
        """Final values of the program's variables."""
        return self.summary.variables


# ---------------------------------------------------------------------------------------------- compile


def compile_source(source: Source, lang: str | None = None) -> Compiled:
    """A text to River IL. Without `lang` the suffix of the source's name decides.

    Raises: Rejected with syntax and type errors, unknown-language.
    """
    name = lang if lang is not None else _language(source.name)
    if name in IL_NAMES:
        from river.il.parse import parse

        return Compiled(parse(source))
    frontend = plugins.frontend(name)
    typed = frontend.check(frontend.parse(source))
    return Compiled(frontend.lower(typed), frontend.warnings(typed), lowered=True)


def compile_once(source: Source, lang: str | None = None) -> Compiled:
    """The same for a text that is to run: what it says is kept on disk, and neither parsed nor verified another time.

    Raises: Rejected, as `compile_source` does.
    """
    from river.verified import Kept, place

    file = place(source, lang)
    if file is None:
        return compile_source(source, lang)
    found = file.read(source)
    if found is None:
        compiled = compile_source(source, lang)
        warnings, lowered = compiled.warnings, compiled.lowered

        def keep(graph: Graph) -> None:
            file.write(source, Kept(graph, warnings, lowered))

        return evolve(compiled, keep=keep)
    compiled = Compiled(found.graph.program, found.warnings, found.lowered)
    vars(compiled)["graph"] = found.graph
    return compiled


def _language(name: str) -> str:
    suffix = Path(name).suffix
    if suffix == IL_SUFFIX:
        return "river"
    found = plugins.frontend_for_suffix(suffix) if suffix else None
    if found is None:
        languages = ", ".join((*plugins.frontends(), "river"))
        message = f"cannot tell the language of `{name}`"
        raise Rejected(
            [Diagnostic("unknown-language", message, help=f"say it with `--lang`; languages: {languages}")]
        )
    return found.name


def library(program: Program) -> Library:
    """The templates that `program` refers to: River's own, and those of the languages whose namespaces it names."""
    from river.il.program import Instance
    from river.il.templates import Library

    wanted: dict[str, set[str]] = {}
    for decl in program.decls:
        if isinstance(decl, Instance):
            namespace, _, name = decl.template.rpartition(".")
            wanted.setdefault(namespace, set()).add(name)
    languages = sorted(wanted.keys() & set(plugins.frontends()))
    return Library.of({name: _needed(plugins.frontend(name).templates, wanted[name]) for name in languages})


def _needed(files: tuple[Traversable, ...], names: set[str]) -> tuple[Traversable, ...]:
    """The template files that hold `names`, so that the others need not be parsed; all if one of the names is not there.

    A file that declares types or functions is needed in any case: its declarations are for the whole namespace.
    """
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    found = {file: set(re.findall(r"^operator\s+(\w+)", text, re.MULTILINE)) for file, text in texts.items()}
    if not names <= set().union(*found.values()):
        return files
    shared = re.compile(r"^(type|fn)\b", re.MULTILINE)
    return tuple(file for file in files if found[file] & names or shared.search(texts[file]))


def read_source(path: str, text: str | None = None) -> Source:
    """The program text at `path` (or `text`, already read from standard input).

    Raises: Rejected("missing-file"), ("not-text").
    """
    if text is not None:
        return Source("<stdin>" if path == "-" else path, text.removeprefix("\ufeff"))
    try:
        return Source(path, Path(path).read_text(encoding="utf-8-sig"))  # some editors write a mark first
    except UnicodeDecodeError as error:
        message = f"`{path}` is not UTF-8 text (byte {error.start})"
        raise Rejected([Diagnostic("not-text", message)]) from None
    except OSError as error:
        raise Rejected([_missing(path, error)]) from None


def _missing(path: str, error: OSError) -> Diagnostic:
    if isinstance(error, FileNotFoundError):
        folder = Path(path).parent
        near = closest(Path(path).name, [p.name for p in folder.iterdir()]) if folder.is_dir() else None
        return Diagnostic("missing-file", f"there is no file `{path}`", help=near)
    return Diagnostic("missing-file", f"cannot read `{path}`: {(error.strerror or str(error)).lower()}")


# ---------------------------------------------------------------------------------------------- run


def execute(compiled: Compiled, backend: str, job: Job) -> Results:
    """Plans and runs; nothing is left at the outputs' places unless the run ends well.

    Raises: Rejected; KeyboardInterrupt when the user stops it.
    """
    from river.restart import keeper_of

    platform = plugins.backend(backend)
    if job.options.optimize:
        compiled = compiled.tuned(getattr(platform, "passes", None))
    graph = compiled.graph
    _names("input", "--in", graph.inputs, _given(graph, job), required=True)
    _names("output", "--out", (*graph.outputs, *(v.name for v in graph.views)), job.outputs, required=False)
    _targets(job)
    chosen(platform.name, getattr(platform, "experiments", {}), job.options)
    if job.options.deadline is not None and not getattr(platform, "deadlines", False):
        message = f"the backend `{platform.name}` has no deadlines"
        raise Rejected([Diagnostic("run-deadline", message, help="use `multicore`")])
    job, live = _live(job, platform)
    keeper = keeper_of(compiled, platform, job)
    if keeper is None:
        return _execute(compiled, platform, job, live, None)
    keeper.open()
    try:
        if not keeper.complete:
            return _execute(compiled, platform, job, live, keeper)
        summary, rows, read = keeper.ended(compiled)
        return Results({}, rows, summary, 0.0, read, summary.remarks)
    finally:
        keeper.close()


def _execute(
    compiled: Compiled, platform: Backend[Any], job: Job, live: Live, keeper: Kept | None
) -> Results:
    from river.io.batches import Source as Rows
    from river.io.errors import Refusals as Counter
    from river.io.live import Arriving
    from river.io.sinks import Collector

    graph = compiled.graph
    refusals = Counter(job.on_error)
    trapped: list[Diagnostic] = []
    options = job.options if job.on_error.action == "stop" else evolve(job.options, on_trap=trapped.append)
    options = options if keeper is None else evolve(options, keeper=keeper)
    recorder = _recorder(job, platform)
    if recorder is not None:
        options = evolve(options, observe=_both(recorder.take, options.observe))
    plan = platform.plan(graph, here(), options)
    began = time.perf_counter()
    sinks: dict[str, Counted] = {}
    sources: dict[str, Iterable[Items]] = {}
    counter = _Counter(job.watch)
    try:
        try:
            for name in graph.inputs:
                opened = _open(graph, name, job, refusals, live if getattr(platform, "live", False) else None)
                sources[name] = counter.counted(opened)
            _some_live(job, sources.values())
            for name, type_ in compiled.outputs.items():
                sinks[name] = _sink(job, name, type_, keeper)
            if keeper is not None:
                keeper.watch(sinks)
            if recorder is not None:
                recorder.open()
            summary = _run(platform, plan, graph, sources, sinks)
            if recorder is not None and summary.metrics is not None:
                recorder.take(summary.metrics, end=True)
            for view in graph.views:
                sinks[view.name].write(_view_rows(view, summary))
            if keeper is not None:
                described = keeper.describe()
                keeper.describe = lambda: described
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
    return Results(
        {name: counted.sink for name, counted in sinks.items() if isinstance(counted.sink, Collector)},
        {name: counted.rows for name, counted in sinks.items()},
        summary,
        time.perf_counter() - began,
        counter.items if keeper is None else keeper.read,
        (
            *(() if keeper is None else keeper.remarks),
            *summary.remarks,
            *live.remarks,
            *refusals.report(),
            *_skipped(summary, trapped),
        ),
    )


def _recorder(job: Job, platform: Backend[Any]) -> Recorder | None:
    """The file of metrics, if there is to be one. Raises: Rejected("run-metrics")."""
    from river.metrics import Recorder as File

    if job.metrics is None:
        return None
    if not getattr(platform, "metrics", False):
        message = f"the backend `{platform.name}` tells nothing of its runs"
        raise Rejected([Diagnostic("run-metrics", message, help="use `multicore`")])
    return File(job.metrics)


def _both(
    first: Callable[[Metrics], None], second: Callable[[Metrics], None] | None
) -> Callable[[Metrics], None]:
    if second is None:
        return first

    def tell(metrics: Metrics) -> None:
        first(metrics)
        second(metrics)

    return tell


def _targets(job: Job) -> None:
    """Raises: Rejected("data-output") when two outputs would go to the same file: one of them would be lost."""
    taken: dict[Path, str] = {}
    given = [(f"output `{name}`", target) for name, target in job.outputs.items()]
    for owner, target in (*given, ("the dead letters", job.on_error.path), ("the metrics", job.metrics)):
        if not isinstance(target, str | os.PathLike):
            continue
        path = Path(cast("str | os.PathLike[str]", target))
        if path.exists() and not path.is_file():
            continue  # a device or a pipe takes what comes
        other = taken.setdefault(path.resolve(), owner)
        if other != owner:
            message = f"{other} and {owner} cannot both go to `{path}`"
            raise Rejected([Diagnostic("data-output", message, help="name a file for each")])


def _run(
    platform: Backend[Any],
    plan: Any,
    graph: Graph,
    sources: Mapping[str, Iterable[Items]],
    sinks: Mapping[str, Counted],
) -> Summary:
    from river.lang.evaluate import Trap

    writers = {name: Writer(graph.queues[name].type, sinks[name]) for name in graph.outputs}
    try:
        return platform.run(plan, sources, writers)
    except Trap as trap:
        raise Rejected([trap_diagnostic(trap)]) from trap


def trap_diagnostic(trap: Trap) -> Diagnostic:
    """A trap for people: its place and reason, and the item that was being handled."""
    found = trap.diagnostic()
    if trap.item is None:
        return found
    from river.io.encode import encoder

    type_, item = trap.item
    return evolve(found, notes=(*found.notes, Note(f"while handling the item {encoder(type_)(item)}")))


@define(eq=False)
class Writer:
    """What takes the items of an output, which are of `type`: a delta is written as its rows in the change log."""

    type: Type
    sink: Counted

    def __call__(self, items: Items) -> None:
        """Writes items."""
        from river.io import deltas

        if deltas.is_delta(self.type):
            items = [row for item in items for row in deltas.changelog_rows(item)]
        self.sink.write(items)


def _view_rows(view: View, summary: Summary) -> list[Any]:
    from calculus.program import Fault
    from river.il.observe import contents
    from river.lang.evaluate import Trap

    try:
        return list(contents(view, summary.variables[view.variable]))
    except Fault as fault:
        if isinstance(fault.__cause__, Trap):
            raise Rejected([trap_diagnostic(fault.__cause__)]) from fault
        raise


def _names(what: str, flag: str, known: Iterable[str], given: Iterable[str], *, required: bool) -> None:
    known, given = tuple(known), tuple(given)
    shown = ", ".join(f"`{k}`" for k in known) or "none"
    errors = [
        Diagnostic(
            f"unknown-{what}",
            f"the program has no {what} `{name}`",
            help=closest(name, known) or f"{what}s: {shown}",
        )
        for name in given
        if name not in known
    ]
    if required:
        errors += [
            Diagnostic(
                f"missing-{what}",
                f"{what} `{name}` has no data",
                help="say how often: `--iterations N`" if name == CLOCK else f"give it: `{flag} {name}=FILE`",
            )
            for name in known
            if name not in given
        ]
    if errors:
        raise Rejected(errors)


CLOCK = "clock"
"""The input, of type unit, whose items are the iterations of a program that makes its own items (il.md P9)."""


def _given(graph: Graph, job: Job) -> Inputs:
    """The inputs that have data, the clock among them when iterations are asked for."""
    if job.iterations is None:
        return job.inputs
    if CLOCK not in graph.inputs or graph.queues[CLOCK].type != UNIT:
        message = f"the program has no input `{CLOCK}`, whose iterations could be counted"
        raise Rejected([Diagnostic("run-iterations", message, help="it runs as long as it gets data")])
    if CLOCK in job.inputs:
        raise Rejected(
            [Diagnostic("run-iterations", f"`{CLOCK}` is given iterations and data: one is enough")]
        )
    return {**job.inputs, CLOCK: _ticks(job.iterations, job.options.batch)}


def _ticks(count: int, batch: int) -> Iterator[Items]:
    for start in range(0, count, batch):
        yield [()] * min(batch, count - start)


def _live(job: Job, platform: Backend[Any]) -> tuple[Job, Live]:
    """The job with `live` where one of its inputs asks for that, and how its run goes on in any case.

    Raises: Rejected("run-live") where the backend cannot do what was asked for.
    """
    from river.io.live import Live, asked

    live = Live() if job.live is None else job.live
    live.lateness = job.lateness
    wanted = [name for name, spec in job.inputs.items() if asked(spec)]
    if not wanted and job.live is None:
        return job, live
    if not getattr(platform, "live", False):
        what = f"input `{wanted[0]}` is live" if wanted else "the run is to be live"
        message = f"{what}, and the backend `{platform.name}` reads inputs to their end"
        raise Rejected([Diagnostic("run-live", message, help="use `multicore`")])
    return evolve(job, live=live), live


def _some_live(job: Job, sources: Iterable[object]) -> None:
    """Raises: Rejected("run-live") where a live run has no live input: what was said of it would have no effect."""
    from river.io.live import Arriving

    if job.live is not None and not any(isinstance(source, Arriving) for source in sources):
        help_ = "follow a file or a folder, read a pipe, or listen at `tcp://127.0.0.1:PORT`"
        raise Rejected([Diagnostic("run-live", "the run is to be live, and no input is", help=help_)])


def _open(
    graph: Graph, name: str, job: Job, refusals: Refusals, live: Live | None
) -> Iterable[Items] | Arriving:
    """The source of input `name`; `live`: for inputs that go on, None where the backend cannot read them as they come."""
    from river.io.live import arriving
    from river.io.sources import open_source

    queue, format_ = graph.queues[name], job.formats.get(name)
    if name == CLOCK and job.iterations is not None:
        return _ticks(job.iterations, job.options.batch)
    spec, batch = job.inputs[name], job.options.batch
    if live is not None:
        found = arriving(spec, queue.type, live, name=name, refusals=refusals, format=format_, batch=batch)
        if found is not None:
            return found
    return open_source(
        spec,
        queue.type,
        name=name,
        format=format_,
        on_error=refusals,
        batch=batch,
        by=queue.by,
        lateness=job.lateness,
    )


def _sink(job: Job, name: str, type_: Type, keeper: Kept | None) -> Counted:
    from river.io.sinks import open_sink

    position, rows = (None, 0) if keeper is None else keeper.position(name)
    if name not in job.outputs and job.default is not None:
        return Counted(job.default(name, type_), rows)
    target, format_ = job.outputs.get(name), job.formats.get(name)
    in_place = job.live is not None or keeper is not None
    sink = open_sink(target, type_, name=name, format=format_, in_place=in_place, resume=position)
    return Counted(sink, rows)


@define
class Counted:
    """A sink that knows how many rows it got."""

    sink: Sink
    rows: int = 0

    def write(self, items: Items) -> None:
        """Passes the rows on."""
        self.rows += len(items)
        self.sink.write(items)

    def write_bytes(self, data: bytes | memoryview, rows: int) -> None:
        """Passes lines on, to a `TextSink`."""
        self.rows += rows
        cast("TextSink", self.sink).write_bytes(data)

    def write_table(self, batch: Any) -> None:
        """Passes an Arrow record batch on, to an `ArrowSink`."""
        self.rows += batch.num_rows
        cast("ArrowSink", self.sink).write_table(batch)


@define
class _Counter:
    """Counts the items that sources give, for people."""

    watch: Callable[[int], None] | None
    items: int = field(default=0, init=False)

    def counted(self, source: Iterable[Items] | Arriving) -> Iterable[Items]:
        """`source`, counted."""
        from river.io.live import Arriving

        if isinstance(source, Arriving):
            source.count = self.add
            return source
        return Reading(source, self.add)

    def add(self, items: int) -> None:
        """So many more have been read."""
        self.items += items
        if self.watch is not None:
            self.watch(self.items)


@define(eq=False)
class Reading:
    """A source that counts the items read.

    Who reads what is behind `source` by other means says how many items these are, with `count`.
    """

    source: Iterable[Items]
    count: Callable[[int], None]

    def __iter__(self) -> Iterator[Items]:
        for batch in self.source:
            self.count(len(batch))
            yield batch


def _skipped(summary: Summary, trapped: list[Diagnostic]) -> list[Diagnostic]:
    total = sum(summary.skipped.values())
    if not total:
        return []
    message = f"{total} item{'s' * (total != 1)} skipped because an operator trapped"
    if not trapped:  # all of them before the checkpoint from which the run went on
        return [Diagnostic("run-skipped", message, severity=Severity.WARNING)]
    first = trapped[0]
    return [
        Diagnostic("run-skipped", message, first.span, Severity.WARNING, (Note(f"first: {first.message}"),))
    ]


# ---------------------------------------------------------------------------------------------- check


@frozen
class Comparison:
    """One backend against the first: `differences` is empty when they agree.

    `refused`: why it cannot run this program here; then it was not compared.
    """

    backend: str
    rows: Mapping[str, int]
    seconds: float
    differences: tuple[str, ...] = ()
    refused: tuple[Diagnostic, ...] = ()


def compare(
    compiled: Compiled, job: Job, backends: Iterable[str], *, named: bool = True
) -> Iterator[Comparison]:
    """Runs on every backend and compares outputs and variables with the first, the reference, one after the other.

    Inputs are read once. `named`: somebody asked for just these backends, so one that cannot run is an error; else it is
    told in `refused`. Raises: Rejected("check-nondeterministic") when the program is not deterministic by construction,
    because then one run of each proves nothing.
    """
    graph = compiled.graph
    if not graph.deterministic:
        remarks = tuple(Note(r.message, r.span) for r in graph.remarks if r.code == "il-not-deterministic")
        message = "the program is not deterministic by construction: its backends may rightly differ"
        raise Rejected([Diagnostic("check-nondeterministic", message, notes=remarks)])
    from river.io.errors import Refusals as Counter
    from river.io.live import asked

    refusals = Counter(job.on_error)
    _names("input", "--in", graph.inputs, _given(graph, job), required=True)
    for name, spec in job.inputs.items():
        if asked(spec):
            message = f"input `{name}` is live: it has no end up to which backends could be compared"
            raise Rejected(
                [Diagnostic("check-live", message, help="keep what comes in a file, and check with that")]
            )
    data = {
        name: [item for batch in _open(graph, name, job, refusals, None) for item in batch]
        for name in graph.inputs
    }
    expected: Mapping[str, Any] | None = None
    for name in backends:
        began = time.perf_counter()
        try:
            seen = observe(compiled, name, data, job.options)
        except Rejected as rejected:
            if named or expected is None:
                raise
            yield Comparison(name, {}, 0.0, refused=rejected.diagnostics)
            continue
        seconds = time.perf_counter() - began
        expected = seen if expected is None else expected
        rows = {n: len(v) for n, v in seen.items() if not n.startswith("$") and hasattr(v, "__len__")}
        yield Comparison(name, rows, seconds, _differences(expected, seen))


def observe(
    compiled: Compiled, backend: str, data: Mapping[str, list[Any]], options: Options
) -> Mapping[str, Any]:
    """What a backend's run shows: outputs as sequences of items, views as rows, variables in canonical form.

    A relation's delta is compared as two bags. A trap shows as `trap`: its code and site.
    """
    from river.il.observe import observed_variables, rows
    from river.io import deltas
    from river.lang.evaluate import Trap

    graph = compiled.graph
    platform = plugins.backend(backend)
    outputs: dict[str, list[Any]] = {name: [] for name in graph.outputs}
    plan = platform.plan(graph, here(), options)
    step = options.batch
    sources = {
        name: [items[i : i + step] for i in range(0, len(items), step)] for name, items in data.items()
    }
    try:
        summary = platform.run(plan, sources, {name: got.extend for name, got in outputs.items()})
    except Trap as trap:
        return {"trap": (trap.code, trap.operator, trap.site)}
    seen: dict[str, Any] = {}
    for name, got in outputs.items():
        delta = deltas.is_delta(graph.queues[name].type)
        seen[name] = tuple(deltas.canonical(item) for item in got) if delta else tuple(got)
    for view in graph.views:
        seen[view.name] = rows(view, summary.variables[view.variable])
    return seen | {f"${name}": v for name, v in observed_variables(graph, summary.variables).items()}


def _differences(expected: Mapping[str, Any], seen: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        _difference(name, expected.get(name), seen.get(name))
        for name in dict.fromkeys((*expected, *seen))
        if (expected.get(name),) != (seen.get(name),)
    )


def _difference(name: str, a: Any, b: Any) -> str:
    if isinstance(a, tuple) and isinstance(b, tuple) and not name.startswith("$"):
        a, b = cast("tuple[Any, ...]", a), cast("tuple[Any, ...]", b)
        for i, (x, y) in enumerate(zip(a, b, strict=False)):
            if (x,) != (y,):
                return f"`{name}` differs from item {i + 1} on: {x!r} against {y!r}"
        return f"`{name}` has {len(a)} items against {len(b)}"
    return f"`{name}` differs: {a!r} against {b!r}"
