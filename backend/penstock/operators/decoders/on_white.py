"""`decoders.on_white`: decodes images, and puts transparent ones on a white background."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from penstock.data_types import RGB, UINT8, dtype_name
from penstock.errors import PenstockError, without_frames
from penstock.kernels.codecs.decoder_memory import ON_WHITE_BYTES_PER_PIXEL
from penstock.kernels.codecs.image_description import UPRIGHT, ImageHeader
from penstock.kernels.codecs.transparency import Conversion, asks_pillow, decode_as_pillow
from penstock.kernels.windows import Region
from penstock.operators.decoders._examples import encoded_images
from penstock.operators.decoders._images import (
    DECODER_ARGUMENTS,
    ENCODED_DOC,
    DecodePlan,
    Encoded,
    ImageDecoder,
    encoded_bytes,
    undecodable,
)
from penstock.schema import Argument, Equivalent, Input, Sample, Schema, Workspace, register_operator
from penstock.schema.early_start import EarlyStart
from penstock.schema.example_data import Example, photo_files
from penstock.schema.workspace import Started

if TYPE_CHECKING:
    from penstock.kernels.codecs.jpeg_gpu import JpegBatch, JpegDecoder
    from penstock.kernels.cuda.streaming import StreamedBatch, Streaming
    from penstock.tensors import TensorListGPU
    from penstock.tensors.streams import Stream


_COLOURS = 3


@register_operator
class OnWhite(ImageDecoder):
    """Decodes images to RGB as Pillow does, and puts transparent ones (PNG, WebP, GIF, TIFF) on a white background.

    Image processors of `transformers` put transparent Pillow images on white, as a browser does on a white page. `load_image`
    of `transformers`, and programs that call `Image.open(file).convert("RGB")`, keep the colours that a file stores for
    transparent pixels; `drop_alpha=True` does the same. CMYK, and images of 16 bits, become RGB as Pillow
    converts them; gray values of 16 bits above 255 become 255.

    On the device ``mixed``, pixels are the same. The GPU decodes most JPEGs (baseline, upright), the CPU all other images; each of
    these is copied to the GPU while the CPU decodes the next ones.

    >>> images = fn.decoders.on_white(files)  # doctest: +SKIP
    """

    schema = Schema(
        name="decoders__OnWhite",
        devices=("cpu", "mixed"),
        inputs=(Input("input", device="cpu", doc=ENCODED_DOC, example=encoded_images),),
        arguments=(
            *DECODER_ARGUMENTS,
            Argument(
                "drop_alpha",
                "bool",
                False,
                "Keep the colours stored for transparent pixels, as Pillow's `convert`, instead of putting them on white.",
            ),
        ),
        shown=(Example({}, (photo_files,)),),
        equivalents=(Equivalent("PIL.Image.alpha_composite"),),
        unswept="of the decoders' arguments, it takes only what gives RGB of uint8",
    )

    def setup(self) -> None:
        super().setup()
        if self.output_type != RGB or self.args["dtype"] != UINT8:
            raise ValueError(
                f"`decoders.on_white` returns RGB of uint8 only. Got: {self.output_type.name} of {dtype_name(self.args['dtype'])}"
            )
        self._conversion = Conversion(self.args["drop_alpha"], self.args["adjust_orientation"])
        self.is_cheap_on_host = False

    def _working_bytes(self, header: ImageHeader, encoded: np.ndarray) -> int:
        working = super()._working_bytes(header, encoded)
        return working + (
            ON_WHITE_BYTES_PER_PIXEL * header.height * header.width
            if asks_pillow(header, encoded, self._conversion.drops_alpha)
            else 0
        )

    def _decode(self, sample: Sample[Encoded, DecodePlan], region: Region | None, output: np.ndarray) -> None:
        file = encoded_bytes(sample)
        try:
            if (
                output.size
                and self._asks_pillow(sample)
                and decode_as_pillow(file, output, self._conversion, sample.workspace.decoding)
            ):
                return
        except PenstockError as error:
            raise undecodable(error, sample) from None
        super()._decode(sample, region, output)

    def _asks_pillow(self, sample: Sample[Encoded, DecodePlan]) -> bool:
        return asks_pillow(sample.plan.header, encoded_bytes(sample), self._conversion.drops_alpha)

    def decode_part_into(self, sample: Sample[Encoded, DecodePlan], part: Region, output: np.ndarray) -> bool:
        return not self._asks_pillow(sample) and super().decode_part_into(sample, part, output)

    def decode_part(self, sample: Sample[Encoded, DecodePlan], part: Region, scale: int = 1) -> np.ndarray | None:
        return None if self._asks_pillow(sample) else super().decode_part(sample, part, scale)

    # -- device "mixed" ----------------------------------------------------------------------------------------

    _through: Streaming | None = None
    _jpegs: JpegDecoder | None = None

    def begin(self, workspace: Workspace[Encoded]) -> EarlyStart:
        from penstock.kernels.codecs.jpeg_gpu import JpegDecoder
        from penstock.kernels.cuda.streaming import StreamedBatch, Streaming

        if self._through is None or self._jpegs is None:
            self._through = Streaming()
            self._jpegs = JpegDecoder(_COLOURS, reverse=False, smooth=True, threads=workspace.num_threads)
        (spec,) = self.describe(workspace)
        (shapes,) = self.infer_samples(workspace, [spec])
        batch = StreamedBatch(self._through, shapes, spec.dtype, spec.layout)
        begun = workspace.begun = _Begun(batch, [*workspace.samples], self.decode_into)
        self._begin_jpegs(workspace, begun, self._jpegs, self._through.stream)
        begun.begin_others(workspace.start)
        return EarlyStart(occupies_host=True)

    def _begin_jpegs(self, workspace: Workspace[Encoded], begun: _Begun, decoder: JpegDecoder, stream: Stream) -> None:
        """Start decoding on the GPU the JPEGs that it supports: upright ones that Pillow need not decode. Record them in ``begun``."""
        if self.args["use_fast_idct"]:
            return
        samples = [sample for sample in begun.samples if sample is not None]
        headers = {sample.index: sample.plan.header for sample in samples}
        wanted = [sample.index for sample in samples if self._may_be_decoded_there(sample)]
        files = workspace.state.files.take(wanted)
        if not wanted:
            return
        sizes = np.array([headers[index][1:3] for index in wanted], np.int64)
        scans = decoder.begin_reading(files, sizes).wait()
        rows = np.flatnonzero(scans.taken)
        begun.taken = [wanted[row] for row in rows.tolist()]
        if begun.taken:
            windows = np.concatenate([np.zeros_like(sizes), sizes], 1)[rows]
            targets = begun.batch.addresses[begun.taken]
            begun.jpegs = decoder.begin(scans, files, windows, targets, stream, begun.batch)

    def _may_be_decoded_there(self, sample: Sample[Encoded, DecodePlan]) -> bool:
        header = sample.plan.header
        return (
            header.format == "jpeg"
            and not self._asks_pillow(sample)
            and not header.isolated
            and header.placed(self.args["adjust_orientation"]) == UPRIGHT
        )

    def is_ready(self, workspace: Workspace) -> bool:
        return bool(workspace.begun.is_done)

    def await_begun(self, workspace: Workspace) -> None:
        # Wait only for the GPU: `run`, called next, waits for the CPU's files and helps to decode them.
        if workspace.begun.jpegs is not None:
            workspace.begun.jpegs.await_done()

    def _run_on_gpu(self, workspace: Workspace[Encoded]) -> None:
        if workspace.begun is None:
            self.begin(workspace)
        begun: _Begun = workspace.begun
        workspace.outputs = [begun.finish(workspace.parallel)]
        for index in sorted(begun.errors):
            workspace.fail(index, begun.errors[index])


@dataclass
class _Begun:
    """A batch that is being decoded.

    Attributes:
        batch: the outputs.
        samples: the batch's samples; None where there is nothing to decode.
        decode: decodes the image of a sample on the CPU.
        taken: the indices of the images that the GPU decodes.
        jpegs: the GPU's work on these images; None if there are none.
        errors: the errors of images that failed, by their indices.
        started: the CPU's work on all other images; None until it is started.
    """

    batch: StreamedBatch
    samples: Sequence[Sample[Encoded, DecodePlan] | None]
    decode: Callable[[Sample[Encoded, DecodePlan], np.ndarray], None]
    taken: Sequence[int] = ()
    jpegs: JpegBatch | None = None
    errors: dict[int, Exception] = field(default_factory=dict)
    started: Started | None = None

    def begin_others(self, start: Callable[..., Started]) -> None:
        """Start decoding the images that the GPU does not decode on the CPU."""
        on_gpu = set(self.taken)
        others = [index for index in range(len(self.samples)) if index not in on_gpu]
        self.started = start(*self._work_on_cpu(others))

    def _work_on_cpu(self, indices: Sequence[int]) -> tuple[Callable[[int], None], int, list[int]]:
        """Prepare to decode these images on the CPU.

        Returns:
            A function that decodes one of the images, given its position in ``indices``; the number of images; the cost of each.
        """
        self.batch.make_on_host(indices)

        def task(place: int) -> None:
            index = indices[place]
            sample = self.samples[index]
            if sample is None:
                return
            try:
                self.decode(sample, self.batch.host(index))
                self.batch.send(index)
            except Exception as error:
                self.errors[index] = without_frames(error)

        return task, len(indices), [self.batch.host(index).size for index in indices]

    @property
    def is_done(self) -> bool:
        """Whether :meth:`finish` would return without waiting."""
        return self.started is not None and self.started.is_done() and (self.jpegs is None or self.jpegs.is_done)

    def finish(self, parallel: Callable[..., None]) -> TensorListGPU:
        """Return the images; decode on the CPU those that the GPU failed to decode."""
        if self.started is not None:
            self.started.wait()
        if self.jpegs is not None:
            decoded = self.jpegs.wait()
            parallel(*self._work_on_cpu([index for index, is_one in zip(self.taken, decoded) if not is_one]))
        return self.batch.finish()
