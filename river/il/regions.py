"""How one operator may run on several workers at once whose results are put in order again by serial numbers.

An operator without written variables may: any worker fires what comes next. One whose variables are maps that a firing touches
at the key of its item only may, too: the entries are dealt to shards by the hash of the key, and so are the items; a shard is
fired by one worker at a time. So may one on deltas that keeps apart rows with different keys: each delta is divided by the keys
of its rows, and what is sent for its parts becomes one delta again, by the tags of the rows. A join is divided by its key, the
rows of both sides alike. The pass `fission` asks where to
write `@Region`, and a backend that reads `@Region` what exactly is to be dealt, and whether that is safe: people may have
written it.

Paper: Ordered multicore (seed 001) §3, §4; Auto-parallelizing §3.1 (what is safe).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from river.classes import frozen
from river.il.annotations import BY_TIME, annotated, row_type
from river.il.carried import carries, carries_by_key
from river.il.flow import Construction, ItemPart, item_findings
from river.il.forwards import Path, forwarded
from river.il.groups import one_group
from river.il.joins import joined
from river.il.model import Keyed, Selectivity, Stateless, instance_model
from river.lang import typed
from river.lang import types as t
from river.lang.values import default

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from river.il.annotations import Region
    from river.il.flow import Access
    from river.il.graph import Graph, Instance
    from river.il.model import Model


@frozen
class Sharded:
    """Items and entries are dealt by a key: the positions of its fields in an item, and by variable in the keys of its map.

    A variable without paths is not written: all shards read the same. `exact`: each firing sends one item to each output.
    """

    names: tuple[str, ...]
    item: tuple[Path, ...]
    variables: tuple[tuple[Path, ...] | None, ...]
    exact: bool

    def __str__(self) -> str:
        """As a plan shows it."""
        return f"keyed by ({', '.join(self.names)})"


@frozen
class ByRows:
    """Deltas are divided by a key of their rows: the positions of its fields in the rows of each input.

    `names`: those of the fields in the first. Each shard begins with variables that are empty. `promised`: by `@Apart`; then
    what is in them is no part of the result. Where several operators are divided together, this is how the first is.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[Path, ...], ...]
    promised: bool

    def __str__(self) -> str:
        """As a plan shows it."""
        return f"by rows, keyed by ({', '.join(self.names)})"


def divided(graph: Graph, instance: Instance, keys: Sequence[str] = ()) -> Stateless | Sharded | ByRows | str:
    """How an instance may run on several workers, or why it may not, said of it.

    `keys`: the fields by which it is to be divided; without them, all of its key.
    """
    op = instance.operator
    if not isinstance(op, typed.Operator):
        return "is a function of Python"
    named = zip(op.vars, instance.variables, strict=True)
    if read := [name for var, name in named if not var.written and name in graph.written]:
        return f"reads `${read[0]}`, which is written"
    if len(op.ports) != 1 and op.rated is None:
        return _joined(graph, instance, keys)
    if len(op.ports) != 1 and instance.index in graph.looping:  # what comes round waits for what went before
        return LOOPS
    if annotated(instance.use).apart is not None and (op.mark is None or carries(op)):
        return _by_rows(graph, instance, keys)
    if op.mark is not None:
        return MARKS
    if not any(var.written for var in op.vars):
        return Stateless() if _fires_apart(op) else "keeps items waiting between firings"
    model = instance_model(instance)
    if model.hidden or len(op.items) != 1:
        return "keeps items waiting between firings"
    if not isinstance(model.state, Keyed):
        return f"has state that is not known to be kept by key: {_shown(instance)}"
    if model.state.rows:
        return _by_rows(graph, instance, keys)
    if reason := _obstacle(graph, instance):
        return reason
    names = model.state.keys[0]
    if stray := [key for key in keys if key not in names]:
        return f"keeps its state by ({', '.join(names)}), not by `{stray[0]}`"
    names = tuple(keys) or names
    item = op.ports[0].type
    assert isinstance(item, t.Record)  # noqa: S101 - its fields are the key
    places = tuple(place for name in names if (place := item.index(name)) is not None)
    accesses = item_findings(op)[0].accesses
    variables: list[tuple[Path, ...] | None] = []
    for i, var in enumerate(op.vars):
        paths = _paths(accesses, i, places) if var.written else ()
        if paths is None:
            return f"has the key of `${instance.variables[i]}` in several places"
        variables.append(paths if var.written else None)
    exact = all(rate == Selectivity(1, 1) for rate in model.selectivity)
    return Sharded(names, tuple((place,) for place in places), tuple(variables), exact)


