"""CQL by its definition: whole bags at every instant of the run, each relation computed from scratch (calculus.md).

The instants of a run are those at which an input has a row and those at which a window lets a row go, up to the last row
of all inputs. A typed program goes in; out come, for each view, the bag of the relation, or the rows of the stream, at
each instant. Expressions have the meaning that the operator language gives them; everything else is said here anew.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from heapq import heappop, heappush
from math import ceil, inf, isinf, isnan
from typing import TYPE_CHECKING, Any, NoReturn, assert_never

from attrs import define, field, frozen

from frontends.cql import FRONTEND
from frontends.cql import typed as ty
from frontends.sql import typed as r
from river.il.templates import Library
from river.lang import check
from river.lang import syntax as s
from river.lang import types as t
from river.lang.check import Scope
from river.lang.evaluate import Trap, compile_function
from river.lang.scope import expression
from river.lang.values import NAN, total_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Row = tuple[Any, ...]
Bag = list[Row]
FNS = Library.of({"cql": FRONTEND.templates}).fns
END = (1 << 63) - 1  # the last instant that there is


class Trapped(Exception):  # noqa: N818 - what a run may come to
    """Some instant has no meaning: an expression traps, or a sum does not fit."""


class TooLarge:
    """A sum that is no int. Whoever reads it traps; nobody does where `having` leaves the group out for another reason."""

    def __init__(self, total: int) -> None:
        self.total = total

    def read(self, *_: Any) -> NoReturn:
        raise Trapped(f"a sum of {self.total}")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = __mod__ = (
        __rmod__
    ) = read
    __neg__ = __abs__ = __int__ = __float__ = __index__ = __hash__ = read
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = read


@frozen
class History:
    """What a run says: its instants in order, and for each view and instant the rows.

    For a relation its whole bag; for a stream what it emits then.
    """

    instants: tuple[int, ...]
    rows: Mapping[str, Mapping[int, Bag]]


@define
class Arrivals:
    """A stream so far: instants and rows in order of arrival."""

    rows: list[tuple[int, Row]] = field(factory=list)

    def seen(self, window: ty.Window, now: int, columns: tuple[str, ...]) -> Bag:
        match window:
            case ty.Unbounded():
                return [row for _, row in self.rows]
            case ty.Range(length, step) if step:
                then = now // step * step
                return [row for at, row in self.rows if then - length <= at <= then]
            case ty.Range(length):
                return [row for at, row in self.rows if now - at <= length]
            case ty.RowSteps(count, step):
                done = len(self.rows) // step * step
                return [row for _, row in self.rows[max(0, done - count) : done]]
            case ty.Expiring(keys, count, length):
                current = [one for one in self.sessions(keys, length, columns) if now - one[-1][0] <= length]
                return [row for session in current for _, row in session[-count:]]
            case ty.Recent(keys, count, length):
                lately = [one for group in self.by(keys, columns) for one in group[-count:]]
                return [row for at, row in lately if now - at <= length]
            case ty.Buckets():
                return [
                    (*row, start, start + window.size)
                    for at, row in self.rows
                    for start in starts(at, window)
                    if start + window.size <= now
                ]
            case ty.Sessions(keys, gap, grows):
                found = []
                for session in self.sessions(keys, gap, columns[:-2]):
                    begin, last = session[0][0], session[-1][0]
                    for i, (at, row) in enumerate(session):
                        longer = at - session[i - 1][0] if i else gap
                        found.append((*row, begin, longer if grows else last + gap))
                return found
            case ty.RowWindow(count, keys):
                positions = [columns.index(key) for key in keys]
                found: Bag = []
                left: Counter[Row] = Counter()
                for _, row in reversed(self.rows):
                    key = tuple(row[i] for i in positions)
                    left[key] += 1
                    if left[key] <= count:
                        found.insert(0, row)
                return found
            case _:
                assert_never(window)

    def by(self, keys: tuple[str, ...], columns: tuple[str, ...]) -> list[list[tuple[int, Row]]]:
        """What came, apart for each key."""
        positions = [columns.index(key) for key in keys]
        found: dict[Row, list[tuple[int, Row]]] = {}
        for at, row in self.rows:
            found.setdefault(tuple(row[i] for i in positions), []).append((at, row))
        return list(found.values())

    def sessions(
        self, keys: tuple[str, ...], gap: int, columns: tuple[str, ...]
    ) -> list[list[tuple[int, Row]]]:
        """What came, apart for each key and session."""
        found: list[list[tuple[int, Row]]] = []
        for group in self.by(keys, columns):
            for i, each in enumerate(group):
                if i and each[0] - group[i - 1][0] <= gap:
                    found[-1].append(each)
                else:
                    found.append([each])
        return found


def starts(at: int, window: ty.Buckets) -> list[int]:
    """The begins of the windows that have an instant."""
    last = at // window.step * window.step
    return [start for start in range(last, at - window.size, -window.step) if start <= at]


@define
class Run:
    program: ty.Program
    data: Mapping[str, Sequence[Row]]
    streams: dict[str, Arrivals] = field(factory=dict)
    relations: dict[str, Bag] = field(factory=dict)
    heard: dict[str, bool] = field(
        factory=dict
    )  # whether a named source has something to say at this instant
    begun: set[tuple[str, int]] = field(factory=set)
    previous: dict[str, Bag] = field(factory=dict)
    waiting: list[int] = field(factory=list)
    functions: dict[Any, Callable[..., Any]] = field(factory=dict)

    def history(self) -> History:
        windows: dict[str, set[ty.Window]] = {}
        for view in self.program.views:
            for source in view.query.sources:
                if source.window is not None:
                    windows.setdefault(source.name, set()).add(source.window)
        stamps = {one.name: self.stamp(one) for one in self.program.inputs}
        instants = {row[stamps[name]] for name in stamps for row in self.data[name]}
        last = max(instants, default=0)
        if last == END - 1:  # time that comes so far comes to its end
            last = END
        for instant in instants:
            heappush(self.waiting, instant)
        done: list[int] = []
        rows: dict[str, dict[int, Bag]] = {view.name: {} for view in self.program.views}
        while self.waiting:
            now = heappop(self.waiting)
            if now > last:
                break
            if done and done[-1] == now:
                continue
            done.append(now)
            for one in self.program.inputs:
                self.read(one, [row for row in self.data[one.name] if row[stamps[one.name]] == now], now)
                self.expect(one.name, windows, now)
            for view in self.program.views:
                rows[view.name][now] = self.view(view, now)
                self.expect(view.name, windows, now)
        return History(tuple(done), rows)

    def stamp(self, one: ty.Input) -> int:
        """The position of the stamp in what arrives."""
        return t.Record.index(one.row, one.stamp.name) or 0 if one.kind == "stream" else 0

    def expect(self, name: str, windows: Mapping[str, set[ty.Window]], now: int) -> None:
        """Notes the instants at which windows take in, or let go of, what has just come."""
        if name in self.streams and any(at == now for at, _ in self.streams[name].rows):
            for window in windows.get(name, ()):
                for instant in changes(window, now):
                    heappush(self.waiting, instant)

    def read(self, one: ty.Input, rows: Sequence[Row], now: int) -> None:
        self.heard[one.name] = bool(rows)
        if one.kind == "stream":
            self.streams.setdefault(one.name, Arrivals()).rows += [(now, row) for row in rows]
            return
        bag = self.relations.setdefault(one.name, [])
        for _, sign, *rest in rows:
            row = tuple(rest)
            if sign == "+":
                bag.append(row)
            elif row in bag:
                bag.remove(row)
            else:
                raise Trapped(f"no row {row} in {one.name}")

    def view(self, view: ty.View, now: int) -> Bag:
        query = view.query
        sources = [self.source(source, now) for source in query.sources]
        heard = [self.speaks(source, now) for source in query.sources]
        bag = self.relation(view.name, query.relation, sources, heard)
        anything = any(heard)
        if view.kind == "relation":
            self.relations[view.name] = bag
            self.heard[view.name] = anything
            return bag
        before = self.previous.get(view.name, [])
        self.previous[view.name] = bag
        match query.operator:
            case "istream":
                out = minus(bag, before)
            case "dstream":
                out = minus(before, bag)
            case "rstream":
                out = bag if anything else []
            case None:
                raise AssertionError(view.name)
            case _:
                assert_never(query.operator)
        if view.stamp.column:
            position = t.Record.index(view.row, view.stamp.name) or 0
            out = [(*row[:position], now, *row[position:]) for row in out]
        self.streams.setdefault(view.name, Arrivals()).rows += [(now, row) for row in out]
        self.heard[view.name] = bool(out)
        return out

    def source(self, source: ty.Source, now: int) -> Bag:
        if source.window is None:
            return list(self.relations[source.name])
        columns = tuple(name for name, _ in source.row.fields)
        return self.streams[source.name].seen(source.window, now, columns)

    def speaks(self, source: ty.Source, now: int) -> bool:
        """Whether something of a source comes, or leaves its window, at this instant."""
        if isinstance(source.window, ty.Range) and source.window.slide:
            step, length = source.window.slide, source.window.span_of_time
            if now % step:
                return False
            rows = [at for at, _ in self.streams[source.name].rows if at <= now]
            return [at for at in rows if now - length <= at] != [
                at for at in rows if now - step - length <= at <= now - step
            ]
        match source.window:
            case ty.Buckets() as window:
                ends = {
                    start + window.size
                    for at, _ in self.streams[source.name].rows
                    for start in starts(at, window)
                }
                return now in ends
            case ty.RowSteps(_, step):
                rows = self.streams[source.name].rows
                return len(rows) // step > sum(at < now for at, _ in rows) // step
            case ty.Expiring(keys, _, length):
                columns = tuple(name for name, _ in source.row.fields)
                groups = self.streams[source.name].by(keys, columns)
                before = [[at for at, _ in group if at < now] for group in groups]
                if any(group and group[-1] + length + 1 == now for group in before):
                    return True
            case ty.Recent(keys, count, length):
                columns = tuple(name for name, _ in source.row.fields)
                for group in self.streams[source.name].by(keys, columns):
                    if any(
                        at + length + 1 == now for at, _ in [one for one in group if one[0] < now][-count:]
                    ):
                        return True
            case _:
                pass
        if isinstance(source.window, ty.Range):
            length = source.window.span_of_time
            if any(at + length + 1 == now for at, _ in self.streams[source.name].rows):
                return True
        return self.heard[source.name]

    # -- relational algebra

    def relation(self, name: str, node: r.Relation, sources: list[Bag], heard: list[bool]) -> Bag:
        match node:
            case r.Input(index, _):
                return sources[index]
            case r.Filter(input, row, keep, make):
                rows = self.relation(name, input, sources, heard)
                kept = self.function(keep, (input.row,), t.BOOL)
                made = self.function(make, (input.row,), row)
                return [made(x) for x in rows if kept(x)]
            case r.Unnest(input, row, item, items, keep, make, alone):
                whole = (input.row, item, t.I64)
                listed, kept, made = (
                    self.function(items, (input.row,), t.List(item)),
                    self.function(keep, whole, t.BOOL),
                    self.function(make, whole, row),
                )
                found: Bag = []
                for x in self.relation(name, input, sources, heard):
                    own = [made(x, y, i) for i, y in enumerate(listed(x), 1) if kept(x, y, i)]
                    if not own and alone is not None:
                        own = [self.function(alone, (input.row,), row)(x)]
                    found += own
                return found
            case r.Join(left, right, row, key, left_key, right_key, make):
                a = self.function(left_key, (left.row,), key)
                b = self.function(right_key, (right.row,), key)
                made = self.function(make, (left.row, right.row), row)
                others = self.relation(name, right, sources, heard)
                return [
                    made(x, y)
                    for x in self.relation(name, left, sources, heard)
                    for y in others
                    if a(x) == b(y)
                ]
            case r.Outer():
                return self.outer(name, node, sources, heard)
            case r.Combine(left, right, _, word, every):
                a, b = (Counter(self.relation(name, side, sources, heard)) for side in (left, right))
                if word == "union":
                    return list((a + b).elements())
                if every:
                    return list((a - b if word == "except" else a & b).elements())
                return [row for row in a if (row in b) == (word == "intersect")]
            case r.Distinct(input, _):
                return list(dict.fromkeys(self.relation(name, input, sources, heard)))
            case r.Top():
                return self.top(name, node, sources, heard)
            case r.Group():
                return self.group(name, node, sources, heard)
            case _:
                assert_never(node)

    def top(self, name: str, node: r.Top, sources: list[Bag], heard: list[bool]) -> Bag:
        rows = self.relation(name, node.input, sources, heard)
        row = node.input.row
        key, order = (
            self.function(node.key, (row,), node.key_type),
            self.function(node.order, (row,), node.order_type),
        )
        make = self.function(node.make, (row, t.I64, t.I64, t.I64), node.row)
        keyed, whole = (total_key(kind) or _same for kind in (node.order_type, row))
        found: Bag = []
        for group in dict.fromkeys(map(key, rows)):
            own = sorted((x for x in rows if key(x) == group), key=lambda x: (keyed(order(x)), whole(x)))
            places = [keyed(order(x)) for x in own]
            for i, x in enumerate(own):
                numbers = {
                    "number": i + 1,
                    "rank": places.index(places[i]) + 1,
                    "dense": len(set(places[: i + 1])),
                }
                if i >= node.skipped and (node.most is None or numbers[node.by] <= node.most):
                    found.append(make(x, *numbers.values()))
        return found

    def outer(self, name: str, node: r.Outer, sources: list[Bag], heard: list[bool]) -> Bag:
        sides = (node.left, node.left_key, node.left_can), (node.right, node.right_key, node.right_can)
        keyed: list[list[tuple[Row, Any]]] = []
        for side, key, can in sides:
            a, b = self.function(key, (side.row,), node.key), self.function(can, (side.row,), t.BOOL)
            rows = self.relation(name, side, sources, heard)
            keyed.append([(x, (a(x),) if b(x) else None) for x in rows])
        made = self.function(node.make, (node.left.row, node.right.row), node.row)
        left, right = keyed
        meets = (
            (lambda _x, _y: True)
            if node.meets is None
            else self.function(node.meets, (node.left.row, node.right.row), t.BOOL)
        )
        pairs = [(x, y) for x, a in left for y, b in right if a == b is not None and meets(x, y)]
        found = [made(x, y) for x, y in pairs]
        for i, side, alone, rows in (
            (0, node.left, node.left_alone, left),
            (1, node.right, node.right_alone, right),
        ):
            if alone is not None:
                say = self.function(alone, (side.row,), node.row)
                met = {pair[i] for pair in pairs}
                found += [say(x) for x, _ in rows if x not in met]
        return found

    def group(self, name: str, node: r.Group, sources: list[Bag], heard: list[bool]) -> Bag:
        rows = self.relation(name, node.input, sources, heard)
        keys = [self.function(s.Lambda(("r",), key.value), (node.input.row,), key.type) for key in node.keys]
        groups: dict[Row, Bag] = {}
        for row in rows:
            groups.setdefault(tuple(key(row) for key in keys), []).append(row)
        if not node.keys:
            place = (name, id(node))
            if any(heard[i] for i in inputs(node)):
                self.begun.add(place)
            if place in self.begun:
                groups.setdefault((), [])
        whole = t.Record(tuple((part.name, part.type) for part in (*node.keys, *node.aggregates)))
        keep = self.function(node.keep, (whole,), t.BOOL)
        make = self.function(node.make, (whole,), node.row)
        found: Bag = []
        for key, members in groups.items():
            group = (*key, *(self.aggregate(a, node, members) for a in node.aggregates))
            if keep(group):
                row = make(group)
                for value in row:
                    if isinstance(value, TooLarge):
                        raise Trapped(f"a sum of {value.total}")
                found.append(row)
        return found

    def aggregate(self, part: r.Aggregate, node: r.Group, rows: Bag) -> Any:
        if part.argument is None or part.argument_type is None:
            return len(rows)
        read = self.function(s.Lambda(("r",), part.argument), (node.input.row,), part.argument_type)
        values = [value for value in map(read, rows) if value is not None]
        kind = part.argument_type.inner if isinstance(part.argument_type, t.Optional) else part.argument_type
        order = total_key(kind)
        function, distinct = part.function.removesuffix("_distinct"), part.function.endswith("_distinct")
        if distinct:
            values = list(dict.fromkeys(values))
        match function:
            case "count":
                return len(values)
            case _ if not values:
                return None
            case "min":
                return min(values, key=order)
            case "max":
                return max(values, key=order)
            case "min_by":
                return min(values, key=order)[1]
            case "max_by":
                return max(values, key=order)[1]
            case "bool_and":
                return all(values)
            case "bool_or":
                return any(values)
            case "string_agg":
                (separator,) = part.parameters
                assert isinstance(separator, s.String)
                return separator.value.join(sorted(values))
            case "mode":
                counts = Counter(values)
                most = max(counts.values())
                return min((x for x in counts if counts[x] == most), key=order)
            case "disc" | "disc_down":
                (p,) = part.parameters
                assert isinstance(p, s.Float)
                ranked = sorted(values, key=order, reverse=function == "disc_down")
                return ranked[max(0, ceil(p.value * len(ranked)) - 1)]
            case "quantile":
                (p,) = part.parameters
                assert isinstance(p, s.Float)
                return quantile(sorted(values, key=order), p.value)
            case "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp":
                return spread(values, function)
            case "sum":
                return total(values, kind)
            case _ if isinstance(kind, t.Decimal):
                mean = Fraction(sum(values) * 10 ** (r.mean_type(kind).scale - kind.scale), len(values))
                whole = int(abs(mean) + Fraction(1, 2))
                return whole if mean >= 0 else -whole
            case _:
                whole = float(sum(values)) if kind in t.INTEGERS else total(values, kind)
                return whole / len(values) if not isnan(whole) else NAN

    # -- expressions

    def function(self, body: s.Lambda, params: tuple[t.Type, ...], result: t.Type) -> Callable[..., Any]:
        """A lambda as a Python function."""
        made = self.functions.get((body, params, result))
        if made is None:
            typed = tuple(s.Param(name, expression(p)) for name, p in zip(body.params, params, strict=True))
            fn = s.Fn("it", typed, expression(result), body.body)
            fns, index = check.function("it", Scope({}, {**FNS, "it": fn}))
            made = self.functions[body, params, result] = trapping(compile_function(fns, index))
        return made


def run(program: ty.Program, data: Mapping[str, Sequence[Row]]) -> History:
    """Everything that the views of `program` say about `data`, which is by input in order of the time stamps.

    Raises: Trapped.
    """
    return Run(program, data).history()


def changes(window: ty.Window, came: int) -> list[int]:
    """The instants after one at which a row came at which a window may take it in or let go of it."""
    match window:
        case ty.Range(length, 0):
            return [came + length + 1]
        case ty.Range(length, step):
            next_ = -(-came // step) * step
            return [next_, ((came + length) // step + 1) * step] if next_ - length <= came else []
        case ty.Expiring(_, _, length) | ty.Recent(_, _, length):
            return [came + length + 1]
        case ty.Buckets():
            return [start + window.size for start in starts(came, window)]
        case _:
            return []


def trapping(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except Trap as trap:
            raise Trapped(str(trap)) from trap

    return call


def _same(value: Any) -> Any:
    return value


def inputs(node: r.Relation) -> set[int]:
    match node:
        case r.Input(index, _):
            return {index}
        case r.Join(left, right) | r.Outer(left, right) | r.Combine(left, right):
            return inputs(left) | inputs(right)
        case (
            r.Filter(input, _, _, _) | r.Unnest(input) | r.Distinct(input, _) | r.Group(input) | r.Top(input)
        ):
            return inputs(input)
        case _:
            assert_never(node)


def minus(a: Bag, b: Bag) -> Bag:
    return list((Counter(a) - Counter(b)).elements())


def quantile(values: list[float], p: float) -> float:
    """By straight lines between the two values around."""
    place = p * (len(values) - 1)
    low = int(place)
    if place == low:
        return values[low]
    return values[low] + (values[low + 1] - values[low]) * (place - low)


def spread(values: list[float], function: str) -> float | None:
    """Variance or deviation, exact up to the last steps."""
    less = 1 if function.endswith("samp") else 0
    if len(values) <= less:
        return None
    if any(isnan(x) or isinf(x) for x in values):
        return NAN
    exact = list(map(Fraction, values))
    n = len(exact)
    whole = n * sum(x * x for x in exact) - sum(exact) ** 2
    try:
        variance = float(whole) / n / (n - less)
    except OverflowError:
        variance = inf
    return variance**0.5 if function.startswith("stddev") else variance


def total(values: list[Any], kind: t.Type) -> Any:
    """The sum: of whole numbers in their type or `TooLarge`, of floats exact and rounded once."""
    if isinstance(kind, t.Decimal):
        return sum(values)
    if kind in t.INTEGERS:
        found = sum(values)
        return found if -(1 << 63) <= found < 1 << 63 else TooLarge(found)
    special = {value for value in values if isnan(value) or isinf(value)}
    if special:
        return NAN if len(special) > 1 or any(map(isnan, special)) else special.pop()
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return inf if exact > 0 else -inf
