"""The annotations that River knows, read from the text of a use; all others are kept and printed.

Paper: River §4.2 (`@Fuse`, `@Parallel`, `@Commutative`, `@Keys`, `@Group`); `@Region` carries what fission decided.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from river.classes import evolve, frozen
from river.diagnostics import Diagnostic, Note, Rejected, closest
from river.il.program import Annotation, Input, Use
from river.il.trees import Same
from river.lang import syntax as s
from river.lang import typed
from river.lang.types import List, Record, Type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from river.il.graph import Graph, Instance
    from river.source import Span


@frozen
class Fuse:
    """`@Fuse(id)`: the uses with the same id shall become one operator; the pass `fusion` does so where it can."""

    id: str


@frozen
class Parallel:
    """`@Parallel()` asks for fission where it is safe; `@Parallel(n)` fixes the degree."""

    degree: int | None = None


@frozen
class Commutative:
    """`@Commutative()`: the author promises that the order of items does not matter to the operator."""


@frozen
class Steady:
    """`@Steady()`: the author promises that what the operator does does not depend on how many marks there are."""


@frozen
class Apart:
    """`@Apart(a, b)`: rows of deltas with other values of these fields have nothing to do with one another.

    The author promises that operators of which each has the rows with some of the values send together what one operator sends.
    What it keeps in its variables is its own affair: it is no part of what the program computes.
    """

    fields: tuple[str, ...]


@frozen
class Keys:
    """`@Keys(a, b)`: the state is partitioned by these fields of the item, or of the rows of a delta (il.md P3)."""

    fields: tuple[str, ...]


@frozen
class Group:
    """`@Group(id)`: the uses with the same id belong on one machine, or on cores of it that run nothing of other groups."""

    id: str


@frozen
class Region:
    """`@Region(id, what, keys...)`: part of parallel region `id`; `what` is its strategy, or the role of this use."""

    id: str
    what: str
    keys: tuple[str, ...] = ()


@frozen
class Exits:
    """`@Exits(id, strategy...)`: how what leaves region `id` here is put together, by output in the order of the use's.

    Where nothing is said of a use, its exits are as the region says.
    """

    id: str
    strategies: tuple[str, ...]


@frozen
class Epoch:
    """`@Epoch(n)`: in this parallel region a mark follows every `n` items of the split."""

    items: int


@frozen
class Loop:
    """`@Loop(a, b)`: what these operators did, which fed one another in a circle, the use does by itself."""

    operators: tuple[str, ...]


@frozen
class Cost:
    """`@Cost(nanoseconds, items, sent, bytes)`: what so many items took in a run, and what was sent for them."""

    nanoseconds: int
    items: int
    sent: int
    bytes: int

    @property
    def each(self) -> float:
        """Nanoseconds for an item."""
        return self.nanoseconds / max(self.items, 1)


Known = Fuse | Parallel | Commutative | Steady | Apart | Keys | Group | Region | Exits | Epoch | Loop | Cost

ROLES: Final = ("split", "replica", "merge")
"""What `@Region` says of an operator that `expand` has made."""

COMBINE: Final = "combine"
"""What `@Region` says of operators that each worker runs on blocks of an input; what they gather is combined at the end."""

HALO: Final = "halo"
"""What `@Region` says of an operator on windows: each worker has some in a row, with the items that the next one's share."""

BY_TIME: Final = "time_merge"
"""The strategy whose results are put in order by their keys: with keys of its own, deltas divided by their rows."""

STRATEGIES: Final = ("round_robin", "seqno", "seqno_marks", BY_TIME, HALO, "unordered", COMBINE)
"""How `@Region` says that results are put together."""

SERIAL: Final = ("round_robin", "seqno", "seqno_marks")
"""The strategies of `@Region` whose results are put in order by what each firing has: its turn, or its serial number."""

NAMES: Final = (
    "Fuse",
    "Parallel",
    "Commutative",
    "Steady",
    "Apart",
    "Keys",
    "Group",
    "Region",
    "Exits",
    "Epoch",
    "Loop",
    "Cost",
)
REPEATED: Final = frozenset({"Region", "Exits"})  # regions nest when a replica is itself replicated


@frozen
class Annotations:
    """What the annotations of one use say."""

    fuse: Fuse | None = None
    parallel: Parallel | None = None
    commutative: bool = False
    steady: bool = False
    apart: Apart | None = None
    keys: Keys | None = None
    group: Group | None = None
    epoch: Epoch | None = None
    loop: Loop | None = None
    cost: Cost | None = None
    regions: tuple[Region, ...] = ()
    exits: tuple[Exits, ...] = ()
    unknown: tuple[Annotation, ...] = ()

    @property
    def region(self) -> Region | None:
        """The region in which the use runs on several workers, the innermost one; None if it does not, or only on blocks."""
        return next((region for region in reversed(self.regions) if region.what != COMBINE), None)

    @property
    def combined(self) -> bool:
        """Whether each worker may run the use on blocks of an input."""
        return any(region.what == COMBINE for region in self.regions)

    def leaving(self, region: Region, count: int) -> tuple[str, ...]:
        """How what leaves a region at the use's `count` exits is put together."""
        said = next((each.strategies for each in self.exits if each.id == region.id), None)
        return (ordered(region),) * count if said is None else said


