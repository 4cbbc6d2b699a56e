"""What optimizers and planners may know of an operator without reading its body: its model.

Models are derived from bodies, conservatively: what is not proven is not claimed. For an `extern` operator the
annotations of its use are taken at their word.

Paper: Auto-parallelizing §3.2 (operator models: state, selectivity, forwarding), River §4.2.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, assert_never

from river.classes import evolve, frozen
from river.il.annotations import annotated, row_type
from river.il.arrangement import reads_rows_in_order
from river.il.flow import (
    ROW,
    Anything,
    Construction,
    Findings,
    ItemPart,
    Items,
    Key,
    Nothing,
    Origin,
    StatePlace,
    item_findings,
)
from river.il.trees import Same, SameBody
from river.lang import typed
from river.lang import types as t
from river.lang.rates import emitted
from river.lang.trees import recursive

if TYPE_CHECKING:
    from collections.abc import Iterable

    from river.il.graph import Instance
    from river.il.program import Use


@frozen
class Stateless:
    """No variables."""

    def __str__(self) -> str:
        """As it is printed."""
        return "none"


@frozen
class Keyed:
    """A firing touches only the entries of its key: for each port the fields that make it, in the same order.

    On a delta the fields are those of its rows, and each row touches only the entries of its own key (`rows`).
    """

    keys: tuple[tuple[str, ...], ...]
    rows: bool = False

    def __str__(self) -> str:
        """As it is printed."""
        shown = "; ".join(", ".join(key) for key in self.keys)
        return f"keyed by {'rows ' if self.rows else ''}({shown})"


@frozen
class Unknown:
    """Variables that are not known to be partitioned."""

    def __str__(self) -> str:
        """As it is printed."""
        return "unknown"


State = Stateless | Keyed | Unknown


@frozen
class Selectivity:
    """How many items a firing sends to one output: at least, at most (None: any number)."""

    least: int
    most: int | None

    def __str__(self) -> str:
        """As it is printed."""
        if self.least == self.most:
            return "exactly one" if self.least == 1 else f"exactly {self.least}"
        return (
            "at most one"
            if (self.least, self.most) == (0, 1)
            else f"{self.least} or more"
            if self.least
            else "any"
        )


@frozen
class Model:
    """What is known of an operator.

    `selectivity` by output. `forwarded` by output: pairs (field of the output, field of the input it always equals);
    on a delta, of the rows (`rows`). `computed` by output: the other fields. `reads`: the fields of the items (or rows)
    whose value matters to more than being forwarded, None if any may. `hidden`: there is state besides the variables: a
    tail, a cycle, the heads of a merge. `order_reading`: the result depends on the order of the items, or of the rows
    inside one. `commutative`: the final variables, and the outputs as bags, depend neither on the order of the items nor on
    that of the rows inside one.
    """

    state: State
    selectivity: tuple[Selectivity, ...]
    forwarded: tuple[tuple[tuple[str, str], ...], ...]
    computed: tuple[tuple[str, ...], ...]
    reads: tuple[str, ...] | None
    rows: bool
    hidden: bool
    order_reading: bool
    can_trap: bool
    commutative: bool

    def forwards(self, out: int, fields: Iterable[str]) -> bool:
        """Whether `fields` leave by output `out` unchanged and under their own names."""
        return all((name, name) in self.forwarded[out] for name in fields)

    def __str__(self) -> str:
        """As `river explain` prints it: one fact a line."""
        lines = [f"state: {self.state}{', and hidden state' if self.hidden else ''}"]
        lines += [f"output {i}: {rate} per firing" for i, rate in enumerate(self.selectivity)]
        for i, pairs in enumerate(self.forwarded):
            shown = ", ".join(a if a == b else f"{a} = {b}" for a, b in pairs)
            lines.append(f"output {i} forwards: {shown or 'nothing'}")
        lines.append(f"reads: {'anything' if self.reads is None else ', '.join(self.reads) or 'nothing'}")
        facts = {
            "reads order": self.order_reading,
            "can trap": self.can_trap,
            "commutative": self.commutative,
        }
        lines += [f"{what}: {'yes' if said else 'no'}" for what, said in facts.items()]
        return "\n".join(lines)


def model(operator: typed.Operator | typed.Extern) -> Model:
    """The model of an operator, from its body alone."""
    match operator:
        case typed.Operator():
            return _known(SameBody(operator))
        case typed.Extern():
            return _opaque(operator)
        case _:
            assert_never(operator)


def instance_model(instance: Instance) -> Model:
    """The model of an operator use: derived, and for an extern what its annotations state."""
    found = model(instance.operator)
    if isinstance(instance.operator, typed.Extern):
        return _stated(found, instance.use, instance.operator)
    return evolve(found, commutative=True) if annotated(instance.use).commutative else found


def needed(instance: Instance) -> frozenset[str] | None:
    """The fields of its items that an operator reads, or that are in anything that it sends; None if any may be.

    Units: names of fields of its one input, whose items are records and no deltas.
    """
    op, found = instance.operator, instance_model(instance)
    if not isinstance(op, typed.Operator) or len(op.ports) != 1 or found.reads is None or found.rows:
        return None
    names = set(found.reads)
    for part in (p for each in item_findings(op) for _, origin in each.emits for p in _sent(origin)):
        fields = _field(op, part, rows=False)
        if fields is None:
            return None
        names.update(fields)
    return frozenset(names)


def _sent(origin: Origin) -> Iterable[ItemPart]:
    """The parts of items that something sent is made of; what else it is made of has been read."""
    match origin:
        case ItemPart():
            return (origin,)
        case Construction(values):
            return tuple(part for value in values for part in _sent(value))
        case Items(item):
            return _sent(item)
        case _:
            return ()


# ------------------------------------------------------------------------------------------------------------ externs


def _opaque(op: typed.Extern) -> Model:
    return Model(
        state=Unknown() if op.vars else Stateless(),
        selectivity=tuple(_stated_rate(out) for out in op.outs),
        forwarded=((),) * len(op.outs),
        computed=tuple(_fields(out.type) for out in op.outs),
        reads=None,
        rows=any(row_type(port.type) is not None for port in op.ports),
        hidden=False,
        order_reading=True,
        can_trap=True,
        commutative=False,
    )


def _stated_rate(out: typed.Out) -> Selectivity:
    return Selectivity(0, None) if out.push is None else Selectivity(out.push, out.push)


def _stated(found: Model, use: Use, op: typed.Extern) -> Model:
    said = annotated(use)
    if said.keys is not None and op.vars:
        found = evolve(found, state=Keyed((said.keys.fields,) * len(op.ports), rows=found.rows))
    return evolve(found, commutative=True, order_reading=False) if said.commutative else found


# ------------------------------------------------------------------------------------------------------------ derived


@lru_cache(maxsize=8192)
def _known(op: Same[typed.Operator]) -> Model:
    """The model of an operator, which passes ask for again and again."""
    return _derived(op.value)


def _derived(op: typed.Operator) -> Model:
    findings = item_findings(op)
    rows = bool(op.ports) and all(row_type(port.type) is not None for port in op.ports)
    touched = bool(op.vars) and any(found.accesses for found in findings)
    commutes = _commutes(op, findings)
    reads = _reads(op, findings, rows=rows)
    forwarded = tuple(_forwarded(op, i, findings, rows=rows) for i in range(len(op.outs)))
    hidden, in_order = not op.items, reads_rows_in_order(op)
    return Model(
        state=_state(op, findings, rows=rows) if touched else Stateless(),
        selectivity=tuple(_selectivity(op, i) for i in range(len(op.outs))),
        forwarded=forwarded,
        computed=tuple(
            tuple(name for name in _fields(out.type) if name not in dict(pairs))
            for out, pairs in zip(op.outs, forwarded, strict=True)
        ),
        reads=reads,
        rows=rows,
        hidden=hidden,
        order_reading=hidden or in_order or (touched and not commutes),
        can_trap=can_trap(op),
        commutative=commutes and not hidden and not in_order,
    )


def _selectivity(op: typed.Operator, out: int) -> Selectivity:
    """How many items a firing sends; a mark handler that may send makes it any number."""
    bodies = [h.body for h in (*op.items, *op.phases)]
    bodies += [h.body for h in (op.rated, op.merge) if h is not None]
    others = [h.body for h in (op.first, op.mark) if h is not None]
    if any(emitted(body, out, op.fns) != (0, 0) for body in others):
        return Selectivity(0, None)
    found = [emitted(body, out, op.fns) for body in bodies]
    push = op.outs[out].push
    if push is not None:
        return Selectivity(push, push)
    most = [high for _, high in found if high is not None]
    return Selectivity(
        min((low for low, _ in found), default=0), max(most, default=0) if len(most) == len(found) else None
    )


def can_trap(op: typed.Operator) -> bool:
    """Whether some site may trap; nesting too deeply needs recursion."""
    loops = recursive(op.fns)
    return any(code != "recursion-depth" or loops for site in op.sites for code in site.codes)


def _commutes(op: typed.Operator, findings: tuple[Findings, ...]) -> bool:
    """Variables are only accumulated into, each by one operation; or there are none that matter."""
    if op.mark is not None:
        return False
    if any(found.plain or found.bounded for found in findings):
        return False
    by_variable: dict[int, set[str]] = {}
    for found in findings:
        for variable, operation in found.accumulated:
            by_variable.setdefault(variable, set()).add(operation)
    return all(len(operations) == 1 for operations in by_variable.values())


# -- fields


def _fields(type_: t.Type) -> tuple[str, ...]:
    rows = row_type(type_)
    carrier = type_ if rows is None else rows
    return tuple(name for name, _ in carrier.fields) if isinstance(carrier, t.Record) else ()


def _field(op: typed.Operator, part: ItemPart, *, rows: bool) -> tuple[str, ...] | None:
    """The fields that `part` consists of: one, all of them for the whole item (or row), None if it is no such part."""
    path = part.path
    type_ = op.ports[part.port].type
    if rows:
        if path[:1] != (ROW,):
            return None
        path, type_ = path[1:], row_type(type_) or type_
    if not isinstance(type_, t.Record):
        return None
    if not path:
        return tuple(name for name, _ in type_.fields)
    return (type_.fields[path[0]][0],) if isinstance(path[0], int) else None


def _exact(op: typed.Operator, part: ItemPart, *, rows: bool) -> str | None:
    """The one field that `part` is, whole and unchanged."""
    found = _field(op, part, rows=rows)
    return found[0] if found is not None and len(part.path) == 1 + rows else None


def _reads(op: typed.Operator, findings: tuple[Findings, ...], *, rows: bool) -> tuple[str, ...] | None:
    read: set[str] = set()
    for part in {part for found in findings for part in found.reads}:
        fields = _field(op, part, rows=rows)
        if fields is not None:
            read.update(fields)
        elif not rows or part.path[:1] != (0,):  # tau belongs to the item, not to its rows
            return None
    order = [name for port in op.ports for name in _fields(port.type)]
    return tuple(dict.fromkeys(name for name in order if name in read))


def _forwarded(
    op: typed.Operator, out: int, findings: tuple[Findings, ...], *, rows: bool
) -> tuple[tuple[str, str], ...]:
    """The fields of an output that always equal a field of the item (or row) they come from."""
    type_ = op.outs[out].type
    if len(op.ports) != 1 or not op.items:
        return ()
    found: dict[str, str | None] = {}
    for origin in (origin for f in findings for o, origin in f.emits if o == out):
        records = _row_origins(origin) if rows else (origin,)
        if records is None or rows != (row_type(type_) is not None):
            return ()
        for record in records:
            now = dict(_pairs(op, record, _fields(type_), rows=rows))
            for name in _fields(type_):
                found[name] = now.get(name) if found.get(name, now.get(name)) == now.get(name) else None
    return tuple((name, source) for name, source in found.items() if source is not None)


def _row_origins(origin: Origin) -> tuple[Origin, ...] | None:
    """What the rows of an emitted delta come from; None if that is not known."""
    match origin:
        case Construction((_, inserted, deleted)):
            sides = [_rows_of(inserted), _rows_of(deleted)]
            return None if None in sides else tuple(s for s in sides if s is not None and s != Nothing())
        case ItemPart(port, ()):
            return (ItemPart(port, (ROW,)),)
        case _:
            return None


def _rows_of(origin: Origin) -> Origin | None:
    match origin:
        case Items(item):
            return item
        case ItemPart(port, (1,) | (2,)):
            return ItemPart(port, (ROW,))
        case _:
            return None


def _pairs(
    op: typed.Operator, origin: Origin, fields: tuple[str, ...], *, rows: bool
) -> Iterable[tuple[str, str]]:
    match origin:
        case Construction(values):
            for name, value in zip(fields, values, strict=True):
                source = _exact(op, value, rows=rows) if isinstance(value, ItemPart) else None
                if source is not None:
                    yield name, source
        case ItemPart():
            whole = _field(op, origin, rows=rows)
            if whole is not None and len(origin.path) == rows and whole == fields:
                yield from ((name, name) for name in whole)
        case _:
            return


# -- state


def _state(op: typed.Operator, findings: tuple[Findings, ...], *, rows: bool) -> State:
    """Keyed, if every access of a variable is to the entry of a key made of fields of the item (or row)."""
    ports: dict[int, list[tuple[str | None, ...]]] = {}
    variables: dict[int, list[tuple[str | None, ...]]] = {}
    for found in findings:
        for access in found.accesses:
            components = _components(access.key)
            sources = {c.port for c in components if isinstance(c, ItemPart)}
            if len(sources) != 1:
                return Unknown()
            names = tuple(name for c in components for name in _key_fields(op, c, rows=rows))
            ports.setdefault(sources.pop(), []).append(names)
            variables.setdefault(access.variable, []).append(names)
    if set(ports) != set(range(len(op.ports))):
        return Unknown()  # a port whose items touch nothing has no key to be split by
    if len(op.ports) == 1:
        common = frozenset[str].intersection(*map(_always, variables.values()))
        # Accesses come in any order, and processes have to agree on that of the key.
        first = min(tuple(name or "" for name in names) for names in variables[min(variables)])
        order = dict.fromkeys(name for name in first if name in common)
        return Keyed((tuple(order),), rows) if common else Unknown()
    return _aligned([ports[i] for i in range(len(op.ports))], rows=rows)


def _always(accesses: list[tuple[str | None, ...]]) -> frozenset[str]:
    """The fields that stand at one place in every key of a variable: the entry of (a, b) is not that of (b, a)."""
    if len({len(names) for names in accesses}) > 1:
        return frozenset()
    places = (set(each) for each in zip(*accesses, strict=True))
    return frozenset(name for (name,) in (each for each in places if len(each) == 1) if name is not None)


def _key_fields(op: typed.Operator, part: Origin, *, rows: bool) -> tuple[str | None, ...]:
    """The fields that a component of a key is: one, all of them for the whole item (or row); (None,) for anything else."""
    if not isinstance(part, ItemPart):
        return (None,)
    whole = _field(op, part, rows=rows)
    if whole and len(op.ports) == 1 and len(part.path) == rows:
        return whole
    return (_exact(op, part, rows=rows),)


def _components(key: Origin | None) -> tuple[Origin, ...]:
    match key:
        case Construction(values):
            return values
        case None | Nothing() | Anything() | Key() | Items() | StatePlace():
            return ()
        case ItemPart():
            return (key,)
        case _:
            assert_never(key)


def _aligned(ports: list[list[tuple[str | None, ...]]], *, rows: bool) -> State:
    """The keys of several ports, component by component: all accesses must be made of as many."""
    widths = {len(names) for accesses in ports for names in accesses}
    if len(widths) != 1:
        return Unknown()
    keys: list[list[str]] = [[] for _ in ports]
    for i in range(widths.pop()):
        columns = [{names[i] for names in accesses} for accesses in ports]
        if all(len(column) == 1 and None not in column for column in columns):
            for key, column in zip(keys, columns, strict=True):
                key += [name for name in column if name is not None]
    return Keyed(tuple(map(tuple, keys)), rows) if keys[0] else Unknown()
