"""Types and constants for users: ``types.FLOAT``, ``types.RGB``, ``types.Constant(3)``.

Like `fn` and `ops`, this module is for users only. The package itself imports types from :mod:`penstock.data_types`, and constants
from :mod:`penstock.graph.constants`, which converts them to nodes.
"""

# ruff: noqa: F401
from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from penstock.data_types import (
    ANY_DATA,
    BFLOAT16,
    BGR,
    BOOL,
    CPU_ONLY_DEVICE_ID,
    DATA_TYPE,
    ENUM_TYPES,
    FEATURE,
    FLOAT,
    FLOAT16,
    FLOAT64,
    GRAY,
    IMAGE_TYPE,
    INT8,
    INT16,
    INT32,
    INT64,
    INTERP_CUBIC,
    INTERP_GAUSSIAN,
    INTERP_LANCZOS3,
    INTERP_LINEAR,
    INTERP_NN,
    INTERP_TRIANGULAR,
    INTERP_TYPE,
    NCHW,
    NFCHW,
    NFHWC,
    NHWC,
    NO_TYPE,
    PYTHON_OBJECT,
    RGB,
    SAME,
    STRING,
    TENSOR_LAYOUT,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    BatchInfo,
    CUDAStream,
    DALIDataType,
    DALIImageType,
    DALIInterpType,
    PipelineAPIType,
    SampleInfo,
    ScalarConstant,
    TensorLayout,
    YCbCr,
    check_readable,
    dtype_name,
    element_size,
    enum_type,
    from_numpy_dtype,
    numpy_dtype,
    to_dali_type,
    to_numpy_type,
)
from penstock.errors import no_such_attribute
from penstock.graph.constants import Constant, ConstantNode

if not TYPE_CHECKING:  # Type checkers see the definitions.

    def __getattr__(name: str) -> NoReturn:
        raise no_such_attribute(__name__, name, globals())


__all__ = [
    "CPU_ONLY_DEVICE_ID",
    "BatchInfo",
    "CUDAStream",
    "Constant",
    "ConstantNode",
    "DALIDataType",
    "DALIImageType",
    "DALIInterpType",
    "PipelineAPIType",
    "SampleInfo",
    "ScalarConstant",
    "TensorLayout",
    "dtype_name",
    "element_size",
    "from_numpy_dtype",
    "numpy_dtype",
    "to_dali_type",
    "to_numpy_type",
]

# Private names that programs written for DALI use all the same.
_bool_types = [BOOL]
_int_types = [INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64]
_float_types = [FLOAT16, FLOAT, FLOAT64]
_enum_types = [IMAGE_TYPE, DATA_TYPE, INTERP_TYPE]
_int_like_types = _bool_types + _int_types
_all_types = _int_like_types + _float_types
_DALIDataType = DALIDataType
