"""Checkpoints: a run that is ended anywhere goes on to the same outputs, whatever it runs on then."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import river
from backends.multicore.plan import plan
from backends.multicore.run import run
from river.backend import Options
from river.checkpoint import Checkpoint, Keeper, Snapshot
from river.cli import main
from river.diagnostics import Rejected
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.io.packed import Damaged, pack, unpack
from river.lang import types as t
from river.lang.values import same
from river.platform import Platform
from river.source import Source
from river.testing import seeds
from river.testing.graph_strategies import contents, graphs
from river.testing.value_strategies import types, values_of

if TYPE_CHECKING:
    import random

ROOT = Path(__file__).parents[2]
LIBRARY = Library.of({})
ROUNDS = min(
    50, int(os.environ.get("RIVER_CASES", "1"))
)  # moments at which a run is killed, twice so many of each of two kinds

# ---------------------------------------------------------------------------------------------- values


@pytest.mark.slow
@given(
    types().flatmap(lambda type_: st.tuples(st.just(type_), st.lists(values_of(type_), max_size=4))),
    st.data(),
)
def test_values_come_back_as_they_were(pair, data):
    type_, values = pair
    packed = pack(type_, values)
    found = unpack(type_, len(values), packed)
    assert len(found) == len(values)
    assert all(same(type_)(a, b) for a, b in zip(values, found, strict=True))
    assert pack(type_, found) == packed
    if packed:
        cut = data.draw(st.integers(0, len(packed) - 1))
        with pytest.raises(Damaged):
            unpack(type_, len(values), packed[:cut])


def test_numbers_of_all_kinds_are_exact():
    nan, zero = float("nan"), -0.0
    (back, negative, up) = unpack(t.F64, 3, pack(t.F64, [nan, zero, float("inf")]))
    assert back != back
    assert str(negative) == "-0.0"
    assert up == float("inf")
    wide = (1 << 4000) + 1
    assert unpack(t.FSUM, 1, pack(t.FSUM, [(-wide, 1, 2, 3)])) == [(-wide, 1, 2, 3)]


# ---------------------------------------------------------------------------------------------- the engine


class Memory(Keeper):
    """Keeps every state in memory, after each turn."""

    def __init__(self, found: Snapshot | None, outputs: dict[str, list[Any]]) -> None:
        super().__init__(Checkpoint("nowhere"), {})
        self.found = found
        self.states: list[tuple[Snapshot, dict[str, int]]] = []
        self.outputs = outputs

    @property
    def due(self) -> bool:
        return True

    def save(self, state: Snapshot, **more: Any) -> None:
        copy = Snapshot(json.loads(json.dumps(state.fields)), bytearray(state.data))
        self.states.append((copy, {name: len(items) for name, items in self.outputs.items()}))


def observed(graph, given_items, options, size, found=None):
    outputs = {name: [] for name in graph.outputs}
    keeper = Memory(found, outputs)
    made = plan(graph, Platform(2), evolve(options, keeper=keeper))
    batches = {
        name: [given_items[name][i : i + size] for i in range(0, len(given_items[name]), size)]
        for name in graph.inputs
    }
    summary = run(made, batches, {name: items.extend for name, items in outputs.items()})
    return outputs, summary, keeper.states


def agree(graph, items, before: Options, after: Options, size: int, again: int) -> int:
    """Goes on from every state, with other options and other batches; how many states there were."""
    outputs, summary, states = observed(graph, items, before, size)
    for state, done in states:
        rest, other, _ = observed(graph, items, after, again, state)
        assert {name: outputs[name][: done[name]] + rest[name] for name in outputs} == outputs
        assert other.variables == summary.variables
    return len(states)


def ways(native: str):
    return st.builds(
        Options,
        batch=st.sampled_from([1, 2, 7, 4096]),
        workers=st.sampled_from([1, 2]),
        bound=st.sampled_from([1, 2, 64]),
        native=st.just(native),
    )


@pytest.mark.slow
@settings(max_examples=max(1, settings().max_examples // 8))
@given(
    text=graphs(6),
    items=contents(8),
    before=ways("off"),
    after=ways("off"),
    size=st.integers(1, 9),
    again=st.integers(1, 9),
)
def test_random_programs_go_on_from_every_state(text, items, before, after, size, again):
    agree(verify(parse(Source("program.river", text)), LIBRARY), items, before, after, size, again)


@settings(max_examples=max(1, settings().max_examples // 50))
@given(text=graphs(4), items=contents(6), before=ways("on"), after=ways("off"), size=st.integers(1, 9))
def test_machine_code_and_the_evaluator_go_on_for_each_other(text, items, before, after, size):
    graph = verify(parse(Source("program.river", text)), LIBRARY)
    agree(graph, items, before, after, size, 3)
    agree(graph, items, after, before, 3, size)


EARLY = """river 1;
operator ahead(x: i64) -> (y[push 3]: i64) {
  on x[pop 4, early 2: 1, 3: 2](w) { emit y w[1]; emit y w[0] + w[2]; emit y w[3]; }
}
input x: i64; output c: i64;
(c) <- ahead(x);
"""


@pytest.mark.parametrize(("before", "after"), [("off", "on"), ("on", "off")])
def test_what_has_been_sent_early_is_not_sent_again(before: Any, after: Any) -> None:
    graph = verify(parse(Source("program.river", EARLY)), LIBRARY)
    items = {"x": list(range(1, 12))}
    assert agree(graph, items, Options(native=before), Options(native=after, batch=2), 3, 2) > 3


MERGED = """river 1;
type K = {t: i64, v: i64};
operator deal(x: {s: i64, t: i64}) -> (a: K by t, b: K by t) {
  on x(r) {
    if r.s == 0 { emit a {t: r.t, v: r.t}; mark a r.t + 5; } else { emit b {t: r.t, v: -r.t}; mark b r.t + 5; }
  }
}
operator both(a: K by t, b: K by t) -> (y: K by t) { on merge(a(p), b(q)) { if p is p { emit y p; } if q is q { emit y q; } } }
input x: {s: i64, t: i64}; output c: K by t;
(k, l) <- deal(x); (c) <- both(k, l);
"""


@pytest.mark.parametrize(
    ("batch", "where"), [(1, "chunks"), (64, "marks")], ids=["in a queue", "at an input"]
)
def test_marks_that_wait_are_kept(batch, where):
    """Without a mark that waits behind an item, what it lets go would be the same at last, but late."""
    graph = verify(parse(Source("program.river", MERGED)), LIBRARY)
    items = {"x": [(0, 1), (1, 3), (1, 8), (0, 20), (1, 13), (0, 25), (1, 30)]}
    options = Options(batch=batch, workers=1, native="off")

    def told(states):
        return [(done["c"], state.fields["outs"]) for state, done in states]

    _, _, states = observed(graph, items, options, 1)
    assert states[0][0].fields["ports"]["k"][where]
    for i, (state, done) in enumerate(states):
        _, _, later = observed(graph, items, options, 1, state)
        assert [(done["c"] + count, outs) for count, outs in told(later)] == told(states)[i + 1 :]


# ---------------------------------------------------------------------------------------------- files


class Crash(BaseException):
    """The run is ended by force."""


ECHO = """
int->int feedbackloop Echo {
  join roundrobin(1, 1);
  body Add;
  loop Same;
  split roundrobin(1, 1);
  enqueue 3;
}
int->int filter Add { int total; init { total = 0; } work pop 2 push 2 {
  int a = pop(); int b = pop(); total = total + a; push(a + b % 1000); push(total); } }
