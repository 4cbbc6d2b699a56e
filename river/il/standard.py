"""The templates of the closed namespace `std` whose shape is an argument: how many outputs, which weights, which key.

The language has no repetition of ports, so for each shape the template is written out here, as text like any
template file, and read once. `std` is closed: a planner recognises instances of these by the template's name (il.md
P4). Templates of one shape stand beside this module, in `standard/*.river`.

`split_hash` and `split_rr` tag each item with its serial number, `{seq: i64, v: T}` by seq, and send a mark to all
outputs after every `epoch` items; `merge_seq` restores the order and takes the tags off. With `by`, items also have a key.
`split_rows` divides each delta by its rows' keys (one without rows goes to the first output) and says on all outputs how far it
is; `merge_rows` puts the parts of an instant together again. `split_turns` deals the items of an ordered queue, and tells the
other outputs how far it is; `merge_time` restores the order if no two keys are equal. `split_time` keeps the items of one key
together, so that `merge_time` restores any order. `split_windows` deals windows, each with all of its items.
`split_keys` divides by a key and tags nothing; `gather` takes items as they come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from river.classes import evolve, frozen
from river.diagnostics import Diagnostic, Rejected
from river.lang import syntax as s
from river.lang.scope import integer
from river.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

NAMESPACE: Final = "std"
LARGEST: Final = 1024
WIDE, GROUP = 24, 16
"""Queues from which on splitters and joiners are better put in a tree, whose nodes have so many: the machine code of one for
`n` queues takes time to make that grows like the square of `n`, and equal nodes share theirs."""

Args = tuple[tuple[str, s.TemplateArg], ...]


@frozen
class Shape:
    """The arguments that decide how a standard template is written out."""

    n: int = 0
    weights: tuple[int, ...] = ()
    by: str | None = None
    epoch: int = 0
    peek: int = 0
    pop: int = 0
    tau: str = "time"

    @property
    def each(self) -> range:
        """The numbers of the repeated ports."""
        return range(self.n)

    @property
    def order(self) -> str:
        """The key as it stands after a type."""
        return "" if self.by is None else f" by {self.by}"


@frozen
class Generated:
    """A template written out for its shape: `wants` are the arguments of the shape, with `?` where it may be absent."""

    wants: tuple[str, ...]
    write: Callable[[Shape], str]


def text(name: str, args: Args, span: Span | None) -> tuple[Source, Args]:
    """The text of template `std.name` in the shape that `args` ask for, and the arguments that are left.

    Raises: Rejected with il-template-argument, il-template-missing.
    """
    generated = GENERATED[name]
    given = dict(args)
    shape = Shape()
    errors: list[Diagnostic] = []
    for want in generated.wants:
        parameter = want.removesuffix("?")
        if parameter in given:
            read = _READ[parameter](shape, given[parameter])
            shape = read or shape
            if read is None:
                message = f"`{parameter}` of `std.{name}` wants {WANTS[parameter]}"
                errors.append(Diagnostic("il-template-argument", message, given[parameter].span or span))
        elif want == parameter:
            errors.append(Diagnostic("il-template-missing", f"`std.{name}` also needs `{parameter}`", span))
    if errors:
        raise Rejected(errors)
    shaping = {want.removesuffix("?") for want in generated.wants}
    left = tuple((parameter, arg) for parameter, arg in args if parameter not in shaping)
    return Source(f"<std.{name}>", f"river 1;\n{generated.write(shape)}\n"), left


# ------------------------------------------------------------------------------------------- arguments of the shape

WANTS: Final = {
    "n": f"a whole number from 1 to {LARGEST}",
    "w": f"a list of 1 to {LARGEST} weights, whole numbers, not all 0",
    "by": "the name of a field",
    "epoch": "a whole number above 0",
    "peek": "a whole number above 0",
    "pop": "a whole number above 0",
    "Tau": "the name of a type",
}


def _n(shape: Shape, arg: s.TemplateArg) -> Shape | None:
    n = _integer(arg)
    return evolve(shape, n=n) if n is not None and 1 <= n <= LARGEST else None


def _w(shape: Shape, arg: s.TemplateArg) -> Shape | None:
    match arg:
        case s.ListValue(items) if 1 <= len(items) <= LARGEST:
            weights = tuple(weight for weight in map(_integer, items) if weight is not None and weight >= 0)
            whole = len(weights) == len(items) and any(weights)
            return evolve(shape, n=len(weights), weights=weights) if whole else None
        case _:
            return None


def _by(shape: Shape, arg: s.TemplateArg) -> Shape | None:
    match arg:
        case s.Name(name) | s.TypeName(name, ()):
            return evolve(shape, by=name)
        case _:
            return None


def _epoch(shape: Shape, arg: s.TemplateArg) -> Shape | None:
    epoch = _integer(arg)
    return evolve(shape, epoch=epoch) if epoch is not None and epoch > 0 else None


def _peek(shape: Shape, arg: s.TemplateArg) -> Shape | None:
    peek = _integer(arg)
    return evolve(shape, peek=peek) if peek is not None and peek > 0 else None


def _pop(shape: Shape, arg: s.TemplateArg) -> Shape | None:
    pop = _integer(arg)
    return evolve(shape, pop=pop) if pop is not None and pop > 0 else None


def _tau(shape: Shape, arg: s.TemplateArg) -> Shape | None:
    match arg:
        case s.TypeName(name, ()) | s.Name(name):
            return evolve(shape, tau=name)
        case _:
            return None


def _integer(arg: s.TemplateArg) -> int | None:
    return None if isinstance(arg, s.Lambda | s.FieldsArg) else integer(arg)


_READ: Final[Mapping[str, Callable[[Shape, s.TemplateArg], Shape | None]]] = {
    "n": _n, "w": _w, "by": _by, "epoch": _epoch, "peek": _peek, "pop": _pop, "Tau": _tau,
}  # fmt: skip


# --------------------------------------------------------------------------------------------------- the templates


def _duplicate(shape: Shape) -> str:
    outs = _list(f"o{i}: #T{shape.order}" for i in shape.each)
    emits = _words(f"emit o{i} x;" for i in shape.each)
    return (
        f"template <#T: type>\noperator duplicate(x: #T{shape.order}) -> ({outs}) {{ on x(x) {{ {emits} }} }}"
    )


def _identity(shape: Shape) -> str:
    order = shape.order
    return f"template <#T: type>\noperator identity(x: #T{order}) -> (out: #T{order}) {{ on x(x) {{ emit out x; }} }}"


def _rr_split(shape: Shape) -> str:
    outs = _list(f"o{i}: #T" for i in shape.each)
    phases = _words(f"phase {w} on x(v) {{ emit o{i} v; }}" for i, w in enumerate(shape.weights))
    return f"template <#T: type>\noperator rr_split(x: #T) -> ({outs}) {{ {phases} }}"


def _rr_join(shape: Shape) -> str:
    ports = _list(f"i{i}: #T" for i in shape.each)
    phases = _words(f"phase {w} on i{i}(v) {{ emit out v; }}" for i, w in enumerate(shape.weights))
    return f"template <#T: type>\noperator rr_join({ports}) -> (out: #T) {{ {phases} }}"


TAGGED: Final = "{seq: i64, v: #T}"


def _split_hash(shape: Shape) -> str:
    choice = f"rem.trunc(hash64(#key(x)), {shape.n})"
    return f"template <#T: type, #key: fn(#T) -> any>\n{_tagging('split_hash', shape, choice)}"


def _split_rr(shape: Shape) -> str:
    return f"template <#T: type>\n{_tagging('split_rr', shape, f'rem.trunc(serial, {shape.n})')}"


UNHEARD: Final = "on mark(k) { }"
"""What is done with marks by who has other ones: nothing."""


def _tagging(name: str, shape: Shape, choice: str) -> str:
    outs = _list(f"o{i}: {TAGGED} by seq" for i in shape.each)
    sends = _choice(shape, "to", lambda i: f"emit o{i} {{seq: serial, v: x}};")
    marks = _words(f"mark o{i} serial + 1;" for i in shape.each)
    return f"""operator {name}(x: #T{shape.order}; $n: i64) -> ({outs}) {{
  on x(x) {{
    let serial = $n;
    $n = serial + 1;
    let to = {choice};
    {sends}
    if rem.trunc(serial + 1, {shape.epoch}) == 0 {{ {marks} }}
  }}
  {UNHEARD if shape.by else ""}
}}"""


def _merge_seq(shape: Shape) -> str:
    ports = _list(f"i{i}: {TAGGED} by seq" for i in shape.each)
    emits = _words(f"if x{i} is x{i} {{ emit out x{i}.v; }}" for i in shape.each)
    return f"""template <#T: type>
