"""The arrow from typed programs to River IL: filters become operators, the graph their uses.

Paper: River section 3.1, Brooklet's translation of StreamIt; `calculus.md` has the rules.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, assert_never

from frontends.streamit import typed as ty
from frontends.streamit.check import SCOPE
from frontends.streamit.elaborate import CALLS, leaves, prints
from frontends.streamit.literals import literal
from frontends.streamit.operators import Used, operators
from frontends.streamit.paths import parts, paths
from frontends.streamit.repeats import standing
from frontends.streamit.routines import operations, routines
from frontends.streamit.translate import message_type
from frontends.streamit.windows import windowed
from river.classes import define, evolve, field
from river.il import program as p
from river.il.standard import GROUP, LARGEST, WIDE
from river.il.trees import fresh, rebuild
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import expression, resolve
from river.nesting import more_room

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from river.source import Span

INPUT, OUTPUT, CLOCK, PRINTED = "input", "output", "clock", "stdout"


def lower(program: ty.Program) -> p.Program:
    """River IL of the program. Its queues: `input`, `output`, `clock`, `stdout`, and files by their names."""
    return _Lowering(program).program()


@define
class _Lowering:
    typed: ty.Program
    queues: set[str] = field(factory=set[str])
    paths: dict[int, str] = field(factory=dict[int, str])
    count: int = 0
    taken: set[str] = field(factory=set[str])
    borders: list[p.Decl] = field(factory=list[p.Decl])
    instances: dict[tuple[str, tuple[tuple[str, s.TemplateArg], ...]], p.Instance] = field(
        factory=dict[tuple[str, tuple[tuple[str, s.TemplateArg], ...]], p.Instance]
    )
    uses: list[p.Use] = field(factory=list[p.Use])
    used: dict[int, Used] = field(factory=dict[int, Used])
    clocks: list[str] = field(factory=list[str])
    printed: list[tuple[ty.Node, str]] = field(factory=list[tuple[ty.Node, str]])
    variables: set[str] = field(factory=set[str])
    routines: dict[str, str] = field(factory=dict[str, str])
    begins: list[str] = field(factory=list[str])
    sent: dict[tuple[int, str], str] = field(factory=dict[tuple[int, str], str])
    told: dict[int, str] = field(factory=dict[int, str])
    others: dict[int, list[int]] = field(factory=dict[int, list[int]])  # filters for which one does it
    counters: list[p.Variable] = field(factory=list[p.Variable])

    def program(self) -> p.Program:
        """The whole program."""
        graph = self.typed.graph
        self.paths = paths(graph)
        every = leaves(graph)
        self.queues = {
            INPUT,
            OUTPUT,
            CLOCK,
            PRINTED,
            *(part.name for part in every if isinstance(part, ty.File)),
        }
        self.taken = {fn.name for fn in self.typed.fns}
        self.routines = {op: fresh(op.replace(".", "_"), self.taken) for op in operations()}
        self.taken.update(self.routines.values())
        nodes = [part for part in every if isinstance(part, ty.Node)]
        bodies = self.filters(nodes)
        for file in (part for part in every if isinstance(part, ty.File)):
            kind = p.Annotation("File", (s.String(file.path), s.String("bits" if file.bits else "raw")))
            said = (kind, *self.steady(file))
            item = expression(file.item)
            if file.reads:
                self.borders.append(p.Input(file.name, item, annotations=said, span=file.span))
            else:
                self.borders.append(p.Output(file.name, item, annotations=said, span=file.span))
        with more_room(CALLS):
            self.ends(graph)
        self.deliver()
        printed = self.says()
        self.begin()
        self.clock()
        self.prints(printed)
        fns = [function(fn) for fn in self.typed.fns]
        variables = [variable for node in nodes for variable in self.used[id(node)].variables]
        variables += self.counters
        fns += routines(self.routines, [*bodies, *variables])
        made = p.Program((*self.borders, *variables, *fns, *bodies, *self.instances.values(), *self.uses))
        return made if self.typed.channels else windowed(made, frozenset(self.looping()))

    # -- filters

    def filters(self, nodes: Iterable[ty.Node]) -> list[p.Decl]:
        """The operators of all filters."""
        alike: dict[tuple[str, int, tuple[str, ...]], list[Used]] = {}
        begun = self.begun()
        channels = self.typed.channels
        for node in nodes:
            use = Used(node, self.typed.firings.get(id(node), 1), self.typed.starts.get(id(node), 0))
            use.begun = node.filter.name in begun
            use.heard = tuple(channel for channel in channels if channel.receiver is node)
            use.sent = tuple(dict.fromkeys(each.portal for each in channels if each.sender is node))
            self.used[id(node)] = use
            alike.setdefault((node.filter.name, len(use.heard), use.sent), []).append(use)
        found: list[p.Decl] = []
        for uses in alike.values():
            found += operators(
                uses[0].node.filter, uses, self.taken, self.variables, self.routines, self.typed.messages
            )
        return found

    def begun(self) -> set[str]:
        """Filters with a `prework` that looks at nothing, of which one is in a loop: there nothing comes before it fires.

        Messages may make a loop of anything. Sources have the clock.
        """
        found: set[str] = set()
        stack = [self.typed.graph]
        while stack:
            part = stack.pop()
            stack += parts(part)
            if isinstance(part, ty.FeedbackLoop) or self.typed.channels:
                inside = (leaf for inner in parts(part) for leaf in leaves(inner))
                found.update(
                    leaf.filter.name
                    for leaf in inside
                    if isinstance(leaf, ty.Node)
                    and leaf.input != ty.VOID
                    and leaf.first is not None
                    and leaf.first.peek == 0
                )
        return found

    def steady(self, *parts: ty.Graph, begins: int = 0) -> tuple[p.Annotation, ...]:
        """How often parts fire before and in each steady state, if that is known; `begins`: what comes before all that."""
        if not self.typed.firings:
            return ()
        first = begins + sum(self.typed.starts[id(part)] for part in parts)
        each = sum(self.typed.firings[id(part)] for part in parts)
        return (p.Annotation("Steady", (s.Int(first), s.Int(each))),)

    def looping(self) -> set[str]:
        """The variables of filters in feedback loops: what their windows look back to would be more that waits there."""
        found: set[str] = set()
        stack = [self.typed.graph]
        while stack:
            part = stack.pop()
            if isinstance(part, ty.FeedbackLoop):
                inside = (leaf for leaf in leaves(part) if isinstance(leaf, ty.Node))
                found.update(variable.name for leaf in inside for variable in self.used[id(leaf)].variables)
            else:
                stack += parts(part)
        return found

    # -- queues and uses

    def queue(self) -> str:
        """A new queue."""
        self.count += 1
        name = fresh(f"q{self.count}", self.queues)
        self.queues.add(name)
        return name

    def use(self, outs: Iterable[str], operator: str, ins: Iterable[str], span: Span | None) -> None:
        """A use of an operator."""
        self.uses.append(p.Use(tuple(outs), operator, tuple(ins), span=span))

    def instance(self, name: str, template: str, span: Span | None, **args: s.TemplateArg) -> str:
        """An instance of a template; equal ones are one."""
        key = (template, tuple(args.items()))
        if key not in self.instances:
            own = fresh(name, self.taken)
            self.taken.add(own)
            self.instances[key] = p.Instance(own, template, tuple(args.items()), span=span)
        return self.instances[key].name

    def ends(self, graph: ty.Graph) -> None:
        """The program's own input and output around the graph."""
        first = last = None
        if graph.input != ty.VOID:
            self.borders.append(p.Input(INPUT, expression(graph.input), span=graph.span))
            first = INPUT
        if graph.output != ty.VOID:
            self.borders.append(p.Output(OUTPUT, expression(graph.output), span=graph.span))
            last = OUTPUT
        given, wanted = gives(graph), wants(graph)
        if first is not None and wanted is not None:
            self.pass_on(first, wanted, graph.input, graph.span)
            first = wanted
        if last is not None and given is not None:
            self.wire(graph, first, given)
            self.pass_on(given, last, graph.output, graph.span)
        else:
            self.wire(graph, first, last)

    def pass_on(self, from_: str, to: str, item: t.Type, span: Span | None) -> None:
        """An operator between two queues that have names already."""
        self.use((to,), self.instance("pass", "std.identity", span, T=expression(item)), (from_,), span)

    def wire(self, graph: ty.Graph, taken: str | None, given: str | None) -> None:
        """The uses of a part between two queues; None where there is none."""
        span = graph.span
        match graph:
            case ty.Node():
                self.node(graph, taken, given)
            case ty.Identity(item):
                assert taken is not None  # noqa: S101 - its input is not void
                assert given is not None  # noqa: S101 - its output is not void
                self.pass_on(taken, given, item, span)
            case ty.File():
                pass  # it is the queue
            case ty.Pipeline(_, _, _, parts):
                for part, after in pairwise(parts):
                    following = self.between(part, after)
                    self.wire(part, taken, following)
                    taken = self.behind(part, after, following)
                self.wire(parts[-1], taken, given)
            case ty.SplitJoin():
                self.split_join(graph, taken, given)
            case ty.FeedbackLoop():
                self.feedback(graph, taken, given)
            case _:
                assert_never(graph)

    def between(self, before: ty.Graph, after: ty.Graph) -> str:
        """The queue that a part gives to."""
        return gives(before) or wants(after) or self.queue()

    def behind(self, before: ty.Graph, after: ty.Graph, queue: str) -> str:
        """The queue that the next part takes from, when both have one already."""
        wanted = wants(after)
        if wanted is None or wanted == queue:
            return queue
        self.pass_on(queue, wanted, before.output, after.span)
        return wanted

    def node(self, node: ty.Node, taken: str | None, given: str | None) -> None:
        """A filter."""
        use = self.used[id(node)]
        if taken is None:
            taken = self.turn(use) if use.heard else self.tick()
        outs = [] if given is None else [given]
        if prints(node.filter, heard=bool(use.heard)):
            outs.append(fresh(f"print{len(self.printed) + 1}", self.queues))
            self.queues.add(outs[-1])
            self.printed.append((node, outs[-1]))
        names = [f"${variable.name}" for variable in use.variables]
        ins = [taken]
        if use.begun:
            self.begins.append(self.queue())
            ins.append(self.begins[-1])
        for portal in use.sent:
            self.sent[id(node), portal] = self.queue()
        for channel in use.heard:
            self.told[id(channel)] = self.queue()
        outs += [self.sent[id(node), portal] for portal in use.sent]
        ins += [self.told[id(channel)] for channel in use.heard]
        alike = (id(node), *self.others.get(id(node), ()))
        within = tuple((self.paths[each], node.filter.text) for each in alike)
        self.uses.append(p.Use((*outs, *names), use.instance, (*ins, *names), within=within, span=node.span))

    def turn(self, use: Used) -> str:
        """A queue of the turns of a source that fires one by one."""
        turning = self.instance("turns", "streamit.turns", use.node.span, n=s.Int(use.firings))
        queue = self.queue()
        self.use((queue,), turning, (self.tick(),), use.node.span)
        return queue

    def deliver(self) -> None:
        """Brings messages to those who are told them."""
        for (sender, portal), queue in self.sent.items():
            found = [
                each for each in self.typed.channels if id(each.sender) == sender and each.portal == portal
            ]
            queues = [queue] if len(found) == 1 else [self.queue() for _ in found]
            message = message_type(self.typed.messages[found[0].receiver.filter.name])
            if len(found) > 1:
                whole_list = s.TypeName("list", (message,))
                copying = self.instance(
                    "duplicate", "std.duplicate", found[0].span, T=whole_list, n=s.Int(len(found))
                )
                self.use(queues, copying, (queue,), found[0].span)
            for channel, own in zip(found, queues, strict=True):
                self.channel(channel, message, own)

    def channel(self, channel: ty.Channel, message: s.RecordType, queue: str) -> None:
        """From the lists of the sender's firings to those for the receiver's."""
        span, gives = channel.span, channel.gives
        period = s.Int(channel.period)
        kind: s.TypeExpr = message
        numbers = ["at"]
        whole_turns = not channel.late and len(gives) == channel.period
        completing = [i for i, count in enumerate(gives) if count]
        if whole_turns and len(completing) == len(gives) and len(set(gives)) == 1:
            bringing = self.instance(
                "deliver", "streamit.deliver_at_once", span, T=message, n=s.Int(gives[0])
            )
            self.use((self.told[id(channel)],), bringing, (queue,), span)
            return
        if whole_turns and len(completing) == 1:
            (at,) = completing
            numbers = []
            bringing = self.instance(
                "deliver", "streamit.deliver_in_turns", span,
                T=message, before=s.Int(at), n=s.Int(gives[at]), after=s.Int(len(gives) - at - 1),
            )  # fmt: skip
        elif channel.late:
            numbers.append("list")
            rows = [channel.late.get(i, (0,) * len(gives)) for i in range(max(channel.late) + 1)]
            late = s.ListValue(tuple(map(whole, rows)))
            bringing = self.instance(
                "deliver",
                "streamit.deliver_late",
                span,
                T=message,
                gives=whole(gives),
                period=period,
                late=late,
            )
            due = s.FieldType("due", s.TypeName("i64"))
            kind = s.RecordType((due, s.FieldType("what", message)))
        else:
            bringing = self.instance(
                "deliver", "streamit.deliver", span, T=message, gives=whole(gives), period=period
            )
        wanted = [(number, s.TypeName("i64"), s.Int(0)) for number in numbers]
        names: list[str] = []
        for word, type_, value in (*wanted, ("held", s.TypeName("list", (kind,)), s.ListValue(()))):
            name = fresh(word, self.variables)
            self.variables.add(name)
            self.counters.append(p.Variable(name, type_, value, span=span))
            names.append(f"${name}")
        self.use((self.told[id(channel)], *names), bringing, (queue, *names), span)

    def tick(self) -> str:
        """A queue of ticks."""
        self.clocks.append(fresh(f"tick{len(self.clocks) + 1}", self.queues))
        self.queues.add(self.clocks[-1])
        return self.clocks[-1]

    def split_join(self, graph: ty.SplitJoin, taken: str | None, given: str | None) -> None:
        """A splitter, the branches, a joiner."""
        span, count = graph.span, standing(graph, self.used)
        if count < len(graph.parts):
            self.for_all(graph, count)
            graph = evolve(
                graph, split=(graph.split or ())[:count], parts=graph.parts[:count], join=graph.join[:count]
            )
        if count == 1:
            self.wire(graph.parts[0], taken, given)
            return
        ins = [None if part.input == ty.VOID else wants(part) or self.queue() for part in graph.parts]
        outs = [None if part.output == ty.VOID else gives(part) or self.queue() for part in graph.parts]
        into = [queue for queue in ins if queue is not None]
        if into and taken is not None:
            item = expression(graph.input)
            if graph.split is None:
                self.duplicate(into, taken, item, span)
            else:
                weights = [w for w, queue in zip(graph.split, ins, strict=True) if queue is not None]
                self.splitter(into, weights, taken, item, span)
        for part, own, out in zip(graph.parts, ins, outs, strict=True):
            self.wire(part, own, out)
        joined = [queue for queue in outs if queue is not None]
        if joined and given is not None:
            weights = [w for w, queue in zip(graph.join, outs, strict=True) if queue is not None]
            self.joiner(given, weights, joined, expression(graph.output), span)

    def for_all(self, graph: ty.SplitJoin, count: int) -> None:
        """Notes that the first branches do what the others would: a trap names all of them."""
        for i, part in enumerate(graph.parts[count:]):
            for does, other in zip(leaves(graph.parts[i % count]), leaves(part), strict=True):
                self.others.setdefault(id(does), []).extend((id(other), *self.others.get(id(other), ())))

    def duplicate(self, into: Sequence[str], taken: str, item: s.TypeExpr, span: Span | None) -> None:
        """A duplicate to queues; more of them than one may have are those of others."""
        groups = [into[i : i + LARGEST] for i in range(0, len(into), LARGEST)]
        ends = (
            into if len(groups) == 1 else [self.queue() if len(group) > 1 else group[0] for group in groups]
        )
        duplicate = self.instance("duplicate", "std.duplicate", span, T=item, n=s.Int(len(ends)))
        self.use(ends, duplicate, (taken,), span)
        for end, group in zip(ends, groups, strict=False) if ends is not into else ():
            if len(group) > 1:
                self.duplicate(group, end, item, span)

    def splitter(
        self, into: Sequence[str], weights: Sequence[int], taken: str, item: s.TypeExpr, span: Span | None
    ) -> None:
        """A splitter to queues; a wide one splits to others."""
        ends, own = self.groups(into, weights)
        if len(ends) > WIDE and ends is not into:
            self.splitter(ends, own, taken, item, span)
        else:
            splitter = self.instance("split", "std.rr_split", span, T=item, w=whole(own))
            self.use(ends, splitter, (taken,), span)
        for i, end in enumerate(ends if ends is not into else ()):
            queues = into[i * GROUP : (i + 1) * GROUP]
            if len(queues) > 1:
                self.splitter(queues, weights[i * GROUP : (i + 1) * GROUP], end, item, span)

    def joiner(
        self, given: str, weights: Sequence[int], joined: Sequence[str], item: s.TypeExpr, span: Span | None
    ) -> None:
        """A joiner of queues; a wide one joins what others have joined."""
        ends, own = self.groups(joined, weights)
        for i, end in enumerate(ends if ends is not joined else ()):
            queues = joined[i * GROUP : (i + 1) * GROUP]
            if len(queues) > 1:
                self.joiner(end, weights[i * GROUP : (i + 1) * GROUP], queues, item, span)
        if len(ends) > WIDE and ends is not joined:
            self.joiner(given, own, ends, item, span)
        else:
            joiner = self.instance("join", "std.rr_join", span, T=item, w=whole(own))
            self.use((given,), joiner, ends, span)

    def groups(self, queues: Sequence[str], weights: Sequence[int]) -> tuple[Sequence[str], Sequence[int]]:
        """What stands for the queues of a splitter or joiner, and its weights: a queue for each group where they are many."""
        if len(queues) <= WIDE or 0 in weights:
            return queues, weights
        firsts = range(0, len(queues), GROUP)
        ends = [self.queue() if i + 1 < len(queues) else queues[i] for i in firsts]
        return ends, [sum(weights[i : i + GROUP]) for i in firsts]

    def feedback(self, graph: ty.FeedbackLoop, taken: str | None, given: str | None) -> None:
        """joiner, body, splitter, loop."""
        span, item = graph.span, graph.body.input
        joined, made, into, back = self.queue(), self.queue(), self.queue(), self.queue()
        waiting = values(graph.waiting, item)
        if taken is None:
            starts, rounds = self.typed.starts.get(id(graph), 0), self.typed.firings.get(id(graph), 1)
            joiner = self.instance(
                "loop_join",
                "streamit.clock_join",
                span,
                T=expression(item),
                back=s.Int(graph.join[1]),
                starts=s.Int(starts),
                waiting=waiting,
            )
            turns = self.queue()
            turning = self.instance("turns", "streamit.turns", span, n=s.Int(rounds))
            self.use((turns,), turning, (self.tick(),), span)
            self.use((joined,), joiner, (turns, back), span)
        else:
            outer, inner = map(s.Int, graph.join)
            joiner = self.instance(
                "loop_join",
                "streamit.loop_join",
                span,
                T=expression(item),
                outer=outer,
                back=inner,
                waiting=waiting,
            )
            self.use((joined,), joiner, (taken, back), span)
        made = into if given is None else made
        self.wire(graph.body, joined, made)
        if given is not None:
            carried = expression(graph.body.output)
            if graph.split is None:
                splitter = self.instance("duplicate", "std.duplicate", span, T=carried, n=s.Int(2))
            else:
                splitter = self.instance("split", "std.rr_split", span, T=carried, w=whole(graph.split))
            self.use((given, into), splitter, (made,), span)
        self.wire(graph.loop, into, back)

    # -- the beginning, the clock, and what is printed

    def begin(self) -> None:
        """The first item of the program, for all that begins without an item of its own."""
        if not self.begins:
            return
        span, item = self.typed.span, "unit"
        given = [decl for decl in self.borders if isinstance(decl, p.Input)]
        if self.clocks or not given:
            first, kind = self.tick(), s.TypeName(item)
        else:
            first, behind, kind = self.queue(), self.queue(), given[0].type
            name = given[0].name
            self.uses = [
                evolve(use, ins=tuple(behind if end == name else end for end in use.ins)) for use in self.uses
            ]
            copying = self.instance("duplicate", "std.duplicate", span, T=kind, n=s.Int(2))
            self.use((first, behind), copying, (name,), span)
        name = fresh("begun", self.variables)
        self.variables.add(name)
        self.counters.append(p.Variable(name, s.TypeName("bool"), s.Bool(False), span=span))
        only = self.begins[0] if len(self.begins) == 1 else self.queue()
        beginning = self.instance("begin", "streamit.begin", span, T=kind)
        self.use((only, f"${name}"), beginning, (first, f"${name}"), span)
        if len(self.begins) > 1:
            copying = self.instance(
                "duplicate", "std.duplicate", span, T=s.TypeName("bool"), n=s.Int(len(self.begins))
            )
            self.use(self.begins, copying, (only,), span)

    def clock(self) -> None:
        """The ticks for all sources."""
        if not self.clocks:
            return
        span = self.typed.span
        self.borders.insert(0, p.Input(CLOCK, s.TypeName("unit"), span=span))
        if len(self.clocks) == 1:
            (only,) = self.clocks
            self.uses = [
                evolve(use, ins=tuple(CLOCK if end == only else end for end in use.ins)) for use in self.uses
            ]
            return
        duplicate = self.instance(
            "ticks", "std.duplicate", span, T=s.TypeName("unit"), n=s.Int(len(self.clocks))
        )
        self.uses.insert(0, p.Use(tuple(self.clocks), duplicate, (CLOCK,), span=span))

    def says(self) -> str:
        """The queue that becomes what is printed: itself, or one that goes there behind what is printed at the beginning."""
        if not self.typed.said:
            return PRINTED
        span, queue = self.typed.span, self.queue()
        texts: list[s.Expr] = []
        for each in self.typed.said:
            text = s.String(each) if isinstance(each, str) else self.used[id(each)].said
            texts += () if text is None else (text,)
        while len(texts) > 1:  # by halves, because a tree of sums must not be deep
            ends = [texts[-1]] if len(texts) % 2 else []
            texts = [s.Binary("+", a, b) for a, b in zip(texts[::2], texts[1::2], strict=False)] + ends
        name = fresh("said", self.variables)
        self.variables.add(name)
        self.counters.append(p.Variable(name, s.TypeName("string"), texts[0], span=span))
        if self.printed:
            saying = self.instance("says", "streamit.says", span, T=s.TypeName("string"))
        else:
            self.begins.append(queue)
            saying = self.instance("says", "streamit.says_alone", span, T=s.TypeName("string"))
        self.use((PRINTED,), saying, (queue, f"${name}"), span)
        return queue

    def prints(self, merged: str) -> None:
        """All that is printed, in order of steady states, then of the graph; `merged`: the queue of what firings print."""
        if not self.printed and not self.typed.said:
            return
        span = self.typed.span
        printed, text = (node for node, _ in self.printed), s.TypeName("string")
        said = (p.Annotation("Printed"), *self.steady(*printed, begins=int(bool(self.typed.said))))
        self.borders.append(p.Output(PRINTED, text, annotations=said, span=span))
        if len(self.printed) <= 1:
            only = "".join(each for _, each in self.printed)
            self.uses = [
                evolve(use, outs=tuple(merged if end == only else end for end in use.outs))
                for use in self.uses
            ]
            return
        numbered: list[str] = []
        for place, (node, queue) in enumerate(self.printed):
            each, starts = self.typed.firings.get(id(node), 1), self.typed.starts.get(id(node), 0)
            numbering = self.instance(
                "numbered", "streamit.numbered", span, starts=s.Int(starts), each=s.Int(each), place=s.Int(place),
                all=s.Int(len(self.printed)),
            )  # fmt: skip
            name = fresh("firing", self.variables)
            self.variables.add(name)
            self.counters.append(p.Variable(name, s.TypeName("i64"), s.Int(0), span=span))
            numbered.append(self.queue())
            self.use((numbered[-1], f"${name}"), numbering, (queue, f"${name}"), span)
        count = s.Int(len(numbered))
        merging = self.instance("merged", "std.merge_seq", span, T=text, n=count)
        self.use((merged,), merging, numbered, span)


