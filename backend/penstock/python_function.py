"""Operators that call the user's functions: `fn.python_function` and similar ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.data_types import DALIDataType
from penstock.graph import DataNode, call_operator, no_current_pipeline, scope_stack
from penstock.schema.namespaces import written_out
from penstock.schema.op_schema import Described
from penstock.tensors.cuda import device_count, require_cupy

__all__ = [
    "DLTensorPythonFunction",
    "NumbaFunction",
    "PythonFunction",
    "TorchPythonFunction",
    "call_python",
    "dl_tensor_python_function",
    "numba_function",
    "python_function",
    "torch_python_function",
]


def call_python(
    schema: str,
    inputs: Sequence[Any],
    function: Any,
    num_outputs: int,
    output_layouts: str | Sequence[str] | None,
    arguments: dict[str, Any],
    display: str,
) -> Any:
    """Add an operator that calls ``function``; return its node, or a list of nodes unless ``num_outputs`` is 1."""
    if isinstance(output_layouts, str):
        output_layouts = [output_layouts] * num_outputs
    own = dict(arguments, num_outputs=num_outputs, output_layouts=output_layouts)
    nodes = _add_operator(schema, inputs, function, own, display)
    return nodes if num_outputs else []


def _add_operator(schema: str, inputs: Sequence[Any], payload: Any, arguments: dict[str, Any], display: str) -> object:
    if not scope_stack():
        raise no_current_pipeline(display)
    for item in inputs:
        if isinstance(item, list) and any(isinstance(node, DataNode) for node in item):
            raise TypeError(
                "Expected inputs of type `DataNode`. Received input of type 'list'. "
                "Python Operators do not support Multiple Input Sets."
            )
    device, name = arguments.pop("device", None), arguments.pop("name", None)
    return call_operator(schema, inputs, arguments, device, name, display, payload)


@written_out("fn.python_function")
def python_function(
    *inputs: object,
    function: Callable[..., object],
    num_outputs: int = 1,
    batch_processing: bool = False,
    output_layouts: str | Sequence[str] | None = None,
    device: str | None = None,
    name: str | None = None,
    **arguments: object,
) -> Any:
    """Call a Python function with numpy arrays, or on the GPU with CuPy arrays on the pipeline's stream.

    Args:
        inputs: any number of nodes.
        function: takes an array for each input, and returns an array, or a tuple of several; the result is copied. It must
            not modify its inputs. In a saved pipeline, it is stored as its import path.
        num_outputs: the number of arrays that the function returns; 0: it returns None, and is called for its side effects.
        batch_processing: whether to call the function once per batch, with lists of arrays, rather than once per sample.
        output_layouts: the layout of all outputs, or a list with the layout of each.

    Returns:
        The node, or a list of nodes unless ``num_outputs`` is 1.

    Raises:
        RuntimeError: in a run, the function raises an error, or does not return arrays.

    >>> flipped = fn.python_function(images, function=np.flipud, output_layouts="HWC")  # doctest: +SKIP
    """
    own = dict(arguments, batch_processing=batch_processing, device=device, name=name)
    return call_python(
        "PythonFunction", inputs, function, num_outputs, output_layouts, own, "penstock.fn.python_function"
    )


@written_out("fn.dl_tensor_python_function")
def dl_tensor_python_function(
    *inputs: object,
    function: Callable[..., object],
    num_outputs: int = 1,
    batch_processing: bool = True,
    output_layouts: str | Sequence[str] | None = None,
    synchronize_stream: bool = True,
    device: str | None = None,
    name: str | None = None,
    **arguments: object,
) -> Any:
    """Call a Python function with DLPack capsules; see :func:`python_function`.

    Args:
        function: takes DLPack capsules, and returns capsules or objects with ``__dlpack__``.
        batch_processing: whether to call the function once per batch, with lists of capsules.
        synchronize_stream: whether to wait for the pipeline's GPU work before the call.
    """
    own = dict(
        arguments, batch_processing=batch_processing, synchronize_stream=synchronize_stream, device=device, name=name
    )
    return call_python(
        "DLTensorPythonFunction",
        inputs,
        function,
        num_outputs,
        output_layouts,
        own,
        "penstock.fn.dl_tensor_python_function",
    )


@written_out("fn.torch_python_function")
def torch_python_function(
    *inputs: object,
    function: Callable[..., object],
    num_outputs: int = 1,
    batch_processing: bool = False,
    output_layouts: str | Sequence[str] | None = None,
    device: str | None = None,
    name: str | None = None,
    **arguments: object,
) -> Any:
    """Call a Python function with PyTorch tensors; on the GPU, on the pipeline's stream. See :func:`python_function`."""
    own = dict(arguments, batch_processing=batch_processing, device=device, name=name)
    return call_python(
        "TorchPythonFunction", inputs, function, num_outputs, output_layouts, own, "penstock.fn.torch_python_function"
    )


