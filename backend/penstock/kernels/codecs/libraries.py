"""The codec libraries, each loaded when it is first needed; None where an optional one is not installed."""

from __future__ import annotations

import functools
import os
import threading
from typing import Any

import numpy as np

_local = threading.local()


@functools.cache
def nvimgcodec() -> Any:
    """nvImageCodec's module, or None."""
    # Failures become exceptions that name the sample; by default the library writes each to stderr as well.
    os.environ.setdefault("PYNVIMGCODEC_VERBOSITY", "0")
    # OpenCV, inside of it, is no different.
    os.environ.setdefault("OPENCV_LOG_LEVEL", "OFF")
    try:
        from nvidia import nvimgcodec as module
    except ImportError:
        return None
    return module


@functools.cache
def simplejpeg() -> Any:
    """simplejpeg's module, or None.

    It is taken for whole JPEGs, as it decodes into the output itself: 3.9 ms where nvImageCodec and the copy behind it
    take 4.5 (1.1 megapixel, one thread), bit by bit the same.
    """
    try:
        import simplejpeg as module
    except ImportError:
        return None
    return module


@functools.cache
def pillow_image() -> Any:
    """The module ``PIL.Image``; raises ImportError, saying why it is needed, where Pillow is not installed."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("Pillow is needed to read this image: pip install pillow") from error
    return Image


def decode_on_cpu(stream: Any, parameters: Any, fast_idct: bool) -> np.ndarray | None:
    """The pixels of nvImageCodec's stream, in memory that this thread's next image is decoded into; None where it fails."""
    # Taken away while it is decoded into: after a failure nothing is known of it.
    held = _local.__dict__.pop("image", None)
    image = _cpu_decoder(fast_idct).decode(stream, image=held, params=parameters)
    if image is None:
        return None
    _local.image = image
    return np.asarray(image)


def _cpu_decoder(fast_idct: bool) -> Any:
    """This thread's nvImageCodec decoder on the CPU.

    One decoder per thread, as its own batch mode does not use the cores that the pipeline's workers have.
    """
    decoders = _local.__dict__.setdefault("decoders", {})
    if fast_idct not in decoders:
        codec = nvimgcodec()
        decoders[fast_idct] = codec.Decoder(
            device_id=codec.NVIMGCODEC_DEVICE_CPU_ONLY,
            max_num_cpu_threads=1,
            backends=[codec.Backend(codec.BackendKind.CPU_ONLY)],
            options="libjpeg_turbo_decoder:fast_idct=1" if fast_idct else "",
        )
    return decoders[fast_idct]
