"""`random.uniform`: evenly distributed numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.operators.random._draw import DTYPE, SHAPE, SHAPE_LIKE, Draw, is_wide
from penstock.schema import Alias, Argument, Sample, Schema, register_operator


@register_operator
class Uniform(Draw):
    """Numbers evenly distributed over a range, or picked with equal chances from a list of values.

    For integer types the bounds are cut to integers first and the drawn number is rounded, so that both ends of the
    range occur, half as often as the numbers between them.

    >>> angle = fn.random.uniform(range=[-10.0, 10.0])
    """

    schema = Schema(
        name="random__Uniform",
        inputs=(SHAPE_LIKE,),
        min_inputs=0,
        arguments=(
            DTYPE,
            Argument("range", "float[]", [-1.0, 1.0], "[lowest, highest): where the numbers are from.", tensor=True),
            SHAPE,
            Argument("values", "float[]", None, "The values to pick from; excludes `range`.", tensor=True),
        ),
        random=True,
        stateful=True,
        aliases=(Alias("Uniform", deprecated_since="0.30"),),
    )

    def setup(self) -> None:
        if self.given("range") and self.given("values"):
            raise RuntimeError("The arguments `range` and `values` cannot be given together")

    def fill(self, sample: Sample, out: np.ndarray) -> None:
        if sample.given("values"):
            self._pick(sample, out)
        else:
            self._spread(sample, out)

    def _pick(self, sample: Sample, out: np.ndarray) -> None:
        from penstock.kernels.cpu import convert, philox

        values = np.array(sample["values"], np.float32)
        if not values.size:
            raise RuntimeError("`values` cannot be empty")
        bits = np.empty(out.size, np.uint64)
        philox.fill_bits(bits, *self.stream(sample))
        convert.cast(values[bits * np.uint64(values.size) >> np.uint64(32)], out)

    def _spread(self, sample: Sample, out: np.ndarray) -> None:
        from penstock.kernels.cpu import convert, philox

        bounds = sample["range"]
        if len(bounds) != 2:
            raise RuntimeError(f"`range` expects two numbers, got {len(bounds)}")
        low: Any = np.float32(bounds[0])
        high: Any = np.float32(bounds[1])
        if not low < high:
            raise RuntimeError(f"Invalid range [{low:g}, {high:g})")
        if out.dtype.kind != "f":
            low, high = _cut(low, out.dtype), _cut(high, out.dtype)
        if out.dtype == np.float32:
            philox.fill_uniform(out, *self.stream(sample), low, high)
        elif is_wide(out.dtype):
            drawn = np.empty(out.size, np.float64)
            philox.fill_uniform_double(drawn, *self.stream(sample), float(low), float(high))
            convert.cast(drawn, out)
        else:
            narrow = np.empty(out.size, np.float32)
            philox.fill_uniform(narrow, *self.stream(sample), np.float32(low), np.float32(high))
            convert.cast(narrow, out)


def _cut(bound: np.float32, dtype: np.dtype) -> Any:
    """A bound as an integer type holds it: cut towards zero; negative ones wrap around in unsigned types."""
    return np.uint64(int(bound) % 2**64).astype(dtype)
