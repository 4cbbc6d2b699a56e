"""Operations of complex numbers: as functions of the operator language, and their values while the graph is made.

Both round after each operation of 32 bits, in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from river.classes import evolve
from river.il.trees import walk
from river.lang import syntax as s
from river.lang import types as t
from river.lang.operations import OPERATIONS
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

COMPLEX = ("add", "sub", "mul", "div", "neg", "eq", "abs", "arg", "exp", "sqrt")
"""What stands behind `complex.` in operations."""

TEXT = """
river 1;
fn complex_add(a: {re: f32, im: f32}, b: {re: f32, im: f32}) -> {re: f32, im: f32} {
  return {re: a.re + b.re, im: a.im + b.im};
}
fn complex_sub(a: {re: f32, im: f32}, b: {re: f32, im: f32}) -> {re: f32, im: f32} {
  return {re: a.re - b.re, im: a.im - b.im};
}
fn complex_mul(a: {re: f32, im: f32}, b: {re: f32, im: f32}) -> {re: f32, im: f32} {
  return {re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re};
}
fn complex_div(a: {re: f32, im: f32}, b: {re: f32, im: f32}) -> {re: f32, im: f32} {
  let size = b.re * b.re + b.im * b.im;
  return {re: (a.re * b.re + a.im * b.im) / size, im: (a.im * b.re - a.re * b.im) / size};
}
fn complex_neg(a: {re: f32, im: f32}) -> {re: f32, im: f32} {
  return {re: -a.re, im: -a.im};
}
fn complex_eq(a: {re: f32, im: f32}, b: {re: f32, im: f32}) -> bool {
  return a.re == b.re and a.im == b.im;
}
fn complex_abs(a: {re: f32, im: f32}) -> f32 {
  return sqrt(a.re * a.re + a.im * a.im);
}
fn complex_arg(a: {re: f32, im: f32}) -> f32 {
  return atan2(a.im, a.re);
}
fn complex_exp(a: {re: f32, im: f32}) -> {re: f32, im: f32} {
  let size = exp(a.re);
  return {re: size * cos(a.im), im: size * sin(a.im)};
}
fn complex_sqrt(a: {re: f32, im: f32}) -> {re: f32, im: f32} {
  let size = sqrt(sqrt(a.re * a.re + a.im * a.im));
  let angle = 0.5 * atan2(a.im, a.re);
  return {re: size * cos(angle), im: size * sin(angle)};
}
"""
"""What they mean."""


def complex_functions(names: Mapping[str, str], used: Iterable[s.Node]) -> list[s.Fn]:
    """Those functions that are called in `used`, under the names that stand for the operations."""
    called = {node.function for body in used for node in walk(body) if isinstance(node, s.Call)}
    wanted = {f"complex_{op.removeprefix('complex.')}": name for op, name in names.items() if name in called}
    if not wanted:
        return []
    from river.il.parse import parse

    decls = parse(Source("<complex>", TEXT.lstrip())).decls
    return [
        evolve(decl, name=wanted[decl.name])
        for decl in decls
        if isinstance(decl, s.Fn) and decl.name in wanted
    ]


def complex_meaning(operation: str, values: Sequence[Any]) -> Any:
    """What an operation makes of complex numbers, which are pairs."""
    (a, b), (c, d) = values[0], values[1] if len(values) > 1 else (0.0, 0.0)
    match operation.removeprefix("complex."):
        case "add":
            return _f("+", a, c), _f("+", b, d)
        case "sub":
            return _f("-", a, c), _f("-", b, d)
        case "mul":
            return _f("-", _f("*", a, c), _f("*", b, d)), _f("+", _f("*", a, d), _f("*", b, c))
        case "div":
            size = _size(c, d)
            re = _f("+", _f("*", a, c), _f("*", b, d))
            im = _f("-", _f("*", b, c), _f("*", a, d))
            return _f("/", re, size), _f("/", im, size)
        case "neg":
            return -a, -b
        case "eq":
            return a == c and b == d
        case "abs":
            return _f("sqrt", _size(a, b))
        case "arg":
            return _f("atan2", b, a)
        case "exp":
            size = _f("exp", a)
            return _f("*", size, _f("cos", b)), _f("*", size, _f("sin", b))
        case "sqrt":
            size, angle = _f("sqrt", _f("sqrt", _size(a, b))), _f("*", 0.5, _f("atan2", b, a))
            return _f("*", size, _f("cos", angle)), _f("*", size, _f("sin", angle))
        case _:
            raise AssertionError(operation)


def _size(a: float, b: float) -> float:
    return _f("+", _f("*", a, a), _f("*", b, b))


def _f(operation: str, *values: float) -> float:
    """An operation of floats."""
    return OPERATIONS[operation].meaning((t.F32,) * len(values), t.F32)(*values)
