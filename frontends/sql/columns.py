"""Columns in checked expressions, where `s0`, `s1` ... are the rows of the sources: which are read, and from where."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from river.classes import evolve, frozen
from river.il.trees import children, rebuild
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Mapping


@frozen
class Column:
    """Column `name` of source number `source`."""

    source: int
    name: str


def columns(expr: s.Node) -> set[Column]:
    """The columns of sources that a checked expression reads."""
    match expr:
        case s.Member(s.Name(name), column) if name[:1] == "s" and name[1:].isdigit():
            return {Column(int(name[1:]), column)}
        case _:
            return {column for child in children(expr) for column in columns(child)}


def sources(expr: s.Node) -> set[int]:
    """The sources that a checked expression reads."""
    return {column.source for column in columns(expr)}


def substitute(expr: s.Expr, places: Mapping[Column, s.Expr]) -> s.Expr:
    """A checked expression with its columns read from other places."""

    def rewrite(node: s.Node) -> s.Node:
        match node:
            case s.Member(s.Name(name), column) if name[:1] == "s" and name[1:].isdigit():
                found = places[Column(int(name[1:]), column)]
                return evolve(found, span=node.span)
            case _:
                return rebuild(node, rewrite)

    return cast("s.Expr", rewrite(expr))


def written_out(expr: s.Expr, row: str, places: Mapping[str, s.Expr]) -> s.Expr:
    """An expression with what stands in `places` for the fields of the row `row`."""

    def rewrite(node: s.Node) -> s.Node:
        match node:
            case s.Member(s.Name(name), field) if name == row:
                return places[field]
            case _:
                return rebuild(node, rewrite)

    return cast("s.Expr", rewrite(expr))
