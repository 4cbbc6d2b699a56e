"""The hard operators of the three languages, written in River IL: `tests/bodies/*.river`.

Each is read, checked, run on a small input whose result was worked out by hand, and explored over all schedules; most are
also compared with a plain program of the same meaning on random inputs.
"""

from __future__ import annotations

import cmath
import math
import struct
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calculus import FirstCome, Seeded, outcomes, run
from river.il.erase import erase, inputs
from river.il.observe import observe
from river.il.parse import parse
from river.il.pretty import pretty
from river.il.program import Instance, Program, Use
from river.il.templates import Library
from river.il.verify import verify
from river.lang import syntax as s
from river.lang.values import NAN
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from river.il.graph import Graph
    from river.il.observe import Observation

FOLDER = Path(__file__).resolve().parents[1] / "bodies"
NAMES = sorted(path.stem for path in FOLDER.glob("*.river"))
INF = math.inf

few = settings(max_examples=20)


@cache
def library() -> Library:
    return Library.of({})


def source(name: str) -> Source:
    return Source(f"{name}.river", (FOLDER / f"{name}.river").read_text(encoding="utf-8"))


@cache
def graph(name: str) -> Graph:
    return verify(parse(source(name)), library())


def result(of: Graph, data: Mapping[str, Sequence[Any]], seed: int | None = None) -> Observation:
    """What one run leaves."""
    done = run(erase(of), inputs(of, data), FirstCome() if seed is None else Seeded(seed))
    assert done.outcome is not None
    seen = observe(of, done.outcome)
    assert hasattr(seen, "outputs"), seen
    return seen  # pyright: ignore[reportReturnType]


def output(name: str, seed: int | None = None, /, **data: Sequence[Any]) -> list[Any]:
    """The items of a body's only output."""
    ((_, items),) = result(graph(name), data, seed).outputs
    return list(items)


# ------------------------------------------------------------------------------------- examples worked out by hand

