"""`noise.salt_and_pepper`: replaces random pixels with white or black."""

from __future__ import annotations

import math

import numpy as np

from penstock.operators.random._noise import NOISY, Noise
from penstock.schema import Argument, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import on_photo


@register_operator
class SaltAndPepperNoise(Noise[str]):
    """Replaces random pixels with one of two values, by default the greatest and the smallest of the type.

    >>> noisy = fn.noise.salt_and_pepper(images, prob=0.1)
    """

    schema = Schema(
        name="noise__SaltAndPepper",
        inputs=(NOISY,),
        arguments=(
            Argument(
                "pepper_val",
                "float",
                None,
                "Value of pepper; by default the type's lowest, or -1.",
                tensor=True,
                zero_dimensional=True,
                example=3.0,
            ),
            Argument("per_channel", "bool", False, "Decide for each channel of a pixel separately."),
            Argument(
                "prob", "float", 0.05, "Probability that a pixel is replaced.", tensor=True, zero_dimensional=True
            ),
            Argument(
                "salt_val",
                "float",
                None,
                "Value of salt; by default the type's highest, or 1.",
                tensor=True,
                zero_dimensional=True,
                example=200.0,
            ),
            Argument(
                "salt_vs_pepper",
                "float",
                0.5,
                "Probability that a replaced pixel is salt.",
                tensor=True,
                zero_dimensional=True,
            ),
        ),
        random=True,
        stateful=True,
        shown=(on_photo(prob=0.1),),
    )

    def describe(self, workspace: Workspace[str]) -> list[OutputSpec]:
        specs = super().describe(workspace)
        layout = specs[0].layout
        if layout and not self.args["per_channel"] and layout.find("C") not in (0, len(layout) - 1):
            raise RuntimeError(
                "'C' should be the first or the last dimension in the layout, except for empty layouts, "
                f'where channel-last is assumed. Got layout: "{layout}".'
            )
        workspace.state = layout
        return specs

    def compute(self, sample: Sample[str]) -> None:
        from penstock.kernels.cpu import noise

        source, out = np.ascontiguousarray(sample.inputs[0]), sample.outputs[0]
        view = self._planes_pixels_channels(source.shape, sample.workspace.state)
        noise.sprinkle(
            out.reshape(view),
            source.reshape(view),
            *self.stream(sample),
            *_probabilities(sample),
            *_salt_and_pepper(sample, out.dtype),
        )

    def compute_batch(self, workspace: Workspace[str]) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.philox import Sprinkling, sprinkle

        samples = workspace.live
        sprinklings = []
        for sample, source, target in zip(
            samples, locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        ):
            try:
                probabilities = map(float, _probabilities(sample))
            except Exception as error:
                workspace.fail(sample.index, error)
                continue
            view = self._planes_pixels_channels(source.shape, workspace.state)
            values = map(float, _salt_and_pepper(sample, target.dtype))
            stream = self.stream_index(workspace, sample.index)
            sprinklings.append(Sprinkling(source, target, stream, view, *probabilities, *values))
        sprinkle(sprinklings, self.first_stream(workspace))

    def _planes_pixels_channels(self, shape: tuple[int, ...], layout: str) -> tuple[int, int, int]:
        if self.args["per_channel"] or not shape:
            return 1, math.prod(shape), 1
        if layout.startswith("C"):
            return shape[0], math.prod(shape[1:]), 1
        return 1, math.prod(shape[:-1]), shape[-1]


def _probabilities(sample: Sample[str]) -> tuple[np.float32, np.float32]:
    """Return two probabilities: that a pixel is replaced, and that it is replaced with the salt value."""
    probability, salt_part = np.float32(sample["prob"]), np.float32(sample["salt_vs_pepper"])
    for name, value in (("prob", probability), ("salt_vs_pepper", salt_part)):
        if not 0 <= value <= 1:
            raise RuntimeError(f"`{name}` must be a probability, from 0 to 1. Got: {value:g}")
    return probability, probability * salt_part


def _salt_and_pepper(sample: Sample[str], dtype: np.dtype) -> tuple[np.generic, np.generic]:
    """Return the salt value and the pepper value in the type ``dtype``."""
    salt, pepper = _extremes(dtype)
    return (
        _held(sample["salt_val"], dtype) if sample.given("salt_val") else salt,
        _held(sample["pepper_val"], dtype) if sample.given("pepper_val") else pepper,
    )


def _extremes(dtype: np.dtype) -> tuple[np.generic, np.generic]:
    """Return the default salt and pepper values of a type: an integer type's maximum and minimum; 1 and -1 for floating-point types."""
    if dtype.kind == "f":
        return dtype.type(1), dtype.type(-1)
    return dtype.type(np.iinfo(dtype).max), dtype.type(np.iinfo(dtype).min)


def _held(value: float, dtype: np.dtype) -> np.generic:
    """Convert a number to a type; for integer types, it is truncated and wraps around."""
    return np.float32(value).astype(dtype) if dtype.kind == "f" else np.int64(value).astype(dtype)
