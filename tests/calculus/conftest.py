"""The running example of the paper, and the smallest program with a choice that matters."""

from __future__ import annotations

import pytest

from calculus import Firing, Op, Program


@pytest.fixture
def apples() -> Program:
    """River §2: count the volume of the trades in apples."""

    def select(trade, port, reads):
        return Firing((((trade,) if trade[0] == "AAPL" else ()),), ())

    def count(trade, port, reads):
        return Firing((), (reads[0] + trade[1],))

    return Program(
        inputs=("trades",),
        outputs=(),
        ops=(
            Op(("appleTrades",), (), "SelectApple", ("trades",), ()),
            Op((), ("volume",), "Count", ("appleTrades",), ("volume",)),
        ),
        functions={"SelectApple": select, "Count": count},
        initial={"volume": 0},
    )


@pytest.fixture
def race() -> Program:
    """Two operators that append their items to one shared variable."""

    def append(item, port, reads):
        return Firing((), ((*reads[0], item),))

    return Program(
        inputs=("a", "b"),
        outputs=(),
        ops=(Op((), ("log",), "A", ("a",), ("log",)), Op((), ("log",), "B", ("b",), ("log",))),
        functions={"A": append, "B": append},
        initial={"log": ()},
    )


@pytest.fixture
def relay() -> Program:
    """Two independent pipelines of two stages, each stage forwarding what it gets."""

    def forward(item, port, reads):
        return Firing(((item,),), ())

    stages = (("x0", "x1"), ("x1", "x2"), ("y0", "y1"), ("y1", "y2"))
    return Program(
        inputs=("x0", "y0"),
        outputs=("x2", "y2"),
        ops=tuple(Op((out,), (), "forward", (arrival,), ()) for arrival, out in stages),
        functions={"forward": forward},
        initial={},
    )
