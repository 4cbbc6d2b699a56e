"""The laws of languages and of backends. Each function here fails with `Broken` unless its law holds.

`conformance` asks them of plugins over many programs; ours are asked the same. The laws of passes: `pass_laws`.
Paper: River §2 (what a result is), §3.5 (parser, type checker, code generator).
"""

from __future__ import annotations

import threading
import time
from itertools import count
from typing import TYPE_CHECKING, Any, Final, cast

from calculus import FirstCome, outcomes, run
from calculus.observe import Faulted, Finished
from river.classes import define, evolve, field
from river.diagnostics import Diagnostic, Rejected, Severity
from river.driver import library
from river.il.erase import erase, inputs
from river.il.observe import Observation, observe
from river.il.parse import parse
from river.il.pretty import pretty
from river.il.templates import Library
from river.il.verify import verify
from river.io import deltas
from river.lang.evaluate import Trap
from river.platform import Platform
from river.source import Source
from river.tuning import tuned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from river.backend import Backend, Items, Options
    from river.frontend import Frontend
    from river.il.graph import Graph
    from river.il.program import Program

REGIONS: Final = "fission{auto=true,rules=runtime}"
"""The pass by which operators run on several workers wherever that is safe, and that changes nothing else."""

PATIENCE: Final = 5.0
"""Seconds in which the threads of a run have to end after it."""


class Broken(AssertionError):  # noqa: N818 - the name says what happened to the law
    """A law does not hold; the message shows what broke it."""


def hold(law: bool, said: str) -> None:
    """Raises: Broken, unless `law`."""
    if not law:
        raise Broken(said)


# ---------------------------------------------------------------------------------------------------------- languages


def check_text(
    frontend: Frontend[Any, Any], source: Source, library: Library, *, deterministic: bool
) -> Program | None:
    """What the frontend makes of any text at all: a program that is one, or None where it refuses with reasons.

    What `check` accepts, `lower` makes a program of, twice the same; it verifies, it prints and reads as itself, every use
    says where it comes from, and if `deterministic` it is so by construction (il.md P1). A refusal says where and why.
    """
    typed = _accepted(frontend, source)
    if typed is None:
        return None
    with _total("lower", source):
        program, warnings = frontend.lower(typed), frontend.warnings(typed)
    with _total("parse, check or lower, at the second time,", source):
        again = frontend.lower(frontend.check(frontend.parse(source)))
    hold(program == again, f"the same text makes different programs\n{source.text}")
    with _total("verification of what `lower` made", source):
        graph = verify(program, library)
    check_prints(program)
    check_places(program, source)
    for warning in warnings:
        hold(warning.severity is not Severity.ERROR, f"an error among the warnings: {warning}\n{source.text}")
        _located(warning, source)
    if deterministic:
        remarks = "\n".join(r.message for r in graph.remarks)
        hold(graph.deterministic, f"not deterministic by construction: {remarks}\n{source.text}")
    return program


def check_prints(program: Program) -> None:
    """The text of a program means the program, and is the text of what it means."""
    text = pretty(program)
    again = parse(Source("printed.river", text))
    hold(again == program, f"this text reads as another program\n{text}")
    hold(pretty(again) == text, f"this text prints in another way\n{text}")


def check_places(program: Program, source: Source) -> None:
    """Every use of an operator knows from which part of `source` it comes: messages and traps point there."""
    for use in program.uses:
        inside = (
            use.span is not None
            and use.span.source == source
            and _inside(use.span.start, use.span.end, source)
        )
        hold(inside, f"the use of `{use.operator}` comes from {use.span}, not from\n{source.text}")


def _accepted(frontend: Frontend[Any, Any], source: Source) -> Any:
    try:
        return frontend.check(frontend.parse(source))
    except Rejected as rejected:
        hold(bool(rejected.diagnostics), f"refused without a reason\n{source.text}")
        hold(
            any(d.severity is Severity.ERROR for d in rejected.diagnostics),
            f"refused without an error\n{source.text}",
        )
        for diagnostic in rejected.diagnostics:
            _located(diagnostic, source)
        return None
    except Exception as error:
        message = (
            f"a text is refused with diagnostics, not with {type(error).__name__}: {error}\n{source.text}"
        )
        raise Broken(message) from error


def _located(diagnostic: Diagnostic, source: Source) -> None:
    spans = [diagnostic.span, *(note.span for note in diagnostic.notes if note.span is not None)]
    for span in spans:
        inside = span is not None and span.source == source and _inside(span.start, span.end, source)
        hold(inside, f"[{diagnostic.code}] {diagnostic.message}: said of {span}, not of\n{source.text}")


def _inside(start: int, end: int, source: Source) -> bool:
    return 0 <= start <= end <= len(source.text)