def divided_together(graph: Graph, members: Sequence[int], keys: Sequence[str] = ()) -> ByRows | str:
    """How operators may be divided by rows, all by one key: each by itself, and what it sends is what the next one gets.

    Or why they may not; of the last of them, if the others may. `keys`: the fields of the rows of the first by which they are
    to be divided; without them, all that may be.
    """
    first = graph.instances[members[0]]
    row = row_type(first.operator.ports[0].type) if first.operator.ports else None
    if not isinstance(row, t.Record):
        return f"`{first.use.operator}` does not turn deltas into deltas"
    if looping := [member for member in members if member in graph.looping]:
        return f"`{graph.instances[looping[0]].use.operator}` {LOOPS}"
    if len(members) + len(first.ins) - 1 > LONGEST:
        return f"there are more than {LONGEST} operators in it"
    alive = {name: name for name, _ in row.fields}
    found: tuple[str, ...] | None = None
    before, instance = None, first
    for instance in (graph.instances[member] for member in members):
        own = _joining(graph, instance, before)
        if isinstance(own, str):
            return f"`{instance.use.operator}` {own}"
        if own is not None:
            reached = {alive[name] for name in own if name in alive}
            found = tuple(name for name in (alive if found is None else found) if name in reached)
        alive = {to: alive[name] for to, name in kept(instance) if name in alive}
        before = instance
    if not found:
        return f"no key of `{instance.use.operator}` reaches it unchanged"
    if strangers := [name for name in keys if name not in found]:
        return f"not all of them keep rows apart by `{strangers[0]}`"
    names, promised = tuple(keys) or found, annotated(first.use).apart is not None
    return ByRows(names, _places(first, names), promised)


LONGEST: Final = 6
"""Operators that may be divided together: each takes a bit of the tags of rows, and so does a second input."""

MARKS: Final = "follows the time of all items, and each worker would see that of its own"


def _joining(graph: Graph, instance: Instance, before: Instance | None) -> tuple[str, ...] | str | None:
    """By which fields of its rows an operator may be divided together with the one before it, None if by any; or why not."""
    from river.il.rows import rowwise
    from river.il.tagged import tagged

    op, said = instance.operator, annotated(instance.use).keys
    if any(row_type(end.type) is None for end in (*op.ports, *op.outs)):
        return "does not turn deltas into deltas"
    how = divided(graph, instance, () if said is None else said.fields)
    if isinstance(how, str):
        return how
    assert isinstance(op, typed.Operator)  # noqa: S101 - else it is not divided
    if before is not None:
        end = graph.queues[before.outs[0]].consumer
        if len(op.ports) != 1:
            return "joins what the one before it sends with other rows"
        if len(before.outs) != 1 or end is None or end.instance != instance.index:
            return "does not get what the one before it sends"
        if not one_group((before, instance)):
            return "is in another group than the one before it"
        if op.mark is not None:
            return MARKS
    if isinstance(how, ByRows):
        return how.names
    if isinstance(how, Sharded):
        return "keeps its state by its items, not by their rows"
    if (reason := rowwise(op).obstacle) is not None:
        return APART.format(reason)
    if tagged(op) is None or any(end.by != TAU for end in (*op.ports, *op.outs)):
        return UNSEEN
    if rowwise(op).compares:  # equal rows have to be in one part
        row = row_type(op.ports[0].type)
        return tuple(name for name, _ in row.fields) if isinstance(row, t.Record) else ()
    return None


def kept(instance: Instance) -> Iterable[tuple[str, str]]:
    """The fields of the rows that an operator sends that are fields of those it gets, with the names of these."""
    return passed(instance, instance_model(instance))[0]


