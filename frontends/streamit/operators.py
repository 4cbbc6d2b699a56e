"""A filter as an operator: a template with a hole for each parameter that it uses, and an instance for each choice of them.

Fields that no work function changes are constants of the operator, computed once; the others are variables. What `init`
does is a function that gives the fields: of the operator for its constants, of the program for variables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frontends.streamit import constants
from frontends.streamit import typed as ty
from frontends.streamit.elaborate import prints
from frontends.streamit.literals import literal, minus, number, plus, times, zero
from frontends.streamit.rates import Intervals
from frontends.streamit.translate import (
    Writer,
    ends,
    function,
    message_list,
    message_port,
    message_type,
    tried,
)
from frontends.streamit.translate_expressions import Cursor, FilterScope, NotStatic, kept
from frontends.streamit.trees import Usage, pure, read, updated
from river.classes import define, evolve, field, frozen
from river.il import program as p
from river.il.trees import fresh, rebuild, walk
from river.lang import syntax as s
from river.lang import types as t
from river.lang.operations import OPERATIONS
from river.lang.parse import RESERVED
from river.lang.scope import expression
from river.lang.values import TrapSignal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@define
class Used:
    """A filter of the graph in the program: how often it fires for each tick and before the first, and its variables.

    `begun`: it has a port for an item that lets its `prework` fire before anything else has come. `heard`: the channels of which
    each firing takes a list of messages; `sent`: the parameters that are portals to which somebody listens. `said`: what its
    `init` prints.
    """

    node: ty.Node
    firings: int
    starts: int = 0
    begun: bool = False
    heard: tuple[ty.Channel, ...] = ()
    sent: tuple[str, ...] = ()
    instance: str = ""
    variables: tuple[p.Variable, ...] = ()
    said: s.Expr | None = None


def operators(
    filter_: ty.Filter,
    uses: Sequence[Used],
    taken: set[str],
    variables: set[str],
    routines: Mapping[str, str],
    messages: Mapping[str, ty.Message],
) -> list[p.Decl]:
    """The declarations of a filter; sets the instance and the variables of each use.

    `taken`: names of operators and functions of the program; `variables`: those of its variables; `routines`: the functions
    for operations of complex numbers; `messages`: the sorts of messages.
    """
    return _Form(filter_, tuple(uses), taken, variables, routines, messages).declarations()


@frozen
class _Trial:
    """The names of what a try changes.

    They are copies of fields, how many items it took, what it gives, if too few, what it prints, the messages for each portal.
    """

    own: Mapping[str, str]
    at: str
    given: str
    short: str
    printed: str
    sent: Mapping[str, str]


@define
class _Form:
    filter: ty.Filter
    uses: tuple[Used, ...]
    taken: set[str]
    variables: set[str]
    routines: Mapping[str, str]
    messages: Mapping[str, ty.Message]
    concrete: bool = False  # values stand in place of parameters
    usage: Usage = field(init=False)
    state: tuple[str, ...] = field(init=False)
    holes: dict[str, tuple[s.TypeExpr, tuple[s.Expr, ...]]] = field(
        factory=dict[str, "tuple[s.TypeExpr, tuple[s.Expr, ...]]"]
    )
    spelled: dict[str, str] = field(factory=dict[str, str])  # parameter to hole
    consts: dict[str, s.Const] = field(factory=dict[str, s.Const])  # parameter to the constant that it is
    names: dict[str, str] = field(factory=dict[str, str])  # field, or `#parameter`, to constant or variable
    functions: dict[str, str] = field(factory=dict[str, str])
    streaming: list[s.Fn] = field(factory=list[s.Fn])  # functions that take or give items
    seen: tuple[Intervals, ...] = field(init=False)
    asks: bool = field(init=False)  # a firing of some use asks for its items
    asks_first: bool = field(init=False)  # its first one does, which is `prework`

    def __attrs_post_init__(self) -> None:
        first = [use.node.first for use in self.uses if use.node.first is not None]
        self.asks_first = any(rates.asks for rates in first)
        self.asks = self.asks_first or any(use.node.rates.asks for use in self.uses)
        self.usage = Usage.of(self.filter)
        self.state = self.usage.changed(self.work_bodies)
        self.seen = tuple(intervals(use.node.values) for use in self.uses)
        own: set[str] = set(RESERVED)
        for helper in self.filter.helpers:
            name = helper.name.replace(".", "_").replace("#", "_")
            # Not as an operation is called: what is translated into those stands beside calls of this function.
            self.functions[helper.name] = fresh(name, own | {"init"} | self.taken | OPERATIONS.keys())
            own.add(self.functions[helper.name])
        own.add("initial")
        for decl in self.filter.fields:
            self.names[decl.name] = fresh(decl.name, own)
            own.add(self.names[decl.name])
        for param in self.filter.params:
            self.names[f"#{param.name}"] = fresh(param.name.replace("#", "_"), own)
            own.add(self.names[f"#{param.name}"])

    @property
    def work_bodies(self) -> tuple[s.Node, ...]:
        """What runs with the stream."""
        first = self.filter.prework
        own = (self.filter.work.body, *(self.usage.helpers[name].body for name in self.handlers_heard))
        return own if first is None else (*own, first.body)

    @property
    def printing(self) -> bool:
        """Whether firings print."""
        return prints(self.filter, heard=bool(self.heard))

    @property
    def heard(self) -> tuple[ty.Channel, ...]:
        """The channels of which each firing takes a list; all uses have as many."""
        return self.uses[0].heard

    @property
    def handlers_heard(self) -> tuple[str, ...]:
        """The functions that messages call."""
        return tuple(self.messages[self.filter.name].handlers) if self.heard else ()

    @property
    def hearing(self) -> tuple[s.Port, ...]:
        """The ports of the lists of messages."""
        if not self.heard:
            return ()
        kind = s.TypeName("list", (message_type(self.messages[self.filter.name]),))
        found: list[s.Port] = []
        for i in range(len(self.heard)):
            empty = self.hole_for("waiting", tuple(number(use.heard[i].waiting) for use in self.uses))
            initial = s.Call("fill", (s.ListValue(()), empty))
            found.append(s.Port(f"messages_{i + 1}", kind, initial=initial))
        return tuple(found)

    # -- parameters

    def hole(self, name: str) -> s.Hole:
        """The hole of a parameter."""
        if name not in self.spelled:
            param = next(x for x in self.filter.params if x.name == name)
            spelled = name.lower() if name.isupper() else name[:1].lower() + name[1:]
            spelled = fresh(spelled.replace("#", "_"), {*self.holes, *RESERVED})
            self.spelled[name] = spelled
            values = tuple(literal(use.node.values[name], param.type) for use in self.uses)
            self.holes[spelled] = self.type(param.type), values
        return s.Hole(self.spelled[name])

    def param(self, value: ty.Param) -> s.Expr:
        """The constant of the operator that a parameter is."""
        if value.name not in self.consts:
            hole = self.hole(value.name)
            self.consts[value.name] = s.Const(self.names[f"#{value.name}"], self.type(value.type), hole)
        return s.Name(self.consts[value.name].name, span=value.span)

    def constant(self, expr: ty.Expr) -> s.Expr | None:
        """A whole number from literals and holes, or None."""
        if self.concrete or not any(isinstance(node, ty.Param) for node in walk(expr)):
            value = self.seen[0].exact(expr)
            return None if not isinstance(value, int) else number(value)
        for seen in self.seen:
            value = seen.exact(expr)
            if value is None or value != plain(expr, seen.values):
                return None
        return self.written(expr)

    def written(self, expr: ty.Expr) -> s.Expr:
        """An expression that `plain` can compute, in the operator language."""
        match expr:
            case ty.Constant(_, value):
                return number(value, expr.span)
            case ty.Param(_, name):
                return self.hole(name)
            case ty.Apply(_, operation, (left, right)):
                a, b = self.written(left), self.written(right)
                sums = {"+%": plus, "-%": minus, "*%": times}
                if operation in sums:
                    return sums[operation](a, b)
                return s.Call(operation.removesuffix(".wrap"), (a, b), span=expr.span)
            case _:
                raise AssertionError  # `plain` has computed it

    def size(self, expr: ty.Expr, name: str = "size") -> s.Expr:
        """A whole number that is known for each instance; as a hole of its own if it is not simple."""
        found = self.constant(expr)
        if found is not None:
            return found
        values = tuple(number(seen.exact(expr)) for seen in self.seen)
        return self.hole_for(name, values)

    def whole(self, expr: ty.Expr) -> s.Expr | None:
        """A whole number that is known for each instance, if there is one."""
        return (
            None
            if any(not isinstance(seen.exact(expr), int) for seen in self.seen)
            else self.size(expr, "count")
        )

    def hole_for(self, name: str, values: tuple[s.Expr, ...]) -> s.Expr:
        """A number for each instance: itself when it is always the same, else a hole."""
        if all(value == values[0] for value in values):
            return values[0]
        for spelled, (_, known) in self.holes.items():
            if known == values and spelled not in self.spelled.values():
                return s.Hole(spelled)
        spelled = fresh(name, {*self.holes, *RESERVED})
        self.holes[spelled] = s.TypeName("i64"), values
        return s.Hole(spelled)

    def type(self, type_: ty.Type) -> s.TypeExpr:
        """A type in the operator language."""
        if isinstance(type_, ty.Vector):
            return s.TypeName("array", (self.type(type_.item), self.size(type_.size)))
        if isinstance(type_, ty.Struct):
            pairs = zip(type_.labels, type_.fields, strict=True)
            return s.RecordType(tuple(s.FieldType(label, self.type(part)) for label, (_, part) in pairs))
        return expression(constants.scalar(type_))

    def field_type(self, name: str) -> ty.Type:
        """The type of a field."""
        return next(decl.type for decl in self.filter.fields if decl.name == name)

    def setting(self, functions: Mapping[str, str]) -> FilterScope:
        """What code of this filter may name."""
        taken = frozenset({*self.names.values(), "initial"})
        ahead = {
            each.peek for use in self.uses for each in (use.node.rates, use.node.first) if each is not None
        }
        return FilterScope(
            self.usage,
            self.seen,
            self.constant,
            self.whole,
            self.param,
            self.type,
            self.field_type,
            functions,
            taken,
            self.routines,
            self.messages,
            self.uses[0].sent,
            ahead=min(ahead) if len(ahead) == 1 else None,
        )

    # -- declarations

    def declarations(self) -> list[p.Decl]:
        """The operator or template, its instances, and the functions for its variables' first values."""
        node = self.uses[0].node
        name = fresh(self.filter.name, self.taken | RESERVED)
        self.taken.add(name)
        setting = self.setting(self.functions)
        handlers, outs = self.handlers(setting, node)
        consts, fns = self.constants(setting)
        called = {h.name for h in self.usage.reached(self.all_code)}.union(self.handlers_heard)
        plain_ = [h for h in self.filter.helpers if h.name in called and not self.usage.streams((h.body,))]
        fns += [function(setting, h) for h in plain_]
        fns += self.streaming
        types = [s.VarParam(self.names[x], self.type(self.field_type(x))) for x in self.state]
        if self.asks:
            types.append(s.VarParam(self.waiting, s.TypeName("list", (self.type(self.filter.input),))))
            types += [s.VarParam(self.begun, s.TypeName("bool"))] if self.asks_first else []
        given = [self.consts[x.name] for x in self.filter.params if x.name in self.consts]
        source = node.input == ty.VOID
        port = s.Port("clock", s.TypeName("unit")) if source else s.Port("x", self.type(self.filter.input))
        if source and self.heard:
            turns = self.hole_for("starts", tuple(number(use.starts) for use in self.uses))
            port = s.Port("clock", s.TypeName("bool"), initial=s.Call("fill", (s.Bool(True), turns)))
        operator = s.Operator(
            name, (port, *self.beginning, *self.hearing), tuple(types), outs, (*given, *consts), tuple(fns), handlers,
            span=self.filter.span,
        )  # fmt: skip
        found: list[p.Decl] = self.first_values()
        if not self.holes:
            for use in self.uses:
                use.instance = name
            return [*found, operator]
        order = [self.spelled[x.name] for x in self.filter.params if x.name in self.spelled]
        extra = [hole for hole in self.holes if hole not in order]
        self.holes = {hole: self.holes[hole] for hole in (*order, *extra)}
        params = tuple(s.TemplateParam(hole, kind) for hole, (kind, _) in self.holes.items())
        return [*found, s.Template(params, operator, span=self.filter.span), *self.instances(name)]

    @property
    def all_code(self) -> tuple[s.Node, ...]:
        """What runs inside of the operator, the code of its constants included."""
        _, computed = self.sorted(self.constant_fields)
        return (*self.work_bodies, *(self.filter.first_code if computed else ()))

    @property
    def constant_fields(self) -> tuple[str, ...]:
        """Fields that the operator's code needs and that no work function changes."""
        needed = self.usage.touched(self.work_bodies)
        return tuple(name for name in needed if name not in self.state)

    def instances(self, name: str) -> list[p.Decl]:
        """An instance for each choice of arguments."""
        known: dict[tuple[s.Expr, ...], str] = {}
        found: list[p.Decl] = []
        for i, use in enumerate(self.uses):
            values = tuple(given[i] for _, given in self.holes.values())
            if values not in known:
                known[values] = fresh(f"{name}_{len(known) + 1}", self.taken)
                self.taken.add(known[values])
                args = tuple(zip(self.holes, values, strict=True))
                found.append(p.Instance(known[values], name, args, span=use.node.span))
            use.instance = known[values]
        return found

    def kept(self, name: str) -> s.Expr:
        """A field in the code of the operator: a variable or a constant."""
        return s.Var(self.names[name]) if name in self.state else s.Name(self.names[name])

    # -- handlers

    def handlers(
        self, setting: FilterScope, node: ty.Node
    ) -> tuple[tuple[s.Handler, ...], tuple[s.Out, ...]]:
        """The handlers and outputs."""
        work, first = self.filter.work, self.filter.prework
        outs: list[s.Out] = []
        handlers: list[s.Handler] = []
        own = [use.node.rates for use in self.uses]
        turns: s.Expr | None = s.Int(1)
        if self.asks:
            if first is not None and not self.asks_first:
                handlers.append(self.before(setting, first))
            handlers.append(self.asking(setting, work, first))
            turns = None
        elif node.input == ty.VOID and self.heard:
            if first is not None:
                handlers.append(self.turned(setting, first, first=True))
            handlers.append(self.turned(setting, work))
        elif node.input == ty.VOID:
            starts = tuple(max(0, use.starts - (first is not None)) for use in self.uses)
            starting = self.hole_for("starts", tuple(map(number, starts)))
            begins = first is not None or any(starts)
            if begins:
                handlers.append(self.starting(setting, first, work, starting))
            turns = self.hole_for("firings", tuple(number(use.firings) for use in self.uses))
            handlers.append(self.clocked(setting, work, turns, alone=not begins))
        else:
            if first is not None:
                handlers.append(self.before(setting, first))
            handlers.append(self.rated(setting, work, *self.window(own)))
        if node.output != ty.VOID:
            pushes = [r.push for r in own if r.push is not None]
            push = self.rate(pushes, "push") if len(pushes) == len(own) else None
            rate = None if push is None or turns is None else times(push, turns)
            outs.append(s.Out("y", self.type(self.filter.output), push=rate, span=(work.push or work).span))
        if self.printing:
            outs.append(s.Out("print", s.TypeName("string"), push=turns))
        for portal, send in self.sends.items():
            outs.append(s.Out(message_port(portal), message_list(setting, send.portal), push=turns))
        return tuple(handlers), tuple(outs)

    @property
    def sends(self) -> dict[str, ty.Send]:
        """A message for each portal to which somebody listens."""
        sends = {send.portal.name: send for send in self.usage.sends(self.work_bodies)}
        return {portal: sends[portal] for portal in self.uses[0].sent}

    @property
    def waiting(self) -> str:
        """The variable of the items that wait for a firing that asks for them."""
        return fresh("waiting", {self.names[name] for name in self.state})

    def before(self, setting: FilterScope, first: ty.Work) -> s.Handler:
        """The `prework` of a filter that takes items."""
        rates = [use.node.first for use in self.uses if use.node.first is not None]
        return self.rated(setting, first, *self.window(rates), first=True)

    @property
    def begun(self) -> str:
        """The variable that says whether a `prework` that asks for its items has fired."""
        return fresh("begun", {self.waiting, *(self.names[name] for name in self.state)})

    def asking(self, setting: FilterScope, work: ty.Work, first: ty.Work | None) -> s.Handler:
        """Each item is kept, and firings are tried on what is there; a try that finds too little has done nothing."""
        items = s.TypeName("list", (self.type(self.filter.input),))
        gives = (
            s.TypeName("list", (self.type(self.filter.output),)) if self.filter.output != ty.VOID else items
        )
        works = (work,) if first is None or not self.asks_first else (work, first)
        tries = [self.try_function(evolve(setting, given=gives), each, items) for each in works]
        trial = self.trial(setting, works)
        calls = [self.trying(trial, name, each) for name, each in zip(tries, works, strict=True)]
        least = self.hole_for("least", tuple(number(use.node.rates.peek) for use in self.uses))
        if self.asks_first:
            least = s.IfExpr(s.Var(self.begun), least, s.Int(1))
        firing = [*self.declared(trial, gives), *self.next_firing(trial, work, calls), *self.kept_of(trial)]
        enough = s.Binary(">=", s.Call("len", (s.Var(self.waiting),)), least)
        alone = first is None or self.asks_first  # no handler is handed items before
        given_item: s.Expr = s.Name("v") if alone else s.Index(s.Name("v"), s.Int(0))
        keeping = s.Do(s.Call("push", (s.Var(self.waiting), given_item)))
        whole = s.Block((keeping, s.While(None, enough, s.Block(tuple(firing)), span=work.span)))
        if alone:
            return s.ItemHandler("x", "v", whole, span=work.span)
        begins = (s.Rate(port.name, s.Int(0), s.Int(0), f"v_{port.name}") for port in self.beginning)
        return s.RatedHandler((s.Rate("x", None, s.Int(1), "v"), *begins), whole, span=work.span)

    def try_function(self, setting: FilterScope, work: ty.Work, items: s.TypeExpr) -> str:
        """Makes the function that tries a firing on a list of items, and gives its name."""
        served = self.serving(setting, work, items)
        name = fresh("try", {*self.functions.values(), *(fn.name for fn in self.streaming), *RESERVED})
        self.streaming.append(tried(served, name, work, self.sends, printing=self.printing))
        return name

    def trial(self, setting: FilterScope, works: Sequence[ty.Work]) -> _Trial:
        """The names of what a try changes."""
        taken = {*setting.taken, *RESERVED}
        own = {x: fresh(f"{x}_0", taken) for x in self.usage.changed([each.body for each in works])}
        taken |= set(own.values())
        sent: dict[str, str] = {}
        for portal in self.sends:
            sent[portal] = fresh("sent", taken)
            taken.add(sent[portal])
        return _Trial(own, *(fresh(x, taken) for x in ("at", "given", "short", "printed")), sent=sent)

    def declared(self, trial: _Trial, gives: s.TypeExpr) -> list[s.Stmt]:
        """What a try changes: copies of the state, and nothing taken or given so far."""
        found: list[s.Stmt] = [
            s.VarDecl(trial.at, s.TypeName("i64"), s.Int(0)),
            s.VarDecl(trial.given, gives, s.ListValue(())),
            s.VarDecl(trial.short, s.TypeName("bool"), s.Bool(False)),
        ]
        for x, name in trial.own.items():
            found.append(s.VarDecl(name, self.type(self.field_type(x)), s.Var(self.names[x])))
        if self.printing:
            found.append(s.VarDecl(trial.printed, s.TypeName("string"), s.String("")))
        for portal, name in trial.sent.items():
            kind = message_list(self.setting(self.functions), self.sends[portal].portal)
            found.append(s.VarDecl(name, kind, s.ListValue(())))
        return found

    def trying(self, trial: _Trial, name: str, work: ty.Work) -> s.Stmt:
        """A try, which leaves the loop if there are too few items."""
        args: list[s.Expr] = [s.Var(self.waiting), *map(s.Name, (trial.at, trial.given, trial.short))]
        fields = self.usage.touched((work.body,))
        args += [s.Name(trial.own[x]) if x in trial.own else self.kept(x) for x in fields]
        args += [s.Name(trial.printed)] if self.printing else []
        args += map(s.Name, trial.sent.values())
        return s.If(s.Unary("not", s.Call(name, tuple(args))), s.Block((s.Break(),)), None)

    def next_firing(self, trial: _Trial, work: ty.Work, tries: Sequence[s.Stmt]) -> list[s.Stmt]:
        """The firing whose turn it is: of `work`, or the `prework` before. It takes what it asks for, or its `pop` rate."""
        at = s.Name(trial.at)
        none = s.Trap("a firing took no item, and would go on for ever", span=work.span)
        usual: list[s.Stmt] = [tries[0], s.If(s.Binary("==", at, s.Int(0)), s.Block((none,)), None)]
        usual += self.counted(trial, work, [use.node.rates for use in self.uses])
        if not self.asks_first:
            return usual
        if work.pop is not None:  # the rest is dropped
            pop = self.rate([use.node.rates.pop for use in self.uses], "pop")
            more = s.Trap("a firing took more items than its `pop` rate", span=work.pop.span)
            usual[1:2] = [s.If(s.Binary(">", at, pop), s.Block((more,))), s.Assign(at, pop)]
        begun = s.Var(self.begun)
        first, rates = (
            self.filter.prework,
            [use.node.first for use in self.uses if use.node.first is not None],
        )
        once = (tries[1], *(() if first is None else self.counted(trial, first, rates)))
        return [s.If(begun, s.Block(tuple(usual)), s.Block(once)), s.Assign(begun, s.Bool(True))]

    def counted(self, trial: _Trial, work: ty.Work, rates: Sequence[ty.Rates]) -> list[s.Stmt]:
        """Sees that a firing has given as many items as is stated."""
        pushes = [each.push for each in rates if each.push is not None]
        if work.push is None or self.filter.output == ty.VOID or len(pushes) < len(rates):
            return []
        wanted = self.hole_for("push", tuple(map(number, pushes)))
        wrong = s.Trap("a firing gave more or fewer items than its `push` rate", span=work.push.span)
        given = s.Call("len", (s.Name(trial.given),))
        return [s.If(s.Binary("!=", given, wanted), s.Block((wrong,)))]

    def kept_of(self, trial: _Trial) -> list[s.Stmt]:
        """What a try that found enough leaves: the state, the items behind it, and what it gives."""
        waiting = s.Var(self.waiting)
        found: list[s.Stmt] = [s.Assign(s.Var(self.names[x]), s.Name(name)) for x, name in trial.own.items()]
        found.append(s.Assign(waiting, s.Call("drop_first", (waiting, s.Name(trial.at)))))
        found += [s.Emit(message_port(portal), s.Name(name)) for portal, name in trial.sent.items()]
        if self.filter.output != ty.VOID:
            each = s.Block((s.Emit("y", s.Name("each")),))
            found.append(s.For(None, ("each",), s.Name(trial.given), each))
        if self.printing:
            found.append(s.Emit("print", s.Name(trial.printed)))
        return found

    def window(self, rates: Sequence[ty.Rates]) -> tuple[s.Expr, s.Expr]:
        """The peek and pop rates."""
        pop = self.rate([r.pop for r in rates], "pop")
        same = all(r.peek == r.pop for r in rates)
        return pop if same else self.rate([r.peek for r in rates], "peek"), pop

    def rate(self, values: Sequence[int], word: str) -> s.Expr:
        """A rate: as it is written when that says it, else a number for each instance."""
        work = self.filter.work
        stated = {"pop": work.pop, "peek": work.peek, "push": work.push}[word]
        if stated is not None and all(
            seen.exact(stated) == v for seen, v in zip(self.seen, values, strict=True)
        ):
            return self.size(stated, word)
        return self.hole_for(word, tuple(map(number, values)))

    def rated(
        self, setting: FilterScope, work: ty.Work, peek: s.Expr, pop: s.Expr, *, first: bool = False
    ) -> s.Handler:
        """A firing that sees a window of items."""
        window = fresh("w", setting.taken)
        setting = self.serving(setting, work, s.TypeName("array", (self.type(self.filter.input), peek)))
        try:
            writer = self.writer(setting, work, Cursor(window))
        except NotStatic:  # then it is counted
            limit = evolve(pop, span=(work.pop or work).span)
            writer = self.writer(setting, work, Cursor(window, counter="at", limit=limit))
        rate = s.Rate("x", None if peek == pop else peek, pop, window)
        begins = (s.Rate(port.name, s.Int(0), s.Int(0), f"{window}_0") for port in self.beginning)
        return s.RatedHandler((rate, *begins, *self.told), s.Block(tuple(writer.out)), first, span=work.span)

    def turned(self, setting: FilterScope, work: ty.Work, *, first: bool = False) -> s.Handler:
        """A firing of a source that is told something: one at each turn."""
        writer = self.writer(self.serving(setting, work, None), work, None)
        rates = (s.Rate("clock", None, s.Int(1), "u"), *self.told)
        return s.RatedHandler(rates, s.Block(tuple(writer.out)), first, span=work.span)

    @property
    def told(self) -> tuple[s.Rate, ...]:
        """A firing takes a list of messages of each channel."""
        return tuple(
            s.Rate(f"messages_{i + 1}", None, s.Int(1), f"told_{i + 1}") for i in range(len(self.heard))
        )

    @property
    def beginning(self) -> tuple[s.Port, ...]:
        """The port of what lets `prework` fire, if there is one."""
        return (s.Port("begin", s.TypeName("bool")),) if self.uses[0].begun else ()

    def starting(
        self, setting: FilterScope, first: ty.Work | None, work: ty.Work, turns: s.Expr
    ) -> s.Handler:
        """What a source does before the first tick: its `prework`, and so many firings."""
        usual = self.serving(setting, work, None)
        begin = s.Block((self.firing(usual, work, turns),))
        if first is not None:
            served = self.serving(setting, first, None)
            begin = s.Block(tuple(self.writer(served, first, None).out))
            if turns != s.Int(0):
                once = self.firing(served, first, s.Int(1))
                begin = s.Block((once, self.firing(usual, work, turns)))
        rate = s.Rate("clock", s.Int(0), s.Int(0), "u")
        return s.RatedHandler((rate,), begin, first=True, span=(first or work).span)

    def clocked(self, setting: FilterScope, work: ty.Work, turns: s.Expr, *, alone: bool) -> s.Handler:
        """A source: so many firings at each tick; `alone`: this is all that it does."""
        setting = self.serving(setting, work, None)
        if turns == s.Int(1):
            body = s.Block(tuple(self.writer(setting, work, None).out))
        else:
            body = s.Block((self.firing(setting, work, turns),))
        if alone:
            return s.ItemHandler("clock", "u", body, span=work.span)
        return s.RatedHandler((s.Rate("clock", None, s.Int(1), "u"),), body, span=work.span)

    def firing(self, setting: FilterScope, work: ty.Work, turns: s.Expr) -> s.Stmt:
        """So many firings of a source."""
        label = "firing" if any(isinstance(node, ty.Return) for node in walk(work.body)) else None
        leave = s.Return(None) if label is None else s.Continue(label)
        body = s.Block(tuple(self.writer(setting, work, None, leave).out))
        return s.For(label, ("turn",), s.Range(s.Int(0), turns), body, span=work.span)

    def serving(self, setting: FilterScope, work: ty.Work, window: s.TypeExpr | None) -> FilterScope:
        """The setting of a work function; those functions that take or give items are made for it."""
        found = [h for h in self.usage.reached((work.body,)) if self.usage.streams((h.body,))]
        taken = {*self.functions.values(), *(fn.name for fn in self.streaming)} | self.taken | {"init"}
        names: dict[str, str] = {}
        for helper in found:
            name = self.functions[helper.name]
            names[helper.name] = fresh(name, taken) if any(f.name == name for f in self.streaming) else name
            taken.add(names[helper.name])
        served = evolve(setting, functions={**setting.functions, **names}, window=window)
        self.streaming += [function(served, helper) for helper in found]
        return served

    def writer(
        self, setting: FilterScope, work: ty.Work, cursor: Cursor | None, leave: s.Stmt | None = None
    ) -> Writer:
        """The translation of a work function; what it prints is one text."""
        fields = {x.name: self.kept(x.name) for x in self.filter.fields}
        writer = Writer(setting, fields, kept(work.body), cursor)
        writer.exit = s.Return(None) if leave is None else leave
        writer.scopes[0] |= {"u", "turn"} if cursor is None else {cursor.window}
        writer.scopes[0] |= {rate.name for rate in self.told}
        if cursor is not None and cursor.counter is not None:
            cursor.counter = writer.unused(cursor.counter)
            writer.variable.add(cursor.counter)
            writer.put(s.VarDecl(cursor.counter, s.TypeName("i64"), s.Int(0)))
        if self.printing and (self.heard or not _prints_once(work.body)):
            name = writer.unused("printed")
            writer.variable.add(name)
            writer.printed = s.Name(name)
            writer.put(s.VarDecl(name, s.TypeName("string"), s.String("")))
        for portal, send in self.sends.items():
            name = writer.unused("sent")
            writer.variable.add(name)
            writer.sent[portal] = s.Name(name)
            writer.put(s.VarDecl(name, message_list(setting, send.portal), s.ListValue(())))
        for rate in self.told:
            writer.hear(self.messages[self.filter.name], s.Index(s.Name(rate.name), s.Int(0)))
        writer.statements(work.body.items)
        if not ends(work.body):
            writer.end()
        return writer

    # -- constants

    def constants(self, setting: FilterScope) -> tuple[list[s.Const], list[s.Fn]]:
        """The fields that are constants, and the function that computes them."""
        wanted = self.constant_fields
        plain_, computed = self.sorted(wanted)
        consts: list[s.Const] = []
        fns: list[s.Fn] = []
        for decl in self.filter.fields:
            if decl.name in plain_:
                writer = Writer(setting, {}, frozenset())
                value = zero(decl.type) if decl.value is None else writer.expr(decl.value)
                consts.append(s.Const(self.names[decl.name], self.type(decl.type), value, span=decl.span))
        if computed:
            name = fresh("init", set(self.functions.values()))
            fn = self.init(setting, name, computed)
            fns.append(fn)
            assert fn.result is not None  # noqa: S101 - it gives the fields
            if len(computed) == 1:
                consts.append(s.Const(self.names[computed[0]], fn.result, s.Call(name, ())))
            else:
                whole = "initial"
                consts.append(s.Const(whole, fn.result, s.Call(name, ())))
                consts += [
                    s.Const(
                        self.names[x], self.type(self.field_type(x)), s.Member(s.Name(whole), self.names[x])
                    )
                    for x in computed
                ]
        return consts, fns

    def sorted(self, wanted: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The fields whose first value is an expression by itself, and those that code computes."""
        changed = set(self.usage.changed(self.filter.first_code))
        plain_: list[str] = []
        computed: list[str] = []
        for name in wanted:
            value = next(decl.value for decl in self.filter.fields if decl.name == name)
            simple = value is None or not (
                read(value) or any(isinstance(n, ty.Update | ty.Call) for n in walk(value))
            )
            (plain_ if simple and name not in changed else computed).append(name)
        return tuple(plain_), tuple(computed)

    def init(
        self, setting: FilterScope, name: str, wanted: Sequence[str], prelude: Sequence[s.Stmt] = ()
    ) -> s.Fn:
        """The function that computes fields, or if there are none what is printed: initial values and `init`, in order."""
        init = self.relevant(wanted)
        bodies = (*init, *(f.value for f in self.filter.fields if f.value is not None))
        writer = Writer(setting, {}, frozenset[str]().union(*map(updated, bodies)))
        writer.out += prelude
        if self.usage.prints(bodies):
            printed = s.Name(writer.unused("printed"))
            writer.printed = printed
            writer.variable.add(printed.name)
            writer.put(s.VarDecl(printed.name, s.TypeName("string"), s.String("")))
        needed = {*wanted, *self.usage.touched(bodies)}
        needed.update(f.name for f in self.filter.fields if f.value is not None and not pure(f.value))
        self.begin(writer, [decl for decl in self.filter.fields if decl.name in needed])
        if not wanted:
            assert writer.printed is not None  # noqa: S101 - it prints, or nobody would ask
            result: s.TypeExpr = s.TypeName("string")
            value = writer.printed
        elif len(wanted) == 1:
            result = self.type(self.field_type(wanted[0]))
            value = writer.fields[wanted[0]]
        else:
            result = s.RecordType(
                tuple(s.FieldType(self.names[x], self.type(self.field_type(x))) for x in wanted)
            )
            value = s.RecordValue(tuple(s.FieldValue(self.names[x], writer.fields[x]) for x in wanted))
        writer.result = value
        writer.statements(init)
        writer.put(s.Return(value))
        return s.Fn(name, (), result, s.Block(tuple(writer.out)), span=self.filter.span)

    def begin(self, writer: Writer, decls: Sequence[ty.FieldDecl]) -> None:
        """Fields as variables with their first values; those that a function sees before their turn are zero till then."""
        before: set[str] = set()
        early: set[str] = set()
        for decl in decls:
            if decl.value is not None:
                early.update(set(self.usage.touched((decl.value,))) - before)
            before.add(decl.name)
        for decl in (*(each for each in decls if each.name in early), *decls):
            known = writer.fields.get(decl.name)
            if known is not None:
                if decl.value is not None:
                    writer.put(s.Assign(known, writer.expr(decl.value), span=decl.span))
                continue
            first = decl.value is None or decl.name in early
            value = zero(decl.type) if first or decl.value is None else writer.expr(decl.value)
            own = writer.unused(f"{decl.name}_0" if decl.name == self.names[decl.name] else decl.name)
            writer.fields[decl.name] = s.Name(own)
            writer.variable.add(own)
            writer.put(s.VarDecl(own, self.type(decl.type), value, span=decl.span))

    def relevant(self, wanted: Sequence[str]) -> tuple[ty.Stmt, ...]:
        """The statements of `init` on which fields depend; others may take long, and are for other fields. Without such, all.

        They depend on what may `return` before they are set.
        """
        if not wanted:
            return () if self.filter.init is None else self.filter.init.items
        needed = set(wanted)
        found: list[ty.Stmt] = []
        for item in reversed(() if self.filter.init is None else self.filter.init.items):
            code = self.usage.all((item,))
            declared = {node.key for node in walk(item) if isinstance(node, ty.Declare)}
            ends_here = bool(found) and any(isinstance(node, ty.Return) for node in walk(item))
            if ends_here or needed & declared.union(*map(updated, code)):
                found.append(item)
                needed.update(*map(read, code))
        return tuple(reversed(found))

    # -- variables

    def first_values(self) -> list[p.Decl]:
        """The functions that compute the first values of variables and what `init` prints, one for each choice of parameters."""
        says = self.usage.prints(self.filter.first_code)
        if not self.state and not self.asks and not says:
            return []
        known: dict[str, dict[str, s.Expr]] = {}
        said: dict[str, s.Expr] = {}
        types: dict[str, dict[str, s.TypeExpr]] = {}
        found: list[p.Decl] = []
        for use in self.uses:
            key = repr(sorted(use.node.values.items()))
            if key not in known:
                own = self.alone(use)
                known[key], fns = own.variable_values(self.taken)
                types[key] = {x: own.type(own.field_type(x)) for x in self.state}
                found += fns
                if says:
                    said[key], fns = own.outside("says", (), self.taken)
                    found += fns
            use.said = said.get(key)
            variables: list[p.Variable] = []
            for x in self.state:
                name = fresh(f"{self.filter.name}_{self.names[x]}", self.variables)
                self.variables.add(name)
                variables.append(p.Variable(name, types[key][x], known[key][x], span=use.node.span))
            if self.asks:
                name = fresh(f"{self.filter.name}_{self.waiting}", self.variables)
                self.variables.add(name)
                kind = s.TypeName("list", (expression(use.node.input),))
                variables.append(p.Variable(name, kind, s.ListValue(()), span=use.node.span))
            if self.asks_first:
                name = fresh(f"{self.filter.name}_{self.begun}", self.variables)
                self.variables.add(name)
                variables.append(p.Variable(name, s.TypeName("bool"), s.Bool(False), span=use.node.span))
            use.variables = tuple(variables)
        return found

    def alone(self, use: Used) -> _Form:
        """The filter with the values of one use in place of its parameters."""
        values = use.node.values
        scalars = {k: v for k, v in values.items() if not isinstance(v, tuple)}
        filter_ = substituted(self.filter, scalars)
        return _Form(
            filter_,
            (evolve(use),),
            self.taken,
            set(),
            self.routines,
            self.messages,
            concrete=True,
        )

    def variable_values(self, taken: set[str]) -> tuple[dict[str, s.Expr], list[p.Decl]]:
        """The first value of each variable, and the functions that they need. Parameters are values here."""
        plain_, computed = self.sorted(self.state)
        values: dict[str, s.Expr] = {}
        for decl in self.filter.fields:
            if decl.name in plain_:
                values[decl.name] = zero(decl.type) if decl.value is None else self.closed(decl.value)
        if not computed:
            return values, []
        call, found = self.outside("init", computed, taken)
        for x in computed:
            values[x] = call if len(computed) == 1 else s.Member(call, self.names[x])
        return values, found

    def outside(self, word: str, wanted: Sequence[str], taken: set[str]) -> tuple[s.Call, list[p.Decl]]:
        """The call of a function of the program that does what `init` does, and the functions that this needs."""
        bodies = self.filter.first_code
        reached = self.usage.reached(bodies)
        functions = {h.name: fresh(f"{self.filter.name}_{h.name.replace('.', '_')}", taken) for h in reached}
        taken.update(functions.values())
        setting = self.setting(functions)
        name = fresh(f"{self.filter.name}_{word}", taken)
        taken.add(name)
        prelude = self.arrays(bodies)
        found: list[p.Decl] = [self.init(setting, name, wanted, prelude)]
        for helper in reached:
            fn = function(setting, helper)
            lets = self.arrays([helper.body])
            body = fn.body if isinstance(fn.body, s.Block) else s.Block(())
            found.append(evolve(fn, body=s.Block((*lets, *body.items), span=body.span)))
        return s.Call(name, ()), found

    def closed(self, value: ty.Expr) -> s.Expr:
        """An expression of the program's own, outside of any operator."""
        exact = self.seen[0].exact(value)
        if exact is not None:
            return literal(exact, value.type, value.span)
        return Writer(self.setting({}), {}, frozenset()).expr(value)

    def arrays(self, bodies: Iterable[s.Node]) -> list[s.Stmt]:
        """Parameters that are arrays or structs, as locals."""
        used = {node.name for body in bodies for node in walk(body) if isinstance(node, ty.Param)}
        found: list[s.Stmt] = []
        for param in self.filter.params:
            if param.name in used and isinstance(param.type, ty.Vector | ty.Struct):
                name = self.param(ty.Param(param.type, param.name))
                assert isinstance(name, s.Name)  # noqa: S101 - the name of a constant
                value = literal(self.uses[0].node.values[param.name], param.type)
                found.append(s.VarDecl(name.name, self.type(param.type), value))
        return found


def _prints_once(body: ty.Block) -> bool:
    """Whether the code prints one text, whatever happens, and calls nothing that prints."""
    prints = sum(isinstance(node, ty.Print) for node in walk(body))
    calls = any(isinstance(node, ty.Call | ty.Return) for node in walk(body))
    return prints == 1 and not calls and any(isinstance(item, ty.Print) for item in body.items)


def intervals(values: Mapping[str, Any]) -> Intervals:
    """What the parameters of a use say."""
    numbers = {name: (v, v) for name, v in values.items() if isinstance(v, int) and not isinstance(v, bool)}
    return Intervals(values, numbers)


def plain(expr: ty.Expr, values: Mapping[str, Any]) -> int | None:
    """The value by sums, products and quotients of whole numbers without bounds, or None."""
    match expr:
        case ty.Constant(_, int() as value):
            return value
        case ty.Param(t.I32, name):
            return values[name]
        case ty.Apply(_, operation, (left, right)):
            a, b = plain(left, values), plain(right, values)
            if a is None or b is None:
                return None
            match operation:
                case "+%":
                    return a + b
                case "-%":
                    return a - b
                case "*%":
                    return a * b
                case "min" | "max":
                    return min(a, b) if operation == "min" else max(a, b)
                case "div.trunc.wrap" if b:
                    return int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
                case _:
                    return None
        case _:
            return None


def substituted(filter_: ty.Filter, values: Mapping[str, Any]) -> ty.Filter:
    """The filter with values for parameters, and what they make known computed."""

    def rewrite(node: s.Node) -> s.Node:
        node = rebuild(node, rewrite)
        match node:
            case ty.Param(type_, name) if name in values and not isinstance(type_, ty.Portal):
                return ty.Constant(type_, values[name], span=node.span)
            case ty.Apply(type_, operation, args) if all(isinstance(arg, ty.Constant) for arg in args):
                known = [arg.value for arg in args if isinstance(arg, ty.Constant)]
                if operation == "abs" and type_ == ty.INT:
                    return node
                try:
                    value = constants.apply(operation, [arg.type for arg in args], type_, known)
                except TrapSignal:
                    return node
                return ty.Constant(type_, value, span=node.span)
            case _:
                return node

    return rebuild(filter_, rewrite)
