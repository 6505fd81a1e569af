"""`random.coin_flip`: draws ones with some probability, otherwise zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.data_types import DALIDataType
from penstock.operators.random._draw import DTYPE, SHAPE, SHAPE_LIKE, Draw
from penstock.schema import Alias, Argument, Sample, Schema, register_operator
from penstock.schema.example_data import Example
from penstock.schema.random_operator import Streams


@register_operator
class CoinFlip(Draw):
    """Returns 1 with probability ``probability``, and otherwise 0.

    >>> flipped = fn.flip(images, horizontal=fn.random.coin_flip(probability=0.5))
    """

    schema = Schema(
        name="random__CoinFlip",
        inputs=(SHAPE_LIKE,),
        min_inputs=0,
        arguments=(
            DTYPE,
            Argument(
                "probability", "float", 0.5, "Probability of a 1, from 0 to 1.", tensor=True, zero_dimensional=True
            ),
            SHAPE,
        ),
        random=True,
        stateful=True,
        aliases=(Alias("CoinFlip", deprecated_since="0.30"),),
        examples=(Example(), Example({"dtype": DALIDataType.UINT8})),
    )
    default_dtype = DALIDataType.INT32
    dtypes = (DALIDataType.BOOL, DALIDataType.UINT8, DALIDataType.INT32)

    def fill_batch(self, sample: Sample, out: np.ndarray, streams: Streams) -> None:
        from penstock.kernels.cpu.philox import fill_rows_of_flips

        fill_rows_of_flips(out, *streams, np.uint64(_last_head(sample)))

    def distribution(self, sample: Sample, dtype: np.dtype) -> tuple[str, dict[str, Any]]:
        return "Flip", {"a": float(_last_head(sample))}


def _last_head(sample: Sample) -> int:
    """Return the largest 32-bit random number that yields a 1."""
    probability = float(np.float32(sample["probability"]))
    if not -(2**31) <= probability < 1:
        # NaN counts as 0, and so do negative numbers whose product with 2**32 does not fit 64 bits.
        return 2**32 - 1 if probability >= 1 else 0
    return int(probability * 2**32) % 2**32
