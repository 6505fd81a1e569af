"""A lost GPU is reported as lost, without hanging, and a new process works."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import tested_gpu

PROGRAM = """
import io, sys
import cupy
import numpy as np
from PIL import Image
from penstock import fn, pipeline_def
from penstock.errors import DeviceLostError

from penstock.kernels.codecs import jpeg_gpu

# Threads launch even small batches.
jpeg_gpu._MIN_BYTES_PER_THREAD = 1000
device, what = int(sys.argv[1]), sys.argv[2]

def encoded(number):
    buffer = io.BytesIO()
    Image.new("RGB", (200 + number, 150), (number, 90, 200)).save(buffer, "JPEG")
    return np.frombuffer(buffer.getvalue(), np.uint8)

def numbers(step):
    # Later than what is begun ahead of the first three batches.
    if what == "source" and step == 12:
        lose()
    return [encoded(10 * step + k) for k in range(12)]

@pipeline_def(batch_size=12, num_threads=2, device_id=device, prefetch_queue_depth=2)
def pipeline():
    images = fn.decoders.image(fn.external_source(numbers), device="mixed", jpeg_fancy_upsampling=len(sys.argv) > 3)
    return fn.crop_mirror_normalize(fn.resize(images, size=(40, 50)), mirror=fn.random.coin_flip())

def lose():
    with cupy.cuda.Device(device):
        code = 'extern "C" __global__ void lose(int *nowhere) { *nowhere = 1; }'
        cupy.RawModule(code=code).get_function("lose")((1,), (1,), (np.uint64(8),))

running = pipeline()
for _ in range(3):
    running.run()
if what == "between":
    lose()
told = []
for _ in range(14 if what != "nothing" else 0):
    try:
        running.run()[0].as_cpu()
    except DeviceLostError as error:
        told.append(str(error))
    except Exception as error:
        # Reading a result that is there already is CuPy's own.
        told.append(type(error).__module__)
running.close()
assert what == "nothing" or "A GPU was lost" in told[-1], told
print("done", flush=True)
"""


def outcome(what: str, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tested_gpu.device()), what, *more],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


@pytest.mark.parametrize("more", [[], ["smooth"]], ids=["by the engine", "by our kernels"])
@pytest.mark.parametrize("what", ["between", "source"])
def test_a_lost_device_is_told_and_nothing_hangs(what: str, more: list[str]) -> None:
    lost = outcome(what, *more)
    assert "done" in lost.stdout, lost.stderr
    # In a new process, the same device works.
    assert outcome("nothing").stdout.split() == ["done"]
