"""The codec libraries. Each is loaded when it is first needed; None if an optional one is not installed."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from penstock.core.codecs import LIBDEFLATE_FUNCTIONS, Libdeflate

_local = threading.local()


@functools.cache
def nvimgcodec() -> Any:
    """Return nvImageCodec's module, or None."""
    # Failures become exceptions with the sample's index; by default, the library also writes each to stderr.
    os.environ.setdefault("PYNVIMGCODEC_VERBOSITY", "0")
    # OpenCV, which the library contains, writes to stderr, too.
    os.environ.setdefault("OPENCV_LOG_LEVEL", "OFF")
    try:
        with _without_advice_on_gpus():
            from nvidia import nvimgcodec as module
    except ImportError:
        return None
    return module


@contextlib.contextmanager
def _without_advice_on_gpus() -> Iterator[None]:
    """Suppress messages about CUDA libraries that nvImageCodec writes to stderr on machines without a GPU driver."""
    # Python found no stderr when it started: file descriptor 2 may be any file now.
    has_stderr = sys.__stderr__ is not None
    if _has_driver() or not has_stderr:
        yield
        return
    if sys.stderr is not None:
        sys.stderr.flush()
    # In memory, as there may be no folder to write to.
    with open(os.memfd_create("penstock-stderr"), "w+b") as written:
        stderr = os.dup(2)
        os.dup2(written.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            written.seek(0)
            # Other threads may have written to stderr in the meantime.
            others = [
                line for line in written if not line.startswith((b"Failed to load nv", b"Note: If using nvImageCodec"))
            ]
            os.write(2, b"".join(others))


def _has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@functools.cache
def simplejpeg() -> Any:
    """Return simplejpeg's module, or None.

    It is used for whole JPEGs, as it decodes directly into the output: in 3.9 ms, compared to 4.5 ms for nvImageCodec and a copy (1.1
    megapixels, one thread); the pixels are the same.
    """
    try:
        import simplejpeg as module
    except ImportError:
        return None
    return module


@functools.cache
def libdeflate() -> Libdeflate | None:
    """Return libdeflate's functions from the wheel ``deflate``; None if it is missing: then nvImageCodec or Pillow decode PNGs.

    The wheel has a Python interface, but its library also exports the C functions, which the core calls without the GIL.
    """
    found = importlib.util.find_spec("deflate")
    folders = (found.submodule_search_locations if found else None) or ()
    for path in (path for folder in folders for path in Path(folder).glob("_deflate*.so")):
        try:
            library = ctypes.CDLL(str(path))
            functions = [getattr(library, f"libdeflate_{name}") for name in LIBDEFLATE_FUNCTIONS]
        except (OSError, AttributeError):
            continue
        return Libdeflate(*(ctypes.cast(function, ctypes.c_void_p) for function in functions))
    return None


@functools.cache
def libwebp() -> ctypes.CDLL | None:
    """Return libwebp from Pillow's wheel; None if it is missing: then nvImageCodec or Pillow decode WebPs.

    It decodes directly into the output: in 8.4 ms, compared to 10.4 ms for nvImageCodec and a copy (1.1 megapixels, one thread); the pixels
    are the same.
    """
    found = importlib.util.find_spec("PIL")
    folder = Path(found.origin).parents[1] / "pillow.libs" if found and found.origin else None
    for path in folder.glob("libwebp-*.so*") if folder else ():
        try:
            library = ctypes.CDLL(str(path))
            size = ctypes.POINTER(ctypes.c_int)
            library.WebPGetInfo.argtypes = [ctypes.c_void_p, ctypes.c_size_t, size, size]
            for function in (library.WebPDecodeRGBInto, library.WebPDecodeBGRInto):
                function.restype = ctypes.c_void_p
                function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        except (OSError, AttributeError):
            continue
        return library
    return None


@functools.cache
def pillow_image() -> ModuleType:
    """Return the module ``PIL.Image``; raise ImportError, with the reason why it is needed, if Pillow is not installed."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("Pillow is needed to read this image: pip install pillow") from error
    return Image


@functools.cache
def add_heif_to_pillow() -> None:
    """Let Pillow read HEIC; raise ImportError, with the reason why it is needed, if pillow-heif is not installed."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError as error:
        raise ImportError("pillow-heif is needed to read HEIC images: pip install pillow-heif") from error
    register_heif_opener(thumbnails=False)


def decode_on_cpu(stream: object, parameters: object, fast_idct: bool, smooth: bool) -> np.ndarray | None:
    """Decode one of nvImageCodec's code streams; return the pixels, in memory that this thread reuses, or None if decoding fails.

    Args:
        fast_idct, smooth: as for :func:`~penstock.kernels.codecs.image_codec.decode`.
    """
    # The memory is removed while it is written to, as its state is unknown after a failure.
    held = _local.__dict__.pop("image", None)
    image = _cpu_decoder(fast_idct, smooth).decode(stream, image=held, params=parameters)
    if image is None:
        return None
    pixels = np.asarray(image)
    if pixels.nbytes <= _MAX_KEPT_BYTES:
        _local.image = image
    return pixels


# The largest image for which a thread retains memory, in bytes: some 20 megapixels.
_MAX_KEPT_BYTES = 64 << 20


def _cpu_decoder(fast_idct: bool, smooth: bool) -> Any:
    """Return this thread's nvImageCodec decoder on the CPU.

    There is one decoder per thread, as nvImageCodec's batch mode does not use the cores of the pipeline's threads.
    """
    decoders = _local.__dict__.setdefault("decoders", {})
    if (fast_idct, smooth) not in decoders:
        codec = nvimgcodec()
        decoders[fast_idct, smooth] = codec.Decoder(
            device_id=codec.NVIMGCODEC_DEVICE_CPU_ONLY,
            max_num_cpu_threads=1,
            backends=[codec.Backend(codec.BackendKind.CPU_ONLY)],
            options=f"libjpeg_turbo_decoder:fast_idct={int(fast_idct)} "
            f"libjpeg_turbo_decoder:fancy_upsampling={int(smooth)}",
        )
    return decoders[fast_idct, smooth]
