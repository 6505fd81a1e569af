"""`random.uniform`: uniformly distributed numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.operators.random._draw import DTYPE, SHAPE, SHAPE_LIKE, Draw, is_wide
from penstock.schema import Alias, Argument, Equivalent, Sample, Schema, register_operator
from penstock.schema.random_operator import Streams


@register_operator
class Uniform(Draw):
    """Returns numbers that are uniformly distributed over a range, or picked from a list of values.

    For integer types, the bounds are truncated and the drawn number is rounded, so that both ends of the range occur half as
    often as the numbers between them.

    >>> angle = fn.random.uniform(range=[-10.0, 10.0])
    """

    schema = Schema(
        name="random__Uniform",
        inputs=(SHAPE_LIKE,),
        min_inputs=0,
        arguments=(
            DTYPE,
            Argument("range", "float[]", [-1.0, 1.0], "[lowest, highest): the range of the numbers.", tensor=True),
            SHAPE,
            Argument(
                "values",
                "float[]",
                None,
                "The values to pick from; `range` is then ignored.",
                tensor=True,
                example=[1.5, 2.5, 7.0],
            ),
        ),
        random=True,
        stateful=True,
        aliases=(Alias("Uniform", deprecated_since="0.30"),),
        equivalents=(Equivalent("numpy.random.Generator.uniform", "It draws other numbers."),),
    )

    def fill_batch(self, sample: Sample, out: np.ndarray, streams: Streams) -> None:
        from penstock.kernels.cpu.casting import cast
        from penstock.kernels.cpu.distributions import fill_rows, fill_rows_double
        from penstock.kernels.cpu.philox import fill_rows_of_bits

        if sample.given("values"):
            values = self._values(sample)
            bits = np.empty(out.shape, np.uint64)
            fill_rows_of_bits(bits, *streams)
            drawn = values[bits * np.uint64(values.size) >> np.uint64(32)]
        else:
            low, high = self._known_bounds(sample, out.dtype)
            drawn = out if out.dtype == np.float32 else np.empty(out.shape, type(low))
            fill = fill_rows_double if isinstance(low, np.float64) else fill_rows
            fill(drawn, *streams, low, high)
        if drawn is not out:
            cast(drawn.reshape(-1), out.reshape(-1))

    def distribution(self, sample: Sample, dtype: np.dtype) -> tuple[str, dict[str, Any]]:
        if sample.given("values"):
            return "Pick", {"values": self._values(sample)}
        low, high = self._bounds(sample, dtype)
        wide = is_wide(dtype)
        real = np.float64 if wide else np.float32
        top = np.nextafter(high, low, dtype=real)
        lowest = min(low, top)
        step = real((max(low, top) - lowest) * real(2.0 ** (-64 if wide else -32)))
        return "UniformDouble" if wide else "Uniform", {"a": float(lowest), "b": float(step)}

    @staticmethod
    def _values(sample: Sample) -> np.ndarray:
        values = np.array(sample["values"], np.float32)
        if not values.size:
            raise RuntimeError("`values` cannot be empty")
        return values

    def _known_bounds(self, sample: Sample, dtype: np.dtype) -> tuple[Any, Any]:
        if "range" in self.tensor_arguments:
            return self._bounds(sample, dtype)
        known = self.known.get(dtype)
        if known is None:
            known = self.known[dtype] = self._bounds(sample, dtype)
        bounds: tuple[Any, Any] = known
        return bounds

    @staticmethod
    def _bounds(sample: Sample, dtype: np.dtype) -> tuple[Any, Any]:
        """Return the low and the high bound of the range, in the type in which numbers are drawn."""
        bounds = sample["range"]
        if len(bounds) != 2:
            raise RuntimeError(f'Argument "range" expected shape 2 but got {len(bounds)} values')
        low: Any = np.float32(bounds[0])
        high: Any = np.float32(bounds[1])
        if not low < high:
            raise RuntimeError(f"Invalid range [{low:g}, {high:g})")
        if dtype.kind != "f":
            low, high = _cut(low, dtype), _cut(high, dtype)
        real = np.float64 if is_wide(dtype) else np.float32
        return real(low), real(high)


def _cut(bound: np.float32, dtype: np.dtype) -> Any:
    """Convert a bound to an integer type: it is truncated, and a negative number wraps around in an unsigned type."""
    return np.uint64(int(bound) % 2**64).astype(dtype)
