"""Dynamic mode on two GPUs."""

from __future__ import annotations

import numpy as np
import pytest

from penstock import dynamic


def test_inputs_on_several_gpus_are_refused_and_can_be_brought_together() -> None:
    one, other = dynamic.tensor([1, 2]).gpu(0), dynamic.tensor([3, 5]).gpu(1)
    with pytest.raises(ValueError, match="gpu:0 and gpu:1"):
        (one + other).evaluate()
    assert np.asarray((one + other.gpu(0)).cpu()).tolist() == [4, 7]
    reversed_ = other[::-1]
    assert np.asarray((one.gpu(1) + reversed_).cpu()).tolist() == [6, 5]
    assert np.asarray(reversed_.gpu(0).cpu()).tolist() == [5, 3]
