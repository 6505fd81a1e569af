"""Filter arguments that take one value, or one for each axis."""

from __future__ import annotations

from typing import Any

from penstock.schema import Sample


def per_axis(sample: Sample, name: str, count: int) -> list[Any]:
    """Return an argument's value for each of ``count`` axes; raise RuntimeError unless it has one or ``count`` values."""
    values = sample[name]
    if len(values) not in (1, count):
        if sample.tensor_argument(name) is None:
            raise RuntimeError(
                f'Argument "{name}" expects either a single value or a list of {count} elements. {len(values)} given.'
            )
        raise RuntimeError(
            f"Argument {name} for sample {sample.index} is expected to have 1 or {count} elements, got: {len(values)}"
        )
    return values * count if len(values) == 1 else values
