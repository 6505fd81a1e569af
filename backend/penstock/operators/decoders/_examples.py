"""Example inputs of decoders, for tests of all operators and for the documentation. Each is encoded with the format's usual library."""

from __future__ import annotations

import io
from functools import cache

import numpy as np

from penstock.schema.example_data import ExampleSamples, pictures, signals

_NOT_A_FILE = np.frombuffer(b"These bytes are no file of any known format.", np.uint8)


def encoded_images(layout: str = "") -> ExampleSamples:
    """Return images, encoded as JPEG and PNG files by turns."""

    def make(index: int) -> np.ndarray:
        from PIL import Image

        file = io.BytesIO()
        Image.fromarray(pictures("HWC").make(index)).save(file, ("jpeg", "png")[index % 2])
        return np.frombuffer(file.getvalue(), np.uint8)

    return ExampleSamples(make, bad=_NOT_A_FILE)


def encoded_sounds(layout: str = "") -> ExampleSamples:
    """Return stereo signals, encoded as WAV files."""

    def make(index: int) -> np.ndarray:
        import soundfile

        file = io.BytesIO()
        signal = signals().make(index)
        soundfile.write(file, np.stack([signal, signal[::-1]], axis=1), 8000, format="wav")
        return np.frombuffer(file.getvalue(), np.uint8)

    return ExampleSamples(make, bad=_NOT_A_FILE)


def encoded_videos(layout: str = "") -> ExampleSamples:
    """Return videos of 6 frames, encoded as MP4 files."""
    return ExampleSamples(_encoded_video, bad=_NOT_A_FILE)


# Cached because x264's output differs from run to run: all callers get the same file.
@cache
def _encoded_video(index: int) -> np.ndarray:
    import av

    file = io.BytesIO()
    frames = pictures("FHWC", F=(6,), H=(32,), W=(48,)).make(index)
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.height, stream.width = frames.shape[1:3]
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    return np.frombuffer(file.getvalue(), np.uint8)


def npy_files(layout: str = "") -> ExampleSamples:
    """Return images, stored as arrays in NPY files."""

    def make(index: int) -> np.ndarray:
        file = io.BytesIO()
        np.save(file, pictures("HWC").make(index))
        return np.frombuffer(file.getvalue(), np.uint8)

    return ExampleSamples(make, bad=_NOT_A_FILE)


def lz4_blocks(layout: str = "") -> ExampleSamples:
    """Return LZ4 blocks, each of 600 bytes when decompressed."""

    def make(index: int) -> np.ndarray:
        import lz4.block

        block = pictures("HWC", H=(10,), W=(20,)).make(index).tobytes()
        return np.frombuffer(lz4.block.compress(block, store_size=False), np.uint8)

    return ExampleSamples(make, bad=_NOT_A_FILE)
