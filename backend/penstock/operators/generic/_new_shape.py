"""The shape that an input tells, for `reshape` and `reinterpret`."""

from __future__ import annotations

from penstock.schema import Sample


def extents_from_input(sample: Sample) -> list[int]:
    """The new shape that the second input gives."""
    data = sample.inputs[1]
    if data.ndim != 1 or data.dtype.kind not in "iu":
        raise RuntimeError(
            f"Shape input must have integral type and one dimension, got {data.dtype} with {data.ndim} dimensions"
        )
    return data.tolist()
