"""`float2`, `float3`, `float4`, and the functions of vectors, `StreamItVectorLib.dot3` and its like: StreamIt, written out.

Operators on vectors are calls of these functions: `a + b` of `add3`, `a * 2` of `scale3`.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from frontends.streamit.parse import parse
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from frontends.streamit import syntax as c

VECTORS: Mapping[str, int] = MappingProxyType({"float2": 2, "float3": 3, "float4": 4})
"""The types, and how many parts each has."""

LIBRARY = "StreamItVectorLib"
"""The `helper` block of the functions."""

BOTH: Mapping[str, str] = MappingProxyType(
    {"+": "add", "-": "sub", "*": "mul", "/": "div", "==": "equals", "!=": "differs"}
)
"""Functions by operators of two vectors; their names end with the number of parts."""

RIGHT: Mapping[str, str] = MappingProxyType(
    {"+": "addScalar", "-": "subScalar", "*": "scale", "/": "scaleInv"}
)
"""By operators of a vector and a float."""

LEFT: Mapping[str, str] = MappingProxyType({"+": "scalarAdd", "*": "scaleOf"})
"""By operators of a float and a vector."""


@cache
def library(size: int) -> c.Program:
    """The type of vectors of `size` parts, and its functions."""
    return parse(Source(f"<float{size}>", "\n".join(_text(size))))


def _text(n: int) -> Iterator[str]:
    parts, own = "xyzw"[:n], f"float{n}"

    def vector(name: str, params: str, each: str, before: str = "") -> str:
        """A function whose result has `each` in each part, where `$` is the part's name."""
        made = " ".join(f"r.{part} = {each.replace('$', part)};" for part in parts)
        return f"  {own} {name}{n}({params}) {{ {before}{own} r; {made} return r; }}"

    def over(word: str, each: str) -> str:
        return f" {word} ".join(each.replace("$", part) for part in parts)

    two, scalar = f"{own} a, {own} b", f"{own} a, float s"
    size = f"float t = sqrt({over('+', 'a.$ * a.$')}); "
    yield f"struct {own} {{ {' '.join(f'float {part};' for part in parts)} }}"
    yield f"helper {LIBRARY} {{"
    for name, op in (("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/")):
        yield vector(name, two, f"a.$ {op} b.$")
    for name, op in (("addScalar", "+"), ("subScalar", "-"), ("scale", "*"), ("scaleInv", "/")):
        yield vector(name, scalar, f"a.$ {op} s")
    yield vector("scalarAdd", f"float s, {own} a", "s + a.$")
    yield vector("scaleOf", f"float s, {own} a", "s * a.$")
    yield vector("neg", f"{own} a", "-a.$")
    yield vector("floor", f"{own} a", "floor(a.$)")
    yield vector("normalize", f"{own} a", "a.$ / t", size)
    yield vector("max", two, "b.$ < a.$ ? a.$ : b.$")
    yield vector("min", two, "b.$ > a.$ ? a.$ : b.$")
    yield f"  float dot{n}({two}) {{ return {over('+', 'a.$ * b.$')}; }}"
    yield f"  float sqrtDist{n}({two}) {{ return sqrt({over('+', '(a.$ - b.$) * (a.$ - b.$)')}); }}"
    yield f"  boolean greaterThan{n}({two}) {{ return {over('||', 'b.$ < a.$')}; }}"
    yield f"  boolean lessThan{n}({two}) {{ return {over('||', 'b.$ > a.$')}; }}"
    yield f"  boolean equals{n}({two}) {{ return {over('&&', 'a.$ == b.$')}; }}"
    yield f"  boolean differs{n}({two}) {{ return {over('||', 'a.$ != b.$')}; }}"
    if n == 3:
        turned = zip("xyz", "yzx", "zxy", strict=True)
        made = " ".join(f"r.{i} = a.{j} * b.{k} - b.{j} * a.{k};" for i, j, k in turned)
        yield f"  float3 cross3({two}) {{ float3 r; {made} return r; }}"
    yield "}"
