"""Templates: generic operators, kept by namespace, checked once when they are read (il.md P4)."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from river.classes import evolve, frozen
from river.diagnostics import Diagnostic, InternalError, Rejected, closest
from river.il import standard
from river.il.pieces import DeclarationText, pieces
from river.il.program import TypeDecl
from river.il.trees import Same, binders, children, rebuild
from river.lang import syntax as s
from river.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from importlib.resources.abc import Traversable


# ------------------------------------------------------------------------------------------------- namespaces


Args = tuple[tuple[str, s.TemplateArg], ...]
"""The arguments of an instance, by parameter."""

Declaration = TypeVar("Declaration", s.Template, s.Fn, TypeDecl)


class Declarations(Mapping[str, Declaration]):
    """Declarations of one kind by name, each read when it is first asked for: few programs need many."""

    def __init__(self, names: Sequence[str], read: Callable[[str], Declaration]) -> None:
        """Those with these names."""
        self._found: dict[str, Declaration | None] = dict.fromkeys(names)
        self._read = read

    def __getitem__(self, name: str) -> Declaration:
        """The declaration. Raises: KeyError; Rejected if something is wrong with it."""
        found = self._found[name]
        if found is None:
            found = self._found[name] = self._read(name)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


@frozen(eq=False)
class Namespace:
    """What the template files of one namespace declare; types and functions are spelled `namespace.name` everywhere.

    `templates` are by their short names, `fns` by the qualified ones.
    """

    name: str
    templates: Mapping[str, s.Template]
    types: tuple[TypeDecl, ...]
    fns: Mapping[str, s.Fn]


@frozen(slots=False, eq=False)
class Library:
    """The templates that a program may name: `std`, which is closed, and one namespace for each frontend."""

    namespaces: Mapping[str, Namespace]

    @classmethod
    def of(cls, files: Mapping[str, Sequence[Traversable]]) -> Library:
        """The library of the standard templates and those of `files`, by namespace; all of them are checked.

        Raises: Rejected with the errors of the files; il-template-namespace if somebody else claims `std`.
        """
        found = cls.on_demand(files)
        errors: list[Diagnostic] = []
        for namespace in found.namespaces.values():
            for declarations in (namespace.templates, namespace.fns):
                for name in declarations:
                    try:
                        _ = declarations[name]
                    except Rejected as rejected:
                        errors += [each for each in rejected.diagnostics if each not in errors]
        if errors:
            raise Rejected(errors)
        return found

    @classmethod
    def on_demand(cls, files: Mapping[str, Sequence[Traversable]]) -> Library:
        """The same, where what nobody asks for is neither read nor checked."""
        if standard.NAMESPACE in files:
            message = f"the namespace `{standard.NAMESPACE}` is closed: choose another"
            raise Rejected([Diagnostic("il-template-namespace", message, None, place="templates")])
        own = tuple(f for f in sorted(_folder().iterdir(), key=lambda f: f.name) if f.name.endswith(".river"))
        every = {standard.NAMESPACE: own, **files}
        return cls({name: _namespace(name, tuple(_text(f) for f in found)) for name, found in every.items()})

    @cached_property
    def types(self) -> tuple[TypeDecl, ...]:
        """The types of all namespaces, under their qualified names."""
        return tuple(d for namespace in self.namespaces.values() for d in namespace.types)

    @cached_property
    def fns(self) -> Mapping[str, s.Fn]:
        """The functions of all namespaces, by their qualified names."""
        return ChainMap(*(cast("dict[str, s.Fn]", each.fns) for each in self.namespaces.values()))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The qualified names of all templates."""
        found = [f"{n.name}.{name}" for n in self.namespaces.values() for name in n.templates]
        return tuple(sorted([*found, *(f"{standard.NAMESPACE}.{name}" for name in standard.GENERATED)]))

    def template(self, name: str, args: Args, span: Span | None) -> tuple[s.Template, Args]:
        """The template with this qualified name, and the arguments that are left for its holes.

        The generated templates of `std` take their shape (how many outputs, which weights) from the arguments.

        Raises: Rejected with il-template-unknown, il-template-argument, il-template-missing.
        """
        namespace, _, short = name.rpartition(".")
        if namespace == standard.NAMESPACE and short in standard.GENERATED:
            source, left = standard.text(short, args, span)
            return _generated(source), left
        found = self.namespaces.get(namespace)
        if found is None or short not in found.templates:
            message = f"unknown template `{name}`"
            raise Rejected([Diagnostic("il-template-unknown", message, span, help=closest(name, self.names))])
        return found.templates[short], args


