"""From declarations to the graph: stream-level statements run when the program is compiled.

Every stream's body runs by itself and says which streams are to be made; those are made afterwards, so the depth of a
recursion needs no stack.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from frontends.streamit import constants
from frontends.streamit import typed as ty
from frontends.streamit.balance import firings
from frontends.streamit.messages import messages
from frontends.streamit.paths import inside, label, parts
from frontends.streamit.rates import rates
from frontends.streamit.routines import first_state
from frontends.streamit.starts import starts
from frontends.streamit.trees import Usage
from frontends.streamit.turns import least_turns
from river.classes import define, evolve, field
from river.diagnostics import InternalError
from river.il.trees import Same, fresh, walk
from river.lang import types as t
from river.lang.parse import RESERVED
from river.lang.scope import show
from river.lang.values import TrapSignal
from river.nesting import more_room
from river.report import Failed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from river.lang import syntax as s
    from river.report import Report
    from river.source import Span

LARGEST = 10_000
WIDEST = 1_024
CALLS = 10 * LARGEST
"""How deep the calls are that look at a graph: a few for each stream inside another."""
LONGEST = 2_000_000
MOST_ITEMS = 1 << 20
DEEPEST = 1_000
ELSEWHERE = (
    "make long tables in the `init` of the filter that uses them: its parameters say what they depend on"
)
RESULT = "return"
"""What a function gives, among its variables."""

_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*", re.ASCII)
_REAL = re.compile(r"\s*[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|NaN|Infinity)\s*", re.ASCII)

Values = dict[str, Any]

OWN_NAMES = frozenset({"input", "output", "clock", "stdout"})
"""Queues of the program that are no files."""


def elaborate(
    streams: Mapping[str, ty.Stream],
    main: str,
    statics: Sequence[ty.Block],
    fns: tuple[s.Fn, ...],
    report: Report,
    *,
    seed: int | None = None,
    helpers: Mapping[str, ty.Helper],
) -> ty.Program:
    """The program whose graph `main` makes; `seed`: random numbers begin with it. `helpers`: functions that this calls.

    Raises: Rejected (codes streamit-*).
    """
    work = _Elaborator(streams, report, helpers, seed)
    try:
        for block in statics:
            work.run(block.items, work.statics, None)
        graph = work.build(ty.Create(main, None, (), span=streams[main].span))
        with more_room(CALLS):
            turns = firings(graph, report)
            told, heard = messages(graph, turns, work.concrete, report)
            begins: Mapping[int, int] = starts(graph, turns, told, report) if turns else {}
        _look_at_prints(graph, told, bool(work.said), report)
    except Failed as failed:
        report.remarks()
        raise InternalError("an error was raised, but not reported") from failed
    return ty.Program(
        streams,
        graph,
        turns,
        begins,
        fns,
        told,
        heard,
        tuple(work.said),
        report.remarks(),
        span=streams[main].span,
    )


@define
class _Open:
    """A stream that is being made."""

    stream: ty.Composite
    span: Span | None
    wanted: list[tuple[ty.Role, ty.Create, Values]] = field(factory=list[tuple[ty.Role, ty.Create, Values]])
    made: list[ty.Graph] = field(factory=list["ty.Graph"])
    split: ty.Split | None = None
    join: ty.Join | None = None
    weights: dict[str, tuple[int, ...] | None] = field(factory=dict[str, "tuple[int, ...] | None"])
    waiting: list[tuple[ty.Expr, Any]] = field(factory=list[tuple["ty.Expr", Any]])
    values: Values = field(factory=dict[str, Any])


@define
class _Elaborator:
    streams: Mapping[str, ty.Stream]
    report: Report
    helpers: Mapping[str, ty.Helper]
    seed: int | None = None
    statics: Values = field(factory=dict[str, Any])
    count: int = 0
    generators: int = 0
    composites: int = 0
    portals: int = 0
    steps: int = 0
    depth: int = 0  # of calls
    files: set[str] = field(factory=lambda: set(OWN_NAMES))
    nodes: dict[tuple[str, Any], ty.Node] = field(factory=dict[tuple[str, Any], "ty.Node"])
    codes: dict[int, constants.Code] = field(
        factory=dict[int, constants.Code]
    )  # by identity of an expression
    changing: dict[int, constants.Code | None] = field(
        factory=dict[int, "constants.Code | None"]
    )  # by identity of an assignment
    seen: list[ty.Expr] = field(factory=list["ty.Expr"])  # those of which there is code
    said: list[str | ty.Node] = field(factory=list["str | ty.Node"])  # before the first firing
    saying: frozenset[str] = field(init=False)  # filters whose `init` prints

    def __attrs_post_init__(self) -> None:
        filters = (stream for stream in self.streams.values() if isinstance(stream, ty.Filter))
        self.saying = frozenset(each.name for each in filters if Usage.of(each).prints(each.first_code))

    # -- streams

    def build(self, creation: ty.Create) -> ty.Graph:
        """The graph of a stream and of all inside of it."""
        stack: list[_Open] = []
        errors = self.report.errors
        try:
            return self.built(creation, stack)
        except Failed:
            if self.report.errors > errors:
                self.report.note(f"in `{_path(creation, stack)}`")
            raise

    def built(self, creation: ty.Create, stack: list[_Open]) -> ty.Graph:
        """The same; `stack`: the streams that are being made, from outside in."""
        root = self.start(creation, self.bound(creation, {}))
        if not isinstance(root, _Open):
            return root
        stack.append(root)
        while True:
            top = stack[-1]
            if len(top.made) < len(top.wanted):
                _, wanted, values = top.wanted[len(top.made)]
                found = self.start(wanted, values)
                if isinstance(found, _Open):
                    stack.append(found)
                else:
                    top.made.append(found)
                continue
            graph = self.finish(top)
            stack.pop()
            if not stack:
                return graph
            stack[-1].made.append(graph)

    def declared_stream(self, creation: ty.Create) -> ty.Stream | None:
        """The stream of the program that is to be made; None for one of the library, which has a type."""
        return self.streams[creation.stream] if creation.type is None else None

    def bound(self, creation: ty.Create, values: Values) -> Values:
        """The values of the parameters of a stream that is to be made here."""
        stream = self.declared_stream(creation)
        if stream is None:  # of the library
            return {
                **self.statics,
                **values,
                **{str(i): self.value(arg, values) for i, arg in enumerate(creation.args)},
            }
        found: Values = {}
        own = [param for param in stream.params if param.value is None]
        for param, arg in zip(own, creation.args, strict=True):
            found[param.name] = constants.frozen(self.value(arg, values))
        around = {**self.statics, **values}
        for param in stream.params:
            if param.value is not None:
                known = found if isinstance(param.value, ty.Load | ty.Size) else around
                found[param.name] = constants.frozen(self.value(param.value, known))
        spans = {param.name: arg.span for param, arg in zip(own, creation.args, strict=True)}
        for param in stream.params:
            self.fits(param.type, found[param.name], found, spans.get(param.name) or creation.span)
        return found

    def fits(self, type_: ty.Type, value: Any, values: Values, span: Span | None) -> None:
        """Refuses an array of another size."""
        match type_:
            case ty.Vector(item, size_):
                size = self.value(size_, values)
                if len(value) != size:
                    message = f"expected {size} items, found {len(value)}"
                    raise self.report.error("streamit-size", message, span)
                for part in value:
                    self.fits(item, part, values, span)
            case ty.Struct(_, fields):
                for (_, kind), part in zip(fields, value, strict=True):
                    self.fits(kind, part, values, span)
            case _:
                pass

    def start(self, creation: ty.Create, values: Values) -> ty.Graph | _Open:
        """A filter, or a stream whose parts are still to be made."""
        span = creation.span
        stream = self.declared_stream(creation)
        match stream:
            case ty.Composite():
                self.composites += 1
                if self.composites > 2 * LARGEST:
                    message = f"more than {2 * LARGEST:,} streams are made of others"
                    raise self.report.error("streamit-too-many", message, span, "does the recursion end?")
                opened = _Open(stream, span, values=values)
                self.run(stream.body.items, {name: constants.thawed(v) for name, v in values.items()}, opened)
                return opened
            case _:
                self.count += 1
                if self.count > LARGEST:
                    raise self.report.error(
                        "streamit-too-many", f"the graph has more than {LARGEST:,} filters", span
                    )
                if stream is None:
                    return self.standard(creation, values)
                if any(param.name == ty.SEED for param in stream.params):
                    values = {**values, ty.SEED: first_state(self.generators, self.seed)}
                    self.generators += 1
                heard = (portal.value for portal in creation.portals if isinstance(portal, ty.Constant))
                node = evolve(self.filter(stream, values, span), portals=tuple(dict.fromkeys(heard)))
                if stream.name in self.saying:
                    self.said.append(node)
                return node

    def filter(self, stream: ty.Filter, values: Values, span: Span | None) -> ty.Node:
        """A filter of the graph."""
        key = (stream.name, tuple(sorted((name, repr(value)) for name, value in values.items())))
        known = self.nodes.get(key)
        if known is None:
            input_, output = self.concrete(stream.input, values), self.concrete(stream.output, values)
            usual = rates(stream, stream.work, values, self.report)
            first = None if stream.prework is None else rates(stream, stream.prework, values, self.report)
            if input_ != ty.VOID and usual.pop == 0:
                message = "a filter with an input must take an item at each firing"
                help_line = "take what it has looked at: `pop();`"
                raise self.report.error("streamit-rate", message, stream.span, help_line)
            self.sizes(stream, values)
            known = ty.Node(stream, values, input_, output, usual, first, span=span)
            self.nodes[key] = known
        return evolve(known, span=span)

    def sizes(self, stream: ty.Filter, values: Values) -> None:
        """Computes all sizes in the code of a filter, and compares those of arrays that meet."""
        bodies = [stream.work.body, *(h.body for h in stream.helpers)]
        bodies += [b for b in (stream.init, stream.prework and stream.prework.body) if b is not None]
        bodies += [each.value for each in stream.fields if each.value is not None]
        nodes = [node for body in bodies for node in walk(body)]
        shapes = _Shapes(self, values)
        for found in (*stream.fields, *(p for h in stream.helpers for p in h.params), *nodes):
            match found:
                case ty.FieldDecl(_, type_, value) | ty.Declare(_, type_, value):
                    shapes.meet(type_, value, found.span)
                case ty.Update(type_, _, _, value):
                    shapes.meet(type_, value, found.span)
                case ty.Push(value):
                    shapes.meet(stream.output, value, found.span)
                case ty.Call(_, name, args):
                    params = next(h.params for h in stream.helpers if h.name == name)
                    for param, arg in zip(params, args, strict=True):
                        shapes.meet(param.type, arg, found.span)
                case ty.Choose(type_, _, _, other):
                    shapes.meet(type_, other, found.span)
                case ty.Send(_, _, args):
                    for arg in args:  # receivers look at the sizes: here the parts of one have to be alike
                        shapes.meet(arg.type, arg, arg.span)
                case _:
                    pass
        for helper in stream.helpers:
            for node in walk(helper.body):
                if isinstance(node, ty.Return):
                    shapes.meet(helper.result, node.value, node.span)

    def concrete(self, type_: ty.Type, values: Values) -> t.Type:
        """The type in the operator language, sizes computed."""
        if isinstance(type_, ty.Vector):
            size = self.value(type_.size, values)
            if not 0 <= size <= 1 << 24:
                raise self.report.error(
                    "streamit-size", f"an array cannot have {size} items", type_.size.span
                )
            return t.Array(self.concrete(type_.item, values), size)
        if isinstance(type_, ty.Struct):
            parts = (self.concrete(part, values) for _, part in type_.fields)
            return t.Record(tuple(zip(type_.labels, parts, strict=True)))
        return constants.scalar(type_)

    def standard(self, creation: ty.Create, values: Values) -> ty.Graph:
        """`Identity`, `FileReader`, `FileWriter`."""
        assert creation.type is not None  # noqa: S101 - the checker has seen to it
        item = self.concrete(creation.type, values)
        if creation.stream == "Identity":
            return ty.Identity(item, span=creation.span)
        path, reads, bits = values["0"], creation.stream == "FileReader", creation.type == ty.BIT
        if not path or "\0" in path:
            raise self.report.error("streamit-file", "this names no file", creation.span)
        name = queue_name(path, self.files)
        self.files.add(name)
        return ty.File(name, reads, item, path, bits, span=creation.span)

    # -- what a stream's parts make together

    def finish(self, top: _Open) -> ty.Graph:
        """The stream of its parts, which must fit."""
        stream = top.stream
        if stream.kind != "feedbackloop" and not top.made:
            message, help_line = f"this {stream.kind} has no parts", "`add` what it is made of"
            raise self.report.error("streamit-parts", message, stream.span, help_line)
        match stream.kind:
            case "pipeline":
                graph: ty.Graph = self.pipeline(top)
            case "splitjoin":
                graph = self.split_join(top)
            case "feedbackloop":
                graph = self.feedback(top)
        sides = (("input", stream.input, graph.input), ("output", stream.output, graph.output))
        for word, stated, found in sides:
            if stated is not None and self.concrete(stated, top.values) != found:
                wanted = _shown(self.concrete(stated, top.values))
                message = f"the {word} of `{stream.name}` is `{wanted}`, but its parts have `{_shown(found)}`"
                help_line = f"`{_shown(graph.input)}->{_shown(graph.output)}` is what its parts make"
                raise self.report.error("streamit-connection", message, stream.span, help_line)
        return graph

    def pipeline(self, top: _Open) -> ty.Pipeline:
        """One after the other."""
        self.none(top, "split", "join")
        names = [creation.stream for _, creation, _ in top.wanted]
        for i, (before, after) in enumerate(pairwise(top.made), 1):
            if before.output != after.input or after.input == ty.VOID:
                gives, takes = label(names, i - 1), label(names, i)
                message = (
                    f"`{gives}` gives `{_shown(before.output)}`, but `{takes}` takes `{_shown(after.input)}`"
                )
                if ty.VOID in (before.output, after.input):
                    help_line = "what takes nothing stands first in a pipeline, what gives nothing last"
                else:
                    kinds = f"{_shown(before.output)}->{_shown(after.input)}"
                    help_line = f"a filter between them converts: `add {kinds} filter {{ work pop 1 push 1 {{ ... }} }}`"
                raise self.report.error("streamit-connection", message, top.wanted[i][1].span, help_line)
        made = tuple(top.made)
        return ty.Pipeline(top.stream.name, made[0].input, made[-1].output, made, span=top.span)

    def split_join(self, top: _Open) -> ty.SplitJoin:
        """Side by side."""
        takes = [part.input != ty.VOID for part in top.made]
        gives = [part.output != ty.VOID for part in top.made]
        if (top.split is None and any(takes)) or (top.join is None and any(gives)):
            message = "a splitjoin needs `split` and `join`"
            help_line = "`split duplicate;` or `split roundrobin;` before its branches, `join roundrobin;` behind them"
            raise self.report.error("streamit-parts", message, top.stream.span, help_line)
        input_ = self.common(top, [part.input for part in top.made], "take")
        output = self.common(top, [part.output for part in top.made], "give")
        split: tuple[int, ...] | None = (0,) * len(top.made)
        if top.split is not None:
            split = self.weights(top, "split", takes, top.split.span)
        join: tuple[int, ...] | None = (0,) * len(top.made)
        if top.join is not None:
            join = self.weights(top, "join", gives, top.join.span)
        assert join is not None  # noqa: S101 - only `split` may be duplicate
        for word, ends, weights in (("split", takes, split or ()), ("join", gives, join)):
            some = [weight for weight, has in zip(weights, ends, strict=False) if has]
            if len(some) > WIDEST and 0 in some:
                message = f"a splitjoin has more than {WIDEST:,} branches, and a weight of its `{word}` is 0"
                raise self.report.error("streamit-too-many", message, top.stream.span)
        return ty.SplitJoin(top.stream.name, input_, output, split, tuple(top.made), join, span=top.span)

    def common(self, top: _Open, types: Sequence[t.Type], verb: str) -> t.Type:
        """The one type of those that are not void."""
        found = list(dict.fromkeys(type_ for type_ in types if type_ != ty.VOID))
        if len(found) > 1:
            shown = ", ".join(f"`{_shown(type_)}`" for type_ in found)
            message = f"the branches of a splitjoin {verb} different types: {shown}"
            raise self.report.error("streamit-connection", message, top.stream.span)
        return found[0] if found else ty.VOID

    def weights(
        self, top: _Open, word: str, takes: Sequence[bool], span: Span | None
    ) -> tuple[int, ...] | None:
        """Weights for all branches; those without a queue there have none."""
        found = top.weights[word]
        if found is None:
            return None
        count = len(takes)
        whole = found * count if len(found) == 1 else found or (1,) * count
        if len(whole) != count:
            message = f"there are {count} branches, but {len(whole)} weights"
            help_line = "one weight for each, in their order, or one for all: `roundrobin(1)`"
            raise self.report.error("streamit-weights", message, span, help_line)
        if any(w < 0 for w in whole) or (
            any(takes) and not any(w for w, has in zip(whole, takes, strict=True) if has)
        ):
            raise self.report.error("streamit-weights", "weights are whole numbers from 0, not all 0", span)
        return tuple(w if has else 0 for w, has in zip(whole, takes, strict=True))

    def feedback(self, top: _Open) -> ty.FeedbackLoop:
        """joiner, body, splitter, loop."""
        made = {role: part for (role, _, _), part in zip(top.wanted, top.made, strict=True)}
        left_out = [word for word in ("join", "split") if word not in top.weights]
        if left_out or not made:
            words = " and ".join(f"`{word}`" for word in left_out) or "`body` or `loop`"
            help_line = "it has `join`, `body`, `loop` and `split`, each once"
            raise self.report.error(
                "streamit-parts", f"this feedbackloop has no {words}", top.stream.span, help_line
            )
        if top.join is None or top.split is None:
            raise AssertionError  # they are among the weights
        if "body" in made and "loop" in made:
            body, loop = made["body"], made["loop"]
        else:  # what is left out passes the items of the other
            (one,) = made.values()
            other = ty.Identity(one.output, span=top.stream.span)
            body, loop = (one, other) if "body" in made else (other, one)
        if body.input != loop.output or body.output != loop.input or ty.VOID in (body.input, body.output):
            message = (
                f"the body is `{_shown(body.input)}->{_shown(body.output)}`, "
                f"the loop `{_shown(loop.input)}->{_shown(loop.output)}`: they must go round"
            )
            raise self.report.error("streamit-connection", message, top.stream.span)
        join = self.weights(top, "join", (True, True), top.join.span)
        split = self.weights(top, "split", (True, True), top.split.span)
        if join is None or join[1] == 0 or (split is not None and split[1] == 0):
            raise self.report.error("streamit-weights", "nothing would go round", top.join.span)
        waiting = tuple(self.item(expr, value, body.input, top.values) for expr, value in top.waiting)
        input_ = ty.VOID if join[0] == 0 else body.input
        output = ty.VOID if split is not None and split[0] == 0 else body.output
        pair = None if split is None else (split[0], split[1])
        return ty.FeedbackLoop(
            top.stream.name, input_, output, (join[0], join[1]), body, loop, pair, waiting, span=top.span
        )

    def item(self, expr: ty.Expr, value: Any, wanted: t.Type, values: Values) -> Any:
        """What is enqueued as an item of the loop."""
        found = self.concrete(expr.type, {**self.statics, **values})
        if found in (t.I32, t.F64) and wanted == t.F32:
            return constants.apply("f32", (found,), t.F32, (value,))
        if found in (t.I32, t.F32) and wanted == self.concrete(ty.COMPLEX, {}):
            return self.item(expr, value, t.F32, values), 0.0
        if found != wanted:
            message = f"the loop carries `{_shown(wanted)}`, not this"
            raise self.report.error("streamit-type", message, expr.span)
        return value

    def none(self, top: _Open, *words: str) -> None:
        """Refuses statements that belong to other kinds of streams."""
        extra = [word for word in words if word in top.weights]
        roles = {role for role, _, _ in top.wanted} - {"add"}
        if extra or roles or top.waiting:
            word = (*extra, *sorted(roles), "enqueue")[0]
            message = f"`{word}` has no place in a {top.stream.kind}"
            raise self.report.error("streamit-misplaced", message, top.stream.span)

    # -- statements

    def run(self, items: Sequence[ty.Stmt], values: Values, top: _Open | None) -> str | None:
        """Runs statements; `break`, `continue` or `return` when one of them ends a loop's turn or a function."""
        for item in items:
            left = self.statement(item, values, top)
            if left is not None:
                return left
        return None

    def statement(self, item: ty.Stmt, values: Values, top: _Open | None) -> str | None:
        """Runs a statement."""
        self.step(item.span)
        match item:
            case ty.Declare(key, type_, value):
                values[key] = self.declared(type_, value, values)
            case ty.Do(value):
                self.effect(value, values)
            case ty.Block(inner):
                return self.run(inner, values, top)
            case ty.If(cond, then, other):
                if self.value(cond, values):
                    return self.run(then.items, values, top)
                return None if other is None else self.run(other.items, values, top)
            case ty.For() | ty.While():
                return self.loop(item, values, top)
            case ty.Return(value):
                values[RESULT] = None if value is None else self.value(value, values)
                return "return"
            case ty.Break():
                return "break"
            case ty.Continue():
                return "continue"
            case ty.Add() | ty.Split() | ty.Join() | ty.Enqueue() if top is not None:
                self.graph(item, values, top)
            case ty.Print(value, line):
                self.said.append(self.value(value, values) + ("\n" if line else ""))
            case _:
                raise self.report.error("streamit-misplaced", "this has no place here", item.span)
        return None

    def step(self, span: Span | None) -> None:
        """Counts a step."""
        self.steps += 1
        if self.steps > LONGEST:
            message = f"making the graph took more than {LONGEST:,} steps"
            raise self.report.error("streamit-endless", message, span, f"does the loop end? {ELSEWHERE}")

    def loop(self, item: ty.For | ty.While, values: Values, top: _Open | None) -> str | None:
        """Runs a loop; `return` when that ends it."""
        first, steps = (item.first, item.steps) if isinstance(item, ty.For) else ((), ())
        coming = least_turns(item, values)
        if self.steps + coming > LONGEST:
            message = f"making the graph takes more than {LONGEST:,} steps, this loop alone {coming:,}"
            raise self.report.error("streamit-endless", message, item.span, ELSEWHERE)
        self.run(first, values, top)
        late = isinstance(item, ty.While) and item.late
        while late or self.value(item.cond, values):
            late = False
            self.step(item.span)
            left = self.run(item.body.items, values, top)
            if left in ("break", "return"):
                return None if left == "break" else left
            for step in steps:
                self.effect(step, values)
        return None

    def graph(self, item: ty.Add | ty.Split | ty.Join | ty.Enqueue, values: Values, top: _Open) -> None:
        """Runs a statement that builds."""
        match item:
            case ty.Add(role, creation):
                circle = top.stream.kind == "feedbackloop"
                if (role == "add") == circle:
                    message = f"`{role}` has no place in a {top.stream.kind}"
                    words = "`body` or `loop`: what goes on, or back" if circle else "`add`"
                    raise self.report.error("streamit-misplaced", message, item.span, f"write {words}")
                if circle and role in (known for known, _, _ in top.wanted):
                    help_line = "put several streams into a pipeline: `body pipeline { add F; add G; }`"
                    message = f"there is already a `{role}`"
                    raise self.report.error("streamit-parts", message, item.span, help_line)
                if len(top.wanted) >= LARGEST:
                    raise self.report.error(
                        "streamit-too-many", f"the graph has more than {LARGEST:,} filters", item.span
                    )
                heard = (
                    ty.Constant(portal.type, self.value(portal, values), span=portal.span)
                    for portal in creation.portals
                )
                top.wanted.append(
                    (role, evolve(creation, portals=tuple(heard)), self.bound(creation, values))
                )
            case ty.Split(weights):
                self.once(top, "split", item)
                top.split = item
                top.weights["split"] = (
                    None if weights is None else tuple(self.value(w, values) for w in weights)
                )
            case ty.Join(weights):
                self.once(top, "join", item)
                top.join = item
                top.weights["join"] = tuple(self.value(w, values) for w in weights)
            case ty.Enqueue(value):
                if top.stream.kind != "feedbackloop":
                    message = f"`enqueue` has no place in a {top.stream.kind}"
                    raise self.report.error("streamit-misplaced", message, item.span)
                top.waiting.append((value, constants.frozen(self.value(value, values))))

    def once(self, top: _Open, word: str, item: ty.Stmt) -> None:
        """Refuses a second splitter or joiner."""
        if word in top.weights:
            raise self.report.error("streamit-parts", f"there is already a `{word}`", item.span)

    # -- values

    def declared(self, type_: ty.Type, value: ty.Expr | None, values: Values) -> Any:
        """The first value of a variable; each portal is another one."""
        if isinstance(type_, ty.Portal):
            self.portals += 1
            return self.portals
        if value is None:
            self.few(type_, values)
            return self.guarded(lambda: constants.zero(type_, values, self.sizing), None)
        found = constants.thawed(self.value(value, values))
        self.fits(type_, found, values, value.span)
        return found

    def few(self, type_: ty.Type, values: Values) -> None:
        """Refuses an array that is too large to be computed while streams are made."""
        items, at = 1, type_
        while isinstance(at, ty.Vector):
            size = at.size
            items *= max(0, self.guarded(partial(constants.evaluate, size, values, self.sizing), size.span))
            if items > MOST_ITEMS:
                message = f"an array that is computed while streams are made has at most {MOST_ITEMS:,} items"
                raise self.report.error("streamit-size", message, size.span)
            at = at.item

    def value(self, expr: ty.Expr, values: Values) -> Any:
        """The value of an expression. Raises: Failed, when it is reported."""
        if isinstance(expr, ty.Update):
            return self.effect(expr, values)
        code = self.codes.get(id(expr))
        if code is None:
            code = self.codes[id(expr)] = constants.code(expr)
            self.seen.append(expr)
        try:
            return code(values, self.act)
        except (TrapSignal, LookupError) as error:
            raise self.unknown(error, expr.span) from error

    def act(self, expr: ty.Call | ty.Update | ty.Load, values: Mapping[str, Any]) -> Any:
        """What does more than give a value, as part of an expression."""
        own = values if isinstance(values, dict) else dict(values)
        match expr:
            case ty.Update():
                return self.effect(expr, own)
            case ty.Load():
                return self.loaded(expr, own)
            case ty.Call():
                return self.called(expr, own)

    def sizing(self, expr: ty.Call | ty.Update | ty.Load, values: Mapping[str, Any]) -> Any:
        """The same in the size of an array, which is computed more than once."""
        match expr:
            case ty.Update():
                raise LookupError
            case _:
                return self.act(expr, values)

    def called(self, call: ty.Call, values: Values) -> Any:
        """What a function gives."""
        helper = self.helpers.get(call.helper)
        if helper is None:
            raise LookupError
        own = dict(self.statics)
        for i, (param, arg) in enumerate(zip(helper.params, call.args, strict=True)):
            given = self.value(arg, values)
            own[param.key] = given if i in call.changes else constants.thawed(given)
            self.fits(param.type, given, own, arg.span or call.span)
        self.depth += 1
        if self.depth > DEEPEST:
            message = f"functions call one another more than {DEEPEST:,} deep"
            raise self.report.error("streamit-endless", message, call.span, "does the recursion end?")
        with more_room(CALLS):
            self.run(helper.body.items, own, None)
        self.depth -= 1
        return own.get(RESULT)

    def loaded(self, load: ty.Load, values: Values) -> list[Any]:
        """The numbers that stand in the first lines of a text."""
        assert isinstance(load.type, ty.Vector)  # noqa: S101 - the checker has made it
        item, span = load.type.item, load.span
        self.few(load.type, values)
        size = self.value(load.type.size, values)
        try:
            lines = Path(load.path).read_text(encoding="utf-8", errors="replace").splitlines()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            message = f"`{load.path}` cannot be read: {reason.lower()}"
            raise self.report.error(
                "streamit-file", message, span, "it is sought in the folder of the run"
            ) from error
        if len(lines) < size:
            message = f"`{load.path}` has {len(lines)} lines, but {size} numbers are wanted"
            raise self.report.error("streamit-file", message, span)
        if len(lines) > size:
            message = f"`{load.path}` has {len(lines)} lines, of which only {size} are read"
            self.report.warn("streamit-file", message, span)
        kind, word = (_WHOLE, "int") if item == ty.INT else (_REAL, "float")
        for number, line in enumerate(lines[:size], 1):
            if kind.fullmatch(line) is None or (item == ty.INT and not -(1 << 31) <= int(line) < 1 << 31):
                message = f"line {number} of `{load.path}` is no `{word}`: `{line[:40]}`"
                raise self.report.error("streamit-file", message, span)
        if item == ty.INT:
            return [int(line) for line in lines[:size]]
        return [constants.apply("f32", (t.F64,), ty.FLOAT, (float(line),)) for line in lines[:size]]

    def guarded(self, compute: Any, span: Span | None) -> Any:
        """What `compute` gives, its failures as diagnostics."""
        try:
            return compute()
        except (TrapSignal, LookupError) as error:
            raise self.unknown(error, span) from error

    def unknown(self, error: TrapSignal | LookupError, span: Span | None) -> Failed:
        """The error that something has no value."""
        match error:
            case TrapSignal(code=code):
                reason = code.replace("-", " ")
            case IndexError():
                reason = "an index is outside of its array"
            case _:
                reason = "it depends on the stream, or changes something inside of an expression"
        return self.report.error("streamit-constant", f"this cannot be computed: {reason}", span)

    def effect(self, expr: ty.Expr, values: Values) -> Any:
        """Runs an assignment."""
        if not isinstance(expr, ty.Update):
            return self.value(expr, values)
        if id(expr) not in self.changing:
            self.changing[id(expr)] = constants.changing(expr)
            self.seen.append(expr)
        quick = self.changing[id(expr)]
        if quick is None:
            return self.slowly(expr, values)
        try:
            return quick(values, self.act)
        except (TrapSignal, LookupError) as error:
            self.slowly(expr, values)  # this fails, too, and knows where
            raise self.unknown(error, expr.span) from error

    def slowly(self, expr: ty.Update, values: Values) -> Any:
        """The same part by part."""
        place, operation = expr.place, expr.operation
        holder, key = self.held(place, values)
        before = holder[key]
        outer = values.get(constants.OLD)
        values[constants.OLD] = before
        new = self.value(expr.value, values)
        values[constants.OLD] = outer
        if operation is not None:
            types = (place.type, expr.value.type)
            new = self.guarded(lambda: constants.apply(operation, types, expr.type, (before, new)), expr.span)
        elif isinstance(expr.type, ty.Vector | ty.Struct) and not constants.alike(before, new):
            sizes = f"{len(before)} items, found {len(new)}"
            found = sizes if len(before) != len(new) else "arrays of other sizes"
            raise self.report.error("streamit-size", f"expected {found}", expr.span)
        holder[key] = constants.thawed(new)
        return before if expr.after else new

    def held(self, place: ty.Expr, values: Values) -> tuple[Any, Any]:
        """What holds a place, and by which key or index."""
        match place:
            case ty.Local(_, key) | ty.Param(_, key):
                return values, key
            case ty.StructPart(_, whole, index):
                return self.value(whole, values), index
            case ty.At(_, array, index):
                target, where = self.value(array, values), self.value(index, values)
                if not 0 <= where < len(target):
                    message = "this cannot be computed: an index is outside of its array"
                    raise self.report.error("streamit-constant", message, place.span)
                return target, where
            case _:
                raise self.report.error("streamit-place", "only variables can be changed here", place.span)


