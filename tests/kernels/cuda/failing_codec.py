"""A library with nvImageCodec's interface that fails when a test asks for it; linked to the real library."""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.core.codecs import load_codec, start_codec
from penstock.kernels.codecs.libraries import nvimgcodec
from penstock.kernels.codecs.nvimgcodec import decoder


class FailingCodec:
    """The failing library, compiled into a folder."""

    def __init__(self, folder: Path) -> None:
        real = Path(nvimgcodec().__file__).with_name("libnvimgcodec.so.0")
        self.path = folder / "libfailing_codec.so"
        source = Path(__file__).with_suffix(".cc")
        flags = ["-std=c++20", "-shared", "-fPIC", f"-Wl,--no-as-needed,-rpath,{real.parent}"]
        subprocess.run(["g++", *flags, "-o", str(self.path), str(source), str(real)], check=True)
        self._functions = ctypes.CDLL(str(self.path))

    @functools.cached_property
    def instance(self) -> int:
        library = load_codec(str(self.path))
        assert library is not None
        return start_codec(library)

    @property
    def creations(self) -> int:
        """The number of decoders that were requested."""
        count: int = self._functions.count_creations()
        return count

    def refuse_next(self) -> None:
        """Make the next decoder reject all images."""
        self._functions.refuse_next()

    @contextmanager
    def failing_to_make(self, status: int) -> Iterator[None]:
        """Make the creation of decoders fail with this status inside the context."""
        self._functions.fail_creation(status)
        try:
            yield
        finally:
            self._functions.fail_creation(0)

    @contextmanager
    def of_version(self, version: int) -> Iterator[None]:
        """Make the library report this version inside the context."""
        self._functions.pretend_version(version)
        try:
            yield
        finally:
            self._functions.pretend_version(0)


@functools.cache
def _compiled() -> FailingCodec:
    return FailingCodec(Path(tempfile.mkdtemp()))


def failing_codec(monkeypatch: pytest.MonkeyPatch) -> FailingCodec:
    """Return the failing library, which all decoders use during the test."""
    codec = _compiled()
    monkeypatch.setattr(decoder, "instance", lambda: codec.instance)
    return codec
