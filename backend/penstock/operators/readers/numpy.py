"""`readers.numpy`: arrays from ``.npy`` files."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.data_types import NO_TYPE
from penstock.kernels.codecs.npy import NpyHeader, read_npy_header, view_npy
from penstock.kernels.thread_buffers import ThreadBuffers
from penstock.kernels.windows import Region, apply_policy, check_policy
from penstock.operators.image._boxes import argument_boxes
from penstock.operators.image._windows import copy_region
from penstock.operators.readers._paths import PathReader, path_arguments
from penstock.operators.readers._reader import EPOCH_SHUFFLE_ARGUMENTS, READER_ARGUMENTS
from penstock.schema import Alias, Argument, OutputSpec, Sample, Schema, register_operator

# In bytes; that of an array of numbers has some hundred.
_LONG_HEADER = 4096
_buffers = ThreadBuffers()
_STARTS = ("roi_start", "rel_roi_start")
_ENDS = ("roi_end", "rel_roi_end", "roi_shape", "rel_roi_shape")


@register_operator
class Numpy(PathReader):
    """Reads arrays, or regions of them; all arrays of a batch must have the same type and rank.

    The files are given by ``files``, by ``file_list`` (a text file with a path in each line), or by ``file_root``, with
    all its subfolders.

    >>> arrays = fn.readers.numpy(file_root="arrays", roi_start=[0, 0], roi_shape=[64, 64])  # doctest: +SKIP
    """

    schema = Schema(
        name="readers__Numpy",
        devices=("cpu", "gpu"),
        arguments=(
            *READER_ARGUMENTS,
            *EPOCH_SHUFFLE_ARGUMENTS,
            *path_arguments("*.npy"),
            Argument(
                "cache_header_information", "bool", False, "Accepted for compatibility; headers are read in place."
            ),
            Argument("fill_value", "float", 0.0, 'Value outside an array, with out_of_bounds_policy="pad".'),
            Argument(
                "out_of_bounds_policy",
                "string",
                "error",
                "If a region exceeds the array: `error`, `pad` or `trim_to_shape`.",
            ),
            Argument("register_buffers", "bool", True, "Accepted for compatibility."),
            Argument("rel_roi_end", "float[]", None, "End of the region as a fraction of the extents.", tensor=True),
            Argument("rel_roi_shape", "float[]", None, "Extents of the region as fractions.", tensor=True),
            Argument(
                "rel_roi_start", "float[]", None, "Start of the region as a fraction of the extents.", tensor=True
            ),
            Argument("roi_axes", "int32[]", [], "The region's dimensions; by default all."),
            Argument("roi_end", "int32[]", None, "End of the region.", tensor=True),
            Argument("roi_shape", "int32[]", None, "Extents of the region.", tensor=True),
            Argument("roi_start", "int32[]", None, "Start of the region.", tensor=True),
            Argument("use_o_direct", "bool", False, "Accepted for compatibility."),
        ),
        random=True,
        stateful=True,
        aliases=(Alias("NumpyReader", "1.0"),),
    )

    def setup(self) -> None:
        for names in (_STARTS, _ENDS):
            if sum(self._has(name) for name in names) > 1:
                raise ValueError(f"{', '.join(f'`{name}`' for name in names)} arguments are mutually exclusive")
        self._policy = check_policy(self.args["out_of_bounds_policy"])
        # Of constant regions, by the arrays' shapes.
        self._regions: dict[tuple[int, ...], Region] = {}
        self._has_region = any(self._has(name) for name in _STARTS + _ENDS)
        super().setup()

    def _has(self, name: str) -> bool:
        """Whether part of the region is given; an empty list is not."""
        return self.given(name) and self.args.get(name) != []

    def output_specs(self) -> list[OutputSpec]:
        return [OutputSpec(NO_TYPE)]

    def read(self, item: str) -> tuple[np.ndarray]:
        return (_native(self._array(self.path(item))),)

    def _array(self, path: str) -> np.ndarray:
        return view_npy(self.files.read(path, self.memory.take))

    def read_sample(self, item: str, sample: Sample) -> tuple[np.ndarray]:
        limits, path = sample.workspace.decoding.limits, self.path(item)
        if not self._has_region:
            array = self._array(path)
            limits.check_bytes(array.nbytes, "The array")
            return (_native(array),)
        header = self._header(path)
        limits.check_bytes(header.size, "The array")
        region = self._region(header.shape, sample)
        array, region = self._part(path, header, region)
        target = np.empty(region.extents, array.dtype.newbyteorder("="))
        copy_region(array, region, [_as_held(self.args["fill_value"], array.dtype)], None, target)
        return (target,)

    def _header(self, path: str) -> NpyHeader:
        size = self.files.size(path)
        beginning = self.files.read_range(path, 0, min(size, _LONG_HEADER), _scratch)
        try:
            return read_npy_header(beginning, size)
        except ValueError:
            # The header is unusually long, or invalid.
            return read_npy_header(self.files.read(path), size)

    def _region(self, shape: tuple[int, ...], sample: Sample) -> Region:
        """The region that the sample requests from an array of this shape."""
        constant = not sample.workspace.arguments
        if constant and shape in self._regions:
            return self._regions[shape]
        shapes = np.array([shape], np.int64)
        axes = self.args["roi_axes"] or range(len(shape))
        regions = argument_boxes(_RegionOfInterest(sample, list(axes)), shapes, "")
        apply_policy(shapes, regions.anchors, regions.extents, self._policy)
        region = regions.row(0)
        if constant:
            self._regions[shape] = region
        return region

    def _part(self, path: str, header: NpyHeader, region: Region) -> tuple[np.ndarray, Region]:
        """The rows of an array (columns, if in Fortran order) that a region spans, and the region relative to them."""
        shape = list(header.shape)
        if not shape:
            return self._array(path), region
        axis = len(shape) - 1 if header.fortran_order else 0
        first = min(max(region.anchor[axis], 0), shape[axis])
        last = min(max(region.anchor[axis] + region.extents[axis], first), shape[axis])
        row = header.size // max(shape[axis], 1)
        data = self.files.read_range(path, header.start + first * row, (last - first) * row, _scratch)
        shape[axis] = last - first
        anchor = list(region.anchor)
        anchor[axis] -= first
        values = data.view(header.dtype)
        part = values.reshape(shape, order="F") if header.fortran_order else values.reshape(shape)
        return part, Region(tuple(anchor), region.extents)


def _scratch(size: int) -> np.ndarray:
    """Memory that this thread's next call reuses."""
    return _buffers.array((size,), np.dtype(np.uint8))


