"""What a text of Steps says. Types and expressions are River's own."""

from __future__ import annotations

from attrs import frozen

from river.lang import syntax as s


@frozen
class Source(s.Node):
    """`source prices: {symbol: string, price: float};`."""

    name: str
    type: s.RecordType


@frozen
class Keep(s.Node):
    """`keep price > 10;`."""

    condition: s.Expr


@frozen
class Map(s.Node):
    """`map {symbol: symbol, cents: price * 100};`."""

    row: s.Expr


@frozen
class Count(s.Node):
    """`count by symbol;`."""

    keys: tuple[s.Name, ...]


@frozen
class Sink(s.Node):
    """`into totals;`."""

    name: str


Step = Keep | Map | Count


@frozen
class Program(s.Node):
    """A pipeline."""

    source: Source
    steps: tuple[Step, ...]
    sink: Sink
