"""`saw`, `sawn`, `sawzall` in the operator language. Each pattern is written where it is looked for: there it is a constant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.sawzall import typed as z
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from frontends.sawzall.values import Values

ZERO, ONE = s.Int(0), s.Int(1)
ENDLESS = z.Constant(t.I64, -1)
"""How many rounds `sawzall` goes."""
STRINGS = s.TypeName("list", (s.TypeName("string"),))


def saw(body: Values, expr: z.Saw) -> s.Expr:
    """The parts of a text that patterns find one behind the other; what is left of it goes to the places for that.

    They are none if all of the text is still there. In several rounds nothing is found as an empty part where the last part has
    ended. All patterns are known before the first is looked for.
    """
    rounds, text, *given = body.every((expr.rounds, expr.text, *expr.patterns))
    patterns = [
        body.regex(pattern)
        if isinstance(pattern, z.Constant)
        else body.kept(s.Call("regex", (value,), span=pattern.span), t.REGEX, "pattern")
        for pattern, value in zip(expr.patterns, given, strict=True)
    ]
    limit = None if expr.once or expr.rounds == ENDLESS else body.bound(rounds, t.I64, "rounds")
    found = body.begun("found", s.ListValue(()), STRINGS)
    rest, at = body.begun("rest", text), body.begun("at", ZERO)
    round_ = None if limit is None else body.begun("round", ZERO)
    last = None if limit == ONE or expr.once else body.begun("last", s.Unary("-", ONE))
    with body.loop("sawing") as loop, body.block() as inside:
        for i, (pattern, take) in enumerate(zip(patterns, expr.takes, strict=True)):
            if expr.once:
                _leave(body, expr, i, rest)
            ends = body.begun("ends", s.Call("re_find", (pattern, rest)))
            if last is not None:
                again = s.Binary("==", at, last)
                if limit is not None and not isinstance(limit, s.Int):
                    again = s.Binary("and", again, s.Binary("!=", limit, ONE))
                body.out.append(_beyond(pattern, ends, rest, at, again, body.needed(loop)))
            none = s.Binary("==", s.Call("len", (ends,)), ZERO)
            body.out.append(s.If(none, s.Block((s.Break(),))))
            body.out += _taken(take, found, rest, ends, body.unused("group"))
            end = s.Index(ends, ONE)
            body.out.append(s.Assign(at, s.Binary("+", at, end)))
            body.out.append(s.Assign(rest, _behind(rest, end)))
            if last is not None:
                body.out.append(s.Assign(last, at))
        if expr.once:
            _leave(body, expr, len(patterns), rest)
            body.out.append(s.Break())
        if round_ is not None:
            body.out.append(s.Assign(round_, s.Binary("+", round_, ONE)))
    more: s.Expr = s.Bool(value=True)
    if limit is not None and round_ is not None:
        more = s.Binary("<", round_, limit)
        if not isinstance(limit, s.Int):
            more = s.Binary("or", s.Binary("<", limit, ZERO), more)
    body.out.append(s.While(loop.written(), more, s.Block(tuple(inside))))
    if not expr.once:
        _leave(body, expr, len(patterns), rest)
    nothing = s.Binary("==", at, ZERO)
    body.out.append(s.If(nothing, s.Block((s.Do(s.Call("clear", (found,))),))))
    return found


def _leave(body: Values, expr: z.Saw, behind: int, rest: s.Name) -> None:
    """Writes what is left behind so many patterns to the places for it."""
    for number, place in expr.rests:
        if number == behind:
            body.stored(place, rest)


def _beyond(pattern: s.Expr, ends: s.Name, rest: s.Name, at: s.Name, again: s.Expr, loop: str) -> s.Stmt:
    """Looks further on while nothing is found where the last part has ended."""
    some = s.Binary(">", s.Call("len", (ends,)), ZERO)
    empty = s.Binary("and", some, s.Binary("==", s.Index(ends, ONE), ZERO))
    over = s.Binary("==", rest, s.String(""))
    steps = (
        s.If(over, s.Block((s.Break(loop),))),
        s.Assign(rest, _behind(rest, ONE)),
        s.Assign(at, s.Binary("+", at, ONE)),
        s.Assign(ends, s.Call("re_find", (pattern, rest))),
    )
    return s.While(None, s.Binary("and", empty, again), s.Block(steps))


def _taken(take: str, found: s.Name, rest: s.Name, ends: s.Name, group: str) -> list[s.Stmt]:
    """Keeps what a pattern has found: all of it, nothing, or its groups."""
    match take:
        case "whole":
            part = s.Slice(rest, s.Index(ends, ZERO), s.Index(ends, ONE))
            return [s.Do(s.Call("push", (found, part)))]
        case "submatch":
            number = s.Binary("*", s.Int(2), s.Name(group))
            low, high = s.Index(ends, number), s.Index(ends, s.Binary("+", number, ONE))
            part = s.IfExpr(s.Binary("<", low, ZERO), s.String(""), s.Slice(rest, low, high))
            groups = s.Call("div.trunc", (s.Call("len", (ends,)), s.Int(2)))
            kept = s.Do(s.Call("push", (found, part)))
            return [s.For(None, (group,), s.Range(ONE, groups), s.Block((kept,)))]
        case _:
            return []


def _behind(text: s.Name, low: s.Expr) -> s.Expr:
    """A text from an index on."""
    return s.Slice(text, low, s.Call("len", (text,)))
