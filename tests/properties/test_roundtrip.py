"""The two laws of canonical text: `parse(pretty(tree)) == tree`, and canonical text prints as itself."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from river.il import parse as il
from river.il import program as p
from river.il.pretty import pretty as pretty_program
from river.lang.parse import parse_block, parse_expr, parse_operator, parse_type
from river.lang.pretty import pretty
from river.source import Source
from river.testing import syntax_strategies as trees

LAW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@LAW
@given(trees.types(3))
def test_types(tree):
    text = pretty(tree)
    assert parse_type(Source("<type>", text)) == tree
    assert pretty(parse_type(Source("<type>", text))) == text


@LAW
@given(trees.expressions(3))
def test_expressions(tree):
    text = pretty(tree)
    assert parse_expr(Source("<expr>", text)) == tree
    assert pretty(parse_expr(Source("<expr>", text))) == text


@LAW
@given(trees.blocks())
def test_blocks(tree):
    assert parse_block(Source("<block>", pretty(tree))) == tree


@LAW
@given(trees.operator_definitions)
def test_operators(tree):
    assert parse_operator(Source("<operator>", pretty(tree))) == tree


@LAW
@given(trees.programs)
def test_programs(program):
    text = pretty_program(program)
    again = il.parse(Source("<program>", text))
    assert again == program
    assert pretty_program(again) == text


@LAW
@given(trees.declarations, st.sampled_from([1, 20, 60, 10_000]))
def test_the_width_of_lines_changes_nothing(decl, width):
    program = p.Program((decl,))
    assert il.parse(Source("<program>", pretty_program(program, width))) == program


@LAW
@given(trees.expressions(3))
def test_expressions_may_stand_on_narrow_lines(tree):
    assert parse_expr(Source("<expr>", pretty(tree, 1))) == tree