def passed(instance: Instance, model: Model) -> tuple[tuple[tuple[str, str], ...], ...]:
    """By output the fields that an operator sends that are fields of what it gets, with the names of these; or of rows."""
    op = instance.operator
    row = row_type(op.ports[0].type) if op.ports else None
    if isinstance(op, typed.Operator) and isinstance(row, t.Record) and carries(op):
        return (tuple((name, name) for name, _ in row.fields),)
    if isinstance(op, typed.Operator) and isinstance(model.state, Keyed) and carries_by_key(op):
        return (tuple((name, name) for name in model.state.keys[0]),)
    if (join := joined(op)) is not None:  # of the first input: the key is the same in both
        return (tuple((name, join.keys[0][part]) for name, part in join.sent),)
    return model.forwarded


def chain(graph: Graph, id_: str) -> tuple[int, ...]:
    """The operators of a region that is divided by the keys of rows, each before the one that gets what it sends."""
    members = [i for i in graph.instances if any(_is(id_, each) for each in annotated(i.use).regions)]
    made = {queue: i.index for i in members for queue in i.outs}
    after = {made[queue]: i.index for i in members for queue in i.ins if queue in made}
    found: list[int] = []
    for index in (i.index for i in members if not made.keys() & set(i.ins)):
        found.append(index)
        while found[-1] in after:
            found.append(after[found[-1]])
    return tuple(found)


def _is(id_: str, region: Region) -> bool:
    return region.id == id_ and region.what == BY_TIME


def pays(op: typed.Operator) -> bool:
    """Whether firing an operator is work that could be shared: one that only passes on is not fired, where there are columns.

    A window only passes on what it gets, later; with what is done with its rows it may be shared, but not alone.
    """
    return forwarded(op) is None and not carries(op)


def _fires_apart(op: typed.Operator) -> bool:
    """Whether each firing of an operator without state needs nothing but its item, or its windows."""
    return bool(op.items) or (op.rated is not None and op.first is None)


def _shown(instance: Instance) -> str:
    return ", ".join(f"`${name}`" for name in instance.variables)


def _joined(graph: Graph, instance: Instance, keys: Sequence[str]) -> ByRows | str:
    """How an operator of several inputs may be divided: by a key of its rows, those of all inputs alike."""
    op = instance.operator
    assert isinstance(op, typed.Operator)  # noqa: S101 - of all others nothing is known
    deltas = all(row_type(port.type) is not None for port in op.ports)
    state, apart = instance_model(instance).state, annotated(instance.use).apart
    if op.merge is None or not deltas:
        return f"takes {len(op.ports)} inputs together, which are not deltas that it joins by a key"
    if op.mark is not None:
        return MARKS
    if not isinstance(state, Keyed) and apart is None:
        return f"takes {len(op.ports)} inputs together, of which it is not known that it joins them by a key"
    return _by_rows(graph, instance, keys)


def _places(instance: Instance, names: Sequence[str]) -> tuple[tuple[Path, ...], ...]:
    """Where the fields of a key are in the rows of each input; `names`: what they are called in the first.

    In the others they are what an operator compares with them, or fields of the same name, which `@Apart` speaks of.
    """
    state = instance_model(instance).state if annotated(instance.use).apart is None else None
    found: list[tuple[Path, ...]] = []
    for i, port in enumerate(instance.operator.ports):
        row = row_type(port.type)
        assert isinstance(row, t.Record)  # noqa: S101 - its fields are the key
        own = dict(zip(state.keys[0], state.keys[i], strict=True)) if isinstance(state, Keyed) else {}
        places = (row.index(own.get(name, name)) for name in names)
        found.append(tuple((place,) for place in places if place is not None))
    return tuple(found)


def _types(port: typed.Port, places: tuple[Path, ...]) -> tuple[t.Type, ...]:
    """The types of the parts of a key, which may be missing in one input and not in another."""
    row = row_type(port.type)
    assert isinstance(row, t.Record)  # noqa: S101 - its fields are the key
    found = (row.fields[place][1] for (place,) in cast("tuple[tuple[int], ...]", places))
    return tuple(each.inner if isinstance(each, t.Optional) else each for each in found)


