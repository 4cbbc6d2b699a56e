"""State that only remembers items becomes a window, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest

import river
from frontends.streamit import FRONTEND, windows
from river.source import Source
from river.testing.seeds import chance
from tests.oracles import streamit_direct as direct

ITEMS = [3, -1, 4, 1, -5, 9, 2, 6, -5, 3, 5, 8, -9, 7, 9, 3, 2, 3, -8, 4, 6]

RING = """
int[5] kept; int at;
work pop 1 push 1 {
  kept[at] = pop();
  int sum = 0;
  int from = at;
  for (int i = 0; i < 5; i++) { sum = sum * 3 + kept[from]; from = (from + 4) % 5; }
  at = (at + 1) % 5;
  push(sum);
}"""
SHIFTED = """
int[4] kept;
init { for (int i = 0; i < 4; i++) kept[i] = 7 - i; }
work pop 2 push 1 {
  int sum = 0;
  for (int i = 3; i > 0; i--) { sum = sum * 5 + kept[i]; kept[i] = kept[i - 1]; }
  kept[0] = pop();
  push(sum + kept[0]);
  pop();
}"""
LAST = "int last = 5; work pop 1 push 1 { push(peek(0) - last); last = pop(); }"
BEHIND = "int last = 5; work pop 1 peek 2 push 1 { push(peek(1) * 3 - last); last = pop(); }"
CHOSEN = """
int a; int b = 2;
work pop 1 push 1 { int x = pop(); push(x > a && b != 0 ? x / (b == 0 ? 1 : b) : a - b); b = a; a = x; }"""
STRUCTS = """
Pair[3] kept; int at;
work pop 2 push 2 {
  kept[at].x = pop();
  kept[at].y[1] = pop();
  at++;
  if (at == 3) at = 0;
  int sum = 0; int more = 0;
  for (int i = 0; i < 3; i++) { sum = sum * 7 + kept[(at + i) % 3].x; more = more * 7 + kept[(at + i) % 3].y[1]; }
  push(sum); push(more);
}"""
ALIKE = "int same = 4; work pop 1 push 1 { push(pop() * same); same = 4; }"

SUMMED = "int sum; work pop 1 push 1 { sum += pop(); push(sum); }"
COUNTED = "int n; work pop 1 push 1 { push(pop() + n); n++; }"
TURNS = "int n; work pop 1 push 1 { push(n == 0 ? pop() : -pop()); n = (n + 1) % 3; }"
FILLED = """
int[3] kept; int n;
work pop 1 push 1 { kept[n % 3] = pop(); n = n == 5 ? 3 : n + 1; push(n + kept[0]); }"""
ASKED = "int kept; work pop 1 push 1 { if (peek(0) > 0) kept = peek(0); push(kept); pop(); }"
UNLIKE = """
int[2] kept = {1, 2};
work pop 1 push 1 { push(kept[0] * 3 + kept[1]); kept[0] = peek(0); kept[1] = pop(); }"""
LONG = "int[40] kept; int at; work pop 1 push 1 { push(kept[at]); kept[at] = pop(); at = (at + 1) % 40; }"
AHEAD = "int next = 5; work pop 1 push 1 { push(pop() - next); next = peek(0); }"
DIVIDED = "int a; int n; work pop 1 push 1 { push(a + 6 / (n - 2)); a = pop(); n = (n + 1) % 2; }"


def program(body: str, item: str = "int") -> str:
    return f"struct Pair {{ int x; int[2] y; }} {item}->{item} filter F {{ {body} }}"


def found(text: str, items: list[Any]) -> Any:
    """What the program keeps; its output must be that of the language's definition."""
    compiled = river.compile(text, lang="streamit")
    expected = direct.run(FRONTEND.check(FRONTEND.parse(Source("t.str", text))), {"input": items}, 0)
    for native in ("on", "off"):
        table = compiled.run({"input": items}, native=native)["output"]
        assert [row["value"] for row in table.to_pylist()] == expected["output"], native
    return {variable.name for variable in compiled.graph.variables}


@pytest.mark.parametrize("body", [RING, SHIFTED, LAST, BEHIND, CHOSEN, STRUCTS, ALIKE])
def test_what_is_remembered_is_looked_up(body: str) -> None:
    assert not found(program(body), ITEMS)


@pytest.mark.parametrize("body", [SUMMED, COUNTED, TURNS, FILLED, ASKED, UNLIKE, LONG, AHEAD, DIVIDED])
def test_other_state_stays(body: str) -> None:
    assert found(program(body), ITEMS)


