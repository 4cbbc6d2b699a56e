"""The arrow from syntax to typed programs: declarations are checked once each, then the graph is elaborated."""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING

from frontends.streamit import syntax as c
from frontends.streamit import typed as ty
from frontends.streamit.arithmetic import shown
from frontends.streamit.code import BodyChecker, parts
from frontends.streamit.elaborate import elaborate
from frontends.streamit.expressions import STREAM_WORDS, CodePlace, counted_arguments
from frontends.streamit.surroundings import CLOSED, Open, Surroundings, filled, measured
from frontends.streamit.trees import Usage, assigned, breaks, called, changing, handed, named, root, settings
from frontends.streamit.vectors import LIBRARY as VECTOR_FUNCTIONS
from frontends.streamit.vectors import VECTORS, library
from river.classes import define, evolve, field
from river.diagnostics import closest
from river.il.trees import fresh, rebuild, walk
from river.lang import check as lang
from river.lang import syntax as s
from river.lang import types as t
from river.lang.operations import OPERATIONS
from river.lang.parse import RESERVED
from river.lang.scope import Declared
from river.report import Failed, Report

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from river.lang.scope import Scope
    from river.source import Span

LIBRARY = ("Identity", "FileReader", "FileWriter")
"""Streams that need no declaration; each takes a type."""

ALIASES: Mapping[str, Declared] = MappingProxyType({
    "int": Declared((), s.TypeName("i32")),
    "float": Declared((), s.TypeName("f32")),
    "boolean": Declared((), s.TypeName("bool")),
})  # fmt: skip
"""StreamIt's names of types, for functions of the operator language."""

SCOPE = lang.scope(ALIASES)


def check(program: c.Program) -> ty.Program:
    """The program with all names resolved, all types known, and its graph.

    Raises: Rejected with every error found (codes streamit-*, lang-*); the graph is made only when there is none before.
    """
    return _Checker(program).program()


@define
class _Declared:
    """A stream while it is being checked."""

    ast: c.Stream
    name: str
    around: Surroundings


