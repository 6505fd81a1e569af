"""Run a campaign on a decoder that misbehaves in every way that fuzzing has to detect."""

from __future__ import annotations

import os
import signal
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from fuzzing.campaign import Bounds, Campaign
from fuzzing.targets import Running

from penstock.kernels.codecs import npy
from penstock.operators.decoders import numpy as decoder

_hoard: list[np.ndarray] = []
_decode = npy.view_npy


def _view(encoded: np.ndarray, whole: bool = False) -> np.ndarray:
    """Same as ``view_npy``, but crash, hang or fail for a few of the files."""
    if _begun:
        deed = zlib.crc32(encoded) % 900
        if deed in (0, 1):
            os.kill(os.getpid(), signal.SIGSEGV)
        elif deed == 2:
            time.sleep(100)
        elif deed in (3, 4, 5):
            _hoard.append(np.ones(400 << 20, np.uint8))
        elif deed == 6:
            raise AssertionError("this was thought to be impossible")
        elif deed in (7, 8, 9):
            _hoard.append(np.zeros(1))
        elif deed == 10:
            while True:
                pass
    array = _decode(encoded, whole)
    # Here, state that one file leaves behind breaks the next file.
    if _begun and len(_hoard) and _hoard[-1].size == 1 and array.size and encoded.size % 2 == 0:
        _hoard.clear()
        return array + array.dtype.type(1) if array.dtype.kind in "fiu" else array
    return array


_begun = False
_run = Running.run


def _run_then(self: Running, *arguments: Any) -> Any:
    global _begun
    _begun = True
    return _run(self, *arguments)


if __name__ == "__main__":
    decoder.view_npy = _view
    Running.run = _run_then  # type: ignore[method-assign]
    # Allocating all this memory may take a second.
    campaign = Campaign(7, ("npy",), bounds=Bounds(seconds=2.0, memory=400 << 20))
    Path(sys.argv[1]).write_text(campaign.run(1280, 2).as_json())
