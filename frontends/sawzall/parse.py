"""Text to syntax: the grammar composed of the shared modules and Sawzall's own."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from frontends.sawzall import syntax as z
from frontends.sawzall.times import zone
from frontends.sawzall.types import kept_name
from river.classes import define, evolve
from river.diagnostics import Diagnostic, Rejected
from river.il.trees import rebuild
from river.lang import syntax as s
from river.lang.grammar import EXPR, TYPES, compose, module
from river.lang.parse import ExprBuilder, TypesBuilder
from river.source import Source, Span

if TYPE_CHECKING:
    from frontends.sawzall.protofile import ProtoTypes
    from river.lang.lalr import Token, Tree
    from river.lang.parse import Args

LEXICAL = module("frontends.sawzall", "lexical.lark")
SAWZALL = module("frontends.sawzall", "grammar.lark")
PARSER = compose(LEXICAL, TYPES, EXPR, SAWZALL, start=("program",))

KEYWORDS = frozenset({
    "all", "and", "array", "break", "case", "continue", "default", "do", "each", "else", "emit", "file", "for", "function",
    "if", "include", "map", "not", "of", "or", "parsedmessage", "proc", "proto", "rest", "return", "skip", "some",
    "static", "submatch", "switch", "table", "type", "weight", "when", "while",
})  # fmt: skip
"""Words that name nothing. `format` is a keyword too, which also names a function."""


def parse(source: Source) -> z.Program:
    """The declarations and statements of the text, and of the files that it includes.

    Raises: Rejected with `syntax-*` diagnostics, `sawzall-include`, `sawzall-proto`, `sawzall-option`.
    """
    program = _read(source)
    if "include" in source.text or "proto" in source.text:
        folder = Path(source.name).parent
        program = cast("z.Program", _Files(folder, {Path(source.name).resolve()}).whole(program, folder))
    if _WRITTEN.search(source.text):
        from frontends.sawzall import prelude  # few programs name what it declares

        before = _read(Source("szl", prelude.before(source.text, program.items)))
        program = evolve(program, items=(*before.items, *program.items))
    return _with_options(program, source)


_OPTION = re.compile(r"^#river[ \t]+(.*?)[ \t]*$", re.MULTILINE)


def _with_options(program: z.Program, source: Source) -> z.Program:
    """The program with what lines such as `#river undefined skip` say of how it runs.

    Raises: Rejected("sawzall-option").
    """
    for found in _OPTION.finditer(source.text):
        match found[1].split():
            case ["undefined", "skip" | "stop" as how]:
                program = evolve(program, skips=how == "skip")
            case ["zone", name] if zone(name) is not None:
                program = evolve(program, zone=name)
            case ["seed", number] if re.fullmatch(r"-?[0-9]{1,18}", number):
                program = evolve(program, seed=int(number))
            case ["env" | "load" as what, _, *_] if (named := _named(found[1])) is not None:
                name, value = named
                if what == "env":
                    text = value.decode("utf-8", "replace")
                    program = evolve(program, environment=(*program.environment, (name, text)))
                else:
                    program = evolve(program, files=(*program.files, (name, value)))
            case _:
                hint = "write `#river undefined skip` or `#river seed 1`"
                span = Span(source, found.start(), found.end())
                raise Rejected([Diagnostic("sawzall-option", f"`{found[1]}` is no option", span, help=hint)])
    return program


def _named(option: str) -> tuple[str, bytes] | None:
    """The name and the value of `env "NAME" base64` or `load "FILE" base64`; None if they are not there."""
    import json
    from base64 import b64decode

    try:
        name, end = json.JSONDecoder().raw_decode(option, option.index('"'))
        return name, b64decode(option[end:].strip(), validate=True)
    except ValueError:
        return None


def included(source: Source) -> tuple[Source, ...]:
    """The files that a text includes, as far as they can be read, and those that they include; the time, if it asks for that."""
    found: dict[Path, Source] = {}
    left = [source]
    while left:
        each = left.pop()
        for match in (_IMPORT if each.name.endswith(".proto") else _INCLUDE).finditer(each.text):
            path = Path(each.name).parent / next(filter(None, match.groups()), "")
            if path.is_file() and path.resolve() not in found:
                text = Source(str(path), path.read_text(encoding="utf-8", errors="replace"))
                found[path.resolve()] = text
                left.append(text)
    texts = [each.text for each in (source, *found.values())]
    asked = any(_NOW.search(text) for text in texts)
    return (*found.values(), *((Source("now", str(time_ns())),) if asked else ()))


_NOW = re.compile(r"\b(?:now\s*\(|getresourcestats\b)")
_WRITTEN = re.compile(r"\b(?:(?:set|get|lock)additionalinput|(?:get)?resourcestats)\b")
"""What is declared in front of the programs that name it."""


_INCLUDE = re.compile(r"""\b(?:include|proto)\s*(?:"([^"\n]*)"|`([^`\n]*)`)""")
_IMPORT = re.compile(r"""\bimport\s*(?:public\s*|weak\s*)?(?:"([^"\n]*)"|'([^'\n]*)')""")


