"""An ONNX network, run by onnxruntime in Triton's Python backend."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils

NUMPY_1 = np.__version__.startswith("1.")


class TritonPythonModel:
    """Runs all requests of an execution through the network as one batch."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the network in the folder of this file."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = len(os.sched_getaffinity(0))
        # Threads that spin while they wait would keep CPU cores from preprocessing.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        network = Path(args["model_repository"]) / args["model_version"] / "model.onnx"
        self.session = onnxruntime.InferenceSession(str(network), options, providers=["CPUExecutionProvider"])
        configuration = json.loads(args["model_config"])
        self.inputs, self.outputs = ([one["name"] for one in configuration[kind]] for kind in ("input", "output"))

    def execute(self, requests: list[Any]) -> list[Any]:
        """Return one response for each request, with the request's part of the batch's outputs."""
        # Triton only combines requests of equal shapes in an execution.
        inputs = {name: [_as_array(request, name) for request in requests] for name in self.inputs}
        batch = {name: arrays[0] if len(arrays) == 1 else np.concatenate(arrays) for name, arrays in inputs.items()}
        results = self.session.run(self.outputs, batch)
        self.results = results  # kept alive: the server reads the responses' memory after this method returns
        ends = np.cumsum([len(array) for array in inputs[self.inputs[0]]])
        return [
            pb_utils.InferenceResponse([_as_tensor(name, part) for name, part in zip(self.outputs, parts)])
            for parts in zip(*(np.split(result, ends[:-1]) for result in results))
        ]


def _as_array(request: Any, name: str) -> np.ndarray:
    # Unlike `as_numpy`, this works with each numpy version, whichever the server's Python backend was built for.
    return np.from_dlpack(pb_utils.get_input_tensor_by_name(request, name))


def _as_tensor(name: str, array: np.ndarray) -> Any:
    if NUMPY_1:
        return pb_utils.Tensor(name, array)
    # Servers up to 24.10 accept arrays of numpy 2 only through DLPack.
    return pb_utils.Tensor.from_dlpack(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