@define
class _total:  # noqa: N801 - reads as a word of the `with` statement
    """Nothing raised inside is right."""

    arrow: str
    source: Source

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception):
            message = f"{self.arrow} fails on a checked text with {type(error).__name__}: {error}\n{self.source.text}"
            raise Broken(message) from error


# ----------------------------------------------------------------------------------------------------------- backends


@define
class Execution:
    """What a run of a backend did: items delivered by output, and how it ended."""

    outputs: Mapping[str, list[Any]]
    seen: Observation | None = None
    trap: Trap | None = None
    skipped: int = 0
    reported: list[Diagnostic] = field(factory=list[Diagnostic])


def executed(
    backend: Backend[Any],
    graph: Graph,
    data: Mapping[str, Sequence[Any]],
    platform: Platform,
    options: Options,
    *,
    size: int = 3,
    skip: bool = False,
    passes: str = REGIONS,
) -> Execution:
    """One run over batches of `size`; with `skip`, items at which stateless operators trap are skipped.

    The program goes through `passes` first.
    """
    found = Execution({name: [] for name in graph.outputs})
    options = evolve(options, on_trap=found.reported.append) if skip else options
    plan = backend.plan(after(graph, passes, options.workers or platform.cores), platform, options)
    sources = {name: _batches(data.get(name, ()), size) for name in graph.inputs}
    try:
        summary = backend.run(plan, sources, {name: items.extend for name, items in found.outputs.items()})
    except Trap as trap:
        found.trap = trap
        return found
    outputs = tuple((name, tuple(items)) for name, items in found.outputs.items())
    seen = observe(graph, Finished(outputs, tuple(summary.variables.items())))
    hold(isinstance(seen, Observation), "a view of the final variables traps")
    assert isinstance(seen, Observation)  # noqa: S101 - said in the line before
    found.seen, found.skipped = seen, sum(summary.skipped.values())
    return found


def after(graph: Graph, passes: str, cores: int) -> Graph:
    """The verified program after `passes`, for a machine with so many cores."""
    return tuned(graph, library(graph.program), passes, Platform(cores))[0]


def _batches(items: Sequence[Any], size: int) -> list[Items]:
    return [list(items[i : i + size]) for i in range(0, len(items), size)]


def meaning(graph: Graph, data: Mapping[str, Sequence[Any]]) -> Observation | Faulted:
    """What the calculus computes, under one schedule."""
    outcome = run(erase(graph), inputs(graph, data), FirstCome()).outcome
    if outcome is None:
        raise Broken("the calculus does not end")
    return observe(graph, outcome)


def check_agrees(
    backend: Backend[Any],
    graph: Graph,
    data: Mapping[str, Sequence[Any]],
    platform: Platform,
    ways: Iterable[Options],
    *,
    size: int = 3,
) -> None:
    """A deterministic program gives what the calculus computes, in whatever way it runs; if that traps, a trap."""
    expected = meaning(graph, data)
    for options in ways:
        found = executed(backend, graph, data, platform, options, size=size)
        shown = f"batch {options.batch}, {options.workers} workers, bound {options.bound}, on\n{pretty(graph.program)}\n{data}"
        if isinstance(expected, Faulted):
            hold(found.trap is not None, f"no trap: {shown}")
        else:
            hold(found.trap is None, f"traps with {found.trap}: {shown}")
            same = _bags(graph, found.seen) == _bags(graph, expected)
            hold(same, f"{found.seen}\nnot\n{expected}\n{shown}")


def _bags(graph: Graph, seen: Observation | None) -> object:
    """What is seen, the rows of each delta as a bag: who makes the rows of an instant may order them as he likes."""
    if seen is None:
        return None
    found: list[tuple[str, list[Any]]] = [
        (
            name,
            [deltas.canonical(item) for item in items]
            if deltas.is_delta(graph.queues[name].type)
            else list(items),
        )
        for name, items in seen.outputs
    ]
    return found, seen.views, seen.variables


def check_possible(
    backend: Backend[Any],
    graph: Graph,
    data: Mapping[str, Sequence[Any]],
    platform: Platform,
    options: Options,
    limit: int = 3_000,
) -> None:
    """What any program gives is one of its outcomes in the calculus, as far as `limit` configurations tell all of them."""
    found = executed(backend, graph, data, platform, options, size=1)
    explored = outcomes(erase(graph), inputs(graph, data), limit=limit)
    if explored.complete:
        possible = [observe(graph, outcome) for outcome in explored.outcomes]
        shown = f"{pretty(graph.program)}\n{data}"
        hold(found.seen in possible, f"{found.seen} is none of {len(possible)} outcomes of\n{shown}")


