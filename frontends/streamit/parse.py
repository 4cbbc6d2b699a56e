"""Text to syntax: the operator language's grammar modules, for functions, with StreamIt's own."""

from __future__ import annotations

import re
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from frontends.streamit import syntax as c
from river.classes import evolve, frozen
from river.diagnostics import Rejected
from river.il.trees import walk
from river.lang import syntax as s
from river.lang.grammar import EXPR, LEXICAL, STMT, TYPES, compose, module, unended
from river.lang.parse import RESERVED, StmtBuilder
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.diagnostics import Diagnostic
    from river.lang.lalr import Token, Tree
    from river.lang.parse import Args

STREAMIT = module("frontends.streamit", "grammar.lark")

WORDS = frozenset({
    "void", "int", "float", "double", "complex", "bit", "boolean", "true", "false", "if", "else", "for",
    "while", "do", "return", "break", "continue", "switch", "case", "default",
})  # fmt: skip
"""Words that name nothing in StreamIt."""

PARSER = compose(LEXICAL, TYPES, EXPR, STMT, STREAMIT, reserved=WORDS)

NO_ARRAYS = (
    "declare each portal, `portal<F> p, q;`; what is sent by one reaches all filters that were added `to` it"
)
_HABITS: Mapping[str, str] = MappingProxyType({
    "#": "there is no preprocessor: constants for all streams are `static { int N = 8; }`",
    "#river": "write `#river decimals 6` or `#river seed 1`, in a line of its own",
    "#include": "there is no preprocessor: give all files to the command, `river run a.str b.str`",
    "import": "give all files to the command: `river run a.str b.str`",
    "constant": "constants for all streams are `static { int N = 8; }`",
    "function": "functions for all filters are `helper Name { int f(int x) { ... } }`, and called `Name.f(x)`",
    "work(": "`work` has rates in place of parameters: `work pop 1 push 1 { ... }`",
    "work": "`work` stands in a filter: `add int->int filter { work pop 1 push 1 { ... } }`",
    "typedef": "write `struct Name { ... }`",
    "const": "leave `const` out: what nothing changes is a constant",
    "static": "leave `static` out: fields keep their values; constants for all streams are `static { int N = 8; }`",
    **{word: f"leave `{word}` out: nothing else sees the fields of a filter" for word in ("public", "private", "protected")},
    **dict.fromkeys(("break", "continue"), "there are no labels: put the loops into a function, and `return` from it"),
    "Portal": "write `portal<F>`, with a small `p`",
    "final": "leave `final` out: what nothing changes is a constant",
    "new": "leave `new` out: a stream is made by `add F(1);`, an array by its declaration, `int[3] a;`",
    "class": "streams are declared as `void->void pipeline Main { ... }` or `int->int filter F { ... }`",
    "join": "write `join roundrobin;`, or `join roundrobin(2, 1);`: branches that give nothing need no joiner",
    "split": "write `split duplicate;` or `split roundrobin(2, 1);`: branches that take nothing need no splitter",
    "unsigned": "leave `unsigned` out: an `int` has 32 bits, and what it counts wraps",
})  # fmt: skip
"""What to write in place of what other languages have, by the word that it begins with."""
_TYPES = frozenset({"int", "float", "double", "complex", "bit", "boolean", "void"})
_STREAMS = frozenset({"filter", "pipeline", "splitjoin", "feedbackloop"})
_SUFFIXES = frozenset({"L", "l", "U", "u", "UL", "d", "D"})
_LAST_WORDS = re.compile(r"(?:\b([A-Za-z_]\w*)\s+)?\b([A-Za-z_]\w*)\s*\Z")
_COMMENT = re.compile(r"//[^\n]*")
_BEGINNINGS = frozenset({
    "add", "split", "join", "body", "loop", "enqueue", "push", "print", "println", "if", "for", "while", "do", "switch", "return",
    "break", "continue",
})  # fmt: skip
"""Words with which statements begin, and nothing else that may stand behind an expression."""
_BRACE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|[{}]', re.DOTALL)
_STATEMENT = re.compile(r"[A-Za-z_}]")
_PRINTING = frozenset({"print", "println", "printf"})
_GIVING = ("push", "print", "println")
_RATES = ("push", "pop", "peek")
_RATE = re.compile(r"\b(?:work|prework)\b[^;{}]*\b(?:push|pop|peek)\s+[^,;{}]*\Z")
_FOR = re.compile(r"\bfor\s*\([^;{}]*\Z")
_DUPLICATE = re.compile(r"\bduplicate\s*\(\s*\Z")
_ADDED = re.compile(r"\badd\s+\w+\s*(?:\([^;{}]*\)\s*)?\Z")
_PORTAL = re.compile(r"portal\s*<\s*\w+\s*>\s*\w+\s*\Z")
_VECTOR = re.compile(r"\bfloat[234]\b")
_LOADED = re.compile(r'\binit_array_1D_(?:int|float)\s*\(\s*"([^"\n]*)"')
_SEED = re.compile(r"^#river seed (-?[0-9]+)$", re.MULTILINE)
_DECIMALS = re.compile(r"^#river decimals ([0-9]{1,2})$", re.MULTILINE)


