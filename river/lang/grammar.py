"""Grammar modules joined into one parser, and what it does not expect as diagnostics.

A language states its modules: `compose(LEXICAL, TYPES, EXPR, MINE, start=("query",))`. Their texts are joined, so
rule and terminal names are flat, and a later module may `%extend` or `%override` a rule of an earlier one (paper
section 3.5).
"""

from __future__ import annotations

import re
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from river.classes import evolve, frozen
from river.diagnostics import Diagnostic, InternalError, Rejected
from river.lang.lalr import Unexpected
from river.source import Source, Span, packaged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from river.lang.lalr import Tables, Token, Tree


@frozen
class Module:
    """A piece of a grammar: the text of a `.lark` file, where to say that a mistake in it is, and the package that it is in."""

    name: str
    text: str
    path: str
    package: str | None = None


def module(package: str, filename: str) -> Module:
    """The grammar module in file `filename` of `package`."""
    source = packaged(package, filename)
    return Module(filename.removesuffix(".lark"), source.text, source.name, package)


LEXICAL = module("river.lang", "lexical.lark")
TYPES = module("river.lang", "types.lark")
EXPR = module("river.lang", "expr.lark")
STMT = module("river.lang", "stmt.lark")
QUOTED_NAMES = module("river.lang", "quoted.lark")


def compose(
    *modules: Module, start: Iterable[str] = ("start",), reserved: frozenset[str] = frozenset()
) -> Parser:
    """The parser of the joined modules; its tables are built at the first parse.

    `start` names the rules that a text may be. `reserved`: words that name nothing, also where only a name can stand.
    """
    return Parser(modules, tuple(start), reserved)


