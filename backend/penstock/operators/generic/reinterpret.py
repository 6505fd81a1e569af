"""`reinterpret`: reads the same bytes as another type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import numpy_dtype
from penstock.kernels.reshaping import check_extents, reshaped
from penstock.operators.generic._new_shape import extents_from_input
from penstock.schema import Argument, Equivalent, Input, Operator, Sample, Schema, Workspace, register_operator
from penstock.schema.samples import Example, fixed_arrays, pictures


@register_operator
class Reinterpret(Operator):
    """Reads the same bytes as another type and shape, without a copy."""

    schema = Schema(
        name="Reinterpret",
        inputs=(
            Input("data", doc="Data of any type and shape."),
            Input("shape_input", device="cpu", doc="The extents of the output: 1-D, of integers."),
        ),
        min_inputs=1,
        arguments=(
            Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input."),
            Argument("layout", "layout", None, "Layout of the output.", example="X"),
            Argument(
                "rel_shape",
                "float[]",
                None,
                "Extents relative to the input's; a negative one is inferred.",
                tensor=True,
            ),
            Argument("shape", "int32[]", None, "Extents of the output.", tensor=True),
            Argument(
                "src_dims",
                "int32[]",
                None,
                "The input dimension that each output extent comes from; -1: a new one of extent 1.",
                tensor=True,
            ),
        ),
        examples=(
            Example({"shape": [-1]}),
            Example({"rel_shape": [0.5, 2.0, 1.0]}),
            Example({"src_dims": [1, 0, 2]}),
            Example(inputs=(pictures, fixed_arrays([-1, 1], dtype=np.int32))),
        ),
        equivalents=(Equivalent("numpy.ndarray.view"),),
    )

    def setup(self) -> None:
        check_extents(self.args["shape"])
        if self.given("shape") and self.given("rel_shape"):
            raise RuntimeError("Shape input, `shape` argument and `rel_shape` argument are mutually exclusive")

    def run(self, workspace: Workspace) -> None:
        if len(workspace.inputs) == 1 and not any(self.given(a.name) for a in self.schema.arguments):
            raise RuntimeError("`reinterpret` is no-op: arguments specify neither new shape, layout nor type.")
        self._check_lists(workspace)
        batch = workspace.inputs[0]
        dtype = batch.dtype if self.args["dtype"] is None else self.args["dtype"]
        kind = numpy_dtype(dtype)
        size_in, size_out = numpy_dtype(batch.dtype).itemsize, kind.itemsize
        views = []
        for index, data in enumerate(batch.samples):
            sample = Sample(self, workspace, index)
            shape = data.shape
            wanted, relative = self._wanted(sample), sample.given("rel_shape")
            if wanted is None and sample["src_dims"] is not None:
                # Dimensions are reordered first, then the last one is reinterpreted.
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
            views.append(view.reshape(new))
        layout = self.args["layout"]
        if layout is None:
            layout = batch.layout() if not views or views[0].ndim == batch.ndim() else ""
        ndim = views[0].ndim if views else len(layout)
        if layout and len(layout) != ndim:
            raise RuntimeError(f"Requested layout '{layout}' is not compatible with a {ndim}D shape")
        output = type(batch).of_samples(views, layout, dtype, batch.ndim())
        output.source_infos = batch.source_infos
        workspace.outputs = [output]

    @staticmethod
    def _wanted(sample: Sample) -> Sequence[float] | None:
        if len(sample.shapes) == 2:
            return extents_from_input(sample)
        return sample["rel_shape"] if sample.given("rel_shape") else sample["shape"]
