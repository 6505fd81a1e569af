"""Random graphs grow, are the same for the same seed and number, and differ from DALI's results only in known ways."""

from __future__ import annotations

import numpy as np
import pytest
from random_graphs import Verdict, _judge, _reason, compare, random_graph
from side_by_side import batch_difference


def test_graphs_are_known_by_their_numbers() -> None:
    first, second = random_graph(7, 3), random_graph(7, 3)
    assert [str(node) for node in first.nodes] == [str(node) for node in second.nodes]
    assert 3 <= len(first.nodes) <= 12


@pytest.mark.parametrize("number", [0, 1, 2])
def test_nodes_equal_those_of_dali(number: int) -> None:
    graph = random_graph(2, number)
    verdict = compare(graph)
    assert [text for text in verdict.different if not _reason(text)] == []
    assert verdict.equal + len(verdict.rounded) + len(verdict.different) >= len(graph.nodes)


def test_halves_that_differ_in_one_bit_are_not_equal() -> None:
    halves = np.float16([1.0, -6.293])
    neighbours = np.nextafter(halves, np.float16(0))
    assert batch_difference(([halves], "", 0), ([halves.copy()], "", 0), 0.0, 0) == ""
    assert "of the range" in batch_difference(([halves], "", 0), ([neighbours], "", 0), 0.0, 0)
    assert batch_difference(([halves], "", 0), ([neighbours], "", 0), 1e-5, 1) == ""


def test_a_wrong_value_is_a_difference() -> None:
    graph, verdict = random_graph(2, 0), Verdict()
    samples, *rest = graph.values[0]
    wrong = ([np.logical_not(sample) if sample.dtype == bool else sample + 3 for sample in samples], *rest)
    _judge(graph.nodes[0], graph.values, graph.values[:1], [wrong], verdict)
    assert len(verdict.different) == 1