S = 1_000_000  # microseconds
HAND: dict[str, tuple[dict[str, list[Any]], dict[str, list[Any]]]] = {
    "a1_group": (
        {
            "d": [
                (1, (("a", 5), ("a", 3), ("b", 7)), ()),
                (2, (("a", 9),), (("a", 3),)),
                (3, (), (("b", 7),)),
                (4, (("a", 5),), (("a", 5),)),  # comes and goes: no change
            ]
        },
        {
            "out": [
                (1, (("a", 2, 8, 3, 5), ("b", 1, 7, 7, 7)), ()),
                (2, (("a", 2, 14, 5, 9),), (("a", 2, 8, 3, 5),)),
                (3, (), (("b", 1, 7, 7, 7),)),
            ]
        },
    ),
    "a1_average": (
        {
            "d": [
                (1, ((1, 1e308), (1, 1e308)), ()),
                (2, (), ((1, 1e308),)),
                (3, ((1, INF), (1, -INF)), ()),
                (4, (), ((1, -INF), (1, INF))),
            ]
        },
        {
            "out": [
                (1, ((1, 2, INF),), ()),
                (2, ((1, 1, 1e308),), ((1, 2, INF),)),
                (3, ((1, 3, NAN),), ((1, 1, 1e308),)),
                (4, ((1, 1, 1e308),), ((1, 3, NAN),)),
            ]
        },
    ),
    "a2_range": (
        {
            "d": [
                (0, ((1, 10),), ()),
                (100 * S, ((2, 20),), ()),
                (250 * S, ((3, 30),), ()),
                (401 * S, ((4, 40),), ()),
            ]
        },
        {
            "out": [
                (0, ((1, 10),), ()),
                (100 * S, ((2, 20),), ()),
                (250 * S, ((3, 30),), ()),
                (301 * S, (), ((1, 10),)),  # nothing arrives then
                (401 * S, ((4, 40),), ((2, 20),)),  # leaves as another one comes
            ]  # time stops: 3 and 4 stay
        },
    ),
    "a3_join": (
        {
            "l": [(1, ((1, 10), (None, 11)), ()), (2, (), ((1, 10),)), (4, ((1, 12),), ())],
            "r": [(1, ((1, 20), (None, 22)), ()), (3, ((1, 21),), ())],
        },
        {
            "out": [
                (1, ((1, 10, 20),), ()),
                (2, (), ((1, 10, 20),)),
                (4, ((1, 12, 20), (1, 12, 21)), ()),
            ]
        },
    ),
    "a4_left_join": (
        {
            "l": [(1, (("a", 1),), ()), (5, (), (("a", 1),))],
            "r": [(2, (("a", 5),), ()), (3, (("a", 6),), ()), (4, (), (("a", 5), ("a", 6)))],
        },
        {
            "out": [
                (1, (("a", 1, None),), ()),
                (2, (("a", 1, 5),), (("a", 1, None),)),
                (3, (("a", 1, 6),), ()),
                (4, (("a", 1, None),), (("a", 1, 5), ("a", 1, 6))),
                (5, (), (("a", 1, None),)),
            ]
        },
    ),
    "a5_istream": (
        {
            "d": [
                (1, ((1, 0.5), (2, 0.5), (1, 0.5)), ((1, 0.5),)),
                (2, ((3, NAN), (4, -0.0)), ((3, NAN), (4, 0.0))),
                (3, (), ((2, 0.5),)),
            ]
        },
        {"out": [(1, ((2, 0.5), (1, 0.5)), ())]},
    ),
    "a5_dstream": (
        {"d": [(1, ((1, 0.5),), ()), (2, ((1, 0.5),), ((1, 0.5), (2, NAN), (1, 0.5)))]},
        {"out": [(2, ((2, NAN), (1, 0.5)), ())]},
    ),
    "a5_distinct": (
        {
            "d": [
                (1, ((1, 0.0), (1, -0.0), (2, NAN), (2, NAN)), ()),
                (2, (), ((1, -0.0), (2, NAN))),
                (3, ((3, 1.0),), ((1, 0.0), (3, 1.0))),
            ]
        },
        {"out": [(1, ((1, 0.0), (2, NAN)), ()), (3, (), ((1, 0.0),))]},
    ),
    "a5_rows_by": (
        {
            "d": [
                (1, (("e", 1), ("e", 2), ("w", 1)), ()),
                (2, (("e", 3),), ()),
                (3, (("w", 2), ("w", 3), ("w", 4)), ()),
            ]
        },
        {
            "out": [
                (1, (("e", 1), ("e", 2), ("w", 1)), ()),
                (2, (("e", 3),), (("e", 1),)),
                (3, (("w", 2), ("w", 3), ("w", 4)), (("w", 1), ("w", 2))),
            ]
        },
    ),
    "b1_map": (
        {
            "log": [
                ("http://a.com/x", "1.5", 3, (1, 2), (2, 1), (0, 1)),
                ("ftp://c.net/", "1", 1, (1,), (1,), ()),
                ("https://b.org:80/", "fast", 4, (1,), (1,), ()),
                ("http://d.io", "2", 5, (7,), (8,), ()),
            ]
        },
        {
            "best": [
                ("a.com", "http://a.com/x", 3),
                ("b.org", "https://b.org:80/", 4),
                ("d.io", "http://d.io", 5),
            ],
            "lat": [("a.com", (1, 1.5)), ("d.io", (1, 2.0))],
            "pairs": [(0, 1), (1, 0)],
            "above": [(1,), (0,)],
            "undef": [(3, "index 1 of an array of 0"), (5, 'float("fast")')],
        },
    ),
    "b2_top": (
        {"hits": [("a", "u", 1), ("b", "v", 2), ("a", "w", 5), ("a", "u", 1), ("b", "v", -2)]},
        {"best": [("a", "u", 2), ("a", "w", 5), ("b", "v", 0)]},
    ),
    "b2_sum_table": (
        {
            "hits": [
                ("a", (1, 10, 1e16)),
                ("b", (1, 2**63 - 1, 0.5)),
                ("a", (1, 20, 1.0)),
                ("a", (1, 30, -1e16)),
                ("b", (1, 1, 0.0)),
            ]
        },
        {"totals": [("a", 3, 60, 1.0), ("b", 2, -(2**63), 0.5)]},
    ),
    "c_bitonic": (
        {"x": [3, 1, 2, 9, 8, 7, 6, 5, 4, 0, -1, 3, 3, 12, 11, 10]},
        {"y": [-1, 0, 1, 2, 3, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]},
    ),
    "c_counter": ({"clock": [(), (), ()]}, {"y": [2147483646, 2147483647, -2147483648]}),
    "c_delay": ({"x": [1.0, 2.0]}, {"y": [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0]}),
    "c_echo": (
        {"sig": [1.0, 2.0, 0.0, 0.0, 0.0, 1.0]},
        {"out": [1.0, 2.0, 0.0, 0.0, 0.6000000238418579, 2.200000047683716]},
    ),
    "c_fft": (
        {
            "x": [(1.0, 0.0), *[(0.0, 0.0)] * 7, *[(0.5, 0.0)] * 8, (9.0, 9.0)]
        },  # an impulse, a constant, an incomplete block
        {"y": [*[(1.0, 0.0)] * 8, (4.0, 0.0), *[(0.0, 0.0)] * 7]},
    ),
    "c_fir": ({"x": [0.0] * 16 + [1.0]}, {"y": [0.0]}),
    "c_join23": (
        {"a": [1, 2, 3, 4, 5], "b": [10, 11, 12, 13, 14, 15]},
        {"out": [1, 2, 10, 11, 12, 3, 4, 13, 14, 15, 5]},
    ),
    "d_fission": (
        {"trades": [("A", 1), ("B", 10), ("A", 2), ("C", 100), ("B", 20)]},
        {"totals": [("A", 1), ("B", 10), ("A", 3), ("C", 100), ("B", 30)]},
    ),
    "d_split_merge": ({"xs": [5, -1, -2, 7, 0]}, {"ys": [5, 7]}),
}
FINAL: dict[str, dict[str, Any]] = {
    "a1_group": {"g": frozenset({("a", (2, 14, frozenset({(5, 1), (9, 1)}), 4, ("a", 2, 14, 5, 9)))})},
    "a1_average": {"g": frozenset({(1, (1, (int(1e308) << 1074, 0, 0, 0)))})},
    "a2_range": {"w": ((250 * S, (3, 30)), (401 * S, (4, 40)))},
    "a5_rows_by": {"w": frozenset({("e", (("e", 2), ("e", 3))), ("w", (("w", 3), ("w", 4)))})},
    "c_counter": {"i": -2147483647},
    "d_fission": {"n": 5, "volume": frozenset({("A", 3), ("B", 30), ("C", 100)})},
    "d_split_merge": {"n": 5},
}


