"""Joins divided by their key on several workers: the results of one, to the byte, rows in order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llvmlite")

import river
from backends.multicore import BACKEND, by_rows, sharded
from backends.multicore.by_rows import ByRowsOperate
from river.backend import Options
from river.il.annotations import annotated
from river.il.parse import parse
from river.il.regions import ByRows, chain, divided, divided_together
from river.il.templates import Library
from river.il.verify import verify
from river.lang.evaluate import Trap
from river.platform import Platform
from river.source import Source
from river.testing import laws
from river.testing.seeds import chance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from river.il.graph import Graph

HEAD = """a: {ts: int; k: int; v: int; name: string} stream by ts;
b: {ts: int; j: int; w: int} stream by ts;
"""
QUERIES = {
    "windows": "c: relation = select a.k, a.name, b.w from a[range 5], b[range 7] where a.k = b.j;",
    "that last": "c: stream by ts = istream(select a.k, a.name, b.w from a[range 5], b where a.k = b.j);",
    "of which one tells": "c: stream by ts = istream(select a.k, b.w from a[range 5], b[range 7] where a.k = b.j);",
    "without the key": "c: stream by ts = istream(select b.w from a[range 5], b[range 7] where a.k = b.j);",
    "left": "c: relation = select a.k, a.name, b.w from a[range 5] left join b[range 7] on a.k = b.j;",
    "full, with a condition": """c: relation
  = select a.k, b.j, b.w from a[range 5] full join b[range 7] on a.k = b.j and a.v < b.w;""",
    "near": "c: relation = select a.k, a.v, b.w from a[range 5], b[range 7] where a.k = b.j and a.v < b.w;",
    "by two": "c: relation = select a.k, a.name, b.w from a[range 5], b[range 7] where a.k = b.j and a.v = b.w;",
    "that may be missing": """d: {ts: int; k: int; v: int?} stream by ts;
c: relation = select d.k, b.w from b[range 5] left join d[range 7] on b.j = d.v;""",
    "with itself": "c: relation = select s.k, t.name from a[range 3] as s, a[range 6] as t where s.k = t.k;",
    "then groups": """c: relation = select k, sum(w) as n, max(v) as most
  from (select a.k as k, a.v as v, b.w as w from a[range 5], b[range 7] where a.k = b.j) group by k;""",
    "with groups looked up": """d: {ts: int; k: int; v: int} stream by ts;