def _folder() -> Traversable:
    from importlib import resources  # archives and folders for a while come with it

    return resources.files("river.il") / "standard"


def _text(file: Traversable) -> Source:
    return Source(file.name, file.read_text(encoding="utf-8"))


@lru_cache(maxsize=512)
def _generated(source: Source) -> s.Template:
    from river.il.parse import parse_templates  # the grammar is built only where there is text

    (template,) = (d for d in parse_templates(source) if isinstance(d, s.Template))
    if errors := check_template(template):
        raise Rejected(errors)
    return template


@lru_cache(maxsize=64)
def _namespace(name: str, sources: tuple[Source, ...]) -> Namespace:
    """The namespace that the texts of some files are.

    Raises: Rejected with the errors of the texts that are seen without reading each declaration.
    """
    every = [(source, piece) for source in sources for piece in pieces(source)]
    kinds = {
        kind: [piece.name for _, piece in every if piece.kind == kind] for kind in ("type", "fn", "operator")
    }
    errors = [
        Diagnostic("il-template-duplicate", f"`{name}.{twice}` is declared twice", None, place=name)
        for names in kinds.values()
        for twice in sorted({each for each in names if names.count(each) > 1})
    ]
    if errors:
        raise Rejected(errors)
    qualify = _Qualify(name, frozenset(kinds["type"]), frozenset(kinds["fn"]))
    places = {(piece.kind, piece.name): (source, piece) for source, piece in every}

    def read(kind: str, name: str) -> Any:
        return _kept(qualify, *places[kind, name])

    return Namespace(
        name,
        Declarations(kinds["operator"], lambda short: read("operator", short)),
        tuple(read("type", short) for short in kinds["type"]),
        Declarations(
            [f"{name}.{short}" for short in kinds["fn"]], lambda long: read("fn", long[len(name) + 1 :])
        ),
    )


def _kept(qualify: _Qualify, source: Source, piece: DeclarationText) -> s.Template | s.Fn | TypeDecl:
    """A declaration of a text.

    Raises: Rejected with its errors.
    """
    from river.il.packing import kept_part

    depends = qualify.namespace, " ".join(sorted(qualify.types)), " ".join(sorted(qualify.fns))
    return kept_part(source, piece.begin, piece.end, depends, lambda: _checked(qualify, source, piece))


def _checked(qualify: _Qualify, source: Source, piece: DeclarationText) -> s.Template | s.Fn | TypeDecl:
    from river.il.parse import parse_part, parse_templates  # the grammar is built only where there is text

    found = parse_part(source, piece.begin, piece.end)
    if len(found) != 1 or not isinstance(found[0], s.Template | s.Fn | TypeDecl):
        parse_templates(source)  # which says what does not belong there
        raise InternalError(f"the file {source.name} is not cut where its declarations end")
    match found[0]:
        case s.Template() as template:
            if errors := check_template(template):
                raise Rejected(errors)
            return qualify.template(template)
        case s.Fn() as fn:
            return qualify.fn(fn)
        case decl:
            return qualify.type(decl)


@frozen
class _Qualify:
    """Spells the names that a namespace declares with the namespace in front."""

    namespace: str
    types: frozenset[str]
    fns: frozenset[str]

    def type(self, decl: TypeDecl) -> TypeDecl:
        inner = evolve(self, types=self.types - set(decl.params))
        return evolve(rebuild(decl, inner.node), name=f"{self.namespace}.{decl.name}")

    def fn(self, decl: s.Fn) -> s.Fn:
        return evolve(rebuild(decl, self.node), name=f"{self.namespace}.{decl.name}")

    def template(self, decl: s.Template) -> s.Template:
        return rebuild(decl, evolve(self, fns=self.fns - {fn.name for fn in decl.operator.fns}).node)

    def node(self, node: s.Node) -> s.Node:
        node = rebuild(node, self.node)
        match node:
            case s.TypeName(name, _) if name in self.types:
                return evolve(node, name=f"{self.namespace}.{name}")
            case s.Call(name, _) if name in self.fns:
                return evolve(node, function=f"{self.namespace}.{name}")
            case _:
                return node


