"""Each public operator compared with its fastest peer: one or more rows per operator, with samples of new sizes in every batch.

    make bench-operators [ARGS="--filter resize"]
    OMP_NUM_THREADS=1 PYTHONPATH=backend:tests/parity python tests/benchmarks/operators.py [--gpu] [--filter resize] [--json FILE]

Needs DALI in the same environment, and measures the other libraries that are installed. On the CPU, a figure is the
processor time of one thread for a sample, the median of the rounds. In a round, the candidates run the same three batches, one candidate
after the other in random order; the first batch does not count. Making batches, and converting them to what a library takes (tensors,
PIL images), is not measured. On a GPU, a figure is wall time, with two batches in flight and the inputs on the GPU; DALI is the only peer.
"""

from __future__ import annotations

import argparse
import functools
import random
import re
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import nvidia.dali
from operator_cases import BATCH, TENSOR_LIBRARIES, Batches, Case, Inputs, Libraries, cases, unmeasured
from side_by_side import both, prepared
from turns import gpu_ms, headline, in_turns, keep, merge, surroundings

import penstock

SELF, DALI = "Penstock", "DALI"
# The first batch of a turn does not count: it brings data back to the caches that other candidates have displaced.
BATCHES_PER_TURN = 3
LIBRARIES = Libraries()


class Pipeline:
    """A case in a pipeline of Penstock or of DALI."""

    def __init__(self, module: Any, case: Case, batches: Batches) -> None:
        sources = [batches.source(number) for number in range(len(case.sources))]
        layouts = [source.layout or None for source in case.sources]
        self.prepare: Callable[[], None] = lambda: None
        self.run = prepared(
            module, case.work, sources, 1, False, layouts, batch_size=batches.size, conditionals=case.conditionals
        )


class Calls:
    """A case in another library: a call for each sample."""

    def __init__(self, library: str, case: Case, batches: Batches) -> None:
        self._function = case.peers[library](LIBRARIES)
        self._batches, self._converted = batches, _CONVERSIONS.get(library, lambda sample: sample)
        self._samples: Sequence[tuple[Any, ...]] = ()

    def prepare(self) -> None:
        inputs = [[self._converted(sample) for sample in samples] for samples in self._batches.inputs]
        self._samples = list(zip(*inputs)) if inputs else [()] * self._batches.size

    def run(self) -> list[Any]:
        return [self._function(*sample) for sample in self._samples]


def _tensor(sample: np.ndarray) -> Any:
    tensor = LIBRARIES.torch.from_numpy(sample)
    return tensor.permute(2, 0, 1) if sample.ndim == 3 and sample.dtype == np.uint8 else tensor


def _image(sample: np.ndarray) -> Any:
    return LIBRARIES.Image.fromarray(sample) if sample.ndim == 3 else sample


_CONVERSIONS = {"PIL": _image} | dict.fromkeys(TENSOR_LIBRARIES, _tensor)


def measured(case: Case, options: argparse.Namespace) -> tuple[dict[str, float], dict[str, str]]:
    """Return the milliseconds per sample by candidate, and the reasons why other candidates cannot run the case."""
    batches = Batches(case, options.batch)
    batches.inputs = batches.renewed()
    makers: dict[str, Callable[[], Pipeline | Calls]] = {
        SELF: lambda: Pipeline(penstock, case, batches),
        **{name: lambda name=name: Calls(name, case, batches) for name in case.peers},
    }
    if _is_in_dali(case):
        makers[DALI] = lambda: Pipeline(nvidia.dali, case, batches)
    candidates, refused = {}, {}
    for name, make in makers.items():
        try:
            made = make()
            made.prepare()
            made.run()
        except Exception as error:
            if name == SELF:
                raise
            # Paths of packages on this machine are removed, because results are published.
            refused[name] = re.sub(r"/\S*/site-packages/", "", " ".join(str(error).split()))[-150:]
            continue
        candidates[name] = made
    return _medians(candidates, batches, options.rounds), refused


def _is_in_dali(case: Case) -> bool:
    known = case.operator == "pipeline" or functools.reduce(
        lambda module, name: getattr(module, name, None), case.operator.split("."), nvidia.dali.fn
    )
    return case.dali and bool(known)


