"""Regular expressions: native code against RE2's C++ code, and against Python's `re`.

RE2 runs over whole columns by pyarrow.compute (`match_substring_regex`, `extract_regex`, `replace_substring_regex`), so
that no Python stands between texts. Both sides contain the columns that come out: bits against bytes, a struct of texts
against lists of texts, texts against texts. `find` gives numbers, so it is compared with `extract_regex` as well, which
makes texts. What RE2 takes for a column of texts with a pattern that matches at once is told, as the overhead in its
times; it is not subtracted. CPU times of this thread, the best of a few runs, both sides in turn. Texts: URLs of
about 53 bytes, and lines of about 2,000 bytes of words with a URL at the end.
"""

from __future__ import annotations

import random
import re
import statistics
import time
from collections import defaultdict
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from measure import record, times

from backends.native import NativeOperator, compile_native
from backends.native.batch import Batch
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import types as t
from river.lang.automata.tables import table
from river.lang.patterns import compile_pattern
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RUNS = 9
COUNT = 20_000
LINES = 1_000
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "status", "error", "code", "user")
OF_URLS = (
    r"^https?://([^/:]+)", r"^(https?)://([^/:]+)(:\d+)?", r"([a-z]+)\.html", r"page\d+\.html", r"[?&]x=([^&]*)",
    r"(?i)INDEX/(\d+)$", r"^(\w+)://([\w.]+)(?::(\d+))?/([^?]*)(?:\?(.*))?$", r"\bq=\d+\b", r"\d+", r"(\w+)=(\w+)&",
    r"html|htm|php", r"^[^/]*//([^/]*)/(.*)$", r"org/index/(\d+)5$", r"[a-z]+://[a-z0-9.]*example9\d",
    r"\.(jpg|gif)$", r"[?&](\w+)=(\w+)$",
)  # fmt: skip
OF_LINES = (
    r"https?://([^/:]+)", r"page\d+\.html", r"([a-z]+)\.html", r"[?&]x=([^&]*)", r"(\d+)-(\d+)-(\d+)", r"html|htm|php",
    r"(?i)HTML", r"zzz", r"(\w+)=(\w+)&", r"\bq=\d+\b", r"(error) (code)", r"^(.*) (\d+)-(\d+)", r"user.*https",
    r"([a-z]+) ([a-z]+) https", r"(x|y|z)+q", r"[0-9]{4}", r"(\w+\s+){3}https", r"\.com",
    r"\.(jpg|gif)$", r"[0-9]+ ms$", r"(GET|POST) .* 404$", r"(\d+)-(\d+)-(\d+)$",
)  # fmt: skip
pc: Any = import_module("pyarrow.compute")  # its functions are made when it is loaded
PROGRAM = """river 1;
input x: string;
output y: {type};
operator f(x: string) -> (y: {type}) {{ const r: regex = regex({pattern}); on x(s) {{ {body} }} }}
(y) <- f(x);
"""
BODIES = {
    "test": ("bool", "emit y re_test(r, s);"),
    "strs": ("list<string>", "emit y re_strs(r, s);"),
    "find": ("i64", "let p = re_find(r, s); if len(p) > 0 { emit y p[len(p) - 1]; }"),
    "replace": ("string", r'emit y re_replace(r, s, "<\\0>");'),
}


def url(i: int) -> str:
    if i % 3:
        return f"https://www.example{i % 97}.com:8080/path/to/page{i}.html?q={i * 7}&x=y"
    return f"http://host{i}.org/index/{i}"


def operator(pattern: str, type_: str, body: str) -> NativeOperator:
    quoted = '"' + pattern.replace("\\", "\\\\") + '"'
    text = PROGRAM.format(pattern=quoted, type=type_, body=body)
    (instance,) = verify(parse(Source("bench.river", text)), Library.of({})).instances
    found = compile_native(instance.operator)  # pyright: ignore[reportArgumentType]
    assert isinstance(found, NativeOperator), found
    return found


