"""StreamIt: messages between filters."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import river
from river.cli import main
from tests.frontends.streamit_runs import SHOW, lines, output

ROOT = Path(__file__).resolve().parents[2]


TOLD = """
struct Pair { int a; float b; }
void->void pipeline Main {
  portal<Source> back;
  portal<Gain> gain;
  add Source to back;
  add splitjoin { split roundrobin(1, 3); add Gain(1) to gain; add Gain(2) to gain; join roundrobin(1, 3); }
  add Watch(back, gain, 2);
  add float->void filter { work pop 1 { println(pop()); } };
}
void->float filter Source {
  float n;
  float step = 1;
  work push 2 { push(n); n += step; push(n); n += step; }
  handler setStep(float s) { step = s; println("step " + s); }
}
float->float filter Gain(int k) {
  float[2] g;
  init { g[0] = k; g[1] = 1; }
  work pop 1 push 1 { push(pop() * g[0] + g[1]); }
  handler set(float[2] x, Pair p) { g = x; x[0] = 99; g[1] += p.a * p.b; }
  void mute() { g[0] = 0; }
}
float->float filter Watch(portal<Source> back, portal<Gain> gain, int late) {
  void tell(float v) { back.setStep(v / 8) [late : late + 3]; }
  prework pop 2 push 2 { push(pop()); push(pop()); }
  work pop 4 push 4 {
    for (int i = 0; i < 4; i++) {
      float v = pop();
      if (v > 20) tell(v);
      if (v > 30) { float[2] a = {v, 1}; Pair p; p.a = i; p.b = 0.5; gain.set(a, p) [4:]; }
      if (v > 60) gain.mute();
      push(v);
    }
  }
}
"""


def test_messages_go_up_and_down() -> None:
    found = lines(TOLD, 12)
    assert found[:8] == ["1.0", "3.0", "5.0", "7.0", "5.0", "11.0", "13.0", "15.0"]
    assert sum(line.startswith("step") for line in found) > 5


CHAIN = """
void->int filter Source { int n; work push 1 { push(n++); } }
int->int filter Add { int by; work pop 1 push 1 { push(pop() + by); } handler set(int x) { by += x; } }
int->int filter Send(int when, portal<Add> p) { work pop 1 push 1 { if (peek(0) == when) p.set(100) LATENCY; push(pop()); } }
int->int filter Pairs { work pop 2 push 2 { push(pop()); push(pop()); } }
int->void filter Show { work pop 1 { println(pop()); } }
void->void pipeline Main { portal<Add> p; add Source; PARTS add Show; }
"""


@pytest.mark.parametrize(
    ("parts", "latency", "changed"),
    [
        ("add Send(3, p); add Add to p;", "", 3),  # item 3 is of firing 4, and the first that depends on it
        ("add Send(3, p); add Add to p;", "@ 2", 5),
        ("add Send(3, p); add Add to p;", "[-2:0]", 1),
        ("add Send(3, p); add Pairs; add Add to p;", "@ -3", 0),
        ("add Send(3, p); add Pairs; add Add to p;", "", 2),  # the third item waits for the fourth
        ("add Add to p; add Send(3, p);", "", 4),
        ("add Add to p; add Send(3, p);", "[*]", 4),
        ("add Add to p; add Send(3, p);", "[-2:3]", 4),
        ("add Add to p; add Pairs; add Send(2, p);", "", 4),
        ("add Add to p; add Pairs; add Send(2, p);", "@ 2", 6),
    ],
)
def test_messages_are_handled_by_the_item(parts: str, latency: str, changed: int) -> None:
    found = lines(CHAIN.replace("PARTS", parts).replace("LATENCY", latency), 10)
    assert len(found) == (20 if "Pairs" in parts else 10)
    assert found == [str(n + 100 * (n >= changed)) for n in range(len(found))]


def test_messages_go_up_where_rates_differ_elsewhere() -> None:
    text = """
    int->int filter Skip { work pop * push 1 { int n = pop(); while (n > 5) n = pop(); push(n); } }
    int->int filter Add { int by; work pop 1 push 1 { push(pop() + by); } handler set(int x) { by += x; } }
    int->int filter Watch(portal<Add> p) { work pop 2 push 2 { if (peek(0) == 2) p.set(10) [1:1]; push(pop()); push(pop()); } }
    int->int filter Some { work pop 1 push * { int n = pop(); for (int i = 0; i < n % 4; i++) push(n); } }
    int->int pipeline Main { portal<Add> p; add Skip; add Add to p; add Watch(p); add Some; }
    """
    assert output(text, [7, 1, 2, 8, 9, 2, 3, 3, 1, 9, 1, 1, 1]) == [1, 2, 2, 2, 2, *[3] * 6, 1, *[11] * 6]


@pytest.mark.parametrize(
    ("parts", "latency"),
    [
        ("add Add to p; add Pairs; add Send(2, p);", "@ 3"),
        (
            "add Add to p; add int->int filter { work pop 1 push 2 { push(pop()); push(0); } }; add Send(6, p);",
            "",
        ),
        (
            "add Add to p; add int->int filter { work pop 2 push 3 { push(pop()); push(pop()); push(0); } }; add Send(4, p);",
            "@ 1",
        ),
    ],
)
def test_a_loop_of_messages_is_one_region(parts: str, latency: str, tmp_path: Path) -> None:
    text = CHAIN.replace("PARTS", parts).replace("LATENCY", latency)
    lines(text, 30)  # compares
    (tmp_path / "chain.str").write_text(text, encoding="utf-8")
    out = io.StringIO()
    assert main(["explain", str(tmp_path / "chain.str")], io.StringIO(), out, out) == 0
    assert "is a loop, which runs as one region: Add, " in out.getvalue()


@pytest.mark.parametrize("told", ["", "to p"])
def test_a_source_with_a_prework_in_a_program_with_messages(told: str) -> None:
    text = f"""
    void->void pipeline Main {{ portal<Count> p; add Count {told}; add Pass(p); add Show; }}
    void->int filter Count {{
      int n, step = 1;
      prework push 2 {{ push(-1); push(-2); }}
      work push 1 {{ push(n); n += step; }}
      handler by(int k) {{ step = k; }}
    }}
    int->int filter Pass(portal<Count> p) {{ work pop 1 push 1 {{ if (peek(0) == 1) p.by(3) [2:4]; push(pop()); }} }}
    {SHOW}"""
    expected = [-1, -2, 0, 1, 2, 3, 4, 7] if told else [-1, -2, 0, 1, 2, 3, 4, 5]
    assert lines(text, 8) == list(map(str, expected))


@pytest.mark.slow
def test_the_radio_that_hops() -> None:
    text = (ROOT / "examples" / "frequency_hopping" / "radio.str").read_text(encoding="utf-8")
    good, bad = "100 % of the carrier", "0 % of the carrier"
    compiled = river.compile(text, lang="streamit")
    found = compiled.run({}, iterations=24)["stdout"]["value"].to_pylist()
    assert found == [f"{good}\n"] * 24
    deaf = river.compile(text.replace("tuner.tune(heard) [1:1];", ""), lang="streamit")
    found = deaf.run({}, iterations=8)["stdout"]["value"].to_pylist()
    assert found == [f"{good}\n"] * 4 + [f"{bad}\n"] * 4