def ordered(region: Region) -> str:
    """How what leaves a region is put together where nothing else is said: what is combined has no order, all else has."""
    return "seqno_marks" if region.what == COMBINE else region.what


NOTHING: Final = Annotations()
"""What no annotations say."""


def annotated(use: Use) -> Annotations:
    """The annotations of `use`.

    Raises: Rejected with il-annotation-argument, il-annotation-repeated.
    """
    return _annotated(Same(use)) if use.annotations else NOTHING


@lru_cache(maxsize=8192)
def _annotated(use: Same[Use]) -> Annotations:
    """The same; passes ask for those of each use many times."""
    said: dict[str, Any] = {}
    regions: list[Region] = []
    exits: list[Exits] = []
    unknown: list[Annotation] = []
    seen: set[str] = set()
    errors: list[Diagnostic] = []
    for annotation in use.value.annotations:
        name = annotation.name
        if name in NAMES and name not in REPEATED and name in seen:
            errors.append(Diagnostic("il-annotation-repeated", f"`@{name}` is given twice", annotation.span))
        seen.add(name)
        try:
            known = read(annotation)
        except Rejected as rejected:
            errors += rejected.diagnostics
            continue
        match known:
            case None:
                unknown.append(annotation)
            case Region():
                regions.append(known)
            case Exits():
                exits.append(known)
            case Commutative():
                said["commutative"] = True
            case Steady():
                said["steady"] = True
            case Fuse() | Parallel() | Apart() | Keys() | Group() | Epoch() | Loop() | Cost():
                said[name.lower()] = known
    if errors:
        raise Rejected(errors)
    return Annotations(**said, regions=tuple(regions), exits=tuple(exits), unknown=tuple(unknown))


def private(graph: Graph) -> frozenset[str]:
    """The variables that are the affair of their operators, which say `@Apart`."""
    uses = (i for i in graph.instances if i.use.annotations and annotated(i.use).apart is not None)
    return frozenset(name for instance in uses for name in instance.variables)


def read(annotation: Annotation) -> Known | None:
    """The annotation as a value, None if River does not know it.

    Raises: Rejected with il-annotation-argument.
    """
    words = tuple(map(_word, annotation.args))
    match annotation.name, words:
        case "Fuse", (str() as id_,):
            return Fuse(id_)
        case "Group", (str() as id_,):
            return Group(id_)
        case "Parallel", ():
            return Parallel()
        case "Parallel", (str() as degree,) if degree.isdigit() and int(degree) > 0:
            return Parallel(int(degree))
        case "Epoch", (str() as items,) if items.isdigit() and int(items) > 0:
            return Epoch(int(items))
        case "Commutative", ():
            return Commutative()
        case "Steady", ():
            return Steady()
        case "Apart", (str(), *_) if _names(words):
            return Apart(_names(words))
        case "Keys", (str(), *_) if _names(words):
            return Keys(_names(words))
        case "Loop", (str(), *_) if _names(words):
            return Loop(_names(words))
        case "Cost", (str(), str(), str(), str()) if all(map(str.isdigit, filter(None, words))):
            spent, items, sent, size = (int(word or 0) for word in words)
            return Cost(spent, items, sent, size)
        case "Region", (str() as id_, str() as what, *_) if _names(words[1:]):
            return Region(id_, what, _names(words[2:]))
        case "Exits", (str() as id_, str(), *_) if _names(words[1:]):
            return Exits(id_, _names(words[1:]))
        case name, _:
            if name not in NAMES:
                return None
            wants = WANTS[name]
            raise Rejected(
                [Diagnostic("il-annotation-argument", f"`@{name}` wants {wants}", annotation.span)]
            )


WANTS: Final = {
    "Fuse": "one name or number",
    "Group": "one name or number",
    "Parallel": "nothing, or the degree: a whole number above 0",
    "Commutative": "no arguments",
    "Steady": "no arguments",
    "Apart": "the names of fields, at least one",
    "Keys": "the names of fields, at least one",
    "Epoch": "a whole number above 0",
    "Loop": "the names of operators, at least one",
    "Cost": "four whole numbers: nanoseconds, items, items sent, and their bytes",
    "Region": "an id, a strategy or role, and names of fields",
    "Exits": "the id of a region, and a strategy for each output that leaves it",
}


