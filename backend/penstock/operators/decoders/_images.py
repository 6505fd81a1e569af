"""The base class of the image decoders: common arguments, shapes from headers, decoding on CPU and GPU."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.core.chains import Chain
from penstock.data_types import (
    ANY_DATA,
    BGR,
    FLOAT,
    GRAY,
    INT8,
    INT16,
    INT32,
    RGB,
    UINT8,
    UINT16,
    UINT32,
    DALIDataType,
    dtype_name,
    numpy_dtype,
)
from penstock.errors import PenstockError
from penstock.kernels.codecs.decoder_memory import image_memory, memory_of_jpegs, memory_of_pngs
from penstock.kernels.codecs.decoding import HostResources
from penstock.kernels.codecs.image_codec import (
    decode,
    decode_jpegs,
    decode_jpegs_for,
    decode_pngs,
    decode_reduced,
    decode_reduced_to_scratch,
    decode_to_scratch,
    run_chain_of_jpegs,
)
from penstock.kernels.codecs.image_description import (
    UPRIGHT,
    EncodedFiles,
    ImageHeader,
    JpegHeaders,
    PngHeaders,
    output_channels,
)
from penstock.kernels.codecs.image_errors import CorruptImageError
from penstock.kernels.codecs.image_header import read_header, read_jpeg_headers, read_png_headers
from penstock.kernels.codecs.jpeg_regions import decodes_alone
from penstock.kernels.windows import Region
from penstock.operators.image._windows import Regions
from penstock.schema import Argument, Deprecation, OutputSpec, PlanColumns, Sample, Samples, Workspace
from penstock.schema.early_start import EarlyStart
from penstock.schema.fused import without_data
from penstock.schema.image_chain import PixelSource
from penstock.schema.operator import Shape
from penstock.schema.tolerance import ON_ERROR
from penstock.schema.workspace import PlannedSamples
from penstock.tensors import TensorListCPU, TensorListGPU
from penstock.tensors.places import places_of_files, places_of_samples

if TYPE_CHECKING:
    from penstock.kernels.codecs.gpu.jpegs import JpegRequest
    from penstock.kernels.cpu.jpeg.files import Files, Scratch
    from penstock.kernels.cuda.resample import PlannedResampling

_OUTPUT_TYPES = (UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT)

_ORIENTATION = Argument("adjust_orientation", "bool", True, "Rotate images as their EXIF data (or TIFF tag) says.")

DECODER_ARGUMENTS = (
    _ORIENTATION,
    Argument("affine", "bool", True, "Accepted for compatibility; threads are bound by the pipeline's settings."),
    Argument(
        "device_memory_padding", "int32", 16777216, "Initial size of nvJPEG's device buffers, in bytes (`mixed`)."
    ),
    Argument("device_memory_padding_jpeg2k", "int32", 0, "The same for nvJPEG2000."),
    Argument(
        "dtype",
        "DALIDataType",
        UINT8,
        "Type of the output. Values are scaled to its range: integers to their maximum, floating point to [0, 1].",
    ),
    Argument("host_memory_padding", "int32", 8388608, "Initial size of nvJPEG's host buffers, in bytes (`mixed`)."),
    Argument("host_memory_padding_jpeg2k", "int32", 0, "The same for nvJPEG2000."),
    Argument(
        "hw_decoder_load",
        "float",
        0.65,
        "The share of a batch's JPEGs for the GPU's JPEG engine, from 0 to 1 (`mixed`); below 1, adapted to what is fastest. "
        "Unless it is set, our own kernels decode JPEGs for batch sizes of 8 or more, and with `jpeg_fancy_upsampling`.",
    ),
    Argument(
        "hybrid_huffman_threshold",
        "uint32",
        1000000,
        "JPEGs of more pixels are entropy-decoded on the GPU, smaller ones on the CPU (`mixed`).",
    ),
    Argument(
        "jpeg_fancy_upsampling",
        "bool",
        False,
        "Smooth upsampling of JPEG's chroma on the GPU, to the pixels of the CPU, which always does it.",
    ),
    Argument("memory_stats", "bool", False, deprecated=Deprecation("1.36", removed=True)),
    ON_ERROR,
    Argument(
        "output_type",
        "DALIImageType",
        RGB,
        "Colour space of the output: RGB, BGR, GRAY, YCbCr (BT.601, studio range), or ANY_DATA: as stored.",
    ),
    Argument("preallocate_height_hint", "int32", 0, "Height to preallocate the JPEG engine's buffers for."),
    Argument("preallocate_width_hint", "int32", 0, "Width to preallocate the JPEG engine's buffers for."),
    Argument("split_stages", "bool", False, deprecated=Deprecation("1.0", removed=True)),
    Argument("use_chunk_allocator", "bool", False, deprecated=Deprecation("1.0", removed=True)),
    Argument("use_fast_idct", "bool", False, "Use a faster, less accurate inverse DCT for JPEG on the CPU."),
)

EXACT, FAST = "exact", "fast"
SCALES = {EXACT: 1, FAST: 1, "1/2": 2, "1/4": 4, "1/8": 8}

SCALE = Argument(
    "scale",
    "string",
    EXACT,
    "At which size JPEGs are decoded (CPU only). `exact`: at full size. `fast`: at half, a quarter or an eighth of the rows and "
    "columns where a `resize` follows directly that reduces the image at least as far; pixels are close to those of `exact`, not "
    "equal. `1/2`, `1/4`, `1/8`: at this size, rounded up; other formats are decoded and averaged.",
    choices=tuple(SCALES),
)

ENCODED_DOC = "Encoded images: the bytes of files, uint8 of shape (n,); zeros after an image are ignored."


def encoded_bytes(sample: Sample) -> np.ndarray:
    """Return the bytes of a sample's encoded image, a contiguous array of shape (n,)."""
    return bytes_of(sample.workspace.inputs[0].samples[sample.index])