def test_every_body_has_an_example() -> None:
    assert sorted(HAND) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_it_reads_and_prints(name: str) -> None:
    program = parse(source(name))
    printed = pretty(program)
    assert parse(Source("printed", printed)) == program
    assert pretty(parse(Source("printed", printed))) == printed


@pytest.mark.parametrize("name", NAMES)
def test_it_is_deterministic_by_construction(name: str) -> None:
    assert graph(name).deterministic
    assert [r.code for r in graph(name).remarks] == []


@pytest.mark.parametrize("name", NAMES)
def test_it_does_what_was_worked_out_by_hand(name: str) -> None:
    data, expected = HAND[name]
    seen = result(graph(name), data)
    assert {queue: list(items) for queue, items in (*seen.outputs, *seen.views)} == expected
    final = dict(seen.variables)
    assert {variable: final[variable] for variable in FINAL.get(name, {})} == FINAL.get(name, {})


LARGE = {"c_bitonic"}  # its joiners of up to eight branches have too many orders of arrival


@pytest.mark.parametrize("name", sorted({*NAMES} - LARGE))
def test_it_does_so_under_every_schedule(name: str) -> None:
    data, _ = HAND[name]
    found = outcomes(erase(graph(name)), inputs(graph(name), data), limit=20_000)
    assert found.complete
    assert not found.diverges
    assert {observe(graph(name), outcome) for outcome in found.outcomes} == {result(graph(name), data)}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LARGE))
def test_it_does_so_under_many_schedules(name: str) -> None:
    data, _ = HAND[name]
    assert {result(graph(name), data, seed) for seed in range(5)} == {result(graph(name), data)}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dropped", [(), (1, 2), (0, 1, 2, 3)])
def test_a_filter_that_drops_everything_does_not_stop_the_merge(dropped: tuple[int, ...], seed: int) -> None:
    xs = [-1 if i in dropped else i + 1 for i in range(4)]
    assert output("d_split_merge", seed, xs=xs) == [x for x in xs if x > 0]
    found = outcomes(erase(graph("d_split_merge")), inputs(graph("d_split_merge"), {"xs": xs}), limit=20_000)
    assert found.complete
    assert len(found.outcomes) == 1


# ---------------------------------------------------------------------------------------------- relations at random

