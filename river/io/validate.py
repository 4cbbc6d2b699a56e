"""Arrow data from outside: its lengths, bits and offsets are checked before anything follows them.

Whoever reads Arrow's buffers trusts what the data say of themselves. A damaged file, or a frame that some library made wrongly,
leads into memory that is not its own otherwise. What values say (texts that are not UTF-8, decimals that are too large) is
a matter of rows, told row by row by those who decode them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from river.io.schema import arrow

if TYPE_CHECKING:
    from collections.abc import Sequence


def validate(batch: Any, names: Sequence[str]) -> Any:
    """The columns `names` of a record batch, which may be followed now.

    Raises: pyarrow.ArrowInvalid, for data that contradict themselves.
    """
    found = batch.select(names)
    found.validate()  # of sizes alone; nothing may be looked at before
    for name, column in zip(names, found.columns, strict=True):
        try:
            _bare(column).validate(full=True)
        except arrow().ArrowInvalid as error:
            raise arrow().ArrowInvalid(f"column `{name}`: {error}") from None
    return found


def _bare(column: Any) -> Any:
    """A column as one of a type whose every value is correct: what is left to check is how it lies in memory.

    Itself where Arrow cannot view it so: then the values are checked, too.
    """
    kind = _layout(column.type)
    if kind is None or kind == column.type:
        return column
    try:
        return column.view(kind)
    except arrow().ArrowException:
        return column


def _layout(kind: Any) -> Any:
    """The type of the same layout that says nothing about values; None if there is none that Arrow views rightly."""
    pa = arrow()
    types = pa.types
    if types.is_string(kind):
        return pa.binary()
    if types.is_large_string(kind):
        return pa.large_binary()
    if types.is_string_view(kind):
        return pa.binary_view()
    if types.is_decimal(kind):
        return pa.binary(kind.byte_width)
    if types.is_date64(kind):
        return pa.int64()
    if types.is_dictionary(kind):
        inner = _layout(kind.value_type)
        return None if inner is None else pa.dictionary(kind.index_type, inner, kind.ordered)
    if types.is_nested(kind):
        return _nested(kind)
    return None if types.is_null(kind) else kind  # pyarrow 26 loses the length of nulls in records


def _nested(kind: Any) -> Any:
    pa = arrow()
    types = pa.types
    inside = [_layout(kind.field(i).type) for i in range(kind.num_fields)]
    if None in inside:
        return None
    fields = [kind.field(i).with_type(each) for i, each in enumerate(inside)]
    if types.is_struct(kind):
        return pa.struct(fields)
    if types.is_map(kind):
        return pa.map_(*fields[0].type)
    if types.is_fixed_size_list(kind):
        return pa.list_(fields[0], kind.list_size)
    for test, make in (
        (types.is_list, pa.list_), (types.is_large_list, pa.large_list), (types.is_list_view, pa.list_view),
        (types.is_large_list_view, pa.large_list_view),
    ):  # fmt: skip
        if test(kind):
            return make(fields[0])
    return None
