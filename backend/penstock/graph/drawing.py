"""Graphs as self-contained SVG pictures, in which layers of operators run from top to bottom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from penstock.graph.listing import arguments, title

if TYPE_CHECKING:
    from penstock.graph.nodes import DataNode, OpNode

_FILLS = {"cpu": "#dcebfa", "gpu": "#dcf3dc", "mixed": "#faf0cd", "output": "#f1f1f1"}
_FONT_SIZE, _CHARACTER_WIDTH = 12, 7.3
_BOX_HEIGHT, _COLUMN_GAP, _LAYER_GAP = 40.0, 26.0, 34.0
_MARGIN = 8.0
_MAX_LINE_CHARACTERS = 60
_NUM_ORDERING_SWEEPS = 4


@dataclass(eq=False)
class _Box:
    """A box of the picture; without text, it is a point at which an edge crosses a layer.

    Attributes:
        lines: lines of text: the operator, and its name.
        layer: the number of the box's layer, from the top.
        x: the horizontal position of the box's centre.
        sources: the boxes from which edges lead to this one, and the labels of these edges.
    """

    lines: tuple[str, ...] = ()
    fill: str = ""
    hint: str = ""
    link: str = ""
    changed: bool = False
    layer: int = 0
    x: float = 0.0
    sources: list[tuple[_Box, str]] = field(default_factory=list)

    @property
    def width(self) -> float:
        return max((len(line) for line in self.lines), default=0) * _CHARACTER_WIDTH + 18 if self.lines else 2.0

    @property
    def y(self) -> float:
        return _MARGIN + self.layer * (_BOX_HEIGHT + _LAYER_GAP)


def to_svg(
    operators: Sequence[OpNode],
    outputs: Sequence[DataNode],
    changed: Collection[str] = (),
    links: Mapping[str, str] | None = None,
) -> str:
    """Return the graph as an SVG element.

    Args:
        operators: the operators in topological order.
        outputs: the pipeline's outputs.
        changed: names of the operators to highlight.
        links: the link targets of operators, by operator name.
    """
    boxes = _boxes(operators, outputs, changed, links or {})
    for box in boxes:
        box.layer = max((source.layer + 1 for source, _ in box.sources), default=0)
    _lower(boxes)
    layers = _layers(boxes)
    _order(layers)
    width = _set_positions(layers)
    height = max((box.y for layer in layers for box in layer), default=0.0) + _BOX_HEIGHT + _MARGIN
    crossing = [box for layer in layers for box in layer]
    edges = "".join(_edge(source, box, name) for box in crossing for source, name in box.sources)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="penstock-graph" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="{_FONT_SIZE}">'
        f'<rect width="100%" height="100%" fill="white"/>{edges}{"".join(map(_drawn, boxes))}</svg>'
    )


# -- boxes -------------------------------------------------------------------------------------------------------------


def _boxes(
    operators: Sequence[OpNode], outputs: Sequence[DataNode], changed: Collection[str], links: Mapping[str, str]
) -> list[_Box]:
    of_operator: dict[OpNode, _Box] = {}
    for op in operators:
        name, kind = op.name, title(op)
        lines = (_shortened(kind),) if name.startswith("__") else (_shortened(kind), _shortened(name))
        argument_lines = [f"{key}={value}" for key, value in arguments(op)]
        hint = "\n".join([f"{kind} '{name}' on {op.device}", *argument_lines])
        box = _Box(lines, _FILLS[op.device], hint, links.get(name, ""), name in changed)
        named = [(node, "") for node in op.inputs] + [(node, key) for key, node in sorted(op.argument_inputs.items())]
        # The arguments of a fused operator are named by the position of the step, and the argument's name in that step.
        box.sources = [(of_operator[node.source], key.rpartition(":")[2]) for node, key in named if node.source]
        of_operator[op] = box
    ends = [
        _Box(("output", _shortened(node.name)), _FILLS["output"], sources=[(of_operator[node.source], "")])
        for node in outputs
        if node.source
    ]
    return [*of_operator.values(), *ends]


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_LINE_CHARACTERS else text[: _MAX_LINE_CHARACTERS - 1] + "…"


# -- positions ---------------------------------------------------------------------------------------------------------


def _lower(boxes: Sequence[_Box]) -> None:
    """Move boxes without sources down, to the layer above their first use."""
    highest_use: dict[_Box, int] = {}
    for box in reversed(boxes):
        if box in highest_use:
            box.layer = max(box.layer, highest_use[box] - 1) if not box.sources else box.layer
        for source, _ in box.sources:
            highest_use[source] = min(highest_use.get(source, box.layer), box.layer)


def _layers(boxes: Sequence[_Box]) -> list[list[_Box]]:
    """Return the boxes by layer; an edge across several layers gets an empty box in each of these."""
    layers: dict[int, list[_Box]] = defaultdict(list)
    for box in boxes:
        layers[box.layer].append(box)
    for box in boxes:
        through = []
        for source, name in box.sources:
            for number in range(source.layer + 1, box.layer):
                source = _Box(layer=number, sources=[(source, "")])
                layers[number].append(source)
            through.append((source, name))
        box.sources = through
    return [layers[number] for number in sorted(layers)]


def _order(layers: Sequence[list[_Box]]) -> None:
    """Order the boxes of each layer to reduce crossings of edges, in sweeps that follow alternately their sources and their
    users.
    """
    users: dict[_Box, list[_Box]] = defaultdict(list)
    for layer in layers:
        for box in layer:
            for source, _ in box.sources:
                users[source].append(box)
    for sweep in range(_NUM_ORDERING_SWEEPS):
        downwards = sweep % 2 == 0
        for layer in layers if downwards else reversed(layers):
            rank = {box: number for row in layers for number, box in enumerate(row)}
            near = {box: [s for s, _ in box.sources] if downwards else users[box] for box in layer}
            middle = {
                box: sum(rank[other] for other in near[box]) / len(near[box]) if near[box] else rank[box]
                for box in layer
            }
            layer.sort(key=middle.__getitem__)


def _set_positions(layers: Sequence[Sequence[_Box]]) -> float:
    """Set the x of each box to the middle of its sources if its neighbours leave room for that; return the picture's width."""
    for layer in layers:
        left = _MARGIN
        excess = []
        for box in layer:
            middles = [source.x for source, _ in box.sources]
            wanted = sum(middles) / len(middles) if middles else 0.0
            box.x = max(left + box.width / 2, wanted)
            left = box.x + box.width / 2 + _COLUMN_GAP
            if middles:
                excess.append(box.x - wanted)
        # If boxes were pushed to the right, pull their row back to the left, as far as there is room.
        pull = sum(excess) / len(excess) if excess else 0.0
        room = layer[0].x - layer[0].width / 2 - _MARGIN
        for box in layer:
            box.x -= max(0.0, min(pull, room))
    return max((box.x + box.width / 2 for layer in layers for box in layer), default=0.0) + _MARGIN