class _Wrapper(Described):
    """Base class of a function as an operator class: arguments are set at construction or at the call."""

    _call: Callable[..., Any]

    def __init__(
        self,
        function: Callable[..., Any],
        num_outputs: int = 1,
        device: str = "cpu",
        batch_processing: bool = False,
        **kwargs: Any,
    ) -> None:
        own = {"num_outputs": num_outputs, "device": device, "batch_processing": batch_processing}
        self._arguments = dict(kwargs, function=function, **own)

    @property
    def device(self) -> str:
        """The device of the operator."""
        return self._arguments["device"]

    @property
    def num_outputs(self) -> int:
        """The number of outputs of each call."""
        return self._arguments["num_outputs"]

    @property
    def preserve(self) -> bool:
        """Whether the operator runs even if no output depends on it: always, as the function may have side effects."""
        return True

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        """Return the nodes of the function's outputs."""
        return type(self)._call(*inputs, **(self._arguments | kwargs))


@written_out("ops.PythonFunction")
class PythonFunction(_Wrapper):
    """:func:`python_function` as an operator class."""

    _call = staticmethod(python_function)
    schema_name = "PythonFunction"

    @staticmethod
    def current_stream() -> Any:
        """Return the CuPy stream of the pipeline that calls the function."""
        return require_cupy().cuda.get_current_stream()


@written_out("ops.DLTensorPythonFunction")
class DLTensorPythonFunction(_Wrapper):
    """:func:`dl_tensor_python_function` as an operator class."""

    _call = staticmethod(dl_tensor_python_function)
    schema_name = "DLTensorPythonFunction"

    def __init__(
        self,
        function: Callable[..., Any],
        num_outputs: int = 1,
        device: str = "cpu",
        synchronize_stream: bool = True,
        batch_processing: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            function, num_outputs, device, batch_processing, synchronize_stream=synchronize_stream, **kwargs
        )


@written_out("ops.TorchPythonFunction")
class TorchPythonFunction(_Wrapper):
    """:func:`torch_python_function` as an operator class."""

    _call = staticmethod(torch_python_function)
    schema_name = "TorchPythonFunction"