int->int filter Same { work pop 1 push 1 { push(pop()); } }
"""

JOIN = """
a: { ts: int; k: int; v: float } stream by ts;
b: { ts: int; k: int; w: float } stream by ts;
both: relation = select a.k as k, sum(a.v) as s, count(*) as n from a[range 20], b[rows 7] where a.k = b.k group by a.k;
"""


def program(name: str) -> tuple[Any, dict[str, Any]]:
    """A program and its data."""
    chance = seeds.chance("checkpoint", 7)
    match name:
        case "windows":
            return river.load(str(ROOT / "examples/flights/delays.cql")), {
                "flights": str(ROOT / "examples/flights/flights.csv")
            }
        case "tolls":
            return river.load(str(ROOT / "examples/linear_road/tolls.cql")), {
                "reports": str(ROOT / "examples/linear_road/reports.csv")
            }
        case "sawzall":
            return river.load(str(ROOT / "examples/log_analyzer/query_log.szl")), {
                "logRecord": str(ROOT / "examples/log_analyzer/queries.csv")
            }
        case "radio":
            return river.load(str(ROOT / "examples/fm_radio/fm_radio.str")), {
                "input": str(ROOT / "examples/fm_radio/signal.csv")
            }
        case "loop":
            return river.compile(ECHO, "streamit"), {"input": list(range(300))}
        case _:
            rows = [
                [(i // 2, chance.randrange(4), chance.random()) for i in range(count)] for count in (150, 90)
            ]
            return river.compile(JOIN, "cql"), {"a": rows[0], "b": rows[1]}


def runs(compiled, inputs, folder: Path, keeping: Checkpoint | None = None, **options: Any):
    outputs = {name: str(folder / f"{name}.csv") for name in compiled.outputs}
    return compiled.run(inputs, outputs, checkpoint=keeping, workers=2, **options)


def texts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.csv")}


def crashing(monkeypatch, after: int, *, delay: int = 0):
    """Lets runs crash `delay` turns after so many checkpoints."""
    real, count = Keeper.save, 0

    def save(self: Keeper, state: Snapshot, **more: Any) -> None:
        nonlocal count
        if count < after:
            real(self, state, **more)
        count += 1
        if count > after + delay and not more:
            count = 0
            raise Crash

    monkeypatch.setattr(Keeper, "save", save)


def begun(inputs: dict[str, Any], folder: Path, part: int) -> dict[str, Any]:
    """A part of the rows of files: of a few, the evaluator makes as many checkpoints and crashes as machine code of all."""
    found = dict(inputs)
    for name, file in inputs.items():
        if isinstance(file, str):
            head, *lines = Path(file).read_text().splitlines(keepends=True)
            found[name] = str(folder / Path(file).name)
            Path(found[name]).write_text(head + "".join(lines[: len(lines) // part]))
    return found


ONCE = [
    ("windows", 3000, "on"), ("windows", 1000, "off"), ("sawzall", 700, "on"), ("sawzall", 175, "off"), ("loop", 60, "on"),
    ("loop", 60, "off"), ("join", 60, "off"),
]  # fmt: skip
OFTEN = [
    ("windows", 1000, "on"), ("windows", 250, "off"), ("tolls", 500, "on"), ("tolls", 125, "off"), ("radio", 300, "on"),
    ("radio", 75, "off"), ("loop", 25, "on"), ("loop", 25, "off"), ("join", 30, "on"), ("join", 30, "off"),
]  # fmt: skip


@pytest.mark.some(5)
@pytest.mark.parametrize(
    ("name", "batch", "native"), [*ONCE, *(pytest.param(*case, marks=pytest.mark.slow) for case in OFTEN)]
)
def test_files_are_the_same_after_any_number_of_crashes(name, batch, native, tmp_path, monkeypatch):
    compiled, inputs = program(name)
    (tmp_path / "want").mkdir()
    (tmp_path / "got").mkdir()
    if native == "off":
        inputs = begun(inputs, tmp_path, 4)
    expected = runs(compiled, inputs, tmp_path / "want", batch=batch, native=native)
    crashing(monkeypatch, 1, delay=1)
    keeping, crashes = Checkpoint(tmp_path / "state", every=0), 0
    while True:
        try:
            results = runs(compiled, inputs, tmp_path / "got", keeping, batch=batch, native=native)
            break
        except Crash:
            crashes += 1
    assert crashes
    assert texts(tmp_path / "got") == texts(tmp_path / "want")
    assert results.rows == expected.rows
    assert results.read == expected.read
    assert results.variables == expected.variables


def test_a_run_that_has_ended_well_is_not_run_again(tmp_path):
    compiled, inputs = program("sawzall")
    first = runs(compiled, inputs, tmp_path, Checkpoint(tmp_path / "state"))
    files = texts(tmp_path)
    again = runs(compiled, inputs, tmp_path, Checkpoint(tmp_path / "state"))
    assert [w.code for w in again.warnings] == ["run-checkpoint-complete"]
    assert "is not there any more" not in again.warnings[0].message
    assert (again.rows, again.read, again.variables) == (first.rows, first.read, first.variables)
    removed = next(tmp_path.glob("*.csv"))
    removed.unlink()
    (warning,) = runs(compiled, inputs, tmp_path, Checkpoint(tmp_path / "state")).warnings
    assert f"`{removed}` is not there any more" in warning.message
    assert warning.help == "`--restart` begins anew"
    anew = runs(compiled, inputs, tmp_path, Checkpoint(tmp_path / "state", restart=True))
    assert anew.warnings == ()
    assert texts(tmp_path) == files


@pytest.mark.slow
def test_rows_that_were_refused_are_told_once_for_the_whole_run(tmp_path, monkeypatch):
    data = tmp_path / "s.csv"
    data.write_text("ts,v\n" + "".join(f"{i},{'x' if i % 7 == 3 else i}\n" for i in range(200)))
    compiled = river.compile(
        "s: {ts: int; v: int} stream by ts; o: relation = select sum(v) as t from s[rows 5];", "cql"
    )
    policy = f"dead-letter={tmp_path / 'bad.jsonl'}"
    expected = runs(compiled, {"s": str(data)}, tmp_path, batch=70, on_error=policy)
    files, letters = texts(tmp_path), (tmp_path / "bad.jsonl").read_bytes()
    crashing(monkeypatch, 1, delay=2)
    while True:
        try:
            results = runs(
                compiled,
                {"s": str(data)},
                tmp_path,
                Checkpoint(tmp_path / "state", 0),
                batch=50,
                on_error=policy,
            )
            break
        except Crash:
            pass
    assert texts(tmp_path) == files
    assert (tmp_path / "bad.jsonl").read_bytes() == letters
    assert results.warnings == expected.warnings


@pytest.mark.slow
def test_a_file_is_read_on_from_a_place_near_the_checkpoint(tmp_path, monkeypatch):
    from backends.native import ingest

    opened = []

    def small(*args: Any) -> ingest.Reader | None:
        opened.append(open_native(*args, block=2048))
        return opened[-1]

    open_native = ingest.open_native
    monkeypatch.setattr(ingest, "open_native", small)
    compiled, inputs = program("windows")
    data = tmp_path / "flights.csv"
    text = Path(inputs["flights"]).read_text()
    data.write_text(text)
    (tmp_path / "want").mkdir()
    runs(compiled, inputs, tmp_path / "want", batch=300)
    crashing(monkeypatch, 4)
    places = []
    while True:
        try:
            runs(
                compiled, {"flights": str(data)}, tmp_path, Checkpoint(tmp_path / "state", every=0), batch=300
            )
            break
        except Crash:
            places.append(opened[-1]._place)
    assert places[0] == 0
    assert places == sorted(set(places))
    assert places[-1] > len(text) / 2
    assert (tmp_path / "delays.csv").read_bytes() == (tmp_path / "want" / "delays.csv").read_bytes()
    lines = text.splitlines(keepends=True)
    data.write_text("".join(lines[:5000]) + "oops\n" + "".join(lines[5000:]))
    with pytest.raises(Rejected) as whole:
        runs(compiled, {"flights": str(data)}, tmp_path, batch=300)
    keeping = Checkpoint(tmp_path / "state", every=0, restart=True)
    with pytest.raises(Crash):
        runs(compiled, {"flights": str(data)}, tmp_path, keeping, batch=300)
    monkeypatch.undo()
    with pytest.raises(Rejected) as rest:
        runs(compiled, {"flights": str(data)}, tmp_path, evolve(keeping, restart=False), batch=300)
    assert rest.value.diagnostics == whole.value.diagnostics


def crashed(tmp_path: Path, monkeypatch, after: int = 3):
    """A run that has crashed, and what it should have written."""
    compiled, inputs = program("sawzall")
    (tmp_path / "want").mkdir()
    runs(compiled, inputs, tmp_path / "want")
    with monkeypatch.context() as patch:
        crashing(patch, after)
        with pytest.raises(Crash):
            runs(compiled, inputs, tmp_path, Checkpoint(tmp_path / "state", every=0), batch=200)
    return compiled, inputs, sorted((tmp_path / "state").glob("*.checkpoint"))


@pytest.mark.parametrize("damage", ["cut", "flip", "value", "empty", "foreign"])
def test_the_checkpoint_before_a_damaged_one_is_used(damage, tmp_path, monkeypatch):
    compiled, inputs, found = crashed(tmp_path, monkeypatch)
    assert len(found) == 2
    body = bytearray(found[-1].read_bytes())
    match damage:
        case "cut":
            del body[-40:]
        case "flip":
            body[len(body) // 2] ^= 4
        case "value":  # of a variable: whatever it is now, it is one
            body[-33] ^= 1
        case "empty":
            body.clear()
        case _:
            body[:8] = b"SOMEBODY"
    found[-1].write_bytes(body)
    results = runs(compiled, inputs, tmp_path, Checkpoint(tmp_path / "state"))
    assert [w.code for w in results.warnings] == ["run-checkpoint-damaged"]
    assert texts(tmp_path) == texts(tmp_path / "want")


@pytest.mark.parametrize("restart", [False, True])
def test_files_of_other_programs_stay(restart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though they have the suffix: weights of a model, say."""
    compiled, inputs, _ = crashed(tmp_path, monkeypatch)
    others = [
        tmp_path / "state" / name for name in ("model.checkpoint", "17.checkpoint", ".x.checkpoint.part")
    ]
    for each in others:
        each.write_text("weights")
    results = runs(compiled, inputs, tmp_path, Checkpoint(tmp_path / "state", every=0, restart=restart))
    assert not results.warnings
    assert texts(tmp_path) == texts(tmp_path / "want")
    assert all(each.exists() for each in others)


