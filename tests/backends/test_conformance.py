"""Our backends keep what `river.testing.check_backend` asks of any; Spark has tests of its own, it is too slow for these."""

from __future__ import annotations

import pytest
from hypothesis import settings

from river import plugins
from river.diagnostics import Rejected
from river.driver.compilation import compile_source
from river.source import Source
from river.testing import check_backend


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in plugins.backends() if name != "spark"])
def test_backends_keep_their_promises(name: str) -> None:
    check_backend(plugins.backend(name), examples=min(15, settings().max_examples // 2))


@pytest.mark.parametrize("native", ["on", "off"])
@pytest.mark.parametrize("name", [name for name in plugins.backends() if name != "spark"])
def test_constants_that_trap_are_told(name: str, native: str) -> None:
    text = (
        "river 1; input q: i64; output out: i64;\n"
        "operator f(p: i64) -> (o: i64) { const c: list<i64> = take([1, 2], 1); const d: i64 = c[1]; on p(x) { emit o d; } }\n"
        "(out) <- f(q);"
    )
    program = compile_source(Source("q.river", text), "river")
    with pytest.raises(Rejected) as caught:
        program.run({"q": [1]}, backend=name, native=native)
    (found,) = caught.value.diagnostics
    assert found.code == "trap-index-range"
    assert found.span is not None
    assert found.span.text == "c[1]"
