"""``python -m penstock.serving.warming``: compiles the kernels that most served images need.

numba caches compiled kernels beside the package, or in the user's cache. After this has run in an environment, its
first server doesn't spend some twenty seconds on them before its models are ready.
"""

from __future__ import annotations

from penstock import fn, pipeline_def, types
from penstock.graph import DataNode
from penstock.serving.probing import probe


@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def usual() -> DataNode:
    """The usual preprocessing for image networks."""
    images = fn.decoders.image(fn.external_source(name="encoded"))
    small = fn.resize(images, resize_shorter=256)
    return fn.crop_mirror_normalize(small, crop=(224, 224), dtype=types.FLOAT, mean=[124.0] * 3, std=[58.0] * 3)


if __name__ == "__main__":
    probe(usual())
