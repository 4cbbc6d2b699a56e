"""Zipping, and the fusion of what fires at stated rates: fewer queues, the same streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizers import Fusion
from optimizers.counting import together
from optimizers.sharing import Sharing
from optimizers.zipping import Zipping
from river.diagnostics import InternalError
from river.il.parse import parse
from river.il.pretty import pretty
from river.il.templates import Library
from river.il.trees import walk
from river.il.verify import verify
from river.lang import syntax as s
from river.passes import apply
from river.platform import Platform
from river.source import Source
from river.testing.dag_strategies import dags
from river.testing.graph_strategies import contents, graphs
from river.testing.pass_laws import check_idempotent, check_pipeline, check_same

if TYPE_CHECKING:
    from river.il.program import Program

LIBRARY = Library.of({})
HEAD = """river 1;
type K = {t: i64, v: i64};
operator join2 = std.rr_join<T = i64, w = [1, 1]>;
operator join12 = std.rr_join<T = i64, w = [1, 2]>;
operator split2 = std.rr_split<T = i64, w = [1, 1]>;
operator split21 = std.rr_split<T = i64, w = [2, 1]>;
operator tail(a: i64 = [7], b: i64 = [8, 9]) -> (y: i64) { phase 1 on a(v) { emit y v; } phase 1 on b(v) { emit y v; } }
operator never(a: i64, b: i64) -> (y: i64) { phase 1 on a(v) { emit y v; } phase 0 on b(v) { emit y v; } }
operator pair(x: i64) -> (y: i64) { on x[pop 2](w) { emit y w[0] *% 10 -% w[1]; } }
operator quad(x: i64) -> (y: i64) { on x[pop 4](w) { var s = 0; for i in 0 .. 4 { s = s *% 10 +% w[i]; } emit y s; } }
operator ahead(x: i64) -> (y: i64) { on x[peek 5, pop 2](w) { emit y w[0] *% 100 +% w[1] *% 10 +% w[4]; } }
operator odd(x: i64) -> (y: i64) { on x[pop 3](w) { emit y w[0] +% w[2]; } }
operator begins(x: i64 = [1]) -> (y: i64) { on x[pop 2](w) { emit y w[0] -% w[1]; } }
operator other(x: i64) -> (y: i64) { first on x[peek 1, pop 1](w) { emit y w[0]; } on x[pop 2](w) { emit y w[0] -% w[1]; } }
operator two(x: i64) -> (y[push 2]: i64) { on x[pop 1](w) { emit y w[0]; emit y -%w[0]; } }
operator three(x: i64) -> (y: i64) { on x(v) { emit y v; emit y v *% 2; emit y v *% 3; } }
operator some(x: i64) -> (y: i64) { on x(v) { if v > 0 { emit y v; emit y v; } } }
operator map(x: i64) -> (y: i64) { const c: i64 = 3; on x[pop 1](w) { let v = w[0] *% c; emit y v; } }
operator inverse(x: i64) -> (y: i64) { on x[pop 1](w) { emit y div.trunc(12, w[0]); } }
operator far(x: i64) -> (y[push 1]: i64) { on x[peek 4, pop 2](w) { var s = 0; for i in 0 .. 4 { s = s *% 7 +% w[i]; }
  emit y s; } }
