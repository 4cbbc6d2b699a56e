from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from river.classes import fields
from river.driver import compile_source, read_source
from river.il import trees
from river.lang import syntax, typed
from river.lang import trees as checked
from river.plugins import frontend

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS = Path(__file__).parents[1] / "bench" / "programs"


def every(value: object, kind: type) -> list[object]:
    """All nodes that a value is or holds, by all fields of all of them."""
    if isinstance(value, tuple):
        return [node for each in value for node in every(each, kind)]
    if not isinstance(value, kind):
        return []
    if isinstance(value, typed.Literal):
        return [value]
    return [value, *(node for each in fields(type(value)) for node in every(getattr(value, each.name), kind))]


def by_children(node: syntax.Node) -> list[object]:
    return [node, *(each for child in trees.children(node) for each in by_children(child))]


def same(left: Sequence[object], right: Sequence[object]) -> bool:
    return [id(each) for each in left] == [id(each) for each in right]


def test_walks_find_every_node_in_the_order_of_the_text():
    language = frontend("sawzall")
    source = read_source(str(PROGRAMS / "shop_report.szl"))
    ast = language.parse(source)
    program = language.check(ast)
    for tree in (ast, program, *language.lower(program).decls):
        assert same(list(trees.walk(tree)), every(tree, syntax.Node))
        assert same(by_children(tree), every(tree, syntax.Node))


def test_walks_of_checked_trees_find_every_node_once():
    graph = compile_source(read_source(str(PROGRAMS / "request_counts.cql"))).graph
    for operator in (each.operator for each in graph.instances):
        found = list(checked.nodes(operator))
        assert same(found, every(operator, typed.Node))
        assert same(list(checked.nodes((operator, operator))), [*found, *found])
