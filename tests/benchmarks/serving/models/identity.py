"""A Python model that answers immediately with an output of the configured size, which shows the cost of Triton and its Python backend."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        (output,) = json.loads(args["model_config"])["output"]
        self.name = output["name"]
        self.images = np.zeros((64, *(int(extent) for extent in output["dims"])), np.float32)

    def execute(self, requests):
        return [self.respond(request.inputs()[0]) for request in requests]

    def respond(self, tensor):
        tensor.as_numpy()
        return pb_utils.InferenceResponse([pb_utils.Tensor(self.name, self.images[: tensor.shape()[0]])])
