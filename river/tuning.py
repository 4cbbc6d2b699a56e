"""What becomes of a program when the platform is known: the passes that a backend asks for.

Paper: River §4.6 (translation ahead of time, optimization when the platform is known).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from river import plugins
from river.passes import Verified, improved, pipeline

if TYPE_CHECKING:
    from river.diagnostics import Diagnostic
    from river.il.graph import Graph
    from river.il.templates import Library
    from river.platform import Platform


def tuned(
    graph: Graph, library: Library, passes: str, platform: Platform
) -> tuple[Graph, tuple[Diagnostic, ...]]:
    """The verified program after `passes`, the same object where they find nothing to do; and what they refused.

    Raises: Rejected for a text that names no passes.
    """
    before = Verified(graph.program, graph, library)
    after, remarks = improved(before, pipeline(passes, plugins.pass_), platform)
    return after.graph, remarks