def refused(*args: Any, **options: Any) -> str:
    with pytest.raises(Rejected) as caught:
        runs(*args, **options)
    return caught.value.diagnostics[0].code


def test_what_cannot_go_on_is_refused(tmp_path, monkeypatch):
    compiled, inputs, found = crashed(tmp_path, monkeypatch)
    state = Checkpoint(tmp_path / "state")
    text = compiled.text.replace("@Commutative() ", "", 1)
    assert text != compiled.text
    assert refused(river.compile(text, "river"), inputs, tmp_path, state) == "run-checkpoint-changed"
    assert refused(compiled, inputs, tmp_path / "want", state) == "run-checkpoint-changed"
    assert refused(compiled, inputs, tmp_path, state, on_error="skip") == "run-checkpoint-changed"
    (tmp_path / "more").mkdir()
    longer = tmp_path / "more" / "longer.csv"
    longer.write_bytes(Path(inputs["logRecord"]).read_bytes() + b"a,b\n")
    assert refused(compiled, {"logRecord": str(longer)}, tmp_path, state) == "run-checkpoint-changed"
    output = tmp_path / "queryOrigins.csv"
    whole = output.read_bytes()
    output.write_bytes(whole[:3])
    assert refused(compiled, inputs, tmp_path, state) == "data-output"
    output.unlink()
    with pytest.raises(Rejected, match="put the file back as it was, or begin anew with `--restart`"):
        runs(compiled, inputs, tmp_path, state)
    output.write_bytes(whole)
    keeper = Keeper(state, {})
    with monkeypatch.context() as patch:
        patch.setattr(Keeper, "_find", lambda _: None)
        keeper.open()
    try:
        assert refused(compiled, inputs, tmp_path, state) == "run-checkpoint-busy"
    finally:
        keeper.close()
    for path in found:
        path.write_bytes(b"")
    assert refused(compiled, inputs, tmp_path, state) == "run-checkpoint-damaged"
    runs(compiled, inputs, tmp_path, Checkpoint(tmp_path / "state", restart=True))
    assert texts(tmp_path) == texts(tmp_path / "want")


