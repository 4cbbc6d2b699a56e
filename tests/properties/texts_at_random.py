"""Program texts at random, and what must hold of each: what was said of it is a diagnostic with a place, or it runs.

A text comes from the grammar of its language, or is a program that somebody wrote after a few accidents. As a command it tries
some: `python -m tests.properties.texts_at_random SEED FIRST END [LANGUAGE]` says before each which it is, so that one that ends
the process, or never ends, is known.
"""

from __future__ import annotations

import datetime as dt
import gc
import json
import os
import random
import re
import resource
import signal
import sys
import time
import traceback
from decimal import Decimal
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from backends.multicore import BACKEND as MULTICORE
from backends.native.jit import OPTIMISATION, QUICK, optimised
from river.diagnostics import Rejected, render
from river.driver.compilation import Compiled, compile_source
from river.driver.libraries import library as templates
from river.explain.explain import explain
from river.explain.show import text as shown
from river.il.parse import PARSER as IL
from river.il.parse import parse
from river.il.pretty import pretty
from river.il.templates import expand_instances
from river.il.verify import verify
from river.lang import types as t
from river.passes import apply, pipeline
from river.platform import Platform
from river.plugins import pass_
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from river.il.graph import Graph
    from river.lang.grammar import Parser
    from river.lang.lalr import Tables

ROOT: Final = Path(__file__).parents[2]
SECONDS: Final = 60
"""Of a processor, that one text may take with all that is done with it."""
MEMORY: Final = 6 << 30
"""Bytes of addresses of the process that tries texts."""
AT_LENGTH: Final = "RIVER_CASES" in os.environ
OPTIMISED: Final = 0.06 if AT_LENGTH else 0.02
"""In what part of the cases machine code is optimised as for users: that takes longer than all the rest."""
RUNNING: Final = 10 if AT_LENGTH else 1
"""Seconds of the processor after which a run begins no more firings."""
QUICKLY: Final = 0.2
"""In what other part it is as much as a run waits for."""
LANGUAGES: Final = {"cql": "*.cql", "sawzall": "*.szl", "streamit": "*.str", "river": "*.river"}
FOLDERS: Final = ("examples", "tests/programs", "tests/bodies", "tests/bench/programs", "tests/golden")
WORD: Final = re.compile(r"\w+|\s+|.", re.DOTALL)
STRANGE: Final = (
    "(", ")", "{", "}", "[", "]", "<", ">", ";", ",", ":", ".", "=", "+", "-", "*", "/", "#", "$", "@", "'", '"', "/*", "--",
    "//", "0", "1", "-1",
    "9223372036854775807", "9223372036854775808", "99999999999999999999999999", "1000000000", "1e999", "1e-999",
    "0x",
    "1.5", "none", "true", "null", "if", "while", "in", "é", "\0", "\n", "\u2028", "\ud7ff", "\U0001f600", "x" * 300, "",
)  # fmt: skip
BRACKETS: Final = (
    ("(", ")"), ("[", "]"), ("{", "}"), ("-", ""), ("not ", ""), ("!", ""), ("1 + ", ""), ("f(", ")"), ("list<", ">"),
    ("{a: ", "}"), ("if (true) ", ""), ("", " + 1"), ("", ".a"), ("", "[0]"), ("", "?"), ("", " and true"),
    ("case when true then ", " end"), ("pipeline { add ", "}"), ("array of ", ""),
)  # fmt: skip


# ---------------------------------------------------------------------------------------------- texts


