"""nvImageCodec's C library: how it is found and initialized, and the parameters of its decoders."""

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
    """The kinds of decoders, with the library's numbers."""

    CPU_ONLY = 1
    GPU_ONLY = 2
    HYBRID = 3
    ENGINE = 4


class Policy(IntEnum):
    """Whether the library may change a backend's share of a batch, with the library's numbers."""

    IGNORED = 1
    ADAPTIVE = 3


@dataclass(frozen=True)
class Share:
    """A backend of a decoder, and its share of the work.

    Attributes:
        backend: the kind of decoder.
        load: the fraction of each batch that this backend gets; backends after it get the rest.
        policy: whether the library may change that fraction.
    """

    backend: Backend
    load: float = 1.0
    policy: Policy = Policy.IGNORED


@functools.cache
def library() -> int | None:
    """Return the handle of the library; None if the library is missing or its version is not supported."""
    module = nvimgcodec()
    return None if module is None else load_codec(str(Path(module.__file__).with_name("libnvimgcodec.so.0")))


@Once
def instance() -> int:
    """Return the address of the library's instance, which all threads share."""
    loaded = library()
    assert loaded is not None
    return start_codec(loaded)


# A forked process has neither the threads nor the GPU contexts of its parent.
os.register_at_fork(after_in_child=instance.cache_clear)