def annotation(known: Known) -> Annotation:
    """The value as an annotation: the way back from `read`."""
    match known:
        case Fuse(id_):
            return Annotation("Fuse", (_expression(id_),))
        case Group(id_):
            return Annotation("Group", (_expression(id_),))
        case Parallel(degree):
            return Annotation("Parallel", () if degree is None else (s.Int(degree),))
        case Commutative():
            return Annotation("Commutative")
        case Steady():
            return Annotation("Steady")
        case Apart(fields):
            return Annotation("Apart", tuple(map(s.Name, fields)))
        case Keys(fields):
            return Annotation("Keys", tuple(map(s.Name, fields)))
        case Loop(operators):
            return Annotation("Loop", tuple(map(s.Name, operators)))
        case Epoch(items):
            return Annotation("Epoch", (s.Int(items),))
        case Cost(spent, items, sent, size):
            return Annotation("Cost", tuple(map(s.Int, (spent, items, sent, size))))
        case Region(id_, what, keys):
            return Annotation("Region", (_expression(id_), s.Name(what), *map(s.Name, keys)))
        case Exits(id_, strategies):
            return Annotation("Exits", (_expression(id_), *map(s.Name, strategies)))


def directives(use: Use) -> tuple[Annotation, ...]:
    """What the annotations of a use ask for or promise: all but what it took in another run."""
    return tuple(a for a in use.annotations if a.name != "Cost")


def together(uses: Sequence[Use]) -> tuple[Annotation, ...]:
    """What uses take that become one, each of which feeds the next: the sum, if it is known of all."""
    found = [annotated(use).cost for use in uses]
    known = [cost for cost in found if cost is not None]
    if len(known) < len(uses):
        return ()
    spent, last = sum(cost.nanoseconds for cost in known), known[-1]
    return (annotation(Cost(spent, known[0].items, last.sent, last.bytes)),)


Annotated = TypeVar("Annotated", bound=Use | Input)


def without(decl: Annotated, *names: str) -> Annotated:
    """The use, or input, without its annotations of these names: a pass consumes the directive that asked for it."""
    return evolve(decl, annotations=tuple(a for a in decl.annotations if a.name not in names))


def row_type(item: Type) -> Type | None:
    """The type of the rows if `item` is a delta `{tau, ins: list<R>, del: list<R>}`, else None (il.md P3)."""
    match item:
        case Record((("tau", _), ("ins", List(inserted)), ("del", List(deleted)))) if inserted == deleted:
            return inserted
        case _:
            return None


def check(use: Use, items: Sequence[Type]) -> tuple[Diagnostic, ...]:
    """The mistakes in the annotations of a use whose ports carry `items`: `@Keys` and `@Apart` speak of fields that all have.

    Codes: il-annotation-argument, il-annotation-repeated, il-annotation-key, il-region.
    """
    try:
        found = annotated(use)
    except Rejected as rejected:
        return rejected.diagnostics
    speaking = [said for said in (found.keys, found.apart) if said is not None]
    errors = [
        error for said in speaking for error in _strangers(use, type(said).__name__, said.fields, items)
    ]
    for region in found.regions:
        if region.what not in (*STRATEGIES, *ROLES):
            near = closest(region.what, STRATEGIES) or f"it is one of {', '.join(STRATEGIES)}"
            message = f"`{region.what}` is no strategy of a region, nor a role in one"
            errors.append(Diagnostic("il-region", message, _place(use, "Region"), help=near))
    return tuple(dict.fromkeys(errors))


def check_regions(instances: Sequence[Instance]) -> tuple[Diagnostic, ...]:
    """The mistakes in the regions of uses without other mistakes: all in one say the same of it, and its keys are fields.

    The keys are those of what comes into the region. Codes: il-region, il-annotation-key.
    """
    regions: dict[str, list[tuple[Instance, Region]]] = {}
    degrees: dict[str, int] = {}
    errors: list[Diagnostic] = []
    for instance in instances:
        found = annotated(instance.use)
        stated = None if found.parallel is None else found.parallel.degree
        for said in (each for each in found.regions if each.what not in (*ROLES, COMBINE)):
            members = regions.setdefault(said.id, [])
            members.append((instance, said))
            same = stated is None or said is not found.region or degrees.setdefault(said.id, stated) == stated
            if members[0][1] != said or not same:
                first = members[0][0].use
                message = f"`{first.operator}` says something else of region `{said.id}`"
                note = Note("there", _place(first, "Region"))
                help_ = "all uses in a region have the same strategy, keys and degree"
                place = _place(instance.use, "Region")
                errors.append(Diagnostic("il-region", message, place, notes=(note,), help=help_))
    errors += _check_exits(instances)
    errors += _check_halos(instances, regions)
    for members in regions.values():
        inside = {queue for instance, _ in members for queue in instance.outs}
        for instance, said in members:
            if inside.isdisjoint(instance.ins):
                items = [port.type for port in instance.operator.ports]
                errors += _strangers(
                    instance.use, "Region", said.keys, items[:1] if said.what == BY_TIME else items
                )
    return tuple(errors)


