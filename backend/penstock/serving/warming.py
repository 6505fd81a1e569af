"""``python -m penstock.serving.warming``: compiles the kernels that most served images need.

numba keeps what it compiled beside the package, or in the user's cache. Where this has run in an environment, the first
server that starts from it need not spend some twenty seconds on it before its models are ready.
"""

from __future__ import annotations

from typing import Any

from penstock import fn, pipeline_def, types
from penstock.serving.probing import probe


@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def usual() -> Any:
    """What stands before most networks for images."""
    images = fn.decoders.image(fn.external_source(name="encoded"))
    small = fn.resize(images, resize_shorter=256)
    return fn.crop_mirror_normalize(small, crop=(224, 224), dtype=types.FLOAT, mean=[124.0] * 3, std=[58.0] * 3)


if __name__ == "__main__":
    probe(usual())
