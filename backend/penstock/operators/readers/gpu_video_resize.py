"""`readers.video_resize`: DALI's reader that decodes and resizes videos on the GPU. Does not run here."""

from __future__ import annotations

from penstock.operators.image._resizing import FILTER_ARGUMENTS, SIZE_ARGUMENTS
from penstock.operators.readers._gpu_video import VIDEO_ARGUMENTS, count_outputs
from penstock.schema import Alias, Operator, Schema, register_operator


@register_operator
class GpuVideoResize(Operator):
    """Does not run: use `experimental.readers.video` followed by `resize`.

    DALI decodes on the GPU's video engine.
    """

    schema = Schema(
        name="readers__VideoResize",
        devices=("gpu",),
        arguments=(*(a for a in FILTER_ARGUMENTS if a.name != "dtype"), *SIZE_ARGUMENTS, *VIDEO_ARGUMENTS),
        outputs=count_outputs,
        random=True,
        stateful=True,
        aliases=(Alias("VideoReaderResize", "1.0"),),
        absent="it decodes on the GPU's video engine; use `fn.experimental.readers.video`, followed by `fn.resize`",
    )
