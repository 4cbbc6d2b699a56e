"""StreamIt programs that all backends and the direct definition run, and small things that their tests share."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

from frontends.streamit import FRONTEND
from river.driver import Compiled, compile_checked
from river.source import Source, Texts
from tests.oracles import streamit_direct as direct

BACKENDS = ("multicore", "reference")


@lru_cache(maxsize=16)
def made(text: str) -> tuple[Any, Compiled]:
    """A program as it has been checked, which the direct definition reads, and compiled; once for all inputs of a test."""
    source = Source("t.str", text)
    typed = FRONTEND.check(FRONTEND.parse(source))
    return typed, compile_checked(FRONTEND, typed, Texts((source,)))


def run(text: str, data: dict[str, list[Any]] | None = None, iterations: int | None = None) -> dict[str, Any]:
    """What both backends and the direct definition say, which must be the same; of `stdout`, the text."""
    typed, compiled = made(text)
    expected = direct.run(typed, data or {}, iterations or 0)
    collected = dict.fromkeys(compiled.outputs)
    for backend in BACKENDS:
        results = compiled.run(data or {}, collected, backend=backend, iterations=iterations)
        found: dict[str, Any] = {
            name: [row["value"] for row in table.to_pylist()] for name, table in results.tables.items()
        }
        if "stdout" in found:
            found["stdout"] = "".join(found["stdout"])
        assert found == expected, backend
    return expected


def output(text: str, items: list[Any]) -> list[Any]:
    return run(text, {"input": items})["output"]


def lines(text: str, iterations: int) -> list[str]:
    return run(text, iterations=iterations)["stdout"].splitlines()


def f32(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


COUNT = "void->int filter Count { int n; work push 1 { push(n++); } }"


SHOW = "int->void filter Show { work pop 1 { println(pop()); } }"