@define
class _Checker:
    ast: c.Program
    report: Report = field(factory=Report)
    scope: Scope = field(init=False)
    known: dict[str, _Declared] = field(factory=dict[str, _Declared])
    done: dict[str, ty.Stream] = field(factory=dict[str, ty.Stream])
    structs: dict[str, ty.Struct] = field(factory=dict[str, ty.Struct])
    used: set[str] = field(factory=set[str])
    signatures: dict[str, tuple[tuple[t.Type, ...], t.Type] | None] = field(
        factory=dict[str, "tuple[tuple[t.Type, ...], t.Type] | None"]
    )
    anonymous: int = 0
    building: dict[str, ty.Helper] = field(factory=dict[str, ty.Helper])  # functions that make the graph
    constants: BodyChecker | None = None  # the code that knows the constants
    vectors: frozenset[str] = frozenset()  # the types of vectors that the program uses

    def __attrs_post_init__(self) -> None:
        self.scope = lang.scope(ALIASES, self.ast.fns)
        own = {struct.name for struct in self.ast.structs}
        for name in sorted(self.ast.vectors - own):
            found = library(VECTORS[name])
            structs, helpers = (*self.ast.structs, *found.structs), (*self.ast.helpers, *found.helpers)
            self.ast = evolve(self.ast, structs=structs, helpers=helpers)
            self.vectors |= {name}

    def program(self) -> ty.Program:
        """The whole program."""
        for fn in self.ast.fns:
            with self.report.recover():
                self.fn(fn)
        constants, static = self.statics()
        top: list[str] = []
        for stream in self.ast.streams:
            with self.report.recover():
                top.append(self.introduce(stream, static).name)
        for name in top:
            with self.report.recover():
                self.stream(self.known[name])
        self.report.remarks()
        main = self.main(top)
        self.report.remarks()
        assert main is not None  # noqa: S101 - without it there is an error
        return elaborate(
            self.done, main, constants, self.ast.fns, self.report, seed=self.ast.seed, helpers=self.building
        )

    # -- functions of the operator language

    def fn(self, fn: s.Fn) -> None:
        """Checks a function, also one that nobody calls."""
        if (
            fn.name in OPERATIONS
            or fn.name in STREAM_WORDS
            or sum(f.name == fn.name for f in self.ast.fns) > 1
        ):
            self.report.error("streamit-duplicate-name", f"there is already a function `{fn.name}`", fn.span)
        self.functions(fn.name)

    def functions(self, name: str) -> tuple[tuple[t.Type, ...], t.Type] | None:
        """The types of a function of the operator language, None when there is none."""
        if name not in self.scope.fns:
            return None
        if name not in self.signatures:
            self.signatures[name] = None
            table, index = lang.function(name, self.scope)
            found = table[index]
            if any(param.ref for param in found.params):
                message = f"`{name}` changes its arguments: a stream cannot call it"
                raise self.report.error("streamit-type", message, found.span)
            self.signatures[name] = tuple(p.type for p in found.params), found.result
        return self.signatures[name]

    # -- declarations

    def statics(self) -> tuple[tuple[ty.Block, ...], BodyChecker]:
        """The constants of the program, and the code that knows them."""
        around = Surroundings(
            structs=self.structs,
            natives=self.ast.natives,
            decimals=self.ast.decimals,
            shared=self.outside,
        )
        code = self.constants = BodyChecker(
            self.report, around, CodePlace.BUILD, self.functions, mark="static"
        )
        late = {struct.name for struct in self.ast.structs if any(map(_names_sizes, struct.fields))}
        while more := {
            struct.name
            for struct in self.ast.structs
            if struct.name not in late and any(part.type.name in late for part in struct.fields)
        }:
            late |= more
        self.declare_structs([struct for struct in self.ast.structs if struct.name not in late], code)
        blocks: list[ty.Block] = []
        for static in self.ast.statics:
            for item in static.body:
                with self.report.recover():
                    blocks.append(ty.Block((code.statement(item),), span=item.span))
        self.declare_structs([struct for struct in self.ast.structs if struct.name in late], code)
        return tuple(blocks), code

    def declare_structs(self, structs: Sequence[c.Struct], code: BodyChecker) -> None:
        """Structs, in whatever order they stand; those whose arrays have sizes with names come after the constants."""
        waiting = list(structs)
        names = {struct.name for struct in waiting}
        while waiting:
            left = [
                struct
                for struct in waiting
                if any(f.type.name in names - {*self.structs, struct.name} for f in struct.fields)
            ]
            ready = [struct for struct in waiting if struct not in left] or waiting
            for struct in ready:
                waiting.remove(struct)
                with self.report.recover():
                    self.struct(struct, code)

    def struct(self, struct: c.Struct, code: BodyChecker) -> None:
        """One struct."""
        if struct.name in self.structs:
            first = next(each.span for each in self.ast.structs if each.name == struct.name)
            raise self.twice(f"there is already a struct `{struct.name}`", struct.span, first)
        fields: list[tuple[str, ty.Type]] = []
        labels: list[str] = []
        for part in struct.fields:
            if part.name in dict(fields):
                self.report.error("streamit-duplicate-name", f"`{part.name}` is declared twice", part.span)
            fields.append((part.name, code.value_type(part.type)))
            labels.append(fresh(part.name, {*labels, *RESERVED}))
        if not fields:
            raise self.report.error("streamit-type", f"`{struct.name}` has no parts", struct.span)
        self.structs[struct.name] = ty.Struct(struct.name, tuple(fields), tuple(labels))

    def twice(self, message: str, span: Span | None, first: Span | None) -> Failed:
        """A second declaration of a name, perhaps in another file."""
        help_line: str | None = None
        if span is not None and first is not None and span.source is not first.source:
            same = span.source.name == first.source.name
            help_line = f"give {'the file once' if same else 'one of the two files'}, or call one of the two otherwise"
        found = self.report.error("streamit-duplicate-name", message, span, help_line)
        self.report.note("here is the first one", first)
        return found

    def introduce(self, ast: c.Stream, outer: BodyChecker) -> _Declared:
        """A stream's name and parameters, before its body is looked at."""
        name = ast.name
        if name is None:
            self.anonymous += 1
            name = f"{ast.kind}_{self.anonymous}"
        elif name in self.known:
            first = self.known[name].ast.name_span
            raise self.twice(f"there is already a stream `{name}`", ast.name_span, first)
        around = Surroundings(
            outer=outer.lookup,
            structs=self.structs,
            natives=self.ast.natives,
            decimals=self.ast.decimals,
        )
        if ast.kind != "filter":
            around.shared = self.outside
        code = BodyChecker(self.report, around, CodePlace.FIELD, self.functions)
        for param in sorted(ast.params, key=lambda each: bool(each.type.sizes)):  # sizes name numbers
            with self.report.recover():
                if param.name in around.params:
                    raise self.report.error(
                        "streamit-duplicate-name", f"parameter `{param.name}` is declared twice", param.span
                    )
                type_ = code.value_type(param.type, portal=True, open_=True)
                given = ty.Param(type_, param.name, span=param.span)
                type_ = filled(type_, param.type.sizes, self.given_sizes(given, param.type, around))
                around.params[param.name] = ty.Parameter(param.name, type_, span=param.span)
        names = [param.name for param in ast.params if param.name in around.params]
        around.params = {name: around.params[name] for name in names}
        self.known[name] = _Declared(ast, name, around)
        return self.known[name]

    def given_sizes(self, param: ty.Param, written: c.TypeName, around: Surroundings) -> ty.Type:
        """The type of a parameter by the sizes of what is given; each is a parameter of its own where it is not written."""
        found: ty.Type = ty.VOID  # only its sizes are asked for
        for depth, size in reversed(tuple(enumerate(written.sizes))):
            name = f"{param.name}#{depth}"
            if size is None:
                value = ty.Size(ty.INT, param, depth, span=param.span)
                around.captures[name] = ty.Parameter(name, ty.INT, value, span=param.span)
            found = ty.Vector(found, ty.Param(ty.INT, name, span=param.span))
        return found

    def main(self, top: Sequence[str]) -> str | None:
        """The stream that is the program: the chosen one, else what no other one adds, `void->void` rather than others."""
        chosen = self.ast.main
        if chosen is not None and chosen not in top:
            message = f"there is no stream `{chosen}` that could be the program"
            self.report.error("streamit-no-main", message, self.ast.span, closest(chosen, top))
            return None
        roots = [chosen] if chosen is not None else self.roots(top)
        if len(roots) != 1:
            found = ", ".join(f"`{name}`" for name in roots) or "none"
            message = f"one stream that no other one adds is the program; here are: {found}"
            help_line = "choose one: `--main NAME`" if roots else None
            self.report.error("streamit-no-main", message, self.ast.span, help_line)
            return None
        if self.known[roots[0]].ast.params:
            message = f"`{roots[0]}` is the program: it cannot have parameters"
            added = [name for name in top if name in self.used and _whole(self.known[name].ast)]
            help_line = f"add it in one that has none: `pipeline Program {{ add {roots[0]}(1); }}`"
            if added and chosen is None:
                help_line = f"`{added[0]}` is not, as a stream adds it"
            self.report.error("streamit-no-main", message, self.known[roots[0]].ast.name_span, help_line)
        return roots[0]

    def roots(self, top: Sequence[str]) -> list[str]:
        """The streams that may be the program."""
        unused = [name for name in top if name not in self.used]
        alone = [name for name in unused if not self.known[name].ast.params]
        whole = [name for name in alone if _whole(self.known[name].ast)]
        return whole or (["Main"] if "Main" in alone else alone or unused)

    # -- streams

    def stream(self, stream: _Declared) -> None:
        """Checks a stream and those inside of it."""
        ast = stream.ast
        self.done[stream.name] = self.filter(stream) if ast.kind == "filter" else self.composite(stream)

    def signature(self, stream: _Declared) -> tuple[ty.Type, ty.Type] | None:
        """The types of a stream's input and output, when they are written."""
        if stream.ast.signature is None:
            return None
        code = BodyChecker(self.report, stream.around, CodePlace.FIELD, self.functions)
        input_, output = stream.ast.signature
        return code.type(input_), code.type(output)

    def composite(self, stream: _Declared) -> ty.Composite:
        """A pipeline, splitjoin or feedback loop."""
        ast = stream.ast
        kind = ast.kind
        assert kind != "filter"  # noqa: S101 - the caller has seen to it
        found = self.signature(stream)
        code = BodyChecker(
            self.report,
            stream.around,
            CodePlace.BUILD,
            self.functions,
            creator=self.create,
            streams=self.known,
        )
        body = code.block(ast.body, ast.span)
        params = (*stream.around.params.values(), *stream.around.captures.values())
        input_, output = found or (None, None)
        return ty.Composite(kind, stream.name, params, input_, output, body, span=ast.name_span)

    def handler(self, portal: ty.Portal, name: str, span: Span | None) -> tuple[ty.Type, ...]:
        """The types of what a handler of a portal's filters takes."""
        ast = self.known[portal.receiver].ast if portal.receiver in self.known else None
        if ast is None or ast.kind != "filter":
            message = f"`{portal.receiver}` is no filter that messages could reach"
            filters = [name for name, each in self.known.items() if each.ast.kind == "filter"]
            raise self.report.error("streamit-portal", message, span, closest(portal.receiver, filters))
        functions = {m.name: m for m in ast.members if isinstance(m, c.Helper) and m.type.name == "void"}
        found = functions.get(name)
        if found is None:
            message = f"`{portal.receiver}` has no handler `{name}`"
            raise self.report.error("streamit-handler", message, span, closest(name, functions))
        walked = [node for part in (*found.rates, found.body) for node in walk(part)]
        takes = any(isinstance(node, c.Call) and node.name in ("push", "pop", "peek") for node in walked)
        if takes or found.rates:
            message = f"`{name}` takes or gives items, which nothing does that messages call"
            raise self.report.error("streamit-handler", message, found.span)
        code = self.code(self.known[portal.receiver].around, CodePlace.HELPER)
        return tuple(code.value_type(param.type) for param in found.params)

    def create(self, code: BodyChecker, add: c.Add) -> ty.Stmt:
        """`add F(1);` and its like; to portals of its sort only."""
        found = self.created(code, add)
        portals = tuple(code.expr(name) for name in add.portals)
        name = found.creation.stream
        for portal in portals:
            if portal.type != ty.Portal(name):
                what = f"`{name}`" if add.creation.name else "a stream without a name"
                message = f"{what} cannot listen to a `{shown(portal.type)}`"
                raise self.report.error("streamit-portal", message, portal.span)
            if name not in self.known or self.known[name].ast.kind != "filter":
                raise self.report.error("streamit-portal", f"`{name}` is no filter", portal.span)
        return evolve(found, creation=evolve(found.creation, portals=portals)) if portals else found

    def created(self, code: BodyChecker, add: c.Add) -> ty.Add:
        """`add F(1);`, whatever it listens to."""
        match add.creation:
            case c.Named(name, type_, args) as named if name in LIBRARY and not (
                type_ is None and name in self.known
            ):
                return ty.Add(add.role, self.standard(code, named, type_, args), span=add.span)
            case c.Named(name, type_, args, span=span):
                if name not in self.known:
                    help_line = closest(name, [*self.known, *LIBRARY])
                    help_line = (
                        help_line or "if it stands in another file, give both: `river run a.str b.str`"
                    )
                    raise self.report.error(
                        "streamit-unknown-stream", f"unknown stream `{name}`", span, help_line
                    )
                if type_ is not None:
                    raise self.report.error("streamit-arguments", f"`{name}` takes no type", type_.span)
                self.used.add(name)
                params = tuple(self.known[name].around.params.values())
                if len(args) != len(params):
                    raise self.report.error(
                        "streamit-arguments",
                        counted_arguments(name, len(params), len(args)),
                        span,
                        _written(self.known[name].ast),
                    )
                given = tuple(code.expr(a, p.type) for a, p in zip(args, params, strict=True))
                return ty.Add(add.role, ty.Create(name, None, given, span=span), span=add.span)
            case c.Stream() as ast:
                if ast.params:
                    help_line = "declare it beside the others and `add` it by its name"
                    raise self.report.error(
                        "streamit-misplaced",
                        "a stream inside another has no parameters",
                        ast.name_span,
                        help_line,
                    )
                if ast.name in self.known or ast.name in LIBRARY:
                    self.anonymous += 1
                    ast = evolve(ast, name=f"{ast.name}_{self.anonymous}")
                stream = self.introduce(ast, code)
                self.stream(stream)
                return ty.Add(add.role, ty.Create(stream.name, None, (), span=ast.name_span), span=add.span)

    def standard(
        self, code: BodyChecker, named: c.Named, type_: c.TypeName | None, args: Sequence[c.Expr]
    ) -> ty.Create:
        """`Identity<float>()`, `FileReader<int>("name")`."""
        if type_ is None:
            help_line = f"write `{named.name}<float>`"
            raise self.report.error(
                "streamit-arguments", f"`{named.name}` needs a type", named.span, help_line
            )
        item = code.value_type(type_)
        code.arity(named.name, args, 0 if named.name == "Identity" else 1, named.span)
        return ty.Create(named.name, item, tuple(code.expr(a, ty.TEXT) for a in args), span=named.span)

    # -- filters

    def filter(self, stream: _Declared) -> ty.Filter:
        """A filter."""
        ast, around = stream.ast, stream.around
        around.input, around.output = self.signature(stream) or self.inferred(ast)
        members = ast.members
        own = [m for m in members if isinstance(m, c.Helper)]
        calls = called(members)
        shared = self.shared(calls)
        changes = changing({m.name: m for m in (*own, *shared)})
        around.changed = assigned(members) | handed(members, changes)
        fields = self.variables(around)
        around.changed |= assigned(m.body for m in shared)
        if "random" in calls - {m.name for m in own}:
            fields.append(self.generator(around, ast.name_span))
        declarations = [member for member in members if isinstance(member, c.Declare)]
        later = {name.name for member in declarations for name in member.names}
        waiting = [*own, *shared]  # functions whose types fields say that are not declared yet
        for member in declarations:
            ready = [function for function in waiting if not _sizes(function) & later]
            self.helper_signatures(ready, changes, around)
            waiting = [function for function in waiting if function not in ready]
            fields += self.fields(member, around)
            later.difference_update(name.name for name in member.names)
        if "iter" in calls:
            around.counter = fresh("iteration", {*around.fields, *around.params})
            zero = ty.Constant(ty.INT, 0, span=ast.name_span)
            around.fields[around.counter] = ty.FieldDecl(around.counter, ty.INT, zero, span=ast.name_span)
            around.changed |= {around.counter}
            fields.append(around.fields[around.counter])
        self.helper_signatures(waiting, changes, around)
        works = [m for m in members if isinstance(m, c.Work)]
        for work in works:
            fields += self.implied(work, around)
        helpers = (
            *(self.helper(m, around) for m in own if m.name not in around.open),
            *(self.helper(m, around, m.name.partition(".")[0]) for m in shared if m.name not in around.open),
        )
        inits = [m for m in members if isinstance(m, c.Init)]
        init: ty.Block | None = None
        for member in inits:
            init = evolve(self.code(around, CodePlace.INIT).whole_body(member.body), span=member.span)
        around.begun = {} if init is None else _begun(init, members)
        normal = [self.work(w, around) for w in works if not w.first]
        first = [self.work(w, around) for w in works if w.first]
        around.begun = {}  # functions may be called before `init` has set anything
        for twice in (inits[1:], [w for w in works if not w.first][1:], [w for w in works if w.first][1:]):
            for member in twice:
                self.report.error("streamit-duplicate-name", "there is already one of these", member.span)
        if not normal:
            named = any(member.name == "work" for member in own)
            help_line = "leave type and parentheses out: `work pop 1 push 1 { ... }`" if named else None
            raise self.report.error(
                "streamit-work-missing",
                "a filter needs a `work` function",
                ast.name_span,
                help_line or "`work pop 1 push 1 { push(pop()); }`, for instance",
            )
        helpers = (*helpers, *self.sized(around))
        params = (*around.params.values(), *around.captures.values())
        found = ty.Filter(
            stream.name, params, around.input, around.output, tuple(fields), helpers, init, normal[0],
            first[0] if first else None, ast.span, span=ast.name_span,
        )  # fmt: skip
        usage = Usage.of(found)
        for code in found.first_code:
            if usage.streams((code,)) or usage.portals((code,)):
                what = "sends messages" if usage.portals((code,)) else "takes or gives items"
                word = "`init`" if code is init else "the first value of a field"
                self.report.error("streamit-misplaced", f"{word} calls a function that {what}", code.span)
        self.look_at_aliases(found, usage)
        return found

    def generator(self, around: Surroundings, span: Span | None) -> ty.FieldDecl:
        """The state of the random generator of a filter, which begins with a number that its place in the graph gives."""
        none = ty.Constant(t.I64, 0, span=span)
        around.captures[ty.SEED] = ty.Parameter(ty.SEED, t.I64, none, span=span)
        around.generator = fresh("generator", {*around.fields, *around.params})
        found = ty.FieldDecl(around.generator, t.I64, ty.Param(t.I64, ty.SEED, span=span), span=span)
        around.fields[around.generator] = found
        around.changed |= {around.generator}
        return found

    def look_at_aliases(self, filter_: ty.Filter, usage: Usage) -> None:
        """Refuses fields that are handed to functions which change them and use them by their own name, too."""
        for node in walk(filter_):
            if isinstance(node, ty.Call):
                used = usage.touched((usage.helpers[node.helper].body,))
                for field_ in {named(root(node.args[i])) for i in node.changes}.intersection(used):
                    called_ = node.helper.partition("#")[0]
                    message = (
                        f"`{field_}` is handed to `{called_}`, which changes it and uses it as a field, too"
                    )
                    self.report.error("streamit-alias", message, node.span, "hand over a copy")

    def variables(self, around: Surroundings) -> list[ty.FieldDecl]:
        """Parameters that the filter changes, as fields."""
        found = [
            ty.FieldDecl(
                param.name, param.type, ty.Param(param.type, param.name, span=param.span), span=param.span
            )
            for param in around.params.values()
            if param.name in around.changed
        ]
        around.fields.update((each.name, each) for each in found)
        return found

    def shared(self, calls: Iterable[str]) -> list[c.Helper]:
        """The functions of `helper` blocks that a filter with these calls reaches, under their whole names."""
        known = {
            f"{block.name}.{function.name}": function
            for block in self.ast.helpers
            for function in block.functions
        }
        found: dict[str, c.Helper] = {}
        waiting = [(name, "") for name in calls]
        sizes = tuple(str(VECTORS[name]) for name in self.vectors)  # operators call functions of vectors
        waiting += [(n, "") for n in known if n.startswith(f"{VECTOR_FUNCTIONS}.") and n.endswith(sizes)]
        while waiting:
            name, block = waiting.pop()
            name = name if name in known or not block else f"{block}.{name}"
            if name in known and name not in found:
                found[name] = evolve(known[name], name=name)
                waiting += [(inner, name.partition(".")[0]) for inner in called((known[name].body,))]
        return [found[name] for name in known if name in found]

    def outside(self, name: str) -> ty.Helper | None:
        """The function of a `helper` block, for code that makes the graph: it sees the constants alone."""
        if name in self.building or self.constants is None:
            return self.building.get(name)
        known = {
            f"{block.name}.{function.name}": evolve(function, name=f"{block.name}.{function.name}")
            for block in self.ast.helpers
            for function in block.functions
        }
        if name not in known:
            return None
        around = Surroundings(
            outer=self.constants.lookup,
            structs=self.structs,
            natives=self.ast.natives,
            decimals=self.ast.decimals,
            alone=True,
            shared=self.outside,
        )
        self.helper_signatures([known[name]], changing(known), around)
        self.building.update(around.helpers)  # functions may call one another
        self.building[name] = self.helper(known[name], around, name.partition(".")[0])
        return self.building[name]

    def code(self, around: Surroundings, place: CodePlace, result: ty.Type = ty.VOID) -> BodyChecker:
        """The checker of a body of a filter."""
        return BodyChecker(self.report, around, place, self.functions, handlers=self.handler, result=result)

    def fields(self, member: c.Declare, around: Surroundings) -> Iterator[ty.FieldDecl]:
        """The fields that one declaration makes."""
        code = self.code(around, CodePlace.FIELD)
        with self.report.recover():
            whole = None if None in member.type.sizes else code.value_type(member.type)
            for name in member.names:
                if name.name in around.fields or name.name in around.params:
                    self.report.error(
                        "streamit-duplicate-name", f"`{name.name}` is declared twice", name.span
                    )
                type_, value = whole or ty.INT, None
                with self.report.recover():
                    if whole is None:
                        type_, value = code.sized(member.type, name.value)
                    elif name.value is not None:
                        value = code.expr(name.value, whole)
                around.fields[name.name] = ty.FieldDecl(name.name, type_, value, span=name.span)
                yield around.fields[name.name]

    def helper_signatures(
        self, members: Sequence[c.Helper], changes: Mapping[str, frozenset[int]], around: Surroundings
    ) -> None:
        """The functions of a filter, so that they may call one another."""
        for member in members:
            with self.report.recover():
                if member.name in around.helpers or member.name in STREAM_WORDS:
                    message = f"there is already a function `{member.name}`"
                    raise self.report.error("streamit-duplicate-name", message, member.span)
                code = self.code(around, CodePlace.HELPER)
                params = tuple(
                    ty.Declare(p.name, code.value_type(p.type, open_=True), None, span=p.span)
                    for p in member.params
                )
                result = code.type(member.type)
                if not around.alone and any(None in param.type.sizes for param in member.params):
                    around.open[member.name] = Open(member, member.name.rpartition(".")[0])
                around.helpers[member.name] = ty.Helper(
                    member.name, params, result, ty.Block(()), changes=changes[member.name], span=member.span
                )

    def helper(self, member: c.Helper, around: Surroundings, block: str = "") -> ty.Helper:
        """A function of a filter; `block`: it is one of the `helper` block of that name, and sees nothing of the filter."""
        signature = around.helpers.get(member.name)
        if signature is None:
            return ty.Helper(member.name, (), ty.VOID, ty.Block(()), span=member.span)
        seen = self.code(around, CodePlace.HELPER)
        sizes = [seen.declare(p.key, p.type, p.span).key for p in signature.params]
        rates = self.rates(member.rates, around, seen, frozenset(sizes))
        if block and not around.alone:
            around = evolve(around, outside=True)
        code = self.code(around, CodePlace.HELPER, signature.result)
        code.block_name = block
        locals_ = [code.declare(p.key, p.type, p.span) for p in signature.params]
        if around.alone:  # the elaborator knows the arrays
            locals_ = [_measured(local, of) for local, of in zip(locals_, member.params, strict=True)]
            code.scopes[-1].update(zip((p.key for p in signature.params), locals_, strict=True))
        errors = self.report.errors
        body = code.whole_body(member.body)
        if signature.result != ty.VOID and self.report.errors == errors and not _returns(body):
            message = f"`{member.name.partition('#')[0]}` may end without returning a value"
            self.report.error("streamit-type", message, member.span)
        params = tuple(ty.Declare(x.key, x.type, None, span=x.span) for x in locals_)
        return ty.Helper(
            member.name, params, signature.result, body, rates.get("pop"), rates.get("peek"), rates.get("push"),
            signature.changes, span=member.span,
        )  # fmt: skip

    def sized(self, around: Surroundings) -> Iterator[ty.Helper]:
        """The functions that take arrays of any size, for the sizes of each call; what nobody calls is looked at, too."""
        done: set[str] = set()
        wrong: set[str] = set()  # errors are told once
        while waiting := [
            (each, name)
            for each in around.open.values()
            for name in [made.name for made in each.made.values()] or [each.ast.name]
            if name not in done
        ]:
            each, name = waiting[0]
            done.add(name)
            found, errors = around.helpers[name], self.report.errors
            if each.ast.name not in wrong:
                found = self.helper(evolve(each.ast, name=name), around, each.block)
            if self.report.errors > errors:
                wrong.add(each.ast.name)
            if name != each.ast.name:
                yield found

    def rates(
        self,
        given: Sequence[c.Rate],
        around: Surroundings,
        code: BodyChecker,
        params: frozenset[str] = frozenset(),
    ) -> dict[str, ty.Expr | None]:
        """The rates that are written, by their words; None for one that is not fixed. `params`: what calls say."""
        rates: dict[str, ty.Expr | None] = {}
        for rate in given:
            with self.report.recover():
                if rate.word in rates:
                    raise self.report.error("streamit-rate", f"`{rate.word}` is given twice", rate.span)
                side, word = (around.output, "output") if rate.word == "push" else (around.input, "input")
                value = None if rate.value is None else code.expr(rate.value, ty.INT)
                rates[rate.word] = value = None if value is None else code.closed(value, rate.span, params)
                if side == ty.VOID and not _is_zero(value):
                    raise self.report.error("streamit-rate", f"there is no {word} to {rate.word}", rate.span)
        return rates

    def work(self, member: c.Work, around: Surroundings) -> ty.Work:
        """`work` or `prework`."""
        rates = self.rates(member.rates, around, self.code(around, CodePlace.FIELD))
        body_code = self.code(around, CodePlace.WORK)
        body_code.first = member.first
        body_code.first_item = int(any(isinstance(i, c.OutOfLine) for i in member.body.items))
        body = body_code.whole_body(member.body)
        if not member.first:
            body = evolve(body, items=(*body.items, *body_code.counting(member.span)))
        free, *asks = (word in rates and rates[word] is None for word in ("push", "pop", "peek"))
        pop, peek, push = rates.get("pop"), rates.get("peek"), rates.get("push")
        return ty.Work(pop, peek, push, free, body, any(asks), span=member.span)

    # -- out of line

    def inferred(self, ast: c.Stream) -> tuple[ty.Type, ty.Type]:
        """The types of a filter that does not say them, from the functions that it calls."""
        taken: list[t.Type] = []
        results: dict[str, t.Type] = {}
        pushed: list[c.Expr] = []
        items = [i for m in ast.members if isinstance(m, c.Work) for i in m.body.items]
        calls = {node.name for item in items for node in walk(item) if isinstance(node, c.Call)}
        for item in items:
            match item:
                case c.OutOfLine(targets, call) if (found := self.functions(call.name)) is not None:
                    pairs = zip(call.args, found[0], strict=False)
                    taken += [
                        type_
                        for arg, type_ in pairs
                        if isinstance(arg, c.Call) and arg.name in ("peek", "pop")
                    ]
                    whole = [found[1]] if len(targets) == 1 else parts(found[1]) or []
                    results |= {target.name: type_ for target, type_ in zip(targets, whole, strict=False)}
                case c.Do(c.Call("push", (value,))):
                    pushed.append(value)
                case _:
                    pass
        input_: ty.Type | None = taken[0] if taken else None if calls & {"pop", "peek"} else ty.VOID
        given = [results.get(v.name) if isinstance(v, s.Name) else input_ for v in pushed]
        output: ty.Type | None = given[0] if given else None if "push" in calls else ty.VOID
        if not items or input_ is None or output is None:
            help_line = "write it in front: `float->float filter`"
            message = "the types of this filter's items are not known"
            raise self.report.error("streamit-type-needed", message, ast.name_span, help_line)
        return input_, output

    def implied(self, member: c.Work, around: Surroundings) -> Iterator[ty.FieldDecl]:
        """State that out-of-line code implies: what a firing reads before it sets it."""
        read: set[str] = set()
        written: set[str] = set()
        types: dict[str, tuple[t.Type, Span | None]] = {}
        for item in member.body.items:
            if isinstance(item, c.OutOfLine) and (found := self.functions(item.call.name)) is not None:
                read |= {arg.name for arg in item.call.args if isinstance(arg, s.Name)} - written
                whole = [found[1]] if len(item.targets) == 1 else parts(found[1]) or []
                for target, type_ in zip(item.targets, whole, strict=False):
                    types.setdefault(target.name, (type_, target.span))
                    written.add(target.name)
        for name in sorted(read & written - set(around.fields) - set(around.params)):
            type_, span = types[name]
            around.fields[name] = ty.FieldDecl(name, type_, None, span=span)
            yield around.fields[name]