@cache
def written(language: str) -> tuple[str, ...]:
    """Programs that somebody wrote in a language."""
    files = (file for folder in FOLDERS for file in sorted((ROOT / folder).rglob(LANGUAGES[language])))
    found = [file.read_text(encoding="utf-8") for file in files]
    for page in sorted((ROOT / "docs").glob("*.md")):
        found += re.findall(
            rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
    return tuple(text for text in found if len(text) < 4_000)


@cache
def words(language: str) -> tuple[str, ...]:
    """Words that stand in those."""
    return tuple(
        sorted({word for text in written(language) for word in WORD.findall(text) if not word.isspace()})
    )


@cache
def parser(language: str) -> Parser:
    """That of a language."""
    return IL if language == "river" else import_module(f"frontends.{language}.parse").PARSER


@cache
def grammar(language: str) -> tuple[Tables, dict[str, list[Sequence[str]]], dict[str, int]]:
    """The tables of a language; by symbol what it may be; how many levels the shortest text of a symbol has."""
    tables = parser(language).tables
    rules: dict[str, list[Sequence[str]]] = {}
    for rule in tables.rules:
        rules.setdefault(rule.origin, []).append(rule.parts)
    least: dict[str, int] = {}
    while True:
        before = dict(least)
        for name, expansions in rules.items():
            known = [
                1 + max((least.get(part, 0) for part in parts), default=0)
                for parts in expansions
                if all(part in tables.terminals or part in least for part in parts)
            ]
            if known:
                least[name] = min(known)
        if least == before:
            return tables, rules, least


def derived(language: str, chance: random.Random, symbol: str, levels: int) -> list[str]:
    """The words of a text of a symbol; where it has become deep, the shortest there is."""
    tables, rules, least = grammar(language)
    found: list[str] = []
    stack: list[tuple[str, int]] = [(symbol, levels)]
    while stack:
        name, left = stack.pop()
        terminal = tables.terminals.get(name)
        if terminal is not None:
            found.append(terminal.text or lexeme(language, chance, name, terminal.pattern))
            continue
        choices = rules[name]
        if left <= 0 or len(found) > 200:
            costs = [max((least.get(part, 0) for part in parts), default=0) for parts in choices]
            choices = [parts for parts, cost in zip(choices, costs, strict=True) if cost == min(costs)]
        stack += [(part, left - 1) for part in reversed(chance.choice(choices))]
    return found


@cache
def fitting(language: str, pattern: str) -> tuple[str, ...]:
    """Words that match the pattern of a terminal."""
    found = tuple(word for word in words(language) if re.fullmatch(pattern, word, re.IGNORECASE))
    more = ('"a"', "'a'", 'b"a"', "`a`", "#T", "$v", "$v.a", "x", "T", "lift")
    return found or tuple(word for word in more if re.fullmatch(pattern, word)) or ("x",)


def lexeme(language: str, chance: random.Random, name: str, pattern: str) -> str:
    """A word of a terminal that has a pattern."""
    match name:
        case "INT":
            return chance.choice(["0", "1", "2", "3", "7", "100", "0xff", str(1 << chance.randrange(70))])
        case "FLOAT" | "C_FLOAT":
            return chance.choice(["0.0", "1.5", "1e300", "1e999", "2.5e-3"])
        case _:
            return chance.choice(fitting(language, pattern))


def kind(word: str) -> str:
    """What a word looks like: words of one look often stand for one another."""
    return "0" if word.isdigit() else "a" if word[:1].isalnum() else "=" if word in "+-*/%<>=&|^" else word


def spoiled(language: str, chance: random.Random) -> str:
    """A program after a few accidents."""
    parts = WORD.findall(chance.choice(written(language))) or [""]
    for _ in range(chance.choice([1, 1, 1, 2, 3, 6])):
        parts = parts or [""]
        at = chance.randrange(len(parts) + 1)
        match chance.randrange(15):
            case 0:
                parts[at : at + 1] = [chance.choice(words(language))]
            case 1 | 10 | 11 | 12 | 13 | 14:
                places = [i for i, part in enumerate(parts) if not part.isspace()] or [0]
                at = chance.choice(places)
                parts[at] = chance.choice([part for part in parts if kind(part) == kind(parts[at])])
            case 2:
                parts[at:at] = [chance.choice(STRANGE)]
            case 3:
                parts[at : at + 1] = [chance.choice(STRANGE)]
            case 4:
                del parts[at : at + chance.randrange(1, 6)]
            case 5:
                parts[at:at] = parts[at : at + chance.randrange(1, 30)]
            case 6:
                first, second = sorted((at, chance.randrange(len(parts) + 1)))
                parts[first : first + 1], parts[second : second + 1] = (
                    parts[second : second + 1],
                    parts[first : first + 1],
                )
            case 7:
                left, right = chance.choice(BRACKETS)
                times = chance.choice([1, 5, 40, 150, 400, 3_000])
                parts[at : at + 1] = [left * times, *parts[at : at + 1], right * times]
            case 8:
                symbol = chance.choice(sorted(grammar(language)[1]))
                parts[at : at + 1] = [
                    " ",
                    " ".join(derived(language, chance, symbol, chance.randrange(1, 9))),
                    " ",
                ]
            case _:
                if chance.random() < 0.3:
                    del parts[at:]
                else:
                    numbers = [i for i, part in enumerate(parts) if part.isdigit()] or [0]
                    parts[chance.choice(numbers)] = chance.choice(
                        ["0", "1", "5", "1000", "1000000", "99999999999", "-1"]
                    )
    return "".join(parts)


def text_of(language: str, chance: random.Random) -> str:
    """A text that may be a program."""
    if chance.random() < 0.2:
        parts = derived(language, chance, parser(language).start[0], chance.randrange(2, 40))
        return ("river 1;" if language == "river" and chance.random() < 0.9 else "") + " ".join(parts)
    return spoiled(language, chance)


# ---------------------------------------------------------------------------------------------- data


def value(type_: t.Type, chance: random.Random) -> Any:
    """A value of a type, as Python writes it."""
    match type_:
        case t.Primitive(name):
            return _primitive(name, chance)
        case t.Decimal(_, scale):
            return Decimal(chance.randrange(10)).scaleb(-scale)
        case t.Optional(inner):
            return None if chance.random() < 0.3 else value(inner, chance)
        case t.Record(fields):
            return {name: value(part, chance) for name, part in fields}
        case t.Tuple(items):
            return tuple(value(item, chance) for item in items)
        case t.Array(item, size):
            return [value(item, chance) for _ in range(min(size, 1_000))]
        case t.Map(key, inside):
            return [(value(key, chance), value(inside, chance))]
        case _:
            return [value(part, chance) for part in t.parts(type_)[:1] for _ in range(chance.randrange(3))]


def _primitive(name: str, chance: random.Random) -> Any:
    match name:
        case "bool":
            return chance.random() < 0.5
        case "f32" | "f64":
            return chance.choice([0.0, 1.5, -2.25, 1e30])
        case "string":
            return chance.choice(["", "a", "b", "JFK", "twelve bytes and more"])
        case "bytes":
            return chance.choice([b"", b"a"])
        case "time":
            return dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=chance.randrange(100))
        case "duration":
            return dt.timedelta(seconds=chance.randrange(100))
        case "unit":
            return ()
        case _:
            return chance.choice([0, 1, 2, 3, 50, 100])