Delta = tuple[int, tuple[Any, ...], tuple[Any, ...]]


@st.composite
def histories(draw: st.DrawFn, rows: st.SearchStrategy[Any], *, deletes: bool = True) -> list[Delta]:
    """Changes of a relation: what is deleted is there, or comes at the same instant."""
    present: list[Any] = []
    found: list[Delta] = []
    tau = 0
    for _ in range(draw(st.integers(0, 6))):
        tau += draw(st.integers(1, 3))
        ins = draw(st.lists(rows, max_size=3))
        old = len(present)
        count = draw(st.integers(0, min(old, 3))) if deletes else 0
        gone = [present.pop(draw(st.integers(0, len(present) - 1))) for _ in range(count)]
        present += ins
        if deletes and ins and draw(st.booleans()) and ins[0] in gone:
            ins, gone = [*ins, ins[0]], [*gone, ins[0]]  # in both: deltas are not normal
        if ins or gone:
            found.append((tau, tuple(ins), tuple(gone)))
    return found


def states(deltas: Iterable[Any], instants: Iterable[int]) -> list[Counter[Any]]:
    """The rows of a relation at each of the instants, ascending."""
    waiting = list(deltas)
    assert [d[0] for d in waiting] == sorted({d[0] for d in waiting}), "instants ascend strictly"
    rows: Counter[Any] = Counter()
    found: list[Counter[Any]] = []
    for tau in instants:
        while waiting and waiting[0][0] <= tau:
            _, ins, gone = waiting.pop(0)
            rows.update(ins)
            rows.subtract(gone)
            assert min(rows.values(), default=0) >= 0, "only what is there is deleted"
        found.append(+rows)
    assert not waiting, "time stops after the last instant of the inputs"
    return found


def table(rows: Counter[tuple[Any, int]]) -> Counter[Any]:
    """Group-by, from scratch."""
    groups: dict[Any, list[int]] = defaultdict(list)
    for k, v in rows.elements():
        groups[k].append(v)
    return Counter((k, len(vs), sum(vs), min(vs), max(vs)) for k, vs in groups.items())


pairs = st.tuples(st.sampled_from("ab"), st.integers(-2, 2))


@few
@given(histories(pairs))
def test_groups_are_as_if_computed_from_scratch(history: list[Delta]) -> None:
    instants = [tau for tau, _, _ in history]
    out = output("a1_group", d=history)
    assert states(out, instants) == [table(rows) for rows in states(history, instants)]


@few
@given(histories(st.tuples(st.integers(0, 1), st.floats(allow_nan=False))))
def test_averages_are_as_if_computed_from_scratch(history: list[Delta]) -> None:
    def average(values: list[float]) -> float:
        infinite = {v for v in values if math.isinf(v)}
        if infinite:
            return NAN if len(infinite) > 1 else infinite.pop()
        try:
            return math.fsum(values) / len(values)
        except OverflowError:
            return INF if sum(map(int, values)) > 0 else -INF

    def averages(rows: Counter[Any]) -> Counter[Any]:
        groups: dict[int, list[float]] = defaultdict(list)
        for k, v in rows.elements():
            groups[k].append(v)
        return Counter((k, len(vs), average(vs)) for k, vs in groups.items())

    instants = [tau for tau, _, _ in history]
    assert states(output("a1_average", d=history), instants) == [
        averages(rows) for rows in states(history, instants)
    ]


@cache
def range_then_group() -> Graph:
    """The window of a2 over the rows of a1, and a1's groups of what is in it."""
    group, window = parse(source("a1_group")).decls, parse(source("a2_range")).decls
    joint = """river 1;
        operator window = range<R = Row, range = duration(3), granule = duration(1)>;
        var $w: deque<{t: time, r: Row}> = {};
        @Steady() (w, $w) <- window(d, $w);
        (out, $g) <- group(w, $g);"""
    templates = [decl for decl in window if isinstance(decl, s.Template)]
    rest = [decl for decl in group if not isinstance(decl, Use)]
    return verify(Program((*rest, *templates, *parse(Source("joint", joint)).decls)), library())


@few
@given(histories(pairs, deletes=False))
def test_a_window_with_groups_speaks_at_every_instant(history: list[Delta]) -> None:
    of = range_then_group()
    ((_, out),) = result(of, {"d": history}).outputs
    last = max((tau for tau, _, _ in history), default=0)
    instants = range(last + 1)
    present = [
        Counter(row for tau, ins, _ in history if tau <= now < tau + 4 for row in ins) for now in instants
    ]
    assert states(out, instants) == [table(rows) for rows in present]


