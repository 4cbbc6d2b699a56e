"""Random syntax trees: every production of the operator language and of River IL, well-formed by construction.

Well-formed means that a text can say it: a record has a field, a whole number has no sign, `on merge` is no port.
Nothing here knows types: `1 and {}` is fine syntax.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from hypothesis import strategies as st

from river.il import program as p
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

NAMES = (
    *("a", "b", "x1", "_y", "Cap"),
    *(
        "first",
        "merge",
        "early",
        "peek",
        "pop",
        "push",
        "mark",
        "by",
        "rows",
        "union",
        "queue",
        "input",
        "output",
        "result",
    ),
    *(
        "key",
        "type",
        "phase",
        "python",
        "seq",
        "array",
        "decimal",
        "lift",
        "fields",
        "ref",
        "const",
        "on",
        "river",
    ),
    *("operator", "template", "extern", "var_", "b"),
)
"""Names, keywords of other places among them."""

names = st.sampled_from(NAMES)
ports = st.sampled_from([name for name in NAMES if name not in {"merge", "mark"}])
holes = st.sampled_from(["n", "T", "each_", "key"])
type_names = st.sampled_from(["i64", "T", "list", "map", "std.Tag", "by", "a.b.c"])
graph_variables = st.sampled_from(["v", "v.0", "w.12", "push", "a.b.0"])
capitals = st.sampled_from(["T", "Key", "F2"])
lower_names = st.sampled_from([name for name in NAMES if not name[0].isupper()])
paths = st.lists(names, min_size=1, max_size=3).map(".".join)


def tuples(items: st.SearchStrategy[T], least: int = 0, most: int = 3) -> st.SearchStrategy[tuple[T, ...]]:
    """Short tuples of the items."""
    return st.lists(items, min_size=least, max_size=most).map(tuple)


def optional(items: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    """None, or one of the items."""
    return st.none() | items


def _short(make: Callable[[int], st.SearchStrategy[T]]) -> Callable[..., st.SearchStrategy[T]]:
    """The strategy that `make` builds for a depth, made once, with a short representation."""
    made = cache(make)

    @st.composite
    def strategy(draw: st.DrawFn, depth: int = 2) -> T:
        return draw(made(depth))

    return strategy


literals: st.SearchStrategy[s.Expr] = st.one_of(
    st.builds(s.Int, st.integers(0, 10**40)),
    st.builds(s.Float, st.floats(0, allow_nan=False, allow_infinity=False)),
    st.builds(s.String, st.text(max_size=6)),
    st.builds(s.Bytes, st.binary(max_size=6)),
    st.builds(s.Bool, st.booleans()),
    st.just(s.NoneValue()),
)
leaves: st.SearchStrategy[s.Expr] = st.one_of(
    st.builds(s.Name, names),
    literals,
    st.builds(s.Var, names),
    st.builds(s.Hole, holes),
    st.just(s.MapValue(())),
    st.just(s.TupleValue(())),
    st.just(s.ListValue(())),
)
operators = st.sampled_from(
    "+ - * / +% -% *% & | ^ << >> >>> == != < <= > >= and or".split(" ")  # noqa: SIM905
)


@_short
def types(depth: int) -> st.SearchStrategy[s.TypeExpr]:
    """Types of at most `depth` levels; function types belong to template parameters alone."""
    plain = st.one_of(st.builds(s.TypeName, type_names), st.builds(s.HoleType, holes))
    if depth == 0:
        return plain
    inner, size = types(depth - 1), expressions(1)
    arguments = tuples(inner | st.builds(s.Int, st.integers(0, 99)), 1)
    return st.one_of(
        plain,
        st.builds(s.TypeName, type_names, arguments),
        st.builds(s.TypeName, st.just("array"), st.tuples(inner, size)),
        st.builds(s.TypeName, st.just("decimal"), st.tuples(size, size)),
        st.builds(s.OptionalType, inner),
        st.builds(s.TupleType, tuples(inner)),
        record_types(depth - 1),
    )


@_short
def record_types(depth: int) -> st.SearchStrategy[s.RecordType]:
    """Record types, with splices and repetitions."""
    return st.builds(s.RecordType, tuples(_field_types(depth)))


@_short
def _field_types(depth: int) -> st.SearchStrategy[s.FieldTypeItem]:
    plain = st.builds(s.FieldType, names, types(max(0, depth - 1))) | st.builds(s.SpliceType, holes)
    if depth == 0:
        return plain
    return plain | st.builds(s.EachType, names, holes, tuples(_field_types(depth - 1)))


@_short
def expressions(depth: int) -> st.SearchStrategy[s.Expr]:
    """Expressions of at most `depth` levels."""
    if depth == 0:
        return leaves
    inner = expressions(depth - 1)
    return st.one_of(
        leaves,
        st.builds(s.Member, inner, names | st.sampled_from(["0", "12"])),
        st.builds(s.Index, inner, inner),
        st.builds(s.Slice, inner, inner, inner),
        st.builds(s.Force, inner),
        st.builds(s.IsNone, inner),
        st.builds(s.Unary, st.sampled_from(["-", "-%", "~", "not"]), inner),
        st.builds(s.Binary, operators, inner, inner),
        calls(depth - 1),
        st.builds(s.IfExpr, inner, inner, inner),
        st.builds(s.RecordValue, tuples(_field_values(depth - 1), 1)),
        st.builds(s.MapValue, tuples(st.tuples(inner, inner))),
        st.builds(s.TupleValue, tuples(inner)),
        st.builds(s.ListValue, tuples(inner)),
        st.builds(s.Comprehension, inner, tuples(names, 1, 2), ranges(depth - 1), optional(inner)),
    )


@_short
def _field_values(depth: int) -> st.SearchStrategy[s.FieldValueItem]:
    plain = st.builds(s.FieldValue, names, expressions(max(0, depth - 1)))
    if depth == 0:
        return plain
    return plain | st.builds(s.EachValue, names, holes, tuples(_field_values(depth - 1)))


@_short
def arguments(depth: int) -> st.SearchStrategy[s.Argument]:
    """Expressions and lambdas."""
    inner = expressions(depth)
    return inner | st.builds(s.Lambda, tuples(names), inner)


@_short
def calls(depth: int) -> st.SearchStrategy[s.Call | s.Hole]:
    """Calls of functions and of template parameters."""
    given = tuples(arguments(depth))
    return st.builds(s.Call, paths, given) | st.builds(s.Hole, holes, given)


@_short
def ranges(depth: int) -> st.SearchStrategy[s.Range | s.Expr]:
    """What `for` runs over."""
    inner = expressions(depth)
    return inner | st.builds(s.Range, inner, inner)


@_short
def places(depth: int) -> st.SearchStrategy[s.Expr]:
    """Names and variables with fields and indices."""
    root = st.builds(s.Name, names) | st.builds(s.Var, names)
    if depth == 0:
        return root
    inner = places(depth - 1)
    return st.one_of(
        root,
        st.builds(s.Member, inner, names | st.just("0")),
        st.builds(s.Index, inner, expressions(1)),
    )


@_short
def statements(depth: int) -> st.SearchStrategy[s.Stmt]:
    """Statements of at most `depth` levels."""
    value, kind = expressions(2), optional(types(1))
    simple: st.SearchStrategy[s.Stmt] = st.one_of(
        st.builds(s.Let, names, kind, value),
        st.builds(s.VarDecl, names, kind, value),
        st.builds(s.Assign, places(), value),
        st.builds(s.Drop, names),
        st.builds(s.Break, optional(names)),
        st.builds(s.Continue, optional(names)),
        st.builds(s.Return, optional(value)),
        st.builds(s.Emit, names, value),
        st.builds(s.Mark, names, value),
        st.builds(s.Trap, st.text(max_size=6)),
        st.builds(s.Do, calls(1) | st.builds(s.Hole, holes)),
    )
    if depth == 0:
        return simple
    body = blocks(depth - 1)
    return st.one_of(
        simple,
        st.builds(s.With, names, st.builds(s.Index, places(1), value), optional(value), body),
        _ifs(depth - 1),
        st.builds(s.For, optional(names), tuples(names, 1, 2), ranges(), body),
        st.builds(s.While, optional(names), value, body),
        st.builds(s.Each, names, holes, body),
    )


@_short
def _ifs(depth: int) -> st.SearchStrategy[s.If]:
    cond = expressions(2) | st.builds(s.Bind, expressions(2), names)
    last = st.builds(s.If, cond, blocks(depth), optional(blocks(depth)))
    return last | st.builds(s.If, cond, blocks(depth), last)


@_short
def blocks(depth: int) -> st.SearchStrategy[s.Block]:
    """Blocks of statements."""
    return st.builds(s.Block, tuples(statements(depth)))


functions = st.builds(
    s.Fn,
    names,
    tuples(st.builds(s.Param, names, types(1), st.booleans())),
    optional(types(1)),
    blocks(1) | expressions(2),
)
early = st.builds(s.Early, expressions(1), expressions(1))
rates = st.builds(s.Rate, ports, optional(expressions(1)), expressions(1), names, tuples(early, 0, 2))
handlers: st.SearchStrategy[s.Handler] = st.one_of(
    st.builds(s.ItemHandler, ports, names, blocks(1)),
    st.builds(s.RatedHandler, tuples(rates, 1, 2), blocks(1), st.booleans()),
    st.builds(s.PhaseHandler, expressions(1), ports, names, blocks(1)),
    st.builds(s.MergeHandler, tuples(st.tuples(names, names), 1), blocks(1)),
    st.builds(s.MarkHandler, names, blocks(1)),
)
_signature: Any = (
    names,
    tuples(st.builds(s.Port, ports, types(1), optional(names), optional(expressions(1)))),
    tuples(st.builds(s.VarParam, names, types(1)), 0, 2),
    tuples(st.builds(s.Out, names, types(1), optional(names), optional(expressions(1)))),
)
operator_definitions = st.builds(
    s.Operator,
    *_signature,
    tuples(st.builds(s.Const, names, types(1), expressions(2)), 0, 2),
    tuples(functions, 0, 2),
    tuples(handlers),
)
targets = st.tuples(paths, names).map(":".join)
externs = st.builds(s.Extern, *_signature, targets, st.booleans())
function_types = st.builds(s.FunctionType, tuples(types(1)), types(1))
template_params = st.builds(s.TemplateParam, capitals, st.sampled_from(["type", "fields"])) | st.builds(
    s.TemplateParam, lower_names, types(2) | function_types
)
templates = st.builds(s.Template, tuples(template_params, 1), operator_definitions)

_payload = st.builds(s.FieldArg, names, types(1), arguments(2))
_fields = tuples(_payload | st.builds(s.FieldArg, names, types(1)), 0, 2)


def _fields_arg(
    before: tuple[s.FieldArg, ...], field: s.FieldArg, after: tuple[s.FieldArg, ...]
) -> s.FieldsArg:
    return s.FieldsArg((*before, field, *after))


fields_args = st.builds(
    _fields_arg, _fields, _payload, _fields
)  # without any payload it would be a record type
template_arguments: st.SearchStrategy[tuple[str, s.TemplateArg]] = st.one_of(
    st.tuples(capitals, types(2)),
    st.tuples(capitals, fields_args),
    st.tuples(lower_names, arguments(2)),
)

_by: Any = optional(names)
_view = st.builds(p.View, graph_variables, names, optional(st.integers(0, 3)))
declarations: st.SearchStrategy[p.Decl] = st.one_of(
    st.builds(p.TypeDecl, names, tuples(names), types(2)),
    st.builds(p.Input, names, types(2), _by),
    st.builds(p.Output, names, types(2), _by, optional(_view)),
    st.builds(p.Queue, names, types(2), _by),
    st.builds(p.Variable, graph_variables, types(2), expressions(2)),
    st.builds(p.Result, graph_variables, tuples(graph_variables, 1)),
    functions,
    operator_definitions,
    externs,
    templates,
    st.builds(p.Instance, names, paths, tuples(template_arguments)),
    st.builds(p.Lift, names, names, names),
    st.builds(
        p.Use,
        tuples(names | graph_variables.map("${}".format)),
        names,
        tuples(names | graph_variables.map("${}".format)),
        tuples(st.builds(p.Annotation, names, tuples(expressions(1))), 0, 2),
    ),
)
programs = st.builds(p.Program, tuples(declarations, 0, 4))
