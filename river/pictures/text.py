"""A drawing as lines of text: one layer after the other, for terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.pictures.drawing import Drawing, Node, NodeKind
from river.pictures.layers import layers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

COLOURS = {"name": "1", "queue": "36", "variable": "33", "input": "32", "output": "35", "quiet": "2"}
WIDEST = 28  # characters of the column of names
INDENT = 4


def text(drawing: Drawing, *, width: int = 100, coloured: bool = False) -> str:
    """The drawing layer by layer: what each operator is, what it reads and sends, the variables it keeps.

    Lists that do not fit into `width` continue on the next line.
    """
    paint = _coloured if coloured else _plain
    depth = layers(drawing)
    column = min(WIDEST, max((len(node.name) for node in drawing.nodes), default=0))
    lines: list[str] = []
    for kind, heading in ((NodeKind.INPUT, "inputs"), (NodeKind.OPERATOR, ""), (NodeKind.OUTPUT, "outputs")):
        if kind is not NodeKind.OPERATOR:
            found = [node for node in drawing.nodes if node.kind in (kind, _also(kind))]
            lines += (
                [paint("quiet", heading), *(_terminal(node, column, paint) for node in found), ""]
                if found
                else []
            )
            continue
        members = [i for i, node in enumerate(drawing.nodes) if node.kind is NodeKind.OPERATOR]
        for n, layer in enumerate(sorted({depth[i] for i in members}), 1):
            lines.append(paint("quiet", f"layer {n}"))
            for i in members:
                if depth[i] == layer:
                    lines += _operator(drawing, i, column, width, paint)
            lines.append("")
    for frame in drawing.frames:
        names = [drawing.nodes[member].name for member in frame.members]
        lines += _listed(
            paint("quiet", f"{frame.label}:"), len(frame.label) + 1, names, width, lambda name: name
        )
    return "\n".join(lines).rstrip("\n") + "\n"


def _also(kind: NodeKind) -> NodeKind:
    return NodeKind.VIEW if kind is NodeKind.OUTPUT else kind


def _plain(_colour: str, words: str) -> str:
    return words


def _coloured(colour: str, words: str) -> str:
    return f"\x1b[{COLOURS[colour]}m{words}\x1b[0m" if words else words


def _terminal(node: Node, column: int, paint: Callable[[str, str], str]) -> str:
    colour = "input" if node.kind is NodeKind.INPUT else "output"
    kind = node.title.removeprefix(f"{node.name}: ")
    return f"  {paint(colour, node.name)}{' ' * max(2, column + 2 - len(node.name))}{paint('quiet', kind)}"


def _operator(
    drawing: Drawing, index: int, column: int, width: int, paint: Callable[[str, str], str]
) -> Iterator[str]:
    node = drawing.nodes[index]
    ins = sorted((a for a in drawing.arrows if a.target == index), key=lambda a: a.port)
    outs = sorted((a for a in drawing.arrows if a.source == index), key=lambda a: a.out)
    written = [link for link in drawing.links if link.node == index]
    notes = [*node.detail, *(["parallel"] if node.parallel else [])]
    start = f"  {paint('name', node.name)}{' ' * max(2, column + 2 - len(node.name))}"
    indent = " " * (column + INDENT)
    read = [f"{a.name} (back)" if a.back else a.name for a in ins]
    sent = [a.name for a in outs]
    flow = f"{', '.join(read) or '-'} -> {', '.join(sent) or '-'}"
    if len(indent) + len(flow) <= width:
        yield f"{start}{paint('queue', flow)}"
    else:
        first, *rest = _listed("", 0, read or ["-"], width - len(indent), lambda name: paint("queue", name))
        yield f"{start}{first.lstrip()}"
        yield from (f"{indent}{line}" for line in rest)
        yield from (
            f"{indent}{line}"
            for line in _listed("->", 2, sent or ["-"], width - len(indent), lambda q: paint("queue", q))
        )
    if written:
        names = [drawing.nodes[link.variable].name + ("" if link.written else " (read)") for link in written]
        for line in _listed("keeps", 5, names, width - len(indent), lambda name: paint("variable", name)):
            yield f"{indent}{line}"
    if notes:
        yield f"{indent}{paint('quiet', ', '.join(notes))}"


def _listed(
    head: str, taken: int, words: Sequence[str], width: int, paint: Callable[[str], str]
) -> Iterator[str]:
    """`head` and then the words with commas, in lines of at most `width`; the others are indented."""
    line, used, empty = head, taken, True
    for i, word in enumerate(words):
        shown = word + ("," if i + 1 < len(words) else "")
        if not empty and used + 1 + len(shown) > width:
            yield line
            line, used, empty = "  ", 2, True
        gap = " " if line.strip() else ""
        line += gap + paint(word) + shown[len(word) :]
        used += len(gap) + len(shown)
        empty = False
    yield line
