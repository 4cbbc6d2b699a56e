"""From a text and data to results: compile, verify, plan, run - and check, which compares backends with one another.

The functions here are what the command line and the Python API share; they print nothing.
Paper: River section 4.6 (translation ahead of time, planning when the platform is known).
"""

from river.driver.borders import errors, placed, sent, stamps, texts, wholes
from river.driver.comparison import Comparison, compare, observe
from river.driver.compilation import (
    Compiled,
    compile_checked,
    compile_once,
    compile_source,
    read_source,
    stated,
)
from river.driver.execution import execute, trap_diagnostic, traps_told
from river.driver.inputs import Reading, check_names, given_type, open_input
from river.driver.job import Inputs, Job, Results, without_addresses
from river.driver.libraries import library
from river.driver.outputs import CountedSink, Writer, check_folders, dividing, open_output, row_types
from river.driver.profiling import profiled
from river.driver.schedules import Parting, Schedules, schedules

__all__ = [
    "Comparison",
    "Compiled",
    "CountedSink",
    "Inputs",
    "Job",
    "Parting",
    "Reading",
    "Results",
    "Schedules",
    "Writer",
    "check_folders",
    "check_names",
    "compare",
    "compile_checked",
    "compile_once",
    "compile_source",
    "dividing",
    "errors",
    "execute",
    "given_type",
    "library",
    "observe",
    "open_input",
    "open_output",
    "placed",
    "profiled",
    "read_source",
    "row_types",
    "schedules",
    "sent",
    "stamps",
    "stated",
    "texts",
    "trap_diagnostic",
    "traps_told",
    "wholes",
    "without_addresses",
]
