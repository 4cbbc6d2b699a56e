"""The contracts of `river.testing` are broken by plugins that break them: each law, by one that does."""

from __future__ import annotations

import threading
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, cast

import pytest
from attrs import evolve, frozen
from hypothesis import Phase, settings

from river import plugins
from river.backend import Summary
from river.diagnostics import Diagnostic, Rejected, Severity
from river.il import program as p
from river.il.parse import parse
from river.lang import syntax as s
from river.lang.evaluate import Trap
from river.source import Source, Span
from river.testing import check_backend, check_frontend, check_pass
from river.testing.laws import Broken
from river.testing.program_strategies import ProgramCase

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

PROGRAM = "river 1;\ninput a: i64;\noutput b: i64;\noperator f(x: i64) -> (y: i64) { on x(v) { emit y v; } }\n(b) <- f(a);\n"


@pytest.fixture(autouse=True)
def _as_found() -> Generator[None]:
    """Failing examples are wanted here: they are taken as they are found, and not kept."""
    before = settings()
    settings.register_profile("as-found", before, phases=[Phase.generate], database=None)
    settings.load_profile("as-found")
    yield
    settings.register_profile("before", before)
    settings.load_profile("before")


class Plain:
    """River IL itself as a language: right, until a test spoils it."""

    name: ClassVar[str] = "plain"
    suffix: ClassVar[str] = ".plain"
    templates = ()

    def parse(self, source: Source, /) -> Any:
        return parse(source)

    def check(self, ast: Any, /) -> Any:
        from river.il.templates import Library
        from river.il.verify import verify

        return verify(ast, Library.of({}))

    def lower(self, typed: Any, /) -> Any:
        return typed.program

    def warnings(self, typed: Any, /) -> Any:
        return ()


def spoilt(**methods: Any) -> Any:
    """The language with some of its methods replaced."""
    return type("Spoilt", (Plain,), methods)()


def error(span: Span | None) -> Diagnostic:
    return Diagnostic("plain-no", "no", span)


def refusing(*diagnostics: Diagnostic) -> Callable[..., Any]:
    def check(self: Plain, ast: p.Program) -> Any:
        if ast != parse(Source("text.plain", PROGRAM)):
            raise Rejected(diagnostics)
        return Plain.check(self, ast)

    return check


def fail(*_: Any) -> Any:
    raise ValueError("oops")


def failing_on_two(self: Plain, source: Source) -> Any:
    return parse(source) if source.text.count(";") == PROGRAM.count(";") else fail()


numbers = count()
TWO_READERS = """river 1;
input a: i64; input c: i64; output b: i64;
operator f(x: i64, z: i64) -> (y: i64) { on x(v) { emit y v; } on z(v) { emit y v; } }
(b) <- f(a, c);
"""


def test_a_right_language_passes() -> None:
    check_frontend(Plain(), [PROGRAM], examples=60)


@pytest.mark.parametrize(
    ("language", "said"),
    [
        (spoilt(parse=failing_on_two), "not with ValueError"),
        (spoilt(lower=fail), "lower fails on a checked text with ValueError"),
        (
            spoilt(lower=lambda _s, t: evolve_uses(t.program, operator=f"f{next(numbers)}")),
            "makes different programs",
        ),
        (
            spoilt(lower=lambda _s, t: evolve_uses(t.program, operator="g")),
            "verification of what `lower` made",
        ),
        (spoilt(lower=lambda _s, t: evolve_uses(t.program, span=None)), "comes from None"),
        (spoilt(check=refusing()), "refused without a reason"),
        (spoilt(check=refusing(error(None))), "said of None"),
        (spoilt(check=refusing(evolve(error(None), severity=Severity.REMARK))), "refused without an error"),
        (spoilt(warnings=lambda _s, t: (error(t.program.uses[0].span),)), "an error among the warnings"),
        (spoilt(suffix="plain"), "is no suffix"),
    ],
)
def test_languages_that_break_a_law(language: Any, said: str) -> None:
    with pytest.raises(Broken, match=said):
        check_frontend(language, [PROGRAM], examples=200)


def test_a_language_that_claims_what_is_not_so() -> None:
    check_frontend(Plain(), [TWO_READERS], deterministic=False, examples=5)
    with pytest.raises(Broken, match="not deterministic by construction"):
        check_frontend(Plain(), [TWO_READERS], examples=5)


def test_programs_that_are_refused_or_missing() -> None:
    with pytest.raises(Broken, match="no programs"):
        check_frontend(Plain(), [])
    with pytest.raises(Rejected, match="il-unknown-queue"):
        check_frontend(Plain(), [PROGRAM.replace("f(a)", "f(aa)")], examples=1)


def evolve_uses(program: p.Program, **changes: Any) -> p.Program:
    return p.Program(tuple(evolve(d, **changes) if isinstance(d, p.Use) else d for d in program.decls))


# ------------------------------------------------------------------------------------------------------------- passes


