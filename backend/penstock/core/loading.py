"""Load the core's library when one of its functions is first needed."""

from __future__ import annotations

import ctypes
import functools
from ctypes import c_char_p, c_int32, c_int64, c_void_p, py_object
from typing import TYPE_CHECKING

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from pathlib import Path

CORE_VERSION = 8
"""The version of the interface in `core.h`; the library must have the same version."""

# The return type and the argument types of each function of `core.h`.
_FUNCTIONS = {
    "penstock_run_chain": (c_int32, c_void_p, c_void_p, c_void_p, c_void_p),
    "penstock_read_regions": (c_int32, c_void_p, c_void_p, c_void_p),
    "penstock_run_sample": (c_int32, c_void_p, c_void_p, c_int64, c_void_p),
    "penstock_run_decoded": (c_int32, c_void_p, c_int64, c_int64, c_int64),
    "penstock_compute_part": (c_int32, c_void_p, c_int64, c_void_p, c_void_p),
    "penstock_compute_records": (c_int32, c_void_p, c_void_p, c_void_p),
    "penstock_copy_blocks": (None, c_void_p, c_int64, c_int64),
    "penstock_transfer": (c_int32, c_void_p, c_int64, c_void_p, c_int64),
    "penstock_transfer_in_background": (c_int32, c_void_p),
    "penstock_threads_start": (c_void_p, c_char_p, c_int64),
    "penstock_threads_close": (None, c_void_p),
    "penstock_task_submit": (c_void_p, c_void_p, c_void_p, c_void_p, c_int64),
    "penstock_task_is_done": (c_int32, c_void_p),
    "penstock_task_wait": (None, c_void_p),
    "penstock_task_release": (None, c_void_p),
    "penstock_work_create": (c_void_p, c_void_p, c_void_p, c_int64),
    "penstock_work_submit": (None, c_void_p, c_void_p, c_int64),
    "penstock_work_help": (None, c_void_p),
    "penstock_work_follow": (c_int32, c_void_p, c_void_p, c_int64),
    "penstock_work_conclude": (None, c_void_p, c_void_p),
    "penstock_work_is_done": (c_int32, c_void_p),
    "penstock_work_wait": (c_int32, c_void_p),
    "penstock_work_release": (None, c_void_p),
    "penstock_make_calls": (c_int32, c_void_p, c_int64),
    "penstock_read_files": (c_int64, c_void_p, c_int64, c_void_p, c_int64),
    "penstock_read_ranges": (c_int32, c_void_p, c_int64, c_void_p, c_int64),
    "penstock_copy_pieces": (c_int32, c_int64, c_void_p, c_int64, c_void_p, c_void_p, c_int64),
    "penstock_describe": (c_int32, c_void_p, py_object, c_int64, py_object),
    "penstock_address": (c_int64, c_void_p, py_object),
    "penstock_addresses": (c_int64, c_void_p, py_object, c_int64, py_object),
    "penstock_copy_alike": (c_int64, c_void_p, py_object, c_int64, py_object),
    "penstock_list_launches": (c_int64, c_void_p, c_void_p, c_void_p, c_int64, c_void_p, c_void_p),
    "penstock_read_jpeg_headers": (None, c_void_p, c_void_p),
    "penstock_read_png_sizes": (None, c_void_p, c_void_p),
    "penstock_read_png_headers": (None, c_void_p, c_void_p),
    "penstock_decode_png": (c_int32, c_void_p, c_void_p),
    "penstock_decode_pngs": (None, c_void_p, c_void_p, c_int64, c_void_p),
    "penstock_find_whole_jpegs": (None, c_void_p, c_void_p),
    "penstock_prepare_jpegs": (c_int64, c_void_p, c_int64, c_int64, c_void_p, c_void_p),
    "penstock_read_recordings": (c_int64, c_void_p, c_void_p),
    "penstock_codec_load": (c_void_p, c_char_p),
    "penstock_codec_version": (c_int32, c_void_p),
    "penstock_codec_start": (c_int32, c_void_p, c_void_p),
    "penstock_image_decoder_create": (c_int32, c_void_p, c_void_p, c_void_p),
    "penstock_image_decoder_destroy": (None, c_void_p),
    "penstock_decode_images": (c_int32, c_void_p),
}


class CoreError(PenstockError):
    """The core's library has another version than this package needs."""


def _path() -> Path:
    # Imported here, because compiler support imports modules that nothing else needs.
    from penstock.core.library import CORE

    return CORE.path()


@functools.cache
def core() -> ctypes.CDLL:
    """Return the library with functions that release the GIL.

    Raises:
        CoreError: the library has another version of the interface.
        CompilerError: the library is missing, and cannot be compiled.
    """
    path = _path()
    library = ctypes.CDLL(str(path))
    version = library.penstock_core_version()
    if version != CORE_VERSION:
        raise CoreError(f"{path} has version {version} of the core's interface, but this penstock needs {CORE_VERSION}")
    return _declared(library)


@functools.cache
def brief_core() -> ctypes.PyDLL:
    """Return the library with functions that hold the GIL, for calls that return quickly.

    If they released the GIL, it might take long to get it back from another thread.
    """
    core()
    library = ctypes.PyDLL(str(_path()))
    _declared(library)
    return library


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
