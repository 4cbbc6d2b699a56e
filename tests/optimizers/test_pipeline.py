"""Pipelines as text, and the loop that applies them."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from attrs import frozen

from optimizers import Expand, Fission, Fusion, Placement
from river import plugins
from river.diagnostics import InternalError, Note, Rejected, Severity
from river.il.annotations import annotated
from river.il.parse import parse
from river.il.program import Output, Program, Use
from river.il.templates import Library
from river.il.verify import verify
from river.passes import Pass, apply, pipeline, show, unverified
from river.platform import Platform
from river.source import Source

PLATFORM = Platform(cores=2)
LIBRARY = Library.of({})
TEXT = """river 1;
input xs: i64; output ys: i64;
operator same(x: i64) -> (out: i64) { on x(v) { emit out v; } }
(ys) <- same(xs);
"""


def program(text: str = TEXT) -> Program:
    return parse(Source("p.river", text))


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("fusion", (Fusion(),)),
        ("fusion,fission{degree=2,epoch=8},placement", (Fusion(), Fission(degree=2, epoch=8), Placement())),
        (" fission { auto=true } , expand{}", None),
        ("fission{auto=true, degree=none},expand{}", (Fission(auto=True), Expand())),
    ],
)
def test_a_pipeline_is_read(text: str, passes: tuple[Any, ...] | None) -> None:
    if passes is None:
        with pytest.raises(Rejected):
            pipeline(text, plugins.pass_)
    else:
        found = pipeline(text, plugins.pass_)
        assert found == passes
        assert pipeline(show(found), plugins.pass_) == found


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("fision", "unknown-pass", "there is no pass `fision`"),
        ("", "pass-syntax", "`` does not name a pass"),
        ("fusion{auto}", "pass-syntax", "`auto` is not of the form option=value"),
        ("fusion{auto=true", "pass-syntax", "`fusion{auto=true` does not name a pass"),
        ("fission{degre=2}", "pass-unknown-option", "pass `fission` has no option `degre`"),
        ("placement{x=2}", "pass-unknown-option", "pass `placement` has no option `x`"),
        (
            "fission{degree=two}",
            "pass-option",
            "option `degree` of pass `fission` wants a whole number or none, not `two`",
        ),
        ("fusion{auto=1}", "pass-option", "option `auto` of pass `fusion` wants true or false, not `1`"),
        ("fission{epoch=1,epoch=2}", "pass-option", "`epoch` is given twice in `fission{epoch=1,epoch=2}`"),
        ("fission{epoch=0}", "pass-option", "pass `fission`: 'epoch' must be >= 1: 0"),
    ],
)
def test_what_is_wrong_with_a_pipeline_is_said(text: str, code: str, message: str) -> None:
    with pytest.raises(Rejected) as rejected:
        pipeline(text, plugins.pass_)
    (diagnostic,) = rejected.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == (code, message)


def test_all_mistakes_of_a_pipeline_are_said_at_once() -> None:
    with pytest.raises(Rejected) as rejected:
        pipeline("fision,fission{degre=1,epoch=no},fusion{", plugins.pass_)
    codes = [d.code for d in rejected.value.diagnostics]
    assert codes == ["unknown-pass", "pass-unknown-option", "pass-option", "pass-syntax"]


# ------------------------------------------------------------------------------------------------------------ the loop


@frozen
class Stub:
    """A pass that does what it is told."""

    name: ClassVar[str] = "stub"
    made: Program
    reason: Note | None = None
    forever: bool = False

    def sites(self, verified: Any, platform: Platform, /) -> tuple[int, ...]:
        return (1,) if self.forever or verified.program != self.made else ()

    def guard(self, verified: Any, site: int, /) -> Note | None:
        return self.reason

    def rewrite(self, verified: Any, site: int, /) -> Program:
        return self.made


def test_a_refusal_is_a_remark() -> None:
    refusing: Pass[Any] = Stub(Program(()), Note("because"))
    applied = apply(program(), (refusing, refusing), PLATFORM, LIBRARY)
    assert applied.program == program()
    (remark,) = applied.remarks
    assert (remark.code, remark.severity, remark.message) == (
        "pass-refused",
        Severity.REMARK,
        "no stub: because",
    )


OTHER = (
    TEXT.replace("output ys: i64;", "output ys: i64; output zs: i64;") + "(zs) <- same(ws); input ws: i64;\n"
)


VARIABLE = "var $v: i64 = 0;\n"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            Program(tuple(d for d in program().decls if not isinstance(d, Output | Use))),
            "the interface would not be",
        ),
        (program(OTHER), "the interface would not be"),
        (Program(tuple(d for d in program().decls if not isinstance(d, Use))), "queue `ys` has no producer"),
        (program(TEXT + "var $w: i64 = 0;\n"), "the variables ['v'] would be lost"),
    ],
)
def test_what_does_not_verify_is_refused(made: Program, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="pass-unverified"):  # no other test lets it pass
        apply(program(TEXT + VARIABLE), (Stub(made),), PLATFORM, LIBRARY)
    monkeypatch.setattr("river.passes.unverified", unverified)
    applied = apply(program(TEXT + VARIABLE), (Stub(made), Fusion()), PLATFORM, LIBRARY)
    assert applied.program == program(TEXT + VARIABLE)
    (warning,) = applied.remarks
    assert (warning.code, warning.severity) == ("pass-unverified", Severity.WARNING)
    assert said in warning.message


def test_a_pass_that_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("river.passes.MOST", 3)
    with pytest.raises(InternalError, match="does not end"):
        apply(program(), (Stub(program(), forever=True),), PLATFORM, LIBRARY)


def test_what_a_guard_has_tried_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    rewrite = Fusion.rewrite

    def counted(self: Fusion, verified: Any, site: Any) -> Program:
        made.append(site)
        return rewrite(self, verified, site)

    monkeypatch.setattr(Fusion, "rewrite", counted)
    text = TEXT.replace("(ys) <- same(xs);", "@Fuse(a) (q) <- same(xs); @Fuse(a) (ys) <- same(q);")
    found = apply(program(text), [Fusion()], PLATFORM, LIBRARY).program
    assert len([decl for decl in found.decls if isinstance(decl, Use)]) == 1
    assert len(made) == 1


@pytest.mark.parametrize("passes", [(Fusion(),), (Fission(degree=2, auto=True, rules="runtime"),)])
def test_sites_that_are_apart_are_rewritten_at_once(
    passes: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program of many operators is verified a few times, not once for each of them."""
    seen: list[object] = []
    monkeypatch.setattr("river.passes.verify", lambda *given: seen.append(given) or verify(*given))
    uses = [f"@Fuse(a) (q{i + 1}) <- more(q{i});" for i in range(32)]
    more = "operator more(x: i64) -> (y: i64) { on x(v) { emit y v +% 1; } }"
    text = f"river 1;\ninput q0: i64;\noutput q32: i64;\n{more}\n" + "\n".join(uses)
    found = apply(program(text), passes, PLATFORM, LIBRARY).program
    assert len(seen) <= 7
    if isinstance(passes[0], Fusion):
        assert len(found.uses) == 1
    else:
        assert all(annotated(use).regions for use in found.uses)
