"""Real DALI in a plain Triton Python model, with the operators of pipelines/imagenet_preprocess.py."""

import os

import numpy as np
import triton_python_backend_utils as pb_utils
from nvidia.dali import fn, pipeline_def, types


@pipeline_def
def preprocess():
    encoded = fn.external_source(name="encoded_image", dtype=types.UINT8, ndim=1)
    images = fn.decoders.image(encoded, output_type=types.RGB)
    images = fn.resize(images, resize_shorter=256)
    return fn.crop_mirror_normalize(
        images,
        crop=(224, 224),
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
        dtype=types.FLOAT,
        output_layout="CHW",
    )


class TritonPythonModel:
    def initialize(self, args):
        self.pipeline = preprocess(
            batch_size=64,
            num_threads=len(os.sched_getaffinity(0)),
            device_id=None,
            prefetch_queue_depth=1,
            exec_async=False,
            exec_pipelined=False,
        )
        self.pipeline.build()

    def execute(self, requests):
        batches = [pb_utils.get_input_tensor_by_name(request, "encoded_image").as_numpy() for request in requests]
        encoded = [np.frombuffer(item, np.uint8) for batch in batches for item in batch.reshape(-1)]
        self.pipeline.feed_input("encoded_image", encoded)
        images = self.pipeline.run()[0].as_array()
        ends = np.cumsum([len(batch) for batch in batches])
        parts = np.split(images, ends[:-1])
        return [pb_utils.InferenceResponse([pb_utils.Tensor("image", part)]) for part in parts]