def gives(graph: ty.Graph) -> str | None:
    """The name that a part's output has already: it reads an input of the program."""
    while isinstance(graph, ty.Pipeline):
        graph = graph.parts[-1]
    return graph.name if isinstance(graph, ty.File) and graph.reads else None


def wants(graph: ty.Graph) -> str | None:
    """The name that a part's input has already: it writes an output of the program."""
    while isinstance(graph, ty.Pipeline):
        graph = graph.parts[0]
    return graph.name if isinstance(graph, ty.File) and not graph.reads else None


def whole(weights: Iterable[int]) -> s.Expr:
    """A list of weights."""
    return s.ListValue(tuple(map(s.Int, weights)))


def values(waiting: tuple[object, ...], item: t.Type) -> s.Expr:
    """What is enqueued."""
    found = tuple(literal(value, item) for value in waiting)
    if len(found) > 4 and all(value == found[0] for value in found):
        return s.Call("fill", (found[0], s.Int(len(found))))
    return s.ListValue(found)


def function(fn: s.Fn) -> s.Fn:
    """A function of the program; StreamIt's names of types are replaced by the operator language's."""

    def rewrite(node: s.Node) -> s.Node:
        match node:
            case s.TypeName(name, ()) if name in SCOPE.types:
                return evolve(expression(resolve(node, SCOPE)), span=node.span)
            case _:
                return rebuild(node, rewrite)

    return rebuild(fn, rewrite)
