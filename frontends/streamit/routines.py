"""Operations that the operator language has not: of complex numbers, and of the random generator of the original's library.

Each is a function of the operator language; those that the code of a graph may use have their values here, too. Both round
after each operation of 32 bits, in the same order.
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

COMPLEX = (
    "add",
    "sub",
    "mul",
    "div",
    "neg",
    "eq",
    "abs",
    "arg",
    "exp",
    "log",
    "sqrt",
    "sin",
    "cos",
    "sinh",
    "cosh",
    "text",
)
ROUTINES = (*(f"complex.{name}" for name in COMPLEX), "random.next", "random.value")
"""Their names as operations; with `_` in place of the point, those of the functions in `TEXT`."""

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
fn complex_log(a: {re: f32, im: f32}) -> {re: f32, im: f32} {
  return {re: log(sqrt(a.re * a.re + a.im * a.im)), im: atan2(a.im, a.re)};
}
fn complex_sin(a: {re: f32, im: f32}) -> {re: f32, im: f32} {
  return {re: sin(a.re) * cosh(a.im), im: cos(a.re) * sinh(a.im)};
}
fn complex_cos(a: {re: f32, im: f32}) -> {re: f32, im: f32} {
  return {re: cos(a.re) * cosh(a.im), im: -(sin(a.re) * sinh(a.im))};
}
fn complex_sinh(a: {re: f32, im: f32}) -> {re: f32, im: f32} {
  return {re: sinh(a.re) * cos(a.im), im: cosh(a.re) * sin(a.im)};
}
fn complex_cosh(a: {re: f32, im: f32}) -> {re: f32, im: f32} {
  return {re: cosh(a.re) * cos(a.im), im: sinh(a.re) * sin(a.im)};
}
fn complex_sqrt(a: {re: f32, im: f32}) -> {re: f32, im: f32} {
  let size = sqrt(sqrt(a.re * a.re + a.im * a.im));
  let angle = 0.5 * atan2(a.im, a.re);
  return {re: size * cos(angle), im: size * sin(angle)};
}
fn complex_text(a: {re: f32, im: f32}) -> string {
  let im = string(a.im);
  return string(a.re) + (if starts_with(im, "-") { im } else { "+" + im }) + "i";
}
fn random_next(seed: i64) -> i64 {
  var next = seed;
  for _ in 0..2 { next = (next *% 25214903917 +% 11) & 281474976710655; }
  return next;
}
fn random_value(seed: i64) -> f32 {
  let one = (seed *% 25214903917 +% 11) & 281474976710655;
  let two = (one *% 25214903917 +% 11) & 281474976710655;
  return f32(f64(((one >> 22) << 27) + (two >> 21)) / 9007199254740992.0);
}
"""
"""What they mean. A random number is of 53 bits, of which two steps of the generator give 26 and 27; it rounds to a float."""

FIRST_SEED = 1182736490827
"""With what the original's library begins."""


def first_state(number: int, seed: int | None) -> int:
    """The first state of the generator of a filter, which is the `number`-th of the graph that has one, from 0.

    Without `seed` the first one has the state with which the original's library begins.
    """
    if seed is None and number == 0:
        return FIRST_SEED
    mixed = ((FIRST_SEED if seed is None else seed) + (number + 1) * 0x9E3779B97F4A7C15) % (1 << 64)
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % (1 << 64)
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % (1 << 64)
    return (mixed ^ mixed >> 31) % (1 << 48)


def routines(names: Mapping[str, str], used: Iterable[s.Node]) -> list[s.Fn]:
    """Those functions that are called in `used`, under the names that stand for the operations."""
    called = {node.function for body in used for node in walk(body) if isinstance(node, s.Call)}
    wanted = {op.replace(".", "_"): name for op, name in names.items() if name in called}
    if not wanted:
        return []
    from river.il.parse import parse

    decls = parse(Source("<routines>", TEXT.lstrip())).decls
    return [
        evolve(decl, name=wanted[decl.name])
        for decl in decls
        if isinstance(decl, s.Fn) and decl.name in wanted
    ]


def meaning(operation: str, values: Sequence[Any]) -> Any:
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
        case "log":
            return _f("log", _f("sqrt", _size(a, b))), _f("atan2", b, a)
        case "sin":
            return _f("*", _f("sin", a), _f("cosh", b)), _f("*", _f("cos", a), _f("sinh", b))
        case "cos":
            return _f("*", _f("cos", a), _f("cosh", b)), -_f("*", _f("sin", a), _f("sinh", b))
        case "sinh":
            return _f("*", _f("sinh", a), _f("cos", b)), _f("*", _f("cosh", a), _f("sin", b))
        case "cosh":
            return _f("*", _f("cosh", a), _f("cos", b)), _f("*", _f("sinh", a), _f("sin", b))
        case "sqrt":
            size, angle = _f("sqrt", _f("sqrt", _size(a, b))), _f("*", 0.5, _f("atan2", b, a))
            return _f("*", size, _f("cos", angle)), _f("*", size, _f("sin", angle))
        case "text":
            re, im = (OPERATIONS["string"].meaning((t.F32,), t.STRING)(part) for part in (a, b))
            return f"{re}{im}i" if im.startswith("-") else f"{re}+{im}i"
        case _:
            raise AssertionError(operation)


def _size(a: float, b: float) -> float:
    return _f("+", _f("*", a, a), _f("*", b, b))


def _f(operation: str, *values: float) -> float:
    """An operation of floats."""
    return OPERATIONS[operation].meaning((t.F32,) * len(values), t.F32)(*values)