@frozen
class Spoiler:
    """Changes the first number of each operator that is not there yet; `mode` says how wrongly."""

    name: ClassVar[str] = "spoiler"
    mode: str = "nothing"

    def sites(self, verified: Any, platform: Any, /) -> Any:
        done = any(isinstance(d, p.TypeDecl) and d.name == "Done" for d in verified.program.decls)
        return [] if done or self.mode == "nothing" else [0]

    def guard(self, verified: Any, site: Any, /) -> None:
        return None

    def rewrite(self, verified: Any, site: Any, /) -> p.Program:
        decls = verified.program.decls
        mark = p.TypeDecl("Done", (), s.TypeName("i64"))
        match self.mode:
            case "meaning":
                return p.Program((mark, *map(twice_as_much, decls)))
            case "interface":
                return p.Program(
                    (mark, p.Variable("extra", s.TypeName("i64"), s.Int(0)), *map(renamed, decls))
                )
            case "random":
                return p.Program((mark, p.TypeDecl(f"N{next(numbers)}", (), s.TypeName("i64")), *decls))
            case _:
                return p.Program((mark, *decls))


def twice_as_much(decl: p.Decl) -> p.Decl:
    from river.il.trees import rebuild

    def rewrite(node: s.Node) -> s.Node:
        return (
            s.Binary("+%", cast("s.Expr", node), s.Int(1))
            if node == s.Member(s.Name("v"), "n")
            else rebuild(node, rewrite)
        )

    return rebuild(decl, rewrite) if isinstance(decl, s.Operator) else decl


def renamed(decl: p.Decl) -> p.Decl:
    match decl:
        case p.Input("q0"):
            return evolve(decl, name="other")
        case p.Use(_, _, ins):
            return evolve(decl, ins=tuple("other" if q == "q0" else q for q in ins))
        case _:
            return decl


CASE = ProgramCase(PROGRAM, {"a": (1, 2)})


def test_a_right_pass_passes() -> None:
    check_pass(Spoiler(), examples=10)
    check_pass(Spoiler("right"), cases=[CASE], examples=10)


@pytest.mark.parametrize("name", plugins.passes())
def test_our_passes_keep_their_promises(name: str) -> None:
    check_pass(plugins.pass_(name)(), examples=10)


@pytest.mark.parametrize(
    ("mode", "cases", "kind"),
    [
        ("meaning", (), AssertionError),
        ("interface", (), AssertionError),
        ("random", (CASE,), Broken),
        ("nothing", (CASE,), Broken),
    ],
)
def test_passes_that_break_a_law(mode: str, cases: tuple[ProgramCase, ...], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        check_pass(Spoiler(mode), cases=cases)


# ----------------------------------------------------------------------------------------------------------- backends


class Wrapped:
    """The reference, spoilt."""

    name: ClassVar[str] = "wrapped"

    def __init__(self) -> None:
        self.inner = plugins.backend("reference")

    def plan(self, graph: Any, platform: Any, options: Any, /) -> Any:
        return self.inner.plan(graph, platform, options)

    def run(self, plan: Any, sources: Any, sinks: Any, /) -> Summary:
        return self.inner.run(plan, sources, sinks)


class Loses(Wrapped):
    def run(self, plan, sources, sinks, /):
        return super().run(
            plan, sources, {q: lambda items, s=sink: s(items[:1]) for q, sink in sinks.items()}
        )


class Forgets(Wrapped):
    def run(self, plan, sources, sinks, /):
        return evolve(
            super().run(plan, sources, sinks), variables=dict(self.inner.run(plan, {}, {}).variables)
        )


class Leaks(Wrapped):
    stop = threading.Event()

    def run(self, plan, sources, sinks, /):
        threading.Thread(target=self.stop.wait, daemon=True, name="leak").start()
        return super().run(plan, sources, sinks)


class Hides(Wrapped):
    def run(self, plan, sources, sinks, /):
        try:
            return super().run(plan, sources, sinks)
        except Trap:
            return Summary({v.name: v.initial for v in plan.graph.variables})


class Misplaces(Wrapped):
    def run(self, plan, sources, sinks, /):
        try:
            return super().run(plan, sources, sinks)
        except Trap as trap:
            trap.site = 77
            raise


class Swallows(Wrapped):
    def run(self, plan, sources, sinks, /):
        with suppress(Exception):
            return super().run(plan, sources, sinks)
        return Summary({})


@pytest.mark.slow
def test_a_right_backend_passes() -> None:
    check_backend(Wrapped(), examples=3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "said"),
    [
        (Loses(), "is run again gives"),
        (Forgets(), "gives Observation"),
        (Hides(), "trap"),
        (Misplaces(), "77"),
        (Swallows(), "and `run` ends well"),
    ],
)
def test_backends_that_break_a_law(backend: Any, said: str) -> None:
    with pytest.raises(Broken, match=said):
        check_backend(backend, examples=10)


def test_a_backend_that_leaves_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("river.testing.laws.PATIENCE", 0.05)
    try:
        with pytest.raises(Broken, match="threads are left: leak"):
            check_backend(Leaks(), examples=1)
    finally:
        Leaks.stop.set()
