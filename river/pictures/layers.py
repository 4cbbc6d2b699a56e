"""Where the nodes of a drawing stand: layers from left to right, few crossings, straight long arrows.

The steps are Sugiyama's: longest-path layers, barycentric order inside each layer, then coordinates. An arrow that passes
a layer is a waypoint there; arrows that close a loop run back below the others, and shared variables stand at the bottom.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right, insort
from typing import TYPE_CHECKING

from river.classes import define, field, frozen
from river.pictures.drawing import Drawing, NodeKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

SWEEPS = 24
GAP = 18.0  # between neighbours of a layer
MARGIN = 16.0  # around it all
TURN = 26.0  # how far an arrow swings out that turns back
HANG = 10.0  # between an operator and the variables below it


@frozen
class Size:
    """Room for a node. `pitch`: the distance of its ports."""

    width: float
    height: float
    pitch: float = 0.0


@frozen
class Point:
    """A place: x to the right, y downwards."""

    x: float
    y: float


@frozen
class Route:
    """The way of an arrow: points through which it passes; between each pair it is horizontal at both ends.

    `label` is where its name starts, or ends if it is `flush` with the arrow's head.
    """

    points: tuple[Point, ...]
    label: Point
    flush: bool = False


@frozen
class Layout:
    """The centre of each node, the layer it is in, the way of each arrow, and the size of it all."""

    centres: tuple[Point, ...]
    layer: tuple[int, ...]
    routes: tuple[Route, ...]
    width: float
    height: float


@define(eq=False)
class _Cell:
    """A node with the variables that hang below it, or the waypoint of an arrow. `y` is its middle line."""

    above: float
    below: float
    width: float
    rank: int  # 0: in the flow; 1: an arrow running back; 2: a shared variable
    frame: int = -1  # the largest that it is in
    frames: frozenset[int] = frozenset()
    y: float = 0.0
    left: list[_Joint] = field(factory=list["_Joint"])
    right: list[_Joint] = field(factory=list["_Joint"])


@frozen(eq=False)
class _Joint:
    """A neighbour in the next layer, with the offsets of both ends from the middle lines, and how stiff the arrow is."""

    cell: _Cell
    own: float
    theirs: float
    weight: float


def layers(drawing: Drawing) -> tuple[int, ...]:
    """The layer of each node.

    An operator stands one to the right of the last that feeds it, an input just before its consumer, a shared variable
    between its users.
    """
    count = len(drawing.nodes)
    feeds: dict[int, list[int]] = {i: [] for i in range(count)}
    for arrow in drawing.arrows:
        if not arrow.back:
            feeds[arrow.target].append(arrow.source)
    operators = {
        link.variable: link.node
        for link in reversed(drawing.links)
        if _is(drawing, link.node, NodeKind.OPERATOR)
    }
    for link in drawing.links:
        if _is(drawing, link.node, NodeKind.VIEW) and link.variable in operators:
            feeds[link.node].append(operators[link.variable])
    found: dict[int, int] = {}
    for start in range(count):
        pending = [start]
        while pending:
            node = pending[-1]
            waiting = [f for f in feeds[node] if f not in found]
            if waiting and node not in found:
                pending += waiting
            else:
                found.setdefault(node, max((found[f] + 1 for f in feeds[node]), default=0))
                pending.pop()
    for arrow in drawing.arrows:
        if _is(drawing, arrow.source, NodeKind.INPUT):
            found[arrow.source] = max(0, found[arrow.target] - 1)
    for i, node in enumerate(drawing.nodes):
        if node.kind is NodeKind.VARIABLE and (users := drawing.users(i)):
            found[i] = round(sum(found[user] for user in users) / len(users))
    lowest = min(found.values(), default=0)
    return tuple(found[i] - lowest for i in range(count))


def _is(drawing: Drawing, node: int, kind: NodeKind) -> bool:
    return drawing.nodes[node].kind is kind


def attached(drawing: Drawing) -> dict[int, int]:
    """The variables that hang below their only operator: variable to operator."""
    found: dict[int, int] = {}
    for i, node in enumerate(drawing.nodes):
        users = [u for u in drawing.users(i) if _is(drawing, u, NodeKind.OPERATOR)]
        if node.kind is NodeKind.VARIABLE and len(users) == 1:
            found[i] = users[0]
    return found


def layout(drawing: Drawing, sizes: Sequence[Size], labels: Sequence[float]) -> Layout:
    """Places for the nodes of `drawing`, whose boxes have `sizes` and whose arrows' names are `labels` wide."""
    return _Sheet(drawing, tuple(sizes), tuple(labels)).layout()


