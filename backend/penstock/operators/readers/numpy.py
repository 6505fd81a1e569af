"""`readers.numpy`: reads arrays from ``.npy`` files."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.data_types import NO_TYPE, from_numpy_dtype
from penstock.kernels.codecs.npy import NpyHeader, read_npy_header, view_npy
from penstock.kernels.thread_buffers import ThreadBuffers
from penstock.kernels.windows import Region, apply_policy, check_policy
from penstock.operators.image._boxes import argument_boxes
from penstock.operators.image._windows import copy_region
from penstock.operators.readers._block_reading import Contents, PathTable
from penstock.operators.readers._mapped_files import MappedFile, PieceCopier
from penstock.operators.readers._paths import PathReader, path_arguments
from penstock.operators.readers._reader import EPOCH_SHUFFLE_ARGUMENTS, READER_ARGUMENTS, Sources
from penstock.schema import Alias, Argument, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.storage import OpenFile
from penstock.tensors import TensorListCPU

# The number of bytes to read in order to get a header; the header of an array of numbers has about a hundred.
_HEADER_READ_BYTES = 4096
# The alignment in bytes of files in memory. As headers are padded to a multiple of it, arrays are aligned, too.
_ALIGNMENT = 64
# Regions of more bytes per contiguous piece, or of more pieces, are not copied from mapped files.
_MAX_PIECE_BYTES, _MAX_PIECES = 1 << 14, 1 << 16
# The maximum number of files that stay open, with their regions.
_MAX_OPEN_FILES = 64
_buffers = ThreadBuffers()
_STARTS = ("roi_start", "rel_roi_start")
_ENDS = ("roi_end", "rel_roi_end", "roi_shape", "rel_roi_shape")


@register_operator
class Numpy(PathReader):
    """Reads arrays, or regions of arrays. All arrays of a batch must have the same type and number of dimensions.

    Select the files by ``files``, by ``file_list`` (a text file with a path in each line), or by ``file_root``, a folder whose
    files and whose subfolders' files are read.

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
        # If the region arguments are constants: the region for each shape of array.
        self._regions: dict[tuple[int, ...], Region] = {}
        self._parts: dict[str, _Part] = {}
        self._has_region = any(self._has(name) for name in _STARTS + _ENDS)
        super().setup()

    def _has(self, name: str) -> bool:
        """Return whether an argument of the region is set; an empty list counts as not set."""
        return self.given(name) and self.args.get(name) != []

    def output_specs(self) -> list[OutputSpec]:
        return [OutputSpec(NO_TYPE)]

    def read(self, item: str) -> tuple[np.ndarray]:
        return (_native(self._array(self.path(item))),)

    def read_batch(self, indices: np.ndarray, workspace: Workspace) -> list[TensorListCPU] | None:
        if self._has_region:
            return self._read_regions(indices, workspace)
        table = self._table
        read = None if table is None else table.read(indices, workspace.pool, _ALIGNMENT)
        return None if read is None else self._arrays(read, indices, workspace)

    def _arrays(self, read: Contents, indices: np.ndarray, workspace: Workspace) -> list[TensorListCPU] | None:
        """Return the arrays in a batch of files as views. None unless all arrays have the same type and rank, and are in this machine's
        byte order and in C order.
        """
        from penstock.operators.readers._records_cpu import same_beginnings

        spans = list(zip(read.places.tolist(), read.sizes.tolist()))
        try:
            headers = [_header_at(read.block, *spans[0], workspace)]
            alike = read.sizes.min() == read.sizes.max()
            if alike and same_beginnings(read.block, read.places, headers[0].start):
                headers *= len(spans)
            else:
                headers += [_header_at(read.block, *span, workspace) for span in spans[1:]]
        except ValueError:
            return None
        first = headers[0]
        for header in {id(header): header for header in headers}.values():
            plain = header.dtype.isnative and not header.fortran_order
            if not plain or header.dtype != first.dtype or len(header.shape) != len(first.shape):
                return None
        starts = read.places + np.array([header.start for header in headers])
        shapes = [header.shape for header in headers]
        infos = Sources(self.items, indices)
        dtype = from_numpy_dtype(first.dtype)
        return [TensorListCPU.of_parts(read.block, starts, shapes, dtype, len(first.shape), infos)]

    def _read_regions(self, indices: np.ndarray, workspace: Workspace) -> list[TensorListCPU] | None:
        """Read a batch of regions by copying short pieces of mapped files; return None if that is not possible."""
        if workspace.arguments or self._copier is None:
            return None
        try:
            # A file may occur several times in a batch, because it may occur several times in the data set.
            items = self.items
            paths = [items[index] for index in indices.tolist()]
            parts = {path: self._part_of(self.path(path), workspace) for path in dict.fromkeys(paths)}
        except (OSError, ValueError):
            return None
        kinds = {None if part is None else (part.dtype, len(part.shape)) for part in parts.values()}
        found = [part for part in map(parts.__getitem__, paths) if part is not None]
        if len(kinds) > 1 or not found:
            return None
        shapes = [part.shape for part in found]
        batch = TensorListCPU.allocate(shapes, from_numpy_dtype(found[0].dtype), pool=workspace.pool)
        pieces = np.concatenate([part.pieces for part in found])
        if not self._copier.copy(pieces, batch.elements.view(np.uint8)):
            return None
        batch.source_infos = Sources(self.items, indices)
        return [batch]

    def _part_of(self, path: str, workspace: Workspace) -> _Part | None:
        """Return the constant region of a file's array; None if it cannot be copied in short pieces."""
        file = self.files.opened(path)
        if path not in self._parts or self._parts[path].file is not file:
            if len(self._parts) >= _MAX_OPEN_FILES:
                self._parts.clear()
            header = self._header(path)
            workspace.decoding.limits.check_bytes(header.size, "The array")
            region = self._region(header.shape, Sample(self, workspace, 0))
            self._parts[path] = _Part.of(file, header, region)
        part = self._parts[path]
        return None if part.mapped is None else part

    @functools.cached_property
    def _copier(self) -> PieceCopier | None:
        try:
            return PieceCopier()
        except OSError:
            # A sandbox may forbid the system call that creates files in memory.
            return None

    @functools.cached_property
    def _table(self) -> PathTable | None:
        return PathTable.of(self.files, list(map(self.path, self.items)))

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
        beginning = self.files.read_range(path, 0, min(size, _HEADER_READ_BYTES), _scratch)
        try:
            return read_npy_header(beginning, size)
        except ValueError:
            # The header is unusually long, or invalid: read the whole file.
            return read_npy_header(self.files.read(path), size)

    def _region(self, shape: tuple[int, ...], sample: Sample) -> Region:
        """Return the region of an array of this shape that the sample's arguments request."""
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
        """Read the rows of an array (in Fortran order: the columns) that contain a region; return them, and the region relative to them."""
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


