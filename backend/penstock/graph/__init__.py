"""Graphs of operators: nodes, calls, expressions, conditionals and verification."""

from penstock.graph.calls import call_operator, constant_node
from penstock.graph.expressions import apply, newaxis
from penstock.graph.graph import Graph, in_order
from penstock.graph.nodes import DataNode, OpNode
from penstock.graph.scope import Scope, current_scope, no_current_pipeline, scope_stack

__all__ = [
    "DataNode",
    "Graph",
    "OpNode",
    "Scope",
    "apply",
    "call_operator",
    "constant_node",
    "current_scope",
    "in_order",
    "newaxis",
    "no_current_pipeline",
    "scope_stack",
]
