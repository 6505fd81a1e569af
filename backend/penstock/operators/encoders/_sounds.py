"""Code shared by the sound encoders: the input, the sample rate argument, and checks of both."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from penstock.data_types import FLOAT, INT16, UINT8, dtype_name
from penstock.schema import Argument, Input, OutputSpec, Workspace
from penstock.schema.example_data import signals
from penstock.schema.operator import Shape

SOUNDS = Input(
    "audio",
    doc="FLOAT, from -1 to 1, or INT16, of shape (samples,) or (samples, channels).",
    example=signals,
)
SAMPLE_RATE = Argument("sample_rate", "int32", None, "In Hz.", required=True, tensor=True, example=16000)
_MAX_CHANNELS, _MAX_RATE = 8, 655350


def check_encoding(encoding: str, known: Collection[str]) -> None:
    """Raise ValueError unless ``encoding`` is one of ``known``."""
    if encoding not in known:
        raise ValueError(f"`encoding` must be one of {', '.join(known)}. Got: {encoding!r}")


def describe_files(workspace: Workspace[Any, Any, Any]) -> list[OutputSpec]:
    """Return the output's type, UINT8, and rank; raise RuntimeError if the sounds are neither FLOAT nor INT16."""
    batch = workspace.inputs[0]
    if len(batch) and batch.dtype not in (FLOAT, INT16):
        raise RuntimeError(f"Sounds must be FLOAT or INT16, got {dtype_name(batch.dtype)}")
    return [OutputSpec(UINT8, "", 1)]


def check_sound(shape: Shape, rate: int) -> None:
    """Raise ValueError if a sound's shape or its sample rate is invalid."""
    if len(shape) not in (1, 2) or (len(shape) == 2 and not 1 <= shape[1] <= _MAX_CHANNELS):
        raise ValueError(
            f"Sounds must have the shape (samples,), or (samples, channels) with up to {_MAX_CHANNELS} channels. Got: {list(shape)}"
        )
    if not 1 <= rate <= _MAX_RATE:
        raise ValueError(f"`sample_rate` must be from 1 to {_MAX_RATE}. Got: {rate}")


def beyond_range(sound: np.ndarray) -> ValueError:
    """Return the error for a sound with values outside of -1 to 1, which integer encodings cannot represent."""
    return ValueError(f"Values must be from -1 to 1. Got up to {np.abs(sound).max():g}: scale or clamp them")