def named(pattern: str) -> str | None:
    """The pattern with names for its groups, as `extract_regex` wants them; None without groups."""
    count = 0

    def name(_: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return f"(?P<g{count}>"

    found = re.sub(r"(?<!\\)\((?!\?)", name, pattern)
    return found if count else None


def re2_of(kind: str, pattern: str, texts: Any) -> Callable[[], Any] | None:
    """What RE2 does for it."""
    groups = named(pattern)
    match kind:
        case "test":
            return lambda: pc.match_substring_regex(texts, pattern)
        case "replace":
            return lambda: pc.replace_substring_regex(texts, pattern, r"<\0>")
        case _:
            return None if groups is None else lambda: pc.extract_regex(texts, groups)


def raced(ways: dict[str, Callable[[], Any]], name: str = "", *, count: int) -> dict[str, float]:
    """Nanoseconds per text of each way, the best of runs in turn; kept as a contest if it has a name."""
    found = times(ways, RUNS, time.thread_time)
    if name:
        record(name, found)
    return {way: min(each) / count * 1e9 for way, each in found.items()}


def measure(name: str, texts: list[str], patterns: Sequence[str]) -> None:
    column, array, count = Batch.of(t.STRING, texts), pa.array(texts), len(texts)
    bare = {
        "yes": lambda: pc.match_substring_regex(array, "^"),
        "a struct": lambda: pc.extract_regex(array, "^(?P<g>)"),
    }
    overhead = raced(bare, count=count)
    print(f"\n{count} {name} of {sum(map(len, texts)) / count:.0f} bytes; ns per text, native / RE2")
    print(
        f"RE2 in pyarrow where it matches at once: {overhead['yes']:.0f} for yes, "
        f"{overhead['a struct']:.0f} for a struct of one text"
    )
    ratios: dict[str, list[float]] = defaultdict(list)
    for pattern in patterns:
        start = time.perf_counter()
        words = table(compile_pattern(pattern).machine.program)
        built = time.perf_counter() - start
        plain = re.compile(pattern, re.ASCII)
        shown: list[str] = []
        for kind, (type_, body) in BODIES.items():
            compiled = operator(pattern, type_, body)

            def run(compiled: NativeOperator = compiled) -> None:
                compiled.clear()
                assert compiled.fire("item.0", column.addresses, 0, count).row == count

            other = re2_of(kind, pattern, array)
            ways: dict[str, Callable[[], Any]] = (
                {"river": run} if other is None else {"river": run, "RE2": other}
            )
            took = raced(ways, f"{kind} {pattern} in {name}", count=count)
            ours, theirs = took["river"], took.get("RE2", float("nan"))
            values = compiled.outputs[0].batch().values()
            if kind == "test":
                assert sum(values) == sum(plain.search(text) is not None for text in texts)
            if kind == "replace" and other is not None:
                assert values == other().to_pylist()
            if other is None:
                shown.append(f"{kind} {ours:6.0f} / -")
            else:
                ratios[kind].append(ours / theirs)
                shown.append(f"{kind} {ours:6.0f} / {theirs:6.0f} = {ours / theirs:4.2f}")
        python = raced({"re": lambda p=plain: [p.search(text) for text in texts]}, count=count)["re"]
        size = f"table {4 * len(words) / 1024:.1f} KB in {built * 1e3:.1f} ms"
        print(f"{pattern:52} {' | '.join(shown)} | re {python:6.0f} | {size}", flush=True)
    for kind, found in ratios.items():
        print(
            f"{kind}: median {statistics.median(found):.2f} of RE2, from {min(found):.2f} to {max(found):.2f}"
        )


def main() -> None:
    pa.set_cpu_count(1)
    measure("URLs", [url(i) for i in range(COUNT)], OF_URLS)
    chance = random.Random(1)
    lines = [f"{' '.join(chance.choices(WORDS, k=330))} {url(i)} 2020-11-12" for i in range(LINES)]
    measure("lines", lines, OF_LINES)


if __name__ == "__main__":
    main()