@define(eq=False)
class _Sheet:
    drawing: Drawing
    sizes: tuple[Size, ...]
    labels: tuple[float, ...]
    layer: tuple[int, ...] = ()
    hanging: dict[int, int] = field(factory=dict[int, int])
    cells: dict[int, _Cell] = field(factory=dict[int, _Cell])
    ways: dict[int, list[tuple[int, _Cell]]] = field(factory=dict[int, list[tuple[int, _Cell]]])
    columns: list[list[_Cell]] = field(factory=list[list[_Cell]])

    def layout(self) -> Layout:
        self.layer = layers(self.drawing)
        self.hanging = attached(self.drawing)
        self.columns = [[] for _ in range(max(self.layer, default=0) + 1)]
        self._place_nodes()
        for i in range(len(self.drawing.arrows)):
            self._place_arrow(i)
        for column in self.columns:
            column.sort(key=lambda cell: cell.rank)
        _order(self.columns)
        _straighten(self.columns)
        return self._measured()

    # -- cells

    def _place_nodes(self) -> None:
        largest_last = sorted(enumerate(self.drawing.frames), key=lambda one: len(one[1].members))
        frame = {member: f for f, frame in largest_last for member in frame.members}
        for i, node in enumerate(self.drawing.nodes):
            if i in self.hanging:
                continue
            size = self.sizes[i]
            below = [self.sizes[v] for v, owner in self.hanging.items() if owner == i]
            cell = _Cell(
                above=size.height / 2,
                below=size.height / 2 + sum(v.height + HANG for v in below),
                width=max([size.width, *(v.width for v in below)]),
                rank=2 if node.kind is NodeKind.VARIABLE else 0,
                frame=frame.get(i, -1),
                frames=frozenset(f for f, one in enumerate(self.drawing.frames) if i in one.members),
            )
            self.cells[i] = cell
            self.columns[self.layer[i]].append(cell)

    def _place_arrow(self, index: int) -> None:
        """Waypoints for an arrow, and the joints between them."""
        arrow = self.drawing.arrows[index]
        start, end = self.layer[arrow.source], self.layer[arrow.target]
        between = range(start, end - 1, -1) if arrow.back else range(start + 1, end)
        way = [(at, _Cell(5.0, 5.0, 0.0, rank=int(arrow.back))) for at in between]
        for at, cell in way:
            self.columns[at].append(cell)
        self.ways[index] = way
        if arrow.back:
            for (_, nearer), (_, further) in itertools.pairwise(way):
                _join(further, nearer, 0.0, 0.0, 8.0)
            return
        stops = [self.cells[arrow.source], *(cell for _, cell in way), self.cells[arrow.target]]
        offsets = [self._out(index), *(0.0 for _ in way), self._port(index)]
        for i, (a, b) in enumerate(itertools.pairwise(stops)):
            inner = (i > 0) + (i + 1 < len(stops) - 1)
            _join(a, b, offsets[i], offsets[i + 1], (1.0, 2.0, 8.0)[inner])

    def _out(self, index: int) -> float:
        arrow = self.drawing.arrows[index]
        return (arrow.out - (self._outs(arrow.source) - 1) / 2) * self.sizes[arrow.source].pitch

    def _port(self, index: int) -> float:
        arrow = self.drawing.arrows[index]
        return (arrow.port - (self._ports(arrow.target) - 1) / 2) * self.sizes[arrow.target].pitch

    def _outs(self, node: int) -> int:
        return 1 + max(arrow.out for arrow in self.drawing.arrows if arrow.source == node)

    def _ports(self, node: int) -> int:
        return 1 + max(arrow.port for arrow in self.drawing.arrows if arrow.target == node)

    # -- coordinates

    def _measured(self) -> Layout:
        widths = [max((cell.width for cell in column), default=0.0) for column in self.columns]
        lefts: list[float] = []
        x = MARGIN
        if any(arrow.back and self.layer[arrow.target] == 0 for arrow in self.drawing.arrows):
            x += TURN
        for i, width in enumerate(widths):
            lefts.append(x)
            x += width + (self._gap(i) if i + 1 < len(widths) else 0.0)
        rights = [left + width for left, width in zip(lefts, widths, strict=True)]
        top = min((cell.y - cell.above for column in self.columns for cell in column), default=0.0)
        for column in self.columns:
            for cell in column:
                cell.y += MARGIN - top
        bottom = max((cell.y + cell.below for column in self.columns for cell in column), default=0.0)
        last = len(widths) - 1
        turning = any(arrow.back and self.layer[arrow.source] == last for arrow in self.drawing.arrows)
        centres = self._centres(lefts, widths)
        routes = tuple(self._route(i, lefts, rights, centres) for i in range(len(self.drawing.arrows)))
        return Layout(centres, self.layer, routes, x + MARGIN + TURN * turning, bottom + MARGIN)

    def _gap(self, column: int) -> float:
        """Room to the right of a column: for the longest name that starts there, and for steep arrows."""
        leaving = [
            (i, arrow)
            for i, arrow in enumerate(self.drawing.arrows)
            if self.layer[arrow.source] == column and not arrow.back
        ]
        named = max((self.labels[i] for i, _ in leaving), default=0.0)
        rise = max(
            (abs(j.cell.y + j.theirs - c.y - j.own) for c in self.columns[column] for j in c.right),
            default=0.0,
        )
        turn = TURN if any(arrow.back for arrow in self.drawing.arrows) else 0.0
        return max(44.0, named + 30.0 + min(40.0, rise / 4), min(120.0, rise / 3)) + turn

    def _centres(self, lefts: list[float], widths: list[float]) -> tuple[Point, ...]:
        found: dict[int, Point] = {}
        hung: dict[int, float] = {}
        for i, cell in self.cells.items():
            at = self.layer[i]
            found[i] = Point(lefts[at] + widths[at] / 2, cell.y)
        for i, owner in self.hanging.items():
            middle = found[owner]
            depth = hung.get(owner, self.sizes[owner].height / 2) + HANG + self.sizes[i].height / 2
            found[i] = Point(middle.x, middle.y + depth)
            hung[owner] = depth + self.sizes[i].height / 2
        return tuple(found[i] for i in range(len(self.drawing.nodes)))

    def _route(
        self, index: int, lefts: list[float], rights: list[float], centres: tuple[Point, ...]
    ) -> Route:
        arrow = self.drawing.arrows[index]
        source, target = centres[arrow.source], centres[arrow.target]
        start = Point(source.x + self.sizes[arrow.source].width / 2, source.y + self._out(index))
        end = Point(target.x - self.sizes[arrow.target].width / 2, target.y + self._port(index))
        first, last = rights[self.layer[arrow.source]], lefts[self.layer[arrow.target]]
        points = [start, Point(first, start.y)]
        for at, cell in self.ways[index]:
            pair = [Point(lefts[at], cell.y), Point(rights[at], cell.y)]
            points += reversed(pair) if arrow.back else pair
        points += [Point(last, end.y), end]
        if arrow.back:
            at, cell = self.ways[index][0]
            return Route(tuple(points), Point(rights[at] - 2.0, cell.y - 5.0), flush=True)
        # The name stands at the end where there are fewer arrows, on the side where its own arrow does not go.
        if self._outs(arrow.source) > self._ports(arrow.target):
            falling = points[-3].y < end.y - 1.0
            return Route(tuple(points), Point(last - 11.0, end.y + (14.0 if falling else -6.0)), flush=True)
        rising = points[2].y < start.y - 1.0
        return Route(tuple(points), Point(first + 7.0, start.y + (14.0 if rising else -6.0)))


