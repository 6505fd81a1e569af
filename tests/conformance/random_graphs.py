"""Runs random graphs of 3 to 12 operators in real DALI and in Penstock: ``make random-graphs ARGS="--graphs 5000"``.

Every node's outputs are outputs of the graph, and are compared. A node whose inputs already differ is compared again alone, with DALI's
inputs, so that only differences of the node itself count. Penstock also runs each graph with only the last nodes as outputs, so that
operators are fused, which must not change a bit. The seed and a number identify a graph: ``--graph 4711`` shows and runs only graph 4711.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import operator
import os
import random
import re
import signal
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from nvidia.dali.backend import GetSchema
from random_calls import (
    OURS_ALONE,
    Member,
    compared_operators,
    in_module,
    random_value,
    run_alone,
    without_module,
)
from rich.console import Console
from rich.progress import track
from side_by_side import batch_difference, dali, run

import penstock
import penstock.math
from penstock.schema import Schema
from penstock.schema.examples import Call, examples, settable_arguments

_BATCH_SIZE = 3
# Nothing is prefetched, as each pipeline runs only one batch.
_OPTIONS = {"num_threads": 1, "prefetch_queue_depth": 1}
_GRAPHS_OF_PROCESS = 100
_MAX_ELEMENTS = 200_000
# More seconds than a graph takes, even on a busy machine.
_SECONDS_FOR_GRAPH = 300
_ATTEMPTS = 6
_TOLERANCE, _STEP = 1e-5, 1
_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "<": operator.lt,
    ">=": operator.ge,
    "==": operator.eq,
    "&": operator.and_,
    "^": operator.xor,
}
_UNARY = ("math.abs", "math.sqrt", "math.floor", "math.fabs", "math.cbrt", "math.atan")
_CONSTANTS = (0, 1, 2, -3, 7, 0.5, -1.5, 255, 100)
_Batch = tuple[list[np.ndarray], str, int]
# Known differences: patterns of the message, with reasons. The first matching pattern applies.
_REASONS = (
    (
        "Unexpected layout of output",
        "DALI infers an output layout that its operator does not return, and raises an error",
    ),
    ("Failed to create video decoder", "DALI's CPU decoder does not take Motion JPEG"),
    (r"^resize\b.*Index 1 out of range", "DALI fails if `save_attrs=False` is passed explicitly"),
    (r"^reductions\.(variance|std_dev): .*float32\[\[\], ", "DALI reads one mean as if there were several"),
    (r"^paste: .*n_channels", "DALI reads as many fill values as `n_channels` says"),
    (r"^paste: .*\[\d+, \d+, ([4-9]|\d\d+)\]", "DALI fills three channels of a canvas, unless `n_channels` says more"),
    (r"^transforms\.combine: .*in infinities or NaN", "DALI carries a sample's NaN into later ones"),
    (r"^reductions\.(mean_square|rms): .*uint16", "DALI's squares of uint16 overflow"),
    (
        r"^(resize|random_resized)\w*: .*INTERP_NN",
        "DALI adds the region's start twice if another axis uses the nearest neighbour",
    ),
    (r"^\[\]: sample \d differs", "DALI's slices with a step are wrong beyond some 32 K elements"),
    (r"^random_crop_generator: .*random_area=", "`random_area` exceeds the image, or is a single number"),
    ("^nonsilent_region: .*window_length=0", "`window_length` is 0"),
    (r"^sphere: .*\[\[1, 1", "DALI reads beyond an image of one pixel"),
    (r"^normalize: ", "elements are nearly equal, so that the rounding of DALI's mean dominates"),
    (r"^(spectrogram|audio_resample|power_spectrum): ", "sums are added in another order"),
    (r"^mel_filter_bank: .*in infinities or NaN", "DALI multiplies infinities by weights of zero"),
    (r"^preemphasis_filter: .*border=reflect.*\[1\]", "DALI reads beyond a signal of one sample"),
    (r"^tensor_resize: .*INTERP_NN", "DALI reads beyond the right edge for a nearest neighbour"),
    (r"^(warp_affine|rotate): .*has shape .*size=", "DALI ignores a computed size below 1, which is 1 in Penstock"),
    (r"^preemphasis_filter: .*float64", "DALI converts doubles beyond an integer's range as the processor does"),
    (
        r"^(brightness|contrast|rotate|crop|resize)\w*: DALI raises .*layout \"\"",
        "Penstock accepts four dimensions without a layout",
    ),
    (r"^transforms\.\w+: DALI raises .*number of dimensions", "Penstock accepts matrices of more than 6 dimensions"),
    (r"^crop: DALI raises .*fill value", "Penstock accepts a list of fill values that does not fit the channels"),
    (r"^coord_transform: DALI raises", "Penstock accepts points of several dimensions in one batch"),
    (r"^random_bbox_crop: DALI raises", "Penstock accepts `allow_no_crop` together with a crop's shape"),
)


@dataclass(frozen=True)
class Source:
    """Samples that an external source passes into the graph, and their layout."""

    samples: Sequence[np.ndarray]
    layout: str

    def define(self, module: Any) -> Any:
        """Return the samples as an input of a pipeline of ``module``."""
        return module.fn.external_source(lambda: list(self.samples), layout=self.layout or None)


@dataclass(frozen=True)
class Node:
    """A call of the operator ``fn.<path>``, or of a Python operator.

    Attributes:
        inputs: sources, or the numbers of outputs of earlier nodes.
        arguments: the arguments by name; positional arguments of Python operators are named "0", "1" and so on.
    """

    path: str
    inputs: Sequence[Source | int]
    arguments: Mapping[str, object] = field(default_factory=dict)

    def define(self, module: Any, outputs: Sequence[Any]) -> list[Any]:
        """Return the node's outputs in a pipeline of ``module``; ``outputs`` are the outputs of the earlier nodes."""
        inputs = [each.define(module) if isinstance(each, Source) else outputs[each] for each in self.inputs]
        given = {name: in_module(module, value) for name, value in self.arguments.items()}
        if self.path in _BINARY:
            return [_BINARY[self.path](*inputs, *given.values())]
        if self.path == "[]":
            return [inputs[0][tuple(slice(*bounds) for bounds in given["at"])]]
        if self.path.startswith("math."):
            return [getattr(module.math, self.path[5:])(inputs[0])]
        made = attrgetter(self.path)(module.fn)(*inputs, **given)
        return list(made) if isinstance(made, (list, tuple)) else [made]

    def __str__(self) -> str:
        inputs = [
            f"{each.samples[0].dtype}{[list(s.shape) for s in each.samples]}'{each.layout}'"
            if isinstance(each, Source)
            else f"%{each}"
            for each in self.inputs
        ]
        return f"{self.path}({', '.join([*inputs, *(f'{name}={value}' for name, value in self.arguments.items())])})"


