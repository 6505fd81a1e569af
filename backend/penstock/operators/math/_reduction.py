"""The base classes of reductions: they determine the reduced dimensions, and the remaining shape and layout."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from penstock.data_types import BOOL, FLOAT, FLOAT16, FLOAT64, INT64, UINT64, DALIDataType, dtype_name, numpy_dtype
from penstock.kernels.axes import resolve_axes
from penstock.kernels.elementwise import folded
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Workspace
from penstock.schema.example_data import fixed_arrays
from penstock.schema.operator import Shape
from penstock.tensors.places import places_of_samples

REDUCTION_ARGUMENTS = (
    Argument("axes", "int32[]", None, "Indices of the dimensions to reduce; by default all.", example=[0, 1]),
    Argument("axis_names", "layout", None, "Letters of the dimensions to reduce, as in the layout.", example="HW"),
    Argument("keep_dims", "bool", False, "Keep the reduced dimensions with extent 1."),
)

DATA_AND_MEAN = (
    Input("data", doc="Data of an integer type or FLOAT."),
    Input(
        "mean",
        doc="FLOAT: one mean for all, or one for each element of the output.",
        example=fixed_arrays(120.0, 100.0, 130.0),
    ),
)
DEVIATION_ARGUMENTS = (
    *REDUCTION_ARGUMENTS,
    Argument("ddof", "int32", 0, "Subtracted from the number of elements in the denominator."),
)


# The greatest product of extents after the reduced dimensions for which `exact_sums` is used.
_MAX_SUMS_ABREAST = 64
# Each thread gets at least this many bytes: for fewer, waking it takes longer than it saves.
_MIN_BYTES_TO_SHARE = 1 << 20


class SamplesToReduce(NamedTuple):
    """A batch on the CPU whose samples are contiguous, and are reduced along adjacent dimensions.

    Attributes:
        table: int64 of shape (samples, 5). For each sample: its address; the products of its extents before the reduced dimensions, along
            them, and after them; the index of its first result in ``results``.
        dtype: the elements' type.
        results: the results of all samples, one after the other; output.
        threads: the workspace, whose threads share the samples.
    """

    table: np.ndarray
    dtype: np.dtype
    results: np.ndarray
    threads: Workspace

    @classmethod
    def of(cls, workspace: Workspace[tuple[int, ...]]) -> SamplesToReduce | None:
        """Return a workspace's batch. None if the batch or a sample is empty, if samples are not contiguous, or if the reduced dimensions
        are not adjacent.
        """
        batch, axes, results = workspace.inputs[0], sorted(workspace.state), workspace.outputs[0].elements
        if results is None or not axes or axes != list(range(axes[0], axes[-1] + 1)):
            return None
        places, volumes = places_of_samples(batch), batch.sample_volumes()
        if places is None or not volumes.all() or not len(batch):
            return None
        table = np.empty((len(batch), 5), np.int64)
        shapes = batch.shape_array()
        table[:, 0] = places
        shapes[:, : axes[0]].prod(axis=1, out=table[:, 1])
        shapes[:, axes[0] : axes[-1] + 1].prod(axis=1, out=table[:, 2])
        shapes[:, axes[-1] + 1 :].prod(axis=1, out=table[:, 3])
        counts = table[:, 1] * table[:, 3]
        table[:, 4] = counts.cumsum() - counts
        return cls(table, numpy_dtype(batch.dtype), results, workspace)

    def share(self, work: Callable[[int, int], None]) -> None:
        """Call ``work(begin, end)`` for ranges of samples, on several threads if the batch is large."""
        count, threads = len(self.table), self.threads
        total = int((self.table[:, 1] * self.table[:, 2] * self.table[:, 3]).sum()) * self.dtype.itemsize
        shares = min(threads.num_threads, count, total // _MIN_BYTES_TO_SHARE)
        if shares < 2:
            work(0, count)
            return
        bounds = [count * number // shares for number in range(shares + 1)]
        threads.parallel(lambda number: work(bounds[number], bounds[number + 1]), shares)

    def find_extremes(self, largest: bool) -> bool:
        """Find the smallest or largest integers along the last dimensions. Return False, without results, for floating-point data or
        other dimensions.
        """
        if self.dtype.kind == "f" or self.table[0, 3] != 1:
            return False
        from penstock.kernels.cpu.extremes import find_extremes

        samples, like = np.ascontiguousarray(self.table[:, [0, 1, 2, 4]]), self.dtype.type(0)
        self.share(lambda begin, end: find_extremes(samples, begin, end, largest, like, self.results))
        return True

    def find_means(self, square: bool) -> bool:
        """Compute the means of elements or, with ``square``, of their squares, like :func:`mean_of`. Return False, without results, if
        there is no kernel for the data.
        """
        from penstock.kernels.cpu.tree_sums import are_sums_exact, exact_sums

        if self.results.dtype != np.float32 or not are_sums_exact(self.dtype, square):
            return False
        if self.table[:, 3].max() > _MAX_SUMS_ABREAST:
            return False
        self.share(lambda begin, end: exact_sums(self.table, begin, end, self.dtype, square, self.results))
        factors = (1 / self.table[:, 2].astype(np.float64)).astype(np.float32)
        counts = self.table[:, 1] * self.table[:, 3]
        if len(self.results) > len(factors):
            factors = factors.repeat(counts)
        np.multiply(self.results, factors, out=self.results)
        return True


class Reduction(Operator[tuple[int, ...]]):
    """Base class of operators that reduce the elements along some dimensions to one number.

    Attributes:
        merge: how the GPU combines two numbers: ``Add``, ``Least`` or ``Greatest``.
        squares: whether the GPU squares elements (after subtracting the mean, if there is one) first.
        divides: whether the GPU divides the sum by the number of elements.
        root: whether the GPU takes the square root of the result.
    """

    merge: ClassVar[str] = "Add"
    squares: ClassVar[bool] = False
    divides: ClassVar[bool] = False
    root: ClassVar[bool] = False

    def setup(self) -> None:
        if self.given("axes") and self.given("axis_names"):
            raise RuntimeError("Arguments `axes` and `axis_names` are mutually exclusive")

    def result_type(self, dtype: DALIDataType) -> DALIDataType:
        """Return the output type for an input type; raise RuntimeError if the requested type is not supported."""
        raise NotImplementedError(f"{type(self).__name__} must declare its output type")

    def reduce(self, data: np.ndarray, axes: tuple[int, ...], sample: Sample, kind: np.dtype) -> np.ndarray:
        """Reduce an array along ``axes``; return the result, without these dimensions, for an output of type ``kind``."""
        raise NotImplementedError(f"{type(self).__name__} must implement `reduce`")

    def describe(self, workspace: Workspace[tuple[int, ...]]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        names = self.args["axis_names"]
        axes = [] if names == "" else resolve_axes(self.args["axes"], names, batch.layout(), batch.ndim())
        if batch.dtype in (BOOL, FLOAT16, FLOAT64):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}; use an integer type or FLOAT")
        reduced = tuple(range(batch.ndim()) if axes is None else axes)
        workspace.state = reduced
        layout, ndim = batch.layout(), batch.ndim()
        if not self.args["keep_dims"]:
            layout = "".join(letter for axis, letter in enumerate(layout) if axis not in reduced)
            ndim -= len(reduced)
        return [OutputSpec(self.result_type(batch.dtype), layout, ndim)]

    def infer(self, sample: Sample[tuple[int, ...]]) -> tuple[int, ...]:
        axes, shape = sample.workspace.state, sample.shapes[0]
        if self.args["keep_dims"]:
            return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
        return kept_extents(shape, axes)

    def reduce_batch(self, batch: SamplesToReduce) -> bool:
        """Reduce all samples in one call if there is a kernel for them; return whether there is."""
        return False

    def compute_samples(self, workspace: Workspace[tuple[int, ...]], shapes: Sequence[Shape]) -> None:
        batch = None if workspace.failures else SamplesToReduce.of(workspace)
        if batch is None or not self.reduce_batch(batch):
            super().compute_samples(workspace, shapes)

    def compute(self, sample: Sample[tuple[int, ...]]) -> None:
        target = sample.outputs[0]
        with np.errstate(all="ignore"):
            result = self.reduce(sample.inputs[0], sample.workspace.state, sample, target.dtype)
        target[...] = np.asarray(result).reshape(target.shape)

    def compute_batch(self, workspace: Workspace[tuple[int, ...]]) -> None:
        from penstock.kernels.cuda import reduction
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.window import WindowCopy, copy_windows

        samples, axes = workspace.live, workspace.state
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        if self.merge != "Add" and not axes:
            # The minimum or maximum of a single element is the element itself, even NaN or an infinity.
            copy_windows([WindowCopy(source.flat(), target.flat()) for source, target in zip(sources, targets)])
            return
        means = locate_all(workspace.inputs[1], samples) if len(workspace.inputs) > 1 else [None] * len(samples)
        jobs = []
        for source, target, mean in zip(sources, targets, means):
            if mean is not None:
                check_mean(mean, target.shape)
            divisor: float | None = None
            if self.divides:
                divisor = reduced_count(source.shape, axes) - self.args.get("ddof", 0)
            if mean is not None and source.shape and not axes:
                # As on the CPU, if no dimension is reduced, the deviation of each element is zero.
                divisor = math.inf
            jobs.append(reduction.Reduction(source, target, axes, mean, divisor))
        kind = numpy_dtype(workspace.outputs[0].dtype)
        # Floating-point sums are in double precision, but differences from means are squared in single precision.
        total = np.dtype(np.float64) if kind.kind == "f" and self.merge == "Add" else kind
        value = np.dtype(np.float32) if len(workspace.inputs) > 1 else total
        reduction.reduce_axes(jobs, self.merge, self.squares, self.root, value, total)


class TypedReduction(Reduction):
    """Base class of reductions whose ``dtype`` argument chooses one of a few output types."""

    def possible_types(self, dtype: DALIDataType) -> tuple[DALIDataType, ...]:
        """Return the possible output types for an input type, the default first."""
        raise NotImplementedError(f"{type(self).__name__} must declare its output types")

    def result_type(self, dtype: DALIDataType) -> DALIDataType:
        possible, wanted = self.possible_types(dtype), self.args["dtype"]
        if wanted is None:
            return possible[0]
        if wanted not in possible:
            names = " or ".join(dict.fromkeys(map(dtype_name, possible)))
            raise RuntimeError(
                f"Unsupported types: the output for {dtype_name(dtype)} input is {names}, not {dtype_name(wanted)}"
            )
        return wanted


class Deviation(Reduction):
    """Base class of reductions of squared distances from a mean, which is the second input."""

    squares = True
    divides = True

    def result_type(self, dtype: DALIDataType) -> DALIDataType:
        return FLOAT

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        described = super().describe(workspace)
        if workspace.inputs[1].dtype != FLOAT:
            raise RuntimeError(f"The mean must be of type float, got {dtype_name(workspace.inputs[1].dtype)}")
        return described

    def variance(self, data: np.ndarray, axes: tuple[int, ...], sample: Sample) -> Any:
        """Return the sum of squared differences from the second input, divided by the number of elements minus `ddof`."""
        from penstock.kernels.cpu.tree_sums import tree_sums

        mean, ddof = sample.inputs[1], self.args["ddof"]
        check_mean(mean, kept_extents(data.shape, axes))
        if data.ndim and not axes:
            # As in DALI, if no dimension is reduced, the deviation of each element is zero, whatever the mean.
            return np.zeros(data.shape, np.float32)
        denominator = np.float64(reduced_count(data.shape, axes) - ddof)
        if not data.ndim:
            return np.square(np.subtract(data, mean, dtype=np.float32, casting="unsafe")) / denominator
        return tree_sums(data, axes, centre=mean) * np.float32(1 / denominator)


def kept_extents(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the extents of the dimensions that are not reduced."""
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def reduced_count(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """Return the number of elements that are reduced to one result."""
    return math.prod(shape[axis] for axis in axes)


def widest(dtype: DALIDataType) -> DALIDataType:
    """Return the type in which sums are computed: FLOAT for FLOAT, otherwise INT64 or UINT64."""
    if dtype == FLOAT:
        return FLOAT
    return INT64 if numpy_dtype(dtype).kind == "i" else UINT64


def mean_of(data: np.ndarray, axes: tuple[int, ...], kind: np.dtype, square: bool) -> np.ndarray:
    """Return the mean of the elements or, with ``square``, of their squares, as type ``kind``.

    For a floating-point type, the mean is computed in float32. For an integer type, elements are summed in that type, wrapping around,
    and the quotient is truncated.
    """
    count = reduced_count(data.shape, axes)
    if kind.kind == "f":
        return sum_in_single(data, axes, square) * np.float32(1 / np.float64(count))
    if square:
        data = data.astype(kind)
        data *= data
    total = folded(np.add, data, axes, dtype=kind)
    if not count:
        return np.zeros(total.shape, kind)
    quotient = np.trunc(total.astype(np.float64) / count)
    return quotient.astype(kind)


def sum_in_single(data: np.ndarray, axes: tuple[int, ...], square: bool) -> np.ndarray:
    """Return the sums of the elements or, with ``square``, of their squares, as float32, with the same rounding errors as DALI's."""
    from penstock.kernels.cpu import moments
    from penstock.kernels.cpu.tree_sums import sums_of_narrow_integers, tree_sums

    if not axes:
        values = data.astype(np.int64 if data.dtype.kind != "f" and square else np.float32)
        return (np.square(values) if square else values).astype(np.float32)
    volumes = moments.around(data, axes)
    if volumes is not None:
        sums = sums_of_narrow_integers(np.ascontiguousarray(data), volumes, square)
        if sums is not None:
            return sums.reshape(kept_extents(data.shape, axes))
    return tree_sums(data, axes, square)


def extreme(data: np.ndarray, axes: tuple[int, ...], largest: bool) -> np.ndarray:
    """Return the smallest or largest elements. Without elements or with NaN only, the result is the type's largest finite value, or its
    lowest one for ``largest``.
    """
    if not axes:
        return data
    limits: Any = np.finfo(data.dtype) if data.dtype.kind == "f" else np.iinfo(data.dtype)
    start = limits.min if largest else limits.max
    shape = kept_extents(data.shape, axes)
    if not reduced_count(data.shape, axes):
        return np.full(shape, start, data.dtype)
    # `fmin` and `fmax` ignore NaN.
    choose = np.fmax if largest else np.fmin
    if data.dtype.kind != "f" and sorted(axes) == list(range(len(shape), data.ndim)):
        # Join the reduced dimensions: numpy reduces one long row with vector instructions. For floats, that could change which of two
        # zeros with different signs is the result.
        data, axes = data.reshape(*shape, -1), (len(shape),)
    return choose(folded(choose, data, axes), start)


def check_mean(mean: Any, kept: tuple[int, ...]) -> None:
    """Raise RuntimeError unless there is one mean for all output elements, or one for each; ``kept``: the output's shape."""
    if mean.size not in (1, math.prod(kept)):
        raise RuntimeError(f"The mean of shape {list(mean.shape)} does not fit an output of shape {list(kept)}")