# -- SVG ---------------------------------------------------------------------------------------------------------------


def _drawn(box: _Box) -> str:
    left = box.x - box.width / 2
    stroke = 'stroke="#d9480f" stroke-width="2.5"' if box.changed else 'stroke="#888"'
    radius = 18 if box.fill == _FILLS["output"] else 4
    top = box.y + _BOX_HEIGHT / 2 + (4 if len(box.lines) == 1 else -3)
    rows = "".join(
        f'<text x="{box.x:.1f}" y="{top + 15 * number:.1f}" text-anchor="middle" '
        f'fill="{"#666" if number else "#111"}">{escape(line)}</text>'
        for number, line in enumerate(box.lines)
    )
    shape = (
        f'<rect x="{left:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{_BOX_HEIGHT:.0f}" rx="{radius}" '
        f'fill="{box.fill}" {stroke}/>'
    )
    drawn = f"<g><title>{escape(box.hint)}</title>{shape}{rows}</g>" if box.hint else f"<g>{shape}{rows}</g>"
    return f'<a href="{escape(box.link)}">{drawn}</a>' if box.link else drawn


def _edge(source: _Box, box: _Box, name: str) -> str:
    top = source.y + (_BOX_HEIGHT if source.lines else _BOX_HEIGHT / 2)
    bottom = box.y + (0 if box.lines else _BOX_HEIGHT / 2)
    bend = (bottom - top) / 2
    dashes = ' stroke-dasharray="4 3"' if name else ""
    path = (
        f'<path d="M{source.x:.1f} {top:.1f} C{source.x:.1f} {top + bend:.1f} {box.x:.1f} {bottom - bend:.1f} '
        f'{box.x:.1f} {bottom:.1f}" fill="none" stroke="#888"{dashes}/>'
    )
    point = f"{box.x - 4:.1f},{bottom - 7:.1f} {box.x + 4:.1f},{bottom - 7:.1f} {box.x:.1f},{bottom:.1f}"
    head = f'<polygon points="{point}" fill="#888"/>' if box.lines else ""
    middle = (source.x + box.x) / 2 + 4
    label = (
        f'<text x="{middle:.1f}" y="{(top + bottom) / 2 + 4:.1f}" fill="#999" font-size="10">{escape(name)}</text>'
        if name
        else ""
    )
    return path + head + label
