"""Graphs as Graphviz files."""

from __future__ import annotations

from penstock.graph import Graph

_COLOURS = {"cpu": "lightblue", "gpu": "lightgreen", "mixed": "lightgoldenrod"}


def to_dot(graph: Graph, show_tensors: bool = False, use_colors: bool = False) -> str:
    """Return the graph in Graphviz's language.

    Args:
        graph: the graph to draw.
        show_tensors: whether to draw a node for each batch between operators.
        use_colors: whether to colour nodes by device.
    """
    lines = ["digraph graphname {"]
    for op in graph.operators:
        colour = f' style=filled fillcolor="{_COLOURS[op.device]}"' if use_colors else ""
        lines.append(f'  "{op.name}" [label="{op.display_name}\\n{op.name}" shape=box{colour}];')
        for output in op.outputs if show_tensors else ():
            lines.append(f'  "{op.name}" -> "tensor {output.name}";')
        for node in op.all_inputs():
            assert node.source is not None
            origin = f"tensor {node.name}" if show_tensors else node.source.name
            lines.append(f'  "{origin}" -> "{op.name}";')
    for index, node in enumerate(graph.outputs):
        assert node.source is not None
        origin = f"tensor {node.name}" if show_tensors else node.source.name
        lines.append(f'  "output {index}" [shape=ellipse];')
        lines.append(f'  "{origin}" -> "output {index}";')
    return "\n".join([*lines, "}"]) + "\n"