def _header_at(block: np.ndarray, place: int, size: int, workspace: Workspace) -> NpyHeader:
    """Return the header of a file in memory; raise ValueError if the header is damaged or the array exceeds the size limit."""
    header = read_npy_header(block[place : place + size], size)
    workspace.decoding.limits.check_bytes(header.size, "The array")
    return header


@dataclass(frozen=True)
class _Part:
    """A region of an array in a file.

    Attributes:
        file: the file that contains the array.
        shape, dtype: the shape of the region and the type of its elements.
        mapped: the file, mapped into memory; None if copying pieces is impossible, or slower than reading.
        pieces: int64 of shape (n, 2): the address and the size in bytes of each contiguous piece of the region.
    """

    file: OpenFile
    shape: tuple[int, ...]
    dtype: np.dtype
    mapped: MappedFile | None
    pieces: np.ndarray

    @staticmethod
    def of(file: OpenFile, header: NpyHeader, region: Region) -> _Part:
        """Return a region of a file's array. Map the file and list the region's pieces if these are short, and not too many."""
        dtype, shape, extents = header.dtype, header.shape, tuple(region.extents)
        none = _Part(file, extents, dtype, None, np.empty((0, 2), np.int64))
        inside = all(a >= 0 and a + e <= s for a, e, s in zip(region.anchor, extents, shape))
        if header.fortran_order or not dtype.isnative or not inside or not shape or not file.size:
            return none
        starts, stride, size, split = np.array([header.start]), dtype.itemsize, dtype.itemsize, False
        for anchor, extent, whole in zip(region.anchor[::-1], extents[::-1], shape[::-1]):
            steps = np.arange(anchor, anchor + (extent if split else 1)) * stride
            starts = np.add.outer(steps, starts).reshape(-1)
            size *= 1 if split else extent
            split = split or extent < whole
            stride *= whole
        if size > _MAX_PIECE_BYTES or len(starts) > _MAX_PIECES:
            return none
        mapped = MappedFile(file)
        pieces = np.stack([mapped.address + starts, np.full(len(starts), size)], 1)
        return _Part(file, extents, dtype, mapped, pieces)


def _scratch(size: int) -> np.ndarray:
    """Return ``size`` bytes of memory, which this thread's next call returns again."""
    return _buffers.array((size,), np.dtype(np.uint8))


def _native(array: np.ndarray) -> np.ndarray:
    """Return the array as a contiguous one in this machine's byte order."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)


def _as_held(value: float, dtype: np.dtype) -> float:
    """Return the fill value converted to a type; for integer types, it is rounded and saturated, unlike in `crop`."""
    if dtype.kind not in "iu":
        return value
    limits = np.iinfo(dtype)
    return float(np.clip(np.copysign(np.floor(abs(value) + 0.5), value), limits.min, limits.max))


class _RegionOfInterest:
    """A sample's ``roi_*`` arguments, with the interface and under the names that other operators use for boxes. Single values apply to
    all axes.
    """

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
        """Return None, so that values from the graph are treated like constants."""
