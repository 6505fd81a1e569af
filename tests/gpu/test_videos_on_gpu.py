"""Videos whose frames are decoded by a GPU's video engine, on all threads."""

from __future__ import annotations

from typing import Any

import av
import numpy as np
import pytest
import tested_gpu

from penstock import fn, pipeline_def
from penstock.kernels.codecs import video_gpu

HEIGHT, WIDTH, FRAMES = 256, 320, 48
CODECS = {"libx264": "mp4", "libx265": "mp4", "libvpx-vp9": "webm"}


@pytest.fixture(scope="module", params=CODECS)
def clip(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("clips") / f"clip.{CODECS[request.param]}"
    options = {"x265-params": "log-level=none:keyint=12"} if request.param == "libx265" else {}
    coarse = np.random.default_rng(0).integers(20, 236, (HEIGHT // 8, WIDTH // 8, 3), np.uint8)
    with av.open(str(path), "w") as file:
        stream = file.add_stream(request.param, rate=30, options=options)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.gop_size = 12
        for number in range(FRAMES):
            picture = np.roll(coarse, number, 1).repeat(8, 0).repeat(8, 1)
            file.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        file.mux(stream.encode())
    return str(path)


def _sequences(clip: str, device: str, threads: int) -> list[np.ndarray]:
    @pipeline_def(batch_size=6, num_threads=threads, device_id=tested_gpu.device(), prefetch_queue_depth=1)
    def pipeline() -> Any:
        return fn.experimental.readers.video(device=device, filenames=[clip], sequence_length=8)

    running = pipeline()
    running.build()
    return [np.array(sample) for _ in range(4) for (batch,) in [running.run()] for sample in batch.as_cpu()]


@pytest.mark.parametrize("threads", [1, 8])
def test_all_threads_decode_on_the_engine(clip: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    uploaded: list[object] = []
    original = video_gpu._uploaded

    def upload(frame: av.VideoFrame, planes: Any) -> Any:
        uploaded.append(frame)
        return original(frame, planes)

    monkeypatch.setattr(video_gpu, "_uploaded", upload)
    found = _sequences(clip, "gpu", threads)
    assert not uploaded
    for ours, theirs in zip(found, _sequences(clip, "cpu", 2), strict=True):
        np.testing.assert_array_equal(ours, theirs)