@define
class _Shapes:
    """Compares the sizes of arrays that meet."""

    work: _Elaborator
    values: Values

    def meet(self, type_: ty.Type, value: ty.Expr | None, span: Span | None) -> None:
        """Refuses a value of another shape."""
        wanted = self.work.concrete(type_, self.values)
        if value is not None:
            self.compare(wanted, value, span)

    def compare(self, wanted: t.Type, value: ty.Expr, span: Span | None) -> None:
        """Compares a value, part by part where it is written so, with the type that it has to have."""
        match value, wanted:
            case ty.Display(_, items), t.Array(item, size):
                if len(items) != size:
                    message = f"expected {size} items, found {len(items)}"
                    raise self.work.report.error("streamit-size", message, value.span)
                for each in items:
                    self.compare(item, each, each.span)
            case ty.Make(_, items), t.Record(fields):
                for (_, part), each in zip(fields, items, strict=True):
                    self.compare(part, each, each.span)
            case _, t.Array():
                found = self.work.concrete(value.type, self.values)
                if found != wanted:
                    message = f"expected `{_shown(wanted)}`, found `{_shown(found)}`"
                    raise self.work.report.error("streamit-size", message, span)
            case _:
                pass


def _path(creation: ty.Create, stack: Sequence[_Open]) -> str:
    """What the stream is called that is being made innermost."""
    found = creation.stream
    for top in stack:
        names = [wanted.stream for _, wanted, _ in top.wanted]
        if len(top.made) < len(names):
            found = inside(found, label(names, len(top.made)))
    return found


