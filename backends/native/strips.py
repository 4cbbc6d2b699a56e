"""A text parsed and operators fired on its rows in one call of machine code, strip by strip.

A strip is so many rows that their columns and texts are still in the nearest cache when the last operator fires on them, and
no thread that has Python's lock is waited for between two of them. Parsing and each operator stay functions of their own, which
are called by their addresses: a loop for each program would have to be made before its first run.

Paper: River §6 (Sawzall: the reducer fused with its mapper); Auto-parallelizing §3.1.
"""

from __future__ import annotations

import ctypes
import time
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from backends.native.ir import Builder, module_text
from backends.native.shared import compile_text
from river.classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.batch import Batch
    from backends.native.ingest.code import Parser
    from backends.native.operator import NativeOperator

ROOM: Final = 1024
"""Rows of a strip, at most."""

_WORDS: Final = {
    name: i
    for i, name in enumerate(
        ("parse", "state", "at", "row", "doubt", "size", "clock", "steps", "rows", "step", "left", "first")
    )
}
"""What the loop is told, and tells: places in a record of words. From `first` on there are those of the steps."""

_STEP: Final = {"fire": 0, "context": 1, "columns": 2, "nanoseconds": 3}
"""The words of a step."""

_DONE, _DOUBTS, _ENDED = range(3)
"""How the loop ends: with the text; with rows that it leaves to the general reader; with the firings of a step."""

_NAME: Final = "strips"


@frozen(eq=False)
class Step:
    """An operator that is fired on each strip, by a handler of its items; `batch`: the columns that it gets, of `ROOM` rows."""

    native: NativeOperator
    handler: str
    batch: Batch


@frozen
class Halt:
    """Why a loop ends before the text. `step`: whose firings ended at `row`; None: the general reader has to read some rows."""

    step: int | None = None
    row: int = 0