keyed = st.tuples(st.none() | st.integers(0, 1), st.integers(0, 2))


@few
@given(histories(keyed), histories(keyed))
def test_a_join_is_nested_loops(left: list[Delta], right: list[Delta]) -> None:
    instants = sorted({tau for tau, _, _ in (*left, *right)})
    expected = [
        Counter((k, a, b) for k, a in ls.elements() for j, b in rs.elements() if k == j and k is not None)
        for ls, rs in zip(states(left, instants), states(right, instants), strict=True)
    ]
    assert states(output("a3_join", l=left, r=right), instants) == expected


@few
@given(histories(pairs), histories(pairs))
def test_a_left_join_keeps_rows_without_partner(left: list[Delta], right: list[Delta]) -> None:
    def joined(ls: Counter[Any], rs: Counter[Any]) -> Counter[Any]:
        found: Counter[Any] = Counter()
        for k, a in ls.elements():
            partners = [b for j, b in rs.elements() if j == k]
            found.update((k, a, b) for b in partners or [None])
        return found

    instants = sorted({tau for tau, _, _ in (*left, *right)})
    expected = [joined(*rows) for rows in zip(states(left, instants), states(right, instants), strict=True)]
    assert states(output("a4_left_join", l=left, r=right), instants) == expected


numbered = st.tuples(st.integers(0, 1), st.sampled_from([0.0, 1.5, NAN]))


@few
@given(histories(numbered))
def test_istream_and_dstream_are_differences_of_instants(history: list[Delta]) -> None:
    instants = [tau for tau, _, _ in history]
    now = states(history, instants)
    before = [Counter[Any](), *now]
    new = [(tau, b - a) for tau, a, b in zip(instants, before, now, strict=False)]
    old = [(tau, a - b) for tau, a, b in zip(instants, before, now, strict=False)]
    for name, expected in (("a5_istream", new), ("a5_dstream", old)):
        out = output(name, d=history)
        assert [(tau, Counter(ins)) for tau, ins, _ in out] == [(tau, rows) for tau, rows in expected if rows]
        assert all(gone == () for _, _, gone in out)


@few
@given(histories(numbered))
def test_distinct_is_a_set(history: list[Delta]) -> None:
    instants = [tau for tau, _, _ in history]
    assert states(output("a5_distinct", d=history), instants) == [
        Counter(set(rows)) for rows in states(history, instants)
    ]


@few
@given(histories(pairs, deletes=False))
def test_partitioned_rows_are_the_last_two_of_a_key(history: list[Delta]) -> None:
    def last_two(now: int) -> Counter[Any]:
        rows = [row for tau, ins, _ in history if tau <= now for row in ins]
        return Counter(row for key in "ab" for row in [r for r in rows if r[0] == key][-2:])

    instants = [tau for tau, _, _ in history]
    assert states(output("a5_rows_by", d=history), instants) == list(map(last_two, instants))


# ---------------------------------------------------------------------------------------------------------- Sawzall


@few
@given(
    st.lists(
        st.tuples(st.just("d"), st.text("abcdef", min_size=1, max_size=2), st.integers(1, 3)), max_size=40
    )
)
def test_top_is_the_ten_most_common(hits: list[tuple[str, str, int]]) -> None:
    counted: Counter[str] = Counter()
    for _, url, n in hits:
        counted[url] += n
    best = sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:10]
    ((_, rows),) = result(graph("b2_top"), {"hits": hits}).views
    assert list(rows) == sorted(("d", url, n) for url, n in best)


@few
@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"), st.tuples(st.integers(0, 9), st.integers(0, 9), st.floats(-1e300, 1e300))
        ),
        max_size=12,
    ),
    st.randoms(),
)
def test_sums_do_not_depend_on_the_order(hits: list[Any], random: Any) -> None:
    def totals(order: list[Any]) -> Any:
        return result(graph("b2_sum_table"), {"hits": order}).views

    shuffled = random.sample(hits, len(hits))
    assert totals(hits) == totals(shuffled)
    for domain, n, size, ms in totals(hits)[0][1]:
        own = [v for d, v in hits if d == domain]
        assert (n, size, ms) == (sum(v[0] for v in own), sum(v[1] for v in own), math.fsum(v[2] for v in own))