def queue_name(path: str, taken: set[str]) -> str:
    """The name of the queue for a file: its own without folder and suffix, where that is a name and nobody else's."""
    stem = re.sub(r"\W", "_", PurePosixPath(path).stem, flags=re.ASCII)
    if not stem or stem[0].isdigit() or stem.strip("_") == "":
        stem = f"file_{stem}"
    return fresh(stem, taken | RESERVED)


def _look_at_prints(graph: ty.Graph, told: Sequence[ty.Channel], said: bool, report: Report) -> None:
    """Refuses prints of too many filters; warns of a program from which nothing comes. `said`: the beginning prints."""
    every = leaves(graph)
    heard = {id(channel.receiver) for channel in told}
    nodes = [node for node in every if isinstance(node, ty.Node)]
    alike: dict[tuple[str, bool], bool] = {}  # one filter may stand in the graph many times
    printing: list[ty.Node] = []
    for node in nodes:
        key = node.filter.name, id(node) in heard
        if key not in alike:
            alike[key] = prints(node.filter, heard=key[1])
        printing += [node] if alike[key] else []
    writes = any(isinstance(part, ty.File) and not part.reads for part in every)
    if graph.output == ty.VOID and not printing and not writes and not said:
        report.warn(
            "streamit-no-output", "nothing comes out of this program", graph.span, "print, or write a file"
        )
    if len(printing) > WIDEST:
        raise report.error("streamit-too-many", f"more than {WIDEST:,} filters print", graph.span)


def leaves(graph: ty.Graph) -> list[ty.Graph]:
    """The filters of a graph in the order of the text."""
    found: list[ty.Graph] = []
    stack = [graph]
    while stack:
        part = stack.pop()
        inner = parts(part)
        stack += reversed(inner)
        if not inner:
            found.append(part)
    return found


def prints(filter_: ty.Filter, *, heard: bool) -> bool:
    """Whether firings of the filter print; `heard`: messages may call its functions."""
    return _prints(Same(filter_), heard=heard)


@lru_cache(maxsize=1024)
def _prints(same: Same[ty.Filter], *, heard: bool) -> bool:
    """The same: it is asked of each place in the graph, where a few filters stand a thousand times."""
    filter_ = same.value
    works = [work.body for work in (filter_.work, filter_.prework) if work is not None]
    called = [helper.body for helper in filter_.helpers if helper.result == ty.VOID] if heard else []
    return Usage.of(filter_).prints((*works, *called))


def _shown(type_: t.Type) -> str:
    words = ((ty.VOID, "void"), (t.I32, "int"), (t.F32, "float"), (t.BOOL, "boolean"))
    return next((word for known, word in words if known == type_), None) or show(type_)
