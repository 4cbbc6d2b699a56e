"""Types as a program writes them: names, tuples with tags, types of packages, types that contain themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.sawzall import syntax as a
from frontends.sawzall import typed as z
from frontends.sawzall.names import Known
from frontends.sawzall.operations import named
from frontends.sawzall.types import BASIC, PACKED, Proto, Recursive, plain, spelled
from river.classes import evolve
from river.diagnostics import closest
from river.il.trees import walk
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from frontends.sawzall.check import Checker
    from river.source import Span


def resolved(checker: Checker, expr: a.TypeExpr, *, inside: bool = False) -> t.Type:
    """As `type`, however large."""
    match expr:
        case s.TypeName("list", (item,)) if not isinstance(item, s.Expr):
            return t.List(resolved(checker, item))
        case s.TypeName("map", (key, value)) if not isinstance(key, s.Expr) and not isinstance(value, s.Expr):
            found = plain(resolved(checker, key))
            if not t.is_key(found) or t.contains(found, Recursive):
                message = f"`{spelled(found)}` cannot be the key of a map"
                raise checker.report.error("sawzall-key-type", message, key.span)
            return t.Map(found, resolved(checker, value))
        case s.TypeName(name) if "." in name:
            return member_type(checker, name, expr.span)
        case s.TypeName(name):
            found = checker.names.type(name)
            if found is not None:
                return found
            known = checker.names.known(name)
            if known is not None and known.what == "type":
                message = f"`{name}` is not complete here: a type has no part of its own kind"
                raise checker.report.error("sawzall-type", message, expr.span)
            if known is not None and known.what == "refused":
                raise checker.exprs.not_a_value(name, known.what, expr.span)
            names = [*BASIC, *(n for scope in checker.names.outer.scopes for n in scope)]
            raise checker.report.error(
                "sawzall-unknown-type",
                f"unknown type `{name}`",
                expr.span,
                checker.names.hints.get(name) or closest(name, names),
            )
        case s.OptionalType(inner) if inside:
            return t.Optional(resolved(checker, inner))
        case s.OptionalType():
            hint = "any value may be undefined: `?` is for fields of records that may be missing"
            raise checker.report.error("sawzall-optional", "only a field may be optional", expr.span, hint)
        case a.FunctionType(params, result):
            given = tuple(resolved(checker, param.type) for param in params)
            return t.Function(given, None if result is None else resolved(checker, result))
        case a.ProtoOf(name):
            found = resolved(checker, s.TypeName(name, span=expr.span))
            if not isinstance(found, t.Record):
                message = f"`{name}` is no tuple"
                raise checker.report.error("sawzall-type", message, expr.span)
            return numbered(checker, found, expr.span)
        case a.TupleType():
            if expr.members:
                hint = "`type T = {...};` gives it a name"
                raise checker.report.error(
                    "sawzall-type",
                    "only a tuple with a name has types and static values",
                    expr.span,
                    hint,
                )
            return tuple_type(checker, expr)
        case _:
            raise AssertionError(expr)  # the grammar has none of them


def tuple_type(checker: Checker, expr: a.TupleType) -> t.Record:
    """A tuple; a field without a name has one that the text cannot give."""
    fields: dict[str, t.Type] = {}
    for i, part in enumerate(expr.fields):
        name = part.name or f"_{i}"
        if name in fields:
            message = f"field `{name}` is declared twice"
            raise checker.report.error("sawzall-duplicate", message, part.span)
        fields[name] = resolved(checker, part.type, inside=True)
    found = t.Record(tuple(fields.items()))
    defaults = tags(checker, expr)
    if any(part.tag is not None for part in expr.fields) or expr.word == "parsedmessage":
        return tagged(checker, expr, found, defaults)
    return numbered(checker, found, expr.span) if expr.word == "proto" else found


def tagged(checker: Checker, expr: a.TupleType, found: t.Record, defaults: tuple[object, ...]) -> Proto:
    """A tuple whose fields have tags."""
    kinds = tuple(
        packed_kind(checker, type_, part.kind, part.span)
        for (_, type_), part in zip(found.fields, expr.fields, strict=True)
    )
    tags = tuple(part.tag or 0 for part in expr.fields)
    return Proto(found.fields, tags, kinds, defaults, expr.word == "parsedmessage")


def packed_kind(checker: Checker, type_: t.Type, kind: str | None, span: Span | None) -> str:
    """The type of a field in a protocol buffer; of arrays that of the items, of tuples none."""
    item = type_.item if isinstance(type_, t.List) else type_
    if isinstance(item, Proto) and kind is None:
        return ""
    if item not in PACKED:
        message = f"`{spelled(type_)}` has no form in a protocol buffer"
        if kind is not None and isinstance(item, Proto):
            message = f"a tuple is no `{kind}`"
        raise checker.report.error("sawzall-tag", message, span, "fields of tuples with tags have tags, too")
    kind = "bool" if kind == "boolean" else kind
    if kind is not None and kind not in PACKED[item]:
        hint = f"`{spelled(item)}` is one of {', '.join(PACKED[item])} there"
        raise checker.report.error("sawzall-tag", f"`{kind}` does not hold `{spelled(item)}`", span, hint)
    return kind or PACKED[item][0]


def numbered(checker: Checker, found: t.Record, span: Span | None) -> Proto:
    """`proto T`: a message whose fields have the numbers from 1 as tags."""
    if isinstance(found, Proto):
        return found
    fields = tuple(
        (name, numbered(checker, type_, span) if isinstance(type_, t.Record) else type_)
        for name, type_ in found.fields
    )
    kinds = tuple(packed_kind(checker, type_, None, span) for _, type_ in fields)
    return Proto(fields, tuple(range(1, len(fields) + 1)), kinds, (None,) * len(fields), message=True)


def tags(checker: Checker, expr: a.TupleType) -> tuple[object, ...]:
    """The values that fields have where they are not there, None if it is not said.

    Refused: tags that only some fields have, or that two fields share.
    """
    defaults: list[object] = []
    seen: dict[int, str | None] = {}
    for part in expr.fields:
        defaults.append(None)
        if part.tag is None:
            if part.value is not None:
                message = "a field without a tag has no value of its own"
                raise checker.report.error("sawzall-tag", message, part.value.span, "`name: T = value @ 1`")
            continue
        if part.name is None:
            raise checker.report.error("sawzall-tag", "a field without a name has no tag", part.span)
        if part.tag in seen:
            message = f"`{seen[part.tag]}` has the tag {part.tag}, too"
            raise checker.report.error("sawzall-tag", message, part.span)
        seen[part.tag] = part.name
        if part.value is not None:
            value = checker.exprs.check(part.value, checker.type(part.type))
            match value:
                case z.Constant():
                    defaults[-1] = value.value
                case z.Apply(_, operation, (z.Constant(_, str(text)),)) if operation == named(
                    "bytes", (t.STRING,)
                ):
                    defaults[-1] = text.encode()
                case _:
                    hint = "a literal is known"
                    checker.report.warn(
                        "sawzall-default", "this value is not known here, and ignored", value.span, hint
                    )
    bare = next((part for part in expr.fields if part.tag is None), None)
    if bare is not None and (seen or expr.word == "parsedmessage"):
        raise checker.report.error("sawzall-tag", "this field has no tag", bare.span, "all have one, or none")
    return tuple(defaults)


def parameter_type(checker: Checker, param: a.Param) -> t.Type:
    """The type of a parameter. Where it has no name, a word that is no type was meant as one."""
    match param.type:
        case s.TypeName(word, ()) if (
            param.unnamed
            and "." not in word
            and checker.names.type(word) is None
            and checker.names.known(word) is None
        ):
            near = closest(word, BASIC)
            hint = f"a parameter is written `{word}: int`, with its type" + (f"; or {near}" if near else "")
            raise checker.report.error("sawzall-unknown-type", f"unknown type `{word}`", param.span, hint)
        case type_:
            return checker.type(type_)


def member_type(checker: Checker, path: str, span: Span | None) -> t.Type:
    """`T.U`: a type that is declared in a tuple."""
    words = path.split(".")
    first = next((i for i in range(len(words), 1, -1) if checker.names.known(".".join(words[:i]))), 1)
    known = checker.names.known(".".join(words[:first]))  # the first words may be those of a package
    for name in words[first:]:
        members = {} if known is None or known.what != "type" else checker.names.members.get(known.index, {})
        known = members.get(name)
        if known is None:
            raise checker.report.error(
                "sawzall-unknown-type", f"unknown type `{path}`", span, closest(name, members)
            )
    if known is None or known.what != "type":
        raise checker.report.error("sawzall-unknown-type", f"`{path}` is no type", span)
    return checker.names.types[known.index]


def declare_type(checker: Checker, item: a.TypeDecl) -> None:
    """`type T = ...;`; what a tuple declares is known in it, and behind it as a part of `T`."""
    names = checker.names
    if isinstance(item.type, s.TypeName) and not item.type.args:
        known = names.known(item.type.name)
        if known is not None and known.what == "type":  # another name of it
            names.declare(item.name, known, item.span)
            return
    fields = evolve(item.type, members=()) if isinstance(item.type, a.TupleType) else item.type
    if names.type(item.name) is None and place_of(fields, item.name) is not None:
        declare_recursive(checker, item, fields)
        return
    if not isinstance(item.type, a.TupleType) or not item.type.members:
        found = checker.type(item.type)
        names.declare(item.name, Known("type", len(names.types)), item.span)
        if isinstance(item.type, a.FunctionType):
            checker.functional[len(names.types)] = item.type
        names.types.append(found)
        index = len(names.types) - 1
        with names.scope():
            for member in item.members:
                checker.statement(member)
            if item.members:
                names.members[index] = names.frame.scopes[-1]
        return
    own, later = fields, item.type.members
    with names.scope():
        nodes = (node for member in later for node in walk(member))
        inner = any(isinstance(member, a.TypeDecl) and member.name == item.name for member in later)
        if not inner and any(isinstance(node, s.TypeName) and node.name == item.name for node in nodes):
            for member in later:  # static functions of the tuple take it: the type is known before they are
                if isinstance(member, a.TypeDecl):
                    checker.statement(member)
            later = tuple(member for member in later if not isinstance(member, a.TypeDecl))
            names.declare(item.name, Known("type", len(names.types)), None)
            names.types.append(checker.type(own))
            index = len(names.types) - 1
            names.members[index] = names.frame.scopes[-1]  # those so far
        else:
            index = None
        for member in later:
            checker.statement(member)
        members = dict(names.frame.scopes[-1])
        if not inner:
            members.pop(item.name, None)
        if index is None:
            names.types.append(checker.type(own))
            index = len(names.types) - 1
    found = names.types[index]
    assert isinstance(found, t.Record)  # noqa: S101 - tuples are
    for name in members:
        if found.field(name) is not None:
            message = f"`{name}` is a field of the tuple, too"
            raise checker.report.error("sawzall-duplicate", message, item.span)
    names.members[index] = members
    names.declare(item.name, Known("type", index), item.span)


def declare_recursive(checker: Checker, item: a.TypeDecl, type_: a.TypeExpr) -> None:
    """`type T = ...;` that contains itself, in arrays and maps."""
    names, report = checker.names, checker.report
    direct = place_of(type_, item.name, directly=True)
    if direct is not None:
        message, hint = f"`{item.name}` contains itself", "in an array or a map it may"
        raise report.error("sawzall-recursive-type", message, direct.span or item.span, hint)
    if isinstance(item.type, a.TupleType) and item.type.members:
        message = f"`{item.name}` contains itself, and has types or static values of its own"
        raise report.error("sawzall-recursive-type", message, item.span, "declare these outside of it")
    own = Recursive(item.name, len(names.recursive))
    names.recursive.append(t.UNIT)
    names.types.append(own)
    names.declare(item.name, Known("type", len(names.types) - 1), item.span)
    content = names.recursive[own.number] = checker.type(type_)
    if t.contains(content, Proto, t.Function):
        what = "a protocol buffer" if t.contains(content, Proto) else "a function"
        message = f"`{item.name}` contains itself, and is {what}, or has one inside"
        raise report.error("sawzall-recursive-type", message, item.span, "keep that outside of it")


def place_of(type_: a.TypeExpr, name: str, *, directly: bool = False) -> s.TypeName | None:
    """Where a type names another one. `directly`: not in an array, a map or the type of a function."""
    match type_:
        case s.TypeName(found, ()):
            return type_ if found == name else None
        case a.TupleType(fields=fields):
            inner = [field.type for field in fields]
        case s.OptionalType(item):
            inner = [item]
        case s.TypeName() | a.FunctionType() if directly:
            inner = []
        case s.TypeName(_, args):
            inner = [arg for arg in args if not isinstance(arg, s.Expr)]
        case a.FunctionType(params, result):
            inner = [param.type for param in params] + ([] if result is None else [result])
        case _:
            inner = []
    places = (place_of(part, name, directly=directly) for part in inner)
    return next((place for place in places if place is not None), None)
