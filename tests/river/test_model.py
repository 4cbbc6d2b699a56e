"""Models derived from bodies: what is claimed, and above all what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from river.diagnostics import Rejected
from river.il.model import Keyed, Model, Selectivity, Stateless, Unknown, instance_model, model
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import check, trees, typed
from river.lang import syntax as s
from river.lang.operations import OPERATIONS, Operation
from river.source import Source

if TYPE_CHECKING:
    from river.il.program import Program

LIBRARY = Library.of({})
HEAD = """river 1;
type R = {k: string, n: i64, x: f64};
type D = {tau: time, ins: list<R>, del: list<R>};
type O = {k: string, m: i64};
type DO = {tau: time, ins: list<O>, del: list<O>};
"""
ONE, SOME, ANY = Selectivity(1, 1), Selectivity(0, 1), Selectivity(0, None)


def program(text: str) -> Program:
    return parse(Source("test.river", HEAD + text))


def of(operator: str) -> Model:
    from river.il.verify import scope

    found = program(operator)
    (decl,) = (d for d in found.decls if isinstance(d, s.Operator | s.Extern))
    return model(check.operator(decl, scope(found, LIBRARY)))


def flat(body: str, variables: str = "", out: str = "O") -> Model:
    """The model of an operator on R."""
    return of(f"operator f(x: R{variables and '; ' + variables}) -> (o: {out}) {{ {body} }}")


def delta(body: str, variables: str = "", out: str = "DO") -> Model:
    """The model of an operator on deltas of R."""
    return of(f"operator f(d: D by tau{variables and '; ' + variables}) -> (o: {out} by tau) {{ {body} }}")


# -------------------------------------------------------------------------------------------------------- selectivity


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("on x(v) { emit o {k: v.k, m: v.n}; }", ONE),
        ("on x(v) { if v.n > 0 { emit o {k: v.k, m: v.n}; } }", SOME),
        ("on x(v) { if v.n > 0 { emit o {k: v.k, m: 1}; } else { emit o {k: v.k, m: 2}; } }", ONE),
        ("on x(v) { for i in 0 .. v.n { emit o {k: v.k, m: i}; } }", ANY),
        ("on x(v) { emit o {k: v.k, m: 1}; emit o {k: v.k, m: 2}; }", Selectivity(2, 2)),
        ("on x(v) { }", Selectivity(0, 0)),
    ],
)
def test_selectivity(body: str, found: Selectivity) -> None:
    assert flat(body).selectivity == (found,)


def test_a_mark_handler_may_send_any_number() -> None:
    sends = "on d(v) { emit o {tau: v.tau, ins: [], del: []}; } on mark(t) { emit o {tau: t, ins: [], del: []}; mark o t; }"
    assert delta(sends).selectivity == (ANY,)
    assert delta(
        "on d(v) { emit o {tau: v.tau, ins: [], del: []}; } on mark(t) { mark o t; }"
    ).selectivity == (ONE,)


# -------------------------------------------------------------------------------------------------------------- fields


def test_forwarded_and_read_fields() -> None:
    found = flat("on x(v) { if v.n > 0 { emit o {k: v.k, m: i64(v.x)}; } }")
    assert found.forwarded == ((("k", "k"),),)
    assert found.computed == (("m",),)
    assert found.reads == ("n", "x")
    assert found.forwards(0, ["k"])
    assert not found.forwards(0, ["k", "m"])


@pytest.mark.parametrize(
    ("body", "forwarded"),
    [
        ("on x(v) { emit o {k: v.k, m: v.n}; }", {"k": "k", "m": "n"}),
        ("on x(v) { let n = v.n; let w = {k: v.k, m: n}; emit o w; }", {"k": "k", "m": "n"}),
        ('on x(v) { if v.n > 0 { emit o {k: v.k, m: 1}; } else { emit o {k: "", m: 1}; } }', {}),
        ('on x(v) { var k = v.k; if v.n > 0 { k = ""; } emit o {k: k, m: v.n}; }', {"m": "n"}),
        ("on x(v) { var w = {k: v.k, m: v.n}; w.m = 0; emit o w; }", {}),
        (
            "fn send(k: string, v: R) { emit o {k: k, m: v.n}; } on x(v) { send(v.k, v); }",
            {"k": "k", "m": "n"},
        ),
        ("fn pick(v: R) -> string = v.k; on x(v) { emit o {k: pick(v), m: 0}; }", {"k": "k"}),
        ("on x(v) { emit o {k: if v.n > 0 {v.k} else {v.k}, m: 0}; }", {"k": "k"}),
        ("on x[pop 2](w) { emit o {k: w[0].k, m: 0}; }", {}),
    ],
)
def test_what_is_forwarded(body: str, forwarded: dict[str, str]) -> None:
    assert dict(flat(body).forwarded[0]) == forwarded


def test_a_whole_item_is_forwarded_unread() -> None:
    found = flat("on x(v) { if v.n > 0 { emit o v; } }", out="R")
    assert found.forwarded == ((("k", "k"), ("n", "n"), ("x", "x")),)
    assert (found.reads, found.computed) == (("n",), ((),))


@pytest.mark.parametrize(
    ("body", "reads"),
    [
        ("on x(v) { $m = v.n; }", ("n",)),
        ('on x(v) { var m = v.n; if v.x > 0.0 { m = 0; } emit o {k: "", m: m}; }', ("n", "x")),
        ('on x(v) { emit o {k: "", m: if v.x > 0.0 {v.n} else {1}}; }', ("n", "x")),
        ('on x(v) { emit o {k: "", m: if true {v.n} else {i64(v.x)}}; }', ()),
        ('on x(v) { let l = [v.n, 1]; emit o {k: "", m: l[0]}; }', ("n",)),
        ('on x(v) { if v == {k: "", n: 0, x: 0.0} { emit o {k: "", m: 0}; } }', ("k", "n", "x")),
        (
            'fn f(ref m: i64, v: i64) { m = m + v; } on x(v) { var m = 0; f(m, v.n); emit o {k: "", m: m}; }',
            ("n",),
        ),
    ],
)
def test_what_is_read(body: str, reads: tuple[str, ...]) -> None:
    assert flat(body, "$m: i64").reads == reads


# --------------------------------------------------------------------------------------------------------------- state


@pytest.mark.parametrize(
    ("body", "variables", "state"),
    [
        ("on x(v) { emit o {k: v.k, m: 0}; }", "", Stateless()),
        ("on x(v) { emit o {k: v.k, m: 0}; }", "$m: map<string, i64>", Stateless()),
        ("on x(v) { with c = $m[v.k] else 0 { c = c + 1; } }", "$m: map<string, i64>", Keyed((("k",),))),
        ("on x(v) { $m[v.k] = get($m, v.k, 0) + 1; }", "$m: map<string, i64>", Keyed((("k",),))),
        ("on x(v) { let k = v.k; if has($m, k) { delete($m, k); } }", "$m: map<string, i64>", Keyed((("k",),))),
        ("on x(v) { set($m, v.k, v.n); }", "$m: map<string, i64>", Keyed((("k",),))),
        ("on x(v) { with c = $m[{a: v.k, b: v.n}] else 0 { c = c + 1; } }", "$m: map<{a: string, b: i64}, i64>",
         Keyed((("k", "n"),))),
        ("on x(v) { with c = $m[{a: v.k, b: v.n + 1}] else 0 { c = c + 1; } }", "$m: map<{a: string, b: i64}, i64>",
         Keyed((("k",),))),
        ("on x(v) { with c = $m[(v.n, v.k)] else 0 { c = c + 1; } with e = $w[v.k] else 0 { e = e + 1; } }",
         "$m: map<(i64, string), i64>, $w: map<string, i64>", Keyed((("k",),))),
        ("on x(v) { with c = $m[v.k] else {} { with e = c[v.n] else 0 { e = e + 1; } } }",
         "$m: map<string, map<i64, i64>>", Keyed((("k",),))),
        ("fn f(ref m: map<string, i64>, k: string) { m[k] = 1; } on x(v) { f($m, v.k); }", "$m: map<string, i64>",
         Keyed((("k",),))),
        ('on x(v) { with c = $m[v.k + ""] else 0 { c = c + 1; } }', "$m: map<string, i64>", Unknown()),
        ('on x(v) { with c = $m["all"] else 0 { c = c + 1; } }', "$m: map<string, i64>", Unknown()),
        ("on x(v) { with c = $m[v.k] else 0 { c = c + len($m); } }", "$m: map<string, i64>", None),  # refused: borrowed
        ("on x(v) { let n = len($m); with c = $m[v.k] else 0 { c = n; } }", "$m: map<string, i64>", Unknown()),
        ("on x(v) { with c = $m[v.k] else 0 { c = $w; } $w = v.n; }", "$m: map<string, i64>, $w: i64", Unknown()),
        ("on x(v) { with c = $m[v.k] else 0 { c = 1; } with e = $w[v.n] else 0 { e = 1; } }",
         "$m: map<string, i64>, $w: map<i64, i64>", Unknown()),
        ("on x(v) { for k, n in $m { emit o {k: k, m: n}; } }", "$m: map<string, i64>", Unknown()),
        ('on x(v) { var k = v.k; k = ""; with c = $m[k] else 0 { c = 1; } }', "$m: map<string, i64>", Unknown()),
        ("on x(v) { $m = {}; }", "$m: map<string, i64>", Unknown()),
    ],
)  # fmt: skip
def test_state(body: str, variables: str, state: Keyed | Stateless | Unknown | None) -> None:
    if state is None:
        with pytest.raises(Rejected):
            flat(body, variables)
    else:
        assert flat(body, variables).state == state


@pytest.mark.parametrize(
    ("other", "state"), [("$m", Unknown()), ("$w", Keyed((("a", "b"),))), ("$m, but", Keyed((("a",),)))]
)
def test_fields_of_a_key_have_places(other: str, state: Keyed | Unknown) -> None:
    """The entry of (a, b) is that of (b, a) for another item, but in another variable."""
    second = "$m[(v.a, v.a)]" if "but" in other else f"{other}[(v.b, v.a)]"
    found = of(
        "operator f(x: {a: i64, b: i64}; $m: map<(i64, i64), i64>, $w: map<(i64, i64), i64>) -> (o: {n: i64}) {"
        f" on x(v) {{ with c = $m[(v.a, v.b)] else 0 {{ c = 1; }} with e = {second} else 0 {{ e = 1; }} }} }}"
    )
    assert found.state == state


ROWS = """
  on d(x) {
    var ins: list<O> = []; var del: list<O> = []; var touched: list<string> = [];
    for r in x.ins { with c = $m[r.k] else 0 { c = c + r.n; push(touched, r.k); } }
    for r in x.del { with c = $m[r.k] { c = c - r.n; push(touched, r.k); } }
    for k in touched { with c = $m[k] { push(ins, {k: k, m: c}); if c == 0 { drop c; } } }
    emit o {tau: x.tau, ins: ins, del: del};
  }"""


def test_the_keys_of_deltas_are_those_of_their_rows() -> None:
    found = delta(ROWS, "$m: map<string, i64>")
    assert found.rows
    assert found.state == Keyed((("k",),), rows=True)
    assert found.forwarded == ((("k", "k"),),)
    assert found.reads == ("k", "n")
    by_instant = delta("on d(x) { with c = $m[x.tau] else 0 { c = c + len(x.ins); } }", "$m: map<time, i64>")
    assert by_instant.state == Unknown()
    assert by_instant.reads is None  # whole lists
    projected = delta(
        "on d(x) { emit o {tau: x.tau, ins: [{k: r.k, m: r.n} for r in x.ins if (r.x > 0.0)], del: []}; }"
    )
    assert (projected.state, dict(projected.forwarded[0]), projected.reads) == (
        Stateless(),
        {"k": "k", "m": "n"},
        ("x",),
    )
    assert delta("on d(x) { emit o x; }", out="D").forwarded == ((("k", "k"), ("n", "n"), ("x", "x")),)


JOIN = """operator j(l: D by tau, r: D by tau; $l: map<string, bag<R>>, $r: map<string, bag<R>>) -> (o: DO by tau) {
  on merge(l(a), r(b)) {
    var ins: list<O> = [];
    if a is a { for x in a.ins {
      with s = $l[x.k] else {} { add(s, x); }
      for y in get($r, x.k, {}) { push(ins, {k: x.k, m: y.n}); } } }
    if b is b { for y in b.ins {
      with s = $r[y.k] else {} { add(s, y); }
      for x in get($l, y.k, {}) { push(ins, {k: y.k, m: x.n}); } } }
    emit o {tau: key, ins: ins, del: []}; } }"""


def test_a_join_is_keyed_on_both_sides() -> None:
    found = of(JOIN)
    assert found.state == Keyed((("k",), ("k",)), rows=True)
    assert (found.hidden, found.order_reading, found.selectivity) == (True, True, (ONE,))
    assert of(JOIN.replace("get($l, y.k, {})", 'get($l, "x", {})')).state == Unknown()


# --------------------------------------------------------------------------------------------------- order, traps, more


@pytest.mark.parametrize(
    ("body", "variables", "commutes"),
    [
        ("on x(v) { emit o {k: v.k, m: 0}; }", "", True),
        ("on x(v) { with c = $m[v.k] else 0 { c = c +% v.n; } }", "$m: map<string, i64>", True),
        ("on x(v) { with c = $m[v.k] else 0 { c = max(v.n, c); } }", "$m: map<string, i64>", True),
        ("on x(v) { with c = $m[v.k] else zero() { add(c, v.x); } }", "$m: map<string, fsum>", True),
        ("on x(v) { add($m, v); }", "$m: bag<R>", True),
        ("on x(v) { with c = $m[v.k] else 0 { c = c + v.n; } }", "$m: map<string, i64>", False),  # may trap on the way
        ("on x(v) { with c = $m[v.k] { c = c +% v.n; } }", "$m: map<string, i64>", False),  # may be absent
        ("on x(v) { with c = $m[v.k] else 0.0 { c = c + v.x; } }", "$m: map<string, f64>", False),
        ("on x(v) { with c = $m[v.k] else 0 { c = c -% v.n; } }", "$m: map<string, i64>", False),
        ("on x(v) { with c = $m[v.k] else 0 { c = c +% v.n; c = c *% 2; } }", "$m: map<string, i64>", False),
        ("on x(v) { with c = $m[v.k] else 0 { c = c +% c; } }", "$m: map<string, i64>", False),
        ("on x(v) { with c = $m[v.k] else 0 { c = c +% v.n; emit o {k: v.k, m: c}; } }", "$m: map<string, i64>", False),
        ("on x(v) { with c = $m[v.k] else 0 { c = v.n; } }", "$m: map<string, i64>", False),
        ("on x(v) { with c = $m[v.k] else 0 { if c > 5 { c = c +% v.n; } } }", "$m: map<string, i64>", False),
        ("on x(v) { with c = $m[v.k] else v.n { c = c +% v.n; } }", "$m: map<string, i64>", False),  # begins with the first
        ("on x(v) { if v.n > 0 { with c = $m[v.k] else 0 { c = c +% 1; } } else { with c = $m[v.k] else 5 { c = c +% 1; } } }",
         "$m: map<string, i64>", False),
        ("on x(v) { push($m, v); }", "$m: list<R>", False),
        ('on x(v) { with c = $m[v.k] else 0 { c = c +% v.n; } if has($m, "") { emit o {k: "", m: 0}; } }',
         "$m: map<string, i64>", False),
    ],
)  # fmt: skip
def test_commutative(body: str, variables: str, *, commutes: bool) -> None:
    found = flat(body, variables)
    assert found.commutative == commutes
    assert found.order_reading == (not commutes)


@pytest.mark.parametrize(
    ("body", "reads"),
    [
        ("on d(x) { emit o {tau: x.tau, ins: [{k: r.k, m: 0} for r in x.ins], del: []}; }", False),
        ("on d(x) { emit o {tau: x.tau, ins: [{k: x.ins[0].k, m: 0}], del: []}; }", True),
        ("on d(x) { emit o {tau: x.tau, ins: [{k: r.k, m: i} for i, r in x.ins], del: []}; }", True),
        (
            "on d(x) { let t = take(x.ins, 1); emit o {tau: x.tau, ins: [{k: r.k, m: 0} for r in t], del: []}; }",
            True,
        ),
        # What an operation does not let through is the same for any order.
        ('on d(x) { emit o {tau: x.tau, ins: [{k: "", m: len(x.ins)}], del: []}; }', False),
        ('on d(x) { emit o {tau: x.tau, ins: [{k: "", m: sum(map(x.ins, fn(r) => r.n))}], del: []}; }', False),
        ("on d(x) { if any(x.ins, fn(r) => r.n > 1) { emit o {tau: x.tau, ins: [], del: []}; } }", False),
        ("on d(x) { let k = sort([r.k for r in x.ins]); emit o {tau: x.tau, ins: [{k: k[0], m: 0}], del: []}; }", False),
        ("on d(x) { let y = sort([r.x for r in x.ins]); emit o {tau: x.tau, ins: [{k: string(y[0]), m: 0}], del: []}; }",
         True),  # -0.0 is 0.0
        # The rows one by one, and what only accumulates.
        ("on d(x) { var o1: list<O> = []; for r in x.ins { push(o1, {k: r.k, m: 0}); } emit o {tau: x.tau, ins: o1, del: []}; }",
         False),
        ('on d(x) { var n = 0; for r in x.ins { n = n +% r.n; } emit o {tau: x.tau, ins: [{k: "", m: n}], del: []}; }', False),
        (("fn step(ref n: i64, r: R) { n = n +% r.n; } on d(x) { var n = 0; for r in x.ins { step(n, r); } "
         'emit o {tau: x.tau, ins: [{k: "", m: n}], del: []}; }'), False),
        (("on d(x) { var c: map<string, i64> = {}; for r in x.ins { with e = c[r.k] else 0 { e = e +% 1; } } "
         "emit o {tau: x.tau, ins: [{k: r.k, m: get(c, r.k, 0)} for r in x.ins], del: []}; }"), False),
        (("on d(x) { var c: map<string, i64> = {}; for r in x.ins { with e = c[r.k] else 0 { e = e +% 1; } } "
         "emit o {tau: x.tau, ins: [{k: k, m: n} for k, n in c], del: []}; }"), False),
        # What tells which row was before which.
        ('on d(x) { var n = 0; for r in x.ins { n = r.n; } emit o {tau: x.tau, ins: [{k: "", m: n}], del: []}; }', True),
        ('on d(x) { var n = 0; for r in x.ins { n = n +% 1; n = n *% 2; } emit o {tau: x.tau, ins: [{k: "", m: n}], del: []}; }',
         True),
        (("on d(x) { var n = 0; var o1: list<O> = []; for r in x.ins { n = n +% 1; push(o1, {k: r.k, m: n}); } "
         "emit o {tau: x.tau, ins: o1, del: []}; }"), True),
        (("on d(x) { var n = 0; var o1: list<O> = []; for r in x.ins { push(o1, {k: r.k, m: n}); n = n +% 1; } "
         "emit o {tau: x.tau, ins: o1, del: []}; }"), True),
        (("on d(x) { var c: map<string, i64> = {}; var o1: list<O> = []; for r in x.ins { with e = c[r.k] else 0 { } "
         "push(o1, {k: r.k, m: len(c)}); } emit o {tau: x.tau, ins: o1, del: []}; }"), True),
        (('on d(x) { var n = 0; for r in x.ins { if r.n > 1 { continue; } n = n +% r.n; } '
         'emit o {tau: x.tau, ins: [{k: "", m: n}], del: []}; }'), False),
        (("on d(x) { var n = 0; outer: for i in 0 .. 2 { for r in x.ins { if r.n > 1 { continue outer; } n = n +% r.n; } } "
         'emit o {tau: x.tau, ins: [{k: "", m: n}], del: []}; }'), True),
        (("fn last(ref n: i64, r: R) { n = r.n; } on d(x) { var n = 0; for r in x.ins { last(n, r); } "
         'emit o {tau: x.tau, ins: [{k: "", m: n}], del: []}; }'), True),
        (("fn one(rows: list<R>) -> i64 { for r in rows { return r.n; } return 0; } "
         'on d(x) { emit o {tau: x.tau, ins: [{k: "", m: one(x.ins)}], del: []}; }'), True),
        (("fn all(rows: list<R>) -> i64 { var n = 0; for r in rows { n = n +% r.n; } return n; } "
         'on d(x) { emit o {tau: x.tau, ins: [{k: "", m: all(x.ins)}], del: []}; }'), False),
        (("on d(x) { var o1: list<O> = []; for r in x.ins { if r.n > 1 { break; } push(o1, {k: r.k, m: 0}); } "
         "emit o {tau: x.tau, ins: o1, del: []}; }"), True),
        (("on d(x) { var c: map<string, i64> = {}; for r in x.ins { with e = c[r.k] else r.n { e = e +% 1; } } "
         "emit o {tau: x.tau, ins: [{k: k, m: n} for k, n in c], del: []}; }"), True),
        (("on d(x) { var c: map<string, i64> = {}; for r in x.ins { if r.n > 1 { with e = c[r.k] else 0 { e = e +% 1; } } "
         "else { with e = c[r.k] else 5 { e = e +% 1; } } } emit o {tau: x.tau, ins: [{k: k, m: n} for k, n in c], del: []}; }"),
         True),
        (("on d(x) { var c: map<string, i64> = {}; for r in x.ins { with e = c[r.k] else 0 { e = e +% 1; } } "
         "emit o {tau: x.tau, ins: [{k: keys(c)[0], m: 0}], del: []}; }"), True),
        (("on d(x) { var c: map<string, list<i64>> = {}; for r in x.ins { with e = c[r.k] else [] { push(e, r.n); } } "
         "emit o {tau: x.tau, ins: [{k: k, m: i64.wrap(hash64(n))} for k, n in c], del: []}; }"), True),
        # Rendered, compared, hashed as a whole.
        ('on d(x) { emit o {tau: x.tau, ins: [{k: "", m: i64.wrap(hash64(x.ins))}], del: []}; }', True),
        ('on d(x) { emit o {tau: x.tau, ins: [{k: "", m: i64.wrap(hash64(x))}], del: []}; }', True),
        ('on d(x) { emit o {tau: x.tau, ins: [{k: join([r.k for r in x.ins], " "), m: 0}], del: []}; }', True),
        ('on d(x) { emit o {tau: x.tau, ins: [{k: "", m: compare(x.ins, x.del)}], del: []}; }', True),
        ("on d(x) { if x.ins == x.del { emit o {tau: x.tau, ins: [], del: []}; } }", True),
        ("on d(x) { if same({a: 1, b: x.ins}, {a: 1, b: x.del}) { emit o {tau: x.tau, ins: [], del: []}; } }", True),
        ('on d(x) { let n = fold(x.ins, 0, fn(a, r) => a *% 3 +% r.n); emit o {tau: x.tau, ins: [{k: "", m: n}], del: []}; }',
         True),
        ("on d(x) { let w = [x.ins]; if contains(w, x.del) { emit o {tau: x.tau, ins: [], del: []}; } }", True),
    ],
)  # fmt: skip
def test_order_reading(body: str, *, reads: bool) -> None:
    found = delta(body)
    assert (found.order_reading, found.commutative) == (reads, not reads)


@pytest.mark.parametrize(
    "body",
    [
        "on d(x) { emit o {tau: x.tau, all: x.ins}; }",
        "on d(x) { for r in x.ins { emit o {tau: x.tau, all: []}; } }",
        "fn each(rows: list<R>) { for r in rows { emit o {tau: seconds(r.n), all: []}; } } on d(x) { each(x.ins); }",
    ],
)
def test_what_leaves_in_the_order_of_the_rows_shows_it(body: str) -> None:
    """Only the rows of a delta have no order: items of other types are told apart by theirs."""
    body = body.replace("seconds(r.n)", "time(r.n)")
    found = of(f"operator f(d: D by tau) -> (o: {{tau: time, all: list<R>}} by tau) {{ {body} }}")
    assert found.order_reading
    assert not found.commutative


def test_lists_of_other_items_have_an_order_of_their_own() -> None:
    text = """operator f(x: {k: string, all: list<string>}) -> (o: O) {
      on x(v) { emit o {k: v.all[0], m: i64.wrap(hash64(v.all))}; } }"""
    assert not of(text).order_reading


def test_an_operation_that_states_nothing_shows_order(monkeypatch: pytest.MonkeyPatch) -> None:
    body = 'on d(x) { emit o {tau: x.tau, ins: [{k: "", m: len(x.ins)}], del: []}; }'
    assert not delta(body).order_reading
    line = attrs.evolve(OPERATIONS["len"], effect=attrs.fields(Operation).effect.default)
    monkeypatch.setattr(trees, "OPERATIONS", {**OPERATIONS, "len": line})
    assert delta(body).order_reading


def test_traps() -> None:
    assert not flat("on x(v) { emit o {k: v.k, m: v.n +% 1}; }").can_trap
    assert flat("on x(v) { emit o {k: v.k, m: v.n + 1}; }").can_trap
    assert not flat("fn f(n: i64) -> i64 = n +% 1; on x(v) { emit o {k: v.k, m: f(v.n)}; }").can_trap
    recursive = "fn f(n: i64) -> i64 { if n <= 0 { return 0; } return f(n -% 1); } on x(v) { emit o {k: v.k, m: f(v.n)}; }"
    assert flat(recursive).can_trap
    assert flat('on x(v) { if v.n > 0 { trap "no"; } }').can_trap


def test_recursion_is_taken_for_anything() -> None:
    text = """fn f(k: string, n: i64) -> string { if n <= 0 { return k; } return f(k, n -% 1); }
      on x(v) { emit o {k: f(v.k, v.n), m: 0}; }"""
    assert flat(text).forwarded == ((),)


def test_externs_are_what_their_annotations_state() -> None:
    text = """operator f(x: R; $m: map<string, i64>) -> (o: O) = extern python "m:f";
    input a: R; output b: O; var $m: map<string, i64> = {};
    %s (b, $m) <- f(a, $m);"""
    bare = verify(program(text % ""), LIBRARY).instances[0]
    assert isinstance(bare.operator, typed.Extern)
    assert instance_model(bare).state == Unknown()
    said = instance_model(verify(program(text % "@Keys(k) @Commutative()"), LIBRARY).instances[0])
    assert (said.state, said.commutative, said.can_trap, said.reads) == (Keyed((("k",),)), True, True, None)


def test_an_author_may_promise_that_order_does_not_matter() -> None:
    text = """operator f(x: R; $m: map<string, i64>) -> () { on x(v) { with c = $m[v.k] else 0 { c = c + v.n; } } }
    input a: R; var $m: map<string, i64> = {};
    %s ($m) <- f(a, $m);"""
    assert not instance_model(verify(program(text % ""), LIBRARY).instances[0]).commutative
    assert instance_model(verify(program(text % "@Commutative()"), LIBRARY).instances[0]).commutative


def test_a_model_is_printed() -> None:
    body = "on x(v) { with c = $m[v.k] else 0 { c = c + v.n; if c > 9 { emit o {k: v.k, m: c}; } } }"
    found = flat(body, "$m: map<string, i64>")
    assert str(found) == (
        "state: keyed by (k)\noutput 0: at most one per firing\noutput 0 forwards: k\nreads: k, n\n"
        "reads order: yes\ncan trap: yes\ncommutative: no"
    )
    assert str(flat("on x[pop 2](w) { emit o {k: w[0].k, m: w[1].n}; }")).startswith(
        "state: none, and hidden state\n"
    )
