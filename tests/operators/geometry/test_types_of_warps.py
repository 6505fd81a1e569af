"""Warps from one type to another, and pre-emphasis with a coefficient of 0, are the same on both devices."""

from __future__ import annotations

import pytest
from devices import check_equal, images

from penstock import fn, types

# A real GPU or, if there is none, an emulated one, for which kernels are compiled with g++.
pytestmark = pytest.mark.usefixtures("with_gpu")


@pytest.mark.parametrize("dtype", [types.UINT8, types.INT16, types.INT32])
@pytest.mark.parametrize("interp_type", [types.INTERP_NN, types.INTERP_LINEAR])
def test_floats_are_warped_into_integers(dtype: types.DALIDataType, interp_type: types.DALIInterpType) -> None:
    check_equal(
        lambda device: fn.warp_affine(
            fn.cast(images(device), dtype=types.FLOAT) * 300.0 - 9.0,
            matrix=[1.0, 0.2, 1.0, 0.0, 1.0, 2.0],
            dtype=dtype,
            interp_type=interp_type,
            fill_value=-300.5,
        )
    )


@pytest.mark.parametrize("dtype", [types.FLOAT, types.INT32, types.UINT8])
def test_nothing_is_subtracted(dtype: types.DALIDataType) -> None:
    check_equal(
        lambda device: fn.preemphasis_filter(
            fn.cast(images(device), dtype=types.INT32) * 8_000_001, preemph_coeff=0.0, dtype=dtype
        )
    )
