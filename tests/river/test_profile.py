"""Profiles: what is measured, how it is kept, and what passes make of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backends.multicore import BACKEND
from river.cli import main
from river.diagnostics import Rejected
from river.driver import Compiled, compile_source
from river.il.annotations import Cost, annotated
from river.il.costs import Costs
from river.platform import Platform
from river.profile import Profile, costed, parse
from river.source import Source

TEXT = """river 1;
type R = {k: i64, v: i64};
input x: R;
output y: i64;
var $m: map<i64, i64> = {};
operator first(x: R) -> (out: R) { on x(r) { if r.v > 2 { emit out {k: r.k, v: r.v *% 3}; } } }
operator second(x: R; $m: map<i64, i64>) -> (out: i64) {
  on x(r) { with n = $m[r.k] else 0 { n = n +% r.v; emit out n; } }
}
operator third(x: i64) -> (y: i64) { on x(v) { emit y v *% 7; } }
(a) <- first(x);
(b, $m) <- second(a, $m);
(y) <- third(b);
"""
NAMES = ("first#0", "second#1", "third#2")


def compiled(text: str = TEXT) -> Compiled:
    return compile_source(Source("p.river", text))


def profile(*nanoseconds: int, items: int = 1000) -> Profile:
    return Profile(
        {name: Cost(spent, items, items, 8 * items) for name, spent in zip(NAMES, nanoseconds, strict=True)}
    )


def tuned(found: Profile, cores: int, text: str = TEXT) -> dict[str, int | None]:
    """By operator the degree of its region, None if it is in none."""
    graph = compiled(text).profiled(found).tuned(BACKEND.passes, Platform(cores)).graph
    said = [(instance.use.operator, annotated(instance.use)) for instance in graph.instances]
    return {name: None if s.region is None or s.parallel is None else s.parallel.degree for name, s in said}


def test_each_region_has_the_workers_that_it_keeps_busy() -> None:
    assert tuned(profile(10**9, 10**9, 10**9), 2) == {"first": 2, "second": 2, "third": 2}
    assert tuned(profile(7 * 10**8, 28 * 10**7, 2 * 10**7), 8) == {"first": 8, "second": 4, "third": None}
    assert tuned(profile(95 * 10**7, 4 * 10**7, 10**7), 2) == {"first": 2, "second": None, "third": None}


def test_who_says_a_degree_has_it() -> None:
    text = TEXT.replace("(y) <- third", "@Parallel(3) (y) <- third")
    assert tuned(profile(10**9, 10**9, 10**6), 8, text)["third"] == 3


@pytest.mark.parametrize(
    ("nanoseconds", "cores", "operators"),
    [
        ((10**5, 0, 0), 1, {"first_second_third": None}),  # soon done, and one core: what keeps state, too
        ((10**5, 0, 0), 2, {"first": 2, "second_third": None}),  # then nobody could share the first
        ((0, 0, 10**7), 1, {"first_second": None, "third": None}),  # to hand items over is no part of that
    ],
)
def test_what_becomes_one_depends_on_what_it_takes(
    nanoseconds: tuple[int, ...], cores: int, operators: dict[str, int | None]
) -> None:
    assert tuned(profile(*nanoseconds), cores) == operators


def test_what_may_be_skipped_stays_apart_from_state() -> None:
    trapping = TEXT.replace("r.v *% 3", "r.v * 3")
    assert "first" in tuned(profile(10**5, 0, 0), 1, trapping)


def test_what_is_not_known_of_all_is_known_of_none() -> None:
    some = Costs((Cost(10, 1, 1, 1), None))
    assert some.share((0,)) == 1
    assert some.share((0, 1)) is None
    assert some.degree((0, 1), 4, 4) == 4
    assert Costs((None,)).degree((0,), 4, 4) == 4


def test_a_file_says_what_was_measured() -> None:
    found = profile(1, 2, 3)
    assert parse(Source("f", found.text)) == found
    again = compiled().profile({"x": [(i % 7, i) for i in range(300)]})
    assert [(again.operators[name].items, again.operators[name].sent) for name in NAMES] == [
        (300, 297), (297, 297), (297, 297),
    ]  # fmt: skip
    assert [again.operators[name].bytes for name in NAMES] == [297 * 16, 297 * 8, 297 * 8]
    assert all(cost.nanoseconds > 0 for cost in again.operators.values())


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"profile": 2, "operators": {}}', '{"profile": 1}', '{"profile": 1, "operators": {"f#0": {}}}',
     json.dumps({"profile": 1, "operators": {"f#0": {"nanoseconds": -1, "items": 1, "sent": 1, "bytes": 1}}}),
     json.dumps({"profile": 1, "operators": {"f#0": {"nanoseconds": True, "items": 1, "sent": 1, "bytes": 1}}})],
)  # fmt: skip
def test_what_is_no_profile_is_refused(text: str) -> None:
    with pytest.raises(Rejected, match="is no profile of this version") as rejected:
        parse(Source("f", text))
    assert [each.code for each in rejected.value.diagnostics] == ["profile-format"]


def test_a_profile_of_another_program_is_told() -> None:
    (warning,) = costed(
        compiled().program, Profile({"first#0": Cost(1, 1, 1, 1), "old#1": Cost(1, 1, 1, 1)})
    )[1]
    assert warning.code == "profile-other"
    assert warning.message.endswith("it does not know `second#1`, `third#2` and knows `old#1`")


def test_from_measuring_to_running(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line, which prints the same rows with a profile and without."""
    import io

    def river(*argv: str) -> str:
        out, errors = io.StringIO(), io.StringIO()
        assert main([*argv], io.StringIO(), out, errors) == 0, errors.getvalue()
        return out.getvalue()

    program, rows, kept = (str(tmp_path / name) for name in ("p.river", "x.csv", "p.profile"))
    Path(program).write_text(TEXT)
    Path(rows).write_text("k,v\n" + "".join(f"{i % 5},{i}\n" for i in range(200)))
    river("profile", program, "--in", f"x={rows}", "-o", kept)
    assert [*parse(Source(kept, Path(kept).read_text())).operators] == [*NAMES]
    plain = river("run", "-q", program, "--in", f"x={rows}")
    assert river("run", "-q", program, "--in", f"x={rows}", "--profile", kept, "--workers", "2") == plain
    Path(kept).write_text(profile(10**9, 10**6, 10**6).text)
    told = " ".join(river("explain", program, "--profile", kept, "--workers", "2").split())
    assert "one by one: second#1, third#2: takes so little of the time, says the profile" in told
    assert "@Cost(1000000000, 1000, 1000, 8000)" in river("opt", program, "--profile", kept)


def test_inputs_that_go_on_have_no_profile() -> None:
    with pytest.raises(Rejected) as rejected:
        compiled().profile({"x": "tcp://127.0.0.1:1"})
    assert [each.code for each in rejected.value.diagnostics] == ["profile-live"]
