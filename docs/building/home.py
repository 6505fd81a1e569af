"""The pictures on the home page: a photograph, and the result of the pipeline beside it."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
from PIL import Image
from repository import ROOT

from penstock import fn, pipeline_def, types

_PHOTOGRAPH = ROOT / "client_examples" / "photographs" / "border-terrier.jpg"
_MEAN, _STD = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]


def home_pictures() -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each picture."""
    yield "assets/home-photograph.jpg", _PHOTOGRAPH.read_bytes()

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def preprocess():
        encoded = fn.external_source(name="encoded_image", dtype=types.UINT8, ndim=1)
        images = fn.decoders.image(encoded, output_type=types.RGB)
        images = fn.resize(images, resize_shorter=256)
        return fn.crop_mirror_normalize(images, crop=(224, 224), mean=_MEAN, std=_STD, output_layout="CHW")

    pipeline = preprocess()
    pipeline.feed_input("encoded_image", [np.fromfile(_PHOTOGRAPH, np.uint8)])
    (output,) = pipeline.run()
    planes = output.as_cpu().at(0)
    shown = np.clip((planes + 2.2) / 4.9 * 255, 0, 255).astype(np.uint8)  # normalized values, from about -2.2 to 2.7
    file = io.BytesIO()
    Image.fromarray(np.hstack(list(shown))).save(file, "PNG")
    yield "assets/home-tensor.png", file.getvalue()
