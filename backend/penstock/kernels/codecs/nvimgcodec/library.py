"""nvImageCodec's C library: structures, functions, and the creation of decoders.

Source: nvimgcodec.h of version 0.9, which is part of the package. Each structure carries its type and size, so that the
library rejects those of another version; tests compare the sizes with the header's.
"""

from __future__ import annotations

import ctypes
import functools
import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import ClassVar

from penstock.kernels.codecs.libraries import nvimgcodec

VERSION = (0, 9)
"""The version that these declarations match: major and minor."""

_CPU_ONLY = -99999
# The library's own allocation failed, or a plug-in's.
_NO_MEMORY = 5, 15
_CODEC_NAME_BYTES, _MAX_PLANES, _MAX_DIMENSIONS, _MAX_FILLS = 256, 32, 5, 5


class Backend(IntEnum):
    """Kinds of decoders."""

    CPU_ONLY = 1
    GPU_ONLY = 2
    HYBRID = 3
    ENGINE = 4


class Policy(IntEnum):
    """How a backend's share of a batch may change."""

    IGNORED = 1
    ADAPTIVE = 3


class _Structure(ctypes.Structure):
    """The fields with which all structures begin.

    Attributes:
        kind: number of the structure's type.
    """

    kind: ClassVar[int]
    _fields_ = [("struct_type", ctypes.c_int), ("struct_size", ctypes.c_size_t), ("struct_next", ctypes.c_void_p)]

    def __init__(self, **values: object) -> None:
        super().__init__(self.kind, ctypes.sizeof(self), None, **values)


class Properties(_Structure):
    kind = 1
    _fields_ = [("version", ctypes.c_uint32), ("cudart_version", ctypes.c_uint32)]


class InstanceCreateInfo(_Structure):
    kind = 2
    _fields_ = [
        ("load_builtin_modules", ctypes.c_int),
        ("load_extension_modules", ctypes.c_int),
        ("extension_modules_path", ctypes.c_char_p),
        ("create_debug_messenger", ctypes.c_int),
        ("debug_messenger_desc", ctypes.c_void_p),
        ("message_severity", ctypes.c_uint32),
        ("message_category", ctypes.c_uint32),
    ]


class DecodeParams(_Structure):
    kind = 5
    _fields_ = [("apply_exif_orientation", ctypes.c_int)]


class Orientation(_Structure):
    kind = 7
    _fields_ = [("rotated", ctypes.c_int), ("flip_x", ctypes.c_int), ("flip_y", ctypes.c_int)]


class _Fill(ctypes.Structure):
    _fields_ = [("value", ctypes.c_uint32), ("type", ctypes.c_int)]


class Region(_Structure):
    kind = 8
    _fields_ = [
        ("ndim", ctypes.c_int),
        ("start", ctypes.c_int * _MAX_DIMENSIONS),
        ("end", ctypes.c_int * _MAX_DIMENSIONS),
        ("out_of_bounds_policy", ctypes.c_int),
        ("out_of_bounds_samples", _Fill * _MAX_FILLS),
    ]


class CodeStreamView(_Structure):
    kind = 9
    _fields_ = [("image_idx", ctypes.c_size_t), ("region", Region), ("bitstream_offset", ctypes.c_size_t)]


class PlaneInfo(_Structure):
    kind = 12
    _fields_ = [
        ("width", ctypes.c_uint32),
        ("height", ctypes.c_uint32),
        ("row_stride", ctypes.c_size_t),
        ("num_channels", ctypes.c_uint32),
        ("sample_type", ctypes.c_int),
        ("precision", ctypes.c_uint8),
    ]


class ImageInfo(_Structure):
    kind = 11
    _fields_ = [
        ("codec_name", ctypes.c_char * _CODEC_NAME_BYTES),
        ("color_spec", ctypes.c_int),
        ("chroma_subsampling", ctypes.c_int),
        ("sample_format", ctypes.c_int),
        ("orientation", Orientation),
        ("num_planes", ctypes.c_uint32),
        ("plane_info", PlaneInfo * _MAX_PLANES),
        ("buffer", ctypes.c_void_p),
        ("buffer_kind", ctypes.c_int),
        ("cuda_stream", ctypes.c_void_p),
    ]


class BackendParams(_Structure):
    kind = 29
    _fields_ = [("load_hint", ctypes.c_float), ("load_hint_policy", ctypes.c_int)]


class BackendDescription(_Structure):
    kind = 17
    _fields_ = [("backend", ctypes.c_int), ("params", BackendParams)]


