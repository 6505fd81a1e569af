"""`readers.video`: sequences of frames from video files, with the arguments of DALI's reader for GPUs."""

from __future__ import annotations

from penstock.operators.readers._gpu_video import GPU_VIDEO_ARGUMENTS, GpuVideoReader
from penstock.operators.readers._video_reader import count_outputs
from penstock.schema import Alias, Schema, register_operator
from penstock.schema.libraries import PYAV


@register_operator
class GpuVideo(GpuVideoReader):
    """Returns sequences of frames (FHWC), then labels, frame numbers, timestamps and sound if requested.

    `experimental.readers.video` with other names for its arguments. A GPU's video engine (NVDEC) decodes what it can, the CPU
    the rest; with ``device="cpu"`` (not in DALI) the CPU decodes everything. Needs PyAV: ``pip install penstock-triton[video]``.

    >>> clips = fn.readers.video(device="gpu", filenames=["a.mp4"], sequence_length=16)  # doctest: +SKIP
    """

    schema = Schema(
        name="readers__Video",
        devices=("cpu", "gpu"),
        needs=(PYAV,),
        arguments=GPU_VIDEO_ARGUMENTS,
        outputs=count_outputs,
        random=True,
        stateful=True,
        aliases=(Alias("VideoReader", "1.0"),),
    )