def _read(source: Source) -> z.Program:
    """The tree of one text."""
    try:
        tree = PARSER.parse(source)
    except Rejected as found:
        from frontends.sawzall.habits import advised  # few texts need it

        raise advised(found) from None
    return SawzallBuilder(source).build(tree)


@define
class _Files:
    """The files of a program: those `seen`, none outside of the folder `top`, and what protocol buffers declare in them."""

    top: Path
    seen: set[Path]
    known: ProtoTypes | None = None

    def whole(self, node: s.Node, folder: Path) -> s.Node:
        """The tree with the statements of included files, which lie in `folder`.

        A file that is among those seen is left out: the checker says so.
        """

        def rewrite(part: s.Node) -> s.Node | tuple[s.Node, ...]:
            if not isinstance(part, z.Include):
                return rebuild(part, rewrite)
            found = self.source(folder / part.path, part.path, part.span)
            if found is None:
                return part
            if part.word == "proto":
                return self.messages(found)
            return cast("z.Program", self.whole(_read(found), Path(found.name).parent)).items

        return rebuild(node, rewrite)

    def source(self, place: Path, written: str, span: Span | None) -> Source | None:
        """The text of a file; None if it is seen already.

        Raises: Rejected("sawzall-include").
        """
        path = place.resolve()
        if path in self.seen:
            return None
        if not path.is_relative_to(self.top.resolve()):
            message, hint = f"`{written}` is outside of the program's folder", "copy it there"
            raise Rejected([Diagnostic("sawzall-include", message, span, help=hint)])
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError, ValueError) as error:
            reason = error.strerror.lower() if isinstance(error, OSError) and error.strerror else error
            message, hint = (
                f"`{written}` cannot be read: {reason}",
                "paths start where the file is that includes them",
            )
            raise Rejected([Diagnostic("sawzall-include", message, span, help=hint)]) from None
        self.seen.add(path)
        return Source(str(place), text)

    def messages(self, source: Source) -> tuple[z.Stmt, ...]:
        """What a file declares of protocol buffers, behind what those declare that it imports."""
        from frontends.sawzall import protofile  # few programs have such files

        self.known = self.known or protofile.ProtoTypes()
        before: list[z.Stmt] = []
        for name, span in protofile.imports(source):
            found = self.source(Path(source.name).parent / name, name, span)
            before += () if found is None else self.messages(found)
        return (*before, *protofile.declarations(source, self.known))


