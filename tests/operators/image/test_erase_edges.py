"""`erase`: edges of boxes are rounded as in single precision, which decides on which side of an integer they are."""

from __future__ import annotations

import numpy as np
import pytest

from penstock import fn, pipeline_def


@pytest.mark.parametrize(
    ("shape", "first_column"),
    [
        (20, 2),  # 0.3 of 20 is 6, and half of it 3
        (21, 1),  # 0.3 of 21 is more than 6
    ],
)
def test_edges_are_computed_in_single_precision(shape: int, first_column: int) -> None:
    @pipeline_def(batch_size=1, num_threads=1)
    def define() -> object:
        images = fn.external_source(lambda: [np.full((14, shape, 3), 200, np.uint8)], layout="HWC")
        return fn.erase(images, anchor=[3.0, 5.0], shape=[0.5, 0.3], normalized_shape=True, centered_anchor=True)

    pipeline = define()
    erased = np.array(pipeline.run()[0][0])
    columns = np.flatnonzero((erased == 0).all(axis=2).any(axis=0))
    assert (columns[0], columns[-1]) == (first_column, 7)