class StripLoop:
    """The loop of one thread, for texts of a form; `steps` fire one after the other.

    `rows`: on which all steps have fired, `seconds`: of each step, both since `begin`.
    """

    def __init__(self, parser: Parser, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.rows = 0
        self.seconds = [0.0] * len(steps)
        self._parser = parser
        self._run = loop()
        self._words = words = (ctypes.c_int64 * (_WORDS["first"] + len(_STEP) * len(steps)))()
        self._tables = [(ctypes.c_int64 * len(step.batch.addresses))(*step.batch.addresses) for step in steps]
        for name in ("at", "row", "doubt"):
            words[_WORDS[name]] = parser.words[name]
        words[_WORDS["clock"]] = _clock()
        words[_WORDS["steps"]] = len(steps)

    def begin(self) -> None:
        """What follows is counted anew. Code that is better than what there was before is called from here on."""
        words = self._words
        self.rows, self.seconds = 0, [0.0] * len(self.steps)
        words[_WORDS["parse"]] = self._parser.code.entry("ingest_parse")
        for at, step, table in zip(self._places, self.steps, self._tables, strict=True):
            words[at + _STEP["fire"]], words[at + _STEP["context"]] = step.native.entry(step.handler)
            words[at + _STEP["columns"]] = ctypes.addressof(table)

    @property
    def _places(self) -> range:
        """Where the words of each step begin."""
        return range(_WORDS["first"], len(self._words), len(_STEP))

    def run(self, state: Any, size: int) -> Halt | None:
        """Goes on with a text of so many bytes, of which `state` says how far it has been parsed; why it ends before."""
        words, places = self._words, self._places
        words[_WORDS["state"]], words[_WORDS["size"]] = ctypes.addressof(state), size
        words[_WORDS["rows"]] = 0
        for at in places:
            words[at + _STEP["nanoseconds"]] = 0
        began = time.perf_counter()
        how = self._run(ctypes.addressof(words))
        parsing = time.perf_counter() - began
        self.rows += words[_WORDS["rows"]]
        for i, (at, step) in enumerate(zip(places, self.steps, strict=True)):
            seconds = words[at + _STEP["nanoseconds"]] * 1e-9
            self.seconds[i] += seconds
            step.native.code.ran(seconds)
            parsing -= seconds
        self._parser.code.ran(parsing)
        if how == _ENDED:
            return Halt(words[_WORDS["step"]], words[_WORDS["left"]] >> 2)
        return Halt() if how == _DOUBTS else None


@cache
def _clock() -> int:
    """The address of the function of the C library that tells the time."""
    return ctypes.cast(ctypes.CDLL(None).clock_gettime, ctypes.c_void_p).value or 0


@cache
def loop() -> Callable[[int], int]:
    """The machine code, which is the same for all programs; it is made once."""
    b = Builder()

    def place(base: str, at: int | str) -> str:
        return b.op(f"getelementptr inbounds i64, ptr {base}, i64 {at}")

    def read(base: str, at: int, kind: str = "i64") -> str:
        return b.op(f"load {kind}, ptr {place(base, at)}")

    word = {
        name: read("%words", at)
        for name, at in _WORDS.items()
        if name in ("at", "row", "doubt", "size", "steps")
    }
    called = {name: read("%words", _WORDS[name], "ptr") for name in ("parse", "state", "clock")}
    at, row, doubt = (place(called["state"], word[name]) for name in ("at", "row", "doubt"))
    time_, number, since = b.slot("[2 x i64]"), b.slot("i64"), b.slot("i64")

    def now() -> str:
        b.op(f"call i32 {called['clock']}(i32 {time.CLOCK_MONOTONIC}, ptr {time_})")
        seconds = b.op(f"mul i64 {read(time_, 0)}, 1000000000")
        return b.op(f"add i64 {seconds}, {read(time_, 1)}")

    def add(to: str, value: str) -> None:
        before = read(to, 0)
        b.do(f"store i64 {b.op(f'add i64 {before}, {value}')}, ptr {to}")

    b.at("strip")
    b.branch(b.op(f"icmp slt i64 {b.op(f'load i64, ptr {at}')}, {word['size']}"), "parse", "done")
    b.at("parse")
    b.do(f"store i64 0, ptr {row}")
    b.do(f"store i64 0, ptr {doubt}")
    b.do(f"call void {called['parse']}(ptr {called['state']})")
    b.branch(b.op(f"icmp ne i64 {b.op(f'load i64, ptr {doubt}')}, 0"), "doubts", "fire", rare=True)
    b.at("fire")
    rows = b.op(f"load i64, ptr {row}")
    all_ = b.op(f"shl i64 {rows}, 2")
    b.do(f"store i64 0, ptr {number}")
    b.do(f"store i64 {now()}, ptr {since}")
    b.at("next")
    step = b.op(f"load i64, ptr {number}")
    b.branch(b.op(f"icmp slt i64 {step}, {word['steps']}"), "step", "fired")
    b.at("step")
    here = place(place("%words", _WORDS["first"]), b.op(f"mul i64 {step}, {len(_STEP)}"))
    fire, context, columns = (read(here, _STEP[name], "ptr") for name in ("fire", "context", "columns"))
    left = b.op(f"call i64 {fire}(ptr {context}, ptr {columns}, i64 0, i64 {rows})")
    then = now()
    add(place(here, _STEP["nanoseconds"]), b.op(f"sub i64 {then}, {b.op(f'load i64, ptr {since}')}"))
    b.do(f"store i64 {then}, ptr {since}")
    b.branch(b.op(f"icmp ne i64 {left}, {all_}"), "ended", "good", rare=True)
    b.at("good")
    add(number, "1")
    b.go("next")
    b.at("fired")
    add(place("%words", _WORDS["rows"]), rows)
    b.go("strip")
    b.at("ended")
    b.do(f"store i64 {step}, ptr {place('%words', _WORDS['step'])}")
    b.do(f"store i64 {left}, ptr {place('%words', _WORDS['left'])}")
    b.end(f"ret i64 {_ENDED}")
    b.at("doubts")
    b.end(f"ret i64 {_DOUBTS}")
    b.at("done")
    b.end(f"ret i64 {_DONE}")
    made = b.finish(_NAME, f"define i64 @{_NAME}(ptr %words) nounwind")
    code = compile_text(module_text([made.text]), (_NAME,))
    return code.function(_NAME, (ctypes.c_void_p,), ctypes.c_int64)


__all__ = ["ROOM", "Halt", "Step", "StripLoop", "loop"]