def _join(left: _Cell, right: _Cell, own: float, theirs: float, weight: float) -> None:
    left.right.append(_Joint(right, own, theirs, weight))
    right.left.append(_Joint(left, theirs, own, weight))


# -------------------------------------------------------------------------------------------------------------- order


def _order(columns: list[list[_Cell]]) -> None:
    """Sorts each column so that few arrows cross: barycentric sweeps, the best result kept."""
    best = [list(column) for column in columns]
    fewest = _crossings(columns)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        _number(columns)
        forward = sweep % 2 == 0
        for column in columns if forward else reversed(columns):
            _sort(column, (lambda cell: cell.left) if forward else (lambda cell: cell.right))
        crossings = _crossings(columns)
        if crossings < fewest:
            fewest, best = crossings, [list(column) for column in columns]
    for column, found in zip(columns, best, strict=True):
        column[:] = found


def _number(columns: Iterable[list[_Cell]]) -> None:
    """Lets `y` be the place in the column."""
    for column in columns:
        for i, cell in enumerate(column):
            cell.y = float(i)


def _sort(column: list[_Cell], side: Callable[[_Cell], list[_Joint]]) -> None:
    centre = {id(cell): _centre(cell, side(cell)) for cell in column}
    frames: dict[int, list[float]] = {}
    for cell in column:
        if cell.frame >= 0:
            frames.setdefault(cell.frame, []).append(centre[id(cell)])
    middle: Mapping[int, float] = {frame: sum(found) / len(found) for frame, found in frames.items()}
    column.sort(key=lambda c: (c.rank, middle.get(c.frame, centre[id(c)]), c.frame, centre[id(c)]))
    _number([column])


