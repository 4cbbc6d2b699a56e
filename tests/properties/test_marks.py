"""The law of marks: an operator that is accepted cannot tell how many marks there are."""

from __future__ import annotations

from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from calculus.observe import Faulted
from calculus.run import run
from calculus.schedule import FirstCome
from river.diagnostics import Rejected
from river.il.erase import erase
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang.values import END, Mark
from river.source import Source

LIBRARY = Library.of({})
LAST = (1 << 63) - 1
TEXT = """river 1;
type K = {{n: i64, v: i64}};
operator f(x: K by n; $w: deque<K>) -> (o: K) {{
  fn go(ref w: deque<K>, end: i64) {{ {loop} {{ {look} {step} }} }}
  on x(v) {{ {item} }}
  on mark(k) {{ {mark} }}
}}
input a: K by n; output b: K; var $w: deque<K> = {{}};
(b, $w) <- f(a, $w);
"""
HEAD = "len(w) > 0"
FRONT = "front(w).n + 2"


def parts(lawful: list[str], others: list[str]) -> st.SearchStrategy[str]:
    """Mostly what is lawful in lawful surroundings."""
    return st.one_of(*[st.sampled_from(lawful)] * 5, st.sampled_from([*lawful, *others]))


loops = parts(
    [
        f"while {HEAD} and {FRONT} < end", f"while {HEAD} and end >= {FRONT}", f"while {HEAD}",
        f"while {HEAD} and ({FRONT} < end or end > 9)",
    ],
    [
        f"for i in 0 .. i64(if {HEAD} and {FRONT} < end {{1}} else {{0}})", f"while {HEAD} and {FRONT} != end",
        f"while {HEAD} and not ({FRONT} >= end)", f"while {HEAD} and {FRONT} > end",
        f"while {HEAD} and (end < 5 or {FRONT} < end)",
    ],
)  # fmt: skip
looks = parts(
    [
        f"if {FRONT} >= end {{ break; }}", f"let n = {FRONT}; if end < n {{ break; }}",
        f"if front(w).v == 2 or {FRONT} > end {{ break; }}",
    ],
    ["", f"if {FRONT} < end {{ break; }}", "emit o front(w);", "if end == 4 { return; }", "let n = pop_front(w).v;"],
)  # fmt: skip
steps = parts(
    ["emit o pop_front(w);", "let v = pop_front(w); if v.v > 0 { push_back(w, {n: v.n, v: v.v - 1}); emit o v; }"],
    [
        "emit o pop_front(w); break;", "let v = pop_front(w); emit o {n: end, v: v.v};",
        "emit o pop_front(w); if end > 5 { return; }", "emit o front(w); clear(w);",
        "let v = pop_front(w); if v.v == 1 { return; }",
    ],
)  # fmt: skip
items = parts(
    ["go($w, v.n); push_back($w, v);", "go($w, v.n); emit o v; push_back($w, v);"],
    [
        "push_back($w, v);", "push_back($w, v); go($w, v.n);", "go($w, v.n + 1); push_back($w, v);",
        "emit o v; go($w, v.n); push_back($w, v);", "if v.v > 0 { go($w, v.n); } push_back($w, v);",
    ],
)  # fmt: skip
told = parts(
    ["go($w, k);", f"go($w, k); if k == {LAST} {{ clear($w); }}"],
    [
        "", "go($w, k); clear($w);", "go($w, k); if k == 7 { clear($w); }", "go($w, k); emit o {n: k, v: 0};",
        "go($w, k + 1);",
    ],
)  # fmt: skip
texts = st.builds(TEXT.format, loop=loops, look=looks, step=steps, item=items, mark=told)


@st.composite
def told_of(draw: st.DrawFn) -> tuple[list[Any], list[Any]]:
    """Items with the mark of the end, and the same with more marks between them."""
    keys = sorted(draw(st.lists(st.integers(0, 9), min_size=1, max_size=6)))
    rows = [(key, draw(st.integers(0, 2))) for key in keys]
    end = draw(st.sampled_from([keys[-1] + 1, 20, LAST]))
    more: list[Any] = []
    marked = 0
    for row in rows:
        for _ in range(draw(st.integers(0, 2))):
            marked = draw(st.integers(marked, row[0]))
            more.append(Mark(marked))
        more.append(row)
    tail = sorted(draw(st.lists(st.integers(keys[-1], max(keys[-1], min(end - 1, 15))), max_size=2)))
    return [*rows, Mark(end), END], [*more, *map(Mark, tail), Mark(end), END]


@given(texts, told_of())
def test_what_is_accepted_cannot_tell_how_many_marks_there_are(
    text: str, queues: tuple[list[Any], list[Any]]
) -> None:
    try:
        graph = verify(parse(Source("test.river", text)), LIBRARY)
    except Rejected as rejected:
        codes = {d.code for d in rejected.diagnostics}
    else:
        codes = set[str]()
        few, many = (run(erase(graph), {"a": queue}, FirstCome()).outcome for queue in queues)
        assert few == many or (isinstance(few, Faulted) and isinstance(many, Faulted)), text
    event(", ".join(codes))
    assert codes <= {"il-mark-counted"}, text
