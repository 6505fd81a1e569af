"""``python -m penstock.serving.warming``: compiles the kernels that served images need, so that no server waits for
that.

In a checkout, the kernels of usual pipelines are compiled into Penstock's library. Numba compiles all others here (all kernels, if the
package was installed without a library), and caches them beside the package or in the user's cache.
"""

from __future__ import annotations

import sys

from penstock import fn, pipeline_def, types
from penstock.core.compiling import checkout
from penstock.graph import DataNode
from penstock.serving.probing import probe


@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def usual() -> DataNode:
    """Return the usual preprocessing for image networks."""
    images = fn.decoders.image(fn.external_source(name="encoded"))
    small = fn.resize(images, resize_shorter=256)
    return fn.crop_mirror_normalize(small, crop=(224, 224), dtype=types.FLOAT, mean=[124.0] * 3, std=[58.0] * 3)


if __name__ == "__main__":
    if checkout() is not None:
        from penstock.kernels.building import build_here

        built = build_here(first=True)
        print(*built.failures, built, sep="\n", file=sys.stderr)
    probe(usual())
