"""Typed to River IL: an operator for each step, each an instance of a template."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never, cast

from attrs import define, field

from river.il import program as p
from river.il.trees import fresh, names, rebuild
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import expression

from . import syntax as y

if TYPE_CHECKING:
    from .check import Pipeline, Typed


def lower(pipeline: Pipeline) -> p.Program:
    """The pipeline as River IL."""
    lowering = _Lowering({pipeline.source.name, pipeline.sink.name})
    queue = pipeline.source.name
    for step in pipeline.steps:
        out = pipeline.sink.name if step is pipeline.steps[-1] else lowering.name("queue")
        lowering.step(step, queue, out)
        queue = out
    row = pipeline.steps[-1].after
    source = p.Input(pipeline.source.name, expression(pipeline.row), span=pipeline.source.span)
    sink = p.Output(pipeline.sink.name, expression(row), span=pipeline.sink.span)
    return p.Program((source, sink, *lowering.declarations, *lowering.uses))


@define
class _Lowering:
    taken: set[str]
    declarations: list[p.Decl] = field(factory=list[p.Decl])
    uses: list[p.Decl] = field(factory=list[p.Decl])

    def name(self, like: str) -> str:
        """A name that nothing bears yet."""
        found = fresh(like, self.taken)
        self.taken.add(found)
        return found

    def step(self, typed: Typed, queue: str, out: str) -> None:
        """Declares the operator of a step, and uses it."""
        step, before, after = typed.step, expression(typed.before), expression(typed.after)
        parallel = p.Annotation("Parallel")
        match step:
            case y.Keep(condition):
                args = (("T", before), ("where", _over(typed.before, condition)))
                operator = self.instance("keep", "std.filter", args, step)
                use = p.Use((out,), operator, (queue,), (parallel,), span=step.span)
            case y.Map(row):
                args = (("T", before), ("U", after), ("f", _over(typed.before, row)))
                operator = self.instance("map", "std.map", args, step)
                use = p.Use((out,), operator, (queue,), (parallel,), span=step.span)
            case y.Count(keys):
                key = s.TupleValue(keys)
                kind = expression(t.Tuple(tuple(type_ for _, type_ in typed.after.fields[:-1])))
                row = s.RecordValue(tuple(s.FieldValue(key.name, key) for key in keys))
                args = (
                    ("T", before), ("K", kind), ("O", after), ("key", _over(typed.before, key)),
                    ("row", _counted(typed.before, row)),
                )  # fmt: skip
                operator = self.instance("count", "steps.count", args, step)
                counts = self.name("counts")
                state = s.TypeName("map", (kind, s.TypeName("i64")))
                self.declarations.append(p.Variable(counts, state, s.MapValue(()), span=step.span))
                by = p.Annotation("Keys", keys)
                ends = (out, f"${counts}"), operator, (queue, f"${counts}")
                use = p.Use(*ends, (parallel, by), span=step.span)
            case _:
                assert_never(step)
        self.uses.append(use)

    def instance(
        self, title: str, template: str, args: tuple[tuple[str, s.TemplateArg], ...], step: y.Step
    ) -> str:
        """Declares an instance of a template; its name."""
        name = self.name(title)
        self.declarations.append(p.Instance(name, template, args, span=step.span))
        return name


def _over(row: t.Record, expr: s.Expr) -> s.Lambda:
    """An expression over the fields of a row as a function of the row."""
    fields = {name for name, _ in row.fields}
    param = fresh("r", names(expr) | fields)

    def rewrite(node: s.Node) -> s.Node:
        match node:
            case s.Name(name) if name in fields:  # no local hides a field: names do not hide one another
                return s.Member(s.Name(param), name, span=node.span)
            case _:
                return rebuild(node, rewrite)

    return s.Lambda((param,), cast("s.Expr", rewrite(expr)), span=expr.span)


def _counted(row: t.Record, made: s.RecordValue) -> s.Lambda:
    """The row of keys with the count as its last field, as a function of the row and the count."""
    (param,), body = (over := _over(row, made)).params, cast("s.RecordValue", over.body)
    count = fresh("n", {param})
    return s.Lambda((param, count), s.RecordValue((*body.fields, s.FieldValue("count", s.Name(count)))))