def test_a_folder_is_of_one_run_at_a_time(tmp_path):
    one, other = (Keeper(Checkpoint(tmp_path), {}) for _ in range(2))
    one.open()
    with pytest.raises(Rejected, match="another run keeps its state"):
        other.open()
    one.close()
    other.open()
    other.close()


def test_what_cannot_be_read_or_written_twice_is_refused(tmp_path):
    compiled, inputs = program("sawzall")
    state = Checkpoint(tmp_path / "state")
    row = {"origin": "a", "target": "b"}
    assert refused(compiled, {"logRecord": iter([row])}, tmp_path, state) == "run-checkpoint"
    assert refused(compiled, {"logRecord": "tcp://127.0.0.1:0"}, tmp_path, state) == "run-checkpoint"
    for outputs in (
        {},
        {"queryOrigins": str(tmp_path / "o.parquet"), "queryTargets": str(tmp_path / "t.csv")},
    ):
        with pytest.raises(Rejected) as caught:
            compiled.run(inputs, outputs, checkpoint=tmp_path / "state")
        assert caught.value.diagnostics[0].code == "run-checkpoint"
    with pytest.raises(Rejected) as caught:
        compiled.run(inputs, {}, backend="reference", checkpoint=tmp_path / "state")
    assert caught.value.diagnostics[0].code == "run-checkpoint"
    assert not (tmp_path / "state").exists()
    (tmp_path / "state").write_text("a file")
    assert refused(compiled, inputs, tmp_path, state) == "run-checkpoint-write"