def bytes_of(array: np.ndarray) -> np.ndarray:
    """Return the bytes of an encoded image as a contiguous uint8 array of shape (n,)."""
    if array.ndim == 1 and array.dtype == np.uint8 and array.flags.c_contiguous:
        return array
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def undecodable(error: PenstockError, sample: Sample) -> PenstockError:
    """Return a new error of the same class whose message also names the sample and, if known, the image's source."""
    infos = sample.workspace.inputs[0].source_infos
    source = f": {infos[sample.index]}" if infos and infos[sample.index] else ""
    return type(error)(f"Failed to decode sample #{sample.index}{source}. {error}")


def check_encoded(workspace: Workspace, accepted: Sequence[DALIDataType] = (UINT8, INT8)) -> None:
    """Raise ValueError unless the input's type is one of ``accepted``; an empty batch may have any type."""
    batch = workspace.inputs[0]
    if batch.dtype not in accepted and len(batch):
        raise ValueError(
            f"The input must be a raw, undecoded file stored as a flat uint8 array, got {dtype_name(batch.dtype)}"
        )


def _spans(window: Region) -> str:
    """Describe a window in an error message: its start and end in each dimension."""
    return ", ".join(f"{start}..{start + extent}" for start, extent in zip(window.anchor, window.extents))


# Decoding a JPEG with at most this many pixels takes so little memory that it is not estimated, which requires counting scans.
_MAX_PIXELS_WITHOUT_SCAN_COUNT = 1 << 20

# If a region covers more than this fraction of the image, decoding the whole image with simplejpeg is as fast as decoding the region
# with nvImageCodec.
_MAX_FRACTION_FOR_REGION_DECODE = 0.8


_REDUCTIONS = 8, 4, 2

_SIZES = attrgetter("height", "width", "channels")


class _Files(Sequence[np.ndarray]):
    """The files of a batch's samples: a list whose arrays are created only when they are read."""

    def __init__(self, batch: TensorListCPU) -> None:
        self._batch = batch

    def __len__(self) -> int:
        return len(self._batch)

    def __getitem__(self, index: Any) -> Any:
        return self._batch.samples[index]


