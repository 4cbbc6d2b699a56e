"""River-Sawzall run directly: the typed tree is interpreted, with Python's own values and exact fractions.

Independent of River IL: no operator language, no calculus. Values: int, float, str, bytes, bool; arrays are lists, maps dicts,
records dicts; an absent optional field is None, a variable without a value ABSENT.
"""

from __future__ import annotations

import copy
import math
import re
from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

from frontends.sawzall import typed as z
from river.lang import types as t

ABSENT = object()


class Undefined(Exception):  # noqa: N818
    pass


class Ended(Exception):  # noqa: N818
    """The record: something in a statement was undefined."""


class Leave(Exception):  # noqa: N818
    """Break, continue, return, result."""

    def __init__(self, word: str, value: Any = None) -> None:
        super().__init__(word)
        self.word, self.value = word, value


def wrap(type_: t.Type, value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if type_ == t.I64 and value >> 63 else value


def run(program: z.Program, records: list[dict[str, Any]]) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of every table, as tuples sorted by `repr`, and `undefined`: the lines at which records were given up."""
    return Machine(program).run(records)


class Machine:
    def __init__(self, program: z.Program) -> None:
        self.program = program
        self.items: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        self.statics: dict[int, Any] = {}
        self.lengths: list[int] = []  # of what is indexed, innermost last
        self.valued = 0  # how many `?{...}` of the function are open: there what is undefined leaves them
        for index, value in program.statics:
            self.statics[index] = self.value(value, self.statics)

    def run(self, records: list[dict[str, Any]]) -> dict[str, list[tuple[Any, ...]]]:
        undone = 0
        for record in records:
            env = {**self.statics, self.program.input: copy.deepcopy(record)}
            try:
                self.all(self.program.body, env)
            except Ended:
                undone += 1
            except Leave:  # `return`
                pass
        rows = {table.name: self.rows(i, table) for i, table in enumerate(self.program.tables)}
        return {name: sorted(found, key=repr) for name, found in rows.items()} | {"undefined": [()] * undone}

    # -- tables

    def rows(self, number: int, table: z.Table) -> list[tuple[Any, ...]]:
        width, size = len(table.index), len(table.value)
        groups: dict[Any, list[tuple[Any, ...]]] = defaultdict(list)
        for item in self.items[number]:
            groups[frozen(item[:width])].append(item)
        found: list[tuple[Any, ...]] = []
        for items in groups.values():
            index = items[0][:width]
            values = [item[width : width + size] for item in items]
            weights = [item[-1] for item in items]
            match table.kind:
                case "sum" | "mrcounter":
                    parts = zip(*values, strict=True)
                    types = [type_ for _, type_ in table.value]
                    found.append(
                        (*index, *(total(x, list(part)) for x, part in zip(types, parts, strict=True)))
                    )
                case "collection" | "text":
                    found += items
                case "recordio":
                    found += [(length(len(v.encode())) + v.encode(),) for (v,) in values]
                case "set" | "unique":
                    different = {frozen(v): v for v in values}
                    if table.kind == "unique":
                        found.append((*index, len(different)))
                    elif table.limit is None or len(different) <= table.limit:
                        found += [(*index, *v) for v in different.values()]
                case "maximum" | "minimum":
                    ranked = sorted(items, key=lambda i: (rank(i[-1]), rank(i[width : width + size])))
                    limit = table.limit or 0
                    best = ranked[-limit:] if table.kind == "maximum" else ranked[:limit]
                    found += best
                case "top":
                    sums = summed(table, values, weights)
                    sums.sort(key=lambda vw: (rank(vw[1], down=True), rank(vw[0])))
                    found += [(*index, *v, w) for v, w in sums[: table.limit]]
                case "quantile":
                    ordered, last = sorted(values, key=rank), (table.limit or 0) - 1
                    steps = (max(1, math.ceil(Fraction(i * len(ordered), last))) for i in range(last + 1))
                    found += [(*index, *ordered[step - 1]) for step in steps]
                case "sample" if len(values) <= (table.limit or 0):  # what is drawn of more is not told here
                    found += items
                case "weightedsample" if len(values) <= (table.limit or 0):
                    found += [item for item in items if item[-1] > 0]
                case "distinctsample" if len(sums := summed(table, values, weights)) <= (table.limit or 0):
                    found += [(*index, *v, w) for v, w in sums]
                case "inversehistogram" if len(sums := summed(table, values, weights)) <= (table.limit or 0):
                    found.append((*index, 0, float(len(sums))))
                    counts = Counter(w for _, w in sums)
                    found += [(*index, w, n / len(sums)) for w, n in counts.items()]
                case "bootstrapsum":
                    drawn = [times(table.limit or 0, seed) for seed in weights]
                    types = [type_ for _, type_ in table.value]
                    for i in range(table.limit or 0):
                        sums = (
                            [repeated(v[part], counts[i]) for v, counts in zip(values, drawn, strict=True)]
                            for part in range(size)
                        )
                        found.append((*index, *(total(x, part) for x, part in zip(types, sums, strict=True))))
                case kind:
                    raise AssertionError(kind)
        return [tuple(plain(part) for part in row) for row in found]

    # -- statements

    def all(self, body: tuple[z.Stmt, ...], env: dict[int, Any]) -> None:
        for stmt in body:
            try:
                self.stmt(stmt, env)
            except Undefined:
                if self.valued:
                    raise
                raise Ended from None

    def looped(self, body: tuple[z.Stmt, ...], env: dict[int, Any]) -> bool:
        """Whether the loop goes on."""
        try:
            self.all(body, env)
        except Leave as leave:
            if leave.word in ("return", "result"):
                raise
            return leave.word == "continue"
        return True

    def stmt(self, stmt: z.Stmt, env: dict[int, Any]) -> None:
        match stmt:
            case z.Declare(variable, value, needed):
                try:
                    env[variable] = ABSENT if value is None else copy.deepcopy(self.value(value, env))
                except Undefined:
                    if needed:
                        raise
                    env[variable] = ABSENT
            case z.Assign(place, value):
                store = self.place(place, env)
                store(copy.deepcopy(self.value(value, env)))
            case z.Within(place, variable, change):
                env[variable] = copy.deepcopy(self.value(place, env))
                self.stmt(change, env)
                self.place(place, env)(env[variable])
            case z.Step(place, by):
                before = self.value(place, env)
                after = before + by
                self.place(place, env)(after if place.type == t.F64 else wrap(place.type, after))
            case z.Evaluate(value):
                self.value(value, env)
            case z.Result(value):
                raise Leave("result", copy.deepcopy(self.value(value, env)))
            case z.Assert(cond, text):
                assert self.value(cond, env), text
            case z.Emit(table, index, value, weight):
                parts = [self.value(e, env) for e in index]
                found = self.value(value, env)
                parts += list(found.values()) if self.program.tables[table].whole else [found]
                parts += [] if weight is None else [self.value(weight, env)]
                self.items[table].append(tuple(copy.deepcopy(parts)))
            case z.If(cond, then, other):
                self.all(then if self.value(cond, env) else other, env)
            case z.While(cond, body):
                while self.value(cond, env) and self.looped(body, env):
                    pass
            case z.DoWhile(body, cond):
                while self.looped(body, env) and self.value(cond, env):
                    pass
            case z.For(init, cond, step, body):
                self.all(init, env)
                while (cond is None or self.value(cond, env)) and self.looped(body, env):
                    self.all(step, env)
            case z.Switch(value, cases, default):
                self.switch(self.value(value, env), cases, default, env)
            case z.When():
                self.when(stmt, 0, env)
            case z.Break():
                raise Leave("break")
            case z.Continue():
                raise Leave("continue")
            case z.Return(value):
                try:
                    found = None if value is None else copy.deepcopy(self.value(value, env))
                except Undefined:
                    found = ABSENT
                raise Leave("return", found)

    def switch(
        self, value: Any, cases: tuple[z.Case, ...], default: tuple[z.Stmt, ...], env: dict[int, Any]
    ) -> None:
        body = default
        for case in cases:
            candidates = [self.value(v, env) for v in case.values]
            if any(same(value, v, case.values[0].type) for v in candidates):
                body = case.body
                break
        try:
            self.all(body, env)
        except Leave as leave:
            if leave.word != "break":
                raise

    def when(self, stmt: z.When, depth: int, env: dict[int, Any]) -> bool:
        """Whether the body was run."""
        if depth == len(stmt.quantifiers) or stmt.quantifiers[depth].quantity == "all":
            holds = self.holds(stmt, depth, env)
            if holds:
                self.all(stmt.body, env)
            return holds
        quantifier = stmt.quantifiers[depth]
        done = False
        for choice in self.choices(quantifier, env):
            env[quantifier.variable] = choice
            done = self.when(stmt, depth + 1, env) or done
            if done and quantifier.quantity == "some":
                break
        return done

    def holds(self, stmt: z.When, depth: int, env: dict[int, Any]) -> bool:
        if depth == len(stmt.quantifiers):
            try:
                return self.value(stmt.cond, env)
            except Undefined:
                return False
        quantifier = stmt.quantifiers[depth]
        for choice in self.choices(quantifier, env):
            env[quantifier.variable] = choice
            if not self.holds(stmt, depth + 1, env):
                return False
        return True

    def choices(self, quantifier: z.Quantifier, env: dict[int, Any]) -> list[Any]:
        found: dict[Any, None] = {}
        for i, over in enumerate(quantifier.over):
            try:
                whole = self.value(over, env)
            except Undefined:
                continue
            beyond = i in quantifier.parted
            found |= dict.fromkeys(whole if isinstance(whole, dict) else range(len(whole) + beyond))
        return list(found)

    def place(self, place: z.Expr, env: dict[int, Any]) -> Any:
        match place:
            case z.Read(_, variable, _):
                return lambda value: env.__setitem__(variable, value)
            case z.Field(_, value, name, _):
                record = self.value(value, env)
                return lambda new: record.__setitem__(name, new)
            case z.Item(_, value, index):
                whole = self.value(value, env)
                key = self.index(whole, index, env)
                if not isinstance(whole, dict) and not 0 <= key < len(whole):
                    raise Undefined
                if isinstance(whole, str):
                    store = self.place(value, env)
                    return lambda new: store(whole[:key] + chr(new) + whole[key + 1 :])
                return lambda new: whole.__setitem__(key, new)
            case z.Slice(_, value, low, high):
                whole, store = self.value(value, env), self.place(value, env)
                i, j = (max(self.index(whole, e, env), 0) for e in (low, high))
                return lambda new: store(whole[:i] + new + whole[max(i, j) :])
            case _:
                raise AssertionError(place)

    def index(self, whole: Any, index: z.Expr, env: dict[int, Any]) -> Any:
        """An index of something, in which `$` is its length."""
        self.lengths.append(len(whole))
        try:
            return self.value(index, env)
        finally:
            self.lengths.pop()

    # -- expressions

    def value(self, expr: z.Expr, env: dict[int, Any]) -> Any:
        match expr:
            case z.Constant(_, value):
                return value
            case z.Read(_, variable, _):
                if env[variable] is ABSENT:
                    raise Undefined
                return env[variable]
            case z.Opened(_, value) | z.Closed(_, value):
                return self.value(value, env)
            case z.Field(_, value, name, _):
                found = self.value(value, env)[name]
                if found is None:
                    raise Undefined
                return found
            case z.Item(_, value, index):
                whole = self.value(value, env)
                key = self.index(whole, index, env)
                if isinstance(whole, dict):
                    if key not in whole:
                        raise Undefined
                    return whole[key]
                if not 0 <= key < len(whole):
                    raise Undefined
                return ord(whole[key]) if isinstance(whole, str) else whole[key]
            case z.Slice(_, value, low, high):
                whole = self.value(value, env)
                i, j = (self.index(whole, e, env) for e in (low, high))
                return whole[max(i, 0) : max(j, 0)]
            case z.Length():
                return self.lengths[-1]
            case z.FunctionOf(_, function):
                return function
            case z.StatementValue(_, body):
                self.valued += 1
                try:
                    self.all(body, env)
                except Leave as leave:
                    if leave.word != "result":
                        raise
                    return leave.value
                finally:
                    self.valued -= 1
                raise Undefined
            case z.Apply(type_, operation, args):
                return self.apply(
                    type_, operation.partition(":")[0], args, [self.value(a, env) for a in args]
                )
            case z.Match(_, operation, pattern, value):
                found = re.search(self.value(pattern, env), self.value(value, env), re.ASCII)
                match operation:
                    case "match":
                        return found is not None
                    case "matchstrs":
                        return [] if found is None else [found[0], *found.groups("")]
                    case _:
                        return (
                            []
                            if found is None
                            else [p for i in range(found.re.groups + 1) for p in found.span(i)]
                        )
            case z.Logic(_, op, left, right):
                first = self.value(left, env)
                return self.value(right, env) if first == (op == "and") else first
            case z.Defined(_, value):
                try:
                    self.value(value, env)
                except Undefined:
                    return False
                return True
            case z.Call():
                return self.call(expr, env)
            case z.ArrayOf(_, items):
                return [copy.deepcopy(self.value(i, env)) for i in items]
            case z.MapOf(_, items):
                return {self.value(k, env): copy.deepcopy(self.value(v, env)) for k, v in items}
            case z.RecordOf(type_, values):
                names = [name for name, _ in type_.fields]
                return {
                    name: copy.deepcopy(self.value(v, env)) for name, v in zip(names, values, strict=True)
                }

    def call(self, call: z.Call, env: dict[int, Any]) -> Any:
        function = self.program.functions[call.function]
        inner = dict(self.statics)
        for param, arg in zip(function.params, call.args, strict=True):
            inner[param] = copy.deepcopy(self.value(arg, env))
        for (_, inside), capture in zip(function.captures, call.captures, strict=True):
            inner[inside] = env.get(capture.variable, ABSENT)
        before, self.valued = self.valued, 0
        try:
            self.all(function.body, inner)
        except Leave as leave:
            if leave.value is ABSENT:
                raise Undefined from None
            return leave.value
        finally:
            self.valued = before
            for (_, inside), capture in zip(function.captures, call.captures, strict=True):
                if capture.variable in call.lent:
                    env[capture.variable] = inner[inside]
        if function.result is not None:
            raise Ended
        return None

    def apply(self, type_: t.Type, name: str, exprs: tuple[z.Expr, ...], args: list[Any]) -> Any:
        kind = exprs[0].type if exprs else None
        whole = type_ in (t.I64, t.U64)
        match name, args:
            case (("+" | "-" | "*"), [a, b]):
                found = {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b}[name]()
                return wrap(type_, found) if whole else found
            case (("/" | "%"), [a, b]):
                if b == 0:
                    raise Undefined
                if kind == t.F64:
                    return a / b
                quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
                return wrap(type_, quotient if name == "/" else a - quotient * b)
            case (("&" | "|" | "^"), [a, b]):
                return {"&": a & b, "|": a | b, "^": a ^ b}[name]
            case "<<", [a, b]:
                return wrap(type_, a << b % 64)
            case ">>", [a, b]:
                return wrap(type_, (a & ((1 << 64) - 1)) >> b % 64)
            case "==", [a, b]:
                return same(a, b, kind)
            case "!=", [a, b]:
                return not same(a, b, kind)
            case "<", [a, b]:
                return a < b
            case "<=", [a, b]:
                return a <= b
            case ">", [a, b]:
                return a > b
            case ">=", [a, b]:
                return a >= b
            case "neg", [a]:
                return wrap(type_, -a) if whole else -a
            case "pos", [a]:
                return a
            case "~", [a]:
                return wrap(type_, ~a)
            case "not", [a]:
                return not a
            case "abs", [a]:
                return wrap(type_, abs(a)) if whole else abs(a)
            case (("min" | "max"), [a, b]):
                if a != a or b != b:
                    return math.nan
                return min(a, b) if name == "min" else max(a, b)
            case "len", [a]:
                return len(a)
            case (("int" | "uint"), [a, *rest]):
                return whole_number(type_, a, *rest)
            case "fingerprint", [a]:
                return wrap(t.U64, a)
            case "float", [str() as a]:
                return floating(a)
            case "float", [a]:
                return float(a)
            case "string", [a]:
                return a if isinstance(a, str) else str(a).lower() if isinstance(a, bool) else repr(a)
            case "keys", [a]:
                return list(a)
            case "sort", [a]:
                return sorted(a, key=rank)
            case "haskey", [a, b]:
                return b in a
            case "lookup", [a, b, c]:
                return a.get(b, c)
            case "lowercase", [a]:
                return a.lower()
            case "uppercase", [a]:
                return a.upper()
            case "strfind", [a, b]:
                return b.find(a)
            case "strreplace", [a, b, c]:
                return a.replace(b, c)
            case "split", [a, b]:
                return a.split(b)
            case "bytes", [a]:
                return a.encode()
            case _:
                raise AssertionError(name)


def whole_number(type_: t.Type, value: Any, base: int = 0) -> int:
    match value:
        case str():
            parts = re.fullmatch(r"[ \t\n\r\v\f]*([+-]?)(0[xX])?([0-9a-zA-Z]+)", value)
            if parts is None or (parts[2] and base not in (0, 16)):
                raise Undefined
            prefixed = 16 if parts[2] else 8 if len(parts[3]) > 1 and parts[3][0] == "0" else 10
            try:
                size = int(parts[3], base or prefixed)
            except ValueError:
                raise Undefined from None
            found = -size if parts[1] == "-" else size
            if wrap(type_, size if type_ == t.U64 else found) != (size if type_ == t.U64 else found):
                raise Undefined
            return wrap(type_, found)  # as C does, a negative number without sign wraps
        case float():
            if math.isnan(value) or math.isinf(value) or wrap(type_, int(value)) != int(value):
                raise Undefined
            return int(value)
        case _:
            return wrap(type_, int(value))


def floating(text: str) -> float:
    """The number in a text as C reads it, also in hexadecimal digits."""
    rest = text.lstrip(" \t\n\r\v\f")
    if re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", rest, re.ASCII):
        return float(rest)
    if re.fullmatch(r"[+-]?0[xX][0-9a-fA-F]+", rest):
        return float.fromhex(rest)
    raise Undefined


def times(count: int, seed: int) -> list[int]:
    """How often a value counts in each of so many sums: once, then as Poisson's distribution of mean 1 says of what is drawn.

    The numbers are the highest 32 bits of Knuth's generator. Each byte of them, from the highest, begins a number of 32 bits,
    which 24 bits of the next state complete where that decides.
    """
    borders, term, below = [], Fraction(1), Fraction(0)
    for k in range(20):
        below += term
        term /= k + 1
        borders.append(round(float(below) / math.e * 2**32))
    found, state, bytes_ = [1], seed, list[int]()

    def step() -> int:
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return state >> 32

    def events(coin: int) -> int:
        return next(k for k, border in enumerate(borders) if coin <= border)

    while len(found) < count:
        bytes_ = bytes_ or list(step().to_bytes(4, "big"))
        low = bytes_.pop(0) << 24
        decided = events(low) == events(low + 2**24 - 1)
        found.append(events(low if decided else low + step() % 2**24))
    return found


def repeated(value: Any, count: int) -> Any:
    """A number so many times; a float that does not count is not there, however large."""
    return value * count if count or not isinstance(value, float) else 0.0


def length(number: int) -> bytes:
    """A number by 7 bits a byte, the lowest first."""
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + length(number >> 7)


def summed(
    table: z.Table, values: list[tuple[Any, ...]], weights: list[Any]
) -> list[tuple[tuple[Any, ...], Any]]:
    """Each value with its total weight."""
    by_value: dict[Any, list[Any]] = defaultdict(list)
    for v, w in zip(values, weights, strict=True):
        by_value[frozen(v)].append((v, w))
    ((_, type_),) = table.weight
    return [(pairs[0][0], total(type_, [w for _, w in pairs])) for pairs in by_value.values()]


def total(type_: t.Type, values: list[Any]) -> Any:
    if isinstance(type_, t.List):
        longest = max(map(len, values))
        return [total(type_.item, [v[i] for v in values if i < len(v)]) for i in range(longest)]
    if isinstance(type_, t.Map):
        keys = {k for v in values for k in v}
        return {k: total(type_.value, [v[k] for v in values if k in v]) for k in keys}
    if type_ != t.F64:
        return wrap(type_, sum(values))
    special = sum(v for v in values if not math.isfinite(v))
    if not all(map(math.isfinite, values)):
        return special
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def same(a: Any, b: Any, type_: t.Type | None) -> bool:
    return a == b if type_ == t.F64 else frozen(a) == frozen(b)


def frozen(value: Any) -> Any:
    """A value as a key: NaN is NaN, 0.0 is -0.0, maps have no order."""
    match value:
        case float():
            return "nan" if value != value else value + 0.0
        case list() | tuple():
            return tuple(map(frozen, value))
        case dict():
            return frozenset((frozen(k), frozen(v)) for k, v in value.items())
        case _:
            return value


def rank(value: Any, *, down: bool = False) -> Any:
    """A value as a sort key in the total order: NaN last, also downwards."""
    match value:
        case float():
            return (value != value, 0.0 if value != value else -value if down else value)
        case list() | tuple():
            return tuple(map(rank, value))
        case dict():
            return tuple(map(rank, value.values()))
        case _:
            return -value if down else value


def plain(value: Any) -> Any:
    """A value as it is compared: NaN as a word, no negative zero."""
    match value:
        case float():
            return "nan" if value != value else value + 0.0
        case list() | tuple():
            return tuple(map(plain, value))
        case dict():
            return {k: plain(v) for k, v in value.items()}
        case _:
            return value