def test_complex_numbers_are_remembered() -> None:
    text = """
    float->float pipeline Main {
      add float->complex filter { work pop 2 push 1 { complex c; c.real = pop(); c.imag = pop(); push(c); } }
      add complex->complex filter {
        complex a; complex b = 1.0 + 2i;
        work pop 1 push 1 { complex c = pop(); push(c * a + b); b = a; a = c; }
      }
      add complex->float filter { work pop 1 push 2 { complex c = pop(); push(c.real); push(c.imag); } }
    }"""
    assert not found(text, [0.5, 1.0, -2.0, 3.0, 4.0, -0.25, 8.0, 1.5])


def test_filters_with_other_first_values_are_others() -> None:
    text = """
    int->int pipeline Main { add Last(1, 2); add Last(3, 2); add Last(3, 4); add Twice; }
    int->int filter Last(int first, int k) {
      int last = first;
      work pop 1 push 1 { int x = pop(); push(k * x - last); last = x; }
    }
    int->int filter Twice { int n; work pop 1 push 1 { push(pop() + n); n++; } }
    """
    assert found(text, ITEMS) == {"Twice_n"}


def test_filters_in_loops_keep_what_they_remember() -> None:
    text = """
    int->int feedbackloop Main {
      join roundrobin(1, 1);
      body int->int filter { int last; work pop 2 push 1 { int x = pop(); push(x + last + pop()); last = x; } };
      loop Identity<int>;
      split duplicate;
      enqueue 1;
    }"""
    assert found(text, ITEMS)


def test_random_memories() -> None:
    """Cells that are set from items and from one another, and looked at, at random places that a counter moves."""
    draw = chance("random memories")
    for _ in range(6):
        size, pop = draw.randint(2, 5), draw.randint(1, 3)
        turn = draw.choice([0, 1, size - 1])
        peek = pop + draw.randint(0, 2)
        place = lambda: f"kept[(at + {draw.randint(0, size)}) % {size}]"  # noqa: B023, E731
        item = lambda: f"peek({draw.randint(0, peek - 1)})"  # noqa: B023, E731
        body: list[str] = []
        for _ in range(draw.randint(2, 6)):
            kind = draw.randint(0, 3)
            if kind < 2:
                body.append(f"{place()} = {item() if draw.random() < 0.7 else place()};")
            else:
                body.append(f"x = x * 3 + {place()} - {item()};")
        text = f"""
        int[{size}] kept; int at;
        init {{ for (int i = 0; i < {size}; i++) kept[i] = {draw.choice(["0", "i", "5"])}; }}
        work pop {pop} peek {peek} push 1 {{
          int x = 0;
          {" ".join(body)}
          at = (at + {turn}) % {size};
          push(x + {place()});
          for (int i = 0; i < {pop}; i++) pop();
        }}"""
        found(program(text), ITEMS)


def test_filters_that_differ_in_floats_are_looked_at_once() -> None:
    text = """
    float->float pipeline Main {
      add Ring(0.5, 3); add Ring(-0.25, 3); add Ring(2, 3); add Turned(1.5); add Turned(3); add Turned(0.5);
    }
    float->float filter Ring(float k, int n) {
      float[n] kept; float[n] h; int at;
      init { for (int i = 0; i < n; i++) h[i] = k * i + 1; }
      work pop 1 push 1 {
        kept[at] = pop();
        float sum = 0;
        for (int i = 0; i < n; i++) sum = sum * 0.5 + h[i] * kept[(at + i) % n];
        at = (at + 1) % n;
        push(sum);
      }
    }
    float->float filter Turned(float k) {
      float[3] kept; int at;
      int step = (int) (k * 2) - 2;
      work pop 1 push 1 {
        kept[at] = pop();
        push(kept[0] + 2 * kept[1] - kept[2] * k);
        at = (at + step + 6) % 3;
      }
    }"""
    kept = found(text, [float(item) for item in ITEMS])
    assert kept
    assert not any(name.startswith("Ring") for name in kept)


def test_items_of_long_windows_count_as_work(monkeypatch: pytest.MonkeyPatch) -> None:
    last = """
    int last;
    work pop 90 push 1 {
      int sum = last;
      for (int i = 0; i < 4; i++) sum += peek(i) * last;
      push(sum);
      last = peek(89);
    }"""
    assert not found(program(last), [3] * 300)
    monkeypatch.setattr(windows, "STEPS", 250)
    assert found(program(last.replace("90", "91")), [3] * 300)