operator merge_seq({ports}) -> (out: #T{shape.order}) {{
  on merge({_sides(shape)}) {{ {emits} }}
  {UNHEARD if shape.by else ""}
}}"""


def _gather_seq(shape: Shape) -> str:
    ports = _list(f"i{i}: {TAGGED}" for i in shape.each)
    handlers = _words(f"on i{i}(x) {{ emit out x.v; }}" for i in shape.each)
    return f"template <#T: type>\noperator gather_seq({ports}) -> (out: #T) {{ {handlers} }}"


def _merge_time(shape: Shape) -> str:
    ports = _list(f"i{i}: #T{shape.order}" for i in shape.each)
    emits = _words(f"if x{i} is x{i} {{ emit out x{i}; }}" for i in shape.each)
    return f"""template <#T: type>
operator merge_time({ports}) -> (out: #T{shape.order}) {{ on merge({_sides(shape)}) {{ {emits} }} }}"""


def _split_turns(shape: Shape) -> str:
    outs = _list(f"o{i}: #T{shape.order}" for i in shape.each)
    others = {i: _words(f"mark o{j} x.{shape.by};" for j in shape.each if j != i) for i in shape.each}
    sends = _choice(shape, "to", lambda i: f"emit o{i} x; {others[i]}")
    return f"""template <#T: type>
operator split_turns(x: #T{shape.order}; $n: i64) -> ({outs}) {{
  on x(x) {{
    let to = $n;
    $n = rem.trunc(to + 1, {shape.n});
    {sends}
  }}
}}"""


def _split_time(shape: Shape) -> str:
    outs = _list(f"o{i}: #T{shape.order}" for i in shape.each)
    others = {i: _words(f"mark o{j} x.{shape.by};" for j in shape.each if j != i) for i in shape.each}
    sends = _choice(shape, "to", lambda i: f"emit o{i} x; {others[i]}")
    return f"""template <#T: type>
operator split_time(x: #T{shape.order}) -> ({outs}) {{
  on x(x) {{
    let to = rem.trunc(hash64(x.{shape.by}), {shape.n});
    {sends}
  }}
}}"""


def _split_keys(shape: Shape) -> str:
    outs = _list(f"o{i}: #T{shape.order}" for i in shape.each)
    sends = _choice(shape, "to", lambda i: f"emit o{i} x;")
    return f"""template <#T: type, #key: fn(#T) -> any>
operator split_keys(x: #T{shape.order}) -> ({outs}) {{
  on x(x) {{
    let to = rem.trunc(hash64(#key(x)), {shape.n});
    {sends}
  }}
}}"""


def _split_windows(shape: Shape) -> str:
    outs = _list(f"o{i}: #T" for i in shape.each)
    sends = _choice(shape, "to", lambda i: f"for v in w {{ emit o{i} v; }}")
    return f"""template <#T: type>
operator split_windows(x: #T; $turn: i64) -> ({outs}) {{
  on x[peek {shape.peek}, pop {shape.pop}](w) {{
    let to = $turn;
    $turn = rem.trunc(to + 1, {shape.n});
    {sends}
  }}
}}"""


def _gather(shape: Shape) -> str:
    ports = _list(f"i{i}: #T" for i in shape.each)
    handlers = _words(f"on i{i}(x) {{ emit out x; }}" for i in shape.each)
    return f"template <#T: type>\noperator gather({ports}) -> (out: #T) {{ {handlers} }}"


def _delta(shape: Shape) -> str:
    return f"{{tau: {shape.tau}, ins: list<#R>, del: list<#R>}}"


def _split_rows(shape: Shape) -> str:
    return _dealing_rows("split_rows", shape)


def _split_instants(shape: Shape) -> str:
    return _dealing_rows("split_instants", shape, all_=True)


def _dealing_rows(name: str, shape: Shape, *, all_: bool = False) -> str:
    """What deals the rows of deltas; `all_`: each output gets a delta for each instant."""
    delta = _delta(shape)
    outs = _list(f"o{i}: {delta} by tau" for i in shape.each)
    lists = _words(f"var ins{i}: list<#R> = []; var del{i}: list<#R> = [];" for i in shape.each)
    inserted = _choice(shape, "to", lambda i: f"push(ins{i}, row);")
    deleted = _choice(shape, "to", lambda i: f"push(del{i}, row);")
    whole = " or len(d.ins) + len(d.del) == 0"
    sends = "\n    ".join(
        f"mark o{i} d.tau; {_filled(i, whole, all_=all_)}emit o{i} {{tau: d.tau, ins: ins{i}, del: del{i}}};"
        f"{'' if all_ else ' }'}"
        for i in shape.each
    )
    choice = f"let to = rem.trunc(hash64(#key(row)), {shape.n});"
    return f"""template <#R: type, #key: fn(#R) -> any>
operator {name}(x: {delta} by tau) -> ({outs}) {{
  on x(d) {{
    {lists}
    for row in d.ins {{ {choice} {inserted} }}
    for row in d.del {{ {choice} {deleted} }}
    {sends}
  }}
}}"""


def _filled(output: int, whole: str, *, all_: bool) -> str:
    """The test whether an output of a split gets a delta; the first one gets those without rows, too."""
    return "" if all_ else f"if len(ins{output}) + len(del{output}) > 0{'' if output else whole} {{ "


def _merge_rows(shape: Shape) -> str:
    delta = _delta(shape)
    ports = _list(f"i{i}: {delta} by tau" for i in shape.each)
    rows = "\n    ".join(
        f"if x{i} is x{i} {{ for row in x{i}.ins {{ push(ins, row); }} for row in x{i}.del {{ push(del, row); }} }}"
        for i in shape.each
    )
    return f"""template <#R: type>
operator merge_rows({ports}) -> (out: {delta} by tau) {{
  on merge({_sides(shape)}) {{
    var ins: list<#R> = []; var del: list<#R> = [];
    {rows}
    emit out {{tau: key, ins: ins, del: del}};
  }}
}}"""


def _choice(shape: Shape, selector: str, statements: Callable[[int], str]) -> str:
    """The statements of the output whose number is `selector`; the last one needs no test."""
    *tested, last = shape.each
    tests = "".join(f"if {selector} == {i} {{ {statements(i)} }} else " for i in tested)
    return f"{tests}{{ {statements(last)} }}" if tested else statements(last)


def _sides(shape: Shape) -> str:
    return _list(f"i{i}(x{i})" for i in shape.each)


def _list(parts: Iterable[str]) -> str:
    return ", ".join(parts)


def _words(parts: Iterable[str]) -> str:
    return " ".join(parts)


GENERATED: Final[Mapping[str, Generated]] = {
    "duplicate": Generated(("n", "by?"), _duplicate),
    "identity": Generated(("by?",), _identity),
    "rr_split": Generated(("w",), _rr_split),
    "rr_join": Generated(("w",), _rr_join),
    "split_hash": Generated(("n", "epoch", "by?"), _split_hash),
    "split_rr": Generated(("n", "epoch", "by?"), _split_rr),
    "merge_seq": Generated(("n", "by?"), _merge_seq),
    "gather_seq": Generated(("n",), _gather_seq),
    "merge_time": Generated(("n", "by"), _merge_time),
    "split_turns": Generated(("n", "by"), _split_turns),
    "split_time": Generated(("n", "by"), _split_time),
    "split_keys": Generated(("n", "by?"), _split_keys),
    "split_windows": Generated(("n", "peek", "pop"), _split_windows),
    "gather": Generated(("n",), _gather),
    "split_rows": Generated(("n", "Tau?"), _split_rows),
    "split_instants": Generated(("n", "Tau?"), _split_instants),
    "merge_rows": Generated(("n", "Tau?"), _merge_rows),
}
