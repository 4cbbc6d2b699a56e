"""Declarations of protocol buffers: the text of a `.proto` file to declarations of Sawzall.

A message becomes the type of a `parsedmessage`, with what is declared in it as its members; an enumeration a type that is
`int`, and static values. What is used stands before its uses, whatever the order in the file. Services, options but for
defaults, extensions and reserved numbers say nothing of tuples, and are skipped.

A message that is inside of itself has no tuple of finite size: where a field is of a message that is not complete by then,
its values are the bytes of that message, which have the same form in a protocol buffer.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NoReturn

from frontends.sawzall import syntax as z
from frontends.sawzall.types import kept_name
from river.classes import define, field
from river.diagnostics import Diagnostic, Rejected, closest
from river.lang import syntax as s
from river.source import Span

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.source import Source

Path = tuple[str, ...]
"""The name of a type with those of the package and the messages that it is in."""

SCALARS: Mapping[str, str] = MappingProxyType({
    "double": "float", "float": "float", "bool": "bool", "string": "string", "bytes": "bytes",
    **dict.fromkeys(("int32", "int64", "sint32", "sint64", "sfixed32", "sfixed64"), "int"),
    **dict.fromkeys(("uint32", "uint64", "fixed32", "fixed64"), "uint"),
})  # fmt: skip
"""The types of Sawzall for those of protocol buffers."""


@define
class ProtoTypes:
    """What the files that are read so far declare: types by their whole names, and values of enumerations.

    `complete`: types whose declarations are written.
    """

    types: set[Path] = field(factory=set[Path])
    complete: set[Path] = field(factory=set[Path])
    values: dict[Path, Mapping[str, int]] = field(factory=dict[Path, "Mapping[str, int]"])


@define
class _Field:
    name: str
    type: str
    tag: int
    repeated: bool
    default: str | None
    span: Span
    group: _Message | None = None
    entry: tuple[str, str] | None = None  # of a map: the types of its keys and values


@define
class _Message:
    name: str
    span: Span
    fields: list[_Field] = field(factory=list[_Field])
    parts: list[_Message | _Enum] = field(factory=list["_Message | _Enum"])


@define
class _Enum:
    name: str
    span: Span
    values: list[tuple[str, int]] = field(factory=list[tuple[str, int]])


_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|([A-Za-z_][A-Za-z0-9_]*)"""
    r"""|((?:0[xX][0-9A-Fa-f]+)|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(.)""",
    re.DOTALL,
)


def imports(source: Source) -> tuple[tuple[str, Span], ...]:
    """The files that a file imports, and where it says so.

    Raises: Rejected("sawzall-proto").
    """
    return tuple(_Reader(source).file().imports)


def declarations(source: Source, known: ProtoTypes) -> tuple[z.Stmt, ...]:
    """What a file declares; `known` says what the files do that it imports, and grows by what this one does.

    Raises: Rejected("sawzall-proto").
    """
    reader = _Reader(source).file()
    package = tuple(reader.package.split(".")) if reader.package else ()
    _announce(reader.parts, package, known)
    writer = _Writer(known, package)
    found: list[z.Stmt] = []
    for part in writer.ordered(reader.parts, package):
        found += writer.statements(part, package)
        if package:
            name = ".".join((*package, part.name))
            found.append(z.TypeDecl(name, s.TypeName(part.name, span=part.span), span=part.span))
    return tuple(found)


def _announce(parts: list[_Message | _Enum], scope: Path, known: ProtoTypes) -> None:
    for part in parts:
        known.types.add((*scope, part.name))
        if isinstance(part, _Enum):
            known.values[*scope, part.name] = dict(part.values)
        else:
            groups = [each.group for each in part.fields if each.group is not None]
            _announce([*part.parts, *groups], (*scope, part.name), known)


