"""`decoders.numpy`: arrays from the contents of NPY files."""

from __future__ import annotations

import numpy as np

from penstock.kernels.codecs.npy import view_npy
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.types import UINT8, dtype_name, from_numpy_dtype


@register_operator
class Numpy(Operator):
    """Reads arrays of numpy's file format; all arrays of a batch must be of one type and rank.

    >>> arrays = fn.decoders.numpy(encoded)  # doctest: +SKIP
    """

    schema = Schema(
        name="decoders__Numpy",
        devices=("cpu",),
        inputs=(Input("data", device="cpu", doc="Contents of NPY files: uint8 of shape (n,)."),),
        arguments=(Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the arrays."),),
    )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(batch) and batch.dtype != UINT8:
            raise ValueError(f"NPY files are bytes (uint8), got {dtype_name(batch.dtype)}")
        workspace.state = [self._view(workspace, index, data) for index, data in enumerate(batch.samples)]
        arrays = [array for array in workspace.state if array is not None]
        if not arrays:
            return [OutputSpec(self.args["dtype"] or UINT8, "")]
        first = arrays[0]
        for array in arrays:
            if array.dtype != first.dtype or array.ndim != first.ndim:
                raise ValueError(
                    "All arrays of a batch must be of one type and rank, got "
                    f"{first.ndim}-dimensional {first.dtype} and {array.ndim}-dimensional {array.dtype}"
                )
        stored = from_numpy_dtype(first.dtype.newbyteorder("="))
        return [OutputSpec(stored if self.args["dtype"] is None else self.args["dtype"], "", first.ndim)]

    @staticmethod
    def _view(workspace: Workspace, index: int, data: np.ndarray) -> np.ndarray | None:
        if index in workspace.failures:
            return None
        try:
            return view_npy(np.ascontiguousarray(data).reshape(-1))
        except ValueError as error:
            workspace.fail(index, error)
            return None

    def infer(self, sample: Sample) -> list[tuple[int, ...]]:
        return [sample.workspace.state[sample.index].shape]

    def compute(self, sample: Sample) -> None:
        source, target = sample.workspace.state[sample.index], sample.outputs[0]
        if source.dtype.newbyteorder("=") == target.dtype:
            np.copyto(target, source)
        elif source.size:
            from penstock.kernels.cpu.convert import cast

            cast(np.ascontiguousarray(source, source.dtype.newbyteorder("=")), target)
