"""Replaces chains of operators by fused operators, if nothing else uses the data between the operators of a chain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from penstock.graph import DataNode, Graph, OpNode
from penstock.passes.rewriting import Change, Rewritten, with_replacements
from penstock.schema import Operator, Schema, find_schema, operator_class
from penstock.schema.fused import FusedOperator, further_input, fused_argument, split_argument
from penstock.schema.image_chain import ChainOperator, PixelSource
from penstock.schema.registry import fusing_schemas


def fuse(graph: Graph) -> Rewritten:
    """Return the graph with chains fused."""
    listed = fuse_listed(graph, "fuse")
    composed = fuse_composed(listed.graph, "fuse")
    return Rewritten(composed.graph, listed.changes + composed.changes)


def fuse_listed(graph: Graph, by: str) -> Rewritten:
    """Return the graph with chains replaced that fused operators of the pass ``by`` list in their schemas; longer chains first."""
    chains = {schema.name: schema.fuses for schema in fusing_schemas(by) if schema.fuses}
    rules = sorted(chains, key=lambda name: len(chains[name]), reverse=True)
    changes: list[Change] = []
    while True:
        uses, fused_operators = _uses(graph), set[OpNode]()
        replacements = {}
        # From the outputs backwards, because a chain is searched for from its last operator.
        for op in reversed(graph.operators):
            able = (rule for rule in rules if op.device in find_schema(rule).devices)
            found = ((rule, _listed_chain(chains[rule], op, uses)) for rule in able)
            rule, chain = next(((rule, chain) for rule, chain in found if chain), ("", []))
            fused = _fused(find_schema(rule), chain) if chain and fused_operators.isdisjoint(chain) else None
            if fused is not None:
                fused_operators.update(chain)
                replacements[op.name] = fused.outputs[0]
                changes.append(_change(chain, fused))
        if not replacements:
            return Rewritten(graph, tuple(changes))
        # A fused operator may be part of a longer chain.
        graph = with_replacements(graph, replacements)


def fuse_composed(graph: Graph, by: str, only_windows: bool = False) -> Rewritten:
    """Return the graph in which chains of operators are fused by the pass ``by``.

    Each chain is as long as possible, as far as the pass's fused operator, which runs the chain, accepts its operators.

    Args:
        graph: the graph to rewrite.
        by: the name of the pass.
        only_windows: whether to fuse only decoders with the crops and slices that follow them.
    """
    rule = next(schema for schema in fusing_schemas(by) if schema.fuses == ())
    uses = _uses(graph)
    kind = cast(type[FusedOperator], operator_class(rule.name))
    changes: list[Change] = []
    replacements = {}
    seen: set[OpNode] = set()
    for op in reversed(graph.operators):
        if op in seen:
            continue
        chain = _composed_chain(rule, op, uses, only_windows)
        # If the fused operator refuses a chain, it refuses each prefix of the chain, too, so prefixes need not be tried.
        seen.update(link.node for link in chain)
        nodes = [link.node for link in chain]
        fused = _fused(rule, nodes) if len(chain) > 1 and _is_worth_it(kind, chain, only_windows) else None
        if fused is not None:
            replacements[fused.name] = fused.outputs[0]
            changes.append(_change(nodes, fused))
    return Rewritten(with_replacements(graph, replacements) if replacements else graph, tuple(changes))


def _uses(graph: Graph) -> Counter[str]:
    """Return the number of uses of each node, by name."""
    return Counter(node.name for node in _all_uses(graph))


def _all_uses(graph: Graph) -> Iterable[DataNode]:
    yield from graph.outputs
    yield from graph.sinks
    for op in graph.operators:
        yield from op.all_inputs()


def _listed_chain(names: Sequence[Sequence[str]], last: OpNode, uses: Counter[str]) -> list[OpNode]:
    """Return the operators of the chain ``names`` that ends with ``last``; an empty list if there is none that can be fused."""
    chain: list[OpNode] = []
    op: OpNode | None = last
    for allowed in reversed(names):
        if op is None or op.schema.name not in allowed or not _can_be_left_out(op):
            return []
        if op.device != last.device and not (op.device == "mixed" and last.device == "gpu" and _knows_arguments(chain)):
            return []
        if chain and not _feeds_only(op, chain[0], uses):
            return []
        chain.insert(0, op)
        op = op.inputs[0].source if len(op.inputs) == 1 else None
    return chain


def _knows_arguments(chain: Sequence[OpNode]) -> bool:
    """Return whether the argument inputs of all operators are computed on the CPU, from data on the CPU."""
    left = [node for op in chain for node in op.argument_inputs.values()]
    while left:
        node = left.pop()
        if node.source is not None:
            if node.source.device != "cpu":
                return False
            left += node.source.all_inputs()
    return True


def _can_be_left_out(op: OpNode) -> bool:
    return not op.preserved and len(op.outputs) == 1


def _feeds_only(op: OpNode, into: OpNode, uses: Counter[str]) -> bool:
    """Return whether the output of ``op`` is the first input of ``into``, and has no other use."""
    between = into.inputs[0]
    return between.source is op and uses[between.name] == 1 and between.device == op.outputs[0].device


@dataclass(frozen=True)
class _Link:
    """An operator in a chain, which may itself be a fused chain."""

    node: OpNode
    operators: tuple[Operator, ...]


def _composed_chain(rule: Schema, last: OpNode, uses: Counter[str], only_windows: bool) -> list[_Link]:
    """Return the longest chain that ends with ``last`` and that the fused operator ``rule`` accepts."""
    kind = cast(type[FusedOperator], operator_class(rule.name))
    chain: list[_Link] = []
    op: OpNode | None = last
    while op is not None and op.device in rule.devices and _can_be_left_out(op):
        if chain and not _feeds_only(op, chain[0].node, uses):
            break
        operators = _operators(op)
        is_first = bool(operators) and kind.joins(operators[0], True) and not kind.joins(operators[0], False)
        if not operators or not all(
            _fits(kind, operator, is_first and not position, only_windows)
            for position, operator in enumerate(operators)
        ):
            break
        if is_first and not only_windows and _placement_follows(operators, chain):
            break
        chain.insert(0, _Link(op, operators))
        op = None if is_first else op.inputs[0].source if op.inputs else None
    return chain


def _is_worth_it(kind: type[FusedOperator], chain: Sequence[_Link], only_windows: bool) -> bool:
    """Return whether the fused operator takes a chain, which it does if one step is faster."""
    joined = [operator for link in chain for operator in link.operators]
    return kind.takes(joined) and (not only_windows or isinstance(joined[0], PixelSource))


def _fits(kind: type[FusedOperator], operator: Operator, is_first: bool, only_windows: bool) -> bool:
    return kind.joins(operator, is_first) and (not only_windows or is_first or _is_placement(operator))


def _placement_follows(source: Sequence[Operator], chain: Sequence[_Link]) -> bool:
    """Return whether a crop or slice follows a decoder.

    If so, the previous pass has fused the two, and the chain ends there, so that all windows are decoded first: to interleave
    decoding with the rest of the chain took 10 % longer.
    """
    following = [*source[1:], *(operator for link in chain for operator in link.operators)]
    return bool(following) and _is_placement(following[0])


def _is_placement(operator: Operator) -> bool:
    return isinstance(operator, ChainOperator) and operator.is_placement


def _change(chain: Sequence[OpNode], fused: OpNode) -> Change:
    kind = cast(type[FusedOperator], operator_class(fused.schema.name))
    return Change("fused", tuple(chain), fused, kind.exceptions(fused.payload[1]))


def _fused(rule: Schema, chain: Sequence[OpNode]) -> OpNode | None:
    """Return the operator that replaces ``chain``; None if it refuses the chain, or an operator of the chain rejects its arguments."""
    kind = cast(type[FusedOperator], operator_class(rule.name))
    nodes: list[OpNode] = []
    operators: list[Operator] = []
    arguments: dict[str, DataNode] = {}
    for number, op in enumerate(chain):
        inner = _operators(op, kind.nests)
        if not inner:
            return None
        arguments |= _arguments(op, len(nodes), number > 0, kind.nests)
        nodes += (op,) if kind.nests else op.steps or (op,)
        operators += inner
    if not kind.takes(operators):
        return None
    last = chain[-1]
    return OpNode(
        rule,
        last.name,
        last.device,
        list(chain[0].inputs),
        arguments,
        {},
        last.display_name,
        last.named,
        sites=last.sites,
        payload=(tuple(nodes), tuple(operators)),
        steps=tuple(step for op in chain for step in op.steps or (op,)),
    )


def _arguments(op: OpNode, position: int, with_inputs: bool, nests: bool) -> dict[str, DataNode]:
    """Return the argument inputs of ``op`` under the names that a fused operator gives them.

    ``position`` is the operator's position in the chain. If ``op`` is itself fused, and the fused operator does not nest, these
    are the arguments of the operators in ``op``.
    """
    if op.steps and not nests:
        return {
            fused_argument(position + offset, name): node
            for (offset, name), node in ((split_argument(full), node) for full, node in op.argument_inputs.items())
        }
    argument_nodes = dict(op.argument_inputs)
    if with_inputs:
        argument_nodes |= {further_input(number): node for number, node in enumerate(op.inputs[1:])}
    return {fused_argument(position, name): node for name, node in argument_nodes.items()}


def _operators(op: OpNode, nests: bool = False) -> tuple[Operator, ...]:
    """Return the operators that a node represents: several for a fused node, unless ``nests``; none if one rejects its arguments.

    Such an operator rejects its arguments again when the plan is made; the error is reported then, with its source line.
    """
    if op.steps and not nests:
        return tuple(op.payload[1])
    try:
        operator = operator_class(op.schema.name)(op.arguments, op.device, op.argument_inputs, -1, op.schema)
        operator.bind(op.payload)
    except Exception:
        return ()
    return (operator,)