class Graph:
    """A graph to which nodes are added one by one; each node is run in Penstock as it is added."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.values: list[_Batch] = []
        self.ends: list[int] = []  # after each node, the number of outputs so far

    def add(self, node: Node) -> bool:
        """Append a node and return True, unless it fails in Penstock or its outputs are too large."""
        outcome = run_node(penstock, node, self.values)
        if outcome.error is not None:
            return False
        if sum(sample.size for batch in outcome.outputs[0] for sample in batch[0]) > _MAX_ELEMENTS:
            return False
        self.nodes.append(node)
        self.values += outcome.outputs[0]
        self.ends.append(len(self.values))
        return True

    def define(self, module: Any, count: int | None = None) -> list[Any]:
        """Return the outputs of the first ``count`` nodes, or of all nodes, in a pipeline of ``module``."""
        outputs: list[Any] = []
        for node in self.nodes[:count]:
            outputs += node.define(module, outputs)
        return outputs

    def last_outputs(self) -> list[int]:
        """Return the numbers of the outputs that no node consumes."""
        taken = {each for node in self.nodes for each in node.inputs if isinstance(each, int)}
        return [number for number in range(len(self.values)) if number not in taken]


def run_node(module: Any, node: Node, values: Sequence[_Batch]) -> Any:
    """Run a node alone; ``values`` are the batches of all outputs of earlier nodes, from which it takes its inputs."""

    def define(module: Any) -> tuple[Any, ...]:
        inputs = {each for each in node.inputs if isinstance(each, int)}
        outputs = [
            Source(values[i][0], values[i][1]).define(module) if i in inputs else None for i in range(len(values))
        ]
        return tuple(node.define(module, outputs))

    return run(module, define, _BATCH_SIZE, 1, **_OPTIONS)


@dataclass(frozen=True)
class _Shown:
    """An example call of an operator, with the number of dimensions and the layout of each input."""

    schema: Schema
    call: Call
    forms: tuple[tuple[int, str], ...]


@cache
def _shown() -> tuple[_Shown, ...]:
    """Return the example calls of all operators that are compared."""
    found = []
    for schema in compared_operators(""):
        for call in examples(schema):
            if not OURS_ALONE.intersection(map(str, call.arguments.values())):
                forms = tuple((given.make(0).ndim, given.layout) for given in call.inputs)
                found.append(_Shown(schema, call, forms))
    return tuple(found)


def random_graph(seed: int, number: int) -> Graph:
    """Return the random graph that the seed and a number identify."""
    draw, graph = random.Random(f"graph {seed} {number}"), Graph()
    wanted = draw.randint(3, 12)
    for _ in range(wanted * _ATTEMPTS):
        if len(graph.nodes) == wanted:
            break
        graph.add(_random_node(draw, graph))
    return graph


def _random_node(draw: random.Random, graph: Graph) -> Node:
    kind = draw.random()
    if not graph.values or kind < 0.05:
        return _operator_node(draw, graph, draw.choice(_shown()))
    if kind < 0.2:
        return _python_node(draw, graph)
    if kind < 0.3:
        dtype = draw.choice(["UINT8", "INT16", "INT32", "FLOAT", "FLOAT16", "UINT16"])
        return Node("cast", [_recent(draw, range(len(graph.values)))], {"dtype": Member(dtype)})
    paths = sorted({own.schema.fn_path for own in _shown() if _fits(own, graph)})
    if not paths:
        return _operator_node(draw, graph, draw.choice(_shown()))
    path = draw.choice(paths)
    return _operator_node(
        draw, graph, draw.choice([own for own in _shown() if own.schema.fn_path == path and _fits(own, graph)])
    )


def _recent(draw: random.Random, numbers: Sequence[int]) -> int:
    """Return one of ``numbers`` at random, more often a high one, so that nodes mostly consume recent outputs."""
    return max(draw.choice(numbers), draw.choice(numbers))


def _fits(shown: _Shown, graph: Graph) -> bool:
    return bool(shown.forms) and bool(_suitable(shown.forms[0], graph))


def _suitable(form: tuple[int, str], graph: Graph) -> list[int]:
    rank, layout = form
    return [
        number
        for number, (samples, own, _) in enumerate(graph.values)
        if samples[0].ndim == rank and (own == layout or not (own and layout)) and all(s.size for s in samples)
    ]


def _python_node(draw: random.Random, graph: Graph) -> Node:
    first = _recent(draw, range(len(graph.values)))
    samples = graph.values[first][0]
    kind = draw.random()
    if kind < 0.2 and samples[0].ndim and min(min(s.shape) for s in samples) > 1:
        bounds = [
            draw.choice([(None,), (1, None), (None, -1), (None, None, 2), (None, draw.randint(1, 4))])
            for _ in range(draw.randint(1, samples[0].ndim))
        ]
        return Node("[]", [first], {"at": bounds})
    if kind < 0.35:
        return Node(draw.choice(_UNARY), [first])
    path = draw.choice(list(_BINARY))
    alike = [i for i, (own, *_) in enumerate(graph.values) if [s.shape for s in own] == [s.shape for s in samples]]
    if draw.random() < 0.4:
        return Node(path, [first, draw.choice(alike)])
    return Node(path, [first], {"0": draw.choice(_CONSTANTS)})


def _operator_node(draw: random.Random, graph: Graph, shown: _Shown) -> Node:
    inputs: list[Source | int] = []
    for given, form in zip(shown.call.inputs, shown.forms):
        suitable = _suitable(form, graph)
        if suitable and (not inputs or draw.random() < 0.7):
            inputs.append(_recent(draw, suitable))
        else:
            inputs.append(Source([given.make(index) for index in range(_BATCH_SIZE)], given.layout))
    arguments: dict[str, object] = {name: without_module(value) for name, value in shown.call.arguments.items()}
    known = GetSchema(shown.schema.name)
    possible = [a for a in settable_arguments(shown.schema) if known.HasArgument(a.name) and not (a.path or a.apart)]
    for argument in draw.sample(possible, min(len(possible), draw.choice([0, 0, 1, 2]))):
        arguments[argument.name] = random_value(draw, argument)
    if known.HasArgument("seed") and not known.IsDeprecatedArg("seed"):
        arguments["seed"] = draw.randint(1, 10**6)
    return Node(shown.schema.fn_path, inputs, arguments)


@dataclass
class Verdict:
    """The result of comparing all nodes of a graph with DALI.

    Attributes:
        equal: the number of nodes whose outputs equal DALI's bit for bit.
        rounded: the paths of the nodes whose outputs differ from DALI's by no more than the tolerance.
        different: a description of each node whose outputs differ by more, and of each other difference.
    """

    equal: int = 0
    rounded: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)


def compare(graph: Graph) -> Verdict:
    """Run a graph in DALI and in Penstock, and compare the outputs of every node."""
    verdict = Verdict()
    ours = run(penstock, lambda module: tuple(graph.define(module)), _BATCH_SIZE, 1, **_OPTIONS)
    if ours.error is not None:
        verdict.different.append(f"whole graph: Penstock raises {_short(ours.error)}, though each node runs alone")
        return verdict
    theirs = _run_dali(graph, verdict)
    if theirs:
        _compare_nodes(graph, theirs, ours.outputs[0], verdict)
    _compare_fused(graph, ours.outputs[0], verdict)
    return verdict


def _run_dali(graph: Graph, verdict: Verdict) -> list[_Batch]:
    """Return DALI's outputs. If DALI raises an error, add the difference to the verdict, and return the outputs before the failing node."""
    outcome = run(dali, lambda module: tuple(graph.define(module)), _BATCH_SIZE, 1, **_OPTIONS)
    if outcome.error is None:
        return outcome.outputs[0]
    outputs: list[_Batch] = []
    for count, node in enumerate(graph.nodes, 1):
        outcome = run(dali, lambda module, count=count: tuple(graph.define(module, count)), _BATCH_SIZE, 1, **_OPTIONS)
        if outcome.error is not None:
            verdict.different.append(f"{node.path}: DALI raises {_short(outcome.error)} | {_described(node, outputs)}")
            return outputs
        outputs = outcome.outputs[0]
    return outputs


