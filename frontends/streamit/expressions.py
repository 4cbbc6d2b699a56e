"""Expressions of C-like code, and the types in it: from syntax to typed trees."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, assert_never

from frontends.streamit import constants
from frontends.streamit import syntax as c
from frontends.streamit import typed as ty
from frontends.streamit.arithmetic import RANKS, WORDS, Arithmetic, character, large, shown
from frontends.streamit.surroundings import CLOSED, filled, measured
from frontends.streamit.trees import named, pure, root
from frontends.streamit.vectors import VECTORS
from river.classes import define, evolve, field
from river.diagnostics import closest
from river.il.trees import fresh, rebuild, walk
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from river.report import Failed
    from river.source import Span

PI = constants.apply("f32", (t.F64,), ty.FLOAT, (3.141592653589793,))
COMPLEX_FUNCTIONS: Mapping[str, ty.Type] = MappingProxyType({
    "abs": ty.FLOAT, "arg": ty.FLOAT,
    **dict.fromkeys(("exp", "log", "sqrt", "sin", "cos", "sinh", "cosh"), ty.COMPLEX),
})  # fmt: skip
"""Functions of complex numbers, and what they give."""
LOGIC = MappingProxyType({"&&": "and", "||": "or"})
REAL_FUNCTIONS: Mapping[str, int] = MappingProxyType({
    **dict.fromkeys(
        ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "sqrt", "exp", "log", "log2", "log10",
         "floor", "ceil", "round", "trunc", "fabs"),
        1,
    ),
    "atan2": 2, "pow": 2, "fmod": 2, "fmin": 2, "fmax": 2,
})  # fmt: skip
"""Functions of floats, and how many they take."""
NUMBER_FUNCTIONS: Mapping[str, int] = MappingProxyType({"abs": 1, "min": 2, "max": 2})
LOADS: Mapping[str, ty.Type] = MappingProxyType({
    "init_array_1D_int": ty.INT, "init_array_1D_float": ty.FLOAT,
})  # fmt: skip
"""Functions that read arrays from texts, and of what."""
COMPUTED: Mapping[str, int] = MappingProxyType({
    **dict.fromkeys(("asinh", "acosh", "atanh", "cbrt", "exp2", "expm1", "log1p", "rint"), 1), "hypot": 2,
})  # fmt: skip
"""Functions of C that are computed from others (see `frontends.streamit.routines`), and how many they take."""
OF_C = MappingProxyType({"fabs": "abs", "fmod": "rem.trunc", "fmin": "min", "fmax": "max"})
"""Functions of C by the operations that they are; of floats, whatever is given."""
SINGLE: Mapping[str, str] = MappingProxyType({f"{name}f": name for name in (*REAL_FUNCTIONS, *COMPUTED)})
"""C's names of the functions that take and give floats of 32 bits, also where a double is given: `sqrtf`."""
FOREIGN_TYPES: Mapping[str, str] = MappingProxyType({
    **dict.fromkeys(
        ("long", "short", "unsigned", "char", "byte", "uint"),
        "`int` is the type of whole numbers: 32 bits, which wrap",
    ),
    "string": "texts are of the type `String`",
    **dict.fromkeys(
        ("add", "split", "join", "body", "loop", "enqueue"),
        "streams are put together in a `pipeline`, `splitjoin` or `feedbackloop`; a filter has `work`",
    ),
    **{word.capitalize(): f"write `{word}`, with a small letter" for word in ("add", "split", "join", "body", "loop", "enqueue")},
})  # fmt: skip
"""What to write in place of types of other languages, and of what stands among the members of a filter by mistake."""
_OTHERWISE: Mapping[str, str] = MappingProxyType({
    "i": "declare it: `int i;`; a number with an imaginary part is `1 + 2i`",
    "Math": "leave `Math.` out: `pi`, `sin(x)`",
    "M_PI": "write `pi`",
    "null": "there is none: variables begin with zero",
    "this": "leave `this.` out",
})  # fmt: skip
"""What to write in place of names of other languages."""
STREAM_WORDS = ("push", "pop", "peek", "print", "println")


