"""What a trap of native code means: the record of code, site and operands as the trap that the evaluator raises there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.deadline import span_of
from river.lang import typed
from river.lang import types as t
from river.lang.evaluate import Trap, rate_violation
from river.lang.trees import nodes

if TYPE_CHECKING:
    from backends.native.operator import NativeTrap

RATE: Final = "rate-violation"


def explained(op: typed.Operator, found: NativeTrap) -> Trap:
    """The trap of an operator's firing. Operands are shown where they are whole numbers of at most 64 bits."""
    if found.code == RATE:
        return rate_violation(op, found.site, found.operands[0])
    if found.code == "deadline":
        return Trap(found.code, span=span_of(op, found.site))
    for node in nodes(op):
        if getattr(node, "site", None) == found.site:
            match node:
                case typed.At():
                    return Trap(
                        found.code, _numbers((node.index,), found.operands), "[]", found.site, node.span
                    )
                case typed.Apply():
                    return Trap(
                        found.code, _numbers(node.args, found.operands), node.operation, found.site, node.span
                    )
                case typed.Call():
                    return Trap(found.code, found.operands, node.name, found.site, node.span)
                case typed.With():
                    return Trap(
                        found.code, _numbers((node.key,), found.operands), "with", found.site, node.span
                    )
                case typed.Trap():
                    return Trap(found.code, (), "trap", found.site, node.span, node.text)
                case _:
                    pass
    span = op.sites[found.site].span if 0 <= found.site < len(op.sites) else op.span
    return Trap(found.code, found.operands, "", found.site, span)


def _numbers(args: tuple[typed.Expr | typed.Lambda, ...], operands: tuple[int, ...]) -> tuple[int, ...]:
    """The operands, of which the record has 64 bits with sign, also where their type has none."""
    unsigned = tuple(arg.type == t.U64 for arg in args)
    return tuple(x % (1 << 64) if any(unsigned[i : i + 1]) else x for i, x in enumerate(operands))


__all__ = ["RATE", "explained"]
