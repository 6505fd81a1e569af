"""The operator in the authors' guide gives equal results on the CPU and the (emulated) GPU."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).parents[3] / "docs" / "writing-operators.md"
PROGRAM = """
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import numpy as np
import solarize
from emulation import emulated_gpu
from PIL import Image, ImageOps

from penstock import fn, pipeline_def, types

RNG = np.random.default_rng(0)
IMAGES = [RNG.integers(0, 256, shape, np.uint8) for shape in ((20, 31, 3), (1, 1, 1), (0, 4, 3), (64, 48, 2))]
FRAMES = [RNG.integers(0, 256, (count, 5, 4, 3), np.uint8) for count in (2, 1, 3, 2)]
THRESHOLDS = np.array([0, 100, 200, 255], np.int32)


@pipeline_def(batch_size=4, num_threads=1)
def define(on_gpu):
    inputs = [fn.external_source(lambda: IMAGES, layout="HWC"), fn.external_source(lambda: FRAMES, layout="FHWC")]
    threshold = fn.external_source(lambda: THRESHOLDS)
    return tuple(fn.shown_solarize(node.gpu() if on_gpu else node, threshold=threshold) for node in inputs)


def results(on_gpu):
    pipeline = define(on_gpu, device_id=0 if on_gpu else None)
    # A kind of batch is recorded when it comes again.
    batches = [[batch.as_cpu() for batch in pipeline.run()] for _ in range(3)]
    pipeline.close()
    return [[np.array(sample) for sample in batch] for outputs in batches for batch in outputs]


on_cpu = results(False)
for image, threshold, result in zip(IMAGES, THRESHOLDS, on_cpu[0]):
    np.testing.assert_array_equal(result, np.where(image < threshold, image, 255 - image))
(equivalent,) = solarize.ShownSolarize.schema.equivalents
assert equivalent.name == "PIL.ImageOps.solarize"
np.testing.assert_array_equal(on_cpu[0][0], ImageOps.solarize(Image.fromarray(IMAGES[0]), int(THRESHOLDS[0])))
with emulated_gpu(Path(sys.argv[2])):
    for ours, theirs in zip(on_cpu, results(True)):
        for own, other in zip(ours, theirs):
            np.testing.assert_array_equal(own, other)
"""


def test_solarize(tmp_path: Path, compiled_kernels: Path) -> None:
    shown = re.search(r'```python title="solarize.py"\n(.*?)```', GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    # Rename the operator, as contributors may have added one with that name.
    text = shown[1].replace("Solarize", "ShownSolarize")
    (tmp_path / "solarize.py").write_text(text, encoding="utf-8")
    # Run in a separate process, as a registered operator stays registered.
    program = [sys.executable, "-c", PROGRAM, str(Path(__file__).parent), str(compiled_kernels)]
    subprocess.run(program, cwd=tmp_path, check=True)