@frozen(slots=False)
class Parser:
    """LALR(1) with a contextual lexer: a keyword is a keyword only where the grammar asks for it."""

    modules: tuple[Module, ...]
    start: tuple[str, ...]
    reserved: frozenset[str] = frozenset()

    def parse(self, source: Source, start: str | None = None) -> Tree[Token]:
        """The tree of `source`, with the offsets of every node.

        Raises: Rejected with `syntax-unexpected`, `syntax-end`, `syntax-string`, or `syntax-comment`.
        """
        start = start or self.start[0]
        try:
            return self.tables.tree(source.text, start, self.reserved)
        except Unexpected as error:
            raise Rejected([self._explain(source, error, start)]) from None

    @cached_property
    def tables(self) -> Tables:
        """The compiled grammar.

        Raises: InternalError when the grammar is wrong, naming the module's file and line.
        """
        from river.lang.tables import cached
        from river.lang.tabulate import Ambiguous

        try:
            return cached(self.text, self.start, self.build, self._told)
        except Ambiguous as error:
            raise InternalError(self._locate(str(error))) from None

    @property
    def text(self) -> str:
        """The whole grammar."""
        return "\n".join(module.text for module in self.modules)

    def _told(self) -> str | None:
        """The rules of a grammar that begins with the last module's, as they stand beside its text; see `river.lang.tables`."""
        last = self.modules[-1]
        try:
            return None if last.package is None else packaged(last.package, f"{last.name}.rules.json").text
        except OSError:
            return None  # not every language brings them

    def build(self, *, reads: bool = False, strict: bool = False) -> Any:
        """The grammar as lark has read it: its rules and terminals, of which `river.lang.tabulate` makes the tables.

        For tests, `reads`: it can read texts, by lark's own tables; `strict` proves instead, of our tables, that nothing has two
        readings, and that no two terminals overlap where one of them may come, which is slow.
        """
        from lark import Lark, LarkError
        from lark.lexer import Lexer

        from river.lang.tables import accepted
        from river.lang.tabulate import Ambiguous

        class Unused(Lexer):
            def __init__(self, conf: object) -> None: ...

            def lex(self, lexer_state: Any, parser_state: Any) -> Any:
                raise NotImplementedError

        class Untabled:
            def __init__(self, conf: object, **options: object) -> None: ...

        class Tabled:  # lark takes four times as long to find the same states
            def __init__(self, conf: Any, **options: object) -> None:
                self._parse_table = SimpleNamespace(
                    states={
                        number: dict.fromkeys(each)
                        for number, each in accepted(conf.rules, conf.start).items()
                    }
                )

        try:
            return Lark(
                self.text,
                parser="lalr",
                lexer="contextual" if reads or strict else Unused,
                strict=strict,
                propagate_positions=True,
                start=list(self.start),
                _plugins={} if reads else {"LALR_Parser": Tabled if strict else Untabled},
            )
        except (LarkError, Ambiguous) as error:
            raise InternalError(self._locate(str(error))) from None

    def _locate(self, message: str) -> str:
        """A grammar error with the file and line of the module that is at fault."""
        if found := re.search(r"line (\d+)", message):
            line = int(found[1])
            for part in self.modules:
                lines = part.text.count("\n") + 1
                if line <= lines:
                    return f"{part.path}:{line}: {message}"
                line -= lines
        for name in re.findall(r"[A-Za-z_]\w*", message):
            for part in reversed(self.modules):
                definition = re.compile(rf"^(%\w+ +)?[!?]*{name}(\.\d+)? *[:{{]", re.MULTILINE)
                if rule := definition.search(part.text):
                    return f"{part.path}:{part.text.count(chr(10), 0, rule.start()) + 1}: {message}"
        return f"{', '.join(part.path for part in self.modules)}: {message}"

    def _explain(self, source: Source, error: Unexpected, start: str) -> Diagnostic:
        """The diagnostic of a text that the grammar refuses."""
        length = error.length
        at = error.at if length else len(source.text.rstrip())
        if string := _STRING.match(source.text, at):
            length = len(string[0])
        return _unfinished(source, at) or self._unexpected(source, at, length, start)

    def _unexpected(self, source: Source, at: int, length: int, start: str) -> Diagnostic:
        """The diagnostic of the `length` characters at `at`, or of the whole word there; no characters are the end."""
        around = next((w for w in _WORD.finditer(source.text) if w.start() <= at < w.end()), None)
        if around is not None:
            at, length = around.start(), max(at + length, around.end()) - around.start()
        expected = self._expected(source, at, start)
        help_line = f"expected {_alternatives(expected)}" if expected else None
        if length == 0:
            return Diagnostic(
                "syntax-end", "unexpected end of the text", Span(source, at, at), help=help_line
            )
        span = Span(source, at, at + length)
        strange = _strange(span.text)
        if strange is not None:
            return Diagnostic("syntax-unexpected", f"unexpected {strange[0]}", span, help=strange[1])
        return Diagnostic("syntax-unexpected", f"unexpected `{span.text}`", span, help=help_line)

    def _expected(self, source: Source, at: int, start: str) -> list[str]:
        """What could have stood at offset `at`, in words."""
        try:
            accepted = self.tables.accepted(source.text[:at], start, self.reserved)
        except Unexpected:
            return []  # the text before the fault, cut off there, reads differently
        words: set[str] = set()
        for name in accepted:
            if name in _WORDS:
                words.add(_WORDS[name])
            else:
                terminal = self.tables.terminals[name]
                begun = _BEGIN.match(terminal.pattern)
                text = begun[1] if terminal.text is None and begun is not None else terminal.text
                if text is not None or not terminal.pattern.startswith(
                    "(?i:"
                ):  # a word of several, which another one tells
                    words.add(name.lower() if text is None else f"`{text}`")
        groups: list[str] = []
        for group, sign, members in _GROUPS:
            if sign in words:
                groups.append(group)
                words -= members
        return groups + sorted(words, key=lambda word: (word.startswith("`"), word[1:2].isalpha(), word))


def _strange(text: str) -> tuple[str, str] | None:
    """A character that editors put in place of another one, or that nobody sees: what it is, and what to write."""
    import unicodedata

    sign = text[:1]
    kind = unicodedata.category(sign)
    if kind in ("Pi", "Pf") or sign in "\u201a\u201e":
        return f"`{sign}`", "quotes are `\"` and `'`"
    if kind == "Pd" and sign != "-":
        return f"`{sign}`", "a minus is `-`"
    if kind[0] in "CZ":
        plain = "a plain blank does" if kind == "Zs" else "leave it out"
        return f"U+{ord(sign):04X}, {unicodedata.name(sign, 'a control character').lower()}", plain
    return None


_WORD = re.compile(r"(?<![A-Za-z0-9_$#])[A-Za-z_][A-Za-z0-9_]*")
"""A whole word, but no variable and no hole."""


_BEGIN = re.compile(r"\(\?i:\(?([a-z]{2,})")
"""The first word, or the first of several, that a pattern of words begins with: that is what people write."""
_STRING = re.compile(r'b?"[^"\\\n]*(\\[^\n][^"\\\n]*)*"')