def test_a_file_that_grows_goes_on_where_it_was(tmp_path, monkeypatch):
    data = tmp_path / "s.csv"
    lines = [f"{i},{i * i % 11}\n" for i in range(120)]
    compiled = river.compile(
        "s: {ts: int; v: int} stream by ts; o: relation = select sum(v) as t from s[range 5];", "cql"
    )
    data.write_text("ts,v\n" + "".join(lines))
    runs(compiled, {"s": str(data)}, tmp_path)
    expected = texts(tmp_path)["o.csv"]
    data.write_text("ts,v\n" + "".join(lines[:30]))
    keeping = Checkpoint(tmp_path / "state", every=0)
    crashes = 0
    crashing(monkeypatch, 2, delay=1)
    while True:
        try:
            runs(
                compiled,
                {"s": river.follow(str(data))},
                tmp_path,
                keeping,
                batch=10,
                live=river.Live(idle_exit=0.3 if crashes > 3 else None),
            )
            break
        except Crash:
            crashes += 1
            done = data.read_text().count("\n") - 1
            with data.open("a") as file:
                file.write("".join(lines[done : done + 30]))
            if crashes > 3:
                monkeypatch.undo()
    assert texts(tmp_path)["o.csv"] == expected
    data.write_text("ts,v\n5,5\n")
    (tmp_path / "two").mkdir()
    crashing(monkeypatch, 2)
    with pytest.raises(Crash):
        runs(
            compiled,
            {"s": river.follow(str(data))},
            tmp_path / "two",
            Checkpoint(tmp_path / "state2", every=0),
        )
    data.write_text("ts,v\n6,6\n")
    assert (
        refused(compiled, {"s": river.follow(str(data))}, tmp_path / "two", Checkpoint(tmp_path / "state2"))
        == "run-checkpoint-input"
    )