class Encoded:
    """The encoded images of a batch.

    Args:
        batch: the images' bytes.

    Attributes:
        headers: the headers that were read one by one, by the index of the sample in the batch.
        together: whether one call reads all headers, and another decodes all images that its kernels support.
        request: the batch's request to the GPU's decoder; None until its headers are read.
    """

    def __init__(self, batch: TensorListCPU) -> None:
        self._batch = batch
        self._files: EncodedFiles | None = None
        self.headers: dict[int, ImageHeader] = {}
        self.together = False
        self.request: JpegRequest | None = None

    @property
    def files(self) -> EncodedFiles:
        """The files of all samples."""
        if self._files is None:
            self._files = self._found()
        return self._files

    def _found(self) -> EncodedFiles:
        batch = self._batch
        placed = places_of_files(batch) if batch.dtype is UINT8 and batch.ndim() == 1 else None
        if placed is not None:
            return EncodedFiles(_Files(batch), *placed)
        return EncodedFiles([bytes_of(sample) for sample in batch.samples])


class DecodePlan(NamedTuple):
    """An image's header, and the window (in H, W) to decode; None: the whole image."""

    header: ImageHeader
    window: Region | None


@dataclass(eq=False)
class DecodePlans(PlanColumns[DecodePlan]):
    """The headers of many images, and the windows (in H, W) to decode; None: whole images."""

    headers: Sequence[ImageHeader]
    windows: Regions | None

    @classmethod
    def joined(cls, parts: Sequence[DecodePlans]) -> DecodePlans:
        return super().joined([replace(part, headers=list(part.headers)) for part in parts])

    def __len__(self) -> int:
        return len(self.headers)

    def row(self, number: int) -> DecodePlan:
        return DecodePlan(self.headers[number], None if self.windows is None else self.windows.row(number))


