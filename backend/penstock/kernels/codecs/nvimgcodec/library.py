"""nvImageCodec's C library: finding it, starting it, and the parameters of its decoders."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from penstock.core.codecs import load_codec, start_codec
from penstock.core.once import Once
from penstock.kernels.codecs.libraries import nvimgcodec


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
def library() -> int | None:
    """Return the address of the library, or None if it is missing or its version is not supported."""
    module = nvimgcodec()
    return None if module is None else load_codec(str(Path(module.__file__).with_name("libnvimgcodec.so.0")))


@Once
def instance() -> int:
    """Return the address of the library's instance, which all threads share."""
    loaded = library()
    assert loaded is not None
    return start_codec(loaded)


# A forked process has neither the threads nor the GPUs of its parent.
os.register_at_fork(after_in_child=instance.cache_clear)