_WORDS = {
    "NAME": "a name",
    "QUOTED_NAME": "a name",
    "LETTERS": "a name",
    "IF_CALLED": "a name",
    "CAPITAL": "a name",
    "VAR": "a variable",
    "PATH_VAR": "a variable",
    "HOLE": "a `#parameter`",
    "INT": "a whole number",
    "FLOAT": "a number",
    "C_FLOAT": "a number",
    "POINT_FLOAT": "a number",
    "C_IMAGINARY": "an imaginary number",
    "C_CHAR": "a character",
    "STRING": "a string",
    "BYTES": "a byte string",
    "QUOTED": "a string",
    "PARAMETER": "a parameter",
    "$END": "the end of the text",
}
"""Terminals that have no text of their own, in human words."""


def _group(name: str, sign: str, words: str, literals: str) -> tuple[str, str, frozenset[str]]:
    quoted = (f"`{literal}`" for literal in literals.split())
    return name, f"`{sign}`" if f" {sign} " in literals else sign, frozenset([*words.split(", "), *quoted])


_GROUPS = (
    _group(
        "a declaration", "queue", "",
        " type input output queue var result fn operator template @ ( ",
    ),
    _group(
        "a statement", "let", "a name, a variable, a `#parameter`",
        " let var with drop if for while break continue return emit mark trap #each ",
    ),
    _group(
        "an expression", "raw", "a name, a whole number, a number, a string, a byte string, char, raw, time",
        " + - ! ( { $ ? ~ function false not true ",
    ),
    _group(
        "an expression", "a byte string",
        "a name, a variable, a `#parameter`, a whole number, a number, a string, a byte string",
        " not if true false none fn ( [ { - -% ~ ",
    ),
    _group(
        "an expression", "an imaginary number",
        "a name, a whole number, a number, an imaginary number, a string, a character",
        " true false ( ! ~ - + ++ -- ",
    ),
    _group("a type", "array", "a name, a `#parameter`", " array decimal ( { "),
    _group(
        "an operator", "/=", "",
        " = += -= *= /= %= &= |= ^= <<= >>= ++ -- ? + - * / % & && | || ^ << > >> >= < <= == != . [ ( ! ",
    ),
    _group(
        "an operator", "/", "",
        " + - * / % +% -% *% & && | || ^ << > >> >= < <= == != and or is . [ ( ! ",
    ),
)  # fmt: skip
"""What together reads better as one word: its name, the word that gives it away, the words that it stands for."""


_ENDS: Final = frozenset({"`;`", "`)`", "`]`"})


def _alternatives(expected: list[str]) -> str:
    """At most six of them, in a sentence; of more first those that end something, which are forgotten most."""
    shown = expected[:6]
    if len(expected) == 1:
        return shown[0]
    if len(expected) <= 6:
        return "one of " + ", ".join(shown[:-1]) + " or " + shown[-1]
    shown = sorted(expected, key=lambda word: word not in _ENDS)[:6]
    return "one of " + ", ".join(shown) + ", or others"


def unended(found: Diagnostic, comments: re.Pattern[str], before: str, what: str) -> Diagnostic:
    """The refusal with what to write where a `;` would do, in front of a `}` or of what begins a line.

    `before`: signs behind which none is left out; `what`: what ends with it.
    """
    if found.span is None or found.help is None or "`;`" not in found.help:
        return found
    text = comments.sub("", found.span.source.text[: found.span.start])
    kept = text.rstrip()
    if not kept or kept[-1] in before:
        return found
    if found.span.text == "}":
        return evolve(found, help=f"put `;` in front of it: {what} end with it")
    if found.code != "syntax-end" and "\n" not in text[len(kept) :]:
        return found
    return evolve(found, help=f"put `;` at the end of line {kept.count(chr(10)) + 1}: {what} end with it")


def _unfinished(source: Source, at: int) -> Diagnostic | None:
    """The diagnostic of a string or a comment without an end at offset `at`."""
    text = source.text
    if text.startswith(('"', 'b"'), at) and _STRING.match(text, at) is None:
        line_end = text.find("\n", at)
        span = Span(source, at, len(text) if line_end < 0 else line_end)
        hint = 'strings end with `"` on the line they begin; a line end is written \\n'
        return Diagnostic("syntax-string", "string without an end", span, help=hint)
    if text.startswith("*", at) and text.startswith("/*", at - 1):
        at -= 1  # the slash was read as an operator
    if text.startswith("/*", at):
        end = text.find("*/", at + 2)
        if end >= 0:
            message = "no comment begins with `/*` in this language"
            hint = "begin its lines as other comments do"
            return Diagnostic("syntax-comment", message, Span(source, at, end + 2), help=hint)
        span = Span(source, at, at + 2)
        return Diagnostic("syntax-comment", "comment without an end", span, help="add `*/`")
    return None
