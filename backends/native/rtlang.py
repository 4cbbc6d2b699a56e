"""The language of the runtime library: Python's syntax, machine types, to LLVM (`runtime/*.rt`).

A file has constants (`SIZE = 16`), records (`class Arena:` with fields of machine types) and functions whose
parameters and results have types: `i1 i8 i16 i32 i64 i128 f64`, pointers `p8 p16 p32 p64 p128`, and the name of a
record, which is a pointer to it; the tables of `tables.py` are pointers, and so is the name of a function. Operators
take operands of one type; a whole number fits any. `>>` fills with zeros, comparisons are signed; conversions and
everything else is a call (see `_Body.builtin`). A file may be a template: the names in `given` are constants, `renamed`
functions stand for those of the host, and all names of the file get a suffix.
"""

# ruff: noqa: RET503 - `fail` does not return

from __future__ import annotations

import ast
import re
import threading
from functools import cache
from importlib.resources import files
from struct import pack, unpack
from typing import TYPE_CHECKING, Final, NoReturn

from backends.native.ir import RARE, Builder, FunctionText
from backends.native.tables import TABLES
from river.classes import define, field, frozen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable

BITS: Final = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "i128": 128}
ITEM: Final = {"p8": "i8", "p16": "i16", "p32": "i32", "p64": "i64", "p128": "i128"}
BINARY: Final[dict[type[ast.operator], str]] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "shl", ast.RShift: "lshr",
}  # fmt: skip
COMPARE: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge",
}  # fmt: skip
EXTERN: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "malloc": (("i64",), "p8"), "free": (("p8",), "void"), "realloc": (("p8", "i64"), "p8"),
    "aligned_alloc": (("i64", "i64"), "p8"),
    "memcmp": (("p8", "p8", "i64"), "i32"), "memmove": (("p8", "p8", "i64"), "p8"),
    "memmem": (("p8", "i64", "p8", "i64"), "p8"), "madvise": (("p8", "i64", "i32"), "i32"),
    "abort": ((), "void"), "longjmp": (("p8", "i32"), "void"),
    "pthread_attr_init": (("p8",), "i32"), "pthread_attr_setstacksize": (("p8", "i64"), "i32"),
    "pthread_attr_destroy": (("p8",), "i32"), "pthread_create": (("p8", "p8", "p8", "p8"), "i32"),
    "pthread_join": (("i64", "p8"), "i32"),
}  # fmt: skip
ATTRIBUTES: Final = {
    "inline": "alwaysinline nounwind", "cold": "noinline cold nounwind", "plain": "nounwind",
    "apart": "noinline nounwind", "once": "noinline optnone nounwind",
}  # fmt: skip
"""Of functions by kind; `once`: called at most once for a batch, so that optimising it pays nobody."""


class RuntimeSourceError(Exception):
    """A mistake in a source of the runtime library, with its file and line. It is ours, never the user's."""


@frozen
class Signature:
    """The types of a function."""

    params: tuple[str, ...]
    result: str


@define(eq=False, repr=False)
class Unit:
    """A compiled file: signatures and texts of its functions, records (size, fields with type and offset)."""

    signatures: dict[str, Signature] = field(factory=dict[str, Signature])
    functions: dict[str, FunctionText] = field(factory=dict[str, FunctionText])
    records: dict[str, tuple[int, dict[str, tuple[str, int]]]] = field(
        factory=dict[str, tuple[int, dict[str, tuple[str, int]]]]
    )
    constants: dict[str, int] = field(factory=dict[str, int])


@frozen(eq=False, repr=False)
class Written:
    """A function of a source as it is written: its kind is one of `ATTRIBUTES`. Its body is parsed when it is wanted."""

    name: str
    kind: str
    params: tuple[tuple[str, str], ...]
    result: str | None
    line: int
    lines: int
    _body: ast.FunctionDef | str

    def tree(self) -> ast.FunctionDef:
        """The parsed function."""
        return self._body if isinstance(self._body, ast.FunctionDef) else _parsed(self._body, self.line)


_parsing = threading.RLock()


def parsed(text: str, name: str = "<text>") -> ast.Module:
    """A text of this language as a tree, one thread at a time: Python 3.11 counts the depth of all threads' trees as one."""
    with _parsing:
        return ast.parse(text, name)


