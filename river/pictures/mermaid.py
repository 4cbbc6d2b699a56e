"""A drawing as Mermaid text, which many readers of Markdown show as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from river.pictures.drawing import Arrow, Drawing, Node, NodeKind

if TYPE_CHECKING:
    from collections.abc import Iterator

STYLES = """\
  classDef stateful stroke-width:3px
  classDef input fill:#e3f2e6,stroke:#3d8a50,color:#1c2430
  classDef output fill:#fbeadb,stroke:#b8682a,color:#1c2430
  classDef variable fill:#fbf6df,stroke:#a88a1c,color:#1c2430,stroke-dasharray:4 3
"""


def mermaid(drawing: Drawing) -> str:
    """The drawing as a flow chart from left to right."""
    framed: set[int] = set()
    lines = ["flowchart LR"]
    for i, frame in enumerate(sorted(drawing.frames, key=lambda frame: len(frame.members))):
        members = [
            member for member in frame.members if member not in framed
        ]  # a node stands in one subgraph
        framed.update(members)
        if members:
            lines += [f'  subgraph f{i}["{_text(frame.label)}"]']
            lines += [f"    {_node(drawing.nodes[member], member)}" for member in members]
            lines += ["  end"]
    lines += [f"  {_node(node, i)}" for i, node in enumerate(drawing.nodes) if i not in framed]
    lines += [f"  {_arrow(drawing, arrow)}" for arrow in drawing.arrows]
    lines += _links(drawing)
    return "\n".join(lines) + "\n" + STYLES


def _text(text: str) -> str:
    """`text` between double quotes: what Mermaid would read as more than itself is written as an entity."""
    special = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;", "|": "#124;"}
    return "".join(special.get(c, c) for c in text).replace("\n", "<br/>")


def _node(node: Node, index: int) -> str:
    label = "<br/>".join(_text(part) for part in (node.name, *node.detail))
    match node.kind:
        case NodeKind.OPERATOR:
            shape = f'["{label}"]' if not node.parallel else f'[["{label}"]]'
            return f"n{index}{shape}{':::stateful' if node.stateful else ''}"
        case NodeKind.INPUT:
            return f'n{index}(["{label}"]):::input'
        case NodeKind.OUTPUT | NodeKind.VIEW:
            return f'n{index}(["{label}"]):::output'
        case NodeKind.VARIABLE:
            return f'n{index}(("{label}")):::variable'
        case _:
            assert_never(node.kind)


def _arrow(drawing: Drawing, arrow: Arrow) -> str:
    inner = {drawing.nodes[arrow.source].kind, drawing.nodes[arrow.target].kind} == {NodeKind.OPERATOR}
    label = f'|"{_text(arrow.name)}"|' if inner else ""
    return f"n{arrow.source} -->{label} n{arrow.target}"


def _links(drawing: Drawing) -> Iterator[str]:
    for link in drawing.links:
        if drawing.nodes[link.node].kind is NodeKind.VIEW:
            yield f"  n{link.variable} -.-> n{link.node}"
        else:
            yield f"  n{link.node} {'<-.->' if link.written else '-.-'} n{link.variable}"