def _centre(cell: _Cell, joints: Sequence[_Joint]) -> float:
    if not joints:
        return cell.y
    return sum(joint.cell.y + _slant(joint.theirs) for joint in joints) / len(joints)


def _slant(offset: float) -> float:
    """The part of a place that an offset among ports is worth: it decides only between ends of one node."""
    return offset / 1_000.0


def _crossings(columns: Iterable[list[_Cell]]) -> int:
    """How many pairs of arrows between neighbouring columns cross."""
    count = 0
    columns = list(columns)
    _number(columns)
    for column in columns:
        ends = sorted((c.y + _slant(j.own), j.cell.y + _slant(j.theirs)) for c in column for j in c.right)
        passed: list[float] = []
        for _, right in ends:
            count += len(passed) - bisect_right(passed, right)
            insort(passed, right)
    return count


# -------------------------------------------------------------------------------------------------------- coordinates


def _straighten(columns: list[list[_Cell]]) -> None:
    """Gives each cell its `y`: as near to its neighbours' as the order and the sizes allow."""
    for column in columns:
        y = 0.0
        for cell in column:  # anything in order will do to begin with
            cell.y = y + cell.above
            y = cell.y + cell.below
    for sweep in range(SWEEPS):
        match sweep % 3 if sweep < SWEEPS - 4 else 2:
            case 0:
                for column in columns:
                    _settle(column, lambda cell: cell.left)
            case 1:
                for column in reversed(columns):
                    _settle(column, lambda cell: cell.right)
            case _:
                for column in columns:
                    _settle(column, lambda cell: [*cell.left, *cell.right])


def _gap(upper: _Cell, lower: _Cell) -> float:
    """Arrows may run close to one another; between frames there is room for their borders and a name."""
    if upper.frames != lower.frames:
        return GAP + 34.0
    return GAP * (0.6 if upper.width == lower.width == 0.0 else 1.0)


def _settle(column: list[_Cell], side: Callable[[_Cell], list[_Joint]]) -> None:
    """Least squares under the distances: pool neighbours whose wishes collide (isotonic regression)."""
    offset = 0.0
    blocks: list[list[float]] = []  # [sum of weight * wish, weight, cells]
    offsets: list[float] = []
    for i, cell in enumerate(column):
        if i:
            before = column[i - 1]
            offset += before.below + _gap(before, cell) + cell.above
        offsets.append(offset)
        joints = side(cell)
        weight = sum(joint.weight for joint in joints) or 0.01
        wish = (
            sum(joint.weight * (joint.cell.y + joint.theirs - joint.own) for joint in joints) / weight
            if joints
            else cell.y
        )
        blocks.append([weight * (wish - offset), weight, 1.0])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            upper, lower = blocks[-2], blocks.pop()
            upper[0], upper[1], upper[2] = upper[0] + lower[0], upper[1] + lower[1], upper[2] + lower[2]
    i = 0
    for total, weight, cells in blocks:
        for _ in range(int(cells)):
            column[i].y = total / weight + offsets[i]
            i += 1