@cache
def _parsed(text: str, line: int) -> ast.FunctionDef:
    (found,) = parsed("\n" * (line - 1) + text).body
    if not isinstance(found, ast.FunctionDef):
        raise RuntimeSourceError(f"line {line}: not a function")
    return found


@frozen(eq=False, repr=False)
class _Text:
    """A source: its constants and records, and its functions."""

    rest: tuple[ast.stmt, ...]
    functions: tuple[Written, ...]


_FUNCTION: Final = re.compile(
    r"^(?:@(\w+)\n)?def (\w+)\(([^)]*)\)(?: -> (\w+))?:\n(?: .*\n|\n)*", re.MULTILINE
)
_PARAM: Final = re.compile(r"(\w+): (\w+)")


@cache
def _folder() -> Traversable:
    return files("backends.native.runtime")


@cache
def _file(name: str) -> _Text:
    """A file in parts. Only what is not a function is parsed: few functions of a file are wanted at a time."""
    text = _folder().joinpath(name).read_text(encoding="utf-8")
    found: list[Written] = []
    rest: list[str] = []
    at, line = 0, 1
    for one in _FUNCTION.finditer(text):
        whole, kind, function, params, result = one.group(0, 1, 2, 3, 4)
        between, at = text[at : one.start()], one.end()
        line += between.count("\n")
        rest.append(between)
        given = tuple(_PARAM.findall(params))
        found.append(
            Written(function, kind or "plain", given, result, line, whole.strip().count("\n"), whole)
        )
        line += whole.count("\n")
    rest.append(text[at:])
    return _Text(tuple(parsed("".join(rest), name).body), tuple(found))


def written(name: str) -> tuple[Written, ...]:
    """The functions of a file."""
    return _file(name).functions


def compile_file(
    name: str, known: Unit, *, given: Mapping[str, int] | None = None,
    renamed: Mapping[str, tuple[str, Signature]] | None = None, suffix: str = "",
) -> Unit:  # fmt: skip
    """`runtime/<name>` compiled; it may use what `known` has. A function is compiled when its text is asked for.

    Raises: RuntimeSourceError, then and now.
    """
    return _compiled(_file(name), name, known, given or {}, renamed or {}, suffix)


def compile_tree(tree: ast.Module, name: str, known: Unit) -> Unit:
    """A parsed source compiled.

    Raises: RuntimeSourceError.
    """
    functions: list[Written] = []
    for item in tree.body:
        if isinstance(item, ast.FunctionDef):
            params = tuple((arg.arg, _named(arg.annotation)) for arg in item.args.args)
            result = None if item.returns is None else _named(item.returns)
            kinds = [each.id for each in item.decorator_list if isinstance(each, ast.Name)]
            kind = kinds[0] if kinds else "plain"
            functions.append(Written(item.name, kind, params, result, item.lineno, 0, item))
    rest = tuple(item for item in tree.body if not isinstance(item, ast.FunctionDef))
    unit = _compiled(_Text(rest, tuple(functions)), name, known, {}, {}, "")
    for function in unit.functions.values():
        _ = function.text
    return unit


def _named(node: ast.expr | None) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _compiled(
    text: _Text, name: str, known: Unit, given: Mapping[str, int],
    renamed: Mapping[str, tuple[str, Signature]], suffix: str,
) -> Unit:  # fmt: skip
    unit = Unit(dict(known.signatures), {}, dict(known.records), {**known.constants, **given})
    names = {alias: target for alias, (target, _) in renamed.items()}
    unit.signatures.update(dict(renamed.values()))
    own = _Source(name, unit, names)
    for item in text.rest:
        match item:
            case ast.Assign([ast.Name(target)], value):
                unit.constants.setdefault(target, own.constant(value))
            case ast.ClassDef(record, body=body):
                own.record(record, body)
            case ast.Expr(ast.Constant()):
                pass
            case _:
                own.fail(item, "only constants, classes and functions stand here")
    for written in text.functions:
        target = names.setdefault(written.name, written.name + suffix)
        params = tuple(own.type(type_, written.line) for _, type_ in written.params)
        result = "void" if written.result is None else own.type(written.result, written.line)
        unit.signatures[target] = Signature(params, result)
    for written in text.functions:
        target = names[written.name]
        if target in unit.functions:
            own.fail(written.line, f"there are two functions `{written.name}`")

        def make(written: Written = written, target: str = target) -> FunctionText:
            return _Body(own, written.tree(), target).compiled(written.kind)

        unit.functions[target] = FunctionText(target, make=make)
    return unit