# --------------------------------------------------------------------------------------------------------- StreamIt


def f32(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


samples = st.lists(st.floats(-4, 4, width=32), max_size=40)


def low_pass(rate: float, cutoff: float) -> list[float]:
    w = 2.0 * 3.141592653589793 * cutoff / rate
    centred = [i - 7.5 for i in range(16)]
    hamming = [0.54 - 0.46 * math.cos(2.0 * 3.141592653589793 * i / 15.0) for i in range(16)]
    return [f32(math.sin(w * t) / (3.141592653589793 * t) * h) for t, h in zip(centred, hamming, strict=True)]


def test_the_taps_are_those_of_an_impulse() -> None:
    taps = low_pass(250e6, 108e5)
    assert output("c_fir", x=[0.0] * 14 + [1.0, 0.0] + [0.0] * 14) == taps[14::-2]


@few
@given(samples)
def test_a_fir_filter_is_two_loops(x: list[float]) -> None:
    taps = low_pass(250e6, 108e5)
    expected: list[float] = []
    for start in range(0, len(x) - 15, 2):
        total = 0.0
        for i in range(16):
            total = f32(total + f32(x[start + i] * taps[i]))
        expected.append(total)
    assert output("c_fir", x=x) == expected


@few
@given(samples)
def test_an_echo_is_a_recurrence(x: list[float]) -> None:
    y: list[float] = []
    for n, sample in enumerate(x):
        y.append(f32(sample + f32(f32(0.6) * (y[n - 4] if n >= 4 else 0.0))))
    assert output("c_echo", sig=x) == y


@pytest.mark.slow
@few
@given(st.lists(st.tuples(st.floats(-4, 4, width=32), st.floats(-4, 4, width=32)), min_size=8, max_size=19))
def test_an_fft_is_a_dft(points: list[tuple[float, float]]) -> None:
    found = [complex(*point) for point in output("c_fft", x=points)]
    assert len(found) == len(points) // 8 * 8
    for start in range(0, len(found), 8):
        block = [complex(*point) for point in points[start : start + 8]]
        for k in range(8):
            exact = sum(v * cmath.exp(-2j * math.pi * k * n / 8) for n, v in enumerate(block))
            assert abs(found[start + k] - exact) < 1e-4


@pytest.mark.slow
@few
@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=16, max_size=20))
def test_a_bitonic_network_sorts(x: list[int]) -> None:
    assert output("c_bitonic", x=x) == sorted(x[:16])


def test_the_bitonic_network_has_80_exchanges() -> None:
    uses = Counter(use.operator for use in parse(source("c_bitonic")).uses)
    assert uses["up"] + uses["down"] == 80


@few
@given(st.lists(st.integers(0, 99), max_size=9), st.lists(st.integers(100, 199), max_size=9))
def test_a_joiner_waits_for_one_branch_at_a_time(a: list[int], b: list[int]) -> None:
    left, right, expected = list(a), list(b), []
    while True:
        for branch, count in ((left, 2), (right, 3)):
            expected += branch[:count]
            if len(branch) < count:
                assert output("c_join23", a=a, b=b) == expected
                return
            del branch[:count]


# ---------------------------------------------------------------------------------------------------------- fission


@few
@given(st.lists(st.tuples(st.sampled_from("ABCD"), st.integers(0, 9)), max_size=8), st.integers(0, 99))
def test_fission_keeps_the_order_and_the_variable(trades: list[tuple[str, int]], seed: int) -> None:
    volume: Counter[str] = Counter()
    expected: list[tuple[str, int]] = []
    for symbol, n in trades:
        volume[symbol] += n
        expected.append((symbol, volume[symbol]))
    seen = result(graph("d_fission"), {"trades": trades}, seed)
    assert dict(seen.outputs) == {"totals": tuple(expected)}
    assert dict(seen.variables)["volume"] == frozenset(volume.items())


def test_templates_of_the_bodies_are_instances() -> None:
    """The instances stay in the text (il.md P4): nothing is expanded by reading and printing."""
    kept = {
        name: [d.template for d in parse(source(name)).decls if isinstance(d, Instance)] for name in NAMES
    }
    assert kept["c_fft"] == ["combine"] * 3
    assert kept["d_fission"] == ["std.split_hash", "std.merge_seq"]
