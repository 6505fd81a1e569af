"""CLIP's two towers, small and with random weights, in numpy, and the image tower as a model for Triton's Python backend.

`clip_zero_shot.py` copies this file into a model folder.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

PATCH, WIDTH, HEADS, EMBEDDING = 32, 64, 4, 48
SIDE, CHANNELS = 224, 3
PATCHES = (SIDE // PATCH) ** 2
INPUT, OUTPUT = "pixel_values", "image_embeds"
# The learned factor of CLIP's cosines.
SCALE = 100.0


class ImageTower:
    """A vision transformer of one block, whose weights are random, and the same each time."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        deviation = (PATCH * PATCH * CHANNELS) ** -0.5
        self.patches = rng.normal(0, deviation, (PATCH * PATCH * CHANNELS, WIDTH)).astype(np.float32)
        self.places = rng.normal(0, 0.1, (PATCHES + 1, WIDTH)).astype(np.float32)
        self.attention, self.mixing, self.growing, self.shrinking, self.projection = (
            rng.normal(0, rows**-0.5, (rows, columns)).astype(np.float32)
            for rows, columns in (
                (WIDTH, 3 * WIDTH),
                (WIDTH, WIDTH),
                (WIDTH, 4 * WIDTH),
                (4 * WIDTH, WIDTH),
                (WIDTH, EMBEDDING),
            )
        )

    def __call__(self, pixels: np.ndarray) -> np.ndarray:
        """Return embeddings of length 1, float32 of shape (N, 48), of images (N, 3, 224, 224), each by itself."""
        return np.stack([self._of_one(image) for image in pixels])

    def _of_one(self, image: np.ndarray) -> np.ndarray:
        rows = SIDE // PATCH
        cut = image.reshape(CHANNELS, rows, PATCH, rows, PATCH).transpose(1, 3, 0, 2, 4).reshape(PATCHES, -1)
        tokens = np.vstack([np.zeros((1, WIDTH), np.float32), cut @ self.patches]) + self.places
        queries, keys, values = (
            part.reshape(-1, HEADS, WIDTH // HEADS).transpose(1, 0, 2)
            for part in np.split(_normalized(tokens) @ self.attention, 3, axis=1)
        )
        weights = softmax(queries @ keys.transpose(0, 2, 1) * np.float32((WIDTH // HEADS) ** -0.5))
        tokens = tokens + (weights @ values).transpose(1, 0, 2).reshape(-1, WIDTH) @ self.mixing
        hidden = _normalized(tokens) @ self.growing
        tokens = tokens + (hidden / (1 + np.exp(-1.702 * hidden))) @ self.shrinking
        return of_length_1(_normalized(tokens[0]) @ self.projection)


def text_embeddings(texts: list[str]) -> np.ndarray:
    """Return embeddings of length 1, float32 of shape (N, 48): the sum of those of their words, which are random."""
    words = [[np.random.default_rng(zlib.crc32(word.encode())) for word in text.lower().split()] for text in texts]
    return np.stack(
        [of_length_1(sum(rng.normal(0, 1, EMBEDDING) for rng in each).astype(np.float32)) for each in words]
    )


def scores(images: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """Return how likely each text is for each image, of shape (images, texts), by their embeddings."""
    return softmax(SCALE * images @ texts.T)


def softmax(values: np.ndarray) -> np.ndarray:
    """Return the softmax along the last axis."""
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def of_length_1(values: np.ndarray) -> np.ndarray:
    """Return the vector scaled to length 1."""
    return np.asarray(values / np.linalg.norm(values))


def _normalized(tokens: np.ndarray) -> np.ndarray:
    centred = tokens - tokens.mean(axis=-1, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5))


class TritonPythonModel:
    """The image tower, for pixels that another model has prepared."""

    def initialize(self, args: dict[str, str]) -> None:
        """Make the weights."""
        self.tower = ImageTower()
        self.answers: list[np.ndarray] = []

    def execute(self, requests: list[Any]) -> list[Any]:
        """One response for each request."""
        import triton_python_backend_utils as pb_utils

        # The server reads the memory of the answers after this returns.
        self.answers = [
            self.tower(np.from_dlpack(pb_utils.get_input_tensor_by_name(request, INPUT))) for request in requests
        ]
        return [pb_utils.InferenceResponse([_tensor(pb_utils.Tensor, answer)]) for answer in self.answers]


def _tensor(kind: Any, array: np.ndarray) -> Any:
    if np.__version__.startswith("1."):
        return kind(OUTPUT, array)
    # Servers up to 24.10 do not know the arrays of numpy 2, but those of onnxruntime.
    import onnxruntime

    return kind.from_dlpack(OUTPUT, onnxruntime.OrtValue.ortvalue_from_numpy(array))