def llvm(type_: str) -> str:
    """The LLVM type of one of the types above."""
    return type_ if type_ in BITS or type_ == "void" else "double" if type_ == "f64" else "ptr"


@define(eq=False, repr=False)
class _Source:
    name: str
    unit: Unit
    names: dict[str, str]

    def fail(self, node: ast.AST | int, message: str) -> NoReturn:
        line = node if isinstance(node, int) else getattr(node, "lineno", 0)
        raise RuntimeSourceError(f"{self.name}:{line}: {message}")

    def constant(self, node: ast.expr) -> int:
        match node:
            case ast.Constant(int(value)):
                return value
            case ast.UnaryOp(ast.USub(), inner):
                return -self.constant(inner)
            case ast.Name(name) if name in self.unit.constants:
                return self.unit.constants[name]
            case ast.BinOp(left, ast.Mult(), right):
                return self.constant(left) * self.constant(right)
            case ast.BinOp(left, ast.Add(), right):
                return self.constant(left) + self.constant(right)
            case _:
                self.fail(node, "not a constant")

    def type(self, name: str, line: int) -> str:
        if not name:
            self.fail(line, "a type is missing")
        if name in BITS or name in ITEM or name == "f64" or name in self.unit.records:
            return name
        self.fail(line, f"`{name}` is no type")

    def record(self, name: str, body: list[ast.stmt]) -> None:
        offset, align = 0, 8
        fields: dict[str, tuple[str, int]] = {}
        self.unit.records[name] = (0, fields)
        for item in body:
            match item:
                case ast.AnnAssign(ast.Name(label), ast.Subscript(ast.Name(inner), count)):
                    number = self.constant(count)
                    pointer = next(p for p, i in ITEM.items() if i == inner)
                    size = BITS[inner] // 8
                    align = max(align, size)
                    offset = -(-offset // size) * size
                    fields[label] = ("&" + pointer, offset)
                    offset += number * size
                case ast.AnnAssign(ast.Name(label), annotation):
                    type_ = self.type(_named(annotation), item.lineno)
                    size = BITS[type_] // 8 if type_ in BITS else 8
                    align = max(align, size)
                    offset = -(-offset // size) * size
                    fields[label] = (type_, offset)
                    offset += size
                case ast.Expr(ast.Constant()):
                    pass
                case _:
                    self.fail(item, "a record has fields only")
        self.unit.records[name] = (-(-offset // align) * align, fields)


@define(eq=False, repr=False)
class _Value:
    type: str
    text: str


class _Body:
    def __init__(self, source: _Source, tree: ast.FunctionDef, name: str) -> None:
        self.source, self.tree, self.name = source, tree, name
        self.signature = source.unit.signatures[name]
        self.b = Builder()
        self.vars: dict[str, tuple[str, str]] = {}
        self.loops: list[tuple[str, str]] = []

    def fail(self, node: ast.AST, message: str) -> NoReturn:
        self.source.fail(node, message)

    def compiled(self, kind: str) -> FunctionText:
        params: list[str] = []
        for arg, type_ in zip(self.tree.args.args, self.signature.params, strict=True):
            params.append(f"{llvm(type_)} %a.{arg.arg}")
            self.vars[arg.arg] = (type_, self.b.slot(llvm(type_)))
            self.b.do(f"store {llvm(type_)} %a.{arg.arg}, ptr {self.vars[arg.arg][1]}")
        self.block(self.tree.body)
        if not self.b.ended:
            if self.signature.result != "void":
                self.b.end("unreachable") if self.b.block.startswith("after") else self.fail(
                    self.tree, "no result at the end"
                )
            else:
                self.b.end("ret void")
        head = f"define internal {llvm(self.signature.result)} @{self.name}({', '.join(params)}) {ATTRIBUTES[kind]}"
        return self.b.finish(self.name, head)

    # ------------------------------------------------------------------------------------------- statements

    def block(self, items: list[ast.stmt]) -> None:
        for item in items:
            self.statement(item)

    def statement(self, item: ast.stmt) -> None:
        b = self.b
        match item:
            case ast.Expr(ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(ast.Call() as call):
                self.call(call, None)
            case ast.Assign([target], value):
                self.assign(target, value)
            case ast.AugAssign(target, operator, value):
                if isinstance(target, ast.Name):
                    self.assign(target, ast.copy_location(ast.BinOp(_loaded(target), operator, value), item))
                else:
                    type_, address = self.place(target)
                    old = _Value(type_, b.op(f"load {llvm(type_)}, ptr {address}"))
                    new = self.binary(item, operator, old, self.value(value, type_))
                    b.do(f"store {llvm(type_)} {new.text}, ptr {address}")
            case ast.If(test, body, orelse) if (known := self.known(test)) is not None:
                self.block(body if known else orelse)
            case ast.If(test, body, orelse):
                then, other, after = b.fresh("then"), b.fresh("else"), b.fresh("join")
                self.condition(test, then, other if orelse else after)
                b.at(then)
                self.block(body)
                open_ = not b.ended
                if open_:
                    b.go(after)
                if orelse:
                    b.at(other)
                    self.block(orelse)
                    open_ = open_ or not b.ended
                    if not b.ended:
                        b.go(after)
                if open_ or not orelse:
                    b.at(after)
            case ast.While(test, body):
                self.loop(test, body)
            case ast.Return(value):
                if value is None:
                    b.end("ret void")
                else:
                    result = self.wanted(value, self.signature.result)
                    b.end(f"ret {llvm(self.signature.result)} {result}")
            case ast.Break():
                b.go(self.loops[-1][1])
            case ast.Continue():
                b.go(self.loops[-1][0])
            case _:
                self.fail(item, f"{type(item).__name__} is not part of the language")

    def known(self, test: ast.expr) -> bool | None:
        """What a condition of constants alone is, so that the other side is not compiled."""
        constants = self.source.unit.constants
        match test:
            case ast.Name(name) if name in constants and name not in self.vars:
                return constants[name] != 0
            case ast.Compare(ast.Name(name), [ast.Eq()], [ast.Constant(int(value))]) if (
                name in constants and name not in self.vars
            ):
                return constants[name] == value
            case ast.BoolOp(ast.And(), values) if any(self.known(value) is False for value in values):
                return False
            case _:
                return None

    def loop(self, test: ast.expr, body: list[ast.stmt]) -> None:
        b = self.b
        again, inside = b.fresh("loop"), b.fresh("body")
        endless = isinstance(test, ast.Constant) and test.value is True
        leaves = any(isinstance(n, ast.Break) for item in body for n in ast.walk(item))
        after = b.fresh("after" if endless and not leaves else "left")
        b.at(again)
        if endless:
            b.go(inside)
        else:
            self.condition(test, inside, after)
        b.at(inside)
        self.loops.append((again, after))
        self.block(body)
        self.loops.pop()
        if not b.ended:
            b.go(again)
        b.at(after)

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            known = self.vars.get(target.id)
            found = self.value(value, known[0] if known else None)
            if found.type == "literal":
                found = _Value("i64", found.text)
            if known is None:
                known = self.vars[target.id] = (found.type, self.b.slot(llvm(found.type)))
            if known[0] != found.type:
                self.fail(target, f"`{target.id}` is {known[0]}, not {found.type}")
            self.b.do(f"store {llvm(known[0])} {found.text}, ptr {known[1]}")
            return
        type_, address = self.place(target)
        text = self.wanted(value, type_)
        self.b.do(f"store {llvm(type_)} {text}, ptr {address}")

    # ------------------------------------------------------------------------------------------ expressions

    def place(self, node: ast.expr) -> tuple[str, str]:
        """The type and the address of a field or an item."""
        match node:
            case ast.Attribute(value, name):
                record = self.value(value, None)
                if record.type not in self.source.unit.records:
                    self.fail(node, f"{record.type} has no fields")
                fields = self.source.unit.records[record.type][1]
                if name not in fields:
                    self.fail(node, f"{record.type} has no field `{name}`")
                type_, offset = fields[name]
                return type_, self.b.op(f"getelementptr inbounds i8, ptr {record.text}, i64 {offset}")
            case ast.Subscript(value, index):
                base = self.value(value, None)
                if base.type not in ITEM:
                    self.fail(node, f"{base.type} has no items")
                at = self.wanted(index, "i64")
                item = ITEM[base.type]
                return item, self.b.op(f"getelementptr inbounds {item}, ptr {base.text}, i64 {at}")
            case _:
                self.fail(node, "not a place")

    def wanted(self, node: ast.expr, type_: str) -> str:
        found = self.value(node, type_)
        if found.type == "literal" and type_ in BITS:
            return found.text
        if found.type == "literal" and type_ != "f64" and found.text == "0":
            return "null"
        if found.type != type_:
            self.fail(node, f"{type_} is wanted, this is {found.type}")
        return found.text

    def condition(self, node: ast.expr, then: str, other: str) -> None:
        match node:
            case ast.BoolOp(operator, values):
                for value in values[:-1]:
                    following = self.b.fresh("and")
                    if isinstance(operator, ast.And):
                        self.condition(value, following, other)
                    else:
                        self.condition(value, then, following)
                    self.b.at(following)
                self.condition(values[-1], then, other)
            case ast.UnaryOp(ast.Not(), value):
                self.condition(value, other, then)
            case ast.Call(ast.Name("rare"), [value]):
                self.b.branch(self.wanted(value, "i1"), then, other, rare=True)
            case _:
                self.b.branch(self.wanted(node, "i1"), then, other)

    def value(self, node: ast.expr, hint: str | None) -> _Value:
        b = self.b
        match node:
            case ast.Constant(bool(value)):
                return _Value("i1", "true" if value else "false")
            case ast.Constant(int(value)):
                return _Value("literal", str(value))
            case ast.Constant(float(value)):
                return _Value("f64", f"0x{unpack('<Q', pack('<d', value))[0]:016X}")
            case ast.Name(name) if name in self.vars:
                type_, slot = self.vars[name]
                return _Value(type_, b.op(f"load {llvm(type_)}, ptr {slot}"))
            case ast.Name(name) if name in self.source.unit.constants:
                return _Value("literal", str(self.source.unit.constants[name]))
            case ast.Name(name) if (
                target := self.source.names.get(name, name)
            ) in self.source.unit.signatures:
                b.calls.add(target)
                return _Value("p8", f"@{target}")
            case ast.Name(name) if name in TABLES:
                self.b.calls.add(name)
                return _Value(TABLES[name][0], f"@{name}")
            case ast.Attribute() | ast.Subscript():
                type_, address = self.place(node)
                if type_.startswith("&"):
                    return _Value(type_[1:], address)
                return _Value(type_, b.op(f"load {llvm(type_)}, ptr {address}"))
            case ast.UnaryOp(ast.USub(), value):
                inner = self.value(value, hint)
                if inner.type == "literal":
                    return _Value("literal", str(-int(inner.text)))
                return _Value(inner.type, b.op(f"sub {inner.type} 0, {inner.text}"))
            case ast.BinOp(left, operator, right):
                first, second = self.pair(left, right, hint)
                return self.binary(node, operator, first, second)
            case ast.Compare(left, [operator], [right]):
                first, second = self.pair(left, right, None)
                kind = "i64" if first.type == "literal" else first.type
                if kind == "f64":
                    name = {"eq": "oeq", "ne": "une"}.get(
                        COMPARE[type(operator)], "o" + COMPARE[type(operator)][1:]
                    )
                    return _Value("i1", b.op(f"fcmp {name} double {first.text}, {second.text}"))
                if kind not in BITS and second.text == "0":
                    second = _Value(kind, "null")
                return _Value(
                    "i1", b.op(f"icmp {COMPARE[type(operator)]} {llvm(kind)} {first.text}, {second.text}")
                )
            case ast.IfExp(test, then, other):
                first, second = self.pair(then, other, hint)
                kind = (hint if hint in BITS else "i64") if first.type == "literal" else first.type
                test_text = self.wanted(test, "i1")
                return _Value(
                    kind,
                    b.op(f"select i1 {test_text}, {llvm(kind)} {first.text}, {llvm(kind)} {second.text}"),
                )
            case ast.Call():
                return self.call(node, hint)
            case _:
                self.fail(node, f"{type(node).__name__} is not part of the language")

    def pair(self, left: ast.expr, right: ast.expr, hint: str | None) -> tuple[_Value, _Value]:
        first, second = self.value(left, hint), self.value(right, hint)
        if first.type == "literal" and second.type != "literal":
            first = _Value(second.type, first.text if second.type in BITS or first.text != "0" else "null")
        elif second.type == "literal" and first.type != "literal":
            second = _Value(first.type, second.text)
        if first.type != second.type:
            self.fail(left, f"operands are {first.type} and {second.type}")
        return first, second

    def binary(self, node: ast.AST, operator: ast.operator, first: _Value, second: _Value) -> _Value:
        name = BINARY.get(type(operator))
        if name is None:
            self.fail(node, f"{type(operator).__name__} is not part of the language")
        kind = "i64" if first.type == "literal" else first.type
        if second.type not in (first.type, "literal"):
            self.fail(node, f"operands are {first.type} and {second.type}")
        if kind == "f64":
            if name not in ("add", "sub", "mul"):
                self.fail(node, "no such operation on floats")
            return _Value(kind, self.b.op(f"f{name} double {first.text}, {second.text}"))
        if kind not in BITS:
            self.fail(node, "arithmetic of pointers is `offset`")
        return _Value(kind, self.b.op(f"{name} {kind} {first.text}, {second.text}"))

    def call(self, node: ast.Call, hint: str | None) -> _Value:
        if not isinstance(node.func, ast.Name):
            self.fail(node, "only functions are called")
        name, args = node.func.id, node.args
        target = self.source.names.get(name, name)
        signature = self.source.unit.signatures.get(target)
        if signature is None and name in EXTERN:
            target, signature = name, Signature(*EXTERN[name])
        if signature is None:
            return self.builtin(node, name, args)
        if len(args) != len(signature.params):
            self.fail(node, f"`{name}` takes {len(signature.params)} arguments")
        texts = [f"{llvm(p)} {self.wanted(a, p)}" for a, p in zip(args, signature.params, strict=True)]
        return _Value(signature.result, self.b.call(llvm(signature.result), target, texts))

    def builtin(self, node: ast.Call, name: str, args: list[ast.expr]) -> _Value:
        """Conversions (sign of i32 and wider kept by i64, i128; u64, u128 fill with zeros), and single instructions."""
        b = self.b
        match name, args:
            case (("i8" | "i16" | "i32" | "i64" | "i128" | "u64" | "u128" | "f64"), [arg]):
                return self.convert(node, name, self.value(arg, None))
            case (("p8" | "p16" | "p32" | "p64" | "p128"), [arg]):
                return self.pointer(name, self.value(arg, None))
            case _, [arg] if name in self.source.unit.records:
                return self.pointer(name, self.value(arg, None))
            case "sizeof", [ast.Name(record)]:
                return _Value("literal", str(self.source.unit.records[record][0]))
            case "offset", [pointer, count]:
                base = self.value(pointer, None)
                return _Value(
                    base.type,
                    b.op(f"getelementptr inbounds i8, ptr {base.text}, i64 {self.wanted(count, 'i64')}"),
                )
            case (("ult" | "ule"), [first, second]):
                x, y = self.pair(first, second, None)
                return _Value("i1", b.op(f"icmp {name} {x.type} {x.text}, {y.text}"))
            case (("udiv" | "urem" | "ashr"), [first, second]):
                x, y = self.pair(first, second, None)
                return _Value(x.type, b.op(f"{name} {x.type} {x.text}, {y.text}"))
            case (("clz" | "ctz"), [arg]):
                full = {"clz": "ctlz", "ctz": "cttz"}[name]
                return _Value(
                    "i64", b.op(f"call i64 @llvm.{full}.i64(i64 {self.wanted(arg, 'i64')}, i1 false)")
                )
            case "reversed", [arg]:
                return _Value("i64", b.op(f"call i64 @llvm.bswap.i64(i64 {self.wanted(arg, 'i64')})"))
            case "bits", [arg]:
                return _Value("i64", b.op(f"bitcast double {self.wanted(arg, 'f64')} to i64"))
            case "single", [arg]:
                narrow = b.op(f"fptrunc double {self.wanted(arg, 'f64')} to float")
                return _Value("f64", b.op(f"fpext float {narrow} to double"))
            case "float_of", [arg]:
                return _Value("f64", b.op(f"bitcast i64 {self.wanted(arg, 'i64')} to double"))
            case "likely", [arg]:
                return _Value("i1", b.op(f"call i1 @llvm.expect.i1(i1 {self.wanted(arg, 'i1')}, i1 true)"))
            case "atomic_add", [pointer, number]:
                place, more = self.wanted(pointer, "p64"), self.wanted(number, "i64")
                return _Value("i64", b.op(f"atomicrmw add ptr {place}, i64 {more} seq_cst"))
            case "ranged", [pointer, ranges, ast.Constant(int(count))]:
                return _Value(
                    "i64", self.ranged(self.wanted(pointer, "p8"), self.wanted(ranges, "p8"), count)
                )
            case "room", [words]:
                return _Value("p8", b.slot(f"[{self.source.constant(words)} x i64]"))
            case "setjmp", [place]:
                return _Value("i32", b.op(f"call i32 @_setjmp(ptr {self.wanted(place, 'p8')}) returns_twice"))
            case "ask", [function, *given]:
                texts = [f"{llvm(one.type)} {one.text}" for one in (self.value(arg, "i64") for arg in given)]
                return _Value("i64", b.op(f"call i64 {self.wanted(function, 'p8')}({', '.join(texts)})"))
            case (("load64" | "load128"), [pointer, at]):
                base, kind = self.value(pointer, None), "i" + name.removeprefix("load")
                place = b.op(f"getelementptr inbounds i8, ptr {base.text}, i64 {self.wanted(at, 'i64')}")
                return _Value(kind, b.op(f"load {kind}, ptr {place}, align 1"))
            case "prefetch", [pointer]:
                b.do(
                    f"call void @llvm.prefetch.p0(ptr {self.value(pointer, None).text}, i32 0, i32 3, i32 1)"
                )
                return _Value("void", "")
            case "copy", [target, source, count]:
                to, from_ = self.value(target, None).text, self.value(source, None).text
                b.do(
                    f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {from_}, i64 {self.wanted(count, 'i64')}, i1 false)"
                )
                return _Value("void", "")
            case "zero", [target, count]:
                to = self.value(target, None).text
                b.do(
                    f"call void @llvm.memset.p0.i64(ptr {to}, i8 0, i64 {self.wanted(count, 'i64')}, i1 false)"
                )
                return _Value("void", "")
            case _:
                self.fail(node, f"`{name}` of {len(args)} is not known")

    def ranged(self, data: str, ranges: str, number: int) -> str:
        """Of 32 bytes those that lie in one of some ranges {least, how many}, a bit each."""
        b, found = self.b, ""
        bytes_ = b.op(f"load <32 x i8>, ptr {data}, align 1")
        for i in range(number):
            least, count = (
                b.op(f"load i8, ptr {b.op(f'getelementptr inbounds i8, ptr {ranges}, i64 {2 * i + k}')}")
                for k in (0, 1)
            )
            lanes = [
                b.op(
                    f"shufflevector <32 x i8> {b.op(f'insertelement <32 x i8> poison, i8 {one}, i64 0')}, "
                    "<32 x i8> poison, <32 x i32> zeroinitializer"
                )
                for one in (least, count)
            ]
            inside = b.op(f"icmp ult <32 x i8> {b.op(f'sub <32 x i8> {bytes_}, {lanes[0]}')}, {lanes[1]}")
            found = b.op(f"or <32 x i1> {found}, {inside}") if found else inside
        return b.op(f"zext i32 {b.op(f'bitcast <32 x i1> {found} to i32')} to i64")

    def pointer(self, name: str, value: _Value) -> _Value:
        if value.type == "literal" and value.text == "0":
            return _Value(name, "null")
        if value.type in BITS:
            return _Value(name, self.b.op(f"inttoptr {value.type} {value.text} to ptr"))
        return _Value(name, value.text)

    def convert(self, node: ast.AST, name: str, value: _Value) -> _Value:
        to = {"u64": "i64", "u128": "i128"}.get(name, name)
        if value.type == "literal":
            whole = int(value.text)
            return _Value(to, str(whole % (1 << 64) if name == "u128" else whole))
        if to == "f64":
            return _Value(to, self.b.op(f"sitofp {value.type} {value.text} to double"))
        if value.type == "f64":
            self.fail(node, "floats are converted by `bits`")
        if value.type not in BITS:
            address = self.b.op(f"ptrtoint ptr {value.text} to i64")
            return self.convert(node, name, _Value("i64", address))
        here, there = BITS[value.type], BITS[to]
        if here == there:
            return _Value(to, value.text)
        if here > there:
            return _Value(to, self.b.op(f"trunc {value.type} {value.text} to {to}"))
        kind = "zext" if here < 32 or name.startswith("u") else "sext"
        return _Value(to, self.b.op(f"{kind} {value.type} {value.text} to {to}"))


def _loaded(target: ast.Name) -> ast.expr:
    return ast.copy_location(ast.Name(target.id, ast.Load()), target)


__all__ = [
    "ATTRIBUTES",
    "RARE",
    "RuntimeSourceError",
    "Signature",
    "Unit",
    "Written",
    "compile_file",
    "compile_tree",
    "llvm",
    "written",
]
