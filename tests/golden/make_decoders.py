"""Records DALI's decoding of small images in many formats: tests/golden/decoders/images.npz, and tiffs.npz.

Run it in an environment with nvidia-dali, pillow and opencv: ``python tests/golden/make_decoders.py [images] [tiffs]``.

Keys of the recording: ``file/<name>``: the encoded bytes; ``<name>/<output type>/<dtype>``: the pixels;
``errors``: the keys for which DALI raised.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import cv2
import numpy as np
from nvidia.dali import fn, pipeline_def, types
from PIL import Image
from tiff_files import unusual_tiffs

HEIGHT, WIDTH = 35, 41  # JPEG 2000 requires at least 32
_OUTPUTS = (("RGB", "UINT8"), ("GRAY", "UINT8"), ("ANY_DATA", "UINT8"))
_ALL_OUTPUTS = (
    *_OUTPUTS,
    *(("BGR", "UINT8"), ("YCbCr", "UINT8"), ("RGB", "FLOAT"), ("RGB", "UINT16"), ("RGB", "INT8"), ("YCbCr", "FLOAT")),
)
_OF_TIFF = (*_OUTPUTS, ("ANY_DATA", "UINT16"), ("RGB", "FLOAT"), ("ANY_DATA", "FLOAT"))
_THOROUGHLY = ("rgb_420.jpg", "gray.jpg", "rgb_16bit.png", "gray_16bit.png", "palette.png")
_TIFF = {"compression": "tiff_lzw"}


def photo() -> np.ndarray:
    """Return a smooth image with some noise, uint8 (H, W, 3)."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    smooth = np.stack([x * 5, y * 7, (x + y) * 3], -1)
    return np.clip(smooth + np.random.default_rng(0).integers(-2, 3, smooth.shape), 0, 255).astype(np.uint8)


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def by_opencv(extension: str, pixels: np.ndarray, *parameters: int) -> bytes:
    return cv2.imencode(extension, pixels, parameters)[1].tobytes()


def with_orientation(image: Image.Image, kind: str, orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return saved(image, kind, exif=exif)


def encoded_images() -> dict[str, bytes]:
    pixels = photo()
    rgb = Image.fromarray(pixels)
    gray, rgba = rgb.convert("L"), rgb.copy()
    rgba.putalpha(gray)
    deep = pixels.astype(np.uint16) * 257 + np.arange(WIDTH, dtype=np.uint16)[:, np.newaxis]
    files = {f"rgb_{s}.jpg": saved(rgb, "JPEG", quality=85, subsampling=i) for i, s in enumerate(("444", "422", "420"))}
    files |= {f"exif_{o}.jpg": with_orientation(rgb, "JPEG", o) for o in range(1, 9)}
    files |= {
        "progressive.jpg": saved(rgb, "JPEG", progressive=True),
        "gray.jpg": saved(gray, "JPEG"),
        "cmyk.jpg": saved(rgb.convert("CMYK"), "JPEG"),
        "padded.jpg": files["rgb_420.jpg"] + b"\0" * 100,
        "truncated.jpg": files["rgb_420.jpg"][:-40],
        "no_end.jpg": files["rgb_420.jpg"][:-2],
        "header_only.jpg": files["rgb_420.jpg"][:100],
        "rgb.png": saved(rgb, "PNG"),
        "gray.png": saved(gray, "PNG"),
        "palette.png": saved(rgb.convert("P"), "PNG"),
        "bilevel.png": saved(rgb.convert("1"), "PNG"),
        "rgba.png": saved(rgba, "PNG"),
        "rgb_16bit.png": by_opencv(".png", deep[..., ::-1]),
        "gray_16bit.png": by_opencv(".png", deep[..., 0]),
        "exif_6.png": with_orientation(rgb, "PNG", 6),
        "padded.png": saved(rgb, "PNG") + b"\0" * 100,
        "truncated.png": saved(rgb, "PNG")[:-200],
        "rgb.bmp": saved(rgb, "BMP"),
        "palette.bmp": saved(rgb.convert("P"), "BMP"),
        "rgb.tiff": saved(rgb, "TIFF"),
        "lzw.tiff": saved(rgb, "TIFF", **_TIFF),
        "gray.tiff": saved(gray, "TIFF", **_TIFF),
        "rgba.tiff": saved(rgba, "TIFF", **_TIFF),
        "rgb_16bit.tiff": by_opencv(".tiff", deep[..., ::-1]),
        "exif_6.tiff": with_orientation(rgb, "TIFF", 6),
        "lossless.webp": saved(rgb, "WEBP", lossless=True),
        "lossy.webp": saved(rgb, "WEBP", quality=80),
        "rgba.webp": saved(rgba, "WEBP", lossless=True),
        "rgb.jp2": by_opencv(".jp2", pixels[..., ::-1], cv2.IMWRITE_JPEG2000_COMPRESSION_X1000, 1000),
        "rgb.ppm": saved(rgb, "PPM"),
        "gray.pgm": saved(gray, "PPM"),
        "empty": b"",
        "text": b"This is no image.",
    }
    return files


def decode(encoded: bytes, output_type: str, dtype: str) -> np.ndarray | None:
    @pipeline_def(
        batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1, exec_async=False, exec_pipelined=False
    )
    def pipeline() -> object:
        data = fn.external_source(name="data")
        return fn.decoders.image(data, output_type=getattr(types, output_type), dtype=getattr(types, dtype))

    running = pipeline()
    running.build()
    running.feed_input("data", [np.frombuffer(encoded, np.uint8)])
    try:
        return np.array(running.run()[0].at(0))
    except RuntimeError:
        return None


def outputs_of(name: str) -> tuple[tuple[str, str], ...]:
    if name == "gray.jpg":
        return tuple(output for output in _ALL_OUTPUTS if output[0] != "ANY_DATA")  # for which DALI 2.4 crashes
    if name in _THOROUGHLY:
        return _ALL_OUTPUTS
    return _OF_TIFF if name.endswith(".unusual.tiff") else _OUTPUTS


def record(files: dict[str, bytes], recording_path: Path) -> None:
    recording: dict[str, np.ndarray] = {}
    errors = []
    for name, encoded in files.items():
        recording[f"file/{name}"] = np.frombuffer(encoded, np.uint8)
        for output_type, dtype in outputs_of(name):
            key = f"{name}/{output_type}/{dtype}"
            pixels = decode(encoded, output_type, dtype)
            if pixels is None:
                errors.append(key)
            else:
                recording[key] = pixels
    recording["errors"] = np.array(errors)
    np.savez_compressed(recording_path, **recording)


def main(which: list[str]) -> None:
    folder = Path(__file__).parent / "decoders"
    if "images" in which:
        record(encoded_images(), folder / "images.npz")
    if "tiffs" in which:
        record({f"{name}.unusual.tiff": file for name, file in unusual_tiffs().items()}, folder / "tiffs.npz")


if __name__ == "__main__":
    main(sys.argv[1:] or ["images", "tiffs"])
