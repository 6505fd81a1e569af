"""`numba_function`: calls a function compiled by Numba."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from penstock.data_types import dtype_name, numpy_dtype
from penstock.operators.python._calling import check_function
from penstock.schema import Argument, Input, Operator, Sample, Schema, Workspace, register_operator
from penstock.schema.operator import OutputSpec
from penstock.tensors.cuda import require_cupy


class NumbaCallbacks(NamedTuple):
    """The user's functions.

    Attributes:
        run: fills the outputs.
        setup: fills the outputs' shapes; None: each output has the shape of the input with the same number.
    """

    run: Callable[..., Any]
    setup: Callable[..., Any] | None = None


@register_operator
class NumbaFunction(Operator):
    """Calls a function compiled by Numba: ``run_fn(out0, ..., in0, ...)`` fills the output arrays.

    Without ``setup_fn``, each output has the shape of the input with the same number.
    """

    schema = Schema(
        name="NumbaFunction",
        inputs=(Input("input_0", doc="1 to 6 batches of the declared types and ranks."),),
        variadic=True,
        max_inputs=6,
        arguments=(
            Argument(
                "batch_processing", "bool", False, "Call the function once per batch, with lists of samples; CPU only."
            ),
            Argument("blocks", "int32[]", None, "GPU: the three extents of the grid, in blocks."),
            Argument("in_types", "DALIDataType[]", None, "Types of the inputs.", required=True),
            Argument("ins_ndim", "int32[]", None, "Ranks of the inputs.", required=True),
            Argument("out_types", "DALIDataType[]", None, "Types of the outputs.", required=True),
            Argument("outs_ndim", "int32[]", None, "Ranks of the outputs.", required=True),
            Argument("run_fn", "object", None, "The function to call.", required=True, hidden=True, apart=True),
            Argument(
                "setup_fn",
                "object",
                None,
                "The function that returns the shapes.",
                hidden=True,
                apart=True,
            ),
            Argument("threads_per_block", "int32[]", None, "GPU: the three extents of a block, in threads."),
        ),
        outputs=lambda arguments: len(arguments["out_types"]),
        no_prune=True,
        unswept="its function is its user's",
    )

    def bind(self, payload: Any) -> None:
        payload = check_function(payload)
        callbacks = payload if isinstance(payload, NumbaCallbacks) else NumbaCallbacks(payload)
        self._setup_function = callbacks.setup
        if callbacks.setup is None and len(self.args["out_types"]) > len(self.args["in_types"]):
            raise RuntimeError("Outputs without an input at the same position need `setup_fn` for their shapes")
        self._function = compiled(callbacks.run, self.args, self.device)

    def describe(self, workspace: Workspace) -> Sequence[OutputSpec]:
        for index, (batch, dtype, ndim) in enumerate(
            zip(workspace.inputs, self.args["in_types"], self.args["ins_ndim"], strict=True)
        ):
            if batch.dtype != dtype:
                raise RuntimeError(
                    f"Input {index} holds {dtype_name(batch.dtype)}, and `in_types` promises {dtype_name(dtype)}"
                )
            if batch.ndim() != ndim:
                raise RuntimeError(f"Input {index} has {batch.ndim()} dimensions, and `ins_ndim` promises {ndim}")
        workspace.state = self._shapes(workspace)
        return [OutputSpec(dtype, "", ndim) for dtype, ndim in zip(self.args["out_types"], self.args["outs_ndim"])]

    def _shapes(self, workspace: Workspace) -> Sequence[Sequence[object]]:
        """Return, for each output, the shapes of its samples."""
        ranks = self.args["outs_ndim"]
        if self._setup_function is None:
            for index, (batch, ndim) in enumerate(zip(workspace.inputs, ranks)):
                if batch.ndim() != ndim:
                    raise RuntimeError(
                        f"Output {index} is to have {ndim} dimensions: without `setup_fn` it has those of its input, {batch.ndim()}"
                    )
            return [batch.shapes for batch in workspace.inputs]
        outputs = [[np.zeros(ndim, np.int64) for _ in range(workspace.batch_size)] for ndim in ranks]
        self._setup_function(
            outputs, [[np.array(shape, np.int64) for shape in batch.shapes] for batch in workspace.inputs]
        )
        return outputs

    def infer(self, sample: Sample) -> Any:
        shapes = sample.workspace.state
        return [tuple(map(int, shapes[number][sample.index])) for number in range(len(self.args["out_types"]))]

    is_cheap_on_host = False
    repeatable = False

    def run_batch(self, workspace: Workspace) -> None:
        if not self.args["batch_processing"]:
            super().run_batch(workspace)
            return
        from numba.typed import List

        specs = self.describe(workspace)
        workspace.outputs = [
            workspace.allocate(s, spec) for s, spec in zip(self.infer_samples(workspace, specs), specs)
        ]
        live = [sample.index for sample in workspace.live]
        if live:
            batches = [*workspace.outputs, *workspace.inputs]
            self._function(*(List([np.ascontiguousarray(batch.samples[i]) for i in live]) for batch in batches))

    def compute(self, sample: Sample) -> None:
        self._function(*sample.outputs, *map(np.ascontiguousarray, sample.inputs))

    def compute_batch(self, workspace: Workspace) -> None:
        from numba import cuda

        cupy = require_cupy()
        # Numba has a current device of its own, which must be CuPy's.
        with cuda.gpus[cupy.cuda.Device().id]:
            stream = cuda.external_stream(cupy.cuda.get_current_stream().ptr)
            launch = self._function[tuple(self.args["blocks"]), tuple(self.args["threads_per_block"]), stream]
            for sample in workspace.live:
                launch(*sample.outputs, *map(cupy.ascontiguousarray, sample.inputs))


def compiled(function: object, arguments: dict[str, Any], device: str) -> Any:
    """Return the function, compiled for the types and ranks that the operator's arguments declare.

    Raises:
        numba.core.errors.NumbaError: the function does not compile.
    """
    types = (*arguments["out_types"], *arguments["in_types"])
    ranks = (*arguments["outs_ndim"], *arguments["ins_ndim"])
    return _compiled(getattr(function, "py_func", function), types, ranks, arguments["batch_processing"], device)


# Cached because a function is compiled when `fn.numba_function` is called, so that errors show there, and again when the pipeline is
# built.
@functools.lru_cache(maxsize=64)
def _compiled(function: Any, types: tuple[Any, ...], ranks: tuple[int, ...], batches: bool, device: str) -> object:
    import numba

    if device == "gpu":
        from numba import cuda

        return cuda.jit(function)
    arrays = [
        numba.types.Array(numba.from_dtype(np.dtype(numpy_dtype(dtype))), ndim, "C")
        for dtype, ndim in zip(types, ranks)
    ]
    dispatcher = numba.njit(nogil=True)(function)
    dispatcher.compile(tuple(map(numba.types.ListType, arrays) if batches else arrays))
    return dispatcher