def _compare_nodes(graph: Graph, theirs: Sequence[_Batch], ours: Sequence[_Batch], verdict: Verdict) -> None:
    unequal: set[int] = set()
    start = 0
    for node, end in zip(graph.nodes, graph.ends):
        if end > len(theirs):
            return
        numbers = range(start, end)
        unequal |= {i for i in numbers if batch_difference(theirs[i], ours[i], 0.0, 0)}
        received = ours[start:end]
        if unequal & {each for each in node.inputs if isinstance(each, int)}:
            outcome = run_node(penstock, node, theirs)
            if outcome.error is not None:
                verdict.different.append(
                    f"{node.path}: Penstock raises {_short(outcome.error)} | {_described(node, theirs)}"
                )
                start = end
                continue
            received = outcome.outputs[0]
        _judge(node, theirs, theirs[start:end], received, verdict)
        start = end


def _judge(
    node: Node, known: Sequence[_Batch], theirs: Sequence[_Batch], ours: Sequence[_Batch], verdict: Verdict
) -> None:
    told = [batch_difference(a, b, _TOLERANCE, _STEP) for a, b in zip(theirs, ours)]
    if any(told):
        verdict.different.append(f"{node.path}: {next(filter(None, told))} | {_described(node, known)}")
    elif any(batch_difference(a, b, 0.0, 0) for a, b in zip(theirs, ours)):
        verdict.rounded.append(node.path)
    else:
        verdict.equal += 1