# ------------------------------------------------------------------------------------------- checking a template


def check_template(template: s.Template) -> tuple[Diagnostic, ...]:
    """The mistakes of a template that can be seen without arguments.

    Codes: il-template-duplicate (of a parameter), il-template-hole (unknown or of the wrong kind), il-template-each.
    """
    return _mistakes(Same(template))


@lru_cache(maxsize=256)
def _mistakes(same: Same[s.Template]) -> tuple[Diagnostic, ...]:
    """They are found once for all instances."""
    template = same.value
    errors: list[Diagnostic] = []
    kinds: dict[str, s.TypeExpr | str] = {}
    for param in template.params:
        if param.name in kinds:
            message = f"parameter `#{param.name}` is declared twice"
            errors.append(Diagnostic("il-template-duplicate", message, param.span))
        kinds[param.name] = param.kind
    check = _CheckHoles(kinds, frozenset(), errors)
    for param in template.params:
        if isinstance(param.kind, s.Node):
            check.node(param.kind)
    check.node(template.operator)
    return tuple(errors)


@frozen
class _CheckHoles:
    kinds: Mapping[str, s.TypeExpr | str]
    each: frozenset[str]
    errors: list[Diagnostic]

    def node(self, node: s.Node) -> None:
        match node:
            case s.HoleType(name):
                if name not in self.each:
                    self.hole(name, node, "type")
            case s.Hole(name, None):
                if name not in self.each:
                    self.hole(name, node, "type" if self.kinds.get(name) == "type" else "expression")
            case s.Hole(name, args):
                if name not in self.each:
                    self.hole(name, node, "lambda", None if args is None else len(args))
            case s.Call(_, args):
                for arg in args:
                    handed = isinstance(arg, s.Hole) and arg.args is None and self.is_function(arg.name)
                    if not handed:  # a function may be handed on to an operation as it is
                        self.node(arg)
                return
            case s.SpliceType(hole):
                self.hole(hole, node, "fields")
            case s.EachType(name, hole, _) | s.EachValue(name, hole, _) | s.Each(name, hole, _):
                self.hole(hole, node, "fields")
                if name in self.each or name in self.kinds:
                    message = f"`{name}` already stands for something else here"
                    self.errors.append(Diagnostic("il-template-each", message, node.span))
                self.inside(node, evolve(self, each=self.each | {name}))
                return
            case s.Name(name) if name in self.each:
                message = f"`{name}` is the name of a field: it stands after a dot and before a colon only"
                self.errors.append(
                    Diagnostic("il-template-each", message, node.span, help=f"`#{name}` is its payload")
                )
            case _ if bound := self.each.intersection(binders(node)):
                message = f"`{min(bound)}` already stands for a field here"
                self.errors.append(Diagnostic("il-template-each", message, node.span))
            case _:
                pass
        self.inside(node, self)

    def inside(self, node: s.Node, check: _CheckHoles) -> None:
        for child in children(node):
            check.node(child)

    def is_function(self, name: str) -> bool:
        """Whether the parameter is a function."""
        return name not in self.each and isinstance(self.kinds.get(name), s.FunctionType)

    def hole(self, name: str, node: s.Node, wanted: str, arity: int | None = None) -> None:
        kind = self.kinds.get(name)
        if kind is None:
            known = closest(name, [*self.kinds, *self.each])
            self.errors.append(
                Diagnostic("il-template-hole", f"unknown hole `#{name}`", node.span, help=known)
            )
            return
        found = kind_of(kind)
        if found != wanted:
            message = f"`#{name}` is {ARTICLES[found]}, {ARTICLES[wanted]} is wanted here"
            self.errors.append(Diagnostic("il-template-hole", message, node.span))
        elif isinstance(kind, s.FunctionType) and arity != len(kind.params):
            message = f"`#{name}` takes {len(kind.params)} arguments, {arity} given"
            self.errors.append(Diagnostic("il-template-hole", message, node.span))


ARTICLES = {
    "type": "a type",
    "fields": "a list of fields",
    "lambda": "a function",
    "expression": "an expression",
}


def kind_of(kind: s.TypeExpr | str) -> str:
    """What a parameter of this kind stands for: one of the words of `ARTICLES`."""
    if isinstance(kind, str):
        return kind
    return "lambda" if isinstance(kind, s.FunctionType) else "expression"