def _begun(init: ty.Block, members: Sequence[c.Member]) -> Mapping[str, ty.Expr]:
    """Whole numbers that `init` gives to fields which nothing else sets, where they are known when the graph is made."""
    often = Counter(name for member in members for name in settings(member))
    found: dict[str, ty.Expr] = {}

    def known(node: ty.Expr) -> ty.Expr:
        if isinstance(node, ty.Field):
            return found.get(node.name, node)
        return rebuild(node, known)  # pyright: ignore[reportArgumentType] - only expressions in it

    for item in init.items:
        match item:
            case ty.Do(ty.Update(ty.INT, ty.Field(_, name), None, value)) if often[name] == 1:
                value = known(value)
                if all(isinstance(node, CLOSED) for node in walk(value)):
                    found[name] = value
            case _:
                pass
        if any(isinstance(node, ty.Return) for node in walk(item)):
            break
    return found


def _measured(local: ty.Local, param: c.Param) -> ty.Local:
    """A parameter whose sizes are those of what is given, where none are written."""
    given = measured(local, len(param.type.sizes))
    return evolve(local, type=filled(local.type, param.type.sizes, given))


def _whole(stream: c.Stream) -> bool:
    """Whether a stream takes and gives nothing."""
    return stream.signature is not None and all(type_.name == "void" for type_ in stream.signature)