def data(graph: Graph, chance: random.Random) -> Mapping[str, Any]:
    """Twelve items for each input, in the order of its key."""
    found: dict[str, Any] = {}
    for name in graph.inputs:
        queue = graph.queues[name]
        rows = [value(queue.type, chance) for _ in range(12)]
        if queue.by is not None:
            rows.sort(key=lambda row: row[queue.by])
        found[name] = rows
    return found


# ---------------------------------------------------------------------------------------------- what must hold


def attempt(language: str, text: str, chance: random.Random) -> str:
    """How far a text came. Raises: whatever shows a mistake of River's."""
    source = Source(f"case.{language}", text)
    try:
        compiled = compile_source(source, language)
    except Rejected as rejected:
        placed(rejected, source)
        return "refused"
    try:
        graph = compiled.graph
    except Rejected as rejected:
        if compiled.lowered:
            raise AssertionError("what was lowered does not verify") from rejected
        placed(rejected, source)
        return "not verified"
    again = parse(Source("again.river", compiled.text))
    assert again == compiled.program, "another program is read from what was printed"
    expanded = pretty(expand_instances(compiled.program, compiled.templates))
    verified = parse(Source("expanded.river", expanded))
    verify(verified, templates(verified))
    assert shown(explain(graph, "case"))
    if chance.random() < 0.3:
        apply(compiled.program, pipeline(MULTICORE.passes, pass_), Platform(2, 1), compiled.templates)
    return ran(compiled, data(graph, chance), chance)


def placed(rejected: Rejected, source: Source) -> None:
    """What was said has a place inside of the text, and can be shown."""
    assert rejected.diagnostics
    for diagnostic in rejected.diagnostics:
        assert diagnostic.span is not None, f"no place: {diagnostic}"
        assert diagnostic.span.source is source, (
            f"a place in another text: {diagnostic.span.source.name}: {diagnostic.message}"
        )
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(source.text), diagnostic
        assert render(diagnostic)


def ran(compiled: Compiled, inputs: Mapping[str, Any], chance: random.Random) -> str:
    """How a short run ended: each firing gets a second, all of it `RUNNING` ones of the processor."""
    native = "on" if chance.random() < 0.2 else "off"
    how: dict[str, Any] = {"iterations": 3} if "clock" in inputs else {}
    rest = {name: rows for name, rows in inputs.items() if name != "clock"}
    end = time.process_time() + RUNNING

    def run(backend: str, **options: Any) -> str:
        try:
            compiled.run(rest, backend=backend, stopping=lambda: time.process_time() > end, **how, **options)
        except Rejected as rejected:
            said = rejected.diagnostics[0].code
            for diagnostic in rejected.diagnostics:
                render(diagnostic)
            return said if said in ("trap-deadline", "trap-arena-limit") else "told"
        except KeyboardInterrupt:
            return "stopped"
        return "ran"

    found = run("multicore", workers=1, native=native, deadline=1.0)
    return run("reference") if found in ("ran", "told") and native == "off" else found


def case(seed: str, index: int, language: str | None = None) -> tuple[str, str, random.Random]:
    """Language and text of a case, and the chance that goes on from there."""
    chance = random.Random(f"{seed} {index}")
    chosen = language or chance.choice(sorted(LANGUAGES))
    return chosen, text_of(chosen, chance), chance


def main(seed: str, first: str, end: str, language: str | None = None) -> None:
    """Tries the cases `first` to `end`. Each has two lines: its number, and how it ended, or what was raised."""
    gc.set_threshold(200_000, 20, 20)  # as for a command
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for index in range(int(first), int(end)):
        print(index, flush=True)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # ends the process, machine code included
        chosen, text, chance = case(seed, index, language)
        drawn = random.Random(f"{seed} {index} optimised").random()
        effort = OPTIMISATION if drawn < OPTIMISED else QUICK if drawn < OPTIMISED + QUICKLY else 0
        try:
            with optimised(effort):
                ending = attempt(chosen, text, chance)
        except Exception:  # noqa: BLE001 - all that is no Rejected is a mistake
            ending = "raised " + traceback.format_exc(limit=-12)
        print(json.dumps([chosen, ending]), flush=True)


if __name__ == "__main__":
    with TemporaryDirectory() as home:
        os.chdir(home)  # programs may write files
        main(*sys.argv[1:])