class ExecutionParams(_Structure):
    kind = 30
    _fields_ = [
        ("device_allocator", ctypes.c_void_p),
        ("pinned_allocator", ctypes.c_void_p),
        ("max_num_cpu_threads", ctypes.c_int),
        ("executor", ctypes.c_void_p),
        ("device_id", ctypes.c_int),
        ("pre_init", ctypes.c_int),
        ("skip_pre_sync", ctypes.c_int),
        ("num_backends", ctypes.c_int),
        ("backends", ctypes.POINTER(BackendDescription)),
    ]


FUNCTIONS = (
    "CodeStreamCreateFromHostMem",
    "CodeStreamGetImageInfo",
    "CodeStreamGetSubCodeStream",
    "CodeStreamDestroy",
    "ImageCreate",
    "ImageDestroy",
    "DecoderDecode",
    "FutureWaitForAll",
    "FutureGetProcessingStatus",
    "FutureDestroy",
)
"""The library's functions that decoding a batch needs."""


@functools.cache
def library() -> ctypes.CDLL | None:
    """The library, or None if it is missing or its version is not supported."""
    module = nvimgcodec()
    if module is None:
        return None
    try:
        found = ctypes.CDLL(str(Path(module.__file__).with_name("libnvimgcodec.so.0")))
        properties = Properties()
        if found.nvimgcodecGetProperties(ctypes.byref(properties)):
            return None
    except (OSError, AttributeError):
        return None
    return found if _version(properties.version) == VERSION else None


def _version(number: int) -> tuple[int, int]:
    return number // 1000, number % 1000 // 100


def address_of(name: str) -> int:
    """The address of one of the library's functions."""
    return ctypes.cast(getattr(library(), f"nvimgcodec{name}"), ctypes.c_void_p).value or 0


@dataclass(frozen=True)
class Share:
    """One backend of a decoder.

    Attributes:
        backend: the kind of decoder.
        load: its fraction of each batch; the backends after it get the rest.
        policy: whether that fraction may change.
    """

    backend: Backend
    load: float = 1.0
    policy: Policy = Policy.IGNORED


@functools.cache
def instance() -> int:
    """The handle of the library's instance.

    All threads share it, as those of the library's Python API do: once made, it is only read. To make one takes a second on some
    machines with a GPU, where the library looks for JPEG engines.
    """
    handle = ctypes.c_void_p()
    info = InstanceCreateInfo(load_builtin_modules=1, load_extension_modules=1)
    _check(_loaded().nvimgcodecInstanceCreate(ctypes.byref(handle), ctypes.byref(info)), "be loaded")
    return handle.value or 0


# A process that is forked finds neither threads nor GPUs of the one before.
os.register_at_fork(after_in_child=instance.cache_clear)


class Decoders:
    """The decoders of one thread."""

    def __init__(self) -> None:
        self._made: list[ctypes.c_void_p] = []
        self.close = weakref.finalize(self, _destroy, self._made)

    def make(self, device: int | None, threads: int, shares: Sequence[Share], options: str) -> int:
        """Creates a decoder, and returns its handle.

        Args:
            device: number of the GPU; None: the CPU.
            threads: CPU threads that it may use.
            shares: its backends, in order of preference.
            options: for the backends, in the library's syntax.

        Raises:
            MemoryError: there is no memory for it.
            RuntimeError: the backends are not to be had.
        """
        backends = (BackendDescription * len(shares))()
        for description, share in zip(backends, shares):
            params = BackendParams(load_hint=share.load, load_hint_policy=share.policy)
            description.__init__(backend=share.backend, params=params)
        execution = ExecutionParams(
            max_num_cpu_threads=threads,
            device_id=_CPU_ONLY if device is None else device,
            num_backends=len(shares),
            backends=backends,
        )
        decoder = ctypes.c_void_p()
        status = _loaded().nvimgcodecDecoderCreate(
            ctypes.c_void_p(instance()), ctypes.byref(decoder), ctypes.byref(execution), options.encode()
        )
        _check(status, "make a decoder")
        self._made.append(decoder)
        return decoder.value or 0


def _loaded() -> ctypes.CDLL:
    loaded = library()
    assert loaded is not None
    return loaded


def _check(status: int, what: str) -> None:
    if status in _NO_MEMORY:
        raise MemoryError(f"nvImageCodec could not {what}: no memory was left for it (status {status})")
    if status:
        raise RuntimeError(f"nvImageCodec could not {what}: its C library answered with status {status}")


def _destroy(decoders: Sequence[ctypes.c_void_p]) -> None:
    for decoder in decoders:
        _loaded().nvimgcodecDecoderDestroy(decoder)