def _written(stream: c.Stream) -> str | None:
    """What a stream takes, as it is declared; None for nothing."""
    shown = ", ".join(param.span.text for param in stream.params if param.span is not None)
    return f"it is declared as `{stream.name}({shown})`" if shown else None


def _sizes(function: c.Helper) -> set[str]:
    """The names that stand in sizes of arrays which a function takes or gives."""
    types = (function.type, *(param.type for param in function.params))
    sizes = (node for type_ in types for size in type_.sizes if size for node in walk(size))
    return {node.name for node in sizes if isinstance(node, s.Name)}


def _names_sizes(part: c.Param) -> bool:
    """Whether constants say how large an array of a struct is."""
    return any(isinstance(node, s.Name) for size in part.type.sizes if size for node in walk(size))


def _is_zero(expr: ty.Expr | None) -> bool:
    return isinstance(expr, ty.Constant) and expr.value == 0


def _returns(body: ty.Block) -> bool:
    """Whether every path through the block returns."""
    for item in body.items:
        match item:
            case ty.Return():
                return True
            case ty.Block() if _returns(item):
                return True
            case ty.If(_, then, ty.Block() as other) if _returns(then) and _returns(other):
                return True
            case ty.While(ty.Constant(_, True), body) | ty.For(_, ty.Constant(_, True), _, body) if (
                not breaks(body, ty.Break, (ty.For, ty.While))
            ):
                return True
            case _:
                pass
    return False
