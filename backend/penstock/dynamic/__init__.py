"""Dynamic mode: operators run when they are called, without a pipeline.

>>> from penstock import dynamic
>>> images = dynamic.batch([np.zeros((4, 6, 3), np.uint8), np.full((8, 2, 3), 255, np.uint8)], layout="HWC")
>>> dynamic.resize(images, size=[2, 2]).shape
[(2, 2, 3), (2, 2, 3)]

Operators, their arguments and their results are the same as in pipelines (:mod:`penstock.fn`), as they are made from the same declarations
and run by the same engine.
"""

from __future__ import annotations

from penstock.dynamic import _imread, _ops, capture, checkpoint, math, pytorch, random
from penstock.dynamic import _ops as ops
from penstock.dynamic._batch import Batch
from penstock.dynamic._devices import Device, DeviceLike, device
from penstock.dynamic._dtypes import (
    DataType,
    DType,
    ImageType,
    InterpType,
    bfloat16,
    bool,
    dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    type_id,
    uint8,
    uint16,
    uint32,
    uint64,
)
from penstock.dynamic._eval_contexts import EvalContext
from penstock.dynamic._eval_modes import EvalMode
from penstock.dynamic._external_source import ExternalSource
from penstock.dynamic._imread import imread
from penstock.dynamic._making import as_batch, as_tensor, batch, tensor
from penstock.dynamic._streams import (
    Stream,
    get_current_stream,
    get_default_stream,
    set_current_stream,
    set_default_stream,
    stream,
)
from penstock.dynamic._tensor import Tensor
from penstock.dynamic._thread_pools import ThreadPool, get_num_threads, set_num_threads

__all__ = [
    "Batch",
    "DType",
    "DataType",
    "Device",
    "DeviceLike",
    "EvalContext",
    "EvalMode",
    "ExternalSource",
    "ImageType",
    "InterpType",
    "Stream",
    "Tensor",
    "ThreadPool",
    "as_batch",
    "as_tensor",
    "batch",
    "bfloat16",
    "bool",
    "capture",
    "checkpoint",
    "device",
    "dtype",
    "float16",
    "float32",
    "float64",
    "get_current_stream",
    "get_default_stream",
    "get_num_threads",
    "imread",
    "int8",
    "int16",
    "int32",
    "int64",
    "math",
    "ops",
    "pytorch",
    "random",
    "set_current_stream",
    "set_default_stream",
    "set_num_threads",
    "stream",
    "tensor",
    "type_id",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

_ops.publish()
_imread.publish()
