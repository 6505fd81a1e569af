"""The number of threads that read videos for a real or emulated GPU, which depends on the size of the frames."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.kernels.codecs import video_gpu
from penstock.operators.readers._open_videos import OpenVideos

pytestmark = pytest.mark.usefixtures("with_gpu")

FILES, FRAMES = 6, 8


def written(folder: Path, height: int, width: int) -> list[str]:
    paths = []
    for number in range(FILES):
        paths.append(str(folder / f"{number}.mp4"))
        with av.open(paths[-1], "w") as file:
            stream = file.add_stream("libx264", rate=30, options={"preset": "ultrafast"})
            stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
            for shown in range(FRAMES):
                picture = np.full((height, width, 3), 40 * number + 2 * shown, np.uint8)
                file.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            file.mux(stream.encode())
    return paths


def first_batch(files: list[str], device: str) -> list[np.ndarray]:
    @pipeline_def(batch_size=FILES, num_threads=5, device_id=0, prefetch_queue_depth=1)
    def pipeline() -> Any:
        return fn.experimental.readers.video(device=device, filenames=files, sequence_length=FRAMES)

    running = pipeline()
    (batch,) = running.run()
    frames = [np.array(sample) for sample in batch.as_cpu()]
    running.close()
    return frames


@pytest.mark.parametrize(("size", "most"), [((48, 64), 2), ((400, 640), 3)])
def test_small_frames_have_few_threads(
    size: tuple[int, int], most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, used, now = written(tmp_path, *size), [0], [0]
    lock, fill = threading.Lock(), video_gpu.fill_on_gpu

    def filling(*arguments: Any) -> None:
        with lock:
            now[0] += 1
            used[0] = max(used[0], now[0])
        fill(*arguments)
        with lock:
            now[0] -= 1

    monkeypatch.setattr(video_gpu, "fill_on_gpu", filling)
    # An emulated GPU has no video engine: pretend that it has one.
    monkeypatch.setattr(OpenVideos, "takes_engine", lambda self, path: True)
    found = first_batch(files, "gpu")
    assert 1 <= used[0] <= most
    for ours, theirs in zip(found, first_batch(files, "cpu"), strict=True):
        np.testing.assert_array_equal(ours, theirs)
