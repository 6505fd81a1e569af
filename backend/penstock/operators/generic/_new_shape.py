"""The target shape that `reshape` and `reinterpret` take as an input."""

from __future__ import annotations

from penstock.schema import Sample


def extents_from_input(sample: Sample) -> list[int]:
    """The shape given by the second input."""
    data = sample.inputs[1]
    if data.ndim != 1 or data.dtype.kind not in "iu":
        raise RuntimeError(
            f"Shape input must have integral type and one dimension, got {data.dtype} with {data.ndim} dimensions"
        )
    return data.tolist()
