"""An equi-join of two streams within 60 seconds in Bytewax; prints the seconds of the processor that it took.

Run: python tests/bench/peers/bytewax_join.py BOTH ANSWER (bench_relations.py does)
"""

from __future__ import annotations

import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.connectors.files import FileSink, FileSource
from bytewax.dataflow import Dataflow
from bytewax.operators import StatefulLogic
from bytewax.testing import run_main

BOTH, ANSWER = map(Path, sys.argv[1:])
SPAN = 60


class Join(StatefulLogic[Any, Any, Any]):
    """The rows of a key, of both sides; what is too old goes when the other side asks for it."""

    def __init__(self, state: Any) -> None:
        self.sides: Any = {"l": deque(), "r": deque()}

    def on_item(self, value: Any) -> tuple[Any, bool]:
        ts, side, k, row = value
        others = self.sides["r" if side == "l" else "l"]
        while others and others[0][0] < ts - SPAN:
            others.popleft()
        self.sides[side].append((ts, row))
        if side == "l":
            return [f"{ts},{k},{row},{other}" for _, other in others], StatefulLogic.RETAIN
        return [f"{ts},{k},{other},{row}" for _, other in others], StatefulLogic.RETAIN

    def snapshot(self) -> Any:
        return None


def parsed(line: str) -> tuple[str, Any]:
    """The key, and a row."""
    ts, side, k, row = line.split(",")
    return k, (int(ts), side, k, row)


def text(pair: tuple[str, str]) -> tuple[str, str]:
    """A pair as a line of the one file."""
    return "", pair[1]


began = time.process_time()
flow = Dataflow("join")
rows = op.map("parse", op.input("in", flow, FileSource(BOTH, batch_size=1000)), parsed)
op.output("out", op.map("text", op.stateful("join", rows, Join), text), FileSink(ANSWER))
run_main(flow)
found = ANSWER.read_text()
print(time.process_time() - began)
ANSWER.write_text("ts,k,a,b\n" + found)
