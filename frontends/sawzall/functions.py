"""Functions of the operator language that lowered programs call: `functions.river`, and what few programs need beside it."""

from __future__ import annotations

from typing import Final

from river.il.functions import FunctionFiles

PREFIX: Final = "sawzall_"
"""How their names begin; no function of a program is called so."""

FUNCTIONS: Final = FunctionFiles(
    "frontends.sawzall", ("functions.river", "messages.river", "compression.river")
)
