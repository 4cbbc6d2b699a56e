"""The arrow from a template and its arguments to an operator (il.md P4).

An instance is the template's tree with its holes filled, before anything is checked. Filling captures no names: what an
argument says keeps the meaning that it has at the program's top level. A lambda is put in place of its hole when that
evaluates every argument exactly as a call would; otherwise it becomes a local function, which is called.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, TypeVar, cast

from river.classes import evolve, frozen
from river.diagnostics import Diagnostic, Note, Rejected, closest
from river.il.namespaces import ARTICLES, Args, kind_of
from river.il.trees import Same, binders, free_names, fresh, is_number, names, rebuild, walk
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from river.source import Span

N = TypeVar("N", bound=s.Node)

ANY = s.TypeName("any")
"""In the kind of a function parameter: not stated. Such a function is only put in place, never called."""


def instantiate(template: s.Template, args: Args, name: str, span: Span | None) -> s.Operator:
    """The operator `name` that `template` makes of `args`. Nodes keep the spans of the text they come from.

    Raises: Rejected with il-template-missing, il-template-unknown-argument, il-template-argument, il-template-lambda.
    """
    constants = _of_constants(Same(template))
    values = {name: arg for name, arg in args if name in constants and is_number(arg)}
    rest = tuple(pair for pair in args if pair[0] not in values)
    inside = _inside_constants(Same(template))
    whole = all(holes <= values.keys() or not holes & values.keys() for holes in inside)
    if whole and len(values) + len(rest) == len(args) and values and all(_short(arg) for _, arg in rest):

        def value(node: s.Node) -> s.Node:
            return values[node.name] if isinstance(node, s.Hole) else rebuild(node, value)

        try:
            filled = _filled(Same(template), frozenset(values), _Rest(rest))
        except Rejected:
            pass  # is told of the instance itself
        else:
            consts = tuple(
                evolve(const, value=value(own.value)) if holes & values.keys() else const
                for own, const, holes in zip(template.operator.consts, filled.consts, inside, strict=True)
            )
            return evolve(filled, name=name, consts=consts, span=span or filled.span)
    return _instantiated(template, args, name, span)


def _instantiated(template: s.Template, args: Args, name: str, span: Span | None) -> s.Operator:
    """The operator of a template for arguments: their values in its holes, its functions called otherwise than theirs."""
    bound = _bind(template, args, span)
    called = {n.function for arg in bound.values() for n in walk(arg) if isinstance(n, s.Call)}
    operator = template.operator
    taken = {*_names(Same(operator)), *called}
    renamed: dict[str, str] = {}
    for fn in operator.fns:
        if fn.name in called:
            renamed[fn.name] = fresh(fn.name, taken)
            taken.add(renamed[fn.name])
    if renamed:
        operator = _rename_fns(operator, renamed)
    filling = _Filling({p.name: p.kind for p in template.params}, bound, taken, span)
    filled = rebuild(operator, filling.single)
    if filling.errors:
        raise Rejected(filling.errors)
    return evolve(filled, name=name, fns=(*filled.fns, *filling.fns.values()), span=span or operator.span)


@frozen(eq=False, slots=False)
class _Rest:
    """Arguments, all short and without places, as a key: as text, which tells 0.0 from -0.0."""

    args: Args

    @cached_property
    def text(self) -> str:
        """All that is known of them."""
        return repr(self.args)

    def __eq__(self, other: object) -> bool:
        """Whether the others say the same."""
        return isinstance(other, _Rest) and other.text == self.text

    def __hash__(self) -> int:
        """That of the text."""
        return hash(self.text)


@lru_cache(maxsize=1024)
def _filled(template: Same[s.Template], constants: frozenset[str], rest: _Rest) -> s.Operator:
    """The operator that instances are but for their names, places, and the values of some constants."""
    op = template.value.operator
    unset = tuple(
        evolve(const, value=s.Int(0)) if holes & constants else const
        for const, holes in zip(op.consts, _inside_constants(template), strict=True)
    )
    params = tuple(param for param in template.value.params if param.name not in constants)
    reduced = evolve(template.value, params=params, operator=evolve(op, consts=unset))
    return _instantiated(reduced, rest.args, op.name, None)


@lru_cache(maxsize=512)
def _of_constants(template: Same[s.Template]) -> frozenset[str]:
    """The parameters that stand in values of constants of the operator and nowhere else."""
    op = template.value.operator
    parts = (op, *(param.kind for param in template.value.params if isinstance(param.kind, s.Node)))
    everywhere = Counter(name for part in parts for name in _holes(part))
    there = Counter(
        node.name
        for const in op.consts
        for node in walk(const.value)
        if isinstance(node, s.Hole) and node.args is None
    )
    kinds = {param.name: kind_of(param.kind) for param in template.value.params}
    return frozenset(
        name for name, count in there.items() if kinds.get(name) == "expression" and everywhere[name] == count
    )


@lru_cache(maxsize=512)
def _inside_constants(template: Same[s.Template]) -> tuple[frozenset[str], ...]:
    """The parameters that stand in the value of each constant of the operator."""
    return tuple(frozenset(_holes(const.value)) for const in template.value.operator.consts)


def _holes(part: s.Node) -> Iterator[str]:
    """The parameters that stand in a part of a template, as often as they do."""
    for node in walk(part):
        if isinstance(node, s.Hole | s.HoleType):
            yield node.name
        elif isinstance(node, s.SpliceType | s.EachType | s.EachValue | s.Each):
            yield node.hole


def _short(arg: s.TemplateArg) -> bool:
    """Whether an argument is a number or a name that stands nowhere, so that its text says all of it."""
    match arg:
        case s.Unary("-", (s.Int() | s.Float()) as value):
            return arg.span is None and value.span is None
        case s.Int() | s.Float() | s.Bool() | s.Name() | s.TypeName(_, ()):
            return arg.span is None
        case _:
            return False


@lru_cache(maxsize=512)
def _names(operator: Same[s.Operator]) -> frozenset[str]:
    """The names in the operator of a template, of which most programs have several instances."""
    return names(operator.value)


def _rename_fns(operator: s.Operator, renamed: Mapping[str, str]) -> s.Operator:
    def rewrite(node: s.Node) -> s.Node:
        node = rebuild(node, rewrite)
        match node:
            case s.Fn(name, _, _, _) if name in renamed:
                return evolve(node, name=renamed[name])
            case s.Call(name, _) if name in renamed:
                return evolve(node, function=renamed[name])
            case _:
                return node

    return rebuild(operator, rewrite)


def _bind(template: s.Template, args: Args, span: Span | None) -> dict[str, s.Node]:
    """The arguments by parameter, each of the kind its parameter wants."""
    errors: list[Diagnostic] = []
    params = {p.name: p for p in template.params}
    bound: dict[str, s.Node] = {}
    for name, arg in args:
        if name not in params:
            message = f"`{template.operator.name}` has no parameter `#{name}`"
            errors.append(
                Diagnostic(
                    "il-template-unknown-argument", message, arg.span or span, help=closest(name, params)
                )
            )
            continue
        if name in bound:
            errors.append(Diagnostic("il-template-argument", f"`{name}` is given twice", arg.span or span))
            continue
        fitted = _fit(params[name].kind, arg)
        if fitted is None:
            message = f"`{name}` wants {ARTICLES[kind_of(params[name].kind)]}{_arity(params[name].kind)}"
            errors.append(Diagnostic("il-template-argument", message, arg.span or span))
            continue
        bound[name] = fitted
        errors += _closed(name, fitted, span)
    missing = [name for name in params if name not in bound and name not in dict(args)]
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        errors.append(
            Diagnostic("il-template-missing", f"`{template.operator.name}` also needs {listed}", span)
        )
    if errors:
        raise Rejected(errors)
    return bound


def _arity(kind: s.TypeExpr | str) -> str:
    return (
        f" of {len(kind.params)} parameter{'s' * (len(kind.params) != 1)}"
        if isinstance(kind, s.FunctionType)
        else ""
    )


def _fit(kind: s.TypeExpr | str, arg: s.TemplateArg) -> s.Node | None:
    """`arg` as what a parameter of this kind wants, or None. A bare name may be a type, `{}` may be no fields."""
    match kind_of(kind), arg:
        case "type", s.Name(name):
            return s.TypeName(name, span=arg.span)
        case "type", s.TypeName() | s.OptionalType() | s.RecordType() | s.TupleType():
            return arg
        case "fields", s.FieldsArg():
            return arg
        case "fields", s.MapValue(()) | s.RecordValue(()):
            return s.FieldsArg((), span=arg.span)
        case "fields", s.RecordType(fields):
            plain = [f for f in fields if isinstance(f, s.FieldType)]
            if len(plain) < len(fields):
                return None
            return s.FieldsArg(tuple(s.FieldArg(f.name, f.type, span=f.span) for f in plain), span=arg.span)
        case "lambda", s.Lambda(params, _):
            return arg if isinstance(kind, s.FunctionType) and len(kind.params) == len(params) else None
        case "expression", s.TypeName(name, ()):
            return s.Name(name, span=arg.span)
        case "expression", _ if not isinstance(arg, s.Lambda | s.FieldsArg | _TYPES):
            return arg
        case _:
            return None


_TYPES = s.TypeName | s.OptionalType | s.RecordType | s.TupleType | s.FunctionType | s.HoleType


def _closed(name: str, arg: s.Node, span: Span | None) -> list[Diagnostic]:
    """Refuses arguments that name something of the place where they would be put."""
    errors: list[Diagnostic] = []
    for free in _free(arg):
        match free:
            case s.Name(local):
                what, help_ = f"`{local}`, which is not known there", None
            case s.Var(variable):
                what, help_ = f"the variable `${variable}`", "pass its value as an argument of the function"
            case _:
                what, help_ = "a hole", None
        where = free.span or arg.span or span
        errors.append(
            Diagnostic("il-template-argument", f"the argument `{name}` names {what}", where, help=help_)
        )
    return errors


def _free(arg: s.Node) -> list[s.Node]:
    loose: list[s.Node] = list(free_names(arg))
    return loose + [n for n in walk(arg) if isinstance(n, s.Var | s.Hole | s.HoleType)]


_HOLES: Final = frozenset({
    s.HoleType, s.Hole, s.SpliceType, s.EachType, s.EachValue, s.Each, s.Do,
})  # fmt: skip
"""The classes of nodes that are filled, or may be: a statement is a call of what a hole stands for."""


class _Filling:
    """One instantiation: what the holes stand for, and the local functions that lambdas became."""

    def __init__(
        self,
        kinds: Mapping[str, s.TypeExpr | str],
        bound: Mapping[str, s.Node],
        taken: set[str],
        span: Span | None,
    ) -> None:
        self.kinds = kinds
        self.bound = bound
        self.taken = taken
        self.span = span
        self.each: dict[str, s.FieldArg] = {}
        self.renamed: dict[str, str] = {}
        self.fns: dict[str, s.Fn] = {}
        self.errors: list[Diagnostic] = []

    def refuse(self, message: str, node: s.Node) -> None:
        """Notes that an argument cannot stand where the template wants it."""
        note = (Note("in this instance", self.span),)
        self.errors.append(Diagnostic("il-template-lambda", message, node.span or self.span, notes=note))

    def single(self, node: s.Node) -> s.Node | tuple[s.Node, ...]:
        """`node` filled; several nodes for a splice or a repetition."""
        if node.__class__ not in _HOLES:
            return self.named(rebuild(node, self.single))
        match node:
            case s.HoleType(name) | s.Hole(name, None):
                return self.value(name, node)
            case s.Hole(name, args) if args is not None:
                return self.applied(name, tuple(self.one(a) for a in args), node)
            case s.SpliceType(hole):
                fields = self.fields(hole)
                return tuple(s.FieldType(f.name, f.type, span=node.span) for f in fields)
            case s.EachType(name, hole, items) | s.EachValue(name, hole, items):
                return self.repeated(name, hole, items)
            case s.Each(name, hole, body):
                return self.repeated(name, hole, body.items, rename=True)
            case s.Do(s.Hole() as call):
                inlined = self.one(call)
                if isinstance(inlined, s.Call):
                    return evolve(node, call=inlined)
                self.refuse(f"`#{call.name}` stands as a statement here: its body must be a call", node)
                return node
            case _:
                return self.named(rebuild(node, self.single))

    def one(self, node: N) -> N | s.Node:
        """`node` filled, where it cannot become several."""
        filled = self.single(node)
        return node if isinstance(filled, tuple) else filled

    def named(self, node: s.Node) -> s.Node:
        """`node` itself with the names of each-variables and of repeated locals replaced."""
        if not self.each and not self.renamed:
            return node
        match node:
            case s.Member(_, name) | s.FieldType(name, _) | s.FieldValue(name, _) if name in self.each:
                return evolve(node, name=self.each[name].name)
            case s.Name(name) | s.Drop(name) if name in self.renamed:
                return evolve(node, name=self.renamed[name])
            case s.Let(name, _, _) | s.VarDecl(name, _, _) if name in self.renamed:
                return evolve(node, name=self.renamed[name])
            case _:
                return node

    def fields(self, hole: str) -> tuple[s.FieldArg, ...]:
        """The fields that an argument lists."""
        arg = self.bound[hole]
        assert isinstance(arg, s.FieldsArg)  # noqa: S101 - check_template has seen to it
        return arg.fields

    def repeated(
        self, name: str, hole: str, items: Iterable[s.Node], *, rename: bool = False
    ) -> tuple[s.Node, ...]:
        """The items once for each field. What a repeated statement declares is spelled anew each time."""
        found: list[s.Node] = []
        before = self.renamed
        for arg in self.fields(hole):
            self.each[name] = arg
            if rename:
                own = [
                    local for item in items if isinstance(item, s.Let | s.VarDecl) for local in binders(item)
                ]
                self.renamed = {**before, **{local: self.unused(f"{local}_{arg.name}") for local in own}}
            for item in items:
                filled = self.single(item)
                found += filled if isinstance(filled, tuple) else (filled,)
            del self.each[name]
        self.renamed = before
        return tuple(found)

    def unused(self, name: str) -> str:
        """A name like `name` that nothing in the operator bears yet."""
        found = fresh(name, self.taken)
        self.taken.add(found)
        return found

    def value(self, name: str, node: s.Node) -> s.Node:
        """What a hole without arguments stands for."""
        if name not in self.each:
            found = self.bound[name]
            return self.avoiding(found) if isinstance(found, s.Lambda) else found
        each = self.each[name]
        if isinstance(node, s.HoleType):
            return each.type
        if each.payload is None:
            self.refuse(f"field `{each.name}` is given without a value, which is wanted here", node)
            return node
        if isinstance(each.payload, s.Lambda):
            self.refuse(f"field `{each.name}` is given a function, a value is wanted here", node)
            return node
        return each.payload

    def applied(self, name: str, args: tuple[s.Node, ...], node: s.Node) -> s.Node:
        """`#name(args)`."""
        function = self.each[name].payload if name in self.each else self.bound[name]
        if not isinstance(function, s.Lambda) or len(function.params) != len(args):
            count = f"{len(args)} parameter{'s' * (len(args) != 1)}"
            self.refuse(f"`#{name}` is not a function of {count} here", node)
            return node
        own = self.avoiding(function)
        if _inlines(own, args):
            return _substituted(own.body, dict(zip(own.params, args, strict=True)))
        kind = self.kinds.get(name)
        if not isinstance(kind, s.FunctionType) or any(n == ANY for n in walk(kind)):
            message = f"an argument of `#{name}` would be evaluated more than once, or out of order"
            self.refuse(f"{message}: bind it with `let` first", node)
            return node
        if name not in self.fns:
            types = [cast("s.TypeExpr", self.one(param)) for param in kind.params]
            params = tuple(
                s.Param(p, type_, span=own.span) for p, type_ in zip(own.params, types, strict=True)
            )
            result = cast("s.TypeExpr", self.one(kind.result))
            self.fns[name] = s.Fn(self.unused(name), params, result, own.body, span=own.span)
        return s.Call(self.fns[name].name, cast("tuple[s.Expr, ...]", args), span=node.span)

    def avoiding(self, function: s.Lambda) -> s.Lambda:
        """The lambda with its parameters and all names bound in its body spelled so that they hide nothing."""
        inside = dict.fromkeys(name for node in walk(function) for name in binders(node))
        return _respelled(function, {name: self.unused(name) for name in inside})


def _respelled(node: N, renamed: Mapping[str, str]) -> N:
    """The expression with the names that comprehensions and lambdas in it bind spelled anew."""

    def inside(node: s.Node, live: Mapping[str, str]) -> s.Node:
        match node:
            case s.Name(name):
                return evolve(node, name=live.get(name, name))
            case s.Comprehension(value, own, range_, cond):
                below = {**live, **{name: renamed[name] for name in own}}
                return evolve(
                    node,
                    value=inside(value, below),
                    names=tuple(renamed[name] for name in own),
                    range=inside(range_, live),
                    cond=None if cond is None else inside(cond, below),
                )
            case s.Lambda(params, body):
                below = {**live, **{name: renamed[name] for name in params}}
                return evolve(node, params=tuple(renamed[name] for name in params), body=inside(body, below))
            case _:
                return rebuild(node, lambda child: inside(child, live))

    return cast("N", inside(node, {}))


def _substituted(body: s.Node, args: Mapping[str, s.Node]) -> s.Node:
    """The body of a lambda with its parameters replaced. Nothing inside binds a name that an argument uses."""

    def rewrite(node: s.Node) -> s.Node:
        match node:
            case s.Name(name) if name in args:
                return args[name]
            case _:
                return rebuild(node, rewrite)

    return rewrite(body)


def _inlines(function: s.Lambda, args: Sequence[s.Node]) -> bool:
    """Whether replacing the parameters evaluates as a call would: each argument once, before anything else.

    Arguments that cost nothing and have no effect may stand anywhere; one other may stand where the body begins.
    """
    costly = [param for param, arg in zip(function.params, args, strict=True) if not _cheap(arg)]
    if not costly:
        return True
    uses = [node for node in free_names(function.body) if node.name in costly]
    return len(costly) == 1 and len(uses) == 1 and _first(function.body) is uses[0]


def _cheap(arg: s.Node) -> bool:
    match arg:
        case s.Name() | s.Var() | s.Int() | s.Float() | s.String() | s.Bytes() | s.Bool() | s.NoneValue():
            return True
        case s.Member(value, _) | s.Unary("-", (s.Int() | s.Float()) as value):
            return _cheap(value)
        case _:
            return False


def _first(expr: s.Node) -> s.Node:
    """What is evaluated first in an expression."""
    match expr:
        case s.Member(value, _) | s.Index(value, _) | s.Slice(value, _, _) | s.Force(value) | s.IsNone(value):
            return _first(value)
        case s.Unary(_, value) | s.Binary(_, value, _) | s.IfExpr(value, _, _) | s.FieldValue(_, value):
            return _first(value)
        case s.Comprehension(_, _, range_, _):
            return _first(range_)
        case s.Range(low, _):
            return _first(low)
        case (
            s.Call(_, (head, *_))
            | s.RecordValue((head, *_))
            | s.TupleValue((head, *_))
            | s.ListValue((head, *_))
        ):
            return _first(head)
        case _:
            return expr