counts: relation = select k, v, count(*) as n from d[range 9] group by k, v;
c: stream by ts = rstream(select a.k, a.name, g.n from a[now] as a, counts as g where a.k = g.k and a.v = g.v);""",
    "of groups": """c: relation = select s.k, s.n, b.w
  from (select k, count(*) as n from a[range 4] group by k) as s, b[range 6] where s.k = b.j;""",
}
TOGETHER = {
    "that last": ["join", "istream"],
    "left": ["outer"],
    "that may be missing": ["outer", "select"],
    "full, with a condition": ["outer"],
    "near": ["join", "select", "net"],
    "then groups": ["join", "group"],
    "without the key": ["join"],
    "of which one tells": ["join", "istream"],
    "with groups looked up": ["group"],
}
"""What is divided by the key of a join: of most the join with what tells rows that come and go at an instant."""


def rows(random: Random, count: int) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of both streams, several at an instant, with pauses in which all leave the windows of one side or of both."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for name in ("a", "b", "d"):
        at = 0
        found[name] = []
        for _ in range(count):
            at += random.choice([0, 0, 0, 0, 0, 0, 1, 1, 2, 9])
            row = (at, random.randrange(4), random.randrange(5))
            found[name].append(
                (*row, f"a name that is not short {random.randrange(9)}") if name == "a" else row
            )
    return found


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators that were divided."""
    found: list[str] = []
    before = ByRowsOperate._divided

    def noted(task: ByRowsOperate) -> bool:
        if made := before(task):
            found.extend(re.split("[_#]", each.name)[0] for each in (task, *task._behind))
        return made

    monkeypatch.setattr(ByRowsOperate, "_divided", noted)
    return found


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divided when something has been fired on, however cheap that was."""
    for name in ("GAIN", "LEAST"):
        monkeypatch.setattr(sharded, name, 0)
    for name in ("LARGE", "BUSY", "BETTER"):
        monkeypatch.setattr(by_rows, name, 0)
    monkeypatch.setattr(by_rows, "SURE", 1)


def cut(given: Sequence[Any], size: int) -> list[list[Any]]:
    return [[*given[i : i + size]] for i in range(0, len(given), size)]


def sent(graph: Graph, inputs: Mapping[str, Sequence[Any]], size: int, options: Options) -> list[Any]:
    """What leaves by the one output, rows in order."""
    found: list[Any] = []
    workers = options.workers or 1
    (out,) = graph.outputs
    plan = BACKEND.plan(laws.after(graph, laws.REGIONS, workers), Platform(workers), options)
    BACKEND.run(plan, {name: cut(inputs[name], size) for name in graph.inputs}, {out: found.extend})
    return found


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("name", QUERIES)
def test_what_joins_is_the_same_for_all_workers(name: str, done: list[str]) -> None:
    program = river.compile(HEAD + QUERIES[name], lang="cql")
    random = chance("joins on several workers", name)
    inputs = rows(random, 60)
    whole = sent(program.graph, inputs, 4, Options(1, 4, 4))
    assert len(whole) > 3
    for workers in range(2, 6):
        options = Options(
            workers, random.choice([1, 3, 64]), random.choice([2, 64]), experiment={"gate": "open"}
        )
        assert sent(program.graph, inputs, random.choice([1, 4, 60]), options) == whole, options
    joins = [each for each in done if each not in ("range", "group")] if name == "of groups" else done
    assert joins == 4 * TOGETHER.get(name, ["join", "net"])
    few = {each: inputs[each][:25] for each in program.graph.inputs}
    opened = [
        Options(2, 7, 9, experiment={"gate": "open"}),
        Options(3, 7, 9, experiment={"gate": "open"}, native="debug"),
    ]
    laws.check_agrees(BACKEND, program.graph, few, Platform(3), opened)


@pytest.mark.slow
def test_what_is_divided_in_the_middle_of_a_run_goes_on_as_it_was(now: None, done: list[str]) -> None:
    program = river.compile(HEAD + QUERIES["then groups"], lang="cql")
    inputs = rows(chance("joins divided in a run", ""), 90)
    whole = sent(program.graph, inputs, 5, Options(1))
    for size in (3, 30):
        assert sent(program.graph, inputs, size, Options(3, 2 * size, size)) == whole
    assert done == 2 * ["join", "group"]


MERGED = """river 1;
type L = {k: i64, v: i64};
type R = {w: i64, j: i64};
type A = {tau: i64, ins: list<L>, del: list<L>};
type B = {tau: i64, ins: list<R>, del: list<R>};
type O = {tau: i64, ins: list<L>, del: list<L>};
input a: A by tau;
input b: B by tau;
var $l: map<i64, list<i64>> = {};
var $r: map<i64, list<i64>> = {};
operator meet(a: A by tau, b: B by tau; $l: map<i64, list<i64>>, $r: map<i64, list<i64>>) -> (o: O by tau) {
  on merge(a(x), b(y)) {
    var ins: list<L> = [];
    var del: list<L> = [];
    if x is x {
      for e in x.ins { with s = $l[e.k] else [] { push(s, e.v); } for w in get($r, e.k, []) { push(ins, {k: e.k, v: w}); } }
      for e in x.del { for w in get($r, e.k, []) { push(del, {k: e.k, v: div.trunc(w, e.v)}); } }
    }
    if y is y {
      for e in y.ins { with s = $r[e.j] else [] { push(s, e.w); } for v in get($l, e.j, []) { push(ins, {k: e.j, v: v}); } }
    }
    emit o {tau: key, ins: ins, del: del};
  }
}
(o, $l, $r) <- meet(a, b, $l, $r);
output o: O by tau;
"""


def merged(old: str = "", new: str = "") -> Graph:
    assert old in MERGED
    return verify(parse(Source("meet.river", MERGED.replace(old, new) if old else MERGED)), Library.of({}))


def deltas(random: Random, count: int, *, twice: bool = False) -> dict[str, list[Any]]:
    """Deltas of A and B, some without rows; `twice`: several of one instant."""

    def side(most: int, low: int) -> tuple[tuple[int, int], ...]:
        return tuple((random.randrange(4), random.randrange(low, 9)) for _ in range(random.randrange(most)))

    def at(i: int) -> int:
        return i // 2 if twice else 3 * i + random.randrange(3)

    return {
        "a": [(at(i), side(4, 1), side(3, 1)) for i in range(count)],
        "b": [(at(i), tuple((w, k) for k, w in side(4, 0)), ()) for i in range(count)],
    }


def test_instants_that_come_twice_are_not_joined(done: list[str]) -> None:
    graph, random = merged(), chance("joins of instants that come twice", "")
    inputs = deltas(random, 12, twice=True)
    whole = sent(graph, inputs, 12, Options(1))
    assert len(whole) == 12
    for batch, size in ((1, 1), (3, 12), (64, 5)):
        assert sent(graph, inputs, size, Options(3, batch, 64, experiment={"gate": "open"})) == whole
    assert done == 3 * ["meet"]


@pytest.mark.usefixtures("now")
def test_a_trap_ends_a_join_at_its_instant(done: list[str]) -> None:
    graph, inputs = merged(), deltas(chance("joins that trap", ""), 40)
    inputs["b"][0] = (0, tuple((w, k) for k in range(4) for w in range(3)), ())
    tau, *_ = inputs["a"][30]
    inputs["a"][30] = (tau, (), tuple((k, 0) for k in range(4)))
    found: list[Any] = []
    for options in (Options(1), Options(2, 5, 8), Options(3, 7, 64, experiment={"gate": "open"})):
        rows: list[Any] = []
        plan = BACKEND.plan(laws.after(graph, laws.REGIONS, options.workers or 1), Platform(3), options)
        with pytest.raises(Trap) as caught:
            BACKEND.run(plan, {name: cut(inputs[name], 6) for name in inputs}, {"o": rows.extend})
        found.append((rows, caught.value.code, caught.value.operator, caught.value.item))
    assert found[0] == found[1] == found[2]
    assert found[0][1] == "division-by-zero"
    assert [at for at, *_ in found[0][0]][-1] < tau
    assert done == 2 * ["meet"]


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("", "", ByRows(("k",), (((0,),), ((1,),)), promised=False)),
        (
            "for w in get($r, e.k, [])",
            "for w in get($r, e.v, [])",
            "takes 2 inputs together, of which it is not known that it joins them by a key",
        ),
        (
            "push(ins, {k: e.j, v: v})",
            "push(ins, {k: e.j, v: len(ins)})",
            "cannot be given parts of a delta: it looks at the rows of an instant together",
        ),
        (
            "      for e in x.del { for",
            "      for e in x.ins { push(del, e); } for e in x.del { for",
            ByRows(("k",), (((0,),), ((1,),)), promised=False),
        ),
        (
            "emit o {tau: key, ins: ins, del: del}",
            "if x is x { for e in x.ins { push(del, e); } } emit o {tau: key, ins: ins, del: del}",
            "may send rows of which it is not seen what they are made of",
        ),
        ("var $r: map<i64, list<i64>> = {};", "var $r: map<i64, list<i64>> = {1: [2]};", "has `$r`, which is not empty at first"),
    ],
)  # fmt: skip
def test_which_joins_may_be_divided(old: str, new: str, wanted: ByRows | str) -> None:
    graph = merged(old, new)
    assert divided(graph, graph.instances[0]) == wanted


def test_a_join_begins_a_region_and_names_the_key_by_its_first_input() -> None:
    for name, members in (("then groups", 2), ("without the key", 1), ("windows", 2)):
        graph = laws.after(river.compile(HEAD + QUERIES[name], lang="cql").graph, laws.REGIONS, 2)
        (join,) = (each for each in graph.instances if len(each.ins) > 1)
        said = annotated(join.use).region
        assert said is not None
        assert said.keys == ("k",)
        assert len(chain(graph, said.id)) == members
    range_, join = (
        next(i.index for i in graph.instances if what in i.name) for what in ("range_c_a", "join")
    )
    assert divided_together(graph, (range_, join)) == (
        "`join_c` joins what the one before it sends with other rows"
    )
