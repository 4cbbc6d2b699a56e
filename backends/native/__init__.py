"""Native code for checked operators (architecture.md section 6): a library for the backends, not one of them.

`compile_native(operator)` gives a `NativeOperator`, or `Refused` with reasons: then the evaluator runs it.
"""

from __future__ import annotations

from backends.native.batch import Batch
from backends.native.llvm import available
from backends.native.operator import (
    Fired,
    NativeOperator,
    NativeTrap,
    NativeVariable,
    Refused,
    compile_native,
)

__all__ = [
    "Batch",
    "Fired",
    "NativeOperator",
    "NativeTrap",
    "NativeVariable",
    "Refused",
    "available",
    "compile_native",
]
