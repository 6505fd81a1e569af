"""`random.choice`: elements picked from an array."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from penstock.data_types import INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, dtype_name
from penstock.operators.random._draw import SHAPE, SHAPE_LIKE, SMALL_DRAW, output_shape
from penstock.schema import Argument, Equivalent, Input, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import random_arrays
from penstock.schema.operator import Shape
from penstock.schema.random_operator import RandomOperator, Streams

INTEGERS = (UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64)


@register_operator
class Choice(RandomOperator):
    """Picks elements at random, with replacement, along an array's first dimension, or from 0 ... a-1 if the input is a number a.

    Works like ``numpy.random.choice``. From an n-dimensional array, (n-1)-dimensional slices are picked.

    >>> interpolation = fn.random.choice([types.INTERP_LINEAR, types.INTERP_CUBIC])
    """

    schema = Schema(
        name="random__Choice",
        devices=("cpu",),
        inputs=(
            Input(
                "a",
                doc="The elements to pick from: an integer, for 0 ... a-1, or an array.",
                example=random_arrays((4,), dtype=np.int32, low=0, high=9),
            ),
            SHAPE_LIKE,
        ),
        min_inputs=1,
        arguments=(
            Argument(
                "p",
                "float[]",
                None,
                "Probability of each element; they sum to 1.",
                tensor=True,
                example=[0.1, 0.2, 0.3, 0.4],
            ),
            SHAPE,
        ),
        random=True,
        stateful=True,
        equivalents=(Equivalent("numpy.random.Generator.choice", "It draws other numbers."),),
    )

    plans_by_shape = True

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        pool = workspace.inputs[0]
        if pool.ndim() == 0 and pool.dtype not in INTEGERS:
            raise RuntimeError(
                f"Data type {dtype_name(pool.dtype)} is not supported for 0D inputs. Supported types are: "
                + ", ".join(map(dtype_name, INTEGERS))
            )
        return [OutputSpec(pool.dtype, self._layout(workspace))]

    def _layout(self, workspace: Workspace) -> str:
        """Return the output's layout: for slices picked along one dimension the array's, for a single slice the array's without its first
        letter, and otherwise none.
        """
        layout = workspace.inputs[0].layout()
        if len(workspace.inputs) > 1:
            picked = workspace.inputs[1].ndim()
        elif "shape" in workspace.arguments:
            batch = workspace.arguments["shape"]
            picked = batch.samples[0].size if len(batch) else 0
        else:
            picked = len(self.args["shape"] or ())
        return layout[1:] if picked == 0 else layout if picked == 1 else ""

    def infer(self, sample: Sample) -> tuple[int, ...]:
        return output_shape(sample, 1) + sample.shapes[0][1:]

    def compute_samples(self, workspace: Workspace, shapes: Sequence[Shape]) -> None:
        if not self._pick_together(workspace):
            super().compute_samples(workspace, shapes)

    def _pick_together(self, workspace: Workspace) -> bool:
        """Pick elements for all samples in one call if samples have equal shapes and arguments and are small. Return whether that was
        possible; otherwise, nothing has been picked.
        """
        pools, output = workspace.inputs[0], workspace.outputs[0]
        first = workspace.samples[0] if workspace.batch_size and not workspace.failures else None
        count = pools.shapes[0][0] if first is not None and pools.ndim() else 0
        if first is None or not count or not (pools.is_dense_tensor() and output.is_dense_tensor()):
            return False
        elements = output.contiguous_elements().reshape(len(output), -1)
        if elements.shape[1] > SMALL_DRAW or (workspace.arguments.keys() - {"_random_state"}):
            return False
        size = math.prod(output.shapes[0][: output.ndim() - pools.ndim() + 1])
        try:
            indices = self._indices(first, count, (len(pools), size), self.streams(workspace, range(len(pools))))
        except RuntimeError:
            return False
        elements[:] = np.array(pools.samples)[np.arange(len(pools))[:, None], indices].reshape(elements.shape)
        return True

    def compute(self, sample: Sample) -> None:
        pool, out = sample.inputs[0], sample.outputs[0]
        count = len(pool) if pool.ndim else int(pool)
        if count <= 0:
            raise RuntimeError(
                f"Expected positive number of elements for sampling, got: {count} for sample: {sample.index}."
            )
        picked = out.shape[: out.ndim - max(pool.ndim - 1, 0)]
        streams = self.streams(sample.workspace, [sample.index])
        indices = self._indices(sample, count, (1, math.prod(picked)), streams).reshape(picked)
        out[...] = pool[indices] if pool.ndim else indices

    def _indices(self, sample: Sample, count: int, shape: tuple[int, int], streams: Streams) -> np.ndarray:
        """Draw the indices to pick.

        Args:
            sample: any of the samples, which have the same arguments.
            count: the number of elements to pick from.
            shape: the number of samples, and of indices for each.
            streams: the samples' random streams.
        """
        from penstock.kernels.cpu import distributions

        indices = np.empty(shape, np.int64)
        of_slices = len(sample.shapes[0]) > 1
        if sample.given("p"):
            fixed = sample.tensor_argument("p") is None
            cumulative = _cumulative(sample["p"], count, sample.index, fixed)
            distributions.fill_weighted(indices, *streams, cumulative, of_slices)
        else:
            distributions.fill_below(indices, *streams, np.uint64(count), of_slices)
        return indices


def _cumulative(probabilities: list[float], count: int, sample: int, fixed: bool) -> np.ndarray:
    """Return the cumulative sums of the elements' probabilities, which end in 1.

    Args:
        probabilities: one for each element, or if ``fixed`` a single one for all.
        count: the number of elements.
        sample: the sample's index, for messages.
        fixed: whether the probabilities are a constant.

    Raises:
        RuntimeError: the number of probabilities is wrong, one is not from 0 to 1, or the sum is not 1.
    """
    if len(probabilities) == 1 and fixed:
        probabilities = probabilities * count
    if len(probabilities) != count:
        raise RuntimeError(
            f'Unexpected shape for argument "p". Expected {{{count}}}, but got {{{len(probabilities)}}} values: '
            "each element needs a probability"
        )
    for index, probability in enumerate(probabilities):
        if not 0 <= probability <= 1:
            raise RuntimeError(
                f"Probabilities must be in range [0.0, 1.0], but got: {probability:g} for sample: {sample} "
                f"at index {index}."
            )
    sums = np.cumsum(np.array(probabilities, np.float64))
    if abs(sums[-1] - 1) >= 1e-4:
        raise RuntimeError(f"Sum of probabilities must be 1.0, but got {sums[-1]:g} for sample: {sample}.")
    sums[-1] = 1
    return sums