def parse(source: Source) -> c.Program:
    """The streams, constants and functions that the text declares.

    Raises: Rejected with `syntax-*` diagnostics.
    """
    try:
        tree = PARSER.parse(source)
    except Rejected as error:
        raise Rejected([_explained(found) for found in error.diagnostics]) from None
    return StreamItBuilder(source).build(tree)


def _explained(found: Diagnostic) -> Diagnostic:
    """A mistake of grammar with what to write, where people write what other languages have, or leave a brace out."""
    if found.code == "syntax-end":
        return _unclosed(found)
    if found.span is None or found.code != "syntax-unexpected":
        return found
    text, start = found.span.source.text, found.span.start
    word = found.span.text
    before = _LAST_WORDS.search(text, max(0, start - 80), start)
    first, last = ("", "") if before is None else before.groups(default="")
    help_line: str | None = None
    if word.startswith("#"):
        help_line = _HABITS.get(word, _HABITS["#include" if word.startswith("#include") else "#"])
    elif word == "→":
        help_line = "write `->`"
    elif word == "->":
        help_line = "streams with types of their own stand at the top or behind `add`: is a `}` missing before this one?"
    elif first == "add" and last in _STREAMS and word == "{":
        help_line = (
            "parts are added in a pipeline, splitjoin or feedback loop: is a `}` missing before this one?"
        )
    elif word in _STREAMS and last in _TYPES:
        help_line = f"a stream says what it takes and what it gives: `float->float {word} Name {{ ... }}`"
    elif last in _TYPES and "`->`" in (found.help or ""):
        called = text[found.span.end :].lstrip().startswith("(")
        help_line = _HABITS["function" if called else "constant"]
    elif last == "work" and word in ("(", "{"):
        help_line = _HABITS["work("] if word == "(" else _HABITS["work"]
    elif word == "(" and first in _GIVING:
        help_line = f"`{first}` is a function: write `{first}({last}(...))`"
    elif last in _RATES and word in ("=", ":"):
        help_line = f"a rate stands behind its word: `{last} 1`"
    elif word == "," and _RATE.search(text, max(0, start - 80), start):
        help_line = "rates stand one behind the other: `work pop 1 push 1`"
    elif first in ("work", "prework") and last in _RATES:
        help_line = _HABITS["work"]
    elif word == "<" and first == "add":
        help_line = (
            "streams are put together in a `pipeline`, `splitjoin` or `feedbackloop`; a filter has `work`"
        )
    elif "else" in (first, last) or (word == "else" and text[:start].rstrip().endswith((";", "}"))):
        help_line = "this `else` has no `if`: before it stands one statement, or several in `{ }` without `;` behind them"
    elif word == ">" and text[start - 2 : start] == ">>":
        help_line = "there is no `>>>`: `>>` keeps the sign, which `(x >> 1) & 0x7FFFFFFF` leaves out"
    elif word in ("<", "<=", ">", ">=") and _FOR.search(text, max(0, start - 200), start):
        help_line = "a `for` has two `;`: `for (int i = 0; i < n; i++)`"
    elif _DUPLICATE.search(text, max(0, start - 80), start):
        help_line = "`duplicate` gives all branches each item, and has no numbers: `split duplicate;`"
    elif word == "}" and not _opened(text[:start]):
        help_line = "one `}` too many: no `{` is open here"
    elif word == "," and _ADDED.search(text, max(0, start - 200), start):
        help_line = "write `add` before each: `add A; add B;`"
    elif word not in _STREAMS and word.lower() in _STREAMS:
        help_line = f"write `{word.lower()}`, with small letters"
    elif word == "<" and first in _STREAMS:
        help_line = "types are no parameters of streams: write one for each, `int->int filter F { ... }`"
    elif word == "*" and last in _TYPES:
        help_line = f"there are no pointers: an array is `{last}[8] a`"
    elif word == ":" and last:
        help_line = _HABITS["break"]
    elif word == "=" and _PORTAL.search(text, max(0, start - 200), start):
        help_line = "a portal has no value: `portal<F> p;`"
    elif word in _SUFFIXES and start and text[start - 1].isdigit():
        help_line = "an `int` has no suffix; there are `1.5f` and `2i`"
    else:
        help_line = _HABITS.get(last) or (_HABITS.get(first) if last in _TYPES else None)
    if help_line is not None:
        return evolve(found, help=help_line)
    if word in _BEGINNINGS and "`;`" in (found.help or "") and text[:start].rstrip()[-1:] not in ("", *";{}"):
        found = evolve(found, help="put `;` in front of it: statements end with it")
    return unended(found, _COMMENT, ";{}", "statements") if _STATEMENT.match(word) else found