class SawzallBuilder(TypesBuilder, ExprBuilder):
    """`sawzall/grammar.lark`."""

    reserved: ClassVar[frozenset[str]] = KEYWORDS
    shallower: ClassVar[str] = "keep parts of it in variables, or move them into functions of their own"
    behind_a_point: ClassVar[frozenset[str]] = KEYWORDS  # fields of messages may be called so

    # -- declarations

    def program(self, tree: Tree[Token], args: Args) -> z.Program:
        return z.Program(_flat(args), span=self.span(tree))

    def static_decl(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.StaticDecl(str(args[0]), args[1], args[2], span=self.span(tree))

    def static_define(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.StaticDecl(str(args[0]), None, args[1], span=self.span(tree))

    def function_decl(self, tree: Tree[Token], args: Args) -> z.Stmt:
        name, type_, body = args
        return z.FunctionDecl(str(name), type_.params, type_.result, body.body, span=self.token_span(name))

    def type_member(self, tree: Tree[Token], args: Args) -> z.Stmt:
        type_ = args[1]
        message = isinstance(type_, z.ProtoOf) or (isinstance(type_, z.TupleType) and type_.word is not None)
        return z.TypeDecl(self.packaged(tree, str(args[0]), message=message), type_, span=self.span(tree))

    def packaged(self, tree: Tree[Token], name: str, *, message: bool) -> str:
        """The name of a type, which is that of a package, too, if it is of a protocol buffer."""
        if "." in name and not message:
            hint = "`type package.T = parsedmessage { ... };`"
            span = self.tree_span(tree.children[0])
            self.report("sawzall-type", "only a protocol buffer has the name of a package", span, hint)
        return name

    def include_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.Include("include", self.quoted(args[0], 0), span=self.span(tree))

    def proto_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.Include("proto", self.quoted(args[0], 0), span=self.span(tree))

    def params(self, tree: Tree[Token], args: Args) -> tuple[z.Param, ...]:
        return tuple(args)

    def param(self, tree: Tree[Token], args: Args) -> z.Param:
        return z.Param(str(args[0]), args[1], span=self.span(tree))

    def unnamed_param(self, tree: Tree[Token], args: Args) -> z.Param:
        span = self.span(tree)
        return z.Param(f"parameter {span.start}", args[0], unnamed=True, span=span)  # a name that no text has

    def table_decl(self, tree: Tree[Token], args: Args) -> z.Stmt:
        name, table = args
        return z.TableDecl(str(name), table, span=self.span(tree))

    def static_table(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.TableDecl(str(args[0]), args[1], span=self.span(tree))

    def table_type_decl(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.TableTypeDecl(
            self.packaged(tree, str(args[0]), message=False), args[1], span=self.span(tree)
        )

    def table(self, tree: Tree[Token], args: Args) -> z.TableType:
        kind, limit, *rest = args
        clauses = [part for part in rest if isinstance(part, z.Clause)]
        *index, value, weight = rest[: len(rest) - len(clauses)]
        return z.TableType(
            str(kind),
            limit,
            tuple(index),
            value,
            weight,
            tuple(clauses),
            self.token_span(kind),
            span=self.span(tree),
        )

    def clause(self, tree: Tree[Token], args: Args) -> z.Clause:
        words: dict[str, z.Clausal] = {"file": "file", "proc": "proc", "format": "format"}
        return z.Clause(words[str(args[0])], args[1], span=self.span(tree))

    def table_index(self, tree: Tree[Token], args: Args) -> z.Element:
        return args[0]

    def element(self, tree: Tree[Token], args: Args) -> z.Element:
        return z.Element(None if args[0] is None else kept_name(str(args[0])), args[1], span=self.span(tree))

    # -- types

    def record_type(self, tree: Tree[Token], args: Args) -> Any:
        fields = tuple(each for each in args if isinstance(each, z.Tagged))
        members = tuple(each for each in args if not isinstance(each, z.Tagged))
        return z.TupleType(fields, members, span=self.span(tree))

    def tuple_field(self, tree: Tree[Token], args: Args) -> z.Tagged:
        element, value, tag, kind = args
        number = None
        if tag is not None:
            number = self.number(tag, 0)
            if number < 1:
                self.report("syntax-number", "a tag is greater than 0", self.token_span(tag), "`@ 1`")
        kind = None if kind is None else str(kind)
        return z.Tagged(element.name, element.type, value, number, kind, span=self.span(tree))

    def tuple_member(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return args[0]

    def function_type(self, tree: Tree[Token], args: Args) -> z.FunctionType:
        return z.FunctionType(args[0], args[1], span=self.span(tree))

    def proto_type(self, tree: Tree[Token], args: Args) -> z.TupleType:
        return evolve(args[0], word="proto", span=self.span(tree))

    def message_type(self, tree: Tree[Token], args: Args) -> z.TupleType:
        return evolve(args[0], word="parsedmessage", span=self.span(tree))

    def proto_named(self, tree: Tree[Token], args: Args) -> z.ProtoOf:
        return z.ProtoOf(str(args[0]), span=self.span(tree))

    def array_of(self, tree: Tree[Token], args: Args) -> s.TypeExpr:
        return s.TypeName("list", (args[0].type,), span=self.span(tree))

    def map_of(self, tree: Tree[Token], args: Args) -> s.TypeExpr:
        return s.TypeName("map", (args[0].type, args[1].type), span=self.span(tree))

    # -- statements

    def result_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.Result(args[-1], span=self.span(tree))

    def simple_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return args[0]

    def empty(self, tree: Tree[Token], args: Args) -> tuple[z.Stmt, ...]:
        return ()

    def block(self, tree: Tree[Token], args: Args) -> z.Block:
        return z.Block(_flat(args), span=self.span(tree))

    def emit(self, tree: Tree[Token], args: Args) -> z.Stmt:
        name, *index, value, weight = args
        return z.Emit(str(name), tuple(index), value, weight, self.token_span(name), span=self.span(tree))

    def unsent(self, tree: Tree[Token], args: Args) -> tuple[z.Stmt, ...]:
        """A value for a table without the word `emit`."""
        to = self.tree_span(tree.children[0])
        hint = "`emit t <- v;` sends a value; write `a < -1` to compare"
        self.report("sawzall-emit", f"`emit` is missing in front of `{to.text}`", to, hint)
        return ()

    def emit_index(self, tree: Tree[Token], args: Args) -> s.Expr:
        return args[0]

    def break_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.Break(span=self.span(tree))

    def continue_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.Continue(span=self.span(tree))

    def return_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.Return(args[0], span=self.span(tree))

    def do_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.DoWhile(_body(args[0]), args[1], span=self.span(tree))

    def switch_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        value, *branches = args
        cases = tuple(branch for branch in branches if isinstance(branch, z.Case))
        defaults = [branch for branch in branches if not isinstance(branch, z.Case)]
        if len(defaults) != 1:
            message = "a `switch` has one `default`" if defaults else "a `switch` needs a `default`"
            hint = "join them" if defaults else "add `default: ;`"
            self.report("syntax-statement", message, self.span(tree), hint)
        return z.Switch(value, cases, defaults[0] if defaults else (), span=self.span(tree))

    def case(self, tree: Tree[Token], args: Args) -> z.Case:
        values, *body = args
        return z.Case(values, _flat(body), span=self.span(tree))

    def labels(self, tree: Tree[Token], args: Args) -> tuple[s.Expr, ...]:
        return tuple(args)

    def default(self, tree: Tree[Token], args: Args) -> tuple[z.Stmt, ...]:
        return _flat(args)

    def if_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        cond, then, *other = args
        return z.If(cond, _body(then), _body(other[0]) if other else (), span=self.span(tree))

    def while_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.While(args[0], _body(args[1]), span=self.span(tree))

    def for_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        init, cond, step, body = args
        if isinstance(step, z.Declare):
            self.report("syntax-statement", "a step declares nothing", self.tree_span(tree.children[2]))
        return z.For(init, cond, step, _body(body), span=self.span(tree))

    def when_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        *quantifiers, cond, body = args
        return z.When(tuple(chain.from_iterable(quantifiers)), cond, _body(body), span=self.span(tree))

    def quantifier(self, tree: Tree[Token], args: Args) -> tuple[z.Quantifier, ...]:
        *names, quantity, type_ = args
        words: dict[str, z.Quantity] = {"some": "some", "each": "each", "all": "all"}
        span = self.span(tree)
        return tuple(z.Quantifier(str(name), words[quantity], type_, span=span) for name in names)

    def declare(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.Declare(str(args[0]), args[1], args[2], span=self.span(tree))

    def define(self, tree: Tree[Token], args: Args) -> z.Stmt:
        match args:
            case [name, z.FunctionValue(z.FunctionType(params, result), body)]:
                return z.FunctionDecl(str(name), params, result, body, span=self.token_span(name))
            case _:
                pass
        return z.Declare(str(args[0]), None, args[1], span=self.span(tree))

    def assign(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.Assign(args[0], args[1], span=self.span(tree))

    def increment(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return self.step(tree, args, 1)

    def decrement(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return self.step(tree, args, -1)

    def step(self, tree: Tree[Token], args: Args, by: Literal[1, -1]) -> z.Stmt:
        """`place++` or `place--`."""
        return z.Step(args[0], by, span=self.span(tree))

    def expr_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.Do(args[0], span=self.span(tree))

    # -- expressions

    def binary(self, tree: Tree[Token], args: Args) -> s.Expr:
        written = str(args[1])
        return s.Binary(_SPELLED.get(written, written), args[0], args[2], span=self.span(tree))

    def unary(self, tree: Tree[Token], args: Args) -> s.Expr:
        written = str(args[0])
        return s.Unary(_SPELLED.get(written, written), args[1], span=self.span(tree))

    def call(self, tree: Tree[Token], args: Args) -> Any:
        """A call of a name, or of what an expression gives."""
        callee, arguments = args
        if isinstance(callee, s.Name):
            return s.Call(callee.name, arguments, span=self.span(tree))
        return z.CallValue(callee, arguments, span=self.span(tree))

    def dollar(self, tree: Tree[Token], args: Args) -> z.Dollar:
        return z.Dollar(span=self.span(tree))

    def statement_value(self, tree: Tree[Token], args: Args) -> z.StatementValue:
        return z.StatementValue(args[0].body, span=self.span(tree))

    def function_value(self, tree: Tree[Token], args: Args) -> z.FunctionValue:
        type_, body = args
        if not isinstance(type_, z.FunctionType):
            type_ = s.TypeName(str(type_), span=self.token_span(type_))
        return z.FunctionValue(type_, body.body, span=self.span(tree))

    def type_value(self, tree: Tree[Token], args: Args) -> z.TypeValue:
        return z.TypeValue(args[0], span=self.span(tree))

    def skip_piece(self, tree: Tree[Token], args: Args) -> z.Piece:
        return z.Piece("skip", args[0], span=self.span(tree))

    def submatch_piece(self, tree: Tree[Token], args: Args) -> z.Piece:
        return z.Piece("submatch", args[0], span=self.span(tree))

    def rest_piece(self, tree: Tree[Token], args: Args) -> z.Piece:
        return z.Piece("rest", args[0], span=self.span(tree))

    def int_value(self, tree: Tree[Token], args: Args) -> Any:
        """A whole number, whose prefix is its base, and whose mark its type."""
        text, span = str(args[0]), self.span(tree)
        mark = text[-1].lower() if text[-1] in "uUtTpP" else None
        value = self.number(args[0], len(mark or ""))
        return s.Int(value, span=span) if mark is None else z.Number(_MARKS[mark], value, span=span)

    def number(self, token: Token, behind: int) -> int:
        """The value of the digits of a whole number; so many letters behind them are none."""
        text, span = str(token), self.token_span(token)
        digits = text[: len(text) - behind]
        base = {"0x": 16, "0b": 2}.get(digits[:2].lower(), 8 if digits[0] == "0" else 10)
        number = digits[2:] if base in (2, 16) else digits
        if (
            len(number) > 1_000
        ):  # Python itself refuses long decimals, at a length that the user may configure
            self.report("syntax-number", "a whole number of more than 1000 digits", span)
            return 0
        try:
            return int(number, base)
        except ValueError:
            hint = "a number that begins with 0 is octal; write it without the 0"
            self.report("syntax-number", f"`{text}` has a digit that is not octal", span, hint)
            return 0

    def time_value(self, tree: Tree[Token], args: Args) -> z.TimeText:
        return z.TimeText(self.quoted(args[0], 1), span=self.span(tree))

    def raw_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.String(args[0][1:-1], span=self.span(tree))

    def bytes_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        token: Token = args[0]
        span = self.span(tree)
        if token.startswith("B"):
            text = self.quoted(token, 1)
            if any(ord(c) > 0xFF for c in text):
                hint = "a byte is a character up to \xff"
                self.report("syntax-string", "a character that is no byte", span, hint)
                return s.Bytes(b"", span=span)
            return s.Bytes(text.encode("latin-1"), span=span)
        digits = token[2:-1]
        if len(digits) % 2 or not re.fullmatch("[0-9A-Fa-f]*", digits):
            hint = 'two hexadecimal digits are a byte: `X"00ff"`'
            self.report("syntax-string", f"`{token}` is not pairs of hexadecimal digits", span, hint)
            return s.Bytes(b"", span=span)
        return s.Bytes(bytes.fromhex(digits), span=span)

    def char_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        text = self.quoted(args[0], 0)
        if len(text) != 1:
            hint = 'a string is written `"..."`'
            self.report("syntax-character", f"`{args[0]}` is not one character", self.span(tree), hint)
            return s.Int(0, span=self.span(tree))
        return s.Int(ord(text), span=self.span(tree))

    def text(self, token: Token) -> str:
        return self.quoted(token, 0)

    def quoted(self, token: Token, start: int) -> str:
        """The text in quotes, which begin at `start` of the token; between backquotes nothing is escaped."""
        body = str(token)[start + 1 : -1]
        if token[start] == "`" or "\\" not in body:
            return body

        def character(found: re.Match[str]) -> str:
            letters, code = found[1], None
            if letters[0] in "01234567":
                code = int(letters, 8)
            elif letters[0] == "x" and len(letters) > 1:
                code = int(letters[1:], 16)
            elif letters[0] in "uU" and len(letters) > 1:
                code = int(letters[1:], 16)
                code = None if code > 0x10FFFF or 0xD800 <= code < 0xE000 else code
            elif letters not in ("x", "u", "U"):
                return _LETTERS.get(letters, letters)
            if code is None or (letters[0] not in "uU" and code > 0xFF) or (code == 0 and token[0] in "\"'T"):
                at = (token.start_pos or 0) + start + 1 + found.start()
                span = Span(self.source, at, at + len(found[0]))
                hint = 'escapes are \\n \\t \\r \\a \\b \\f \\v \\\\ \\" \\xHH \\uHHHH \\UHHHHHHHH and octal \\101'
                self.report("syntax-string", f"`{found[0]}` is not a character", span, hint)
                return ""
            return chr(code)

        return _ESCAPE.sub(character, body)

    def array_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.ListValue(tuple(args), span=self.span(tree))

    def map_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        """Fields when every key is a bare name; `{(x): 1}` has the value of x as its key."""
        if args and all(bare for bare, _, _ in args):
            fields = tuple(s.FieldValue(key.name, value, span=key.span) for _, key, value in args)
            return s.RecordValue(fields, span=self.span(tree))
        return s.MapValue(tuple((key, value) for _, key, value in args), span=self.span(tree))

    def pair(self, tree: Tree[Token], args: Args) -> tuple[bool, s.Expr, s.Expr]:
        key = tree.children[0]
        return not isinstance(key, str) and key.data == "variable", args[0], args[1]


_SPELLED = {"&&": "and", "||": "or", "!": "not", "and": z.BOTH, "or": z.EITHER}
"""Operators by the names of the operator language; the words `and` and `or` look at both sides."""

_MARKS: dict[str, z.Kind] = {"u": "uint", "t": "time", "p": "fingerprint"}

_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9A-Fa-f]*|u(?:[0-9A-Fa-f]{4})?|U(?:[0-9A-Fa-f]{8})?|.)")

_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def _flat(args: Args) -> tuple[Any, ...]:
    """Items or statements without the empty ones."""
    return tuple(a for a in args if a != ())


def _body(statement: z.Stmt | tuple[z.Stmt, ...]) -> tuple[z.Stmt, ...]:
    """The statements under a head: those of a block, or the only one."""
    match statement:
        case z.Block(body):
            return body
        case tuple():
            return statement
        case _:
            return (statement,)
