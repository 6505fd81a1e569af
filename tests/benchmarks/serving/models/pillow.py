"""Pillow and numpy in a plain Triton Python model: a typical first implementation."""

import io

import numpy as np
import triton_python_backend_utils as pb_utils
from PIL import Image

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


class TritonPythonModel:
    def execute(self, requests):
        return [self.respond(pb_utils.get_input_tensor_by_name(request, "encoded_image")) for request in requests]

    def respond(self, tensor):
        images = np.stack([preprocess(encoded) for encoded in tensor.as_numpy().reshape(-1)])
        return pb_utils.InferenceResponse([pb_utils.Tensor("image", images)])


def preprocess(encoded):
    image = Image.open(io.BytesIO(encoded)).convert("RGB")
    scale = 256 / min(image.size)
    width, height = (round(extent * scale) for extent in image.size)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (width - 224) // 2, (height - 224) // 2
    image = image.crop((left, top, left + 224, top + 224))
    pixels = (np.asarray(image, np.float32) / 255 - MEAN) / STD
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))
