from __future__ import annotations

import pytest

import river
from river.diagnostics import Rejected
from river.il.borders import Border, border

TEXT = """river 1;

@File("a b.bin", "raw") @Steady(3, 2) @Other(x) input a: i32;
@Printed() output b: string;

operator show(x: i32) -> (y: string) {
  on x(v) {
    emit y string(v);
  }
}

(b) <- show(a);
"""


def test_inputs_and_outputs_say_what_they_are() -> None:
    compiled = river.compile(TEXT, "river")
    assert compiled.text == TEXT
    (read,), (written,) = compiled.program.inputs, compiled.program.outputs
    assert border(read) == Border("a b.bin", "raw", steady=(3, 2))
    assert border(read).items(5) == 13
    assert border(written) == Border(printed="stdout")
    assert border(written).items(5) is None


@pytest.mark.parametrize("wrong", ['@File("x")', "@Steady(1)", "@Printed(1)"])
def test_arguments_that_say_nothing(wrong: str) -> None:
    with pytest.raises(Rejected) as refused:
        river.compile(TEXT.replace("@Printed()", wrong), "river").graph  # noqa: B018
    assert [found.code for found in refused.value.diagnostics] == ["il-annotation-argument"]


def test_iterations_limit_what_is_read_and_what_is_seen() -> None:
    text = TEXT.replace("@Printed() output", "@Steady(1, 3) output")
    results = river.compile(text, "river").run({"a": list(range(20))}, iterations=2)
    assert results["b"]["value"].to_pylist() == [str(i) for i in range(7)]
    assert results.read == 7
