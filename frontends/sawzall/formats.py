"""`format("... %d ...", ...)`: a format that is known is a sum of texts, another one is taken apart in the run."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from frontends.sawzall import conversions
from frontends.sawzall import typed as z
from frontends.sawzall.operations import PLACE, named, shown
from frontends.sawzall.types import FINGERPRINT, Recursive, plain, spelled
from river.lang import syntax as s
from river.lang import types as t
from river.lang.operations.text import form_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from frontends.sawzall.expressions import Expressions
    from river.source import Span

NUMERALS = "diouxXeEfgG"
"""The places of a format that take a number, whose form is that of C."""


VERBS: Mapping[str, tuple[t.Type, ...]] = MappingProxyType({
    **dict.fromkeys("dixXouck", (t.I64, t.U64)), **dict.fromkeys("eEfgG", (t.F64,)),
    "s": (t.STRING,), "q": (t.STRING,), "b": (t.BOOL,), "t": (t.TIME,), "p": (FINGERPRINT,), "v": (),
})  # fmt: skip
"""The places of a format, and the types that they take."""


def formatting(checker: Expressions, args: tuple[s.Argument, ...], span: Span | None) -> z.Expr:
    """What `format`, `file` and `proc` behind a table say: a format and its values."""
    if not args:
        raise checker.error("sawzall-format", "there is no format", span)
    return format_of_text(checker, args[0], list(args[1:]), span)


def format_of_text(
    checker: Expressions, pattern: s.Argument, args: list[s.Argument], span: Span | None
) -> z.Expr:
    """`format("... %d ...", ...)` as a sum of strings."""
    said = checker.check(pattern, t.STRING)
    form = known_text(checker, said)
    if form is None:
        return format_of_data(checker, said, args, span)
    rest = iter(args)
    found: list[z.Expr] = []
    for place in re.finditer(r"[^%]+|%([-+ 0#]*)(\d*)(\.\d*)?(.?)", form, re.DOTALL):
        flags, width, precision, verb = place.groups()
        if verb is None or place[0] == "%%":
            found.append(z.Constant(t.STRING, "%" if verb else place[0], span=pattern.span))
            continue
        arg = next(rest, None)
        if arg is None:
            raise checker.error("sawzall-format", f"no value for `{place[0]}`", span)
        if len(width) > 2 or len(precision or "") > 3:
            message, hint = (
                f"`{place[0]}` is too wide",
                "at most 99 characters, and 99 digits behind the point",
            )
            raise checker.error("sawzall-format", message, pattern.span, hint)
        text = formatted(checker, place[0], checker.infer(arg) if verb == "T" else bare(checker, arg))
        if precision and verb in "sq":
            zero, most = (z.Constant(t.I64, n) for n in (0, int(precision[1:] or "0")))
            text = z.Slice(t.STRING, text, zero, most, span=arg.span)
        if width and verb not in NUMERALS:
            blanks = z.Constant(t.STRING, " " * int(width))
            text = z.Apply(
                t.STRING, "pad right" if "-" in flags else "pad left", (text, blanks), span=arg.span
            )
        found.append(text)
    if next(rest, None) is not None:
        raise checker.error("sawzall-format", "there are more values than places for them", span)
    whole: z.Expr = z.Constant(t.STRING, "", span=span)
    for i, part in enumerate(found):
        whole = part if i == 0 else z.Apply(t.STRING, "+", (whole, part), span=span)
    return whole


def known_text(checker: Expressions, node: z.Expr) -> str | None:
    """A text that is made of literals and of static values that are, if it is."""
    match node:
        case z.Constant(t.STRING, str() as value):
            return value
        case z.Read(_, variable) if (value := checker.static(variable)) is not None:
            return known_text(checker, value)
        case z.Apply(_, "+", (left, right)):
            first, second = known_text(checker, left), known_text(checker, right)
            return None if first is None or second is None else first + second
        case _:
            return None


def bare(checker: Expressions, arg: s.Argument) -> z.Expr:
    """A value without the tags of tuples."""
    node = conversions.opened(checker, checker.infer(arg))
    return conversions.shaped(checker, node, plain(node.type))


def format_of_data(checker: Expressions, form: z.Expr, args: list[s.Argument], span: Span | None) -> z.Expr:
    """A format that is not known before the run: of each place is asked which of those it is that its value may have."""
    nodes = [bare(checker, arg) for arg in args]
    kinds = [
        "".join(verb for verb, types in VERBS.items() if (shown(n.type) if verb == "v" else n.type in types))
        for n in nodes
    ]
    letters = z.ArrayOf(t.List(t.STRING), tuple(z.Constant(t.STRING, f"{each}T") for each in kinds))
    places, whole = checker.temporary("places", t.List(PLACE)), checker.temporary("text", t.STRING)
    asked = z.Apply(t.List(PLACE), "places of a format", (form, letters), span=form.span)
    body: list[z.Stmt] = [
        z.Declare(places, asked, needed=True, span=span),
        z.Declare(whole, z.Constant(t.STRING, "")),
    ]

    def add(text: z.Expr) -> None:
        longer = z.Apply(t.STRING, "+", (z.Read(t.STRING, whole), text))
        body.append(z.Assign(z.Read(t.STRING, whole), longer))

    for i, (node, verbs) in enumerate(zip(nodes, kinds, strict=True)):
        value, place, text = (
            checker.temporary("value", node.type), checker.temporary("place", PLACE), checker.temporary("part", t.STRING),
        )  # fmt: skip
        found = z.Item(PLACE, z.Read(t.List(PLACE), places), z.Constant(t.I64, i), span=span)
        body += [
            z.Declare(value, node, needed=True, span=span),
            z.Declare(place, found, needed=True),
            z.Declare(text, z.Constant(t.STRING, "")),
            *placed(checker, z.Read(node.type, value, span=node.span), z.Read(PLACE, place), text, verbs),
        ]
        add(z.Field(t.STRING, z.Read(PLACE, place), "before"))
        add(z.Read(t.STRING, text))
    last = z.Item(PLACE, z.Read(t.List(PLACE), places), z.Constant(t.I64, len(nodes)), span=span)
    add(z.Field(t.STRING, last, "before"))
    return z.StatementValue(t.STRING, (*body, z.Result(z.Read(t.STRING, whole), span=span)), span=span)


def placed(checker: Expressions, value: z.Expr, place: z.Expr, text: int, verbs: str) -> tuple[z.Stmt, ...]:
    """The statements that put a value into the variable `text` as a place says that may have one of `verbs`."""
    made = z.Read(t.STRING, text)
    verb, blanks, most = (
        z.Field(type_, place, name) for name, type_ in PLACE.fields if name in ("verb", "blanks", "most")
    )
    cut = z.Slice(t.STRING, made, z.Constant(t.I64, 0), most)
    left, right = (z.Apply(t.STRING, f"pad {side}", (made, blanks)) for side in ("left", "right"))
    wide: tuple[z.Stmt, ...] = (
        z.If(z.Field(t.BOOL, place, "left"), (z.Assign(made, right),), (z.Assign(made, left),)),
    )
    asked: tuple[z.Stmt, ...] = ()
    if set(verbs) & set(NUMERALS):
        number = z.Apply(t.STRING, "format number", (z.Field(t.STRING, place, "number"), value))
        asked = (z.Assign(made, number),)
    for letter in (*(each for each in verbs if each not in NUMERALS), "T"):
        put: tuple[z.Stmt, ...] = (z.Assign(made, formatted(checker, f"%{letter}", value)),)
        if letter in "sq":
            there = z.Apply(t.BOOL, ">=", (most, z.Constant(t.I64, 0)))
            put = (*put, z.If(there, (z.Assign(made, cut),)))
        is_it = z.Apply(t.BOOL, "==", (verb, z.Constant(t.STRING, letter)))
        asked = (z.If(is_it, (*put, *wide), asked),)
    return asked


def type_text(checker: Expressions, type_: t.Type, *, expand: bool = False) -> str:
    """A type as `%T` shows it: tuples by their names, if the program gives them one, but for the first with `expand`."""
    if expand and isinstance(type_, Recursive):
        type_ = checker.names.recursive[type_.number]
    return spelled(type_, lambda each: None if expand and each == type_ else checker.names.name_of(each))


def formatted(checker: Expressions, part: str, node: z.Expr) -> z.Expr:
    """One value in a format, before it is filled up to its width."""
    verb, arg = part[-1], node
    if verb == "T":
        return z.Constant(t.STRING, type_text(checker, node.type, expand="#" in part), span=arg.span)
    if verb not in VERBS:
        hint = "places are %d %i %o %u %x %X %e %f %g %E %G %s %q %c %k %b %p %t %T, %v for anything, and %%"
        raise checker.error("sawzall-format", f"`{part}` is no place for a value", arg.span, hint)
    if not (shown(node.type) if verb == "v" else node.type in VERBS[verb]):
        fits = next((f"`%{v}`" for v, types in VERBS.items() if node.type in types), "`%v`")
        hint = (
            f"{fits} does"
            if shown(node.type)
            else 'write it as text: `%s` of `string(b)`, or of `string(b, "hex")`'
        )
        raise checker.error(
            "sawzall-format", f"`{part}` does not take `{spelled(node.type)}`", arg.span, hint
        )
    if verb in NUMERALS and part not in ("%d", "%i"):
        form = form_of(part, node.type)
        if form is None:
            message = f"`{part}` is no place for a value"
            raise checker.error("sawzall-format", message, arg.span, "leave `#` out")
        return z.Apply(t.STRING, "format number", (z.Constant(t.STRING, form), node), span=arg.span)
    match verb:
        case "s":
            return node
        case "q":
            return z.Apply(t.STRING, "quote", (node,), span=arg.span)
        case "c" | "k":
            number = node if node.type == t.I64 else z.Apply(t.I64, "int:u64", (node,), span=arg.span)
            letter = z.Apply(t.STRING, "character", (number,), span=arg.span)
            return letter if verb == "c" else z.Apply(t.STRING, "quoted character", (letter,), span=arg.span)
        case "v" if node.type == t.STRING:
            return node
        case _:
            text = z.Apply(t.STRING, named("string", (node.type,)), (node,), span=arg.span)
            if verb != "p":
                return text
            last = z.Constant(t.I64, 18)
            return z.Slice(t.STRING, text, z.Constant(t.I64, 0), last, span=arg.span)
