"""A drawing as a standalone SVG file: light or dark as the reader prefers, details under the pointer."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, assert_never

from river.classes import frozen
from river.pictures.drawing import Arrow, Cluster, Drawing, Link, Node, NodeKind
from river.pictures.layers import TURN, Layout, Point, Route, Size, attached, layout

if TYPE_CHECKING:
    from collections.abc import Iterator

FONT, SMALL = 13.0, 11.0
CHARACTER = 0.602  # width of a character of the usual monospaced fonts, in parts of the font's size
LONGEST = 36  # characters of a name; the rest is seen under the pointer
PAD = 14.0
FOLD = 11.0
PITCH = 17.0

SHAPES = """\
  text { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
  .name { font-size: 13px; text-anchor: middle; } .detail { font-size: 11px; text-anchor: middle; }
  .label { font-size: 11px; stroke-width: 4px; stroke-linejoin: round; paint-order: stroke; }
  .frame-name { font-size: 11px; }
  .box, .fold, .input, .output, .variable { stroke-width: 1.3; stroke-linejoin: round; }
  .variable { stroke-dasharray: 4 3; }
  .queue { fill: none; stroke-width: 1.4; marker-end: url(#head); }
  .link { fill: none; stroke-width: 1.2; stroke-dasharray: 3 3; }
  .wide { fill: none; stroke: #000; stroke-opacity: 0; stroke-width: 12; }
  .arrow:hover .queue { stroke-width: 2.4; }
  .frame { fill-opacity: 0.05; stroke-width: 1.2; stroke-dasharray: 7 4; }
"""
"""Sizes and strokes: the same in light and in dark."""


@frozen
class Colours:
    """The colours of a picture. Written out per class: many readers of SVG know no CSS variables."""

    paper: str
    ink: str
    soft: str
    line: str
    box: str
    edge: str
    fold: str
    input: str
    input_edge: str
    output: str
    output_edge: str
    variable: str
    variable_edge: str
    frame: str

    def rules(self) -> str:
        """The colours as CSS."""
        filled = {
            "paper": (self.paper, "none"),
            "box": (self.box, self.edge),
            "fold": (self.fold, self.edge),
            "input": (self.input, self.input_edge),
            "output": (self.output, self.output_edge),
            "variable": (self.variable, self.variable_edge),
            "frame": (self.frame, self.frame),
            "queue": ("none", self.line),
            "link": ("none", self.variable_edge),
            "head": (self.line, "none"),
            "name": (self.ink, "none"),
            "detail": (self.soft, "none"),
            "label": (self.soft, self.paper),
            "frame-name": (self.frame, "none"),
        }
        return "".join(
            f"  .{name} {{ fill: {fill}; stroke: {stroke}; }}\n" for name, (fill, stroke) in filled.items()
        )


LIGHT = Colours(
    paper="#ffffff",
    ink="#1c2430",
    soft="#5b6675",
    line="#7b8794",
    box="#f1f5fa",
    edge="#45566b",
    fold="#cbd7e6",
    input="#e3f2e6",
    input_edge="#3d8a50",
    output="#fbeadb",
    output_edge="#b8682a",
    variable="#fbf6df",
    variable_edge="#a88a1c",
    frame="#8a63c0",
)
DARK = Colours(
    paper="#14181e",
    ink="#e6ebf2",
    soft="#9aa7b6",
    line="#8794a3",
    box="#222a35",
    edge="#7f93ab",
    fold="#3b4858",
    input="#1c3324",
    input_edge="#5fb577",
    output="#3a2a1c",
    output_edge="#dd9558",
    variable="#332d15",
    variable_edge="#cdb04a",
    frame="#b394e0",
)
STYLE = f"{LIGHT.rules()}{SHAPES}  @media (prefers-color-scheme: dark) {{\n{DARK.rules()}  }}\n"


def svg(drawing: Drawing, title: str) -> str:
    """The drawing as SVG; `title` is what a browser calls it."""
    names = [_short(_label(drawing, arrow)) for arrow in drawing.arrows]
    sizes = [_size(drawing, i) for i in range(len(drawing.nodes))]
    placed = layout(drawing, sizes, [len(name) * SMALL * CHARACTER for name in names])
    frames = [_bounds(drawing, frame, sizes, placed) for frame in drawing.frames]
    left = min([0.0, *(x - 6.0 for x, _, _, _ in frames)])
    top = min([0.0, *(y - 6.0 for _, y, _, _ in frames)])
    width = max([placed.width, *(x + w + 6.0 for x, _, w, _ in frames)]) - left
    height = max([placed.height, *(y + h + 6.0 for _, y, _, h in frames)]) - top
    body = [
        f'<rect class="paper" x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{height:.0f}"/>',
        *(_frame(frame, box) for frame, box in zip(drawing.frames, frames, strict=True)),
        *(_link(drawing, link, sizes, placed) for link in drawing.links),
        *(_arrow(*one) for one in zip(drawing.arrows, names, placed.routes, strict=True)),
        *(_node(drawing, i, sizes[i], placed.centres[i]) for i in range(len(drawing.nodes))),
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:.0f} {top:.0f} {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img">'
    )
    marker = (
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path class="head" d="M0,0.8 L10,5 L0,9.2 z"/></marker></defs>'
    )
    return "\n".join(
        [head, f"<title>{_text(title)}</title>", f"<style>\n{STYLE}</style>", marker, *body, "</svg>", ""]
    )


def _text(text: str) -> str:
    """`text` as XML character data or an attribute's value; what XML cannot say is left out."""
    plain = "".join(
        c
        for c in text
        if c in "\t\n" or (c >= " " and c not in "\ufffe\uffff" and not "\ud800" <= c <= "\udfff")
    )
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _short(name: str) -> str:
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST // 2]}…{name[-(LONGEST // 2 - 1) :]}"


def _label(drawing: Drawing, arrow: Arrow) -> str:
    """The name beside an arrow; an input's or output's arrow ends at its name."""
    ends = (drawing.nodes[arrow.source].kind, drawing.nodes[arrow.target].kind)
    return arrow.name if ends == (NodeKind.OPERATOR, NodeKind.OPERATOR) else ""


def _size(drawing: Drawing, index: int) -> Size:
    node = drawing.nodes[index]
    name = len(_short(node.name)) * FONT * CHARACTER
    details = max((len(_short(d)) * SMALL * CHARACTER for d in node.detail), default=0.0)
    outs = 1 + max((a.out for a in drawing.arrows if a.source == index), default=0)
    ports = 1 + max((a.port for a in drawing.arrows if a.target == index), default=0)
    tall = 30.0 + 14.0 * len(node.detail)
    match node.kind:
        case NodeKind.OPERATOR:
            room = PAD * 2 + (FOLD if node.stateful else 0.0)
            corners = FOLD * 2 if node.stateful and outs > 1 else 0.0
            return Size(max(name, details) + room, max(tall, PITCH * max(outs, ports) + corners), PITCH)
        case NodeKind.INPUT | NodeKind.OUTPUT | NodeKind.VIEW:
            return Size(name + PAD * 2, 28.0)
        case NodeKind.VARIABLE:
            return Size(max(name, details) + PAD * 2.4, 26.0 + 12.0 * len(node.detail))
        case _:
            assert_never(node.kind)


def _node(drawing: Drawing, index: int, size: Size, at: Point) -> str:
    node = drawing.nodes[index]
    x, y, w, h = at.x - size.width / 2, at.y - size.height / 2, size.width, size.height
    match node.kind:
        case NodeKind.OPERATOR:
            shape = list(_operator(node, x, y, w, h))
        case NodeKind.INPUT:
            shape = [
                f'<rect class="input" x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{h / 2:.1f}"/>'
            ]
        case NodeKind.OUTPUT | NodeKind.VIEW:
            shape = [
                f'<rect class="output" x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{h / 2:.1f}"/>'
            ]
        case NodeKind.VARIABLE:
            shape = [
                f'<ellipse class="variable" cx="{at.x:.1f}" cy="{at.y:.1f}" rx="{w / 2:.1f}" ry="{h / 2:.1f}"/>'
            ]
        case _:
            assert_never(node.kind)
    lines = 1 + len(node.detail)
    base = at.y + FONT * 0.35 - (lines - 1) * 7.0
    words = [f'<text class="name" x="{at.x:.1f}" y="{base:.1f}">{_text(_short(node.name))}</text>']
    words += [
        f'<text class="detail" x="{at.x:.1f}" y="{base + 14.0 * (i + 1):.1f}">{_text(_short(detail))}</text>'
        for i, detail in enumerate(node.detail)
    ]
    return "".join(
        [f'<g class="{node.kind.value}"><title>{_text(node.title)}</title>', *shape, *words, "</g>"]
    )


def _operator(node: Node, x: float, y: float, w: float, h: float) -> Iterator[str]:
    """A box, twice when there may be several; with state its corner is folded."""
    if node.parallel:
        yield f'<rect class="box" x="{x + 4:.1f}" y="{y - 4:.1f}" width="{w:.1f}" height="{h:.1f}" rx="3"/>'
    if not node.stateful:
        yield f'<rect class="box" x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="3"/>'
        return
    right, fold = x + w, FOLD
    yield (
        f'<path class="box" d="M{x:.1f},{y:.1f} H{right - fold:.1f} L{right:.1f},{y + fold:.1f} V{y + h:.1f} H{x:.1f} z"/>'
    )
    yield f'<path class="fold" d="M{right - fold:.1f},{y:.1f} V{y + fold:.1f} H{right:.1f} z"/>'


def _arrow(arrow: Arrow, name: str, route: Route) -> str:
    path = _path(route)
    at, flush = route.label, ' text-anchor="end"' if route.flush else ""
    label = f'<text class="label" x="{at.x:.1f}" y="{at.y:.1f}"{flush}>{_text(name)}</text>' if name else ""
    return (
        f'<g class="arrow"><title>{_text(arrow.title)}</title><path class="queue" d="{path}"/>'
        f'<path class="wide" d="{path}"/>{label}</g>'
    )


def _path(route: Route) -> str:
    """Curves that leave and arrive horizontally; where the way turns back, a half circle's worth of bend."""
    first = route.points[0]
    parts = [f"M{first.x:.1f},{first.y:.1f}"]
    forward = True
    for here, there in pairwise(route.points):
        if abs(here.y - there.y) < 0.05:
            parts.append(f"H{there.x:.1f}")
            forward = there.x >= here.x if here.x != there.x else forward
        elif abs(here.x - there.x) < 0.05:
            bend = here.x + (TURN if forward else -TURN)
            parts.append(f"C{bend:.1f},{here.y:.1f} {bend:.1f},{there.y:.1f} {there.x:.1f},{there.y:.1f}")
            forward = not forward
        else:
            middle = (here.x + there.x) / 2
            parts.append(f"C{middle:.1f},{here.y:.1f} {middle:.1f},{there.y:.1f} {there.x:.1f},{there.y:.1f}")
    return " ".join(parts)


def _link(drawing: Drawing, link: Link, sizes: list[Size], placed: Layout) -> str:
    """A dashed line to a variable: from the box down to the ellipse, from the ellipse on to a view."""
    box, ellipse = placed.centres[link.node], placed.centres[link.variable]
    variable = drawing.nodes[link.variable].name
    use = "writes" if link.written else "reads"
    title = f"<title>{_text(f'{drawing.nodes[link.node].name} {use} {variable}')}</title>"
    if drawing.nodes[link.node].kind is NodeKind.VIEW:
        start = ellipse.x + sizes[link.variable].width / 2
        end = box.x - sizes[link.node].width / 2
        middle = (start + end) / 2
        path = f"M{start:.1f},{ellipse.y:.1f} C{middle:.1f},{ellipse.y:.1f} {middle:.1f},{box.y:.1f} {end:.1f},{box.y:.1f}"
        return f'<g>{title}<path class="link" d="{path}" marker-end="url(#head)"/></g>'
    top, bottom = box.y + sizes[link.node].height / 2, ellipse.y - sizes[link.variable].height / 2
    if attached(drawing).get(link.variable) == link.node:
        return f'<g>{title}<path class="link" d="M{box.x:.1f},{top:.1f} V{bottom:.1f}"/></g>'
    middle, corner = (top + bottom) / 2, box.x + sizes[link.node].width * 0.4
    path = f"M{corner:.1f},{top:.1f} C{corner:.1f},{middle:.1f} {ellipse.x:.1f},{middle:.1f} {ellipse.x:.1f},{bottom:.1f}"
    return f'<g>{title}<path class="link" d="{path}"/></g>'


Box = tuple[float, float, float, float]


def _bounds(drawing: Drawing, frame: Cluster, sizes: list[Size], placed: Layout) -> Box:
    """Left, top, width and height around the members of a frame and what hangs below them."""
    members = set(frame.members)
    inside = {*members, *(v for v, owner in attached(drawing).items() if owner in members)}
    others = drawing.frames[: drawing.frames.index(frame)]
    depth = sum(set(other.members) <= members for other in others)
    depth += sum(set(other.members) < members for other in drawing.frames[len(others) + 1 :])
    left = min(placed.centres[i].x - sizes[i].width / 2 for i in inside) - 12.0 - 6.0 * depth
    right = max(placed.centres[i].x + sizes[i].width / 2 for i in inside) + 12.0 + 6.0 * depth
    top = min(placed.centres[i].y - sizes[i].height / 2 for i in inside) - 24.0 - 18.0 * depth
    bottom = max(placed.centres[i].y + sizes[i].height / 2 for i in inside) + 10.0 + 6.0 * depth
    return left, top, right - left, bottom - top


def _frame(frame: Cluster, box: Box) -> str:
    x, y, w, h = box
    return (
        f'<g><rect class="frame" x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="8"/>'
        f'<text class="frame-name" x="{x + 8:.1f}" y="{y + 14:.1f}">{_text(frame.label)}</text></g>'
    )
