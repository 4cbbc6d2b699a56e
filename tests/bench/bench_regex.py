"""Regular expressions on URLs of about 53 bytes: native code against Python's `re`, and RE2 where `google-re2` is installed.

Native times are of whole operators on a column of texts: all positions of the match (`re_find`), or yes and no
(`re_test`). Those of `re` and RE2 contain Python's call. Each time is the best of a few runs; all match alike.
"""

from __future__ import annotations

import re
import statistics
import time
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import measure

from backends.native import NativeOperator, compile_native
from backends.native.batch import Batch
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import types as t
from river.lang.automata.tables import table
from river.lang.operations import OPERATIONS
from river.lang.patterns import compile_pattern
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 20_000
RUNS = 7
PATTERNS = (
    r"^https?://([^/:]+)", r"^(https?)://([^/:]+)(:\d+)?", r"([a-z]+)\.html", r"page\d+\.html", r"[?&]x=([^&]*)",
    r"(?i)INDEX/(\d+)$", r"^(\w+)://([\w.]+)(?::(\d+))?/([^?]*)(?:\?(.*))?$", r"\bq=\d+\b",
)  # fmt: skip
URLS = [
    f"https://www.example{i % 97}.com:8080/path/to/page{i}.html?q={i * 7}&x=y" if i % 3 else f"http://host{i}.org/index/{i}"
    for i in range(COUNT)
]  # fmt: skip
PROGRAM = """river 1;
input x: string;
output y: i64;
operator f(x: string) -> (y: i64) {{ const r: regex = regex({pattern}); on x(s) {{ {body} }} }}
(y) <- f(x);
"""
BODIES = {
    "find": "let p = re_find(r, s); if len(p) > 0 { emit y p[len(p) - 1]; }",
    "test": "if re_test(r, s) { emit y 1; }",
}


def operator(pattern: str, body: str) -> NativeOperator:
    quoted = '"' + pattern.replace("\\", "\\\\") + '"'
    text = PROGRAM.format(pattern=quoted, body=body)
    (instance,) = verify(parse(Source("bench.river", text)), Library.of({})).instances
    found = compile_native(instance.operator)  # pyright: ignore[reportArgumentType]
    assert isinstance(found, NativeOperator), found
    return found


def best(run: Callable[[], Any]) -> float:
    """Nanoseconds per text."""
    return measure.best(run, RUNS) / COUNT * 1e9


def main() -> None:
    column = Batch.of(t.STRING, URLS)
    re2: Any = import_module("re2") if find_spec("re2") else None
    print(
        f"{COUNT} URLs, {sum(map(len, URLS)) / COUNT:.1f} bytes on average; ns per text, best of {RUNS} runs"
    )
    if re2 is None:
        print("google-re2 is not installed: no comparison with RE2")
    ratios: dict[str, list[float]] = {"find": [], "test": []}
    for pattern in PATTERNS:
        start = time.perf_counter()
        words = table(compile_pattern(pattern).machine.program)
        built = time.perf_counter() - start
        plain = re.compile(pattern, re.ASCII)
        native: dict[str, float] = {}
        for name, body in BODIES.items():
            compiled = operator(pattern, body)

            def run(compiled: NativeOperator = compiled) -> None:
                compiled.clear()
                assert compiled.fire("item.0", column.addresses, 0, COUNT).row == COUNT

            native[name] = best(run)
            assert compiled.outputs[0].rows == sum(plain.search(url) is not None for url in URLS)
        regex = compile_pattern(pattern)
        meaning = OPERATIONS["re_strs"].meaning((), t.List(t.STRING))
        python = best(lambda p=plain: [p.search(url) for url in URLS])
        evaluated = best(lambda r=regex, m=meaning: [m(r, url) for url in URLS[: COUNT // 10]]) * 10
        others = f"re {python:6.0f}, evaluator {evaluated:6.0f}"
        if re2 is not None:
            compiled2 = re2.compile(pattern)
            finding = best(lambda c=compiled2: [c.search(url) for url in URLS])
            testing = (
                best(lambda c=compiled2: [c.test(url) for url in URLS])
                if hasattr(compiled2, "test")
                else finding
            )
            others += f", re2 {finding:6.0f} / {testing:6.0f}"
        for name, took in native.items():
            ratios[name].append(took / python)
        print(
            f"{pattern:52} native find {native['find']:6.1f}, test {native['test']:6.1f}; {others}; "
            f"table {4 * len(words) / 1024:.1f} KB in {built * 1e3:.1f} ms"
        )
    for name, found in ratios.items():
        print(
            f"{name}: median {statistics.median(found):.2f} of re, from {min(found):.2f} to {max(found):.2f}"
        )


if __name__ == "__main__":
    main()