def _compare_fused(graph: Graph, ours: Sequence[_Batch], verdict: Verdict) -> None:
    last = graph.last_outputs()
    fused = run(
        penstock,
        lambda module: tuple(outputs[i] for outputs in [graph.define(module)] for i in last),
        _BATCH_SIZE,
        1,
        **_OPTIONS,
    )
    if fused.error is not None:
        verdict.different.append(f"fused: Penstock raises {_short(fused.error)}")
        return
    for number, batch in zip(last, fused.outputs[0]):
        told = batch_difference(ours[number], batch, 0.0, 0)
        if told:
            verdict.different.append(f"fused: output %{number} {told}")


def _described(node: Node, values: Sequence[_Batch]) -> str:
    inputs = [
        f"%{i} = {values[i][0][0].dtype}{[list(s.shape) for s in values[i][0]]}'{values[i][1]}'"
        for i in node.inputs
        if isinstance(i, int)
    ]
    return " ; ".join([str(node), *inputs])


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[-250:]}"


def _reason(text: str) -> str:
    """Return the reason if a message describes a known difference, otherwise an empty string."""
    return next((reason for pattern, reason in _REASONS if re.search(pattern, text)), "")


def _answer(seed: int, number: int) -> str:
    """Return the verdict on a graph, as JSON."""
    signal.alarm(_SECONDS_FOR_GRAPH)
    try:
        graph = random_graph(seed, number)
        verdict = compare(graph)
    except Exception:  # an error would end the process, which would count as DALI's doing
        return f"this program fails: {traceback.format_exc()}"
    return json.dumps({"graph": number, "nodes": [str(node) for node in graph.nodes], **vars(verdict)}, default=str)


