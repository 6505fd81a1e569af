"""The base class of operators that call the user's functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from penstock.data_types import from_numpy_dtype
from penstock.errors import CallFailed
from penstock.schema import Argument, Input, Operator, Schema, Workspace
from penstock.schema.operator import OutputSpec
from penstock.tensors.cuda import require_cupy
from penstock.tensors.tensor import check_layout

_Function = TypeVar("_Function")


def python_schema(name: str, batch_processing: bool, *further: Argument) -> Schema:
    """Return the schema of an operator that calls a function.

    Args:
        name: the operator's name.
        batch_processing: the default of the operator's argument `batch_processing`.
        further: the operator's arguments in addition to those that all operators that call functions have.
    """
    return Schema(
        name=name,
        inputs=(Input("input", doc="Any number of batches of any kind."),),
        min_inputs=0,
        variadic=True,
        arguments=(
            Argument(
                "batch_processing",
                "bool",
                batch_processing,
                "Call the function once per batch, with lists of samples, rather than once per sample.",
            ),
            Argument("function", "object", None, "The function to call.", required=True, hidden=True, apart=True),
            Argument("num_outputs", "int32", 1, "The number of outputs that the function returns; several as a tuple."),
            Argument(
                "output_layouts", "layout[]", None, "Layouts of the outputs, in order; further outputs have none."
            ),
            *further,
        ),
        outputs=_count_outputs,
        stateful=True,
        no_prune=True,
        unswept="its function is its user's",
    )


def _count_outputs(arguments: dict[str, Any]) -> int:
    """Return the number of output nodes. A function without outputs gets a hidden one, so that the graph retains the operator."""
    return max(1, arguments.get("num_outputs", 1))


def check_function(function: _Function | None) -> _Function:
    """Return the operator's function; raise RuntimeError if there is none, as in pipelines that DALI saved: these contain an address of
    the function only.
    """
    if function is None:
        raise RuntimeError(
            "There is no function to call: only the readable format names functions, by their import path"
        )
    return function


class PythonOperator(Operator):
    """Base class of operators that call a function with samples as arrays of some library, and copy the results.

    Subclasses convert samples to the function's arguments (:meth:`given_value`), and the function's results to arrays
    (:meth:`taken_value`).
    """

    # Whether the first element is used if the function returns a tuple, but the operator has a single output.
    takes_first = True
    is_cheap_on_host = False
    lends_inputs = True

    def setup(self) -> None:
        layouts = self.args["output_layouts"] or ()
        if len(layouts) > self.args["num_outputs"]:
            raise RuntimeError(
                f"The length of `output_layouts` ({len(layouts)}) is greater than the number of outputs ({self.args['num_outputs']})"
            )
        self._function: Callable[..., object] | None = None

    def bind(self, payload: Any) -> None:
        self._function = check_function(payload)

    def given_value(self, sample: object) -> object:
        """Return the argument to pass to the function for a sample, which is a numpy array, or on the GPU a CuPy array."""
        return sample

    def taken_value(self, result: object) -> Any:
        """Convert one of the function's results to an array; raise TypeError if it is not an array of the library."""
        raise NotImplementedError

    def call(self, *values: object) -> Any:
        """Call the function; subclasses override this to select a device or stream around the call."""
        assert self._function is not None
        return self._function(*values)

    def run(self, workspace: Workspace) -> None:
        live = [index for index in range(workspace.batch_size) if index not in workspace.failures]
        if self.args["batch_processing"]:
            results = self._call_on_batch(workspace, live) if live else {}
        else:
            results = self._call_on_samples(workspace, live)
        workspace.outputs = [
            self._batch(workspace, number, {index: row[number] for index, row in results.items()})
            for number in range(self.args["num_outputs"])
        ] or [self._nothing(workspace)]
        if len(workspace.inputs) == 1 and self.args["num_outputs"]:
            for output in workspace.outputs:
                output.source_infos = workspace.inputs[0].source_infos

    def _call_on_samples(self, workspace: Workspace, live: Sequence[int]) -> dict[int, Sequence[object]]:
        results: dict[int, Sequence[object]] = {}
        for index in live:
            try:
                values = [self.given_value(batch.samples[index]) for batch in workspace.inputs]
                outputs = self._outputs(self._called(values))
                results[index] = [self.taken_value(output) for output in outputs]
            except Exception as error:
                workspace.fail(index, error)
        return results

    def _call_on_batch(self, workspace: Workspace, live: Sequence[int]) -> dict[int, Sequence[Any]]:
        values = [[self.given_value(batch.samples[index]) for index in live] for batch in workspace.inputs]
        outputs = self._outputs(self._called(values))
        for output in outputs:
            if not isinstance(output, list):
                raise TypeError(
                    f"With `batch_processing` the function returns a list of samples, got a {_name(output)}"
                )
            if len(output) != len(live):
                raise RuntimeError(f"The function returned {len(output)} samples for a batch of {len(live)}")
        rows = zip(*([self.taken_value(sample) for sample in output] for output in outputs))
        return dict(zip(live, rows if outputs else [()] * len(live)))

    def _called(self, values: Sequence[object]) -> Any:
        try:
            return self.call(*values)
        except Exception as error:
            raise CallFailed(f"{type(error).__name__}: {error}") from error

    def _outputs(self, result: object) -> Sequence[Any]:
        expected = self.args["num_outputs"]
        if result is None:
            if expected:
                raise RuntimeError(f"The function returned 0 outputs and {expected} were expected")
            return ()
        if not isinstance(result, tuple):
            if expected > 1:
                raise TypeError(f"The output of a function of several outputs must be a tuple, got: {_name(result)}")
            return (result,)[:expected]
        if expected == 1 and result and self.takes_first:
            return result[:1]
        if len(result) != expected:
            raise ValueError(
                f"Unexpected number of outputs of the function: got {len(result)}, expected {expected} (`num_outputs={expected}` "
                f"outputs, but returned {len(result)})"
            )
        return result

    def _batch(self, workspace: Workspace, number: int, arrays: dict[int, Any]) -> object:
        """Copy the arrays of output ``number`` to one batch, since the function may reuse their memory. Failed samples are empty."""
        layouts = self.args["output_layouts"] or ()
        layout = layouts[number] if number < len(layouts) else ""
        if not arrays:
            return workspace.allocate([], OutputSpec(from_numpy_dtype(np.uint8), "", 1))
        first = next(iter(arrays.values()))
        for array in arrays.values():
            if array.dtype != first.dtype:
                raise RuntimeError(f"The samples of an output differ in type: {first.dtype} and {array.dtype}")
            if array.ndim != first.ndim:
                raise RuntimeError(
                    "All samples of an output must have the same number of dimensions: "
                    f"there are {first.ndim} and {array.ndim}"
                )
        check_layout(layout, first.ndim)
        empty = (0,) * first.ndim
        shapes = [arrays[i].shape if i in arrays else empty for i in range(workspace.batch_size)]
        batch = workspace.allocate(shapes, OutputSpec(from_numpy_dtype(first.dtype), layout))
        for index, array in arrays.items():
            batch.samples[index][...] = array
        return batch

    @staticmethod
    def _nothing(workspace: Workspace) -> Any:
        return workspace.allocate([(0,)] * workspace.batch_size, OutputSpec(from_numpy_dtype(np.uint8)))


def _name(value: object) -> str:
    return type(value).__name__


def synchronize_stream() -> None:
    """Wait for the work on the current stream, before calling a function that uses another stream."""
    require_cupy().cuda.get_current_stream().synchronize()
