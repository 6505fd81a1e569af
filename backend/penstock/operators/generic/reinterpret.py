"""`reinterpret`: interprets the same bytes as another type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import DALIDataType, numpy_dtype
from penstock.kernels.reshaping import check_extents, reshaped
from penstock.operators.generic._new_shape import (
    DATA_AND_SHAPE,
    EXAMPLES,
    SHAPE_ARGUMENTS,
    check_one_shape,
    check_shapes,
    extents_from_input,
)
from penstock.schema import Argument, Equivalent, Operator, Sample, Schema, Workspace, register_operator
from penstock.tensors import TensorList


@register_operator
class Reinterpret(Operator):
    """Interprets the same bytes as another type and shape, without a copy."""

    schema = Schema(
        name="Reinterpret",
        moves_elements=True,
        inputs=DATA_AND_SHAPE,
        min_inputs=1,
        arguments=(
            Argument(
                "dtype", "DALIDataType", None, "Type of the output; by default that of the input.", with_bfloat16=True
            ),
            *SHAPE_ARGUMENTS,
        ),
        examples=EXAMPLES,
        equivalents=(Equivalent("numpy.ndarray.view"),),
    )

    def setup(self) -> None:
        check_extents(self.args["shape"])
        check_one_shape(self)

    def run(self, workspace: Workspace) -> None:
        check_one_shape(self, len(workspace.inputs) == 2)
        if len(workspace.inputs) == 1 and not any(self.given(a.name) for a in self.schema.arguments):
            raise RuntimeError("`reinterpret` is no-op: arguments specify neither new shape, layout nor type.")
        self._check_lists(workspace)
        check_shapes(workspace)
        batch = workspace.inputs[0]
        dtype = batch.dtype if self.args["dtype"] is None else self.args["dtype"]
        views = [self._view(workspace, index, numpy_dtype(dtype)) for index in range(len(batch))]
        good = [view for view in views if view is not None]
        if len({view.ndim for view in good}) > 1:
            shapes = [view.shape for view in good]
            raise RuntimeError(f"All samples must have the same number of dimensions, but the new shapes are {shapes}")
        layout = self.args["layout"]
        if layout is None:
            layout = batch.layout() if not good or good[0].ndim == batch.ndim() else ""
        ndim = good[0].ndim if good else len(layout)
        if layout and len(layout) != ndim:
            raise RuntimeError(f"Requested layout '{layout}' is not compatible with a {ndim}D shape")
        samples = [self._nothing(batch, dtype, ndim) if view is None else view for view in views]
        output = type(batch).of_samples(samples, layout, dtype, batch.ndim())
        output.source_infos = batch.source_infos
        workspace.outputs = [output]

    def _view(self, workspace: Workspace, index: int, kind: np.dtype) -> np.ndarray | None:
        """Return a view of the sample in its new type ``kind`` and new shape; None if the sample has failed."""
        if index in workspace.failures:
            return None
        try:
            return self._read_as(Sample(self, workspace, index), workspace.inputs[0].samples[index], kind)
        except RuntimeError as error:
            workspace.fail(index, error)
            return None

    def _read_as(self, sample: Sample, data: np.ndarray, kind: np.dtype) -> np.ndarray:
        shape, size_in, size_out = data.shape, data.dtype.itemsize, kind.itemsize
        wanted, relative = self._wanted(sample), sample.given("rel_shape")
        if wanted is None and sample["src_dims"] is not None:
            # `src_dims` reorders the dimensions before the last one is reinterpreted.
            shape = reshaped(shape, None, False, sample["src_dims"])
        if wanted is not None:
            whole = data.nbytes % size_out == 0
        else:
            whole = size_in == size_out or (len(shape) > 0 and shape[-1] * size_in % size_out == 0)
        if not whole:
            raise RuntimeError(
                "The size, in bytes, of the innermost dimension is not divisible by the sizes of the requested output type: "
                f"shape {list(shape)} for {kind.name}"
            )
        new = (*shape[:-1], shape[-1] * size_in // size_out) if size_in != size_out and shape else shape
        view = data.reshape(-1).view(kind)
        if wanted is not None:
            new = reshaped(shape, wanted, relative, sample["src_dims"], view.size)
        return view.reshape(new)

    @staticmethod
    def _nothing(batch: TensorList, dtype: DALIDataType, ndim: int) -> np.ndarray:
        """Return an empty array of the output's type and rank, for a sample that failed."""
        empty: np.ndarray = batch.emptied(range(len(batch))).samples[0].view(numpy_dtype(dtype))
        return empty.reshape((0,) * max(ndim, 1))

    @staticmethod
    def _wanted(sample: Sample) -> Sequence[float] | None:
        if len(sample.shapes) == 2:
            return extents_from_input(sample)
        return sample["rel_shape"] if sample.given("rel_shape") else sample["shape"]