def _run_in_penstock(seed: int, number: int) -> None:
    signal.alarm(_SECONDS_FOR_GRAPH)
    graph = random_graph(seed, number)
    run(penstock, lambda module: tuple(graph.define(module)), _BATCH_SIZE, 1, **_OPTIONS)


def _answers_of_process(seed: int, numbers: Sequence[int]) -> list[tuple[int, str]]:
    return list(zip(numbers, run_alone(numbers, partial(_answer, seed), partial(_run_in_penstock, seed))))


def _answers(seed: int, numbers: range, jobs: int) -> Iterator[tuple[int, str]]:
    """Yield each graph's number and the verdict as JSON, a text if this program fails, or an empty string if DALI ends the process."""
    _shown()  # fills the cache before processes are forked
    chunks = [numbers[start : start + _GRAPHS_OF_PROCESS] for start in range(0, len(numbers), _GRAPHS_OF_PROCESS)]
    with multiprocessing.get_context("fork").Pool(jobs) as workers:
        progress = workers.imap(partial(_answers_of_process, seed), chunks)
        for answers in track(progress, "running", total=len(chunks), console=Console(stderr=True)):
            yield from answers


def main() -> int:
    """Print the graphs with unknown differences, and tables; return whether there are such graphs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=200, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--graph", type=int, help="only the graph with this number, shown")
    parser.add_argument(
        "--jobs", type=int, default=2 * (os.cpu_count() or 1), help="processes; each waits half of its time"
    )
    parser.add_argument("--report", type=Path, help="a file to append each graph's verdict to, as JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(highlight=False)
    numbers = range(options.first, options.first + options.graphs)
    if options.graph is not None:
        numbers = range(options.graph, options.graph + 1)

    counts: Counter[str] = Counter()
    rounded: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for number, answer in _answers(options.seed, numbers, options.jobs):
        counts["graphs"] += 1
        if not answer.startswith("{"):
            counts["DALI ends the process"] += not answer
            counts["unexplained"] += bool(answer)
            if answer:
                console.print(f"{number}: {answer}", markup=False, soft_wrap=True)
            continue
        verdict = json.loads(answer)
        if options.report:
            with options.report.open("a") as report:
                print(json.dumps(verdict), file=report)
        if options.graph is not None:
            console.print("\n".join(verdict["nodes"]), markup=False, soft_wrap=True)
        for text in verdict["different"]:
            reason = _reason(text)
            reasons[reason] += 1
            if options.graph is not None or not reason:
                console.print(f"{number}: {text}", markup=False, soft_wrap=True)
        counts["nodes"] += len(verdict["nodes"])
        counts["equal"] += verdict["equal"]
        counts["rounded"] += len(verdict["rounded"])
        counts["unexplained"] += not all(map(_reason, verdict["different"]))
        rounded.update(verdict["rounded"])
    console.print(f"DALI {dali.__version__}: {dict(counts)}", markup=False)
    console.print(f"rounded: {dict(rounded.most_common())}", markup=False, soft_wrap=True)
    for reason, count in reasons.most_common():
        console.print(f"{count}: {reason or 'unexplained'}", markup=False, soft_wrap=True)
    return int(counts["unexplained"] > 0)


if __name__ == "__main__":
    sys.exit(main())