TRAPS: Final = """river 1;
input xs: i64; output ys: i64; var $s: i64 = 0;
operator before(x: i64) -> (y: i64) { on x(v) { if v != 99 { emit y v; } } }
operator divide(x: i64) -> (y: i64) { on x(v) { emit y div.trunc(12, v); } }
operator sum(x: i64; $s: i64) -> (y: i64) { on x(v) { $s = $s +% v; emit y $s; } }
(a) <- before(xs); (b) <- divide(a); (ys, $s) <- sum(b, $s);
"""
"""Traps at every 0."""


def check_traps(
    backend: Backend[Any],
    items: Sequence[int],
    platform: Platform,
    options: Options,
    *,
    batch: bool = False,
) -> None:
    """A trap has the site and the item that the calculus says; what came before is delivered, nothing after (il.md P10).

    A `batch` backend delivers nothing of a run that traps. Where stateless firings that trap may be skipped, the result is
    that of the other items, and each is reported.
    """
    graph = verify(parse(Source("traps.river", TRAPS)), Library.of({}))
    data = {"xs": items}
    first = next((i for i, item in enumerate(items) if item == 0), len(items))
    expected = meaning(graph, data)
    found = executed(backend, graph, data, platform, options)
    if isinstance(expected, Faulted):
        trap = found.trap
        _, site, code, _ = cast("tuple[Any, ...]", expected.info)
        said = None if trap is None else (trap.site, trap.code, trap.item and trap.item[1])
        hold(said == (site, code, 0), f"trap (site, code, item) {said}, not {(site, code, 0)}, on {items}")
    else:
        hold(found.trap is None, f"traps with {found.trap} on {items}")
    complete = meaning(graph, {"xs": items[:first]})
    before = dict(complete.outputs)["ys"] if isinstance(complete, Observation) else ()
    delivered = tuple(found.outputs["ys"])
    before = () if batch and first < len(items) else before
    hold(delivered == before, f"delivered {delivered}, not {before}, of {items}")
    rest = [item for item in items if item != 0]
    skipping = executed(backend, graph, data, platform, options, skip=True)
    hold(
        skipping.seen == meaning(graph, {"xs": rest}), f"skipping the zeros of {items} gives {skipping.seen}"
    )
    counts = skipping.skipped, len(skipping.reported)
    hold(counts == (len(items) - len(rest),) * 2, f"(skipped, reported) is {counts} for {items}")


class _Failure(Exception):  # noqa: N818 - what the world outside raises
    """Raised by a source or a sink."""


ALONG: Final = """river 1;
input xs: i64; output ys: i64; operator same(x: i64) -> (y: i64) { on x(v) { emit y v; } } (ys) <- same(xs);
"""


def check_ends(backend: Backend[Any], platform: Platform, options: Options) -> None:
    """What a source or a sink raises comes out of `run`; a run that is told to stop raises KeyboardInterrupt.

    A plan is a value: it can be run again after each of these.
    """
    graph = verify(parse(Source("along.river", ALONG)), Library.of({}))
    asked = count()
    options = evolve(options, stopping=lambda: next(asked) > 3)
    stopping = backend.plan(graph, platform, options)
    plan = backend.plan(graph, platform, evolve(options, stopping=lambda: False))

    def failing() -> Iterator[Items]:
        yield [1, 2]
        raise _Failure

    def refuse(_: Items) -> None:
        raise _Failure

    def endless() -> Iterator[Items]:
        for i in count():
            yield [i] * 64

    found: list[Any] = []
    _raises(_Failure, lambda: backend.run(plan, {"xs": failing()}, {"ys": lambda _: None}), "a source fails")
    _raises(_Failure, lambda: backend.run(plan, {"xs": endless()}, {"ys": refuse}), "a sink fails")
    _raises(
        KeyboardInterrupt,
        lambda: backend.run(stopping, {"xs": endless()}, {"ys": lambda _: None}),
        "told to stop",
    )
    backend.run(plan, {"xs": [[1], [2, 3]]}, {"ys": found.extend})
    hold(found == [1, 2, 3], f"a plan that is run again gives {found}, not [1, 2, 3]")


def _raises(kind: type[BaseException], act: Callable[[], object], when: str) -> None:
    try:
        act()
    except kind:
        return
    raise Broken(f"{when}, and `run` ends well")


def check_no_thread_left(before: Iterable[threading.Thread]) -> None:
    """No thread runs that did not run before; one that ends is waited for."""
    known, end = set(before), time.monotonic() + PATIENCE
    left = set(threading.enumerate()) - known
    while left and time.monotonic() < end:
        time.sleep(0.01)
        left = set(threading.enumerate()) - known
    hold(not left, f"threads are left: {', '.join(sorted(t.name for t in left))}")
