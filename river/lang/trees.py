"""Walks over checked trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from river.lang import typed

if TYPE_CHECKING:
    from collections.abc import Iterator


def children(node: typed.Node) -> Iterator[typed.Node]:
    """The nodes directly inside a node. A literal has none, however large its value."""
    if not isinstance(node, typed.Literal):
        for each in attrs.fields(type(node)):
            if each.name not in ("span", "type"):
                yield from _of(getattr(node, each.name))


def nodes(tree: typed.Node | tuple[typed.Node, ...]) -> Iterator[typed.Node]:
    """All nodes of a tree or of several, what is outside first. Functions that are called are not entered."""
    for node in _of(tree):
        yield node
        yield from nodes(tuple(children(node)))


def _of(value: object) -> Iterator[typed.Node]:
    """The nodes that a field holds."""
    match value:
        case typed.Node():
            yield value
        case tuple():
            for each in value:  # pyright: ignore[reportUnknownVariableType] - of any tree
                yield from _of(each)  # pyright: ignore[reportUnknownArgumentType]
        case _:
            pass
