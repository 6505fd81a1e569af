"""`readers.video`: DALI's reader that decodes videos on the GPU. Declared for compatibility; does not run."""

from __future__ import annotations

from penstock.operators.readers._gpu_video import VIDEO_ARGUMENTS, count_outputs
from penstock.schema import Alias, Operator, Schema, register_operator


@register_operator
class GpuVideo(Operator):
    """Does not run: use `experimental.readers.video`, which returns the same sequences, decoded on the CPU.

    DALI decodes on the GPU's video engine.
    """

    schema = Schema(
        name="readers__Video",
        devices=("gpu",),
        arguments=VIDEO_ARGUMENTS,
        outputs=count_outputs,
        random=True,
        stateful=True,
        aliases=(Alias("VideoReader", "1.0"),),
        absent="it decodes on the GPU's video engine; `fn.experimental.readers.video` reads the same on the CPU",
    )
