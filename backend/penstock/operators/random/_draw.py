"""The base class of operators that fill tensors with random numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from penstock.data_types import DALIDataType, dtype_name
from penstock.schema import Argument, Input, OutputSpec, Sample, Workspace
from penstock.schema.operator import Shape
from penstock.schema.random_operator import RandomOperator, Streams

SHAPE_LIKE = Input(
    "shape_like", device="any", doc="The output has the shape of this input, whose contents do not matter."
)
SHAPE = Argument(
    "shape", "int32[]", None, "Shape of the output; by default it is a scalar.", tensor=True, uniform=True, example=[5]
)
DTYPE = Argument("dtype", "DALIDataType", None, "Type of the output.", example=DALIDataType.INT16)

NUMBERS = (
    DALIDataType.UINT8,
    DALIDataType.INT8,
    DALIDataType.UINT16,
    DALIDataType.INT16,
    DALIDataType.UINT32,
    DALIDataType.INT32,
    DALIDataType.UINT64,
    DALIDataType.INT64,
    DALIDataType.FLOAT,
    DALIDataType.FLOAT64,
)


def check_dtype(dtype: DALIDataType, supported: tuple[DALIDataType, ...]) -> None:
    """Raise RuntimeError unless ``dtype`` is one of ``supported``."""
    if dtype not in supported:
        names = ", ".join(map(dtype_name, supported))
        raise RuntimeError(f"Data type {dtype_name(dtype)} is not supported. Supported types are: {names}")


def output_shape(sample: Sample, shape_like: int) -> tuple[int, ...]:
    """Return the shape to fill: the shape of input number ``shape_like`` if there is one, or the argument `shape`, or a scalar's."""
    if len(sample.shapes) > shape_like:
        if sample.given("shape"):
            raise RuntimeError('Providing argument "shape" is incompatible with providing a shape-like input')
        return sample.shapes[shape_like]
    shape = tuple(sample["shape"] or ())
    if any(extent < 0 for extent in shape):
        raise RuntimeError(f"The extents of a shape cannot be negative, got: {list(shape)}")
    return shape


# Batches whose samples have at most this many elements are filled by one call; larger samples are shared by threads.
SMALL_DRAW = 1024


_STATE = {"_random_state"}


class Draw(RandomOperator[Sample | None]):
    """Base class of operators that fill tensors with numbers of some distribution. CPU and GPU draw the same numbers, up to rounding.

    The workspace's state is the first sample if one call draws the numbers of all samples, which then have the same shape and arguments;
    otherwise None.
    """

    default_dtype: ClassVar[DALIDataType] = DALIDataType.FLOAT
    dtypes: ClassVar[tuple[DALIDataType, ...]] = NUMBERS

    is_cheap_on_host = True
    repeatable = True

    def fill_batch(self, sample: Sample, out: np.ndarray, streams: Streams) -> None:
        """Draw the numbers of several samples with the same arguments.

        Args:
            sample: any of the samples.
            out: an array with a row for each sample, contiguous and of the output's type; output.
            streams: the samples' random streams.
        """
        raise NotImplementedError

    def distribution(self, sample: Sample, dtype: np.dtype) -> tuple[str, dict[str, Any]]:
        """Return the distribution's name in the GPU kernels, and the sample's parameters: further arguments of ``philox.Drawing``."""
        raise NotImplementedError

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        return [self._spec]

    @functools.cached_property
    def _spec(self) -> OutputSpec:
        dtype = self.default_dtype if self.args["dtype"] is None else self.args["dtype"]
        check_dtype(dtype, self.dtypes)
        return OutputSpec(dtype)

    def infer(self, sample: Sample) -> tuple[int, ...]:
        return output_shape(sample, 0)

    def infer_shapes(self, workspace: Workspace[Sample | None], num_outputs: int) -> list[list[Shape]]:
        # Without inputs and computed arguments, all samples have the same shape and arguments, so that one call can fill them.
        free = not workspace.inputs and workspace.arguments.keys() <= _STATE and not workspace.failures
        if not free or workspace.device != "cpu" or not workspace.batch_size:
            return super().infer_shapes(workspace, num_outputs)
        first = Sample(self, workspace, 0)
        shape: Shape | None = self.known.get("shape")
        if shape is None:
            try:
                shape = self.known["shape"] = self.infer(first)
            except Exception:
                # The error recurs when samples are planned one by one, which identifies the samples that fail.
                return super().infer_shapes(workspace, num_outputs)
        if math.prod(shape) > SMALL_DRAW:
            return super().infer_shapes(workspace, num_outputs)
        workspace.state = first
        return [[shape] * workspace.batch_size]

    def compute_samples(self, workspace: Workspace[Sample | None], shapes: Sequence[Shape]) -> None:
        first = workspace.state
        if first is not None:
            try:
                out = workspace.outputs[0].contiguous_elements().reshape(len(shapes), -1)
                self.fill_batch(first, out, self.streams(workspace, range(len(shapes))))
                return
            except Exception:
                # The error recurs when samples are computed one by one, which identifies the samples that fail.
                workspace.samples = [Sample(self, workspace, index) for index in range(workspace.batch_size)]
        super().compute_samples(workspace, shapes)

    def compute(self, sample: Sample) -> None:
        self.fill_batch(sample, sample.outputs[0].reshape(1, -1), self.streams(sample.workspace, [sample.index]))

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.philox import Drawing, draw_numbers

        samples = workspace.live
        drawings: dict[str, list[Drawing]] = {}
        for sample, target in zip(samples, locate_all(workspace.outputs[0], samples)):
            try:
                name, parameters = self.distribution(sample, target.dtype)
            except Exception as error:
                workspace.fail(sample.index, error)
                continue
            stream = self.stream_index(workspace, sample.index)
            drawings.setdefault(name, []).append(Drawing(target, stream, **parameters))
        for name, of_name in drawings.items():
            draw_numbers(name, of_name, self.first_stream(workspace))


def is_wide(dtype: Any) -> bool:
    """Return whether numbers of a type are drawn in double precision: float64 and integers of at least 32 bits."""
    return dtype == np.float64 or (dtype.kind in "iu" and dtype.itemsize >= 4)
