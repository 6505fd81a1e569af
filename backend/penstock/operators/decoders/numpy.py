"""`decoders.numpy`: reads the contents of NPY files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.core.arrays import addresses
from penstock.data_types import (
    BOOL,
    FLOAT,
    FLOAT16,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DALIDataType,
    dtype_name,
    from_numpy_dtype,
    numpy_dtype,
)
from penstock.kernels.codecs.npy import view_npy
from penstock.operators.decoders._examples import npy_files
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.operator import Shape
from penstock.schema.tolerance import ON_ERROR
from penstock.tensors.places import places_of_samples

_OUTPUT_TYPES = (BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, FLOAT16, FLOAT, FLOAT64)


@register_operator
class Numpy(Operator[list[np.ndarray | None]]):
    """Reads arrays in numpy's file format.

    All arrays must have the same number of dimensions and, unless ``dtype`` is set, the same type as the first one. In a server, which
    isolates failures, this applies to each batch separately.

    >>> arrays = fn.decoders.numpy(encoded)  # doctest: +SKIP
    """

    schema = Schema(
        name="decoders__Numpy",
        devices=("cpu",),
        inputs=(Input("data", device="cpu", doc="Contents of NPY files: uint8 of shape (n,).", example=npy_files),),
        arguments=(
            Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the arrays."),
            ON_ERROR,
        ),
        equivalents=(Equivalent("numpy.load", "From files."),),
    )

    def setup(self) -> None:
        if self.args["dtype"] is not None and self.args["dtype"] not in _OUTPUT_TYPES:
            raise ValueError(f"Unsupported output type: {dtype_name(self.args['dtype'])}")
        self._dtype: DALIDataType | None = self.args["dtype"]
        self._ndim: int | None = None

    def describe(self, workspace: Workspace[list[np.ndarray | None]]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(batch) and batch.dtype not in (UINT8, INT8):
            raise ValueError(f"NPY files must be bytes (uint8), got {dtype_name(batch.dtype)}")
        if workspace.isolate:
            # Forget earlier batches: one client's arrays must not restrict which arrays other clients may send.
            self._dtype, self._ndim = self.args["dtype"], None
        workspace.state = [self._view(workspace, index, data) for index, data in enumerate(batch.samples)]
        for array in workspace.state:
            if array is not None:
                self._settle(array)
        return [OutputSpec(UINT8 if self._dtype is None else self._dtype, "", self._ndim)]

    def _settle(self, array: np.ndarray) -> None:
        """Check an array's type and number of dimensions against the first array's; the first array determines them.

        Raises:
            ValueError: they differ.
        """
        stored = from_numpy_dtype(array.dtype.newbyteorder("="))
        if self._ndim is None:
            self._ndim = array.ndim
        if self._dtype is None:
            self._dtype = stored
        if array.ndim != self._ndim:
            raise ValueError(
                "All samples in the dataset must have the same number of dimensions, but got differing sample dimensions: "
                f"{self._ndim} and {array.ndim}"
            )
        if self.args["dtype"] is None and stored != self._dtype:
            raise ValueError(
                "All samples in the dataset must have the same data type, but got differing types: "
                f"{dtype_name(self._dtype)} and {dtype_name(stored)}. Use `dtype` to convert them"
            )

    @staticmethod
    def _view(workspace: Workspace[list[np.ndarray | None]], index: int, data: np.ndarray) -> np.ndarray | None:
        if index in workspace.failures:
            return None
        try:
            return view_npy(np.ascontiguousarray(data).reshape(-1), whole=True)
        except ValueError as error:
            workspace.fail(index, error)
            return None

    def infer(self, sample: Sample[list[np.ndarray | None]]) -> list[tuple[int, ...]]:
        array = self._array(sample)
        itemsize = array.itemsize if self.args["dtype"] is None else numpy_dtype(self.args["dtype"]).itemsize
        sample.workspace.decoding.limits.check_bytes(array.size * itemsize, "The array")
        return [array.shape]

    @staticmethod
    def _array(sample: Sample[list[np.ndarray | None]]) -> np.ndarray:
        array = sample.workspace.state[sample.index]
        assert array is not None
        return array

    def compute_samples(self, workspace: Workspace[list[np.ndarray | None]], shapes: Sequence[Shape]) -> None:
        if not self._copy_arrays(workspace):
            super().compute_samples(workspace, shapes)

    @staticmethod
    def _copy_arrays(workspace: Workspace[list[np.ndarray | None]]) -> bool:
        """Copy all arrays in one call. Return False, without copying, if a sample has failed or an array must be converted."""
        from penstock.kernels.cpu.blocks import Blocks, copy_blocks

        arrays, output = [array for array in workspace.state if array is not None], workspace.outputs[0]
        if not arrays or workspace.failures or any(array.dtype != arrays[0].dtype for array in arrays):
            return False
        places, targets = addresses(arrays), places_of_samples(output)
        if places is None or targets is None or arrays[0].dtype != output.contiguous_elements().dtype:
            return False
        sizes = np.fromiter((array.nbytes for array in arrays), np.int64, len(arrays))
        copy_blocks(workspace, Blocks(places, targets, sizes, sizes, 1, sizes))
        return True

    def compute(self, sample: Sample[list[np.ndarray | None]]) -> None:
        source, target = self._array(sample), sample.outputs[0]
        if source.dtype.newbyteorder("=") == target.dtype:
            np.copyto(target, source)
        elif source.size:
            from penstock.kernels.cpu.casting import cast

            cast(np.ascontiguousarray(source, source.dtype.newbyteorder("=")), target)