def ended(process: subprocess.Popen[bytes], state: Path, chance: random.Random) -> bool:
    """Kills a process at some time, mostly after its first checkpoint; whether it had come to its end before."""
    if chance.random() < 0.2:
        time.sleep(chance.random())
    else:
        began = {path.name for path in state.glob("*.checkpoint")}
        while process.poll() is None and {path.name for path in state.glob("*.checkpoint")} <= began:
            time.sleep(0.002)
        time.sleep(chance.random() * 0.5)
    process.send_signal(signal.SIGKILL)
    return process.wait() == 0


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_command_that_is_killed_goes_on_with_any_number_of_workers(form, tmp_path):
    chance = seeds.chance("killed", form)
    want, got, state = tmp_path / f"want.{form}", tmp_path / f"got.{form}", tmp_path / "state"
    examples, flights = ROOT / "examples/flights", tmp_path / "flights.csv"
    with (examples / "flights.csv").open() as whole:
        flights.write_text("".join(islice(whole, 1_500)))  # 75 checkpoints
    command = ["run", str(examples / "delays.cql"), "-q", "--in", f"flights={flights}", "--batch", "20"]

    def ends_well(*given: str) -> bool:
        """A run that nobody kills may as well be one of this process."""
        return main([*given], io.StringIO(), io.StringIO(), io.StringIO()) == 0

    assert ends_well(*command, "--out", f"delays={want}")
    command += ["--out", f"delays={got}", "--checkpoint", str(state), "--every", "1ms"]
    alone = [sys.executable, "-c", "from river.cli import run; run()", *command]
    kills = 0
    while kills < 2 * ROUNDS:
        workers = ["--workers", str(chance.randint(1, 4))]
        if ended(subprocess.Popen([*alone, *workers]), state, chance):
            assert got.read_bytes() == want.read_bytes()
            assert ends_well(*command, "--restart", "--batch", "5000")
            for path in state.glob("*.checkpoint"):
                path.unlink()
        else:
            kills += 1
    assert ends_well(*command)
    assert got.read_bytes() == want.read_bytes()