def _medians(candidates: dict[str, Pipeline | Calls], batches: Batches, rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in candidates}
    orders = random.Random(0)
    for _ in range(rounds):
        turn = [batches.renewed() for _ in range(BATCHES_PER_TURN)]
        for name in orders.sample(list(candidates), len(candidates)):
            times[name].append(statistics.fmean(_times(candidates[name], batches, turn)[1:]))
    return {name: statistics.median(took) / 1e6 / batches.size for name, took in times.items()}


def _times(candidate: Pipeline | Calls, batches: Batches, turn: Sequence[Inputs]) -> list[int]:
    """Return nanoseconds of processor time for each batch."""
    times = []
    for inputs in turn:
        batches.inputs = inputs
        candidate.prepare()
        begin = time.process_time_ns()
        candidate.run()
        times.append(time.process_time_ns() - begin)
    return times


def measured_on_gpu(case: Case, options: argparse.Namespace) -> tuple[dict[str, float], dict[str, str]]:
    """Return the times of DALI and Penstock, with inputs on the GPU."""
    import cupy

    batches = Batches(case, options.batch)
    inputs = [[cupy.asarray(sample) for sample in samples] for samples in batches.renewed()]
    layouts = [source.layout or None for source in case.sources]
    candidates = both(case.work, inputs, 1, True, layouts, options.batch)
    times = in_turns(candidates, gpu_ms, options.rounds, 0.2)
    return {name: took / options.batch for name, took in times.items()}, {}


def main() -> None:
    """Measure all rows and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true", help="on the GPU (else on the CPU)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--filter", default="", help="only rows whose name holds this regular expression")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--into", type=Path, help="saved figures, in which these rows replace those of the same names")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    LIBRARIES.cv2.setNumThreads(1)
    print(headline())
    kept = []
    for case in cases():
        if not re.search(options.filter, f"{case.operator}: {case.title}") or (options.gpu and not _is_in_dali(case)):
            continue
        try:
            ms, refused = (measured_on_gpu if options.gpu else measured)(case, options)
        except Exception as error:
            print(f"{case.operator}, {case.title} FAILED: {' '.join(str(error).split())[-300:]}", flush=True)
            continue
        kept.append(_row(case, ms, refused))
        print(_line(kept[-1]), flush=True)
    ratios = [row["ratio"] for row in kept if row["best"]]
    print(f"{sum(r >= 1.2 for r in ratios)} of {len(ratios)} at 1.2 or above, {sum(r < 1 for r in ratios)} below 1")
    for name, reason in unmeasured().items():
        print(f"{name}: not measured: {reason}")
    keep("operators", kept, options.json, unmeasured=unmeasured())
    if options.into:
        merge(options.into, {**surroundings(), "rows": kept}, row_name)


def row_name(row: dict[str, Any]) -> tuple[str, str]:
    """Return the name of what a row measures: the operator, and its input."""
    return row["operator"], row["input"]


def _row(case: Case, ms: dict[str, float], refused: dict[str, str]) -> dict[str, Any]:
    peers = {name: took for name, took in ms.items() if name != SELF}
    best = min(peers, key=peers.__getitem__, default="")
    return {
        "operator": case.operator,
        "input": case.title,
        "ms": {name: float(f"{took:.4g}") for name, took in ms.items()},
        "best": best,
        "ratio": round(peers[best] / ms[SELF], 3) if best else None,
        "refused": refused,
        "reason": case.reason,
    }


def _line(row: dict[str, Any]) -> str:
    ms, best = row["ms"], row["best"]
    others = [f"{name} {took * 1e3:.1f}" for name, took in ms.items() if name not in (SELF, best)]
    beside = f"{row['ratio']:.2f} beside {', '.join([f'{best} {ms[best] * 1e3:.1f}', *others])}" if best else "no peer"
    refused = "".join(f"; {name} failed: {why}" for name, why in row["refused"].items())
    return f"{row['operator']}, {row['input']}: {ms[SELF] * 1e3:.1f} us, {beside}{refused}"


if __name__ == "__main__":
    main()
