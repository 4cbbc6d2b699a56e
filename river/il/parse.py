"""IL text to Program."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from river.diagnostics import Diagnostic, Rejected
from river.il import program as p
from river.lang import syntax as s
from river.lang.grammar import EXPR, LEXICAL, QUOTED_NAMES, STMT, TYPES, compose, module
from river.lang.parse import StmtBuilder
from river.source import Source, Span

if TYPE_CHECKING:
    from river.lang.lalr import Token, Tree
    from river.lang.parse import Args

IL = module("river.il", "il.lark")
PARSER = compose(LEXICAL, TYPES, EXPR, STMT, QUOTED_NAMES, IL, start=("program",))

VERSION = "1"

TemplateDecl = s.Template | s.Fn | p.TypeDecl


def parse(source: Source) -> p.Program:
    """The program that the text says, in the order of its text.

    Raises: Rejected with `il-version` or `syntax-*` diagnostics.
    """
    check_version(source)
    return p.Program(IlBuilder(source).build(PARSER.parse(source)))


def parse_part(source: Source, begin: int, end: int) -> tuple[p.Decl, ...]:
    """The declarations in a part of a text, behind its version, with their places in the whole of it. Raises: as `parse`."""
    version = check_version(source)
    before = "\n".join(" " * len(line) for line in source.text[version:begin].split("\n"))
    text = source.text[:version] + before + source.text[begin:end]
    return IlBuilder(source).build(PARSER.parse(Source(source.name, text)))


def parse_templates(source: Source) -> tuple[TemplateDecl, ...]:
    """The templates of a `.river` template file, with the types and functions that they use.

    Raises: as `parse`, and Rejected("il-template-file") for any other declaration.
    """
    declarations: list[TemplateDecl] = []
    wrong: list[Diagnostic] = []
    for decl in parse(source).decls:
        if isinstance(decl, TemplateDecl):
            declarations.append(decl)
        else:
            hint = "a template file holds templates, types and functions"
            message = "this belongs into a program, not into a template file"
            wrong.append(Diagnostic("il-template-file", message, decl.span, help=hint))
    if wrong:
        raise Rejected(wrong)
    return tuple(declarations)


_SKIP = re.compile(r"(?:[ \t\r\n\f]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_VERSION = re.compile(r"river\s+([^\s;]+)\s*;")


def check_version(source: Source) -> int:
    """Refuses a text of another version before its grammar matters; where the version ends. Raises: Rejected("il-version")."""
    skipped = _SKIP.match(source.text)
    start = skipped.end() if skipped else 0
    found = _VERSION.match(source.text, start)
    if found and found[1] == VERSION:
        return found.end()
    if found:
        message = f"this is River IL version {found[1]}; version {VERSION} is understood"
        span = Span(source, found.start(1), found.end(1))
    else:
        message = "the text does not begin with its version"
        span = Span(source, start, start)
    raise Rejected([Diagnostic("il-version", message, span, help=f"begin it with `river {VERSION};`")])


class IlBuilder(StmtBuilder):
    """`il.lark`."""

    def program(self, tree: Tree[Token], args: Args) -> tuple[p.Decl, ...]:
        return tuple(args[1:])

    def type_decl(self, tree: Tree[Token], args: Args) -> p.Decl:
        name, params, body = args
        return p.TypeDecl(str(name), params or (), body, span=self.span(tree))

    def input(self, tree: Tree[Token], args: Args) -> p.Decl:
        *annotations, name, kind, by = args
        return p.Input(str(name), kind, _text(by), tuple(annotations), span=self.span(tree))

    def output(self, tree: Tree[Token], args: Args) -> p.Decl:
        *annotations, name, kind, by, view = args
        return p.Output(str(name), kind, _text(by), view, tuple(annotations), span=self.span(tree))

    def view(self, tree: Tree[Token], args: Args) -> p.View:
        variable, function, leading = args
        return p.View(
            variable[1:], str(function), None if leading is None else int(leading, 0), span=self.span(tree)
        )

    def queue(self, tree: Tree[Token], args: Args) -> p.Decl:
        return p.Queue(str(args[0]), args[1], _text(args[2]), span=self.span(tree))

    def variable_decl(self, tree: Tree[Token], args: Args) -> p.Decl:
        return p.Variable(args[0][1:], args[1], args[2], span=self.span(tree))

    def result(self, tree: Tree[Token], args: Args) -> p.Decl:
        name, *parts = args
        return p.Result(name[1:], tuple(part[1:] for part in parts), span=self.span(tree))

    def combined(self, tree: Tree[Token], args: Args) -> p.Decl:
        name, *parts = args
        return p.Result(name[1:], tuple(part[1:] for part in parts), combined=True, span=self.span(tree))

    def lift(self, tree: Tree[Token], args: Args) -> p.Decl:
        name, operator, tag = args
        return p.Lift(str(name), str(operator), str(tag), span=self.span(tree))

    def instance(self, tree: Tree[Token], args: Args) -> p.Decl:
        name, template, *arguments = args
        given = tuple(a for a in arguments if a is not None)
        return p.Instance(str(name), template, given, span=self.span(tree))

    def generic(self, tree: Tree[Token], args: Args) -> str:
        return ".".join(args)

    def type_argument(self, tree: Tree[Token], args: Args) -> tuple[str, s.TemplateArg]:
        return str(args[0]), args[1]

    def value_argument(self, tree: Tree[Token], args: Args) -> tuple[str, s.TemplateArg]:
        return str(args[0]), args[1]

    def optional_type(self, tree: Tree[Token], args: Args) -> s.TypeExpr:
        if isinstance(args[0], s.FieldsArg):
            self._refuse_payload(args[0], self.span(tree))
        return super().optional_type(tree, args)

    def fields_arg(self, tree: Tree[Token], args: Args) -> s.FieldsArg | s.RecordType:
        """Fields when one of them has a payload, else a record type, which will do as fields."""
        items: list[Any] = args
        span = self.span(tree)
        if not any(isinstance(item, s.FieldArg) for item in items):
            return s.RecordType(tuple(items), span=span)
        fields: list[s.FieldArg] = []
        for item in items:
            match item:
                case s.FieldArg():
                    fields.append(item)
                case s.FieldType(name, kind):
                    fields.append(s.FieldArg(name, kind, span=item.span))
                case _:
                    hint = "a list of fields with payloads names each field"
                    self.report(
                        "syntax-payload", "this stands for fields without payload", item.span or span, hint
                    )
        return s.FieldsArg(tuple(fields), span=span)

    def field_payload(self, tree: Tree[Token], args: Args) -> s.FieldArg:
        return s.FieldArg(str(args[0]), args[1], args[2], span=self.span(tree))

    def _refuse_payload(self, fields: s.FieldsArg, span: Span) -> None:
        hint = "fields with payloads are the whole argument of a parameter `#F: fields`"
        self.report("syntax-payload", "a type has no payloads", fields.span or span, hint)

    def use(self, tree: Tree[Token], args: Args) -> p.Decl:
        *annotations, outs, name, ins = args
        return p.Use(outs, str(name), ins, tuple(annotations), span=self.span(tree))

    def annotation(self, tree: Tree[Token], args: Args) -> p.Annotation:
        name, *values = args
        return p.Annotation(str(name), tuple(v for v in values if v is not None), span=self.span(tree))

    def ends(self, tree: Tree[Token], args: Args) -> tuple[str, ...]:
        return tuple(str(a) for a in args if a is not None)


def _text(token: Token | None) -> str | None:
    return None if token is None else str(token)