class CodePlace(Enum):
    """Where code stands; the value says it to people."""

    WORK = "a work function"
    INIT = "`init`"
    HELPER = "a function of a filter"
    FIELD = "a field"
    BUILD = "the body of a stream"


Functions = Callable[[str], "tuple[tuple[t.Type, ...], t.Type] | None"]
"""Parameter types and result type of a function of the operator language. Raises: Rejected with its errors."""


@define
class Expressions(Arithmetic):
    """The checker of the expressions of one body."""

    place: CodePlace
    functions: Functions
    first_item: int = 0  # what `peek` counts from
    mark: str = ""  # in the keys of locals
    block_name: str = ""  # of the `helper` block around the function
    values: dict[str, ty.Expr] = field(factory=dict[str, ty.Expr])  # of locals that nothing changes, by key
    scopes: list[dict[str, ty.Expr]] = field(factory=lambda: [{}])
    count: int = 0

    # -- names

    def lookup(self, name: str) -> ty.Expr | None:
        """What a name denotes."""
        for names in reversed(self.scopes):
            if name in names:
                return names[name]
        return self.around.lookup(name)

    def declare(self, name: str, type_: ty.Type, span: Span | None) -> ty.Local:
        """A new local variable."""
        if name in self.scopes[-1]:
            self.report.error("streamit-duplicate-name", f"`{name}` is declared twice", span)
        self.count += 1
        local = ty.Local(type_, f"{name}#{self.mark}{self.count}", span=span)
        self.scopes[-1][name] = local
        return local

    @contextmanager
    def scope(self) -> Generator[None, None, None]:
        """Names declared inside end with it."""
        self.scopes.append({})
        try:
            yield
        finally:
            self.scopes.pop()

    def misplaced(self, what: str, span: Span | None, help_line: str | None = None) -> Failed:
        """The error that something does not belong here."""
        return self.report.error(
            "streamit-misplaced", f"{what} has no place in {self.place.value}", span, help_line
        )

    @property
    def runs(self) -> bool:
        """Whether the code runs when the graph is made."""
        return self.place is CodePlace.BUILD or self.around.alone

    # -- types

    def type(self, expr: c.TypeName, *, open_: bool = False) -> ty.Type:
        """What a type says; `open_`: sizes that are left out are 0 for now."""
        if expr.receiver is not None:
            return ty.Portal(expr.receiver)
        found: ty.Type = WORDS.get(expr.name) or self.struct(expr)
        if found == ty.VOID and expr.sizes:
            raise self.report.error("streamit-type", "there are no arrays of `void`", expr.span)
        for size in reversed(expr.sizes):
            if size is not None:
                found = ty.Vector(found, self.closed(self.expr(size, ty.INT), size.span))
            elif open_:
                found = ty.Vector(found, ty.Constant(ty.INT, 0, span=expr.span))
            else:
                message = "how many items this array has is not said"
                help_line = "write it, or give a variable a first value: `float[] a = {1, 2};`"
                raise self.report.error("streamit-size", message, expr.span, help_line)
        return found

    def sized(self, expr: c.TypeName, value: c.Expr | None) -> tuple[ty.Type, ty.Expr | None]:
        """The type of a variable, and its first value, which says the sizes that are left out."""
        wanted = self.value_type(expr, open_=value is not None)
        node = None if value is None else self.expr(value, wanted)
        if node is None:
            return wanted, None
        given = node.type
        if self.runs and isinstance(root(node), ty.Local | ty.Param) and pure(node):
            given = measured(node, len(expr.sizes))
        return filled(wanted, expr.sizes, given), node

    def struct(self, expr: c.TypeName) -> ty.Type:
        """A struct, or a complex number."""
        if expr.name == "complex":
            return ty.COMPLEX
        if expr.name not in self.around.structs:
            known = [*WORDS, "complex", *VECTORS, *self.around.structs]
            near = called(expr.name) or closest(expr.name, known)
            help_line = FOREIGN_TYPES.get(expr.name) or near or f"declare it: `struct {expr.name} {{ ... }}`"
            raise self.report.error(
                "streamit-unknown-type", f"unknown type `{expr.name}`", expr.span, help_line
            )
        found = self.around.structs[expr.name]
        return found if self.mark == "static" else self.around.seen_from_here(found)

    def closed(self, node: ty.Expr, span: Span | None, params: frozenset[str] = frozenset()) -> ty.Expr:
        """A size or a rate, by what is known when the graph is made, and `params` of a function; refuses what is not."""
        if self.runs:
            return node
        node = self.known(node)
        others = (part for part in walk(node) if not isinstance(part, CLOSED))
        if not all(isinstance(part, ty.Local) and part.key in params for part in others):
            help_line = "sizes and rates are made of parameters and constants"
            self.report.error(
                "streamit-constant", "this is not known when the graph is made", span, help_line
            )
        return node

    def known(self, node: ty.Expr) -> ty.Expr:
        """The expression with the values of variables that nothing changes, and of parameters as they were given."""
        match node:
            case ty.Local(_, key) if key in self.values:
                return self.values[key]
            case ty.Field(type_, name) if name in self.around.params:
                return ty.Param(type_, name, span=node.span)
            case _:
                return rebuild(node, self.known)  # pyright: ignore[reportArgumentType] - only expressions in it

    def value_type(self, expr: c.TypeName, *, portal: bool = False, open_: bool = False) -> ty.Type:
        """The type of something that has a value; of a parameter or variable of a stream it may be a portal."""
        found = self.type(expr, open_=open_)
        if isinstance(found, ty.Portal) and not portal:
            help_line = "declare it among the streams, and give it to filters as a parameter"
            raise self.report.error("streamit-portal", "there is no portal here", expr.span, help_line)
        if found == ty.VOID:
            raise self.report.error("streamit-type", "nothing can have the type `void`", expr.span)
        return found

    # -- expressions

    def cond(self, value: c.Expr) -> ty.Expr:
        """A condition."""
        if isinstance(value, c.Assign) and not value.op:
            place, new = value.place.span, value.value.span
            compared = f"`{place.text} == {new.text}` compares" if place and new else "`==` compares"
            message = "this condition is an assignment: it holds if what is assigned is true, or not 0"
            help_line = f"{compared}; if it is meant, assign in a statement before"
            self.report.warn("streamit-condition", message, value.span, help_line)
        return self.expr(value, ty.BOOLEAN)

    def expr(self, value: c.Expr, wanted: ty.Type | None = None) -> ty.Expr:
        """A typed expression, converted to the wanted type. Raises: Failed, when it is reported."""
        node = self.written(value, wanted) or self.plain(value)
        self.look_at_order(node)
        if node.type == ty.VOID:
            if wanted is None and isinstance(node, ty.Call | ty.Function):
                return node
            raise self.report.error("streamit-type", "this has no value", value.span)
        return node if wanted is None else self.convert(node, wanted, value.span)

    def look_at_order(self, node: ty.Expr) -> None:
        """Warns of a variable that an expression changes twice."""
        if not isinstance(node, ty.Apply | ty.Update | ty.At):
            return
        changes = [
            named(each.place)
            for each in walk(node)
            if isinstance(each, ty.Update) and isinstance(each.place, ty.Local | ty.Field)
        ]
        twice = next((name for i, name in enumerate(changes) if name in changes[:i]), None)
        if twice is not None:
            name = twice.partition("#")[0]
            message = f"`{name}` is changed twice here: that happens from left to right"
            self.report.warn("streamit-order", message, node.span, "use two statements")

    def written(self, value: c.Expr, wanted: ty.Type | None) -> ty.Expr | None:
        """What is written of something that has the type that is wanted: a number, or its parts in braces; else None."""
        match value, wanted:
            case c.Display(items), ty.Vector(item):
                nodes = tuple(self.expr(each, item) for each in items)
                size = ty.Constant(ty.INT, len(nodes), span=value.span)
                return ty.Display(ty.Vector(nodes[0].type if nodes else item, size), nodes, span=value.span)
            case c.Display(items), ty.Struct(name, fields):
                if len(items) != len(fields):
                    what = f"`{name}` has {len(fields)} part{'s' * (len(fields) != 1)}"
                    message = f"{what}, {len(items)} given"
                    raise self.report.error("streamit-size", message, value.span)
                pairs = zip(items, fields, strict=True)
                return self.make(wanted, [self.expr(each, part) for each, (_, part) in pairs], value.span)
            case c.Display(), _ if wanted is not None:
                message = f"expected `{shown(wanted)}`, found values in braces"
                raise self.report.error("streamit-type", message, value.span)
            case s.Int(number), ty.INT if large(value):
                raise self.out_of_range(number, value.span)
            case _:
                return self.literal(value, wanted)

    def plain(self, value: c.Expr) -> ty.Expr:
        """A typed expression."""
        span = value.span
        match value:
            case s.Int(number) if large(value):
                return self.real(number, span)
            case s.Int(number):
                return ty.Constant(ty.INT, self.whole(number, span), span=span)
            case s.Float(number):
                return self.real(number, span)
            case s.Bool(known):
                return ty.Constant(ty.BOOLEAN, known, span=span)
            case s.String(text):
                return ty.Constant(ty.TEXT, text, span=span)
            case s.Name(name):
                return self.name(name, span)
            case c.Unary(op, inner):
                return self.unary(op, inner, span)
            case c.Binary(op, left, right):
                if op in LOGIC:
                    return ty.Logic(ty.BOOLEAN, LOGIC[op], self.cond(left), self.cond(right), span=span)
                return self.binary(op, *self.operands(left, right), span)
            case c.Choose(cond, then, other):
                test, a, b = self.cond(cond), self.expr(then), self.expr(other)
                type_ = b.type if RANKS.get(a.type, 9) < RANKS.get(b.type, -1) else a.type
                a, b = self.convert(a, type_, then.span), self.convert(b, type_, other.span)
                return ty.Choose(type_, test, a, b, span=span)
            case c.Cast(type_, inner):
                return self.cast(self.value_type(type_), self.expr(inner), span)
            case c.StructPart(inner, name):
                return self.part(self.expr(inner), name, span)
            case c.Imaginary(number):
                size = constants.apply("f32", (t.F64,), ty.FLOAT, (number,))
                return ty.Constant(ty.COMPLEX, (0.0, size), span=span)
            case c.Index(array, index):
                if index is None:
                    raise self.report.error("streamit-type", "`[]` stands in types only", span)
                base = self.expr(array)
                if not isinstance(base.type, ty.Vector):
                    raise self.report.error(
                        "streamit-type", f"`{shown(base.type)}` is not an array", array.span
                    )
                return ty.At(base.type.item, base, self.expr(index, ty.INT), span=span)
            case c.Call():
                return self.call(value)
            case c.Assign(place, op, inner):
                return self.assign(self.writable(place), op, inner, span)
            case c.Step(place, op, after):
                target = self.writable(place)
                one = self.convert(ty.Constant(ty.INT, 1, span=span), target.type, span)
                node = self.binary(op, target, one, span)
                if not isinstance(node, ty.Apply) or node.type != target.type:
                    raise self.mismatch(shown(target.type), ty.INT, span)
                return ty.Update(target.type, target, node.operation, one, after, span=span)
            case c.Display():
                help_line = "give it to a variable of that type: `float[2] a = {1, 2};`"
                message = "of which type the values in braces are is not known here"
                raise self.report.error("streamit-type", message, span, help_line)
            case _:
                assert_never(value)

    def part(self, value: ty.Expr, name: str, span: Span | None) -> ty.Expr:
        """`p.x`."""
        if not isinstance(value.type, ty.Struct):
            many = name in ("length", "size") and isinstance(value.type, ty.Vector)
            help_line = "name what its declaration names: `int[N] a` has `N` items" if many else None
            raise self.report.error("streamit-type", f"`{shown(value.type)}` has no parts", span, help_line)
        index = value.type.index(name)
        if index is None:
            known = [part for part, _ in value.type.fields]
            message = f"`{shown(value.type)}` has no part `{name}`"
            raise self.report.error("streamit-unknown-name", message, span, closest(name, known))
        type_ = value.type.fields[index][1]
        if isinstance(value, ty.Constant):
            return ty.Constant(type_, value.value[index], span=span)
        return ty.StructPart(type_, value, index, span=span)

    def operands(self, left: c.Expr, right: c.Expr) -> tuple[ty.Expr, ty.Expr]:
        """Two operands; a literal beside a float or a double is one, a character beside a number is one, too."""
        a, b = (None if isinstance(each, s.Int | s.Float) else self.expr(each) for each in (left, right))
        a = self.expr(left) if a is None and b is None else a
        found_a = a if a is not None else self.literal(left, b.type if b else None) or self.expr(left)
        found_b = b if b is not None else self.literal(right, found_a.type) or self.expr(right)
        if found_b.type in RANKS or character(right):
            found_a = self.literal(left, ty.INT) or found_a
        if found_a.type in RANKS:
            found_b = self.literal(right, ty.INT) or found_b
        return found_a, found_b

    def whole(self, number: int, span: Span | None) -> int:
        """A literal as an int; hexadecimal ones wrap."""
        if number > 0xFFFFFFFF:
            raise self.out_of_range(number, span)
        return constants.apply("i32.wrap", (t.I64,), ty.INT, (number,))

    def real(self, number: float, span: Span | None) -> ty.Expr:
        """A literal as a float."""
        return ty.Constant(ty.FLOAT, constants.apply("f32", (t.F64,), ty.FLOAT, (float(number),)), span=span)

    def out_of_range(self, number: int, span: Span | None) -> Failed:
        """The error that a literal is no int."""
        help_line = None if number > 0xFFFFFFFF else f"as bits of an int: `0x{number:x}`"
        message = f"{number} is out of the range of `int`"
        return self.report.error("streamit-number", message, span, help_line)

    def name(self, name: str, span: Span | None) -> ty.Expr:
        """A variable, a field, a parameter, or pi."""
        found = self.lookup(name)
        if found is not None:
            return evolve(found, span=span)
        if name in ("pi", "PI"):
            return ty.Constant(ty.FLOAT, PI, span=span)
        known = [n for names in self.scopes for n in names] + [*self.around.fields, *self.around.params]
        help_line = (
            called(name) or _OTHERWISE.get(name) or closest(name, known) or f"declare it: `int {name};`"
        )
        raise self.report.error("streamit-unknown-name", f"unknown name `{name}`", span, help_line)

    def unary(self, op: str, inner: c.Expr, span: Span | None) -> ty.Expr:
        """`-e`, `+e`, `~e`, `!e`."""
        if op == "!":
            return self.unary_not(self.cond(inner), span)
        smallest = op == "-" and inner == s.Int(1 << 31)
        node = ty.Constant(ty.INT, -(1 << 31), span=span) if smallest else self.expr(inner)
        if node.type == ty.COMPLEX and op in "+-":
            return node if op == "+" else self.fold(ty.Apply(ty.COMPLEX, "complex.neg", (node,), span=span))
        if op in "+-" and self.is_vector(node):
            helper = self.vector_function("neg", node)
            assert helper is not None  # noqa: S101 - vectors have it
            return node if op == "+" else ty.Call(helper.result, helper.name, (node,), span=span)
        if node.type not in RANKS or (op == "~" and node.type not in (ty.INT, ty.BIT)):
            raise self.mismatch(shown(node.type), ty.INT, span)
        if op == "+":
            return node
        if op == "~" and node.type == ty.BIT:
            return self.fold(ty.Apply(ty.BIT, "^", (node, ty.Constant(ty.BIT, 1, span=span)), span=span))
        node = self.convert(node, ty.INT, span) if node.type == ty.BIT else node
        name = "~" if op == "~" else "neg%" if node.type == ty.INT else "neg"
        return self.fold(ty.Apply(node.type, name, (node,), span=span))

    def writable(self, place: c.Expr) -> ty.Expr:
        """A place that may be changed."""
        node = self.expr(place)
        base = root(node)
        if (
            self.around.alone
            and isinstance(base, ty.Local)
            and not any(base in x.values() for x in self.scopes)
        ):
            base = ty.Param(base.type, base.key.partition("#")[0])
        elif isinstance(node, ty.Field | ty.Local) or (
            isinstance(node, ty.At | ty.StructPart) and isinstance(base, ty.Field | ty.Local)
        ):
            return node
        if isinstance(base, ty.Param) and self.place is CodePlace.BUILD and base.name in self.around.params:
            return node
        if isinstance(base, ty.Param):
            help_line = "what is around a stream is constant in it: copy it to a variable"
            what = f"`{base.name.rstrip('#')}`, declared around this stream,"
            raise self.report.error("streamit-place", f"{what} cannot be changed", place.span, help_line)
        message, help_line = (
            "only variables and their parts can be changed",
            "if they are compared, write `==`",
        )
        raise self.report.error("streamit-place", message, place.span, help_line)

    def assign(self, place: ty.Expr, op: str, value: c.Expr, span: Span | None) -> ty.Expr:
        """`place = e`, `place op= e`."""
        if not op:
            return ty.Update(place.type, place, None, self.expr(value, place.type), span=span)
        operand = self.literal(value, place.type) or self.expr(value)
        node = self.binary(op, ty.Old(place.type, span=place.span), operand, span)
        match node:
            case ty.Apply(place.type, operation, (ty.Old(), other)):
                return ty.Update(place.type, place, operation, other, span=span)
            case _ if node.type == place.type:
                pass
            case _ if place.type in RANKS and node.type in RANKS:
                node = self.cast(place.type, node, span)
            case _:
                raise self.mismatch(shown(node.type), place.type, value.span)
        return ty.Update(place.type, place, None, node, span=span)

    # -- calls

    def arity(self, name: str, args: Sequence[c.Expr], count: int, span: Span | None) -> None:
        """Refuses another number of arguments."""
        if len(args) != count:
            raise self.report.error("streamit-arguments", counted_arguments(name, count, len(args)), span)

    def call(self, call: c.Call) -> ty.Expr:
        """A function of the filter, of the library, or of the operator language; or the next item."""
        name, args, span = call.name, call.args, call.span
        helper = self.helper(name)
        if helper is not None:
            self.arity(helper.name, args, len(helper.params), span)
            found = tuple(self.expr(a, p.type) for a, p in zip(args, helper.params, strict=True))
            helper = self.around.sized(helper, found)
            return ty.Call(helper.result, helper.name, found, self.changes(call, helper, found), span=span)
        if name in LOADS:
            return self.load(name, args, span)
        if name in COMPLEX_FUNCTIONS and len(args) == 1:
            node = self.expr(args[0])
            if node.type == ty.COMPLEX or name == "arg":
                node = self.convert(node, ty.COMPLEX, span)
                return self.fold(ty.Apply(COMPLEX_FUNCTIONS[name], f"complex.{name}", (node,), span=span))
        if name in REAL_FUNCTIONS or name in COMPUTED or name in SINGLE:
            return self.real_function(call)
        if name in NUMBER_FUNCTIONS:
            return self.number_function(call)
        if name == "iter" and self.around.counter is not None:
            self.arity(name, args, 0, span)
            if self.place not in (CodePlace.WORK, CodePlace.HELPER):
                raise self.misplaced("`iter`", span)
            return ty.Field(ty.INT, self.around.counter, span=span)
        if name == "random" and self.around.generator is not None and not self.around.outside:
            self.arity(name, args, 0, span)
            return self.random(self.around.generator, span)
        if name in VECTORS and name in self.around.structs:
            return self.vector(name, call)
        if name in STREAM_WORDS:
            return self.item(call)
        signature = self.functions(name)
        if signature is None:
            raise self.unknown_function(call)
        if self.place in (CodePlace.BUILD, CodePlace.FIELD):
            help_line = "functions of the operator language are for the code of filters"
            raise self.misplaced(f"`{name}`", span, help_line)
        return self.function(call, signature)

    def helper(self, name: str) -> ty.Helper | None:
        """The function of that name: of the same block, or of the filter, or of another block."""
        for whole in (f"{self.block_name}.{name}", name) if self.block_name else (name,):
            found = self.around.helpers.get(whole) or self.around.shared(whole)
            if found is not None:
                return found
        return None

    def load(self, name: str, args: Sequence[c.Expr], span: Span | None) -> ty.Expr:
        """`init_array_1D_int("taps.txt", n)`; for a filter it is a parameter, because it is read when the graph is made."""
        self.arity(name, args, 2, span)
        path = self.expr(args[0], ty.TEXT)
        if not isinstance(path, ty.Constant):
            raise self.report.error("streamit-constant", "the name of a file is written as it is", path.span)
        type_ = ty.Vector(LOADS[name], self.closed(self.expr(args[1], ty.INT), args[1].span))
        load = ty.Load(type_, path.value, span=span)
        if self.runs:
            return load
        captures = self.around.captures
        known = next((x for x in captures.values() if x.value == load), None)
        if known is None:
            known = ty.Parameter(fresh("file#", set(captures)), type_, load, span=span)
            captures[known.name] = known
        return ty.Param(type_, known.name, span=span)

    def changes(self, call: c.Call, helper: ty.Helper, args: Sequence[ty.Expr]) -> tuple[int, ...]:
        """The arguments, by number, that are arrays which the function changes; others are its own."""
        found: list[int] = []
        for i in sorted(helper.changes):
            base = root(args[i])
            if isinstance(base, ty.Param):
                self.writable(call.args[i])
            if isinstance(base, ty.Field | ty.Local):
                found.append(i)
                others = (arg for j, arg in enumerate(args) if j != i and isinstance(arg.type, ty.Vector))
                if named(base) in (named(root(other)) for other in others):
                    what = named(base).partition("#")[0]
                    message = f"`{what}` is handed twice to `{call.name}`, which changes it"
                    raise self.report.error("streamit-alias", message, call.span, "hand over a copy")
        return tuple(found)

    def random(self, generator: str, span: Span | None) -> ty.Expr:
        """A random number from 0 to 1: what the state of the generator says, which takes its next step."""
        state = ty.Field(t.I64, generator, span=span)
        step = ty.Apply(t.I64, "random.next", (state,), span=span)
        before = ty.Update(t.I64, state, None, step, after=True, span=span)
        return ty.Apply(ty.FLOAT, "random.value", (before,), span=span)

    def vector(self, name: str, call: c.Call) -> ty.Expr:
        """`float3(x, y, z)`."""
        self.arity(name, call.args, VECTORS[name], call.span)
        items = [self.expr(arg, ty.FLOAT) for arg in call.args]
        type_ = self.type(c.TypeName(name, span=call.span))
        assert isinstance(type_, ty.Struct)  # noqa: S101 - vectors are
        return self.make(type_, items, call.span)

    def real_function(self, call: c.Call) -> ty.Expr:
        """A function of floats, which gives a double where one is given."""
        name, args, span = SINGLE.get(call.name, call.name), call.args, call.span
        self.arity(call.name, args, REAL_FUNCTIONS.get(name) or COMPUTED[name], span)
        nodes = tuple(self.expr(a) for a in args)
        wide = t.F64 if call.name == name and any(node.type == t.F64 for node in nodes) else ty.FLOAT
        real = tuple(self.convert(n, wide, a.span) for n, a in zip(nodes, args, strict=True))
        if name in REAL_FUNCTIONS:
            return self.fold(ty.Apply(wide, OF_C.get(name, name), real, span=span))
        doubles = tuple(self.convert(node, t.F64, node.span) for node in real)
        found = self.fold(ty.Apply(t.F64, f"real.{name}", doubles, span=span))
        return self.convert(found, wide, span)

    def number_function(self, call: c.Call) -> ty.Expr:
        """`abs`, `min`, `max` of ints or of floats."""
        self.arity(call.name, call.args, NUMBER_FUNCTIONS[call.name], call.span)
        nodes = [self.expr(a) for a in call.args]
        for node in nodes:
            if node.type not in RANKS:
                raise self.mismatch(shown(node.type), ty.FLOAT, node.span)
        common = max((ty.INT, *(node.type for node in nodes)), key=lambda type_: RANKS[type_])
        args = tuple(self.convert(node, common, node.span) for node in nodes)
        if call.name == "abs" and common == ty.INT:  # of the smallest int it is that number itself, as in C
            return ty.Apply(ty.INT, "abs", args, span=call.span)
        return self.fold(ty.Apply(common, call.name, args, span=call.span))

    def item(self, call: c.Call) -> ty.Expr:
        """`pop()`, `peek(i)`."""
        if call.name not in ("pop", "peek"):
            raise self.report.error("streamit-type", f"`{call.name}` has no value", call.span)
        if self.place not in (CodePlace.WORK, CodePlace.HELPER):
            raise self.misplaced(f"`{call.name}`", call.span, "take items in `work`")
        self.arity(call.name, call.args, 1 if call.name == "peek" else 0, call.span)
        if self.around.input == ty.VOID:
            raise self.report.error("streamit-type", "this filter has no input", call.span)
        if call.name == "pop":
            return ty.Pop(self.around.input, span=call.span)
        index = self.expr(call.args[0], ty.INT)
        if self.first_item:
            index = self.binary("-", index, ty.Constant(ty.INT, self.first_item, span=call.span), call.span)
        return ty.Peek(self.around.input, index, span=call.span)

    def function(self, call: c.Call, signature: tuple[tuple[t.Type, ...], t.Type]) -> ty.Function:
        """A call of a function of the operator language."""
        params, result = signature
        self.arity(call.name, call.args, len(params), call.span)
        args = tuple(self.expr(a, p) for a, p in zip(call.args, params, strict=True))
        return ty.Function(result, call.name, args, span=call.span)

    def unknown_function(self, call: c.Call) -> Failed:
        """The error that nothing bears the name."""
        if call.name in self.around.natives:
            message = "functions of other languages cannot be called from StreamIt"
            help_line = "write it here: `helper Name {...}`"
            return self.report.error("streamit-native", message, call.span, help_line)
        known = [*self.around.helpers, *REAL_FUNCTIONS, *COMPUTED, *NUMBER_FUNCTIONS, *STREAM_WORDS]
        block, dot, _ = call.name.partition(".")
        help_line = closest(call.name, [name for name in known if dot in name])
        if help_line is None and dot:
            help_line = f"`{block}` is neither a `helper` block nor a portal, which is a parameter: `portal<F> {block}`"
        if block in ("Math", "input", "output"):
            help_line = f"write `{call.name.rpartition('.')[2]}(...)`"
        help_line = "print with `println(x)`" if call.name in ("printf", "cout", "puts") else help_line
        if call.name == "assert":
            help_line = "there is none: print what is wrong, `if (x < 0) println(x);`"
        message = f"unknown function `{call.name}`"
        return self.report.error("streamit-unknown-function", message, call.span, help_line)


def called(name: str) -> str | None:
    """What to write where a function is written as if it were a type or a variable."""
    if name not in (*STREAM_WORDS, *REAL_FUNCTIONS, *COMPUTED, *NUMBER_FUNCTIONS):
        return None
    return f"`{name}` is a function: write `{name}({'' if name == 'pop' else '...'})`"


def counted_arguments(name: str, wanted: int, given: int) -> str:
    """How many arguments something takes, and how many it was given."""
    return f"`{name}` takes {wanted} argument{'s' * (wanted != 1)}, {given} given"