operator both_of(x: i64) -> (y: i64) { const c: i64 = 3; on x[pop 1](w) { let v = w[0] *% c; emit y v; emit y v +% 1; } }
operator thin(x: i64) -> (y: i64) { on x[pop 6](w) { emit y w[1] -% w[5]; } }
operator sum(x: i64; $s: i64) -> (y: i64) { on x[pop 1](w) { $s = $s +% w[0]; emit y $s; } }
operator add(a: i64, b: i64) -> (y: i64) { const c: i64 = 5; on a[pop 1](v), b[pop 1](w) { emit y v[0] *% c +% w[0]; } }
operator both(x: i64) -> (y: i64, z: i64) { on x[pop 1](w) { emit y w[0]; emit z w[0] *% 2; } }
operator item(x: i64) -> (y: i64) { on x(v) { emit y v; } }
operator dry(x: i64, l: i64) -> (y: i64) { phase 1 on x(v) { emit y v; } phase 1 on l(v) { emit y v; } }
operator turn(x: i64) -> (o: i64, l: i64) { on x[pop 2](w) { emit o w[0]; emit l w[1]; } }
operator tag(x: i64; $n: i64) -> (y: K by t) { on x(v) { emit y {t: $n, v: v}; $n = $n + 1; } }
operator merge(a: K by t, b: K by t) -> (y: i64) { on merge(a(p), b(q)) { if p is p { emit y p.v; } if q is q { emit y q.v; } } }
"""
XY = "input x: i64; input y: i64; output p: i64; "
ALL = (Sharing(), Zipping(), Fusion(auto=True), Sharing(), Fusion(auto=True), Sharing())
FEW = {"x": [1, 2, 3, 4, 5, 6, 7], "y": [-1, -2, -3, -4, -5]}


def program(text: str) -> Program:
    return parse(Source("p.river", HEAD + text))


def passed(text: str, *passes: Any, data: dict[str, list[Any]] | None = None) -> Program:
    """The program after passes; it computes the same."""
    before = program(text)
    given_items = FEW if data is None else data
    data = {name: items for name, items in given_items.items() if f"input {name}:" in text}
    for one in passes:
        check_idempotent(before, one, Platform(2), LIBRARY)
    return check_pipeline(before, passes, Platform(2), LIBRARY, data)


@pytest.mark.parametrize(
    "text",
    [
        XY + "(a) <- join2(x, y); (p) <- pair(a);",
        XY + "(a) <- join2(x, y); (p) <- quad(a);",
        XY + "(a) <- join2(x, y); (p) <- ahead(a);",
        XY + "(a) <- join12(x, y); (p) <- odd(a);",
        XY + "(a) <- tail(x, y); (p) <- pair(a);",
        XY + "input z: i64; (a) <- join2(x, y); (p) <- std_join(a, z); operator std_join = std.rr_join<T = i64, w = [4, 1]>;",
        XY + "input z: i64; (a) <- join12(x, y); (b) <- map(a); (p) <- add(z, b);",
        "input x: i64; output p: i64; output q: i64; (a) <- two(x); (p, q) <- split2(a);",
        "input x: i64; output p: i64; output q: i64; (a) <- three(x); (p, q) <- split21(a);",
    ],
)  # fmt: skip
def test_turns_that_are_consumed_or_sent_as_a_whole_go(text: str) -> None:
    data = FEW | {"z": [50, 60, 70]}
    after = passed(text, Zipping(), data=data)
    assert len(after.uses) < len(program(text).uses) or "map" in text


def test_joins_and_splits_that_are_apart_go_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of many is verified a few times, not once for each of them; equal operators become one again."""
    ins = "".join(f"input x{i}: i64; input y{i}: i64; output p{i}: i64; output q{i}: i64; " for i in range(8))
    uses = "".join(f"(a{i}) <- join2(x{i}, y{i}); (b{i}) <- quad(a{i}); " for i in range(8))
    uses += "".join(f"(c{i}) <- two(b{i}); (p{i}, q{i}) <- split2(c{i}); " for i in range(8))
    before, seen = program(ins + uses), list[object]()
    monkeypatch.setattr("river.passes.verify", lambda *given: seen.append(given) or verify(*given))
    after = apply(before, (Zipping(),), Platform(2), LIBRARY).program
    assert (len(seen), len(after.uses), len({use.operator for use in after.uses})) == (2, 16, 2)
    monkeypatch.undo()
    check_same(
        verify(before, LIBRARY),
        verify(after, LIBRARY),
        {f"{x}{i}": [1, 2, 3, i] for x in "xy" for i in range(8)},
    )


def test_items_stand_for_themselves_where_indices_are_numbers() -> None:
    assert "let w" not in pretty(passed(XY + "(a) <- join2(x, y); (p) <- ahead(a);", Zipping()))
    assert "let w: array<i64, 4> = [" in pretty(passed(XY + "(a) <- join2(x, y); (p) <- quad(a);", Zipping()))