def _by_rows(graph: Graph, instance: Instance, keys: Sequence[str]) -> ByRows | str:
    """How an operator that keeps apart the rows of deltas by a key may be divided."""
    from river.il.rows import rowwise
    from river.il.tagged import tagged

    op, said = instance.operator, annotated(instance.use).apart
    assert isinstance(op, typed.Operator)  # noqa: S101 - of all others nothing is known
    if said is None:
        state = instance_model(instance).state
        assert isinstance(state, Keyed)  # noqa: S101 - by the caller
        names = tuple(dict.fromkeys(state.keys[0]))
        if (reason := rowwise(op).obstacle) is not None:
            return APART.format(reason)
    else:
        names = said.fields
    if reason := _obstacle(graph, instance, any_type=said is not None):
        return reason
    if strangers := [name for name in keys if name not in names]:
        return f"keeps rows apart by ({', '.join(names)}), not by `{strangers[0]}`"
    if tagged(op) is None or any(end.by != TAU for end in (*op.ports, *op.outs)):
        return UNSEEN
    initial = {variable.name: variable.initial for variable in graph.variables}
    for var, name in zip(op.vars, instance.variables, strict=True):
        if var.written and initial[name] != default(var.type):
            return f"has `${name}`, which is not empty at first"
        if var.written and said is not None and shown(graph, name):
            return f"has `${name}`, which is part of the result"
    names = tuple(keys) or names
    places = _places(instance, names)
    if len({_types(port, paths) for port, paths in zip(op.ports, places, strict=True)}) > 1:
        return f"joins by ({', '.join(names)}), which is of other types in each input"
    return ByRows(names, places, said is not None)


APART: Final = "cannot be given parts of a delta: {}"

LOOPS: Final = "is part of a loop"

UNSEEN: Final = "may send rows of which it is not seen what they are made of"

TAU: Final = "tau"
"""The key of queues of deltas."""


def shown(graph: Graph, name: str) -> bool:
    """Whether the program shows what is in a variable."""
    return any(view.variable == name for view in graph.views) or any(
        name in result.parts for result in graph.results
    )


def _obstacle(graph: Graph, instance: Instance, *, any_type: bool = False) -> str | None:
    """Why the state cannot be dealt to shards, though it is kept by key. `any_type`: it need not be maps."""
    op = instance.operator
    assert isinstance(op, typed.Operator)  # noqa: S101 - of all others nothing is known
    if instance.index in graph.looping:
        return LOOPS
    if any(port.initial for port in op.ports):
        return "has an input that does not start empty"
    if op.mark is None and any(found.marks for found in item_findings(op)):
        return "sends marks of its own"
    for var, name in zip(op.vars, instance.variables, strict=True):
        if not var.written:
            continue
        if len(graph.users[name]) > 1 or instance.variables.count(name) > 1:
            return f"shares `${name}` with another operator"
        if not any_type and not isinstance(var.type, t.Map | t.OMap):
            return f"keeps `${name}`, which is not a map"
    return None


def _paths(accesses: set[Access], variable: int, places: tuple[int, ...]) -> tuple[Path, ...] | None:
    """Where in the keys of a map the fields of the items are, by which it is accessed; None if not always there."""
    found: set[tuple[Path | None, ...]] = set()
    for access in accesses:
        if access.variable == variable:
            where: dict[int, Path] = {}
            match access.key:
                case ItemPart(_, (int(place),)):
                    where[place] = ()
                case ItemPart(_, ()):  # the whole item
                    where = {place: (place,) for place in places}
                case Construction(values):
                    for i, value in enumerate(values):
                        match value:
                            case ItemPart(_, (int(place),)):
                                where.setdefault(place, (i,))
                            case _:
                                pass
                case _:
                    return None
            found.add(tuple(where.get(place) for place in places))
    if len(found) != 1:
        return None
    paths = found.pop()
    return None if None in paths else tuple(path for path in paths if path is not None)
