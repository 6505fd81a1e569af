"""Dynamic mode gives the same results on a GPU as on the CPU, in every mode, captured and traced."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import cupy
import numpy as np
import pytest
from PIL import Image
from tested_gpu import device

from penstock import dynamic
from penstock.dynamic import Batch, EvalContext, EvalMode

SIZE = 4
GPU = f"gpu:{device()}"
MODES = [EvalMode.deferred, EvalMode.eager, EvalMode.sync_cpu, EvalMode.sync_full]


def encoded(count: int = SIZE, seed: int = 0) -> list[np.ndarray]:
    """Return JPEGs of several sizes; they are smooth, so that decoders differ only a little."""
    files = []
    for number in range(seed, seed + count):
        y, x = np.mgrid[0 : 60 + number, 0:80]
        pixels = np.stack([128 + 100 * np.sin((x + number) / 20), 128 + 100 * np.cos(y / 15), (x + y) / 2 % 256], -1)
        buffer = io.BytesIO()
        Image.fromarray(pixels.astype(np.uint8)).save(buffer, "JPEG", quality=95)
        files.append(np.frombuffer(buffer.getvalue(), np.uint8))
    return files


def arithmetic(numbers: Batch) -> Batch:
    small = dynamic.resize(numbers, size=[5, 6], dtype=dynamic.float32)
    return dynamic.crop_mirror_normalize(small * 2 + 1, mean=[3.0], std=[2.0], output_layout="CHW")


def images() -> Batch:
    rng = np.random.default_rng(1)
    return dynamic.batch([rng.integers(0, 255, (20 + k, 30, 3), np.uint8) for k in range(SIZE)], layout="HWC")


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_modes_give_what_the_cpu_gives(mode: EvalMode) -> None:
    expected = [np.asarray(sample) for sample in arithmetic(images())]
    with mode:
        found = arithmetic(images().gpu(device()))
        assert found.device.device_type == "gpu"
        assert found.device.device_id == device()
        for ours, theirs in zip(found.cpu(), expected):
            np.testing.assert_allclose(np.asarray(ours), theirs, atol=1e-4)


def test_images_are_decoded_on_the_gpu() -> None:
    files = dynamic.batch(encoded())
    found = dynamic.decoders.image(files, device=GPU)
    assert found.device.device_type == "gpu"
    for ours, theirs in zip(found.cpu(), dynamic.decoders.image(files, device="cpu")):
        one, other = np.asarray(ours).astype(int), np.asarray(theirs).astype(int)
        assert one.shape == other.shape
        assert np.abs(one - other).mean() < 2


def test_tensors_share_memory_with_torch() -> None:
    torch = pytest.importorskip("torch")
    tensor = dynamic.tensor([1.0, 2.0, 3.0]).gpu(device())
    shared, copied = tensor.torch(), tensor.torch(copy=True)
    assert shared.is_cuda
    shared[0], copied[1] = 42, 0
    torch.cuda.synchronize()
    assert np.asarray(tensor.cpu()).tolist() == [42, 2, 3]
    given = torch.arange(12, dtype=torch.float32, device=device()).reshape(4, 3)
    assert np.asarray((dynamic.as_batch(given) + 1).cpu()).tolist() == (given.cpu().numpy() + 1).tolist()


def test_a_failed_sample_is_told_with_its_call() -> None:
    with pytest.raises(RuntimeError, match="crop"):
        dynamic.crop(images().gpu(device()), crop=(200, 200)).evaluate()


def test_captured_loops_give_what_others_give(tmp_path: Path) -> None:
    for number, file in enumerate(encoded(11)):
        (tmp_path / str(number % 2)).mkdir(exist_ok=True)
        (tmp_path / str(number % 2) / f"{number:02}.jpg").write_bytes(file.tobytes())

    def epochs(capture: bool) -> list[np.ndarray]:
        reader = dynamic.readers.File(file_root=str(tmp_path), random_shuffle=True, seed=5)
        found = []
        for _ in range(3):
            for files, labels in reader.next_epoch(batch_size=SIZE, capture=capture):
                pixels = dynamic.resize(dynamic.decoders.image(files, device=GPU), size=[12, 14])
                found += [np.asarray(sample) for sample in pixels.cpu()]
                found += [np.asarray(sample) for sample in labels.cpu()]
        return found

    plain, captured = epochs(False), epochs(True)
    assert len(plain) == len(captured)
    for one, other in zip(plain, captured):
        np.testing.assert_array_equal(one, other)


def test_functions_become_pipelines(tmp_path: Path) -> None:
    def preprocess(files: Batch) -> Any:
        return dynamic.resize(dynamic.decoders.image(files, device=GPU), size=[16, 16])

    made = dynamic.capture.pipeline(preprocess, encoded(2), batch_size=SIZE, num_threads=1)
    for seed in range(3):
        data = encoded(SIZE, seed)
        made.feed_input("files", data)
        found = made.run()[0].as_cpu().as_array()
        np.testing.assert_array_equal(found, np.asarray(preprocess(dynamic.as_batch(data)).cpu()))


SLOW = cupy.RawKernel(
    """extern "C" __global__ void wait(long long cycles) { long long begin = clock64(); while (clock64() - begin < cycles); }""",
    "wait",
)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("other", [False, True], ids=["current", "not-current"])
def test_results_are_complete_however_late_the_gpu_is(mode: EvalMode, other: bool) -> None:
    """Results are complete even if another GPU is the current one."""
    expected = [np.asarray(sample) for sample in arithmetic(images())]
    with mode:
        for use in (
            lambda found: [np.asarray(sample) for sample in found.cpu()],
            lambda found: [cupy.asnumpy(cupy.asarray(sample)) for sample in found],
            lambda found: [cupy.asnumpy(cupy.from_dlpack(sample)) for sample in found],
            lambda found: list(found.torch().cpu().numpy()),
            lambda found: list(found.gpu(0).cpu()),
        ):
            with cupy.cuda.Device(device()):
                context = EvalContext.default_on(device())
                late = context.cuda_stream.cupy_stream
                small = images().gpu(device()).evaluate()
                with late:
                    SLOW((1,), (1,), (40_000_000,))
                found = arithmetic(small).evaluate()
            with cupy.cuda.Device(0 if other else device()):
                for ours, theirs in zip(use(found), expected, strict=True):
                    np.testing.assert_allclose(np.asarray(ours), theirs, atol=1e-4)


def test_inputs_are_complete_however_late_the_gpu_is() -> None:
    with cupy.cuda.Device(device()), EvalMode.eager:
        for _ in range(3):
            SLOW((1,), (1,), (40_000_000,))
            given = cupy.arange(12, dtype=np.float32).reshape(4, 3) * 2
            found = dynamic.as_batch(given) + 1
            given[:] = 0
            assert np.asarray(found.cpu()).tolist() == (np.arange(12).reshape(4, 3) * 2 + 1).tolist()
