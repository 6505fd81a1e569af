"""The digits classifier: an ONNX network, run by onnxruntime in Triton's Python backend."""

import os
from pathlib import Path

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils

OUTPUTS = ("label", "scores")
NUMPY_1 = np.__version__.startswith("1.")


class TritonPythonModel:
    """Runs all requests of an execution through the network as one batch."""

    def initialize(self, args):
        """Loads the network that lies beside this file."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = len(os.sched_getaffinity(0))
        # Threads that spin while they wait would take the cores from pre-processing.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        network = Path(args["model_repository"]) / args["model_version"] / "model.onnx"
        self.session = onnxruntime.InferenceSession(str(network), options, providers=["CPUExecutionProvider"])

    def execute(self, requests):
        """One response for each request, with its part of the batch's labels and scores."""
        inputs = [_as_array(pb_utils.get_input_tensor_by_name(request, "image")) for request in requests]
        batch = inputs[0] if len(inputs) == 1 else np.concatenate(inputs)
        results = self.session.run(OUTPUTS, {"image": batch})
        self.results = results  # the server reads the memory of the responses after this returns
        ends = np.cumsum([len(images) for images in inputs])
        return [
            pb_utils.InferenceResponse([_as_tensor(name, part) for name, part in zip(OUTPUTS, parts)])
            for parts in zip(*(np.split(result, ends[:-1]) for result in results))
        ]


def _as_array(tensor):
    # Right whatever numpy the server's Python backend was built for; `as_numpy` is not.
    return np.from_dlpack(tensor)


def _as_tensor(name, array):
    if NUMPY_1:
        return pb_utils.Tensor(name, array)
    # Servers up to 24.10 do not know the arrays of numpy 2, but they know DLPack.
    return pb_utils.Tensor.from_dlpack(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
