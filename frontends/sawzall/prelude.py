"""Functions of szl that are written in Sawzall: declarations in front of the programs that name them."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from river.lang import memory

if TYPE_CHECKING:
    from frontends.sawzall import syntax as z

ADDITIONAL: Final = """
additionalinput_values: map [string] of bytes = {:};
additionalinput_locked: bool = false;
setadditionalinput: function(label: string, value: bytes) {
  assert(!additionalinput_locked, "setadditionalinput: the record has called lockadditionalinput");
  additionalinput_values[label] = value;
};
getadditionalinput: function(label: string): bytes { return lookup(additionalinput_values, label, B""); };
lockadditionalinput: function() { additionalinput_locked = true; };
"""
"""What a record keeps under names of its own."""

RESOURCES: Final = """
type resourcestats = {{
  initializedavailablemem: int, initializedallocatedmem: int, initializedusertime: time, initializedsystemtime: time,
  availablemem: int, allocatedmem: int, usertime: time, systemtime: time
}};
getresourcestats: function(): resourcestats {{ return {{ {most}, {used}, {user}T, {system}T, {most}, {used}, 0T, 0T }}; }};
"""
"""What the program has used when it was compiled: memory in bytes, and time. A record's times are below what is measured."""


def before(text: str, items: tuple[z.Stmt, ...]) -> str:
    """What stands in front of a program, of what it names and does not declare itself."""
    from frontends.sawzall import syntax as z

    own = {each.name for each in items if isinstance(each, z.FunctionDecl | z.TypeDecl | z.Declare)}
    found = ""
    if re.search(r"\b(?:set|get|lock)additionalinput\b", text) and own.isdisjoint(
        {"setadditionalinput", "getadditionalinput", "lockadditionalinput"}
    ):
        found += ADDITIONAL
    if "resourcestats" in text and own.isdisjoint({"getresourcestats", "resourcestats"}):
        times = os.times()
        found += RESOURCES.format(
            most=memory.most(),
            used=memory.used(),
            user=int(times.user * 1_000_000),
            system=int(times.system * 1_000_000),
        )
    return found
