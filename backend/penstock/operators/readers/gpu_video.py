"""`readers.video`: reads sequences of frames from video files; has the arguments of DALI's reader for GPUs."""

from __future__ import annotations

from penstock.operators.readers._gpu_video import GPU_VIDEO_ARGUMENTS, GpuVideoReader
from penstock.operators.readers._video_reader import count_outputs
from penstock.schema import Alias, Schema, register_operator
from penstock.schema.libraries import PYAV


@register_operator
class GpuVideo(GpuVideoReader):
    """Returns sequences of frames (FHWC), then labels, frame numbers, timestamps and sound if requested.

    The same as `experimental.readers.video`, but some arguments have other names. A GPU's video engine (NVDEC) decodes the files that it
    supports, the CPU all others; with ``device="cpu"``, which DALI lacks, the CPU decodes all files. Needs PyAV:
    ``pip install penstock-triton[video]``.

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
