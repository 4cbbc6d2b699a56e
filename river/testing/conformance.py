"""What a plugin promises, as three functions to call from its tests. Ours are called on our own plugins.

    check_frontend(MY_FRONTEND, [Path("examples/a.mine").read_text()])
    check_pass(MyPass(), cases=[Case(text, data)])
    check_backend(MY_BACKEND)

Each raises `laws.Broken`, an AssertionError that shows the program at fault; the examples that are searched shrink.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from river.backend import Options
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.nesting import room
from river.passes import pipeline, show
from river.platform import Platform
from river.source import Source
from river.testing import laws, pass_laws
from river.testing.graph_strategies import contents, graphs
from river.testing.program_strategies import ProgramCase, delta_cases, item_cases
from river.testing.text_strategies import broken

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from river.backend import Backend
    from river.frontend import Frontend
    from river.passes import Pass

TWO = Platform(cores=2, machines=2)
WAYS = st.builds(
    Options,
    batch=st.sampled_from([1, 2, 7, 4096]),
    workers=st.sampled_from([1, 2, 4]),
    bound=st.sampled_from([1, 2, 5, 64]),
)
"""Ways to run, none of which changes the result of a deterministic program."""

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
"""What hypothesis may not complain of."""


def check_frontend(
    frontend: Frontend[Any, Any],
    texts: Iterable[str | Source],
    *,
    deterministic: bool = True,
    examples: int = 50,
) -> None:
    """A language: `texts` are programs of it, at least one.

    They are accepted; the programs made of them verify, print, know their places, and are deterministic by construction if
    that is claimed. `examples` texts that are nearly programs are made of them, and are refused with diagnostics that
    have places in the text, or accepted with all of the same: whatever a person writes, nothing else is raised.
    """
    sources = [t if isinstance(t, Source) else Source(f"text{frontend.suffix}", t) for t in texts]
    laws.hold(bool(sources), "no programs to check with")
    laws.hold(
        frontend.suffix.startswith(".") and len(frontend.suffix) > 1, f"`{frontend.suffix}` is no suffix"
    )
    library = Library.of({frontend.name: frontend.templates})
    for source in sources:
        made = laws.check_text(frontend, source, library, deterministic=deterministic)
        if made is None:
            frontend.check(frontend.parse(source))  # raises the reasons
        laws.hold(made is not None, f"refused only once\n{source.text}")
    words = [source.text for source in sources]

    @_searched(examples)
    @given(broken(words))
    def any_text(text: str) -> None:
        source = Source(f"broken{frontend.suffix}", text)
        laws.check_text(frontend, source, library, deterministic=deterministic)

    any_text()


def check_pass(
    pass_: Pass[Any], *, cases: Sequence[ProgramCase] = (), library: Library | None = None, examples: int = 50
) -> None:
    """An optimization: it keeps the interface and what programs compute, and twice is once.

    Programs are `cases`, in each of which the pass has to find something to do, and `examples` random ones. What they
    compute afterwards is a non-empty subset of what they could compute before. `library` holds templates that they name.
    """
    known = Library.of({}) if library is None else library
    laws.hold(
        pipeline(show((pass_,)), lambda _: type(pass_)) == (pass_,), f"`{show((pass_,))}` names another pass"
    )

    def check(case: ProgramCase) -> None:
        after = pass_laws.check_pipeline(case.program, (pass_,), TWO, known, case.data)
        again = pass_laws.rewritten(case.program, (pass_,), TWO, known)
        laws.hold(after == again, f"the same program is rewritten in two ways\n{case.text}")
        laws.check_prints(after)
        pass_laws.check_idempotent(case.program, pass_, TWO, known)

    for case in cases:
        check(case)
        changed = pass_laws.rewritten(case.program, (pass_,), TWO, known) != case.program
        laws.hold(changed, f"`{pass_.name}` finds nothing to do in\n{case.text}")

    @_searched(examples)
    @given(item_cases() | delta_cases())
    def any_program(case: ProgramCase) -> None:
        check(case)

    any_program()


def check_backend(
    backend: Backend[Any], *, platform: Platform = TWO, examples: int = 50, batch: bool = False
) -> None:
    """A platform: results are what the calculus says, for every batch size, number of workers and bound of queues.

    Programs that are deterministic by construction give what it computes, others one of its outcomes; traps have their
    site and item; failures of sources and sinks come out; a stopped run stops; and no run leaves a thread behind, except
    that the first may start what all share.

    `batch`: the platform reads its inputs to their end before it delivers anything; then an endless input is not tried,
    and a run that traps delivers nothing.
    """
    library = Library.of({})
    one = Options(workers=1, batch=1, bound=1)
    laws.check_traps(backend, [1], platform, one, batch=batch)  # what all runs share is started
    if not batch:
        with _threads():
            laws.check_ends(backend, platform, Options(workers=2, batch=2))

    @_searched(examples)
    @given(graphs(7), contents(20), st.lists(WAYS, min_size=2, max_size=2), st.integers(1, 9))
    def deterministic(text: str, data: Any, ways: list[Options], size: int) -> None:
        graph = verify(parse(Source("graph.river", text)), library)
        given_ = {name: data[name] for name in graph.inputs}
        with _threads():
            laws.check_agrees(backend, graph, given_, platform, ways, size=size)

    @_searched(examples)
    @given(item_cases(items=8) | delta_cases(items=6), st.lists(WAYS, min_size=2, max_size=2))
    def small(case: ProgramCase, ways: list[Options]) -> None:
        with _threads():
            laws.check_agrees(backend, verify(case.program, library), case.data, platform, ways)

    @_searched(examples)
    @given(st.lists(st.integers(-3, 3), max_size=12), WAYS)
    def trapping(items: list[int], options: Options) -> None:
        with _threads():
            laws.check_traps(backend, items, platform, options, batch=batch)

    @_searched(max(1, examples // 2))
    @given(graphs(2, free=True), contents(2, 1), WAYS)
    def free(text: str, data: Any, options: Options) -> None:
        graph = verify(parse(Source("free.river", text)), library)
        given_ = {name: data[name] for name in graph.inputs}
        with _threads():
            laws.check_possible(backend, graph, given_, platform, options)

    for law in (deterministic, small, trapping, free):
        law()


def _searched(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A search of that many examples, however long each takes."""
    room()  # now: Hypothesis minds if the limit of nested calls changes while it runs
    return settings(max_examples=examples, deadline=None, suppress_health_check=SLOW)


@contextmanager
def _threads() -> Generator[None]:
    before = threading.enumerate()
    yield
    laws.check_no_thread_left(before)