@define
class _Reader:
    """Reads a file token by token."""

    source: Source
    package: str = ""
    imports: list[tuple[str, Span]] = field(factory=list["tuple[str, Span]"])
    parts: list[_Message | _Enum] = field(factory=list["_Message | _Enum"])
    tokens: list[re.Match[str]] = field(init=False)
    at: int = 0

    def __attrs_post_init__(self) -> None:
        """The tokens, without blanks and comments."""
        self.tokens = [found for found in _TOKEN.finditer(self.source.text) if found.lastindex is not None]

    # -- tokens

    @property
    def word(self) -> str:
        """The token that comes next, empty at the end."""
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def span(self) -> Span:
        """Where the token is that comes next."""
        end = len(self.source.text)
        found = self.tokens[self.at] if self.at < len(self.tokens) else None
        return Span(self.source, end, end) if found is None else Span(self.source, found.start(), found.end())

    def wrong(self, wanted: str) -> NoReturn:
        """Refuses the token that comes next."""
        message = (
            f"expected {wanted}, found `{self.word}`" if self.word else f"expected {wanted}, found the end"
        )
        raise Rejected([Diagnostic("sawzall-proto", message, self.span())])

    def next(self) -> str:
        """Takes a token."""
        found = self.word
        self.at += 1
        return found

    def take(self, *words: str) -> bool:
        """Takes these tokens, if they come next."""
        there = [token[0] for token in self.tokens[self.at : self.at + len(words)]] == list(words)
        self.at += len(words) if there else 0
        return there

    def expect(self, word: str) -> None:
        """Takes this token."""
        if not self.take(word):
            self.wrong(f"`{word}`")

    def name(self) -> str:
        """Takes a name."""
        if re.fullmatch(r"[A-Za-z_]\w*", self.word) is None:
            self.wrong("a name")
        return self.next()

    def path(self) -> str:
        """Takes a name with those of what it is in."""
        found = "." if self.take(".") else ""
        found += self.name()
        while self.take("."):
            found += "." + self.name()
        return found

    def number(self) -> int:
        """Takes a whole number."""
        minus = self.take("-")
        try:
            found = int(self.word, 8 if re.fullmatch("0[0-7]+", self.word) else 0)
        except ValueError:
            self.wrong("a whole number")
        self.next()
        return -found if minus else found

    def text(self) -> str:
        """Takes a text in quotes, or several one behind the other."""
        if self.word[:1] not in ("'", '"') or not self.word:
            self.wrong("a text")
        found = ""
        while self.word[:1] in ("'", '"') and self.word:
            found += self.next()[1:-1]
        return found

    def skip(self) -> None:
        """Skips a statement, with all that is in its braces."""
        depth = 0
        while self.word:
            word = self.next()
            depth += (word == "{") - (word == "}")
            if depth <= 0 and word in (";", "}"):
                return
        self.wrong("`;`")

    # -- declarations

    def file(self) -> _Reader:
        """Reads all of it."""
        while self.word:
            match self.word:
                case "package":
                    self.next()
                    self.package = self.path()
                    self.expect(";")
                case "import":
                    self.next()
                    _ = self.take("public") or self.take("weak")
                    span = self.span()
                    self.imports.append((self.text(), span))
                    self.expect(";")
                case "message":
                    self.parts.append(self.message())
                case "enum":
                    self.parts.append(self.enumeration())
                case ";":
                    self.next()
                case "syntax" | "edition" | "option" | "service" | "extend":
                    self.skip()
                case _:
                    self.wrong("a declaration")
        return self

    def message(self) -> _Message:
        """`message M { ... }`."""
        self.next()
        span = self.span()
        found = _Message(self.name(), span)
        self.expect("{")
        self.body(found)
        return found

    def body(self, into: _Message) -> None:
        """What is declared in a message, up to its last brace."""
        while not self.take("}"):
            match self.word:
                case "message" if (
                    self.tokens[self.at + 2 : self.at + 3] and self.tokens[self.at + 2][0] == "{"
                ):
                    into.parts.append(self.message())
                case "enum" if self.tokens[self.at + 2 : self.at + 3] and self.tokens[self.at + 2][0] == "{":
                    into.parts.append(self.enumeration())
                case "oneof":
                    self.next()
                    self.name()
                    self.expect("{")
                    self.body(into)
                case ";":
                    self.next()
                case "option" | "reserved" | "extensions" | "extend":
                    self.skip()
                case _:
                    into.fields.append(self.field())

    def field(self) -> _Field:
        """`repeated int32 n = 1 [default = 3];`."""
        label = self.next() if self.word in ("required", "optional", "repeated") else ""
        span = self.span()
        if self.take("map", "<"):
            key = self.name()
            self.expect(",")
            entry = (key, self.path())
            self.expect(">")
            found = self.rest(_Field(self.name(), "", 0, True, None, span, entry=entry))
        elif self.take("group"):
            message = _Message(self.name(), span)
            self.expect("=")
            tag = self.number()
            self.options()
            self.expect("{")
            self.body(message)
            found = _Field(
                message.name.lower(), message.name, tag, label == "repeated", None, span, group=message
            )
        else:
            type_ = self.path()
            found = self.rest(_Field(self.name(), type_, 0, label == "repeated", None, span))
        if found.tag < 1:
            raise Rejected([Diagnostic("sawzall-proto", "the number of a field is greater than 0", span)])
        return found

    def rest(self, found: _Field) -> _Field:
        """The number of a field, its options and the end."""
        self.expect("=")
        found.tag = self.number()
        found.default = self.options()
        self.expect(";")
        return found

    def options(self) -> str | None:
        """`[default = 3, packed = true]`: the default, if it is there."""
        found = None
        if not self.take("["):
            return None
        while not self.take("]"):
            is_default = self.take("default", "=")
            value = ""
            depth = 0
            while depth > 0 or self.word not in (",", "]"):
                if not self.word:
                    self.wrong("`]`")
                depth += (self.word in ("{", "[")) - (self.word in ("}", "]"))
                value += self.next()
            found = value if is_default else found
            self.take(",")
        return found

    def enumeration(self) -> _Enum:
        """`enum E { A = 0; ... }`."""
        self.next()
        span = self.span()
        found = _Enum(self.name(), span)
        self.expect("{")
        while not self.take("}"):
            if self.word in ("option", "reserved"):
                self.skip()
            elif not self.take(";"):
                name = self.name()
                self.expect("=")
                found.values.append((name, self.number()))
                self.options()
                self.expect(";")
        return found


