"""Operators that join rows by key are known by what they do."""

from __future__ import annotations

import pytest

import river
from river.il.joins import Join, joined

TEXT = """river 1;
type L = {k: i64, s: string, v: i64};
type R = {w: i64, t: string, j: i64};
type O = {v: i64, s: string, w: i64, k: i64};
operator join(l: {tau: i64, ins: list<L>, del: list<L>} by tau, r: {tau: i64, ins: list<R>, del: list<R>} by tau;
              $l: map<(string, i64), bag<L>>, $r: map<(string, i64), bag<R>>)
    -> (out: {tau: i64, ins: list<O>, del: list<O>} by tau) {
  fn near(rows: bag<L>, v: i64) -> list<L> { return [x for x in rows if x.v < v]; }
  on merge(l(a), r(b)) {
    var ins: list<O> = [];
    var del: list<O> = [];
    if a is a {
      for x in a.ins {
        let k: (string, i64) = (x.s, x.k);
        with s = $l[k] else {} { add(s, x); }
        for y in get($r, k, {}) { push(ins, {v: x.v, s: y.t, w: y.w, k: x.k}); }
      }
    }
    if b is b {
      for y in b.ins {
        let k: (string, i64) = (y.t, y.j);
        with s = $r[k] else {} { add(s, y); }
        for x in near(get($l, k, {}), y.w) { push(ins, {v: x.v, s: y.t, w: y.w, k: y.j}); }
      }
    }
    if len(ins) + len(del) > 0 { emit out {tau: key, ins: ins, del: del}; }
  }
}
input a: {tau: i64, ins: list<L>, del: list<L>} by tau;
input b: {tau: i64, ins: list<R>, del: list<R>} by tau;
output o: {tau: i64, ins: list<O>, del: list<O>} by tau;
var $l: map<(string, i64), bag<L>> = {}; var $r: map<(string, i64), bag<R>> = {};
(o, $l, $r) <- join(a, b, $l, $r);
"""


def found(text: str) -> Join | None:
    return joined(river.compile(text, "river").graph.instances[0].operator)


KEYS = (("s", "k"), ("t", "j"))


@pytest.mark.parametrize(
    ("before", "after", "sent"),
    [
        ("", "", (("s", 0), ("k", 1))),
        ("k: y.j}", "k: y.w}", (("s", 0),)),
        ("if b is b", "$l = {}; if b is b", None),
        ("if len(ins)", "$l = {}; $r = {}; if len(ins)", (("s", 0), ("k", 1))),
        ("if len(ins)", "if key > 3 { $l = {}; } if len(ins)", None),
        ("len(del) > 0", "len(del) > 1", None),
        ("ins: ins, del: del", "ins: ins, del: []", None),
        ("let k: (string, i64) = (y.t, y.j);", "let k: (string, i64) = (y.t, y.w);", (("s", 0), ("w", 1))),
        ("let k: (string, i64) = (x.s, x.k);", "let k: (string, i64) = (x.s, 1);", None),
        ("get($r, k, {})", "get($r, (x.s, x.v), {})", None),
        ("push(ins, {v: x.v,", "push(ins, {v: len(a.ins),", None),
        ("{ add(s, x); }", "{ add(s, x); if len(ins) > 3 { clear(s); } }", None),
    ],
)
def test_what_is_a_join_by_key(before: str, after: str, sent: tuple[tuple[str, int], ...] | None) -> None:
    """`sent`: the fields of what is sent that are parts of the key; None where rows with other keys may matter."""
    assert before in TEXT
    how = found(TEXT.replace(before, after, 1) if before else TEXT)
    assert (how and how.sent) == sent
    if how is not None and "y.w);" not in after:
        assert how.keys == KEYS
