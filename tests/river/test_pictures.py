"""Pictures: every program can be drawn, what is drawn is well-formed, nothing lies on top of anything else."""

from __future__ import annotations

import io
import re
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import river
from backends.multicore import BACKEND
from river.backend import Options
from river.cli import main
from river.pictures.drawing import NodeKind, drawing
from river.pictures.layers import Size, attached, layers, layout
from river.pictures.mermaid import mermaid
from river.pictures.svg import svg
from river.pictures.text import text
from river.platform import Platform

ROOT = Path(__file__).resolve().parents[2]
BODIES = sorted((ROOT / "tests" / "bodies").glob("*.river"))
SHARED = """\
river 1;
type Row = {k: string, v: i64};
@Region(r2, combine) input a: Row;
@Region(r3, seqno) input b: Row;
var $m: map<string, i64> = {};
var $n: i64 = 0;
output o: Row;
output top: Row = rows($m, row);
fn row(k: string, v: i64) -> list<Row> { return [{k: k, v: v}]; }
operator add(x: Row; $m: map<string, i64>) -> () { on x(r) { with v = $m[r.k] else 0 { v = v +% r.v; } } }
operator tag(x: Row) -> (o: Row) { on x(r) { emit o r; } }
operator ask(x: Row; $m: map<string, i64>, $n: i64) -> (out: Row) {
  on x(r) { $n = $n +% 1; emit out {k: r.k, v: get($m, r.k, 0) +% $n}; }
}
@Group(left) @Parallel(2) @Region(r1, seqno, k, v) @Region(r2, combine) @Fuse(one) (c) <- tag(a);
@Group(left) @Fuse(one) @Region(r2, combine) ($m) <- add(c, $m);
@Group(right) (d) <- tag(b);
@Group(right) @Parallel(4) (e, $n) <- ask(d, $m, $n);
(o) <- tag(e);
"""


def graph_of(path):
    return river.load(str(path)).graph


@pytest.fixture
def shared_graph():
    return river.compile(SHARED, "river").graph


@pytest.fixture
def shared(shared_graph):
    return drawing(shared_graph)


@pytest.mark.parametrize("path", BODIES, ids=lambda p: p.stem)
def test_every_program_has_its_pictures(path):
    graph = graph_of(path)
    picture = drawing(graph)
    root = ET.fromstring(svg(picture, path.name))  # noqa: S314 - our own text
    titles = [title.text or "" for title in root.iter("{http://www.w3.org/2000/svg}title")]
    for name in graph.queues:
        assert any(title.startswith(f"{name}: ") for title in titles)
    assert mermaid(picture).count("-->") == len(graph.queues)
    words = set(re.findall(r"[\w$.]+", text(picture)))
    assert {i.use.operator for i in graph.instances} | set(graph.queues) <= words
    assert {f"${v}" for i in graph.instances for v in i.variables} <= words


@pytest.mark.parametrize("path", BODIES, ids=lambda p: p.stem)
def test_nothing_lies_on_anything_else(path):
    picture = drawing(graph_of(path))
    sizes = [Size(20.0 + 8.0 * len(node.name), 40.0, 12.0) for node in picture.nodes]
    placed = layout(picture, sizes, [40.0] * len(picture.arrows))
    for (i, a), (j, b) in combinations(enumerate(placed.centres), 2):
        apart = abs(a.x - b.x) >= (sizes[i].width + sizes[j].width) / 2 - 0.01
        assert apart or abs(a.y - b.y) >= (sizes[i].height + sizes[j].height) / 2 - 0.01, (i, j)
    for i, at in enumerate(placed.centres):
        assert sizes[i].width / 2 <= at.x <= placed.width - sizes[i].width / 2
        assert sizes[i].height / 2 <= at.y <= placed.height - sizes[i].height / 2


@pytest.mark.parametrize("path", BODIES, ids=lambda p: p.stem)
def test_arrows_run_from_left_to_right_unless_they_close_a_loop(path):
    picture = drawing(graph_of(path))
    depth = layers(picture)
    for arrow in picture.arrows:
        assert (depth[arrow.source] < depth[arrow.target]) is not arrow.back


def test_the_sorter_is_drawn_without_crossings_that_its_order_does_not_need():
    picture = drawing(graph_of(ROOT / "tests/bodies/c_bitonic.river"))
    sizes = [Size(60.0, 30.0, 3.0) for _ in picture.nodes]
    placed = layout(picture, sizes, [0.0] * len(picture.arrows))
    for a, b in combinations(picture.arrows, 2):
        if a.source == b.source:  # a splitter's arrows end in the order in which they begin
            assert (a.out < b.out) == (placed.centres[a.target].y < placed.centres[b.target].y)


def test_private_variables_hang_below_their_operator_and_shared_ones_at_the_bottom(shared):
    owner = attached(shared)
    names = {shared.nodes[v].name: shared.nodes[o].name for v, o in owner.items()}
    assert names == {"$n": "ask"}
    sizes = [Size(50.0, 30.0, 5.0) for _ in shared.nodes]
    placed = layout(shared, sizes, [0.0] * len(shared.arrows))
    lowest = max(range(len(shared.nodes)), key=lambda i: placed.centres[i].y)
    assert shared.nodes[lowest].name == "$m"