@define
class _Writer:
    """Writes declarations of Sawzall."""

    known: ProtoTypes
    package: Path

    def ordered(self, parts: list[_Message | _Enum], scope: Path) -> list[_Message | _Enum]:
        """Declarations of one scope, those first that others use."""
        by_name = {part.name: part for part in parts}
        found: list[_Message | _Enum] = []
        open_: set[str] = set()

        def visit(part: _Message | _Enum) -> None:
            if part in found or part.name in open_:
                return
            open_.add(part.name)
            for path in self.uses(part, (*scope, part.name)):
                if path[: len(scope)] == scope and len(path) > len(scope) and path[len(scope)] in by_name:
                    visit(by_name[path[len(scope)]])
            found.append(part)

        for part in parts:
            visit(part)
        return found

    def uses(self, part: _Message | _Enum, scope: Path) -> list[Path]:
        """The types that are used in a declaration."""
        if isinstance(part, _Enum):
            return []
        found: list[Path] = []
        for each in part.fields:
            if each.group is not None:
                found += self.uses(each.group, (*scope, each.group.name))
                continue
            for name in each.entry or (each.type,):
                if name not in SCALARS:
                    found.append(self.resolved(name, scope, each.span))
        for inner in part.parts:
            found += self.uses(inner, (*scope, inner.name))
        return found

    def resolved(self, name: str, scope: Path, span: Span) -> Path:
        """The type that a name means in a scope: of the innermost one that has it."""
        parts = tuple(name.strip(".").split("."))
        scopes = [()] if name.startswith(".") else [scope[:i] for i in range(len(scope), -1, -1)]
        for each in scopes:
            if (*each, *parts) in self.known.types:
                return (*each, *parts)
        raise Rejected([Diagnostic("sawzall-proto", f"unknown type `{name}`", span)])

    def named(self, name: str, scope: Path, span: Span) -> s.TypeExpr:
        """A type as it is named where it is used."""
        if name in SCALARS:
            return s.TypeName(SCALARS[name], span=span)
        path = self.resolved(name, scope, span)
        if path not in self.known.complete:
            return s.TypeName("bytes", span=span)
        shared = 0
        while shared < len(path) - 1 and shared < len(scope) and path[shared] == scope[shared]:
            shared += 1
        own = shared >= len(self.package)  # a part of the package's name says nothing
        return s.TypeName(".".join(path[shared:] if own else path), span=span)

    def statements(self, part: _Message | _Enum, scope: Path) -> list[z.TypeDecl | z.StaticDecl]:
        """A message as the declaration of a tuple, an enumeration as those of its values, too."""
        span = part.span
        if isinstance(part, _Message):
            type_ = self.tuple(part, (*scope, part.name), "parsedmessage")
            self.known.complete.add((*scope, part.name))
            return [z.TypeDecl(part.name, type_, span=span)]
        self.known.complete.add((*scope, part.name))
        whole = s.TypeName("int", span=span)
        values = [z.StaticDecl(name, whole, s.signed(value, span), span=span) for name, value in part.values]
        first = {value: name for name, value in reversed(part.values)}  # of several names of a value
        names = s.MapValue(
            tuple((s.signed(value, span), s.String(name, span=span)) for value, name in first.items()),
            span=span,
        )
        of = s.TypeName("map", (whole, s.TypeName("string", span=span)), span=span)
        values.append(z.StaticDecl(f"{part.name}_names", of, names, span=span))
        if scope != self.package:  # the message around it has them as members
            return [z.TypeDecl(part.name, whole, span=span), *values]
        members = (z.TypeDecl(part.name, whole, span=span), *values)
        return [z.TypeDecl(part.name, whole, members, span=span), *values[:-1]]

    def tuple(self, message: _Message, scope: Path, word: Literal["parsedmessage"] | None) -> z.TupleType:
        """The type of a message."""
        members: list[z.TypeDecl | z.StaticDecl] = []
        for part in self.ordered(message.parts, scope):
            members += self.statements(part, scope)
        for each in message.fields:
            if each.group is not None:
                own = self.tuple(each.group, (*scope, each.group.name), None)
                members.append(z.TypeDecl(each.group.name, own, span=each.span))
                self.known.complete.add((*scope, each.group.name))
        fields = [self.field(each, scope) for each in message.fields]
        return z.TupleType(tuple(fields), tuple(members), word, span=message.span)

    def field(self, found: _Field, scope: Path) -> z.Tagged:
        """One field."""
        span, kind = found.span, found.type if found.type in SCALARS else None
        type_: z.TypeExpr
        if found.group is not None:
            type_ = s.TypeName(found.group.name, span=span)
        elif found.entry is not None:
            parts = tuple(
                z.Tagged(
                    name, self.named(of, scope, span), None, tag, of if of in SCALARS else None, span=span
                )
                for tag, (name, of) in enumerate(zip(("key", "value"), found.entry, strict=True), 1)
            )
            type_ = z.TupleType(parts, (), "parsedmessage", span=span)
        else:
            type_ = self.named(found.type, scope, span)
        if found.repeated:
            type_ = s.TypeName("list", (type_,), span=span)  # type: ignore[arg-type] - the checker takes them there
        value = None if found.default is None else self.default(found, found.default, scope)
        return z.Tagged(kept_name(found.name), type_, value, found.tag, kind, span=span)

    def default(self, of: _Field, text: str, scope: Path) -> z.Expr:
        """The value of a field that is not there."""
        span = of.span
        match SCALARS.get(of.type):
            case "string":
                return s.String(_characters(text), span=span)
            case "bytes":
                return s.Bytes(_characters(text).encode("latin-1"), span=span)
            case "bool":
                return s.Bool(text == "true", span=span)
            case "float":
                return s.Float(float(text), span=span)
            case "uint":
                return z.Number("uint", int(text, 0), span=span)
            case "int":
                return s.signed(int(text, 0), span)
            case _:
                values = self.known.values.get(self.resolved(of.type, scope, span), {})
                if text not in values:
                    message = f"`{of.type}` has no value `{text}`"
                    raise Rejected([Diagnostic("sawzall-proto", message, span, help=closest(text, values))])
                return s.signed(values[text], span)


def _characters(text: str) -> str:
    """What is in quotes, without escapes."""
    letters = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}

    def character(found: re.Match[str]) -> str:
        escaped = found[1]
        if escaped[0] in "01234567":
            return chr(int(escaped, 8))
        return (
            chr(int(escaped[1:], 16))
            if escaped[0] in "xX" and len(escaped) > 1
            else letters.get(escaped, escaped)
        )

    return re.sub(r"\\([0-7]{1,3}|[xX][0-9A-Fa-f]{1,2}|.)", character, text[1:-1])
