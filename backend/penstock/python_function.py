"""Functions of the user's own as operators: `fn.python_function` and its relatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.graph import call_operator, scope_stack
from penstock.tensors.cuda import require_cupy

__all__ = [
    "DLTensorPythonFunction",
    "PythonFunction",
    "TorchPythonFunction",
    "call_python",
    "dl_tensor_python_function",
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
    """Adds an operator that calls ``function``; gives its node, or a list of nodes unless there is exactly one."""
    if not scope_stack():
        raise RuntimeError(f"`{display}` can only be called while a pipeline is being defined")
    for item in inputs:
        if isinstance(item, list):
            raise TypeError(
                "Expected inputs of type `DataNode`. Received input of type 'list'. "
                "Python Operators do not support Multiple Input Sets."
            )
    if isinstance(output_layouts, str):
        output_layouts = [output_layouts] * num_outputs
    device, name = arguments.pop("device", None), arguments.pop("name", None)
    own = dict(arguments, num_outputs=num_outputs, output_layouts=output_layouts)
    nodes = call_operator(schema, inputs, own, device, name, display, function)
    return nodes if num_outputs else []


def python_function(
    *inputs: Any,
    function: Callable[..., Any],
    num_outputs: int = 1,
    batch_processing: bool = False,
    output_layouts: str | Sequence[str] | None = None,
    device: str | None = None,
    name: str | None = None,
    **arguments: Any,
) -> Any:
    """Calls a Python function with numpy arrays, or on the GPU with CuPy arrays on the pipeline's stream.

    Args:
        inputs: any number of nodes.
        function: gets an array for each input and returns one (several as a tuple); what it returns is copied. It must
            not change its inputs. Pipelines with it are saved by the function's import path.
        num_outputs: how many arrays it returns; 0: it returns None, and is called for what it does.
        batch_processing: call it once a batch, with lists of arrays, rather than once for every sample.
        output_layouts: the layout of all outputs, or a list: of each.

    Returns:
        The node, or a list of them where ``num_outputs`` is not 1.

    Raises:
        RuntimeError: at the run, where the function raises, or returns something else.

    >>> flipped = fn.python_function(images, function=np.flipud, output_layouts="HWC")  # doctest: +SKIP
    """
    own = dict(arguments, batch_processing=batch_processing, device=device, name=name)
    return call_python(
        "PythonFunction", inputs, function, num_outputs, output_layouts, own, "penstock.fn.python_function"
    )


def dl_tensor_python_function(
    *inputs: Any,
    function: Callable[..., Any],
    num_outputs: int = 1,
    batch_processing: bool = True,
    output_layouts: str | Sequence[str] | None = None,
    synchronize_stream: bool = True,
    device: str | None = None,
    name: str | None = None,
    **arguments: Any,
) -> Any:
    """Calls a Python function with DLPack capsules; see :func:`python_function`.

    Args:
        function: gets capsules, and returns capsules or tensors that speak DLPack.
        batch_processing: call it once a batch, with lists of capsules.
        synchronize_stream: wait for the pipeline's GPU work before the call.
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


def torch_python_function(
    *inputs: Any,
    function: Callable[..., Any],
    num_outputs: int = 1,
    batch_processing: bool = False,
    output_layouts: str | Sequence[str] | None = None,
    device: str | None = None,
    name: str | None = None,
    **arguments: Any,
) -> Any:
    """Calls a Python function with PyTorch tensors, on the GPU on the pipeline's stream; see :func:`python_function`."""
    own = dict(arguments, batch_processing=batch_processing, device=device, name=name)
    return call_python(
        "TorchPythonFunction", inputs, function, num_outputs, output_layouts, own, "penstock.fn.torch_python_function"
    )


class _Face:
    """The class face: arguments are given at construction or at the call."""

    _call: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], num_outputs: int = 1, device: str = "cpu", **arguments: Any):
        self._arguments = dict(arguments, function=function, num_outputs=num_outputs, device=device)

    @property
    def device(self) -> str:
        """Where it runs."""
        return self._arguments["device"]

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """The nodes of the function's outputs."""
        return type(self)._call(*inputs, **(self._arguments | arguments))


class PythonFunction(_Face):
    """:func:`python_function` as an operator class."""

    _call = staticmethod(python_function)

    @staticmethod
    def current_stream() -> Any:
        """The CuPy stream of the pipeline that calls the function."""
        return require_cupy().cuda.get_current_stream()


class DLTensorPythonFunction(_Face):
    """:func:`dl_tensor_python_function` as an operator class."""

    _call = staticmethod(dl_tensor_python_function)


class TorchPythonFunction(_Face):
    """:func:`torch_python_function` as an operator class."""

    _call = staticmethod(torch_python_function)