EXTERN = 'operator ext(x: i64) -> (y: i64) = extern python "m:f"; '
DEALT = "input x: i64; output p: i64; output q: i64; "
OWN = (
    "operator named(a: i64, b: i64) -> (y: i64) { const c: i64 = 1; "
    "phase 1 on a(v) { emit y v; } phase 1 on b(v) { emit y v; } } "
)
WIDE = "operator wide(x: i64) -> (y: i64) { on x[pop 258](w) { emit y w[0]; } } "
SKIPS = "operator skips(x: i64) -> (a: i64, b: i64) { phase 1 on x(v) { emit a v; } phase 0 on x(v) { emit b v; } } "
LATE = "operator late(x: i64 = [7]) -> (a: i64, b: i64) { phase 1 on x(v) { emit a v; } phase 1 on x(v) { emit b v; } } "
KEYS = "operator keys(x: K by t) -> (y: i64) { on x(v) { emit y v.t; emit y v.v; } } "
STARTS = (
    "operator starts(x: i64) -> (y[push 2]: i64) { first on x[pop 1](w) { emit y w[0]; emit y 1; emit y 2; emit y 3; }"
    " on x[pop 1](w) { emit y w[0]; emit y -%w[0]; } } "
)
FAR = "phase 1 on {}(v) {{ emit {} v; }} phase 99999999998 on {}(v) {{ emit {} v; }}"
MANY = (
    f"operator many(x: i64) -> (y: i64) {{ on x(v) {{ {'emit y v; ' * 300} }} }}"
    " operator split300 = std.rr_split<T = i64, w = [200, 100]>; "
)
REFUSED: dict[str, tuple[str, str]] = {
    "extern": (EXTERN + XY + "(a) <- join2(x, y); (p) <- ext(a);", "the body of `ext` is not text"),
    "own names": (OWN + XY + "(a) <- named(x, y); (p) <- pair(a);", "`named` has names of its own"),
    "wide": (WIDE + XY + "(a) <- join2(x, y); (p) <- wide(a);", "258 items are more than 256"),
    "sent by an extern": (EXTERN + DEALT + "(a) <- ext(x); (p, q) <- split2(a);", "the body of `ext` is not text"),
    "never sent": (SKIPS + DEALT + "(a) <- two(x); (p, q) <- skips(a);", "`skips` never sends to one of its outputs"),
    "split begins": (
        LATE + DEALT + "(a) <- two(x); (p, q) <- late(a);", "`late` has items to begin with, which shift the turns"
    ),
    "order": (
        KEYS + DEALT.replace("x: i64", "x: K by t") + "(a) <- keys(x); (p, q) <- split2(a);", "`keys` also acts on order"
    ),
    "sent first": (STARTS + DEALT + "(a) <- starts(x); (p, q) <- split2(a);",
                   "`starts` does not send as many items as it states"),
    "endless turn of a join": (
        f"operator eon(a: i64, b: i64) -> (y: i64) {{ {FAR.format('a', 'y', 'b', 'y')} }} " + XY
        + "(a) <- eon(x, y); (p) <- pair(a);",
        "a turn of 99999999999 items is more than 65536",
    ),
    "endless turn of a split": (
        f"operator eon(x: i64) -> (a: i64, b: i64) {{ {FAR.format('x', 'a', 'x', 'b')} }} " + DEALT
        + "(a) <- two(x); (p, q) <- eon(a);",
        "a turn of 99999999999 items is more than 65536",
    ),
    "long turn": (MANY + DEALT + "(a) <- many(x); (p, q) <- split300(a);", "a turn of 300 items is more than 256"),
    "turns": (XY + "(a) <- join2(x, y); (p) <- odd(a);", "`odd` takes 3 items at once, a turn of `join2` has 2"),
    "begins": (XY + "(a) <- join2(x, y); (p) <- begins(a);", "`begins` has items to begin with, which shift the turns"),
    "other": (XY + "(a) <- join2(x, y); (p) <- other(a);", "the first firing of `other` is another one"),
    "never": (XY + "(a) <- never(x, y); (p) <- pair(a);", "`never` never reads one of its inputs"),
    "group": (XY + "@Group(1) (a) <- join2(x, y); @Group(2) (p) <- pair(a);", "they are placed in different groups"),
    "fuse": (XY + "@Fuse(1) (a) <- join2(x, y); (p) <- pair(a);", "`@Fuse` says what becomes one"),
    "region": (XY + "@Region(1, replica) (a) <- join2(x, y); (p) <- pair(a);", "a border of a parallel region is between them"),
    "loop": ("input x: i64; output p: i64; (a) <- dry(x, l); (b) <- pair(a); (p, l) <- turn(b);", "they are part of a loop"),
    "behind a loop": (
        XY
        + "input z: i64; var $n: i64 = 0; var $m: i64 = 0; (a) <- dry(x, l); (b, l) <- turn(a); (c) <- join2(b, y);"
        + " (d) <- pair(c); (e, $n) <- tag(d, $n); (f, $m) <- tag(z, $m); (p) <- merge(e, f);",
        "`join2` is behind a loop, and may never tell of its end",
    ),
    "sent": ("input x: i64; output p: i64; output q: i64; (a) <- some(x); (p, q) <- split2(a);",
             "`some` does not send its items one after the other"),
    "sent turns": ("input x: i64; output p: i64; output q: i64; (a) <- two(x); (p, q) <- split21(a);",
                   "`two` sends 2 items at once, a turn of `split21` has 3"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_the_same_stays_apart(name: str) -> None:
    text, reason = REFUSED[name]
    applied = apply(program(text), (Zipping(),), Platform(2), LIBRARY)
    assert any(remark.message.endswith(f"stay apart: {reason}") for remark in applied.remarks), (
        applied.remarks
    )
    assert applied.program == program(text)


DRY = REFUSED["behind a loop"][0]
NEEDED: dict[str, tuple[str, str, Any, dict[str, list[Any]]]] = {
    "whole turns": (XY + "(a) <- join2(x, y); (p) <- odd(a);", "optimizers.zipping._join_obstacle", None, FEW),
    "no beginning": (XY + "(a) <- join2(x, y); (p) <- begins(a);", "optimizers.zipping._join_obstacle", None, FEW),
    "the end": (DRY, "optimizers.zipping._endless", False, {"x": [1], "y": [], "z": [4, 5]}),
    "whole turns sent": (
        "input x: i64; output p: i64; output q: i64; (a) <- three(x); (p, q) <- split2(a);",
        "optimizers.zipping._split_obstacle", None, FEW,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NEEDED)
def test_without_the_condition_the_laws_are_broken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, condition, instead, data = NEEDED[name]
    passed(text, Zipping(), data=data)
    monkeypatch.setattr(condition, lambda *_args: instead)
    with pytest.raises((AssertionError, InternalError)):
        passed(text, Zipping(), data=data)


# ------------------------------------------------------------------------------------------------ fusion at stated rates


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("input x: i64; output p: i64; (a) <- map(x); (p) <- map(a);", 1),
        ("input x: i64; output p: i64; (a) <- two(x); (p) <- pair(a);", 1),
        ("input x: i64; output p: i64; (a) <- ahead(x); (p) <- map(a);", 1),
        ("input x: i64; output p: i64; var $s: i64 = 0; (a, $s) <- sum(x, $s); (p) <- inverse(a);", 1),
        ("input x: i64; output p: i64; (a) <- far(x); (p) <- odd(a);", 1),
        ("input x: i64; output p: i64; (a) <- both_of(x); (p) <- thin(a);", 1),
        ("input x: i64; output p: i64; (a) <- far(x); (b) <- odd(a); (p) <- map(b);", 1),
        (XY + "(a) <- map(x); (b) <- map(y); (p) <- add(a, b);", 1),
        (XY + "(a) <- ahead(x); (b) <- map(y); (c) <- add(a, b); (p) <- map(c);", 1),
    ],
)  # fmt: skip
def test_what_keeps_step_becomes_one(text: str, left: int) -> None:
    assert len(passed(text, Fusion(auto=True)).uses) == left


def asked(text: str) -> str:
    """The program with all operators asked to become one."""
    return text.replace("(a", "@Fuse(1) (a", 1).replace("(p", "@Fuse(1) (p", 1)


RATED: dict[str, tuple[str, str]] = {
    "ahead": (asked("input x: i64; output p: i64; (a) <- map(x); (p) <- ahead(a);"), "`ahead` looks ahead"),
    "counts": (
        asked("input x: i64; output p: i64; (a) <- two(x); (p) <- odd(a);"),
        "`two` sends 2 items at once, `odd` takes 3",
    ),
    "traps": (
        asked("input x: i64; output p: i64; (a) <- inverse(x); (p) <- odd(a);"),
        "`inverse` sends 1 items at once, `odd` takes 3",
    ),
    "all are looked at": (
        asked("input x: i64; output p: i64; (a) <- map(x); (p) <- pair(a);"),
        "`map` sends 1 items at once, `pair` takes 2",
    ),
    "keeps something": (
        asked("input x: i64; output p: i64; var $s: i64 = 0; (a, $s) <- sum(x, $s); (p) <- odd(a);"),
        "`sum` sends 1 items at once, `odd` takes 3",
    ),
    "begins": (
        asked("input x: i64; output p: i64; (a) <- two(x); (p) <- begins(a);"),
        "`begins` has items to begin with",
    ),
    "first": (
        asked("input x: i64; output p: i64; (a) <- two(x); (p) <- other(a);"),
        "the first firing of `other` is another one",
    ),
    "item": (
        asked("input x: i64; output p: i64; (a) <- item(x); (p) <- map(a);"),
        "`map` waits for a stated number of items",
    ),
    "first one": (
        asked("input x: i64; output p: i64; (a) <- other(x); (p) <- map(a);"),
        "the first firing of `other` is another one",
    ),
    "marks": (
        "operator keys(x: K by t) -> (y: i64) { on x[pop 1](w) { emit y w[0].v; } }"
        + asked("input x: K by t; output p: i64; (a) <- keys(x); (p) <- map(a);"),
        "`keys` has marks to tell of",
    ),
    "sent": (
        "operator maybe(x: i64) -> (y: i64) { on x[pop 1](w) { if w[0] > 0 { emit y w[0]; } } }"
        + asked("input x: i64; output p: i64; (a) <- maybe(x); (p) <- map(a);"),
        "`maybe` does not send its items one after the other",
    ),
    "trap": (
        asked(XY + "(a) <- inverse(x); (p) <- add(a, y);"),
        "`add` has another input, and `inverse` might trap on items that never get their counterpart",
    ),
    "state": (
        asked("var $s: i64 = 0;" + XY + "(a, $s) <- sum(x, $s); (p) <- add(a, y);"),
        "`add` has another input, for which the variables of `sum` would wait",
    ),
    "outputs": (
        asked(XY + "output q: i64; (a, q) <- both(x); (p) <- add(a, y);"),
        "`add` has another input, for which the other outputs of `both` would wait",
    ),
}


@pytest.mark.parametrize("name", RATED)
def test_what_does_not_keep_step_stays_apart(name: str) -> None:
    text, reason = RATED[name]
    applied = apply(program(text), (Fusion(),), Platform(2), LIBRARY)
    assert any(remark.message.endswith(f"stay apart: {reason}") for remark in applied.remarks), (
        applied.remarks
    )


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("ahead", FEW), ("begins", FEW), ("trap", {"x": [1, 0], "y": [1]}), ("state", {"x": [1, 2], "y": [1]}),
        ("outputs", {"x": [1, 2], "y": [1]}),
    ],
)  # fmt: skip
def test_without_the_conditions_of_fusion_the_laws_are_broken(
    name: str, data: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    text, _ = RATED[name]
    passed(text, Fusion(), data=data)
    monkeypatch.setattr("optimizers.fusion.rated_obstacle", lambda *_args: None)
    with pytest.raises((AssertionError, InternalError)):
        passed(text, Fusion(), data=data)


def test_names_of_one_do_not_hide_those_of_the_other() -> None:
    text = XY + "(a) <- map(x); (b) <- map(y); (c) <- add(a, b); (d) <- map(c); (p) <- map(d);"
    (use,) = passed(text, Fusion(auto=True)).uses
    assert len(use.operator) <= 60


# ---------------------------------------------------------------------------------------------------------------- loops


def body(text: str) -> s.Block:
    """The body of a handler with these statements."""
    found = parse(
        Source("p.river", f"river 1; operator f(x: i64) -> (y: i64) {{ on x[pop 8](w) {{ {text} }} }}")
    )
    (block,) = (
        n.body
        for decl in found.decls
        if isinstance(decl, s.Operator)
        for n in walk(decl)
        if isinstance(n, s.RatedHandler)
    )
    return block


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("var a = 0; for i in 0 .. 8 { a = a + w[i]; } var b = 0; for j in 0 .. 8 { b = b - w[j]; } emit y a * b;", 1),
        ("var a = 0; for i in 0 .. 8 { a = a + w[i]; } emit y a; var b = 0; for j in 0 .. 8 { b = b - w[j]; } emit y b;", 1),
        ("var a = 0; for i in 0 .. 8 { a = a + w[i]; } var b = 0; for j in 0 .. 7 { b = b - w[j]; } emit y a * b;", 2),
        ("var a = 0; for i in 0 .. 8 { a = a + w[i]; } var b = 0; for j in 0 .. 8 { b = b - a; } emit y b;", 2),
        ("var a = 0; for i in 0 .. 8 { a = a + w[i]; } let c = a; a = 5; for j in 0 .. 8 { a = a * w[j]; } emit y a - c;", 2),
        ("for i in 0 .. 8 { emit y w[i]; } for j in 0 .. 8 { emit y w[j]; }", 2),
        ("var a = [1, 2]; for i in 0 .. 2 { a[i] = w[i]; } var b = [1]; for j in 0 .. 2 { b[0] = a[1 - j]; } emit y b[0];", 2),
        ("var a = 0; for i in 0 .. 8 { a = a + w[i]; } for j in 0 .. 8 { if w[j] > 3 { break; } } emit y a;", 2),
        ("var a = 0; for i in 0 .. 8 { a = a + abs(w[i]); } var b = 0; for j in 0 .. 8 { b = b - w[j]; } emit y a * b;", 2),
    ],
)  # fmt: skip
def test_loops_that_count_alike_become_one_if_they_do_not_meet(text: str, loops: int) -> None:
    before = body(text)
    after = together(before)
    assert sum(isinstance(item, s.For) for item in after.items) == loops
    operator = f"operator f(x: i64) -> (y: i64) {{ on x[pop 8](w) {{ {text} }} }}"
    first = parse(Source("p.river", f"river 1; input x: i64; output y: i64; {operator} (y) <- f(x);"))
    second = evolve(first, decls=tuple(_with(decl, after) for decl in first.decls))
    data = {"x": [3, 1, 4, 1, 5, 9, 2, 6, -5, 3, 5, 8, 9, 7, 9, 3]}
    check_same(verify(first, LIBRARY), verify(second, LIBRARY), data)


def _with(decl: Any, block: s.Block) -> Any:
    if not isinstance(decl, s.Operator):
        return decl
    (handler,) = decl.handlers
    return evolve(decl, handlers=(evolve(handler, body=block),))


# --------------------------------------------------------------------------------------------------------------- random


@pytest.mark.slow
@settings(max_examples=12)
@given(
    dags(6),
    st.lists(st.integers(-9, 9), max_size=9),
    st.sampled_from([ALL, (Zipping(),), (Fusion(auto=True),), (Fusion(steady=True),)]),
)
def test_random_graphs_keep_their_outcome(text: str, items: list[int], passes: tuple[Any, ...]) -> None:
    check_pipeline(parse(Source("p.river", text)), passes, Platform(2), LIBRARY, {"x": items}, limit=200)


@settings(max_examples=4)
@given(graphs(4), contents(3))
def test_graphs_with_loops_and_keys_keep_their_outcome(text: str, items: dict[str, list[Any]]) -> None:
    data = {name: values for name, values in items.items() if f"input {name}:" in text}
    check_pipeline(parse(Source("p.river", text)), ALL, Platform(2), LIBRARY, data, limit=100)