def test_frames_links_and_views(shared):
    assert [(f.label, [shared.nodes[m].name for m in f.members]) for f in shared.frames] == [
        ("region r1, by k, v", ["tag"]),
        ("region r2, in blocks", ["tag", "add", "a"]),
        ("region r3, read in blocks", ["b"]),
        ("segment one", ["tag", "add"]),
        ("group left", ["tag", "add"]),
        ("group right", ["tag", "ask"]),
    ]
    written = {(shared.nodes[k.node].name, shared.nodes[k.variable].name): k.written for k in shared.links}
    assert written == {("add", "$m"): True, ("ask", "$m"): False, ("ask", "$n"): True, ("top", "$m"): False}
    assert [n.name for n in shared.nodes if n.kind is NodeKind.VIEW] == ["top"]
    assert [n.name for n in shared.nodes if n.parallel] == ["tag", "ask"]
    drawn = svg(shared, "t")
    assert drawn.count('class="frame"') == 6
    assert drawn.count('class="fold"') == 2
    assert mermaid(shared).count("subgraph ") == 5


def test_an_svg_is_one_file_that_knows_dark_and_escapes():
    program = river.compile(SHARED, "river")
    drawn = svg(drawing(program.graph), 'a <b> & "c" \x00')
    root = ET.fromstring(drawn)  # noqa: S314 - our own text
    assert root.findtext("{http://www.w3.org/2000/svg}title") == 'a <b> & "c" '
    assert "prefers-color-scheme: dark" in drawn
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
    assert "map&lt;string, i64&gt;" in drawn


def test_colours_only_for_terminals(shared):
    assert "\x1b[" not in text(shared)
    coloured = text(shared, coloured=True)
    assert re.sub(r"\x1b\[\d*m", "", coloured) == text(shared)
    assert all(len(line) <= 60 for line in text(shared, width=60).splitlines())


# -- the commands


def command(*argv):
    out, err = io.StringIO(), io.StringIO()
    status = main([str(a) for a in argv], io.StringIO(), out, err)
    return status, out.getvalue(), err.getvalue()


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "shared.river"
    path.write_text(SHARED)
    return path


@pytest.mark.parametrize(
    ("suffix", "start"), [("svg", "<svg "), ("mmd", "flowchart LR"), ("txt", "inputs\n")]
)
def test_the_suffix_tells_the_format(program, suffix, start):
    target = program.with_suffix(f".{suffix}")
    assert command("graph", program, "-o", target) == (0, "", "")
    assert target.read_text().startswith(start)
    forms = {"mmd": "mermaid", "txt": "text"}
    assert command("graph", program, "--format", forms.get(suffix, suffix)) == (0, target.read_text(), "")


def test_the_plan_shows_the_workers_of_groups(shared_graph):
    made = BACKEND.plan(shared_graph, Platform(3), Options())
    labels = [frame.label for frame in drawing(shared_graph, made).frames]
    assert labels[-2:] == ["group left, worker 1", "group right, workers 2 to 3"]


def test_the_plan_shows_locks_and_bounds(program):
    status, out, _ = command("graph", program, "--plan", "--format", "svg")
    assert status == 0
    assert "lock 0" in out
    assert "holds 65536 items" in out
    text = (ROOT / "tests/bodies/c_echo.river").read_text()
    loop = program.with_name("loop.river")
    loop.write_text(text)  # which is one operator
    assert "unbounded" not in command("graph", loop, "--plan", "--format", "svg")[1]
    rated, plain = "on x[pop 2](w) { emit y w[0] + 0.6 * w[1]; }", "on x(v) { if v > 0.0 { emit y v; } }"
    loop.write_text(text.replace(rated, plain).replace("y[push 1]: f32", "y: f32"))
    assert "unbounded" in command("graph", loop, "--plan", "--format", "svg")[1]


def test_the_graph_after_passes(program):
    fused = program.with_name("fused.river")
    fused.write_text(
        "river 1;\ninput a: i64;\noutput b: i64;\n"
        "operator inc(x: i64) -> (y: i64) { on x(v) { emit y v +% 1; } }\n"
        "@Fuse(1) (m) <- inc(a);\n@Fuse(1) (b) <- inc(m);\n"
    )
    shown = command("graph", fused)[1]
    assert len(re.findall(r"^  inc ", shown, re.MULTILINE)) == 2
    assert "segment 1: inc, inc" in shown
    fewer = command("graph", fused, "-p", "fusion")[1]
    assert "layer 2" not in fewer
    assert "segment" not in fewer


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["-o", "picture.xyz"], "graph-format"),
        (["--plan", "--backend", "reference"], "graph-plan"),
        (["--plan", "--backend", "multicor"], "unknown-backend"),
        (["-p", "fussion"], "unknown-pass"),
        (["--format", "png"], "usage"),
        (["-o", "no/such/folder/x.svg"], "data-output"),
    ],
)
def test_mistakes(program, argv, code):
    status, out, err = command("graph", program, *argv)
    assert (status, out) == (1, "")
    assert f"error[{code}]" in err