class ImageDecoder(PixelSource[Encoded, DecodePlan, DecodePlans]):
    """Base class of the image decoders. Subclasses that decode windows override :meth:`windows`."""

    _gpu: Any = None

    def setup(self) -> None:
        self.output_type = self.args["output_type"]
        if self.args["dtype"] not in _OUTPUT_TYPES:
            raise ValueError(
                f"Unsupported output type: {dtype_name(self.args['dtype'])}. Images can be decoded as "
                f"{', '.join(dtype_name(t) for t in _OUTPUT_TYPES)}"
            )
        scale = self.args.get("scale", EXACT)
        if scale not in SCALES:
            raise ValueError(f"`scale` must be one of {', '.join(map(repr, SCALES))}. Got: {scale!r}")
        if scale != EXACT and self.device != "cpu":
            raise ValueError(
                f"`scale={scale!r}` needs `device='cpu'`: on the device '{self.device}', images are decoded at full size"
            )
        # The factor by which all images are reduced. With `scale="fast"` the next operator chooses a factor for each image.
        self._scale = SCALES[scale]
        self._output = OutputSpec(self.args["dtype"], "HWC", 3)
        # True until an image arrives that the GPU's decoders do not support.
        self.is_cheap_on_host = self.device == "mixed"

    def windows(self, samples: Samples[Encoded, DecodePlan, DecodePlans], extents: np.ndarray) -> Regions | None:
        """Return the window (in H, W) to decode of each image, or None to decode whole images.

        Args:
            samples: the samples.
            extents: the height and width of each image, upright if the orientation is adjusted; int64 of shape (samples, 2).
        """
        return None

    def begins_chain(self) -> bool:
        # A chain saves memory for whole images. A batch of windows fits memory anyway, and decoding all images first is faster.
        return self.decodes_whole

    @functools.cached_property
    def decodes_whole(self) -> bool:
        """Whether this operator decodes whole images, not windows."""
        return type(self).windows is ImageDecoder.windows

    def describe(self, workspace: Workspace[Encoded]) -> list[OutputSpec]:
        check_encoded(workspace)
        workspace.state = Encoded(workspace.inputs[0])
        return [self._output]

    def infer_batch(self, samples: Samples[Encoded, DecodePlan, DecodePlans]) -> tuple[np.ndarray, DecodePlans]:
        samples.state.together = self._decodes_together
        headers = self._headers(samples)
        shapes = self._shapes_of(headers)
        shapes[:, :2] = -(-shapes[:, :2] // self._scale)
        windows = self.windows(samples, shapes[:, :2])
        if windows is not None:
            if not windows.are_inside(shapes[:, :2]):
                self._check_inside(windows, shapes)
            shapes[:, :2] = windows.extents
        return shapes, DecodePlans(headers, windows)

    def _shapes_of(self, headers: Sequence[ImageHeader]) -> np.ndarray:
        """Return the shapes (H, W, C) of decoded images, one per row."""
        if isinstance(headers, (JpegHeaders, PngHeaders)):
            shapes, turned = headers.shapes.copy(), headers.transposed
        else:
            shapes = np.array(list(map(_SIZES, headers)))
            turned = np.array([header.orientation.transposed for header in headers])
        if self.args["adjust_orientation"] and turned.any():
            shapes[turned, :2] = shapes[turned, 1::-1]
        if self.output_type != ANY_DATA:
            shapes[:, 2] = output_channels(self.output_type, 0)
        return shapes

    def _headers(self, samples: Samples[Encoded, DecodePlan, DecodePlans]) -> Sequence[ImageHeader]:
        """Return the images' headers. Record a failure for each image without a valid header, so that no file that crashes its reader
        is read again.

        Raises:
            CorruptImageError: some headers could not be read.
        """
        workspace = samples.workspace
        known = self._known_headers(samples)
        if isinstance(known, (JpegHeaders, PngHeaders)):
            return known
        headers = []
        for index, header in zip(samples.indices, known):
            try:
                headers.append(header or self._header(workspace, index))
            except PenstockError as error:
                workspace.fail(index, error)
        if len(headers) < len(samples):
            raise CorruptImageError("Some of the images have no header")
        return headers

    def _known_headers(self, samples: Samples[Encoded, DecodePlan, DecodePlans]) -> Sequence[ImageHeader | None]:
        """Return the headers that one call can read: of the batch's baseline JPEGs, or if it has none, of its plain PNGs. None for images
        of other formats; None for all if an image may exceed the size limit, or if one call would not be faster.
        """
        # Time spent in Python before the images reach the GPU's decoder delays decoding, so that one call is faster there, too.
        if self.begins_early or samples.state.together:
            decoding = samples.workspace.decoding
            files = samples.state.files.take(samples.indices)
            known: Sequence[ImageHeader | None] = read_jpeg_headers(files, decoding)
            if samples.state.together and not isinstance(known, JpegHeaders) and not any(known):
                known = read_png_headers(files, decoding) or known
            most = decoding.limits.bytes
            if most is None or (isinstance(known, (JpegHeaders, PngHeaders)) and self._largest(known) <= most):
                return known
        return [None] * len(samples)

    def _largest(self, headers: JpegHeaders | PngHeaders) -> int:
        """Return the size of the largest decoded image in bytes."""
        return int(self._shapes_of(headers).prod(axis=1).max()) * numpy_dtype(self.args["dtype"]).itemsize

    def _header(self, workspace: Workspace[Encoded], index: int) -> ImageHeader:
        """Return the header of an image.

        Raises:
            PenstockError: the header is invalid, or the image exceeds the size limits.
        """
        header = workspace.state.headers.get(index)
        if header is None:
            sample, decoding = Sample(self, workspace, index), workspace.decoding
            try:
                header = read_header(encoded_bytes(sample), decoding)
                shape = header.shape(self.output_type, self.args["adjust_orientation"])
                decoding.limits.check_image(shape, numpy_dtype(self.args["dtype"]).itemsize)
            except PenstockError as error:
                raise undecodable(error, sample) from None
            workspace.state.headers[index] = header
        return header

    def _check_inside(self, windows: Regions, shapes: np.ndarray) -> None:
        for window, (height, width, _) in zip(windows, shapes.tolist()):
            if not window.inside((height, width)):
                raise ValueError(
                    f"The cropping window [{_spans(window)}] is not valid for image dimensions [{height} x {width}]"
                )

    @property
    def _decodes_together(self) -> bool:
        """Whether the kernels that decode many images in one call support the operator's arguments."""
        return (
            self.device == "cpu"
            and self.output_type in (RGB, BGR, GRAY)
            and self.args["dtype"] == UINT8
            and not self.args["use_fast_idct"]
        )

    def compute_samples(self, workspace: Workspace[Encoded, DecodePlan, DecodePlans], shapes: Sequence[Shape]) -> None:
        together = workspace.state.together and not workspace.failures
        self.compute_some(workspace, self._decode_together(workspace) if together else range(len(shapes)), shapes)

    def _decode_together(self, workspace: Workspace[Encoded, DecodePlan, DecodePlans]) -> Sequence[int]:
        """Decode the batch's baseline JPEGs, or its plain PNGs, in one call; return the indices of images that are not decoded."""
        headers, windows = workspace.plans.headers, workspace.plans.windows
        targets = places_of_samples(workspace.outputs[0])
        regions = None if windows is None else (windows.anchors, windows.extents)
        if isinstance(headers, PngHeaders) and targets is not None and self._scale == 1:
            files, threads = workspace.state.files, workspace.num_threads
            decoded = decode_pngs(files, headers, regions, targets, self.output_type, workspace.parallel, threads)
            return list(np.flatnonzero(~decoded).tolist())
        if not isinstance(headers, JpegHeaders) or headers.isolated or targets is None:
            return range(workspace.batch_size)
        decoded = decode_jpegs(
            workspace.state.files,
            headers,
            self._scale,
            regions,
            targets,
            self.output_type,
            self.args["adjust_orientation"],
            workspace.parallel,
            workspace.num_threads,
        )
        others: list[int] = np.flatnonzero(~decoded).tolist()
        return others

    def working_bytes(self, workspace: Workspace[Encoded, DecodePlan, DecodePlans]) -> Sequence[int]:
        live = workspace.live_indices
        headers = workspace.plans.headers if live else ()
        if isinstance(headers, JpegHeaders) and headers.have_at_most(_MAX_PIXELS_WITHOUT_SCAN_COUNT):
            return ()
        if isinstance(headers, (JpegHeaders, PngHeaders)) and len(headers) == workspace.batch_size:
            return self._working_bytes_of(headers, workspace.state.files).tolist()
        working = [0] * workspace.batch_size
        for index, header in zip(live, headers):
            if header.format != "jpeg" or header.height * header.width > _MAX_PIXELS_WITHOUT_SCAN_COUNT:
                working[index] = self._working_bytes(header, bytes_of(workspace.inputs[0].samples[index]))
        return working

    def _working_bytes(self, header: ImageHeader, encoded: np.ndarray) -> int:
        """Return the number of bytes that decoding an image takes in addition to its output."""
        dtype, upright = numpy_dtype(self.args["dtype"]), self.args["adjust_orientation"]
        working = image_memory(header, encoded, self.output_type, dtype, upright)
        if self._scale > 1 or self.chooses_scale:
            # Where the kernels cannot decode an image at a reduced size, it is decoded at full size and averaged.
            working += math.prod(header.shape(self.output_type, upright)) * dtype.itemsize
        return working

    def _working_bytes_of(self, headers: JpegHeaders | PngHeaders, files: EncodedFiles) -> np.ndarray:
        """Return :meth:`_working_bytes` of each of many baseline JPEGs or plain PNGs, as an array."""
        dtype = numpy_dtype(self.args["dtype"])
        if isinstance(headers, PngHeaders):
            working = memory_of_pngs(headers, files.sizes)
        else:
            working = memory_of_jpegs(headers, files.sizes, self.output_type, dtype, self.args["adjust_orientation"])
        if self._scale > 1 or self.chooses_scale:
            working += self._shapes_of(headers).prod(axis=1) * dtype.itemsize
        if isinstance(headers, PngHeaders):
            return working
        return np.where(headers.pixels > _MAX_PIXELS_WITHOUT_SCAN_COUNT, working, 0)

    def compute(self, sample: Sample[Encoded, DecodePlan]) -> None:
        self.decode_into(sample, sample.outputs[0])

    def decode_into(self, sample: Sample[Encoded, DecodePlan], output: np.ndarray) -> None:
        """Decode a sample's image, or its window, into ``output``, whose shape is the sample's inferred one."""
        self._decode(sample, sample.plan.window, output)

    def _decode(self, sample: Sample[Encoded, DecodePlan], region: Region | None, output: np.ndarray) -> None:
        if not output.size:
            return
        try:
            if self._scale > 1:
                decode_reduced(
                    encoded_bytes(sample),
                    sample.plan.header,
                    self._scale,
                    output,
                    self.output_type,
                    self.args["adjust_orientation"],
                    region,
                    sample.workspace.decoding,
                )
                return
            decode(
                encoded_bytes(sample),
                sample.plan.header,
                output,
                self.output_type,
                self.args["adjust_orientation"],
                self.args["use_fast_idct"],
                region,
                sample.workspace.decoding,
            )
        except PenstockError as error:
            raise undecodable(error, sample) from None

    def decode_parts_for(
        self,
        workspace: Workspace,
        parts: np.ndarray,
        targets: np.ndarray,
        work: Callable[[Files, int, np.ndarray, np.ndarray, Scratch], None],
        scales: np.ndarray,
    ) -> Sequence[int]:
        plans: DecodePlans = workspace.plans
        headers = plans.headers
        if not workspace.state.together or not isinstance(headers, JpegHeaders) or headers.isolated:
            return range(workspace.batch_size)
        if plans.windows is not None or self.output_type != RGB or not self.args["adjust_orientation"]:
            return range(workspace.batch_size)
        scales = scales * self._scale
        regions = self._worth_decoding(parts, -(-headers.sizes // scales[:, np.newaxis]))
        files, threads = workspace.state.files, workspace.num_threads
        decoded = decode_jpegs_for(files, headers, scales, regions, targets, work, workspace.parallel, threads)
        others: list[int] = np.flatnonzero(~decoded).tolist()
        return others

    @staticmethod
    def _worth_decoding(parts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return the region of each image to decode in order to get a part of it: the part itself, or the whole image if the part is
        so large that this is as fast.

        Args:
            parts: the y, x, height and width of each part; int64 of shape (images, 4), as the result.
            sizes: the height and width of each image; int64 of shape (images, 2).
        """
        regions = parts.copy()
        whole = regions[:, 2:].prod(axis=1) > _MAX_FRACTION_FOR_REGION_DECODE * sizes.prod(axis=1)
        regions[whole, :2], regions[whole, 2:] = 0, sizes[whole]
        return regions

    def run_chain(self, workspace: Workspace, chain: Chain, regions: np.ndarray) -> Sequence[int]:
        headers = workspace.plans.headers
        parts = np.hstack([regions["anchor"][:, :2], regions["extents"][:, :2]])
        if (
            not workspace.state.together
            or not isinstance(headers, JpegHeaders)
            or headers.isolated
            or not parts[:, 2:].all()
        ):
            return range(workspace.batch_size)
        parts = self._worth_decoding(parts, -(-headers.sizes // self._scale))
        computed = run_chain_of_jpegs(
            workspace.state.files,
            headers,
            self._scale,
            parts,
            chain,
            self.output_type,
            self.args["adjust_orientation"],
            workspace.parallel,
            workspace.num_threads,
        )
        others: list[int] = np.flatnonzero(~computed).tolist()
        return others

    def decode_part_into(self, sample: Sample[Encoded, DecodePlan], part: Region, output: np.ndarray) -> bool:
        """Decode a part (in H, W) of the image that :meth:`decode_into` decodes; return False, without decoding, if the pixels might
        differ from those of the whole image.
        """
        header, window = sample.plan
        if not output.size or window is not None or output.dtype != numpy_dtype(self.args["dtype"]):
            return False
        height, width, _ = header.shape(self.output_type, self.args["adjust_orientation"])
        if self._scale > 1:
            self._decode(sample, part, output)
            return True
        if part.extents == (height, width):
            self._decode(sample, None, output)
            return True
        orientation = header.placed(self.args["adjust_orientation"])
        if not decodes_alone(encoded_bytes(sample), header, orientation.stored_region(part, height, width)):
            return False
        self._decode(sample, part, output)
        return True

    def reductions(self, sample: Sample[Encoded, DecodePlan]) -> tuple[int, ...]:
        if not self.chooses_scale or self.args["dtype"] != UINT8 or self.output_type not in (RGB, BGR, GRAY):
            return ()
        header = sample.plan.header
        if header.format != "jpeg" or header.channels not in (1, 3) or sample.plan.window is not None:
            return ()
        if header.placed(self.args["adjust_orientation"]) == UPRIGHT:
            return _REDUCTIONS
        # At the right and bottom ends, a reduced image averages incomplete blocks. Rotation or mirroring would move these to the beginning,
        # so such an image can only be reduced by divisors of its size.
        return tuple(scale for scale in _REDUCTIONS if header.height % scale == 0 and header.width % scale == 0)

    @property
    def chooses_scale(self) -> bool:
        return bool(self.args.get("scale", EXACT) == FAST)

    def decode_part(self, sample: Sample[Encoded, DecodePlan], part: Region, scale: int = 1) -> np.ndarray | None:
        """Return a part (in H, W) of the image that :meth:`decode_into` decodes, in memory that this thread's next image overwrites.

        None if the part alone cannot be decoded, or if it is faster to decode the whole image and to cut the part out.
        """
        header, window = sample.plan
        scale *= self._scale
        if scale > 1:
            return self._decode_reduced_part(sample, part, scale)
        if window is not None:
            part = Region(tuple(a + b for a, b in zip(window.anchor, part.anchor)), part.extents)
        elif math.prod(part.extents) > _MAX_FRACTION_FOR_REGION_DECODE * header.height * header.width:
            return None
        if self.args["dtype"] != UINT8 or not all(part.extents):
            return None
        try:
            return decode_to_scratch(
                encoded_bytes(sample),
                header,
                part,
                self.output_type,
                self.args["adjust_orientation"],
                self.args["use_fast_idct"],
            )
        except PenstockError as error:
            raise undecodable(error, sample) from None

    def _decode_reduced_part(self, sample: Sample[Encoded, DecodePlan], part: Region, scale: int) -> np.ndarray | None:
        if self.args["dtype"] != UINT8 or not all(part.extents):
            return None
        try:
            return decode_reduced_to_scratch(
                encoded_bytes(sample),
                sample.plan.header,
                scale,
                part,
                self.output_type,
                self.args["adjust_orientation"],
                sample.workspace.decoding,
            )
        except PenstockError as error:
            raise undecodable(error, sample) from None

    def run(self, workspace: Workspace) -> None:
        self._check_lists(workspace)
        if workspace.device == "cpu":
            self.run_batch(workspace)
        else:
            self._run_on_gpu(workspace)

    # -- device "mixed" ----------------------------------------------------------------------------------------

    @property
    def begins_early(self) -> bool:
        return self.device == "mixed"

    def prepare(self, workspace: Workspace[Encoded]) -> None:
        if self._gpu is not None and self.decodes_whole and not workspace.failures:
            self.describe(workspace)
            workspace.state.request = self._gpu.read_jpegs(workspace.state.files, workspace.decoding)

    def begin(self, workspace: Workspace) -> EarlyStart:
        return self.submit_fused(workspace)

    def submit_fused(
        self, workspace: Workspace, follow: Callable[[TensorListGPU], PlannedResampling | None] | None = None
    ) -> EarlyStart:
        """Start decoding a batch on the GPU. No output is allocated: each image stays in the memory that it is decoded to.

        Args:
            follow: called with a batch that has the images' types and shapes but no data, and only if resampling images while others
                are decoded is faster than storing all. Returns the resampling to do, and :meth:`collect_fused` then completes the
                batch; or None to store the images.
        """
        if self._gpu is None:
            from penstock.kernels.codecs.image_codec_gpu import GpuImageDecoder
            from penstock.kernels.codecs.turns import TURNS, TURNS_OF_REQUESTS

            given_load, threads = self.given("hw_decoder_load"), workspace.num_threads
            # In a served model, a batch starts only when requests arrive, not ahead, so that fewer decoders take turns.
            turns = TURNS_OF_REQUESTS if workspace.isolate else TURNS
            self._gpu = GpuImageDecoder(self.args, given_load, threads, workspace.max_batch_size, turns)
        self._submit_on_gpu(workspace, follow)
        return EarlyStart(self._gpu.batches_ahead, occupies_host=not self._gpu.takes_all)

    def _submit_on_gpu(
        self, workspace: Workspace[Encoded], follow: Callable[[TensorListGPU], PlannedResampling | None] | None
    ) -> None:
        if not isinstance(workspace.state, Encoded):
            self.describe(workspace)
        if self.decodes_whole and not workspace.failures:

            def following_for(shapes: Sequence[Shape]) -> PlannedResampling | None:
                return None if follow is None else follow(without_data(self._output, shapes, workspace.device))

            request = workspace.state.request or self._gpu.read_jpegs(workspace.state.files, workspace.decoding)
            if request is not None:
                workspace.begun = self._gpu.submit_jpegs(request, follow and following_for)
                if workspace.begun is not None:
                    return
        (shapes,) = self.infer_samples(workspace, [self._output])
        from penstock.kernels.codecs.gpu.pending import Jobs

        jobs, indices = Jobs(), workspace.live_indices
        if indices:
            infos = workspace.inputs[0].source_infos
            headers, windows = workspace.plans.headers, workspace.plans.windows
            jobs = Jobs(
                workspace.state.files.take(indices),
                headers,
                None if windows is None else (windows.anchors, windows.extents),
                [shapes[index] for index in indices],
                [infos[index] for index in indices] if infos and windows is None else (),
            )
        workspace.begun = self._gpu.submit(jobs)

    def is_ready(self, workspace: Workspace) -> bool:
        return bool(workspace.begun.is_ready)

    def await_begun(self, workspace: Workspace) -> None:
        workspace.begun.await_ready()

    def collect_fused(self, workspace: Workspace) -> dict[int, Any] | None:
        """Complete a batch that :meth:`submit_fused` started, and record failures.

        Returns:
            The images that the next operator still has to resample, as CuPy arrays or located arrays, by their index in the batch.
            None if images are stored, so that :meth:`run` has to complete the batch.
        """
        if workspace.begun.following is None:
            return None
        late = self._gpu.collect_fused(workspace.begun, self._host_resources(workspace))
        for index, image in late.items():
            if isinstance(image, Exception):
                workspace.fail(index, image)
        return {index: image for index, image in late.items() if not isinstance(image, Exception)}

    @staticmethod
    def _host_resources(workspace: Workspace) -> HostResources:
        """Return the threads, limits and memory with which the CPU decodes the images that the GPU does not decode."""
        return HostResources(workspace.parallel, workspace.num_threads, workspace.decoding, workspace.pool)

    def _run_on_gpu(self, workspace: Workspace) -> None:
        if workspace.begun is None:
            self.begin(workspace)
        spec, decoded = self._output, self._gpu.collect(workspace.begun, self._host_resources(workspace))
        if not isinstance(decoded, list) and len(decoded) == workspace.batch_size:
            # All images are decoded, and described by arrays of addresses and shapes instead of one object each.
            workspace.outputs = [TensorListGPU.of_located(decoded, spec.layout, spec.dtype, 3)]
            return
        from penstock.kernels.codecs.gpu.settings import as_array
        from penstock.kernels.cuda.launch import Located

        if not workspace.samples:
            # Decoding was started without planning the samples.
            workspace.samples = PlannedSamples(self, workspace)
        images: list[Any] = [None] * workspace.batch_size
        for index, image in zip(workspace.live_indices, decoded):
            if isinstance(image, Exception):
                workspace.fail(index, image)
            else:
                images[index] = image
        if images and all(isinstance(image, Located) for image in images):
            output = TensorListGPU.of_located(images, spec.layout, spec.dtype, 3)
        else:
            filled = [self._gpu.empty(spec.dtype) if image is None else as_array(image) for image in images]
            output = TensorListGPU.of_samples(filled, spec.layout, spec.dtype, spec.ndim)
        workspace.outputs = [output]