@written_out("fn.numba_function")
def numba_function(
    *inputs: Any,
    run_fn: Callable[..., Any],
    out_types: Any,
    in_types: Any,
    outs_ndim: Any,
    ins_ndim: Any,
    setup_fn: Callable[..., Any] | None = None,
    batch_processing: bool = False,
    blocks: Sequence[int] | None = None,
    threads_per_block: Sequence[int] | None = None,
    device: str | None = None,
    name: str | None = None,
    **arguments: Any,
) -> Any:
    """Call a function compiled by Numba, which fills preallocated arrays.

    Args:
        inputs: 1 to 6 nodes.
        run_fn: ``run_fn(out0, ..., in0, ...)`` which gets the arrays of one sample; on the GPU, a CUDA kernel.
        out_types, in_types: the types of outputs and inputs: a DALIDataType, or a list with one for each.
        outs_ndim, ins_ndim: the ranks of outputs and inputs.
        setup_fn: ``setup_fn(outs, ins)`` writes the outputs' shapes: ``outs[number][sample][dimension]``. By default
            they are the shapes of the inputs.
        batch_processing: whether ``run_fn`` takes lists with the arrays of all samples. CPU only.
        blocks, threads_per_block: the three extents of the grid and of a block, on the GPU.

    Raises:
        AssertionError: lists of types and ranks differ in length, or ``blocks`` or ``threads_per_block`` is not three positive numbers.
        RuntimeError: a type is float16; or, in a run, types or ranks are not as declared, or ``run_fn`` raises an error.
        numba.core.errors.NumbaError: ``run_fn`` does not compile.

    >>> def double(out, image):
    ...     out[:] = image * 2
    >>> bright = numba_function(  # doctest: +SKIP
    ...     images, run_fn=double, out_types=types.UINT8, in_types=types.UINT8, outs_ndim=3, ins_ndim=3
    ... )
    """
    from penstock.operators.python.numba_function import NumbaCallbacks, compiled

    types = {"out_types": _listed(out_types), "in_types": _listed(in_types)}
    ranks = {"outs_ndim": _listed(outs_ndim), "ins_ndim": _listed(ins_ndim)}
    if len(types["out_types"]) != len(ranks["outs_ndim"]) or len(types["in_types"]) != len(ranks["ins_ndim"]):
        raise AssertionError(
            "`in_types` must have as many entries as `ins_ndim`, and `out_types` as many as `outs_ndim`"
        )
    if DALIDataType.FLOAT16 in [*types["out_types"], *types["in_types"]]:
        raise RuntimeError("Numba does not support float16")
    chosen = device or ("gpu" if any(getattr(node, "device", "") == "gpu" for node in inputs) else "cpu")
    own = dict(arguments, batch_processing=batch_processing, device=chosen, name=name, **types, **ranks)
    if chosen == "gpu":
        if batch_processing:
            raise AssertionError("On a GPU, functions process samples, not batches: leave out `batch_processing`")
        own |= {
            "blocks": _extents("blocks", blocks),
            "threads_per_block": _extents("threads_per_block", threads_per_block),
        }
    else:
        compiled(run_fn, own, "cpu")
    payload = run_fn if setup_fn is None else NumbaCallbacks(run_fn, setup_fn)
    display = "penstock.plugin.numba.fn.numba_function"
    return _add_operator("NumbaFunction", inputs, payload, own, display)


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _extents(name: str, value: Sequence[int] | None) -> list[int]:
    if value is None or len(value) != 3 or min(value) <= 0:
        raise AssertionError(f"`{name}` must be three positive numbers, got {value}")
    return list(value)


@written_out("ops.NumbaFunction")
class NumbaFunction(Described):
    """:func:`numba_function` as an operator class."""

    schema_name = "NumbaFunction"

    def __init__(
        self,
        run_fn: Callable[..., Any],
        out_types: Any,
        in_types: Any,
        outs_ndim: Any,
        ins_ndim: Any,
        setup_fn: Callable[..., Any] | None = None,
        device: str = "cpu",
        batch_processing: bool = False,
        blocks: Sequence[int] | None = None,
        threads_per_block: Sequence[int] | None = None,
        **kwargs: Any,
    ) -> None:
        self._arguments = dict(
            kwargs,
            run_fn=run_fn,
            out_types=out_types,
            in_types=in_types,
            outs_ndim=outs_ndim,
            ins_ndim=ins_ndim,
            setup_fn=setup_fn,
            device=device,
            batch_processing=batch_processing,
            blocks=blocks,
            threads_per_block=threads_per_block,
        )

    @staticmethod
    def _check_minimal_numba_version(throw: bool = True) -> bool:
        """Return True. DALI's programs call this to ask whether numba is recent enough to run functions on a GPU, and any version
        is.
        """
        return True

    @staticmethod
    def _check_cuda_compatibility(throw: bool = True) -> bool:
        """Return whether numba can run functions on a GPU here; called by programs written for DALI."""
        return device_count() > 0

    @property
    def device(self) -> str:
        """The device of the operator."""
        return self._arguments["device"]

    @property
    def preserve(self) -> bool:
        """Whether the operator runs even if no output depends on it: always, as the function may have side effects."""
        return True

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        """Return the nodes of the function's outputs."""
        return numba_function(*inputs, **(self._arguments | kwargs))