def _unclosed(found: Diagnostic) -> Diagnostic:
    """An end of the text that comes too soon with the brace that is still open there, the innermost one."""
    text = "" if found.span is None else found.span.source.text
    opened = _opened(text)
    if not opened:
        return found
    line = text.count("\n", 0, opened[-1]) + 1
    return evolve(found, help=f"a `}}` is missing: the `{{` in line {line} is not closed")


def _opened(text: str) -> list[int]:
    """Where the braces stand that are still open at the end of a text."""
    opened: list[int] = []
    for sign in _BRACE.finditer(text):
        if sign.group() == "{":
            opened.append(sign.start())
        elif sign.group() == "}" and opened:
            opened.pop()
    return opened


def included(source: Source) -> tuple[Source, ...]:
    """The texts from which the program reads arrays, as far as they can be read."""
    paths = (Path(path) for path in dict.fromkeys(_LOADED.findall(source.text)))
    return tuple(
        Source(str(path), path.read_text(encoding="utf-8", errors="replace"))
        for path in paths
        if path.is_file()
    )


@frozen
class _Range:
    """A rate from the least to the most; None for `*`."""

    most: c.Expr | None


class StreamItBuilder(StmtBuilder):
    """`streamit/grammar.lark`."""

    shallower: ClassVar[str] = "keep parts of it in variables, or move them into functions of their own"

    def start(self, tree: Tree[Token], args: Args) -> c.Program:
        return c.Program(
            tuple(a for a in args if isinstance(a, c.Stream)),
            tuple(a for a in args if isinstance(a, c.Static)),
            tuple(a for a in args if isinstance(a, c.Helpers)),
            tuple(a for a in args if isinstance(a, c.Struct)),
            tuple(a for a in args if isinstance(a, s.Fn)),
            frozenset[str]().union(*(a.names for a in args if isinstance(a, c.Natives))),
            frozenset(_VECTOR.findall(self.source.text)),
            next((int(number) for number in _SEED.findall(self.source.text)), None),
            next((int(number) for number in _DECIMALS.findall(self.source.text)), None),
            span=self.span(tree),
        )

    def struct(self, tree: Tree[Token], args: Args) -> c.Struct:
        return c.Struct(
            str(args[0]), tuple(part for parts in args[1:] for part in parts), span=self.span(tree)
        )

    def struct_parts(self, tree: Tree[Token], args: Args) -> tuple[c.Param, ...]:
        type_, *names = args
        return tuple(c.Param(type_, str(name), span=type_.span.to(self.token_span(name))) for name in names)

    def helpers(self, tree: Tree[Token], args: Args) -> c.Helpers:
        return c.Helpers(str(args[0]), tuple(args[1:]), span=self.span(tree))

    def static(self, tree: Tree[Token], args: Args) -> c.Static:
        return c.Static(_statements(args), span=self.span(tree))

    def function_decl(self, tree: Tree[Token], args: Args) -> s.Fn:
        return args[0]

    def build(self, tree: Tree[Token]) -> Any:
        self.functions = [
            self.span(node)
            for node in tree.children
            if not isinstance(node, str) and node.data == "function_decl"
        ]
        return super().build(tree)

    def _check_name(self, token: Any) -> None:
        """Refuses reserved words; functions of the operator language have others."""
        inside = any(span.start <= token.start_pos < span.end for span in self.functions)
        if token in (RESERVED if inside else WORDS) and token.type in {"NAME", "CAPITAL"}:
            self.report("syntax-reserved", f"`{token}` is a reserved word", self.token_span(token))

    # -- streams

    def composite(self, tree: Tree[Token], args: Args) -> c.Stream:
        signature, kind, name, params, body = args
        place = self.token_span(kind if name is None else name)
        title = None if name is None else str(name)
        return c.Stream(
            _KINDS[kind],
            title,
            signature,
            params or (),
            body=body.items,
            name_span=place,
            span=self.span(tree),
        )

    def filter(self, tree: Tree[Token], args: Args) -> c.Stream:
        signature, word, name, params, *members = args
        place = self.token_span(word if name is None else name)
        title = None if name is None else str(name)
        found = tuple(m for m in members if m is not None)
        return c.Stream(
            "filter", title, signature, params or (), found, name_span=place, span=self.span(tree)
        )

    def c_any_type(self, tree: Tree[Token], args: Args) -> c.TypeName:
        return self.c_type(tree, args)

    def struct_type(self, tree: Tree[Token], args: Args) -> c.TypeName:
        return c.TypeName(str(args[0]), span=self.span(tree))

    def struct_array_type(self, tree: Tree[Token], args: Args) -> c.TypeName:
        """`Point[4]->`, whose type could be an expression until the arrow comes."""
        value, size = args
        found = self._named_type(value, (size,), tree)
        return c.TypeName("int", span=self.span(tree)) if found is None else found

    def stream_type(self, tree: Tree[Token], args: Args) -> tuple[c.TypeName, c.TypeName]:
        return args[0], args[1]

    def init(self, tree: Tree[Token], args: Args) -> c.Init:
        return c.Init(args[0], span=self.span(tree))

    def work(self, tree: Tree[Token], args: Args) -> c.Work:
        *rates, body = args
        return c.Work(tuple(rates), body, first=False, span=self.span(tree))

    def prework(self, tree: Tree[Token], args: Args) -> c.Work:
        *rates, body = args
        return c.Work(tuple(rates), body, first=True, span=self.span(tree))

    def helper(self, tree: Tree[Token], args: Args) -> c.Helper:
        type_, name, params, *rates, body = args
        return c.Helper(type_, str(name), _measured_by(params), tuple(rates), body, span=self.span(tree))

    def phase(self, tree: Tree[Token], args: Args) -> c.Helper:
        """A function that takes and gives items, as `work` was made of them before the language had functions."""
        name, params, *rates, body = args
        nothing = c.TypeName("void", span=self.token_span(name))
        return c.Helper(
            nothing, str(name), _measured_by(params or ()), tuple(rates), body, span=self.span(tree)
        )

    def handler(self, tree: Tree[Token], args: Args) -> c.Helper:
        name, params, body = args
        nothing = c.TypeName("void", span=self.token_span(name))
        return c.Helper(nothing, str(name), params, (), body, span=self.span(tree))

    def c_rate(self, tree: Tree[Token], args: Args) -> c.Rate:
        word, value = str(args[0]), args[1]
        if isinstance(
            value, _Range
        ):  # of what a firing takes and gives only that it differs; it looks at the most
            value = value.most if word == "peek" else None
        return c.Rate(word, value, span=self.span(tree))

    def range_rate(self, tree: Tree[Token], args: Args) -> _Range:
        """`[1, 3]`, `[1, 2, 3]`: the least, perhaps what is usual, and the most."""
        return _Range(args[-1])

    def any_rate(self, tree: Tree[Token], args: Args) -> None:
        return None

    def c_params(self, tree: Tree[Token], args: Args) -> tuple[c.Param, ...]:
        return tuple(a for a in args if a is not None)

    def c_param(self, tree: Tree[Token], args: Args) -> c.Param:
        return c.Param(args[0], str(args[1]), span=self.span(tree))

    def c_type(self, tree: Tree[Token], args: Args) -> c.TypeName:
        word, *sizes = (a for a in args if a not in ("[", "]"))
        return c.TypeName(str(word), tuple(sizes), span=self.span(tree))

    def portal_type(self, tree: Tree[Token], args: Args) -> c.TypeName:
        name = next(a for a in args if a not in ("portal", "<", ">"))
        self._no_sizes(args[-1])
        return c.TypeName("portal", receiver=str(name), span=self.span(tree))

    # -- statements

    def c_block(self, tree: Tree[Token], args: Args) -> c.Block:
        return c.Block(_statements(args), span=self.span(tree))

    def c_empty(self, tree: Tree[Token], args: Args) -> None:
        return None

    def c_if(self, tree: Tree[Token], args: Args) -> c.Stmt:
        cond, then, *rest = args
        other = self._body(rest[0]) if rest else None
        return c.If(cond, self._body(then), other, span=self.span(tree))

    def c_for(self, tree: Tree[Token], args: Args) -> c.Stmt:
        (first, cond, steps), body = args
        return c.For(first, cond, steps, self._body(body), span=self.span(tree))

    def c_head(
        self, tree: Tree[Token], args: Args
    ) -> tuple[tuple[c.Stmt, ...], c.Expr | None, tuple[c.Expr, ...]]:
        first, cond, steps = args
        match first:
            case None:
                begin: tuple[c.Stmt, ...] = ()
            case c.Declare():
                begin = (first,)
            case _:
                begin = tuple(c.Do(value, span=value.span) for value in first)
        return begin, cond, steps or ()

    def c_steps(self, tree: Tree[Token], args: Args) -> tuple[c.Expr, ...]:
        return tuple(args)

    def c_while(self, tree: Tree[Token], args: Args) -> c.Stmt:
        return c.While(args[0], self._body(args[1]), span=self.span(tree))

    def c_do_while(self, tree: Tree[Token], args: Args) -> c.Stmt:
        return c.While(args[1], self._body(args[0]), late=True, span=self.span(tree))

    def c_switch(self, tree: Tree[Token], args: Args) -> c.Stmt:
        value, *cases = args
        found: list[c.Case] = []
        for case in cases:
            if found and not found[-1].items:  # `case 1: case 2:`
                before = found.pop()
                case = evolve(case, labels=(*before.labels, *case.labels))
            found.append(case)
        return c.Switch(value, tuple(found), span=self.span(tree))

    def c_case(self, tree: Tree[Token], args: Args) -> c.Case:
        label, *items = args
        return c.Case((label,), tuple(item for item in items if item is not None), span=self.span(tree))

    def c_label(self, tree: Tree[Token], args: Args) -> c.Label:
        return c.Label(args[0] if args else None, span=self.span(tree))

    def c_do(self, tree: Tree[Token], args: Args) -> c.Stmt:
        return c.Do(args[0], span=self.span(tree))

    def c_return(self, tree: Tree[Token], args: Args) -> c.Stmt:
        return c.Return(args[0], span=self.span(tree))

    def c_break(self, tree: Tree[Token], args: Args) -> c.Stmt:
        return c.Break(span=self.span(tree))

    def c_continue(self, tree: Tree[Token], args: Args) -> c.Stmt:
        return c.Continue(span=self.span(tree))

    def c_declare(self, tree: Tree[Token], args: Args) -> c.Declare:
        type_, *names = args
        return c.Declare(type_, tuple(names), span=self.span(tree))

    def struct_declare(self, tree: Tree[Token], args: Args) -> c.Declare:
        """`Point[4] p;`, whose type could be an expression until the name comes."""
        value, *names = args
        type_ = self._named_type(value, (), tree)
        return c.Declare(c.TypeName("int") if type_ is None else type_, tuple(names), span=self.span(tree))

    def _named_type(
        self, value: c.Expr, sizes: tuple[c.Expr | None, ...], tree: Tree[Token]
    ) -> c.TypeName | None:
        """A type that was read as an expression; None, when it is reported that it is none."""
        place = value.span
        while isinstance(value, c.Index):
            sizes = (value.index, *sizes)
            value = value.value
        if not isinstance(value, s.Name):
            self.report("syntax-unexpected", "a type stands before the names of variables", self.span(tree))
            return None
        return c.TypeName(value.name, sizes, span=place)

    def c_declarator(self, tree: Tree[Token], args: Args) -> c.Declarator:
        return c.Declarator(str(args[0]), args[1], span=self.span(tree))

    def c_declarator_of_c(self, tree: Tree[Token], args: Args) -> c.Declarator:
        """`int a[3]`, which is no StreamIt."""
        name = str(args[0])
        sizes = "".join(
            word if word in ("[", "]") else word.span.text for word in args[1:-1] if word is not None
        )
        message = "sizes stand behind the type, not behind the name"
        self.report("syntax-unexpected", message, self.span(tree), f"for instance `int{sizes} {name}`")
        return c.Declarator(name, None, span=self.span(tree))

    def c_display(self, tree: Tree[Token], args: Args) -> c.Expr:
        return c.Display(tuple(a for a in args if a is not None), span=self.span(tree))

    def out_of_line(self, tree: Tree[Token], args: Args) -> c.Stmt:
        *targets, name, arguments = args
        names = tuple(s.Name(str(t), span=self.token_span(t)) for t in targets)
        span = self.token_span(name).to(self.span(tree))
        return c.OutOfLine(names, c.Call(str(name), arguments, span=span), span=self.span(tree))

    def _body(self, stmt: c.Stmt | None) -> c.Stmt:
        """A statement that may be empty."""
        return c.Block(()) if stmt is None else stmt

    # -- messages

    def portals(self, tree: Tree[Token], args: Args) -> c.Stmt:
        receiver, sizes, *names = args
        self._no_sizes(sizes)
        found = tuple(c.Declarator(str(name), None, span=self.token_span(name)) for name in names)
        type_ = c.TypeName("portal", receiver=str(receiver), span=self.token_span(receiver))
        return c.Declare(type_, found, span=self.span(tree))

    def portal_sizes(self, tree: Tree[Token], args: Args) -> Tree[Token]:
        """`portal<F>[4]`, which there is not: it is told where the type is known."""
        return tree

    def _no_sizes(self, sizes: Tree[Token]) -> None:
        """Refuses an array of portals."""
        if sizes.children:
            self.report("syntax-unexpected", "there are no arrays of portals", self.span(sizes), NO_ARRAYS)

    def send(self, tree: Tree[Token], args: Args) -> c.Stmt | None:
        call, latency = args
        if not isinstance(call, c.Call) or "." not in call.name:
            message = "only what is sent by a portal has a latency: `p.change(3) [1:2];`"
            self.report("syntax-unexpected", message, self.span(tree))
            return None
        return c.Send(call, latency, span=self.span(tree))

    def c_between(self, tree: Tree[Token], args: Args) -> c.LatencyRange:
        return c.LatencyRange(args[0], args[1] or args[0], span=self.span(tree))

    def c_at_most(self, tree: Tree[Token], args: Args) -> c.LatencyRange:
        none = s.Int(0, span=self.span(tree))
        return c.LatencyRange(none, args[0] or none, span=self.span(tree))

    def c_any_latency(self, tree: Tree[Token], args: Args) -> c.LatencyRange:
        return c.LatencyRange(None, None, span=self.span(tree))

    def c_exactly(self, tree: Tree[Token], args: Args) -> c.LatencyRange:
        return c.LatencyRange(args[0], args[0], span=self.span(tree))

    def c_latency(self, tree: Tree[Token], args: Args) -> c.LatencyRange:
        return args[0]

    # -- statements that build streams

    def add_stream(self, tree: Tree[Token], args: Args) -> c.Stmt:
        return self._add("add", tree, args[0])

    def add_body(self, tree: Tree[Token], args: Args) -> c.Stmt:
        return self._add("body", tree, args[0])

    def add_loop(self, tree: Tree[Token], args: Args) -> c.Stmt:
        return self._add("loop", tree, args[0])

    def _add(self, role: c.Role, tree: Tree[Token], found: Any) -> c.Stmt:
        creation, portals = found if isinstance(found, tuple) else (found, ())  # pyright: ignore[reportUnknownVariableType]
        return c.Add(role, creation, portals, span=self.span(tree))  # pyright: ignore[reportUnknownArgumentType]

    def named(self, tree: Tree[Token], args: Args) -> c.Named:
        name, type_, arguments = args
        return c.Named(str(name), type_, arguments or (), span=self.span(tree))

    def receiver(self, tree: Tree[Token], args: Args) -> tuple[s.Name, ...]:
        for place in args:
            if not isinstance(place, s.Name):
                self.report("syntax-unexpected", "the name of a portal stands here", place.span, NO_ARRAYS)
        return tuple(place for place in args if isinstance(place, s.Name))

    def received(self, tree: Tree[Token], args: Args) -> tuple[c.Named | c.Stream, tuple[s.Name, ...]]:
        return args[0], args[1]

    def native(self, tree: Tree[Token], args: Args) -> c.Natives:
        block, *parts = args
        names = (f"{block}.{name}" for _, name, _ in zip(parts[::3], parts[1::3], parts[2::3], strict=True))
        return c.Natives(frozenset(names), span=self.span(tree))

    def split(self, tree: Tree[Token], args: Args) -> c.Stmt:
        return c.Split(args[0], span=self.span(tree))

    def duplicate(self, tree: Tree[Token], args: Args) -> None:
        return None

    def join(self, tree: Tree[Token], args: Args) -> c.Stmt:
        return c.Join(args[0], span=self.span(tree))

    def round_robin(self, tree: Tree[Token], args: Args) -> tuple[c.Expr, ...]:
        return args[0] or ()

    def enqueue(self, tree: Tree[Token], args: Args) -> c.Stmt:
        return c.Enqueue(args[0], span=self.span(tree))

    # -- expressions

    def c_assign(self, tree: Tree[Token], args: Args) -> c.Expr:
        place, op, value = args
        return c.Assign(place, str(op)[:-1], value, span=self.span(tree))

    def c_choose(self, tree: Tree[Token], args: Args) -> c.Expr:
        return c.Choose(args[0], args[1], args[2], span=self.span(tree))

    def c_binary(self, tree: Tree[Token], args: Args) -> c.Expr:
        return c.Binary(str(args[1]), args[0], args[2], span=self.span(tree))

    def c_unary(self, tree: Tree[Token], args: Args) -> c.Expr:
        return c.Unary(str(args[0]), args[1], span=self.span(tree))

    def c_step_before(self, tree: Tree[Token], args: Args) -> c.Expr:
        return c.Step(args[1], args[0][0], after=False, span=self.span(tree))

    def c_step_after(self, tree: Tree[Token], args: Args) -> c.Expr:
        return c.Step(args[0], args[1][0], after=True, span=self.span(tree))

    def c_cast(self, tree: Tree[Token], args: Args) -> c.Expr:
        return c.Cast(args[0], args[1], span=self.span(tree))

    def c_name(self, tree: Tree[Token], args: Args) -> c.Expr:
        return s.Name(str(args[0]), span=self.span(tree))

    def c_index(self, tree: Tree[Token], args: Args) -> c.Expr:
        return c.Index(args[0], args[1], span=self.span(tree))

    def c_part(self, tree: Tree[Token], args: Args) -> c.Expr:
        return c.StructPart(args[0], str(args[1]), span=self.span(tree))

    def c_char(self, tree: Tree[Token], args: Args) -> c.Expr:
        quote = args[0] == r"'\''"  # an escape of characters only
        return s.String("'" if quote else self.text(args[0]), span=self.span(tree))

    def c_imaginary(self, tree: Tree[Token], args: Args) -> c.Expr:
        return c.Imaginary(float(args[0][:-1]), span=self.span(tree))

    def c_call(self, tree: Tree[Token], args: Args) -> c.Expr:
        return c.Call(str(args[0]), args[1], span=self.span(tree))

    def c_call_in(self, tree: Tree[Token], args: Args) -> c.Expr:
        block, name, arguments = args
        if not isinstance(block, s.Name):
            message = "only functions of `helper` blocks and handlers are called so, by the names of block or portal"
            help_line = "print with `println(x)`" if name in _PRINTING else None
            self.report("syntax-unexpected", message, self.span(tree), help_line)
            return block
        return c.Call(f"{block.name}.{name}", arguments, span=self.span(tree))

    def c_float(self, tree: Tree[Token], args: Args) -> c.Expr:
        text = args[0].rstrip("fF")
        value = float(text)
        if value == float("inf"):
            self.report("syntax-number", f"`{args[0]}` is larger than any float", self.span(tree))
        return s.Float(value, span=self.span(tree))

    def c_paren(self, tree: Tree[Token], args: Args) -> c.Expr:
        return args[0]

    def c_args(self, tree: Tree[Token], args: Args) -> tuple[c.Expr, ...]:
        return tuple(a for a in args if a is not None)


_KINDS: dict[str, c.Kind] = {"pipeline": "pipeline", "splitjoin": "splitjoin", "feedbackloop": "feedbackloop"}


def _statements(args: Args) -> tuple[c.Stmt, ...]:
    return tuple(a for a in args if a is not None)


def _measured_by(params: tuple[c.Param, ...]) -> tuple[c.Param, ...]:
    """Parameters whose sizes leave open what other parameters say: `int n, int[n] a` takes arrays of any size."""
    names = {param.name for param in params}

    def size(found: c.Expr | None) -> c.Expr | None:
        known = found is None or not any(isinstance(n, s.Name) and n.name in names for n in walk(found))
        return found if known else None

    return tuple(evolve(p, type=evolve(p.type, sizes=tuple(map(size, p.type.sizes)))) for p in params)