def _check_halos(
    instances: Sequence[Instance], regions: Mapping[str, Sequence[tuple[Instance, Region]]]
) -> Iterator[Diagnostic]:
    """The mistakes in regions of windows: one operator is in it, which takes windows; and such a one is in no other."""
    for instance in instances:
        op, said = instance.operator, annotated(instance.use).region
        if said is None or said.what in ROLES:
            continue
        windows = isinstance(op, typed.Operator) and op.rated is not None
        if windows and said.what != HALO:
            message = f"`{instance.use.operator}` takes windows, which a region of the strategy `{said.what}` does not divide"
            help_ = f"the strategy of its region is `{HALO}`"
        elif said.what != HALO:
            continue
        elif not windows:
            message = f"`{instance.use.operator}` takes no windows, which is what a region of the strategy `{HALO}` divides"
            help_ = f"it is one of {', '.join(each for each in STRATEGIES if each != HALO)}"
        elif len(regions[said.id]) > 1 or said.keys:
            message = f"the region `{said.id}` of the strategy `{HALO}` has more than one operator, or keys"
            help_ = "windows are divided by their number, for one operator"
        else:
            continue
        yield Diagnostic("il-region", message, _place(instance.use, "Region"), help=help_)


def _check_exits(instances: Sequence[Instance]) -> Iterator[Diagnostic]:
    """The mistakes in what is said of exits: there is one strategy for each, and one that the region's items allow."""
    taken: dict[str, set[str]] = {}
    for instance in instances:
        for region in annotated(instance.use).regions:
            taken.setdefault(region.id, set()).update(instance.ins)
    for instance in instances:
        found, place = annotated(instance.use), _place(instance.use, "Exits")
        regions = {region.id: region for region in found.regions if region.what not in ROLES}
        for said in found.exits:
            region = regions.get(said.id)
            leaving = [queue for queue in instance.outs if queue not in taken.get(said.id, ())]
            if region is None:
                message = (
                    f"`{instance.use.operator}` is not in the region `{said.id}`, of whose exits it speaks"
                )
                help_ = closest(said.id, regions)
            elif len(said.strategies) != len(leaving):
                message = (
                    f"`@Exits` has {len(said.strategies)} strategies, and {len(leaving)} outputs of "
                    f"`{instance.use.operator}` leave the region `{said.id}`"
                )
                help_ = (
                    "one for each output that no operator of the region takes, in the order of the outputs"
                )
            elif strange := [each for each in said.strategies if each not in allowed(region)]:
                message = f"`{strange[0]}` is no way to leave a region of the strategy `{region.what}`"
                help_ = f"it is one of {', '.join(allowed(region))}"
            else:
                continue
            yield Diagnostic("il-region", message, place, help=help_)


def bordered(one: Use, other: Use) -> bool:
    """Whether a border of a region is between two uses: they are not in the same ones, or something leaves one there."""
    first, second = annotated(one), annotated(other)
    return bool(first.exits or second.exits) or first.regions != second.regions


def allowed(region: Region) -> tuple[str, ...]:
    """How what leaves a region may be put together: rows and times by their keys, else in order or not."""
    if region.what in (*SERIAL, COMBINE):
        return (*SERIAL, "unordered")
    return (region.what,)


def _place(use: Use, name: str) -> Span | None:
    """Where an annotation of a use stands."""
    return next((a.span for a in use.annotations if a.name == name), use.span)


def _strangers(use: Use, name: str, named: Sequence[str], items: Sequence[Type]) -> list[Diagnostic]:
    """What an annotation names that is no field of all items, or of the rows of all deltas."""
    errors: list[Diagnostic] = []
    span = _place(use, name)
    for item in items:
        rows = row_type(item)
        carrier = item if rows is None else rows
        fields = [name for name, _ in carrier.fields] if isinstance(carrier, Record) else []
        what = "items" if rows is None else "rows"
        errors += [
            Diagnostic(
                "il-annotation-key", f"the {what} of `{use.operator}` have no field `{key}`", span, help=near
            )
            for key in named
            if key not in fields
            for near in [closest(key, fields)]
        ]
    return errors


def _word(expr: s.Expr) -> str | None:
    match expr:
        case s.Name(name):
            return name
        case s.Int(value):
            return str(value)
        case _:
            return None


def _names(words: tuple[str | None, ...]) -> tuple[str, ...]:
    """The words if all of them are names of fields, else nothing."""
    names = tuple(word for word in words if word is not None and not word[:1].isdigit())
    return names if len(names) == len(words) else ()


def _expression(word: str) -> s.Expr:
    return s.Int(int(word)) if word.isdigit() else s.Name(word)