def _native(array: np.ndarray) -> np.ndarray:
    """The array in this machine's byte order, contiguous."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)


def _as_held(value: float, dtype: np.dtype) -> float:
    """The fill value in a type: integers are rounded and saturate, unlike in crops."""
    if dtype.kind not in "iu":
        return value
    limits = np.iinfo(dtype)
    return float(np.clip(np.copysign(np.floor(abs(value) + 0.5), value), limits.min, limits.max))


class _RegionOfInterest:
    """A sample's ``roi_*`` arguments under the names that boxes have elsewhere; single values apply to all axes."""

    _NAMES = {name.replace("roi_", ""): name for name in _STARTS + _ENDS}

    def __init__(self, sample: Sample, axes: list[int]) -> None:
        self._sample = sample
        self._axes = axes

    def given(self, name: str) -> bool:
        if name == "axes":
            return True
        own = self._NAMES.get(name)
        return own is not None and self._sample.given(own) and len(self._sample[own]) > 0

    def constant(self, name: str) -> Any:
        return self._sample[self._NAMES[name]]

    def values(self, name: str) -> np.ndarray:
        values = self._axes if name == "axes" else self._sample[self._NAMES[name]]
        count = len(self._axes) if len(values) == 1 else 1
        return np.array([values * count], np.float64)

    def tensors(self, name: str) -> None:
        """None: values from the graph follow the same rules as others."""
